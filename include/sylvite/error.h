#pragma once
// The typed errors of Sylvite. Every message names the thing, what was expected, and what to do.

#include <stdexcept>
#include <string>
#include <type_traits>

namespace sylvite {

/// Frozen: the numbers are the status codes of the C boundary and the exit codes of the command.
enum class ErrorCode : int {
  ok = 0,
  internal = 1,         ///< a broken invariant of ours; please report
  bad_usage = 2,        ///< wrong command line, key or argument
  bad_model = 3,        ///< the model file is malformed or inconsistent
  unsupported = 4,      ///< a valid model that needs an operator, dtype or attribute we lack
  bad_input = 5,        ///< run-time tensor with the wrong name, shape or dtype
  io_failure = 6,       ///< a file or folder could not be read or written
  compile_failure = 7,  ///< no candidate of a kernel could be compiled
  verify_failure = 8,   ///< results disagree with the reference
};

/// Base of all exceptions thrown on purpose. Catch this at a boundary, a derived type to react to one kind.
class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  [[nodiscard]] ErrorCode code() const { return code_; }

 private:
  ErrorCode code_;
};

/// A format string for arguments of these types. Defined by base/error.h, within Sylvite alone.
template <typename... Parts>
struct ErrorFormat;

template <ErrorCode Code>
class ErrorOf : public Error {
 public:
  explicit ErrorOf(const std::string& message) : Error(Code, message) {}

  template <typename First, typename... Rest>
  ErrorOf(std::type_identity_t<ErrorFormat<First, Rest...>> format, First&& first, Rest&&... rest);
};

using InternalError = ErrorOf<ErrorCode::internal>;
using UsageError = ErrorOf<ErrorCode::bad_usage>;
using ModelError = ErrorOf<ErrorCode::bad_model>;
using UnsupportedError = ErrorOf<ErrorCode::unsupported>;
using InputError = ErrorOf<ErrorCode::bad_input>;
using IoError = ErrorOf<ErrorCode::io_failure>;
using CompileError = ErrorOf<ErrorCode::compile_failure>;
using VerifyError = ErrorOf<ErrorCode::verify_failure>;

}  // namespace sylvite
