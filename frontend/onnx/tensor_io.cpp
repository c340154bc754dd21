#include "frontend/onnx/tensor_io.h"

#include <onnx-data.pb.h>
#include <onnx-ml.pb.h>

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "base/files.h"
#include "frontend/onnx/tensor.h"
#include "frontend/values/npy.h"

namespace sylvite {
namespace {

enum class Format { npy, onnx };

Format format_of(const std::string& path) {
  if (path.ends_with(".npy")) return Format::npy;
  if (path.ends_with(".pb")) return Format::onnx;
  throw IoError("{}: tensors are read and written as .npy or .pb files", path);
}

/// Of one of these messages nearly all others parse, with fields that are unknown.
template <typename Message>
Message parse(const std::string& bytes, std::string_view message_name) {
  Message message;
  if (!message.ParseFromString(bytes) || !message.unknown_fields().empty())
    throw ModelError("not an ONNX {}", message_name);
  return message;
}

Tensor decode(const onnx::TensorProto& proto) {
  return decode_tensor(proto, ExternalData({}));
}

HostValue decode_any(const onnx::TensorProto& proto) {
  if (proto.data_type() == onnx::TensorProto::STRING) return HostValue(decode_strings(proto));
  return decode(proto);
}

HostValue decode_any(const onnx::SparseTensorProto& proto) {
  return decode_sparse_tensor(proto, ExternalData({}));
}

HostValue decode_any(const onnx::MapProto& /*proto*/) {
  throw UnsupportedError("maps are not supported");
}

HostValue decode_any(const onnx::OptionalProto& proto);

HostValue decode_any(const onnx::SequenceProto& proto) {
  HostValue::Sequence items;
  const auto append = [&](const auto& values) {
    for (const auto& value : values) items.push_back(decode_any(value));
  };
  append(proto.tensor_values());
  append(proto.sparse_tensor_values());
  append(proto.sequence_values());
  append(proto.map_values());
  append(proto.optional_values());
  return HostValue(std::move(items));
}

HostValue decode_any(const onnx::OptionalProto& proto) {
  if (proto.has_tensor_value()) return decode_any(proto.tensor_value());
  if (proto.has_sparse_tensor_value()) return decode_any(proto.sparse_tensor_value());
  if (proto.has_sequence_value()) return decode_any(proto.sequence_value());
  if (proto.has_map_value()) return decode_any(proto.map_value());
  if (proto.has_optional_value()) return decode_any(proto.optional_value());
  return {};
}

/// A sequence or an optional parses as a tensor in segments, which nobody writes.
HostValue decode_tensor_message(const std::string& bytes) {
  const auto proto = parse<onnx::TensorProto>(bytes, "TensorProto");
  if (proto.has_segment()) throw ModelError("not an ONNX TensorProto but a SequenceProto or OptionalProto");
  return decode_any(proto);
}

HostValue decode_bytes(const std::string& bytes, ValueKind kind) {
  switch (kind) {
    case ValueKind::tensor:
    case ValueKind::strings:
      return decode_tensor_message(bytes);
    case ValueKind::sequence:
      return decode_any(parse<onnx::SequenceProto>(bytes, "SequenceProto"));
    case ValueKind::optional:
      return decode_any(parse<onnx::OptionalProto>(bytes, "OptionalProto"));
  }
  throw InternalError("corrupt kind of value {}", static_cast<int>(kind));
}

/// What `decode` returns, with the file named in what it throws.
template <typename Decode>
auto decode_file(const std::string& path, const Decode& decode) {
  try {
    return decode();
  } catch (const UnsupportedError& error) {
    throw UnsupportedError("{}: {}", path, error.what());
  } catch (const ModelError& error) {
    throw ModelError("{}: {}", path, error.what());
  }
}

onnx::TensorProto encode_tensor_of(const HostValue& value, const std::string& name) {
  return value.is_strings() ? encode_strings(value.strings(), name) : encode_tensor(value.tensor(), name);
}

onnx::SequenceProto encode_sequence(const HostValue::Sequence& items, const std::string& name) {
  onnx::SequenceProto proto;
  proto.set_name(name);
  const bool is_nested = std::ranges::any_of(items, [](const HostValue& item) { return item.is_sequence(); });
  proto.set_elem_type(is_nested ? onnx::SequenceProto::SEQUENCE : onnx::SequenceProto::TENSOR);
  for (const HostValue& item : items)
    if (is_nested)
      *proto.add_sequence_values() = encode_sequence(item.sequence(), "");
    else
      *proto.add_tensor_values() = encode_tensor_of(item, "");
  return proto;
}

onnx::OptionalProto encode_optional(const HostValue& value, const std::string& name) {
  onnx::OptionalProto proto;
  proto.set_name(name);
  if (value.is_sequence()) {
    proto.set_elem_type(onnx::OptionalProto::SEQUENCE);
    *proto.mutable_sequence_value() = encode_sequence(value.sequence(), name);
  } else if (!value.is_absent()) {
    proto.set_elem_type(onnx::OptionalProto::TENSOR);
    *proto.mutable_tensor_value() = encode_tensor_of(value, name);
  }
  return proto;
}

template <typename Message>
void write_message(const std::string& path, const Message& message) {
  if (message.ByteSizeLong() > std::numeric_limits<std::int32_t>::max())
    throw IoError("{}: ONNX's messages hold less than 2 GiB; write tensors of numbers as .npy", path);
  write_file(path, message.SerializeAsString());
}

}  // namespace

Tensor read_tensor(const std::string& path) {
  const Format format = format_of(path);
  const std::string bytes = read_file(path);
  if (format == Format::npy) return tensor_from_npy(bytes, path);
  return decode_file(path, [&] { return decode(parse<onnx::TensorProto>(bytes, "TensorProto")); });
}

void write_tensor(const std::string& path, const Tensor& tensor, const std::string& name) {
  write_value(path, tensor, ValueKind::tensor, name);
}

HostValue read_value(const std::string& path, ValueKind kind) {
  if (format_of(path) == Format::npy) return read_tensor(path);
  const std::string bytes = read_file(path);
  return decode_file(path, [&] { return decode_bytes(bytes, kind); });
}

void write_value(const std::string& path, const HostValue& value, ValueKind kind, const std::string& name) {
  if (format_of(path) == Format::onnx) {
    if (kind == ValueKind::optional) return write_message(path, encode_optional(value, name));
    if (kind == ValueKind::sequence) return write_message(path, encode_sequence(value.sequence(), name));
    return write_message(path, encode_tensor_of(value, name));
  }
  if (!value.is_tensor())
    throw IoError("{}: .npy files hold tensors of numbers, not {}; write .pb instead", path,
                  value.describe());
  write_file(path, tensor_to_npy(value.tensor()));
}

}  // namespace sylvite
