#pragma once
// A lowering pass: the lanes of a vector are folded in a tree.

#include <Halide.h>

namespace sylvite {

/// The code generator adds up the lanes of a register, and finds the largest or least of floats, one lane after the other, each
/// step waiting for the one before. Here a vector is folded with its other half until one lane is left. Of the largest or least
/// it does not matter which lanes are seen twice: a vector of odd length is first folded with itself, from either end, to the
/// largest power of two below its length. Sums of other lengths stay as they are.
class EvenFolds : public Halide::Internal::IRMutator {
 public:
  using IRMutator::mutate;

 protected:
  Halide::Expr visit(const Halide::Internal::VectorReduce* fold) override;
};

}  // namespace sylvite
