#include "runtime/open_evaluation.h"

namespace sylvite {
namespace {

OpenModel without_menu(OpenModel model) {
  model.menu = nullptr;
  return model;
}

}  // namespace

OpenEvaluation::OpenEvaluation(OpenModel model, const Imported& imported)
    : model_(without_menu(std::move(model))), given_(model_.parsed.sizes) {
  evaluated_.emplace(imported.sizes, evaluate_model(imported));
}

const Evaluated& OpenEvaluation::at(const Sizes& sizes) {
  constexpr std::size_t most = 4;  // each may have weights of its own, which passes have changed
  const auto found = evaluated_.find(sizes);
  if (found != evaluated_.end()) return found->second;
  if (evaluated_.size() >= most) evaluated_.clear();
  return evaluated_.emplace(sizes, evaluate_model(bind_sizes(model_, sizes))).first->second;
}

template <typename Inputs>
const Evaluated& OpenEvaluation::of(const Inputs& inputs) {
  return sizes().are_fixed() ? evaluated_.begin()->second : at(given_.of(inputs));
}

std::vector<HostValue> OpenEvaluation::run(const std::vector<HostValue>& inputs) {
  return run_values(of(inputs), inputs);
}

std::vector<Tensor> OpenEvaluation::run(const std::vector<Tensor>& inputs) {
  return run_tensors(of(inputs), inputs);
}

}  // namespace sylvite
