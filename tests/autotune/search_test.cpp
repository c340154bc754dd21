#include "autotune/search.h"

#include <gmock/gmock.h>

#include <set>

namespace sylvite::search_test {
namespace {

/// The form has the space's name, and the point as its parameters.
Candidate candidate_of(const std::string& space, const NamedValues& point) {
  return {{space, point}, {}};
}

/// A space of such candidates; the parameters' first values are the heuristic's.
BoundSpace space_of(const std::string& name, const std::vector<Parameter>& parameters) {
  BoundSpace space;
  space.name = name;
  space.parameters = parameters;
  for (const Parameter& parameter : parameters) space.heuristic.push_back(parameter.values.front());
  space.at = [named = space](const Point& point) {
    return candidate_of(named.name, named_values(named, point));
  };
  return space;
}

const std::vector<Parameter> grid = {{"a", {4, 1, 2, 8, 16}}, {"b", {0, 1}}};
double cost(const Point& point) {
  return static_cast<double>(point.at(0)) + 0.5 * static_cast<double>(point.at(1));
}

BoundSpace costed_space() {
  BoundSpace space = space_of("costed", grid);
  space.cost = cost;
  return space;
}
const BoundSpace costed = costed_space();
const BoundSpace plain = space_of("plain", grid);

/// Millions of points.
BoundSpace vast_space() {
  std::vector<Parameter> parameters;
  parameters.reserve(12);
  for (int i = 0; i < 12; ++i) parameters.push_back({"p" + std::to_string(i), {0, 1, 2, 3, 4, 5}});
  return space_of("vast", parameters);
}

TEST(KernelSearch, HeuristicsThenBestByCost) {
  KernelSearch search({costed, plain});
  auto proposals = search.propose(5);
  ASSERT_EQ(proposals.size(), 5);
  EXPECT_EQ(proposals[0], candidate_of("costed", {{"a", 4}, {"b", 0}}));
  EXPECT_EQ(proposals[1], candidate_of("plain", {{"a", 4}, {"b", 0}}));
  EXPECT_EQ(proposals[2], candidate_of("costed", {{"a", 1}, {"b", 0}}));
  EXPECT_EQ(proposals[3], candidate_of("costed", {{"a", 1}, {"b", 1}}));
}

/// After the heuristics one in five, the fourth. The second five have one less: a heuristic, which was taken.
TEST(KernelSearch, TakesTurnsWithSpacesWithoutCosts) {
  KernelSearch search({costed, plain});
  std::string turns;
  for (const Candidate& candidate : search.propose(14)) turns += candidate.form.name.front();
  EXPECT_EQ(turns,
            "cp"
            "cccp"
            "cccp"
            "cccp");
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
}  // namespace sylvite::search_test
