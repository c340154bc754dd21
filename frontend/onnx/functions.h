#pragma once
// The functions an ONNX model brings along: lookup by operator, and the frame of one call.

#include <map>
#include <string>
#include <tuple>

namespace onnx {
class FunctionProto;
class ModelProto;
class NodeProto;
}  // namespace onnx

namespace sylvite {

struct OnnxFrame;

class OnnxFunctions {
 public:
  /// `model` must outlive this. Throws ModelError when two functions have one identity.
  explicit OnnxFunctions(const onnx::ModelProto& model);
  /// The function that a node calls; nullptr when it names none.
  [[nodiscard]] const onnx::FunctionProto* find(const onnx::NodeProto& node) const;

 private:
  std::map<std::tuple<std::string, std::string, std::string>, const onnx::FunctionProto*> functions_;
};

/// The frame for a call: opsets of the function, attributes of the node or else the function's defaults.
/// Throws ModelError when the call is recursive or gives more inputs than the function has.
[[nodiscard]] OnnxFrame call_frame(const onnx::NodeProto& node, const onnx::FunctionProto& function,
                                   const OnnxFrame& caller);

}  // namespace sylvite
