#pragma once
// Answers before programs are ready: runs are evaluated while another thread compiles.

#include <functional>
#include <memory>
#include <stop_token>
#include <vector>

#include "runtime/background.h"
#include "runtime/family.h"
#include "runtime/open_evaluation.h"

namespace sylvite {

/// Makes the programs of a model; where the token asks for it, throws Stopped soon.
using MakeFamily = std::function<Family(const std::stop_token&)>;

/// Thread safety: one thread at a time. In a child made by fork runs are evaluated for ever.
class FirstAnswers {
 public:
  /// Begins with `make`. `imported` is of `model`, at the first sizes to be fast at; `seconds` is what it took until now.
  /// REQUIRES that evaluation is not refused for `imported`.
  FirstAnswers(OpenModel model, const Imported& imported, double seconds, MakeFamily make);
  FirstAnswers(const FirstAnswers&) = delete;
  FirstAnswers& operator=(const FirstAnswers&) = delete;

  [[nodiscard]] std::vector<HostValue> run_values(const std::vector<HostValue>& inputs);
  [[nodiscard]] std::vector<Tensor> run_tensors(const std::vector<Tensor>& inputs);

  [[nodiscard]] bool is_ready() const { return family_.is_ready(); }
  void stop() { family_.stop(); }                         ///< as Background's
  [[nodiscard]] Family take() { return family_.take(); }  ///< as Background's
  /// What runs are evaluated by. REQUIRES that no run follows.
  [[nodiscard]] std::unique_ptr<OpenEvaluation> take_evaluation() { return std::move(evaluation_); }

  [[nodiscard]] const ModelSizes& sizes() const { return evaluation_->sizes(); }
  [[nodiscard]] const Plan& plan() const { return *plan_; }  ///< at the first sizes
  [[nodiscard]] const HostPart* host() const { return host_.get(); }
  [[nodiscard]] const CompileReport& report() const { return report_; }  ///< so far

 private:
  template <typename Inputs>
  auto answer(const Inputs& inputs);

  std::unique_ptr<OpenEvaluation> evaluation_;
  std::shared_ptr<const Plan> plan_;
  std::shared_ptr<const HostPart> host_;
  CompileReport report_;
  double seconds_before_;
  Background<Family> family_;
};

}  // namespace sylvite
