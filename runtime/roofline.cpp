#include "runtime/roofline.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace sylvite {

std::string_view limit_name(Limit limit) {
  constexpr std::array<std::string_view, 3> names = {"compute", "L2", "weights"};
  return names.at(static_cast<std::size_t>(limit));
}

double read_rate(const MachinePeaks& peaks, std::int64_t bytes) {
  const auto& readings = peaks.readings;
  const auto above = std::ranges::lower_bound(readings, bytes, {}, &MachinePeaks::Reading::bytes);
  if (above == readings.begin()) return readings.front().rate;
  if (above == readings.end()) return readings.back().rate;
  const auto below = above - 1;
  const auto position = [&](std::int64_t value) { return std::log(static_cast<double>(value)); };
  const double share =
      (position(bytes) - position(below->bytes)) / (position(above->bytes) - position(below->bytes));
  return std::exp(std::log(below->rate) + share * (std::log(above->rate) - std::log(below->rate)));
}

Bound bound_of(const Work& work, const MachinePeaks& peaks, double weight_rate) {
  const auto own = peaks.operations.find(work.element);
  const double rate = own == peaks.operations.end() ? peaks.operations.at(DType::f32) : own->second;
  const std::array<Bound, 3> bounds = {{{Limit::compute, work.operations / rate * 1e6},
                                        {Limit::l2, work.bytes / peaks.l2_rate * 1e6},
                                        {Limit::weights, work.weight_bytes / weight_rate * 1e6}}};
  return *std::ranges::max_element(bounds, {}, &Bound::us);
}

Work work_in_form(const Work& work, const Form& form) {
  Work spared = work;
  if (form.name != "conv_winograd") return spared;
  constexpr double taps = 3;  // along each side
  const auto tile = static_cast<double>(form.at("tile"));
  const double side =
      (tile + taps - 1) / (tile * taps);  // products along a side, over those without transforms
  spared.operations *= side * side;
  return spared;
}

std::int64_t weight_bytes(const Plan& plan) {
  std::int64_t bytes = 0;
  for (const Tensor& weight : plan.weights) bytes += weight.byte_size();
  return bytes;
}

}  // namespace sylvite
