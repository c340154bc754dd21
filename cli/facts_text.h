#pragma once
// What a model's file says of itself, in lines.

#include <limits>
#include <string>
#include <vector>

#include "frontend/onnx/model_facts.h"

namespace sylvite {

/// "24 Conv, 3 Relu", the most frequent first; of those beyond `most`, how many there are.
[[nodiscard]] std::string operators_text(const ModelFacts& facts,
                                         std::size_t most = std::numeric_limits<std::size_t>::max());

/// "161, 25.6 M elements, 102.2 MB".
[[nodiscard]] std::string weights_text(const ModelFacts& facts);

/// "ai.onnx 17".
[[nodiscard]] std::string opsets_text(const ModelFacts& facts);

/// "x: f32[1,3], y: i64[4]", at most so many of them.
[[nodiscard]] std::string ports_text(const std::vector<ModelPort>& ports, std::size_t most);

}  // namespace sylvite
