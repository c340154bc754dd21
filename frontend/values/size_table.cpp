#include "frontend/values/size_table.h"

#include <algorithm>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace sylvite {
namespace {

/// Of all tables that live, by the identity of their tensors.
struct Registry {
  std::mutex mutex;
  std::unordered_map<const void*, TableReadings> readings;
};

Registry& registry() {
  static Registry all;
  return all;
}

/// Bytes that are known to be a table as long as they live.
class TableBytes {
 public:
  TableBytes(Tensor bytes, TableReadings readings) : bytes_(std::move(bytes)) {
    const std::scoped_lock lock(registry().mutex);
    // A view of a table is known already.
    is_first_ = registry().readings.try_emplace(bytes_.identity(), std::move(readings)).second;
  }
  ~TableBytes() {
    if (!is_first_) return;
    TableReadings last;  // what it keeps may be tables, too
    const std::scoped_lock lock(registry().mutex);
    const auto found = registry().readings.find(bytes_.identity());
    last = std::move(found->second);
    registry().readings.erase(found);
  }
  TableBytes(const TableBytes&) = delete;
  TableBytes& operator=(const TableBytes&) = delete;
  [[nodiscard]] const Tensor& bytes() const { return bytes_; }

 private:
  Tensor bytes_;
  bool is_first_ = false;
};

}  // namespace

Tensor make_size_table(std::vector<TableReading> readings) {
  const Tensor made = readings.at(0).make(readings[0].numbers);
  return as_size_table(made, std::move(readings));
}

Tensor as_size_table(const Tensor& made, std::vector<TableReading> readings) {
  for (TableReading& reading : readings) reading.dims = made.dims();
  const auto bytes = std::make_shared<const TableBytes>(
      made, std::make_shared<const std::vector<TableReading>>(std::move(readings)));
  return {made.dtype(), made.dims(), bytes, bytes->bytes().data()};
}

Tensor make_changed_table(const TableReadings& readings, const std::string& name,
                          const std::function<Tensor(const Tensor&)>& change) {
  std::vector<TableReading> changed;
  for (const TableReading& reading : *readings)
    changed.push_back({name + " of " + reading.rule, reading.numbers,
                       [make = reading.make, change](const Dims& numbers) { return change(make(numbers)); },
                       reading.is_open});
  return make_size_table(std::move(changed));
}

Tensor open_size(std::int64_t size) {
  const auto make = [](const Dims& numbers) {
    Tensor made(DType::i64, {});
    made.set_int64(0, numbers.at(0));
    return made;
  };
  return make_size_table({{"open size", {size}, make, true}});
}

TableReadings readings_of(const Tensor& tensor) {
  const std::scoped_lock lock(registry().mutex);
  const auto found = registry().readings.find(tensor.identity());
  return found == registry().readings.end() ? nullptr : found->second;
}

bool follows_open_sizes(const Tensor& tensor) {
  const TableReadings readings = readings_of(tensor);
  return readings != nullptr && std::ranges::any_of(*readings, &TableReading::is_open);
}

}  // namespace sylvite
