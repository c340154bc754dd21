#include "schedules/cuda/line_gradient.h"

#include <algorithm>

#include "base/error.h"
#include "base/rounding.h"
#include "schedules/cuda/extents.h"
#include "schedules/cuda/sources.h"

namespace sylvite {
namespace {

constexpr int all_warps = 8;
constexpr std::int64_t most_held_sums = 64;          // sums of a thread, so that two blocks have registers
constexpr std::int64_t most_line_bytes = 112 << 10;  // bytes of a block, of two
constexpr std::int64_t most_pixels = 1LL << 31;      // that are counted
constexpr std::int64_t unit = 8;                     // elements that are read together

std::int64_t eights(const CudaMatmulProblem& problem) {
  return problem.windows->taps_y * problem.n / unit;
}
/// Columns of a warp, eight of them at a time.
std::int64_t own_eights(const CudaMatmulProblem& problem, const CudaLineGradientChoice& choice) {
  return ceil_div(eights(problem), std::int64_t{choice.sides});
}

std::int64_t line_shared_bytes(const CudaMatmulProblem& problem, const CudaLineGradientChoice& choice) {
  const std::int64_t pixel = 2 * choice.rows + 16 + 16 * (eights(problem) | 1);
  const std::int64_t meeting =
      choice.sides == all_warps ? 0 : choice.sides * choice.rows / 16 * own_eights(problem, choice) * 512;
  constexpr std::int64_t behind = 16;  // the last row
  return std::max(2 * pixel * choice.chunk + behind, meeting);
}

bool fits(const CudaMatmulProblem& problem, const CudaLineGradientChoice& choice) {
  return choice.rows / 16 * own_eights(problem, choice) * 4 <= most_held_sums &&
         line_shared_bytes(problem, choice) <= most_line_bytes;
}

std::vector<CudaExtent> extents_of(const CudaMatmulProblem& problem) {
  const CudaMatmulProblem::Windows& w = *problem.windows;
  return {{"pixels", problem.k, problem.k_is_open},
          {"part", problem.part, problem.k_is_open},
          {"out_lines", w.out_lines, problem.has_open_images},
          {"out_columns", w.out_columns, problem.has_open_images},
          {"line_pitch", w.stride_y * w.line_pitch, problem.has_open_images},
          {"image_pitch", w.image_pitch, problem.has_open_images},
          {"tap_pitch", w.dilation_y * w.line_pitch, problem.has_open_images}};
}

}  // namespace

Reading<CudaMatmulProblem> read_cuda_line_gradient(const Kernel& kernel) {
  Reading<CudaMatmulProblem> reading = read_cuda_filter_gradient(kernel);
  if (!reading.refusal.empty()) return reading;
  const CudaMatmulProblem& problem = reading.problem;
  const Node& node = kernel.body.node(kernel.anchor);
  if (node.attributes.integer("joined") == 0) return {{}, "the taps of its lines are not joined"};
  if (kernel.body.nodes().size() != 1 || problem.out != DType::f32) return {{}, "it is more than a gradient"};
  const CudaMatmulProblem::Windows& w = *problem.windows;
  for (const std::int64_t each : {problem.m, problem.n, w.column_pitch, w.line_pitch, w.image_pitch})
    if (each % unit != 0) return {{}, "what taps meet does not begin at multiples of 16 bytes"};
  if (w.pad_y != 0) return {{}, "its windows reach over the border of the image"};
  if (problem.k >= most_pixels || w.image_pitch >= most_pixels) return {{}, "it has many pixels"};
  if (cuda_line_gradient_choices(problem).empty()) return {{}, "its windows are large"};
  return reading;
}

std::string CudaLineGradientChoice::to_string() const {
  return fmt::format("lines {}x{} of {} x{}", rows, chunk, sides, resident);
}

std::vector<CudaLineGradientChoice> cuda_line_gradient_choices(const CudaMatmulProblem& problem) {
  std::vector<CudaLineGradientChoice> choices;
  for (int rows = 64; rows >= 16; rows /= 2) {
    if (rows / 2 >= std::max<std::int64_t>(problem.m, 16)) continue;
    for (const int sides : {1, 2, 4, 8}) {
      const int least = 16 * all_warps / sides;
      CudaLineGradientChoice choice{rows, sides, std::max(64, least), 2};
      if (!fits(problem, choice)) choice.chunk = std::max(32, least);
      if (fits(problem, choice)) choices.push_back(choice);
    }
  }
  constexpr std::size_t most_choices = 4;
  if (choices.size() > most_choices) choices.resize(most_choices);
  return choices;
}

CudaTemplate make_cuda_line_gradient(const CudaMatmulProblem& problem, const CudaLineGradientChoice& choice) {
  const CudaMatmulProblem::Windows& w = *problem.windows;
  CudaTemplate result;
  LaunchSpec& launch = result.launch;
  launch.entry = entry_name(
      fmt::format("line_gradient_{}_{}x{}x{}", dtype_name(problem.element), w.taps_y, problem.m, problem.n),
      problem.k_is_open, {problem.k});
  std::string& text = result.source.text;
  text = fmt::format("#define KERNEL {}\n{}", launch.entry, embedded::cuda_card);
  const auto define = [&](const char* name, std::int64_t value) {
    text += fmt::format("constexpr int {} = {};\n", name, value);
  };
  define("OUTPUTS", problem.m);
  define("LINES", w.taps_y);
  define("WIDTH", problem.n);
  define("COLUMN_PITCH", w.column_pitch);
  define("ROWS", choice.rows);
  define("CHUNK", choice.chunk);
  define("SIDES", choice.sides);
  define("DEEP", all_warps / choice.sides);
  define("BLOCKS_PER_MULTIPROCESSOR", choice.resident);
  const std::vector<CudaExtent> extents = extents_of(problem);
  text += fmt::format(
      "typedef {} Element;\nstruct Arguments {{\n  float* out;\n  const Element* gradient;\n  const Element* "
      "x;\n{}}};\n{}{}",
      dtype_name(problem.element), extent_members(extents), extents_text(extents),
      embedded::cuda_line_gradient);
  const std::int64_t parts = problem.batch / w.taps_y;
  launch.shape.set_blocks(BlockCount(problem.m).in_parts_of(choice.rows) * parts);
  launch.shape.block[0] = 32 * all_warps;
  launch.shape.shared_bytes = static_cast<unsigned>(line_shared_bytes(problem, choice));
  launch.shape.programmatic = true;
  launch.pointers = {problem.out_argument, problem.a.input, problem.b.input};
  launch.numbers = extent_numbers(extents);
  return result;
}

}  // namespace sylvite
