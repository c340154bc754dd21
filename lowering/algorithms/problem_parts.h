#pragma once
// What the readings of problems have in common.

#include <string>

#include "frontend/graph/views.h"
#include "lowering/plan/kernel.h"
#include "sylvite/id_map.h"

namespace sylvite {

/// Per value: does it depend on `root`?
[[nodiscard]] IdMap<bool> downstream_of(const Graph& body, ValueId root);

/// Why a template cannot take the work around the anchor; empty when it can.
[[nodiscard]] std::string body_refusal(const Kernel& kernel);

/// Why the anchor's values are not of one element that templates multiply; empty when they are: all f32, all bf16, or those of a
/// matmul all f64, but for parameters that infer.h lets differ: a convolution's, and the right operand of a matmul. Of i16 the type
/// rule has seen to it.
[[nodiscard]] std::string element_refusal(const Graph& body, const Node& node);

/// f32 by weights of bf16, as store_narrow makes it.
[[nodiscard]] bool has_wide_rows(const Graph& body, const Node& node);

/// Does `id` take arithmetic to get, beyond index maps of inputs?
[[nodiscard]] bool is_computed(const Graph& body, ValueId id);

/// The weight that `operand` is, or is the transpose of, when it can be packed.
[[nodiscard]] OwnOperand find_weight(const Kernel& kernel, ValueId operand);

}  // namespace sylvite
