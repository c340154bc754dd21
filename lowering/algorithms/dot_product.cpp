#include "lowering/algorithms/dot_product.h"

#include "lowering/algorithms/algorithm_builder.h"

namespace sylvite {

using Halide::Expr;

namespace {

PairedFold paired_fold_of(const Expr& groups, int pair, const std::vector<Expr>& further) {
  std::vector<Expr> extents;
  if (pair > 1) extents.emplace_back(pair);
  const auto outer = static_cast<int>(extents.size());
  extents.push_back(groups);
  extents.insert(extents.end(), further.begin(), further.end());
  PairedFold fold;
  fold.domain = open_reduction_domain(extents);
  fold.outer = fold.domain[outer];
  fold.whole = fold.outer;
  if (pair == 1) return fold;
  fold.within = fold.domain[0];
  fold.whole = fold.outer * pair + fold.within;
  return fold;
}

}  // namespace

PairedFold paired_fold(std::int64_t extent, int pair, const std::vector<std::int64_t>& further) {
  std::vector<Expr> numbers;
  numbers.reserve(further.size());
  for (const std::int64_t number : further) numbers.emplace_back(static_cast<int>(number));
  return paired_fold_of(static_cast<int>(extent / pair), pair, numbers);
}

PairedFold paired_fold(std::int64_t extent, int pair, const Expr& outermost) {
  return paired_fold_of(static_cast<int>(extent / pair), pair, {outermost});
}

PairedFold single_fold(const Expr& extent) {
  return paired_fold_of(extent, 1, {});
}

std::vector<Expr> joined_pair(const PairedFold& fold, std::vector<Expr> arguments) {
  if (fold.within.defined()) arguments.insert(arguments.begin(), fold.within);
  return arguments;
}

Expr stored_product(const Expr& a, const Expr& b) {
  if (a.type().is_int_or_uint()) return Halide::cast<std::int32_t>(a) * Halide::cast<std::int32_t>(b);
  const Halide::Type type = a.type() == Halide::Float(64) ? Halide::Float(64) : Halide::Float(32);
  return Halide::cast(type, a) * Halide::cast(type, b);
}

}  // namespace sylvite
