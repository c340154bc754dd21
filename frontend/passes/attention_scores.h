#pragma once
// What fuse_attention knows of scores, and how it reads them.

#include <optional>
#include <vector>

#include "sylvite/graph.h"

namespace sylvite {

/// What hides a key: this number that is added, or a lower one.
constexpr double hides_below = -1e30;
/// No scores are as low: instead of scores this number hides a key, too, unless another mask is added to it.
constexpr double below_scores = -1e9;

/// What is added to scores while their leading dims are those of `space`, or where they are replaced by `hidden`.
struct Mask {
  ValueId id = no_value;
  Dims space;
  std::optional<double> hidden = {};  ///< then `id` is a condition
  bool keeps = true;                  ///< which keeps scores where it is true; false: where it is false
};

struct Scores {
  ValueId q = no_value;
  ValueId k_transposed = no_value;
  std::vector<Mask> masks;
  bool hides_alone = false;  ///< by a number that is taken for the lowest: no other mask may follow
  std::vector<Dims> spaces;  ///< of the scores, on their way through reshapes of their leading dims
  double scale = 1;
  ValueId row_scale = no_value;  ///< what scales rows of scores differently: those of a head, say
};

/// Reads scaled products of queries and keys, to which masks are added, or which conditions replace, from the last step back. False where it is
/// something else; then what `scores` holds means nothing.
[[nodiscard]] bool match_scores(const Graph& graph, ValueId id, Scores& scores);

/// What a cast between f32 and floats of 16 bits reads, or `id`.
[[nodiscard]] ValueId unrounded(const Graph& graph, ValueId id);

/// Does it change the dims before the last two alone, as windowed attention does when it adds a mask for each window?
[[nodiscard]] bool regroups_leading(const Graph& graph, const Node& reshape);

}  // namespace sylvite
