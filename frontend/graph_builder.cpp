#include "frontend/graph_builder.h"

#include <utility>

#include "base/error.h"

namespace sylvite {
namespace {

Attributes window_attributes(const WindowOptions& options, std::size_t rank) {
  const auto filled = [](const Dims& given, std::size_t size, std::int64_t filler) {
    return given.empty() ? Dims(size, filler) : given;
  };
  return {{"strides", filled(options.strides, rank, 1)},
          {"pads", filled(options.pads, 2 * rank, 0)},
          {"dilations", filled(options.dilations, rank, 1)}};
}

}  // namespace

const TensorType& Var::type() const {
  return builder->graph().type(id);
}

GraphBuilder::GraphBuilder(std::string name) {
  graph_.name = std::move(name);
}

Var GraphBuilder::input(const std::string& name, DType dtype, const Dims& dims) {
  return {this, graph_.add_input(name, make_type(dtype, dims))};
}

Var GraphBuilder::constant(Tensor tensor, const std::string& name) {
  return {this, graph_.add_constant(std::move(tensor), name)};
}

Var GraphBuilder::scalar(DType dtype, double value) {
  Tensor tensor(dtype, {});
  tensor.set_double(0, value);
  return constant(std::move(tensor));
}

Var GraphBuilder::iota(DType dtype, const Dims& shape, std::int64_t axis) {
  return apply(Op::iota, {}, {{"shape", shape}, {"axis", axis}, {"dtype", std::string(dtype_name(dtype))}});
}

void GraphBuilder::output(Var value, const std::string& name) {
  graph_.rename(value.id, name);
  graph_.outputs.push_back(value.id);
}

std::vector<Var> GraphBuilder::apply_all(Op op, const std::vector<Var>& inputs, Attributes attributes) {
  std::vector<ValueId> ids;
  for (const Var& input : inputs) {
    if (input.builder != nullptr && input.builder != this) {
      throw UsageError("{} of values of two graph builders", op_info(op).name);
    }
    ids.push_back(input.id);
  }
  std::vector<Var> outputs;
  for (ValueId id : graph_.add_node(op, std::move(ids), std::move(attributes))) outputs.push_back({this, id});
  return outputs;
}

Var GraphBuilder::apply(Op op, const std::vector<Var>& inputs, Attributes attributes) {
  return apply_all(op, inputs, std::move(attributes)).at(0);
}

Var apply(Op op, const std::vector<Var>& inputs, Attributes attributes) {
  if (inputs.empty() || inputs[0].builder == nullptr)
    throw UsageError("{} needs a first input", op_info(op).name);
  return inputs[0].builder->apply(op, inputs, std::move(attributes));
}

Var like(Var x, double value) {
  return x.builder->scalar(x.type().dtype, value);
}

Var operator+(Var a, Var b) {
  return apply(Op::add, {a, b});
}
Var operator-(Var a, Var b) {
  return apply(Op::sub, {a, b});
}
Var operator*(Var a, Var b) {
  return apply(Op::mul, {a, b});
}
Var operator/(Var a, Var b) {
  return apply(Op::div, {a, b});
}
Var operator+(Var a, double b) {
  return a + like(a, b);
}
Var operator-(Var a, double b) {
  return a - like(a, b);
}
Var operator*(Var a, double b) {
  return a * like(a, b);
}
Var operator/(Var a, double b) {
  return a / like(a, b);
}
Var operator+(double a, Var b) {
  return like(b, a) + b;
}
Var operator-(double a, Var b) {
  return like(b, a) - b;
}
Var operator*(double a, Var b) {
  return like(b, a) * b;
}
Var operator/(double a, Var b) {
  return like(b, a) / b;
}
Var operator-(Var x) {
  return apply(Op::neg, {x});
}

Var exp(Var x) {
  return apply(Op::exp, {x});
}
Var log(Var x) {
  return apply(Op::log, {x});
}
Var sqrt(Var x) {
  return apply(Op::sqrt, {x});
}
Var tanh(Var x) {
  return apply(Op::tanh, {x});
}
Var sigmoid(Var x) {
  return apply(Op::sigmoid, {x});
}
Var relu(Var x) {
  return apply(Op::relu, {x});
}
Var gelu(Var x) {
  return apply(Op::gelu, {x});
}
Var silu(Var x) {
  return apply(Op::silu, {x});
}
Var minimum(Var a, Var b) {
  return apply(Op::minimum, {a, b});
}
Var maximum(Var a, Var b) {
  return apply(Op::maximum, {a, b});
}
Var where(Var condition, Var a, Var b) {
  return apply(Op::where, {condition, a, b});
}
Var cast(Var x, DType dtype) {
  return apply(Op::cast, {x}, {{"to", std::string(dtype_name(dtype))}});
}

Var reshape(Var x, const Dims& shape) {
  return apply(Op::reshape, {x}, {{"shape", shape}});
}
Var transpose(Var x, const Dims& perm) {
  return apply(Op::transpose, {x}, {{"perm", perm}});
}
Var concat(const std::vector<Var>& inputs, std::int64_t axis) {
  return apply(Op::concat, inputs, {{"axis", axis}});
}
Var gather(Var x, Var indices, std::int64_t axis) {
  return apply(Op::gather, {x, indices}, {{"axis", axis}});
}

Var reduce(Op op, Var x, const Dims& axes, bool keepdims) {
  return apply(op, {x}, {{"axes", axes}, {"keepdims", std::int64_t{keepdims}}});
}

Var softmax(Var x, std::int64_t axis) {
  return apply(Op::softmax, {x}, {{"axis", axis}});
}

Var layer_norm(Var x, Var scale, Var bias, std::int64_t axis, double epsilon) {
  return apply(Op::layer_norm, {x, scale, bias}, {{"axis", axis}, {"epsilon", epsilon}});
}

Var matmul(Var a, Var b) {
  return apply(Op::matmul, {a, b});
}

Var attention(Var q, Var k, Var v, bool causal) {
  return apply(Op::attention, {q, k, v}, {{"causal", std::int64_t{causal}}});
}

Var conv(Var x, Var w, const WindowOptions& options, Var bias) {
  const std::size_t rank = x.dims().size();
  Attributes attributes = window_attributes(options, rank < 2 ? 0 : rank - 2);
  attributes.set("groups", options.groups);
  return apply(Op::conv, {x, w, bias}, std::move(attributes));
}

Var pool(Op op, Var x, const Dims& kernel, const WindowOptions& options) {
  Attributes attributes = window_attributes(options, kernel.size());
  attributes.set("kernel", kernel);
  return apply(op, {x}, std::move(attributes));
}

}  // namespace sylvite
