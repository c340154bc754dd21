#include "schedules/cuda/row_folds.h"

#include <algorithm>
#include <bit>

#include "base/error.h"
#include "base/rounding.h"
#include "schedules/cuda/sources.h"

namespace sylvite {
namespace {

constexpr std::int64_t long_row = 1 << 18;  // which a block walks in a time that many rows are worth
constexpr std::int64_t many_rows = 64;
constexpr std::int64_t rows_to_fill = 264;  // blocks that leave a card idle

/// C for a fold's running result of type `type`: what it begins with, and with x at `column`, and with another such result.
struct FoldText {
  const char* type;
  const char* identity;
  const char* take;
  const char* join;
};
FoldText text_of(const CudaRowFoldsProblem::Fold& fold) {
  static constexpr FoldText of_place[2] = {{"u64", "0ull", "max(a, place_key(x, ~(u32)column))", "max(a, b)"},
                                           {"u64", "0ull", "max(a, place_key(x, (u32)column))", "max(a, b)"}};
  static constexpr FoldText of_least_place[2] = {
      {"u64", "0ull", "max(a, place_key(-x, ~(u32)column))", "max(a, b)"},
      {"u64", "0ull", "max(a, place_key(-x, (u32)column))", "max(a, b)"}};
  switch (fold.kind) {
    case RowFoldKind::sum:
      return {"float", "0.f", "a + x", "a + b"};
    case RowFoldKind::most:
      return {"float", "__int_as_float(0xff800000)", "nan_max(a, x)", "nan_max(a, b)"};
    case RowFoldKind::least:
      return {"float", "__int_as_float(0x7f800000)", "nan_min(a, x)", "nan_min(a, b)"};
    case RowFoldKind::product:
      return {"float", "1.f", "a * x", "a * b"};
    case RowFoldKind::count:
      return {"int", "0", "a + (int)x", "a + b"};
    case RowFoldKind::place_of_most:
      return of_place[fold.takes_last ? 1 : 0];
    case RowFoldKind::place_of_least:
      return of_least_place[fold.takes_last ? 1 : 0];
  }
  throw InternalError("no such fold");
}

/// FUNCTION(0, operands...).
std::string call_of(const PointwiseText& text, const std::string& function) {
  std::string arguments = "0.f";
  for (const PointwiseOperand& of : text.operands) arguments += ", " + of.name;
  return fmt::format("{}({})", function, arguments);
}

/// Operands that take registers: one for each column.
std::int64_t held_operands(const CudaRowFoldsProblem& problem) {
  return std::max<std::int64_t>(1, std::ranges::count_if(problem.operands, [](const CudaOperand& operand) {
                                  return operand.column == 1;
                                }));
}

/// What is read of a row, and the terms of the folds.
std::string items_text(const CudaRowFoldsProblem& problem, int vector) {
  std::string functions, members, loads, terms;
  for (const CudaOperand& operand : problem.operands) {
    members += fmt::format("  float {}[VECTOR];\n", operand.of.name);
    loads += load_text(operand, vector, "STREAM_LOADS");
    loads += fmt::format("  for (int j = 0; j < VECTOR; j++) item.{0}[j] = v_{0}[j];\n", operand.of.name);
  }
  for (std::size_t f = 0; f < problem.folds.size(); ++f) {
    functions += problem.folds[f].text.function;
    terms += fmt::format("  if constexpr (F == {}) return {};\n", f,
                         call_of(problem.folds[f].text, fmt::format("fold{}", f)));
  }
  return functions +
         fmt::format(
             "struct Item {{\n{}}};\n"
             "DEVICE void load_item(const Arguments& a, long long row, int column, Item& item) {{\n"
             "  const Extents e = extents_of(a);\n{}}}\n"
             "template <int F>\nDEVICE float term(const Item& item, const Folds& folds, int j) {{\n{}"
             "  return 0.f;\n}}\n",
             members, loads, terms);
}

/// How a number is stored from the folds of a row.
std::string number_text(const CudaRowFoldsProblem& problem, const CudaRowFoldsProblem::Number& number,
                        std::size_t output) {
  const std::string to = fmt::format("a.out{}", output == 0 ? "" : fmt::format("{}", output));
  if (number.fold < 0) {
    std::string loads;
    for (const CudaOperand& operand : number.operands) loads += load_text(operand, 1, "false");
    const std::string made = call_of(number.text, fmt::format("number{}", output));
    const std::string store = number.out == DType::boolean ? fmt::format("{}[row] = {} != 0.f", to, made)
                                                           : fmt::format("store_one({} + row, {})", to, made);
    return fmt::format("  {{\n  constexpr int VECTOR = 1;\n{}  {};\n  }}\n", loads, store);
  }
  const auto f = static_cast<std::size_t>(number.fold);
  const CudaRowFoldsProblem::Fold& fold = problem.folds[f];
  std::string value = row_fold_name(f);
  if (fold.kind == RowFoldKind::place_of_most || fold.kind == RowFoldKind::place_of_least)
    value = fmt::format("(long long){}(u32){}", fold.takes_last ? "" : "~", value);
  for (const DType type : number.types) value = fmt::format("({})({})", dtype_name(type), value);
  return fmt::format("  {}[row] = {};\n", to, value);
}

std::string results_text(const CudaRowFoldsProblem& problem) {
  std::string functions = problem.epilogue.function, numbers, finish;
  for (std::size_t i = 0; i < problem.numbers.size(); ++i) {
    functions += problem.numbers[i].text.function;
    numbers += number_text(problem, problem.numbers[i], problem.has_row ? i + 1 : i);
  }
  if (problem.has_row)
    finish = fmt::format(
        "  float x[VECTOR];\n  for (int j = 0; j < VECTOR; j++) x[j] = {};\n"
        "  store_vector<STREAM_STORES>(a.out + row * extents_of(a).columns + column, x);\n",
        call_of(problem.epilogue, "epilogue"));
  return functions +
         fmt::format(
             "DEVICE void finish(const Arguments& a, long long row, int column, const Item& item, const "
             "Folds& folds) {{\n{}}}\n"
             "DEVICE void finish_numbers(const Arguments& a, long long row, const Folds& folds) {{\n{}}}\n",
             finish, numbers);
}

/// Which fold is what, and in which pass over the row.
std::string folds_text(const CudaRowFoldsProblem& problem) {
  std::string members, ats, begins, takes, joins, passes;
  int last = 0;
  for (std::size_t f = 0; f < problem.folds.size(); ++f) {
    const CudaRowFoldsProblem::Fold& fold = problem.folds[f];
    const FoldText text = text_of(fold);
    last = std::max(last, fold.pass);
    members += fmt::format("  {} of{};\n", text.type, f);
    const std::string is_it = fmt::format("  {}if constexpr (F == {})", f == 0 ? "" : "else ", f);
    ats += fmt::format("{} return (folds.of{});\n", is_it, f);
    begins += fmt::format("{} return {};\n", is_it, text.identity);
    takes += fmt::format("{} return {};\n", is_it, text.take);
    joins += fmt::format("{} return {};\n", is_it, text.join);
    passes += fmt::format("{} return {};\n", is_it, fold.pass);
  }
  return fmt::format(
      "constexpr int PASSES = {};\nstruct Folds {{\n{}}};\n"
      "template <int F>\nDEVICE decltype(auto) fold_of(Folds& folds) {{\n{}}}\n"
      "template <int F>\nDEVICE decltype(auto) fold_of(const Folds& folds) {{\n{}}}\n"
      "template <int F>\nDEVICE auto identity() {{\n{}}}\n"
      "template <int F, class T>\nDEVICE T take(T a, float x, int column) {{\n{}}}\n"
      "template <int F, class T>\nDEVICE T join(T a, T b) {{\n{}}}\n"
      "template <int F>\n__device__ constexpr int pass_of() {{\n{}}}\n",
      last + 1, members, ats, ats, begins, takes, joins, passes);
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
  return fmt::format("constexpr int VECTOR = {}, UNROLL = {}, CLUSTER = {};\n{}{}{}", vector, choice.items,
                     choice.cluster, items_text(problem, vector), results_text(problem),
                     embedded::cuda_row_walks);
}

/// All of a row's work for threads that take `vector` columns together.
std::string rows_text(const CudaRowFoldsProblem& problem, const CudaRowFoldsChoice& choice, int vector) {
  if (choice.items > 0) return walks_text(problem, choice, vector);
  std::string text = held_text(problem.columns, choice.threads, vector) + items_text(problem, vector) +
                     results_text(problem);
  text += embedded::cuda_rows;
  text += embedded::cuda_row_folds;
  return text;
}

}  // namespace

int vector_of(const CudaRowFoldsProblem& problem) {
  std::size_t size = problem.has_row ? dtype_size(problem.out) : sizeof(float);
  for (const CudaOperand& operand : problem.operands)
    if (!problem.has_row && operand.passes_by() && is_float_storage(operand.of.dtype))
      size = std::min(size, dtype_size(operand.of.dtype));
  int vector = 16 / static_cast<int>(size);
  while (!problem.has_open_columns && problem.columns % vector != 0) vector /= 2;
  return vector;
}

std::string row_fold_name(std::size_t fold) {
  return fmt::format("fold_of<{}>(folds)", fold);
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
  const std::vector<CudaExtent> extents = {{"rows", problem.rows, problem.is_open},
                                           {"columns", problem.columns, problem.has_open_columns}};
  result.source.text = fmt::format("#define KERNEL {}\n{}{}{}", launch.entry, embedded::cuda_card,
                                   embedded::cuda_pointwise, embedded::cuda_vector);
  if (choice.items > 0) result.source.text += embedded::cuda_hopper;
  result.source.text += fmt::format(
      "constexpr int THREADS = {}, ROWS_OF_BLOCK = {}, FOLDS = {};\n"
      "constexpr bool STREAM_LOADS = {}, STREAM_STORES = STREAM_LOADS, HAS_ROW = {};\ntypedef {} Out;\n",
      choice.threads, choice.rows, problem.folds.size(), choice.streams, problem.has_row,
      dtype_name(problem.out));
  std::vector<const CudaOperand*> operands = operands_in({&problem.operands});
  for (const CudaRowFoldsProblem::Number& number : problem.numbers)
    for (const CudaOperand& operand : number.operands) operands.push_back(&operand);
  std::vector<DType> further;
  for (std::size_t i = problem.has_row ? 0 : 1; i < problem.numbers.size(); ++i)
    further.push_back(problem.numbers[i].out);
  result.source.text += arguments_text(operands, extents, further);
  result.source.text += embedded::cuda_fold_keys;
  result.source.text += folds_text(problem);
  result.source.text += rows_kernel_text(problem.has_open_columns, vector_of(problem),
                                         [&](int vector) { return rows_text(problem, choice, vector); });
  launch.shape.grid[0] = static_cast<unsigned>(ceil_div(problem.rows, choice.rows) * choice.cluster);
  launch.shape.block[0] = static_cast<unsigned>(choice.threads * choice.rows);
  launch.shape.cluster = static_cast<unsigned>(choice.cluster);
  launch.shape.programmatic = true;
  pass_arguments(launch, problem.out_argument, operands, extents, further.size());
  return result;
}

}  // namespace sylvite
