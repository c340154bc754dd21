#pragma once
// The symbols of a graph: what is known of them, and what was assumed where that does not decide a question.

#include <string>
#include <vector>

#include "sylvite/extent.h"

namespace sylvite {

/// A condition on the values of symbols under which a graph means what its model means.
struct Guard {
  enum class Kind : std::uint8_t { zero, not_negative } kind = Kind::zero;
  Extent extent;       ///< what is 0, or at least 0
  std::string origin;  ///< where it was assumed, for messages; may be empty

  [[nodiscard]] bool holds(const SymbolValues& binding) const;
  [[nodiscard]] std::string to_string() const;  ///< e.g. a-b = 0, or a-4 >= 0
};

/// Answers the questions of type rules. Extents that are numbers, or equal in form, or told apart by ranges, are
/// decided; else the answer is yes, and a guard is noted, which binding checks.
class Symbols {
 public:
  SymbolTable table;
  std::string origin;  ///< of guards noted from now on

  [[nodiscard]] bool equal(const Extent& a, const Extent& b);
  [[nodiscard]] bool at_least(const Extent& a, const Extent& b);
  /// Shapes of one rank with equal extents?
  [[nodiscard]] bool equal(const std::vector<Extent>& a, const std::vector<Extent>& b);

  [[nodiscard]] const std::vector<Guard>& guards() const { return guards_; }  ///< each once
  void add_guard(Guard guard);

 private:
  std::vector<Guard> guards_;
};

}  // namespace sylvite
