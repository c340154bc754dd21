#pragma once
// Einstein summation as transposes, reshapes, sums and matrix products.

#include <string>
#include <vector>

#include "frontend/graph/graph_builder.h"

namespace sylvite {

/// `equation` as in numpy.einsum: "ij,jk->ik", with "..." for any leading axes and an implicit result when
/// there is no "->". Throws ModelError for malformed equations and extents that do not agree.
[[nodiscard]] Sym einsum(const std::string& equation, const std::vector<Sym>& operands);

}  // namespace sylvite
