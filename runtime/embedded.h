#pragma once
// Files that are part of the library itself, put there by the build (cmake/embed.cmake).

#include <string_view>

namespace sylvite::embedded {

/// Halide's runtime for the host's system and processor family: a relocatable object.
extern const std::string_view halide_runtime;

/// runtime/embed/launcher.c, compiled, and launcher.h: parts of every exported model.
extern const std::string_view launcher_object;
extern const std::string_view launcher_header;

}  // namespace sylvite::embedded
