#pragma once
// What templates of scatters read of a kernel.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "frontend/graph/views.h"
#include "lowering/plan/kernel.h"

namespace sylvite {

/// The scatter whose result is all that the kernel gives, the last of its nodes; nullptr where there is none.
[[nodiscard]] const Node* scatter_of(const Kernel& kernel);

/// How a scatter folds what meets in one place; C of a and b.
struct ScatterFold {
  std::string_view reduction;
  const char* floats;
  const char* integers;
  const char* identity;  ///< of floats
};
/// nullptr for what is no fold.
[[nodiscard]] const ScatterFold* scatter_fold_named(std::string_view reduction);

/// Of a value that is one number everywhere, which a template makes itself.
[[nodiscard]] std::optional<double> number_of(const Graph& body, ValueId id);

/// "", or why templates do not take the types of the scatter's operands.
[[nodiscard]] std::string refuse_scatter_types(const Graph& body, const Node& scatter);

/// Where the updates of a ScatterND go; of a problem's members.
template <typename Problem>
void read_tuples(const Graph& body, const Node& scatter, Problem& problem) {
  const Dims dims = body.type(scatter.inputs[0]).dims(), tuples = body.type(scatter.inputs[1]).dims();
  const auto size = static_cast<std::size_t>(tuples.back());
  problem.places = product(dims, 0, size);
  problem.columns = product(dims, size, dims.size());
  problem.updates = product(tuples, 0, tuples.size() - 1);
  problem.indices_of_update = tuples.back();
  problem.extents.assign(dims.begin(), dims.begin() + static_cast<std::ptrdiff_t>(size));
  problem.strides = dense_strides(problem.extents);
}

}  // namespace sylvite
