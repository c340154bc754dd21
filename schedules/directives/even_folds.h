#pragma once
// A lowering pass: the largest or least number of a vector of odd length is found in a tree.

#include <Halide.h>

namespace sylvite {

/// The code generator folds lanes in a tree where their number is a power of two. A sum of others is filled up with zeros, but the
/// largest or least of floats is found lane by lane. As it does not matter which of them are seen twice, a vector is first
/// folded with itself, from either end, to the largest power of two below its length.
class EvenFolds : public Halide::Internal::IRMutator {
 public:
  using IRMutator::mutate;

 protected:
  Halide::Expr visit(const Halide::Internal::VectorReduce* fold) override;
};

}  // namespace sylvite
