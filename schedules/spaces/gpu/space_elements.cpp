#include <algorithm>
#include <functional>
#include <numeric>

#include "base/error.h"
#include "frontend/ops/op_table.h"
#include "schedules/spaces/gpu/nest.h"
#include "schedules/spaces/spaces.h"

// Space gpu_elements: kernels without folds, pointwise work and index maps. Each thread computes `items`
// vectors of `vector` neighbouring elements, `threads` apart, so that a warp reads whole lines and has
// several loads under way.
//   vector   elements that a thread reads and writes at once; a divisor of the inner extent, or, with `across`, of all
//   across   whether vectors go on from row to row: of rows of odd extents, whose elements a thread would write one by one
//   items    vectors per thread: of one row, or, where rows are short, of as many rows
//   threads  threads of a block

namespace sylvite {
namespace {

/// The innermost loop once those are fused that every operand walks in step, up to one that is open.
RunExtent inner_run(const Kernel& kernel, const KernelFacts& facts) {
  if (facts.loops.empty()) return 1;
  RunExtent run = facts.loops.front();
  const std::size_t count = common_run(kernel, facts.extents);
  for (std::size_t d = 1; d < count && !run.is_open; ++d) run = run.fused_with(facts.loops[d]);
  return run;
}

/// The output's loops with those fused that every operand walks in step.
Dims fused_extents(const Kernel& kernel) {
  const Dims extents = loop_extents(kernel.body.type(kernel.body.outputs.front()));
  if (extents.empty()) return {1};
  const std::size_t run = common_run(kernel, extents);
  Dims fused(extents.begin() + static_cast<std::ptrdiff_t>(run) - 1, extents.end());
  for (std::size_t d = 0; d + 1 < run; ++d) fused.front() *= extents[d];
  return fused;
}

/// 16 bytes of the widest output, or fewer where the inner extent asks for it.
std::int64_t widest_element_vector(const Kernel& kernel, const KernelFacts& facts) {
  std::size_t size = 1;
  for (const ValueId output : kernel.body.outputs)
    size = std::max(size, dtype_size(kernel.body.type(output).dtype));
  std::int64_t vector = std::max<std::int64_t>(1, 16 / static_cast<std::int64_t>(size));
  const RunExtent run = inner_run(kernel, facts);
  while (!run.is_multiple_of(vector)) vector /= 2;
  return vector;
}

/// Rows of a thread: several where pointwise work reads some operand alike for all rows, if threads are left for all of the GPU.
std::int64_t most_items(const Kernel& kernel, std::int64_t vector) {
  constexpr std::int64_t least_threads = 1 << 17;
  if (kernel.kind != KernelClass::pointwise || kernel.open) return 1;
  const Dims extents = fused_extents(kernel);
  const std::int64_t rows =
      std::accumulate(extents.begin() + 1, extents.end(), std::int64_t{1}, std::multiplies<>());
  for (const std::int64_t items : {4, 2})
    if (rows % items == 0 && extents.front() / vector * (rows / items) >= least_threads) return items;
  return 1;
}

/// 16 bytes of the output where its rows are no whole vectors of two elements, but all of them together are; else 1.
std::int64_t vector_across(const Kernel& kernel, const KernelFacts& facts) {
  constexpr std::int64_t least_elements = 1 << 20;         // with fewer, a thread for each is as fast
  constexpr std::int64_t most_elements = (1LL << 31) - 1;  // of one loop
  const TensorType& type = kernel.body.type(kernel.body.outputs.front());
  const auto size = static_cast<std::int64_t>(dtype_size(type.dtype));
  const std::int64_t vector = 16 / size, count = kernel.open ? 0 : type.element_count();
  const bool has_odd_rows = !inner_run(kernel, facts).is_multiple_of(2);
  const bool is_large = count >= least_elements && count <= most_elements;
  return size == 2 && has_odd_rows && is_large && count % vector == 0 ? vector : 1;
}

struct ElementNumbers {
  std::int64_t vector = 1;
  std::int64_t across = 0;
  std::int64_t items = 1;
  std::int64_t threads = 128;
};

struct Elements {
  const Kernel& kernel;
  KernelFacts facts;
  ElementNumbers heuristic;

  [[nodiscard]] Form form() const {
    return kernel.body.outputs.size() > 1 ? Form{"device_together", {}} : device_form;
  }
  [[nodiscard]] std::vector<Range<ElementNumbers>> ranges() const {
    Range<ElementNumbers> vector{"vector", &ElementNumbers::vector, {}};
    for (std::int64_t width = heuristic.vector; width >= 1; width /= 2) vector.values.push_back(width);
    std::vector<Range<ElementNumbers>> ranges = {vector,
                                                 {"items", &ElementNumbers::items, {1, 2, 4}},
                                                 {"threads", &ElementNumbers::threads, {128, 256, 512}}};
    if (heuristic.across != 0) ranges.push_back({"across", &ElementNumbers::across, {1, 0}});
    return ranges;
  }
  [[nodiscard]] Candidate at(const ElementNumbers& point) const;
};

/// Rows below each other are items of a thread: what all rows read alike is loaded once. `loops` are then those that are left.
void share_columns(ScheduleWriter& writer, const std::string& stage, std::vector<std::string>& loops,
                   std::int64_t items) {
  std::string rows = loops[1];
  for (std::size_t i = 2; i < loops.size(); ++i) {
    const std::string fused = fmt::format("rows{}", i);
    writer.add("{}.fuse({}, {}, {});", stage, rows, loops[i], fused);
    rows = fused;
  }
  writer.add("{}.split({}, row, item, {}, TailStrategy::RoundUp);", stage, rows, items);
  writer.add("{}.reorder(item, {}, row).unroll(item);", stage, loops[0]);
  loops = {loops[0], "row"};
}

/// The loop that blocks, items and threads are cut from, once vectors are off: the inner one when it is long
/// enough to fill blocks, else all loops as one.
Candidate Elements::at(const ElementNumbers& point) const {
  const std::string& stage = facts.output;
  ScheduleWriter writer;
  if (facts.extents.empty()) {
    writer.add("{}.gpu_single_thread();", stage);
    return {form(), writer.take()};
  }
  LoopNest nest(writer, stage, facts.loops);
  const auto [vector, across, items, threads] = point;
  nest.fuse_inner(across != 0 ? facts.loops.size() : common_run(kernel, facts.extents));
  nest.drop_unit_loops();
  std::vector<std::string> loops;
  for (const LoopNest::Loop& loop : nest.loops()) loops.push_back(loop.name);
  std::int64_t inner = nest.loops().front().run.extent;
  if (!nest.loops().front().run.is_multiple_of(vector))
    throw UnsupportedError("a vector of {} does not divide {}", vector, inner);
  if (vector > 1) {
    writer.add("{}.split({}, vectors, lane, {}, TailStrategy::RoundUp).vectorize(lane);", stage, loops[0],
               vector);
    loops[0] = "vectors";
    inner /= vector;
  }
  if (inner < 2 * threads * items && loops.size() > 1) {
    std::int64_t rows = 1;
    for (std::size_t i = 1; i < loops.size(); ++i) rows *= nest.loops()[i].run.extent;
    if (items > 1 && rows % items == 0 && !kernel.open) share_columns(writer, stage, loops, items);
    gpu_thread_each(writer, stage, loops, threads);
    return {form(), writer.take()};
  }
  writer.add("{}.split({}, part, within, {}, TailStrategy::GuardWithIf);", stage, loops[0], threads * items);
  writer.add("{}.split(within, item, thread, {}, TailStrategy::RoundUp);", stage, threads);
  std::string order = vector > 1 ? "lane, item, thread, part" : "item, thread, part";
  for (std::size_t i = 1; i < loops.size(); ++i) order += ", " + loops[i];
  writer.add("{}.reorder({}).unroll(item);", stage, order);
  std::string block = "part";
  for (std::size_t i = 1; i < loops.size(); ++i) {
    const std::string fused = fmt::format("block{}", i);
    writer.add("{}.fuse({}, {}, {});", stage, block, loops[i], fused);
    block = fused;
  }
  writer.add("{}.gpu_blocks({}).gpu_threads(thread);", stage, block);
  return {form(), writer.take()};
}

Binding bind_elements(const Kernel& kernel, const Machine& machine) {
  if (std::string why = refuse_elements(kernel); !why.empty()) return {why};
  const KernelFacts facts = element_facts(kernel, machine);
  if (const std::int64_t across = vector_across(kernel, facts); across > 1)
    return bind_space(Elements{kernel, facts, {.vector = across, .across = 1}});
  const std::int64_t vector = widest_element_vector(kernel, facts);
  return bind_space(Elements{kernel, facts, {.vector = vector, .items = most_items(kernel, vector)}});
}

}  // namespace

const Space gpu_elements_space = {"gpu_elements", bind_elements, {}, Space::Open::all};

}  // namespace sylvite
