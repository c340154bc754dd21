#include "lowering/plan/memory_plan.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "base/rounding.h"
#include "lowering/plan/plan_loops.h"

namespace sylvite {
namespace {

struct Placed {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  LiveRange range;
};

/// The offset of the smallest gap of at least `bytes` among the values alive at the same time; after the last
/// of them when no gap is large enough. `placed` is sorted by `begin`.
std::int64_t best_fit(const std::vector<Placed>& placed, const LiveRange& range, std::int64_t bytes) {
  std::int64_t best = -1;
  std::int64_t best_gap = 0;
  std::int64_t free_from = 0;
  for (const Placed& other : placed) {
    if (!other.range.overlaps(range)) continue;
    const std::int64_t gap = other.begin - free_from;
    if (gap >= bytes && (best < 0 || gap < best_gap)) {
      best = free_from;
      best_gap = gap;
    }
    free_from = std::max(free_from, other.end);
  }
  return best < 0 ? free_from : best;
}

void insert_sorted(std::vector<Placed>& placed, const Placed& item) {
  const auto after = std::upper_bound(placed.begin(), placed.end(), item,
                                      [](const Placed& a, const Placed& b) { return a.begin < b.begin; });
  placed.insert(after, item);
}

void place_states(Plan& plan) {
  plan.state_bytes = 0;
  for (const Port& state : plan.states) {
    plan.buffers[static_cast<std::size_t>(state.buffer)].offset = plan.state_bytes;
    plan.state_bytes += round_up(state.type.byte_size(), arena_alignment);
  }
}

}  // namespace

BufferId root_of(const Plan& plan, BufferId buffer) {
  while (plan.buffers[static_cast<std::size_t>(buffer)].alias_of >= 0)
    buffer = plan.buffers[static_cast<std::size_t>(buffer)].alias_of;
  return buffer;
}

std::int64_t offset_in_root(const Plan& plan, BufferId buffer, std::int64_t trip) {
  std::int64_t offset = 0;
  for (; buffer >= 0; buffer = plan.buffers[static_cast<std::size_t>(buffer)].alias_of) {
    const Buffer& part = plan.buffers[static_cast<std::size_t>(buffer)];
    offset += part.alias_offset + (part.window ? part.window->offset(trip) : 0);
  }
  return offset;
}

const Window* window_of(const Plan& plan, BufferId buffer) {
  for (; buffer >= 0; buffer = plan.buffers[static_cast<std::size_t>(buffer)].alias_of)
    if (const auto& window = plan.buffers[static_cast<std::size_t>(buffer)].window) return &*window;
  return nullptr;
}

std::vector<LiveRange> live_ranges(const Plan& plan) {
  std::vector<LiveRange> ranges(plan.buffers.size());
  std::vector<bool> seen(plan.buffers.size(), false);
  const auto end = static_cast<std::int32_t>(plan.launches.size());
  auto touch = [&](BufferId buffer, std::int32_t when) {
    const auto root = static_cast<std::size_t>(root_of(plan, buffer));
    if (!seen[root]) ranges[root].first = when;
    seen[root] = true;
    ranges[root].last = std::max(ranges[root].last, when);
  };
  for (std::int32_t i = 0; i < end; ++i)
    for (BufferId argument : plan.launches[static_cast<std::size_t>(i)].arguments) touch(argument, i);
  for (const Port& output : plan.outputs) touch(output.buffer, end);
  for (const std::span<const PlanLoop> group : loop_groups(plan)) {
    const std::int32_t first = group.front().first;
    const std::int32_t end_of_all = group.back().end;
    for (LiveRange& range : ranges) {
      const bool is_inside = range.first >= first && range.last < end_of_all;
      if ((is_inside && group.size() == 1) || !range.overlaps({first, end_of_all - 1})) continue;
      range.first = std::min(range.first, first);
      range.last = std::max(range.last, end_of_all - 1);
    }
  }
  return ranges;
}

ArenaPlaces::ArenaPlaces(const Plan& plan, bool reuse) : reuse_(reuse) {
  const std::vector<LiveRange> ranges = live_ranges(plan);
  const LiveRange always{0, static_cast<std::int32_t>(plan.launches.size())};
  for (std::size_t i = 0; i < plan.buffers.size(); ++i) {
    if (plan.buffers[i].kind != BufferKind::arena || plan.buffers[i].alias_of >= 0) continue;
    roots_.push_back(static_cast<BufferId>(i));
    ranges_.push_back(reuse ? ranges[i] : always);
  }
}

BlockPlaces place_values(const std::vector<LiveRange>& ranges, const std::vector<std::int64_t>& bytes,
                         bool reuse) {
  std::vector<std::size_t> order(ranges.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  // Large values first: the small ones then fill the gaps.
  const auto size_of = [&](std::size_t i) { return round_up(bytes.at(i), arena_alignment); };
  if (reuse) std::ranges::stable_sort(order, std::greater(), size_of);
  BlockPlaces places{std::vector<std::int64_t>(ranges.size()), 0};
  std::vector<Placed> placed;
  placed.reserve(ranges.size());
  for (const std::size_t i : order) {
    const std::int64_t offset = best_fit(placed, ranges[i], size_of(i));
    places.offsets[i] = offset;
    places.bytes = std::max(places.bytes, offset + size_of(i));
    insert_sorted(placed, {offset, offset + size_of(i), ranges[i]});
  }
  return places;
}

void place_buffers(Plan& plan, bool reuse) {
  place_states(plan);
  const ArenaPlaces places(plan, reuse);
  std::vector<std::int64_t> bytes;
  bytes.reserve(places.roots().size());
  plan.sum_of_values_bytes = 0;
  for (const BufferId root : places.roots()) {
    bytes.push_back(plan.buffers[static_cast<std::size_t>(root)].type.byte_size());
    plan.sum_of_values_bytes += round_up(bytes.back(), arena_alignment);
  }
  const BlockPlaces placed = places.at(bytes);
  for (std::size_t i = 0; i < bytes.size(); ++i)
    plan.buffers[static_cast<std::size_t>(places.roots()[i])].offset = placed.offsets[i];
  plan.arena_bytes = placed.bytes;
}

}  // namespace sylvite
