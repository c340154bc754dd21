// Whole models against what ONNX Runtime computed (tests/data/make_expected.py), in default mode.

#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "frontend/onnx_weights.h"
#include "frontend/tensor_io.h"
#include "tests/runtime/test_session.h"

namespace sylvite {
namespace {

const std::string data_folder = SYLVITE_TEST_DATA;

nlohmann::json expected_of(const std::string& model) {
  std::ifstream file(data_folder + "/expected/expected.json");
  return nlohmann::json::parse(file).at(model);
}

/// As make_expected.py draws inputs.
Tensor model_input(const Buffer& input) {
  if (is_float(input.type.dtype)) {
    return random_floats(input.type.dtype, input.type.dims(), input.name, 0, std::sqrt(3.0));
  }
  return random_integers(input.type.dtype, input.type.dims(), input.name, 0, 1000);
}

class ModelsTest : public testing::TestWithParam<std::string> {};

TEST_P(ModelsTest, AgreeWithOnnxRuntime) {
  const TemporaryFolder folder;
  CompileOptions options = test_options(folder.path());
  options.set["import.random_weights"] = "0";
  Session session = load_model(data_folder + "/models/" + GetParam() + ".onnx", options);
  choose_candidates(session);
  build_program(session);
  EXPECT_THAT(session.report.warnings, testing::IsEmpty());

  std::vector<Tensor> inputs;
  for (const BufferId id : session.program->plan().inputs) {
    inputs.push_back(model_input(session.program->plan().buffers.at(static_cast<std::size_t>(id))));
  }
  const Tensor actual = session.program->run(inputs).at(0);
  const nlohmann::json expected = expected_of(GetParam());
  ASSERT_EQ(actual.dims(), expected.at("output_shape").get<Dims>());
  const Tensor wanted = read_tensor(data_folder + "/expected/" + GetParam() + ".output.npy");
  const auto stride = expected.at("stride").get<std::int64_t>();
  const double scale = expected.at("max_abs").get<double>();
  for (std::int64_t i = 0; i < wanted.size(); ++i) {
    const double value = wanted.as_double(i);
    ASSERT_NEAR(actual.as_double(i * stride), value, 1e-3 * std::abs(value) + 1e-4 * scale)
        << "element " << i;
  }
}

// The others pass as well (benchmarks/check_against_onnxruntime.py runs all) but take long to compile.
INSTANTIATE_TEST_SUITE_P(, ModelsTest,
                         testing::Values("resnet18", "resnet50", "mobilenet_v2", "squeezenet1_1",
                                         "shufflenet_v2", "bert_base", "gpt2_small", "vit_b_16"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace sylvite
