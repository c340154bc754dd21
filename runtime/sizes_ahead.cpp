#include "runtime/sizes_ahead.h"

#include <algorithm>

#include "base/rounding.h"

namespace sylvite {
namespace {

/// The ends of a range and the beginnings of classes between them, in order.
std::vector<std::int64_t> telling(const SizeRange& range) {
  constexpr std::int64_t whole_tile = 16;
  constexpr std::int64_t deepest =
      32 * whole_tile;  // what layers halve five times fills a tile from there on
  std::vector<std::int64_t> values = {range.low};
  const auto add = [&](std::int64_t value) {
    const std::int64_t size = round_up(value, range.multiple);
    if (range.contains(size) && size > values.back()) values.push_back(size);
  };
  for (const std::int64_t begin : {std::int64_t{2}, whole_tile}) add(begin);
  if (range.low >= whole_tile)
    for (std::int64_t begin = 2 * whole_tile; begin <= deepest; begin *= 2) add(begin);
  add(std::min(range.high, std::max(deepest, 2 * range.low)) / range.multiple * range.multiple);
  return values;
}

}  // namespace

std::vector<Sizes> sizes_ahead(const ModelSizes& model) {
  constexpr std::size_t most = 12;
  const Sizes first = first_sizes(model);
  std::vector<std::vector<std::int64_t>> values;  // per symbol
  Sizes least, greatest;
  for (std::size_t i = 0; i < first.size(); ++i) {
    values.push_back(model.symbols[i].is_guessed ? Sizes{first[i]} : telling(model.symbols[i].range));
    least.push_back(values[i].front());
    greatest.push_back(values[i].back());
  }
  std::vector<Sizes> all;
  const auto add = [&](const Sizes& sizes) {
    if (sizes != first && all.size() < most && std::ranges::find(all, sizes) == all.end())
      all.push_back(sizes);
  };
  add(least);
  add(greatest);
  for (const Sizes& others : {first, greatest}) {
    for (std::size_t i = 0; i < first.size(); ++i) {
      Sizes sizes = others;
      for (const std::int64_t value : values[i]) {
        sizes[i] = value;
        add(sizes);
      }
    }
  }
  return all;
}

}  // namespace sylvite
