#pragma once
// Products of stored elements, added up in f32 or i32. Of bf16 and i16 one instruction multiplies pairs of neighbours
// along the fold (vdpbf16ps, vpmaddwd), so a template stores them side by side: the RVar `within` walks a pair, and schedules
// make it part of the vector. Internal to lowering/.

#include <Halide.h>

#include <vector>

#include "sylvite/types.h"

namespace sylvite {

/// A fold over `extent` elements in groups of `pair`.
struct PairedFold {
  Halide::RDom domain;  ///< r0 walks a pair and r1 the pairs; without pairs r0 walks all
  Halide::Expr whole;   ///< the element
  Halide::Expr within;  ///< its place in the pair; undefined without pairs
  Halide::Expr outer;   ///< the pair; the element without pairs
};
/// REQUIRES pair to divide extent. `further` are the extents of RVars that follow.
[[nodiscard]] PairedFold paired_fold(std::int64_t extent, int pair,
                                     const std::vector<std::int64_t>& further = {});
/// The same with one RVar behind, whose extent may be open.
[[nodiscard]] PairedFold paired_fold(std::int64_t extent, int pair, const Halide::Expr& outermost);
/// Without pairs, over an extent that may be open.
[[nodiscard]] PairedFold single_fold(const Halide::Expr& extent);

/// `arguments` with the place in the pair ahead of them, if there are pairs.
[[nodiscard]] std::vector<Halide::Expr> joined_pair(const PairedFold& fold,
                                                    std::vector<Halide::Expr> arguments);

/// How the left operand of products of `element` is stored: of i8, which is the right one, as u8.
[[nodiscard]] constexpr DType left_element(DType element) {
  return element == DType::i8 ? DType::u8 : element;
}

/// a * b in f32, for two f32 or two BFloat(16); in i32 for integers. The code generator knows dot products by
/// casts, so from_storage will not do here.
[[nodiscard]] Halide::Expr stored_product(const Halide::Expr& a, const Halide::Expr& b);

}  // namespace sylvite
