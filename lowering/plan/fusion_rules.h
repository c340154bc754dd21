#pragma once
// What may be computed together with what: the table that fusion decides by.

#include <functional>
#include <set>

#include "lowering/plan/plan.h"
#include "sylvite/graph.h"

namespace sylvite {

/// How much an operation may compute of its inputs on the fly instead of reading them from memory. Ordered.
enum class Prologue {
  none,   ///< reads memory only: its inner loops are laid out for it
  views,  ///< index maps of memory
  cheap,  ///< also a few instructions per element: it reads elements a few times
  any,    ///< also exp and the like: it reads each element once
};

enum class Role {
  pointwise,  ///< joins any group whose shape it has
  view,       ///< an index map: joins the group that reads it
  anchor,     ///< one per group at most
};

/// Creations count as pointwise; a change of layout as a view.
[[nodiscard]] Role role_of(const Node& node);

/// For a pointwise or view node: the least allowance under which it may be inlined into a reader.
[[nodiscard]] Prologue cost_of(const Graph& graph, const Node& node);

/// How much an anchor allows ahead of its input number `input`.
[[nodiscard]] Prologue prologue_of(const Node& anchor, std::size_t input);

/// True when `cast` narrows the convolution's input image to bf16 and the convolution copies that image
/// anyway (an image of fewer channels than a block, in a dense layout): narrowing inside the copy costs less
/// than storing the narrow image.
[[nodiscard]] bool rounds_image(const Graph& graph, const Node& anchor, const Node& cast);

/// True when the convolution's kernel rearranges a filter that is no constant: views of it cost nothing there.
[[nodiscard]] bool packs_filter(const Graph& graph, const Node& anchor, const LoweringOptions& options);

/// True when a convolution may compute its source while it copies it, by the lines that a task needs: bf16
/// in a blocked layout.
[[nodiscard]] bool copies_source(const Graph& graph, const Node& anchor);

/// True when pointwise work on the anchor's result may join its group.
[[nodiscard]] bool takes_epilogue(const Node& anchor);

/// True when a group with this anchor may write its result through `view`.
[[nodiscard]] bool takes_view_epilogue(const Graph& graph, const Node& anchor, const Node& view,
                                       const LoweringOptions& options);

/// True when a group with this anchor may read an operand through `view`; `ahead` when the anchor itself
/// reads it, else the operand is one of the epilogue.
[[nodiscard]] bool takes_view_prologue(const Graph& graph, const Node& anchor, const Node& view, bool ahead);

/// True when a gather is a view to pointwise work, as an element of it costs a load, which is often one of a cache: any on a GPU,
/// on a CPU those that load elements one by one, and those by places known ahead, as of a resize, which blends several.
[[nodiscard]] bool is_look_up(const Graph& graph, const Node& node, const LoweringOptions& options);
/// Does a fold compute what it reads of gathers, `ahead` being one or work on one, rather than read it from memory? On a GPU, where a
/// thread each folds what few elements of a column are, and there are threads enough.
[[nodiscard]] bool folds_look_ups(const Graph& graph, const Node& fold, const Node& ahead,
                                  const LoweringOptions& options);
/// True when a pad lays elements around rows: on a CPU each element asks whether it is one of these.
[[nodiscard]] bool pads_rows(const Graph& graph, const Node& node, const LoweringOptions& options);
/// True when a slice takes every so many elements of a row: loads of vectors, but for those that ask where they are.
[[nodiscard]] bool steps_along_rows(const Graph& graph, const Node& node);
/// True when computing the node again for another reader costs no more than reading its stored result.
[[nodiscard]] bool is_worth_repeating(const Graph& graph, const Node& node);
/// Bytes of all values that the nodes read and do not make.
[[nodiscard]] std::int64_t bytes_read(const Graph& graph, const std::set<NodeId>& nodes);
/// True when the f32 result of pointwise work takes at least as much memory as all that it is made of, through nodes of which
/// `is_work` says that they are computed with it: what reads it from memory may as well compute it.
[[nodiscard]] bool is_made_of_less(const Graph& graph, NodeId id, const std::function<bool(NodeId)>& is_work);
/// A cast from floats of fewer bits: what it reads is smaller than its result, however often it is read.
[[nodiscard]] bool is_widening(const Graph& graph, const Node& node);

/// Are these a change of a large image's layout from channels innermost, of what is widened or cut on the way at most, and `added`
/// no such work? A GPU has a template for that, while gathers along the lines of planes read single channels.
[[nodiscard]] bool turns_apart(const Graph& graph, const std::set<NodeId>& nodes, const Node& added,
                               const LoweringOptions& options);

/// Is the node a transpose of so much that a template for it is worth keeping? That turns rows into columns in a fraction of the
/// time of threads that work on single elements, so that what it does not take with it is computed ahead.
[[nodiscard]] bool is_large_turn(const Graph& graph, const Node& node);
/// Does a gather take so many rows out of a transpose, whose rows are columns of memory? Threads side by side would read places far
/// from each other. Rows that lie in memory are read in vectors, by all gathers of the same value.
[[nodiscard]] bool gathers_turned_rows(const Graph& graph, const Node& turn, const Node& reader);
/// Does pointwise work read what is transposed ahead of it? Then it is read across in any case.
[[nodiscard]] bool reads_turned(const Graph& graph, const Node& work);

/// It is less to read what `node` is made of than its result, however many kernels do so: conversions to wider floats, and on a
/// GPU, whose threads read elements one by one, broadcasts.
[[nodiscard]] bool reads_less(const Graph& graph, const Node& node, const LoweringOptions& options);

}  // namespace sylvite
