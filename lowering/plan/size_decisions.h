#pragma once
// What imports of a model at several sizes decided alike, and at which other sizes an import would.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "frontend/values/size_facts.h"
#include "lowering/plan/extent_fit.h"

namespace sylvite {

/// Expressions of decisions that follow from sizes, told to a fit once it has some for their numbers.
/// Thread safety: one thread at a time.
class FollowedFacts {
 public:
  /// `facts` are of imports at the points of the fits, in their order, with equal decisions_text, and must live as long.
  explicit FollowedFacts(std::vector<const SizeFacts*> facts);

  /// In the order of the imports; those whose numbers have no expressions yet are told by a later call.
  void tell(ExtentFit& fit);

 private:
  [[nodiscard]] bool tell_one(std::size_t number, ExtentFit& fit) const;

  std::vector<const SizeFacts*> facts_;
  std::vector<std::size_t> waiting_;  ///< numbers of those that were not told
};

/// Thread safety: const use only.
class SizeDecisions {
 public:
  SizeDecisions() = default;
  /// `facts` are of imports at the points that `fit` knows, in their order, with equal decisions_text; `said` what numbers of the
  /// plans may be made of. Where a decision follows from its numbers, or such a number is another expression to `fit`, what
  /// both say must be the same. nullopt where a number of another decision is no expression of the sizes.
  [[nodiscard]] static std::optional<SizeDecisions> of(const std::vector<const SizeFacts*>& facts,
                                                       ExtentFit& fit, const std::vector<Extent>& said = {});

  [[nodiscard]] bool hold_at(const SymbolValues& sizes) const;
  /// Calls `visit` with the symbols of each decision and what tells whether it holds, until one call is false; whether none was.
  using Visit = std::function<bool(const std::vector<std::string>& symbols,
                                   const std::function<bool(const SymbolValues&)>& holds)>;
  [[nodiscard]] bool all_of(const Visit& visit) const;

 private:
  struct Decision {
    std::vector<Extent> numbers;
    std::vector<Extent> made;
    std::function<Dims(const Dims&)> decide;
    [[nodiscard]] bool holds_at(const SymbolValues& sizes) const;
  };
  std::vector<Decision> decisions_;  ///< different ones
};

}  // namespace sylvite
