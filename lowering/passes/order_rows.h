#pragma once
// Matmuls in the order of rows in which their operand lies, so that transposes around them meet and cancel.

#include "sylvite/graph.h"

namespace sylvite {

/// The same graph in which matmul(transpose(x), W), W a matrix and the last axis left in place, is
/// transpose(matmul(x, W)), also through reshapes and through work with constants that vary along the last
/// axis only (a bias). Done where every path from the product meets another transpose, or an attention, which
/// reads any order: attention of models that walk their rows before their batch.
[[nodiscard]] Graph order_rows(const Graph& graph);

}  // namespace sylvite
