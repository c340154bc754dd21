#include "schedules/directives/even_folds.h"

#include <bit>

namespace sylvite {

using namespace Halide::Internal;

Halide::Expr EvenFolds::visit(const VectorReduce* fold) {
  const int lanes = fold->value.type().lanes();
  const bool is_max = fold->op == VectorReduce::Max;
  const bool fits = (is_max || fold->op == VectorReduce::Min) && fold->type.is_scalar() &&
                    fold->type.is_float() && !std::has_single_bit(static_cast<unsigned>(lanes));
  if (!fits) return IRMutator::visit(fold);
  const int kept = static_cast<int>(std::bit_floor(static_cast<unsigned>(lanes)));
  // Named, so that the value is computed once.
  const std::string name = unique_name("folded");
  const Halide::Expr value = Variable::make(fold->value.type(), name);
  const Halide::Expr first = Shuffle::make_slice(value, 0, 1, kept);
  const Halide::Expr last = Shuffle::make_slice(value, lanes - kept, 1, kept);
  const Halide::Expr both = is_max ? Max::make(first, last) : Min::make(first, last);
  return Let::make(name, mutate(fold->value), VectorReduce::make(fold->op, both, 1));
}

}  // namespace sylvite
