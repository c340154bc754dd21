#include "schedules/cuda/softmax_columns.h"

#include <cmath>

#include "base/error.h"
#include "base/rounding.h"
#include "frontend/ops/op_table.h"
#include "lowering/plan/run_extents.h"
#include "schedules/cuda/card_limits.h"
#include "schedules/cuda/rated.h"
#include "schedules/cuda/sources.h"

namespace sylvite {
namespace {

constexpr std::int64_t most_columns = 1LL << 30;  // numbered by int
constexpr int least_softmax_threads = 128;
constexpr int least_lanes = 8;  // vectors side by side in a block

std::int64_t vectors_of(const CudaSoftmaxColumnsProblem& problem, std::int64_t vector) {
  return problem.batches * (problem.columns / vector);
}

/// Functions of schedules/cuda/softmax_columns.cuh, and what rows behind the last count as.
struct Function {
  Op op;
  const char* name;
  const char* outside;
};
constexpr Function functions[] = {
    {Op::softmax, "softmax", "__int_as_float(0xff800000)"},
    {Op::log_softmax, "log_softmax", "__int_as_float(0xff800000)"},
    {Op::cumsum, "cumsum", "0.f"},
};

std::string read_columns(const Kernel& kernel, CudaSoftmaxColumnsProblem& problem) {
  const Graph& body = kernel.body;
  const Node& node = body.node(kernel.anchor);
  const ValueId in = node.inputs[0], made = node.outputs[0], out = body.outputs[0];
  const TensorType& type = body.type(made);
  if (type.layout.channel_block != 0 || body.type(out).layout.channel_block != 0)
    return "channels lie in blocks";
  if (body.type(out).dims() != type.dims()) return "its epilogue changes the shape";
  const Dims dims = type.dims();
  const auto axis = static_cast<std::size_t>(node.attributes.integer("axis"));
  problem.batches = product(dims, 0, axis);
  problem.rows = dims[axis];
  problem.columns = product(dims, axis + 1, dims.size());
  if (problem.columns == 1) return "its rows lie beside each other";
  CudaGroups groups = {dims, axis, axis + 1};
  groups.divides_columns = true;
  std::string refusal =
      read_work(body, no_value, in, groups, "prologue", false, problem.prologue, problem.prologue_operands);
  if (refusal.empty())
    refusal = read_work(body, made, out, groups, "epilogue", problem.out != DType::f32, problem.epilogue,
                        problem.epilogue_operands);
  for (CudaOperand& operand : problem.epilogue_operands) operand.of.name += "_after";
  for (PointwiseOperand& of : problem.epilogue.operands) of.name += "_after";
  return refusal;
}

std::vector<CudaExtent> extents_of(const CudaSoftmaxColumnsProblem& problem) {
  return {{"batches", problem.batches, problem.is_open}};
}

std::string functions_text(const CudaSoftmaxColumnsProblem& problem, int vector) {
  std::string before, after;
  for (const CudaOperand& operand : problem.prologue_operands)
    before += load_text(operand, vector, "STREAM_LOADS");
  for (const CudaOperand& operand : problem.epilogue_operands)
    after += load_text(operand, vector, "STREAM_LOADS");
  return problem.prologue.function + problem.epilogue.function +
         fmt::format(
             "DEVICE void load_x(const Arguments& a, long long batch, int row, int column, float "
             "(&x)[VECTOR]) {{\n{}  for (int j = 0; j < VECTOR; j++) x[j] = {};\n}}\n"
             "DEVICE void finish(const Arguments& a, long long batch, int row, int column, float "
             "(&x)[VECTOR]) {{\n{}  for (int j = 0; j < VECTOR; j++) x[j] = {};\n"
             "  store_vector<STREAM_STORES>(a.out + (batch * ROWS + row) * COLUMNS + column, x);\n}}\n",
             before, call_text(problem.prologue, "prologue", "0.f"), after,
             call_text(problem.epilogue, "epilogue", "x[j]"));
}

}  // namespace

Reading<CudaSoftmaxColumnsProblem> read_cuda_softmax_columns(const Kernel& kernel) {
  if (kernel.kind != KernelClass::normalization && kernel.kind != KernelClass::scan)
    return {{}, "it is no normalisation"};
  const Graph& body = kernel.body;
  const Node& node = body.node(kernel.anchor);
  const auto* function = std::ranges::find(functions, node.op, &Function::op);
  if (function == std::end(functions)) return {{}, "it is no softmax and no running sum"};
  if (body.outputs.size() != 1) return {{}, "it has several outputs"};
  CudaSoftmaxColumnsProblem problem;
  problem.function = function->name;
  problem.is_exclusive = node.op == Op::cumsum && node.attributes.integer("exclusive") != 0;
  problem.is_reverse = node.op == Op::cumsum && node.attributes.integer("reverse") != 0;
  problem.out = body.type(body.outputs[0]).dtype;
  problem.is_open = kernel.open != nullptr;
  problem.out_argument = static_cast<int>(body.inputs.size());
  if (!is_float_storage(problem.out)) return {problem, "its result is no float"};
  if (body.type(node.inputs[0]).element_count() == 0) return {problem, "it is empty"};
  if (std::string refusal = read_columns(kernel, problem); !refusal.empty()) return {problem, refusal};
  if (problem.columns > most_columns || vectors_of(problem, 1) / least_lanes > most_blocks_of_grid)
    return {problem, "there are too many columns"};
  if (cuda_softmax_columns_choices(problem).empty())
    return {problem, "the rows of a column do not fit into a block's registers"};
  return {problem, ""};
}

std::string CudaSoftmaxColumnsChoice::to_string() const {
  return fmt::format("vector {} parts {} threads {}{}", vector, parts, threads, streams ? " streams" : "");
}

std::vector<CudaSoftmaxColumnsChoice> cuda_softmax_columns_choices(const CudaSoftmaxColumnsProblem& problem) {
  constexpr std::int64_t most_held = 128;     // numbers of a thread, each a register
  constexpr double line = 128, warp = 32;     // bytes, threads
  constexpr double wanted_threads = 1 << 16;  // what keeps a card busy
  constexpr double meeting = 0.25;
  constexpr std::size_t most_choices = 12;
  std::vector<Rated<CudaSoftmaxColumnsChoice>> rated;
  for (const int vector : {1, 2, 4, 8}) {
    for (const int parts : {1, 2, 4, 8, 16, 32}) {
      const std::int64_t own = ceil_div(problem.rows, std::int64_t{parts}), held = vector * own;
      const bool has_idle = parts > 1 && own * (parts - 1) >= problem.rows;
      if (problem.columns % vector != 0 || held > most_held || has_idle) continue;
      const auto threads = static_cast<double>(vectors_of(problem, vector) * parts);
      for (const int block : {128, 256, 512}) {
        const int lanes = block / parts;
        const bool is_wide = block > 2 * least_softmax_threads;  // whose threads have half as many registers
        if (lanes < least_lanes || (is_wide && (parts == 1 || 2 * held > most_held))) continue;
        const double bytes =
            std::min<double>(warp, lanes) * vector * static_cast<double>(dtype_size(problem.out));
        const double penalty = std::max(0., std::log2(line / bytes)) +
                               std::max(0., std::log2(wanted_threads / threads)) +
                               static_cast<double>(held) / most_held + meeting * std::log2(parts);
        for (const bool streams : {false, true})
          rated.emplace_back(penalty + 0.02 * (block / least_softmax_threads - 1) + (streams ? 0.01 : 0),
                             CudaSoftmaxColumnsChoice{vector, parts, block, streams});
      }
    }
  }
  return best_first(std::move(rated), most_choices);
}

CudaTemplate make_cuda_softmax_columns(const CudaSoftmaxColumnsProblem& problem,
                                       const CudaSoftmaxColumnsChoice& choice) {
  CudaTemplate result;
  LaunchSpec& launch = result.launch;
  launch.entry = entry_name(fmt::format("{}_columns_{}", problem.function, dtype_name(problem.out)),
                            problem.is_open, {problem.batches, problem.rows, problem.columns});
  const std::vector<CudaExtent> extents = extents_of(problem);
  const std::vector<const CudaOperand*> operands =
      operands_in({&problem.prologue_operands, &problem.epilogue_operands});
  result.source.text = fmt::format("#define KERNEL {}\n{}{}{}", launch.entry, embedded::cuda_card,
                                   embedded::cuda_pointwise, embedded::cuda_vector);
  result.source.text += fmt::format(
      "#define NORMALIZE {}\n#define OUTSIDE {}\n"
      "constexpr int ROWS = {}, COLUMNS = {}, VECTOR = {}, THREADS = {}, PARTS = {};\n"
      "constexpr bool EXCLUSIVE = {}, REVERSE = {};\n"
      "constexpr bool STREAM_LOADS = {}, STREAM_STORES = STREAM_LOADS;\ntypedef {} Out;\n",
      problem.function, std::ranges::find(functions, problem.function, &Function::name)->outside,
      problem.rows, problem.columns, choice.vector, choice.threads, choice.parts, problem.is_exclusive,
      problem.is_reverse, choice.streams, dtype_name(problem.out));
  result.source.text += arguments_text(operands, extents) + functions_text(problem, choice.vector);
  result.source.text += embedded::cuda_softmax_columns;
  launch.shape.set_blocks(
      BlockCount(vectors_of(problem, choice.vector)).in_parts_of(choice.threads / choice.parts));
  launch.shape.block[0] = static_cast<unsigned>(choice.threads);
  launch.shape.programmatic = true;
  pass_arguments(launch, problem.out_argument, operands, extents);
  return result;
}

}  // namespace sylvite
