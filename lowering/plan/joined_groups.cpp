#include "lowering/plan/joined_groups.h"

#include <algorithm>

#include "lowering/plan/grouped_filter.h"

namespace sylvite {

bool have_template(std::int64_t groups, std::int64_t inputs, std::int64_t outputs) {
  return groups_fill_tiles(inputs, outputs) || groups_of_unit(groups, inputs, outputs) != 0;
}

std::int64_t groups_to_join(std::int64_t groups, std::int64_t inputs, std::int64_t outputs) {
  constexpr std::int64_t most =
      64;  // tensor cores are about as many times as fast as a thread for each result
  const bool is_depthwise = inputs == 1 && outputs == 1;
  if (groups == 1 || is_depthwise || have_template(groups, inputs, outputs)) return 1;
  for (std::int64_t joined = 2; joined < std::min(groups, most); ++joined)
    if (groups % joined == 0 && groups_fill_tiles(joined * inputs, joined * outputs)) return joined;
  return groups <= most ? groups : 1;
}

}  // namespace sylvite
