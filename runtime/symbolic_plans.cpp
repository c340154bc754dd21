#include "runtime/symbolic_plans.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

#include "base/rounding.h"
#include "lowering/plan/open_kernel.h"
#include "lowering/plan/shared_weights.h"
#include "runtime/size_buckets.h"

namespace sylvite {
namespace {

constexpr std::size_t samples_kept = 32;  // products of sizes need many, where most have one of a size

int twos_in(std::int64_t size) {
  return std::countr_zero(static_cast<std::uint64_t>(size));
}

/// What passes decide by: how large sizes are, in all (large_bytes_at) and each, and how often 2 divides them and, at last, products of two, as far as
/// vectors and alignments care: beyond what it divides them in any case, as layers may divide by that. First the alignments of
/// sizes, in their order.
std::vector<double> traits(const std::vector<FitSymbol>& symbols, const Sizes& sizes) {
  constexpr int most = 4;
  std::vector<double> all;
  const auto add_alignment = [&](int twos, int in_any_case) {
    all.push_back(std::min(twos, in_any_case + most));
  };
  for (std::size_t i = 0; i < sizes.size(); ++i)
    add_alignment(twos_in(sizes[i]), twos_in(symbols[i].multiple));
  for (const std::int64_t size : sizes) all.push_back(static_cast<double>(size));
  all.push_back(bucket_of(product_of(sizes)));
  for (std::size_t i = 0; i < sizes.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      add_alignment(twos_in(sizes[i]) + twos_in(sizes[j]),
                    twos_in(symbols[i].multiple) + twos_in(symbols[j].multiple));
  return all;
}

/// How many of them are of single sizes, or of all.
std::size_t traits_without_pairs(const Sizes& sizes) {
  return 2 * sizes.size() + 1;
}

/// The ends of the class of sizes that may share kernels; not much beyond `size`, as models may have tables that grow.
std::pair<std::int64_t, std::int64_t> ends_around(const SizeRange& range, std::int64_t size) {
  constexpr std::int64_t near = 512;
  const SizeClass around = size_class(size);
  const std::int64_t low = round_up(std::max(range.low, around.low), range.multiple);
  const std::int64_t high = std::min({range.high, around.high, std::max(near, size * 8)});
  return {std::min(low, size), std::max(high / range.multiple * range.multiple, size)};
}

std::shared_ptr<const Plan> shared(std::optional<Plan> plan) {
  return plan ? std::make_shared<const Plan>(with_weights_shared(*std::move(plan))) : nullptr;
}

}  // namespace

std::vector<FitSymbol> fit_symbols(const ModelSizes& model) {
  std::vector<FitSymbol> symbols;
  symbols.reserve(model.symbols.size());
  for (const SizeSymbol& symbol : model.symbols) symbols.push_back({symbol.name, symbol.range.multiple});
  return symbols;
}

SymbolicPlans::SymbolicPlans(const ModelSizes& model, std::vector<Extent> said)
    : symbols_(model.symbols),
      inputs_(model.inputs),
      names_(fit_symbols(model)),
      said_(std::make_shared<const std::vector<Extent>>(std::move(said))) {}

void SymbolicPlans::learn(const Sizes& sizes, const std::shared_ptr<const Plan>& plan, SizeFacts facts) {
  asked_.insert(sizes);
  const std::string decisions = decisions_text(facts);
  const auto apart = std::make_shared<const Plan>(with_weights_apart(*plan));
  Group& group = groups_[plan_structure(*apart) + decisions];
  group.decisions = decisions;
  group.said = said_;
  const auto is_known = [&](const PlanSample& each) { return each.sizes == sizes; };
  if (std::ranges::any_of(group.samples, is_known)) return;
  PlanSample sample{sizes, apart, std::move(facts)};
  const bool is_told = group.tells(sample);
  if (!is_told && group.samples.size() == samples_kept) {
    group.plan.reset();  // numbers that are no expression of the sizes beyond those of the samples
    return;
  }
  group.widen(names_, sizes);
  if (is_told && std::exchange(group.unmatched, std::nullopt) != sizes) return;
  group.samples.push_back(std::move(sample));
  group.join(names_);
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

void SymbolicPlans::Group::join(const std::vector<FitSymbol>& given) {
  symbols = given;
  std::optional<SymbolicPlan> joined = SymbolicPlan::of(symbols, samples, *said);
  if (!joined) {  // what passes do where sizes are even often makes halves of them
    for (std::size_t i = 0; i < given.size(); ++i) {
      const double alignment = span.at(i).low;
      symbols[i].multiple = std::lcm(given[i].multiple, std::int64_t{1} << static_cast<int>(alignment));
    }
    joined = SymbolicPlan::of(symbols, samples, *said);
  }
  plan = joined ? std::make_shared<const SymbolicPlan>(*std::move(joined)) : nullptr;
  matched_with = -1;
}

void SymbolicPlans::Group::match(const KernelMenu& menu, const Machine& machine) {
  if (matched_with == menu.generation()) return;
  matched = MatchedKernels::of(symbols, *plan, samples, *said, menu, machine);
  matched_with = menu.generation();
}

void SymbolicPlans::Group::widen(const std::vector<FitSymbol>& given, const Sizes& sizes) {
  met.push_back(sizes);
  const std::vector<double> added = traits(given, sizes);
  if (span.empty())
    for (const double each : added) span.push_back({each, each});
  for (std::size_t i = 0; i < added.size(); ++i)
    span[i] = {std::min(span[i].low, added[i]), std::max(span[i].high, added[i])};
}

/// Few plans say little of products: those of which none follows yet may be around them in any case.
bool SymbolicPlans::Group::is_between(const std::vector<FitSymbol>& given, const Sizes& sizes,
                                      Reach reach) const {
  const std::vector<double> values = traits(given, sizes);
  const std::size_t count = plan ? values.size() : traits_without_pairs(sizes);
  for (std::size_t i = 0; i < count; ++i) {
    const bool is_size = i >= sizes.size() && i < 2 * sizes.size();
    const double beyond = is_size && reach == Reach::beyond ? span[i].high / 8 : 0;
    if (values[i] < span[i].low || values[i] > span[i].high + beyond) return false;
  }
  return true;
}

bool SymbolicPlans::Group::has_met_alike(const Sizes& sizes) const {
  const auto is_alike = [](std::int64_t one, std::int64_t other) {
    return one == other || (one > 1 && other > 1);
  };
  return std::ranges::any_of(met,
                             [&](const Sizes& each) { return std::ranges::equal(each, sizes, is_alike); });
}

bool SymbolicPlans::Group::tells(const PlanSample& sample) const {
  for (std::size_t i = 0; i < symbols.size(); ++i)
    if (sample.sizes[i] % symbols[i].multiple != 0) return false;
  const std::optional<Plan> told = plan ? plan->at(sample.sizes, true) : std::nullopt;
  const auto type_of = [](const Buffer& buffer) -> const TensorType& { return buffer.type; };
  return told && difference_of(*told, *sample.plan).empty() &&
         std::ranges::equal(told->kernels, sample.plan->kernels, {}, &Kernel::text, &Kernel::text) &&
         std::ranges::equal(told->buffers, sample.plan->buffers, {}, type_of, type_of) &&
         std::ranges::equal(told->weights, sample.plan->weights, begins);
}

bool SymbolicPlans::Group::is_possible_at(const std::vector<FitSymbol>& given, const Sizes& sizes,
                                          Reach reach) const {
  return is_between(given, sizes, reach) && (!plan || plan->decides_alike(sizes));
}

/// As the plans of square images, or of sizes that need no padding, beside all others.
bool SymbolicPlans::Group::is_special_beside(const Group& other, const Sizes& sizes) const {
  const auto is_alike = [&](const Sizes& each) { return plan->decides_alike(each); };
  return plan && is_alike(sizes) && std::ranges::none_of(other.met, is_alike);
}

SymbolicPlans::Group* SymbolicPlans::group_at(const Sizes& sizes) {
  std::vector<Group*> possible;
  for (const Reach reach : {Reach::met, Reach::beyond}) {
    for (auto& [structure, group] : groups_)
      if (group.is_possible_at(names_, sizes, reach)) possible.push_back(&group);
    if (!possible.empty()) break;
  }
  const auto is_told = [](const Group* group) { return group->plan != nullptr; };
  const auto found = std::ranges::find_if(possible, is_told);
  if (found == possible.end()) return nullptr;
  // Where two are left, the model has either structure.
  std::erase_if(possible, [decisions = (*found)->decisions](const Group* group) {
    return group->decisions != decisions;
  });
  const auto is_the_one = [&](const Group* group) {
    return std::ranges::all_of(possible, [&](const Group* other) {
      return other == group || group->is_special_beside(*other, sizes);
    });
  };
  const auto one = std::ranges::find_if(possible, is_the_one);
  const bool is_known = one != possible.end() && (*one)->plan && (*one)->has_met_alike(sizes);
  return is_known && has_inputs(*(*one)->plan, sizes) ? *one : nullptr;
}

bool SymbolicPlans::has_inputs(const SymbolicPlan& plan, const Sizes& sizes) const {
  std::vector<Dims> dims;
  for (const SizedInput& input : inputs_) {
    const bool is_told =
        input.is_sized && std::ranges::count(input.axes, true, &SizedInput::Axis::follows) == 0;
    if (!is_told) return true;
    dims.push_back(dims_at(input, sizes));
  }
  return dims.size() != plan.input_count() || plan.takes(dims, sizes);
}

std::shared_ptr<const Plan> SymbolicPlans::at(const Sizes& sizes, bool reuse_memory) {
  Group* const group = group_at(sizes);
  return group == nullptr ? nullptr : shared(group->plan->at(sizes, reuse_memory));
}

std::shared_ptr<const SymbolicPlan> SymbolicPlans::told_at(const Sizes& sizes) {
  const Group* const group = group_at(sizes);
  return group == nullptr ? nullptr : group->plan;
}

std::shared_ptr<const ProgramNumbers> SymbolicPlans::numbers_of(const Sizes& sizes,
                                                                const std::shared_ptr<const Plan>& made,
                                                                const Bindings& bindings, bool reuse_memory) {
  const Group* const group = group_at(sizes);
  if (group == nullptr || !group->matched) return nullptr;
  std::optional<ProgramNumbers> found =
      ProgramNumbers::of(group->plan, *group->matched, sizes, made, bindings, reuse_memory);
  return found ? std::make_shared<const ProgramNumbers>(*std::move(found)) : nullptr;
}

std::shared_ptr<const Plan> SymbolicPlans::open_at(const Sizes& sizes, bool reuse_memory, KernelMenu& menu,
                                                   const Machine& machine) {
  Group* const group = group_at(sizes);
  if (group == nullptr) return nullptr;
  group->match(menu, machine);
  bool asks_menu = !group->matched;
  std::shared_ptr<const Plan> plan;
  if (!asks_menu) {
    plan = shared(group->plan->at(sizes, reuse_memory, [&](std::size_t number, const SymbolValues& values) {
      std::optional<Kernel> found = group->matched->at(number, values, machine, menu.preferred());
      asks_menu = asks_menu || (!found && group->matched->has_others(number));
      return found;
    }));
  }
  if (!asks_menu && plan == nullptr && group->samples.size() < samples_kept) {
    group->unmatched = sizes;
    return nullptr;
  }
  if (!asks_menu && plan != nullptr) return plan;
  plan = shared(group->plan->at(sizes, reuse_memory));
  return plan == nullptr ? nullptr : menu.apply(plan, machine);
}

}  // namespace sylvite
