#include "schedules/spaces/fold_schedule.h"

#include <algorithm>

#include "base/rounding.h"
#include "frontend/graph/views.h"

namespace sylvite {

void compute_at(ScheduleWriter& writer, const std::string& stage, const Place& place) {
  if (place.loop.empty())
    writer.add("{}.compute_root();", stage);
  else
    writer.add("{}.compute_at({}, {});", stage, place.consumer, place.loop);
}

std::int64_t vectors_for_row(std::int64_t extent, std::int64_t lanes, std::int64_t most) {
  std::int64_t best = 1;
  double best_waste = 1e30;
  for (std::int64_t vectors = most; vectors >= 1; --vectors) {
    const std::int64_t step = lanes * vectors;
    if (step > extent && vectors > 1) continue;
    // A chain of dependent operations is about 4 long; a tail costs about a whole step.
    const double steps =
        static_cast<double>(ceil_div(extent, step)) * static_cast<double>(std::max<std::int64_t>(vectors, 4));
    if (steps < best_waste) {
      best_waste = steps;
      best = vectors;
    }
  }
  return best;
}

std::int64_t lanes_of_row(const RunExtent& row, std::int64_t lanes) {
  constexpr std::int64_t least_lanes = 4;
  constexpr std::int64_t most_vectors = 16;
  const bool is_odd = !row.is_open && row.extent % lanes != 0;
  return is_odd && row.extent >= least_lanes && row.extent <= most_vectors * lanes ? row.extent : lanes;
}

void fold_row(ScheduleWriter& writer, const std::string& stage, const Dims& extents, std::int64_t lanes,
              std::int64_t vectors, const Place& place, const Place& part_place) {
  compute_at(writer, stage, place);
  const bool is_alone = extents.empty() || product(extents, 1, extents.size()) == 1;
  if (extents.empty() || extents[0] < (is_alone ? 2 * lanes : lanes)) {
    if (!extents.empty() && extents[0] >= lanes)
      writer.add("{}.update(0).atomic().vectorize(r0, {}, TailStrategy::GuardWithIf);", stage, lanes);
    return;
  }
  const std::int64_t step = lanes * std::min(vectors, extents[0] / lanes);
  const std::string part = stage + "_part";
  const char* tail = extents[0] % step == 0 ? "" : ", TailStrategy::GuardWithIf";
  writer.add("{}.update(0).split(r0, r0o, r0i, {}{});", stage, step, tail);
  writer.add("Func {} = {}.update(0).rfactor(r0i, u);", part, stage);
  compute_at(writer, part, part_place);
  writer.add("{}.store_in(MemoryType::Register).bound_extent(u, {}).vectorize(u, {}).unroll(u);", part, step,
             lanes);
  writer.add("{}.update(0).reorder(u, r0o).vectorize(u, {}).unroll(u);", part, lanes);
  writer.add("{}.update(0).atomic().vectorize(r0i);", stage);
}

void fold_columns(ScheduleWriter& writer, const std::string& stage, std::int64_t step, std::int64_t lanes,
                  const std::vector<std::string>& unrolled, int fold_rank, bool unroll_folds,
                  const Place& place) {
  compute_at(writer, stage, place);
  std::string order = "d0";
  std::string tile;
  for (const std::string& name : unrolled) {
    order += ", " + name;
    tile += ".unroll(" + name + ")";
  }
  const bool is_vector = step > 1;
  const std::int64_t vector = std::min(step, lanes);
  const std::string vectors = !is_vector      ? ""
                              : step > vector ? fmt::format(".vectorize(d0, {}).unroll(d0)", vector)
                                              : ".vectorize(d0)";
  if (is_vector) writer.add("{}.bound_extent(d0, {});", stage, step);
  if (!vectors.empty() || !tile.empty()) writer.add_line(stage + vectors + tile + ";");
  for (int r = 0; r < fold_rank; ++r) order += fmt::format(", r{}", r);
  std::string folds;
  for (int r = 0; unroll_folds && r < fold_rank; ++r) folds += fmt::format(".unroll(r{})", r);
  writer.add_line(fmt::format("{}.update(0).reorder({}){}{}{};", stage, order, vectors, tile, folds));
}

}  // namespace sylvite
