// Growths that fold: reductions, normalisations, pooling.

#include "tests/fuzz/growth_values.h"

namespace sylvite::fuzz {
namespace {

void reduce(ModelGrower& g) {
  const Known* x = g.any([](const Tensor& t) { return is_number(t) && has_axes(t); });
  if (x == nullptr) return;
  const Known a = *x;
  const bool is_plain = is_real(a.sample);
  const auto op =
      is_plain ? g.one_of<const char*>({"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd",
                                        "ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSumExp",
                                        "ReduceSum", "ReduceMean", "ReduceLogSum"})
      : dtype_size(a.sample.dtype()) >= 4 ? g.one_of<const char*>({"ReduceSum", "ReduceMax", "ReduceMin"})
                                          : g.one_of<const char*>({"ReduceMax", "ReduceMin"});
  onnx::NodeProto node = make_node(op, {a.name});
  if (g.chance(0.9)) node.add_input(g.integers(some_axes(g, a.sample)));
  set_attribute(node, "keepdims", g.between(0, 1));
  (void)g.emit(node);
}

void softmax(ModelGrower& g) {
  const Known* x = g.any([](const Tensor& t) { return is_real(t) && has_axes(t); });
  if (x == nullptr) return;
  onnx::NodeProto node =
      make_node(g.one_of<const char*>({"Softmax", "Softmax", "LogSoftmax", "Hardmax"}), {x->name});
  set_attribute(node, "axis", axis_of(g, x->sample));
  (void)g.emit(node);
}

void layer_norm(ModelGrower& g) {
  const Known* x = g.any([](const Tensor& t) { return is_real(t) && has_axes(t) && t.size() > 0; });
  if (x == nullptr) return;
  const Known a = *x;
  const std::int64_t axis = g.chance(0.7) ? -1 : axis_of(g, a.sample);
  const auto at = static_cast<std::ptrdiff_t>(axis < 0 ? axis + rank_of(a.sample) : axis);
  const Dims dims(a.sample.dims().begin() + at, a.sample.dims().end());
  const bool is_rms = g.chance(0.4);
  onnx::NodeProto node = make_node(is_rms ? "RMSNormalization" : "LayerNormalization",
                                   {a.name, g.operand(g.random_tensor(a.sample.dtype(), dims))});
  if (!is_rms && g.chance(0.7)) node.add_input(g.operand(g.random_tensor(a.sample.dtype(), dims)));
  set_attribute(node, "axis", axis);
  set_attribute(node, "epsilon", g.one_of({1e-5, 1e-3, 0.1}));
  (void)g.emit(node);
}

/// Layer normalisation written out, as older exporters do.
void written_out_layer_norm(ModelGrower& g) {
  const Known* x = g.any([](const Tensor& t) { return is_real(t) && has_axes(t) && t.size() > 0; });
  if (x == nullptr) return;
  const Known a = *x;
  const std::string axes = g.integers({-1});
  const auto mean = g.emit(make_node("ReduceMean", {a.name, axes}));
  if (mean.empty()) return;
  const auto centred = g.emit(make_node("Sub", {a.name, mean[0]}));
  if (centred.empty()) return;
  const auto square = g.emit(make_node("Pow", {centred[0], g.weight(scalar_like(a.sample, 2))}));
  if (square.empty()) return;
  const auto variance = g.emit(make_node("ReduceMean", {square[0], axes}));
  if (variance.empty()) return;
  const auto shifted = g.emit(make_node("Add", {variance[0], g.weight(scalar_like(a.sample, 1e-3))}));
  if (shifted.empty()) return;
  const auto deviation = g.emit(make_node("Sqrt", {shifted[0]}));
  if (deviation.empty()) return;
  (void)g.emit(make_node("Div", {centred[0], deviation[0]}));
}

Tensor positive(ModelGrower& g, DType dtype, const Dims& dims) {
  Tensor tensor = g.random_tensor(dtype, dims);
  for (std::int64_t i = 0; i < tensor.size(); ++i) tensor.set_double(i, std::abs(tensor.as_double(i)) + 0.25);
  return tensor;
}

void channel_norm(ModelGrower& g) {
  const Known* x = g.any([](const Tensor& t) { return is_image(t); });
  if (x == nullptr) return;
  const Known a = *x;
  const std::int64_t channels = a.sample.dims()[1];
  const auto vector = [&] { return g.weight(a.sample.dtype(), {channels}); };
  switch (g.pick(5)) {
    case 0:
    case 1:
      (void)g.emit(make_node("BatchNormalization", {a.name, vector(), vector(), vector(),
                                                    g.weight(positive(g, a.sample.dtype(), {channels}))}));
      return;
    case 2: {
      onnx::NodeProto node = make_node("InstanceNormalization", {a.name, vector(), vector()});
      set_attribute(node, "epsilon", 1e-2);
      (void)g.emit(node);
      return;
    }
    case 3: {
      onnx::NodeProto node = make_node("GroupNormalization", {a.name, vector(), vector()});
      set_attribute(node, "num_groups", channels % 4 == 0 ? std::int64_t{4} : std::int64_t{1});
      set_attribute(node, "epsilon", 1e-2);
      (void)g.emit(node);
      return;
    }
    default: {
      onnx::NodeProto node = make_node("LRN", {a.name});
      set_attribute(node, "size", std::int64_t{3});
      set_attribute(node, "alpha", 0.1);
      (void)g.emit(node);
      return;
    }
  }
}

void lp_norm(ModelGrower& g) {
  const Known* x = g.any([](const Tensor& t) { return is_real(t) && has_axes(t) && t.size() > 0; });
  if (x == nullptr) return;
  onnx::NodeProto node = make_node("LpNormalization", {x->name});
  set_attribute(node, "axis", axis_of(g, x->sample));
  set_attribute(node, "p", g.between(1, 2));
  (void)g.emit(node);
}

void pool(ModelGrower& g) {
  const Known* x = g.any(is_image);
  if (x == nullptr) return;
  const Known a = *x;
  const auto op = g.one_of<const char*>({"MaxPool", "MaxPool", "AveragePool", "AveragePool", "LpPool"});
  onnx::NodeProto node = make_node(op, {a.name});
  const auto spatial = a.sample.dims().size() - 2;
  std::vector<std::int64_t> kernel;
  std::vector<std::int64_t> strides;
  std::vector<std::int64_t> pads(2 * spatial, 0);
  for (std::size_t i = 0; i < spatial; ++i) {
    kernel.push_back(g.between(1, std::min<std::int64_t>(a.sample.dims()[i + 2], 4)));
    strides.push_back(g.between(1, 3));
    for (const std::size_t at : {i, i + spatial})
      if (g.chance(0.4)) pads[at] = g.between(0, kernel.back() - 1);
  }
  set_attribute(node, "kernel_shape", kernel);
  if (g.chance(0.8)) set_attribute(node, "strides", strides);
  if (g.chance(0.15)) {
    set_attribute(node, "auto_pad",
                  std::string(g.one_of<const char*>({"SAME_UPPER", "SAME_LOWER", "VALID"})));
  } else {
    set_attribute(node, "pads", pads);
    if (g.chance(0.25)) set_attribute(node, "ceil_mode", std::int64_t{1});
  }
  if (std::string(op) == "AveragePool") set_attribute(node, "count_include_pad", g.between(0, 1));
  (void)g.emit(node);
}

void global_pool(ModelGrower& g) {
  const Known* x = g.any(is_image);
  if (x == nullptr) return;
  (void)g.emit(
      make_node(g.one_of<const char*>({"GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"}), {x->name}));
}

constexpr Growth fold_table[] = {
    {"reduce", 8, reduce},
    {"softmax", 4, softmax},
    {"layer_norm", 4, layer_norm},
    {"written_out_layer_norm", 2, written_out_layer_norm},
    {"channel_norm", 4, channel_norm},
    {"lp_norm", 1, lp_norm},
    {"pool", 4, pool},
    {"global_pool", 1, global_pool},
};

}  // namespace

std::span<const Growth> fold_growths() {
  return fold_table;
}

}  // namespace sylvite::fuzz
