#pragma once
// A model that is run by evaluation (frontend/quick), with nothing compiled.

#include <string>
#include <vector>

#include "runtime/session.h"

namespace sylvite {

/// Why runs may not be evaluated until programs are ready; "" where they may.
[[nodiscard]] std::string refuse_evaluation(const Imported& imported);

/// Thread safety: const use is safe.
struct Evaluated {
  Graph graph;                           ///< in f32, whatever the precision of programs is
  std::shared_ptr<const HostPart> host;  ///< as in Imported
  int threads = 1;
};

/// REQUIRES that evaluation is not refused.
[[nodiscard]] Evaluated evaluate_model(const Imported& imported);

/// As those of a Built.
[[nodiscard]] std::vector<HostValue> run_values(const Evaluated& model, const std::vector<HostValue>& inputs);
[[nodiscard]] std::vector<Tensor> run_tensors(const Evaluated& model, const std::vector<Tensor>& inputs);

}  // namespace sylvite
