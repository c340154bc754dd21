#include <algorithm>
#include <map>
#include <numeric>
#include <optional>

#include "base/error.h"
#include "frontend/ops/op_table.h"
#include "lowering/algorithms/problems.h"
#include "lowering/plan/run_extents.h"

namespace sylvite {
namespace {

/// out.dim[i] is the anchor's dim order[i].
using Order = std::vector<int>;

/// The order of a node's result, given those of the values that depend on the anchor. nullopt: no template's
/// work.
std::optional<Order> order_after(const Graph& body, const Node& node,
                                 const std::map<ValueId, Order>& orders) {
  std::optional<Order> found;
  for (const ValueId input : node.inputs) {
    const auto order = orders.find(input);
    if (order == orders.end()) continue;
    if (found && *found != order->second) return std::nullopt;
    found = order->second;
    if (node.op == Op::transpose) continue;
    const bool same = body.type(input).shape == body.type(node.outputs.at(0)).shape;
    if (!has_trait(node.op, OpTrait::pointwise) || !same) return std::nullopt;
  }
  if (node.op != Op::transpose || !found) return found;
  const Dims& perm = node.attributes.integers("perm");
  Order result;
  for (const std::int64_t dim : perm) result.push_back(found->at(static_cast<std::size_t>(dim)));
  const bool keeps_columns = result.back() == static_cast<int>(result.size()) - 1;
  return keeps_columns ? std::optional(result) : std::nullopt;
}

/// Fills the output's loops, or says what stands in the way.
std::string find_loops(const Kernel& kernel, AttentionProblem& problem) {
  const Graph& body = kernel.body;
  const int rank = body.type(problem.anchor).rank();
  Order start(static_cast<std::size_t>(rank));
  std::iota(start.begin(), start.end(), 0);
  std::map<ValueId, Order> orders = {{problem.anchor, start}};
  for (std::size_t i = 0; i < body.nodes().size(); ++i) {
    const Node& node = body.nodes()[i];
    if (static_cast<NodeId>(i) == kernel.anchor) continue;
    const OpInfo& info = op_info(node.op);
    const bool after =
        std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId id) { return orders.contains(id); });
    if (after) {
      const std::optional<Order> order = order_after(body, node, orders);
      if (!order) return fmt::format("{} after the anchor changes the shape", info.name);
      orders[node.outputs.at(0)] = *order;
    } else if (!info.has(OpTrait::pointwise) && !info.has(OpTrait::view) && !info.has(OpTrait::creation)) {
      return fmt::format("its body also has {}", info.name);
    }
  }
  const auto order = orders.find(problem.output);
  if (order == orders.end()) return "its output does not depend on the anchor";
  // Storage dim dJ is logical dim rank - 1 - J.
  std::map<int, std::string> loop_of;
  for (int i = 0; i < rank; ++i)
    loop_of[order->second.at(static_cast<std::size_t>(i))] = fmt::format("d{}", rank - 1 - i);
  problem.row_loop = loop_of.at(rank - 2);
  for (int dim = rank - 3; dim >= 0; --dim) problem.batch_loops.push_back(loop_of.at(dim));
  return "";
}

/// Do runs differ in this dim of a value?
bool is_open(const Kernel& kernel, ValueId id, std::size_t dim) {
  return !widest_body(kernel).type(id).shape[dim].is_known();
}

}  // namespace

ValueId hiding_mask(const Graph& body, const Node& attention) {
  const ValueId mask = attention.inputs.size() > 3 ? attention.inputs[3] : no_value;
  const bool tells_keys_apart =
      mask != no_value && body.type(mask).rank() > 0 && body.type(mask).shape.back() != Extent(1);
  return tells_keys_apart ? mask : no_value;
}

Reading<AttentionProblem> read_attention(const Kernel& kernel) {
  if (kernel.kind != KernelClass::attention || kernel.body.node(kernel.anchor).op != Op::attention)
    return {{}, "it is no attention"};
  Reading<AttentionProblem> reading;
  const Graph& body = kernel.body;
  const Node& node = body.node(kernel.anchor);
  AttentionProblem& problem = reading.problem;
  if (body.outputs.size() != 1)
    return {{}, fmt::format("it has {} outputs, a template makes one", body.outputs.size())};
  problem.q = node.inputs.at(0);
  problem.k = node.inputs.at(1);
  problem.v = node.inputs.at(2);
  problem.anchor = node.outputs.at(0);
  problem.output = body.outputs[0];
  problem.element = body.type(problem.q).dtype;
  const bool is_known = problem.element == DType::f32 || problem.element == DType::bf16;
  for (const ValueId id : {problem.q, problem.k, problem.v}) {
    const TensorType& type = body.type(id);
    if (!is_known || type.dtype != problem.element)
      return {{},
              fmt::format("value '{}' is {}, the template takes f32 or bf16", body.value(id).name,
                          dtype_name(type.dtype))};
  }
  if (body.type(problem.anchor).layout.channel_block != 0) return {{}, "its output is channel-blocked"};
  reading.refusal = find_loops(kernel, problem);
  const Shape& q = body.type(problem.q).shape;
  const Shape& k = body.type(problem.k).shape;
  const Shape& out = body.type(problem.anchor).shape;
  problem.rows = number_or_open(q[q.size() - 2]);
  problem.open_depth = q.back();
  problem.depth = number_or_open(problem.open_depth);
  problem.open_positions = k[k.size() - 2];
  problem.positions = number_or_open(problem.open_positions);
  problem.least_rows = least_extent(kernel, problem.q, q.size() - 2);
  problem.positions_are_open = is_open(kernel, problem.k, k.size() - 2);
  problem.open_columns = out.back();
  problem.columns = number_or_open(problem.open_columns);
  problem.least_columns = least_extent(kernel, problem.anchor, out.size() - 1);
  problem.batch = number_or_open(leading_product(out));
  if (out.product() == 0 || k.product() == 0) return {{}, "it is empty"};
  if (problem.pair() > 1 && is_open(kernel, problem.q, q.size() - 1))
    return {{}, "its depth is open, bf16 is multiplied in pairs"};
  if (problem.depth % problem.pair() != 0)
    return {{}, fmt::format("its depth {} is odd, bf16 is multiplied in pairs", problem.depth)};
  return reading;
}

Reading<AttentionProblem> read_attention_chunks(const Kernel& kernel) {
  constexpr std::int64_t most_rows = 8;
  constexpr std::int64_t least_positions = 16;
  Reading<AttentionProblem> reading = read_attention(kernel);
  const AttentionProblem& problem = reading.problem;
  if (!reading.refusal.empty()) return reading;
  const auto rank = static_cast<std::size_t>(kernel.body.type(problem.q).rank());
  if (is_open(kernel, problem.q, rank - 2)) return {{}, "the number of its rows is open"};
  if (is_open(kernel, problem.q, rank - 1) || is_open(kernel, problem.anchor, rank - 1))
    return {{}, "its depth or the number of its columns is open"};
  const bool is_short = problem.positions != open_extent && problem.positions < least_positions;
  if (problem.rows > most_rows || is_short)
    return {{},
            fmt::format("it has {} rows and {} key positions: chunks are for at most {} and at least {}",
                        problem.rows, problem.positions, most_rows, least_positions)};
  if (problem.depth % panel_width != 0 || problem.columns % panel_width != 0)
    return {{},
            fmt::format("its depth {} or its {} columns are no multiple of {}", problem.depth,
                        problem.columns, panel_width)};
  return reading;
}

}  // namespace sylvite
