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
/// Of so many ranked points, one is from the spaces without a cost model: the last but one.
constexpr std::int64_t uncosted_share = 5;

std::int64_t count_points(const std::vector<Parameter>& parameters) {
  double product = 1;
  for (const Parameter& parameter : parameters) product *= static_cast<double>(parameter.values.size());
  return static_cast<std::int64_t>(std::min(product, 0x1p60));
}

/// Sets the point to the one with number `index` when the values of all parameters are counted through.
void set_point(const std::vector<Parameter>& parameters, std::int64_t index, Point& point) {
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const std::vector<std::int64_t>& values = parameters[i].values;
    const auto size = static_cast<std::int64_t>(values.size());
    point[i] = values[static_cast<std::size_t>(index % size)];
    index /= size;
  }
}

/// An odd stride that leaves about most_points: odd, so that parameters of two, four, ... values still vary.
std::int64_t ranking_step(std::int64_t count) {
  return count > most_points ? std::max<std::int64_t>(1, (count / most_points) | 1) : 1;
}

std::string order_key(const NamedValues& point) {
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

void KernelSearch::rank_points() {
  std::vector<Ranked<double>> costed;
  std::vector<Ranked<std::string>> uncosted;
  for (std::size_t space = 0; space < spaces_.size(); ++space) {
    const BoundSpace& bound = spaces_[space];
    Point point(bound.parameters.size());
    const std::int64_t count = count_points(bound.parameters);
    const std::int64_t step = ranking_step(count);
    for (std::int64_t number = 0; number < count; number += step) {
      set_point(bound.parameters, number, point);
      if (bound.cost)
        costed.push_back({bound.cost(point), space, number});
      else
        uncosted.push_back({order_key(named_values(bound, point)), space, number});
    }
  }
  costed_ = Ranking<double>({}, std::move(costed));
  uncosted_ = Ranking<std::string>({}, std::move(uncosted));
}

/// By cost where there is a cost model; points of other spaces in between. REQUIRES has_ranked().
KernelSearch::Place KernelSearch::next_ranked() {
  const auto take = [this](auto& ranking) {
    const auto [space, number] = std::pair(ranking.top().space, ranking.top().number);
    ranking.pop();
    const std::vector<Parameter>& parameters = spaces_[space].parameters;
    Place place{space, Point(parameters.size())};
    set_point(parameters, number, place.point);
    return place;
  };
  const bool others_turn = ranked_taken_++ % uncosted_share == uncosted_share - 2;
  return costed_.empty() || (others_turn && !uncosted_.empty()) ? take(uncosted_) : take(costed_);
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
  while (!heuristics_.empty()) {
    Place place = std::move(heuristics_.front());
    heuristics_.pop_front();
    if (!visited_.contains(place)) return place;
  }
  for (;;) {
    if (round_left_ > 0) {
      --round_left_;
      while (has_ranked())
        if (Place place = next_ranked(); !visited_.contains(place)) return place;
    }
    if (auto place = next_neighbour()) return place;
    if (!has_ranked() && descents_ >= most_descents) return std::nullopt;
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
  const std::vector<Parameter>& parameters = spaces_[place.space].parameters;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const std::vector<std::int64_t>& values = parameters[i].values;
    const auto at = std::ranges::find(values, place.point[i]);
    if (at == values.end()) continue;  // the heuristic may stand outside the listed values
    const auto index = at - values.begin();
    for (const auto step : {1, -1}) {
      const auto other = index + step;
      if (other < 0 || other >= std::ssize(values)) continue;
      Place neighbour = place;
      neighbour.point[i] = values[static_cast<std::size_t>(other)];
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
