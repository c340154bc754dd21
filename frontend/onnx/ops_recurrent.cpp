// RNN, GRU and LSTM: what a step needs of its input is multiplied ahead for all steps, the rest is a loop.

#include <algorithm>

#include "base/error.h"
#include "frontend/graph/loop_builder.h"
#include "frontend/onnx/activation.h"
#include "frontend/onnx/ops.h"
#include "frontend/onnx/recurrent.h"

namespace sylvite {
namespace {

/// What all three kinds share: shapes, directions, activations, and the inputs of one direction at a time.
struct Recurrence {
  Sym x;        ///< [T, B, I]
  Sym lengths;  ///< [B, 1] i64, or absent
  std::int64_t steps = 0, batch = 0, hidden = 0;
  int directions = 1;
  bool is_reverse = false, is_batch_first = false;
  bool wants_outputs = false;  ///< of all steps
  double clip = 0;
  std::vector<Activation> activations;  ///< of all directions, one after the other

  [[nodiscard]] Sym limited(Sym value) const {
    if (clip <= 0) return value;
    return apply(Op::minimum, apply(Op::maximum, value, -clip), clip);
  }
};

std::vector<Activation> read_activations(ImportContext& c, int directions,
                                         const std::vector<std::string>& defaults) {
  std::vector<std::string> names = c.strings("activations");
  if (names.empty())
    for (int d = 0; d < directions; ++d) names.insert(names.end(), defaults.begin(), defaults.end());
  if (names.size() != defaults.size() * static_cast<std::size_t>(directions)) {
    throw ModelError("{} activations are given, expected {}", names.size(),
                     defaults.size() * static_cast<std::size_t>(directions));
  }
  const std::vector<double> alphas = c.reals("activation_alpha");
  const std::vector<double> betas = c.reals("activation_beta");
  const auto pick = [](const std::vector<double>& list, std::size_t i) {
    return i < list.size() ? std::optional<double>(list[i]) : std::nullopt;
  };
  std::vector<Activation> activations;
  activations.reserve(names.size());
  for (std::size_t i = 0; i < names.size(); ++i)
    activations.push_back(make_activation(names[i], pick(alphas, i), pick(betas, i)));
  return activations;
}

Recurrence read_recurrence(ImportContext& c, const RecurrentWeights& weights,
                           const std::vector<std::string>& default_activations) {
  Recurrence r;
  r.is_batch_first = c.integer("layout", 0) != 0;
  r.x = r.is_batch_first ? swap_axes(c.input(0), 0, 1) : c.input(0);
  if (r.x.rank() != 3 || weights.w.rank() != 3 || weights.r.rank() != 3)
    throw ModelError("X, W and R must have rank 3");
  r.steps = r.x.dim(0);
  r.batch = r.x.dim(1);
  r.hidden = weights.r.dim(2);
  if (const std::int64_t given = c.integer("hidden_size", r.hidden); given != r.hidden)
    throw ModelError("hidden_size is {}, but R has {} columns", given, r.hidden);
  const std::string direction = c.string("direction", "forward");
  r.directions = direction == "bidirectional" ? 2 : 1;
  r.is_reverse = direction == "reverse";
  if (weights.w.dim(0) != r.directions)
    throw ModelError("W has {} directions, expected {}", weights.w.dim(0), r.directions);
  r.clip = c.real("clip", 0);
  r.activations = read_activations(c, r.directions, default_activations);
  r.wants_outputs = c.wants_output(0);
  if (const Sym lengths = c.optional(4)) r.lengths = reshape(cast(lengths, DType::i64), {r.batch, 1});
  return r;
}

Sym of_direction(Sym value, int direction) {
  return squeeze(slice(value, 0, direction, direction + 1), {0});
}

/// The initial state of one direction, [B, H]; zeros when absent.
Sym initial_state(ImportContext& c, const Recurrence& r, int input, int direction) {
  const Sym given = c.optional(input);
  if (!given) return c.builder().filled(r.x.dtype(), {r.batch, r.hidden}, 0);
  return of_direction(r.is_batch_first ? swap_axes(given, 0, 1) : given, direction);
}

/// One step: the gates' share of x [B, gates], and the states before -> the states after; the first state is the
/// output.
using Step = std::function<std::vector<Sym>(Sym from_x, const std::vector<Sym>& states)>;

struct DirectionResult {
  Sym outputs;  ///< [T, B, H]; absent when nobody reads it
  std::vector<Sym> states;
};

/// Which steps are within their sequences: [T, B, 1].
Sym valid_steps(const Recurrence& r) {
  const Sym steps = r.x.builder().iota(DType::i64, {r.steps, 1, 1}, 0);
  return apply(Op::less, steps, unsqueeze(r.lengths, {0}));
}

/// Steps beyond a sequence's length leave its states alone and output zero.
std::vector<Sym> keep_beyond(Sym is_valid, const std::vector<Sym>& states, std::vector<Sym> next) {
  for (std::size_t s = 0; s < states.size(); ++s) next[s] = where(is_valid, next[s], states[s]);
  return next;
}

DirectionResult run_direction(const Recurrence& r, bool is_reverse, const std::vector<Sym>& initial,
                              Sym from_x, const Step& step) {
  LoopSpec spec{r.steps, is_reverse, {initial, {from_x}}};
  if (r.lengths) spec.given.slices.push_back(valid_steps(r));
  const TripValues results = run_loop(from_x.builder(), spec, [&](const TripValues& trip) -> TripValues {
    std::vector<Sym> next = step(trip.slices[0], trip.states);
    std::vector<Sym> outputs;
    if (r.wants_outputs) outputs.push_back(r.lengths ? where(trip.slices[1], next[0], 0.0) : next[0]);
    if (r.lengths) next = keep_beyond(trip.slices[1], trip.states, std::move(next));
    return {std::move(next), std::move(outputs)};
  });
  return {r.wants_outputs ? results.slices[0] : Sym(), results.states};
}

/// Puts the directions together: Y [T, D, B, H] and the last states [D, B, H], or batch first.
void write_outputs(ImportContext& c, const Recurrence& r, const std::vector<DirectionResult>& results) {
  if (r.wants_outputs) {
    std::vector<Sym> outputs;
    outputs.reserve(results.size());
    for (const DirectionResult& result : results) outputs.push_back(result.outputs);
    const Sym y = stack(outputs, 1);
    c.output(0, r.is_batch_first ? transpose(y, {2, 0, 1, 3}) : y);
  }
  for (std::size_t s = 0; s < results[0].states.size(); ++s) {
    std::vector<Sym> last;
    last.reserve(results.size());
    for (const DirectionResult& result : results) last.push_back(result.states[s]);
    const Sym y = stack(last, 0);
    c.output(static_cast<int>(s) + 1, r.is_batch_first ? swap_axes(y, 0, 1) : y);
  }
}

/// Weights of one direction, ready to be multiplied from the right, and both biases (absent: none).
struct DirectionWeights {
  Sym w, r, w_bias, r_bias;
};

DirectionWeights read_weights(ImportContext& c, const RecurrentWeights& all, int direction) {
  DirectionWeights weights;
  weights.w = swap_axes(of_direction(all.w, direction), 0, 1);
  weights.r = swap_axes(of_direction(all.r, direction), 0, 1);
  if (const Sym bias = c.optional(3)) {
    const Sym both = of_direction(bias, direction);
    weights.w_bias = slice(both, 0, 0, both.size() / 2);
    weights.r_bias = slice(both, 0, both.size() / 2, both.size());
  }
  return weights;
}

Sym plus_bias(Sym x, Sym bias) {
  return bias ? x + bias : x;
}

Sym gate(Sym gates, std::int64_t hidden, int i) {
  return slice(gates, -1, i * hidden, (i + 1) * hidden);
}
/// What is known of all steps at once: [T, B, gates], of x and biases.
Sym project(const Recurrence& r, const DirectionWeights& weights, Sym recurrent_bias) {
  const Sym bias = weights.w_bias ? plus_bias(weights.w_bias, recurrent_bias) : recurrent_bias;
  return plus_bias(matmul(r.x, weights.w), bias);
}

/// What runs along one direction.
struct Direction {
  Sym from_x;
  Step step;
};

template <typename MakeDirection>
void run_directions(ImportContext& c, const Recurrence& r, int states, const MakeDirection& make_direction) {
  static constexpr int state_inputs[] = {5, 6};
  std::vector<DirectionResult> results;
  for (int d = 0; d < r.directions; ++d) {
    std::vector<Sym> initial;
    initial.reserve(static_cast<std::size_t>(states));
    for (int s = 0; s < states; ++s) initial.push_back(initial_state(c, r, state_inputs[s], d));
    const Direction direction = make_direction(d);
    results.push_back(run_direction(r, r.is_reverse || d == 1, initial, direction.from_x, direction.step));
  }
  write_outputs(c, r, results);
}

RecurrentWeights given_weights(ImportContext& c) {
  return {c.input(1), c.input(2), {}};
}

void rnn(ImportContext& c) {
  const RecurrentWeights weights = given_weights(c);
  const Recurrence r = read_recurrence(c, weights, {"Tanh"});
  run_directions(c, r, 1, [&](int d) -> Direction {
    const DirectionWeights w = read_weights(c, weights, d);
    const Activation f = r.activations[static_cast<std::size_t>(d)];
    const Step step = [w, f, &r](Sym from_x, const std::vector<Sym>& states) -> std::vector<Sym> {
      return {f(r.limited(from_x + matmul(states[0], w.r)))};
    };
    return {project(r, w, w.r_bias), step};
  });
}

/// Gates in the order z, r, h. Where the reset comes after the product, it scales the bias of the candidate, too.
void gru(ImportContext& c) {
  const RecurrentWeights weights = given_weights(c);
  const Recurrence r = read_recurrence(c, weights, {"Sigmoid", "Tanh"});
  const bool resets_after = c.integer("linear_before_reset", 0) != 0;
  const std::int64_t n = r.hidden;
  run_directions(c, r, 1, [&](int d) -> Direction {
    const DirectionWeights w = read_weights(c, weights, d);
    const std::size_t at = 2 * static_cast<std::size_t>(d);
    const Activation f = r.activations[at];
    const Activation g = r.activations[at + 1];
    const Sym candidate_bias = resets_after && w.r_bias ? gate(w.r_bias, n, 2) : Sym();
    const Sym ahead = candidate_bias ? pad(slice(w.r_bias, 0, 0, 2 * n), {0}, {n}) : w.r_bias;
    const Step step = [=, &r](Sym from_x, const std::vector<Sym>& states) -> std::vector<Sym> {
      const Sym h = states[0];
      const Sym from_h = matmul(h, resets_after ? w.r : slice(w.r, -1, 0, 2 * n));
      const Sym z = f(r.limited(gate(from_x, n, 0) + gate(from_h, n, 0)));
      const Sym reset = f(r.limited(gate(from_x, n, 1) + gate(from_h, n, 1)));
      const Sym recurrent = resets_after ? reset * plus_bias(gate(from_h, n, 2), candidate_bias)
                                         : matmul(reset * h, gate(w.r, n, 2));
      const Sym candidate = g(r.limited(gate(from_x, n, 2) + recurrent));
      return {(1.0 - z) * candidate + z * h};
    };
    return {project(r, w, ahead), step};
  });
}

void lstm_op(ImportContext& c) {
  lstm(c, given_weights(c));
}

const OnnxOp recurrent_rows[] = {
    {"GRU", 7, gru},
    {"LSTM", 7, lstm_op},
    {"RNN", 7, rnn},
};

}  // namespace

void lstm(ImportContext& c, const RecurrentWeights& weights) {
  Recurrence r = read_recurrence(c, weights, {"Sigmoid", "Tanh", "Tanh"});
  const auto factor = [&](Sym x) { return weights.prepare ? weights.prepare(x) : x; };
  r.x = factor(r.x);
  const bool couples_input_forget = c.integer("input_forget", 0) != 0;
  const std::int64_t n = r.hidden;
  run_directions(c, r, 2, [&](int d) -> Direction {
    const DirectionWeights w = read_weights(c, weights, d);
    const std::size_t at = 3 * static_cast<std::size_t>(d);
    const Activation f = r.activations[at];
    const Activation g = r.activations[at + 1];
    const Activation h = r.activations[at + 2];
    const Sym peephole = c.has_input(7) ? of_direction(c.input(7), d) : Sym();
    const Step step = [=, &r](Sym from_x, const std::vector<Sym>& states) -> std::vector<Sym> {
      const Sym cell = states[1];
      const Sym gates = from_x + matmul(factor(states[0]), w.r);
      const auto peeped = [&](int i, Sym seen) {
        const Sym value = gate(gates, n, i);
        return f(r.limited(peephole ? value + gate(peephole, n, i) * seen : value));
      };
      const Sym input_gate = peeped(0, cell);
      const Sym forget_gate = couples_input_forget ? 1.0 - input_gate : peeped(2, cell);
      const Sym next_cell = forget_gate * cell + input_gate * g(r.limited(gate(gates, n, 3)));
      return {peeped(1, next_cell) * h(next_cell), next_cell};
    };
    return {project(r, w, w.r_bias), step};
  });
}

std::span<const OnnxOp> onnx_recurrent_ops() {
  return recurrent_rows;
}

}  // namespace sylvite
