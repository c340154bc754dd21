"""Reductions, products and functions of complex numbers, in terms of operations that have rows.

Each function computes what its operation does. It returns NotImplemented for what it does not serve, real numbers among it, which is
left whole then.
"""

import math
from collections.abc import Callable
from typing import Any

import torch

aten = torch.ops.aten
Tensor = torch.Tensor


def _complex_variance(x: Tensor, dim: Any = None, *, correction: Any = None, keepdim: bool = False) -> Any:
    if not x.is_complex():
        return NotImplemented
    parts = (aten.var.correction(part, dim, correction=correction, keepdim=keepdim) for part in torch.view_as_real(x).unbind(-1))
    return sum(parts)


def _running_products(x: Tensor, dim: int, *, dtype: Any = None) -> Any:
    """In steps of 1, 2, 4, ... elements."""
    if not x.is_complex() or dtype not in (None, x.dtype) or not isinstance(x.shape[dim], int):
        return NotImplemented
    step, extent = 1, x.shape[dim]
    while step < extent:
        x = torch.cat([x.narrow(dim, 0, step), x.narrow(dim, step, extent - step) * x.narrow(dim, 0, extent - step)], dim)
        step *= 2
    return x


def _complex_product(x: Tensor, dim: int, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """Of halves, until one element is left."""
    if not x.is_complex() or dtype not in (None, x.dtype) or not isinstance(x.shape[dim], int) or x.shape[dim] == 0:
        return NotImplemented
    while (extent := x.shape[dim]) > 1:
        half = extent // 2
        product = x.narrow(dim, 0, half) * x.narrow(dim, half, half)
        x = product if extent % 2 == 0 else torch.cat([product, x.narrow(dim, extent - 1, 1)], dim)
    return x if keepdim else x.squeeze(dim)


def _product_of_all(x: Tensor, *, dtype: Any = None) -> Any:
    return _complex_product(x.flatten(), 0, dtype=dtype)


# Products that are added to something


def _add_product(x: Tensor, a: Tensor, b: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """Times zero what is added does not count at all."""
    if not a.is_complex():
        return NotImplemented
    product = torch.mm(a, b) if alpha == 1 else torch.mm(a, b) * alpha
    return product if beta == 0 else (x if beta == 1 else x * beta) + product


# Functions


def _of_complex(function: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Any]:
    """Real numbers have rows of their own."""
    return lambda x: function(x) if x.is_complex() else NotImplemented


def _upper(x: Tensor) -> tuple[Tensor, Tensor]:
    """The square roots of 1 - x and 1 + x, of x or of its conjugate, whichever is not below the real axis."""
    height = x.imag.abs()
    below, above = torch.sqrt(torch.complex(1 - x.real, height)), torch.sqrt(torch.complex(1 + x.real, height))
    return below.conj(), above


def _cross(x: Tensor, y: Tensor) -> Tensor:
    """The imaginary part of y times the conjugate of x."""
    return x.real * y.imag - x.imag * y.real


def _asin(x: Tensor) -> Tensor:
    below, above = _upper(x)
    turn = torch.atan2(x.real, below.real * above.real - below.imag * above.imag)
    return torch.complex(turn, torch.copysign(torch.asinh(_cross(below, above)), x.imag))


def _acos(x: Tensor) -> Tensor:
    below, above = _upper(x)
    return torch.complex(2 * torch.atan2(below.real, above.real), -torch.copysign(torch.asinh(_cross(below, above)), x.imag))


def _acosh(x: Tensor) -> Tensor:
    below, above = torch.sqrt(x - 1), torch.sqrt(x + 1)
    inner = below.real * above.real + below.imag * above.imag
    return torch.complex(torch.asinh(inner), 2 * torch.atan2(below.imag, above.real))


def _turned(function: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """The function f of which the given one is i f(x / i)."""

    def apply(x: Tensor) -> Tensor:
        made = function(torch.complex(-x.imag, x.real))
        return torch.complex(made.imag, -made.real)

    return apply


def _atanh(x: Tensor) -> Tensor:
    re, im = x.real, x.imag
    below, square = 1 - re, im * im
    return torch.complex(torch.log1p(4 * re / (below * below + square)) / 4, torch.atan2(2 * im, below * (1 + re) - square) / 2)


def _log1p(x: Tensor) -> Tensor:
    re, im = x.real, x.imag
    near = torch.log1p(re * (2 + re) + im * im) / 2
    return torch.complex(torch.where(x.abs() < 0.5, near, (1 + x).abs().log()), torch.atan2(im, 1 + re))


def _expm1(x: Tensor) -> Tensor:
    re, im = x.real, x.imag
    half = torch.sin(im / 2)
    return torch.complex(torch.expm1(re) * torch.cos(im) - 2 * half * half, torch.exp(re) * torch.sin(im))


def _logarithm_to(base: float) -> Callable[[Tensor], Tensor]:
    return lambda x: torch.log(x) * (1 / math.log(base))


def _power(x: Any, exponent: Any) -> Any:
    """By the logarithm, which zero does not have: its powers are zero, or one."""
    if not any(isinstance(each, complex) or (isinstance(each, Tensor) and each.is_complex()) for each in (x, exponent)):
        return NotImplemented
    dtype = torch.result_type(x, exponent)
    base, power = (each.to(dtype) if isinstance(each, Tensor) else torch.scalar_tensor(each, dtype=dtype) for each in (x, exponent))
    is_plain = (base.abs() == 0) & (power.imag == 0)
    made = torch.exp(power * torch.log(torch.where(is_plain, torch.ones_like(base), base)))
    return torch.where(is_plain, (power.abs() == 0).to(dtype), made)


def _direction(x: Tensor) -> Tensor:
    length = x.abs()
    return x / torch.where(length == 0, 1, length)


def _variance_and_mean(x: Tensor, dim: Any = None, *, correction: Any = None, keepdim: bool = False) -> Any:
    variance = _complex_variance(x, dim, correction=correction, keepdim=keepdim)
    return variance if variance is NotImplemented else (variance, aten.mean.dim(x, dim if dim is not None else list(range(x.dim())), keepdim))


def _any_part(function: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Any]:
    return _of_complex(lambda x: function(x.real) | function(x.imag))


def _truths(function: Callable[[Tensor, Tensor], Tensor]) -> Callable[[Tensor, Tensor], Any]:
    return lambda x, y: function(x != 0, y != 0) if x.is_complex() or y.is_complex() else NotImplemented


#: Beside torch's tables.
DECOMPOSITIONS: dict[Any, Callable[..., Any]] = {
    aten.acos.default: _of_complex(_acos),
    aten.acosh.default: _of_complex(_acosh),
    aten.addmm.default: _add_product,
    aten.any.default: _of_complex(lambda x: (x != 0).any()),
    aten.asin.default: _of_complex(_asin),
    aten.asinh.default: _of_complex(_turned(_asin)),
    aten.atan.default: _of_complex(_turned(_atanh)),
    aten.atanh.default: _of_complex(_atanh),
    aten.cumprod.default: _running_products,
    aten.exp2.default: _of_complex(lambda x: torch.exp(x * math.log(2))),
    aten.expm1.default: _of_complex(_expm1),
    aten.isinf.default: _any_part(torch.isinf),
    aten.isnan.default: _any_part(torch.isnan),
    aten.log10.default: _of_complex(_logarithm_to(10)),
    aten.log1p.default: _of_complex(_log1p),
    aten.log2.default: _of_complex(_logarithm_to(2)),
    aten.logical_and.default: _truths(torch.bitwise_and),
    aten.logical_not.default: _of_complex(lambda x: (x.real == 0) & (x.imag == 0)),
    aten.logical_or.default: _truths(torch.bitwise_or),
    aten.logical_xor.default: _truths(torch.bitwise_xor),
    aten.pow.Scalar: _power,
    aten.pow.Tensor_Scalar: lambda x, exponent: _power(x, exponent) if isinstance(exponent, complex) else NotImplemented,
    aten.pow.Tensor_Tensor: _power,
    aten.prod.default: _product_of_all,
    aten.prod.dim_int: _complex_product,
    aten.sgn.default: lambda x: _direction(x) if x.is_complex() else torch.sign(x),
    aten.sigmoid.default: _of_complex(lambda x: torch.reciprocal(1 + torch.exp(-x))),
    aten.silu.default: _of_complex(lambda x: x / (1 + torch.exp(-x))),
    aten.tan.default: _of_complex(_turned(torch.tanh)),
    aten.var.correction: _complex_variance,
    aten.var_mean.correction: _variance_and_mean,
}
