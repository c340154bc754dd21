// Convolutions as templates read them.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "base/rounding.h"
#include "frontend/ops/op_table.h"
#include "lowering/algorithms/problem_parts.h"
#include "lowering/algorithms/problems.h"
#include "lowering/plan/run_extents.h"

namespace sylvite {
namespace {

/// Is what a convolution reads of an image, and makes of it, of one size in all runs?
bool has_known_images(const Kernel& kernel, ValueId x, ValueId out) {
  if (!kernel.open) return true;
  return std::ranges::all_of(std::array{x, out}, [&](ValueId id) {
    const Shape& shape = kernel.open->type(id).shape;
    return shape[2].is_known() && shape[3].is_known();
  });
}

/// Of images `out` that windows of `kernel_dims` make of `problem.x`.
void read_conv_extents(const Kernel& kernel, const Node& node, ValueId out_id, const Dims& kernel_dims,
                       ConvProblem& problem) {
  const Graph& body = kernel.body;
  const Shape& in = body.type(problem.x).shape;
  const Shape& out = body.type(out_id).shape;
  const Dims& strides = node.attributes.integers("strides");
  const Dims& dilations = node.attributes.integers("dilations");
  const std::vector<Extent> pads = pads_in_runs(kernel, node);
  problem.batch = number_or_open(body.type(problem.x).shape[0]);
  problem.channels = in[1].known();
  problem.height = number_or_open(in[2]);
  problem.width = number_or_open(in[3]);
  problem.out_channels = out[1].known();
  problem.out_height = number_or_open(out[2]);
  problem.out_width = number_or_open(out[3]);
  problem.kernel_y = kernel_dims.at(0);
  problem.kernel_x = kernel_dims.at(1);
  problem.stride_y = strides.at(0);
  problem.stride_x = strides.at(1);
  problem.dilation_y = dilations.at(0);
  problem.dilation_x = dilations.at(1);
  problem.pad_top = pads.at(0);
  problem.pad_left = pads.at(1);
  problem.padded = problem.pad_top != 0 || problem.pad_left != 0;
  if (problem.padded) return;
  if (!has_known_images(kernel, problem.x, out_id) || !std::ranges::all_of(pads, &Extent::is_known)) {
    problem.padded = std::ranges::any_of(pads, [](const Extent& pad) { return pad != 0; });
    return;
  }
  const auto last = [](std::int64_t extent, std::int64_t stride, std::int64_t window, std::int64_t dilation) {
    return (extent - 1) * stride + (window - 1) * dilation;
  };
  problem.padded =
      last(problem.out_height, problem.stride_y, problem.kernel_y, problem.dilation_y) >= problem.height ||
      last(problem.out_width, problem.stride_x, problem.kernel_x, problem.dilation_x) >= problem.width;
}

bool has_open_channels(const Kernel& kernel, const Node& node) {
  if (!kernel.open) return false;
  const auto shape = [&](ValueId id) -> const Shape& { return kernel.open->type(id).shape; };
  return !shape(node.inputs.at(0))[1].is_known() || !shape(node.outputs.at(0))[1].is_known() ||
         !shape(node.inputs.at(1)).is_known();
}

std::string conv_refusal(const Kernel& kernel, const Node& node, bool depthwise) {
  const Graph& body = kernel.body;
  const TensorType& x = body.type(node.inputs.at(0));
  const TensorType& out = body.type(node.outputs.at(0));
  if (x.rank() != 4) return fmt::format("it has {} spatial dims, the template takes 2", x.rank() - 2);
  if (out.layout.channel_block == 0) return "its output is not channel-blocked";
  if (x.layout.channel_block != 0 && x.layout != out.layout)
    return "its input and output have different blocks";
  if (has_open_channels(kernel, node)) return "its channels or its window are open";
  const std::int64_t groups = node.attributes.integer("groups");
  if (depthwise && (x.shape[1] != groups || out.shape[1] != groups)) return "it is not depthwise";
  if (!depthwise && groups != 1) {
    const Dims filter = body.type(node.inputs.at(1)).dims();
    if (x.layout.channel_block == 0)
      return fmt::format("it has {} groups and its input is not blocked", groups);
    if (!are_worth_blocks({groups, filter.at(1), filter.at(0) / groups, out.layout.channel_block}))
      return fmt::format("it has {} groups", groups);
  }
  return "";
}

/// All but how channels are folded, of one convolution in the kernel.
Reading<ConvProblem> read_conv_products(const Kernel& kernel, const Node& node, bool depthwise) {
  const Graph& body = kernel.body;
  Reading<ConvProblem> reading;
  for (const std::string& refusal : {element_refusal(body, node), conv_refusal(kernel, node, depthwise)})
    if (!refusal.empty()) return {{}, refusal};
  if (depthwise && !is_float(body.type(node.outputs.at(0)).dtype)) return {{}, "it multiplies integers"};
  ConvProblem& problem = reading.problem;
  problem.x = node.inputs.at(0);
  problem.weight = node.inputs.at(1);
  problem.packs_weight = find_weight(kernel, problem.weight).id != problem.weight;
  problem.bias = node.inputs.size() > 2 ? node.inputs[2] : no_value;
  problem.anchor = node.outputs.at(0);
  problem.output = body.outputs[0];
  problem.depthwise = depthwise;
  problem.groups = depthwise ? 1 : node.attributes.integer("groups");
  problem.block = body.type(problem.anchor).layout.channel_block;
  problem.x_is_blocked = body.type(problem.x).layout.channel_block != 0;
  problem.x_is_computed = is_computed(body, problem.x);
  const Dims weight = body.type(problem.weight).dims();
  read_conv_extents(kernel, node, problem.anchor, {weight.at(2), weight.at(3)}, problem);
  const DType element = body.type(problem.x).dtype;
  problem.element = element == DType::u8 ? DType::i8 : element;
  if (body.type(problem.anchor).shape.product() == 0 || body.type(problem.weight).element_count() == 0)
    return {{}, "it is empty"};
  return reading;
}

/// The kernel's only convolution.
Reading<ConvProblem> read_conv_products(const Kernel& kernel, bool depthwise) {
  if (kernel.kind != KernelClass::convolution || kernel.body.node(kernel.anchor).op != Op::conv)
    return {{}, "it is no convolution"};
  if (std::string refusal = body_refusal(kernel); !refusal.empty()) return {{}, std::move(refusal)};
  return read_conv_products(kernel, kernel.body.node(kernel.anchor), depthwise);
}

Reading<ConvProblem> with_folded_channels(Reading<ConvProblem> reading) {
  if (!reading.refusal.empty()) return reading;
  ConvProblem& problem = reading.problem;
  const bool few = !problem.x_is_blocked && !problem.depthwise && problem.channels < problem.block;
  const int pair = problem.pair();
  // Few channels are copied: an odd one gets a neighbour of zeros.
  const std::int64_t own = problem.channels / problem.groups;
  const std::int64_t channels = few ? round_up(own, pair) : own;
  problem.source_block = few ? static_cast<int>(channels) : problem.block;
  problem.fold_block = static_cast<int>(std::gcd(channels, static_cast<std::int64_t>(problem.source_block)));
  if (problem.fold_block % pair != 0)
    return {
        {},
        fmt::format("its {} channels are odd, {} is multiplied in pairs", own, dtype_name(problem.element))};
  return reading;
}

/// For templates that read a filter only as it was packed when the program was loaded.
Reading<ConvProblem> with_own_weight(Reading<ConvProblem> reading) {
  if (reading.refusal.empty() && reading.problem.packs_weight)
    reading.refusal = "its filter is not a weight of its own";
  return reading;
}

/// The same for those that fold all channels for every output.
Reading<ConvProblem> without_groups(Reading<ConvProblem> reading) {
  reading = with_own_weight(std::move(reading));
  if (reading.refusal.empty() && reading.problem.groups > 1)
    reading.refusal = fmt::format("it has {} groups", reading.problem.groups);
  return reading;
}

/// The second convolution of a kernel that has two, else nullptr.
const Node* second_conv(const Kernel& kernel) {
  const Node* found = nullptr;
  for (std::size_t i = 0; i < kernel.body.nodes().size(); ++i) {
    const Node& node = kernel.body.nodes()[i];
    if (node.op != Op::conv || static_cast<NodeId>(i) == kernel.anchor) continue;
    if (found != nullptr) return nullptr;
    found = &node;
  }
  return found;
}

bool is_scalar_constant(const Graph& body, ValueId id) {
  const Value& value = body.value(id);
  return value.constant && value.constant->size() == 1;
}

/// Why the work around two convolutions cannot be done by rows; empty when it can. All between them exists beyond the border, too.
std::string rows_refusal(const Graph& body, const Node& first, const Node& second) {
  if (body.outputs.size() != 1)
    return fmt::format("it has {} outputs, a template makes one", body.outputs.size());
  const IdMap<bool> depends = downstream_of(body, first.outputs.at(0));
  const IdMap<bool> is_after = downstream_of(body, second.outputs.at(0));
  const auto is_between = [&](ValueId id) { return depends[id] && !is_after[id]; };
  if (!is_between(second.inputs.at(0))) return "its second convolution does not read the first";
  if (!is_after[body.outputs[0]]) return "its output depends on no second convolution";
  for (const Node& node : body.nodes()) {
    if (&node == &first || &node == &second) continue;
    const ValueId result = node.outputs.at(0);
    const bool between = is_between(result);
    if (!depends[result]) {
      if (!has_trait(node.op, OpTrait::view) && !has_trait(node.op, OpTrait::creation))
        return fmt::format("its body also has {}", op_info(node.op).name);
      continue;
    }
    const TensorType& type = body.type((between ? first : second).outputs[0]);
    const bool reads_only_that = std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId id) {
      return between ? is_between(id) || is_scalar_constant(body, id) : id == no_value || !is_between(id);
    });
    if (!has_trait(node.op, OpTrait::pointwise) || body.type(result).shape != type.shape ||
        body.type(result).layout != type.layout || !reads_only_that) {
      return fmt::format("{} is no pointwise work on one of its convolutions", op_info(node.op).name);
    }
  }
  return "";
}

}  // namespace

Reading<ConvProblem> read_conv(const Kernel& kernel, bool depthwise) {
  return with_folded_channels(read_conv_products(kernel, depthwise));
}

Reading<FilterGradientProblem> read_filter_gradient(const Kernel& kernel) {
  if (kernel.kind != KernelClass::convolution || kernel.body.node(kernel.anchor).op != Op::filter_gradient)
    return {{}, "it is no gradient by a filter"};
  if (std::string refusal = body_refusal(kernel); !refusal.empty()) return {{}, std::move(refusal)};
  const Graph& body = kernel.body;
  const Node& node = body.node(kernel.anchor);
  Reading<FilterGradientProblem> reading;
  auto& [image, gradient] = reading.problem;
  gradient = node.inputs.at(0);
  image.x = node.inputs.at(1);
  image.anchor = node.outputs.at(0);
  image.output = body.outputs[0];
  const TensorType &made = body.type(gradient), &x = body.type(image.x);
  if (x.rank() != 4 || x.dtype != DType::f32) return {{}, "its images are no planes of f32"};
  if (made.layout.channel_block == 0) return {{}, "its gradient is not channel-blocked"};
  const std::int64_t groups = node.attributes.integer("groups");
  if (node.attributes.integer("parts") != 1 || node.attributes.integer("joined") != 0)
    return {{}, "it has parts or joined taps"};
  if (!made.shape[1].is_known() || !x.shape[1].is_known()) return {{}, "its channels are open"};
  if (body.type(image.anchor).element_count() == 0) return {{}, "it is empty"};
  image.block = made.layout.channel_block;
  image.x_is_blocked = x.layout.channel_block != 0;
  image.x_is_computed = is_computed(body, image.x);
  read_conv_extents(kernel, node, gradient, node.attributes.integers("kernel"), image);
  if (!image.x_is_blocked && (groups > 1 || image.channels >= image.block))
    return {{}, "its input is not channel-blocked"};
  image.source_block = image.x_is_blocked ? x.layout.channel_block : static_cast<int>(image.channels);
  image.depthwise = groups > 1 && groups == image.channels && groups == image.out_channels;
  image.groups = image.depthwise ? 1 : groups;
  if (groups > 1 && image.source_block != image.block) return {{}, "its images have different blocks"};
  return reading;
}

Reading<ConvRowsProblem> read_conv_rows(const Kernel& kernel) {
  if (kernel.kind != KernelClass::convolution || kernel.body.node(kernel.anchor).op != Op::conv)
    return {{}, "it is no convolution"};
  const Node* second = second_conv(kernel);
  if (second == nullptr) return {{}, "it has not two convolutions"};
  const Node& first = kernel.body.node(kernel.anchor);
  if (std::string refusal = rows_refusal(kernel.body, first, *second); !refusal.empty())
    return {{}, std::move(refusal)};
  Reading<ConvProblem> a = without_groups(with_folded_channels(read_conv_products(kernel, first, false)));
  Reading<ConvProblem> b = with_own_weight(with_folded_channels(read_conv_products(kernel, *second, true)));
  if (!a.refusal.empty() || !b.refusal.empty()) return {{}, a.refusal.empty() ? b.refusal : a.refusal};
  if (a.problem.element != DType::f32 || a.problem.block != b.problem.block || !b.problem.x_is_blocked)
    return {{}, "its convolutions are not both f32 in the same blocks"};
  return {{a.problem, b.problem}, ""};
}

Reading<ConvProblem> read_conv_tiles(const Kernel& kernel) {
  Reading<ConvProblem> reading = without_groups(read_conv_products(kernel, false));
  ConvProblem& p = reading.problem;
  if (!reading.refusal.empty()) return reading;
  if (p.element != DType::bf16)
    reading.refusal = fmt::format("it is {}, tiles multiply bf16", dtype_name(p.element));
  else if (p.block % conv_tile_depth != 0)
    reading.refusal = fmt::format("its blocks have {} channels, a tile's row {}", p.block, conv_tile_depth);
  else if (!p.x_is_blocked && p.channels < p.block)
    reading.refusal = fmt::format("its input has {} channels, less than a block of {}", p.channels, p.block);
  p.source_block = p.fold_block = p.block;
  return reading;
}

Reading<ConvProblem> read_conv_lines(const Kernel& kernel) {
  Reading<ConvProblem> reading = without_groups(read_conv_products(kernel, false));
  ConvProblem& p = reading.problem;
  if (!reading.refusal.empty()) return reading;
  const std::int64_t channels = (p.channels + 1) / 2 * 2;
  const std::int64_t line = channels * p.kernel_x;
  if (p.element != DType::bf16) {
    reading.refusal = fmt::format("it is {}, tiles multiply bf16", dtype_name(p.element));
  } else if (p.x_is_blocked) {
    reading.refusal = "its input is channel-blocked";
  } else if (p.dilation_x != 1) {
    reading.refusal = "its window's channels do not lie together: it is dilated";
  } else if (line > conv_tile_depth && line % conv_tile_depth != 0) {
    reading.refusal =
        fmt::format("a line of its window has {} x {} channels, no multiple of a tile's row of {}",
                    p.kernel_x, channels, conv_tile_depth);
  }
  p.source_block = p.fold_block = static_cast<int>(channels);
  return reading;
}

Reading<ConvProblem> read_winograd(const Kernel& kernel) {
  Reading<ConvProblem> reading = without_groups(read_conv(kernel, false));
  if (!reading.refusal.empty()) return reading;
  const ConvProblem& p = reading.problem;
  if (p.element != DType::f32)
    reading.refusal = fmt::format("it is {}: transforms need the digits of f32", dtype_name(p.element));
  else if (p.kernel_y != 3 || p.kernel_x != 3)
    reading.refusal = fmt::format("its window is {} x {}, not 3 x 3", p.kernel_y, p.kernel_x);
  else if (p.has_strides())
    reading.refusal = fmt::format("its strides are {} and {}, not 1", p.stride_y, p.stride_x);
  else if (p.dilation_y != 1 || p.dilation_x != 1)
    reading.refusal = fmt::format("its dilations are {} and {}, not 1", p.dilation_y, p.dilation_x);
  else if (p.has_few_channels())
    reading.refusal = fmt::format("its input has {} channels, less than a block of {}", p.channels, p.block);
  return reading;
}

}  // namespace sylvite
