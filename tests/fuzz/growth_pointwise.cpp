// Growths that work element by element, with broadcasting.

#include "frontend/onnx/tensor.h"
#include "tests/fuzz/growth_values.h"

namespace sylvite::fuzz {
namespace {

void unary_real(ModelGrower& g) {
  const Known* x = g.any(is_real);
  if (x == nullptr) return;
  static const std::vector<std::string> anywhere = {
      "Relu", "Sigmoid",  "Tanh",     "Neg",       "Abs",  "Exp",   "Erf",   "Sin",        "Cos",
      "Atan", "Softplus", "Softsign", "HardSwish", "Mish", "Sqrt",  "Log",   "Reciprocal", "Asin",
      "Acos", "Asinh",    "Sinh",     "Cosh",      "Tan",  "Acosh", "Atanh", "Identity"};
  static const std::vector<std::string> rounding = {"Floor", "Ceil", "Round", "Sign"};
  (void)g.emit(make_node(
      g.chance(0.85) ? anywhere[g.pick(anywhere.size())] : rounding[g.pick(rounding.size())], {x->name}));
}

void unary_with_attributes(ModelGrower& g) {
  const Known* x = g.any(is_real);
  if (x == nullptr) return;
  const Tensor a = x->sample;
  const auto op = g.one_of<const char*>(
      {"Elu", "Celu", "LeakyRelu", "HardSigmoid", "Selu", "ThresholdedRelu", "Shrink", "Gelu", "Clip"});
  onnx::NodeProto node = make_node(op, {x->name});
  const std::string name = op;
  if (name == "Gelu") {
    if (g.chance(0.5)) set_attribute(node, "approximate", std::string("tanh"));
  } else if (name == "Shrink") {
    set_attribute(node, "lambd", 0.5);
    set_attribute(node, "bias", 0.25);
  } else if (name == "Clip") {
    node.add_input(g.chance(0.2) ? "" : g.weight(scalar_like(a, -0.75)));
    if (g.chance(0.8)) node.add_input(g.weight(scalar_like(a, 1.25)));
  } else if (g.chance(0.5)) {
    set_attribute(node, "alpha", 0.3);
  }
  (void)g.emit(node);
}

void unary_integer(ModelGrower& g) {
  const Known* x = g.any(is_integer);
  if (x == nullptr) return;
  if (is_unsigned_integer(x->sample.dtype()))
    (void)g.emit(make_node(g.one_of<const char*>({"BitwiseNot", "Identity"}), {x->name}));
  else
    (void)g.emit(make_node(g.one_of<const char*>({"Neg", "Abs", "Sign", "BitwiseNot"}), {x->name}));
}

/// The other operand: a value of the same shape, a value that broadcasts, or a new tensor.
std::string partner_of(ModelGrower& g, const Known& x) {
  const auto fits = [&](const Tensor& other) {
    if (other.dtype() != x.sample.dtype()) return false;
    const Dims& a = x.sample.dims();
    const Dims& b = other.dims();
    for (std::size_t i = 1; i <= std::min(a.size(), b.size()); ++i) {
      const std::int64_t mine = a[a.size() - i];
      const std::int64_t theirs = b[b.size() - i];
      if (mine != theirs && mine != 1 && theirs != 1) return false;
    }
    return true;
  };
  if (g.chance(0.5)) {
    const Known* other = g.any(fits);
    if (other != nullptr) return other->name;
  }
  return g.operand(g.random_tensor(x.sample.dtype(), g.broadcast_partner(x.sample.dims())));
}

void emit_binary(ModelGrower& g, const char* op, const std::string& a, const std::string& b) {
  (void)g.emit(g.chance(0.5) ? make_node(op, {a, b}) : make_node(op, {b, a}));
}

void binary(ModelGrower& g) {
  const Known* x = g.any(is_number);
  if (x == nullptr) return;
  const Known a = *x;
  const bool is_small = dtype_size(a.sample.dtype()) < 4 && !is_real(a.sample);
  const auto op = is_small ? g.one_of<const char*>({"Max", "Min"})
                           : g.one_of<const char*>({"Add", "Sub", "Mul", "Max", "Min", "Add", "Mul"});
  emit_binary(g, op, a.name, partner_of(g, a));
}

/// Divisors, bases and exponents that give finite results.
void division(ModelGrower& g) {
  const Known* x = g.any(is_number);
  if (x == nullptr) return;
  const Known a = *x;
  Tensor divisor = g.random_tensor(a.sample.dtype(), g.broadcast_partner(a.sample.dims()));
  for (std::int64_t i = 0; i < divisor.size(); ++i) {
    if (is_real(divisor)) {
      const double value = divisor.as_double(i);
      divisor.set_double(i, value + (value < 0 ? -0.5 : 0.5));
    } else if (divisor.as_int64(i) == 0) {
      divisor.set_int64(i, 3);
    }
  }
  onnx::NodeProto node =
      make_node(g.one_of<const char*>({"Div", "Div", "Mod"}), {a.name, g.operand(divisor)});
  if (node.op_type() == "Mod" && (is_real(a.sample) || g.chance(0.5)))
    set_attribute(node, "fmod", std::int64_t{1});
  (void)g.emit(node);
}

void power(ModelGrower& g) {
  const Known* x = g.any([](const Tensor& t) { return is_real(t) && lies_within(t, 0.01, 10); });
  if (x != nullptr && g.chance(0.7)) {
    const Known a = *x;
    (void)g.emit(make_node(
        "Pow", {a.name, g.operand(g.random_tensor(a.sample.dtype(), g.broadcast_partner(a.sample.dims())))}));
    return;
  }
  x = g.any(is_real);
  if (x == nullptr) return;
  const Known a = *x;
  const double exponent = g.one_of({2.0, 3.0, 1.0, 0.0});
  (void)g.emit(make_node("Pow", {a.name, g.weight(scalar_like(a.sample, exponent))}));
}

void variadic(ModelGrower& g) {
  const Known* x = g.any(is_real);
  if (x == nullptr) return;
  const Known a = *x;
  onnx::NodeProto node = make_node(g.one_of<const char*>({"Sum", "Max", "Min", "Mean"}), {a.name});
  const std::size_t more = g.pick(4);
  for (std::size_t i = 0; i < more; ++i) node.add_input(partner_of(g, a));
  (void)g.emit(node);
}

void comparison(ModelGrower& g) {
  const Known* x = g.any(is_number);
  if (x == nullptr) return;
  const Known a = *x;
  emit_binary(g, g.one_of<const char*>({"Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual"}), a.name,
              partner_of(g, a));
}

void logic(ModelGrower& g) {
  const Known* x = g.any(is_boolean);
  if (x == nullptr) return;
  const Known a = *x;
  if (g.chance(0.25))
    (void)g.emit(make_node("Not", {a.name}));
  else
    emit_binary(g, g.one_of<const char*>({"And", "Or", "Xor", "Equal"}), a.name, partner_of(g, a));
}

void bits(ModelGrower& g) {
  const Known* x = g.any(is_integer);
  if (x == nullptr) return;
  const Known a = *x;
  if (is_unsigned_integer(a.sample.dtype()) && g.chance(0.5)) {
    onnx::NodeProto node = make_node(
        "BitShift", {a.name, g.operand(random_integers(g, a.sample.dtype(),
                                                       g.broadcast_partner(a.sample.dims()), 0, 7))});
    set_attribute(node, "direction", std::string(g.chance(0.5) ? "LEFT" : "RIGHT"));
    (void)g.emit(node);
    return;
  }
  emit_binary(g, g.one_of<const char*>({"BitwiseAnd", "BitwiseOr", "BitwiseXor"}), a.name, partner_of(g, a));
}

void where(ModelGrower& g) {
  const Known* x = g.any(is_anything);
  if (x == nullptr) return;
  const Known a = *x;
  const Known* c = g.any([&](const Tensor& t) { return is_boolean(t) && t.dims() == a.sample.dims(); });
  const std::string condition =
      c != nullptr ? c->name
                   : g.operand(g.random_tensor(DType::boolean, g.broadcast_partner(a.sample.dims())));
  const std::string b = partner_of(g, a);
  (void)g.emit(g.chance(0.5) ? make_node("Where", {condition, a.name, b})
                             : make_node("Where", {condition, b, a.name}));
}

/// To an element type that can hold every element.
void cast(ModelGrower& g) {
  const Known* x = g.any(is_anything);
  if (x == nullptr) return;
  const auto to = g.one_of({DType::f32, DType::f32, DType::f32, DType::f16, DType::f64, DType::i64,
                            DType::i32, DType::i8, DType::u8, DType::i16, DType::u32, DType::boolean});
  if (is_real(x->sample) && !is_float(to)) {
    const bool is_unsigned = !is_signed_integer(to);
    if (!lies_within(x->sample, is_unsigned ? 0 : -120, 120)) return;
  }
  onnx::NodeProto node = make_node("Cast", {x->name});
  set_attribute(node, "to", static_cast<std::int64_t>(onnx_of_dtype(to)));
  (void)g.emit(node);
}

void classify(ModelGrower& g) {
  const Known* x = g.any(is_real);
  if (x != nullptr) (void)g.emit(make_node(g.one_of<const char*>({"IsNaN", "IsInf"}), {x->name}));
}

void prelu(ModelGrower& g) {
  const Known* x = g.any(is_real);
  if (x == nullptr) return;
  const Known a = *x;
  (void)g.emit(
      make_node("PRelu", {a.name, g.weight(a.sample.dtype(), g.broadcast_partner(a.sample.dims()))}));
}

/// Formulas that the passes recognise.
void written_out_activation(ModelGrower& g) {
  const Known* x = g.any(is_real);
  if (x == nullptr) return;
  const std::string name = x->name;
  const Tensor sample = x->sample;
  const auto step = [&](const char* op, const std::vector<std::string>& inputs) {
    const auto out = g.emit(make_node(op, inputs));
    return out.empty() ? name : out[0];
  };
  const auto number = [&](double value) { return g.weight(scalar_like(sample, value)); };
  if (g.chance(0.5)) {
    const std::string inner = step("Erf", {step("Div", {name, number(std::sqrt(2.0))})});
    (void)step("Mul", {step("Mul", {name, step("Add", {inner, number(1)})}), number(0.5)});
  } else {
    (void)step("Mul", {name, step("Sigmoid", {name})});
  }
}

constexpr Growth pointwise_table[] = {
    {"unary_real", 12, unary_real},
    {"unary_with_attributes", 5, unary_with_attributes},
    {"unary_integer", 2, unary_integer},
    {"binary", 14, binary},
    {"division", 4, division},
    {"power", 2, power},
    {"variadic", 3, variadic},
    {"comparison", 3, comparison},
    {"logic", 2, logic},
    {"bits", 2, bits},
    {"where", 3, where},
    {"cast", 5, cast},
    {"classify", 1, classify},
    {"prelu", 1, prelu},
    {"written_out_activation", 3, written_out_activation},
};

}  // namespace

std::span<const Growth> pointwise_growths() {
  return pointwise_table;
}

}  // namespace sylvite::fuzz
