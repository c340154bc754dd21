#include "sylvite/types.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace sylvite::types_test {
namespace {

constexpr std::int64_t huge = std::int64_t{1} << 61;

TEST(DType, NamesRoundTrip) {
  for (int i = 0; i <= static_cast<int>(DType::boolean); ++i) {
    const auto dtype = static_cast<DType>(i);
    EXPECT_EQ(parse_dtype(dtype_name(dtype)), dtype);
    const int kinds =
        (is_float(dtype) ? 1 : 0) + (is_signed_integer(dtype) ? 1 : 0) + (is_unsigned_integer(dtype) ? 1 : 0);
    EXPECT_EQ(kinds, dtype == DType::boolean ? 0 : 1) << dtype_name(dtype);
  }
  EXPECT_THROW((void)parse_dtype("float"), ModelError);
  EXPECT_EQ(dtype_size(DType::bf16), 2U);
  EXPECT_EQ(dtype_size(DType::boolean), 1U);
}

TEST(Shape, TellsKnownFromSymbolic) {
  const Shape shape{Extent::symbol("N"), 3};
  EXPECT_FALSE(shape.is_known());
  EXPECT_THROW((void)shape.known(), UnknownExtentError);
  EXPECT_EQ(shape.product().to_string(), "3*N");
  EXPECT_EQ(shape.to_string(), "[N,3]");
  EXPECT_EQ(Shape(Dims{2, 3}), (Shape{2, 3}));
  EXPECT_EQ((Shape{2, 3}).known(), (Dims{2, 3}));
  EXPECT_EQ((Shape{2, 3}).product(), 6);
}

TEST(TensorType, CountsElementsAndBytes) {
  TensorType type = make_type(DType::f32, {2, 20, 3});
  EXPECT_EQ(type.element_count(), 120);
  EXPECT_EQ(type.byte_size(), 480);
  type.layout.channel_block = 16;
  EXPECT_EQ(type.storage_dims(), (Dims{2, 2, 3, 16}));
  EXPECT_EQ(type.element_count(), 120);
  EXPECT_EQ(type.byte_size(), 768);
  EXPECT_EQ(type.to_string(), "f32[2,20,3]@c16");
  EXPECT_EQ(make_type(DType::i8, {}).element_count(), 1);
}

TEST(TensorType, RefusesWhatCannotBeCounted) {
  EXPECT_THROW((void)make_type(DType::f64, {huge}).byte_size(), ModelError);
  EXPECT_THROW((void)make_type(DType::f32, {huge, huge}).element_count(), ModelError);
  EXPECT_THROW((void)make_type(DType::f32, {-1}).element_count(), ModelError);
  TensorType type{DType::f32, {Extent::symbol("batch"), Extent(3)}, {}};
  EXPECT_EQ(type.to_string(), "f32[batch,3]");
  EXPECT_THROW((void)type.dims(), UnsupportedError);
  type = make_type(DType::f32, {3});
  type.layout.channel_block = 16;
  EXPECT_THROW((void)type.storage_dims(), InternalError);
}

TEST(CheckedProduct, TreatsZeroExtentsSafely) {
  EXPECT_EQ(checked_product({}, "x"), 1);
  EXPECT_EQ(checked_product({0, 5}, "x"), 0);
  EXPECT_EQ(checked_product({huge, 2}, "x"), std::int64_t{1} << 62);
  EXPECT_THROW((void)checked_product({0, huge, huge}, "x"), ModelError);  // strides would overflow
  EXPECT_THROW((void)checked_product({huge, 4}, "x"), ModelError);
}

TEST(DenseStrides, AreRowMajor) {
  EXPECT_EQ(dense_strides({2, 3, 4}), (Dims{12, 4, 1}));
  EXPECT_EQ(dense_strides({}), Dims{});
}

}  // namespace
}  // namespace sylvite::types_test
