#include "schedules/bind_space.h"

#include <algorithm>

#include "base/error.h"

namespace sylvite {

void require_values(const Point& point, std::size_t parameters) {
  if (point.size() != parameters)
    throw InternalError("the point has {} values for {} parameters", point.size(), parameters);
}

std::vector<std::int64_t> up_to(std::int64_t limit, const std::vector<std::int64_t>& wanted) {
  std::vector<std::int64_t> values;
  for (const std::int64_t value : wanted) {
    const bool repeats = std::find(values.begin(), values.end(), value) != values.end();
    if (value <= limit && !repeats) values.push_back(value);
  }
  if (values.empty()) values.push_back(limit);
  return values;
}

std::vector<std::int64_t> starting_with(std::int64_t first, const std::vector<std::int64_t>& values) {
  std::vector<std::int64_t> result = {first};
  std::copy_if(values.begin(), values.end(), std::back_inserter(result),
               [&](std::int64_t value) { return value != first; });
  return result;
}

}  // namespace sylvite
