#include "schedules/cuda/warps.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/error.h"
#include "base/rounding.h"
#include "schedules/cuda/card_limits.h"
#include "schedules/cuda/matmul_epilogue.h"
#include "schedules/cuda/matmul_plan.h"
#include "schedules/cuda/sources.h"

// The head of schedules/cuda/warps.cuh.

namespace sylvite {
namespace {

constexpr int registers_beside_tile = 8;  // sums and fragments, at least
constexpr int bytes_of_slice = 32;

int threads_of(const CudaWarpsChoice& choice) {
  return 32 * choice.warps_x * choice.warps_y * choice.parts;
}

std::int64_t tiles_shared_bytes(const CudaMatmulProblem& problem, const CudaWarpsChoice& choice,
                                int vector_floats) {
  constexpr std::int64_t alignment = 128;
  const std::int64_t ring = std::int64_t{choice.tile_x + choice.tile_y} * choice.stage_row * choice.stages;
  const std::int64_t parts = std::int64_t{choice.parts - 1} * choice.tile_x * choice.tile_y * 4;
  const std::int64_t results =
      std::int64_t{choice.tile_x} * (choice.tile_y + 8) * static_cast<std::int64_t>(dtype_size(problem.out));
  return round_up(std::int64_t{vector_floats} * 4, alignment) + std::max({ring, parts, results});
}

/// Bytes in which rows that begin at multiples of `numbers` elements can be read or written.
std::int64_t common_unit(std::initializer_list<std::int64_t> numbers, std::int64_t bytes) {
  std::int64_t unit = 16;
  for (const std::int64_t number : numbers) unit = std::gcd(unit, number * bytes);
  return unit;
}

/// One side of the product as constants of these names.
std::string side_text(const char* side, const MatmulOperand& operand, std::int64_t bytes) {
  return fmt::format(
      "constexpr bool {0}_DEPTH_FAST = {1};\nconstexpr int {0}_PITCH = {2}, {0}_UNIT = {3};\n"
      "constexpr long long {0}_BATCH = {4}, {0}_OFFSET = {5}, {0}_OUTER = {9};\nconstexpr int {0}_EACH = "
      "{6}, "
      "{0}_PERIOD = {7}, {0}_INNER = {8};\n",
      side, operand.depth_fast, operand.pitch,
      common_unit({operand.pitch, operand.offset, operand.batch_pitch, operand.outer_pitch}, bytes),
      operand.batch_pitch, operand.offset, operand.each, operand.period, operand.inner, operand.outer_pitch);
}

std::string warps_windows(const CudaMatmulProblem& problem) {
  CudaMatmulProblem::Windows w;
  w.channels = problem.k_is_open ? 1 : problem.k;
  if (problem.windows) w = *problem.windows;
  return fmt::format(
      "constexpr bool WINDOWS = {}, SPANS_FRAMES = {};\n"
      "constexpr int FRAMES = {}, OUT_FRAMES = {}, TAPS_Y = {}, STRIDE_Z = {}, DILATION_Z = {}, PAD_Z = {};\n"
      "constexpr int CHANNELS = {}, COLUMN_PITCH = {}, TAPS_X = {}, STRIDE_Y = {}, STRIDE_X = {}, "
      "DILATION_Y = {}, DILATION_X = {}, PAD_Y = {}, PAD_X = {};\n",
      problem.windows.has_value(), w.spans_frames(), w.frames, w.out_frames, w.taps_y, w.stride_z,
      w.dilation_z, w.pad_z, w.channels, w.column_pitch, w.taps_x, w.stride_y, w.stride_x, w.dilation_y,
      w.dilation_x, w.pad_y, w.pad_x);
}

/// Those of the product, and of images.
std::vector<CudaExtent> warps_extents(const CudaMatmulProblem& problem) {
  const CudaMatmulProblem::Windows w = problem.windows.value_or(CudaMatmulProblem::Windows{});
  std::vector<CudaExtent> extents = product_extents(problem, false);
  for (const auto& [name, value] : {std::pair("lines", w.lines),
                                    {"columns", w.columns},
                                    {"line_pitch", w.line_pitch},
                                    {"image_pitch", w.image_pitch}})
    extents.push_back({name, value, problem.has_open_images});
  return extents;
}

/// The sides as matrices: a filter's taps and channels lie together.
MatmulOperand left_of(const CudaMatmulProblem& problem) {
  MatmulOperand left = problem.a;
  if (!problem.windows) return left;
  const CudaMatmulProblem::Windows& w = *problem.windows;
  const std::int64_t together =
      problem.has_open_images  // lines are whole pixels
          ? common_unit({w.channels, w.column_pitch, w.pixel_pitch}, 1)
          : common_unit({w.channels, w.column_pitch, w.line_pitch, w.image_pitch}, 1);
  left.pitch = together;  // of which only the unit is used
  return left;
}
MatmulOperand right_of(const CudaMatmulProblem& problem) {
  MatmulOperand right = problem.b;
  if (problem.windows) right.pitch = problem.k;
  return right;
}

std::string warps_constants(const CudaMatmulProblem& problem, const CudaWarpsChoice& choice,
                            int vector_floats) {
  constexpr int rows_together = 1024;
  const std::int64_t bytes = element_bytes(problem);
  const std::int64_t batch_pitch = problem.batch == 1 ? 0 : problem.out_batch_pitch();
  return fmt::format("typedef {} Element;\ntypedef {} Out;\n", dtype_name(problem.element),
                     dtype_name(problem.out)) +
         fmt::format("constexpr int K = {};\nconstexpr bool X_IS_WHOLE = {}, Y_IS_WHOLE = {};\n",
                     problem.k_is_open ? 0 : problem.k, !problem.is_open && problem.m % choice.tile_x == 0,
                     problem.n % choice.tile_y == 0) +
         side_text("X", left_of(problem), bytes) + side_text("Y", right_of(problem), bytes) +
         warps_windows(problem) +
         fmt::format(
             "constexpr int TILE_X = {}, TILE_Y = {}, WARPS_X = {}, WARPS_Y = {}, PARTS = {}, STAGE_ROW = "
             "{}, "
             "STAGES = {},\n              RESIDENT = {}, GROUP = {}, OUT_UNIT = {}, VECTOR_FLOATS = {};\n"
             "constexpr bool EXACT = {};\nconstexpr long long RESULT_PITCH = {}, RESULT_BATCH = {};\n",
             choice.tile_x, choice.tile_y, choice.warps_x, choice.warps_y, choice.parts, choice.stage_row,
             choice.stages, choice.resident, std::max(1, rows_together / choice.tile_x),
             common_unit({problem.n, problem.out_pitch(), batch_pitch},
                         static_cast<std::int64_t>(dtype_size(problem.out))),
             vector_floats, choice.exact, problem.out_pitch(), batch_pitch);
}

/// Rows of an operand whose depth is not innermost lie in shared memory as lines of 128 bytes.
bool fills_lines(const MatmulOperand& operand, int tile, std::int64_t bytes) {
  return operand.depth_fast || tile * bytes % 128 == 0;
}

/// Offsets inside an operand are 32-bit numbers of elements.
bool is_too_large(const CudaMatmulProblem& problem) {
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  const auto elements = [&](const MatmulOperand& operand, std::int64_t rows) {
    return operand.pitch * (operand.depth_fast ? rows : problem.k);
  };
  const std::int64_t images =
      problem.windows ? problem.windows->images * problem.windows->frames * problem.windows->image_pitch
                      : elements(problem.a, problem.m);
  return std::max(images, elements(right_of(problem), problem.n)) > most;
}

std::string refuse_registers(const CudaWarpsChoice& choice) {
  const int sixteens = choice.tile_x / choice.warps_x / 16, eights = choice.tile_y / choice.warps_y / 8;
  const int sums = 4 * sixteens * eights * (choice.exact ? 3 : 1);
  const int fragments = 2 * (4 * sixteens + 2 * eights);
  const int most =
      std::min(most_registers, registers_of_multiprocessor / (threads_of(choice) * choice.resident) / 8 * 8);
  return sums + fragments + registers_beside_tile > most ? "its sums do not fit into registers" : "";
}

}  // namespace

std::string CudaWarpsChoice::to_string() const {
  std::string text =
      fmt::format("{}x{} w{}x{} {}s{} r{}", tile_x, tile_y, warps_x, warps_y, stage_row, stages, resident);
  if (parts > 1) text += fmt::format(" k{}", parts);
  if (exact) text += " exact";
  return text;
}

std::string refuse_cuda_warps(const CudaMatmulProblem& problem, const CudaWarpsChoice& choice,
                              const Card& card) {
  constexpr int most_threads = 1024;
  if (choice.tile_x % (16 * choice.warps_x) != 0 || choice.tile_y % (16 * choice.warps_y) != 0)
    return "a warp makes multiples of 16 x 16 results";
  if (choice.stage_row % (2 * bytes_of_slice * choice.parts) != 0 || choice.stages < 3)
    return "a warp takes an even number of slices of a stage, and there are at least three stages";
  if (threads_of(choice) > most_threads) return "a block has at most 1024 threads";
  const std::int64_t bytes = element_bytes(problem);
  if (!fills_lines(problem.a, choice.tile_x, bytes) || !fills_lines(problem.b, choice.tile_y, bytes))
    return "an operand's tile does not fill lines of 128 bytes";
  if (is_too_large(problem)) return "an operand has more than 2^31 elements";
  if (choice.exact && problem.element != DType::f32) return "only f32 is multiplied three times";
  if (std::string refusal = refuse_registers(choice); !refusal.empty()) return refusal;
  const int floats = vector_floats_of(epilogue_terms(problem, {false, choice.tile_x, choice.tile_y}));
  const std::int64_t shared = tiles_shared_bytes(problem, choice, floats) + 1024;  // which the system takes
  return shared * choice.resident > card.shared_bytes + 1024 ? "it does not fit into shared memory" : "";
}

CudaTemplate make_cuda_warps(const CudaMatmulProblem& problem, const CudaWarpsChoice& choice) {
  const std::vector<EpilogueTerm> terms = epilogue_terms(problem, {false, choice.tile_x, choice.tile_y});
  const int floats = vector_floats_of(terms);
  CudaTemplate result;
  LaunchSpec& launch = result.launch;
  launch.entry = product_entry("warps", problem);
  std::string& text = result.source.text;
  text = fmt::format("#define KERNEL {}\n{}{}{}", launch.entry, embedded::cuda_card, embedded::cuda_pointwise,
                     embedded::cuda_vector);
  if (problem.element == DType::f32 && !choice.exact) text += "#define gelu gelu_near\n";
  text += warps_constants(problem, choice, floats);
  text += epilogue_text(
      problem, terms,
      {"  const Element *x, *y;\n", warps_extents(problem), false, threads_of(choice), problem.n % 2 == 0});
  text += embedded::cuda_warps;
  launch.shape.set_blocks(BlockCount(problem.m).in_parts_of(choice.tile_x) *
                          BlockCount(problem.n).in_parts_of(choice.tile_y) * problem.batch);
  launch.shape.block[0] = static_cast<unsigned>(threads_of(choice));
  launch.shape.shared_bytes = static_cast<unsigned>(tiles_shared_bytes(problem, choice, floats));
  launch.shape.programmatic = true;
  launch.pointers = {problem.out_argument, problem.a.input, problem.b.input};
  for (const EpilogueTerm& term : terms) launch.pointers.push_back(term.operand->input);
  launch.numbers = extent_numbers(warps_extents(problem));
  return result;
}

}  // namespace sylvite
