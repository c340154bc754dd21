#include "schedules/candidate.h"

#include "base/error.h"

namespace sylvite {

std::string Candidate::to_string() const {
  return "form: " + form.to_string() + "\n" + schedule.to_string();
}

Candidate Candidate::parse(std::string_view text) {
  constexpr std::string_view prefix = "form: ";
  if (!text.starts_with(prefix))
    throw ModelError("a candidate starts with 'form: NAME', got '{}'", text.substr(0, 40));
  const std::size_t end = text.find('\n');
  Candidate candidate;
  candidate.form =
      Form::parse(text.substr(prefix.size(), end == std::string_view::npos ? end : end - prefix.size()));
  if (end != std::string_view::npos) candidate.schedule = Schedule::parse(text.substr(end + 1));
  return candidate;
}

}  // namespace sylvite
