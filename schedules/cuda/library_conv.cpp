#include "schedules/cuda/library_conv.h"

#include <utility>

#include "schedules/cuda/conv.h"

namespace sylvite {
namespace {

/// The epilogue from its end: ReLU, then the sum with a residual. The bias is the convolution's own.
std::string read_library_epilogue(const Kernel& kernel, LibraryConvProblem& problem) {
  const Graph& body = kernel.body;
  const ValueId anchor = body.node(kernel.anchor).outputs.at(0);
  const auto maker = [&](ValueId id) -> const Node& { return body.node(body.value(id).producer); };
  ValueId at = body.outputs[0];
  if (at != anchor && maker(at).op == Op::relu) {
    problem.relu = true;
    at = maker(at).inputs[0];
  }
  if (at != anchor && maker(at).op == Op::add) {
    ValueId sum = maker(at).inputs[0], other = maker(at).inputs[1];
    if (sum != anchor) std::swap(sum, other);
    const TensorType& type = body.type(other);
    problem.residual_argument = body_input_number(body, other);
    if (problem.residual_argument < 0 || type.dims() != problem.out || !is_channels_last(type))
      return "it adds something else than a residual";
    if (type.dtype != problem.element) return "its residual is of another type";
    at = sum;
  }
  return at == anchor ? "" : "libraries have no such epilogue";
}

}  // namespace

Reading<LibraryConvProblem> read_library_conv(const Kernel& kernel) {
  if (std::string refusal = refuse_conv_operands(kernel); !refusal.empty()) return {{}, refusal};
  const Graph& body = kernel.body;
  const Node& node = body.node(kernel.anchor);
  if (body.type(node.inputs[0]).rank() != 4) return {{}, "it is over volumes"};
  if (body_input_number(body, node.inputs[0]) < 0) return {{}, "its images are some channels of larger ones"};
  LibraryConvProblem problem;
  problem.images_argument = body_input_number(body, node.inputs[0]);
  problem.filter_argument = body_input_number(body, node.inputs[1]);
  problem.out_argument = static_cast<int>(body.inputs.size());
  problem.element = body.type(node.inputs[0]).dtype;
  problem.images = body.type(node.inputs[0]).dims();
  problem.filter = body.type(node.inputs[1]).dims();
  problem.out = body.type(node.outputs[0]).dims();
  problem.strides = node.attributes.integers("strides");
  problem.dilations = node.attributes.integers("dilations");
  const Dims& pads = node.attributes.integers("pads");
  problem.pads_before = {pads[0], pads[1]};
  problem.pads_after = {pads[2], pads[3]};
  if (node.inputs.size() > 2) {
    problem.bias_argument = body_input_number(body, node.inputs[2]);
    problem.bias_type = body.type(node.inputs[2]).dtype;
    if (problem.bias_argument < 0 || body.type(node.inputs[2]).dims() != Dims{problem.out[1]})
      return {{}, "its bias is computed in the kernel or one number"};
  }
  std::string refusal = read_library_epilogue(kernel, problem);
  return {problem, refusal};
}

}  // namespace sylvite
