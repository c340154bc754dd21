#pragma once
// What the spaces of convolutions share: the padded copy of the input, and that of a filter. Internal to schedules/.

#include <string>
#include <vector>

#include "lowering/algorithms/problems.h"
#include "schedules/machine.h"
#include "schedules/spaces/schedule_writer.h"

namespace sylvite {

/// Of the images that a convolution makes, in any run: tiles that shift inwards must not be longer.
struct ImageRoom {
  std::int64_t pixels = 1;  ///< of a line
  std::int64_t lines = 1;
  bool is_open = false;  ///< runs differ
  bool is_line = false;  ///< in the length of one line
};
[[nodiscard]] ImageRoom room_of(const Kernel& kernel, const ConvProblem& problem);

/// Does each thread take lines? A run of tasks is either lines of the image, which it then finds in its own cache when it wrote
/// the same lines before, or blocks of channels, whose filters no other thread reads. Depthwise follows its
/// neighbours, whose filters are about so large.
[[nodiscard]] bool threads_take_lines(const ConvProblem& problem);

/// Lines of the channels of a pixel fall on so few sets of the L2 that they push each other out before the next block of
/// outputs reads them: planes are a power of two apart, or nearly.
[[nodiscard]] bool crowds_cache(const ConvProblem& problem);

/// Of the filters of so many blocks of outputs.
[[nodiscard]] std::int64_t filter_bytes(const ConvProblem& problem, std::int64_t blocks);

/// Of open images a loop with edges would be three, and each loop in it again: these ask in every step instead. Several times less
/// code, as fast.
void write_few_edges(ScheduleWriter& writer, const std::string& stage, const std::vector<std::string>& loops);

/// Makes the stage `source`, the input with its border, ahead of everything else.
void write_conv_source(ScheduleWriter& writer, const ConvProblem& problem, const std::string& source,
                       const Machine& machine);

/// Makes the stage `filter`, a filter that no packing rearranged, ahead of everything else.
void write_conv_filter(ScheduleWriter& writer, const Kernel& kernel, const ConvProblem& problem,
                       const std::string& filter, const Machine& machine);

/// Makes what an iteration of `loop` of `reader` reads of it, there.
void write_conv_lines(ScheduleWriter& writer, const ConvProblem& problem, const std::string& source,
                      const std::string& reader, const std::string& loop);

}  // namespace sylvite
