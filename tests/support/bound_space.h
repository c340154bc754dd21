#pragma once
// A space of a table for one kernel that it must take.

#include <stdexcept>
#include <string>
#include <utility>

#include "schedules/space.h"

namespace sylvite {

/// Throws when the space refuses the kernel. The kernel and the machine must outlive what is returned.
inline BoundSpace bound(const Space& space, const Kernel& kernel, const Machine& machine) {
  Binding binding = space.bind(kernel, machine);
  if (!binding.refusal.empty()) throw std::logic_error(space.name + " refuses: " + binding.refusal);
  return std::move(binding.space);
}

/// Of every parameter the last value.
inline Point far_point(const BoundSpace& space) {
  Point point;
  for (const Parameter& parameter : space.parameters) point.push_back(parameter.values.back());
  return point;
}

/// The heuristic point with some numbers replaced.
inline Point point_with(const Space& space, const Kernel& kernel, const Machine& machine,
                        const NamedValues& replaced) {
  return point_with(bound(space, kernel, machine), replaced);
}

inline const Space& space_named(const std::string& name) {
  for (const Space& space : space_table())
    if (space.name == name) return space;
  throw std::logic_error("no space " + name);
}

inline Candidate heuristic_candidate(const Space& space, const Kernel& kernel, const Machine& machine) {
  const BoundSpace taken = bound(space, kernel, machine);
  return taken.at(taken.heuristic);
}

}  // namespace sylvite
