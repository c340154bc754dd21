#include <algorithm>
#include <limits>

#include "base/error.h"
#include "lowering/algorithms/algorithm_forms.h"
#include "lowering/algorithms/algorithm_nodes.h"
#include "lowering/algorithms/halide_math.h"
#include "lowering/algorithms/order_keys.h"
#include "lowering/algorithms/problems.h"
#include "lowering/algorithms/window_taps.h"

// Pooling. Its fold is a stage vN_fold, whose update 0 is the fold:
//   generic      over r0.. = window, innermost spatial dim first
//   pool_lines   over r0 = the window's columns. What a column of the window holds was folded ahead, for each element of a line
//                of the padded input: in vN_line(d0 = its place in the padded line, d1.. = as in vN), whose update 0, where
//                the window has several lines, folds over r0 = these but the first

namespace sylvite {
namespace {

using Halide::cast;
using Halide::Expr;
using Halide::Func;
using Halide::select;
using Halide::Var;

/// What is folded: elements in their compute type, or the bits of bf16 as whole numbers in the same order.
class PoolFold {
 public:
  PoolFold(AlgorithmBuilder& builder, const Node& node)
      : builder_(builder), input_(node.inputs.front()), is_max_(node.op == Op::max_pool) {}

  /// The element at a place of the input, `is_inside` of it or not.
  [[nodiscard]] Expr element(const Coordinates& at, const Expr& is_inside) const {
    const Expr stored = builder_.read_stored(input_, at);
    if (is_max_ && stored.type().is_bfloat()) {
      const Expr key = bf16_order_key(stored);
      return select(Halide::likely(is_inside), key, nothing(key.type()));
    }
    const Expr x = builder_.read(input_, at);
    return select(is_inside, x, nothing(x.type()));
  }
  /// What changes no fold of elements of this type.
  [[nodiscard]] Expr nothing(const Halide::Type& element) const {
    using Halide::Internal::make_const;
    if (!is_max_) return zero_of(element);
    if (element.is_float()) return make_const(element, -std::numeric_limits<double>::infinity());
    const bool by_bits = builder_.type(input_).dtype == DType::bf16;
    return by_bits ? make_const(element, -0x7f81) : element.min();  // of -infinity
  }
  [[nodiscard]] Expr combine(const Expr& a, const Expr& b) const { return is_max_ ? nan_max(a, b) : a + b; }

 private:
  AlgorithmBuilder& builder_;
  ValueId input_;
  bool is_max_;
};

Func fold_windows(AlgorithmBuilder& builder, const Node& node) {
  const PoolFold fold(builder, node);
  const TensorType& type = builder.type(node.outputs.front());
  const SlidingWindow window = window_of(node);
  const WindowDomain over = window_domain(window.kernel, 0, 0);
  const std::vector<Var> vars = AlgorithmBuilder::vars_of(type);
  const Coordinates at = AlgorithmBuilder::coordinates_of(type);
  const Tap tap = tap_at(builder, window, at, over.taps, builder.type(node.inputs.front()).shape);
  Coordinates at_input = {at[0], at[1]};
  at_input.insert(at_input.end(), tap.spatial.begin(), tap.spatial.end());
  const Expr element = fold.element(at_input, tap.is_inside);
  Func folded = builder.stage(builder.name(node.outputs.front()) + "_fold");
  folded(vars) = fold.nothing(element.type());
  folded(vars) = fold.combine(folded(vars), element);
  return folded;
}

/// The window without its innermost dim.
SlidingWindow outer_window(const SlidingWindow& window) {
  const std::size_t outer = window.kernel.size() - 1;
  SlidingWindow result;
  for (std::size_t s = 0; s < outer; ++s) {
    result.kernel.push_back(window.kernel[s]);
    result.strides.push_back(window.strides[s]);
    result.dilations.push_back(window.dilations[s]);
    result.pads.push_back(window.pads[s]);
  }
  for (std::size_t s = 0; s < outer; ++s) result.pads.push_back(window.pads[outer + 1 + s]);
  return result;
}

/// The element that tap `number` of the outer dims adds to a line.
Expr line_element(const AlgorithmBuilder& builder, const Node& node, const PoolFold& fold, Expr number) {
  const SlidingWindow window = window_of(node), outer = outer_window(window);
  const Coordinates at = AlgorithmBuilder::coordinates_of(builder.type(node.outputs.front()));
  const Shape& shape = builder.type(node.inputs.front()).shape;
  Coordinates taps(outer.kernel.size());
  for (std::size_t s = outer.kernel.size(); s-- > 0;) {
    taps[s] = Halide::Internal::simplify(number % to_int(outer.kernel[s]));
    number = Halide::Internal::simplify(number / to_int(outer.kernel[s]));
  }
  const Tap tap = tap_at(builder, outer, at, taps, shape);
  const Extent& before = window.pads[outer.kernel.size()];
  const Expr column = at.back().full - builder.extent(before), width = builder.extent(shape.back());
  Coordinates at_input = {at[0], at[1]};
  at_input.insert(at_input.end(), tap.spatial.begin(), tap.spatial.end());
  at_input.emplace_back(Halide::clamp(column, 0, width - 1));
  // Lines are computed in whole vectors, which may end behind them.
  const Expr is_in_line = before == 0 ? column < width : column >= 0 && column < width;
  return fold.element(at_input, tap.is_inside && is_in_line);
}

Func fold_lines(AlgorithmBuilder& builder, const Node& node) {
  const PoolFold fold(builder, node);
  const std::string& name = builder.name(node.outputs.front());
  const TensorType& type = builder.type(node.outputs.front());
  const SlidingWindow window = window_of(node);
  const std::vector<Var> vars = AlgorithmBuilder::vars_of(type);
  Func line = builder.stage(name + "_line");
  const Expr first = line_element(builder, node, fold, 0);
  line(vars) = first;
  if (const std::int64_t lines = pool_lines(node); lines > 1) {
    const Halide::RDom domain = reduction_domain({lines - 1});
    line(vars) = fold.combine(line(vars), line_element(builder, node, fold, domain[0] + 1));
  }
  const Halide::RDom domain = reduction_domain({window.kernel.back()});
  std::vector<Expr> at_line(vars.begin(), vars.end());
  at_line[0] = vars[0] * to_int(window.strides.back()) + domain[0] * to_int(window.dilations.back());
  Func folded = builder.stage(name + "_fold");
  folded(vars) = fold.nothing(first.type());
  folded(vars) = fold.combine(folded(vars), line(at_line));
  return folded;
}

/// The number of taps that count, per spatial dim: all of the window, or those inside the input (or its padding).
Expr counted_taps(const AlgorithmBuilder& builder, const Node& node) {
  const SlidingWindow window = window_of(node);
  const bool count_padding = node.attributes.integer("count_include_pad") != 0;
  const Coordinates at = AlgorithmBuilder::coordinates_of(builder.type(node.outputs.front()));
  const Shape& in_shape = builder.type(node.inputs.front()).shape;
  Expr count = 1;
  for (std::size_t s = 0; s < window.kernel.size(); ++s) {
    const Extent low = count_padding ? Extent(0) - window.pads[s] : Extent(0);
    const Extent high = in_shape[s + 2] + (count_padding ? window.pads[s + window.kernel.size()] : Extent(0));
    const Expr first = at[s + 2].full * to_int(window.strides[s]) - builder.extent(window.pads[s]);
    const int dilation = to_int(window.dilations[s]);
    const int taps = to_int(window.kernel[s]);
    // Taps t with low <= first + t*dilation < high.
    const Expr from = Halide::max((builder.extent(low) - first + dilation - 1) / dilation, 0);
    const Expr to = Halide::min((builder.extent(high - 1) - first) / dilation + 1, taps);
    count = count * Halide::max(to - from, 1);
  }
  return count;
}

void define_folded(AlgorithmBuilder& builder, const Node& node, const Func& folded) {
  const ValueId out = node.outputs.front();
  const std::vector<Var> vars = AlgorithmBuilder::vars_of(builder.type(out));
  const bool by_bits = builder.type(out).dtype == DType::bf16 && folded.types().front().is_int();
  builder.define(out, [&](const Coordinates&) -> Expr {
    const Expr all = folded(vars);
    if (node.op == Op::max_pool) return by_bits ? from_bf16_order_key(all) : all;
    return strict_div(all, cast(all.type(), counted_taps(builder, node)));
  });
}

}  // namespace

std::int64_t pool_lines(const Node& pool) {
  const Dims& window = pool.attributes.integers("kernel");
  return checked_product({window.begin(), window.end() - 1}, "window");
}

bool pools_by_lines(const Graph& body, const Node& node) {
  if (node.op != Op::max_pool && node.op != Op::avg_pool) return false;
  for (const ValueId id : {node.inputs.front(), node.outputs.front()})
    if (body.type(id).layout.channel_block > 0) return false;
  const SlidingWindow window = window_of(node);
  const auto is_wide = [](std::int64_t extent) { return extent > 1; };
  if (window.kernel.back() == 1 ||
      std::count_if(window.kernel.begin(), window.kernel.end() - 1, is_wide) != 1)
    return false;
  const bool has_edges = std::ranges::any_of(window.pads, [](const Extent& pad) { return pad != 0; });
  return has_edges || window.kernel != window.strides;
}

void define_pool(AlgorithmBuilder& builder, const Node& node) {
  define_folded(builder, node, fold_windows(builder, node));
}

Algorithm build_pool_lines(const Kernel& kernel, const Form& /*form*/) {
  if (kernel.anchor == no_node || !pools_by_lines(kernel.body, kernel.body.node(kernel.anchor)))
    throw UnsupportedError("form pool_lines: the kernel pools no windows of dense lines");
  AlgorithmBuilder builder(kernel, layout_packings(kernel));
  builder.define_before(kernel.anchor);
  const Node& node = builder.body().node(kernel.anchor);
  define_folded(builder, node, fold_lines(builder, node));
  builder.define_rest();
  return builder.finish();
}

}  // namespace sylvite
