#include <algorithm>

#include "base/error.h"
#include "lowering/algorithms/algorithm.h"
#include "lowering/algorithms/problems.h"
#include "schedules/bind_space.h"
#include "schedules/directives/skip_idle.h"
#include "schedules/spaces/register_tile.h"
#include "schedules/spaces/schedule_writer.h"
#include "schedules/spaces/spaces.h"

// Space attention_chunks. One task is a batch entry; it goes through the chunks of key positions, of which everything but
// the sums stays in the L1.

namespace sylvite {
namespace {

constexpr std::int64_t lanes = panel_width;

struct ChunkNumbers {
  std::int64_t chunk = 64;
  std::int64_t keys = 4;     ///< whose products with all rows are in registers
  std::int64_t columns = 4;  ///< vectors of columns, of all rows, likewise
};

const std::vector<std::int64_t> chunk_choices = {64, 32, 16, 128};

struct AttentionChunks {
  const Kernel& kernel;
  const Machine& machine;
  AttentionProblem problem;
  ChunkNumbers heuristic;

  [[nodiscard]] std::vector<Range<ChunkNumbers>> ranges() const;
  [[nodiscard]] Candidate at(const ChunkNumbers& point) const;
};

std::vector<Range<ChunkNumbers>> AttentionChunks::ranges() const {
  const auto range = ranges_from(heuristic);
  using N = ChunkNumbers;
  std::vector<std::int64_t> columns = {4, 2, 1};
  std::erase_if(columns, [&](std::int64_t vectors) { return problem.columns / lanes % vectors != 0; });
  return {range("chunk", &N::chunk, up_to(problem.positions, chunk_choices)),
          range("keys", &N::keys, {4, 8, 2, 1}), range("columns", &N::columns, columns)};
}

/// The products of a chunk's keys with all rows, and what a softmax makes of them.
void write_scores(ScheduleWriter& writer, const std::string& name, const ChunkNumbers& point,
                  const std::string& chunks, std::int64_t rows) {
  const std::int64_t vector = std::min(point.chunk, lanes);
  const std::string dot = name + "_dot";
  const std::string sums = name + "_lanes";
  writer.add("{}.compute_at({}).store_in(MemoryType::Stack).vectorize(i, {});", dot, chunks, vector);
  writer.add(
      "{}.update(0).split(i, g, i, {}, TailStrategy::GuardWithIf).reorder(r0, i, d1, g, s).atomic()."
      "vectorize(r0).unroll(i).unroll(d1);",
      dot, point.keys);
  writer.add("{}.compute_at({}, g).store_in(MemoryType::Register);", sums, dot);
  writer.add("{}.bound_extent(v, {}).bound_extent(i, {}).bound_extent(d1, {});", sums, lanes, point.keys,
             rows);
  writer.add("{}.vectorize(v).unroll(i).unroll(d1);", sums);
  writer.add("{}.update(0).reorder(v, i, d1, r0).vectorize(v).unroll(i).unroll(d1);", sums);
  for (const char* suffix : {"_logit", "_exp"})
    writer.add("{}{}.compute_at({}).store_in(MemoryType::Stack).vectorize(i, {});", name, suffix, chunks,
               vector);
  for (const char* suffix : {"_top", "_share"}) {
    writer.add("{}{}.compute_at({}).store_in(MemoryType::Stack);", name, suffix, chunks);
    writer.add("{}{}.update(0).reorder(r0, d1, s).atomic().vectorize(r0, {});", name, suffix, point.chunk);
  }
}

Candidate AttentionChunks::at(const ChunkNumbers& point) const {
  const std::string out = output_stage(kernel, problem.output);
  const std::string& name = kernel.body.value(problem.anchor).name;
  const std::string state = name + "_state";
  const std::string part = name + "_part";
  const std::int64_t columns = point.columns * lanes;
  if (problem.columns % columns != 0 || point.chunk % point.keys != 0)
    throw UnsupportedError("{} columns in parts of {}, or chunks of {} keys in parts of {}, are not whole",
                           problem.columns, columns, point.chunk, point.keys);
  ScheduleWriter writer;
  std::vector<std::string> order = {"d0", problem.row_loop};
  order.insert(order.end(), problem.batch_loops.begin(), problem.batch_loops.end());
  writer.add("{}.reorder({}).vectorize(d0, {}, TailStrategy::GuardWithIf);", out, fmt::join(order, ", "),
             lanes);
  if (problem.batch_loops.empty()) {
    writer.add("{}.compute_root();", state);
  } else {
    const std::string task = machine.threads > 1
                                 ? writer.parallelize(out, problem.batch_loops, loops_of_entries(kernel, 0))
                                 : problem.batch_loops.front();
    writer.add("{}.compute_at({}, {}).store_in(MemoryType::Stack);", state, out, task);
  }
  writer.add("{}.vectorize(d0, {});", state, lanes);
  writer.add(
      "{}.update(0).split(d0, t, d0, {}, TailStrategy::GuardWithIf).reorder(d0, d1, t, r0).vectorize(d0, "
      "{});",
      state, columns, lanes);
  write_scores(writer, name, point, state + ", r0", problem.rows);
  writer.add("{}.compute_at({}, t).store_in(MemoryType::Register);", part, state);
  writer.add("{0}.bound_extent(d0, {1}).bound_extent(d1, {2}).vectorize(d0, {3}).unroll(d0).unroll(d1);",
             part, columns, problem.rows, lanes);
  writer.add("{}.update(0).split(d0, p, v, {}).reorder(v, p, d1, r0, s).vectorize(v).unroll(p).unroll(d1);",
             part, lanes);
  if (hiding_mask(kernel.body, kernel.body.node(kernel.anchor)) != no_value) {
    writer.add("{}.update(0).{}(r0);", state, skip_idle_directive);
    writer.add("{}_alive.compute_root().update(0).reorder(r0, r1, s).atomic().vectorize(r0, {});", name,
               point.chunk);
  }
  return {Form{"attention_chunks", {{"chunk", point.chunk}}}, writer.take()};
}

Binding bind_attention_chunks(const Kernel& kernel, const Machine& machine) {
  const Reading<AttentionProblem> reading = read_attention_chunks(kernel);
  if (!reading.refusal.empty()) return {reading.refusal};
  const AttentionProblem& problem = reading.problem;
  ChunkNumbers first;
  first.chunk = up_to(problem.positions, chunk_choices).front();
  // All rows times so many vectors, beside those that are loaded.
  const std::int64_t room = (machine.vector_registers - 6) / problem.rows * machine.vector_floats / lanes;
  first.columns = std::clamp<std::int64_t>(room, 1, problem.columns / lanes);
  while (problem.columns / lanes % first.columns != 0) --first.columns;
  first.keys = std::clamp<std::int64_t>(room, 1, 4);
  while (first.chunk % first.keys != 0) --first.keys;
  return bind_space(AttentionChunks{kernel, machine, problem, first});
}

}  // namespace

const Space attention_chunks_space = {"attention_chunks", bind_attention_chunks, {}, Space::Open::all};

}  // namespace sylvite
