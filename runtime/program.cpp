#include "runtime/program.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "frontend/values/copy_of.h"
#include "lowering/plan/plan_loops.h"
#include "runtime/cuda/recorder.h"
#include "runtime/given_inputs.h"
#include "runtime/host_room.h"
#include "runtime/launch_calls.h"
#include "runtime/one_run.h"
#include "runtime/program_code.h"
#include "runtime/state_memory.h"
#include "runtime/threads.h"

namespace sylvite {

struct Program::Rep {
  Rep(std::shared_ptr<const ProgramCode> given, Bindings bound, const Relatives& relatives)
      : code(std::move(given)),
        plan(*code->plan),
        options(code->options),
        bindings(std::move(bound)),
        inputs(plan.inputs, bindings.inputs),
        host(static_cast<std::size_t>(options.on_device ? 0 : bindings.arena_bytes)),
        states(find_states(relatives)),
        room(relatives.take_turns && !relatives.programs.empty() ? relatives.programs.front()->rep_->room
                                                                 : std::make_shared<DeviceRoom>()),
        calls(*code, bindings, host, *states),
        outputs(plan.outputs.size()),
        no_places(plan.outputs.size()) {
    for (const Program* program : relatives.programs)
      if (program->rep_->device) device_donors.push_back(program->rep_->device->weights());
  }

  [[nodiscard]] std::shared_ptr<StateMemory> find_states(const Relatives& relatives) const;
  [[nodiscard]] std::size_t state_offset(std::size_t number) const;
  void rebind();
  void note_all();
  void upload_weights();
  void prepare_device();
  [[nodiscard]] DeviceProgram& ready_device();
  void bind_run(const std::vector<Tensor>& inputs, const std::vector<void*>& places);
  [[nodiscard]] std::vector<Tensor> run_on_device(const std::vector<Tensor>& given,
                                                  std::vector<LaunchTime>* profile);
  void run_on_host(const std::vector<Tensor>& given, const std::vector<void*>& places,
                   std::vector<LaunchTime>* profile, std::vector<Tensor>& results);
  void run_launches();
  [[nodiscard]] const Plan& own_plan();
  void run_profiled(std::vector<LaunchTime>& profile);
  [[nodiscard]] Tensor result(std::size_t number, const std::vector<void*>& places) const;
  void take_results(const std::vector<void*>& places, std::vector<Tensor>& results);
  [[nodiscard]] std::int64_t kept_bytes(std::set<const void*>& counted) const;
  [[nodiscard]] std::int64_t run_bytes() const;

  std::shared_ptr<const ProgramCode> code;
  const Plan& plan;  ///< of the code: numbers that depend on sizes are those of `bindings`
  const ProgramOptions& options;
  Bindings bindings;
  GivenInputs inputs;
  HostRoom host;
  std::shared_ptr<StateMemory> states;                     ///< also of relatives that take turns
  std::shared_ptr<DeviceRoom> room;                        ///< likewise: all of these have the same
  std::function<std::shared_ptr<const Plan>()> make_plan;  ///< none: it is that of the code
  std::shared_ptr<const Plan> made_plan;
  cuda::LaunchRecorder recorder;
  std::vector<NotedLaunches> noted;        ///< per launch, once they were asked for
  std::unique_ptr<DeviceProgram> device;   ///< none before the first run on a device
  DeviceWeights::Relatives device_donors;  ///< until then
  double weights_seconds = 0;
  std::atomic_flag busy;
  LaunchCalls calls;
  std::vector<Tensor> outputs;   ///< of the current run, for outputs with memory that the run gave them
  std::vector<void*> no_places;  ///< as many as there are outputs
};

/// Those of the programs that take turns: a state does not depend on the sizes of a run.
std::shared_ptr<StateMemory> Program::Rep::find_states(const Relatives& relatives) const {
  for (const Program* program : relatives.programs) {
    if (!relatives.take_turns || plan.states.empty()) continue;
    const auto type_of = [](const Port& port) { return port.type; };
    if (!std::ranges::equal(plan.states, program->plan_alike().states, {}, type_of, type_of))
      throw InternalError("the states of two programs of one model differ");
    return program->rep_->states;
  }
  return std::make_shared<StateMemory>(static_cast<std::size_t>(plan.state_bytes), options.on_device);
}

std::size_t Program::Rep::state_offset(std::size_t number) const {
  const Buffer& buffer = plan.buffers.at(static_cast<std::size_t>(plan.states.at(number).buffer));
  return static_cast<std::size_t>(buffer.offset);
}

/// Numbers of the bindings are others.
void Program::Rep::rebind() {
  inputs = GivenInputs(plan.inputs, bindings.inputs);
  host.begin_anew(static_cast<std::size_t>(bindings.arena_bytes));
  calls.rebind();
}

void Program::Rep::note_all() {
  if (noted.size() == calls.size()) return;
  noted.clear();
  for (std::size_t i = 0; i < calls.size(); ++i) noted.push_back(calls.note(i, recorder));
}

void Program::Rep::upload_weights() {
  if (device) return;
  const double start = steady_seconds();
  device =
      std::make_unique<DeviceProgram>(plan, bindings, DeviceShare{states, code->loaded->modules, room},
                                      options.use_graph, options.streams, std::exchange(device_donors, {}));
  weights_seconds += steady_seconds() - start;
}

void Program::Rep::prepare_device() {
  upload_weights();
  if (device->is_complete()) return;
  note_all();
  device->begin_launches(recorder.scratch_bytes());
  for (std::size_t i = 0; i < noted.size(); ++i) {
    try {
      device->add_launches(noted[i]);
    } catch (const CompileError& error) {
      refuse_launch(plan.launches[i], error.what());
    }
  }
}

DeviceProgram& Program::Rep::ready_device() {
  if (!options.on_device)
    throw UsageError("a program on the CPU cannot run on device memory; compile it with compile.device=cuda");
  prepare_device();
  return *device;
}

void Program::Rep::bind_run(const std::vector<Tensor>& given, const std::vector<void*>& places) {
  inputs.take(given);
  for (std::size_t i = 0; i < inputs.size(); ++i) calls.set_input(i, inputs.at(i).data());
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (!has_own_memory(bindings, i)) continue;
    const void* data = places[i];
    if (data == nullptr) {
      const TensorType& type = bindings.results[i];
      std::shared_ptr<void> block = host.take_result(static_cast<std::size_t>(type.byte_size()));
      data = block.get();
      outputs[i] = Tensor(type.dtype, type.dims(), std::move(block), data);
    }
    calls.set_output(i, data);
  }
}

void Program::Rep::run_launches() {
  code->order->run(calls.context(), [&](std::size_t number, std::int64_t trip) { calls.run(number, trip); });
}

/// At the sizes of the program: other kernels may be equal there.
const Plan& Program::Rep::own_plan() {
  if (make_plan && made_plan == nullptr) made_plan = make_plan();
  return made_plan != nullptr ? *made_plan : plan;
}

/// The launches of a loop are told as if each made all its trips before the next.
void Program::Rep::run_profiled(std::vector<LaunchTime>& profile) {
  std::vector<LaunchTime> times(plan.launches.size());
  for (LaunchTime& time : times) time.count = 0;
  const double run_start = steady_seconds();
  for_each_launch(plan, [&](std::size_t number, std::int64_t trip) {
    LaunchTime& time = times[number];
    const double start = steady_seconds() - run_start;
    if (time.count++ == 0) time.start_us = start * 1e6;
    calls.run(number, trip);
    time.duration_us += (steady_seconds() - run_start - start) * 1e6;
  });
  double end_us = 0;
  const Plan& told = own_plan();
  for (std::size_t i = 0; i < times.size(); ++i) {
    if (bindings.launches[i].is_empty) continue;
    name_launch(times[i], told, i);
    times[i].start_us = std::max(times[i].start_us, end_us);
    end_us = times[i].start_us + times[i].duration_us;
    profile.push_back(std::move(times[i]));
  }
}

Tensor Program::Rep::result(std::size_t number, const std::vector<void*>& places) const {
  const TensorType& type = bindings.results[number];
  const Location place = bindings.outputs[number];
  const auto index = static_cast<std::size_t>(place.number);
  switch (place.kind) {
    case BufferKind::input:
      return inputs.at(index).reshaped(type.dims());
    case BufferKind::weight:
      return plan.weights.at(index).reshaped(type.dims());
    case BufferKind::output:
      if (places[index] != nullptr) return {type.dtype, type.dims(), nullptr, places[index]};
      return outputs.at(index).reshaped(type.dims());
    case BufferKind::arena:
      return copy_of(Tensor(type.dtype, type.dims(), nullptr, host.data() + index));
    case BufferKind::state:
      return copy_of(Tensor(type.dtype, type.dims(), nullptr, states->host_data() + index));
  }
  throw InternalError("corrupt kind of output {}", number);
}

/// What has memory of its own goes last: other results may be copies of it.
void Program::Rep::take_results(const std::vector<void*>& places, std::vector<Tensor>& results) {
  results.resize(outputs.size());
  for (std::size_t i = 0; i < results.size(); ++i)
    if (!has_own_memory(bindings, i)) results[i] = result(i, places);
  for (std::size_t i = 0; i < results.size(); ++i)
    if (has_own_memory(bindings, i)) results[i] = std::exchange(outputs[i], Tensor());
  inputs.release();
}

/// What stays between runs, without what is in `counted`, where the rest is added.
std::int64_t Program::Rep::kept_bytes(std::set<const void*>& counted) const {
  if (device) return device->bytes(counted);
  std::int64_t total = bindings.weights->byte_size(counted);
  for (const auto& [slot, weight] : bindings.own_weights)
    if (counted.insert(weight.data()).second) total += weight.byte_size();
  if (counted.insert(states.get()).second) total += static_cast<std::int64_t>(states->size());
  return total;
}

std::int64_t Program::Rep::run_bytes() const {
  if (device) return 0;
  auto total = static_cast<std::int64_t>(host.arena_bytes());
  for (const TensorType& type : bindings.results) total += type.byte_size();
  return total;
}

Program::Program(std::shared_ptr<const Plan> plan, const std::vector<CompiledKernel>& kernels,
                 const ProgramOptions& options, const Relatives& relatives) {
  if (options.on_device && !plan->loops.empty())
    throw InternalError("a program on a device has loops, expected launches of their own for each trip");
  const std::vector<Candidate> candidates = candidates_of(kernels);
  const bool shares_code = relatives.share_code && !relatives.programs.empty();
  std::shared_ptr<const ProgramCode> code =
      load_code(std::move(plan), kernels, candidates, options,
                shares_code ? relatives.programs.front()->code()->loaded : std::make_shared<LoadedCode>());
  Bindings bindings = bind_plan(*code->plan, candidates);
  std::set<const PackedWeights*> packed;  // programs at several sizes share theirs
  for (const Program* program : relatives.programs) packed.insert(program->bindings().weights.get());
  const WeightDonors donors{{packed.begin(), packed.end()}, relatives.take_turns};
  const double packing_start = steady_seconds();
  bindings.weights->pack_all(code->plan->weights, options.threads, donors);
  const double packed_at = steady_seconds();
  rep_ = std::make_unique<Rep>(std::move(code), std::move(bindings), relatives);
  rep_->weights_seconds = packed_at - packing_start;
}

Program::Program(std::shared_ptr<const ProgramCode> code, Bindings bindings,
                 std::function<std::shared_ptr<const Plan>()> make_plan, const Relatives& relatives)
    : rep_(std::make_unique<Rep>(std::move(code), std::move(bindings), relatives)) {
  rep_->make_plan = std::move(make_plan);
}

bool Program::rebind(const std::function<bool(Bindings&)>& change,
                     std::function<std::shared_ptr<const Plan>()> make_plan) {
  const OneRun turn(rep_->busy);
  if (!change(rep_->bindings)) return false;
  rep_->rebind();
  rep_->make_plan = std::move(make_plan);
  rep_->made_plan = nullptr;
  return true;
}

void Program::upload_weights() {
  if (rep_->options.on_device) rep_->upload_weights();
}

void Program::prepare() {
  const OneRun turn(rep_->busy);
  if (rep_->options.on_device) rep_->prepare_device();
}

Program::~Program() = default;
Program::Program(Program&&) noexcept = default;
Program& Program::operator=(Program&&) noexcept = default;

std::vector<Tensor> Program::Rep::run_on_device(const std::vector<Tensor>& given,
                                                std::vector<LaunchTime>* profile) {
  inputs.check(given);
  prepare_device();
  const std::size_t before = profile != nullptr ? profile->size() : 0;
  std::vector<Tensor> results = device->run(given, profile);
  for (std::size_t i = before; profile != nullptr && i < profile->size(); ++i)
    name_launch((*profile)[i], own_plan(), i - before);
  return results;
}

void Program::Rep::run_on_host(const std::vector<Tensor>& given, const std::vector<void*>& places,
                               std::vector<LaunchTime>* profile, std::vector<Tensor>& results) {
  const HostRoom::Run host_run(host);
  bind_run(given, places);
  with_workers(options.threads, options.spin_seconds,
               [&] { profile != nullptr ? run_profiled(*profile) : run_launches(); });
  take_results(places, results);
}

std::vector<Tensor> Program::run(const std::vector<Tensor>& inputs, std::vector<LaunchTime>* profile) {
  const OneRun turn(rep_->busy);
  if (rep_->options.on_device) return rep_->run_on_device(inputs, profile);
  std::vector<Tensor> results;
  rep_->run_on_host(inputs, rep_->no_places, profile, results);
  return results;
}

void Program::run_at(const std::vector<Tensor>& inputs, const std::vector<void*>& places,
                     std::vector<Tensor>& results) {
  if (rep_->options.on_device) throw InternalError("a run on a device at places of the host");
  const OneRun turn(rep_->busy);
  rep_->run_on_host(inputs, places, nullptr, results);
}

bool Program::may_write_over(const Overwrite& places) const {
  return may_overwrite(rep_->plan, rep_->bindings, rep_->code->once, places);
}

std::vector<Tensor> Program::states() const {
  std::vector<Tensor> values;
  values.reserve(rep_->plan.states.size());
  for (std::size_t i = 0; i < rep_->plan.states.size(); ++i) {
    const TensorType& type = rep_->plan.states[i].type;
    Tensor& value = values.emplace_back(type.dtype, type.dims());
    if (value.byte_size() > 0)
      rep_->states->read(rep_->state_offset(i), value.mutable_data(),
                         static_cast<std::size_t>(value.byte_size()));
  }
  return values;
}

std::int64_t Program::state_integer(std::size_t number) const {
  std::int64_t value = 0;
  rep_->states->read(rep_->state_offset(number), &value, sizeof(value));
  return value;
}

void Program::set_states(const std::vector<Tensor>& values) {
  const OneRun turn(rep_->busy);
  const std::vector<Port>& ports = rep_->plan.states;
  if (values.size() != ports.size())
    throw InputError("{} states given, the model has {}", values.size(), ports.size());
  for (std::size_t i = 0; i < ports.size(); ++i) {
    if (values[i].type() != ports[i].type) {
      throw InputError("state '{}': got {}, expected {}", ports[i].name, values[i].type().to_string(),
                       ports[i].type.to_string());
    }
  }
  for (std::size_t i = 0; i < ports.size(); ++i)
    if (values[i].byte_size() > 0)
      rep_->states->write(rep_->state_offset(i), values[i].data(),
                          static_cast<std::size_t>(values[i].byte_size()));
}

void Program::run_on(cuda::StreamHandle stream, const DeviceArguments& arguments) {
  const OneRun turn(rep_->busy);
  rep_->ready_device().run_on(stream, arguments);
}

void Program::run_in_turns(cuda::StreamHandle stream, const std::vector<cuda::DevicePointer>& inputs,
                           const RunMemory& memory) {
  const OneRun turn(rep_->busy);
  rep_->ready_device().run_in_turns(stream, inputs, memory);
}

std::size_t Program::work_bytes(bool in_turns) {
  prepare();
  if (!rep_->device) return 0;
  return in_turns ? rep_->device->turn_bytes() : rep_->device->work_bytes();
}

DeviceNotes Program::device_notes() {
  if (!rep_->options.on_device) throw InternalError("a program on the CPU has no launches on a device");
  rep_->note_all();
  return {rep_->noted, rep_->recorder.scratch_bytes()};
}

double Program::time_on_device(int times) {
  return rep_->device ? rep_->device->time_replays(times) : 0;
}

bool Program::has_loaded(const std::string& symbol) const {
  return rep_->code->loaded->kernels.has(symbol);
}

int Program::threads() const {
  return rep_->options.threads;
}
const Plan& Program::plan() const {
  return rep_->own_plan();
}
const Plan& Program::plan_alike() const {
  return rep_->plan;
}
const std::shared_ptr<const ProgramCode>& Program::code() const {
  return rep_->code;
}
const Bindings& Program::bindings() const {
  return rep_->bindings;
}

std::int64_t Program::peak_bytes(const std::vector<const Program*>& programs) {
  std::set<const void*> counted;
  std::int64_t kept = 0, most = 0;
  for (const Program* program : programs) {
    kept += program->rep_->kept_bytes(counted);
    most = std::max(most, program->rep_->run_bytes());
  }
  return kept + most;
}

double Program::weights_seconds() const {
  return rep_->weights_seconds;
}

}  // namespace sylvite
