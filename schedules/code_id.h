#pragma once
// Which code generator made an object.

#include <string_view>

namespace sylvite {

/// A hash of the sources that decide what a candidate becomes: another build of Sylvite takes no object of
/// this one's from a cache.
extern const std::string_view code_id;

}  // namespace sylvite
