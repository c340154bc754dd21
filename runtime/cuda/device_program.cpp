#include "runtime/cuda/device_program.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/rounding.h"

namespace sylvite {
namespace {

constexpr std::size_t work_alignment = 256;

std::size_t bytes_of(const TensorType& type) {
  return static_cast<std::size_t>(type.byte_size());
}

/// `types` are those of the ports at these sizes.
void check_addresses(const std::vector<cuda::DevicePointer>& addresses, const std::vector<Port>& ports,
                     const std::vector<TensorType>& types, const char* what) {
  constexpr cuda::DevicePointer alignment = 16;  // of vector loads and tensor memory access
  if (addresses.size() != ports.size())
    throw InputError("{} {} addresses given, the model has {} {}s", addresses.size(), what, ports.size(),
                     what);
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    if (bytes_of(types[i]) == 0) continue;
    if (addresses[i] == 0 || addresses[i] % alignment != 0) {
      throw InputError("{} {} '{}' lies at {:#x} on the device; it must be at a multiple of {} bytes", what,
                       i, ports[i].name, addresses[i], alignment);
    }
  }
}

/// The current context of the calling thread is the device's from here on.
const Plan& with_device(const Plan& plan) {
  cuda::Device::get().make_current();
  return plan;  // NOLINT(bugprone-return-const-ref-from-parameter): the program keeps a reference to it anyway
}

std::vector<std::size_t> bytes_of(const std::vector<TensorType>& types) {
  std::vector<std::size_t> all;
  all.reserve(types.size());
  for (const TensorType& type : types) all.push_back(bytes_of(type));
  return all;
}

/// Those that may be others in the next run.
std::vector<cuda::SymbolicAddress> moving_addresses(const NotedLaunches& noted) {
  std::vector<cuda::SymbolicAddress> addresses;
  for (const cuda::NotedLaunch& each : noted)
    for (const cuda::SymbolicAddress& address : addresses_of(each))
      if (address.region != cuda::Region::weight && address.region != cuda::Region::state)
        addresses.push_back(address);
  return addresses;
}

}  // namespace

DeviceProgram::DeviceProgram(const Plan& plan, const Bindings& bindings, DeviceShare shared, bool use_graph,
                             std::size_t streams, const DeviceWeights::Relatives& relatives)
    : plan_(with_device(plan)),
      bindings_(bindings),
      shared_(std::move(shared)),
      use_graph_(use_graph),
      streams_(streams),
      weights_(DeviceWeights::of(bindings, relatives)),
      maker_(shared_.modules),
      values_(bindings.values) {
  regions_.weights = weights_->addresses();
  upload_constant_results();
  if (shared_.states->size() > 0) regions_.states = shared_.states->device_address();
}

DeviceProgram::~DeviceProgram() = default;

/// From where runs on a caller's memory copy them: from the host's, copies would wait.
void DeviceProgram::upload_constant_results() {
  for (std::size_t i = 0; i < bindings_.outputs.size(); ++i) {
    const std::size_t bytes = bytes_of(bindings_.results[i]);
    if (bindings_.outputs[i].kind != BufferKind::weight || bytes == 0) continue;
    const Tensor& weight = plan_.weights.at(static_cast<std::size_t>(bindings_.outputs[i].number));
    cuda::DeviceMemory& there = constant_results_[i] = cuda::DeviceMemory(bytes);
    cuda::driver().copy_to_device(there.address(), weight.data(), bytes, stream_.get());
  }
  if (!constant_results_.empty()) stream_.synchronize();
}

DeviceArguments DeviceProgram::own_arguments() {
  return shared_.room->take(bytes_of(bindings_.inputs), bytes_of(bindings_.results), work_bytes());
}

std::size_t DeviceProgram::work_bytes() const {
  return round_up(static_cast<std::size_t>(bindings_.arena_bytes), work_alignment) + scratch_bytes_;
}

std::size_t DeviceProgram::turn_bytes() const {
  return round_up(values_.block_bytes(), work_alignment) + scratch_bytes_;
}

std::vector<cuda::Launch> DeviceProgram::make(const NotedLaunches& noted) {
  std::vector<cuda::Launch> made;
  for (const cuda::NotedLaunch& each : noted) made.push_back(maker_.make(each, regions_));
  return made;
}

void DeviceProgram::begin_launches(std::size_t scratch_bytes) {
  noted_.clear();
  launches_.clear();
  names_.clear();
  bound_.clear();
  values_.restart();
  own_touches_.clear();
  graphs_.clear();
  own_work_ = cuda::DeviceMemory();
  scratch_bytes_ = scratch_bytes;
  has_library_ = false;
}

void DeviceProgram::add_launches(const NotedLaunches& noted) {
  cuda::Device::get().make_current();
  for (const cuda::NotedLaunch& each : noted) {
    maker_.load(each);
    has_library_ = has_library_ || each.library;
  }
  own_touches_.push_back(touches_beside_arguments(noted));
  values_.name(noted_.emplace_back(noted));
  names_.push_back(moving_addresses(noted_.back()));
  launches_.emplace_back();
  bound_.emplace_back();
}

/// A launch is made by the first run, and moved when what it names lies elsewhere than in the last one.
void DeviceProgram::bind_launch(std::size_t number) {
  std::vector<cuda::DevicePointer> places;
  places.reserve(names_[number].size());
  for (const cuda::SymbolicAddress& each : names_[number]) places.push_back(regions_.at(each));
  if (bound_[number] == places) return;
  bound_[number].reset();  // until it is made
  std::vector<cuda::Launch>& launches = launches_[number];
  if (launches.empty())
    launches = make(noted_[number]);
  else
    for (std::size_t i = 0; i < launches.size(); ++i) maker_.move(launches[i], noted_[number][i], regions_);
  bound_[number] = std::move(places);
}

void DeviceProgram::bind(const DeviceArguments& arguments) {
  if (arguments.work == 0 && own_work_.size() != work_bytes()) own_work_ = cuda::DeviceMemory(work_bytes());
  const cuda::DevicePointer work = arguments.work == 0 ? own_work_.address() : arguments.work;
  regions_.arena = work;
  regions_.scratch = work + round_up(static_cast<std::size_t>(bindings_.arena_bytes), work_alignment);
  regions_.values = values_.in_arena(work);
  regions_.inputs = arguments.inputs;
  regions_.outputs = arguments.outputs;
  for (std::size_t i = 0; i < noted_.size(); ++i) bind_launch(i);
}

void DeviceProgram::upload(const std::vector<Tensor>& inputs, const DeviceArguments& arguments) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const auto bytes = static_cast<std::size_t>(inputs[i].byte_size());
    if (bytes == 0) continue;
    std::memcpy(shared_.room->staging(i), inputs[i].data(), bytes);
    cuda::driver().copy_to_device(arguments.inputs[i], shared_.room->staging(i), bytes, stream_.get());
  }
}

void DeviceProgram::issue_in_order(cuda::StreamHandle stream) const {
  for (const std::vector<cuda::Launch>& launches : launches_)
    for (const cuda::Launch& launch : launches) cuda::launch(launch, stream);
}

/// While stream_ is captured: other streams fork from it and join it, by events.
void DeviceProgram::record_branches() {
  std::vector<Touches> touches = touches_of(plan_, bindings_);
  for (std::size_t i = 0; i < touches.size(); ++i)
    touches[i].insert(touches[i].end(), own_touches_[i].begin(), own_touches_[i].end());
  const std::vector<StreamPlace> places = spread(touches, streams_);
  const std::vector<cuda::Stream> others(streams_ - 1);
  std::vector<cuda::Event> ends;  // per launch
  std::vector<const cuda::Event*> last(streams_, nullptr);
  ends.reserve(launches_.size());
  cuda::Event start(false);
  start.record(stream_.get());
  for (std::size_t i = 0; i < launches_.size(); ++i) {
    const std::size_t number = places[i].stream;
    const cuda::StreamHandle stream = number == 0 ? stream_.get() : others[number - 1].get();
    const bool is_fork = number > 0 && last[number] == nullptr;
    if (is_fork) cuda::driver().stream_wait_event(stream, start.get(), 0);
    for (const std::size_t j : places[i].waits) cuda::driver().stream_wait_event(stream, ends[j].get(), 0);
    bool joins = is_fork || !places[i].waits.empty();
    for (cuda::Launch launch : launches_[i]) {
      launch.shape.programmatic =
          launch.shape.programmatic && !joins;  // it waits for the stream's last kernel only
      cuda::launch(launch, stream);
      joins = false;
    }
    ends.emplace_back(false).record(stream);
    last[number] = &ends.back();
  }
  for (std::size_t s = 1; s < streams_; ++s)
    if (last[s] != nullptr) cuda::driver().stream_wait_event(stream_.get(), last[s]->get(), 0);
}

/// Kernels of libraries have workspaces of the program: runs on another stream wait for them.
void DeviceProgram::wait_for_workspaces(cuda::StreamHandle stream) {
  if (has_library_ && library_ran_ && stream != library_stream_)
    cuda::driver().stream_wait_event(stream, library_done_.get(), 0);
}

void DeviceProgram::note_workspaces(cuda::StreamHandle stream) {
  if (!has_library_) return;
  library_done_.record(stream);
  library_stream_ = stream;
  library_ran_ = true;
}

/// `comes_again`: runs at these addresses are sure to follow.
void DeviceProgram::issue(cuda::StreamHandle stream, const DeviceArguments& arguments, bool comes_again) {
  const cuda::Graph* graph = use_graph_ ? graphs_.find(arguments) : nullptr;
  if (graph != nullptr) return graph->launch(stream);
  bind(arguments);
  // A graph of one kernel costs more than the kernel's launch, and keeps it from beginning early.
  std::size_t kernels = 0;
  for (const std::vector<cuda::Launch>& launches : launches_) kernels += launches.size();
  if (!use_graph_ || kernels < 2 || !(comes_again || graphs_.is_wanted(arguments)))
    return issue_in_order(stream);
  graphs_
      .add(arguments,
           cuda::Graph(stream_, [&] { streams_ > 1 ? record_branches() : issue_in_order(stream_.get()); }))
      .launch(stream);
}

void DeviceProgram::issue_profiled(std::vector<LaunchTime>& profile) {
  std::vector<cuda::Event> events(launches_.size() + 1);
  // The host takes longer to issue a short kernel than that runs: the device begins when much has been issued.
  constexpr std::size_t microseconds_each = 10, most_microseconds = 20'000;
  const std::size_t pause = std::min(launches_.size() * microseconds_each, most_microseconds);
  cuda::driver().launch_host_function(
      stream_.get(),
      [](void* microseconds) {
        std::this_thread::sleep_for(
            std::chrono::microseconds(reinterpret_cast<std::uintptr_t>(microseconds)));
      },
      reinterpret_cast<void*>(pause));
  for (std::size_t i = 0; i < launches_.size(); ++i) {
    events[i].record(stream_.get());
    for (const cuda::Launch& launch : launches_[i]) cuda::launch(launch, stream_.get());
  }
  events.back().record(stream_.get());
  stream_.synchronize();
  for (std::size_t i = 0; i < launches_.size(); ++i) {
    LaunchTime& time = profile.emplace_back();
    time.start_us = cuda::microseconds_between(events[0], events[i]);
    time.duration_us = cuda::microseconds_between(events[i], events[i + 1]);
  }
}

std::vector<Tensor> DeviceProgram::download(const std::vector<Tensor>& inputs,
                                            const DeviceArguments& arguments) {
  std::vector<Tensor> results;
  for (std::size_t i = 0; i < bindings_.outputs.size(); ++i) {
    const TensorType& type = bindings_.results[i];
    const Location& place = bindings_.outputs[i];
    if (place.kind == BufferKind::input) {
      results.push_back(inputs.at(static_cast<std::size_t>(place.number)).reshaped(type.dims()));
    } else if (place.kind == BufferKind::weight) {
      results.push_back(plan_.weights.at(static_cast<std::size_t>(place.number)).reshaped(type.dims()));
    } else {
      const std::shared_ptr<void> block = shared_.room->take_result(bytes_of(type));
      results.emplace_back(type.dtype, type.dims(), block, block.get());
      if (type.byte_size() == 0) continue;
      cuda::driver().copy_to_host(block.get(), address_of(place, arguments),
                                  static_cast<std::size_t>(type.byte_size()), stream_.get());
    }
  }
  stream_.synchronize();
  return results;
}

std::vector<Tensor> DeviceProgram::run(const std::vector<Tensor>& inputs, std::vector<LaunchTime>* profile) {
  const cuda::CurrentDevice device;
  const DeviceArguments arguments = own_arguments();
  upload(inputs, arguments);
  if (profile != nullptr) {
    bind(arguments);
    issue_profiled(*profile);
  } else {
    issue(stream_.get(), arguments, false);
  }
  return download(inputs, arguments);
}

/// Of what lies on the device. REQUIRES a run of the program's own memory before, where that is meant.
cuda::DevicePointer DeviceProgram::address_of(const Location& place, const DeviceArguments& arguments) const {
  const auto number = static_cast<std::size_t>(place.number);
  switch (place.kind) {
    case BufferKind::input:
      return arguments.inputs.at(number);
    case BufferKind::output:
      return arguments.outputs.at(number);
    case BufferKind::arena:
      return (arguments.work == 0 ? own_work_.address() : arguments.work) + number;
    case BufferKind::state:
      return shared_.states->device_address() + number;
    case BufferKind::weight:
      break;
  }
  throw InternalError("a result of a program on a device lies in memory of kind {}",
                      static_cast<int>(place.kind));
}

void DeviceProgram::copy_outputs(cuda::StreamHandle stream, const std::vector<cuda::DevicePointer>& outputs,
                                 const std::function<cuda::DevicePointer(const Location&)>& from) {
  for (std::size_t i = 0; i < bindings_.outputs.size(); ++i) {
    const Location& place = bindings_.outputs[i];
    const std::size_t bytes = bytes_of(bindings_.results[i]);
    if (has_own_memory(bindings_, i) || bytes == 0) continue;
    const bool is_constant = place.kind == BufferKind::weight;
    const cuda::DevicePointer made = is_constant ? constant_results_.at(i).address() : from(place);
    if (made != outputs[i]) cuda::copy_bytes(outputs[i], made, bytes, stream);
  }
}

void DeviceProgram::run_on(cuda::StreamHandle stream, const DeviceArguments& arguments) {
  check_addresses(arguments.inputs, plan_.inputs, bindings_.inputs, "input");
  check_addresses(arguments.outputs, plan_.outputs, bindings_.results, "output");
  const cuda::CurrentDevice device;
  const auto from = [&](const Location& place) { return address_of(place, arguments); };
  if (cuda::is_capturing(
          stream)) {  // a graph cannot be launched there, and an event of before not be waited for
    bind(arguments);
    issue_in_order(stream);
    return copy_outputs(stream, arguments.outputs, from);
  }
  wait_for_workspaces(stream);
  issue(stream, arguments, false);
  copy_outputs(stream, arguments.outputs, from);
  note_workspaces(stream);
}

void DeviceProgram::run_in_turns(cuda::StreamHandle stream, const std::vector<cuda::DevicePointer>& inputs,
                                 const RunMemory& memory) {
  check_addresses(inputs, plan_.inputs, bindings_.inputs, "input");
  const cuda::CurrentDevice device;
  const bool is_captured = cuda::is_capturing(stream);
  if (turns_.size() != noted_.size()) turns_ = values_.turns(bindings_);
  if (!is_captured) wait_for_workspaces(stream);
  regions_.arena = memory.work;
  regions_.scratch = memory.work + round_up(values_.block_bytes(), work_alignment);
  regions_.values = values_.in_block(memory.work);
  regions_.inputs = inputs;
  regions_.outputs.assign(bindings_.results.size(), 0);
  for (std::size_t i = 0; i < noted_.size(); ++i) {
    const LaunchTurn& turn = turns_[i];
    for (const std::size_t output : turn.outputs) regions_.outputs[output] = memory.take_output(output);
    for (const std::size_t value : turn.values)
      regions_.values[value] = memory.take_value(value, values_.bytes(value));
    bind_launch(i);
    for (const cuda::Launch& launch : launches_[i]) cuda::launch(launch, stream);
    for (const std::size_t value : turn.last_values) memory.drop_value(value);
    for (const std::size_t input : turn.last_inputs) memory.drop_input(input);
  }
  for (std::size_t i = 0; i < bindings_.results.size(); ++i)
    if (regions_.outputs[i] == 0) regions_.outputs[i] = memory.take_output(i);
  copy_outputs(stream, regions_.outputs,
               [&](const Location& place) { return regions_.at(values_.name(place)); });
  if (!is_captured) note_workspaces(stream);
}

double DeviceProgram::time_replays(int times) {
  const cuda::CurrentDevice device;
  const DeviceArguments arguments = own_arguments();
  cuda::Event start;
  cuda::Event end;
  start.record(stream_.get());
  for (int i = 0; i < times; ++i) issue(stream_.get(), arguments, true);
  end.record(stream_.get());
  end.synchronize();
  return cuda::microseconds_between(start, end) / times;
}

std::int64_t DeviceProgram::bytes(std::set<const void*>& counted) const {
  std::size_t total = 0;
  if (counted.insert(shared_.room.get()).second) {
    total = work_bytes();
    for (const TensorType& type : bindings_.inputs) total += bytes_of(type);
    for (const TensorType& type : bindings_.results) total += bytes_of(type);
    total = std::max(total, shared_.room->bytes());
  }
  for (const auto& [output, memory] : constant_results_) total += memory.size();
  if (counted.insert(shared_.states.get()).second) total += shared_.states->size();
  return static_cast<std::int64_t>(total) + weights_->bytes(counted);
}

}  // namespace sylvite
