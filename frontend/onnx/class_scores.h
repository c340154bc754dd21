#pragma once
// What the classifiers and regressors of ai.onnx.ml share: transforms of scores, and classes by name or number.

#include <string>

#include "frontend/onnx/import_context.h"

namespace sylvite {

/// Scores [rows, classes] after the transform: NONE, SOFTMAX, LOGISTIC, SOFTMAX_ZERO or PROBIT. Throws
/// UnsupportedError for others.
[[nodiscard]] Sym transformed(Sym scores, const std::string& transform);

/// x of [features] or [rows, features] as f32 (f64 stays), [rows, features]. Throws ModelError for other ranks.
[[nodiscard]] Sym feature_rows(Sym x);

/// The classes of attributes classlabels_strings, and `numbers_name` if there are no strings.
class ClassLabels {
 public:
  ClassLabels(ImportContext& c, const std::string& numbers_name);
  [[nodiscard]] std::int64_t count() const;
  /// Writes output 0 from the index of each row's class, i64 [rows]. Strings are known only when the model runs:
  /// they throw NeedsValueError while it is imported, unless nobody wants them.
  void output(ImportContext& c, Sym index) const;

 private:
  std::vector<std::string> strings_;
  std::vector<std::int64_t> numbers_;
};

/// The scores of two classes of which only the second one's is given, [rows, 1]: what each becomes, and whether
/// the second one is chosen. `is_share`: scores are shares of 1, else they lie around 0.
struct TwoClasses {
  Sym scores;     ///< [rows, 2]
  Sym is_second;  ///< boolean [rows, 1]
};
[[nodiscard]] TwoClasses two_classes(Sym score, bool is_share, const std::string& transform);

}  // namespace sylvite
