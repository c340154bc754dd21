#include "sylvite/attributes.h"

#include "base/error.h"
#include "sylvite/graph.h"
#include "sylvite/graph_text.h"

namespace sylvite {
namespace {

template <typename T>
const T& get_attribute(const std::map<std::string, Attribute>& items, const std::string& name) {
  const auto found = items.find(name);
  if (found == items.end()) throw InternalError("attribute '{}' is absent", name);
  const T* value = std::get_if<T>(&found->second);
  if (value == nullptr) throw InternalError("attribute '{}' is of another kind", name);
  return *value;
}

/// The one form of a value.
Attribute canonical(Attribute value) {
  const auto* extents = std::get_if<std::vector<Extent>>(&value);
  if (extents == nullptr) return value;
  std::vector<std::int64_t> numbers;
  for (const Extent& extent : *extents) {
    if (!extent.is_known()) return value;
    numbers.push_back(extent.constant());
  }
  return numbers;
}

}  // namespace

std::strong_ordering GraphAttribute::operator<=>(const GraphAttribute& other) const {
  if (graph == other.graph) return std::strong_ordering::equal;
  return graph_text(*graph) <=> graph_text(*other.graph);
}

Attributes::Attributes(std::initializer_list<std::pair<const std::string, Attribute>> items) {
  for (const auto& [name, value] : items) set(name, value);
}

void Attributes::set(const std::string& name, Attribute value) {
  items_[name] = canonical(std::move(value));
}

Attributes Attributes::at(const SymbolValues& binding) const {
  Attributes result = *this;
  for (const auto& [name, value] : items_) {
    if (!std::holds_alternative<std::vector<Extent>>(value)) continue;
    std::vector<Extent> extents = std::get<std::vector<Extent>>(value);
    for (Extent& extent : extents) extent = extent.at(binding);
    result.set(name, std::move(extents));
  }
  return result;
}

std::int64_t Attributes::integer(const std::string& name) const {
  return get_attribute<std::int64_t>(items_, name);
}
double Attributes::real(const std::string& name) const {
  return get_attribute<double>(items_, name);
}
const std::string& Attributes::string(const std::string& name) const {
  return get_attribute<std::string>(items_, name);
}
const std::vector<std::int64_t>& Attributes::integers(const std::string& name) const {
  const auto found = items_.find(name);
  if (found != items_.end())
    if (const auto* extents = std::get_if<std::vector<Extent>>(&found->second))
      for (const Extent& extent : *extents) (void)extent.known();  // throws for the first that is no number
  return get_attribute<std::vector<std::int64_t>>(items_, name);
}
std::vector<Extent> Attributes::extents(const std::string& name) const {
  const auto found = items_.find(name);
  if (found != items_.end())
    if (const auto* extents = std::get_if<std::vector<Extent>>(&found->second)) return *extents;
  const std::vector<std::int64_t>& numbers = integers(name);
  return {numbers.begin(), numbers.end()};
}
const Graph& Attributes::graph(const std::string& name) const {
  return *get_attribute<GraphAttribute>(items_, name).graph;
}

}  // namespace sylvite
