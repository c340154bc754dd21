#include "runtime/overwrite.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

#include "frontend/ops/op_table.h"

namespace sylvite {
namespace {

bool never_shifts(const Decision& decision) {
  const std::vector<std::string>& given = decision.arguments;
  if (decision.update >= 0) return false;
  if (decision.directive == "split")
    return given.size() == 5 &&
           (given[4] == "TailStrategy::RoundUp" || given[4] == "TailStrategy::GuardWithIf");
  if (decision.directive == "fuse" || decision.directive == "reorder") return true;
  constexpr std::array on_device = {"gpu_blocks", "gpu_threads", "gpu_single_thread"};
  if (std::ranges::find(on_device, decision.directive) != on_device.end()) return true;
  const bool keeps_loop =
      decision.directive == "vectorize" || decision.directive == "unroll" || decision.directive == "parallel";
  return keeps_loop && given.size() == 1;
}

/// Does no launch from `first` on read or write there?
bool is_free_from(const Bindings& bindings, std::size_t first, const Location& place) {
  for (std::size_t i = first; i < bindings.launches.size(); ++i)
    for (const Argument& argument : bindings.launches[i].arguments)
      if (argument.place == place) return false;
  return true;
}

struct Writer {
  std::size_t launch = 0;
  std::size_t argument = 0;
};

/// The launch that writes there, if one alone does.
std::optional<Writer> writer_of(const Plan& plan, const Bindings& bindings, const Location& place) {
  std::optional<Writer> found;
  for (std::size_t i = 0; i < bindings.launches.size(); ++i) {
    const Kernel& kernel = plan.kernels[static_cast<std::size_t>(plan.launches[i].kernel)];
    const std::vector<Argument>& arguments = bindings.launches[i].arguments;
    for (std::size_t k = kernel.body.inputs.size(); k < arguments.size(); ++k) {
      if (arguments[k].place != place) continue;
      if (found) return std::nullopt;
      found = Writer{i, k};
    }
  }
  return found;
}

/// Per value of the body: is it computed from the input?
std::vector<bool> computed_from(const Graph& body, ValueId input) {
  std::vector<bool> from_input(body.values().size(), false);
  from_input[static_cast<std::size_t>(input)] = true;
  for (const Node& node : body.nodes()) {
    const bool reads = std::ranges::any_of(
        node.inputs, [&](ValueId id) { return id != no_value && from_input[static_cast<std::size_t>(id)]; });
    for (const ValueId output : node.outputs) from_input[static_cast<std::size_t>(output)] = reads;
  }
  return from_input;
}

/// Does each element of the result, and of those that are stored before it, follow from the same element of the input, and nothing
/// that is stored behind it from any? Results are stored in turn, element by element.
bool is_done_with(const Graph& body, std::size_t result, ValueId input) {
  const std::vector<bool> from_input = computed_from(body, input);
  const auto is_of_input = [&](ValueId id) {
    return id != no_value && from_input[static_cast<std::size_t>(id)];
  };
  const auto keeps_elements = [&](const Node& node) {
    return has_trait(node.op, OpTrait::pointwise) || std::ranges::none_of(node.inputs, is_of_input);
  };
  return std::ranges::all_of(body.nodes(), keeps_elements) &&
         std::none_of(body.outputs.begin() + static_cast<std::ptrdiff_t>(result) + 1, body.outputs.end(),
                      is_of_input);
}

}  // namespace

bool is_aligned(const void* address) {
  return reinterpret_cast<std::uintptr_t>(address) % 64 == 0;
}

bool writes_once(const Kernel& kernel, const Candidate& candidate) {
  const std::string& form = candidate.form.name;
  const bool is_one = kernel.body.outputs.size() == 1 && (form == "generic" || form == "device");
  constexpr std::array traits = {OpTrait::pointwise, OpTrait::movement, OpTrait::creation};
  const auto is_unfolded = [&](const Node& node) {
    return std::ranges::any_of(traits, [&](OpTrait trait) { return has_trait(node.op, trait); });
  };
  const bool is_together = form == "together" || form == "device_together";
  return (is_one || is_together) &&  // other forms of several results have a loop for each
         std::ranges::all_of(kernel.body.nodes(), is_unfolded) &&
         std::ranges::all_of(candidate.schedule.decisions, never_shifts);
}

bool may_overwrite(const Plan& plan, const Bindings& bindings, const std::vector<bool>& once,
                   const Overwrite& places) {
  const Location result{BufferKind::output, static_cast<std::int64_t>(places.output)};
  const Location input{BufferKind::input, static_cast<std::int64_t>(places.input)};
  if (!plan.loops.empty() || bindings.outputs.at(places.output) != result) return false;
  if (std::ranges::count(bindings.outputs, result) > 1 || std::ranges::count(bindings.outputs, input) > 0)
    return false;
  const std::optional<Writer> writer = writer_of(plan, bindings, result);
  if (!writer || !is_free_from(bindings, writer->launch + 1, input)) return false;
  const std::vector<Argument>& arguments = bindings.launches[writer->launch].arguments;
  const auto kernel = static_cast<std::size_t>(plan.launches[writer->launch].kernel);
  const Graph& body = plan.kernels[kernel].body;
  const Argument& written = arguments[writer->argument];
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].place != input) continue;
    const bool lies_alike = arguments[i].stored == written.stored && arguments[i].dtype == written.dtype;
    if (!once[kernel] || !lies_alike) return false;
    if (!is_done_with(body, writer->argument - body.inputs.size(), body.inputs.at(i))) return false;
  }
  return true;
}

}  // namespace sylvite
