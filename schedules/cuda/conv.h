#pragma once
// Convolutions as products on the tensor cores: the same template as matmul's, whose rows are then the pixels
// of all images and whose depth is the taps and channels of a window.

#include <initializer_list>
#include <vector>

#include "schedules/cuda/matmul.h"

namespace sylvite {

[[nodiscard]] bool is_channels_last(const TensorType& type);
/// The dims of such an image of so many as memory has them, the outermost first: images, pixels, channels.
[[nodiscard]] std::vector<std::size_t> channels_last_order(std::size_t rank);
/// Why it is no image of 16-bit floats with its channels innermost whose pixels, of all images, an int can number; empty when
/// it is.
[[nodiscard]] std::string refuse_image(const TensorType& type);
/// Where images with their channels innermost lie: they are an input, or some neighbouring channels of one.
struct ImageSource {
  int input = -1;  ///< -1: they are computed
  std::int64_t first_channel = 0;
  std::int64_t channels = 0;  ///< from pixel to pixel
};
[[nodiscard]] ImageSource image_source(const Graph& body, ValueId id);
/// The number of the body input, or -1 for what is computed.
[[nodiscard]] int body_input_number(const Graph& body, ValueId id);
/// Is the body input with that number a weight, which is packed when a program is loaded?
[[nodiscard]] bool is_weight(const Kernel& kernel, int number);
/// Why a kernel is no convolution of images with their channels innermost by a filter that is a weight of its
/// own, or has its channels innermost, too, all of one type that tensor cores multiply; empty when it is.
[[nodiscard]] std::string refuse_conv_operands(const Kernel& kernel);

/// The windows of such a convolution, of a pooling of such images, or of that whose gradient it is. Frames that windows take
/// one by one are images.
[[nodiscard]] CudaMatmulProblem::Windows windows_of(const Kernel& kernel);

/// Do windows stay inside the image sideways, so that the taps of a line, whose channels lie side by side, may be one?
[[nodiscard]] bool may_join_taps(const CudaMatmulProblem::Windows& windows);
/// The taps of a line as one tap with all their channels. Windows then overlap in memory: their pitch is the stride's.
/// REQUIRES may_join_taps.
void join_taps(CudaMatmulProblem::Windows& windows);

/// The product that a convolution of images with their channels innermost is: m counts output pixels, n
/// output channels, those of a group. Its filter lies as [n][tap][channel]: packed, or as a value. A filter of one tap makes
/// a matrix of the images. Where no window leaves the image sideways, the taps of a filter row are read as
/// one, since their channels lie side by side: what images with few channels need
/// (lowering/passes/widen_few_channels.cpp).
[[nodiscard]] Reading<CudaMatmulProblem> read_cuda_conv(const Kernel& kernel);
/// The order of a packing without factors that has the taps of a filter of so many dims lie in `places`, which numbers output
/// channels 0, input channels 1, and taps 2.
[[nodiscard]] std::vector<int> filter_order(std::size_t rank, std::initializer_list<int> places);
/// Changes the packing of a filter that is a weight: it lies as [output channel][tap][input channel].
void pack_for_cuda_conv(const Kernel& kernel, std::vector<Packing>& packings);

/// What a choice of these should take, in clocks of a multiprocessor.
[[nodiscard]] double cuda_conv_clocks(const CudaMatmulProblem& problem, const CudaMatmulChoice& choice,
                                      const Card& card);
/// Choices worth racing, the best guess first.
[[nodiscard]] std::vector<CudaMatmulChoice> cuda_conv_choices(const CudaMatmulProblem& problem,
                                                              const Card& card);

}  // namespace sylvite
