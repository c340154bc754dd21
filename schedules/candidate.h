#pragma once
// One way to compute a kernel.

#include <string>
#include <string_view>

#include "lowering/algorithms/form.h"
#include "schedules/schedule.h"

namespace sylvite {

/// What can be measured, stored, replayed and edited by hand. Text: "form: ..." on the first line, then the
/// schedule.
struct Candidate {
  Form form;
  Schedule schedule;

  [[nodiscard]] std::string to_string() const;
  [[nodiscard]] static Candidate parse(std::string_view text);
  bool operator==(const Candidate&) const = default;
};

}  // namespace sylvite
