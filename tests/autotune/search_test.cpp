#include "autotune/search.h"

#include <gmock/gmock.h>

#include <set>

#include "tests/autotune/sample_kernels.h"

namespace sylvite {
namespace {

Candidate point_candidate(const std::string& space, const Point& point) {
  Candidate candidate;
  candidate.form.name = space;
  candidate.form.parameters = point;
  return candidate;
}

std::string accept(const Kernel&, const Machine&) {
  return "";
}
std::vector<Parameter> grid(const Kernel&, const Machine&) {
  return {{"a", {1, 2, 4, 8, 16}}, {"b", {0, 1}}};
}
Point grid_heuristic(const Kernel&, const Machine&) {
  return {{"a", 4}, {"b", 0}};
}
Candidate costed_at(const Kernel&, const Machine&, const Point& point) {
  return point_candidate("costed", point);
}
double cost(const Kernel&, const Machine&, const Point& point) {
  return static_cast<double>(point.at("a")) + 0.5 * static_cast<double>(point.at("b"));
}
Candidate plain_at(const Kernel&, const Machine&, const Point& point) {
  return point_candidate("plain", point);
}

const Space costed{"costed", accept, grid, grid_heuristic, costed_at, cost};
const Space plain{"plain", accept, grid, grid_heuristic, plain_at, nullptr};

/// Millions of points, all the same to the cost model.
std::vector<Parameter> vast_grid(const Kernel&, const Machine&) {
  std::vector<Parameter> parameters;
  for (int i = 0; i < 12; ++i) parameters.push_back({"p" + std::to_string(i), {0, 1, 2, 3, 4, 5}});
  return parameters;
}
Point vast_heuristic(const Kernel& kernel, const Machine& machine) {
  Point point;
  for (const Parameter& parameter : vast_grid(kernel, machine)) point[parameter.name] = 0;
  return point;
}
const Space vast{"vast", accept, vast_grid, vast_heuristic, plain_at, nullptr};

struct SearchTest : testing::Test {
  Kernel kernel = sample_pointwise();
  Machine machine;
};

TEST_F(SearchTest, HeuristicsThenBestByCost) {
  KernelSearch search(kernel, machine, {&costed, &plain});
  auto proposals = search.propose(5);
  ASSERT_EQ(proposals.size(), 5);
  EXPECT_EQ(proposals[0], point_candidate("costed", {{"a", 4}, {"b", 0}}));
  EXPECT_EQ(proposals[1], point_candidate("plain", {{"a", 4}, {"b", 0}}));
  EXPECT_EQ(proposals[2], point_candidate("costed", {{"a", 1}, {"b", 0}}));
  EXPECT_EQ(proposals[3], point_candidate("costed", {{"a", 1}, {"b", 1}}));
}

TEST_F(SearchTest, VisitsEveryPointOnce) {
  KernelSearch search(kernel, machine, {&costed, &plain});
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

TEST_F(SearchTest, DescendsFromTheBest) {
  KernelSearch search(kernel, machine, {&vast});
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

TEST_F(SearchTest, ReplaysStoredObservations) {
  KernelSearch first(kernel, machine, {&costed});
  std::vector<Candidate> tried;
  for (int i = 0; i < 6; ++i) {
    tried.push_back(first.propose(1).at(0));
    first.observe(tried.back(), 10.0 + i % 3);
  }
  Candidate next = first.propose(1).at(0);
  KernelSearch second(kernel, machine, {&costed});
  for (int i = 0; i < 6; ++i) second.observe(tried[static_cast<std::size_t>(i)], 10.0 + i % 3);
  EXPECT_EQ(second.propose(1).at(0), next);
}

}  // namespace
}  // namespace sylvite
