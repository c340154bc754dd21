// Growths that move elements: views, joins, borders.

#include <numeric>

#include "tests/fuzz/growth_values.h"

namespace sylvite::fuzz {
namespace {

/// The same elements, regrouped: neighbours merged, extents split, ones added.
Dims regrouped(ModelGrower& g, Dims dims) {
  for (int step = 0; step < 3; ++step) {
    if (dims.size() > 1 && g.chance(0.5)) {
      const std::size_t at = g.pick(dims.size() - 1);
      dims[at] *= dims[at + 1];
      dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(at) + 1);
    } else if (!dims.empty() && dims.size() < 6) {
      const std::size_t at = g.pick(dims.size());
      const std::int64_t factor = g.one_of<std::int64_t>({1, 2, 3, 4, 8});
      if (dims[at] % factor != 0) continue;
      dims[at] /= factor;
      dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(at + g.pick(2)), factor);
    }
  }
  return dims;
}

void reshape(ModelGrower& g) {
  const Known* x = g.any(is_anything);
  if (x == nullptr) return;
  const Known a = *x;
  Dims to = regrouped(g, a.sample.dims());
  const bool has_zero = std::ranges::find(to, 0) != to.end();
  if (!to.empty() && !has_zero && g.chance(0.3)) to[g.pick(to.size())] = -1;
  onnx::NodeProto node = make_node("Reshape", {a.name, g.integers(to)});
  if (has_zero) set_attribute(node, "allowzero", std::int64_t{1});
  (void)g.emit(node);
}

void transpose(ModelGrower& g) {
  const Known* x = g.any([](const Tensor& t) { return rank_of(t) >= 2; });
  if (x == nullptr) return;
  std::vector<std::int64_t> perm(x->sample.dims().size());
  std::iota(perm.begin(), perm.end(), 0);
  for (std::size_t i = perm.size() - 1; i > 0; --i) std::swap(perm[i], perm[g.pick(i + 1)]);
  onnx::NodeProto node = make_node("Transpose", {x->name});
  if (g.chance(0.85)) set_attribute(node, "perm", perm);
  (void)g.emit(node);
}

void squeeze_or_unsqueeze(ModelGrower& g) {
  const Known* x = g.any([](const Tensor& t) { return rank_of(t) <= 5; });
  if (x == nullptr) return;
  const Known a = *x;
  std::vector<std::int64_t> ones;
  for (std::size_t i = 0; i < a.sample.dims().size(); ++i)
    if (a.sample.dims()[i] == 1 && g.chance(0.7)) ones.push_back(static_cast<std::int64_t>(i));
  if (!ones.empty() && g.chance(0.6)) {
    (void)g.emit(make_node("Squeeze", {a.name, g.integers(ones)}));
  } else {
    (void)g.emit(
        make_node("Unsqueeze", {a.name, g.integers({g.between(-rank_of(a.sample) - 1, rank_of(a.sample))})}));
  }
}

void flatten(ModelGrower& g) {
  const Known* x = g.any(is_anything);
  if (x == nullptr) return;
  onnx::NodeProto node = make_node("Flatten", {x->name});
  set_attribute(node, "axis", g.between(0, rank_of(x->sample)));
  (void)g.emit(node);
}

void expand(ModelGrower& g) {
  const Known* x = g.any([](const Tensor& t) { return t.size() <= 500 && rank_of(t) <= 4; });
  if (x == nullptr) return;
  const Known a = *x;
  Dims to = a.sample.dims();
  for (std::int64_t& extent : to)
    if (extent == 1 && g.chance(0.7)) extent = g.between(1, 6);
  if (g.chance(0.4)) to.insert(to.begin(), g.between(1, 5));
  (void)g.emit(make_node("Expand", {a.name, g.integers(to)}));
}

void slice(ModelGrower& g) {
  const Known* x = g.any(has_axes);
  if (x == nullptr) return;
  const Known a = *x;
  std::vector<std::int64_t> starts;
  std::vector<std::int64_t> ends;
  std::vector<std::int64_t> steps;
  const std::vector<std::int64_t> axes = some_axes(g, a.sample);
  for (const std::int64_t axis : axes) {
    const std::int64_t extent = extent_at(a.sample, axis);
    const std::int64_t low = g.between(0, extent / 2);
    const std::int64_t high = g.between(std::min(extent, low + 1), extent);
    const std::int64_t step = g.one_of<std::int64_t>({1, 1, 1, 2, 3});
    if (g.chance(0.25)) {
      starts.push_back(high - 1);
      ends.push_back(low == 0 ? -extent - 1 : low - 1);
      steps.push_back(-step);
    } else {
      starts.push_back(low);
      ends.push_back(g.chance(0.2) ? high - extent : g.chance(0.1) ? extent + 1000 : high);
      if (ends.back() == 0 && high == extent) ends.back() = extent;
      steps.push_back(step);
    }
  }
  (void)g.emit(make_node(
      "Slice", {a.name, g.integers(starts), g.integers(ends), g.integers(axes), g.integers(steps)}));
}

void pad(ModelGrower& g) {
  const Known* x = g.any([](const Tensor& t) { return is_number(t) && rank_of(t) > 0 && t.size() > 0; });
  if (x == nullptr) return;
  const Known a = *x;
  const auto rank = static_cast<std::size_t>(rank_of(a.sample));
  const auto mode = g.one_of<const char*>({"constant", "constant", "reflect", "edge"});
  std::vector<std::int64_t> pads(2 * rank, 0);
  for (std::size_t i = 0; i < 2 * rank; ++i) {
    const std::int64_t extent = a.sample.dims()[i % rank];
    const std::int64_t most = std::string(mode) == "reflect" ? std::min<std::int64_t>(extent - 1, 3) : 3;
    if (g.chance(0.5)) pads[i] = g.between(0, most);
    if (extent > 4 && std::string(mode) == "constant" && g.chance(0.08)) pads[i] = -1;
  }
  onnx::NodeProto node = make_node("Pad", {a.name, g.integers(pads)});
  set_attribute(node, "mode", std::string(mode));
  if (std::string(mode) == "constant" && g.chance(0.5)) {
    Tensor value(a.sample.dtype(), {});
    value.set_int64(0, 2);
    node.add_input(g.weight(value));
  }
  (void)g.emit(node);
}

void concat(ModelGrower& g) {
  const Known* x = g.any(has_axes);
  if (x == nullptr) return;
  const Known a = *x;
  const std::int64_t axis = axis_of(g, a.sample);
  const auto at = static_cast<std::size_t>(axis < 0 ? axis + rank_of(a.sample) : axis);
  onnx::NodeProto node = make_node("Concat", {a.name});
  set_attribute(node, "axis", axis);
  const std::size_t more = g.pick(4);
  for (std::size_t i = 0; i < more; ++i) {
    const Known* other = g.any([&](const Tensor& t) {
      if (t.dtype() != a.sample.dtype() || t.dims().size() != a.sample.dims().size()) return false;
      for (std::size_t d = 0; d < t.dims().size(); ++d)
        if (d != at && t.dims()[d] != a.sample.dims()[d]) return false;
      return true;
    });
    Dims dims = a.sample.dims();
    dims[at] = g.between(1, 5);
    node.add_input(other != nullptr && g.chance(0.8) ? other->name : g.weight(a.sample.dtype(), dims));
  }
  (void)g.emit(node);
}

void split(ModelGrower& g) {
  const Known* x = g.any(has_axes);
  if (x == nullptr) return;
  const Known a = *x;
  const std::int64_t axis = axis_of(g, a.sample);
  const std::int64_t extent = extent_at(a.sample, axis);
  if (extent < 2) return;
  onnx::NodeProto node = make_node("Split", {a.name});
  set_attribute(node, "axis", axis);
  if (g.chance(0.5)) {
    const std::int64_t parts = g.between(2, std::min<std::int64_t>(extent, 4));
    set_attribute(node, "num_outputs", parts);
    (void)g.emit(node, static_cast<int>(parts));
  } else {
    const std::int64_t first = g.between(0, extent);
    node.add_input(g.integers({first, extent - first}));
    (void)g.emit(node, 2);
  }
}

void tile(ModelGrower& g) {
  const Known* x = g.any([](const Tensor& t) { return rank_of(t) > 0 && t.size() <= 800; });
  if (x == nullptr) return;
  const Known a = *x;
  std::vector<std::int64_t> repeats;
  repeats.reserve(static_cast<std::size_t>(rank_of(a.sample)));
  for (int i = 0; i < rank_of(a.sample); ++i) repeats.push_back(g.one_of<std::int64_t>({1, 1, 2, 3}));
  (void)g.emit(make_node("Tile", {a.name, g.integers(repeats)}));
}

void depth_and_space(ModelGrower& g) {
  const Known* x = g.any([](const Tensor& t) { return rank_of(t) == 4 && is_real(t); });
  if (x == nullptr) return;
  const Dims& dims = x->sample.dims();
  const bool to_space = dims[1] % 4 == 0 && g.chance(0.5);
  if (!to_space && (dims[2] % 2 != 0 || dims[3] % 2 != 0)) return;
  onnx::NodeProto node = make_node(to_space ? "DepthToSpace" : "SpaceToDepth", {x->name});
  set_attribute(node, "blocksize", std::int64_t{2});
  if (to_space) set_attribute(node, "mode", std::string(g.chance(0.5) ? "CRD" : "DCR"));
  (void)g.emit(node);
}

void triangle(ModelGrower& g) {
  const Known* x = g.any([](const Tensor& t) { return rank_of(t) >= 2 && is_number(t); });
  if (x == nullptr) return;
  const Known a = *x;
  onnx::NodeProto node = make_node("Trilu", {a.name});
  if (g.chance(0.5)) node.add_input(g.weight(Tensor::scalar_i64(g.between(-3, 3))));
  set_attribute(node, "upper", std::int64_t{g.chance(0.5) ? 1 : 0});
  (void)g.emit(node);
}

void resize(ModelGrower& g) {
  const Known* x = g.any([](const Tensor& t) { return rank_of(t) == 4 && is_real(t) && t.size() > 0; });
  if (x == nullptr) return;
  const Known a = *x;
  const Dims& dims = a.sample.dims();
  const Dims sizes = {dims[0], dims[1], g.between(1, 2 * dims[2]), g.between(1, 2 * dims[3])};
  onnx::NodeProto node = make_node("Resize", {a.name, "", "", g.integers(sizes)});
  const auto mode = g.one_of<const char*>({"nearest", "linear", "cubic"});
  set_attribute(node, "mode", std::string(mode));
  set_attribute(node, "coordinate_transformation_mode",
                std::string(g.one_of<const char*>(
                    {"half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"})));
  if (std::string(mode) == "nearest") {
    set_attribute(
        node, "nearest_mode",
        std::string(g.one_of<const char*>({"floor", "ceil", "round_prefer_floor", "round_prefer_ceil"})));
  }
  (void)g.emit(node);
}

constexpr Growth shape_table[] = {
    {"reshape", 6, reshape},
    {"transpose", 6, transpose},
    {"squeeze_or_unsqueeze", 3, squeeze_or_unsqueeze},
    {"flatten", 1, flatten},
    {"expand", 3, expand},
    {"slice", 6, slice},
    {"pad", 4, pad},
    {"concat", 6, concat},
    {"split", 4, split},
    {"tile", 2, tile},
    {"depth_and_space", 2, depth_and_space},
    {"triangle", 1, triangle},
    {"resize", 2, resize},
};

}  // namespace

std::span<const Growth> shape_growths() {
  return shape_table;
}

}  // namespace sylvite::fuzz
