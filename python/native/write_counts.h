#pragma once
// What tells that a parameter's numbers are others by now.

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "python/native/captured.h"
#include "python/native/object.h"

namespace sylvite::python {

/// Torch counts writes to a tensor, but not those of its norms to their running statistics: of these the numbers themselves are
/// looked at in the CPU's memory, and on a device the count of batches beside them. Nor does it count writes by `.data` and
/// to memory that is shared: in the CPU's memory some of a parameter's numbers are looked at. Needs the GIL.
class WriteCounts {
 public:
  /// `counters`: of statistics on a device, a list of them -> a list of what counts writes to each, or None. Null on a CPU.
  void set_counters(Ref counters) { find_counters_ = std::move(counters); }

  /// Other numbers have another count. `view`: of that item. nullopt where nothing tells. Throws PythonError.
  [[nodiscard]] std::optional<std::int64_t> of(const std::vector<CapturedInput>& inputs, std::size_t number,
                                               const std::vector<PyObject*>& items,
                                               const dlpack::DlTensor& view);

 private:
  /// Of an input of statistics; Python's None where there is none.
  struct Counter {
    PyObject* item = nullptr;  ///< not owned: the input for which it was found
    Ref counter;
  };

  [[nodiscard]] PyObject* counter_of(const std::vector<CapturedInput>& inputs, std::size_t number,
                                     const std::vector<PyObject*>& items);

  Ref find_counters_;
  std::map<std::size_t, Counter> counters_;  ///< by input
};

}  // namespace sylvite::python
