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

/// How many sizes the box has, or very many.
std::int64_t count_in(const ModelSizes& model, const SizeBox& box) {
  std::int64_t all = 1;
  for (std::size_t axis = 0; axis < box.low.size(); ++axis)
    all = std::min(all * count_along(model, box, axis), std::int64_t{1} << 30);
  return all;
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

std::optional<SymbolValues> find_sizes(const ModelSizes& model, const SizeBox& box,
                                       const std::vector<std::string>& symbols,
                                       const std::function<bool(const SymbolValues&)>& is_wanted) {
  std::vector<std::size_t> axes;
  SymbolValues sizes;
  for (std::size_t i = 0; i < model.symbols.size(); ++i) {
    const std::string& name = model.symbols[i].name;
    if (std::ranges::find(symbols, name) == symbols.end()) continue;
    axes.push_back(i);
    sizes[name] = box.low[i];
  }
  while (!is_wanted(sizes)) {
    std::size_t next = 0;
    for (; next < axes.size(); ++next) {  // as a number that is counted up
      const SizeSymbol& symbol = model.symbols[axes[next]];
      std::int64_t& size = sizes[symbol.name];
      if (size < box.high[axes[next]]) {
        size += symbol.range.multiple;
        break;
      }
      size = box.low[axes[next]];
    }
    if (next == axes.size()) return std::nullopt;
  }
  return sizes;
}

std::vector<SymbolValues> some_sizes(const ModelSizes& model, const SizeBox& box) {
  constexpr std::int64_t few = 500;
  const std::int64_t all = count_in(model, box);
  const std::int64_t step = (all / few) | 1;  // odd: sizes that are multiples of two are among them
  std::vector<SymbolValues> sizes;
  for (std::int64_t number = 0; number < all; number += step) {
    SymbolValues& here = sizes.emplace_back();
    std::int64_t rest = number;
    for (std::size_t axis = 0; axis < box.low.size(); ++axis) {
      const std::int64_t count = count_along(model, box, axis);
      const SizeSymbol& symbol = model.symbols[axis];
      here[symbol.name] = box.low[axis] + rest % count * symbol.range.multiple;
      rest /= count;
    }
  }
  return sizes;
}

SizeGrid::SizeGrid(const ModelSizes& model, const SizeBox& box) {
  constexpr std::int64_t few = 8;
  const bool takes_all = count_in(model, box) <= few;
  std::vector<std::vector<std::int64_t>> nodes_of;
  for (std::size_t axis = 0; axis < box.low.size(); ++axis) {
    std::vector<std::int64_t>& nodes = nodes_of.emplace_back();
    const std::int64_t multiple = model.symbols[axis].range.multiple;
    if (takes_all || count_along(model, box, axis) <= 3) {
      for (std::int64_t size = box.low[axis]; size <= box.high[axis]; size += multiple) nodes.push_back(size);
    } else {
      // Between at another place for each symbol, so that no two have the same sizes there.
      const double part = 1.0 / (2.0 + static_cast<double>(axis) / 2);
      const std::int64_t between = size_between(model, box, axis, part);
      nodes = {box.low[axis], std::max(between, box.low[axis] + multiple), box.high[axis]};
      is_whole_ = false;
    }
  }
  points_ = {{}};
  for (const std::vector<std::int64_t>& nodes : nodes_of) {
    std::vector<Sizes> more;
    for (const Sizes& point : points_)
      for (const std::int64_t node : nodes) {
        more.push_back(point);
        more.back().push_back(node);
      }
    points_ = std::move(more);
  }
  grid_ = points_.size();
  for (const double part : {0.27, 0.86}) {
    Sizes point;
    for (std::size_t axis = 0; axis < nodes_of.size(); ++axis)
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

}  // namespace sylvite
