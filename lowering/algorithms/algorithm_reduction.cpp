#include <algorithm>

#include "base/error.h"
#include "frontend/ops/op_table.h"
#include "lowering/algorithms/algorithm_forms.h"
#include "lowering/algorithms/algorithm_nodes.h"
#include "lowering/algorithms/halide_math.h"
#include "lowering/algorithms/halide_types.h"
#include "lowering/algorithms/order_keys.h"

// Folds along axes. Stages: vN_fold, whose update 0 is the fold. reduce_max and reduce_min of floats fold
// integer keys of the same order, which are associative and let NaN win. arg_max and arg_min fold a pair
// (key, index); in form arg_rows, whose folds are associative, vN_best folds the keys, and vN_fold the indices of those that are
// the best. In form stored_folds a scan or a scatter has no vN_fold: the result vN has the update.

namespace sylvite {
namespace {

using Halide::cast;
using Halide::Expr;
using Halide::Func;
using Halide::select;
using Halide::Tuple;
using Halide::Var;

/// The coordinates of a folded value's input: the output's own, with the folded axes taken from the domain.
Coordinates input_coordinates(const Coordinates& out, const std::vector<int>& axes,
                              const ReducedDims& reduced, int rank, bool keepdims) {
  Coordinates at;
  std::size_t next = 0;
  for (int d = 0; d < rank; ++d) {
    const auto axis = std::find(axes.begin(), axes.end(), d);
    if (axis != axes.end()) {
      at.push_back(reduced.at[static_cast<std::size_t>(axis - axes.begin())]);
      if (keepdims) ++next;
    } else {
      at.push_back(out.at(next++));
    }
  }
  return at;
}

struct Fold {
  Expr start;
  Expr (*combine)(const Expr&, const Expr&);
};

Expr combine_sum(const Expr& a, const Expr& b) {
  return a + b;
}
Expr combine_product(const Expr& a, const Expr& b) {
  return a * b;
}
Expr combine_max(const Expr& a, const Expr& b) {
  return Halide::max(a, b);
}
Expr combine_min(const Expr& a, const Expr& b) {
  return Halide::min(a, b);
}

/// `type` is what is folded: the compute type, or the key type.
Fold fold_of(Op op, const Halide::Type& type, const Expr& least_key, const Expr& largest_key) {
  switch (op) {
    case Op::reduce_sum:
      return {Halide::Internal::make_const(type, 0), combine_sum};
    case Op::reduce_prod:
      return {Halide::Internal::make_const(type, 1), combine_product};
    case Op::reduce_max:
      return {least_key, combine_max};
    default:
      return {largest_key, combine_min};
  }
}

bool folds_keys(Op op) {
  return op == Op::reduce_max || op == Op::reduce_min;
}

/// The identity of max and min: infinities for floats, the ends of the range for integers.
Expr extreme_key(const Halide::Type& type, bool largest, bool nan_is_largest) {
  if (!type.is_float()) return largest ? type.max() : type.min();
  const Expr infinity = Halide::Internal::make_const(type, std::numeric_limits<double>::infinity());
  return order_key(largest ? infinity : -infinity, nan_is_largest);
}

}  // namespace

Expr index_key(const Expr& x, bool nan_is_largest) {
  const bool is_float = x.type().is_float();
  return order_key(is_float ? strict_add(x, Halide::Internal::make_zero(x.type())) : x, nan_is_largest);
}

Halide::Type folded_type(DType dtype) {
  return dtype == DType::boolean ? Halide::UInt(8) : compute_type_of(dtype);
}

void define_reduction(AlgorithmBuilder& builder, const Node& node) {
  const ValueId out = node.outputs.front();
  const ValueId in = node.inputs.front();
  const TensorType& in_type = builder.type(in);
  const std::vector<std::int64_t>& wide_axes = node.attributes.integers("axes");
  const std::vector<int> axes(wide_axes.begin(), wide_axes.end());
  const bool keys = folds_keys(node.op);
  const bool nan_is_largest = node.op == Op::reduce_max;
  const Halide::Type type = folded_type(in_type.dtype);

  const ReducedDims reduced = builder.reduce_over(in_type, axes);
  const Coordinates at = input_coordinates(AlgorithmBuilder::coordinates_of(builder.type(out)), axes, reduced,
                                           in_type.rank(), node.attributes.integer("keepdims") != 0);
  const Expr element = cast(type, builder.read(in, at));
  const Fold fold = fold_of(node.op, type, extreme_key(type, false, nan_is_largest),
                            extreme_key(type, true, nan_is_largest));
  const std::vector<Var> vars = AlgorithmBuilder::vars_of(builder.type(out));
  Func folded = builder.stage(builder.name(out) + "_fold");
  folded(vars) = fold.start;
  folded(vars) = fold.combine(folded(vars), keys ? order_key(element, nan_is_largest) : element);
  builder.define(out, [&](const Coordinates&) -> Expr {
    if (in_type.dtype == DType::boolean) return folded(vars) != 0;
    return keys ? from_order_key(folded(vars), type) : Expr(folded(vars));
  });
}

/// What arg_max and arg_min fold: the key of an element, and where it is along the axis.
struct IndexedKey {
  explicit IndexedKey(AlgorithmBuilder& builder, const Node& node) {
    const TensorType& in_type = builder.type(node.inputs.front());
    const std::vector<int> axes = {static_cast<int>(node.attributes.integer("axis"))};
    const ReducedDims reduced = builder.reduce_over(in_type, axes);
    const TensorType& out_type = builder.type(node.outputs.front());
    const Coordinates at = input_coordinates(AlgorithmBuilder::coordinates_of(out_type), axes, reduced,
                                             in_type.rank(), node.attributes.integer("keepdims") != 0);
    const Expr element = builder.read(node.inputs.front(), at);
    key = index_key(cast(folded_type(in_type.dtype), element), node.op == Op::arg_max);
    index = reduced.at.front().full;
  }

  Expr key, index;
};

void define_arg_reduction(AlgorithmBuilder& builder, const Node& node) {
  const ValueId out = node.outputs.front();
  const bool largest = node.op == Op::arg_max;
  const bool last = node.attributes.integer("select_last") != 0;
  const IndexedKey element(builder, node);
  const std::vector<Var> vars = AlgorithmBuilder::vars_of(builder.type(out));
  Func folded = builder.stage(builder.name(out) + "_fold");
  folded(vars) = Tuple(Halide::Internal::make_zero(element.key.type()), Expr(-1));
  const Expr key = element.key, best = folded(vars)[0];
  const Expr best_index = folded(vars)[1];
  const Expr beats = largest ? (last ? key >= best : key > best) : (last ? key <= best : key < best);
  const Expr wins = best_index < 0 || beats;
  folded(vars) = Tuple(select(wins, key, best), select(wins, element.index, best_index));
  builder.define(out, [&](const Coordinates&) { return cast<std::int64_t>(folded(vars)[1]); });
}

Algorithm build_arg_rows(const Kernel& kernel, const Form& /*form*/) {
  const Node* node = kernel.anchor == no_node ? nullptr : &kernel.body.node(kernel.anchor);
  if (node == nullptr || (node->op != Op::arg_max && node->op != Op::arg_min))
    throw UnsupportedError("form arg_rows: the kernel looks for no place of an extreme");
  AlgorithmBuilder builder(kernel, layout_packings(kernel));
  builder.define_before(kernel.anchor);
  const ValueId out = node->outputs.front();
  const bool largest = node->op == Op::arg_max;
  const bool last = node->attributes.integer("select_last") != 0;
  const std::vector<Var> vars = AlgorithmBuilder::vars_of(builder.type(out));
  const IndexedKey compared(builder, *node);
  const Halide::Type type = compared.key.type();
  Func best = builder.stage(builder.name(out) + "_best");
  best(vars) = largest ? type.min() : type.max();
  best(vars) = largest ? Halide::max(best(vars), compared.key) : Halide::min(best(vars), compared.key);
  const IndexedKey found(builder, *node);
  const Expr nowhere = last ? Expr(-1) : Expr(1 << 30);
  const Expr place = select(found.key == best(vars), found.index, nowhere);
  Func folded = builder.stage(builder.name(out) + "_fold");
  folded(vars) = nowhere;
  folded(vars) = last ? Halide::max(folded(vars), place) : Halide::min(folded(vars), place);
  builder.define(out, [&](const Coordinates&) { return cast<std::int64_t>(folded(vars)); });
  builder.define_rest();
  return builder.finish();
}

void define_scan(AlgorithmBuilder& builder, const Node& node) {
  const ValueId out = node.outputs.front();
  const ValueId in = node.inputs.front();
  const TensorType& type = builder.type(out);
  const auto axis = static_cast<std::size_t>(node.attributes.integer("axis"));
  const Expr extent = builder.extent(type.shape.at(axis));
  const Expr steps = builder.extent(max(type.shape[axis] - 1, 0));
  const bool exclusive = node.attributes.integer("exclusive") != 0;
  const bool reverse = node.attributes.integer("reverse") != 0;
  const bool is_sum = node.op == Op::cumsum;
  const int towards_start = reverse ? 1 : -1;

  // The pure definition holds each element's own term; update 0 walks the axis and adds the neighbour's
  // total.
  const std::vector<Var> vars = AlgorithmBuilder::vars_of(type);
  const Coordinates coordinates = AlgorithmBuilder::coordinates_of(type);
  Func folded = builder.stage(builder.name(out) + "_fold");
  Coordinates source = coordinates;
  Expr term;
  if (exclusive) {
    const Expr neighbour = coordinates[axis].full + towards_start;
    source[axis] = Halide::clamp(neighbour, 0, steps);
    const Expr read = builder.read(in, source);
    term = select(neighbour >= 0 && neighbour < extent, read,
                  Halide::Internal::make_const(read.type(), is_sum ? 0 : 1));
  } else {
    term = builder.read(in, source);
  }
  folded(vars) = term;
  const Halide::RDom domain = open_reduction_domain({steps});
  Coordinates here = coordinates;
  Coordinates before = coordinates;
  here[axis] = reverse ? builder.extent(type.shape[axis] - 2) - domain[0] : domain[0] + 1;
  before[axis] = here[axis].full + towards_start;
  const std::vector<Expr> to = AlgorithmBuilder::arguments_of(type, here);
  const std::vector<Expr> from = AlgorithmBuilder::arguments_of(type, before);
  folded(to) = is_sum ? folded(to) + folded(from) : folded(to) * folded(from);
  builder.define(out, [&](const Coordinates&) { return Expr(folded(vars)); });
}

namespace {

/// The first element of a scan is what it is, each other one follows from the one before: the result is written once.
void define_stored_scan(AlgorithmBuilder& builder, const Node& node) {
  const ValueId out = node.outputs.front();
  const TensorType& type = builder.type(out);
  const auto axis = static_cast<std::size_t>(node.attributes.integer("axis"));
  const bool reverse = node.attributes.integer("reverse") != 0;
  Func folded = builder.stage(builder.name(out));
  const std::vector<Var> vars = AlgorithmBuilder::vars_of(type);
  Coordinates here = AlgorithmBuilder::coordinates_of(type);
  Coordinates before = here;
  const Expr last = builder.extent(type.shape.at(axis)) - 1;
  const Halide::RDom domain = open_reduction_domain({last + 1});
  const auto place = [&](const Expr& step) -> Expr { return reverse ? last - step : step; };
  here[axis] = place(domain[0]);
  before[axis] = place(Halide::max(domain[0] - 1, 0));
  const bool exclusive = node.attributes.integer("exclusive") != 0;
  const bool is_sum = node.op == Op::cumsum;
  const Expr read = builder.read(node.inputs.front(), exclusive ? before : here);
  const Expr first = exclusive ? Halide::Internal::make_const(read.type(), is_sum ? 0 : 1) : read;
  folded(vars) = Halide::undef(read.type());
  const Expr total = folded(AlgorithmBuilder::arguments_of(type, before));
  folded(AlgorithmBuilder::arguments_of(type, here)) =
      select(domain[0] > 0, is_sum ? read + total : read * total, first);
  builder.set(out, folded);
}

}  // namespace

Algorithm build_stored_folds(const Kernel& kernel, const Form& /*form*/) {
  AlgorithmBuilder builder(kernel, layout_packings(kernel));
  const std::vector<Node>& nodes = kernel.body.nodes();
  const Node* last = nodes.empty() ? nullptr : &nodes.back();
  if (last == nullptr || kernel.body.outputs != std::vector<ValueId>{last->outputs.front()})
    throw UnsupportedError("form stored_folds: the kernel has other results than its last node's");
  builder.define_before(static_cast<NodeId>(nodes.size()) - 1);
  if (has_trait(last->op, OpTrait::scan))
    define_stored_scan(builder, *last);
  else if (has_trait(last->op, OpTrait::scatter))
    define_stored_scatter(builder, *last);
  else
    throw UnsupportedError("form stored_folds: the kernel ends in {}", op_info(last->op).name);
  return builder.finish();
}

}  // namespace sylvite
