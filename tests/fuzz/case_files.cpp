#include "tests/fuzz/case_files.h"

#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "frontend/onnx/tensor.h"
#include "frontend/onnx/tensor_io.h"

namespace sylvite::fuzz {
namespace {

std::string attribute_text(const onnx::AttributeProto& attribute) {
  switch (attribute.type()) {
    case onnx::AttributeProto::INT:
      return fmt::format("{}={}", attribute.name(), attribute.i());
    case onnx::AttributeProto::FLOAT:
      return fmt::format("{}={}", attribute.name(), attribute.f());
    case onnx::AttributeProto::STRING:
      return fmt::format("{}={}", attribute.name(), attribute.s());
    default:
      return fmt::format("{}=[{}]", attribute.name(), fmt::join(attribute.ints(), ","));
  }
}

}  // namespace

void save_case(const std::string& folder, const ModelCase& test, const Expectation& expected) {
  std::filesystem::create_directories(folder);
  write_file(folder + "/model.onnx", test.model.SerializeAsString());
  for (std::size_t i = 0; i < test.inputs.size(); ++i)
    write_tensor(fmt::format("{}/input_{}.npy", folder, i), test.inputs[i], "");
  for (std::size_t i = 0; i < expected.outputs.size(); ++i) {
    write_tensor(fmt::format("{}/output_{}.npy", folder, i), expected.outputs[i], "");
    const Tensor allowed = Tensor::of(DType::f64, expected.outputs[i].dims(), expected.allowed[i]);
    write_tensor(fmt::format("{}/allowed_{}.npy", folder, i), allowed, "");
  }
}

ModelCase load_case(const std::string& folder) {
  ModelCase test;
  if (!test.model.ParseFromString(read_file(folder + "/model.onnx")))
    throw ModelError("{}/model.onnx does not parse", folder);
  const bool is_of_backend_tests = std::filesystem::exists(folder + "/test_data_set_0");
  for (int i = 0; i < test.model.graph().input_size(); ++i)
    test.inputs.push_back(read_tensor(is_of_backend_tests
                                          ? fmt::format("{}/test_data_set_0/input_{}.pb", folder, i)
                                          : fmt::format("{}/input_{}.npy", folder, i)));
  return test;
}

std::string case_text(const ModelCase& test) {
  std::string text;
  for (int i = 0; i < test.model.graph().input_size(); ++i) {
    text += fmt::format("  {}: {}\n", test.model.graph().input(i).name(),
                        test.inputs[static_cast<std::size_t>(i)].type().to_string());
  }
  for (const auto& proto : test.model.graph().initializer()) {
    const Tensor tensor = decode_tensor(proto, ExternalData({}));
    text += fmt::format("  {}: weight {}", proto.name(), tensor.type().to_string());
    for (std::int64_t i = 0; i < std::min<std::int64_t>(tensor.size(), 8); ++i)
      text += fmt::format("{}{}", i == 0 ? " = " : ", ", tensor.as_double(i));
    text += tensor.size() > 8 ? ", ...\n" : "\n";
  }
  for (const auto& node : test.model.graph().node()) {
    std::vector<std::string> attributes;
    for (const auto& attribute : node.attribute()) attributes.push_back(attribute_text(attribute));
    text += fmt::format("  {} = {}({}) {}\n", fmt::join(node.output(), ", "), node.op_type(),
                        fmt::join(node.input(), ", "), fmt::join(attributes, " "));
  }
  std::vector<std::string> outputs;
  for (const auto& output : test.model.graph().output()) outputs.push_back(output.name());
  return text + fmt::format("  return {}\n", fmt::join(outputs, ", "));
}

}  // namespace sylvite::fuzz
