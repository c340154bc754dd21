#pragma once
// A world without clocks and processes, for tests of the tuner.

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "autotune/evaluator.h"
#include "autotune/tuner.h"
#include "base/error.h"
#include "tests/autotune/sample_kernels.h"

namespace sylvite {

/// Candidates of the fake spaces are forms "fake{a=..., b=...}".
inline Candidate fake_candidate(std::int64_t a, std::int64_t b) {
  Candidate candidate;
  candidate.form.name = "fake";
  candidate.form.parameters = {{"a", a}, {"b", b}};
  return candidate;
}

inline BoundSpace fake_space() {
  const std::vector<std::int64_t> values = {0, 1, 2, 3, 4, 5, 6, 7};
  return {.name = "fake",
          .parameters = {{"a", values}, {"b", values}},
          .heuristic = {0, 0},
          .at =
              [](const Point& point) {
                if (point.at(0) == 7) throw UnsupportedError("a of {} is too large", point.at(0));
                return fake_candidate(point.at(0), point.at(1));
              },
          .cost = {}};
}

/// A world in which compiling takes 0.1 s, and measuring 0.05 s of a clock that only they move.
struct FakeWorld {
  double clock = 0;
  int compiled = 0;
  int measured = 0;
  double longest_compile = 0.1;
  std::map<std::string, int> times_measured;
  std::vector<CompileJob> started;
  /// Microseconds at a point, or a verdict other than ok.
  std::function<Measurement(std::int64_t a, std::int64_t b)> outcome = [](std::int64_t a, std::int64_t b) {
    return timed(100.0 + 10.0 * static_cast<double>(std::abs(a - 5) + std::abs(b - 3)));
  };
  std::function<Verdict(std::int64_t a, std::int64_t b)> compile_outcome = [](auto, auto) {
    return Verdict::ok;
  };

  static Measurement timed(double us) { return {Verdict::ok, {us}, 0.1, ""}; }

  CompileResult compile(const CompileJob& job) {
    ++compiled;
    if (job.candidate.form.name != "fake") return {Verdict::ok, "reference", "", 0.1};
    Verdict verdict = compile_outcome(job.candidate.form.at("a"), job.candidate.form.at("b"));
    return {verdict, verdict == Verdict::ok ? "object" : "", verdict == Verdict::ok ? "" : "planted", 0.1};
  }

  Measurement measure(const Candidate& candidate, int samples) {
    ++measured;
    ++times_measured[candidate.to_string()];
    Measurement result = outcome(candidate.form.at("a"), candidate.form.at("b"));
    if (result.samples_us.size() == 1)
      result.samples_us.assign(static_cast<std::size_t>(samples), result.samples_us[0]);
    return result;
  }

  Evaluator evaluator() {
    Evaluator evaluator;
    evaluator.spaces = [](const Kernel&, const Machine&) { return std::vector<BoundSpace>{fake_space()}; };
    evaluator.reference = [](const Kernel&) { return Candidate{}; };
    evaluator.start_compiling = [this](std::vector<CompileJob> jobs) { started = std::move(jobs); };
    evaluator.finish_compiling = [this](double timeout) {
      std::vector<std::optional<CompileResult>> results(started.size());
      for (std::size_t i = 0; i < started.size() && longest_compile * static_cast<double>(i + 1) <= timeout;
           ++i) {
        clock += longest_compile;
        results[i] = compile(started[i]);
      }
      return results;
    };
    evaluator.measure = [this](const MeasureJob& job) {
      clock += 0.05;
      std::vector<Measurement> results;
      results.reserve(job.candidates.size());
      for (const CompiledCandidate& candidate : job.candidates)
        results.push_back(measure(candidate.candidate, job.timing.samples));
      return results;
    };
    evaluator.now = [this] { return clock; };
    return evaluator;
  }
};

struct TunerTest : testing::Test {
  FakeWorld world;
  Kernel kernel = sample_matmul();
  Machine machine;
  Database database{""};
  TuneOptions options;

  TuneResult run(int launches = 1) {
    Evaluator evaluator = world.evaluator();
    return tune({{&kernel, launches}}, machine, database, options, {}, evaluator);
  }
  Candidate chosen() { return run().choices.at(0).candidate; }
};

}  // namespace sylvite
