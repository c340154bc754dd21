#include "runtime/loaded_kernels.h"

namespace sylvite {

const LoadedKernel& LoadedKernels::load(const std::string& object, const std::string& symbol,
                                        bool on_device) {
  const std::scoped_lock lock(mutex_);
  const auto found = by_symbol_.find(symbol);
  if (found != by_symbol_.end()) return found->second;
  return by_symbol_.emplace(symbol, load_kernel(loader_, object, symbol, on_device)).first->second;
}

bool LoadedKernels::has(const std::string& symbol) const {
  const std::scoped_lock lock(mutex_);
  return by_symbol_.contains(symbol);
}

}  // namespace sylvite
