#pragma once
// The tables of a model exported for a GPU, as C.

#include <string>
#include <vector>

#include "runtime/export/export_sources.h"

namespace sylvite {

/// Machine code of one image for devices of one compute capability; see sylvite_cuda_code.
struct CudaCode {
  int capability = 0;  ///< 90 for 9.0; 0 is PTX
  bool exact = false;  ///< for no later device
  std::string bytes;
};

/// What each image of the programs is exported as, in the order in which they first name them. Cubins of
/// templates stay as they are; PTX is assembled for `architectures` ("sm_80", ...) where nvJitLink is
/// installed, and is kept as the last choice. Adds to `warnings` what cannot be had. Throws UsageError for an
/// architecture that is no such name, CompileError when an image cannot be assembled for one.
[[nodiscard]] std::vector<std::vector<CudaCode>> device_codes(const std::vector<ExportedProgram>& programs,
                                                              const std::vector<std::string>& architectures,
                                                              std::vector<std::string>& warnings);

[[nodiscard]] std::string cuda_tables_source(const ExportedModel& model,
                                             const std::vector<std::vector<CudaCode>>& codes);  ///< NAME.c
[[nodiscard]] std::string cuda_interface_header(const ExportedModel& model);                    ///< NAME.h

}  // namespace sylvite
