#include <algorithm>
#include <cmath>

#include "base/rounding.h"
#include "schedules/cuda/conv.h"

// Which numbers to race for convolutions. Channels are the side of 64s and pixels the side of 8s: many tiles
// of pixels can then be made to fill the card. Where 64s would leave much of a tile empty, it is the other way round.

namespace sylvite {
namespace {

constexpr std::size_t most_tiles = 9;  // then clusters of the first few
constexpr std::size_t with_clusters = 2;

struct ConvShape {
  int channels;
  bool ping_pong;
  int split;
};
constexpr ConvShape shapes[] = {{64, true, 1},   {128, true, 1},  {128, false, 1},
                                {256, false, 1}, {128, false, 2}, {128, false, 4}};

std::int64_t depth_steps(const CudaMatmulProblem& problem) {
  const std::int64_t channels = 128 / static_cast<std::int64_t>(dtype_size(problem.element));
  const std::int64_t taps = problem.windows ? problem.windows->taps() : 1;
  return taps * ceil_div(problem.k / taps, channels);
}

/// As how many values each result counts: itself, and what its epilogue reads, which costs much where it comes one by one.
double values_of(const CudaMatmulProblem& problem, const CudaMatmulChoice& choice, const Card& card) {
  constexpr double one_by_one = 7;
  if (!problem.epilogue_reads_activations) return 1;
  const auto read = std::ranges::count_if(problem.epilogue.operands, [](const PointwiseOperand& operand) {
    return operand.strides[1] != 0 && operand.strides[2] != 0;
  });
  const int boxed = cuda_matmul_boxed(problem, choice, card);
  return 1 + boxed + one_by_one * static_cast<double>(read - boxed);
}

/// Of 64 rows and 32 bytes of depth. A consumer alone waits for its fragments of f32.
double clocks_of_product(const CudaMatmulProblem& problem, const CudaMatmulChoice& choice) {
  constexpr double alone = 1.37;
  const double columns = choice.tile_y;
  if (problem.exact) return (choice.ping_pong ? alone : 1.) * 3 * (25 + 0.45 * columns);
  return std::max(0.6 * columns, 25 + columns / 4);
}

/// Of a row of 128 bytes to shared memory. Pixels of 72 channels, say, begin in the middle of the units that memory is read by.
double clocks_of_row(int alignment) {
  if (alignment >= 128) return 128 / 70.;
  return alignment == 64 ? 2.5 : alignment == 32 ? 3.0 : 6.0;
}

/// Clocks of a multiprocessor for all waves of tiles. The numbers were fitted to 250 kernels of ResNet-50 on
/// an H200: the first choice is within 2 % of the best, all kernels taken together. Those of rows that begin elsewhere than at
/// multiples of 128 bytes are of 260 convolutions of 16 to 640 channels (benchmarks/cuda/cuda_forms.cpp).
double estimate_conv(const CudaMatmulProblem& problem, const CudaMatmulChoice& choice, const Card& card) {
  constexpr double store_bytes = 11;  // per clock, to memory
  constexpr double start = 3200;      // launch, first loads, last stores
  constexpr double turn = 1200;       // from the last product of a tile to its stores
  constexpr double meeting = 5500;    // of the blocks of a split
  constexpr double exposed = 0.66;    // of finishing a tile, where both consumers do it at once
  const std::int64_t rows = choice.swapped ? problem.n : problem.m,
                     columns = choice.swapped ? problem.m : problem.n;
  const std::int64_t tiles = ceil_div(rows, choice.tile_x) * ceil_div(columns, choice.tile_y) * problem.batch;
  const std::int64_t at_once = std::max(1, card.multiprocessors / choice.split);
  const auto waves = static_cast<double>(ceil_div(tiles, at_once));
  const double products = choice.tile_x / 64.0 * 4 * clocks_of_product(problem, choice);
  const double loads = (choice.tile_x + choice.tile_y) * clocks_of_row(row_alignment(problem));
  const double steps = std::ceil(static_cast<double>(depth_steps(problem)) / choice.split);
  const double fold = steps * (16 + std::max(products, loads));
  const double area = static_cast<double>(choice.tile_x) * choice.tile_y / choice.split;
  const double bytes = values_of(problem, choice, card) * static_cast<double>(dtype_size(problem.out));
  const double finish = turn + area * bytes / store_bytes + meeting * (choice.split - 1);
  if (choice.ping_pong) return start + waves * std::max(fold, (fold + finish) / 2) + finish;
  return start + waves * (fold + exposed * finish);
}

/// Results leave in chunks of 32 to 128 columns: narrower ones take longer than the products.
bool is_well_cut(int columns) {
  for (int chunk = 32; chunk <= 128; chunk += 8)
    if (columns % chunk == 0) return true;
  return columns < 32;
}

/// With all channels in one tile, as the side of 8s. Up to 64, a tile of 64s takes less time, however empty it is.
void add_pixels_first(std::vector<CudaMatmulChoice>& choices, std::int64_t channels) {
  constexpr std::int64_t unit = 8, wide = 64, most = 256, kept = 4,
                         of = 5;  // tiles of 64s are four fifths full
  const std::int64_t columns = round_up(channels, unit);
  if (channels <= wide || columns > most || kept * round_up(channels, wide) <= of * channels ||
      !is_well_cut(static_cast<int>(columns)))
    return;
  for (const auto& [pixels, ping_pong] : {std::pair{64, true}, {128, true}, {128, false}, {256, false}}) {
    CudaMatmulChoice choice;
    choice.swapped = false;
    choice.tile_x = pixels;
    choice.tile_y = static_cast<int>(columns);
    choice.ping_pong = ping_pong;
    choices.push_back(choice);
  }
}

/// Tiles that are half empty are for splits of a long depth, where there are too few tiles for the card.
std::vector<CudaMatmulChoice> all_conv_choices(const CudaMatmulProblem& problem, const Card& card) {
  std::vector<CudaMatmulChoice> choices;
  for (const ConvShape& shape : shapes) {
    const bool is_half_empty = shape.channels > 64 && shape.channels >= 2 * problem.n;
    for (int pixels = 32; pixels <= 256; pixels += 8) {
      const std::int64_t blocks = ceil_div(problem.m, std::int64_t{pixels}) * problem.batch * shape.split;
      if (is_half_empty && (shape.split == 1 || blocks > card.multiprocessors)) continue;
      if (!is_well_cut(pixels / shape.split)) continue;
      CudaMatmulChoice choice;
      choice.swapped = true;
      choice.tile_x = shape.channels;
      choice.tile_y = pixels;
      choice.ping_pong = shape.ping_pong;
      choice.split = shape.split;
      choices.push_back(choice);
    }
  }
  add_pixels_first(choices, problem.n);
  return choices;
}

/// The order in which to race: of each shape at most three numbers of pixels, the best guesses first.
std::vector<CudaMatmulChoice> varied(const std::vector<CudaMatmulChoice>& sorted) {
  constexpr int most_of_a_shape = 3;
  std::vector<CudaMatmulChoice> result;
  for (const CudaMatmulChoice& choice : sorted) {
    const auto alike = std::count_if(result.begin(), result.end(), [&](const CudaMatmulChoice& other) {
      return other.tile_x == choice.tile_x && other.ping_pong == choice.ping_pong &&
             other.split == choice.split && other.swapped == choice.swapped;
    });
    if (alike < most_of_a_shape && result.size() < most_tiles) result.push_back(choice);
  }
  return result;
}

}  // namespace

double cuda_conv_clocks(const CudaMatmulProblem& problem, const CudaMatmulChoice& choice, const Card& card) {
  return estimate_conv(problem, choice, card);
}

std::vector<CudaMatmulChoice> cuda_conv_choices(const CudaMatmulProblem& problem, const Card& card) {
  const auto refuses = [&](const CudaMatmulChoice& choice) {
    return !refuse_cuda_matmul(problem, choice, card).empty();
  };
  std::vector<CudaMatmulChoice> choices = all_conv_choices(problem, card);
  std::erase_if(choices, refuses);
  std::stable_sort(choices.begin(), choices.end(), [&](const CudaMatmulChoice& a, const CudaMatmulChoice& b) {
    return estimate_conv(problem, a, card) < estimate_conv(problem, b, card);
  });
  choices = varied(choices);
  const std::size_t count = std::min(with_clusters, choices.size());
  for (std::size_t i = 0; i < count; ++i) {
    for (const auto& [x, y] : {std::pair{2, 1}, std::pair{1, 2}}) {
      CudaMatmulChoice choice = choices[i];
      choice.cluster_x = x;
      choice.cluster_y = y;
      if (!refuses(choice)) choices.push_back(choice);
    }
  }
  return choices;
}

}  // namespace sylvite
