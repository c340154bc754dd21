#include "base/error.h"
#include "base/rounding.h"
#include "lowering/plan/grouped_filter.h"
#include "schedules/cuda/grouped.h"
#include "schedules/cuda/sources.h"

namespace sylvite {
namespace {

constexpr std::int64_t most_positions = 1LL << 30;  // pixels of all images are numbered by int

/// A vector along the channels that is an input.
std::string read_bias(const Graph& body, const Node& node, CudaOperand& bias) {
  if (node.inputs.size() < 3 || node.inputs[2] == no_value) return "";
  const int input = body_input_number(body, node.inputs[2]);
  if (input < 0) return "its bias is computed in the kernel";
  const TensorType& type = body.type(node.inputs[2]);
  if (!is_float_storage(type.dtype)) return "its bias is no float";
  bias.of = {input, type.dtype, "bias", {1}};
  bias.column = type.element_count() == 1 ? 0 : 1;
  return "";
}

/// Why a kernel is no pooling of images as refuse_conv_operands asks for.
std::string refuse_pooling_operands(const Kernel& kernel) {
  const Graph& body = kernel.body;
  if (body.outputs.size() != 1) return "it has several outputs";
  const Node& node = body.node(kernel.anchor);
  if (node.op == Op::max_pool_gradient) return "it is a gradient";
  const TensorType &x = body.type(node.inputs[0]), &out = body.type(node.outputs[0]);
  const TensorType& result = body.type(body.outputs[0]);
  if (out.element_count() == 0 || x.element_count() == 0) return "it is empty";
  if (x.rank() != 4 && x.rank() != 5) return fmt::format("it has {} spatial dims, not 2 or 3", x.rank() - 2);
  if (!is_channels_last(x) || !is_channels_last(out)) return "its channels do not lie innermost";
  if (result.shape != out.shape || !is_channels_last(result))
    return "its epilogue changes the shape or the layout";
  if (body_input_number(body, node.inputs[0]) < 0) return "its images are computed in the kernel";
  return is_float_storage(x.dtype) && result.dtype == x.dtype ? "" : "it is not all of one float type";
}

void read_convolution(const Kernel& kernel, CudaGroupedProblem& problem) {
  const Node& node = kernel.body.node(kernel.anchor);
  problem.groups = node.attributes.integer("groups");
  problem.filter = body_input_number(kernel.body, node.inputs[1]);
  problem.filter_by_channel = !is_weight(kernel, problem.filter);
}

void read_pooling(const Kernel& kernel, CudaGroupedProblem& problem) {
  const Node& node = kernel.body.node(kernel.anchor);
  const bool is_mean = node.op == Op::avg_pool;
  problem.fold = is_mean ? CudaGroupedProblem::Fold::mean : CudaGroupedProblem::Fold::largest;
  problem.counts_padding = is_mean && node.attributes.integer("count_include_pad") != 0;
  const Dims& pads = node.attributes.integers("pads");
  problem.pad_after_x = pads.at(pads.size() - 1);
  problem.pad_after_y = pads.at(pads.size() - 2);
  problem.pad_after_z = pads.size() > 4 ? pads.at(pads.size() - 3) : 0;
  problem.groups = problem.windows.channels;
}

/// Rows are the pixels of an image, or of a frame.
CudaGroups images_and_pixels(const TensorType& type) {
  CudaGroups groups = ordered(type.dims(), channels_last_order(type.shape.size()));
  groups.last = groups.dims.size() - 1;
  groups.first = groups.last - 2;
  return groups;
}

Reading<CudaGroupedProblem> read_groups(const Kernel& kernel) {
  const bool is_pooling = kernel.kind == KernelClass::pooling;
  std::string refusal = is_pooling ? refuse_pooling_operands(kernel) : refuse_conv_operands(kernel);
  if (!refusal.empty()) return {{}, refusal};
  const Graph& body = kernel.body;
  const Node& node = body.node(kernel.anchor);
  if (body_input_number(body, node.inputs[0]) < 0) return {{}, "its images are some channels of larger ones"};
  CudaGroupedProblem problem;
  problem.is_open = kernel.open != nullptr;
  problem.has_open_images = has_open_images(kernel);
  problem.windows = windows_of(kernel);
  (is_pooling ? read_pooling : read_convolution)(kernel, problem);
  problem.outputs = body.type(node.outputs[0]).dims()[1];
  problem.element = body.type(node.inputs[0]).dtype;
  problem.x = body_input_number(body, node.inputs[0]);
  problem.out_argument = static_cast<int>(body.inputs.size());
  const CudaMatmulProblem::Windows& w = problem.windows;
  if (w.images * w.out_frames * w.out_lines * w.out_columns > most_positions ||
      w.frames * w.lines * w.columns > most_positions)
    return {{}, "its images are large"};
  problem.bias.of.input = -1;
  if (!is_pooling) refusal = read_bias(body, node, problem.bias);
  if (refusal.empty())
    refusal =
        read_work(body, node.outputs[0], body.outputs[0], images_and_pixels(body.type(node.outputs[0])),
                  "epilogue", problem.element != DType::f32, problem.epilogue, problem.epilogue_operands);
  if (refusal.empty() && problem.has_open_images)
    refusal = follow_rows(w.images * w.out_frames, w.out_lines * w.out_columns, problem.epilogue_operands);
  return {problem, refusal};
}

std::vector<const CudaOperand*> all_operands(const CudaGroupedProblem& problem) {
  std::vector<const CudaOperand*> all;
  all.reserve(problem.epilogue_operands.size() + 1);
  for (const CudaOperand& operand : problem.epilogue_operands) all.push_back(&operand);
  if (problem.bias.of.input >= 0) all.push_back(&problem.bias);
  return all;
}

/// Of one group, with channels that are half of what a step of the matmul template takes, and more than it joins; or of few
/// results, for which that template reads every pixel again for each tap. It gains on more results: of 32 channels of 16 bits,
/// 64 took 0.7 of this one's time, and 32 took 1.7.
bool is_narrow(const CudaGroupedProblem& problem) {
  const auto bytes = static_cast<std::int64_t>(dtype_size(problem.element));
  constexpr std::int64_t least = 8;
  const std::int64_t piece = 16 / bytes, most = 64 / bytes, most_outputs = 4 * most;
  const std::int64_t channels = problem.windows.channels;
  const bool has_few_results =
      problem.outputs <= most && channels <= (problem.element == DType::f32 ? most : 4 * most);
  const bool has_few_channels = channels < most && problem.outputs <= most_outputs;
  return channels >= least && channels % piece == 0 && (has_few_channels || has_few_results) &&
         problem.outputs % piece == 0 && problem.windows.taps() > 1;
}

/// Wide groups, or windows of many taps, whose filters this template would read again and again; not over frames, where the matmul
/// template takes no groups.
bool are_better_products(const CudaGroupedProblem& problem) {
  constexpr std::int64_t most_taps = 49;
  const std::int64_t wide = problem.element == DType::f32 ? 24 : 96;
  const std::int64_t inputs = problem.group_inputs(), outputs = problem.group_outputs();
  return !problem.windows.spans_frames() && groups_fill_tiles(inputs, outputs) &&
         (inputs >= wide || outputs >= wide || problem.windows.taps() > most_taps);
}

Packing& filter_packing(const Kernel& kernel, std::vector<Packing>& packings) {
  const ValueId filter = kernel.body.node(kernel.anchor).inputs.at(1);
  return packings.at(static_cast<std::size_t>(body_input_number(kernel.body, filter)));
}

}  // namespace

Reading<CudaGroupedProblem> read_cuda_depthwise(const Kernel& kernel) {
  Reading<CudaGroupedProblem> reading = read_groups(kernel);
  if (!reading.refusal.empty()) return reading;
  const CudaGroupedProblem& problem = reading.problem;
  if (problem.groups != problem.windows.channels || problem.outputs != problem.groups)
    reading.refusal = "it is not depthwise";
  else if (cuda_depthwise_choices(problem).empty())
    reading.refusal = "a line of its windows does not fit into registers";
  return reading;
}

Reading<CudaGroupedProblem> read_cuda_grouped(const Kernel& kernel) {
  Reading<CudaGroupedProblem> reading = read_groups(kernel);
  if (!reading.refusal.empty()) return reading;
  const CudaGroupedProblem& problem = reading.problem;
  if (problem.fold != CudaGroupedProblem::Fold::products)
    reading.refusal = "it is no convolution";
  else if (problem.filter_by_channel)
    reading.refusal = "its filter is no weight";
  else if (problem.groups == 1)
    reading.refusal = is_narrow(problem) ? "" : "it has one group, of other channels than few";
  else if (are_better_products(problem))
    reading.refusal = "its groups are better as products of their own";
  else if (groups_of_unit(problem.groups, problem.group_inputs(), problem.group_outputs()) == 0)
    reading.refusal = fmt::format("its groups of {} and {} channels do not join to units of tensor cores",
                                  problem.group_inputs(), problem.group_outputs());
  return reading;
}

void pack_for_cuda_depthwise(const Kernel& kernel, std::vector<Packing>& packings) {
  if (kernel.kind == KernelClass::pooling) return;
  if (!is_weight(kernel, body_input_number(kernel.body, kernel.body.node(kernel.anchor).inputs.at(1))))
    return;
  const std::size_t rank = kernel.body.type(kernel.body.node(kernel.anchor).inputs[1]).shape.size();
  filter_packing(kernel, packings) = {Dims(rank, 1), filter_order(rank, {2, 0, 1})};
}

void pack_for_cuda_grouped(const Kernel& kernel, std::vector<Packing>& packings) {
  const Node& node = kernel.body.node(kernel.anchor);
  const Dims filter = kernel.body.type(node.inputs.at(1)).dims();
  const std::int64_t groups = node.attributes.integer("groups"), outputs = filter[0] / groups;
  Packing& packing = filter_packing(kernel, packings);
  if (groups == 1) {
    packing = {Dims(filter.size(), 1), filter_order(filter.size(), {2, 0, 1})};
    return;
  }
  packing = {Dims(filter.size(), 1), filter_order(filter.size(), {0, 2, 1})};
  packing.factors[0] = groups_of_unit(groups, filter[1], outputs) * outputs;
  packing.order.insert(packing.order.end() - 1, 1);  // the output channels of a unit
  packing.filter_groups = groups;
}

std::int64_t span_of(std::int64_t tile, std::int64_t stride, std::int64_t taps, std::int64_t dilation) {
  return (tile - 1) * stride + (taps - 1) * dilation + 1;
}

std::int64_t tiles_of(const CudaMatmulProblem::Windows& windows, std::int64_t tile_y, std::int64_t tile_x,
                      std::int64_t tile_z) {
  return windows.images * ceil_div(windows.out_frames, tile_z) * ceil_div(windows.out_lines, tile_y) *
         ceil_div(windows.out_columns, tile_x);
}

std::string windows_text(const CudaMatmulProblem::Windows& w) {
  return fmt::format(
      "constexpr int FRAMES = {}, CHANNELS = {}, OUT_FRAMES = {};\n"
      "constexpr int TAPS_Z = {}, STRIDE_Z = {}, DILATION_Z = {}, PAD_Z = {};\n"
      "constexpr int TAPS_Y = {}, TAPS_X = {}, STRIDE_Y = {}, STRIDE_X = {}, DILATION_Y = {}, DILATION_X = "
      "{}, "
      "PAD_Y = {}, PAD_X = {};\n",
      w.frames, w.channels, w.out_frames, w.taps_z, w.stride_z, w.dilation_z, w.pad_z, w.taps_y, w.taps_x,
      w.stride_y, w.stride_x, w.dilation_y, w.dilation_x, w.pad_y, w.pad_x);
}

std::vector<CudaExtent> image_extents(const CudaMatmulProblem::Windows& w, bool is_open,
                                      bool has_open_images) {
  return {{"images", w.images, is_open},
          {"lines", w.lines, has_open_images},
          {"columns", w.columns, has_open_images},
          {"out_lines", w.out_lines, has_open_images},
          {"out_columns", w.out_columns, has_open_images}};
}

std::vector<CudaExtent> window_extents(const CudaGroupedProblem& problem) {
  const CudaMatmulProblem::Windows& w = problem.windows;
  std::vector<CudaExtent> extents = image_extents(w, problem.is_open, problem.has_open_images);
  extents.push_back({"rows", w.out_lines * w.out_columns, problem.has_open_images});  // of operands
  return extents;
}

std::string grouped_text(const CudaGroupedProblem& problem, int vector, const std::string& entry) {
  std::string text = fmt::format("#define KERNEL {}\n{}{}{}", entry, embedded::cuda_card,
                                 embedded::cuda_pointwise, embedded::cuda_vector);
  const std::vector<const CudaOperand*> operands = all_operands(problem);
  std::string loads, root = "x[j]";
  for (const CudaOperand* operand : operands) loads += load_text(*operand, vector, "false");
  if (problem.bias.of.input >= 0) root = "x[j] + v_bias[j]";
  text += windows_text(problem.windows);
  text += fmt::format("constexpr int OUTPUTS = {}, VECTOR = {};\ntypedef {} Out;\ntypedef Out Element;\n",
                      problem.outputs, vector, dtype_name(problem.element));
  text += "struct Arguments {\n  Out* out;\n  const Element* x;\n  const Element* filter;\n";
  for (const CudaOperand* operand : operands)
    text += fmt::format("  const {}* {};\n", dtype_name(operand->of.dtype), operand->of.name);
  const std::vector<CudaExtent> extents = window_extents(problem);
  return text + extent_members(extents) + "};\n" + extents_text(extents) + problem.epilogue.function +
         fmt::format(
             "DEVICE void finish(const Arguments& a, long long batch, int row, int column, float "
             "(&x)[VECTOR]) {{\n  const Extents e = extents_of(a);\n{}"
             "#pragma unroll\n  for (int j = 0; j < VECTOR; j++) x[j] = {};\n"
             "  store_vector(a.out + (batch * (e.out_lines * e.out_columns) + row) * OUTPUTS + column, "
             "x);\n}}\n",
             loads, call_text(problem.epilogue, "epilogue", root));
}

std::vector<int> grouped_pointers(const CudaGroupedProblem& problem) {
  std::vector<int> pointers = {problem.out_argument, problem.x, problem.filter};
  for (const CudaOperand* operand : all_operands(problem)) pointers.push_back(operand->of.input);
  return pointers;
}

}  // namespace sylvite
