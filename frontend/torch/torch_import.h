#pragma once
// The text of a captured PyTorch graph (docs/formats.md) -> Graph over the op table.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "frontend/ops/gradient_kernels.h"
#include "sylvite/graph.h"
#include "sylvite/tensor.h"

namespace sylvite {

struct TorchImportOptions {
  std::map<std::string, std::int64_t> sizes = {};  ///< a number for every symbol of the text
  /// Inputs to take as constants, by name without %. REQUIRES dense tensors of the declared type and shape; an input
  /// with other strides is given in the order of its memory: see TorchInput.
  std::map<std::string, Tensor> constants = {};
  /// Outputs, by their place in the text's list, that the caller writes over inputs once a run is done, by name without %, and
  /// that nothing else shows: Graph::overwrites has those that lie as their inputs do.
  std::vector<std::pair<std::size_t, std::string>> overwrites = {};
  std::int64_t max_nodes = 30'000;  ///< most operations that the text may have
  GradientKernels gradients = GradientKernels::none;
};

/// A tensor as torch sees it.
struct TorchTensor {
  TensorType type;
  Dims strides;  ///< in elements, one per axis
};

/// An input of torch's graph. The graph's own input holds the memory in order: where strides are not row-major, its
/// dims are those of `tensor` sorted by stride, and the graph transposes them, which costs nothing.
struct TorchInput {
  std::string name;           ///< without %
  bool is_size = false;       ///< a number, of no tensor
  bool is_parameter = false;  ///< its address is static
  TorchTensor tensor;         ///< of a tensor
  int graph_input = -1;       ///< which of Graph::inputs; -1 for a size, a constant, or what nothing reads
};

/// What torch's graph returns at one place, or writes to an input.
struct TorchOutput {
  enum class Kind {
    none,      ///< nothing
    computed,  ///< output `graph_output` of the graph, its memory in order as for inputs
    input,     ///< input `input` itself
    written,   ///< input `input` itself, after the write to it
    size,      ///< the number `size`
  };
  Kind kind = Kind::none;
  TorchTensor tensor;     ///< unless none
  int graph_output = -1;  ///< which of Graph::outputs
  int input = -1;         ///< which of TorchGraph::inputs
  std::int64_t size = 0;
};

struct TorchGraph {
  Graph graph;
  std::vector<TorchInput> inputs;    ///< of the text, in order
  std::vector<TorchOutput> outputs;  ///< what the text returns, in order
  /// Inputs that the text writes at its end (copy_), in order. `graph_output` is the new value, in the order of the
  /// input's memory. Results may be read from the old value: the write comes last.
  std::vector<TorchOutput> writes;
};

/// Throws ModelError, naming the line, for text that is malformed or whose declared types are not what is computed;
/// UnsupportedError, naming the line and node, for an operation, mode, or element type that is not served;
/// UsageError for options that do not fit the text. Bounded memory and work for any text.
[[nodiscard]] TorchGraph import_torch(std::string_view text, const TorchImportOptions& options = {});

/// A node that import would refuse.
struct TorchRefusal {
  std::string node;  ///< its name without %
  std::string op;    ///< e.g. aten.nonzero.default
  std::string reason;
};

/// Every node that import would refuse, as if the others' results were inputs; empty when import succeeds. Throws
/// ModelError for text that is malformed and UsageError as import_torch.
[[nodiscard]] std::vector<TorchRefusal> torch_refusals(std::string_view text,
                                                       const TorchImportOptions& options = {});

}  // namespace sylvite
