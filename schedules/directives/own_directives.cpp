#include "schedules/directives/own_directives.h"

#include "schedules/directives/amx_tiles.h"
#include "schedules/directives/even_folds.h"
#include "schedules/directives/even_odd_lanes.h"
#include "schedules/directives/mask_loads.h"
#include "schedules/directives/overlap_epilogue.h"
#include "schedules/directives/skip_idle.h"
#include "schedules/directives/stream_ahead.h"
#include "schedules/directives/unroll_steps.h"
#include "schedules/machine.h"

namespace sylvite {
namespace {

/// The order is that of the passes.
constexpr OwnDirective rows[] = {
    {amx_tiles_directive, DirectiveScope::stage, 0, check_amx_tiles, amx_tiles_pass,
     "amx_tiles(): an update that adds products of bf16, or of bytes, in tile registers"},
    {stream_ahead_directive, DirectiveScope::stage, 3, check_stream_ahead, stream_ahead_pass,
     "stream_ahead(loop, weight, distance): a weight is prefetched while what comes before is multiplied"},
    {overlap_epilogue_directive, DirectiveScope::func, 0, nullptr, overlap_epilogue_pass,
     "overlap_epilogue(): what reads a block of AMX tiles runs beside the next block's products"},
    {unroll_steps_directive, DirectiveScope::func, 1, check_unroll_steps, unroll_steps_pass,
     "unroll_steps(copies): the loops around AMX products as straight code"},
    {even_odd_lanes_directive, DirectiveScope::kernel, 0, nullptr, even_odd_lanes_pass,
     "even_odd_lanes(): bf16 is computed as even and odd lanes"},
    {skip_idle_directive, DirectiveScope::stage, 1, nullptr, skip_idle_pass,
     "skip_idle(loop): iterations that a condition keeps from storing compute nothing"},
};

}  // namespace

std::span<const OwnDirective> own_directives() {
  return rows;
}

void add_own_passes(const Schedule& schedule, const Algorithm& algorithm, const std::string& target,
                    Halide::Pipeline& pipeline) {
  for (const OwnDirective& row : rows) {
    for (const Decision& decision : schedule.decisions) {
      if (decision.directive != row.name) continue;
      pipeline.add_custom_lowering_pass(row.pass(algorithm, decision, target).release());  // which owns it
      if (row.scope == DirectiveScope::kernel) break;
    }
  }
  if (is_gpu_target(target)) return;
  pipeline.add_custom_lowering_pass(new MaskLoads());  // which the pipeline owns
  pipeline.add_custom_lowering_pass(new EvenFolds());
}

}  // namespace sylvite
