#pragma once
// What the tuner knows of one kernel while it is being tuned.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "autotune/budget.h"
#include "autotune/database.h"
#include "autotune/evaluator.h"
#include "autotune/search.h"

namespace sylvite {

/// Built from the spaces and from what the database holds under the key; the owner records new trials in
/// both.
class TuneState {
 public:
  TuneState(const Kernel& kernel, const Machine& machine, const Evaluator& evaluator,
            const std::vector<Trial>& stored_trials, std::optional<Winner> stored_winner);

  /// Adds a trial of this run, in place of an earlier one of the same candidate.
  void add_trial(const Trial& trial);
  void skip(const Candidate& candidate);  ///< not to be proposed again in this run; nothing is known of it
  [[nodiscard]] const Trial* find_trial(const Candidate& candidate) const;  ///< nullptr when never tried
  /// Median of the candidate; 0 when it was not measured or failed.
  [[nodiscard]] double median_of(const Candidate& candidate) const;
  [[nodiscard]] double incumbent_us() const { return median_of(incumbent); }
  [[nodiscard]] double best_us() const;  ///< over all verified candidates; 0 when none
  /// What became of the candidates that failed: "2 compile_error, 1 wrong_result; the last: MESSAGE".
  [[nodiscard]] std::string failures() const;
  /// Verified candidates other than the incumbent that might beat it, best first, at most `count`.
  [[nodiscard]] std::vector<Candidate> challengers(std::size_t count) const;
  /// Keeps the objects of the reference, the incumbent and the challengers, and forgets the others.
  void trim_objects();

  const Kernel* kernel;
  std::int64_t launches = 0;
  double known_us = 0;  ///< the best time from earlier runs; 0 when there is none
  Candidate reference;
  Candidate heuristic;
  Candidate incumbent;           ///< the stored winner, else the heuristic
  std::string incumbent_origin;  ///< see Winner::origin; once it is measured
  std::optional<Winner> stored;
  KernelSearch search;
  std::map<std::string, CompiledCandidate> objects;  ///< compiled in this run, by candidate text
  TaskOutlook outlook;
  bool started = false;    ///< a batch was made for it in this run
  bool in_flight = false;  ///< a batch is being compiled or measured
  bool waiting = false;    ///< nothing to propose before that batch is measured
  std::string closed;      ///< why there will be no more trials; "" while open
  int lost = 0;            ///< candidates of this run that the machine failed at

 private:
  TuneState(const Kernel& tuned, const std::vector<BoundSpace>& spaces, Candidate plain,
            std::optional<Winner> stored_winner);

  std::map<std::string, Trial> trials_;  ///< by candidate text
};

}  // namespace sylvite
