#include "python/native/model.h"

#include <memory>
#include <mutex>

#include "python/native/array.h"
#include "python/native/holder.h"
#include "python/native/settings.h"
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

PyObject* run(PyObject* self, PyObject* list) {
  return guarded([&] {
    std::vector<Tensor> inputs;
    for (PyObject* item : items_of(list)) inputs.push_back(dense_tensor(read_array(item)));
    std::vector<Tensor> outputs;
    {
      const WithoutGil others_run;
      const std::lock_guard one_at_a_time(*ModelObject::of(self).running);
      outputs = model_of(self).run(inputs);
    }
    Ref results = Ref::own(PyList_New(0));
    for (Tensor& output : outputs)
      if (PyList_Append(results.get(), tensor_object(std::move(output)).get()) != 0) throw PythonError();
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

PyObject* host_steps(PyObject* self, PyObject* /*unused*/) {
  return guarded([&] {
    std::vector<std::string> lines;
    for (const HostStep& step : model_of(self).host_steps()) lines.push_back(step.name + ": " + step.reason);
    return from_texts(lines).release();
  });
}

PyType_Spec* spec() {
  static PyMethodDef methods[] = {
      {"run", run, METH_O, "Runs the model on a list of tensors; returns a list of Tensors."},
      {"input_names", input_names, METH_NOARGS, "Names of the inputs, in order."},
      {"output_names", output_names, METH_NOARGS, "Names of the outputs, in order."},
      {"reset_states", reset_states, METH_NOARGS, "Makes all states zero."},
      {"report", report, METH_NOARGS, "Counts and times of the compilation."},
      {"is_ready", is_ready, METH_NOARGS, "Do programs answer, or has compiling failed?"},
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
