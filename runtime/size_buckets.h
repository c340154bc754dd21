#pragma once
// Sizes that lowering decides alike for, so that a model with open sizes has few plans.

#include <cstdint>
#include <optional>

#include "frontend/onnx/model_sizes.h"

namespace sylvite {

[[nodiscard]] double product_of(const Sizes& sizes);
/// Products between the same powers of two have one.
[[nodiscard]] double bucket_of(double product);

/// `bytes`, from which on values at a fixed size are large, for a model at these sizes: values grow with the product of all sizes,
/// and those products that lie between two neighbouring powers of two have the same large values, which are those of the middle
/// one. `bytes` where there are no sizes.
[[nodiscard]] std::int64_t large_bytes_at(const Sizes& sizes, std::int64_t bytes);

/// Sizes that all differ from these, as far as their ranges allow, and from each other, with a product between the same powers of two:
/// a model has the same large values there. nullopt where there are none, or one size is all (sizes_beside does as much).
[[nodiscard]] std::optional<Sizes> sizes_with_like_product(const ModelSizes& model, const Sizes& sizes);

}  // namespace sylvite
