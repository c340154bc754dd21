#include <algorithm>

#include "schedules/spaces/loop_nest.h"
#include "schedules/spaces/spaces.h"

// Space layout_tiles: channels that lie in blocks become planes, or planes blocks. A tile of channels by
// pixels is read along the one and written along the other: registers are interleaved, where `pointwise`
// would gather every element.
//   channels  of a tile, a divisor of the block
//   pixels    of a tile; the last tile of a line shifts inwards
//   tasks     1: parallel tasks; 0: one thread

namespace sylvite {
namespace {

/// The block that the output has, or else that the input had.
std::int64_t block_of(const Kernel& kernel) {
  const Node& node = kernel.body.nodes().back();
  return std::max(kernel.body.type(node.outputs[0]).layout.channel_block,
                  kernel.body.type(node.inputs[0]).layout.channel_block);
}

bool makes_blocks(const Kernel& kernel) {
  return kernel.body.type(kernel.body.outputs.front()).layout.channel_block > 0;
}

/// In any run.
std::int64_t least_line(const Kernel& kernel) {
  const ValueId out = kernel.body.outputs.front();
  return least_extent(kernel, out, kernel.body.type(out).shape.size() - 1);
}

/// Elements of 32 bits and more, or computed as such.
bool is_wide(const KernelFacts& facts, const Machine& machine) {
  return facts.lanes <= machine.vector_floats;
}

constexpr std::int64_t least_pixels = 4;
constexpr std::int64_t least_channels = 8;

std::string refuses_layout(const Kernel& kernel, const Machine& machine) {
  const Graph& body = kernel.body;
  if (body.nodes().empty() || body.outputs.size() != 1 || body.nodes().back().op != Op::to_layout)
    return "it is no change of layout";
  const bool only_slices = std::all_of(body.nodes().begin(), body.nodes().end() - 1,
                                       [](const Node& node) { return node.op == Op::slice; });
  if (!only_slices) return "it does more than slice and change the layout";
  if (!is_float(body.type(body.outputs.front()).dtype)) return "its elements are no floats";
  const bool from_blocks = body.type(body.nodes().back().inputs[0]).layout.channel_block > 0;
  if (from_blocks == makes_blocks(kernel) || block_of(kernel) % least_channels != 0)
    return fmt::format("it is no change between planes and blocks of {} channels", least_channels);
  if (makes_blocks(kernel) && is_wide(facts_of(kernel, machine), machine))
    return "elements of 32 bits are gathered as fast";
  if (least_line(kernel) < least_pixels)
    return fmt::format("lines are shorter than {} elements", least_pixels);
  return "";
}

struct LayoutNumbers {
  std::int64_t channels = least_channels;
  std::int64_t pixels = least_pixels;
  std::int64_t tasks = 0;
};

struct LayoutTiles {
  const Kernel& kernel;
  const Machine& machine;
  KernelFacts facts;
  LayoutNumbers heuristic;

  [[nodiscard]] std::vector<Range<LayoutNumbers>> ranges() const;
  [[nodiscard]] Candidate at(const LayoutNumbers& point) const;
  [[nodiscard]] double cost(const LayoutNumbers& point) const {
    return vector_seconds(2 * facts.work, machine, point.tasks > 0 ? machine.threads : 1);
  }
};

std::vector<Range<LayoutNumbers>> LayoutTiles::ranges() const {
  Range<LayoutNumbers> channels{"channels", &LayoutNumbers::channels, {least_channels}};
  if (block_of(kernel) % 16 == 0) channels.values.push_back(16);
  Range<LayoutNumbers> pixels{"pixels", &LayoutNumbers::pixels, {heuristic.pixels}};
  if (least_line(kernel) >= 8) pixels.values.push_back(heuristic.pixels == 8 ? 4 : 8);
  Range<LayoutNumbers> tasks{"tasks", &LayoutNumbers::tasks, {heuristic.tasks}};
  if (heuristic.tasks > 0) tasks.values.push_back(0);
  return {channels, pixels, tasks};
}

/// Names the loops from `first` to `last` of d0, d1, ...
std::vector<std::string> loops_between(int first, int last) {
  std::vector<std::string> names;
  for (int d = first; d <= last; ++d) names.push_back(fmt::format("d{}", d));
  return names;
}

Candidate LayoutTiles::at(const LayoutNumbers& point) const {
  const std::string& out = facts.output;
  const std::string tile = kernel.body.value(kernel.body.outputs.front()).name + "_tile";
  const bool to_blocks = makes_blocks(kernel);
  const int rank = static_cast<int>(facts.extents.size());
  // d0 and d1 are channels of a block and pixels, or d0 pixels and the last but the batch channels.
  const int line = to_blocks ? 1 : 0;
  const int channel = to_blocks ? 0 : rank - 2;
  const auto [channels, pixels, tasks] = point;
  ScheduleWriter writer;
  const auto split = [&](int d, const char* name, std::int64_t factor, const char* tail) {
    const bool is_whole = facts.loops.at(static_cast<std::size_t>(d)).is_multiple_of(factor);
    writer.add("{}.split(d{}, {}, {}i, {}, TailStrategy::{});", out, d, name, name, factor,
               is_whole ? "RoundUp" : tail);
  };
  split(line, "x", pixels, "ShiftInwards");
  split(channel, "c", channels, "GuardWithIf");
  std::vector<std::string> outer = to_blocks ? loops_between(2, rank - 1) : loops_between(1, rank - 3);
  if (to_blocks) {
    writer.add("{}.reorder(ci, xi, c, x, {}).vectorize(ci).unroll(xi);", out, fmt::join(outer, ", "));
  } else {
    outer.insert(outer.end(), {"c", fmt::format("d{}", rank - 1)});
    writer.add("{}.reorder(xi, ci, x, {}).vectorize(xi).unroll(ci);", out, fmt::join(outer, ", "));
  }
  if (tasks > 0) writer.parallelize(out, outer);
  writer.add("{}.compute_at({}, {}).store_in(MemoryType::Stack);", tile, out, to_blocks ? "c" : "x");
  writer.add("{}.bound_extent(d{}, {}).bound_extent(d{}, {}).align_bounds(d{}, {});", tile, line, pixels,
             channel, channels, channel, channels);
  writer.add("{0}.reorder(d{1}, d{2}).vectorize(d{1}).unroll(d{2});", tile, to_blocks ? line : channel,
             to_blocks ? channel : line);
  return {Form{"tiles", {}}, writer.take()};
}

/// As measured: interleaves of four pixels are the cheapest for 16 bits, of eight for 32.
Binding bind_layout(const Kernel& kernel, const Machine& machine) {
  if (std::string refusal = refuses_layout(kernel, machine); !refusal.empty()) return {refusal};
  const KernelFacts facts = facts_of(kernel, machine);
  const bool by_eight = is_wide(facts, machine) && least_line(kernel) >= 8;
  return bind_space(LayoutTiles{
      kernel,
      machine,
      facts,
      {.pixels = by_eight ? 8 : least_pixels, .tasks = task_count(facts, machine, 1) > 0 ? 1 : 0}});
}

}  // namespace

const Space layout_tiles_space = {"layout_tiles", bind_layout, {}, Space::Open::all};

}  // namespace sylvite
