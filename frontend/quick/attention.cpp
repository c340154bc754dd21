// Attention: for each batch, two products and the softmax between them.

#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "frontend/ops/batches.h"
#include "frontend/quick/functions.h"
#include "frontend/quick/products.h"
#include "frontend/quick/request.h"
#include "frontend/quick/vectors.h"

namespace sylvite::quick {
namespace {

/// As pack_rows, of columns that lie `stride` apart.
void pack_columns(std::int64_t depth, std::int64_t count, float* panels, const float* columns,
                  std::int64_t stride) {
  const std::int64_t panel = usable_tiles().front().panel;
  for (std::int64_t j = 0; j < count; ++j) {
    float* to = panels + j / panel * panel * depth + j % panel;
    for (std::int64_t k = 0; k < depth; ++k) to[k * panel] = columns[j * stride + k];
  }
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
                  [&](std::int64_t, Part depth, Part columns, float* panels) {
                    pack_columns(depth.count, columns.count, panels,
                                 k + columns.first * scored.depth + depth.first, scored.depth);
                  });
              float* const first = scores.data();
              in_vectors([=, &options] {
                for (std::int64_t row = 0; row < rows; ++row)
                  softmax_scores(first + row * positions,
                                 bias == nullptr ? nullptr : bias + (batch * rows + row) * positions,
                                 positions, row, options);
              });
              multiply_batches(
                  summed, 1, [&](std::int64_t) { return scores.data(); },
                  [&](std::int64_t) { return output + batch * rows * summed.columns; },
                  [&](std::int64_t, Part depth, Part columns, float* panels) {
                    pack_rows(depth.count, columns.count, panels, [&](std::int64_t s) {
                      return v + (depth.first + s) * summed.columns + columns.first;
                    });
                  });
            });
  return {result};
}

}  // namespace sylvite::quick
