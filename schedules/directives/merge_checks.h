#pragma once
// A lowering pass: what a kernel checks of its buffers when it is called, in one go.

#include <Halide.h>

namespace sylvite {

/// Halide checks each constraint of each buffer by itself, with a call for its own message: of a small kernel that is most of
/// the code, and of the time to compile it. Here the conditions at the kernel's entry are one, with one message. Nothing is
/// checked less: pointers before they are followed, and all else before anything is computed.
class MergeChecks : public Halide::Internal::IRMutator {
 public:
  using IRMutator::mutate;
  Halide::Internal::Stmt mutate(const Halide::Internal::Stmt& entry) override;
};

}  // namespace sylvite
