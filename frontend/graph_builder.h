#pragma once
// Write a model as C++ expressions. A thin layer over Graph::add:
//
//   GraphBuilder builder("mlp");
//   Var x = builder.input("x", DType::f32, {1, 784});
//   Var hidden = relu(matmul(x, builder.constant(w1)) + builder.constant(b1));
//   builder.output(softmax(matmul(hidden, builder.constant(w2)), 1), "probabilities");
//   Graph graph = builder.finish();

#include <string>
#include <vector>

#include "frontend/graph.h"

namespace sylvite {

class GraphBuilder;

/// A value of the graph being built; copies are cheap. Valid while its builder lives. Var{} is an absent
/// input.
struct Var {
  GraphBuilder* builder = nullptr;
  ValueId id = no_value;

  [[nodiscard]] const TensorType& type() const;
  [[nodiscard]] Dims dims() const { return type().dims(); }
  [[nodiscard]] int rank() const { return type().rank(); }
};

/// Owns the graph until finish(). Operations throw ModelError when types do not fit, as Graph::add_node does,
/// and UsageError when values of two builders meet.
class GraphBuilder {
 public:
  explicit GraphBuilder(std::string name = "graph");
  GraphBuilder(const GraphBuilder&) = delete;  // handles point here
  GraphBuilder& operator=(const GraphBuilder&) = delete;

  Var input(const std::string& name, DType dtype, const Dims& dims);
  Var constant(Tensor tensor, const std::string& name = "");
  Var scalar(DType dtype, double value);
  Var iota(DType dtype, const Dims& shape, std::int64_t axis);
  /// Marks a value as the next output of the graph, and names it.
  void output(Var value, const std::string& name = "");
  /// Any operation of the table, by its row: all outputs, or the first.
  std::vector<Var> apply_all(Op op, const std::vector<Var>& inputs, Attributes attributes = {});
  Var apply(Op op, const std::vector<Var>& inputs, Attributes attributes = {});
  [[nodiscard]] const Graph& graph() const { return graph_; }
  /// Hands the graph over; the builder and its handles are done.
  [[nodiscard]] Graph finish() { return std::move(graph_); }

 private:
  Graph graph_;
};

/// The operation in the builder of inputs[0].
Var apply(Op op, const std::vector<Var>& inputs, Attributes attributes = {});
/// A scalar constant of x's element type, to combine with x.
Var like(Var x, double value);

Var operator+(Var a, Var b);
Var operator-(Var a, Var b);
Var operator*(Var a, Var b);
Var operator/(Var a, Var b);
Var operator+(Var a, double b);
Var operator-(Var a, double b);
Var operator*(Var a, double b);
Var operator/(Var a, double b);
Var operator+(double a, Var b);
Var operator-(double a, Var b);
Var operator*(double a, Var b);
Var operator/(double a, Var b);
Var operator-(Var x);

Var exp(Var x);
Var log(Var x);
Var sqrt(Var x);
Var tanh(Var x);
Var sigmoid(Var x);
Var relu(Var x);
Var gelu(Var x);
Var silu(Var x);
Var minimum(Var a, Var b);
Var maximum(Var a, Var b);
Var where(Var condition, Var a, Var b);
Var cast(Var x, DType dtype);

Var reshape(Var x, const Dims& shape);
Var transpose(Var x, const Dims& perm);
Var concat(const std::vector<Var>& inputs, std::int64_t axis);
Var gather(Var x, Var indices, std::int64_t axis);
/// `op` is Op::reduce_sum, reduce_max, reduce_min or reduce_prod; axes are sorted.
Var reduce(Op op, Var x, const Dims& axes, bool keepdims = true);
Var softmax(Var x, std::int64_t axis);
Var layer_norm(Var x, Var scale, Var bias, std::int64_t axis, double epsilon = 1e-5);
Var matmul(Var a, Var b);
Var attention(Var q, Var k, Var v, bool causal = false);

/// Per spatial dim; empty lists mean 1 (strides, dilations) and 0 (pads: begins, then ends).
struct WindowOptions {
  Dims strides = {};
  Dims pads = {};
  Dims dilations = {};
  std::int64_t groups = 1;  ///< convolution only
};
Var conv(Var x, Var w, const WindowOptions& options = {}, Var bias = {});
/// `op` is Op::max_pool or Op::avg_pool.
Var pool(Op op, Var x, const Dims& kernel, const WindowOptions& options = {});

}  // namespace sylvite
