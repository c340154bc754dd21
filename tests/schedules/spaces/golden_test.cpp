// The exact candidates of every space for three kernels: golden/SPACE.txt has the parameters, the heuristic
// point and the candidates at a few points, or the reason why the space refuses. golden/order.txt and
// gpu_order.txt have the order of the spaces that take a kernel. A space that loses its best points, or
// candidates that change by accident, show here.
//
// To write the files anew, on purpose:
//   SYLVITE_WRITE_GOLDEN=1 build/unity/bin/schedules_test --gtest_filter='*Golden*'
// and look at the difference.

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "tests/schedules/spaces/golden_cases.h"
#include "tests/support/run_kernel.h"

namespace sylvite::golden_test {
namespace {

std::string text_of(const NamedValues& values) {
  std::string text;
  for (const auto& [name, value] : values) text += fmt::format(" {}={}", name, value);
  return text + "\n";
}

using NamedPoint = std::pair<const char*, Point>;

/// The heuristic point and some others, the legal ones among them for the most part.
std::vector<NamedPoint> points_of(const std::vector<Parameter>& parameters, const Point& heuristic) {
  std::vector<NamedPoint> points;
  for (const char* name : {"heuristic", "odd", "even", "middle", "last"})
    points.emplace_back(name, heuristic);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const std::vector<std::int64_t>& values = parameters[i].values;
    points[i % 2 == 1 ? 1 : 2].second[i] = values.back();
    points[3].second[i] = values.at(values.size() / 2);
    points[4].second[i] = values.back();
  }
  return points;
}

std::string candidate_text(const BoundSpace& space, const Point& point) {
  try {
    return space.at(point).to_string();
  } catch (const UnsupportedError& error) {
    return fmt::format("no candidate: {}\n", error.what());
  }
}

std::string describe(const Space& space, const Kernel& kernel, const Machine& machine) {
  const Binding binding = space.bind(kernel, machine);
  if (!binding.refusal.empty()) return "refused: " + binding.refusal + "\n";
  const BoundSpace& taken = binding.space;
  std::string text;
  for (const Parameter& parameter : taken.parameters)
    text += fmt::format("{}: {}\n", parameter.name, fmt::join(parameter.values, " "));
  std::map<Point, const char*> seen;
  for (const auto& [name, point] : points_of(taken.parameters, taken.heuristic)) {
    const auto [same, is_new] = seen.emplace(point, name);
    if (!is_new) {
      text += fmt::format("-- {}: as {}\n", name, same->second);
      continue;
    }
    text += fmt::format("-- {}:{}", name, text_of(named_values(taken, point)));
    if (taken.cost) text += fmt::format("estimated {:.4g} us\n", 1e6 * taken.cost(point));
    text += candidate_text(taken, point);
  }
  return text;
}

void expect_golden(const std::string& name, const std::string& actual) {
  const std::filesystem::path path =
      std::filesystem::path(SYLVITE_TEST_DATA) / "../schedules/spaces/golden" / (name + ".txt");
  if (std::getenv("SYLVITE_WRITE_GOLDEN") != nullptr) std::ofstream(path) << actual;
  std::ifstream file(path);
  std::ostringstream expected;
  expected << file.rdbuf();
  EXPECT_EQ(actual, expected.str()) << path
                                    << " differs; the head of golden_test.cpp says how to write it anew";
}

class GoldenSpace : public testing::TestWithParam<std::string> {};

TEST_P(GoldenSpace, GivesTheseCandidates) {
  std::string text;
  for (const std::vector<Space>& table : {space_table(), gpu_space_table()}) {
    for (const Space& space : table) {
      if (space.name != GetParam()) continue;
      for (const GoldenCase& one : golden_cases) {
        if (one.space != space.name) continue;
        text += fmt::format("==== {}\n{}\n{}\n", one.machine, one.text,
                            describe(space, kernel_of(one.text), fixed_machine(one.machine)));
      }
    }
  }
  expect_golden(GetParam(), text);
}

std::vector<std::string> all_names() {
  std::vector<std::string> names;
  for (const Space& space : space_table()) names.push_back(space.name);
  for (const Space& space : gpu_space_table()) names.push_back(space.name);
  return names;
}
INSTANTIATE_TEST_SUITE_P(Schedules, GoldenSpace, testing::ValuesIn(all_names()),
                         [](const auto& one) { return one.param; });

/// Of every kernel on machines with or without a GPU: the spaces that take it, then the others.
std::string order_of_spaces(bool on_gpu) {
  std::string text;
  for (const GoldenCase& one : golden_cases) {
    const Machine machine = fixed_machine(one.machine);
    if (machine.gpu.has_value() != on_gpu) continue;
    const Kernel kernel = kernel_of(one.text);
    std::vector<Refusal> refusals;
    text += fmt::format("==== {}\n{}\n", one.machine, one.text);
    for (const BoundSpace& space : spaces_for(kernel, machine, &refusals)) text += space.name + "\n";
    for (const Refusal& refusal : refusals)
      text += fmt::format("{} refused: {}\n", refusal.space, refusal.reason);
  }
  return text;
}

TEST(GoldenOrder, OfACpu) {
  expect_golden("order", order_of_spaces(false));
}
TEST(GoldenOrder, OfAGpu) {
  expect_golden("gpu_order", order_of_spaces(true));
}

TEST(GoldenOrder, EverySpaceHasThreeKernels) {
  std::map<std::string, int> kernels;
  for (const GoldenCase& one : golden_cases) ++kernels[one.space];
  for (const std::string& name : all_names()) EXPECT_EQ(kernels[name], 3) << name;
}

}  // namespace
}  // namespace sylvite::golden_test
