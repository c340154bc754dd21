#pragma once
// Inputs that a file declares without a shape, and values of its own that a caller wants to give.

#include "sylvite/import.h"

namespace onnx {
class GraphProto;
}  // namespace onnx

namespace sylvite {

/// Inputs that `options` gives a shape of lose the value that the graph has for them: runs are given it.
void open_default_inputs(onnx::GraphProto& graph, const ImportOptions& options);

/// Declares shapes of numbers of which the graph says nothing: the ones that `options` gives, else axes of open sizes, as many as
/// an operator that reads the input needs. Inputs of which no reader says it stay as they are.
void declare_missing_shapes(onnx::GraphProto& graph, const ImportOptions& options);

}  // namespace sylvite
