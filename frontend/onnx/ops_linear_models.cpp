// Linear models and support vector machines of ai.onnx.ml.

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "frontend/graph/loop_builder.h"
#include "frontend/onnx/class_scores.h"
#include "frontend/onnx/ops.h"

namespace sylvite {
namespace {

/// A list as a matrix with rows of `columns`. Throws ModelError when it does not divide.
Sym matrix(GraphBuilder& b, const std::vector<double>& values, std::int64_t columns,
           const std::string& name) {
  const auto count = static_cast<std::int64_t>(values.size());
  if (columns < 1 || count == 0 || count % columns != 0)
    throw ModelError("{} has {} elements, expected rows of {}", name, count, columns);
  return b.reals(DType::f32, {count / columns, columns}, values);
}

/// x [rows, features] by the rows of `weights`: [rows, number of weights' rows].
Sym products(Sym x, Sym weights) {
  return matmul(x, swap_axes(weights, 0, 1));
}

/// Coefficients of a linear model, [features, targets], and the intercepts, [1, targets] or nothing. Steps on the host make them
/// once.
struct LinearModel {
  std::int64_t features = 0;
  Tensor coefficients;
  std::optional<Tensor> intercepts;
};

/// The attribute has a row for each target. Coefficients beyond a row for each intercept are left out, as by ONNX Runtime, whose own
/// example has such.
LinearModel read_linear_model(ImportContext& c, std::int64_t features) {
  const std::vector<double> intercepts = c.reals("intercepts");
  std::vector<double> values = c.reals("coefficients");
  const std::int64_t read = static_cast<std::int64_t>(intercepts.size()) * features;
  if (read > 0 && read < static_cast<std::int64_t>(values.size()))
    values.resize(static_cast<std::size_t>(read));
  const auto count = static_cast<std::int64_t>(values.size());
  if (features < 1 || count == 0 || count % features != 0)
    throw ModelError("coefficients has {} elements, expected rows of {}", count, features);
  const std::int64_t targets = count / features;
  LinearModel model{features, Tensor(DType::f32, {features, targets}), std::nullopt};
  for (std::int64_t i = 0; i < count; ++i)
    model.coefficients.set_double(i % features * targets + i / features, values[static_cast<std::size_t>(i)]);
  if (intercepts.empty()) return model;
  if (static_cast<std::int64_t>(intercepts.size()) != targets)
    throw ModelError("{} intercepts for {} rows of coefficients", intercepts.size(), targets);
  model.intercepts.emplace(DType::f32, Dims{1, targets});
  for (std::int64_t i = 0; i < targets; ++i)
    model.intercepts->set_double(i, intercepts[static_cast<std::size_t>(i)]);
  return model;
}

/// x times the coefficients, plus the intercepts if there are any: [rows, targets].
Sym linear_scores(ImportContext& c, Sym x) {
  GraphBuilder& b = c.builder();
  const std::int64_t features = x.dim(1);
  const auto kept = c.kept<LinearModel>([&] { return read_linear_model(c, features); });
  const LinearModel model = kept->features == features ? *kept : read_linear_model(c, features);
  const Sym scores = matmul(x, b.constant(model.coefficients));
  return model.intercepts ? scores + b.constant(*model.intercepts) : scores;
}

Sym feature_floats(ImportContext& c) {
  return cast(feature_rows(c.input(0)), DType::f32);
}

void linear_regressor(ImportContext& c) {
  const Sym y = linear_scores(c, feature_floats(c));
  const std::int64_t targets = c.integer("targets", 1);
  if (y.dim(1) != targets) throw ModelError("coefficients for {} targets, expected {}", y.dim(1), targets);
  c.output(transformed(y, c.string("post_transform", "NONE")));
}

Sym best_column(Sym scores) {
  return scores.builder().add(Op::arg_max, {scores},
                              {{"axis", std::int64_t{1}}, {"keepdims", std::int64_t{0}}});
}

Sym as_index(Sym flags) {
  return reshape(cast(flags, DType::i64), {flags.dim(0)});
}

void linear_classifier(ImportContext& c) {
  const Sym scores = linear_scores(c, feature_floats(c));
  const ClassLabels labels(c, "classlabels_ints");
  const std::string transform = c.string("post_transform", "NONE");
  (void)c.has_attribute("multi_class");  // post_transform says what it means for the scores
  if (scores.dim(1) == 1 && labels.count() == 2) {
    labels.output(c, as_index(apply(Op::greater, scores, 0.0)));
    return c.output(1, two_classes(scores, true, transform).scores);
  }
  if (scores.dim(1) != labels.count())
    throw ModelError("scores for {} classes, there are {} labels", scores.dim(1), labels.count());
  labels.output(c, best_column(scores));
  c.output(1, transformed(scores, transform));
}

/// Of each row and each vector, by one product. Both are seen from the vectors' mean: where features lie far from 0, the
/// squares would cancel otherwise.
Sym squared_distances(Sym x, Sym vectors) {
  const Sym mean = reduce_mean(vectors, {0});
  x = x - mean;
  vectors = vectors - mean;
  const Sym lengths = reduce(Op::reduce_sum, x * x, {1});
  const Sym others = reshape(reduce(Op::reduce_sum, vectors * vectors, {1}), {1, vectors.dim(0)});
  return apply(Op::maximum, lengths + others - products(x, vectors) * 2.0, 0.0);
}

/// The kernel function of each row and each vector: [rows, vectors].
Sym kernel(ImportContext& c, Sym x, Sym vectors, const std::string& type) {
  if (type == "LINEAR") return products(x, vectors);
  const std::vector<double> parameters = c.reals("kernel_params");
  if (parameters.size() != 3)
    throw ModelError("kernel_params has {} elements, expected 3", parameters.size());
  const double gamma = parameters[0];
  const double offset = parameters[1];
  const double degree = parameters[2];
  if (type == "RBF") return apply(Op::exp, squared_distances(x, vectors) * -gamma);
  const Sym base = products(x, vectors) * gamma + offset;
  if (type == "SIGMOID") return apply(Op::tanh, base);
  if (type != "POLY") throw ModelError("kernel_type '{}', expected LINEAR, POLY, RBF or SIGMOID", type);
  return degree == 1 ? base : degree == 2 ? base * base : apply(Op::pow, base, degree);
}

std::vector<double> read_rho(ImportContext& c, std::size_t count) {
  std::vector<double> rho = c.reals("rho");
  if (rho.size() < count) throw ModelError("rho has {} elements, expected {}", rho.size(), count);
  rho.resize(count);
  return rho;
}

void svm_regressor(ImportContext& c) {
  GraphBuilder& b = c.builder();
  const Sym x = feature_floats(c);
  const std::int64_t supports = c.integer("n_supports", 0);
  const std::vector<double> coefficients = c.reals("coefficients");
  const std::vector<double> vectors = c.reals("support_vectors");
  const std::string type = c.string("kernel_type", "LINEAR");
  (void)c.has_attribute("kernel_params");
  Sym terms = x;
  if (supports > 0) {
    const Sym rows = matrix(b, vectors, x.dim(1), "support_vectors");
    if (rows.dim(0) != supports) throw ModelError("{} support vectors, expected {}", rows.dim(0), supports);
    terms = kernel(c, x, rows, type);
  }
  const Sym weights = matrix(b, coefficients, terms.dim(1), "coefficients");
  if (weights.dim(0) != 1) throw ModelError("{} rows of coefficients, expected 1", weights.dim(0));
  Sym y = products(terms, weights) + read_rho(c, 1)[0];
  if (c.integer("one_class", 0) != 0) y = where(apply(Op::greater, y, 0.0), b.scalar(DType::f32, 1), -1.0);
  c.output(transformed(y, c.string("post_transform", "NONE")));
}

/// The decisions between all pairs of classes: positive for the first one.
struct ClassPairs {
  Sym scores;                                                ///< [rows, pairs]
  std::vector<std::pair<std::int64_t, std::int64_t>> sides;  ///< classes of each pair
};

/// A vector of one class has a coefficient for every other class: those of a pair come from both classes' vectors.
ClassPairs pair_scores(ImportContext& c, Sym x, std::int64_t classes,
                       const std::vector<std::int64_t>& per_class) {
  GraphBuilder& b = c.builder();
  const Sym vectors = matrix(b, c.reals("support_vectors"), x.dim(1), "support_vectors");
  std::vector<std::int64_t> owner;
  for (std::size_t i = 0; i < per_class.size(); ++i) {
    if (per_class[i] < 0 || per_class[i] > vectors.dim(0))
      throw ModelError("vectors_per_class holds {}, there are {} vectors", per_class[i], vectors.dim(0));
    owner.insert(owner.end(), static_cast<std::size_t>(per_class[i]), static_cast<std::int64_t>(i));
    if (static_cast<std::int64_t>(owner.size()) > vectors.dim(0)) break;
  }
  const std::int64_t count = vectors.dim(0);
  const std::vector<double> coefficients = c.reals("coefficients");
  if (static_cast<std::int64_t>(owner.size()) != count)
    throw ModelError("vectors_per_class says {} vectors, there are {}", owner.size(), count);
  if (static_cast<std::int64_t>(coefficients.size()) != (classes - 1) * count)
    throw ModelError("{} coefficients, expected {} for each of {} vectors", coefficients.size(), classes - 1,
                     count);
  ClassPairs pairs;
  for (std::int64_t i = 0; i < classes; ++i)
    for (std::int64_t j = i + 1; j < classes; ++j) pairs.sides.emplace_back(i, j);
  b.reserve_table({static_cast<std::int64_t>(pairs.sides.size()), count});
  std::vector<double> weights;
  for (const auto& [i, j] : pairs.sides) {
    for (std::int64_t vector = 0; vector < count; ++vector) {
      const std::int64_t own = owner[static_cast<std::size_t>(vector)];
      const std::int64_t row = own == i ? j - 1 : i;
      const bool takes_part = own == i || own == j;
      weights.push_back(takes_part ? coefficients[static_cast<std::size_t>(row * count + vector)] : 0);
    }
  }
  const Sym terms = kernel(c, x, vectors, c.string("kernel_type", "LINEAR"));
  const std::vector<double> rho = read_rho(c, pairs.sides.size());
  const auto columns = static_cast<std::int64_t>(pairs.sides.size());
  pairs.scores = products(terms, matrix(b, weights, count, "coefficients")) + matrix(b, rho, columns, "rho");
  return pairs;
}

/// The class that wins most pairs.
Sym most_votes(const ClassPairs& pairs, std::int64_t classes) {
  GraphBuilder& b = pairs.scores.builder();
  const auto count = static_cast<std::int64_t>(pairs.sides.size());
  std::vector<double> when_positive(static_cast<std::size_t>(count * classes));
  std::vector<double> otherwise = when_positive;
  for (std::int64_t pair = 0; pair < count; ++pair) {
    const auto& [i, j] = pairs.sides[static_cast<std::size_t>(pair)];
    when_positive[static_cast<std::size_t>(pair * classes + i)] = 1;
    otherwise[static_cast<std::size_t>(pair * classes + j)] = 1;
  }
  const Sym is_positive = cast(apply(Op::greater, pairs.scores, 0.0), DType::f32);
  const Sym votes = matmul(is_positive, b.reals(DType::f32, {count, classes}, when_positive)) +
                    matmul(1.0 - is_positive, b.reals(DType::f32, {count, classes}, otherwise));
  return best_column(votes);
}

/// How likely one class of each pair is beside the other: [rows, classes, classes], nothing on the diagonal.
struct PairShares {
  Sym over;   ///< [i, j]: i beside j
  Sym under;  ///< [i, j]: j beside i
};

PairShares pair_shares(const ClassPairs& pairs, std::int64_t classes, const std::vector<double>& prob_a,
                       const std::vector<double>& prob_b) {
  GraphBuilder& b = pairs.scores.builder();
  const auto count = static_cast<std::int64_t>(pairs.sides.size());
  const Sym first = apply(
      Op::sigmoid, -(pairs.scores * matrix(b, prob_a, count, "prob_a") + matrix(b, prob_b, count, "prob_b")));
  const Sym share = apply(Op::minimum, apply(Op::maximum, first, 1e-7), 1 - 1e-7);
  const auto cells = static_cast<std::size_t>(classes * classes);
  std::vector<std::int64_t> pair_of(cells);
  std::vector<double> above(cells), below(cells);
  for (std::size_t pair = 0; pair < pairs.sides.size(); ++pair) {
    const auto [i, j] = pairs.sides[pair];
    const auto upper = static_cast<std::size_t>(i * classes + j),
               lower = static_cast<std::size_t>(j * classes + i);
    pair_of[upper] = pair_of[lower] = static_cast<std::int64_t>(pair);
    above[upper] = below[lower] = 1;
  }
  const Sym each = gather(share, b.integers(pair_of), 1);
  const Sym is_above = b.reals(DType::f32, {1, classes * classes}, above);
  const Sym is_below = b.reals(DType::f32, {1, classes * classes}, below);
  const Dims dims = {share.dim(0), classes, classes};
  return {reshape(is_above * each + is_below * (1.0 - each), dims),
          reshape(is_above * (1.0 - each) + is_below * each, dims)};
}

/// The shares of the classes, [rows, classes], that fit those of their pairs best (Wu, Lin and Weng 2004, as libsvm steps
/// towards them): p Q p is least where Q p is the same for all classes. Rows that are near enough stay.
Sym coupled_shares(const PairShares& pairs) {
  constexpr std::int64_t most_trips = 100;
  const Dims dims = pairs.over.dims();
  const std::int64_t rows = dims[0], classes = dims[1];
  GraphBuilder& b = pairs.over.builder();
  std::vector<double> ones(static_cast<std::size_t>(classes * classes));
  for (std::int64_t i = 0; i < classes; ++i) ones[static_cast<std::size_t>(i * classes + i)] = 1;
  const Sym unit = b.reals(DType::f32, {1, classes, classes}, ones);
  const Sym diagonal = reduce(Op::reduce_sum, pairs.under * pairs.under, {2}, false);
  const Sym q = unit * unsqueeze(diagonal, {2}) - pairs.under * pairs.over;
  const auto row = [&](Sym table, std::int64_t i) {
    return reshape(slice(table, 1, i, i + 1), {table.dim(0), classes});
  };
  const auto trip = [&](const TripValues& given) {
    const Sym start = given.states[0];
    Sym p = start;
    Sym slopes = reduce(Op::reduce_sum, q * unsqueeze(p, {1}), {2}, false);
    Sym level = reduce(Op::reduce_sum, p * slopes, {1}, true);
    const Sym error = reduce(Op::reduce_max, apply(Op::abs, slopes - level), {1}, true);
    for (std::int64_t i = 0; i < classes; ++i) {
      const Sym slope = slice(slopes, 1, i, i + 1), own = slice(diagonal, 1, i, i + 1);
      const Sym step = (level - slope) / own;
      const Sym total = step + 1.0;
      p = (p + step * row(unit, i)) / total;
      level = (level + step * (step * own + slope * 2.0)) / total / total;
      slopes = (slopes + step * row(q, i)) / total;
    }
    const Sym is_near = apply(Op::less, error, 0.005 / static_cast<double>(classes));
    return TripValues{{where(is_near, start, p)}, {}};
  };
  const Sym even = b.filled(DType::f32, {rows, classes}, 1.0 / static_cast<double>(classes));
  return run_loop(b, {most_trips, false, {{even}, {}}}, trip).states[0];
}

/// Without vectors: a row of coefficients per class.
void linear_svm(ImportContext& c, Sym x, const ClassLabels& labels) {
  const Sym rows = matrix(c.builder(), c.reals("coefficients"), x.dim(1), "coefficients");
  if (rows.dim(0) != labels.count())
    throw ModelError("coefficients for {} classes, there are {} labels", rows.dim(0), labels.count());
  const Sym scores = products(x, rows) + read_rho(c, 1)[0];
  labels.output(c, best_column(scores));
  c.output(1, transformed(scores, c.string("post_transform", "NONE")));
}

void svm_classifier(ImportContext& c) {
  const Sym x = feature_floats(c);
  const ClassLabels labels(c, "classlabels_ints");
  const std::int64_t classes = labels.count();
  const std::vector<std::int64_t> per_class = c.integers("vectors_per_class");
  const std::vector<double> prob_a = c.reals("prob_a");
  const std::vector<double> prob_b = c.reals("prob_b");
  const std::string transform = c.string("post_transform", "NONE");
  for (const char* name : {"support_vectors", "kernel_type", "kernel_params"}) (void)c.has_attribute(name);
  if (classes < 2 || classes > 1000) throw UnsupportedError("{} classes; 2 to 1000 are supported", classes);
  if (per_class.empty()) return linear_svm(c, x, labels);
  if (static_cast<std::int64_t>(per_class.size()) != classes)
    throw ModelError("vectors_per_class has {} elements for {} classes", per_class.size(), classes);
  const ClassPairs pairs = pair_scores(c, x, classes, per_class);
  labels.output(c, most_votes(pairs, classes));
  if (!prob_a.empty()) {
    constexpr std::int64_t most_classes = 50;
    if (classes > most_classes)
      throw UnsupportedError("attribute 'prob_a' with {} classes; {} are supported", classes, most_classes);
    if (prob_a.size() != pairs.sides.size() || prob_b.size() != pairs.sides.size())
      throw ModelError("prob_a has {} and prob_b {} elements for {} pairs of classes", prob_a.size(),
                       prob_b.size(), pairs.sides.size());
    if (classes > 2)
      return c.output(1, transformed(coupled_shares(pair_shares(pairs, classes, prob_a, prob_b)), transform));
    const Sym first = apply(Op::sigmoid, pairs.scores * -prob_a[0] - prob_b[0]);
    return c.output(1, transformed(concat({first, 1.0 - first}, 1), transform));
  }
  if (classes > 2) return c.output(1, transformed(pairs.scores, transform));
  c.output(1, two_classes(pairs.scores, false, transform).scores);
}

const OnnxOp linear_models_rows[] = {
    {"LinearClassifier", 1, linear_classifier, onnx_ml},
    {"LinearRegressor", 1, linear_regressor, onnx_ml},
    {"SVMClassifier", 1, svm_classifier, onnx_ml},
    {"SVMRegressor", 1, svm_regressor, onnx_ml},
};

}  // namespace

std::span<const OnnxOp> onnx_linear_model_ops() {
  return linear_models_rows;
}

}  // namespace sylvite
