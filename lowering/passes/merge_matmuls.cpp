#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "frontend/graph/made_weights.h"
#include "frontend/graph/rewrite.h"
#include "frontend/ops/op_table.h"
#include "lowering/passes/pass_list.h"
#include "lowering/plan/fusion_rules.h"

namespace sylvite {
namespace {

/// One of the products, with its bias if it has one.
struct Branch {
  NodeId matmul = no_node;
  NodeId add = no_node;  ///< no_node without a bias
  ValueId weight = no_value;
  ValueId bias = no_value;
  ValueId result = no_value;
};

/// Matrices [K, N] side by side as [K, sum of N]; what has one number for each column is a matrix with K = 1.
Tensor side_by_side(const std::vector<Tensor>& matrices, std::int64_t rows) {
  std::int64_t width = 0;
  for (const Tensor& matrix : matrices) width += matrix.size() / rows;
  const DType dtype = matrices[0].dtype();
  const Dims dims = matrices[0].dims().size() == 2 ? Dims{rows, width} : Dims{width};
  const auto copy_rows = [=] {
    Tensor result(dtype, dims);
    auto* to = static_cast<std::byte*>(result.mutable_data());
    for (std::int64_t row = 0; row < rows; ++row) {
      for (const Tensor& matrix : matrices) {
        const auto bytes = static_cast<std::size_t>(matrix.byte_size() / rows);
        std::memcpy(to, static_cast<const std::byte*>(matrix.data()) + static_cast<std::size_t>(row) * bytes,
                    bytes);
        to += bytes;
      }
    }
    return result;
  };
  return made_of(fmt::format("side by side {}", rows), matrices,
                 [&] { return Tensor::later(dtype, dims, copy_rows); });
}

class Merger {
 public:
  explicit Merger(const Graph& graph) : graph_(graph), readers_(graph.uses()) {
    std::map<std::tuple<ValueId, Dims, DType, bool>, std::vector<Branch>> alike;
    for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
      const std::optional<Branch> branch = find_branch(static_cast<NodeId>(i));
      if (!branch) continue;
      const TensorType& weight = graph.type(branch->weight);
      alike[{graph.nodes()[i].inputs[0], weight.dims(), weight.dtype, branch->add != no_node}].push_back(
          *branch);
    }
    for (auto& [key, branches] : alike) {
      if (branches.size() < 2) continue;
      for (const Branch& branch : branches) absorbed_.insert({branch.matmul, branch.add});
      merged_[branches[0].matmul] = std::move(branches);
    }
  }

  bool rewrite(GraphRewriter& rewriter, const Node& node) {
    const auto id = static_cast<NodeId>(&node - graph_.nodes().data());
    const auto first = merged_.find(id);
    if (first != merged_.end()) merge(rewriter, node, first->second);
    return absorbed_.contains(id);
  }

 private:
  [[nodiscard]] const std::vector<NodeId>& readers(ValueId id) const { return readers_[id]; }

  [[nodiscard]] std::optional<Branch> find_branch(NodeId id) const {
    const Node& node = graph_.node(id);
    if (!has_trait(node.op, OpTrait::matmul) || graph_.is_constant(node.inputs[0])) return std::nullopt;
    const bool is_constant = std::all_of(node.inputs.begin() + 1, node.inputs.end(),
                                         [&](ValueId input) { return graph_.is_constant(input); });
    if (!is_constant) return std::nullopt;
    if (graph_.type(node.inputs[0]).rank() != 2 || graph_.type(node.inputs[1]).rank() != 2)
      return std::nullopt;
    if (graph_.type(node.inputs[1]).element_count() == 0) return std::nullopt;
    Branch branch{id, no_node, node.inputs[1], no_value, node.outputs[0]};
    const std::vector<NodeId>& next = readers(branch.result);
    if (next.size() == 1 && graph_.node(next[0]).op == Op::add && !is_output(branch.result)) {
      const Node& add = graph_.node(next[0]);
      branch.bias = add.inputs[0] == branch.result ? add.inputs[1] : add.inputs[0];
      const bool is_bias =
          graph_.is_constant(branch.bias) && graph_.value(branch.bias).constant->size() == width(branch) &&
          graph_.type(branch.bias).rank() > 0 && graph_.type(branch.bias).dims().back() == width(branch) &&
          graph_.type(add.outputs[0]).shape == graph_.type(branch.result).shape;
      if (!is_bias) return std::nullopt;
      branch.add = next[0];
      branch.result = add.outputs[0];
    }
    const std::vector<NodeId>& last = readers(branch.result);
    const bool sliceable = std::all_of(last.begin(), last.end(), [&](NodeId reader) {
      const bool is_view = role_of(graph_.node(reader)) == Role::view;
      return (is_view && !is_for_loop(reader)) || graph_.node(reader).op == Op::attention;
    });
    return sliceable && !last.empty() && !is_output(branch.result) ? std::optional(branch) : std::nullopt;
  }

  /// A loop takes what it scans as it lies, and would have a slice copied.
  [[nodiscard]] bool is_for_loop(NodeId view) const {
    return std::ranges::any_of(readers(graph_.node(view).outputs[0]),
                               [&](NodeId reader) { return graph_.node(reader).op == Op::loop; });
  }

  [[nodiscard]] std::int64_t width(const Branch& branch) const {
    return graph_.type(branch.weight).dims()[1];
  }

  [[nodiscard]] bool is_output(ValueId id) const {
    return std::find(graph_.outputs.begin(), graph_.outputs.end(), id) != graph_.outputs.end();
  }

  /// The constants that `which` names for each branch, side by side.
  template <typename Which>
  [[nodiscard]] ValueId merged_constant(Graph& graph, const std::vector<Branch>& branches, std::int64_t rows,
                                        Which which) const {
    std::vector<Tensor> parts;
    parts.reserve(branches.size());
    for (const Branch& branch : branches) parts.push_back(*graph_.value(which(branch)).constant);
    return graph.add_constant(side_by_side(parts, rows), graph_.value(which(branches[0])).name + "_merged");
  }

  void merge(GraphRewriter& rewriter, const Node& node, const std::vector<Branch>& branches) const {
    Graph& graph = rewriter.graph();
    std::vector<ValueId> inputs = {rewriter.mapped(node.inputs[0])};
    for (std::size_t i = 1; i < node.inputs.size(); ++i) {
      const Dims dims = graph_.type(node.inputs[i]).dims();
      inputs.push_back(
          merged_constant(graph, branches, dims.size() == 2 ? dims[0] : 1,
                          [&](const Branch& branch) { return graph_.node(branch.matmul).inputs[i]; }));
    }
    ValueId result = graph.add(node.op, inputs, {}, node.name);
    if (branches[0].add != no_node) {
      const ValueId bias =
          merged_constant(graph, branches, 1, [](const Branch& branch) { return branch.bias; });
      result = graph.add(Op::add, {result, bias}, {}, node.name);
    }
    const Dims sizes = graph_.type(branches[0].result).dims();
    Dims starts = {0, 0};
    for (const Branch& branch : branches) {
      const ValueId part =
          graph.add(Op::slice, {result}, {{"starts", starts}, {"sizes", sizes}, {"steps", Dims{1, 1}}});
      graph.rename(part, graph_.value(branch.result).name);
      rewriter.set(branch.result, part);
      starts[1] += sizes[1];
    }
  }

  const Graph& graph_;
  IdMap<std::vector<NodeId>> readers_;
  std::map<NodeId, std::vector<Branch>> merged_;  ///< by the first branch's matmul
  std::set<NodeId> absorbed_;                     ///< nodes of merged branches
};

}  // namespace

Graph merge_matmuls(const Graph& graph) {
  Merger merger(graph);
  return rewrite_nodes(
      graph, [&](GraphRewriter& rewriter, const Node& node) { return merger.rewrite(rewriter, node); });
}

}  // namespace sylvite
