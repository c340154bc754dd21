#include "frontend/onnx/tensor.h"

#include <onnx-ml.pb.h>

#include <cstring>

#include "base/error.h"
#include "frontend/ops/infer.h"

namespace sylvite {
namespace {

using onnx::TensorProto;

struct TypeRow {
  TensorProto::DataType data_type;
  DType dtype;
};

constexpr TypeRow type_table[] = {
    {TensorProto::FLOAT, DType::f32},
    {TensorProto::FLOAT16, DType::f16},
    {TensorProto::BFLOAT16, DType::bf16},
    {TensorProto::DOUBLE, DType::f64},
    {TensorProto::INT8, DType::i8},
    {TensorProto::INT16, DType::i16},
    {TensorProto::INT32, DType::i32},
    {TensorProto::INT64, DType::i64},
    {TensorProto::UINT8, DType::u8},
    {TensorProto::UINT16, DType::u16},
    {TensorProto::UINT32, DType::u32},
    {TensorProto::UINT64, DType::u64},
    {TensorProto::BOOL, DType::boolean},
    {TensorProto::FLOAT8E4M3FN, DType::f8e4m3fn},
    {TensorProto::FLOAT8E4M3FNUZ, DType::f8e4m3fnuz},
    {TensorProto::FLOAT8E5M2, DType::f8e5m2},
    {TensorProto::FLOAT8E5M2FNUZ, DType::f8e5m2fnuz},
    {TensorProto::FLOAT8E8M0, DType::f8e8m0},
    {TensorProto::FLOAT4E2M1, DType::f4e2m1},
    {TensorProto::INT4, DType::i4},
    {TensorProto::UINT4, DType::u4},
    {TensorProto::INT2, DType::i2},
    {TensorProto::UINT2, DType::u2},
};

constexpr std::int64_t share_above_bytes = std::int64_t{1} << 20;
constexpr std::int64_t max_sparse_bytes = std::int64_t{256}
                                          << 20;  ///< a few bytes of a file can ask for so much

std::string describe(const TensorProto& proto) {
  return proto.name().empty() ? "unnamed tensor" : fmt::format("tensor '{}'", proto.name());
}

Dims checked_dims(const TensorProto& proto) {
  Dims dims(proto.dims().begin(), proto.dims().end());
  const std::int64_t count = checked_product(dims, describe(proto));
  if (count > (std::int64_t{1} << 40))
    throw UnsupportedError("{}: {} elements are too many", describe(proto), count);
  for (const std::int64_t extent : dims)
    if (extent > extent_limit) throw UnsupportedError("{}: extent {} is too large", describe(proto), extent);
  return dims;
}

std::int64_t parse_number(const std::string& text, const std::string& what) {
  std::size_t used = 0;
  std::int64_t value = -1;
  try {
    value = std::stoll(text, &used);
  } catch (const std::exception&) {
    used = 0;
  }
  if (used == 0 || used != text.size() || value < 0)
    throw ModelError("{}: '{}' is not a byte count", what, text);
  return value;
}

ExternalRange external_range(const TensorProto& proto) {
  ExternalRange range;
  for (const auto& entry : proto.external_data()) {
    if (entry.key() == "location") range.location = entry.value();
    if (entry.key() == "offset") range.offset = parse_number(entry.value(), describe(proto));
    if (entry.key() == "length") range.length = parse_number(entry.value(), describe(proto));
  }
  return range;
}

/// Wraps `size` bytes at `data`: shared when `owner` is given and they are aligned, else copied.
Tensor wrap_bytes(DType dtype, const Dims& dims, const void* data, const std::shared_ptr<const void>& owner) {
  const bool is_aligned = reinterpret_cast<std::uintptr_t>(data) % dtype_size(dtype) == 0;
  if (owner != nullptr && is_aligned) return {dtype, dims, owner, data};
  Tensor tensor(dtype, dims);
  if (tensor.byte_size() > 0)
    std::memcpy(tensor.mutable_data(), data, static_cast<std::size_t>(tensor.byte_size()));
  return tensor;
}

template <typename Field>
Tensor from_integer_field(const TensorProto& proto, DType dtype, const Dims& dims, const Field& field) {
  const std::int64_t count = checked_product(dims, describe(proto));
  if (field.size() != count)
    throw ModelError("{}: {} values are given, its dims need {}", describe(proto), field.size(), count);
  Tensor tensor(dtype, dims);
  const bool holds_bits = is_half(dtype);
  for (int i = 0; i < field.size(); ++i) {
    if (is_narrow_float(dtype)) {
      static_cast<std::uint8_t*>(tensor.mutable_data())[i] = static_cast<std::uint8_t>(field.Get(i));
    } else if (holds_bits) {
      tensor.mutable_view<std::uint16_t>()[static_cast<std::size_t>(i)] =
          static_cast<std::uint16_t>(field.Get(i));
    } else {
      tensor.set_int64(i, static_cast<std::int64_t>(field.Get(i)));
    }
  }
  return tensor;
}

template <typename Field>
Tensor from_real_field(const TensorProto& proto, DType dtype, const Dims& dims, const Field& field) {
  const std::int64_t count = checked_product(dims, describe(proto));
  if (field.size() != count)
    throw ModelError("{}: {} values are given, its dims need {}", describe(proto), field.size(), count);
  return wrap_bytes(dtype, dims, field.data(), nullptr);
}

/// Bytes that a tensor takes in a file: numbers of less than a byte lie side by side, lowest bits first.
std::int64_t file_bytes(DType dtype, std::int64_t count) {
  return dtype_bits(dtype) < 8 ? (count * dtype_bits(dtype) + 7) / 8
                               : count * static_cast<std::int64_t>(dtype_size(dtype));
}

Tensor unpack(DType dtype, const Dims& dims, const void* bytes) {
  Tensor tensor(dtype, dims);
  const auto* from = static_cast<const std::uint8_t*>(bytes);
  const int bits = dtype_bits(dtype);
  for (std::int64_t i = 0; i < tensor.size(); ++i) {
    const int code = (from[i * bits / 8] >> (i * bits % 8)) & ((1 << bits) - 1);
    if (is_narrow_float(dtype))
      static_cast<std::uint8_t*>(tensor.mutable_data())[i] = static_cast<std::uint8_t>(code);
    else
      tensor.set_int64(i, code);
  }
  return tensor;
}

/// The inverse of unpack: codes are the low bits of their bytes.
std::string pack(const Tensor& tensor) {
  std::string packed(static_cast<std::size_t>(file_bytes(tensor.dtype(), tensor.size())), '\0');
  const auto* codes = static_cast<const std::uint8_t*>(tensor.data());
  const int bits = dtype_bits(tensor.dtype());
  for (std::int64_t i = 0; i < tensor.size(); ++i) {
    const int code = codes[i] & ((1 << bits) - 1);
    packed[static_cast<std::size_t>(i * bits / 8)] |= static_cast<char>(code << (i * bits % 8));
  }
  return packed;
}

/// The field holds the bytes of the packed form, one each.
Tensor from_packed_field(const TensorProto& proto, DType dtype, const Dims& dims) {
  const std::int64_t bytes = file_bytes(dtype, checked_product(dims, describe(proto)));
  if (proto.int32_data_size() != bytes) {
    throw ModelError("{}: {} packed values are given, its dims need {}", describe(proto),
                     proto.int32_data_size(), bytes);
  }
  std::vector<std::uint8_t> packed;
  for (const std::int32_t value : proto.int32_data()) packed.push_back(static_cast<std::uint8_t>(value));
  return unpack(dtype, dims, packed.data());
}

Tensor from_typed_fields(const TensorProto& proto, DType dtype, const Dims& dims) {
  switch (dtype) {
    case DType::f32:
      return from_real_field(proto, dtype, dims, proto.float_data());
    case DType::f64:
      return from_real_field(proto, dtype, dims, proto.double_data());
    case DType::i64:
      return from_integer_field(proto, dtype, dims, proto.int64_data());
    case DType::u32:
    case DType::u64:
      return from_integer_field(proto, dtype, dims, proto.uint64_data());
    default:
      return from_integer_field(proto, dtype, dims, proto.int32_data());
  }
}

/// Boolean bytes must be 0 or 1: anything else is undefined behaviour once read as bool.
Tensor normalized_booleans(Tensor tensor) {
  if (tensor.dtype() != DType::boolean) return tensor;
  Tensor result(DType::boolean, tensor.dims());
  const auto* from = static_cast<const std::uint8_t*>(tensor.data());
  auto* to = static_cast<std::uint8_t*>(result.mutable_data());
  for (std::int64_t i = 0; i < tensor.size(); ++i) to[i] = from[i] != 0 ? 1 : 0;
  return result;
}

}  // namespace

DType dtype_of_onnx(int data_type) {
  for (const TypeRow& row : type_table)
    if (row.data_type == data_type) return row.dtype;
  const bool is_named = TensorProto::DataType_IsValid(data_type);
  throw UnsupportedError("element type {} is not supported",
                         is_named ? TensorProto::DataType_Name(static_cast<TensorProto::DataType>(data_type))
                                  : std::to_string(data_type));
}

int onnx_of_dtype(DType dtype) {
  for (const TypeRow& row : type_table)
    if (row.dtype == dtype) return row.data_type;
  throw InternalError("corrupt element type {}", static_cast<int>(dtype));
}

bool is_data_absent(const TensorProto& proto, const ExternalData& external) {
  if (proto.data_location() != TensorProto::EXTERNAL) return false;
  return !external.exists(external_range(proto).location);
}

std::string external_file_name(const TensorProto& proto, const ExternalData& external) {
  const std::string location = external_range(proto).location;
  return location.empty() ? "a file that the model does not name" : "'" + external.path_of(location) + "'";
}

Tensor decode_tensor(const TensorProto& proto, const ExternalData& external,
                     const std::shared_ptr<const void>& owner) {
  DType dtype;
  try {
    dtype = dtype_of_onnx(proto.data_type());
  } catch (const UnsupportedError& error) {
    throw UnsupportedError("{}: {}", describe(proto), error.what());
  }
  const Dims dims = checked_dims(proto);
  const std::int64_t bytes = file_bytes(dtype, checked_product(dims, describe(proto)));
  const bool is_packed = dtype_bits(dtype) < 8;
  if (proto.has_segment()) throw UnsupportedError("{}: segmented data is not supported", describe(proto));
  if (proto.data_location() == TensorProto::EXTERNAL) {
    const ExternalData::Bytes mapped = external.map(external_range(proto), bytes, describe(proto));
    if (is_packed) return unpack(dtype, dims, mapped.data);
    return tensor_of_bytes(dtype, dims, mapped);
  }
  if (!proto.has_raw_data())
    return is_packed ? from_packed_field(proto, dtype, dims) : from_typed_fields(proto, dtype, dims);
  if (static_cast<std::int64_t>(proto.raw_data().size()) != bytes) {
    throw ModelError("{}: {} bytes of data are given, its dims need {}", describe(proto),
                     proto.raw_data().size(), bytes);
  }
  if (is_packed) return unpack(dtype, dims, proto.raw_data().data());
  return normalized_booleans(
      wrap_bytes(dtype, dims, proto.raw_data().data(), bytes >= share_above_bytes ? owner : nullptr));
}

Tensor tensor_of_bytes(DType dtype, const Dims& dims, const ExternalData::Bytes& bytes) {
  return normalized_booleans(wrap_bytes(dtype, dims, bytes.data, bytes.owner));
}

StringTensor chosen_strings(const std::vector<std::string>& list, const Tensor& places) {
  StringTensor result{places.dims(), {}};
  result.values.reserve(static_cast<std::size_t>(places.size()));
  for (std::int64_t i = 0; i < places.size(); ++i) {
    const std::int64_t place = places.as_int64(i);
    if (place < 0 || place >= static_cast<std::int64_t>(list.size()))
      throw ModelError("text {} of {}", place, list.size());
    result.values.push_back(list[static_cast<std::size_t>(place)]);
  }
  return result;
}

StringTensor decode_strings(const TensorProto& proto) {
  if (proto.data_type() != TensorProto::STRING) throw ModelError("{} does not hold strings", describe(proto));
  StringTensor result{checked_dims(proto), {proto.string_data().begin(), proto.string_data().end()}};
  const std::int64_t count = checked_product(result.dims, describe(proto));
  if (static_cast<std::int64_t>(result.values.size()) != count) {
    throw ModelError("{}: {} strings are given, its dims need {}", describe(proto), result.values.size(),
                     count);
  }
  return result;
}

onnx::TensorProto encode_tensor(const Tensor& tensor, const std::string& name) {
  TensorProto proto;
  proto.set_name(name);
  proto.set_data_type(onnx_of_dtype(tensor.dtype()));
  for (const std::int64_t extent : tensor.dims()) proto.add_dims(extent);
  if (dtype_bits(tensor.dtype()) < 8)
    proto.set_raw_data(pack(tensor));
  else
    proto.set_raw_data(tensor.data(), static_cast<std::size_t>(tensor.byte_size()));
  return proto;
}

TensorProto encode_strings(const StringTensor& strings, const std::string& name) {
  TensorProto proto;
  proto.set_name(name);
  proto.set_data_type(TensorProto::STRING);
  for (const std::int64_t extent : strings.dims) proto.add_dims(extent);
  for (const std::string& value : strings.values) proto.add_string_data(value);
  return proto;
}

Tensor decode_sparse_tensor(const onnx::SparseTensorProto& proto, const ExternalData& external) {
  const Tensor values = decode_tensor(proto.values(), external);
  const Tensor indices = decode_tensor(proto.indices(), external);
  const Dims dims(proto.dims().begin(), proto.dims().end());
  const std::string what = fmt::format("sparse {}", describe(proto.values()));
  const std::int64_t count = checked_product(dims, what);
  if (count > max_sparse_bytes / static_cast<std::int64_t>(dtype_size(values.dtype())))
    throw UnsupportedError("{}: {} dense elements are too many; store it as a dense tensor", what, count);
  const bool is_linear = indices.dims().size() == 1;
  const std::int64_t width = is_linear ? 1 : static_cast<std::int64_t>(dims.size());
  if (indices.size() != values.size() * width) throw ModelError("{}: indices and values do not match", what);
  Tensor dense(values.dtype(), dims);
  const Dims strides = is_linear ? Dims{1} : dense_strides(dims);
  for (std::int64_t i = 0; i < values.size(); ++i) {
    std::int64_t at = 0;
    for (std::int64_t axis = 0; axis < width; ++axis) {
      const std::int64_t index = indices.as_int64(i * width + axis);
      const std::int64_t extent = is_linear ? count : dims[static_cast<std::size_t>(axis)];
      if (index < 0 || index >= extent) throw ModelError("{}: index {} is outside its dims", what, index);
      at += index * strides[static_cast<std::size_t>(axis)];
    }
    const std::size_t size = dtype_size(values.dtype());
    std::memcpy(static_cast<std::byte*>(dense.mutable_data()) + static_cast<std::size_t>(at) * size,
                static_cast<const std::byte*>(values.data()) + static_cast<std::size_t>(i) * size, size);
  }
  return dense;
}

const onnx::TensorProto* find_initializer(const onnx::GraphProto& graph, const std::string& name) {
  for (const onnx::TensorProto& initializer : graph.initializer())
    if (initializer.name() == name && initializer.data_type() != onnx::TensorProto::STRING)
      return &initializer;
  return nullptr;
}

}  // namespace sylvite
