#include "runtime/session_confirm.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "autotune/confirm.h"
#include "base/clock.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "runtime/build.h"
#include "schedules/space.h"

namespace sylvite {
namespace {

/// One run on zeros.
class ProfiledRun {
 public:
  explicit ProfiledRun(Program& program) : program_(program), inputs_(zero_inputs(program.plan())) {}
  std::vector<double> operator()() const {
    std::vector<LaunchTime> times;
    (void)program_.run(inputs_, &times);
    std::vector<double> kernel_us(program_.plan().kernels.size());
    for (const LaunchTime& time : times) kernel_us.at(time.kernel) += time.duration_us;
    return kernel_us;
  }

 private:
  Program& program_;
  std::vector<Tensor> inputs_;
};

/// The default choices with objects, and which kernels chose something else. What is pinned is not challenged.
struct Defaults {
  std::vector<Choice> choices;
  std::vector<std::size_t> challenged;
};

Defaults make_defaults(const Imported& imported, Chosen& chosen) {
  Defaults defaults;
  defaults.choices = chosen.choices;
  for (std::size_t i = 0; i < chosen.choices.size(); ++i) {
    Candidate candidate = default_candidate(imported.plan->kernels[i], imported.setup->machine);
    if (candidate == chosen.choices[i].candidate || chosen.choices[i].source == Source::pinned) continue;
    defaults.choices[i] = {std::move(candidate)};
    defaults.challenged.push_back(i);
  }
  if (defaults.challenged.empty()) return defaults;
  get_objects(imported, chosen);
  for (std::size_t i = 0; i < chosen.choices.size(); ++i) {
    const bool differs = std::ranges::binary_search(defaults.challenged, i);
    if (!differs) defaults.choices[i] = chosen.choices[i];
  }
  std::swap(chosen.choices, defaults.choices);
  get_objects(imported, chosen);
  std::swap(chosen.choices, defaults.choices);
  return defaults;
}

std::string result_of(const RaceVerdict& verdict) {
  return verdict.won() ? "won" : verdict.lost() ? "lost" : "tie";
}

void store_races(const Imported& imported, const Chosen& chosen, Database& database, const Defaults& defaults,
                 const std::pair<ModelTimes, ModelTimes>& times) {
  for (const std::size_t i : defaults.challenged) {
    const std::vector<double>& incumbent = times.first.kernel_us[i];
    const std::vector<double>& challenger = times.second.kernel_us[i];
    Race race{defaults.choices[i].candidate,
              chosen.choices[i].candidate,
              incumbent,
              challenger,
              result_of(compare_samples(incumbent, challenger)),
              RaceScope::model};
    database.record_race(imported.plan->kernels[i], imported.setup->key(), race);
  }
}

/// The default candidate takes the winner's place, here and in the database.
void revert(const Imported& imported, Chosen& chosen, Database& database, const Defaults& defaults,
            std::size_t i, const std::string& why) {
  const Kernel& kernel = imported.plan->kernels[i];
  const TuningKey key = imported.setup->key();
  Choice& choice = chosen.choices[i];
  choice = defaults.choices[i];
  choice.why = why;
  std::optional<Winner> winner = database.find_winner(kernel, key);
  if (!winner) return;
  for (const Trial& trial : database.trials(kernel, key)) {
    if (!(trial.candidate == choice.candidate)) continue;
    choice.median_us = trial.median_us;
    database.record_winner(kernel, key,
                           {choice.candidate, trial.median_us, trial.error, std::string(origin_heuristic),
                            winner->budget_seconds});
  }
}

/// Reverts those that do not hold; the others say how they did. Returns how many still differ from the
/// default.
std::size_t keep_what_holds(const Imported& imported, Chosen& chosen, Database& database,
                            const Defaults& defaults, const std::pair<ModelTimes, ModelTimes>& times) {
  const std::vector<bool> holds = holds_in_model(times.first, times.second);
  std::size_t kept = 0;
  for (const std::size_t i : defaults.challenged) {
    const double ratio = compare_samples(times.first.kernel_us[i], times.second.kernel_us[i]).ratio;
    const std::string why =
        fmt::format("{:.3f} of the time of the default schedule in the whole model", ratio);
    if (holds[i]) {
      chosen.choices[i].why = why;
      ++kept;
    } else {
      revert(imported, chosen, database, defaults, i, "the search's winner took " + why);
    }
  }
  return kept;
}

double seconds_unless_interrupted() {
  return interrupt_signal() == 0 ? steady_seconds() : std::numeric_limits<double>::infinity();
}

void confirm(const Imported& imported, Chosen& chosen, Database& database, const Defaults& defaults,
             double deadline) {
  Program incumbent = make_program(imported, defaults.choices);
  const ProfiledRun run_incumbent(incumbent);
  std::pair<ModelTimes, ModelTimes> times;
  {
    Program challenger = make_program(imported, chosen.choices, {{&incumbent}});
    const double middle = (steady_seconds() + deadline) / 2;
    times = race_programs(run_incumbent, ProfiledRun(challenger), middle, seconds_unless_interrupted);
  }
  if (times.first.run_us.size() < least_confirming_runs) return;
  store_races(imported, chosen, database, defaults, times);
  const std::size_t kept = keep_what_holds(imported, chosen, database, defaults, times);
  log_line(LogLevel::info, "whole model: {} of {} winners hold", kept, defaults.challenged.size());
  if (kept == 0) return;
  Program mixed = make_program(imported, chosen.choices, {{&incumbent}});
  times = race_programs(run_incumbent, ProfiledRun(mixed), deadline, seconds_unless_interrupted);
  if (!compare_samples(times.first.run_us, times.second.run_us).lost()) return;
  for (const std::size_t i : defaults.challenged)
    revert(imported, chosen, database, defaults, i, "all winners together made the model slower");
}

}  // namespace

void confirm_winners(const Imported& imported, Chosen& chosen, Database& database, double deadline) {
  const Defaults defaults = make_defaults(imported, chosen);
  if (defaults.challenged.empty()) return;
  try {
    confirm(imported, chosen, database, defaults, deadline);
  } catch (const KernelError&) {  // NOLINT(bugprone-empty-catch): build_program meets it again, and warns
  }
}

}  // namespace sylvite
