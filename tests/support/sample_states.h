#pragma once
// Models with values that stay between runs: a cell of an LSTM, and a small decoder with caches of keys and values.

#include <cmath>
#include <string>
#include <vector>

#include "frontend/graph/graph_builder.h"
#include "sylvite/graph.h"

namespace sylvite {

/// Small numbers that differ everywhere.
inline Sym sample_weight(GraphBuilder& b, const Dims& dims, int seed) {
  Tensor tensor(DType::f32, dims);
  for (std::int64_t i = 0; i < tensor.size(); ++i)
    tensor.set_double(i, 0.4 * std::sin(1.3 * static_cast<double>(i + std::int64_t{17} * seed)));
  return b.constant(tensor);
}

inline void add_state(Graph& graph, Sym past, Sym next, const std::string& name) {
  past.builder().output(next, name);
  std::size_t input = 0;
  while (graph.inputs[input] != past.id()) ++input;
  graph.states.push_back({input, graph.outputs.size() - 1});
}

struct LstmStep {
  Sym h, c;
};
inline LstmStep lstm_step(Sym x, const LstmStep& last) {
  GraphBuilder& b = x.builder();
  const std::int64_t size = last.h.dim(1);
  const Sym gates = matmul(x, sample_weight(b, {x.dim(1), 4 * size}, 1)) +
                    matmul(last.h, sample_weight(b, {size, 4 * size}, 2));
  const std::vector<Sym> parts = split(gates, 1, {size, size, size, size});
  const Sym c =
      apply(Op::sigmoid, parts[0]) * last.c + apply(Op::sigmoid, parts[1]) * apply(Op::tanh, parts[2]);
  return {apply(Op::sigmoid, parts[3]) * apply(Op::tanh, c), c};
}

/// x [1, size] and the states h and c -> y [1, size].
inline Graph lstm_by_steps(std::int64_t size) {
  Graph graph;
  GraphBuilder b(graph);
  const Sym x = b.input("x", DType::f32, {1, size});
  const LstmStep last{b.input("h0", DType::f32, {1, size}), b.input("c0", DType::f32, {1, size})};
  const LstmStep next = lstm_step(x, last);
  b.output(next.h * 1.0 + 1.0, "y");
  add_state(graph, last.h, next.h, "hn");
  add_state(graph, last.c, next.c, "cn");
  return graph;
}

/// x [steps, size] -> y [steps, size], all at once.
inline Graph lstm_at_once(std::int64_t steps, std::int64_t size) {
  Graph graph;
  GraphBuilder b(graph);
  const Sym x = b.input("x", DType::f32, {steps, size});
  LstmStep at{b.filled(DType::f32, {1, size}, 0), b.filled(DType::f32, {1, size}, 0)};
  std::vector<Sym> results;
  for (std::int64_t i = 0; i < steps; ++i) {
    at = lstm_step(slice(x, 0, i, i + 1), at);
    results.push_back(at.h + 1.0);
  }
  b.output(concat(results, 0), "y");
  return graph;
}

/// A decoder as GPT-2 is one: positions that are learned, norms ahead, attention and two products in each layer.
struct SampleDecoder {
  std::int64_t capacity = 512;
  std::int64_t layers = 2;
  std::int64_t heads = 4;
  std::int64_t head = 8;
  std::int64_t tokens = 61;

  [[nodiscard]] std::int64_t width() const { return heads * head; }

  [[nodiscard]] Sym normed(Sym x) const {
    const Sym centred = x - reduce_mean(x, {-1 + x.rank()});
    return centred * apply(Op::rsqrt, reduce_mean(centred * centred, {-1 + x.rank()}) + 1e-5);
  }
  /// [T, W] -> [1, H, T, D]
  [[nodiscard]] Sym split_heads(Sym x) const {
    return unsqueeze(transpose(reshape(x, {x.dim(0), heads, head}), {1, 0, 2}), {0});
  }
  [[nodiscard]] Sym embedded(Sym ids, Sym positions) const {
    GraphBuilder& b = ids.builder();
    return gather(sample_weight(b, {tokens, width()}, 1), ids, 0) +
           gather(sample_weight(b, {capacity, width()}, 2), positions, 0);
  }
  struct Heads {
    Sym q, k, v;
  };
  [[nodiscard]] Heads projected(Sym x, int layer) const {
    const Sym all = matmul(normed(x), sample_weight(x.builder(), {width(), 3 * width()}, 10 * layer));
    const std::vector<Sym> parts = split(all, 1, {width(), width(), width()});
    return {split_heads(parts[0]), split_heads(parts[1]), split_heads(parts[2])};
  }
  /// `visible`: [T, S], which keys a token sees.
  [[nodiscard]] Sym block(Sym x, const Heads& in, Sym visible, int layer) const {
    GraphBuilder& b = x.builder();
    const Sym scores = matmul(in.q, swap_axes(in.k, 2, 3)) * (1 / std::sqrt(static_cast<double>(head)));
    const Sym mixed = matmul(softmax(where(visible, scores, -1e9), 3), in.v);
    const Sym joined = reshape(transpose(squeeze(mixed, {0}), {1, 0, 2}), {x.dim(0), width()});
    x = x + matmul(joined, sample_weight(b, {width(), width()}, 10 * layer + 1));
    const Sym wide =
        apply(Op::gelu, matmul(normed(x), sample_weight(b, {width(), 2 * width()}, 10 * layer + 2)));
    return x + matmul(wide, sample_weight(b, {2 * width(), width()}, 10 * layer + 3));
  }
  [[nodiscard]] Sym logits(Sym x) const {
    return matmul(normed(x), sample_weight(x.builder(), {width(), tokens}, 3));
  }

  /// token [1], position [1] and caches -> logits [1, tokens].
  [[nodiscard]] Graph by_tokens() const {
    Graph graph;
    GraphBuilder b(graph);
    const Sym id = b.input("token", DType::i64, {1});
    const Sym position = b.input("position", DType::i64, {1});
    Sym x = embedded(id, position);
    const Sym visible =
        apply(Op::less_equal, b.iota(DType::i64, {1, capacity}, 1), reshape(position, {1, 1}));
    struct Cache {
      Sym past, next;
      std::string name;
    };
    std::vector<Cache> caches;
    const Sym at = broadcast_to(reshape(position, {1, 1, 1, 1}), {1, heads, 1, head});
    const auto cached = [&](Sym rows, const std::string& name) {
      const Sym past = b.input("past." + name, DType::f32, {1, heads, capacity, head});
      const Sym next = b.add(Op::scatter_elements, {past, at, rows}, {{"axis", std::int64_t{2}}});
      caches.push_back({past, next, "present." + name});
      return next;
    };
    for (int layer = 1; layer <= layers; ++layer) {
      Heads in = projected(x, layer);
      in.k = cached(in.k, std::to_string(layer) + ".key");
      in.v = cached(in.v, std::to_string(layer) + ".value");
      x = block(x, in, visible, layer);
    }
    b.output(logits(x), "logits");
    for (const Cache& cache : caches) add_state(graph, cache.past, cache.next, cache.name);
    return graph;
  }

  /// tokens [T] -> logits [T, tokens].
  [[nodiscard]] Graph at_once(std::int64_t count) const {
    Graph graph;
    GraphBuilder b(graph);
    const Sym ids = b.input("tokens", DType::i64, {count});
    Sym x = embedded(ids, b.iota(DType::i64, {count}, 0));
    const Sym visible =
        apply(Op::less_equal, b.iota(DType::i64, {count, count}, 1), b.iota(DType::i64, {count, count}, 0));
    for (int layer = 1; layer <= layers; ++layer) x = block(x, projected(x, layer), visible, layer);
    b.output(logits(x), "logits");
    return graph;
  }
};

}  // namespace sylvite
