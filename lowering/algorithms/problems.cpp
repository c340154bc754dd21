#include "lowering/algorithms/problems.h"

#include <fmt/format.h>

#include "frontend/ops/op_table.h"
#include "lowering/algorithms/problem_parts.h"
#include "lowering/plan/run_extents.h"

namespace sylvite {
namespace {

/// One of two dims.
OwnOperand find_matrix(const Kernel& kernel, ValueId right) {
  const OwnOperand weight = find_weight(kernel, right);
  if (weight.id == no_value) return {};
  const TensorType& type = kernel.body.type(weight.id);
  return type.rank() == 2 && type.layout.channel_block == 0 ? weight : OwnOperand{};
}

/// `from_end`: 0 is the last dim.
bool has_open_dim(const Kernel& kernel, ValueId id, int from_end) {
  return kernel.open && !(kernel.open->type(id).shape.rbegin() + from_end)->is_known();
}

/// Panels of weights are packed before sizes are known, and depths that are multiplied in pairs must have whole ones.
std::string open_refusal(const Kernel& kernel, const MatmulProblem& problem) {
  if (problem.pair() == 1 && problem.weight == no_value) return "";
  const bool is_open = has_open_dim(kernel, problem.a, 0) || has_open_dim(kernel, problem.anchor, 0);
  return is_open ? "its columns or the depth that it folds are open" : "";
}

}  // namespace

std::int64_t number_or_open(const Extent& extent) {
  return extent.is_known() ? extent.known() : open_extent;
}

Extent leading_product(const Shape& shape) {
  return Shape(shape.begin(), shape.end() - 2).product();
}

OwnOperand weight_for_tensor_cores(const Kernel& kernel) {
  if (kernel.kind != KernelClass::matmul) return {};
  const OwnOperand weight = find_matrix(kernel, kernel.body.node(kernel.anchor).inputs.at(1));
  if (weight.id == no_value) return {};
  const TensorType& type = kernel.body.type(weight.id);
  const auto size = static_cast<std::int64_t>(dtype_size(type.dtype));
  const bool lies_well = type.dims().back() * size % row_unit_bytes == 0;
  return lies_well && type.dtype != DType::f32 ? OwnOperand{} : weight;
}

std::int64_t quantized_lanes(std::int64_t k) {
  std::int64_t lanes = 64;
  while (k % lanes != 0) lanes /= 2;
  return lanes;
}

Reading<MatmulProblem> read_matmul(const Kernel& kernel) {
  Reading<MatmulProblem> reading;
  if (kernel.kind != KernelClass::matmul) return {{}, "it is no matmul"};
  const Graph& body = kernel.body;
  const Node& node = body.node(kernel.anchor);
  if (multiplies_bits(node.op)) return {{}, "its right operand is no matrix"};
  const bool is_quantized = node.op == Op::quantized_matmul;
  for (const std::string& refusal :
       {is_quantized ? std::string() : element_refusal(body, node), body_refusal(kernel)}) {
    if (!refusal.empty()) return {{}, refusal};
  }
  MatmulProblem& problem = reading.problem;
  problem.a = node.inputs.at(0);
  problem.b = node.inputs.at(1);
  problem.anchor = node.outputs.at(0);
  problem.output = body.outputs[0];
  const Shape& out = body.type(problem.anchor).shape;
  if (body.type(problem.anchor).layout.channel_block != 0) return {{}, "its output is channel-blocked"};
  const DType element = body.type(problem.a).dtype;
  problem.element = is_quantized || element == DType::u8 ? DType::i8 : element;
  const OwnOperand weight = find_matrix(kernel, problem.b);
  problem.weight = weight.id;
  problem.weight_is_transposed = weight.is_transposed;
  if (std::string refusal = open_refusal(kernel, problem); !refusal.empty()) return {{}, refusal};
  problem.m = number_or_open(out[out.size() - 2]);
  problem.least_m = least_extent(kernel, problem.anchor, out.size() - 2);
  problem.has_open_m = has_open_dim(kernel, problem.anchor, 1);
  problem.n = number_or_open(out.back());
  problem.least_n = least_extent(kernel, problem.anchor, out.size() - 1);
  problem.k = number_or_open(body.type(problem.a).shape.back());
  problem.batch = number_or_open(leading_product(out));
  if (out.product() == 0 || problem.k == 0) return {{}, "it is empty"};
  if (is_quantized) {
    problem.scales = node.inputs.at(2);
    problem.sums = node.inputs.at(3);
  }
  if (problem.k % problem.pair() != 0) {
    return {{},
            fmt::format("its k = {} is no multiple of {}: so many {} are multiplied at once", problem.k,
                        problem.pair(), dtype_name(problem.element))};
  }
  problem.a_is_computed = is_computed(body, problem.a);
  if (has_wide_rows(body, node) && weight.id == no_value)
    return {{}, "its right operand is bf16 beside f32, and no weight"};
  if (is_quantized && (weight.id == no_value || weight.is_transposed))
    return {{}, "its right operand is no weight of its own"};
  return reading;
}

Reading<BitsProblem> read_bits(const Kernel& kernel) {
  const Graph& body = kernel.body;
  if (kernel.kind != KernelClass::matmul || !multiplies_bits(body.node(kernel.anchor).op))
    return {{}, "it is no product by a weight of a few bits"};
  if (std::string refusal = body_refusal(kernel); !refusal.empty()) return {{}, refusal};
  const Node& node = body.node(kernel.anchor);
  Reading<BitsProblem> reading;
  BitsProblem& problem = reading.problem;
  problem.scales = node.inputs.at(2);
  problem.zeros = node.inputs.size() > 3 ? node.inputs[3] : no_value;
  problem.is_quantized = node.op == Op::quantized_matmul_bits;
  problem.bits = node.attributes.integer("bits");
  problem.block = node.attributes.integer("block");
  for (const ValueId id : {node.inputs.at(1), problem.scales, problem.zeros}) {
    const OwnOperand own = id == no_value ? OwnOperand{} : find_weight(kernel, id);
    if (id != no_value && (own.id != id || own.is_transposed))
      return {{}, fmt::format("'{}' is no weight of its own", body.value(id).name)};
  }
  MatmulProblem& product = problem.product;
  product.a = node.inputs.at(0);
  product.b = product.weight = node.inputs.at(1);
  product.anchor = node.outputs.at(0);
  product.output = body.outputs[0];
  const Shape& out = body.type(product.anchor).shape;
  if (body.type(product.anchor).layout.channel_block != 0) return {{}, "its output is channel-blocked"};
  if (out.product() == 0) return {{}, "it is empty"};
  product.m = number_or_open(out[out.size() - 2]);
  product.least_m = least_extent(kernel, product.anchor, out.size() - 2);
  product.has_open_m = has_open_dim(kernel, product.anchor, 1);
  product.n = out.back().known();
  product.least_n = product.n;
  product.k = body.type(product.a).shape.back().known();
  product.batch = number_or_open(leading_product(out));
  product.element = DType::u8;
  product.a_is_computed = is_computed(body, product.a);
  return reading;
}

}  // namespace sylvite
