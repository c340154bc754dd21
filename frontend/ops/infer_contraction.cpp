// Type rules of contractions and windows.

#include "base/error.h"
#include "frontend/ops/infer.h"
#include "frontend/values/row_quantization.h"

namespace sylvite {
namespace {

/// Dims before the last two.
Shape leading(const Shape& shape) {
  return {shape.begin(), shape.end() - 2};
}

const Extent& from_end(const Shape& shape, std::size_t i) {
  return shape[shape.size() - i];
}

/// `batch`: extents of the scores before rows and keys.
void require_mask_fits(const TensorType& mask, const TensorType& q, const TensorType& k, const Shape& batch,
                       Symbols& symbols) {
  if (mask.dtype != DType::boolean) require_same_dtype(q, mask, "q and the mask");
  Shape scores = batch;
  scores.push_back(from_end(q.shape, 2));
  scores.push_back(from_end(k.shape, 2));
  if (!broadcasts_to(mask.shape, scores, symbols))
    throw ModelError("mask {} does not broadcast to the scores of {} and {}", mask.to_string(), q.to_string(),
                     k.to_string());
}

/// Products of u8 or i16 by i8, and of i16 by i16, are added up in i32.
bool are_steps(const TensorType& a, const TensorType& b) {
  if (b.dtype == DType::i8) return a.dtype == DType::u8 || a.dtype == DType::i16;
  return a.dtype == DType::i16 && b.dtype == DType::i16;
}

/// Of attention's sums: f32 for each row.
TensorType type_of_sums(const TensorType& q, const TensorType& k, Symbols& symbols) {
  if (!is_float(q.dtype)) throw ModelError("got {}, expected floats", q.to_string());
  require_same_dtype(q, k, "q and k");
  if (q.rank() < 2 || k.rank() != q.rank() || leading(q.shape) != leading(k.shape) ||
      !symbols.equal(from_end(q.shape, 1), from_end(k.shape, 1)))
    throw ModelError("q {} and k {} do not fit", q.to_string(), k.to_string());
  TensorType result{DType::f32, leading(q.shape), {}};
  result.shape.push_back(from_end(q.shape, 2));
  return result;
}

/// Extents of the spatial dims of a window operation's output.
Shape window_extents(const Shape& spatial, const Dims& kernel, const Attributes& attributes,
                     Symbols& symbols) {
  const std::size_t rank = spatial.size();
  const auto& strides = checked_list(attributes, "strides", rank, 1, extent_limit);
  const auto& dilations = checked_list(attributes, "dilations", rank, 1, extent_limit);
  const std::vector<Extent> pads = checked_extents(attributes, "pads", 2 * rank, 0, extent_limit);
  Shape result;
  for (std::size_t i = 0; i < rank; ++i) {
    if (spatial[i].constant() > extent_limit || kernel[i] < 1 || kernel[i] > extent_limit)
      throw ModelError("a window of {} over {} is out of range", kernel[i], spatial[i].to_string());
    const std::int64_t window = (kernel[i] - 1) * dilations[i] + 1;
    const Extent padded = spatial[i] + pads[i] + pads[rank + i];
    if (!symbols.at_least(padded, window))
      throw ModelError("a window of {} is larger than the padded extent {}", window, padded.to_string());
    result.push_back(floor_div(padded - window, strides[i]) + 1);
  }
  return result;
}

Shape spatial_dims(const TensorType& type) {
  return {type.shape.begin() + 2, type.shape.end()};
}

void require_spatial_rank(const TensorType& type) {
  if (type.rank() < 3 || type.rank() > 5)
    throw ModelError("{} needs N, C and 1 to 3 spatial dims", type.to_string());
}

}  // namespace

OutputTypes infer_matmul(Op, InputTypes inputs, const Attributes&, Symbols& symbols) {
  const TensorType& a = *inputs[0];
  const TensorType& b = *inputs[1];
  const bool has_steps = are_steps(a, b);
  // store_narrow keeps rows wide beside weights of bf16.
  if (!has_steps && (a.dtype != DType::f32 || b.dtype != DType::bf16))
    require_same_dtype(a, b, "the operands");
  if (!is_number(a.dtype)) throw ModelError("matmul of {}", dtype_name(a.dtype));
  if (a.rank() < 2 || b.rank() < 2 || !symbols.equal(from_end(a.shape, 1), from_end(b.shape, 2)))
    throw ModelError("{} and {} do not multiply", a.to_string(), b.to_string());
  TensorType result{
      has_steps ? DType::i32 : a.dtype, broadcast_shapes(leading(a.shape), leading(b.shape), symbols), {}};
  result.shape.push_back(from_end(a.shape, 2));
  result.shape.push_back(from_end(b.shape, 1));
  return {result};
}

OutputTypes infer_quantized_matmul(Op, InputTypes inputs, const Attributes&, Symbols& symbols) {
  const TensorType& a = *inputs[0];
  const TensorType& b = *inputs[1];
  bool fits = (a.dtype == DType::f32 || a.dtype == DType::bf16) && b.dtype == DType::i8 && a.rank() >= 2 &&
              b.rank() == 2 && symbols.equal(from_end(a.shape, 1), from_end(b.shape, 2)) &&
              inputs[2]->dtype == DType::f32 && inputs[3]->dtype == DType::i32;
  for (const TensorType* column : {inputs[2], inputs[3]})
    fits = fits && column->rank() == 1 && column->shape[0] == from_end(b.shape, 1);
  if (!fits) {
    throw ModelError(
        "quantized_matmul takes f32 or bf16[..., m, k], i8[k, n], f32[n] and i32[n], not {}, {}, {} and {}",
        a.to_string(), b.to_string(), inputs[2]->to_string(), inputs[3]->to_string());
  }
  if (b.dims()[0] > longest_quantized_fold) {
    throw ModelError("quantized_matmul adds {} products, at most {} fit 32 bits", b.dims()[0],
                     longest_quantized_fold);
  }
  TensorType result{a.dtype, a.shape, {}};
  result.shape.back() = from_end(b.shape, 1);
  return {result};
}

OutputTypes infer_matmul_bits(Op op, InputTypes inputs, const Attributes& attributes, Symbols&) {
  const TensorType& a = *inputs[0];
  const TensorType& b = *inputs[1];
  const std::int64_t bits = attributes.integer("bits");
  const std::int64_t block = attributes.integer("block");
  if (bits != 2 && bits != 4 && bits != 8) throw ModelError("bits are {}, expected 2, 4 or 8", bits);
  if (block < 16 || block > extent_limit || (block & (block - 1)) != 0)
    throw ModelError("the block is {}, expected a power of two from 16", block);
  const auto is_real = [](const TensorType& type) {
    return type.dtype == DType::f32 || type.dtype == DType::f16 || type.dtype == DType::bf16;
  };
  const TensorType& scales = *inputs[2];
  bool fits = is_real(a) && is_real(scales) && b.dtype == DType::u8 && a.rank() >= 2 && b.rank() == 3 &&
              b.shape.is_known() && a.shape.back().is_known() && scales.rank() == 2 &&
              b.shape[1] == (a.shape.back().known() + block - 1) / block && b.shape[2] == block * bits / 8 &&
              scales.shape[0] == b.shape[0] && scales.shape[1] == b.shape[1];
  if (inputs.size() > 3 && inputs[3] != nullptr)
    fits = fits && (is_real(*inputs[3]) || inputs[3]->dtype == DType::u8) && inputs[3]->shape == scales.shape;
  if (!fits) {
    throw ModelError(
        "{} with blocks of {} numbers of {} bits takes floats[..., m, k], u8[n, blocks, bytes], and scales "
        "and "
        "zeros of [n, blocks], not {}, {} and {}",
        op_info(op).name, block, bits, a.to_string(), b.to_string(), scales.to_string());
  }
  TensorType result{a.dtype, a.shape, {}};
  result.shape.back() = b.shape[0];
  return {result};
}

bool multiplies_by_channel(const TensorType& filters, const Attributes& attributes) {
  return attributes.integer("groups") > 1 && filters.rank() > 1 && filters.dims()[1] == 1;
}

OutputTypes infer_conv(Op, InputTypes inputs, const Attributes& attributes, Symbols& symbols) {
  const TensorType& x = *inputs[0];
  const TensorType& w = *inputs[1];
  require_spatial_rank(x);
  if (!is_number(x.dtype)) throw ModelError("convolution of {}", dtype_name(x.dtype));
  const std::int64_t groups = attributes.integer("groups");
  const Dims filter = w.dims();
  const bool has_steps = are_steps(x, w);
  const auto require = multiplies_by_channel(w, attributes) ? require_parameter_dtype : require_same_dtype;
  if (!has_steps) require(x, w, "the input and the weights");
  if (w.rank() != x.rank() || groups < 1 || groups > extent_limit || filter[1] > extent_limit ||
      !symbols.equal(x.shape[1], filter[1] * groups) || filter[0] % groups != 0) {
    throw ModelError("weights {} in {} groups do not fit {}", w.to_string(), groups, x.to_string());
  }
  if (is_given(inputs, 2)) {
    require_parameter_dtype(x, *inputs[2], "the input and the bias");
    if (inputs[2]->shape != Shape{w.shape[0]})
      throw ModelError("bias {} does not fit weights {}", inputs[2]->to_string(), w.to_string());
  }
  if (has_steps && is_given(inputs, 2)) throw ModelError("a convolution of integers has a bias");
  TensorType result{has_steps ? DType::i32 : x.dtype, {x.shape[0], w.shape[0]}, x.layout};
  for (const Extent& extent : window_extents(spatial_dims(x), spatial_dims(w).known(), attributes, symbols))
    result.shape.push_back(extent);
  return {result};
}

OutputTypes infer_max_pool_gradient(Op, InputTypes inputs, const Attributes& attributes, Symbols& symbols) {
  const TensorType &gradient = *inputs[0], &x = *inputs[1];
  require_same_dtype(gradient, x, "the gradient and the input");
  if (x.rank() != 4 || !is_float(x.dtype)) throw ModelError("the gradient of a pooling of {}", x.to_string());
  const Dims& kernel = checked_list(attributes, "kernel", 2, 1, extent_limit);
  Shape wanted = {x.shape[0], x.shape[1]};
  for (const Extent& extent : window_extents(spatial_dims(x), kernel, attributes, symbols))
    wanted.push_back(extent);
  if (!symbols.equal(gradient.shape, wanted))
    throw ModelError("a gradient {} does not fit the input {}", gradient.to_string(), x.to_string());
  return {x};
}

OutputTypes infer_filter_gradient(Op, InputTypes inputs, const Attributes& attributes, Symbols& symbols) {
  const TensorType& gradient = *inputs[0];
  const TensorType& x = *inputs[1];
  require_spatial_rank(x);
  require_same_dtype(gradient, x, "the gradient and the input");
  if (!is_float(x.dtype)) throw ModelError("a gradient of {}", dtype_name(x.dtype));
  const auto rank = static_cast<std::size_t>(x.rank()) - 2;
  const Dims& kernel = checked_list(attributes, "kernel", rank, 1, extent_limit);
  const std::int64_t groups = attributes.integer("groups"), parts = attributes.integer("parts");
  const bool fits = gradient.rank() == x.rank() && gradient.shape[0] == x.shape[0] && groups >= 1 &&
                    parts >= 1 && gradient.shape[1].known() % groups == 0 && x.shape[1].known() % groups == 0;
  Shape wanted = {gradient.shape[0], gradient.shape[1]};
  for (const Extent& extent : window_extents(spatial_dims(x), kernel, attributes, symbols))
    wanted.push_back(extent);
  if (!fits || !symbols.equal(gradient.shape, wanted))
    throw ModelError("a gradient {} does not fit the input {}, {} groups and {} parts", gradient.to_string(),
                     x.to_string(), groups, parts);
  const DType sums = dtype_size(x.dtype) < dtype_size(DType::f32) ? DType::f32 : x.dtype;
  const bool is_joined = attributes.integer("joined") != 0;
  if (is_joined && groups != 1) throw ModelError("the taps of {} groups are joined", groups);
  const std::int64_t taps = checked_product(kernel, "window"), side_by_side = is_joined ? kernel.back() : 1;
  return {TensorType{
      sums, {parts, taps / side_by_side, gradient.shape[1], x.shape[1].known() / groups * side_by_side}, {}}};
}

OutputTypes infer_pool(Op op, InputTypes inputs, const Attributes& attributes, Symbols& symbols) {
  const TensorType& x = *inputs[0];
  require_spatial_rank(x);
  if (!is_number(x.dtype) || (op == Op::avg_pool && !is_float(x.dtype)))
    throw ModelError("cannot pool {}", x.to_string());
  const auto& kernel =
      checked_list(attributes, "kernel", static_cast<std::size_t>(x.rank()) - 2, 1, extent_limit);
  TensorType result{x.dtype, {x.shape[0], x.shape[1]}, x.layout};
  for (const Extent& extent : window_extents(spatial_dims(x), kernel, attributes, symbols))
    result.shape.push_back(extent);
  return {result};
}

OutputTypes infer_attention(Op, InputTypes inputs, const Attributes&, Symbols& symbols) {
  const TensorType& q = *inputs[0];
  const TensorType& k = *inputs[1];
  const TensorType& v = *inputs[2];
  if (!is_float(q.dtype)) throw ModelError("got {}, expected floats", q.to_string());
  require_same_dtype(q, k, "q and k");
  require_same_dtype(q, v, "q and v");
  if (q.rank() < 2 || k.rank() < 2 || v.rank() < 2 ||
      !symbols.equal(from_end(q.shape, 1), from_end(k.shape, 1)) ||
      !symbols.equal(from_end(k.shape, 2), from_end(v.shape, 2))) {
    throw ModelError("q {}, k {} and v {} do not fit", q.to_string(), k.to_string(), v.to_string());
  }
  TensorType result{q.dtype, broadcast_shapes(leading(q.shape), leading(k.shape), symbols), {}};
  result.shape = broadcast_shapes(result.shape, leading(v.shape), symbols);
  if (is_given(inputs, 3)) require_mask_fits(*inputs[3], q, k, result.shape, symbols);
  result.shape.push_back(from_end(q.shape, 2));
  result.shape.push_back(from_end(v.shape, 1));
  return {result};
}

OutputTypes infer_attention_sums(Op, InputTypes inputs, const Attributes&, Symbols& symbols) {
  const TensorType &q = *inputs[0], &k = *inputs[1];
  const TensorType result = type_of_sums(q, k, symbols);
  if (is_given(inputs, 2)) require_mask_fits(*inputs[2], q, k, leading(q.shape), symbols);
  return {result};
}

OutputTypes infer_attention_gradient(Op, InputTypes inputs, const Attributes& attributes, Symbols& symbols) {
  const TensorType &q = *inputs[0], &k = *inputs[1];
  const TensorType rows = type_of_sums(q, k, symbols);
  const auto lies_as = [&](std::size_t i, const TensorType& wanted) {
    return inputs[i]->dtype == wanted.dtype && inputs[i]->shape == wanted.shape;
  };
  if (!lies_as(2, k) || !lies_as(3, q) || !lies_as(4, rows) || !lies_as(5, rows))
    throw ModelError("v {}, the gradient {}, sums {} and products {} do not fit q {} and k {}",
                     inputs[2]->to_string(), inputs[3]->to_string(), inputs[4]->to_string(),
                     inputs[5]->to_string(), q.to_string(), k.to_string());
  if (is_given(inputs, 6)) require_mask_fits(*inputs[6], q, k, leading(q.shape), symbols);
  const std::int64_t of = attributes.integer("of");
  if (of < 0 || of > 2) throw ModelError("'of' is {}, expected 0 to 2", of);
  return {TensorType{q.dtype, of == 0 ? q.shape : k.shape, {}}};
}

}  // namespace sylvite
