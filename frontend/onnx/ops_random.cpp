// Operators that draw random numbers: host steps, so that every run draws anew. With attribute seed a run
// draws the same numbers every time.

#include <algorithm>
#include <bit>
#include <cmath>
#include <mutex>
#include <numbers>
#include <numeric>
#include <random>

#include "base/error.h"
#include "frontend/onnx/ops.h"
#include "frontend/onnx/tensor.h"

namespace sylvite {
namespace {

constexpr const char* reason = "draws random numbers at every run";

using Engine = std::mt19937_64;

/// Asking the machine for each takes as long as drawing thousands.
std::uint64_t fresh_seed() {
  static std::mutex mutex;
  static Engine seeds(std::random_device{}());
  const std::scoped_lock lock(mutex);
  return seeds();
}

Engine engine_of(ImportContext& c) {
  c.wait_for_run(reason);
  if (!c.has_attribute("seed")) return Engine(fresh_seed());
  const bool is_whole = c.op_type() == "Dropout";  // an integer there, a float everywhere else
  return Engine(is_whole ? static_cast<std::uint64_t>(c.integer("seed", 0))
                         : std::bit_cast<std::uint64_t>(c.real("seed", 0)));
}

/// Uniform numbers in [0, 1): of 53 bits for f64, else two of 24 bits from each word of the engine.
class Draws {
 public:
  Draws(Engine engine, DType dtype) : engine_(engine), is_wide_(dtype == DType::f64) {}

  double unit() {
    if (is_wide_) return static_cast<double>(engine_() >> 11) * 0x1p-53;
    has_half_ = !has_half_;
    word_ = has_half_ ? engine_() : word_ >> 32;
    return static_cast<double>(static_cast<std::uint32_t>(word_) >> 8) * 0x1p-24;
  }

  /// A standard normal number; two are made at a time, by Box and Muller.
  double normal() {
    if (has_normal_ = !has_normal_; !has_normal_) return other_;
    if (is_wide_) return pair_of<double>(static_cast<double>((engine_() >> 11) + 1) * 0x1p-53);
    const std::uint64_t word =
        engine_();  // the logarithm's number has more bits than 24: they are its far ends
    return pair_of<float>(static_cast<float>((word >> 24) + 1) * 0x1p-40F);
  }

 private:
  /// `positive` is in (0, 1].
  template <typename Real>
  double pair_of(Real positive) {
    const Real radius = std::sqrt(-2 * std::log(positive));
    const Real angle = 2 * std::numbers::pi_v<Real> * static_cast<Real>(unit());
    other_ = radius * std::sin(angle);
    return radius * std::cos(angle);
  }

  Engine engine_;
  bool is_wide_;
  bool has_half_ = false, has_normal_ = false;
  std::uint64_t word_ = 0;
  double other_ = 0;
};

template <typename Number>
void draw(ImportContext& c, DType dtype, const Dims& dims, Number number) {
  Draws draws(engine_of(c), dtype);
  const TensorType type = make_type(dtype, dims);
  c.builder().charge(type.byte_size(), type.element_count());
  Tensor tensor(dtype, dims);
  if (dtype == DType::f32)
    for (float& each : tensor.mutable_view<float>()) each = static_cast<float>(number(draws));
  else
    for (std::int64_t i = 0; i < tensor.size(); ++i) tensor.set_double(i, number(draws));
  c.output(c.builder().constant(tensor));
}

DType dtype_or(ImportContext& c, DType fallback) {
  const std::int64_t given = c.integer("dtype", 0);
  return given == 0 ? fallback : dtype_of_onnx(static_cast<int>(given));
}

auto normal(ImportContext& c) {
  return [mean = c.real("mean", 0), scale = c.real("scale", 1)](Draws& draws) {
    return mean + scale * draws.normal();
  };
}

auto uniform(ImportContext& c) {
  return [low = c.real("low", 0), high = c.real("high", 1)](Draws& draws) {
    return low + (high - low) * draws.unit();
  };
}

template <auto distribution>
void random_of_shape(ImportContext& c) {
  draw(c, dtype_or(c, DType::f32), c.integers("shape"), distribution(c));
}

template <auto distribution>
void random_like(ImportContext& c) {
  draw(c, dtype_or(c, c.input(0).dtype()), c.input(0).dims(), distribution(c));
}

void bernoulli(ImportContext& c) {
  c.wait_for_run(reason);
  const std::vector<double> chances = c.constant_reals(0);
  std::size_t at = 0;
  draw(c, dtype_or(c, c.input(0).dtype()), c.input(0).dims(),
       [&](Draws& draws) { return draws.unit() < chances[at++] ? 1.0 : 0.0; });
}

/// Rows of unnormalised logarithms of probabilities -> sample_size classes each.
void multinomial(ImportContext& c) {
  c.wait_for_run(reason);
  const Dims dims = c.input(0).dims();
  if (dims.size() != 2) throw ModelError("the input has rank {}, expected 2", dims.size());
  const std::vector<double> logarithms = c.constant_reals(0);
  const std::int64_t samples = c.integer("sample_size", 1);
  std::int64_t drawn = 0;
  std::vector<double> sums(static_cast<std::size_t>(dims[1]));
  draw(c, dtype_or(c, DType::i32), {dims[0], samples}, [&](Draws& draws) {
    if (drawn % samples == 0) {  // of a row
      const auto row = logarithms.begin() + drawn / samples * dims[1];
      const double largest = *std::max_element(row, row + dims[1]);
      std::transform_inclusive_scan(row, row + dims[1], sums.begin(), std::plus<>(),
                                    [&](double value) { return std::exp(value - largest); });
    }
    ++drawn;
    const auto found = std::upper_bound(sums.begin(), sums.end(), draws.unit() * sums.back());
    return static_cast<double>(std::min<std::ptrdiff_t>(found - sums.begin(), dims[1] - 1));
  });
}

/// Without training_mode nothing is dropped, and the mask says so. Up to opset 11 there is no training mode.
void dropout(ImportContext& c) {
  const Sym x = c.input(0);
  const bool is_training = c.opset() >= 12 && c.has_input(2) && c.constant_flag(2);
  const double ratio = c.has_input(1) && is_training ? c.constant_real(1) : 0.5;
  const DType mask_dtype = c.opset() >= 10 ? DType::boolean : x.dtype();
  if (!is_training || ratio == 0) {
    c.output(0, x);
    if (c.wants_output(1)) c.output(1, c.builder().filled(mask_dtype, x.dims(), 1));
    return;
  }
  Draws draws(engine_of(c), DType::f32);
  Tensor mask(DType::boolean, x.dims());
  for (bool& is_kept : mask.mutable_view<bool>()) is_kept = draws.unit() >= ratio;
  const Sym kept = c.builder().constant(mask);
  c.output(0, where(kept, x * (1 / (1 - ratio)), 0.0));
  c.output(1, kept);
}

const OnnxOp random_rows[] = {
    {"Bernoulli", 15, bernoulli},
    {"Dropout", 7, dropout},
    {"Multinomial", 7, multinomial},
    {"RandomNormal", 1, random_of_shape<normal>},
    {"RandomNormalLike", 1, random_like<normal>},
    {"RandomUniform", 1, random_of_shape<uniform>},
    {"RandomUniformLike", 1, random_like<uniform>},
};

}  // namespace

std::span<const OnnxOp> onnx_random_ops() {
  return random_rows;
}

}  // namespace sylvite
