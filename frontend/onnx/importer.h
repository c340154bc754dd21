#pragma once
// ONNX model -> Graph over the op table. Opsets oldest_opset to newest_opset of the default domain, plus functions of the model.

#include <string>
#include <string_view>

#include "sylvite/graph.h"
#include "sylvite/import.h"

namespace sylvite {

inline constexpr int oldest_opset = 1;
inline constexpr int newest_opset = 28;  ///< the README names both

/// Reads and imports a model file. External data is memory-mapped, and only from the model's own folder:
/// absolute paths, "..", special files and links are refused; see DataFolder for the links that are not. Throws
/// IoError, ModelError (malformed; names the node or tensor), UnsupportedError (names the operator, attribute or
/// dtype) or UsageError (options that do not fit the model). Bounded memory for any input bytes. A size that is a
/// range has its first hint's value, or what its name suggests.
[[nodiscard]] Graph import_onnx(const std::string& path, const ImportOptions& options = {});

/// The same from bytes in memory; `folder` is where external data may lie ("" for none).
[[nodiscard]] Graph import_onnx_bytes(std::string_view bytes, const std::string& folder,
                                      const ImportOptions& options = {});

}  // namespace sylvite
