#include <algorithm>
#include <optional>
#include <set>

#include "base/error.h"
#include "frontend/graph/copy.h"
#include "frontend/graph/rewrite.h"
#include "frontend/graph/views.h"
#include "frontend/ops/op_table.h"
#include "schedules/cuda/folds.h"

namespace sylvite {
namespace {

constexpr std::size_t most_folds = 8;

using Fold = CudaFolds::Fold;

bool is_whole(FoldKind kind) {
  return kind == FoldKind::count || kind == FoldKind::place_of_most || kind == FoldKind::place_of_least;
}

/// What a value is before it becomes a number, where it is a truth value: 0 or 1 as either.
ValueId truth_of(const Graph& graph, ValueId id) {
  const Node* cast = producer_if(graph, id, Op::cast);
  return cast != nullptr && graph.type(cast->inputs[0]).dtype == DType::boolean ? cast->inputs[0] : id;
}

Fold kind_of(const Graph& body, const Node& node) {
  Fold fold;
  switch (node.op) {
    case Op::reduce_sum:
      fold.kind = is_float_storage(body.type(node.outputs[0]).dtype) ? FoldKind::sum : FoldKind::count;
      break;
    case Op::reduce_max:
      fold.kind = FoldKind::most;
      break;
    case Op::reduce_min:
      fold.kind = FoldKind::least;
      break;
    case Op::reduce_prod:
      fold.kind = FoldKind::product;
      break;
    case Op::arg_max:
      fold.kind = FoldKind::place_of_most;
      break;
    default:
      fold.kind = FoldKind::place_of_least;
  }
  fold.takes_last = is_whole(fold.kind) && node.attributes.has("select_last") &&
                    node.attributes.integer("select_last") != 0;
  return fold;
}

/// The body with an input for each fold, which stands for its result.
struct Parts {
  Graph graph;
  std::vector<ValueId> folded;  ///< per fold: what it takes
  std::vector<Fold> folds;      ///< likewise, of what kind
  std::vector<ValueId> stands;  ///< likewise, for its result
  std::vector<ValueId> outputs;
};

/// The dims of one element that a reshape leaves out, counted from the last; none where it does something else.
std::set<std::size_t> left_out(const Dims& from, const Dims& to) {
  std::set<std::size_t> found;
  std::size_t kept = 0;
  for (std::size_t d = 0; d < from.size(); ++d)
    if (kept < to.size() && from[d] == to[kept])
      ++kept;
    else if (from[d] == 1)
      found.insert(from.size() - d);
    else
      return {};
  return kept == to.size() ? found : std::set<std::size_t>{};
}

/// A value without dims of one element: pointwise work is done on what has none of them.
ValueId without_dims(Graph& graph, ValueId id, const std::set<std::size_t>& dims) {
  const Dims all = graph.type(id).dims();
  Dims left;
  for (std::size_t d = 0; d < all.size(); ++d)
    if (!dims.contains(all.size() - d)) left.push_back(all[d]);
  if (left.size() == all.size()) return id;
  const NodeId producer = graph.value(id).producer;
  if (producer == no_node || !has_trait(graph.node(producer).op, OpTrait::pointwise))
    return add_reshape(graph, id, left);
  const Node node = graph.node(producer);
  std::vector<ValueId> inputs;
  for (const ValueId input : node.inputs) inputs.push_back(without_dims(graph, input, dims));
  return graph.add(node.op, inputs, node.attributes, node.name);
}

/// Copies a reshape that leaves out dims of one element behind pointwise work ahead of it; false for other nodes.
bool copy_ahead_of_work(GraphCopier& copier, const Node& node) {
  if (node.op != Op::reshape) return false;
  const Graph& body = copier.source();
  const TensorType &from = body.type(node.inputs[0]), &to = body.type(node.outputs[0]);
  const std::set<std::size_t> dims = left_out(from.dims(), to.dims());
  const ValueId source = copier.mapped(node.inputs[0]);
  const NodeId producer = copier.graph().value(source).producer;
  if (dims.empty() || from.layout != Layout{} || to.layout != Layout{} || producer == no_node ||
      !has_trait(copier.graph().node(producer).op, OpTrait::pointwise))
    return false;
  copier.set(node.outputs[0], without_dims(copier.graph(), source, dims));
  return true;
}

/// `is_fixed`: all extents are known.
Parts divide(const Graph& body, bool is_fixed) {
  GraphCopier copier(body);
  copier.add_inputs();
  Parts parts;
  for (const Node& node : body.nodes()) {
    if (!has_trait(node.op, OpTrait::reduction)) {
      if (!is_fixed || !copy_ahead_of_work(copier, node)) copier.copy(node);
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

/// "", or why a reduction is no fold as that of `axes` of `folded`.
std::string refuse_fold(const Graph& body, const Node& node, const Dims& axes, const TensorType& folded) {
  const TensorType& type = body.type(node.inputs[0]);
  if (folded_axes(node) != axes) return "its folds are of other dims";
  if (type.dims() != folded.dims() || type.layout != folded.layout) return "its folds differ";
  const Fold fold = kind_of(body, node);
  const bool is_truth = body.type(truth_of(body, node.inputs[0])).dtype == DType::boolean;
  const bool takes_truth =
      fold.kind == FoldKind::count || fold.kind == FoldKind::most || fold.kind == FoldKind::least;
  return is_float_storage(type.dtype) || (is_truth && takes_truth) ? "" : "it folds numbers of another type";
}

Dims kept_dims(Dims dims, const Dims& axes) {
  for (const std::int64_t axis : axes) dims[static_cast<std::size_t>(axis)] = 1;
  return dims;
}
Dims left_dims(const Dims& dims, const Dims& axes) {
  Dims left;
  for (std::size_t i = 0; i < dims.size(); ++i)
    if (std::ranges::find(axes, static_cast<std::int64_t>(i)) == axes.end()) left.push_back(dims[i]);
  return left;
}

/// How a text calls what it reads of memory: of a row at each column, of a number once.
struct Calls {
  std::string suffix, before, behind;
};

/// What all texts of a problem are read from.
struct Source {
  const Kernel& kernel;
  const FoldDims& dims;
  const Parts& parts;
  const Graph* open;  ///< as `parts.graph`, with symbols
  const TensorType& folded;
};

/// Does a value of dims `to` read a fold's result at its own place? Elements do where the folded dims are kept as ones.
bool reads_own(const Dims& fold, const Dims& to, const Dims& kept) {
  return product(to, 0, to.size()) == product(kept, 0, kept.size()) ? without_ones(fold) == without_ones(to)
                                                                    : fold == kept;
}

/// Reads work up to a value: what it reads of memory joins the operands, and folds, of dims `kept`, are called by their number.
std::string read_part(const Source& source, ValueId to, const CudaGroups& groups, const std::string& name,
                      bool fast, const Dims& kept, const Calls& calls, PointwiseText& text,
                      std::vector<CudaOperand>& all) {
  const Graph& graph = source.parts.graph;
  const std::size_t inputs = source.kernel.body.inputs.size();
  std::vector<CudaOperand> own;
  std::string refusal = read_work(graph, no_value, to, groups, name, fast, text, own, source.open);
  if (!refusal.empty()) return refusal;
  rename_counts(name, text);
  std::vector<std::size_t> read;  // places of operands in memory
  std::vector<CudaOperand> in_memory;
  PointwiseText of_memory;
  for (std::size_t i = 0; i < own.size(); ++i) {
    const auto input = static_cast<std::size_t>(own[i].of.input);
    if (input >= inputs) {
      if (!reads_own(graph.type(graph.inputs[input]).dims(), graph.type(to).dims(), kept))
        return "a fold is read at other places than its own";
      text.operands[i].name = fold_name(input - inputs);
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
void read_fold_itself(const Parts& parts, ValueId output, CudaFolds::Number& number) {
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

/// Reads output `number`.
std::string read_number(const Source& source, std::size_t number, CudaFolds& problem) {
  const Graph& graph = source.parts.graph;
  const ValueId output = before_layout(graph, source.parts.outputs[number]);
  const TensorType& own = graph.type(output);
  const bool keeps = own.dims() == kept_dims(source.folded.dims(), source.dims.axes);
  if ((!keeps && own.dims() != left_dims(source.folded.dims(), source.dims.axes)) ||
      own.dims() == source.folded.dims())
    return "a result has neither all dims nor those that are left";
  CudaFolds::Number result;
  result.out = own.dtype;
  CudaGroups groups;
  if (std::string refusal = source.dims.number_groups(own, keeps, groups); !refusal.empty()) return refusal;
  read_fold_itself(source.parts, output, result);
  if (result.fold < 0) {
    if (!is_float_storage(own.dtype) && own.dtype != DType::boolean) return "a number is no float";
    const bool fast = is_half(own.dtype);
    const Dims kept = kept_dims(source.folded.dims(), source.dims.axes);
    const std::string refusal =
        read_part(source, output, groups, fmt::format("number{}", number), fast, kept,
                  {fmt::format("_of{}", number), "v_", "[0]"}, result.text, result.operands);
    if (!refusal.empty()) return refusal;
  }
  if (problem.numbers.empty() && !problem.has_row) problem.out = result.out;
  problem.numbers.push_back(std::move(result));
  return "";
}

/// One more than the last pass of the folds that the text reads.
int pass_of(const PointwiseText& text, const std::vector<Fold>& before) {
  int pass = 0;
  for (std::size_t f = 0; f < before.size(); ++f)
    for (const PointwiseOperand& operand : text.operands)
      if (operand.name == fold_name(f)) pass = std::max(pass, before[f].pass + 1);
  return pass;
}

}  // namespace

ValueId folded_value(const Graph& body) {
  for (const Node& node : body.nodes())
    if (has_trait(node.op, OpTrait::reduction)) return node.inputs[0];
  return no_value;
}

std::string refuse_folds(const Graph& body) {
  const Node* first = nullptr;
  std::size_t folds = 0;
  for (const Node& node : body.nodes()) {
    if (!has_trait(node.op, OpTrait::reduction)) continue;
    if (first == nullptr) first = &node;
    const std::string refusal = refuse_fold(body, node, folded_axes(*first), body.type(first->inputs[0]));
    if (!refusal.empty()) return refusal;
    ++folds;
  }
  if (folds == 0) return "it has no fold";
  return folds > most_folds ? "it has many folds" : "";
}

std::string read_folds(const Kernel& kernel, const FoldDims& dims, CudaFolds& problem) {
  const bool is_fixed = dims.open == nullptr;
  const Parts parts = divide(kernel.body, is_fixed);
  std::optional<Parts> open;
  if (!is_fixed) open = divide(*dims.open, is_fixed);
  const TensorType& folded = kernel.body.type(folded_value(kernel.body));
  const Source source{kernel, dims, parts, open ? &open->graph : nullptr, folded};
  const Dims kept = kept_dims(folded.dims(), dims.axes);
  const Calls at_element = {"", "item.", "[j]"};
  std::string refusal;
  for (std::size_t f = 0; f < parts.folded.size() && refusal.empty(); ++f) {
    Fold fold = parts.folds[f];
    refusal = read_part(source, parts.folded[f], dims.groups, fmt::format("fold{}", f), false, kept,
                        at_element, fold.text, problem.operands);
    fold.pass = pass_of(fold.text, problem.folds);
    problem.folds.push_back(std::move(fold));
  }
  if (problem.has_row && refusal.empty())
    refusal = read_part(source, parts.outputs[0], dims.groups, "epilogue", problem.out != DType::f32, kept,
                        at_element, problem.epilogue, problem.operands);
  for (std::size_t i = problem.has_row ? 1 : 0; i < parts.outputs.size() && refusal.empty(); ++i)
    refusal = read_number(source, i, problem);
  return refusal;
}

}  // namespace sylvite
