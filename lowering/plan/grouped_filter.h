#pragma once
// Grouped convolutions over blocks of channels: an output block may have channels of several groups, and folds
// the input channels of all of them, with zeros where a filter does not read. A NaN or infinity in the input thus
// makes NaNs of the outputs of its neighbours in the block, too, as with Winograd's tiles.

#include <cstdint>

#include "sylvite/tensor.h"

namespace sylvite {

/// Which input channels a block of output channels folds, in steps of step() neighbouring channels.
struct GroupedChannels {
  std::int64_t groups = 1;
  std::int64_t inputs = 1;   ///< channels of a group
  std::int64_t outputs = 1;  ///< the same of the output
  std::int64_t block = 1;    ///< output channels in a block

  /// Divides a group's channels and a block: neither is left within a step.
  [[nodiscard]] std::int64_t step() const;
  [[nodiscard]] std::int64_t blocks() const;  ///< of the output
  /// Every block lies within a group, so that all fold the same number of steps.
  [[nodiscard]] bool are_apart() const { return outputs % block == 0; }
  [[nodiscard]] std::int64_t first_step(std::int64_t output_block) const;
  [[nodiscard]] std::int64_t steps(std::int64_t output_block) const;
  [[nodiscard]] std::int64_t most_steps() const;  ///< of any block
};

/// Whether blocks suit the groups: of what they fold, on average, few are zeros. Otherwise the vectors along lines of
/// dense values take less time.
[[nodiscard]] bool are_worth_blocks(const GroupedChannels& channels);

/// Are groups of so many channels, and of so many results, worth a product each on tensor cores? Narrower ones are joined.
[[nodiscard]] bool groups_fill_tiles(std::int64_t inputs, std::int64_t outputs);

/// How many neighbouring groups make a unit for tensor cores: one that reads and makes multiples of 16 channels, 128 at
/// most. 0 where there is no such number that divides the groups.
[[nodiscard]] std::int64_t groups_of_unit(std::int64_t groups, std::int64_t inputs, std::int64_t outputs);

/// Extents of a spread filter, from those of the filter [outputs of all groups, inputs of one, window...].
[[nodiscard]] Dims spread_filter_dims(const Dims& filter, std::int64_t groups, std::int64_t block);
/// The filter with most_steps() * step() input channels: those that its block folds, with zeros for channels
/// of other groups and behind the last. REQUIRES that groups divide the filter's outputs.
[[nodiscard]] Tensor spread_filter(const Tensor& filter, std::int64_t groups, std::int64_t block);

}  // namespace sylvite
