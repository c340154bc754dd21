#include "frontend/build/fourier.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace sylvite {
namespace {

/// Cosines and sines of 2 pi row column / length, [rows, columns] each.
struct FourierMatrix {
  Sym cosine, sine;
};

/// sin(2 pi part / length) for parts from 0 to the length. What is zero or one is so exactly, and what mirrors each other is equal:
/// the middle frequency of a real signal has no imaginary part, and its angle no sign of a rounding.
double sine_of_part(std::int64_t part, std::int64_t length) {
  if (2 * part > length) return -sine_of_part(length - part, length);
  const std::int64_t halves = std::min(2 * part, length - 2 * part);
  return std::sin(std::numbers::pi * static_cast<double>(halves) / static_cast<double>(length));
}

FourierMatrix fourier_matrix(GraphBuilder& b, DType dtype, std::int64_t rows, std::int64_t columns,
                             std::int64_t length) {
  b.reserve_table({2, rows, columns});
  std::vector<double> cosine;
  std::vector<double> sine;
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t column = 0; column < columns; ++column) {
      const std::int64_t part = row * column % length;
      cosine.push_back(sine_of_part((4 * part + length) % (4 * length), 4 * length));
      sine.push_back(sine_of_part(part, length));
    }
  }
  return {b.reals(dtype, {rows, columns}, cosine), b.reals(dtype, {rows, columns}, sine)};
}

/// The signal cut or padded with zeros to `length` along an axis.
Sym fit_length(Sym x, int axis, std::int64_t length) {
  const std::int64_t extent = x.dim(axis);
  if (extent >= length) return slice(x, axis, 0, length);
  Dims low(static_cast<std::size_t>(x.rank()), 0);
  Dims high = low;
  high[static_cast<std::size_t>(axis)] = length - extent;
  return pad(x, low, high);
}

/// Multiplies [..., n] by [n, m] as one matrix product.
Sym times_matrix(Sym x, Sym matrix) {
  Dims dims = x.dims();
  const std::int64_t n = dims.back();
  const std::int64_t rows = n == 0 ? 0 : x.size() / n;
  dims.back() = matrix.dim(1);
  return reshape(matmul(reshape(x, {rows, n}), matrix), dims);
}

}  // namespace

Sym fourier_transform(Sym x, const Fourier& fourier) {
  GraphBuilder& b = x.builder();
  const int axis = x.rank() - 2;
  const std::int64_t n = fourier.length;
  const bool expands = fourier.is_inverse && fourier.is_onesided;  // half a spectrum to a real signal
  const Sym fitted = fit_length(x, axis, expands ? n / 2 + 1 : n);
  const Sym real = squeeze(slice(fitted, -1, 0, 1), {-1});
  const Sym imaginary = x.dim(-1) == 2 ? squeeze(slice(fitted, -1, 1, 2), {-1}) : Sym();
  const std::int64_t outputs = fourier.is_onesided && !fourier.is_inverse ? n / 2 + 1 : n;
  FourierMatrix m = fourier_matrix(b, x.dtype(), real.dim(-1), outputs, n);
  const double scale = fourier.is_inverse ? 1.0 / static_cast<double>(n) : 1.0;
  const double sign = fourier.is_inverse ? scale : -scale;
  if (expands) {
    // The frequencies between the first and the middle stand for their mirror images too.
    std::vector<double> weights(static_cast<std::size_t>(real.dim(-1)), 2);
    weights[0] = 1;
    if (n % 2 == 0) weights.back() = 1;
    const Sym weight = b.reals(x.dtype(), {real.dim(-1), 1}, weights);
    m = {m.cosine * weight, m.sine * weight};
  }
  m = {m.cosine * scale, m.sine * sign};
  Sym out_real = times_matrix(real, m.cosine);
  if (imaginary) out_real = out_real - times_matrix(imaginary, m.sine);
  if (expands) return unsqueeze(out_real, {-1});
  Sym out_imaginary = times_matrix(real, m.sine);
  if (imaginary) out_imaginary = out_imaginary + times_matrix(imaginary, m.cosine);
  return concat({unsqueeze(out_real, {-1}), unsqueeze(out_imaginary, {-1})}, out_real.rank());
}

}  // namespace sylvite
