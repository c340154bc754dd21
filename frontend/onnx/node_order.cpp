#include "frontend/onnx/node_order.h"

#include <onnx-ml.pb.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <queue>
#include <set>
#include <unordered_map>

#include "base/error.h"

namespace sylvite {
namespace {

using ProducerMap = std::unordered_map<std::string, int>;

void collect_names(const onnx::NodeProto& node, std::set<std::string>& names);

/// Those that nothing in the graph binds: a name of its own may be one of an outer graph's as well.
void collect_outer_names(const onnx::GraphProto& graph, std::set<std::string>& names) {
  std::set<std::string> read;
  std::set<std::string> own;
  for (const onnx::NodeProto& node : graph.node()) {
    collect_names(node, read);
    own.insert(node.output().begin(), node.output().end());
  }
  for (const onnx::ValueInfoProto& output : graph.output()) read.insert(output.name());
  for (const onnx::ValueInfoProto& input : graph.input()) own.insert(input.name());
  for (const onnx::TensorProto& weight : graph.initializer()) own.insert(weight.name());
  for (const onnx::SparseTensorProto& weight : graph.sparse_initializer()) own.insert(weight.values().name());
  std::set_difference(read.begin(), read.end(), own.begin(), own.end(), std::inserter(names, names.end()));
}

void collect_names(const onnx::NodeProto& node, std::set<std::string>& names) {
  names.insert(node.input().begin(), node.input().end());
  for (const onnx::AttributeProto& attribute : node.attribute()) {
    if (attribute.has_g()) collect_outer_names(attribute.g(), names);
    for (const onnx::GraphProto& graph : attribute.graphs()) collect_outer_names(graph, names);
  }
}

ProducerMap map_producers(const google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes) {
  ProducerMap producers;
  for (int i = 0; i < nodes.size(); ++i) {
    for (const std::string& name : nodes.Get(i).output()) {
      if (name.empty()) continue;
      const auto [first, is_new] = producers.emplace(name, i);
      if (!is_new) {
        throw ModelError("{} produces '{}', which {} already produces", describe_node(nodes.Get(i)), name,
                         describe_node(nodes.Get(first->second)));
      }
    }
  }
  return producers;
}

/// Does each node stand behind those that it reads? As files should have them, and subgraphs that are imported again and again.
bool are_in_order(const google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes,
                  const ProducerMap& producers) {
  const auto is_before = [&](const std::string& name, int reader) {
    const auto found = producers.find(name);
    return found == producers.end() || found->second < reader;
  };
  for (int i = 0; i < nodes.size(); ++i) {
    const onnx::NodeProto& node = nodes.Get(i);
    const auto is_behind = [&](const auto& names) {
      return std::ranges::all_of(names, [&](const std::string& name) { return is_before(name, i); });
    };
    const bool has_graphs = std::ranges::any_of(node.attribute(), [](const onnx::AttributeProto& attribute) {
      return attribute.has_g() || attribute.graphs_size() > 0;
    });
    if (!(has_graphs ? is_behind(names_read(node)) : is_behind(node.input()))) return false;
  }
  return true;
}

}  // namespace

std::string describe_node(const onnx::NodeProto& node) {
  std::string name = node.name();
  if (name.empty() && node.output_size() > 0) name = node.output(0);
  const std::string domain = node.domain().empty() ? "" : node.domain() + ".";
  return fmt::format("{}{} '{}'", domain, node.op_type(), name);
}

std::set<std::string> names_read(const onnx::NodeProto& node) {
  std::set<std::string> names;
  collect_names(node, names);
  names.erase("");
  return names;
}

std::vector<const onnx::NodeProto*> order_nodes(
    const google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes) {
  const ProducerMap producers = map_producers(nodes);
  const auto count = static_cast<std::size_t>(nodes.size());
  std::vector<const onnx::NodeProto*> order;
  order.reserve(count);
  if (are_in_order(nodes, producers)) {
    for (const onnx::NodeProto& node : nodes) order.push_back(&node);
    return order;
  }
  std::vector<std::vector<int>> readers(count);
  std::vector<std::size_t> waiting(count);
  std::priority_queue<int, std::vector<int>, std::greater<>> ready;
  for (int i = 0; i < nodes.size(); ++i) {
    std::set<int> dependencies;
    for (const std::string& name : names_read(nodes.Get(i)))
      if (const auto found = producers.find(name); found != producers.end())
        dependencies.insert(found->second);
    waiting[static_cast<std::size_t>(i)] = dependencies.size();
    for (const int producer : dependencies) readers[static_cast<std::size_t>(producer)].push_back(i);
    if (dependencies.empty()) ready.push(i);
  }
  while (!ready.empty()) {
    const int next = ready.top();
    ready.pop();
    order.push_back(&nodes.Get(next));
    for (const int reader : readers[static_cast<std::size_t>(next)])
      if (--waiting[static_cast<std::size_t>(reader)] == 0) ready.push(reader);
  }
  for (std::size_t i = 0; order.size() < count && i < count; ++i) {
    if (waiting[i] > 0) {
      throw ModelError("{} waits for its own output: the nodes form a cycle",
                       describe_node(nodes.Get(static_cast<int>(i))));
    }
  }
  return order;
}

}  // namespace sylvite
