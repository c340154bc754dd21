// Templates in CUDA C++ as candidates like others: chosen, compiled, cached and run with a model.

#include "tests/gpu/gpu_test.h"
#include "tests/gpu/template_runner.h"
#include "tests/runtime/test_session.h"

namespace sylvite::cuda_candidate_test {
namespace {

using GpuCudaCandidates = GpuTest;

/// Heads of one projection, attended to and projected back: a layer's kernels.
Graph small_layer(DType dtype) {
  Graph graph;
  const ValueId x = graph.add_input("x", make_type(dtype, {96, 128}));
  std::vector<ValueId> heads;
  for (int i = 0; i < 3; ++i) {
    Tensor weight = sample_tensor(dtype, {128, 128}, i);
    const ValueId product = graph.add(Op::matmul, {x, graph.add_constant(weight)});
    const ValueId split = graph.add(Op::reshape, {product}, {{"shape", Dims{1, 96, 2, 64}}});
    heads.push_back(graph.add(Op::transpose, {split}, {{"perm", Dims{0, 2, 1, 3}}}));
  }
  const ValueId attended = graph.add(Op::attention, heads);
  const ValueId rows = graph.add(Op::transpose, {attended}, {{"perm", Dims{0, 2, 1, 3}}});
  const ValueId flat = graph.add(Op::reshape, {rows}, {{"shape", Dims{96, 128}}});
  const ValueId weight = graph.add_constant(sample_tensor(dtype, {128, 128}, 5));
  const ValueId bias = graph.add_constant(sample_tensor(dtype, {128}, 6));
  const ValueId sum = graph.add(Op::add, {graph.add(Op::matmul, {flat, weight}), bias});
  graph.outputs = {graph.add(Op::gelu, {sum})};
  return graph;
}

/// How many kernels of the layer are templates.
int run_layer(DType dtype, const std::string& precision, double most_error) {
  const TemporaryFolder folder;
  int templates = 0;
  for (const char* graph : {"false", "true"}) {  // the second time from the cache
    CompileOptions options = test_options(folder.path());
    options.set["compile.device"] = "cuda";
    options.set["compile.precision"] = precision;
    options.set["runtime.cuda_graph"] = graph;
    Built built = build_graph(small_layer(dtype), options);
    templates = 0;
    for (const Choice& choice : *built.choices) templates += choice.candidate.form.name.starts_with("cuda_");
    const Tensor x = sample_tensor(dtype, {96, 128}, 9);
    const Tensor wanted = interpret(small_layer(dtype), {x}).at(0);
    for (int run = 0; run < 2; ++run) EXPECT_LT(error_of(built.program.run({x}).at(0), wanted), most_error);
  }
  return templates;
}

TEST_F(GpuCudaCandidates, RunWithAModel) {
  if (!cuda::missing_nvrtc().empty()) GTEST_SKIP() << cuda::missing_nvrtc();
  if (cuda::Device::get().card().capability != 90) GTEST_SKIP() << "for Hopper";
  EXPECT_GE(run_layer(DType::bf16, "f32", 2e-2), 3);
  EXPECT_GE(run_layer(DType::f32, "tf32", 4e-2), 3);
  EXPECT_EQ(run_layer(DType::f32, "f32", 1e-5), 3);  // each product as three of TF32
}

}  // namespace
}  // namespace sylvite::cuda_candidate_test
