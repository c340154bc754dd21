#pragma once
// The op table: one row per core operation. Every imported operator decomposes into these rows; there is no
// class per operation. Names follow ONNX and PyTorch where they agree.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/ops/facts.h"
#include "sylvite/attributes.h"
#include "sylvite/op.h"
#include "sylvite/symbols.h"
#include "sylvite/types.h"

namespace sylvite {

class Tensor;

struct AttributeInfo {
  std::string name;
  /// The default; absent means required. Its kind is the attribute's kind either way (see `kind`).
  std::optional<Attribute> fallback;
  enum class Kind { integer, real, string, integers, reals, extents, graph } kind;
  std::string help;
};

/// Extents that are all numbers are kept as integers.
[[nodiscard]] bool is_of_kind(const Attribute& attribute, AttributeInfo::Kind kind);

/// One row. `infer` is the type and shape rule: it throws ModelError for types that do not fit. What it cannot decide
/// of symbols it takes to fit, and notes as a guard.
/// `evaluate` is the slow, clear reference semantics over dense row-major tensors; absent inputs are nullptr.
/// nullptr for a loop: the interpreter runs its body.
struct OpInfo {
  Op op;
  std::string_view name;
  std::string_view inputs;  ///< names, such as "x, w, bias?": `?` may be absent, `...` is any number
  int min_inputs;
  int max_inputs;
  OpFacts facts;
  std::vector<AttributeInfo> attributes;
  std::vector<TensorType> (*infer)(Op, InputTypes, const Attributes&, Symbols&);
  std::vector<Tensor> (*evaluate)(Op, std::span<const Tensor* const>, const Attributes&,
                                  std::span<const TensorType> output_types);
  std::string_view help;

  [[nodiscard]] bool has(OpTrait trait) const { return facts.has(trait); }
  [[nodiscard]] const AttributeInfo* find_attribute(std::string_view attribute) const;  ///< nullptr when none
};

[[nodiscard]] const OpInfo& op_info(Op op);
[[nodiscard]] std::span<const OpInfo> op_table();
[[nodiscard]] std::optional<Op> find_op(std::string_view name);
[[nodiscard]] inline bool has_trait(Op op, OpTrait trait) {
  return op_info(op).has(trait);
}
/// Does the operation write its result into the bytes of its first input?
[[nodiscard]] inline bool writes_in_place(Op op) {
  return op == Op::write_elements || op == Op::write_nd;
}
/// Is the right operand a weight of a few bits in blocks, rather than a matrix?
[[nodiscard]] inline bool multiplies_bits(Op op) {
  return op == Op::matmul_bits || op == Op::quantized_matmul_bits;
}
/// Is the attribute a list of extents, in which bodies at other sizes may differ?
[[nodiscard]] inline bool has_extents(Op op, std::string_view attribute) {
  const AttributeInfo* const row = op_info(op).find_attribute(attribute);
  return row != nullptr && row->kind == AttributeInfo::Kind::extents;
}
[[nodiscard]] inline const std::vector<std::string>& update_stages(Op op) {
  return op_info(op).facts.update_stages;
}

}  // namespace sylvite
