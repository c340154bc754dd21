#include "schedules/cuda/attention_gradient.h"

#include <algorithm>
#include <array>
#include <numbers>

#include "base/error.h"
#include "base/rounding.h"
#include "frontend/graph/views.h"
#include "frontend/ops/attention_scale.h"
#include "schedules/cuda/attention_text.h"
#include "schedules/cuda/card_limits.h"
#include "schedules/cuda/sources.h"

namespace sylvite {
namespace {

using Of = AttentionGradientOf;
using Operand = CudaAttentionProblem::Operand;

constexpr std::int64_t most_gradient_depth = 128;
constexpr std::int64_t gradient_slice = 64;  // columns of a tile that lie together, for Hopper

/// The number of an input that lies densely, as it is read.
std::string read_dense(const Graph& body, ValueId id, int& number) {
  const std::optional<StridedView> view = strided_view(body, id);
  if (!view || view->offset != 0 || view->strides != dense_strides(view->dims))
    return fmt::format("'{}' does not lie densely", body.value(id).name);
  number = view->input;
  return "";
}

std::string read_extents(const Graph& body, const Node& node, CudaAttentionGradientProblem& problem) {
  const Dims q = body.type(node.inputs[0]).dims(), k = body.type(node.inputs[1]).dims();
  if (std::string refusal = read_attention_extents(q, k, problem); !refusal.empty()) return refusal;
  if (problem.depth > most_gradient_depth || problem.depth % 8 != 0)
    return fmt::format("it is {} wide, the template takes multiples of 8 up to {}", problem.depth,
                       most_gradient_depth);
  if (problem.batch * problem.heads * ceil_div(std::max(problem.queries, problem.keys), std::int64_t{16}) >
      most_blocks_of_grid)
    return "the grid would be large";
  return "";
}

std::string read_gradient_operands(const Kernel& kernel, CudaAttentionGradientProblem& problem) {
  const Graph& body = kernel.body;
  const Node& node = body.node(kernel.anchor);
  std::string refusal = read_attention_operand(body, node.inputs[0], problem.q);
  if (refusal.empty()) refusal = read_attention_operand(body, node.inputs[1], problem.k);
  const std::size_t mask = problem.of == Of::sums ? 2 : 6;
  if (refusal.empty() && node.inputs.size() > mask && node.inputs[mask] != no_value)
    refusal = read_attention_mask(body, node.inputs[mask], body.type(node.inputs[0]).dims(), problem.keys,
                                  problem.mask);
  if (problem.of == Of::sums)
    return refusal.empty() && body.outputs[0] != node.outputs[0] ? "something follows it" : refusal;
  if (refusal.empty()) refusal = read_attention_operand(body, node.inputs[2], problem.v);
  if (refusal.empty()) refusal = read_attention_operand(body, node.inputs[3], problem.gradient);
  if (refusal.empty()) refusal = read_dense(body, node.inputs[4], problem.sums);
  if (refusal.empty()) refusal = read_dense(body, node.inputs[5], problem.products);
  if (refusal.empty()) refusal = read_attention_result(kernel, problem.out);
  return refusal;
}

/// Operands as the kernel names them: what rows are, and what columns are.
std::array<const Operand*, 4> sides(const CudaAttentionGradientProblem& p) {
  static constexpr Operand none = {.argument = -1};
  switch (p.of) {
    case Of::queries:
      return {&p.q, &p.gradient, &p.k, &p.v};
    case Of::keys:
      return {&p.k, &p.v, &p.q, &p.gradient};
    case Of::values:
      return {&p.k, &none, &p.q, &p.gradient};
    default:
      return {&p.q, &none, &p.k, &none};
  }
}

constexpr std::array<const char*, 4> side_names = {"r1", "r2", "c1", "c2"};

bool rows_are_queries(const CudaAttentionGradientProblem& problem) {
  return problem.of == Of::queries || problem.of == Of::sums;
}

/// Tensors of which a block has rows, or columns, in shared memory.
std::int64_t row_operands(const CudaAttentionGradientProblem& problem) {
  return problem.of == Of::queries || problem.of == Of::keys ? 2 : 1;
}
std::int64_t column_operands(const CudaAttentionGradientProblem& problem) {
  return problem.of == Of::sums ? 1 : 2;
}

std::int64_t gradient_shared_bytes(const CudaAttentionGradientProblem& problem,
                                   const CudaAttentionGradientChoice& choice) {
  // Two floats of each column: of each stage, or of two blocks of each warpgroup.
  const std::int64_t copies = choice.hopper ? choice.warps / 2 : choice.stages;
  const std::int64_t known = rows_are_queries(problem) ? 0 : copies * 2 * 4 * choice.block;
  const std::int64_t pitch = choice.hopper ? 2 * round_up(problem.depth, gradient_slice)
                                           : 2 * round_up(problem.depth, std::int64_t{16}) + 16;
  const std::int64_t rows = row_operands(problem) * 16 * choice.warps;
  const std::int64_t columns = column_operands(problem) * choice.stages * choice.block;
  const std::int64_t beside = choice.hopper ? 1024 + 8 * (1 + 2 * choice.stages) : 0;
  return pitch * (rows + columns) + known + beside;
}

/// Blocks of columns that leave the least of the last one empty; a block costs as much as a few columns by itself.
int block_of(std::int64_t columns, std::initializer_list<int> blocks) {
  constexpr std::int64_t cost_of_block = 8;
  return *std::ranges::min_element(
      blocks, {}, [&](int block) { return ceil_div(columns, block) * (block + cost_of_block); });
}

/// By Hopper's instructions.
std::vector<CudaAttentionGradientChoice> hopper_choices(const CudaAttentionGradientProblem& problem) {
  const bool by_query = rows_are_queries(problem);
  const std::int64_t columns = by_query ? problem.keys : problem.queries;
  if (problem.depth > gradient_slice)
    return {{true, 4, block_of(columns, {64, 48}), 2, 2}, {true, 8, 64, 2, 1}, {true, 4, 32, 2, 3}};
  return {{true, 4, block_of(columns, {64, 48}), 2, 4},
          {true, 8, block_of(columns, {64, 48}), 3, 2},
          {true, 4, block_of(columns, {64, 80}), 2, 3},
          {true, 4, block_of(columns, {96, 112, 128}), 2, 2}};
}

/// What a mask says of blocks of columns has a bit each; of open ones there are no more than these words have.
constexpr std::int64_t open_flag_words = 32;

std::int64_t flag_words(const CudaAttentionGradientProblem& problem,
                        const CudaAttentionGradientChoice& choice) {
  if (!problem.mask) return 1;
  const std::int64_t columns = rows_are_queries(problem) ? problem.keys : problem.queries;
  const std::int64_t words = ceil_div(columns, std::int64_t{32} * choice.block);
  if (!problem.is_open) return words;
  if (words > open_flag_words)
    throw UnsupportedError("its mask has more than {} columns", open_flag_words * 32 * choice.block);
  return open_flag_words;
}

/// `with_lies`: how tensors lie is read by the kernel, not by tensor maps.
std::vector<CudaExtent> extents_of(const CudaAttentionGradientProblem& problem, bool with_lies) {
  const bool by_query = rows_are_queries(problem), is_open = problem.is_open;
  std::vector<CudaExtent> extents = {{"batch", problem.batch, is_open},
                                     {"rows", by_query ? problem.queries : problem.keys, is_open},
                                     {"columns", by_query ? problem.keys : problem.queries, is_open}};
  add_mask_extents(problem.mask, is_open, extents);
  if (!with_lies) return extents;
  const std::array<const Operand*, 4> operands = sides(problem);
  for (std::size_t i = 0; i < operands.size(); ++i)
    add_lie_extents(side_names[i], *operands[i], is_open, extents);
  add_lie_extents("out", problem.out, is_open, extents);
  return extents;
}

/// What both kernels read.
std::string gradient_constants(const CudaAttentionGradientProblem& problem,
                               const CudaAttentionGradientChoice& choice) {
  const std::vector<CudaExtent> extents = extents_of(problem, !choice.hopper);
  std::string text = attention_mask_type(problem.mask);
  const auto define = [&](const char* name, std::int64_t value) {
    text += fmt::format("constexpr int {} = {};\n", name, value);
  };
  define("HEADS", problem.heads);
  define("FLAG_WORDS", flag_words(problem, choice));
  define("DEPTH", problem.depth);
  define("ROWS_IN_L2", rows_in_l2(4 * problem.depth));  // two tensors of 16 bits
  define("OF", static_cast<int>(problem.of));
  define("CAUSAL", problem.causal ? 1 : 0);
  define("BLOCK", choice.block);
  define("WARPS", choice.warps);
  define("STAGES", choice.stages);
  define("BLOCKS_PER_MULTIPROCESSOR", choice.resident);
  return text + fmt::format(
                    "constexpr float SCALE = {:a}f, SUM_SCALE = {:a}f;\ntypedef {} Element;\n"
                    "struct Arguments {{\n  Element* out;\n  const Element *r1, *r2, *c1, *c2;\n"
                    "  const float *sums, *products;\n  const Mask* mask;\n{}}};\n{}",
                    static_cast<float>(problem.scale * std::numbers::log2e),
                    static_cast<float>(problem.scale), dtype_name(problem.element), extent_members(extents),
                    extents_text(extents));
}

/// Of single warps.
std::string warps_text(const CudaAttentionGradientProblem& problem,
                       const CudaAttentionGradientChoice& choice) {
  std::string text = fmt::format("{}{}", embedded::cuda_card, gradient_constants(problem, choice));
  text += lie_text();
  const std::array<const Operand*, 4> operands = sides(problem);
  for (std::size_t i = 0; i < operands.size(); ++i) text += lie_text(side_names[i], *operands[i]);
  text += lie_text("out", problem.out);
  return text + fmt::format("constexpr int WIDTH = {};\n{}{}", round_up(problem.depth, std::int64_t{16}),
                            embedded::cuda_attention_slopes, embedded::cuda_attention_gradient);
}

/// Of Hopper's products.
std::string hopper_text(const CudaAttentionGradientProblem& problem,
                        const CudaAttentionGradientChoice& choice) {
  const std::int64_t result = round_up(problem.depth, std::int64_t{16});
  return fmt::format("{}{}{}constexpr int WIDTH = {}, RESULT = {};\n{}{}{}", embedded::cuda_card,
                     embedded::cuda_hopper, gradient_constants(problem, choice),
                     round_up(problem.depth, gradient_slice), result,
                     attention_products(problem.element, choice.block, static_cast<int>(result)),
                     embedded::cuda_attention_slopes, embedded::cuda_attention_gradient_hopper);
}

std::vector<CudaTensorMap> hopper_maps(const CudaAttentionGradientProblem& problem,
                                       const CudaAttentionGradientChoice& choice) {
  constexpr int rows_of_group = 64;
  const std::array<const Operand*, 4> operands = sides(problem);
  const bool by_query = rows_are_queries(problem);
  const std::int64_t rows = by_query ? problem.queries : problem.keys;
  const std::int64_t columns = by_query ? problem.keys : problem.queries;
  const auto map = [&](const Operand& operand, std::int64_t count, int box) {
    return operand.argument < 0 ? CudaTensorMap{}
                                : attention_map(problem, problem.element, operand, problem.depth, count, box);
  };
  const Operand out = problem.of == Of::sums ? Operand{.argument = -1} : problem.out;
  return {map(*operands[0], rows, 16 * choice.warps), map(*operands[1], rows, 16 * choice.warps),
          map(*operands[2], columns, choice.block), map(*operands[3], columns, choice.block),
          map(out, rows, rows_of_group)};
}

}  // namespace

Reading<CudaAttentionGradientProblem> read_cuda_attention_gradient(const Kernel& kernel) {
  if (kernel.kind != KernelClass::attention) return {{}, "it is no attention"};
  const Graph& body = kernel.body;
  const Node& node = body.node(kernel.anchor);
  if (node.op != Op::attention_gradient && node.op != Op::attention_sums) return {{}, "it is no gradient"};
  if (body.outputs.size() != 1) return {{}, "it has several outputs"};
  CudaAttentionGradientProblem problem;
  problem.of = node.op == Op::attention_sums ? Of::sums : static_cast<Of>(node.attributes.integer("of"));
  problem.is_open = kernel.open != nullptr;
  problem.element = body.type(node.inputs[0]).dtype;
  problem.out_argument = static_cast<int>(body.inputs.size());
  if (problem.element != DType::bf16 && problem.element != DType::f16)
    return {{}, "it is neither bf16 nor f16"};
  std::string refusal = read_extents(body, node, problem);
  if (refusal.empty()) refusal = read_gradient_operands(kernel, problem);
  problem.causal = node.attributes.integer("causal") != 0;
  problem.scale = attention_scale(node.attributes, problem.depth);
  if (problem.scale < 0) refusal = "its scale is negative";
  return {problem, refusal};
}

std::string CudaAttentionGradientChoice::to_string() const {
  return fmt::format("{} {}x{} s{} x{}", hopper ? "hopper" : "warps", 16 * warps, block, stages, resident);
}

std::vector<CudaAttentionGradientChoice> cuda_attention_gradient_choices(
    const CudaAttentionGradientProblem& problem, bool hopper) {
  std::vector<CudaAttentionGradientChoice> choices;
  if (hopper) choices = hopper_choices(problem);
  const std::vector<CudaAttentionGradientChoice> of_warps =
      problem.depth > 64
          ? std::vector<CudaAttentionGradientChoice>{{false, 4, 32, 2, 2}, {false, 8, 32, 2, 1}}
          : std::vector<CudaAttentionGradientChoice>{{false, 4, 64, 2, 3}, {false, 4, 32, 2, 4}};
  choices.insert(choices.end(), of_warps.begin(), of_warps.end());
  return choices;
}

CudaTemplate make_cuda_attention_gradient(const CudaAttentionGradientProblem& problem,
                                          const CudaAttentionGradientChoice& choice) {
  CudaTemplate result;
  LaunchSpec& launch = result.launch;
  launch.entry = entry_name(
      fmt::format("attention_gradient_{}_{}", static_cast<int>(problem.of), dtype_name(problem.element)),
      problem.is_open, {problem.batch * problem.heads, problem.queries, problem.keys, problem.depth});
  result.source.text =
      fmt::format("#define KERNEL {}\n{}", launch.entry,
                  choice.hopper ? hopper_text(problem, choice) : warps_text(problem, choice));
  const std::int64_t rows = rows_are_queries(problem) ? problem.queries : problem.keys;
  launch.shape.set_blocks(BlockCount(rows).in_parts_of(std::int64_t{16} * choice.warps) *
                          (problem.heads * problem.batch));
  launch.shape.block[0] = static_cast<unsigned>(32 * choice.warps);
  launch.shape.shared_bytes = static_cast<unsigned>(gradient_shared_bytes(problem, choice));
  launch.shape.programmatic = true;
  if (choice.hopper) launch.maps = hopper_maps(problem, choice);
  launch.pointers = {problem.out_argument};
  for (const Operand* operand : sides(problem)) launch.pointers.push_back(operand->argument);
  launch.pointers.push_back(problem.sums);
  launch.pointers.push_back(problem.products);
  launch.pointers.push_back(problem.mask ? problem.mask->argument : -1);
  launch.numbers = extent_numbers(extents_of(problem, !choice.hopper));
  return result;
}

}  // namespace sylvite
