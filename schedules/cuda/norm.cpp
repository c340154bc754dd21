#include "schedules/cuda/norm.h"

#include <algorithm>
#include <bit>

#include "base/error.h"
#include "base/rounding.h"
#include "frontend/ops/op_table.h"
#include "schedules/cuda/rated.h"
#include "schedules/cuda/sources.h"

namespace sylvite {
namespace {

constexpr std::int64_t most_norm_rows = 1LL << 31;  // blocks of a grid

struct Normalization {
  Op op;
  const char* function;  ///< of schedules/cuda/norm.cuh
  const char* outside;   ///< what columns beyond the row count as
};
constexpr Normalization normalizations[] = {
    {Op::layer_norm, "layer_norm", "0.f"},
    {Op::rms_norm, "rms_norm", "0.f"},
    {Op::softmax, "softmax", "__int_as_float(0xff800000)"},
    {Op::log_softmax, "log_softmax", "__int_as_float(0xff800000)"},
    {Op::cumsum, "cumsum", "0.f"},
};
constexpr Normalization no_normalization = {Op::add, "keep", "0.f"};

const Normalization* find_normalization(Op op) {
  const auto* found = std::find_if(std::begin(normalizations), std::end(normalizations),
                                   [&](const Normalization& row) { return row.op == op; });
  return found == std::end(normalizations) ? nullptr : found;
}

/// A vector along the columns that is an input.
std::string read_vector(const Graph& body, ValueId id, const std::string& name, CudaOperand& operand) {
  const auto found = std::find(body.inputs.begin(), body.inputs.end(), id);
  if (found == body.inputs.end()) return fmt::format("its {} is computed", name);
  if (body.type(id).rank() != 1) return fmt::format("its {} is no vector", name);
  if (!is_float_storage(body.type(id).dtype)) return fmt::format("its {} is no float", name);
  operand.of = {static_cast<int>(found - body.inputs.begin()), body.type(id).dtype, name, {1}};
  operand.column = body.type(id).dims()[0] == 1 ? 0 : 1;
  return "";
}

/// Scale, shift and epsilon of a norm, as far as the node has them.
std::string read_weights(const Graph& body, const Node& node, CudaNormProblem& problem) {
  if (node.op != Op::layer_norm && node.op != Op::rms_norm) return "";
  problem.epsilon = node.attributes.real("epsilon");
  const auto has = [&](std::size_t i) { return node.inputs.size() > i && node.inputs[i] != no_value; };
  std::string refusal;
  if (has(1)) refusal = read_vector(body, node.inputs[1], "scale", problem.scale);
  if (refusal.empty() && has(2)) refusal = read_vector(body, node.inputs[2], "shift", problem.shift);
  return refusal;
}

/// Rows that a template for open columns holds: as long as the next power of two, as those far from it have others.
std::int64_t held_columns(const CudaNormProblem& problem) {
  constexpr std::int64_t least = 128;
  return problem.has_open_columns
             ? std::max(least,
                        static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(problem.columns))))
             : problem.columns;
}

/// Everything that is read, in the order of the arguments.
std::vector<const CudaOperand*> all_operands(const CudaNormProblem& problem) {
  std::vector<const CudaOperand*> all = operands_in({&problem.prologue_operands, &problem.epilogue_operands});
  for (const CudaOperand* operand : {&problem.scale, &problem.shift})
    if (operand->of.input >= 0) all.push_back(operand);
  return all;
}

/// The loads of the prologue and its work.
std::string prologue_text(const CudaNormProblem& problem, int vector) {
  std::string loads;
  for (const CudaOperand& operand : problem.prologue_operands)
    loads += load_text(operand, vector, "STREAM_LOADS");
  return fmt::format(
      "DEVICE void load_x(const Arguments& a, long long row, int column, float (&x)[VECTOR]) {{\n"
      "  const Extents e = extents_of(a);\n{}  for (int j = 0; j < VECTOR; j++) x[j] = {};\n}}\n",
      loads, call_text(problem.prologue, "prologue", "0.f"));
}

std::string functions_text(const CudaNormProblem& problem, int vector) {
  std::string finish, scaled = "x[j]";
  for (const CudaOperand& operand : problem.epilogue_operands)
    finish += load_text(operand, vector, "STREAM_LOADS");
  for (const CudaOperand* operand : {&problem.scale, &problem.shift}) {
    if (operand->of.input < 0) continue;
    finish += load_text(*operand, vector, "STREAM_LOADS");
    scaled = operand == &problem.scale ? "x[j] * v_scale[j]" : fmt::format("({}) + v_shift[j]", scaled);
  }
  return problem.prologue.function + problem.epilogue.function + prologue_text(problem, vector) +
         fmt::format(
             "DEVICE void finish(const Arguments& a, long long row, int column, float (&x)[VECTOR]) {{\n"
             "  const Extents e = extents_of(a);\n{}  for (int j = 0; j < VECTOR; j++) x[j] = {};\n"
             "  store_vector<STREAM_STORES>(a.out + row * e.columns + column, x);\n}}\n",
             finish, call_text(problem.epilogue, "epilogue", scaled));
}

/// Rows of a warp lie apart: each must still be read whole or in long pieces, and there must be many.
bool shares_warps_well(const CudaNormProblem& problem, int threads) {
  constexpr std::int64_t least_bytes = 64, least_threads_in_all = 1 << 16;
  const auto size = static_cast<std::int64_t>(dtype_size(problem.out));
  return size * threads * vector_of(problem) >= std::min(least_bytes, size * problem.columns) &&
         problem.rows * threads >= least_threads_in_all;
}

int least_norm_threads(const CudaNormProblem& problem) {
  int threads = 4;
  while (threads < 32 && !shares_warps_well(problem, threads)) threads *= 2;
  return threads;
}

}  // namespace

bool has_fixed_rows(const Kernel& kernel, ValueId value) {
  if (!kernel.open) return true;
  const Shape& shape = kernel.open->type(value).shape;
  return shape.size() < 3 ||
         std::all_of(
             shape.begin() + 1, shape.end() - 1, [](const Extent& extent) { return extent.is_known(); });
}

bool has_open_columns(const Kernel& kernel, ValueId value) {
  return kernel.open && !kernel.open->type(value).shape.back().is_known();
}

Reading<CudaNormProblem> read_cuda_norm(const Kernel& kernel) {
  const Graph& body = kernel.body;
  if (kernel.kind != KernelClass::normalization && kernel.kind != KernelClass::scan &&
      kernel.kind != KernelClass::pointwise)
    return {{}, "it is neither a normalisation nor pointwise"};
  if (body.outputs.size() != 1) return {{}, "it has several outputs"};
  const bool is_pointwise = kernel.kind == KernelClass::pointwise;
  const Node* node = is_pointwise ? nullptr : &body.node(kernel.anchor);
  const Normalization* row = is_pointwise ? &no_normalization : find_normalization(node->op);
  if (row == nullptr) return {{}, "it is no norm of rows or softmax"};
  if (!is_pointwise && node->attributes.has("groups")) return {{}, "groups are normalised"};
  const ValueId value = is_pointwise ? body.outputs[0] : node->outputs.at(0);
  const TensorType& type = body.type(value);
  if (type.rank() == 0 || type.layout.channel_block != 0 ||
      (!is_pointwise && node->attributes.integer("axis") != type.rank() - 1))
    return {{}, "not the innermost dim alone is normalised"};
  if (body.type(body.outputs[0]).dims() != type.dims()) return {{}, "its epilogue changes the shape"};
  if (type.element_count() == 0) return {{}, "it is empty"};
  CudaNormProblem problem;
  problem.is_open = kernel.open != nullptr;
  problem.has_open_columns = has_open_columns(kernel, value);
  problem.function = row->function;
  problem.outside = row->outside;
  problem.columns = type.dims().back();
  problem.rows = type.element_count() / problem.columns;
  if (problem.rows >= most_norm_rows) return {{}, "there are too many rows for a grid"};
  problem.out = body.type(body.outputs[0]).dtype;
  problem.out_argument = static_cast<int>(body.inputs.size());
  problem.scale.of.input = problem.shift.of.input = -1;
  problem.is_exclusive = row->op == Op::cumsum && node->attributes.integer("exclusive") != 0;
  problem.is_reverse = row->op == Op::cumsum && node->attributes.integer("reverse") != 0;
  std::string refusal = is_float_storage(problem.out) ? "" : "its result is no float";
  const bool narrow = problem.out != DType::f32;
  CudaGroups groups = {type.dims(), 0, type.dims().size() - 1};
  groups.divides_rows = !is_pointwise && has_fixed_rows(kernel, value);
  if (refusal.empty())
    refusal = read_work(body, no_value, is_pointwise ? value : node->inputs[0], groups, "prologue",
                        is_pointwise && narrow, problem.prologue, problem.prologue_operands);
  if (refusal.empty())
    refusal = read_work(body, value, body.outputs[0], groups, "epilogue", narrow, problem.epilogue,
                        problem.epilogue_operands);
  if (refusal.empty() && !is_pointwise) refusal = read_weights(body, *node, problem);
  for (std::vector<CudaOperand>* operands : {&problem.prologue_operands, &problem.epilogue_operands})
    if (refusal.empty() && problem.has_open_columns) refusal = follow_columns(problem.columns, *operands);
  for (CudaOperand& operand : problem.epilogue_operands) operand.of.name += "_after";
  for (PointwiseOperand& of : problem.epilogue.operands) of.name += "_after";
  if (refusal.empty() && cuda_norm_choices(problem).empty()) refusal = "its rows do not fit into registers";
  return {problem, refusal};
}

int vector_of(const CudaNormProblem& problem) {
  int vector = problem.out == DType::f32 ? 4 : 8;
  while (!problem.has_open_columns && problem.columns % vector != 0) vector /= 2;
  return vector;
}

std::string held_text(std::int64_t columns, int threads, int vector, bool is_open) {
  const std::int64_t of_item = std::int64_t{threads} * vector;
  return fmt::format("constexpr int VECTOR = {}, ITEMS = {};\nconstexpr bool EXACT = {};\n", vector,
                     ceil_div(columns, of_item), !is_open && columns % of_item == 0);
}

std::vector<CudaNormChoice> choices_of(const HeldRows& held_rows) {
  constexpr int most_threads = 1024;  // of a block
  const int vector = held_rows.vector, least = held_rows.least_threads;
  std::vector<Rated<CudaNormChoice>> rated;
  for (int threads = least; threads <= most_threads; threads *= 2) {
    const std::int64_t items = ceil_div(held_rows.columns, std::int64_t{threads} * vector);
    const std::int64_t held = items * vector * held_rows.operands;
    const bool is_idle = threads > least && threads * vector / 2 >= held_rows.columns;
    if (held > held_rows.most_held || is_idle) continue;
    // Few values wait on sums of many warps; many take registers from other blocks.
    const std::int64_t well_held = held_rows.well_held;
    const std::int64_t wanted = std::abs(held - well_held) + (held > well_held ? well_held : 0);
    for (const bool streams : {false, true}) {
      for (int rows = 1; rows <= held_rows.most_rows; rows *= 2) {
        const int block = threads * rows;
        if (block < 128 || block > 512) continue;
        const std::int64_t penalty = 2 * (8 * wanted + block / 256) + (streams ? 1 : 0);
        rated.emplace_back(static_cast<double>(penalty), CudaNormChoice{threads, rows, streams});
      }
    }
  }
  const std::size_t all = rated.size();
  return best_first(std::move(rated), all);
}

std::vector<CudaNormChoice> cuda_norm_choices(const CudaNormProblem& problem) {
  const HeldRows rows{.columns = held_columns(problem),
                      .vector = vector_of(problem),
                      .least_threads = least_norm_threads(problem),
                      .most_rows = 64,
                      .well_held = problem.function == no_normalization.function ? 16 : 32,
                      .most_held = 64};
  std::vector<CudaNormChoice> choices = choices_of(rows);
  if (problem.has_open_columns)
    for (CudaNormChoice& choice : choices)
      choice.items = static_cast<int>(ceil_div(rows.columns, std::int64_t{choice.threads} * rows.vector));
  return choices;
}

std::string CudaNormChoice::to_string() const {
  return fmt::format("threads {} rows {}{}{}", threads, rows, streams ? " streams" : "",
                     items > 0 ? fmt::format(" items {}", items) : "");
}

namespace {

/// Columns that a row may have.
std::int64_t most_norm_columns(const CudaNormProblem& problem, const CudaNormChoice& choice) {
  return problem.has_open_columns ? std::int64_t{choice.items} * choice.threads * vector_of(problem)
                                  : problem.columns;
}

/// All of a row's work for threads that take `vector` columns together.
std::string rows_text(const CudaNormProblem& problem, const CudaNormChoice& choice, int vector) {
  std::string text =
      held_text(most_norm_columns(problem, choice), choice.threads, vector, problem.has_open_columns);
  text += functions_text(problem, vector);
  text += embedded::cuda_rows;
  text += embedded::cuda_norm;
  return text;
}

}  // namespace

std::string rows_kernel_text(bool has_open_columns, int vector,
                             const std::function<std::string(int)>& text_of) {
  std::string text, call = "run_rows(arguments);";
  if (has_open_columns) {
    text = fmt::format("namespace of_vectors {{\n{}}}\nnamespace of_numbers {{\n{}}}\n", text_of(vector),
                       text_of(1));
    call = fmt::format(
        "if (extents_of(arguments).columns % {} == 0) of_vectors::run_rows(arguments);\n"
        "  else of_numbers::run_rows(arguments);",
        vector);
  } else {
    text = text_of(vector);
  }
  return text + fmt::format(
                    "extern \"C\" __global__ void __launch_bounds__(THREADS * ROWS_OF_BLOCK) KERNEL(const "
                    "Arguments arguments) {{\n  allow_next_kernel();\n  wait_previous_kernels();\n  {}\n}}\n",
                    call);
}

CudaTemplate make_cuda_norm(const CudaNormProblem& problem, const CudaNormChoice& choice) {
  if (const std::int64_t most = most_norm_columns(problem, choice); most < problem.columns)
    throw UnsupportedError("rows of {} columns are longer than the {} that threads hold", problem.columns,
                           most);
  CudaTemplate result;
  LaunchSpec& launch = result.launch;
  launch.entry = entry_name(fmt::format("{}_{}", problem.function, dtype_name(problem.out)), problem.is_open,
                            {problem.rows, problem.columns});
  const std::vector<CudaExtent> extents = {{"rows", problem.rows, problem.is_open},
                                           {"columns", problem.columns, problem.has_open_columns}};
  result.source.text = fmt::format("#define KERNEL {}\n#define NORMALIZE {}\n#define OUTSIDE {}\n{}{}{}",
                                   launch.entry, problem.function, problem.outside, embedded::cuda_card,
                                   embedded::cuda_pointwise, embedded::cuda_vector);
  result.source.text += fmt::format(
      "constexpr int THREADS = {}, ROWS_OF_BLOCK = {};\n"
      "constexpr bool STREAM_LOADS = {}, STREAM_STORES = STREAM_LOADS, EXCLUSIVE = {}, REVERSE = {};\n"
      "constexpr float EPSILON = {:a}f;\n"
      "typedef {} Out;\n",
      choice.threads, choice.rows, choice.streams, problem.is_exclusive, problem.is_reverse,
      static_cast<float>(problem.epsilon), dtype_name(problem.out));
  const std::vector<const CudaOperand*> operands = all_operands(problem);
  result.source.text += arguments_text(operands, extents) +
                        rows_kernel_text(problem.has_open_columns, vector_of(problem),
                                         [&](int vector) { return rows_text(problem, choice, vector); });
  launch.shape.set_blocks(BlockCount(problem.rows).in_parts_of(choice.rows));
  launch.shape.block[0] = static_cast<unsigned>(choice.threads * choice.rows);
  launch.shape.programmatic = true;
  pass_arguments(launch, problem.out_argument, operands, extents);
  return result;
}

}  // namespace sylvite
