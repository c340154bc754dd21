// Operators that read or write at indices given as data, and orderings.

#include <algorithm>
#include <utility>
#include <vector>

#include "base/error.h"
#include "frontend/onnx/ops.h"
#include "frontend/values/nonzero.h"

namespace sylvite {
namespace {

/// ONNX has no result for an index beyond its axis, such as a position in a table of fewer rows. Indices that
/// are known only when the model runs are clamped, in kernels and host steps alike. Indices are by turns of these extents. REQUIRES one at least.
void check_known_indices(ImportContext& c, const Dims& extents) {
  if (c.is_running() || !c.input(1).is_constant()) return;
  std::size_t turn = 0;
  for (const std::int64_t index : c.constant_integers(1)) {
    const std::int64_t extent = extents[turn++ % extents.size()];
    if (index < -extent || index >= extent)
      throw ModelError("index {} is beyond the {} rows of '{}'", index, extent, c.input_name(0));
  }
}

void gather_op(ImportContext& c) {
  const Sym x = c.input(0);
  const int axis = normalize_axis(c.integer("axis", 0), x.rank());
  check_known_indices(c, {x.dim(axis)});
  c.output(gather(x, c.input(1), axis));
}

void gather_elements(ImportContext& c) {
  const Sym x = c.input(0);
  const int axis = normalize_axis(c.integer("axis", 0), x.rank());
  check_known_indices(c, {x.dim(axis)});
  c.output(c.builder().add(Op::gather_elements, {x, c.input(1)}, {{"axis", std::int64_t{axis}}}));
}

/// Indices of one number each are those of a gather along the first dim.
void gather_nd(ImportContext& c) {
  const Sym x = c.input(0), indices = c.input(1);
  const std::int64_t batch_dims = c.integer("batch_dims", 0);
  const std::int64_t numbers = indices.rank() > 0 ? indices.dims().back() : 0;
  if (numbers > 0 && batch_dims >= 0 && batch_dims <= x.rank() - numbers) {
    const Dims dims = x.dims();
    check_known_indices(c, Dims(dims.begin() + batch_dims, dims.begin() + batch_dims + numbers));
  }
  if (batch_dims == 0 && numbers == 1) {
    Dims places = indices.dims();
    places.pop_back();
    c.output(gather(x, reshape(indices, places), 0));
    return;
  }
  c.output(c.builder().add(Op::gather_nd, {x, indices}, {{"batch_dims", batch_dims}}));
}

void scatter_elements(ImportContext& c) {
  const Sym x = c.input(0);
  const std::int64_t axis = normalize_axis(c.integer("axis", 0), x.rank());
  c.output(c.builder().add(Op::scatter_elements, {x, c.input(1), c.input(2)},
                           {{"axis", axis}, {"reduction", c.string("reduction", "none")}}));
}

void scatter_nd(ImportContext& c) {
  c.output(c.builder().add(Op::scatter_nd, {c.input(0), c.input(1), c.input(2)},
                           {{"reduction", c.string("reduction", "none")}}));
}

/// on where the position along the new axis equals the index, off elsewhere; indices out of range are all
/// off.
void one_hot(ImportContext& c) {
  const std::vector<double> depths = c.constant_reals(1);
  if (depths.size() != 1 || !(depths[0] >= 0 && depths[0] < 1e12))
    throw ModelError("depth must be one non-negative number");
  const auto depth = static_cast<std::int64_t>(depths[0]);
  Sym indices = cast(c.input(0), DType::i64);
  const int axis = normalize_axis(c.integer("axis", -1), indices.rank() + 1);
  indices = where(apply(Op::less, indices, 0.0), indices + static_cast<double>(depth), indices);
  indices = unsqueeze(indices, {axis});
  Dims dims = indices.dims();
  dims[static_cast<std::size_t>(axis)] = depth;
  const Sym values = c.input(2);
  const Sym off = reshape(slice(values, 0, 0, 1), {});
  const Sym on = reshape(slice(values, 0, 1, 2), {});
  c.output(where(apply(Op::equal, c.builder().iota(DType::i64, dims, axis), indices), on, off));
}

void top_k(ImportContext& c) {
  const Sym x = c.input(0);
  const std::int64_t axis = normalize_axis(c.integer("axis", -1), x.rank());
  const std::int64_t count = c.has_input(1) ? c.constant_integer(1) : c.required_integer("k");
  if (count < 0 || count > x.dim(static_cast<int>(axis)))
    throw ModelError("k is {}, over extent {}", count, x.dim(static_cast<int>(axis)));
  const std::vector<Sym> results = c.builder().add_all(
      Op::top_k, {x}, {{"axis", axis}, {"k", Dims{count}}, {"largest", c.integer("largest", 1)}});
  c.output(0, results.at(0));
  c.output(1, results.at(1));
}

template <Op op>
void cumulative(ImportContext& c) {
  const Sym x = c.input(0);
  const std::vector<std::int64_t> axis = c.constant_integers(1);
  if (axis.size() != 1) throw ModelError("axis must be one number");
  c.output(c.builder().add(op, {x},
                           {{"axis", std::int64_t{normalize_axis(axis[0], x.rank())}},
                            {"exclusive", c.integer("exclusive", 0)},
                            {"reverse", c.integer("reverse", 0)}}));
}

template <Op op>
void arg_extreme(ImportContext& c) {
  const Sym x = c.input(0);
  c.output(c.builder().add(op, {x},
                           {{"axis", std::int64_t{normalize_axis(c.integer("axis", 0), x.rank())}},
                            {"keepdims", c.integer("keepdims", 1)},
                            {"select_last", c.integer("select_last_index", 0)}}));
}

/// Keeps the lower or upper triangle of the last two axes: a comparison of row and column numbers.
void trilu(ImportContext& c) {
  const Sym x = c.input(0);
  if (x.rank() < 2) throw ModelError("the input has rank {}, expected at least 2", x.rank());
  const std::int64_t k = c.has_input(1) ? c.constant_integer(1) : 0;
  const Dims matrix{x.dim(-2), x.dim(-1)};
  const Sym offset = c.builder().iota(DType::i64, matrix, 1) - c.builder().iota(DType::i64, matrix, 0);
  const bool is_upper = c.integer("upper", 1) != 0;
  const Sym keep = apply(is_upper ? Op::greater_equal : Op::less_equal, offset,
                         c.builder().constant(Tensor::scalar_i64(k)));
  c.output(where(keep, x, c.builder().scalar(x.dtype(), 0)));
}

/// Selects the slices whose condition holds; the condition must be known.
void compress(ImportContext& c) {
  Sym x = c.input(0);
  const bool is_flat = !c.has_attribute("axis");
  if (is_flat) x = reshape(x, {x.size()});
  const int axis = is_flat ? 0 : normalize_axis(c.integer("axis", 0), x.rank());
  const Tensor condition = c.constant(1);
  const std::int64_t count = std::min(condition.size(), x.dim(axis));
  std::vector<std::int64_t> selected = nonzero_places(condition);
  selected.erase(std::ranges::lower_bound(selected, count), selected.end());
  c.output(gather(x, c.builder().integers(selected), axis));
}

/// Reverses the first `length` steps of each sequence: a gather of what lies behind both axes as one row.
void reverse_sequence(ImportContext& c) {
  const Sym x = c.input(0);
  const int batch_axis = normalize_axis(c.integer("batch_axis", 1), x.rank());
  const int time_axis = normalize_axis(c.integer("time_axis", 0), x.rank());
  if (batch_axis == time_axis) throw ModelError("batch_axis and time_axis are the same");
  const auto row_axis = std::max(batch_axis, time_axis) + 1;
  const Dims dims = x.dims();
  const Dims lead(dims.begin(), dims.begin() + row_axis);
  Dims per_batch(lead.size(), 1), per_step(lead.size(), 1);
  per_batch[static_cast<std::size_t>(batch_axis)] = x.dim(batch_axis);
  per_step[static_cast<std::size_t>(time_axis)] = x.dim(time_axis);
  const std::int64_t rows = checked_product(lead, "sequences");
  const auto stride = static_cast<double>(dense_strides(lead)[static_cast<std::size_t>(time_axis)]);
  const Sym lengths = reshape(cast(c.input(1), DType::i64), per_batch);
  const Sym step = c.builder().iota(DType::i64, per_step, time_axis);
  const Sym ahead = where(apply(Op::less, step, lengths), lengths - 1.0 - step * 2.0, 0.0) * stride;
  const Sym row = reshape(c.builder().iota(DType::i64, {rows}, 0), lead) + ahead;
  const std::int64_t width = checked_product(Dims(dims.begin() + row_axis, dims.end()), "row");
  c.output(reshape(gather(reshape(x, {rows, width}), row, 0), dims));
}

void array_feature_extractor(ImportContext& c) {
  const Sym x = c.input(0);
  const Sym indices = c.input(1);
  const Sym matrix = x.rank() == 1 ? reshape(x, {1, x.size()}) : x;
  c.output(gather(matrix, reshape(indices, {indices.size()}), matrix.rank() - 1));
}

/// Writes `update` into the cache at per-batch positions along an axis.
void tensor_scatter(ImportContext& c) {
  const Sym cache = c.input(0);
  const Sym update = c.input(1);
  const int axis = normalize_axis(c.integer("axis", -2), cache.rank());
  const std::string mode = c.string("mode", "linear");
  if (axis == 0) throw ModelError("axis must not be the batch axis");
  Sym position = c.builder().iota(DType::i64, update.dims(), axis);
  if (const Sym starts = c.optional(2)) {
    Dims per_batch(static_cast<std::size_t>(cache.rank()), 1);
    per_batch[0] = starts.size();
    position = position + reshape(cast(starts, DType::i64), per_batch);
  }
  if (mode == "circular") position = apply(Op::mod, position, static_cast<double>(cache.dim(axis)));
  c.output(c.builder().add(Op::scatter_elements, {cache, position, update}, {{"axis", std::int64_t{axis}}}));
}

const OnnxOp gather_rows[] = {
    {"ArgMax", 1, arg_extreme<Op::arg_max>},
    {"ArgMin", 1, arg_extreme<Op::arg_min>},
    {"ArrayFeatureExtractor", 1, array_feature_extractor, "ai.onnx.ml"},
    {"Compress", 9, compress},
    {"CumProd", 26, cumulative<Op::cumprod>},
    {"CumSum", 11, cumulative<Op::cumsum>},
    {"Gather", 1, gather_op},
    {"GatherElements", 11, gather_elements},
    {"GatherND", 11, gather_nd},
    {"OneHot", 9, one_hot},
    {"ReverseSequence", 10, reverse_sequence},
    {"Scatter", 9, scatter_elements},
    {"ScatterElements", 11, scatter_elements},
    {"ScatterND", 11, scatter_nd},
    {"TensorScatter", 24, tensor_scatter},
    {"TopK", 1, top_k},
    {"Trilu", 14, trilu},
};

}  // namespace

std::span<const OnnxOp> onnx_gather_ops() {
  return gather_rows;
}

}  // namespace sylvite
