#pragma once
// Trials and winners in SQLite: one file shared by concurrent processes. Schema in docs/database.md.

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "autotune/trial.h"
#include "lowering/plan/kernel.h"
#include "schedules/machine.h"

namespace sylvite {

class SqliteConnection;

/// Everything besides the kernel's text that can change which candidate wins.
struct TuningKey {
  std::string target;   ///< Halide target
  std::string machine;  ///< CPU name or GPU and driver
  int threads = 1;
  std::string versions;   ///< Halide and template versions
  std::string precision;  ///< of arithmetic: f32, bf16, ..., and what a knob forbids
  [[nodiscard]] std::string to_string() const;
  bool operator==(const TuningKey&) const = default;
};
[[nodiscard]] TuningKey tuning_key(const Machine& machine, const std::string& precision);

/// Where a race was run: the kernel alone, or inside a model.
enum class RaceScope { kernel, model };

/// One interleaved comparison of a challenger with the incumbent.
struct Race {
  Candidate incumbent;
  Candidate challenger;
  std::vector<double> incumbent_us;
  std::vector<double> challenger_us;
  std::string result;  ///< won, tie or lost, as seen by the challenger
  RaceScope scope = RaceScope::kernel;
};

/// Thread safety: one Database per thread; any number of processes. Never carried across fork.
///
/// No member throws for what the file is or becomes; `warning()` says what went wrong, and the database goes
/// on in memory (holding what could still be read):
/// - missing or empty: created, with its folder;
/// - damaged, and a tuning database by what is left of it: set aside as FILE.corrupt-N, never deleted, and a new file
///   begun;
/// - another schema version, or another program's file, whatever it holds: left alone, not used;
/// - read-only, locked for longer than the timeout, disk full: rows so far are read, new ones stay in memory.
class Database {
 public:
  explicit Database(const std::string& path, double lock_timeout_seconds = 10);  ///< "" for memory only
  /// Of an existing file, for questions: nothing is written, created or renamed, and what is recorded stays in
  /// memory. Throws IoError when the file cannot be read or is no tuning database; it may be read-only.
  [[nodiscard]] static Database for_questions(const std::string& path);
  ~Database();
  Database(Database&&) noexcept;
  Database& operator=(Database&&) noexcept;

  [[nodiscard]] const std::string& warning() const;  ///< empty when all is well
  [[nodiscard]] const std::string& path() const;     ///< "" when in memory
  /// "23 trials and 22 winners were not stored in FILE": what the file could not take; "" when it took all.
  [[nodiscard]] std::string unstored() const;

  /// One row per kernel, key and candidate: the trial with the most samples stays, and a crash or a wrong
  /// result replaces a success. Anything replaces a stored failure of the machine (autotune/machine_failure.h).
  void record_trial(const Kernel& kernel, const TuningKey& key, const Trial& trial);
  /// In place of whatever is stored of the candidate.
  void replace_trial(const Kernel& kernel, const TuningKey& key, const Trial& trial);
  /// In place of the one before, but a pinned one gives way to a pinned one alone, and one that was untried takes
  /// the place of such a one alone.
  void record_winner(const Kernel& kernel, const TuningKey& key, const Winner& winner);
  /// A pinned winner gives way to the fastest candidate among the trials, which the next search judges, or to none.
  /// Where that is `heuristic`, the default one, its origin says so. Returns whether there was a pin.
  bool remove_pin(const Kernel& kernel, const TuningKey& key, const Candidate& heuristic);
  void record_race(const Kernel& kernel, const TuningKey& key, const Race& race);
  /// Rows whose kernel text differs or whose candidate does not parse are skipped, with a warning. A reference
  /// schedule that was stored only because the machine failed at other candidates is no winner, unless others were
  /// wrong: then its budget is 0. Trials that the machine failed at are not among `trials`.
  [[nodiscard]] std::optional<Winner> find_winner(const Kernel& kernel, const TuningKey& key) const;
  [[nodiscard]] std::vector<Trial> trials(const Kernel& kernel, const TuningKey& key) const;
  /// A mark for trials_since: all that is stored now comes before it.
  [[nodiscard]] std::int64_t last_trial() const;
  /// Those of all kernels that any process has added under the key since the mark, which moves on. Texts of kernels are not
  /// compared.
  [[nodiscard]] std::vector<Trial> trials_since(const TuningKey& key, std::int64_t& mark) const;
  /// Tells other processes which kernels this one tries candidates of from now on; with none, that it tries nothing.
  void announce(const TuningKey& key, const std::set<std::string>& kernel_ids);
  /// The kernels of which other processes that run now try candidates.
  [[nodiscard]] std::set<std::string> kernels_elsewhere(const TuningKey& key) const;
  /// In the order in which they were run.
  [[nodiscard]] std::vector<Race> races(const Kernel& kernel, const TuningKey& key) const;
  /// Why find_winner found nothing: the nearest record and the key fields that differ; "" when no record is
  /// near.
  [[nodiscard]] std::string explain_miss(const Kernel& kernel, const TuningKey& key) const;
  [[nodiscard]] std::int64_t trial_count() const;

  /// For autotune/database_queries.h and the sweep's table; throws SqliteError on use, unlike the members
  /// above.
  [[nodiscard]] SqliteConnection& connection() const;

 private:
  struct Rep;
  explicit Database(std::unique_ptr<Rep> rep);
  void write_trial(const Kernel& kernel, const TuningKey& key, const Trial& trial, std::string_view where);
  std::unique_ptr<Rep> rep_;
};

}  // namespace sylvite
