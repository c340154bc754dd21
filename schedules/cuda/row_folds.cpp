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

/// The body with an input for each sum, which stands for its result.
struct Parts {
  Graph graph;
  std::vector<ValueId> folded;  ///< per sum: what it adds
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
    copier.set(node.outputs[0], copier.graph().add_input("", body.type(node.outputs[0])));
  }
  for (const ValueId output : body.outputs) parts.outputs.push_back(copier.mapped(output));
  parts.graph = std::move(copier.graph());
  return parts;
}

/// "", or why a reduction is no sum of rows as those of the result.
std::string refuse_fold(const Graph& body, const Node& node) {
  const TensorType& result = body.type(body.outputs[0]);
  if (node.op != Op::reduce_sum) return "it folds by another operation";
  const TensorType& type = body.type(node.inputs[0]);
  const bool folds_rows = node.attributes.integers("axes") == Dims{type.rank() - 1};
  if (!folds_rows || node.attributes.integer("keepdims") == 0) return "not the innermost dim alone is folded";
  if (type.dims() != result.dims() || type.layout != result.layout) return "its result is no row";
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
  int vector = problem.out == DType::f32 ? 4 : 8;
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
    functions += problem.folds[f].function;
    terms += fmt::format("  if constexpr (F == {}) return {};\n", f,
                         call_of(problem.folds[f], fmt::format("fold{}", f)));
  }
  std::string numbers;
  for (std::size_t i = 0; i < problem.numbers.size(); ++i) {
    functions += problem.numbers[i].text.function;
    numbers += fmt::format("  store_one(a.out{0} + row, {1});\n", i + 1,
                           call_of(problem.numbers[i].text, fmt::format("number{}", i + 1)));
  }
  return functions +
         fmt::format(
             "typedef float Sums[FOLDS];\nstruct Item {{\n{}}};\n"
             "DEVICE void load_item(const Arguments& a, long long row, int column, Item& item) {{\n{}}}\n"
             "template <int F>\nDEVICE float term(const Item& item, const Sums& sums, int j) {{\n{}  return "
             "0.f;\n}}\n"
             "DEVICE void finish(const Arguments& a, long long row, int column, const Item& item, const "
             "Sums& sums) {{\n"
             "  float x[VECTOR];\n  for (int j = 0; j < VECTOR; j++) x[j] = {};\n"
             "  store_vector<STREAM_STORES>(a.out + row * extents_of(a).columns + column, x);\n}}\n"
             "DEVICE void finish_numbers(const Arguments& a, long long row, const Sums& sums) {{\n{}}}\n",
             members, loads, terms, call_of(problem.epilogue, "epilogue"), numbers);
}

}  // namespace

Reading<CudaRowFoldsProblem> read_cuda_row_folds(const Kernel& kernel) {
  if (kernel.kind != KernelClass::reduction) return {{}, "it is no reduction"};
  const Graph& body = kernel.body;
  if (body.outputs.size() > most_outputs) return {{}, "it has many outputs"};
  const TensorType& type = body.type(body.outputs[0]);
  if (type.rank() == 0 || type.layout.channel_block != 0) return {{}, "its result is no row"};
  if (type.element_count() == 0) return {{}, "it is empty"};
  if (has_open_columns(kernel, body.outputs[0])) return {{}, "its rows are of any length"};
  for (const Node& node : body.nodes())
    if (has_trait(node.op, OpTrait::reduction))
      if (std::string refusal = refuse_fold(body, node); !refusal.empty()) return {{}, refusal};
  CudaRowFoldsProblem problem;
  problem.is_open = kernel.open != nullptr;
  problem.out = type.dtype;
  problem.columns = type.dims().back();
  problem.rows = type.element_count() / problem.columns;
  problem.out_argument = static_cast<int>(body.inputs.size());
  if (!is_float_storage(problem.out)) return {{}, "its result is no float"};
  if (problem.rows > most_folded_rows) return {{}, "there are too many rows for a grid"};
  const Parts parts = divide(body);
  if (parts.folded.size() > most_folds) return {{}, "it has many sums"};
  CudaGroups groups = {type.dims(), 0, type.dims().size() - 1};
  groups.divides_rows = has_fixed_rows(kernel, body.outputs[0]);
  for (std::size_t f = 0; f < parts.folded.size(); ++f) {
    std::string refusal =
        read_part(parts, body.inputs.size(), parts.folded[f], groups, fmt::format("fold{}", f), false,
                  problem.folds.emplace_back(), problem.operands);
    if (!refusal.empty()) return {{}, refusal};
  }
  std::string refusal = read_part(parts, body.inputs.size(), parts.outputs[0], groups, "epilogue",
                                  problem.out != DType::f32, problem.epilogue, problem.operands);
  for (std::size_t i = 1; i < parts.outputs.size() && refusal.empty(); ++i)
    refusal = read_number(parts, body.inputs.size(), i, type, problem);
  if (refusal.empty() && cuda_row_folds_choices(problem).empty())
    refusal = "its rows do not fit into registers";
  return {problem, refusal};
}

std::vector<CudaNormChoice> cuda_row_folds_choices(const CudaRowFoldsProblem& problem) {
  return choices_of({.columns = problem.columns,
                     .vector = vector_of(problem),
                     .operands = held_operands(problem),
                     .least_threads = 8,
                     .most_rows = 32,
                     .well_held = 32,
                     .most_held = 96});
}

CudaTemplate make_cuda_row_folds(const CudaRowFoldsProblem& problem, const CudaNormChoice& choice) {
  const int vector = vector_of(problem);
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
      "constexpr bool STREAM_LOADS = {}, STREAM_STORES = STREAM_LOADS;\ntypedef {} Out;\n{}",
      choice.threads, choice.rows, problem.folds.size(), choice.streams, dtype_name(problem.out),
      held_text(problem.columns, choice.threads, vector));
  const std::vector<const CudaOperand*> operands = operands_in({&problem.operands});
  std::vector<DType> further;
  further.reserve(problem.numbers.size());
  for (const CudaRowFoldsProblem::Number& number : problem.numbers) further.push_back(number.out);
  result.source.text += arguments_text(operands, extents, further) + functions_text(problem, vector);
  result.source.text += embedded::cuda_rows;
  result.source.text += embedded::cuda_row_folds;
  launch.shape.grid[0] = static_cast<unsigned>(ceil_div(problem.rows, choice.rows));
  launch.shape.block[0] = static_cast<unsigned>(choice.threads * choice.rows);
  launch.shape.programmatic = true;
  pass_arguments(launch, problem.out_argument, operands, extents, further.size());
  return result;
}

}  // namespace sylvite
