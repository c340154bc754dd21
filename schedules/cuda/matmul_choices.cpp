#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

#include "base/rounding.h"
#include "schedules/cuda/conv.h"
#include "schedules/cuda/matmul.h"

// Which numbers to race. The order is an estimate; the card decides.

namespace sylvite {
namespace {

constexpr int few_rows = 64;  // fewer rows than this fill one side of one tile
constexpr double of_a_clock = 1500,
                 exact_of_a_clock = 262;  // multiply-adds that are seen, of bf16 and of products by three
constexpr std::size_t most_choices = 12;

/// `share` is that of the tensor cores' rate which the tile's main loop was seen to keep, 128x128's being 1.
struct TileRow {
  int x, y;
  bool ping_pong;
  double share;
};
constexpr TileRow tiles[] = {
    {128, 128, true, 1.00},  {128, 192, true, 1.02},  {128, 256, false, 1.05}, {256, 128, false, 1.04},
    {128, 192, false, 1.02}, {128, 160, true, 1.01},  {128, 176, true, 0.99},  {128, 224, false, 1.03},
    {128, 160, false, 1.00}, {128, 128, false, 0.99}, {128, 96, true, 0.95},   {64, 256, true, 0.96},
    {64, 192, true, 0.91},   {64, 128, true, 0.83},   {128, 64, true, 0.81},   {64, 96, true, 0.75},
    {64, 64, true, 0.67},
};

/// Where each product is three, a tile's share grows with its columns: what it has beside them takes as long as 55. A consumer
/// alone waits for its fragments.
constexpr TileRow exact_tile(int x, int y, bool ping_pong) {
  return {x, y, ping_pong, (ping_pong ? 0.73 : 1.0) * 1.43 * y / (y + 55)};
}
constexpr TileRow exact_tiles[] = {
    exact_tile(128, 128, false), exact_tile(128, 120, false), exact_tile(128, 112, false),
    exact_tile(128, 96, false),  exact_tile(128, 80, false),  exact_tile(128, 64, false),
    exact_tile(128, 48, false),  exact_tile(128, 32, false),  exact_tile(64, 128, true),
    exact_tile(64, 96, true),    exact_tile(64, 64, true),
};

double share_of(const CudaMatmulProblem& problem, const CudaMatmulChoice& choice) {
  if (problem.exact) return exact_tile(choice.tile_x, choice.tile_y, choice.ping_pong).share;
  for (const TileRow& tile : tiles)
    if (tile.x == choice.tile_x && tile.y == choice.tile_y && tile.ping_pong == choice.ping_pong)
      return tile.share;
  return 1;
}

/// Of the blocks of a split, in the units of `estimate`.
double meeting(const CudaMatmulProblem& problem, const CudaMatmulChoice& choice) {
  if (!problem.exact || choice.split == 1) return 0;
  return exact_of_a_clock * (600 + choice.tile_x * choice.tile_y / 8.);
}

/// Time in units of a multiply-add of a multiprocessor: waves of tiles, and the epilogues that nothing hides.
/// Fitted to 450 kernels of eleven products on an H200, of which the first choices are within 2 % of the
/// best: what a last wave leaves idle is not all lost, since the others then run at a higher clock.
double estimate(const CudaMatmulProblem& problem, const CudaMatmulChoice& choice, const Card& card) {
  const double epilogue_depth = problem.exact ? 35 : 105;  // as long as this much depth of the tile
  constexpr double not_lost = 0.4;                         // of what a wave leaves idle
  const std::int64_t x = choice.swapped ? problem.n : problem.m, y = choice.swapped ? problem.m : problem.n;
  const std::int64_t clusters = ceil_div(x, choice.tile_x * choice.cluster_x) *
                                ceil_div(y, choice.tile_y * choice.cluster_y) * problem.batch;
  const int blocks = choice.cluster_x * choice.cluster_y * choice.split;
  const double full = static_cast<double>(clusters) / std::max(1, card.multiprocessors / blocks);
  const double waves = std::ceil(full) - not_lost * (std::ceil(full) - full);
  const double area = static_cast<double>(choice.tile_x) * choice.tile_y;
  const double exposed = choice.ping_pong ? 1.0 : waves;
  // Shared loads pay when there is much to do, and cost a little otherwise.
  const bool narrow = is_narrow(problem);
  const double shared = (blocks > 1) == (waves > 2 && !narrow) ? 1.0 : 1.01;
  // Tiles of narrow products are over before the next has come: clocks of each, on an H200.
  const double alone = narrow ? 1650 * of_a_clock * waves : 0;
  const double depth = static_cast<double>(problem.k) / choice.split;
  return shared * (area * (waves * depth / share_of(problem, choice) + exposed * epilogue_depth) + alone) +
         meeting(problem, choice);
}

void add_clusters(std::vector<CudaMatmulChoice>& choices, CudaMatmulChoice choice) {
  for (const auto& [x, y] : {std::pair{1, 1}, std::pair{2, 1}, std::pair{1, 2}}) {
    choice.cluster_x = x;
    choice.cluster_y = y;
    choices.push_back(choice);
  }
}

/// Blocks that share the depth, where there are few tiles.
void add_splits(std::vector<CudaMatmulChoice>& choices, const CudaMatmulProblem& problem, const Card& card) {
  for (const int split : {2, 4, 8}) {
    for (const int columns : {128, 96, 64}) {
      CudaMatmulChoice choice;
      choice.tile_y = columns;
      choice.ping_pong = false;
      choice.split = split;
      const std::int64_t tiles =
          ceil_div(problem.m, choice.tile_x) * ceil_div(problem.n, columns) * problem.batch;
      if (tiles * split <= card.multiprocessors) choices.push_back(choice);
    }
  }
}

/// Rows of x that are walked together, and stay in the L2 cache while all of y passes by: more of them where
/// y is too large to stay, and is then read less often.
std::vector<int> groups_of(const CudaMatmulProblem& problem) {
  constexpr std::int64_t cached = 16 << 20, too_large = 32 << 20;  // bytes
  const auto row = problem.k * static_cast<std::int64_t>(dtype_size(problem.element));
  if (problem.n * row > too_large && problem.m >= 4096 && 4096 * row <= cached) return {4096};
  if (problem.m >= 8192) return {1024, 2048};
  return {1024};
}

std::vector<CudaMatmulChoice> all_choices(const CudaMatmulProblem& problem, const Card& card) {
  std::vector<CudaMatmulChoice> choices;
  CudaMatmulChoice choice;
  if (problem.m <= few_rows) {
    choice.swapped = true;
    choice.tile_y = static_cast<int>(round_up(problem.m, 8));
    for (const int split : {1, 2, 4, 8}) {
      choice.tile_x = 128;
      choice.ping_pong = false;
      choice.split = split;
      // The blocks of a split own multiples of 8 columns.
      choice.tile_y = static_cast<int>(round_up(problem.m, 8 * split));
      choices.push_back(choice);
    }
    choice.split = 1;
    choice.tile_x = 64;
    choice.ping_pong = true;
    choice.tile_y = static_cast<int>(round_up(problem.m, 8));
    choices.push_back(choice);
    return choices;
  }
  for (const TileRow& tile : problem.exact ? std::span<const TileRow>(exact_tiles) : tiles) {
    choice.tile_x = tile.x;
    choice.tile_y = tile.y;
    choice.ping_pong = tile.ping_pong;
    for (const int group_rows : groups_of(problem)) {
      choice.group_rows = group_rows;
      add_clusters(choices, choice);
    }
  }
  if (problem.exact) add_splits(choices, problem, card);
  return choices;
}

}  // namespace

bool is_narrow(const CudaMatmulProblem& problem) {
  constexpr std::int64_t most_depth = 32, most_columns = 64;
  return problem.k <= most_depth && problem.n <= most_columns && problem.m > few_rows &&
         dtype_size(problem.element) == 2 && !problem.windows;
}

int row_alignment(const CudaMatmulProblem& problem) {
  constexpr std::int64_t most = 128;
  const std::int64_t pitch = problem.windows ? problem.windows->column_pitch : problem.a.pitch;
  return static_cast<int>(std::gcd(pitch * static_cast<std::int64_t>(dtype_size(problem.element)), most));
}

double cuda_matmul_clocks(const CudaMatmulProblem& problem, const CudaMatmulChoice& choice,
                          const Card& card) {
  constexpr double start = 3200;  // launch, first loads, last stores
  if (choice.swapped && problem.m > few_rows) return cuda_conv_clocks(problem, choice, card);
  return start + estimate(problem, choice, card) / (problem.exact ? exact_of_a_clock : of_a_clock);
}

std::vector<CudaMatmulChoice> cuda_matmul_choices(const CudaMatmulProblem& problem, const Card& card) {
  // A tensor that is added comes in boxes where n is the side of 64s: there tiles are cut along m, as a
  // convolution's.
  CudaMatmulChoice swapped;
  swapped.swapped = true;
  swapped.tile_y = 96;  // f32 leaves no room for boxes of more
  std::vector<CudaMatmulChoice> boxed;
  if (problem.m > few_rows && problem.batch == 1 && cuda_matmul_boxed(problem, swapped, card) > 0)
    boxed = cuda_conv_choices(problem, card);
  // Boxes of f32 take so much room that larger tiles, which load less, may do without.
  if (!boxed.empty() && problem.out != DType::f32) return boxed;
  std::vector<CudaMatmulChoice> choices = all_choices(problem, card);
  std::erase_if(choices, [&](const CudaMatmulChoice& choice) {
    return !refuse_cuda_matmul(problem, choice, card).empty();
  });
  std::stable_sort(choices.begin(), choices.end(), [&](const CudaMatmulChoice& a, const CudaMatmulChoice& b) {
    return estimate(problem, a, card) < estimate(problem, b, card);
  });
  if (choices.size() > most_choices) choices.resize(most_choices);
  // Seen on an H200, 4096 x 768: 54 us without boxes, 69 with, at a depth of 3072.
  const bool is_deep = problem.k >= 2 * problem.n;
  choices.insert(is_deep ? choices.end() : choices.begin(), boxed.begin(), boxed.end());
  return choices;
}

}  // namespace sylvite
