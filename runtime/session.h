#pragma once
// A Session: one model on its way through all stages, with everything learned on the way. The C++ interface
// and every verb of the command are short programs over these functions:
//
//   Session session = load_model("resnet50.onnx", options);   settings, import, passes, lowering
//   choose_candidates(session, progress);                      database or heuristic; measures in
//   max-autotune build_program(session);                                    objects from the cache or
//   compiled now; loads, packs session.program->run(inputs);

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "autotune/database.h"
#include "autotune/tuner.h"
#include "base/knobs.h"
#include "frontend/graph/graph.h"
#include "frontend/passes/passes.h"
#include "lowering/plan/plan.h"
#include "runtime/program.h"
#include "schedules/candidate.h"
#include "sylvite/sylvite.h"

namespace sylvite {

/// How a kernel's candidate was chosen. Names are shown by `explain`.
enum class Origin {
  heuristic,  ///< the first space that takes the kernel; nothing measured
  database,   ///< a winner stored by an earlier run
  search,     ///< measured now
  reference,  ///< the plain schedule, because no other candidate compiled
};
[[nodiscard]] std::string_view origin_name(Origin origin);

/// What one kernel of the plan runs.
struct Choice {
  Candidate candidate;
  Origin origin = Origin::heuristic;
  double median_us = 0;  ///< as measured when it won; 0 when never measured
  std::string why;       ///< one line for `explain`; may be empty
  std::string symbol;    ///< C symbol and object cache key
  std::string object;    ///< the compiled kernel, once known
};

/// Thread safety: one thread at a time. Movable.
struct Session {
  std::string model_path;      ///< "" for a graph made in C++
  std::string worker_command;  ///< "" when there is none; see CompileOptions
  CompileConfig config;        ///< with the precision that the machine is fit for
  Machine machine;
  Graph imported;                        ///< as captured, before passes
  std::shared_ptr<const HostPart> host;  ///< what surrounds the graph; nullptr when it is the whole model
  Graph graph;                           ///< after passes
  std::vector<PassReport> passes;
  Plan plan;                         ///< moved into the program by build_program; read it with current_plan()
  std::vector<Choice> choices;       ///< one per unique kernel, in plan order
  std::optional<TuneResult> tuning;  ///< when choose_candidates measured; its choices are moved to `choices`
  std::optional<Program> program;
  CompileReport report;

  [[nodiscard]] const Plan& current_plan() const { return program ? program->plan() : plan; }
  [[nodiscard]] TuningKey key() const { return tuning_key(machine, std::string(name_of(config.precision))); }
};

/// Files that a session keeps between runs. "" means none.
struct SessionPaths {
  std::string object_cache;  ///< folder: cache.dir, else objects/ in the user's cache folder
  std::string database;      ///< file: db.path, else trials.db in the user's cache folder
};
[[nodiscard]] SessionPaths session_paths(const CompileConfig& config);

/// Defaults, then the mode's file (options.mode, unless a config file or options.set gives compile.mode),
/// then config files, then options.set. Throws UsageError for an unknown mode, knob or value.
[[nodiscard]] Settings resolve_settings(const CompileOptions& options);

/// `given`, with the import.* knobs that were set.
[[nodiscard]] ImportOptions import_options(const CompileConfig& config, const ImportOptions& given);

/// Import, passes and lowering. Throws what import_onnx, run_passes and lower throw.
[[nodiscard]] Session load_model(const std::string& onnx_path, const CompileOptions& options);
/// The same for a graph made in C++; options.import is not used.
[[nodiscard]] Session load_graph(Graph graph, const CompileOptions& options);

/// Fills session.choices: stored winners first, heuristics for the rest. With tune.enabled, kernels without a
/// winner are tuned within tune.budget and the results stored. A database that cannot be used is a warning.
void choose_candidates(Session& session, const ProgressCallback& progress = {});

/// Gets every kernel's object from the cache, compiling those missing in worker processes, loads them, and
/// makes session.program. A candidate that does not compile, or that
/// reports an error in a first run on zeros, made only when something was compiled, is replaced by the
/// heuristic one, then by the reference, each with a warning. REQUIRES choose_candidates. Throws CompileError
/// when even the reference does not compile.
void build_program(Session& session);

/// One run of the whole model: the program, and the host steps if there are any. REQUIRES build_program.
[[nodiscard]] std::vector<HostValue> run_session(Session& session, const std::vector<HostValue>& inputs);

/// The same for a model that takes and gives tensors of numbers only; throws InputError for others.
[[nodiscard]] std::vector<Tensor> run_tensors(Session& session, const std::vector<Tensor>& inputs);

/// Names of the model's outputs, in order.
[[nodiscard]] std::vector<std::string> output_names(const Session& session);

/// What CompiledModel holds.
struct CompiledModel::Rep {
  Session session;
};

}  // namespace sylvite
