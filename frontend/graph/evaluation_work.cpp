#include "frontend/graph/evaluation_work.h"

#include <algorithm>

#include "frontend/ops/op_table.h"

namespace sylvite {

double terms_of(const Graph& graph, const Node& node) {
  const auto terms = op_info(node.op).facts.terms;
  if (terms == nullptr) return 1;
  return terms(graph.types(node.inputs), graph.type(node.outputs.at(0)), node.attributes);
}

double products_of(const Graph& graph, const Node& node) {
  return op_info(node.op).facts.multiplies() ? terms_of(graph, node) : 0;
}

namespace {

std::int64_t in_steps(double work) {
  return work > 1e18 ? std::int64_t{1} << 60 : static_cast<std::int64_t>(work);
}

/// Of all trips. A node takes some steps whatever its extents are.
double loop_work(const Node& loop) {
  constexpr double least = 1000;
  const Graph& body = loop.attributes.graph("body");
  double trip = least;
  for (const Node& node : body.nodes()) trip += least + static_cast<double>(evaluation_work(body, node));
  return trip * static_cast<double>(loop.attributes.integer("trips"));
}

}  // namespace

std::int64_t evaluation_work(const Graph& graph, const Node& node) {
  if (node.op == Op::loop) return in_steps(loop_work(node));
  std::int64_t outputs = 0;
  std::int64_t inputs = 0;
  for (ValueId id : node.outputs) outputs += graph.type(id).element_count();
  for (ValueId id : node.inputs)
    if (id != no_value) inputs += graph.type(id).element_count();
  const double terms = std::max(terms_of(graph, node), 1.0);
  const double work = static_cast<double>(inputs) + static_cast<double>(outputs) * terms;
  return in_steps(work);
}

}  // namespace sylvite
