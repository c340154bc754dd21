// Operators of ai.onnx.ml that look things up.

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <vector>

#include "base/error.h"
#include "frontend/onnx/ops.h"

namespace sylvite {
namespace {

void binarizer(ImportContext& c) {
  const Sym x = c.input(0);
  c.output(cast(apply(Op::greater, x, c.real("threshold", 0)), x.dtype()));
}

/// The keys or values of a label encoder: strings, or numbers as a tensor.
struct Labels {
  bool are_strings = false;
  std::vector<std::string> strings;
  Tensor numbers;
};

Labels read_labels(ImportContext& c, const std::string& side) {
  if (c.has_attribute(side + "_strings")) return {true, c.strings(side + "_strings"), {}};
  if (c.is_string_tensor(side + "_tensor")) return {true, c.string_tensor(side + "_tensor").values, {}};
  if (c.has_attribute(side + "_tensor")) return {false, {}, c.tensor(side + "_tensor")};
  if (c.has_attribute(side + "_int64s")) return {false, {}, Tensor::vector_i64(c.integers(side + "_int64s"))};
  const std::vector<double> reals = c.reals(side + "_floats");
  Tensor numbers(DType::f32, {static_cast<std::int64_t>(reals.size())});
  for (std::size_t i = 0; i < reals.size(); ++i) numbers.set_double(static_cast<std::int64_t>(i), reals[i]);
  return {false, {}, numbers};
}

/// Text that is equal where keys are: NaN is a key like any other.
std::string key_text(const Tensor& numbers, std::int64_t i) {
  if (!is_float(numbers.dtype())) return std::to_string(numbers.as_int64(i));
  const double number = numbers.as_double(i);
  return std::isnan(number) ? "nan" : fmt::format("{:a}", number == 0 ? 0.0 : number);
}

std::int64_t label_count(const Labels& labels) {
  return labels.are_strings ? static_cast<std::int64_t>(labels.strings.size()) : labels.numbers.size();
}

std::string key_text(const Labels& labels, std::int64_t i) {
  return labels.are_strings ? labels.strings[static_cast<std::size_t>(i)] : key_text(labels.numbers, i);
}

/// The only element of a tensor attribute.
Tensor default_label(ImportContext& c) {
  Tensor label = c.tensor("default_tensor");
  if (label.size() != 1) throw ModelError("default_tensor has {} elements, expected 1", label.size());
  return label;
}

/// The value of each row; the last one is the default.
void output_labels(ImportContext& c, Labels values, Sym row) {
  if (values.are_strings) {
    std::string fallback = c.string("default_string", "_Unused");
    if (c.is_string_tensor("default_tensor")) fallback = c.string_tensor("default_tensor").values.at(0);
    values.strings.push_back(fallback);
    return c.output_texts(0,
                          {std::make_shared<const std::vector<std::string>>(std::move(values.strings)), row});
  }
  const std::int64_t count = values.numbers.size();
  Tensor table(values.numbers.dtype(), {count + 1});
  const bool is_real = is_float(table.dtype());
  const bool has_tensor = c.has_attribute("default_tensor");
  for (std::int64_t i = 0; i < count; ++i)
    if (is_real)
      table.set_double(i, values.numbers.as_double(i));
    else
      table.set_int64(i, values.numbers.as_int64(i));
  if (is_real)
    table.set_double(count, has_tensor ? default_label(c).as_double(0) : c.real("default_float", -0.0));
  else
    table.set_int64(count, has_tensor ? default_label(c).as_int64(0) : c.integer("default_int64", -1));
  c.output(gather(c.builder().constant(table), row, 0));
}

/// Rows of a table by the text of their keys; those of other keys are the last.
using LabelRows = std::map<std::string, std::int64_t>;

std::int64_t row_of(const LabelRows& rows, const std::string& key) {
  const auto found = rows.find(key);
  return found == rows.end() ? static_cast<std::int64_t>(rows.size()) : found->second;
}

/// Integers that lie close together are places in a table.
Sym rows_by_place(Sym x, const LabelRows& rows, const Tensor& keys, std::int64_t low, std::int64_t span) {
  std::vector<std::int64_t> table(static_cast<std::size_t>(span) + 1, static_cast<std::int64_t>(rows.size()));
  for (std::int64_t i = 0; i < keys.size(); ++i)
    table[static_cast<std::size_t>(keys.as_int64(i) - low)] = row_of(rows, key_text(keys, i));
  const Sym place = cast(x, DType::i64) - x.builder().constant(Tensor::scalar_i64(low));
  const auto end = static_cast<double>(span);
  const Sym is_outside =
      apply(Op::logical_or, apply(Op::less, place, 0.0), apply(Op::greater_equal, place, end));
  return gather(x.builder().integers(table), where(is_outside, end, place), 0);
}

/// Among sorted keys the place of a number is how many are no larger.
Sym rows_by_order(Sym x, const LabelRows& rows, const Tensor& keys) {
  std::vector<std::int64_t> order;
  for (std::int64_t i = 0; i < keys.size(); ++i)
    if (!std::isnan(keys.as_double(i))) order.push_back(i);
  const bool is_real = is_float(keys.dtype());
  std::sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    return is_real ? keys.as_double(a) < keys.as_double(b) : keys.as_int64(a) < keys.as_int64(b);
  });
  const auto count = static_cast<std::int64_t>(order.size());
  const auto last = static_cast<std::int64_t>(rows.size());
  Sym row = x.builder().constant(Tensor::scalar_i64(last));
  if (count > 0) {
    Tensor sorted(keys.dtype(), {count});
    std::vector<std::int64_t> found;
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t key = order[static_cast<std::size_t>(i)];
      if (is_real)
        sorted.set_double(i, keys.as_double(key));
      else
        sorted.set_int64(i, keys.as_int64(key));
      found.push_back(row_of(rows, key_text(keys, key)));
    }
    const Sym steps = x.builder().constant(sorted);
    const Sym is_above = cast(apply(Op::greater_equal, unsqueeze(x, {-1}), steps), DType::i64);
    const Sym below = reduce(Op::reduce_sum, is_above, {x.rank()}, false) - 1.0;
    const Sym place = apply(Op::maximum, below, 0.0);
    row = where(apply(Op::equal, gather(steps, place, 0), x), gather(x.builder().integers(found), place, 0),
                row);
  }
  if (const auto nan = rows.find("nan"); nan != rows.end())
    row = where(apply(Op::is_nan, x), static_cast<double>(nan->second), row);
  return broadcast_to(row, x.dims());
}

Sym rows_of_numbers(ImportContext& c, const LabelRows& rows, const Tensor& keys) {
  constexpr std::int64_t most_compared = 4096;
  constexpr std::int64_t most_empty = 8;  // of a table, for each key
  Sym x = c.input(0);
  if (x.dtype() != keys.dtype()) x = cast(x, keys.dtype());
  if (!is_float(keys.dtype()) && keys.size() > 0) {
    std::vector<std::int64_t> numbers = keys.to_int64s();
    const auto [least, most_of_them] = std::minmax_element(numbers.begin(), numbers.end());
    const std::int64_t low = *least;
    const std::int64_t high = *most_of_them;
    constexpr std::int64_t bound = std::int64_t{1} << 40;  // differences must not overflow
    const std::int64_t most = 1024 + most_empty * keys.size();
    if (low > -bound && high < bound && high - low < most)
      return rows_by_place(x, rows, keys, low, high - low + 1);
  }
  if (keys.size() > most_compared && !x.is_constant()) c.wait_for_run("looks up labels in a table");
  c.builder().reserve_table({8, x.is_constant() ? x.size() : 0});  // each becomes text
  if (!x.is_constant()) return rows_by_order(x, rows, keys);
  const Tensor given = x.constant();
  std::vector<std::int64_t> found;
  found.reserve(static_cast<std::size_t>(given.size()));
  for (std::int64_t i = 0; i < given.size(); ++i) found.push_back(row_of(rows, key_text(given, i)));
  return c.builder().constant(Tensor::of(DType::i64, given.dims(), found));
}

Sym rows_of_texts(ImportContext& c, const LabelRows& rows) {
  const Texts given = c.texts(0);
  std::vector<std::int64_t> found;
  found.reserve(given.list->size());
  for (const std::string& text : *given.list) found.push_back(row_of(rows, text));
  return gather(c.builder().integers(found), given.places, 0);
}

/// Input 0 by a table, with the default where it is none of the keys.
void encode(ImportContext& c, const Labels& keys, const Labels& values) {
  LabelRows rows;
  for (std::int64_t i = 0; i < label_count(keys); ++i)
    rows.emplace(key_text(keys, i), static_cast<std::int64_t>(rows.size()));
  if (static_cast<std::int64_t>(rows.size()) != label_count(values))
    throw ModelError("{} different keys and {} values", rows.size(), label_count(values));
  output_labels(c, values,
                keys.are_strings ? rows_of_texts(c, rows) : rows_of_numbers(c, rows, keys.numbers));
}

void label_encoder(ImportContext& c) {
  for (const char* name : {"default_string", "default_float", "default_int64", "default_tensor"})
    (void)c.has_attribute(name);  // that of the values' type counts
  encode(c, read_labels(c, "keys"), read_labels(c, "values"));
}

/// Names to numbers, or numbers to names.
void encode_names(ImportContext& c, const Labels& names, const Labels& numbers) {
  (void)c.has_attribute("default_string");
  (void)c.has_attribute("default_int64");
  const bool is_named = c.is_strings(0);
  encode(c, is_named ? names : numbers, is_named ? numbers : names);
}

void category_mapper(ImportContext& c) {
  encode_names(c, {true, c.strings("cats_strings"), {}},
               {false, {}, Tensor::vector_i64(c.integers("cats_int64s"))});
}

/// As it was first: names are numbered from 0 on.
void label_encoder_of_classes(ImportContext& c) {
  const Labels names{true, c.strings("classes_strings"), {}};
  std::vector<std::int64_t> numbers(names.strings.size());
  std::iota(numbers.begin(), numbers.end(), 0);
  encode_names(c, names, {false, {}, Tensor::vector_i64(numbers)});
}

const OnnxOp ml_rows[] = {
    {"Binarizer", 1, binarizer, onnx_ml},
    {"CategoryMapper", 1, category_mapper, onnx_ml},
    {"LabelEncoder", 1, label_encoder_of_classes, onnx_ml},
    {"LabelEncoder", 2, label_encoder, onnx_ml},
};

}  // namespace

std::span<const OnnxOp> onnx_ml_ops() {
  return ml_rows;
}

}  // namespace sylvite
