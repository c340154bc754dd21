#include "frontend/graph/pass_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>

#include "base/clock.h"
#include "base/error.h"
#include "base/files.h"
#include "base/nearest.h"
#include "frontend/graph/copy.h"
#include "frontend/graph/rewrite.h"
#include "frontend/graph/verifier.h"
#include "sylvite/graph_text.h"

namespace sylvite {

std::string_view pass_result_name(PassResult result) {
  switch (result) {
    case PassResult::changed:
      return "changed";
    case PassResult::unchanged:
      return "no change";
    case PassResult::not_applicable:
      return "does not apply";
    case PassResult::disabled:
      return "disabled";
  }
  throw InternalError("corrupt result of a pass {}", static_cast<int>(result));
}

Graph with_bodies(Graph graph, const std::function<Graph(const Graph&)>& run) {
  const auto is_loop = [](const Node& node) { return node.op == Op::loop; };
  if (std::ranges::none_of(graph.nodes(), is_loop)) return graph;
  GraphCopier copier(graph);
  copier.add_inputs();
  for (Node node : graph.nodes()) {
    if (is_loop(node)) {
      const Graph& body = node.attributes.graph("body");
      Graph now = with_bodies(run(body), run);
      if (!same_structure(body, now))
        node.attributes.set("body", GraphAttribute{std::make_shared<const Graph>(std::move(now))});
    }
    copier.copy(node);
  }
  return copier.finish();
}

PassRunner::PassRunner(PassOptions options, std::span<const std::string_view> known)
    : options_(std::move(options)) {
  for (const std::string& name : options_.disabled)
    if (std::ranges::find(known, name) == known.end())
      throw UsageError("no pass is called '{}'{}", name, suggestion(name, known));
}

void PassRunner::dump(const Graph& graph, std::string_view name) const {
  if (options_.dump_folder.empty()) return;
  make_folder(options_.dump_folder);
  const std::string path = fmt::format("{}/{:02}-{}.txt", options_.dump_folder, reports_.size(), name);
  std::ofstream file(path);
  file << graph_text(graph);
  if (!file) throw IoError("cannot write the graph to '{}'", path);
}

void PassRunner::check_unchanged(std::string_view pass, const Graph& graph, const Graph& after) {
  if (same_structure(graph, after) || same_structure(without_dead_nodes(graph), after)) return;
  throw InternalError("pass {} finds nothing, and changes the graph:\n{}it becomes\n{}", pass,
                      graph_text(graph), graph_text(after));
}

void PassRunner::run_row(PassReport report, bool applies,
                         const std::function<std::optional<Graph>(const Graph&)>& apply, Graph& graph) {
  if (reports_.empty()) dump(graph, "imported");
  const bool is_disabled = options_.disabled.contains(std::string(report.name));
  report.result = is_disabled ? PassResult::disabled : PassResult::not_applicable;
  if (is_disabled || !applies) {
    reports_.push_back(report);
    return;
  }
  const double start = steady_seconds();
  std::optional<Graph> next = apply(graph);
  report.seconds = steady_seconds() - start;
  const bool changed = next && !same_structure(graph, *next);
  report.result = changed ? PassResult::changed : PassResult::unchanged;
  report.nodes_before = static_cast<int>(graph.nodes().size());
  if (next) graph = *std::move(next);
  report.nodes_after = static_cast<int>(graph.nodes().size());
  if (options_.verify && (changed || !is_verified_)) verify(graph);
  is_verified_ = options_.verify;
  reports_.push_back(report);
  if (changed) dump(graph, report.name);
}

}  // namespace sylvite
