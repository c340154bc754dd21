#pragma once
// Graph building, for the ONNX importer and by hand: adds nodes, evaluates at once what is constant, and
// gives values a notation that reads like the formulas of the operator specification.
//
//   Graph graph;
//   GraphBuilder builder(graph);
//   Sym x = builder.input("x", DType::f32, {1, 784});
//   Sym hidden = apply(Op::relu, matmul(x, builder.constant(w1)) + builder.constant(b1));
//   builder.output(softmax(matmul(hidden, builder.constant(w2)), 1), "probabilities");

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "frontend/graph/interpreter.h"
#include "sylvite/graph.h"

namespace sylvite {

class GraphBuilder;

/// A value of the graph under construction; cheap to copy, valid while its builder lives. An absent optional
/// value tests false.
class Sym {
 public:
  Sym() = default;
  Sym(GraphBuilder& builder, ValueId id) : builder_(&builder), id_(id) {}

  explicit operator bool() const { return id_ != no_value; }
  [[nodiscard]] ValueId id() const { return id_; }
  [[nodiscard]] GraphBuilder& builder() const { return *builder_; }
  [[nodiscard]] DType dtype() const;
  [[nodiscard]] Dims dims() const;
  [[nodiscard]] std::int64_t dim(int axis) const;  ///< negative axes count from the end
  [[nodiscard]] int rank() const;
  [[nodiscard]] std::int64_t size() const;
  [[nodiscard]] bool is_constant() const;
  [[nodiscard]] Tensor constant() const;  ///< REQUIRES is_constant(); shares the bytes

 private:
  GraphBuilder* builder_ = nullptr;
  ValueId id_ = no_value;
};

/// Adds to one graph, which must outlive it. Nodes whose inputs are all constant are evaluated at once,
/// within a budget of work and memory that bounds what a hostile model can make the importer do; beyond it
/// they stay nodes.
class GraphBuilder {
 public:
  explicit GraphBuilder(Graph& graph) : graph_(&graph) {}

  [[nodiscard]] Graph& graph() { return *graph_; }
  void set_node_name(std::string name) { node_name_ = std::move(name); }  ///< given to the nodes added next

  Sym input(const std::string& name, DType dtype, const Dims& dims);
  /// Marks a value as the next output of the graph, and names it.
  void output(Sym value, const std::string& name);
  /// Throws ModelError when the op's type rule refuses, UnsupportedError for a value or graph of absurd size,
  /// UsageError when values of two builders meet.
  std::vector<Sym> add_all(Op op, const std::vector<Sym>& inputs, Attributes attributes = {});
  Sym add(Op op, const std::vector<Sym>& inputs, Attributes attributes = {});
  Sym constant(const Tensor& tensor, const std::string& name = "");
  Sym scalar(DType dtype, double value);  ///< rank 0; equal scalars are one constant
  Sym integers(const std::vector<std::int64_t>& values) { return constant(Tensor::vector_i64(values)); }
  /// A constant of f32 values rounded to dtype.
  Sym reals(DType dtype, const Dims& dims, const std::vector<double>& values);
  Sym filled(DType dtype, const Dims& dims, double value);
  Sym iota(DType dtype, const Dims& dims, int axis);
  /// To be called before a table (filter, matrix, window, dense form of a sparse tensor) is computed. Throws
  /// UnsupportedError when it, or all of them together, would be too large.
  void reserve_table(const Dims& dims);
  /// Counts a copy of a constant against the budget; false when it is spent.
  [[nodiscard]] bool may_copy(std::int64_t bytes);
  /// To be called before a constant is computed whose size the model's file does not bound. Throws
  /// UnsupportedError when the budget does not allow for it.
  void charge(std::int64_t bytes, std::int64_t work);
  /// For constants that the model's files hold: as many bytes more may be made from them.
  void raise_budget(std::int64_t bytes) {
    if (is_limited_) fold_bytes_left_ += bytes;
  }
  /// For host steps, where everything is constant and must stay so: from now on operations are evaluated
  /// until they have made so many bytes or taken so many steps, and then refused with UnsupportedError. So is
  /// one that makes more than 1 GB and more than it reads.
  void fold_everything(std::int64_t bytes, std::int64_t work, Evaluation evaluation = evaluate_node) {
    is_limited_ = false;
    evaluation_ = std::move(evaluation);
    fold_bytes_left_ = bytes;
    work_left_ = work;
  }
  /// From now on nothing is evaluated, so that graphs which differ in sizes alone have the same nodes.
  void keep_nodes() { keeps_nodes_ = true; }
  [[nodiscard]] bool keeps_nodes() const { return keeps_nodes_; }
  /// The value where it follows from constants alone, whether it is one or, with keep_nodes, a node. Throws what the
  /// operations throw.
  [[nodiscard]] std::optional<Tensor> known(Sym value);
  /// While the body of a loop is built.
  [[nodiscard]] bool is_inside_loop() const { return is_inside_loop_; }
  /// May a loop be added now? Not in host steps, and not for the body of another.
  [[nodiscard]] bool may_add_loop() const { return is_limited_ && !is_inside_loop_; }
  void set_inside_loop(bool is_inside) { is_inside_loop_ = is_inside; }

 private:
  [[nodiscard]] bool may_fold(const Node& node) const;
  void check_step(const Node& node) const;
  std::vector<Sym> fold(const Node& node);
  [[nodiscard]] std::vector<Tensor> evaluate(const Node& node, const std::vector<const Tensor*>& inputs);
  [[nodiscard]] const Tensor* find_known(ValueId id);

  Graph* graph_;
  std::string node_name_;
  std::map<std::pair<DType, double>, ValueId> scalars_;
  std::map<ValueId, std::optional<Tensor>> known_;  ///< results of nodes that were asked for
  Evaluation evaluation_ = evaluate_node;
  bool keeps_nodes_ = false;
  bool is_limited_ = true;
  bool is_inside_loop_ = false;
  std::int64_t work_left_ = std::int64_t{1} << 26;  ///< scalar steps of the reference evaluation
  std::int64_t fold_bytes_left_ = std::int64_t{1} << 28;
  std::int64_t table_elements_left_ = std::int64_t{1} << 25;
};

/// Throws UnsupportedError when a model needs `count` operations, and that is more than `most`.
void check_node_count(std::int64_t count, std::int64_t most);
/// Throws UnsupportedError for a tensor type no machine we serve could hold.
void check_value_size(const TensorType& type);
/// Folds a negative axis into 0..rank-1; throws ModelError when out of range.
[[nodiscard]] int normalize_axis(std::int64_t axis, int rank);
/// The same for a list, sorted and without duplicates (those are refused).
[[nodiscard]] std::vector<std::int64_t> normalize_axes(const std::vector<std::int64_t>& axes, int rank);
[[nodiscard]] std::vector<std::int64_t> all_axes(int rank);

// Pointwise arithmetic with numpy broadcasting; a double stands for a scalar of the other side's dtype.
Sym apply(Op op, Sym x);
Sym apply(Op op, Sym a, Sym b);
Sym apply(Op op, Sym a, double b);
Sym operator+(Sym a, Sym b);
Sym operator-(Sym a, Sym b);
Sym operator*(Sym a, Sym b);
Sym operator/(Sym a, Sym b);
Sym operator+(Sym a, double b);
Sym operator-(Sym a, double b);
Sym operator*(Sym a, double b);
Sym operator/(Sym a, double b);
Sym operator+(double a, Sym b);
Sym operator-(double a, Sym b);
Sym operator*(double a, Sym b);
Sym operator/(double a, Sym b);
Sym operator-(Sym x);
Sym where(Sym condition, Sym if_true, Sym if_false);
Sym where(Sym condition, Sym if_true, double if_false);
Sym where(Sym condition, double if_true, Sym if_false);
Sym cast(Sym x, DType to);       ///< nothing when x already has the dtype
Sym saturated(Sym x, DType to);  ///< clamped to the finite numbers of a narrow float

// Shapes and movement. Nothing is added when the result would equal the input.
Sym reshape(Sym x, const Dims& dims);
Sym transpose(Sym x, const std::vector<std::int64_t>& perm);
Sym swap_axes(Sym x, int a, int b);  ///< negative axes count from the end
Sym broadcast_to(Sym x, const Dims& dims);
Sym unsqueeze(Sym x, std::vector<std::int64_t> axes);
Sym squeeze(Sym x, std::vector<std::int64_t> axes);
/// Bounds must be in range.
Sym slice(Sym x, int axis, std::int64_t start, std::int64_t stop, std::int64_t step = 1);
Sym flip(Sym x, int axis);
Sym pad(Sym x, const Dims& low, const Dims& high, double value = 0, const Dims& interior = {});
Sym concat(const std::vector<Sym>& parts, int axis);
Sym gather(Sym x, Sym indices, int axis);
std::vector<Sym> split(Sym x, int axis, const std::vector<std::int64_t>& sizes);

// Reductions and contractions.
Sym reduce(Op op, Sym x, const std::vector<std::int64_t>& axes, bool keepdims = true);
Sym reduce_mean(Sym x, const std::vector<std::int64_t>& axes, bool keepdims = true);
Sym softmax(Sym x, int axis);
Sym matmul(Sym a, Sym b);
/// inputs: x, filters and maybe a bias; attributes: every one of Op::conv.
Sym conv(const std::vector<Sym>& inputs, Attributes attributes);

}  // namespace sylvite
