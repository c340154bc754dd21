// Operators that select by value, so that the extent of their result depends on data, and regions of
// interest.

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "base/error.h"
#include "frontend/onnx/known_regions.h"
#include "frontend/onnx/ops.h"
#include "frontend/values/storage.h"

namespace sylvite {
namespace {

/// Corners of a box, the smaller first.
struct Box {
  double y1, x1, y2, x2, area;
};

Box box_of(std::span<const float, 4> numbers, bool is_center) {
  const double a = numbers[0];
  const double b = numbers[1];
  const double c = numbers[2];
  const double d = numbers[3];
  const auto box = [](double y1, double x1, double y2, double x2) {
    return Box{y1, x1, y2, x2, (y2 - y1) * (x2 - x1)};
  };
  if (is_center) return box(b - d / 2, a - c / 2, b + d / 2, a + c / 2);  // x, y, width, height
  return box(std::min(a, c), std::min(b, d), std::max(a, c), std::max(b, d));
}

bool overlaps(const Box& a, const Box& b, double threshold) {
  const double height = std::min(a.y2, b.y2) - std::max(a.y1, b.y1);
  const double width = std::min(a.x2, b.x2) - std::max(a.x1, b.x1);
  if (height <= 0 || width <= 0) return false;
  const double shared = height * width;
  const double joined = a.area + b.area - shared;
  return joined > 0 && shared / joined > threshold;
}

/// What is kept of the boxes of an image, at most `most` of a class.
struct BoxRule {
  std::int64_t most;
  double overlap, least_score;
  bool is_center;
};

/// A box that is left, ahead of others with better scores, or with lower numbers where scores are equal.
struct Candidate {
  float score;
  std::int32_t box;
  bool operator<(const Candidate& other) const {
    return score != other.score ? score < other.score : box > other.box;
  }
};

/// The boxes kept, class by class. The memory of one serves the next.
class BestBoxes {
 public:
  BestBoxes(GraphBuilder& builder, const BoxRule& rule, std::size_t count)
      : builder_(builder), rule_(rule), left_(count) {}

  /// Of one batch and class, best first. `boxes` has four numbers for each score. Few of many are kept as a rule, so that a heap
  /// gives the next best instead of a sort.
  const std::vector<std::int64_t>& keep(std::span<const float> boxes, std::span<const float> scores) {
    kept_.clear();
    kept_boxes_.clear();
    auto end = left_.begin() + static_cast<std::ptrdiff_t>(find_left(scores));
    std::make_heap(left_.begin(), end);
    while (end != left_.begin() && static_cast<std::int64_t>(kept_.size()) < rule_.most) {
      std::pop_heap(left_.begin(), end);
      const auto candidate = static_cast<std::size_t>((--end)->box);
      builder_.charge(0, 16 * static_cast<std::int64_t>(kept_.size()));
      const Box box = box_of(boxes.subspan(candidate * 4).first<4>(), rule_.is_center);
      if (std::ranges::any_of(kept_boxes_,
                              [&](const Box& better) { return overlaps(box, better, rule_.overlap); }))
        continue;
      kept_.push_back(static_cast<std::int64_t>(candidate));
      kept_boxes_.push_back(box);
    }
    return kept_;
  }

 private:
  std::size_t find_left(std::span<const float> scores) {
    std::size_t found = 0;
    for (std::size_t i = 0; i < scores.size(); ++i) {
      left_[found] = {scores[i], static_cast<std::int32_t>(i)};
      found += static_cast<double>(scores[i]) > rule_.least_score ? 1 : 0;
    }
    return found;
  }

  GraphBuilder& builder_;
  const BoxRule& rule_;
  std::vector<Candidate> left_;
  std::vector<std::int64_t> kept_;
  std::vector<Box> kept_boxes_;
};

void non_max_suppression(ImportContext& c) {
  const Dims box_dims = c.input(0).dims();
  const Dims score_dims = c.input(1).dims();
  if (box_dims.size() != 3 || score_dims.size() != 3 || box_dims[2] != 4 || box_dims[0] != score_dims[0] ||
      box_dims[1] != score_dims[2]) {
    throw ModelError("the boxes [{}] and scores [{}] do not fit", fmt::join(box_dims, ","),
                     fmt::join(score_dims, ","));
  }
  const Tensor boxes = c.constant(0);
  const Tensor scores = c.constant(1);
  if (boxes.dtype() != DType::f32 || scores.dtype() != DType::f32)
    throw ModelError("boxes of {} and scores of {}, expected f32", dtype_name(boxes.dtype()),
                     dtype_name(scores.dtype()));
  const BoxRule rule{c.has_input(2) ? c.constant_integer(2) : 0, c.has_input(3) ? c.constant_real(3) : 0,
                     c.has_input(4) ? c.constant_real(4) : -std::numeric_limits<double>::infinity(),
                     c.integer("center_point_box", 0) != 0};
  const auto count = static_cast<std::size_t>(box_dims[1]);
  if (box_dims[1] > std::numeric_limits<std::int32_t>::max()) throw UnsupportedError("{} boxes", box_dims[1]);
  BestBoxes best(c.builder(), rule, count);
  std::vector<std::int64_t> selected;
  for (std::int64_t batch = 0; batch < box_dims[0]; ++batch) {
    const auto own_boxes =
        boxes.view<float>().subspan(static_cast<std::size_t>(batch) * count * 4, count * 4);
    for (std::int64_t kind = 0; kind < score_dims[1]; ++kind) {
      const auto row = static_cast<std::size_t>(batch * score_dims[1] + kind);
      for (const std::int64_t box : best.keep(own_boxes, scores.view<float>().subspan(row * count, count)))
        selected.insert(selected.end(), {batch, kind, box});
    }
  }
  const auto rows = static_cast<std::int64_t>(selected.size() / 3);
  c.output(c.builder().constant(Tensor::of(DType::i64, {rows, 3}, selected)));
}

/// Slices of a tensor along an axis, compared element by element in its arithmetic type.
template <typename C>
class Slices {
 public:
  Slices(const Tensor& x, int axis) : values_(decode<C>(x)) {
    for (int i = 0; i < axis; ++i) outer_ *= x.dims()[static_cast<std::size_t>(i)];
    extent_ = x.dims()[static_cast<std::size_t>(axis)];
    inner_ = outer_ * extent_ == 0 ? 0 : x.size() / (outer_ * extent_);
  }
  [[nodiscard]] std::int64_t count() const { return extent_; }
  [[nodiscard]] bool are_elements() const { return outer_ == 1 && inner_ == 1; }
  [[nodiscard]] C element(std::int64_t number) const { return values_[static_cast<std::size_t>(number)]; }
  /// Negative, zero or positive as slice a stands before, equals, or follows slice b.
  [[nodiscard]] int compare(std::int64_t a, std::int64_t b) const {
    for (std::int64_t outer = 0; outer < outer_; ++outer) {
      for (std::int64_t inner = 0; inner < inner_; ++inner) {
        const C left = at(outer, a, inner);
        const C right = at(outer, b, inner);
        if (left < right) return -1;
        if (right < left) return 1;
      }
    }
    return 0;
  }

 private:
  [[nodiscard]] C at(std::int64_t outer, std::int64_t slice, std::int64_t inner) const {
    return values_[static_cast<std::size_t>((outer * extent_ + slice) * inner_ + inner)];
  }
  std::vector<C> values_;
  std::int64_t outer_ = 1, extent_ = 1, inner_ = 1;
};

struct UniqueSlices {
  std::vector<std::int64_t> first, inverse, counts;
};

/// The numbers of slices in order, of equal ones the first one first. Those of one element are moved beside their numbers.
template <typename C>
std::vector<std::int64_t> order_of(const Slices<C>& slices) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(slices.count()));
  std::iota(order.begin(), order.end(), 0);
  if (!slices.are_elements()) {
    std::stable_sort(order.begin(), order.end(),
                     [&](std::int64_t a, std::int64_t b) { return slices.compare(a, b) < 0; });
    return order;
  }
  std::vector<std::pair<C, std::int64_t>> elements;
  elements.reserve(order.size());
  for (const std::int64_t number : order) elements.emplace_back(slices.element(number), number);
  std::stable_sort(elements.begin(), elements.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = elements[i].second;
  return order;
}

template <typename C>
UniqueSlices find_unique(const Slices<C>& slices, bool is_sorted) {
  const std::vector<std::int64_t> order = order_of(slices);
  std::vector<std::size_t> begins;  // of groups of equal slices in `order`
  for (std::size_t i = 0; i < order.size(); ++i)
    if (i == 0 || slices.compare(order[begins.back()], order[i]) != 0) begins.push_back(i);
  const auto end_of = [&](std::size_t begin) {
    const auto next = std::upper_bound(begins.begin(), begins.end(), begin);
    return next == begins.end() ? order.size() : *next;
  };
  std::vector<std::size_t> groups = begins;
  if (!is_sorted)
    std::sort(groups.begin(), groups.end(), [&](auto a, auto b) { return order[a] < order[b]; });
  UniqueSlices result;
  result.inverse.resize(order.size());
  for (const std::size_t begin : groups) {
    const auto group = static_cast<std::int64_t>(result.first.size());
    const std::size_t end = end_of(begin);
    result.first.push_back(order[begin]);
    result.counts.push_back(static_cast<std::int64_t>(end - begin));
    for (std::size_t i = begin; i < end; ++i) result.inverse[static_cast<std::size_t>(order[i])] = group;
  }
  return result;
}

/// Distinct slices of input 0 along the axis, or its elements without one.
struct UniqueResult {
  Sym values, first, inverse, counts;
};

UniqueResult unique_of(ImportContext& c, bool is_flat, std::int64_t given_axis, bool is_sorted) {
  Tensor x = c.constant(0);
  c.builder().reserve_table({16, x.size()});  // they are sorted
  if (is_flat) x = x.reshaped({x.size()});
  const int axis = normalize_axis(given_axis, static_cast<int>(x.dims().size()));
  const UniqueSlices found = with_arithmetic(
      x.dtype(), [&](auto zero) { return find_unique(Slices<decltype(zero)>(x, axis), is_sorted); });
  GraphBuilder& b = c.builder();
  return {gather(b.constant(x), b.integers(found.first), axis), b.integers(found.first),
          b.integers(found.inverse), b.integers(found.counts)};
}

void unique(ImportContext& c) {
  const UniqueResult found =
      unique_of(c, !c.has_attribute("axis"), c.integer("axis", 0), c.integer("sorted", 1) != 0);
  c.output(0, found.values);
  c.output(1, found.first);
  c.output(2, found.inverse);
  c.output(3, found.counts);
}

/// That of com.microsoft: in order of appearance, and without the places of the first ones.
void unique_in_order(ImportContext& c) {
  const UniqueResult found = unique_of(c, true, 0, false);
  c.output(0, found.values);
  c.output(1, found.inverse);
  c.output(2, found.counts);
}

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

/// Bilinear samples of the regions, folded into bins: [regions, channels, height, width].
Sym align_regions(Sym x, Sym rois, Sym batch, const RoiSettings& s, std::int64_t rows, std::int64_t columns) {
  const std::int64_t regions = rois.dim(0);
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
  const Sym image = transpose(x, {0, 2, 3, 1});
  const auto corner_values = [&](Sym row, Sym column, Sym row_share, Sym column_share) {
    return pixels_of(image, batch, row, column) * unsqueeze(row_share, {2, 3}) *
           unsqueeze(column_share, {1, 3});
  };
  const Op fold = s.takes_largest ? Op::maximum : Op::add;
  const Sym top = apply(fold, corner_values(y.low, xs.low, y.low_share, xs.low_share),
                        corner_values(y.low, xs.high, y.low_share, xs.high_share));
  const Sym bottom = apply(fold, corner_values(y.high, xs.low, y.high_share, xs.low_share),
                           corner_values(y.high, xs.high, y.high_share, xs.high_share));
  const Sym samples =
      reshape(apply(fold, top, bottom), {regions, s.height, rows, s.width, columns, x.dim(1)});
  const Sym bins =
      s.takes_largest ? reduce(Op::reduce_max, samples, {2, 4}, false) : reduce_mean(samples, {2, 4}, false);
  return transpose(bins, {0, 3, 1, 2});
}

/// sampling_ratio 0 takes as many samples as a bin has pixels, so the regions must be known.
Sym align_adaptively(ImportContext& c, Sym x, Sym rois, Sym batch, const RoiSettings& s) {
  const std::vector<double> corners = c.constant_reals(1);
  std::int64_t samples = 0;
  std::vector<std::array<std::int64_t, 2>> of_regions;
  for (std::size_t i = 0; i < corners.size(); i += 4) {
    of_regions.push_back({adaptive_samples(corners[i + 1], corners[i + 3], s.height, s),
                          adaptive_samples(corners[i], corners[i + 2], s.width, s)});
    samples += of_regions.back()[0] * of_regions.back()[1];
  }
  if (x.is_constant() && x.size() > 0 && batch.is_constant() && x.dtype() == DType::f32 &&
      rois.dtype() == DType::f32) {
    const std::int64_t bins = checked_product({s.height, s.width, x.dim(1)}, "bins");
    c.builder().charge(checked_product({bins, rois.dim(0), 4}, "bins"),
                       4 * checked_product({samples, bins}, "samples"));
    return c.builder().constant(align_known_regions(x.constant(), rois.constant(), batch.constant(), s));
  }
  std::vector<Sym> results;
  for (std::int64_t i = 0; i < rois.dim(0); ++i) {
    const auto& [rows, columns] = of_regions[static_cast<std::size_t>(i)];
    results.push_back(
        align_regions(x, slice(rois, 0, i, i + 1), slice(batch, 0, i, i + 1), s, rows, columns));
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
  const RoiSettings settings{c.integer("output_height", 1), c.integer("output_width", 1),
                             c.real("spatial_scale", 1), mode == "half_pixel",
                             c.string("mode", "avg") == "max"};
  const std::int64_t ratio = c.integer("sampling_ratio", 0);
  if (settings.height < 1 || settings.width < 1 || ratio < 0 || ratio > 4096)
    throw ModelError("output_height, output_width or sampling_ratio is out of range");
  c.output(ratio > 0 ? align_regions(x, rois, batch, settings, ratio, ratio)
                     : align_adaptively(c, x, rois, batch, settings));
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
  const Sym images = gather(x, cast(column(0), DType::i64), 0);
  const Sym wide =
      reduce(Op::reduce_max,
             where(unsqueeze(columns.members(x.dim(3)), {1, 2}), unsqueeze(images, {3}), none), {4}, false);
  const Sym largest = reduce(
      Op::reduce_max,
      where(unsqueeze(rows.members(x.dim(2)), {1, 3}), unsqueeze(transpose(wide, {0, 1, 3, 2}), {2}), none),
      {4}, false);
  const Sym is_empty = apply(Op::logical_or, unsqueeze(apply(Op::less_equal, rows.end, rows.start), {1, 3}),
                             unsqueeze(apply(Op::less_equal, columns.end, columns.start), {1, 2}));
  c.output(where(is_empty, 0.0, largest));
}

const OnnxOp rows[] = {
    {"CropAndResize", 1, crop_and_resize, "com.microsoft"},
    {"MaxRoiPool", 1, max_roi_pool},
    {"NonMaxSuppression", 10, non_max_suppression},
    {"RoiAlign", 10, roi_align},
    {"Unique", 11, unique},
    {"Unique", 1, unique_in_order, "com.microsoft"},
};

}  // namespace

std::span<const OnnxOp> onnx_selection_ops() {
  return rows;
}

}  // namespace sylvite
