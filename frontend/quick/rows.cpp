// Folds over axes, softmax and normalisations.

#include <cmath>

#include "frontend/quick/functions.h"
#include "frontend/quick/request.h"
#include "frontend/quick/share.h"
#include "frontend/quick/vectors.h"

namespace sylvite::quick {
namespace {

/// Dims seen from neighbouring axes that are folded together: those before them, theirs, those behind.
std::optional<AxisView> view_folded(const Dims& dims, const std::vector<std::int64_t>& axes) {
  if (axes.empty() || axes.back() - axes.front() + 1 != static_cast<std::int64_t>(axes.size()))
    return std::nullopt;
  AxisView view = view_axis(dims, axes.front());
  for (const std::int64_t axis : axes) {
    if (axis == axes.front()) continue;
    view.extent *= dims[static_cast<std::size_t>(axis)];
    view.inner /= dims[static_cast<std::size_t>(axis)];
  }
  return view;
}

/// Of `inner` columns, `extent` rows.
template <typename Combine>
void fold_columns(const float* from, float* to, const AxisView& view, float start, const Combine& combine) {
  std::fill_n(to, view.inner, start);
  for (std::int64_t i = 0; i < view.extent; ++i)
    for (std::int64_t j = 0; j < view.inner; ++j) to[j] = combine(to[j], from[i * view.inner + j]);
}

template <typename Combine>
void fold(const float* from, float* to, const AxisView& view, float start, const Combine& combine) {
  if (view.inner == 1)
    *to = fold_row(from, view.extent, start, combine, combine);
  else
    fold_columns(from, to, view, start, combine);
}

void fold_sum(const float* from, float* to, const AxisView& view) {
  if (view.inner == 1)
    *to = static_cast<float>(sum_row(from, view.extent, [](float x) { return x; }));
  else
    fold_columns(from, to, view, 0, [](float a, float b) { return a + b; });
}

void fold_one(Op op, const float* from, float* to, const AxisView& view) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  switch (op) {
    case Op::reduce_max:
      return fold(from, to, view, -infinity, larger);
    case Op::reduce_min:
      return fold(from, to, view, infinity, smaller);
    case Op::reduce_prod:
      return fold(from, to, view, 1, [](float a, float b) { return a * b; });
    default:
      return fold_sum(from, to, view);
  }
}

/// (x - mean)/sqrt(variance + epsilon) of a row, the mean being 0 for rms_norm.
void normalise(const float* from, float* to, std::int64_t count, bool centre, double epsilon) {
  const double mean =
      centre ? sum_row(from, count, [](float x) { return x; }) / static_cast<double>(count) : 0;
  const auto middle = static_cast<float>(mean);
  const double squares = sum_row(from, count, [=](float x) { return (x - middle) * (x - middle); });
  const auto scale = static_cast<float>(1 / std::sqrt(squares / static_cast<double>(count) + epsilon));
  for (std::int64_t i = 0; i < count; ++i) to[i] = (from[i] - middle) * scale;
}

/// The optional input repeated to dims; no tensor without it.
Tensor parameter(const Request& request, std::size_t input, const Dims& dims) {
  const Tensor* given = optional_input(request.inputs, input);
  return given == nullptr ? Tensor() : expand(*given, dims);
}

}  // namespace

OutputTensors reduce(const Request& request) {
  const std::optional<AxisView> view =
      view_folded(request.inputs[0]->dims(), request.attributes.integers("axes"));
  if (!view) return {};
  Tensor result(DType::f32, request.types[0].dims());
  const float* from = request.data(0);
  float* to = result.mutable_view<float>().data();
  share_out(
      view->outer, static_cast<double>(request.inputs[0]->size()), request.threads, [&](std::int64_t outer) {
        in_vectors([=, &request, &view] {
          fold_one(request.op, from + outer * view->extent * view->inner, to + outer * view->inner, *view);
        });
      });
  return {result};
}

OutputTensors softmax(const Request& request) {
  const Tensor& input = *request.inputs[0];
  const AxisView view = view_axis(input.dims(), request.attributes.integer("axis"));
  if (view.inner != 1) return {};
  Tensor result(DType::f32, input.dims());
  const float* from = request.data(0);
  float* to = result.mutable_view<float>().data();
  share_out(view.outer, static_cast<double>(input.size()) * 8, request.threads, [&](std::int64_t row) {
    in_vectors([=] { softmax_row(from + row * view.extent, to + row * view.extent, view.extent); });
  });
  return {result};
}

OutputTensors axis_norm(const Request& request) {
  const Tensor& input = *request.inputs[0];
  const Dims dims(input.dims().begin() + request.attributes.integer("axis"), input.dims().end());
  const std::int64_t count = checked_product(dims, "normalised dims");
  const Tensor scale = parameter(request, 1, dims);
  const Tensor bias = parameter(request, 2, dims);
  const double epsilon = request.attributes.real("epsilon");
  Tensor result(DType::f32, input.dims());
  const float* from = request.data(0);
  float* to = result.mutable_view<float>().data();
  share_out(input.size() / count, static_cast<double>(input.size()) * 4, request.threads,
            [&](std::int64_t at) {
              float* row = to + at * count;
              in_vectors([=, &request] {
                normalise(from + at * count, row, count, request.op == Op::layer_norm, epsilon);
              });
              if (scale.size() > 0)
                for (std::int64_t i = 0; i < count; ++i)
                  row[i] *= scale.view<float>()[static_cast<std::size_t>(i)];
              if (bias.size() > 0)
                for (std::int64_t i = 0; i < count; ++i)
                  row[i] += bias.view<float>()[static_cast<std::size_t>(i)];
            });
  return {result};
}

OutputTensors batch_norm(const Request& request) {
  const Tensor& input = *request.inputs[0];
  const AxisView view = view_axis(input.dims(), 1);
  const double epsilon = request.attributes.real("epsilon");
  Tensor result(DType::f32, input.dims());
  const float* from = request.data(0);
  float* to = result.mutable_view<float>().data();
  share_out(
      view.outer * view.extent, static_cast<double>(input.size()), request.threads, [&](std::int64_t row) {
        const std::int64_t channel = row % view.extent;
        const auto factor =
            static_cast<float>(request.data(1)[channel] / std::sqrt(request.data(4)[channel] + epsilon));
        const float mean = request.data(3)[channel];
        const float bias = request.data(2)[channel];
        for (std::int64_t i = row * view.inner; i < (row + 1) * view.inner; ++i)
          to[i] = (from[i] - mean) * factor + bias;
      });
  return {result};
}

}  // namespace sylvite::quick
