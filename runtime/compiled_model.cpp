#include "runtime/compiled_model.h"

#include "runtime/one_run.h"
#include "runtime/tails.h"

namespace sylvite {
namespace {

std::vector<Tensor> evaluate(FirstAnswers& first, const std::vector<Tensor>& inputs) {
  return first.run_tensors(inputs);
}
std::vector<HostValue> evaluate(FirstAnswers& first, const std::vector<HostValue>& inputs) {
  return first.run_values(inputs);
}
std::vector<Tensor> run_built(Built& built, const std::vector<Tensor>& inputs) {
  return run_tensors(built, inputs);
}
std::vector<HostValue> run_built(Built& built, const std::vector<HostValue>& inputs) {
  return run_values(built, inputs);
}

}  // namespace

template <typename Inputs>
auto CompiledModel::Rep::run(const Inputs& inputs) {
  const OneRun only(busy_);
  if (!is_ready()) return evaluate(*first_, inputs);
  Family& programs = family();
  if (evaluation_ == nullptr) return run_built(programs.of(inputs), inputs);
  Built* built = programs.compiled_of(inputs);
  return built == nullptr ? evaluation_->run(inputs) : run_built(*built, inputs);
}

void CompiledModel::Rep::wait() {
  family().wait();
  if (Tails* behind = tails()) behind->wait();
}

bool CompiledModel::Rep::is_compiling() const {
  if (first_ != nullptr) return !first_->is_ready();
  const Tails* behind = tails();
  return family_->is_compiling() || (behind != nullptr && behind->is_compiling());
}

void CompiledModel::Rep::stop_compiling() {
  if (first_ != nullptr) first_->stop();
  if (family_) family_->stop_compiling();
  if (Tails* behind = tails()) behind->stop();
}

std::vector<Tensor> CompiledModel::Rep::run_tensors(const std::vector<Tensor>& inputs) {
  return run(inputs);
}

std::vector<HostValue> CompiledModel::Rep::run_values(const std::vector<HostValue>& inputs) {
  return run(inputs);
}

Family& CompiledModel::Rep::family() {
  if (first_ != nullptr) {
    family_ = first_->take();
    first_answer_seconds_ = first_->report().first_answer_seconds;
    if (!first_->sizes().are_fixed()) evaluation_ = first_->take_evaluation();
    first_.reset();
  }
  return *family_;
}

const Plan& CompiledModel::Rep::plan() const {
  return first_ != nullptr ? first_->plan() : family_->latest().program.plan();
}

const HostPart* CompiledModel::Rep::host() const {
  return first_ != nullptr ? first_->host() : family_->latest().host.get();
}

const CompileReport& CompiledModel::Rep::report() {
  if (!is_ready()) return first_->report();
  report_ = family().report();
  report_.first_answer_seconds = first_answer_seconds_;
  return report_;
}

}  // namespace sylvite
