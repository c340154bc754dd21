#include "runtime/measure.h"

#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <memory>

#include "autotune/machine_failure.h"
#include "autotune/plausibility.h"
#include "autotune/random_inputs.h"
#include "autotune/verify.h"
#include "base/clock.h"
#include "base/error.h"
#include "runtime/kernel_runner.h"
#include "runtime/threads.h"
#include "schedules/cuda/candidate.h"
#include "schedules/machine.h"

namespace sylvite {

namespace {

constexpr std::size_t kept_oracles = 4;
constexpr int most_repetitions = 100000;
constexpr int most_attempts = 4;

std::unique_ptr<KernelRunner> load_candidate(const Kernel& kernel, const CandidateMessage& message,
                                             const std::string& target, const std::vector<Tensor>& inputs,
                                             ColdWeights& weights, int threads) {
  return std::make_unique<KernelRunner>(kernel, Candidate::parse(message.candidate), message.object, target,
                                        inputs, weights, threads);
}

double worst_output_error(const Kernel& kernel, const std::vector<Tensor>& actual,
                          const std::vector<Tensor>& expected, const Tolerance& tolerance) {
  double worst = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    worst = std::max(
        worst, output_error(kernel.body.type(kernel.body.outputs[i]), actual[i], expected[i], tolerance));
  }
  return worst;
}

double thread_cpu_us() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) * 1e-3;
}

std::int64_t preemptions() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_nivcsw;
}

/// Microseconds that `work` takes without the time slices that other processes got meanwhile: on a busy
/// machine those are longer than most kernels. With one thread its CPU time is just that; with more, a run
/// that was preempted is repeated, a few times at most.
template <typename Work>
double time_undisturbed(int threads, Work work) {
  if (threads == 1) {
    double start = thread_cpu_us();
    work();
    return thread_cpu_us() - start;
  }
  for (int attempt = 1;; ++attempt) {
    std::int64_t before = preemptions();
    const double start = steady_seconds();
    work();
    const double taken = (steady_seconds() - start) * 1e6;
    if (preemptions() == before || attempt == most_attempts) return taken;
  }
}

/// A candidate that passed the check, being timed.
struct Contestant {
  std::unique_ptr<KernelRunner> runner;
  MeasurementReply* reply = nullptr;
  int threads = 1;
  Tolerance tolerance;
  int repetitions = 1;

  double time_sample() const {
    if (const double us = runner->time_on_device(repetitions); us > 0) return us;
    auto repeat = [this] {
      for (int i = 0; i < repetitions; ++i) runner->call();
    };
    double us = time_undisturbed(threads, repeat) / repetitions;
    return std::round(us * 1e3) / 1e3;  // clocks tell no more than nanoseconds
  }
};

/// Reading the clock takes as long as a small kernel, so that a few calls seem longer than they are.
void calibrate(Contestant& contestant, double sample_us) {
  for (bool is_long_enough = false; !is_long_enough;) {
    const double once = contestant.time_sample();  // the check has warmed it up once already
    const int wanted =
        static_cast<int>(std::clamp<double>(sample_us / std::max(once, 1e-3), 1, most_repetitions));
    is_long_enough = contestant.repetitions * std::int64_t{4} >= wanted;
    contestant.repetitions = wanted;
  }
}

/// ABAB..., until everyone has its samples or the time is up.
void race(std::vector<Contestant>& contestants, const MeasureRequest& request) {
  for (Contestant& contestant : contestants) calibrate(contestant, request.timing.sample_us);
  const double start = steady_seconds();
  for (int sample = 0; sample < request.timing.samples; ++sample) {
    if (sample > 0 && steady_seconds() - start > request.timing.seconds) return;
    for (Contestant& contestant : contestants)
      contestant.reply->samples_us.push_back(contestant.time_sample());
  }
}

/// Raises the reply's error to that of the runner's outputs; false, with a verdict, when it is too large.
bool compare_outputs(const Kernel& kernel, KernelRunner& runner, const std::vector<Tensor>& expected,
                     const Tolerance& tolerance, MeasurementReply& reply) {
  reply.error = std::max(reply.error, worst_output_error(kernel, runner.outputs(), expected, tolerance));
  if (reply.error <= 1) return true;
  reply.verdict = Verdict::wrong_result;
  reply.message = fmt::format("differs from the reference schedule: error {:.3g}, allowed 1", reply.error);
  return false;
}

/// After the timing: a further call must still be right, and times possible.
void judge(const Kernel& kernel, const MeasureRequest& request, const std::vector<Tensor>& expected,
           const std::vector<Contestant>& contestants) {
  // The bound is one of cores; the GPU's own clock times what runs there.
  double least = is_gpu_target(request.target) ? 0 : least_microseconds(kernel, request.timing.threads);
  for (const Contestant& contestant : contestants) {
    MeasurementReply& reply = *contestant.reply;
    double found = median(reply.samples_us);
    contestant.runner->poison_outputs();
    contestant.runner->call();
    if (compare_outputs(kernel, *contestant.runner, expected, contestant.tolerance, reply) &&
        (found <= 0 || found < least)) {
      reply.verdict = Verdict::noisy;
      reply.message = fmt::format("a median of {} us is impossible: at least {} us", found, least);
    }
  }
}

/// A candidate that finds no memory while so much is free asks for too much: its own fault, not the machine's.
constexpr std::size_t plenty_gib = 2;

bool has_plenty_of_memory() {
  constexpr std::size_t bytes = plenty_gib << 30;
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return false;
  ::munmap(memory, bytes);
  return true;
}

std::string message_of(const std::exception& error, const std::string& target) {
  if (is_gpu_target(target) || !is_lack_of_memory(error.what()) || !has_plenty_of_memory())
    return error.what();
  return fmt::format("asks for too much memory: {} GiB were free", plenty_gib);
}

/// Runs the candidate once and compares. Returns nothing, with the verdict in `reply`, when it fails.
std::unique_ptr<KernelRunner> check_candidate(const Kernel& kernel, const MeasureRequest& request,
                                              const CandidateMessage& message,
                                              const std::vector<Tensor>& inputs,
                                              const std::vector<Tensor>& expected, ColdWeights& weights,
                                              const Tolerance& tolerance, MeasurementReply& reply) {
  try {
    auto runner = load_candidate(kernel, message, request.target, inputs, weights, request.timing.threads);
    runner->call();
    if (compare_outputs(kernel, *runner, expected, tolerance, reply)) return runner;
  } catch (const std::exception& error) {
    reply.verdict = Verdict::run_crash;
    reply.message = message_of(error, request.target);
  }
  return nullptr;
}

}  // namespace

Measurer::Oracle& Measurer::oracle_for(const MeasureRequest& request) {
  auto found = std::ranges::find(oracles_, request.kernel, &Oracle::kernel_text);
  if (found != oracles_.end()) {
    oracles_.splice(oracles_.begin(), oracles_, found);
    return oracles_.front();
  }
  Oracle oracle{request.kernel, parse_kernel(request.kernel), {}, {}, nullptr};
  oracle.inputs = random_inputs(oracle.kernel);
  ColdWeights weights(oracle.inputs, 0);
  auto runner = load_candidate(oracle.kernel, request.reference, request.target, oracle.inputs, weights,
                               request.timing.threads);
  runner->call();
  oracle.outputs = runner->outputs();
  oracles_.push_front(std::move(oracle));
  if (oracles_.size() > kept_oracles) oracles_.pop_back();
  return oracles_.front();
}

/// Copies take much memory: only one kernel has them at a time.
void Measurer::set_weights(Oracle& oracle, const std::string& target) {
  if (oracle.weights) return;
  for (Oracle& other : oracles_) other.weights.reset();
  oracle.weights = std::make_unique<ColdWeights>(
      oracle.inputs, is_gpu_target(target) ? 0 : ColdWeights::default_cycle_bytes);
}

MeasureReply Measurer::measure(const MeasureRequest& request, const std::function<void(std::size_t)>& note) {
  MeasureReply reply;
  Oracle* oracle = nullptr;
  try {
    oracle = &oracle_for(request);
    set_weights(*oracle, request.target);
  } catch (const std::exception& error) {
    reply.error = error.what();
    return reply;
  }
  reply.results.resize(request.candidates.size());
  std::vector<Contestant> contestants;
  for (std::size_t i = 0; i < request.candidates.size(); ++i) {
    note(i);
    const CandidateMessage& candidate = request.candidates[i];
    const bool tf32 = multiplies_in_tf32(oracle->kernel, Candidate::parse(candidate.candidate));
    const Tolerance tolerance = tolerance_of(oracle->kernel, tf32);
    if (auto runner = check_candidate(oracle->kernel, request, candidate, oracle->inputs, oracle->outputs,
                                      *oracle->weights, tolerance, reply.results[i])) {
      contestants.push_back({std::move(runner), &reply.results[i], request.timing.threads, tolerance});
    }
  }
  note(request.candidates.size());
  with_workers(request.timing.threads, default_spin_seconds, [&] { race(contestants, request); });
  judge(oracle->kernel, request, oracle->outputs, contestants);
  return reply;
}

}  // namespace sylvite
