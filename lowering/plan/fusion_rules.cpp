#include "lowering/plan/fusion_rules.h"

#include <algorithm>
#include <array>
#include <set>
#include <vector>

#include "frontend/ops/op_table.h"
#include "lowering/plan/fusion.h"

namespace sylvite {
namespace {

struct AnchorRule {
  OpTrait trait;
  Prologue data;   ///< ahead of the first input
  Prologue other;  ///< ahead of the others: weights, indices, updates
};

/// The first row whose trait the operation has.
constexpr std::array<AnchorRule, 8> rules = {{
    {OpTrait::convolution, Prologue::none, Prologue::none},
    {OpTrait::matmul, Prologue::views, Prologue::views},
    {OpTrait::attention, Prologue::views, Prologue::views},
    {OpTrait::pooling, Prologue::cheap, Prologue::none},
    {OpTrait::reduction, Prologue::any, Prologue::none},
    {OpTrait::normalization, Prologue::cheap, Prologue::none},
    {OpTrait::scan, Prologue::cheap, Prologue::none},
    {OpTrait::gather, Prologue::views, Prologue::cheap},
}};

bool keeps_last_axis(const Graph& graph, const Node& view) {
  if (view.op == Op::transpose) {
    const std::vector<std::int64_t>& perm = view.attributes.integers("perm");
    return perm.empty() || perm.back() == static_cast<std::int64_t>(perm.size()) - 1;
  }
  if (view.op == Op::to_layout) return false;
  if (view.op != Op::reshape) return true;
  const Shape& from = graph.type(view.inputs[0]).shape;
  const Shape& to = graph.type(view.outputs[0]).shape;
  return !from.empty() && !to.empty() && from.back() == to.back();
}

/// Does the transpose bring the axis along which parts lie side by side innermost, so that each element of a vector asks
/// which part it is of?
bool mixes_parts(const Node& concat, const Node& transpose) {
  return transpose.inputs[0] == concat.outputs[0] &&
         transpose.attributes.integers("perm").back() == concat.attributes.integer("axis");
}

}  // namespace

Role role_of(const Node& node) {
  if (has_trait(node.op, OpTrait::pointwise) || has_trait(node.op, OpTrait::creation)) return Role::pointwise;
  if (has_trait(node.op, OpTrait::view) || node.op == Op::to_layout) return Role::view;
  return Role::anchor;
}

Prologue cost_of(const Graph& graph, const Node& node) {
  if (role_of(node) == Role::view) return Prologue::views;
  const bool floating = is_float(graph.type(node.outputs[0]).dtype);
  // Integer division has no vector instruction.
  if (op_info(node.op).facts.cost > Cost::simple || (node.op == Op::div && !floating)) return Prologue::any;
  return Prologue::cheap;
}

Prologue prologue_of(const Node& anchor, std::size_t input) {
  if (anchor.op == Op::concat) return Prologue::views;
  if (anchor.op == Op::pad) return input == 0 ? Prologue::any : Prologue::none;
  for (const AnchorRule& rule : rules)
    if (has_trait(anchor.op, rule.trait)) return input == 0 ? rule.data : rule.other;
  return Prologue::none;
}

bool rounds_image(const Graph& graph, const Node& anchor, const Node& cast) {
  if (anchor.op != Op::conv || cast.op != Op::cast || anchor.inputs[0] != cast.outputs[0]) return false;
  const TensorType& image = graph.type(cast.outputs[0]);
  const int block = graph.type(anchor.outputs[0]).layout.channel_block;
  return image.dtype == DType::bf16 && graph.type(cast.inputs[0]).dtype == DType::f32 && image.rank() == 4 &&
         image.layout.channel_block == 0 && image.dims()[1] < block &&
         anchor.attributes.integer("groups") == 1;
}

bool copies_source(const Graph& graph, const Node& anchor) {
  if (anchor.op != Op::conv || anchor.attributes.integer("groups") != 1) return false;
  const TensorType& source = graph.type(anchor.inputs[0]);
  return source.dtype == DType::bf16 && source.layout.channel_block > 0;
}

bool packs_filter(const Graph& graph, const Node& anchor, const LoweringOptions& options) {
  return anchor.op == Op::conv && options.image_layout == ImageLayout::channel_blocks &&
         graph.type(anchor.outputs[0]).layout.channel_block > 0;
}

bool takes_epilogue(const Node& anchor) {
  return anchor.outputs.size() == 1 && anchor.op != Op::loop && !has_trait(anchor.op, OpTrait::scatter) &&
         !has_trait(anchor.op, OpTrait::scan);
}

bool takes_view_epilogue(const Graph& graph, const Node& anchor, const Node& view,
                         const LoweringOptions& options) {
  const bool is_for_vectors = options.image_layout != ImageLayout::channels_last;
  if (view.op == Op::to_layout) {
    // On a GPU the threads that fold are those of the result, in the order of its dims.
    if (has_trait(anchor.op, OpTrait::pooling)) return is_for_vectors || is_free(graph, view);
    return has_trait(anchor.op, OpTrait::reduction) || anchor.op == Op::pad;
  }
  if (view.op == Op::reshape && anchor.op == Op::concat) return true;
  if (view.op != Op::transpose) return false;
  if (has_trait(anchor.op, OpTrait::attention)) return keeps_last_axis(graph, view);
  if (anchor.op == Op::concat) return !is_for_vectors || !mixes_parts(anchor, view);
  return anchor.op == Op::pad || has_trait(anchor.op, OpTrait::gather);
}

bool takes_view_prologue(const Graph& graph, const Node& anchor, const Node& view, bool ahead) {
  const bool contracts = has_trait(anchor.op, OpTrait::matmul) || anchor.op == Op::conv ||
                         has_trait(anchor.op, OpTrait::attention);
  // Views that a convolution reads are ahead of its filter.
  if (contracts && view.op == Op::to_layout) return ahead && anchor.op == Op::conv;
  if (contracts) return ahead || keeps_last_axis(graph, view);
  // Each element of a concat asks which part it is of: parts are turned where they are written.
  if (anchor.op == Op::concat) return view.op != Op::to_layout;
  if (anchor.op == Op::pad || has_trait(anchor.op, OpTrait::gather)) return true;
  // These walk their rows more than once, which pays only along the innermost axis.
  return keeps_last_axis(graph, view) || view.op == Op::to_layout;
}

bool is_look_up(const Graph& graph, const Node& node, const LoweringOptions& options) {
  if (options.refuse_template) return has_trait(node.op, OpTrait::gather);
  if (node.op == Op::gather_elements) return true;
  if (node.op != Op::gather) return false;
  const bool is_resampled = graph.is_constant(node.inputs[1]) && graph.type(node.inputs[1]).rank() == 1;
  return is_resampled || graph.type(node.inputs[0]).rank() == 1;
}

bool folds_look_ups(const Graph& graph, const Node& fold, const Node& ahead, const LoweringOptions& options) {
  constexpr std::int64_t least_results = 1 << 15, most_folded = 256;
  if (!options.refuse_template || !has_trait(fold.op, OpTrait::reduction) || !fold.attributes.has("axes"))
    return false;
  const TensorType &read = graph.type(fold.inputs[0]), &made = graph.type(fold.outputs[0]);
  const Dims& axes = fold.attributes.integers("axes");
  if (!read.is_known() || axes.empty() || read.layout.channel_block != 0 || made.layout.channel_block != 0)
    return false;
  const std::int64_t results = made.element_count();
  return results >= least_results && read.element_count() <= most_folded * results &&
         std::ranges::find(axes, read.rank() - 1) == axes.end() &&
         graph.type(ahead.outputs[0]).element_count() >= read.element_count();
}

bool pads_rows(const Graph& graph, const Node& node, const LoweringOptions& options) {
  if (node.op != Op::pad || options.image_layout == ImageLayout::channels_last) return false;
  if (graph.type(node.outputs[0]).rank() == 0 || graph.type(node.outputs[0]).layout.channel_block != 0)
    return false;
  return std::ranges::any_of(std::array{"low", "high", "interior"}, [&](const char* name) {
    const Dims& elements = node.attributes.integers(name);  // none per axis: none at all
    return !elements.empty() && elements.back() != 0;
  });
}

bool steps_along_rows(const Graph& graph, const Node& node) {
  return node.op == Op::slice && graph.type(node.outputs[0]).rank() > 0 &&
         node.attributes.integers("steps").back() != 1;
}

bool is_worth_repeating(const Graph& graph, const Node& node) {
  if (cost_of(graph, node) > Prologue::cheap) return false;
  const std::int64_t elements = graph.type(node.outputs[0]).element_count();
  if (elements == 1) return true;
  int large_operands = 0;
  for (ValueId input : node.inputs)
    if (input != no_value && graph.type(input).element_count() * 4 > elements) ++large_operands;
  return large_operands <= 1;
}

std::int64_t bytes_read(const Graph& graph, const std::set<NodeId>& nodes) {
  std::set<ValueId> inputs;
  for (const NodeId id : nodes) {
    for (const ValueId input : graph.node(id).inputs) {
      const NodeId producer = input == no_value ? no_node : graph.value(input).producer;
      if (input != no_value && (producer == no_node || !nodes.contains(producer))) inputs.insert(input);
    }
  }
  std::int64_t bytes = 0;
  for (const ValueId input : inputs) bytes += graph.type(input).byte_size();
  return bytes;
}

bool is_made_of_less(const Graph& graph, NodeId id, const std::function<bool(NodeId)>& is_work) {
  constexpr std::size_t most_work = 32;
  const TensorType& result = graph.type(graph.node(id).outputs[0]);
  if (result.dtype != DType::f32 || role_of(graph.node(id)) != Role::pointwise) return false;
  std::set<NodeId> work = {id};
  for (std::vector<NodeId> left = {id}; !left.empty() && work.size() <= most_work;) {
    const Node& node = graph.node(left.back());
    left.pop_back();
    for (const ValueId input : node.inputs) {
      const NodeId producer = input == no_value ? no_node : graph.value(input).producer;
      const bool is_computed =
          producer != no_node && role_of(graph.node(producer)) == Role::pointwise && is_work(producer);
      if (is_computed && work.insert(producer).second) left.push_back(producer);
    }
  }
  return work.size() <= most_work && bytes_read(graph, work) <= result.byte_size();
}

bool is_widening(const Graph& graph, const Node& node) {
  if (node.op != Op::cast) return false;
  const DType from = graph.type(node.inputs[0]).dtype, to = graph.type(node.outputs[0]).dtype;
  return is_float(from) && is_float(to) && dtype_size(from) < dtype_size(to);
}

bool turns_apart(const Graph& graph, const std::set<NodeId>& nodes, const Node& added,
                 const LoweringOptions& options) {
  constexpr std::int64_t least_bytes = 4 << 20;  // less is in the caches, and a launch takes as long
  constexpr std::int64_t least_channels = 9;     // threads of single elements turn fewer as fast
  if (!options.refuse_template || is_widening(graph, added)) return false;
  bool turns = false;
  for (const NodeId id : nodes) {
    const Node& node = graph.node(id);
    const TensorType &from = graph.type(node.inputs[0]), &to = graph.type(node.outputs[0]);
    if (node.op == Op::to_layout && from.layout.channel_block > 0 && to.layout.channel_block == 0)
      turns = to.byte_size() >= least_bytes && to.dims()[1] >= least_channels;
    else if (node.op != Op::slice && !is_widening(graph, node))
      return false;
  }
  return turns;
}

bool is_large_turn(const Graph& graph, const Node& node) {
  constexpr std::int64_t least_bytes = 4 << 20;  // less is in the caches, and a launch takes as long
  return node.op == Op::transpose && graph.type(node.outputs[0]).byte_size() >= least_bytes;
}

bool gathers_turned_rows(const Graph& graph, const Node& turn, const Node& reader) {
  constexpr std::int64_t much = 4 << 20;  // bytes that are read
  if (!has_trait(reader.op, OpTrait::gather) || reader.inputs[0] != turn.outputs[0] ||
      turn.op != Op::transpose || !reader.attributes.has("axis") ||
      graph.type(reader.outputs[0]).byte_size() < much)
    return false;
  const Dims& perm = turn.attributes.integers("perm");
  const auto last = static_cast<std::int64_t>(perm.size()) - 1;
  return perm.back() != last && reader.attributes.integer("axis") != last;
}

bool reads_turned(const Graph& graph, const Node& work) {
  constexpr std::size_t most_nodes = 16;
  std::vector<const Node*> seen = {&work};
  for (std::size_t i = 0; i < seen.size() && seen.size() < most_nodes; ++i) {
    if (seen[i]->op == Op::transpose) return true;
    if (role_of(*seen[i]) == Role::anchor) continue;
    for (const ValueId input : seen[i]->inputs) {
      const NodeId producer = input == no_value ? no_node : graph.value(input).producer;
      if (producer != no_node) seen.push_back(&graph.node(producer));
    }
  }
  return false;
}

bool reads_less(const Graph& graph, const Node& node, const LoweringOptions& options) {
  return is_widening(graph, node) || (options.refuse_template && node.op == Op::broadcast_to);
}

}  // namespace sylvite
