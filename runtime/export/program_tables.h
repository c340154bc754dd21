#pragma once
// The programs of a library as C: what sylvite_program of embed/launcher.h describes.

#include <cstddef>
#include <cstdint>
#include <string>

#include "runtime/export/export_sources.h"

namespace sylvite {

struct ProgramTables {
  std::string text;  ///< ends with the arrays `boxes` and `programs`
  std::int64_t arena_bytes = 0;
  std::size_t number_count = 0;
};

[[nodiscard]] ProgramTables program_tables(const ExportedModel& model);

}  // namespace sylvite
