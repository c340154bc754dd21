#pragma once
// Which inputs and outputs of a model are one value that stays between runs.

#include <map>
#include <string>

#include "sylvite/graph.h"
#include "sylvite/import.h"

namespace onnx {
class GraphProto;
}  // namespace onnx

namespace sylvite {

/// Name of an input -> name of the output that is its next value. Throws UsageError for names that the model lacks, with
/// the nearest, for a name in two pairs, and for usual names where it has none.
[[nodiscard]] std::map<std::string, std::string> read_model_states(const onnx::GraphProto& graph,
                                                                   const ImportOptions& options);

/// Notes them in a graph with the model's inputs and outputs. Throws UsageError where the types of both differ.
void mark_states(Graph& graph, const std::map<std::string, std::string>& states);

}  // namespace sylvite
