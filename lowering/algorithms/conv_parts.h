#pragma once
// What the forms of a convolution share. Internal to lowering/.

#include <functional>
#include <vector>

#include "lowering/algorithms/algorithm_builder.h"
#include "lowering/algorithms/problems.h"

namespace sylvite {

/// Packings of all inputs: `filter` for the weight, whole blocks for a bias that nothing else reads.
[[nodiscard]] std::vector<Packing> conv_packings(const Kernel& kernel, const ConvProblem& problem,
                                                 const Packing& filter);

/// What a source does beyond the input's own coordinates.
struct SourceBorder {
  bool clamps = false;  ///< reads the nearest element of the input instead
  bool zeros = false;   ///< is zero there
};
[[nodiscard]] constexpr SourceBorder border_of(const ConvProblem& problem) {
  return {problem.padded, problem.padded};
}

/// Stage vN_in(d0, d1, d2, d3, d4): the input (channel in block, x, y, block, batch) extended beyond its own
/// coordinates as `border` says. The select goes wherever schedules put the stage: a padded copy, or inline.
[[nodiscard]] Halide::Func define_source(AlgorithmBuilder& builder, const ConvProblem& problem,
                                         SourceBorder border);

/// Where output coordinate `out` plus window coordinate `window` lies in the source, `pad` behind its border.
[[nodiscard]] Halide::Expr source_coordinate(const Halide::Expr& out, const Halide::Expr& window,
                                             std::int64_t stride, std::int64_t dilation,
                                             const Halide::Expr& pad);

/// The step of channels at which the groups of output block `at` begin, and how many they have.
struct GroupSteps {
  Halide::Expr first;
  Halide::Expr count;
};
[[nodiscard]] GroupSteps group_steps(const GroupedChannels& channels, const Halide::Expr& at);

/// Defines the anchor as `sum` of its storage arguments d0..d4, plus the bias.
void define_product(AlgorithmBuilder& builder, const ConvProblem& problem,
                    const std::function<Halide::Expr(const std::vector<Halide::Expr>&)>& sum);

}  // namespace sylvite
