#pragma once
// Pointwise operations as the op table has them, so that a new one is tested with the others.

#include <vector>

#include "base/error.h"
#include "frontend/ops/op_table.h"
#include "sylvite/graph.h"

namespace sylvite {

/// Those that take `count` operands of an element type, and whose attributes all have defaults.
inline std::vector<Op> pointwise_ops(int count, DType dtype) {
  std::vector<Op> result;
  for (const OpInfo& row : op_table()) {
    if (!row.has(OpTrait::pointwise) || row.min_inputs != count) continue;
    Graph graph;
    std::vector<ValueId> operands;
    for (int i = 0; i < count; ++i) operands.push_back(graph.add_input("x", make_type(dtype, {1})));
    try {
      (void)graph.add(row.op, operands);
      result.push_back(row.op);
    } catch (const ModelError&) {  // of other element types, or with an attribute that has no default
    }
  }
  return result;
}

}  // namespace sylvite
