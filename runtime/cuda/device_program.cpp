#include "runtime/cuda/device_program.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "base/error.h"
#include "base/rounding.h"

namespace sylvite {
namespace {

constexpr std::size_t weight_alignment = 256;

std::size_t bytes_of(const Port& port) {
  return static_cast<std::size_t>(port.type.byte_size());
}

void check_addresses(const std::vector<cuda::DevicePointer>& addresses, const std::vector<Port>& ports,
                     const char* what) {
  constexpr cuda::DevicePointer alignment = 16;  // of vector loads and tensor memory access
  if (addresses.size() != ports.size())
    throw InputError("{} {} addresses given, the model has {} {}s", addresses.size(), what, ports.size(),
                     what);
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    if (bytes_of(ports[i]) == 0) continue;
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

}  // namespace

DeviceProgram::DeviceProgram(const Plan& plan, const Bindings& bindings, bool use_graph, std::size_t streams)
    : plan_(with_device(plan)),
      bindings_(bindings),
      use_graph_(use_graph),
      streams_(streams),
      arena_(static_cast<std::size_t>(plan.arena_bytes)) {
  for (const Port& port : plan.inputs) {
    own_.inputs.push_back(inputs_.emplace_back(std::max<std::size_t>(bytes_of(port), 1)).address());
    staging_.emplace_back(bytes_of(port));
  }
  for (const Port& port : plan.outputs) {
    own_.outputs.push_back(outputs_.emplace_back(std::max<std::size_t>(bytes_of(port), 1)).address());
    results_.emplace_back(std::max<std::size_t>(bytes_of(port), 1));
  }
  upload_weights();
  regions_.arena = arena_.address();
  regions_.inputs = own_.inputs;
  regions_.outputs = own_.outputs;
}

void DeviceProgram::upload_weights() {
  std::map<const void*, std::size_t> offsets;
  std::vector<const Tensor*> apart;  // of slots that share one, the first
  std::size_t total = 0;
  for (std::size_t slot = 0; slot < bindings_.weights.size(); ++slot) {
    const Tensor& weight = bindings_.weights.at(slot);
    if (!offsets.try_emplace(weight.data(), total).second) continue;
    apart.push_back(&weight);
    total += round_up(static_cast<std::size_t>(weight.byte_size()), weight_alignment);
  }
  weights_ = cuda::DeviceMemory(total);
  for (std::size_t slot = 0; slot < bindings_.weights.size(); ++slot)
    regions_.weights.push_back(weights_.address() + offsets.at(bindings_.weights.at(slot).data()));
  for (const Tensor* weight : apart) {
    if (weight->byte_size() == 0) continue;
    cuda::driver().copy_to_device(weights_.address() + offsets.at(weight->data()), weight->data(),
                                  static_cast<std::size_t>(weight->byte_size()), stream_.get());
  }
  stream_.synchronize();
}

std::vector<cuda::Launch> DeviceProgram::make(const NotedLaunches& noted) {
  std::vector<cuda::Launch> made;
  for (const cuda::NotedLaunch& each : noted) made.push_back(maker_.make(each, regions_));
  return made;
}

void DeviceProgram::begin_launches(std::size_t scratch_bytes) {
  cuda::Device::get().make_current();
  launches_.clear();
  outward_.clear();
  own_touches_.clear();
  scratch_ = cuda::DeviceMemory(scratch_bytes);
  regions_.scratch = scratch_.address();
}

void DeviceProgram::add_launches(const NotedLaunches& noted) {
  cuda::Device::get().make_current();
  const bool is_outward = std::ranges::any_of(noted, [](const cuda::NotedLaunch& each) {
    return uses_region(each, cuda::Region::input) || uses_region(each, cuda::Region::output);
  });
  launches_.push_back(make(noted));
  own_touches_.push_back(touches_beside_arguments(noted));
  if (is_outward) outward_.emplace(launches_.size() - 1, noted);
}

/// Launches that name inputs or outputs are made again when those lie elsewhere than in the last run.
void DeviceProgram::bind(const DeviceArguments& arguments) {
  if (regions_.inputs == arguments.inputs && regions_.outputs == arguments.outputs) return;
  regions_.inputs = arguments.inputs;
  regions_.outputs = arguments.outputs;
  for (const auto& [launch, noted] : outward_) launches_[launch] = make(noted);
  graph_ = cuda::Graph();
}

void DeviceProgram::upload(const std::vector<Tensor>& inputs) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const auto bytes = static_cast<std::size_t>(inputs[i].byte_size());
    if (bytes == 0) continue;
    std::memcpy(staging_[i].data(), inputs[i].data(), bytes);
    cuda::driver().copy_to_device(inputs_[i].address(), staging_[i].data(), bytes, stream_.get());
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

void DeviceProgram::issue(cuda::StreamHandle stream) {
  if (!use_graph_) return issue_in_order(stream);
  if (graph_.is_empty()) {
    // A graph of one kernel costs more than the kernel's launch, and keeps it from beginning early.
    std::size_t kernels = 0;
    for (const std::vector<cuda::Launch>& launches : launches_) kernels += launches.size();
    if (kernels < 2) return issue_in_order(stream);
    graph_ = cuda::Graph(stream_, [&] { streams_ > 1 ? record_branches() : issue_in_order(stream_.get()); });
  }
  graph_.launch(stream);
}

void DeviceProgram::issue_profiled(std::vector<LaunchTime>& profile) {
  std::vector<cuda::Event> events(launches_.size() + 1);
  for (std::size_t i = 0; i < launches_.size(); ++i) {
    events[i].record(stream_.get());
    for (const cuda::Launch& launch : launches_[i]) cuda::launch(launch, stream_.get());
  }
  events.back().record(stream_.get());
  stream_.synchronize();
  for (std::size_t i = 0; i < launches_.size(); ++i) {
    const Launch& launch = plan_.launches[i];
    const auto kernel = static_cast<std::size_t>(launch.kernel);
    profile.push_back({launch.name, kernel, plan_.kernels[kernel].id,
                       cuda::microseconds_between(events[0], events[i]),
                       cuda::microseconds_between(events[i], events[i + 1])});
  }
}

std::vector<Tensor> DeviceProgram::download(const std::vector<Tensor>& inputs) {
  std::vector<Tensor> results;
  for (std::size_t i = 0; i < plan_.outputs.size(); ++i) {
    const TensorType& type = plan_.outputs[i].type;
    const Location& place = bindings_.outputs[i];
    if (place.kind == BufferKind::input) {
      results.push_back(inputs.at(static_cast<std::size_t>(place.number)).reshaped(type.dims()));
    } else if (place.kind == BufferKind::weight) {
      results.push_back(plan_.weights.at(static_cast<std::size_t>(place.number)).reshaped(type.dims()));
    } else {
      const std::shared_ptr<void> block = results_[i].take();
      results.emplace_back(type.dtype, type.dims(), block, block.get());
      if (type.byte_size() == 0) continue;
      cuda::driver().copy_to_host(block.get(), regions_.at(symbolic(place)),
                                  static_cast<std::size_t>(type.byte_size()), stream_.get());
    }
  }
  stream_.synchronize();
  return results;
}

std::vector<Tensor> DeviceProgram::run(const std::vector<Tensor>& inputs, std::vector<LaunchTime>* profile) {
  cuda::Device::get().make_current();
  bind(own_);
  upload(inputs);
  profile != nullptr ? issue_profiled(*profile) : issue(stream_.get());
  return download(inputs);
}

void DeviceProgram::copy_outputs(cuda::StreamHandle stream) {
  for (std::size_t i = 0; i < plan_.outputs.size(); ++i) {
    const Location& place = bindings_.outputs[i];
    const std::size_t bytes = bytes_of(plan_.outputs[i]);
    if (place == Location{BufferKind::output, static_cast<std::int64_t>(i)} || bytes == 0) continue;
    if (place.kind == BufferKind::weight) {
      const Tensor& weight = plan_.weights.at(static_cast<std::size_t>(place.number));
      cuda::driver().copy_to_device(regions_.outputs[i], weight.data(), bytes, stream);
    } else {
      cuda::driver().copy_on_device(regions_.outputs[i], regions_.at(symbolic(place)), bytes, stream);
    }
  }
}

void DeviceProgram::run_on(cuda::StreamHandle stream, const DeviceArguments& arguments) {
  check_addresses(arguments.inputs, plan_.inputs, "input");
  check_addresses(arguments.outputs, plan_.outputs, "output");
  cuda::Device::get().make_current();
  bind(arguments);
  issue(stream);
  copy_outputs(stream);
}

double DeviceProgram::time_replays(int times) {
  cuda::Device::get().make_current();
  cuda::Event start;
  cuda::Event end;
  start.record(stream_.get());
  for (int i = 0; i < times; ++i) issue(stream_.get());
  end.record(stream_.get());
  end.synchronize();
  return cuda::microseconds_between(start, end) / times;
}

std::int64_t DeviceProgram::bytes() const {
  std::size_t total = arena_.size() + weights_.size() + scratch_.size();
  for (const cuda::DeviceMemory& memory : inputs_) total += memory.size();
  for (const cuda::DeviceMemory& memory : outputs_) total += memory.size();
  return static_cast<std::int64_t>(total);
}

}  // namespace sylvite
