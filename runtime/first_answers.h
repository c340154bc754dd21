#pragma once
// Answers before programs are ready: runs are evaluated while another thread compiles.

#include <functional>
#include <map>
#include <memory>
#include <stop_token>
#include <vector>

#include "runtime/background.h"
#include "runtime/evaluated.h"
#include "runtime/family.h"
#include "runtime/input_sizes.h"

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
  [[nodiscard]] Family take() { return family_.take(); }  ///< as Background's

  [[nodiscard]] const ModelSizes& sizes() const { return model_.parsed.sizes; }
  [[nodiscard]] const Plan& plan() const { return *plan_; }  ///< at the first sizes
  [[nodiscard]] const HostPart* host() const { return host_.get(); }
  [[nodiscard]] const CompileReport& report() const { return report_; }  ///< so far

 private:
  const Evaluated& at(const Sizes& sizes);
  template <typename Inputs, typename Run>
  auto answer(const Inputs& inputs, const Run& run);

  OpenModel model_;  ///< without its menu, which the thread uses
  InputSizes given_;
  std::map<Sizes, Evaluated> evaluated_;
  std::shared_ptr<const Plan> plan_;
  std::shared_ptr<const HostPart> host_;
  CompileReport report_;
  double seconds_before_;
  Background<Family> family_;
};

}  // namespace sylvite
