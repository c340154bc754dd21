#pragma once
// One run of a captured graph on the CPU.

#include <vector>

#include "python/native/captured.h"

namespace sylvite::python {

/// Before the first run of a program: which of its results lie in blocks that come back.
void make_result_blocks(CapturedProgram& program);

class HostRun {
 public:
  /// Runs, without the GIL. `items` are the inputs of the call; one run of a program at a time. Throws InputError for an input
  /// of another type, what Program::run throws, PythonError.
  HostRun(CapturedProgram& program, const std::vector<PyObject*>& items, const dlpack::ExchangeApi& api);
  ~HostRun();
  HostRun(const HostRun&) = delete;
  HostRun& operator=(const HostRun&) = delete;

  /// A tensor of the text's result with that number, where the run left it: once for each. Throws PythonError.
  [[nodiscard]] Ref value(std::size_t number);
  /// Copies that result over the elements of the input.
  void write(std::size_t number, PyObject* input) const;

 private:
  [[nodiscard]] Tensor tensor_of(std::size_t output) const;

  CapturedProgram& program_;
  HostResults& results_;
  const dlpack::ExchangeApi& api_;
};

}  // namespace sylvite::python
