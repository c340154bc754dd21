// Before: s = reduce_sum(x, axes), m = s / n, v = reduce_sum((x - m)^2, axes)
// After:  mp = reduce_sum(xp) / l, vp = reduce_sum((xp - mp)^2)       of parts of l elements each, by one kernel
//         s = reduce_sum(mp) * l, m = s / n, v = reduce_sum(vp) + reduce_sum((mp - m)^2) * l   by another
// What is large is read once instead of twice: a part stays in registers, or near, between its two sums. Chan, Golub, LeVeque,
// "Algorithms for computing the sample variance", 1983, equation 2.1.

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "base/rounding.h"
#include "frontend/graph/graph_builder.h"
#include "frontend/graph/pattern_mean.h"
#include "frontend/graph/rewrite.h"
#include "frontend/graph/views.h"
#include "lowering/passes/pass_list.h"

namespace sylvite {
namespace {

/// A variance's sum, and that of its mean, fold `axes` of `x`.
struct Variance {
  ValueId x = no_value;
  Dims axes;
};

Dims sorted_axes(const Node& node) {
  Dims axes = node.attributes.integers("axes");
  std::ranges::sort(axes);
  return axes;
}

std::optional<Variance> match_variance(const Graph& graph, const Node& node) {
  if (node.op != Op::reduce_sum) return std::nullopt;
  const std::optional<ValueId> centered = square_argument(graph, node.inputs[0]);
  const Node* sub = centered ? producer_if(graph, *centered, Op::sub) : nullptr;
  if (sub == nullptr) return std::nullopt;
  const ValueId x = sub->inputs[0];
  const TensorType& type = graph.type(x);
  const Scaled mean = scaled(graph, sub->inputs[1]);
  const Node* sum = producer_if(graph, mean.base, Op::reduce_sum);
  if (sum == nullptr || sum->inputs[0] != x || sum->attributes.integer("keepdims") == 0) return std::nullopt;
  const Dims axes = sorted_axes(node);
  if (sorted_axes(*sum) != axes || type.layout != Layout{} || type.dtype != DType::f32 ||
      graph.type(*centered).dims() != type.dims())
    return std::nullopt;
  const auto count = static_cast<double>(product_of(type.dims(), axes));
  if (std::abs(mean.factor * count - 1) > 1e-5) return std::nullopt;
  return Variance{x, axes};
}

/// x seen as parts, which are folded along `inner`; what these leave is folded along `outer`.
struct VarianceParts {
  Dims dims;
  Dims inner;
  std::int64_t outer = 0;
  std::int64_t length = 1;   ///< elements of a part
  bool drops_inner = false;  ///< what parts leave is a row for each result
};

constexpr std::int64_t least_blocks = 264;  // two for each multiprocessor of a large card

/// The longest part of at most `most` elements that a length divides into, so that there are enough; 0: none of `least`.
std::int64_t longest_part_of(std::int64_t length, std::int64_t blocks_of_part, std::int64_t least,
                             std::int64_t most) {
  for (std::int64_t count = ceil_div(length, most); count * least <= length; ++count)
    if (length % count == 0 && count * blocks_of_part >= least_blocks) return count > 1 ? length / count : 0;
  return 0;
}

/// Folded dims behind all others: parts of rows.
std::optional<VarianceParts> variance_parts_of_rows(const Dims& dims, std::size_t kept) {
  constexpr std::int64_t least = 1 << 10, most = 1 << 14;
  const std::int64_t length = product(dims, kept, dims.size());
  const std::int64_t part = longest_part_of(length, product(dims, 0, kept), least, most);
  if (part == 0) return std::nullopt;
  VarianceParts parts{{dims.begin(), dims.begin() + static_cast<std::ptrdiff_t>(kept)}, {}, 0, part};
  parts.outer = static_cast<std::int64_t>(kept);
  parts.inner = {parts.outer + 1};
  parts.dims.insert(parts.dims.end(), {length / part, part});
  return parts;
}

/// One folded dim ahead of others: parts of the rows of columns.
std::optional<VarianceParts> variance_parts_of_columns(const Dims& dims, std::size_t axis) {
  constexpr std::int64_t least = 64, most = 1 << 10, strip = 32;
  const std::int64_t strips = product(dims, 0, axis) * ceil_div(product(dims, axis + 1, dims.size()), strip);
  const std::int64_t part = longest_part_of(dims[axis], strips, least, most);
  if (part == 0) return std::nullopt;
  VarianceParts parts{dims, {static_cast<std::int64_t>(axis) + 1}, static_cast<std::int64_t>(axis), part};
  parts.dims[axis] = part;
  parts.dims.insert(parts.dims.begin() + static_cast<std::ptrdiff_t>(axis), dims[axis] / part);
  return parts;
}

/// Several folded dims with others between or behind them, as of images: parts along the first.
std::optional<VarianceParts> variance_parts_along_first(const Dims& dims, const Dims& axes) {
  constexpr std::int64_t least_count = 8, least = 32, most = 1 << 14;
  VarianceParts parts{dims, {axes.begin() + 1, axes.end()}, axes[0]};
  parts.length = product_of(dims, parts.inner);
  if (dims[static_cast<std::size_t>(axes[0])] < least_count || parts.length < least || parts.length > most)
    return std::nullopt;
  return parts;
}

std::optional<VarianceParts> variance_parts_of(const Dims& dims, const Dims& axes) {
  constexpr std::int64_t much = 2 << 20;  // elements, which do not stay near from one kernel to the next
  if (axes.empty() || product(dims, 0, dims.size()) < much) return std::nullopt;
  const auto first = static_cast<std::size_t>(axes[0]);
  if (first + axes.size() == dims.size()) return variance_parts_of_rows(dims, first);
  return axes.size() == 1 ? variance_parts_of_columns(dims, first) : variance_parts_along_first(dims, axes);
}

class VarianceDivider {
 public:
  explicit VarianceDivider(const Graph& graph) : graph_(graph) {
    for (const Node& node : graph.nodes()) {
      const std::optional<Variance> match = match_variance(graph, node);
      if (match && variance_parts_of(graph.type(match->x).dims(), match->axes))
        variances_[node.outputs[0]] = *match;
    }
    for (const auto& [variance, match] : variances_) sums_.emplace(Folded{match.x, match.axes}, std::nullopt);
  }

  Graph run() {
    return rewrite_nodes(graph_,
                         [&](GraphRewriter& rewriter, const Node& node) { return divide(rewriter, node); });
  }

 private:
  using Folded = std::pair<ValueId, Dims>;  ///< a value, and its folded axes

  /// A sum's parts, their means, and what these leave.
  struct Divided {
    VarianceParts parts;
    ValueId x = no_value, means = no_value, total = no_value;
  };

  bool divide(GraphRewriter& rewriter, const Node& node) {
    if (node.op != Op::reduce_sum) return false;
    const auto sum = sums_.find(Folded{node.inputs[0], sorted_axes(node)});
    if (sum != sums_.end()) return divide_sum(rewriter, node, sum->second);
    const auto variance = variances_.find(node.outputs[0]);
    return variance != variances_.end() && divide_variance(rewriter, node, variance->second);
  }

  /// What parts leave, without the dims that they are folded along: no image any more.
  [[nodiscard]] static Sym left_of(const VarianceParts& parts, Sym folded) {
    Dims dims;
    for (std::size_t d = 0; d < folded.dims().size(); ++d)
      if (std::ranges::find(parts.inner, static_cast<std::int64_t>(d)) == parts.inner.end())
        dims.push_back(folded.dims()[d]);
    return reshape(folded, dims);
  }
  [[nodiscard]] static Sym fold_outer(const VarianceParts& parts, Sym left) {
    return reduce(Op::reduce_sum, left, {parts.outer}, true);
  }

  bool divide_sum(GraphRewriter& rewriter, const Node& node, std::optional<Divided>& divided) const {
    GraphBuilder builder(rewriter.graph());
    if (!divided) divided = divided_sum(builder, rewriter, node);
    const Sym total(builder, divided->total);
    rewriter.set(node.outputs[0], reshape(total, graph_.type(node.outputs[0]).dims()).id());
    return true;
  }
  [[nodiscard]] Divided divided_sum(GraphBuilder& builder, GraphRewriter& rewriter, const Node& node) const {
    Divided divided{*variance_parts_of(graph_.type(node.inputs[0]).dims(), sorted_axes(node))};
    const Sym x = reshape(Sym(builder, rewriter.mapped(node.inputs[0])), divided.parts.dims);
    const auto length = static_cast<double>(divided.parts.length);
    const Sym means = fold_inner(divided.parts, x) * (1 / length);
    const Sym total = fold_outer(divided.parts, left_of(divided.parts, means)) * length;
    divided.x = x.id();
    divided.means = means.id();
    divided.total = total.id();
    return divided;
  }

  [[nodiscard]] static Sym fold_inner(const VarianceParts& parts, Sym x) {
    return reduce(Op::reduce_sum, x, {parts.inner.begin(), parts.inner.end()}, true);
  }

  bool divide_variance(GraphRewriter& rewriter, const Node& node, const Variance& match) const {
    GraphBuilder builder(rewriter.graph());
    const std::optional<Divided>& divided = sums_.at(Folded{match.x, match.axes});
    const VarianceParts& parts = divided->parts;
    const auto length = static_cast<double>(parts.length);
    const auto count = static_cast<double>(product_of(graph_.type(match.x).dims(), match.axes));
    const Sym means(builder, divided->means);
    const Sym apart = Sym(builder, divided->x) - means;
    const Sym within = left_of(parts, fold_inner(parts, apart * apart));
    const Sym off = left_of(parts, means) - Sym(builder, divided->total) * (1 / count);
    const Sym total = fold_outer(parts, within) + fold_outer(parts, off * off) * length;
    rewriter.set(node.outputs[0], reshape(total, graph_.type(node.outputs[0]).dims()).id());
    return true;
  }

  const Graph& graph_;
  std::map<ValueId, Variance> variances_;          ///< by their sums of squares
  std::map<Folded, std::optional<Divided>> sums_;  ///< their sums, once they are divided
};

}  // namespace

Graph divide_variances(const Graph& graph) {
  return VarianceDivider(graph).run();
}

}  // namespace sylvite
