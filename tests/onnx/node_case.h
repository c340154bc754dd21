#pragma once
// One case of the ONNX backend tests: a model with recorded inputs and outputs.

#include <string>
#include <vector>

#include "sylvite/host_value.h"

namespace sylvite::node_test {

/// The lists of cases: A has float32 graph inputs and outputs only; B adds int64, int32 and bool.
enum class List { a, b, all };

enum class Layout {
  folders,  ///< a folder per case, with model.onnx and test_data_set_0
  light,    ///< files light_X.onnx and light_X_output_0.pb
  single    ///< files X.onnx that hold their values: see make_contrib_cases.py
};

/// Where a set of cases lies, and how.
struct CaseSet {
  std::string name;  ///< also its folder: of tests/data for single files, else of the data in the onnx wheel
  Layout layout;
};
[[nodiscard]] const CaseSet& find_set(const std::string& name);  ///< throws UsageError naming the sets

struct NodeCase {
  std::string name;
  std::string model_path;
  std::vector<std::string> input_names;  ///< of the model, initializers left out
  std::vector<HostValue> inputs;
  std::vector<HostValue> outputs;
  double rtol = 1e-3;
  double atol = 1e-7;
  bool is_random = false;  ///< the values are drawn: only types and shapes can be compared
};

/// Names of the cases of a set that belong to the list, sorted. `data` holds the sets' folders.
[[nodiscard]] std::vector<std::string> list_cases(const std::string& data, const CaseSet& set, List list);

/// Throws UnsupportedError for data of a kind that is not supported (maps).
[[nodiscard]] NodeCase load_case(const std::string& data, const CaseSet& set, const std::string& name);

/// Empty when `actual` agrees with `expected` (kind, dtype, shape, values, places of NaN and infinity), else
/// what differs.
[[nodiscard]] std::string difference(const HostValue& actual, const HostValue& expected,
                                     const NodeCase& tolerance);

}  // namespace sylvite::node_test
