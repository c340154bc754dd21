#pragma once
// One run of the tuner over a plan's kernels. In three files: tuner.cpp spreads the budget,
// tuner_evaluate.cpp compiles and measures batches, tuner_decide.cpp races finalists and stores winners.

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "autotune/evaluator.h"
#include "autotune/race.h"
#include "autotune/tune_state.h"
#include "autotune/tuner.h"

namespace sylvite {

/// TuneState::closed when nothing is left to try.
inline constexpr std::string_view exhausted = "every candidate was tried";
/// A sample repeats the call until it takes this long, in microseconds.
inline constexpr double tuning_sample_us = 200;

/// Candidates of one kernel on their way from compiling to measuring.
struct Batch {
  TuneState* state = nullptr;
  std::vector<Candidate> candidates;  ///< to be measured
  std::vector<Candidate> compiled;    ///< to be compiled: the reference, too, when it is missing
  double best_before = 0;
  double begun = 0;
};

/// The incumbent and a challenger: their samples in all races of the two, and what those say together.
struct Duel {
  std::vector<double> incumbent_us;
  std::vector<double> challenger_us;
  RaceVerdict verdict;
};

/// One call of tune().
class Tuner {
 public:
  Tuner(const Machine& machine, Database& database, const TuneOptions& options,
        const ProgressCallback& progress, Evaluator& evaluator)
      : machine_(machine),
        key_(tuning_key(machine, options.precision)),
        database_(database),
        options_(options),
        progress_(progress),
        evaluator_(evaluator),
        begun_(evaluator.now()),
        warned_(database.warning().size()) {}
  ~Tuner() { say_what_is_tried({}); }
  Tuner(const Tuner&) = delete;
  Tuner& operator=(const Tuner&) = delete;

  TuneResult run(const std::vector<TuneTask>& tasks);

 private:
  void add_task(const TuneTask& task);
  void search();
  std::optional<Batch> next_batch();
  TuneState* next_state();
  /// The next kernel among those that no other process is at, or among those that some are.
  TuneState* next_state_of(bool elsewhere);
  /// Takes in what other processes that tune with this database have found since, and what they are at.
  void learn_from_others();
  /// So that other processes turn to other kernels.
  void say_what_is_tried(const std::set<std::string>& kernel_ids);
  std::optional<Batch> fill_batch(TuneState& state);
  void start(Batch& batch);
  std::vector<CompiledCandidate> finish_compiling(Batch& batch);
  void evaluate(Batch& batch, const std::vector<CompiledCandidate>& compiled);
  void measure_shortly(TuneState& state, const CompiledCandidate& compiled);
  void measure_promising(TuneState& state, const std::vector<CompiledCandidate>& compiled);
  MeasureJob make_job(const TuneState& state, std::vector<CompiledCandidate> candidates, int samples) const;
  void record(TuneState& state, const Trial& trial);
  /// The machine failed at a candidate: it waits for the next run. `in_a_row` counts such failures without a success
  /// or a verdict in between; many of them end the search.
  void lose(TuneState& state, const Candidate& candidate, const std::string& message, int& in_a_row);
  /// Why the whole search ends before its time; "" while it goes on.
  [[nodiscard]] std::string ending() const;
  [[nodiscard]] bool goes_on(const TuneState& state) const {
    return state.closed.empty() && left() > seconds_for_races() && ending().empty();
  }
  /// No more trials of it in this run, with a warning.
  void close(TuneState& state, const std::string& reason);
  void report(const TuneState& state);
  std::string fresh_warning();  ///< what the database warned of since the last call
  void log_results() const;

  void decide(TuneState& state);
  /// A winner that another process chose since this run began is the choice where this run tried nothing: returns true
  /// then. Else it is the incumbent.
  bool take_winner_of_others(TuneState& state);
  std::vector<CompiledCandidate> compile_contestants(TuneState& state,
                                                     const std::vector<Candidate>& challengers);
  void race(TuneState& state, const std::vector<CompiledCandidate>& contestants);
  std::vector<RaceEntry> run_race(const TuneState& state, const std::vector<CompiledCandidate>& contestants);
  void race_again(const TuneState& state, const CompiledCandidate& incumbent,
                  const CompiledCandidate& challenger, Duel& duel);
  void choose(TuneState& state, const Candidate& candidate, std::string_view origin, double median_us,
              const std::string& why);
  /// The plain schedule is many times slower than others: it is said loudly when nothing else works.
  void warn_of_reference(const TuneState& state);
  void choose_unjudged(TuneState& state, const std::string& why);
  void choose_untried(TuneState& state);
  void choose_without_race(TuneState& state, const std::vector<Candidate>& challengers);

  [[nodiscard]] double elapsed() const { return evaluator_.now() - begun_; }
  [[nodiscard]] double left() const {
    return options_.budget_seconds - options_.reserved_seconds - elapsed();
  }
  [[nodiscard]] double seconds_for_races() const;
  [[nodiscard]] bool measures_alone() const { return machine_.threads > 1; }

  const Machine& machine_;
  TuningKey key_;
  Database& database_;
  const TuneOptions& options_;
  const ProgressCallback& progress_;
  Evaluator& evaluator_;
  double begun_;
  std::size_t warned_;                         ///< so much of the database's warning has been told
  std::map<std::string, TuneState> states_;    ///< by kernel id, those that are searched
  std::map<std::string, TuneChoice> choices_;  ///< by kernel id
  std::string last_loss_;                      ///< what the machine failed with
  int lost_compilations_ = 0;                  ///< in a row
  int lost_measurements_ = 0;                  ///< in a row
  std::int64_t known_trials_ = 0;              ///< mark of Database::trials_since
  std::set<std::string> elsewhere_;            ///< kernels that other processes are at
  std::set<std::string> announced_;            ///< kernels that this one said it is at
  TuneResult result_;
};

}  // namespace sylvite
