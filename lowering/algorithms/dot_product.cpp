#include "lowering/algorithms/dot_product.h"

#include "lowering/algorithms/algorithm_builder.h"

namespace sylvite {

using Halide::Expr;

PairedFold paired_fold(std::int64_t extent, int pair, const std::vector<std::int64_t>& further) {
  std::vector<std::int64_t> extents = {extent};
  if (pair > 1) extents = {pair, extent / pair};
  const std::size_t outer = extents.size() - 1;
  extents.insert(extents.end(), further.begin(), further.end());
  PairedFold fold;
  fold.domain = reduction_domain(extents);
  fold.outer = fold.domain[static_cast<int>(outer)];
  fold.whole = fold.outer;
  if (pair == 1) return fold;
  fold.within = fold.domain[0];
  fold.whole = fold.outer * pair + fold.within;
  return fold;
}

std::vector<Expr> joined_pair(const PairedFold& fold, std::vector<Expr> arguments) {
  if (fold.within.defined()) arguments.insert(arguments.begin(), fold.within);
  return arguments;
}

Expr stored_product(const Expr& a, const Expr& b) {
  if (a.type().is_int_or_uint()) return Halide::cast<std::int32_t>(a) * Halide::cast<std::int32_t>(b);
  return Halide::cast<float>(a) * Halide::cast<float>(b);
}

}  // namespace sylvite
