#include "tests/onnx/node_case.h"

#include <onnx-ml.pb.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "frontend/onnx/external_data.h"
#include "frontend/onnx/tensor.h"
#include "frontend/onnx/tensor_io.h"

namespace sylvite::node_test {
namespace {

namespace fs = std::filesystem;

const CaseSet sets[] = {
    {"node", Layout::folders},
    {"pytorch-converted", Layout::folders},
    {"pytorch-operator", Layout::folders},
    {"simple", Layout::folders},
    {"light", Layout::light},
    {"contrib", Layout::single},
};

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
  for (const auto& input : graph.input())
    if (!initialized.contains(input.name())) inputs.push_back(&input);
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

/// Strings lie in the message of tensors.
ValueKind kind_of(const onnx::TypeProto& type) {
  if (type.has_tensor_type()) return ValueKind::tensor;
  if (type.has_sequence_type()) return ValueKind::sequence;
  if (type.has_optional_type()) return ValueKind::optional;
  throw UnsupportedError("a map has no values in files");
}

HostValue read_file(const fs::path& path, const onnx::TypeProto& type) {
  return read_value(path.string(), kind_of(type));
}

bool agree(double actual, double expected, double atol, double rtol) {
  if (std::isnan(expected) || std::isnan(actual)) return std::isnan(expected) && std::isnan(actual);
  if (std::isinf(expected) || std::isinf(actual)) return actual == expected;
  return std::abs(actual - expected) <= atol + rtol * std::abs(expected);
}

std::string tensor_difference(const Tensor& actual, const Tensor& expected, const NodeCase& tolerance) {
  if (tolerance.is_random) return "";
  const DType dtype = expected.dtype();
  const bool is_real = is_float(dtype) || is_narrow_float(dtype);
  const double atol = is_narrow_float(dtype) ? 0 : tolerance.atol;
  double rtol = dtype == DType::bf16 ? std::max(tolerance.rtol, 0x1p-6) : tolerance.rtol;
  if (is_narrow_float(dtype)) rtol = 0;
  std::int64_t wrong = 0;
  std::string first;
  for (std::int64_t i = 0; i < expected.size(); ++i) {
    const bool is_equal = is_real ? agree(actual.as_double(i), expected.as_double(i), atol, rtol)
                                  : actual.as_int64(i) == expected.as_int64(i);
    if (is_equal) continue;
    if (wrong++ == 0)
      first = fmt::format("[{}] is {}, expected {}", i, actual.as_double(i), expected.as_double(i));
  }
  return wrong == 0 ? "" : fmt::format("{} of {} elements differ; {}", wrong, expected.size(), first);
}

/// The cases whose outputs are drawn at random, which no seed of another implementation reproduces.
bool draws_values(const std::string& name) {
  const bool drops =
      name.starts_with("test_training_dropout") && name.find("zero_ratio") == std::string::npos;
  return name.starts_with("test_bernoulli") || drops;
}

/// The light models take one input, an even ramp; their outputs do not depend on it.
NodeCase load_light_case(const fs::path& folder, const std::string& name) {
  NodeCase result;
  result.name = name;
  result.model_path = folder / (name + ".onnx");
  const onnx::ModelProto model = read_model(result.model_path);
  const auto inputs = free_inputs(model.graph());
  if (inputs.size() != 1) throw ModelError("'{}' has {} inputs, expected 1", name, inputs.size());
  Dims dims;
  for (const auto& dim : inputs[0]->type().tensor_type().shape().dim()) dims.push_back(dim.dim_value());
  Tensor ramp(DType::f32, dims);
  for (std::int64_t i = 0; i < ramp.size(); ++i)
    ramp.set_double(i, static_cast<double>(i) / static_cast<double>(ramp.size()));
  result.input_names.push_back(inputs[0]->name());
  result.inputs.emplace_back(ramp);
  result.outputs.push_back(read_file(folder / (name + "_output_0.pb"), model.graph().output(0).type()));
  return result;
}

/// Inputs and outputs by name among the initializers of what a trainer would run first.
NodeCase load_single_case(const fs::path& folder, const std::string& name) {
  NodeCase result;
  result.name = name;
  result.model_path = folder / (name + ".onnx");
  const onnx::ModelProto model = read_model(result.model_path);
  const ExternalData nothing(DataFolder{});
  const auto value_of = [&](const std::string& wanted) -> HostValue {
    for (const onnx::TensorProto& tensor : model.training_info(0).initialization().initializer()) {
      if (tensor.name() != wanted) continue;
      if (tensor.data_type() == onnx::TensorProto::STRING) return HostValue(decode_strings(tensor));
      return HostValue(decode_tensor(tensor, nothing));
    }
    throw ModelError("'{}' holds no value of '{}'", name, wanted);
  };
  for (const auto* input : free_inputs(model.graph())) {
    result.input_names.push_back(input->name());
    result.inputs.push_back(value_of(input->name()));
  }
  for (const auto& output : model.graph().output()) result.outputs.push_back(value_of(output.name()));
  result.atol = 1e-6;  // other implementations round sums in other orders
  for (const auto& property : model.metadata_props())
    (property.key() == "atol" ? result.atol : result.rtol) = std::stod(property.value());
  return result;
}

}  // namespace

const CaseSet& find_set(const std::string& name) {
  std::string names;
  for (const CaseSet& set : sets) {
    if (set.name == name) return set;
    names += " " + set.name;
  }
  throw UsageError("set '{}' is unknown; the sets are:{}", name, names);
}

std::vector<std::string> list_cases(const std::string& data, const CaseSet& set, List list) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(fs::path(data) / set.name)) {
    const fs::path model = set.layout == Layout::folders ? entry.path() / "model.onnx" : entry.path();
    if (model.extension() == ".onnx" && fs::exists(model) && belongs(read_model(model).graph(), list))
      names.push_back(set.layout == Layout::folders ? entry.path().filename() : entry.path().stem());
  }
  std::sort(names.begin(), names.end());
  return names;
}

NodeCase load_case(const std::string& data, const CaseSet& set, const std::string& name) {
  const fs::path folder = fs::path(data) / set.name;
  if (set.layout == Layout::light) return load_light_case(folder, name);
  if (set.layout == Layout::single) return load_single_case(folder, name);
  NodeCase result;
  const fs::path path = folder / name;
  const fs::path values = path / "test_data_set_0";
  result.name = name;
  result.is_random = draws_values(name);
  result.model_path = path / "model.onnx";
  const onnx::ModelProto model = read_model(result.model_path);
  const auto inputs = free_inputs(model.graph());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    result.input_names.push_back(inputs[i]->name());
    result.inputs.push_back(read_file(values / fmt::format("input_{}.pb", i), inputs[i]->type()));
  }
  for (int i = 0; i < model.graph().output_size(); ++i) {
    result.outputs.push_back(
        read_file(values / fmt::format("output_{}.pb", i), model.graph().output(i).type()));
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

std::string difference(const HostValue& actual, const HostValue& expected, const NodeCase& tolerance) {
  if (expected.is_strings() && actual.is_strings())
    return actual.strings() == expected.strings() ? "" : "the strings differ";
  if (expected.is_sequence() && actual.is_sequence() &&
      actual.sequence().size() == expected.sequence().size()) {
    for (std::size_t i = 0; i < expected.sequence().size(); ++i) {
      const std::string text = difference(actual.sequence()[i], expected.sequence()[i], tolerance);
      if (!text.empty()) return fmt::format("item {}: {}", i, text);
    }
    return "";
  }
  if (actual.describe() != expected.describe())
    return fmt::format("{}, expected {}", actual.describe(), expected.describe());
  return expected.is_tensor() ? tensor_difference(actual.tensor(), expected.tensor(), tolerance) : "";
}

}  // namespace sylvite::node_test
