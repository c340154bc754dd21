// Control flow, resolved while importing.

#include <onnx-ml.pb.h>

#include "base/error.h"
#include "frontend/onnx_ops.h"

namespace sylvite {
namespace {

/// A known condition imports its branch only. An unknown one imports both and selects, where their types
/// agree.
void if_op(ImportContext& c) {
  const Sym condition = c.input(0);
  if (condition.is_constant()) {
    const bool holds = condition.constant().as_int64(0) != 0;
    const std::vector<Sym> results = c.import_subgraph(c.subgraph(holds ? "then_branch" : "else_branch"), {});
    for (std::size_t i = 0; i < results.size(); ++i) c.output(static_cast<int>(i), results[i]);
    return;
  }
  const std::vector<Sym> taken = c.import_subgraph(c.subgraph("then_branch"), {});
  const std::vector<Sym> other = c.import_subgraph(c.subgraph("else_branch"), {});
  if (taken.size() != other.size()) throw ModelError("the branches have different numbers of outputs");
  for (std::size_t i = 0; i < taken.size(); ++i) {
    if (taken[i].dtype() != other[i].dtype() || taken[i].dims() != other[i].dims()) {
      throw UnsupportedError(
          "the branches give output {} different types; input 0 must be known when the model is imported: "
          "bind the "
          "model input it comes from to a constant",
          i);
    }
    c.output(static_cast<int>(i), where(reshape(condition, {}), taken[i], other[i]));
  }
}

const OnnxOp rows[] = {
    {"If", 1, if_op},
};

}  // namespace

std::span<const OnnxOp> onnx_control_ops() {
  return rows;
}

}  // namespace sylvite
