#include "node_case.h"

#include <onnx-ml.pb.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "frontend/onnx_tensor.h"

namespace sylvite::node_test {
namespace {

namespace fs = std::filesystem;

std::string read_bytes(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw IoError("cannot open '{}'", path.string());
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

onnx::ModelProto read_model(const fs::path& path) {
  onnx::ModelProto model;
  if (!model.ParseFromString(read_bytes(path))) throw ModelError("cannot parse '{}'", path.string());
  return model;
}

std::vector<const onnx::ValueInfoProto*> free_inputs(const onnx::GraphProto& graph) {
  std::set<std::string> initialized;
  for (const auto& tensor : graph.initializer()) initialized.insert(tensor.name());
  std::vector<const onnx::ValueInfoProto*> inputs;
  for (const auto& input : graph.input()) {
    if (!initialized.contains(input.name())) inputs.push_back(&input);
  }
  return inputs;
}

bool belongs(const onnx::GraphProto& graph, List list) {
  if (list == List::all) return true;
  const auto fits = [&](const onnx::ValueInfoProto& value) {
    if (!value.type().has_tensor_type()) return false;
    const int type = value.type().tensor_type().elem_type();
    if (type == onnx::TensorProto::FLOAT) return true;
    return list == List::b && (type == onnx::TensorProto::INT64 || type == onnx::TensorProto::INT32 ||
                               type == onnx::TensorProto::BOOL);
  };
  const auto inputs = free_inputs(graph);
  return std::all_of(inputs.begin(), inputs.end(), [&](const auto* input) { return fits(*input); }) &&
         std::all_of(graph.output().begin(), graph.output().end(), fits);
}

Tensor read_tensor_file(const fs::path& path, const onnx::ValueInfoProto& value) {
  if (!value.type().has_tensor_type())
    throw UnsupportedError("'{}' is a sequence or an optional", value.name());
  onnx::TensorProto proto;
  if (!proto.ParseFromString(read_bytes(path))) throw ModelError("cannot parse '{}'", path.string());
  return decode_tensor(proto, ExternalData(""));
}

std::int64_t bits_of(const Tensor& tensor, std::int64_t i) {
  return tensor.as_int64(i);
}

bool agree(double actual, double expected, const NodeCase& tolerance, double rtol) {
  if (std::isnan(expected) || std::isnan(actual)) return std::isnan(expected) && std::isnan(actual);
  if (std::isinf(expected) || std::isinf(actual)) return actual == expected;
  return std::abs(actual - expected) <= tolerance.atol + rtol * std::abs(expected);
}

}  // namespace

std::vector<std::string> list_cases(const std::string& folder, List list) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const fs::path model = entry.path() / "model.onnx";
    if (fs::exists(model) && belongs(read_model(model).graph(), list))
      names.push_back(entry.path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}

NodeCase load_case(const std::string& folder, const std::string& name) {
  NodeCase result;
  const fs::path path = fs::path(folder) / name;
  const fs::path data = path / "test_data_set_0";
  result.name = name;
  result.model_path = path / "model.onnx";
  const onnx::ModelProto model = read_model(result.model_path);
  const auto inputs = free_inputs(model.graph());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    result.input_names.push_back(inputs[i]->name());
    result.inputs.push_back(read_tensor_file(data / fmt::format("input_{}.pb", i), *inputs[i]));
  }
  for (int i = 0; i < model.graph().output_size(); ++i) {
    result.outputs.push_back(
        read_tensor_file(data / fmt::format("output_{}.pb", i), model.graph().output(i)));
  }
  // Recorded transforms hold rounding noise of 2e-7 where the exact result is zero.
  if (name.find("dft") != std::string::npos || name.find("stft") != std::string::npos) result.atol = 1e-5;
  if (fs::exists(path / "data.json")) {
    const auto overrides = nlohmann::json::parse(read_bytes(path / "data.json"));
    result.rtol = overrides.value("rtol", result.rtol);
    result.atol = overrides.value("atol", result.atol);
  }
  return result;
}

std::string difference(const Tensor& actual, const Tensor& expected, const NodeCase& tolerance) {
  if (actual.dtype() != expected.dtype() || actual.dims() != expected.dims()) {
    return fmt::format("type {}, expected {}", actual.type().to_string(), expected.type().to_string());
  }
  const double rtol = expected.dtype() == DType::bf16 ? std::max(tolerance.rtol, 0x1p-6) : tolerance.rtol;
  std::int64_t wrong = 0;
  std::string first;
  for (std::int64_t i = 0; i < expected.size(); ++i) {
    const bool is_equal = is_float(expected.dtype()) || is_narrow_float(expected.dtype())
                              ? agree(actual.as_double(i), expected.as_double(i), tolerance, rtol)
                              : bits_of(actual, i) == bits_of(expected, i);
    if (is_equal) continue;
    if (wrong++ == 0)
      first = fmt::format("[{}] is {}, expected {}", i, actual.as_double(i), expected.as_double(i));
  }
  return wrong == 0 ? "" : fmt::format("{} of {} elements differ; {}", wrong, expected.size(), first);
}

}  // namespace sylvite::node_test
