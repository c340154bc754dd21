// Scaled dot-product attention (Vaswani et al., arXiv 1706.03762) spelled out:
//   matmul(softmax(a*Q @ b*K^T + mask), V)  ->  attention(Q, K, V, mask) {scale = a*b}
// Scales may stand on Q, on K^T, on the scores, or on several of them; what varies over heads or queries scales Q. Several masks
// become their sum; they may be added while the leading dims of the scores are grouped otherwise, as in windowed attention:
//   softmax(reshape(reshape(Q @ K^T + bias, [images, windows, ...]) + mask, [images*windows, ...]))
// Keys and values that heads share are repeated for each.
// Scores may be replaced, too: where(condition, scores, -inf) is a boolean mask, and a very negative number one that is added.
// Rows that attend to nothing are NaN; where(is_nan(w), 0, w) of the weights w makes them zero, which is done to the result
// if a mask may leave such rows. (Weights that are NaN because scores are stay NaN.)
// A constant mask, of attention or of its gradients, that hides all keys behind the diagonal and no others becomes causal = 1, so
// that masked work can be skipped; one that hides nothing goes.

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "frontend/graph/rewrite.h"
#include "frontend/graph/views.h"
#include "frontend/passes/pass_list.h"

namespace sylvite {
namespace {

/// What is added to scores while their leading dims are those of `space`, or where they are replaced by `hidden`.
struct Mask {
  ValueId id = no_value;
  Dims space;
  std::optional<double> hidden = {};  ///< then `id` is a condition
  bool keeps = true;                  ///< which keeps scores where it is true; false: where it is false
};

constexpr double minus_infinity = -1e30;  ///< and below

struct Scores {
  ValueId q = no_value;
  ValueId k_transposed = no_value;
  std::vector<Mask> masks;
  std::vector<Dims> spaces;  ///< of the scores, on their way through reshapes of their leading dims
  double scale = 1;
  ValueId row_scale = no_value;  ///< what scales rows of scores differently: those of a head, say
};

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

/// Windowed attention adds a mask for each window while its batch is split into images and windows.
bool regroups_leading(const Graph& graph, const Node& reshape) {
  const TensorType &from = graph.type(reshape.inputs[0]), &to = graph.type(reshape.outputs[0]);
  return from.rank() >= 3 && to.rank() >= 3 &&
         std::equal(from.shape.end() - 2, from.shape.end(), to.shape.end() - 2);
}

bool match_scores(const Graph& graph, ValueId id, Scores& scores);

/// where(condition, scores, hidden), or the other way round: a number so low that it stays itself when scores are added.
bool match_hidden(const Graph& graph, const Node& choice, Scores& scores) {
  const ValueId id = choice.outputs[0];
  for (const bool keeps : {true, false}) {
    const ValueId kept = choice.inputs[keeps ? 1 : 2];
    const std::optional<double> hidden = scalar_constant(graph, choice.inputs[keeps ? 2 : 1]);
    if (!hidden || *hidden > minus_infinity || graph.type(kept).shape != graph.type(id).shape) continue;
    if (!match_scores(graph, kept, scores)) return false;
    scores.masks.push_back({choice.inputs[0], graph.type(id).dims(), hidden, keeps});
    return true;
  }
  return false;
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
  if (graph.type(id).dtype != DType::f32) return false;
  if (const Node* choice = producer_if(graph, id, Op::where)) return match_hidden(graph, *choice, scores);
  const Node* sum = producer_if(graph, id, Op::add);
  if (sum == nullptr) return false;
  return either_order(*sum, [&](ValueId product, ValueId mask) {
    if (graph.type(product).shape != graph.type(id).shape || !match_scores(graph, product, scores))
      return false;
    scores.masks.push_back({mask, space});
    return true;
  });
}

bool same_batch(const TensorType& a, const TensorType& b) {
  return a.rank() == b.rank() && std::equal(a.shape.begin(), a.shape.end() - 2, b.shape.begin());
}

/// `id` with the dims before its last two as `space` has them.
ValueId regrouped(Graph& graph, ValueId id, const Dims& space) {
  const Dims dims = graph.type(id).dims();
  Dims wanted(space.begin(), space.end() - 2);
  wanted.insert(wanted.end(), dims.end() - 2, dims.end());
  return wanted == dims ? id : add_reshape(graph, id, wanted);
}

/// A mask of scores in its own space as one in `space`; nothing where it varies along some of the dims that are grouped otherwise.
std::optional<ValueId> mask_in(Graph& graph, const Mask& mask, const Dims& space) {
  const Dims dims = graph.type(mask.id).dims();
  const bool has_all =
      dims.size() == mask.space.size() && std::equal(dims.begin(), dims.end() - 2, mask.space.begin());
  if (has_all) return regrouped(graph, mask.id, space);
  std::size_t same = 0;  // dims at the end that both spaces have
  while (same < std::min(space.size(), mask.space.size()) &&
         space[space.size() - 1 - same] == mask.space[mask.space.size() - 1 - same])
    ++same;
  if (dims.size() <= same) return mask.id;
  const auto behind = dims.end() - static_cast<std::ptrdiff_t>(same);
  if (std::any_of(dims.begin(), behind, [](std::int64_t extent) { return extent != 1; })) return std::nullopt;
  return add_reshape(graph, mask.id, Dims(behind, dims.end()));
}

/// The space with most dims, in which masks tell most apart.
Dims finest_space(const Scores& scores) {
  return *std::ranges::max_element(scores.spaces, {}, [](const Dims& space) { return space.size(); });
}

/// Of conditions alone that hide keys for good: true where all of them keep.
ValueId joint_condition(Graph& graph, ValueId so_far, ValueId condition, bool keeps) {
  const ValueId own = keeps ? condition : graph.add(Op::logical_not, {condition});
  return so_far == no_value ? own : graph.add(Op::logical_and, {so_far, own});
}

/// Zero where a constant condition keeps, and `hidden` elsewhere.
ValueId hidden_table(Graph& graph, ValueId condition, const Mask& mask) {
  const Tensor& is_true = *graph.value(condition).constant;
  Tensor table(DType::f32, is_true.dims());
  for (std::int64_t i = 0; i < table.size(); ++i)
    if ((is_true.as_int64(i) != 0) != mask.keeps) table.set_double(i, *mask.hidden);
  return graph.add_constant(table);
}

/// `so_far`, or zero, where the condition keeps, and `hidden` elsewhere.
ValueId hidden_sum(Graph& graph, ValueId so_far, ValueId condition, const Mask& mask) {
  if (so_far == no_value && graph.is_constant(condition)) return hidden_table(graph, condition, mask);
  const auto number = [&](double value) {
    return graph.add_constant(Tensor::scalar_f32(static_cast<float>(value)));
  };
  const ValueId kept = so_far == no_value ? number(0) : so_far;
  const ValueId low = number(*mask.hidden);
  return graph.add(Op::where,
                   mask.keeps ? std::vector{condition, kept, low} : std::vector{condition, low, kept});
}

/// The masks in `space` as one, a sum or, if it may be, boolean; or no_value; nothing where one does not fit.
std::optional<ValueId> joint_mask(Graph& graph, const Scores& scores, const Dims& space,
                                  bool may_be_condition) {
  const auto hides = [](const Mask& mask) { return mask.hidden && std::isinf(*mask.hidden); };
  const bool is_condition = may_be_condition && std::ranges::all_of(scores.masks, hides);
  ValueId joint = no_value;
  for (const Mask& mask : scores.masks) {
    const std::optional<ValueId> own = mask_in(graph, mask, space);
    if (!own) return std::nullopt;
    if (is_condition)
      joint = joint_condition(graph, joint, *own, mask.keeps);
    else if (mask.hidden)
      joint = hidden_sum(graph, joint, *own, mask);
    else
      joint = joint == no_value ? *own : graph.add(Op::add, {joint, *own});
  }
  return joint;
}

/// What a mask hides, as far as it is known.
enum class Hidden { unknown, nothing, later_keys };

/// Does it hide the keys behind the diagonal of each of its square matrices, or nothing, and no others?
bool hides_just(const Tensor& mask, bool later_keys) {
  const std::int64_t keys = mask.dims().back();
  const bool is_truth = mask.dtype() == DType::boolean;
  for (std::int64_t i = 0; i < mask.size(); ++i) {
    const double value = mask.as_double(i);
    const bool hides = later_keys && i % keys > i / keys % keys;
    if (is_truth ? (value == 0) != hides : (hides ? value > minus_infinity : value != 0)) return false;
  }
  return true;
}

Hidden hidden_by(const Graph& graph, ValueId id, std::int64_t queries, std::int64_t keys) {
  while (const Node* same = producer_if(graph, id, Op::broadcast_to)) id = same->inputs[0];
  if (id == no_value || !graph.is_constant(id) || graph.type(id).rank() < 1) return Hidden::unknown;
  const Tensor& mask = *graph.value(id).constant;
  if (mask.size() == 0) return Hidden::unknown;
  if (hides_just(mask, false)) return Hidden::nothing;
  const Dims& dims = mask.dims();
  const bool is_square =
      queries == keys && dims.size() > 1 && dims.back() == keys && dims[dims.size() - 2] == keys;
  return is_square && hides_just(mask, true) ? Hidden::later_keys : Hidden::unknown;
}

/// The keys, from their transpose in the product.
ValueId keys_of(Graph& graph, ValueId k_transposed) {
  const Dims perm = last_two_swapped(graph.type(k_transposed).rank());
  const Node* transpose = producer_if(graph, k_transposed, Op::transpose);
  const bool is_undone = transpose != nullptr && transpose->attributes.integers("perm") == perm;
  return is_undone ? transpose->inputs[0] : add_transpose(graph, k_transposed, perm);
}

/// May matrices with these leading dims be repeated to those of `like`?
bool fits_each_head(const Dims& dims, const Dims& like) {
  if (dims.size() != like.size()) return false;
  for (std::size_t i = 0; i + 2 < like.size(); ++i)
    if (dims[i] != like[i] && dims[i] != 1) return false;
  return true;
}

/// `id` with its matrices repeated to the leading dims of `like`.
ValueId for_each_head(Graph& graph, ValueId id, const Dims& like) {
  const Dims dims = graph.type(id).dims();
  Dims wanted(like.begin(), like.end() - 2);
  wanted.insert(wanted.end(), dims.end() - 2, dims.end());
  return wanted == dims ? id : graph.add(Op::broadcast_to, {id}, {{"shape", wanted}});
}

/// The weights below a guard that makes rows of NaN zero, or `id` where there is none.
ValueId unguarded(const Graph& graph, ValueId id) {
  const Node* guard = producer_if(graph, id, Op::where);
  if (guard == nullptr || scalar_constant(graph, guard->inputs[1]) != 0.0) return id;
  const Node* is_nan = producer_if(graph, guard->inputs[0], Op::is_nan);
  return is_nan != nullptr && is_nan->inputs[0] == guard->inputs[2] ? guard->inputs[2] : id;
}

/// False for a mask that leaves a key to every row.
bool may_leave_rows_empty(const Graph& graph, ValueId mask) {
  if (mask == no_value) return false;
  if (!graph.is_constant(mask) || graph.type(mask).rank() == 0) return true;
  const Tensor& values = *graph.value(mask).constant;
  const std::int64_t keys = values.dims().back();
  std::int64_t masked = 0;
  for (std::int64_t i = 0; i < values.size(); ++i) {
    masked = i % keys == 0 ? 0 : masked;
    masked += values.as_double(i) == -std::numeric_limits<double>::infinity() ? 1 : 0;
    if (masked == keys) return true;
  }
  return false;
}

/// The result of attention with zeros in the rows that the mask leaves no key.
ValueId with_empty_rows_zero(Graph& graph, ValueId attended, ValueId mask) {
  const auto number = [&](float value) { return graph.add_constant(Tensor::scalar_f32(value)); };
  const int rank = graph.type(mask).rank();
  const Attributes last = {{"axes", Dims{rank - 1}}, {"keepdims", std::int64_t{1}}};
  const ValueId most = rank == 0 ? mask : graph.add(Op::reduce_max, {mask}, last);
  const ValueId is_empty = graph.add(Op::equal, {most, number(-std::numeric_limits<float>::infinity())});
  return graph.add(Op::where, {is_empty, number(0), attended});
}

/// The weights in the dims in which they were made, where the product reads them grouped otherwise.
ValueId ungrouped(const Graph& graph, ValueId id) {
  const Node* reshape = producer_if(graph, id, Op::reshape);
  return reshape != nullptr && regroups_leading(graph, *reshape) ? reshape->inputs[0] : id;
}

/// How many there are over the last two dims.
std::int64_t matrices(const Dims& dims) {
  return product(dims, 0, dims.size() - 2);
}

/// Queries, keys and values in `space`; nothing where they do not fit each other.
std::vector<ValueId> attended_inputs(Graph& graph, const Scores& scores, const Node& product,
                                     const Dims& space) {
  const TensorType q = graph.type(scores.q), k_transposed = graph.type(scores.k_transposed);
  const TensorType out = graph.type(product.outputs[0]), v = graph.type(product.inputs[1]);
  const Dims& made = scores.spaces.front();
  if (q.rank() < 3 || q.rank() != static_cast<int>(made.size()) || q.element_count() == 0 ||
      k_transposed.element_count() == 0 || !std::equal(made.begin(), made.end() - 2, q.shape.begin()) ||
      !fits_each_head(k_transposed.dims(), made) || !fits_each_head(v.dims(), out.dims()) ||
      matrices(out.dims()) != matrices(made))
    return {};
  ValueId queries = scores.q;
  if (scores.row_scale != no_value) queries = graph.add(Op::mul, {queries, scores.row_scale});
  const ValueId keys = for_each_head(graph, keys_of(graph, scores.k_transposed), made);
  const ValueId values = for_each_head(graph, product.inputs[1], out.dims());
  return {regrouped(graph, queries, space), regrouped(graph, keys, space), regrouped(graph, values, space)};
}

bool fuse(GraphRewriter& rewriter, const Node& node, const Node& product) {
  Graph& graph = rewriter.graph();
  const ValueId guarded_weights = ungrouped(graph, product.inputs[0]);
  const ValueId weights = unguarded(graph, guarded_weights);
  const Node* softmax = producer_if(graph, weights, Op::softmax);
  if (softmax == nullptr || softmax->attributes.integer("axis") != graph.type(weights).rank() - 1)
    return false;
  Scores scores;
  if (!match_scores(graph, softmax->inputs[0], scores) || scores.scale == 0.0) return false;
  const Dims space = finest_space(scores);
  const bool has_guard = weights != guarded_weights;
  const std::optional<ValueId> mask = joint_mask(graph, scores, space, !has_guard);
  if (!mask) return false;
  std::vector<ValueId> inputs = attended_inputs(graph, scores, product, space);
  if (inputs.empty()) return false;
  const TensorType out = graph.type(product.outputs[0]);
  const Dims q = graph.type(inputs[0]).dims(), k = graph.type(inputs[1]).dims();
  const bool causal = hidden_by(graph, *mask, q[q.size() - 2], k[k.size() - 2]) == Hidden::later_keys;
  if (*mask != no_value && !causal) inputs.push_back(*mask);
  const Attributes attributes = {
      {"scale", scores.scale}, {"causal", std::int64_t{causal ? 1 : 0}}, {"softcap", 0.0}};
  const bool guarded = has_guard && may_leave_rows_empty(graph, *mask);
  const bool is_plain =
      space.size() == static_cast<std::size_t>(out.rank()) && same_batch(out, graph.type(inputs[0]));
  if (is_plain && !guarded) {
    rewriter.replace(node, Op::attention, inputs, attributes);
    return true;
  }
  ValueId attended = graph.add(Op::attention, inputs, attributes, node.name);
  if (guarded) attended = with_empty_rows_zero(graph, attended, *mask);
  rewriter.set(node.outputs[0], is_plain ? attended : add_reshape(graph, attended, out.dims()));
  return true;
}

/// The number of the input that is the mask of attention, or of its sums and gradients.
std::optional<std::size_t> mask_number(Op op) {
  switch (op) {
    case Op::attention:
      return 3;
    case Op::attention_sums:
      return 2;
    case Op::attention_gradient:
      return 6;
    default:
      return std::nullopt;
  }
}

/// Masks that were looked at: layers share them.
using KnownMasks = std::map<ValueId, Hidden>;

/// Without a constant mask that an attribute says as well.
bool drop_mask(GraphRewriter& rewriter, const Node& node, KnownMasks& known) {
  const std::optional<std::size_t> number = mask_number(node.op);
  if (!number || node.inputs.size() <= *number || node.inputs[*number] == no_value) return false;
  const Shape &q = rewriter.source().type(node.inputs[0]).shape,
              &k = rewriter.source().type(node.inputs[1]).shape;
  const Extent &queries = q[q.size() - 2], &keys = k[k.size() - 2];
  if (!queries.is_known() || !keys.is_known()) return false;
  std::vector<ValueId> inputs = rewriter.mapped(node.inputs);
  const auto [found, is_new] = known.try_emplace(inputs[*number], Hidden::unknown);
  if (is_new) found->second = hidden_by(rewriter.graph(), found->first, queries.known(), keys.known());
  if (found->second == Hidden::unknown) return false;
  inputs.resize(*number);
  Attributes attributes = node.attributes;
  if (found->second == Hidden::later_keys) attributes.set("causal", std::int64_t{1});
  rewriter.replace(node, node.op, std::move(inputs), std::move(attributes));
  return true;
}

}  // namespace

Graph fuse_attention(const Graph& graph) {
  KnownMasks known;
  return rewrite_nodes(graph, [&known](GraphRewriter& rewriter, const Node& node) {
    if (drop_mask(rewriter, node, known)) return true;
    if (node.op != Op::matmul) return false;
    rewriter.copy(node);
    const Node copied = rewriter.graph().nodes().back();
    (void)fuse(rewriter, node, copied);
    return true;
  });
}

}  // namespace sylvite
