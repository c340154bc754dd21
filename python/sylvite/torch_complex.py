"""Reductions of complex numbers, in terms of operations that have rows.

Each function computes what its operation does. It returns NotImplemented for what it does not serve, real numbers among it, which is
left whole then.
"""

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


#: Beside torch's tables.
DECOMPOSITIONS: dict[Any, Callable[..., Any]] = {
    aten.cumprod.default: _running_products,
    aten.prod.default: _product_of_all,
    aten.prod.dim_int: _complex_product,
    aten.var.correction: _complex_variance,
}
