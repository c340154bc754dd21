#pragma once
// What Python says to the compiler.

#include "python/native/object.h"
#include "sylvite/sylvite.h"

namespace sylvite::python {

/// `settings` is a dict: "mode" (text), "set" (dict of texts), "config_files" (list of texts), "dims" (dict of texts as
/// --dims has them), "states" (dict of texts: inputs and their outputs) and "worker_command" (text); all optional. Throws PythonError for other types, UsageError for sizes
/// that cannot be read.
[[nodiscard]] CompileOptions read_settings(PyObject* settings);

/// From now on the process says on stderr what log.level, where it is not the usual one, lets through.
void set_up_log_of(const CompileOptions& options);

/// Every field of the report, by its name.
[[nodiscard]] Ref report_object(const CompileReport& report);

}  // namespace sylvite::python
