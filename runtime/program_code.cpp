#include "runtime/program_code.h"

#include <utility>

#include "runtime/overwrite.h"

namespace sylvite {

std::shared_ptr<const ProgramCode> load_code(std::shared_ptr<const Plan> plan,
                                             const std::vector<CompiledKernel>& kernels,
                                             const std::vector<Candidate>& candidates,
                                             const ProgramOptions& options,
                                             std::shared_ptr<LoadedCode> loaded) {
  auto code =
      std::make_shared<ProgramCode>(ProgramCode{std::move(plan), options, {}, {}, {}, std::move(loaded)});
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    const auto& [candidate, symbol, object] = kernels[i];
    const Kernel& kernel = code->plan->kernels.at(i);
    const LoadedKernel& found = code->loaded->kernels.load(object, symbol, options.on_device);
    code->kernels.push_back(loaded_for(found, kernel, candidate));
    code->once.push_back(writes_once(kernel, candidate));
  }
  code->order.emplace(*code->plan, candidates, options.threads);
  return code;
}

std::vector<Candidate> candidates_of(const std::vector<CompiledKernel>& kernels) {
  std::vector<Candidate> candidates;
  candidates.reserve(kernels.size());
  for (const CompiledKernel& kernel : kernels) candidates.push_back(kernel.candidate);
  return candidates;
}

}  // namespace sylvite
