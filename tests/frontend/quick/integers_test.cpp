#include <limits>

#include "tests/frontend/quick/as_reference.h"

namespace sylvite::integers_test {
namespace {

constexpr DType integers[] = {DType::i8,  DType::u8,  DType::i16, DType::u16,
                              DType::i32, DType::i64, DType::u32, DType::boolean};

/// Elements of all sizes that the type holds.
Tensor numbers(DType dtype, const Dims& dims, std::int64_t step = 37) {
  Tensor tensor(dtype, dims);
  for (std::int64_t i = 0; i < tensor.size(); ++i)
    tensor.set_int64(i, dtype == DType::boolean ? i % 2 : (i * step - 300) * (i % 5 == 0 ? 7919 : 1));
  return tensor;
}

Tensor odd_floats(float scale) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> values = {0,       0.5F,      1.5F,    2.5F,     -0.5F,        -1.5F,  127.5F,
                                     -128.5F, 254.6F,    300,     -300,     32767,        -32769, 70000,
                                     -2e5F,   4194303,   4194305, 1e9F,     -1e9F,        3e20F,  -3e20F,
                                     1e-40F,  -infinity, 0.49F,   infinity, std::nanf("")};
  Tensor tensor(DType::f32, {2, static_cast<std::int64_t>(values.size())});
  for (std::int64_t i = 0; i < tensor.size(); ++i)
    tensor.set_double(i, static_cast<double>(scale * values[static_cast<std::size_t>(i) % values.size()]));
  return tensor;
}

TEST(QuickIntegers, CastsAgreeWithTheReference) {
  for (const DType from : integers) {
    for (const DType to : integers)
      expect_as_reference(Op::cast, {numbers(from, {3, 41})}, {{"to", std::string(dtype_name(to))}}, 0);
    for (const DType to : {DType::f32, DType::f64, DType::f16, DType::bf16})
      expect_as_reference(Op::cast, {numbers(from, {3, 41})}, {{"to", std::string(dtype_name(to))}}, 0);
  }
  for (const DType to : integers) {
    expect_as_reference(Op::cast, {odd_floats(1)}, {{"to", std::string(dtype_name(to))}}, 0);
    expect_as_reference(Op::cast, {waves({70}, DType::f16)}, {{"to", std::string(dtype_name(to))}}, 0);
    expect_as_reference(Op::cast, {waves({70}, DType::f64)}, {{"to", std::string(dtype_name(to))}}, 0);
  }
}

TEST(QuickIntegers, StepsAgreeWithTheReference) {
  for (const DType to : {DType::i8, DType::u8, DType::i16, DType::u16}) {
    SCOPED_TRACE(dtype_name(to));
    Tensor zero(to, {});
    zero.set_int64(0, 5);
    Tensor zeros(to, {26});
    for (std::int64_t i = 0; i < zeros.size(); ++i) zeros.set_int64(i, i % 7);
    for (const float scale : {1.0F, 0.01F}) {
      const Tensor x = odd_floats(scale);
      const Tensor one = Tensor::scalar_f32(scale);
      const auto to_steps = [&](const Inputs& inputs) {
        expect_as_reference(Op::round, inputs, {{"to", std::string(dtype_name(to))}}, 0);
      };
      to_steps({x, one});
      to_steps({x, one, zero});
      to_steps({x, Tensor::of<float>(DType::f32, {2, 1}, {scale, 3 * scale}), zero});
      to_steps({x, positive({26}), zeros});
    }
  }
  expect_as_reference(Op::round, {waves({3, 50}, DType::f16), Tensor::scalar_f32(0.1F)}, {{"to", "i8"}}, 0);
}

TEST(QuickIntegers, SumsAndProductsWrapAround) {
  for (const DType dtype : integers) {
    if (dtype == DType::boolean) continue;
    SCOPED_TRACE(dtype_name(dtype));
    for (const Op op : {Op::add, Op::sub, Op::mul, Op::minimum, Op::maximum}) {
      expect_as_reference(op, {numbers(dtype, {4, 1, 35}), numbers(dtype, {3, 1}, 91)}, {}, 0);
      expect_as_reference(op, {numbers(dtype, {3, 35}), numbers(dtype, {3, 35}, 91)}, {}, 0);
      expect_as_reference(op, {numbers(dtype, {1}), numbers(dtype, {35}, 91)}, {}, 0);
    }
  }
}

}  // namespace
}  // namespace sylvite::integers_test
