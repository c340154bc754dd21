#include "lowering/plan/fitted_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "base/error.h"
#include "frontend/values/extents_at.h"
#include "frontend/values/same_bytes.h"
#include "frontend/values/size_table.h"
#include "frontend/values/strided.h"

namespace sylvite {
namespace {

/// Of tables that can all be read by the rule of `reading`.
std::optional<std::vector<Extent>> numbers_of(const std::vector<TableReadings>& tables,
                                              const TableReading& reading, ExtentFit& fit) {
  std::vector<Dims> numbers;
  for (const TableReadings& table : tables) {
    const auto same = std::ranges::find(*table, reading.rule, &TableReading::rule);
    if (same == table->end()) return std::nullopt;
    numbers.push_back(same->numbers);
  }
  return fit.of_each(numbers);
}

bool has_block(const Tensor& whole, const Dims& block) {
  return std::ranges::equal(block, whole.dims(), std::less_equal<>());
}

/// Throws UnsupportedError where it has none.
Tensor leading_block(const Tensor& whole, const Dims& dims) {
  if (!has_block(whole, dims))
    throw UnsupportedError("a table of the model, {}, is longer at these sizes", whole.type().to_string());
  Tensor block(whole.dtype(), dims);
  copy_strided({.dims = dims, .strides = dense_strides(whole.dims()), .target_strides = dense_strides(dims)},
               whole.data(), block.mutable_data(), dtype_size(whole.dtype()));
  return block;
}

/// Every sample is a block at the beginning of the largest.
std::optional<FittedTable> fit_blocks(const std::vector<Tensor>& samples, ExtentFit& fit) {
  const Tensor whole = *std::ranges::max_element(samples, {}, &Tensor::byte_size);
  const auto is_part = [&](const Tensor& sample) { return is_leading_block(whole, sample); };
  if (!std::ranges::all_of(samples, is_part)) return std::nullopt;
  std::vector<Dims> extents;
  extents.reserve(samples.size());
  for (const Tensor& sample : samples) extents.push_back(sample.dims());
  std::optional<std::vector<Extent>> numbers = fit.of_each(extents);
  if (!numbers) return std::nullopt;
  return FittedTable{fmt::format("the beginning of {}", whole.identity()), *std::move(numbers),
                     [whole](const Dims& dims) { return leading_block(whole, dims); }};
}

/// By what they have in common of how they were made.
std::optional<FittedTable> fit_rule(const std::vector<Tensor>& samples, ExtentFit& fit) {
  std::vector<TableReadings> tables;
  tables.reserve(samples.size());
  for (const Tensor& sample : samples) {
    tables.push_back(readings_of(sample));
    if (tables.back() == nullptr) return std::nullopt;
  }
  for (const TableReading& reading : *tables.at(0))
    if (std::optional<std::vector<Extent>> numbers = numbers_of(tables, reading, fit))
      return FittedTable{reading.rule, *std::move(numbers), reading.make};
  return std::nullopt;
}

}  // namespace

bool is_leading_block(const Tensor& whole, const Tensor& block) {
  if (block.dtype() != whole.dtype() || !has_block(whole, block.dims())) return false;
  return same_bytes(whole, block) || same_bytes(leading_block(whole, block.dims()), block);
}

Tensor FittedTable::at(const SymbolValues& sizes) const {
  return make_size_table({{rule, extents_at(numbers, sizes), make}});
}

std::optional<FittedTable> fit_table(const std::vector<Tensor>& samples, ExtentFit& fit) {
  std::optional<FittedTable> rule = fit_rule(samples, fit);
  return rule ? rule : fit_blocks(samples, fit);
}

}  // namespace sylvite
