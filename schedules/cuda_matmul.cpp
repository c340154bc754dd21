#include "schedules/cuda_matmul.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "schedules/cuda_sources.h"

// The head of schedules/cuda/matmul.cuh: constants, the product instruction, and the epilogue's functions.

namespace sylvite {
namespace {

constexpr int stage_row = 128;  // bytes of depth in a stage: the widest swizzle
constexpr int most_sums = 192;  // registers of sums that a thread can hold
constexpr int enough_stages = 6;

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
std::int64_t steps_of(const CudaMatmulProblem& problem) {
  const int depth = stage_row / element_bytes(problem);
  return (problem.k + depth - 1) / depth;
}

/// An epilogue operand seen from the kernel. A vector varies along one side at most and passes through
/// shared memory; the rest is loaded where it is needed.
struct Term {
  const PointwiseOperand* operand;
  std::int64_t batch, x, y;  ///< strides
  int offset = 0;            ///< of a vector, in floats
  int extent = 0;            ///< of a vector
  [[nodiscard]] bool is_vector() const { return x == 0 || y == 0; }
};

int rows_of_consumer(const CudaMatmulChoice& choice) {
  return choice.ping_pong ? choice.tile_x : choice.tile_x / 2;
}

std::vector<Term> terms_of(const CudaMatmulProblem& problem, const CudaMatmulChoice& choice) {
  std::vector<Term> terms;
  int offset = 0;
  for (const PointwiseOperand& operand : problem.epilogue.operands) {
    const Dims& s = operand.strides;
    Term term{&operand, s[0], choice.swapped ? s[2] : s[1], choice.swapped ? s[1] : s[2]};
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
  int out_bytes = 0;      ///< buffers of a consumer
  int vector_floats = 0;  ///< of a consumer
  int stages = 0;
  int shared_bytes = 0;
  bool store_boxes = false;
};

SharedPlan plan_with(const CudaMatmulProblem& problem, const CudaMatmulChoice& choice, const CudaCard& card,
                     int chunk) {
  SharedPlan plan;
  plan.chunk = chunk;
  const int own_y = choice.tile_y / choice.split;
  plan.store_boxes = problem.out != DType::f32 && problem.n % 8 == 0;
  const int received = (choice.split - 1) * rows_of_consumer(choice) * own_y * 4;
  const int buffers = plan.store_boxes ? 2 * 64 * chunk * 2 : 0;
  plan.out_bytes = (std::max(received, buffers) + 1023) / 1024 * 1024;
  for (const Term& term : terms_of(problem, choice)) {
    if (term.is_vector()) plan.vector_floats = term.offset + (term.extent + 3) / 4 * 4;
  }
  const int stage = (choice.tile_x + choice.tile_y) * stage_row;
  const int fixed = 1024 + 2 * plan.out_bytes + 2 * plan.vector_floats * 4 + 16;  // 1024 to align, 2 barriers
  plan.stages = static_cast<int>((card.shared_bytes - fixed) / (stage + 16));
  plan.stages =
      static_cast<int>(std::min<std::int64_t>(plan.stages, std::max<std::int64_t>(2, steps_of(problem) * 2)));
  plan.shared_bytes = fixed + plan.stages * (stage + 16);
  return plan;
}

/// Wide chunks of results, unless narrow ones leave room for a stage that counts.
SharedPlan plan_of(const CudaMatmulProblem& problem, const CudaMatmulChoice& choice, const CudaCard& card) {
  const int own_y = choice.tile_y / choice.split;
  SharedPlan best;
  for (const int chunk : {64, 32, 16, 8}) {
    if (own_y % chunk != 0) continue;
    const SharedPlan plan = plan_with(problem, choice, card, chunk);
    if (best.chunk == 0)
      best = plan;
    else if (chunk >= 32 && best.stages < enough_stages && plan.stages > best.stages)
      best = plan;
  }
  return best;
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
  define("K", problem.k);
  define("BATCH", problem.batch);
  define("ELEMENT_BYTES", element_bytes(problem));
  define("X_DEPTH_FAST", sides.x->depth_fast);
  define("Y_DEPTH_FAST", sides.y->depth_fast);
  define("X_BATCHED", sides.x->batch_pitch != 0);
  define("Y_BATCHED", sides.y->batch_pitch != 0);
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
  define("CHUNK", plan.chunk);
  define("OUT_BYTES", plan.out_bytes);
  define("VECTOR_FLOATS", plan.vector_floats);
  define("WAITS_TO_READ", problem.epilogue_reads_activations);
  return text + fmt::format("typedef {} Out;\n", dtype_name(problem.out));
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
  std::string members, loads;
  for (const Term& term : terms) {
    if (term.is_vector()) continue;
    members += fmt::format("  Pair<{}> {};\n", dtype_name(term.operand->dtype), term.operand->name);
    loads += load_text(term, y_is_even);
  }
  return fmt::format(
      "struct Loaded {{\n{}}};\n"
      "DEVICE Loaded load_operands(const Arguments& a, int batch, int x, int y) {{\n"
      "  Loaded loaded = {{}};\n  if (x >= X || y >= Y) return loaded;\n{}  return loaded;\n}}\n",
      members, loads);
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
  const int depth = stage_row / bytes;
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

/// An empty map where results leave by plain stores.
CudaTensorMap result_map(const CudaMatmulProblem& problem, const CudaMatmulChoice& choice,
                         const SharedPlan& plan) {
  CudaTensorMap map;
  if (!plan.store_boxes) return map;
  const int chunk = plan.chunk;
  const auto bytes = static_cast<std::int64_t>(dtype_size(problem.out));
  map.argument = problem.out_argument;
  map.dtype = problem.out;
  map.dims[0] = problem.n;
  map.dims[1] = problem.m;
  map.dims[2] = problem.batch;
  map.pitches[0] = problem.n * bytes;
  map.pitches[1] = problem.n * problem.m * bytes;
  map.box[0] = choice.swapped ? 64 : chunk;
  map.box[1] = choice.swapped ? chunk : 64;
  map.swizzle = choice.swapped || chunk == 64 ? 128 : chunk == 8 ? 0 : 2 * chunk;
  return map;
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

CudaTemplate make_cuda_matmul(const CudaMatmulProblem& problem, const CudaMatmulChoice& choice,
                              const CudaCard& card) {
  if (const std::string refusal = refuse_cuda_matmul(problem, choice, card); !refusal.empty())
    throw UnsupportedError("matmul {} cannot be made: {}", choice.to_string(), refusal);
  const Sides sides = sides_of(problem, choice.swapped);
  const SharedPlan plan = plan_of(problem, choice, card);
  const std::vector<Term> terms = terms_of(problem, choice);
  CudaTemplate result;
  result.name = fmt::format("matmul_{}_{}x{}x{}x{}", dtype_name(problem.element), problem.batch, problem.m,
                            problem.n, problem.k);
  result.source =
      fmt::format("#define KERNEL {}\n{}{}", result.name, embedded::cuda_hopper, embedded::cuda_pointwise);
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
  result.maps = {operand_map(problem, *sides.x, sides.x_extent, choice.tile_x / choice.cluster_y),
                 operand_map(problem, *sides.y, sides.y_extent, choice.tile_y / choice.cluster_x),
                 result_map(problem, choice, plan)};
  result.pointers = {problem.out_argument};
  for (const Term& term : terms) result.pointers.push_back(term.operand->input);
  return result;
}

}  // namespace sylvite
