#pragma once
// Transposed convolutions, and the gradients of convolutions.

#include "frontend/build/window.h"

namespace sylvite {

/// Per spatial axis: `begin` and `end` are what is cut off the full result, `output_padding` what is added to its end.
struct TransposedWindow {
  Dims strides, dilations, output_padding, begin, end;
  bool innermost = false;  ///< channels of images will lie innermost in memory
};

/// What adds w [C, M/groups, k...] times every element of x [N, C, ...] to a result that the window walks over by its
/// strides. Elements of the result that lie `stride` apart are met by the same taps of the window and are as many
/// channels of one convolution with stride 1: nothing is multiplied by zeros between elements of x. `bias` may be absent.
/// Throws ModelError for extents that do not fit.
[[nodiscard]] Sym transposed_conv(Sym x, Sym w, Sym bias, const TransposedWindow& window,
                                  std::int64_t groups);

/// A convolution whose pads are the same at both ends, per spatial axis.
struct EvenWindow {
  Dims strides, padding, dilations;
};

/// The gradient by filters of `filter_dims` [O, C/groups, k...] of the convolution of x [N, C, ...] whose result had the
/// gradient `grad` [N, O, ...].
[[nodiscard]] Sym filter_gradient(Sym grad, Sym x, const Dims& filter_dims, const EvenWindow& window,
                                  std::int64_t groups);

/// May the gradient be one operation, Op::filter_gradient, for templates: two-dimensional, of 16-bit floats, of one group,
/// depthwise, or of groups that whole vectors of channels hold?
[[nodiscard]] bool is_kept_whole(Sym grad, Sym x, std::int64_t groups);
/// The same gradient by that operation.
[[nodiscard]] Sym whole_filter_gradient(Sym grad, Sym x, const Dims& filter_dims, const EvenWindow& window,
                                        std::int64_t groups);

/// May it be one for spaces of a CPU, or a matmul: of f32, of groups of one channel or of a few, and of windows that registers
/// hold or that lie side by side?
[[nodiscard]] bool is_kept_in_blocks(Sym grad, Sym x, const Dims& filter_dims, const EvenWindow& window,
                                     std::int64_t groups);
/// The same gradient by that operation.
[[nodiscard]] Sym filter_gradient_of_blocks(Sym grad, Sym x, const Dims& filter_dims,
                                            const EvenWindow& window, std::int64_t groups);

}  // namespace sylvite
