// Operations on complex numbers, by real and imaginary parts.

#include <algorithm>
#include <cmath>
#include <set>

#include "frontend/build/fourier.h"
#include "frontend/build/polar.h"
#include "frontend/torch/torch_complex.h"
#include "frontend/torch/torch_ops.h"

namespace sylvite {
namespace {

struct ComplexOp {
  std::string_view name;
  std::string_view schema;  ///< empty: that of the operation's row for real numbers
  void (*import)(ComplexContext&);
};

/// As the row for real numbers does it, of the real parts and of the imaginary ones.
void each_part(ComplexContext& c) {
  c.row(c.re);
  c.row(c.im);
  for (std::size_t i = 0; i < c.re.results().size(); ++i)
    c.results.push_back({c.re.results()[i], c.im.results()[i]});
}

/// Of real numbers that are given as such.
void real_part(ComplexContext& c) {
  c.row(c.re);
  const Sym re = c.re.results()[0];
  c.output({re, re.builder().filled(re.dtype(), re.dims(), 0)});
}

/// Numbers beside tensors are real. `factor`: of the right operand.
void add_or_subtract(ComplexContext& c, double factor) {
  const bool has_left = c.re.is_tensor("self"), has_right = c.re.is_tensor("other");
  if (has_left && has_right) return each_part(c);
  c.row(c.re);
  if (has_left) return c.output({c.re.results()[0], c.im.tensor("self")});
  const DType dtype = c.re.result_dtype();
  c.output({c.re.results()[0], cast(c.im.tensor("other"), dtype) * factor * c.re.real("alpha", 1)});
}
void add(ComplexContext& c) {
  add_or_subtract(c, 1);
}
void subtract(ComplexContext& c) {
  add_or_subtract(c, -1);
}

/// A tensor, whose imaginary part is absent where it is real, or a number.
Complex operand(ComplexContext& c, std::string_view name, DType dtype) {
  return {c.re.operand(name, dtype), c.is_complex(name) ? c.im.operand(name, dtype) : Sym()};
}

Complex operand(ComplexContext& c, std::string_view name) {
  return operand(c, name, c.re.result_dtype());
}

void multiply_complex(ComplexContext& c) {
  c.output(times(operand(c, "self"), operand(c, "other")));
}
void divide_complex(ComplexContext& c) {
  c.output(over(operand(c, "self"), operand(c, "other")));
}
void reciprocal(ComplexContext& c) {
  const Complex x = c.value("self");
  const Sym one = x.re.builder().filled(x.re.dtype(), x.re.dims(), 1);
  c.output(over({one, one * 0.0}, x));
}

void product_complex(ComplexContext& c) {
  const Complex a = c.value("self"), b = c.value("mat2");
  c.output({matmul(a.re, b.re) - matmul(a.im, b.im), matmul(a.re, b.im) + matmul(a.im, b.re)});
}

void exponential(ComplexContext& c) {
  const Complex x = c.value("self");
  const Sym length = apply(Op::exp, x.re);
  c.output({length * apply(Op::cos, x.im), length * apply(Op::sin, x.im)});
}

void pad_zeros(ComplexContext& c) {
  if (c.re.real("value", 0) != 0) throw UnsupportedError("padding with other numbers than 0 is not served");
  each_part(c);
}

Sym of(Op op, Sym x) {
  return apply(op, x);
}

void logarithm(ComplexContext& c) {
  const Complex x = c.value("self");
  c.output({of(Op::log, hypotenuse(x.re, x.im)), angle_of(x.re, x.im)});
}

/// The root with a real part that is not negative; half of a sum of two that are not, so that no digits are lost.
Complex root(Complex x) {
  const Sym half = of(Op::sqrt, (hypotenuse(x.re, x.im) + of(Op::abs, x.re)) * 0.5);
  const Sym other = where(apply(Op::greater, half, 0.0), of(Op::abs, x.im) / (half * 2.0), half);
  const Sym is_right = apply(Op::greater_equal, x.re, 0.0);
  const Sym height = where(is_right, other, half);
  return {where(is_right, half, other), where(apply(Op::less, x.im, 0.0), -height, height)};
}
void square_root(ComplexContext& c) {
  c.output(root(c.value("self")));
}
void reciprocal_root(ComplexContext& c) {
  const Complex x = root(c.value("self"));
  const Sym one = x.re.builder().filled(x.re.dtype(), x.re.dims(), 1);
  c.output(over({one, one * 0.0}, x));
}

void sine(ComplexContext& c) {
  const Complex x = c.value("self");
  c.output({of(Op::sin, x.re) * of(Op::cosh, x.im), of(Op::cos, x.re) * of(Op::sinh, x.im)});
}
void cosine(ComplexContext& c) {
  const Complex x = c.value("self");
  c.output({of(Op::cos, x.re) * of(Op::cosh, x.im), -(of(Op::sin, x.re) * of(Op::sinh, x.im))});
}
void hyperbolic_sine(ComplexContext& c) {
  const Complex x = c.value("self");
  c.output({of(Op::sinh, x.re) * of(Op::cos, x.im), of(Op::cosh, x.re) * of(Op::sin, x.im)});
}
void hyperbolic_cosine(ComplexContext& c) {
  const Complex x = c.value("self");
  c.output({of(Op::cosh, x.re) * of(Op::cos, x.im), of(Op::sinh, x.re) * of(Op::sin, x.im)});
}
/// Beyond 20 the real part is 1 or -1, and squares would leave the range of numbers.
void hyperbolic_tangent(ComplexContext& c) {
  const Complex x = c.value("self");
  const Sym near = apply(Op::minimum, apply(Op::maximum, x.re, -20.0), 20.0);
  const Sym rise = of(Op::sinh, near), turn = of(Op::cos, x.im);
  const Sym divisor = rise * rise + turn * turn;
  c.output({rise * of(Op::cosh, near) / divisor, of(Op::sin, x.im) * turn / divisor});
}

/// By the logarithm; whole powers that are small by products.
void power_complex(ComplexContext& c) {
  const Complex x = c.value("self");
  const double exponent = c.re.real("exponent");
  if (exponent == 2) return c.output(times(x, x));
  if (exponent == 3) return c.output(times(times(x, x), x));
  const Sym length = apply(Op::pow, hypotenuse(x.re, x.im), exponent);
  const Sym turn = angle_of(x.re, x.im) * exponent;
  c.output({length * of(Op::cos, turn), length * of(Op::sin, turn)});
}

Sym are_equal(ComplexContext& c) {
  const DType dtype = c.re.tensor(c.is_complex("self") ? "self" : "other").dtype();
  const Complex a = operand(c, "self", dtype), b = operand(c, "other", dtype);
  const auto is_same = [](Sym x, Sym y) { return apply(Op::equal, x, y); };
  const Sym zero = a.re.builder().filled(a.re.dtype(), {}, 0);
  return apply(Op::logical_and, is_same(a.re, b.re), is_same(a.im ? a.im : zero, b.im ? b.im : zero));
}
void equal(ComplexContext& c) {
  c.output({are_equal(c), Sym()});
}
void not_equal_complex(ComplexContext& c) {
  c.output({of(Op::logical_not, are_equal(c)), Sym()});
}

/// To real numbers: their real parts; to truths: are they not zero?
void convert_complex(ComplexContext& c) {
  if (c.gives_complex) return each_part(c);
  const Complex x = c.value("self");
  c.row(c.re);
  if (c.re.result_dtype() != DType::boolean) return c.output({c.re.results()[0], Sym()});
  const auto is_set = [](Sym part) { return apply(Op::logical_not, apply(Op::equal, part, 0.0)); };
  c.output({apply(Op::logical_or, is_set(x.re), is_set(x.im)), Sym()});
}

void conjugate(ComplexContext& c) {
  const Complex x = c.value("self");
  c.output({x.re, -x.im});
}

Sym paired(Complex x) {
  return concat({unsqueeze(x.re, {-1}), unsqueeze(x.im, {-1})}, x.re.rank());
}
Complex parted(Sym pairs) {
  return {squeeze(slice(pairs, -1, 0, 1), {-1}), squeeze(slice(pairs, -1, 1, 2), {-1})};
}

void view_as_real(ComplexContext& c) {
  c.output({paired(c.value("self")), Sym()});
}
void view_as_complex(ComplexContext& c) {
  c.output(parted(c.re.tensor("self")));
}

void absolute(ComplexContext& c) {
  const Complex x = c.value("self");
  c.output({hypotenuse(x.re, x.im), Sym()});
}
void angle(ComplexContext& c) {
  const Complex x = c.value("self");
  c.output({angle_of(x.re, x.im), Sym()});
}
void polar(ComplexContext& c) {
  const Sym length = c.re.tensor("abs"), turn = c.re.tensor("angle");
  c.output({length * apply(Op::cos, turn), length * apply(Op::sin, turn)});
}
void compose(ComplexContext& c) {
  const Dims dims = c.re.result_dims();
  c.output({broadcast_to(c.re.tensor("real"), dims), broadcast_to(c.re.tensor("imag"), dims)});
}

// Fourier transforms

/// What torch's number for a way of scaling makes of a sum over so many elements.
double scale_of(ComplexContext& c, double elements) {
  switch (c.re.integer("normalization")) {
    case 0:
      return 1;
    case 1:
      return 1 / std::sqrt(elements);
    case 2:
      return 1 / elements;
    default:
      throw ModelError("the normalization is unknown");
  }
}

/// The pairs [..., 2] or reals [..., 1] transformed along an axis, and summed only: an inverse is not divided.
Sym along(const ComplexContext& c, Sym pairs, int axis, Fourier fourier) {
  fourier.is_one_product = c.re.has_gradient_templates();
  const Sym y = fourier_transform(pairs, axis, fourier);
  return fourier.is_inverse ? y * static_cast<double>(fourier.length) : y;
}

std::vector<int> transform_axes(ComplexContext& c, Sym x) {
  std::vector<int> axes;
  for (const std::int64_t axis : c.re.integers("dim")) axes.push_back(normalize_axis(axis, x.rank()));
  if (axes.empty()) throw ModelError("there is no axis to transform");
  return axes;
}

void from_real(ComplexContext& c) {
  const Sym x = c.re.tensor("self");
  const std::vector<int> axes = transform_axes(c, x);
  Sym pairs = along(c, unsqueeze(x, {-1}), axes.back(), {x.dim(axes.back()), false, c.re.flag("onesided")});
  double elements = static_cast<double>(x.dim(axes.back()));
  for (std::size_t i = axes.size() - 1; i-- > 0;) {
    pairs = along(c, pairs, axes[i], {x.dim(axes[i]), false, false});
    elements *= static_cast<double>(x.dim(axes[i]));
  }
  c.output(parted(pairs * scale_of(c, elements)));
}

void transform_all(ComplexContext& c) {
  const Complex x = c.value("self");
  Sym pairs = paired(x);
  double elements = 1;
  const bool is_inverse = !c.re.flag("forward");
  for (const int axis : transform_axes(c, x.re)) {
    pairs = along(c, pairs, axis, {x.re.dim(axis), is_inverse, false});
    elements *= static_cast<double>(x.re.dim(axis));
  }
  c.output(parted(pairs * scale_of(c, elements)));
}

void to_real(ComplexContext& c) {
  const Complex x = c.value("self");
  const std::vector<int> axes = transform_axes(c, x.re);
  Sym pairs = paired(x);
  const std::int64_t last = c.re.integer("last_dim_size");
  double elements = static_cast<double>(last);
  for (std::size_t i = 0; i + 1 < axes.size(); ++i) {
    pairs = along(c, pairs, axes[i], {x.re.dim(axes[i]), true, false});
    elements *= static_cast<double>(x.re.dim(axes[i]));
  }
  c.output({squeeze(along(c, pairs, axes.back(), {last, true, true}), {-1}) * scale_of(c, elements), Sym()});
}

const ComplexOp complex_rows[] = {
    {"aten._conj.default", "self", conjugate},
    {"aten._conj_physical.default", "self", conjugate},
    {"aten._fft_c2c.default", "self dim normalization forward", transform_all},
    {"aten._fft_c2r.default", "self dim normalization last_dim_size", to_real},
    {"aten._fft_r2c.default", "self dim normalization onesided", from_real},
    {"aten._to_copy.default", "", convert_complex},
    {"aten._unsafe_view.default", "", each_part},
    {"aten.abs.default", "self", absolute},
    {"aten.add.Scalar", "", add},
    {"aten.add.Tensor", "", add},
    {"aten.alias.default", "", each_part},
    {"aten.angle.default", "self", angle},
    {"aten.bmm.default", "", product_complex},
    {"aten.cat.default", "", each_part},
    {"aten.clone.default", "", each_part},
    {"aten.complex.default", "real imag", compose},
    {"aten.conj_physical.default", "self", conjugate},
    {"aten.constant_pad_nd.default", "", pad_zeros},
    {"aten.copy.default", "", each_part},
    {"aten.cos.default", "", cosine},
    {"aten.cosh.default", "", hyperbolic_cosine},
    {"aten.cumsum.default", "", each_part},
    {"aten.detach.default", "", each_part},
    {"aten.diagonal.default", "", each_part},
    {"aten.diagonal_scatter.default", "", each_part},
    {"aten.div.Scalar", "", divide_complex},
    {"aten.div.Tensor", "", divide_complex},
    {"aten.empty.memory_format", "", each_part},
    {"aten.empty_like.default", "", each_part},
    {"aten.empty_permuted.default", "", each_part},
    {"aten.eq.Scalar", "", equal},
    {"aten.eq.Tensor", "", equal},
    {"aten.exp.default", "", exponential},
    {"aten.expand.default", "", each_part},
    {"aten.flip.default", "", each_part},
    {"aten.full.default", "", real_part},
    {"aten.full_like.default", "", real_part},
    {"aten.gather.default", "", each_part},
    {"aten.index.Tensor", "", each_part},
    {"aten.index_put.default", "", each_part},
    {"aten.index_select.default", "", each_part},
    {"aten.lift_fresh_copy.default", "", each_part},
    {"aten.linalg_lu_factor_ex.default", "", factorize_complex},
    {"aten.log.default", "", logarithm},
    {"aten.mean.default", "", each_part},
    {"aten.mean.dim", "", each_part},
    {"aten.mm.default", "", product_complex},
    {"aten.mul.Scalar", "", multiply_complex},
    {"aten.mul.Tensor", "", multiply_complex},
    {"aten.ne.Scalar", "", not_equal_complex},
    {"aten.ne.Tensor", "", not_equal_complex},
    {"aten.neg.default", "", each_part},
    {"aten.new_empty.default", "", each_part},
    {"aten.new_empty_strided.default", "", each_part},
    {"aten.new_full.default", "", real_part},
    {"aten.new_zeros.default", "", each_part},
    {"aten.ones.default", "", real_part},
    {"aten.ones_like.default", "", real_part},
    {"aten.permute.default", "", each_part},
    {"aten.polar.default", "abs angle", polar},
    {"aten.pow.Tensor_Scalar", "", power_complex},
    {"aten.reciprocal.default", "", reciprocal},
    {"aten.repeat.default", "", each_part},
    {"aten.reshape.default", "", each_part},
    {"aten.roll.default", "", each_part},
    {"aten.rsqrt.default", "", reciprocal_root},
    {"aten.scalar_tensor.default", "", real_part},
    {"aten.scatter.src", "", each_part},
    {"aten.scatter_add.default", "", each_part},
    {"aten.select.int", "", each_part},
    {"aten.select_backward.default", "", each_part},
    {"aten.select_scatter.default", "", each_part},
    {"aten.sin.default", "", sine},
    {"aten.sinh.default", "", hyperbolic_sine},
    {"aten.slice.Tensor", "", each_part},
    {"aten.slice_backward.default", "", each_part},
    {"aten.slice_scatter.default", "", each_part},
    {"aten.split.Tensor", "", each_part},
    {"aten.split_with_sizes.default", "", each_part},
    {"aten.sqrt.default", "", square_root},
    {"aten.squeeze.default", "", each_part},
    {"aten.squeeze.dim", "", each_part},
    {"aten.squeeze.dims", "", each_part},
    {"aten.stack.default", "", each_part},
    {"aten.sub.Scalar", "", subtract},
    {"aten.sub.Tensor", "", subtract},
    {"aten.sum.default", "", each_part},
    {"aten.sum.dim_IntList", "", each_part},
    {"aten.t.default", "", each_part},
    {"aten.tanh.default", "", hyperbolic_tangent},
    {"aten.transpose.int", "", each_part},
    {"aten.tril.default", "", each_part},
    {"aten.triu.default", "", each_part},
    {"aten.unbind.int", "", each_part},
    {"aten.unfold.default", "", each_part},
    {"aten.unsqueeze.default", "", each_part},
    {"aten.view.default", "", each_part},
    {"aten.view_as_complex.default", "self", view_as_complex},
    {"aten.view_as_real.default", "self", view_as_real},
    {"aten.where.self", "", each_part},
    {"aten.zeros.default", "", each_part},
    {"aten.zeros_like.default", "", each_part},
};

/// Do arguments of this name say where something is? They are the same for both parts.
bool says_where(std::string_view argument) {
  constexpr std::string_view names[] = {"condition", "index", "indices", "mask"};
  return std::ranges::find(names, argument) != std::end(names);
}

/// The values of a node's arguments that say where something is. `schema`: names of positional arguments in order.
std::set<std::string> places_of(const TorchNode& node, std::string_view schema) {
  std::set<std::string> places;
  for (const TorchArgument& argument : node.arguments) {
    const std::string_view name =
        argument.keyword.empty() ? schema.substr(0, schema.find(' ')) : argument.keyword;
    if (says_where(name)) collect_names(argument.value, places);
    schema.remove_prefix(std::min(schema.size(), schema.find(' ')));
    schema.remove_prefix(schema.empty() ? 0 : 1);
  }
  return places;
}

/// What a node's arguments stand for in one of the parts. Imaginary parts of real numbers are 0, but `places` are as they are.
TorchScope part_of(GraphBuilder& builder, const TorchScope& scope, const std::set<std::string>& names,
                   const std::set<std::string>& places, bool is_imaginary) {
  TorchScope part;
  for (const std::string& name : names) {
    const auto found = scope.find(name);
    if (found == scope.end()) continue;
    TorchValue value = found->second;
    if (is_imaginary && !value.imaginary.empty()) {
      value.results = value.imaginary;
    } else if (is_imaginary && !places.contains(name)) {
      for (Sym& each : value.results)
        if (each) each = builder.filled(each.dtype(), each.dims(), 0);
    }
    part.emplace(name, std::move(value));
  }
  return part;
}

void name_part_types(TorchLiteral& literal) {
  if (literal.kind == TorchLiteral::Kind::dtype) literal.text = part_dtype(literal.text);
  for (TorchLiteral& item : literal.items) name_part_types(item);
}

}  // namespace

Complex times(Complex a, Complex b) {
  if (!b.im) return {a.re * b.re, a.im ? a.im * b.re : Sym()};
  if (!a.im) return {a.re * b.re, a.re * b.im};
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

/// Of the divisor over the larger of its parts, so that squares do not leave the range of numbers.
Complex over(Complex a, Complex b) {
  if (!b.im) return {a.re / b.re, a.im ? a.im / b.re : Sym()};
  const Sym scale = apply(Op::maximum, apply(Op::abs, b.re), apply(Op::abs, b.im));
  const Complex unit{b.re / scale, b.im / scale};
  const Sym divisor = (unit.re * unit.re + unit.im * unit.im) * scale;
  const Complex product = times(a, {unit.re, -unit.im});
  return {product.re / divisor, product.im / divisor};
}

std::string_view part_dtype(std::string_view dtype) {
  return dtype == "c64" ? "f32" : dtype == "c128" ? "f64" : dtype == "c32" ? "f16" : dtype;
}

std::vector<std::string_view> complex_op_names() {
  std::vector<std::string_view> names;
  for (const ComplexOp& row : complex_rows) names.push_back(row.name);
  return names;
}

std::vector<Complex> import_complex(GraphBuilder& builder, const TorchScope& scope, const TorchNode& node,
                                    const TorchImportOptions& options) {
  const auto* rule = std::ranges::find(complex_rows, node.op, &ComplexOp::name);
  if (rule == std::end(complex_rows))
    throw UnsupportedError("this operation is not served for complex numbers");
  const TorchOp* row = find_torch_op(node.op);
  TorchNode part = node;
  std::set<std::string> names;
  for (TorchType& type : part.types) type.dtype = part_dtype(type.dtype);
  for (TorchArgument& argument : part.arguments) {
    name_part_types(argument.value);
    collect_names(argument.value, names);
  }
  const std::string_view schema = rule->schema.empty() ? row->schema : rule->schema;
  const std::set<std::string> places = places_of(part, schema);
  const TorchScope real = part_of(builder, scope, names, places, false);
  const TorchScope imaginary = part_of(builder, scope, names, places, true);
  TorchContext re(builder, real, part, options, schema);
  TorchContext im(builder, imaginary, part, options, schema);
  ComplexContext context{re, im, scope, row == nullptr ? nullptr : row->import,
                         part.types.front().dtype != node.types.front().dtype};
  rule->import(context);
  re.check_no_surplus();
  return context.results;
}

}  // namespace sylvite
