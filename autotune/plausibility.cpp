#include "autotune/plausibility.h"

#include "frontend/graph/evaluation_work.h"

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

}  // namespace

double least_microseconds(const Kernel& kernel, int threads) {
  double cycles = 0;
  for (const Node& node : kernel.body.nodes()) {
    const double products = products_of(kernel.body, node);
    if (products == 0) continue;
    const auto elements = static_cast<double>(kernel.body.type(node.outputs.at(0)).element_count());
    cycles += elements * products / multiply_adds_per_cycle(kernel.body.type(node.inputs.at(1)).dtype);
  }
  return cycles / (counted_over_done * cycles_per_us * threads);
}

}  // namespace sylvite
