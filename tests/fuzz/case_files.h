#pragma once
// Model cases in folders: model.onnx, input_0.npy, ..., and, for other runtimes to be compared with,
// output_0.npy, ... and allowed_0.npy, ..., the error that each element may have.

#include <string>

#include "tests/fuzz/expectation.h"
#include "tests/fuzz/model_grower.h"

namespace sylvite::fuzz {

void save_case(const std::string& folder, const ModelCase& test, const Expectation& expected);
/// Also the first data set of an ONNX backend test.
[[nodiscard]] ModelCase load_case(const std::string& folder);

/// For people: a line per node, and what the inputs and weights are.
[[nodiscard]] std::string case_text(const ModelCase& test);

}  // namespace sylvite::fuzz
