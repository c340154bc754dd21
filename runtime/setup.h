#pragma once
// A Setup: what models are compiled with. It is made once from settings and serves any number of models.

#include <memory>
#include <string>
#include <vector>

#include "autotune/database.h"
#include "base/knobs.h"
#include "frontend/onnx/importer.h"
#include "schedules/candidate.h"
#include "sylvite/sylvite.h"

namespace sylvite {

struct Lock;  // runtime/lock.h

/// Thread safety: const use only; models may share one.
struct Setup {
  CompileConfig config;  ///< with a precision that the machine has instructions for
  Machine machine;
  std::string worker_command;        ///< "" when there is none; see CompileOptions
  int compile_jobs = 1;              ///< compile workers at a time
  std::string object_cache;          ///< folder of compiled kernels; "" for none
  std::string database;              ///< file of trials and winners; "" for none
  std::shared_ptr<const Lock> lock;  ///< what kernels run, whatever is known of them; nullptr: what is best
  bool runs_here = true;             ///< else programs are only exported: no device is needed
  std::vector<std::string>
      warnings;  ///< what this machine does otherwise than asked; begins every model's report

  [[nodiscard]] TuningKey key() const;
};

/// Defaults, then the mode's file (options.mode, unless a config file or options.set gives compile.mode),
/// then config files, then options.set. Throws UsageError for an unknown mode, knob or value.
[[nodiscard]] Settings resolve_settings(const CompileOptions& options);

/// `command` as in CompileOptions::worker_command. Throws UnsupportedError for a device that is not there, or a precision
/// that it does not have, and what read_lock and check_lock throw.
[[nodiscard]] std::shared_ptr<const Setup> make_setup(const CompileConfig& config,
                                                      const std::string& command);
[[nodiscard]] std::shared_ptr<const Setup> make_setup(const CompileOptions& options);

/// cache.dir, else objects in the user's cache folder; "" without one.
[[nodiscard]] std::string object_cache_folder(const CompileConfig& config);

/// db.path, else trials.db in the user's cache folder; "" without a database.
[[nodiscard]] std::string database_path(const CompileConfig& config);

/// The same, with so much time to tune.
[[nodiscard]] std::shared_ptr<const Setup> with_budget(const std::shared_ptr<const Setup>& setup,
                                                       double seconds);

/// `given`, with the import.* knobs that were set.
[[nodiscard]] ImportOptions import_options(const CompileConfig& config, const ImportOptions& given);

}  // namespace sylvite
