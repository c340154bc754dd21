#include "runtime/safetensors.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "frontend/onnx/tensor.h"

namespace sylvite {
namespace {

using Json = nlohmann::json;

constexpr std::int64_t length_bytes = 8;
constexpr std::uint64_t most_header_bytes = 100'000'000;  // as the format has it

constexpr std::pair<const char*, DType> types[] = {
    {"F64", DType::f64}, {"F32", DType::f32},      {"F16", DType::f16}, {"BF16", DType::bf16},
    {"I64", DType::i64}, {"I32", DType::i32},      {"I16", DType::i16}, {"I8", DType::i8},
    {"U8", DType::u8},   {"BOOL", DType::boolean},
};

DType dtype_of(const std::string& name, const std::string& what) {
  for (const auto& [text, dtype] : types)
    if (name == text) return dtype;
  throw UnsupportedError("{}: the element type {} is not served", what, name);
}

Json read_header(const ExternalData& folder, const std::string& file, std::int64_t& data_begin) {
  const ExternalData::Bytes prefix = folder.map({file, 0, {}}, length_bytes, file);
  std::uint64_t length = 0;
  std::memcpy(&length, prefix.data, sizeof length);
  if (length > most_header_bytes)
    throw ModelError("'{}' is no safetensors file: its header would have {} bytes", file, length);
  data_begin = length_bytes + static_cast<std::int64_t>(length);
  const ExternalData::Bytes bytes =
      folder.map({file, length_bytes, {}}, static_cast<std::int64_t>(length), file);
  const auto* text = reinterpret_cast<const char*>(bytes.data);
  Json header = Json::parse(text, text + length, nullptr, false);
  if (!header.is_object())
    throw ModelError("'{}' is no safetensors file: its header is no JSON object", file);
  return header;
}

/// What the header says of one tensor.
struct Entry {
  DType dtype = DType::f32;
  Dims dims;
  std::int64_t begin = 0, end = 0;  ///< behind the header
};

Entry read_entry(const Json& json, const std::string& what) {
  const auto is_count = [](const Json& each) {
    return each.is_number_unsigned() && each.get<std::uint64_t>() <= static_cast<std::uint64_t>(INT64_MAX);
  };
  const auto numbers = [&](const char* key) {
    const auto found = json.find(key);
    if (found == json.end() || !found->is_array() || !std::ranges::all_of(*found, is_count))
      throw ModelError("{}: expected a list of sizes as '{}'", what, key);
    return found->get<Dims>();
  };
  if (!json.is_object() || !json.contains("dtype") || !json["dtype"].is_string())
    throw ModelError("{}: expected an element type as 'dtype'", what);
  Entry entry{dtype_of(json["dtype"].get<std::string>(), what), numbers("shape")};
  const Dims offsets = numbers("data_offsets");
  if (offsets.size() != 2 || offsets[0] > offsets[1])
    throw ModelError("{}: expected the begin and end of its bytes as 'data_offsets'", what);
  std::tie(entry.begin, entry.end) = std::pair(offsets[0], offsets[1]);
  const std::int64_t count = checked_product(entry.dims, what);
  if (entry.end - entry.begin != count * static_cast<std::int64_t>(dtype_size(entry.dtype)))
    throw ModelError("{}: {} bytes are given, its shape needs {} elements", what, entry.end - entry.begin,
                     count);
  return entry;
}

Tensor read_tensor(const ExternalData& folder, const std::string& file, const Entry& entry,
                   std::int64_t data_begin, const std::string& what) {
  const std::int64_t size = entry.end - entry.begin;
  if (size == 0) return {entry.dtype, entry.dims};
  if (entry.begin > INT64_MAX - data_begin) throw ModelError("{}: its bytes lie outside the file", what);
  const ExternalData::Bytes bytes = folder.map({file, data_begin + entry.begin, {}}, size, what);
  return tensor_of_bytes(entry.dtype, entry.dims, bytes);
}

}  // namespace

std::map<std::string, Tensor> read_safetensors(const ExternalData& folder, const std::string& file) {
  std::int64_t data_begin = 0;
  const Json header = read_header(folder, file, data_begin);
  std::map<std::string, Tensor> tensors;
  for (const auto& [name, json] : header.items()) {
    if (name == "__metadata__") continue;
    const std::string what = fmt::format("tensor '{}' of '{}'", name, file);
    tensors.emplace(name, read_tensor(folder, file, read_entry(json, what), data_begin, what));
  }
  return tensors;
}

}  // namespace sylvite
