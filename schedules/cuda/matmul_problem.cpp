#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>

#include "base/error.h"
#include "base/rounding.h"
#include "frontend/ops/op_table.h"
#include "lowering/algorithms/strided_view.h"
#include "schedules/cuda/matmul.h"

// What the template must know of a kernel: where its operands lie, and the epilogue as text.

namespace sylvite {
namespace {

/// Leading extents: everything but the matrix.
Dims leading(const Dims& dims) {
  return {dims.begin(), dims.end() - 2};
}

std::int64_t count(const Dims& dims) {
  return std::accumulate(dims.begin(), dims.end(), std::int64_t{1}, std::multiplies<>());
}

/// The strides of a view along the leading dims of the product, 0 where it is broadcast.
Dims strides_along(const StridedView& view, const Dims& batches) {
  Dims strides(batches.size(), 0);
  const std::size_t leading = view.dims.size() - 2;
  for (std::size_t i = 0; i < leading; ++i)
    if (view.dims[i] != 1) strides[batches.size() - leading + i] = view.strides[i];
  return strides;
}

/// How an operand lies along the batches: a stride from one of its own to the next; neighbouring batches that read the same one,
/// and how many there are where they begin again. Where `inner` of its own are a run, another stride leads from run to run.
struct BatchStep {
  std::int64_t stride = 0, each = 1, period = 0, inner = 0, outer = 0;
};

/// Nothing when the batches are not one step or two, but for those inside and outside for which the operand is the same.
std::optional<BatchStep> step_of_batches(const Dims& dims, const Dims& strides) {
  BatchStep step;
  std::int64_t count = 1;
  for (std::size_t i = dims.size(); i-- > 0;) {
    if (dims[i] == 1) continue;
    if (strides[i] == 0 && step.stride == 0) {
      step.each *= dims[i];
    } else if (strides[i] == 0) {
      if (step.period == 0) step.period = count;
    } else {
      if (step.period != 0) return std::nullopt;
      if (step.stride == 0) {
        step.stride = strides[i];
      } else if (step.outer == 0 && strides[i] != step.stride * count) {
        step.inner = count;
        step.outer = strides[i];
      } else if (step.outer != 0 && strides[i] != step.outer * (count / step.inner)) {
        return std::nullopt;
      }
      count *= dims[i];
    }
  }
  if (step.stride == 0) step.each = 1;
  return step;
}

/// A weight that is packed into rows of the depth.
void read_packed(const Graph& body, ValueId weight, MatmulOperand& operand) {
  const auto found = std::find(body.inputs.begin(), body.inputs.end(), weight);
  operand.input = static_cast<int>(found - body.inputs.begin());
  operand.is_weight = true;
}

/// Where a view's matrix lies. `right` operands have their depth as rows.
std::string read_matrix(const StridedView& view, bool right, MatmulOperand& operand) {
  const std::size_t rank = view.dims.size();
  std::int64_t rows = view.strides[rank - 2], columns = view.strides[rank - 1];
  // A stride over an extent of 1 is never taken.
  if (view.dims[rank - 1] == 1) columns = 1;
  if (view.dims[rank - 2] == 1 && columns == 1) rows = (view.dims[rank - 1] + 7) / 8 * 8;
  if (rows != 1 && columns != 1) return "has no dim that lies together";
  if (rows == 0 || columns == 0) return "is broadcast inside a matrix";
  operand.depth_fast = columns == 1 ? !right : right;
  operand.pitch = columns == 1 ? rows : columns;
  return "";
}

/// Fills the operand, or says why it cannot be read in place.
std::string read_operand(const Kernel& kernel, ValueId id, bool right, const Dims& batches,
                         CudaMatmulProblem& problem, MatmulOperand& operand) {
  const Graph& body = kernel.body;
  const std::string& name = body.value(id).name;
  if (const OwnOperand weight = weight_for_tensor_cores(kernel); right && weight.id != no_value) {
    read_packed(body, weight.id, operand);
    const std::int64_t unit = row_unit_bytes / static_cast<std::int64_t>(dtype_size(problem.element));
    operand.pitch = round_up(problem.k, unit);
    return "";
  }
  const std::optional<StridedView> view = strided_view(body, id);
  if (!view) return fmt::format("operand '{}' is computed, or lies otherwise than in rows", name);
  const std::optional<BatchStep> batch = step_of_batches(batches, strides_along(*view, batches));
  if (!batch) return fmt::format("batches of operand '{}' lie apart", name);
  if (kernel.open != nullptr && (batch->each != 1 || batch->period != 0))
    return fmt::format("operand '{}' is broadcast over some batches, whose number is open", name);
  if (kernel.open != nullptr && batch->inner != 0)
    return fmt::format("batches of operand '{}' lie apart, and their number is open", name);
  if (const std::string refusal = read_matrix(*view, right, operand); !refusal.empty())
    return fmt::format("operand '{}' {}", name, refusal);
  operand.input = view->input;
  operand.is_weight = kernel.input_is_weight.at(static_cast<std::size_t>(operand.input));
  operand.offset = view->offset;
  operand.batch_pitch = batch->stride;
  operand.each = batch->each;
  operand.period = batch->period;
  operand.inner = batch->inner;
  operand.outer_pitch = batch->outer;
  return "";
}

/// Strides over [batch, m, n] from those over the result's dims; false when the batches are not one step.
bool join_batches(const Dims& dims, PointwiseOperand& operand) {
  const Dims strides = operand.strides;
  const std::size_t rank = dims.size();
  const std::optional<BatchStep> batch = step_of_batches(leading(dims), leading(strides));
  if (!batch || batch->inner != 0) return false;
  operand.each = batch->each;
  operand.period = batch->period;
  operand.strides = {batch->stride, strides[rank - 2], strides[rank - 1]};
  return true;
}

/// Batches that read one right operand are more rows.
void join_rows(CudaMatmulProblem& problem) {
  const std::int64_t m = problem.m;
  const bool joined = problem.b.batch_pitch == 0 && problem.a.depth_fast &&
                      problem.a.batch_pitch == m * problem.a.pitch && problem.a.each == 1 &&
                      problem.a.period == 0 && problem.a.inner == 0;
  const auto& operands = problem.epilogue.operands;
  if (problem.batch == 1 || !joined ||
      std::any_of(operands.begin(), operands.end(), [&](const auto& operand) {
        return operand.strides[0] != m * operand.strides[1] || operand.each != 1 || operand.period != 0;
      }))
    return;
  problem.m *= problem.batch;
  problem.batch = 1;
  problem.a.batch_pitch = 0;
  for (PointwiseOperand& operand : problem.epilogue.operands) operand.strides[0] = 0;  // which nothing takes
}

std::string read_types(const Kernel& kernel, CudaMatmulProblem& problem) {
  const Graph& body = kernel.body;
  const Node& node = body.node(kernel.anchor);
  problem.element = body.type(node.inputs.at(0)).dtype;
  problem.out = body.type(body.outputs[0]).dtype;
  const auto is_storage = [](DType d) { return d == DType::bf16 || d == DType::f16 || d == DType::f32; };
  if (body.type(node.inputs.at(1)).dtype != problem.element) return "its operands have two types";
  for (const DType dtype : {problem.element, problem.out})
    if (!is_storage(dtype)) return fmt::format("{} is no type of the tensor cores", dtype_name(dtype));
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
    if (!join_batches(body.type(anchor).dims(), operand))
      return "the batches of an operand of its epilogue lie apart";
  }
  return "";
}

/// The epilogue as one of those that vendor libraries have.
std::optional<SimpleEpilogue> simple_epilogue(const Kernel& kernel, const CudaMatmulProblem& problem) {
  const Graph& body = kernel.body;
  SimpleEpilogue simple;
  ValueId at = body.outputs[0];
  const ValueId anchor = body.node(kernel.anchor).outputs.at(0);
  const auto is_repeated = [](const MatmulOperand& o) {
    return o.each != 1 || o.period != 0 || o.inner != 0;
  };
  if (is_repeated(problem.a) || is_repeated(problem.b)) return std::nullopt;
  if (at != anchor) {
    const Node& last = body.node(body.value(at).producer);
    const bool is_gelu = last.op == Op::gelu && last.attributes.string("approximate") == "tanh";
    if (last.op == Op::relu || is_gelu) {
      simple.activation = is_gelu ? SimpleEpilogue::Activation::gelu_tanh : SimpleEpilogue::Activation::relu;
      at = last.inputs[0];
    }
  }
  const auto& operands = problem.epilogue.operands;
  if (at == anchor && operands.empty()) return simple;
  const Node& sum = body.node(body.value(at).producer);
  const bool adds_vector = sum.op == Op::add && operands.size() == 1 &&
                           operands[0].strides == Dims{0, 0, 1} && operands[0].offset == 0 &&
                           (sum.inputs[0] == anchor || sum.inputs[1] == anchor) &&
                           sum.inputs[0] != sum.inputs[1];
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
  problem.is_open = kernel.open != nullptr;
  problem.n_is_open = problem.is_open && !kernel.open->type(kernel.open->outputs[0]).shape.back().is_known();
  problem.k_is_open = problem.is_open && !kernel.open->type(node.inputs[0]).shape.back().is_known();
  problem.out_argument = static_cast<int>(body.inputs.size());
  problem.batch = count(leading(dims));
  problem.m = dims[dims.size() - 2];
  problem.n = dims.back();
  problem.k = body.type(node.inputs[0]).dims().back();
  if (problem.batch * problem.m * problem.n * problem.k == 0) return refuse("it is empty");
  std::string refusal = read_types(kernel, problem);
  if (refusal.empty())
    refusal = read_operand(kernel, node.inputs[0], false, leading(dims), problem, problem.a);
  if (refusal.empty())
    refusal = read_operand(kernel, node.inputs[1], true, leading(dims), problem, problem.b);
  if (refusal.empty()) refusal = read_epilogue(kernel, problem);
  if (!refusal.empty()) return refuse(refusal);
  join_rows(problem);
  problem.simple_epilogue = simple_epilogue(kernel, problem);
  return reading;
}

LibraryMatmulProblem library_problem(const CudaMatmulProblem& problem) {
  return {problem.a, problem.b, problem.element, problem.out,          problem.batch,
          problem.m, problem.n, problem.k,       problem.out_argument, problem.simple_epilogue.value()};
}

void pack_for_cuda_matmul(const Kernel& kernel, std::vector<Packing>& packings) {
  const OwnOperand weight = weight_for_tensor_cores(kernel);
  for (std::size_t i = 0; i < packings.size(); ++i) {
    if (weight.id == no_value || kernel.body.inputs[i] != weight.id) continue;
    const auto size = static_cast<std::int64_t>(dtype_size(kernel.body.type(weight.id).dtype));
    const std::int64_t unit = row_unit_bytes / size;
    packings[i] = weight.is_transposed ? Packing{{1, unit}, {0, 2, 3}} : Packing{{unit, 1}, {2, 0, 1}};
  }
}

}  // namespace sylvite
