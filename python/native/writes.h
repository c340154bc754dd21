#pragma once
// What a captured graph writes over its inputs at its end, and which of it may lie there at once.

#include <cstddef>
#include <vector>

#include "python/native/captured.h"
#include "python/native/returned.h"

namespace sylvite::python {

/// The output `result` of the text is written over the input.
struct Write {
  std::size_t input = 0;
  std::size_t result = 0;
  bool is_alone = false;  ///< no other input shares the memory
};

/// Those of what nothing else shows, over memory that no other input has.
[[nodiscard]] std::vector<Write> lone_writes(const std::vector<Write>& writes,
                                             const std::vector<Result>& results);

/// Notes in the program which of these results lie, or may lie, where the inputs are over which they are written.
void note_overwrites(const std::vector<Write>& writes, CapturedProgram& program);

}  // namespace sylvite::python
