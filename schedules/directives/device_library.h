#pragma once
// Functions of the C library, on a GPU.

#include <Halide.h>

namespace sylvite {

/// A pass of Halide's lowering for GPUs: calls of the C library's functions become calls of NVIDIA's of the same names, as
/// nothing else is linked to code for the device.
class DeviceLibrary : public Halide::Internal::IRMutator {
 protected:
  using Halide::Internal::IRMutator::visit;
  Halide::Expr visit(const Halide::Internal::Call* call) override;
};

}  // namespace sylvite
