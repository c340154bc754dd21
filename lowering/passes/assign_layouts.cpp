#include <algorithm>
#include <optional>

#include "frontend/graph/copy.h"
#include "frontend/graph/views.h"
#include "frontend/ops/op_table.h"
#include "lowering/passes/images.h"
#include "lowering/passes/pass_list.h"
#include "lowering/plan/grouped_filter.h"
#include "lowering/plan/joined_groups.h"

namespace sylvite {
namespace {

/// What convolutions read and make, and what lies between them: integers of quantised ones.
bool is_blocked_type(DType dtype) {
  return dtype == DType::f32 || dtype == DType::bf16 || dtype == DType::u8 || dtype == DType::i8 ||
         dtype == DType::i16 || dtype == DType::i32;
}

/// Which values are blocked, and how.
struct LayoutBlocks {
  bool hold_all = false;  ///< a block has all channels of its value
  int size = 0;           ///< of the other blocks
  bool tf32 = false;      ///< where blocks hold all: of f32 values, too

  [[nodiscard]] bool fit(const TensorType& type) const {
    if (!hold_all) return type.rank() == 4 && type.element_count() != 0 && is_blocked_type(type.dtype);
    return may_lie_innermost(type, tf32);
  }
  /// The same for what is made of blocks, whatever its type: convolutions do not read it.
  [[nodiscard]] bool fit_work(const TensorType& type) const {
    if (!hold_all && type.dtype == DType::boolean) return type.rank() == 4 && type.element_count() != 0;
    const bool is_work = type.dtype == DType::f32 || type.dtype == DType::boolean;
    return fit(type) ||
           (hold_all && is_work && may_lie_innermost({DType::f32, type.shape, type.layout}, true));
  }
  [[nodiscard]] int of(const TensorType& type) const {
    return hold_all ? static_cast<int>(type.dims().at(1)) : size;
  }
};

/// What every rule asks of a node's operands.
struct Operands {
  const Graph& graph;
  const Node& node;
  LayoutBlocks blocks;
  std::vector<bool> blocked;        ///< per input: it is at hand in blocks
  bool feeds_convolutions = false;  ///< alone: their filters span all channels
  bool is_read_dense = false;       ///< by folds over channels alone, where a block holds all

  [[nodiscard]] const TensorType& type(std::size_t i) const { return graph.type(node.inputs[i]); }
  [[nodiscard]] const TensorType& output() const { return graph.type(node.outputs[0]); }
  [[nodiscard]] bool is_scalar(std::size_t i) const { return type(i).element_count() == 1; }
  /// The result's last block has channels that are not its own.
  [[nodiscard]] bool has_padding() const {
    return !blocks.hold_all && output().dims().at(1) % blocks.size != 0;
  }
};

// Each rule says whether the operation takes blocks and gives blocks, and if so which inputs it wants
// blocked.
using Wanted = std::vector<bool>;
using Rule = std::optional<Wanted> (*)(const Operands&);

/// Groups whose channels a block takes, as the templates do. Of filters that are values, join_groups leaves those alone that have one.
bool takes_groups(const Operands& operands, std::int64_t groups) {
  const TensorType& filter = operands.type(1);
  const std::int64_t inputs = filter.dims()[1];
  const std::int64_t outputs = filter.dims()[0] / groups;
  if (operands.blocks.hold_all)
    return operands.graph.is_constant(operands.node.inputs[1]) ? have_template(groups, inputs, outputs)
                                                               : groups_fill_tiles(inputs, outputs);
  if (operands.type(0).dtype == DType::bf16 && inputs % 2 != 0) return false;
  return are_worth_blocks({groups, inputs, outputs, operands.blocks.size});
}

/// Channels that are folded one by one and fill at most half a block, or a quarter that is made of as few: rows of pixels fill
/// vectors instead.
bool is_better_by_rows(const Operands& operands, bool depthwise) {
  const std::int64_t channels = operands.type(0).dims()[1], made = operands.output().dims()[1];
  const std::int64_t most = operands.blocks.size / (depthwise ? 2 : 4);
  return !operands.blocks.hold_all && !operands.blocked[0] && channels <= most && made <= most;
}

std::optional<Wanted> convolution_rule(const Operands& operands) {
  if (!operands.blocks.fit(operands.type(0)) || !operands.blocks.fit(operands.output())) return std::nullopt;
  const std::int64_t channels = operands.type(0).dims()[1];
  const std::int64_t groups = operands.node.attributes.integer("groups");
  const bool depthwise = groups == channels && operands.output().dims()[1] == channels;
  const bool grouped = groups != 1 && !depthwise;
  if (is_better_by_rows(operands, depthwise)) return std::nullopt;
  if (grouped && !takes_groups(operands, groups)) return std::nullopt;
  Wanted wanted(operands.node.inputs.size(), false);
  // Padding three channels of an image to a whole block would cost more than reading it as it is.
  wanted[0] = grouped || channels >= operands.blocks.of(operands.type(0)) || operands.blocked[0];
  // A filter that is no weight cannot be packed when a program is loaded: it lies as its images do.
  const bool is_weight = operands.graph.is_constant(operands.node.inputs[1]);
  wanted[1] = operands.blocks.hold_all && !is_weight && !depthwise && operands.blocks.fit(operands.type(1));
  return wanted;
}

/// Operations that leave channels alone: first input blocked, the rest as it is.
std::optional<Wanted> follow_first(const Operands& operands) {
  if (!operands.blocked[0]) return std::nullopt;
  Wanted wanted(operands.node.inputs.size(), false);
  wanted[0] = true;
  return wanted;
}

/// Is an operand as large as the result computed dense? What a transpose made may lie so already.
bool reads_dense(const Operands& operands) {
  const Graph& graph = operands.graph;
  for (std::size_t i = 0; i < operands.node.inputs.size(); ++i) {
    const ValueId id = operands.node.inputs[i];
    const NodeId producer = graph.value(id).producer;
    if (producer == no_node || operands.blocked[i] || operands.type(i).shape != operands.output().shape)
      continue;
    const Op op = graph.node(producer).op;
    if (op != Op::transpose && op != Op::reshape) return true;
  }
  return false;
}

std::optional<Wanted> pointwise_rule(const Operands& operands) {
  if (!operands.blocks.fit_work(operands.output())) return std::nullopt;
  // A change of the one operand instead of those of the other and of the result.
  if (operands.is_read_dense && reads_dense(operands)) return std::nullopt;
  // Padded channels hold anything finite.
  if (operands.has_padding() && !stays_finite(operands.graph, operands.node)) return std::nullopt;
  Wanted wanted(operands.node.inputs.size(), false);
  bool any = false;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const bool whole = operands.type(i).shape == operands.output().shape;
    if (whole && operands.blocked[i]) any = true;
    const bool channels = operands.type(i).rank() == operands.output().rank() && is_image(operands.type(i)) &&
                          operands.type(i).dims()[1] == operands.output().dims()[1];
    wanted[i] = whole || operands.blocked[i] || (channels && !operands.is_scalar(i));
  }
  if (!any) return std::nullopt;
  return wanted;
}

std::optional<Wanted> channels_rule(const Operands& operands) {
  return leaves_channels(operands.graph, operands.node) ? follow_first(operands) : std::nullopt;
}

/// Is a number for each channel all that a fold leaves?
bool leaves_a_row(const TensorType& type, const Dims& axes) {
  return is_image(type) && axes.size() + 1 == type.shape.size() && axes[0] == 0 && axes[1] == 2;
}

/// Folds of what is not channels. Where a block holds all, what is left of all images may be a row of channels.
std::optional<Wanted> reduction_rule(const Operands& operands) {
  const Attributes& attributes = operands.node.attributes;
  const Dims& axes = attributes.integers("axes");
  const bool is_row = operands.blocks.hold_all && leaves_a_row(operands.type(0), axes);
  const bool leaves =
      (attributes.integer("keepdims") == 1 || is_row) && std::ranges::find(axes, 1) == axes.end();
  if (operands.blocks.hold_all && !is_row && !leaves_channels(operands.graph, operands.node))
    return std::nullopt;
  return leaves && !axes.empty() ? follow_first(operands) : std::nullopt;
}

/// Norms of groups of channels, which a template takes as they lie. Others fold rows.
std::optional<Wanted> norm_rule(const Operands& operands) {
  const bool takes = operands.blocks.hold_all && operands.node.attributes.has("groups") &&
                     operands.blocks.fit(operands.type(0));
  return takes ? std::optional(Wanted(1, true)) : std::nullopt;
}

/// The gradient of a pooling, where its image lies so.
std::optional<Wanted> pool_gradient_rule(const Operands& operands) {
  const bool is_ready = operands.blocks.hold_all && operands.output().rank() == 4 &&
                        (operands.blocked[0] || operands.blocked[1]);
  return is_ready && operands.blocks.fit(operands.output()) ? std::optional(Wanted(2, true)) : std::nullopt;
}

/// Products of channels of the same pixels.
std::optional<Wanted> filter_gradient_rule(const Operands& operands) {
  const bool fits = operands.type(0).rank() == 4 && operands.blocks.fit(operands.type(0)) &&
                    operands.blocks.fit(operands.type(1));
  if (!fits) return std::nullopt;
  if (operands.blocks.hold_all) return Wanted(2, true);
  if (operands.type(1).dtype != DType::f32) return std::nullopt;
  const std::int64_t groups = operands.node.attributes.integer("groups"),
                     channels = operands.type(1).dims()[1];
  // As for a convolution, whose image few channels leave dense.
  return Wanted{true, groups > 1 || operands.blocked[1] || channels >= operands.blocks.size};
}

/// Are more of a concat's elements at hand in blocks than would have to be turned?
bool is_most_blocked(const Operands& operands) {
  std::int64_t blocked = 0;
  for (std::size_t i = 0; i < operands.blocked.size(); ++i)
    if (operands.blocked[i]) blocked += operands.type(i).element_count();
  return 2 * blocked > operands.output().element_count();
}

std::optional<Wanted> concat_rule(const Operands& operands) {
  if (operands.node.attributes.integer("axis") != 1) return std::nullopt;
  for (std::size_t i = 0; i < operands.blocked.size(); ++i) {
    const bool last = i + 1 == operands.blocked.size();
    const bool whole = operands.blocks.hold_all || operands.type(i).dims()[1] % operands.blocks.size == 0;
    const bool ready = operands.blocked[i] ||
                       (operands.blocks.fit(operands.type(i)) && whole &&
                        (operands.blocks.hold_all ? is_most_blocked(operands) : operands.feeds_convolutions));
    if (!ready || !(last || whole)) return std::nullopt;
  }
  return Wanted(operands.blocked.size(), true);
}

/// Channels behind the others have no block of their own where a block holds all.
std::optional<Wanted> pad_rule(const Operands& operands) {
  const Dims& interior = operands.node.attributes.integers("interior");
  const bool is_behind = interior.size() < 2 || interior[1] == 0;
  return operands.blocks.hold_all && is_behind ? follow_first(operands) : channels_rule(operands);
}

/// A part of whole pixels, or of some channels of each.
std::optional<Wanted> slice_rule(const Operands& operands) {
  return operands.blocks.hold_all ? follow_first(operands) : std::nullopt;
}

Rule find_rule(Op op) {
  switch (op) {
    case Op::slice:
      return slice_rule;
    case Op::conv:
      return convolution_rule;
    case Op::filter_gradient:
      return filter_gradient_rule;
    case Op::max_pool_gradient:
      return pool_gradient_rule;
    case Op::max_pool:
    case Op::avg_pool:
    case Op::gather:
      return channels_rule;
    case Op::reduce_sum:
    case Op::reduce_max:
    case Op::reduce_min:
      return reduction_rule;
    case Op::layer_norm:
      return norm_rule;
    case Op::concat:
      return concat_rule;
    case Op::pad:
      return pad_rule;
    default:
      return has_trait(op, OpTrait::pointwise) ? pointwise_rule : nullptr;
  }
}

/// The one operand of pointwise work that has the result's shape, where blocks of it give blocks of the result.
ValueId operand_of_blocks(const Graph& graph, const Node& node, const LayoutBlocks& blocks) {
  if (!has_trait(node.op, OpTrait::pointwise) || node.outputs.size() != 1) return no_value;
  Operands operands{graph, node, blocks, {}};
  ValueId found = no_value;
  for (const ValueId input : node.inputs) {
    const bool is_whole = input != no_value && graph.type(input).shape == operands.output().shape;
    if (input == no_value || (is_whole && found != no_value)) return no_value;
    operands.blocked.push_back(is_whole);
    if (is_whole) found = input;
  }
  const bool takes = found != no_value && !graph.is_constant(found) && blocks.fit_work(graph.type(found));
  return takes && pointwise_rule(operands) ? found : no_value;
}

/// Per value: work on blocks makes it, of blocks of what it is made of. Where several values that are turned into blocks are work on
/// the same one, as the masks and slopes of an activation's gradient are, that one is turned, once.
IdMap<bool> made_of_blocks(const Graph& graph, const LayoutBlocks& blocks,
                           const std::vector<ValueId>& turned) {
  const auto operand = [&](ValueId id) {
    const NodeId producer = graph.value(id).producer;
    return producer == no_node ? no_value : operand_of_blocks(graph, graph.node(producer), blocks);
  };
  IdMap<int> turned_of(graph.values().size(), 0);  // per value: how many of those are work on it, or itself
  for (const ValueId id : turned)
    for (ValueId from = id; from != no_value; from = operand(from)) ++turned_of[from];
  IdMap<bool> made(graph.values().size(), false);
  for (const ValueId id : turned) {
    std::vector<ValueId> work;
    int most = turned_of[id];
    for (ValueId from = id; from != no_value; from = operand(from)) {
      if (turned_of[from] > most) {
        most = turned_of[from];
        for (const ValueId each : work) made[each] = true;
      }
      work.push_back(from);
    }
  }
  return made;
}

class Assigner {
 public:
  Assigner(const Graph& source, LayoutBlocks blocks, IdMap<bool> made_of_blocks)
      : source_(source),
        blocks_(blocks),
        made_of_blocks_(std::move(made_of_blocks)),
        readers_(source.uses()),
        dense_(source),
        blocked_(source.values().size(), no_value) {
    dense_.add_inputs();
  }

  /// Dense values that were turned into blocks, once it has run.
  [[nodiscard]] const std::vector<ValueId>& turned() const { return turned_; }

  Graph run() {
    for (const Node& node : source_.nodes()) add(node, wants(node));
    std::vector<ValueId> outputs;
    outputs.reserve(source_.outputs.size());
    for (const ValueId output : source_.outputs) outputs.push_back(as_dense(output));
    return dense_.finish(std::move(outputs));
  }

 private:
  std::optional<Wanted> wants(const Node& node) const {
    const Rule rule = find_rule(node.op);
    if (rule == nullptr || node.inputs.empty()) return std::nullopt;
    Operands operands{source_, node, blocks_, {}, feeds_convolutions(node)};
    for (ValueId input : node.inputs)
      operands.blocked.push_back(input != no_value && blocked_[input] != no_value);
    operands.is_read_dense = is_read_dense(node);
    return rule(operands);
  }

  [[nodiscard]] bool is_read_dense(const Node& node) const {
    const std::vector<NodeId>& readers = readers_[node.outputs[0]];
    return blocks_.hold_all && !readers.empty() && std::ranges::all_of(readers, [&](NodeId id) {
             const Node& reader = source_.node(id);
             return has_trait(reader.op, OpTrait::reduction) && reader.attributes.has("axes") &&
                    std::ranges::find(reader.attributes.integers("axes"), 1) !=
                        reader.attributes.integers("axes").end();
           });
  }

  /// Those take blocks in any case: parts change their layout on the way in rather than all of them behind.
  [[nodiscard]] bool feeds_convolutions(const Node& node) const {
    const std::vector<NodeId>& readers = readers_[node.outputs[0]];
    return !blocks_.hold_all && !readers.empty() && std::ranges::all_of(readers, [&](NodeId id) {
      const Node& reader = source_.node(id);
      return reader.op == Op::conv && reader.inputs[0] == node.outputs[0] &&
             reader.attributes.integer("groups") == 1;
    });
  }

  ValueId as_dense(ValueId id) {
    const bool is_at_hand = id == no_value || dense_.is_mapped(id) || source_.is_constant(id);
    if (!is_at_hand)
      dense_.set(id, dense_.graph().add(Op::to_layout, {blocked_[id]}, {{"block", std::int64_t{0}}}));
    return dense_.mapped(id);
  }

  ValueId as_blocked(ValueId id) {
    if (blocked_[id] != no_value) return blocked_[id];
    const std::int64_t block = blocks_.of(source_.type(id));
    if (made_of_blocks_[id])
      return blocked_[id] = work_on_blocks(source_.node(source_.value(id).producer), block);
    turned_.push_back(id);
    return blocked_[id] = dense_.graph().add(Op::to_layout, {as_dense(id)}, {{"block", block}});
  }

  ValueId work_on_blocks(const Node& node, std::int64_t block) {
    Operands operands{source_, node, blocks_, {}};
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      operands.blocked.push_back(operands.type(i).shape == operands.output().shape);
    const Wanted wanted = pointwise_rule(operands).value();
    std::vector<ValueId> inputs;
    inputs.reserve(node.inputs.size());
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      inputs.push_back(wanted[i] ? as_blocked(node.inputs[i]) : as_dense(node.inputs[i]));
    const ValueId made = dense_.add_copy(node, std::move(inputs)).at(0);
    dense_.graph().value(made).type.layout.channel_block = static_cast<int>(block);
    return made;
  }

  /// Transposes between images with their channels innermost and dense values of the same order move nothing.
  bool add_view(const Node& node) {
    if (!blocks_.hold_all || node.op != Op::transpose || source_.is_constant(node.inputs[0])) return false;
    const Dims& perm = node.attributes.integers("perm");
    if (!is_image(source_.type(node.outputs[0]))) return false;
    const bool leaves = perm == channels_behind(perm.size()) && blocked_[node.inputs[0]] != no_value;
    const bool comes = perm == channels_ahead(perm.size()) && blocks_.fit_work(source_.type(node.outputs[0]));
    if (!leaves && !comes) return false;
    const ValueId input = leaves ? blocked_[node.inputs[0]] : as_dense(node.inputs[0]);
    const ValueId output = dense_.add_copy(node, {input}).at(0);
    TensorType& type = dense_.graph().value(output).type;
    type.layout.channel_block = leaves ? 0 : blocks_.of(type);
    if (leaves)
      dense_.set(node.outputs[0], output);
    else
      blocked_[node.outputs[0]] = output;
    return true;
  }

  /// Pixels in another order of lines and columns, of images with their channels innermost, for what may read such: nothing moves.
  bool add_pixels(const Node& node) {
    if (!blocks_.hold_all || node.op != Op::reshape || blocked_[node.inputs[0]] == no_value) return false;
    const TensorType &from = source_.type(node.inputs[0]), &to = source_.type(node.outputs[0]);
    const bool keeps_channels = is_image(to) && blocks_.fit_work(to) && from.dims()[0] == to.dims()[0] &&
                                from.dims()[1] == to.dims()[1];
    const bool is_read = std::ranges::any_of(
        readers_[node.outputs[0]], [&](NodeId id) { return find_rule(source_.node(id).op) != nullptr; });
    if (!keeps_channels || !is_read) return false;
    Graph& graph = dense_.graph();
    const ValueId rows =
        graph.add(Op::transpose, {blocked_[node.inputs[0]]}, {{"perm", channels_behind(from.shape.size())}});
    graph.value(rows).type.layout.channel_block = 0;
    Dims dims = to.dims();
    std::rotate(dims.begin() + 1, dims.begin() + 2, dims.end());
    const ValueId turned = graph.add(Op::reshape, {rows}, {{"shape", dims}});
    const ValueId image =
        graph.add(Op::transpose, {turned}, {{"perm", channels_ahead(dims.size())}}, node.name);
    graph.value(image).type.layout.channel_block = blocks_.of(to);
    blocked_[node.outputs[0]] = image;
    return true;
  }

  static bool has_blocks(const Node& node, const TensorType& result) {
    return node.op != Op::filter_gradient && is_image(result);
  }

  void add(const Node& node, const std::optional<Wanted>& wanted) {
    if (add_view(node) || add_pixels(node)) return;
    std::vector<ValueId> inputs;
    inputs.reserve(node.inputs.size());
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      inputs.push_back(wanted && (*wanted)[i] ? as_blocked(node.inputs[i]) : as_dense(node.inputs[i]));
    const std::vector<ValueId> outputs = dense_.add_copy(node, std::move(inputs));
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      TensorType& type = dense_.graph().value(outputs[i]).type;
      // Of a row of channels or of a filter, the layout is the plain one.
      const bool is_blocked = wanted && has_blocks(node, type);
      type.layout.channel_block = is_blocked ? blocks_.of(type) : 0;
      if (is_blocked)
        blocked_[node.outputs[i]] = outputs[i];
      else
        dense_.set(node.outputs[i], outputs[i]);
    }
  }

  const Graph& source_;
  LayoutBlocks blocks_;
  IdMap<bool> made_of_blocks_;
  std::vector<ValueId> turned_;
  IdMap<std::vector<NodeId>> readers_;
  GraphCopier dense_;       ///< makes the result; what stands for a value is its dense form
  IdMap<ValueId> blocked_;  ///< per source value: its blocked form in the result, or no_value
};

bool has_convolutions(const Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(),
                     [](const Node& node) { return node.op == Op::conv || node.op == Op::filter_gradient; });
}

}  // namespace

Graph assign_layouts(const Graph& graph, const LoweringOptions& options) {
  if (!has_convolutions(graph)) return graph;
  const LayoutBlocks blocks{options.image_layout == ImageLayout::channels_last, options.channel_block,
                            options.tf32};
  Assigner first(graph, blocks, IdMap<bool>(graph.values().size(), false));
  Graph laid = first.run();
  if (blocks.hold_all) return laid;
  IdMap<bool> made = made_of_blocks(graph, blocks, first.turned());
  if (std::ranges::find(made, true) == made.end()) return laid;
  return without_dead_nodes(Assigner(graph, blocks, std::move(made)).run());
}

}  // namespace sylvite
