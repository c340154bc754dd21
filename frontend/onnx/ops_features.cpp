// Operators of ai.onnx.ml that prepare features.

#include <algorithm>
#include <cmath>
#include <numeric>
#include <unordered_map>

#include "base/error.h"
#include "frontend/onnx/class_scores.h"
#include "frontend/onnx/ops.h"

namespace sylvite {
namespace {

/// One number for all features, or one per element of the last axis.
Sym per_feature(Sym x, const std::vector<double>& values, const std::string& name) {
  const auto count = static_cast<std::int64_t>(values.size());
  if (count == 1) return x.builder().scalar(x.dtype(), values[0]);
  if (x.rank() == 0 || count != x.dim(-1))
    throw ModelError("{} has {} elements, expected 1 or one per feature", name, count);
  return x.builder().reals(x.dtype(), {count}, values);
}

void scaler(ImportContext& c) {
  Sym y = cast(c.input(0), DType::f32);
  if (const std::vector<double> offset = c.reals("offset"); !offset.empty())
    y = y - per_feature(y, offset, "offset");
  if (const std::vector<double> scale = c.reals("scale"); !scale.empty())
    y = y * per_feature(y, scale, "scale");
  c.output(y);
}

/// A row of zeros stays.
void normalizer(ImportContext& c) {
  const Sym x = cast(c.input(0), DType::f32);
  if (x.rank() < 1 || x.rank() > 2) throw ModelError("the input has rank {}, expected 1 or 2", x.rank());
  const std::vector<std::int64_t> axis{x.rank() - 1};
  const std::string norm = c.string("norm", "MAX");
  Sym size;
  if (norm == "MAX")
    size = reduce(Op::reduce_max, x, axis);
  else if (norm == "L1")
    size = reduce(Op::reduce_sum, apply(Op::abs, x), axis);
  else if (norm == "L2")
    size = apply(Op::sqrt, reduce(Op::reduce_sum, x * x, axis));
  else
    throw ModelError("norm is '{}', expected MAX, L1 or L2", norm);
  c.output(x / where(apply(Op::equal, size, 0.0), 1.0, size));
}

/// NaN as the value to replace stands for itself.
void imputer(ImportContext& c) {
  const Sym x = c.input(0);
  const bool is_real = is_float(x.dtype());
  const std::string attribute = is_real ? "imputed_value_floats" : "imputed_value_int64s";
  std::vector<double> values = c.reals("imputed_value_floats");
  const std::vector<std::int64_t> integers = c.integers("imputed_value_int64s");
  const double real = c.real("replaced_value_float", 0);
  const std::int64_t integer = c.integer("replaced_value_int64", 0);
  if (!is_real) values.assign(integers.begin(), integers.end());
  if (values.empty()) throw ModelError("attribute '{}' is required", attribute);
  Sym is_missing;
  if (is_real)
    is_missing = std::isnan(real) ? apply(Op::is_nan, x) : apply(Op::equal, x, real);
  else
    is_missing = apply(Op::equal, x, cast(c.builder().constant(Tensor::scalar_i64(integer)), x.dtype()));
  c.output(where(is_missing, per_feature(x, values, attribute), x));
}

/// One row per element, with 1 at the place of the element among the categories.
Sym category_flags(ImportContext& c) {
  GraphBuilder& b = c.builder();
  const std::vector<std::int64_t> numbers = c.integers("cats_int64s");
  const std::vector<std::string> names = c.strings("cats_strings");
  if (numbers.empty() == names.empty()) throw ModelError("expected one of cats_int64s and cats_strings");
  if (!numbers.empty()) {
    const Sym x = cast(c.input(0), DType::i64);
    return cast(apply(Op::equal, unsqueeze(x, {-1}), b.integers(numbers)), DType::f32);
  }
  const Texts x = c.texts(0);
  std::unordered_map<std::string, std::int64_t> numbers_of_names;
  for (std::size_t i = 0; i < names.size(); ++i)
    numbers_of_names.emplace(names[i], static_cast<std::int64_t>(i));
  std::vector<std::int64_t> found;
  found.reserve(x.list->size());
  for (const std::string& value : *x.list) {
    const auto number = numbers_of_names.find(value);
    found.push_back(number == numbers_of_names.end() ? -1 : number->second);
  }
  const Sym number = gather(b.integers(found), x.places, 0);
  const Sym all = b.iota(DType::i64, {std::ssize(names)}, 0);
  return cast(apply(Op::equal, unsqueeze(number, {-1}), all), DType::f32);
}

void one_hot_encoder(ImportContext& c) {
  const Sym flags = category_flags(c);
  const bool gives_zeros = c.integer("zeros", 1) != 0;
  if (!gives_zeros) {
    std::vector<std::int64_t> elements(static_cast<std::size_t>(flags.rank() - 1));
    std::iota(elements.begin(), elements.end(), std::int64_t{0});
    const Sym least =
        reduce(Op::reduce_min, reduce(Op::reduce_max, flags, {flags.rank() - 1}, false), elements, false);
    c.expect(apply(Op::greater, least, 0.5),
             "an element is none of the categories, and attribute 'zeros' is 0");
  }
  c.output(flags);
}

/// Pads or cuts every input to its width, and joins them.
void feature_vectorizer(ImportContext& c) {
  const std::vector<std::int64_t> widths = c.integers("inputdimensions");
  std::vector<Sym> parts;
  for (int i = 0; i < c.input_count(); ++i) {
    Sym x = cast(c.input(i), DType::f32);
    if (x.rank() == 1) x = unsqueeze(x, {0});
    if (x.rank() != 2) throw ModelError("input {} has rank {}, expected 1 or 2", i, x.rank());
    if (!widths.empty() && (widths.size() != static_cast<std::size_t>(c.input_count()) ||
                            widths[static_cast<std::size_t>(i)] != x.dim(1)))
      throw UnsupportedError("inputdimensions differ from the inputs' columns");
    parts.push_back(x);
  }
  if (parts.empty()) throw ModelError("there are no inputs");
  c.output(concat(parts, 1));
}

/// Maps do not exist here: the scores that their values would be, a column per class.
void zip_map(ImportContext& c) {
  const Sym x = c.input(0);
  if (x.rank() < 1 || x.rank() > 2) throw ModelError("the input has rank {}, expected 1 or 2", x.rank());
  const ClassLabels labels(c, "classlabels_int64s");
  if (labels.count() != x.dim(-1)) throw ModelError("{} labels for {} columns", labels.count(), x.dim(-1));
  c.output(x);
}

/// DictVectorizer and CastMap.
void takes_a_map(ImportContext&) {
  throw UnsupportedError(
      "the input is a map, and maps are not supported: give the model their values as a tensor");
}

const OnnxOp features_rows[] = {
    {"CastMap", 1, takes_a_map, onnx_ml},
    {"DictVectorizer", 1, takes_a_map, onnx_ml},
    {"FeatureVectorizer", 1, feature_vectorizer, onnx_ml},
    {"Imputer", 1, imputer, onnx_ml},
    {"Normalizer", 1, normalizer, onnx_ml},
    {"OneHotEncoder", 1, one_hot_encoder, onnx_ml},
    {"Scaler", 1, scaler, onnx_ml},
    {"ZipMap", 1, zip_map, onnx_ml},
};

}  // namespace

std::span<const OnnxOp> onnx_feature_ops() {
  return features_rows;
}

}  // namespace sylvite
