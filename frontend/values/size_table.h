#pragma once
// Constants that follow from a model's sizes by a rule: at other sizes, the rule gives the constant that an import would have.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sylvite/tensor.h"

namespace sylvite {

/// One way to say how a constant follows from numbers: equal rules make equal constants of equal numbers.
struct TableReading {
  std::string rule;
  Dims numbers;  ///< extents of the model, for this constant
  std::function<Tensor(const Dims&)> make;
  bool is_open = false;  ///< a number is a size that may be another at another import of the model
  Dims dims = {};        ///< of what it makes of its numbers; set where the table is made
};

using TableReadings = std::shared_ptr<const std::vector<TableReading>>;

/// What the first reading makes, and every tensor that shares its bytes is known to follow from the readings. REQUIRES one,
/// and all make the same.
[[nodiscard]] Tensor make_size_table(std::vector<TableReading> readings);
/// The same of a tensor that is there. REQUIRES that all readings make it.
[[nodiscard]] Tensor as_size_table(const Tensor& made, std::vector<TableReading> readings);

/// What `change` makes of a table with these readings is one, too, by rules named after `name`. REQUIRES that it is a function of its
/// argument.
[[nodiscard]] Tensor make_changed_table(const TableReadings& readings, const std::string& name,
                                        const std::function<Tensor(const Tensor&)>& change);

/// A scalar that is an open size: what is folded of it follows from open sizes, too.
[[nodiscard]] Tensor open_size(std::int64_t size);

/// nullptr for a tensor that is no such constant. Asks for no bytes. Thread safety: safe.
[[nodiscard]] TableReadings readings_of(const Tensor& tensor);
/// Is it such a constant, by a number that is an open size?
[[nodiscard]] bool follows_open_sizes(const Tensor& tensor);

}  // namespace sylvite
