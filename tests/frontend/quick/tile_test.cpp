#include "frontend/quick/tile.h"

#include <gtest/gtest.h>

#include <cmath>

namespace sylvite::quick::tile_test {
namespace {

struct Problem {
  std::int64_t rows, depth, columns;
};

/// Panels of a dense b; what fills up the last is not a number, and reaches no result.
std::vector<float> panels_of(const std::vector<float>& b, const Problem& problem, std::int64_t panel) {
  const std::int64_t count = (problem.columns + panel - 1) / panel;
  std::vector<float> panels(static_cast<std::size_t>(count * panel * problem.depth), NAN);
  for (std::int64_t k = 0; k < problem.depth; ++k)
    for (std::int64_t j = 0; j < problem.columns; ++j)
      panels[static_cast<std::size_t>((j / panel * problem.depth + k) * panel + j % panel)] =
          b[static_cast<std::size_t>(k * problem.columns + j)];
  return panels;
}

class TileTest : public testing::TestWithParam<Problem> {};

TEST_P(TileTest, AddsTheProductWithEveryInstructionSet) {
  const Problem problem = GetParam();
  const auto& [rows, depth, columns] = problem;
  std::vector<float> a(static_cast<std::size_t>(rows * depth)), b(static_cast<std::size_t>(depth * columns));
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = std::sin(static_cast<float>(i));
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = std::cos(static_cast<float>(i));
  for (const Tiles& tiles : usable_tiles()) {
    std::vector<float> c(static_cast<std::size_t>(rows * columns), 2.0F);
    multiply_panels(tiles, a.data(), depth, panels_of(b, problem, tiles.panel).data(), c.data(), columns,
                    rows, depth, columns);
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < columns; ++j) {
        double sum = 2;
        for (std::int64_t k = 0; k < depth; ++k)
          sum += static_cast<double>(a[static_cast<std::size_t>(i * depth + k)]) *
                 static_cast<double>(b[static_cast<std::size_t>(k * columns + j)]);
        ASSERT_NEAR(c[static_cast<std::size_t>(i * columns + j)], sum, 1e-4)
            << tiles.name << " " << i << "," << j;
      }
  }
}

INSTANTIATE_TEST_SUITE_P(OddSizes, TileTest,
                         testing::Values(Problem{1, 1, 1}, Problem{14, 300, 32}, Problem{15, 7, 33},
                                         Problem{43, 513, 71}, Problem{5, 256, 8}, Problem{6, 257, 31}));

}  // namespace
}  // namespace sylvite::quick::tile_test
