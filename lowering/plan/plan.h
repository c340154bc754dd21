#pragma once
// The Plan: a lowered model. Unique kernels, launches in order, buffers, and where each lies in the arena.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lowering/plan/kernel.h"
#include "sylvite/graph.h"

namespace sylvite {

class PassRunner;

using BufferId = std::int32_t;

/// Where a buffer's bytes come from.
enum class BufferKind {
  input,
  output,
  weight,
  arena,
  state  ///< what one run leaves is what the next one finds
};

/// How an alias moves through its root while the loop runs whose launches use it.
struct Window {
  std::int64_t stride = 0;  ///< bytes from one place to the next; negative from back to front
  std::int64_t phase = 0;   ///< with a period: at the first trip
  std::int64_t period = 0;  ///< how many places are used in turn; 0: one for each trip
  [[nodiscard]] std::int64_t offset(std::int64_t trip) const {
    return stride * (period > 0 ? (trip + phase) % period : trip);
  }
};

/// One materialised value. Reshapes are free: an alias is another BufferId with the same root. So are some
/// concats: their parts are aliases of parts of them.
struct Buffer {
  std::string name;  ///< the graph value's name
  TensorType type;
  BufferKind kind = BufferKind::arena;
  /// Index into Plan::inputs, outputs or states, or into Plan::weights (dense there; a blocked type asks for
  /// layout_packing). Weights are never aliases.
  std::int32_t index = 0;
  BufferId alias_of = -1;         ///< another buffer whose bytes these are, or -1
  std::int64_t alias_offset = 0;  ///< bytes into alias_of where these begin; not 0 only in arena buffers
  std::optional<Window> window;   ///< of an alias in the arena: moves on from alias_offset with each trip
  std::int64_t offset =
      -1;  ///< bytes into the arena, or into the states, for roots of those kinds; 64-byte aligned
};

/// One call of a kernel: arguments are the kernel's inputs, then its outputs.
struct Launch {
  std::int32_t kernel = 0;  ///< index into Plan::kernels
  std::vector<BufferId> arguments;
  std::string name;    ///< for profiles: the anchor's name in the model
  std::string reason;  ///< why these operations are in one group, for `explain`
};

/// Launches that run in order `trips` times. Loops do not meet.
struct PlanLoop {
  std::int32_t first = 0;  ///< launches [first, end)
  std::int32_t end = 0;
  std::int64_t trips = 0;
  /// It begins where the loop before ends, and neither touches what it, or another beside it, writes: they may run at the
  /// same time.
  bool beside = false;
};

/// An input or output of the model. Its name and type are what the model calls for; the buffer may have another name,
/// and may serve two outputs.
struct Port {
  std::string name;
  TensorType type;
  BufferId buffer = -1;
};

struct Plan {
  std::string name;
  std::vector<Kernel> kernels;  ///< unique
  std::vector<Launch> launches;
  std::vector<PlanLoop> loops;  ///< in the order of their launches
  std::vector<Buffer> buffers;
  std::vector<Tensor> weights;
  std::vector<Port> inputs;  ///< per graph input that is no state
  /// Values that stay between runs, in the order of Graph::states. A run finds the last values in the buffer, a root of
  /// kind state, and leaves the next ones there.
  std::vector<Port> states;
  /// Per graph output that is of no state. The root of its buffer is a buffer of kind output with this index, unless the value is a graph
  /// input, a weight or another output as well: then the runtime copies.
  std::vector<Port> outputs;
  std::int64_t arena_bytes = 0;  ///< the peak
  std::int64_t state_bytes = 0;
  std::int64_t sum_of_values_bytes = 0;  ///< what the intermediate values would take without reuse
};

/// How values around convolutions lie in memory.
enum class ImageLayout {
  dense,           ///< as in the graph
  channel_blocks,  ///< with their channels in blocks: a vector register holds channels of one pixel
  channels_last,   ///< 16-bit values in one block of all their channels, as tensor cores read images
};

struct LoweringOptions {
  bool fuse = true;          ///< vertical, prologue and epilogue fusion
  bool join_concats = true;  ///< with `fuse`: parts of a concat are written in place where memory allows
  ImageLayout image_layout = ImageLayout::channel_blocks;
  int channel_block = 16;         ///< with channel_blocks: how many; at least 2
  bool tf32 = false;              ///< with channels_last: tensor cores read f32 values, too
  bool multiply_patches = false;  ///< convolutions of patches as matmuls, for tensor cores
  bool widen_bits = false;        ///< weights of a few bits are widened before products, for GPUs
  bool open_sizes = false;        ///< the same is to be made of the model at other sizes
  /// With `fuse`: larger f32 values between convolutions are computed by rows in their reader where
  /// row_fusion.h allows. 0: all are stored.
  std::int64_t large_bytes = 0;
  bool reuse_memory = true;  ///< false: every value has its own memory in the arena (debugging)
  /// With `fuse`: why the device runs a product's kernel on no template; empty when it runs on one. A product
  /// that has a template alone is then grouped with nothing that takes it off. nullptr: rules alone decide.
  std::function<std::string(const Kernel&)> refuse_template;
};

/// Applies the passes of lowering to a verified graph, groups its nodes into kernels, and places buffers by
/// liveness. REQUIRES every extent known.
[[nodiscard]] Plan lower(const Graph& graph, const LoweringOptions& options, PassRunner& runner);
[[nodiscard]] Plan lower(const Graph& graph, const LoweringOptions& options = {});

/// For people: totals, then a lined-up table of launches with kernel, class, shape and reason.
[[nodiscard]] std::string plan_text(const Plan& plan);

}  // namespace sylvite
