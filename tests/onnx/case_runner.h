#pragma once
// Runs one node test case in a child process with limits, and says what came of it.

#include <functional>
#include <string>
#include <vector>

#include "frontend/onnx/imported_model.h"
#include "tests/onnx/node_case.h"
#include "tests/support/isolated.h"

namespace sylvite::node_test {

/// What computes a model: returns its outputs for the inputs that `options` leaves free. Unless host steps
/// are allowed, throws UnsupportedError for a model that needs some.
using Engine =
    std::function<std::vector<HostValue>(const std::string& model_path, const ImportOptions& options,
                                         const std::vector<HostValue>& inputs, bool allows_host_steps)>;

/// For engines: refuses a model with host steps when they are not allowed.
void check_host_steps(const HostPart* host, bool are_allowed);

/// The case in this process. "pass": the graph is the whole model. "bound": right with inputs that a compiler
/// must know (shapes, axes, limits) given as constants, and right without, through host steps. "host": right,
/// and host steps are needed in any case. "random": types and shapes are right, the values are drawn.
[[nodiscard]] Outcome run_case(const NodeCase& test, const Engine& engine);

/// The same in a child process, killed after `seconds` or when it takes more than `megabytes` of memory.
[[nodiscard]] Outcome run_case_isolated(const std::string& data, const CaseSet& set, const std::string& name,
                                        const Engine& engine, double seconds, std::size_t megabytes);

}  // namespace sylvite::node_test
