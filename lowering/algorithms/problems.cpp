#include "lowering/algorithms/problems.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

#include "base/error.h"
#include "base/rounding.h"
#include "frontend/ops/op_table.h"
#include "lowering/plan/run_extents.h"

namespace sylvite {
namespace {

/// Per value: does it depend on `root`?
IdMap<bool> downstream_of(const Graph& body, ValueId root) {
  IdMap<bool> depends(body.values().size(), false);
  depends[root] = true;
  for (const Node& node : body.nodes()) {
    const bool reads = std::any_of(node.inputs.begin(), node.inputs.end(),
                                   [&](ValueId id) { return id != no_value && depends[id]; });
    if (!reads) continue;
    for (const ValueId id : node.outputs) depends[id] = true;
  }
  return depends;
}

/// Why a template cannot take the work around the anchor; empty when it can.
std::string body_refusal(const Kernel& kernel) {
  const Graph& body = kernel.body;
  if (body.outputs.size() != 1)
    return fmt::format("it has {} outputs, a template makes one", body.outputs.size());
  const ValueId root = body.node(kernel.anchor).outputs.at(0);
  const TensorType& type = body.type(root);
  const IdMap<bool> depends = downstream_of(body, root);
  if (!depends[body.outputs[0]]) return "its output does not depend on the anchor";
  for (std::size_t i = 0; i < body.nodes().size(); ++i) {
    const Node& node = body.nodes()[i];
    if (static_cast<NodeId>(i) == kernel.anchor) continue;
    const OpInfo& info = op_info(node.op);
    const bool after = depends[node.outputs.at(0)];
    if (after && !info.has(OpTrait::pointwise))
      return fmt::format("{} after the anchor is not pointwise", info.name);
    const bool is_known = info.has(OpTrait::pointwise) || info.has(OpTrait::view) ||
                          info.has(OpTrait::creation) || node.op == Op::to_layout;
    if (!is_known) return fmt::format("its body also has {}", info.name);
    const TensorType& own = body.type(node.outputs.at(0));
    if (after && (own.shape != type.shape || own.layout != type.layout))
      return fmt::format("{} after the anchor changes the shape", info.name);
  }
  return "";
}

/// f32 by weights of bf16, as store_narrow makes it.
bool has_wide_rows(const Graph& body, const Node& node) {
  return node.op == Op::matmul && body.type(node.inputs.at(0)).dtype == DType::f32 &&
         body.type(node.inputs.at(1)).dtype == DType::bf16;
}

/// All of the anchor's values must be f32, all bf16, or those of a matmul all f64, but for parameters that infer.h lets differ:
/// a convolution's, and the right operand of a matmul. Of i16 the type rule has seen to it.
std::string element_refusal(const Graph& body, const Node& node) {
  const DType element = body.type(node.inputs.at(0)).dtype;
  const bool has_steps = element == DType::i16 || element == DType::u8;
  if (has_steps && body.type(node.outputs.at(0)).dtype == DType::i32) return "";
  const bool is_known =
      element == DType::f32 || element == DType::bf16 || (element == DType::f64 && node.op == Op::matmul);
  std::vector<ValueId> values = node.inputs;
  if (node.op == Op::conv || has_wide_rows(body, node)) values.resize(1);
  values.push_back(node.outputs.at(0));
  for (const ValueId id : values) {
    if (id != no_value && (!is_known || body.type(id).dtype != element)) {
      return fmt::format("value '{}' is {}, the template takes f32 or bf16", body.value(id).name,
                         dtype_name(body.type(id).dtype));
    }
  }
  return "";
}

/// The index of body input `id`, or -1.
int input_index(const Graph& body, ValueId id) {
  const auto found = std::find(body.inputs.begin(), body.inputs.end(), id);
  return found == body.inputs.end() ? -1 : static_cast<int>(found - body.inputs.begin());
}

/// Does `id` take arithmetic to get, beyond index maps of inputs?
bool is_computed(const Graph& body, ValueId id) {
  const NodeId producer = body.value(id).producer;
  if (producer == no_node) return false;
  const Node& node = body.node(producer);
  if (!has_trait(node.op, OpTrait::view)) return true;
  return std::any_of(node.inputs.begin(), node.inputs.end(),
                     [&](ValueId input) { return input != no_value && is_computed(body, input); });
}

/// The weight that `operand` is, or is the transpose of, when it can be packed.
OwnOperand find_weight(const Kernel& kernel, ValueId operand) {
  const OwnOperand own = own_operand(kernel.body, kernel.body.uses(), operand);
  const int index = input_index(kernel.body, own.id);
  return index >= 0 && kernel.input_is_weight.at(static_cast<std::size_t>(index)) ? own : OwnOperand{};
}

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

/// Is what a convolution reads of an image, and makes of it, of one size in all runs?
bool has_known_images(const Kernel& kernel, const ConvProblem& problem) {
  if (!kernel.open) return true;
  return std::ranges::all_of(std::array{problem.x, problem.anchor}, [&](ValueId id) {
    const Shape& shape = kernel.open->type(id).shape;
    return shape[2].is_known() && shape[3].is_known();
  });
}

void read_conv_extents(const Kernel& kernel, const Attributes& attributes, ConvProblem& problem) {
  const Graph& body = kernel.body;
  const Shape& in = body.type(problem.x).shape;
  const Dims weight = body.type(problem.weight).dims();
  const Shape& out = body.type(problem.anchor).shape;
  const Dims& strides = attributes.integers("strides");
  const Dims& dilations = attributes.integers("dilations");
  const Dims& pads = attributes.integers("pads");
  problem.batch = number_or_open(body.type(problem.x).shape[0]);
  problem.channels = in[1].known();
  problem.height = number_or_open(in[2]);
  problem.width = number_or_open(in[3]);
  problem.out_channels = out[1].known();
  problem.out_height = number_or_open(out[2]);
  problem.out_width = number_or_open(out[3]);
  problem.kernel_y = weight[2];
  problem.kernel_x = weight[3];
  problem.stride_y = strides.at(0);
  problem.stride_x = strides.at(1);
  problem.dilation_y = dilations.at(0);
  problem.dilation_x = dilations.at(1);
  problem.pad_top = pads.at(0);
  problem.pad_left = pads.at(1);
  const auto last = [](std::int64_t extent, std::int64_t stride, std::int64_t window, std::int64_t dilation,
                       std::int64_t pad) { return (extent - 1) * stride + (window - 1) * dilation - pad; };
  if (!has_known_images(kernel, problem)) {
    problem.padded = std::ranges::any_of(pads, [](std::int64_t pad) { return pad > 0; });
    return;
  }
  problem.padded = problem.pad_top > 0 || problem.pad_left > 0 ||
                   last(problem.out_height, problem.stride_y, problem.kernel_y, problem.dilation_y,
                        problem.pad_top) >= problem.height ||
                   last(problem.out_width, problem.stride_x, problem.kernel_x, problem.dilation_x,
                        problem.pad_left) >= problem.width;
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

namespace {

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
  read_conv_extents(kernel, node.attributes, problem);
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
