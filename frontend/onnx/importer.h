#pragma once
// ONNX model -> Graph over the op table. Opsets 1 to 27 of the default domain, plus functions of the model.

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "frontend/graph/graph.h"

namespace sylvite {

struct ImportOptions {
  /// Values for symbolic dims of the model's inputs; those not named become 1.
  std::map<std::string, std::int64_t> dims;
  /// Whole shapes for inputs, by name; wins over `dims`.
  std::map<std::string, Dims> input_shapes;
  /// Inputs to bind as compile-time constants, by name: shapes, axes and limits that must be known.
  std::map<std::string, Tensor> bound_inputs;
  /// Fill initializers whose data is absent (external with no location or no file) with seeded random values,
  /// scaled by fan-in.
  bool random_weights = false;
  std::uint64_t seed = 0;
  /// Most operations that the graph may have once functions are inlined and loops unrolled. At most the
  /// default; lower it to refuse smaller models.
  std::int64_t max_nodes = 30'000;
  /// What the host steps of one run may allocate, in bytes, and compute, in scalar steps: for models and
  /// inputs that are not trusted.
  std::int64_t host_bytes = std::numeric_limits<std::int64_t>::max();
  std::int64_t host_work = std::numeric_limits<std::int64_t>::max();
};

/// Reads and imports a model file. External data is memory-mapped, and only from the model's own folder:
/// absolute paths, "..", links and special files are refused. Throws IoError, ModelError (malformed; names
/// the node or tensor) or UnsupportedError (names the operator, attribute or dtype). Bounded memory for any
/// input bytes.
[[nodiscard]] Graph import_onnx(const std::string& path, const ImportOptions& options = {});

/// The same from bytes in memory; `folder` is where external data may lie ("" for none).
[[nodiscard]] Graph import_onnx_bytes(std::string_view bytes, const std::string& folder,
                                      const ImportOptions& options = {});

}  // namespace sylvite
