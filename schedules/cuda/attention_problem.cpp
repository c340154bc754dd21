#include <algorithm>

#include "base/error.h"
#include "frontend/graph/views.h"
#include "frontend/ops/attention_scale.h"
#include "frontend/ops/op_table.h"
#include "lowering/plan/run_extents.h"
#include "schedules/cuda/attention.h"

namespace sylvite {
namespace {

using Operand = CudaAttentionProblem::Operand;

constexpr std::int64_t elements_of_map_unit =
    8;  // elements of 16 bits in the 16 bytes that tensor maps count in
constexpr std::int64_t most_depth = 128;

/// The stride that walks the dims [0, end) as one; nothing where there is none.
std::optional<std::int64_t> stride_of_batch(const StridedView& view, std::size_t end) {
  std::int64_t stride = 0, extent = 1;
  for (std::size_t i = end; i-- > 0;) {
    if (view.dims[i] == 1) continue;
    if (extent == 1) stride = view.strides[i];
    if (view.strides[i] != stride * extent) return std::nullopt;
    extent *= view.dims[i];
  }
  return stride;
}

/// Heads stand in groups that share keys, [..., groups, heads of each, rows, columns]: the view with both as one dim.
std::string join_groups(StridedView& view, bool shares, const std::string& name) {
  const std::size_t at = view.dims.size() - 3;
  const bool is_one = view.dims[at] == 1;
  if (!is_one && view.strides[at - 1] != view.dims[at] * view.strides[at])
    return fmt::format("the heads of '{}' lie in several steps", name);
  if (is_one && !shares && view.dims[at - 1] != 1) return fmt::format("'{}' is shared by heads", name);
  if (is_one) view.strides[at] = view.strides[at - 1];
  view.dims[at] *= view.dims[at - 1];
  view.dims.erase(view.dims.begin() + static_cast<std::ptrdiff_t>(at - 1));
  view.strides.erase(view.strides.begin() + static_cast<std::ptrdiff_t>(at - 1));
  return "";
}

/// Strides over [batch..., heads, rows, depth] of a value of rank 3 and more; with rank 3 there is one head.
std::string set_strides(StridedView view, const std::string& name, bool in_groups, Operand& operand) {
  if (in_groups)
    if (std::string refusal = join_groups(view, operand.share > 1, name); !refusal.empty()) return refusal;
  const std::size_t rank = view.dims.size();
  operand.argument = view.input;
  operand.offset = view.offset;
  operand.row = view.strides[rank - 2];
  operand.head = rank > 3 ? view.strides[rank - 3] : 0;
  const std::size_t batch_end = rank > 3 ? rank - 3 : 1;
  const std::optional<std::int64_t> batch = stride_of_batch(view, batch_end);
  if (!batch) return fmt::format("the batch of '{}' lies in several steps", name);
  operand.batch = *batch;
  if (view.strides[rank - 1] != 1) return fmt::format("columns of '{}' do not lie together", name);
  // A stride over an extent of 1 is never taken.
  if (rank == 3 || view.dims[rank - 3] == 1) operand.head = elements_of_map_unit;
  if (product(view.dims, 0, batch_end) == 1) operand.batch = elements_of_map_unit;
  if (view.dims[rank - 2] == 1) operand.row = elements_of_map_unit;
  if (operand.row == 0 || operand.head == 0 || operand.batch == 0)
    return fmt::format("'{}' is broadcast", name);
  for (const std::int64_t each : {operand.offset, operand.row, operand.head, operand.batch})
    if (each % elements_of_map_unit != 0)
      return fmt::format("rows of '{}' do not begin at multiples of 16 bytes", name);
  return "";
}

/// Dims of a mask before its heads, which stand behind `batch` others of the scores: neighbours along the last ones may share it,
/// and those that it has repeat over the first ones.
std::string read_mask_batch(const StridedView& view, std::size_t end, const Dims& batch,
                            CudaAttentionProblem::Mask& mask) {
  std::size_t begin = 0;
  const auto is_broadcast = [&](std::size_t i) { return view.dims[i] == 1 || view.strides[i] == 0; };
  while (begin < end && is_broadcast(begin)) ++begin;
  std::size_t from_end = 0;  // dims of the batch that lie behind those of the mask
  for (; end > begin && is_broadcast(end - 1); --end) ++from_end;
  if (begin < end) mask.share = product(batch, batch.size() - from_end, batch.size());
  for (std::size_t i = begin; i < end; ++i)
    if (view.dims[i] != batch[batch.size() - from_end - end + i])
      return "its mask is broadcast over some of the batch";
  const StridedView own{view.input,
                        0,
                        {view.dims.begin() + static_cast<std::ptrdiff_t>(begin),
                         view.dims.begin() + static_cast<std::ptrdiff_t>(end)},
                        {view.strides.begin() + static_cast<std::ptrdiff_t>(begin),
                         view.strides.begin() + static_cast<std::ptrdiff_t>(end)}};
  const std::optional<std::int64_t> stride = stride_of_batch(own, end - begin);
  if (!stride) return "the batch of its mask lies in several steps";
  mask.batch = *stride;
  mask.period = product(view.dims, begin, end);
  return "";
}

/// Heads for which keys or values of these dims are the same; nothing where they do not belong to queries of dims `q`.
std::optional<std::int64_t> heads_that_share(const Dims& q, const Dims& dims) {
  const std::size_t batch_end = q.size() - (q.size() > 3 ? 3 : 2);
  if (!std::equal(q.begin(), q.begin() + static_cast<std::ptrdiff_t>(batch_end), dims.begin()))
    return std::nullopt;
  if (q.size() == 3 || q[q.size() - 3] == dims[q.size() - 3]) return 1;
  return dims[q.size() - 3] == 1 ? std::optional(q[q.size() - 3]) : std::nullopt;
}

std::string read_shapes(const Kernel& kernel, CudaAttentionProblem& problem) {
  const Graph& body = kernel.body;
  const Node& node = body.node(kernel.anchor);
  const Dims q = body.type(node.inputs[0]).dims(), k = body.type(node.inputs[1]).dims();
  const Dims v = body.type(node.inputs[2]).dims();
  if (q.size() != k.size() || q.size() != v.size() || q.size() < 3) return "it has no heads of rows";
  const std::optional<std::int64_t> share_k = heads_that_share(q, k), share_v = heads_that_share(q, v);
  if (!share_k || !share_v || k[k.size() - 2] != v[v.size() - 2]) return "its batches are shared";
  problem.k.share = *share_k;
  problem.v.share = *share_v;
  if (std::string refusal = read_attention_extents(q, k, problem); !refusal.empty()) return refusal;
  problem.value_depth = v.back();
  problem.most_keys = most_extent(kernel, node.inputs[1], k.size() - 2);
  if (q.back() != v.back() && problem.element == DType::f32) return "values are not as wide as keys";
  for (const std::int64_t depth : {problem.depth, problem.value_depth})
    if (depth > most_depth || depth % elements_of_map_unit != 0)
      return fmt::format("it is {} wide, the template takes multiples of {} up to {}", depth,
                         elements_of_map_unit, most_depth);
  return "";
}

}  // namespace

std::string read_attention_mask(const Graph& body, ValueId id, Dims q, std::int64_t keys,
                                std::optional<CudaAttentionProblem::Mask>& found, bool in_groups) {
  // Dims of the scores that are not batch: heads, rows and keys.
  const std::size_t behind_batch = q.size() > 3 ? 3 : 2;
  std::optional<StridedView> view = strided_view(body, id);
  const DType dtype = body.type(id).dtype;
  if (!view) return "its mask is computed";
  if (view->offset != 0) return "its mask begins inside a tensor";
  const bool fits =
      dtype == DType::boolean || dtype == DType::bf16 || dtype == DType::f16 || dtype == DType::f32;
  if (!fits) return fmt::format("its mask is {}", dtype_name(dtype));
  if (view->dims.empty() || view->dims.back() != keys) return "its mask is the same for all keys";
  if (keys > 1 && view->strides.back() != 1) return "keys of its mask do not lie together";
  if (in_groups && view->dims.size() > 2) {
    if (view->dims.size() == 3) {
      view->dims.insert(view->dims.begin(), 1);
      view->strides.insert(view->strides.begin(), 0);
    }
    if (std::string refusal = join_groups(*view, false, "mask"); !refusal.empty()) return refusal;
  }
  q.resize(q.size() - behind_batch - (in_groups ? 1 : 0));
  const std::size_t rank = view->dims.size();
  const auto stride = [&](std::size_t from_end) {
    return from_end > rank || view->dims[rank - from_end] == 1 ? 0 : view->strides[rank - from_end];
  };
  CudaAttentionProblem::Mask mask;
  mask.argument = view->input;
  mask.dtype = dtype;
  mask.head = behind_batch == 3 ? stride(3) : 0;
  mask.row = stride(2);
  std::string refusal = read_mask_batch(*view, rank > behind_batch ? rank - behind_batch : 0, q, mask);
  found = mask;
  return refusal;
}

std::string read_attention_extents(const Dims& q, const Dims& k, CudaAttentionExtents& extents) {
  if (q.size() < 3) return "it has no heads of rows";
  extents.batch = q.size() > 3 ? product(q, 0, q.size() - 3) : q[0];
  extents.heads = q.size() > 3 ? q[q.size() - 3] : 1;
  extents.queries = q[q.size() - 2];
  extents.keys = k[k.size() - 2];
  extents.depth = q.back();
  const bool is_empty = extents.batch * extents.heads * extents.queries * extents.keys * extents.depth == 0;
  return is_empty ? "it is empty" : "";
}

std::string read_attention_operand(const Graph& body, ValueId id, Operand& operand, bool in_groups) {
  const std::optional<StridedView> view = strided_view(body, id);
  if (!view) return fmt::format("'{}' is computed, or lies otherwise than in rows", body.value(id).name);
  return set_strides(*view, body.value(id).name, in_groups, operand);
}

std::string read_attention_result(const Kernel& kernel, Operand& operand, bool in_groups) {
  const Graph& body = kernel.body;
  const ValueId anchor = body.node(kernel.anchor).outputs.at(0);
  const ValueId out = body.outputs[0];
  StridedView view{static_cast<int>(body.inputs.size()), 0, body.type(out).dims(), {}};
  view.strides = dense_strides(view.dims);
  for (ValueId at = out; at != anchor;) {
    const Node& node = body.node(body.value(at).producer);
    if (node.op != Op::transpose) return fmt::format("{} follows it", op_info(node.op).name);
    const Dims& perm = node.attributes.integers("perm");
    const StridedView from = view;
    for (std::size_t i = 0; i < perm.size(); ++i) {
      view.dims[static_cast<std::size_t>(perm[i])] = from.dims[i];
      view.strides[static_cast<std::size_t>(perm[i])] = from.strides[i];
    }
    at = node.inputs.at(0);
  }
  return set_strides(view, body.value(out).name, in_groups, operand);
}

namespace {

std::string read_operands(const Kernel& kernel, bool in_groups, CudaAttentionProblem& problem) {
  const Graph& body = kernel.body;
  const Node& node = body.node(kernel.anchor);
  std::string refusal = read_attention_operand(body, node.inputs[0], problem.q, in_groups);
  if (refusal.empty()) refusal = read_attention_operand(body, node.inputs[1], problem.k, in_groups);
  if (refusal.empty()) refusal = read_attention_operand(body, node.inputs[2], problem.v, in_groups);
  if (refusal.empty()) refusal = read_attention_result(kernel, problem.out, in_groups);
  if (refusal.empty() && node.inputs.size() > 3 && node.inputs[3] != no_value)
    refusal = read_attention_mask(body, node.inputs[3], body.type(node.inputs[0]).dims(), problem.keys,
                                  problem.mask, in_groups);
  return refusal;
}

/// Groups of heads that share keys are part of the batch, or, where those lie in other steps, of the heads.
std::string read_operands(const Kernel& kernel, CudaAttentionProblem& problem) {
  std::string refusal = read_operands(kernel, false, problem);
  const Dims q = kernel.body.type(kernel.body.node(kernel.anchor).inputs[0]).dims();
  if (refusal.empty() || q.size() < 5 || (problem.k.share == 1 && problem.v.share == 1)) return refusal;
  problem.heads *= q[q.size() - 4];
  problem.batch /= q[q.size() - 4];
  return read_operands(kernel, true, problem);
}

}  // namespace

Reading<CudaAttentionProblem> read_cuda_attention(const Kernel& kernel) {
  if (kernel.kind != KernelClass::attention) return {{}, "it is no attention"};
  const Graph& body = kernel.body;
  const Node& node = body.node(kernel.anchor);
  if (node.op != Op::attention) return {{}, "it is a gradient"};
  if (body.outputs.size() != 1) return {{}, "it has several outputs"};
  if (node.attributes.real("softcap") != 0) return {{}, "its scores are capped"};
  CudaAttentionProblem problem;
  problem.is_open = kernel.open != nullptr;
  problem.element = body.type(node.inputs[0]).dtype;
  const std::vector<ValueId> typed = {node.inputs[0], node.inputs[1], node.inputs[2], body.outputs[0]};
  const bool same = std::all_of(typed.begin(), typed.end(),
                                [&](ValueId id) { return body.type(id).dtype == problem.element; });
  if (!same ||
      (problem.element != DType::bf16 && problem.element != DType::f16 && problem.element != DType::f32))
    return {{}, "it is not all bf16, f16 or f32"};
  std::string refusal = read_shapes(kernel, problem);
  if (refusal.empty()) refusal = read_operands(kernel, problem);
  problem.causal = node.attributes.integer("causal") != 0;
  problem.scale = attention_scale(node.attributes, problem.depth);
  if (problem.scale < 0) refusal = "its scale is negative";
  return {problem, refusal};
}

}  // namespace sylvite
