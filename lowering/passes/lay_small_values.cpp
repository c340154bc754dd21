// Before: to_layout(mul(sum [1, C, 1, 1], scale [1, C, 1, 1]), C)
// After:  mul(to_layout(sum, C), to_layout(scale, C))
// A number for each channel lies the same in every layout, so that to_layout moves nothing; but it keeps the work that makes
// the numbers out of the kernel that reads them: a launch for a few hundred multiplications.

#include "lowering/passes/lay_small_values.h"

#include <algorithm>
#include <map>

#include "frontend/graph/rewrite.h"
#include "frontend/graph/views.h"
#include "frontend/ops/op_table.h"
#include "lowering/passes/images.h"

namespace sylvite {
namespace {

bool has_one_pixel(const TensorType& type) {
  const Dims dims = type.dims();
  return is_image(type) && dims[1] > 1 && product(dims, 2, dims.size()) == 1;
}

bool is_number(const Graph& graph, ValueId id) {
  return id == no_value || graph.type(id).element_count() == 1;
}

class SmallValues {
 public:
  explicit SmallValues(const Graph& graph) : graph_(graph), move_(graph.values().size(), false) {
    const IdMap<std::vector<NodeId>> readers = graph.uses();
    std::vector<bool> is_output(graph.values().size(), false);
    for (const ValueId output : graph.outputs) is_output[static_cast<std::size_t>(output)] = true;
    for (auto node = graph.nodes().rbegin(); node != graph.nodes().rend(); ++node) {
      const ValueId made = node->outputs[0];
      if (!may_lie_otherwise(*node) || is_output[static_cast<std::size_t>(made)] || readers[made].empty())
        continue;
      move_[made] =
          std::ranges::all_of(readers[made], [&](NodeId id) { return wants_channels(graph.node(id), made); });
    }
  }

  [[nodiscard]] bool rewrite(GraphRewriter& rewriter, const Node& node) {
    const ValueId made = node.outputs[0];
    if (node.op == Op::to_layout && move_[node.inputs[0]]) {
      rewriter.set(made, rewriter.mapped(node.inputs[0]));
      return true;
    }
    if (!move_[made]) return false;
    std::vector<ValueId> inputs;
    inputs.reserve(node.inputs.size());
    for (const ValueId id : node.inputs)
      inputs.push_back(is_number(graph_, id) ? rewriter.mapped(id) : laid(rewriter, id));
    const ValueId result = rewriter.add_copy(node, std::move(inputs)).at(0);
    rewriter.graph().value(result).type.layout.channel_block = channels_of(made);
    rewriter.set(made, result);
    return true;
  }

 private:
  [[nodiscard]] int channels_of(ValueId id) const { return static_cast<int>(graph_.type(id).dims()[1]); }

  /// Work on numbers for channels, all dense.
  [[nodiscard]] bool may_lie_otherwise(const Node& node) const {
    if (!has_trait(node.op, OpTrait::pointwise) || node.outputs.size() != 1) return false;
    const TensorType& made = graph_.type(node.outputs[0]);
    return has_one_pixel(made) && made.layout.channel_block == 0 &&
           std::ranges::all_of(node.inputs, [&](ValueId id) {
             if (is_number(graph_, id)) return true;
             const TensorType& type = graph_.type(id);
             return has_one_pixel(type) && type.rank() == made.rank() && type.dims()[1] == made.dims()[1] &&
                    type.layout.channel_block == 0;
           });
  }
  [[nodiscard]] bool wants_channels(const Node& reader, ValueId id) const {
    if (reader.op == Op::to_layout) return reader.attributes.integer("block") == channels_of(id);
    return move_[reader.outputs[0]];
  }

  /// The value as its readers want it.
  ValueId laid(GraphRewriter& rewriter, ValueId id) {
    if (move_[id]) return rewriter.mapped(id);
    const auto [entry, added] = laid_.try_emplace(id, no_value);
    if (!added) return entry->second;
    const ValueId dense = rewriter.mapped(id);
    const Node* change = producer_if(rewriter.graph(), dense, Op::to_layout);
    const bool lay_so =
        change != nullptr && rewriter.graph().type(change->inputs[0]).layout.channel_block == channels_of(id);
    return entry->second = lay_so ? change->inputs[0]
                                  : rewriter.graph().add(Op::to_layout, {dense},
                                                         {{"block", std::int64_t{channels_of(id)}}});
  }

  const Graph& graph_;
  IdMap<bool> move_;  ///< per value
  std::map<ValueId, ValueId> laid_;
};

}  // namespace

Graph lay_small_values(const Graph& graph) {
  SmallValues small(graph);
  return rewrite_nodes(
      graph, [&](GraphRewriter& rewriter, const Node& node) { return small.rewrite(rewriter, node); });
}

}  // namespace sylvite
