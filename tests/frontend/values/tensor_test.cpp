#include "sylvite/tensor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/sanitizer.h"
#include "frontend/values/half.h"
#include "frontend/values/recent_blocks.h"

namespace sylvite::tensor_test {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

TEST(Tensor, StartsZeroedAndAligned) {
  const Tensor tensor(DType::f32, {3, 5});
  EXPECT_EQ(tensor.size(), 15);
  EXPECT_EQ(tensor.byte_size(), 60);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(tensor.data()) % 64, 0U);
  for (std::int64_t i = 0; i < tensor.size(); ++i) EXPECT_EQ(tensor.as_double(i), 0);
  EXPECT_NE(Tensor(DType::f32, {0}).data(), nullptr);
}

TEST(Tensor, TakesMemoryThatCameBackAndClearsIt) {
  const Dims dims = {300, 400};
  const void* before = nullptr;
  {
    Tensor tensor(DType::f32, dims);
    before = tensor.data();
    std::ranges::fill(tensor.mutable_view<float>(), 3.0F);
  }
  const Tensor again(DType::f32, dims), another(DType::f32, dims);
  EXPECT_EQ(again.data(), before);
  EXPECT_NE(another.data(), before);
  EXPECT_EQ(std::ranges::count(again.view<float>(), 0.0F), again.size());
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(again.data()) % 64, 0U);
}

TEST(TensorDeathTest, AddressSanitizerSeesWhoReadsMemoryThatIsKept) {
  if (!has_address_sanitizer) GTEST_SKIP() << "no AddressSanitizer";
  const void* gone = Tensor(DType::f32, {1 << 16}).data();
  EXPECT_DEATH((void)*static_cast<const volatile float*>(gone), "use-after-poison");
}

TEST(Tensor, KeepsSoMuchMemory) {
  for (std::int64_t rows = 1; rows < 200; ++rows) (void)Tensor(DType::f32, {rows, 10000});
  EXPECT_GT(recent_bytes(), 0U);
  EXPECT_LE(recent_bytes(), most_recent_bytes);
  const std::size_t held = recent_bytes();
  (void)Tensor(DType::i8, {static_cast<std::int64_t>(largest_recent_block) + 1});
  (void)Tensor(DType::i8, {100});
  EXPECT_EQ(recent_bytes(), held);
}

TEST(Tensor, RefusesImpossibleSizes) {
  EXPECT_THROW(Tensor(DType::f32, {-1}), ModelError);
  // 2^61 doubles are 2^64 bytes, which must not wrap around to none.
  EXPECT_THROW(Tensor(DType::f64, {std::int64_t{1} << 61}), ModelError);
  EXPECT_THROW(Tensor(DType::f64, {std::int64_t{1} << 61}, nullptr, nullptr), ModelError);
  EXPECT_THROW(Tensor(DType::i8, {std::int64_t{1} << 62}), UnsupportedError);
}

TEST(Tensor, ConvertsElements) {
  Tensor tensor(DType::u8, {3});
  tensor.set_double(0, 300);
  tensor.set_double(1, -5);
  tensor.set_int64(2, 257);
  EXPECT_EQ(tensor.to_int64s(), (std::vector<std::int64_t>{255, 0, 1}));
  Tensor flags(DType::boolean, {2});
  flags.set_double(0, 0.5);
  flags.set_int64(1, 256);
  EXPECT_EQ(flags.to_int64s(), (std::vector<std::int64_t>{1, 1}));
  EXPECT_EQ(Tensor::of<double>(DType::f64, {1}, {1e300}).as_int64(0),
            std::numeric_limits<std::int64_t>::max());
}

TEST(Tensor, ChecksViewsIndicesAndCounts) {
  Tensor tensor(DType::f32, {2});
  EXPECT_THROW((void)tensor.view<double>(), InternalError);
  EXPECT_THROW((void)tensor.as_double(2), InternalError);
  EXPECT_THROW((void)tensor.as_int64(-1), InternalError);
  EXPECT_THROW(tensor.set_double(2, 0), InternalError);
  EXPECT_THROW(tensor.set_int64(2, 0), InternalError);
  EXPECT_THROW((void)tensor.reshaped({3}), InternalError);
  EXPECT_THROW((void)Tensor::of<float>(DType::f32, {2}, {1}), InternalError);
}

TEST(Tensor, SharesBytes) {
  Tensor tensor = Tensor::of<float>(DType::f32, {2, 3}, {1, 2, 3, 4, 5, 6});
  const Tensor reshaped = tensor.reshaped({3, 2});
  EXPECT_EQ(reshaped.data(), tensor.data());
  EXPECT_EQ(reshaped.dims(), (Dims{3, 2}));
  const auto foreign = std::make_shared<std::vector<float>>(std::vector<float>{7, 8});
  const Tensor wrapped(DType::f32, {2}, foreign, foreign->data());
  EXPECT_EQ(wrapped.as_double(1), 8);
  EXPECT_EQ(foreign.use_count(), 2);
}

TEST(Tensor, MakesBytesWhenTheyAreAskedFor) {
  int calls = 0;
  const Tensor tensor = Tensor::later(DType::f32, {2, 1}, [&] {
    ++calls;
    return Tensor::of<float>(DType::f32, {2}, {3, 4});
  });
  // NOLINTNEXTLINE(performance-unnecessary-copy-initialization): the copy is what this tests
  const Tensor copy = tensor, reshaped = tensor.reshaped({2});
  EXPECT_EQ(copy.identity(), reshaped.identity());
  EXPECT_EQ(tensor.byte_size(), 8);
  EXPECT_EQ(calls, 0);
  EXPECT_EQ(reshaped.as_double(1), 4);
  EXPECT_EQ(copy.data(), tensor.data());
  EXPECT_EQ(calls, 1);
  const Tensor chained = Tensor::later(DType::f32, {2}, [tensor] { return Tensor(tensor); });
  EXPECT_EQ(chained.data(), tensor.data());
}

TEST(Tensor, PassesOnWhatMakingItsBytesThrows) {
  const Tensor wrong = Tensor::later(DType::f32, {2}, [] { return Tensor(DType::bf16, {2}); });
  EXPECT_THROW((void)wrong.data(), InternalError);
  EXPECT_THROW((void)Tensor::later(DType::f32, {std::int64_t{1} << 40, std::int64_t{1} << 40}, nullptr),
               ModelError);
}

TEST(Half, RoundsToNearestEven) {
  EXPECT_EQ(static_cast<float>(Half(1.0F)), 1.0F);
  EXPECT_EQ(Half(1.0F).bits, 0x3c00);
  EXPECT_EQ(static_cast<float>(Half(2049.0F)), 2048.0F);
  EXPECT_EQ(Half(65520.0F).bits, 0x7c00);
  EXPECT_EQ(static_cast<float>(Half(5.9604645e-08F)), 5.9604645e-08F);
  EXPECT_TRUE(std::isnan(static_cast<float>(Half(std::nanf("")))));
  // Just above a tie of f16, on the tie after rounding to float.
  EXPECT_EQ(static_cast<double>(Half(1 + std::ldexp(1, -11) + std::ldexp(1, -40))), 1 + std::ldexp(1, -10));
}

TEST(BFloat16, RoundsToNearestEven) {
  EXPECT_EQ(BFloat16(1.0F).bits, 0x3f80);
  EXPECT_EQ(static_cast<float>(BFloat16(257.0F)), 256.0F);
  EXPECT_EQ(static_cast<float>(BFloat16(259.0F)), 260.0F);
  EXPECT_EQ(BFloat16(std::numeric_limits<float>::max()).bits, 0x7f80);
  EXPECT_TRUE(std::isnan(static_cast<float>(BFloat16(std::nanf("")))));
  const double tie = 1 + std::ldexp(1, -8);
  EXPECT_EQ(static_cast<double>(BFloat16(tie)), 1);
  EXPECT_EQ(static_cast<double>(BFloat16(tie + std::ldexp(1, -40))), 1 + std::ldexp(1, -7));
  EXPECT_EQ(static_cast<double>(BFloat16(-tie - std::ldexp(1, -40))), -1 - std::ldexp(1, -7));
  EXPECT_EQ(static_cast<double>(BFloat16(tie - std::ldexp(1, -40))), 1);
  EXPECT_EQ(static_cast<double>(BFloat16(1e300)), infinity);
  EXPECT_EQ(static_cast<double>(BFloat16(-infinity)), -infinity);
  EXPECT_EQ(BFloat16(-1e-300).bits, 0x8000);
}

}  // namespace
}  // namespace sylvite::tensor_test
