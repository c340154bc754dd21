#include "autotune/worker_pool.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "base/clock.h"
#include "schedules/space.h"
#include "tests/autotune/sample_kernels.h"
#include "tests/autotune/worker_script.h"

namespace sylvite::worker_pool_test {
namespace {

using testing::HasSubstr;

double seconds_of(const std::function<void()>& action) {
  const double start = steady_seconds();
  action();
  return steady_seconds() - start;
}

WorkerOptions options_for(const std::string& command) {
  WorkerOptions options;
  options.command = command;
  return options;
}

MeasureJob job_for(const Kernel& kernel, const Machine& machine, WorkerPool& pool,
                   const std::vector<Candidate>& candidates) {
  std::vector<CompileJob> jobs = {{&kernel, reference_candidate(kernel), machine.target}};
  for (const Candidate& candidate : candidates) jobs.push_back({&kernel, candidate, machine.target});
  auto results = pool.compile(jobs);
  MeasureJob job;
  job.kernel = &kernel;
  job.target = machine.target;
  for (std::size_t i = 0; i < results.size(); ++i) {
    EXPECT_EQ(results[i].verdict, Verdict::ok) << results[i].message;
    (i == 0 ? job.reference : job.candidates.emplace_back()) = {jobs[i].candidate, results[i].object};
  }
  return job;
}

TEST(WorkerPool, CompilesAndMeasures) {
  Kernel kernel = sample_matmul();
  Machine machine = detect_machine(1);
  WorkerPool pool(options_for(SYLVITE_COMMAND));
  MeasureJob job =
      job_for(kernel, machine, pool, {reference_candidate(kernel), default_candidate(kernel, machine)});
  auto measurements = pool.measure(job);
  EXPECT_EQ(pool.warning(), "");
  ASSERT_EQ(measurements.size(), 2);
  for (const Measurement& measurement : measurements) {
    EXPECT_EQ(measurement.verdict, Verdict::ok) << measurement.message;
    EXPECT_EQ(measurement.samples_us.size(), 5);
    EXPECT_LE(measurement.error, 1);
    EXPECT_GT(median(measurement.samples_us), 0);
  }
}

TEST(WorkerPool, RefusesForeignAndTruncatedObjects) {
  Kernel kernel = sample_pointwise();
  Machine machine = detect_machine(1);
  WorkerPool pool(options_for(SYLVITE_COMMAND));
  MeasureJob job = job_for(kernel, machine, pool, {reference_candidate(kernel)});
  // The object of another kernel under this kernel's name links, but lacks the symbol.
  Kernel other = sample_pointwise(2000);
  job.candidates[0].object =
      pool.compile({{&other, reference_candidate(other), machine.target}}).at(0).object;
  EXPECT_EQ(pool.measure(job).at(0).verdict, Verdict::run_crash);
  // A truncated object is a verdict, too, and the pool goes on.
  job.candidates[0].object = job.reference.object.substr(0, 100);
  EXPECT_EQ(pool.measure(job).at(0).verdict, Verdict::run_crash);
  job.candidates[0].object = job.reference.object;
  EXPECT_EQ(pool.measure(job).at(0).verdict, Verdict::ok);
}

TEST(WorkerPool, CompileErrorsHaveTheCompilersMessage) {
  Kernel kernel = sample_pointwise();
  Candidate bad = reference_candidate(kernel);
  bad.schedule.decisions.push_back({"nowhere", -1, "compute_root", {}});
  WorkerPool pool(options_for(SYLVITE_COMMAND));
  CompileResult result = pool.compile({{&kernel, bad, detect_machine(1).target}}).at(0);
  EXPECT_EQ(result.verdict, Verdict::compile_error);
  EXPECT_THAT(result.message, HasSubstr("nowhere"));
}

/// One worker compiles all: what came before leaves no trace in an object.
TEST(WorkerPool, CompilesACandidateToTheSameBytesAlways) {
  const Kernel kernel = sample_matmul();
  const Kernel other = sample_pointwise();
  const Machine machine = detect_machine(2);
  WorkerOptions options = options_for(SYLVITE_COMMAND);
  options.workers = 1;
  WorkerPool pool(options);
  const CompileJob wanted{&kernel, default_candidate(kernel, machine), machine.target};
  const CompileJob before{&other, default_candidate(other, machine), machine.target};
  const std::vector<CompileResult> results = pool.compile({wanted, before, wanted});
  EXPECT_EQ(results[0].verdict, Verdict::ok) << results[0].message;
  EXPECT_TRUE(results[0].object == results[2].object);
}

TEST(WorkerPool, KillsAHangingWorker) {
  Kernel kernel = sample_pointwise();
  WorkerScript script(WorkerScript::hello + "sleep 1000 & sleep 1000");
  WorkerOptions options = options_for(script.path());
  options.compile_timeout = 2;  // in which a busy machine starts the script, too
  WorkerPool pool(options);
  CompileJob job{&kernel, reference_candidate(kernel), "host"};
  double seconds = seconds_of([&] {
    for (const CompileResult& result : pool.compile({job, job, job})) {
      EXPECT_EQ(result.verdict, Verdict::compile_timeout);
      EXPECT_THAT(result.message, HasSubstr("stopped after"));
    }
  });
  EXPECT_LT(seconds, 500);
}

TEST(WorkerPool, ReportsACrashWithItsLog) {
  Kernel kernel = sample_pointwise();
  WorkerScript script(WorkerScript::hello + "echo last words >&2; kill -SEGV $$");
  WorkerPool pool(options_for(script.path()));
  CompileResult result = pool.compile({{&kernel, reference_candidate(kernel), "host"}}).at(0);
  EXPECT_EQ(result.verdict, Verdict::compile_error);
  EXPECT_THAT(result.message, HasSubstr("signal 11"));
  EXPECT_THAT(result.message, HasSubstr("last words"));
}

TEST(WorkerPool, KeepsLowerLimitsThatAreSet) {
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit lower{rlim_t{1} << 20, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &lower);
  Kernel kernel = sample_pointwise();
  WorkerScript script(WorkerScript::hello + "echo at most $(ulimit -f) kB >&2; kill -SEGV $$");
  WorkerPool pool(options_for(script.path()));
  CompileResult result = pool.compile({{&kernel, reference_candidate(kernel), "host"}}).at(0);
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_THAT(result.message, HasSubstr("at most 1024 kB"));
}

TEST(WorkerPool, SurvivesNonsenseFromAWorker) {
  Kernel kernel = sample_pointwise();
  WorkerScript script(WorkerScript::hello + "printf '\\x04\\0\\0\\0junk' >&3; sleep 1000");
  WorkerOptions options = options_for(script.path());
  WorkerPool pool(options);
  EXPECT_EQ(pool.compile({{&kernel, reference_candidate(kernel), "host"}}).at(0).verdict,
            Verdict::compile_error);
}

TEST(WorkerPool, AnIdleWorkersDeathIsNotTheNextJobsFault) {
  Kernel kernel = sample_pointwise();
  Machine machine = detect_machine(1);
  WorkerOptions options = options_for(SYLVITE_COMMAND);
  options.workers = 1;
  WorkerPool pool(options);
  CompileJob job{&kernel, reference_candidate(kernel), machine.target};
  EXPECT_EQ(pool.compile({job}).at(0).verdict, Verdict::ok);
  std::ifstream children("/proc/self/task/" + std::to_string(getpid()) + "/children");
  int killed = 0;
  for (pid_t child = 0; children >> child; ++killed) {
    kill(child, SIGKILL);
    siginfo_t info{};
    waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT);  // dead, and still the pool's to bury
  }
  EXPECT_EQ(killed, 1);
  EXPECT_EQ(pool.compile({job}).at(0).verdict, Verdict::ok);
  EXPECT_EQ(pool.warning(), "");
}

TEST(WorkerPool, CompilesHereWhenTheCommandCannotStart) {
  Kernel kernel = sample_pointwise();
  Machine machine = detect_machine(1);
  WorkerPool pool(options_for("/no/such/command"));
  CompileJob job{&kernel, reference_candidate(kernel), machine.target};
  for (const CompileResult& result : pool.compile({job, job})) {
    EXPECT_EQ(result.verdict, Verdict::ok) << result.message;
    EXPECT_FALSE(result.object.empty());
  }
  EXPECT_THAT(pool.warning(), HasSubstr("/no/such/command"));
}

/// Whatever is no worker of this build: its objects say nothing of ours.
TEST(WorkerPool, CompilesHereWhenTheCommandIsAnotherBuild) {
  Kernel kernel = sample_pointwise();
  Machine machine = detect_machine(1);
  for (const std::string& body : {WorkerScript::other_hello, WorkerScript::no_hello}) {
    WorkerScript script(body + "sleep 1000");
    WorkerPool pool(options_for(script.path()));
    CompileJob job{&kernel, reference_candidate(kernel), machine.target};
    for (const CompileResult& result : pool.compile({job, job, job}))
      EXPECT_EQ(result.verdict, Verdict::ok) << result.message;
    EXPECT_THAT(pool.warning(), HasSubstr("another build"));
  }
}

TEST(WorkerPool, CompilesHereWhenWorkersDoNotStart) {
  Kernel kernel = sample_pointwise();
  Machine machine = detect_machine(1);
  for (const std::string body : {"echo no such library >&2; exit 1", "sleep 1000"}) {
    WorkerScript script(body);
    WorkerOptions options = options_for(script.path());
    options.compile_timeout = 0.3;
    WorkerPool pool(options);
    CompileJob job{&kernel, reference_candidate(kernel), machine.target};
    EXPECT_EQ(pool.compile({job}).at(0).verdict, Verdict::ok);
    EXPECT_THAT(pool.warning(), HasSubstr("does not start as a worker"));
  }
}

TEST(WorkerPool, AnotherBuildMeasuresNothing) {
  Kernel kernel = sample_pointwise();
  Machine machine = detect_machine(1);
  WorkerScript script(WorkerScript::other_hello + "sleep 1000");
  WorkerPool pool(options_for(script.path()));
  MeasureJob job = job_for(kernel, machine, pool, {reference_candidate(kernel)});
  EXPECT_TRUE(pool.measure(job).at(0).unverifiable);
}

/// Of one candidate, for workers that end before they look at it.
MeasureJob unread_job(const Kernel& kernel) {
  MeasureJob job;
  job.kernel = &kernel;
  job.target = "host";
  job.candidates.resize(1);
  return job;
}

/// As the system does when memory runs out, whoever used it up.
TEST(WorkerPool, AKillFromOutsideIsNoVerdict) {
  Kernel kernel = sample_pointwise();
  WorkerScript script(WorkerScript::hello + "kill -KILL $$");
  WorkerPool pool(options_for(script.path()));
  CompileResult result = pool.compile({{&kernel, reference_candidate(kernel), "host"}}).at(0);
  EXPECT_TRUE(result.unjudged);
  EXPECT_THAT(result.message, HasSubstr("signal 9"));
  EXPECT_TRUE(pool.measure(unread_job(kernel)).at(0).unverifiable);
}

/// Whoever stops it takes its time.
TEST(WorkerPool, APauseIsNoVerdict) {
  Kernel kernel = sample_pointwise();
  WorkerScript script(WorkerScript::hello + "kill -STOP $$");
  WorkerOptions options = options_for(script.path());
  options.compile_timeout = 2;
  WorkerPool pool(options);
  CompileResult result = pool.compile({{&kernel, reference_candidate(kernel), "host"}}).at(0);
  EXPECT_TRUE(result.unjudged);
  EXPECT_THAT(result.message, HasSubstr("paused from outside"));
  MeasureJob job = unread_job(kernel);
  job.reference_seconds = 2;
  EXPECT_TRUE(pool.measure(job).at(0).unverifiable);
}

/// A full disk, memory used up, ...: whether the compiler dies of it or says it.
TEST(WorkerPool, AFailureOfTheMachineIsNoVerdict) {
  Kernel kernel = sample_pointwise();
  CompileJob job{&kernel, reference_candidate(kernel), "host"};
  const std::string full_disk = "LLVM ERROR: IO failure on output stream: No space left on device";
  for (const std::string& body : {"echo " + full_disk + " >&2; kill -ABRT $$; ",
                                  WorkerScript::sends(CompileReply{full_disk, "", 0.1})}) {
    WorkerScript script(WorkerScript::hello + body + "sleep 1000");
    WorkerPool pool(options_for(script.path()));
    CompileResult result = pool.compile({job}).at(0);
    EXPECT_TRUE(result.unjudged) << body;
    EXPECT_THAT(result.message, HasSubstr("No space left on device"));
  }
  MeasureReply reply{{{Verdict::run_crash, {}, 0, "std::bad_alloc"}}, ""};
  WorkerScript script(WorkerScript::hello + WorkerScript::sends(reply) + "sleep 1000");
  WorkerPool pool(options_for(script.path()));
  EXPECT_TRUE(pool.measure(unread_job(kernel)).at(0).unverifiable);
}

/// Longer than a socket holds, so that a worker that does not read ends before it is sent.
MeasureJob long_job(const Kernel& kernel) {
  MeasureJob job = unread_job(kernel);
  job.candidates[0].object.resize(4 << 20);
  return job;
}

/// A worker that ends before its request is sent has greeted all the same.
TEST(WorkerPool, AKillBeforeTheRequestIsNoVerdict) {
  Kernel kernel = sample_pointwise();
  WorkerScript script(WorkerScript::hello + "sleep 0.2; kill -KILL $$");
  WorkerPool pool(options_for(script.path()));
  Measurement measurement = pool.measure(long_job(kernel)).at(0);
  EXPECT_TRUE(measurement.unverifiable);
  EXPECT_THAT(measurement.message, HasSubstr("signal 9"));
  EXPECT_EQ(pool.warning(), "");
}

TEST(WorkerPool, MeasuresNothingWhenWorkersEndBeforeTheRequest) {
  Kernel kernel = sample_pointwise();
  WorkerScript script("exit 1");
  WorkerPool pool(options_for(script.path()));
  EXPECT_TRUE(pool.measure(long_job(kernel)).at(0).unverifiable);
  EXPECT_THAT(pool.warning(), HasSubstr("does not start as a worker"));
}

TEST(WorkerPool, CancelForgetsCompilations) {
  Kernel kernel = sample_pointwise();
  WorkerScript script(WorkerScript::hello + "sleep 1000");
  WorkerPool pool(options_for(script.path()));
  CompileJob job{&kernel, reference_candidate(kernel), "host"};
  for (int i = 0; i < 4; ++i) pool.submit(job);
  EXPECT_FALSE(pool.next(0.1));
  pool.cancel_compilations();
  EXPECT_EQ(pool.outstanding(), 0);
  EXPECT_FALSE(pool.next(0.1));
}

}  // namespace
}  // namespace sylvite::worker_pool_test
