#include "lowering/plan/fitted_table.h"

#include <algorithm>
#include <utility>

#include "frontend/values/size_table.h"

namespace sylvite {
namespace {

/// Of tables that can all be read by the rule of `reading`.
std::optional<std::vector<Extent>> numbers_of(const std::vector<TableReadings>& tables,
                                              const TableReading& reading, ExtentFit& fit) {
  std::vector<Dims> numbers(reading.numbers.size());  // of each sample
  for (const TableReadings& table : tables) {
    const auto same = std::ranges::find(*table, reading.rule, &TableReading::rule);
    if (same == table->end()) return std::nullopt;
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i].push_back(same->numbers.at(i));
  }
  std::vector<Extent> result;
  for (const Dims& values : numbers) {
    std::optional<Extent> found = fit.of(values);
    if (!found) return std::nullopt;
    result.push_back(*std::move(found));
  }
  return result;
}

}  // namespace

Tensor FittedTable::at(const SymbolValues& sizes) const {
  Dims values;
  values.reserve(numbers.size());
  for (const Extent& number : numbers) values.push_back(number.at(sizes));
  return make_size_table({{rule, values, make}});
}

std::optional<FittedTable> fit_table(const std::vector<Tensor>& samples, ExtentFit& fit) {
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

}  // namespace sylvite
