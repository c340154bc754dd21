#pragma once
// Errors again with more in their messages: those of what is made of a file name the file.

#include <string>

#include "sylvite/error.h"

namespace sylvite {

/// Throws an error of the type that has this code.
[[noreturn]] void throw_of_code(ErrorCode code, const std::string& message);

/// Throws an error of the type of `error`, with "path: " ahead of its message. As it is where the message names the path,
/// and an error of usage, which is not the file's. Call it while `error` is handled.
[[noreturn]] void rethrow_of_file(const Error& error, const std::string& path);

/// What `make` makes of a file.
template <typename Make>
auto with_file_named(const std::string& path, const Make& make) {
  try {
    return make();
  } catch (const Error& error) {
    rethrow_of_file(error, path);
  }
}

}  // namespace sylvite
