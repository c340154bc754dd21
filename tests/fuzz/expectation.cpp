#include "tests/fuzz/expectation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <random>

#include "base/error.h"
#include "frontend/graph/interpreter.h"
#include "frontend/ops/op_table.h"

namespace sylvite::fuzz {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr unsigned noisy_runs = 6;  ///< the second of each two has the opposite noise of the first
constexpr double relative = 1e-4;   ///< of an element, always allowed
constexpr double absolute = 1e-5;   ///< of the largest element, always allowed
constexpr double safety = 6;        ///< allowed for each unit that noise moves an element

/// Operations that do not round when their operands and results are short: see is_exact.
constexpr std::array exact_ops = {
    Op::neg,   Op::abs,        Op::sign,       Op::floor,      Op::ceil,        Op::round,   Op::relu,
    Op::cast,  Op::add,        Op::sub,        Op::mul,        Op::minimum,     Op::maximum, Op::where,
    Op::iota,  Op::reduce_sum, Op::reduce_max, Op::reduce_min, Op::reduce_prod, Op::cumsum,  Op::cumprod,
    Op::top_k, Op::matmul,     Op::conv,       Op::max_pool,
};

/// A few roundings of an element type.
double noise_of(DType dtype) {
  switch (dtype) {
    case DType::f16:
      return 0x1p-10;
    case DType::bf16:
      return 0x1p-7;
    default:
      return 0x1p-21;  // f64 as well: its functions are as exact as those of f32
  }
}

/// What is less becomes zero in an element type, or this: kernels that compute in f32 keep it.
double least_of(DType dtype) {
  return dtype == DType::f16 ? 0x1p-24 : 0;
}

/// Tensors of small multiples of some 2^-k were not rounded, and sums of them are exact in any order.
bool is_exact(const Tensor& tensor) {
  const bool is_short = dtype_size(tensor.dtype()) == 2;
  const double grid = is_short ? 4 : 1024;
  const double most = tensor.dtype() == DType::f16    ? 1 << 10
                      : tensor.dtype() == DType::bf16 ? 1 << 7
                                                      : 1 << 23;
  for (std::int64_t i = 0; i < tensor.size(); ++i) {
    const double scaled = tensor.as_double(i) * grid;
    if (!(std::abs(scaled) < most) || scaled != std::floor(scaled)) return false;
  }
  return true;
}

/// Moves every element of some tensors up or down: none stays where it is, and no two by equal amounts which
/// a difference would cancel, so that what an element is allowed is not left to chance.
class Noise {
 public:
  explicit Noise(unsigned run) : random_(run / 2), sign_(run % 2 == 0 ? 1 : -1) {}

  /// What a node reads moves by at least one unit, what it writes by two, and by half as much again at most.
  [[nodiscard]] Tensor added_to(const Tensor& tensor, double units, bool may_be_exact) {
    if (!is_float(tensor.dtype()) || (may_be_exact && is_exact(tensor))) return tensor;
    Tensor noisy(tensor.dtype(), tensor.dims());
    const double size = sign_ * units * noise_of(tensor.dtype());
    const double least = sign_ * least_of(tensor.dtype());
    for (std::int64_t i = 0; i < tensor.size(); ++i) {
      const double value = tensor.as_double(i);
      const std::uint32_t drawn = random_();
      const double moved = size * (1 + static_cast<double>(drawn >> 1) * 0x1p-32);
      const double up = drawn % 2 == 0 ? 1 : -1;
      noisy.set_double(i, std::isfinite(value) ? value * (1 + up * moved) + up * least : value);
    }
    return noisy;
  }

 private:
  std::mt19937 random_;
  double sign_;
};

/// Applies `change` to every element.
template <typename Change>
Tensor map_elements(const Tensor& tensor, Change change) {
  Tensor result(tensor.dtype(), tensor.dims());
  for (std::int64_t i = 0; i < tensor.size(); ++i) result.set_double(i, change(tensor.as_double(i)));
  return result;
}

std::vector<Tensor> evaluate(const Node& node, const std::vector<const Tensor*>& arguments,
                             const std::vector<TensorType>& types) {
  return op_info(node.op).evaluate(node.op, arguments, node.attributes, types);
}

/// Non-finite weights of a convolution, per output element: all of them, and those that lie over the input.
struct OddWeights {
  std::vector<double> all;  ///< per output channel
  Tensor inside;
};
OddWeights odd_weights(const Node& node, const std::vector<const Tensor*>& arguments,
                       const std::vector<TensorType>& types) {
  const Tensor ones = map_elements(*arguments[0], [](double) { return 1.0; });
  const Tensor odd = map_elements(*arguments[1], [](double w) { return std::isfinite(w) ? 0.0 : 1.0; });
  OddWeights result{std::vector<double>(static_cast<std::size_t>(odd.dims()[0]), 0), {}};
  const std::int64_t filter = odd.size() / std::max<std::int64_t>(odd.dims()[0], 1);
  for (std::int64_t i = 0; i < odd.size(); ++i)
    result.all[static_cast<std::size_t>(i / filter)] += odd.as_double(i);
  result.inside = evaluate(node, {&ones, &odd}, types)[0];
  return result;
}

/// A convolution but where weights that are not finite lie over the padding: zero there. ONNX does not say
/// whether they multiply the padding's zeros; ONNX Runtime leaves the padding out, too.
std::vector<Tensor> convolve_inside(const Node& node, const std::vector<const Tensor*>& arguments,
                                    const std::vector<TensorType>& types) {
  std::vector<Tensor> results = evaluate(node, arguments, types);
  const OddWeights odd = odd_weights(node, arguments, types);
  Tensor& result = results[0];
  const auto channels = static_cast<std::int64_t>(odd.all.size());
  const std::int64_t plane = result.size() / std::max<std::int64_t>(result.dims()[0] * channels, 1);
  for (std::int64_t i = 0; i < result.size(); ++i)
    if (odd.all[static_cast<std::size_t>(i / plane % channels)] != odd.inside.as_double(i))
      result.set_double(i, 0);
  return results;
}

/// x times a normal distribution function that is one plus nearly -1 where x is far below zero: roundings of that one are as
/// large as those of x.
Tensor with_noise_of(const Tensor& gelu, const Tensor& x, const Tensor& noisy_x) {
  Tensor result(gelu.dtype(), gelu.dims());
  for (std::int64_t i = 0; i < gelu.size(); ++i) {
    const double noise = noisy_x.as_double(i) - x.as_double(i);
    result.set_double(i, std::isfinite(noise) ? gelu.as_double(i) + noise : gelu.as_double(i));
  }
  return result;
}

/// As interpret(), but every node reads and writes with noise, and half of the runs leave paddings out.
std::vector<Tensor> interpret_with_noise(const Graph& graph, const std::vector<Tensor>& inputs,
                                         unsigned run) {
  Noise noise(run);
  std::vector<Tensor> values(graph.values().size());
  const auto at = [&](ValueId id) -> Tensor& { return values.at(static_cast<std::size_t>(id)); };
  for (std::size_t i = 0; i < values.size(); ++i)
    if (graph.values()[i].constant) values[i] = *graph.values()[i].constant;
  for (std::size_t i = 0; i < inputs.size(); ++i) at(graph.inputs[i]) = inputs[i];
  for (const Node& node : graph.nodes()) {
    const bool computes = !has_trait(node.op, OpTrait::movement);
    const bool is_exact_op = std::ranges::find(exact_ops, node.op) != exact_ops.end();
    std::vector<Tensor> read;
    read.reserve(node.inputs.size());
    for (const ValueId id : node.inputs)
      read.push_back(id == no_value ? Tensor() : computes ? noise.added_to(at(id), 1, true) : at(id));
    std::vector<const Tensor*> arguments;
    arguments.reserve(read.size());
    for (std::size_t i = 0; i < read.size(); ++i)
      arguments.push_back(node.inputs[i] == no_value ? nullptr : &read[i]);
    std::vector<TensorType> types;
    types.reserve(node.outputs.size());
    for (const ValueId id : node.outputs) types.push_back(graph.type(id));
    const bool leaves_padding_out = node.op == Op::conv && is_float(types[0].dtype) && run % 2 == 1;
    const auto run_body = [&](const std::vector<Tensor>& given) {
      return interpret_with_noise(node.attributes.graph("body"), given, run);
    };
    std::vector<Tensor> results = node.op == Op::loop
                                      ? evaluate_loop(arguments, node.attributes, types, run_body)
                                  : leaves_padding_out ? convolve_inside(node, arguments, types)
                                                       : evaluate(node, arguments, types);
    if (node.op == Op::gelu)
      results[0] = with_noise_of(results[0], read[0], noise.added_to(read[0], 1, false));
    for (std::size_t i = 0; i < results.size(); ++i)
      at(node.outputs[i]) = computes ? noise.added_to(results[i], 2, is_exact_op) : results[i];
  }
  std::vector<Tensor> outputs;
  outputs.reserve(graph.outputs.size());
  for (const ValueId id : graph.outputs) outputs.push_back(at(id));
  return outputs;
}

bool is_same(double a, double b) {
  return a == b || (std::isnan(a) && std::isnan(b));
}

double scale_of(const Tensor& tensor) {
  double scale = 0;
  for (std::int64_t i = 0; i < tensor.size(); ++i) {
    const double size = std::abs(tensor.as_double(i));
    if (std::isfinite(size)) scale = std::max(scale, size);
  }
  return scale;
}

std::vector<double> least_allowed(const Tensor& wanted) {
  std::vector<double> allowed(static_cast<std::size_t>(wanted.size()), 0);
  if (!is_float(wanted.dtype())) return allowed;
  const double scale = scale_of(wanted);
  for (std::int64_t i = 0; i < wanted.size(); ++i) {
    const double size = std::abs(wanted.as_double(i));
    if (std::isfinite(size))
      allowed[static_cast<std::size_t>(i)] = (relative + noise_of(wanted.dtype())) * size + absolute * scale;
  }
  return allowed;
}

void widen(std::vector<double>& allowed, const Tensor& wanted, const Tensor& noisy) {
  for (std::int64_t i = 0; i < wanted.size(); ++i) {
    const double a = wanted.as_double(i);
    const double b = noisy.as_double(i);
    if (is_same(a, b)) continue;
    double& slot = allowed[static_cast<std::size_t>(i)];
    const bool may_be_anything = !is_float(wanted.dtype()) || !std::isfinite(a) || !std::isfinite(b);
    slot = may_be_anything ? infinity : std::max(slot, safety * std::abs(a - b) + relative * std::abs(a));
  }
}

}  // namespace

double Expectation::compared_share() const {
  double compared = 0;
  double all = 0;
  for (const std::vector<double>& each : allowed) {
    all += static_cast<double>(each.size());
    compared += static_cast<double>(std::ranges::count_if(each, [](double d) { return std::isfinite(d); }));
  }
  return all > 0 ? compared / all : 1;
}

Expectation expect(const Graph& graph, const std::vector<Tensor>& inputs) {
  Expectation result;
  result.outputs = interpret(graph, inputs);
  for (const Tensor& output : result.outputs) result.allowed.push_back(least_allowed(output));
  for (unsigned run = 0; run < noisy_runs; ++run) {
    const std::vector<Tensor> noisy = interpret_with_noise(graph, inputs, run);
    for (std::size_t i = 0; i < noisy.size(); ++i) widen(result.allowed[i], result.outputs[i], noisy[i]);
  }
  return result;
}

std::string difference(const std::vector<Tensor>& actual, const Expectation& expected) {
  if (actual.size() != expected.outputs.size())
    return fmt::format("{} outputs, expected {}", actual.size(), expected.outputs.size());
  for (std::size_t k = 0; k < actual.size(); ++k) {
    const Tensor& wanted = expected.outputs[k];
    if (actual[k].type() != wanted.type()) {
      return fmt::format("output {} is {}, expected {}", k, actual[k].type().to_string(),
                         wanted.type().to_string());
    }
    for (std::int64_t i = 0; i < wanted.size(); ++i) {
      const double a = actual[k].as_double(i);
      const double b = wanted.as_double(i);
      const double allowed = expected.allowed[k][static_cast<std::size_t>(i)];
      if (is_same(a, b) || std::isinf(allowed) || std::abs(a - b) <= allowed) continue;
      return fmt::format("output {} ({}) element {} is {:.9g}, expected {:.9g} +- {:.3g}", k,
                         wanted.type().to_string(), i, a, b, allowed);
    }
  }
  return "";
}

}  // namespace sylvite::fuzz
