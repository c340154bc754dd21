#pragma once
// What tells the candidates of a kernel apart, for people.

#include <string>
#include <vector>

namespace sylvite {

/// Of candidates of one kernel, as the database has them, a short text for each: its form and, among candidates of the same
/// form, what they do not all have. "q=2 i=14" is a loop i with 14 steps, split off another; where such numbers do not tell
/// two apart, directives that do follow: "conv_blocked q=2 i=14 v1.fuse(b,ll)". Equal texts are equal candidates. One that
/// does not parse is shown as the first line and a hash of its text.
[[nodiscard]] std::vector<std::string> candidate_labels(const std::vector<std::string>& candidates);

}  // namespace sylvite
