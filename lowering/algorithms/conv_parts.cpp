#include "lowering/algorithms/conv_parts.h"

#include "lowering/algorithms/algorithm_forms.h"
#include "lowering/algorithms/dot_product.h"
#include "lowering/algorithms/halide_types.h"

namespace sylvite {
namespace {

using Halide::Expr;
using Halide::Func;
using Halide::Var;

bool is_weight(const Kernel& kernel, ValueId id) {
  for (std::size_t i = 0; i < kernel.body.inputs.size(); ++i)
    if (kernel.body.inputs[i] == id) return kernel.input_is_weight.at(i);
  return false;
}

/// A bias that only the convolution reads is padded to whole blocks.
bool bias_is_packed(const Kernel& kernel, const ConvProblem& problem) {
  if (problem.bias == no_value || !is_weight(kernel, problem.bias)) return false;
  return kernel.body.uses()[problem.bias].size() == 1;
}

}  // namespace

std::vector<Packing> conv_packings(const Kernel& kernel, const ConvProblem& problem, const Packing& filter) {
  std::vector<Packing> packings = layout_packings(kernel);
  for (std::size_t i = 0; i < packings.size(); ++i) {
    const ValueId id = kernel.body.inputs[i];
    if (id == problem.weight && !problem.packs_weight) packings[i] = filter;
    if (id == problem.bias && bias_is_packed(kernel, problem)) packings[i] = {{problem.block}, {0, 1}};
  }
  return packings;
}

Func define_source(AlgorithmBuilder& builder, const ConvProblem& problem, SourceBorder border) {
  Func source = builder.stage(builder.name(problem.anchor) + "_in");
  const Expr width = builder.extent(builder.type(problem.x).shape[3]);
  const Expr height = builder.extent(builder.type(problem.x).shape[2]);
  const std::vector<Var> d = {Var("d0"), Var("d1"), Var("d2"), Var("d3"), Var("d4")};
  // Halide makes loops of their own of what is likely: copies without tests.
  const auto within = [&](const Var& at, const Expr& extent) {
    return border.clamps ? Halide::clamp(Halide::likely(at), 0, extent - 1) : Expr(at);
  };
  const Expr x = within(d[1], width);
  const Expr y = within(d[2], height);
  Coordinate channel = Coordinate::split(d[3], d[0], problem.source_block, problem.channels);
  Expr inside;
  if (border.zeros) inside = d[1] >= 0 && d[1] < width && d[2] >= 0 && d[2] < height;
  if (problem.has_few_channels()) {
    const auto channels = static_cast<int>(problem.channels);
    const bool is_whole = problem.source_block == channels;
    channel = is_whole ? Expr(d[0]) : Halide::min(d[0], channels - 1);
    if (!is_whole) inside = inside.defined() ? inside && d[0] < channels : d[0] < channels;
  }
  const Coordinates at = {Expr(d[4]), channel, y, x};
  const bool stores_bf16 = problem.element == DType::bf16;
  const Expr element =
      to_storage(stores_bf16 ? builder.read_stored(problem.x, at) : builder.read_rounded(problem.x, at),
                 left_element(problem.element));
  source(d) = inside.defined() ? Halide::select(inside, Halide::likely(element),
                                                Halide::Internal::make_zero(element.type()))
                               : element;
  return source;
}

Expr source_coordinate(const Expr& out, const Expr& window, std::int64_t stride, std::int64_t dilation,
                       const Expr& pad) {
  return out * to_int(stride) + window * to_int(dilation) - pad;
}

GroupSteps group_steps(const GroupedChannels& channels, const Expr& at) {
  const int block = to_int(channels.block), outputs = to_int(channels.outputs);
  const int steps = to_int(channels.inputs / channels.step());
  const Expr first = at * block / outputs * steps;
  const Expr last = Halide::min((at * block + (block - 1)) / outputs, to_int(channels.groups - 1));
  return {first, (last + 1) * steps - first};
}

void define_product(AlgorithmBuilder& builder, const ConvProblem& problem,
                    const std::function<Expr(const std::vector<Expr>&)>& sum) {
  const bool packed_bias = bias_is_packed(builder.kernel(), problem);
  builder.define(problem.anchor, [&](const Coordinates& at) -> Expr {
    const std::vector<Expr> d = AlgorithmBuilder::arguments_of(builder.type(problem.anchor), at);
    if (problem.bias == no_value) return sum(d);
    if (packed_bias)
      return sum(d) +
             from_storage(builder.parameter(problem.bias)(d[0], d[3]), builder.type(problem.bias).dtype);
    return sum(d) + builder.read(problem.bias, {at[1]});
  });
}

}  // namespace sylvite
