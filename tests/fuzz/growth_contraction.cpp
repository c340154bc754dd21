// Growths that contract: products, convolutions, attention, recurrence, and their quantised forms.

#include "tests/fuzz/growth_values.h"

namespace sylvite::fuzz {
namespace {

std::int64_t width(ModelGrower& g) {
  return g.one_of<std::int64_t>({1, 3, 4, 7, 8, 12, 16, 17, 32, 33, 48, 64});
}

/// Random values small enough for sums of `depth` products to stay near 1.
std::string scaled(ModelGrower& g, DType dtype, const Dims& dims, std::int64_t depth) {
  Tensor tensor = g.random_tensor(dtype, dims);
  const double scale = depth > 4 ? 1 / std::sqrt(static_cast<double>(depth)) : 1;
  const double step = std::exp2(std::round(std::log2(scale)));  // a grid stays a grid
  for (std::int64_t i = 0; i < tensor.size(); ++i) tensor.set_double(i, tensor.as_double(i) * step);
  return g.operand(tensor);
}

void matmul(ModelGrower& g) {
  const Known* x = g.any([](const Tensor& t) { return is_real(t) && has_axes(t); });
  if (x == nullptr) return;
  const Known a = *x;
  const std::int64_t depth = a.sample.dims().back();
  const Known* other = g.any([&](const Tensor& t) {
    return t.dtype() == a.sample.dtype() && rank_of(t) >= 2 && t.dims()[t.dims().size() - 2] == depth;
  });
  if (other != nullptr && g.chance(0.4)) {
    (void)g.emit(make_node("MatMul", {a.name, other->name}));
    return;
  }
  Dims dims = {depth, width(g)};
  if (rank_of(a.sample) >= 3 && g.chance(0.3))
    dims.insert(dims.begin(), g.chance(0.5) ? 1 : a.sample.dims()[a.sample.dims().size() - 3]);
  else if (g.chance(0.05))
    dims.pop_back();
  const auto product = g.emit(make_node("MatMul", {a.name, scaled(g, a.sample.dtype(), dims, depth)}));
  if (!product.empty() && dims.size() > 1 && g.chance(0.5))
    (void)g.emit(make_node("Add", {product[0], g.operand(g.random_tensor(a.sample.dtype(), {dims.back()}))}));
}

void gemm(ModelGrower& g) {
  const Known* x = g.any([](const Tensor& t) { return is_real(t) && rank_of(t) == 2; });
  if (x == nullptr) return;
  const Known a = *x;
  const bool trans_a = g.chance(0.3);
  const bool trans_b = g.chance(0.5);
  const std::int64_t depth = a.sample.dims()[trans_a ? 0 : 1];
  const std::int64_t rows = a.sample.dims()[trans_a ? 1 : 0];
  const std::int64_t columns = width(g);
  onnx::NodeProto node = make_node(
      "Gemm",
      {a.name, scaled(g, a.sample.dtype(), trans_b ? Dims{columns, depth} : Dims{depth, columns}, depth)});
  if (g.chance(0.7)) {
    node.add_input(g.operand(
        g.random_tensor(a.sample.dtype(), g.one_of<Dims>({{columns}, {rows, columns}, {rows, 1}, {1}, {}}))));
  }
  if (trans_a) set_attribute(node, "transA", std::int64_t{1});
  if (trans_b) set_attribute(node, "transB", std::int64_t{1});
  if (g.chance(0.3)) set_attribute(node, "alpha", 0.5);
  if (g.chance(0.3)) set_attribute(node, "beta", 2.0);
  (void)g.emit(node);
}

/// Strides, dilations and padding of a window over `spatial` dims.
void set_window(ModelGrower& g, onnx::NodeProto& node, const std::vector<std::int64_t>& kernel,
                bool may_dilate) {
  const std::size_t spatial = kernel.size();
  std::vector<std::int64_t> strides;
  std::vector<std::int64_t> dilations;
  std::vector<std::int64_t> pads(2 * spatial, 0);
  for (std::size_t i = 0; i < spatial; ++i) {
    strides.push_back(g.one_of<std::int64_t>({1, 1, 2, 3}));
    dilations.push_back(may_dilate ? g.one_of<std::int64_t>({1, 1, 2}) : 1);
    for (const std::size_t at : {i, i + spatial})
      pads[at] = g.between(0, kernel[i] / 2 + (g.chance(0.1) ? 1 : 0));
  }
  if (g.chance(0.5)) set_attribute(node, "strides", strides);
  if (g.chance(0.3)) set_attribute(node, "dilations", dilations);
  if (g.chance(0.15)) {
    set_attribute(node, "auto_pad",
                  std::string(g.one_of<const char*>({"SAME_UPPER", "SAME_LOWER", "VALID"})));
  } else if (g.chance(0.7)) {
    set_attribute(node, "pads", pads);
  }
}

void conv(ModelGrower& g) {
  const Known* x = g.any(is_image);
  if (x == nullptr) return;
  const Known a = *x;
  const Dims& dims = a.sample.dims();
  const std::int64_t channels = dims[1];
  std::int64_t groups = 1;
  std::int64_t out = width(g);
  if (g.chance(0.3)) {
    groups = g.chance(0.6) || channels % 2 != 0 ? channels : 2;
    out = groups * g.one_of<std::int64_t>({1, 1, 2});
  }
  Dims kernel;
  for (std::size_t i = 2; i < dims.size(); ++i)
    kernel.push_back(std::min(g.one_of<std::int64_t>({1, 3, 3, 2, 5}), std::max<std::int64_t>(dims[i], 1)));
  if (g.chance(0.35)) std::ranges::fill(kernel, 1);
  Dims filter = {out, channels / groups};
  filter.insert(filter.end(), kernel.begin(), kernel.end());
  const std::int64_t depth = checked_product(filter, "filter") / out;
  onnx::NodeProto node = make_node("Conv", {a.name, scaled(g, a.sample.dtype(), filter, depth)});
  if (g.chance(0.6)) node.add_input(g.operand(g.random_tensor(a.sample.dtype(), {out})));
  if (groups > 1) set_attribute(node, "group", groups);
  set_window(g, node, kernel, true);
  const auto y = g.emit(node);
  if (!y.empty() && g.chance(0.6))
    (void)g.emit(make_node(g.one_of<const char*>({"Relu", "Sigmoid", "HardSwish", "Neg"}), {y[0]}));
}

void conv_transpose(ModelGrower& g) {
  const Known* x = g.any([](const Tensor& t) { return is_image(t) && rank_of(t) <= 4; });
  if (x == nullptr) return;
  const Known a = *x;
  const std::int64_t channels = a.sample.dims()[1];
  const std::int64_t groups = channels % 2 == 0 && g.chance(0.3) ? 2 : 1;
  Dims kernel;
  for (std::size_t i = 2; i < a.sample.dims().size(); ++i) kernel.push_back(g.between(1, 4));
  Dims filter = {channels, g.one_of<std::int64_t>({1, 3, 8})};
  filter.insert(filter.end(), kernel.begin(), kernel.end());
  onnx::NodeProto node = make_node("ConvTranspose", {a.name, scaled(g, a.sample.dtype(), filter, channels)});
  if (groups > 1) set_attribute(node, "group", groups);
  set_attribute(node, "strides", std::vector<std::int64_t>(kernel.size(), g.between(1, 2)));
  (void)g.emit(node);
}

/// softmax(q k^T / c + mask) v, as one operator or written out.
void attention(ModelGrower& g) {
  const std::int64_t batch = g.between(1, 2);
  const std::int64_t heads = g.between(1, 3);
  const std::int64_t queries = g.one_of<std::int64_t>({1, 4, 7, 16, 20});
  const std::int64_t keys = g.chance(0.6) ? queries : g.one_of<std::int64_t>({1, 5, 16, 33});
  const std::int64_t size = g.one_of<std::int64_t>({4, 8, 16, 24});
  const auto make = [&](std::int64_t length) {
    const Dims dims = {batch, heads, length, size};
    const Known* known = g.any([&](const Tensor& t) { return is_single(t) && t.dims() == dims; });
    return known != nullptr ? known->name : g.input(g.random_tensor(DType::f32, dims));
  };
  const std::string q = make(queries);
  const std::string k = make(keys);
  const std::string v = make(keys);
  if (g.chance(0.5)) {
    onnx::NodeProto node = make_node("Attention", {q, k, v});
    if (g.chance(0.5)) {
      const Dims mask =
          g.one_of<Dims>({{queries, keys}, {batch, 1, queries, keys}, {batch, heads, queries, keys}});
      node.add_input(g.operand(g.random_tensor(DType::f32, mask)));
    } else if (g.chance(0.4)) {
      set_attribute(node, "is_causal", std::int64_t{1});
    }
    (void)g.emit(node);
    return;
  }
  onnx::NodeProto turn = make_node("Transpose", {k});
  set_attribute(turn, "perm", std::vector<std::int64_t>{0, 1, 3, 2});
  const auto turned = g.emit(turn);
  if (turned.empty()) return;
  auto scores = g.emit(make_node("MatMul", {q, turned[0]}));
  if (scores.empty()) return;
  scores = g.emit(make_node("Div", {scores[0], g.weight(Tensor::scalar_f32(2))}));
  if (scores.empty()) return;
  if (g.chance(0.5)) {
    scores =
        g.emit(make_node("Add", {scores[0], g.operand(g.random_tensor(DType::f32, {batch, 1, 1, keys}))}));
    if (scores.empty()) return;
  }
  const auto share = g.emit(make_node("Softmax", {scores[0]}));
  if (!share.empty()) (void)g.emit(make_node("MatMul", {share[0], v}));
}

void recurrent(ModelGrower& g) {
  const Known* x = g.any(
      [](const Tensor& t) { return is_single(t) && rank_of(t) == 3 && t.size() > 0 && t.dims()[0] <= 6; });
  if (x == nullptr) return;
  const Known a = *x;
  const auto op = g.one_of<const char*>({"LSTM", "GRU", "RNN"});
  const std::int64_t gates = std::string(op) == "LSTM" ? 4 : std::string(op) == "GRU" ? 3 : 1;
  const std::int64_t hidden = g.one_of<std::int64_t>({3, 8});
  const bool both = g.chance(0.3);
  const std::int64_t directions = both ? 2 : 1;
  const std::int64_t depth = a.sample.dims()[2];
  onnx::NodeProto node =
      make_node(op, {a.name, scaled(g, a.sample.dtype(), {directions, gates * hidden, depth}, depth),
                     scaled(g, a.sample.dtype(), {directions, gates * hidden, hidden}, hidden)});
  if (g.chance(0.5)) node.add_input(g.weight(a.sample.dtype(), {directions, 2 * gates * hidden}));
  set_attribute(node, "hidden_size", hidden);
  if (both || g.chance(0.3))
    set_attribute(node, "direction", std::string(both ? "bidirectional" : "reverse"));
  if (std::string(op) == "GRU" && g.chance(0.5)) set_attribute(node, "linear_before_reset", std::int64_t{1});
  (void)g.emit(node, 2);
}

/// Through 8-bit integers and back.
void quantize(ModelGrower& g) {
  const Known* x = g.any(is_single);
  if (x == nullptr) return;
  const Known a = *x;
  const DType dtype = g.chance(0.5) ? DType::u8 : DType::i8;
  Tensor zero(dtype, {});
  zero.set_int64(0, dtype == DType::u8 ? g.between(100, 140) : g.between(-5, 5));
  const std::string scale = g.weight(Tensor::scalar_f32(g.one_of({0.0625F, 0.03F, 0.5F})));
  const std::string point = g.weight(zero);
  const auto q = g.emit(make_node("QuantizeLinear", {a.name, scale, point}));
  if (!q.empty() && g.chance(0.8)) (void)g.emit(make_node("DequantizeLinear", {q[0], scale, point}));
}

void matmul_integer(ModelGrower& g) {
  const Known* x = g.any([](const Tensor& t) {
    return (t.dtype() == DType::u8 || t.dtype() == DType::i8) && rank_of(t) >= 2 && t.size() > 0;
  });
  if (x == nullptr) return;
  const Known a = *x;
  onnx::NodeProto node =
      make_node("MatMulInteger", {a.name, g.weight(DType::i8, {a.sample.dims().back(), width(g)})});
  if (g.chance(0.5)) {
    Tensor zero(a.sample.dtype(), {});
    zero.set_int64(0, 3);
    node.add_input(g.weight(zero));
  }
  (void)g.emit(node);
}

void einsum(ModelGrower& g) {
  const Known* x = g.any([](const Tensor& t) { return is_real(t) && (rank_of(t) == 3 || rank_of(t) == 2); });
  if (x == nullptr) return;
  const Known a = *x;
  const Dims& dims = a.sample.dims();
  const std::int64_t columns = width(g);
  const bool is_batched = dims.size() == 3;
  onnx::NodeProto node = make_node(
      "Einsum", {a.name, scaled(g, a.sample.dtype(),
                                is_batched ? Dims{dims[0], columns, dims[2]} : Dims{dims[0], columns},
                                is_batched ? dims[2] : dims[0])});
  set_attribute(
      node, "equation",
      std::string(is_batched ? g.one_of<const char*>({"bik,bjk->bij", "bik,bjk->ij", "bik,bjk->jib"})
                             : g.one_of<const char*>({"ki,kj->ij", "ki,kj->ji", "ki,kj->i"})));
  (void)g.emit(node);
}

constexpr Growth contraction_table[] = {
    {"matmul", 9, matmul},       {"gemm", 3, gemm},
    {"conv", 10, conv},          {"conv_transpose", 2, conv_transpose},
    {"attention", 4, attention}, {"recurrent", 1, recurrent},
    {"quantize", 2, quantize},   {"matmul_integer", 1, matmul_integer},
    {"einsum", 1, einsum},
};

}  // namespace

std::span<const Growth> contraction_growths() {
  return contraction_table;
}

}  // namespace sylvite::fuzz
