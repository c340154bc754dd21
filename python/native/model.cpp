#include "python/native/model.h"

#include <memory>
#include <mutex>

#include "python/native/array.h"
#include "python/native/holder.h"
#include "python/native/settings.h"
#include "runtime/compiled_model.h"
#include "sylvite/sylvite.h"

namespace sylvite::python {
namespace {

struct Model {
  std::unique_ptr<CompiledModel> model;
  std::unique_ptr<std::mutex> running = std::make_unique<std::mutex>();
};
using ModelObject = Holder<Model>;

PyObject*& model_type() {
  static PyObject* type = nullptr;
  return type;
}

CompiledModel& model_of(PyObject* self) {
  return *ModelObject::of(self).model;
}

/// Strings come as (dims, texts), since no buffer holds them; sequences as lists.
HostValue read_value(PyObject* item) {
  if (PyList_Check(item) != 0) {
    HostValue::Sequence values;
    for (PyObject* each : items_of(item)) values.push_back(read_value(each));
    return HostValue(std::move(values));
  }
  if (PyTuple_Check(item) == 0) return dense_tensor(read_array(item));
  StringTensor strings;
  const std::vector<PyObject*> parts = items_of(item);
  for (PyObject* extent : items_of(parts.at(0))) strings.dims.push_back(to_integer(extent));
  for (PyObject* text : items_of(parts.at(1))) strings.values.push_back(to_text(text));
  return HostValue(std::move(strings));
}

/// Strings as read_value has them, a sequence as a list, nothing as None.
Ref value_object(const HostValue& value) {
  if (value.is_tensor()) return tensor_object(value.tensor());
  if (value.is_strings()) {
    const StringTensor& strings = value.strings();
    return Ref::own(
        Py_BuildValue("(OO)", from_integers(strings.dims).get(), from_texts(strings.values).get()));
  }
  if (value.is_absent()) return Ref::share(Py_None);
  Ref items = Ref::own(PyList_New(0));
  for (const HostValue& item : value.sequence())
    if (PyList_Append(items.get(), value_object(item).get()) != 0) throw PythonError();
  return items;
}

PyObject* run(PyObject* self, PyObject* list) {
  return guarded([&] {
    std::vector<HostValue> inputs;
    for (PyObject* item : items_of(list)) inputs.push_back(read_value(item));
    std::vector<HostValue> outputs;
    {
      const WithoutGil others_run;
      const std::lock_guard one_at_a_time(*ModelObject::of(self).running);
      outputs = model_of(self).run_values(inputs);
    }
    Ref results = Ref::own(PyList_New(0));
    for (const HostValue& output : outputs)
      if (PyList_Append(results.get(), value_object(output).get()) != 0) throw PythonError();
    return results.release();
  });
}

PyObject* input_names(PyObject* self, PyObject* /*unused*/) {
  return guarded([&] { return from_texts(model_of(self).input_names()).release(); });
}

PyObject* output_names(PyObject* self, PyObject* /*unused*/) {
  return guarded([&] { return from_texts(model_of(self).output_names()).release(); });
}

PyObject* reset_states(PyObject* self, PyObject* /*unused*/) {
  return guarded([&] {
    model_of(self).reset_state();
    return Py_NewRef(Py_None);
  });
}

PyObject* report(PyObject* self, PyObject* /*unused*/) {
  return guarded([&] {
    CompileReport known;
    {
      const WithoutGil others_run;
      const std::lock_guard one_at_a_time(*ModelObject::of(self).running);
      known = model_of(self).report();
    }
    return report_object(known).release();
  });
}

PyObject* is_ready(PyObject* self, PyObject* /*unused*/) {
  return guarded([&] {
    bool is_so = false;
    {
      const WithoutGil others_run;
      const std::lock_guard one_at_a_time(*ModelObject::of(self).running);
      is_so = model_of(self).is_ready();
    }
    return PyBool_FromLong(is_so ? 1 : 0);
  });
}

PyObject* is_compiling(PyObject* self, PyObject* /*unused*/) {
  return guarded([&] {
    bool is_so = false;
    {
      const WithoutGil others_run;
      const std::lock_guard one_at_a_time(*ModelObject::of(self).running);
      is_so = model_of(self).rep().is_compiling();
    }
    return PyBool_FromLong(is_so ? 1 : 0);
  });
}

PyObject* stop_compiling(PyObject* self, PyObject* /*unused*/) {
  return guarded([&] {
    {
      const WithoutGil others_run;
      const std::lock_guard one_at_a_time(*ModelObject::of(self).running);
      model_of(self).rep().stop_compiling();
    }
    return Py_NewRef(Py_None);
  });
}

PyObject* host_steps(PyObject* self, PyObject* /*unused*/) {
  return guarded([&] {
    std::vector<std::string> lines;
    for (const HostStep& step : model_of(self).host_steps()) lines.push_back(step.name + ": " + step.reason);
    return from_texts(lines).release();
  });
}

PyType_Spec* spec() {
  static PyMethodDef methods[] = {
      {"run", run, METH_O,
       "Runs the model on a list of tensors; returns a list of Tensors. Strings are (dims, texts)."},
      {"input_names", input_names, METH_NOARGS, "Names of the inputs, in order."},
      {"output_names", output_names, METH_NOARGS, "Names of the outputs, in order."},
      {"reset_states", reset_states, METH_NOARGS, "Makes all states zero."},
      {"report", report, METH_NOARGS, "Counts and times of the compilation."},
      {"is_ready", is_ready, METH_NOARGS, "Do programs answer, or has compiling failed?"},
      {"is_compiling", is_compiling, METH_NOARGS, "Are kernels being compiled, of the model or behind runs?"},
      {"stop_compiling", stop_compiling, METH_NOARGS,
       "Ends what is compiled in the background, which may not outlive the interpreter."},
      {"host_steps", host_steps, METH_NOARGS, "What is not compiled, and why."},
      {nullptr, nullptr, 0, nullptr}};
  static PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(ModelObject::free_object)},
                                {Py_tp_methods, methods},
                                {0, nullptr}};
  static PyType_Spec made = {"sylvite._native.Model", sizeof(ModelObject), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  return &made;
}

}  // namespace

void add_model_type(PyObject* module) {
  model_type() = Ref::own(PyType_FromSpec(spec())).release();
  if (PyModule_AddObjectRef(module, "Model", model_type()) != 0) throw PythonError();
}

PyObject* compile_model(PyObject* /*module*/, PyObject* arguments) {
  return guarded([&] {
    PyObject* path = nullptr;
    PyObject* settings = nullptr;
    if (PyArg_ParseTuple(arguments, "UO!", &path, &PyDict_Type, &settings) == 0) throw PythonError();
    const CompileOptions options = read_settings(settings);
    set_up_log_of(options);
    const std::string file = to_text(path);
    Model made;
    {
      const WithoutGil others_run;
      made.model = std::make_unique<CompiledModel>(compile(file, options));
    }
    return ModelObject::make(model_type(), std::move(made)).release();
  });
}

}  // namespace sylvite::python
