#pragma once
// Walks the graphs of an ONNX model (main graph, subgraphs, function bodies) and imports node after node.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "frontend/graph/graph_builder.h"
#include "frontend/onnx/binding.h"
#include "frontend/onnx/expectation.h"
#include "frontend/onnx/external_data.h"
#include "frontend/onnx/functions.h"
#include "frontend/onnx/imported_model.h"
#include "frontend/onnx/importer.h"
#include "frontend/onnx/initializer_store.h"
#include "frontend/onnx/known_texts.h"

namespace google::protobuf {
template <typename T>
class RepeatedPtrField;
}  // namespace google::protobuf
namespace onnx {
class AttributeProto;
class GraphProto;
class ModelProto;
class NodeProto;
class TensorProto;
class ValueInfoProto;
}  // namespace onnx

namespace sylvite {

struct OnnxOp;
class LoopTrips;
class NodeStore;
struct TripRunner;

/// What holds while the nodes of one function body, or of the model's own graphs, are imported.
struct OnnxFrame {
  const OnnxFrame* caller = nullptr;  ///< nullptr for the model itself
  std::string function;               ///< its identity, for refusing recursion
  std::map<std::string, int> opsets;  ///< domain -> version; the default domain is ""
  std::map<std::string, const onnx::AttributeProto*> attributes;  ///< what ref_attr_name refers to
};

/// What the importer does about values that are known only when the model runs.
enum class OnnxStage {
  whole,   ///< refuse: the graph must be the whole model
  first,   ///< leave the nodes that read them to the host part
  running  ///< there are none: every value is a constant
};

/// A node that waits for the run, and why.
struct DeferredNode {
  const onnx::NodeProto* node;
  std::string reason;
  bool is_first = false;  ///< what it reads is known: it waits for what it is itself
  std::string size = {};  ///< the few elements that it waits for, if it does; see NeedsValueError
};

/// A value that the host part takes from the graph: outputs of it, or what was known while importing.
struct HostHandover {
  std::string name;
  bool is_sequence = false;
  std::vector<std::size_t> graph_outputs;                 ///< one for a tensor, one per item for a sequence
  HostValue known;                                        ///< when there are no graph_outputs
  std::shared_ptr<const std::vector<std::string>> texts;  ///< where strings are asked for: see OnnxBinding
};

/// As the file declares it; of a tensor without its shape.
[[nodiscard]] ModelPort declared_port(const onnx::ValueInfoProto& value);

/// Options of `model` with whole shapes for the inputs that have symbols.
[[nodiscard]] ImportOptions options_at(const ParsedModel& model, const Sizes& sizes);

class OnnxGraphImporter {
 public:
  /// `options` must outlive the importer. `store`: what other imports of the model read, if there are any.
  OnnxGraphImporter(std::shared_ptr<const onnx::ModelProto> model, const DataFolder& folder,
                    const ImportOptions& options, OnnxStage stage = OnnxStage::whole,
                    std::shared_ptr<InitializerStore> store = nullptr);
  /// REQUIRES stage whole.
  [[nodiscard]] Graph import_model();
  /// REQUIRES stage first. Fills the three lists unless the graph is the whole model. expectations() are then the last
  /// outputs of the graph, in order.
  [[nodiscard]] Graph import_first(std::vector<DeferredNode>& deferred, std::vector<HostHandover>& handovers,
                                   std::vector<ModelPort>& inputs);
  /// REQUIRES stage running. What `wanted` names, once `nodes` have run with `values` bound to their names; trips of loops by
  /// `trips`, where it is given.
  [[nodiscard]] std::vector<HostValue> run_nodes(const std::vector<DeferredNode>& nodes,
                                                 const std::vector<std::pair<std::string, HostValue>>& values,
                                                 const std::vector<std::string>& wanted,
                                                 const Evaluation& evaluation,
                                                 const TripRunner* trips = nullptr);

  /// What inputs of texts become numbers by, in stage first; nullptr where they do not.
  [[nodiscard]] const std::shared_ptr<const KnownTexts>& known_texts() const { return texts_; }
  /// What was assumed of the model, and where it is not as it says; known once it is imported.
  [[nodiscard]] const std::vector<std::string>& warnings() const { return warnings_; }
  [[nodiscard]] bool is_running() const { return stage_ == OnnxStage::running; }

  // For ImportContext and the function inliner.
  [[nodiscard]] GraphBuilder& builder() { return builder_; }
  [[nodiscard]] const ExternalData& external() const { return external_; }
  [[nodiscard]] OnnxBinding& read(OnnxScope& scope,
                                  const std::string& name);  ///< throws ModelError when undefined
  /// Counts work that grows like nodes. Throws UnsupportedError when it is too much for one model.
  void count_nodes(std::int64_t count);
  /// Throws UnsupportedError of `otherwise` in stage whole, and in the body of a loop: each trip has values of its own.
  void expect(OnnxExpectation expectation);
  [[nodiscard]] std::vector<OnnxExpectation>& expectations() { return expectations_; }
  [[nodiscard]] Tensor dense(const onnx::SparseTensorProto& proto);
  void bind_output(OnnxScope& scope, const std::string& name, OnnxBinding binding);
  std::vector<OnnxBinding> import_subgraph(const onnx::GraphProto& graph,
                                           const std::vector<OnnxBinding>& inputs, OnnxScope& outer,
                                           const OnnxFrame& frame);
  void import_node(const onnx::NodeProto& node, OnnxScope& scope, const OnnxFrame& frame);
  /// The row's import, and that nothing of the node was left aside.
  void import_operator(const OnnxOp& op, const onnx::NodeProto& node, OnnxScope& scope,
                       const OnnxFrame& frame, int opset);
  /// The trips of a loop with this body in `scope`, in this run. Nothing where each is to be imported.
  [[nodiscard]] std::optional<LoopTrips> loop_trips(const onnx::GraphProto& body, OnnxScope& scope,
                                                    const OnnxFrame& frame);
  [[nodiscard]] OnnxBinding bind_value(const HostValue& value);  ///< REQUIRES stage running
  [[nodiscard]] HostValue value_of(const OnnxBinding& binding) const;

  [[nodiscard]] const ImportOptions& options() const { return options_; }
  /// Of the model that runs; nullptr in the other stages.
  [[nodiscard]] NodeStore* node_store() const;
  /// The value of an initializer of numbers.
  [[nodiscard]] Tensor weight(const onnx::TensorProto& proto) const { return read_initializer(proto); }

 private:
  struct Row {
    const OnnxOp* op;
    int opset;
  };
  /// Throws UnsupportedError for an operator that there is not.
  [[nodiscard]] static Row row_of(const onnx::NodeProto& node, const OnnxFrame& frame);
  /// Throws UnsupportedError where no function and no row is what the node names.
  void check_operator(const onnx::NodeProto& node, const OnnxFrame& frame) const;
  void import_or_defer(const onnx::NodeProto& node, OnnxScope& scope, const OnnxFrame& frame);
  [[nodiscard]] HostHandover hand_over(const std::string& name, const OnnxBinding& binding);
  void import_input(const onnx::ValueInfoProto& input, OnnxScope& scope);
  [[nodiscard]] OnnxFrame main_frame() const;
  void import_main(OnnxScope& scope);
  void import_inputs(OnnxScope& scope);
  void import_outputs(OnnxScope& scope);
  void bind_initializers(const onnx::GraphProto& graph, OnnxScope& scope);
  [[nodiscard]] Tensor read_initializer(const onnx::TensorProto& proto) const;
  [[nodiscard]] Tensor load_initializer(const onnx::TensorProto& proto) const;
  /// In the order that order_nodes gives.
  void import_nodes(const google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes, OnnxScope& scope,
                    const OnnxFrame& frame);
  void import_function(const onnx::NodeProto& node, const onnx::FunctionProto& function, OnnxScope& scope,
                       const OnnxFrame& frame);

  std::shared_ptr<const onnx::ModelProto> model_;
  const ImportOptions& options_;
  OnnxStage stage_;
  std::shared_ptr<InitializerStore> store_;
  const TripRunner* trips_ = nullptr;
  ExternalData external_;
  OnnxFunctions functions_;
  Graph graph_;
  GraphBuilder builder_;
  std::vector<DeferredNode> deferred_;
  std::vector<OnnxExpectation> expectations_;
  std::vector<ModelPort> free_inputs_;
  std::shared_ptr<const KnownTexts> texts_;
  std::vector<std::string> warnings_;
  std::int64_t nodes_imported_ = 0;
  int depth_ = 0;
};

}  // namespace sylvite
