// Growths by operators that few models have: samples of images, quantised products, losses, transforms.

#include "tests/fuzz/growth_values.h"

namespace sylvite::fuzz {
namespace {

bool is_flat_image(const Tensor& tensor) {
  return is_single(tensor) && rank_of(tensor) == 4 && tensor.size() > 0;
}

/// Places of an image between its borders and a little beyond, as numbers that many kernels compute.
void grid_sample(ModelGrower& g) {
  const Known* x = g.any([](const Tensor& t) { return is_image(t) && is_single(t) && rank_of(t) <= 5; });
  if (x == nullptr) return;
  const Known a = *x;
  const auto space = static_cast<std::int64_t>(a.sample.dims().size()) - 2;
  Dims dims = {a.sample.dims()[0]};
  for (std::int64_t i = 0; i < space; ++i) dims.push_back(g.between(1, 6));
  dims.push_back(space);
  const auto grid = g.emit(
      make_node("Mul", {g.operand(g.random_tensor(DType::f32, dims)), g.weight(Tensor::scalar_f32(0.6F))}));
  if (grid.empty()) return;
  onnx::NodeProto node = make_node("GridSample", {a.name, grid[0]});
  set_attribute(node, "mode",
                std::string(space == 2 ? g.one_of<const char*>({"linear", "nearest", "cubic"}) : "linear"));
  set_attribute(node, "padding_mode", std::string(g.one_of<const char*>({"zeros", "border", "reflection"})));
  set_attribute(node, "align_corners", g.between(0, 1));
  (void)g.emit(node);
}

void deform_conv(ModelGrower& g) {
  const Known* x = g.any(is_flat_image);
  if (x == nullptr) return;
  const Known a = *x;
  const Dims d = a.sample.dims();
  const Dims offsets = {d[0], 8, d[2] - 1, d[3] - 1};
  if (d[2] < 2 || d[3] < 2) return;
  onnx::NodeProto node = make_node("DeformConv", {a.name, g.weight(DType::f32, {g.between(1, 5), d[1], 2, 2}),
                                                  g.operand(g.random_tensor(DType::f32, offsets))});
  if (g.chance(0.5)) {
    node.add_input("");
    node.add_input(g.operand(g.random_tensor(DType::f32, {d[0], 4, d[2] - 1, d[3] - 1})));
  }
  (void)g.emit(node);
}

/// The largest of windows with their places, which unpooling takes back.
void places_of_pool(ModelGrower& g) {
  const Known* x = g.any(is_flat_image);
  if (x == nullptr || x->sample.dims()[2] < 2 || x->sample.dims()[3] < 2) return;
  onnx::NodeProto node = make_node("MaxPool", {x->name});
  set_attribute(node, "kernel_shape", std::vector<std::int64_t>{2, 2});
  set_attribute(node, "strides", std::vector<std::int64_t>(2, g.between(1, 2)));
  const auto pooled = g.emit(node, 2);
  if (pooled.empty() || g.chance(0.3)) return;
  const auto work = g.emit(make_node("Sigmoid", {pooled[0]}));
  if (work.empty()) return;
  onnx::NodeProto back = make_node("MaxUnpool", {work[0], pooled[1]});
  set_attribute(back, "kernel_shape", std::vector<std::int64_t>{2, 2});
  set_attribute(back, "strides", std::vector<std::int64_t>{2, 2});
  (void)g.emit(back);
}

void scaled_image(ModelGrower& g) {
  const Known* x = g.any(is_image);
  if (x == nullptr) return;
  const Known a = *x;
  std::vector<float> scales(a.sample.dims().size(), 1);
  for (std::size_t i = 2; i < scales.size(); ++i) scales[i] = g.one_of<float>({0.5F, 0.7F, 1.0F, 1.5F, 2.0F});
  onnx::NodeProto node =
      make_node("Resize", {a.name, "", g.weight(Tensor::of<float>(DType::f32, {rank_of(a.sample)}, scales))});
  const bool is_linear = g.chance(0.5);
  set_attribute(node, "mode", std::string(is_linear ? "linear" : "nearest"));
  set_attribute(node, "coordinate_transformation_mode",
                std::string(g.one_of<const char*>({"half_pixel", "asymmetric", "half_pixel_symmetric"})));
  if (is_linear && g.chance(0.3)) set_attribute(node, "antialias", std::int64_t{1});
  (void)g.emit(node);
}

Tensor scalar_of(DType dtype, std::int64_t value) {
  Tensor tensor(dtype, {});
  tensor.set_int64(0, value);
  return tensor;
}

bool is_byte(const Tensor& tensor) {
  return (tensor.dtype() == DType::u8 || tensor.dtype() == DType::i8) && tensor.size() > 0;
}

/// A quantised image and its convolution, with sums as they are or rounded again.
void quantised_conv(ModelGrower& g) {
  const Known* x =
      g.any([](const Tensor& t) { return (is_byte(t) || is_single(t)) && rank_of(t) == 4 && t.size() > 0; });
  if (x == nullptr) return;
  Known a = *x;
  const std::string scale = g.weight(Tensor::scalar_f32(0.05F));
  const std::string zero = g.weight(scalar_of(is_single(a.sample) ? DType::u8 : a.sample.dtype(), 3));
  if (is_single(a.sample)) {
    const auto q = g.emit(make_node("QuantizeLinear", {a.name, scale, zero}));
    if (q.empty()) return;
    a.name = q[0];
  }
  const std::int64_t channels = a.sample.dims()[1], filters = g.one_of<std::int64_t>({1, 4, 7, 16});
  const std::string weights = g.weight(random_integers(g, DType::i8, {filters, channels, 2, 2}, -5, 5));
  onnx::NodeProto node;
  if (g.chance(0.4)) {
    node = make_node("ConvInteger", {a.name, weights, zero});
  } else {
    const bool by_channel = g.chance(0.5);
    Tensor scales = g.random_tensor(DType::f32, by_channel ? Dims{filters} : Dims{});
    for (std::int64_t i = 0; i < scales.size(); ++i)
      scales.set_double(i, 0.01 + std::abs(scales.as_double(i)) / 64);
    const Tensor zeros(DType::i8, scales.dims());
    node = make_node("QLinearConv", {a.name, scale, zero, weights, g.weight(scales), g.weight(zeros),
                                     g.weight(Tensor::scalar_f32(0.1F)), zero});
    if (g.chance(0.5)) node.add_input(g.weight(random_integers(g, DType::i32, {filters}, -50, 50)));
  }
  set_attribute(node, "pads", std::vector<std::int64_t>{1, 0, 0, 1});
  if (g.chance(0.3)) set_attribute(node, "strides", std::vector<std::int64_t>{2, 1});
  (void)g.emit(node);
}

/// Rows that are quantised when the model runs, multiplied, and scaled back.
void dynamic_product(ModelGrower& g) {
  const Known* x = g.any([](const Tensor& t) { return is_single(t) && rank_of(t) >= 2 && t.size() > 0; });
  if (x == nullptr) return;
  const Known a = *x;
  const auto q = g.emit(make_node("DynamicQuantizeLinear", {a.name}), 3);
  if (q.empty()) return;
  const std::string weights =
      g.weight(random_integers(g, DType::i8, {a.sample.dims().back(), g.between(1, 17)}, -9, 9));
  const auto sums = g.emit(make_node("MatMulInteger", {q[0], weights, q[2]}));
  if (sums.empty()) return;
  onnx::NodeProto cast = make_node("Cast", {sums[0]});
  set_attribute(cast, "to", std::int64_t{onnx::TensorProto::FLOAT});
  const auto reals = g.emit(cast);
  if (!reals.empty()) (void)g.emit(make_node("Mul", {reals[0], q[1]}));
}

void loss(ModelGrower& g) {
  const Known* x = g.any(
      [](const Tensor& t) { return is_single(t) && rank_of(t) >= 2 && rank_of(t) <= 4 && t.size() > 0; });
  if (x == nullptr) return;
  const Known a = *x;
  Dims labels = a.sample.dims();
  const std::int64_t classes = labels[1];
  labels.erase(labels.begin() + 1);
  const bool is_cross = g.chance(0.6);
  onnx::NodeProto node =
      make_node(is_cross ? "SoftmaxCrossEntropyLoss" : "NegativeLogLikelihoodLoss",
                {a.name, g.operand(random_integers(g, DType::i64, labels, 0, classes - 1))});
  if (g.chance(0.4)) node.add_input(g.weight(DType::f32, {classes}));
  set_attribute(node, "reduction", std::string(g.one_of<const char*>({"none", "sum"})));
  if (g.chance(0.4)) set_attribute(node, "ignore_index", g.between(0, classes - 1));
  (void)g.emit(node, is_cross && g.chance(0.4) ? 2 : 1);
}

/// Patches of images put back where they came from, and added where they overlap.
void images_of_patches(ModelGrower& g) {
  const Known* x = g.any([](const Tensor& t) {
    return is_single(t) && rank_of(t) >= 2 && t.size() >= 24 && t.size() % 24 == 0;
  });
  if (x == nullptr) return;
  const Known a = *x;
  const auto patches = g.emit(make_node("Reshape", {a.name, g.integers({-1, 4, 6})}));
  if (patches.empty()) return;
  onnx::NodeProto node = make_node("Col2Im", {patches[0], g.integers({3, 4}), g.integers({2, 2})});
  (void)g.emit(node);
}

void fourier(ModelGrower& g) {
  const Known* x = g.any(
      [](const Tensor& t) { return is_single(t) && rank_of(t) >= 2 && rank_of(t) <= 4 && t.size() > 0; });
  if (x == nullptr) return;
  const Known a = *x;
  const auto with_one = g.emit(make_node("Unsqueeze", {a.name, g.integers({-1})}));
  if (with_one.empty()) return;
  onnx::NodeProto node =
      make_node("DFT", {with_one[0], "", g.weight(Tensor::scalar_i64(g.between(1, rank_of(a.sample) - 1)))});
  set_attribute(node, "onesided", g.between(0, 1));
  (void)g.emit(node);
}

/// Numbers that count, compared with what is there.
void counted(ModelGrower& g) {
  const Known* x = g.any([](const Tensor& t) { return is_single(t) && has_axes(t) && t.dims().back() > 0; });
  if (x == nullptr) return;
  const Known a = *x;
  const auto count =
      g.emit(make_node("Range", {g.weight(Tensor::scalar_f32(0)),
                                 g.weight(Tensor::scalar_f32(static_cast<float>(a.sample.dims().back()))),
                                 g.weight(Tensor::scalar_f32(1))}));
  if (count.empty()) return;
  const auto is_less = g.emit(make_node("Less", {count[0], a.name}));
  if (!is_less.empty()) (void)g.emit(make_node("Where", {is_less[0], a.name, count[0]}));
}

void shift_bits(ModelGrower& g) {
  const Known* x = g.any([](const Tensor& t) { return is_unsigned_integer(t.dtype()); });
  if (x == nullptr) return;
  const Known a = *x;
  onnx::NodeProto node = make_node(
      "BitShift",
      {a.name, g.operand(random_integers(g, a.sample.dtype(), g.broadcast_partner(a.sample.dims()), 0, 7))});
  set_attribute(node, "direction", std::string(g.one_of<const char*>({"LEFT", "RIGHT"})));
  (void)g.emit(node);
}

void mean_variance(ModelGrower& g) {
  const Known* x = g.any(is_flat_image);
  if (x == nullptr) return;
  const Known a = *x;
  onnx::NodeProto node = make_node("MeanVarianceNormalization", {a.name});
  if (g.chance(0.6)) set_attribute(node, "axes", some_axes(g, a.sample));
  (void)g.emit(node);
}

constexpr Growth seldom_table[] = {
    {"grid_sample", 1, grid_sample},
    {"deform_conv", 1, deform_conv},
    {"places_of_pool", 1, places_of_pool},
    {"scaled_image", 1, scaled_image},
    {"quantised_conv", 2, quantised_conv},
    {"dynamic_product", 1, dynamic_product},
    {"loss", 1, loss},
    {"images_of_patches", 1, images_of_patches},
    {"fourier", 1, fourier},
    {"counted", 1, counted},
    {"shift_bits", 1, shift_bits},
    {"mean_variance", 1, mean_variance},
};

}  // namespace

std::span<const Growth> seldom_growths() {
  return seldom_table;
}

}  // namespace sylvite::fuzz
