#include "frontend/graph/length_form.h"

#include <algorithm>

#include "base/error.h"
#include "frontend/graph/copy.h"
#include "frontend/graph/graph_builder.h"

namespace sylvite {
namespace {

/// A state and its next value, by the dims that grow: they have the length, and so many entries more.
struct Growing {
  State state;
  std::vector<std::size_t> axes;
};

Growing growing_state(const Graph& graph, const State& state, const Growth& growth, std::int64_t length) {
  const TensorType& past = graph.type(graph.inputs[state.input]);
  const TensorType& next = graph.type(graph.outputs[state.output]);
  Growing result{state, {}};
  bool fits = past.dtype == next.dtype && past.rank() == next.rank();
  for (std::size_t i = 0; fits && i < past.shape.size(); ++i) {
    if (past.shape[i] == next.shape[i]) continue;
    fits = past.shape[i].known() == length && next.shape[i].known() == length + growth.added;
    result.axes.push_back(i);
  }
  if (!fits)
    throw UnsupportedError("state '{}' is {}, its next value '{}' is {}: expected {} entries more than {}",
                           graph.value(graph.inputs[state.input]).name, past.to_string(),
                           graph.output_name(state.output), next.to_string(), growth.added, growth.length);
  return result;
}

class LengthForm {
 public:
  LengthForm(const Graph& graph, const std::vector<State>& states, const Growth& growth, std::int64_t length)
      : source_(graph), growth_(growth), length_(length), copier_(graph), builder_(copier_.graph()) {
    for (const State& state : states) states_.push_back(growing_state(graph, state, growth, length));
  }

  Graph run() {
    add_inputs();
    for (const Node& node : source_.nodes()) copier_.copy(node);
    add_outputs();
    return std::move(graph());
  }

 private:
  [[nodiscard]] Graph& graph() { return copier_.graph(); }

  [[nodiscard]] const Growing* grows(std::size_t number, std::size_t State::* side) const {
    const auto found = std::ranges::find_if(
        states_, [&](const Growing& each) { return each.state.*side == number && !each.axes.empty(); });
    return found == states_.end() ? nullptr : &*found;
  }

  void add_inputs() {
    for (std::size_t i = 0; i < source_.inputs.size(); ++i) {
      const ValueId old = source_.inputs[i];
      const Growing* const state = grows(i, &State::input);
      if (state == nullptr) {
        copier_.add_input(old);
        continue;
      }
      Dims dims = source_.type(old).dims();
      for (const std::size_t axis : state->axes) dims[axis] = growth_.capacity;
      Sym value = builder_.input(source_.value(old).name, source_.type(old).dtype, dims);
      for (const std::size_t axis : state->axes) value = slice(value, static_cast<int>(axis), 0, length_);
      copier_.set(old, value.id());
    }
    (void)builder_.input(growth_.length, DType::i64, {});
  }

  void add_outputs() {
    for (std::size_t i = 0; i < source_.outputs.size(); ++i) {
      Sym value(builder_, copier_.mapped(source_.outputs[i]));
      if (const Growing* const state = grows(i, &State::output)) {
        Dims high(value.dims().size(), 0);
        for (const std::size_t axis : state->axes) high[axis] = growth_.capacity - length_ - growth_.added;
        value = pad(value, Dims(high.size(), 0), high);
      }
      graph().outputs.push_back(value.id());
      graph().output_names.push_back(source_.output_name(i));
    }
    for (const Growing& each : states_) graph().states.push_back(each.state);
    graph().states.push_back({graph().inputs.size() - 1, graph().outputs.size()});
    graph().outputs.push_back(builder_.constant(Tensor::scalar_i64(length_ + growth_.added)).id());
    graph().output_names.push_back("next_" + growth_.length);
    std::ranges::sort(graph().states, {}, &State::input);
  }

  const Graph& source_;
  const Growth& growth_;
  std::int64_t length_;
  std::vector<Growing> states_;
  GraphCopier copier_;
  GraphBuilder builder_;
};

}  // namespace

Graph length_form(const Graph& graph, const std::vector<State>& states, const Growth& growth,
                  std::int64_t length) {
  return LengthForm(graph, states, growth, length).run();
}

}  // namespace sylvite
