// Operators of com.microsoft that join others: activations with their biases, products and convolutions with
// what follows them.

#include "base/error.h"
#include "frontend/onnx/activation.h"
#include "frontend/onnx/channel_order.h"
#include "frontend/onnx/matmul.h"
#include "frontend/onnx/ops.h"
#include "frontend/onnx/window.h"

namespace sylvite {
namespace {

Sym gelu_of(Sym x, const char* approximate) {
  return x.builder().add(Op::gelu, {x}, {{"approximate", std::string(approximate)}});
}

void gelu_op(ImportContext& c) {
  c.output(gelu_of(c.input(0), "none"));
}

void bias_gelu(ImportContext& c) {
  c.output(gelu_of(c.input(0) + c.input(1), "none"));
}

void fast_gelu(ImportContext& c) {
  const Sym bias = c.optional(1);
  c.output(gelu_of(bias ? c.input(0) + bias : c.input(0), "tanh"));
}

void quick_gelu(ImportContext& c) {
  const Sym x = c.input(0);
  c.output(x * apply(Op::sigmoid, x * c.real("alpha", 1.702)));
}

/// The left half of x + bias, times the activation of the right half.
void bias_split_gelu(ImportContext& c) {
  const Sym x = c.input(0) + c.input(1);
  const std::int64_t width = x.dim(-1);
  if (width % 2 != 0) throw ModelError("the last axis has {} elements, expected an even number", width);
  c.output(slice(x, x.rank() - 1, 0, width / 2) * gelu_of(slice(x, x.rank() - 1, width / 2, width), "none"));
}

void bias_add(ImportContext& c) {
  c.output(c.input(0) + c.input(1) + c.input(2));
}

/// Nothing is dropped outside of training.
void bias_dropout(ImportContext& c) {
  if (c.has_input(4) && c.constant_flag(4)) throw UnsupportedError("training_mode is not supported");
  (void)c.has_input(3);
  (void)c.has_attribute("seed");
  Sym y = c.input(0) + c.input(1);
  if (const Sym residual = c.optional(2)) y = y + residual;
  c.output(0, y);
  c.output(1, c.builder().filled(DType::boolean, y.dims(), 1));
}

/// A matrix with its first axis moved behind the batch, and then its last two exchanged, as asked.
Sym arranged(Sym x, bool moves_batch, bool transposes) {
  if (x.rank() < 2) return x;
  if (moves_batch) {
    std::vector<std::int64_t> perm = all_axes(x.rank());
    perm.erase(perm.begin());
    perm.insert(perm.end() - 1, 0);
    x = transpose(x, perm);
  }
  return transposes ? swap_axes(x, -2, -1) : x;
}

void fused_matmul(ImportContext& c) {
  const auto side = [&](int i, const std::string& name) {
    return arranged(c.input(i), c.integer("transBatch" + name, 0) != 0, c.integer("trans" + name, 0) != 0);
  };
  const Sym y = numpy_matmul(side(0, "A"), side(1, "B"));
  const double alpha = c.real("alpha", 1);
  c.output(alpha == 1 ? y : y * alpha);
}

/// The activation of that name; `parameters` are those that it has.
Sym activated(Sym x, const std::string& name, const std::vector<double>& parameters) {
  if (name.empty()) return x;
  const auto parameter = [&](std::size_t i) {
    return i < parameters.size() ? std::optional(parameters[i]) : std::nullopt;
  };
  if (name == "HardSwish") return apply(Op::hard_swish, x);
  if (name == "Gelu") return gelu_of(x, "none");
  if (name == "Clip") {
    if (parameters.size() != 2) throw ModelError("Clip has {} parameters, expected 2", parameters.size());
    return apply(Op::minimum, apply(Op::maximum, x, parameters[0]), parameters[1]);
  }
  return make_activation(name, parameter(0), parameter(1))(x);
}

void fused_gemm(ImportContext& c) {
  std::vector<double> parameters;
  for (const char* name : {"activation_alpha", "activation_beta", "activation_gamma"})
    if (c.has_attribute(name)) parameters.push_back(c.real(name, 0));
  const std::string activation = c.string("activation", "");
  if (parameters.size() == 1 && !c.has_attribute("activation_alpha"))
    throw UnsupportedError("activation '{}' has a second parameter without a first one", activation);
  c.output(activated(gemm(c), activation, parameters));
}

/// A convolution, then what is added to it, then an activation.
template <bool is_channels_last>
void fused_conv(ImportContext& c) {
  const auto read = [&](Sym x) { return x && is_channels_last ? channels_first(x) : x; };
  std::vector<Sym> inputs{read(c.input(0)), c.input(1)};
  if (const Sym bias = c.optional(2)) inputs.push_back(bias);
  Sym y = convolve(c, inputs);
  if (const Sym sum = read(c.optional(3))) y = y + sum;
  y = activated(y, c.string("activation", ""), c.reals("activation_params"));
  c.output(is_channels_last ? channels_last(y) : y);
}

const OnnxOp contrib_fused_rows[] = {
    {"BiasAdd", 1, bias_add, microsoft},
    {"BiasDropout", 1, bias_dropout, microsoft},
    {"BiasGelu", 1, bias_gelu, microsoft},
    {"BiasSplitGelu", 1, bias_split_gelu, microsoft},
    {"FastGelu", 1, fast_gelu, microsoft},
    {"FusedConv", 1, fused_conv<false>, microsoft},
    {"FusedGemm", 1, fused_gemm, microsoft},
    {"FusedMatMul", 1, fused_matmul, microsoft},
    {"Gelu", 1, gelu_op, microsoft},
    {"NhwcConv", 1, fused_conv<true>, microsoft},
    {"NhwcFusedConv", 1, fused_conv<true>, microsoft},
    {"QuickGelu", 1, quick_gelu, microsoft},
    {"TransposeMatMul", 1, fused_matmul, microsoft},
};

}  // namespace

std::span<const OnnxOp> onnx_contrib_fused_ops() {
  return contrib_fused_rows;
}

}  // namespace sylvite
