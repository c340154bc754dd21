#pragma once
// Questions about a database, for `sylvite db` and reports. All throw SqliteError when the file fails under
// them, and IoError for a second file that is no tuning database. Rows are as stored: candidates are not
// parsed.

#include <cstdint>
#include <iosfwd>
#include <map>
#include <string>
#include <vector>

#include "autotune/database.h"

namespace sylvite {

/// One winner, from the view v_best.
struct WinnerRow {
  std::string kernel;
  std::string kernel_class;
  TuningKey key;
  std::string origin;
  double median_us = 0;   ///< 0 when it was never measured
  double slowest_us = 0;  ///< of the candidates that passed the check
  double error = 0;
  std::int64_t trials = 0;
  std::string candidate;
  std::string created_at;
};
/// The winners that take longest, at most `limit` (all when negative); only kernels whose id begins with `kernel_prefix`.
[[nodiscard]] std::vector<WinnerRow> top_winners(const Database& database, std::int64_t limit,
                                                 const std::string& kernel_prefix = "");

/// One trial, from the view v_history.
struct TrialRow {
  std::int64_t trial = 0;
  std::string created_at;
  std::string kernel;
  std::string kernel_class;
  std::string machine;
  int threads = 1;
  std::string precision;
  std::string verdict;
  double median_us = 0;
  double best_so_far_us = 0;
  double error = 0;
  double compile_seconds = 0;
  std::string candidate;
  std::string message;
};
/// Trials of kernels whose id begins with `kernel_prefix`: the fastest first when `by_time`, else in order of
/// time; failures last. At most `limit`, all when negative.
[[nodiscard]] std::vector<TrialRow> list_trials(const Database& database, const std::string& kernel_prefix,
                                                std::int64_t limit, bool by_time);

struct DatabaseStats {
  std::string path;  ///< "" in memory
  int schema_version = 0;
  std::int64_t bytes = 0;
  std::int64_t kernels = 0;
  std::int64_t keys = 0;
  std::int64_t trials = 0;
  std::int64_t winners = 0;
  std::int64_t races = 0;
  double compile_seconds = 0;  ///< over all trials
  std::map<std::string, std::int64_t>
      trials_by_verdict;  ///< those that the machine failed at: "to be tried again"
  std::map<std::string, std::int64_t> winners_by_origin;
  std::string integrity;  ///< "ok", or what PRAGMA integrity_check says
};
[[nodiscard]] DatabaseStats database_stats(const Database& database);

/// One JSON object per line: kernels first, then trials, then winners; "record" says which. Docs:
/// docs/database.md. What the machine failed at, and reference schedules chosen for that, are left out. Returns the
/// number of lines.
std::int64_t export_jsonl(const Database& database, std::ostream& output);

/// What to forget; fields that are "" choose all rows.
struct ForgetFilter {
  std::string kernel_prefix = {};
  /// Of a trial; winners and races are then only those whose candidate has such a trial.
  std::string verdict = {};
  std::string before = {};  ///< ISO 8601 in UTC, or its beginning: rows created earlier
};
struct ForgetReport {
  std::int64_t trials = 0;
  std::int64_t winners = 0;
  std::int64_t races = 0;
};
/// Deletes rows in one transaction. REQUIRES a field that is not "".
ForgetReport forget_rows(Database& database, const ForgetFilter& filter);

struct MergeReport {
  std::int64_t kernels = 0;  ///< rows that were not here before
  std::int64_t trials = 0;
  std::int64_t winners = 0;  ///< new, or faster than the one that was here
};
/// Adds the kernels, trials and winners of another file, in one transaction. Trials that are here stay; of
/// two winners the pinned one stays, else the measured and faster one. What the machine failed at, and reference schedules chosen for that,
/// are left behind.
MergeReport merge_database(Database& database, const std::string& other_path);

}  // namespace sylvite
