#pragma once
// Answers before programs are ready: runs are evaluated while another thread compiles.

#include <functional>
#include <memory>
#include <stop_token>
#include <vector>

#include "runtime/background.h"
#include "runtime/evaluated.h"
#include "runtime/family.h"

namespace sylvite {

/// Makes the programs of a model; where the token asks for it, throws Stopped soon.
using MakeFamily = std::function<Family(const std::stop_token&)>;

/// Thread safety: one thread at a time. In a child made by fork runs are evaluated for ever.
class FirstAnswers {
 public:
  /// Begins with `make`. `seconds` is what it took until now. REQUIRES that evaluation is not refused for `imported`.
  FirstAnswers(const Imported& imported, double seconds, MakeFamily make);

  [[nodiscard]] std::vector<HostValue> run_values(const std::vector<HostValue>& inputs);
  [[nodiscard]] std::vector<Tensor> run_tensors(const std::vector<Tensor>& inputs);

  [[nodiscard]] bool is_ready() const { return family_.is_ready(); }
  [[nodiscard]] Family take() { return family_.take(); }  ///< as Background's

  [[nodiscard]] const Plan& plan() const { return *plan_; }
  [[nodiscard]] const HostPart* host() const { return model_.host.get(); }
  [[nodiscard]] const CompileReport& report() const { return report_; }  ///< so far

 private:
  template <typename Run>
  auto answer(const Run& run);

  Evaluated model_;
  std::shared_ptr<const Plan> plan_;
  CompileReport report_;
  double seconds_before_;
  Background<Family> family_;
};

}  // namespace sylvite
