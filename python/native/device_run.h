#pragma once
// One run of a captured graph on a GPU: inputs are read where they lie, results and work memory are torch's, and the work
// is queued on torch's current stream.

#include <map>
#include <set>
#include <vector>

#include "python/native/captured.h"

namespace sylvite::python {

/// Functions of Python for memory on the device.
struct DeviceTools {
  /// Inputs are the caller's list alone, as values saved for gradients are: each is let go behind the last work that reads it.
  bool lets_go = false;
  Ref allocate;                 ///< (dims, strides, dtype) -> a tensor there
  Ref place;                    ///< (tensor, strides) -> a copy there that lies so
  Ref to_host;                  ///< tensor -> the same in the CPU's memory
  Ref write;                    ///< (target, value) copies
  std::map<DType, Ref> dtypes;  ///< torch's names
  Ref find_counters;            ///< see WriteCounts
};

/// From a tuple of the flag, the four, a dict of torch's types by our names, and the last. Throws PythonError.
[[nodiscard]] DeviceTools read_device_tools(PyObject* tuple);

/// The stream that torch queues work on now.
[[nodiscard]] cuda::StreamHandle current_stream(const dlpack::ExchangeApi& api);

class DeviceRun {
 public:
  /// Queues the run. `list` has the inputs of the call; those that may be let go, but those of `kept`, are None in it
  /// afterwards. Throws what Program::run_on throws, PythonError; this once an input was let go, too, as nothing else
  /// can then compute the graph.
  DeviceRun(const DeviceTools& tools, CapturedProgram& program, PyObject* list,
            const std::set<std::size_t>& kept, const dlpack::ExchangeApi& api);

  /// The tensor of the text's result with that number.
  [[nodiscard]] Ref value(std::size_t number) const;
  /// Queues a copy of that result over the elements of the input.
  void write(std::size_t number, PyObject* input) const;

 private:
  void read_inputs(PyObject* list);
  void place_overwrites(const std::vector<PyObject*>& items);
  void run_whole();
  void run_in_turns(PyObject* list, const std::set<std::size_t>& kept);
  [[nodiscard]] cuda::DevicePointer take_output(std::size_t output);
  [[nodiscard]] cuda::DevicePointer take_bytes(Ref& place, std::size_t bytes);
  void drop_input(PyObject* list, std::size_t input);
  void take_work();

  const DeviceTools& tools_;
  CapturedProgram& program_;
  cuda::StreamHandle stream_;
  bool is_captured_;
  DeviceArguments arguments_;
  std::vector<Ref> copies_;             ///< of inputs, until the work that reads them is queued
  Ref work_;                            ///< likewise
  std::map<std::size_t, Ref> between_;  ///< values of the program, likewise
  std::vector<Ref> values_;             ///< results, per output of the program
  bool has_let_go_ = false;
};

}  // namespace sylvite::python
