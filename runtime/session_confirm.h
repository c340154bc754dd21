#pragma once
// After tuning: do the winners hold inside the whole model? Internal to the session.

#include "autotune/database.h"
#include "runtime/session.h"

namespace sylvite {

/// Runs the program with the chosen candidates in turns with the program of default candidates, until
/// `deadline` (seconds of the steady clock). A candidate that is not faster inside the program gives way to
/// the default one; when what remains is clearly slower as a whole, all do. Races and changed winners are
/// stored. Nothing changes when a program does not run or there is no time for enough runs.
void confirm_winners(const Imported& imported, Chosen& chosen, Database& database, double deadline);

}  // namespace sylvite
