#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "lowering/algorithms/algorithm.h"
#include "lowering/algorithms/problems.h"
#include "schedules/bind_space.h"
#include "schedules/spaces/conv_source.h"
#include "schedules/spaces/register_tile.h"
#include "schedules/spaces/spaces.h"

// Space conv_rows: a convolution, pointwise work and a depthwise convolution of its result, without storing
// that result whole. The output is stored as (channel in block, x, y, block, batch) = d0..d4. Its loops,
// innermost first:
//   d0, i   the channels of a block, `pixels` pixels of a line   in registers
//   t, q    the tiles of a line, `blocks` blocks of channels
//   l       `lines` lines: one task with t and q
//   b, ll   the tasks; then the batch
// Each task keeps the rows of its input that the window covers, in a ring: line l computes those that line l
// - 1 did not read, `row_pixels` pixels of all its blocks at a time in registers. Rows at the borders of
// tasks are computed twice.

namespace sylvite {
namespace {

struct ConvRowsNumbers {
  std::int64_t pixels = 1;
  std::int64_t row_pixels = 1;
  std::int64_t blocks = 1;
  std::int64_t lines = 1;
  std::int64_t copy_source = 0;
};

/// A point's numbers, clamped to the problem's extents.
struct ConvRowsTiling {
  std::int64_t pixels;
  std::int64_t row_pixels;
  std::int64_t blocks;
  std::int64_t lines;
};

/// Pixels of a row that the second convolution reads.
std::int64_t row_width(const ConvProblem& second) {
  return (second.out_width - 1) * second.stride_x + (second.kernel_x - 1) * second.dilation_x + 1;
}

ConvRowsTiling conv_rows_tiling(const ConvRowsProblem& problem, const ImageRoom& room,
                                const ConvRowsNumbers& point) {
  return {std::min(point.pixels, room.pixels), std::min(point.row_pixels, row_width(problem.second)),
          std::min(point.blocks, problem.second.out_blocks()),
          std::min(point.lines, problem.second.out_height)};
}

RegisterTile row_tile(const ConvRowsProblem& problem, const ConvRowsTiling& tiling) {
  return {tiling.row_pixels, tiling.blocks, problem.second.block};
}

double row_cycles(const ConvRowsProblem& problem, const Machine& machine, const ConvRowsTiling& tiling) {
  return tiled_cycles(machine, row_tile(problem, tiling),
                      static_cast<double>(ceil_div(row_width(problem.second), tiling.row_pixels)),
                      static_cast<double>(ceil_div(problem.second.out_blocks(), tiling.blocks)),
                      static_cast<double>(problem.first.fold_steps()));
}

double line_cycles(const ConvRowsProblem& problem, const Machine& machine, const ConvRowsTiling& tiling) {
  return tiled_cycles(machine, {tiling.pixels, 1, problem.second.block},
                      static_cast<double>(ceil_div(problem.second.out_width, tiling.pixels)),
                      static_cast<double>(problem.second.out_blocks()),
                      static_cast<double>(problem.second.fold_steps()));
}

double conv_rows_tasks(const ConvRowsProblem& problem, const ConvRowsTiling& tiling) {
  return static_cast<double>(problem.second.batch * ceil_div(problem.second.out_height, tiling.lines) *
                             ceil_div(problem.second.out_blocks(), tiling.blocks));
}

const std::vector<std::int64_t> conv_rows_pixels = {14, 7, 8, 10, 12, 6, 5, 4, 3, 2, 1};
const std::vector<std::int64_t> conv_rows_rows = {14, 13, 12, 11, 10, 9, 8, 7, 26, 24, 6, 5, 4, 2, 1};

bool has_room(const ConvRowsProblem& problem, const Machine& machine, const ConvRowsTiling& tiling) {
  return fits_registers(machine, row_tile(problem, tiling)) && 2 * tiling.pixels <= machine.vector_registers;
}

bool needs_copy(const ConvProblem& first) {
  return first.padded || first.x_is_computed || !first.x_is_blocked;
}

ConvRowsNumbers first_conv_rows_point(const ConvRowsProblem& problem, const ImageRoom& room,
                                      const Machine& machine) {
  const ConvProblem& second = problem.second;
  ConvRowsTiling best{1, 1, 1, 1};
  double best_cycles = row_cycles(problem, machine, best) + line_cycles(problem, machine, best);
  for (const std::int64_t pixels : up_to(room.pixels, conv_rows_pixels)) {
    for (const std::int64_t row_pixels : up_to(row_width(second), conv_rows_rows)) {
      for (const std::int64_t blocks : up_to(second.out_blocks(), {2})) {
        const ConvRowsTiling tiling{pixels, row_pixels, blocks, 1};
        const double cycles = row_cycles(problem, machine, tiling) + line_cycles(problem, machine, tiling);
        if (!has_room(problem, machine, tiling) || cycles >= best_cycles) continue;
        best = tiling;
        best_cycles = cycles;
      }
    }
  }
  const std::int64_t others = second.batch * ceil_div(second.out_blocks(), best.blocks);
  const std::int64_t threads = machine.threads;
  const std::int64_t least = threads > 1 ? std::max(2 * threads, ceil_div(4 * threads, others)) : 2;
  return {.pixels = best.pixels,
          .row_pixels = best.row_pixels,
          .blocks = best.blocks,
          .lines = tiles_in_task(second.out_height, least),
          .copy_source = needs_copy(problem.first) ? 1 : 0};
}

struct ConvRows {
  const Kernel& kernel;
  const Machine& machine;
  ConvRowsProblem problem;
  ImageRoom room;  ///< of the second
  ConvRowsNumbers heuristic;

  [[nodiscard]] std::vector<Range<ConvRowsNumbers>> ranges() const;
  [[nodiscard]] Candidate at(const ConvRowsNumbers& point) const;
  [[nodiscard]] double cost(const ConvRowsNumbers& point) const;
};

std::vector<Range<ConvRowsNumbers>> ConvRows::ranges() const {
  const ConvProblem& second = problem.second;
  const auto range = ranges_from(heuristic);
  return {range("row_pixels", &ConvRowsNumbers::row_pixels, up_to(row_width(second), conv_rows_rows)),
          range("blocks", &ConvRowsNumbers::blocks, up_to(second.out_blocks(), {2, 1, 3})),
          range("lines", &ConvRowsNumbers::lines, up_to(second.out_height, {14, 7, 28, 4, 56, 2})),
          range("pixels", &ConvRowsNumbers::pixels, up_to(room.pixels, conv_rows_pixels)),
          range("copy_source", &ConvRowsNumbers::copy_source, {0, 1})};
}

/// The loop that is one task: all of them in parallel, or the innermost.
std::string write_conv_rows_output(ScheduleWriter& writer, const std::string& out,
                                   const ConvRowsTiling& tiling, const ImageRoom& room,
                                   const Machine& machine) {
  writer.add("{}.split(d3, b, q, {}, TailStrategy::ShiftInwards);", out, tiling.blocks);
  writer.add("{}.split(d1, t, i, {}, TailStrategy::ShiftInwards);", out, tiling.pixels);
  const char* tail = tiling.lines > room.lines ? "GuardWithIf" : "ShiftInwards";  // of images that have fewer
  writer.add("{}.split(d2, ll, l, {}, TailStrategy::{});", out, tiling.lines, tail);
  writer.add("{}.reorder(d0, i, t, q, l, b, ll, d4).vectorize(d0).unroll(i);", out);
  return machine.threads > 1 ? writer.parallelize(out, {"b", "ll", "d4"}) : "b";
}

void write_second(ScheduleWriter& writer, const ConvProblem& second, const std::string& fold,
                  const std::string& out) {
  writer.add("{}.compute_at({}, t).store_in(MemoryType::Register).vectorize(d0).unroll(d1);", fold, out);
  writer.add("{}.update(0).reorder(d0, d1, d2, d3, r0, r1, d4).vectorize(d0).unroll(d1);", fold);
  if (second.kernel_x * second.kernel_y <= 25) writer.add("{}.update(0).unroll(r0).unroll(r1);", fold);
}

void write_conv_rows(ScheduleWriter& writer, const ConvProblem& first, const ConvRowsTiling& tiling,
                     const std::string& fold, const std::string& rows) {
  writer.add("{}.split(d1, t, i, {}, TailStrategy::RoundUp);", rows, tiling.row_pixels);
  writer.add("{}.reorder(d0, d3, i, t, d2, d4).vectorize(d0).unroll(d3).unroll(i);", rows);
  writer.add("{}.compute_at({}, t).store_in(MemoryType::Register);", fold, rows);
  writer.add("{}.vectorize(d0).unroll(d3).unroll(d1);", fold);
  writer.add("{}.update(0).reorder(d0, d3, d1, d2, r0, r1, r2, r3, d4).vectorize(d0).unroll(d3).unroll(d1);",
             fold);
  // Blocks of channels have loops that are long enough; unrolled, their addresses take registers.
  if (!first.x_is_blocked && first.fold_block <= unrolled_channels)
    writer.add("{}.update(0).unroll(r0);", fold);
}

Candidate ConvRows::at(const ConvRowsNumbers& point) const {
  const ConvRowsTiling tiling = conv_rows_tiling(problem, room, point);
  if (!has_room(problem, machine, tiling)) {
    throw UnsupportedError("{} pixels of {} blocks, or a window of {}, do not fit {} vector registers",
                           tiling.row_pixels, tiling.blocks, tiling.pixels, machine.vector_registers);
  }
  const std::string out = output_stage(kernel, problem.second.output);
  const std::string& first = kernel.body.value(problem.first.anchor).name;
  const std::string& second = kernel.body.value(problem.second.anchor).name;
  ScheduleWriter writer;
  const std::string task = write_conv_rows_output(writer, out, tiling, room, machine);
  write_second(writer, problem.second, second + "_fold", out);
  writer.add("{}_in.store_at({}, {}).compute_at({}, l);", second, out, task, out);
  write_conv_rows(writer, problem.first, tiling, first + "_fold", second + "_in");
  if (room.is_open) {  // all but the first and last tiles of a row, which take a part of a line each
    write_few_edges(writer, second + "_in", {"d2"});
    write_few_edges(writer, out, {"t", "l"});
  }
  if (point.copy_source != 0) write_conv_source(writer, problem.first, first + "_in", machine);
  return {Form{"conv_rows", {}}, writer.take()};
}

double ConvRows::cost(const ConvRowsNumbers& point) const {
  const ConvProblem& second = problem.second;
  const ConvRowsTiling tiling = conv_rows_tiling(problem, room, point);
  const std::int64_t rows_in_task =
      (tiling.lines - 1) * second.stride_y + (second.kernel_y - 1) * second.dilation_y + 1;
  const auto parts = static_cast<double>(second.batch * ceil_div(second.out_height, tiling.lines));
  double cycles = parts * (static_cast<double>(rows_in_task) * row_cycles(problem, machine, tiling) +
                           static_cast<double>(tiling.lines) * line_cycles(problem, machine, tiling));
  if (point.copy_source == 0 && needs_copy(problem.first)) cycles *= 1.5;
  const double tasks = conv_rows_tasks(problem, tiling);
  constexpr double task_cycles = 1000;
  return seconds_per_cycle / machine.threads *
         (cycles * imbalance(tasks, machine.threads) + task_cycles * tasks);
}

Binding bind_conv_rows(const Kernel& kernel, const Machine& machine) {
  const Reading<ConvRowsProblem> reading = read_conv_rows(kernel);
  if (!reading.refusal.empty()) return {reading.refusal};
  const ImageRoom room = room_of(kernel, reading.problem.second);
  return bind_space(ConvRows{kernel, machine, reading.problem, room,
                             first_conv_rows_point(reading.problem, room, machine)});
}

}  // namespace

const Space conv_rows_space = {"conv_rows", bind_conv_rows, {}, Space::Open::all};

}  // namespace sylvite
