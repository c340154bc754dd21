#pragma once
// Every pass, one line each; what they do in detail is said in pass_NAME.cpp. A pass never changes what a
// graph computes, beyond the rounding of floating-point results, and keeps inputs and outputs as they are.

#include "sylvite/graph.h"

namespace sylvite {

[[nodiscard]] Graph fold_constants(const Graph& graph);
[[nodiscard]] Graph simplify_views(const Graph& graph);
[[nodiscard]] Graph common_subexpressions(const Graph& graph);
[[nodiscard]] Graph simplify_algebra(const Graph& graph);
[[nodiscard]] Graph fold_batch_norm(const Graph& graph);
[[nodiscard]] Graph fold_conv_bias(const Graph& graph);
[[nodiscard]] Graph fuse_gelu(const Graph& graph);
[[nodiscard]] Graph fuse_silu(const Graph& graph);
[[nodiscard]] Graph fuse_layer_norm(const Graph& graph);
[[nodiscard]] Graph fuse_rms_norm(const Graph& graph);
[[nodiscard]] Graph fuse_attention(const Graph& graph);

}  // namespace sylvite
