// Pointwise operations: rows of elements, which operands with fewer of them repeat.

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "frontend/quick/broadcast.h"
#include "frontend/quick/functions.h"
#include "frontend/quick/request.h"
#include "frontend/quick/share.h"
#include "frontend/quick/vectors.h"

namespace sylvite::quick {
namespace {

template <typename Function>
struct Row {
  Op op;
  Function function;
  double steps;  ///< of an element, roughly
};

template <typename Function, std::size_t count>
const Row<Function>* find_row(const Row<Function> (&rows)[count], Op op) {
  const auto* found = std::ranges::find(rows, op, &Row<Function>::op);
  return found == std::end(rows) ? nullptr : found;
}

using UnaryRow = void (*)(const float* x, float* to, std::int64_t count);

template <auto function>
void map_row(const float* x, float* to, std::int64_t count) {
  in_vectors([=] {
    for (std::int64_t i = 0; i < count; ++i) to[i] = function(x[i]);
  });
}

constexpr double vectors = 1;   // compilers make vectors of it
constexpr double series = 4;    // the same, of some tens of instructions
constexpr double scalars = 20;  // a call for each element

float clamp01(float x) {
  return x < 0 ? 0 : (x > 1 ? 1 : x);
}  // NaN stays

float gelu_tanh(float x) {
  return 0.5F * x * (1 + tanh_of(0.797884561F * (x + 0.044715F * x * x * x)));
}

constexpr Row<UnaryRow> unary_rows[] = {
    {Op::neg, map_row<[](float x) { return -x; }>, vectors},
    {Op::abs, map_row<[](float x) { return std::fabs(x); }>, vectors},
    {Op::floor, map_row<[](float x) { return std::floor(x); }>, scalars},
    {Op::ceil, map_row<[](float x) { return std::ceil(x); }>, scalars},
    {Op::round, map_row<[](float x) { return std::nearbyint(x); }>, scalars},
    {Op::sqrt, map_row<[](float x) { return std::sqrt(x); }>, series},
    {Op::rsqrt, map_row<[](float x) { return 1 / std::sqrt(x); }>, series},
    {Op::reciprocal, map_row<[](float x) { return 1 / x; }>, vectors},
    {Op::exp, map_row<exp_of>, series},
    {Op::log, map_row<[](float x) { return std::log(x); }>, scalars},
    {Op::sin, map_row<[](float x) { return std::sin(x); }>, scalars},
    {Op::cos, map_row<[](float x) { return std::cos(x); }>, scalars},
    {Op::tanh, map_row<tanh_of>, series},
    {Op::erf, map_row<erf_of>, series},
    {Op::sigmoid, map_row<sigmoid_of>, series},
    {Op::relu, map_row<[](float x) { return x < 0 ? 0 : x; }>, vectors},
    {Op::gelu, map_row<[](float x) { return 0.5F * x * (1 + erf_of(x * 0.707106781F)); }>, series},
    {Op::silu, map_row<[](float x) { return x / (1 + exp_of(-x)); }>, series},
    {Op::hard_swish, map_row<[](float x) { return x * clamp01(x / 6 + 0.5F); }>, vectors},
    {Op::softplus, map_row<[](float x) { return std::fmax(x, 0.0F) + std::log1p(exp_of(-std::fabs(x))); }>,
     scalars},
};
constexpr Row<UnaryRow> gelu_tanh_row = {Op::gelu, map_row<gelu_tanh>, series};

/// An operand moves along a row, or repeats its first element.
using BinaryRow = void (*)(const float* a, bool a_moves, const float* b, bool b_moves, float* to,
                           std::int64_t count);

template <auto function>
void combine_row(const float* a, bool a_moves, const float* b, bool b_moves, float* to, std::int64_t count) {
  if (a_moves && b_moves)
    for (std::int64_t i = 0; i < count; ++i) to[i] = function(a[i], b[i]);
  else if (a_moves)
    for (std::int64_t i = 0; i < count; ++i) to[i] = function(a[i], *b);
  else if (b_moves)
    for (std::int64_t i = 0; i < count; ++i) to[i] = function(*a, b[i]);
  else
    std::fill_n(to, count, function(*a, *b));
}

constexpr Row<BinaryRow> binary_rows[] = {
    {Op::add, combine_row<[](float a, float b) { return a + b; }>, vectors},
    {Op::sub, combine_row<[](float a, float b) { return a - b; }>, vectors},
    {Op::mul, combine_row<[](float a, float b) { return a * b; }>, vectors},
    {Op::div, combine_row<[](float a, float b) { return a / b; }>, vectors},
    {Op::pow, combine_row<[](float a, float b) { return b == 2 ? a * a : std::pow(a, b); }>, scalars},
    {Op::minimum, combine_row<smaller>, vectors},
    {Op::maximum, combine_row<larger>, vectors},
};

}  // namespace

OutputTensors unary(const Request& request) {
  const Tensor& input = *request.inputs[0];
  Tensor result(DType::f32, input.dims());
  const float* from = request.data(0);
  float* to = result.mutable_view<float>().data();
  if (request.op == Op::hard_sigmoid) {
    const auto alpha = static_cast<float>(request.attributes.real("alpha"));
    const auto beta = static_cast<float>(request.attributes.real("beta"));
    share_elements(input.size(), vectors, request.threads, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) to[i] = clamp01(alpha * from[i] + beta);
    });
    return {result};
  }
  const bool by_tanh = request.op == Op::gelu && request.attributes.string("approximate") == "tanh";
  const Row<UnaryRow>* row = by_tanh ? &gelu_tanh_row : find_row(unary_rows, request.op);
  if (row == nullptr) return {};
  share_elements(input.size(), row->steps, request.threads, [&](std::int64_t begin, std::int64_t end) {
    row->function(from + begin, to + begin, end - begin);
  });
  return {result};
}

OutputTensors binary(const Request& request) {
  const Row<BinaryRow>* row = find_row(binary_rows, request.op);
  if (row == nullptr) return {};
  Tensor result(DType::f32, request.types[0].dims());
  const Rows rows = rows_of(result.dims(), request.inputs);
  float* to = result.mutable_view<float>().data();
  for_rows(rows, row->steps, request.threads,
           [&](std::int64_t at, const Offsets& offsets, std::int64_t count) {
             row->function(request.data(0) + offsets[0], moves(rows, 0), request.data(1) + offsets[1],
                           moves(rows, 1), to + at, count);
           });
  return {result};
}

OutputTensors where(const Request& request) {
  Tensor result(DType::f32, request.types[0].dims());
  const Rows rows = rows_of(result.dims(), request.inputs);
  const bool* condition = request.inputs[0]->view<bool>().data();
  float* to = result.mutable_view<float>().data();
  const std::int64_t steps[] = {rows.strides[0].back(), rows.strides[1].back(), rows.strides[2].back()};
  for_rows(rows, vectors, request.threads, [&](std::int64_t at, const Offsets& offsets, std::int64_t count) {
    const bool* chooses = condition + offsets[0];
    const float* yes = request.data(1) + offsets[1];
    const float* no = request.data(2) + offsets[2];
    for (std::int64_t i = 0; i < count; ++i)
      to[at + i] = chooses[i * steps[0]] ? yes[i * steps[1]] : no[i * steps[2]];
  });
  return {result};
}

}  // namespace sylvite::quick
