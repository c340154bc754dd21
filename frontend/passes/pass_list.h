#pragma once
// Every pass of the frontend, one line each; what they do in detail is said in NAME.cpp, or in its header
// where it has one. A pass never changes what a graph computes, beyond the rounding of floating-point results,
// and keeps inputs and outputs as they are.

#include <optional>
#include <span>

#include "frontend/graph/pass_runner.h"
#include "frontend/passes/store_narrow.h"
#include "sylvite/graph.h"

namespace sylvite {

/// `half`: f16 or bf16.
[[nodiscard]] Graph widen_halves(const Graph& graph, DType half);
[[nodiscard]] Graph fold_empty(const Graph& graph);
[[nodiscard]] Graph fold_steps(const Graph& graph);
[[nodiscard]] Graph integer_products(const Graph& graph);
[[nodiscard]] Graph pool_steps(const Graph& graph);
[[nodiscard]] Graph fold_constants(const Graph& graph);
[[nodiscard]] Graph simplify_views(const Graph& graph);
[[nodiscard]] Graph common_subexpressions(const Graph& graph);
[[nodiscard]] Graph simplify_algebra(const Graph& graph);
[[nodiscard]] Graph fold_lookups(const Graph& graph);
[[nodiscard]] Graph place_ranges(const Graph& graph);
[[nodiscard]] Graph fold_batch_norm(const Graph& graph);
[[nodiscard]] Graph fold_conv_bias(const Graph& graph);
[[nodiscard]] Graph pad_windows(const Graph& graph);
[[nodiscard]] Graph trim_products(const Graph& graph);
[[nodiscard]] Graph drop_padded_taps(const Graph& graph, bool open_sizes);
[[nodiscard]] Graph fuse_gelu(const Graph& graph);
[[nodiscard]] Graph fuse_silu(const Graph& graph);
[[nodiscard]] Graph fuse_layer_norm(const Graph& graph);
[[nodiscard]] Graph fuse_rms_norm(const Graph& graph);
[[nodiscard]] Graph fuse_attention(const Graph& graph);
[[nodiscard]] Graph split_sums(const Graph& graph);
[[nodiscard]] Graph pick_sums(const Graph& graph);
[[nodiscard]] Graph join_columns(const Graph& graph);
[[nodiscard]] Graph join_padded(const Graph& graph);
[[nodiscard]] Graph move_stacks(const Graph& graph);
[[nodiscard]] Graph narrow_loops(const Graph& graph);

/// What the passes are told of the precision.
struct FrontendOptions {
  bool quantize = false;         ///< products with constants are made of 8-bit integers
  bool widen_f16 = false;        ///< what models store as f16 is computed and kept in f32
  bool widen_bf16 = false;       ///< the same of bf16
  bool open_sizes = false;       ///< the same is to be made of models of other sizes
  bool integers = true;          ///< products of what 8-bit integers stand for are made of these
  std::optional<DType> narrow;   ///< what f32 values are stored as: bf16 or f16; nothing: f32
  NarrowOptions narrow_options;  ///< with `narrow`
};

/// In the order in which they are applied.
[[nodiscard]] std::span<const Pass<FrontendOptions>> frontend_passes();

/// The graph after all passes, those that `runner` leaves out excepted.
[[nodiscard]] Graph run_passes(const Graph& graph, const FrontendOptions& options, PassRunner& runner);
[[nodiscard]] Graph run_passes(const Graph& graph);

}  // namespace sylvite
