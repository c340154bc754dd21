#include "schedules/cuda/attention_gradient.h"

#include <array>
#include <cmath>

#include "base/error.h"
#include "base/rounding.h"
#include "frontend/graph/views.h"
#include "schedules/cuda/attention_text.h"
#include "schedules/cuda/sources.h"

namespace sylvite {
namespace {

using Of = AttentionGradientOf;
using Operand = CudaAttentionProblem::Operand;

constexpr std::int64_t most_depth = 128;
constexpr std::int64_t most_blocks = (1LL << 31) - 1;

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
  if (problem.depth > most_depth || problem.depth % 8 != 0)
    return fmt::format("it is {} wide, the template takes multiples of 8 up to {}", problem.depth,
                       most_depth);
  if (problem.batch * problem.heads * ceil_div(std::max(problem.queries, problem.keys), std::int64_t{16}) >
      most_blocks)
    return "the grid would be large";
  return "";
}

std::string read_operands(const Kernel& kernel, CudaAttentionGradientProblem& problem) {
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

bool rows_are_queries(const CudaAttentionGradientProblem& problem) {
  return problem.of == Of::queries || problem.of == Of::sums;
}

std::int64_t shared_bytes(const CudaAttentionGradientProblem& problem,
                          const CudaAttentionGradientChoice& choice) {
  const std::int64_t pitch = 2 * round_up(problem.depth, std::int64_t{16}) + 16;
  const std::int64_t rows = problem.of == Of::queries || problem.of == Of::keys ? 2 : 1;
  const std::int64_t columns = problem.of == Of::sums ? 1 : 2;
  const std::int64_t known =
      rows_are_queries(problem) ? 0 : 2 * 2 * 4 * choice.block;  // two floats of each column
  return pitch * (rows * 16 * choice.warps + 2 * columns * choice.block) + known;
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
  problem.element = body.type(node.inputs[0]).dtype;
  problem.out_argument = static_cast<int>(body.inputs.size());
  if (problem.element != DType::bf16 && problem.element != DType::f16)
    return {{}, "it is neither bf16 nor f16"};
  std::string refusal = read_extents(body, node, problem);
  if (refusal.empty()) refusal = read_operands(kernel, problem);
  problem.causal = node.attributes.integer("causal") != 0;
  problem.scale = node.attributes.real("scale");
  if (problem.scale == 0) problem.scale = 1 / std::sqrt(static_cast<double>(problem.depth));
  if (problem.scale < 0) refusal = "its scale is negative";
  return {problem, refusal};
}

std::vector<CudaAttentionGradientChoice> cuda_attention_gradient_choices(
    const CudaAttentionGradientProblem& problem) {
  if (problem.depth > 64) return {{4, 32, 2}, {8, 32, 1}, {4, 64, 1}};
  return {{4, 64, 3}, {8, 64, 1}, {4, 32, 4}, {4, 64, 2}};
}

CudaTemplate make_cuda_attention_gradient(const CudaAttentionGradientProblem& problem,
                                          const CudaAttentionGradientChoice& choice) {
  constexpr double log2_e = 1.4426950408889634;
  const bool by_query = rows_are_queries(problem);
  const std::int64_t rows = by_query ? problem.queries : problem.keys;
  CudaTemplate result;
  LaunchSpec& launch = result.launch;
  launch.entry = fmt::format("attention_gradient_{}_{}_{}x{}x{}x{}", static_cast<int>(problem.of),
                             dtype_name(problem.element), problem.batch * problem.heads, problem.queries,
                             problem.keys, problem.depth);
  std::string& text = result.source.text;
  text = fmt::format("#define KERNEL {}\n{}{}", launch.entry, embedded::cuda_card, lie_text());
  const std::array<const Operand*, 4> operands = sides(problem);
  static constexpr const char* names[] = {"R1", "R2", "C1", "C2"};
  for (std::size_t i = 0; i < operands.size(); ++i) text += lie_text(names[i], *operands[i]);
  text += lie_text("OUT", problem.out) + attention_mask_constants(problem.mask, problem.keys);
  text += fmt::format(
      "constexpr int BATCH = {}, HEADS = {}, ROW_COUNT = {}, COLUMN_COUNT = {}, QUERIES = {}, DEPTH = {}, "
      "WIDTH = {}, "
      "OF = {}, BLOCK = {}, WARPS = {}, BLOCKS_PER_MULTIPROCESSOR = {};\nconstexpr bool CAUSAL = {};\n"
      "constexpr float SCALE = {:a}f, SUM_SCALE = {:a}f;\ntypedef {} Element;\n"
      "struct Arguments {{\n  Element* out;\n  const Element *r1, *r2, *c1, *c2;\n  const float *sums, "
      "*products;\n  const Mask* mask;\n}};\n{}",
      problem.batch, problem.heads, rows, by_query ? problem.keys : problem.queries, problem.queries,
      problem.depth, round_up(problem.depth, std::int64_t{16}), static_cast<int>(problem.of), choice.block,
      choice.warps, choice.resident, problem.causal, static_cast<float>(problem.scale * log2_e),
      static_cast<float>(problem.scale), dtype_name(problem.element), embedded::cuda_attention_gradient);
  launch.shape.grid[0] =
      static_cast<unsigned>(ceil_div(rows, std::int64_t{16} * choice.warps) * problem.heads * problem.batch);
  launch.shape.block[0] = static_cast<unsigned>(32 * choice.warps);
  launch.shape.shared_bytes = static_cast<unsigned>(shared_bytes(problem, choice));
  launch.shape.programmatic = true;
  launch.pointers = {problem.out_argument};
  for (const Operand* operand : operands) launch.pointers.push_back(operand->argument);
  launch.pointers.push_back(problem.sums);
  launch.pointers.push_back(problem.products);
  launch.pointers.push_back(problem.mask ? problem.mask->argument : -1);
  return result;
}

}  // namespace sylvite
