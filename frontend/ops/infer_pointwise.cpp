// Type rules of pointwise operations.

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "frontend/ops/infer.h"

namespace sylvite {
namespace {

/// The output type for broadcast inputs; keeps a blocked layout that an input of the full shape has.
TensorType broadcast_type(DType dtype, InputTypes inputs, Symbols& symbols) {
  TensorType result;
  result.dtype = dtype;
  for (const TensorType* input : inputs) result.shape = broadcast_shapes(result.shape, input->shape, symbols);
  for (const TensorType* input : inputs) {
    if (input->layout.channel_block > 0 && input->shape == result.shape) {
      result.layout = input->layout;
      break;
    }
  }
  return result;
}

void require(bool holds, const TensorType& type, std::string_view expected) {
  if (!holds) throw ModelError("got {}, expected {}", type.to_string(), expected);
}

bool is_integer(DType dtype) {
  return is_signed_integer(dtype) || is_unsigned_integer(dtype);
}

}  // namespace

Shape broadcast_shapes(const Shape& a, const Shape& b, Symbols& symbols) {
  const Shape& longer = a.size() >= b.size() ? a : b;
  const Shape& shorter = a.size() >= b.size() ? b : a;
  Shape result = longer;
  const std::size_t lead = longer.size() - shorter.size();
  for (std::size_t i = 0; i < shorter.size(); ++i) {
    Extent& target = result[lead + i];
    if (shorter[i] == 1) continue;
    if (target != 1 && !symbols.equal(target, shorter[i]))
      throw ModelError("shapes {} and {} do not broadcast", a.to_string(), b.to_string());
    if (target == 1 || shorter[i].is_known()) target = shorter[i];
  }
  return result;
}

bool broadcasts_to(const Shape& from, const Shape& to, Symbols& symbols) {
  if (from.size() > to.size()) return false;
  const std::size_t lead = to.size() - from.size();
  for (std::size_t i = 0; i < from.size(); ++i)
    if (from[i] != 1 && !symbols.equal(from[i], to[lead + i])) return false;
  return true;
}

bool is_given(InputTypes inputs, std::size_t i) {
  return i < inputs.size() && inputs[i] != nullptr;
}

void require_same_dtype(const TensorType& a, const TensorType& b, std::string_view what) {
  if (a.dtype != b.dtype) {
    throw ModelError("{} have element types {} and {}, expected one", what, dtype_name(a.dtype),
                     dtype_name(b.dtype));
  }
}

void require_parameter_dtype(const TensorType& x, const TensorType& parameter, std::string_view what) {
  const bool is_wider = x.dtype == DType::bf16 && parameter.dtype == DType::f32;
  if (!is_wider) require_same_dtype(x, parameter, what);
}

OutputTypes infer_real_unary(Op, InputTypes inputs, const Attributes& attributes, Symbols&) {
  require(is_float(inputs[0]->dtype), *inputs[0], "floats");
  if (attributes.has("approximate")) {
    const std::string& approximate = attributes.string("approximate");
    if (approximate != "none" && approximate != "tanh")
      throw ModelError("attribute approximate is '{}', expected 'none' or 'tanh'", approximate);
  }
  return {*inputs[0]};
}

OutputTypes infer_numeric_unary(Op, InputTypes inputs, const Attributes&, Symbols&) {
  require(is_number(inputs[0]->dtype), *inputs[0], "numbers");
  return {*inputs[0]};
}

OutputTypes infer_bitwise_unary(Op, InputTypes inputs, const Attributes&, Symbols&) {
  require(is_integer(inputs[0]->dtype), *inputs[0], "integers");
  return {*inputs[0]};
}

OutputTypes infer_logical_unary(Op, InputTypes inputs, const Attributes&, Symbols&) {
  require(inputs[0]->dtype == DType::boolean, *inputs[0], "booleans");
  return {*inputs[0]};
}

OutputTypes infer_classify(Op, InputTypes inputs, const Attributes&, Symbols&) {
  require(is_float(inputs[0]->dtype), *inputs[0], "floats");
  TensorType result = *inputs[0];
  result.dtype = DType::boolean;
  return {result};
}

OutputTypes infer_cast(Op, InputTypes inputs, const Attributes& attributes, Symbols&) {
  TensorType result = *inputs[0];
  result.dtype = parse_dtype(attributes.string("to"));
  return {result};
}

OutputTypes infer_bitcast(Op, InputTypes inputs, const Attributes& attributes, Symbols&) {
  TensorType result = *inputs[0];
  result.dtype = parse_dtype(attributes.string("to"));
  if (dtype_bits(result.dtype) != dtype_bits(inputs[0]->dtype))
    throw ModelError("the bits of {} do not make a {}", inputs[0]->to_string(), dtype_name(result.dtype));
  return {result};
}

OutputTypes infer_arithmetic(Op, InputTypes inputs, const Attributes&, Symbols& symbols) {
  const bool second_is_stored = inputs[1]->dtype == DType::bf16;
  const TensorType& stored = *inputs[second_is_stored ? 1 : 0];
  require_parameter_dtype(stored, *inputs[second_is_stored ? 0 : 1], "the operands");
  require(is_number(stored.dtype), stored, "numbers");
  return {broadcast_type(stored.dtype, inputs, symbols)};
}

OutputTypes infer_equality(Op, InputTypes inputs, const Attributes&, Symbols& symbols) {
  require_same_dtype(*inputs[0], *inputs[1], "the operands");
  return {broadcast_type(DType::boolean, inputs, symbols)};
}

OutputTypes infer_ordering(Op, InputTypes inputs, const Attributes&, Symbols& symbols) {
  require_same_dtype(*inputs[0], *inputs[1], "the operands");
  require(is_number(inputs[0]->dtype), *inputs[0], "numbers");
  return {broadcast_type(DType::boolean, inputs, symbols)};
}

OutputTypes infer_logical(Op, InputTypes inputs, const Attributes&, Symbols& symbols) {
  require(inputs[0]->dtype == DType::boolean, *inputs[0], "booleans");
  require(inputs[1]->dtype == DType::boolean, *inputs[1], "booleans");
  return {broadcast_type(DType::boolean, inputs, symbols)};
}

OutputTypes infer_bitwise(Op, InputTypes inputs, const Attributes&, Symbols& symbols) {
  require_same_dtype(*inputs[0], *inputs[1], "the operands");
  require(is_integer(inputs[0]->dtype), *inputs[0], "integers");
  return {broadcast_type(inputs[0]->dtype, inputs, symbols)};
}

OutputTypes infer_where(Op, InputTypes inputs, const Attributes&, Symbols& symbols) {
  require(inputs[0]->dtype == DType::boolean, *inputs[0], "a boolean condition");
  require_same_dtype(*inputs[1], *inputs[2], "the two choices");
  return {broadcast_type(inputs[1]->dtype, inputs, symbols)};
}

OutputTypes infer_round(Op op, InputTypes inputs, const Attributes& attributes, Symbols& symbols) {
  if (!is_given(inputs, 1)) {
    if (is_given(inputs, 2) || !attributes.string("to").empty())
      throw ModelError("a zero or a type without a scale");
    return infer_real_unary(op, inputs, attributes, symbols);
  }
  const DType to = parse_dtype(attributes.string("to"));
  if (!is_integer(to) || dtype_bits(to) < 8 || dtype_bits(to) > 16)
    throw ModelError("attribute to is '{}', expected i8, u8, i16 or u16", dtype_name(to));
  require(is_float(inputs[0]->dtype) && inputs[0]->dtype != DType::f64, *inputs[0],
          "floats of up to 32 bits");
  require(inputs[1]->dtype == DType::f32, *inputs[1], "scales of f32");
  if (is_given(inputs, 2)) require(inputs[2]->dtype == to, *inputs[2], "zeros of the type of the result");
  return {broadcast_type(to, inputs.first(is_given(inputs, 2) ? 3 : 2), symbols)};
}

OutputTypes infer_random_bits(Op, InputTypes inputs, const Attributes& attributes, Symbols& symbols) {
  const DType index = inputs[0]->dtype;
  require(index == DType::i64 || index == DType::i32, *inputs[0], "indices of i64 or i32");
  require(inputs[1]->dtype == DType::i64, *inputs[1], "seeds of i64");
  const std::int64_t stream = attributes.integer("stream");
  if (stream < 0 || stream > std::numeric_limits<std::uint32_t>::max())
    throw ModelError("attribute stream is {}, expected a number from 0 to 2^32 - 1", stream);
  return {broadcast_type(DType::u32, inputs, symbols)};
}

}  // namespace sylvite
