#include "schedules/cuda_norm.h"

#include <algorithm>

#include "base/error.h"
#include "schedules/cuda_sources.h"

namespace sylvite {
namespace {

using Operand = CudaNormProblem::Operand;

constexpr std::int64_t most_held = 64;         // values of a row in a thread's registers
constexpr std::int64_t well_held = 32;         // as many leave room for blocks beside each other
constexpr int most_threads = 1024;             // of a block
constexpr std::int64_t most_rows = 1LL << 31;  // blocks of a grid
constexpr std::int64_t l2_bytes = 50 << 20;    // a result that is larger is not there when it is read

/// Strides over [row, column] of something whose strides over the result's dims are given.
std::string set_strides(const Dims& dims, const PointwiseOperand& of, Operand& operand) {
  operand.of = of;
  operand.column = dims.back() == 1 ? 0 : of.strides.back();
  std::int64_t rows = 1;
  for (std::size_t i = dims.size() - 1; i-- > 0;) {
    if (dims[i] == 1) continue;
    if (rows == 1) operand.row = of.strides[i];
    if (of.strides[i] != operand.row * rows) return "an operand is broadcast over some rows";
    rows *= dims[i];
  }
  return operand.column == 0 || operand.column == 1 ? "" : "columns of an operand lie apart";
}

std::string read_work(const Graph& body, ValueId from, ValueId to, const std::string& name, bool fast,
                      PointwiseText& text, std::vector<Operand>& operands) {
  try {
    text = print_pointwise(body, from, to, name, fast);
  } catch (const UnsupportedError& error) {
    return error.what();
  }
  for (const PointwiseOperand& of : text.operands) {
    const std::string refusal = set_strides(body.type(to).dims(), of, operands.emplace_back());
    if (!refusal.empty()) return refusal;
  }
  return "";
}

/// A vector along the columns that is an input.
std::string read_vector(const Graph& body, ValueId id, const std::string& name, Operand& operand) {
  const auto found = std::find(body.inputs.begin(), body.inputs.end(), id);
  if (found == body.inputs.end()) return fmt::format("its {} is computed", name);
  if (body.type(id).rank() != 1) return fmt::format("its {} is no vector", name);
  operand.of = {static_cast<int>(found - body.inputs.begin()), body.type(id).dtype, name, {1}};
  operand.column = body.type(id).dims()[0] == 1 ? 0 : 1;
  return "";
}

bool is_float_storage(DType dtype) {
  return dtype == DType::bf16 || dtype == DType::f16 || dtype == DType::f32;
}

/// Read once: a matrix, not what all rows share.
bool passes_by(const Operand& operand) {
  return operand.column == 1 && operand.row != 0;
}

std::string load_text(const Operand& operand, int vector) {
  const bool whole = operand.column == 1 && operand.row % vector == 0;
  const std::string at = fmt::format("a.{} + {}ll * row{}", operand.of.name, operand.row,
                                     operand.column == 1 ? " + column" : "");
  const std::string name = "v_" + operand.of.name;
  if (operand.column == 0) return fmt::format("  float {}[VECTOR];\n  load_same({}, {});\n", name, at, name);
  const char* load = passes_by(operand) ? "load_vector<STREAMS>" : "load_vector<false>";
  if (whole) return fmt::format("  float {}[VECTOR];\n  {}({}, {});\n", name, load, at, name);
  return fmt::format(
      "  float {0}[VECTOR];\n  for (int j = 0; j < VECTOR; j++) {0}[j] = to_float(({1})[j]);\n", name, at);
}

std::string call_text(const PointwiseText& text, const std::string& function, const std::string& root) {
  std::string arguments = root;
  for (const PointwiseOperand& of : text.operands) arguments += fmt::format(", v_{}[j]", of.name);
  return fmt::format("{}({})", function, arguments);
}

std::string arguments_text(const std::vector<const Operand*>& read) {
  std::string text = "struct Arguments {\n  Out* out;\n";
  for (const Operand* operand : read)
    text += fmt::format("  const {}* {};\n", dtype_name(operand->of.dtype), operand->of.name);
  return text + "};\n";
}

/// Everything that is read, in the order of the arguments.
std::vector<const Operand*> all_operands(const CudaNormProblem& problem) {
  std::vector<const Operand*> all;
  for (const Operand& operand : problem.prologue_operands) all.push_back(&operand);
  for (const Operand& operand : problem.epilogue_operands) all.push_back(&operand);
  for (const Operand* operand : {&problem.scale, &problem.shift}) {
    if (operand->of.input >= 0) all.push_back(operand);
  }
  return all;
}

std::string functions_text(const CudaNormProblem& problem, int vector) {
  std::string loads, finish, scaled = "x[j]";
  for (const Operand& operand : problem.prologue_operands) loads += load_text(operand, vector);
  for (const Operand& operand : problem.epilogue_operands) finish += load_text(operand, vector);
  for (const Operand* operand : {&problem.scale, &problem.shift}) {
    if (operand->of.input < 0) continue;
    finish += load_text(*operand, vector);
    scaled = operand == &problem.scale ? "x[j] * v_scale[j]" : fmt::format("({}) + v_shift[j]", scaled);
  }
  return problem.prologue.function + problem.epilogue.function +
         fmt::format(
             "DEVICE void load_x(const Arguments& a, long long row, int column, float (&x)[VECTOR]) {{\n{}"
             "  for (int j = 0; j < VECTOR; j++) x[j] = {};\n}}\n",
             loads, call_text(problem.prologue, "prologue", "0.f")) +
         fmt::format(
             "DEVICE void finish(const Arguments& a, long long row, int column, float (&x)[VECTOR]) {{\n{}"
             "  for (int j = 0; j < VECTOR; j++) x[j] = {};\n"
             "  store_vector<STREAMS>(a.out + row * COLUMNS + column, x);\n}}\n",
             finish, call_text(problem.epilogue, "epilogue", scaled));
}

}  // namespace

Reading<CudaNormProblem> read_cuda_norm(const Kernel& kernel) {
  if (kernel.kind != KernelClass::normalization) return {{}, "it is no normalisation"};
  const Graph& body = kernel.body;
  const Node& node = body.node(kernel.anchor);
  if (node.op != Op::layer_norm && node.op != Op::rms_norm) return {{}, "it is no layer or RMS norm"};
  if (body.outputs.size() != 1) return {{}, "it has several outputs"};
  const TensorType& type = body.type(node.outputs.at(0));
  if (type.layout.channel_block != 0 || node.attributes.integer("axis") != type.rank() - 1)
    return {{}, "not the innermost dim alone is normalised"};
  if (body.type(body.outputs[0]).dims() != type.dims()) return {{}, "its epilogue changes the shape"};
  if (type.element_count() == 0) return {{}, "it is empty"};
  CudaNormProblem problem;
  problem.columns = type.dims().back();
  problem.rows = type.element_count() / problem.columns;
  if (problem.rows >= most_rows) return {{}, "there are too many rows for a grid"};
  problem.out = body.type(body.outputs[0]).dtype;
  problem.out_argument = static_cast<int>(body.inputs.size());
  problem.is_centred = node.op == Op::layer_norm;
  problem.epsilon = node.attributes.real("epsilon");
  problem.scale.of.input = problem.shift.of.input = -1;
  const bool narrow = problem.out != DType::f32;
  std::string refusal = is_float_storage(problem.out) ? "" : "its result is no float";
  if (refusal.empty())
    refusal = read_work(body, no_value, node.inputs[0], "prologue", false, problem.prologue,
                        problem.prologue_operands);
  if (refusal.empty())
    refusal = read_work(body, node.outputs[0], body.outputs[0], "epilogue", narrow, problem.epilogue,
                        problem.epilogue_operands);
  const auto has = [&](std::size_t i) { return node.inputs.size() > i && node.inputs[i] != no_value; };
  if (refusal.empty() && has(1)) refusal = read_vector(body, node.inputs[1], "scale", problem.scale);
  if (refusal.empty() && has(2)) refusal = read_vector(body, node.inputs[2], "shift", problem.shift);
  for (Operand& operand : problem.epilogue_operands) operand.of.name += "_after";
  for (PointwiseOperand& of : problem.epilogue.operands) of.name += "_after";
  for (const Operand* operand : all_operands(problem)) {
    if (refusal.empty() && !is_float_storage(operand->of.dtype)) refusal = "an operand is no float";
  }
  if (refusal.empty() && cuda_norm_choices(problem).empty()) refusal = "its rows do not fit into registers";
  return {problem, refusal};
}

int vector_of(const CudaNormProblem& problem) {
  int vector = problem.out == DType::f32 ? 4 : 8;
  while (problem.columns % vector != 0) vector /= 2;
  return vector;
}

std::vector<CudaNormChoice> cuda_norm_choices(const CudaNormProblem& problem) {
  const std::int64_t vector = vector_of(problem);
  struct Rated {
    CudaNormChoice choice;
    std::int64_t penalty;
  };
  std::vector<Rated> rated;
  const std::int64_t bytes =
      problem.rows * problem.columns * static_cast<std::int64_t>(dtype_size(problem.out));
  const bool is_large = bytes > l2_bytes;
  for (int threads = 32; threads <= most_threads; threads *= 2) {
    const std::int64_t items = (problem.columns + threads * vector - 1) / (threads * vector);
    const std::int64_t held = items * vector;
    if (held > most_held || (threads > 32 && threads * vector / 2 >= problem.columns)) continue;
    for (const int rows : {1, 2, 4, 8}) {
      const int block = threads * rows;
      if (block < 128 || block > 512) continue;
      // Few values wait on sums of many warps; many take registers from other blocks.
      const std::int64_t wanted = std::abs(held - well_held) + (held > well_held ? well_held : 0);
      const std::int64_t penalty = 8 * wanted + (block == 128 ? 0 : block == 256 ? 1 : 2);
      for (const bool other : {false, true})
        rated.push_back({{threads, rows, other != is_large}, 2 * penalty + (other ? 1 : 0)});
    }
  }
  std::stable_sort(rated.begin(), rated.end(),
                   [](const Rated& a, const Rated& b) { return a.penalty < b.penalty; });
  std::vector<CudaNormChoice> choices;
  for (const Rated& each : rated) choices.push_back(each.choice);
  return choices;
}

CudaTemplate make_cuda_norm(const CudaNormProblem& problem, const CudaNormChoice& choice) {
  const int vector = vector_of(problem);
  CudaTemplate result;
  result.name = fmt::format("{}_{}_{}x{}", problem.is_centred ? "layer_norm" : "rms_norm",
                            dtype_name(problem.out), problem.rows, problem.columns);
  result.source = fmt::format("#define KERNEL {}\n{}{}{}", result.name, embedded::cuda_hopper,
                              embedded::cuda_pointwise, embedded::cuda_vector);
  result.source += fmt::format(
      "constexpr long long ROWS = {};\nconstexpr int COLUMNS = {}, THREADS = {}, ROWS_OF_BLOCK = {}, VECTOR "
      "= "
      "{};\nconstexpr bool CENTRED = {}, STREAMS = {};\nconstexpr float EPSILON = {:a}f;\ntypedef {} Out;\n",
      problem.rows, problem.columns, choice.threads, choice.rows, vector, problem.is_centred, choice.streams,
      static_cast<float>(problem.epsilon), dtype_name(problem.out));
  const std::vector<const Operand*> operands = all_operands(problem);
  result.source += arguments_text(operands) + functions_text(problem, vector);
  result.source += embedded::cuda_norm;
  result.blocks = static_cast<unsigned>((problem.rows + choice.rows - 1) / choice.rows);
  result.threads = static_cast<unsigned>(choice.threads * choice.rows);
  result.programmatic = true;
  result.pointers = {problem.out_argument};
  for (const Operand* operand : operands) result.pointers.push_back(operand->of.input);
  return result;
}

}  // namespace sylvite
