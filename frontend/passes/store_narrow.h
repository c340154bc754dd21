#pragma once
// A model in less precision.

#include "sylvite/graph.h"

namespace sylvite {

struct NarrowOptions {
  bool keep_wide = true;        ///< false: all values and constants are narrow, but for numbers beside bf16
  bool mixed_products = false;  ///< see below; with keep_wide and bf16, else without effect
};

/// The graph with f32 values stored as `narrow`, bf16 or f16; arithmetic stays as wide as kernels make it. Of
/// constants those that are multiplied (by matmul, conv, attention) are rounded too, filters of convolutions
/// as rounded_filters in round_constants.h says. With keep_wide these stay f32, which costs little, while
/// their rounding would be a large part of some models' errors:
/// - biases, scales and other constants of arithmetic; tables that rows are gathered from, and sums of such
///   rows;
/// - sums that only norms, folds and further such sums read, at first hand or moved: the residuals of transformers;
/// - gates: pointwise results that are one number for many elements of what they scale;
/// - small results of pointwise work that are outputs and read beside: states of loops;
/// - reductions and norms that no product reads later, and pointwise work on them.
/// In any case positions, coordinates and exponents stay f32 (wide_numbers.h), until something else reads them.
/// With mixed_products, where f32 may be multiplied by bf16, these stay f32, too:
/// - reductions, norms, pointwise work and products that only products of one row by a constant read, and
///   what those make of f32: with one row, reading the constant takes all the time, and rounding the row that
///   a classifier multiplies is a tenth of ResNet-18's error;
/// - filters of one channel for each channel (depthwise): an eighth of EfficientNet's error.
/// Inputs and outputs keep their types: the first and last nodes convert. Finite constants stay finite, so
/// that masks of the lowest f32 do not become infinite. Run it after the passes: patterns know constants by
/// more digits than 16 bits have.
[[nodiscard]] Graph store_narrow(const Graph& graph, DType narrow, const NarrowOptions& options = {});

}  // namespace sylvite
