#include "frontend/onnx/tensor_io.h"

#include <onnx-ml.pb.h>

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

Tensor tensor_from_pb(const std::string& bytes, const std::string& path) {
  onnx::TensorProto proto;
  if (!proto.ParseFromString(bytes)) throw ModelError("{}: not an ONNX TensorProto", path);
  try {
    return decode_tensor(proto, ExternalData(""));
  } catch (const UnsupportedError& error) {
    throw UnsupportedError("{}: {}", path, error.what());
  } catch (const Error& error) {
    throw ModelError("{}: {}", path, error.what());
  }
}

std::string tensor_to_pb(const Tensor& tensor, const std::string& path, const std::string& name) {
  if (tensor.byte_size() >= (std::int64_t{1} << 31) - 4096)
    throw IoError("{}: a TensorProto holds less than 2 GiB; write .npy instead", path);
  onnx::TensorProto proto;
  proto.set_name(name);
  proto.set_data_type(onnx_of_dtype(tensor.dtype()));
  for (std::int64_t extent : tensor.dims()) proto.add_dims(extent);
  proto.set_raw_data(tensor.data(), static_cast<std::size_t>(tensor.byte_size()));
  return proto.SerializeAsString();
}

}  // namespace

Tensor read_tensor(const std::string& path) {
  const Format format = format_of(path);
  const std::string bytes = read_file(path);
  return format == Format::npy ? tensor_from_npy(bytes, path) : tensor_from_pb(bytes, path);
}

void write_tensor(const std::string& path, const Tensor& tensor, const std::string& name) {
  const Format format = format_of(path);
  write_file(path, format == Format::npy ? tensor_to_npy(tensor) : tensor_to_pb(tensor, path, name));
}

}  // namespace sylvite
