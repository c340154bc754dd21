#pragma once
// How a space is bound: its point is a struct inside and a list of values outside. Internal to schedules/.

#include <memory>
#include <utility>

#include "schedules/space.h"

namespace sylvite {

/// A parameter of a space whose points are `Numbers`.
template <typename Numbers>
struct Range {
  const char* name;                  ///< outside
  std::int64_t Numbers::* number;    ///< inside
  std::vector<std::int64_t> values;  ///< in the order to try
};

/// `wanted` values that are at most `limit`, each once, in the order given; `limit` itself when none is.
[[nodiscard]] std::vector<std::int64_t> up_to(std::int64_t limit, const std::vector<std::int64_t>& wanted);

/// `values` with `first` moved or put in front: parameters list their heuristic choice first.
[[nodiscard]] std::vector<std::int64_t> starting_with(std::int64_t first,
                                                      const std::vector<std::int64_t>& values);

/// Makes ranges whose first value is the heuristic's. REQUIRES `heuristic` to outlive what is returned.
template <typename Numbers>
[[nodiscard]] auto ranges_from(const Numbers& heuristic) {
  return [&heuristic](const char* name, std::int64_t Numbers::* number,
                      const std::vector<std::int64_t>& choices) {
    return Range<Numbers>{name, number, starting_with(heuristic.*number, choices)};
  };
}

/// Throws InternalError when a point has not one value for each parameter.
void require_values(const Point& point, std::size_t parameters);

/// Numbers that no range names keep their defaults. Throws as `require_values` does.
template <typename Numbers>
[[nodiscard]] Numbers numbers_at(const Point& point, const std::vector<Range<Numbers>>& ranges) {
  require_values(point, ranges.size());
  Numbers numbers;
  for (std::size_t i = 0; i < ranges.size(); ++i) numbers.*ranges[i].number = point[i];
  return numbers;
}

template <typename Numbers>
[[nodiscard]] Point point_of(const Numbers& numbers, const std::vector<Range<Numbers>>& ranges) {
  Point point;
  for (const Range<Numbers>& range : ranges) point.push_back(numbers.*range.number);
  return point;
}

/// A bound space over `Read`, which holds what was read of a kernel. It has
///   ranges()      the parameters, a vector of Range<Numbers>
///   heuristic     the Numbers of the first point
///   at(numbers)   the candidate
///   cost(numbers) seconds; may be absent
template <typename Read>
[[nodiscard]] Binding bind_space(Read read) {
  const auto kept = std::make_shared<const Read>(std::move(read));
  const auto ranges = std::make_shared<const decltype(kept->ranges())>(kept->ranges());
  Binding binding;
  for (const auto& range : *ranges) binding.space.parameters.push_back({range.name, range.values});
  binding.space.heuristic = point_of(kept->heuristic, *ranges);
  binding.space.at = [kept, ranges](const Point& point) { return kept->at(numbers_at(point, *ranges)); };
  if constexpr (requires { kept->cost(kept->heuristic); })
    binding.space.cost = [kept, ranges](const Point& point) {
      return kept->cost(numbers_at(point, *ranges));
    };
  return binding;
}

/// A space of a single candidate.
template <typename At>
[[nodiscard]] Binding bind_single(At at) {
  Binding binding;
  binding.space.at = [at](const Point&) { return at(); };
  return binding;
}

}  // namespace sylvite
