#include "schedules/cuda/row_folds.h"

#include <algorithm>

#include "base/error.h"
#include "base/rounding.h"
#include "frontend/graph/copy.h"
#include "frontend/ops/op_table.h"
#include "schedules/cuda/sources.h"

namespace sylvite {
namespace {

constexpr std::size_t most_folds = 4;
constexpr std::size_t most_outputs = 4;
constexpr std::int64_t most_folded_rows = (1LL << 31) - 1;
constexpr std::int64_t long_row = 1 << 18;  // which a block walks in a time that many rows are worth
constexpr std::int64_t many_rows = 64;

/// The body with an input for each sum, which stands for its result.
struct Parts {
  Graph graph;
  std::vector<ValueId> folded;  ///< per sum: what it takes
  std::vector<bool> is_max;     ///< likewise
  std::vector<ValueId> outputs;
};
Parts divide(const Graph& body) {
  GraphCopier copier(body);
  copier.add_inputs();
  Parts parts;
  for (const Node& node : body.nodes()) {
    if (!has_trait(node.op, OpTrait::reduction)) {
      copier.copy(node);
      continue;
    }
    parts.folded.push_back(copier.mapped(node.inputs[0]));
    parts.is_max.push_back(node.op == Op::reduce_max);
    copier.set(node.outputs[0], copier.graph().add_input("", body.type(node.outputs[0])));
  }
  for (const ValueId output : body.outputs) parts.outputs.push_back(copier.mapped(output));
  parts.graph = std::move(copier.graph());
  return parts;
}

/// The value that the first reduction folds; no_value where there is none.
ValueId folded_value(const Graph& body) {
  for (const Node& node : body.nodes())
    if (has_trait(node.op, OpTrait::reduction)) return node.inputs[0];
  return no_value;
}

/// "", or why a reduction is no fold of rows as those of `row`.
std::string refuse_fold(const Graph& body, const Node& node, const TensorType& row) {
  if (node.op != Op::reduce_sum && node.op != Op::reduce_max) return "it folds by another operation";
  const TensorType& type = body.type(node.inputs[0]);
  const bool folds_rows = node.attributes.integers("axes") == Dims{type.rank() - 1};
  if (!folds_rows || node.attributes.integer("keepdims") == 0) return "not the innermost dim alone is folded";
  if (type.dims() != row.dims() || type.layout != row.layout) return "its folds are of other rows";
  return is_float_storage(body.type(node.outputs[0]).dtype) ? "" : "a sum is no float";
}

/// Reads work up to a value: what it reads of memory joins the operands, and sums are called by their number.
std::string read_part(const Parts& parts, std::size_t inputs, ValueId to, const CudaGroups& groups,
                      const std::string& name, bool fast, PointwiseText& text,
                      std::vector<CudaOperand>& all) {
  std::vector<CudaOperand> own;
  std::string refusal = read_work(parts.graph, no_value, to, groups, name, fast, text, own);
  if (!refusal.empty()) return refusal;
  std::vector<std::size_t> read;  // places of operands in memory
  std::vector<CudaOperand> in_memory;
  PointwiseText of_memory;
  for (std::size_t i = 0; i < own.size(); ++i) {
    const auto input = static_cast<std::size_t>(own[i].of.input);
    if (input >= inputs) {
      text.operands[i].name = fmt::format("sums[{}]", input - inputs);
      continue;
    }
    read.push_back(i);
    in_memory.push_back(own[i]);
    of_memory.operands.push_back(text.operands[i]);
  }
  share_operands(std::move(in_memory), of_memory, all);
  for (std::size_t i = 0; i < read.size(); ++i)
    text.operands[read[i]].name = "item." + of_memory.operands[i].name + "[j]";
  return "";
}

/// Reads output `number`, of each row of the result's `type`.
std::string read_number(const Parts& parts, std::size_t inputs, std::size_t number, const TensorType& type,
                        CudaRowFoldsProblem& problem) {
  const TensorType& own = parts.graph.type(parts.outputs[number]);
  Dims dims = type.dims();
  dims.back() = 1;
  if (own.dims() != dims || type.dims().back() == 1) return "a result is neither a row nor a number for each";
  if (!is_float_storage(own.dtype)) return "a number is no float";
  CudaRowFoldsProblem::Number result{{}, own.dtype};
  std::vector<CudaOperand> in_memory;
  std::string refusal = read_part(parts, inputs, parts.outputs[number], {dims, 0, dims.size() - 1, {}, true},
                                  fmt::format("number{}", number), false, result.text, in_memory);
  if (refusal.empty() && !in_memory.empty()) refusal = "a number is made of more than sums";
  if (problem.numbers.empty() && !problem.has_row) problem.out = result.out;
  problem.numbers.push_back(std::move(result));
  return refusal;
}

/// FUNCTION(0, operands...).
std::string call_of(const PointwiseText& text, const std::string& function) {
  std::string arguments = "0.f";
  for (const PointwiseOperand& of : text.operands) arguments += ", " + of.name;
  return fmt::format("{}({})", function, arguments);
}

int vector_of(const CudaRowFoldsProblem& problem) {
  std::size_t size = problem.has_row ? dtype_size(problem.out) : sizeof(float);
  for (const CudaOperand& operand : problem.operands)
    if (!problem.has_row && operand.passes_by() && is_float_storage(operand.of.dtype))
      size = std::min(size, dtype_size(operand.of.dtype));
  int vector = 16 / static_cast<int>(size);
  while (problem.columns % vector != 0) vector /= 2;
  return vector;
}

/// Operands that take registers: one for each column.
std::int64_t held_operands(const CudaRowFoldsProblem& problem) {
  return std::max<std::int64_t>(1, std::ranges::count_if(problem.operands, [](const CudaOperand& operand) {
                                  return operand.column == 1;
                                }));
}

std::string functions_text(const CudaRowFoldsProblem& problem, int vector) {
  std::string functions = problem.epilogue.function, members, loads, terms;
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
  std::string numbers, finish;
  for (std::size_t i = 0; i < problem.numbers.size(); ++i) {
    const std::size_t output = problem.has_row ? i + 1 : i;
    functions += problem.numbers[i].text.function;
    numbers += fmt::format("  store_one(a.out{} + row, {});\n", output == 0 ? "" : fmt::format("{}", output),
                           call_of(problem.numbers[i].text, fmt::format("number{}", output)));
  }
  if (problem.has_row)
    finish = fmt::format(
        "  float x[VECTOR];\n  for (int j = 0; j < VECTOR; j++) x[j] = {};\n"
        "  store_vector<STREAM_STORES>(a.out + row * extents_of(a).columns + column, x);\n",
        call_of(problem.epilogue, "epilogue"));
  return functions +
         fmt::format(
             "typedef float Sums[FOLDS];\nstruct Item {{\n{}}};\n"
             "DEVICE void load_item(const Arguments& a, long long row, int column, Item& item) {{\n{}}}\n"
             "template <int F>\nDEVICE float term(const Item& item, const Sums& sums, int j) {{\n{}  return "
             "0.f;\n}}\n"
             "DEVICE void finish(const Arguments& a, long long row, int column, const Item& item, const "
             "Sums& sums) {{\n{}}}\n"
             "DEVICE void finish_numbers(const Arguments& a, long long row, const Sums& sums) {{\n{}}}\n",
             members, loads, terms, finish, numbers);
}

/// Which fold is what, and in which pass over the row.
std::string folds_text(const CudaRowFoldsProblem& problem) {
  std::string begins, folds, passes;
  int last = 0;
  for (std::size_t f = 0; f < problem.folds.size(); ++f) {
    const CudaRowFoldsProblem::Fold& fold = problem.folds[f];
    last = std::max(last, fold.pass);
    begins += fmt::format("  if constexpr (F == {}) return {};\n", f,
                          fold.is_max ? "__int_as_float(0xff800000)" : "0.f");
    folds += fmt::format("  if constexpr (F == {}) return {};\n", f, fold.is_max ? "nan_max(a, b)" : "a + b");
    passes += fmt::format("  if constexpr (F == {}) return {};\n", f, fold.pass);
  }
  return fmt::format(
      "constexpr int PASSES = {};\ntemplate <int F>\nDEVICE float identity() {{\n{}  return 0.f;\n}}\n"
      "template <int F>\nDEVICE float fold(float a, float b) {{\n{}  return a;\n}}\n"
      "template <int F>\n__device__ constexpr int pass_of() {{\n{}  return -1;\n}}\n",
      last + 1, begins, folds, passes);
}

/// One more than the last pass of the sums that the text reads.
int pass_of(const PointwiseText& text, const std::vector<CudaRowFoldsProblem::Fold>& before) {
  int pass = 0;
  for (std::size_t f = 0; f < before.size(); ++f)
    for (const PointwiseOperand& operand : text.operands)
      if (operand.name == fmt::format("sums[{}]", f)) pass = std::max(pass, before[f].pass + 1);
  return pass;
}

/// Reads what each sum takes, and what the results are made of.
std::string read_texts(const Kernel& kernel, ValueId folded, const Parts& parts,
                       CudaRowFoldsProblem& problem) {
  const std::size_t inputs = kernel.body.inputs.size();
  const TensorType& type = kernel.body.type(folded);
  CudaGroups groups = {type.dims(), 0, type.dims().size() - 1};
  groups.divides_rows = has_fixed_rows(kernel, folded);
  std::string refusal;
  for (std::size_t f = 0; f < parts.folded.size() && refusal.empty(); ++f) {
    CudaRowFoldsProblem::Fold fold{{}, parts.is_max[f]};
    refusal = read_part(parts, inputs, parts.folded[f], groups, fmt::format("fold{}", f), false, fold.text,
                        problem.operands);
    fold.pass = pass_of(fold.text, problem.folds);
    problem.folds.push_back(std::move(fold));
  }
  if (problem.has_row && refusal.empty())
    refusal = read_part(parts, inputs, parts.outputs[0], groups, "epilogue", problem.out != DType::f32,
                        problem.epilogue, problem.operands);
  for (std::size_t i = problem.has_row ? 1 : 0; i < parts.outputs.size() && refusal.empty(); ++i)
    refusal = read_number(parts, inputs, i, type, problem);
  return refusal;
}

}  // namespace

Reading<CudaRowFoldsProblem> read_cuda_row_folds(const Kernel& kernel) {
  if (kernel.kind != KernelClass::reduction) return {{}, "it is no reduction"};
  const Graph& body = kernel.body;
  if (body.outputs.size() > most_outputs) return {{}, "it has many outputs"};
  const ValueId folded = folded_value(body);
  const TensorType& type = body.type(folded);
  if (type.rank() == 0 || type.layout.channel_block != 0) return {{}, "what it folds is no row"};
  if (type.element_count() == 0) return {{}, "it is empty"};
  if (has_open_columns(kernel, folded)) return {{}, "its rows are of any length"};
  for (const Node& node : body.nodes())
    if (has_trait(node.op, OpTrait::reduction))
      if (std::string refusal = refuse_fold(body, node, type); !refusal.empty()) return {{}, refusal};
  CudaRowFoldsProblem problem;
  const TensorType& result = body.type(body.outputs[0]);
  problem.is_open = kernel.open != nullptr;
  problem.has_row = result.dims() == type.dims() && result.layout == type.layout;
  problem.out = result.dtype;
  problem.columns = type.dims().back();
  problem.rows = type.element_count() / problem.columns;
  problem.out_argument = static_cast<int>(body.inputs.size());
  if (!is_float_storage(problem.out)) return {{}, "its result is no float"};
  if (problem.rows > most_folded_rows) return {{}, "there are too many rows for a grid"};
  const Parts parts = divide(body);
  if (parts.folded.size() > most_folds) return {{}, "it has many sums"};
  if (!problem.has_row && parts.folded.size() < 2 && type.rank() > 1) return {{}, "its result is no row"};
  std::string refusal = read_texts(kernel, folded, parts, problem);
  if (refusal.empty() && cuda_row_folds_choices(problem).empty())
    refusal = "its few rows are so long that they do not fit into registers";
  return {problem, refusal};
}

std::vector<CudaNormChoice> cuda_row_folds_choices(const CudaRowFoldsProblem& problem) {
  std::vector<CudaNormChoice> choices = choices_of({.columns = problem.columns,
                                                    .vector = vector_of(problem),
                                                    .operands = held_operands(problem),
                                                    .least_threads = 8,
                                                    .most_rows = 32,
                                                    .well_held = 32,
                                                    .most_held = 96});
  if (!choices.empty() || (problem.columns > long_row && problem.rows < many_rows)) return choices;
  const std::int64_t held = vector_of(problem) * held_operands(problem);
  const int items = static_cast<int>(std::clamp<std::int64_t>(32 / held, 1, 8));
  for (const int threads : {512, 256, 1024}) choices.push_back({threads, 1, false, items});
  return choices;
}

CudaTemplate make_cuda_row_folds(const CudaRowFoldsProblem& problem, const CudaNormChoice& choice) {
  const int vector = vector_of(problem);
  const bool walks = choice.items > 0;
  CudaTemplate result;
  LaunchSpec& launch = result.launch;
  launch.entry = entry_name(fmt::format("row_folds_{}", dtype_name(problem.out)), problem.is_open,
                            {problem.rows, problem.columns});
  const std::vector<CudaExtent> extents = {{"rows", problem.rows, problem.is_open},
                                           {"columns", problem.columns, false}};
  result.source.text = fmt::format("#define KERNEL {}\n{}{}{}", launch.entry, embedded::cuda_card,
                                   embedded::cuda_pointwise, embedded::cuda_vector);
  result.source.text += fmt::format(
      "constexpr int THREADS = {}, ROWS_OF_BLOCK = {}, FOLDS = {};\n"
      "constexpr bool STREAM_LOADS = {}, STREAM_STORES = STREAM_LOADS, HAS_ROW = {};\ntypedef {} Out;\n{}",
      choice.threads, choice.rows, problem.folds.size(), choice.streams, problem.has_row,
      dtype_name(problem.out),
      walks ? fmt::format("constexpr int VECTOR = {}, UNROLL = {};\n", vector, choice.items)
            : held_text(problem.columns, choice.threads, vector));
  const std::vector<const CudaOperand*> operands = operands_in({&problem.operands});
  std::vector<DType> further;
  for (std::size_t i = problem.has_row ? 0 : 1; i < problem.numbers.size(); ++i)
    further.push_back(problem.numbers[i].out);
  result.source.text += arguments_text(operands, extents, further) + functions_text(problem, vector);
  result.source.text += folds_text(problem);
  if (!walks) result.source.text += embedded::cuda_rows;
  result.source.text += walks ? embedded::cuda_row_walks : embedded::cuda_row_folds;
  launch.shape.grid[0] = static_cast<unsigned>(ceil_div(problem.rows, choice.rows));
  launch.shape.block[0] = static_cast<unsigned>(choice.threads * choice.rows);
  launch.shape.programmatic = true;
  pass_arguments(launch, problem.out_argument, operands, extents, further.size());
  return result;
}

}  // namespace sylvite
