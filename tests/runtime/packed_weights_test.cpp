#include "runtime/packed_weights.h"

#include <gtest/gtest.h>

namespace sylvite {
namespace {

TEST(PackedWeights, SharesWhatADonorHasInTheSamePacking) {
  const std::vector<Tensor> weights = {Tensor(DType::f32, {4, 32})};
  const Packing panels{{1, 16}, {2, 0, 3}};
  PackedWeights donor;
  const PackedWeights::Slot given = donor.want(0, panels);
  donor.pack_all(weights, 1);
  PackedWeights other;
  const PackedWeights::Slot same = other.want(0, panels);
  const PackedWeights::Slot different = other.want(0, {{1, 8}, {2, 0, 3}});
  other.pack_all(weights, 1, &donor);
  EXPECT_EQ(other.at(same).data(), donor.at(given).data());
  EXPECT_EQ(other.at(same).dims(), (Dims{2, 4, 16}));
  EXPECT_EQ(other.at(different).dims(), (Dims{4, 4, 8}));
}

}  // namespace
}  // namespace sylvite
