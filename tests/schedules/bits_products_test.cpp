// Products by weights of a few bits in every space that takes them, beside the interpreter.

#include <gmock/gmock.h>

#include <random>

#include "tests/schedules/fixed_machines.h"
#include "tests/support/bound_space.h"
#include "tests/support/run_kernel.h"

namespace sylvite::bits_products_test {
namespace {

struct Case {
  int m, n, k, bits, block;
  const char* zeros = "";    ///< their type; none where empty
  const char* rows = "f32";  ///< the type of the left operand
  const char* scales = "f32";
};

const Case cases[] = {
    {1, 40, 64, 4, 32},
    {1, 33, 80, 4, 32, "u8"},
    {3, 64, 128, 8, 16, "f32"},
    {5, 70, 100, 4, 16},
    {13, 48, 96, 8, 32, "u8"},
    {2, 20, 256, 4, 128, "u8", "f32", "f16"},
    {4, 36, 64, 4, 32, "", "bf16", "bf16"},
    {7, 16, 40, 2, 16},
    {9, 130, 64, 4, 64, "", "f16", "f16"},
};

std::string product(const Case& c, const char* op, bool has_epilogue = false) {
  const int blocks = (c.k + c.block - 1) / c.block;
  const bool has_zeros = c.zeros[0] != 0;
  const std::string zeros = has_zeros ? fmt::format(", %wz: {}[{},{}]", c.zeros, c.n, blocks) : "";
  const std::string result = fmt::format("{}[{},{}]", c.rows, c.m, c.n);
  return fmt::format(
      "graph g(%a: {0}[{1},{2}], %w: u8[{3},{4},{5}], %ws: {6}[{3},{4}]{7}, %r: {8}) {{\n"
      "%v: {8} = {9}(%a, %w, %ws{10}) {{bits={11}, block={12}}}\n{13} }}",
      c.rows, c.m, c.k, c.n, blocks, c.block * c.bits / 8, c.scales, zeros, result, op,
      has_zeros ? ", %wz" : "", c.bits, c.block,
      has_epilogue ? fmt::format("%s: {0} = silu(%v)\n%t: {0} = mul(%s, %r) return %t", result)
                   : "return %v");
}

/// All bytes, and scales that keep sums near 1.
std::vector<Tensor> filled_inputs(const Kernel& kernel) {
  std::vector<Tensor> inputs = random_inputs(kernel, 7);
  std::mt19937 generator(3);
  for (std::size_t i = 1; i < inputs.size(); ++i)
    for (std::int64_t at = 0; at < inputs[i].size(); ++at)
      if (inputs[i].dtype() == DType::u8)
        inputs[i].set_int64(at, i == 1 ? generator() % 256 : generator() % 4);
      else if (kernel.input_is_weight[i])
        inputs[i].set_double(at, i == 2 ? 0.002 * (1 + generator() % 8) : generator() % 5);
  return inputs;
}

double tolerance_of(const Case& c) {
  const std::string rows = c.rows;
  return rows == "f32" ? 2e-5 : rows == "f16" ? 2e-3 : 2e-2;
}

void expect_agrees(const Case& c, const std::string& text, const Candidate& candidate) {
  const Kernel kernel = kernel_of(text);
  check_candidate(kernel, candidate, filled_inputs(kernel), tolerance_of(c));
}

void expect_space_agrees(const std::string& name, const Machine& machine) {
  const Space& space = space_named(name);
  bool has_epilogue = false;
  for (const Case& c : cases) {
    for (const char* op : {"matmul_bits", "quantized_matmul_bits"}) {
      const std::string text = product(c, op, has_epilogue);
      const Kernel kernel = kernel_of(text);
      ASSERT_EQ(space.bind(kernel, machine).refusal, "") << kernel.text;
      expect_agrees(c, text, heuristic_candidate(space, kernel, machine));
      has_epilogue = !has_epilogue;
    }
    if (c.bits == 4) has_epilogue = !has_epilogue;  // both come with each
  }
}

TEST(BitsProducts, ReferenceAgrees) {
  expect_space_agrees("reference", detect_machine(1));
}
TEST(BitsProducts, WholeStagesAgree) {
  expect_space_agrees("whole_stages", detect_machine(2));
}
TEST(BitsProducts, PackedBitsAgree) {
  expect_space_agrees("matmul_bits", detect_machine(1));
  expect_space_agrees("matmul_bits", detect_machine(2));
}

/// Every value of every parameter, the others as the heuristic has them. The heuristic's own point, which takes seconds
/// to compile as each does, is in the tests above.
TEST(BitsProducts, EveryPointAgrees) {
  const Space& space = space_named("matmul_bits");
  const Machine machine = detect_machine(2);
  const Case c = {11, 150, 224, 4, 32, "u8"};
  for (const char* op : {"matmul_bits", "quantized_matmul_bits"}) {
    const std::string text = product(c, op);
    const Kernel kernel = kernel_of(text);
    const BoundSpace taken = bound(space, kernel, machine);
    for (const Parameter& parameter : taken.parameters) {
      for (const std::int64_t value : parameter.values) {
        const Point point = point_with(taken, {{parameter.name, value}});
        if (point == taken.heuristic) continue;
        try {
          expect_agrees(c, text, taken.at(point));
        } catch (const UnsupportedError&) {  // NOLINT(bugprone-empty-catch): the tile does not fit
        }
      }
    }
  }
}

/// Processors without instructions for such products compute the same: with steps, in pairs.
TEST(BitsProducts, AgreeOnOlderProcessors) {
  if (!has_avx2()) GTEST_SKIP() << "this processor has no AVX2";
  const Space& space = space_named("matmul_bits");
  const auto [machine, target] = avx2_machine(1);
  for (const Case& c : {Case{5, 40, 96, 4, 32, "u8"},
                        {1, 33, 80, 4, 16},
                        {2, 20, 256, 4, 128},
                        {7, 16, 40, 2, 16},
                        {3, 64, 128, 8, 32}}) {
    for (const char* op : {"matmul_bits", "quantized_matmul_bits"}) {
      const Kernel kernel = kernel_of(product(c, op));
      const std::vector<Tensor> inputs = filled_inputs(kernel);
      const Candidate candidate = heuristic_candidate(space, kernel, machine);
      EXPECT_EQ(candidate.form.parameters.contains("pairs"), c.bits < 8 && op[0] == 'q');
      expect_close(run_candidate(kernel, candidate, inputs, target), interpret(kernel.body, inputs), 2e-5,
                   op);
    }
  }
}

/// The largest numbers by the largest steps, of one sign: sums of pairs come near the end of i16, and not beyond.
TEST(BitsProducts, LargestSumsOfPairsFit) {
  if (!has_avx2()) GTEST_SKIP() << "this processor has no AVX2";
  const auto [machine, target] = avx2_machine(1);
  for (const int bits : {2, 4}) {
    for (const double sign : {1.0, -1.0}) {
      const Kernel kernel = kernel_of(product({2, 32, 256, bits, 128}, "quantized_matmul_bits"));
      std::vector<Tensor> inputs = filled_inputs(kernel);
      for (std::int64_t i = 0; i < inputs[0].size(); ++i) inputs[0].set_double(i, sign);
      for (std::int64_t i = 0; i < inputs[1].size(); ++i) inputs[1].set_int64(i, 255);
      const Candidate candidate = heuristic_candidate(space_named("matmul_bits"), kernel, machine);
      EXPECT_TRUE(candidate.form.parameters.contains("pairs"));
      expect_close(run_candidate(kernel, candidate, inputs, target), interpret(kernel.body, inputs), 2e-5,
                   "");
    }
  }
}

/// A block of zeros, one that is tiny, and those that are not finite.
TEST(BitsProducts, OddBlocksAreAsTheInterpreterHasThem) {
  const Kernel kernel = kernel_of(product({6, 20, 64, 4, 32}, "quantized_matmul_bits"));
  std::vector<Tensor> inputs = filled_inputs(kernel);
  const double infinity = std::numeric_limits<double>::infinity();
  for (std::int64_t i = 0; i < 32; ++i) inputs[0].set_double(i, 0);
  for (std::int64_t i = 64; i < 96; ++i) inputs[0].set_double(i, 1e-38);
  inputs[0].set_double(2 * 64 + 5, infinity);
  inputs[0].set_double(3 * 64 + 40, -infinity);
  inputs[0].set_double(4 * 64 + 63, std::numeric_limits<double>::quiet_NaN());
  for (const char* name : {"matmul_bits", "reference"}) {
    const Candidate candidate = heuristic_candidate(space_named(name), kernel, detect_machine(1));
    const std::vector<Tensor> results = interpret(kernel.body, inputs);
    for (const std::int64_t row : {2, 3, 4}) EXPECT_TRUE(std::isnan(results[0].as_double(row * 20)));
    check_candidate(kernel, candidate, inputs, 2e-5);
  }
}

TEST(BitsProducts, ActivationsOnTheRightAreRefused) {
  const Kernel kernel = kernel_of(
      "graph g(%a: f32[2,32], %b: u8[16,1,16], %ws: f32[16,1]) {\n"
      "%v: f32[2,16] = matmul_bits(%a, %b, %ws) {bits=4, block=32} return %v }");
  EXPECT_THAT(space_named("matmul_bits").bind(kernel, detect_machine(1)).refusal,
              testing::HasSubstr("is no weight of its own"));
}

}  // namespace
}  // namespace sylvite::bits_products_test
