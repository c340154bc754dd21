#include "schedules/cuda/columns.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/rounding.h"
#include "frontend/graph/views.h"
#include "frontend/ops/op_table.h"
#include "schedules/cuda/card_limits.h"
#include "schedules/cuda/conv.h"
#include "schedules/cuda/rated.h"
#include "schedules/cuda/sources.h"

namespace sylvite {
namespace {

constexpr std::int64_t least_rows = 2;
constexpr std::int64_t most_column_rows = 1LL << 30;  // rows are numbered by int
const std::vector<std::size_t> dense_order = {};
constexpr std::int64_t l2_bytes = 50 << 20;  // what is larger is not there when it is read again

struct ColumnFold {
  Op op;
  const char* text;
  const char* identity;
};
constexpr ColumnFold column_folds[] = {
    {Op::reduce_sum, "a + b", "0.f"},
    {Op::reduce_prod, "a * b", "1.f"},
    {Op::reduce_max, "nan_max(a, b)", "__int_as_float(0xff800000)"},
    {Op::reduce_min, "nan_min(a, b)", "__int_as_float(0x7f800000)"},
};

/// Columns that a thread takes together: 16 bytes of the floats that are read, or a divisor of the columns.
std::int64_t vector_of(const CudaColumnsProblem& problem) {
  std::int64_t size = 4;
  for (const CudaOperand& operand : problem.prologue_operands)
    if (operand.passes_by() && operand.of.dtype != DType::boolean)
      size = std::min<std::int64_t>(size, static_cast<std::int64_t>(dtype_size(operand.of.dtype)));
  std::int64_t vector = 16 / size;
  while (problem.columns % vector != 0) vector /= 2;
  return vector;
}

std::int64_t strips_of(const CudaColumnsProblem& problem, int lanes) {
  const std::int64_t width = lanes * vector_of(problem);
  return ceil_div(problem.columns, width);
}

bool is_innermost(const TensorType& type) {
  return type.layout.channel_block == 0 || is_channels_last(type);
}

/// A block of the template folds columns of one batch: with a few vectors of them most of its threads have nothing to do.
bool leaves_blocks_idle(const CudaColumnsProblem& problem, DType dtype) {
  constexpr std::int64_t many_batches = 1024, few_vectors = 48;  // smallest blocks have 128 threads
  const auto vector = static_cast<std::int64_t>(16 / dtype_size(dtype));
  return problem.batch >= many_batches && problem.rows * ceil_div(problem.columns, vector) <= few_vectors;
}

/// Extents of the fold; "" or why its dims are no batch, rows and columns.
std::string read_extents(const TensorType& type, const Dims& axes, bool is_open, CudaGroups& groups,
                         CudaColumnsProblem& problem) {
  if (!is_innermost(type)) return "channels lie in blocks";
  groups =
      ordered(type.dims(), is_channels_last(type) ? channels_last_order(type.shape.size()) : dense_order);
  std::vector<std::size_t> folded;
  for (std::size_t i = 0; i < groups.dims.size(); ++i) {
    const std::size_t dim = groups.order.empty() ? i : groups.order[i];
    if (std::ranges::find(axes, static_cast<std::int64_t>(dim)) != axes.end()) folded.push_back(i);
  }
  groups.first = folded.front();
  groups.last = folded.back() + 1;
  groups.divides_rows = groups.divides_columns = true;
  if (groups.last - groups.first != folded.size()) return "the folded dims are not neighbours";
  if (groups.last == groups.dims.size()) return "the innermost dim is folded";
  problem.batch = product(groups.dims, 0, groups.first);
  problem.rows = product(groups.dims, groups.first, groups.last);
  problem.columns = product(groups.dims, groups.last, groups.dims.size());
  if (type.element_count() == 0) return "it is empty";
  if (problem.rows < least_rows) return "the columns are short";
  if (!is_open && leaves_blocks_idle(problem, type.dtype))
    return "its many batches have few elements: a thread each folds them";
  if (problem.rows > most_column_rows || problem.columns > most_column_rows) return "the extents are large";
  return "";
}

/// Images of one pixel lie the same with their channels innermost and outermost.
bool has_one_pixel(const TensorType& type) {
  const Dims dims = type.dims();
  return is_innermost(type) && dims.size() > 2 && product(dims, 2, dims.size()) == 1;
}

/// An output, or what a change of layout that moves nothing makes it of.
ValueId output_before_layout(const Graph& body, ValueId output) {
  const NodeId producer = body.value(output).producer;
  if (body.node(producer).op != Op::to_layout || !has_one_pixel(body.type(output))) return output;
  const ValueId source = body.node(producer).inputs[0];
  return has_one_pixel(body.type(source)) ? source : output;
}

/// The dims of the result, which must lie as those of `groups` that are left.
std::string read_result(const TensorType& result, const CudaGroups& groups, bool keeps, CudaGroups& after) {
  const bool is_image = !groups.order.empty();
  const bool drops_pixels = !keeps && groups.first <= 1 && groups.last + 1 == groups.dims.size();
  const bool follows = is_image ? is_channels_last(result) || drops_pixels : result.layout.channel_block == 0;
  if (!follows && !has_one_pixel(result)) return "its result lies otherwise than what is read";
  after = ordered(result.dims(), keeps ? groups.order : dense_order);
  after.first = groups.first;
  after.last = keeps ? groups.last : groups.first;
  after.divides_columns = true;
  return "";
}

/// The reduction that an output is made of; no_node where there is none, or another.
NodeId reduction_of(const Graph& body, ValueId id) {
  const NodeId producer = body.value(id).producer;
  if (producer == no_node || has_trait(body.node(producer).op, OpTrait::reduction)) return producer;
  NodeId found = no_node;
  for (const ValueId input : body.node(producer).inputs) {
    const NodeId below = input == no_value ? no_node : reduction_of(body, input);
    if (below == no_node) continue;
    if (found != no_node && found != below) return no_node;
    found = below;
  }
  return found;
}

/// Adds the fold that makes an output; "" or why it is none of those before.
std::string read_fold(const Kernel& kernel, ValueId result, CudaColumnsProblem& problem) {
  const Graph& body = kernel.body;
  const NodeId id = reduction_of(body, result);
  const Node& anchor = body.node(kernel.anchor);
  if (id == no_node) return "an output is made of no reduction, or of several";
  const Node& node = body.node(id);
  if (node.op != anchor.op) return "its folds differ";
  const Dims& axes = node.attributes.integers("axes");
  const TensorType& type = body.type(node.inputs[0]);
  if (axes != anchor.attributes.integers("axes") || type.dims() != body.type(anchor.inputs[0]).dims() ||
      type.layout != body.type(anchor.inputs[0]).layout)
    return "its folds differ";
  CudaColumnFold fold;
  fold.out = body.type(result).dtype;
  if (!is_float_storage(fold.out)) return "its result is no float";
  const ValueId output = output_before_layout(body, result);
  if (body.type(output).dims() != body.type(node.outputs.at(0)).dims())
    return "its epilogue changes the shape";
  CudaGroups groups, after;
  std::vector<CudaOperand> operands;
  const std::string number = problem.folds.empty() ? "" : fmt::format("{}", problem.folds.size());
  std::string refusal = read_extents(type, axes, kernel.open != nullptr, groups, problem);
  problem.has_open_rows = are_open(kernel, node.inputs[0], groups, groups.first, groups.last);
  if (refusal.empty() && are_open(kernel, node.inputs[0], groups, groups.last, groups.dims.size()))
    refusal = "its columns are open";
  if (refusal.empty())
    refusal = read_result(body.type(output), groups, node.attributes.integer("keepdims") != 0, after);
  if (refusal.empty())
    refusal = read_work(body, no_value, node.inputs[0], groups, "prologue" + number, false, fold.prologue,
                        operands, kernel.open.get());
  if (refusal.empty() && problem.has_open_rows) refusal = follow_rows(problem.batch, problem.rows, operands);
  if (refusal.empty())
    refusal = read_work(body, node.outputs[0], output, after, "epilogue" + number, fold.out != DType::f32,
                        fold.epilogue, fold.epilogue_operands, kernel.open.get());
  if (!refusal.empty()) return refusal;
  rename_counts("prologue" + number, fold.prologue);
  rename_counts("epilogue" + number, fold.epilogue);
  share_operands(std::move(operands), fold.prologue, problem.prologue_operands);
  for (CudaOperand& operand : fold.epilogue_operands) operand.of.name += "_after" + number;
  for (PointwiseOperand& of : fold.epilogue.operands) of.name += "_after" + number;
  problem.folds.push_back(std::move(fold));
  return "";
}

}  // namespace

Reading<CudaColumnsProblem> read_cuda_columns(const Kernel& kernel) {
  constexpr std::size_t most_folds = 2;
  if (kernel.kind != KernelClass::reduction) return {{}, "it is no reduction"};
  const Graph& body = kernel.body;
  const Node& node = body.node(kernel.anchor);
  const auto* fold = std::find_if(std::begin(column_folds), std::end(column_folds),
                                  [&](const ColumnFold& f) { return f.op == node.op; });
  if (fold == std::end(column_folds)) return {{}, "it folds by another operation"};
  if (body.outputs.size() > most_folds) return {{}, "it has many outputs"};
  if (node.attributes.integers("axes").empty()) return {{}, "it folds nothing"};
  CudaColumnsProblem problem;
  problem.fold = fold->text;
  problem.identity = fold->identity;
  problem.first_out_argument = static_cast<int>(body.inputs.size());
  for (const ValueId output : body.outputs)
    if (std::string refusal = read_fold(kernel, output, problem); !refusal.empty()) return {problem, refusal};
  if (problem.batch * strips_of(problem, 1) * 8 > most_blocks_of_grid)
    return {problem, "the grid would be large"};
  return {problem, ""};
}

std::string CudaColumnsChoice::to_string() const {
  return fmt::format("lanes {} deep {} unroll {} cluster {}{}", lanes, deep, unroll, cluster,
                     streams ? " streams" : "");
}

std::vector<CudaColumnsChoice> cuda_columns_choices(const CudaColumnsProblem& problem, int most_blocks) {
  constexpr std::size_t most_choices = 40;
  std::vector<Rated<CudaColumnsChoice>> rated;
  const std::int64_t vector = vector_of(problem);
  const auto column_folds = static_cast<std::int64_t>(problem.folds.size());
  const bool is_large = problem.batch * problem.rows * problem.columns * 16 / vector > l2_bytes;
  for (const int lanes : {8, 16, 32}) {
    for (const int deep : {8, 16, 32, 64}) {
      for (const int unroll : {4, 8, 16}) {
        for (const int cluster : {1, 2, 4, 8}) {
          const int threads = lanes * deep;
          // What is under way fills half of the registers.
          const bool fits =
              threads * unroll <= 8192 && std::int64_t{threads} * unroll * vector * column_folds <= 32768;
          if (cluster > most_blocks || threads < 128 || threads > 1024 || !fits ||
              std::int64_t{lanes} * vector % cluster != 0)
            continue;
          // One block of 512 threads for each multiprocessor, lines of 128 bytes, and all loads of a thread
          // used.
          const auto blocks = static_cast<double>(problem.batch * strips_of(problem, lanes) * cluster);
          const double penalty = 4 * std::abs(std::log2(blocks / 128)) + (lanes == 8 ? 0 : 1) +
                                 std::abs(std::log2(threads / 512.)) + std::log2(16. / unroll) +
                                 (std::int64_t{unroll} * cluster * deep <= problem.rows ? 0 : 8);
          for (const bool streams : {false, true})
            rated.emplace_back(penalty + (streams == is_large ? 0 : 0.5),
                               CudaColumnsChoice{lanes, deep, unroll, cluster, streams});
        }
      }
    }
  }
  return best_first(std::move(rated), most_choices);
}

namespace {

/// What each fold takes of a row, and what each makes of its result.
std::string functions_text(const CudaColumnsProblem& problem, int vector, bool streams) {
  std::string functions, loads, prologues, finish;
  for (const CudaOperand& operand : problem.prologue_operands)
    loads += load_text(operand, vector, streams ? "true" : "false");
  for (std::size_t f = 0; f < problem.folds.size(); ++f) {
    const CudaColumnFold& fold = problem.folds[f];
    const std::string number = f == 0 ? "" : fmt::format("{}", f);
    functions += fold.prologue.function + fold.epilogue.function;
    prologues += fmt::format("  for (int j = 0; j < VECTOR; j++) x[{}][j] = {};\n", f,
                             call_text(fold.prologue, "prologue" + number, "0.f"));
    std::string after;
    for (const CudaOperand& operand : fold.epilogue_operands) after += load_text(operand, 1, "false");
    finish +=
        fmt::format("  if (number == {}) {{\n{}  store_one(a.out{} + batch * COLUMNS + column, {});\n  }}\n",
                    f, after, number, call_text(fold.epilogue, "epilogue" + number, "x"));
  }
  return functions +
         fmt::format(
             "DEVICE void load_x(const Arguments& a, long long batch, long long row, int column, float "
             "(&x)[FOLDS][VECTOR]) {{\n  [[maybe_unused]] const Extents e = extents_of(a);\n{}{}}}\n"
             "DEVICE void finish(const Arguments& a, int number, long long batch, int column, float x) {{\n"
             "  [[maybe_unused]] constexpr int VECTOR = 1, j = 0;\n"
             "  [[maybe_unused]] const Extents e = extents_of(a);\n{}}}\n",
             loads, prologues, finish);
}

std::vector<CudaExtent> extents_of(const CudaColumnsProblem& problem) {
  std::vector<CudaExtent> extents = {{"rows", problem.rows, problem.has_open_rows}};
  for (const CudaColumnFold& fold : problem.folds)
    for (const PointwiseText* text : {&fold.prologue, &fold.epilogue})
      for (const PointwiseCount& count : text->counts) extents.push_back({count.name, count.extent, true});
  return extents;
}

}  // namespace

CudaTemplate make_cuda_columns(const CudaColumnsProblem& problem, const CudaColumnsChoice& choice) {
  const auto vector = static_cast<int>(vector_of(problem));
  const std::int64_t strips = strips_of(problem, choice.lanes);
  const DType out = problem.folds.front().out;
  CudaTemplate result;
  LaunchSpec& launch = result.launch;
  launch.entry = entry_name(fmt::format("columns_{}", dtype_name(out)), problem.has_open_rows,
                            {problem.rows, problem.columns});
  result.source.text = fmt::format("#define KERNEL {}\n#define IDENTITY {}\n{}{}{}{}", launch.entry,
                                   problem.identity, embedded::cuda_card, embedded::cuda_hopper,
                                   embedded::cuda_pointwise, embedded::cuda_vector);
  result.source.text += fmt::format(
      "constexpr int COLUMNS = {}, STRIPS = {}, FOLDS = {}, VECTOR = {}, LANES = {}, DEEP = {}, "
      "UNROLL "
      "= {}, CLUSTER = {};\ntypedef {} Out;\nDEVICE float fold(float a, float b) {{\n  return {};\n}}\n",
      problem.columns, strips, problem.folds.size(), vector, choice.lanes, choice.deep, choice.unroll,
      choice.cluster, dtype_name(out), problem.fold);
  std::vector<const CudaOperand*> operands;
  std::vector<DType> further;
  operands.reserve(problem.prologue_operands.size());
  for (const CudaOperand& operand : problem.prologue_operands) operands.push_back(&operand);
  for (const CudaColumnFold& fold : problem.folds) {
    if (&fold != &problem.folds.front()) further.push_back(fold.out);
    for (const CudaOperand& operand : fold.epilogue_operands) operands.push_back(&operand);
  }
  const std::vector<CudaExtent> extents = extents_of(problem);
  result.source.text +=
      arguments_text(operands, extents, further) + functions_text(problem, vector, choice.streams);
  result.source.text += embedded::cuda_columns;
  launch.shape.grid[0] = static_cast<unsigned>(problem.batch * strips * choice.cluster);
  launch.shape.block[0] = static_cast<unsigned>(choice.lanes * choice.deep);
  launch.shape.cluster = static_cast<unsigned>(choice.cluster);
  launch.shape.programmatic = true;
  pass_arguments(launch, problem.first_out_argument, operands, extents, further.size());
  return result;
}

}  // namespace sylvite
