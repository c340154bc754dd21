// Races that a database says were won, run again: challenger beside incumbent, interleaved as the tuner does. A claim holds
// when the challenger is the faster one again; those of winners are marked *. The last line is JSON.
// usage: rerace SYLVITE DATABASE

#include <fmt/format.h>

#include <string>
#include <vector>

#include "autotune/race.h"
#include "autotune/sqlite.h"
#include "autotune/worker_pool.h"
#include "base/error.h"
#include "schedules/space.h"

namespace {

using namespace sylvite;  // NOLINT(google-build-using-namespace): a program of its own

constexpr int samples = 31;
constexpr double most_seconds = 10;

struct Claim {
  std::string kernel;  ///< its text
  Candidate incumbent;
  Candidate challenger;
  std::string target;
  int threads = 1;
  bool is_of_winner = false;  ///< the challenger became the winner
};

/// Claims, and those that held.
struct Tally {
  int claims = 0;
  int hold = 0;

  void add(const RaceVerdict& verdict) {
    ++claims;
    hold += verdict.ratio < 1 ? 1 : 0;
  }
};

std::vector<Claim> claims_in(const std::string& database) {
  SqliteConnection connection(database, SQLITE_OPEN_READWRITE, 10000);
  SqliteStatement row(
      connection,
      "SELECT kernels.text, incumbent, challenger, target, threads, winners.id IS NOT NULL FROM races "
      "JOIN kernels ON kernels.id = races.kernel JOIN keys ON keys.id = races.key "
      "LEFT JOIN winners ON winners.kernel = races.kernel AND winners.key = races.key "
      "AND winners.candidate = challenger "
      "WHERE result = 'won' AND scope = 'kernel' ORDER BY races.id");
  std::vector<Claim> claims;
  while (row.step()) {
    claims.push_back({row.text(0), Candidate::parse(row.text(1)), Candidate::parse(row.text(2)), row.text(3),
                      static_cast<int>(row.integer(4)), row.integer(5) != 0});
  }
  return claims;
}

RaceVerdict race_again(const Claim& claim, WorkerPool& pool) {
  const Kernel kernel = parse_kernel(claim.kernel);
  const std::vector<Candidate> candidates = {reference_candidate(kernel), claim.incumbent, claim.challenger};
  std::vector<CompileJob> jobs;
  jobs.reserve(candidates.size());
  for (const Candidate& candidate : candidates) jobs.push_back({&kernel, candidate, claim.target});
  std::vector<CompiledCandidate> compiled;
  for (CompileResult& result : pool.compile(jobs)) {
    if (result.verdict != Verdict::ok) throw CompileError("{}: {}", kernel.id, result.message);
    compiled.push_back({candidates[compiled.size()], std::move(result.object), result.seconds});
  }
  MeasureJob job{&kernel, claim.target, compiled[0], {compiled[1], compiled[2]}, {}};
  job.timing = {claim.threads, samples, 200, most_seconds};
  const std::vector<Measurement> results = pool.measure(job);
  for (const Measurement& result : results)
    if (result.verdict != Verdict::ok) throw IoError("{} was not measured: {}", kernel.id, result.message);
  const RaceVerdict verdict = compare_samples(results[0].samples_us, results[1].samples_us);
  fmt::print("{} {} {:<14} {:8.1f} -> {:8.1f} us, {:.3f} +- {:.3f}: {}\n", claim.is_of_winner ? '*' : ' ',
             kernel.id, kernel_class_name(kernel.kind), median(results[0].samples_us),
             median(results[1].samples_us), verdict.ratio, verdict.band,
             verdict.won()    ? "won"
             : verdict.lost() ? "lost"
                              : "tie");
  return verdict;
}

}  // namespace

int main(int count, char** words) try {
  if (count != 3) throw UsageError("usage: rerace SYLVITE DATABASE");
  WorkerOptions options;
  options.command = words[1];
  WorkerPool pool(options);
  Tally winners, all;
  for (const Claim& claim : claims_in(words[2])) {
    const RaceVerdict verdict = race_again(claim, pool);
    all.add(verdict);
    if (claim.is_of_winner) winners.add(verdict);
  }
  fmt::print("{{\"claims\":{},\"hold\":{},\"races\":{},\"races_hold\":{}}}\n", winners.claims, winners.hold,
             all.claims, all.hold);
  return 0;
} catch (const sylvite::Error& error) {
  fmt::print(stderr, "rerace: {}\n", error.what());
  return static_cast<int>(error.code());
}
