#include "lowering/plan/state_keeper.h"

#include <fmt/format.h>

#include <algorithm>

#include "lowering/plan/memory_plan.h"

namespace sylvite {

BufferId StateKeeper::root(BufferId id) const {
  return root_of(builder_.plan(), id);
}

/// Is the state's value of before the run an output, or the next value of another state? What was written into it is
/// an alias of it, too, and asked about just the same.
bool StateKeeper::is_needed_behind(BufferId state) const {
  const Plan& plan = builder_.plan();
  for (std::size_t i = 0; i < next_.size(); ++i)
    if (plan.states[i].buffer != state && root(next_[i]) == state) return true;
  return std::ranges::any_of(plan.outputs, [&](const Port& port) { return root(port.buffer) == state; });
}

/// Before the first launch that writes `written`, none of which reads the state either.
bool StateKeeper::reads_end_before(BufferId state, BufferId written) const {
  const Plan& plan = builder_.plan();
  const auto count = static_cast<std::int32_t>(plan.launches.size());
  const auto first_use = [&](std::int32_t from, BufferId wanted) {
    for (std::int32_t i = from; i < count; ++i)
      for (const BufferId argument : plan.launches[static_cast<std::size_t>(i)].arguments)
        if (root(argument) == wanted) return i;
    return count;
  };
  std::int32_t first = first_use(0, written);
  if (first == count) return false;
  for (const PlanLoop& loop : plan.loops)
    if (first >= loop.first && first < loop.end) first = loop.first;
  return first_use(first, state) == count;
}

bool StateKeeper::may_lie_in(BufferId state, BufferId next) const {
  const Plan& plan = builder_.plan();
  const BufferId written = root(next);
  const Buffer& whole = plan.buffers[static_cast<std::size_t>(written)];
  const Buffer& place = plan.buffers[static_cast<std::size_t>(state)];
  return whole.kind == BufferKind::arena && !builder_.is_kept_in_arena(written) &&
         whole.type.byte_size() == place.type.byte_size() && !is_needed_behind(state) &&
         reads_end_before(state, written);
}

/// Adds to the reasons of the launches that write into the state.
void StateKeeper::tell(BufferId state, const std::string& what) {
  for (std::size_t i = 0; i < builder_.plan().launches.size(); ++i) {
    Launch& launch = builder_.launch(i);
    const auto outputs = launch.arguments.begin() + static_cast<std::ptrdiff_t>(builder_.input_count(i));
    if (std::any_of(outputs, launch.arguments.end(), [&](BufferId id) { return root(id) == state; }))
      launch.reason += fmt::format("; {} '{}'", what, builder_.buffer(state).name);
  }
}

/// A copy of what lies in a state.
BufferId StateKeeper::put_aside(BufferId value, BufferKind kind, std::int32_t index, const std::string& use) {
  Buffer aside;
  aside.name = builder_.buffer(value).name + "_aside";
  aside.type = builder_.buffer(value).type;
  aside.kind = kind;
  aside.index = index;
  const BufferId added = builder_.add_buffer(std::move(aside));
  builder_.add_copy(value, added, 1, fmt::format("puts the last value of a state aside, which is {}", use));
  return added;
}

void StateKeeper::run() {
  std::vector<std::pair<BufferId, BufferId>> copies;  // from, to
  for (std::size_t i = 0; i < next_.size(); ++i) {
    const BufferId state = builder_.plan().states[i].buffer;
    if (root(next_[i]) == state) {
      tell(state, "replaces elements of state");
    } else if (may_lie_in(state, next_[i])) {
      builder_.buffer(root(next_[i])).alias_of = state;
      tell(state, "writes state");
    } else {
      copies.emplace_back(next_[i], state);
    }
  }
  // What lies in another state is put aside first: that state may be replaced, too.
  for (auto& [from, to] : copies)
    if (builder_.buffer(root(from)).kind == BufferKind::state)
      from = put_aside(from, BufferKind::arena, 0, "another's next value");
  for (std::size_t i = 0; i < builder_.plan().outputs.size(); ++i) {
    const BufferId given = builder_.plan().outputs[i].buffer;
    const auto is_replaced = [&](const auto& copy) { return copy.second == root(given); };
    if (std::ranges::any_of(copies, is_replaced))
      builder_.set_output(i, put_aside(given, BufferKind::output, static_cast<std::int32_t>(i), "an output"));
  }
  for (const auto& [from, to] : copies) {
    builder_.add_copy(
        from, to, 1,
        fmt::format("copies the next value of state '{}', which lies elsewhere while the last is read",
                    builder_.buffer(to).name));
  }
}

}  // namespace sylvite
