#pragma once
// Attention kernels in the forms that models have, for tests of templates.

#include "lowering/plan/kernel.h"

namespace sylvite {

struct AttentionSpec {
  std::int64_t batch = 2, heads = 3, queries = 64, keys = 64, depth = 64;
  std::int64_t value_depth = 0;  ///< not 0: of the values, which are not fused
  std::int64_t groups = 0;       ///< not 0: so many of heads that share keys and values, which are not fused
  std::int64_t images = 0;       ///< not 0: so many batches, in a dim of their own
  DType element = DType::bf16;
  bool causal = false;
  bool rows_of_heads = false;  ///< tensors lie [batch, row, head, depth], the result too
  Dims mask;                   ///< its shape; none when empty
  DType mask_type = DType::bf16;
  bool fused = false;  ///< q, k and v are slices of one [batch, row, 3, head, depth]
};

namespace attention_kernels {

inline ValueId heads_of(Graph& body, ValueId id) {
  const bool in_groups = body.type(id).rank() == 5;
  return body.add(Op::transpose, {id}, {{"perm", in_groups ? Dims{0, 2, 3, 1, 4} : Dims{0, 2, 1, 3}}});
}
inline ValueId rows_of(Graph& body, ValueId id) {
  const bool in_groups = body.type(id).rank() == 5;
  return body.add(Op::transpose, {id}, {{"perm", in_groups ? Dims{0, 3, 1, 2, 4} : Dims{0, 2, 1, 3}}});
}

/// Of one operand, or of keys and values.
inline Dims heads_dims(const AttentionSpec& spec, bool is_query) {
  if (spec.groups == 0) return {spec.heads};
  if (spec.groups == 1) return {is_query ? spec.heads : 1};
  return {spec.groups, is_query ? spec.heads / spec.groups : 1};
}

inline ValueId part_of(Graph& body, ValueId fused, const AttentionSpec& spec, std::int64_t number) {
  const ValueId part = body.add(Op::slice, {fused},
                                {{"starts", Dims{0, 0, number, 0, 0}},
                                 {"sizes", Dims{spec.batch, spec.keys, 1, spec.heads, spec.depth}},
                                 {"steps", Dims{1, 1, 1, 1, 1}}});
  return body.add(Op::reshape, {part}, {{"shape", Dims{spec.batch, spec.keys, spec.heads, spec.depth}}});
}

}  // namespace attention_kernels

inline Kernel attention_kernel(const AttentionSpec& spec) {
  Graph body;
  std::vector<ValueId> inputs;
  if (spec.fused) {
    const ValueId all =
        body.add_input("qkv", make_type(spec.element, {spec.batch, spec.keys, 3, spec.heads, spec.depth}));
    for (int i = 0; i < 3; ++i)
      inputs.push_back(attention_kernels::heads_of(body, attention_kernels::part_of(body, all, spec, i)));
  } else {
    for (const char* name : {"q", "k", "v"}) {
      const std::int64_t rows = *name == 'q' ? spec.queries : spec.keys;
      const std::int64_t depth = *name == 'v' && spec.value_depth != 0 ? spec.value_depth : spec.depth;
      Dims dims = attention_kernels::heads_dims(spec, *name == 'q');
      dims.insert(spec.rows_of_heads ? dims.begin() : dims.end(), rows);
      dims.insert(dims.begin(), spec.batch);
      dims.push_back(depth);
      if (spec.images != 0) dims.insert(dims.begin(), spec.images);
      const ValueId in = body.add_input(name, make_type(spec.element, dims));
      inputs.push_back(spec.rows_of_heads ? attention_kernels::heads_of(body, in) : in);
    }
  }
  if (!spec.mask.empty()) inputs.push_back(body.add_input("mask", make_type(spec.mask_type, spec.mask)));
  const ValueId out = body.add(Op::attention, inputs, {{"causal", std::int64_t{spec.causal}}});
  body.outputs = {spec.rows_of_heads || spec.fused ? attention_kernels::rows_of(body, out) : out};
  return make_kernel(body, std::vector<bool>(body.inputs.size(), false));
}

}  // namespace sylvite
