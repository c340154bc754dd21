#pragma once
// Do outputs agree with a reference?

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "autotune/verify.h"
#include "cli/model_options.h"

namespace sylvite {

struct Agreement {
  double worst = 0;          ///< largest error as a share of what is allowed; <= 1 passes
  double largest_error = 0;  ///< largest |actual - expected| as a share of the output's scale
  std::string problem;       ///< empty when all outputs agree; else names the output and the element
  [[nodiscard]] bool ok() const { return problem.empty(); }
};

/// Element by element: what the tolerance allows, NaN and infinities in the same places, all else equal.
/// REQUIRES as many expected values as actual ones, else the problem says so.
[[nodiscard]] Agreement compare_outputs(const std::vector<HostValue>& actual,
                                        const std::vector<HostValue>& expected,
                                        const Tolerance& tolerance = {});

/// Before the work: throws UsageError, with the nearest name, when --check names no oracle.
void check_oracle(const Options& options);

/// How the outputs compare with `oracle`: "reference" (the plain schedule of every kernel), "interpreter"
/// (the imported graph, node by node; slow), "f32" (the model compiled in f32, default mode), a folder with
/// 0.npy or 0.pb, 1.npy, ..., or a .npy or .pb file with the elements 0, k, 2k, ... of the first output for
/// some k. `wanted` is what the outputs were compiled with. bf16 may be off by more. Throws UsageError when it is none of these.
[[nodiscard]] Agreement check_agreement(const std::string& oracle, const Imported& imported,
                                        const CompileOptions& wanted, const std::vector<HostValue>& inputs,
                                        const std::vector<HostValue>& outputs);

/// Does what --check of a verb says, if it was given: tells the result to people and in `document`.
/// Throws VerifyError when the outputs disagree.
void check_outputs(const Options& options, const CompileOptions& wanted, const Imported& imported,
                   const std::vector<HostValue>& inputs, const std::vector<HostValue>& outputs,
                   nlohmann::json& document);

/// The plain schedule of every kernel.
[[nodiscard]] Built build_reference(const Imported& imported);

}  // namespace sylvite
