#include "base/nearest.h"

#include <algorithm>
#include <vector>

namespace sylvite {

int edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<int>> cost(a.size() + 1, std::vector<int>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) cost[i][0] = static_cast<int>(i);
  for (std::size_t j = 0; j <= b.size(); ++j) cost[0][j] = static_cast<int>(j);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const int replaced = cost[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      cost[i][j] = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1, replaced});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
    }
  }
  return cost[a.size()][b.size()];
}

std::string nearest_name(std::string_view wanted, std::span<const std::string_view> known) {
  std::string_view best;
  int best_distance = static_cast<int>(std::max<std::size_t>(2, wanted.size() / 3)) + 1;
  for (const std::string_view name : known) {
    const std::string_view last_part = name.substr(name.rfind('.') + 1);
    const int distance =
        wanted == last_part ? 0 : std::min(edit_distance(wanted, name), edit_distance(wanted, last_part) + 1);
    if (distance >= best_distance) continue;
    best = name;
    best_distance = distance;
  }
  return std::string(best);
}

std::string suggestion(std::string_view wanted, std::span<const std::string_view> known) {
  const std::string name = nearest_name(wanted, known);
  return name.empty() ? "" : "; did you mean " + name + "?";
}

}  // namespace sylvite
