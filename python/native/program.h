#pragma once
// The Python types for graphs that torch captured.

#include "python/native/object.h"

namespace sylvite::python {

/// Adds the types `Setup` and `Program`. A Program is called with one list, which it empties, and returns a list, as
/// AOTAutograd's boxed convention says; report() tells of what was compiled: kernels of the latest program, counts and times of
/// all. Throws PythonError.
void add_program_types(PyObject* module);

/// make_setup(settings) -> Setup; settings as in settings.h.
[[nodiscard]] PyObject* make_setup_object(PyObject* module, PyObject* settings);

/// make_program(setup, text, inputs, held, symbols, results, writes, tools, device) -> Program. The seven from `text` on are
/// as the class Text of sylvite/torch_graph.py, with a third word for a write whose input shares its memory with no other;
/// `tools` is (fallback, failed, view): what runs the graph when it cannot be compiled, what is told why, and what makes a
/// view of an input; `device` is as read_device_tools has it where the setup is for a GPU. Nothing is compiled before the
/// first call.
[[nodiscard]] PyObject* make_program(PyObject* module, PyObject* arguments);

/// stop_making(): ends what is compiled in the background, which may not outlive the interpreter.
[[nodiscard]] PyObject* stop_making(PyObject* module, PyObject* unused);

/// refusals(text, sizes) -> [(node, op, reason)]
[[nodiscard]] PyObject* list_refusals(PyObject* module, PyObject* arguments);

}  // namespace sylvite::python
