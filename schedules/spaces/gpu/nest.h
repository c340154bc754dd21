#pragma once
// Loops on a GPU, written as decisions: what the gpu spaces share.

#include <string>
#include <vector>

#include "lowering/algorithms/algorithm.h"
#include "schedules/spaces/loop_nest.h"

namespace sylvite {

/// What GPU spaces formulate kernels as: see build_device.
inline const Form device_form{"device", {}};

/// Threads of a block where nothing says more.
inline constexpr std::int64_t gpu_block_threads = 128;

/// Runs a definition ("v1" or "v1.update(0)") with one thread per point of `loops`, innermost first; further
/// loops of it, inside these, stay serial in each thread. Without loops, in a single thread.
void gpu_thread_each(ScheduleWriter& writer, const std::string& definition,
                     const std::vector<std::string>& loops, std::int64_t threads);

/// Computes a stage whole, each of its definitions with one thread per element: right whatever it computes.
void gpu_whole_stage(ScheduleWriter& writer, const std::string& name, const Halide::Func& func);

/// Every stage with updates whole, and every output: the kernel as the reference schedule computes it.
void gpu_whole_kernel(ScheduleWriter& writer, const Kernel& kernel);

}  // namespace sylvite
