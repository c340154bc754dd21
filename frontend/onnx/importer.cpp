#include "frontend/onnx/importer.h"

#include <fcntl.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/stubs/logging.h>
#include <onnx-ml.pb.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <limits>

#include "base/error.h"
#include "base/hash.h"
#include "frontend/onnx/graph_import.h"
#include "frontend/onnx/growing_states.h"
#include "frontend/onnx/missing_shapes.h"
#include "frontend/onnx/model_states.h"
#include "frontend/onnx/node_store.h"
#include "frontend/onnx/tail.h"

namespace sylvite {
namespace {

constexpr std::int64_t max_model_bytes = std::numeric_limits<std::int32_t>::max();  ///< protobuf's own limit
constexpr int newest_ir_version = 14;

std::shared_ptr<onnx::ModelProto> parse_model(google::protobuf::io::ZeroCopyInputStream& stream,
                                              std::int64_t bytes) {
  if (bytes > max_model_bytes) {
    throw ModelError(
        "a model of {} bytes is over the 2 GB limit of its format; store weights as external data", bytes);
  }
  const google::protobuf::LogSilencer silence;
  auto model = std::make_shared<onnx::ModelProto>();
  google::protobuf::io::CodedInputStream coded(&stream);
  if (!model->ParseFromCodedStream(&coded) || !coded.ConsumedEntireMessage())
    throw ModelError("not an ONNX model: its {} bytes do not parse", bytes);
  return model;
}

void check_model(const onnx::ModelProto& model) {
  if (!model.has_graph()) throw ModelError("not an ONNX model: it holds no graph");
  if (model.ir_version() > newest_ir_version) {
    throw UnsupportedError("the model has IR version {}; up to {} are supported", model.ir_version(),
                           newest_ir_version);
  }
  if (model.opset_import().empty()) throw ModelError("the model does not say which opset it uses");
  for (const auto& opset : model.opset_import()) {
    const bool is_default = opset.domain().empty() || opset.domain() == "ai.onnx";
    if (is_default && (opset.version() < oldest_opset || opset.version() > newest_opset)) {
      throw UnsupportedError("the model needs opset {}; {} to {} are supported: export it for one of those",
                             opset.version(), oldest_opset, newest_opset);
    }
  }
}

/// Piece by piece, so that neither a model nor garbage is in memory twice.
std::shared_ptr<onnx::ModelProto> parse_file(const std::string& path) {
  // Not to wait for whoever would write into a pipe.
  const int file = open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) throw IoError("cannot open model '{}': {}", path, std::strerror(errno));
  google::protobuf::io::FileInputStream stream(file);
  stream.SetCloseOnDelete(true);
  struct stat status{};
  if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode))
    throw IoError("model '{}' is not a regular file", path);
  std::shared_ptr<onnx::ModelProto> model = parse_model(stream, status.st_size);
  if (stream.GetErrno() != 0)
    throw IoError("cannot read model '{}': {}", path, std::strerror(stream.GetErrno()));
  return model;
}

std::shared_ptr<onnx::ModelProto> parse_bytes(std::string_view bytes) {
  // The stream counts in int; parse_model refuses what does not fit before it is read.
  const auto size = static_cast<int>(std::min<std::size_t>(bytes.size(), max_model_bytes));
  google::protobuf::io::ArrayInputStream stream(bytes.data(), size);
  return parse_model(stream, static_cast<std::int64_t>(bytes.size()));
}

/// States are given to no run: their shapes must be known before.
void take_states(ParsedModel& model) {
  std::erase_if(model.sizes.inputs, [&](const SizedInput& input) {
    if (!model.states.contains(input.name)) return false;
    if (!input.is_sized) throw UsageError("state '{}' is no tensor of a known rank", input.name);
    Dims dims;
    bool grows = false;
    for (const SizedInput::Axis& axis : input.axes) {
      grows = grows || axis.follows;
      if (axis.symbol >= 0) {
        throw UsageError("state '{}' has an open size: give it one number, as in --dims {}=1", input.name,
                         model.sizes.symbols[static_cast<std::size_t>(axis.symbol)].name);
      }
      dims.push_back(axis.extent);
    }
    if (grows)
      model.growing->state_dims[input.name] = dims;
    else
      model.options.input_shapes.try_emplace(input.name, dims);
    return true;
  });
}

ParsedModel with_sizes(std::shared_ptr<onnx::ModelProto> proto, const DataFolder& folder,
                       const ImportOptions& options) {
  check_model(*proto);
  open_default_inputs(*proto->mutable_graph(), options);
  declare_missing_shapes(*proto->mutable_graph(), options);
  ParsedModel model{std::move(proto),
                    folder,
                    options,
                    {},
                    {},
                    {},
                    nullptr,
                    std::make_shared<NodeStore>(),
                    std::make_shared<TailStore>()};
  model.sizes = read_model_sizes(model.proto->graph(), options);
  model.states = read_model_states(model.proto->graph(), options);
  find_growing_states(model);
  take_states(model);
  if (!model.sizes.are_fixed() || model.growing) model.initializers = std::make_shared<InitializerStore>();
  if (model.growing) choose_growing_form(model);
  return model;
}

Graph import_whole(const ParsedModel& model) {
  if (model.growing) return import_with_capacity(model, first_sizes(model.sizes)).graph;
  const ImportOptions options = options_at(model, first_sizes(model.sizes));
  Graph graph = OnnxGraphImporter(model.proto, model.folder, options).import_model();
  mark_states(graph, model.states);
  return graph;
}

}  // namespace

ParsedModel parse_model_bytes(std::string_view bytes, const std::string& folder,
                              const ImportOptions& options) {
  return with_sizes(parse_bytes(bytes), {folder}, options);
}

ParsedModel parse_model(const std::string& path, const ImportOptions& options) {
  return with_sizes(parse_file(path), folder_of_model(path), options);
}

ParsedModel parse_model_proto(onnx::ModelProto proto, const DataFolder& folder, const ImportOptions& options,
                              int tails_before) {
  ParsedModel model = with_sizes(std::make_shared<onnx::ModelProto>(std::move(proto)), folder, options);
  model.tails_before = tails_before;
  return model;
}

std::string model_file_id(const ParsedModel& model) {
  return short_hash(model.proto->SerializeAsString());
}

ImportedModel import_model_bytes(std::string_view bytes, const std::string& folder,
                                 const ImportOptions& options) {
  const ParsedModel model = parse_model_bytes(bytes, folder, options);
  return import_at(model, first_sizes(model.sizes));
}

Graph import_onnx_bytes(std::string_view bytes, const std::string& folder, const ImportOptions& options) {
  return import_whole(parse_model_bytes(bytes, folder, options));
}

ImportedModel import_model(const std::string& path, const ImportOptions& options) {
  const ParsedModel model = parse_model(path, options);
  return import_at(model, first_sizes(model.sizes));
}

Graph import_onnx(const std::string& path, const ImportOptions& options) {
  return import_whole(parse_model(path, options));
}

}  // namespace sylvite
