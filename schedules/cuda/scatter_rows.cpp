#include "schedules/cuda/scatter_rows.h"

#include <algorithm>
#include <bit>

#include "base/error.h"
#include "base/rounding.h"
#include "frontend/graph/rewrite.h"
#include "frontend/graph/views.h"
#include "schedules/cuda/conv.h"
#include "schedules/cuda/operands.h"
#include "schedules/cuda/scatters.h"
#include "schedules/cuda/sources.h"

namespace sylvite {
namespace {

constexpr std::int64_t most_scattered_rows = 1LL << 30;  // numbered by int
constexpr int lanes = 32, block_threads = 256;

/// Columns of a lane, so that what it loads is no more than 16 bytes, and that all lanes have some.
std::int64_t vector_of(const CudaScatterRowsProblem& problem) {
  std::int64_t vector = 4;
  while (problem.columns % vector != 0 || (vector > 1 && problem.columns <= lanes * vector / 2)) vector /= 2;
  return vector;
}

/// Of a scatter by elements: the indices of which each one is repeated for a whole row of updates, maybe for those of all batches, or
/// none.
ValueId indices_of_rows(const Graph& body, const Node& scatter, bool& shares_indices) {
  const Node* view = producer_if(body, scatter.inputs[1], Op::broadcast_to);
  if (view == nullptr) return no_value;
  const auto axis = static_cast<std::size_t>(scatter.attributes.integer("axis"));
  Dims from = body.type(view->inputs[0]).dims();
  const Dims to = body.type(scatter.inputs[1]).dims(), whole = body.type(scatter.inputs[0]).dims();
  from.insert(from.begin(), to.size() - from.size(), 1);
  shares_indices = product(from, 0, axis) == 1;
  for (std::size_t d = 0; d < to.size(); ++d) {
    const bool is_repeated = d > axis || (d < axis && shares_indices);
    if (from[d] != (is_repeated ? 1 : to[d]) || (d != axis && to[d] != whole[d])) return no_value;
  }
  return view->inputs[0];
}

bool are_known(const Shape& shape) {
  return std::ranges::all_of(shape, &Extent::is_known);
}

BlockCount blocks_of(const CudaScatterRowsProblem& problem, const CudaScatterRowsChoice& choice) {
  return BlockCount(problem.table).in_parts_of(choice.rows) *
         BlockCount(problem.columns).in_parts_of(lanes * vector_of(problem)) * problem.batches;
}

}  // namespace

Reading<CudaScatterRowsProblem> read_cuda_scatter_rows(const Kernel& kernel) {
  const Graph& body = kernel.body;
  const Node* scatter = scatter_of(kernel);
  if (scatter == nullptr) return {{}, "it is more than a scatter of slices"};
  const Node& node = *scatter;
  if (scatter_fold_named(node.attributes.string("reduction")) == nullptr) return {{}, "it does not fold"};
  const TensorType &x = body.type(node.inputs[0]), &indices = body.type(node.inputs[1]),
                   &updates = body.type(node.inputs[2]);
  CudaScatterRowsProblem problem;
  problem.reduction = node.attributes.string("reduction");
  problem.out = x.dtype;
  problem.index = indices.dtype;
  problem.initial = number_of(body, node.inputs[0]);
  const ValueId of_rows =
      node.op == Op::scatter_nd ? node.inputs[1] : indices_of_rows(body, node, problem.shares_indices);
  if (of_rows == no_value) return {problem, "elements of a row have indices of their own"};
  const std::size_t views = (problem.initial ? 1U : 0U) + (of_rows != node.inputs[1] ? 1U : 0U);
  if (body.nodes().size() != 1 + views) return {problem, "it is more than a scatter of slices"};
  problem.x = problem.initial ? 0 : body_input_number(body, node.inputs[0]);
  problem.indices = body_input_number(body, of_rows);
  problem.updates = body_input_number(body, node.inputs[2]);
  problem.out_argument = static_cast<int>(body.inputs.size());
  problem.is_open = kernel.open != nullptr;
  if (problem.is_open && !are_known(kernel.open->type(node.inputs[0]).shape))
    return {problem, "runs give the extents of its table"};
  if (!is_float_storage(x.dtype) || updates.dtype != x.dtype) return {problem, "it folds no floats"};
  if (indices.dtype != DType::i64 && indices.dtype != DType::i32)
    return {problem, "its indices are neither i32 nor i64"};
  for (const TensorType* type : {&x, &indices, &updates})
    if (type->layout.channel_block != 0) return {problem, "channels lie in blocks"};
  if (problem.x < 0 || problem.indices < 0 || problem.updates < 0) return {problem, "an operand is computed"};
  if (x.element_count() == 0 || updates.element_count() == 0) return {problem, "it is empty"};
  std::size_t axis = 0;
  if (node.op == Op::scatter_nd) {
    if (indices.dims().empty() || indices.dims().back() != 1) return {problem, "its slices are no rows"};
    problem.count = indices.element_count();
  } else {
    axis = static_cast<std::size_t>(node.attributes.integer("axis"));
    problem.count = indices.dims()[axis];
  }
  problem.batches = product(x.dims(), 0, axis);
  problem.table = x.dims()[axis];
  problem.columns = product(x.dims(), axis + 1, x.dims().size());
  if (std::max({problem.batches, problem.table, problem.columns, problem.count}) > most_scattered_rows)
    return {problem, "the extents are large"};
  return {problem, ""};
}

std::vector<CudaScatterRowsChoice> cuda_scatter_rows_choices(const CudaScatterRowsProblem& problem) {
  constexpr std::int64_t enough_blocks = 528;  // four for each multiprocessor
  std::vector<CudaScatterRowsChoice> choices;
  for (const int rows : {64, 32, 16, 8}) choices.push_back({rows});
  // Many rows of a block share one walk over the indices. Of a small table each block takes few, so that none waits long.
  std::ranges::stable_sort(choices, {}, [&](const CudaScatterRowsChoice& choice) {
    const bool fills = blocks_of(problem, choice).value() >= enough_blocks;
    return fills ? 0 : choice.rows;
  });
  return choices;
}

CudaTemplate make_cuda_scatter_rows(const CudaScatterRowsProblem& problem,
                                    const CudaScatterRowsChoice& choice) {
  CudaTemplate result;
  LaunchSpec& launch = result.launch;
  launch.entry = fmt::format("scatter_rows_{}_{}_{}x{}x{}", problem.reduction, dtype_name(problem.out),
                             problem.batches, problem.table, problem.columns);
  const std::vector<CudaExtent> extents = {{"count", problem.count, problem.is_open}};
  result.source.text = fmt::format("#define KERNEL {}\n{}{}{}", launch.entry, embedded::cuda_card,
                                   embedded::cuda_pointwise, embedded::cuda_vector);
  result.source.text += fmt::format(
      "constexpr int TABLE = {}, COLUMNS = {}, ROWS = {}, VECTOR = {};\n"
      "constexpr bool ONTO_X = {}, SHARES_INDICES = {};\nDEVICE float fold(float a, float b) {{ return {}; "
      "}}\n"
      "#define INITIAL __int_as_float({:#x})\ntypedef {} Index;\n"
      "typedef {} Out;\ntypedef Out Update;\n"
      "struct Arguments {{\n  Out* out;\n  const Out* x;\n  const Index* indices;\n  const Update* "
      "updates;\n{}}};\n{}{}",
      problem.table, problem.columns, choice.rows, vector_of(problem), !problem.initial,
      problem.shares_indices, scatter_fold_named(problem.reduction)->floats,
      std::bit_cast<std::uint32_t>(static_cast<float>(problem.initial.value_or(0))),
      problem.index == DType::i64 ? "long long" : "int", dtype_name(problem.out), extent_members(extents),
      extents_text(extents), embedded::cuda_scatter_rows);
  launch.shape.set_blocks(blocks_of(problem, choice));
  launch.shape.block[0] = block_threads;
  launch.shape.programmatic = true;
  launch.pointers = {problem.out_argument, problem.initial ? problem.updates : problem.x, problem.indices,
                     problem.updates};
  launch.numbers = extent_numbers(extents);
  return result;
}

}  // namespace sylvite
