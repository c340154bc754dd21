#include "schedules/cuda_norm.h"

#include <algorithm>

#include "base/error.h"
#include "schedules/cuda_sources.h"

namespace sylvite {
namespace {

constexpr std::int64_t most_held = 64;         // values of a row in a thread's registers
constexpr int most_threads = 1024;             // of a block
constexpr std::int64_t most_rows = 1LL << 31;  // blocks of a grid
constexpr std::int64_t l2_bytes = 50 << 20;    // a result that is larger is not there when it is read
constexpr std::int64_t most_ring = 96 << 10;   // bytes of a block's shared memory

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

bool loads_stream(const CudaNormChoice& choice) {
  return (choice.streams & 1) != 0;
}
bool stores_stream(const CudaNormChoice& choice) {
  return (choice.streams & 2) != 0;
}

std::int64_t row_bytes(const CudaNormProblem& problem, const CudaOperand& operand) {
  return problem.columns * static_cast<std::int64_t>(dtype_size(operand.of.dtype));
}
/// Rows that the copy engine can bring: whole, and in units of 16 bytes.
bool may_be_staged(const CudaNormProblem& problem, const CudaOperand& operand) {
  const auto size = static_cast<std::int64_t>(dtype_size(operand.of.dtype));
  return operand.passes_by() && operand.row * size % 16 == 0 && row_bytes(problem, operand) % 16 == 0;
}
/// Bytes of the ring that a row takes; 0 when nothing can be staged.
std::int64_t staged_bytes(const CudaNormProblem& problem) {
  std::int64_t bytes = 0;
  for (const CudaOperand& operand : problem.prologue_operands) {
    if (may_be_staged(problem, operand)) bytes += row_bytes(problem, operand);
  }
  return bytes;
}

/// Everything that is read, in the order of the arguments.
std::vector<const CudaOperand*> all_operands(const CudaNormProblem& problem) {
  std::vector<const CudaOperand*> all;
  for (const CudaOperand& operand : problem.prologue_operands) all.push_back(&operand);
  for (const CudaOperand& operand : problem.epilogue_operands) all.push_back(&operand);
  for (const CudaOperand* operand : {&problem.scale, &problem.shift}) {
    if (operand->of.input >= 0) all.push_back(operand);
  }
  return all;
}

/// fetch, and the loads of the prologue: what is staged lies in the ring, one operand after the other.
std::string prologue_text(const CudaNormProblem& problem, const CudaNormChoice& choice, int vector) {
  std::string fetch, loads;
  std::int64_t offset = 0;
  for (const CudaOperand& operand : problem.prologue_operands) {
    if (choice.stages == 0 || !may_be_staged(problem, operand)) {
      loads += load_text(operand, vector, "STREAM_LOADS");
      continue;
    }
    fetch += fmt::format("  load_run<STREAM_LOADS>(to + {}, a.{} + {}ll * row, {}, barrier);\n", offset,
                         operand.of.name, operand.row, row_bytes(problem, operand));
    loads += fmt::format(
        "  float v_{0}[VECTOR];\n  load_shared_vector((const {1}*)(place + {2}) + column, v_{0});\n",
        operand.of.name, dtype_name(operand.of.dtype), offset);
    offset += row_bytes(problem, operand);
  }
  return fmt::format(
      "DEVICE void fetch(const Arguments& a, long long row, u32 to, u32 barrier) {{\n{}}}\n"
      "DEVICE void load_x(const Arguments& a, const u8* place, long long row, int column, float "
      "(&x)[VECTOR]) {{\n"
      "{}  for (int j = 0; j < VECTOR; j++) x[j] = {};\n}}\n",
      fetch, loads, call_text(problem.prologue, "prologue", "0.f"));
}

std::string functions_text(const CudaNormProblem& problem, const CudaNormChoice& choice, int vector) {
  std::string finish, scaled = "x[j]";
  for (const CudaOperand& operand : problem.epilogue_operands)
    finish += load_text(operand, vector, "STREAM_LOADS");
  for (const CudaOperand* operand : {&problem.scale, &problem.shift}) {
    if (operand->of.input < 0) continue;
    finish += load_text(*operand, vector, "STREAM_LOADS");
    scaled = operand == &problem.scale ? "x[j] * v_scale[j]" : fmt::format("({}) + v_shift[j]", scaled);
  }
  return problem.prologue.function + problem.epilogue.function + prologue_text(problem, choice, vector) +
         fmt::format(
             "DEVICE void finish(const Arguments& a, long long row, int column, float (&x)[VECTOR]) {{\n{}"
             "  for (int j = 0; j < VECTOR; j++) x[j] = {};\n"
             "  store_vector<STREAM_STORES>(a.out + row * COLUMNS + column, x);\n}}\n",
             finish, call_text(problem.epilogue, "epilogue", scaled));
}

}  // namespace

Reading<CudaNormProblem> read_cuda_norm(const Kernel& kernel) {
  const Graph& body = kernel.body;
  if (kernel.kind != KernelClass::normalization && kernel.kind != KernelClass::pointwise)
    return {{}, "it is neither a normalisation nor pointwise"};
  if (body.outputs.size() != 1) return {{}, "it has several outputs"};
  const bool is_pointwise = kernel.kind == KernelClass::pointwise;
  const Node* node = is_pointwise ? nullptr : &body.node(kernel.anchor);
  const Normalization* row = is_pointwise ? &no_normalization : find_normalization(node->op);
  if (row == nullptr) return {{}, "it is no norm of rows or softmax"};
  const ValueId value = is_pointwise ? body.outputs[0] : node->outputs.at(0);
  const TensorType& type = body.type(value);
  if (type.rank() == 0 || type.layout.channel_block != 0 ||
      (!is_pointwise && node->attributes.integer("axis") != type.rank() - 1))
    return {{}, "not the innermost dim alone is normalised"};
  if (body.type(body.outputs[0]).dims() != type.dims()) return {{}, "its epilogue changes the shape"};
  if (type.element_count() == 0) return {{}, "it is empty"};
  CudaNormProblem problem;
  problem.function = row->function;
  problem.outside = row->outside;
  problem.columns = type.dims().back();
  problem.rows = type.element_count() / problem.columns;
  if (problem.rows >= most_rows) return {{}, "there are too many rows for a grid"};
  problem.out = body.type(body.outputs[0]).dtype;
  problem.out_argument = static_cast<int>(body.inputs.size());
  problem.scale.of.input = problem.shift.of.input = -1;
  std::string refusal = is_float_storage(problem.out) ? "" : "its result is no float";
  const bool narrow = problem.out != DType::f32;
  const CudaGroups groups = {type.dims(), 0, type.dims().size() - 1};
  if (refusal.empty())
    refusal = read_work(body, no_value, is_pointwise ? value : node->inputs[0], groups, "prologue",
                        is_pointwise && narrow, problem.prologue, problem.prologue_operands);
  if (refusal.empty())
    refusal = read_work(body, value, body.outputs[0], groups, "epilogue", narrow, problem.epilogue,
                        problem.epilogue_operands);
  if (refusal.empty() && !is_pointwise) refusal = read_weights(body, *node, problem);
  for (CudaOperand& operand : problem.epilogue_operands) operand.of.name += "_after";
  for (PointwiseOperand& of : problem.epilogue.operands) of.name += "_after";
  if (refusal.empty() && cuda_norm_choices(problem).empty()) refusal = "its rows do not fit into registers";
  return {problem, refusal};
}

int vector_of(const CudaNormProblem& problem) {
  int vector = problem.out == DType::f32 ? 4 : 8;
  while (problem.columns % vector != 0) vector /= 2;
  return vector;
}

namespace {

/// Whether a ring fits beside what a block has of its own: a launch asks for more than 48 KiB only by the
/// ring.
bool fits_ring(std::int64_t bytes) {
  constexpr std::int64_t unasked = 48 << 10, own = 1 << 10;
  return bytes <= unasked - own || (bytes > unasked && bytes <= most_ring);
}

/// Stages and chains worth racing with `threads` to a row: where every multiprocessor has blocks, and the
/// warps of a row meet, after which a place in the ring is free.
std::vector<CudaNormChoice> rings_for(const CudaNormProblem& problem, int threads) {
  constexpr std::int64_t least_blocks = 128;
  std::vector<CudaNormChoice> rings;
  const std::int64_t row = staged_bytes(problem);
  if (row == 0 || problem.function == no_normalization.function || threads < 128 || threads > 512)
    return rings;
  for (const int stages : {2, 4}) {
    for (const int chain : {4, 32}) {
      if (fits_ring(stages * row) && problem.rows >= least_blocks * chain)
        rings.push_back({threads, 1, 0, stages, chain});
    }
  }
  return rings;
}

}  // namespace

std::vector<CudaNormChoice> cuda_norm_choices(const CudaNormProblem& problem) {
  const std::int64_t vector = vector_of(problem);
  struct Rated {
    CudaNormChoice choice;
    std::int64_t penalty;
  };
  std::vector<Rated> rated;
  const std::int64_t bytes =
      problem.rows * problem.columns * static_cast<std::int64_t>(dtype_size(problem.out));
  constexpr std::int64_t rings_last = 1 << 20;  // no ring is a first guess
  const int best_streams = bytes > l2_bytes ? 3 : 0;
  const std::int64_t well_held = problem.function == no_normalization.function ? 16 : 32;
  for (int threads = 32; threads <= most_threads; threads *= 2) {
    const std::int64_t items = (problem.columns + threads * vector - 1) / (threads * vector);
    const std::int64_t held = items * vector;
    if (held > most_held || (threads > 32 && threads * vector / 2 >= problem.columns)) continue;
    // Few values wait on sums of many warps; many take registers from other blocks.
    const std::int64_t wanted = std::abs(held - well_held) + (held > well_held ? well_held : 0);
    for (const int streams : {0, 2, 3}) {
      const int other = streams == best_streams ? 0 : 1;
      for (const int rows : {1, 2, 4, 8}) {
        const int block = threads * rows;
        if (block < 128 || block > 512) continue;
        rated.push_back({{threads, rows, streams, 0, 1}, 2 * (8 * wanted + block / 256) + other});
      }
      for (const CudaNormChoice& ring : rings_for(problem, threads)) {
        rated.push_back(
            {{threads, 1, streams, ring.stages, ring.chain}, 2 * (8 * wanted + rings_last) + other});
      }
    }
  }
  std::stable_sort(rated.begin(), rated.end(),
                   [](const Rated& a, const Rated& b) { return a.penalty < b.penalty; });
  std::vector<CudaNormChoice> choices;
  for (const Rated& each : rated) choices.push_back(each.choice);
  return choices;
}

std::string CudaNormChoice::to_string() const {
  std::string text = fmt::format("threads {} rows {} streams {}", threads, rows, streams);
  return stages == 0 ? text : text + fmt::format(" stages {} chain {}", stages, chain);
}

CudaTemplate make_cuda_norm(const CudaNormProblem& problem, const CudaNormChoice& choice) {
  const int vector = vector_of(problem);
  CudaTemplate result;
  result.name =
      fmt::format("{}_{}_{}x{}", problem.function, dtype_name(problem.out), problem.rows, problem.columns);
  result.source = fmt::format("#define KERNEL {}\n#define NORMALIZE {}\n#define OUTSIDE {}\n{}{}{}",
                              result.name, problem.function, problem.outside, embedded::cuda_hopper,
                              embedded::cuda_pointwise, embedded::cuda_vector);
  result.source += fmt::format(
      "constexpr long long ROWS = {};\nconstexpr int COLUMNS = {}, THREADS = {}, ROWS_OF_BLOCK = {}, "
      "VECTOR = {}, STAGES = {}, CHAIN = {}, ROW_BYTES = {};\n"
      "constexpr bool STREAM_LOADS = {}, STREAM_STORES = {};\nconstexpr float EPSILON = {:a}f;\n"
      "typedef {} Out;\n",
      problem.rows, problem.columns, choice.threads, choice.rows, vector, choice.stages, choice.chain,
      staged_bytes(problem), loads_stream(choice), stores_stream(choice), static_cast<float>(problem.epsilon),
      dtype_name(problem.out));
  const std::vector<const CudaOperand*> operands = all_operands(problem);
  result.source += arguments_text(operands) + functions_text(problem, choice, vector);
  result.source += embedded::cuda_norm;
  const int rows = choice.rows * choice.chain;
  result.blocks = static_cast<unsigned>((problem.rows + rows - 1) / rows);
  result.threads = static_cast<unsigned>(choice.threads * choice.rows);
  result.shared_bytes = static_cast<unsigned>(choice.stages * staged_bytes(problem));
  result.programmatic = true;
  result.pointers = {problem.out_argument};
  for (const CudaOperand* operand : operands) result.pointers.push_back(operand->of.input);
  return result;
}

}  // namespace sylvite
