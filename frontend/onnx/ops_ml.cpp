// Operators of ai.onnx.ml that look things up.

#include <cmath>
#include <map>
#include <numeric>
#include <vector>

#include "base/error.h"
#include "frontend/onnx/ops.h"

namespace sylvite {
namespace {

constexpr std::string_view domain = "ai.onnx.ml";

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

void output_labels(ImportContext& c, const Labels& values, const Dims& dims,
                   const std::vector<std::int64_t>& rows) {
  if (values.are_strings) {
    std::string fallback = c.string("default_string", "_Unused");
    if (c.is_string_tensor("default_tensor")) fallback = c.string_tensor("default_tensor").values.at(0);
    StringTensor result{dims, {}};
    for (const std::int64_t row : rows)
      result.values.push_back(row < 0 ? fallback : values.strings.at(static_cast<std::size_t>(row)));
    return c.output_strings(0, std::move(result));
  }
  Tensor result(values.numbers.dtype(), dims);
  const bool is_real = is_float(result.dtype());
  const bool has_tensor = c.has_attribute("default_tensor");
  const double real = has_tensor ? default_label(c).as_double(0) : c.real("default_float", -0.0);
  const std::int64_t integer = has_tensor ? default_label(c).as_int64(0) : c.integer("default_int64", -1);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    if (is_real)
      result.set_double(at, rows[i] < 0 ? real : values.numbers.as_double(rows[i]));
    else
      result.set_int64(at, rows[i] < 0 ? integer : values.numbers.as_int64(rows[i]));
  }
  c.output(c.builder().constant(result));
}

/// Input 0 by a table, with the default where it is none of the keys.
void encode(ImportContext& c, const Labels& keys, const Labels& values) {
  std::map<std::string, std::int64_t> rows;
  for (std::int64_t i = 0; i < label_count(keys); ++i)
    rows.emplace(key_text(keys, i), static_cast<std::int64_t>(rows.size()));
  if (static_cast<std::int64_t>(rows.size()) != label_count(values))
    throw ModelError("{} different keys and {} values", rows.size(), label_count(values));
  if (!keys.are_strings && !c.input(0).is_constant()) c.wait_for_run("looks up labels in a table");
  const Labels given =
      keys.are_strings ? Labels{true, c.strings(0).values, {}} : Labels{false, {}, c.constant(0)};
  c.builder().reserve_table({8, label_count(given)});  // each becomes text
  std::vector<std::int64_t> found;
  for (std::int64_t i = 0; i < label_count(given); ++i) {
    const auto row = rows.find(key_text(given, i));
    found.push_back(row == rows.end() ? -1 : row->second);
  }
  output_labels(c, values, keys.are_strings ? c.strings(0).dims : given.numbers.dims(), found);
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

const OnnxOp rows[] = {
    {"Binarizer", 1, binarizer, domain},
    {"CategoryMapper", 1, category_mapper, domain},
    {"LabelEncoder", 1, label_encoder_of_classes, domain},
    {"LabelEncoder", 2, label_encoder, domain},
};

}  // namespace

std::span<const OnnxOp> onnx_ml_ops() {
  return rows;
}

}  // namespace sylvite
