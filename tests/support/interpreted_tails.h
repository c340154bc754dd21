#pragma once
// What follows steps on the host (frontend/onnx/tail.h), interpreted.

#include <memory>
#include <set>
#include <vector>

#include "frontend/graph/interpreter.h"
#include "frontend/onnx/imported_model.h"

namespace sylvite {

/// Runs tails by the interpreter, and their own tails.
class InterpretedTails {
 public:
  [[nodiscard]] TailRunner runner() {
    return {[this](const std::shared_ptr<const ParsedModel>& tail, const std::vector<HostValue>& inputs) {
      met_.insert(tail);
      Sizes sizes;
      SizeReader(tail->sizes)
          .read(
              inputs.size(),
              [&](std::size_t i) { return GivenType{inputs[i].tensor().dtype(), inputs[i].tensor().dims()}; },
              sizes);
      return run(import_at(*tail, sizes), inputs);
    }};
  }
  [[nodiscard]] std::vector<HostValue> run(const ImportedModel& model, const std::vector<HostValue>& inputs) {
    return run_model(
        model.host.get(), inputs, [&](const auto& tensors) { return interpret(model.graph, tensors); },
        evaluate_node, runner());
  }
  [[nodiscard]] std::size_t models() const { return met_.size(); }

 private:
  std::set<std::shared_ptr<const ParsedModel>> met_;
};

}  // namespace sylvite
