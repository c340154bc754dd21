// Imports of one model have the tensors that an earlier one made of the same weights.

#include "frontend/graph/made_weights.h"

#include <gtest/gtest.h>

namespace sylvite::made_weights_test {
namespace {

Tensor weight(float value) {
  return Tensor::of(DType::f32, {1024}, std::vector<float>(1024, value));
}

Tensor doubled(const Tensor& tensor) {
  return made_of("doubled", {tensor}, [&] { return weight(2 * tensor.view<float>()[0]); });
}

/// What one import makes of `source`, of which its plan has `doubled(doubled(source))`.
Tensor import_once(MadeWeights& weights, const Tensor& source) {
  MadeWeights::Import import(&weights);
  const Tensor result = doubled(doubled(source));
  import.keep({result});
  return result;
}

TEST(MadeWeights, AreTheSameInEveryImport) {
  MadeWeights weights;
  const Tensor source = weight(1);
  const Tensor first = import_once(weights, source);
  EXPECT_EQ(first.view<float>()[7], 4);
  EXPECT_EQ(import_once(weights, source).identity(), first.identity());
}

TEST(MadeWeights, DependOnTheSourceAndTheRecipe) {
  MadeWeights weights;
  const Tensor source = weight(1);
  const Tensor first = import_once(weights, source);
  EXPECT_NE(import_once(weights, weight(1)).identity(), first.identity());
  MadeWeights::Import import(&weights);
  const Tensor other = made_of("halved", {doubled(source)}, [] { return weight(1); });
  EXPECT_NE(other.identity(), first.identity());
  const Tensor reshaped = made_of("doubled", {doubled(source).reshaped({32, 32})}, [] { return weight(9); });
  EXPECT_EQ(reshaped.view<float>()[0], 9);
}

TEST(MadeWeights, GoWhenImportsDoNotWantThem) {
  MadeWeights weights;
  const Tensor source = weight(1);
  const Tensor first = import_once(weights, source);
  for (int i = 0; i < 3; ++i) (void)import_once(weights, weight(3));
  EXPECT_NE(import_once(weights, source).identity(), first.identity());
}

TEST(MadeWeights, MakeAnewWithoutAnImport) {
  const Tensor source = weight(1);
  EXPECT_NE(doubled(source).identity(), doubled(source).identity());
  const MadeWeights::Import none(nullptr);
  EXPECT_NE(doubled(source).identity(), doubled(source).identity());
}

TEST(MadeWeights, ThatThrewAreMadeByTheNext) {
  MadeWeights weights;
  const Tensor source = weight(1);
  MadeWeights::Import import(&weights);
  EXPECT_THROW((void)made_of("broken", {source}, []() -> Tensor { throw 1; }), int);
  EXPECT_EQ(made_of("broken", {source}, [] { return weight(5); }).view<float>()[0], 5);
}

}  // namespace
}  // namespace sylvite::made_weights_test
