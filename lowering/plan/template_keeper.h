#pragma once
// Asks what a group would run on before it is formed. A device has templates for products that are many times
// as fast as what else there is (LoweringOptions::refuse_template): work that takes a product off them costs
// more than storing what it makes.

#include <map>
#include <set>
#include <string>
#include <utility>

#include "lowering/plan/plan.h"
#include "sylvite/graph.h"

namespace sylvite {

class TemplateKeeper {
 public:
  using NodeSet = std::set<NodeId>;

  /// `graph` and `options` must outlive it.
  TemplateKeeper(const Graph& graph, const LoweringOptions& options) : graph_(graph), options_(options) {}

  /// Are groups with this anchor asked about? Then the anchor is a product, a norm of short rows or of groups, a search of rows or
  /// a fold of all, and the device has templates.
  [[nodiscard]] bool asks_about(NodeId anchor) const;
  /// And about these nodes, a fold of much with views behind it? Its result lies otherwise than what it reads, and without a
  /// template one thread folds all that an element of the result is made of.
  [[nodiscard]] bool asks_about_turned(const NodeSet& nodes, NodeId anchor) const;
  /// Why no template takes the group of these nodes that ends with `root`; empty when one does.
  [[nodiscard]] const std::string& refusal(const NodeSet& nodes, NodeId root);
  /// Why the group that a template takes is on none with `added`; empty when it stays on one, or is on none
  /// as it is.
  [[nodiscard]] const std::string& loss(NodeSet nodes, NodeId added, NodeId root);

 private:
  const Graph& graph_;
  const LoweringOptions& options_;
  std::map<std::pair<NodeSet, NodeId>, std::string> refusals_;
};

}  // namespace sylvite
