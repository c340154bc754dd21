#include "lowering/algorithms/algorithm.h"
#include "schedules/bind_space.h"
#include "schedules/spaces/schedule_writer.h"
#include "schedules/spaces/spaces.h"

// The reference: the generic form with every folding stage computed whole. No vectors, no threads; always
// legal.

namespace sylvite {

Candidate reference_candidate(const Kernel& kernel) {
  ScheduleWriter writer;
  const Algorithm algorithm = build_algorithm(kernel, Form{});
  for (const auto& [name, func] : algorithm.stages) {
    const bool is_read_often = name.ends_with("_steps");
    if (func.has_update_definition() || func.is_extern() || is_read_often)
      writer.add("{}.compute_root();", name);
  }
  return {Form{}, writer.take()};
}

const Space reference_space = {"reference",
                               [](const Kernel& kernel, const Machine&) {
                                 return bind_single([&kernel] { return reference_candidate(kernel); });
                               },
                               {},
                               Space::Open::all};

}  // namespace sylvite
