// Whole models on the GPU, in f32 and with products in TF32, as one graph.

#include "tests/gpu/gpu_test.h"
#include "tests/support/expected_models.h"

namespace sylvite::gpu_models_test {
namespace {

class GpuModels : public GpuTest, public testing::WithParamInterface<std::string> {};

TEST_P(GpuModels, AgreeWithOnnxRuntime) {
  expect_as_onnx_runtime(
      beside("data", SYLVITE_TEST_DATA), GetParam(),
      {{"compile.device", "cuda"}, {"compile.threads", "0"}, {"runtime.cuda_graph", "true"}});
}

TEST_P(GpuModels, AgreeInTf32) {
  expect_as_onnx_runtime(beside("data", SYLVITE_TEST_DATA), GetParam(),
                         {{"compile.device", "cuda"},
                          {"compile.precision", "tf32"},
                          {"compile.threads", "0"},
                          {"runtime.cuda_graph", "true"}},
                         4e-3);
}

TEST_P(GpuModels, AgreeOnStreamsSideBySide) {
  expect_as_onnx_runtime(beside("data", SYLVITE_TEST_DATA), GetParam(),
                         {{"compile.device", "cuda"},
                          {"compile.threads", "0"},
                          {"runtime.cuda_graph", "true"},
                          {"runtime.cuda_streams", "3"}});
}

TEST_P(GpuModels, AgreeInHalfFloats) {
  expect_as_onnx_runtime(beside("data", SYLVITE_TEST_DATA), GetParam(),
                         {{"compile.device", "cuda"},
                          {"compile.precision", "f16"},
                          {"compile.threads", "0"},
                          {"runtime.cuda_graph", "true"}},
                         5e-3, 0x1p-24);
}

INSTANTIATE_TEST_SUITE_P(, GpuModels,
                         testing::Values("resnet18", "resnet50", "mobilenet_v2", "mobilenet_v3_large",
                                         "squeezenet1_1", "shufflenet_v2", "densenet121", "efficientnet_b0",
                                         "vgg16", "bert_base", "gpt2_small", "vit_b_16"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace sylvite::gpu_models_test
