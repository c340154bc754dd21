#pragma once
// torch's rules of which element type an operation on several operands computes in.

#include <string_view>

#include "frontend/torch/torch_context.h"

namespace sylvite {

/// The type that two tensors are compared in: dims count before rank 0, and kinds (boolean, integer, float) before
/// sizes.
[[nodiscard]] DType promoted(Sym a, Sym b);

struct TorchPair {
  Sym a, b;
};
/// Arguments `self` and `other`, of which `other` may be a number, as `promoted` says: a number is of the tensor's type
/// unless it is of a higher kind; a fraction beside integers gives f32.
[[nodiscard]] TorchPair promoted_pair(TorchContext& c, std::string_view self = "self",
                                      std::string_view other = "other");
/// The same as `to`, or as f32 where that is a float of 16 bits and a number is a size, or one that it does not hold: torch computes
/// with the number itself. What is computed of them is of type `to`.
[[nodiscard]] TorchPair pair_with_number(TorchContext& c, DType to);
/// The same of a product or a quotient, of which torch rounds neither fractions nor wider floats without dims to 16 bits.
[[nodiscard]] TorchPair pair_of_factors(TorchContext& c, DType to);
/// As `cast`, where x is f32 only because of how a result of type `to` is computed: a float of 16 bits need not be rounded ahead of what
/// reads it in the same kernel.
[[nodiscard]] Sym narrowed(Sym x, DType to);
/// The same arguments, both as `to`.
[[nodiscard]] TorchPair pair_as(TorchContext& c, DType to, std::string_view self = "self",
                                std::string_view other = "other");

}  // namespace sylvite
