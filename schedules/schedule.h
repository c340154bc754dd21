#pragma once
// A Schedule: an ordered list of decisions about stages. A value: it hashes, stores, replays, prints as
// Halide C++ and is read back from the same text.

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace sylvite {

struct Algorithm;

/// One directive. `text` form, which is also valid Halide C++:
///   v3.split(d0, d0o, d0i, 16, TailStrategy::GuardWithIf);
///   v3.update(0).reorder(d0, r0).vectorize(d0, 16);     is two decisions on the same stage
/// The full list, with meaning and legality: the table in schedule.cpp, and that of
/// directives/own_directives.cpp.
struct Decision {
  std::string stage;      ///< a name in Algorithm::stages
  int update = -1;        ///< -1: the pure definition; k: update(k)
  std::string directive;  ///< split, fuse, reorder, vectorize, unroll, parallel, compute_at, ...
  std::vector<std::string> arguments;
  [[nodiscard]] int number(std::size_t i) const;  ///< argument i, which must be one; throws CompileError
  bool operator==(const Decision&) const = default;
};

struct Schedule {
  std::vector<Decision> decisions;

  [[nodiscard]] std::string to_string() const;                 ///< one statement per line
  [[nodiscard]] static Schedule parse(std::string_view text);  ///< throws ModelError with the line
  /// Applies every decision to the algorithm's stages. Throws CompileError naming the decision when a stage,
  /// var or directive is unknown or Halide refuses it.
  void apply(Algorithm& algorithm) const;
  bool operator==(const Schedule&) const = default;
};

}  // namespace sylvite
