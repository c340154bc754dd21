#include "frontend/onnx/moved_strings.h"

#include <onnx-ml.pb.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "frontend/onnx/import_context.h"

namespace sylvite {
namespace {

constexpr std::string_view movers[] = {"ArrayFeatureExtractor",
                                       "Compress",
                                       "Concat",
                                       "DepthToSpace",
                                       "Expand",
                                       "Flatten",
                                       "Gather",
                                       "GatherElements",
                                       "GatherND",
                                       "Reshape",
                                       "ReverseSequence",
                                       "Scatter",
                                       "ScatterElements",
                                       "ScatterND",
                                       "Slice",
                                       "SpaceToDepth",
                                       "Split",
                                       "Squeeze",
                                       "Tile",
                                       "Transpose",
                                       "Unsqueeze",
                                       "Where"};

constexpr std::string_view measures[] = {"Shape", "Size"};

/// Texts of all inputs in one list, and inputs bound to places in it.
class PlacedTexts {
 public:
  PlacedTexts(OnnxGraphImporter& importer, OnnxScope& outer) : importer_(importer), scope_(&outer) {}

  void add(ImportContext& given, int i, const std::string& name) {
    if (!names_.insert(name).second) return;
    const Texts texts = given.texts(i);
    const auto before = static_cast<double>(shared_ == nullptr ? 0 : shared_->size());
    join(texts.list);
    importer_.builder().reserve_table({4 * static_cast<std::int64_t>(texts.list->size())});
    scope_.bind(name, OnnxBinding::of((before > 0 ? texts.places + before : texts.places).id()));
  }
  [[nodiscard]] OnnxScope& scope() { return scope_; }
  [[nodiscard]] Texts at(const std::string& output) {
    return {shared_, {importer_.builder(), importer_.read(scope_, output).value}};
  }

 private:
  using List = std::vector<std::string>;

  /// The first list is not copied, as it is the only one as a rule.
  void join(const std::shared_ptr<const List>& list) {
    if (shared_ == nullptr) {
      shared_ = list;
      return;
    }
    if (joined_ == nullptr) shared_ = joined_ = std::make_shared<List>(*shared_);
    joined_->insert(joined_->end(), list->begin(), list->end());
  }

  OnnxGraphImporter& importer_;
  OnnxScope scope_;
  std::set<std::string> names_;
  std::shared_ptr<const List> shared_;
  std::shared_ptr<List> joined_;  ///< the same, once there are several
};

}  // namespace

bool moves_elements(const onnx::NodeProto& node) {
  return std::ranges::find(movers, node.op_type()) != std::end(movers);
}

bool measures_elements(const onnx::NodeProto& node) {
  return std::ranges::find(measures, node.op_type()) != std::end(measures);
}

bool moves_strings(OnnxGraphImporter& importer, OnnxScope& scope, const onnx::NodeProto& node) {
  if (!moves_elements(node) && !measures_elements(node)) return false;
  return std::ranges::any_of(node.input(), [&](const std::string& name) {
    if (name.empty()) return false;
    const OnnxBinding& binding = importer.read(scope, name);
    return binding.strings != nullptr || binding.texts != nullptr;
  });
}

void import_moved_strings(OnnxGraphImporter& importer, OnnxScope& scope, const OnnxFrame& frame,
                          const onnx::NodeProto& node, const OnnxOp& op, int opset) {
  ImportContext outer(importer, scope, frame, node, opset);
  PlacedTexts placed(importer, scope);
  for (int i = 0; i < node.input_size(); ++i)
    if (outer.is_strings(i)) placed.add(outer, i, node.input(i));
  importer.import_operator(op, node, placed.scope(), frame, opset);
  for (int i = 0; i < node.output_size(); ++i) {
    if (!outer.wants_output(i)) continue;
    if (measures_elements(node))
      importer.bind_output(scope, node.output(i), importer.read(placed.scope(), node.output(i)));
    else
      outer.output_texts(i, placed.at(node.output(i)));
  }
}

}  // namespace sylvite
