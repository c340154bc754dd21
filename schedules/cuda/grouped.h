#pragma once
// Windows of images with their channels innermost: depthwise convolutions and poolings, which take each channel for itself
// (depthwise.cuh), and convolutions whose groups are joined to units that fit tensor cores, or which have few channels
// (grouped.cuh).

#include <optional>
#include <string>
#include <vector>

#include "lowering/plan/packing.h"
#include "schedules/card.h"
#include "schedules/cuda/conv.h"
#include "schedules/cuda/extents.h"
#include "schedules/cuda/operands.h"
#include "schedules/cuda/template.h"

namespace sylvite {

/// out[image, pixel, channel] = epilogue(bias + sum over taps and the channels of its group of x * filter), computed in
/// f32; or the largest or the mean of a window instead of the sum.
struct CudaGroupedProblem {
  enum class Fold { products, largest, mean };
  Fold fold = Fold::products;
  bool counts_padding = false;                                     ///< of a mean
  std::int64_t pad_after_z = 0, pad_after_y = 0, pad_after_x = 0;  ///< of a pooling: behind the last element
  CudaMatmulProblem::Windows windows;
  std::int64_t groups = 1, outputs = 0;      ///< outputs: channels of the result
  DType element = DType::bf16;               ///< of the images, the filter and the result
  int x = 0, filter = -1, out_argument = 0;  ///< filter: -1 of a pooling
  bool filter_by_channel = false;  ///< it is no weight, and lies as [channel][tap]: of depthwise convolutions
  CudaOperand bias;                ///< of.input is -1 where there is none
  PointwiseText epilogue;
  std::vector<CudaOperand> epilogue_operands;  ///< a row is a pixel of a frame, a column a channel
  bool is_open = false;                        ///< runs give the images' number
  bool has_open_images = false;                ///< and their lines and columns

  [[nodiscard]] std::int64_t group_inputs() const { return windows.channels / groups; }
  [[nodiscard]] std::int64_t group_outputs() const { return outputs / groups; }
};
/// Of a depthwise convolution, with as many groups as channels, and as many results, or of a pooling.
[[nodiscard]] Reading<CudaGroupedProblem> read_cuda_depthwise(const Kernel& kernel);
/// Of groups that join to units (lowering/plan/grouped_filter.h), or of one group of few channels.
[[nodiscard]] Reading<CudaGroupedProblem> read_cuda_grouped(const Kernel& kernel);

/// The filter of a convolution lies as [tap][channel].
void pack_for_cuda_depthwise(const Kernel& kernel, std::vector<Packing>& packings);
/// The filter lies as [unit][tap][output channel][input channel], with zeros between groups.
void pack_for_cuda_grouped(const Kernel& kernel, std::vector<Packing>& packings);

/// A thread makes tile_y x tile_x neighbouring pixels of `vector` channels.
struct CudaDepthwiseChoice {
  int vector = 8;
  int tile_y = 1, tile_x = 4;
  int lanes = 8;  ///< vectors of channels side by side in a block
  int threads = 128;
  bool operator==(const CudaDepthwiseChoice&) const = default;
  [[nodiscard]] std::string to_string() const;
};
/// Choices worth racing, the best guess first.
[[nodiscard]] std::vector<CudaDepthwiseChoice> cuda_depthwise_choices(const CudaGroupedProblem& problem);
[[nodiscard]] CudaTemplate make_cuda_depthwise(const CudaGroupedProblem& problem,
                                               const CudaDepthwiseChoice& choice);

/// A block makes tiles of tile_z x tile_y x tile_x pixels of `outputs` channels, one after the other; a warp `pixels` times 16 pixels
/// of `columns` channels.
struct CudaGroupedChoice {
  int tile_y = 8, tile_x = 8;
  int outputs = 16;  ///< of whole units, or a divisor of a unit's
  int columns = 16;  ///< 16 or 32, a divisor of `outputs` and of a unit's
  int pixels = 1;
  int parts = 1;       ///< blocks that share the tiles of the same channels
  int tile_z = 1;      ///< frames of a volume
  bool exact = false;  ///< products of f32 are three in TF32
  bool operator==(const CudaGroupedChoice&) const = default;
  [[nodiscard]] std::string to_string() const;
};
/// Choices worth racing, the best guess first; none when nothing fits into the card's shared memory. `exact`: of f32 where
/// TF32 is not allowed.
[[nodiscard]] std::vector<CudaGroupedChoice> cuda_grouped_choices(const CudaGroupedProblem& problem,
                                                                  bool exact, const Card& card);
[[nodiscard]] CudaTemplate make_cuda_grouped(const CudaGroupedProblem& problem,
                                             const CudaGroupedChoice& choice);

// Shared by these templates.

/// The extents of images and results: images, lines, columns, out_lines, out_columns. Runs may give the images' number, and the rest.
[[nodiscard]] std::vector<CudaExtent> image_extents(const CudaMatmulProblem::Windows& windows, bool is_open,
                                                    bool has_open_images);
/// The same, and rows: pixels of a result.
[[nodiscard]] std::vector<CudaExtent> window_extents(const CudaGroupedProblem& problem);
/// Constants of a kernel's text: FRAMES, CHANNELS, ... PAD_X.
[[nodiscard]] std::string windows_text(const CudaMatmulProblem::Windows& windows);

/// Elements along a dim that the windows of `tile` neighbours meet.
[[nodiscard]] std::int64_t span_of(std::int64_t tile, std::int64_t stride, std::int64_t taps,
                                   std::int64_t dilation);
/// Tiles that cover the results of all images.
[[nodiscard]] std::int64_t tiles_of(const CudaMatmulProblem::Windows& windows, std::int64_t tile_y,
                                    std::int64_t tile_x, std::int64_t tile_z = 1);

/// The constants of images and windows, what is read, and finish(a, batch, row, column, x): the work on `vector` channels of
/// a pixel, and their store.
[[nodiscard]] std::string grouped_text(const CudaGroupedProblem& problem, int vector,
                                       const std::string& entry);
/// out, x, filter, and the rest, as grouped_text declares them.
[[nodiscard]] std::vector<int> grouped_pointers(const CudaGroupedProblem& problem);

}  // namespace sylvite
