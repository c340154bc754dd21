#include "runtime/program_code.h"

#include <utility>

#include "base/error.h"
#include "lowering/plan/open_kernel.h"
#include "runtime/overwrite.h"

namespace sylvite {

std::shared_ptr<const ProgramCode> load_code(std::shared_ptr<const Plan> plan,
                                             const std::vector<CompiledKernel>& kernels,
                                             const std::vector<Candidate>& candidates,
                                             const ProgramOptions& options,
                                             std::shared_ptr<LoadedCode> loaded) {
  auto code = std::make_shared<ProgramCode>(
      ProgramCode{std::move(plan), options, {}, candidates, {}, {}, std::move(loaded)});
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    const auto& [candidate, symbol, object] = kernels[i];
    const Kernel& kernel = code->plan->kernels.at(i);
    code->kernels.push_back(code->loaded->kernels.load(object, symbol, options.on_device));
    code->once.push_back(writes_once(kernel, candidate));
  }
  code->order.emplace(*code->plan, candidates, options.threads);
  return code;
}

LoadedKernel kernel_at(const ProgramCode& code, std::size_t number, const Dims& sizes) {
  const Kernel& kernel = code.plan->kernels.at(number);
  const LoadedKernel& loaded = code.kernels.at(number);
  const Candidate& candidate = code.candidates.at(number);
  if (!loaded.launched || !kernel.open || sizes == kernel.sizes) return loaded_for(loaded, kernel, candidate);
  const std::optional<Kernel> here = case_at(kernel, sizes);
  if (!here) throw UnsupportedError("kernel {} does not serve these sizes", kernel.id);
  return loaded_for(loaded, *here, candidate);
}

std::vector<Candidate> candidates_of(const std::vector<CompiledKernel>& kernels) {
  std::vector<Candidate> candidates;
  candidates.reserve(kernels.size());
  for (const CompiledKernel& kernel : kernels) candidates.push_back(kernel.candidate);
  return candidates;
}

void name_launch(LaunchTime& time, const Plan& told, std::size_t number) {
  const Launch& launch = told.launches.at(number);
  time.name = launch.name;
  time.kernel = static_cast<std::size_t>(launch.kernel);
  time.kernel_id = told.kernels.at(time.kernel).id;
}

}  // namespace sylvite
