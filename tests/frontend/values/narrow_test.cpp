#include "frontend/values/narrow.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "sylvite/tensor.h"

namespace sylvite::narrow_test {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
constexpr DType floats[] = {DType::f8e4m3fn,   DType::f8e4m3fnuz, DType::f8e5m2,
                            DType::f8e5m2fnuz, DType::f8e8m0,     DType::f4e2m1};

TEST(Narrow, EveryCodeSurvivesTheWayOutAndBack) {
  for (const DType dtype : floats) {
    for (int code = 0; code < 1 << dtype_bits(dtype); ++code) {
      const double value = decode_narrow(dtype, static_cast<std::uint8_t>(code));
      const std::uint8_t again = encode_narrow(dtype, value);
      if (std::isnan(value))
        EXPECT_TRUE(std::isnan(decode_narrow(dtype, again))) << dtype_name(dtype) << ' ' << code;
      else
        EXPECT_EQ(again, code) << dtype_name(dtype);
    }
  }
}

TEST(Narrow, HandComputedValues) {
  EXPECT_EQ(decode_narrow(DType::f8e4m3fn, 0x7e), 448);
  EXPECT_EQ(decode_narrow(DType::f8e4m3fn, 0x01), 0x1p-9);
  EXPECT_EQ(decode_narrow(DType::f8e4m3fnuz, 0x7f), 240);
  EXPECT_EQ(decode_narrow(DType::f8e5m2, 0x7b), 57344);
  EXPECT_EQ(decode_narrow(DType::f8e5m2, 0xfc), -infinity);
  EXPECT_EQ(decode_narrow(DType::f8e5m2fnuz, 0x01), 0x1p-17);
  EXPECT_EQ(decode_narrow(DType::f8e8m0, 0), 0x1p-127);
  EXPECT_EQ(decode_narrow(DType::f4e2m1, 0x7), 6);
  EXPECT_EQ(decode_narrow(DType::f4e2m1, 0x9), -0.5);
}

TEST(Narrow, RoundsTiesToEvenAndSaysWhatIsTooLarge) {
  EXPECT_EQ(encode_narrow(DType::f8e4m3fn, 464), 0x7e);  // half way to 480, which does not exist
  EXPECT_EQ(encode_narrow(DType::f8e4m3fn, 465), 0x7f);
  EXPECT_EQ(encode_narrow(DType::f8e4m3fn, -infinity), 0xff);
  EXPECT_EQ(encode_narrow(DType::f8e5m2, 61440), 0x7c);
  EXPECT_EQ(encode_narrow(DType::f8e5m2, 61439), 0x7b);
  EXPECT_EQ(encode_narrow(DType::f8e5m2fnuz, -1e-9), 0x00);
  EXPECT_EQ(encode_narrow(DType::f8e5m2, -1e-9), 0x80);
  EXPECT_EQ(encode_narrow(DType::f4e2m1, 2.5), encode_narrow(DType::f4e2m1, 2));
  EXPECT_EQ(encode_narrow(DType::f4e2m1, -infinity), 0xf);
  EXPECT_EQ(encode_narrow(DType::f4e2m1, not_a_number), 0x8);
  EXPECT_EQ(encode_narrow(DType::f8e8m0, 1.1), 128);
  EXPECT_EQ(encode_narrow(DType::f8e8m0, -1), 0xff);
}

TEST(Narrow, IntegersKeepTheirLowBits) {
  Tensor tensor(DType::i4, {2});
  tensor.set_int64(0, 9);
  tensor.set_double(1, -9.7);
  EXPECT_EQ(tensor.as_int64(0), -7);
  EXPECT_EQ(tensor.as_int64(1), 7);
  Tensor bits(DType::u2, {1});
  bits.set_int64(0, -1);
  EXPECT_EQ(bits.as_int64(0), 3);
}

}  // namespace
}  // namespace sylvite::narrow_test
