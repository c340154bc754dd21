// The native module of the package: sylvite._native.

#include "base/version.h"
#include "python/native/array.h"
#include "python/native/model.h"
#include "python/native/program.h"

namespace sylvite::python {
namespace {

int fill(PyObject* module) {
  return guarded(
      [&] {
        add_exceptions(module);
        add_tensor_type(module);
        add_model_type(module);
        add_program_types(module);
        if (PyModule_AddStringConstant(module, "version", std::string(version).c_str()) != 0)
          throw PythonError();
        return 0;
      },
      -1);
}

PyModuleDef* definition() {
  static PyMethodDef functions[] = {
      {"compile_model", compile_model, METH_VARARGS, "compile_model(path, settings) -> Model"},
      {"make_setup", make_setup_object, METH_O, "make_setup(settings) -> Setup"},
      {"make_program", make_program, METH_VARARGS,
       "make_program(setup, text, inputs, held, symbols, results, writes, tools, device) -> Program"},
      {"stop_making", stop_making, METH_NOARGS, "Ends what is compiled in the background."},
      {"refusals", list_refusals, METH_VARARGS, "refusals(text, sizes) -> [(node, op, reason)]"},
      {nullptr, nullptr, 0, nullptr}};
  static PyModuleDef_Slot slots[] = {{Py_mod_exec, reinterpret_cast<void*>(fill)}, {0, nullptr}};
  static PyModuleDef made = {
      PyModuleDef_HEAD_INIT, "sylvite._native", nullptr, 0, functions, slots, nullptr, nullptr, nullptr};
  return &made;
}

}  // namespace
}  // namespace sylvite::python

// Python looks for this name.
// NOLINTNEXTLINE(bugprone-reserved-identifier,readability-identifier-naming)
extern "C" __attribute__((visibility("default"))) PyObject* PyInit__native() {
  return PyModuleDef_Init(sylvite::python::definition());
}
