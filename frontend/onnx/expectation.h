#pragma once
// What an imported model expects of its runs.

#include <string>

#include "sylvite/graph.h"

namespace sylvite {

/// What must be true of a run, because the graph leaves out what would run otherwise.
struct OnnxExpectation {
  ValueId holds = no_value;  ///< a boolean of rank 0
  std::string node;          ///< for people: the node that leaves something out
  std::string otherwise;     ///< why a run fails in which it does not hold
};

}  // namespace sylvite
