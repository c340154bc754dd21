#include "runtime/shared_kernels.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "lowering/plan/open_kernel.h"
#include "lowering/plan/work.h"
#include "runtime/kernel_menu.h"
#include "runtime/widest_kernel.h"
#include "schedules/space.h"

namespace sylvite {
namespace {

/// Others are products of many numbers: what they gain by numbers that are known is worth more than a compilation.
bool may_share(const Kernel& kernel) {
  constexpr double most_bytes = 1 << 20;  // a run takes microseconds, a compilation a tenth of a second
  switch (kernel.kind) {
    case KernelClass::pointwise:
    case KernelClass::movement:
    case KernelClass::reduction:
    case KernelClass::normalization:
      return !kernel.open && work_of(kernel).bytes <= most_bytes;
    default:
      return false;
  }
}

/// Kernels of one skeleton, largest first: an open kernel has the schedule of the first of its cases.
class Alike {
 public:
  Alike(const std::vector<Kernel>& forms, std::vector<std::size_t> numbers, const Machine& machine)
      : forms_(forms), numbers_(std::move(numbers)), machine_(machine) {
    std::ranges::stable_sort(numbers_, std::greater{},
                             [&](std::size_t i) { return work_of(forms_[i]).bytes; });
  }

  /// By the number of the kernel: the open kernel of which it is a case, at its sizes.
  [[nodiscard]] std::map<std::size_t, Kernel> cases() {
    std::map<std::size_t, Kernel> found;
    for (const std::size_t i : numbers_) {
      std::optional<Kernel> own = case_of_known(forms_[i]);
      if (!own && open_with_others(i)) own = case_of_known(forms_[i]);
      if (own) found.emplace(i, *std::move(own));
    }
    return found;
  }

 private:
  [[nodiscard]] std::optional<Kernel> case_of_known(const Kernel& form) const {
    for (const Kernel& open : open_)
      if (std::optional<Kernel> own = as_case(open, form)) return own;
    return std::nullopt;
  }

  /// Makes an open kernel of this and one behind it, if there is one that may be.
  bool open_with_others(std::size_t first) {
    for (auto other = std::ranges::find(numbers_, first) + 1; other != numbers_.end(); ++other) {
      std::optional<Kernel> open = generalize(forms_[first], forms_[*other]);
      if (!open) continue;
      open = from_fewest(forms_[first], forms_[*other], *std::move(open), machine_);
      if (!has_same_space(*open, forms_[first])) continue;
      open_.push_back(*std::move(open));
      return true;
    }
    return false;
  }

  [[nodiscard]] bool has_same_space(const Kernel& open, const Kernel& fixed) const {
    return spaces_for(open, machine_).front().name == spaces_for(fixed, machine_).front().name;
  }

  const std::vector<Kernel>& forms_;
  std::vector<std::size_t> numbers_;
  const Machine& machine_;
  std::vector<Kernel> open_;
};

}  // namespace

void share_small_kernels(Imported& imported, Chosen& chosen) {
  const Machine& machine = imported.setup->machine;
  if (machine.gpu) return;
  const std::vector<Kernel> forms = forms_to_share(*imported.plan, machine);
  std::map<std::string, std::vector<std::size_t>> alike;
  for (std::size_t i = 0; i < forms.size(); ++i)
    if (chosen.choices[i].source == Source::heuristic && may_share(imported.plan->kernels[i]))
      alike[skeleton(forms[i])].push_back(i);
  auto shared = std::make_shared<Plan>(*imported.plan);
  std::map<std::string, Candidate> candidates;
  for (auto& [text, numbers] : alike) {
    if (numbers.size() < 2) continue;
    for (auto& [i, kernel] : Alike(forms, std::move(numbers), machine).cases()) {
      auto [known, is_new] = candidates.try_emplace(kernel.text);
      if (is_new) known->second = default_candidate(at_hints(kernel), machine);
      chosen.choices[i] = {known->second};
      shared->kernels[i] = std::move(kernel);
    }
  }
  imported.plan = std::move(shared);
}

}  // namespace sylvite
