#pragma once
// The two ways to fold along an axis with vectors. Shared by the spaces of reductions, normalisations and
// others.

#include <string>
#include <vector>

#include "schedules/spaces/loop_nest.h"

namespace sylvite {

/// Where a stage is computed: inside `loop` of `consumer`, or at root when loop is empty.
struct Place {
  std::string consumer;
  std::string loop;
};
void compute_at(ScheduleWriter& writer, const std::string& stage, const Place& place);

/// How many elements of a row a vector holds: rows of a few vectors that their lanes do not divide are one vector each, as
/// what is behind the ends of its registers costs less than a step that shifts inwards or is guarded.
[[nodiscard]] std::int64_t lanes_of_row(const RunExtent& row, std::int64_t lanes);

/// Folds a row: the innermost folded dim r0 is walked in `lanes * vectors` partial results held in registers,
/// which are then folded in one tree. `extents` are those of r0, r1, ...; the stage's update 0 must be
/// associative. Where a place has several rows, `part_place` is where the partial results of one are.
void fold_row(ScheduleWriter& writer, const std::string& stage, const Dims& extents, std::int64_t lanes,
              std::int64_t vectors, const Place& place, const Place& part_place);

/// The number of vectors, at most `most`, that leaves the fewest lanes idle at the end of a row.
[[nodiscard]] std::int64_t vectors_for_row(std::int64_t extent, std::int64_t lanes, std::int64_t most);

/// Folds columns: each lane has a result of its own. The stage's d0 is as long as one step of the consumer;
/// `unrolled` are further pure dims of the stage that the tile holds; the folded dims stay serial, or are
/// unrolled when `unroll_folds` is given by name.
void fold_columns(ScheduleWriter& writer, const std::string& stage, std::int64_t step, std::int64_t lanes,
                  const std::vector<std::string>& unrolled, int fold_rank, bool unroll_folds,
                  const Place& place);

}  // namespace sylvite
