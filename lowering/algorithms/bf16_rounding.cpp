#include "lowering/algorithms/bf16_rounding.h"

#include <algorithm>
#include <string>
#include <vector>

namespace sylvite {
namespace {

using Halide::BFloat;
using Halide::Expr;
using Halide::Internal::Call;
using Halide::Internal::Shuffle;

constexpr const char* rounding_call = "sylvite_round_to_bf16";
constexpr int instruction_lanes = 32;
constexpr int half = instruction_lanes / 2;

thread_local bool uses_instruction = false;

/// Halide's runtime has the instruction as a function of 32 lanes, found by this name and the lanes.
Expr instruction(const Expr& value) {
  return Call::make(BFloat(16, instruction_lanes), "vcvtne2ps2bf16", {value}, Call::PureExtern);
}

/// REQUIRES a multiple of 16 lanes.
Expr rounded_vector(const Expr& value) {
  const int lanes = value.type().lanes();
  std::vector<Expr> parts;
  for (int begin = 0; begin < lanes; begin += instruction_lanes) {
    const int count = std::min(instruction_lanes, lanes - begin);
    const Expr part = count == lanes ? value : Shuffle::make_slice(value, begin, 1, count);
    if (count == instruction_lanes)
      parts.push_back(instruction(part));
    else
      parts.push_back(Shuffle::make_slice(instruction(Shuffle::make_concat({part, part})), 0, 1, half));
  }
  return parts.size() == 1 ? parts[0] : Shuffle::make_concat(parts);
}

}  // namespace

Expr rounded_to_bf16(const Expr& value) {
  const int lanes = value.type().lanes();
  const Expr word = Halide::reinterpret(Halide::UInt(32, lanes), value);
  const Expr is_nan =
      (word & Halide::cast<std::uint32_t>(0x7fffffff)) > Halide::cast<std::uint32_t>(0x7f800000);
  const Expr rounded = (word + Halide::cast<std::uint32_t>(0x7fff) + ((word >> 16) & 1)) >> 16;
  const Expr bits =
      Halide::cast(Halide::UInt(16, lanes), Halide::select(is_nan, (word >> 16) | 0x40, rounded));
  return Halide::reinterpret(BFloat(16, lanes), bits);
}

Bf16InstructionScope::Bf16InstructionScope(bool is_used) : before_(uses_instruction) {
  uses_instruction = is_used;
}
Bf16InstructionScope::~Bf16InstructionScope() {
  uses_instruction = before_;
}
bool Bf16InstructionScope::is_used() {
  return uses_instruction;
}

Expr call_of_bf16_rounding(const Expr& value) {
  return Call::make(BFloat(16), rounding_call, {value}, Call::PureExtern);
}

bool is_bf16_rounding(const Call& call) {
  return call.name == rounding_call;
}

Expr RoundByInstruction::visit(const Call* call) {
  if (!is_bf16_rounding(*call)) return IRMutator::visit(call);
  const std::string name = Halide::Internal::unique_name("rounded");
  const Expr value = Halide::Internal::Variable::make(call->args[0].type(), name);
  const bool is_whole = call->type.lanes() % half == 0;
  return Halide::Internal::Let::make(name, mutate(call->args[0]),
                                     is_whole ? rounded_vector(value) : rounded_to_bf16(value));
}

}  // namespace sylvite
