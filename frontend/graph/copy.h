#pragma once
// One graph, or a part of it, as a new graph.

#include <optional>
#include <unordered_map>
#include <vector>

#include "sylvite/graph.h"

namespace sylvite {

/// What the values and nodes of a copy are called.
enum class Names {
  kept,
  canonical  ///< inputs in0, in1, ..., constants c0, c1, ..., other values v0, v1, ...; nodes have none
};

/// Builds a graph from values and nodes of another one. What is copied keeps its type, layout and attributes;
/// nothing is inferred, but symbols may be bound. Copies are added in the order of the calls. The source outlives the copier.
class GraphCopier {
 public:
  /// The new graph has the source's name, and nothing in it.
  explicit GraphCopier(const Graph& source, Names names = Names::kept);
  /// Types and attributes get numbers for their symbols on the way, and the new graph has no symbols.
  GraphCopier(const Graph& source, SymbolValues binding);

  [[nodiscard]] const Graph& source() const { return source_; }
  [[nodiscard]] Graph& graph() {
    settle();
    return graph_;
  }

  /// Makes a value of the source an input of the new graph.
  ValueId add_input(ValueId old);
  void add_inputs();  ///< the source's, in order, of which the same are states

  [[nodiscard]] bool is_mapped(ValueId old) {
    settle();
    return map_.contains(old);
  }
  /// The new value for an old one; no_value for itself. Constants are carried over on first use. REQUIRES that
  /// any other value was added, copied or set.
  [[nodiscard]] ValueId mapped(ValueId old);
  [[nodiscard]] std::vector<ValueId> mapped(const std::vector<ValueId>& old);
  /// `now` stands for `old` from here on, under its own name.
  void set(ValueId old, ValueId now) {
    settle();
    map_[old] = now;
  }

  /// Carries a node over unchanged; its outputs stand for the old ones.
  void copy(const Node& old);
  /// The same, but not before anything is asked of this copier, so that copies without changes cost nothing.
  void leave(const Node& old) { left_.push_back(&old); }
  /// Was every node of the source left, and nothing asked?
  [[nodiscard]] bool is_unchanged() const { return left_.size() == source_.nodes().size(); }
  /// The same with other inputs of the same types, layouts aside; returns its outputs, which stand for nothing.
  std::vector<ValueId> add_copy(const Node& old, std::vector<ValueId> inputs);

  /// The new graph with what stands for the source's outputs, or `outputs`, under the source's names. Throws
  /// InternalError when the shape or type of one is another.
  [[nodiscard]] Graph finish();
  [[nodiscard]] Graph finish(std::vector<ValueId> outputs);

 private:
  /// The source's name, or the next canonical one.
  [[nodiscard]] std::string name_of(ValueId old, const char* prefix, std::size_t& count) const;

  [[nodiscard]] TensorType type_of(ValueId old) const;
  void settle() {
    if (!left_.empty()) copy_left();
  }
  void copy_left();

  const Graph& source_;
  Names names_;
  std::optional<SymbolValues> binding_;
  Graph graph_;
  std::unordered_map<ValueId, ValueId> map_;
  std::vector<const Node*> left_;
  std::size_t constants_ = 0;  ///< named so far, as are:
  std::size_t inputs_ = 0;
  std::size_t values_ = 0;
};

/// The same graph under canonical names: graphs that differ in names alone have equal text. Constants are in
/// the order in which nodes read them.
[[nodiscard]] Graph canonical(const Graph& graph);

/// Per node: does an output need it, at first hand or later?
[[nodiscard]] IdMap<bool> live_nodes(const Graph& graph);

/// The graph without nodes and constants that no output needs. Inputs stay.
[[nodiscard]] Graph without_dead_nodes(Graph graph);

}  // namespace sylvite
