// What a model's kernels would run on with a card that need not be there: nothing is compiled or measured.
// usage: gpu_plan MODEL.onnx [PRECISION [DIMS [KERNEL]]]
// Each launch with the space that default mode takes, and why it is a group; products on no template, which are counted at the
// end, come with each template's refusal, kernels that take one thread an output, and KERNEL, which is printed, with those of every
// space. Where sizes are ranges (DIMS as --dims takes them, or empty), a kernel that serves a range says so.

#include <fmt/core.h>

#include <exception>

#include "base/error.h"
#include "lowering/plan/work.h"
#include "runtime/session.h"
#include "schedules/space.h"
#include "sylvite/graph_text.h"

namespace {

using namespace sylvite;  // NOLINT(google-build-using-namespace): a program of its own

std::shared_ptr<const Setup> setup_of(const std::string& precision, const std::string& dims) {
  CompileOptions options;
  options.set = {{"compile.precision", precision}, {"compile.device", "cuda"}};
  if (!dims.empty()) options.set["import.dims"] = dims;
  Setup setup;
  setup.config = resolve_settings(options).config();
  setup.machine = with_gpu(detect_machine(1), {"NVIDIA H200", 90, 13000, 132, 227 << 10, 50 << 20});
  setup.machine.tf32 = setup.config.precision == Precision::tf32;
  return std::make_shared<const Setup>(std::move(setup));
}

bool is_product(const Kernel& kernel) {
  return kernel.kind == KernelClass::matmul || kernel.kind == KernelClass::convolution ||
         kernel.kind == KernelClass::attention;
}

void run(const std::string& path, const std::string& precision, const std::string& dims,
         const std::string& asked) {
  ImportOptions import;
  import.random_weights = true;
  const Imported imported = load_model(path, setup_of(precision, dims), import);
  double off = 0, total = 0;
  for (const Launch& launch : imported.plan->launches) {
    const Kernel& kernel = imported.plan->kernels.at(static_cast<std::size_t>(launch.kernel));
    std::vector<Refusal> refusals;
    const BoundSpace space = spaces_for(kernel, imported.setup->machine, &refusals).front();
    const Work work = work_of(kernel);
    fmt::print("{} {:<12} {:<16} {:<5} {:>8.2f} GFLOP {:>8.2f} MB  {}  {}\n", kernel.id,
               kernel_class_name(kernel.kind), space.name, kernel.open ? "range" : "", work.operations / 1e9,
               work.bytes / 1e6, launch.name, launch.reason);
    if (kernel.id == asked) fmt::print("{}\n", graph_text(kernel.body));
    const bool shows_all = space.name == "gpu_reference" || kernel.id == asked;
    for (const Refusal& refusal : refusals)
      if (shows_all ||
          (is_product(kernel) && refusal.space.starts_with("cu") && !space.name.starts_with("cu")))
        fmt::print("    {}: {}\n", refusal.space, refusal.reason);
    if (!is_product(kernel)) continue;
    total += work.operations;
    if (!space.name.starts_with("cu")) off += work.operations;
  }
  fmt::print("{} launches of {} kernels; {:.2f} of {:.2f} GFLOP of products on no template\n",
             imported.plan->launches.size(), imported.plan->kernels.size(), off / 1e9, total / 1e9);
}

}  // namespace

int main(int count, char** arguments) try {
  if (count < 2) throw UsageError("usage: gpu_plan MODEL.onnx [PRECISION [DIMS [KERNEL]]]");
  const auto argument = [&](int i, const char* other) { return count > i ? arguments[i] : other; };
  run(arguments[1], argument(2, "bf16"), argument(3, ""), argument(4, ""));
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "gpu_plan: {}\n", error.what());
  return 1;
}
