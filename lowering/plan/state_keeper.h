#pragma once
// Where the next values of states are written, so that the next run finds them.

#include <vector>

#include "lowering/plan/plan_builder.h"

namespace sylvite {

/// A value lies where the state does when it is computed after the last read of the state; else it is copied there at
/// the end of the run, which the reason of the launch tells.
class StateKeeper {
 public:
  /// `next`: per state of the plan, the buffer of its next value. REQUIRES the plan's outputs.
  StateKeeper(PlanBuilder& builder, std::vector<BufferId> next) : builder_(builder), next_(std::move(next)) {}
  void run();

 private:
  [[nodiscard]] BufferId root(BufferId id) const;
  [[nodiscard]] bool is_needed_behind(BufferId state) const;
  [[nodiscard]] bool reads_end_before(BufferId state, BufferId root) const;
  [[nodiscard]] bool may_lie_in(BufferId state, BufferId next) const;
  BufferId put_aside(BufferId value, BufferKind kind, std::int32_t index, const std::string& use);
  void tell(BufferId state, const std::string& what);

  PlanBuilder& builder_;
  std::vector<BufferId> next_;
};

}  // namespace sylvite
