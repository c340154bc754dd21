// Products of 8-bit integers in every space that takes them, beside the interpreter: sums are exact, and the
// work in f32 around them is the same to the bit, but for what follows the product.

#include <gmock/gmock.h>

#include <limits>

#include "tests/support/bound_space.h"
#include "tests/support/run_kernel.h"

namespace sylvite::quantized_products_test {
namespace {

std::string product(int m, int n, int k) {
  return fmt::format(
      "graph g(%a: f32[{0},{2}], %w: i8[{2},{1}], %ws: f32[{1}], %wz: i32[{1}]) {{\n"
      "%v: f32[{0},{1}] = quantized_matmul(%a, %w, %ws, %wz) return %v }}",
      m, n, k);
}

std::string with_epilogue(int m, int n, int k) {
  return fmt::format(
      "graph g(%a: f32[{0},{2}], %w: i8[{2},{1}], %ws: f32[{1}], %wz: i32[{1}], %b: f32[{1}], "
      "%r: f32[{0},{1}]) {{\n"
      "%v: f32[{0},{1}] = quantized_matmul(%a, %w, %ws, %wz)\n%s: f32[{0},{1}] = add(%v, %b)\n"
      "%g: f32[{0},{1}] = gelu(%s)\n%t: f32[{0},{1}] = add(%g, %r) return %t }}",
      m, n, k);
}

void set_column_sums(std::vector<Tensor>& inputs) {
  const Tensor& weight = inputs.at(1);
  const std::int64_t columns = weight.dims()[1];
  for (std::int64_t column = 0; column < columns; ++column) {
    std::int64_t sum = 0;
    for (std::int64_t at = column; at < weight.size(); at += columns) sum += weight.as_int64(at);
    inputs.at(3).set_int64(column, sum);
  }
}

/// All values of i8 but the lowest in the weights, which quantisation never makes; rows of very different
/// sizes, some on one side of zero.
std::vector<Tensor> wide_inputs(const Kernel& kernel) {
  std::vector<Tensor> inputs = random_inputs(kernel, 7);
  std::mt19937 generator(3);
  Tensor& weight = inputs.at(1);
  for (std::int64_t i = 0; i < weight.size(); ++i)
    weight.set_int64(i, static_cast<std::int64_t>(generator() % 255) - 127);
  set_column_sums(inputs);
  const std::int64_t k = weight.dims()[0];
  for (std::int64_t i = 0; i < inputs[0].size(); ++i) {
    const auto row = static_cast<double>(i / k % 9);
    inputs[0].set_double(i, (inputs[0].as_double(i) + row - 4) * std::pow(0.3, row));
  }
  return inputs;
}

void expect_agrees(const std::string& text, const Candidate& candidate, double tolerance) {
  const Kernel kernel = kernel_of(text);
  check_candidate(kernel, candidate, wide_inputs(kernel), tolerance);
}

/// The heuristic point, and points with other tiles.
void expect_space_agrees(const std::string& name, const Machine& machine) {
  const Space& space = space_named(name);
  const int extents[][3] = {{1, 40, 64}, {7, 33, 96}, {37, 75, 64}, {70, 130, 192}};
  for (const auto& [m, n, k] : extents) {
    const Kernel kernel = kernel_of(product(m, n, k));
    ASSERT_EQ(space.bind(kernel, machine).refusal, "") << kernel.text;
    expect_agrees(product(m, n, k), heuristic_candidate(space, kernel, machine), 0);
    const std::string longer = with_epilogue(m, n, k);
    const Kernel with_more = kernel_of(longer);
    expect_agrees(longer, heuristic_candidate(space, with_more, machine), 1e-6);
  }
}

TEST(QuantizedProducts, ReferenceAgrees) {
  expect_space_agrees("reference", detect_machine(1));
}
TEST(QuantizedProducts, WholeStagesAgree) {
  expect_space_agrees("whole_stages", detect_machine(2));
}

TEST(QuantizedProducts, PanelsAgree) {
  expect_space_agrees("matmul_panels", detect_machine(1));
  expect_space_agrees("matmul_panels", detect_machine(2));
}

/// Processors without instructions for such products compute the same.
TEST(QuantizedProducts, PanelsAgreeOnOlderProcessors) {
  const Space& space = space_named("matmul_panels");
  const Kernel kernel = kernel_of(product(13, 40, 96));
  const std::vector<Tensor> inputs = wide_inputs(kernel);
  const Machine machine = detect_machine(1);
  const Candidate candidate = heuristic_candidate(space, kernel, machine);
  for (const char* features :
       {"sse41", "sse41-avx-f16c-fma-avx2", "sse41-avx-f16c-fma-avx2-avx512-avx512_skylake"}) {
    const Halide::Target older(std::string("x86-64-linux-") + features);
    const bool can_run = Halide::host_supports_target_device(older) &&
                         (!older.has_feature(Halide::Target::AVX512) ||
                          Halide::get_host_target().has_feature(Halide::Target::AVX512));
    if (!can_run) continue;
    expect_close(run_candidate(kernel, candidate, inputs, older), interpret(kernel.body, inputs), 0,
                 features);
  }
}

/// Every value of every parameter, the others as the heuristic has them.
void expect_points_agree(const std::string& name, const Machine& machine, const std::string& text) {
  const Space& space = space_named(name);
  const Kernel kernel = kernel_of(text);
  const BoundSpace taken = bound(space, kernel, machine);
  for (const Parameter& parameter : taken.parameters) {
    for (const std::int64_t value : parameter.values) {
      try {
        expect_agrees(text, taken.at(point_with(taken, {{parameter.name, value}})), 0);
      } catch (const UnsupportedError&) {  // NOLINT(bugprone-empty-catch): too many tiles
      }
    }
  }
}

TEST(QuantizedProducts, EveryPointOfPanelsAgrees) {
  expect_points_agree("matmul_panels", detect_machine(2), product(21, 70, 36));
}

class QuantizedAmx : public testing::Test {
 protected:
  void SetUp() override {
    if (!machine_.amx) GTEST_SKIP() << "the processor has no AMX, or the system does not let programs use it";
  }
  Machine machine_ = detect_machine(2);
};

TEST_F(QuantizedAmx, Agrees) {
  expect_space_agrees("matmul_amx", machine_);
  expect_space_agrees("matmul_amx", detect_machine(1));
}

TEST_F(QuantizedAmx, EveryPointAgrees) {
  expect_points_agree("matmul_amx", machine_, product(70, 100, 128));
}

/// Sums near the largest that 32 bits hold.
TEST_F(QuantizedAmx, LongSumsAreExact) {
  const Space& space = space_named("matmul_amx");
  const int k = 1 << 16;
  const Kernel kernel = kernel_of(product(2, 32, k));
  std::vector<Tensor> inputs = random_inputs(kernel);
  for (std::int64_t i = 0; i < inputs[0].size(); ++i) inputs[0].set_double(i, i < k ? 1 : -1);
  for (std::int64_t i = 0; i < inputs[1].size(); ++i) inputs[1].set_int64(i, i % 32 < 16 ? 127 : -127);
  set_column_sums(inputs);
  check_candidate(kernel, heuristic_candidate(space, kernel, machine_), inputs, 0);
}

TEST_F(QuantizedAmx, RowsThatAreNotFiniteGiveNanAndDoNotSpread) {
  const Space& space = space_named("matmul_amx");
  const Kernel kernel = kernel_of(product(20, 40, 64));
  std::vector<Tensor> inputs = wide_inputs(kernel);
  inputs[0].set_double(64 * 3 + 5, std::numeric_limits<double>::infinity());
  inputs[0].set_double(64 * 9 + 63, std::numeric_limits<double>::quiet_NaN());
  for (std::int64_t i = 0; i < 64; ++i) inputs[0].set_double(std::int64_t{64} * 11 + i, 0);
  check_candidate(kernel, heuristic_candidate(space, kernel, machine_), inputs, 0);
  check_candidate(kernel, reference_candidate(kernel), inputs, 0);
}

TEST_F(QuantizedAmx, IsTheFirstChoice) {
  EXPECT_EQ(spaces_for(kernel_of(product(128, 768, 768)), machine_).front().name, "matmul_amx");
  EXPECT_EQ(spaces_for(kernel_of(product(128, 768, 20)), machine_).front().name, "matmul_panels");
}

}  // namespace
}  // namespace sylvite::quantized_products_test
