#pragma once
// What imports of a model at several sizes decided alike, and at which other sizes an import would.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "frontend/values/size_facts.h"
#include "lowering/plan/extent_fit.h"

namespace sylvite {

/// Thread safety: const use only.
class SizeDecisions {
 public:
  SizeDecisions() = default;
  /// `facts` are of imports at the points that `fit` knows, in their order, with equal decisions_text. nullopt where a number is
  /// no expression of the sizes.
  [[nodiscard]] static std::optional<SizeDecisions> of(const std::vector<const SizeFacts*>& facts,
                                                       ExtentFit& fit);

  [[nodiscard]] bool hold_at(const SymbolValues& sizes) const;
  /// Calls `visit` with the symbols of each decision and what tells whether it holds, until one call is false; whether none was.
  using Visit = std::function<bool(const std::vector<std::string>& symbols,
                                   const std::function<bool(const SymbolValues&)>& holds)>;
  [[nodiscard]] bool all_of(const Visit& visit) const;

 private:
  struct Decision {
    std::vector<Extent> numbers;
    Dims made;
    std::function<Dims(const Dims&)> decide;
    [[nodiscard]] bool holds_at(const SymbolValues& sizes) const;
  };
  std::vector<Decision> decisions_;  ///< different ones
};

}  // namespace sylvite
