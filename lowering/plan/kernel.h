#pragma once
// A Kernel: one fused group of operations, compiled to one function. Its canonical text is its identity.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sylvite/graph.h"

namespace sylvite {

/// What the schedule spaces are chosen by. Names are persistent (databases hold them).
enum class KernelClass {
  pointwise,
  reduction,
  scan,
  normalization,
  matmul,
  convolution,
  pooling,
  attention,
  movement,
  ordering
};
[[nodiscard]] std::string_view kernel_class_name(KernelClass kind);

/// The body is a Graph of its own: body.inputs are the function's arguments in order, then body.outputs.
/// Small constants (one element) are inside the body; larger ones are inputs marked as weights, so that a
/// template may ask for them packed. Value names in the body are canonical: in0, in1, ... for inputs, v0, v1,
/// ... for values, so equal kernels anywhere have equal text and are tuned once.
struct Kernel {
  Graph body;
  KernelClass kind = KernelClass::pointwise;
  NodeId anchor = no_node;  ///< the node in `body` that decides the class; no_node for pure pointwise
  std::vector<bool> input_is_weight;  ///< per body input: known at compile time, may be packed
  /// Of an open kernel, compiled once for a range of sizes: the body with symbols for extents that runs give, of which
  /// `body` is the case that `sizes` says. nullptr: the extents are those of `body`.
  std::shared_ptr<const Graph> open;
  Dims sizes;        ///< of the symbols of `open`, in the order of its table: the kernel's last inputs
  std::string text;  ///< canonical text: graph_text of `open`, else of `body`, plus the weight marks
  std::string id;    ///< short_hash(text)
};

/// Renames values canonically, finds anchor and class, fills text and id. A body with symbols makes an open kernel, at
/// the first hint of each symbol, or its least value.
[[nodiscard]] Kernel make_kernel(const Graph& body, std::vector<bool> input_is_weight);

/// The inverse of Kernel::text; throws ModelError when the text is not a kernel's.
[[nodiscard]] Kernel parse_kernel(std::string_view text);

/// An open kernel with these values of its symbols.
[[nodiscard]] Kernel with_sizes(Kernel open, const SymbolValues& sizes);
/// An open kernel at the sizes that make_kernel gives it; others as they are.
[[nodiscard]] Kernel at_hints(const Kernel& kernel);

}  // namespace sylvite
