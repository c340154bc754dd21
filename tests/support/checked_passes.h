#pragma once
// Passes as tests run them.

#include <utility>

#include "frontend/graph/pass_runner.h"

namespace sylvite {

/// One that also runs passes that find nothing, and throws when one changes the graph.
inline PassRunner checked_passes() {
  PassOptions options;
  options.check_finds = true;
  return {std::move(options), {}};
}

}  // namespace sylvite
