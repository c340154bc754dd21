#include "runtime/symbolic_plans.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <numeric>
#include <utility>

#include "base/rounding.h"
#include "lowering/plan/open_kernel.h"

namespace sylvite {
namespace {

/// How often 2 divides it, as far as vectors and alignments care.
int alignment_of(std::int64_t size) {
  return std::min(std::countr_zero(static_cast<std::uint64_t>(size)), 4);
}

template <typename Value, typename Get>
bool is_between_all(const std::vector<PlanSample>& samples, Value value, const Get& get) {
  const auto [least, greatest] = std::ranges::minmax(samples, {}, get);
  return value >= get(least) && value <= get(greatest);
}

/// The ends of the class of sizes that may share kernels; not much beyond `size`, as models may have tables that grow.
std::pair<std::int64_t, std::int64_t> ends_around(const SizeRange& range, std::int64_t size) {
  constexpr std::int64_t near = 512;
  const SizeClass around = size_class(size);
  const std::int64_t low = round_up(std::max(range.low, around.low), range.multiple);
  const std::int64_t high = std::min({range.high, around.high, std::max(near, size * 8)});
  return {std::min(low, size), std::max(high / range.multiple * range.multiple, size)};
}

}  // namespace

std::vector<FitSymbol> fit_symbols(const ModelSizes& model) {
  std::vector<FitSymbol> symbols;
  symbols.reserve(model.symbols.size());
  for (const SizeSymbol& symbol : model.symbols) symbols.push_back({symbol.name, symbol.range.multiple});
  return symbols;
}

SymbolicPlans::SymbolicPlans(const ModelSizes& model) : symbols_(model.symbols), names_(fit_symbols(model)) {}

void SymbolicPlans::learn(const Sizes& sizes, const std::shared_ptr<const Plan>& plan, SizeFacts facts) {
  constexpr std::size_t samples_kept = 16;
  asked_.insert(sizes);
  const std::string decisions = decisions_text(facts);
  Group& group = groups_[plan_structure(*plan) + decisions];
  group.decisions = decisions;
  const auto is_known = [&](const PlanSample& sample) { return sample.sizes == sizes; };
  if (group.samples.size() == samples_kept || std::ranges::any_of(group.samples, is_known)) return;
  group.samples.push_back({sizes, plan, std::move(facts)});
  group.plan = SymbolicPlan::of(names_, group.samples);
}

std::optional<Sizes> SymbolicPlans::wanted(const Sizes& sizes) {
  constexpr std::size_t most_corners = 8;
  std::vector<Sizes> corners(1);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const auto [low, high] = ends_around(symbols_[i].range, sizes[i]);
    std::vector<Sizes> more;
    for (const Sizes& corner : corners)
      for (const std::int64_t end : {low, high}) {
        more.push_back(corner);
        more.back().push_back(end);
        if (low == high) break;
      }
    if (more.size() > most_corners) return std::nullopt;
    corners = std::move(more);
  }
  if (corners.size() > 1) std::swap(corners[1], corners.back());  // opposite ends first
  for (const Sizes& corner : corners)
    if (asked_.insert(corner).second) return corner;
  return std::nullopt;
}

bool SymbolicPlans::Group::is_between(const Sizes& sizes) const {
  const auto all_of = [](const Sizes& each) {
    return std::accumulate(each.begin(), each.end(), 1.0, std::multiplies<>());
  };
  if (!is_between_all(samples, all_of(sizes), [&](const PlanSample& sample) { return all_of(sample.sizes); }))
    return false;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const auto size_of = [&](const PlanSample& sample) { return sample.sizes[i]; };
    const auto aligned_as = [&](const PlanSample& sample) { return alignment_of(sample.sizes[i]); };
    if (!is_between_all(samples, sizes[i], size_of) ||
        !is_between_all(samples, alignment_of(sizes[i]), aligned_as))
      return false;
  }
  return true;
}

std::shared_ptr<const Plan> SymbolicPlans::at(const Sizes& sizes, bool reuse_memory) const {
  std::vector<const Group*> between;
  for (const auto& [structure, group] : groups_)
    if (group.is_between(sizes)) between.push_back(&group);
  const auto decides_alike = [&](const Group* group) {
    return group->plan && group->plan->decides_alike(sizes);
  };
  const auto found = std::ranges::find_if(between, decides_alike);
  if (found == between.end()) return nullptr;
  // Where two are left, the model has either structure.
  const auto is_possible = [&](const Group* group) { return group->decisions == (*found)->decisions; };
  if (std::ranges::count_if(between, is_possible) > 1) return nullptr;
  std::optional<Plan> plan = (*found)->plan->at(sizes, reuse_memory);
  return plan ? std::make_shared<const Plan>(std::move(*plan)) : nullptr;
}

}  // namespace sylvite
