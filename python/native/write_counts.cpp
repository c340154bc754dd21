#include "python/native/write_counts.h"

#include <array>
#include <cstddef>
#include <cstring>

#include "python/native/array.h"

namespace sylvite::python {
namespace {

/// Torch's count of writes to the tensor.
std::optional<std::int64_t> version_of(PyObject* tensor) {
  static PyObject* const name = PyUnicode_InternFromString("_version");
  PyObject* version = PyObject_GetAttr(tensor, name);
  if (version == nullptr) {  // tensors of inference mode count no writes
    PyErr_Clear();
    return std::nullopt;
  }
  return to_integer(Ref::own(version).get());
}

/// Several sums side by side, as vectors compute them: sum = (sum + word) * odd, so that a word's place counts.
std::uint64_t hash_of(const void* data, std::size_t bytes) {
  constexpr std::uint64_t odd = 0x9e3779b97f4a7c15U;
  std::array<std::uint64_t, 8> sums{};
  const auto* at = static_cast<const std::byte*>(data);
  std::array<std::uint64_t, 8> words{};
  for (std::size_t done = 0; done < bytes; done += sizeof words) {
    const std::size_t rest = bytes - done;
    if (rest < sizeof words) words = {};
    std::memcpy(words.data(), at + done, rest < sizeof words ? rest : sizeof words);
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] = (sums[i] + words[i]) * odd;
  }
  std::uint64_t hash = 0;
  for (const std::uint64_t sum : sums) hash = (hash ^ (sum >> 29)) * odd + sum;
  return hash;
}

/// Of what lies row by row in the CPU's memory; nullopt for others.
std::optional<std::int64_t> content_of(PyObject* item) {
  const dlpack::DlTensor view = borrow_view(item);
  std::size_t count = 1;
  for (int i = view.ndim; i-- > 0;) {
    const bool is_next = view.strides == nullptr || view.strides[i] == static_cast<std::int64_t>(count);
    if (view.shape[i] != 1 && !is_next) return std::nullopt;
    count *= static_cast<std::size_t>(view.shape[i]);
  }
  const std::size_t bytes = count * view.dtype.bits * view.dtype.lanes / 8;
  return static_cast<std::int64_t>(hash_of(view.address(), bytes));
}

}  // namespace

std::optional<std::int64_t> WriteCounts::of(const std::vector<CapturedInput>& inputs, std::size_t number,
                                            const std::vector<PyObject*>& items) {
  const std::optional<std::int64_t> own = version_of(items[number]);
  if (!own || inputs[number].kind != CapturedInput::Kind::statistics) return own;
  if (find_counters_.get() == nullptr) return content_of(items[number]);
  PyObject* counter = counter_of(inputs, number, items);
  const std::optional<std::int64_t> batches = counter == Py_None ? std::nullopt : version_of(counter);
  return batches ? std::optional(*own + *batches) : std::nullopt;
}

/// Looked for once for all statistics: that walks all objects.
PyObject* WriteCounts::counter_of(const std::vector<CapturedInput>& inputs, std::size_t number,
                                  const std::vector<PyObject*>& items) {
  if (const auto found = counters_.find(number);
      found != counters_.end() && found->second.item == items[number])
    return found->second.counter.get();
  std::vector<std::size_t> numbers;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].kind == CapturedInput::Kind::statistics) numbers.push_back(i);
  const Ref list = Ref::own(PyList_New(static_cast<Py_ssize_t>(numbers.size())));
  for (std::size_t i = 0; i < numbers.size(); ++i)
    PyList_SetItem(list.get(), static_cast<Py_ssize_t>(i), Py_NewRef(items[numbers[i]]));
  const Ref found = Ref::own(PyObject_CallFunctionObjArgs(find_counters_.get(), list.get(), nullptr));
  const std::vector<PyObject*> all = items_of(found.get());
  for (std::size_t i = 0; i < numbers.size(); ++i)
    counters_[numbers[i]] = {items[numbers[i]], Ref::share(all.at(i))};
  return counters_.at(number).counter.get();
}

}  // namespace sylvite::python
