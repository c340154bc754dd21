#include "runtime/session.h"

#include "base/error.h"

namespace sylvite {

std::string_view source_name(Source source) {
  switch (source) {
    case Source::heuristic:
      return "heuristic";
    case Source::database:
      return "database";
    case Source::search:
      return "search";
    case Source::reference:
      return "reference";
  }
  throw InternalError("corrupt source {}", static_cast<int>(source));
}

std::vector<std::string> output_names(const Imported& imported) {
  std::vector<std::string> names;
  if (imported.host != nullptr) {
    for (const ModelPort& port : imported.host->outputs()) names.push_back(port.name);
    return names;
  }
  for (const ValueId id : imported.graph.outputs) names.push_back(imported.graph.value(id).name);
  return names;
}

std::vector<HostValue> run_values(Built& built, const std::vector<HostValue>& inputs) {
  return run_model(built.host.get(), inputs,
                   [&](const std::vector<Tensor>& tensors) { return built.program.run(tensors); });
}

std::vector<Tensor> run_tensors(Built& built, const std::vector<Tensor>& inputs) {
  if (built.host == nullptr) return built.program.run(inputs);
  if (inputs.size() != built.host->inputs().size()) {
    throw InputError(
        "{} tensors given, the model takes {} values, some of which may be no tensors of numbers; "
        "CompiledModel::run_values takes any",
        inputs.size(), built.host->inputs().size());
  }
  std::vector<Tensor> outputs;
  for (const HostValue& output : run_values(built, {inputs.begin(), inputs.end()}))
    outputs.push_back(output.tensor());
  return outputs;
}

}  // namespace sylvite
