#include "lowering/plan/memory_plan.h"

#include <algorithm>

#include "base/rounding.h"
#include "lowering/plan/plan_loops.h"

namespace sylvite {
namespace {

constexpr std::int64_t alignment = 64;

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
    plan.state_bytes += round_up(state.type.byte_size(), alignment);
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

void place_buffers(Plan& plan, bool reuse) {
  place_states(plan);
  const std::vector<LiveRange> ranges = live_ranges(plan);
  std::vector<std::size_t> order;
  plan.sum_of_values_bytes = 0;
  for (std::size_t i = 0; i < plan.buffers.size(); ++i) {
    const Buffer& buffer = plan.buffers[i];
    if (buffer.kind != BufferKind::arena || buffer.alias_of >= 0) continue;
    order.push_back(i);
    plan.sum_of_values_bytes += round_up(buffer.type.byte_size(), alignment);
  }
  // Large values first: the small ones then fill the gaps.
  auto bytes_of = [&](std::size_t i) { return round_up(plan.buffers[i].type.byte_size(), alignment); };
  if (reuse) {
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return bytes_of(a) > bytes_of(b); });
  }
  const LiveRange always{0, static_cast<std::int32_t>(plan.launches.size())};
  std::vector<Placed> placed;
  plan.arena_bytes = 0;
  for (std::size_t i : order) {
    const std::int64_t bytes = bytes_of(i);
    const LiveRange range = reuse ? ranges[i] : always;
    const std::int64_t offset = best_fit(placed, range, bytes);
    plan.buffers[i].offset = offset;
    plan.arena_bytes = std::max(plan.arena_bytes, offset + bytes);
    insert_sorted(placed, {offset, offset + bytes, range});
  }
}

}  // namespace sylvite
