#include "cli/facts_text.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "cli/output.h"

namespace sylvite {
namespace {

/// The first ones, and how many more there are.
std::string joined(std::vector<std::string> texts, std::size_t most) {
  const std::size_t count = texts.size();
  texts.resize(std::min(most, count));
  const std::string more = count > most ? fmt::format(" and {} more", count - most) : "";
  return fmt::format("{}{}", fmt::join(texts, ", "), more);
}

std::string count_text(std::int64_t count) {
  const auto value = static_cast<double>(count);
  if (value < 1e3) return std::to_string(count);
  if (value < 1e6) return fmt::format("{:.1f} k", value / 1e3);
  return value < 1e9 ? fmt::format("{:.1f} M", value / 1e6) : fmt::format("{:.2f} G", value / 1e9);
}

}  // namespace

std::string operators_text(const ModelFacts& facts, std::size_t most) {
  std::vector<std::pair<std::int64_t, std::string>> sorted;
  sorted.reserve(facts.operators.size());
  for (const auto& [name, count] : facts.operators) sorted.emplace_back(-count, name);
  std::ranges::sort(sorted);
  std::vector<std::string> texts;
  texts.reserve(sorted.size());
  for (const auto& [count, name] : sorted) texts.push_back(fmt::format("{} {}", -count, name));
  return joined(std::move(texts), most);
}

std::string weights_text(const ModelFacts& facts) {
  std::string text = fmt::format("{}, {} elements, {}", facts.weights, count_text(facts.weight_elements),
                                 format_bytes(facts.weight_bytes));
  if (facts.external_weights > 0)
    text += fmt::format(", {} of them in files beside the model", facts.external_weights);
  return text;
}

std::string opsets_text(const ModelFacts& facts) {
  std::vector<std::string> opsets;
  opsets.reserve(facts.opsets.size());
  for (const auto& [domain, version] : facts.opsets) opsets.push_back(fmt::format("{} {}", domain, version));
  return fmt::format("{}", fmt::join(opsets, ", "));
}

std::string ports_text(const std::vector<ModelPort>& ports, std::size_t most) {
  std::vector<std::string> texts;
  texts.reserve(ports.size());
  for (const ModelPort& port : ports) texts.push_back(port.name + ": " + port.type);
  return joined(std::move(texts), most);
}

}  // namespace sylvite
