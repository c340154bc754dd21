#pragma once
// Checks a Plan: the rules that the executor relies on. lower() runs it on every plan it makes.

#include "lowering/plan/plan.h"

namespace sylvite {

/// Throws InternalError listing every broken rule: arguments fit their kernel's types, every value is written
/// before it is read, aliases have equal sizes, places lie in the arena, no two live values overlap, and no read of a state
/// stands behind what replaces it.
void verify(const Plan& plan);

}  // namespace sylvite
