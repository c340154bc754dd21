// Activation functions.

#include <algorithm>

#include "base/error.h"
#include "frontend/onnx/ops.h"

namespace sylvite {
namespace {

Sym is_positive(Sym x) {
  return apply(Op::greater, x, 0.0);
}

/// alpha * (exp(min(x, 0)) - 1): the branch not taken must not overflow.
Sym scaled_expm1(Sym x, double alpha) {
  return alpha * (apply(Op::exp, apply(Op::minimum, x, 0.0)) - 1.0);
}

void elu(ImportContext& c) {
  const Sym x = c.input(0);
  c.output(where(is_positive(x), x, scaled_expm1(x, c.real("alpha", 1))));
}

void selu(ImportContext& c) {
  const Sym x = c.input(0);
  const double alpha = c.real("alpha", 1.67326319217681884765625);
  const double gamma = c.real("gamma", 1.05070102214813232421875);
  c.output(gamma * where(is_positive(x), x, scaled_expm1(x, alpha)));
}

void celu(ImportContext& c) {
  const Sym x = c.input(0);
  const double alpha = c.real("alpha", 1);
  c.output(apply(Op::maximum, x, 0.0) + scaled_expm1(x * (1.0 / alpha), alpha));
}

void leaky_relu(ImportContext& c) {
  const Sym x = c.input(0);
  c.output(where(apply(Op::less, x, 0.0), x * c.real("alpha", 0.01), x));
}

/// Up to opset 6 a slope per channel is a plain list.
void prelu(ImportContext& c) {
  const Sym x = c.input(0);
  Sym slope = c.input(1);
  if (c.opset() < 7 && slope.size() > 1 && slope.rank() == 1 && x.rank() > 2) {
    Dims dims(static_cast<std::size_t>(x.rank()) - 1, 1);
    dims[0] = slope.size();
    slope = reshape(slope, dims);
  }
  c.output(where(apply(Op::less, x, 0.0), x * slope, x));
}

void thresholded_relu(ImportContext& c) {
  const Sym x = c.input(0);
  c.output(where(apply(Op::greater, x, c.real("alpha", 1)), x, 0.0));
}

void shrink(ImportContext& c) {
  const Sym x = c.input(0);
  const double lambda = c.real("lambd", 0.5);
  const double bias = c.real("bias", 0);
  const Sym positive = where(apply(Op::greater, x, lambda), x - bias, 0.0);
  c.output(where(apply(Op::less, x, -lambda), x + bias, positive));
}

void softsign(ImportContext& c) {
  const Sym x = c.input(0);
  c.output(x / (apply(Op::abs, x) + 1.0));
}

void mish(ImportContext& c) {
  const Sym x = c.input(0);
  c.output(x * apply(Op::tanh, apply(Op::softplus, x)));
}

Sym swish_of(Sym x, double alpha) {
  return alpha == 1 ? apply(Op::silu, x) : x * apply(Op::sigmoid, x * alpha);
}

void swish(ImportContext& c) {
  c.output(swish_of(c.input(0), c.real("alpha", 1)));
}

void swiglu(ImportContext& c) {
  const Sym gate = c.input(0);
  if (gate.dims() != c.input(1).dims()) throw ModelError("the gate and what it scales differ in shape");
  c.output(swish_of(gate, c.real("alpha", 1)) * c.input(1));
}

void gelu(ImportContext& c) {
  c.output(c.builder().add(Op::gelu, {c.input(0)}, {{"approximate", c.string("approximate", "none")}}));
}

void hard_sigmoid(ImportContext& c) {
  c.output(c.builder().add(Op::hard_sigmoid, {c.input(0)},
                           {{"alpha", c.real("alpha", 0.2)}, {"beta", c.real("beta", 0.5)}}));
}

/// Up to opset 12 the axes from `axis` on are normalised together.
template <Op op>
void softmax_op(ImportContext& c) {
  const Sym x = c.input(0);
  const bool is_flattening = c.opset() < 13;
  const int axis = normalize_axis(c.integer("axis", is_flattening ? 1 : -1), std::max(x.rank(), 1));
  const auto apply_softmax = [&](Sym value, int at) {
    return c.builder().add(op, {value}, {{"axis", std::int64_t{at}}});
  };
  if (!is_flattening || axis == x.rank() - 1) return c.output(apply_softmax(x, axis));
  const Dims dims = x.dims();
  const std::int64_t outer = checked_product(Dims(dims.begin(), dims.begin() + axis), "softmax");
  const std::int64_t inner = checked_product(Dims(dims.begin() + axis, dims.end()), "softmax");
  c.output(reshape(apply_softmax(reshape(x, {outer, inner}), 1), dims));
}

/// 1 at the first maximum along the axis, 0 elsewhere.
void hardmax(ImportContext& c) {
  Sym x = c.input(0);
  const Dims dims = x.dims();
  int axis = normalize_axis(c.integer("axis", c.opset() < 13 ? 1 : -1), x.rank());
  if (c.opset() < 13) {
    const std::int64_t outer = checked_product(Dims(dims.begin(), dims.begin() + axis), "hardmax");
    x = reshape(x, {outer, checked_product(Dims(dims.begin() + axis, dims.end()), "hardmax")});
    axis = 1;
  }
  const Sym best = c.builder().add(Op::arg_max, {x}, {{"axis", std::int64_t{axis}}});
  const Sym position = c.builder().iota(DType::i64, x.dims(), axis);
  c.output(reshape(cast(apply(Op::equal, position, best), x.dtype()), dims));
}

/// Of the first versions of ONNX, when operators were tried out; runtimes still take them.
void affine(ImportContext& c) {
  c.output(c.input(0) * c.real("alpha", 1) + c.real("beta", 0));
}

void scale(ImportContext& c) {
  c.output(c.input(0) * c.real("scale", 1));
}

void scaled_tanh(ImportContext& c) {
  c.output(apply(Op::tanh, c.input(0) * c.real("beta", 1)) * c.real("alpha", 1));
}

void parametric_softplus(ImportContext& c) {
  c.output(apply(Op::softplus, c.input(0) * c.real("beta", 1)) * c.real("alpha", 1));
}

/// A factor for all channels, and a bias for each.
void image_scaler(ImportContext& c) {
  const Sym x = c.input(0);
  const std::vector<double> bias = c.reals("bias");
  if (x.rank() != 4 || static_cast<std::int64_t>(bias.size()) != x.dim(1))
    throw ModelError("bias has {} elements, expected one per channel", bias.size());
  c.output(x * c.real("scale", 1) + c.builder().reals(x.dtype(), {x.dim(1), 1, 1}, bias));
}

const OnnxOp activation_rows[] = {
    {"Affine", 1, affine},
    {"Celu", 12, celu},
    {"Elu", 6, elu},
    {"Gelu", 20, gelu},
    {"Hardmax", 1, hardmax},
    {"HardSigmoid", 6, hard_sigmoid},
    {"HardSwish", 14, unary_op<Op::hard_swish>},
    {"ImageScaler", 1, image_scaler},
    {"LeakyRelu", 6, leaky_relu},
    {"LogSoftmax", 1, softmax_op<Op::log_softmax>},
    {"Mish", 18, mish},
    {"ParametricSoftplus", 1, parametric_softplus},
    {"PRelu", 7, prelu},
    {"Relu", 6, unary_op<Op::relu>},
    {"Scale", 1, scale},
    {"ScaledTanh", 1, scaled_tanh},
    {"Selu", 6, selu},
    {"Shrink", 9, shrink},
    {"Sigmoid", 6, unary_op<Op::sigmoid>},
    {"Softmax", 1, softmax_op<Op::softmax>},
    {"Softplus", 1, unary_op<Op::softplus>},
    {"Softsign", 1, softsign},
    {"SwiGLU", 28, swiglu},
    {"Swish", 24, swish},
    {"Tanh", 6, unary_op<Op::tanh>},
    {"ThresholdedRelu", 10, thresholded_relu},
};

}  // namespace

std::span<const OnnxOp> onnx_activation_ops() {
  return activation_rows;
}

}  // namespace sylvite
