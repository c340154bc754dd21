// Matmul, convolution and attention: columns of the right operand are packed into panels, a tile of them at a time,
// and multiplied from there.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "base/rounding.h"
#include "frontend/ops/batches.h"
#include "frontend/quick/depthwise.h"
#include "frontend/quick/functions.h"
#include "frontend/quick/request.h"
#include "frontend/quick/share.h"
#include "frontend/quick/tile.h"
#include "frontend/quick/window.h"

namespace sylvite::quick {
namespace {

/// Products of one shape.
struct Shape {
  std::int64_t batches = 1;
  std::int64_t rows = 0;
  std::int64_t depth = 0;
  std::int64_t columns = 0;

  [[nodiscard]] double work() const {
    return static_cast<double>(batches) * static_cast<double>(rows) * static_cast<double>(depth) *
           static_cast<double>(columns);
  }
};

/// How products are shared out: each task packs its tile of columns, and multiplies some rows by it.
struct Parts {
  std::int64_t columns = 0;
  std::int64_t rows = 0;
};

Parts parts_of(const Shape& shape, const Tiles& tiles, int threads) {
  constexpr std::int64_t packed_floats = 1 << 16;  // what a second cache holds beside the left operand
  Parts parts;
  const std::int64_t fitting =
      packed_floats / std::max<std::int64_t>(shape.depth, 1) / tiles.panel * tiles.panel;
  parts.columns = std::min(std::max(fitting, tiles.panel), round_up(shape.columns, tiles.panel));
  const std::int64_t tasks = shape.batches * ceil_div(shape.columns, parts.columns);
  const std::int64_t chunks =
      std::max<std::int64_t>(1, std::int64_t{2} * threads / std::max<std::int64_t>(tasks, 1));
  parts.rows = round_up(ceil_div(shape.rows, chunks), tiles.rows);
  return parts;
}

/// Rows [first, first + count) of something.
struct Part {
  std::int64_t first = 0;
  std::int64_t count = 0;
};

/// c[batch] += a[batch] b[batch], all rows dense; pack(batch, columns, panels) packs these columns of b[batch].
template <typename Left, typename Result, typename Pack>
void multiply_batches(const Shape& shape, int threads, const Left& a, const Result& c, const Pack& pack) {
  const Tiles& tiles = usable_tiles().front();
  const Parts parts = parts_of(shape, tiles, threads);
  const std::int64_t column_parts = ceil_div(shape.columns, parts.columns);
  const std::int64_t row_parts = ceil_div(shape.rows, parts.rows);
  share_out(shape.batches * column_parts * row_parts, shape.work(), threads, [&](std::int64_t task) {
    const std::int64_t batch = task / (column_parts * row_parts);
    const std::int64_t row = task % row_parts * parts.rows;
    const std::int64_t column = task / row_parts % column_parts * parts.columns;
    const Part columns = {column, std::min(parts.columns, shape.columns - column)};
    std::vector<float> panels(static_cast<std::size_t>(round_up(columns.count, tiles.panel) * shape.depth));
    pack(batch, columns, panels.data());
    multiply_panels(tiles, a(batch) + row * shape.depth, shape.depth, panels.data(),
                    c(batch) + row * shape.columns + column, shape.columns,
                    std::min(parts.rows, shape.rows - row), shape.depth, columns.count);
  });
}

/// Panels of `count` columns, whose row k lies at row_of(k).
template <typename RowOf>
void pack_rows(std::int64_t depth, std::int64_t count, float* panels, const RowOf& row_of) {
  const std::int64_t panel = usable_tiles().front().panel;
  for (std::int64_t k = 0; k < depth; ++k) {
    const float* row = row_of(k);
    for (std::int64_t first = 0; first < count; first += panel)
      std::memcpy(panels + first * depth + k * panel, row + first,
                  static_cast<std::size_t>(std::min(panel, count - first)) * sizeof(float));
  }
}

/// The same of columns that lie one behind another, `depth` numbers each.
void pack_columns(std::int64_t depth, std::int64_t count, float* panels, const float* columns) {
  const std::int64_t panel = usable_tiles().front().panel;
  for (std::int64_t j = 0; j < count; ++j) {
    float* to = panels + j / panel * panel * depth + j % panel;
    for (std::int64_t k = 0; k < depth; ++k) to[k * panel] = columns[j * depth + k];
  }
}

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

/// What taps [tap] of channel [channel] see at output positions [first, first + count), zero outside of the image.
void read_positions(const Window& window, const float* plane, std::int64_t tap, Part positions, float* row) {
  const auto& [z_axis, y_axis, x_axis] = window.axes;
  const std::int64_t kx = tap % x_axis.kernel;
  const std::int64_t ky = tap / x_axis.kernel % y_axis.kernel;
  const std::int64_t kz = tap / x_axis.kernel / y_axis.kernel;
  const Range inside = x_axis.inside(kx);
  for (std::int64_t at = positions.first; at < positions.first + positions.count;) {
    const std::int64_t line = at / x_axis.output;
    const std::int64_t begin = at % x_axis.output;
    const std::int64_t end = std::min(x_axis.output, begin + positions.first + positions.count - at);
    const std::int64_t z = z_axis.position(line / y_axis.output, kz);
    const std::int64_t y = y_axis.position(line % y_axis.output, ky);
    float* to = row + (at - positions.first) - begin;
    const bool reads = z_axis.is_inside(z) && y_axis.is_inside(y);
    const std::int64_t from = reads ? std::clamp(inside.begin, begin, end) : end;
    const std::int64_t until = reads ? std::clamp(inside.end, from, end) : end;
    const float* source = plane + (z * y_axis.input + y) * x_axis.input + x_axis.position(0, kx);
    std::fill(to + begin, to + from, 0.0F);
    if (x_axis.stride == 1)
      std::copy(source + from, source + until, to + from);
    else
      for (std::int64_t x = from; x < until; ++x) to[x] = source[x * x_axis.stride];
    std::fill(to + until, to + end, 0.0F);
    at += end - begin;
  }
}

/// Does each output position read the input position of the same number?
bool reads_in_place(const Window& window) {
  return std::ranges::all_of(window.axes, [](const WindowAxis& axis) {
    return axis.kernel == 1 && axis.stride == 1 && axis.low == 0 && axis.input == axis.output;
  });
}

void add_bias(const float* bias, std::int64_t channels, std::int64_t positions, std::int64_t images,
              float* output) {
  for (std::int64_t i = 0; bias != nullptr && i < images * channels; ++i)
    std::fill_n(output + i * positions, positions, bias[i % channels]);
}

/// With fewer steps at a time than these nothing is gained.
constexpr std::int64_t least_exact_steps = 16;

/// Elements of i32, or narrower ones that are widened.
class Integers {
 public:
  explicit Integers(const Tensor& tensor) : tensor_(tensor) {
    if (tensor.dtype() == DType::i16) widen(tensor.view<std::int16_t>());
    if (tensor.dtype() == DType::i8) widen(tensor.view<std::int8_t>());
    if (tensor.dtype() == DType::u8) widen(tensor.view<std::uint8_t>());
  }
  [[nodiscard]] std::span<const std::int32_t> view() const {
    return tensor_.dtype() == DType::i32 ? tensor_.view<std::int32_t>()
                                         : std::span<const std::int32_t>(wide_);
  }

 private:
  template <typename Element>
  void widen(std::span<const Element> elements) {
    wide_.assign(elements.begin(), elements.end());
  }

  const Tensor& tensor_;
  std::vector<std::int32_t> wide_;
};

/// How many products of these f32 adds up without rounding, at most `depth`.
std::int64_t exact_steps(std::span<const std::int32_t> a, std::span<const std::int32_t> b,
                         std::int64_t depth) {
  constexpr double exact = 1 << 24;
  const auto largest = [](std::span<const std::int32_t> numbers) {
    const auto [least, most] = std::ranges::minmax(numbers);
    return std::max(-static_cast<double>(least), static_cast<double>(most));
  };
  if (a.empty() || b.empty()) return 0;
  return static_cast<std::int64_t>(
      std::min(static_cast<double>(depth), exact / std::max(largest(a) * largest(b), 1.0)));
}

/// Elements [part) of each row of `depth`, as f32.
void copy_slab(std::span<const std::int32_t> a, std::int64_t depth, Part part, float* slab) {
  for (const std::int32_t* row = a.data() + part.first; row < a.data() + a.size(); row += depth)
    slab = std::transform(row, row + part.count, slab, [](std::int32_t x) { return static_cast<float>(x); });
}

std::int32_t wrapped_sum(std::int32_t x, std::int32_t y) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(x) + static_cast<std::uint32_t>(y));
}

/// Few rows of integers: each is a sum of rows of b, which are read as they lie. Sums wrap around.
template <typename Element>
void multiply_few(const Shape& shape, int threads, std::span<const std::int32_t> a, const Element* b,
                  std::uint32_t* c) {
  constexpr std::int64_t part = 512;  // of columns
  share_out(ceil_div(shape.columns, part), shape.work(), threads, [&](std::int64_t task) {
    const std::int64_t first = task * part;
    const std::int64_t count = std::min(part, shape.columns - first);
    for (std::int64_t k = 0; k < shape.depth; ++k) {
      const Element* from = b + k * shape.columns + first;
      for (std::int64_t row = 0; row < shape.rows; ++row) {
        const auto x = static_cast<std::uint32_t>(a[static_cast<std::size_t>(row * shape.depth + k)]);
        std::uint32_t* to = c + row * shape.columns + first;
        for (std::int64_t j = 0; j < count; ++j) to[j] += x * static_cast<std::uint32_t>(from[j]);
      }
    }
  });
}

/// The result for few rows and one right operand; nothing for others.
std::optional<Tensor> few_integers(const Request& request, Shape shape, std::span<const std::int32_t> a) {
  shape.rows *= shape.batches;
  const Tensor& b = *request.inputs[1];
  if (batch_count(b.dims()) != 1 || shape.rows > few_rows) return std::nullopt;
  Tensor result(DType::i32, request.types[0].dims());
  auto* c = static_cast<std::uint32_t*>(result.mutable_data());
  const auto multiply = [&](const auto* elements) { multiply_few(shape, request.threads, a, elements, c); };
  switch (b.dtype()) {
    case DType::i8:
      multiply(b.view<std::int8_t>().data());
      break;
    case DType::i16:
      multiply(b.view<std::int16_t>().data());
      break;
    case DType::i32:
      multiply(b.view<std::int32_t>().data());
      break;
    default:
      return std::nullopt;
  }
  return result;
}

struct AttentionOptions {
  float scale = 1;
  float softcap = 0;
  bool causal = false;
};

/// Scores of one query become probabilities; `bias` is added (-inf hides a position).
void softmax_scores(float* scores, const float* bias, std::int64_t count, std::int64_t row,
                    const AttentionOptions& options) {
  const std::int64_t seen = options.causal ? std::min(count, row + 1) : count;
  for (std::int64_t s = 0; s < seen; ++s) {
    float score = scores[s] * options.scale;
    if (options.softcap > 0) score = options.softcap * tanh_of(score / options.softcap);
    scores[s] = bias == nullptr ? score : score + bias[s];
  }
  std::fill(scores + seen, scores + count, -std::numeric_limits<float>::infinity());
  softmax_row(scores, scores, count);
}

/// The mask as numbers to add, repeated to the dims of the scores; empty without a mask.
Tensor mask_bias(const Tensor* mask, const Dims& scores) {
  if (mask == nullptr) return {};
  Tensor repeated = expand(*mask, scores);
  if (mask->dtype() != DType::boolean) return repeated;
  Tensor bias(DType::f32, scores);
  const std::span<const bool> keeps = repeated.view<bool>();
  const std::span<float> added = bias.mutable_view<float>();
  for (std::size_t i = 0; i < added.size(); ++i)
    added[i] = keeps[i] ? 0 : -std::numeric_limits<float>::infinity();
  return bias;
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
      [&](std::int64_t batch, Part columns, float* panels) {
        const float* matrix = b + number_of(batch, b_dims) * shape.depth * shape.columns + columns.first;
        pack_rows(shape.depth, columns.count, panels,
                  [&](std::int64_t k) { return matrix + k * shape.columns; });
      });
  return {result};
}

OutputTensors matmul_integers(const Request& request) {
  const Dims dims = request.types[0].dims();
  const Dims& a_dims = request.inputs[0]->dims();
  const Dims& b_dims = request.inputs[1]->dims();
  const Integers left(*request.inputs[0]);
  const std::span<const std::int32_t> a = left.view();
  const std::int64_t depth = a_dims.back();
  if (std::optional<Tensor> few =
          few_integers(request, {batch_count(dims), dims[dims.size() - 2], depth, dims.back()}, a))
    return {*few};
  const Integers right(*request.inputs[1]);
  const std::span<const std::int32_t> b = right.view();
  const std::int64_t steps = exact_steps(a, b, depth);
  if (steps < std::min(least_exact_steps, depth)) return {};
  Shape shape{batch_count(dims), dims[dims.size() - 2], steps, dims.back()};
  if (batch_count(b_dims) == 1) shape = {1, shape.rows * shape.batches, steps, shape.columns};
  const auto number_of = [&](std::int64_t batch, const Dims& operand) {
    return shape.batches == 1 ? 0 : batch_of(batch, dims, operand);
  };
  const std::vector<float> wide_b(b.begin(), b.end());
  std::vector<float> slab(a.size() / static_cast<std::size_t>(depth) * static_cast<std::size_t>(steps));
  Tensor result(DType::i32, dims);
  const std::span<std::int32_t> c = result.mutable_view<std::int32_t>();
  std::vector<float> sums(c.size());
  for (std::int64_t first = 0; first < depth; first += steps) {
    shape.depth = std::min(steps, depth - first);
    copy_slab(a, depth, {first, shape.depth}, slab.data());
    std::ranges::fill(sums, 0.0F);
    multiply_batches(
        shape, request.threads,
        [&](std::int64_t batch) { return slab.data() + number_of(batch, a_dims) * shape.rows * shape.depth; },
        [&](std::int64_t batch) { return sums.data() + batch * shape.rows * shape.columns; },
        [&](std::int64_t batch, Part columns, float* panels) {
          const float* matrix =
              wide_b.data() + (number_of(batch, b_dims) * depth + first) * shape.columns + columns.first;
          pack_rows(shape.depth, columns.count, panels,
                    [&](std::int64_t k) { return matrix + k * shape.columns; });
        });
    for (std::size_t i = 0; i < c.size(); ++i) c[i] = wrapped_sum(c[i], static_cast<std::int32_t>(sums[i]));
  }
  return {result};
}

OutputTensors conv(const Request& request) {
  const Dims dims = request.types[0].dims();
  const Dims& input_dims = request.inputs[0]->dims();
  const Dims& filter = request.inputs[1]->dims();
  const Window window =
      make_window(input_dims, dims, Dims(filter.begin() + 2, filter.end()), request.attributes);
  const std::int64_t groups = request.attributes.integer("groups");
  const std::int64_t channels = filter[1];
  const float* input = request.data(0);
  const float* weights = request.data(1);
  const float* bias = optional_input(request.inputs, 2) == nullptr ? nullptr : request.data(2);
  Tensor result(DType::f32, dims);
  float* output = result.mutable_view<float>().data();
  if (channels == 1 && groups > 1) {
    convolve_planes(window, input, weights, bias, output, {dims[0], input_dims[1], dims[1]}, request.threads);
    return {result};
  }
  const Shape shape{dims[0] * groups, filter[0] / groups, channels * window.taps(), window.outputs()};
  add_bias(bias, dims[1], window.outputs(), dims[0], output);
  const bool in_place = reads_in_place(window);
  multiply_batches(
      shape, request.threads,
      [&](std::int64_t batch) { return weights + batch % groups * shape.rows * shape.depth; },
      [&](std::int64_t batch) { return output + batch * shape.rows * shape.columns; },
      [&](std::int64_t batch, Part positions, float* panels) {
        std::vector<float> row(static_cast<std::size_t>(positions.count));
        pack_rows(shape.depth, positions.count, panels, [&](std::int64_t k) -> const float* {
          const float* plane = input + (batch * channels + k / window.taps()) * window.inputs();
          if (in_place) return plane + positions.first;
          read_positions(window, plane, k % window.taps(), positions, row.data());
          return row.data();
        });
      });
  return {result};
}

OutputTensors attention(const Request& request) {
  const Dims dims = request.types[0].dims();
  const Dims& q_dims = request.inputs[0]->dims();
  const Dims& k_dims = request.inputs[1]->dims();
  const Dims& v_dims = request.inputs[2]->dims();
  const std::int64_t rows = dims[dims.size() - 2];
  const std::int64_t positions = k_dims[k_dims.size() - 2];
  const Shape scored{1, rows, k_dims.back(), positions};
  const Shape summed{1, rows, positions, dims.back()};
  AttentionOptions options{static_cast<float>(request.attributes.real("scale")),
                           static_cast<float>(request.attributes.real("softcap")),
                           request.attributes.integer("causal") != 0};
  if (options.scale == 0) options.scale = 1 / std::sqrt(static_cast<float>(scored.depth));
  Dims score_dims = dims;
  score_dims.back() = positions;
  const Tensor mask = mask_bias(optional_input(request.inputs, 3), score_dims);
  const float* bias = mask.size() == 0 ? nullptr : mask.view<float>().data();
  Tensor result(DType::f32, dims);
  float* output = result.mutable_view<float>().data();
  const std::int64_t batches = batch_count(dims);
  share_out(batches, static_cast<double>(batches) * (scored.work() + summed.work()), request.threads,
            [&](std::int64_t batch) {
              const float* q = request.data(0) + batch_of(batch, dims, q_dims) * rows * scored.depth;
              const float* k = request.data(1) + batch_of(batch, dims, k_dims) * positions * scored.depth;
              const float* v = request.data(2) + batch_of(batch, dims, v_dims) * positions * summed.columns;
              std::vector<float> scores(static_cast<std::size_t>(rows * positions));
              multiply_batches(
                  scored, 1, [&](std::int64_t) { return q; }, [&](std::int64_t) { return scores.data(); },
                  [&](std::int64_t, Part columns, float* panels) {
                    pack_columns(scored.depth, columns.count, panels, k + columns.first * scored.depth);
                  });
              for (std::int64_t row = 0; row < rows; ++row)
                softmax_scores(scores.data() + row * positions,
                               bias == nullptr ? nullptr : bias + (batch * rows + row) * positions, positions,
                               row, options);
              multiply_batches(
                  summed, 1, [&](std::int64_t) { return scores.data(); },
                  [&](std::int64_t) { return output + batch * rows * summed.columns; },
                  [&](std::int64_t, Part columns, float* panels) {
                    pack_rows(positions, columns.count, panels,
                              [&](std::int64_t s) { return v + s * summed.columns + columns.first; });
                  });
            });
  return {result};
}

}  // namespace sylvite::quick
