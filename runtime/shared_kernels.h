#pragma once
// Kernels of one plan that differ in extents alone, as one: fewer are compiled before the first result.

#include "runtime/session.h"

namespace sylvite {

/// Small kernels without folds of products that differ in extents alone become cases of open kernels, where these should be about as
/// fast, and `chosen` has what these run. Kernels with a stored winner, of a lock or of a GPU stay. REQUIRES choices for the plan, none
/// compiled.
void share_small_kernels(Imported& imported, Chosen& chosen);

}  // namespace sylvite
