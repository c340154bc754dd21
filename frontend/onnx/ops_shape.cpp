// Reshaping, slicing, joining: operators that move elements by rules known from shapes and constants.

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "base/rounding.h"
#include "frontend/graph/folded_tables.h"
#include "frontend/onnx/ops.h"
#include "frontend/values/size_facts.h"
#include "frontend/values/size_table.h"

namespace sylvite {
namespace {

void reshape_op(ImportContext& c) {
  const Sym x = c.input(0);
  const Dims from = x.dims();
  Dims to = c.has_input(1) ? c.constant_integers(1) : c.integers("shape");
  const bool allow_zero = c.integer("allowzero", 0) != 0;
  int inferred = -1;
  for (std::size_t i = 0; i < to.size(); ++i) {
    if (to[i] == 0 && !allow_zero) {
      if (i >= from.size())
        throw ModelError("shape copies dimension {}, but the input has rank {}", i, from.size());
      to[i] = from[i];
    } else if (to[i] == -1) {
      if (inferred >= 0) throw ModelError("shape holds -1 twice");
      inferred = static_cast<int>(i);
      to[i] = 1;
    }
  }
  if (inferred >= 0) {
    const std::int64_t known = checked_product(to, "shape");
    if (known == 0) throw ModelError("the extent for -1 cannot be told: another extent is 0");
    if (x.size() % known != 0)
      throw ModelError("{} elements do not divide into the shape's {}", x.size(), known);
    to[static_cast<std::size_t>(inferred)] = x.size() / known;
  }
  if (checked_product(to, "shape") != x.size())
    throw ModelError("shape [{}] does not hold the input's {} elements", fmt::join(to, ","), x.size());
  c.output(reshape(x, to));
}

void flatten(ImportContext& c) {
  const Sym x = c.input(0);
  const Dims dims = x.dims();
  std::int64_t axis = c.integer("axis", 1);
  if (axis < -x.rank() || axis > x.rank())
    throw ModelError("axis {} is out of range for rank {}", axis, x.rank());
  if (axis < 0) axis += x.rank();
  c.output(reshape(x, {checked_product(Dims(dims.begin(), dims.begin() + axis), "flatten"),
                       checked_product(Dims(dims.begin() + axis, dims.end()), "flatten")}));
}

void transpose_op(ImportContext& c) {
  const Sym x = c.input(0);
  std::vector<std::int64_t> perm = c.integers("perm");
  if (!c.has_attribute("perm")) {
    perm = all_axes(x.rank());
    std::reverse(perm.begin(), perm.end());
  }
  c.output(transpose(x, perm));
}

void squeeze_op(ImportContext& c) {
  const Sym x = c.input(0);
  auto axes = c.integers_from(1, "axes");
  if (!axes) {
    axes.emplace();
    for (int axis = 0; axis < x.rank(); ++axis)
      if (x.dim(axis) == 1) axes->push_back(axis);
  }
  c.output(squeeze(x, *axes));
}

void unsqueeze_op(ImportContext& c) {
  const auto axes = c.integers_from(1, "axes");
  if (!axes) throw ModelError("axes are required");
  c.output(unsqueeze(c.input(0), *axes));
}

/// Broadcasts both ways: an extent of 1 in the shape keeps the input's.
void expand(ImportContext& c) {
  const Sym x = c.input(0);
  Dims to = c.constant_integers(1);
  const Dims from = x.dims();
  if (to.size() < from.size()) to.insert(to.begin(), from.size() - to.size(), 1);
  for (std::size_t i = 0; i < from.size(); ++i) {
    std::int64_t& extent = to[to.size() - from.size() + i];
    if (extent == 1) extent = from[i];
  }
  c.output(broadcast_to(x, to));
}

/// Repeats along every axis: each axis becomes (repeat, extent), broadcast, joined again.
void tile(ImportContext& c) {
  const Sym x = c.input(0);
  const std::vector<std::int64_t> repeats = c.constant_integers(1);
  const Dims dims = x.dims();
  if (repeats.size() != dims.size())
    throw ModelError("{} repeats are given for rank {}", repeats.size(), dims.size());
  Dims split_dims;
  Dims repeated;
  Dims joined;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    split_dims.insert(split_dims.end(), {1, dims[i]});
    repeated.insert(repeated.end(), {repeats[i], dims[i]});
    joined.push_back(checked_product({repeats[i], dims[i]}, "tile"));
  }
  c.output(reshape(broadcast_to(reshape(x, split_dims), repeated), joined));
}

void concat_op(ImportContext& c) {
  const std::vector<Sym> parts = c.inputs();
  if (parts.empty()) throw ModelError("needs at least one input");
  c.output(concat(parts, normalize_axis(c.integer("axis", 1), parts[0].rank())));
}

std::vector<std::int64_t> split_sizes(ImportContext& c, std::int64_t extent) {
  if (const auto given = c.integers_from(1, "split")) return *given;
  const std::int64_t count =
      c.opset() >= 18 && c.has_attribute("num_outputs") ? c.integer("num_outputs", 1) : c.output_count();
  if (count < 1 || count > 65'536) throw ModelError("{} parts are asked for", count);
  const std::int64_t size = ceil_div(extent, count);
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(count), size);
  const auto lack_at = [count](const Dims& all) { return Dims{ceil_div(all[0], count) * count - all[0]}; };
  sizes.back() =
      size - decide_by_sizes(fmt::format("what the last of {} parts lacks", count), {extent}, lack_at)[0];
  return sizes;
}

void split_op(ImportContext& c) {
  const Sym x = c.input(0);
  const int axis = normalize_axis(c.integer("axis", 0), x.rank());
  const std::vector<Sym> parts = split(x, axis, split_sizes(c, x.dim(axis)));
  if (c.output_count() > static_cast<int>(parts.size()))
    throw ModelError("{} outputs are named for {} parts", c.output_count(), parts.size());
  for (int i = 0; i < c.output_count(); ++i) c.output(i, parts[static_cast<std::size_t>(i)]);
}

struct SliceBounds {
  std::vector<std::int64_t> starts, ends, axes, steps;
};

SliceBounds slice_bounds(ImportContext& c, int rank) {
  SliceBounds bounds;
  if (c.opset() < 10) {
    bounds = {c.integers("starts"), c.integers("ends"), c.integers("axes"), {}};
    if (!c.has_attribute("axes")) bounds.axes = all_axes(static_cast<int>(bounds.starts.size()));
  } else {
    bounds = {c.constant_integers(1), c.constant_integers(2), {}, {}};
    bounds.axes = c.has_input(3) ? c.constant_integers(3) : all_axes(static_cast<int>(bounds.starts.size()));
    if (c.has_input(4)) bounds.steps = c.constant_integers(4);
  }
  if (bounds.steps.empty()) bounds.steps.assign(bounds.starts.size(), 1);
  const std::size_t count = bounds.starts.size();
  if (bounds.ends.size() != count || bounds.axes.size() != count || bounds.steps.size() != count)
    throw ModelError("starts, ends, axes and steps have different lengths");
  (void)normalize_axes(bounds.axes, rank);  // refuses duplicates
  return bounds;
}

/// One axis of a slice: from where, how many, how far apart.
struct SliceAxis {
  std::int64_t start = 0, size = 0, step = 1;
};

/// numpy slicing: bounds beyond the extent are cut to it.
SliceAxis cut_slice(std::int64_t extent, std::int64_t start, std::int64_t end, std::int64_t step) {
  const auto cut = [&](std::int64_t bound) {
    if (bound < 0) bound = bound < -extent ? -1 - extent : bound;
    if (bound < 0) bound += extent;
    return step > 0 ? std::clamp<std::int64_t>(bound, 0, extent)
                    : std::clamp<std::int64_t>(bound, -1, extent - 1);
  };
  const std::int64_t first = cut(start);
  const std::int64_t distance = step > 0 ? cut(end) - first : first - cut(end);
  const std::int64_t size = distance <= 0 ? 0 : ceil_div(distance, step > 0 ? step : -step);
  return {size == 0 ? 0 : first, size, size <= 1 ? 1 : step};
}

/// What makes a slice's numbers other expressions of the sizes: where its bounds lie, and what its steps leave over.
void note_slice(std::int64_t extent, std::int64_t start, std::int64_t end, std::int64_t step) {
  const auto cases_at = [step](const Dims& numbers) {
    const auto side = [&](std::int64_t bound) -> std::int64_t {
      if (bound < 0) return bound < -numbers[0] ? -2 : -1;
      return bound > numbers[0] ? 1 : 0;
    };
    const SliceAxis all = cut_slice(numbers[0], numbers[1], numbers[2], step > 0 ? 1 : -1);
    return Dims{side(numbers[1]), side(numbers[2]), std::min<std::int64_t>(all.size, 2), all.size % step};
  };
  (void)decide_by_sizes(fmt::format("slice by {}", step), {extent, start, end}, cases_at);
}

/// Does the model compute bounds of the slice? What it computes of constants follows from sizes.
bool has_computed_bounds(ImportContext& c) {
  const auto is_computed = [&](int i) { return c.has_input(i) && readings_of(c.constant(i)) != nullptr; };
  return sizes_are_open() && c.opset() >= 10 && (is_computed(1) || is_computed(2));
}

/// Of a constant: a table that may be another one at other sizes.
Sym as_cut(ImportContext& c, Sym x, Sym made, const Attributes& slice) {
  if (!x.is_constant() || !made.is_constant() || !is_float(x.dtype())) return made;
  if (readings_of(x.constant()) != nullptr || !has_computed_bounds(c)) return made;
  return c.builder().constant(as_cut_table(made.constant(), x.constant(), slice));
}

void slice_op(ImportContext& c) {
  const Sym x = c.input(0);
  const SliceBounds bounds = slice_bounds(c, x.rank());
  const Dims dims = x.dims();
  Dims starts(dims.size(), 0);
  Dims sizes = dims;
  Dims steps(dims.size(), 1);
  for (std::size_t i = 0; i < bounds.starts.size(); ++i) {
    const auto axis = static_cast<std::size_t>(normalize_axis(bounds.axes[i], x.rank()));
    const std::int64_t step =
        std::clamp<std::int64_t>(bounds.steps[i], -(std::int64_t{1} << 40), std::int64_t{1} << 40);
    if (step == 0) throw ModelError("a step is 0");
    note_slice(dims[axis], bounds.starts[i], bounds.ends[i], step);
    const SliceAxis cut = cut_slice(dims[axis], bounds.starts[i], bounds.ends[i], step);
    starts[axis] = cut.start;
    sizes[axis] = cut.size;
    steps[axis] = cut.step;
  }
  if (sizes == dims && steps == Dims(dims.size(), 1)) return c.output(x);
  const Attributes slice{{"starts", starts}, {"sizes", sizes}, {"steps", steps}};
  c.output(as_cut(c, x, c.builder().add(Op::slice, {x}, slice), slice));
}

constexpr std::int64_t max_pad = std::int64_t{1} << 40;

struct PadAmounts {
  Dims low, high;
};

PadAmounts pad_amounts(ImportContext& c, int rank) {
  const auto given = c.integers_from(1, c.opset() < 2 ? "paddings" : "pads");
  if (!given) throw ModelError("pads are required");
  std::vector<std::int64_t> axes = c.has_input(3) ? c.constant_integers(3) : all_axes(rank);
  if (given->size() != 2 * axes.size())
    throw ModelError("{} pads are given for {} axes", given->size(), axes.size());
  PadAmounts amounts{Dims(static_cast<std::size_t>(rank), 0), Dims(static_cast<std::size_t>(rank), 0)};
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<std::size_t>(normalize_axis(axes[i], rank));
    for (const std::int64_t amount : {(*given)[i], (*given)[i + axes.size()]})
      if (amount < -max_pad || amount > max_pad) throw ModelError("a pad of {} is out of range", amount);
    amounts.low[axis] = (*given)[i];
    amounts.high[axis] = (*given)[i + axes.size()];
  }
  return amounts;
}

/// Negative amounts cut; they are taken off first.
Sym cut_negative(Sym x, PadAmounts& amounts) {
  for (int axis = 0; axis < x.rank(); ++axis) {
    std::int64_t& low = amounts.low[static_cast<std::size_t>(axis)];
    std::int64_t& high = amounts.high[static_cast<std::size_t>(axis)];
    const std::int64_t extent = x.dim(axis);
    if (low < -extent || high < -extent ||
        std::min<std::int64_t>(low, 0) + std::min<std::int64_t>(high, 0) < -extent) {
      throw ModelError("pads of {} and {} cut more than extent {}", low, high, extent);
    }
    x = slice(x, axis, std::max<std::int64_t>(-low, 0), extent - std::max<std::int64_t>(-high, 0));
    low = std::max<std::int64_t>(low, 0);
    high = std::max<std::int64_t>(high, 0);
  }
  return x;
}

void pad_op(ImportContext& c) {
  Sym x = c.input(0);
  PadAmounts amounts = pad_amounts(c, x.rank());
  x = cut_negative(x, amounts);
  const std::string mode = c.string("mode", "constant");
  Attributes attributes{{"low", amounts.low}, {"high", amounts.high}, {"mode", mode}};
  std::vector<Sym> inputs{x};
  if (mode == "constant") {
    if (const Sym value = c.optional(2))
      inputs.push_back(reshape(value, {}));
    else if (c.real("value", 0) != 0)
      inputs.push_back(c.builder().scalar(x.dtype(), c.real("value", 0)));
  }
  c.output(c.builder().add(Op::pad, inputs, attributes));
}

/// Both operators see channels and spatial blocks as axes of their own and permute those.
void depth_to_space(ImportContext& c) {
  const Sym x = c.input(0);
  if (x.rank() != 4) throw ModelError("the input has rank {}, expected 4", x.rank());
  const std::int64_t block = c.required_integer("blocksize");
  const Dims d = x.dims();
  if (block < 1 || d[1] % block != 0 || d[1] / block % block != 0)
    throw ModelError("blocksize {} does not fit {} channels", block, d[1]);
  const std::int64_t depth = d[1] / block / block;
  const bool is_crd = c.string("mode", "DCR") == "CRD";
  const Sym split = is_crd
                        ? transpose(reshape(x, {d[0], depth, block, block, d[2], d[3]}), {0, 1, 4, 2, 5, 3})
                        : transpose(reshape(x, {d[0], block, block, depth, d[2], d[3]}), {0, 3, 4, 1, 5, 2});
  c.output(reshape(split, {d[0], depth, d[2] * block, d[3] * block}));
}

void space_to_depth(ImportContext& c) {
  const Sym x = c.input(0);
  if (x.rank() != 4) throw ModelError("the input has rank {}, expected 4", x.rank());
  const std::int64_t block = c.required_integer("blocksize");
  const Dims d = x.dims();
  if (block < 1 || d[2] % block != 0 || d[3] % block != 0)
    throw ModelError("blocksize {} does not divide {}x{}", block, d[2], d[3]);
  const bool is_crd = c.string("mode", "DCR") == "CRD";
  const Sym split = reshape(x, {d[0], d[1], d[2] / block, block, d[3] / block, block});
  c.output(reshape(is_crd ? transpose(split, {0, 1, 3, 5, 2, 4}) : transpose(split, {0, 3, 5, 1, 2, 4}),
                   {d[0], d[1] * block * block, d[2] / block, d[3] / block}));
}

/// Cuts or pads with zeros around the centre to the wanted extents.
void center_crop_pad(ImportContext& c) {
  Sym x = c.input(0);
  const std::vector<std::int64_t> wanted = c.constant_integers(1);
  const std::vector<std::int64_t> axes = c.has_attribute("axes") ? c.integers("axes") : all_axes(x.rank());
  if (axes.size() != wanted.size())
    throw ModelError("{} extents are given for {} axes", wanted.size(), axes.size());
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const int axis = normalize_axis(axes[i], x.rank());
    const std::int64_t extent = x.dim(axis);
    if (wanted[i] < 0 || wanted[i] > max_pad) throw ModelError("extent {} is out of range", wanted[i]);
    if (wanted[i] <= extent) {
      const std::int64_t start = (extent - wanted[i]) / 2;
      x = slice(x, axis, start, start + wanted[i]);
      continue;
    }
    Dims low(static_cast<std::size_t>(x.rank()), 0);
    Dims high = low;
    low[static_cast<std::size_t>(axis)] = (wanted[i] - extent) / 2;
    high[static_cast<std::size_t>(axis)] = wanted[i] - extent - (wanted[i] - extent) / 2;
    x = pad(x, low, high);
  }
  c.output(x);
}

/// Of the first versions of ONNX: an image without its borders, or a part of it from their corner on.
void crop(ImportContext& c) {
  const Sym x = c.input(0);
  const std::vector<std::int64_t> border = c.integers("border");
  const std::vector<std::int64_t> size = c.integers("scale");
  if (x.rank() != 4 || border.size() != 4 || (!size.empty() && size.size() != 2))
    throw ModelError("attribute 'border' or 'scale' does not fit an image");
  const std::int64_t bottom = size.empty() ? x.dim(2) - border[3] : border[1] + size[0];
  const std::int64_t right = size.empty() ? x.dim(3) - border[2] : border[0] + size[1];
  if (border[0] < 0 || border[1] < 0 || bottom < border[1] || right < border[0] || bottom > x.dim(2) ||
      right > x.dim(3))
    throw ModelError("the part to keep is outside of the image");
  c.output(slice(slice(x, 2, border[1], bottom), 3, border[0], right));
}

const OnnxOp shape_rows[] = {
    {"CenterCropPad", 18, center_crop_pad},
    {"Concat", 4, concat_op},
    {"Crop", 1, crop},
    {"DepthToSpace", 1, depth_to_space},
    {"Expand", 8, expand},
    {"Flatten", 1, flatten},
    {"Pad", 1, pad_op},
    {"Reshape", 5, reshape_op},
    {"Slice", 1, slice_op},
    {"SpaceToDepth", 1, space_to_depth},
    {"Split", 2, split_op},
    {"Squeeze", 1, squeeze_op},
    {"Tile", 6, tile},
    {"Transpose", 1, transpose_op},
    {"Unsqueeze", 1, unsqueeze_op},
};

}  // namespace

std::span<const OnnxOp> onnx_shape_ops() {
  return shape_rows;
}

}  // namespace sylvite
