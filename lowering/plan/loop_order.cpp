#include "lowering/plan/loop_order.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "lowering/plan/memory_plan.h"

namespace sylvite {
namespace {

constexpr std::size_t most_between = 16;  ///< launches that may move: what they write lives longer

/// A launch, or all launches of a loop; and the roots of what they touch.
struct Segment {
  std::int32_t first = 0;
  std::int32_t end = 0;
  std::int64_t trips = 0;  ///< 0: no loop
  std::set<BufferId> read;
  std::set<BufferId> written;
};
using Segments = std::vector<Segment>;

bool meet(const std::set<BufferId>& a, const std::set<BufferId>& b) {
  return std::ranges::any_of(a, [&](BufferId id) { return b.contains(id); });
}

bool meets(const Segment& segment, const Segments& others) {
  return std::ranges::any_of(others, [&](const Segment& other) {
    return meet(segment.written, other.read) || meet(segment.written, other.written) ||
           meet(segment.read, other.written);
  });
}

class LoopArranger {
 public:
  LoopArranger(const Plan& plan, const std::vector<std::size_t>& inputs) : plan_(plan), inputs_(inputs) {
    std::int32_t next = 0;
    for (const PlanLoop& loop : plan.loops) {
      for (; next < loop.first; ++next) add_segment(next, next + 1, 0);
      add_segment(loop.first, loop.end, loop.trips);
      next = loop.end;
    }
    for (; next < static_cast<std::int32_t>(plan.launches.size()); ++next) add_segment(next, next + 1, 0);
  }

  LoopOrder run() {
    for (std::size_t i = 0; i < segments_.size();)
      if (segments_[i].trips > 0)
        i = gather(i);
      else
        arrange(segments_[i++], false);
    return std::move(order_);
  }

 private:
  void add_segment(std::int32_t first, std::int32_t end, std::int64_t trips) {
    Segment segment{first, end, trips, {}, {}};
    for (std::int32_t i = first; i < end; ++i) {
      const Launch& launch = plan_.launches[static_cast<std::size_t>(i)];
      for (std::size_t k = 0; k < launch.arguments.size(); ++k)
        (k < inputs_[static_cast<std::size_t>(i)] ? segment.read : segment.written)
            .insert(root_of(plan_, launch.arguments[k]));
    }
    segments_.push_back(std::move(segment));
  }

  void arrange(const Segment& segment, bool beside) {
    const auto first = static_cast<std::int32_t>(order_.launches.size());
    for (std::int32_t i = segment.first; i < segment.end; ++i)
      order_.launches.push_back(static_cast<std::size_t>(i));
    if (segment.trips > 0)
      order_.loops.push_back(
          {first, static_cast<std::int32_t>(order_.launches.size()), segment.trips, beside});
  }

  /// The next loop from that segment on, or the end of all where it is too far.
  [[nodiscard]] std::size_t next_loop(std::size_t from) const {
    const std::size_t end = std::min(from + most_between + 1, segments_.size());
    for (std::size_t i = from; i < end; ++i)
      if (segments_[i].trips > 0) return i;
    return segments_.size();
  }

  /// Arranges a loop, those that may run beside it, and what is between; returns the first segment behind.
  std::size_t gather(std::size_t first) {
    Segments group = {segments_[first]};
    Segments behind;
    std::size_t next = first + 1;
    for (std::size_t loop = next_loop(next); loop < segments_.size(); loop = next_loop(next)) {
      Segments ahead;
      Segments later = behind;
      for (std::size_t i = next; i < loop; ++i) {
        const bool stays = meets(segments_[i], group) || meets(segments_[i], later);
        (stays ? later : ahead).push_back(segments_[i]);
      }
      if (meets(segments_[loop], group) || meets(segments_[loop], later)) break;
      for (const Segment& segment : ahead) arrange(segment, false);
      group.push_back(segments_[loop]);
      behind = std::move(later);
      next = loop + 1;
    }
    for (std::size_t i = 0; i < group.size(); ++i) arrange(group[i], i > 0);
    for (const Segment& segment : behind) arrange(segment, false);
    return next;
  }

  const Plan& plan_;
  const std::vector<std::size_t>& inputs_;
  Segments segments_;
  LoopOrder order_;
};

}  // namespace

LoopOrder order_loops(const Plan& plan, const std::vector<std::size_t>& inputs) {
  return LoopArranger(plan, inputs).run();
}

}  // namespace sylvite
