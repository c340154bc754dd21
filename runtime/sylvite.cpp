#include "sylvite/sylvite.h"

#include "runtime/session.h"

namespace sylvite {
namespace {

CompiledModel finish(Session session) {
  choose_candidates(session);
  build_program(session);
  auto rep = std::make_unique<CompiledModel::Rep>();
  rep->session = std::move(session);
  return CompiledModel(std::move(rep));
}

std::vector<std::string> names_of(const Plan& plan, const std::vector<BufferId>& ids) {
  std::vector<std::string> names;
  for (const BufferId id : ids) names.push_back(plan.buffers.at(static_cast<std::size_t>(id)).name);
  return names;
}

std::vector<TensorType> types_of(const Plan& plan, const std::vector<BufferId>& ids) {
  std::vector<TensorType> types;
  for (const BufferId id : ids) types.push_back(plan.buffers.at(static_cast<std::size_t>(id)).type);
  return types;
}

}  // namespace

CompiledModel::CompiledModel(std::unique_ptr<Rep> rep) : rep_(std::move(rep)) {}
CompiledModel::CompiledModel(CompiledModel&&) noexcept = default;
CompiledModel& CompiledModel::operator=(CompiledModel&&) noexcept = default;
CompiledModel::~CompiledModel() = default;

std::vector<Tensor> CompiledModel::run(const std::vector<Tensor>& inputs) {
  return rep_->session.program->run(inputs);
}

const CompileReport& CompiledModel::report() const {
  return rep_->session.report;
}

std::vector<std::string> CompiledModel::input_names() const {
  const Plan& plan = rep_->session.current_plan();
  return names_of(plan, plan.inputs);
}

std::vector<TensorType> CompiledModel::input_types() const {
  const Plan& plan = rep_->session.current_plan();
  return types_of(plan, plan.inputs);
}

std::vector<std::string> CompiledModel::output_names() const {
  const Plan& plan = rep_->session.current_plan();
  return names_of(plan, plan.outputs);
}

std::vector<TensorType> CompiledModel::output_types() const {
  const Plan& plan = rep_->session.current_plan();
  return types_of(plan, plan.outputs);
}

CompiledModel compile(const std::string& onnx_path, const CompileOptions& options) {
  return finish(load_model(onnx_path, options));
}

CompiledModel compile(Graph graph, const CompileOptions& options) {
  return finish(load_graph(std::move(graph), options));
}

}  // namespace sylvite
