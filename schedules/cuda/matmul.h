#pragma once
// The tensor-core matmul template for Hopper: a kernel's problem and a choice of numbers become CUDA C++
// text.

#include <optional>
#include <string>
#include <vector>

#include "lowering/algorithms/pointwise_text.h"
#include "lowering/algorithms/problems.h"
#include "lowering/plan/kernel.h"
#include "lowering/plan/packing.h"
#include "schedules/card.h"
#include "schedules/cuda/template.h"

namespace sylvite {

/// out[batch, m, n] = epilogue(sum over k of a[batch, m, k] b[batch, k, n]). Operands are bf16, f16, or f32;
/// sums are f32.
struct CudaMatmulProblem {
  /// A convolution: the rows of a are windows of images [image][line][column][channel], batch after batch,
  /// and b is its filter, [n][tap][channel]. One of each dim's taps lies at the corner of the window. Of volumes, an image has
  /// frames; the rows of one batch are then the windows of a frame of the result. Groups of channels are batches, too.
  struct Windows {
    std::int64_t images = 1, lines = 1, columns = 1, channels = 1;   ///< of the input
    std::int64_t frames = 1, out_frames = 1;                         ///< of an image
    std::int64_t column_pitch = 0, line_pitch = 0, image_pitch = 0;  ///< elements; from frame to frame
    std::int64_t pixel_pitch = 0;   ///< from pixel to pixel, where columns are strided (join_taps), too
    std::int64_t filter_pitch = 0;  ///< elements from tap to tap
    std::int64_t out_lines = 1, out_columns = 1;
    std::int64_t taps_z = 1, taps_y = 1, taps_x = 1;
    std::int64_t stride_z = 1, stride_y = 1, stride_x = 1, dilation_z = 1, dilation_y = 1, dilation_x = 1;
    std::int64_t pad_z = 0, pad_y = 0, pad_x = 0;  ///< before the first element
    [[nodiscard]] std::int64_t taps() const { return taps_z * taps_y * taps_x; }
    [[nodiscard]] bool spans_frames() const { return frames > 1 || out_frames > 1 || taps_z > 1; }
  };
  MatmulOperand a, b;
  std::optional<Windows> windows;  ///< then a and b have only their inputs, depth innermost
  /// Of the gradient of a convolution by its filter, else 0: how many pixels a part has. The depth is the pixels of all
  /// results: a is their gradient, and b what a tap meets of the images, both with channels innermost; batches are parts,
  /// and in each the taps of `windows`.
  std::int64_t part = 0;
  DType element = DType::bf16;
  DType out = DType::bf16;
  bool exact = false;  ///< f32 is multiplied by three products in TF32; else by one
  std::int64_t batch = 1, m = 0, n = 0, k = 0;
  std::int64_t groups =
      1;  ///< of a convolution: its batches, whose results lie side by side as channels of the same pixels
  [[nodiscard]] std::int64_t out_pitch() const { return n * groups; }  ///< elements from row to row
  [[nodiscard]] std::int64_t out_batch_pitch() const {
    return groups > 1 ? n : m * n;
  }  ///< from batch to batch
  bool is_open = false;                           ///< runs give m and the batch
  bool n_is_open = false;                         ///< they give n, too
  bool k_is_open = false;                         ///< they give k, too, and the pixels of a part
  bool has_open_images = false;                   ///< they give lines and columns of images, too
  int out_argument = 0;                           ///< inputs of the body come before it
  PointwiseText epilogue;                         ///< its strides are given for [batch, m, n]
  std::optional<SimpleEpilogue> simple_epilogue;  ///< when the epilogue is no more than that
  bool epilogue_reads_activations = false;  ///< else weights only, which no kernel before this one writes
};
[[nodiscard]] Reading<CudaMatmulProblem> read_cuda_matmul(const Kernel& kernel);
[[nodiscard]] bool is_filter_gradient(const Kernel& kernel);
/// Of a gradient of one group of channels.
[[nodiscard]] Reading<CudaMatmulProblem> read_cuda_filter_gradient(const Kernel& kernel);
/// What a vendor's library needs to know of it. REQUIRES problem.simple_epilogue.
[[nodiscard]] LibraryMatmulProblem library_problem(const CudaMatmulProblem& problem);
/// Changes the packing of the weight that read_cuda_matmul expects packed; see weight_for_tensor_cores.
void pack_for_cuda_matmul(const Kernel& kernel, std::vector<Packing>& packings);

/// The numbers that may vary. "x" is the side of the result whose rows are the tensor core's 64; "y" the
/// other.
struct CudaMatmulChoice {
  int tile_x = 128, tile_y = 128;
  int cluster_x = 1, cluster_y = 1;  ///< blocks that share loads; at most one of these and split over 1
  int split = 1;                     ///< blocks that share the depth
  bool ping_pong = true;
  bool swapped = false;   ///< x is n: for few rows
  int group_rows = 1024;  ///< rows of x walked together
  bool programmatic = true;

  [[nodiscard]] std::string to_string() const;  ///< e.g. 128x192 2x1 pp g1024
  bool operator==(const CudaMatmulChoice&) const = default;
};

/// Why the choice cannot be made for the problem; empty when it can.
[[nodiscard]] std::string refuse_cuda_matmul(const CudaMatmulProblem& problem, const CudaMatmulChoice& choice,
                                             const Card& card);
/// How many operands of the epilogue that lie as the result does come in boxes, not element by element.
[[nodiscard]] int cuda_matmul_boxed(const CudaMatmulProblem& problem, const CudaMatmulChoice& choice,
                                    const Card& card);
/// REQUIRES refuse_cuda_matmul empty.
[[nodiscard]] CudaTemplate make_cuda_matmul(const CudaMatmulProblem& problem, const CudaMatmulChoice& choice,
                                            const Card& card);
/// Is it of 16 bits, of so little depth and so few columns that what a tile takes beside its products is most of its time?
[[nodiscard]] bool is_narrow(const CudaMatmulProblem& problem);
/// What a choice of these should take, in clocks of a multiprocessor, to compare it with others for the same problem.
[[nodiscard]] double cuda_matmul_clocks(const CudaMatmulProblem& problem, const CudaMatmulChoice& choice,
                                        const Card& card);
/// The largest power of two up to 128 at whose multiples, in bytes, rows of a begin, those of channels of a pixel where it is
/// windows. Loads take the longer, the less it is.
[[nodiscard]] int row_alignment(const CudaMatmulProblem& problem);
/// Choices worth racing, the best guess first.
[[nodiscard]] std::vector<CudaMatmulChoice> cuda_matmul_choices(const CudaMatmulProblem& problem,
                                                                const Card& card);
[[nodiscard]] std::vector<CudaMatmulChoice> cuda_filter_gradient_choices(const CudaMatmulProblem& problem,
                                                                         const Card& card);

}  // namespace sylvite
