#include "schedules/cuda/matmul.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/rounding.h"
#include "schedules/cuda/matmul_maps.h"
#include "schedules/cuda/matmul_plan.h"
#include "schedules/cuda/sources.h"

// The head of schedules/cuda/matmul.cuh: constants, the product instruction, and the epilogue's functions.

namespace sylvite {
namespace {

constexpr int most_sums = 192;  // registers of sums that a thread can hold
constexpr int threads_of_consumer = 128;

/// A matrix is a window of one tap. A gradient's taps are batches.
std::string windows_text(const CudaMatmulProblem& problem) {
  CudaMatmulProblem::Windows windows;
  windows.channels = problem.k;
  if (problem.windows) windows = *problem.windows;
  const std::int64_t batch_taps = windows.taps(), batch_taps_x = windows.taps_x;
  if (problem.part != 0) {
    windows.channels = problem.part;
    windows.taps_x = windows.taps_y = windows.taps_z = 1;
  }
  const auto pair = [](const char* name, std::int64_t x, std::int64_t y) {
    return fmt::format("constexpr int {0}_X = {1}, {0}_Y = {2};\n", name, x, y);
  };
  return fmt::format("constexpr int CHANNELS = {};\n", problem.k_is_open ? 0 : windows.channels) +
         fmt::format("constexpr int PART = {}, BATCH_TAPS = {}, BATCH_TAPS_X = {};\n",
                     problem.k_is_open ? 0 : problem.part, batch_taps, batch_taps_x) +
         fmt::format(
             "constexpr int IMAGES = {}, FRAMES = {}, OUT_FRAMES = {}, TAPS_Z = {}, STRIDE_Z = {}, "
             "DILATION_Z = {}, PAD_Z = {};\n",
             windows.spans_frames() ? windows.images : 1, windows.frames, windows.out_frames, windows.taps_z,
             windows.stride_z, windows.dilation_z, windows.pad_z) +
         pair("TAPS", windows.taps_x, windows.taps_y) + pair("STRIDE", windows.stride_x, windows.stride_y) +
         pair("DILATION", windows.dilation_x, windows.dilation_y) + pair("PAD", windows.pad_x, windows.pad_y);
}

int role_of(const CudaMatmulProblem& problem, const MatmulOperand& operand) {
  enum Role { matrix, filter, windows, pixels, pixels_of_windows };
  if (problem.part != 0) return has_windows(problem, operand) ? pixels_of_windows : pixels;
  return has_windows(problem, operand) ? windows : is_filter(problem, operand) ? filter : matrix;
}

/// In any run.
bool y_is_even(const CudaMatmulProblem& problem, const CudaMatmulChoice& choice) {
  const bool is_open = choice.swapped ? problem.is_open : problem.n_is_open;
  return sides_of(problem, choice.swapped).y_extent % 2 == 0 && !is_open;
}

std::string constants_text(const CudaMatmulProblem& problem, const CudaMatmulChoice& choice,
                           const SharedMemoryPlan& plan) {
  const MatmulSides sides = sides_of(problem, choice.swapped);
  std::string text;
  const auto define = [&](const char* name, std::int64_t value) {
    text += fmt::format("constexpr int {} = {};\n", name, value);
  };
  define("ELEMENT_BYTES", element_bytes(problem));
  define("EXACT", problem.exact);
  define("X_DEPTH_FAST", sides.x->depth_fast);
  define("Y_DEPTH_FAST", sides.y->depth_fast);
  // Batches of parts, and of frames, are told by both sides' roles.
  const bool by_role = problem.part != 0 || (problem.windows && problem.windows->spans_frames());
  define("X_BATCHED", by_role || sides.x->batch_pitch != 0);
  define("Y_BATCHED", by_role || sides.y->batch_pitch != 0);
  define("X_EACH", sides.x->each);
  define("Y_EACH", sides.y->each);
  define("X_PERIOD", sides.x->period);
  define("Y_PERIOD", sides.y->period);
  define("X_INNER", sides.x->inner);
  define("Y_INNER", sides.y->inner);
  define("X_ROLE", role_of(problem, *sides.x));
  define("Y_ROLE", role_of(problem, *sides.y));
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
  define("Y_IS_EVEN", y_is_even(problem, choice));
  define("STORE_BOXES", plan.store_boxes);
  define("STORE_ROWS", plan.store_rows);
  define("CHUNK", plan.chunk);
  define("RESIDUAL", plan.residual);
  define("BESIDE_BYTES", plan.beside_bytes);
  define("BESIDE_AT", plan.beside_at);
  define("BUFFERS", plan.buffers);
  define("BUFFERS_AT", plan.buffers_at);
  define("OUT_BYTES", plan.out_bytes);
  define("VECTOR_FLOATS", plan.vector_floats);
  define("GROUPS", problem.groups);
  define("GROUP_ROWS", problem.groups > 1 ? problem.n : 0);  // of the filter
  define("WAITS_TO_READ", problem.epilogue_reads_activations);
  return text + windows_text(problem) + fmt::format("typedef {} Out;\n", dtype_name(problem.out));
}

/// wgmma wants every sum named.
std::string multiply_text(const CudaMatmulProblem& problem, const CudaMatmulChoice& choice) {
  const MatmulSides sides = sides_of(problem, choice.swapped);
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
  const int words = problem.exact ? 4 : 1;  // of x: a fragment, or where it lies
  const std::string fragment = problem.exact
                                   ? fmt::format("{{%{}, %{}, %{}, %{}}}", sums, sums + 1, sums + 2, sums + 3)
                                   : fmt::format("%{}", sums);
  return fmt::format(
      "DEVICE void multiply(float (&sums)[{0}], {10}, u64 y, int add) {{\n"
      "  asm volatile(\"{{.reg .pred p; setp.ne.b32 p, %{5}, 0;\\n\"\n"
      "    \"wgmma.mma_async.sync.aligned.m64n{1}k{2}.f32.{3}.{3} {{{4}}}, {6}, %{7}, p, 1, 1{8};}}\"\n"
      "    : {9}\n    : {11}, \"l\"(y), \"r\"(add));\n}}\n",
      sums, choice.tile_y, tf32 ? 8 : 16, type, registers, sums + words + 1, fragment, sums + words, majors,
      operands, problem.exact ? "const u32 (&x)[4]" : "u64 x",
      problem.exact ? R"("r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]))" : R"("l"(x))");
}

std::string source_text(const std::string& name, const CudaMatmulProblem& problem,
                        const CudaMatmulChoice& choice, const SharedMemoryPlan& plan,
                        const std::vector<EpilogueTerm>& terms) {
  std::string text = fmt::format("#define KERNEL {}\n{}{}{}", name, embedded::cuda_card,
                                 embedded::cuda_hopper, embedded::cuda_pointwise);
  if (problem.element == DType::f32 && !problem.exact) text += "#define gelu gelu_near\n";
  text += constants_text(problem, choice, plan) + multiply_text(problem, choice) +
          epilogue_text(problem, terms,
                        {"", product_extents(problem, choice.swapped), choice.swapped, threads_of_consumer,
                         y_is_even(problem, choice)});
  for (const std::string_view part :
       {embedded::cuda_matmul_tiles, problem.exact ? embedded::cuda_matmul_exact : embedded::cuda_matmul_once,
        embedded::cuda_matmul_results, embedded::cuda_matmul})
    text += part;
  return text;
}

/// A grid that stays: each cluster of blocks takes one tile after another. A split takes all at once.
LaunchShape shape_of(const CudaMatmulProblem& problem, const CudaMatmulChoice& choice, const Card& card) {
  const MatmulSides sides = sides_of(problem, choice.swapped);
  const BlockCount tiles =
      BlockCount(sides.x_extent).in_parts_of(std::int64_t{choice.tile_x} * choice.cluster_x) *
      BlockCount(sides.y_extent).in_parts_of(std::int64_t{choice.tile_y} * choice.cluster_y) * problem.batch;
  LaunchShape shape;
  shape.cluster = static_cast<unsigned>(choice.cluster_x * choice.cluster_y * choice.split);
  shape.set_blocks(tiles * shape.cluster);
  if (choice.split == 1) shape.most = card.multiprocessors / shape.cluster * shape.cluster;
  shape.block[0] = 384;  // one warpgroup loads, two multiply
  shape.programmatic = choice.programmatic;
  return shape;
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
                               const Card& card) {
  if (std::string refusal = refuse_tensor_maps(problem); !refusal.empty()) return refusal;
  const MatmulSides sides = sides_of(problem, choice.swapped);
  const int unit_x = choice.ping_pong ? 64 : 128;
  if (choice.tile_x % unit_x != 0 || choice.tile_y % 8 != 0 || choice.tile_y > 256 || choice.tile_x > 256)
    return fmt::format("a tile is a multiple of {} by a multiple of 8, at most 256 x 256", unit_x);
  if (rows_of_consumer(choice) / 64 * choice.tile_y / 2 * (problem.exact ? 3 : 1) > most_sums)
    return "its sums do not fit into registers";
  if (problem.exact && problem.element != DType::f32) return "only f32 is multiplied three times";
  if (problem.exact && rows_of_consumer(choice) != 64) return "a consumer multiplies 64 rows three times";
  if (choice.split > 1 && (choice.ping_pong || choice.cluster_x * choice.cluster_y > 1))
    return "a split takes the whole cluster, and both consumers for a tile";
  if (choice.tile_y % (8 * choice.split) != 0) return "the blocks of a split own multiples of 8 columns";
  if (steps_of(problem) < choice.split) return "there is too little depth to split";
  const auto slices = [&](const MatmulOperand& operand, int tile, int parts) {
    const int unit = operand.depth_fast ? 8 : 64;
    return tile % (parts * unit) == 0;
  };
  if (!slices(*sides.x, choice.tile_x, choice.cluster_y) ||
      !slices(*sides.y, choice.tile_y, choice.cluster_x))
    return "an operand's tile cannot be cut for the loads";
  if (plan_of(problem, choice, card).stages < 2) return "two stages do not fit into shared memory";
  return "";
}

int cuda_matmul_boxed(const CudaMatmulProblem& problem, const CudaMatmulChoice& choice, const Card& card) {
  return plan_of(problem, choice, card).boxed();
}

CudaTemplate make_cuda_matmul(const CudaMatmulProblem& problem, const CudaMatmulChoice& choice,
                              const Card& card) {
  if (const std::string refusal = refuse_cuda_matmul(problem, choice, card); !refusal.empty())
    throw UnsupportedError("matmul {} cannot be made: {}", choice.to_string(), refusal);
  const SharedMemoryPlan plan = plan_of(problem, choice, card);
  const std::vector<EpilogueTerm> terms = terms_of(problem, choice, plan.boxed());
  LaunchSpec launch;
  launch.entry = product_entry("matmul", problem);
  launch.shape = shape_of(problem, choice, card);
  launch.shape.shared_bytes = static_cast<unsigned>(plan.shared_bytes);
  const MatmulSides sides = sides_of(problem, choice.swapped);
  launch.maps = {side_map(problem, *sides.x, sides.x_extent, choice.tile_x / choice.cluster_y),
                 side_map(problem, *sides.y, sides.y_extent, choice.tile_y / choice.cluster_x)};
  for (CudaTensorMap& map : launch.maps) map.rounds_to_tf32 = problem.element == DType::f32 && !problem.exact;
  for (CudaTensorMap& map : result_maps(problem, choice, plan, terms)) launch.maps.push_back(map);
  launch.pointers = {problem.out_argument};
  for (const EpilogueTerm& term : terms) launch.pointers.push_back(term.operand->input);
  launch.numbers = extent_numbers(product_extents(problem, choice.swapped));
  return {{source_text(launch.entry, problem, choice, plan, terms)}, std::move(launch)};
}

}  // namespace sylvite
