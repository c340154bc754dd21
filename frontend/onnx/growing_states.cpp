#include "frontend/onnx/growing_states.h"

#include <onnx-ml.pb.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "frontend/graph/generalize.h"
#include "frontend/graph/length_form.h"
#include "frontend/onnx/graph_import.h"

namespace sylvite {
namespace {

const onnx::TensorShapeProto* declared_shape(const onnx::GraphProto& graph, const std::string& output) {
  for (const onnx::ValueInfoProto& each : graph.output())
    if (each.name() == output && each.type().has_tensor_type() && each.type().tensor_type().has_shape())
      return &each.type().tensor_type().shape();
  return nullptr;
}

/// The name as an expression of sizes, such as past_sequence_length + sequence_length; nothing where it is none.
std::optional<Extent> as_expression(const std::string& name) {
  try {
    return Extent::parse(name);
  } catch (const Error&) {
    return std::nullopt;
  }
}

class Finder {
 public:
  explicit Finder(ParsedModel& model) : model_(model) {}

  void run() {
    for (const SizedInput& input : model_.sizes.inputs)
      if (model_.states.contains(input.name)) look_at(input);
    if (!length_) return;
    if (length_->is_guessed)
      throw UsageError("state '{}' grows by '{}': say how long it may become, as in --dims {}=1..1024",
                       state_, length_->name, length_->name);
    model_.growing.emplace();
    model_.growing->length = length_->name;
    model_.growing->capacity = length_->range.high;
    for (SizedInput& input : model_.sizes.inputs) take(input);
    drop_symbols();
  }

 private:
  [[nodiscard]] const SizeSymbol& symbol(const SizedInput::Axis& axis) const {
    return model_.sizes.symbols[static_cast<std::size_t>(axis.symbol)];
  }

  /// Notes the size of a state that its next value does not have.
  void look_at(const SizedInput& input) {
    const auto* shape = declared_shape(model_.proto->graph(), model_.states.at(input.name));
    if (!input.is_sized || shape == nullptr || shape->dim_size() != static_cast<int>(input.axes.size()))
      return;
    for (std::size_t axis = 0; axis < input.axes.size(); ++axis) {
      if (input.axes[axis].symbol < 0) continue;
      const SizeSymbol& own = symbol(input.axes[axis]);
      const std::string& next = shape->dim(static_cast<int>(axis)).dim_param();
      if (next == own.name) continue;
      if (length_ && length_->name != own.name)
        throw UsageError(
            "states '{}' and '{}' grow by two sizes, '{}' and '{}': one is served; give the others "
            "a number (--dims)",
            state_, input.name, length_->name, own.name);
      length_ = own;
      state_ = input.name;
      if (!next.empty()) totals_.insert(next);
    }
  }

  /// Is this size known once the length is?
  [[nodiscard]] bool follows(const std::string& name) const {
    if (name == length_->name || totals_.contains(name) || name.find("total") != std::string::npos)
      return true;
    const std::optional<Extent> expression = as_expression(name);
    return expression && std::ranges::count(expression->symbols(), length_->name) > 0;
  }

  void take(SizedInput& input) {
    const bool is_state = model_.states.contains(input.name);
    for (std::size_t axis = 0; axis < input.axes.size(); ++axis) {
      SizedInput::Axis& each = input.axes[axis];
      if (each.symbol < 0) continue;
      const std::string name = axis_name(model_.sizes, each);
      if (!follows(name)) continue;
      model_.growing->axes.push_back({input.name, axis, name, is_state});
      each = {0, -1, true};
    }
  }

  /// Those that no input has any more.
  void drop_symbols() {
    std::vector<SizeSymbol> kept;
    std::map<int, int> numbers;
    for (SizedInput& input : model_.sizes.inputs) {
      for (SizedInput::Axis& axis : input.axes) {
        if (axis.symbol < 0) continue;
        const auto [found, is_new] = numbers.try_emplace(axis.symbol, static_cast<int>(kept.size()));
        if (is_new) kept.push_back(symbol(axis));
        axis.symbol = found->second;
      }
    }
    model_.sizes.symbols = std::move(kept);
  }

  ParsedModel& model_;
  std::optional<SizeSymbol> length_;
  std::string state_;             ///< that grows by it
  std::set<std::string> totals_;  ///< what declared next values call their sizes
};

/// Imports at one combination of sizes and several lengths.
class ImportedLengths {
 public:
  /// `evaluates`: what is known is evaluated, as usual. Else graphs at all lengths have the same nodes.
  ImportedLengths(const ParsedModel& model, const Sizes& sizes, bool evaluates)
      : model_(model), growing_(*model.growing), options_(options_at(model, sizes)), evaluates_(evaluates) {
    for (const auto& [name, range] : model.options.dims)
      if (range.is_fixed()) sizes_[name] = range.low;
    for (std::size_t i = 0; i < sizes.size(); ++i) sizes_[model.sizes.symbols[i].name] = sizes[i];
    for (const SizedInput& input : model.sizes.inputs) {
      if (!input.is_sized) continue;
      dims_[input.name] = dims_at(input, sizes);
      for (std::size_t axis = 0; axis < input.axes.size(); ++axis)
        if (!input.axes[axis].follows) added_choices_.push_back(dims_[input.name][axis]);
    }
    for (const auto& [name, dims] : model.growing->state_dims) dims_[name] = dims;
    added_choices_.push_back(1);
  }

  /// How many entries states of this length gain: so many that the model fits together.
  std::int64_t find_added(std::int64_t length) {
    std::string refusal;
    std::set<std::int64_t> tried;
    for (const std::int64_t added : added_choices_) {
      if (!tried.insert(added).second) continue;
      try {
        first_ = First{length, added, at(length, added)};
        const std::int64_t now = gained(first_->graph, length);
        if (now == added || !needs_added()) return now;
      } catch (const Error& error) {
        if (refusal.empty()) refusal = error.what();
      }
    }
    throw UnsupportedError(
        "states that grow by '{}': {}", growing_.length,
        refusal.empty() ? "their next values do not have entries more than they" : refusal);
  }

  Graph at(std::int64_t length, std::int64_t added) {
    // Where sizes do not need to know what is added, all have the same graph.
    if (first_ && length == first_->length && (added == first_->added || !needs_added()))
      return std::move(std::exchange(first_, std::nullopt)->graph);
    ImportOptions options = options_;
    for (const auto& [name, dims] : dims_) options.input_shapes[name] = dims;
    for (const GrowingModel::Axis& axis : growing_.axes)
      options.input_shapes.at(axis.input)[axis.axis] = size_of(axis, length, added);
    OnnxGraphImporter importer(model_.proto, model_.folder, options, OnnxStage::whole, model_.initializers);
    if (!evaluates_) importer.builder().keep_nodes();
    Graph graph = importer.import_model();
    warnings_ = importer.warnings();
    return graph;
  }

  [[nodiscard]] const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  [[nodiscard]] bool needs_added() const {
    return std::ranges::any_of(growing_.axes, [&](const auto& axis) { return !expression_of(axis); });
  }
  [[nodiscard]] std::optional<Extent> expression_of(const GrowingModel::Axis& axis) const {
    std::optional<Extent> expression = as_expression(axis.name);
    if (!expression) return std::nullopt;
    const auto is_known = [&](const std::string& name) {
      return name == growing_.length || sizes_.contains(name);
    };
    const std::vector<std::string> names = expression->symbols();
    const bool is_of_length = std::ranges::count(names, growing_.length) > 0;
    return is_of_length && std::ranges::all_of(names, is_known) ? expression : std::nullopt;
  }
  [[nodiscard]] std::int64_t size_of(const GrowingModel::Axis& axis, std::int64_t length,
                                     std::int64_t added) const {
    if (axis.is_state || axis.name == growing_.length) return length;
    const std::optional<Extent> expression = expression_of(axis);
    if (!expression) return length + added;
    SymbolValues values = sizes_;
    values[growing_.length] = length;
    return expression->at(values);
  }
  /// Of the first state that grows.
  [[nodiscard]] std::int64_t gained(const Graph& graph, std::int64_t length) const {
    const auto axis = std::ranges::find_if(growing_.axes, &GrowingModel::Axis::is_state);
    const std::string& next = model_.states.at(axis->input);
    for (std::size_t i = 0; i < graph.outputs.size(); ++i) {
      const Dims dims = graph.type(graph.outputs[i]).dims();
      if (graph.output_name(i) == next && axis->axis < dims.size()) return dims[axis->axis] - length;
    }
    return -1;
  }

  const ParsedModel& model_;
  const GrowingModel& growing_;
  ImportOptions options_;
  bool evaluates_;
  SymbolValues sizes_;
  std::map<std::string, Dims> dims_;  ///< of inputs, with anything where they follow the length
  std::vector<std::int64_t> added_choices_;
  struct First {
    std::int64_t length;
    std::int64_t added;
    Graph graph;
  };
  std::optional<First> first_;  ///< of find_added, until it is asked for
  std::vector<std::string> warnings_;
};

std::vector<State> pairs_of(const Graph& graph, const std::map<std::string, std::string>& names) {
  std::vector<State> pairs;
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
    const auto found = names.find(graph.value(graph.inputs[i]).name);
    if (found == names.end()) continue;
    std::size_t output = 0;
    while (graph.output_name(output) != found->second) ++output;
    pairs.push_back({i, output});
  }
  return pairs;
}

/// The model with a symbol for the length, by what it is at these lengths.
Graph open_graph(ImportedLengths& lengths, const Growth& growth, std::vector<std::int64_t> values) {
  std::vector<Graph> graphs;
  graphs.reserve(values.size());
  for (const std::int64_t length : values) graphs.push_back(lengths.at(length, growth.added));
  const SymbolInfo info{1, std::max<std::int64_t>(growth.capacity - growth.added, 1), {}};
  try {
    return generalize(graphs, growth.length, values, info);
  } catch (const UnsupportedError&) {
    if (values.back() <= 5) throw;
  }
  // A cut that takes the whole of a table, as it may at the greatest length, is none there.
  graphs.back() = lengths.at(--values.back(), growth.added);
  return generalize(graphs, growth.length, values, info);
}

Growth growth_of(const GrowingModel& growing, ImportedLengths& lengths, std::int64_t length) {
  const Growth growth{growing.length, growing.capacity, lengths.find_added(length)};
  if (growth.added < 1)
    throw UnsupportedError("states that grow by '{}' gain {} entries: give it one number, as in --dims {}={}",
                           growing.length, growth.added, growing.length, growing.capacity);
  if (growth.added > growth.capacity)
    throw InputError("{} new entries are more than states have room for: '{}' is at most {} (see --dims)",
                     growth.added, growth.length, growth.capacity);
  return growth;
}

[[noreturn]] void refuse_room(const Growth& growth, std::int64_t length) {
  throw InputError(
      "'{}' is {}, and this run adds {}: states have room for {} (see --dims); reset them to begin anew",
      growth.length, length, growth.added, growth.capacity);
}

ImportedModel import_at_length(const ParsedModel& model, const Sizes& sizes, std::int64_t length) {
  const GrowingModel& growing = *model.growing;
  ImportedLengths lengths(model, sizes, true);
  const Growth growth = growth_of(growing, lengths, length);
  if (length + growth.added > growth.capacity) refuse_room(growth, length);
  ImportedModel imported;
  const Graph graph = lengths.at(length, growth.added);
  imported.graph = length_form(graph, pairs_of(graph, model.states), growth, length);
  imported.warnings = lengths.warnings();
  imported.growth = growth;
  return imported;
}

}  // namespace

void find_growing_states(ParsedModel& model) {
  Finder(model).run();
}

ImportedModel import_with_capacity(const ParsedModel& model, const Sizes& sizes) {
  const GrowingModel& growing = *model.growing;
  ImportedLengths lengths(model, sizes, false);
  const Growth growth = growth_of(growing, lengths, 1);
  // Two say what each number is, the third one confirms it.
  std::vector<std::int64_t> values = {1, 3};
  const std::int64_t most = growth.capacity - growth.added;
  values.push_back(most > 3 ? most : 5);
  const Graph open = open_graph(lengths, growth, std::move(values));
  ImportedModel imported;
  imported.graph = capacity_form(open, pairs_of(open, model.states), growth);
  imported.warnings = lengths.warnings();
  for (const GrowingModel::Axis& axis : growing.axes) {
    if (axis.is_state) continue;
    for (const ValueId input : open.inputs) {
      if (open.value(input).name != axis.input) continue;
      const Extent beyond = open.type(input).shape[axis.axis] - Extent::symbol(growth.length);
      if (!beyond.is_known())
        throw UnsupportedError("input '{}' has the size {}: it grows at another pace than the states",
                               axis.input, open.type(input).shape[axis.axis].to_string());
      imported.grown_inputs.push_back({axis.input, axis.axis, beyond.known()});
    }
  }
  imported.growth = growth;
  return imported;
}

std::optional<std::size_t> length_symbol(const ParsedModel& model) {
  if (!model.growing) return std::nullopt;
  const auto found = std::ranges::find(model.sizes.symbols, model.growing->length, &SizeSymbol::name);
  if (found == model.sizes.symbols.end()) return std::nullopt;
  return static_cast<std::size_t>(found - model.sizes.symbols.begin());
}

void choose_growing_form(ParsedModel& model) {
  const GrowingModel& growing = *model.growing;
  const Sizes first = first_sizes(model.sizes);
  try {
    model.initializers->keep(first, import_with_capacity(model, first));
    return;
  } catch (const UnsupportedError& error) {
    ParsedModel at_lengths = model;
    at_lengths.sizes.symbols.push_back({growing.length, {0, growing.capacity, {0}}});
    try {
      const Sizes at_first = first_sizes(at_lengths.sizes);
      model.initializers->keep(at_first, import_growing(at_lengths, at_first));
    } catch (const UnsupportedError&) {
      throw error;
    }
    log_line(LogLevel::warning,
             "states that grow by '{}' are copied at each run, and each length has a program of its own: {}",
             growing.length, error.what());
    model = std::move(at_lengths);
  }
}

ImportedModel import_growing(const ParsedModel& model, const Sizes& sizes) {
  const std::optional<std::size_t> length = length_symbol(model);
  return length ? import_at_length(model, sizes, sizes[*length]) : import_with_capacity(model, sizes);
}

}  // namespace sylvite
