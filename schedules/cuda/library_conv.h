#pragma once
// Convolutions as vendor libraries know them: images with their channels innermost, a filter, and an epilogue
// of a bias, a residual and ReLU.

#include "lowering/algorithms/problems.h"
#include "lowering/plan/kernel.h"

namespace sylvite {

/// out = relu(conv(images, filter) + residual + bias), where all but the first may be absent. Arguments are
/// numbered as a kernel's: inputs of the body, then its output; -1 is absent. All are of one type, but for
/// the bias; f32 may be multiplied as TF32, sums are f32. Images, residual and output lie as
/// [image][line][column][channel], the filter as pack_for_cuda_conv says, [filter][line][column][channel].
struct LibraryConvProblem {
  int images_argument = 0, filter_argument = 1, bias_argument = -1, residual_argument = -1;
  int out_argument = 2;
  DType element = DType::bf16;
  DType bias_type = DType::bf16;
  Dims images, filter, out;  ///< in the graph's order: images or filters, channels, lines, columns
  Dims strides, dilations;   ///< of lines, then of columns, as what follows
  Dims pads_before, pads_after;
  bool relu = false;
};
[[nodiscard]] Reading<LibraryConvProblem> read_library_conv(const Kernel& kernel);

}  // namespace sylvite
