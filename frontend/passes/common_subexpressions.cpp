// Computes equal nodes once: same operation, same inputs, same attributes. The inputs of a commutative operation may
// have changed places. Constants with equal bytes count as equal; large ones are compared by address only, which is
// what importers share.

#include <fmt/format.h>

#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <variant>

#include "frontend/graph/copy.h"
#include "frontend/graph/rewrite.h"
#include "frontend/ops/op_table.h"
#include "frontend/passes/pass_list.h"

namespace sylvite {
namespace {

constexpr std::int64_t compare_bytes_up_to = 4096;

std::string constant_key(const Tensor& tensor) {
  std::string key = tensor.type().to_string() + ":";
  if (tensor.byte_size() <= compare_bytes_up_to)
    key.append(static_cast<const char*>(tensor.data()), static_cast<std::size_t>(tensor.byte_size()));
  else
    key += fmt::format("{}", tensor.identity());
  return key;
}

using NodeKey = std::tuple<Op, std::vector<ValueId>, std::map<std::string, Attribute>>;

std::map<std::string, Attribute> attributes_key(const Attributes& attributes) {
  std::map<std::string, Attribute> items = attributes.items();
  for (auto& [name, value] : items)
    if (const auto* body = std::get_if<GraphAttribute>(&value))
      value = GraphAttribute{std::make_shared<const Graph>(canonical(*body->graph))};
  return items;
}

}  // namespace

Graph common_subexpressions(const Graph& graph) {
  std::map<std::string, ValueId> constants;
  std::map<NodeKey, std::vector<ValueId>> known;
  return rewrite_nodes(graph, [&](GraphRewriter& rewriter, const Node& node) {
    std::vector<ValueId> inputs = rewriter.mapped(node.inputs);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (!rewriter.graph().is_constant(inputs[i])) continue;
      const std::string key = constant_key(*rewriter.graph().value(inputs[i]).constant);
      const ValueId first = constants.try_emplace(key, inputs[i]).first->second;
      if (rewriter.graph().type(first) != rewriter.graph().type(inputs[i]))
        continue;  // stored in another layout
      rewriter.set(node.inputs[i], first);
      inputs[i] = first;
    }
    if (has_trait(node.op, OpTrait::commutative) && inputs[0] > inputs[1]) std::swap(inputs[0], inputs[1]);
    const NodeKey key{node.op, inputs, attributes_key(node.attributes)};
    const auto found = known.find(key);
    if (found != known.end()) {
      for (std::size_t i = 0; i < node.outputs.size(); ++i) rewriter.set(node.outputs[i], found->second[i]);
      return true;
    }
    rewriter.copy(node);
    known[key] = rewriter.mapped(node.outputs);
    return true;
  });
}

}  // namespace sylvite
