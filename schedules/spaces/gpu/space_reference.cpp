#include <algorithm>

#include "base/error.h"
#include "frontend/ops/op_table.h"
#include "schedules/spaces/gpu/nest.h"
#include "schedules/spaces/spaces.h"

// The reference on a GPU: the generic form, every folding stage whole, a thread per element that folds alone.

namespace sylvite {
namespace {

/// Halide loses the memory that such a kernel adds up in, or looks for it on the host, where the run gives its extents.
bool scatters_open(const Kernel& kernel) {
  return kernel.open && std::ranges::any_of(kernel.body.nodes(), [](const Node& node) {
           return has_trait(node.op, OpTrait::scatter) && !writes_in_place(node.op);
         });
}

Candidate whole_kernel(const Kernel& kernel) {
  if (scatters_open(kernel))
    throw UnsupportedError("what has open sizes is scattered by a kernel for each size");
  ScheduleWriter writer;
  gpu_whole_kernel(writer, kernel);
  return {Form{}, writer.take()};
}

}  // namespace

const Space gpu_reference_space = {"gpu_reference",
                                   [](const Kernel& kernel, const Machine&) {
                                     return bind_single([&kernel] { return whole_kernel(kernel); });
                                   },
                                   {},
                                   Space::Open::all};

}  // namespace sylvite
