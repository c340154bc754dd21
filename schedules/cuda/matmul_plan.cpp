#include "schedules/cuda/matmul_plan.h"

#include <algorithm>

#include "base/rounding.h"

namespace sylvite {
namespace {

constexpr int enough_stages = 6;
constexpr int stages_for_boxes = 4;
constexpr int most_boxed = 2;
constexpr std::int64_t most_beside = 2;  // bytes of an element
constexpr std::int64_t map_unit = 16;    // bytes, of the pitches of tensor maps
constexpr int swizzled_bytes = 1024;     // where the pattern of boxes begins again

/// In any run.
bool stores_boxes(const CudaMatmulProblem& problem) {
  return !problem.n_is_open && problem.n * out_bytes(problem) % map_unit == 0;
}

/// Rows that begin anywhere pass through shared memory, if tensor memory access cannot store them.
bool stores_rows(const CudaMatmulProblem& problem, const CudaMatmulChoice& choice) {
  return !stores_boxes(problem) && !choice.swapped && choice.split == 1 && choice.tile_y >= 16;
}

bool lies_as_result(const CudaMatmulProblem& problem, const PointwiseOperand& operand) {
  const std::int64_t batch = problem.batch == 1 ? operand.strides[0] : problem.out_batch_pitch();
  return operand.offset == 0 && operand.each == 1 && operand.period == 0 &&
         operand.strides == Dims{batch, problem.out_pitch(), 1} &&
         problem.n * static_cast<std::int64_t>(dtype_size(operand.dtype)) % map_unit == 0;
}

/// In any run.
std::int64_t most_steps(const CudaMatmulProblem& problem) {
  constexpr std::int64_t many = 1 << 20;
  return problem.k_is_open ? many : steps_of(problem);
}

SharedMemoryPlan plan_with(const CudaMatmulProblem& problem, const CudaMatmulChoice& choice, const Card& card,
                           int chunk, int boxed) {
  SharedMemoryPlan plan;
  plan.chunk = chunk;
  const int own_y = choice.tile_y / choice.split;
  plan.store_boxes = stores_boxes(problem);
  plan.store_rows = stores_rows(problem, choice);
  const std::vector<EpilogueTerm> terms = terms_of(problem, choice, boxed);
  for (const EpilogueTerm& term : terms) {
    if (term.box == EpilogueBox::in_place) plan.residual = true;
    if (term.box == EpilogueBox::beside)
      plan.beside_bytes = static_cast<int>(dtype_size(term.operand->dtype));
  }
  if (plan.residual) plan.buffers = rows_of_consumer(choice) / 64 * (own_y / chunk);
  const int received = (choice.split - 1) * rows_of_consumer(choice) * own_y * 4;
  const int pieces = chunk * static_cast<int>(out_bytes(problem)) / 16;
  const int row_bytes = (pieces | 1) * 16;  // where rows are stored: an odd number of pieces
  const int buffers = plan.store_boxes  ? plan.buffers * 64 * chunk * static_cast<int>(out_bytes(problem))
                      : plan.store_rows ? 64 * row_bytes
                                        : 0;
  if (plan.boxed() != 0) plan.buffers_at = round_up(received, swizzled_bytes);
  plan.out_bytes = round_up(std::max(received, plan.buffers_at + buffers), swizzled_bytes);
  plan.beside_at = plan.out_bytes;
  plan.out_bytes += round_up(rows_of_consumer(choice) * own_y * plan.beside_bytes, swizzled_bytes);
  plan.vector_floats = vector_floats_of(terms);
  const int barriers = problem.exact ? 24 : 16;  // bytes of a stage
  const int stage = (choice.tile_x + choice.tile_y * (problem.exact ? 2 : 1)) * stage_row(problem) + barriers;
  const int to_align = stage_row(problem) < 128 ? 2 * 1024 : 1024;
  const int fixed = to_align + 2 * plan.out_bytes + 2 * plan.vector_floats * 4 + 32;  // 4 barriers
  plan.stages = static_cast<int>((card.shared_bytes - fixed) / stage);
  plan.stages = static_cast<int>(
      std::min<std::int64_t>(plan.stages, std::max<std::int64_t>(enough_stages, most_steps(problem) * 2)));
  plan.shared_bytes = fixed + plan.stages * stage;
  return plan;
}

/// Half of the columns, where that is a multiple of 8.
int half_of(int columns) {
  return columns % 16 == 0 ? columns / 2 : columns;
}

/// Columns of results that may be written at a time, the best first: 32 to 64, else more, else fewer. Boxes
/// of a swapped result are 128 bytes wide whatever the chunk; others are swizzled by its width. Rows are
/// stored whole, those of f32 in halves.
std::vector<int> chunks_of(const CudaMatmulProblem& problem, const CudaMatmulChoice& choice) {
  if (stores_rows(problem, choice))
    return {problem.out == DType::f32 ? half_of(choice.tile_y) : choice.tile_y};
  constexpr int most = 128;
  const int own_y = choice.tile_y / choice.split;
  std::vector<int> chunks;
  const int widest = choice.swapped ? 64 : 128 / static_cast<int>(out_bytes(problem));
  for (int chunk = widest; chunk >= 8; chunk -= 8)
    if (own_y % chunk == 0 && (choice.swapped || (chunk & (chunk - 1)) == 0)) chunks.push_back(chunk);
  const auto narrow = std::find_if(chunks.begin(), chunks.end(), [](int chunk) { return chunk < 32; });
  for (int chunk = 72; choice.swapped && narrow == chunks.begin() && chunk <= most; chunk += 8)
    if (own_y % chunk == 0) return {chunk};
  return chunks;
}

}  // namespace

MatmulSides sides_of(const CudaMatmulProblem& problem, bool swapped) {
  if (swapped) return {&problem.b, &problem.a, problem.n, problem.m};
  return {&problem.a, &problem.b, problem.m, problem.n};
}

int element_bytes(const CudaMatmulProblem& problem) {
  return static_cast<int>(dtype_size(problem.element));
}
int stage_row(const CudaMatmulProblem& problem) {
  constexpr int widest = 128;
  if (!problem.windows || problem.part != 0) return widest;
  const std::int64_t bytes = problem.windows->channels * element_bytes(problem);
  const bool ends_inside = problem.groups > 1 && bytes % widest != 0;  // where the next group begins
  return bytes <= widest / 2 || ends_inside ? widest / 2 : widest;
}
std::int64_t steps_of(const CudaMatmulProblem& problem) {
  const int depth = stage_row(problem) / element_bytes(problem);
  if (problem.part != 0) return ceil_div(problem.part, depth);
  const std::int64_t taps = problem.windows ? problem.windows->taps() : 1;
  return taps * ceil_div(problem.k / taps, depth);
}

int rows_of_consumer(const CudaMatmulChoice& choice) {
  return choice.ping_pong ? choice.tile_x : choice.tile_x / 2;
}

std::int64_t out_bytes(const CudaMatmulProblem& problem) {
  return static_cast<std::int64_t>(dtype_size(problem.out));
}

std::vector<EpilogueTerm> terms_of(const CudaMatmulProblem& problem, const CudaMatmulChoice& choice,
                                   int boxed) {
  std::vector<EpilogueTerm> terms =
      epilogue_terms(problem, {choice.swapped, rows_of_consumer(choice), choice.tile_y});
  if (!choice.swapped || !stores_boxes(problem)) return terms;
  const auto box_first = [&](EpilogueBox box, const auto& fits) {
    const auto found = std::ranges::find_if(terms, [&](const EpilogueTerm& term) {
      return term.box == EpilogueBox::none && !term.is_vector() && lies_as_result(problem, *term.operand) &&
             fits(static_cast<std::int64_t>(dtype_size(term.operand->dtype)));
    });
    if (boxed == 0 || found == terms.end()) return;
    found->box = box;
    --boxed;
  };
  box_first(EpilogueBox::in_place, [&](std::int64_t bytes) { return bytes == out_bytes(problem); });
  box_first(EpilogueBox::beside, [](std::int64_t bytes) { return bytes <= most_beside; });
  return terms;
}

SharedMemoryPlan plan_of(const CudaMatmulProblem& problem, const CudaMatmulChoice& choice, const Card& card) {
  SharedMemoryPlan best;
  for (const int chunk : chunks_of(problem, choice)) {
    SharedMemoryPlan plan = plan_with(problem, choice, card, chunk, most_boxed);
    while (plan.boxed() > 0 && plan.stages < std::min<std::int64_t>(stages_for_boxes, most_steps(problem)))
      plan = plan_with(problem, choice, card, chunk, plan.boxed() - 1);
    const bool is_deeper = chunk >= 32 && best.stages < enough_stages && plan.stages > best.stages;
    if (best.chunk == 0 || is_deeper) best = plan;
  }
  return best;
}

}  // namespace sylvite
