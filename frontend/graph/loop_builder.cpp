#include "frontend/graph/loop_builder.h"

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "frontend/graph/copy.h"
#include "frontend/graph/loop_hoist.h"

namespace sylvite {
namespace {

constexpr std::int64_t most_unrolled = 2;       ///< trips that are not worth a loop
constexpr std::int64_t most_trips = 1'000'000;  ///< so that a small file cannot ask for days

/// Marks the builder while a body is built.
class InsideLoop {
 public:
  explicit InsideLoop(GraphBuilder& builder) : builder_(builder) { builder_.set_inside_loop(true); }
  ~InsideLoop() { builder_.set_inside_loop(false); }
  InsideLoop(const InsideLoop&) = delete;
  InsideLoop& operator=(const InsideLoop&) = delete;

 private:
  GraphBuilder& builder_;
};

/// Makes a graph of its own of the nodes from `first` on that depend on the places.
class Outliner {
 public:
  Outliner(const Graph& graph, NodeId first, const std::vector<ValueId>& places,
           std::unordered_map<ValueId, Sym> hoisted)
      : graph_(graph),
        first_(first),
        hoisted_(std::move(hoisted)),
        depends_(graph.values().size(), false),
        is_known_(graph.values().size(), false),
        copier_(graph) {
    for (const ValueId place : places) {
      depends_[place] = true;
      copier_.add_input(place);
    }
  }

  [[nodiscard]] Graph run(const std::vector<ValueId>& results) {
    const auto end = static_cast<NodeId>(graph_.nodes().size());
    for (NodeId id = first_; id < end; ++id) mark_dependent(graph_.node(id));
    for (const Node& node : graph_.nodes()) mark_known(node);
    IdMap<bool> is_needed(graph_.values().size(), false);
    for (const ValueId id : results) is_needed[id] = true;
    std::vector<NodeId> nodes;
    for (NodeId id = end; id-- > first_;) {
      const Node& node = graph_.node(id);
      const auto counts = [&](ValueId output) { return is_needed[output] && depends_[output]; };
      if (std::ranges::none_of(node.outputs, counts)) continue;
      if (hoisted_.contains(node.outputs[0])) {
        given_.push_back(node.outputs[0]);
        copier_.add_input(node.outputs[0]);
        continue;
      }
      nodes.push_back(id);
      for (const ValueId input : node.inputs)
        if (input != no_value) is_needed[input] = true;
    }
    for (auto id = nodes.rbegin(); id != nodes.rend(); ++id) copy(graph_.node(*id));
    for (const ValueId id : results) capture(id);
    Graph& body = copier_.graph();
    body.outputs = copier_.mapped(results);
    body.name = "body";
    body.symbols = {};
    return std::move(body);
  }

  /// The hoisted values that the body reads, in the order of its inputs behind the places.
  [[nodiscard]] const std::vector<ValueId>& given() const { return given_; }
  /// What the body reads of the surrounding graph, in the order of its last inputs.
  [[nodiscard]] const std::vector<ValueId>& captured() const { return captured_; }

 private:
  void mark_dependent(const Node& node) {
    const bool depends =
        std::ranges::any_of(node.inputs, [&](ValueId input) { return input != no_value && depends_[input]; });
    for (const ValueId output : node.outputs) depends_[output] = depends;
  }

  /// Follows the node from constants alone, whatever sizes are?
  void mark_known(const Node& node) {
    const auto is_number = [](const auto& attribute) {
      return !std::holds_alternative<std::vector<Extent>>(attribute.second);
    };
    const bool is_known = !node.inputs.empty() && node.op != Op::loop && node.outputs.size() == 1 &&
                          std::ranges::all_of(node.attributes.items(), is_number) &&
                          std::ranges::all_of(graph_.type(node.outputs[0]).shape,
                                              [](const Extent& e) { return e.is_known(); }) &&
                          std::ranges::all_of(node.inputs, [&](ValueId input) {
                            return input == no_value || graph_.is_constant(input) || is_known_[input];
                          });
    for (const ValueId output : node.outputs) is_known_[output] = is_known;
  }

  void copy(const Node& node) {
    for (const ValueId input : node.inputs) capture(input);
    for (const auto& [name, value] : node.attributes.items())
      if (std::holds_alternative<std::vector<Extent>>(value))
        throw UnsupportedError("attribute '{}' in a loop is no number", name);
    for (const ValueId output : node.outputs) (void)graph_.type(output).dims();  // throws for symbols
    copier_.copy(node);
  }

  /// Constants are copied on use, and so is what follows from them alone: passes know it as such where it is read.
  void capture(ValueId id) {
    if (id == no_value || copier_.is_mapped(id) || graph_.is_constant(id)) return;
    if (is_known_[id]) return copy(graph_.node(graph_.value(id).producer));
    copier_.add_input(id);
    captured_.push_back(id);
  }

  const Graph& graph_;
  NodeId first_;
  std::unordered_map<ValueId, Sym> hoisted_;  ///< values that are given rather than computed
  IdMap<bool> depends_;                       ///< per value: on the places
  IdMap<bool> is_known_;                      ///< per value: it follows from constants alone
  GraphCopier copier_;
  std::vector<ValueId> given_;
  std::vector<ValueId> captured_;
};

std::vector<ValueId> ids_of(const TripValues& values) {
  std::vector<ValueId> ids;
  ids.reserve(values.states.size() + values.slices.size());
  for (const Sym& state : values.states) ids.push_back(state.id());
  for (const Sym& slice : values.slices) ids.push_back(slice.id());
  return ids;
}

/// Stands for a value that each trip is given.
Sym place_for(GraphBuilder& builder, DType dtype, const Dims& dims) {
  const Sym place = builder.input("", dtype, dims);
  builder.graph().inputs.pop_back();
  return place;
}

TripValues places_for(GraphBuilder& builder, const LoopSpec& spec) {
  TripValues places;
  for (const Sym& state : spec.given.states)
    places.states.push_back(place_for(builder, state.dtype(), state.dims()));
  for (const Sym& scanned : spec.given.slices) {
    const Dims dims = scanned.dims();
    places.slices.push_back(place_for(builder, scanned.dtype(), {dims.begin() + 1, dims.end()}));
  }
  return places;
}

void check_next_states(const TripValues& given, const TripValues& next) {
  if (next.states.size() != given.states.size())
    throw ModelError("a trip gives {} states, expected {}", next.states.size(), given.states.size());
}

TripValues add_loop(GraphBuilder& builder, const LoopSpec& spec, const LoopBody& body) {
  const InsideLoop inside(builder);
  Graph& graph = builder.graph();
  const auto first = static_cast<NodeId>(graph.nodes().size());
  const TripValues places = places_for(builder, spec);
  const TripValues results = body(places);
  check_next_states(spec.given, results);
  const std::unordered_map<ValueId, Sym> hoisted = hoist_products(builder, spec, places, first);
  Outliner outliner(graph, first, ids_of(places), hoisted);
  Graph trip = outliner.run(ids_of(results));
  std::vector<Sym> inputs = spec.given.states;
  inputs.insert(inputs.end(), spec.given.slices.begin(), spec.given.slices.end());
  for (const ValueId id : outliner.given()) inputs.push_back(hoisted.at(id));
  for (const ValueId id : outliner.captured()) inputs.emplace_back(builder, id);
  const std::vector<Sym> outputs = builder.add_all(
      Op::loop, inputs,
      {{"body", GraphAttribute{std::make_shared<const Graph>(std::move(trip))}},
       {"trips", spec.trips},
       {"states", static_cast<std::int64_t>(spec.given.states.size())},
       {"scanned", static_cast<std::int64_t>(spec.given.slices.size() + outliner.given().size())},
       {"reverse", std::int64_t{spec.is_reverse}}});
  const auto states = static_cast<std::ptrdiff_t>(spec.given.states.size());
  return {{outputs.begin(), outputs.begin() + states}, {outputs.begin() + states, outputs.end()}};
}

/// No trip: the states as they are, and nothing stacked of what a trip over zeros would leave, whose types are asked for.
TripValues without_trips(GraphBuilder& builder, const LoopSpec& spec, const LoopBody& body) {
  TripValues trip{spec.given.states, {}};
  for (const Sym& scanned : spec.given.slices) {
    const Dims dims = scanned.dims();
    trip.slices.push_back(builder.constant(Tensor(scanned.dtype(), {dims.begin() + 1, dims.end()})));
  }
  TripValues results{spec.given.states, {}};
  for (const Sym& left : body(trip).slices) results.slices.push_back(stack_none(builder, left));
  return results;
}

TripValues unroll(const LoopSpec& spec, const LoopBody& body) {
  std::vector<std::vector<Sym>> slices;
  TripValues now{spec.given.states, {}};
  for (std::int64_t i = 0; i < spec.trips; ++i) {
    const std::int64_t at = spec.is_reverse ? spec.trips - 1 - i : i;
    now.slices.clear();
    for (const Sym& scanned : spec.given.slices)
      now.slices.push_back(squeeze(slice(scanned, 0, at, at + 1), {0}));
    now = body(now);
    check_next_states(spec.given, now);
    slices.resize(now.slices.size());
    for (std::size_t k = 0; k < slices.size(); ++k) slices[k].push_back(now.slices[k]);
  }
  now.slices.clear();
  for (std::vector<Sym>& values : slices) {
    if (spec.is_reverse) std::ranges::reverse(values);
    now.slices.push_back(stack(std::move(values), 0));
  }
  return now;
}

}  // namespace

bool may_loop(const GraphBuilder& builder, std::int64_t trips) {
  return trips > most_unrolled && trips <= most_trips && builder.may_add_loop();
}

std::optional<TripValues> try_loop(GraphBuilder& builder, const LoopSpec& spec, const LoopBody& body) {
  if (!may_loop(builder, spec.trips)) return std::nullopt;
  try {
    return add_loop(builder, spec, body);
  } catch (const Error&) {  // unrolled, it may hold, or says what is wrong
    return std::nullopt;
  }
}

TripValues run_loop(GraphBuilder& builder, const LoopSpec& spec, const LoopBody& body) {
  if (const std::optional<TripValues> results = try_loop(builder, spec, body)) return *results;
  return spec.trips < 1 ? without_trips(builder, spec, body) : unroll(spec, body);
}

OutlinedBody outline_body(GraphBuilder& builder, const std::vector<Sym>& given,
                          const std::function<std::vector<Sym>(const std::vector<Sym>&)>& body) {
  const InsideLoop inside(builder);
  const auto first = static_cast<NodeId>(builder.graph().nodes().size());
  std::vector<Sym> places;
  places.reserve(given.size());
  for (const Sym& value : given) places.push_back(place_for(builder, value.dtype(), value.dims()));
  const std::vector<Sym> results = body(places);
  Outliner outliner(builder.graph(), first, ids_of({places, {}}), {});
  OutlinedBody outlined{outliner.run(ids_of({results, {}})), {}};
  for (const ValueId id : outliner.captured()) outlined.captured.emplace_back(builder, id);
  return outlined;
}

Sym stack_none(GraphBuilder& builder, const Sym& like) {
  Dims dims = like.dims();
  dims.insert(dims.begin(), 0);
  return builder.constant(Tensor(like.dtype(), dims));
}

Sym stack(std::vector<Sym> values, std::int64_t axis) {
  if (values.empty()) throw UnsupportedError("a loop that never runs leaves a result of unknown shape");
  for (Sym& value : values) value = unsqueeze(value, {axis});
  return concat(values, normalize_axis(axis, values[0].rank()));
}

}  // namespace sylvite
