#pragma once
// What sizes a dimension probably has, by what exporters and people call it.

#include <cstdint>
#include <string_view>

namespace sylvite {

struct SizeConvention {
  std::int64_t limit = 0;  ///< no size is larger, where nobody says otherwise
  std::int64_t usual = 0;  ///< the size to be fast at
  std::int64_t multiple = 1;
};

/// Names are told by their words, in either case: `decoder_sequence_length` is a sequence. One that is a number times another, as
/// torch.onnx writes `32*height`, is a multiple of it. A name that says nothing,
/// as `n` behind the first axis, goes by the place: axis 0 is a batch, the last two of four are those of an image, another one is a sequence.
[[nodiscard]] SizeConvention size_convention(std::string_view name, int axis, int rank);

}  // namespace sylvite
