#pragma once
// One run of a captured graph on the CPU.

#include <vector>

#include "python/native/captured.h"

namespace sylvite::python {

class HostRun {
 public:
  /// Runs, without the GIL. `items` are the inputs of the call. Throws InputError for an input of another type, what
  /// Program::run throws, PythonError.
  HostRun(CapturedProgram& program, const std::vector<PyObject*>& items, const dlpack::ExchangeApi& api);

  /// A tensor of the text's result with that number, where the run left it. Throws PythonError.
  [[nodiscard]] Ref value(std::size_t number) const;
  /// Copies that result over the elements of the input.
  void write(std::size_t number, PyObject* input) const;

 private:
  const CapturedProgram& program_;
  const dlpack::ExchangeApi& api_;
  std::vector<Tensor> outputs_;
};

}  // namespace sylvite::python
