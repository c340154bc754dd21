// Operators that draw random numbers: host steps, so that every run draws anew. With attribute seed a run
// draws the same numbers every time.

#include <bit>
#include <cmath>
#include <mutex>
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

template <typename Number>
void draw(ImportContext& c, DType dtype, const Dims& dims, Number number) {
  Engine engine = engine_of(c);
  const TensorType type = make_type(dtype, dims);
  c.builder().charge(type.byte_size(), type.element_count());
  Tensor tensor(dtype, dims);
  if (dtype == DType::f32)
    for (float& each : tensor.mutable_view<float>()) each = static_cast<float>(number(engine));
  else
    for (std::int64_t i = 0; i < tensor.size(); ++i) tensor.set_double(i, number(engine));
  c.output(c.builder().constant(tensor));
}

DType dtype_or(ImportContext& c, DType fallback) {
  const std::int64_t given = c.integer("dtype", 0);
  return given == 0 ? fallback : dtype_of_onnx(static_cast<int>(given));
}

/// One distribution draws all of them: it makes two normal numbers at a time.
auto normal(ImportContext& c) {
  return [mean = c.real("mean", 0), scale = c.real("scale", 1),
          standard = std::normal_distribution<double>()](Engine& engine) mutable {
    return mean + scale * standard(engine);
  };
}

auto uniform(ImportContext& c) {
  return [low = c.real("low", 0), high = c.real("high", 1)](Engine& engine) {
    return low + (high - low) * std::uniform_real_distribution<double>()(engine);
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
  draw(c, dtype_or(c, c.input(0).dtype()), c.input(0).dims(), [&](Engine& engine) {
    return std::uniform_real_distribution<double>()(engine) < chances[at++] ? 1.0 : 0.0;
  });
}

/// Rows of unnormalised logarithms of probabilities -> sample_size classes each.
void multinomial(ImportContext& c) {
  c.wait_for_run(reason);
  const Dims dims = c.input(0).dims();
  if (dims.size() != 2) throw ModelError("the input has rank {}, expected 2", dims.size());
  const std::vector<double> logarithms = c.constant_reals(0);
  const std::int64_t samples = c.integer("sample_size", 1);
  std::int64_t drawn = 0;
  draw(c, dtype_or(c, DType::i32), {dims[0], samples}, [&](Engine& engine) {
    const auto row = logarithms.begin() + drawn++ / samples * dims[1];
    std::vector<double> weights;
    for (auto value = row; value != row + dims[1]; ++value) weights.push_back(std::exp(*value));
    return static_cast<double>(std::discrete_distribution<int>(weights.begin(), weights.end())(engine));
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
  Engine engine = engine_of(c);
  Tensor mask(DType::boolean, x.dims());
  for (std::int64_t i = 0; i < mask.size(); ++i)
    mask.set_int64(i, std::uniform_real_distribution<double>()(engine) >= ratio ? 1 : 0);
  const Sym kept = c.builder().constant(mask);
  c.output(0, where(kept, x * (1 / (1 - ratio)), 0.0));
  c.output(1, kept);
}

const OnnxOp rows[] = {
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
  return rows;
}

}  // namespace sylvite
