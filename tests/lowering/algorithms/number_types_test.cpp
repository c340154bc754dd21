#include <gtest/gtest.h>

#include "tests/lowering/algorithms/node_cases.h"
#include "tests/support/pointwise_ops.h"

namespace sylvite::number_types_test {
namespace {

std::vector<NodeCase> each(const std::vector<Op>& ops, const std::vector<int>& inputs) {
  std::vector<NodeCase> nodes;
  nodes.reserve(ops.size());
  for (const Op op : ops) nodes.push_back({op, inputs, {}});
  return nodes;
}

Tensor floats(DType dtype, const std::vector<double>& values) {
  Tensor tensor(dtype, {static_cast<std::int64_t>(values.size())});
  for (std::size_t i = 0; i < values.size(); ++i) tensor.set_double(static_cast<std::int64_t>(i), values[i]);
  return tensor;
}

const std::vector<double> specials = {0.0, -0.0, 1.0, -1.0, 0.5,   -0.5,  1.5,      2.5,       -2.5,
                                      3.7, -3.7, 20,  -20,  0.001, 1e-30, infinity, -infinity, nan};

TEST(Algorithm, UnaryFloatsAgreeOnSpecialValues) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    const auto count = static_cast<std::int64_t>(specials.size());
    std::vector<NodeCase> nodes = each(pointwise_ops(1, dtype), {0});
    nodes.push_back({Op::gelu, {0}, {{"approximate", "tanh"}}});
    nodes.push_back({Op::cast, {0}, {{"to", "bool"}}});
    nodes.push_back({Op::cast, {0}, {{"to", "bf16"}}});
    nodes.push_back({Op::cast, {0}, {{"to", "f16"}}});
    nodes.push_back({Op::cast, {0}, {{"to", "bf16"}, {"rounds", std::int64_t{0}}}});
    check({of(dtype, {count})}, nodes, {floats(dtype, specials)}, 1e-5);
  }
}

TEST(Algorithm, BinaryFloatsAgreeOnSpecialValues) {
  std::vector<double> left;
  std::vector<double> right;
  for (const double a : specials) {
    for (const double b : specials) {
      left.push_back(a);
      right.push_back(b);
    }
  }
  const auto count = static_cast<std::int64_t>(left.size());
  for (const DType dtype : {DType::f32, DType::f64}) {
    check({of(dtype, {count}), of(dtype, {count})}, each(pointwise_ops(2, dtype), {0, 1}),
          {floats(dtype, left), floats(dtype, right)});
  }
}

TEST(Algorithm, SixteenBitFloatsComputeInSingle) {
  for (const DType dtype : {DType::f16, DType::bf16}) {
    check({of(dtype, {5, 7}), of(dtype, {7})},
          {{Op::add, {0, 1}, {}},
           {Op::mul, {0, 1}, {}},
           {Op::exp, {0}, {}},
           {Op::less, {0, 1}, {}},
           {Op::cast, {0}, {{"to", "f32"}}},
           {Op::reduce_sum, {0}, {{"axes", std::vector<std::int64_t>{1}}}},
           {Op::transpose, {0}, {{"perm", std::vector<std::int64_t>{1, 0}}}}},
          {}, dtype == DType::f16 ? 2e-3 : 2e-2);
  }
}

/// A relu of the halves must not let the code generator forget that they may be NaN.
TEST(Algorithm, ConversionsKeepNaNAndInfinity) {
  const std::vector<double> values = {nan,   infinity, -infinity, 0.0,     -0.0,  6e-8, 65504, 65519,
                                      65520, -1e30,    1e300,     -1e-300, 1e-40, 2.5,  -3.25, 448};
  const auto count = static_cast<std::int64_t>(values.size());
  for (const std::string from : {"f16", "bf16", "f32", "f64"}) {
    for (const std::string to : {"f16", "bf16", "f32", "f64"}) {
      const Kernel kernel = kernel_of(fmt::format(
          "graph g(%x: {0}[{2}]) {{\n %y: {0}[{2}] = relu(%x)\n %z: {1}[{2}] = cast(%y) {{to=\"{1}\"}}\n"
          " %n: {1}[{2}] = neg(%z)\n return %n\n}}",
          from, to, count));
      if (from == "f64" && to != "f32" && to != "f64") continue;  // rounded twice
      check_candidate(kernel, reference_candidate(kernel), {floats(parse_dtype(from), values)}, 0);
      const std::string stage = output_stage(kernel, kernel.body.outputs.front());
      const Candidate vectors =
          Candidate::parse(fmt::format("form: generic\n{}.vectorize(d0, 16);\n", stage));
      check_candidate(kernel, vectors, {floats(parse_dtype(from), values)}, 0);
    }
  }
}

/// Every code of every narrow type to f32 and f16, and back from numbers around every code.
TEST(Algorithm, NarrowTypes) {
  for (const std::string dtype :
       {"f8e4m3fn", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz", "f8e8m0", "f4e2m1", "i4", "u4", "i2", "u2"}) {
    const DType type = parse_dtype(dtype);
    const int codes = 1 << dtype_bits(type);
    Tensor all(type, {codes});
    for (int i = 0; i < codes; ++i)
      static_cast<std::uint8_t*>(all.mutable_data())[i] = static_cast<std::uint8_t>(i);
    if (!is_narrow_float(type))
      for (int i = 0; i < codes; ++i) all.set_int64(i, i);
    std::vector<double> around = {infinity, -infinity, nan, 1e30, -1e30, 1e-30, -1e-30};
    for (int i = 0; i < codes; ++i) {
      const double value = all.as_double(i);
      for (const double factor : {0.93, 1.0, 1.0625, 1.07})
        if (std::abs(value) < 1e30) around.push_back(value * factor);
    }
    if (is_narrow_float(type)) {
      check({all.type()},
            {{Op::cast, {0}, {{"to", std::string("f32")}}}, {Op::cast, {0}, {{"to", std::string("f64")}}}},
            {all}, 0);
    } else {
      check({all.type()},
            {{Op::cast, {0}, {{"to", std::string("f32")}}}, {Op::cast, {0}, {{"to", std::string("i32")}}}},
            {all}, 0);
      around.erase(around.begin(), around.begin() + 5);  // beyond 64 bits nothing is promised
    }
    const Tensor given = floats(DType::f32, around);
    check({given.type()}, {{Op::cast, {0}, {{"to", dtype}}}}, {given}, 0);
  }
}

TEST(Algorithm, BitsReadAsAnotherType) {
  const std::vector<std::pair<std::string, std::string>> pairs = {
      {"f32", "i32"}, {"i32", "f32"}, {"f16", "u16"}, {"u16", "bf16"},  {"f64", "u64"},
      {"i8", "u8"},   {"u8", "bool"}, {"bool", "i8"}, {"u8", "f8e5m2"}, {"f8e4m3fn", "i8"}};
  for (const auto& [from, to] : pairs) {
    Tensor values(parse_dtype(from), {64});
    for (std::int64_t i = 0; i < 64; ++i) values.set_int64(i, i * 7 - 100);
    check({values.type()}, {{Op::bitcast, {0}, {{"to", to}}}}, {values}, 0);
  }
  Tensor nibbles(DType::u4, {16});
  for (std::int64_t i = 0; i < 16; ++i) nibbles.set_int64(i, i);
  check(
      {nibbles.type()},
      {{Op::bitcast, {0}, {{"to", std::string("i4")}}}, {Op::bitcast, {0}, {{"to", std::string("f4e2m1")}}}},
      {nibbles}, 0);
}

TEST(Algorithm, IntegersOfEveryWidth) {
  for (const DType dtype :
       {DType::i8, DType::i16, DType::i32, DType::i64, DType::u8, DType::u16, DType::u32, DType::u64}) {
    std::vector<NodeCase> nodes =
        each({Op::add, Op::sub, Op::mul, Op::minimum, Op::maximum, Op::equal, Op::less, Op::greater_equal,
              Op::bitwise_and, Op::bitwise_or, Op::bitwise_xor},
             {0, 1});
    nodes.push_back({Op::div, {0, 2}, {}});
    nodes.push_back({Op::mod, {0, 2}, {}});
    nodes.push_back({Op::mod, {0, 2}, {{"fmod", 1L}}});
    nodes.push_back({Op::abs, {0}, {}});
    nodes.push_back({Op::sign, {0}, {}});
    nodes.push_back({Op::bitwise_not, {0}, {}});
    nodes.push_back({Op::cast, {0}, {{"to", "f32"}}});
    nodes.push_back({Op::cast, {0}, {{"to", "u8"}}});
    if (is_unsigned_integer(dtype)) {
      nodes.push_back({Op::shift_left, {0, 2}, {}});
      nodes.push_back({Op::shift_right, {0, 2}, {}});
    } else {
      nodes.push_back({Op::neg, {0}, {}});
    }
    const TensorType type = of(dtype, {40});
    const Kernel kernel = kernel_with({type, type, type}, nodes);
    std::vector<Tensor> values = random_inputs(kernel);
    for (std::int64_t i = 0; i < 40; ++i)
      if (values[2].as_int64(i) == 0) values[2].set_int64(i, 3);
    check_candidate(kernel, reference_candidate(kernel), values);
  }
}

// By fewer than none or more bits than there are, what is left are bits of the sign.
TEST(Algorithm, ShiftsOfSignedIntegers) {
  const std::vector<std::int64_t> values = {-8, -8, -8, -8, 8, 8, 8, 8, -1, 1, 127, -128};
  const std::vector<std::int64_t> amounts = {0, 1, 100, -1, 0, 1, 100, -1, 7, 7, 6, 7};
  for (const DType dtype : {DType::i8, DType::i16, DType::i32, DType::i64}) {
    Tensor x(dtype, {12});
    Tensor by(dtype, {12});
    for (std::int64_t i = 0; i < 12; ++i) {
      x.set_int64(i, values[static_cast<std::size_t>(i)]);
      by.set_int64(i, amounts[static_cast<std::size_t>(i)]);
    }
    check({x.type(), by.type()}, {{Op::shift_left, {0, 1}, {}}, {Op::shift_right, {0, 1}, {}}}, {x, by}, 0);
  }
}

TEST(Algorithm, Booleans) {
  std::vector<NodeCase> nodes = each({Op::logical_and, Op::logical_or, Op::logical_xor, Op::equal}, {0, 1});
  nodes.push_back({Op::logical_not, {0}, {}});
  nodes.push_back({Op::cast, {0}, {{"to", "f32"}}});
  nodes.push_back({Op::where, {0, 2, 3}, {}});
  nodes.push_back({Op::transpose, {0}, {{"perm", std::vector<std::int64_t>{1, 0}}}});
  check({of(DType::boolean, {3, 9}), of(DType::boolean, {9}), f32({3, 9}), f32({1})}, nodes);
}

}  // namespace
}  // namespace sylvite::number_types_test
