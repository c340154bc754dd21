#pragma once
// Rows of space_table(): convolutions of bf16 through AMX. Internal to schedules/.

#include "schedules/candidate.h"

namespace sylvite {

extern const Space conv_amx_space;
extern const Space conv_lines_amx_space;

}  // namespace sylvite
