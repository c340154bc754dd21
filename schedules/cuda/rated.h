#pragma once
// Choices of a template with what they should cost. Internal to schedules/.

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace sylvite {

/// A choice behind its cost: the lower, the better the guess.
template <typename Choice>
using Rated = std::pair<double, Choice>;

/// The best `most` of them, the best guess first; of equal ones those that stand first.
template <typename Choice>
[[nodiscard]] std::vector<Choice> best_first(std::vector<Rated<Choice>> rated, std::size_t most) {
  std::ranges::stable_sort(rated, {}, &Rated<Choice>::first);
  if (rated.size() > most) rated.resize(most);
  std::vector<Choice> choices;
  choices.reserve(rated.size());
  for (Rated<Choice>& each : rated) choices.push_back(std::move(each.second));
  return choices;
}

}  // namespace sylvite
