// Variants of one open kernel, of which some are for larger images alone.

#include "runtime/kernel_variants.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lowering/plan/open_kernel.h"
#include "runtime/variant_choice.h"
#include "schedules/machine.h"
#include "tests/schedules/fixed_machines.h"
#include "tests/support/matmul_kernels.h"
#include "tests/support/run_kernel.h"
#include "tests/support/sample_card.h"

namespace sylvite::kernel_variants_test {
namespace {

Kernel convolution(int height, int width) {
  return kernel_of(fmt::format(
      "graph g(%x: f32[1,256,{},{}]@c16, %w: f32[256,256,1,1]) {{ %v: f32[1,256,{},{}]@c16 = "
      "conv(%x, %w) {{dilations=[1, 1], groups=1, pads=[0, 0, 0, 0], strides=[2, 2]}} return %v }}",
      height, width, (height + 1) / 2, (width + 1) / 2));
}

std::optional<Kernel> case_of(KernelVariants& variants, const Kernel& kernel, const Machine& machine) {
  const std::optional<Dims> sizes = sizes_of_case(variants.first(), kernel);
  return sizes ? variants.case_at(*sizes, machine) : std::nullopt;
}

class KernelVariantsTest : public testing::Test {
 protected:
  const Machine machine_ = test_machine(1);
  const Kernel open_ = *generalize(convolution(6, 6), convolution(10, 12));
  const Kernel large_ = narrowed_here(*as_case(open_, convolution(56, 58)));
  const Kernel hinted_ = hinted_here(*as_case(open_, convolution(56, 58)));
};

TEST_F(KernelVariantsTest, NarrowOnesAreForLargeImages) {
  EXPECT_TRUE(is_as_wide(hinted_, open_));
  EXPECT_FALSE(is_as_wide(large_, open_));
  EXPECT_TRUE(as_case(large_, convolution(56, 60)));
  EXPECT_FALSE(as_case(large_, convolution(12, 12)));
  KernelVariants variants(open_);
  variants.add(large_);
  EXPECT_EQ(case_of(variants, convolution(12, 12), machine_)->text, open_.text);
  EXPECT_EQ(case_of(variants, convolution(56, 58), machine_)->text, large_.text);
}

TEST_F(KernelVariantsTest, OneForAllSizesStays) {
  KernelVariants variants(open_);
  for (const Kernel& each : {large_, hinted_}) variants.add(each);
  variants.keep_if([&](const std::string& text) { return text == large_.text || text == hinted_.text; });
  EXPECT_THAT(variants.texts(), testing::ElementsAre(hinted_.text, large_.text));
  variants.keep_if([&](const std::string& text) { return text == large_.text; });
  EXPECT_THAT(variants.texts(), testing::ElementsAre(hinted_.text, large_.text));
  EXPECT_TRUE(variants.has_case(convolution(6, 6)));
}

TEST_F(KernelVariantsTest, AreChosenForLargeImagesWhereTilesOfAllAreSmall) {
  VariedKernel kernel{{open_}, {}};
  for (std::size_t plan = 0; plan < 4; ++plan) {
    const int size = plan == 0 ? 6 : 14;
    kernel.cases.push_back({convolution(size, size + 28 * static_cast<int>(plan)), {plan}});
  }
  const std::vector<ChosenVariant> chosen = choose_variants({kernel}, 4, 2, machine_, [] { return false; });
  ASSERT_FALSE(chosen.empty());
  EXPECT_FALSE(is_as_wide(chosen.front().open, open_)) << chosen.front().open.text;
}

Kernel windows(int height, int width) {
  return kernel_of(fmt::format(
      "graph g(%x: f32[1,64,{0},{1}]@c16, %w: f32[128,64,3,3]) {{ %v: f32[1,128,{0},{1}]@c16 = "
      "conv(%x, %w) {{dilations=[1, 1], groups=1, pads=[1, 1, 1, 1], strides=[1, 1]}} return %v }}",
      height, width));
}

/// Winograd's transforms pay for large images alone: schedules of another space are compared, too.
TEST_F(KernelVariantsTest, AreOfAnotherSpaceWhereThatIsFaster) {
  const Kernel open = *generalize(windows(48, 64), windows(2, 3));
  const VariedKernel kernel{{open}, {{windows(48, 64), {0}}, {windows(2, 3), {1}}}};
  const std::vector<ChosenVariant> chosen = choose_variants({kernel}, 2, 1, machine_, [] { return false; });
  ASSERT_EQ(chosen.size(), 1U);
  EXPECT_EQ(default_choice(open, machine_).space, "conv_winograd");
  EXPECT_EQ(default_choice(chosen.front().open, machine_).space, "conv_blocked");
}

/// Few pixels at a time serve all images, as many as a line has serve sizes to be fast at.
TEST_F(KernelVariantsTest, OfSizesToBeFastAtHaveTilesAsLongAsTheirLines) {
  const Kernel small = convolution(6, 6), large = convolution(14, 14);
  EXPECT_TRUE(as_case(narrowed_here(*as_case(open_, large)), large));
  EXPECT_FALSE(as_case(narrowed_here(*as_case(open_, large)), convolution(12, 14)));
  KernelVariants variants(open_);
  const double before = variants.seconds(large, machine_);
  variants.vary(large, machine_, before);
  EXPECT_EQ(variants.texts().size(), 1U) << "it is worth less";
  variants.vary(large, machine_, 0);
  ASSERT_EQ(variants.texts().size(), 2U);
  EXPECT_FALSE(is_as_wide(variants.kernels().back(), open_));
  EXPECT_LT(variants.seconds(large, machine_), before);
  EXPECT_EQ(case_of(variants, large, machine_)->text, variants.texts().back());
  EXPECT_EQ(case_of(variants, small, machine_)->text, open_.text);
}

Kernel product(int rows) {
  return kernel_of(
      fmt::format("graph g(%x: bf16[{0},3072], %w: bf16[3072,768]) {{ %v: bf16[{0},768] = "
                  "matmul(%x, %w) return %v }}",
                  rows));
}

/// On a GPU sizes to be fast at get tiles of their own, where the template's estimates see that those of others leave much idle.
TEST(DeviceVariants, TilesFitTheSizesToBeFastAt) {
  const Machine machine = with_gpu(test_machine(1), sample_card());
  const Kernel large = product(6304), small = product(2561);
  KernelVariants variants(*generalize(large, product(6107), Sharing::on_device));
  const double before = variants.seconds(small, machine);
  variants.vary(large, machine, 0);
  EXPECT_EQ(variants.texts().size(), 1U) << "hints are its sizes";
  variants.vary(small, machine, before);
  EXPECT_EQ(variants.texts().size(), 1U) << "it is worth less";
  variants.vary(small, machine, 0);
  ASSERT_EQ(variants.texts().size(), 2U);
  EXPECT_LT(variants.seconds(small, machine), before);
  for (const Kernel* each : {&large, &small}) {
    const std::optional<Kernel> found = case_of(variants, *each, machine);
    ASSERT_TRUE(found && found->open);
    EXPECT_EQ(default_choice(*found, machine).candidate.form, default_choice(*each, machine).candidate.form);
  }
}

/// On a device kernels are for any extents: one of other tiles joins where it should be faster, or where nothing tells and the
/// schedule is another. The nearest serves then.
TEST(KernelVariantsOnADevice, HaveTilesForFewRowsAndForMany) {
  const Machine machine = fixed_machine("h200");
  for (const DType element : {DType::bf16, DType::f32}) {
    const auto product = [&](std::int64_t rows) {
      return matmul_kernel({.m = rows, .n = 512, .k = 512, .element = element, .out = element});
    };
    const Kernel open = *generalize(product(20), product(31), Sharing::on_device);
    KernelVariants variants(open);
    variants.vary(product(8000), machine, 0);
    ASSERT_EQ(variants.texts().size(), 2U) << dtype_name(element);
    EXPECT_EQ(case_of(variants, product(24), machine)->text, open.text);
    EXPECT_EQ(case_of(variants, product(7000), machine)->text, variants.texts()[1]);
    variants.vary(product(8100), machine, 0);
    EXPECT_EQ(variants.texts().size(), 2U) << "one serves them";
  }
}

}  // namespace
}  // namespace sylvite::kernel_variants_test
