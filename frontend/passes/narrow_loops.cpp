// Before: loop(s, x)           whose trips read cast(s) and cast(x), in bf16 or f16, and give cast(y) in f32 as the next state and as a result
// After:  cast(loop(cast(s), cast(x)))       whose trips read and give what is narrow
// What is rounded wherever it is read loses nothing by lying so. A trip is a kernel less, and moves half as much.

#include <algorithm>
#include <optional>

#include "frontend/graph/rewrite.h"
#include "frontend/graph/views.h"
#include "frontend/ops/op_table.h"
#include "frontend/passes/pass_list.h"
#include "frontend/passes/round_constants.h"

namespace sylvite {
namespace {

/// The value of 16 bits that a cast makes an f32 of, or no_value.
ValueId widened(const Graph& graph, ValueId id) {
  const Node* cast = producer_if(graph, id, Op::cast);
  const bool widens =
      cast != nullptr && graph.type(id).dtype == DType::f32 && is_half(graph.type(cast->inputs[0]).dtype);
  return widens ? cast->inputs[0] : no_value;
}

/// The value as `narrow`: what it was widened from, behind the same views, or a constant that is the same then.
std::optional<ValueId> as_it_was(Graph& graph, ValueId id, DType narrow) {
  if (graph.is_constant(id)) {
    const Tensor& wide = *graph.value(id).constant;
    const Tensor rounded_now = rounded(wide, narrow);
    for (std::int64_t i = 0; i < wide.size(); ++i)
      if (rounded_now.as_double(i) != wide.as_double(i)) return std::nullopt;
    return graph.add_constant(rounded_now);
  }
  if (const ValueId before = widened(graph, id); before != no_value && graph.type(before).dtype == narrow)
    return before;
  if (graph.value(id).producer == no_node) return std::nullopt;
  const Node view = graph.node(graph.value(id).producer);
  if (!has_trait(view.op, OpTrait::view) || view.inputs.size() != 1) return std::nullopt;
  const std::optional<ValueId> before = as_it_was(graph, view.inputs[0], narrow);
  return before ? std::optional(graph.add(view.op, {*before}, view.attributes)) : std::nullopt;
}

/// A loop's body, and which of what goes in and out of it may be narrow.
class Trip {
 public:
  Trip(const Graph& body, std::size_t states) : body_(body), uses_(body.uses()) {
    for (const ValueId id : body.inputs) read_as_.push_back(read_as(id));
    for (const ValueId id : body.outputs) {
      const ValueId before = widened(body, id);
      made_as_.push_back(before == no_value ? std::nullopt : std::optional(body.type(before).dtype));
    }
    for (std::size_t i = 0; i < states; ++i)
      if (read_as_[i] != made_as_[i]) read_as_[i] = made_as_[i] = std::nullopt;
  }

  [[nodiscard]] std::optional<DType> read_as(std::size_t input) const { return read_as_[input]; }
  [[nodiscard]] bool is_made_narrow(std::size_t output) const { return made_as_[output].has_value(); }
  [[nodiscard]] bool changes() const {
    const auto is_narrow = [](const std::optional<DType>& dtype) { return dtype.has_value(); };
    return std::ranges::any_of(read_as_, is_narrow) || std::ranges::any_of(made_as_, is_narrow);
  }

  [[nodiscard]] Graph narrowed() const {
    GraphCopier copier(body_);
    IdMap<bool> is_dropped(body_.nodes().size(), false);
    for (std::size_t i = 0; i < body_.inputs.size(); ++i) {
      const ValueId id = body_.inputs[i];
      if (!read_as_[i]) {
        copier.add_input(id);
        continue;
      }
      const ValueId narrow =
          copier.graph().add_input(body_.value(id).name, make_type(*read_as_[i], body_.type(id).dims()));
      for (const NodeId reader : uses_[id]) {
        copier.set(body_.node(reader).outputs[0], narrow);
        is_dropped[reader] = true;
      }
    }
    for (std::size_t i = 0; i < body_.nodes().size(); ++i)
      if (!is_dropped[static_cast<NodeId>(i)]) copier.copy(body_.nodes()[i]);
    Graph trip = copier.graph();
    for (std::size_t i = 0; i < body_.outputs.size(); ++i)
      trip.outputs.push_back(
          copier.mapped(made_as_[i] ? widened(body_, body_.outputs[i]) : body_.outputs[i]));
    return without_dead_nodes(std::move(trip));
  }

 private:
  /// The type that all that reads an f32 of a body's makes of it first.
  [[nodiscard]] std::optional<DType> read_as(ValueId id) const {
    const std::vector<NodeId>& readers = uses_[id];
    const bool is_given = std::ranges::find(body_.outputs, id) != body_.outputs.end();
    if (readers.empty() || is_given || body_.type(id).dtype != DType::f32) return std::nullopt;
    const DType dtype = body_.type(body_.node(readers[0]).outputs[0]).dtype;
    const bool is_rounded = std::ranges::all_of(readers, [&](NodeId reader) {
      const Node& node = body_.node(reader);
      return node.op == Op::cast && body_.type(node.outputs[0]).dtype == dtype &&
             node.attributes.integer("rounds") == 1;
    });
    return is_half(dtype) && is_rounded ? std::optional(dtype) : std::nullopt;
  }

  const Graph& body_;
  IdMap<std::vector<NodeId>> uses_;
  std::vector<std::optional<DType>> read_as_;  ///< by input
  std::vector<std::optional<DType>> made_as_;  ///< by output
};

bool narrow_loop(GraphRewriter& rewriter, const Node& node) {
  const Trip trip(node.attributes.graph("body"), static_cast<std::size_t>(node.attributes.integer("states")));
  if (!trip.changes()) return false;
  Graph& graph = rewriter.graph();
  std::vector<ValueId> inputs = rewriter.mapped(node.inputs);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!trip.read_as(i)) continue;
    const std::optional<ValueId> before = as_it_was(graph, inputs[i], *trip.read_as(i));
    inputs[i] = before ? *before : add_cast(graph, inputs[i], *trip.read_as(i));
  }
  Attributes attributes = node.attributes;
  attributes.set("body", GraphAttribute{std::make_shared<const Graph>(trip.narrowed())});
  const std::vector<ValueId> made =
      graph.add_node(Op::loop, std::move(inputs), std::move(attributes), node.name);
  for (std::size_t i = 0; i < made.size(); ++i)
    rewriter.set(node.outputs[i], trip.is_made_narrow(i) ? add_cast(graph, made[i], DType::f32) : made[i]);
  return true;
}

}  // namespace

Graph narrow_loops(const Graph& graph) {
  const auto is_loop = [](const Node& node) { return node.op == Op::loop; };
  if (std::ranges::none_of(graph.nodes(), is_loop)) return graph;
  return rewrite_nodes(graph, [](GraphRewriter& rewriter, const Node& node) {
    if (node.op == Op::loop) return narrow_loop(rewriter, node);
    const bool narrows = node.op == Op::cast && is_half(rewriter.source().type(node.outputs[0]).dtype);
    if (!narrows) return false;
    const std::optional<ValueId> before = as_it_was(rewriter.graph(), rewriter.mapped(node.inputs[0]),
                                                    rewriter.source().type(node.outputs[0]).dtype);
    if (before) rewriter.set(node.outputs[0], *before);
    return before.has_value();
  });
}

}  // namespace sylvite
