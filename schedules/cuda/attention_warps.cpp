#include "schedules/cuda/attention_warps.h"

#include <algorithm>

#include "base/error.h"
#include "base/rounding.h"
#include "schedules/cuda/attention_text.h"
#include "schedules/cuda/card_limits.h"
#include "schedules/cuda/rated.h"
#include "schedules/cuda/sources.h"

// The head of schedules/cuda/attention_warps.cuh.

namespace sylvite {
namespace {

constexpr int registers_beside_rows = 40;  // scores, results and queries, at least
constexpr std::int64_t width_unit = 16;

std::int64_t queries_of(const CudaAttentionWarpsChoice& choice) {
  return std::int64_t{16} * choice.warps * choice.sixteens;
}

/// As the kernel lays it out.
std::int64_t warps_shared_bytes(const CudaAttentionProblem& problem, const CudaAttentionWarpsChoice& choice) {
  const std::int64_t key_pitch = 2 * round_up(problem.depth, width_unit) + 16;
  const std::int64_t value_pitch = 2 * round_up(problem.value_depth, width_unit) + 16;
  const std::int64_t stages = std::int64_t{2} * choice.block * (key_pitch + value_pitch);
  return queries_of(choice) * key_pitch + std::max(stages, queries_of(choice) * value_pitch);
}

int registers_of_rows(const CudaAttentionProblem& problem, const CudaAttentionWarpsChoice& choice) {
  const auto depth = static_cast<int>(round_up(problem.depth, width_unit));
  const auto value_depth = static_cast<int>(round_up(problem.value_depth, width_unit));
  const int queries = choice.keeps_queries ? depth / 4 : 4;
  return choice.sixteens * (choice.block / 2 + value_depth / 2 + queries) + registers_beside_rows;
}

/// Keys that are multiplied for nothing, and the traffic of shared memory where a warp has few queries.
double cost_of(const CudaAttentionProblem& problem, const CudaAttentionWarpsChoice& choice,
               const Card& card) {
  constexpr double cost_of_block = 8;  // keys
  const auto keys = static_cast<double>(ceil_div(problem.keys, std::int64_t{choice.block}) * choice.block);
  const auto blocks = static_cast<double>(ceil_div(problem.keys, std::int64_t{choice.block}));
  const std::int64_t tiles = ceil_div(problem.queries, queries_of(choice)) * problem.heads * problem.batch;
  const auto waves =
      static_cast<double>(ceil_div(tiles, std::int64_t{std::max(1, card.multiprocessors)} * choice.resident));
  const double traffic = choice.sixteens == 1 ? 1.3 : 1;
  const double alone = choice.warps * choice.resident < 8 ? 1.2 : 1;
  return (keys + cost_of_block * blocks) * waves * choice.resident * static_cast<double>(queries_of(choice)) *
         traffic * alone * (choice.keeps_queries ? 1 : 1.05);
}

}  // namespace

std::string CudaAttentionWarpsChoice::to_string() const {
  return fmt::format("warps {}x{} {} x{}{}", warps, 16 * sixteens, block, resident,
                     keeps_queries ? "" : " again");
}

std::string refuse_attention_warps(const CudaAttentionProblem& problem,
                                   const CudaAttentionWarpsChoice& choice, const Card& card) {
  constexpr int unit = 16;
  if (problem.element == DType::f32) return "f32 has a kernel of its own";
  if (choice.block % unit != 0 || choice.warps * choice.sixteens % 4 != 0)
    return "a block has multiples of 16 keys and of 64 queries";
  const int most =
      std::min(most_registers, registers_of_multiprocessor / (32 * choice.warps * choice.resident));
  if (registers_of_rows(problem, choice) > most) return "its scores and results do not fit into registers";
  const std::int64_t bytes = (warps_shared_bytes(problem, choice) + 1024) * choice.resident;
  return bytes > card.shared_bytes + 1024 ? "it does not fit into shared memory" : "";
}

CudaTemplate make_attention_warps(const CudaAttentionProblem& problem,
                                  const CudaAttentionWarpsChoice& choice) {
  const std::int64_t queries = queries_of(choice);
  const std::int64_t depth = round_up(problem.depth, width_unit);
  const std::int64_t value_depth = round_up(problem.value_depth, width_unit);
  CudaTemplate result;
  LaunchSpec& launch = result.launch;
  launch.entry = attention_entry(problem);
  result.source.text = fmt::format("#define KERNEL {}\n{}", launch.entry, embedded::cuda_card);
  const CudaAttentionChoice walk = {false, static_cast<int>(queries / 64), choice.block, 2, choice.resident};
  const auto width = static_cast<int>(std::max(depth, value_depth));
  result.source.text += attention_constants(problem, walk, width);
  result.source.text += attention_arguments(problem, true);
  result.source.text += embedded::cuda_attention_scores;
  result.source.text += attention_lies(problem);
  result.source.text += fmt::format(
      "constexpr int DEPTH_WIDTH = {}, VALUE_WIDTH = {}, WARPS = {}, SIXTEENS = {};\n"
      "constexpr bool KEEPS_QUERIES = {};\n",
      depth, value_depth, choice.warps, choice.sixteens, choice.keeps_queries);
  result.source.text += embedded::cuda_attention_warps;
  launch.shape.set_blocks(BlockCount(problem.queries).in_parts_of(queries) * (problem.heads * problem.batch));
  launch.shape.block[0] = static_cast<unsigned>(32 * choice.warps);
  launch.shape.shared_bytes = static_cast<unsigned>(warps_shared_bytes(problem, choice));
  launch.shape.programmatic = true;
  launch.pointers = {problem.mask ? problem.mask->argument : -1, problem.q.argument, problem.k.argument,
                     problem.v.argument, problem.out.argument};
  launch.numbers = extent_numbers(attention_extents(problem, true));
  return result;
}

std::vector<CudaAttentionWarpsChoice> attention_warps_choices(const CudaAttentionProblem& problem,
                                                              const Card& card) {
  constexpr std::size_t most_choices = 12;
  std::vector<Rated<CudaAttentionWarpsChoice>> rated;
  for (const auto& [warps, sixteens] : {std::pair{4, 2}, {8, 1}, {4, 1}, {2, 2}, {8, 2}}) {
    for (const int block : {64, 128, 48, 80, 112, 32}) {
      for (const int resident : {2, 1, 3, 4}) {
        for (const bool keeps : {true, false}) {
          const CudaAttentionWarpsChoice choice = {warps, sixteens, block, resident, keeps};
          if (refuse_attention_warps(problem, choice, card).empty())
            rated.emplace_back(cost_of(problem, choice, card), choice);
        }
      }
    }
  }
  return best_first(std::move(rated), most_choices);
}

}  // namespace sylvite
