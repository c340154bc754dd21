#pragma once
// The text files of an export: tables and interface as C, and the CMake package.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/export/exported_program.h"

namespace sylvite {

/// What the tables are made of. Refers to things that live longer.
struct ExportedModel {
  std::string name;            ///< C identifier
  std::string id;              ///< 16 hex digits: of everything that ties weights and tables together
  const Plan* plan = nullptr;  ///< at the greatest sizes
  std::vector<SizeSymbol> sizes;
  std::optional<Growth> growth;
  std::vector<ExportedProgram> programs;  ///< one where sizes are fixed
  std::int64_t weight_bytes = 0;
  bool embeds_weights = false;  ///< the library holds them, under embedded_weights_symbol
  std::string target;           ///< Halide target of the kernels

  /// Do the functions take sizes, or inputs whose extents follow from states?
  [[nodiscard]] bool is_open() const { return !sizes.empty() || growth.has_value(); }
};

[[nodiscard]] std::string embedded_weights_symbol(const std::string& name);

/// C text that the tables of all exports are made of: what they begin with, the launcher's header, and where states and sizes are.
[[nodiscard]] std::string tables_begin(const ExportedModel& model, std::string_view launcher_header);
/// sylvite_interface of embed/sized_program.h, after those tables and the array `boxes`.
[[nodiscard]] std::string interface_row(const ExportedModel& model, std::size_t number_count);
/// What differs between the functions of models with sizes and of others; `launcher` begins the names of the launcher's.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> interface_parts(const ExportedModel& model,
                                                                               std::string_view launcher);
/// The functions of a model for its users; `functions` is their text for its launcher.
[[nodiscard]] std::string interface_functions(const ExportedModel& model, std::string_view functions,
                                              std::string_view launcher);
[[nodiscard]] std::string c_string(std::string_view text);
/// With commas between.
[[nodiscard]] std::string joined(const std::vector<std::string>& words);
/// How the tables call where bytes lie.
[[nodiscard]] std::string_view source_name(BufferKind kind);
/// `static TYPE NAME[] = {ROWS};`, with one null row when there are none: C has no empty arrays.
[[nodiscard]] std::string array_of(std::string_view type, std::string_view name,
                                   const std::vector<std::string>& rows);
/// The template with every @types@ replaced by the types all models share, what `parts` names likewise, then every @ by the
/// name.
[[nodiscard]] std::string filled(std::string_view pattern, const std::string& name,
                                 const std::vector<std::pair<std::string, std::string>>& parts = {});

[[nodiscard]] std::string tables_source(const ExportedModel& model);     ///< NAME.c
[[nodiscard]] std::string interface_header(const ExportedModel& model);  ///< NAME.h; for the CPU
/// `tables_compiled`: whether libNAME.a holds NAME.c.
[[nodiscard]] std::string package_config(const ExportedModel& model,
                                         bool tables_compiled);  ///< NAMEConfig.cmake

}  // namespace sylvite
