// Scaled dot-product attention (Vaswani et al., arXiv 1706.03762) spelled out:
//   matmul(softmax(a*Q @ b*K^T + mask), V)  ->  attention(Q, K, V, mask) {scale = a*b}
// Scales may stand on Q, on K^T, on the scores, or on several of them. A constant additive mask that is zero
// up to the diagonal and hugely negative above it becomes causal = 1, so that masked work can be skipped.

#include <algorithm>
#include <utility>

#include "frontend/graph/rewrite.h"
#include "frontend/passes/pass_list.h"

namespace sylvite {
namespace {

struct Scores {
  ValueId q = no_value;
  ValueId k_transposed = no_value;
  ValueId mask = no_value;
  double scale = 1;
};

bool match_product(const Graph& graph, ValueId id, Scores& scores) {
  const Scaled product = scaled(graph, id);
  const Node* matmul = producer_if(graph, product.base, Op::matmul);
  if (matmul == nullptr) return false;
  const Scaled q = scaled(graph, matmul->inputs[0]);
  const Scaled k = scaled(graph, matmul->inputs[1]);
  scores.q = q.base;
  scores.k_transposed = k.base;
  scores.scale = product.factor * q.factor * k.factor;
  return true;
}

std::optional<Scores> match_scores(const Graph& graph, ValueId id) {
  Scores scores;
  if (match_product(graph, id, scores)) return scores;
  const Node* sum = producer_if(graph, id, Op::add);
  if (sum == nullptr || graph.type(id).dtype != DType::f32) return std::nullopt;
  const bool matched = either_order(*sum, [&](ValueId product, ValueId mask) {
    scores.mask = mask;
    return graph.type(product).shape == graph.type(id).shape && match_product(graph, product, scores);
  });
  return matched ? std::optional(scores) : std::nullopt;
}

bool same_batch(const TensorType& a, const TensorType& b) {
  return a.rank() == b.rank() && std::equal(a.shape.begin(), a.shape.end() - 2, b.shape.begin());
}

/// True for an L by L constant, batches of one, that is 0 where s <= l and below -1e30 elsewhere.
bool is_causal_mask(const Graph& graph, ValueId id, std::int64_t queries, std::int64_t keys) {
  constexpr double minus_infinity = -1e30;
  if (id == no_value || !graph.is_constant(id) || queries != keys) return false;
  const Tensor& mask = *graph.value(id).constant;
  if (mask.size() != queries * keys || mask.dims().size() < 2 || mask.dims().back() != keys) return false;
  for (std::int64_t l = 0; l < queries; ++l) {
    for (std::int64_t s = 0; s < keys; ++s) {
      const double value = mask.as_double(l * keys + s);
      if (s <= l ? value != 0.0 : value > minus_infinity) return false;
    }
  }
  return true;
}

bool fuse(GraphRewriter& rewriter, const Node& node, const Node& product) {
  Graph& graph = rewriter.graph();
  const Node* softmax = producer_if(graph, product.inputs[0], Op::softmax);
  const ValueId v = product.inputs[1];
  if (softmax == nullptr || softmax->attributes.integer("axis") != graph.type(product.inputs[0]).rank() - 1)
    return false;
  const std::optional<Scores> scores = match_scores(graph, softmax->inputs[0]);
  if (!scores || scores->scale == 0.0) return false;
  const TensorType q = graph.type(scores->q);
  const TensorType k_transposed = graph.type(scores->k_transposed);
  if (q.rank() < 3 || !same_batch(q, k_transposed) || !same_batch(q, graph.type(v))) return false;
  std::vector<std::int64_t> perm(static_cast<std::size_t>(q.rank()));
  for (std::size_t i = 0; i < perm.size(); ++i) perm[i] = static_cast<std::int64_t>(i);
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  const std::int64_t queries = q.dims().at(perm.size() - 2);
  const std::int64_t keys = k_transposed.dims().back();
  const bool causal = is_causal_mask(graph, scores->mask, queries, keys);
  ValueId k = graph.add(Op::transpose, {scores->k_transposed}, {{"perm", perm}});
  if (const Node* inner = producer_if(graph, scores->k_transposed, Op::transpose)) {
    std::vector<std::int64_t> merged;
    merged.reserve(perm.size());
    for (std::int64_t axis : perm)
      merged.push_back(inner->attributes.integers("perm")[static_cast<std::size_t>(axis)]);
    const ValueId base = inner->inputs[0];
    k = std::is_sorted(merged.begin(), merged.end()) ? base
                                                     : graph.add(Op::transpose, {base}, {{"perm", merged}});
  }
  std::vector<ValueId> inputs = {scores->q, k, v};
  if (scores->mask != no_value && !causal) inputs.push_back(scores->mask);
  rewriter.replace(node, Op::attention, inputs,
                   {{"scale", scores->scale}, {"causal", std::int64_t{causal ? 1 : 0}}, {"softcap", 0.0}});
  return true;
}

}  // namespace

Graph fuse_attention(const Graph& graph) {
  return rewrite_nodes(graph, [](GraphRewriter& rewriter, const Node& node) {
    if (node.op != Op::matmul) return false;
    rewriter.copy(node);
    const Node copied = rewriter.graph().nodes().back();
    (void)fuse(rewriter, node, copied);
    return true;
  });
}

}  // namespace sylvite
