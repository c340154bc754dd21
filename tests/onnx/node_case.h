#pragma once
// One case of the ONNX backend node tests: a model with recorded inputs and outputs.

#include <map>
#include <string>
#include <vector>

#include "frontend/tensor.h"

namespace sylvite::node_test {

/// The lists of cases: A has float32 graph inputs and outputs only; B adds int64, int32 and bool.
enum class List { a, b, all };

struct NodeCase {
  std::string name;
  std::string model_path;
  std::vector<std::string> input_names;  ///< of the model, initializers left out
  std::vector<Tensor> inputs;
  std::vector<Tensor> outputs;
  double rtol = 1e-3;
  double atol = 1e-7;
};

/// Names of the cases in `folder` that belong to the list, sorted.
[[nodiscard]] std::vector<std::string> list_cases(const std::string& folder, List list);

/// Throws UnsupportedError for data that is no tensor (sequences, optionals, strings, 8-bit floats).
[[nodiscard]] NodeCase load_case(const std::string& folder, const std::string& name);

/// Empty when `actual` agrees with `expected` (dtype, shape, values, places of NaN and infinity), else what
/// differs.
[[nodiscard]] std::string difference(const Tensor& actual, const Tensor& expected, const NodeCase& tolerance);

}  // namespace sylvite::node_test
