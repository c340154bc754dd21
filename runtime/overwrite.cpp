#include "runtime/overwrite.h"

#include <algorithm>
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

/// The launch that writes there, if one alone does.
std::optional<std::size_t> writer_of(const Plan& plan, const Bindings& bindings, const Location& place) {
  std::optional<std::size_t> found;
  for (std::size_t i = 0; i < bindings.launches.size(); ++i) {
    const Kernel& kernel = plan.kernels[static_cast<std::size_t>(plan.launches[i].kernel)];
    const std::vector<Argument>& arguments = bindings.launches[i].arguments;
    for (std::size_t k = kernel.body.inputs.size(); k < arguments.size(); ++k) {
      if (arguments[k].place != place) continue;
      if (found) return std::nullopt;
      found = i;
    }
  }
  return found;
}

}  // namespace

const void* aligned(const void* address) {
  return reinterpret_cast<std::uintptr_t>(address) % 64 == 0 ? address : nullptr;
}

bool writes_once(const Kernel& kernel, const Candidate& candidate) {
  return kernel.body.outputs.size() == 1 && candidate.form.name == "generic" &&
         std::ranges::all_of(kernel.body.nodes(),
                             [](const Node& node) { return has_trait(node.op, OpTrait::pointwise); }) &&
         std::ranges::all_of(candidate.schedule.decisions, never_shifts);
}

bool may_overwrite(const Plan& plan, const Bindings& bindings, const std::vector<bool>& once,
                   const Overwrite& places) {
  const Location result{BufferKind::output, static_cast<std::int64_t>(places.output)};
  const Location input{BufferKind::input, static_cast<std::int64_t>(places.input)};
  if (!plan.loops.empty() || bindings.outputs.at(places.output) != result) return false;
  if (std::ranges::count(bindings.outputs, result) > 1 || std::ranges::count(bindings.outputs, input) > 0)
    return false;
  const std::optional<std::size_t> writer = writer_of(plan, bindings, result);
  if (!writer || !is_free_from(bindings, *writer + 1, input)) return false;
  const std::vector<Argument>& arguments = bindings.launches[*writer].arguments;
  const auto kernel = static_cast<std::size_t>(plan.launches[*writer].kernel);
  return std::ranges::all_of(arguments, [&](const Argument& argument) {
    return argument.place != input || (once[kernel] && argument.stored == arguments.back().stored &&
                                       argument.dtype == arguments.back().dtype);
  });
}

}  // namespace sylvite
