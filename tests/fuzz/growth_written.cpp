// Growths of several nodes, as exporters write what has no operator of its own.

#include "tests/fuzz/growth_values.h"

namespace sylvite::fuzz {
namespace {

/// Nodes one after another: once one is refused, those behind it are not made.
class Chain {
 public:
  explicit Chain(ModelGrower& grower) : grower_(grower) {}

  std::string operator()(onnx::NodeProto node) {
    if (failed_) return "";
    const std::vector<std::string> made = grower_.emit(std::move(node));
    failed_ = made.empty();
    return failed_ ? "" : made[0];
  }
  std::string operator()(const std::string& op, const std::vector<std::string>& inputs) {
    return (*this)(make_node(op, inputs));
  }
  std::string transposed(const std::string& x, const std::vector<std::int64_t>& perm) {
    onnx::NodeProto node = make_node("Transpose", {x});
    set_attribute(node, "perm", perm);
    return (*this)(std::move(node));
  }
  std::string reshaped(const std::string& x, const Dims& dims) {
    return (*this)("Reshape", {x, grower_.integers(dims)});
  }
  std::string sliced(const std::string& x, std::int64_t axis, std::int64_t from, std::int64_t to) {
    return (*this)("Slice", {x, grower_.integers({from}), grower_.integers({to}), grower_.integers({axis})});
  }
  std::string joined(const std::vector<std::string>& parts, std::int64_t axis) {
    onnx::NodeProto node = make_node("Concat", parts);
    set_attribute(node, "axis", axis);
    return (*this)(std::move(node));
  }

 private:
  ModelGrower& grower_;
  bool failed_ = false;
};

std::string small_weight(ModelGrower& g, DType dtype, const Dims& dims) {
  Tensor tensor = g.random_tensor(dtype, dims);
  for (std::int64_t i = 0; i < tensor.size(); ++i) tensor.set_double(i, tensor.as_double(i) / 4);
  return g.weight(tensor);
}

std::string number_like(ModelGrower& g, const Tensor& tensor, double value) {
  return g.weight(scalar_like(tensor, value));
}

/// [batch, tokens, features] of a real type.
bool is_tokens(const Tensor& tensor) {
  return is_real(tensor) && rank_of(tensor) == 3 && tensor.size() > 0 && tensor.dims()[1] <= 40;
}

/// x turned by angles: x * cos + concat(-x[half:], x[:half]) * sin.
std::string rotated(ModelGrower& g, Chain& chain, const std::string& x, const Tensor& sample) {
  const std::int64_t size = sample.dims().back(), half = size / 2;
  const std::string turned =
      chain.joined({chain("Neg", {chain.sliced(x, -1, half, size)}), chain.sliced(x, -1, 0, half)}, -1);
  const Dims table = {sample.dims()[sample.dims().size() - 2], size};
  return chain("Add", {chain("Mul", {x, g.weight(sample.dtype(), table)}),
                       chain("Mul", {turned, g.weight(sample.dtype(), table)})});
}

void rotary(ModelGrower& g) {
  const Known* x = g.any([](const Tensor& t) {
    return is_real(t) && rank_of(t) >= 2 && t.dims().back() % 2 == 0 && t.size() > 0;
  });
  if (x == nullptr) return;
  const Known a = *x;
  Chain chain(g);
  (void)rotated(g, chain, a.name, a.sample);
}

/// Self attention of tokens: one product for queries, keys and values, heads, perhaps a mask, and the way back.
void token_attention(ModelGrower& g) {
  const Known* x = g.any(is_tokens);
  if (x == nullptr) return;
  const Known a = *x;
  const std::int64_t batch = a.sample.dims()[0], tokens = a.sample.dims()[1], features = a.sample.dims()[2];
  const std::int64_t heads = g.between(1, 3), size = g.one_of<std::int64_t>({4, 8, 16}), width = heads * size;
  Chain chain(g);
  std::string qkv = chain("MatMul", {a.name, small_weight(g, a.sample.dtype(), {features, 3 * width})});
  if (g.chance(0.6)) qkv = chain("Add", {qkv, small_weight(g, a.sample.dtype(), {3 * width})});
  const bool is_split_late = g.chance(0.4);
  if (is_split_late)
    qkv = chain.transposed(chain.reshaped(qkv, {batch, tokens, 3, heads, size}), {2, 0, 3, 1, 4});
  const auto part = [&](std::int64_t i) {
    if (is_split_late) return chain("Gather", {qkv, g.weight(Tensor::scalar_i64(i))});
    return chain.transposed(
        chain.reshaped(chain.sliced(qkv, 2, i * width, (i + 1) * width), {batch, tokens, heads, size}),
        {0, 2, 1, 3});
  };
  std::string q = part(0), k = part(1);
  const std::string v = part(2);
  if (g.chance(0.4)) {
    const Tensor sample(a.sample.dtype(), {batch, heads, tokens, size});
    q = rotated(g, chain, q, sample);
    k = rotated(g, chain, k, sample);
  }
  const std::string scale = number_like(g, a.sample, 0.5);
  if (g.chance(0.4)) q = chain("Mul", {q, scale});
  std::string scores = chain("MatMul", {q, chain.transposed(k, {0, 1, 3, 2})});
  if (g.chance(0.5)) scores = chain("Mul", {scores, scale});
  if (g.chance(0.5)) {
    const Tensor mask =
        g.random_tensor(DType::boolean, g.one_of<Dims>({{tokens, tokens}, {batch, 1, 1, tokens}}));
    scores = chain("Where", {g.operand(mask), scores, number_like(g, a.sample, -1e4)});
  }
  std::string mixed = chain("MatMul", {chain("Softmax", {scores}), v});
  mixed = chain.reshaped(chain.transposed(mixed, {0, 2, 1, 3}), {batch, tokens, width});
  mixed = chain("MatMul", {mixed, small_weight(g, a.sample.dtype(), {width, features})});
  if (g.chance(0.6)) (void)chain("Add", {a.name, mixed});
}

/// act(x W) * (x V), and down again.
void gated_layers(ModelGrower& g) {
  const Known* x =
      g.any([](const Tensor& t) { return is_real(t) && rank_of(t) >= 2 && rank_of(t) <= 4 && t.size() > 0; });
  if (x == nullptr) return;
  const Known a = *x;
  const std::int64_t depth = a.sample.dims().back(), width = g.one_of<std::int64_t>({4, 11, 16, 32});
  Chain chain(g);
  const auto gate = chain("MatMul", {a.name, small_weight(g, a.sample.dtype(), {depth, width})});
  const auto up = chain("MatMul", {a.name, small_weight(g, a.sample.dtype(), {depth, width})});
  const auto act = g.chance(0.6) ? chain("Mul", {gate, chain("Sigmoid", {gate})}) : chain("Gelu", {gate});
  (void)chain("MatMul", {chain("Mul", {act, up}), small_weight(g, a.sample.dtype(), {width, depth})});
}

/// Group norm as torch exports it: instance norm of a reshaped image, and one weight a channel.
void written_out_group_norm(ModelGrower& g) {
  const Known* x = g.any([](const Tensor& t) { return is_image(t) && t.dims()[1] % 2 == 0; });
  if (x == nullptr) return;
  const Known a = *x;
  const std::int64_t groups = a.sample.dims()[1] % 4 == 0 && g.chance(0.5) ? 4 : 2;
  Chain chain(g);
  onnx::NodeProto norm =
      make_node("InstanceNormalization",
                {chain.reshaped(a.name, {a.sample.dims()[0], groups, -1}),
                 g.weight(Tensor::of<float>(DType::f32, {groups},
                                            std::vector<float>(static_cast<std::size_t>(groups), 1))),
                 g.weight(Tensor::of<float>(DType::f32, {groups},
                                            std::vector<float>(static_cast<std::size_t>(groups), 0)))});
  if (!is_single(a.sample)) return;
  set_attribute(norm, "epsilon", 1e-2);
  Dims weights(a.sample.dims().size() - 1, 1);
  weights[0] = a.sample.dims()[1];
  const std::string back = chain.reshaped(chain(std::move(norm)), a.sample.dims());
  (void)chain("Add", {chain("Mul", {back, g.weight(DType::f32, weights)}), g.weight(DType::f32, weights)});
}

/// What leaves at one end of an axis comes in at the other, along one axis or two.
void roll(ModelGrower& g) {
  const Known* x = g.any([](const Tensor& t) { return has_axes(t) && t.size() > 0; });
  if (x == nullptr) return;
  const Known a = *x;
  Chain chain(g);
  std::string rolled = a.name;
  for (int i = 0; i < 2; ++i) {
    const std::int64_t axis = axis_of(g, a.sample), extent = extent_at(a.sample, axis);
    if (extent < 2 || (i == 1 && g.chance(0.5))) continue;
    const std::int64_t by = g.between(1, extent - 1);
    rolled = chain.joined({chain.sliced(rolled, axis, by, extent), chain.sliced(rolled, axis, 0, by)}, axis);
  }
}

/// Windows of an image as a batch, work on them, and back.
void windows(ModelGrower& g) {
  const Known* x = g.any([](const Tensor& t) {
    return is_image(t) && rank_of(t) == 4 && t.dims()[2] % 2 == 0 && t.dims()[3] % 2 == 0;
  });
  if (x == nullptr) return;
  const Known a = *x;
  const Dims d = a.sample.dims();
  Chain chain(g);
  std::string cut = chain.reshaped(a.name, {d[0], d[1], d[2] / 2, 2, d[3] / 2, 2});
  cut = chain.reshaped(chain.transposed(cut, {0, 2, 4, 3, 5, 1}), {-1, 4, d[1]});
  cut = g.chance(0.5) ? chain("Softmax", {cut})
                      : chain("MatMul", {cut, small_weight(g, a.sample.dtype(), {d[1], d[1]})});
  const std::string back =
      chain.transposed(chain.reshaped(cut, {d[0], d[2] / 2, d[3] / 2, 2, 2, d[1]}), {0, 5, 1, 3, 2, 4});
  (void)chain.reshaped(back, d);
}

/// Squeeze and excite: channels weighed by what their means say.
void weighed_channels(ModelGrower& g) {
  const Known* x = g.any([](const Tensor& t) { return is_image(t) && rank_of(t) == 4; });
  if (x == nullptr) return;
  const Known a = *x;
  const std::int64_t channels = a.sample.dims()[1], few = g.between(1, 8);
  Chain chain(g);
  std::string s = chain("GlobalAveragePool", {a.name});
  s = chain("Relu", {chain("Conv", {s, small_weight(g, a.sample.dtype(), {few, channels, 1, 1})})});
  s = chain("Conv", {s, small_weight(g, a.sample.dtype(), {channels, few, 1, 1}),
                     small_weight(g, a.sample.dtype(), {channels})});
  (void)chain("Mul", {chain(g.one_of<const char*>({"Sigmoid", "HardSigmoid"}), {s}), a.name});
}

/// A convolution with a norm that may go into its weights, an activation, and what is added.
void residual_block(ModelGrower& g) {
  const Known* x = g.any([](const Tensor& t) { return is_image(t) && rank_of(t) == 4; });
  if (x == nullptr) return;
  const Known a = *x;
  const std::int64_t channels = a.sample.dims()[1];
  const bool is_depthwise = g.chance(0.4);
  Chain chain(g);
  onnx::NodeProto conv = make_node(
      "Conv", {a.name, small_weight(g, a.sample.dtype(), {channels, is_depthwise ? 1 : channels, 3, 3})});
  set_attribute(conv, "pads", std::vector<std::int64_t>{1, 1, 1, 1});
  if (is_depthwise) set_attribute(conv, "group", channels);
  Tensor variance = g.random_tensor(a.sample.dtype(), {channels});
  for (std::int64_t i = 0; i < channels; ++i) variance.set_double(i, std::abs(variance.as_double(i)) + 0.5);
  const auto vector = [&] { return g.weight(a.sample.dtype(), {channels}); };
  std::string y =
      chain("BatchNormalization", {chain(std::move(conv)), vector(), vector(), vector(), g.weight(variance)});
  if (g.chance(0.6)) y = chain(g.one_of<const char*>({"Relu", "HardSwish", "Sigmoid"}), {y});
  (void)chain("Add", {y, a.name});
}

constexpr Growth written_table[] = {
    {"rotary", 2, rotary},
    {"token_attention", 3, token_attention},
    {"gated_layers", 2, gated_layers},
    {"written_out_group_norm", 2, written_out_group_norm},
    {"roll", 2, roll},
    {"windows", 2, windows},
    {"weighed_channels", 2, weighed_channels},
    {"residual_block", 3, residual_block},
};

}  // namespace

std::span<const Growth> written_growths() {
  return written_table;
}

}  // namespace sylvite::fuzz
