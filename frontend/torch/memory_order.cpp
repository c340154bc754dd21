#include "frontend/torch/memory_order.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"

namespace sylvite {

std::vector<std::int64_t> memory_order(const Dims& dims, const Dims& strides) {
  std::vector<std::int64_t> order(dims.size());
  std::iota(order.begin(), order.end(), 0);
  if (checked_product(dims, "shape") == 0) return order;
  std::vector<std::int64_t> wide;  // the axes whose strides mean something
  for (std::size_t i = 0; i < dims.size(); ++i)
    if (dims[i] != 1) wide.push_back(static_cast<std::int64_t>(i));
  const auto at = [](const Dims& values, std::int64_t i) { return values[static_cast<std::size_t>(i)]; };
  std::vector<std::int64_t> sorted = wide;
  std::ranges::stable_sort(sorted, [&](auto a, auto b) { return at(strides, a) > at(strides, b); });
  std::int64_t expected = 1;
  for (auto axis = sorted.rbegin(); axis != sorted.rend(); ++axis) {
    if (at(strides, *axis) != expected)
      throw UnsupportedError("strides [{}] of shape [{}] leave gaps or overlap", fmt::join(strides, ","),
                             fmt::join(dims, ","));
    expected *= at(dims, *axis);
  }
  for (std::size_t i = 0; i < wide.size(); ++i) order[static_cast<std::size_t>(wide[i])] = sorted[i];
  return order;
}

Dims in_order(const Dims& dims, const std::vector<std::int64_t>& order) {
  Dims result;
  result.reserve(order.size());
  for (const std::int64_t axis : order) result.push_back(dims[static_cast<std::size_t>(axis)]);
  return result;
}

}  // namespace sylvite
