#pragma once
// Texts that a model only looks up: all that matters is which of its own keys a text is, so that its inputs are numbers, and
// nothing that reads them waits for the run.

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "sylvite/host_value.h"

namespace onnx {
class GraphProto;
class ValueInfoProto;
}  // namespace onnx

namespace sylvite {

[[nodiscard]] bool is_text_input(const onnx::ValueInfoProto& input);

/// Thread safety: const use is safe.
class KnownTexts {
 public:
  /// The keys of all operators that read the graph's inputs of texts, where these are only moved and looked up. Nothing else.
  [[nodiscard]] static std::shared_ptr<const KnownTexts> of(const onnx::GraphProto& graph);

  /// The last is none of the keys, and stands for all other texts.
  [[nodiscard]] const std::shared_ptr<const std::vector<std::string>>& list() const { return list_; }
  /// The places of texts in the list, i64.
  [[nodiscard]] Tensor places_of(const StringTensor& texts) const;

 private:
  explicit KnownTexts(std::vector<std::string> keys);

  std::shared_ptr<const std::vector<std::string>> list_;
  std::unordered_map<std::string_view, std::int64_t> places_;  ///< of the keys
};

}  // namespace sylvite
