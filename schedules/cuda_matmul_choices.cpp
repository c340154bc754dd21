#include <algorithm>
#include <cmath>

#include "schedules/cuda_matmul.h"

// Which numbers to race. The order is an estimate; the card decides.

namespace sylvite {
namespace {

constexpr int few_rows = 64;  // fewer rows than this fill one side of one tile
constexpr std::size_t most_choices = 12;

/// `share` is that of the tensor cores' peak which the tile's main loop was seen to keep (H200).
struct TileRow {
  int x, y;
  bool ping_pong;
  double share;
};
constexpr TileRow tiles[] = {
    {128, 128, true, 1.00}, {128, 192, true, 0.99},  {128, 176, true, 0.97},  {128, 160, true, 0.96},
    {128, 96, true, 0.95},  {128, 192, false, 0.95}, {128, 256, false, 0.93}, {256, 128, false, 0.93},
    {64, 192, true, 0.93},  {64, 128, true, 0.90},   {128, 64, true, 0.88},   {128, 128, false, 0.90},
    {64, 96, true, 0.85},   {64, 64, true, 0.70},
};

std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

double share_of(const CudaMatmulChoice& choice) {
  for (const TileRow& tile : tiles) {
    if (tile.x == choice.tile_x && tile.y == choice.tile_y && tile.ping_pong == choice.ping_pong)
      return tile.share;
  }
  return 1;
}

/// Time in units of a multiply-add of a multiprocessor: whole waves of tiles, and the epilogues that nothing
/// hides.
double estimate(const CudaMatmulProblem& problem, const CudaMatmulChoice& choice, const CudaCard& card) {
  constexpr double epilogue_depth = 150;  // as long as this much depth of the tile
  const std::int64_t x = choice.swapped ? problem.n : problem.m, y = choice.swapped ? problem.m : problem.n;
  const std::int64_t clusters = ceil_div(x, choice.tile_x * choice.cluster_x) *
                                ceil_div(y, choice.tile_y * choice.cluster_y) * problem.batch;
  const int blocks = choice.cluster_x * choice.cluster_y * choice.split;
  const std::int64_t waves = ceil_div(clusters, card.multiprocessors / blocks);
  const double area = static_cast<double>(choice.tile_x) * choice.tile_y;
  const double exposed = choice.ping_pong ? 1.0 : static_cast<double>(waves);
  // Shared loads pay when there is much to do, and cost a little otherwise.
  const double shared = (blocks > 1) == (waves > 2) ? 1.0 : 1.01;
  const double depth = static_cast<double>(problem.k) / choice.split;
  return shared * area * (static_cast<double>(waves) * depth / share_of(choice) + exposed * epilogue_depth);
}

void add_clusters(std::vector<CudaMatmulChoice>& choices, CudaMatmulChoice choice) {
  for (const auto& [x, y] : {std::pair{1, 1}, std::pair{2, 1}, std::pair{1, 2}}) {
    choice.cluster_x = x;
    choice.cluster_y = y;
    choices.push_back(choice);
  }
}

std::vector<CudaMatmulChoice> all_choices(const CudaMatmulProblem& problem) {
  std::vector<CudaMatmulChoice> choices;
  CudaMatmulChoice choice;
  if (problem.m <= few_rows) {
    choice.swapped = true;
    choice.tile_y = static_cast<int>(ceil_div(problem.m, 8) * 8);
    for (const int split : {1, 2, 4, 8}) {
      choice.tile_x = 128;
      choice.ping_pong = false;
      choice.split = split;
      // The blocks of a split own multiples of 8 columns.
      choice.tile_y = static_cast<int>(ceil_div(problem.m, 8 * split) * 8 * split);
      choices.push_back(choice);
    }
    choice.split = 1;
    choice.tile_x = 64;
    choice.ping_pong = true;
    choice.tile_y = static_cast<int>(ceil_div(problem.m, 8) * 8);
    choices.push_back(choice);
    return choices;
  }
  for (const TileRow& tile : tiles) {
    choice.tile_x = tile.x;
    choice.tile_y = tile.y;
    choice.ping_pong = tile.ping_pong;
    for (const int group_rows : {1024, 2048}) {
      choice.group_rows = group_rows;
      if (group_rows == 1024 || problem.m >= 8192) add_clusters(choices, choice);
    }
  }
  return choices;
}

}  // namespace

std::vector<CudaMatmulChoice> cuda_matmul_choices(const CudaMatmulProblem& problem, const CudaCard& card) {
  std::vector<CudaMatmulChoice> choices = all_choices(problem);
  std::erase_if(choices, [&](const CudaMatmulChoice& choice) {
    return !refuse_cuda_matmul(problem, choice, card).empty();
  });
  std::stable_sort(choices.begin(), choices.end(), [&](const CudaMatmulChoice& a, const CudaMatmulChoice& b) {
    return estimate(problem, a, card) < estimate(problem, b, card);
  });
  if (choices.size() > most_choices) choices.resize(most_choices);
  return choices;
}

}  // namespace sylvite
