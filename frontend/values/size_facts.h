#pragma once
// What an import decided by a model's sizes: at other sizes, the rule tells whether an import would decide the same.

#include <functional>
#include <string>
#include <vector>

#include "sylvite/extent.h"
#include "sylvite/types.h"

namespace sylvite {

/// What follows from the numbers of a decision, as expressions of these.
struct FollowingExtents {
  std::vector<Extent>
      numbers;  ///< the decision, and what the model makes of it: pads, and other numbers of few values
  std::vector<Extent> sizes;  ///< extents of the model's values, of which others are products
  bool are_exact = false;     ///< `numbers` are the decision, whatever sizes are
};
using DecisionAsExtents = std::function<FollowingExtents(const std::vector<Extent>&)>;

struct SizeFact {
  std::string rule;  ///< equal rules decide the same of equal numbers
  Dims numbers;      ///< extents of the model
  Dims decision;
  std::function<Dims(const Dims&)> decide;
  /// Of a decision that is nothing but numbers of the plan, which follow from the sizes; empty: other decisions are other plans.
  DecisionAsExtents follow = {};
};

using SizeFacts = std::vector<SizeFact>;

/// While it lives, keeps what this thread decides by sizes; for one import. An inner one keeps what is decided in its time.
class NotedSizeFacts {
 public:
  /// `are_open`: the model is imported at other sizes, too.
  explicit NotedSizeFacts(bool are_open = false);
  ~NotedSizeFacts();
  NotedSizeFacts(const NotedSizeFacts&) = delete;
  NotedSizeFacts& operator=(const NotedSizeFacts&) = delete;
  /// In the order in which they were decided.
  [[nodiscard]] SizeFacts take() { return std::move(facts_); }

 private:
  friend Dims decide_by_sizes(std::string rule, Dims numbers, std::function<Dims(const Dims&)> decide,
                              DecisionAsExtents follow);
  friend bool sizes_are_open();

  NotedSizeFacts* before_;  ///< of this thread
  bool are_open_;
  SizeFacts facts_;
};

/// Is this thread at an import of a model that is imported at other sizes, too?
[[nodiscard]] bool sizes_are_open();

/// What `decide` says of the numbers, noted where facts are kept. It must depend on nothing but what `rule` says.
[[nodiscard]] Dims decide_by_sizes(std::string rule, Dims numbers, std::function<Dims(const Dims&)> decide,
                                   DecisionAsExtents follow = {});

/// Rules, and decisions that do not follow, as text: imports for which it is equal may have one plan.
[[nodiscard]] std::string decisions_text(const SizeFacts& facts);

}  // namespace sylvite
