// Quantised operators, computed on the real numbers they stand for.

#include "base/error.h"
#include "frontend/onnx/ops.h"
#include "frontend/onnx/quantization.h"
#include "frontend/onnx/tensor.h"
#include "frontend/onnx/window.h"

namespace sylvite {
namespace {

void quantize_linear(ImportContext& c) {
  const Sym x = c.input(0);
  const std::int64_t axis = c.integer("axis", 1);
  const std::int64_t block = c.integer("block_size", 0);
  const Sym zero_point = c.optional(2);
  DType to = zero_point ? zero_point.dtype() : DType::u8;
  if (const std::int64_t given = c.integer("output_dtype", 0); !zero_point && given != 0)
    to = dtype_of_onnx(static_cast<int>(given));
  const Sym scale = cast(spread(c.input(1), x, axis, block), DType::f32);
  c.output(quantize(cast(x, DType::f32), scale, zero_point ? spread(zero_point, x, axis, block) : Sym(), to,
                    c.integer("saturate", 1) != 0));
}

void dequantize_linear(ImportContext& c) {
  const Sym x = c.input(0);
  const std::int64_t axis = c.integer("axis", 1);
  const std::int64_t block = c.integer("block_size", 0);
  const Sym zero_point = c.optional(2);
  const DType to = c.has_attribute("output_dtype") && c.integer("output_dtype", 0) != 0
                       ? dtype_of_onnx(static_cast<int>(c.integer("output_dtype", 1)))
                       : c.input(1).dtype();
  const Sym y = dequantize(x, spread(c.input(1), x, axis, block),
                           zero_point ? spread(zero_point, x, axis, block) : Sym());
  c.output(cast(y, to));
}

void dynamic_quantize_linear(ImportContext& c) {
  const Quantized quantized = quantize_by_range(c.input(0));
  c.output(0, quantized.value);
  c.output(1, quantized.scale);
  c.output(2, quantized.zero_point);
}

/// A zero point per row of a matrix, or one for all.
Sym row_zero_point(Sym zero_point) {
  if (zero_point.size() == 1) return reshape(zero_point, {});
  return zero_point.rank() == 1 ? unsqueeze(zero_point, {1}) : zero_point;
}

void matmul_integer(ImportContext& c) {
  const Sym a_zero = c.optional(2);
  const Sym b_zero = c.optional(3);
  const Sym a = steps(c.input(0), a_zero ? row_zero_point(a_zero) : Sym());
  const Sym b = steps(c.input(1), b_zero && b_zero.size() == 1 ? reshape(b_zero, {}) : b_zero);
  c.output(c.builder().add(Op::matmul, {a, b}));
}

/// Inputs: a, its scale and zero point; b, likewise; the scale and zero point of the result.
void qlinear_matmul(ImportContext& c) {
  const auto as_rows = [](Sym parameter) {
    if (parameter.size() == 1) return reshape(parameter, {});
    return parameter.rank() == 1 ? unsqueeze(parameter, {1}) : parameter;
  };
  const auto as_columns = [](Sym parameter) {
    return parameter.size() == 1 ? reshape(parameter, {}) : parameter;
  };
  const Sym a = dequantize(c.input(0), as_rows(c.input(1)), as_rows(c.input(2)));
  const Sym b = dequantize(c.input(3), as_columns(c.input(4)), as_columns(c.input(5)));
  const Sym zero_point = as_rows(c.input(7));
  c.output(quantize(matmul(a, b), cast(as_rows(c.input(6)), DType::f32), zero_point, zero_point.dtype()));
}

/// In integers: in f32 large sums, and those of Winograd's transforms, would be rounded.
void conv_integer(ImportContext& c) {
  const Sym x_zero = c.optional(2);
  const Sym w_zero = c.optional(3);
  const Sym w = c.input(1);
  c.output(convolve(c, {steps(c.input(0), x_zero ? reshape(x_zero, {}) : Sym()),
                        steps(w, w_zero ? per_output(w_zero, w.rank()) : Sym())}));
}

void qlinear_conv(ImportContext& c) {
  c.output(quantized_convolution(c, c.input(0)));
}

const OnnxOp quantization_rows[] = {
    {"ConvInteger", 10, conv_integer},
    {"DequantizeLinear", 10, dequantize_linear},
    {"DynamicQuantizeLinear", 11, dynamic_quantize_linear},
    {"MatMulInteger", 10, matmul_integer},
    {"QLinearConv", 10, qlinear_conv},
    {"QLinearMatMul", 10, qlinear_matmul},
    {"QuantizeLinear", 10, quantize_linear},
};

}  // namespace

std::span<const OnnxOp> onnx_quantization_ops() {
  return quantization_rows;
}

}  // namespace sylvite
