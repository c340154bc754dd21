#include "frontend/graph/verifier.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "frontend/ops/absent_attributes.h"
#include "frontend/ops/op_table.h"

namespace sylvite {
namespace {

using Problems = std::vector<std::string>;

bool exists(const Graph& graph, ValueId id) {
  return id >= 0 && static_cast<std::size_t>(id) < graph.values().size();
}

std::string describe(const Graph& graph, std::size_t node_number) {
  const Node& node = graph.nodes()[node_number];
  const std::string name = node.name.empty() && !node.outputs.empty() && exists(graph, node.outputs[0])
                               ? graph.value(node.outputs[0]).name
                               : node.name;
  return fmt::format("node {} ({} '{}')", node_number, op_info(node.op).name, name);
}

/// Every id is an index. Checked first: the other rules follow ids.
void check_ids(const Graph& graph, Problems& problems) {
  const auto check = [&](const std::vector<ValueId>& ids, const auto& whose) {
    for (ValueId id : ids)
      if (!exists(graph, id))
        problems.push_back(fmt::format("{} names value {}, which does not exist", whose(), id));
  };
  check(graph.inputs, [] { return "graph inputs"; });
  check(graph.outputs, [] { return "graph outputs"; });
  for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
    const Node& node = graph.nodes()[i];
    if (node.op >= Op::count_) {
      problems.push_back(fmt::format("node {} has the corrupt operation {}", i, static_cast<int>(node.op)));
      continue;
    }
    std::vector<ValueId> given = node.inputs;
    std::erase(given, no_value);
    check(given, [&] { return describe(graph, i) + " input"; });
    check(node.outputs, [&] { return describe(graph, i) + " output"; });
  }
  for (const Value& value : graph.values()) {
    if (value.producer < no_node || value.producer >= static_cast<NodeId>(graph.nodes().size())) {
      problems.push_back(
          fmt::format("value '{}' names producer {}, which does not exist", value.name, value.producer));
    }
  }
}

void check_names(const Graph& graph, Problems& problems) {
  std::set<std::string_view> seen;
  for (const Value& value : graph.values()) {
    if (value.name.empty()) problems.emplace_back("a value has no name");
    if (!seen.insert(value.name).second)
      problems.push_back(fmt::format("two values are called '{}'", value.name));
  }
}

/// A value comes from exactly one place: a graph input, a constant, or one output of one node.
void check_producers(const Graph& graph, Problems& problems) {
  IdMap<int> sources(graph.values().size(), 0);
  for (ValueId id : graph.inputs) ++sources[id];
  for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
    for (ValueId id : graph.nodes()[i].outputs) {
      ++sources[id];
      if (graph.value(id).producer != static_cast<NodeId>(i)) {
        problems.push_back(fmt::format("value '{}' does not name {} as its producer", graph.value(id).name,
                                       describe(graph, i)));
      }
    }
  }
  for (std::size_t i = 0; i < graph.values().size(); ++i) {
    const Value& value = graph.values()[i];
    const int count = sources[static_cast<ValueId>(i)] + (value.constant ? 1 : 0);
    if (count != 1) problems.push_back(fmt::format("value '{}' comes from {} places", value.name, count));
    const bool is_source = value.producer == no_node;
    const bool listed =
        is_source || std::ranges::count(graph.node(value.producer).outputs, static_cast<ValueId>(i)) == 1;
    if (!listed) problems.push_back(fmt::format("value '{}' is not an output of its producer", value.name));
  }
}

void check_order(const Graph& graph, Problems& problems) {
  for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
    for (ValueId id : graph.nodes()[i].inputs) {
      if (id != no_value && graph.value(id).producer >= static_cast<NodeId>(i)) {
        problems.push_back(
            fmt::format("{} reads '{}' before it is computed", describe(graph, i), graph.value(id).name));
      }
    }
  }
}

/// False when the node cannot be typed: arity or attributes differ from the op's row.
bool fits_row(const Graph& graph, std::size_t number, Problems& problems) {
  const std::size_t before = problems.size();
  const Node& node = graph.nodes()[number];
  const OpInfo& info = op_info(node.op);
  const auto where = [&] { return describe(graph, number); };
  const auto arity = static_cast<int>(node.inputs.size());
  if (arity < info.min_inputs || arity > info.max_inputs) {
    problems.push_back(
        fmt::format("{} has {} inputs, expected {} to {}", where(), arity, info.min_inputs, info.max_inputs));
  }
  for (int i = 0; i < std::min(arity, info.min_inputs); ++i)
    if (node.inputs[static_cast<std::size_t>(i)] == no_value)
      problems.push_back(fmt::format("{} lacks input {}", where(), i));
  for (const AttributeInfo& attribute : info.attributes) {
    const auto found = node.attributes.items().find(attribute.name);
    const bool is_there = found != node.attributes.items().end();
    if (!is_there && !may_be_absent(attribute))
      problems.push_back(fmt::format("{} lacks attribute '{}'", where(), attribute.name));
    else if (is_there && !is_of_kind(found->second, attribute.kind))
      problems.push_back(fmt::format("{} has attribute '{}' of another kind", where(), attribute.name));
  }
  if (std::ranges::any_of(node.attributes.items(),
                          [&](const auto& item) { return info.find_attribute(item.first) == nullptr; }))
    problems.push_back(fmt::format("{} has attributes that its operation does not know", where()));
  return problems.size() == before;
}

void check_types(const Graph& graph, Problems& problems) {
  Symbols symbols = graph.symbols;
  for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
    if (!fits_row(graph, i, problems)) continue;
    const Node& node = graph.nodes()[i];
    std::vector<TensorType> expected;
    try {
      expected = op_info(node.op).infer(node.op, graph.types(node.inputs), node.attributes, symbols);
    } catch (const Error& error) {
      problems.push_back(fmt::format("{}: {}", describe(graph, i), error.what()));
      continue;
    }
    bool same = expected.size() == node.outputs.size();
    for (std::size_t k = 0; same && k < expected.size(); ++k) {
      const TensorType& type = graph.type(node.outputs[k]);
      same = type.dtype == expected[k].dtype && symbols.equal(type.shape, expected[k].shape);
      if (!same) {
        problems.push_back(fmt::format("{}: '{}' is {}, its rule says {}", describe(graph, i),
                                       graph.value(node.outputs[k]).name, type.to_string(),
                                       expected[k].to_string()));
      }
    }
    if (expected.size() != node.outputs.size()) {
      problems.push_back(fmt::format("{} has {} outputs, expected {}", describe(graph, i),
                                     node.outputs.size(), expected.size()));
    }
  }
  if (symbols.guards().size() > graph.symbols.guards().size()) {
    problems.push_back(fmt::format("the types hold only where {}, which the graph does not say",
                                   symbols.guards().back().to_string()));
  }
}

void check_values(const Graph& graph, Problems& problems) {
  for (const Value& value : graph.values()) {
    const TensorType& type = value.type;
    for (const Extent& extent : type.shape)
      if (extent.is_known() && extent.constant() < 0)
        problems.push_back(fmt::format("value '{}' has a negative extent", value.name));
    if (type.layout.channel_block < 0 || (type.layout.channel_block > 0 && type.rank() < 2)) {
      problems.push_back(
          fmt::format("value '{}' cannot have the layout of {}", value.name, type.to_string()));
    }
    if (!value.constant) continue;
    const TensorType stored = value.constant->type();
    if (stored.dtype != type.dtype || stored.shape != type.shape) {
      problems.push_back(fmt::format("constant '{}' is {}, its tensor {}", value.name, type.to_string(),
                                     stored.to_string()));
    }
  }
}

/// Of states, and of what is written over inputs: an input and an output of one type, each in one pair.
void check_states(const Graph& graph, Problems& problems) {
  std::set<std::size_t> inputs;
  std::set<std::size_t> outputs;
  std::vector<State> pairs = graph.states;
  pairs.insert(pairs.end(), graph.overwrites.begin(), graph.overwrites.end());
  for (const State& state : pairs) {
    if (state.input >= graph.inputs.size() || state.output >= graph.outputs.size()) {
      problems.push_back(fmt::format("a state is input {} and output {}", state.input, state.output));
      continue;
    }
    const Value& past = graph.value(graph.inputs[state.input]);
    const TensorType& next = graph.type(graph.outputs[state.output]);
    if (!inputs.insert(state.input).second || !outputs.insert(state.output).second)
      problems.push_back(fmt::format("state '{}' is in two pairs", past.name));
    if (past.type.dtype != next.dtype || past.type.shape != next.shape) {
      problems.push_back(fmt::format("state '{}' is {}, and {} after a run", past.name, past.type.to_string(),
                                     next.to_string()));
    }
  }
}

/// What a loop runs is a graph of its own.
void check_bodies(const Graph& graph, Problems& problems) {
  for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
    for (const auto& [name, value] : graph.nodes()[i].attributes.items()) {
      const auto* body = std::get_if<GraphAttribute>(&value);
      if (body == nullptr) continue;
      try {
        verify(*body->graph);
      } catch (const Error& error) {
        problems.push_back(fmt::format("{}: {}", describe(graph, i), error.what()));
      }
    }
  }
}

struct Rule {
  std::string_view name;
  void (*check)(const Graph&, Problems&);
};

constexpr Rule rules[] = {
    {"ids", check_ids},       {"names", check_names},   {"producers", check_producers},
    {"order", check_order},   {"types", check_types},   {"values", check_values},
    {"states", check_states}, {"bodies", check_bodies},
};

}  // namespace

void verify(const Graph& graph) {
  std::string report;
  for (const Rule& rule : rules) {
    Problems problems;
    rule.check(graph, problems);
    for (const std::string& problem : problems) report += fmt::format("\n  {}: {}", rule.name, problem);
    if (!problems.empty() && rule.check == check_ids) break;
  }
  if (!report.empty()) throw InternalError("graph '{}' is malformed:{}", graph.name, report);
}

}  // namespace sylvite
