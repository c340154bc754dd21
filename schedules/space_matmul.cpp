#include <algorithm>

#include "base/error.h"
#include "lowering/problems.h"
#include "schedules/register_tile.h"
#include "schedules/spaces.h"

// Spaces matmul_panels and matmul_activations. The loops, innermost first:
//   v, q    the 16 columns of a panel, `panels` panels          in registers
//   i       `rows` rows                                        in registers
//   t, g    `row_tiles` tiles of rows, `panel_groups` groups of panels: one task
//   tt, gg  the tasks, `rows_outer` says which is outer; then the batch
// Tails are shifted inwards: some elements are computed twice, so the output must alias no input.

namespace sylvite {
namespace {

/// A point's numbers, clamped to the problem's extents.
struct Tiling {
  RegisterTile tile;
  std::int64_t row_tiles;     ///< tiles of rows in a task
  std::int64_t panel_groups;  ///< groups of panels in a task
  bool rows_outer;
};

std::int64_t panel_count(const MatmulProblem& problem) {
  return ceil_div(problem.n, panel_width);
}

/// 0 for parameters that only one of the spaces has.
std::int64_t optional(const Point& point, const std::string& name) {
  const auto found = point.find(name);
  return found == point.end() ? 0 : found->second;
}

Tiling tiling_of(const MatmulProblem& problem, const Point& point) {
  Tiling tiling{};
  tiling.tile.rows = std::min(get(point, "rows"), problem.m);
  tiling.tile.panels = std::min(get(point, "panels"), panel_count(problem));
  tiling.row_tiles = std::min(get(point, "row_tiles"), ceil_div(problem.m, tiling.tile.rows));
  tiling.panel_groups =
      std::min(get(point, "panel_groups"), ceil_div(panel_count(problem), tiling.tile.panels));
  tiling.rows_outer = get(point, "rows_outer") != 0;
  return tiling;
}

double task_count(const MatmulProblem& problem, const Tiling& tiling) {
  const std::int64_t rows = ceil_div(ceil_div(problem.m, tiling.tile.rows), tiling.row_tiles);
  const std::int64_t panels =
      ceil_div(ceil_div(panel_count(problem), tiling.tile.panels), tiling.panel_groups);
  return static_cast<double>(problem.batch * rows * panels);
}

double tile_cycles(const MatmulProblem& problem, const Machine& machine, const RegisterTile& tile) {
  return tiled_cycles(machine, tile, static_cast<double>(problem.batch * ceil_div(problem.m, tile.rows)),
                      static_cast<double>(ceil_div(panel_count(problem), tile.panels)),
                      static_cast<double>(problem.fold_steps()));
}

std::int64_t element_bytes(const MatmulProblem& problem) {
  return static_cast<std::int64_t>(dtype_size(problem.element));
}

const std::vector<std::int64_t> row_choices = {8, 6, 7, 10, 12, 13, 14, 5, 4, 3, 2, 1};
const std::vector<std::int64_t> panel_choices = {2, 4, 3, 1};

/// The register tile that the model likes best. Rows beyond 8 crowd one set of the L1 when k is a power of
/// two.
RegisterTile best_tile(const MatmulProblem& problem, const Machine& machine) {
  RegisterTile best{1, 1};
  double best_cycles = tile_cycles(problem, machine, best);
  for (const std::int64_t rows : up_to(problem.m, row_choices)) {
    for (const std::int64_t panels : up_to(panel_count(problem), panel_choices)) {
      const RegisterTile tile{rows, panels};
      const double crowding = rows > 8 ? 1.1 : 1.0;
      const double cycles = crowding * tile_cycles(problem, machine, tile);
      if (!fits_registers(machine, tile) || cycles >= best_cycles) continue;
      best = tile;
      best_cycles = cycles;
    }
  }
  return best;
}

/// Which operand stays in the L2 while the other passes by. One fits: the other passes once. Neither: rows in
/// blocks of half the L2, past which all panels come.
void set_blocking(const MatmulProblem& problem, const Machine& machine, const RegisterTile& tile,
                  Point& point) {
  const std::int64_t tiles = ceil_div(problem.m, tile.rows);
  const std::int64_t groups = ceil_div(panel_count(problem), tile.panels);
  const std::int64_t room = machine.l2_bytes / 2;
  const std::int64_t row_bytes = problem.k * element_bytes(problem);
  const bool keeps_right = groups * tile.panels * panel_width * row_bytes <= room;
  // All rows and a group of panels, else as many blocks of rows as must be, all alike.
  const std::int64_t group_bytes = tile.panels * panel_width * row_bytes;
  const bool keeps_left = problem.m * row_bytes + group_bytes <= machine.l2_bytes * 7 / 8;
  const std::int64_t fitting_tiles = std::max<std::int64_t>(1, room / row_bytes / tile.rows);
  const std::int64_t blocks = keeps_left ? 1 : ceil_div(tiles, fitting_tiles);
  point["row_tiles"] = keeps_right && tiles > 1 ? 1 : ceil_div(tiles, blocks);
  point["panel_groups"] = keeps_right && tiles > 1 ? groups : 1;
  point["rows_outer"] = 1;
}

Point heuristic_point(const MatmulProblem& problem, const Machine& machine) {
  const RegisterTile tile = best_tile(problem, machine);
  Point point = {{"rows", tile.rows},
                 {"panels", tile.panels},
                 {"unroll_k", 1},
                 {"copy_a", problem.a_is_computed ? 1 : 0}};
  set_blocking(problem, machine, tile, point);
  while (task_count(problem, tiling_of(problem, point)) < 2.0 * machine.threads) {
    std::int64_t& larger =
        point["row_tiles"] > point["panel_groups"] ? point["row_tiles"] : point["panel_groups"];
    if (larger <= 1) break;
    larger = ceil_div(larger, 2);
  }
  return point;
}

std::vector<Parameter> tiling_parameters(const MatmulProblem& problem, const Machine& machine) {
  const Point first = heuristic_point(problem, machine);
  const std::int64_t tiles = ceil_div(problem.m, first.at("rows"));
  const std::int64_t groups = ceil_div(panel_count(problem), first.at("panels"));
  const auto values = [&](const std::string& name, const std::vector<std::int64_t>& choices) {
    return Parameter{name, starting_with(first.at(name), choices)};
  };
  return {values("rows", up_to(problem.m, row_choices)),
          values("panels", up_to(panel_count(problem), panel_choices)),
          values("row_tiles", up_to(tiles, {tiles, 1, 2, 4, 8, 16})),
          values("panel_groups", up_to(groups, {1, 2, 4, 8, groups})),
          values("rows_outer", {0, 1}),
          values("unroll_k", {1, 2, 4}),
          values("copy_a", {0, 1})};
}

/// "d2, d3, ...": the product's batch loops, innermost first.
std::vector<std::string> batch_loops(const Kernel& kernel, const MatmulProblem& problem) {
  std::vector<std::string> loops;
  for (int d = 2; d < kernel.body.type(problem.anchor).rank(); ++d) loops.push_back(fmt::format("d{}", d));
  return loops;
}

/// Splits and orders the output's loops; with threads, every task loop becomes one parallel loop.
void write_output(ScheduleWriter& writer, const std::string& out, const Tiling& tiling,
                  const Machine& machine, std::vector<std::string> batch) {
  writer.add("{}.split(d0, p, v, {}, TailStrategy::GuardWithIf);", out, panel_width);
  writer.add("{}.split(p, g, q, {}, TailStrategy::ShiftInwards);", out, tiling.tile.panels);
  writer.add("{}.split(d1, t, i, {}, TailStrategy::ShiftInwards);", out, tiling.tile.rows);
  writer.add("{}.split(g, gg, g, {}, TailStrategy::GuardWithIf);", out, tiling.panel_groups);
  writer.add("{}.split(t, tt, t, {}, TailStrategy::GuardWithIf);", out, tiling.row_tiles);
  std::vector<std::string> tasks = {"tt", "gg"};
  if (tiling.rows_outer) std::swap(tasks[0], tasks[1]);
  tasks.insert(tasks.end(), batch.begin(), batch.end());
  writer.add("{}.reorder(v, q, i, t, g, {}).vectorize(v).unroll(q).unroll(i);", out, fmt::join(tasks, ", "));
  if (machine.threads == 1) return;
  std::string task = tasks[0];
  for (std::size_t i = 1; i < tasks.size(); ++i) {
    const std::string fused = fmt::format("task{}", i);
    writer.add("{}.fuse({}, {}, {});", out, task, tasks[i], fused);
    task = fused;
  }
  writer.add("{}.parallel({});", out, task);
}

void write_fold(ScheduleWriter& writer, const std::string& fold, const std::string& out, const Tiling& tiling,
                const MatmulProblem& problem, std::int64_t unroll_k, const std::vector<std::string>& batch) {
  writer.add("{}.compute_at({}, t).store_in(MemoryType::Register);", fold, out);
  writer.add("{}.bound_extent(v, {}).bound_extent(p, {}).bound_extent(d1, {});", fold, panel_width,
             tiling.tile.panels, tiling.tile.rows);
  writer.add("{}.vectorize(v).unroll(p).unroll(d1);", fold);
  const bool pairs = problem.pair() > 1;
  std::vector<std::string> order = {"v", "p", "d1", pairs ? "r1" : "r0"};
  if (pairs) order.insert(order.begin(), "r0");
  order.insert(order.end(), batch.begin(), batch.end());
  writer.add("{}.update(0).reorder({}){}.vectorize(v).unroll(p).unroll(d1);", fold, fmt::join(order, ", "),
             pairs ? ".atomic().vectorize(r0)" : "");
  if (unroll_k > 1) writer.add("{}.update(0).unroll({}, {});", fold, pairs ? "r1" : "r0", unroll_k);
}

/// The left operand as rows of its own, made before.
void write_left(ScheduleWriter& writer, const std::string& left, const Machine& machine, std::int64_t k) {
  writer.add("{}.compute_root();", left);
  if (k >= panel_width) writer.add("{}.vectorize(d0, {});", left, panel_width);
  if (machine.threads > 1) writer.add("{}.parallel(d1);", left);
}

/// The right operand in panels, made before.
void write_panels(ScheduleWriter& writer, const std::string& panels, const Machine& machine,
                  const MatmulProblem& problem, const std::vector<std::string>& batch) {
  writer.add("{}.compute_root().bound(v, 0, {}).vectorize(v);", panels, panel_width);
  if (problem.pair() > 1) writer.add("{}.bound(u, 0, {}).unroll(u);", panels, problem.pair());
  if (machine.threads > 1) writer.add("{}.parallel({});", panels, batch.empty() ? "p" : batch.back());
}

/// Weights that the L2 cannot keep come from further away in every run: they are fetched ahead. The next
/// groups of panels are other threads' tasks.
std::int64_t stream_distance(const MatmulProblem& problem, const Machine& machine, const Tiling& tiling) {
  const std::int64_t bytes = panel_count(problem) * panel_width * problem.k * element_bytes(problem);
  if (bytes <= machine.l2_bytes / 2) return 0;
  return tiling.panel_groups == 1 ? machine.threads : 1;
}

Candidate tiled_candidate(const Kernel& kernel, const Machine& machine, const MatmulProblem& problem,
                          const Point& point, const std::string& form) {
  const Tiling tiling = tiling_of(problem, point);
  const std::int64_t unroll_k = get(point, "unroll_k");
  if (!fits_registers(machine, tiling.tile)) {
    throw UnsupportedError("{} rows of {} panels do not fit {} vector registers", tiling.tile.rows,
                           tiling.tile.panels, machine.vector_registers);
  }
  if (unroll_k > 1 && problem.fold_steps() % unroll_k != 0)
    throw UnsupportedError("the {} steps of k are no multiple of {}", problem.fold_steps(), unroll_k);
  const std::string out = output_stage(kernel, problem.output);
  const std::string& name = kernel.body.value(problem.anchor).name;
  const std::vector<std::string> batch = batch_loops(kernel, problem);
  ScheduleWriter writer;
  write_output(writer, out, tiling, machine, batch);
  write_fold(writer, name + "_fold", out, tiling, problem, unroll_k, batch);
  if (get(point, "copy_a") != 0) write_left(writer, name + "_a", machine, problem.k);
  if (form == "matmul_activations" && get(point, "pack_b") != 0) {
    write_panels(writer, name + "_panels", machine, problem, batch);
  }
  if (const std::int64_t distance = optional(point, "stream_ahead"); distance > 0) {
    write_stream(writer, kernel, problem.weight, out, "t", distance);
  }
  return {Form{form, {}}, writer.take()};
}

double tiled_cost(const MatmulProblem& problem, const Machine& machine, const Point& point) {
  const Tiling tiling = tiling_of(problem, point);
  const double cycles = tile_cycles(problem, machine, tiling.tile);
  const double tasks = task_count(problem, tiling);
  constexpr double l3_bytes_per_cycle = 12;
  const auto right_bytes =
      static_cast<double>(panel_count(problem) * panel_width * problem.k * element_bytes(problem));
  const double passes = tiling.rows_outer ? std::max(1.0, tasks / static_cast<double>(problem.batch)) : 1.0;
  const double memory =
      right_bytes / l3_bytes_per_cycle *
      (right_bytes > static_cast<double>(machine.l2_bytes) / 2 ? std::min(passes, 8.0) : 1.0);
  constexpr double task_cycles = 600;
  constexpr double memory_bytes_per_cycle = 10;
  const double burst = optional(point, "stream_ahead") > 0 ? 0 : 0.5 * right_bytes / memory_bytes_per_cycle;
  return seconds_per_cycle *
         ((std::max(cycles, memory) + burst) / machine.threads * imbalance(tasks, machine.threads) +
          task_cycles * tasks / machine.threads);
}

// ---- matmul_panels
// -----------------------------------------------------------------------------------------------

std::string activations_refusal(const Kernel& kernel, const Machine& machine) {
  const Reading<MatmulProblem> reading = read_matmul(kernel);
  return reading.refusal.empty() ? product_refusal(machine, reading.problem.element) : reading.refusal;
}

std::string panels_refusal(const Kernel& kernel, const Machine& machine) {
  const std::string refusal = activations_refusal(kernel, machine);
  if (!refusal.empty()) return refusal;
  const Reading<MatmulProblem> reading = read_matmul(kernel);
  return reading.problem.weight == no_value ? "its right operand is no weight of its own" : "";
}

MatmulProblem problem_of(const Kernel& kernel) {
  return read_matmul(kernel).problem;
}

/// Reading b as it lies needs whole panels of neighbouring columns, and no pairs.
bool can_read_in_place(const Kernel& kernel, const MatmulProblem& problem) {
  return problem.pair() == 1 && problem.n % panel_width == 0 &&
         kernel.body.value(problem.b).producer == no_node;
}

}  // namespace

const Space matmul_panels_space = {
    .name = "matmul_panels",
    .refuses = panels_refusal,
    .parameters =
        [](const Kernel& kernel, const Machine& machine) {
          std::vector<Parameter> parameters = tiling_parameters(problem_of(kernel), machine);
          parameters.push_back({"stream_ahead", {0, 1, 2, 3}});
          return parameters;
        },
    .heuristic =
        [](const Kernel& kernel, const Machine& machine) {
          const MatmulProblem problem = problem_of(kernel);
          Point point = heuristic_point(problem, machine);
          point["stream_ahead"] = stream_distance(problem, machine, tiling_of(problem, point));
          return point;
        },
    .at =
        [](const Kernel& kernel, const Machine& machine, const Point& point) {
          return tiled_candidate(kernel, machine, problem_of(kernel), point, "matmul_panels");
        },
    .cost = [](const Kernel& kernel, const Machine& machine,
               const Point& point) { return tiled_cost(problem_of(kernel), machine, point); },
};

const Space matmul_activations_space = {
    .name = "matmul_activations",
    .refuses = activations_refusal,
    .parameters =
        [](const Kernel& kernel, const Machine& machine) {
          const MatmulProblem problem = problem_of(kernel);
          std::vector<Parameter> parameters = tiling_parameters(problem, machine);
          const bool in_place = can_read_in_place(kernel, problem);
          parameters.push_back(
              {"pack_b", in_place ? std::vector<std::int64_t>{1, 0} : std::vector<std::int64_t>{1}});
          return parameters;
        },
    .heuristic =
        [](const Kernel& kernel, const Machine& machine) {
          const MatmulProblem problem = problem_of(kernel);
          Point point = heuristic_point(problem, machine);
          // Packing pays when the rows read the panels often enough.
          point["pack_b"] = can_read_in_place(kernel, problem) && problem.m < 32 ? 0 : 1;
          return point;
        },
    .at =
        [](const Kernel& kernel, const Machine& machine, const Point& point) {
          return tiled_candidate(kernel, machine, problem_of(kernel), point, "matmul_activations");
        },
    .cost = [](const Kernel& kernel, const Machine& machine,
               const Point& point) { return tiled_cost(problem_of(kernel), machine, point); },
};

}  // namespace sylvite
