#pragma once
// Attributes that a node may be without: what they say is left out of texts then.

#include "frontend/ops/op_table.h"

namespace sylvite {

/// A fallback that says so: a graph that is none, whatever the attribute's kind is.
[[nodiscard]] inline Attribute absent_attribute() {
  return GraphAttribute{};
}
[[nodiscard]] inline bool may_be_absent(const AttributeInfo& attribute) {
  const auto* fallback = attribute.fallback ? std::get_if<GraphAttribute>(&*attribute.fallback) : nullptr;
  return fallback != nullptr && fallback->graph == nullptr;
}

}  // namespace sylvite
