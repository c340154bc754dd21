#pragma once
// Runs one node test case in a child process with limits, and says what came of it.

#include <functional>
#include <string>
#include <vector>

#include "frontend/onnx_importer.h"
#include "node_case.h"

namespace sylvite::node_test {

/// What computes a model: returns its outputs for the inputs that `options` leaves free.
using Engine = std::function<std::vector<Tensor>(const std::string& model_path, const ImportOptions& options,
                                                 const std::vector<Tensor>& inputs)>;

struct Outcome {
  std::string kind;    ///< pass, bound, unsupported, wrong, crash or timeout
  std::string reason;  ///< empty for pass
};

/// The case in this process. "bound" is a pass in which inputs that a static compiler must know (shapes,
/// axes, limits) were given as constants.
[[nodiscard]] Outcome run_case(const std::string& folder, const std::string& name, const Engine& engine);

/// The same in a child process, killed after `seconds` or when it takes more than `megabytes` of memory.
[[nodiscard]] Outcome run_case_isolated(const std::string& folder, const std::string& name,
                                        const Engine& engine, double seconds, std::size_t megabytes);

}  // namespace sylvite::node_test
