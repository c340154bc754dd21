// Where a model's time goes in default mode: every unique kernel alone with cold weights, times its launches,
// slowest first.
// usage: model_kernels MODEL [THREADS [CLASS|all [text]]]
// CLASS limits the table to a kernel class (matmul, convolution, attention, ...); text prints each kernel
// too.

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <memory>

#include "base/error.h"
#include "base/files.h"
#include "benchmarks/kernels/kernel_runner.h"
#include "frontend/onnx/importer.h"
#include "frontend/passes/pass_list.h"
#include "lowering/plan/plan.h"
#include "lowering/plan/plan_loops.h"
#include "lowering/plan/work.h"
#include "runtime/torch_file.h"

namespace {

using namespace sylvite;  // NOLINT(google-build-using-namespace): a program of its own

struct Row {
  double total = 0;  ///< seconds over all launches
  std::string line;
};

Row measure(const Kernel& kernel, std::int64_t launches, const std::string& name, const Machine& machine) {
  std::vector<Refusal> refusals;
  const BoundSpace space = spaces_for(kernel, machine, &refusals).front();
  const Candidate candidate = space.at(space.heuristic);
  std::vector<std::unique_ptr<bench::RunnableKernel>> runnable;
  runnable.push_back(std::make_unique<bench::RunnableKernel>(kernel, candidate, machine, true));
  const bench::Timing timing = bench::time_kernels(runnable, 0.05)[0];
  const double rate = work_of(kernel).operations / timing.seconds;
  std::string reason;
  if (space.name == "reference") {
    for (const Refusal& refusal : refusals) {
      const bool heavy = refusal.reason.find("it is no") == std::string::npos;
      if (heavy) reason += fmt::format("  [{}: {}]", refusal.space, refusal.reason);
    }
  }
  return {timing.seconds * launches,
          fmt::format(
              "{:>9.3f} ms {:>3} x {:>8.3f} ms {:>6.2f} of peak {:>6.2f} s compile  {:<13} {:<18} {} {}{}",
              timing.seconds * launches * 1e3, launches, timing.seconds * 1e3,
              rate / (timing.peak * machine.threads), runnable[0]->compile_seconds(),
              kernel_class_name(kernel.kind), space.name, kernel.id, name, reason)};
}

/// An ONNX model, or a captured graph of PyTorch.
Graph import_any(const std::string& path) {
  ImportOptions options;
  options.random_weights = true;
  if (!is_torch_file(path)) return import_onnx(path, options);
  const TorchFile file = read_torch_file(path, options.follow_links);
  const ModelSizes sizes = torch_file_sizes(file, options);
  return import_torch_file(file, options, sizes, first_sizes(sizes)).graph;
}

void run(const std::string& path, int threads, const std::string& kind, bool with_text) {
  const Plan plan = lower(run_passes(import_any(path)));
  const Machine machine = detect_machine(threads);
  const std::vector<std::int64_t> launches = kernel_counts(plan);
  std::vector<std::string> names(plan.kernels.size());
  for (const Launch& launch : plan.launches) names.at(static_cast<std::size_t>(launch.kernel)) = launch.name;
  std::vector<Row> rows;
  double total = 0;
  for (std::size_t i = 0; i < plan.kernels.size(); ++i) {
    const Kernel& kernel = plan.kernels[i];
    if (kind != "all" && kernel_class_name(kernel.kind) != kind) continue;
    rows.push_back(measure(kernel, launches[i], names[i], machine));
    total += rows.back().total;
    if (with_text) fmt::print("{}\n{}\n", rows.back().line, kernel.text);
  }
  std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.total > b.total; });
  for (const Row& row : rows) fmt::print("{}\n", row.line);
  fmt::print("{:>9.3f} ms in {} unique kernels\n", total * 1e3, rows.size());
}

}  // namespace

int main(int count, char** arguments) try {
  if (count < 2) throw UsageError("usage: model_kernels MODEL [THREADS [CLASS|all [text]]]");
  run(arguments[1], count > 2 ? std::stoi(arguments[2]) : 1, count > 3 ? arguments[3] : "all", count > 4);
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "model_kernels: {}\n", error.what());
  return 1;
}
