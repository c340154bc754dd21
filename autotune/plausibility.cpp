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
  return node.op == Op::matmul ? 2 * static_cast<double>(body.type(node.inputs.at(0)).dims().back()) : 0;
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
