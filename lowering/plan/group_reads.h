#pragma once
// What groups read, and of which other groups.

#include <cstddef>
#include <map>
#include <optional>
#include <set>

#include "lowering/plan/fusion.h"
#include "sylvite/graph.h"

namespace sylvite {

/// Values that the group's nodes read and do not make.
[[nodiscard]] std::set<ValueId> values_read(const Graph& graph, const Group& group);

/// Adds the groups that write what a value is made of, through nodes that need no kernel. `writers`: per value that a group
/// writes, its number.
void add_writers(const Graph& graph, const std::map<ValueId, std::size_t>& writers, ValueId id,
                 std::set<std::size_t>& found);

/// A group's fold with all that is ahead of it, as a group of its own: nullopt where no work is behind it, or reads more of these than
/// the fold.
[[nodiscard]] std::optional<Group> front_of_fold(const Graph& graph, const Group& group, NodeId fold);

}  // namespace sylvite
