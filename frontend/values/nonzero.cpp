#include "frontend/values/nonzero.h"

#include "frontend/values/storage.h"

namespace sylvite {

std::vector<std::int64_t> nonzero_places(const Tensor& x) {
  std::vector<std::int64_t> places(static_cast<std::size_t>(x.size()));
  const std::size_t count = with_storage(x.dtype(), [&](auto zero) {
    const auto* values = static_cast<const decltype(zero)*>(x.data());
    std::size_t found = 0;
    for (std::size_t i = 0; i < places.size(); ++i) {
      places[found] = static_cast<std::int64_t>(i);
      found += convert_element<double>(values[i]) != 0 ? 1 : 0;
    }
    return found;
  });
  places.resize(count);
  return places;
}

}  // namespace sylvite
