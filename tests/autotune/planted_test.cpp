// Candidates with faults among honest ones, in real worker processes: none wins, and each is stored with its verdict.

#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "autotune/evaluator.h"
#include "autotune/sqlite.h"
#include "autotune/tuner.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/sanitizer.h"
#include "schedules/compile.h"
#include "tests/autotune/sample_kernels.h"
#include "tests/support/shell.h"
#include "tests/support/temporary_folder.h"

namespace sylvite::planted_test {
namespace {

struct Fault {
  std::string function;  ///< of planted_kernels.c
  Verdict verdict;
};

/// What is right, and fast in short measurements only, passes as a trial: a longer one or the race finds it out.
const std::vector<Fault>& faults() {
  static const std::vector<Fault> table = [] {
    std::vector<Fault> all = {
        {"crashes", Verdict::run_crash},
        {"hangs", Verdict::run_timeout},
        {"errs_in_one_element", Verdict::wrong_result},
        {"leaves_one_element", Verdict::wrong_result},
        {"errs_later", Verdict::wrong_result},
        {"does_nothing_again", Verdict::wrong_result},
        {"is_fast_at_first", Verdict::ok},
        {"is_fast_alone", Verdict::ok},
    };
    if (!has_address_sanitizer)
      all.push_back({"allocates", Verdict::run_crash});  // workers have no limit there
    return all;
  }();
  return table;
}

/// A real compiler and real measurements, except that planted candidates become objects with faults.
class PlantedWorld {
 public:
  PlantedWorld(const Kernel& kernel, const Machine& machine, const TuneOptions& options) : kernel_(kernel) {
    WorkerOptions workers;
    workers.command = SYLVITE_COMMAND;
    workers.run_timeout = options.run_timeout;
    evaluator = make_evaluator(std::make_shared<WorkerPool>(workers), machine);
    for (const Fault& fault : faults()) objects_[candidate_of(fault).to_string()] = object_of(fault, machine);
    evaluator.spaces = [this](const Kernel& each, const Machine& where) {
      auto spaces = spaces_for(each, where);
      spaces.insert(spaces.begin() + 1, planted_space());
      return spaces;
    };
    evaluator.start_compiling = [this, start = evaluator.start_compiling](std::vector<CompileJob> jobs) {
      jobs_ = jobs;
      std::erase_if(jobs, [this](const CompileJob& job) { return is_planted(job); });
      start(std::move(jobs));
    };
    evaluator.measure = [this, measure = evaluator.measure](const MeasureJob& job) {
      std::vector<Measurement> results = measure(job);
      for (std::size_t i = 0; i < results.size(); ++i) {
        const std::string candidate = job.candidates[i].candidate.to_string();
        if (objects_.contains(candidate) && !results[i].unverifiable) measured_.insert(candidate);
      }
      if (measured_.size() == objects_.size() && !all_measured_) all_measured_ = steady_seconds();
      return results;
    };
    // However slow the machine is: the time is up some seconds after all of them were tried.
    evaluator.now = [this, budget = options.budget_seconds] {
      const double now = steady_seconds();
      return all_measured_ && now > *all_measured_ + seconds_for_races ? now + budget : now;
    };
    evaluator.finish_compiling = [this, finish = evaluator.finish_compiling](double timeout) {
      auto real = finish(timeout);
      std::vector<std::optional<CompileResult>> results;
      for (std::size_t i = 0, compiled = 0; i < jobs_.size(); ++i)
        results.push_back(is_planted(jobs_[i]) ? CompileResult{Verdict::ok, object_of(jobs_[i]), "", 0.1}
                                               : std::move(real.at(compiled++)));
      return results;
    };
  }

  /// A schedule that nobody compiles: only its text counts.
  Candidate candidate_of(const Fault& fault) const {
    Candidate candidate = reference_candidate(kernel_);
    candidate.schedule.decisions = {{fault.function, -1, "compute_root", {}}};
    return candidate;
  }

  Evaluator evaluator;

 private:
  bool is_planted(const CompileJob& job) const { return objects_.contains(job.candidate.to_string()); }
  std::string object_of(const CompileJob& job) const { return objects_.at(job.candidate.to_string()); }

  std::string object_of(const Fault& fault, const Machine& machine) const {
    const TemporaryFolder folder;
    const std::string symbol = symbol_name(kernel_, candidate_of(fault), machine.target) + "_argv";
    output_of(
        "cc -std=c11 -O1 -Wall -Wextra -Werror -Wno-infinite-recursion -D_GNU_SOURCE -DENTRY=" + symbol +
        " -DFAULT=" + fault.function + " -c " SYLVITE_PLANTED_KERNELS " -o " + folder.file("planted.o"));
    return read_file(folder.file("planted.o"));
  }

  BoundSpace planted_space() const {
    std::vector<std::int64_t> numbers(faults().size());
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<std::int64_t>(i);
    return {.name = "planted",
            .parameters = {{"fault", numbers}},
            .heuristic = {0},
            .at =
                [this](const Point& point) {
                  return candidate_of(faults().at(static_cast<std::size_t>(point.at(0))));
                },
            .cost = [](const Point&) { return 1e-12; }};  // the model believes in them
  }

  static constexpr double seconds_for_races = 4;
  const Kernel& kernel_;
  std::map<std::string, std::string> objects_;  ///< by candidate
  std::set<std::string> measured_;              ///< of these
  std::optional<double> all_measured_;          ///< when the last of them was
  std::vector<CompileJob> jobs_;
};

/// Results of the races that a candidate challenged the incumbent in.
std::vector<std::string> races_of(const Candidate& candidate, const std::string& database) {
  SqliteConnection connection(database, SQLITE_OPEN_READWRITE, 10000);
  std::vector<std::string> results;
  SqliteStatement row(connection, "SELECT result FROM races WHERE challenger = ?");
  row.bind(candidate.to_string());
  while (row.step()) results.push_back(row.text(0));
  return results;
}

TEST(PlantedCandidates, NoneWins) {
  const TemporaryFolder folder;
  const std::string path = folder.file("tuning.db");
  const Kernel kernel = sample_matmul(64);
  const Machine machine = detect_machine(1);
  TuneOptions options;
  options.budget_seconds = 1800;
  options.run_timeout = 2;
  PlantedWorld world(kernel, machine, options);
  {
    Database database(path);
    const TuneResult result = tune({{&kernel, 1}}, machine, database, options, {}, world.evaluator);
    EXPECT_EQ(result.failure, "");
    EXPECT_THAT(result.warnings, testing::IsEmpty());
    for (const Fault& fault : faults())
      EXPECT_FALSE(result.choices.at(0).candidate == world.candidate_of(fault)) << fault.function;
  }
  const Database database(path);
  const std::vector<Trial> trials = database.trials(kernel, tuning_key(machine, "f32"));
  for (const Fault& fault : faults()) {
    const Candidate candidate = world.candidate_of(fault);
    const auto trial = std::ranges::find(trials, candidate, &Trial::candidate);
    ASSERT_NE(trial, trials.end()) << fault.function;
    EXPECT_EQ(trial->verdict, fault.verdict) << fault.function << ": " << trial->message;
    const std::vector<std::string> races = races_of(candidate, path);
    if (fault.verdict != Verdict::ok) EXPECT_THAT(races, testing::IsEmpty()) << fault.function;
    EXPECT_THAT(races, testing::Not(testing::Contains("won"))) << fault.function;
  }
}

}  // namespace
}  // namespace sylvite::planted_test
