#pragma once
// What a decomposition of one ONNX operator sees: the node's inputs, attributes and outputs, and the builder.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "frontend/graph/graph_builder.h"
#include "frontend/onnx/binding.h"
#include "frontend/onnx/expectation.h"

namespace onnx {
class AttributeProto;
class GraphProto;
class NodeProto;
}  // namespace onnx

namespace sylvite {

/// Something must be known now that is known only when the model runs. `reason` says what, without the names
/// that the message collects on its way out.
class NeedsValueError : public UnsupportedError {
 public:
  NeedsValueError(const std::string& message, std::string reason, std::string size = "")
      : UnsupportedError(message), reason_(std::move(reason)), size_(std::move(size)) {}
  [[nodiscard]] const std::string& reason() const { return reason_; }
  /// The name of the value, where it has few elements, as sizes have; else "".
  [[nodiscard]] const std::string& size() const { return size_; }

 private:
  std::string reason_;
  std::string size_;
};

class LoopTrips;
struct OnnxFrame;
class OnnxGraphImporter;

/// A tensor of strings: the places (i64) of its elements' texts in a list.
struct Texts {
  std::shared_ptr<const std::vector<std::string>> list;
  Sym places;
};

/// Lives while one node is imported. Messages need not name the node: the importer puts its name in front of
/// every error that leaves a decomposition.
class ImportContext {
 public:
  ImportContext(OnnxGraphImporter& importer, OnnxScope& scope, const OnnxFrame& frame,
                const onnx::NodeProto& node, int opset)
      : importer_(importer), scope_(scope), frame_(frame), node_(node), opset_(opset) {}

  [[nodiscard]] int opset() const { return opset_; }
  [[nodiscard]] const std::string& op_type() const;
  [[nodiscard]] GraphBuilder& builder();

  [[nodiscard]] int input_count() const;  ///< trailing absent inputs included
  [[nodiscard]] bool has_input(int i);
  [[nodiscard]] Sym input(int i);                            ///< throws ModelError when absent
  [[nodiscard]] const std::string& input_name(int i) const;  ///< REQUIRES that the node has it
  [[nodiscard]] bool products_are_fast() const;              ///< as ImportOptions says
  [[nodiscard]] bool is_state(int i) const;  ///< an input of the model that stays between runs
  [[nodiscard]] Sym optional(int i);         ///< tests false when absent
  [[nodiscard]] std::vector<Sym> inputs();
  /// The value of an input that must be known now. Throws NeedsValueError that says which and what to do.
  [[nodiscard]] Tensor constant(int i);
  [[nodiscard]] bool constant_flag(int i);  ///< of one element
  /// The first element; throws ModelError when there is none.
  [[nodiscard]] std::int64_t constant_integer(int i);
  [[nodiscard]] double constant_real(int i);
  [[nodiscard]] std::vector<std::int64_t> constant_integers(int i);
  [[nodiscard]] std::vector<double> constant_reals(int i);
  /// A list that older opsets give as attribute `name` and newer ones as input i; absent in both: nothing.
  [[nodiscard]] std::optional<std::vector<std::int64_t>> integers_from(int i, const std::string& name);

  /// References resolved; nullptr when absent.
  [[nodiscard]] const onnx::AttributeProto* find_attribute(const std::string& name) const;
  [[nodiscard]] bool has_attribute(const std::string& name) const { return find_attribute(name) != nullptr; }
  [[nodiscard]] std::int64_t integer(const std::string& name, std::int64_t fallback) const;
  [[nodiscard]] std::int64_t required_integer(const std::string& name) const;
  [[nodiscard]] double real(const std::string& name, double fallback) const;
  [[nodiscard]] std::string string(const std::string& name, const std::string& fallback) const;
  [[nodiscard]] std::vector<std::int64_t> integers(const std::string& name) const;  ///< empty when absent
  [[nodiscard]] std::vector<double> reals(const std::string& name) const;           ///< empty when absent
  [[nodiscard]] std::vector<std::string> strings(const std::string& name) const;    ///< empty when absent
  [[nodiscard]] Tensor tensor(const std::string& name) const;                       ///< throws when absent
  [[nodiscard]] bool is_string_tensor(const std::string& name) const;
  [[nodiscard]] StringTensor string_tensor(const std::string& name) const;  ///< throws when absent
  [[nodiscard]] const onnx::GraphProto& subgraph(const std::string& name) const;

  [[nodiscard]] bool is_running() const;  ///< in a host step, where everything is constant
  /// For what can only be done when the model runs: throws NeedsValueError unless this is the run.
  void wait_for_run(const std::string& reason) const;

  /// The model is imported for runs in which `holds`, a boolean of rank 0, is true; in others `otherwise` says why they
  /// fail. Throws UnsupportedError of that text where the graph must be the whole model, and in the body of a loop.
  void expect(Sym holds, const std::string& otherwise);
  [[nodiscard]] std::vector<OnnxExpectation>& expectations();  ///< so far, of the whole model

  [[nodiscard]] int output_count() const;
  [[nodiscard]] bool wants_output(int i) const;
  void output(int i, Sym value);  ///< outputs nobody names are ignored
  void output(Sym value) { output(0, value); }

  /// What `make` makes of the node's attributes alone, in the first run of a host step; in others the same object.
  template <typename T>
  [[nodiscard]] std::shared_ptr<const T> kept(const std::function<T()>& make) {
    return std::static_pointer_cast<const T>(kept_value([&] { return std::make_shared<const T>(make()); }));
  }

  // Strings are known while importing, or in host steps.
  [[nodiscard]] bool is_strings(int i);
  /// Throws ModelError when the input is none, NeedsValueError when a run chooses them.
  [[nodiscard]] const StringTensor& strings(int i);
  [[nodiscard]] Texts texts(int i);  ///< the same, known or not
  void output_strings(int i, StringTensor value);
  /// Strings that a run may choose. REQUIRES that the places are within the texts.
  void output_texts(int i, const Texts& texts);

  // Whatever a name stands for, passed on without looking: what If, Loop, Identity and optionals do.
  [[nodiscard]] OnnxBinding binding(int i);  ///< absent when not given
  void output_binding(int i, const OnnxBinding& value);

  // Sequences exist at import time only, as lists of values.
  [[nodiscard]] std::vector<Sym> sequence(int i);
  [[nodiscard]] bool is_sequence(int i);
  void output_sequence(int i, const std::vector<Sym>& values);

  /// Throws ModelError when inputs are given beyond the last one that was asked for: the operator has no
  /// such. REQUIRES that its decomposition ran to its end, and asked for every optional input that it
  /// ignores.
  void check_no_surplus_inputs() const;
  /// The same for attributes: throws UnsupportedError for one that nobody asked for.
  void check_no_surplus_attributes() const;

  /// Imports a subgraph here with its inputs bound to `values`; names of the surrounding graph are visible to
  /// it.
  [[nodiscard]] std::vector<Sym> import_subgraph(const onnx::GraphProto& graph,
                                                 const std::vector<Sym>& values);
  [[nodiscard]] std::vector<OnnxBinding> import_subgraph(const onnx::GraphProto& graph,
                                                         const std::vector<OnnxBinding>& values);
  /// The trips of a loop with that body, in this run. Nothing where each is to be imported.
  [[nodiscard]] std::optional<LoopTrips> loop_trips(const onnx::GraphProto& body);
  [[nodiscard]] Sym symbol(const OnnxBinding& value);  ///< throws UnsupportedError unless it is a tensor

 private:
  [[nodiscard]] std::shared_ptr<const void> kept_value(
      const std::function<std::shared_ptr<const void>()>& make);

  OnnxGraphImporter& importer_;
  OnnxScope& scope_;
  const OnnxFrame& frame_;
  const onnx::NodeProto& node_;
  int opset_;
  int inputs_known_ = 0;                            ///< up to the last one that was asked for
  mutable std::set<std::string> attributes_known_;  ///< those that were asked for
};

}  // namespace sylvite
