#pragma once
// What a node says beside its inputs.

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "sylvite/extent.h"

namespace sylvite {

class Graph;

/// A graph as an attribute; never nullptr on a node. Equal when the texts are equal.
struct GraphAttribute {
  std::shared_ptr<const Graph> graph;
  std::strong_ordering operator<=>(const GraphAttribute& other) const;  ///< of the texts
  bool operator==(const GraphAttribute& other) const { return (*this <=> other) == 0; }
};

using Attribute = std::variant<std::int64_t, double, std::string, std::vector<std::int64_t>,
                               std::vector<double>, std::vector<Extent>, GraphAttribute>;

/// Attributes of a node, sorted by name. Which exist, and their defaults, is said by the op table row.
/// Every attribute is explicit on a node: Graph::add_node fills in the defaults.
class Attributes {
 public:
  Attributes() = default;
  Attributes(std::initializer_list<std::pair<const std::string, Attribute>> items);

  [[nodiscard]] bool has(const std::string& name) const { return items_.contains(name); }
  /// A list of extents that are all numbers is kept as a list of integers, so that equal lists are equal.
  void set(const std::string& name, Attribute value);
  /// The getters throw InternalError when the attribute is absent or of another kind, `integers` throws
  /// UnknownExtentError for extents that are not all numbers.
  [[nodiscard]] std::int64_t integer(const std::string& name) const;
  [[nodiscard]] double real(const std::string& name) const;
  [[nodiscard]] const std::string& string(const std::string& name) const;
  [[nodiscard]] const std::vector<std::int64_t>& integers(const std::string& name) const;
  [[nodiscard]] std::vector<Extent> extents(const std::string& name) const;  ///< of either list of integers
  [[nodiscard]] const Graph& graph(const std::string& name) const;
  [[nodiscard]] const std::map<std::string, Attribute>& items() const { return items_; }
  [[nodiscard]] Attributes at(const SymbolValues& binding) const;  ///< with numbers for symbols
  bool operator==(const Attributes&) const = default;

 private:
  std::map<std::string, Attribute> items_;
};

}  // namespace sylvite
