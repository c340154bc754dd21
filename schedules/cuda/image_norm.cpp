#include "schedules/cuda/image_norm.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "base/rounding.h"
#include "frontend/graph/views.h"
#include "schedules/cuda/card_limits.h"
#include "schedules/cuda/conv.h"
#include "schedules/cuda/rated.h"
#include "schedules/cuda/sources.h"

namespace sylvite {
namespace {

constexpr std::int64_t most_norm_extent = 1LL << 30;  // numbered by int
constexpr int most_held_vectors = 12, most_cluster = 8;

/// Channels that a thread takes together: 16 bytes of what is normed, or a divisor of the channels.
std::int64_t vector_of(const CudaImageNormProblem& problem) {
  std::int64_t vector = 16 / static_cast<std::int64_t>(dtype_size(problem.x));
  while (problem.channels % vector != 0) vector /= 2;
  return vector;
}

std::int64_t strips_of(const CudaImageNormProblem& problem, std::int64_t lanes) {
  return problem.channels / (lanes * vector_of(problem));
}

/// Shared memory of a block: parts and totals of channels, five numbers of groups.
std::int64_t bytes_of(const CudaImageNormProblem& problem, std::int64_t lanes, std::int64_t deep) {
  const std::int64_t width = lanes * vector_of(problem);
  return 4 * ((deep + 1) * width + 5 * (width / problem.members));
}

/// Threads side by side whose channels are whole groups, and of which whole numbers make up the channels.
std::vector<std::int64_t> fitting_lanes(const CudaImageNormProblem& problem) {
  const std::int64_t vector = vector_of(problem), vectors = problem.channels / vector;
  std::vector<std::int64_t> fitting;
  for (std::int64_t lanes = 1; lanes <= vectors; ++lanes)
    if (vectors % lanes == 0 && lanes * vector % problem.members == 0) fitting.push_back(lanes);
  return fitting;
}

std::string read_norm(const Kernel& kernel, CudaImageNormProblem& problem) {
  const Graph& body = kernel.body;
  const Node& node = body.node(kernel.anchor);
  const ValueId in = node.inputs[0], made = node.outputs[0], out = body.outputs[0];
  const TensorType& type = body.type(in);
  if (!is_channels_last(type) || !is_channels_last(body.type(made)) || !is_channels_last(body.type(out)))
    return "its channels do not lie innermost";
  if (body.type(out).dims() != type.dims()) return "its epilogue changes the shape";
  CudaGroups groups = ordered(type.dims(), channels_last_order(type.shape.size()));
  groups.first = 1;
  groups.last = groups.dims.size() - 1;
  problem.images = groups.dims.front();
  problem.pixels = product(groups.dims, 1, groups.last);
  problem.channels = groups.dims.back();
  problem.members = problem.channels / node.attributes.integer("groups");
  problem.is_open = kernel.open != nullptr;
  problem.has_open_pixels = are_open(kernel, in, groups, groups.first, groups.last);
  std::string refusal = read_work(body, no_value, in, groups, "prologue", false, problem.prologue,
                                  problem.prologue_operands, kernel.open.get());
  if (refusal.empty())
    refusal = read_work(body, made, out, groups, "epilogue", problem.out != DType::f32, problem.epilogue,
                        problem.epilogue_operands, kernel.open.get());
  for (std::vector<CudaOperand>* operands : {&problem.prologue_operands, &problem.epilogue_operands})
    if (refusal.empty() && problem.has_open_pixels)
      refusal = follow_rows(problem.images, problem.pixels, *operands);
  rename_counts("prologue", problem.prologue);
  rename_counts("epilogue", problem.epilogue);
  for (CudaOperand& operand : problem.epilogue_operands) operand.of.name += "_after";
  for (PointwiseOperand& of : problem.epilogue.operands) of.name += "_after";
  return refusal;
}

std::vector<CudaExtent> extents_of(const CudaImageNormProblem& problem) {
  std::vector<CudaExtent> extents = {{"rows", problem.pixels, problem.has_open_pixels}};
  for (const PointwiseText* text : {&problem.prologue, &problem.epilogue})
    for (const PointwiseCount& count : text->counts) extents.push_back({count.name, count.extent, true});
  return extents;
}

std::string functions_text(const CudaImageNormProblem& problem) {
  std::string before, after;
  for (const CudaOperand& operand : problem.prologue_operands)
    before += load_text(operand, static_cast<int>(vector_of(problem)), "false");
  for (const CudaOperand& operand : problem.epilogue_operands)
    after += load_text(operand, static_cast<int>(vector_of(problem)), "false");
  return problem.prologue.function + problem.epilogue.function +
         fmt::format(
             "DEVICE void load_x(const Arguments& a, long long batch, int row, int column, float "
             "(&x)[VECTOR]) {{\n  [[maybe_unused]] const Extents e = extents_of(a);\n{}"
             "  for (int j = 0; j < VECTOR; j++) x[j] = {};\n}}\n"
             "DEVICE void finish(const Arguments& a, long long batch, int row, int column, float "
             "(&x)[VECTOR]) {{\n  const Extents e = extents_of(a);\n{}"
             "  for (int j = 0; j < VECTOR; j++) x[j] = {};\n"
             "  store_vector(a.out + (batch * e.rows + row) * COLUMNS + column, x);\n}}\n",
             before, call_text(problem.prologue, "prologue", "0.f"), after,
             call_text(problem.epilogue, "epilogue", "x[j]"));
}

/// Large images of which no cluster holds one: their threads wait for sums while nothing moves, and read twice all the same. Sums
/// of them and work with these, a kernel each, keep all of the card moving. Not of f32, where sums of squares alone would cost
/// digits that a mean far from zero leaves.
bool is_better_in_two(const CudaImageNormProblem& problem) {
  constexpr std::int64_t least_bytes = 16 << 20;
  const std::int64_t bytes =
      problem.images * problem.pixels * problem.channels * static_cast<std::int64_t>(dtype_size(problem.x));
  return problem.x != DType::f32 && bytes >= least_bytes &&
         std::ranges::none_of(cuda_image_norm_choices(problem), [&](const CudaImageNormChoice& choice) {
           return std::int64_t{choice.held} * choice.cluster * choice.deep >= problem.pixels;
         });
}

/// How far a choice is from the best guess.
double penalty_of(const CudaImageNormProblem& problem, const CudaImageNormChoice& choice) {
  constexpr double multiprocessors = 132, line_bytes = 128, well_held = 8, well_filled = 128;
  const double step = choice.cluster * choice.deep;
  const auto pixels = static_cast<double>(problem.pixels);
  const auto blocks = static_cast<double>(problem.images * strips_of(problem, choice.lanes) * choice.cluster);
  const auto bytes =
      static_cast<double>(choice.lanes * vector_of(problem)) * static_cast<double>(dtype_size(problem.x));
  // However few pixels are read again, all threads wait for them twice.
  const double left = std::max(0., 1 - choice.held * step / pixels),
               read_again = left == 0 ? 0 : 2 + 8 * left;
  return 4 * std::max(0., std::log2(2 * multiprocessors / blocks)) + read_again +
         1.5 * std::max(0., std::log2(line_bytes / bytes)) +
         std::max(0., std::log2(well_held / choice.held)) +
         std::abs(std::log2(choice.lanes * choice.deep / well_filled)) + 0.5 * std::log2(choice.cluster);
}

}  // namespace

Reading<CudaImageNormProblem> read_cuda_image_norm(const Kernel& kernel) {
  if (kernel.kind != KernelClass::normalization) return {{}, "it is no normalisation"};
  const Graph& body = kernel.body;
  const Node& node = body.node(kernel.anchor);
  if (node.op != Op::layer_norm || !node.attributes.has("groups") || node.attributes.integer("axis") != 1)
    return {{}, "it norms no groups of channels"};
  if (body.outputs.size() != 1) return {{}, "it has several outputs"};
  CudaImageNormProblem problem;
  problem.x = body.type(node.inputs[0]).dtype;
  problem.out = body.type(body.outputs[0]).dtype;
  problem.epsilon = node.attributes.real("epsilon");
  problem.out_argument = static_cast<int>(body.inputs.size());
  if (!is_float_storage(problem.out)) return {problem, "its result is no float"};
  if (body.type(node.inputs[0]).element_count() == 0) return {problem, "it is empty"};
  std::string refusal = read_norm(kernel, problem);
  if (!refusal.empty()) return {problem, refusal};
  if (problem.pixels > most_norm_extent || problem.channels > most_norm_extent)
    return {problem, "the extents are large"};
  if (problem.images * strips_of(problem, 1) * most_cluster > most_blocks_of_grid)
    return {problem, "the grid would be large"};
  if (vector_of(problem) * static_cast<std::int64_t>(dtype_size(problem.x)) < 4)
    return {problem, "its channels are odd"};
  if (cuda_image_norm_choices(problem).empty()) return {problem, "no whole groups of channels fit a block"};
  return {problem, ""};
}

std::string refuse_large_image_norm(const Kernel& kernel) {
  const Reading<CudaImageNormProblem> reading = read_cuda_image_norm(kernel);
  return reading.refusal.empty() && is_better_in_two(reading.problem) ? "its images are better folded ahead"
                                                                      : reading.refusal;
}

std::string CudaImageNormChoice::to_string() const {
  return fmt::format("lanes {} deep {} held {} cluster {}", lanes, deep, held, cluster);
}

std::vector<CudaImageNormChoice> cuda_image_norm_choices(const CudaImageNormProblem& problem,
                                                         int most_blocks) {
  constexpr std::size_t most_choices = 40;
  constexpr int least_threads = 64, most_threads = 512, warp = 32;
  std::vector<Rated<CudaImageNormChoice>> rated;
  for (const std::int64_t lanes : fitting_lanes(problem)) {
    for (const int deep : {1, 2, 4, 8, 16, 32, 64, 128}) {
      const std::int64_t threads = lanes * deep;
      if (threads < least_threads || threads > most_threads || threads % warp != 0 ||
          bytes_of(problem, lanes, deep) > shared_without_leave)
        continue;
      for (const int cluster : {1, 2, 4, 8}) {
        if (cluster > most_blocks ||
            std::int64_t{cluster} * deep >= 2 * std::max<std::int64_t>(deep, problem.pixels))
          continue;
        const std::int64_t held =
            std::min<std::int64_t>(most_held_vectors, ceil_div(problem.pixels, cluster * deep));
        const CudaImageNormChoice choice{static_cast<int>(lanes), deep, static_cast<int>(held), cluster};
        rated.emplace_back(penalty_of(problem, choice), choice);
      }
    }
  }
  return best_first(std::move(rated), most_choices);
}

CudaTemplate make_cuda_image_norm(const CudaImageNormProblem& problem, const CudaImageNormChoice& choice) {
  const std::int64_t strips = strips_of(problem, choice.lanes);
  const bool holds_all =
      !problem.has_open_pixels && std::int64_t{choice.held} * choice.cluster * choice.deep >= problem.pixels;
  CudaTemplate result;
  LaunchSpec& launch = result.launch;
  launch.entry = entry_name(fmt::format("image_norm_{}", dtype_name(problem.out)), problem.is_open,
                            {problem.pixels, problem.channels});
  const std::vector<CudaExtent> extents = extents_of(problem);
  result.source.text = fmt::format("#define KERNEL {}\n{}{}{}{}", launch.entry, embedded::cuda_card,
                                   embedded::cuda_hopper, embedded::cuda_pointwise, embedded::cuda_vector);
  result.source.text += fmt::format(
      "constexpr int COLUMNS = {}, STRIPS = {}, MEMBERS = {}, VECTOR = {}, LANES = {}, DEEP = {}, HELD = {}, "
      "CLUSTER = {};\nconstexpr bool HOLDS_ALL = {};\nconstexpr float EPSILON = {:a}f;\n"
      "typedef {} X;\ntypedef {} Out;\n",
      problem.channels, strips, problem.members, vector_of(problem), choice.lanes, choice.deep, choice.held,
      choice.cluster, holds_all, static_cast<float>(problem.epsilon), dtype_name(problem.x),
      dtype_name(problem.out));
  const std::vector<const CudaOperand*> operands =
      operands_in({&problem.prologue_operands, &problem.epilogue_operands});
  result.source.text += arguments_text(operands, extents) + functions_text(problem);
  result.source.text += embedded::cuda_image_norm;
  launch.shape.set_blocks(BlockCount(problem.images) * strips * choice.cluster);
  launch.shape.block[0] = static_cast<unsigned>(choice.lanes * choice.deep);
  launch.shape.cluster = static_cast<unsigned>(choice.cluster);
  launch.shape.programmatic = true;
  pass_arguments(launch, problem.out_argument, operands, extents);
  return result;
}

}  // namespace sylvite
