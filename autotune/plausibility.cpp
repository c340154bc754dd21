#include "autotune/plausibility.h"

namespace sylvite {

namespace {

constexpr double cycles_per_us = 5e3;
/// Winograd's transforms leave a quarter of the multiplications that are counted here.
constexpr double counted_over_done = 4;

/// Of the fastest cores: two vectors of f32, or a tile of AMX in 16 cycles.
double multiply_adds_per_cycle(DType element) {
  switch (element) {
    case DType::i8:
      return 1024;
    case DType::bf16:
    case DType::f16:
      return 512;
    default:
      return 32;
  }
}

/// Cycles of a core for one output element of a contraction; 0 for other nodes.
double cycles_per_element(const Graph& body, const Node& node) {
  double products = 0;
  if (has_trait(node.op, OpTrait::convolution)) {
    products = 1;
    const Dims filter =
        body.type(node.inputs.at(1)).dims();  // out channels, channels of the group, window...
    for (std::size_t d = 1; d < filter.size(); ++d) products *= static_cast<double>(filter[d]);
  } else if (has_trait(node.op, OpTrait::matmul)) {
    products = static_cast<double>(body.type(node.inputs.at(0)).dims().back());
  } else {
    return 0;
  }
  return products / multiply_adds_per_cycle(body.type(node.inputs.at(1)).dtype);
}

}  // namespace

double least_microseconds(const Kernel& kernel, int threads) {
  double cycles = 0;
  for (const Node& node : kernel.body.nodes()) {
    double each = cycles_per_element(kernel.body, node);
    if (each > 0) cycles += each * static_cast<double>(kernel.body.type(node.outputs.at(0)).element_count());
  }
  return cycles / (counted_over_done * cycles_per_us * threads);
}

}  // namespace sylvite
