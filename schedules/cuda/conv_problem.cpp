#include <algorithm>
#include <optional>

#include "base/error.h"
#include "base/rounding.h"
#include "frontend/graph/rewrite.h"
#include "lowering/plan/grouped_filter.h"
#include "schedules/cuda/conv.h"
#include "schedules/cuda/extents.h"

namespace sylvite {
namespace {

using Windows = CudaMatmulProblem::Windows;

constexpr std::int64_t stage_bytes = 128;  // of channels that one load of the template takes

void read_conv_operands(const Kernel& kernel, CudaMatmulProblem& problem) {
  const Graph& body = kernel.body;
  const Node& node = body.node(kernel.anchor);
  const ImageSource images = image_source(body, node.inputs[0]);
  problem.a.input = images.input;
  problem.a.offset = images.first_channel;
  problem.b.input = body_input_number(body, node.inputs[1]);
  problem.b.is_weight = is_weight(kernel, problem.b.input);
  problem.element = body.type(node.inputs[0]).dtype;
  problem.out = body.type(body.outputs[0]).dtype;
}

std::int64_t steps(std::int64_t taps, std::int64_t bytes) {
  return taps * ceil_div(bytes, stage_bytes);
}

bool is_matrix(const Windows& w) {
  return w.taps() == 1 && !w.spans_frames() && w.stride_x == 1 && w.stride_y == 1 && w.pad_x == 0 &&
         w.pad_y == 0 && w.out_lines == w.lines && w.out_columns == w.columns &&
         w.line_pitch == w.columns * w.column_pitch;
}

/// Windows of one pixel over several frames are windows of lines over the frames, whose columns are all pixels.
void stand_frames_up(Windows& w) {
  const bool meets_pixels = w.taps_y == 1 && w.taps_x == 1 && w.stride_y == 1 && w.stride_x == 1 &&
                            w.pad_y == 0 && w.pad_x == 0 && w.out_lines == w.lines &&
                            w.out_columns == w.columns;
  if (!w.spans_frames() || !meets_pixels) return;
  w.columns *= w.lines;
  w.out_columns = w.columns;
  w.lines = w.frames;
  w.out_lines = w.out_frames;
  w.line_pitch = w.image_pitch;
  w.image_pitch = w.lines * w.line_pitch;
  w.taps_y = w.taps_z;
  w.stride_y = w.stride_z;
  w.dilation_y = w.dilation_z;
  w.pad_y = w.pad_z;
  w.frames = w.out_frames = w.taps_z = w.stride_z = w.dilation_z = 1;
  w.pad_z = 0;
}

/// The step from each element of these dims to the next, where it is one; else nothing.
std::optional<std::int64_t> joined_step(const Dims& dims, const Dims& strides,
                                        std::initializer_list<std::size_t> inner_first) {
  std::int64_t step = 0, count = 1;
  for (const std::size_t d : inner_first) {
    if (d >= dims.size() || dims[d] == 1) continue;
    if (count == 1) step = strides[d];
    if (strides[d] != count * step) return std::nullopt;
    count *= dims[d];
  }
  return step;
}

/// Strides over [batch, m, n] from those over [image, channel, pixels...]; false when pixels are not one step apart.
/// `frames`: each is a batch. Else batches are groups, of `channels`.
bool join_pixels(const Dims& dims, bool frames, std::int64_t channels, Dims& strides) {
  const std::optional<std::int64_t> batch =
      frames ? joined_step(dims, strides, {2, 0}) : std::optional(channels * strides[1]);
  const std::optional<std::int64_t> row = frames             ? joined_step(dims, strides, {4, 3})
                                          : dims.size() == 5 ? joined_step(dims, strides, {4, 3, 2, 0})
                                                             : joined_step(dims, strides, {3, 2, 0});
  if (!batch || !row) return false;
  strides = {*batch, *row, strides[1]};
  return true;
}

/// The bias is the epilogue's first operand.
void add_bias(const Graph& body, int input, std::int64_t batch_pitch, PointwiseText& text) {
  PointwiseOperand bias;
  bias.input = input;
  bias.dtype = body.type(body.inputs[static_cast<std::size_t>(input)]).dtype;
  bias.name = "bias";
  bias.strides = {batch_pitch, 0, 1};
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

std::string read_conv_epilogue(const Kernel& kernel, CudaMatmulProblem& problem) {
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
    const bool frames = problem.windows && problem.windows->spans_frames();
    if (!join_pixels(body.type(node.outputs[0]).dims(), frames, problem.groups > 1 ? problem.n : 0,
                     operand.strides))
      return "an operand of its epilogue is broadcast over some pixels";
  }
  if (bias == no_value) return "";
  const int input = body_input_number(body, bias);
  if (input < 0) return "its bias is computed in the kernel or one number";
  if (!kernel.input_is_weight.at(static_cast<std::size_t>(input))) problem.epilogue_reads_activations = true;
  add_bias(body, input, problem.groups > 1 ? problem.n : 0, problem.epilogue);
  return "";
}

/// Each group of channels is a batch: it reads its own of the images' and makes its own of the result's.
void divide_groups(std::int64_t groups, Windows& windows, CudaMatmulProblem& problem) {
  windows.channels /= groups;
  windows.filter_pitch = windows.channels;
  problem.groups = problem.batch = groups;
  problem.n /= groups;
  problem.a.batch_pitch = windows.channels;
  problem.b.batch_pitch = problem.n * windows.taps() * windows.channels;
}

std::string refuse_groups(std::int64_t groups, const Windows& windows, std::int64_t outputs) {
  if (groups == 1) return "";
  if (!groups_fill_tiles(windows.channels / groups, outputs / groups))
    return fmt::format("it has {} groups", groups);
  return windows.spans_frames() ? fmt::format("its {} groups span frames", groups) : "";
}

}  // namespace

bool is_weight(const Kernel& kernel, int number) {
  return number >= 0 && kernel.input_is_weight.at(static_cast<std::size_t>(number));
}

bool is_channels_last(const TensorType& type) {
  return type.rank() >= 4 && type.layout.channel_block == type.dims()[1];
}

std::vector<std::size_t> channels_last_order(std::size_t rank) {
  std::vector<std::size_t> order = {0};
  for (std::size_t d = 2; d < rank; ++d) order.push_back(d);
  order.push_back(1);
  return order;
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

ImageSource image_source(const Graph& body, ValueId id) {
  const TensorType& type = body.type(id);
  if (const int input = body_input_number(body, id); input >= 0) return {input, 0, type.dims().at(1)};
  const Node* slice = producer_if(body, id, Op::slice);
  if (slice == nullptr || !is_channels_last(body.type(slice->inputs[0]))) return {};
  const int input = body_input_number(body, slice->inputs[0]);
  const Dims whole = body.type(slice->inputs[0]).dims();
  Dims sizes = slice->attributes.integers("sizes"), starts = slice->attributes.integers("starts");
  const std::int64_t first = starts[1];
  sizes[1] = whole[1];
  starts[1] = 0;
  const bool cuts_channels = sizes == whole && starts == Dims(whole.size(), 0) &&
                             slice->attributes.integers("steps") == Dims(whole.size(), 1);
  return cuts_channels ? ImageSource{input, first, whole[1]} : ImageSource{};
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
  const bool has_frames = x.size() > 4;
  const std::size_t y = has_frames ? 1 : 0, line = y + 2;
  Windows w;
  w.images = x[0];
  w.channels = x[1];
  w.lines = x[line];
  w.columns = x[line + 1];
  w.column_pitch = node.op == Op::conv ? image_source(body, node.inputs[0]).channels : w.channels;
  w.pixel_pitch = w.column_pitch;
  w.line_pitch = w.columns * w.column_pitch;
  w.image_pitch = w.lines * w.line_pitch;
  w.filter_pitch = w.channels;
  w.out_lines = out[line];
  w.out_columns = out[line + 1];
  w.taps_y = taps[y];
  w.taps_x = taps[y + 1];
  w.stride_y = strides[y];
  w.stride_x = strides[y + 1];
  w.dilation_y = dilations[y];
  w.dilation_x = dilations[y + 1];
  w.pad_y = pads[y];
  w.pad_x = pads[y + 1];
  if (!has_frames) return w;
  w.frames = x[2];
  w.out_frames = out[2];
  w.taps_z = taps[0];
  w.stride_z = strides[0];
  w.dilation_z = dilations[0];
  w.pad_z = pads[0];
  if (w.taps_z == 1 && w.stride_z == 1 && w.pad_z == 0 && w.out_frames == w.frames) {
    w.images *= w.frames;
    w.frames = w.out_frames = 1;
  }
  return w;
}

bool may_join_taps(const Windows& w) {
  return w.column_pitch == w.channels && w.pad_x == 0 &&
         (w.out_columns - 1) * w.stride_x + w.taps_x <= w.columns && w.dilation_x == 1;
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
  if (x.rank() != 4 && x.rank() != 5) return fmt::format("it has {} spatial dims, not 2 or 3", x.rank() - 2);
  if (!is_channels_last(x) || !is_channels_last(out)) return "its channels do not lie innermost";
  if (result.shape != out.shape || !is_channels_last(result))
    return "its epilogue changes the shape or the layout";
  if (image_source(body, node.inputs[0]).input < 0) return "its images are computed in the kernel";
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
  const std::int64_t groups = node.attributes.integer("groups");
  CudaMatmulProblem problem;
  read_conv_operands(kernel, problem);
  Windows windows = windows_of(kernel);
  stand_frames_up(windows);
  problem.out_argument = static_cast<int>(body.inputs.size());
  problem.n = body.type(node.outputs[0]).dims()[1];
  if (std::string refusal = refuse_groups(groups, windows, problem.n); !refusal.empty()) return {{}, refusal};
  if (groups > 1) divide_groups(groups, windows, problem);
  const auto bytes = windows.channels * static_cast<std::int64_t>(dtype_size(problem.element));
  if (groups == 1 && may_join_taps(windows) &&
      steps(1, windows.taps_x * bytes) < steps(windows.taps_x, bytes))
    join_taps(windows);
  problem.m = windows.out_lines * windows.out_columns;
  (windows.spans_frames() ? problem.batch : problem.m) *= windows.images * windows.out_frames;
  problem.k = windows.taps() * windows.channels;
  if (is_matrix(windows)) {
    problem.a.pitch = windows.column_pitch;
    problem.b.pitch = windows.filter_pitch;
  } else {
    problem.windows = windows;
    problem.has_open_images = has_open_images(kernel);
  }
  problem.is_open = kernel.open != nullptr;
  if (std::string refusal = read_conv_epilogue(kernel, problem); !refusal.empty()) return {{}, refusal};
  return {problem, ""};
}

std::vector<int> filter_order(std::size_t rank, std::initializer_list<int> places) {
  constexpr int taps = 2;
  std::vector<int> order;
  for (const int place : places)
    for (int d = place; d == place || (place == taps && d < static_cast<int>(rank)); ++d)
      order.push_back(2 * d);
  return order;
}

void pack_for_cuda_conv(const Kernel& kernel, std::vector<Packing>& packings) {
  const int filter = body_input_number(kernel.body, kernel.body.node(kernel.anchor).inputs.at(1));
  if (!is_weight(kernel, filter)) return;
  const std::size_t rank =
      kernel.body.type(kernel.body.inputs[static_cast<std::size_t>(filter)]).shape.size();
  packings[static_cast<std::size_t>(filter)] = {Dims(rank, 1), filter_order(rank, {0, 2, 1})};
}

}  // namespace sylvite
