#include "schedules/spaces/conv_source.h"

namespace sylvite {

void write_conv_source(ScheduleWriter& writer, const ConvProblem& problem, const std::string& source,
                       const Machine& machine) {
  writer.add("{}.compute_root();", source);
  if (problem.x_is_blocked) {
    writer.add("{}.vectorize(d0);", source);
  } else {
    // A dense input is read along its lines and stored with the channels innermost.
    writer.add("{}.reorder(d0, d1, d2, d3, d4).unroll(d0);", source);
  }
  if (machine.threads > 1) writer.add("{}.parallel({});", source, problem.source_blocks() > 1 ? "d3" : "d2");
}

}  // namespace sylvite
