#pragma once
// Candidates with the kernels that they are for, as people read, edit and keep them. Described in docs/formats.md.

#include <string>
#include <string_view>
#include <vector>

#include "lowering/plan/plan.h"
#include "schedules/candidate.h"

namespace sylvite {

/// What a kernel runs, or shall run.
struct KernelSchedule {
  std::string kernel;  ///< its id
  std::string name;    ///< for people alone: its class and its first launch
  Candidate candidate;
};

/// "matmul fc".
[[nodiscard]] std::string readable_name(const Plan& plan, std::size_t kernel);

/// A statement per line; long ones with a directive per line.
[[nodiscard]] std::string readable(const Schedule& schedule);

/// A line "kernel ID NAME", then the candidate, indented.
[[nodiscard]] std::string to_text(const KernelSchedule& schedule);

/// All of a file, or of what is left of one: `lines_before` were others. Lines that begin with '#' and empty ones say
/// nothing. Throws UsageError, with `origin` and the line, for what is neither, an id that is there twice, and a
/// candidate that does not parse.
[[nodiscard]] std::vector<KernelSchedule> parse_schedules(std::string_view text, const std::string& origin,
                                                          int lines_before = 0);

}  // namespace sylvite
