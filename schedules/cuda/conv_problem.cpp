#include <algorithm>

#include "base/error.h"
#include "base/rounding.h"
#include "schedules/cuda/conv.h"

namespace sylvite {
namespace {

using Windows = CudaMatmulProblem::Windows;

constexpr std::int64_t stage_bytes = 128;  // of channels that one load of the template takes

void read_operands(const Kernel& kernel, CudaMatmulProblem& problem) {
  const Graph& body = kernel.body;
  const Node& node = body.node(kernel.anchor);
  problem.a.input = body_input_number(body, node.inputs[0]);
  problem.b.input = body_input_number(body, node.inputs[1]);
  problem.b.is_weight = is_weight(kernel, problem.b.input);
  problem.element = body.type(node.inputs[0]).dtype;
  problem.out = body.type(body.outputs[0]).dtype;
}

std::int64_t steps(std::int64_t taps, std::int64_t bytes) {
  return taps * ceil_div(bytes, stage_bytes);
}

bool is_matrix(const Windows& w) {
  return w.taps() == 1 && w.stride_x == 1 && w.stride_y == 1 && w.pad_x == 0 && w.pad_y == 0 &&
         w.out_lines == w.lines && w.out_columns == w.columns && w.line_pitch == w.columns * w.column_pitch;
}

/// Strides over [batch, m, n] from those over [image, channel, line, column]; false when pixels are not one
/// step apart.
bool join_pixels(const Dims& dims, Dims& strides) {
  std::int64_t step = 0, count = 1;
  for (const std::size_t d : {3, 2, 0}) {
    if (dims[d] == 1) continue;
    if (count == 1) step = strides[d];
    if (strides[d] != count * step) return false;
    count *= dims[d];
  }
  strides = {0, step, strides[1]};
  return true;
}

/// The bias is the epilogue's first operand.
void add_bias(const Graph& body, int input, PointwiseText& text) {
  PointwiseOperand bias;
  bias.input = input;
  bias.dtype = body.type(body.inputs[static_cast<std::size_t>(input)]).dtype;
  bias.name = "bias";
  bias.strides = {0, 0, 1};
  std::string parameters, arguments;
  for (const PointwiseOperand& operand : text.operands) {
    parameters += ", float " + operand.name;
    arguments += ", " + operand.name;
  }
  text.function += fmt::format(
      "DEVICE float epilogue(float root, float bias{}) {{\n"
      "  return after_bias(root + bias{});\n}}\n",
      parameters, arguments);
  text.operands.insert(text.operands.begin(), bias);
}

std::string read_epilogue(const Kernel& kernel, CudaMatmulProblem& problem) {
  const Graph& body = kernel.body;
  const Node& node = body.node(kernel.anchor);
  const ValueId bias = node.inputs.size() > 2 ? node.inputs[2] : no_value;
  try {
    problem.epilogue =
        print_pointwise(body, node.outputs[0], body.outputs[0], bias == no_value ? "epilogue" : "after_bias",
                        problem.out != DType::f32);
  } catch (const UnsupportedError& error) {
    return error.what();
  }
  for (PointwiseOperand& operand : problem.epilogue.operands) {
    if (!kernel.input_is_weight.at(static_cast<std::size_t>(operand.input)))
      problem.epilogue_reads_activations = true;
    if (!join_pixels(body.type(node.outputs[0]).dims(), operand.strides))
      return "an operand of its epilogue is broadcast over some pixels";
  }
  if (bias == no_value) return "";
  const int input = body_input_number(body, bias);
  if (input < 0) return "its bias is computed in the kernel or one number";
  if (!kernel.input_is_weight.at(static_cast<std::size_t>(input))) problem.epilogue_reads_activations = true;
  add_bias(body, input, problem.epilogue);
  return "";
}

}  // namespace

bool is_weight(const Kernel& kernel, int number) {
  return number >= 0 && kernel.input_is_weight.at(static_cast<std::size_t>(number));
}

bool is_channels_last(const TensorType& type) {
  return type.rank() == 4 && type.layout.channel_block == type.dims()[1];
}

std::string refuse_image(const TensorType& type) {
  constexpr std::int64_t most_pixels = 1LL << 30;
  if (!is_channels_last(type) || (type.dtype != DType::bf16 && type.dtype != DType::f16))
    return "it reads other than images of 16 bits with their channels innermost";
  return type.element_count() / std::max<std::int64_t>(type.dims()[1], 1) > most_pixels
             ? "its images are large"
             : "";
}

int body_input_number(const Graph& body, ValueId id) {
  const auto found = std::find(body.inputs.begin(), body.inputs.end(), id);
  return found == body.inputs.end() ? -1 : static_cast<int>(found - body.inputs.begin());
}

CudaMatmulProblem::Windows windows_of(const Kernel& kernel) {
  const Graph& body = kernel.body;
  const Node& node = body.node(kernel.anchor);
  const bool is_gradient = node.op == Op::filter_gradient || node.op == Op::max_pool_gradient;
  const Dims x = body.type(node.inputs[is_gradient ? 1 : 0]).dims();
  Dims taps;
  if (node.op == Op::conv) {
    const Dims filter = body.type(node.inputs[1]).dims();
    taps.assign(filter.begin() + 2, filter.end());
  } else {
    taps = node.attributes.integers("kernel");
  }
  const Dims out = body.type(is_gradient ? node.inputs[0] : node.outputs[0]).dims();
  const Dims &strides = node.attributes.integers("strides"),
             &dilations = node.attributes.integers("dilations"), &pads = node.attributes.integers("pads");
  Windows w;
  w.images = x[0];
  w.channels = x[1];
  w.lines = x[2];
  w.columns = x[3];
  w.column_pitch = w.channels;
  w.line_pitch = w.columns * w.channels;
  w.image_pitch = w.lines * w.line_pitch;
  w.filter_pitch = w.channels;
  w.out_lines = out[2];
  w.out_columns = out[3];
  w.taps_y = taps[0];
  w.taps_x = taps[1];
  w.stride_y = strides[0];
  w.stride_x = strides[1];
  w.dilation_y = dilations[0];
  w.dilation_x = dilations[1];
  w.pad_y = pads[0];
  w.pad_x = pads[1];
  return w;
}

bool may_join_taps(const Windows& w) {
  return w.pad_x == 0 && (w.out_columns - 1) * w.stride_x + w.taps_x <= w.columns && w.dilation_x == 1;
}

void join_taps(Windows& w) {
  w.channels *= w.taps_x;
  w.filter_pitch = w.channels;
  w.columns = w.out_columns;
  w.column_pitch *= w.stride_x;
  w.taps_x = 1;
  w.stride_x = 1;
}

std::string refuse_conv_operands(const Kernel& kernel) {
  if (kernel.kind != KernelClass::convolution || is_filter_gradient(kernel)) return "it is no convolution";
  const Graph& body = kernel.body;
  if (body.outputs.size() != 1) return "it has several outputs";
  const Node& node = body.node(kernel.anchor);
  const TensorType& x = body.type(node.inputs[0]);
  const TensorType& filter = body.type(node.inputs[1]);
  const TensorType& out = body.type(node.outputs[0]);
  const TensorType& result = body.type(body.outputs[0]);
  if (out.element_count() == 0 || filter.element_count() == 0) return "it is empty";
  if (x.rank() != 4) return fmt::format("it has {} spatial dims, not 2", x.rank() - 2);
  if (!is_channels_last(x) || !is_channels_last(out)) return "its channels do not lie innermost";
  if (result.shape != out.shape || !is_channels_last(result))
    return "its epilogue changes the shape or the layout";
  if (body_input_number(body, node.inputs[0]) < 0) return "its images are computed in the kernel";
  const int number = body_input_number(body, node.inputs[1]);
  if (number < 0) return "its filter is computed in the kernel";
  const bool is_dense = filter.layout.channel_block == 0;
  if (is_weight(kernel, number) ? !is_dense
                                : !is_channels_last(filter) && !(is_dense && filter.dims()[1] == 1))
    return "its filter is no weight and its channels do not lie innermost";
  for (const DType dtype : {x.dtype, filter.dtype, result.dtype}) {
    const bool is_known = dtype == DType::bf16 || dtype == DType::f16 || dtype == DType::f32;
    if (dtype != x.dtype || !is_known)
      return fmt::format("{} is no type of the tensor cores", dtype_name(dtype));
  }
  return "";
}

Reading<CudaMatmulProblem> read_cuda_conv(const Kernel& kernel) {
  if (std::string refusal = refuse_conv_operands(kernel); !refusal.empty()) return {{}, refusal};
  const Graph& body = kernel.body;
  const Node& node = body.node(kernel.anchor);
  if (const std::int64_t groups = node.attributes.integer("groups"); groups != 1)
    return {{}, fmt::format("it has {} groups", groups)};
  CudaMatmulProblem problem;
  read_operands(kernel, problem);
  Windows windows = windows_of(kernel);
  const auto bytes = windows.channels * static_cast<std::int64_t>(dtype_size(problem.element));
  if (may_join_taps(windows) && steps(1, windows.taps_x * bytes) < steps(windows.taps_x, bytes))
    join_taps(windows);
  problem.out_argument = static_cast<int>(body.inputs.size());
  problem.m = windows.images * windows.out_lines * windows.out_columns;
  problem.n = body.type(node.outputs[0]).dims()[1];
  problem.k = windows.taps() * windows.channels;
  if (is_matrix(windows)) {
    problem.a.pitch = windows.column_pitch;
    problem.b.pitch = windows.filter_pitch;
  } else {
    problem.windows = windows;
  }
  if (std::string refusal = read_epilogue(kernel, problem); !refusal.empty()) return {{}, refusal};
  return {problem, ""};
}

void pack_for_cuda_conv(const Kernel& kernel, std::vector<Packing>& packings) {
  const int filter = body_input_number(kernel.body, kernel.body.node(kernel.anchor).inputs.at(1));
  if (is_weight(kernel, filter)) packings[static_cast<std::size_t>(filter)] = {{1, 1, 1, 1}, {0, 4, 6, 2}};
}

}  // namespace sylvite
