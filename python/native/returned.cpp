#include "python/native/returned.h"

#include <algorithm>

#include "base/error.h"
#include "frontend/values/extents_at.h"

namespace sylvite::python {
namespace {

std::vector<Extent> extents_of(PyObject* texts) {
  std::vector<Extent> extents;
  for (PyObject* text : items_of(texts)) extents.push_back(Extent::parse(to_text(text)));
  return extents;
}

Ref view_of(const Result& result, PyObject* whole, const SymbolValues& sizes, PyObject* make_view) {
  const Ref dims = from_integers(extents_at(result.dims, sizes));
  const Ref strides = from_integers(extents_at(result.strides, sizes));
  const Ref offset = Ref::own(PyLong_FromLongLong(result.size.at(sizes)));
  return Ref::own(
      PyObject_CallFunctionObjArgs(make_view, whole, dims.get(), strides.get(), offset.get(), nullptr));
}

}  // namespace

Result read_result(PyObject* tuple) {
  const std::vector<PyObject*> words = items_of(tuple);
  const std::string kind = to_text(words.at(0));
  Result result;
  if (kind == "none") return result;
  if (kind == "size") {
    result.kind = Result::Kind::size;
    result.size = Extent::parse(to_text(words.at(1)));
    return result;
  }
  result.number = static_cast<std::size_t>(to_integer(words.at(1)));
  result.kind = kind == "value"   ? Result::Kind::value
                : kind == "input" ? Result::Kind::input
                : kind == "part"  ? Result::Kind::part
                                  : Result::Kind::view;
  if (kind == "value" || kind == "input") return result;
  result.dims = extents_of(words.at(2));
  result.strides = extents_of(words.at(3));
  result.size = Extent::parse(to_text(words.at(4)));
  return result;
}

std::set<std::size_t> shown_inputs(const std::vector<Result>& results) {
  std::set<std::size_t> shown;
  for (const Result& result : results)
    if (result.kind == Result::Kind::input || result.kind == Result::Kind::view) shown.insert(result.number);
  return shown;
}

Ref returned_list(const std::vector<Result>& results, const std::vector<PyObject*>& items,
                  const SymbolValues& sizes, PyObject* make_view, const ValueMaker& value) {
  std::vector<Ref> made;
  const auto made_value = [&](std::size_t number) -> const Ref& {
    if (number >= made.size()) made.resize(std::max(number + 1, results.size()));
    if (!made[number]) made[number] = value(number);
    return made[number];
  };
  const auto object = [&](const Result& result) -> Ref {
    switch (result.kind) {
      case Result::Kind::none:
        return Ref::share(Py_None);
      case Result::Kind::value:
        return made_value(result.number);
      case Result::Kind::input:
        return Ref::share(items.at(result.number));
      case Result::Kind::size:
        return Ref::own(PyLong_FromLongLong(result.size.at(sizes)));
      case Result::Kind::view:
        return view_of(result, items.at(result.number), sizes, make_view);
      case Result::Kind::part:
        return view_of(result, made_value(result.number).get(), sizes, make_view);
    }
    throw InternalError("corrupt kind of result");
  };
  Ref list = Ref::own(PyList_New(static_cast<Py_ssize_t>(results.size())));
  for (std::size_t i = 0; i < results.size(); ++i)
    PyList_SetItem(list.get(), static_cast<Py_ssize_t>(i), object(results[i]).release());
  return list;
}

}  // namespace sylvite::python
