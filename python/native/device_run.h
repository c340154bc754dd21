#pragma once
// One run of a captured graph on a GPU: inputs are read where they lie, results and work memory are torch's, and the work
// is queued on torch's current stream.

#include <map>
#include <vector>

#include "python/native/captured.h"

namespace sylvite::python {

/// Functions of Python for memory on the device.
struct DeviceTools {
  Ref allocate;                 ///< (dims, strides, dtype) -> a tensor there
  Ref place;                    ///< (tensor, strides) -> a copy there that lies so
  Ref to_host;                  ///< tensor -> the same in the CPU's memory
  Ref write;                    ///< (target, value) copies
  std::map<DType, Ref> dtypes;  ///< torch's names
};

/// From a tuple of the four, and a dict of torch's types by our names. Throws PythonError.
[[nodiscard]] DeviceTools read_device_tools(PyObject* tuple);

/// The stream that torch queues work on now.
[[nodiscard]] cuda::StreamHandle current_stream(const dlpack::ExchangeApi& api);

class DeviceRun {
 public:
  /// Queues the run. `items` are the inputs of the call. Throws what Program::run_on throws, PythonError.
  DeviceRun(const DeviceTools& tools, CapturedProgram& program, const std::vector<PyObject*>& items,
            const dlpack::ExchangeApi& api);

  /// The tensor of the text's result with that number.
  [[nodiscard]] Ref value(std::size_t number) const { return values_.at(number); }
  /// Queues a copy of that result over the elements of the input.
  void write(std::size_t number, PyObject* input) const;

 private:
  void read_inputs(const std::vector<PyObject*>& items);
  void allocate_results();
  void allocate_work();

  const DeviceTools& tools_;
  CapturedProgram& program_;
  cuda::StreamHandle stream_;
  bool is_captured_;
  DeviceArguments arguments_;
  std::vector<Ref> kept_;    ///< copies of inputs, and work memory, until the work is queued
  std::vector<Ref> values_;  ///< per output of the text
};

}  // namespace sylvite::python
