#include "frontend/build/resize.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>
#include <vector>

#include "base/error.h"
#include "frontend/values/even_places.h"
#include "frontend/values/size_facts.h"
#include "frontend/values/size_table.h"

namespace sylvite {
namespace {

/// ONNX's reference and ONNX Runtime divide in f32 by a scale that is one: at a tie the nearest element depends on it.
double divided(const ResizeRule& rule, double place, double scale) {
  const auto narrow = static_cast<float>(scale);
  const bool is_f32 = rule.mode == "nearest" && static_cast<double>(narrow) == scale;
  return is_f32 ? static_cast<float>(place) / narrow : place / scale;
}

/// The coordinate in the input that output element `i` stands at.
double source_position(const ResizeRule& rule, const ResizeAxis& axis, double i) {
  const auto from = static_cast<double>(axis.from);
  const double to = axis.scale * from;
  if (rule.transform == "asymmetric") return divided(rule, i, axis.scale);
  if (rule.transform == "align_corners") return to == 1 ? 0 : i * (from - 1) / (to - 1);
  if (rule.transform == "pytorch_half_pixel" && axis.to == 1) return 0;
  if (rule.transform == "tf_crop_and_resize") {
    const double width = (axis.roi_end - axis.roi_start) * (from - 1);
    return axis.roi_start * (from - 1) + (to == 1 ? width / 2 : i * width / (to - 1));
  }
  const double from_edge = divided(rule, i + 0.5, axis.scale);
  if (rule.transform == "tf_half_pixel_for_nn") return from_edge;
  const double half_pixel = from_edge - 0.5;
  if (rule.transform == "half_pixel_symmetric")
    return from / 2 * (1 - static_cast<double>(axis.to) / to) + half_pixel;
  if (rule.transform == "half_pixel" || rule.transform == "pytorch_half_pixel") return half_pixel;
  throw ModelError("coordinate_transformation_mode '{}' is unknown", rule.transform);
}

double cubic_kernel(double d, double a) {
  d = std::abs(d);
  if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

std::int64_t nearest_index(const ResizeRule& rule, double position) {
  const double below = std::floor(position);
  const double t = position - below;
  const auto base = static_cast<std::int64_t>(below);
  if (t == 0 || rule.nearest_mode == "floor") return base;
  if (rule.nearest_mode == "ceil") return base + 1;
  if (rule.nearest_mode == "round_prefer_floor") return t <= 0.5 ? base : base + 1;
  if (rule.nearest_mode == "round_prefer_ceil") return t < 0.5 ? base : base + 1;
  throw ModelError("nearest_mode '{}' is unknown", rule.nearest_mode);
}

/// An input that an output element takes a share of.
struct Tap {
  std::int64_t input = 0;
  double weight = 0;
};

/// What one output element is the sum of, without what counts nothing; elements beyond the ends count as the ends.
std::vector<Tap> taps_at(const ResizeRule& rule, const ResizeAxis& axis, double position) {
  const auto last = axis.from - 1;
  const double stretch = rule.is_antialias ? std::min(axis.scale, 1.0) : 1.0;
  const double reach = (rule.mode == "linear" ? 1 : 2) / stretch;
  const auto first = static_cast<std::int64_t>(std::floor(position - reach)) + 1;
  const auto end = static_cast<std::int64_t>(std::ceil(position + reach));
  std::vector<Tap> taps;  // in the order of their inputs
  double total = 0;
  for (std::int64_t i = first; i < std::max(end, first + 1); ++i) {
    const double d = (static_cast<double>(i) - position) * stretch;
    const double weight =
        rule.mode == "linear" ? std::max(1 - std::abs(d), 0.0) : cubic_kernel(d, rule.cubic_a);
    if (rule.excludes_outside && (i < 0 || i > last)) continue;
    const std::int64_t input = std::clamp<std::int64_t>(i, 0, last);
    if (taps.empty() || taps.back().input != input) taps.push_back({input, 0});
    taps.back().weight += weight;
    total += weight;
  }
  for (Tap& tap : taps) tap.weight /= total;
  std::erase_if(taps, [](const Tap& tap) { return tap.weight == 0; });
  return taps;
}

/// Does every element stay what and where it is?
bool is_unchanged(const ResizeRule& rule, const ResizeAxis& axis) {
  const bool has_roi = rule.transform == "tf_crop_and_resize" && (axis.roi_start != 0 || axis.roi_end != 1);
  return axis.from == axis.to && axis.scale == 1 && !has_roi;
}

double checked_position(const ResizeRule& rule, const ResizeAxis& axis, std::int64_t i) {
  const double position = source_position(rule, axis, static_cast<double>(i));
  if (!(std::abs(position) <= 1e15))
    throw ModelError("element {} of an axis stands at {} of the input", i, position);
  return position;
}

std::vector<std::vector<Tap>> all_taps(const ResizeRule& rule, const ResizeAxis& axis) {
  std::vector<std::vector<Tap>> all;
  all.reserve(static_cast<std::size_t>(axis.to));
  for (std::int64_t i = 0; i < axis.to; ++i)
    all.push_back(taps_at(rule, axis, checked_position(rule, axis, i)));
  return all;
}

Tensor nearest_inputs(const ResizeRule& rule, const ResizeAxis& axis) {
  std::vector<std::int64_t> inputs;
  inputs.reserve(static_cast<std::size_t>(axis.to));
  for (std::int64_t i = 0; i < axis.to; ++i)
    inputs.push_back(
        std::clamp<std::int64_t>(nearest_index(rule, checked_position(rule, axis, i)), 0, axis.from - 1));
  return Tensor::vector_i64(inputs);
}

/// Number `tap` of `count` of each output element: the input, or its weight. Elements that have fewer repeat their first
/// input with weight 0, which reads nothing that they do not read anyway.
struct TapTable {
  std::size_t tap = 0, count = 1;
  bool is_weight = false;
  DType dtype = DType::f32;  ///< of weights
};

Tensor tap_table(const ResizeRule& rule, const ResizeAxis& axis, const TapTable& table) {
  Tensor made(table.is_weight ? table.dtype : DType::i64, {axis.to});
  std::int64_t at = 0;
  for (const std::vector<Tap>& taps : all_taps(rule, axis)) {
    if (taps.size() > table.count) throw UnsupportedError("a resized element has {} inputs", taps.size());
    const Tap tap = table.tap < taps.size() ? taps[table.tap] : Tap{taps.empty() ? 0 : taps[0].input, 0};
    if (table.is_weight)
      made.set_double(at++, tap.weight);
    else
      made.set_int64(at++, tap.input);
  }
  return made;
}

using MakeTable = std::function<Tensor(const ResizeRule&, const ResizeAxis&)>;

std::int64_t scaled(std::int64_t extent, double scale) {
  return static_cast<std::int64_t>(scaled_extent(extent, scale));
}

/// What is no work is none at other sizes either, and an infinity times a weight of zero is NaN.
Tensor changed(const ResizeRule& rule, const ResizeAxis& axis, const MakeTable& make) {
  if (is_unchanged(rule, axis)) throw UnsupportedError("an axis keeps its extent at these sizes");
  return make(rule, axis);
}

/// How a constant follows from the extents of the axis: with this scale, or with the one that follows from them. Where the model
/// has the scale, it follows from the extent before alone.
std::vector<TableReading> table_readings(const std::string& name, const ResizeRule& rule,
                                         const ResizeAxis& axis, const MakeTable& make) {
  const std::string words = fmt::format("resize {} {} {} {} {:a} {} {} roi {:a} {:a}", name, rule.mode,
                                        rule.transform, rule.nearest_mode, rule.cubic_a, rule.is_antialias,
                                        rule.excludes_outside, axis.roi_start, axis.roi_end);
  std::vector<TableReading> readings;
  using Scale = std::function<double(double from, double to)>;
  if (axis.has_own_scale && axis.to == scaled(axis.from, axis.scale))
    readings.push_back({fmt::format("{} own scale {:a}", words, axis.scale),
                        {axis.from},
                        [rule, axis, make](const Dims& numbers) {
                          ResizeAxis other = axis;
                          other.from = numbers.at(0);
                          other.to = scaled(other.from, axis.scale);
                          return changed(rule, other, make);
                        }});
  const auto add = [&](const std::string& of_scale, const Scale& scale) {
    if (scale(static_cast<double>(axis.from), static_cast<double>(axis.to)) != axis.scale) return;
    const auto at = [rule, axis, make, scale](const Dims& numbers) {
      ResizeAxis other = axis;
      other.from = numbers.at(0);
      other.to = numbers.at(1);
      other.scale = scale(static_cast<double>(other.from), static_cast<double>(other.to));
      return changed(rule, other, make);
    };
    readings.push_back({words + of_scale, {axis.from, axis.to}, at});
  };
  add(fmt::format(" scale {:a}", axis.scale), [scale = axis.scale](double, double) { return scale; });
  add(" ratio", [](double from, double to) { return to / from; });
  add(" f32 ratio", [](double from, double to) { return static_cast<float>(to) / static_cast<float>(from); });
  return readings;
}

/// At other sizes the places may be slices where here they are none.
void note_steps(const std::vector<TableReading>& readings, const ResizeAxis& axis) {
  const bool is_by_ratio = !axis.has_own_scale && readings.size() > 1;
  const TableReading& followed = readings[is_by_ratio ? 1 : 0];
  const auto step_at = [make = followed.make](const Dims& numbers) {
    constexpr std::int64_t no_places = -1;
    if (std::ranges::min(numbers) < 1) return Dims{no_places};
    try {
      return Dims{step_between(make(numbers).to_int64s())};
    } catch (const Error&) {
      return Dims{no_places};
    }
  };
  (void)decide_by_sizes("steps of " + followed.rule, followed.numbers, step_at);
}

Sym nearest(Sym x, int axis, const ResizeRule& rule, const ResizeAxis& size) {
  std::vector<TableReading> readings = table_readings("nearest", rule, size, nearest_inputs);
  note_steps(readings, size);
  return gather(x, x.builder().constant(make_size_table(std::move(readings))), axis);
}

/// Sums of neighbours, so that a NaN or an infinity stays where ONNX has it: a product with a matrix would spread it over
/// the whole axis.
Sym sum_of_taps(Sym x, int axis, const ResizeRule& rule, const ResizeAxis& size, std::size_t count) {
  GraphBuilder& b = x.builder();
  Dims dims(static_cast<std::size_t>(x.rank()), 1);
  dims[static_cast<std::size_t>(axis)] = size.to;
  const auto table = [&](std::size_t tap, bool is_weight) {
    const TapTable wanted{tap, count, is_weight, x.dtype()};
    const std::string name =
        fmt::format("{} of {} {}", tap, count, is_weight ? dtype_name(wanted.dtype) : "inputs");
    const auto make = [wanted](const ResizeRule& of, const ResizeAxis& at) {
      return tap_table(of, at, wanted);
    };
    return b.constant(make_size_table(table_readings(name, rule, size, make)));
  };
  Sym sum;
  for (std::size_t tap = 0; tap < count; ++tap) {
    const Sym part = gather(x, table(tap, false), axis) * reshape(table(tap, true), dims);
    sum = tap == 0 ? part : sum + part;
  }
  return sum;
}

/// For the many neighbours of an antialiasing filter on a short axis.
Sym product_with_matrix(Sym x, int axis, const std::vector<std::vector<Tap>>& taps, const ResizeAxis& size) {
  std::vector<double> matrix(static_cast<std::size_t>(size.to * size.from), 0);
  for (std::size_t i = 0; i < taps.size(); ++i)
    for (const Tap& tap : taps[i])
      matrix[i * static_cast<std::size_t>(size.from) + static_cast<std::size_t>(tap.input)] = tap.weight;
  Dims dims = x.dims();
  const std::int64_t outer = checked_product(Dims(dims.begin(), dims.begin() + axis), "resize");
  const std::int64_t inner = checked_product(Dims(dims.begin() + axis + 1, dims.end()), "resize");
  const Sym weights = x.builder().reals(x.dtype(), {size.to, size.from}, matrix);
  const Sym flat = reshape(x, {outer, size.from, inner});
  dims[static_cast<std::size_t>(axis)] = size.to;
  return reshape(inner == 1 ? matmul(reshape(flat, {outer, size.from}), swap_axes(weights, 0, 1))
                            : matmul(weights, flat),
                 dims);
}

/// A pass over the results for each of their inputs, rather than a product over the whole axis, of which ten elements take about
/// as long.
bool takes_sums(std::size_t count, const ResizeAxis& size) {
  constexpr std::size_t without_antialias = 4, most = 64, elements_of_pass = 10;
  return count <= without_antialias ||
         (count <= most && count * elements_of_pass <= static_cast<std::size_t>(size.from));
}

/// Sums are made in f32 or wider.
Sym interpolate_axis(Sym x, int axis, const ResizeRule& rule, const ResizeAxis& size) {
  const DType dtype = x.dtype() == DType::f64 ? DType::f64 : DType::f32;
  const std::vector<std::vector<Tap>> taps = all_taps(rule, size);
  std::size_t count = 1;
  for (const std::vector<Tap>& each : taps) count = std::max(count, each.size());
  const Sym wide = cast(x, dtype);
  const Sym y = takes_sums(count, size) ? sum_of_taps(wide, axis, rule, size, count)
                                        : product_with_matrix(wide, axis, taps, size);
  return cast(is_float(x.dtype()) ? y : apply(Op::round, y), x.dtype());
}

/// Where elements of a crop stand outside the input, the value that is said for them.
Sym with_outside(Sym y, int axis, const ResizeRule& rule, const ResizeAxis& size) {
  std::vector<double> outside;
  bool is_extrapolated = false;
  for (std::int64_t i = 0; i < size.to; ++i) {
    const double position = checked_position(rule, size, i);
    const bool is_outside = position < 0 || position > static_cast<double>(size.from - 1);
    is_extrapolated = is_extrapolated || is_outside;
    outside.push_back(is_outside ? 1 : 0);
  }
  if (!is_extrapolated) return y;
  Dims dims(static_cast<std::size_t>(y.rank()), 1);
  dims[static_cast<std::size_t>(axis)] = size.to;
  return where(cast(y.builder().reals(DType::f32, dims, outside), DType::boolean), rule.extrapolation, y);
}

}  // namespace

double scaled_extent(std::int64_t extent, double scale) {
  const double product = static_cast<double>(extent) * scale;
  const bool is_f32 = static_cast<double>(static_cast<float>(scale)) == scale;
  return std::floor(is_f32 ? static_cast<double>(static_cast<float>(product)) : product);
}

Sym resize_axis(Sym x, int axis, const ResizeRule& rule, const ResizeAxis& size) {
  if (size.from == 0 && size.to == 0) return x;  // as many boxes as a detector finds
  if (size.from < 1 || size.to < 0)
    throw UnsupportedError("an axis is resized from {} to {} elements", size.from, size.to);
  // Few inputs make a small table, but each output's neighbours take time to find.
  x.builder().reserve_table({2, rule.mode == "nearest" ? 2 : std::max<std::int64_t>(size.from, 4), size.to});
  if (is_unchanged(rule, size)) return x;
  const Sym y = rule.mode == "nearest" ? nearest(x, axis, rule, size) : interpolate_axis(x, axis, rule, size);
  return rule.transform == "tf_crop_and_resize" ? with_outside(y, axis, rule, size) : y;
}

}  // namespace sylvite
