#include "runtime/export/exported_program.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "runtime/export/exported_launches.h"
#include "runtime/export/fitted_numbers.h"

namespace sylvite {
namespace {

class ProgramWriter {
 public:
  ProgramWriter(ExtentFit& fit, const std::vector<ProgramCase>& cases, std::size_t greatest,
                const SampledCode& device)
      : numbers_(fit, cases), cases_(cases), greatest_(cases[greatest]), device_(device) {}

  ExportedProgram write(const std::vector<std::string>& symbols, const WeightPlaces& weights) {
    const Plan& plan = *greatest_.plan;
    program_.arena_bytes = plan.arena_bytes;
    for (const ProgramCase& each : cases_)
      if (each.notes != nullptr)
        program_.scratch_bytes =
            std::max(program_.scratch_bytes, static_cast<std::int64_t>(each.notes->scratch_bytes));
    for (std::size_t i = 0; i < plan.inputs.size(); ++i)
      program_.inputs.push_back(dims(
          [&](const ProgramCase& each) { return each.plan->inputs[i].type.dims(); }, plan.inputs[i].name));
    for (std::size_t i = 0; i < plan.outputs.size(); ++i)
      program_.outputs.push_back(dims(
          [&](const ProgramCase& each) { return each.plan->outputs[i].type.dims(); }, plan.outputs[i].name));
    auto loop = plan.loops.begin();
    for (std::size_t i = 0; i < plan.launches.size(); ++i) {
      if (loop != plan.loops.end() && static_cast<std::size_t>(loop->first) == i) begin_loop(*loop);
      if (cases_[0].notes != nullptr)
        add_device_launches(i, weights);
      else if (!cases_[0].bindings.launches[i].is_empty)
        add_launch(i, symbols, weights);
      if (loop == plan.loops.end() || static_cast<std::size_t>(loop->end) != i + 1) continue;
      program_.loops.back().end = program_.launches.size();
      ++loop;
    }
    for (std::size_t i = 0; i < plan.outputs.size(); ++i) add_copy(i, weights);
    if (cases_[0].room) add_room();
    for (const auto& [size, range] : conditions_)
      if (!size.is_known()) program_.conditions.push_back({size, range.first, range.second});
    return std::move(program_);
  }

 private:
  template <typename Get>
  [[nodiscard]] Extent number(const Get& get, const std::string& what) {
    return numbers_.of(get, what);
  }
  template <typename Get>
  [[nodiscard]] std::vector<Extent> dims(const Get& get, const std::string& what) {
    return numbers_.dims(get, what);
  }

  void begin_loop(const PlanLoop& loop) {
    const auto index = static_cast<std::size_t>(&loop - greatest_.plan->loops.data());
    program_.loops.push_back(
        {program_.launches.size(), 0,
         number([&](const ProgramCase& each) { return each.plan->loops[index].trips; }, "a loop")});
  }

  void add_launch(std::size_t index, const std::vector<std::string>& symbols, const WeightPlaces& weights) {
    const ProgramCase& first = cases_[0];
    const Launch& launch = first.plan->launches[index];
    const auto kernel = static_cast<std::size_t>(launch.kernel);
    ExportedLaunch& exported = program_.launches.emplace_back();
    exported.symbol = symbols.at(kernel);
    exported.name = launch.name;
    exported.inputs = first.plan->kernels[kernel].body.inputs.size();
    exported.sizes = add_conditions(launch);
    for (std::size_t i = 0; i < first.bindings.launches[index].arguments.size(); ++i) {
      const auto argument = [&](const ProgramCase& each) -> const Argument& {
        return each.bindings.launches[index].arguments[i];
      };
      const Argument& one = argument(first);
      ExportedArgument& added = exported.arguments.emplace_back();
      added.dtype = one.dtype;
      added.kind = one.place.kind;
      added.has_outer_blocks = one.has_outer_blocks;
      added.stored = dims([&](const ProgramCase& each) { return argument(each).stored; }, launch.name);
      if (added.kind == BufferKind::weight) {
        check_table(index, i);
        added.place = weights.at(one.place.number);
        continue;
      }
      added.place = number([&](const ProgramCase& each) { return argument(each).place.number; }, launch.name);
      if (!one.window) continue;
      const auto window = [&](std::int64_t Window::* member) {
        return number([&](const ProgramCase& each) { return (*argument(each).window).*member; }, launch.name);
      };
      added.stride = window(&Window::stride);
      added.phase = window(&Window::phase);
      added.period = window(&Window::period);
    }
  }

  void add_device_launches(std::size_t index, const WeightPlaces& weights) {
    (void)add_conditions(cases_[0].plan->launches[index]);
    const std::vector<Argument>& arguments = cases_[0].bindings.launches[index].arguments;
    for (std::size_t i = 0; i < arguments.size(); ++i)
      if (arguments[i].place.kind == BufferKind::weight) check_table(index, i);
    for (ExportedDeviceLaunch& launch : exported_launches(numbers_, index, weights, device_))
      program_.device_launches.push_back(std::move(launch));
  }

  /// Of a table that is shorter at other sizes, the first bytes are those that count: it lies as the model has it.
  void check_table(std::size_t index, std::size_t argument) const {
    const Launch& launch = cases_[0].plan->launches[index];
    const auto stored = [&](const ProgramCase& each) -> const Dims& {
      return each.bindings.launches[index].arguments[argument].stored;
    };
    const auto is_same = [&](const ProgramCase& each) { return stored(each) == stored(cases_[0]); };
    if (std::ranges::all_of(cases_, is_same)) return;
    const auto buffer = static_cast<std::size_t>(launch.arguments[argument]);
    for (const ProgramCase& each : cases_)
      if (each.plan->buffers.at(buffer).type.dims() != stored(each))
        throw UnsupportedError("'{}' reads a table that is packed, and another one at each size",
                               launch.name);
  }

  /// Of the sizes of the launch's kernel, which it returns.
  std::vector<Extent> add_conditions(const Launch& launch) {
    const auto kernel = static_cast<std::size_t>(launch.kernel);
    const Kernel& first = cases_[0].plan->kernels[kernel];
    std::vector<Extent> sizes;
    if (!first.open) return sizes;
    for (const auto& [name, info] : first.open->symbols.table) {
      const Extent& size = sizes.emplace_back(
          number([&](const ProgramCase& each) { return each.plan->kernels[kernel].sizes.at(sizes.size()); },
                 launch.name));
      const auto [found, is_new] = conditions_.try_emplace(size, info.low, info.high);
      found->second = {std::max(found->second.first, info.low), std::min(found->second.second, info.high)};
    }
    return sizes;
  }

  void add_copy(std::size_t output, const WeightPlaces& weights) {
    const Location place = cases_[0].bindings.outputs[output];
    if (place == Location{BufferKind::output, static_cast<std::int64_t>(output)}) return;
    const auto bytes = [&](const ProgramCase& each) { return each.plan->outputs[output].type.byte_size(); };
    const std::int64_t from =
        place.kind == BufferKind::weight ? weights.returned(place.number) : place.number;
    program_.copies.push_back(
        {output, place.kind, from, number(bytes, cases_[0].plan->outputs[output].name)});
  }

  void add_room() {
    ExportedRoom& room = program_.room.emplace();
    const StateRoom& first = *cases_[0].room;
    room.added = number([](const ProgramCase& each) { return each.room->growth.added; }, first.growth.length);
    for (std::size_t i = 0; i < first.inputs.size(); ++i) {
      const GrownInput& grown = first.inputs[i];
      const std::vector<Port>& ports = cases_[0].plan->inputs;
      const auto port = std::ranges::find(ports, grown.name, &Port::name);
      if (port == ports.end()) continue;  // nothing reads it
      room.inputs.push_back(
          {static_cast<std::size_t>(port - ports.begin()), grown.axis, dtype_size(port->type.dtype),
           number([&](const ProgramCase& each) { return each.room->inputs.at(i).beyond; }, grown.name)});
    }
  }

  FittedNumbers numbers_;
  const std::vector<ProgramCase>& cases_;
  const ProgramCase& greatest_;
  const SampledCode& device_;
  ExportedProgram program_;
  std::map<Extent, std::pair<std::int64_t, std::int64_t>> conditions_;
};

}  // namespace

ExportedProgram export_program(ExtentFit& fit, const std::vector<ProgramCase>& cases, std::size_t greatest,
                               const std::vector<std::string>& symbols, const WeightPlaces& weights,
                               const SampledCode& device) {
  return ProgramWriter(fit, cases, greatest, device).write(symbols, weights);
}

}  // namespace sylvite
