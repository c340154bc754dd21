// Operators of com.microsoft that the default domain has as well, and small ones of its own.

#include <algorithm>

#include "base/error.h"
#include "frontend/onnx/ops.h"

namespace sylvite {
namespace {

constexpr std::string_view domain = "com.microsoft";

void expand_dims(ImportContext& c) {
  const Sym x = c.input(0);
  const std::int64_t axis = c.constant_integer(1);
  c.output(unsqueeze(x, {normalize_axis(axis, x.rank() + 1)}));
}

/// Gauss and Jordan, with the largest element of each column as its pivot: [A | 1] becomes [1 | inverse].
void inverse(ImportContext& c) {
  constexpr std::int64_t most = 32;  // it is unrolled
  const Sym a = c.input(0);
  GraphBuilder& b = c.builder();
  if (a.rank() < 2 || a.dim(-1) != a.dim(-2)) throw ModelError("the input is no square matrix");
  const std::int64_t n = a.dim(-1);
  if (n < 1 || n > most)
    throw UnsupportedError("inverses of {0}x{0} matrices; up to {1}x{1} are supported", n, most);
  const DType dtype = a.dtype();
  Sym x = reshape(a, {a.size() / (n * n), n, n});
  const Sym row = b.iota(DType::i64, {1, n, 1}, 1);
  const Sym one = cast(apply(Op::equal, row, b.iota(DType::i64, {1, 1, n}, 2)), dtype);
  x = concat({x, broadcast_to(one, x.dims())}, 2);
  for (std::int64_t k = 0; k < n; ++k) {
    const auto at = static_cast<double>(k);
    const Sym size =
        where(apply(Op::less, row, at), b.scalar(dtype, -1), apply(Op::abs, slice(x, 2, k, k + 1)));
    const Sym is_pivot = apply(Op::equal, row, b.add(Op::arg_max, {size}, {{"axis", std::int64_t{1}}}));
    const Sym pivot = reduce(Op::reduce_sum, where(is_pivot, x, 0.0), {1});
    const Sym exchanged = where(is_pivot, slice(x, 1, k, k + 1), x);
    const Sym scaled = pivot / slice(pivot, 2, k, k + 1);
    x = where(apply(Op::equal, row, at), scaled, exchanged - slice(exchanged, 2, k, k + 1) * scaled);
  }
  c.output(reshape(slice(x, 2, n, 2 * n), a.dims()));
}

/// Those that mean what the default domain's do.
constexpr std::string_view shared[] = {"DequantizeLinear", "GatherND", "GridSample", "Pad",
                                       "QuantizeLinear",   "Trilu"};

std::vector<OnnxOp> make_rows() {
  std::vector<OnnxOp> rows{{"ExpandDims", 1, expand_dims, domain}, {"Inverse", 1, inverse, domain}};
  for (const auto family : {onnx_gather_ops(), onnx_quantization_ops(), onnx_resize_ops(), onnx_shape_ops()})
    for (const OnnxOp& op : family)
      if (op.domain.empty() && std::find(std::begin(shared), std::end(shared), op.name) != std::end(shared))
        rows.push_back({op.name, 1, op.import, domain});
  return rows;
}

}  // namespace

std::span<const OnnxOp> onnx_contrib_other_ops() {
  static const std::vector<OnnxOp> rows = make_rows();
  return rows;
}

}  // namespace sylvite
