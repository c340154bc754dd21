// Formulas over values of a builder: the operations of `Sym`.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"
#include "frontend/graph/graph_builder.h"
#include "frontend/graph/made_weights.h"
#include "frontend/ops/infer.h"
#include "frontend/values/narrow.h"
#include "frontend/values/size_table.h"
#include "frontend/values/strided.h"

namespace sylvite {
namespace {

Dims insert_axes(const Dims& dims, const std::vector<std::int64_t>& sorted_axes) {
  Dims result = dims;
  for (std::int64_t axis : sorted_axes) result.insert(result.begin() + axis, 1);
  return result;
}

/// Of mixed types only store_narrow makes products.
void require_same_dtype(Sym a, Sym b) {
  const Graph& graph = a.builder().graph();
  require_same_dtype(graph.type(a.id()), graph.type(b.id()), "the operands");
}

}  // namespace

DType Sym::dtype() const {
  return builder_->graph().type(id_).dtype;
}
Dims Sym::dims() const {
  return builder_->graph().type(id_).dims();
}
int Sym::rank() const {
  return builder_->graph().type(id_).rank();
}
std::int64_t Sym::dim(int axis) const {
  return dims()[static_cast<std::size_t>(normalize_axis(axis, rank()))];
}
std::int64_t Sym::size() const {
  return builder_->graph().type(id_).element_count();
}
bool Sym::is_constant() const {
  return builder_->graph().is_constant(id_);
}
Tensor Sym::constant() const {
  return *builder_->graph().value(id_).constant;
}

Sym apply(Op op, Sym x) {
  return x.builder().add(op, {x});
}
Sym apply(Op op, Sym a, Sym b) {
  return a.builder().add(op, {a, b});
}
Sym apply(Op op, Sym a, double b) {
  return apply(op, a, a.builder().scalar(a.dtype(), b));
}
Sym operator+(Sym a, Sym b) {
  return apply(Op::add, a, b);
}
Sym operator-(Sym a, Sym b) {
  return apply(Op::sub, a, b);
}
Sym operator*(Sym a, Sym b) {
  return apply(Op::mul, a, b);
}
Sym operator/(Sym a, Sym b) {
  return apply(Op::div, a, b);
}
Sym operator+(Sym a, double b) {
  return apply(Op::add, a, b);
}
Sym operator-(Sym a, double b) {
  return apply(Op::sub, a, b);
}
Sym operator*(Sym a, double b) {
  return apply(Op::mul, a, b);
}
Sym operator/(Sym a, double b) {
  return apply(Op::div, a, b);
}
Sym operator+(double a, Sym b) {
  return b + a;
}
Sym operator-(double a, Sym b) {
  return b.builder().scalar(b.dtype(), a) - b;
}
Sym operator*(double a, Sym b) {
  return b * a;
}
Sym operator/(double a, Sym b) {
  return b.builder().scalar(b.dtype(), a) / b;
}
Sym operator-(Sym x) {
  return apply(Op::neg, x);
}

Sym where(Sym condition, Sym if_true, Sym if_false) {
  return condition.builder().add(Op::where, {condition, if_true, if_false});
}
Sym where(Sym condition, Sym if_true, double if_false) {
  return where(condition, if_true, condition.builder().scalar(if_true.dtype(), if_false));
}
Sym where(Sym condition, double if_true, Sym if_false) {
  return where(condition, condition.builder().scalar(if_false.dtype(), if_true), if_false);
}

Sym cast(Sym x, DType to) {
  if (x.dtype() == to) return x;
  return x.builder().add(Op::cast, {x}, {{"to", std::string(dtype_name(to))}});
}

Sym saturated(Sym x, DType to) {
  const double largest = largest_narrow(to);
  const Sym low =
      to == DType::f8e8m0 ? x : apply(Op::maximum, x, -largest);  // negative numbers stay NaN there
  return apply(Op::minimum, low, largest);
}

Sym reshape(Sym x, const Dims& dims) {
  if (x.dims() == dims) return x;
  if (x.is_constant() && checked_product(dims, "reshape") == x.size())
    return x.builder().constant(x.constant().reshaped(dims));
  return x.builder().add(Op::reshape, {x}, {{"shape", dims}});
}

Sym transpose(Sym x, const std::vector<std::int64_t>& perm) {
  const int rank = x.rank();
  if (normalize_axes(perm, rank).size() != static_cast<std::size_t>(rank))
    throw ModelError("a permutation of {} axes is given for rank {}", perm.size(), rank);
  if (perm == all_axes(rank)) return x;
  // A transpose takes several times as long as other copies. What follows from sizes still does where it is folded.
  const bool is_weight = x.is_constant() && readings_of(x.constant()) == nullptr;
  if (is_weight && !x.builder().keeps_nodes() && x.builder().may_copy(4 * x.constant().byte_size()))
    return x.builder().constant(
        made_of(fmt::format("transposed {}", fmt::join(perm, ",")), {x.constant()}, [&] {
          return Tensor::later(x.dtype(), permuted(x.constant().dims(), perm),
                               [=, tensor = x.constant()] { return transposed(tensor, perm); });
        }));
  return x.builder().add(Op::transpose, {x}, {{"perm", perm}});
}

Sym swap_axes(Sym x, int a, int b) {
  std::vector<std::int64_t> perm = all_axes(x.rank());
  std::swap(perm[static_cast<std::size_t>(normalize_axis(a, x.rank()))],
            perm[static_cast<std::size_t>(normalize_axis(b, x.rank()))]);
  return transpose(x, perm);
}

Sym broadcast_to(Sym x, const Dims& dims) {
  if (x.dims() == dims) return x;
  return x.builder().add(Op::broadcast_to, {x}, {{"shape", dims}});
}

Sym unsqueeze(Sym x, std::vector<std::int64_t> axes) {
  axes = normalize_axes(axes, x.rank() + static_cast<int>(axes.size()));
  return reshape(x, insert_axes(x.dims(), axes));
}

Sym squeeze(Sym x, std::vector<std::int64_t> axes) {
  axes = normalize_axes(axes, x.rank());
  Dims dims = x.dims();
  for (std::size_t i = axes.size(); i-- > 0;) {
    if (dims[static_cast<std::size_t>(axes[i])] != 1) {
      throw ModelError("squeezed axis {} has extent {}, expected 1", axes[i],
                       dims[static_cast<std::size_t>(axes[i])]);
    }
    dims.erase(dims.begin() + axes[i]);
  }
  return reshape(x, dims);
}

Sym slice(Sym x, int axis, std::int64_t start, std::int64_t stop, std::int64_t step) {
  const auto at = static_cast<std::size_t>(normalize_axis(axis, x.rank()));
  const Dims dims = x.dims();
  Dims sizes = dims;
  sizes[at] = step > 0 ? std::max<std::int64_t>((stop - start + step - 1) / step, 0)
                       : std::max<std::int64_t>((start - stop - step - 1) / -step, 0);
  if (sizes == dims && step == 1) return x;
  Dims starts(dims.size(), 0);
  Dims steps(dims.size(), 1);
  starts[at] = sizes[at] == 0 ? 0 : start;
  steps[at] = step;
  return x.builder().add(Op::slice, {x}, {{"starts", starts}, {"sizes", sizes}, {"steps", steps}});
}

Sym flip(Sym x, int axis) {
  return slice(x, axis, x.dim(axis) - 1, -1, -1);
}

Sym pad(Sym x, const Dims& low, const Dims& high, double value, const Dims& interior) {
  const auto is_zero = [](const Dims& dims) {
    return std::all_of(dims.begin(), dims.end(), [](auto d) { return d == 0; });
  };
  if (is_zero(low) && is_zero(high) && is_zero(interior)) return x;
  Attributes attributes{{"low", low}, {"high", high}};
  if (!interior.empty()) attributes.set("interior", interior);
  std::vector<Sym> inputs{x};
  if (value != 0) inputs.push_back(x.builder().scalar(x.dtype(), value));
  return x.builder().add(Op::pad, inputs, attributes);
}

Sym concat(const std::vector<Sym>& parts, int axis) {
  if (parts.empty()) throw UnsupportedError("nothing is concatenated, so the result has no known type");
  if (parts.size() == 1) return parts[0];
  return parts.at(0).builder().add(Op::concat, parts, {{"axis", std::int64_t{axis}}});
}

Sym gather(Sym x, Sym indices, int axis) {
  return x.builder().add(Op::gather, {x, indices}, {{"axis", std::int64_t{axis}}});
}

std::vector<Sym> split(Sym x, int axis, const std::vector<std::int64_t>& sizes) {
  std::vector<Sym> parts;
  std::int64_t start = 0;
  for (std::int64_t size : sizes) {
    if (size < 0 || size > x.dim(axis) - start)
      throw ModelError("the parts of a split exceed extent {}", x.dim(axis));
    parts.push_back(slice(x, axis, start, start + size));
    start += size;
  }
  return parts;
}

Sym reduce(Op op, Sym x, const std::vector<std::int64_t>& axes, bool keepdims) {
  if (axes.empty()) return x;
  return x.builder().add(op, {x},
                         {{"axes", normalize_axes(axes, x.rank())}, {"keepdims", std::int64_t{keepdims}}});
}

Sym reduce_mean(Sym x, const std::vector<std::int64_t>& axes, bool keepdims) {
  std::int64_t count = 1;
  for (std::int64_t axis : axes) count *= x.dim(static_cast<int>(axis));
  const Sym sum = reduce(Op::reduce_sum, x, axes, keepdims);
  return is_float(x.dtype()) ? sum * (1.0 / static_cast<double>(count)) : sum / static_cast<double>(count);
}

Sym softmax(Sym x, int axis) {
  return x.builder().add(Op::softmax, {x}, {{"axis", std::int64_t{axis}}});
}
Sym matmul(Sym a, Sym b) {
  require_same_dtype(a, b);
  return cast(a.builder().add(Op::matmul, {a, b}), a.dtype());
}
Sym conv(const std::vector<Sym>& inputs, Attributes attributes) {
  require_same_dtype(inputs.at(0), inputs.at(1));
  return inputs[0].builder().add(Op::conv, inputs, std::move(attributes));
}

}  // namespace sylvite
