#pragma once
// What a CompiledModel holds: the programs of its family or, until these are ready, answers by evaluation.

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/first_answers.h"

namespace sylvite {

struct CompiledModel::Rep {
 public:
  /// With an evaluation, runs at sizes whose kernels are not compiled yet do not wait for them.
  explicit Rep(Family ready, std::unique_ptr<OpenEvaluation> evaluation = nullptr)
      : family_(std::move(ready)), evaluation_(std::move(evaluation)) {}
  explicit Rep(std::unique_ptr<FirstAnswers> first) : first_(std::move(first)) {}

  [[nodiscard]] std::vector<Tensor> run_tensors(const std::vector<Tensor>& inputs);
  [[nodiscard]] std::vector<HostValue> run_values(const std::vector<HostValue>& inputs);

  /// Waits until it is ready; throws what making it throws.
  [[nodiscard]] Family& family();
  /// The same, and for kernels that are compiled behind runs, also of what follows host steps.
  void wait();
  /// Ends what is compiled in the background, soon. REQUIRES that no run follows.
  void stop_compiling();
  [[nodiscard]] bool is_ready() const { return first_ == nullptr || first_->is_ready(); }
  /// Would `wait` wait? What compiling throws, the next run throws.
  [[nodiscard]] bool is_compiling() const;

  [[nodiscard]] const ModelSizes& sizes() const {
    return first_ != nullptr ? first_->sizes() : family_->sizes();
  }
  /// The latest program's, known before it is ready.
  [[nodiscard]] const Plan& plan() const;
  [[nodiscard]] const HostPart* host() const;
  [[nodiscard]] const CompileReport& report();

 private:
  template <typename Inputs>
  auto run(const Inputs& inputs);
  [[nodiscard]] Tails* tails() const { return family_ ? family_->latest().tails.get() : nullptr; }

  std::optional<Family> family_;         ///< once it is ready and was asked for
  std::unique_ptr<FirstAnswers> first_;  ///< until then
  std::unique_ptr<OpenEvaluation> evaluation_;
  double first_answer_seconds_ = 0;
  CompileReport report_;  ///< the family's, with what was before it
  std::atomic_flag busy_;
};

}  // namespace sylvite
