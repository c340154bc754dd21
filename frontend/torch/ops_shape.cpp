// Views, copies, slices and joins.

#include <algorithm>
#include <numeric>

#include "frontend/graph/views.h"
#include "frontend/torch/memory_order.h"
#include "frontend/torch/torch_ops.h"

namespace sylvite {
namespace {

/// Products of two leave room for sums.
void check_table_value(std::int64_t value) {
  if (value < 0 || value > (std::int64_t{1} << 30)) throw ModelError("a size or stride is {}", value);
}

/// Whose result has the declared shape: sizes given as -1 are known by then.
void view(TorchContext& c) {
  c.ignore("size");
  c.output(reshape(c.tensor("self"), c.result_dims()));
}

void permute(TorchContext& c) {
  const Sym x = c.tensor("self");
  Dims perm = c.integers("dims");
  for (std::int64_t& axis : perm) axis = normalize_axis(axis, x.rank());
  c.output(transpose(x, perm));
}

void transpose_two(TorchContext& c) {
  const Sym x = c.tensor("self");
  if (x.rank() == 0) return c.ignore("dim0"), c.ignore("dim1"), c.output(x);
  c.output(swap_axes(x, normalize_axis(c.integer("dim0", 0), x.rank()),
                     normalize_axis(c.integer("dim1", x.rank() - 1), x.rank())));
}

void transpose_matrix(TorchContext& c) {
  const Sym x = c.tensor("self");
  c.output(x.rank() < 2 ? x : swap_axes(x, 0, 1));
}

void expand(TorchContext& c) {
  c.ignore("size");
  c.ignore("implicit");
  c.output(broadcast_to(c.tensor("self"), c.result_dims()));
}

/// How it lies in memory is said where it leaves the graph.
void same(TorchContext& c) {
  c.ignore("memory_format");
  c.output(c.tensor("self"));
}

/// The values of src in the shape of self.
void copy(TorchContext& c) {
  c.ignore("non_blocking");
  const Sym x = c.tensor("self");
  c.output(broadcast_to(cast(c.tensor("src"), x.dtype()), x.dims()));
}

struct Range {
  int axis;
  std::int64_t start, stop, step;
};

/// As Python slices: negative bounds count from the end, and all are clamped.
Range read_range(TorchContext& c, const Dims& dims) {
  const int axis = normalize_axis(c.integer("dim", 0), static_cast<int>(dims.size()));
  const std::int64_t extent = dims[static_cast<std::size_t>(axis)];
  const auto clamped = [&](std::int64_t at) {
    return std::clamp<std::int64_t>(at < 0 ? at + extent : at, 0, extent);
  };
  const std::int64_t start = clamped(c.integer("start", 0));
  const std::int64_t stop = std::max(clamped(c.integer("end", extent)), start);
  const std::int64_t step = c.integer("step", 1);
  if (step < 1) throw ModelError("the step of a slice is {}", step);
  return {axis, start, stop, step};
}

void slice_op(TorchContext& c) {
  const Sym x = c.tensor("self");
  const Range range = read_range(c, x.dims());
  c.output(slice(x, range.axis, range.start, range.stop, range.step));
}

std::int64_t read_index(TorchContext& c, std::int64_t extent) {
  const std::int64_t index = c.integer("index");
  if (index < -extent || index >= extent)
    throw ModelError("index {} is out of range for {} elements", index, extent);
  return index < 0 ? index + extent : index;
}

void select(TorchContext& c) {
  const Sym x = c.tensor("self");
  const int axis = normalize_axis(c.integer("dim"), x.rank());
  const std::int64_t index = read_index(c, x.dim(axis));
  c.output(squeeze(slice(x, axis, index, index + 1), {axis}));
}

/// `source` in place of what `range` of x holds.
Sym replaced(Sym x, const Range& range, Sym source) {
  const std::int64_t extent = x.dim(range.axis);
  source = cast(source, x.dtype());
  if (range.step == 1) {
    Dims dims = x.dims();
    dims[static_cast<std::size_t>(range.axis)] = range.stop - range.start;
    std::vector<Sym> parts;
    if (range.start > 0) parts.push_back(slice(x, range.axis, 0, range.start));
    if (range.stop > range.start) parts.push_back(broadcast_to(source, dims));
    if (range.stop < extent) parts.push_back(slice(x, range.axis, range.stop, extent));
    return parts.empty() ? x : concat(parts, range.axis);
  }
  const Sym positions =
      x.builder().iota(DType::i64, {(range.stop - range.start + range.step - 1) / range.step}, 0) *
          static_cast<double>(range.step) +
      static_cast<double>(range.start);
  Dims dims = x.dims();
  dims[static_cast<std::size_t>(range.axis)] = positions.dim(0);
  Dims line(dims.size(), 1);
  line[static_cast<std::size_t>(range.axis)] = positions.dim(0);
  return x.builder().add(Op::scatter_elements,
                         {x, broadcast_to(reshape(positions, line), dims), broadcast_to(source, dims)},
                         {{"axis", std::int64_t{range.axis}}});
}

void slice_scatter(TorchContext& c) {
  const Sym x = c.tensor("self");
  c.output(replaced(x, read_range(c, x.dims()), c.tensor("src")));
}

void select_scatter(TorchContext& c) {
  const Sym x = c.tensor("self");
  const int axis = normalize_axis(c.integer("dim"), x.rank());
  const std::int64_t index = read_index(c, x.dim(axis));
  c.output(replaced(x, {axis, index, index + 1, 1}, unsqueeze(c.tensor("src"), {axis})));
}

/// `x` in these places of a tensor of zeros.
Sym among_zeros(Sym x, const Range& range, const Dims& dims) {
  const auto axis = static_cast<std::size_t>(range.axis);
  if (x.size() == 0) return x.builder().filled(x.dtype(), dims, 0);
  Dims low(dims.size(), 0), high(dims.size(), 0), interior(dims.size(), 0);
  low[axis] = range.start;
  interior[axis] = range.step - 1;
  high[axis] = dims[axis] - range.start - ((x.dim(range.axis) - 1) * range.step + 1);
  if (range.step == 1) interior.clear();
  return x.builder().add(Op::pad, {x}, {{"low", low}, {"high", high}, {"interior", interior}});
}

void slice_backward(TorchContext& c) {
  const Dims dims = c.integers("input_sizes");
  c.output(among_zeros(c.tensor("grad_output"), read_range(c, dims), dims));
}

void select_backward(TorchContext& c) {
  const Dims dims = c.integers("input_sizes");
  const int axis = normalize_axis(c.integer("dim"), static_cast<int>(dims.size()));
  const std::int64_t index = read_index(c, dims[static_cast<std::size_t>(axis)]);
  c.output(among_zeros(unsqueeze(c.tensor("grad_output"), {axis}), {axis, index, index + 1, 1}, dims));
}

/// Tensors of the shape [0] join with anything.
void cat(TorchContext& c) {
  std::vector<Sym> parts;
  for (const Sym& part : c.tensors("tensors")) {
    if (!part) throw ModelError("a tensor to join is missing");
    if (part.rank() != 1 || part.dim(0) != 0) parts.push_back(cast(part, c.result_dtype()));
  }
  if (parts.empty())
    return c.ignore("dim"), c.output(c.builder().filled(c.result_dtype(), c.result_dims(), 0));
  c.output(concat(parts, normalize_axis(c.integer("dim", 0), parts[0].rank())));
}

void stack(TorchContext& c) {
  std::vector<Sym> parts;
  for (const Sym& part : c.tensors("tensors")) {
    if (!part) throw ModelError("a tensor to join is missing");
    parts.push_back(
        unsqueeze(cast(part, c.result_dtype()), {normalize_axis(c.integer("dim", 0), part.rank() + 1)}));
  }
  if (parts.empty()) throw ModelError("no tensors to join");
  c.output(concat(parts, normalize_axis(c.integer("dim", 0), parts[0].rank())));
}

void split_sizes(TorchContext& c) {
  const Sym x = c.tensor("self");
  c.outputs(split(x, normalize_axis(c.integer("dim", 0), x.rank()), c.integers("split_sizes")));
}

void split_even(TorchContext& c) {
  const Sym x = c.tensor("self");
  const int axis = normalize_axis(c.integer("dim", 0), x.rank());
  const std::int64_t size = c.integer("split_size");
  if (size < 1) throw ModelError("split_size is {}", size);
  Dims sizes;
  for (std::int64_t left = x.dim(axis); left > 0; left -= size) {
    if (sizes.size() > c.result_count()) throw ModelError("{} results are declared", c.result_count());
    sizes.push_back(std::min(size, left));
  }
  c.outputs(split(x, axis, sizes.empty() ? Dims{0} : sizes));
}

void unbind(TorchContext& c) {
  const Sym x = c.tensor("self");
  const int axis = normalize_axis(c.integer("dim", 0), x.rank());
  std::vector<Sym> parts;
  if (x.dim(axis) != static_cast<std::int64_t>(c.result_count()))
    throw ModelError("{} results are declared", c.result_count());
  parts.reserve(static_cast<std::size_t>(x.dim(axis)));
  for (std::int64_t i = 0; i < x.dim(axis); ++i) parts.push_back(squeeze(slice(x, axis, i, i + 1), {axis}));
  c.outputs(std::move(parts));
}

void repeat(TorchContext& c) {
  Sym x = c.tensor("self");
  const Dims times = c.integers("repeats");
  if (times.size() < static_cast<std::size_t>(x.rank())) throw ModelError("repeats are fewer than axes");
  Dims dims(times.size() - static_cast<std::size_t>(x.rank()), 1);
  const Dims own = x.dims();
  dims.insert(dims.end(), own.begin(), own.end());
  Dims split, wide;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    split.insert(split.end(), {1, dims[i]});
    wide.insert(wide.end(), {times[i], dims[i]});
  }
  c.output(reshape(broadcast_to(reshape(x, split), wide), c.result_dims()));
}

void flip_op(TorchContext& c) {
  Sym x = c.tensor("self");
  const Dims axes = c.integers("dims");
  if (x.rank() == 0) return c.output(x);
  for (const std::int64_t axis : normalize_axes(axes, x.rank())) x = flip(x, static_cast<int>(axis));
  c.output(x);
}

void roll(TorchContext& c) {
  Sym x = c.tensor("self");
  const Dims shifts = c.integers("shifts");
  Dims axes = c.integers("dims", Dims{});
  const Dims dims = x.dims();
  if (axes.empty()) {
    x = reshape(x, {x.size()});
    axes = {0};
  }
  if (axes.size() != shifts.size())
    throw ModelError("{} shifts are given for {} axes", shifts.size(), axes.size());
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const int axis = normalize_axis(axes[i], x.rank());
    const std::int64_t extent = x.dim(axis);
    if (extent == 0) continue;
    const std::int64_t cut = ((-shifts[i]) % extent + extent) % extent;
    if (cut != 0) x = concat({slice(x, axis, cut, extent), slice(x, axis, 0, cut)}, axis);
  }
  c.output(reshape(x, dims));
}

/// Pairs of amounts, of the last axis first.
struct Borders {
  Dims low, high;
};
Borders read_borders(TorchContext& c, Sym x, std::string_view name) {
  const Dims amounts = c.integers(name);
  const auto rank = static_cast<std::size_t>(x.rank());
  if (amounts.size() % 2 != 0 || amounts.size() > 2 * rank)
    throw ModelError("{} amounts of padding are given for {} axes", amounts.size(), rank);
  Borders borders{Dims(rank, 0), Dims(rank, 0)};
  for (std::size_t i = 0; i < amounts.size() / 2; ++i) {
    borders.low[rank - 1 - i] = amounts[2 * i];
    borders.high[rank - 1 - i] = amounts[2 * i + 1];
  }
  return borders;
}

void pad_constant(TorchContext& c) {
  const Sym x = c.tensor("self");
  const Borders borders = read_borders(c, x, "pad");
  std::vector<Sym> inputs{x};
  if (c.has("value")) inputs.push_back(c.operand("value", x.dtype()));
  c.output(c.builder().add(Op::pad, inputs, {{"low", borders.low}, {"high", borders.high}}));
}

void pad_mode(TorchContext& c, const char* mode) {
  const Sym x = c.tensor("self");
  const Borders borders = read_borders(c, x, "padding");
  c.output(c.builder().add(Op::pad, {x},
                           {{"low", borders.low}, {"high", borders.high}, {"mode", std::string(mode)}}));
}
void pad_reflect(TorchContext& c) {
  pad_mode(c, "reflect");
}
void pad_replicate(TorchContext& c) {
  pad_mode(c, "edge");
}

/// [..., n, m] -> [..., min(n, m)] at the end.
/// A diagonal of two axes.
struct Diagonal {
  std::vector<std::int64_t> perm;  ///< the two axes last
  std::int64_t offset = 0, rows = 0, columns = 0, count = 0;
};

Diagonal read_diagonal(TorchContext& c, Sym x) {
  const int first = normalize_axis(c.integer("dim1", 0), x.rank());
  const int second = normalize_axis(c.integer("dim2", 1), x.rank());
  Diagonal d;
  for (std::int64_t axis = 0; axis < x.rank(); ++axis)
    if (axis != first && axis != second) d.perm.push_back(axis);
  d.perm.insert(d.perm.end(), {first, second});
  d.offset = c.integer("offset", 0);
  d.rows = x.dim(first);
  d.columns = x.dim(second);
  d.count = std::max<std::int64_t>(
      0, d.offset < 0 ? std::min(d.rows + d.offset, d.columns) : std::min(d.rows, d.columns - d.offset));
  return d;
}

void diagonal(TorchContext& c) {
  const Sym x = c.tensor("self");
  const Diagonal d = read_diagonal(c, x);
  const Sym last = transpose(x, d.perm);
  Dims dims = last.dims();
  const std::int64_t start = d.offset < 0 ? -d.offset * d.columns : d.offset;
  dims.resize(dims.size() - 2);
  dims.push_back(d.rows * d.columns);
  if (d.count == 0) return c.output(c.builder().filled(x.dtype(), c.result_dims(), 0));
  const std::int64_t step = d.columns + 1;
  c.output(slice(reshape(last, dims), -1, start, start + (d.count - 1) * step + 1, step));
}

/// `src` on the diagonal: each row reads the one element that may lie on it.
void diagonal_scatter(TorchContext& c) {
  const Sym x = c.tensor("self");
  const Diagonal d = read_diagonal(c, x);
  if (d.count == 0) return c.ignore("src"), c.output(x);
  GraphBuilder& b = c.builder();
  const std::int64_t low = std::max<std::int64_t>(-d.offset, 0);  // the first row with an element
  const Sym row = b.iota(DType::i64, {d.rows, 1}, 0);
  const Sym place = apply(Op::minimum, apply(Op::maximum, row - static_cast<double>(low), 0.0),
                          static_cast<double>(d.count - 1));
  const Sym source = gather(cast(c.tensor("src"), x.dtype()), place, x.rank() - 2);
  const Sym is_on =
      apply(Op::equal, b.iota(DType::i64, {1, d.columns}, 1) - row, static_cast<double>(d.offset));
  c.output(transpose(where(is_on, source, transpose(x, d.perm)), inverse_order(d.perm)));
}

/// Elements of the memory that self takes, as the arguments say: where each lies.
struct StridedPlaces {
  Sym memory;  ///< flat
  Dims sizes;
  std::vector<std::int64_t> positions;
};
StridedPlaces read_places(TorchContext& c) {
  const Sym x = c.tensor("self");
  StridedPlaces read;
  read.sizes = c.integers("size");
  const Dims strides = c.integers("stride");
  const std::int64_t offset = c.integer("storage_offset", 0);
  const Dims& sizes = read.sizes;
  if (sizes.size() != strides.size())
    throw ModelError("{} strides are given for {} axes", strides.size(), sizes.size());
  read.memory = reshape(transpose(x, memory_order(x.dims(), c.strides_of("self"))), {x.size()});
  const std::int64_t count = checked_product(sizes, "size");
  std::int64_t last = offset;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    check_table_value(sizes[i]);
    check_table_value(strides[i]);
    last += std::max<std::int64_t>(sizes[i] - 1, 0) * strides[i];
  }
  if (offset < 0 || (count > 0 && last >= x.size()))
    throw UnsupportedError("it reads memory beyond the tensor");
  c.builder().reserve_table({2, count});
  const Dims places = dense_strides(sizes);
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t position = offset;
    for (std::size_t axis = 0; axis < sizes.size(); ++axis)
      position += i / places[axis] % sizes[axis] * strides[axis];
    read.positions.push_back(position);
  }
  return read;
}

/// The same axes in another order, or a gather by a table.
void as_strided(TorchContext& c) {
  const StridedPlaces read = read_places(c);
  const auto count = static_cast<std::int64_t>(read.positions.size());
  bool is_whole = count == read.memory.size();
  for (std::int64_t i = 0; is_whole && i < count; ++i)
    is_whole = read.positions[static_cast<std::size_t>(i)] == i;
  c.output(reshape(is_whole ? read.memory : gather(read.memory, c.builder().integers(read.positions), 0),
                   read.sizes));
}

/// Self with those elements replaced: a gather of either.
void as_strided_scatter(TorchContext& c) {
  const Sym x = c.tensor("self");
  const StridedPlaces written = read_places(c);
  const Sym src = c.tensor("src");
  if (src.size() != static_cast<std::int64_t>(written.positions.size()))
    throw ModelError("{} elements replace {}", src.size(), written.positions.size());
  c.builder().reserve_table({x.size()});
  std::vector<std::int64_t> from(static_cast<std::size_t>(x.size()));
  std::iota(from.begin(), from.end(), 0);
  std::int64_t next = x.size();
  for (const std::int64_t position : written.positions) from[static_cast<std::size_t>(position)] = next++;
  const Sym both = concat({written.memory, reshape(src, {src.size()})}, 0);
  const std::vector<std::int64_t> order = memory_order(x.dims(), c.strides_of("self"));
  c.output(transpose(reshape(gather(both, c.builder().integers(from), 0), in_order(x.dims(), order)),
                     inverse_order(order)));
}

/// Windows along one axis, as a last axis.
void unfold(TorchContext& c) {
  const Sym x = c.tensor("self");
  const int axis = normalize_axis(c.integer("dimension"), x.rank());
  const std::int64_t size = c.integer("size");
  const std::int64_t step = c.integer("step");
  if (size < 0 || step < 1 || size > x.dim(axis))
    throw ModelError("windows of {} elements do not fit an axis of {}", size, x.dim(axis));
  const std::int64_t count = (x.dim(axis) - size) / step + 1;
  GraphBuilder& b = c.builder();
  const Sym index =
      b.iota(DType::i64, {count, 1}, 0) * static_cast<double>(step) + b.iota(DType::i64, {1, size}, 1);
  std::vector<std::int64_t> perm;
  for (std::int64_t i = 0; i <= x.rank(); ++i)
    if (i != axis + 1) perm.push_back(i);
  perm.push_back(axis + 1);
  c.output(transpose(gather(x, index, axis), perm));
}

constexpr std::string_view sized = "self size";
constexpr std::string_view laid_out = "self memory_format";
constexpr std::string_view padded = "self padding";

const TorchOp shape_rows[] = {
    {"aten._unsafe_view.default", sized, view},
    {"aten.alias.default", "self", same},
    {"aten.as_strided.default", "self size stride storage_offset", as_strided},
    {"aten.as_strided_scatter.default", "self src size stride storage_offset", as_strided_scatter},
    {"aten.cat.default", "tensors dim", cat},
    {"aten.clone.default", laid_out, same},
    {"aten.constant_pad_nd.default", "self pad value", pad_constant},
    {"aten.contiguous.default", laid_out, same},
    {"aten.copy.default", "self src non_blocking", copy},
    {"aten.detach.default", "self", same},
    {"aten.diagonal.default", "self offset dim1 dim2", diagonal},
    {"aten.diagonal_scatter.default", "self src offset dim1 dim2", diagonal_scatter},
    {"aten.expand.default", "self size implicit", expand},
    {"aten.flip.default", "self dims", flip_op},
    {"aten.lift_fresh_copy.default", "self", same},
    {"aten.permute.default", "self dims", permute},
    {"aten.reflection_pad1d.default", padded, pad_reflect},
    {"aten.reflection_pad2d.default", padded, pad_reflect},
    {"aten.reflection_pad3d.default", padded, pad_reflect},
    {"aten.repeat.default", "self repeats", repeat},
    {"aten.replication_pad1d.default", padded, pad_replicate},
    {"aten.replication_pad2d.default", padded, pad_replicate},
    {"aten.replication_pad3d.default", padded, pad_replicate},
    {"aten.reshape.default", sized, view},
    {"aten.roll.default", "self shifts dims", roll},
    {"aten.select.int", "self dim index", select},
    {"aten.select_backward.default", "grad_output input_sizes dim index", select_backward},
    {"aten.select_scatter.default", "self src dim index", select_scatter},
    {"aten.slice.Tensor", "self dim start end step", slice_op},
    {"aten.slice_backward.default", "grad_output input_sizes dim start end step", slice_backward},
    {"aten.slice_scatter.default", "self src dim start end step", slice_scatter},
    {"aten.split.Tensor", "self split_size dim", split_even},
    {"aten.split_with_sizes.default", "self split_sizes dim", split_sizes},
    {"aten.squeeze.default", sized, view},
    {"aten.squeeze.dim", "self size", view},
    {"aten.squeeze.dims", "self size", view},
    {"aten.stack.default", "tensors dim", stack},
    {"aten.t.default", "self", transpose_matrix},
    {"aten.transpose.int", "self dim0 dim1", transpose_two},
    {"aten.unbind.int", "self dim", unbind},
    {"aten.unfold.default", "self dimension size step", unfold},
    {"aten.unsqueeze.default", sized, view},
    {"aten.view.default", sized, view},
};

}  // namespace

std::span<const TorchOp> torch_shape_ops() {
  return shape_rows;
}

}  // namespace sylvite
