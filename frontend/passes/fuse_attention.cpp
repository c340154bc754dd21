// Scaled dot-product attention (Vaswani et al., arXiv 1706.03762) spelled out:
//   matmul(softmax(a*Q @ b*K^T + mask), V)  ->  attention(Q, K, V, mask) {scale = a*b}
// Scales may stand on Q, on K^T, on the scores, or on several of them; what varies over heads or queries scales Q. Several masks
// become their sum; they may be added while the leading dims of the scores are grouped otherwise, as in windowed attention:
//   softmax(reshape(reshape(Q @ K^T + bias, [images, windows, ...]) + mask, [images*windows, ...]))
// Keys and values that heads share are repeated for each.
// Scores may be replaced, too: where(condition, scores, -inf) is a boolean mask, and a very negative number one that is added.
// Rows that attend to nothing are NaN; where(is_nan(w), 0, w) of the weights w makes them zero, which is done to the result
// if a mask may leave such rows. (Weights that are NaN because scores are stay NaN.)
// Scores and weights may be rounded to 16 bits and widened again, as a softmax in f32 between products of 16-bit floats has it, and
// scaled behind a reshape. Weights that are read elsewhere as well are made for that anyway, and stay.
// A constant mask, of attention or of its gradients, that hides all keys behind the diagonal and no others becomes causal = 1, so
// that masked work can be skipped; one that hides nothing goes.

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "frontend/graph/rewrite.h"
#include "frontend/graph/views.h"
#include "frontend/passes/attention_scores.h"
#include "frontend/passes/pass_list.h"
#include "frontend/values/size_table.h"

namespace sylvite {
namespace {

double lowest_of(DType dtype) {
  if (dtype == DType::f16) return -65504;
  return dtype == DType::bf16 ? -3.3895313892515355e38 : std::numeric_limits<float>::lowest();
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

/// What is too low for a float of this type is the lowest that it has.
double raised_to(DType dtype, double value) {
  return std::isinf(value) ? value : std::max(value, lowest_of(dtype));
}

/// A number as a float of this type.
ValueId add_number(Graph& graph, DType dtype, double value) {
  Tensor number(dtype, Dims{});
  number.set_double(0, raised_to(dtype, value));
  return graph.add_constant(number);
}

/// A constant in another type of floats; nothing where that would change one that hides nothing.
std::optional<ValueId> constant_in(Graph& graph, ValueId id, DType dtype) {
  const Tensor from = *graph.value(id).constant;
  if (follows_open_sizes(from)) return std::nullopt;
  Tensor to(dtype, from.dims());
  for (std::int64_t i = 0; i < from.size(); ++i) {
    const double value = from.as_double(i);
    to.set_double(i, raised_to(dtype, value));
    if (value > hides_below && to.as_double(i) != value) return std::nullopt;
  }
  return graph.add_constant(to);
}

/// What is added to scores in the type of the queries; nothing where that would round it.
std::optional<ValueId> added_in(Graph& graph, ValueId id, DType dtype) {
  if (graph.type(id).dtype == dtype) return id;
  if (graph.is_constant(id)) return constant_in(graph, id, dtype);
  const Node* cast = producer_if(graph, id, Op::cast);
  if (cast != nullptr && graph.type(cast->inputs[0]).dtype == dtype) return cast->inputs[0];
  if (graph.value(id).producer == no_node) return std::nullopt;
  const Node node = graph.node(graph.value(id).producer);
  const bool chooses = node.op == Op::where;
  if (!chooses && node.op != Op::broadcast_to && node.op != Op::reshape && node.op != Op::slice)
    return std::nullopt;
  std::vector<ValueId> inputs = node.inputs;
  for (std::size_t i = chooses ? 1 : 0; i < inputs.size(); ++i) {
    const std::optional<ValueId> own = added_in(graph, inputs[i], dtype);
    if (!own) return std::nullopt;
    inputs[i] = *own;
  }
  return graph.add(node.op, inputs, node.attributes);
}

/// The space with most dims, in which masks tell most apart.
Dims finest_space(const Scores& scores) {
  return *std::ranges::max_element(scores.spaces, {}, [](const Dims& space) { return space.size(); });
}

/// A condition that is true where this one is false.
ValueId inverse(Graph& graph, ValueId condition) {
  if (!graph.is_constant(condition)) return graph.add(Op::logical_not, {condition});
  const Tensor from = *graph.value(condition).constant;
  Tensor to(DType::boolean, from.dims());
  for (std::int64_t i = 0; i < from.size(); ++i) to.set_double(i, from.as_int64(i) == 0 ? 1 : 0);
  return graph.add_constant(to);
}

/// Of conditions alone that hide keys for good: true where all of them keep.
ValueId joint_condition(Graph& graph, ValueId so_far, ValueId condition, bool keeps) {
  const ValueId own = keeps ? condition : inverse(graph, condition);
  return so_far == no_value ? own : graph.add(Op::logical_and, {so_far, own});
}

/// Zero where a constant condition keeps, and `hidden` elsewhere.
ValueId hidden_table(Graph& graph, ValueId condition, const Mask& mask, DType dtype) {
  const Tensor& is_true = *graph.value(condition).constant;
  Tensor table(dtype, is_true.dims());
  const double low = raised_to(dtype, *mask.hidden);
  for (std::int64_t i = 0; i < table.size(); ++i)
    if ((is_true.as_int64(i) != 0) != mask.keeps) table.set_double(i, low);
  return graph.add_constant(table);
}

/// `so_far`, or zero, where the condition keeps, and `hidden` elsewhere.
ValueId hidden_sum(Graph& graph, ValueId so_far, ValueId condition, const Mask& mask, DType dtype) {
  if (so_far == no_value && graph.is_constant(condition)) return hidden_table(graph, condition, mask, dtype);
  const ValueId kept = so_far == no_value ? add_number(graph, dtype, 0) : so_far;
  const ValueId low = add_number(graph, dtype, *mask.hidden);
  return graph.add(Op::where,
                   mask.keeps ? std::vector{condition, kept, low} : std::vector{condition, low, kept});
}

/// The masks in `space` as one, a sum or, if it may be, boolean; or no_value; nothing where one does not fit.
std::optional<ValueId> joint_mask(Graph& graph, const Scores& scores, const Dims& space,
                                  bool may_be_condition) {
  const auto hides = [](const Mask& mask) { return mask.hidden && std::isinf(*mask.hidden); };
  const bool is_condition = may_be_condition && std::ranges::all_of(scores.masks, hides);
  const DType dtype = graph.type(scores.q).dtype;
  ValueId joint = no_value;
  for (const Mask& mask : scores.masks) {
    std::optional<ValueId> own = mask_in(graph, mask, space);
    if (own && !mask.hidden) own = added_in(graph, *own, dtype);
    if (!own) return std::nullopt;
    if (is_condition)
      joint = joint_condition(graph, joint, *own, mask.keeps);
    else if (mask.hidden)
      joint = hidden_sum(graph, joint, *own, mask, dtype);
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
    if (is_truth ? (value == 0) != hides : (hides ? value > hides_below : value != 0)) return false;
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

/// The keys, from their transpose in the product, whose leading dims may be grouped otherwise before.
ValueId keys_of(Graph& graph, ValueId k_transposed) {
  const Node* reshape = producer_if(graph, k_transposed, Op::reshape);
  const bool regroups = reshape != nullptr && regroups_leading(graph, *reshape);
  const ValueId made = regroups ? reshape->inputs[0] : k_transposed;
  const Node* transpose = producer_if(graph, made, Op::transpose);
  if (transpose != nullptr &&
      transpose->attributes.integers("perm") == last_two_swapped(graph.type(made).rank()))
    return regrouped(graph, transpose->inputs[0], graph.type(k_transposed).dims());
  return add_transpose(graph, k_transposed, last_two_swapped(graph.type(k_transposed).rank()));
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
  const auto number = [&](float value) { return add_number(graph, graph.type(mask).dtype, value); };
  const int rank = graph.type(mask).rank();
  const Attributes last = {{"axes", Dims{rank - 1}}, {"keepdims", std::int64_t{1}}};
  const ValueId most = rank == 0 ? mask : graph.add(Op::reduce_max, {mask}, last);
  const ValueId is_empty = graph.add(Op::equal, {most, number(-std::numeric_limits<float>::infinity())});
  return graph.add(Op::where, {is_empty, number(0), attended});
}

/// The weights in the dims and the type in which they were made, where the product reads them grouped otherwise or rounded.
ValueId ungrouped(const Graph& graph, ValueId id) {
  const Node* reshape = producer_if(graph, id, Op::reshape);
  const ValueId made = reshape != nullptr && regroups_leading(graph, *reshape) ? reshape->inputs[0] : id;
  return unrounded(graph, made);
}

/// Of a graph and the nodes that read its values: is what is between a softmax and a product read by that product alone?
bool reads_alone(const Graph& graph, const IdMap<std::vector<NodeId>>& uses, const Node& product) {
  std::vector<ValueId> between{product.inputs[0]};
  std::set<NodeId> readers{graph.value(product.outputs[0]).producer};
  while (true) {
    const NodeId maker = graph.value(between.back()).producer;
    if (maker == no_node) return false;
    const Node& node = graph.node(maker);
    if (node.op == Op::softmax) break;
    if (node.op != Op::where && node.op != Op::reshape && node.op != Op::cast) return false;
    readers.insert(maker);
    if (node.op == Op::where) readers.insert(graph.value(node.inputs[0]).producer);
    between.push_back(node.inputs[node.op == Op::where ? 2 : 0]);
  }
  return std::ranges::none_of(between, [&](ValueId id) {
    return std::ranges::find(graph.outputs, id) != graph.outputs.end() ||
           std::ranges::any_of(uses[id], [&](NodeId reader) { return !readers.contains(reader); });
  });
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
      k_transposed.element_count() == 0 || q.dtype != k_transposed.dtype || q.dtype != v.dtype ||
      q.dtype != out.dtype || !std::equal(made.begin(), made.end() - 2, q.shape.begin()) ||
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
  const IdMap<std::vector<NodeId>> uses = graph.uses();
  return rewrite_nodes(graph, [&](GraphRewriter& rewriter, const Node& node) {
    if (drop_mask(rewriter, node, known)) return true;
    if (node.op != Op::matmul || !reads_alone(graph, uses, node)) return false;
    rewriter.copy(node);
    const Node copied = rewriter.graph().nodes().back();
    (void)fuse(rewriter, node, copied);
    return true;
  });
}

}  // namespace sylvite
