#pragma once
// Graph passes: one table of named Graph -> Graph functions, and the one runner that applies them.

#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sylvite/graph.h"

namespace sylvite {

struct Pass {
  std::string_view name;
  Graph (*run)(const Graph&);
  std::string_view help;
};

/// In the order they are applied. Each pass is in a file of its own, pass_NAME.cpp.
[[nodiscard]] std::span<const Pass> pass_table();

struct PassOptions {
  std::set<std::string>
      disabled;             ///< names of passes to skip; an unknown name is refused with the nearest one
  bool verify = true;       ///< run the verifier after every pass
  std::string dump_folder;  ///< write NN-name.txt after each pass that changed the graph; "" for none
};

struct PassReport {
  std::string name;
  double seconds = 0;
  int nodes_before = 0;
  int nodes_after = 0;
  bool changed = false;
};

[[nodiscard]] Graph run_passes(const Graph& graph, const PassOptions& options = {},
                               std::vector<PassReport>* reports = nullptr);

}  // namespace sylvite
