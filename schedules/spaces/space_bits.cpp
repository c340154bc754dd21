#include <algorithm>

#include "lowering/algorithms/algorithm.h"
#include "lowering/algorithms/bits_words.h"
#include "schedules/spaces/matmul_loops.h"
#include "schedules/spaces/spaces.h"

// Space matmul_bits: products by weights of a few bits, which are widened in registers: the loops of matmul_loops.h. A
// tile's columns of a block are widened once for all of its rows; the sums of a block are scaled behind it.

namespace sylvite {
namespace {

struct BitsMatmul {
  const Kernel& kernel;
  const Machine& machine;
  BitsProblem problem;
  MatmulPoint heuristic;

  [[nodiscard]] std::vector<Range<MatmulPoint>> ranges() const;
  [[nodiscard]] Candidate at(const MatmulPoint& point) const;
  [[nodiscard]] double cost(const MatmulPoint& point) const;
};

/// Processors with AVX2 multiply steps in pairs, of which sums fit i16; later ones four at once, into i32.
bool uses_pairs(const BitsProblem& problem, const Machine& machine) {
  return problem.is_quantized && has_small_tiles(machine) && pair_words(problem) > 0;
}

const std::vector<std::int64_t> bits_rows = {4, 6, 3, 2, 1, 8};
const std::vector<std::int64_t> bits_panels = {4, 2, 1};

std::vector<Range<MatmulPoint>> BitsMatmul::ranges() const {
  using P = MatmulPoint;
  const MatmulProblem& product = problem.product;
  std::vector<Range<P>> ranges = {
      {"rows", &P::rows, starting_with(heuristic.rows, up_to(product.least_m, bits_rows))},
      {"panels", &P::panels, starting_with(heuristic.panels, up_to(panel_count(product), bits_panels))}};
  for (Range<P>& range : blocking_ranges(product, heuristic))
    if (range.number != &P::copy_a) ranges.push_back(std::move(range));
  ranges.push_back({"unroll_k", &P::unroll_k, starting_with(heuristic.unroll_k, {8, 4, 2, 1})});
  ranges.push_back(stream_range());
  return ranges;
}

/// What is made of the left operand before.
void write_unpacked_rows(ScheduleWriter& writer, const std::string& name, const BitsProblem& problem,
                         const Machine& machine, bool copies) {
  const std::int64_t lanes = std::min<std::int64_t>(problem.block, std::int64_t{4} * panel_width);
  const auto whole = [&](const std::string& stage) {
    writer.add("{}.compute_root();", stage);
    if (machine.threads > 1 && problem.product.least_m > 1) writer.add("{}.parallel(d1);", stage);
  };
  const auto folded = [&](const char* suffix) {
    const std::string stage = name + suffix;
    writer.add("{}.compute_root();", stage);
    writer.add("{}.update(0).reorder(r0, s, d1).atomic().vectorize(r0, {});", stage, lanes);
    if (machine.threads > 1 && problem.product.least_m > 1) writer.add("{}.update(0).parallel(d1);", stage);
  };
  if (problem.is_quantized) {
    folded("_peak");
    for (const char* stage : {"_inverse", "_scale"})
      writer.add("{}{}.compute_root().vectorize(s, {}, TailStrategy::GuardWithIf);", name, stage,
                 panel_width);
  }
  if (copies) {
    whole(name + "_a");
    writer.add("{}_a.vectorize(d0, {});", name, lanes);
  }
  whole(name + "_units");
  if (problem.is_quantized)
    writer.add("{0}_units.bound(u, 0, {1}).vectorize(u).bound(j, 0, {2}).unroll(j).bound(g, 0, {3});", name,
               word_bytes, problem.per_byte(), block_words(problem));
  else
    writer.add("{0}_units.bound(j, 0, {1}).vectorize(j).bound(g, 0, {2});", name, word_numbers(problem),
               block_words(problem));
  folded("_total");
}

/// Sums of pairs in i16, all at once.
void write_pairs(ScheduleWriter& writer, const std::string& name, const RegisterTile& tile,
                 const std::string& further) {
  const std::string pairs = name + "_pairs";
  writer.add("{}.compute_at({}_part, r1).store_in(MemoryType::Register);", pairs, name);
  writer.add("{}.bound_extent(h, 2).bound_extent(v, {}).bound_extent(p, {}).bound_extent(d1, {});", pairs,
             panel_width, tile.panels, tile.rows);
  writer.add("{}.vectorize(h).vectorize(v).unroll(p).unroll(d1);", pairs);
  writer.add(
      "{}.update(0).reorder(r0, h, v, d1, r1, p, r2, c, s{}).atomic(true).vectorize(r0).vectorize(h)."
      "vectorize(v).unroll(p).unroll(d1).unroll(r1).unroll(r2);",
      pairs, further);
  writer.add(
      "{}_part.update(0).reorder(r0, v, p, d1, r1, "
      "s{}).atomic().vectorize(r0).vectorize(v).unroll(p).unroll(d1);",
      name, further);
}

void write_bits_fold(ScheduleWriter& writer, const std::string& name, const std::string& out,
                     const BitsProblem& problem, const RegisterTile& tile, std::int64_t unroll_k, bool pairs,
                     const std::vector<std::string>& batch) {
  const std::string fold = name + "_fold";
  const std::string part = name + "_part";
  const std::string further = batch.empty() ? "" : fmt::format(", {}", fmt::join(batch, ", "));
  writer.add("{}.compute_at({}, t).store_in(MemoryType::Register);", fold, out);
  writer.add("{}.compute_at({}, r0).store_in(MemoryType::Register);", part, fold);
  for (const std::string& stage : {fold, part}) {
    writer.add("{}.bound_extent(v, {}).bound_extent(p, {}).bound_extent(d1, {});", stage, panel_width,
               tile.panels, tile.rows);
    writer.add("{}.vectorize(v).unroll(p).unroll(d1);", stage);
  }
  writer.add("{}.update(0).reorder(v, p, d1, r0{}).vectorize(v).unroll(p).unroll(d1);", fold, further);
  if (pairs)
    write_pairs(writer, name, tile, further);
  else if (problem.is_quantized)
    writer.add(
        "{}.update(0).reorder(r0, v, d1, r1, p, r2, "
        "s{}).atomic().vectorize(r0).vectorize(v).unroll(p).unroll(d1)."
        "unroll(r1).unroll(r2, {});",
        part, further, unroll_k);
  else
    writer.add(
        "{}.update(0).reorder(v, d1, r0, p, r1, s{}).vectorize(v).unroll(p).unroll(d1).unroll(r0).unroll(r1, "
        "{});",
        part, further, unroll_k);
}

Candidate BitsMatmul::at(const MatmulPoint& point) const {
  const MatmulProblem& product = problem.product;
  const MatmulTiling tiling = tiling_of(product, point);
  const std::string out = output_stage(kernel, product.output);
  const std::string& name = kernel.body.value(product.anchor).name;
  const std::vector<std::string> batch = batch_loops(kernel, product);
  ScheduleWriter writer;
  write_output(writer, kernel, out, tiling, machine, batch);
  writer.add("{}.unroll(i);", out);
  Form form{"matmul_bits", {}};
  if (uses_pairs(problem, machine)) form.parameters["pairs"] = pair_words(problem);
  write_bits_fold(writer, name, out, problem, tiling.tile, std::min(point.unroll_k, block_words(problem)),
                  form.parameters.contains("pairs"), batch);
  write_single(writer, kernel, name + "_fold", batch);
  write_unpacked_rows(writer, name, problem, machine,
                      problem.is_quantized || problem.is_padded() || product.a_is_computed);
  if (point.stream_ahead > 0) write_stream(writer, kernel, product.weight, out, "t", point.stream_ahead);
  return {std::move(form), writer.take()};
}

double BitsMatmul::cost(const MatmulPoint& point) const {
  const MatmulProblem& product = problem.product;
  const MatmulTiling tiling = tiling_of(product, point);
  const double steps = static_cast<double>(product.k) / static_cast<double>(problem.unit());
  const auto rows = static_cast<double>(tiling.tile.rows);
  const double vectors = static_cast<double>(tiling.tile.panels) * (3 + rows);
  const double tiles = static_cast<double>(product.batch * ceil_div(product.m, tiling.tile.rows)) *
                       static_cast<double>(ceil_div(panel_count(product), tiling.tile.panels));
  const double tasks = task_count(product, tiling);
  return seconds_per_cycle * tiles * steps * vectors / 2 / machine.threads *
         imbalance(tasks, machine.threads);
}

Binding bind_bits(const Kernel& kernel, const Machine& machine) {
  const Reading<BitsProblem> reading = read_bits(kernel);
  if (!reading.refusal.empty()) return {reading.refusal};
  const BitsProblem& problem = reading.problem;
  const MatmulProblem& product = problem.product;
  const bool is_small = has_small_tiles(machine);
  MatmulPoint point;
  point.rows = std::min<std::int64_t>(product.least_m, is_small && problem.is_quantized ? 2 : 4);
  // Sums of steps wait for scales, one more of each column and row: with four rows they leave room for two panels. Of one
  // row a panel has too few sums for AVX2, where each waits for the one before it.
  const std::int64_t small_panels = problem.is_quantized || point.rows == 1 ? 2 : 1;
  const std::int64_t panels = is_small ? small_panels : problem.is_quantized && point.rows > 2 ? 2 : 4;
  point.panels = std::min(panel_count(product), panels);
  set_blocking(product, machine, {point.rows, point.panels}, point);
  point.unroll_k = problem.is_quantized ? 8 : 4;
  return bind_space(BitsMatmul{kernel, machine, problem, point});
}

}  // namespace

const Space matmul_bits_space = {"matmul_bits", bind_bits, {}, Space::Open::all};

}  // namespace sylvite
