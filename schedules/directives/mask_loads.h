#pragma once
// A lowering pass: vectors at the edge of an image are loaded under a mask.

#include <Halide.h>

namespace sylvite {

/// What lies outside of an image is kept out by a select, and the place that is read is clamped into the image. In a vector that
/// makes a gather of what is dense. Where the select's condition says that the clamp changes nothing, the elements are loaded
/// as they lie, and those that the select drops are masked. Elements have 32 bits or more, which AVX2 masks, too.
class MaskLoads : public Halide::Internal::IRMutator {
 public:
  using IRMutator::mutate;

 protected:
  Halide::Expr visit(const Halide::Internal::Select* select) override;
  Halide::Expr visit(const Halide::Internal::Load* load) override;

 private:
  /// The branch of a select, with what its condition says of it.
  Halide::Expr branch(const Halide::Expr& condition, bool holds, const Halide::Expr& value);

  Halide::Expr guard_;  ///< which elements are used; undefined outside of selects of vectors
  std::vector<Halide::Expr> differences_;  ///< vectors that are nowhere negative where the guard holds
};

}  // namespace sylvite
