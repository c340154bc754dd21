#include "frontend/graph/folded_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "base/hash.h"
#include "frontend/graph/attribute_text.h"
#include "frontend/graph/interpreter.h"
#include "frontend/ops/op_table.h"

namespace sylvite {
namespace {

constexpr std::size_t most_numbers = 64;  // of a table; what is read twice counts twice

/// An input: how it follows from numbers, or the same at all sizes.
struct Part {
  std::optional<TableReading> reading;
  Tensor fixed;
  std::optional<std::size_t> rank = {};  ///< of a table that is read in another shape than it is made in
};

/// What makes a node's result, in the order of the numbers: those of the inputs, each followed by its extents where it is read in another
/// shape, and the node's own.
struct Recipe {
  Op op;
  Attributes attributes;
  std::vector<std::pair<std::string, std::size_t>> extents;  ///< attributes with so many numbers
  std::vector<Part> parts;

  [[nodiscard]] Tensor make(const Dims& numbers) const;
};

/// The next `count` numbers.
Dims take(const Dims& numbers, std::size_t& at, std::size_t count) {
  const auto from = numbers.begin() + static_cast<std::ptrdiff_t>(at);
  at += count;
  return {from, from + static_cast<std::ptrdiff_t>(count)};
}

Tensor Recipe::make(const Dims& numbers) const {
  std::size_t at = 0;
  std::vector<Tensor> inputs;
  for (const Part& part : parts) {
    Tensor input = part.fixed;
    if (part.reading) {
      const Dims of_part = take(numbers, at, part.reading->numbers.size());
      input = part.reading->make(of_part);
      if (part.rank) input = input.reshaped(take(numbers, at, *part.rank));
    }
    inputs.push_back(std::move(input));
  }
  Attributes now = attributes;
  for (const auto& [name, count] : extents) now.set(name, take(numbers, at, count));
  std::vector<TensorType> types;
  types.reserve(inputs.size());
  for (const Tensor& input : inputs) types.push_back(input.type());
  std::vector<const Tensor*> given;
  std::vector<const TensorType*> given_types;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    given.push_back(&inputs[i]);
    given_types.push_back(&types[i]);
  }
  Symbols symbols;
  return evaluate_node(op, given, now, op_info(op).infer(op, given_types, now, symbols)).at(0);
}

/// A few integers, as those that shapes are made of.
std::optional<TableReading> numbers_reading(const Tensor& tensor) {
  constexpr std::int64_t few = 8;
  const DType dtype = tensor.dtype();
  if (tensor.size() == 0 || tensor.size() > few || (dtype != DType::i64 && dtype != DType::i32))
    return std::nullopt;
  TableReading reading{
      fmt::format("{} {}", dtype_name(dtype), tensor.size()), {}, [dtype](const Dims& numbers) {
        Tensor made(dtype, {std::ssize(numbers)});
        for (std::size_t i = 0; i < numbers.size(); ++i)
          made.set_double(static_cast<std::int64_t>(i), static_cast<double>(numbers[i]));
        return made;
      }};
  for (std::int64_t i = 0; i < tensor.size(); ++i)
    reading.numbers.push_back(static_cast<std::int64_t>(tensor.as_double(i)));
  reading.dims = {tensor.size()};
  return reading;
}

/// One number may be a table that is short at these sizes, or by itself.
std::vector<TableReading> ways_to_read(const Tensor& constant) {
  constexpr std::size_t most = 4;
  std::vector<TableReading> ways;
  if (const TableReadings table = readings_of(constant)) ways = *table;
  if (ways.size() > most) ways.resize(most);
  if (ways.empty() || constant.size() == 1)
    if (std::optional<TableReading> numbers = numbers_reading(constant)) ways.push_back(*std::move(numbers));
  return ways;
}

/// Equal for equal tensors of imports of one model.
std::string name_of(const Tensor& fixed) {
  constexpr std::int64_t few = 4096;
  const std::string type = fixed.type().to_string();
  if (fixed.byte_size() > few) return fmt::format("{} {}", type, fixed.identity());
  const std::string_view bytes(static_cast<const char*>(fixed.data()),
                               static_cast<std::size_t>(fixed.byte_size()));
  return fmt::format("{} {}", type, short_hash(bytes));
}

/// The reading of the node's result where its inputs are read so.
TableReading reading_of(const Node& node, std::vector<Part> parts, const std::vector<Dims>& dims) {
  constexpr std::size_t long_rule = 256;
  TableReading result;
  std::string rule(op_info(node.op).name);
  auto recipe = std::make_shared<Recipe>(Recipe{node.op, node.attributes, {}, std::move(parts)});
  for (std::size_t i = 0; i < recipe->parts.size(); ++i) {
    Part& part = recipe->parts[i];
    rule += fmt::format(" ({}", part.reading ? part.reading->rule : name_of(part.fixed));
    if (part.reading) {
      result.is_open = result.is_open || part.reading->is_open;
      result.numbers.insert(result.numbers.end(), part.reading->numbers.begin(), part.reading->numbers.end());
      if (part.reading->dims != dims[i]) {
        part.rank = dims[i].size();
        rule += fmt::format(" {}", dims[i].size());
        result.numbers.insert(result.numbers.end(), dims[i].begin(), dims[i].end());
      }
    }
    rule += ')';
  }
  for (const auto& [name, value] : node.attributes.items()) {
    if (!has_extents(node.op, name)) {
      rule += fmt::format(" {}={}", name, attribute_text(value));
      continue;
    }
    const Dims& extents = node.attributes.integers(name);
    rule += fmt::format(" {}:{}", name, extents.size());
    recipe->extents.emplace_back(name, extents.size());
    result.numbers.insert(result.numbers.end(), extents.begin(), extents.end());
  }
  result.rule = rule.size() > long_rule ? short_hash(rule) : std::move(rule);
  result.make = [recipe = std::move(recipe)](const Dims& numbers) { return recipe->make(numbers); };
  return result;
}

}  // namespace

Tensor as_cut_table(const Tensor& made, const Tensor& whole, const Attributes& slice) {
  TableReading reading = reading_of({Op::slice, {}, {}, slice, ""}, {{std::nullopt, whole}}, {whole.dims()});
  reading.is_open = true;
  return as_size_table(made, {std::move(reading)});
}

std::vector<TableReading> fold_readings(const Graph& graph, const Node& node) {
  if (node.outputs.size() != 1 || op_info(node.op).evaluate == nullptr) return {};
  std::vector<std::vector<TableReading>> ways;  // per input
  std::vector<Part> parts;
  std::vector<Dims> dims;
  std::size_t most = node.inputs.empty() ? 1 : 0;
  for (const ValueId input : node.inputs) {
    if (input == no_value) return {};
    const Tensor& constant = *graph.value(input).constant;
    dims.push_back(constant.dims());
    ways.push_back(ways_to_read(constant));
    parts.push_back({std::nullopt, ways.back().empty() ? constant : Tensor()});
    most = std::max(most, ways.back().size());
  }
  std::vector<TableReading> readings;
  for (std::size_t way = 0; way < most; ++way) {
    for (std::size_t i = 0; i < parts.size(); ++i)
      if (!ways[i].empty()) parts[i].reading = ways[i][std::min(way, ways[i].size() - 1)];
    TableReading reading = reading_of(node, parts, dims);
    if (reading.numbers.size() <= most_numbers) readings.push_back(std::move(reading));
  }
  return readings;
}

}  // namespace sylvite
