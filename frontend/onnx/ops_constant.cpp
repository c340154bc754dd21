// Operators whose result is known from attributes, shapes and constants alone.

#include <onnx-ml.pb.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <span>
#include <vector>

#include "base/error.h"
#include "frontend/onnx/ops.h"
#include "frontend/onnx/tensor.h"
#include "frontend/values/nonzero.h"
#include "frontend/values/storage.h"

namespace sylvite {
namespace {

void constant_op(ImportContext& c) {
  GraphBuilder& b = c.builder();
  if (c.is_string_tensor("value")) return c.output_strings(0, c.string_tensor("value"));
  if (c.has_attribute("value")) {
    OnnxBinding binding = OnnxBinding::of(b.constant(c.tensor("value")).id());
    binding.initializer = &c.find_attribute("value")->t();
    return c.output_binding(0, binding);
  }
  if (c.has_attribute("sparse_value")) return c.output(b.constant(c.tensor("sparse_value")));
  if (c.has_attribute("value_float")) return c.output(b.scalar(DType::f32, c.real("value_float", 0)));
  if (c.has_attribute("value_int"))
    return c.output(b.constant(Tensor::scalar_i64(c.integer("value_int", 0))));
  if (c.has_attribute("value_ints")) return c.output(b.integers(c.integers("value_ints")));
  if (c.has_attribute("value_floats")) {
    const std::vector<double> values = c.reals("value_floats");
    return c.output(b.reals(DType::f32, {static_cast<std::int64_t>(values.size())}, values));
  }
  if (c.has_attribute("value_string")) return c.output_strings(0, {{}, {c.string("value_string", "")}});
  if (c.has_attribute("value_strings")) {
    const std::vector<std::string> values = c.strings("value_strings");
    return c.output_strings(0, {{static_cast<std::int64_t>(values.size())}, values});
  }
  throw ModelError("the constant has no value");
}

void constant_of_shape(ImportContext& c) {
  const Dims dims = c.constant_integers(0);
  const Sym value =
      c.has_attribute("value") ? c.builder().constant(c.tensor("value")) : c.builder().scalar(DType::f32, 0);
  c.output(broadcast_to(reshape(value, {}), dims));
}

void shape_op(ImportContext& c) {
  const Dims dims = c.input(0).dims();
  const auto rank = static_cast<std::int64_t>(dims.size());
  const auto cut = [&](std::int64_t at) {
    return std::clamp<std::int64_t>(at < 0 ? at + rank : at, 0, rank);
  };
  const std::int64_t start = cut(c.integer("start", 0));
  const std::int64_t end = std::max(cut(c.integer("end", rank)), start);
  c.output(c.builder().integers(Dims(dims.begin() + start, dims.begin() + end)));
}

void size_op(ImportContext& c) {
  c.output(c.builder().constant(Tensor::scalar_i64(c.input(0).size())));
}

void range_op(ImportContext& c) {
  const DType dtype = c.input(0).dtype();
  // Of narrow floats in f32: what is added up in their own precision stops growing.
  const DType computed = is_float(dtype) && dtype != DType::f64 ? DType::f32 : dtype;
  if (c.integer("stash_type", 1) != 1 && computed != dtype)
    throw UnsupportedError("stash_type is supported as 1 (f32) only");
  const double start = c.constant_real(0);
  const double limit = c.constant_real(1);
  const double delta = c.constant_real(2);
  if (delta == 0) throw ModelError("delta is 0");
  const double count = std::max(std::ceil((limit - start) / delta), 0.0);
  if (!(count <= 1e9)) throw UnsupportedError("a range of {} elements", count);
  Sym result = c.builder().iota(computed, {static_cast<std::int64_t>(count)}, 0);
  if (delta != 1) result = result * delta;
  c.output(cast(start == 0 ? result : result + start, dtype));
}

void eye_like(ImportContext& c) {
  const Sym x = c.input(0);
  if (x.rank() != 2) throw ModelError("the input has rank {}, expected 2", x.rank());
  const DType dtype =
      c.has_attribute("dtype") ? dtype_of_onnx(static_cast<int>(c.integer("dtype", 1))) : x.dtype();
  const Sym offset = c.builder().iota(DType::i64, x.dims(), 1) - c.builder().iota(DType::i64, x.dims(), 0);
  c.output(
      cast(apply(Op::equal, offset, c.builder().constant(Tensor::scalar_i64(c.integer("k", 0)))), dtype));
}

/// Generalised cosine windows: a0 - a1 cos(2 pi i / n) + a2 cos(4 pi i / n).
void cosine_window(ImportContext& c, double a0, double a1, double a2) {
  const std::int64_t size = c.constant_integer(0);
  c.builder().reserve_table({4, size});
  const bool is_periodic = c.integer("periodic", 1) != 0;
  const double period = static_cast<double>(is_periodic ? size : size - 1);
  std::vector<double> values;
  for (std::int64_t i = 0; i < size; ++i) {
    const double phase = 2 * std::numbers::pi * static_cast<double>(i) / period;
    values.push_back(a0 - a1 * std::cos(phase) + a2 * std::cos(2 * phase));
  }
  const DType dtype = dtype_of_onnx(static_cast<int>(c.integer("output_datatype", 1)));
  c.output(c.builder().reals(dtype, {size}, values));
}

void hann_window(ImportContext& c) {
  cosine_window(c, 0.5, 0.5, 0);
}
void hamming_window(ImportContext& c) {
  cosine_window(c, 25.0 / 46.0, 21.0 / 46.0, 0);
}
void blackman_window(ImportContext& c) {
  cosine_window(c, 0.42, 0.5, 0.08);
}

double to_mel(double hertz) {
  return 2595 * std::log10(1 + hertz / 700);
}
double from_mel(double mel) {
  return 700 * (std::pow(10, mel / 2595) - 1);
}

/// Triangular filters between frequencies that are evenly spaced on the mel scale.
void mel_weight_matrix(ImportContext& c) {
  const std::int64_t bins = c.constant_integer(0);
  const std::int64_t dft_length = c.constant_integer(1);
  const auto rate = static_cast<double>(c.constant_integer(2));
  const double low = to_mel(c.constant_real(3));
  const double high = to_mel(c.constant_real(4));
  if (bins < 1 || bins > 65'536 || dft_length < 1 || dft_length > (1 << 20))
    throw UnsupportedError("{} bins of {} points", bins, dft_length);
  std::vector<std::int64_t> edges;
  for (std::int64_t i = 0; i < bins + 2; ++i) {
    const double mel = low + static_cast<double>(i) * (high - low) / static_cast<double>(bins + 2);
    const double edge = std::floor(static_cast<double>(dft_length + 1) * from_mel(mel) / rate);
    if (!(std::abs(edge) <= 1e15)) throw ModelError("filter {} has its edge at {}", i, edge);
    edges.push_back(static_cast<std::int64_t>(edge));
  }
  const std::int64_t points = dft_length / 2 + 1;
  c.builder().reserve_table({2, points, bins});
  Tensor weights(dtype_of_onnx(static_cast<int>(c.integer("output_datatype", 1))), {points, bins});
  for (std::int64_t bin = 0; bin < bins; ++bin) {
    const std::int64_t left = edges[static_cast<std::size_t>(bin)];
    const std::int64_t center = edges[static_cast<std::size_t>(bin + 1)];
    const std::int64_t right = edges[static_cast<std::size_t>(bin + 2)];
    for (std::int64_t i = std::max<std::int64_t>(left, 0); i < std::min(right, points); ++i) {
      const double rise =
          center == left ? 1 : static_cast<double>(i - left) / static_cast<double>(center - left);
      const double fall =
          static_cast<double>(right - i) / static_cast<double>(std::max<std::int64_t>(right - center, 1));
      weights.set_double(i * bins + bin, i < center ? rise : fall);
    }
    if (center >= 0 && center < points) weights.set_double(center * bins + bin, 1);
  }
  c.output(c.builder().constant(weights));
}

/// The coordinates of non-zero elements, one column each; the input must be known.
void non_zero(ImportContext& c) {
  const Tensor x = c.constant(0);
  std::vector<std::int64_t> places = nonzero_places(x);
  const auto count = static_cast<std::int64_t>(places.size());
  const auto rank = static_cast<std::int64_t>(x.dims().size());
  const TensorType type = make_type(DType::i64, {rank, count});
  c.builder().charge(type.byte_size(), type.element_count());
  Tensor result(type.dtype, type.dims());
  const std::span<std::int64_t> coordinates = result.mutable_view<std::int64_t>();
  for (std::int64_t axis = rank - 1; axis >= 0; --axis) {
    const auto extent = static_cast<std::uint64_t>(x.dims()[static_cast<std::size_t>(axis)]);
    const std::span<std::int64_t> row =
        coordinates.subspan(static_cast<std::size_t>(axis * count), places.size());
    for (std::size_t i = 0; i < places.size(); ++i) {
      const std::uint64_t place = static_cast<std::uint64_t>(places[i]),
                          above = axis == 0 ? 0 : place / extent;
      row[i] = static_cast<std::int64_t>(place - above * extent);
      places[i] = static_cast<std::int64_t>(above);
    }
  }
  c.output(c.builder().constant(result));
}

const OnnxOp constant_rows[] = {
    {"BlackmanWindow", 17, blackman_window},
    {"Constant", 1, constant_op},
    {"ConstantOfShape", 9, constant_of_shape},
    {"EyeLike", 9, eye_like},
    {"HammingWindow", 17, hamming_window},
    {"HannWindow", 17, hann_window},
    {"MelWeightMatrix", 17, mel_weight_matrix},
    {"NonZero", 9, non_zero},
    {"Range", 11, range_op},
    {"Shape", 1, shape_op},
    {"Size", 1, size_op},
};

}  // namespace

std::span<const OnnxOp> onnx_constant_ops() {
  return constant_rows;
}

}  // namespace sylvite
