#include "runtime/measure.h"

#include <algorithm>
#include <chrono>
#include <memory>

#include "autotune/plausibility.h"
#include "autotune/random_inputs.h"
#include "autotune/verify.h"
#include "base/error.h"
#include "base/files.h"
#include "runtime/kernel_runner.h"

namespace sylvite {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kept_oracles = 4;
constexpr int most_repetitions = 100000;

double microseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

std::unique_ptr<KernelRunner> load_candidate(const Kernel& kernel, const CandidateFile& file,
                                             const std::string& target, const std::vector<Tensor>& inputs,
                                             int threads) {
  return std::make_unique<KernelRunner>(kernel, Candidate::parse(file.candidate), read_file(file.object_path),
                                        target, inputs, threads);
}

double worst_output_error(const Kernel& kernel, const std::vector<Tensor>& actual,
                          const std::vector<Tensor>& expected) {
  double worst = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    worst = std::max(worst, output_error(kernel.body.type(kernel.body.outputs[i]), actual[i], expected[i]));
  }
  return worst;
}

/// A candidate that passed the check, being timed.
struct Contestant {
  std::unique_ptr<KernelRunner> runner;
  MeasurementReply* reply = nullptr;
  int repetitions = 1;

  double time_sample() {
    auto start = Clock::now();
    for (int i = 0; i < repetitions; ++i) {
      runner->call();
    }
    return microseconds_since(start) / repetitions;
  }
};

void calibrate(Contestant& contestant, double sample_us) {
  double once = contestant.time_sample();  // the check has warmed it up once already
  contestant.repetitions =
      static_cast<int>(std::clamp<double>(sample_us / std::max(once, 1e-3), 1, most_repetitions));
}

/// ABAB..., until everyone has its samples or the time is up.
void race(std::vector<Contestant>& contestants, const MeasureRequest& request) {
  for (Contestant& contestant : contestants) {
    calibrate(contestant, request.sample_us);
  }
  auto start = Clock::now();
  for (int sample = 0; sample < request.samples; ++sample) {
    if (sample > 0 && microseconds_since(start) > request.seconds * 1e6) {
      return;
    }
    for (Contestant& contestant : contestants) {
      contestant.reply->samples_us.push_back(contestant.time_sample());
    }
  }
}

void reject_impossible_timings(const Kernel& kernel, const MeasureRequest& request,
                               std::vector<Contestant>& contestants) {
  double least = least_microseconds(kernel, request.threads);
  for (Contestant& contestant : contestants) {
    double found = median(contestant.reply->samples_us);
    if (found <= 0 || found < least) {
      contestant.reply->verdict = Verdict::noisy;
      contestant.reply->message =
          fmt::format("a median of {} us is impossible: at least {} us", found, least);
    }
  }
}

/// Runs the candidate once and compares. Returns nothing, with the verdict in `reply`, when it fails.
std::unique_ptr<KernelRunner> check(const Kernel& kernel, const MeasureRequest& request,
                                    const CandidateFile& file, const std::vector<Tensor>& inputs,
                                    const std::vector<Tensor>& expected, MeasurementReply& reply) {
  try {
    auto runner = load_candidate(kernel, file, request.target, inputs, request.threads);
    runner->call();
    reply.error = worst_output_error(kernel, runner->outputs(), expected);
    if (reply.error <= 1) {
      return runner;
    }
    reply.verdict = Verdict::wrong_result;
    reply.message = fmt::format("differs from the reference schedule: error {:.3g}, allowed 1", reply.error);
  } catch (const std::exception& error) {
    reply.verdict = Verdict::run_crash;
    reply.message = error.what();
  }
  return nullptr;
}

}  // namespace

const Measurer::Oracle& Measurer::oracle_for(const MeasureRequest& request) {
  auto found = std::ranges::find(oracles_, request.kernel, &Oracle::kernel_text);
  if (found != oracles_.end()) {
    oracles_.splice(oracles_.begin(), oracles_, found);
    return oracles_.front();
  }
  Oracle oracle{request.kernel, parse_kernel(request.kernel), {}, {}};
  oracle.inputs = random_inputs(oracle.kernel);
  auto runner =
      load_candidate(oracle.kernel, request.reference, request.target, oracle.inputs, request.threads);
  runner->call();
  oracle.outputs = runner->outputs();
  oracles_.push_front(std::move(oracle));
  if (oracles_.size() > kept_oracles) {
    oracles_.pop_back();
  }
  return oracles_.front();
}

MeasureReply Measurer::measure(const MeasureRequest& request, const std::function<void(std::size_t)>& note) {
  MeasureReply reply;
  const Oracle* oracle = nullptr;
  try {
    oracle = &oracle_for(request);
  } catch (const std::exception& error) {
    reply.error = error.what();
    return reply;
  }
  reply.results.resize(request.candidates.size());
  std::vector<Contestant> contestants;
  for (std::size_t i = 0; i < request.candidates.size(); ++i) {
    note(i);
    if (auto runner = check(oracle->kernel, request, request.candidates[i], oracle->inputs, oracle->outputs,
                            reply.results[i])) {
      contestants.push_back({std::move(runner), &reply.results[i]});
    }
  }
  note(request.candidates.size());
  race(contestants, request);
  reject_impossible_timings(oracle->kernel, request, contestants);
  return reply;
}

}  // namespace sylvite
