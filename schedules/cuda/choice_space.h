#pragma once
// Spaces of CUDA C++ templates: their one parameter numbers the choices, the best guess first; the form that
// comes out names the numbers themselves, so that what is stored means the same when the guesses change.
// Internal to schedules/.

#include "base/error.h"
#include "lowering/algorithms/problems.h"
#include "schedules/bind_space.h"
#include "schedules/cuda/forms.h"

namespace sylvite {

/// What was read of a kernel. Throws UnsupportedError when the template `form` cannot take it.
template <typename Problem>
[[nodiscard]] Problem require_problem(Reading<Problem> reading, const char* form) {
  if (!reading.refusal.empty())
    throw UnsupportedError("the template {} cannot take the kernel: {}", form, reading.refusal);
  return std::move(reading.problem);
}

struct ChoiceNumber {
  std::int64_t choice = 0;
};

/// What to race for a kernel on a card; `form_of` names a choice's numbers.
template <typename Choice, typename FormOf>
struct ChoiceList {
  std::vector<Choice> choices;
  FormOf form_of;
  int capability;
  ChoiceNumber heuristic = {};

  [[nodiscard]] std::vector<Range<ChoiceNumber>> ranges() const {
    Range<ChoiceNumber> range{"choice", &ChoiceNumber::choice, {}};
    for (std::size_t i = 0; i < choices.size(); ++i) range.values.push_back(static_cast<std::int64_t>(i));
    return {range};
  }
  [[nodiscard]] Candidate at(const ChoiceNumber& number) const {
    return {for_capability(form_of(choices.at(static_cast<std::size_t>(number.choice))), capability), {}};
  }
};
template <typename Choice, typename FormOf>
[[nodiscard]] Binding bind_choices(const Card& card, std::vector<Choice> choices, FormOf form_of) {
  return bind_space(ChoiceList<Choice, FormOf>{std::move(choices), std::move(form_of), card.capability});
}

/// A space whose choices depend on the problem alone: `read` finds it in a kernel, `choices` lists what to
/// race.
template <auto read, auto choices, auto form_of>
[[nodiscard]] Binding bind_template(const Kernel& kernel, const Machine& machine) {
  if (std::string refusal = refuse_cuda_template(machine); !refusal.empty()) return {refusal};
  const auto reading = read(kernel);
  if (!reading.refusal.empty()) return {reading.refusal};
  return bind_choices(*machine.gpu, choices(reading.problem), form_of);
}

/// The same where the blocks of a cluster share work: `choices` takes how many the card lets share it.
template <auto read, auto choices, auto form_of>
[[nodiscard]] Binding bind_cluster_template(const Kernel& kernel, const Machine& machine) {
  constexpr int with_clusters = 90, most_blocks = 8;
  if (std::string refusal = refuse_cuda_template(machine); !refusal.empty()) return {refusal};
  const auto reading = read(kernel);
  if (!reading.refusal.empty()) return {reading.refusal};
  const int blocks = machine.gpu->capability < with_clusters ? 1 : most_blocks;
  return bind_choices(*machine.gpu, choices(reading.problem, blocks), form_of);
}

/// What a library's heuristics propose, by number, as it ranks them: the form has the number. It is not known
/// how many there are.
[[nodiscard]] inline Binding bind_library_choices(const char* form, const char* number) {
  struct Proposals {
    const char* form;
    const char* number;
    ChoiceNumber heuristic = {};

    [[nodiscard]] std::vector<Range<ChoiceNumber>> ranges() const {
      return {{number, &ChoiceNumber::choice, {0, 1, 2, 3, 4, 5, 6, 7}}};
    }
    [[nodiscard]] Candidate at(const ChoiceNumber& point) const {
      return {{form, {{number, point.choice}}}, {}};
    }
  };
  return bind_space(Proposals{form, number});
}

}  // namespace sylvite
