#include "frontend/onnx/known_texts.h"

#include <onnx-ml.pb.h>

#include <algorithm>
#include <set>

#include "frontend/onnx/moved_strings.h"
#include "frontend/onnx/node_order.h"

namespace sylvite {
namespace {

/// The texts that the node looks its input up among. Nothing where it does anything else with texts.
std::optional<std::vector<std::string>> keys_of(const onnx::NodeProto& node) {
  constexpr std::string_view encoders[] = {"CategoryMapper", "LabelEncoder", "OneHotEncoder"};
  constexpr std::string_view lists[] = {"cats_strings", "classes_strings", "keys_strings"};
  if (node.domain() != "ai.onnx.ml" || std::ranges::find(encoders, node.op_type()) == std::end(encoders))
    return std::nullopt;
  for (const onnx::AttributeProto& attribute : node.attribute()) {
    if (std::ranges::find(lists, attribute.name()) != std::end(lists) && attribute.strings_size() > 0)
      return std::vector<std::string>(attribute.strings().begin(), attribute.strings().end());
    const auto& tensor = attribute.t();
    if (attribute.name() == "keys_tensor" && tensor.data_type() == onnx::TensorProto::STRING)
      return std::vector<std::string>(tensor.string_data().begin(), tensor.string_data().end());
  }
  return std::nullopt;
}

bool passes_texts_on(const onnx::NodeProto& node) {
  return moves_elements(node) || (node.domain().empty() && node.op_type() == "Identity");
}

std::set<std::string> text_inputs(const onnx::GraphProto& graph) {
  std::set<std::string> names;
  for (const onnx::ValueInfoProto& input : graph.input())
    if (is_text_input(input)) names.insert(input.name());
  for (const onnx::TensorProto& initializer : graph.initializer()) names.erase(initializer.name());
  return names;
}

}  // namespace

bool is_text_input(const onnx::ValueInfoProto& input) {
  return input.type().has_tensor_type() && input.type().tensor_type().has_shape() &&
         input.type().tensor_type().elem_type() == onnx::TensorProto::STRING;
}

KnownTexts::KnownTexts(std::vector<std::string> keys) {
  std::ranges::sort(keys);
  keys.erase(std::ranges::unique(keys).begin(), keys.end());
  std::size_t longest = 0;
  for (const std::string& key : keys) longest = std::max(longest, key.size());
  keys.emplace_back(longest + 1, '?');
  list_ = std::make_shared<const std::vector<std::string>>(std::move(keys));
  for (std::size_t i = 0; i + 1 < list_->size(); ++i)
    places_.emplace((*list_)[i], static_cast<std::int64_t>(i));
}

std::shared_ptr<const KnownTexts> KnownTexts::of(const onnx::GraphProto& graph) {
  constexpr std::size_t most_keys = 1 << 20;
  std::set<std::string> texts = text_inputs(graph);
  if (texts.empty()) return nullptr;
  std::vector<std::string> keys;
  for (const onnx::NodeProto* node : order_nodes(graph.node())) {
    const std::set<std::string> read = names_read(*node);
    if (std::ranges::none_of(read, [&](const std::string& name) { return texts.contains(name); })) continue;
    if (passes_texts_on(*node)) {
      texts.insert(node->output().begin(), node->output().end());
      continue;
    }
    if (measures_elements(*node)) continue;
    const std::optional<std::vector<std::string>> own = keys_of(*node);
    if (!own) return nullptr;
    keys.insert(keys.end(), own->begin(), own->end());
  }
  for (const onnx::ValueInfoProto& output : graph.output())
    if (texts.contains(output.name())) return nullptr;
  if (keys.empty() || keys.size() > most_keys) return nullptr;
  return std::shared_ptr<const KnownTexts>(new KnownTexts(std::move(keys)));
}

Tensor KnownTexts::places_of(const StringTensor& texts) const {
  Tensor places(DType::i64, texts.dims);
  std::int64_t* to = places.mutable_view<std::int64_t>().data();
  for (const std::string& text : texts.values) {
    const auto found = places_.find(text);
    *to++ = found == places_.end() ? static_cast<std::int64_t>(list_->size()) - 1 : found->second;
  }
  return places;
}

}  // namespace sylvite
