#include "schedules/cuda/warps.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "schedules/cuda/attention_warps.h"
#include "schedules/cuda/candidate.h"
#include "schedules/cuda/conv.h"
#include "schedules/cuda/nvrtc.h"
#include "schedules/space.h"
#include "sylvite/graph_text.h"
#include "tests/schedules/fixed_machines.h"
#include "tests/support/attention_kernels.h"
#include "tests/support/conv_kernels.h"
#include "tests/support/matmul_kernels.h"

namespace sylvite::warps_test {
namespace {

using testing::HasSubstr;
using testing::Not;

/// As an A10 or an RTX 4090 has it.
Card small_memory() {
  return {"NVIDIA A10", 86, 13000, 72, 99 << 10, 6 << 20};
}

CudaMatmulProblem problem_of(const MatmulSpec& spec) {
  const Reading<CudaMatmulProblem> reading = read_cuda_matmul(matmul_kernel(spec));
  EXPECT_EQ(reading.refusal, "");
  return reading.problem;
}

MatmulSpec layer(DType element, std::int64_t m = 256) {
  MatmulSpec spec;
  spec.m = m;
  spec.n = 768;
  spec.k = 3072;
  spec.element = spec.out = element;
  spec.epilogue = "residual";
  return spec;
}

TEST(CudaWarps, EveryChoiceOfferedFitsTheCard) {
  for (const Card& card : {small_memory(), sample_card()}) {
    for (const DType element : {DType::bf16, DType::f32}) {
      for (const std::int64_t m : {1, 32, 197, 4096}) {
        const CudaMatmulProblem problem = problem_of(layer(element, m));
        const std::vector<CudaWarpsChoice> choices = cuda_warps_choices(problem, element == DType::f32, card);
        EXPECT_GE(choices.size(), 4U);
        for (const CudaWarpsChoice& choice : choices)
          EXPECT_LE(make_cuda_warps(problem, choice).launch.shape.shared_bytes, card.shared_bytes);
      }
    }
    AttentionSpec heads;
    heads.queries = heads.keys = 512;
    const CudaAttentionProblem problem = read_cuda_attention(attention_kernel(heads)).problem;
    for (const CudaAttentionWarpsChoice& choice : attention_warps_choices(problem, card))
      EXPECT_LE(make_attention_warps(problem, choice).launch.shape.shared_bytes, card.shared_bytes);
  }
}

/// Many tiles of few rows do better than a few that are empty for the most part.
TEST(CudaWarps, TheFirstGuessFillsTheCard) {
  const auto first = [](std::int64_t m) {
    return cuda_warps_choices(problem_of(layer(DType::bf16, m)), false, sample_card())[0];
  };
  EXPECT_EQ(first(1).tile_x, 16);
  EXPECT_GE(first(16384).tile_x * first(16384).tile_y, 128 * 128);
}

TEST(CudaWarps, RowsThatBeginAnywhereComeInSmallerUnits) {
  for (const auto& [k, unit] : {std::pair{200, 16}, {196, 8}, {198, 4}, {199, 2}}) {
    MatmulSpec spec = layer(DType::bf16);
    spec.k = k;
    const CudaMatmulProblem problem = problem_of(spec);
    const CudaTemplate text = make_cuda_warps(problem, cuda_warps_choices(problem, false, sample_card())[0]);
    EXPECT_THAT(text.source.text, HasSubstr(fmt::format("X_PITCH = {}, X_UNIT = {};", k, unit)));
    EXPECT_THAT(text.source.text, HasSubstr("Y_UNIT = 16;"));  // a weight, which is packed
  }
}

TEST(CudaWarps, RefusesWithAReason) {
  const CudaMatmulProblem problem = problem_of(layer(DType::bf16));
  const auto refusal = [&](const CudaWarpsChoice& choice) {
    return refuse_cuda_warps(problem, choice, small_memory());
  };
  EXPECT_EQ(refusal({}), "");
  EXPECT_THAT(refusal({.tile_x = 24}), HasSubstr("16 x 16"));
  EXPECT_THAT(refusal({.parts = 2}), HasSubstr("slices"));
  EXPECT_THAT(refusal({.warps_x = 8, .warps_y = 8}), HasSubstr("threads"));
  EXPECT_THAT(refusal({.tile_x = 256, .tile_y = 256}), HasSubstr("registers"));
  EXPECT_THAT(refusal({.stage_row = 128}), HasSubstr("shared memory"));
  EXPECT_THAT(refusal({.exact = true}), HasSubstr("f32"));
  MatmulSpec spec = layer(DType::bf16);
  spec.a_transposed = true;
  EXPECT_THAT(refuse_cuda_warps(problem_of(spec), {.tile_x = 96, .warps_x = 2}, sample_card()),
              HasSubstr("lines"));
}

TEST(CudaWarps, F32IsExactUnlessTf32IsAllowed) {
  Machine machine = fixed_machine("h200");
  const Kernel kernel = matmul_kernel(layer(DType::f32));
  const auto candidate = [&] { return default_candidate(kernel, machine); };
  EXPECT_EQ(candidate().form.name, "cuda_matmul");
  EXPECT_FALSE(multiplies_in_tf32(kernel, candidate()));
  machine.gpu_tools.hopper = false;
  EXPECT_EQ(candidate().form.name, "cuda_warps_matmul");
  EXPECT_FALSE(multiplies_in_tf32(kernel, candidate()));
  machine.tf32 = true;
  EXPECT_EQ(candidate().form.name, "cuda_warps_matmul");
  EXPECT_TRUE(multiplies_in_tf32(kernel, candidate()));
}

TEST(CudaWarps, TheKnobLeavesHopperItsOthers) {
  Machine machine = fixed_machine("h200");
  const std::vector<Kernel> kernels = {matmul_kernel(layer(DType::bf16)), conv_kernel({}),
                                       attention_kernel({})};
  for (const Kernel& kernel : kernels) {
    machine.gpu_tools.hopper = true;
    EXPECT_THAT(default_candidate(kernel, machine).form.name, Not(HasSubstr("warps")));
    machine.gpu_tools.hopper = false;
    EXPECT_THAT(default_candidate(kernel, machine).form.name, HasSubstr("warps"));
    EXPECT_EQ(cuda_template_of(kernel, default_candidate(kernel, machine))->source.architecture, "sm_90a");
  }
}

Kernel kernel_of(const std::string& text, std::vector<bool> weights) {
  return make_kernel(parse_graph("graph g" + text), std::move(weights));
}

/// A kernel of each template that every card has.
std::vector<Kernel> sample_kernels() {
  AttentionSpec floats;
  floats.element = floats.mask_type = DType::f32;
  return {
      matmul_kernel(layer(DType::bf16)),
      matmul_kernel(layer(DType::f32)),
      heads_kernel(DType::bf16, true),
      conv_kernel({}),
      attention_kernel({}),
      attention_kernel(floats),
      kernel_of("(%a: bf16[64,768]) { %v: bf16[64,768] = softmax(%a) {axis=1} return %v }", {false}),
      kernel_of("(%a: bf16[4096,1024]) { %v: bf16[1024] = reduce_sum(%a) {axes=[0], keepdims=0} return %v }",
                {false}),
      kernel_of("(%a: bf16[512,256]) { %v: bf16[256,512] = transpose(%a) {perm=[1,0]} return %v }", {false}),
      conv_kernel({.channels = 64, .filters = 64, .groups = 64}),
      conv_kernel({.channels = 64, .filters = 64, .groups = 8}),
  };
}

/// Hopper's forms stay as they are; others name their card, and are no dependent launches before Hopper.
TEST(CudaWarps, FormsNameTheirCard) {
  Machine machine = fixed_machine("a100");
  for (const int capability : {80, 89, 100, 120}) {
    machine.gpu->capability = capability;
    for (const Kernel& kernel : sample_kernels()) {
      bool has_template = false;
      for (const BoundSpace& space : spaces_for(kernel, machine)) {
        const Candidate candidate = space.at(space.heuristic);
        const std::optional<CudaTemplate> made = cuda_template_of(kernel, candidate);
        if (!made) continue;
        has_template = true;
        EXPECT_EQ(candidate.form.at("capability"), capability);
        EXPECT_EQ(made->source.architecture, fmt::format("sm_{}", capability));
        EXPECT_EQ(made->launch.shape.programmatic, capability >= 90);
        if (capability < 90) EXPECT_EQ(made->launch.shape.cluster, 1U);
      }
      EXPECT_TRUE(has_template) << kernel.text;
    }
  }
}

TEST(CudaWarps, CompilesForEveryCard) {
  if (const std::string& reason = cuda::missing_nvrtc(); !reason.empty()) GTEST_SKIP() << reason;
  Machine machine = fixed_machine("a100");
  for (const int capability : {80, 86, 120}) {
    machine.gpu->capability = capability;
    if (capability == 86) machine.gpu = small_memory();
    for (const Kernel& kernel : sample_kernels()) {
      for (const BoundSpace& space : spaces_for(kernel, machine)) {
        std::optional<CudaTemplate> made = cuda_template_of(kernel, space.at(space.heuristic));
        if (made) EXPECT_NE(cuda::compile_cuda(std::move(*made)).image, "") << space.name;
      }
    }
    machine = fixed_machine("a100");
  }
}

}  // namespace
}  // namespace sylvite::warps_test
