#pragma once
// What a call of a captured graph returns.

#include <functional>
#include <set>
#include <vector>

#include "python/native/object.h"
#include "sylvite/extent.h"

namespace sylvite::python {

/// What a call returns at one place.
struct Result {
  enum class Kind { none, value, input, size, view, part } kind = Kind::none;
  std::size_t number = 0;       ///< of the text's result, or of the input
  Extent size;                  ///< of a size; a view's or part's offset from what it shows
  std::vector<Extent> dims;     ///< of a view, or of a part
  std::vector<Extent> strides;  ///< of a view, or of a part
};

/// Numbers of the inputs that are returned, or views of them.
[[nodiscard]] std::set<std::size_t> shown_inputs(const std::vector<Result>& results);

/// As the class Text of sylvite/torch_graph.py has it. Throws PythonError.
[[nodiscard]] Result read_result(PyObject* tuple);

/// Makes the tensor of the text's result with that number.
using ValueMaker = std::function<Ref(std::size_t)>;

/// The list that the call returns; equal results are one object. `items` are the inputs, `make_view` makes a view of one.
/// Throws PythonError, and what `value` throws.
[[nodiscard]] Ref returned_list(const std::vector<Result>& results, const std::vector<PyObject*>& items,
                                const SymbolValues& sizes, PyObject* make_view, const ValueMaker& value);

}  // namespace sylvite::python
