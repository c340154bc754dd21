// Whole models against what ONNX Runtime computed (tests/data/make_expected.py), in default mode.

#include "tests/support/expected_models.h"

namespace sylvite::models_test {
namespace {

class ModelsTest : public testing::TestWithParam<std::string> {};

TEST_P(ModelsTest, AgreeWithOnnxRuntime) {
  expect_as_onnx_runtime(SYLVITE_TEST_DATA, GetParam());
}

// The others pass as well (benchmarks/models/check_against_onnxruntime.py runs all) but take long to compile.
INSTANTIATE_TEST_SUITE_P(, ModelsTest,
                         testing::Values("resnet18", "resnet50", "mobilenet_v2", "squeezenet1_1",
                                         "shufflenet_v2", "bert_base", "gpt2_small", "vit_b_16"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace sylvite::models_test
