#pragma once
// Graph passes: a stage's passes are the rows of a table, and one runner applies all of them.

#include <algorithm>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sylvite/graph.h"

namespace sylvite {

/// A row. `Options` is what the stage's passes are told. A pass keeps the graph's inputs and outputs, and what
/// it computes, beyond the rounding of floating-point results; later stages are right without it.
template <typename Options>
struct Pass {
  std::string_view name;            ///< the function's, or its own where a function stands in two rows
  bool (*applies)(const Options&);  ///< false: the pass is left out
  Graph (*run)(const Graph&, const Options&);
  std::string_view help;  ///< what it does, in one line
  /// False: the pass would leave this graph as it is, and is not run on it. nullptr: only the pass knows.
  bool (*finds)(const Graph&) = nullptr;
};

// For rows: passes that always apply, and those that take no options.
template <typename Options>
[[nodiscard]] bool always(const Options& /*options*/) {
  return true;
}
template <Graph (*function)(const Graph&), typename Options>
[[nodiscard]] Graph plain(const Graph& graph, const Options& /*options*/) {
  return function(graph);
}
/// Has the graph a node of one of these operations?
template <Op... ops>
[[nodiscard]] bool has(const Graph& graph) {
  return std::ranges::any_of(graph.nodes(), [](const Node& node) { return ((node.op == ops) || ...); });
}

struct PassOptions {
  std::set<std::string> disabled;  ///< names of passes to leave out
  bool verify = true;              ///< run the verifier after every pass that changed the graph
  bool check_finds = false;  ///< run passes that find nothing, too, and throw when one changes the graph
  std::string dump_folder;   ///< write NN-name.txt after each of these; "" for none
};

enum class PassResult { changed, unchanged, not_applicable, disabled };
[[nodiscard]] std::string_view pass_result_name(PassResult result);

struct PassReport {
  std::string_view name;
  std::string_view help;
  PassResult result = PassResult::not_applicable;
  double seconds = 0;
  int nodes_before = 0;
  int nodes_after = 0;
};

/// The graph with the bodies of its loops as `run` changes them, which keeps what goes in and out.
[[nodiscard]] Graph with_bodies(Graph graph, const std::function<Graph(const Graph&)>& run);

/// Applies tables of passes one after another, and keeps a report of every row in order. Thread safety: one
/// thread at a time.
class PassRunner {
 public:
  PassRunner() = default;
  /// Throws UsageError for a disabled name that is none of `known`, with the nearest.
  PassRunner(PassOptions options, std::span<const std::string_view> known);

  /// Each pass runs on the graph, then on the bodies of its loops. Throws what the passes throw, InternalError from the verifier, and IoError when a dump cannot be written.
  template <typename Options>
  [[nodiscard]] Graph run(std::span<const Pass<Options>> table, Graph graph, const Options& options) {
    for (const Pass<Options>& pass : table) {
      const auto finds = [&](const Graph& each) { return pass.finds == nullptr || pass.finds(each); };
      const auto run = [&](const Graph& each) { return finds(each) ? pass.run(each, options) : each; };
      const auto apply = [&](const Graph& before) -> std::optional<Graph> {
        if (options_.check_finds && !finds(before))
          check_unchanged(pass.name, before, pass.run(before, options));
        if (!finds(before) && !has<Op::loop>(before)) return std::nullopt;
        return with_bodies(run(before), run);
      };
      run_row({pass.name, pass.help}, pass.applies(options), apply, graph);
    }
    return graph;
  }

  /// Of every row so far.
  [[nodiscard]] const std::vector<PassReport>& reports() const { return reports_; }

 private:
  /// `apply` gives nothing where there is nothing to do.
  void run_row(PassReport report, bool applies,
               const std::function<std::optional<Graph>(const Graph&)>& apply, Graph& graph);
  /// Throws InternalError when `after` is more than the graph without dead nodes.
  static void check_unchanged(std::string_view pass, const Graph& graph, const Graph& after);
  void dump(const Graph& graph, std::string_view name) const;

  PassOptions options_;
  std::vector<PassReport> reports_;
  bool is_verified_ = false;  ///< what a pass leaves as it is need not be checked again
};

}  // namespace sylvite
