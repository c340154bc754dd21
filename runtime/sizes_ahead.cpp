#include "runtime/sizes_ahead.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <random>
#include <set>

#include "base/rounding.h"
#include "lowering/plan/open_kernel.h"

namespace sylvite {
namespace {

constexpr std::int64_t whole_tile = 16;
constexpr std::int64_t deepest = 32 * whole_tile;  // what layers halve five times fills a tile from there on

/// Not much beyond the least, as models may have tables that grow.
std::int64_t greatest_of(const SizeRange& range) {
  return std::min(range.high, std::max(deepest, 8 * range.low)) / range.multiple * range.multiple;
}

/// The least of a range and the beginnings of classes in it, in order.
std::vector<std::int64_t> class_begins(const SizeRange& range, bool on_device) {
  std::vector<std::int64_t> values = {range.low};
  const auto add = [&](std::int64_t value) {
    const std::int64_t size = round_up(value, range.multiple);
    if (range.contains(size) && size > values.back()) values.push_back(size);
  };
  if (on_device) {
    const std::int64_t greatest = greatest_of(range);
    for (std::int64_t begin = range.low; begin <= greatest; begin = device_class(begin).high + 1) add(begin);
    return values;
  }
  for (const std::int64_t begin : {std::int64_t{1}, std::int64_t{2}, whole_tile}) add(begin);
  if (range.low >= whole_tile)
    for (std::int64_t begin = 2 * whole_tile; begin <= deepest; begin *= 2) add(begin);
  return values;
}

/// The same, and the greatest.
std::vector<std::int64_t> telling(const SizeRange& range, bool on_device) {
  std::vector<std::int64_t> values = class_begins(range, on_device);
  if (const std::int64_t greatest = greatest_of(range); greatest > values.back()) values.push_back(greatest);
  return values;
}

/// Of how many of a range a kernel for `size` is, which is one of `begins` or beyond them.
std::int64_t served(const SizeRange& range, const std::vector<std::int64_t>& begins, std::int64_t size) {
  const auto behind = std::ranges::upper_bound(begins, size);
  const std::int64_t begin = *std::prev(behind);
  const std::int64_t end = behind == begins.end() ? greatest_of(range) + range.multiple : *behind;
  return std::max<std::int64_t>(1, (end - begin) / range.multiple);
}

/// At most `count` of a range, evenly apart. REQUIRES a count of two at least.
std::vector<std::int64_t> spread(const SizeRange& range, std::int64_t count) {
  const std::int64_t steps = std::max<std::int64_t>(greatest_of(range) - range.low, 0) / range.multiple;
  std::vector<std::int64_t> values;
  for (std::int64_t i = 0; i < std::min(count, steps + 1); ++i)
    values.push_back(range.low + (count > steps ? i : steps * i / (count - 1)) * range.multiple);
  return values;
}

/// A size of a range, `fraction` of 1 along its sizes or, with `by_powers`, along their powers of two.
std::int64_t size_along(const SizeRange& range, double fraction, bool by_powers) {
  const auto low = static_cast<double>(range.low);
  const double end = static_cast<double>(std::max(greatest_of(range), range.low) + range.multiple);
  const double base = std::max(low, 1.0);
  const double beyond = by_powers ? base * std::pow(end / base, fraction) - base : fraction * (end - low);
  const auto steps = static_cast<std::int64_t>(std::max(beyond, 0.0) / static_cast<double>(range.multiple));
  return range.low + steps * range.multiple;
}

/// Each of `begins` followed by each of `values`.
std::vector<Sizes> with_each(const std::vector<Sizes>& begins, const std::vector<std::int64_t>& values) {
  std::vector<Sizes> longer;
  for (const std::int64_t value : values)
    for (const Sizes& begin : begins) longer.emplace_back(begin).push_back(value);
  return longer;
}

/// Of the classes of a device, in each way; empty where these are more than `most`.
std::vector<Sizes> combined_classes(const ModelSizes& model, std::size_t most) {
  const Sizes first = first_sizes(model);
  std::vector<Sizes> combined(1);
  for (std::size_t i = 0; i < first.size(); ++i) {
    const SizeSymbol& symbol = model.symbols[i];
    combined = with_each(combined, symbol.is_guessed ? Sizes{first[i]} : class_begins(symbol.range, true));
    if (combined.size() > most) return {};
  }
  return combined;
}

/// Where equal ones differ: kernels are compared there (KernelMenu), and some are for these sizes.
Sizes with_equal_apart(const ModelSizes& model, const Sizes& sizes) {
  Sizes apart = sizes;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const SizeSymbol& symbol = model.symbols[i];
    const auto before = std::count(sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(i), sizes[i]);
    const std::int64_t size = sizes[i] + before * symbol.range.multiple;
    if (!symbol.is_guessed && symbol.range.contains(size)) apart[i] = size;
  }
  return apart;
}

}  // namespace

std::vector<Sizes> sizes_ahead(const ModelSizes& model, bool on_device) {
  const std::size_t most = on_device ? 24 : 12;
  const Sizes first = first_sizes(model);
  std::vector<std::vector<std::int64_t>> values;  // per symbol
  Sizes least, greatest;
  for (std::size_t i = 0; i < first.size(); ++i) {
    values.push_back(model.symbols[i].is_guessed ? Sizes{first[i]}
                                                 : telling(model.symbols[i].range, on_device));
    least.push_back(values[i].front());
    greatest.push_back(values[i].back());
  }
  std::vector<Sizes> all;
  const auto add = [&](const Sizes& sizes) {
    if (sizes != first && all.size() < most && std::ranges::find(all, sizes) == all.end())
      all.push_back(sizes);
  };
  if (on_device)
    for (const Sizes& sizes : combined_classes(model, most)) add(sizes);
  add(least);
  add(with_equal_apart(model, least));
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
  // Kernels that most sizes run come first, as not all may be compiled.
  std::ranges::stable_sort(all, std::greater<>(), [&](const Sizes& sizes) {
    double count = 1;
    for (std::size_t i = 0; i < sizes.size(); ++i)
      if (!model.symbols[i].is_guessed)
        count *= static_cast<double>(
            served(model.symbols[i].range, class_begins(model.symbols[i].range, on_device), sizes[i]));
    return count;
  });
  return all;
}

std::vector<Sizes> sizes_between(const ModelSizes& model) {
  constexpr double most = 36;
  const auto is_given = [](const SizeSymbol& symbol) { return !symbol.is_guessed; };
  const auto given = static_cast<double>(std::ranges::count_if(model.symbols, is_given));
  if (given == 0) return {};
  const auto count = std::max<std::int64_t>(2, static_cast<std::int64_t>(std::pow(most, 1 / given) + 1e-6));
  const Sizes first = first_sizes(model);
  std::vector<Sizes> ordered(1);
  for (std::size_t i = 0; i < first.size(); ++i)
    ordered = with_each(ordered,
                        is_given(model.symbols[i]) ? spread(model.symbols[i].range, count) : Sizes{first[i]});
  std::vector<Sizes> mixed;
  constexpr std::size_t stride = 7;
  for (std::size_t begin = 0; begin < stride; ++begin)
    for (std::size_t i = begin; i < ordered.size(); i += stride) mixed.push_back(ordered[i]);
  return mixed;
}

std::vector<Sizes> sizes_scattered(const ModelSizes& model, std::size_t count) {
  if (std::ranges::all_of(model.symbols, &SizeSymbol::is_guessed)) return {};
  const Sizes first = first_sizes(model);
  std::minstd_rand random;
  std::set<Sizes> all;
  std::vector<Sizes> ordered;
  for (std::size_t i = 0; i < count; ++i) {
    Sizes sizes = first;
    for (std::size_t j = 0; j < sizes.size(); ++j) {
      const double fraction = i == 0 ? 0
                                     : static_cast<double>(random() - std::minstd_rand::min()) /
                                           static_cast<double>(std::minstd_rand::max());
      if (!model.symbols[j].is_guessed) sizes[j] = size_along(model.symbols[j].range, fraction, i % 2 == 1);
    }
    if (all.insert(sizes).second) ordered.push_back(std::move(sizes));
  }
  return ordered;
}

}  // namespace sylvite
