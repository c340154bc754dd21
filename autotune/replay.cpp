#include "autotune/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "autotune/race.h"
#include "autotune/sqlite.h"
#include "base/error.h"
#include "schedules/space.h"

namespace sylvite {
namespace {

constexpr int rounds = 3;
constexpr int round_samples = 7;
constexpr double sample_us = 200;
/// Times of one object differ so much from process to process: by where its memory lies, and the clock.
constexpr double least_replay_band = 0.03;

/// A task on its way.
struct Contest {
  const ReplayTask* task = nullptr;
  std::optional<CompiledCandidate> reference;
  std::vector<CompiledCandidate> candidates;  ///< the winner, then the default schedule if it is another one
  std::vector<std::vector<Measurement>> measured;  ///< by round
  Replayed result;
};

/// What a median may be off by, as a share of it.
double scatter(const std::vector<double>& samples) {
  const double middle = median(samples);
  return samples.size() < 2 || middle <= 0 ? 0 : median_band(samples) / middle;
}

std::vector<Candidate> wanted_candidates(const Contest& contest, const Evaluator& evaluator,
                                         const Machine& machine) {
  std::vector<Candidate> wanted = {evaluator.reference(contest.task->kernel), contest.task->winner.candidate};
  const std::vector<BoundSpace> spaces = evaluator.spaces(contest.task->kernel, machine);
  const Candidate fallback = spaces.empty() ? wanted[0] : spaces.front().at(spaces.front().heuristic);
  if (fallback != wanted[1]) wanted.push_back(fallback);
  return wanted;
}

void fail_contest(Contest& contest, const std::string& message, Movement movement) {
  contest.result.movement = movement;
  contest.result.message = message;
}

/// What became of one compilation: the reference (0), the winner (1), or the default schedule.
void take_object(Contest& contest, std::size_t which, const Candidate& candidate,
                 std::optional<CompileResult> result) {
  if (result && result->verdict == Verdict::ok) {
    CompiledCandidate compiled{candidate, std::move(result->object), result->seconds};
    if (which == 0)
      contest.reference = std::move(compiled);
    else
      contest.candidates.push_back(std::move(compiled));
    return;
  }
  const std::string message = result ? result->message : "not compiled in time";
  if (which == 0)
    fail_contest(contest, "the reference schedule does not compile: " + message, Movement::unknown);
  if (which != 1 || !contest.reference) return;
  const bool judged = result && !result->unjudged;
  fail_contest(contest, message, judged ? Movement::failed : Movement::unknown);
  if (judged)
    contest.result.winner =
        Trial{contest.task->kernel.id, candidate, result->verdict, {}, 0, 0, message, result->seconds};
}

void compile(Contest& contest, const Machine& machine, const ReplayOptions& options, Evaluator& evaluator) {
  const std::vector<Candidate> wanted = wanted_candidates(contest, evaluator, machine);
  std::vector<CompileJob> jobs;
  jobs.reserve(wanted.size());
  for (const Candidate& candidate : wanted)
    jobs.push_back({&contest.task->kernel, candidate, machine.target});
  evaluator.start_compiling(std::move(jobs));
  auto results = evaluator.finish_compiling(options.compile_timeout * static_cast<double>(wanted.size()));
  for (std::size_t i = 0; i < wanted.size(); ++i) take_object(contest, i, wanted[i], std::move(results[i]));
}

void measure(Contest& contest, const Machine& machine, Evaluator& evaluator) {
  if (!contest.reference || contest.candidates.empty()) return;
  MeasureJob job;
  job.kernel = &contest.task->kernel;
  job.target = machine.target;
  job.reference = *contest.reference;
  job.candidates = contest.candidates;
  job.timing.threads = machine.threads;
  job.timing.samples = round_samples;
  job.timing.sample_us = sample_us;
  contest.measured.push_back(evaluator.measure(job));
}

/// One candidate in all rounds: the first failure, or the round that went fastest.
Trial trial_of(const Contest& contest, std::size_t which) {
  const CompiledCandidate& compiled = contest.candidates[which];
  Trial best{contest.task->kernel.id, compiled.candidate, Verdict::noisy, {}, 0, 0, "",
             compiled.compile_seconds};
  for (const std::vector<Measurement>& round : contest.measured) {
    if (round.at(which).unverifiable) continue;
    const Trial now = make_trial(contest.task->kernel, compiled, round[which]);
    if (now.verdict == Verdict::noisy) continue;
    if (now.verdict != Verdict::ok) return now;
    if (best.verdict != Verdict::ok || now.median_us < best.median_us) best = now;
  }
  return best;
}

std::vector<double> samples_of(const Contest& contest, std::size_t which) {
  std::vector<double> all;
  for (const std::vector<Measurement>& round : contest.measured)
    all.insert(all.end(), round.at(which).samples_us.begin(), round.at(which).samples_us.end());
  return all;
}

/// Settles those that are held so far, with what all have in common: the median of their ratios; and as noise, how much the
/// ratios scatter around it.
void compare_with_all(std::vector<Replayed>& results) {
  constexpr std::size_t least_winners = 5;  // of fewer, the one that moved would be a large part
  std::vector<double> ratios;
  for (const Replayed& result : results)
    if (result.ratio > 0) ratios.push_back(result.ratio);
  const bool are_many = ratios.size() >= least_winners;
  const double common = are_many ? median(ratios) : 1;
  const double spread = are_many ? 3 * robust_deviation(ratios) / common : 0;
  for (Replayed& result : results) {
    if (result.ratio <= 0) continue;
    result.machine_ratio = common;
    result.band += spread;
    if (result.movement != Movement::held) continue;
    const double moved = result.ratio / common;
    if (moved > 1 + result.band) result.movement = Movement::slower;
    if (moved < 1 - result.band) result.movement = Movement::faster;
  }
}

void judge(Contest& contest) {
  Replayed& result = contest.result;
  const bool has_winner =
      !contest.candidates.empty() && contest.candidates[0].candidate == contest.task->winner.candidate;
  if (contest.measured.empty()) {
    if (result.message.empty()) result.message = "not measured";
    return;
  }
  if (!has_winner || contest.candidates.size() > 1)
    result.fallback = trial_of(contest, contest.candidates.size() - 1);
  if (!has_winner) return;
  result.winner = trial_of(contest, 0);
  if (result.winner->verdict == Verdict::noisy)
    return fail_contest(contest, contest.measured.front().front().message, Movement::unknown);
  if (result.winner->verdict != Verdict::ok)
    return fail_contest(contest, result.winner->message, Movement::failed);
  result.ratio = result.winner->median_us / contest.task->winner.median_us;
  result.band =
      std::max(least_replay_band, scatter(result.winner->samples_us) + scatter(contest.task->stored_us));
  result.movement = Movement::held;
  if (result.fallback && result.fallback->verdict == Verdict::ok) {
    const RaceVerdict race = compare_samples(samples_of(contest, 0), samples_of(contest, 1));
    result.default_ratio = race.ratio;
    if (race.won()) result.movement = Movement::beaten;
  }
}

/// Columns target, machine, threads, versions, precision, beginning at `first`.
TuningKey key_at(const SqliteStatement& row, int first) {
  return {row.text(first), row.text(first + 1), static_cast<int>(row.integer(first + 2)), row.text(first + 3),
          row.text(first + 4)};
}

std::optional<Kernel> read_kernel(const std::string& id, const std::string& text) {
  try {
    Kernel kernel = parse_kernel(text);
    if (kernel.id == id) return kernel;
  } catch (const Error&) {  // NOLINT(bugprone-empty-catch): written by another version
  }
  return std::nullopt;
}

}  // namespace

std::string_view movement_name(Movement movement) {
  constexpr std::array<std::string_view, 6> names = {"held",   "faster", "slower",
                                                     "beaten", "failed", "unknown"};
  return names.at(static_cast<std::size_t>(movement));
}

std::vector<TuningKey> winner_keys(const Database& database) {
  SqliteStatement row(database.connection(), R"(
    SELECT target, machine, threads, versions, precision FROM keys y
    WHERE EXISTS (SELECT 1 FROM winners w WHERE w.key = y.id) ORDER BY id)");
  std::vector<TuningKey> keys;
  while (row.step()) keys.push_back(key_at(row, 0));
  return keys;
}

std::vector<ReplayTask> replay_tasks(const Database& database, const TuningKey& key,
                                     const std::string& kernel_prefix) {
  SqliteStatement row(database.connection(), R"(
    SELECT k.id, k.text, y.target, y.machine, y.threads, y.versions, y.precision
    FROM winners w JOIN keys y ON y.id = w.key JOIN kernels k ON k.id = w.kernel
    WHERE substr(k.id, 1, length(?1)) = ?1 AND y.machine = ?2 AND y.threads = ?3 AND y.precision = ?4
    ORDER BY w.created_at, w.id)");
  row.bind(kernel_prefix).bind(key.machine).bind(key.threads).bind(key.precision);
  std::map<std::string, std::pair<std::string, TuningKey>> found;  // text and key of each kernel, by id
  while (row.step()) {
    auto& [text, stored_key] = found[row.text(0)];
    if (stored_key == key) continue;
    text = row.text(1);
    stored_key = key_at(row, 2);
  }
  std::vector<ReplayTask> tasks;
  for (const auto& [id, stored] : found) {
    const std::optional<Kernel> kernel = read_kernel(id, stored.first);
    const std::optional<Winner> winner = kernel ? database.find_winner(*kernel, stored.second) : std::nullopt;
    if (!winner || winner->median_us <= 0) continue;
    ReplayTask task{*kernel, stored.second, *winner, {}};
    for (const Trial& trial : database.trials(*kernel, stored.second))
      if (trial.candidate == winner->candidate) task.stored_us = trial.samples_us;
    tasks.push_back(std::move(task));
  }
  return tasks;
}

std::vector<Replayed> replay(const std::vector<ReplayTask>& tasks, const Machine& machine,
                             const ReplayOptions& options, Evaluator& evaluator,
                             const std::function<void(double)>& progress) {
  std::vector<Contest> contests(tasks.size());
  std::size_t done = 0;
  const auto for_each = [&](const auto& step) {
    for (Contest& contest : contests) {
      if (evaluator.is_interrupted() || !evaluator.refusal().empty()) return;
      step(contest);
      if (progress) progress(static_cast<double>(++done) / static_cast<double>((rounds + 1) * tasks.size()));
    }
  };
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    contests[i].task = &tasks[i];
    contests[i].result.kernel_id = tasks[i].kernel.id;
  }
  for_each([&](Contest& contest) { compile(contest, machine, options, evaluator); });
  for (int round = 0; round < rounds; ++round)
    for_each([&](Contest& contest) { measure(contest, machine, evaluator); });
  std::vector<Replayed> results;
  for (Contest& contest : contests) {
    judge(contest);
    results.push_back(std::move(contest.result));
  }
  compare_with_all(results);
  return results;
}

void store_replay(const std::vector<ReplayTask>& tasks, const std::vector<Replayed>& results,
                  const TuningKey& key, Database& database) {
  for (std::size_t i = 0; i < results.size(); ++i) {
    const auto& [kernel, stored_key, stored, samples] = tasks[i];
    const Replayed& now = results[i];
    if (now.movement == Movement::unknown) continue;
    if (now.winner) database.replace_trial(kernel, key, *now.winner);
    if (now.fallback && now.fallback->verdict != Verdict::noisy)
      database.replace_trial(kernel, key, *now.fallback);
    const bool gives_way = now.movement == Movement::beaten || now.movement == Movement::failed;
    if (gives_way && (!now.fallback || now.fallback->verdict != Verdict::ok)) continue;
    const Trial& chosen = gives_way ? *now.fallback : *now.winner;
    const double budget = gives_way || stored_key != key ? 0 : stored.budget_seconds;
    const std::string origin = gives_way ? std::string(origin_heuristic) : stored.origin;
    database.record_winner(kernel, key, {chosen.candidate, chosen.median_us, chosen.error, origin, budget});
  }
}

}  // namespace sylvite
