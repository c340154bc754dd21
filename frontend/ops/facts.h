#pragma once
// What is known of an operation beside its type rule and its meaning: what fusion, layouts, precisions, schedules
// and estimates decide by. Each row of the op table states its own.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sylvite/attributes.h"
#include "sylvite/types.h"

namespace sylvite {

/// Types of a node's inputs; nullptr for an optional one that is absent.
using InputTypes = std::span<const TensorType* const>;

enum class OpTrait : std::uint32_t {
  pointwise = 1U << 0,  ///< output element i depends on element i of each (broadcast) input
  movement = 1U << 1,   ///< copies elements, computes nothing
  view = 1U << 2,       ///< movement that is an index map of its first input: inlines into readers
  reduction = 1U << 3,  ///< folds over axes
  scan = 1U << 4,
  normalization = 1U << 5,
  matmul = 1U << 6,
  convolution = 1U << 7,
  pooling = 1U << 8,
  attention = 1U << 9,
  gather = 1U << 10,  ///< reads at run-time indices
  scatter = 1U << 11,
  commutative = 1U << 12,  ///< the first two inputs may change places
  creation = 1U << 13,
  finite = 1U << 14,  ///< pointwise, and finite for finite operands, but for sums and products that overflow
  arithmetic = 1U << 15,  ///< pointwise on two numbers that gives a number, in the type that is stored
  row_norm = 1U << 16,    ///< normalises rows by their moments, then scales them
};

/// What an element of the result costs to compute, whatever is folded for it, in simple vector operations.
enum class Cost : std::uint8_t {
  unstated = 0,
  simple = 1,
  function = 8,  ///< tens of instructions, or a call
  call = 40,     ///< a call for each element
};

struct OpFacts {
  std::uint32_t traits = 0;  ///< bits of OpTrait
  Cost cost = Cost::unstated;
  /// Bit i: input i may be f32 beside narrow data, whatever the attributes are. See may_be_wide.
  std::uint32_t wide_inputs = 0;
  /// Suffixes of the stages of the generic algorithm that have updates, in order, such as "_fold".
  std::vector<std::string> update_stages;
  /// Terms of one element of the first result: products that a contraction adds up, elements of a window.
  /// nullptr: one, or what a reduction folds. REQUIRES known shapes.
  double (*terms)(InputTypes, const TensorType& result, const Attributes&) = nullptr;

  [[nodiscard]] bool may_be_wide(std::size_t input) const {
    return input < 32 && (wide_inputs >> input & 1U) != 0;
  }
  [[nodiscard]] bool has(OpTrait trait) const { return (traits & static_cast<std::uint32_t>(trait)) != 0; }
  /// Does it add up products?
  [[nodiscard]] bool multiplies() const {
    return has(OpTrait::matmul) || has(OpTrait::convolution) || has(OpTrait::attention);
  }
};

/// Pixels that a part of filter_gradient sums, of images [N, O, spatial]: a multiple of 64, which templates take at a time.
[[nodiscard]] std::int64_t filter_gradient_part(const Dims& gradient, std::int64_t parts);

[[nodiscard]] double matmul_terms(InputTypes, const TensorType& result, const Attributes&);
[[nodiscard]] double conv_terms(InputTypes, const TensorType& result, const Attributes&);
/// Pixels of a part.
[[nodiscard]] double filter_gradient_terms(InputTypes, const TensorType& result, const Attributes&);
[[nodiscard]] double pool_terms(InputTypes, const TensorType& result, const Attributes&);
/// A score for each key.
[[nodiscard]] double attention_sums_terms(InputTypes, const TensorType& result, const Attributes&);
/// A score for each key, and the products with its slope and with what is summed.
[[nodiscard]] double attention_gradient_terms(InputTypes, const TensorType& result, const Attributes&);
/// Of both products: a score for each key, and the sum of values.
[[nodiscard]] double attention_terms(InputTypes, const TensorType& result, const Attributes&);

}  // namespace sylvite
