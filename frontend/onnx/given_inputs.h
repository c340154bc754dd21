#pragma once
// Names of inputs that people give (--shapes, --bind) against those of a model.

#include "sylvite/import.h"

namespace onnx {
class GraphProto;
}

namespace sylvite {

/// Throws UsageError, with the nearest name and all there are, when `options` names an input that the graph does not
/// have.
void check_given_inputs(const onnx::GraphProto& graph, const ImportOptions& options);

}  // namespace sylvite
