#pragma once
// From candidates to programs: objects from the cache or compiled now, then loaded. Internal to the session.

#include "runtime/session.h"

namespace sylvite {

/// Gets the symbol and the object of every choice, from the cache or compiled now; the report counts them. What does not
/// compile is replaced, as build_program says, which also says what `stop` does. What `relatives` have loaded has no object.
void get_objects(const Imported& imported, Chosen& chosen, const std::stop_token& stop = {},
                 const Relatives& relatives = {});

/// Gets those objects that are in the cache, as get_objects does; how many are to be compiled?
[[nodiscard]] int missing_objects(const Imported& imported, Chosen& chosen, const Relatives& relatives = {});

/// The program that `choices`, which have objects, make of the plan; `relatives` as Program says.
[[nodiscard]] Program make_program(const Imported& imported, const std::vector<Choice>& choices,
                                   const Relatives& relatives = {});

/// Zeros for a plan's inputs: times and bounds do not depend on values.
[[nodiscard]] std::vector<Tensor> zero_inputs(const Plan& plan);

}  // namespace sylvite
