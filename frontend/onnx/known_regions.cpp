#include "frontend/onnx/known_regions.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/error.h"
#include "frontend/values/storage.h"

namespace sylvite {
namespace {

/// A sampling point along an axis: its neighbours and their weights, both 0 outside of the image.
struct AxisPoint {
  std::int64_t low = 0, high = 0;
  float low_share = 0, high_share = 0;
};

/// As the operations for regions that are not known compute them, in f32.
std::vector<AxisPoint> axis_points(float start, float length, std::int64_t count, std::int64_t extent) {
  const float step = length / static_cast<float>(count);
  const auto last = static_cast<float>(extent - 1);
  std::vector<AxisPoint> points(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < points.size(); ++i) {
    const float at = start + (static_cast<float>(i) + 0.5F) * step;
    if (!(at >= -1 && at <= static_cast<float>(extent))) continue;
    const float clamped = std::clamp(at, 0.0F, last);
    const float low = std::floor(clamped);
    points[i] = {static_cast<std::int64_t>(low), static_cast<std::int64_t>(std::min(low + 1, last)),
                 1 - (clamped - low), clamped - low};
  }
  return points;
}

/// Images with their channels innermost, so that the work on all channels of a pixel is vectors.
std::vector<float> channels_innermost(const Tensor& images) {
  const Dims& dims = images.dims();
  const std::int64_t pixels = dims[2] * dims[3], channels = dims[1];
  std::vector<float> turned(static_cast<std::size_t>(images.size()));
  const float* from = images.view<float>().data();
  for (std::int64_t image = 0; image < dims[0]; ++image) {
    float* to = turned.data() + image * pixels * channels;
    for (std::int64_t pixel = 0; pixel < pixels; ++pixel)
      for (std::int64_t channel = 0; channel < channels; ++channel)
        to[pixel * channels + channel] = from[(image * channels + channel) * pixels + pixel];
  }
  return turned;
}

/// One image, and the sampling points of one region of it.
struct Region {
  const float* image;
  std::int64_t columns, channels;
  std::int64_t row_samples, column_samples;  ///< of a bin
  std::vector<AxisPoint> rows_at, columns_at;

  [[nodiscard]] const float* pixel(std::int64_t row, std::int64_t column) const {
    return image + (row * columns + column) * channels;
  }

  template <bool takes_largest>
  void add_sample(const AxisPoint& y, const AxisPoint& x, float* bin) const {
    const float* corners[] = {pixel(y.low, x.low), pixel(y.low, x.high), pixel(y.high, x.low),
                              pixel(y.high, x.high)};
    const float shares[] = {y.low_share * x.low_share, y.low_share * x.high_share, y.high_share * x.low_share,
                            y.high_share * x.high_share};
    for (std::int64_t c = 0; c < channels; ++c) {
      const float top[] = {corners[0][c] * shares[0], corners[1][c] * shares[1]};
      const float bottom[] = {corners[2][c] * shares[2], corners[3][c] * shares[3]};
      if constexpr (takes_largest)
        bin[c] = std::max(bin[c], std::max(std::max(top[0], top[1]), std::max(bottom[0], bottom[1])));
      else
        bin[c] += (top[0] + top[1]) + (bottom[0] + bottom[1]);
    }
  }

  template <bool takes_largest>
  void fold_bin(std::int64_t row, std::int64_t column, std::vector<float>& bin) const {
    std::ranges::fill(bin, takes_largest ? -std::numeric_limits<float>::infinity() : 0.0F);
    for (std::int64_t i = row * row_samples; i < (row + 1) * row_samples; ++i)
      for (std::int64_t j = column * column_samples; j < (column + 1) * column_samples; ++j)
        add_sample<takes_largest>(rows_at[static_cast<std::size_t>(i)],
                                  columns_at[static_cast<std::size_t>(j)], bin.data());
    if constexpr (!takes_largest) {
      const auto samples = static_cast<float>(row_samples * column_samples);
      for (float& value : bin) value /= samples;
    }
  }
};

/// Along one axis of a region: where it begins, and how long it is.
struct Side {
  float start, length;
  std::int64_t samples;
};

Side side_of(float low, float high, std::int64_t bins, const RoiSettings& settings) {
  const auto scale = static_cast<float>(settings.scale);
  const float offset = settings.is_half_pixel ? 0.5F : 0;
  const float start = low * scale - offset;
  const float length = (high * scale - offset) - start;
  return {start, settings.is_half_pixel ? length : std::max(length, 1.0F),
          samples_of_bin(low, high, bins, settings)};
}

}  // namespace

std::int64_t samples_of_bin(double low, double high, std::int64_t bins, const RoiSettings& settings) {
  if (settings.ratio > 0) return settings.ratio;
  double length = (high - low) * settings.scale;
  if (!settings.is_half_pixel) length = std::max(length, 1.0);
  const double count = std::ceil(length / static_cast<double>(bins));
  if (!(count <= 4096)) throw ModelError("a region takes {} samples a bin", count);
  return std::max<std::int64_t>(static_cast<std::int64_t>(count), 0);
}

Tensor align_known_regions(const Tensor& images, const Tensor& regions, const Tensor& batch,
                           const RoiSettings& settings) {
  const Dims& dims = images.dims();
  const std::int64_t count = regions.dims()[0], channels = dims[1], bins = settings.height * settings.width;
  Tensor result(DType::f32, {count, channels, settings.height, settings.width});
  const std::vector<float> turned = channels_innermost(images);
  float* to = result.mutable_view<float>().data();
  std::vector<float> bin(static_cast<std::size_t>(channels));
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t image = batch.as_int64(i);
    if (image < 0 || image >= dims[0]) throw ModelError("region {} is of image {} of {}", i, image, dims[0]);
    const float* corner = regions.view<float>().data() + 4 * i;
    const Side y = side_of(corner[1], corner[3], settings.height, settings);
    const Side x = side_of(corner[0], corner[2], settings.width, settings);
    if (y.samples == 0 || x.samples == 0) continue;  // zeros
    const Region region{turned.data() + image * dims[2] * dims[3] * channels,
                        dims[3],
                        channels,
                        y.samples,
                        x.samples,
                        axis_points(y.start, y.length, settings.height * y.samples, dims[2]),
                        axis_points(x.start, x.length, settings.width * x.samples, dims[3])};
    for (std::int64_t place = 0; place < bins; ++place) {
      const std::int64_t row = place / settings.width, column = place % settings.width;
      settings.takes_largest ? region.fold_bin<true>(row, column, bin)
                             : region.fold_bin<false>(row, column, bin);
      for (std::int64_t c = 0; c < channels; ++c)
        to[(i * channels + c) * bins + place] = bin[static_cast<std::size_t>(c)];
    }
  }
  return result;
}

}  // namespace sylvite
