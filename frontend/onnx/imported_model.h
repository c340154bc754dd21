#pragma once
// An imported model in two parts: a graph, all of whose shapes are known, which is compiled; and steps on the
// host, for what is known only when the model runs.
//
// The rule: an operation is in the graph when its result's type and shape follow from what is known while
// importing. It is a host step when they depend on data (NonZero, Unique, NonMaxSuppression, a Reshape to a
// shape that is computed), when it draws random numbers, when it handles strings, sequences or optionals that
// come from outside, and when it reads the result of a host step. Host steps are run by the importer itself,
// with the run's values as constants; or those that need values of the run are, and the others are a model of their own (tail.h).

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/graph/capacity_form.h"
#include "frontend/graph/interpreter.h"
#include "frontend/onnx/external_data.h"
#include "frontend/onnx/importer.h"
#include "frontend/onnx/model_sizes.h"
#include "frontend/onnx/tensor_io.h"
#include "sylvite/graph.h"
#include "sylvite/host_value.h"

namespace onnx {
class ModelProto;
}  // namespace onnx

namespace sylvite {

class InitializerStore;

/// An input or output of a model, as its file declares it.
struct ModelPort {
  std::string name;
  std::string type;  ///< for people: "f32[1,3]", "strings", "a sequence", "an optional"
  ValueKind kind = ValueKind::tensor;
};

struct ParsedModel;
class NodeStore;
class TailStore;

/// Runs what follows steps on the host.
struct TailRunner {
  /// A model of its own, which is the same object in all runs that it serves (tail.h).
  /// Nothing while it is not ready.
  std::function<std::optional<std::vector<HostValue>>(const std::shared_ptr<const ParsedModel>&,
                                                      const std::vector<HostValue>&)>
      run = {};
  double least_seconds = 0;  ///< where steps took less, they are done one by one
};

/// Runs the graph of the same ImportedModel: its inputs and outputs in order.
using GraphRunner = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

/// Thread safety: const use is safe.
class HostPart {
 public:
  virtual ~HostPart() = default;
  /// In the order in which they run.
  [[nodiscard]] virtual const std::vector<HostStep>& steps() const = 0;
  /// Of the whole model, without inputs bound at compile time.
  [[nodiscard]] virtual const std::vector<ModelPort>& inputs() const = 0;
  [[nodiscard]] virtual const std::vector<ModelPort>& outputs() const = 0;
  /// The whole model: the graph first, through `run_graph`, then the steps. Values in the order of inputs()
  /// and outputs(). The steps' operations are done by `evaluation`; with `run_tail`, those that need no values of the run by that.
  /// Throws InputError naming the input that does not fit, and what the steps throw.
  [[nodiscard]] virtual std::vector<HostValue> run(const std::vector<HostValue>& inputs,
                                                   const GraphRunner& run_graph, const Evaluation& evaluation,
                                                   const TailRunner& run_tail) const = 0;
};

/// An input that is longer at each run: its extent is that of the states before the run, and `beyond`.
struct GrownInput {
  std::string name;
  std::size_t axis = 0;
  std::int64_t beyond = 0;
};

struct ImportedModel {
  /// Without host steps the model itself; else its inputs are those inputs of the model that are tensors of
  /// known type, and its outputs what the host part reads.
  Graph graph;
  std::shared_ptr<const HostPart> host;  ///< nullptr: the graph is the whole model
  std::vector<std::string> warnings;     ///< what was assumed of the model, and where it is not as it says
  std::optional<Growth> growth = {};     ///< where states grow: the graph has their capacity
  std::vector<GrownInput> grown_inputs =
      {};  ///< of which the graph takes as much as the states have room for
};

/// States that grow, as the file declares them.
struct GrowingModel {
  struct Axis {
    std::string input;
    std::size_t axis = 0;
    std::string name;  ///< of its size in the file
    bool is_state = false;
  };
  std::string length;  ///< name of the size by which they grow
  std::int64_t capacity = 0;
  std::vector<Axis> axes;                  ///< whose sizes follow from the length
  std::map<std::string, Dims> state_dims;  ///< of the states, whatever their growing extents are
};

/// A model's file, read once and not yet imported: its sizes may be open. Copies share it. Thread safety: const use is
/// safe.
struct ParsedModel {
  std::shared_ptr<const onnx::ModelProto> proto;
  DataFolder folder;
  ImportOptions options;
  ModelSizes sizes;                                ///< of inputs that are no states
  std::map<std::string, std::string> states;       ///< see read_model_states
  std::optional<GrowingModel> growing;             ///< see find_growing_states
  std::shared_ptr<InitializerStore> initializers;  ///< what all imports share; nullptr when sizes are fixed
  std::shared_ptr<NodeStore> nodes;                ///< what steps on the host keep of their nodes
  std::shared_ptr<TailStore> tails;                ///< what runs behind steps on the host, at any sizes
  int tails_before = 0;                            ///< how often the model is the tail of another
};

/// Throws what import_onnx throws for the file, and what read_model_sizes throws.
[[nodiscard]] ParsedModel parse_model(const std::string& path, const ImportOptions& options = {});
[[nodiscard]] ParsedModel parse_model_bytes(std::string_view bytes, const std::string& folder,
                                            const ImportOptions& options = {});

/// The same of one that is at hand. `tails_before`: see ParsedModel.
[[nodiscard]] ParsedModel parse_model_proto(onnx::ModelProto proto, const DataFolder& folder,
                                            const ImportOptions& options, int tails_before);

/// The model at one size for each of its symbols. Weights that are read as they stand are the same tensors in every
/// import. Throws as import_onnx, which instead refuses models that need host steps.
[[nodiscard]] ImportedModel import_at(const ParsedModel& model, const Sizes& sizes);

/// 16 hex digits that tell the model from others, by its file without what lies in others beside it.
[[nodiscard]] std::string model_file_id(const ParsedModel& model);

/// The model at the first size to be fast at of each symbol.
[[nodiscard]] ImportedModel import_model(const std::string& path, const ImportOptions& options = {});
[[nodiscard]] ImportedModel import_model_bytes(std::string_view bytes, const std::string& folder,
                                               const ImportOptions& options = {});

/// The model, its graph run by `run_graph`, host steps by `evaluation`, and by `run_tail` where there is one. `host` may be nullptr; then the inputs
/// must be tensors.
[[nodiscard]] std::vector<HostValue> run_model(const HostPart* host, const std::vector<HostValue>& inputs,
                                               const GraphRunner& run_graph,
                                               const Evaluation& evaluation = evaluate_node,
                                               const TailRunner& run_tail = {});

/// The model by the reference interpreter.
[[nodiscard]] std::vector<HostValue> interpret(const ImportedModel& model,
                                               const std::vector<HostValue>& inputs);

}  // namespace sylvite
