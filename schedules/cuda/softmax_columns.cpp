#include "schedules/cuda/softmax_columns.h"

#include <cmath>

#include "base/error.h"
#include "base/rounding.h"
#include "frontend/ops/op_table.h"
#include "lowering/plan/run_extents.h"
#include "schedules/cuda/rated.h"
#include "schedules/cuda/sources.h"

namespace sylvite {
namespace {

constexpr std::int64_t most_blocks = (1LL << 31) - 1;
constexpr std::int64_t most_columns = 1LL << 30;  // numbered by int
constexpr int least_threads = 128;

std::int64_t threads_of(const CudaSoftmaxColumnsProblem& problem, std::int64_t vector) {
  return problem.batches * (problem.columns / vector);
}

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
  if (kernel.kind != KernelClass::normalization) return {{}, "it is no normalisation"};
  const Graph& body = kernel.body;
  const Node& node = body.node(kernel.anchor);
  if (node.op != Op::softmax && node.op != Op::log_softmax) return {{}, "it is no softmax"};
  if (body.outputs.size() != 1) return {{}, "it has several outputs"};
  CudaSoftmaxColumnsProblem problem;
  problem.is_logarithm = node.op == Op::log_softmax;
  problem.out = body.type(body.outputs[0]).dtype;
  problem.is_open = kernel.open != nullptr;
  problem.out_argument = static_cast<int>(body.inputs.size());
  if (!is_float_storage(problem.out)) return {problem, "its result is no float"};
  if (body.type(node.inputs[0]).element_count() == 0) return {problem, "it is empty"};
  if (std::string refusal = read_columns(kernel, problem); !refusal.empty()) return {problem, refusal};
  if (problem.columns > most_columns || threads_of(problem, 1) / least_threads > most_blocks)
    return {problem, "there are too many columns"};
  if (cuda_softmax_columns_choices(problem).empty())
    return {problem, "the rows of a column do not fit into a thread's registers"};
  return {problem, ""};
}

std::string CudaSoftmaxColumnsChoice::to_string() const {
  return fmt::format("vector {} threads {}{}", vector, threads, streams ? " streams" : "");
}

std::vector<CudaSoftmaxColumnsChoice> cuda_softmax_columns_choices(const CudaSoftmaxColumnsProblem& problem) {
  constexpr std::int64_t most_held = 128;     // numbers of a thread, each a register
  constexpr double line = 128, warp = 32;     // bytes, threads
  constexpr double wanted_threads = 1 << 16;  // what keeps a card busy
  constexpr std::size_t most_choices = 12;
  std::vector<Rated<CudaSoftmaxColumnsChoice>> rated;
  for (const int vector : {1, 2, 4, 8}) {
    const std::int64_t held = vector * problem.rows;
    if (problem.columns % vector != 0 || held > most_held) continue;
    const double bytes = warp * vector * static_cast<double>(dtype_size(problem.out));
    const auto threads = static_cast<double>(threads_of(problem, vector));
    const double penalty = std::max(0., std::log2(line / bytes)) +
                           std::max(0., std::log2(wanted_threads / threads)) +
                           static_cast<double>(held) / most_held;
    for (const int block : {128, 256})
      for (const bool streams : {false, true})
        rated.emplace_back(penalty + (block > least_threads ? 0.02 : 0) + (streams ? 0.01 : 0),
                           CudaSoftmaxColumnsChoice{vector, block, streams});
  }
  return best_first(std::move(rated), most_choices);
}

CudaTemplate make_cuda_softmax_columns(const CudaSoftmaxColumnsProblem& problem,
                                       const CudaSoftmaxColumnsChoice& choice) {
  CudaTemplate result;
  LaunchSpec& launch = result.launch;
  launch.entry = entry_name(
      fmt::format("{}softmax_columns_{}", problem.is_logarithm ? "log_" : "", dtype_name(problem.out)),
      problem.is_open, {problem.batches, problem.rows, problem.columns});
  const std::vector<CudaExtent> extents = extents_of(problem);
  const std::vector<const CudaOperand*> operands =
      operands_in({&problem.prologue_operands, &problem.epilogue_operands});
  result.source.text = fmt::format("#define KERNEL {}\n{}{}{}", launch.entry, embedded::cuda_card,
                                   embedded::cuda_pointwise, embedded::cuda_vector);
  result.source.text += fmt::format(
      "constexpr int ROWS = {}, COLUMNS = {}, VECTOR = {}, THREADS = {};\n"
      "constexpr bool LOGARITHM = {}, STREAM_LOADS = {}, STREAM_STORES = STREAM_LOADS;\ntypedef {} Out;\n",
      problem.rows, problem.columns, choice.vector, choice.threads, problem.is_logarithm, choice.streams,
      dtype_name(problem.out));
  result.source.text += arguments_text(operands, extents) + functions_text(problem, choice.vector);
  result.source.text += embedded::cuda_softmax_columns;
  launch.shape.grid[0] =
      static_cast<unsigned>(ceil_div<std::int64_t>(threads_of(problem, choice.vector), choice.threads));
  launch.shape.block[0] = static_cast<unsigned>(choice.threads);
  launch.shape.programmatic = true;
  pass_arguments(launch, problem.out_argument, operands, extents);
  return result;
}

}  // namespace sylvite
