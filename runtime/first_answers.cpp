#include "runtime/first_answers.h"

#include "base/clock.h"

namespace sylvite {

FirstAnswers::FirstAnswers(const Imported& imported, double seconds, MakeFamily make)
    : model_(evaluate_model(imported)),
      plan_(imported.plan),
      report_(imported.report),
      seconds_before_(seconds),
      family_(std::move(make)) {}

template <typename Run>
auto FirstAnswers::answer(const Run& run) {
  const double start = steady_seconds();
  auto results = run();
  if (report_.first_answer_seconds == 0)
    report_.first_answer_seconds = seconds_before_ + steady_seconds() - start;
  return results;
}

std::vector<HostValue> FirstAnswers::run_values(const std::vector<HostValue>& inputs) {
  return answer([&] { return sylvite::run_values(model_, inputs); });
}

std::vector<Tensor> FirstAnswers::run_tensors(const std::vector<Tensor>& inputs) {
  return answer([&] { return sylvite::run_tensors(model_, inputs); });
}

}  // namespace sylvite
