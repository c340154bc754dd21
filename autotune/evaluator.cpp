#include "autotune/evaluator.h"

#include "base/clock.h"

namespace sylvite {

namespace {

/// A batch of compile jobs on its way through the pool, while measurements go the same way.
struct Batch {
  std::shared_ptr<WorkerPool> pool;
  std::vector<JobId> ids;

  void start(std::vector<CompileJob> jobs) {
    ids.clear();
    for (CompileJob& job : jobs) ids.push_back(pool->submit(std::move(job)));
  }

  std::vector<std::optional<CompileResult>> finish(double timeout) {
    std::vector<std::optional<CompileResult>> results(ids.size());
    double end = steady_seconds() + timeout;
    while (pool->outstanding() > 0) {
      auto result = pool->next(std::max(0.0, end - steady_seconds()));
      if (!result) {
        pool->cancel_compilations();
        break;
      }
      results.at(static_cast<std::size_t>(result->id - ids.front())) = std::move(result->compiled);
    }
    return results;
  }
};

}  // namespace

Evaluator make_evaluator(std::shared_ptr<WorkerPool> pool, const Machine& machine) {
  auto batch = std::make_shared<Batch>(Batch{pool, {}});
  Evaluator evaluator;
  evaluator.spaces = [](const Kernel& kernel, const Machine& m) { return spaces_for(kernel, m); };
  evaluator.reference = [machine](const Kernel& kernel) { return reference_candidate(kernel, machine); };
  evaluator.start_compiling = [batch](std::vector<CompileJob> jobs) { batch->start(std::move(jobs)); };
  evaluator.finish_compiling = [batch](double timeout) { return batch->finish(timeout); };
  evaluator.measure = [pool](const MeasureJob& job) { return pool->measure(job); };
  evaluator.refusal = [pool] { return pool->warning(); };
  evaluator.now = steady_seconds;
  return evaluator;
}

}  // namespace sylvite
