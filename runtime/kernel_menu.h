#pragma once
// The kernels of a model whose sizes change: those that serve a range of sizes, found as plans at different sizes come.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "frontend/onnx/model_sizes.h"
#include "lowering/plan/open_kernel.h"
#include "lowering/plan/plan.h"
#include "runtime/kernel_variants.h"
#include "runtime/menu_file.h"
#include "runtime/variant_choice.h"
#include "schedules/machine.h"

namespace sylvite {

/// The kernels of a plan, each in the form that serves the most sizes.
[[nodiscard]] std::vector<Kernel> forms_to_share(const Plan& plan, const Machine& machine);

/// Thread safety: one thread at a time.
class KernelMenu {
 public:
  KernelMenu() = default;
  /// Open kernels are those of processes before this one, and kept for those after it.
  explicit KernelMenu(std::shared_ptr<const Setup> setup) : setup_(std::move(setup)) {}

  /// Looks at a plan, so that kernels which two plans have at different sizes are open. Compiles nothing.
  void learn(const Plan& plan, const Machine& machine);
  /// Open kernels with the same structure as `kernel`, as it is shared, in the order in which they are asked.
  [[nodiscard]] const std::vector<std::shared_ptr<KernelVariants>>& alike(const Kernel& kernel) const;
  /// Another number once there are other open kernels.
  [[nodiscard]] std::int64_t generation() const { return generation_; }
  [[nodiscard]] const IsCompiled& preferred() const { return prefer_; }
  /// The plan with open kernels wherever it has cases of them.
  [[nodiscard]] std::shared_ptr<const Plan> apply(const std::shared_ptr<const Plan>& plan,
                                                  const Machine& machine);
  /// Both, and where the plan has kernels of which it is not known what becomes of them at other sizes, it learns from plans
  /// at sizes beside these, too: `lower` makes one. What cannot be lowered there has kernels for these sizes alone.
  [[nodiscard]] std::shared_ptr<const Plan> serve(
      const ModelSizes& model, const Sizes& sizes, const std::shared_ptr<const Plan>& plan,
      const Machine& machine, const std::function<std::shared_ptr<const Plan>(const Sizes&)>& lower);
  /// Open kernels of these plans, which have kernels for their sizes alone, with the cases that they have of them.
  [[nodiscard]] std::vector<VariedKernel> cases_in(const std::vector<std::shared_ptr<const Plan>>& plans,
                                                   const Machine& machine);
  /// Each joins the variants of its kernel in `kernels`, which cases_in gave.
  void add_variants(const std::vector<VariedKernel>& kernels, const std::vector<ChosenVariant>& variants);
  /// May kernels have further variants? Not where a process before this one had the model.
  [[nodiscard]] bool may_vary() const { return may_vary_; }
  /// Until it is called again: of a kernel's variants those are taken whose text `is_compiled`, where there is one; with nullptr, any.
  void prefer(IsCompiled is_compiled) { prefer_ = std::move(is_compiled); }
  /// From now on runs wait for what is compiled: no kernel gets further variants, and of those that it has the ones stay whose text
  /// `is_compiled`, where there is one.
  void end_variants(const IsCompiled& is_compiled);

 private:
  /// Where kernels are learned from.
  struct Lesson {
    std::vector<Kernel> forms;  ///< of a plan, as they are shared
    Sizes sizes;                ///< of the plan; none where they are not known
    Sizes apart;  ///< plans that have one of `sizes` which is not here tell too little of what it is
    Sharing sharing = Sharing::on_device;  ///< of a device's kernels
    /// May kernels of a plan at `others` be compared?
    [[nodiscard]] bool differs_from(const Sizes& others) const;
  };
  /// A kernel at the sizes of one plan, that no open kernel served.
  struct Seen {
    Kernel kernel;
    std::int64_t plan = 0;  ///< number of the latest plan that had it
    Sizes sizes;
    bool is_settled = false;  ///< several plans had it, or it may not be open: other sizes tell nothing more
  };
  /// Kernels of one skeleton.
  struct Entry {
    std::vector<Seen> seen;  ///< of the latest plans
    std::vector<std::shared_ptr<KernelVariants>> open;
    std::map<std::string, std::int64_t>
        refused;  ///< texts of those that would be, and the plan that asked last

    /// False when an open kernel that might have been is refused.
    [[nodiscard]] bool compare(const Kernel& kernel, const Lesson& lesson, std::int64_t plan,
                               const Machine& machine);
    [[nodiscard]] Seen* find(const Kernel& kernel);
    void forget_before(std::int64_t plan);
    /// The open kernels of which `kernel` is a case, or nullptr.
    [[nodiscard]] KernelVariants* variants_of(const Kernel& kernel) const;
  };
  void learn_from(const Lesson& lesson, const Machine& machine);
  void vary(const std::vector<Kernel>& forms, const Machine& machine);
  [[nodiscard]] bool is_settled(const std::vector<Kernel>& forms);
  [[nodiscard]] std::shared_ptr<const Plan> with_open(const Plan& plan, const std::vector<Kernel>& forms,
                                                      const Machine& machine);
  void restore(const ModelSizes& model, const Plan& plan);
  void keep();

  std::shared_ptr<const Setup> setup_;  ///< nullptr: nothing is kept
  MenuFile file_;
  OpenTexts kept_;
  IsCompiled prefer_;
  std::int64_t plans_ = 0;  ///< learned from so far
  std::int64_t generation_ = 0;
  bool may_vary_ = true;  ///< no process before this one had it, and nobody ended it
  std::unordered_map<std::string, Entry> entries_;  ///< by skeleton
};

}  // namespace sylvite
