#pragma once
// Which candidate of a kernel to try next.

#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <queue>
#include <set>
#include <string>
#include <vector>

#include "schedules/space.h"

namespace sylvite {

/// The search over the points of all spaces that take a kernel. In order:
/// 1. the heuristic point of every space;
/// 2. the points that cost() ranks best, a round of them;
/// 3. coordinate descent: neighbours, one step along one parameter, of the best point measured so far;
/// 4. at a local optimum, another round of 2 and then neighbours of the second and third best points, too.
/// Deterministic: with the same observations it proposes the same candidates in the same order, which is what
/// makes a search resumable from stored trials. Thread safety: none.
class KernelSearch {
 public:
  static constexpr double failed = std::numeric_limits<double>::infinity();

  /// What the spaces are bound to must outlive the search.
  explicit KernelSearch(std::vector<BoundSpace> spaces);

  /// The result of a trial, now or stored: the median in microseconds, or `failed`.
  void observe(const Candidate& candidate, double median_us);
  /// Up to `count` candidates that were neither proposed nor observed before; fewer, or none, when the spaces
  /// are exhausted as far as the observations so far lead.
  [[nodiscard]] std::vector<Candidate> propose(int count);
  /// Points that made no candidate, by reason.
  [[nodiscard]] const std::map<std::string, int>& rejections() const { return rejections_; }

 private:
  struct Place {
    std::size_t space = 0;  ///< of spaces_
    Point point;
    auto operator<=>(const Place&) const = default;
  };

  /// A point of which only the number is kept: few of the ranked ones are ever taken.
  template <typename Key>
  struct Ranked {
    Key key;
    std::size_t space;    ///< of spaces_
    std::int64_t number;  ///< when the values of all its parameters are counted through
    auto operator<=>(const Ranked&) const = default;
  };
  /// The least key is on top; of equal ones, the point that comes first in the spaces.
  template <typename Key>
  using Ranking = std::priority_queue<Ranked<Key>, std::vector<Ranked<Key>>, std::greater<>>;

  void rank_points();
  [[nodiscard]] bool has_ranked() const { return !costed_.empty() || !uncosted_.empty(); }
  [[nodiscard]] Place next_ranked();
  [[nodiscard]] std::optional<Place> next_place();
  [[nodiscard]] std::optional<Place> next_neighbour();
  [[nodiscard]] std::optional<Place> neighbour_of(const Place& place);
  [[nodiscard]] std::optional<Candidate> candidate_at(const Place& place);
  [[nodiscard]] std::vector<const Place*> best_places(std::size_t count) const;

  std::vector<BoundSpace> spaces_;
  std::deque<Place> heuristics_;
  Ranking<double> costed_;         ///< by estimated seconds
  Ranking<std::string> uncosted_;  ///< of spaces without a cost model, in a fixed random order
  std::int64_t ranked_taken_ = 0;
  int round_left_;            ///< ranked points before the next descent
  std::size_t descents_ = 1;  ///< how many of the best points are descended from
  std::set<Place> visited_;
  std::map<std::string, double> medians_;  ///< by candidate text
  std::map<std::string, Place> places_;    ///< of candidates whose point is known
  std::map<std::string, int> rejections_;
};

}  // namespace sylvite
