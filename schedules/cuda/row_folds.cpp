#include "schedules/cuda/row_folds.h"

#include <algorithm>
#include <bit>
#include <iterator>

#include "base/error.h"
#include "base/rounding.h"
#include "frontend/graph/rewrite.h"
#include "schedules/cuda/sources.h"

namespace sylvite {
namespace {

constexpr std::int64_t long_row = 1 << 18;  // which a block walks in a time that many rows are worth
constexpr std::int64_t many_rows = 64;
constexpr std::int64_t rows_to_fill = 264;  // blocks that leave a card idle

constexpr std::int64_t most_folded_rows = (1LL << 31) - 1;
constexpr std::int64_t most_row_places = 1LL << 31;  // places are numbers of 32 bits
constexpr std::int64_t least_alone = 32;  // columns of a fold that stands alone: a thread folds fewer as well

std::string refuse_rows(const Kernel& kernel) {
  const Graph& body = kernel.body;
  if (std::string refusal = refuse_folds(body); !refusal.empty()) return refusal;
  const TensorType& type = body.type(body.node(kernel.anchor).inputs[0]);
  if (type.rank() == 0 || type.layout.channel_block != 0) return "what it folds is no row";
  if (folded_axes(body.node(kernel.anchor)) != Dims{type.rank() - 1})
    return "not the innermost dim alone is folded";
  if (type.element_count() == 0) return "it is empty";
  return type.dims().back() >= most_row_places ? "its rows are too long" : "";
}

/// How the dims of a value's rows lie, and those of a number for each row.
FoldDims row_dims(const Kernel& kernel, ValueId folded) {
  const Dims dims = kernel.body.type(folded).dims();
  FoldDims result;
  result.axes = {static_cast<std::int64_t>(dims.size()) - 1};
  result.groups = {dims, 0, dims.size() - 1, {}, has_fixed_rows(kernel, folded)};
  result.open = kernel.open.get();
  result.number_groups = [divides = result.groups.divides_rows](const TensorType& number, bool keeps,
                                                                CudaGroups& groups) -> std::string {
    const std::size_t rank = number.dims().size();
    groups = {number.dims(), 0, keeps ? rank - 1 : rank, {}, divides};
    return "";
  };
  return result;
}

std::string results_text(const CudaRowFoldsProblem& problem) {
  std::string finish;
  if (problem.has_row)
    finish = fmt::format(
        "  float x[VECTOR];\n  for (int j = 0; j < VECTOR; j++) x[j] = {};\n"
        "  store_vector<STREAM_STORES>(a.out + row * e.columns + column, x);\n",
        epilogue_call(problem));
  return result_functions(problem) +
         fmt::format(
             "DEVICE void finish(const Arguments& a, long long row, int column, const Item& item, const "
             "Folds& folds) {{\n  [[maybe_unused]] const Extents e = extents_of(a);\n{}}}\n"
             "DEVICE void finish_numbers(const Arguments& a, long long row, const Folds& folds) {{\n"
             "  [[maybe_unused]] const Extents e = extents_of(a);\n{}}}\n",
             finish, numbers_text(problem, "row"));
}

/// Threads of the blocks that walk rows, best first. Clusters of small blocks begin sooner.
std::vector<int> walking_threads(const CudaRowFoldsProblem& problem, int vector, int most_blocks) {
  constexpr std::int64_t few_clusters = 8;
  if (problem.rows < rows_to_fill && (most_blocks == 1 || problem.rows < few_clusters))
    return {1024, 512, 256};
  if (problem.rows < rows_to_fill) return {256, 512, 1024};
  if (!problem.has_open_columns) return {512, 256, 1024};
  constexpr std::int64_t of_thread = 8;
  const std::int64_t wanted = std::clamp<std::int64_t>(problem.columns / (of_thread * vector), 32, 512);
  const auto best = static_cast<int>(std::bit_floor(static_cast<std::uint64_t>(wanted)));
  return {best, best == 512 ? 1024 : best * 2, best == 32 ? 64 : best / 2};
}

/// Blocks that walk a row together, where there are few rows: so many that each thread still has several vectors.
int walking_blocks(const CudaRowFoldsProblem& problem, int threads, int vector, int most) {
  constexpr std::int64_t least_vectors = 4;
  int blocks = 1;
  while (blocks * 2 <= most && problem.rows * blocks * 2 <= rows_to_fill &&
         problem.columns >= least_vectors * threads * vector * blocks * 2)
    blocks *= 2;
  return blocks;
}

/// Rows that are walked.
std::vector<CudaRowFoldsChoice> walking_choices(const CudaRowFoldsProblem& problem, int most_blocks) {
  const int vector = vector_of(problem);
  const std::int64_t held = vector * held_operands(problem);
  std::vector<CudaRowFoldsChoice> choices;
  for (const int threads : walking_threads(problem, vector, most_blocks)) {
    const int blocks = walking_blocks(problem, threads, vector, most_blocks);
    const std::int64_t vectors = ceil_div(problem.columns, std::int64_t{threads} * vector * blocks);
    const std::int64_t most_items = std::min<std::int64_t>(problem.rows < rows_to_fill ? 16 : 8, vectors);
    const auto items = static_cast<int>(std::clamp<std::int64_t>(32 / held, 1, most_items));
    choices.push_back({{threads, 1, false, items}, blocks});
    if (blocks > 1) choices.push_back({{threads, 1, false, items}, blocks / 2});
  }
  return choices;
}

std::string walks_text(const CudaRowFoldsProblem& problem, const CudaRowFoldsChoice& choice, int vector) {
  return fmt::format("constexpr int VECTOR = {}, UNROLL = {}, CLUSTER = {};\n{}{}{}{}", vector, choice.items,
                     choice.cluster, items_text(problem, vector, "long long row, int column"),
                     results_text(problem), embedded::cuda_folds, embedded::cuda_row_walks);
}

/// All of a row's work for threads that take `vector` columns together.
std::string rows_text(const CudaRowFoldsProblem& problem, const CudaRowFoldsChoice& choice, int vector) {
  if (choice.items > 0) return walks_text(problem, choice, vector);
  std::string text = held_text(problem.columns, choice.threads, vector) +
                     items_text(problem, vector, "long long row, int column") + results_text(problem);
  text += embedded::cuda_rows;
  text += embedded::cuda_row_folds;
  return text;
}

}  // namespace

Reading<CudaRowFoldsProblem> read_cuda_row_folds(const Kernel& kernel) {
  constexpr std::size_t most_outputs = 8;
  if (kernel.kind != KernelClass::reduction) return {{}, "it is no reduction"};
  const Graph& body = kernel.body;
  if (body.outputs.size() > most_outputs) return {{}, "it has many outputs"};
  if (std::string refusal = refuse_rows(kernel); !refusal.empty()) return {{}, refusal};
  const ValueId folded = folded_value(body);
  const TensorType &type = body.type(folded), &result = body.type(body.outputs[0]);
  CudaRowFoldsProblem problem;
  problem.is_open = kernel.open != nullptr;
  problem.has_open_columns = has_open_columns(kernel, folded);
  problem.has_row = result.dims() == type.dims() && result.layout == type.layout;
  problem.out = result.dtype;
  problem.columns = type.dims().back();
  problem.rows = type.element_count() / problem.columns;
  problem.out_argument = static_cast<int>(body.inputs.size());
  if (problem.has_row && problem.has_open_columns) return {{}, "its rows are of any length"};
  if (problem.has_row && !is_float_storage(problem.out)) return {{}, "its result is no float"};
  if (problem.rows > most_folded_rows) return {{}, "there are too many rows for a grid"};
  std::string refusal = read_folds(kernel, row_dims(kernel, folded), problem);
  if (refusal.empty() && problem.has_open_columns)
    refusal = follow_columns(problem.columns, problem.operands);
  if (!problem.has_row && problem.folds.size() < 2 && type.rank() > 1 && problem.columns < least_alone)
    refusal = "its only fold is of few numbers";
  if (refusal.empty() && cuda_row_folds_choices(problem, 1).empty())
    refusal = "its few rows are so long that they do not fit into registers";
  return {problem, refusal};
}

int vector_of(const CudaRowFoldsProblem& problem) {
  std::size_t size = problem.has_row ? dtype_size(problem.out) : sizeof(float);
  for (const CudaOperand& operand : problem.operands)
    if (!problem.has_row && operand.passes_by() && is_float_storage(operand.of.dtype))
      size = std::min(size, dtype_size(operand.of.dtype));
  int vector = 16 / static_cast<int>(size);
  while (!problem.has_open_columns && problem.columns % vector != 0) vector /= 2;
  return vector;
}

std::vector<CudaRowFoldsChoice> cuda_row_folds_choices(const CudaRowFoldsProblem& problem, int most_blocks) {
  const bool is_few = !problem.has_row && problem.rows < rows_to_fill;  // then many threads fold a row
  std::vector<CudaRowFoldsChoice> choices;
  if (!problem.has_open_columns)
    for (const CudaNormChoice& choice : choices_of({.columns = problem.columns,
                                                    .vector = vector_of(problem),
                                                    .operands = held_operands(problem),
                                                    .least_threads = 8,
                                                    .most_rows = 32,
                                                    .well_held = is_few ? 8 : 32,
                                                    .most_held = is_few ? 32 : 96}))
      choices.push_back({choice, 1});
  const bool is_long = problem.has_row && problem.columns > long_row && problem.rows < many_rows;
  return choices.empty() && !is_long ? walking_choices(problem, most_blocks) : choices;
}

std::string CudaRowFoldsChoice::to_string() const {
  return CudaNormChoice::to_string() + (cluster > 1 ? fmt::format(" cluster {}", cluster) : "");
}

CudaTemplate make_cuda_row_folds(const CudaRowFoldsProblem& problem, const CudaRowFoldsChoice& choice) {
  CudaTemplate result;
  LaunchSpec& launch = result.launch;
  launch.entry = entry_name(fmt::format("row_folds_{}", dtype_name(problem.out)), problem.is_open,
                            {problem.rows, problem.columns});
  std::vector<CudaExtent> extents = {{"rows", problem.rows, problem.is_open},
                                     {"columns", problem.columns, problem.has_open_columns}};
  std::ranges::copy(counted_extents(problem), std::back_inserter(extents));
  result.source.text = fmt::format("#define KERNEL {}\n{}{}{}", launch.entry, embedded::cuda_card,
                                   embedded::cuda_pointwise, embedded::cuda_vector);
  if (choice.items > 0) result.source.text += embedded::cuda_hopper;
  result.source.text += fmt::format(
      "constexpr int THREADS = {}, ROWS_OF_BLOCK = {};\n"
      "constexpr bool STREAM_LOADS = {}, STREAM_STORES = STREAM_LOADS, HAS_ROW = {};\ntypedef {} Out;\n",
      choice.threads, choice.rows, choice.streams, problem.has_row, dtype_name(problem.out));
  const std::vector<const CudaOperand*> operands = operands_of(problem);
  const std::vector<DType> further = further_results(problem);
  result.source.text += arguments_text(operands, extents, further);
  result.source.text += embedded::cuda_fold_keys;
  result.source.text += folds_text(problem);
  result.source.text += rows_kernel_text(problem.has_open_columns, vector_of(problem),
                                         [&](int vector) { return rows_text(problem, choice, vector); });
  launch.shape.set_blocks(BlockCount(problem.rows).in_parts_of(choice.rows) * choice.cluster);
  launch.shape.block[0] = static_cast<unsigned>(choice.threads * choice.rows);
  launch.shape.cluster = static_cast<unsigned>(choice.cluster);
  launch.shape.programmatic = true;
  pass_arguments(launch, problem.out_argument, operands, extents, further.size());
  return result;
}

}  // namespace sylvite
