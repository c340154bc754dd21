#include "base/file_errors.h"

namespace sylvite {

void rethrow_of_file(const Error& error, const std::string& path) {
  const std::string message = error.what();
  if (error.code() == ErrorCode::bad_usage || message.find(path) != std::string::npos) throw;
  const std::string named = path + ": " + message;
  switch (error.code()) {
    case ErrorCode::bad_model:
      throw ModelError(named);
    case ErrorCode::unsupported:
      throw UnsupportedError(named);
    case ErrorCode::bad_input:
      throw InputError(named);
    case ErrorCode::io_failure:
      throw IoError(named);
    case ErrorCode::compile_failure:
      throw CompileError(named);
    case ErrorCode::verify_failure:
      throw VerifyError(named);
    case ErrorCode::ok:
    case ErrorCode::bad_usage:
    case ErrorCode::internal:
      break;
  }
  throw InternalError(named);
}

}  // namespace sylvite
