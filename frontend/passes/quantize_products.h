#pragma once
// A model whose products with constants are made of 8-bit integers.

#include "sylvite/graph.h"

namespace sylvite {

/// The graph with every matmul whose right operand is a matrix of constants, at least least_quantized_extent
/// deep and wide, as a quantized_matmul: the constants as i8 with a scale for each column (the column's
/// largest magnitude is 127 steps), the left operand quantised by rows at run time. Only finite f32 weights
/// are quantised; everything else is unchanged: convolutions, and matmuls of two computed values.
///   %y = matmul(%x, %w)   ->   %y = quantized_matmul(%x, %steps, %scales, %sums)
[[nodiscard]] Graph quantize_products(const Graph& graph);

/// Smaller matrices would gain nothing, and their results are often few numbers that much depends on.
inline constexpr std::int64_t least_quantized_extent = 32;

}  // namespace sylvite
