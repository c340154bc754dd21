#include "schedules/spaces/conv_source.h"

namespace sylvite {

namespace {

void write_copy(ScheduleWriter& writer, const ConvProblem& problem, const std::string& source) {
  if (problem.x_is_blocked) {
    writer.add("{}.vectorize(d0);", source);
  } else {
    // A dense input is read along its lines and stored with the channels innermost.
    writer.add("{}.reorder(d0, d1, d2, d3, d4).unroll(d0);", source);
  }
}

}  // namespace

void write_conv_source(ScheduleWriter& writer, const ConvProblem& problem, const std::string& source,
                       const Machine& machine) {
  writer.add("{}.compute_root();", source);
  write_copy(writer, problem, source);
  if (machine.threads > 1) writer.add("{}.parallel({});", source, problem.source_blocks() > 1 ? "d3" : "d2");
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
