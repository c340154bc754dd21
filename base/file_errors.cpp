#include "base/file_errors.h"

namespace sylvite {

void throw_of_code(ErrorCode code, const std::string& message) {
  switch (code) {
    case ErrorCode::bad_usage:
      throw UsageError(message);
    case ErrorCode::bad_model:
      throw ModelError(message);
    case ErrorCode::unsupported:
      throw UnsupportedError(message);
    case ErrorCode::bad_input:
      throw InputError(message);
    case ErrorCode::io_failure:
      throw IoError(message);
    case ErrorCode::compile_failure:
      throw CompileError(message);
    case ErrorCode::verify_failure:
      throw VerifyError(message);
    case ErrorCode::ok:
    case ErrorCode::internal:
      break;
  }
  throw InternalError(message);
}

void rethrow_of_file(const Error& error, const std::string& path) {
  const std::string message = error.what();
  if (error.code() == ErrorCode::bad_usage || message.find(path) != std::string::npos) throw;
  throw_of_code(error.code(), path + ": " + message);
}

}  // namespace sylvite
