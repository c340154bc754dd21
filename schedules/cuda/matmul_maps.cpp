#include "schedules/cuda/matmul_maps.h"

#include <algorithm>
#include <cstdlib>

#include "base/error.h"

namespace sylvite {
namespace {

constexpr std::int64_t widest_corner = 128;  // elements that a window may reach over a border
constexpr std::int64_t widest_step = 8;

std::string refuse_windows(const CudaMatmulProblem::Windows& w, std::int64_t bytes) {
  for (const std::int64_t pitch : {w.column_pitch, w.line_pitch, w.image_pitch, w.filter_pitch})
    if (pitch * bytes % row_unit_bytes != 0)
      return fmt::format("{} bytes lie between its pixels or taps, no multiple of {}", pitch * bytes,
                         row_unit_bytes);
  const auto is_wide = [](std::int64_t count, std::int64_t stride, std::int64_t pad, std::int64_t extent) {
    return pad > widest_corner || std::abs((count - 1) * stride - pad - (extent - 1)) >= widest_corner ||
           stride > widest_step;
  };
  if (is_wide(w.out_columns, w.stride_x, w.pad_x, w.columns) ||
      is_wide(w.out_lines, w.stride_y, w.pad_y, w.lines) ||
      std::max((w.taps_x - 1) * w.dilation_x, (w.taps_y - 1) * w.dilation_y) >= widest_corner)
    return "its windows are too large or too far apart for tensor maps";
  return "";
}

std::string refuse_matrix(const MatmulOperand& operand, const char* name, std::int64_t bytes) {
  for (const std::int64_t each : {operand.pitch, operand.offset, operand.batch_pitch, operand.outer_pitch})
    if (each * bytes % row_unit_bytes != 0)
      return fmt::format("rows of the {} operand begin {} bytes apart, no multiple of {}", name, each * bytes,
                         row_unit_bytes);
  return bytes == 4 && !operand.depth_fast ? "operands of 32 bits need their depth innermost" : "";
}

/// Operand tiles are boxes of 128 bytes of depth by rows, or of 64 rows by depth.
CudaTensorMap operand_map(const CudaMatmulProblem& problem, const MatmulOperand& operand, std::int64_t rows,
                          int slice) {
  const int bytes = element_bytes(problem);
  const int depth = stage_row(problem) / bytes;
  CudaTensorMap map;
  map.argument = operand.input;
  map.offset = operand.offset * bytes;
  map.dtype = problem.element;
  map.dims[0] = operand.depth_fast ? problem.k : rows;
  map.dims[1] = operand.depth_fast ? rows : problem.k;
  map.dims[2] = operand.batch_pitch == 0 ? 1 : operand.batches(problem.batch);
  map.pitches[0] = operand.pitch * bytes;
  map.pitches[1] = operand.batch_pitch == 0 ? map.pitches[0] * map.dims[1] : operand.batch_pitch * bytes;
  if (operand.inner != 0) {
    map.dims[3] = map.dims[2] / operand.inner;
    map.dims[2] = operand.inner;
    map.pitches[2] = operand.outer_pitch * bytes;
  }
  map.box[0] = operand.depth_fast ? depth : 64;
  map.box[1] = operand.depth_fast ? slice : depth;
  return map;
}

/// The operand's rows, or its depth, are windows: see CudaMatmulProblem::Windows.
CudaTensorMap windows_map(const CudaMatmulProblem& problem, const MatmulOperand& operand, int slice) {
  const CudaMatmulProblem::Windows& w = *problem.windows;
  const int bytes = element_bytes(problem);
  const std::int64_t dims[] = {w.channels * problem.groups, w.columns, w.lines, w.images * w.frames};
  CudaTensorMap map;
  map.argument = operand.input;
  map.offset = operand.offset * bytes;
  map.dtype = problem.element;
  std::copy(std::begin(dims), std::end(dims), std::begin(map.dims));
  map.pitches[0] = w.column_pitch * bytes;
  map.pitches[1] = w.line_pitch * bytes;
  map.pitches[2] = w.image_pitch * bytes;
  map.box[0] = stage_row(problem) / bytes;
  map.swizzle = stage_row(problem);
  map.box[1] = problem.part != 0 ? stage_row(problem) / bytes : slice;  // the depth is channels, or pixels
  const auto last = [](std::int64_t count, std::int64_t stride, std::int64_t pad, std::int64_t extent) {
    return static_cast<int>((count - 1) * stride - pad - (extent - 1));
  };
  CudaWindows windows;
  windows.first[0] = static_cast<int>(-w.pad_x);
  windows.first[1] = static_cast<int>(-w.pad_y);
  windows.last[0] = last(w.out_columns, w.stride_x, w.pad_x, w.columns);
  windows.last[1] = last(w.out_lines, w.stride_y, w.pad_y, w.lines);
  windows.step[0] = static_cast<int>(w.stride_x);
  windows.step[1] = static_cast<int>(w.stride_y);
  map.windows = windows;
  return map;
}

/// [n][tap][channel].
CudaTensorMap filter_map(const CudaMatmulProblem& problem, int slice) {
  const CudaMatmulProblem::Windows& w = *problem.windows;
  const int bytes = element_bytes(problem);
  CudaTensorMap map;
  map.argument = problem.b.input;
  map.dtype = problem.element;
  map.dims[0] = w.channels;
  map.dims[1] = w.taps();
  map.dims[2] = problem.n * problem.groups;
  map.pitches[0] = w.filter_pitch * bytes;
  map.pitches[1] = map.pitches[0] * w.taps();
  map.pitches[2] = map.pitches[1] * map.dims[2];
  map.box[0] = stage_row(problem) / bytes;
  map.swizzle = stage_row(problem);
  map.box[2] = slice;
  return map;
}

/// Of an argument that lies as the result does, in chunks. A row of a swapped box of what is no wider than the result has as
/// many elements as one of 16 bits.
CudaTensorMap chunk_map(const CudaMatmulProblem& problem, const CudaMatmulChoice& choice,
                        const SharedMemoryPlan& plan, int argument, DType dtype) {
  const int chunk = plan.chunk;
  const auto bytes = static_cast<std::int64_t>(dtype_size(dtype));
  CudaTensorMap map;
  map.argument = argument;
  map.dtype = dtype;
  map.dims[0] = problem.n;
  map.dims[1] = problem.m;
  map.dims[2] = problem.batch;
  map.pitches[0] = problem.out_pitch() * bytes;
  map.pitches[1] = problem.out_batch_pitch() * bytes;
  const int row = !choice.swapped ? chunk * static_cast<int>(bytes) : bytes == 1 ? 64 : 128;
  map.box[0] = row / static_cast<int>(bytes);
  map.box[1] = choice.swapped ? chunk : 64;
  map.swizzle = row < 32 ? 0 : row;
  return map;
}

/// Of a deep product whose operands both lie along their few rows or columns, as keys by values of small heads do: boxes bring these
/// in pieces of 64 bytes and less, one after the other. Seen on an H200: 69 us of 256 products of 32 x 1024 x 16, where the best that
/// was tried takes 17.
bool comes_in_pieces(const CudaMatmulProblem& problem) {
  constexpr std::int64_t piece = 64, deep = 256;
  return !problem.windows && !problem.a.depth_fast && !problem.b.depth_fast && problem.k >= deep &&
         std::max(problem.m, problem.n) * element_bytes(problem) <= piece;
}

}  // namespace

bool has_windows(const CudaMatmulProblem& problem, const MatmulOperand& operand) {
  return problem.windows && &operand == (problem.part != 0 ? &problem.b : &problem.a);
}

bool is_filter(const CudaMatmulProblem& problem, const MatmulOperand& operand) {
  return problem.windows && problem.part == 0 && &operand == &problem.b;
}

std::string refuse_tensor_maps(const CudaMatmulProblem& problem) {
  if (comes_in_pieces(problem)) return "both operands come in pieces of few bytes";
  const std::int64_t bytes = element_bytes(problem);
  std::string refusal = problem.windows ? refuse_windows(*problem.windows, bytes) : "";
  if (problem.windows && problem.part == 0 && problem.a.offset * bytes % row_unit_bytes != 0)
    return "its images begin beside a boundary of 16 bytes";
  const bool ends_inside =
      problem.windows && problem.groups > 1 && problem.windows->channels * bytes % stage_row(problem) != 0;
  if (refusal.empty() && ends_inside) refusal = "its groups of channels end inside a stage";
  if (problem.groups > 1 && problem.n * out_bytes(problem) % row_unit_bytes != 0)
    return "results of its groups begin beside boundaries of 16 bytes";
  if (problem.windows && problem.part == 0) return refusal;
  if (problem.n_is_open && !problem.b.depth_fast)
    return "runs say how far rows of its right operand lie apart";
  if (refusal.empty()) refusal = refuse_matrix(problem.a, "left", bytes);
  return refusal.empty() && !problem.windows ? refuse_matrix(problem.b, "right", bytes) : refusal;
}

CudaTensorMap side_map(const CudaMatmulProblem& problem, const MatmulOperand& operand, std::int64_t rows,
                       int slice) {
  if (has_windows(problem, operand)) return windows_map(problem, operand, slice);
  return is_filter(problem, operand) ? filter_map(problem, slice)
                                     : operand_map(problem, operand, rows, slice);
}

std::vector<CudaTensorMap> result_maps(const CudaMatmulProblem& problem, const CudaMatmulChoice& choice,
                                       const SharedMemoryPlan& plan, const std::vector<EpilogueTerm>& terms) {
  std::vector<CudaTensorMap> maps(3);
  if (plan.store_boxes) maps[0] = chunk_map(problem, choice, plan, problem.out_argument, problem.out);
  for (const EpilogueTerm& term : terms) {
    if (term.box == EpilogueBox::none) continue;
    maps[term.box == EpilogueBox::in_place ? 1 : 2] =
        chunk_map(problem, choice, plan, term.operand->input, term.operand->dtype);
  }
  return maps;
}

}  // namespace sylvite
