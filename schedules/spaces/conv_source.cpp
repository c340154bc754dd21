#include "schedules/spaces/conv_source.h"

#include <numeric>

#include "frontend/graph/rewrite.h"
#include "lowering/plan/run_extents.h"

namespace sylvite {

namespace {

void write_copy(ScheduleWriter& writer, const ConvProblem& problem, const std::string& source) {
  if (problem.x_is_blocked) {
    writer.add("{}.vectorize(d0);", source);
  } else {
    // A dense input is read along its lines and stored with the channels innermost.
    writer.add("{}.reorder(d0, d1, d2, d3, d4).unroll(d0);", source);
    if (problem.pair() > 1) writer.add("{}.vectorize(d1, 16, TailStrategy::GuardWithIf);", source);
  }
}

}  // namespace

ImageRoom room_of(const Kernel& kernel, const ConvProblem& problem) {
  const auto is_open = [&](std::size_t dim) {
    return kernel.open && !kernel.open->type(problem.anchor).shape[dim].is_known();
  };
  return {least_extent(kernel, problem.anchor, 3), least_extent(kernel, problem.anchor, 2),
          is_open(2) || is_open(3), is_open(3) && !is_open(2) && problem.out_height == 1};
}

bool threads_take_lines(const ConvProblem& problem) {
  const std::int64_t filter =
      problem.depthwise ? problem.channels / 6 : problem.out_channels * problem.kernel_x * problem.kernel_y;
  return 2 * filter < problem.height * problem.width;
}

bool crowds_cache(const ConvProblem& problem) {
  constexpr std::int64_t way_bytes = 128 << 10, ways = 8;  // of most processors
  const std::int64_t plane_bytes = static_cast<std::int64_t>(dtype_size(problem.element)) *
                                   problem.source_block * problem.height * problem.width;
  const std::int64_t places = way_bytes / std::gcd(plane_bytes, way_bytes);
  return problem.source_blocks() > ways / 2 * places;
}

void write_conv_source(ScheduleWriter& writer, const ConvProblem& problem, const std::string& source,
                       const Machine& machine) {
  writer.add("{}.compute_root();", source);
  write_copy(writer, problem, source);
  if (machine.threads > 1) writer.add("{}.parallel({});", source, problem.source_blocks() > 1 ? "d3" : "d2");
}

void write_conv_filter(ScheduleWriter& writer, const Kernel& kernel, const ConvProblem& problem,
                       const std::string& filter, const Machine& machine) {
  const bool pairs = problem.pair() > 1;
  const bool has_six = pairs || (!problem.depthwise && !problem.has_few_channels() && problem.fold_block > 1);
  const char* lanes = pairs ? "d1" : "d0";
  writer.add("{}.compute_root().bound({}, 0, {});", filter, lanes, problem.block);
  if (pairs) writer.add("{}.bound(d0, 0, {}).unroll(d0);", filter, problem.pair());
  // Filters lie with their windows innermost, then channels of what is read, unless they are turned: blocks of those that lie
  // together follow each other.
  const Node* turn = producer_if(kernel.body, problem.weight, Op::transpose);
  const bool is_turned = turn != nullptr && turn->attributes.integers("perm")[0] == 1;
  const char* blocks = is_turned ? "d5, d4" : "d4, d5";
  if (has_six) writer.add("{}.reorder({}, {});", filter, pairs ? "d0, d1, d3, d2" : "d0, d2, d3, d1", blocks);
  writer.add("{}.vectorize({});", filter, lanes);
  if (machine.threads > 1 && problem.out_blocks() > 1)
    writer.add("{}.parallel({});", filter, has_six && !is_turned ? "d5" : "d4");
}

std::int64_t filter_bytes(const ConvProblem& problem, std::int64_t blocks) {
  return static_cast<std::int64_t>(dtype_size(problem.element)) * problem.fold_steps() * problem.pair() *
         blocks * problem.block;
}

void write_few_edges(ScheduleWriter& writer, const std::string& stage,
                     const std::vector<std::string>& loops) {
  for (const std::string& loop : loops) writer.add("{}.partition({}, Partition::Never);", stage, loop);
}

void write_conv_lines(ScheduleWriter& writer, const ConvProblem& problem, const std::string& source,
                      const std::string& reader, const std::string& loop) {
  // An odd number of pixels to a line: channels of a pixel are no power of two apart, which would crowd few sets of a cache.
  const std::int64_t width =
      (problem.out_width - 1) * problem.stride_x + (problem.kernel_x - 1) * problem.dilation_x + 1;
  writer.add("{}.compute_at({}, {}).align_storage(d1, {});", source, reader, loop, width | 1);
  write_copy(writer, problem, source);
}

}  // namespace sylvite
