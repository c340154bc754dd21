// Matmul and convolution, of floats and of integers.

#include "frontend/quick/products.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <vector>

#include "frontend/ops/batches.h"
#include "frontend/quick/depthwise.h"
#include "frontend/quick/integers.h"
#include "frontend/quick/patches.h"
#include "frontend/quick/request.h"
#include "frontend/quick/window.h"

namespace sylvite::quick {
namespace {

/// Few rows: each is a sum of rows of b, which are read as they lie.
constexpr std::int64_t few_rows = 4;

void multiply_few(const Shape& shape, int threads, const float* a, const float* b, float* c) {
  constexpr std::int64_t together = 4;
  constexpr std::int64_t part = 1024;  // of columns
  const std::int64_t parts = ceil_div(shape.columns, part);
  share_out(parts, shape.work(), threads, [&](std::int64_t task) {
    const std::int64_t first = task * part;
    const std::int64_t count = std::min(part, shape.columns - first);
    for (std::int64_t k = 0; k < shape.depth; k += together) {
      const std::int64_t steps = std::min(together, shape.depth - k);
      for (std::int64_t row = 0; row < shape.rows; ++row) {
        const float* x = a + row * shape.depth + k;
        const float* from = b + k * shape.columns + first;
        float* to = c + row * shape.columns + first;
        if (steps == together) {
          for (std::int64_t j = 0; j < count; ++j)
            to[j] += (x[0] * from[j] + x[1] * from[shape.columns + j]) +
                     (x[2] * from[2 * shape.columns + j] + x[3] * from[3 * shape.columns + j]);
        } else {
          for (std::int64_t step = 0; step < steps; ++step)
            for (std::int64_t j = 0; j < count; ++j) to[j] += x[step] * from[step * shape.columns + j];
        }
      }
    }
  });
}

void add_bias(const float* bias, std::int64_t channels, std::int64_t positions, std::int64_t images,
              float* output) {
  for (std::int64_t i = 0; bias != nullptr && i < images * channels; ++i)
    std::fill_n(output + i * positions, positions, bias[i % channels]);
}

/// With fewer steps at a time than these nothing is gained.
constexpr std::int64_t least_exact_steps = 16;

/// Integers, and the largest that there may be.
struct Integers {
  Integers(const Tensor& tensor, int threads) : values(converted(tensor, DType::f32, threads)) {
    switch (tensor.dtype()) {
      case DType::i8:
        largest = 128;
        break;
      case DType::u8:
        largest = 255;
        break;
      default:
        for (const float value : values.view<float>()) largest = std::max(largest, std::fabs(value));
    }
  }
  [[nodiscard]] std::span<const float> view() const { return values.view<float>(); }

  Tensor values;  ///< of f32, which holds them exactly up to 2^24
  float largest = 0;
};

/// How many products of these f32 adds up without rounding, at most `depth`.
std::int64_t exact_steps(const Integers& a, const Integers& b, std::int64_t depth) {
  constexpr double exact = 1 << 24;
  if (a.values.size() == 0 || b.values.size() == 0) return 0;
  const double largest = std::max(static_cast<double>(a.largest) * static_cast<double>(b.largest), 1.0);
  return static_cast<std::int64_t>(std::min(static_cast<double>(depth), exact / largest));
}

/// Elements [part) of each row of `depth`.
class Slab {
 public:
  Slab(std::span<const float> rows, std::int64_t depth) : rows_(rows), depth_(depth) {}

  const float* of(Part part) {
    if (part.count == depth_) return rows_.data();
    copy_.resize(rows_.size());
    float* to = copy_.data();
    for (const float* row = rows_.data(); row < rows_.data() + rows_.size(); row += depth_)
      to = std::copy_n(row + part.first, part.count, to);
    return copy_.data();
  }

 private:
  std::span<const float> rows_;
  std::int64_t depth_;
  std::vector<float> copy_;
};

std::int32_t wrapped_sum(std::int32_t x, std::int32_t y) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(x) + static_cast<std::uint32_t>(y));
}

/// Few rows of integers: each is a sum of rows of b, which are read as they lie. Sums wrap around.
template <typename Right>
void multiply_few(const Shape& shape, int threads, const std::int32_t* a, const Right* b, std::uint32_t* c) {
  constexpr std::int64_t part = 512;  // of columns
  share_out(ceil_div(shape.columns, part), shape.work(), threads, [&](std::int64_t task) {
    const std::int64_t first = task * part;
    const std::int64_t count = std::min(part, shape.columns - first);
    for (std::int64_t k = 0; k < shape.depth; ++k) {
      const Right* from = b + k * shape.columns + first;
      for (std::int64_t row = 0; row < shape.rows; ++row) {
        const auto x = static_cast<std::uint32_t>(a[row * shape.depth + k]);
        std::uint32_t* to = c + row * shape.columns + first;
        for (std::int64_t j = 0; j < count; ++j) to[j] += x * static_cast<std::uint32_t>(from[j]);
      }
    }
  });
}

/// The result for few rows and one right operand; nothing for others.
std::optional<Tensor> few_integers(const Request& request, Shape shape) {
  shape.rows *= shape.batches;
  const Tensor& b = *request.inputs[1];
  if (batch_count(b.dims()) != 1 || shape.rows > few_rows) return std::nullopt;
  const Tensor wide = converted(*request.inputs[0], DType::i32, request.threads);
  const std::int32_t* a = wide.view<std::int32_t>().data();
  Tensor result(DType::i32, request.types[0].dims());
  auto* c = static_cast<std::uint32_t*>(result.mutable_data());
  switch (b.dtype()) {
    case DType::i8:
      multiply_few(shape, request.threads, a, b.view<std::int8_t>().data(), c);
      break;
    case DType::i16:
      multiply_few(shape, request.threads, a, b.view<std::int16_t>().data(), c);
      break;
    case DType::i32:
      multiply_few(shape, request.threads, a, b.view<std::int32_t>().data(), c);
      break;
    default:
      return std::nullopt;
  }
  return result;
}

/// What taps of a group's channels see, one row of the right operand for each.
struct Convolution {
  Convolution(const Request& request)
      : dims(request.types[0].dims()),
        groups(request.attributes.integer("groups")),
        channels(request.inputs[1]->dims()[1]),
        inputs(request.inputs[0]->dims()[1]),
        window(make_window(request.inputs[0]->dims(), dims,
                           Dims(request.inputs[1]->dims().begin() + 2, request.inputs[1]->dims().end()),
                           request.attributes)),
        shape{dims[0] * groups, dims[1] / groups, channels * window.taps(), window.outputs()} {}

  [[nodiscard]] bool is_depthwise() const { return channels == 1 && groups > 1; }

  Dims dims;
  std::int64_t groups;
  std::int64_t channels;  ///< of a group
  std::int64_t inputs;    ///< channels of the image
  Window window;
  Shape shape;
};

/// Adds what rows `depth` give to the output; filters are `depth.count` weights each.
void convolve(const Convolution& conv, Part depth, const float* input, const float* filters, float* output,
              int threads) {
  const Window& window = conv.window;
  Shape shape = conv.shape;
  shape.depth = depth.count;
  multiply_batches(
      shape, threads,
      [&](std::int64_t batch) { return filters + batch % conv.groups * shape.rows * shape.depth; },
      [&](std::int64_t batch) { return output + batch * shape.rows * shape.columns; },
      [&](std::int64_t batch, Part slab, Part positions, float* panels) {
        pack_patches(window, input + batch * conv.channels * window.inputs(),
                     {depth.first + slab.first, slab.count}, positions, usable_tiles().front().panel, panels);
      });
}

/// One channel of the image for each group.
void convolve_depthwise(const Convolution& conv, const float* input, const float* weights, const float* bias,
                        float* output, int threads) {
  convolve_planes(conv.window, input, weights, bias, output, {conv.dims[0], conv.inputs, conv.dims[1]},
                  threads);
}

/// c += sums, which are integers.
void add_sums(std::span<const float> sums, std::span<std::int32_t> c) {
  for (std::size_t i = 0; i < c.size(); ++i) c[i] = wrapped_sum(c[i], static_cast<std::int32_t>(sums[i]));
}

}  // namespace

OutputTensors matmul(const Request& request) {
  const Dims dims = request.types[0].dims();
  const Dims& a_dims = request.inputs[0]->dims();
  const Dims& b_dims = request.inputs[1]->dims();
  Shape shape{batch_count(dims), dims[dims.size() - 2], a_dims.back(), dims.back()};
  Tensor result(DType::f32, dims);
  float* c = result.mutable_view<float>().data();
  const float* a = request.data(0);
  const float* b = request.data(1);
  if (batch_count(b_dims) == 1) {  // then rows of all batches are rows of one matrix
    shape.rows *= shape.batches;
    shape.batches = 1;
    if (shape.rows <= few_rows) {
      multiply_few(shape, request.threads, a, b, c);
      return {result};
    }
  }
  const auto number_of = [&](std::int64_t batch, const Dims& operand) {
    return shape.batches == 1 ? 0 : batch_of(batch, dims, operand);
  };
  multiply_batches(
      shape, request.threads,
      [&](std::int64_t batch) { return a + number_of(batch, a_dims) * shape.rows * shape.depth; },
      [&](std::int64_t batch) { return c + batch * shape.rows * shape.columns; },
      [&](std::int64_t batch, Part slab, Part columns, float* panels) {
        const float* matrix =
            b + (number_of(batch, b_dims) * shape.depth + slab.first) * shape.columns + columns.first;
        pack_rows(slab.count, columns.count, panels,
                  [&](std::int64_t k) { return matrix + k * shape.columns; });
      });
  return {result};
}

OutputTensors matmul_integers(const Request& request) {
  const Dims dims = request.types[0].dims();
  const Dims& a_dims = request.inputs[0]->dims();
  const Dims& b_dims = request.inputs[1]->dims();
  const std::int64_t depth = a_dims.back();
  if (std::optional<Tensor> few =
          few_integers(request, {batch_count(dims), dims[dims.size() - 2], depth, dims.back()}))
    return {*few};
  const Integers left(*request.inputs[0], request.threads);
  const Integers right(*request.inputs[1], request.threads);
  const float* b = right.view().data();
  const std::int64_t steps = exact_steps(left, right, depth);
  if (steps < std::min(least_exact_steps, depth)) return {};
  Shape shape{batch_count(dims), dims[dims.size() - 2], steps, dims.back()};
  if (batch_count(b_dims) == 1) shape = {1, shape.rows * shape.batches, steps, shape.columns};
  const auto number_of = [&](std::int64_t batch, const Dims& operand) {
    return shape.batches == 1 ? 0 : batch_of(batch, dims, operand);
  };
  Slab slab(left.view(), depth);
  Tensor result(DType::i32, dims);
  const std::span<std::int32_t> c = result.mutable_view<std::int32_t>();
  std::vector<float> sums(c.size());
  for (std::int64_t first = 0; first < depth; first += steps) {
    shape.depth = std::min(steps, depth - first);
    const float* a = slab.of({first, shape.depth});
    std::ranges::fill(sums, 0.0F);
    multiply_batches(
        shape, request.threads,
        [&](std::int64_t batch) { return a + number_of(batch, a_dims) * shape.rows * shape.depth; },
        [&](std::int64_t batch) { return sums.data() + batch * shape.rows * shape.columns; },
        [&](std::int64_t batch, Part part, Part columns, float* panels) {
          const float* matrix =
              b + (number_of(batch, b_dims) * depth + first + part.first) * shape.columns + columns.first;
          pack_rows(part.count, columns.count, panels,
                    [&](std::int64_t k) { return matrix + k * shape.columns; });
        });
    add_sums(sums, c);
  }
  return {result};
}

OutputTensors conv(const Request& request) {
  const Convolution how(request);
  const float* input = request.data(0);
  const float* weights = request.data(1);
  const float* bias = optional_input(request.inputs, 2) == nullptr ? nullptr : request.data(2);
  Tensor result(DType::f32, how.dims);
  float* output = result.mutable_view<float>().data();
  if (how.is_depthwise()) {
    convolve_depthwise(how, input, weights, bias, output, request.threads);
    return {result};
  }
  add_bias(bias, how.dims[1], how.window.outputs(), how.dims[0], output);
  convolve(how, {0, how.shape.depth}, input, weights, output, request.threads);
  return {result};
}

OutputTensors conv_integers(const Request& request) {
  if (optional_input(request.inputs, 2) != nullptr) return {};
  const Convolution how(request);
  const std::int64_t depth = how.shape.depth;
  const Integers image(*request.inputs[0], request.threads);
  const Integers filters(*request.inputs[1], request.threads);
  const std::int64_t steps = exact_steps(image, filters, depth);
  if (steps < std::min(how.is_depthwise() ? depth : least_exact_steps, depth)) return {};
  const float* input = image.view().data();
  Slab slab(filters.view(), depth);
  Tensor result(DType::i32, how.dims);
  std::vector<float> sums(static_cast<std::size_t>(result.size()));
  for (std::int64_t first = 0; first < depth; first += steps) {
    const Part part = {first, std::min(steps, depth - first)};
    const float* weights = slab.of(part);
    std::ranges::fill(sums, 0.0F);
    if (how.is_depthwise())
      convolve_depthwise(how, input, weights, nullptr, sums.data(), request.threads);
    else
      convolve(how, part, input, weights, sums.data(), request.threads);
    add_sums(sums, result.mutable_view<std::int32_t>());
  }
  return {result};
}

}  // namespace sylvite::quick
