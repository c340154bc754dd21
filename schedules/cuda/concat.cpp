#include "schedules/cuda/concat.h"

#include <algorithm>

#include "base/error.h"
#include "base/rounding.h"
#include "frontend/graph/views.h"
#include "frontend/ops/op_table.h"
#include "lowering/plan/run_extents.h"
#include "schedules/cuda/conv.h"
#include "schedules/cuda/sources.h"

namespace sylvite {
namespace {

constexpr std::int64_t most_joined_elements = (1LL << 31) - 1;

/// Rows are the dims ahead of `axis` in memory, columns the axis and those behind it.
std::string read_groups(const TensorType& type, std::int64_t axis, CudaGroups& groups) {
  std::vector<std::size_t> order;  // empty: as the dims are
  if (is_channels_last(type))
    order = channels_last_order(type.shape.size());
  else if (type.layout.channel_block != 0)
    return "channels lie in blocks";
  groups = ordered(type.dims(), order);
  const auto place = std::ranges::find(order, static_cast<std::size_t>(axis)) - order.begin();
  groups.last = static_cast<std::size_t>(order.empty() ? axis : place);
  return "";
}

/// Does `id` lie in an input, perhaps behind views?
bool is_view_of_input(const Graph& body, ValueId id) {
  while (body.value(id).producer != no_node) {
    const Node& node = body.node(body.value(id).producer);
    if (!has_trait(node.op, OpTrait::view)) return false;
    id = node.inputs.at(0);
  }
  return !body.is_constant(id);
}

std::string read_part(const Graph& body, ValueId id, std::int64_t axis, CudaConcatProblem& problem) {
  if (!is_view_of_input(body, id)) return "a part is computed";
  CudaGroups groups;
  std::string refusal = read_groups(body.type(id), axis, groups);
  groups.divides_rows = true;
  PointwiseText text;
  std::vector<CudaOperand> operands;
  if (refusal.empty()) refusal = read_work(body, no_value, id, groups, "part", false, text, operands);
  if (!refusal.empty()) return refusal;
  const std::int64_t columns = product(groups.dims, groups.last, groups.dims.size());
  if (operands.size() != 1 || (operands[0].column == 0 && columns > 1))
    return "a part is broadcast along its rows";
  const std::int64_t begin = problem.parts.empty() ? 0 : problem.parts.back().end;
  operands[0].of.name = fmt::format("part{}", problem.parts.size());
  problem.parts.push_back({begin + columns, operands[0]});
  return "";
}

/// The output, or what reshapes that move nothing make it of.
ValueId computed_output(const Graph& body) {
  ValueId output = body.outputs[0];
  for (NodeId id = body.value(output).producer; id != no_node; id = body.value(output).producer) {
    const Node& node = body.node(id);
    if (node.op != Op::reshape || body.type(node.inputs[0]).layout.channel_block != 0) break;
    output = node.inputs[0];
  }
  return output;
}

/// What divides the columns of every part, where runs of an open kernel give them; 0 where they are known.
std::int64_t open_unit(const Kernel& kernel, const CudaGroups& groups) {
  if (!kernel.open) return 0;
  const Shape& shape = kernel.open->type(kernel.open->node(open_anchor(kernel)).outputs[0]).shape;
  std::int64_t unit = 1;
  bool is_open = false;
  for (std::size_t i = groups.last; i < groups.dims.size(); ++i) {
    const Extent& extent = shape.at(groups.order.empty() ? i : groups.order[i]);
    is_open = is_open || !extent.is_known();
    if (i > groups.last && extent.is_known()) unit *= extent.known();
  }
  return is_open ? unit : 0;
}

/// Parts whose columns runs give lie row by row, and nothing else is read then.
std::string refuse_apart(const CudaConcatProblem& problem) {
  std::int64_t begin = 0;
  for (const CudaConcatProblem::Part& part : problem.parts) {
    const std::int64_t columns = part.end - begin;
    begin = part.end;
    if (!part.of.digits.empty() || part.of.of.offset != 0 || (part.of.row != columns && problem.rows > 1))
      return "rows that runs give lie apart";
  }
  return problem.epilogue_operands.empty() ? "" : "work on columns that runs give reads more";
}

/// Members of Extents that say where parts end, but for the last.
std::vector<std::string> end_names(const CudaConcatProblem& problem) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i + 1 < problem.parts.size(); ++i) names.push_back(fmt::format("end{}", i));
  return names;
}

/// C for a part's pointer to an element of a row.
std::string part_text(const CudaConcatProblem& problem, std::size_t number) {
  const CudaConcatProblem::Part& part = problem.parts[number];
  const std::string first = part.of.of.first("a." + part.of.of.name);
  if (problem.unit == 0) {
    const std::int64_t begin = number == 0 ? 0 : problem.parts[number - 1].end;
    std::string at = fmt::format("{} + {}ll * row + (column - {})", first, part.of.row, begin);
    for (const CudaOperand::Digit& digit : part.of.digits) at += digit_text(digit, "row");
    return at;
  }
  const std::string begin = number == 0 ? "0" : fmt::format("e.end{}", number - 1);
  const std::string end = number + 1 == problem.parts.size() ? "e.columns" : fmt::format("e.end{}", number);
  return fmt::format("{} + ({} - {}) * row + (column - {})", first, end, begin, begin);
}

std::string place_text(const CudaConcatProblem& problem) {
  std::string text =
      "DEVICE const Element* place_of(const Arguments& a, long long row, int column) {\n"
      "  const Extents e = extents_of(a);\n";
  for (std::size_t i = 0; i < problem.parts.size(); ++i) {
    const bool is_last = i + 1 == problem.parts.size();
    text += fmt::format("  {}return {};\n", is_last ? "" : fmt::format("if (column < e.end{}) ", i),
                        part_text(problem, i));
  }
  return text + "}\n";
}

std::string concat_finish(const CudaConcatProblem& problem, int vector) {
  std::string loads;
  for (const CudaOperand& operand : problem.epilogue_operands) loads += load_text(operand, vector, "false");
  return fmt::format(
      "DEVICE void finish(const Arguments& a, long long row, int column, float (&x)[VECTOR]) {{\n{}"
      "#pragma unroll\n  for (int j = 0; j < VECTOR; j++) x[j] = {};\n"
      "  store_vector(a.out + row * extents_of(a).columns + column, x);\n}}\n",
      loads, call_text(problem.epilogue, "epilogue", "x[j]"));
}

std::vector<const CudaOperand*> all_operands(const CudaConcatProblem& problem) {
  std::vector<const CudaOperand*> all;
  all.reserve(problem.parts.size() + problem.epilogue_operands.size());
  for (const CudaConcatProblem::Part& part : problem.parts) all.push_back(&part.of);
  for (const CudaOperand& operand : problem.epilogue_operands) all.push_back(&operand);
  return all;
}

}  // namespace

std::int64_t CudaConcatProblem::vector() const {
  const std::int64_t size = std::max<std::int64_t>(static_cast<std::int64_t>(dtype_size(element)), 2);
  std::int64_t vector = 16 / size;
  if (unit > 0) {
    while (unit % vector != 0) vector /= 2;
    return vector;
  }
  const auto fits = [&](const Part& part) {
    return part.end % vector == 0 && part.of.row % vector == 0 && part.of.of.offset % vector == 0 &&
           std::ranges::all_of(part.of.digits, [&](const auto& digit) { return digit.stride % vector == 0; });
  };
  while (!std::ranges::all_of(parts, fits)) vector /= 2;
  return vector;
}

Reading<CudaConcatProblem> read_cuda_concat(const Kernel& kernel) {
  const Graph& body = kernel.body;
  if (kernel.kind != KernelClass::movement || body.node(kernel.anchor).op != Op::concat)
    return {{}, "it is no concat"};
  if (body.outputs.size() != 1) return {{}, "it has several outputs"};
  const Node& node = body.node(kernel.anchor);
  const TensorType& type = body.type(node.outputs[0]);
  const std::int64_t axis = node.attributes.integer("axis");
  const ValueId output = computed_output(body);
  CudaConcatProblem problem;
  problem.is_open = kernel.open != nullptr;
  problem.element = type.dtype;
  problem.out = body.type(output).dtype;
  problem.out_argument = static_cast<int>(body.inputs.size());
  if (!is_float_storage(problem.element) || !is_float_storage(problem.out)) return {{}, "it is of no floats"};
  if (body.type(output).dims() != type.dims() || body.type(output).layout != type.layout)
    return {{}, "its epilogue changes the shape"};
  if (type.element_count() == 0) return {{}, "it is empty"};
  CudaGroups groups;
  std::string refusal = read_groups(type, axis, groups);
  for (const ValueId part : node.inputs)
    if (refusal.empty() && body.type(part).element_count() != 0)
      refusal = read_part(body, part, axis, problem);
  problem.rows = product(groups.dims, 0, groups.last);
  problem.columns = product(groups.dims, groups.last, groups.dims.size());
  if (refusal.empty())
    refusal = read_work(body, node.outputs[0], output, groups, "epilogue", problem.out != DType::f32,
                        problem.epilogue, problem.epilogue_operands);
  problem.unit = open_unit(kernel, groups);
  if (refusal.empty() && problem.unit > 0) refusal = refuse_apart(problem);
  if (refusal.empty() && type.element_count() > most_joined_elements) refusal = "it is large";
  return {problem, refusal};
}

std::string CudaConcatChoice::to_string() const {
  return fmt::format("items {} threads {}", items, threads);
}

std::vector<CudaConcatChoice> cuda_concat_choices(const CudaConcatProblem& problem) {
  constexpr std::int64_t least_threads = 1 << 16;  // that fill a card
  const std::int64_t vectors = problem.rows * problem.columns / problem.vector();
  std::vector<CudaConcatChoice> choices;
  for (const int items : {4, 2, 1})
    if (items == 1 || vectors / items >= least_threads)
      for (const int threads : {128, 256}) choices.push_back({items, threads});
  return choices;
}

CudaTemplate make_cuda_concat(const CudaConcatProblem& problem, const CudaConcatChoice& choice) {
  const auto vector = static_cast<int>(problem.vector());
  const std::vector<const CudaOperand*> operands = all_operands(problem);
  CudaTemplate result;
  LaunchSpec& launch = result.launch;
  const std::vector<std::string> ends = end_names(problem);
  std::vector<CudaExtent> extents = {{"rows", problem.rows, problem.is_open},
                                     {"columns", problem.columns, problem.unit > 0}};
  for (std::size_t i = 0; i < ends.size(); ++i)
    extents.push_back({ends[i], problem.parts[i].end, problem.unit > 0});
  launch.entry = entry_name(fmt::format("concat_{}", problem.parts.size()), problem.is_open,
                            {problem.rows, problem.columns});
  result.source.text = fmt::format("#define KERNEL {}\n{}{}{}", launch.entry, embedded::cuda_card,
                                   embedded::cuda_pointwise, embedded::cuda_vector);
  result.source.text += fmt::format(
      "constexpr int VECTOR = {}, ITEMS = {}, THREADS = {};\n"
      "typedef {} Element;\ntypedef {} Out;\n",
      vector, choice.items, choice.threads, dtype_name(problem.element), dtype_name(problem.out));
  result.source.text += arguments_text(operands, extents) + problem.epilogue.function + place_text(problem) +
                        concat_finish(problem, vector) + std::string(embedded::cuda_concat);
  const std::int64_t vectors = problem.rows * problem.columns / vector;
  launch.shape.set_blocks(BlockCount(vectors).in_parts_of(std::int64_t{choice.items} * choice.threads));
  launch.shape.block[0] = static_cast<unsigned>(choice.threads);
  launch.shape.programmatic = true;
  pass_arguments(launch, problem.out_argument, operands, extents);
  return result;
}

}  // namespace sylvite
