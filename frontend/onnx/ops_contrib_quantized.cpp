// Quantised operators of com.microsoft, computed on the real numbers they stand for.

#include "base/error.h"
#include "frontend/onnx/channel_order.h"
#include "frontend/onnx/matmul.h"
#include "frontend/onnx/ops.h"
#include "frontend/onnx/pooling.h"
#include "frontend/onnx/quantization.h"
#include "frontend/onnx/recurrent.h"

namespace sylvite {
namespace {

/// A parameter for all elements or one per column; one number broadcasts to any rank.
Sym per_column(Sym parameter) {
  return parameter && parameter.size() == 1 ? reshape(parameter, {}) : parameter;
}

/// The parameter of a whole tensor. Throws ModelError when there are several.
Sym whole(Sym parameter) {
  if (!parameter) return parameter;
  if (parameter.size() != 1)
    throw ModelError("a scale or zero point has {} elements, expected 1", parameter.size());
  return reshape(parameter, {});
}

/// The real numbers of input i, whose scale and zero point follow it.
Sym real_input(ImportContext& c, int i) {
  return dequantize(c.input(i), whole(c.input(i + 1)), whole(c.optional(i + 2)));
}

/// y in steps of input `scale`, with the zero point that follows it; as `fallback` when that is absent.
Sym quantized_output(ImportContext& c, Sym y, int scale, DType fallback) {
  const Sym zero_point = whole(c.optional(scale + 1));
  return quantize(y, whole(c.input(scale)), zero_point, zero_point ? zero_point.dtype() : fallback);
}

Sym added(Sym a, Sym b) {
  return a + b;
}

Sym multiplied(Sym a, Sym b) {
  return a * b;
}

template <Sym (*combine)(Sym, Sym)>
void quantized_binary(ImportContext& c) {
  c.output(quantized_output(c, combine(real_input(c, 0), real_input(c, 3)), 6, c.input(0).dtype()));
}

void quantized_sigmoid(ImportContext& c) {
  c.output(quantized_output(c, apply(Op::sigmoid, real_input(c, 0)), 3, c.input(0).dtype()));
}

void quantized_leaky_relu(ImportContext& c) {
  const Sym x = real_input(c, 0);
  const Sym y = where(apply(Op::less, x, 0.0), x * c.real("alpha", 0.01), x);
  c.output(quantized_output(c, y, 3, c.input(0).dtype()));
}

/// Where opset is below 13, the axes from `axis` on are normalised together.
void quantized_softmax(ImportContext& c) {
  const Sym x = real_input(c, 0);
  const int axis = normalize_axis(c.integer("axis", -1), x.rank());
  const bool is_flattening = c.required_integer("opset") < 13 && axis != x.rank() - 1;
  Sym y;
  if (is_flattening) {
    const Dims dims = x.dims();
    Dims joined(dims.begin(), dims.begin() + axis);
    joined.push_back(checked_product(Dims(dims.begin() + axis, dims.end()), "softmax"));
    y = reshape(softmax(reshape(x, joined), axis), dims);
  } else {
    y = softmax(x, axis);
  }
  c.output(quantized_output(c, y, 3, c.input(0).dtype()));
}

/// A pooling of real numbers, with channels first or last.
template <typename Pool>
void quantized_pool(ImportContext& c, const Pool& pool) {
  const bool is_last = c.integer("channels_last", 0) != 0;
  const Sym x = real_input(c, 0);
  const Sym y = pool(is_last ? channels_first(x) : x);
  c.output(quantized_output(c, is_last ? channels_last(y) : y, 3, c.input(0).dtype()));
}

void quantized_average_pool(ImportContext& c) {
  quantized_pool(c, [&](Sym x) { return average_pool(c, x); });
}

void quantized_global_average_pool(ImportContext& c) {
  quantized_pool(c, [](Sym x) { return global_average(x); });
}

/// Inputs: scale and zero point of the result, then tensors with theirs.
void quantized_concat(ImportContext& c) {
  if (c.input_count() < 5 || c.input_count() % 3 != 2)
    throw ModelError("{} inputs are not two and triples", c.input_count());
  std::vector<Sym> parts;
  for (int i = 2; i < c.input_count(); i += 3) parts.push_back(real_input(c, i));
  const int axis = normalize_axis(c.required_integer("axis"), parts[0].rank());
  c.output(quantized_output(c, concat(parts, axis), 0, c.input(2).dtype()));
}

void quantized_mean(ImportContext& c) {
  const Sym x = real_input(c, 0);
  const Sym y =
      reduce_mean(x, normalize_axes(c.integers("axes"), x.rank()), c.required_integer("keepdims") != 0);
  c.output(quantized_output(c, y, 3, c.input(0).dtype()));
}

void quantized_where(ImportContext& c) {
  c.output(quantized_output(c, where(c.input(0), real_input(c, 1), real_input(c, 4)), 7, c.input(1).dtype()));
}

void quantized_conv(ImportContext& c) {
  const bool is_last = c.integer("channels_last", 0) != 0;
  const Sym y = quantized_convolution(c, is_last ? channels_first(c.input(0)) : c.input(0));
  c.output(is_last ? channels_last(y) : y);
}

/// The bias counts steps of both scales.
void quantized_gemm(ImportContext& c) {
  Sym a = real_input(c, 0);
  const bool transposes_b = c.integer("transB", 0) != 0;
  const Sym weight = transposes_b ? swap_axes(c.input(3), 0, 1) : c.input(3);
  if (a.rank() != 2 || weight.rank() != 2)
    throw ModelError("A and B have ranks {} and {}, expected 2", a.rank(), weight.rank());
  if (c.integer("transA", 0) != 0) a = swap_axes(a, 0, 1);
  const Sym b_scale = per_column(c.input(4));
  Sym y = matmul(a, dequantize(weight, b_scale, per_column(c.optional(5))));
  if (const Sym bias = c.optional(6)) y = y + cast(bias, DType::f32) * (whole(c.input(1)) * b_scale);
  const double alpha = c.real("alpha", 1);
  if (alpha != 1) y = y * alpha;
  (void)c.has_input(8);
  c.output(c.has_input(7) ? quantized_output(c, y, 7, c.input(0).dtype()) : y);
}

/// a b + bias; b has parameters per column.
void output_product(ImportContext& c, Sym a, Sym b, Sym b_scale, Sym b_zero_point, Sym bias) {
  const Sym y = numpy_matmul(a, dequantize(b, per_column(b_scale), per_column(b_zero_point)));
  c.output(bias ? y + bias : y);
}

Sym through_u8(Sym x) {
  const Quantized quantized = quantize_by_range(x);
  return dequantize(quantized.value, quantized.scale, quantized.zero_point);
}

void dynamic_quantize_matmul(ImportContext& c) {
  output_product(c, through_u8(c.input(0)), c.input(1), c.input(2), c.optional(3), c.optional(4));
}

void matmul_integer_to_float(ImportContext& c) {
  const Sym a = dequantize(c.input(0), whole(c.input(2)), whole(c.optional(4)));
  output_product(c, a, c.input(1), c.input(3), c.optional(5), c.optional(6));
}

/// W and R come as [directions, inputs, gates], quantised by direction or by column of it.
void dynamic_quantize_lstm(ImportContext& c) {
  const auto weight = [&](int i, int scale) {
    const Sym w = c.input(i);
    const auto spread = [&](Sym parameter) {
      if (parameter.rank() < 1 || parameter.dim(0) == 0 || parameter.size() % parameter.dim(0) != 0)
        throw ModelError("the parameters of input {} are no list for the directions", i);
      return reshape(parameter, {parameter.dim(0), 1, parameter.size() / parameter.dim(0)});
    };
    if (w.rank() != 3) throw ModelError("input {} has rank {}, expected 3", i, w.rank());
    return swap_axes(dequantize(w, spread(c.input(scale)), spread(c.input(scale + 1))), 1, 2);
  };
  lstm(c, {weight(1, 8), weight(2, 10), through_u8});
}

/// Of 16 bits, added up in 32.
void matmul_integer_16(ImportContext& c) {
  c.output(c.builder().add(Op::matmul, {cast(c.input(0), DType::i32), cast(c.input(1), DType::i32)}));
}

const OnnxOp contrib_quantized_rows[] = {
    {"DynamicQuantizeLSTM", 1, dynamic_quantize_lstm, microsoft},
    {"DynamicQuantizeMatMul", 1, dynamic_quantize_matmul, microsoft},
    {"MatMulInteger16", 1, matmul_integer_16, microsoft},
    {"MatMulIntegerToFloat", 1, matmul_integer_to_float, microsoft},
    {"QGemm", 1, quantized_gemm, microsoft},
    {"QLinearAdd", 1, quantized_binary<added>, microsoft},
    {"QLinearAveragePool", 1, quantized_average_pool, microsoft},
    {"QLinearConcat", 1, quantized_concat, microsoft},
    {"QLinearConv", 1, quantized_conv, microsoft},
    {"QLinearGlobalAveragePool", 1, quantized_global_average_pool, microsoft},
    {"QLinearLeakyRelu", 1, quantized_leaky_relu, microsoft},
    {"QLinearMul", 1, quantized_binary<multiplied>, microsoft},
    {"QLinearReduceMean", 1, quantized_mean, microsoft},
    {"QLinearSigmoid", 1, quantized_sigmoid, microsoft},
    {"QLinearSoftmax", 1, quantized_softmax, microsoft},
    {"QLinearWhere", 1, quantized_where, microsoft},
};

}  // namespace

std::span<const OnnxOp> onnx_contrib_quantized_ops() {
  return contrib_quantized_rows;
}

}  // namespace sylvite
