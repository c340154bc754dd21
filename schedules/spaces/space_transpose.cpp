#include <algorithm>
#include <numeric>
#include <optional>

#include "frontend/ops/op_table.h"
#include "schedules/spaces/loop_nest.h"
#include "schedules/spaces/spaces.h"

// Space transpose_tiles: pointwise work and slices around a transpose that makes another dim the innermost. A tile of both dims is
// read along the one and written along the other: registers are interleaved, where `pointwise` would gather every element.
//   channels  of a tile, along the innermost dim of the result
//   columns   of a tile, along that of what is read; the last tiles of both shift inwards
//   lines     1: steps along the columns stand inside of those along the channels as far as a line of the cache goes. Each line
//             that is read then serves all its elements, whatever comes between. 0: none
//   tasks     1: parallel tasks; 0: one thread

namespace sylvite {
namespace {

constexpr std::int64_t least_side = 4;  ///< of a tile
constexpr std::int64_t line_bytes = 64;

/// The transpose of a kernel, and the loops of its tiles.
struct Turn {
  const Node* node = nullptr;
  std::size_t columns = 0;  ///< the loop, counted from the innermost, along which what is read is dense
};

/// Is it work on single elements, or a part of its input ahead of the transpose?
bool is_plain(const Node& node, bool is_ahead) {
  return has_trait(node.op, OpTrait::pointwise) || (is_ahead && node.op == Op::slice);
}

/// Where the kernel is one transpose with such work around it.
std::optional<Turn> find_turn(const Graph& body) {
  Turn turn;
  for (const Node& node : body.nodes())
    if (node.op == Op::transpose && turn.node == nullptr)
      turn.node = &node;
    else if (!is_plain(node, turn.node == nullptr))
      return {};
  if (turn.node == nullptr || body.outputs.size() != 1) return {};
  const std::vector<std::int64_t>& perm = turn.node->attributes.integers("perm");
  const auto dense = std::ranges::find(perm, static_cast<std::int64_t>(perm.size()) - 1);
  turn.columns = static_cast<std::size_t>(perm.end() - dense) - 1;
  return turn;
}

std::string refuses_turn(const Kernel& kernel) {
  const Graph& body = kernel.body;
  const std::optional<Turn> turn = find_turn(body);
  if (!turn) return "it is no transpose with work on single elements";
  const TensorType& out = body.type(body.outputs.front());
  if (body.type(turn->node->outputs.front()).shape != out.shape)
    return "its result is not of the transpose's shape";
  const bool has_blocks = std::ranges::any_of(
      body.values(), [](const Value& value) { return value.type.layout.channel_block > 0; });
  if (has_blocks) return "channels lie in blocks";
  if (dtype_size(body.type(turn->node->outputs.front()).dtype) < 2) return "its elements have one byte";
  if (turn->columns == 0) return "the innermost dim stays";
  const std::vector<RunExtent> loops = run_extents(kernel, body.outputs.front());
  if (loops[0].least < least_side || loops[turn->columns].least < least_side)
    return fmt::format("lines are shorter than {} elements", least_side);
  return "";
}

/// Do the lines that a column of what is read goes through stay in the L1 until its neighbours are read, too? Strides of many powers of
/// two meet few of its sets.
bool keeps_lines(const Kernel& kernel, const Node& turn, std::int64_t column) {
  constexpr std::int64_t sets = 64;
  constexpr std::int64_t ways = 8;
  const Graph& body = kernel.body;
  const TensorType& read = body.type(turn.inputs.front());
  const auto axis = static_cast<std::size_t>(turn.attributes.integers("perm").back());
  std::int64_t stride = static_cast<std::int64_t>(dtype_size(read.dtype));
  const Dims dims = read.dims();
  for (std::size_t i = axis + 1; i < dims.size(); ++i) stride *= std::max<std::int64_t>(dims[i], 1);
  const std::int64_t met = sets * line_bytes / std::gcd(stride, sets * line_bytes);
  return column <= std::min(met, sets) * ways;
}

struct TurnNumbers {
  std::int64_t channels = 8;
  std::int64_t columns = least_side;
  std::int64_t lines = 0;
  std::int64_t tasks = 0;
};

struct TransposeTiles {
  const Kernel& kernel;
  const Machine& machine;
  KernelFacts facts;
  Turn turn;
  TurnNumbers heuristic;

  [[nodiscard]] std::int64_t columns_of_line() const {
    const DType dtype = kernel.body.type(turn.node->outputs.front()).dtype;
    return line_bytes / static_cast<std::int64_t>(dtype_size(dtype));
  }
  [[nodiscard]] std::vector<Range<TurnNumbers>> ranges() const;
  [[nodiscard]] Candidate at(const TurnNumbers& point) const;
  [[nodiscard]] double cost(const TurnNumbers& point) const {
    return vector_seconds(2 * facts.work, machine, point.tasks > 0 ? machine.threads : 1);
  }
};

std::vector<Range<TurnNumbers>> TransposeTiles::ranges() const {
  const auto sides = [](std::int64_t least, std::int64_t first) {
    std::vector<std::int64_t> values{first};
    for (const std::int64_t side : {4, 8, 16})
      if (side <= least && side != first) values.push_back(side);
    return values;
  };
  Range<TurnNumbers> tasks{"tasks", &TurnNumbers::tasks, {heuristic.tasks}};
  if (heuristic.tasks > 0) tasks.values.push_back(0);
  Range<TurnNumbers> lines{"lines", &TurnNumbers::lines, {heuristic.lines}};
  if (facts.loops[turn.columns].least >= columns_of_line()) lines.values.push_back(1 - heuristic.lines);
  return {{"channels", &TurnNumbers::channels, sides(facts.loops[0].least, heuristic.channels)},
          {"columns", &TurnNumbers::columns, sides(facts.loops[turn.columns].least, heuristic.columns)},
          lines,
          tasks};
}

Candidate TransposeTiles::at(const TurnNumbers& point) const {
  ScheduleWriter writer;
  LoopNest nest(writer, facts.output, facts.loops);
  const std::int64_t channels = nest.vectorize_inner(point.channels, 1);
  if (point.lines > 0) nest.block(turn.columns, columns_of_line());
  const std::int64_t columns = nest.tile(turn.columns, point.columns);
  if (point.lines > 0) nest.move_inside(turn.columns);
  if (point.tasks > 0) nest.parallelize(task_count(facts, machine, point.tasks), 1);
  const std::string tile = kernel.body.value(turn.node->outputs.front()).name + "_tile";
  writer.add("{}.compute_at({}, {}).store_in(MemoryType::Stack);", tile, facts.output, nest.loops()[0].name);
  writer.add(
      "{0}.bound_extent(d0, {1}).bound_extent(d{2}, {3}).reorder(d{2}, d0).vectorize(d{2}).unroll(d0);", tile,
      channels, turn.columns, columns);
  return {Form{"tiles", {}}, writer.take()};
}

/// As measured: tiles of four columns by eight channels move fastest; functions want longer vectors of what they compute.
Binding bind_transpose(const Kernel& kernel, const Machine& machine) {
  if (std::string refusal = refuses_turn(kernel); !refusal.empty()) return {refusal};
  const KernelFacts facts = facts_of(kernel, machine);
  const Turn turn = *find_turn(kernel.body);
  const double elements = static_cast<double>(kernel.body.type(kernel.body.outputs.front()).element_count());
  const RunExtent& columns = facts.loops[turn.columns];
  TransposeTiles space{kernel, machine, facts, turn, {}};
  space.heuristic.channels = facts.loops[0].least >= 8 ? 8 : least_side;
  space.heuristic.columns = facts.work > 6 * elements && columns.least >= 8 ? 8 : least_side;
  space.heuristic.lines =
      columns.least >= space.columns_of_line() && !keeps_lines(kernel, *turn.node, facts.extents[0]) ? 1 : 0;
  space.heuristic.tasks = task_count(facts, machine, 1) > 0 ? 1 : 0;
  return bind_space(std::move(space));
}

}  // namespace

const Space transpose_tiles_space = {"transpose_tiles", bind_transpose, {}, Space::Open::all};

}  // namespace sylvite
