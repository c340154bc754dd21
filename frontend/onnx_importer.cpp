#include "frontend/onnx_importer.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/stubs/logging.h>
#include <onnx-ml.pb.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <limits>

#include "base/error.h"
#include "frontend/onnx_graph_import.h"

namespace sylvite {
namespace {

constexpr std::int64_t max_model_bytes = std::numeric_limits<std::int32_t>::max();  ///< protobuf's own limit
constexpr int newest_ir_version = 14;
constexpr int newest_opset = 27;

std::shared_ptr<const onnx::ModelProto> parse_model(std::string_view bytes) {
  if (static_cast<std::int64_t>(bytes.size()) > max_model_bytes) {
    throw ModelError(
        "a model of {} bytes is over the 2 GB limit of its format; store weights as external data",
        bytes.size());
  }
  const google::protobuf::LogSilencer silence;
  auto model = std::make_shared<onnx::ModelProto>();
  google::protobuf::io::ArrayInputStream stream(bytes.data(), static_cast<int>(bytes.size()));
  google::protobuf::io::CodedInputStream coded(&stream);
  if (!model->ParseFromCodedStream(&coded) || !coded.ConsumedEntireMessage()) {
    throw ModelError("not an ONNX model: its {} bytes do not parse", bytes.size());
  }
  return model;
}

void check_model(const onnx::ModelProto& model) {
  if (!model.has_graph()) throw ModelError("not an ONNX model: it holds no graph");
  if (model.ir_version() > newest_ir_version) {
    throw UnsupportedError("the model has IR version {}; up to {} are supported", model.ir_version(),
                           newest_ir_version);
  }
  for (const auto& opset : model.opset_import()) {
    const bool is_default = opset.domain().empty() || opset.domain() == "ai.onnx";
    if (is_default && (opset.version() < 1 || opset.version() > newest_opset)) {
      throw UnsupportedError("the model needs opset {}; 1 to {} are supported", opset.version(),
                             newest_opset);
    }
  }
}

/// Reads a regular file whole; special files (pipes, devices) are refused before they are opened.
std::string read_file(const std::string& path) {
  struct stat status{};
  if (stat(path.c_str(), &status) != 0)
    throw IoError("cannot open model '{}': {}", path, std::strerror(errno));
  if (!S_ISREG(status.st_mode)) throw IoError("model '{}' is not a regular file", path);
  if (status.st_size > max_model_bytes) throw ModelError("'{}' is over the 2 GB limit of ONNX files", path);
  std::string bytes(static_cast<std::size_t>(status.st_size), '\0');
  std::ifstream file(path, std::ios::binary);
  if (!file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()))) {
    throw IoError("cannot read model '{}'", path);
  }
  return bytes;
}

std::string folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

}  // namespace

Graph import_onnx_bytes(std::string_view bytes, const std::string& folder, const ImportOptions& options) {
  const std::shared_ptr<const onnx::ModelProto> model = parse_model(bytes);
  check_model(*model);
  return OnnxGraphImporter(model, folder, options).import_model();
}

ImportedModel import_model_bytes(std::string_view bytes, const std::string& folder,
                                 const ImportOptions& options) {
  const std::shared_ptr<const onnx::ModelProto> model = parse_model(bytes);
  check_model(*model);
  return import_parsed_model(model, folder, options);
}

ImportedModel import_model(const std::string& path, const ImportOptions& options) {
  return import_model_bytes(read_file(path), folder_of(path), options);
}

Graph import_onnx(const std::string& path, const ImportOptions& options) {
  return import_onnx_bytes(read_file(path), folder_of(path), options);
}

}  // namespace sylvite
