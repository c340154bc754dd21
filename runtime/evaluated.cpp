#include "runtime/evaluated.h"

#include <fmt/format.h>

#include "frontend/passes/pass_list.h"
#include "frontend/quick/quick.h"

namespace sylvite {
namespace {

GraphRunner runner_of(const Evaluated& model) {
  return [&model](const std::vector<Tensor>& inputs) {
    return interpret_quickly(model.graph, inputs, model.threads);
  };
}

}  // namespace

std::string refuse_evaluation(const Imported& imported) {
  constexpr double longest = 5;  // seconds; most models are compiled sooner than in twice that
  const Setup& setup = *imported.setup;
  if (setup.machine.gpu) return "it runs on a GPU";
  if (setup.config.tune_enabled) return "its kernels are measured first (tune.enabled)";
  if (setup.lock != nullptr) return "a lock says what it runs (compile.frozen)";
  if (!imported.graph.states.empty()) return "it has values that stay between runs";
  const double seconds = quick_seconds(imported.transformed) / setup.machine.threads;
  if (seconds > longest) return fmt::format("a run by evaluation would take about {:.0f} s", seconds);
  return "";
}

Evaluated evaluate_model(const Imported& imported) {
  const bool is_f32 = imported.setup->config.precision == Precision::f32;
  return {is_f32 ? imported.transformed : run_passes(imported.graph), imported.host,
          imported.setup->machine.threads};
}

std::vector<HostValue> run_values(const Evaluated& model, const std::vector<HostValue>& inputs) {
  return run_model_values(model.host.get(), inputs, runner_of(model), model.threads);
}

std::vector<Tensor> run_tensors(const Evaluated& model, const std::vector<Tensor>& inputs) {
  return run_model_tensors(model.host.get(), inputs, runner_of(model), model.threads);
}

}  // namespace sylvite
