// Pooling, and convolutions whose groups have one channel: a row of the output at a time.

#include <cmath>
#include <limits>

#include "frontend/quick/depthwise.h"
#include "frontend/quick/functions.h"
#include "frontend/quick/request.h"
#include "frontend/quick/share.h"
#include "frontend/quick/window.h"

namespace sylvite::quick {
namespace {

/// For each output of an axis, how many taps count: those inside, or all that are not beyond the padding.
std::vector<float> tap_counts(const WindowAxis& axis, bool padding_counts) {
  std::vector<float> counts(static_cast<std::size_t>(axis.output));
  for (std::int64_t at = 0; at < axis.output; ++at)
    for (std::int64_t tap = 0; tap < axis.kernel; ++tap) {
      const std::int64_t place = axis.position(at, tap);
      if (padding_counts ? place < axis.input + axis.high : axis.is_inside(place))
        ++counts[static_cast<std::size_t>(at)];
    }
  return counts;
}

/// Sums of windows become means.
class Means {
 public:
  Means(const Window& window, bool padding_counts) : lines_(window.axes[1].output) {
    for (std::size_t i = 0; i < 3; ++i) counts_[i] = tap_counts(window.axes[i], padding_counts);
  }
  void finish(float* row, std::int64_t line) const {
    const float above = counts_[0][static_cast<std::size_t>(line / lines_)] *
                        counts_[1][static_cast<std::size_t>(line % lines_)];
    for (std::size_t x = 0; x < counts_[2].size(); ++x) {
      const float count = above * counts_[2][x];
      row[x] = count == 0 ? 0 : row[x] / count;
    }
  }

 private:
  std::int64_t lines_;
  std::array<std::vector<float>, 3> counts_;
};

}  // namespace

OutputTensors pool(const Request& request) {
  const Dims dims = request.types[0].dims();
  const Window window =
      make_window(request.inputs[0]->dims(), dims, request.attributes.integers("kernel"), request.attributes);
  const WindowAxis& x_axis = window.axes[2];
  const bool is_mean = request.op == Op::avg_pool;
  const Means means(window, is_mean && request.attributes.integer("count_include_pad") != 0);
  const std::int64_t lines = window.outputs() / x_axis.output;
  Tensor result(DType::f32, dims);
  const float* input = request.data(0);
  float* output = result.mutable_view<float>().data();
  const auto one_plane = [&](std::int64_t plane) {
    for (std::int64_t line = 0; line < lines; ++line) {
      float* row = output + (plane * lines + line) * x_axis.output;
      if (!is_mean) std::fill_n(row, x_axis.output, -std::numeric_limits<float>::infinity());
      for_rows(window, input + plane * window.inputs(), line, [&](const float* from, std::int64_t) {
        if (is_mean)
          for_taps(x_axis, from, row, [](float& sum, float x, std::int64_t) { sum += x; });
        else
          for_taps(x_axis, from, row, [](float& most, float x, std::int64_t) { most = larger(most, x); });
      });
      if (is_mean) means.finish(row, line);
    }
  };
  share_out(dims[0] * dims[1], static_cast<double>(result.size() * window.taps()), request.threads,
            one_plane);
  return {result};
}

void convolve_planes(const Window& window, const float* input, const float* weights, const float* bias,
                     float* output, const PlaneCounts& counts, int threads) {
  const WindowAxis& x_axis = window.axes[2];
  const std::int64_t lines = window.outputs() / x_axis.output;
  const auto one_plane = [&](std::int64_t plane) {
    const std::int64_t channel = plane % counts.outputs;
    const std::int64_t source =
        plane / counts.outputs * counts.inputs + channel / (counts.outputs / counts.inputs);
    const float* taps = weights + channel * window.taps();
    for (std::int64_t line = 0; line < lines; ++line) {
      float* row = output + (plane * lines + line) * x_axis.output;
      if (bias != nullptr) std::fill_n(row, x_axis.output, bias[channel]);
      for_rows(window, input + source * window.inputs(), line, [&](const float* from, std::int64_t first) {
        for_taps(x_axis, from, row,
                 [&](float& sum, float x, std::int64_t tap) { sum += x * taps[first + tap]; });
      });
    }
  };
  const std::int64_t planes = counts.images * counts.outputs;
  share_out(planes, static_cast<double>(planes * window.outputs() * window.taps()), threads, one_plane);
}

}  // namespace sylvite::quick
