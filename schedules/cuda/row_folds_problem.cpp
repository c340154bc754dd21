#include <algorithm>

#include "base/error.h"
#include "frontend/graph/copy.h"
#include "frontend/graph/rewrite.h"
#include "frontend/ops/op_table.h"
#include "schedules/cuda/row_folds.h"

namespace sylvite {
namespace {

constexpr std::size_t most_folds = 8;
constexpr std::size_t most_outputs = 8;
constexpr std::int64_t most_folded_rows = (1LL << 31) - 1;
constexpr std::int64_t most_row_places = 1LL << 31;  // places are numbers of 32 bits
constexpr std::int64_t least_alone = 32;  // columns of a fold that stands alone: a thread folds fewer as well

using RowFold = CudaRowFoldsProblem::Fold;

bool is_whole(RowFoldKind kind) {
  return kind == RowFoldKind::count || kind == RowFoldKind::place_of_most ||
         kind == RowFoldKind::place_of_least;
}

/// What a value is before it becomes a number, where it is a truth value: 0 or 1 as either.
ValueId truth_of(const Graph& graph, ValueId id) {
  const Node* cast = producer_if(graph, id, Op::cast);
  return cast != nullptr && graph.type(cast->inputs[0]).dtype == DType::boolean ? cast->inputs[0] : id;
}

RowFold kind_of(const Graph& body, const Node& node) {
  RowFold fold;
  switch (node.op) {
    case Op::reduce_sum:
      fold.kind = is_float_storage(body.type(node.outputs[0]).dtype) ? RowFoldKind::sum : RowFoldKind::count;
      break;
    case Op::reduce_max:
      fold.kind = RowFoldKind::most;
      break;
    case Op::reduce_min:
      fold.kind = RowFoldKind::least;
      break;
    case Op::reduce_prod:
      fold.kind = RowFoldKind::product;
      break;
    case Op::arg_max:
      fold.kind = RowFoldKind::place_of_most;
      break;
    default:
      fold.kind = RowFoldKind::place_of_least;
  }
  fold.takes_last = is_whole(fold.kind) && node.attributes.has("select_last") &&
                    node.attributes.integer("select_last") != 0;
  return fold;
}

/// The body with an input for each fold, which stands for its result.
struct Parts {
  Graph graph;
  std::vector<ValueId> folded;  ///< per fold: what it takes
  std::vector<RowFold> folds;   ///< likewise, of what kind
  std::vector<ValueId> stands;  ///< likewise, for its result
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
    parts.folded.push_back(truth_of(copier.graph(), copier.mapped(node.inputs[0])));
    parts.folds.push_back(kind_of(body, node));
    parts.stands.push_back(copier.graph().add_input("", body.type(node.outputs[0])));
    copier.set(node.outputs[0], parts.stands.back());
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

bool folds_innermost(const Node& node, std::int64_t rank) {
  return node.attributes.has("axes") ? node.attributes.integers("axes") == Dims{rank - 1}
                                     : node.attributes.integer("axis") == rank - 1;
}

/// "", or why a reduction is no fold of rows as those of `row`.
std::string refuse_fold(const Graph& body, const Node& node, const TensorType& row) {
  const TensorType& type = body.type(node.inputs[0]);
  if (!folds_innermost(node, type.rank())) return "not the innermost dim alone is folded";
  if (type.dims() != row.dims() || type.layout != row.layout) return "its folds are of other rows";
  const RowFold fold = kind_of(body, node);
  const bool is_truth = body.type(truth_of(body, node.inputs[0])).dtype == DType::boolean;
  const bool takes_truth =
      fold.kind == RowFoldKind::count || fold.kind == RowFoldKind::most || fold.kind == RowFoldKind::least;
  return is_float_storage(type.dtype) || (is_truth && takes_truth) ? "" : "it folds numbers of another type";
}

/// How a text calls what it reads of memory: of a row at each column, of a number once.
struct Calls {
  std::string suffix, before, behind;
};

/// Reads work up to a value: what it reads of memory joins the operands, and folds are called by their number.
std::string read_part(const Parts& parts, std::size_t inputs, ValueId to, const CudaGroups& groups,
                      const std::string& name, bool fast, const Calls& calls, PointwiseText& text,
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
      text.operands[i].name = row_fold_name(input - inputs);
      continue;
    }
    own[i].of.name += calls.suffix;
    read.push_back(i);
    in_memory.push_back(own[i]);
    of_memory.operands.push_back(own[i].of);
  }
  share_operands(std::move(in_memory), of_memory, all);
  for (std::size_t i = 0; i < read.size(); ++i)
    text.operands[read[i]].name = calls.before + of_memory.operands[i].name + calls.behind;
  return "";
}

bool is_whole_storage(DType dtype) {
  return is_signed_integer(dtype) || is_unsigned_integer(dtype) || dtype == DType::boolean;
}

/// Where a result is a fold as it is, or as a whole number or a truth value: which one, and what it becomes on the way.
void read_fold_itself(const Parts& parts, ValueId output, CudaRowFoldsProblem::Number& number) {
  std::vector<DType> types = {parts.graph.type(output).dtype};
  while (const Node* cast = producer_if(parts.graph, output, Op::cast)) {
    output = cast->inputs[0];
    types.push_back(parts.graph.type(output).dtype);
  }
  const auto found = std::ranges::find(parts.stands, output);
  const bool is_rounded =
      std::ranges::any_of(types, [](DType dtype) { return !is_whole_storage(dtype) && dtype != DType::f32; });
  if (found == parts.stands.end() || is_rounded) return;
  number.fold = static_cast<int>(found - parts.stands.begin());
  number.types.assign(types.rbegin(), types.rend());
}

/// Reads output `number`, of each row of the result's `type`.
std::string read_number(const Parts& parts, std::size_t inputs, std::size_t number, const TensorType& type,
                        bool divides_rows, CudaRowFoldsProblem& problem) {
  const TensorType& own = parts.graph.type(parts.outputs[number]);
  Dims dims = type.dims(), without = type.dims();
  dims.back() = 1;
  without.pop_back();
  const bool keeps = own.dims() == dims;
  if ((!keeps && own.dims() != without) || type.dims().back() == 1)
    return "a result is neither a row nor a number for each";
  CudaRowFoldsProblem::Number result;
  result.out = own.dtype;
  read_fold_itself(parts, parts.outputs[number], result);
  if (result.fold < 0) {
    if (!is_float_storage(own.dtype) && own.dtype != DType::boolean) return "a number is no float";
    const std::size_t rank = own.dims().size();
    const CudaGroups groups = {own.dims(), 0, keeps ? rank - 1 : rank, {}, divides_rows};
    const std::string refusal =
        read_part(parts, inputs, parts.outputs[number], groups, fmt::format("number{}", number), false,
                  {fmt::format("_of{}", number), "v_", "[0]"}, result.text, result.operands);
    if (!refusal.empty()) return refusal;
  }
  if (problem.numbers.empty() && !problem.has_row) problem.out = result.out;
  problem.numbers.push_back(std::move(result));
  return "";
}

/// One more than the last pass of the folds that the text reads.
int pass_of(const PointwiseText& text, const std::vector<RowFold>& before) {
  int pass = 0;
  for (std::size_t f = 0; f < before.size(); ++f)
    for (const PointwiseOperand& operand : text.operands)
      if (operand.name == row_fold_name(f)) pass = std::max(pass, before[f].pass + 1);
  return pass;
}

/// Reads what each fold takes, and what the results are made of.
std::string read_texts(const Kernel& kernel, ValueId folded, const Parts& parts,
                       CudaRowFoldsProblem& problem) {
  const std::size_t inputs = kernel.body.inputs.size();
  const TensorType& type = kernel.body.type(folded);
  CudaGroups groups = {type.dims(), 0, type.dims().size() - 1};
  const Calls at_column = {"", "item.", "[j]"};
  groups.divides_rows = has_fixed_rows(kernel, folded);
  std::string refusal;
  for (std::size_t f = 0; f < parts.folded.size() && refusal.empty(); ++f) {
    RowFold fold = parts.folds[f];
    refusal = read_part(parts, inputs, parts.folded[f], groups, fmt::format("fold{}", f), false, at_column,
                        fold.text, problem.operands);
    fold.pass = pass_of(fold.text, problem.folds);
    problem.folds.push_back(std::move(fold));
  }
  if (problem.has_row && refusal.empty())
    refusal = read_part(parts, inputs, parts.outputs[0], groups, "epilogue", problem.out != DType::f32,
                        at_column, problem.epilogue, problem.operands);
  for (std::size_t i = problem.has_row ? 1 : 0; i < parts.outputs.size() && refusal.empty(); ++i)
    refusal = read_number(parts, inputs, i, type, groups.divides_rows, problem);
  if (refusal.empty() && problem.has_open_columns)
    refusal = follow_columns(problem.columns, problem.operands);
  return refusal;
}

std::string refuse_folds(const Kernel& kernel, ValueId folded) {
  const Graph& body = kernel.body;
  const TensorType& type = body.type(folded);
  if (type.rank() == 0 || type.layout.channel_block != 0) return "what it folds is no row";
  if (type.element_count() == 0) return "it is empty";
  if (type.dims().back() >= most_row_places) return "its rows are too long";
  std::size_t folds = 0;
  for (const Node& node : body.nodes()) {
    if (!has_trait(node.op, OpTrait::reduction)) continue;
    if (std::string refusal = refuse_fold(body, node, type); !refusal.empty()) return refusal;
    ++folds;
  }
  return folds > most_folds ? "it has many folds" : "";
}

}  // namespace

Reading<CudaRowFoldsProblem> read_cuda_row_folds(const Kernel& kernel) {
  if (kernel.kind != KernelClass::reduction) return {{}, "it is no reduction"};
  const Graph& body = kernel.body;
  if (body.outputs.size() > most_outputs) return {{}, "it has many outputs"};
  const ValueId folded = folded_value(body);
  if (std::string refusal = refuse_folds(kernel, folded); !refusal.empty()) return {{}, refusal};
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
  const Parts parts = divide(body);
  if (!problem.has_row && parts.folded.size() < 2 && type.rank() > 1 && problem.columns < least_alone)
    return {{}, "its only fold is of few numbers"};
  std::string refusal = read_texts(kernel, folded, parts, problem);
  if (refusal.empty() && cuda_row_folds_choices(problem, 1).empty())
    refusal = "its few rows are so long that they do not fit into registers";
  return {problem, refusal};
}

}  // namespace sylvite
