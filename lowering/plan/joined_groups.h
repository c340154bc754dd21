#pragma once
// Which groups of a convolution by a constant filter tensor cores take, with images whose channels lie innermost.

#include <cstdint>

namespace sylvite {

/// Does a template for images of such numbers take the groups, of so many channels and results each, as they are?
[[nodiscard]] bool have_template(std::int64_t groups, std::int64_t inputs, std::int64_t outputs);

/// How many neighbouring groups become one with zeros between them, where no template takes the groups: the fewest that fill
/// tiles, or all. 1 where a template takes them, and where so many products by zero are not worth it.
[[nodiscard]] std::int64_t groups_to_join(std::int64_t groups, std::int64_t inputs, std::int64_t outputs);

}  // namespace sylvite
