#include "frontend/quick/quick.h"

#include <algorithm>

#include "frontend/graph/evaluation_work.h"
#include "frontend/graph/interpreter.h"
#include "frontend/quick/request.h"
#include "frontend/values/storage.h"

namespace sylvite {
namespace {

struct EvaluatorRow {
  Op op;
  quick::Evaluator evaluate;
};

constexpr EvaluatorRow rows[] = {
    {Op::neg, quick::unary},           {Op::abs, quick::unary},
    {Op::floor, quick::unary},         {Op::ceil, quick::unary},
    {Op::round, quick::unary},         {Op::sqrt, quick::unary},
    {Op::rsqrt, quick::unary},         {Op::reciprocal, quick::unary},
    {Op::exp, quick::unary},           {Op::log, quick::unary},
    {Op::sin, quick::unary},           {Op::cos, quick::unary},
    {Op::tanh, quick::unary},          {Op::erf, quick::unary},
    {Op::sigmoid, quick::unary},       {Op::relu, quick::unary},
    {Op::gelu, quick::unary},          {Op::silu, quick::unary},
    {Op::hard_sigmoid, quick::unary},  {Op::hard_swish, quick::unary},
    {Op::softplus, quick::unary},      {Op::add, quick::binary},
    {Op::sub, quick::binary},          {Op::mul, quick::binary},
    {Op::div, quick::binary},          {Op::pow, quick::binary},
    {Op::minimum, quick::binary},      {Op::maximum, quick::binary},
    {Op::where, quick::where},         {Op::cast, quick::cast},
    {Op::reduce_sum, quick::reduce},   {Op::reduce_max, quick::reduce},
    {Op::reduce_min, quick::reduce},   {Op::reduce_prod, quick::reduce},
    {Op::softmax, quick::softmax},     {Op::layer_norm, quick::axis_norm},
    {Op::rms_norm, quick::axis_norm},  {Op::batch_norm, quick::batch_norm},
    {Op::matmul, quick::matmul},       {Op::conv, quick::conv},
    {Op::max_pool, quick::pool},       {Op::avg_pool, quick::pool},
    {Op::attention, quick::attention},
};

constexpr EvaluatorRow integer_rows[] = {
    {Op::cast, quick::cast},
    {Op::round, quick::round_to_steps},
    {Op::add, quick::binary_integers},
    {Op::sub, quick::binary_integers},
    {Op::mul, quick::binary_integers},
    {Op::minimum, quick::binary_integers},
    {Op::maximum, quick::binary_integers},
};

constexpr EvaluatorRow product_rows[] = {
    {Op::matmul, quick::matmul_integers},
    {Op::conv, quick::conv_integers},
};

const EvaluatorRow* find_among(std::span<const EvaluatorRow> among, Op op) {
  const auto found = std::ranges::find(among, op, &EvaluatorRow::op);
  return found == among.end() ? nullptr : &*found;
}

/// nullptr where the reference evaluates.
const EvaluatorRow* find_evaluator(Op op, ResultTypes types) {
  const DType first = types[0].dtype;
  const EvaluatorRow* product = first == DType::i32 ? find_among(product_rows, op) : nullptr;
  if (product != nullptr) return product;
  if (!is_float(first)) return find_among(integer_rows, op);
  if (!std::ranges::all_of(
          types, [](const TensorType& type) { return is_float(type.dtype) && type.dtype != DType::f64; }))
    return nullptr;
  return find_among(rows, op);
}

template <typename To, typename From>
Tensor converted(const Tensor& tensor, DType to) {
  Tensor result(to, tensor.dims());
  const std::span<const From> from = tensor.view<From>();
  const std::span<To> elements = result.mutable_view<To>();
  for (std::size_t i = 0; i < elements.size(); ++i) elements[i] = convert_element<To>(from[i]);
  return result;
}

Tensor widened(const Tensor& tensor) {
  return tensor.dtype() == DType::f16 ? converted<float, Half>(tensor, DType::f32)
                                      : converted<float, BFloat16>(tensor, DType::f32);
}

Tensor narrowed(const Tensor& tensor, DType dtype) {
  return dtype == DType::f16 ? converted<Half, float>(tensor, dtype)
                             : converted<BFloat16, float>(tensor, dtype);
}

/// Inputs and results of 16 bits by way of f32.
OutputTensors evaluate_row(const EvaluatorRow& row, Op op, InputTensors inputs, const Attributes& attributes,
                           ResultTypes types, int threads) {
  std::vector<Tensor> wide(inputs.size());
  std::vector<const Tensor*> given(inputs.begin(), inputs.end());
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (given[i] == nullptr || !is_half(given[i]->dtype())) continue;
    wide[i] = widened(*given[i]);
    given[i] = &wide[i];
  }
  OutputTensors results = row.evaluate({op, given, attributes, types, threads});
  for (std::size_t i = 0; i < results.size(); ++i)
    if (is_half(types[i].dtype)) results[i] = narrowed(results[i], types[i].dtype);
  return results;
}

}  // namespace

std::vector<Tensor> evaluate_quickly(Op op, InputTensors inputs, const Attributes& attributes,
                                     ResultTypes types, int threads) {
  const bool is_empty =
      std::ranges::all_of(types, [](const TensorType& type) { return type.element_count() == 0; });
  if (!is_empty && op == Op::loop) {
    const Graph& body = attributes.graph("body");
    return evaluate_loop(inputs, attributes, types, [&](const std::vector<Tensor>& given) {
      return interpret_quickly(body, given, threads);
    });
  }
  if (const EvaluatorRow* row = find_evaluator(op, types); row != nullptr && !is_empty)
    if (OutputTensors results = evaluate_row(*row, op, inputs, attributes, types, threads); !results.empty())
      return results;
  return evaluate_node(op, inputs, attributes, types);
}

std::vector<Tensor> interpret_quickly(const Graph& graph, const std::vector<Tensor>& inputs, int threads) {
  return interpret(graph, inputs,
                   [threads](Op op, InputTensors given, const Attributes& attributes, ResultTypes types) {
                     return evaluate_quickly(op, given, attributes, types, threads);
                   });
}

double quick_seconds(const Graph& graph) {
  constexpr double quick_rate = 2e10;  // steps a second
  constexpr double reference_rate = 3e8;
  double seconds = 0;
  for (const Node& node : graph.nodes()) {
    std::vector<TensorType> types;
    types.reserve(node.outputs.size());
    for (const ValueId output : node.outputs) types.push_back(graph.type(output));
    const auto work = static_cast<double>(evaluation_work(graph, node));
    if (node.op == Op::loop)
      seconds += quick_seconds(node.attributes.graph("body")) *
                 static_cast<double>(node.attributes.integer("trips"));
    else
      seconds += work / (find_evaluator(node.op, types) != nullptr ? quick_rate : reference_rate);
  }
  return seconds;
}

}  // namespace sylvite
