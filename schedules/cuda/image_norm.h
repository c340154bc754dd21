#pragma once
// The template of images that are normed by groups of their channels; see schedules/cuda/image_norm.cuh.

#include <string>
#include <vector>

#include "lowering/algorithms/problems.h"
#include "schedules/cuda/operands.h"
#include "schedules/cuda/template.h"

namespace sylvite {

/// out[image, pixel, channel] = epilogue((x - mean) / sqrt(variance + epsilon)) of x = prologue[image, pixel, channel], with mean
/// and variance of all pixels of `members` neighbouring channels, all computed in f32.
struct CudaImageNormProblem {
  PointwiseText prologue, epilogue;
  std::vector<CudaOperand> prologue_operands, epilogue_operands;
  DType x = DType::f32;  ///< what is normed is rounded to it
  DType out = DType::f32;
  std::int64_t images = 1, pixels = 1, channels = 1, members = 1;
  double epsilon = 0;
  bool has_open_pixels = false;  ///< runs give how many
  bool is_open = false;          ///< or how many images
  int out_argument = 0;
};
[[nodiscard]] Reading<CudaImageNormProblem> read_cuda_image_norm(const Kernel& kernel);

/// Why such a kernel should not be formed, though the template may take it where it is: large images are better folded by a
/// kernel of their own; empty: it should.
[[nodiscard]] std::string refuse_large_image_norm(const Kernel& kernel);

/// The numbers that may vary.
struct CudaImageNormChoice {
  int lanes = 8;    ///< threads side by side, of neighbouring channels
  int deep = 32;    ///< threads on top of each other
  int held = 8;     ///< pixels that a thread keeps in registers; others are read again
  int cluster = 1;  ///< blocks that share the pixels of an image
  bool operator==(const CudaImageNormChoice&) const = default;
  [[nodiscard]] std::string to_string() const;
};

/// Choices worth racing, the best guess first; none where no whole groups fit a block.
[[nodiscard]] std::vector<CudaImageNormChoice> cuda_image_norm_choices(const CudaImageNormProblem& problem,
                                                                       int most_blocks = 8);
[[nodiscard]] CudaTemplate make_cuda_image_norm(const CudaImageNormProblem& problem,
                                                const CudaImageNormChoice& choice);

}  // namespace sylvite
