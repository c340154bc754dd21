#include "python/native/settings.h"

#include "base/log.h"
#include "base/size_range.h"
#include "runtime/setup.h"

namespace sylvite::python {
namespace {

/// The value at the key, borrowed; nullptr where there is none.
PyObject* find(PyObject* dict, const char* key) {
  PyObject* found = PyDict_GetItemWithError(dict, from_text(key).get());
  if (found == nullptr && PyErr_Occurred() != nullptr) throw PythonError();
  return found;
}

std::map<std::string, std::string> texts_by_name(PyObject* dict) {
  std::map<std::string, std::string> texts;
  PyObject* key = nullptr;
  PyObject* value = nullptr;
  for (Py_ssize_t place = 0; PyDict_Next(dict, &place, &key, &value) != 0;)
    texts[to_text(key)] = to_text(value);
  return texts;
}

template <typename Number>
PyObject* number_object(Number number) {
  if constexpr (std::is_floating_point_v<Number>)
    return PyFloat_FromDouble(number);
  else
    return PyLong_FromLongLong(number);
}

}  // namespace

CompileOptions read_settings(PyObject* settings) {
  CompileOptions options;
  if (PyObject* mode = find(settings, "mode")) options.mode = to_text(mode);
  if (PyObject* set = find(settings, "set")) options.set = texts_by_name(set);
  if (PyObject* files = find(settings, "config_files"))
    for (PyObject* file : items_of(files)) options.config_files.push_back(to_text(file));
  if (PyObject* dims = find(settings, "dims"))
    for (const auto& [name, sizes] : texts_by_name(dims))
      options.import.dims[name] = parse_size_range(sizes, "dims['" + name + "']");
  if (PyObject* states = find(settings, "states")) options.import.states = texts_by_name(states);
  if (PyObject* command = find(settings, "worker_command")) options.worker_command = to_text(command);
  return options;
}

void set_up_log_of(const CompileOptions& options) {
  const LogLevel level = resolve_settings(options).config().log_level;
  if (level != LogLevel::warning)
    set_up_log(level, /*as_json=*/false);  // warnings are reports' and Python's own
}

Ref report_object(const CompileReport& report) {
  Ref dict = Ref::own(PyDict_New());
  const auto add = [&](const char* name, const Ref& value) {
    if (PyDict_SetItemString(dict.get(), name, value.get()) != 0) throw PythonError();
  };
  const auto number = [&](const char* name, auto value) { add(name, Ref::own(number_object(value))); };
  number("programs", report.programs);
  number("sizes", report.sizes);
  number("specialized", report.specialized);
  number("kernels", report.kernels);
  number("unique_kernels", report.unique_kernels);
  number("trials", report.trials);
  number("compiled", report.compiled);
  number("loaded_from_cache", report.loaded_from_cache);
  number("import_seconds", report.import_seconds);
  number("compile_seconds", report.compile_seconds);
  number("tune_seconds", report.tune_seconds);
  number("ready_seconds", report.ready_seconds);
  number("first_answer_seconds", report.first_answer_seconds);
  number("weights_seconds", report.weights_seconds);
  number("peak_bytes", report.peak_bytes);
  number("sum_of_values_bytes", report.sum_of_values_bytes);
  add("warnings", from_texts(report.warnings));
  return dict;
}

}  // namespace sylvite::python
