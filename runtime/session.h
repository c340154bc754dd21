#pragma once
// A Session: one model on its way through all stages, with everything learned on the way. The C++ interface
// and every verb of the command are short programs over these functions:
//
//   Session session = load_model("resnet50.onnx", options);   settings, import, passes, lowering
//   choose_candidates(session, progress);                      database or heuristic; measures in
//   max-autotune build_program(session);                                    objects from the cache or
//   compiled now; loads, packs session.program->run(inputs);
//
// Knobs read here: see docs/knobs.md.

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "autotune/database.h"
#include "autotune/tuner.h"
#include "base/knobs.h"
#include "frontend/graph.h"
#include "frontend/passes.h"
#include "lowering/plan.h"
#include "runtime/program.h"
#include "schedules/candidate.h"
#include "sylvite/sylvite.h"

namespace sylvite {

/// How a kernel's candidate was chosen. Names are shown by `explain`.
enum class Origin {
  heuristic,  ///< the first space that takes the kernel; nothing measured
  database,   ///< a winner stored by an earlier run
  search,     ///< measured now
  reference,  ///< the plain schedule, because the chosen candidate did not compile
};
[[nodiscard]] std::string_view origin_name(Origin origin);

/// What one kernel of the plan runs.
struct Choice {
  Candidate candidate;
  Origin origin = Origin::heuristic;
  std::string symbol;    ///< C symbol and object cache key; filled by choose_candidates
  double median_us = 0;  ///< as stored with the winner; 0 when never measured
};

/// Thread safety: one thread at a time. Movable.
struct Session {
  std::string model_path;  ///< "" for a graph made in C++
  Settings settings;
  Machine machine;
  Graph imported;  ///< as captured, before passes
  Graph graph;     ///< after passes
  std::vector<PassReport> passes;
  Plan plan;                    ///< moved into the program by build_program; then use program->plan()
  std::vector<Choice> choices;  ///< one per unique kernel, in plan order
  std::optional<Program> program;
  CompileReport report;

  [[nodiscard]] const Plan& current_plan() const { return program ? program->plan() : plan; }
};

/// Files that a session uses, resolved from knobs and the environment (XDG_CACHE_HOME, HOME). "" means none.
struct SessionPaths {
  std::string object_cache;  ///< folder; knob cache.dir, else ~/.cache/sylvite/objects
  std::string database;      ///< file; knob db.path, else ~/.cache/sylvite/tuning.db
};
[[nodiscard]] SessionPaths session_paths(const Settings& settings);

/// Defaults, then the mode's file (options.mode; a config file or --set may change compile.mode), then config
/// files, then options.set. Throws UsageError for an unknown mode, knob or value.
[[nodiscard]] Settings resolve_settings(const CompileOptions& options);

/// Import, passes and lowering. Throws what import_onnx, run_passes and lower throw.
[[nodiscard]] Session load_model(const std::string& onnx_path, const CompileOptions& options);
/// The same for a graph made with the builder; options.import is not used.
[[nodiscard]] Session load_graph(Graph graph, const CompileOptions& options);

/// Fills session.choices: stored winners first, heuristics for the rest. With tune.budget > 0 (max-autotune)
/// kernels without a winner are tuned, and the results are stored. Never throws for a bad database: that is a
/// warning.
void choose_candidates(Session& session, const ProgressCallback& progress = {});

/// Gets every kernel's object from the cache, compiling those missing in worker processes, loads them, and
/// builds session.program. A candidate that does not compile is replaced by the reference schedule, with a
/// warning.
void build_program(Session& session);

/// What CompiledModel holds.
struct CompiledModel::Rep {
  Session session;
};

}  // namespace sylvite
