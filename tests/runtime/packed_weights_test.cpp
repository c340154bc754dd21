#include "runtime/packed_weights.h"

#include <gtest/gtest.h>

namespace sylvite::packed_weights_test {
namespace {

Tensor counting(Dims dims) {
  Tensor tensor(DType::f32, std::move(dims));
  for (std::int64_t i = 0; i < tensor.size(); ++i) tensor.set_double(i, static_cast<double>(i));
  return tensor;
}

std::vector<double> values_of(const Tensor& tensor) {
  std::vector<double> values;
  values.reserve(static_cast<std::size_t>(tensor.size()));
  for (std::int64_t i = 0; i < tensor.size(); ++i) values.push_back(tensor.as_double(i));
  return values;
}

TEST(PackedWeights, TakesWhatADonorHasInTheSamePacking) {
  const std::vector<Tensor> weights = {counting({4, 32})};
  const Packing panels{{1, 16}, {2, 0, 3}};
  PackedWeights donor;
  const PackedWeights::Slot given = donor.want(0, panels);
  donor.pack_all(weights, 1);
  PackedWeights other;
  const PackedWeights::Slot same = other.want(0, panels);
  const PackedWeights::Slot different = other.want(0, {{1, 8}, {2, 0, 3}});
  other.pack_all(weights, 1, {{&donor}});
  EXPECT_EQ(values_of(other.at(same)), values_of(donor.at(given)));
  EXPECT_EQ(other.at(same).dims(), (Dims{2, 4, 16}));
  EXPECT_EQ(other.at(different).dims(), (Dims{4, 4, 8}));
}

TEST(PackedWeights, LieInTheOrderInWhichTheyAreWanted) {
  const Packing panels{{1, 16}, {2, 0, 3}};
  const std::vector<Tensor> weights = {counting({5, 17}), counting({16}), counting({4, 32})};
  PackedWeights packed;
  const PackedWeights::Slot second = packed.want(2, panels);
  const PackedWeights::Slot shared = packed.want(1, {});
  const PackedWeights::Slot first = packed.want(0, panels);
  packed.pack_all(weights, 2);
  const auto* begin = static_cast<const char*>(packed.at(second).data());
  EXPECT_EQ(static_cast<const char*>(packed.at(first).data()), begin + std::ptrdiff_t{4} * 32 * 4);
  EXPECT_EQ(values_of(packed.at(first)), values_of(pack(weights[0], panels)));
  EXPECT_EQ(values_of(packed.at(second)), values_of(pack(weights[2], panels)));
  EXPECT_EQ(packed.at(shared).data(), weights[1].data());
}

/// A team of so many is more than the system starts.
TEST(PackedWeights, ArePackedByNoMoreThreadsThanThereAreCores) {
  const std::vector<Tensor> weights = {counting({4, 32})};
  PackedWeights packed;
  const PackedWeights::Slot slot = packed.want(0, {{1, 16}, {2, 0, 3}});
  packed.pack_all(weights, 1'000'000);
  EXPECT_EQ(packed.at(slot).dims(), (Dims{2, 4, 16}));
}

TEST(PackedWeights, KeepsAHugeOneWithItsDonor) {
  const std::vector<Tensor> weights = {Tensor(DType::f32, {1 << 19, 16})};
  PackedWeights donor;
  const PackedWeights::Slot slot = donor.want(0, {{1, 16}, {2, 0, 3}});
  donor.pack_all(weights, 1);
  PackedWeights other;
  EXPECT_EQ(other.want(0, {{1, 16}, {2, 0, 3}}), slot);
  other.pack_all(weights, 1, {{&donor}});
  EXPECT_EQ(other.at(slot).data(), donor.at(slot).data());
}

TEST(PackedWeights, SharesWithOtherPlansByTensorAndPacking) {
  const Packing panels{{1, 16}, {2, 0, 3}};
  const std::vector<Tensor> weights = {counting({4, 32}), counting({5, 17})};
  PackedWeights donor;
  const PackedWeights::Slot given = donor.want(0, panels);
  donor.pack_all(weights, 1);
  PackedWeights other;
  const PackedWeights::Slot different = other.want(0, panels);
  const PackedWeights::Slot same = other.want(1, panels);
  other.pack_all({weights[1], weights[0]}, 1, {{&donor}, true});
  EXPECT_EQ(other.at(same).data(), donor.at(given).data());
  EXPECT_EQ(values_of(other.at(different)), values_of(pack(weights[1], panels)));
  std::set<const void*> counted;
  (void)donor.byte_size(counted);
  EXPECT_EQ(other.byte_size(counted), 5 * 32 * 4);
}

TEST(PackedWeights, SharesWhatComesOutEqual) {
  Tensor table(DType::f32, {3, 16});
  Tensor transposed(DType::f32, {16, 3});
  Tensor other(DType::f32, {3, 16});
  for (std::int64_t i = 0; i < table.size(); ++i) {
    table.set_double(i, static_cast<double>(i));
    transposed.set_double(i % 16 * 3 + i / 16, static_cast<double>(i));
    other.set_double(i, static_cast<double>(i + (i == 47 ? 1 : 0)));
  }
  PackedWeights packed;
  const PackedWeights::Slot gathered = packed.want(0, {});
  const PackedWeights::Slot multiplied = packed.want(1, {{1, 1}, {2, 0}});
  const PackedWeights::Slot different = packed.want(2, {});
  packed.pack_all({table, transposed, other}, 1);
  EXPECT_EQ(packed.at(gathered).data(), packed.at(multiplied).data());
  EXPECT_EQ(packed.at(multiplied).dims(), (Dims{3, 16}));
  EXPECT_NE(packed.at(gathered).data(), packed.at(different).data());
  EXPECT_EQ(packed.byte_size(), 2 * 3 * 16 * 4);
}

}  // namespace
}  // namespace sylvite::packed_weights_test
