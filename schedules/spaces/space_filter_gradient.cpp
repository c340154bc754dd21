#include <algorithm>

#include "base/error.h"
#include "base/rounding.h"
#include "lowering/algorithms/problems.h"
#include "schedules/bind_space.h"
#include "schedules/spaces/loop_nest.h"
#include "schedules/spaces/register_tile.h"
#include "schedules/spaces/spaces.h"

// Space filter_gradient_blocked: sums of products of two images over their pixels, one for each tap of the window. A tile of
// `blocks` blocks of the gradient's channels, `channels` channels of the input and all taps of a window's line is kept in
// registers while the fold goes through `images` whole images. Loops around it, innermost first:
//   t, d3, q   the channels of a block of the input, the window's lines, and the gradient's blocks
//   r1         the images of a part, of which a padded block of channels is copied
//   d4, d6     the input's blocks, and the parts: tasks. With `apart` tiles of the gradient's blocks are, too, and copy it again.

namespace sylvite {
namespace {

struct FilterGradientNumbers {
  std::int64_t channels = 1;
  std::int64_t blocks = 1;
  std::int64_t images = 1;
  std::int64_t parts = 1;
  std::int64_t apart = 0;
};

RegisterTile tile_of(const FilterGradientProblem& problem, const FilterGradientNumbers& point) {
  return {point.channels * problem.image.kernel_x, point.blocks, problem.image.block};
}

bool fits(const FilterGradientProblem& problem, const Machine& machine, const FilterGradientNumbers& point) {
  return problem.channels_in_block() % point.channels == 0 &&
         problem.image.out_blocks() % point.blocks == 0 && fits_registers(machine, tile_of(problem, point));
}

std::vector<std::int64_t> divisors(std::int64_t number) {
  std::vector<std::int64_t> found;
  for (std::int64_t i = 1; i <= number; ++i)
    if (number % i == 0) found.push_back(i);
  return found;
}

struct FilterGradient {
  const Kernel& kernel;
  const Machine& machine;
  FilterGradientProblem problem;
  KernelFacts facts;
  FilterGradientNumbers heuristic;

  [[nodiscard]] std::vector<Range<FilterGradientNumbers>> ranges() const;
  [[nodiscard]] Candidate at(const FilterGradientNumbers& point) const;
  void write_sums(ScheduleWriter& writer, const std::string& name, const FilterGradientNumbers& point) const;
};

/// The tile with the fewest cycles for a product.
FilterGradientNumbers fastest_tile(const FilterGradientProblem& p, const Machine& machine) {
  FilterGradientNumbers best;
  double most = 0;
  for (const std::int64_t channels : divisors(p.channels_in_block())) {
    for (const std::int64_t blocks : {1, 2, 3}) {
      const FilterGradientNumbers point{.channels = channels, .blocks = blocks};
      if (!fits(p, machine, point)) continue;
      const RegisterTile tile = tile_of(p, point);
      const double rate = static_cast<double>(tile.rows * tile.panels) / step_cycles(machine, tile);
      if (rate <= most) continue;
      most = rate;
      best = point;
    }
  }
  return best;
}

FilterGradientNumbers first_point(const FilterGradientProblem& problem, const Machine& machine) {
  constexpr std::int64_t pixels_at_once = 128;  // sums are read and written once for so many
  constexpr std::int64_t most_images = 8, most_bytes = std::int64_t{64} << 20;
  const ConvProblem& p = problem.image;
  FilterGradientNumbers point = fastest_tile(problem, machine);
  point.images = std::clamp<std::int64_t>(pixels_at_once / (p.out_height * p.out_width), 1,
                                          std::min(p.batch, most_images));
  point.apart = p.groups > 1 ? 1 : 0;  // each block of the gradient meets other channels
  if (machine.threads == 1) return point;
  const std::int64_t part_bytes =
      4 * p.kernel_y * p.kernel_x * p.out_blocks() * p.block * problem.blocks() * problem.channels_in_block();
  const std::int64_t most_parts = std::min(p.batch / point.images, most_bytes / part_bytes);
  const std::int64_t blocks = p.depthwise ? p.out_blocks() / point.blocks : problem.blocks();
  const std::int64_t wanted = ceil_div(std::int64_t{2} * machine.threads, blocks);
  point.parts = std::max<std::int64_t>(1, std::min(wanted, most_parts));
  point.apart = p.depthwise || p.groups > 1 || point.parts * blocks < machine.threads ? 1 : 0;
  return point;
}

std::vector<Range<FilterGradientNumbers>> FilterGradient::ranges() const {
  const auto range = ranges_from(heuristic);
  std::vector<std::int64_t> apart = {0}, blocks = {2, 1, 3};
  std::erase_if(blocks, [&](std::int64_t count) { return problem.image.out_blocks() % count != 0; });
  if (machine.threads > 1 || problem.image.groups > 1) apart.push_back(1);
  return {range("channels", &FilterGradientNumbers::channels, divisors(problem.channels_in_block())),
          range("blocks", &FilterGradientNumbers::blocks, blocks),
          range("images", &FilterGradientNumbers::images, up_to(problem.image.batch, {1, 2, 4, 8})),
          range("parts", &FilterGradientNumbers::parts, up_to(problem.image.batch, {1, 2, 4, 8, 16})),
          range("apart", &FilterGradientNumbers::apart, apart)};
}

void FilterGradient::write_sums(ScheduleWriter& writer, const std::string& name,
                                const FilterGradientNumbers& point) const {
  const ConvProblem& p = problem.image;
  const std::string part = name + "_part", image = name + "_image";
  writer.add("{}.compute_root().bound(d0, 0, {}).bound(d1, 0, {}).vectorize(d0);", part, p.block,
             problem.channels_in_block());
  writer.add("{}.update(0).split(d1, t, i, {}).split(d5, q, b, {});", part, point.channels, point.blocks);
  writer.add("{}.update(0).reorder(d0, b, i, d2, r0, t, d3, {}, d4, d6).vectorize(d0);", part,
             point.apart != 0 ? "r1, q" : "q, r1");
  writer.add("{}.update(0).unroll(b).unroll(i).unroll(d2);", part);
  if (machine.threads > 1) {
    writer.add("{}.parallel(d4).parallel(d6);", part);
    std::vector<std::string> tasks = {"d4", "d6"};
    if (point.apart != 0) tasks.insert(tasks.begin(), "q");
    writer.parallelize(part + ".update(0)", tasks);
  }
  writer.add("{}.compute_at({}, r0).store_in(MemoryType::Register);", image, part);
  write_single(writer, kernel, image, {"d3", "d4", "d6"});
  writer.add("{}.vectorize(d0).unroll(d1).unroll(d2).unroll(d5);", image);
  writer.add("{}.update(0).reorder(d0, d5, d1, d2, r0, r1, d3, d4, d6).vectorize(d0);", image);
  writer.add("{}.update(0).unroll(d5).unroll(d1).unroll(d2);", image);
  writer.add("{}_in.compute_at({}, r1);", name, part);
  if (p.x_is_blocked) writer.add("{}_in.vectorize(d0);", name);
}

Candidate FilterGradient::at(const FilterGradientNumbers& point) const {
  if (!fits(problem, machine, point))
    throw UnsupportedError(
        "tiles of {} channels and {} blocks do not fit {} channels, {} blocks and {} registers",
        point.channels, point.blocks, problem.channels_in_block(), problem.image.out_blocks(),
        machine.vector_registers);
  const std::string& name = kernel.body.value(problem.image.anchor).name;
  ScheduleWriter writer;
  LoopNest nest(writer, facts.output, facts.loops);
  nest.vectorize_inner(facts.lanes, 1);
  if (machine.threads > 1) nest.parallelize(machine.threads, 0);
  writer.add("{}_sum.compute_root().bound(d0, 0, {}).vectorize(d0);", name, problem.image.block);
  writer.add("{}_sum.update(0).reorder(d0, r0, d1, d2, d3, d4, d5).vectorize(d0);", name);
  if (machine.threads > 1) writer.add("{}_sum.update(0).parallel(d5);", name);
  write_sums(writer, name, point);
  return {Form{"filter_gradient_blocked", {{"images", point.images}, {"parts", point.parts}}}, writer.take()};
}

Binding bind_filter_gradient(const Kernel& kernel, const Machine& machine) {
  const Reading<FilterGradientProblem> reading = read_filter_gradient(kernel);
  if (!reading.refusal.empty()) return {reading.refusal};
  const FilterGradientProblem& p = reading.problem;
  if (!fits(p, machine, {}))
    return {fmt::format("the {} taps of a window's line do not fit the registers", p.image.kernel_x)};
  return bind_space(FilterGradient{kernel, machine, p, facts_of(kernel, machine), first_point(p, machine)});
}

}  // namespace

const Space filter_gradient_blocked_space = {
    "filter_gradient_blocked", bind_filter_gradient, {}, Space::Open::all};

}  // namespace sylvite
