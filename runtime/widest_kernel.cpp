#include "runtime/widest_kernel.h"

#include <optional>
#include <string>
#include <utility>

#include "base/error.h"
#include "lowering/plan/open_kernel.h"
#include "runtime/kernel_variants.h"
#include "schedules/space.h"

namespace sylvite {
namespace {

/// What a kernel runs by default; nullopt where it cannot be made.
std::optional<Candidate> schedule_of(const Kernel& kernel, const Machine& machine) {
  try {
    return default_choice(kernel, machine).candidate;
  } catch (const Error&) {
    return std::nullopt;
  }
}

/// `open` with other values for one symbol.
Kernel with_range(const Kernel& open, const std::string& symbol, const SizeClass& range, std::int64_t hint) {
  Graph body = *open.open;
  body.symbols.table.at(symbol) = {range.low, range.high, {hint}};
  return make_kernel(body, open.input_is_weight);
}

}  // namespace

Kernel from_fewest(const Kernel& first, const Kernel& second, Kernel open, const Machine& machine) {
  constexpr double as_fast = 1.02;
  if (machine.gpu) return open;
  const BoundSpace own = spaces_for(open, machine).front();
  if (!own.cost) return open;
  for (const std::int64_t fewest : {2, 4, 8}) {
    std::optional<Kernel> wider = generalize(first, second, Sharing::on_host, fewest);
    if (!wider || wider->text == open.text) return open;
    const BoundSpace space = spaces_for(*wider, machine).front();
    if (space.name == own.name && space.cost(space.heuristic) <= as_fast * own.cost(own.heuristic))
      return *std::move(wider);
  }
  return open;
}

Kernel for_few_and_many(Kernel open, const Machine& machine) {
  constexpr std::int64_t few = 8, many = 64;
  if (machine.gpu) return open;
  std::optional<Candidate> schedule;
  const SymbolTable table = open.open->symbols.table;
  for (const auto& [name, info] : table) {
    const SizeClass own = {info.low, info.high};
    if (own != size_class(few) && own != size_class(many)) continue;
    if (!schedule) schedule = schedule_of(open, machine);
    const std::int64_t other = own == size_class(few) ? many : few;
    const SizeClass all = {size_class(few).low, size_class(many).high};
    const auto is_same = [&](const SizeClass& range, std::int64_t hint) {
      return schedule_of(with_range(open, name, range, hint), machine) == schedule;
    };
    if (!schedule || !is_same(all, other) || !is_same(size_class(other), other)) continue;
    Kernel wide = with_range(open, name, all, info.hints.at(0));
    if (schedule_of(wide, machine) == schedule) open = std::move(wide);
  }
  return open;
}

}  // namespace sylvite
