// Regions of interest: what lies in parts of images, at one size for all.

#include <array>
#include <limits>
#include <utility>
#include <vector>

#include "base/error.h"
#include "frontend/onnx/known_regions.h"
#include "frontend/onnx/ops.h"

namespace sylvite {
namespace {

/// Sampling points along one axis of every region: [regions, bins * samples].
struct SamplePoints {
  Sym low, high;              ///< i64 neighbours
  Sym low_share, high_share;  ///< their weights; both 0 outside of the image
};

SamplePoints sample_points(Sym start, Sym length, std::int64_t bins, std::int64_t samples,
                           std::int64_t extent) {
  GraphBuilder& b = start.builder();
  const DType dtype = start.dtype();
  const std::int64_t points = checked_product({bins, samples}, "sampling points");
  const Sym step = b.iota(dtype, {points}, 0) + 0.5;
  const Sym at = unsqueeze(start, {1}) + step * unsqueeze(length / static_cast<double>(points), {1});
  const double last = static_cast<double>(extent - 1);
  const Sym is_inside = apply(Op::logical_and, apply(Op::greater_equal, at, -1.0),
                              apply(Op::less_equal, at, static_cast<double>(extent)));
  const Sym clamped = apply(Op::minimum, apply(Op::maximum, at, 0.0), last);
  const Sym low = apply(Op::floor, clamped);
  const Sym share = clamped - low;
  const Sym zero = b.scalar(dtype, 0);
  return {cast(low, DType::i64), cast(apply(Op::minimum, low + 1.0, last), DType::i64),
          where(is_inside, 1.0 - share, zero), where(is_inside, share, zero)};
}

/// Of images with channels last: [regions, rows, columns, channels] at rows and columns of each region.
Sym pixels_of(Sym image, Sym batch, Sym row, Sym column) {
  const Dims grid{batch.dim(0), row.dim(1), column.dim(1), 1};
  const Sym index =
      concat({broadcast_to(reshape(cast(batch, DType::i64), {batch.dim(0), 1, 1, 1}), grid),
              broadcast_to(unsqueeze(row, {2, 3}), grid), broadcast_to(unsqueeze(column, {1, 3}), grid)},
             3);
  return image.builder().add(Op::gather_nd, {image, index});
}

/// [regions, points] -> [regions, bins, samples of a bin]
Sym by_bins(Sym points, std::int64_t bins) {
  return reshape(points, {points.dim(0), bins, points.dim(1) / bins});
}

/// Of [regions, rows, samples] and [regions, columns, samples] by an operation: [regions, rows, columns, samples of both].
Sym crossed(Op op, Sym rows, Sym columns) {
  const Sym all = apply(op, unsqueeze(rows, {2, 4}), unsqueeze(columns, {1, 3}));
  return reshape(all, {rows.dim(0), rows.dim(1), columns.dim(1), rows.dim(2) * columns.dim(2)});
}

/// Of images the pixels [regions, rows, columns, samples, channels] at rows and columns of each region's image.
Sym samples_of(Sym x, Sym batch, Sym rows, Sym columns) {
  const auto width = static_cast<double>(x.dim(3)), size = static_cast<double>(x.dim(2) * x.dim(3));
  const Sym image = unsqueeze(cast(batch, DType::i64), {1, 2}) * size;
  const Sym place = crossed(Op::add, rows * width + image, columns);
  return gather(reshape(transpose(x, {0, 2, 3, 1}), {x.dim(0) * x.dim(2) * x.dim(3), x.dim(1)}), place, 0);
}

/// Bilinear samples of the regions, folded into bins: [regions, channels, height, width]. A row of channels is read where it lies
/// for each neighbour of a sample.
Sym align_regions(Sym x, Sym rois, Sym batch, const RoiSettings& s, std::int64_t rows, std::int64_t columns) {
  const double offset = s.is_half_pixel ? 0.5 : 0;
  std::array<Sym, 4> corner;
  for (int i = 0; i < 4; ++i)
    corner[static_cast<std::size_t>(i)] = squeeze(slice(rois, 1, i, i + 1), {1}) * s.scale - offset;
  Sym width = corner[2] - corner[0];
  Sym height = corner[3] - corner[1];
  if (!s.is_half_pixel) {
    width = apply(Op::maximum, width, 1.0);
    height = apply(Op::maximum, height, 1.0);
  }
  const SamplePoints y = sample_points(corner[1], height, s.height, rows, x.dim(2));
  const SamplePoints xs = sample_points(corner[0], width, s.width, columns, x.dim(3));
  const Op fold = s.takes_largest ? Op::maximum : Op::add;
  const auto corner_values = [&](Sym row, Sym column, Sym row_share, Sym column_share) {
    const Sym share = crossed(Op::mul, by_bins(row_share, s.height), by_bins(column_share, s.width));
    return samples_of(x, batch, by_bins(row, s.height), by_bins(column, s.width)) * unsqueeze(share, {-1});
  };
  const Sym top = apply(fold, corner_values(y.low, xs.low, y.low_share, xs.low_share),
                        corner_values(y.low, xs.high, y.low_share, xs.high_share));
  const Sym bottom = apply(fold, corner_values(y.high, xs.low, y.high_share, xs.low_share),
                           corner_values(y.high, xs.high, y.high_share, xs.high_share));
  const Sym samples = apply(fold, top, bottom);
  const Sym bins =
      s.takes_largest ? reduce(Op::reduce_max, samples, {3}, false) : reduce_mean(samples, {3}, false);
  return transpose(bins, {0, 3, 1, 2});
}

/// How many samples a bin of each region takes along rows and columns.
std::vector<std::array<std::int64_t, 2>> samples_of_regions(ImportContext& c, const RoiSettings& s) {
  const std::vector<double> corners = c.constant_reals(1);
  std::vector<std::array<std::int64_t, 2>> samples;
  for (std::size_t i = 0; i < corners.size(); i += 4)
    samples.push_back({samples_of_bin(corners[i + 1], corners[i + 3], s.height, s),
                       samples_of_bin(corners[i], corners[i + 2], s.width, s)});
  return samples;
}

bool are_known(Sym x, Sym rois, Sym batch) {
  return x.is_constant() && x.size() > 0 && rois.is_constant() && batch.is_constant() &&
         x.dtype() == DType::f32 && rois.dtype() == DType::f32;
}

Sym align_known(ImportContext& c, Sym x, Sym rois, Sym batch, const RoiSettings& s) {
  std::int64_t samples = 0;
  for (const auto& [rows, columns] : samples_of_regions(c, s)) samples += rows * columns;
  const std::int64_t bins = checked_product({s.height, s.width, x.dim(1)}, "bins");
  c.builder().charge(checked_product({bins, rois.dim(0), 4}, "bins"),
                     4 * checked_product({samples, bins}, "samples"));
  return c.builder().constant(align_known_regions(x.constant(), rois.constant(), batch.constant(), s));
}

/// sampling_ratio 0 takes as many samples as a bin has pixels, so the regions must be known.
Sym align_adaptively(ImportContext& c, Sym x, Sym rois, Sym batch, const RoiSettings& s) {
  const std::vector<std::array<std::int64_t, 2>> samples = samples_of_regions(c, s);
  if (are_known(x, rois, batch)) return align_known(c, x, rois, batch, s);
  std::vector<Sym> results;
  for (std::int64_t i = 0; i < rois.dim(0); ++i) {
    const auto& [rows, columns] = samples[static_cast<std::size_t>(i)];
    results.push_back(rows * columns == 0 ? c.builder().filled(x.dtype(), {1, x.dim(1), s.height, s.width}, 0)
                                          : align_regions(x, slice(rois, 0, i, i + 1),
                                                          slice(batch, 0, i, i + 1), s, rows, columns));
  }
  if (results.empty()) return c.builder().filled(x.dtype(), {0, x.dim(1), s.height, s.width}, 0);
  return concat(results, 0);
}

void roi_align(ImportContext& c) {
  const Sym x = c.input(0);
  const Sym rois = c.input(1);
  const Sym batch = c.input(2);
  if (x.rank() != 4 || rois.rank() != 2 || rois.dim(1) != 4 || batch.dims() != Dims{rois.dim(0)})
    throw ModelError("the image, regions and batch indices do not fit");
  const std::string mode =
      c.string("coordinate_transformation_mode", c.opset() >= 16 ? "half_pixel" : "output_half_pixel");
  const RoiSettings settings{c.integer("output_height", 1),    c.integer("output_width", 1),
                             c.real("spatial_scale", 1),       mode == "half_pixel",
                             c.string("mode", "avg") == "max", c.integer("sampling_ratio", 0)};
  const std::int64_t ratio = settings.ratio;
  if (settings.height < 1 || settings.width < 1 || ratio < 0 || ratio > 4096)
    throw ModelError("output_height, output_width or sampling_ratio is out of range");
  if (ratio == 0) return c.output(align_adaptively(c, x, rois, batch, settings));
  c.output(are_known(x, rois, batch) ? align_known(c, x, rois, batch, settings)
                                     : align_regions(x, rois, batch, settings, ratio, ratio));
}

/// Pixels of an axis of each region, the first and the last at its ends; its centre where one is asked for.
Sym crop_points(Sym start, Sym end, std::int64_t count, std::int64_t extent) {
  const auto last = static_cast<double>(extent - 1);
  if (count == 1) return unsqueeze((start + end) * 0.5 * last, {1});
  const Sym step = (end - start) * last / static_cast<double>(count - 1);
  return unsqueeze(start * last, {1}) +
         start.builder().iota(start.dtype(), {count}, 0) * unsqueeze(step, {1});
}

/// Regions given as shares of the image, resized to one size; what lies outside is attribute extrapolation_value.
void crop_and_resize(ImportContext& c) {
  const Sym x = c.input(0);
  const Sym rois = c.input(1);
  const std::vector<std::int64_t> size = c.constant_integers(3);
  if (x.rank() != 4 || rois.rank() != 2 || rois.dim(1) != 4 || c.input(2).dims() != Dims{rois.dim(0)})
    throw ModelError("the image, regions and batch indices do not fit");
  if (size.size() != 2 || size[0] < 1 || size[1] < 1)
    throw ModelError("crop_size must be two positive numbers");
  const std::string mode = c.string("mode", "bilinear");
  if (mode != "bilinear" && mode != "nearest")
    throw ModelError("mode is '{}', expected bilinear or nearest", mode);
  const auto corner = [&](int i) { return squeeze(slice(rois, 1, i, i + 1), {1}); };
  const Sym image = transpose(x, {0, 2, 3, 1});
  const std::array<Sym, 2> at{crop_points(corner(0), corner(2), size[0], x.dim(2)),
                              crop_points(corner(1), corner(3), size[1], x.dim(3))};
  std::array<Sym, 2> is_inside;
  std::array<Sym, 2> low;
  std::array<Sym, 2> share;
  for (std::size_t i = 0; i < 2; ++i) {
    const auto last = static_cast<double>(x.dim(2 + static_cast<int>(i)) - 1);
    is_inside[i] =
        apply(Op::logical_and, apply(Op::greater_equal, at[i], 0.0), apply(Op::less_equal, at[i], last));
    const Sym clamped = apply(Op::minimum, apply(Op::maximum, at[i], 0.0), last);
    low[i] = apply(Op::floor, mode == "nearest" ? clamped + 0.5 : clamped);
    share[i] = clamped - low[i];
  }
  const auto place = [&](std::size_t i, double step) {
    const auto last = static_cast<double>(x.dim(2 + static_cast<int>(i)) - 1);
    return cast(apply(Op::minimum, low[i] + step, last), DType::i64);
  };
  const auto row = [&](double step) {
    const Sym left = pixels_of(image, c.input(2), place(0, step), place(1, 0));
    if (mode == "nearest") return left;
    const Sym right = pixels_of(image, c.input(2), place(0, step), place(1, 1));
    return left + (right - left) * unsqueeze(share[1], {1, 3});
  };
  Sym y = row(0);
  if (mode == "bilinear") y = y + (row(1) - y) * unsqueeze(share[0], {2, 3});
  const Sym is_within =
      apply(Op::logical_and, unsqueeze(is_inside[0], {2, 3}), unsqueeze(is_inside[1], {1, 3}));
  c.output(transpose(where(is_within, y, c.real("extrapolation_value", 0)), {0, 3, 1, 2}));
}

/// Where the bins of regions begin and end along an axis of the image: [regions, bins] each.
struct BinEnds {
  Sym start, end;
  /// [regions, bins, extent]: which pixels are in which bins.
  [[nodiscard]] Sym members(std::int64_t extent) const {
    const Sym pixel = start.builder().iota(start.dtype(), {extent}, 0);
    return apply(Op::logical_and, apply(Op::greater_equal, pixel, unsqueeze(start, {-1})),
                 apply(Op::less, pixel, unsqueeze(end, {-1})));
  }
};

BinEnds whole_bins(Sym first, Sym last, std::int64_t bins, std::int64_t extent) {
  const auto nearest = [](Sym v) { return apply(Op::sign, v) * apply(Op::floor, apply(Op::abs, v) + 0.5); };
  const Sym start = unsqueeze(nearest(first), {1});
  const Sym length = apply(Op::maximum, unsqueeze(nearest(last), {1}) - start + 1.0, 1.0);
  const Sym size = length / static_cast<double>(bins);
  const Sym bin = start.builder().iota(start.dtype(), {bins}, 0);
  const auto within = [&](Sym v) {
    return apply(Op::minimum, apply(Op::maximum, v + start, 0.0), static_cast<double>(extent));
  };
  return {within(apply(Op::floor, bin * size)), within(apply(Op::ceil, (bin + 1.0) * size))};
}

/// Of images [images, lines, pixels, channels] the largest of 1, 2, 4, ... lines from each one on: [steps * images * lines,
/// pixels, channels]. Behind the last line it counts again.
Sym largest_of_lines(Sym images) {
  std::vector<Sym> steps{images};
  const std::int64_t lines = images.dim(1);
  for (std::int64_t count = 1; 2 * count <= lines; count *= 2) {
    const Sym one = steps.back();
    const Sym last = slice(one, 1, lines - 1, lines);
    const Sym next = concat(
        {slice(one, 1, count, lines), broadcast_to(last, {one.dim(0), count, one.dim(2), one.dim(3)})}, 1);
    steps.push_back(apply(Op::maximum, one, next));
  }
  const std::int64_t all =
      checked_product({static_cast<std::int64_t>(steps.size()), images.dim(0), lines}, "lines of images");
  return reshape(concat(steps, 0), {all, images.dim(2), images.dim(3)});
}

/// The largest of the lines of each bin, wherever they lie in a bin: [regions, bins, pixels, channels]. Two runs of lines, each
/// the largest power of two that the bin holds, cover it.
Sym largest_in_bins(Sym images, Sym image_of_region, const BinEnds& bins) {
  const std::int64_t lines = images.dim(1);
  const Sym length = bins.end - bins.start;
  Sym step = length * 0.0, count = step + 1.0;
  for (std::int64_t least = 2; least <= lines; least *= 2) {
    const Sym holds = apply(Op::greater_equal, length, static_cast<double>(least));
    step = where(holds, step + 1.0, step);
    count = where(holds, static_cast<double>(least), count);
  }
  const auto number = [](Sym v) { return cast(v, DType::i64); };
  const auto line = [&](Sym first) {
    const Sym within = apply(Op::minimum, apply(Op::maximum, first, 0.0), static_cast<double>(lines - 1));
    return (number(step) * static_cast<double>(images.dim(0)) + unsqueeze(image_of_region, {1})) *
               static_cast<double>(lines) +
           number(within);
  };
  const Sym largest = largest_of_lines(images);
  return apply(Op::maximum, gather(largest, line(bins.start), 0), gather(largest, line(bins.end - count), 0));
}

/// The largest pixel of each bin of regions [regions, (image, left, top, right, bottom)]; 0 where a bin is empty.
void max_roi_pool(ImportContext& c) {
  const Sym x = c.input(0);
  const Sym rois = c.input(1);
  const std::vector<std::int64_t> bins = c.integers("pooled_shape");
  const double scale = c.real("spatial_scale", 1);
  if (x.rank() != 4 || rois.rank() != 2 || rois.dim(1) != 5)
    throw ModelError("the image and regions do not fit");
  if (bins.size() != 2 || bins[0] < 1 || bins[1] < 1)
    throw ModelError("pooled_shape must be two positive numbers");
  const auto column = [&](int i) { return squeeze(slice(rois, 1, i, i + 1), {1}); };
  const BinEnds rows = whole_bins(column(2) * scale, column(4) * scale, bins[0], x.dim(2));
  const BinEnds columns = whole_bins(column(1) * scale, column(3) * scale, bins[1], x.dim(3));
  constexpr double none = -std::numeric_limits<double>::infinity();
  const Sym lines = largest_in_bins(transpose(x, {0, 2, 3, 1}), cast(column(0), DType::i64), rows);
  const Sym is_member = unsqueeze(columns.members(x.dim(3)), {1, 4});
  const Sym largest = reduce(Op::reduce_max, where(is_member, unsqueeze(lines, {2}), none), {3}, false);
  const Sym is_empty = apply(Op::logical_or, unsqueeze(apply(Op::less_equal, rows.end, rows.start), {2, 3}),
                             unsqueeze(apply(Op::less_equal, columns.end, columns.start), {1, 3}));
  c.output(transpose(where(is_empty, 0.0, largest), {0, 3, 1, 2}));
}

const OnnxOp regions_rows[] = {
    {"CropAndResize", 1, crop_and_resize, "com.microsoft"},
    {"MaxRoiPool", 1, max_roi_pool},
    {"RoiAlign", 10, roi_align},
};

}  // namespace

std::span<const OnnxOp> onnx_region_ops() {
  return regions_rows;
}

}  // namespace sylvite
