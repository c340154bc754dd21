#include "schedules/spaces/gpu/nest.h"
#include "schedules/spaces/spaces.h"

// The reference on a GPU: the generic form, every folding stage whole, a thread per element that folds alone.

namespace sylvite {
namespace {

Candidate whole_kernel(const Kernel& kernel) {
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
