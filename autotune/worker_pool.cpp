#include "autotune/worker_pool.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <variant>

#include "autotune/build_id.h"
#include "autotune/child_process.h"
#include "autotune/machine_failure.h"
#include "autotune/worker_protocol.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/fork.h"
#include "schedules/compile.h"

namespace sylvite {

namespace {

struct PendingJob {
  JobId id = 0;
  std::variant<CompileJob, MeasureJob> job;
};

/// A child and what it is doing.
struct Worker {
  std::unique_ptr<ChildProcess> child;
  bool is_known = false;  ///< the child said that it is of this build
  std::optional<PendingJob> job;
  double started = 0;  ///< on the steady clock, as the next
  double deadline = 0;
  std::optional<std::size_t> running;  ///< the last MeasureNote
};

/// What the machine failed at is not judged.
CompileResult failed_compilation(Verdict verdict, const std::string& message, double seconds) {
  const bool unjudged = is_machine_failure(message);
  return {unjudged ? Verdict::noisy : verdict, "", message, seconds, unjudged};
}

CompileResult compile_here(const CompileJob& job) {
  CompileResult result;
  const double start = steady_seconds();
  try {
    result.object = compile_to_object(*job.kernel, job.candidate, job.target);
  } catch (const std::exception& error) {
    return failed_compilation(Verdict::compile_error, error.what(), steady_seconds() - start);
  }
  result.seconds = steady_seconds() - start;
  return result;
}

WorkerRequest request_of(const PendingJob& pending) {
  if (const auto* job = std::get_if<CompileJob>(&pending.job))
    return CompileRequest{job->kernel->text, job->candidate.to_string(), job->target};
  const auto& job = std::get<MeasureJob>(pending.job);
  auto to_message = [](const CompiledCandidate& compiled) {
    return CandidateMessage{compiled.candidate.to_string(), compiled.object};
  };
  MeasureRequest request{job.kernel->text, job.target, to_message(job.reference), {}, job.timing};
  for (const CompiledCandidate& candidate : job.candidates)
    request.candidates.push_back(to_message(candidate));
  return request;
}

std::vector<Measurement> all_measurements(const MeasureJob& job, const Measurement& measurement) {
  return std::vector<Measurement>(job.candidates.size(), measurement);
}

std::vector<Measurement> unverifiable(const MeasureJob& job, const std::string& message) {
  return all_measurements(job, {Verdict::noisy, {}, 0, message, /*unverifiable=*/true});
}

/// The verdicts when a child died: the candidate that was running is to blame; the others are not known.
std::vector<Measurement> blame(const MeasureJob& job, std::optional<std::size_t> running, Verdict verdict,
                               const std::string& message) {
  if (!running) return unverifiable(job, "the reference schedule failed: " + message);
  bool timing = *running >= job.candidates.size();
  if (timing && job.candidates.size() == 1) return all_measurements(job, {verdict, {}, 0, message});
  auto results = all_measurements(job, {Verdict::noisy, {}, 0, "measured beside a candidate that failed"});
  if (!timing) results[*running] = {verdict, {}, 0, message};
  return results;
}

std::vector<Measurement> measurements(const MeasureJob& job, const MeasureReply& reply) {
  if (!reply.error.empty() || reply.results.size() != job.candidates.size())
    return unverifiable(job, "the reference schedule failed: " + reply.error);
  std::vector<Measurement> results;
  results.reserve(reply.results.size());
  for (const MeasurementReply& result : reply.results) {
    const bool unjudged = result.verdict != Verdict::ok && is_machine_failure(result.message);
    results.push_back({unjudged ? Verdict::noisy : result.verdict, result.samples_us, result.error,
                       result.message, unjudged});
  }
  return results;
}

}  // namespace

struct WorkerPool::Rep {
  WorkerOptions options;
  std::vector<Worker> workers;  ///< the last one measures, the others compile
  std::deque<PendingJob> compile_queue;
  std::deque<PendingJob> measure_queue;
  std::deque<JobResult> finished;
  std::size_t outstanding = 0;
  JobId last_id = 0;
  std::string warning;

  explicit Rep(WorkerOptions given) : options(std::move(given)), workers(std::max(1, options.workers) + 1) {}

  template <typename Job>
  JobId submit(Job job) {
    auto& queue = std::is_same_v<Job, CompileJob> ? compile_queue : measure_queue;
    queue.push_back({++last_id, std::move(job)});
    ++outstanding;
    return last_id;
  }

  std::deque<PendingJob>& queue_of(const Worker& worker);
  void start_queued();
  void start(Worker& worker, PendingJob pending);
  void run_here(const PendingJob& pending);
  void ensure_child(Worker& worker);
  void wait_for_children(double timeout);
  void take_replies(Worker& worker);
  void serve(Worker& worker);
  void accept(Worker& worker, const WorkerReply& reply);
  void greet(Worker& worker, const WorkerReply& reply);
  void bury(Worker& worker, bool timed_out);
  void give_up_on_children(Worker& worker, const std::string& reason);
  void finish(Worker& worker, JobResult result);
  void cancel_compilations();
  std::optional<JobResult> next(double timeout);
};

std::deque<PendingJob>& WorkerPool::Rep::queue_of(const Worker& worker) {
  return &worker == &workers.back() ? measure_queue : compile_queue;
}

void WorkerPool::Rep::start_queued() {
  for (Worker& worker : workers) {
    std::deque<PendingJob>& queue = queue_of(worker);
    if (worker.job || queue.empty()) continue;
    PendingJob pending = std::move(queue.front());
    queue.pop_front();
    if (options.command.empty()) {
      run_here(pending);
      return;  // one at a time, so that next() answers soon
    }
    start(worker, std::move(pending));
  }
}

void WorkerPool::Rep::run_here(const PendingJob& pending) {
  JobResult result{pending.id, {}, {}};
  if (const auto* job = std::get_if<CompileJob>(&pending.job)) {
    result.compiled = compile_here(*job);
  } else {
    result.measured =
        unverifiable(std::get<MeasureJob>(pending.job), "measuring needs the `sylvite` command");
  }
  finished.push_back(std::move(result));
}

/// An idle child may have died since its last job, which is not the next job's fault.
void WorkerPool::Rep::ensure_child(Worker& worker) {
  if (worker.child) {
    static_cast<void>(worker.child->channel().receive(0));  // an idle child says nothing but its end
    if (!worker.child->channel().closed()) return;
  }
  ChildLimits limits;
  limits.memory_bytes = options.memory_bytes;
  worker.child.reset();
  worker.is_known = false;
  worker.child = std::make_unique<ChildProcess>(std::vector<std::string>{options.command, "worker"}, limits);
}

void WorkerPool::Rep::start(Worker& worker, PendingJob pending) {
  worker.started = steady_seconds();
  worker.running.reset();
  const auto* measure = std::get_if<MeasureJob>(&pending.job);
  worker.deadline =
      steady_seconds() + (measure != nullptr ? measure->reference_seconds : options.compile_timeout);
  worker.job = std::move(pending);
  try {
    ensure_child(worker);
    if (!worker.child->channel().send(encode(request_of(*worker.job)))) {
      take_replies(worker);  // it may have greeted before it ended
      if (worker.job && worker.child) bury(worker, /*timed_out=*/false);
    }
  } catch (const std::exception& error) {  // no process could be made
    give_up_on_children(worker, error.what());
  }
}

/// Waits until a busy child says something, ends, or overruns, at most `timeout` seconds; serves all that
/// did. Without one it does not wait.
void WorkerPool::Rep::wait_for_children(double timeout) {
  double until = steady_seconds() + timeout;
  std::vector<pollfd> sockets;
  for (Worker& worker : workers) {
    if (worker.job && worker.child) {
      sockets.push_back({worker.child->channel().descriptor(), POLLIN, 0});
      until = std::min(until, worker.deadline);
    }
  }
  if (sockets.empty()) return;  // whoever was to work has just been given up on, and its job waits
  const double milliseconds = (until - steady_seconds()) * 1000 + 1;
  {
    const ForkPoint others_go_on;
    poll(sockets.data(), sockets.size(), static_cast<int>(std::clamp(milliseconds, 0.0, 1e9)));
  }
  // Whoever stopped this process for a while may have stopped the children, too: none of it is theirs.
  constexpr double suspended_seconds = 1;
  const double late = steady_seconds() - until;
  for (Worker& worker : workers) {
    if (worker.job && worker.child) {
      worker.deadline += late > suspended_seconds ? late : 0;
      serve(worker);
    }
  }
}

/// Accepts what the child has said by now.
void WorkerPool::Rep::take_replies(Worker& worker) {
  try {
    while (worker.job && worker.child) {
      auto message = worker.child->channel().receive(0);
      if (!message) break;
      accept(worker, decode_reply(*message));
    }
  } catch (const IoError&) {  // it wrote nonsense: as good as dead
    bury(worker, /*timed_out=*/false);
  }
}

void WorkerPool::Rep::serve(Worker& worker) {
  take_replies(worker);
  if (worker.job && worker.child) {
    bool closed = worker.child->channel().closed();
    if (closed || steady_seconds() >= worker.deadline) bury(worker, /*timed_out=*/!closed);
  }
}

/// The first message of a child. Builds of before this message begin with another.
void WorkerPool::Rep::greet(Worker& worker, const WorkerReply& reply) {
  const auto* hello = std::get_if<WorkerHello>(&reply);
  worker.is_known = hello != nullptr && hello->build == build_id;
  if (!worker.is_known) {
    give_up_on_children(worker, fmt::format("{} is another build than this program (was it replaced?); start "
                                            "again to go on measuring",
                                            options.command));
  }
}

void WorkerPool::Rep::accept(Worker& worker, const WorkerReply& reply) {
  if (!worker.is_known) {
    greet(worker, reply);
    return;
  }
  JobResult result{worker.job->id, {}, {}};
  if (const auto* note = std::get_if<MeasureNote>(&reply)) {
    const auto& job = std::get<MeasureJob>(worker.job->job);
    worker.running = note->running;
    worker.deadline = steady_seconds() + (options.run_timeout +
                                          (note->running < job.candidates.size() ? 0 : job.timing.seconds));
    return;
  }
  if (const auto* compiled = std::get_if<CompileReply>(&reply)) {
    result.compiled = compiled->error.empty()
                          ? CompileResult{Verdict::ok, compiled->object, "", compiled->seconds}
                          : failed_compilation(Verdict::compile_error, compiled->error, compiled->seconds);
  } else {
    result.measured = measurements(std::get<MeasureJob>(worker.job->job), std::get<MeasureReply>(reply));
  }
  finish(worker, std::move(result));
}

/// Kills the child and ends its job with a verdict; a new child is started for the next job.
void WorkerPool::Rep::bury(Worker& worker, bool timed_out) {
  const bool was_paused = timed_out && worker.child->is_paused();
  ChildEnd end = worker.child->finish(/*ended_itself=*/!timed_out);
  worker.child.reset();
  if (end.not_started) {
    give_up_on_children(worker, fmt::format("{} cannot be executed", options.command));
    return;
  }
  double seconds = steady_seconds() - worker.started;
  std::string message = was_paused  ? "paused from outside"
                        : timed_out ? fmt::format("stopped after {:.1f} s", seconds)
                                    : end.text;
  if (!worker.is_known) {  // no job has run in it
    give_up_on_children(worker, fmt::format("{} does not start as a worker: {}", options.command, message));
    return;
  }
  JobResult result{worker.job->id, {}, {}};
  if (const auto* job = std::get_if<MeasureJob>(&worker.job->job)) {
    result.measured =
        is_machine_failure(message)
            ? unverifiable(*job, "the measuring worker was " + message)
            : blame(*job, worker.running, timed_out ? Verdict::run_timeout : Verdict::run_crash, message);
  } else {
    result.compiled = failed_compilation(timed_out ? Verdict::compile_timeout : Verdict::compile_error,
                                         "the compiler was " + message, seconds);
  }
  finish(worker, std::move(result));
}

/// From now on jobs run in this process; this one again.
void WorkerPool::Rep::give_up_on_children(Worker& worker, const std::string& reason) {
  if (warning.empty())  // else another worker has said why already
    warning = fmt::format("compiling without worker processes, and measuring nothing: {}", reason);
  options.command.clear();
  worker.child.reset();
  PendingJob pending = std::move(*worker.job);
  worker.job.reset();
  queue_of(worker).push_front(std::move(pending));
}

void WorkerPool::Rep::finish(Worker& worker, JobResult result) {
  worker.job.reset();
  finished.push_back(std::move(result));
}

void WorkerPool::Rep::cancel_compilations() {
  outstanding -= compile_queue.size();
  compile_queue.clear();
  for (Worker& worker : workers) {
    if (worker.job && std::holds_alternative<CompileJob>(worker.job->job)) {
      worker.child.reset();
      worker.job.reset();
      --outstanding;
    }
  }
  outstanding -= std::erase_if(finished, [](const JobResult& result) { return result.compiled.has_value(); });
}

std::optional<JobResult> WorkerPool::Rep::next(double timeout) {
  const double until = steady_seconds() + timeout;
  for (bool last = false;;) {
    start_queued();
    if (!finished.empty()) {
      JobResult result = std::move(finished.front());
      finished.pop_front();
      --outstanding;
      return result;
    }
    if (last || outstanding == 0) return std::nullopt;
    double left = until - steady_seconds();
    last = left <= 0;
    wait_for_children(std::max(0.0, left));
  }
}

WorkerPool::WorkerPool(WorkerOptions options) : rep_(std::make_unique<Rep>(std::move(options))) {}
WorkerPool::~WorkerPool() = default;

JobId WorkerPool::submit(CompileJob job) {
  return rep_->submit(std::move(job));
}
JobId WorkerPool::submit(MeasureJob job) {
  return rep_->submit(std::move(job));
}
std::optional<JobResult> WorkerPool::next(double timeout) {
  return rep_->next(timeout);
}
void WorkerPool::cancel_compilations() {
  rep_->cancel_compilations();
}
const std::string& WorkerPool::warning() const {
  return rep_->warning;
}
std::size_t WorkerPool::outstanding() const {
  return rep_->outstanding;
}

std::vector<CompileResult> WorkerPool::compile(const std::vector<CompileJob>& jobs,
                                               const std::function<void(std::size_t)>& on_done,
                                               const std::stop_token& stop) {
  const double patience = stop.stop_possible() ? 0.05 : 1e6;  // seconds between looks at `stop`
  if (outstanding() != 0)
    throw InternalError("WorkerPool::compile called with {} submitted jobs outstanding", outstanding());
  JobId first = rep_->last_id + 1;
  for (const CompileJob& job : jobs) submit(job);
  std::vector<CompileResult> results(jobs.size());
  while (outstanding() > 0) {
    if (stop.stop_requested()) throw Stopped{};
    {
      const ForkPoint between_kernels;
    }
    if (auto result = next(patience)) {
      auto index = static_cast<std::size_t>(result->id - first);
      results.at(index) = std::move(*result->compiled);
      if (on_done) on_done(index);
    }
  }
  return results;
}

std::vector<Measurement> WorkerPool::measure(const MeasureJob& job) {
  JobId id = submit(job);
  std::deque<JobResult> others;
  for (;;) {
    auto result = next(1e6);
    if (result && result->id == id) {
      rep_->outstanding += others.size();
      rep_->finished.insert(rep_->finished.begin(), std::make_move_iterator(others.begin()),
                            std::make_move_iterator(others.end()));
      return std::move(*result->measured);
    }
    if (result) others.push_back(std::move(*result));
  }
}

}  // namespace sylvite
