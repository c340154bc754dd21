#include "runtime/variant_choice.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "lowering/plan/open_kernel.h"
#include "runtime/case_costs.h"
#include "runtime/kernel_variants.h"
#include "schedules/space.h"

namespace sylvite {
namespace {

/// Can it be made?
bool is_possible(const Kernel& open, const Machine& machine) {
  try {
    (void)default_choice(open, machine);
    return true;
  } catch (const UnsupportedError&) {
    return false;
  } catch (const CompileError&) {
    return false;
  }
}

/// The least sizes that it is for.
std::string least_text(const Kernel& open) {
  std::string text;
  for (const auto& [name, info] : open.open->symbols.table) text += std::to_string(info.low) + " ";
  return text;
}

/// One kernel, which must outlive it, with what all choices cost in all cases.
class Costs {
 public:
  Costs(const VariedKernel& kernel, const Machine& machine) : kernel_(kernel), machine_(machine) {
    for (const VariedKernel::Case& each : kernel.cases) {
      costs_.emplace_back(each.kernel, machine);
      fixed_.push_back(costs_.back().of(first_space(each.kernel, machine)).value_or(0));
    }
    for (const Kernel& variant : kernel.variants) add(variant);
    now_.assign(fixed_.size(), std::numeric_limits<double>::max());
    for (const Candidate& each : candidates_) take(each);
    candidates_.clear();
    for (std::size_t i = 0; i < kernel.cases.size(); ++i)
      if (const std::optional<Kernel> found = as_case(kernel.variants.front(), kernel.cases[i].kernel);
          found && fixed_[i] > 0) {
        add(hinted_here(*found));
        add(narrowed_here(*found));
      }
  }

  struct Candidate {
    Kernel open;
    std::vector<double> seconds;  ///< per case
  };

  [[nodiscard]] double fixed(std::size_t which) const { return fixed_[which]; }
  [[nodiscard]] std::vector<Candidate>& candidates() { return candidates_; }
  /// What it takes off the time, with so much weight of each case.
  [[nodiscard]] double gain(const Candidate& candidate, const std::vector<double>& weights) const {
    double gain = 0;
    for (std::size_t i = 0; i < now_.size(); ++i)
      if (candidate.seconds[i] < now_[i] && now_[i] < std::numeric_limits<double>::max())
        gain += weights[i] * (now_[i] - candidate.seconds[i]);
    return gain;
  }
  void take(const Candidate& candidate) {
    for (std::size_t i = 0; i < now_.size(); ++i) now_[i] = std::min(now_[i], candidate.seconds[i]);
  }

 private:
  void add(const Kernel& open) {
    const std::optional<BoundSpace> own = first_space(open, machine_);
    const bool is_narrow = !is_as_wide(open, kernel_.variants.front());
    if (!own || known_.contains({own->name, own->heuristic, ""}) ||
        !known_.emplace(own->name, own->heuristic, is_narrow ? least_text(open) : "").second)
      return;
    Candidate candidate{open, {}};
    for (std::size_t i = 0; i < costs_.size(); ++i) {
      const bool is_for_it = !is_narrow || as_case(open, kernel_.cases[i].kernel);
      candidate.seconds.push_back(
          (is_for_it ? costs_[i].of(own) : std::nullopt).value_or(std::numeric_limits<double>::max()));
    }
    candidates_.push_back(std::move(candidate));
  }

  const VariedKernel& kernel_;
  const Machine& machine_;
  std::vector<CaseCosts> costs_;  ///< per case
  std::vector<double> fixed_;     ///< what a kernel for its sizes alone takes
  std::vector<double> now_;       ///< what the best of those that are taken does
  std::set<std::tuple<std::string, Point, std::string>>
      known_;  ///< choices of heuristics, each of a space, and what they are for
  std::vector<Candidate> candidates_;
};

/// How much a second of each kernel's cases counts: the share of a plan's time, in the mean of all plans.
std::vector<std::vector<double>> weights_of(const std::vector<VariedKernel>& kernels,
                                            const std::vector<Costs>& costs, std::size_t plans) {
  std::vector<double> seconds(plans, 0.0);
  for (std::size_t k = 0; k < kernels.size(); ++k)
    for (std::size_t i = 0; i < kernels[k].cases.size(); ++i)
      for (const std::size_t plan : kernels[k].cases[i].plans) seconds[plan] += costs[k].fixed(i);
  std::vector<std::vector<double>> weights;
  for (const VariedKernel& kernel : kernels) {
    std::vector<double>& own = weights.emplace_back();
    for (const VariedKernel::Case& each : kernel.cases) {
      own.push_back(0);
      for (const std::size_t plan : each.plans)
        if (seconds[plan] > 0) own.back() += 1 / (seconds[plan] * static_cast<double>(plans));
    }
  }
  return weights;
}

}  // namespace

std::vector<ChosenVariant> choose_variants(const std::vector<VariedKernel>& kernels, std::size_t plans,
                                           std::size_t most, const Machine& machine,
                                           const std::function<bool()>& is_over) {
  constexpr double least = 0.001;
  constexpr std::size_t most_of_one = 6;
  std::vector<Costs> costs;
  costs.reserve(kernels.size());
  for (const VariedKernel& kernel : kernels) {
    if (is_over()) return {};
    costs.emplace_back(kernel, machine);
  }
  const std::vector<std::vector<double>> weights = weights_of(kernels, costs, plans);
  std::vector<std::size_t> counts;
  counts.reserve(kernels.size());
  for (const VariedKernel& kernel : kernels) counts.push_back(kernel.variants.size());
  std::vector<ChosenVariant> chosen;
  while (chosen.size() < most && !is_over()) {
    double best = least;
    std::optional<std::pair<std::size_t, std::size_t>> found;  // kernel and candidate
    for (std::size_t k = 0; k < costs.size(); ++k) {
      if (counts[k] >= most_of_one) continue;
      for (std::size_t i = 0; i < costs[k].candidates().size(); ++i) {
        const double gain = costs[k].gain(costs[k].candidates()[i], weights[k]);
        if (gain > best) std::tie(best, found) = std::pair(gain, std::pair(k, i));
      }
    }
    if (!found) break;
    auto& [k, i] = *found;
    std::vector<Costs::Candidate>& all = costs[k].candidates();
    if (is_possible(all[i].open, machine)) {
      costs[k].take(all[i]);
      chosen.push_back({k, all[i].open});
      ++counts[k];
    }
    all.erase(all.begin() + static_cast<std::ptrdiff_t>(i));
  }
  return chosen;
}

}  // namespace sylvite
