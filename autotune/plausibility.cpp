#include "autotune/plausibility.h"

namespace sylvite {

namespace {

/// Two 16-lane multiply-adds a cycle at 5 GHz.
constexpr double core_flops_per_us = 2.0 * 16 * 2 * 5e3;

/// Multiplications and additions of one output element.
double flops_per_element(const Graph& body, const Node& node) {
  if (has_trait(node.op, OpTrait::convolution)) {
    double product = 2;
    Dims filter = body.type(node.inputs.at(1)).dims();  // out channels, channels of the group, window...
    for (std::size_t d = 1; d < filter.size(); ++d) {
      product *= static_cast<double>(filter[d]);
    }
    return product;
  }
  if (!has_trait(node.op, OpTrait::matmul)) {
    return 0;
  }
  constexpr double speed_of_bytes = 0.25;  // a vector of bytes holds four times as many
  const double products = static_cast<double>(body.type(node.inputs.at(0)).dims().back());
  return 2 * products * (node.op == Op::quantized_matmul ? speed_of_bytes : 1);
}

}  // namespace

double least_microseconds(const Kernel& kernel, int threads) {
  double flops = 0;
  for (const Node& node : kernel.body.nodes()) {
    double each = flops_per_element(kernel.body, node);
    if (each > 0) {
      flops += each * static_cast<double>(kernel.body.type(node.outputs.at(0)).element_count());
    }
  }
  return flops / (4 * core_flops_per_us * threads);
}

}  // namespace sylvite
