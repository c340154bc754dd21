#include "runtime/export/size_boxes.h"

#include <algorithm>
#include <cmath>

#include "base/rounding.h"
#include "lowering/plan/open_kernel.h"

namespace sylvite {
namespace {

/// The parts of a symbol's range, as (low, high).
std::vector<std::pair<std::int64_t, std::int64_t>> parts_of(const SizeRange& range) {
  std::vector<std::pair<std::int64_t, std::int64_t>> parts;
  const std::int64_t last = range.high / range.multiple * range.multiple;
  for (std::int64_t low = round_up(range.low, range.multiple); low <= last;) {
    const std::int64_t high = std::min(last, size_class(low).high / range.multiple * range.multiple);
    parts.emplace_back(low, high);
    low = high + range.multiple;
  }
  return parts;
}

/// (above - below) / (over - under) where that is an integer polynomial: every coefficient must be divisible.
std::optional<Extent> quotient(const Extent& difference, std::int64_t divisor) {
  const Extent result = floor_div(difference, divisor);
  return result * Extent(divisor) == difference ? std::optional(result) : std::nullopt;
}

}  // namespace

std::vector<SizeBox> size_boxes(const ModelSizes& model) {
  std::vector<SizeBox> boxes(1);
  for (const SizeSymbol& symbol : model.symbols) {
    std::vector<SizeBox> more;
    for (const SizeBox& box : boxes)
      for (const auto& [low, high] : parts_of(symbol.range)) {
        more.push_back(box);
        more.back().low.push_back(low);
        more.back().high.push_back(high);
      }
    boxes = std::move(more);
  }
  return boxes;
}

std::int64_t count_along(const ModelSizes& model, const SizeBox& box, std::size_t axis) {
  return (box.high[axis] - box.low[axis]) / model.symbols[axis].range.multiple + 1;
}

std::pair<SizeBox, SizeBox> divided(const ModelSizes& model, const SizeBox& box, std::size_t axis,
                                    std::int64_t last) {
  std::pair<SizeBox, SizeBox> parts{box, box};
  parts.first.high[axis] = last;
  parts.second.low[axis] = last + model.symbols[axis].range.multiple;
  return parts;
}

std::int64_t size_between(const ModelSizes& model, const SizeBox& box, std::size_t axis, double part) {
  const auto steps = static_cast<double>(count_along(model, box, axis) - 1);
  return box.low[axis] +
         static_cast<std::int64_t>(std::floor(steps * part)) * model.symbols[axis].range.multiple;
}

SizeGrid::SizeGrid(const ModelSizes& model, const SizeBox& box) {
  for (std::size_t axis = 0; axis < box.low.size(); ++axis) {
    names_.push_back(model.symbols[axis].name);
    std::vector<std::int64_t> nodes;
    const std::int64_t multiple = model.symbols[axis].range.multiple;
    if (count_along(model, box, axis) <= 3) {
      for (std::int64_t size = box.low[axis]; size <= box.high[axis]; size += multiple) nodes.push_back(size);
    } else {
      // Between at another place for each symbol, so that no two have the same sizes there.
      const double part = 1.0 / (2.0 + static_cast<double>(axis) / 2);
      const std::int64_t between = size_between(model, box, axis, part);
      nodes = {box.low[axis], std::max(between, box.low[axis] + multiple), box.high[axis]};
    }
    nodes_.push_back(nodes);
  }
  points_ = {{}};
  for (const std::vector<std::int64_t>& nodes : nodes_) {
    std::vector<Sizes> more;
    for (const Sizes& point : points_)
      for (const std::int64_t node : nodes) {
        more.push_back(point);
        more.back().push_back(node);
      }
    points_ = std::move(more);
  }
  grid_ = points_.size();
  strides_.assign(nodes_.size(), 1);
  for (std::size_t axis = nodes_.size(); axis-- > 1;)
    strides_[axis - 1] = strides_[axis] * nodes_[axis].size();
  for (const double part : {0.27, 0.86}) {
    Sizes point;
    for (std::size_t axis = 0; axis < nodes_.size(); ++axis)
      point.push_back(
          size_between(model, box, axis, std::fmod(part + 0.31 * static_cast<double>(axis), 1.0)));
    add(point);
  }
  Sizes hint = first_sizes(model);
  for (std::size_t axis = 0; axis < hint.size(); ++axis)
    hint[axis] = std::clamp(hint[axis], box.low[axis], box.high[axis]);
  add(hint);
  hint_ = static_cast<std::size_t>(std::ranges::find(points_, hint) - points_.begin());
}

void SizeGrid::add(const Sizes& sizes) {
  if (std::ranges::find(points_, sizes) == points_.end()) points_.push_back(sizes);
}

std::optional<Extent> SizeGrid::fit(const std::vector<std::int64_t>& values) const {
  if (std::ranges::all_of(values, [&](std::int64_t value) { return value == values[0]; })) return values[0];
  std::optional<Extent> found = interpolate(values, 0, 0);
  for (std::size_t i = grid_; found && i < points_.size(); ++i) {
    SymbolValues sizes;
    for (std::size_t axis = 0; axis < names_.size(); ++axis) sizes[names_[axis]] = points_[i][axis];
    if (found->at(sizes) != values[i]) found.reset();
  }
  return found;
}

/// Newton's form along one symbol, whose values are polynomials of the symbols behind it.
std::optional<Extent> SizeGrid::interpolate(const std::vector<std::int64_t>& values, std::size_t first,
                                            std::size_t axis) const {
  if (axis == nodes_.size()) return values[first];
  const std::vector<std::int64_t>& nodes = nodes_[axis];
  std::vector<Extent> differences;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    std::optional<Extent> at_node = interpolate(values, first + i * strides_[axis], axis + 1);
    if (!at_node) return std::nullopt;
    differences.push_back(std::move(*at_node));
  }
  for (std::size_t order = 1; order < nodes.size(); ++order)
    for (std::size_t i = nodes.size(); i-- > order;) {
      const std::optional<Extent> next =
          quotient(differences[i] - differences[i - 1], nodes[i] - nodes[i - order]);
      if (!next) return std::nullopt;
      differences[i] = *next;
    }
  Extent result = differences.back();
  for (std::size_t i = nodes.size() - 1; i-- > 0;)
    result = result * (Extent::symbol(names_[axis]) - Extent(nodes[i])) + differences[i];
  return result;
}

}  // namespace sylvite
