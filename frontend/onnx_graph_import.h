#pragma once
// Walks the graphs of an ONNX model (main graph, subgraphs, function bodies) and imports node after node.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "frontend/onnx_builder.h"
#include "frontend/onnx_external_data.h"
#include "frontend/onnx_functions.h"
#include "frontend/onnx_importer.h"

namespace onnx {
class AttributeProto;
class GraphProto;
class ModelProto;
class NodeProto;
class SparseTensorProto;
class TensorProto;
}  // namespace onnx

namespace sylvite {

/// What a name of an ONNX graph stands for.
struct OnnxBinding {
  ValueId value = no_value;
  const onnx::TensorProto* initializer = nullptr;        ///< becomes a value when first read
  const onnx::SparseTensorProto* sparse = nullptr;       ///< likewise
  std::shared_ptr<const std::vector<ValueId>> sequence;  ///< set for sequences

  /// An optional input that a function call leaves out, or an optional without a value.
  [[nodiscard]] bool is_absent() const {
    return value == no_value && initializer == nullptr && sparse == nullptr && sequence == nullptr;
  }
};

/// The names of one graph; names of the enclosing graphs are visible unless hidden.
class OnnxScope {
 public:
  explicit OnnxScope(OnnxScope* parent = nullptr) : parent_(parent) {}
  [[nodiscard]] OnnxBinding* find(const std::string& name);  ///< nullptr when nobody defines it
  void bind(const std::string& name, OnnxBinding binding) { names_[name] = std::move(binding); }
  [[nodiscard]] bool is_main() const { return parent_ == nullptr && !is_function_; }
  [[nodiscard]] static OnnxScope of_function();

 private:
  OnnxScope* parent_;
  bool is_function_ = false;
  std::unordered_map<std::string, OnnxBinding> names_;
};

/// What holds while the nodes of one function body, or of the model's own graphs, are imported.
struct OnnxFrame {
  const OnnxFrame* caller = nullptr;  ///< nullptr for the model itself
  std::string function;               ///< its identity, for refusing recursion
  std::map<std::string, int> opsets;  ///< domain -> version; the default domain is ""
  std::map<std::string, const onnx::AttributeProto*> attributes;  ///< what ref_attr_name refers to
};

class OnnxGraphImporter {
 public:
  /// `model` and `options` must outlive the importer.
  OnnxGraphImporter(std::shared_ptr<const onnx::ModelProto> model, const std::string& folder,
                    const ImportOptions& options);
  [[nodiscard]] Graph import_model();

  // For ImportContext and the function inliner.
  [[nodiscard]] OnnxBuilder& builder() { return builder_; }
  [[nodiscard]] const ExternalData& external() const { return external_; }
  [[nodiscard]] OnnxBinding& read(OnnxScope& scope,
                                  const std::string& name);  ///< throws ModelError when undefined
  void bind_output(OnnxScope& scope, const std::string& name, OnnxBinding binding);
  std::vector<OnnxBinding> import_subgraph(const onnx::GraphProto& graph,
                                           const std::vector<OnnxBinding>& inputs, OnnxScope& outer,
                                           const OnnxFrame& frame);
  void import_node(const onnx::NodeProto& node, OnnxScope& scope, const OnnxFrame& frame);

 private:
  void import_inputs(OnnxScope& scope);
  void import_outputs(OnnxScope& scope);
  void bind_initializers(const onnx::GraphProto& graph, OnnxScope& scope);
  [[nodiscard]] Tensor load_initializer(const onnx::TensorProto& proto) const;
  void import_function(const onnx::NodeProto& node, const onnx::FunctionProto& function, OnnxScope& scope,
                       const OnnxFrame& frame);

  std::shared_ptr<const onnx::ModelProto> model_;
  const ImportOptions& options_;
  ExternalData external_;
  OnnxFunctions functions_;
  Graph graph_;
  OnnxBuilder builder_;
  int nodes_imported_ = 0;
  int depth_ = 0;
};

}  // namespace sylvite
