// Before: h = x W + b; y = silu(h[.., :F]) * h[.., F:]    W [K, 2 F]; or a convolution by 2 F filters
// After:  y = silu(x W[:, :F] + b[:F]) * (x W[:, F:] + b[F:])
// A kernel takes what is done with its product, but not what is done with two parts of it: the product is stored whole, and
// a kernel of its own reads both halves and stores a third. Of two products the second takes all of that, and reads one half.

#include "lowering/passes/split_gates.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <optional>
#include <set>

#include "frontend/graph/made_weights.h"
#include "frontend/graph/rewrite.h"
#include "frontend/graph/views.h"
#include "frontend/ops/op_table.h"

namespace sylvite {
namespace {

/// Elements of a half from which on its product fills a card by itself: 128 tiles of 128 x 128. Smaller ones would take turns on
/// a part of it.
constexpr std::int64_t least_elements = 128LL * 128 * 128;
constexpr std::size_t most_nodes = 16;  ///< of pointwise work on a half

/// The first or second half of a tensor along one dim.
Tensor half_of(const Tensor& whole, std::size_t axis, bool second) {
  Dims dims = whole.dims();
  const std::int64_t pieces = product(dims, 0, axis);
  dims[axis] /= 2;
  const DType dtype = whole.dtype();
  const auto copy = [=] {
    Tensor half(dtype, dims);
    const auto bytes = static_cast<std::size_t>(half.byte_size() / pieces);
    const std::byte* from = static_cast<const std::byte*>(whole.data()) + (second ? bytes : 0);
    auto* to = static_cast<std::byte*>(half.mutable_data());
    for (std::int64_t i = 0; i < pieces; ++i, from += 2 * bytes, to += bytes) std::memcpy(to, from, bytes);
    return half;
  };
  return made_of(fmt::format("half {} {}", axis, second), {whole},
                 [&] { return Tensor::later(dtype, dims, copy); });
}

/// A slice that is half of a product.
struct GateHalf {
  const Node* product = nullptr;
  const Node* add = nullptr;  ///< of a bias; nullptr without
  bool second = false;
};

class GateSplitter {
 public:
  explicit GateSplitter(const Graph& graph) : graph_(graph), readers_(graph.uses()) {}

  bool rewrite(GraphRewriter& rewriter, const Node& node) const {
    const std::optional<GateHalf> half = find(node);
    if (!half) return false;
    const Node& product = *half->product;
    Graph& graph = rewriter.graph();
    const auto constant = [&](ValueId whole, std::size_t axis) {
      return graph.add_constant(half_of(*graph_.value(whole).constant, axis, half->second),
                                graph_.value(whole).name + (half->second ? "_second" : "_first"));
    };
    std::vector<ValueId> inputs = {rewriter.mapped(product.inputs[0]),
                                   constant(product.inputs[1], product.op == Op::conv ? 0 : 1)};
    for (std::size_t i = 2; i < product.inputs.size(); ++i)
      inputs.push_back(product.inputs[i] == no_value ? no_value : constant(product.inputs[i], 0));
    ValueId result = graph.add(product.op, inputs, product.attributes, product.name);
    if (half->add != nullptr) {
      const ValueId bias = bias_of(*half->add);
      const auto last = static_cast<std::size_t>(graph_.type(bias).rank() - 1);
      result = graph.add(Op::add, {result, constant(bias, last)}, {}, product.name);
    }
    rewriter.set(node.outputs[0], add_reshape(graph, result, graph_.type(node.outputs[0]).dims()));
    return true;
  }

 private:
  [[nodiscard]] bool is_output(ValueId id) const {
    return std::ranges::find(graph_.outputs, id) != graph_.outputs.end();
  }

  /// The dim of which the node takes one half, and all of the others.
  [[nodiscard]] std::optional<std::size_t> halved_dim(const Node& node) const {
    if (node.op != Op::slice) return std::nullopt;
    const Dims from = graph_.type(node.inputs[0]).dims(), to = graph_.type(node.outputs[0]).dims();
    const Dims& starts = node.attributes.integers("starts");
    const Dims& steps = node.attributes.integers("steps");
    std::optional<std::size_t> found;
    for (std::size_t i = 0; i < from.size(); ++i) {
      if (from[i] == to[i] && starts[i] == 0) continue;
      if (found || steps[i] != 1 || from[i] != 2 * to[i] || starts[i] % to[i] != 0) return std::nullopt;
      found = i;
    }
    return found;
  }

  /// Pointwise work on a value that keeps its extents, as far as one kernel may go.
  [[nodiscard]] std::set<NodeId> work_on(ValueId id) const {
    std::set<NodeId> found;
    std::vector<ValueId> open = {id};
    while (!open.empty() && found.size() < most_nodes) {
      const ValueId at = open.back();
      open.pop_back();
      for (const NodeId reader : readers_[at]) {
        const Node& node = graph_.node(reader);
        const bool follows = has_trait(node.op, OpTrait::pointwise) && node.outputs.size() == 1 &&
                             graph_.type(node.outputs[0]).shape == graph_.type(id).shape;
        if (follows && found.insert(reader).second) open.push_back(node.outputs[0]);
      }
    }
    return found;
  }

  /// Are these two the halves of a value that nothing else reads, and does one node work on both?
  [[nodiscard]] bool are_gated(const Node& a, const Node& b) const {
    const std::optional<std::size_t> axis = halved_dim(a);
    if (!axis || halved_dim(b) != axis ||
        a.attributes.integers("starts")[*axis] == b.attributes.integers("starts")[*axis])
      return false;
    const auto is_pointwise = [&](NodeId id) { return has_trait(graph_.node(id).op, OpTrait::pointwise); };
    for (const ValueId half : {a.outputs[0], b.outputs[0]})
      if (is_output(half) || !std::ranges::all_of(readers_[half], is_pointwise)) return false;
    const std::set<NodeId> work = work_on(b.outputs[0]);
    return std::ranges::any_of(work_on(a.outputs[0]), [&](NodeId id) { return work.contains(id); });
  }

  /// The node that makes `id`, for the one reader that it has.
  [[nodiscard]] const Node* only_for_one(ValueId id, std::size_t readers = 1) const {
    const NodeId producer = graph_.value(id).producer;
    return producer == no_node || is_output(id) || readers_[id].size() != readers ? nullptr
                                                                                  : &graph_.node(producer);
  }

  [[nodiscard]] ValueId bias_of(const Node& add) const {
    return graph_.is_constant(add.inputs[0]) ? add.inputs[0] : add.inputs[1];
  }

  /// Does the node add a constant for each column?
  [[nodiscard]] bool adds_bias(const Node& node) const {
    if (node.op != Op::add) return false;
    const ValueId bias = bias_of(node);
    const Dims dims = graph_.type(node.outputs[0]).dims();
    return graph_.is_constant(bias) && graph_.type(bias).rank() > 0 && !dims.empty() &&
           graph_.type(bias).dims().back() == dims.back() && graph_.type(bias).element_count() == dims.back();
  }

  /// A product by constants of which one half can be made by itself, along the dim `axis` of its result from the end.
  [[nodiscard]] bool is_by_constants(const Node& node, std::size_t from_end) const {
    const bool is_matmul = node.op == Op::matmul && from_end == 1 && graph_.type(node.inputs[1]).rank() == 2;
    const bool is_conv = node.op == Op::conv && node.attributes.integer("groups") == 1 &&
                         graph_.type(node.outputs[0]).rank() == static_cast<int>(from_end) + 1;
    return (is_matmul || is_conv) && !graph_.is_constant(node.inputs[0]) &&
           std::all_of(node.inputs.begin() + 1, node.inputs.end(),
                       [&](ValueId id) { return id == no_value || graph_.is_constant(id); });
  }

  [[nodiscard]] std::optional<GateHalf> find(const Node& node) const {
    const std::optional<std::size_t> axis = halved_dim(node);
    if (!axis || graph_.type(node.outputs[0]).element_count() < least_elements) return std::nullopt;
    const Dims dims = graph_.type(node.inputs[0]).dims();
    const std::vector<NodeId>& halves = readers_[node.inputs[0]];
    const Node* at = only_for_one(node.inputs[0], 2);
    if (at == nullptr || !are_gated(graph_.node(halves[0]), graph_.node(halves[1]))) return std::nullopt;
    GateHalf half{nullptr, nullptr, node.attributes.integers("starts")[*axis] != 0};
    const bool is_last = *axis + 1 == dims.size();
    if (is_last && at->op == Op::reshape && graph_.type(at->inputs[0]).rank() > 0 &&
        graph_.type(at->inputs[0]).dims().back() == dims.back())
      at = only_for_one(at->inputs[0]);
    if (at != nullptr && is_last && adds_bias(*at)) {
      half.add = at;
      at = only_for_one(at->inputs[at->inputs[0] == bias_of(*at) ? 1 : 0]);
    }
    if (at == nullptr || !is_by_constants(*at, dims.size() - *axis)) return std::nullopt;
    half.product = at;
    return half;
  }

  const Graph& graph_;
  IdMap<std::vector<NodeId>> readers_;  ///< per value
};

}  // namespace

Graph split_gates(const Graph& graph) {
  const GateSplitter splitter(graph);
  return rewrite_nodes(
      graph, [&](GraphRewriter& rewriter, const Node& node) { return splitter.rewrite(rewriter, node); });
}

}  // namespace sylvite
