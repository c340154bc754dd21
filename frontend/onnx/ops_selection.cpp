// Operators that select by value, so that the extent of their result depends on data.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/error.h"
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

/// Corners and areas of many boxes, each number of all of them together: a box is compared with several at once.
class BoxList {
 public:
  void clear() { count_ = 0; }
  void push_back(const Box& box) {
    if (count_ == y1_.size())
      for (std::vector<double>* numbers : {&y1_, &x1_, &y2_, &x2_, &area_}) numbers->resize(count_ + block);
    y1_[count_] = box.y1;
    x1_[count_] = box.x1;
    y2_[count_] = box.y2;
    x2_[count_] = box.x2;
    area_[count_++] = box.area;
  }
  /// Does the box share more than `threshold` of what it and one of these cover together?
  [[nodiscard]] bool has_overlap(const Box& box, double threshold) const {
    static const bool is_wide = __builtin_cpu_supports("avx512f") != 0;
    return is_wide ? has_overlap_avx512(box, threshold) : has_overlap_of(box, threshold);
  }

 private:
  static constexpr std::size_t block = 16;

  [[nodiscard, gnu::always_inline]] inline bool has_overlap_of(const Box& box, double threshold) const {
    for (std::size_t begin = 0; begin < count_; begin += block) {
      const std::size_t end = std::min(begin + block, count_);
      int found = 0;
      for (std::size_t i = begin; i < end; ++i) {
        const double height = std::min(box.y2, y2_[i]) - std::max(box.y1, y1_[i]);
        const double width = std::min(box.x2, x2_[i]) - std::max(box.x1, x1_[i]);
        const double shared = height * width;
        const double joined = box.area + area_[i] - shared;
        found |= static_cast<int>(height > 0) & static_cast<int>(width > 0) & static_cast<int>(joined > 0) &
                 static_cast<int>(shared / joined > threshold);
      }
      if (found != 0) return true;
    }
    return false;
  }
  [[nodiscard, gnu::target("avx512f")]] bool has_overlap_avx512(const Box& box, double threshold) const {
    return has_overlap_of(box, threshold);
  }

  std::vector<double> y1_, x1_, y2_, x2_, area_;
  std::size_t count_ = 0;
};

/// What is kept of the boxes of an image, at most `most` of a class.
struct BoxRule {
  std::int64_t most;
  double overlap, least_score;
  bool is_center;
};

/// A box that is left, as a number: larger of better scores and, where these are equal, of lower boxes. To compare numbers takes no
/// branch.
std::uint64_t rank_of(float score, std::size_t box) {
  const auto bits = std::bit_cast<std::uint32_t>(score + 0.0F);  // there is one zero
  const std::uint32_t ordered = bits ^ (bits >> 31 != 0 ? ~std::uint32_t{0} : std::uint32_t{1} << 31);
  return std::uint64_t{ordered} << 32 | ~static_cast<std::uint32_t>(box);
}
std::size_t box_of_rank(std::uint64_t rank) {
  return ~static_cast<std::uint32_t>(rank);
}

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
      const auto candidate = box_of_rank(*--end);
      builder_.charge(0, 16 * static_cast<std::int64_t>(kept_.size()));
      const Box box = box_of(boxes.subspan(candidate * 4).first<4>(), rule_.is_center);
      if (kept_boxes_.has_overlap(box, rule_.overlap)) continue;
      kept_.push_back(static_cast<std::int64_t>(candidate));
      kept_boxes_.push_back(box);
    }
    return kept_;
  }

 private:
  std::size_t find_left(std::span<const float> scores) {
    std::size_t found = 0;
    for (std::size_t i = 0; i < scores.size(); ++i) {
      left_[found] = rank_of(scores[i], i);
      found += static_cast<double>(scores[i]) > rule_.least_score ? 1 : 0;
    }
    return found;
  }

  GraphBuilder& builder_;
  const BoxRule& rule_;
  std::vector<std::uint64_t> left_;
  std::vector<std::int64_t> kept_;
  BoxList kept_boxes_;
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

/// Their numbers in order, of equal ones the first one first.
template <typename C>
std::vector<std::int64_t> order_of(const Slices<C>& slices) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(slices.count()));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::int64_t a, std::int64_t b) { return slices.compare(a, b) < 0; });
  return order;
}

/// Groups of equal slices in order, each with those of its first one.
template <typename C>
UniqueSlices group_slices(const Slices<C>& slices) {
  const std::vector<std::int64_t> order = order_of(slices);
  UniqueSlices result;
  result.inverse.resize(order.size());
  for (const std::int64_t slice : order) {
    if (result.first.empty() || slices.compare(result.first.back(), slice) != 0) {
      result.first.push_back(slice);
      result.counts.push_back(0);
    }
    ++result.counts.back();
    result.inverse[static_cast<std::size_t>(slice)] = static_cast<std::int64_t>(result.first.size()) - 1;
  }
  return result;
}

/// The same bits for equal elements. All NaNs are equal here, and both zeros.
template <typename C>
std::uint64_t bits_of(C element) {
  if constexpr (std::is_floating_point_v<C>) {
    if (std::isnan(element)) element = std::numeric_limits<C>::quiet_NaN();
    return std::bit_cast<std::uint64_t>(element == 0 ? C{0} : element);
  } else {
    return static_cast<std::uint64_t>(element);
  }
}

/// Groups of equal elements in order of appearance, by a table that is at most half full.
template <typename C>
UniqueSlices group_elements(const Slices<C>& elements) {
  const auto count = static_cast<std::size_t>(elements.count());
  const std::size_t places = std::bit_ceil(std::max<std::size_t>(2 * count, 2));
  struct Place {
    std::uint64_t bits;
    std::int64_t group = -1;
  };
  std::vector<Place> table(places);
  UniqueSlices result;
  result.inverse.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t bits = bits_of(elements.element(static_cast<std::int64_t>(i)));
    std::size_t at = (bits * 0x9e3779b97f4a7c15U) >> (64 - std::bit_width(places - 1));
    while (table[at].group >= 0 && table[at].bits != bits) at = (at + 1) & (places - 1);
    if (table[at].group < 0) {
      table[at] = {bits, static_cast<std::int64_t>(result.first.size())};
      result.first.push_back(static_cast<std::int64_t>(i));
      result.counts.push_back(0);
    }
    ++result.counts[static_cast<std::size_t>(table[at].group)];
    result.inverse[i] = table[at].group;
  }
  return result;
}

/// The same groups, numbered by `order`.
UniqueSlices renumbered(const UniqueSlices& groups, const std::vector<std::int64_t>& order) {
  UniqueSlices result;
  std::vector<std::int64_t> numbers(order.size());
  for (const std::int64_t group : order) {
    numbers[static_cast<std::size_t>(group)] = static_cast<std::int64_t>(result.first.size());
    result.first.push_back(groups.first[static_cast<std::size_t>(group)]);
    result.counts.push_back(groups.counts[static_cast<std::size_t>(group)]);
  }
  result.inverse.reserve(groups.inverse.size());
  for (const std::int64_t group : groups.inverse)
    result.inverse.push_back(numbers[static_cast<std::size_t>(group)]);
  return result;
}

/// Is a in front of b? NaN is behind all else.
template <typename C>
bool is_ahead(C a, C b) {
  if constexpr (std::is_floating_point_v<C>)
    if (std::isnan(a) || std::isnan(b)) return !std::isnan(a) && std::isnan(b);
  return a < b;
}

/// Groups of equal slices, by size or in order of appearance. One element of each group is put in order, not all.
template <typename C>
UniqueSlices find_unique(const Slices<C>& slices, bool is_sorted) {
  const bool are_elements = slices.are_elements();
  const UniqueSlices groups = are_elements ? group_elements(slices) : group_slices(slices);
  if (are_elements != is_sorted) return groups;
  std::vector<std::int64_t> order(groups.first.size());
  std::iota(order.begin(), order.end(), 0);
  const auto first_of = [&](std::int64_t group) { return groups.first[static_cast<std::size_t>(group)]; };
  if (!is_sorted) {
    std::ranges::sort(order, {}, first_of);
    return renumbered(groups, order);
  }
  std::vector<std::pair<C, std::int64_t>> ranked;
  for (const std::int64_t group : order) ranked.emplace_back(slices.element(first_of(group)), group);
  std::ranges::sort(ranked, [](const auto& a, const auto& b) { return is_ahead(a.first, b.first); });
  std::ranges::transform(ranked, order.begin(), [](const auto& entry) { return entry.second; });
  return renumbered(groups, order);
}

/// Distinct slices of input 0 along the axis, or its elements without one.
struct UniqueResult {
  Sym values, first, inverse, counts;
};

UniqueResult unique_of(ImportContext& c, bool is_flat, std::int64_t given_axis, bool is_sorted) {
  Tensor x = c.constant(0);
  c.builder().reserve_table({64, x.size()});  // they are counted in a table, and put in order
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

const OnnxOp selection_rows[] = {
    {"NonMaxSuppression", 10, non_max_suppression},
    {"Unique", 11, unique},
    {"Unique", 1, unique_in_order, "com.microsoft"},
};

}  // namespace

std::span<const OnnxOp> onnx_selection_ops() {
  return selection_rows;
}

}  // namespace sylvite
