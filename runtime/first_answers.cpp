#include "runtime/first_answers.h"

#include "base/clock.h"

namespace sylvite {

namespace {

OpenModel without_menu(OpenModel model) {
  model.menu = nullptr;
  return model;
}

}  // namespace

FirstAnswers::FirstAnswers(OpenModel model, const Imported& imported, double seconds, MakeFamily make)
    : model_(without_menu(std::move(model))),
      given_(model_.parsed.sizes),
      plan_(imported.plan),
      host_(imported.host),
      report_(imported.report),
      seconds_before_(seconds),
      family_(std::move(make)) {
  evaluated_.emplace(imported.sizes, evaluate_model(imported));
}

const Evaluated& FirstAnswers::at(const Sizes& sizes) {
  constexpr std::size_t most = 4;  // each may have weights of its own, which passes have changed
  const auto found = evaluated_.find(sizes);
  if (found != evaluated_.end()) return found->second;
  if (evaluated_.size() >= most) evaluated_.clear();
  return evaluated_.emplace(sizes, evaluate_model(bind_sizes(model_, sizes))).first->second;
}

template <typename Inputs, typename Run>
auto FirstAnswers::answer(const Inputs& inputs, const Run& run) {
  const double start = steady_seconds();
  const Evaluated& model = sizes().are_fixed() ? evaluated_.begin()->second : at(given_.of(inputs));
  auto results = run(model, inputs);
  if (report_.first_answer_seconds == 0)
    report_.first_answer_seconds = seconds_before_ + steady_seconds() - start;
  return results;
}

std::vector<HostValue> FirstAnswers::run_values(const std::vector<HostValue>& inputs) {
  return answer(inputs, [](const Evaluated& model, const std::vector<HostValue>& given) {
    return sylvite::run_values(model, given);
  });
}

std::vector<Tensor> FirstAnswers::run_tensors(const std::vector<Tensor>& inputs) {
  return answer(inputs, [](const Evaluated& model, const std::vector<Tensor>& given) {
    return sylvite::run_tensors(model, given);
  });
}

}  // namespace sylvite
