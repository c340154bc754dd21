#pragma once
// What a model's file says of itself, read without importing it: `sylvite info`.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "frontend/onnx/imported_model.h"

namespace sylvite {

struct ModelFacts {
  std::string producer;  ///< e.g. "pytorch 2.11.0"; may be empty
  std::int64_t ir_version = 0;
  std::map<std::string, std::int64_t> opsets;  ///< by domain; ONNX's own is "ai.onnx"
  std::vector<ModelPort> inputs;   ///< those that a run is given; sizes by name, e.g. f32[batch,3]
  std::vector<ModelPort> outputs;  ///< as the file declares them
  std::map<std::string, std::int64_t> operators;  ///< how often each stands in the main graph, by name
  std::int64_t nodes = 0;                         ///< of the main graph
  std::int64_t functions = 0;                     ///< that the file defines
  std::int64_t weights = 0;                       ///< initializers
  std::int64_t weight_elements = 0;
  std::int64_t weight_bytes = 0;      ///< as stored
  std::int64_t external_weights = 0;  ///< of them, those in files beside the model
};

/// Never throws for a model that parse_model takes.
[[nodiscard]] ModelFacts read_model_facts(const ParsedModel& model);

}  // namespace sylvite
