#include "frontend/onnx/functions.h"

#include <onnx-ml.pb.h>

#include "base/error.h"
#include "frontend/onnx/graph_import.h"

namespace sylvite {
namespace {

std::string plain_domain(const std::string& domain) {
  return domain == "ai.onnx" ? "" : domain;
}

std::string identity_of(const onnx::FunctionProto& function) {
  return fmt::format("{}.{}.{}", function.domain(), function.name(), function.overload());
}

}  // namespace

OnnxFunctions::OnnxFunctions(const onnx::ModelProto& model) {
  for (const onnx::FunctionProto& function : model.functions()) {
    const auto key = std::make_tuple(plain_domain(function.domain()), function.name(), function.overload());
    if (!functions_.emplace(key, &function).second)
      throw ModelError("the model defines function '{}' twice", identity_of(function));
  }
}

const onnx::FunctionProto* OnnxFunctions::find(const onnx::NodeProto& node) const {
  if (functions_.empty()) return nullptr;
  const auto found = functions_.find({plain_domain(node.domain()), node.op_type(), node.overload()});
  return found == functions_.end() ? nullptr : found->second;
}

OnnxFrame call_frame(const onnx::NodeProto& node, const onnx::FunctionProto& function,
                     const OnnxFrame& caller) {
  OnnxFrame frame;
  frame.caller = &caller;
  frame.function = identity_of(function);
  for (const OnnxFrame* outer = &caller; outer != nullptr; outer = outer->caller)
    if (outer->function == frame.function) throw ModelError("function '{}' calls itself", frame.function);
  if (node.input_size() > function.input_size()) {
    throw ModelError("{} inputs are given to function '{}', which has {}", node.input_size(), frame.function,
                     function.input_size());
  }
  frame.opsets = caller.opsets;
  for (const auto& opset : function.opset_import())
    frame.opsets[plain_domain(opset.domain())] = static_cast<int>(opset.version());
  for (const onnx::AttributeProto& attribute : function.attribute_proto())
    frame.attributes[attribute.name()] = &attribute;
  for (const onnx::AttributeProto& attribute : node.attribute()) {
    const onnx::AttributeProto* given = &attribute;
    if (!attribute.ref_attr_name().empty()) {
      const auto found = caller.attributes.find(attribute.ref_attr_name());
      if (found == caller.attributes.end()) continue;
      given = found->second;
    }
    frame.attributes[attribute.name()] = given;
  }
  return frame;
}

}  // namespace sylvite
