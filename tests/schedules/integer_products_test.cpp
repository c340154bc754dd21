// Products of 8- and 16-bit integers in the spaces that take them, beside the interpreter: sums are exact.

#include <gmock/gmock.h>

#include "tests/schedules/fixed_machines.h"
#include "tests/support/bound_space.h"
#include "tests/support/run_kernel.h"

namespace sylvite::integer_products_test {
namespace {

struct Elements {
  const char *left, *right;
};
const Elements elements[] = {{"u8", "i8"}, {"i16", "i8"}, {"i16", "i16"}};

/// Every value of bytes; of i16 those that differences of bytes have. The ends are frequent.
std::vector<Tensor> step_inputs(const Kernel& kernel) {
  std::vector<Tensor> inputs = random_inputs(kernel, 7);
  std::mt19937 generator(3);
  for (Tensor& input : inputs) {
    const std::int64_t least = input.dtype() == DType::u8 ? 0 : input.dtype() == DType::i8 ? -128 : -255;
    const std::int64_t most = input.dtype() == DType::i8 ? 127 : 255;
    for (std::int64_t i = 0; i < input.size() && !is_float(input.dtype()); ++i) {
      const std::int64_t ends[] = {least, most,
                                   least + static_cast<std::int64_t>(generator()) % (most - least + 1)};
      input.set_int64(i, ends[generator() % 3]);
    }
  }
  return inputs;
}

std::string product(const Elements& e, int m, int n, int k, const char* right) {
  return fmt::format(
      "graph g(%a: {3}[2,{0},{2}], %{5}: {4}[{2},{1}], %s: f32[{1}]) {{ %v: i32[2,{0},{1}] = matmul(%a, "
      "%{5})\n"
      "%f: f32[2,{0},{1}] = cast(%v) {{to=\"f32\"}} %r: f32[2,{0},{1}] = mul(%f, %s) return %r }}",
      m, n, k, e.left, e.right, right);
}

void expect_agree(const std::string& text, const Space& space, const Machine& machine,
                  const Halide::Target& target) {
  const Kernel kernel = kernel_of(text);
  ASSERT_EQ(space.bind(kernel, machine).refusal, "") << text;
  const std::vector<Tensor> inputs = step_inputs(kernel);
  const Candidate candidate = heuristic_candidate(space, kernel, machine);
  expect_close(run_candidate(kernel, candidate, inputs, target), interpret(kernel.body, inputs), 1e-6, text);
}

void expect_products_agree(const Machine& machine, const Halide::Target& target) {
  const int extents[][3] = {{1, 40, 64}, {7, 33, 96}, {37, 75, 64}};
  for (const Elements& e : elements) {
    for (const auto& [m, n, k] : extents) {
      expect_agree(product(e, m, n, k, "w"), space_named("matmul_panels"), machine, target);
      expect_agree(product(e, m, n, k, "b"), space_named("matmul_activations"), machine, target);
    }
  }
}

TEST(IntegerProducts, MatmulsAgree) {
  for (const int threads : {1, 2}) {
    const Machine machine = test_machine(threads);
    expect_products_agree(machine, Halide::Target(machine.target));
  }
}

/// Bytes are multiplied as i16 there.
TEST(IntegerProducts, MatmulsAgreeOnAvx2) {
  if (!has_avx2()) GTEST_SKIP() << "this processor has no AVX2";
  const auto [machine, target] = avx2_machine(1);
  expect_products_agree(machine, target);
  const Kernel kernel = kernel_of(product(elements[0], 8, 32, 64, "w"));
  EXPECT_TRUE(
      heuristic_candidate(space_named("matmul_panels"), kernel, machine).form.parameters.contains("widen"));
}

std::string convolution(const Elements& e, int block, int channels, int outputs, int window, int stride,
                        bool blocked) {
  const int size = 9, pad = window / 2, out = (size + 2 * pad - window) / stride + 1;
  return fmt::format(
      "graph g(%x: {0}[2,{3},{8},{8}]{9}, %w: {1}[{4},{3},{5},{5}]) {{ %v: i32[2,{4},{7},{7}]@c{2} = "
      "conv(%x, %w) "
      "{{dilations=[1,1], groups=1, pads=[{10},{10},{10},{10}], strides=[{6},{6}]}}\n"
      "%f: f32[2,{4},{7},{7}]@c{2} = cast(%v) {{to=\"f32\"}} return %f }}",
      e.left, e.right, block, channels, outputs, window, stride, out, size,
      blocked ? fmt::format("@c{}", block) : "", pad);
}

void expect_convolutions_agree(const Machine& machine, const Halide::Target& target) {
  const int block = machine.vector_floats;
  for (const Elements& e : elements) {
    for (const int window : {1, 3}) {
      for (const int stride : {1, 2}) {
        for (const int channels : {2 * block, 3 * block / 2, 3}) {
          const std::string text = convolution(e, block, channels, 3 * block, window, stride, channels > 3);
          expect_agree(text, space_named("conv_blocked"), machine, target);
        }
      }
    }
  }
}

TEST(IntegerProducts, ConvolutionsAgree) {
  const Machine machine = test_machine(2);
  expect_convolutions_agree(machine, Halide::Target(machine.target));
}
TEST(IntegerProducts, ConvolutionsAgreeOnAvx2) {
  if (!has_avx2()) GTEST_SKIP() << "this processor has no AVX2";
  const auto [machine, target] = avx2_machine(1);
  expect_convolutions_agree(machine, target);
}

}  // namespace
}  // namespace sylvite::integer_products_test
