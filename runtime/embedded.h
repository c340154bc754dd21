#pragma once
// Files that are part of the library itself, put there by the build (cmake/embed.cmake).

#include <string_view>

namespace sylvite::embedded {

/// Halide's runtime for the host's system and processor family: a relocatable object.
extern const std::string_view halide_runtime;

/// runtime/export/embed: its C files, compiled, and texts that exported models are made of.
extern const std::string_view launcher_object;
extern const std::string_view launcher_arguments_object;
extern const std::string_view cuda_launcher_object;
extern const std::string_view cuda_launcher_run_object;
extern const std::string_view cuda_launcher_states_object;
extern const std::string_view weights_file_object;
extern const std::string_view sized_program_object;
extern const std::string_view first_places_object;
extern const std::string_view sized_program_header;
extern const std::string_view launcher_header;
extern const std::string_view cuda_launcher_header;
extern const std::string_view model_types;
extern const std::string_view model_header;     ///< NAME.h, with @ for the name, as in those below
extern const std::string_view model_functions;  ///< the end of NAME.c
extern const std::string_view
    model_header_open;  ///< a part of NAME.h, of models with sizes or states that grow
extern const std::string_view model_functions_open;  ///< likewise of NAME.c
extern const std::string_view cuda_model_header;
extern const std::string_view cuda_model_functions;
extern const std::string_view package_config;     ///< NAMEConfig.cmake
extern const std::string_view uncompiled_tables;  ///< its end where no C compiler was found

}  // namespace sylvite::embedded
