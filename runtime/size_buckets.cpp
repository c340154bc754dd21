#include "runtime/size_buckets.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <set>
#include <vector>

namespace sylvite {
namespace {

/// Around half, two thirds, one and a half and twice as much, and its neighbours; itself where the range has none of these.
std::vector<std::int64_t> values_around(std::int64_t size, const SizeRange& range) {
  std::vector<std::int64_t> values;
  const auto add = [&](std::int64_t value) {
    const std::int64_t rounded = value / range.multiple * range.multiple;
    if (rounded != size && range.contains(rounded) && std::ranges::find(values, rounded) == values.end())
      values.push_back(rounded);
  };
  for (const std::int64_t each : {size / 2, size * 2, size * 2 / 3, size * 3 / 2}) add(each);
  for (const std::int64_t each : {size - range.multiple, size + range.multiple}) add(each);
  if (values.empty()) values.push_back(size);
  return values;
}

bool are_apart(const Sizes& sizes) {
  return std::set<std::int64_t>(sizes.begin(), sizes.end()).size() == sizes.size();
}

}  // namespace

double product_of(const Sizes& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), 1.0, std::multiplies<>());
}

double bucket_of(double product) {
  return product < 1 ? 0 : std::floor(std::log2(product));
}

std::int64_t large_bytes_at(const Sizes& sizes, std::int64_t bytes) {
  if (sizes.empty()) return bytes;
  const double product = product_of(sizes);
  if (product < 1) return bytes;
  const double middle = std::exp2(bucket_of(product) + 0.5);
  return std::llround(static_cast<double>(bytes) * (product / middle));
}

std::optional<Sizes> sizes_with_like_product(const ModelSizes& model, const Sizes& sizes) {
  constexpr std::size_t most_symbols = 4;
  const double product = product_of(sizes);
  if (sizes.size() < 2 || sizes.size() > most_symbols || product < 1) return std::nullopt;
  std::vector<Sizes> all(1);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    std::vector<Sizes> longer;
    for (const Sizes& begin : all)
      for (const std::int64_t value : values_around(sizes[i], model.symbols[i].range))
        longer.emplace_back(begin).push_back(value);
    all = std::move(longer);
  }
  std::erase_if(all, [&](const Sizes& each) {
    return each == sizes || !are_apart(each) || bucket_of(product_of(each)) != bucket_of(product);
  });
  if (all.empty()) return std::nullopt;
  return *std::ranges::min_element(
      all, {}, [&](const Sizes& each) { return std::abs(std::log(product_of(each) / product)); });
}

}  // namespace sylvite
