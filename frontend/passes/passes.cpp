#include "frontend/passes/passes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>

#include "base/clock.h"
#include "base/error.h"
#include "base/nearest.h"
#include "frontend/graph/rewrite.h"
#include "frontend/graph/verifier.h"
#include "frontend/passes/pass_list.h"
#include "sylvite/graph_text.h"

namespace sylvite {
namespace {

// Folding and clean-up come first so that patterns see one spelling, and again last to sweep up after them.
constexpr std::array<Pass, 13> table = {{
    {"fold_constants", fold_constants, "evaluate nodes whose inputs are all constants"},
    {"simplify_views", simplify_views,
     "drop and merge reshapes, transposes, slices and casts that do nothing"},
    {"common_subexpressions", common_subexpressions, "compute equal nodes once"},
    {"simplify_algebra", simplify_algebra,
     "log(exp(2x)) = 2x, x*1 = x, x^2 = x*x, 1/sqrt(x) = rsqrt(x), ..."},
    {"fold_batch_norm", fold_batch_norm,
     "BatchNorm into the convolution before it, else into a scale and a shift"},
    {"fold_conv_bias", fold_conv_bias, "a per-channel addition after a convolution becomes its bias"},
    {"fuse_gelu", fuse_gelu, "the erf and tanh spellings of GELU become gelu"},
    {"fuse_silu", fuse_silu, "x*sigmoid(x) and x*clip(x+3,0,6)/6 become silu and hard_swish"},
    {"fuse_layer_norm", fuse_layer_norm, "mean, variance, scale and shift become layer_norm"},
    {"fuse_rms_norm", fuse_rms_norm, "mean of squares and scale become rms_norm"},
    {"fuse_attention", fuse_attention, "softmax(scale*Q*K^T + mask)*V becomes attention"},
    {"fold_new_constants", fold_constants, "fold_constants, over what the passes between have made"},
    {"merge_new_subexpressions", common_subexpressions,
     "common_subexpressions, over what the passes between have made"},
}};

void check_names(const std::set<std::string>& disabled) {
  std::vector<std::string_view> known;
  for (const Pass& pass : table) known.push_back(pass.name);
  for (const std::string& name : disabled)
    if (std::find(known.begin(), known.end(), name) == known.end())
      throw UsageError("no pass is called '{}'{}", name, suggestion(name, known));
}

void dump(const Graph& graph, const std::string& folder, std::size_t number, std::string_view name) {
  std::filesystem::create_directories(folder);
  const std::string path = fmt::format("{}/{:02}-{}.txt", folder, number, name);
  std::ofstream file(path);
  file << graph_text(graph);
  if (!file) throw IoError("cannot write the graph to '{}'", path);
}

}  // namespace

std::span<const Pass> pass_table() {
  return table;
}

Graph run_passes(const Graph& graph, const PassOptions& options, std::vector<PassReport>* reports) {
  check_names(options.disabled);
  if (!options.dump_folder.empty()) dump(graph, options.dump_folder, 0, "imported");
  Graph current = graph;
  bool is_verified = false;  // what a pass leaves as it is need not be checked again
  for (std::size_t i = 0; i < table.size(); ++i) {
    const Pass& pass = table[i];
    if (options.disabled.contains(std::string(pass.name))) continue;
    const double start = steady_seconds();
    Graph next = pass.run(current);
    const double elapsed = steady_seconds() - start;
    const bool changed = !same_structure(current, next);
    if (options.verify && (changed || !is_verified)) verify(next);
    is_verified = options.verify;
    if (changed && !options.dump_folder.empty()) dump(next, options.dump_folder, i + 1, pass.name);
    if (reports != nullptr) {
      reports->push_back({std::string(pass.name), elapsed, static_cast<int>(current.nodes().size()),
                          static_cast<int>(next.nodes().size()), changed});
    }
    current = std::move(next);
  }
  return current;
}

}  // namespace sylvite
