#include "runtime/menu_file.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/hash.h"
#include "runtime/object_cache.h"
#include "runtime/setup.h"
#include "schedules/code_id.h"

namespace sylvite {

MenuFile::MenuFile(const Setup& setup, const ModelSizes& model, const Plan& plan)
    : folder_(setup.object_cache) {
  std::string text(code_id);
  text += setup.key().to_string();
  for (const SizeSymbol& symbol : model.symbols) text += symbol.name + symbol.range.to_string();
  for (const Kernel& kernel : plan.kernels) text += kernel.id;
  symbol_ = "menu_" + short_hash(text);
}

OpenTexts MenuFile::load() const {
  if (folder_.empty()) return {};
  const std::optional<std::string> bytes = ObjectCache(folder_).load(symbol_);
  if (!bytes) return {};
  const nlohmann::json kept = nlohmann::json::parse(*bytes, nullptr, false);
  try {
    auto texts = kept.at("open").get<OpenTexts>();
    std::erase_if(texts, [](const std::vector<std::string>& each) { return each.empty(); });
    return texts;
  } catch (const nlohmann::json::exception&) {
    return {};
  }
}

void MenuFile::store(OpenTexts texts) const {
  if (folder_.empty()) return;
  for (std::vector<std::string>& kept : load()) {
    const auto has_first = [&](const std::vector<std::string>& each) { return each.front() == kept.front(); };
    if (std::ranges::none_of(texts, has_first)) texts.push_back(std::move(kept));
  }
  ObjectCache(folder_).store(symbol_, nlohmann::json{{"open", texts}}.dump());
}

}  // namespace sylvite
