// Softmax and normalisations, with the statistics that gradients read.

#include <algorithm>

#include "frontend/build/normalization.h"
#include "frontend/torch/open_sizes.h"
#include "frontend/torch/torch_ops.h"

namespace sylvite {
namespace {

template <Op op>
Sym softmax_along(TorchContext& c, std::string_view axis_name) {
  const Sym x = c.operand("self", c.result_dtype());
  const std::int64_t given = c.integer(axis_name);
  if (x.rank() == 0) return reshape(c.builder().add(op, {reshape(x, {1})}, {{"axis", std::int64_t{0}}}), {});
  return c.builder().add(op, {x}, {{"axis", std::int64_t{normalize_axis(given, x.rank())}}});
}

template <Op op>
void soft_max(TorchContext& c) {
  c.ignore("half_to_float");
  c.output(softmax_along<op>(c, "dim"));
}

void safe_soft_max(TorchContext& c) {
  c.ignore("dtype");
  const Sym x = c.operand("self", c.result_dtype());
  c.output(safe_softmax(x, normalize_axis(c.integer("dim"), x.rank())));
}

DType wide_type(DType dtype) {
  return is_half(dtype) ? DType::f32 : dtype;
}

/// By statistics, each of which leaves its axes with extent 1. Scale and bias may be absent.
Sym scaled_and_biased(Sym value, Sym scale, Sym bias) {
  if (scale) value = value * cast(scale, value.dtype());
  return bias ? value + cast(bias, value.dtype()) : value;
}

/// The mean and the inverse deviation cost nothing where nothing reads them.
void layer_norm_op(TorchContext& c) {
  const Sym x = c.tensor("input");
  const auto count = static_cast<int>(c.integers("normalized_shape").size());
  if (count > x.rank()) throw ModelError("{} axes are normalised of {}", count, x.rank());
  const int axis = x.rank() - count;
  const double epsilon = c.real("eps");
  const Sym scale = c.optional("weight");
  const Sym bias = c.optional("bias");
  const Sym wide = cast(x, wide_type(x.dtype()));
  const Standardized s = standardize(wide, axes_from(axis, x.rank()), epsilon);
  const bool is_core = scale && scale.dtype() == x.dtype() && (!bias || bias.dtype() == x.dtype());
  const Sym value = is_core ? layer_norm(x, scale, bias, axis, epsilon)
                            : cast(scaled_and_biased(s.value, scale, bias), x.dtype());
  c.outputs({value, cast(s.mean, c.result_dtype(1)), cast(s.inverse_deviation, c.result_dtype(2))});
}

void group_norm_op(TorchContext& c) {
  const Sym x = c.tensor("input");
  for (const std::string_view name : {"N", "C", "HxW"}) c.ignore(name);
  const std::int64_t groups = c.integer("group");
  const double epsilon = c.real("eps");
  const Sym scale = c.optional("weight");
  const Sym bias = c.optional("bias");
  const Dims dims = x.dims();
  if (x.rank() < 2 || groups < 1 || dims[1] % groups != 0 || x.size() == 0)
    throw ModelError("{} groups do not fit {}", groups, make_type(x.dtype(), dims).to_string());
  const Sym wide = cast(x, wide_type(x.dtype()));
  const Standardized s =
      standardize(reshape(wide, {dims[0], groups, x.size() / dims[0] / groups}), {2}, epsilon);
  const auto channels = [&](Sym vector) { return vector ? per_channel(vector, x.rank()) : Sym(); };
  c.outputs({cast(scaled_and_biased(reshape(s.value, dims), channels(scale), channels(bias)), x.dtype()),
             cast(reshape(s.mean, {dims[0], groups}), c.result_dtype(1)),
             cast(reshape(s.inverse_deviation, {dims[0], groups}), c.result_dtype(2))});
}

void fused_rms_norm(TorchContext& c) {
  const Sym x = c.tensor("input");
  const auto count = static_cast<int>(c.integers("normalized_shape").size());
  if (count > x.rank()) throw ModelError("{} axes are normalised of {}", count, x.rank());
  const Sym wide = cast(x, wide_type(x.dtype()));
  const Sym mean = reduce_mean(wide * wide, axes_from(x.rank() - count, x.rank()));
  const double fallback = x.dtype() == DType::f64 ? 2.220446049250313e-16 : 1.1920928955078125e-07;
  const Sym inverse = apply(Op::rsqrt, mean + c.real("eps", fallback));
  c.outputs({cast(scaled_and_biased(wide * inverse, c.optional("weight"), {}), x.dtype()),
             cast(inverse, c.result_dtype(1))});
}

/// Ones or zeros for what is absent.
Sym channel_values(TorchContext& c, std::string_view name, DType dtype, std::int64_t channels,
                   double fallback) {
  const Sym given = c.optional(name);
  return given ? cast(given, dtype) : c.builder().filled(dtype, {channels}, fallback);
}

/// Torch saves the running statistics on GPUs, and none on CPUs.
Sym saved_statistics(TorchContext& c, std::size_t i, Sym value) {
  if (c.result_dims(i) == Dims{0}) return c.builder().filled(c.result_dtype(i), {0}, 0);
  return cast(value, c.result_dtype(i));
}

/// By the running statistics.
void batch_norm_inference(TorchContext& c) {
  const Sym x = c.tensor("input");
  if (x.rank() < 2) throw ModelError("the input has rank {}, expected at least 2", x.rank());
  c.ignore("momentum");
  const std::int64_t channels = x.dim(1);
  const DType wide = wide_type(x.dtype());
  const double epsilon = c.real("eps");
  const Sym mean = cast(c.tensor("running_mean"), wide);
  const Sym variance = cast(c.tensor("running_var"), wide);
  const Sym value = c.builder().add(Op::batch_norm,
                                    {cast(x, wide), channel_values(c, "weight", wide, channels, 1),
                                     channel_values(c, "bias", wide, channels, 0), mean, variance},
                                    {{"epsilon", epsilon}});
  c.outputs({cast(value, x.dtype()), saved_statistics(c, 1, mean),
             saved_statistics(c, 2, apply(Op::rsqrt, variance + epsilon))});
}

struct BatchStatistics {
  Sym value, mean, variance, inverse;
  std::int64_t count;
};

BatchStatistics normalize_batch(TorchContext& c, Sym x) {
  if (x.rank() < 2 || x.size() == 0)
    throw ModelError("a batch of shape [{}] has no statistics", fmt::join(x.dims(), ","));
  std::vector<std::int64_t> axes = all_axes(x.rank());
  axes.erase(axes.begin() + 1);
  const Sym wide = cast(x, wide_type(x.dtype()));
  const Sym mean = mean_along(c, "input", wide, axes);
  const Sym centered = wide - mean;
  const Sym variance = mean_along(c, "input", centered * centered, axes);
  const Sym inverse = apply(Op::rsqrt, variance + c.real("eps"));
  const auto channels = [&](std::string_view name) {
    const Sym vector = c.optional(name);
    return vector ? per_channel(vector, x.rank()) : Sym();
  };
  const Sym value =
      cast(scaled_and_biased(centered * inverse, channels("weight"), channels("bias")), x.dtype());
  const Dims flat{x.dim(1)};
  return {value, reshape(mean, flat), reshape(variance, flat), reshape(inverse, flat), x.size() / x.dim(1)};
}

/// By the statistics of the batch, which are saved.
void batch_norm_without_statistics(TorchContext& c) {
  c.ignore("momentum");
  if (!c.flag("training")) throw UnsupportedError("without running statistics it is by those of the batch");
  const BatchStatistics s = normalize_batch(c, c.tensor("input"));
  c.outputs({s.value, cast(s.mean, c.result_dtype(1)), cast(s.inverse, c.result_dtype(2))});
}

/// The same, and running statistics that move towards them.
void batch_norm_functional(TorchContext& c) {
  if (!c.flag("training")) {
    batch_norm_inference(c);
    std::vector<Sym> results(c.results().begin(), c.results().begin() + 3);
    results.push_back(c.tensor("running_mean"));
    results.push_back(c.tensor("running_var"));
    return c.outputs(std::move(results));
  }
  const BatchStatistics s = normalize_batch(c, c.tensor("input"));
  const double momentum = c.real("momentum");
  const double unbiased =
      static_cast<double>(s.count) / static_cast<double>(std::max<std::int64_t>(s.count - 1, 1));
  const auto moved = [&](std::string_view name, Sym now) {
    const Sym running = c.tensor(name);
    return running * (1 - momentum) + cast(now, running.dtype()) * momentum;
  };
  c.outputs({s.value, cast(s.mean, c.result_dtype(1)), cast(s.inverse, c.result_dtype(2)),
             moved("running_mean", s.mean), moved("running_var", s.variance * unbiased)});
}

/// Of w = v g / |v|, whose norms are over all axes but `dim`: the gradients of v and of g.
void weight_norm_backward(TorchContext& c) {
  const Sym v = c.tensor("saved_v"), g = c.tensor("saved_g");
  const DType wide = wide_type(v.dtype());
  const Sym grad = cast(c.tensor("grad_w"), wide), wide_v = cast(v, wide);
  const Sym norms = cast(c.tensor("saved_norms"), wide);
  const int dim = normalize_axis(c.integer("dim", 0), v.rank());
  std::vector<std::int64_t> axes = all_axes(v.rank());
  axes.erase(axes.begin() + dim);
  const Sym along = reduce(Op::reduce_sum, grad * wide_v, axes) / norms;
  const Sym across = (grad - wide_v * (along / norms)) * (cast(g, wide) / norms);
  c.outputs({cast(across, v.dtype()), reshape(cast(along, g.dtype()), g.dims())});
}

constexpr std::string_view batch_schema = "input weight bias running_mean running_var momentum eps";
constexpr std::string_view batch_training_schema =
    "input weight bias running_mean running_var training momentum eps";

const TorchOp normalization_rows[] = {
    {"aten._fused_rms_norm.default", "input normalized_shape weight eps", fused_rms_norm},
    {"aten._log_softmax.default", "self dim half_to_float", soft_max<Op::log_softmax>},
    {"aten._native_batch_norm_legit.no_stats", "input weight bias training momentum eps",
     batch_norm_without_statistics},
    {"aten._native_batch_norm_legit_functional.default", batch_training_schema, batch_norm_functional},
    {"aten._native_batch_norm_legit_no_training.default", batch_schema, batch_norm_inference},
    {"aten._safe_softmax.default", "self dim dtype", safe_soft_max},
    {"aten._softmax.default", "self dim half_to_float", soft_max<Op::softmax>},
    {"aten._weight_norm_interface_backward.default", "grad_w saved_v saved_g saved_norms dim",
     weight_norm_backward},
    {"aten.native_group_norm.default", "input weight bias N C HxW group eps", group_norm_op},
    {"aten.native_layer_norm.default", "input normalized_shape weight bias eps", layer_norm_op},
};

}  // namespace

std::span<const TorchOp> torch_normalization_ops() {
  return normalization_rows;
}

}  // namespace sylvite
