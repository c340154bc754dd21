#include <algorithm>

#include "base/error.h"
#include "lowering/algorithms/algorithm.h"
#include "lowering/algorithms/strided_view.h"
#include "schedules/directives/amx_tiles.h"
#include "schedules/directives/overlap_epilogue.h"
#include "schedules/spaces/matmul_loops.h"
#include "schedules/spaces/spaces.h"

// Spaces matmul_amx (with weights, of bf16 or of i8) and matmul_amx_activations: products through AMX. The
// loops are those of matmul_loops.h. A tile of the output, rows x panels, is a block of AMX tiles: its sums
// go through the stack to the epilogue.

namespace sylvite {
namespace {

/// Why AMX does not multiply what was read; empty when it does.
std::string amx_refusal(const MatmulProblem& problem, const Machine& machine) {
  if (problem.element != DType::bf16 && problem.element != DType::i8) return "AMX multiplies bf16 and i8";
  if (problem.element == DType::i8 && problem.scales == no_value) return "its rows are bytes already";
  if (!machine.amx) return "the processor has no AMX, or the system does not let programs use it";
  constexpr int least_groups = 8;
  if (amx_groups_in_tile(problem.fold_steps()) < least_groups)
    return fmt::format("its k = {} is no multiple of a depth from {} to {}", problem.k,
                       problem.pair() * least_groups, problem.pair() * amx_tile_groups);
  return "";
}

/// As many rows as fit one or two tiles, without a short last block where that can be.
std::int64_t even_rows(const MatmulProblem& problem, std::int64_t most) {
  return ceil_div(problem.m, ceil_div(problem.m, most));
}

/// Of copy_a: the left operand is copied so that every tile of it is one stretch of memory, which comes from
/// the L2 faster than 16 lines of as many rows.
constexpr std::int64_t in_slabs = 2;

std::int64_t slab_of(const MatmulProblem& problem) {
  return std::int64_t{problem.pair()} * amx_tile_groups;
}
bool can_slab(const MatmulProblem& problem) {
  return problem.weight != no_value && problem.k % slab_of(problem) == 0;
}

/// Two tiles of rows by three of columns bring fewer bytes from the L2 for a product. They pay where a
/// block's weights are not much more than the L1; of bytes, which come at half the rate, always.
bool suits_three_panels(const MatmulProblem& problem, const Machine& machine) {
  if (problem.m <= amx_tile_rows || panel_count(problem) % 3 != 0) return false;
  const std::int64_t panel_bytes = panel_width * problem.k * element_bytes(problem);
  return problem.scales != no_value || 3 * panel_bytes * 2 <= 3 * machine.l1_bytes;
}

/// Quantised rows are copied anyway; others are worth it where many columns use them and the copy is small.
bool suits_slabs(const MatmulProblem& problem, const Machine& machine) {
  constexpr std::int64_t least_uses = 2;
  const bool has_uses = problem.m > amx_tile_rows && problem.n >= least_uses * problem.k;
  const bool is_small = problem.m * problem.k * element_bytes(problem) <= machine.l2_bytes / 4;
  return can_slab(problem) && (problem.scales != no_value || (has_uses && is_small));
}

/// Whether results are so many that stores go far, as logits do: products would wait behind them.
bool stores_far(const MatmulProblem& problem, const Machine& machine) {
  return problem.m * problem.n > 2 * machine.l2_bytes;
}

MatmulPoint tiled_point(const MatmulProblem& problem, const Machine& machine) {
  RegisterTile tile{even_rows(problem, std::int64_t{2} * amx_tile_rows), 2};
  if (problem.m <= amx_tile_rows) tile.panels = 4;
  if (suits_three_panels(problem, machine)) tile.panels = 3;
  tile.panels = std::min(tile.panels, panel_count(problem));
  MatmulPoint point{.rows = tile.rows,
                    .panels = tile.panels,
                    .copy_a = suits_slabs(problem, machine) ? in_slabs : 0,
                    .overlap = stores_far(problem, machine) ? 0 : 1};
  set_blocking(problem, machine, tile, point);
  return point;
}

/// A kernel of either space, as it was read.
struct AmxMatmul {
  const Kernel& kernel;
  const Machine& machine;
  MatmulProblem problem;
  bool has_weight;  ///< on the right: matmul_amx
  MatmulPoint heuristic;

  [[nodiscard]] std::vector<Range<MatmulPoint>> ranges() const;
  [[nodiscard]] Candidate at(const MatmulPoint& point) const;
  [[nodiscard]] double cost(const MatmulPoint& point) const;
};

std::vector<Range<MatmulPoint>> AmxMatmul::ranges() const {
  using P = MatmulPoint;
  const MatmulPoint& first = heuristic;
  std::vector<Range<P>> ranges = {
      {"rows", &P::rows, starting_with(first.rows, up_to(problem.m, {32, 16, 48, 64}))},
      {"panels", &P::panels, starting_with(first.panels, up_to(panel_count(problem), {2, 4, 1, 3}))}};
  for (Range<P>& range : blocking_ranges(problem, first)) {
    if (range.number == &P::copy_a && can_slab(problem))
      range.values = starting_with(first.copy_a, {0, 1, in_slabs});
    ranges.push_back(std::move(range));
  }
  ranges.push_back({"overlap", &P::overlap, {1, 0}});
  if (has_weight) ranges.push_back(stream_range());
  return ranges;
}

void write_amx_fold(ScheduleWriter& writer, const std::string& fold, const std::string& out,
                    const MatmulTiling& tiling, bool overlaps) {
  writer.add("{}.compute_at({}, t).store_in(MemoryType::Stack);", fold, out);
  writer.add("{}.bound_extent(v, {}).bound_extent(p, {}).bound_extent(d1, {});", fold, panel_width,
             tiling.tile.panels, tiling.tile.rows);
  writer.add("{}.vectorize(v);", fold);
  writer.add("{}.update(0).{}();", fold, amx_tiles_directive);
  if (overlaps) writer.add("{}.{}();", fold, overlap_epilogue_directive);
}

Candidate AmxMatmul::at(const MatmulPoint& point) const {
  const MatmulTiling tiling = tiling_of(problem, point);
  const auto row_tiles = static_cast<int>(ceil_div(tiling.tile.rows, amx_tile_rows));
  if (amx_registers(row_tiles, static_cast<int>(tiling.tile.panels)) > amx_register_count) {
    throw UnsupportedError("{} rows of {} panels do not fit {} tile registers", tiling.tile.rows,
                           tiling.tile.panels, amx_register_count);
  }
  const std::string out = output_stage(kernel, problem.output);
  const std::string& name = kernel.body.value(problem.anchor).name;
  ScheduleWriter writer;
  const std::vector<std::string> batch = batch_loops(kernel, problem);
  write_output(writer, kernel, out, tiling, machine, batch);
  write_amx_fold(writer, name + "_fold", out, tiling, point.overlap != 0);
  const std::int64_t slab = point.copy_a == in_slabs ? slab_of(problem) : 0;
  if (point.copy_a != 0 || problem.scales != no_value || !reads_rows_in_place(kernel.body, problem.a))
    write_left(writer, name, machine, problem, slab);
  if (!has_weight) write_panels(writer, name + "_panels", machine, problem, batch);
  if (point.stream_ahead > 0) write_stream(writer, kernel, problem.weight, out, "t", point.stream_ahead);
  Form form{has_weight ? "matmul_panels" : "matmul_activations", {}};
  if (slab > 0) form.parameters["slab"] = slab;
  return {form, writer.take()};
}

/// A step of a block takes 16 cycles a product, or as long as its operands' tiles take from the L2.
double AmxMatmul::cost(const MatmulPoint& point) const {
  const MatmulTiling tiling = tiling_of(problem, point);
  const double row_tiles = static_cast<double>(ceil_div(tiling.tile.rows, amx_tile_rows));
  const auto panels = static_cast<double>(tiling.tile.panels);
  constexpr double product_cycles = 16;
  constexpr double load_cycles = 14;
  constexpr double latency = 52;
  const double step =
      std::max({product_cycles * row_tiles * panels, load_cycles * (row_tiles + panels), latency});
  const double blocks = static_cast<double>(problem.batch * ceil_div(problem.m, tiling.tile.rows) *
                                            ceil_div(panel_count(problem), tiling.tile.panels));
  const double epilogue = 8 * static_cast<double>(tiling.tile.rows) * panels + 100;
  const double cycles =
      blocks * (step * static_cast<double>(ceil_div(problem.fold_steps(), amx_tile_groups)) + epilogue);
  const double tasks = task_count(problem, tiling);
  constexpr double task_cycles = 600;
  return seconds_per_cycle * (cycles / machine.threads * imbalance(tasks, machine.threads) +
                              task_cycles * tasks / machine.threads);
}

Binding bind_amx_panels(const Kernel& kernel, const Machine& machine) {
  const Reading<MatmulProblem> reading = read_matmul(kernel);
  if (!reading.refusal.empty()) return {reading.refusal};
  const MatmulProblem& problem = reading.problem;
  if (std::string refusal = amx_refusal(problem, machine); !refusal.empty()) return {refusal};
  if (problem.weight == no_value) return {"its right operand is no weight of its own"};
  // Weights are all that takes time then: vectors read them as fast, or faster where tiles are slow.
  if (problem.m == 1 && problem.scales == no_value) return {"one row leaves tiles empty"};
  MatmulPoint point = tiled_point(problem, machine);
  // One tile of rows leaves nothing to do while weights come: prefetches would only be more loads.
  if (problem.m > amx_tile_rows)
    point.stream_ahead = stream_distance(problem, machine, tiling_of(problem, point));
  return bind_space(AmxMatmul{kernel, machine, problem, true, point});
}

Binding bind_amx_activations(const Kernel& kernel, const Machine& machine) {
  const Reading<MatmulProblem> reading = read_matmul(kernel);
  if (!reading.refusal.empty()) return {reading.refusal};
  const MatmulProblem& problem = reading.problem;
  if (std::string refusal = amx_refusal(problem, machine); !refusal.empty()) return {refusal};
  if (problem.scales != no_value) return {"its right operand is a quantised weight"};
  return bind_space(AmxMatmul{kernel, machine, problem, false, tiled_point(problem, machine)});
}

}  // namespace

const Space matmul_amx_space = {"matmul_amx", bind_amx_panels};
const Space matmul_amx_activations_space = {"matmul_amx_activations", bind_amx_activations};

}  // namespace sylvite
