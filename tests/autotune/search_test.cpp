#include "autotune/search.h"

#include <gmock/gmock.h>

#include <functional>
#include <set>

namespace sylvite {
namespace {

Candidate point_candidate(const std::string& space, const Point& point) {
  Candidate candidate;
  candidate.form.name = space;
  candidate.form.parameters = point;
  return candidate;
}

std::function<Candidate(const Point&)> candidates_of(const std::string& space) {
  return [space](const Point& point) { return point_candidate(space, point); };
}
const std::vector<Parameter> grid = {{"a", {1, 2, 4, 8, 16}}, {"b", {0, 1}}};
const Point grid_heuristic = {{"a", 4}, {"b", 0}};
double cost(const Point& point) {
  return static_cast<double>(point.at("a")) + 0.5 * static_cast<double>(point.at("b"));
}

const BoundSpace costed{"costed", grid, grid_heuristic, candidates_of("costed"), cost};
const BoundSpace plain{"plain", grid, grid_heuristic, candidates_of("plain"), {}};

/// Millions of points.
BoundSpace vast_space() {
  BoundSpace space;
  space.name = "vast";
  space.at = candidates_of("plain");
  for (int i = 0; i < 12; ++i) space.parameters.push_back({"p" + std::to_string(i), {0, 1, 2, 3, 4, 5}});
  for (const Parameter& parameter : space.parameters) space.heuristic[parameter.name] = 0;
  return space;
}

TEST(KernelSearch, HeuristicsThenBestByCost) {
  KernelSearch search({costed, plain});
  auto proposals = search.propose(5);
  ASSERT_EQ(proposals.size(), 5);
  EXPECT_EQ(proposals[0], point_candidate("costed", {{"a", 4}, {"b", 0}}));
  EXPECT_EQ(proposals[1], point_candidate("plain", {{"a", 4}, {"b", 0}}));
  EXPECT_EQ(proposals[2], point_candidate("costed", {{"a", 1}, {"b", 0}}));
  EXPECT_EQ(proposals[3], point_candidate("costed", {{"a", 1}, {"b", 1}}));
}

TEST(KernelSearch, VisitsEveryPointOnce) {
  KernelSearch search({costed, plain});
  std::set<std::string> seen;
  int count = 0;
  for (auto batch = search.propose(3); !batch.empty(); batch = search.propose(3)) {
    for (const Candidate& candidate : batch) {
      seen.insert(candidate.to_string());
      ++count;
      search.observe(candidate, 1.0 + count);
    }
  }
  EXPECT_EQ(count, 20);
  EXPECT_EQ(seen.size(), 20);
}

TEST(KernelSearch, DescendsFromTheBest) {
  KernelSearch search({vast_space()});
  auto time_of = [](const Candidate& candidate) {
    double us = 100;
    for (const auto& [name, value] : candidate.form.parameters)
      us += std::abs(static_cast<double>(value) - 3);
    return us;
  };
  double best = 1000;
  for (int trials = 0; trials < 300; ++trials) {
    Candidate candidate = search.propose(1).at(0);
    search.observe(candidate, time_of(candidate));
    best = std::min(best, time_of(candidate));
  }
  EXPECT_EQ(best, 100);
}

TEST(KernelSearch, ReplaysStoredObservations) {
  KernelSearch first({costed});
  std::vector<Candidate> tried;
  for (int i = 0; i < 6; ++i) {
    tried.push_back(first.propose(1).at(0));
    first.observe(tried.back(), 10.0 + i % 3);
  }
  Candidate next = first.propose(1).at(0);
  KernelSearch second({costed});
  for (int i = 0; i < 6; ++i) second.observe(tried[static_cast<std::size_t>(i)], 10.0 + i % 3);
  EXPECT_EQ(second.propose(1).at(0), next);
}

}  // namespace
}  // namespace sylvite
