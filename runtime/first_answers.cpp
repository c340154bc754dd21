#include "runtime/first_answers.h"

#include "base/clock.h"

namespace sylvite {

FirstAnswers::FirstAnswers(OpenModel model, const Imported& imported, double seconds, MakeFamily make)
    : evaluation_(std::make_unique<OpenEvaluation>(std::move(model), imported)),
      plan_(imported.plan),
      host_(imported.host),
      report_(imported.report),
      seconds_before_(seconds),
      family_(std::move(make)) {}

template <typename Inputs>
auto FirstAnswers::answer(const Inputs& inputs) {
  const double start = steady_seconds();
  auto results = evaluation_->run(inputs);
  if (report_.first_answer_seconds == 0)
    report_.first_answer_seconds = seconds_before_ + steady_seconds() - start;
  return results;
}

std::vector<HostValue> FirstAnswers::run_values(const std::vector<HostValue>& inputs) {
  return answer(inputs);
}

std::vector<Tensor> FirstAnswers::run_tensors(const std::vector<Tensor>& inputs) {
  return answer(inputs);
}

}  // namespace sylvite
