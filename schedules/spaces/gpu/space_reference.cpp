#include "schedules/spaces/gpu/nest.h"

// The reference on a GPU: the generic form, every folding stage whole, a thread per element that folds alone.

namespace sylvite {

const Space gpu_reference_space = {
    .name = "gpu_reference",
    .refuses = [](const Kernel&, const Machine&) { return std::string(); },
    .parameters = [](const Kernel&, const Machine&) { return std::vector<Parameter>(); },
    .heuristic = [](const Kernel&, const Machine&) { return Point(); },
    .at =
        [](const Kernel& kernel, const Machine&, const Point&) {
          ScheduleWriter writer;
          gpu_whole_kernel(writer, kernel);
          return Candidate{Form{}, writer.take()};
        },
    .cost = nullptr,
};

}  // namespace sylvite
