#include "schedules/cuda/matmul.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "schedules/compile.h"
#include "schedules/cuda/candidate.h"
#include "schedules/cuda/library_call.h"
#include "schedules/cuda/matmul_maps.h"
#include "schedules/cuda/nvrtc.h"
#include "schedules/cuda/object.h"
#include "schedules/cuda/spaces.h"
#include "schedules/packings.h"
#include "tests/support/bound_space.h"
#include "tests/support/gpu_cases.h"
#include "tests/support/matmul_kernels.h"
#include "tests/support/run_kernel.h"

namespace sylvite::matmul_test {
namespace {

using testing::HasSubstr;

CudaMatmulProblem problem_of(const MatmulSpec& spec) {
  const Reading<CudaMatmulProblem> reading = read_cuda_matmul(matmul_kernel(spec));
  EXPECT_EQ(reading.refusal, "");
  return reading.problem;
}

MatmulSpec layer(const std::string& epilogue) {
  MatmulSpec spec;
  spec.m = 256;
  spec.n = 768;
  spec.k = 3072;
  spec.epilogue = epilogue;
  return spec;
}

TEST(CudaMatmul, ReadsWhereOperandsLie) {
  MatmulSpec spec = layer("none");
  spec.batch = 3;
  spec.b_batched = true;
  spec.b_transposed = false;
  const CudaMatmulProblem problem = problem_of(spec);
  EXPECT_TRUE(problem.a.depth_fast);
  EXPECT_EQ(problem.a.pitch, 3072);
  EXPECT_EQ(problem.a.batch_pitch, 256 * 3072);
  EXPECT_FALSE(problem.b.depth_fast);
  EXPECT_EQ(problem.b.pitch, 768);
  EXPECT_EQ(problem.batch, 3);
}

/// Operands of some of the batches: the same for neighbours, or again for each image.
TEST(CudaMatmul, ReadsOperandsOfSomeBatches) {
  const Kernel kernel = kernel_of(
      "graph g(%a: bf16[3,1,128,64], %b: bf16[4,64,72]) {\n"
      "  %v0: bf16[3,4,128,72] = matmul(%a, %b)\n  return %v0\n}\n");
  const Reading<CudaMatmulProblem> reading = read_cuda_matmul(kernel);
  ASSERT_EQ(reading.refusal, "");
  const CudaMatmulProblem& problem = reading.problem;
  EXPECT_EQ(problem.batch, 12);
  EXPECT_EQ(problem.a.batch_pitch, 128 * 64);
  EXPECT_EQ(problem.a.each, 4);
  EXPECT_EQ(problem.a.batches(problem.batch), 3);
  EXPECT_EQ(problem.b.batch_pitch, 64 * 72);
  EXPECT_EQ(problem.b.each, 1);
  EXPECT_EQ(problem.b.period, 4);
  EXPECT_EQ(problem.b.batches(problem.batch), 4);
  EXPECT_FALSE(problem.simple_epilogue);  // libraries step through batches
}

TEST(CudaMatmul, ReadsRunsOfBatchesThatLieApart) {
  const Reading<CudaMatmulProblem> scores = read_cuda_matmul(heads_kernel(DType::bf16, false));
  ASSERT_EQ(scores.refusal, "");
  EXPECT_EQ(scores.problem.batch, 12);
  for (const MatmulOperand& operand : {scores.problem.a, scores.problem.b}) {
    EXPECT_TRUE(operand.depth_fast);
    EXPECT_EQ(operand.pitch, 4 * 64);
    EXPECT_EQ(operand.batch_pitch, 64);
    EXPECT_EQ(operand.inner, 4);
    EXPECT_EQ(operand.outer_pitch, 136 * 4 * 64);
    const CudaTensorMap map = side_map(scores.problem, operand, 136, 64);
    EXPECT_THAT(map.dims, testing::ElementsAre(64, 136, 4, 3));
    EXPECT_THAT(map.pitches, testing::ElementsAre(512, 128, 136 * 512));
  }
  EXPECT_FALSE(scores.problem.simple_epilogue);  // libraries step through batches
  const Reading<CudaMatmulProblem> values = read_cuda_matmul(heads_kernel(DType::bf16, true));
  ASSERT_EQ(values.refusal, "");
  EXPECT_EQ(values.problem.a.inner, 0);
  EXPECT_EQ(values.problem.b.inner, 4);
  EXPECT_FALSE(values.problem.b.depth_fast);
}

TEST(CudaMatmul, CompilesWithRunsOfBatchesThatLieApart) {
  if (const std::string& reason = cuda::missing_nvrtc(); !reason.empty()) GTEST_SKIP() << reason;
  for (const bool of_values : {false, true}) {
    const CudaMatmulProblem problem = read_cuda_matmul(heads_kernel(DType::bf16, of_values)).problem;
    for (const CudaMatmulChoice& choice : {CudaMatmulChoice{.tile_y = 64}, {.tile_y = 128, .cluster_x = 2}}) {
      ASSERT_EQ(refuse_cuda_matmul(problem, choice, sample_card()), "");
      EXPECT_NE(cuda::compile_cuda(make_cuda_matmul(problem, choice, sample_card())).image, "")
          << choice.to_string();
    }
  }
}

/// Three images of two frames of four heads whose rows and frames lie apart would be three steps.
TEST(CudaMatmul, RefusesBatchesOfThreeSteps) {
  const Kernel kernel = kernel_of(
      "graph g(%a: bf16[3,128,2,8,4,64], %b: bf16[64,72]) {\n"
      "  %t: bf16[3,2,4,128,8,64] = transpose(%a) {perm=[0,2,4,1,3,5]}\n"
      "  %s: bf16[3,2,4,128,1,64] = slice(%t) {sizes=[3,2,4,128,1,64], starts=[0,0,0,0,0,0], "
      "steps=[1,1,1,1,1,1]}\n"
      "  %r: bf16[3,2,4,128,64] = reshape(%s) {shape=[3,2,4,128,64]}\n"
      "  %v0: bf16[3,2,4,128,72] = matmul(%r, %b)\n  return %v0\n}\n");
  EXPECT_THAT(read_cuda_matmul(kernel).refusal, HasSubstr("lie apart"));
}

/// Keys by values of small heads: rows of 64 and 32 bytes, along which both lie.
TEST(CudaMatmul, LeavesPiecesOfFewBytesToWarps) {
  MatmulSpec spec = layer("none");
  spec.batch = 256;
  spec.b_batched = true;
  spec.a_transposed = true;
  spec.b_transposed = false;
  spec.m = 32;
  spec.n = 16;
  spec.k = 1024;
  EXPECT_THAT(refuse_tensor_maps(problem_of(spec)), HasSubstr("pieces"));
  spec.m = 64;
  EXPECT_EQ(refuse_tensor_maps(problem_of(spec)), "");
}

/// A language model's head: its columns are as many as there are words.
TEST(CudaMatmul, PacksWeightsWhoseRowsLieOddly) {
  MatmulSpec spec = layer("none");
  spec.n = 503;
  spec.k = 300;
  spec.a_transposed = true;  // k = 300 would be an odd pitch of a as well
  spec.b_transposed = false;
  const Kernel kernel = matmul_kernel(spec);
  const CudaMatmulProblem problem = problem_of(spec);
  EXPECT_TRUE(problem.b.depth_fast);
  EXPECT_EQ(problem.b.pitch, 304);
  const std::vector<Packing> packings = packings_of(kernel, {"cuda_matmul", {}});
  EXPECT_TRUE(packings[0].is_identity());
  EXPECT_EQ(packings[1].packed_dims({300, 503}), (Dims{503, 38, 8}));
  Tensor weight(DType::bf16, {300, 503});
  weight.set_double(299 * 503 + 502, 7);
  EXPECT_EQ(pack(weight, packings[1]).as_double(502 * 304 + 299), 7);

  spec.b_transposed = true;
  EXPECT_EQ(problem_of(spec).b.pitch, 304);
  EXPECT_EQ(packings_of(matmul_kernel(spec), {"cuda_matmul", {}})[1].packed_dims({503, 300}),
            (Dims{503, 38, 8}));
  spec.k = 304;
  EXPECT_TRUE(packings_of(matmul_kernel(spec), {"cuda_matmul", {}})[1].is_identity());
}

/// TF32 reads its depth together, and both operands are rounded as they are read.
TEST(CudaMatmul, PacksWeightsOfFloats) {
  MatmulSpec spec = layer("residual");
  spec.element = spec.out = DType::f32;
  for (const bool transposed : {false, true}) {
    spec.b_transposed = transposed;
    const CudaMatmulProblem problem = problem_of(spec);
    EXPECT_TRUE(problem.b.depth_fast);
    EXPECT_EQ(problem.b.pitch, 3072);
    const Packing packing = packings_of(matmul_kernel(spec), {"cuda_matmul", {}})[1];
    EXPECT_EQ(packing.packed_dims(transposed ? Dims{768, 3072} : Dims{3072, 768}), (Dims{768, 768, 4}));
  }
  spec.k = 768;  // deeper products go without boxes first
  const CudaMatmulProblem problem = problem_of(spec);
  const CudaTemplate text =
      make_cuda_matmul(problem, cuda_matmul_choices(problem, sample_card())[0], sample_card());
  EXPECT_THAT(text.source.text, HasSubstr("constexpr int RESIDUAL = 1;"));
  EXPECT_THAT(text.source.text, HasSubstr("constexpr int STORE_BOXES = 1;"));
}

/// Such as the class token's row of every image.
TEST(CudaMatmul, ReadsRowsOfASliceInPlace) {
  Graph body;
  const ValueId a = body.add_input("a", make_type(DType::bf16, {32, std::int64_t{197} * 768}));
  const ValueId b = body.add_input("b", make_type(DType::bf16, {768, 1000}));
  const ValueId first =
      body.add(Op::slice, {a}, {{"starts", Dims{0, 768}}, {"sizes", Dims{32, 768}}, {"steps", Dims{1, 1}}});
  body.outputs = {body.add(Op::matmul, {first, b})};
  const Reading<CudaMatmulProblem> reading = read_cuda_matmul(make_kernel(body, {false, true}));
  EXPECT_EQ(reading.refusal, "");
  EXPECT_EQ(reading.problem.a.offset, 768);
  EXPECT_EQ(reading.problem.a.pitch, 197 * 768);
  EXPECT_EQ(reading.problem.k, 768);
  const CudaTemplate text = make_cuda_matmul(
      reading.problem, cuda_matmul_choices(reading.problem, sample_card())[0], sample_card());
  EXPECT_EQ(text.launch.maps[1].offset, 2 * 768);
}

TEST(CudaMatmul, BatchesOfOneRightOperandAreRows) {
  MatmulSpec spec = layer("residual");
  spec.batch = 3;
  EXPECT_EQ(problem_of(spec).batch, 1);
  EXPECT_EQ(problem_of(spec).m, 3 * 256);
}

TEST(CudaMatmul, KnowsTheEpiloguesOfVendorLibraries) {
  EXPECT_EQ(problem_of(layer("none")).simple_epilogue->bias, -1);
  EXPECT_EQ(problem_of(layer("bias")).simple_epilogue->bias, 2);
  EXPECT_EQ(problem_of(layer("relu")).simple_epilogue->activation, SimpleEpilogue::Activation::relu);
  EXPECT_EQ(problem_of(layer("gelu_tanh")).simple_epilogue->activation,
            SimpleEpilogue::Activation::gelu_tanh);
  for (const char* other : {"gelu", "residual", "row"})
    EXPECT_FALSE(problem_of(layer(other)).simple_epilogue) << other;
}

TEST(CudaMatmul, EpiloguesReadWhatSomeBatchesShare) {
  const auto operand_of = [](const char* dims) {
    const Kernel kernel = kernel_of(fmt::format(
        "graph g(%a: bf16[3,4,128,64], %b: bf16[3,4,64,72], %c: bf16[{}]) {{ %v0: bf16[3,4,128,72] = "
        "matmul(%a, %b) %v1: bf16[3,4,128,72] = mul(%v0, %c) return %v1 }}",
        dims));
    const Reading<CudaMatmulProblem> reading = read_cuda_matmul(kernel);
    EXPECT_EQ(reading.refusal, "");
    CudaMatmulChoice swapped;
    swapped.swapped = true;
    swapped.tile_y = 96;
    EXPECT_EQ(cuda_matmul_boxed(reading.problem, swapped, sample_card()) == 1,
              std::string(dims) == "3,4,128,72");
    return reading.problem.epilogue.operands.at(0);
  };
  for (const char* dims : {"3,4,128,72", "128,72"}) {
    EXPECT_EQ(operand_of(dims).each, 1);
    EXPECT_EQ(operand_of(dims).period, 0);
  }
  EXPECT_EQ(operand_of("4,128,72").each, 1);
  EXPECT_EQ(operand_of("4,128,72").period, 4);
  EXPECT_EQ(operand_of("3,1,128,72").each, 4);
  EXPECT_EQ(operand_of("3,1,128,72").period, 0);
}

TEST(CudaMatmul, FloatsAreMultipliedExactlyUnlessTf32IsAllowed) {
  Machine machine = with_gpu(detect_machine(1), sample_card());
  MatmulSpec spec = layer("bias");
  spec.m = 4096;
  spec.element = spec.out = DType::f32;
  const Kernel kernel = matmul_kernel(spec);
  for (const bool tf32 : {false, true}) {
    machine.tf32 = tf32;
    const Candidate candidate = bound(cuda_matmul_space, kernel, machine).at({0});
    EXPECT_EQ(Candidate::parse(candidate.to_string()), candidate);
    EXPECT_EQ(multiplies_in_tf32(kernel, candidate), tf32);
    EXPECT_FALSE(multiplies_in_tf32(matmul_kernel(layer("bias")), candidate));
    const CudaTemplate text = cuda_template_of(kernel, candidate).value();
    EXPECT_EQ(text.launch.maps[0].rounds_to_tf32, tf32);
    EXPECT_EQ(text.launch.maps[1].rounds_to_tf32, tf32);
    EXPECT_THAT(text.source.text, HasSubstr(tf32 ? "EXACT = 0;" : "EXACT = 1;"));
  }
}

/// The sums of three products leave room for tiles of 64 rows and 128 columns.
TEST(CudaMatmul, ExactFloatsHaveTilesOfTheirOwn) {
  MatmulSpec spec = layer("gelu");
  spec.element = spec.out = DType::f32;
  CudaMatmulProblem problem = problem_of(spec);
  problem.exact = true;
  CudaMatmulChoice choice;
  choice.tile_y = 64;
  EXPECT_THAT(refuse_cuda_matmul(problem, choice, sample_card()), HasSubstr("64 rows"));
  choice.ping_pong = false;
  choice.tile_y = 128;
  EXPECT_EQ(refuse_cuda_matmul(problem, choice, sample_card()), "");
  choice.tile_y = 136;
  EXPECT_THAT(refuse_cuda_matmul(problem, choice, sample_card()), HasSubstr("registers"));
  for (const std::int64_t m : {1, 32, 197, 4096}) {
    spec.m = m;
    problem = problem_of(spec);
    problem.exact = true;
    const std::vector<CudaMatmulChoice> choices = cuda_matmul_choices(problem, sample_card());
    EXPECT_GE(choices.size(), 4U);
    for (const CudaMatmulChoice& each : choices)
      EXPECT_LE(make_cuda_matmul(problem, each, sample_card()).launch.shape.shared_bytes,
                sample_card().shared_bytes);
  }
}

TEST(CudaMatmul, LibrariesAreAskedForAndNamed) {
  Machine machine = with_gpu(detect_machine(1), sample_card());
  const Kernel kernel = matmul_kernel(layer("bias"));
  EXPECT_THAT(cublaslt_space.bind(kernel, machine).refusal, HasSubstr("schedules.cublaslt"));
  machine.gpu_tools.cublaslt = 130100;
  EXPECT_EQ(cublaslt_space.bind(kernel, machine).refusal, "");
  EXPECT_THAT(cublaslt_space.bind(matmul_kernel(layer("gelu")), machine).refusal, HasSubstr("epilogue"));
  const Candidate candidate = bound(cublaslt_space, kernel, machine).at({3});
  EXPECT_EQ(Candidate::parse(candidate.to_string()), candidate);
  const CudaTemplate product = cuda_template_of(kernel, candidate).value();
  ASSERT_TRUE(product.launch.library);
  EXPECT_EQ(std::get<LibraryMatmul>(*product.launch.library).algorithm, 3);
  const CudaObject object = parse_cuda_object(compile_to_object(kernel, candidate, machine.target));
  EXPECT_EQ(object.launch, product.launch);
  EXPECT_EQ(object.image, "");
}

TEST(CudaMatmul, RefusesWithAReason) {
  MatmulSpec spec = layer("none");
  spec.k = 3076;
  EXPECT_THAT(refuse_tensor_maps(read_cuda_matmul(matmul_kernel(spec)).problem), HasSubstr("multiple of 16"));
  spec = layer("none");
  spec.element = spec.out = DType::f32;
  spec.a_transposed = true;
  EXPECT_THAT(refuse_tensor_maps(read_cuda_matmul(matmul_kernel(spec)).problem), HasSubstr("32 bits"));
  CudaMatmulChoice choice;
  choice.tile_y = 256;
  EXPECT_THAT(refuse_cuda_matmul(problem_of(layer("none")), choice, sample_card()), HasSubstr("registers"));
  choice.split = 2;
  choice.tile_y = 128;
  EXPECT_THAT(refuse_cuda_matmul(problem_of(layer("none")), choice, sample_card()), HasSubstr("split"));
  EXPECT_THROW((void)make_cuda_matmul(problem_of(layer("none")), choice, sample_card()), UnsupportedError);
}

TEST(CudaMatmul, EveryChoiceOfferedCanBeMade) {
  for (const std::int64_t m : {1, 32, 197, 4096}) {
    MatmulSpec spec = layer("gelu");
    spec.m = m;
    const CudaMatmulProblem problem = problem_of(spec);
    const std::vector<CudaMatmulChoice> choices = cuda_matmul_choices(problem, sample_card());
    EXPECT_GE(choices.size(), 4U);
    for (const CudaMatmulChoice& choice : choices) {
      const CudaTemplate text = make_cuda_matmul(problem, choice, sample_card());
      EXPECT_LE(text.launch.shape.shared_bytes, sample_card().shared_bytes);
      EXPECT_EQ(text.launch.shape.grid[0] % text.launch.shape.cluster, 0U);
    }
  }
}

/// Seen fastest on an H200: the first guess is what runs when nothing is measured.
TEST(CudaMatmul, TheFirstGuessIsAmongTheFastest) {
  const auto first = [](std::int64_t m, std::int64_t n, std::int64_t k, const char* epilogue = "none") {
    MatmulSpec spec = layer(epilogue);
    spec.m = m;
    spec.n = n;
    spec.k = k;
    const CudaMatmulChoice choice = cuda_matmul_choices(problem_of(spec), sample_card())[0];
    return fmt::format("{}x{} {}{}", choice.tile_x, choice.tile_y, choice.ping_pong ? "pp" : "co",
                       choice.swapped ? " swapped" : "");
  };
  EXPECT_EQ(first(8192, 8192, 8192), "128x256 co");
  EXPECT_EQ(first(4096, 4096, 4096), "128x256 co");
  EXPECT_EQ(first(16384, 1024, 4096), "128x256 co");
  EXPECT_EQ(first(4096, 3072, 768), "128x192 pp");
  EXPECT_EQ(first(4096, 768, 3072), "128x192 co");
  EXPECT_EQ(first(6304, 2304, 768), "128x128 pp");
  EXPECT_EQ(first(4096, 768, 3072, "residual"), "128x96 pp swapped");
  EXPECT_EQ(first(6304, 768, 768, "residual"), "128x96 pp swapped");
}

/// A language model's head: its weights pass through the cache once, and rows of an odd pitch leave by 16
/// bytes.
TEST(CudaMatmul, WalksManyRowsTogetherWhereWeightsAreLarge) {
  MatmulSpec spec = layer("none");
  spec.m = 4096;
  spec.n = 50257;
  spec.k = 768;
  const CudaMatmulProblem problem = problem_of(spec);
  const CudaMatmulChoice choice = cuda_matmul_choices(problem, sample_card())[0];
  EXPECT_EQ(choice.group_rows, 4096);
  EXPECT_THAT(make_cuda_matmul(problem, choice, sample_card()).source.text,
              HasSubstr("constexpr int STORE_ROWS = 1;"));
  spec.n = 50304;
  EXPECT_THAT(make_cuda_matmul(problem_of(spec), choice, sample_card()).source.text,
              HasSubstr("constexpr int STORE_BOXES = 1;"));
}

TEST(CudaMatmul, PrintsTheEpilogueAroundTheTemplate) {
  MatmulSpec spec = layer("residual");
  CudaMatmulChoice choice;
  choice.tile_y = 64;
  const CudaTemplate text = make_cuda_matmul(problem_of(spec), choice, sample_card());
  EXPECT_EQ(text.launch.entry, "matmul_bf16_1x256x768x3072");
  EXPECT_EQ(text.launch.pointers, (std::vector<int>{4, 2, 3}));
  for (const char* part :
       {"  static constexpr int x = 256;\n", "constexpr int TILE_Y = 64;\n",
        "constexpr int VECTOR_FLOATS = 64;\n",
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {%0, %1,",
        "struct Arguments {\n  Out* out;\n  const bf16* in2_0;\n  const bf16* in3_1;\n};\n",
        "  for (int i = thread; i < 64; i += 128)\n",
        "    to[0 + i] = y + i < extents.y ? to_float(a.in2_0[0ll * batch + 1ll * (y + i)]) : 0.f;\n",
        "  loaded.in3_1 = load_pair(a.in3_1 + (0ll * batch + 768ll * x + 1ll * y));\n",
        "  return make_float2(epilogue(v.x, in2_0.x, in3_1.x), epilogue(v.y, in2_0.y, in3_1.y));\n"}) {
    EXPECT_NE(text.source.text.find(part), std::string::npos) << part;
  }
}

}  // namespace
}  // namespace sylvite::matmul_test
