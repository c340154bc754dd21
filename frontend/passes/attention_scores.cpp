#include "frontend/passes/attention_scores.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "frontend/graph/rewrite.h"

namespace sylvite {
namespace {

/// The product that is scaled by a number for each of its rows, which goes to `row_scale`; or `id`.
ValueId without_row_scale(const Graph& graph, ValueId id, ValueId& row_scale) {
  const Node* mul = producer_if(graph, id, Op::mul);
  if (mul == nullptr) return id;
  ValueId product = id;
  (void)either_order(*mul, [&](ValueId rows, ValueId factor) {
    const TensorType& type = graph.type(factor);
    if (graph.type(rows).shape != graph.type(id).shape || type.rank() == 0 || type.shape.back() != Extent(1))
      return false;
    product = rows;
    row_scale = factor;
    return true;
  });
  return product;
}

bool is_score(DType dtype) {
  return dtype == DType::f32 || (is_float(dtype) && dtype_size(dtype) == 2);
}

bool match_product(const Graph& graph, ValueId id, Scores& scores) {
  const Scaled rows = scaled_as_f32(graph, id);
  ValueId row_scale = no_value;
  const Scaled product = scaled_as_f32(graph, without_row_scale(graph, rows.base, row_scale));
  const Node* matmul = producer_if(graph, product.base, Op::matmul);
  if (matmul == nullptr) return false;
  const Scaled q = scaled_as_f32(graph, matmul->inputs[0]);
  const Scaled k = scaled_as_f32(graph, matmul->inputs[1]);
  scores.q = q.base;
  scores.k_transposed = k.base;
  scores.scale = rows.factor * product.factor * q.factor * k.factor;
  scores.row_scale = row_scale;
  return true;
}

/// False where another mask has hidden scores as the lowest number does, or would.
bool add_mask(Scores& scores, Mask mask) {
  if (scores.hides_alone) return false;
  if (mask.hidden && *mask.hidden > hides_below) {
    if (!scores.masks.empty()) return false;
    scores.hides_alone = true;
    mask.hidden = std::numeric_limits<float>::lowest();
  }
  scores.masks.push_back(std::move(mask));
  return true;
}

/// where(condition, scores, hidden), or the other way round: a number so low that it stays itself when scores are added, or is taken for one.
bool match_hidden(const Graph& graph, const Node& choice, Scores& scores) {
  const ValueId id = choice.outputs[0];
  for (const bool keeps : {true, false}) {
    const ValueId kept = choice.inputs[keeps ? 1 : 2];
    const std::optional<double> hidden = scalar_constant(graph, choice.inputs[keeps ? 2 : 1]);
    if (!hidden || *hidden > below_scores || graph.type(kept).shape != graph.type(id).shape) continue;
    if (!match_scores(graph, kept, scores)) return false;
    return add_mask(scores, {choice.inputs[0], graph.type(id).dims(), hidden, keeps});
  }
  return false;
}

/// Scores that are scaled before anything is added to them.
bool match_scaled(const Graph& graph, const Scaled& rows, Scores& scores) {
  if (!match_scores(graph, rows.base, scores) || !scores.masks.empty()) return false;
  scores.scale *= rows.factor;
  return true;
}

}  // namespace

ValueId unrounded(const Graph& graph, ValueId id) {
  const Node* cast = producer_if(graph, id, Op::cast);
  if (cast == nullptr) return id;
  const ValueId from = cast->inputs[0];
  return is_score(graph.type(id).dtype) && is_score(graph.type(from).dtype) ? from : id;
}

bool regroups_leading(const Graph& graph, const Node& reshape) {
  const TensorType &from = graph.type(reshape.inputs[0]), &to = graph.type(reshape.outputs[0]);
  return from.rank() >= 3 && to.rank() >= 3 &&
         std::equal(from.shape.end() - 2, from.shape.end(), to.shape.end() - 2);
}

bool match_scores(const Graph& graph, ValueId id, Scores& scores) {
  const Dims space = graph.type(id).dims();
  if (match_product(graph, id, scores)) {
    scores.spaces.push_back(space);
    return true;
  }
  if (const Node* reshape = producer_if(graph, id, Op::reshape)) {
    if (!regroups_leading(graph, *reshape) || !match_scores(graph, reshape->inputs[0], scores)) return false;
    scores.spaces.push_back(space);
    return true;
  }
  if (!is_score(graph.type(id).dtype)) return false;
  if (const ValueId from = unrounded(graph, id); from != id) return match_scores(graph, from, scores);
  if (const Scaled rows = scaled(graph, id); rows.base != id) return match_scaled(graph, rows, scores);
  if (const Node* choice = producer_if(graph, id, Op::where)) return match_hidden(graph, *choice, scores);
  const Node* sum = producer_if(graph, id, Op::add);
  if (sum == nullptr) return false;
  return either_order(*sum, [&](ValueId product, ValueId mask) {
    Scores found;
    if (graph.type(product).shape != graph.type(id).shape || !match_scores(graph, product, found))
      return false;
    scores = std::move(found);
    return add_mask(scores, {mask, space});
  });
}

}  // namespace sylvite
