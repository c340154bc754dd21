#pragma once
// Rounding f32 to bf16 by the processor's own instruction, where there is one.

#include <Halide.h>

namespace sylvite {

/// f32 -> BFloat(16), to nearest even; NaN stays NaN. Integer operations, which every target has.
[[nodiscard]] Halide::Expr rounded_to_bf16(const Halide::Expr& value);

/// While one made with `true` exists, to_storage of its thread rounds to bf16 by a call that only
/// RoundByInstruction understands. Pipelines built so need that pass.
class Bf16InstructionScope {
 public:
  explicit Bf16InstructionScope(bool is_used);
  ~Bf16InstructionScope();
  Bf16InstructionScope(const Bf16InstructionScope&) = delete;
  Bf16InstructionScope& operator=(const Bf16InstructionScope&) = delete;
  [[nodiscard]] static bool is_used();

 private:
  bool before_;
};

/// The call: BFloat(16) of one f32.
[[nodiscard]] Halide::Expr call_of_bf16_rounding(const Halide::Expr& value);
[[nodiscard]] bool is_bf16_rounding(const Halide::Internal::Call& call);

/// A lowering pass: vectors of 16 lanes and more are rounded by vcvtne2ps2bf16, which takes numbers below
/// 2^-126 for zero; other lanes as rounded_to_bf16 does.
class RoundByInstruction : public Halide::Internal::IRMutator {
 protected:
  using IRMutator::visit;
  Halide::Expr visit(const Halide::Internal::Call* call) override;
};

}  // namespace sylvite
