#pragma once
// After tuning: do the winners hold inside the whole model? Internal to the session.

#include "autotune/database.h"
#include "runtime/session.h"

namespace sylvite {

/// Runs the program with the chosen candidates in turns with the program of default candidates, until
/// `deadline` (seconds of the steady clock). A candidate that is not faster inside the program gives way to
/// the default one; when what remains is clearly slower as a whole, all do. Races and changed winners are
/// stored. Nothing changes when a program does not run or there is no time for enough runs.
void confirm_winners(Session& session, Database& database, double deadline);

// What the two parts of the session share; in session.cpp.

/// Every choice's symbol and object, from the cache or compiled now.
void get_objects(Session& session);
/// The program that `choices`, which have objects, make of the session's plan; `donor` as Program says.
[[nodiscard]] Program make_program(const Session& session, Plan plan, const std::vector<Choice>& choices,
                                   const Program* donor);
/// Zeros for a plan's inputs: times and bounds do not depend on values.
[[nodiscard]] std::vector<Tensor> zero_inputs(const Plan& plan);

}  // namespace sylvite
