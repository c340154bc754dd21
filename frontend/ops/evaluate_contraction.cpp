// Reference semantics of matmul, convolution and attention: all through one tile product in double (or, for
// integers, in 64 bits that wrap around), so that they serve as the oracle of whole models.

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "frontend/ops/attention_scale.h"
#include "frontend/ops/batches.h"
#include "frontend/ops/evaluate.h"
#include "frontend/values/storage.h"

namespace sylvite {
namespace {

constexpr std::int64_t tile_columns = 64;

/// c[rows, columns] += a[rows, depth] b[depth, columns], with columns <= tile_columns; all dense.
template <typename C>
void multiply_tile(const C* a, const C* b, C* c, std::int64_t rows, std::int64_t depth,
                   std::int64_t columns) {
  constexpr std::int64_t block = 4;
  std::int64_t row = 0;
  for (; row + block <= rows; row += block) {
    C* c0 = c + row * columns;
    C* c1 = c0 + columns;
    C* c2 = c1 + columns;
    C* c3 = c2 + columns;
    const C* a0 = a + row * depth;
    for (std::int64_t k = 0; k < depth; ++k) {
      const C* b_row = b + k * columns;
      const C x0 = a0[k];
      const C x1 = a0[depth + k];
      const C x2 = a0[2 * depth + k];
      const C x3 = a0[3 * depth + k];
      for (std::int64_t j = 0; j < columns; ++j) {
        const C y = b_row[j];
        c0[j] += x0 * y;
        c1[j] += x1 * y;
        c2[j] += x2 * y;
        c3[j] += x3 * y;
      }
    }
  }
  for (; row < rows; ++row) {
    for (std::int64_t k = 0; k < depth; ++k) {
      const C x = a[row * depth + k];
      for (std::int64_t j = 0; j < columns; ++j) c[row * columns + j] += x * b[k * columns + j];
    }
  }
}

/// c[rows, columns] = a[rows, depth] b, where fill(first, count, tile) writes columns [first, first + count)
/// of b as a dense [depth, count] tile.
template <typename C, typename Fill>
void multiply(const C* a, C* c, std::int64_t rows, std::int64_t depth, std::int64_t columns, Fill fill) {
  std::vector<C> b_tile(static_cast<std::size_t>(depth * tile_columns));
  std::vector<C> c_tile(static_cast<std::size_t>(rows * tile_columns));
  for (std::int64_t first = 0; first < columns; first += tile_columns) {
    const std::int64_t count = std::min(tile_columns, columns - first);
    fill(first, count, b_tile.data());
    std::fill(c_tile.begin(), c_tile.end(), C{0});
    multiply_tile(a, b_tile.data(), c_tile.data(), rows, depth, count);
    for (std::int64_t row = 0; row < rows; ++row)
      std::copy_n(c_tile.data() + row * count, count, c + row * columns + first);
  }
}

/// Integers multiply as unsigned 64-bit words: the low bits are the same for signed ones.
template <typename C>
std::vector<C> decode_words(const Tensor& tensor) {
  if constexpr (std::is_same_v<C, double>) {
    return decode<double>(tensor);
  } else {
    const std::vector<std::int64_t> values = decode<std::int64_t>(tensor);
    return {values.begin(), values.end()};
  }
}

template <typename C>
Tensor matmul(const Tensor& left, const Tensor& right, const TensorType& type) {
  const std::vector<C> a = decode_words<C>(left);
  const std::vector<C> b = decode_words<C>(right);
  const Dims dims = type.dims();
  const std::int64_t rows = dims[dims.size() - 2];
  const std::int64_t columns = dims.back();
  const std::int64_t depth = left.dims().back();
  std::vector<C> c(static_cast<std::size_t>(type.element_count()));
  for (std::int64_t batch = 0; !c.empty() && batch < batch_count(dims); ++batch) {
    const C* a_matrix = a.data() + batch_of(batch, dims, left.dims()) * rows * depth;
    const C* b_matrix = b.data() + batch_of(batch, dims, right.dims()) * depth * columns;
    multiply(a_matrix, c.data() + batch * rows * columns, rows, depth, columns,
             [&](std::int64_t first, std::int64_t count, C* tile) {
               for (std::int64_t k = 0; k < depth; ++k)
                 std::copy_n(b_matrix + k * columns + first, count, tile + k * count);
             });
  }
  return encode(type.dtype, dims, c);
}

/// A convolution with its spatial dims padded to three: depth, height, width.
struct Window {
  Dims input, output, kernel, strides, dilations, pads;  // three entries each; pads: the begins
};

Dims three(const Dims& dims, std::size_t skip, std::int64_t filler) {
  Dims result(3, filler);
  const std::size_t rank = dims.size() - skip;
  std::copy(dims.begin() + static_cast<std::ptrdiff_t>(skip), dims.end(),
            result.end() - static_cast<std::ptrdiff_t>(rank));
  return result;
}

Window make_window(const Dims& input, const Dims& weights, const Dims& output, const Attributes& attributes) {
  Dims begins = attributes.integers("pads");
  begins.resize(begins.size() / 2);
  return {three(input, 2, 1),
          three(output, 2, 1),
          three(weights, 2, 1),
          three(attributes.integers("strides"), 0, 1),
          three(attributes.integers("dilations"), 0, 1),
          three(begins, 0, 0)};
}

/// Columns [first, first + count) of the matrix [channels * kernel, output positions] whose product with the
/// weights is the convolution: what each weight sees at each output position, zero in the border.
template <typename C>
void fill_columns(const Window& w, const C* input, std::int64_t channels, std::int64_t first,
                  std::int64_t count, C* tile) {
  const std::int64_t plane = w.input[0] * w.input[1] * w.input[2];
  for (std::int64_t channel = 0; channel < channels; ++channel) {
    for (std::int64_t tap = 0; tap < w.kernel[0] * w.kernel[1] * w.kernel[2]; ++tap) {
      const std::int64_t kx = tap % w.kernel[2];
      const std::int64_t ky = tap / w.kernel[2] % w.kernel[1];
      const std::int64_t kz = tap / w.kernel[2] / w.kernel[1];
      for (std::int64_t j = first; j < first + count; ++j) {
        const std::int64_t x = j % w.output[2] * w.strides[2] - w.pads[2] + kx * w.dilations[2];
        const std::int64_t y = j / w.output[2] % w.output[1] * w.strides[1] - w.pads[1] + ky * w.dilations[1];
        const std::int64_t z = j / w.output[2] / w.output[1] * w.strides[0] - w.pads[0] + kz * w.dilations[0];
        const bool inside = x >= 0 && x < w.input[2] && y >= 0 && y < w.input[1] && z >= 0 && z < w.input[0];
        *tile++ = inside ? input[channel * plane + (z * w.input[1] + y) * w.input[2] + x] : C{0};
      }
    }
  }
}

template <typename C>
Tensor convolve(InputTensors inputs, const Attributes& attributes, const TensorType& type) {
  const Dims dims = type.dims();
  const Dims& filter = inputs[1]->dims();
  const Window w = make_window(inputs[0]->dims(), filter, dims, attributes);
  const std::vector<C> x = decode_words<C>(*inputs[0]);
  const std::vector<C> weights = decode_words<C>(*inputs[1]);
  std::vector<C> out(static_cast<std::size_t>(type.element_count()));
  const std::int64_t groups = attributes.integer("groups");
  const std::int64_t rows = filter[0] / groups;
  const std::int64_t channels = filter[1];
  const std::int64_t plane = w.input[0] * w.input[1] * w.input[2];
  const std::int64_t depth = channels * w.kernel[0] * w.kernel[1] * w.kernel[2];
  const std::int64_t positions = w.output[0] * w.output[1] * w.output[2];
  for (std::int64_t part = 0; !out.empty() && part < dims[0] * groups; ++part) {
    const C* input = x.data() + part * channels * plane;
    multiply(weights.data() + part % groups * rows * depth, out.data() + part * rows * positions, rows, depth,
             positions, [&](std::int64_t first, std::int64_t count, C* tile) {
               fill_columns(w, input, channels, first, count, tile);
             });
  }
  if (const Tensor* bias = optional_input(inputs, 2)) {
    const std::vector<C> values = decode_words<C>(*bias);
    for (std::size_t i = 0; i < out.size(); ++i)
      out[i] += values[i / static_cast<std::size_t>(positions) % values.size()];
  }
  return encode(type.dtype, dims, out);
}

struct AttentionOptions {
  double scale = 1;
  double softcap = 0;
  bool causal = false;
};

constexpr double minus_infinity = -std::numeric_limits<double>::infinity();

/// Raw scores of one query against s positions become probabilities. `bias` is added (-inf hides a position).
void softmax_scores(double* scores, const double* bias, std::int64_t count, std::int64_t row,
                    const AttentionOptions& options) {
  for (std::int64_t s = 0; s < count; ++s) {
    double score = scores[s] * options.scale;
    if (options.softcap > 0) score = options.softcap * std::tanh(score / options.softcap);
    if (bias != nullptr) score += bias[s];
    scores[s] = options.causal && s > row ? minus_infinity : score;
  }
  double peak = minus_infinity;
  for (std::int64_t s = 0; s < count; ++s) peak = std::max(peak, scores[s]);
  double sum = 0;
  for (std::int64_t s = 0; s < count; ++s) sum += scores[s] = std::exp(scores[s] - peak);
  for (std::int64_t s = 0; s < count; ++s) scores[s] /= sum;
}

/// The mask as numbers to add, repeated to the dims of the scores; empty without a mask.
std::vector<double> mask_bias(const Tensor* mask, const Dims& scores) {
  if (mask == nullptr) return {};
  std::vector<double> bias = decode<double>(expand(*mask, scores));
  if (mask->dtype() != DType::boolean) return bias;
  for (double& value : bias) value = value != 0 ? 0 : minus_infinity;
  return bias;
}

/// The heads of attention, and their scores.
struct AttentionHeads {
  std::int64_t count, rows, keys, depth;
  double scale;
  bool is_causal;
  std::vector<double> bias;

  AttentionHeads(const Dims& q, const Dims& k, const Tensor* mask, const Attributes& attributes)
      : count(batch_count(q)),
        rows(q[q.size() - 2]),
        keys(k[k.size() - 2]),
        depth(q.back()),
        scale(attention_scale(attributes, depth)),
        is_causal(attributes.integer("causal") != 0) {
    Dims scores = q;
    scores.back() = keys;
    bias = mask_bias(mask, scores);
  }
  /// -inf where the row does not see the key.
  [[nodiscard]] double score(const std::vector<double>& q, const std::vector<double>& k, std::int64_t head,
                             std::int64_t row, std::int64_t key) const {
    if (is_causal && key > row) return minus_infinity;
    const double added = bias.empty() ? 0 : bias[static_cast<std::size_t>((head * rows + row) * keys + key)];
    return scale * product(q, k, head, row, key) + added;
  }
  /// Of a row of `x` [rows, depth] and one of `y` [keys, depth].
  [[nodiscard]] double product(const std::vector<double>& x, const std::vector<double>& y, std::int64_t head,
                               std::int64_t row, std::int64_t key) const {
    double sum = 0;
    for (std::int64_t d = 0; d < depth; ++d)
      sum += x[static_cast<std::size_t>((head * rows + row) * depth + d)] *
             y[static_cast<std::size_t>((head * keys + key) * depth + d)];
    return sum;
  }
};

}  // namespace

std::int64_t batch_of(std::int64_t batch, const Dims& result, const Dims& dims) {
  std::int64_t position = 0;
  std::int64_t stride = 1;
  const std::size_t lead = result.size() - dims.size();
  for (std::size_t i = result.size() - 2; i-- > 0;) {
    const std::int64_t coordinate = batch % result[i];
    batch /= result[i];
    if (i < lead) continue;
    const std::int64_t extent = dims[i - lead];
    if (extent != 1) position += coordinate * stride;
    stride *= extent;
  }
  return position;
}

OutputTensors evaluate_matmul(Op, InputTensors inputs, const Attributes&, ResultTypes types) {
  if (is_float(types[0].dtype)) return {matmul<double>(*inputs[0], *inputs[1], types[0])};
  return {matmul<std::uint64_t>(*inputs[0], *inputs[1], types[0])};
}

OutputTensors evaluate_conv(Op, InputTensors inputs, const Attributes& attributes, ResultTypes types) {
  if (is_float(types[0].dtype)) return {convolve<double>(inputs, attributes, types[0])};
  return {convolve<std::uint64_t>(inputs, attributes, types[0])};
}

OutputTensors evaluate_filter_gradient(Op, InputTensors inputs, const Attributes& attributes,
                                       ResultTypes types) {
  const Dims dims = types[0].dims(), gradient = inputs[0]->dims(), x = inputs[1]->dims();
  const Dims& kernel = attributes.integers("kernel");
  Dims filter = {dims[2], x[1] / attributes.integer("groups")};
  filter.insert(filter.end(), kernel.begin(), kernel.end());
  const Window w = make_window(x, filter, gradient, attributes);
  const std::int64_t plane = w.input[0] * w.input[1] * w.input[2],
                     pixels = w.output[0] * w.output[1] * w.output[2];
  const std::int64_t side_by_side = attributes.integer("joined") != 0 ? kernel.back() : 1;
  const std::int64_t outputs = dims[2], channels = dims[3] / side_by_side, taps = dims[1] * side_by_side;
  const std::int64_t rows = outputs / attributes.integer("groups");
  const std::int64_t part = filter_gradient_part(gradient, attributes.integer("parts"));
  const std::vector<double> grads = decode<double>(*inputs[0]), values = decode<double>(*inputs[1]);
  std::vector<double> met(static_cast<std::size_t>(channels * taps)),
      sums(static_cast<std::size_t>(types[0].element_count()));
  for (std::int64_t pixel = 0; pixel < gradient[0] * pixels && !sums.empty(); ++pixel) {
    const std::int64_t image = pixel / pixels, at = pixel % pixels;
    for (std::int64_t output = 0; output < outputs; ++output) {
      const std::int64_t group = output / rows;
      if (output % rows == 0)
        fill_columns(w, values.data() + (image * x[1] + group * channels) * plane, channels, at, 1,
                     met.data());
      const double grad = grads[static_cast<std::size_t>((image * outputs + output) * pixels + at)];
      for (std::int64_t tap = 0; tap < taps; ++tap) {
        const std::int64_t of_line = (pixel / part * dims[1] + tap / side_by_side) * outputs + output;
        const std::int64_t to = (of_line * side_by_side + tap % side_by_side) * channels;
        for (std::int64_t c = 0; c < channels; ++c)
          sums[static_cast<std::size_t>(to + c)] += grad * met[static_cast<std::size_t>(c * taps + tap)];
      }
    }
  }
  return {encode(types[0].dtype, dims, sums)};
}

OutputTensors evaluate_attention(Op, InputTensors inputs, const Attributes& attributes, ResultTypes types) {
  const Dims dims = types[0].dims();
  const Dims& k_dims = inputs[1]->dims();
  const std::int64_t rows = dims[dims.size() - 2];
  const std::int64_t positions = k_dims[k_dims.size() - 2];
  const std::int64_t depth = k_dims.back();
  const std::int64_t columns = dims.back();
  const AttentionOptions options{attention_scale(attributes, depth), attributes.real("softcap"),
                                 attributes.integer("causal") != 0};
  const std::vector<double> q = decode<double>(*inputs[0]);
  const std::vector<double> k = decode<double>(*inputs[1]);
  const std::vector<double> v = decode<double>(*inputs[2]);
  Dims score_dims = dims;
  score_dims.back() = positions;
  const std::vector<double> bias = mask_bias(optional_input(inputs, 3), score_dims);
  std::vector<double> scores(static_cast<std::size_t>(rows * positions));
  std::vector<double> out(static_cast<std::size_t>(types[0].element_count()));
  for (std::int64_t batch = 0; !out.empty() && batch < batch_count(dims); ++batch) {
    const double* k_matrix = k.data() + batch_of(batch, dims, k_dims) * positions * depth;
    const double* v_matrix = v.data() + batch_of(batch, dims, inputs[2]->dims()) * positions * columns;
    multiply(q.data() + batch_of(batch, dims, inputs[0]->dims()) * rows * depth, scores.data(), rows, depth,
             positions, [&](std::int64_t first, std::int64_t count, double* tile) {
               for (std::int64_t d = 0; d < depth; ++d)
                 for (std::int64_t s = 0; s < count; ++s) *tile++ = k_matrix[(first + s) * depth + d];
             });
    for (std::int64_t row = 0; row < rows; ++row) {
      const double* row_bias = bias.empty() ? nullptr : bias.data() + (batch * rows + row) * positions;
      softmax_scores(scores.data() + row * positions, row_bias, positions, row, options);
    }
    multiply(scores.data(), out.data() + batch * rows * columns, rows, positions, columns,
             [&](std::int64_t first, std::int64_t count, double* tile) {
               for (std::int64_t s = 0; s < positions; ++s)
                 std::copy_n(v_matrix + s * columns + first, count, tile + s * count);
             });
  }
  return {encode(types[0].dtype, dims, out)};
}

OutputTensors evaluate_attention_sums(Op, InputTensors inputs, const Attributes& attributes,
                                      ResultTypes types) {
  const AttentionHeads heads(inputs[0]->dims(), inputs[1]->dims(), optional_input(inputs, 2), attributes);
  const std::vector<double> q = decode<double>(*inputs[0]), k = decode<double>(*inputs[1]);
  std::vector<double> out;
  std::vector<double> scores(static_cast<std::size_t>(heads.keys));
  for (std::int64_t head = 0; head < heads.count; ++head) {
    for (std::int64_t row = 0; row < heads.rows; ++row) {
      for (std::int64_t key = 0; key < heads.keys; ++key)
        scores[static_cast<std::size_t>(key)] = heads.score(q, k, head, row, key);
      double peak = minus_infinity, sum = 0;
      for (const double score : scores) peak = std::max(peak, score);
      for (const double score : scores) sum += std::exp(score - peak);
      out.push_back(peak == minus_infinity ? minus_infinity : peak + std::log(sum));
    }
  }
  return {encode(types[0].dtype, types[0].dims(), out)};
}

OutputTensors evaluate_attention_gradient(Op, InputTensors inputs, const Attributes& attributes,
                                          ResultTypes types) {
  const AttentionHeads heads(inputs[0]->dims(), inputs[1]->dims(), optional_input(inputs, 6), attributes);
  std::vector<std::vector<double>> in;
  in.reserve(6);
  for (std::size_t i = 0; i < 6; ++i) in.push_back(decode<double>(*inputs[i]));
  const std::int64_t of = attributes.integer("of");
  std::vector<double> out(static_cast<std::size_t>(types[0].element_count()));
  for (std::int64_t head = 0; head < heads.count; ++head) {
    for (std::int64_t row = 0; row < heads.rows; ++row) {
      const auto at_row = static_cast<std::size_t>(head * heads.rows + row);
      for (std::int64_t key = 0; key < heads.keys; ++key) {
        const double score = heads.score(in[0], in[1], head, row, key);
        if (score == minus_infinity) continue;
        const double weight = std::exp(score - in[4][at_row]);
        const double slope =
            weight * (heads.product(in[3], in[2], head, row, key) - in[5][at_row]) * heads.scale;
        const std::size_t at_query = at_row * static_cast<std::size_t>(heads.depth);
        const auto at_key = static_cast<std::size_t>((head * heads.keys + key) * heads.depth);
        for (std::size_t d = 0; d < static_cast<std::size_t>(heads.depth); ++d) {
          if (of == 0) out[at_query + d] += slope * in[1][at_key + d];
          if (of == 1) out[at_key + d] += slope * in[0][at_query + d];
          if (of == 2) out[at_key + d] += weight * in[3][at_query + d];
        }
      }
    }
  }
  return {encode(types[0].dtype, types[0].dims(), out)};
}

}  // namespace sylvite
