#pragma once
// What a graph should compute, and how far off each element may be. The graph is interpreted several times
// with noise of a few roundings in every node: an element may differ by what such noise makes of it. So a sum
// that cancels may be inexact, and a comparison of nearly equal numbers may go either way, but nothing else.

#include <string>
#include <vector>

#include "sylvite/graph.h"

namespace sylvite::fuzz {

struct Expectation {
  std::vector<Tensor> outputs;
  std::vector<std::vector<double>> allowed;  ///< per output and element; infinity where noise decides

  /// Elements that are compared with anything at all, as a share of all.
  [[nodiscard]] double compared_share() const;
};

[[nodiscard]] Expectation expect(const Graph& graph, const std::vector<Tensor>& inputs);

/// "" when every element is within what is allowed, else the first that is not.
[[nodiscard]] std::string difference(const std::vector<Tensor>& actual, const Expectation& expected);

}  // namespace sylvite::fuzz
