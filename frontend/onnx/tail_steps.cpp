#include "frontend/onnx/tail_steps.h"

#include <onnx-ml.pb.h>

#include <algorithm>

#include "base/error.h"
#include "base/log.h"
#include "frontend/onnx/loop_trips.h"
#include "frontend/onnx/node_order.h"
#include "frontend/onnx/tensor.h"

namespace sylvite {
namespace {

constexpr int most_tails = 16;  // each the tail of the one before

/// The axis of the first result that counts what was found; -1 for operations without one.
int counted_axis(const onnx::NodeProto& node) {
  if (node.op_type() == "NonZero") return 1;
  return node.op_type() == "NonMaxSuppression" ? 0 : -1;
}

/// Does the node move elements of `pieces`, or join them?
bool joins(const DeferredNode& node, const std::set<std::string>& reads,
           const std::set<std::string>& pieces) {
  static const std::set<std::string> views = {"Concat",    "Reshape",   "Squeeze",
                                              "Unsqueeze", "Transpose", "Cast"};
  return views.contains(node.node->op_type()) &&
         std::ranges::any_of(reads, [&](const auto& name) { return pieces.contains(name); });
}

/// Does a node that reads strings give numbers?
bool gives_numbers(const onnx::NodeProto& node) {
  static const std::set<std::string> operators = {
      "CategoryMapper", "Equal", "OneHotEncoder", "RegexFullMatch", "Shape", "Size", "TfIdfVectorizer"};
  if (operators.contains(node.op_type())) return true;
  const auto has = [&](const char* name, auto holds) {
    return std::ranges::any_of(node.attribute(), [&](const auto& attribute) {
      return attribute.name() == name && holds(attribute);
    });
  };
  if (node.op_type() == "Cast")
    return has("to", [](const auto& attribute) { return attribute.i() != onnx::TensorProto::STRING; });
  return node.op_type() == "LabelEncoder" && !has("values_strings", [](const auto&) { return true; });
}

}  // namespace

void TailSteps::prepare(const std::vector<DeferredNode>& nodes, std::set<std::string> known) {
  nodes_ = nodes;
  known_ = std::move(known);
  for (const DeferredNode& node : nodes) reads_.push_back(names_read(*node.node));
  follows_inputs_ = std::ranges::none_of(nodes, &DeferredNode::is_first);
  waits_for_numbers_ = std::ranges::any_of(
      nodes, [](const DeferredNode& node) { return node.is_first && !node.size.empty(); });
}

std::vector<bool> TailSteps::steps_of_strings(const Values& values) const {
  std::set<std::string> strings;
  for (const auto& [name, value] : values)
    if (value->is_strings()) strings.insert(name);
  std::vector<bool> result;
  for (const DeferredNode& node : nodes_) {
    const auto& inputs = node.node->input();
    result.push_back(std::ranges::any_of(inputs, [&](const auto& name) { return strings.contains(name); }));
    if (result.back() && !gives_numbers(*node.node))
      strings.insert(node.node->output().begin(), node.node->output().end());
  }
  return result;
}

/// All but those of strings, and those that read what is known and wait for more than sizes, or numbers that a run before had.
/// Of many sizes, the pieces that have them are made now, up to their concat, which has one.
TailSteps::Left TailSteps::steps_left(const Values& values) const {
  constexpr std::size_t most_sizes = 4;
  const auto awaited = [&](const DeferredNode& node) -> const Tensor* {
    const auto size = values.find(node.size);
    return node.is_first && size != values.end() && size->second->is_tensor() ? &size->second->tensor()
                                                                              : nullptr;
  };
  const auto waits_for_sizes = [&](const DeferredNode& node) {
    const Tensor* size = awaited(node);
    return size != nullptr && are_sizes(*size);
  };
  Left result;
  const auto waits_for_number = [&](const DeferredNode& node) {
    const Tensor* number = awaited(node);
    if (number == nullptr || are_sizes(*number)) return false;
    if (!result.numbers.contains(node.size) && !model_.tails->is_met_again(node.size, *number)) return false;
    result.numbers.insert(node.size);
    return true;
  };
  std::set<std::string> sizes;
  for (const DeferredNode& node : nodes_)
    if (waits_for_sizes(node)) sizes.insert(node.size);
  std::set<std::string> left;
  std::set<std::string> pieces;
  const std::vector<bool> is_of_strings = steps_of_strings(values);
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const DeferredNode& node = nodes_[i];
    const auto& results = node.node->output();
    const bool waits = std::ranges::any_of(reads_[i], [&](const auto& name) { return left.contains(name); });
    const bool is_piece =
        sizes.size() > most_sizes && (waits_for_sizes(node) || (!waits && joins(node, reads_[i], pieces)));
    const bool is_later =
        (!node.is_first && !is_of_strings[i]) || waits_for_sizes(node) || waits_for_number(node);
    result.steps.push_back(!is_piece && (waits || is_later));
    if (result.steps.back())
      left.insert(results.begin(), results.end());
    else if (is_piece && node.node->op_type() != "Concat")
      pieces.insert(results.begin(), results.end());
  }
  return result;
}

const TailSteps::Left& TailSteps::known_steps_left(const Values& values, Left& now) const {
  if (waits_for_numbers_) return now = steps_left(values);
  if (!left_) left_ = steps_left(values);
  return *left_;
}

TailSteps::Split& TailSteps::split(const std::vector<bool>& is_left, const Values& values) const {
  const auto [found, is_new] = splits_.try_emplace(is_left);
  Split& result = found->second;
  if (!is_new) return result;
  for (std::size_t i = 0; i < nodes_.size(); ++i)
    if (is_left[i])
      result.rest.push_back(nodes_[i].node);
    else
      result.now.push_back(nodes_[i]);
  find_interfaces(result, values);
  return result;
}

void TailSteps::find_interfaces(Split& split, const Values& values) const {
  std::set<std::string> made;
  for (const DeferredNode& node : split.now)
    made.insert(node.node->output().begin(), node.node->output().end());
  std::set<std::string> own;
  for (const onnx::NodeProto* node : split.rest) own.insert(node->output().begin(), node->output().end());
  std::set<std::string> names;
  for (const onnx::NodeProto* node : split.rest) names.merge(names_read(*node));
  const onnx::GraphProto& graph = model_.proto->graph();
  for (const std::string& name : names) {
    if (name.empty() || own.contains(name)) continue;
    const onnx::TensorProto* weight = values.contains(name) ? nullptr : find_initializer(graph, name);
    // Else a name of a subgraph's own.
    if (weight != nullptr || made.contains(name) || values.contains(name))
      split.reads.push_back({name, {}, weight != nullptr || known_.contains(name)});
    if (made.contains(name)) split.made.push_back(name);
  }
  for (const onnx::ValueInfoProto& output : graph.output())
    if (own.contains(output.name()))
      split.outputs.push_back(output.name());
    else if (made.contains(output.name()) && !names.contains(output.name()))
      split.made.push_back(output.name());
}

/// Where all inputs that may have other sizes, and texts, have so many rows, which are more than one: as many at other sizes.
TailSteps::Rows TailSteps::rows(const Values& values, Sizes& beside) const {
  std::set<std::int64_t> counts;
  std::set<std::size_t> symbols;
  for (const SizedInput& input : model_.sizes.inputs) {
    const auto value = values.find(input.name);
    const bool is_texts = value != values.end() && value->second->is_strings();
    if (is_texts && !value->second->strings().dims.empty()) counts.insert(value->second->strings().dims[0]);
    if (!input.is_sized || input.axes.empty() || input.axes[0].symbol < 0) continue;
    symbols.insert(static_cast<std::size_t>(input.axes[0].symbol));
    counts.insert(sizes_[*symbols.rbegin()]);
  }
  if (counts.size() != 1 || *counts.begin() < 2) return {};
  const std::int64_t here = *counts.begin();
  const std::int64_t there = symbols.empty() ? here + 2 : beside[*symbols.begin()];
  for (const std::size_t symbol : symbols) beside[symbol] = there;
  return {here, there};
}

/// What the graph gives, and constants that it would be made with, at other sizes of the model.
std::map<std::string, TailShape> TailSteps::other_shapes(const Sizes& beside) const {
  std::map<std::string, TailShape> shapes;
  if (model_.sizes.are_fixed()) return shapes;
  const ImportOptions options = options_at(model_, beside);
  OnnxGraphImporter importer(model_.proto, model_.folder, options, OnnxStage::first, model_.initializers);
  std::vector<DeferredNode> deferred;
  std::vector<HostHandover> handovers;
  std::vector<ModelPort> inputs;
  const Graph graph = importer.import_first(deferred, handovers, inputs);
  for (const HostHandover& handover : handovers) {
    if (handover.is_sequence) continue;
    if (!handover.graph_outputs.empty())
      shapes[handover.name] = {graph.type(graph.outputs[handover.graph_outputs[0]]).dims()};
    else if (handover.known.is_tensor())
      shapes[handover.name] = TailShape::of(handover.known.tensor());
  }
  for (const SizedInput& input : model_.sizes.inputs)
    if (input.is_sized) shapes[input.name] = {dims_at(input, beside)};
  return shapes;
}

/// Counts of another run: each other than those of this one, equal for steps that count the same.
template <typename Made>
void guess_counts(const std::vector<DeferredNode>& nodes, const Made& made, std::vector<TailValue>& reads) {
  std::map<std::string, std::int64_t> more;
  for (const DeferredNode& node : nodes) {
    const int axis = counted_axis(*node.node);
    const std::string& name = node.node->output(0);
    const auto read = std::ranges::find(reads, name, &TailValue::name);
    if (axis < 0 || read == reads.end()) continue;
    const auto next = static_cast<std::int64_t>(more.size());
    const std::int64_t number = more.try_emplace(node.node->input(0), next).first->second;
    read->other = TailShape{made.at(name)->tensor().dims()};
    read->other->dims.at(static_cast<std::size_t>(axis)) += 1 + 3 * number;
  }
}

/// What steps make of texts has a row for each.
void TailSteps::guess_rows(const Rows& rows, const Values& values, std::vector<TailValue>& reads) const {
  const std::vector<bool> is_of_strings = steps_of_strings(values);
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (rows.here == rows.there || !is_of_strings[i]) continue;
    for (const std::string& name : nodes_[i].node->output()) {
      const auto read = std::ranges::find(reads, name, &TailValue::name);
      if (read == reads.end() || !values.at(name)->is_tensor()) continue;
      const Dims& dims = values.at(name)->tensor().dims();
      if (dims.empty() || dims[0] != rows.here) continue;
      read->other = TailShape{dims};
      read->other->dims[0] = rows.there;
    }
  }
}

/// Weights, and what values may be in other runs.
void TailSteps::complete(Split& split, const Values& values, const OnnxGraphImporter& importer) const {
  std::map<std::string, TailShape> others;
  Sizes beside = model_.sizes.are_fixed() ? sizes_ : sizes_beside(model_.sizes, sizes_);
  const Rows rows = this->rows(values, beside);
  try {
    others = other_shapes(beside);
  } catch (const Error& error) {
    log_line(LogLevel::debug, "tail: no other sizes: {}", error.what());
  }
  for (TailValue& read : split.reads) {
    if (const auto other = others.find(read.name); other != others.end()) read.other = other->second;
    if (!values.contains(read.name))
      read.value = importer.weight(*find_initializer(model_.proto->graph(), read.name));
  }
  guess_rows(rows, values, split.reads);
  guess_counts(split.now, values, split.reads);
  split.is_complete = true;
}

/// What the tail is given; nothing where it is not of tensors.
std::optional<std::vector<TailValue>> TailSteps::read(const Split& split,
                                                      const std::set<std::string>& numbers,
                                                      const Values& values) const {
  std::vector<TailValue> reads = split.reads;
  for (TailValue& read : reads) {
    const auto value = values.find(read.name);
    if (value == values.end()) continue;  // a weight
    if (!value->second->is_tensor()) return std::nullopt;
    read.value = value->second->tensor();
    read.is_number = numbers.contains(read.name);
  }
  return reads;
}

std::optional<std::vector<HostValue>> TailSteps::run_tail(Tail& tail, const Split& split,
                                                          const std::vector<TailValue>& reads, Values& values,
                                                          const TailRunner& run_tail) const {
  const std::optional<TailCall> call = tail.call(reads);
  if (!call) return std::nullopt;
  const std::optional<std::vector<HostValue>> results = run_tail.run(call->model, call->inputs);
  if (!results) return std::nullopt;
  for (std::size_t i = 0; i < results->size(); ++i) values[split.outputs[i]] = &results->at(i);
  std::vector<HostValue> outputs;
  for (const onnx::ValueInfoProto& output : model_.proto->graph().output())
    outputs.push_back(*values.at(output.name()));
  return outputs;
}

std::optional<std::vector<HostValue>> TailSteps::run(const NamedValues& given, const Evaluation& evaluation,
                                                     const TailRunner& run_tail) const {
  // Where strings from outside alone make steps, sizes follow from those of the inputs: a program for them is there as a rule.
  constexpr double share_of_known_sizes = 0.1;
  const double least_seconds = run_tail.least_seconds * (follows_inputs_ ? share_of_known_sizes : 1);
  if (model_.tails_before >= most_tails || model_.tails->step_seconds() < least_seconds) return std::nullopt;
  const std::scoped_lock lock(mutex_);
  Values values;
  for (const auto& [name, value] : given) values[name] = &value;
  Left now;
  const Left& left = known_steps_left(values, now);
  Split& split = this->split(left.steps, values);
  if (split.outputs.empty()) return std::nullopt;
  OnnxGraphImporter importer(model_.proto, model_.folder, options_, OnnxStage::running, model_.initializers);
  const TripRunner trips = {model_, run_tail, known_};
  const std::vector<HostValue> made = importer.run_nodes(split.now, given, split.made, evaluation, &trips);
  for (std::size_t i = 0; i < made.size(); ++i) values[split.made[i]] = &made[i];
  if (!split.is_complete) complete(split, values, importer);
  const std::optional<std::vector<TailValue>> reads = read(split, left.numbers, values);
  if (!reads) return std::nullopt;
  return model_.tails->with(model_, split.rest, split.outputs, *reads, [&](Tail& tail) {
    try {
      return this->run_tail(tail, split, *reads, values, run_tail);
    } catch (const InputError& error) {  // steps done one by one tell, too
      log_line(LogLevel::info, "tail: {}", error.what());
    } catch (const Error& error) {
      log_line(LogLevel::info, "tail: {}", error.what());
      tail.give_up();
    }
    return std::optional<std::vector<HostValue>>();
  });
}

}  // namespace sylvite
