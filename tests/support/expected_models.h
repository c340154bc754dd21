#pragma once
// Whole models against what ONNX Runtime computed (tests/data/make_expected.py).

#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "frontend/onnx/tensor_io.h"
#include "frontend/onnx/weights.h"
#include "tests/runtime/test_session.h"

namespace sylvite {

inline nlohmann::json expected_of(const std::string& data_folder, const std::string& model) {
  std::ifstream file(data_folder + "/expected/expected.json");
  return nlohmann::json::parse(file).at(model);
}

/// As make_expected.py draws inputs.
inline Tensor model_input(const Port& input) {
  if (is_float(input.type.dtype))
    return random_floats(input.type.dtype, input.type.dims(), input.name, 0, std::sqrt(3.0));
  return random_integers(input.type.dtype, input.type.dims(), input.name, 0, 1000);
}

/// Compiles and runs a model of tests/data; `set` are further settings. Elements may differ by `absolute` of
/// the largest magnitude, a thousandth of themselves, and `step`, the least number that the precision
/// knows.
inline void expect_as_onnx_runtime(const std::string& data_folder, const std::string& model,
                                   const std::map<std::string, std::string>& set = {}, double absolute = 1e-4,
                                   double step = 0) {
  const TemporaryFolder folder;
  CompileOptions options = test_options(folder.path());
  options.set["import.random_weights"] = "0";
  for (const auto& [name, value] : set) options.set[name] = value;
  const Imported imported = load_model(data_folder + "/models/" + model + ".onnx", make_setup(options));
  Built built = build_program(imported, choose_candidates(imported));
  EXPECT_THAT(built.report.warnings, testing::IsEmpty());

  std::vector<Tensor> inputs;
  for (const Port& input : built.program.plan().inputs) inputs.push_back(model_input(input));
  const Tensor actual = built.program.run(inputs).at(0);
  const nlohmann::json expected = expected_of(data_folder, model);
  ASSERT_EQ(actual.dims(), expected.at("output_shape").get<Dims>());
  const Tensor wanted = read_tensor(data_folder + "/expected/" + model + ".output.npy");
  const auto stride = expected.at("stride").get<std::int64_t>();
  const double scale = expected.at("max_abs").get<double>();
  for (std::int64_t i = 0; i < wanted.size(); ++i) {
    const double value = wanted.as_double(i);
    ASSERT_NEAR(actual.as_double(i * stride), value, 1e-3 * std::abs(value) + absolute * scale + step)
        << "element " << i;
  }
}

}  // namespace sylvite
