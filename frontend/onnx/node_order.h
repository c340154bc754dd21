#pragma once
// An order of ONNX nodes in which every node stands after the producers of what it reads.

#include <set>
#include <string>
#include <vector>

namespace google::protobuf {
template <typename T>
class RepeatedPtrField;
}
namespace onnx {
class NodeProto;
}

namespace sylvite {

/// "operator 'name'", with the first output standing in for a missing name.
[[nodiscard]] std::string describe_node(const onnx::NodeProto& node);

/// Everything the node reads, and what its subgraphs read from outside.
[[nodiscard]] std::set<std::string> names_read(const onnx::NodeProto& node);

/// The given order where possible. What subgraphs of a node read from outside counts as read by the node.
/// Names that nobody here produces are left to the caller. Throws ModelError naming a node when two nodes
/// produce one name or nodes wait for each other.
[[nodiscard]] std::vector<const onnx::NodeProto*> order_nodes(
    const google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes);

}  // namespace sylvite
