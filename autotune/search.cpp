#include "autotune/search.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/hash.h"

namespace sylvite {

namespace {

constexpr int first_round = 12;
constexpr int later_round = 8;
constexpr std::size_t most_descents = 3;
/// Points of one space that are ranked; a larger space is thinned out evenly.
constexpr std::int64_t most_points = 20000;
/// Of so many ranked points, one is from the spaces without a cost model.
constexpr std::size_t unranked_share = 4;

/// The point with number `index` when the values of all parameters are counted through.
Point point_number(const std::vector<Parameter>& parameters, std::int64_t index) {
  Point point;
  for (const Parameter& parameter : parameters) {
    auto size = static_cast<std::int64_t>(parameter.values.size());
    point[parameter.name] = parameter.values[static_cast<std::size_t>(index % size)];
    index /= size;
  }
  return point;
}

/// An odd stride that leaves about most_points: odd, so that parameters of two, four, ... values still vary.
std::int64_t thinning_step(std::int64_t count) {
  return std::max<std::int64_t>(1, (count / most_points) | 1);
}

std::vector<Point> all_points(const std::vector<Parameter>& parameters) {
  double product = 1;
  for (const Parameter& parameter : parameters) product *= static_cast<double>(parameter.values.size());
  auto count = static_cast<std::int64_t>(std::min(product, 0x1p60));
  std::vector<Point> points;
  std::int64_t step = count > most_points ? thinning_step(count) : 1;
  for (std::int64_t i = 0; i < count; i += step) points.push_back(point_number(parameters, i));
  return points;
}

std::string order_key(const Point& point) {
  std::string text;
  for (const auto& [name, value] : point) text += fmt::format("{}={},", name, value);
  return short_hash(text);
}

/// The reason with its numbers as N, so that equal reasons count together.
std::string reason_of(const std::exception& error) {
  std::string reason;
  for (char c : std::string_view(error.what()).substr(0, 100)) {
    bool digit = c >= '0' && c <= '9';
    if (!digit)
      reason += c;
    else if (!reason.ends_with('N'))
      reason += 'N';
  }
  return reason;
}

}  // namespace

KernelSearch::KernelSearch(std::vector<BoundSpace> spaces)
    : spaces_(std::move(spaces)), round_left_(first_round) {
  for (std::size_t space = 0; space < spaces_.size(); ++space)
    heuristics_.push_back({space, spaces_[space].heuristic});
  rank_points();
}

/// By cost where there is a cost model; points of other spaces in a fixed random order in between.
void KernelSearch::rank_points() {
  std::vector<std::pair<double, Place>> with_cost;
  std::vector<std::pair<std::string, Place>> without;
  for (std::size_t space = 0; space < spaces_.size(); ++space) {
    const BoundSpace& bound = spaces_[space];
    for (Point& point : all_points(bound.parameters)) {
      if (bound.cost) {
        double cost = bound.cost(point);  // before the point is moved from
        with_cost.emplace_back(cost, Place{space, std::move(point)});
      } else {
        std::string order = order_key(point);
        without.emplace_back(std::move(order), Place{space, std::move(point)});
      }
    }
  }
  std::ranges::stable_sort(with_cost, {}, [](const auto& item) { return item.first; });
  std::ranges::stable_sort(without, {}, [](const auto& item) { return item.first; });
  std::size_t taken = 0;
  for (std::size_t i = 0; i < with_cost.size(); ++i) {
    ranked_.push_back(std::move(with_cost[i].second));
    if (i % unranked_share == unranked_share - 2 && taken < without.size())
      ranked_.push_back(std::move(without[taken++].second));
  }
  for (; taken < without.size(); ++taken) ranked_.push_back(std::move(without[taken].second));
}

void KernelSearch::observe(const Candidate& candidate, double median_us) {
  medians_[candidate.to_string()] = median_us;
}

std::vector<Candidate> KernelSearch::propose(int count) {
  std::vector<Candidate> proposals;
  while (static_cast<int>(proposals.size()) < count) {
    auto place = next_place();
    if (!place) break;
    visited_.insert(*place);
    auto candidate = candidate_at(*place);
    if (!candidate) continue;
    std::string text = candidate->to_string();
    bool is_new = places_.emplace(text, *place).second && !medians_.contains(text);
    if (is_new) proposals.push_back(std::move(*candidate));
  }
  return proposals;
}

std::optional<KernelSearch::Place> KernelSearch::next_place() {
  auto take = [this](std::deque<Place>& places) -> std::optional<Place> {
    while (!places.empty()) {
      Place place = std::move(places.front());
      places.pop_front();
      if (!visited_.contains(place)) return place;
    }
    return std::nullopt;
  };
  if (auto place = take(heuristics_)) return place;
  for (;;) {
    if (round_left_ > 0) {
      --round_left_;
      if (auto place = take(ranked_)) return place;
    }
    if (auto place = next_neighbour()) return place;
    if (ranked_.empty() && descents_ >= most_descents) return std::nullopt;
    round_left_ = later_round;
    descents_ = std::min(descents_ + 1, most_descents);
  }
}

std::optional<KernelSearch::Place> KernelSearch::next_neighbour() {
  for (const Place* place : best_places(descents_))
    if (auto neighbour = neighbour_of(*place)) return neighbour;
  return std::nullopt;
}

/// The first unvisited point that differs in one parameter by one step.
std::optional<KernelSearch::Place> KernelSearch::neighbour_of(const Place& place) {
  for (const Parameter& parameter : spaces_[place.space].parameters) {
    auto current = place.point.find(parameter.name);
    if (current == place.point.end()) continue;
    auto at = std::ranges::find(parameter.values, current->second);
    if (at == parameter.values.end()) continue;  // the heuristic may stand outside the listed values
    auto index = at - parameter.values.begin();
    for (auto step : {1, -1}) {
      auto other = index + step;
      if (other < 0 || other >= static_cast<std::ptrdiff_t>(parameter.values.size())) continue;
      Place neighbour = place;
      neighbour.point[parameter.name] = parameter.values[static_cast<std::size_t>(other)];
      if (!visited_.contains(neighbour)) return neighbour;
    }
  }
  return std::nullopt;
}

std::optional<Candidate> KernelSearch::candidate_at(const Place& place) {
  const BoundSpace& space = spaces_[place.space];
  try {
    return space.at(place.point);
  } catch (const Error& error) {
    ++rejections_[fmt::format("{}: {}", space.name, reason_of(error))];
    return std::nullopt;
  }
}

std::vector<const KernelSearch::Place*> KernelSearch::best_places(std::size_t count) const {
  std::vector<std::pair<double, const Place*>> found;
  for (const auto& [text, place] : places_) {
    auto median = medians_.find(text);
    if (median != medians_.end() && std::isfinite(median->second)) found.emplace_back(median->second, &place);
  }
  std::ranges::stable_sort(found, {}, [](const auto& item) { return item.first; });
  std::vector<const Place*> places;
  for (std::size_t i = 0; i < std::min(count, found.size()); ++i) places.push_back(found[i].second);
  return places;
}

}  // namespace sylvite
