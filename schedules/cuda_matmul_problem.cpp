#include <algorithm>
#include <functional>
#include <numeric>

#include "base/error.h"
#include "schedules/cuda_matmul.h"

// What the template must know of a kernel: where its operands lie, and the epilogue as text.

namespace sylvite {
namespace {

using Operand = CudaMatmulProblem::Operand;

constexpr std::int64_t map_alignment = 16;  // bytes, of the pitches of tensor maps

/// Leading extents: everything but the matrix.
Dims leading(const Dims& dims) {
  return {dims.begin(), dims.end() - 2};
}

std::int64_t count(const Dims& dims) {
  return std::accumulate(dims.begin(), dims.end(), std::int64_t{1}, std::multiplies<>());
}

bool swaps_the_matrix(const Dims& perm) {
  Dims wanted(perm.size());
  for (std::size_t i = 0; i < perm.size(); ++i) wanted[i] = static_cast<std::int64_t>(i);
  std::swap(wanted[perm.size() - 1], wanted[perm.size() - 2]);
  return perm == wanted;
}

/// Fills the operand, or says why it cannot be read in place. `right` operands have their depth as rows.
std::string read_operand(const Kernel& kernel, ValueId id, bool right, const Dims& batches,
                         Operand& operand) {
  const Graph& body = kernel.body;
  const std::string& name = body.value(id).name;
  bool transposed = false;
  if (const NodeId producer = body.value(id).producer; producer != no_node) {
    const Node& node = body.node(producer);
    if (node.op != Op::transpose || !swaps_the_matrix(node.attributes.integers("perm")))
      return fmt::format("operand '{}' is computed by {}", name, op_info(node.op).name);
    transposed = true;
    id = node.inputs.at(0);
  }
  const auto found = std::find(body.inputs.begin(), body.inputs.end(), id);
  if (found == body.inputs.end()) return fmt::format("operand '{}' is no input", name);
  const TensorType& type = body.type(id);
  if (type.layout.channel_block != 0) return fmt::format("operand '{}' is channel-blocked", name);
  const Dims dims = type.dims();
  const Dims own = leading(dims);
  if (count(own) != 1 && own != batches)
    return fmt::format("operand '{}' is broadcast over some batches", name);
  operand.input = static_cast<int>(found - body.inputs.begin());
  operand.depth_fast = transposed == right;
  operand.pitch = dims.back();
  operand.batch_pitch = count(own) == 1 ? 0 : dims.back() * dims[dims.size() - 2];
  const std::int64_t bytes = operand.pitch * static_cast<std::int64_t>(dtype_size(type.dtype));
  if (bytes % map_alignment != 0)
    return fmt::format("rows of operand '{}' have {} bytes, no multiple of {}", name, bytes, map_alignment);
  return "";
}

/// Strides over [batch, m, n] from those over the result's dims, or nothing when the batches are not one
/// step.
bool join_batches(const Dims& dims, Dims& strides) {
  const std::size_t rank = dims.size();
  std::int64_t batch = 0, step = 0;
  for (std::size_t i = rank - 2; i-- > 0;) {
    if (dims[i] == 1) continue;
    if (step != 0 && strides[i] != batch * step) return false;
    if (step == 0) batch = strides[i];
    step = (step == 0 ? 1 : step) * dims[i];
  }
  strides = {batch, strides[rank - 2], strides[rank - 1]};
  return true;
}

/// Batches that read one right operand are more rows.
void join_rows(CudaMatmulProblem& problem) {
  const std::int64_t m = problem.m;
  const bool joined =
      problem.b.batch_pitch == 0 && problem.a.depth_fast && problem.a.batch_pitch == m * problem.k;
  const auto& operands = problem.epilogue.operands;
  if (problem.batch == 1 || !joined ||
      std::any_of(operands.begin(), operands.end(),
                  [&](const auto& operand) { return operand.strides[0] != m * operand.strides[1]; }))
    return;
  problem.m *= problem.batch;
  problem.batch = 1;
  problem.a.batch_pitch = 0;
}

std::string read_types(const Kernel& kernel, CudaMatmulProblem& problem) {
  const Graph& body = kernel.body;
  const Node& node = body.node(kernel.anchor);
  problem.element = body.type(node.inputs.at(0)).dtype;
  problem.out = body.type(body.outputs[0]).dtype;
  const auto is_storage = [](DType d) { return d == DType::bf16 || d == DType::f16 || d == DType::f32; };
  if (body.type(node.inputs.at(1)).dtype != problem.element) return "its operands have two types";
  for (const DType dtype : {problem.element, problem.out}) {
    if (!is_storage(dtype)) return fmt::format("{} is no type of the tensor cores", dtype_name(dtype));
  }
  return "";
}

std::string read_epilogue(const Kernel& kernel, CudaMatmulProblem& problem) {
  const Graph& body = kernel.body;
  const ValueId anchor = body.node(kernel.anchor).outputs.at(0);
  try {
    problem.epilogue = print_pointwise(body, anchor, body.outputs[0], "epilogue", problem.out != DType::f32);
  } catch (const UnsupportedError& error) {
    return error.what();
  }
  for (PointwiseOperand& operand : problem.epilogue.operands) {
    if (!kernel.input_is_weight.at(static_cast<std::size_t>(operand.input)))
      problem.epilogue_reads_activations = true;
    if (!join_batches(body.type(anchor).dims(), operand.strides))
      return fmt::format("an operand of its epilogue is broadcast over some batches");
  }
  return "";
}

/// The epilogue as one of those that vendor libraries have.
std::optional<CudaMatmulProblem::SimpleEpilogue> simple_epilogue(const Kernel& kernel,
                                                                 const CudaMatmulProblem& problem) {
  const Graph& body = kernel.body;
  CudaMatmulProblem::SimpleEpilogue simple;
  ValueId at = body.outputs[0];
  const ValueId anchor = body.node(kernel.anchor).outputs.at(0);
  if (at != anchor) {
    const Node& last = body.node(body.value(at).producer);
    const bool is_gelu = last.op == Op::gelu && last.attributes.string("approximate") == "tanh";
    if (last.op == Op::relu || is_gelu) {
      simple.activation = last.op;
      at = last.inputs[0];
    }
  }
  const auto& operands = problem.epilogue.operands;
  if (at == anchor && operands.empty()) return simple;
  const Node& sum = body.node(body.value(at).producer);
  const bool adds_vector =
      sum.op == Op::add && operands.size() == 1 && operands[0].strides == Dims{0, 0, 1} &&
      (sum.inputs[0] == anchor || sum.inputs[1] == anchor) && sum.inputs[0] != sum.inputs[1];
  const ValueId other = sum.inputs[0] == anchor ? sum.inputs.back() : sum.inputs[0];
  const NodeId maker = body.value(other).producer;
  if (!adds_vector || (maker != no_node && has_trait(body.node(maker).op, OpTrait::pointwise)))
    return std::nullopt;
  simple.bias = operands[0].input;
  simple.bias_type = operands[0].dtype;
  return simple;
}

}  // namespace

Reading<CudaMatmulProblem> read_cuda_matmul(const Kernel& kernel) {
  Reading<CudaMatmulProblem> reading;
  const auto refuse = [&](std::string reason) {
    reading.refusal = std::move(reason);
    return reading;
  };
  if (kernel.kind != KernelClass::matmul) return refuse("it is no matmul");
  const Graph& body = kernel.body;
  if (body.outputs.size() != 1) return refuse("it has several outputs");
  const Node& node = body.node(kernel.anchor);
  const Dims dims = body.type(node.outputs.at(0)).dims();
  if (dims.size() < 2 || body.type(node.inputs[0]).rank() < 2 || body.type(node.inputs[1]).rank() < 2)
    return refuse("an operand is a vector");
  if (body.type(body.outputs[0]).dims() != dims) return refuse("its epilogue changes the shape");
  CudaMatmulProblem& problem = reading.problem;
  problem.out_argument = static_cast<int>(body.inputs.size());
  problem.batch = count(leading(dims));
  problem.m = dims[dims.size() - 2];
  problem.n = dims.back();
  problem.k = body.type(node.inputs[0]).dims().back();
  if (problem.batch * problem.m * problem.n * problem.k == 0) return refuse("it is empty");
  std::string refusal = read_types(kernel, problem);
  if (refusal.empty()) refusal = read_operand(kernel, node.inputs[0], false, leading(dims), problem.a);
  if (refusal.empty()) refusal = read_operand(kernel, node.inputs[1], true, leading(dims), problem.b);
  if (refusal.empty() && problem.element == DType::f32 && !(problem.a.depth_fast && problem.b.depth_fast))
    refusal = "tf32 operands need their depth innermost";
  if (refusal.empty()) refusal = read_epilogue(kernel, problem);
  if (!refusal.empty()) return refuse(refusal);
  join_rows(problem);
  problem.simple_epilogue = simple_epilogue(kernel, problem);
  return reading;
}

}  // namespace sylvite
