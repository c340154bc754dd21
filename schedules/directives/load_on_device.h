#pragma once
// A lowering pass for GPU code: what lies on the device is read there.

#include <Halide.h>

namespace sylvite {

/// An index that all elements of a gather share does not change in the loops: Halide may read it ahead of them, and checks ahead
/// of them that it is within bounds. That is on the host, where there is no memory of it. Such values are moved back into the
/// loops, and such checks left out: indices are clamped, and what else is checked does not depend on values.
class LoadOnDevice : public Halide::Internal::IRMutator {
 public:
  using IRMutator::mutate;

 protected:
  using IRMutator::visit;
  Halide::Internal::Stmt visit(const Halide::Internal::LetStmt* let) override;
  Halide::Internal::Stmt visit(const Halide::Internal::AssertStmt* check) override;
};

}  // namespace sylvite
