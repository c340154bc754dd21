#pragma once
// A lowering pass for GPU code: vectors of narrow elements move as one wide word.

#include <Halide.h>

namespace sylvite {

/// Inside GPU loops, turns dense loads and stores of vectors that are 4, 8 or 16 bytes wide and aligned into
/// loads and stores of one integer of that size. Halide does so for four 32-bit elements only; others become
/// one access per element. Buffers must be 16-byte aligned on the device, as all of ours are.
class WideAccess : public Halide::Internal::IRMutator {
 public:
  using IRMutator::mutate;

 protected:
  Halide::Internal::Stmt visit(const Halide::Internal::For* loop) override;
  Halide::Expr visit(const Halide::Internal::Load* load) override;
  Halide::Internal::Stmt visit(const Halide::Internal::Store* store) override;

 private:
  bool on_device_ = false;
};

}  // namespace sylvite
