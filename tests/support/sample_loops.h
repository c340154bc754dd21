#pragma once
// Graphs with a loop, for tests of every stage.

#include <cmath>
#include <string>
#include <vector>

#include "frontend/graph/copy.h"
#include "frontend/graph/loop_builder.h"

namespace sylvite {

struct LoopSample {
  std::int64_t trips = 5;
  std::int64_t batch = 2;
  std::int64_t hidden = 16;  ///< 16 floats fill 64 bytes
  bool is_reverse = false;
  bool is_unrolled = false;
};

inline Tensor wave(const Dims& dims, int seed) {
  Tensor tensor(DType::f32, dims);
  for (std::int64_t i = 0; i < tensor.size(); ++i)
    tensor.set_double(i, 0.5 * std::sin(0.7 * static_cast<double>(i + std::int64_t{31} * seed)));
  return tensor;
}

/// A recurrent network with every kind of input and result: states that are stacked as well, and that are not; slices
/// of what is computed, given, known and of booleans; captured values, computed and known; results that no kernel of the
/// body writes.
inline Graph sample_loop(const LoopSample& sample) {
  const auto [trips, batch, hidden, is_reverse, is_unrolled] = sample;
  Graph graph;
  GraphBuilder builder(graph);
  builder.set_inside_loop(is_unrolled);
  const Sym x = builder.input("x", DType::f32, {trips, batch, 3 * hidden});
  const Sym given = builder.input("given", DType::f32, {trips, hidden});
  const Sym h = builder.input("h", DType::f32, {batch, hidden});
  const Sym c = builder.input("c", DType::f32, {batch, hidden});
  const Sym w = builder.constant(wave({hidden, 3 * hidden}, 1), "w");
  const Sym v = builder.constant(wave({3 * hidden, 3 * hidden}, 2), "v");
  const Sym shift = apply(Op::relu, h + c);
  const Sym is_odd = apply(Op::equal, apply(Op::mod, builder.iota(DType::i64, {trips, 1, 1}, 0), 2.0), 1.0);
  const Sym known = builder.constant(wave({trips, batch, hidden}, 3), "known");
  const LoopSpec spec{trips, is_reverse, {{h, c, shift}, {matmul(x, v), given, known, is_odd}}};
  const TripValues results = run_loop(builder, spec, [&](const TripValues& trip) -> TripValues {
    const Sym gates = trip.slices[0] + matmul(trip.states[0], w);
    const auto gate = [&](int i) {
      return apply(Op::sigmoid, slice(gates, 1, i * hidden, (i + 1) * hidden));
    };
    const Sym next_c = gate(0) * trip.states[1] + gate(1) * (shift + trip.slices[1]);
    const Sym next_h = gate(2) * apply(Op::tanh, next_c) + trip.slices[2];
    const Sym chosen = where(trip.slices[3], next_c, trip.states[1]);
    return {{next_h, chosen, trip.states[0]}, {next_h, next_c, trip.slices[1], shift}};
  });
  for (std::size_t i = 0; i < results.states.size(); ++i)
    builder.output(results.states[i], "state" + std::to_string(i));
  for (std::size_t i = 0; i < results.slices.size(); ++i)
    builder.output(results.slices[i], "stacked" + std::to_string(i));
  return without_dead_nodes(graph);
}

/// Both directions of a recurrent layer, whose inputs are multiplied ahead of each; or, `chained`, a second layer on the
/// first.
inline Graph sample_two_loops(bool chained, std::int64_t trips = 6, std::int64_t hidden = 16) {
  Graph graph;
  GraphBuilder builder(graph);
  const Sym x = builder.input("x", DType::f32, {trips, 2, hidden});
  const Sym start = builder.input("h", DType::f32, {2, hidden});
  const auto layer = [&](Sym from, bool is_reverse, int seed) {
    const Sym w = builder.constant(wave({hidden, hidden}, seed), "w" + std::to_string(seed));
    const Sym r = builder.constant(wave({hidden, hidden}, seed + 1), "r" + std::to_string(seed));
    const LoopSpec spec{trips, is_reverse, {{start}, {matmul(from, w)}}};
    const TripValues results = run_loop(builder, spec, [&](const TripValues& trip) -> TripValues {
      const Sym next = apply(Op::tanh, trip.slices[0] + matmul(trip.states[0], r));
      return {{next}, {next}};
    });
    return results.slices[0];
  };
  const Sym first = layer(x, false, 1);
  const Sym second = layer(chained ? first : x, true, 3);
  builder.output(first, "first");
  builder.output(second, "second");
  return without_dead_nodes(graph);
}

inline std::vector<Tensor> sample_loop_inputs(const Graph& graph) {
  std::vector<Tensor> inputs;
  for (const ValueId input : graph.inputs)
    inputs.push_back(wave(graph.type(input).dims(), 4 + static_cast<int>(inputs.size())));
  return inputs;
}

inline const std::vector<LoopSample>& loop_samples() {
  static const std::vector<LoopSample> samples = {
      {5, 2, 16, false}, {4, 1, 32, true}, {6, 3, 5, true}, {3, 1, 33, false}, {7, 1, 1, false}};
  return samples;
}

}  // namespace sylvite
