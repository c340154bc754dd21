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

/// How many elements there are, where they lie without gaps in any order of axes; nullopt for others.
std::optional<std::size_t> dense_count(const dlpack::DlTensor& view) {
  std::size_t count = 1, span = 1;
  for (int i = 0; i < view.ndim; ++i) {
    if (view.shape[i] == 0) return 0;
    count *= static_cast<std::size_t>(view.shape[i]);
    if (view.strides != nullptr) span += static_cast<std::size_t>((view.shape[i] - 1) * view.strides[i]);
  }
  if (view.strides != nullptr && span != count) return std::nullopt;
  return count;
}

/// Of all that lies in the CPU's memory; nullopt where there are gaps.
std::optional<std::int64_t> content_of(const dlpack::DlTensor& view) {
  const std::optional<std::size_t> count = dense_count(view);
  if (!count) return std::nullopt;
  return static_cast<std::int64_t>(hash_of(view.address(), *count * view.dtype.bits * view.dtype.lanes / 8));
}

/// Of small ones all, of others what lies at some places: a write of the whole tensor changes these.
std::int64_t sample_of(const dlpack::DlTensor& view) {
  constexpr std::size_t most = 256, part = 64, parts = 3;
  const std::size_t bytes = dense_count(view).value_or(1) * view.dtype.bits * view.dtype.lanes / 8;
  const auto* data = static_cast<const std::byte*>(view.address());
  if (data == nullptr) return 0;  // zeros that have no memory
  if (bytes <= most) return static_cast<std::int64_t>(hash_of(data, bytes));
  std::array<std::byte, part * parts> sample{};
  for (std::size_t i = 0; i < parts; ++i)
    std::memcpy(sample.data() + i * part, data + (bytes - part) / (parts - 1) * i, part);
  return static_cast<std::int64_t>(hash_of(sample.data(), sample.size()));
}

}  // namespace

std::optional<std::int64_t> WriteCounts::of(const std::vector<CapturedInput>& inputs, std::size_t number,
                                            const std::vector<PyObject*>& items,
                                            const dlpack::DlTensor& view) {
  const std::optional<std::int64_t> own = version_of(items[number]);
  const bool is_statistics = inputs[number].kind == CapturedInput::Kind::statistics;
  if (!own) return own;
  if (find_counters_.get() == nullptr)
    return is_statistics ? content_of(view) : std::optional(*own + sample_of(view));
  if (!is_statistics) return own;
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
