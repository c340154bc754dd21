#include "runtime/program_code.h"

#include <map>
#include <utility>

#include "base/error.h"
#include "lowering/plan/open_kernel.h"
#include "runtime/overwrite.h"

namespace sylvite {
namespace {

/// `sizes` are those of Kernel::sizes.
LoadedKernel kernel_at(const ProgramCode& code, std::size_t number, const Dims& sizes) {
  const Kernel& kernel = code.plan->kernels.at(number);
  const LoadedKernel& loaded = code.kernels.at(number);
  const Candidate& candidate = code.candidates.at(number);
  if (!loaded.launched || !kernel.open || sizes == kernel.sizes) return loaded_for(loaded, kernel, candidate);
  const std::optional<Kernel> here = case_at(kernel, sizes);
  if (!here) throw UnsupportedError("kernel {} does not serve these sizes", kernel.id);
  return loaded_for(loaded, *here, candidate);
}

}  // namespace

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

std::vector<LoadedKernel> kernels_of_launches(const ProgramCode& code, const Bindings& bindings) {
  std::map<std::pair<std::size_t, Dims>, LoadedKernel> at_sizes;  // each is made once
  std::vector<LoadedKernel> kernels;
  kernels.reserve(bindings.launches.size());
  for (std::size_t i = 0; i < bindings.launches.size(); ++i) {
    const auto number = static_cast<std::size_t>(code.plan->launches.at(i).kernel);
    if (!code.options.on_device) {
      kernels.push_back(code.kernels.at(number));
      continue;
    }
    const Dims& sizes = bindings.launches[i].sizes;
    const auto [found, is_new] = at_sizes.try_emplace({number, sizes});
    if (is_new) found->second = kernel_at(code, number, sizes);
    kernels.push_back(found->second);
  }
  return kernels;
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
