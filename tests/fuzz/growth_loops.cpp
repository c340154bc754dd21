// Growths with a body of their own: Scan and Loop over a random step.

#include "tests/fuzz/growth_values.h"

namespace sylvite::fuzz {
namespace {

/// A body as it grows: values of one type, of which any may be read.
class Body {
 public:
  Body(ModelGrower& grower, Dims dims) : grower_(grower), dims_(std::move(dims)) { graph_.set_name("body"); }

  std::string input(const std::string& name) {
    set_value_info(*graph_.add_input(), name, DType::f32, dims_);
    return read_later(name);
  }
  std::string any() { return values_[grower_.pick(values_.size())]; }
  std::string weight(const Dims& dims) {
    const std::string name = "constant_" + std::to_string(names_++);
    *graph_.add_initializer() = tensor_proto(name, grower_.random_tensor(DType::f32, dims));
    return name;
  }
  std::string node(const std::string& op, const std::vector<std::string>& inputs) {
    onnx::NodeProto& made = *graph_.add_node() = make_node(op, inputs);
    made.add_output("step_" + std::to_string(names_++));
    return made.output(0);
  }
  std::string read_later(const std::string& name) {
    values_.push_back(name);
    return name;
  }

  /// One value more, no greater than those before but for a sum of two.
  void grow() {
    switch (grower_.pick(6)) {
      case 0:
        (void)read_later(
            node(grower_.one_of<const char*>({"Tanh", "Sigmoid", "Neg", "Relu", "Sin"}), {any()}));
        return;
      case 1:
        (void)read_later(node(grower_.one_of<const char*>({"Max", "Min", "Add"}), {any(), any()}));
        return;
      case 2:
        (void)read_later(node("Where", {node("Greater", {any(), any()}), any(), any()}));
        return;
      case 3:
        (void)read_later(node("Mul", {node("Tanh", {any()}), any()}));
        return;
      case 4:
        (void)read_later(node("Add", {any(), weight(grower_.broadcast_partner(dims_))}));
        return;
      default:
        if (dims_.size() != 2) return;
        (void)read_later(node("Tanh", {node("MatMul", {any(), weight({dims_[1], dims_[1]})})}));
    }
  }
  /// A result under a name of its own, as a value may be one only once.
  void output() { output(node("Identity", {any()}), DType::f32, dims_); }
  void output(const std::string& name, DType dtype, const Dims& dims) {
    set_value_info(*graph_.add_output(), name, dtype, dims);
  }

  void give_to(onnx::NodeProto& node) {
    onnx::AttributeProto& attribute = *node.add_attribute();
    attribute.set_name("body");
    attribute.set_type(onnx::AttributeProto::GRAPH);
    attribute.mutable_g()->Swap(&graph_);
  }
  [[nodiscard]] onnx::GraphProto& graph() { return graph_; }

 private:
  ModelGrower& grower_;
  Dims dims_;
  onnx::GraphProto graph_;
  std::vector<std::string> values_;
  int names_ = 0;
};

bool is_series(const Tensor& tensor) {
  return is_single(tensor) && rank_of(tensor) >= 1 && rank_of(tensor) <= 4 && tensor.size() > 0;
}

/// One or two states, what is scanned of one shape, and what is stacked.
void scan(ModelGrower& g) {
  const Known* x = g.any(is_series);
  if (x == nullptr) return;
  const Known a = *x;
  const std::int64_t axis = g.chance(0.7) ? 0 : axis_of(g, a.sample);
  if (extent_at(a.sample, axis) > 12) return;
  Dims slice = a.sample.dims();
  slice.erase(slice.begin() + (axis < 0 ? axis + rank_of(a.sample) : axis));
  const std::size_t states = 1 + g.pick(2), stacked = g.pick(3);
  Body body(g, slice);
  onnx::NodeProto node = make_node("Scan", {});
  for (std::size_t i = 0; i < states; ++i) {
    node.add_input(g.operand(g.random_tensor(DType::f32, slice)));
    (void)body.input("state_" + std::to_string(i));
  }
  std::vector<std::int64_t> axes, directions;
  for (std::size_t i = 0; i < 1 + g.pick(2); ++i) {
    const Known* other = g.any([&](const Tensor& t) { return is_single(t) && t.dims() == a.sample.dims(); });
    node.add_input(i == 0 || other == nullptr ? a.name : other->name);
    (void)body.input("slice_" + std::to_string(i));
    axes.push_back(axis);
    directions.push_back(g.chance(0.3) ? 1 : 0);
  }
  for (std::size_t i = 0; i < 1 + g.pick(5); ++i) body.grow();
  for (std::size_t i = 0; i < states + stacked; ++i) body.output();
  body.give_to(node);
  set_attribute(node, "num_scan_inputs", static_cast<std::int64_t>(axes.size()));
  set_attribute(node, "scan_input_axes", axes);
  set_attribute(node, "scan_input_directions", directions);
  if (stacked > 0 && g.chance(0.4)) {
    set_attribute(node, "scan_output_axes",
                  std::vector<std::int64_t>(stacked, g.between(-1, rank_of(a.sample) - 1)));
    set_attribute(node, "scan_output_directions", std::vector<std::int64_t>(stacked, g.between(0, 1)));
  }
  (void)g.emit(node, static_cast<int>(states + stacked));
}

/// A known number of trips.
void loop(ModelGrower& g) {
  const Known* x = g.any(is_series);
  if (x == nullptr) return;
  const Known a = *x;
  const std::size_t states = 1 + g.pick(3), stacked = g.pick(2);
  Body body(g, a.sample.dims());
  onnx::NodeProto node = make_node("Loop", {g.weight(Tensor::scalar_i64(g.between(1, 5))), ""});
  set_value_info(*body.graph().add_input(), "trip", DType::i64, {});
  set_value_info(*body.graph().add_input(), "goes_on", DType::boolean, {});
  for (std::size_t i = 0; i < states; ++i) {
    const Known* other = g.any([&](const Tensor& t) { return is_single(t) && t.dims() == a.sample.dims(); });
    node.add_input(i == 0 || other == nullptr ? a.name : other->name);
    (void)body.input("state_" + std::to_string(i));
  }
  if (g.chance(0.4)) {
    onnx::NodeProto& number = *body.graph().add_node() = make_node("Cast", {"trip"});
    number.add_output("number");
    set_attribute(number, "to", std::int64_t{onnx::TensorProto::FLOAT});
    (void)body.read_later(body.node("Add", {body.any(), "number"}));
  }
  for (std::size_t i = 0; i < 1 + g.pick(4); ++i) body.grow();
  body.output(body.node("Identity", {"goes_on"}), DType::boolean, {});
  for (std::size_t i = 0; i < states + stacked; ++i) body.output();
  body.give_to(node);
  (void)g.emit(node, static_cast<int>(states + stacked));
}

constexpr Growth loop_table[] = {
    {"scan", 2, scan},
    {"loop", 1, loop},
};

}  // namespace

std::span<const Growth> loop_growths() {
  return loop_table;
}

}  // namespace sylvite::fuzz
