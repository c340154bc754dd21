#include "runtime/session.h"

#include "base/error.h"
#include "frontend/quick/quick.h"
#include "runtime/tails.h"

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
    case Source::pinned:
      return "pinned";
    case Source::lock:
      return "lock";
  }
  throw InternalError("corrupt source {}", static_cast<int>(source));
}

std::vector<ModelPort> input_ports(const Imported& imported) {
  if (imported.host != nullptr) return imported.host->inputs();
  std::vector<ModelPort> ports;
  const std::vector<bool> is_state = imported.graph.state_inputs();
  for (std::size_t i = 0; i < is_state.size(); ++i) {
    const Value& value = imported.graph.value(imported.graph.inputs[i]);
    if (!is_state[i]) ports.push_back({value.name, value.type.to_string(), ValueKind::tensor});
  }
  return ports;
}

std::vector<ModelPort> output_ports(const Imported& imported) {
  if (imported.host != nullptr) return imported.host->outputs();
  const Graph& graph = imported.graph;
  std::vector<ModelPort> ports;
  ports.reserve(graph.outputs.size());
  const std::vector<bool> is_next = graph.state_outputs();
  for (std::size_t i = 0; i < graph.outputs.size(); ++i)
    if (!is_next[i])
      ports.push_back({graph.output_name(i), graph.type(graph.outputs[i]).to_string(), ValueKind::tensor});
  return ports;
}

std::vector<HostValue> run_model_values(const HostPart* host, const std::vector<HostValue>& inputs,
                                        const GraphRunner& run_graph, int threads,
                                        const TailRunner& run_tail) {
  return run_model(
      host, inputs, run_graph,
      [threads](Op op, InputTensors given, const Attributes& attributes, ResultTypes types) {
        return evaluate_quickly(op, given, attributes, types, threads);
      },
      run_tail);
}

std::vector<Tensor> run_model_tensors(const HostPart* host, const std::vector<Tensor>& inputs,
                                      const GraphRunner& run_graph, int threads, const TailRunner& run_tail) {
  if (host == nullptr) return run_graph(inputs);
  if (inputs.size() != host->inputs().size()) {
    throw InputError(
        "{} tensors given, the model takes {} values, some of which may be no tensors of numbers; "
        "CompiledModel::run_values takes any",
        inputs.size(), host->inputs().size());
  }
  std::vector<Tensor> outputs;
  for (const HostValue& output :
       run_model_values(host, {inputs.begin(), inputs.end()}, run_graph, threads, run_tail))
    outputs.push_back(output.tensor());
  return outputs;
}

namespace {

std::vector<Tensor> run_program(Built& built, const std::vector<Tensor>& inputs) {
  return built.room ? built.program.run(with_room(built.program, *built.room, inputs))
                    : built.program.run(inputs);
}

TailRunner tail_runner(const Built& built) {
  constexpr double least_seconds = 2e-3;  // about what a program at new sizes takes
  if (built.tails == nullptr) return {};
  return {[&](const std::shared_ptr<const ParsedModel>& tail, const std::vector<HostValue>& inputs) {
            return built.tails->run(tail, inputs);
          },
          least_seconds};
}

}  // namespace

std::vector<HostValue> run_values(Built& built, const std::vector<HostValue>& inputs) {
  return run_model_values(
      built.host.get(), inputs,
      [&](const std::vector<Tensor>& tensors) { return run_program(built, tensors); },
      built.program.threads(), tail_runner(built));
}

std::vector<Tensor> run_tensors(Built& built, const std::vector<Tensor>& inputs) {
  if (built.host == nullptr) return run_program(built, inputs);
  return run_model_tensors(
      built.host.get(), inputs,
      [&](const std::vector<Tensor>& tensors) { return run_program(built, tensors); },
      built.program.threads(), tail_runner(built));
}

}  // namespace sylvite
