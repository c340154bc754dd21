#pragma once
// The clock that intervals are measured with.

#include <chrono>

namespace sylvite {

/// Seconds since an arbitrary moment; never goes back. Only differences mean something.
[[nodiscard]] inline double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace sylvite
