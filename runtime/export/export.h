#pragma once
// Export: a compiled model as a static library with a C interface, its weights, and a CMake package. What
// links to it needs libc, libm and pthread: no Halide, LLVM, OpenMP or Python; a model for a GPU opens the
// CUDA driver when it is created. See docs/embedding.md.

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/family.h"

namespace sylvite {

struct ExportOptions {
  std::string folder;             ///< made when missing; files of an earlier export are replaced
  std::string name = "model";     ///< C identifier
  bool embed_weights = false;     ///< into the library, instead of a file beside it
  std::string c_compiler = "cc";  ///< compiles the tables; without one, users' CMake projects compile them
  /// For a GPU: what machine code is made for, e.g. "sm_90"; empty: this machine's GPU.
  std::vector<std::string> architectures;
};

struct ExportReport {
  std::string name;
  std::vector<std::string> files;  ///< paths
  std::int64_t library_bytes = 0;
  std::int64_t weight_bytes = 0;
  int programs = 1;  ///< that its sizes need
  std::vector<std::string> warnings;
};

/// Writes NAME.h, libNAME.a, NAME.weights (unless they are embedded), NAME.c (the tables, as source) and NAMEConfig.cmake.
/// Throws UsageError for a bad name or architecture, IoError when something cannot
/// be written.
[[nodiscard]] ExportReport export_model(Built& built, const ExportOptions& options);

/// The same of a model whose sizes are ranges: its functions take sizes. `choose` is asked for the kernels of each
/// program; `compiled` gets what was compiled. Throws as cover_sizes, too.
[[nodiscard]] ExportReport export_open_model(const OpenModel& open, const Chooser& choose,
                                             const ExportOptions& options, CompileReport& compiled);

/// Throws UsageError for a name that is no C identifier.
void check_export_name(const std::string& name);

/// The model's file name as a C identifier: "resnet-18.onnx" becomes resnet_18.
[[nodiscard]] std::string identifier_of(const std::string& model_path);

}  // namespace sylvite
