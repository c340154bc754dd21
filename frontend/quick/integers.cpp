// Elements of integers: conversions, numbers that are rounded to steps, sums and products that wrap around.

#include "frontend/quick/integers.h"

#include <cmath>
#include <type_traits>

#include "frontend/quick/broadcast.h"
#include "frontend/quick/request.h"
#include "frontend/quick/share.h"
#include "frontend/values/storage.h"

namespace sylvite::quick {
namespace {

/// Calls visit with a zero of the type, if it is one that models compute with; -> whether it is.
template <typename Visit>
bool with_common(DType dtype, const Visit& visit) {
  switch (dtype) {
    case DType::f32:
      visit(float{});
      return true;
    case DType::boolean:
      visit(bool{});
      return true;
    case DType::i8:
      visit(std::int8_t{});
      return true;
    case DType::u8:
      visit(std::uint8_t{});
      return true;
    case DType::i16:
      visit(std::int16_t{});
      return true;
    case DType::u16:
      visit(std::uint16_t{});
      return true;
    case DType::i32:
      visit(std::int32_t{});
      return true;
    case DType::i64:
      visit(std::int64_t{});
      return true;
    default:
      return false;
  }
}

/// Integers of these in which sums and products wrap around.
template <typename T>
using Wrapping = std::conditional_t<(sizeof(T) > 4), std::uint64_t, std::uint32_t>;

template <typename T>
T combined(Op op, T a, T b) {
  using W = Wrapping<T>;
  switch (op) {
    case Op::add:
      return static_cast<T>(static_cast<W>(a) + static_cast<W>(b));
    case Op::sub:
      return static_cast<T>(static_cast<W>(a) - static_cast<W>(b));
    case Op::mul:
      return static_cast<T>(static_cast<W>(a) * static_cast<W>(b));
    case Op::minimum:
      return a < b ? a : b;
    default:
      return a > b ? a : b;
  }
}

template <Op op, typename T>
Tensor combine(const Request& request) {
  Tensor result(request.types[0].dtype, request.types[0].dims());
  const Rows rows = rows_of(result.dims(), request.inputs);
  const T* a = request.inputs[0]->view<T>().data();
  const T* b = request.inputs[1]->view<T>().data();
  T* to = result.mutable_view<T>().data();
  const bool both = moves(rows, 0) && moves(rows, 1);
  const std::int64_t steps[] = {rows.strides[0].back(), rows.strides[1].back()};
  for_rows(rows, 1, request.threads, [&](std::int64_t at, const Offsets& offsets, std::int64_t count) {
    const T* left = a + offsets[0];
    const T* right = b + offsets[1];
    if (both)
      for (std::int64_t i = 0; i < count; ++i) to[at + i] = combined(op, left[i], right[i]);
    else
      for (std::int64_t i = 0; i < count; ++i)
        to[at + i] = combined(op, left[i * steps[0]], right[i * steps[1]]);
  });
  return result;
}

template <typename T>
Tensor combine(const Request& request) {
  switch (request.op) {
    case Op::add:
      return combine<Op::add, T>(request);
    case Op::sub:
      return combine<Op::sub, T>(request);
    case Op::mul:
      return combine<Op::mul, T>(request);
    case Op::minimum:
      return combine<Op::minimum, T>(request);
    default:
      return combine<Op::maximum, T>(request);
  }
}

/// The least and the largest step. Variables: of constants compilers make branches, and no vectors.
struct Steps {
  explicit Steps(DType dtype)
      : low(is_unsigned_integer(dtype) ? 0 : -std::ldexp(1.0F, dtype_bits(dtype) - 1)),
        high(low + std::ldexp(1.0F, dtype_bits(dtype)) - 1) {}
  float low = 0;
  float high = 0;
};

/// NaN becomes the least step.
float quantized(float x, float scale, float zero, Steps steps) {
  constexpr float to_integer = 12582912;  // 1.5 * 2^23: up to 2^22, sums with it are rounded to integers
  const float sum = ((x / scale + to_integer) - to_integer) + zero;
  const float above = sum > steps.low ? sum : steps.low;
  return above < steps.high ? above : steps.high;
}

template <typename T>
Tensor quantize(const Request& request, const Tensor& zeros) {
  Tensor result(request.types[0].dtype, request.types[0].dims());
  const Tensor* const operands[] = {request.inputs[0], request.inputs[1], &zeros};
  const Rows rows = rows_of(result.dims(), operands);
  T* to = result.mutable_view<T>().data();
  const Steps range(result.dtype());
  const auto to_step = [range](float number, float scale, float zero) {
    return static_cast<T>(static_cast<std::int32_t>(quantized(number, scale, zero, range)));
  };
  const bool is_plain = moves(rows, 0) && !moves(rows, 1) && !moves(rows, 2);
  const std::int64_t steps[] = {rows.strides[0].back(), rows.strides[1].back(), rows.strides[2].back()};
  for_rows(rows, 2, request.threads, [&](std::int64_t at, const Offsets& offsets, std::int64_t count) {
    const float* x = request.data(0) + offsets[0];
    const float* scale = request.data(1) + offsets[1];
    const float* zero = zeros.view<float>().data() + offsets[2];
    const float one_scale = *scale;  // the compiler does not know that bytes of the result are not of these
    const float one_zero = *zero;
    if (is_plain)
      for (std::int64_t i = 0; i < count; ++i) to[at + i] = to_step(x[i], one_scale, one_zero);
    else
      for (std::int64_t i = 0; i < count; ++i)
        to[at + i] = to_step(x[i * steps[0]], scale[i * steps[1]], zero[i * steps[2]]);
  });
  return result;
}

OutputTensors unless_empty(Tensor tensor) {
  if (tensor.size() == 0) return {};
  return {std::move(tensor)};
}

}  // namespace

Tensor converted(const Tensor& input, DType dtype, int threads) {
  Tensor result;
  with_common(dtype, [&](auto to_zero) {
    with_common(input.dtype(), [&](auto from_zero) {
      using To = decltype(to_zero);
      using From = decltype(from_zero);
      result = Tensor(dtype, input.dims());
      const From* from = input.view<From>().data();
      To* to = result.mutable_view<To>().data();
      share_elements(input.size(), 1, threads, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) to[i] = convert_element<To>(from[i]);
      });
    });
  });
  return result;
}

OutputTensors cast(const Request& request) {
  return unless_empty(converted(*request.inputs[0], request.types[0].dtype, request.threads));
}

OutputTensors round_to_steps(const Request& request) {
  const Tensor* scale = optional_input(request.inputs, 1);
  if (scale == nullptr || scale->dtype() != DType::f32 || request.inputs[0]->dtype() != DType::f32) return {};
  const DType dtype = request.types[0].dtype;
  const Tensor* zero = optional_input(request.inputs, 2);
  if (zero != nullptr && zero->dtype() != dtype) return {};
  const Tensor zeros =
      zero == nullptr ? Tensor::scalar_f32(0) : converted(*zero, DType::f32, request.threads);
  switch (dtype) {
    case DType::i8:
      return {quantize<std::int8_t>(request, zeros)};
    case DType::u8:
      return {quantize<std::uint8_t>(request, zeros)};
    case DType::i16:
      return {quantize<std::int16_t>(request, zeros)};
    case DType::u16:
      return {quantize<std::uint16_t>(request, zeros)};
    default:
      return {};
  }
}

OutputTensors binary_integers(const Request& request) {
  Tensor result;
  with_common(request.types[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) result = combine<T>(request);
  });
  return unless_empty(std::move(result));
}

}  // namespace sylvite::quick
