#include <algorithm>
#include <span>

#include "base/error.h"
#include "base/rounding.h"
#include "schedules/cuda/rated.h"
#include "schedules/cuda/warps.h"

// Which numbers to race. The order is an estimate; the card decides.

namespace sylvite {
namespace {

constexpr std::size_t most_warps_choices = 14;

/// `share` is that of the tensor cores' rate which a full multiprocessor was seen to keep.
struct WarpsTileRow {
  int x, y, warps_x, warps_y, parts, stage_row, stages, resident;
  double share;
};
constexpr WarpsTileRow warps_tiles[] = {
    {256, 128, 4, 2, 1, 64, 4, 1, 0.96},  {128, 256, 2, 4, 1, 128, 3, 1, 1.00},
    {192, 192, 4, 2, 1, 64, 4, 1, 1.00},  {192, 192, 2, 4, 1, 64, 4, 1, 0.99},
    {256, 128, 4, 2, 1, 128, 3, 1, 0.98}, {128, 256, 2, 4, 1, 64, 4, 1, 0.96},
    {192, 128, 4, 2, 1, 128, 3, 1, 0.96}, {128, 192, 2, 4, 1, 128, 3, 1, 0.94},
    {192, 128, 4, 2, 1, 64, 4, 1, 0.87},  {128, 192, 2, 4, 1, 64, 4, 1, 0.85},
    {128, 128, 2, 2, 1, 128, 3, 2, 0.90}, {128, 128, 2, 2, 1, 64, 4, 2, 0.90},
    {96, 128, 2, 2, 1, 64, 4, 3, 0.83},   {128, 96, 2, 2, 1, 64, 4, 3, 0.80},
    {64, 128, 2, 2, 1, 64, 4, 3, 0.79},   {128, 64, 4, 2, 1, 128, 3, 2, 0.78},
    {128, 64, 2, 2, 1, 64, 4, 3, 0.76},   {64, 64, 2, 2, 1, 128, 4, 3, 0.74},
    {64, 64, 2, 2, 1, 64, 4, 4, 0.67},    {32, 64, 1, 2, 2, 128, 4, 4, 0.59},
    {32, 128, 1, 4, 1, 64, 4, 4, 0.58},   {64, 32, 2, 1, 2, 128, 4, 4, 0.56},
    {128, 32, 4, 1, 1, 64, 4, 4, 0.55},   {32, 32, 1, 1, 4, 256, 3, 3, 0.45},
    {16, 64, 1, 2, 4, 256, 3, 3, 0.42},   {16, 32, 1, 1, 4, 256, 4, 3, 0.33},
};
/// The same where each product is three.
constexpr WarpsTileRow exact_warps_tiles[] = {
    {128, 128, 4, 2, 1, 128, 3, 1, 1.00}, {128, 64, 4, 1, 1, 128, 3, 2, 0.99},
    {64, 64, 2, 2, 1, 128, 3, 3, 0.98},   {128, 96, 4, 2, 1, 128, 3, 1, 0.98},
    {64, 128, 2, 2, 1, 128, 3, 2, 0.97},  {64, 128, 2, 4, 1, 128, 3, 1, 0.94},
    {128, 64, 4, 2, 1, 128, 3, 1, 0.93},  {128, 32, 4, 1, 1, 128, 3, 3, 0.88},
    {32, 128, 1, 4, 1, 128, 3, 3, 0.88},  {64, 64, 2, 2, 1, 64, 4, 3, 0.83},
    {64, 32, 2, 1, 2, 128, 4, 3, 0.78},   {32, 64, 1, 2, 2, 128, 4, 3, 0.78},
    {32, 32, 1, 1, 4, 256, 3, 3, 0.77},   {16, 64, 1, 2, 4, 256, 3, 2, 0.73},
    {16, 32, 1, 1, 4, 256, 4, 3, 0.72},
};

CudaWarpsChoice choice_of_row(const WarpsTileRow& row, bool exact) {
  return {row.x, row.y, row.warps_x, row.warps_y, row.parts, row.stage_row, row.stages, row.resident, exact};
}

/// Bytes per clock that `warps` of a multiprocessor load from the L2 cache. Those of windows of two bytes a number were seen to
/// wait longer, each warp for its own.
double load_rate(const CudaMatmulProblem& problem, double warps) {
  constexpr double most = 45, most_of_windows = 30, of_a_warp = 2.5;
  const bool is_slow = problem.windows && dtype_size(problem.element) == 2;
  return is_slow ? std::min(most_of_windows, of_a_warp * warps) : most;
}

/// Clocks of a multiprocessor for its share of the tiles. The rates are those of products of 4096 cubed on an H100, and of 180
/// convolutions with windows on an H200 (benchmarks/cuda/cuda_forms.cpp).
double estimate_warps(const CudaMatmulProblem& problem, const WarpsTileRow& row, bool exact,
                      const Card& card) {
  constexpr double start = 4000;  // launch, first loads, last stores
  constexpr double enough_warps = 8;
  const double products = exact ? 140 : problem.element == DType::f32 ? 330 : 810;  // per clock
  const std::int64_t tiles_in_all =
      ceil_div(problem.m, std::int64_t{row.x}) * ceil_div(problem.n, std::int64_t{row.y}) * problem.batch;
  const std::int64_t tiles_of_one = ceil_div(tiles_in_all, std::int64_t{std::max(1, card.multiprocessors)});
  const auto beside = static_cast<double>(std::min<std::int64_t>(tiles_of_one, row.resident));
  const double warps = beside * row.warps_x * row.warps_y * row.parts;
  const double busy = std::min(1., 0.35 + 0.65 * warps / enough_warps);
  const auto bytes = static_cast<double>(dtype_size(problem.element));
  const auto depth = static_cast<double>(problem.k);
  const double fold = std::max(depth * row.x * row.y / (products * row.share * busy),
                               depth * bytes * (row.x + row.y) / load_rate(problem, warps));
  const double finish = row.x * row.y / 16. + 800;
  return start + static_cast<double>(tiles_of_one) * fold +
         static_cast<double>(ceil_div(tiles_of_one, std::int64_t{row.resident})) * finish;
}

std::span<const WarpsTileRow> rows_of(bool exact) {
  return exact ? std::span<const WarpsTileRow>(exact_warps_tiles) : warps_tiles;
}

}  // namespace

double cuda_warps_clocks(const CudaMatmulProblem& problem, const CudaWarpsChoice& choice, const Card& card) {
  for (WarpsTileRow row : rows_of(choice.exact)) {
    CudaWarpsChoice same = choice_of_row(row, choice.exact);
    same.resident = choice.resident;
    if (!(same == choice)) continue;
    row.resident = choice.resident;
    return estimate_warps(problem, row, choice.exact, card);
  }
  throw UsageError("{} is no tile of the table", choice.to_string());
}

std::vector<CudaWarpsChoice> cuda_warps_choices(const CudaMatmulProblem& problem, bool exact,
                                                const Card& card) {
  std::vector<Rated<CudaWarpsChoice>> rated;
  for (const WarpsTileRow& row : rows_of(exact)) {
    CudaWarpsChoice choice = choice_of_row(row, exact);
    while (choice.resident > 1 && !refuse_cuda_warps(problem, choice, card).empty()) --choice.resident;
    if (refuse_cuda_warps(problem, choice, card).empty())
      rated.emplace_back(estimate_warps(problem, row, exact, card), choice);
  }
  return best_first(std::move(rated), most_warps_choices);
}

}  // namespace sylvite
