#pragma once
// Which build of Sylvite this is, for processes that work together.

#include <string_view>

namespace sylvite {

/// A hash of all sources that a worker process runs. Cached objects have code_id, which changes less often.
extern const std::string_view build_id;

}  // namespace sylvite
