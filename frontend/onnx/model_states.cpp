#include "frontend/onnx/model_states.h"

#include <fmt/ranges.h>
#include <onnx-ml.pb.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/nearest.h"

namespace sylvite {
namespace {

using StatePairs = std::map<std::string, std::string>;

struct UsualNames {
  std::string_view input;
  std::string_view output;
};

/// What exporters call caches and states; * is the same text in both.
constexpr std::array<UsualNames, 11> usual_names = {{
    {"past_key_values.*", "present.*"},
    {"past_key_values.*", "present_key_values.*"},
    {"past_key_values_*", "present_key_values_*"},
    {"past_key_*", "present_key_*"},
    {"past_value_*", "present_value_*"},
    {"past_conv.*", "present_conv.*"},
    {"past_*", "present_*"},
    {"past.*", "present.*"},
    {"cache_*", "new_cache_*"},
    {"h0", "hn"},
    {"c0", "cn"},
}};

/// What * stands for; nothing where the name is not of the pattern.
std::optional<std::string> match(std::string_view pattern, std::string_view name) {
  const std::size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == name ? std::optional<std::string>("") : std::nullopt;
  const std::string_view begin = pattern.substr(0, star);
  const std::string_view end = pattern.substr(star + 1);
  if (name.size() < begin.size() + end.size() || !name.starts_with(begin) || !name.ends_with(end))
    return std::nullopt;
  return std::string(name.substr(begin.size(), name.size() - begin.size() - end.size()));
}

std::string filled(std::string_view pattern, const std::string& text) {
  const std::size_t star = pattern.find('*');
  if (star == std::string_view::npos) return std::string(pattern);
  return std::string(pattern.substr(0, star)) + text + std::string(pattern.substr(star + 1));
}

class StateReader {
 public:
  StateReader(const onnx::GraphProto& graph, const ImportOptions& options) : options_(options) {
    std::set<std::string> constants;
    for (const auto& each : graph.initializer()) constants.insert(each.name());
    for (const auto& each : graph.sparse_initializer()) constants.insert(each.values().name());
    for (const auto& input : graph.input())
      if (!constants.contains(input.name()) && !options.bound_inputs.contains(input.name()))
        inputs_.push_back(input.name());
    for (const auto& output : graph.output()) outputs_.push_back(output.name());
  }

  StatePairs read() {
    for (const auto& [input, output] : options_.states) add_named(input, output);
    if (options_.usual_states) add_usual();
    return std::move(pairs_);
  }

 private:
  static void check_name(const std::vector<std::string>& names, const std::string& name,
                         std::string_view what) {
    if (std::ranges::find(names, name) != names.end()) return;
    const std::vector<std::string_view> known(names.begin(), names.end());
    throw UsageError("state: the model has no {} '{}'{} (its {}s: {})", what, name, suggestion(name, known),
                     what, fmt::join(names, ", "));
  }

  void add(const std::string& input, const std::string& output) {
    check_name(outputs_, output, "output");
    if (!pairs_.emplace(input, output).second) throw UsageError("state: input '{}' is in two pairs", input);
    if (!used_.insert(output).second) throw UsageError("state: output '{}' is in two pairs", output);
  }

  void add_named(const std::string& input, const std::string& output) {
    const bool is_pattern = input.find('*') != std::string::npos;
    if (is_pattern != (output.find('*') != std::string::npos))
      throw UsageError("state: '{}={}' has a * on one side, expected it on both", input, output);
    if (!is_pattern) check_name(inputs_, input, "input");
    bool is_met = false;
    for (const std::string& name : inputs_) {
      const auto text = match(input, name);
      if (!text) continue;
      is_met = true;
      add(name, filled(output, *text));
    }
    if (!is_met)
      throw UsageError("state: no input is called '{}' (the inputs: {})", input, fmt::join(inputs_, ", "));
  }

  void add_usual() {
    for (const std::string& name : inputs_) {
      for (const UsualNames& row : usual_names) {
        const auto text = match(row.input, name);
        if (!text || pairs_.contains(name)) continue;
        const std::string output = filled(row.output, *text);
        if (std::ranges::find(outputs_, output) != outputs_.end() && !used_.contains(output))
          add(name, output);
      }
    }
    if (pairs_.empty()) {
      throw UsageError(
          "state: no input and output have usual names of a state; name them as INPUT=OUTPUT (inputs: {}; "
          "outputs: {})",
          fmt::join(inputs_, ", "), fmt::join(outputs_, ", "));
    }
  }

  const ImportOptions& options_;
  std::vector<std::string> inputs_;
  std::vector<std::string> outputs_;
  StatePairs pairs_;
  std::set<std::string> used_;
};

}  // namespace

StatePairs read_model_states(const onnx::GraphProto& graph, const ImportOptions& options) {
  return StateReader(graph, options).read();
}

void mark_states(Graph& graph, const StatePairs& states) {
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
    const Value& past = graph.value(graph.inputs[i]);
    const auto found = states.find(past.name);
    if (found == states.end()) continue;
    std::size_t output = 0;
    while (graph.output_name(output) != found->second) ++output;
    const TensorType& next = graph.type(graph.outputs[output]);
    if (past.type != next) {
      throw UsageError(
          "state '{}' is {}, but its next value '{}' is {}: a state keeps its type. A cache that grows with "
          "each run needs a model with room for the longest one, as TensorScatter writes it",
          past.name, past.type.to_string(), found->second, next.to_string());
    }
    graph.states.push_back({i, output});
  }
}

}  // namespace sylvite
