#include <cmath>
#include <limits>
#include <string_view>

#include "tests/support/pointwise_ops.h"
#include "tests/support/run_kernel.h"

// NaN, infinities and zeros through whole kernels. Those of single operations are in algorithm_test.cpp.

namespace sylvite::special_values_test {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
const double nan = std::numeric_limits<double>::quiet_NaN();

Tensor wave(const Dims& dims) {
  Tensor tensor(DType::f32, dims);
  for (std::int64_t i = 0; i < tensor.size(); ++i)
    tensor.set_double(i, std::sin(0.7 * static_cast<double>(i)));
  return tensor;
}

/// One special value in each of the first rows of five.
Tensor with_specials(const Dims& dims) {
  Tensor tensor = wave(dims);
  tensor.set_double(1, nan);
  tensor.set_double(7, infinity);
  tensor.set_double(12, -infinity);
  return tensor;
}

// Sums are plain arithmetic, which the code generator takes to be finite; what follows in the kernel is not.
TEST(SpecialValues, PassThroughSums) {
  check_kernel(
      "graph g(%x: f32[4,5], %w: f32[5,3]) {\n  %a: f32[4,3] = matmul(%x, %w)\n"
      "  %b: f32[4,3] = sigmoid(%a)\n  return %b\n}\n",
      {with_specials({4, 5}), wave({5, 3})});
  check_kernel(
      "graph g(%x: f32[4,5]) {\n  %a: f32[4] = reduce_sum(%x) {axes=[1], keepdims=0}\n"
      "  %b: f32[4] = log(%a)\n  return %b\n}\n",
      {with_specials({4, 5})});
  check_kernel(
      "graph g(%x: f32[4,5]) {\n  %a: f32[4] = reduce_sum(%x) {axes=[1], keepdims=0}\n"
      "  %b: bool[4] = is_inf(%a) {detect_negative=1, detect_positive=1}\n  return %b\n}\n",
      {with_specials({4, 5})});
}

// x == x and x * 0 == 0 are how programs ask for numbers and for finite ones.
TEST(SpecialValues, EqualNothing) {
  for (const DType type : {DType::f32, DType::f16}) {
    Tensor x(type, {20});
    Tensor y(type, {20});
    const double given[] = {nan, infinity, -infinity, 0, 3};
    for (std::int64_t i = 0; i < 20; ++i) {
      x.set_double(i, given[i % 5]);
      y.set_double(i, given[i / 5]);
    }
    for (const char* of :
         {"equal(%x, %x)", "equal(%a, %a)", "equal(%b, %z)", "less_equal(%a, %a)", "equal(%d, %one)",
          "greater_equal(%d, %one)", "equal(%x, %y)", "cast(%a) {to=\"bool\"}", "equal(%x, %up)",
          "equal(%down, %a)", "less(%x, %up)", "less(%down, %a)", "greater(%d, %down)", "less_equal(%x, %up)",
          "greater_equal(%a, %down)", "less(%up, %x)", "less_equal(%up, %x)"}) {
      // A product by the constant zero that is rounded to f16 is zero to the code generator.
      if (type == DType::f16 && std::string_view(of) == "equal(%b, %z)") continue;
      check_kernel(
          fmt::format("graph g(%x: {0}[20], %y: {0}[20]) {{\n  %z = constant {0}[] {{0.0}}\n"
                      "  %one = constant {0}[] {{1.0}}\n  %up = constant {0}[] {{inf}}\n  %down = constant "
                      "{0}[] {{-inf}}\n  %a: {0}[20] = sub(%x, %y)\n"
                      "  %b: {0}[20] = mul(%x, %z)\n  %d: {0}[20] = div(%x, %y)\n  %e: bool[20] = {1}\n"
                      "  %f: {0}[20] = where(%e, %x, %one)\n  return %e, %f\n}}\n",
                      dtype_name(type), of),
          {x, y}, 0);
    }
  }
  check_kernel(
      "graph g(%x: f32[4,5]) {\n  %a: f32[4] = reduce_sum(%x) {axes=[1], keepdims=0}\n"
      "  %b: bool[4] = equal(%a, %a)\n  return %b\n}\n",
      {with_specials({4, 5})});
}

// Sums, products and shifts that leave the range lose their high bits, as hashes mean them to.
TEST(SpecialValues, WrapAround) {
  for (const DType type : {DType::i32, DType::i64}) {
    const double most = std::ldexp(1.0, dtype_bits(type) - 1);
    Tensor x(type, {9});
    const double given[] = {-most, most / 2, 0, 1, -1, 70000, -70000, most / 2 + most / 4, 1103515245};
    for (std::int64_t i = 0; i < 9; ++i) x.set_double(i, given[i]);
    for (const char* of : {"shift_right(%p, %n)", "shift_right(%up, %n)", "div(%p, %n)", "mod(%p, %n)",
                           "less(%sum, %x)", "less(%p, %zero)", "maximum(%minus, %n)", "less(%size, %zero)",
                           "maximum(%less, %n)", "less(%power, %zero)", "cast(%p) {to=\"f32\"}"}) {
      const std::string_view what = of;
      const std::string_view result = what.starts_with("less")   ? "bool"
                                      : what.starts_with("cast") ? "f32"
                                                                 : dtype_name(type);
      check_kernel(
          fmt::format(
              "graph g(%x: {0}[9]) {{\n  %n = constant {0}[] {{3}}\n  %zero = constant {0}[] {{0}}\n"
              "  %f = constant {0}[] {{1103515245}}\n  %p: {0}[9] = mul(%x, %f)\n  %up: {0}[9] = "
              "shift_left(%x, %n)\n  %sum: {0}[9] = add(%x, %f)\n  %minus: {0}[9] = neg(%x)\n  %size: {0}[9] "
              "= "
              "abs(%x)\n  %less: {0}[9] = sub(%n, %x)\n  %power: {0}[9] = pow(%x, %n)\n  %r: {2}[9] = {1}\n"
              "  return %r\n}}\n",
              dtype_name(type), of, result),
          {x}, 0);
    }
  }
}

TEST(SpecialValues, SaturateAsIntegers) {
  for (const char* type : {"i8", "u8", "i32", "u32", "i64"}) {
    check_kernel(
        fmt::format("graph g(%x: f32[8]) {{\n  %a: {0}[8] = cast(%x) {{to=\"{0}\"}}\n  return %a\n}}\n",
                    type),
        {Tensor::of<float>(DType::f32, {8},
                           {NAN, INFINITY, -INFINITY, 300.7F, -300.7F, 3e9F, -3e9F, 1e20F})});
  }
}

// Narrow integers keep the low bits, of negative numbers too.
TEST(SpecialValues, LeaveTheirLowBits) {
  for (const char* type : {"u2", "i2", "u4", "i4"}) {
    for (const DType from : {DType::f32, DType::f16}) {
      Tensor given(from, {7});
      for (std::int64_t i = 0; i < 7; ++i) given.set_double(i, static_cast<double>(i - 3));
      check_kernel(
          fmt::format("graph g(%x: {1}[7]) {{\n  %a: {0}[7] = cast(%x) {{to=\"{0}\"}}\n  return %a\n}}\n",
                      type, dtype_name(from)),
          {given});
    }
  }
}

// Bounds that are numbers let NaN through from the other side; NaN as a bound wins.
TEST(SpecialValues, ReachBounds) {
  const Tensor given = Tensor::of<float>(DType::f32, {8}, {NAN, INFINITY, -INFINITY, -0.0F, 3, 6, 7, -1});
  for (const char* bound : {"0.0", "6.0", "inf", "nan"}) {
    for (const char* arguments : {"%x, %c", "%c, %x"}) {
      check_kernel(
          fmt::format("graph g(%x: f32[8]) {{\n  %c = constant f32[] {{{0}}}\n  %a: f32[8] = maximum({1})\n"
                      "  %b: f32[8] = minimum({1})\n  return %a, %b\n}}\n",
                      bound, arguments),
          {given}, 0);
    }
  }
}

// The largest of bf16 is found by the order of the stored bits.
TEST(SpecialValues, LargestOfBf16) {
  Tensor given(DType::bf16, {1, 32, 6, 7});
  for (std::int64_t i = 0; i < given.size(); ++i)
    given.set_double(i, std::sin(0.7 * static_cast<double>(i)) - (i % 3 == 0 ? 5 : 0.9));
  const std::vector<double> specials = {nan, -nan, infinity, -infinity, 0.0, -0.0, 3e38, -3e38};
  for (std::size_t i = 0; i < specials.size(); ++i)
    given.set_double(static_cast<std::int64_t>(42 * i + 17), specials[i]);
  for (std::int64_t i = 0; i < 42; ++i) given.set_double(std::int64_t{42} * 20 + i, -infinity);
  for (const char* layout : {"", "@c32"}) {
    check_kernel(
        fmt::format(
            "graph g(%x: bf16[1,32,6,7]{0}) {{\n  %a: bf16[1,32,3,4]{0} = max_pool(%x) {{kernel=[3,3], "
            "strides=[2,2], pads=[1,1,1,1], dilations=[1,1]}}\n  return %a\n}}\n",
            layout),
        {given}, 0);
  }
}

// The code generator may take plain arithmetic with a constant that is not finite for undefined.
TEST(SpecialValues, ConstantsOnEitherSide) {
  const Tensor given = Tensor::of<float>(DType::f32, {8}, {0.5F, -0.5F, 1, -0.0F, NAN, -3, 3e-4F, INFINITY});
  for (const Op op : pointwise_ops(2, DType::f32)) {
    Graph graph;
    const ValueId x = graph.add_input("x", make_type(DType::f32, {8}));
    for (const float constant : {INFINITY, -INFINITY, 0.0F, -0.0F, NAN, -3.0F}) {
      const ValueId c = graph.add_constant(Tensor::scalar_f32(constant));
      graph.outputs.push_back(graph.add(op, {x, c}));
      graph.outputs.push_back(graph.add(op, {c, x}));
    }
    const Kernel kernel = make_kernel(graph, {false});
    check_candidate(kernel, default_candidate(kernel, detect_machine(1)), {given});
  }
}

TEST(SpecialValues, DivisionByTheConstantZero) {
  check_kernel(
      "graph g(%x: f32[4]) {\n  %c = constant f32[] {0.0}\n  %a: f32[4] = div(%x, %c)\n  return %a\n}\n",
      {Tensor::of<float>(DType::f32, {4}, {1, -1, 0, NAN})});
}

TEST(SpecialValues, InfinityInAttention) {
  Tensor values = wave({1, 3, 4});
  values.set_double(8, -infinity);  // the last position
  check_kernel(
      "graph g(%q: f32[1,2,4], %k: f32[1,3,4], %v: f32[1,3,4]) {\n"
      "  %a: f32[1,2,4] = attention(%q, %k, %v) {causal=0, scale=0.5, softcap=0.0}\n  return %a\n}\n",
      {wave({1, 2, 4}), wave({1, 3, 4}), values});
}

}  // namespace
}  // namespace sylvite::special_values_test
