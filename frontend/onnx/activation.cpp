#include "frontend/onnx/activation.h"

#include "base/error.h"

namespace sylvite {

Activation make_activation(const std::string& name, std::optional<double> alpha, std::optional<double> beta) {
  if (name == "Tanh") return [](Sym x) { return apply(Op::tanh, x); };
  if (name == "Sigmoid") return [](Sym x) { return apply(Op::sigmoid, x); };
  if (name == "Relu") return [](Sym x) { return apply(Op::relu, x); };
  if (name == "Softplus") return [](Sym x) { return apply(Op::softplus, x); };
  if (name == "Softsign") return [](Sym x) { return x / (apply(Op::abs, x) + 1.0); };
  if (name == "Affine") return [a = alpha.value_or(1), b = beta.value_or(0)](Sym x) { return x * a + b; };
  if (name == "LeakyRelu")
    return [a = alpha.value_or(0.01)](Sym x) { return where(apply(Op::less, x, 0.0), x * a, x); };
  if (name == "ThresholdedRelu")
    return [a = alpha.value_or(1)](Sym x) { return where(apply(Op::greater, x, a), x, 0.0); };
  if (name == "ScaledTanh")
    return [a = alpha.value_or(1), b = beta.value_or(1)](Sym x) { return a * apply(Op::tanh, x * b); };
  if (name == "HardSigmoid") {
    return [a = alpha.value_or(0.2), b = beta.value_or(0.5)](Sym x) {
      return apply(Op::minimum, apply(Op::maximum, x * a + b, 0.0), 1.0);
    };
  }
  if (name == "Elu") {
    return [a = alpha.value_or(1)](Sym x) {
      const Sym negative = a * (apply(Op::exp, apply(Op::minimum, x, 0.0)) - 1.0);
      return where(apply(Op::greater, x, 0.0), x, negative);
    };
  }
  throw UnsupportedError("activation '{}' is not supported", name);
}

}  // namespace sylvite
