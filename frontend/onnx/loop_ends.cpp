#include "frontend/onnx/loop_ends.h"

#include <onnx-ml.pb.h>

#include <algorithm>
#include <map>
#include <set>

#include "frontend/graph/interpreter.h"
#include "frontend/graph/loop_builder.h"

namespace sylvite {
namespace {

constexpr std::int64_t work_of_step = 64;                  ///< of evaluating an operation, in scalar steps
constexpr std::int64_t most_evaluated_elements = 1 << 12;  ///< of a value that one of them gives
constexpr std::int64_t largest_state = 16;                 ///< elements

std::map<std::string, const onnx::NodeProto*> makers_of(const onnx::GraphProto& body) {
  std::map<std::string, const onnx::NodeProto*> makers;
  for (const onnx::NodeProto& node : body.node())
    for (const std::string& output : node.output()) makers.emplace(output, &node);
  return makers;
}

/// What the name stands for, before it was passed on by name.
std::string origin(const std::map<std::string, const onnx::NodeProto*>& makers, std::string name) {
  for (auto maker = makers.find(name);
       maker != makers.end() && maker->second->op_type() == "Identity" && maker->second->input_size() == 1;
       maker = makers.find(name))
    name = maker->second->input(0);
  return name;
}

/// The part of a body that its condition depends on: nodes, and which states.
class ConditionPart {
 public:
  explicit ConditionPart(const onnx::GraphProto& body)
      : body_(body), makers_(makers_of(body)), unchanged_(unchanged_states(body)) {
    for (int i = 2; i < body.input_size(); ++i) places_.emplace(body.input(i).name(), i - 2);
    add(body.output(0).name());
  }

  [[nodiscard]] const std::set<int>& states() const { return states_; }
  /// Is it small, and without subgraphs?
  [[nodiscard]] bool is_plain() const { return is_plain_; }

  /// The part as a body: its inputs, and the condition and those states as outputs.
  [[nodiscard]] onnx::GraphProto graph() const {
    onnx::GraphProto part;
    *part.mutable_input() = body_.input();
    for (const onnx::NodeProto& node : body_.node())
      if (nodes_.contains(&node)) *part.add_node() = node;
    for (const onnx::TensorProto& tensor : body_.initializer())
      if (names_.contains(tensor.name())) *part.add_initializer() = tensor;
    *part.add_output() = body_.output(0);
    for (const int state : states_) *part.add_output() = body_.output(state + 1);
    return part;
  }

 private:
  void add(const std::string& name) {
    if (!names_.insert(name).second) return;
    if (const auto place = places_.find(name); place != places_.end()) {
      if (unchanged_[static_cast<std::size_t>(place->second)]) return;
      states_.insert(place->second);
      return add(body_.output(place->second + 1).name());
    }
    const auto maker = makers_.find(name);
    if (maker == makers_.end()) return;
    nodes_.insert(maker->second);
    for (const onnx::AttributeProto& attribute : maker->second->attribute())
      if (attribute.has_g() || attribute.graphs_size() > 0) is_plain_ = false;
    constexpr std::size_t most_nodes = 64;
    if (nodes_.size() > most_nodes) is_plain_ = false;
    if (!is_plain_) return;
    for (const std::string& input : maker->second->input()) add(input);
  }

  const onnx::GraphProto& body_;
  std::map<std::string, const onnx::NodeProto*> makers_;
  std::vector<bool> unchanged_;
  std::map<std::string, int> places_;
  std::set<std::string> names_;
  std::set<const onnx::NodeProto*> nodes_;
  std::set<int> states_;
  bool is_plain_ = true;
};

/// The number of the trip, and the states that the condition depends on, before the first trip.
std::optional<std::vector<Sym>> given_values(ImportContext& c, const std::set<int>& indices,
                                             const std::vector<OnnxBinding>& states) {
  std::vector<Sym> given{c.builder().constant(Tensor::scalar_i64(0))};
  for (const int i : indices) {
    const OnnxBinding& state = states.at(static_cast<std::size_t>(i));
    if (!state.is_tensor()) return std::nullopt;
    given.push_back(c.symbol(state));
    if (given.back().size() > largest_state || !c.builder().known(given.back())) return std::nullopt;
  }
  return given;
}

/// The part of the body as a graph of what is given, and what it reads beside.
OutlinedBody outline(ImportContext& c, const ConditionPart& part, const std::vector<Sym>& given,
                     const std::vector<OnnxBinding>& states) {
  const onnx::GraphProto graph = part.graph();
  return outline_body(c.builder(), given, [&](const std::vector<Sym>& places) {
    std::vector<OnnxBinding> arguments{OnnxBinding::of(places[0].id()),
                                       OnnxBinding::of(c.builder().scalar(DType::boolean, 1).id())};
    arguments.insert(arguments.end(), states.begin(), states.end());
    std::size_t next = 1;
    for (const int i : part.states())
      arguments[static_cast<std::size_t>(i) + 2] = OnnxBinding::of(places[next++].id());
    std::vector<Sym> results;
    for (const OnnxBinding& result : c.import_subgraph(graph, arguments)) results.push_back(c.symbol(result));
    return results;
  });
}

bool is_small(const Graph& graph) {
  return std::ranges::all_of(graph.values(), [](const Value& value) {
    return value.type.is_known() && value.type.element_count() <= most_evaluated_elements;
  });
}

/// Copies of tensors of one type along a new axis.
Tensor stacked(const std::vector<Tensor>& tensors) {
  Dims dims = tensors[0].dims();
  dims.insert(dims.begin(), static_cast<std::int64_t>(tensors.size()));
  Tensor all(tensors[0].dtype(), dims);
  auto* to = static_cast<std::byte*>(all.mutable_data());
  for (const Tensor& tensor : tensors)
    to = std::copy_n(static_cast<const std::byte*>(tensor.data()), tensor.byte_size(), to);
  return all;
}

/// In scalar steps.
std::int64_t work_of_trip(const Graph& body) {
  std::int64_t work = work_of_step;
  for (const Value& value : body.values()) work += work_of_step + value.type.element_count();
  return work;
}

/// The trips one after the other: the values of the states before each one and after the last. Throws UnsupportedError when
/// they are more than the builder's budget allows for.
std::optional<std::vector<std::vector<Tensor>>> run_trips(GraphBuilder& builder, const OutlinedBody& body,
                                                          std::vector<Tensor> given,
                                                          const std::vector<Tensor>& captured,
                                                          std::int64_t most) {
  const std::int64_t work = work_of_trip(body.graph);
  std::vector<std::vector<Tensor>> history(given.size() - 1);
  for (std::int64_t trip = 0; trip < most; ++trip) {
    builder.charge(0, work);
    given[0] = Tensor::scalar_i64(trip);
    for (std::size_t i = 0; i < history.size(); ++i) history[i].push_back(given[i + 1]);
    std::vector<Tensor> inputs = given;
    inputs.insert(inputs.end(), captured.begin(), captured.end());
    std::vector<Tensor> results = interpret(body.graph, inputs);
    if (results[0].size() != 1) return std::nullopt;
    std::copy(results.begin() + 1, results.end(), given.begin() + 1);
    if (results[0].as_int64(0) == 0) break;
  }
  for (std::size_t i = 0; i < history.size(); ++i) history[i].push_back(given[i + 1]);
  return history;
}

std::optional<KnownEnd> count_trips(ImportContext& c, const ConditionPart& part, std::int64_t most,
                                    const std::vector<OnnxBinding>& states) {
  const std::optional<std::vector<Sym>> given = given_values(c, part.states(), states);
  if (!given) return std::nullopt;
  const OutlinedBody body = outline(c, part, *given, states);
  if (!is_small(body.graph)) return std::nullopt;
  std::vector<Tensor> first;
  std::vector<Tensor> captured;
  for (const Sym& value : *given) first.push_back(*c.builder().known(value));
  for (const Sym& value : body.captured) {
    const std::optional<Tensor> known = c.builder().known(value);
    if (!known) return std::nullopt;
    captured.push_back(*known);
  }
  const std::optional<std::vector<std::vector<Tensor>>> history =
      run_trips(c.builder(), body, first, captured, most);
  if (!history) return std::nullopt;
  KnownEnd end{static_cast<std::int64_t>(history->at(0).size()) - 1, {}};
  end.states.resize(states.size());
  std::size_t next = 0;
  for (const int i : part.states()) end.states[static_cast<std::size_t>(i)] = stacked(history->at(next++));
  return end;
}

}  // namespace

std::vector<bool> unchanged_states(const onnx::GraphProto& body) {
  const std::map<std::string, const onnx::NodeProto*> makers = makers_of(body);
  std::vector<bool> unchanged;
  for (int i = 2; i < body.input_size(); ++i)
    unchanged.push_back(i - 1 < body.output_size() &&
                        origin(makers, body.output(i - 1).name()) == body.input(i).name());
  return unchanged;
}

std::optional<KnownEnd> find_end(ImportContext& c, const onnx::GraphProto& body, std::int64_t most,
                                 const std::vector<OnnxBinding>& states) {
  if (!c.builder().may_add_loop() || static_cast<std::size_t>(body.input_size()) != states.size() + 2 ||
      static_cast<std::size_t>(body.output_size()) < states.size() + 1)
    return std::nullopt;
  try {
    const ConditionPart part(body);
    // Without a state it is true in every trip, or ends the loop at once.
    if (!part.is_plain() || part.states().empty()) return std::nullopt;
    return count_trips(c, part, most, states);
  } catch (const Error&) {  // whoever imports the body says what is wrong
    return std::nullopt;
  }
}

}  // namespace sylvite
