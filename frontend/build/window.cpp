#include "frontend/build/window.h"

#include "base/error.h"

namespace sylvite {
namespace {

constexpr std::int64_t max_window_value = std::int64_t{1} << 30;  ///< products of two leave room for sums

}  // namespace

void check_extents(const std::string& name, const Dims& values, std::int64_t minimum) {
  for (const std::int64_t value : values)
    if (value < minimum || value > max_window_value) throw ModelError("{} holds {}", name, value);
}

Dims spatial_dims(Sym x) {
  const Dims dims = x.dims();
  if (dims.size() < 3) throw ModelError("the input has rank {}, expected at least 3", dims.size());
  return {dims.begin() + 2, dims.end()};
}

}  // namespace sylvite
