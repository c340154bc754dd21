// Before: y = matmul(g, w)              g [8192, 50257] of bf16, in rows of 100514 bytes
// After:  y = matmul(slice(pad(g)), w)  in rows of 100528 bytes, of which the product reads its own elements
// Tensor cores are fed by copies of 16 bytes. Where each element is multiplied often, one more copy costs less than reading
// rows that begin anywhere. All products of a value, and of its transpose, share the copy.

#include <algorithm>
#include <vector>

#include "base/rounding.h"
#include "frontend/graph/rewrite.h"
#include "frontend/graph/views.h"
#include "lowering/passes/images.h"
#include "lowering/passes/pass_list.h"

namespace sylvite {
namespace {

class Aligner {
 public:
  Aligner(const Graph& source, bool tf32)
      : source_(source), tf32_(tf32), aligned_(source.values().size(), no_value) {}

  bool align(GraphRewriter& rewriter, const Node& node) {
    if (node.op != Op::matmul || !is_worth_it(node)) return false;
    std::vector<ValueId> inputs;
    inputs.reserve(node.inputs.size());
    for (const ValueId id : node.inputs)
      inputs.push_back(has_odd_rows(id) ? in_whole_rows(rewriter, id) : rewriter.mapped(id));
    rewriter.replace(node, Op::matmul, std::move(inputs), node.attributes);
    return true;
  }

 private:
  /// The value whose rows are read: behind a transpose the last dim lies elsewhere.
  [[nodiscard]] ValueId stored(ValueId id) const {
    const Node* transpose = producer_if(source_, id, Op::transpose);
    return transpose == nullptr ? id : transpose->inputs[0];
  }

  [[nodiscard]] bool has_odd_rows(ValueId id) const {
    const TensorType& type = source_.type(id);
    if (!is_for_tensor_cores(type.dtype, tf32_) || source_.is_constant(id) || type.rank() < 2) return false;
    const ValueId from = stored(id);
    if (producer_if(source_, from, Op::slice) != nullptr) return false;  // lies in other rows
    return source_.type(from).dims().back() % elements_of_vector(type.dtype) != 0;
  }

  /// Large products, in which each element of an operand with odd rows is read often, or such an operand is little beside the other.
  [[nodiscard]] bool is_worth_it(const Node& node) const {
    constexpr std::int64_t least_uses = 128, least_products = std::int64_t{1} << 31;
    const TensorType& type = source_.type(node.outputs[0]);
    const Dims a = source_.type(node.inputs[0]).dims();
    if (type.rank() < 2 || a.size() < 2) return false;
    const bool is_large = type.element_count() * a.back() >= least_products;
    const Dims result = type.dims();
    const std::int64_t uses[] = {result.back(), result[result.size() - 2]};
    bool any = false;
    for (std::size_t i = 0; i < 2; ++i) {
      if (!has_odd_rows(node.inputs[i])) continue;
      any = true;
      if (!(is_large && uses[i] >= least_uses) && !is_little(node.inputs[i], node.inputs[1 - i]))
        return false;
    }
    return any;
  }

  /// Is a copy of the operand soon made beside what is read of the other?
  [[nodiscard]] bool is_little(ValueId id, ValueId other) const {
    constexpr std::int64_t least_bytes = 4 << 20, many = 8;
    const std::int64_t bytes = source_.type(other).byte_size();
    return bytes >= least_bytes && source_.type(id).byte_size() * many <= bytes;
  }

  ValueId in_whole_rows(GraphRewriter& rewriter, ValueId id) {
    const ValueId from = stored(id);
    Graph& graph = rewriter.graph();
    if (aligned_[from] == no_value) {
      const Dims dims = source_.type(from).dims();
      Dims wide = dims;
      wide.back() = round_up(wide.back(), elements_of_vector(source_.type(from).dtype));
      aligned_[from] = add_slice(graph, add_zeros_behind(graph, rewriter.mapped(from), wide),
                                 Dims(dims.size(), 0), dims, Dims(dims.size(), 1));
    }
    const Node* transpose = producer_if(source_, id, Op::transpose);
    return transpose == nullptr
               ? aligned_[from]
               : add_transpose(graph, aligned_[from], transpose->attributes.integers("perm"));
  }

  const Graph& source_;
  bool tf32_;
  IdMap<ValueId> aligned_;  ///< per source value: what lies in whole rows, or no_value
};

}  // namespace

Graph align_rows(const Graph& graph, bool tf32) {
  Aligner aligner(graph, tf32);
  return rewrite_nodes(
      graph, [&](GraphRewriter& rewriter, const Node& node) { return aligner.align(rewriter, node); });
}

}  // namespace sylvite
