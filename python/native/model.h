#pragma once
// The Python type of a compiled model.

#include "python/native/object.h"

namespace sylvite::python {

/// Adds the type `Model`, and `compile_model(path, settings)`, which makes one; settings as in settings.h. A model has
/// run(list of tensors) -> list of Tensors, input_names(), output_names(), host_steps() and report(). Runs of one model in
/// several threads wait for each other, without the GIL. Throws PythonError.
void add_model_type(PyObject* module);

[[nodiscard]] PyObject* compile_model(PyObject* module, PyObject* arguments);

}  // namespace sylvite::python
