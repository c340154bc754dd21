#include "schedules/cuda_matmul.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "schedules/cuda_sources.h"

// The head of schedules/cuda/matmul.cuh: constants, the product instruction, and the epilogue's functions.

namespace sylvite {
namespace {

constexpr int most_sums = 192;  // registers of sums that a thread can hold
constexpr int enough_stages = 6;
constexpr int stages_for_residual = 4;

/// The problem as the kernel sees it: x and y instead of a and b, m and n.
struct Sides {
  const CudaMatmulProblem::Operand *x, *y;
  std::int64_t x_extent, y_extent;
};
Sides sides_of(const CudaMatmulProblem& problem, bool swapped) {
  if (swapped) return {&problem.b, &problem.a, problem.n, problem.m};
  return {&problem.a, &problem.b, problem.m, problem.n};
}

int element_bytes(const CudaMatmulProblem& problem) {
  return static_cast<int>(dtype_size(problem.element));
}
/// Bytes of depth in a stage: the widest swizzle, unless the taps of a convolution fill no more than half.
int stage_row(const CudaMatmulProblem& problem) {
  constexpr int widest = 128;
  const bool is_narrow = problem.windows && problem.windows->channels * element_bytes(problem) <= widest / 2;
  return is_narrow ? widest / 2 : widest;
}
std::int64_t steps_of(const CudaMatmulProblem& problem) {
  const int depth = stage_row(problem) / element_bytes(problem);
  const std::int64_t taps = problem.windows ? problem.windows->taps() : 1;
  return taps * ((problem.k / taps + depth - 1) / depth);
}

/// An epilogue operand seen from the kernel. A vector varies along one side at most and passes through
/// shared memory; the rest is loaded where it is needed.
struct Term {
  const PointwiseOperand* operand;
  std::int64_t batch, x, y;  ///< strides
  int offset = 0;            ///< of a vector, in floats
  int extent = 0;            ///< of a vector
  bool is_residual = false;  ///< it lies as the result does, and comes through shared memory with it
  [[nodiscard]] bool is_vector() const { return x == 0 || y == 0; }
};

int rows_of_consumer(const CudaMatmulChoice& choice) {
  return choice.ping_pong ? choice.tile_x : choice.tile_x / 2;
}

std::int64_t out_bytes(const CudaMatmulProblem& problem) {
  return static_cast<std::int64_t>(dtype_size(problem.out));
}
bool stores_boxes(const CudaMatmulProblem& problem) {
  constexpr std::int64_t map_unit = 16;  // bytes, of the pitches of tensor maps
  return problem.n * out_bytes(problem) % map_unit == 0;
}

/// Rows that begin anywhere pass through shared memory, if tensor memory access cannot store them.
bool stores_rows(const CudaMatmulProblem& problem, const CudaMatmulChoice& choice) {
  return !stores_boxes(problem) && !choice.swapped && choice.split == 1 && choice.tile_y >= 16;
}

bool lies_as_result(const CudaMatmulProblem& problem, const PointwiseOperand& operand) {
  const std::int64_t batch = problem.batch == 1 ? operand.strides[0] : problem.m * problem.n;
  const bool is_as_wide = dtype_size(operand.dtype) == dtype_size(problem.out);
  return is_as_wide && operand.strides == Dims{batch, problem.n, 1};
}

/// `residual`: one operand may be it, where results are swapped (what was measured).
std::vector<Term> terms_of(const CudaMatmulProblem& problem, const CudaMatmulChoice& choice, bool residual) {
  std::vector<Term> terms;
  int offset = 0;
  residual = residual && choice.swapped && stores_boxes(problem);
  for (const PointwiseOperand& operand : problem.epilogue.operands) {
    const Dims& s = operand.strides;
    Term term{&operand, s[0], choice.swapped ? s[2] : s[1], choice.swapped ? s[1] : s[2]};
    term.is_residual = residual && !term.is_vector() && lies_as_result(problem, operand);
    residual = residual && !term.is_residual;
    if (term.is_vector()) {
      term.offset = offset;
      term.extent = term.x != 0 ? rows_of_consumer(choice) : term.y != 0 ? choice.tile_y : 1;
      offset += (term.extent + 3) / 4 * 4;
    }
    terms.push_back(term);
  }
  return terms;
}

/// Shared memory, and what it allows.
struct SharedPlan {
  int chunk = 0;
  int buffers = 2;        ///< chunks of a consumer
  int buffers_at = 0;     ///< bytes before them, where parts of a split arrive
  int out_bytes = 0;      ///< all of a consumer's
  int vector_floats = 0;  ///< of a consumer
  int stages = 0;
  int shared_bytes = 0;
  bool store_boxes = false;
  bool store_rows = false;
  bool residual = false;
};

SharedPlan plan_with(const CudaMatmulProblem& problem, const CudaMatmulChoice& choice, const CudaCard& card,
                     int chunk, bool residual) {
  SharedPlan plan;
  plan.chunk = chunk;
  const int own_y = choice.tile_y / choice.split;
  plan.store_boxes = stores_boxes(problem);
  plan.store_rows = stores_rows(problem, choice);
  const std::vector<Term> terms = terms_of(problem, choice, residual);
  plan.residual = std::any_of(terms.begin(), terms.end(), [](const Term& term) { return term.is_residual; });
  if (plan.residual) plan.buffers = rows_of_consumer(choice) / 64 * (own_y / chunk);
  const int received = (choice.split - 1) * rows_of_consumer(choice) * own_y * 4;
  const int pieces = chunk * static_cast<int>(out_bytes(problem)) / 16;
  const int row_bytes = (pieces | 1) * 16;  // where rows are stored: an odd number of pieces
  const int buffers = plan.store_boxes  ? plan.buffers * 64 * chunk * static_cast<int>(out_bytes(problem))
                      : plan.store_rows ? 64 * row_bytes
                                        : 0;
  if (plan.residual) plan.buffers_at = (received + 1023) / 1024 * 1024;
  plan.out_bytes = (std::max(received, plan.buffers_at + buffers) + 1023) / 1024 * 1024;
  for (const Term& term : terms) {
    if (term.is_vector()) plan.vector_floats = term.offset + (term.extent + 3) / 4 * 4;
  }
  const int stage = (choice.tile_x + choice.tile_y) * stage_row(problem);
  const int to_align = stage_row(problem) < 128 ? 2 * 1024 : 1024;
  const int fixed = to_align + 2 * plan.out_bytes + 2 * plan.vector_floats * 4 + 32;  // 4 barriers
  plan.stages = static_cast<int>((card.shared_bytes - fixed) / (stage + 16));
  plan.stages = static_cast<int>(
      std::min<std::int64_t>(plan.stages, std::max<std::int64_t>(enough_stages, steps_of(problem) * 2)));
  plan.shared_bytes = fixed + plan.stages * (stage + 16);
  return plan;
}

/// Half of the columns, where that is a multiple of 8.
int half_of(int columns) {
  return columns % 16 == 0 ? columns / 2 : columns;
}

/// Columns of results that may be written at a time, the best first: 32 to 64, else more, else fewer. Boxes
/// of a swapped result are 128 bytes wide whatever the chunk; others are swizzled by its width. Rows are
/// stored whole, those of f32 in halves.
std::vector<int> chunks_of(const CudaMatmulProblem& problem, const CudaMatmulChoice& choice) {
  if (stores_rows(problem, choice))
    return {problem.out == DType::f32 ? half_of(choice.tile_y) : choice.tile_y};
  constexpr int most = 128;
  const int own_y = choice.tile_y / choice.split;
  std::vector<int> chunks;
  const int widest = choice.swapped ? 64 : 128 / static_cast<int>(out_bytes(problem));
  for (int chunk = widest; chunk >= 8; chunk -= 8) {
    if (own_y % chunk == 0 && (choice.swapped || (chunk & (chunk - 1)) == 0)) chunks.push_back(chunk);
  }
  const auto narrow = std::find_if(chunks.begin(), chunks.end(), [](int chunk) { return chunk < 32; });
  for (int chunk = 72; choice.swapped && narrow == chunks.begin() && chunk <= most; chunk += 8) {
    if (own_y % chunk == 0) return {chunk};
  }
  return chunks;
}

/// Wide chunks of results, unless narrow ones leave room for a stage that counts. A residual comes in boxes
/// when that leaves enough stages.
SharedPlan plan_of(const CudaMatmulProblem& problem, const CudaMatmulChoice& choice, const CudaCard& card) {
  SharedPlan best;
  for (const int chunk : chunks_of(problem, choice)) {
    SharedPlan plan = plan_with(problem, choice, card, chunk, true);
    if (plan.residual && plan.stages < std::min<std::int64_t>(stages_for_residual, steps_of(problem)))
      plan = plan_with(problem, choice, card, chunk, false);
    if (best.chunk == 0)
      best = plan;
    else if (chunk >= 32 && best.stages < enough_stages && plan.stages > best.stages)
      best = plan;
  }
  return best;
}

/// A matrix is a window of one tap.
std::string windows_text(const CudaMatmulProblem& problem) {
  CudaMatmulProblem::Windows windows;
  windows.channels = problem.k;
  if (problem.windows) windows = *problem.windows;
  const auto pair = [](const char* name, std::int64_t x, std::int64_t y) {
    return fmt::format("constexpr int {0}_X = {1}, {0}_Y = {2};\n", name, x, y);
  };
  return fmt::format("constexpr int CHANNELS = {}, OUT_COLUMNS = {}, OUT_LINES = {};\n", windows.channels,
                     windows.out_columns, windows.out_lines) +
         pair("TAPS", windows.taps_x, windows.taps_y) + pair("STRIDE", windows.stride_x, windows.stride_y) +
         pair("DILATION", windows.dilation_x, windows.dilation_y) + pair("PAD", windows.pad_x, windows.pad_y);
}

std::string constants_text(const CudaMatmulProblem& problem, const CudaMatmulChoice& choice,
                           const SharedPlan& plan) {
  const Sides sides = sides_of(problem, choice.swapped);
  std::string text;
  const auto define = [&](const char* name, std::int64_t value) {
    text += fmt::format("constexpr int {} = {};\n", name, value);
  };
  define("X", sides.x_extent);
  define("Y", sides.y_extent);
  define("BATCH", problem.batch);
  define("ELEMENT_BYTES", element_bytes(problem));
  define("X_DEPTH_FAST", sides.x->depth_fast);
  define("Y_DEPTH_FAST", sides.y->depth_fast);
  define("X_BATCHED", sides.x->batch_pitch != 0);
  define("Y_BATCHED", sides.y->batch_pitch != 0);
  constexpr int matrix = 0, filter = 1, windows = 2;  // Role
  const bool convolves = problem.windows.has_value();
  define("X_ROLE", !convolves ? matrix : choice.swapped ? filter : windows);
  define("Y_ROLE", !convolves ? matrix : choice.swapped ? windows : filter);
  define("X_IS_WEIGHT", sides.x->is_weight);
  define("Y_IS_WEIGHT", sides.y->is_weight);
  define("STAGE_ROW", stage_row(problem));
  define("TILE_X", choice.tile_x);
  define("TILE_Y", choice.tile_y);
  define("STAGES", plan.stages);
  define("CLUSTER_X", choice.cluster_x);
  define("CLUSTER_Y", choice.cluster_y);
  define("PING_PONG", choice.ping_pong);
  define("SPLIT", choice.split);
  define("GROUP", std::max(1, choice.group_rows / (choice.tile_x * choice.cluster_x)));
  define("SWAPPED", choice.swapped);
  define("STORE_BOXES", plan.store_boxes);
  define("STORE_ROWS", plan.store_rows);
  define("CHUNK", plan.chunk);
  define("RESIDUAL", plan.residual);
  define("BUFFERS", plan.buffers);
  define("BUFFERS_AT", plan.buffers_at);
  define("OUT_BYTES", plan.out_bytes);
  define("VECTOR_FLOATS", plan.vector_floats);
  define("WAITS_TO_READ", problem.epilogue_reads_activations);
  const bool tf32 = problem.element == DType::f32;
  const double uncut_a = tf32 && !problem.a.is_rounded ? tf32_uncut : 1;
  const double uncut_b = tf32 && !problem.b.is_rounded ? tf32_uncut : 1;
  return text + windows_text(problem) +
         fmt::format("constexpr float UNCUT = {:a}f;\ntypedef {} Out;\n",
                     static_cast<float>(uncut_a * uncut_b), dtype_name(problem.out));
}

/// wgmma wants every sum named.
std::string multiply_text(const CudaMatmulProblem& problem, const CudaMatmulChoice& choice) {
  const Sides sides = sides_of(problem, choice.swapped);
  const int sums = choice.tile_y / 2;
  std::string registers, operands;
  for (int i = 0; i < sums; ++i) {
    registers += fmt::format("{}%{}", i == 0 ? "" : ", ", i);
    operands += fmt::format("{}\"+f\"(sums[{}])", i == 0 ? "" : ", ", i);
  }
  const bool tf32 = problem.element == DType::f32;
  const std::string type = tf32 ? "tf32" : std::string(dtype_name(problem.element));
  const std::string majors =
      tf32 ? "" : fmt::format(", {}, {}", sides.x->depth_fast ? 0 : 1, sides.y->depth_fast ? 0 : 1);
  return fmt::format(
      "DEVICE void multiply(float (&sums)[{0}], u64 x, u64 y, int add) {{\n"
      "  asm volatile(\"{{.reg .pred p; setp.ne.b32 p, %{5}, 0;\\n\"\n"
      "    \"wgmma.mma_async.sync.aligned.m64n{1}k{2}.f32.{3}.{3} {{{4}}}, %{6}, %{7}, p, 1, 1{8};}}\"\n"
      "    : {9}\n    : \"l\"(x), \"l\"(y), \"r\"(add));\n}}\n",
      sums, choice.tile_y, tf32 ? 8 : 16, type, registers, sums + 2, sums, sums + 1, majors, operands);
}

std::string arguments_text(const std::vector<Term>& terms) {
  std::string text = "struct Arguments {\n  Out* out;\n";
  for (const Term& term : terms) {
    text += fmt::format("  const {}* {};\n", dtype_name(term.operand->dtype), term.operand->name);
  }
  return text + "};\n";
}

std::string stage_vectors_text(const std::vector<Term>& terms) {
  std::string text =
      "DEVICE void stage_vectors(float* to, const Arguments& a, int batch, int x, int y, int thread) {\n";
  for (const Term& term : terms) {
    if (!term.is_vector()) continue;
    const char* corner = term.x != 0 ? "x" : term.y != 0 ? "y" : "0";
    const char* limit = term.x != 0 ? "X" : term.y != 0 ? "Y" : "1";
    text += fmt::format(
        "  for (int i = thread; i < {}; i += 128)\n"
        "    to[{} + i] = {} + i < {} ? to_float(a.{}[{}ll * batch + {}ll * ({} + i)]) : 0.f;\n",
        term.extent, term.offset, corner, limit, term.operand->name, term.batch,
        term.x != 0 ? term.x : term.y, corner);
  }
  return text + "}\n";
}

/// A pair of neighbours along y, as stored.
std::string load_text(const Term& term, bool y_is_even) {
  const std::string& name = term.operand->name;
  const std::string at =
      fmt::format("a.{} + ({}ll * batch + {}ll * x + {}ll * y)", name, term.batch, term.x, term.y);
  const bool aligned = y_is_even && term.y == 1 && term.x % 2 == 0 && term.batch % 2 == 0;
  if (aligned) return fmt::format("  loaded.{} = load_pair({});\n", name, at);
  return fmt::format("  loaded.{0} = load_two({1}, {1} + (y + 1 < Y ? {2} : 0));\n", name, at, term.y);
}

std::string loads_text(const std::vector<Term>& terms, bool y_is_even) {
  std::string members, loads, bits, floats;  // of a residual
  for (const Term& term : terms) {
    if (term.is_vector()) continue;
    members += fmt::format("  Pair<{}> {};\n", dtype_name(term.operand->dtype), term.operand->name);
    const bool is_wide = term.operand->dtype == DType::f32;
    if (term.is_residual)
      (is_wide ? floats : bits) =
          fmt::format("  loaded.{}.{} = r;\n", term.operand->name, is_wide ? "values" : "bits");
    else
      loads += load_text(term, y_is_even);
  }
  return fmt::format(
      "struct Loaded {{\n{}}};\n"
      "DEVICE Loaded load_operands(const Arguments& a, int batch, int x, int y) {{\n"
      "  Loaded loaded = {{}};\n  if (x >= X || y >= Y) return loaded;\n{}  return loaded;\n}}\n"
      "DEVICE void set_residual(Loaded& loaded, u32 r) {{\n{}}}\n"
      "DEVICE void set_residual(Loaded& loaded, float2 r) {{\n{}}}\n",
      members, loads, bits, floats);
}

std::string finish_text(const std::vector<Term>& terms) {
  std::string first = "v.x", second = "v.y", lines;
  for (const Term& term : terms) {
    const std::string& name = term.operand->name;
    if (!term.is_vector()) {
      lines += fmt::format("  const float2 {0} = to_floats(loaded.{0});\n", name);
    } else if (term.y != 0) {
      lines += fmt::format("  const float2 {} = *(const float2*)(vectors + {} + y);\n", name, term.offset);
    } else {
      lines += fmt::format(
          "  const float {0}_ = vectors[{1}{2}];\n  const float2 {0} = make_float2({0}_, {0}_);\n", name,
          term.offset, term.x != 0 ? " + x" : "");
    }
    first += fmt::format(", {}.x", name);
    second += fmt::format(", {}.y", name);
  }
  return fmt::format(
      "DEVICE float2 finish(float2 v, const float* vectors, const Loaded& loaded, int x, int y) {{\n{}"
      "  return make_float2(epilogue({}), epilogue({}));\n}}\n",
      lines, first, second);
}

/// Operand tiles are boxes of 128 bytes of depth by rows, or of 64 rows by depth.
CudaTensorMap operand_map(const CudaMatmulProblem& problem, const CudaMatmulProblem::Operand& operand,
                          std::int64_t rows, int slice) {
  const int bytes = element_bytes(problem);
  const int depth = stage_row(problem) / bytes;
  CudaTensorMap map;
  map.argument = operand.input;
  map.offset = operand.offset * bytes;
  map.dtype = problem.element;
  map.dims[0] = operand.depth_fast ? problem.k : rows;
  map.dims[1] = operand.depth_fast ? rows : problem.k;
  map.dims[2] = operand.batch_pitch == 0 ? 1 : problem.batch;
  map.pitches[0] = operand.pitch * bytes;
  map.pitches[1] = operand.batch_pitch == 0 ? map.pitches[0] * map.dims[1] : operand.batch_pitch * bytes;
  map.box[0] = operand.depth_fast ? depth : 64;
  map.box[1] = operand.depth_fast ? slice : depth;
  return map;
}

/// The operand's rows are windows: see CudaMatmulProblem::Windows.
CudaTensorMap windows_map(const CudaMatmulProblem& problem, int slice) {
  const CudaMatmulProblem::Windows& w = *problem.windows;
  const int bytes = element_bytes(problem);
  const std::int64_t dims[] = {w.channels, w.columns, w.lines, w.images};
  CudaTensorMap map;
  map.argument = problem.a.input;
  map.dtype = problem.element;
  std::copy(std::begin(dims), std::end(dims), std::begin(map.dims));
  map.pitches[0] = w.column_pitch * bytes;
  map.pitches[1] = w.line_pitch * bytes;
  map.pitches[2] = w.image_pitch * bytes;
  map.box[0] = stage_row(problem) / bytes;
  map.swizzle = stage_row(problem);
  map.box[1] = slice;
  const auto last = [](std::int64_t count, std::int64_t stride, std::int64_t pad, std::int64_t extent) {
    return static_cast<int>((count - 1) * stride - pad - (extent - 1));
  };
  CudaWindows windows;
  windows.first[0] = static_cast<int>(-w.pad_x);
  windows.first[1] = static_cast<int>(-w.pad_y);
  windows.last[0] = last(w.out_columns, w.stride_x, w.pad_x, w.columns);
  windows.last[1] = last(w.out_lines, w.stride_y, w.pad_y, w.lines);
  windows.step[0] = static_cast<int>(w.stride_x);
  windows.step[1] = static_cast<int>(w.stride_y);
  map.windows = windows;
  return map;
}

/// [n][tap][channel].
CudaTensorMap filter_map(const CudaMatmulProblem& problem, int slice) {
  const CudaMatmulProblem::Windows& w = *problem.windows;
  const int bytes = element_bytes(problem);
  CudaTensorMap map;
  map.argument = problem.b.input;
  map.dtype = problem.element;
  map.dims[0] = w.channels;
  map.dims[1] = w.taps();
  map.dims[2] = problem.n;
  map.pitches[0] = w.filter_pitch * bytes;
  map.pitches[1] = map.pitches[0] * w.taps();
  map.pitches[2] = map.pitches[1] * problem.n;
  map.box[0] = stage_row(problem) / bytes;
  map.swizzle = stage_row(problem);
  map.box[2] = slice;
  return map;
}

/// Of the side x (or y), cut into slices for the blocks that share it.
CudaTensorMap side_map(const CudaMatmulProblem& problem, const CudaMatmulProblem::Operand& operand,
                       std::int64_t rows, int slice) {
  if (!problem.windows) return operand_map(problem, operand, rows, slice);
  return &operand == &problem.a ? windows_map(problem, slice) : filter_map(problem, slice);
}

/// Of an argument that lies as the result does, in chunks.
CudaTensorMap chunk_map(const CudaMatmulProblem& problem, const CudaMatmulChoice& choice,
                        const SharedPlan& plan, int argument) {
  const int chunk = plan.chunk;
  const std::int64_t bytes = out_bytes(problem);
  CudaTensorMap map;
  map.argument = argument;
  map.dtype = problem.out;
  map.dims[0] = problem.n;
  map.dims[1] = problem.m;
  map.dims[2] = problem.batch;
  map.pitches[0] = problem.n * bytes;
  map.pitches[1] = problem.n * problem.m * bytes;
  const int row = choice.swapped ? 128 : chunk * static_cast<int>(bytes);
  map.box[0] = row / static_cast<int>(bytes);
  map.box[1] = choice.swapped ? chunk : 64;
  map.swizzle = row < 32 ? 0 : row;
  return map;
}

/// The result's, and the residual's; empty maps where there is none.
std::vector<CudaTensorMap> result_maps(const CudaMatmulProblem& problem, const CudaMatmulChoice& choice,
                                       const SharedPlan& plan, const std::vector<Term>& terms) {
  std::vector<CudaTensorMap> maps(2);
  if (plan.store_boxes) maps[0] = chunk_map(problem, choice, plan, problem.out_argument);
  for (const Term& term : terms) {
    if (term.is_residual) maps[1] = chunk_map(problem, choice, plan, term.operand->input);
  }
  return maps;
}

}  // namespace

std::string CudaMatmulChoice::to_string() const {
  std::string text = fmt::format("{}x{} {}x{} {} g{}", tile_x, tile_y, cluster_x, cluster_y,
                                 ping_pong ? "pp" : "co", group_rows);
  if (split > 1) text += fmt::format(" k{}", split);
  if (swapped) text += " swapped";
  if (programmatic) text += " pdl";
  return text;
}

std::string refuse_cuda_matmul(const CudaMatmulProblem& problem, const CudaMatmulChoice& choice,
                               const CudaCard& card) {
  const Sides sides = sides_of(problem, choice.swapped);
  const int unit_x = choice.ping_pong ? 64 : 128;
  if (choice.tile_x % unit_x != 0 || choice.tile_y % 8 != 0 || choice.tile_y > 256 || choice.tile_x > 256)
    return fmt::format("a tile is a multiple of {} by a multiple of 8, at most 256 x 256", unit_x);
  if (rows_of_consumer(choice) / 64 * choice.tile_y / 2 > most_sums)
    return "its sums do not fit into registers";
  if (choice.split > 1 && (choice.ping_pong || choice.cluster_x * choice.cluster_y > 1))
    return "a split takes the whole cluster, and both consumers for a tile";
  if (choice.tile_y % (8 * choice.split) != 0) return "the blocks of a split own multiples of 8 columns";
  if (steps_of(problem) < choice.split) return "there is too little depth to split";
  const auto slices = [&](const CudaMatmulProblem::Operand& operand, int tile, int parts) {
    const int unit = operand.depth_fast ? 8 : 64;
    return tile % (parts * unit) == 0;
  };
  if (!slices(*sides.x, choice.tile_x, choice.cluster_y) ||
      !slices(*sides.y, choice.tile_y, choice.cluster_x))
    return "an operand's tile cannot be cut for the loads";
  if (plan_of(problem, choice, card).stages < 2) return "two stages do not fit into shared memory";
  return "";
}

bool cuda_matmul_boxes_residual(const CudaMatmulProblem& problem, const CudaMatmulChoice& choice,
                                const CudaCard& card) {
  return plan_of(problem, choice, card).residual;
}

CudaTemplate make_cuda_matmul(const CudaMatmulProblem& problem, const CudaMatmulChoice& choice,
                              const CudaCard& card) {
  if (const std::string refusal = refuse_cuda_matmul(problem, choice, card); !refusal.empty())
    throw UnsupportedError("matmul {} cannot be made: {}", choice.to_string(), refusal);
  const Sides sides = sides_of(problem, choice.swapped);
  const SharedPlan plan = plan_of(problem, choice, card);
  const std::vector<Term> terms = terms_of(problem, choice, plan.residual);
  CudaTemplate result;
  result.name = fmt::format("matmul_{}_{}x{}x{}x{}", dtype_name(problem.element), problem.batch, problem.m,
                            problem.n, problem.k);
  result.source =
      fmt::format("#define KERNEL {}\n{}{}", result.name, embedded::cuda_hopper, embedded::cuda_pointwise);
  if (problem.element == DType::f32) result.source += "#define gelu gelu_near\n";
  result.source += constants_text(problem, choice, plan) + multiply_text(problem, choice) +
                   arguments_text(terms) + problem.epilogue.function + stage_vectors_text(terms) +
                   loads_text(terms, sides.y_extent % 2 == 0) + finish_text(terms);
  result.source += embedded::cuda_matmul;
  const auto clusters_along = [](std::int64_t extent, int tile) { return (extent + tile - 1) / tile; };
  const std::int64_t tiles = clusters_along(sides.x_extent, choice.tile_x * choice.cluster_x) *
                             clusters_along(sides.y_extent, choice.tile_y * choice.cluster_y) * problem.batch;
  result.cluster = static_cast<unsigned>(choice.cluster_x * choice.cluster_y * choice.split);
  const std::int64_t resident = choice.split > 1 ? tiles : card.multiprocessors / result.cluster;
  result.blocks = static_cast<unsigned>(std::min(tiles, resident)) * result.cluster;
  result.shared_bytes = static_cast<unsigned>(plan.shared_bytes);
  result.programmatic = choice.programmatic;
  result.maps = {side_map(problem, *sides.x, sides.x_extent, choice.tile_x / choice.cluster_y),
                 side_map(problem, *sides.y, sides.y_extent, choice.tile_y / choice.cluster_x)};
  for (CudaTensorMap& map : result_maps(problem, choice, plan, terms)) result.maps.push_back(map);
  result.pointers = {problem.out_argument};
  for (const Term& term : terms) result.pointers.push_back(term.operand->input);
  return result;
}

}  // namespace sylvite
