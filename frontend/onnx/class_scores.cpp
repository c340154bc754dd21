#include "frontend/onnx/class_scores.h"

#include <limits>
#include <numbers>

#include "base/error.h"

namespace sylvite {
namespace {

/// The inverse of the normal distribution function, by Winitzki's approximation of the inverse error function.
Sym probit(Sym p) {
  constexpr double a = 0.147;
  const Sym x = p * 2.0 - 1.0;
  const Sym log = apply(Op::log, (1.0 - x) * (1.0 + x));
  const Sym half = log * 0.5 + 2 / (std::numbers::pi * a);
  const Sym root = apply(Op::sqrt, apply(Op::sqrt, half * half - log / a) - half);
  return apply(Op::sign, x) * root * std::numbers::sqrt2;
}

/// Softmax over those that are not 0; these stay 0.
Sym softmax_of_nonzero(Sym x) {
  const Sym largest = reduce(Op::reduce_max, x, {1});
  const Sym counts = apply(Op::greater, apply(Op::abs, x), 1e-7);
  const Sym power = where(counts, apply(Op::exp, x - largest), x * apply(Op::exp, -largest));
  return power / reduce(Op::reduce_sum, where(counts, power, 0.0), {1});
}

}  // namespace

Sym transformed(Sym scores, const std::string& transform) {
  if (transform == "NONE") return scores;
  if (transform == "SOFTMAX") return softmax(scores, 1);
  if (transform == "LOGISTIC") return apply(Op::sigmoid, scores);
  if (transform == "SOFTMAX_ZERO") return softmax_of_nonzero(scores);
  if (transform == "PROBIT") return probit(scores);
  throw UnsupportedError("post_transform '{}' is not supported", transform);
}

Sym feature_rows(Sym x) {
  if (x.dtype() != DType::f64) x = cast(x, DType::f32);
  if (x.rank() == 1) x = unsqueeze(x, {0});
  if (x.rank() != 2) throw ModelError("the input has rank {}, expected 2", x.rank());
  return x;
}

ClassLabels::ClassLabels(ImportContext& c, const std::string& numbers_name)
    : strings_(c.strings("classlabels_strings")), numbers_(c.integers(numbers_name)) {
  if (strings_.empty() && numbers_.empty()) throw ModelError("there are no class labels");
}

std::int64_t ClassLabels::count() const {
  return static_cast<std::int64_t>(strings_.empty() ? numbers_.size() : strings_.size());
}

void ClassLabels::output(ImportContext& c, Sym index) const {
  if (!c.wants_output(0)) return;
  if (strings_.empty()) return c.output(0, gather(c.builder().integers(numbers_), index, 0));
  c.output_texts(0, {std::make_shared<const std::vector<std::string>>(strings_), index});
}

TwoClasses two_classes(Sym score, bool is_share, const std::string& transform) {
  TwoClasses result;
  result.is_second = apply(Op::greater, score, is_share ? 0.5 : 0.0);
  const bool is_logistic = transform == "LOGISTIC";
  const Sym scores = concat({is_share && !is_logistic ? 1.0 - score : -score, score}, 1);
  result.scores = is_logistic || transform == "PROBIT" ? transformed(scores, transform) : scores;
  return result;
}

}  // namespace sylvite
