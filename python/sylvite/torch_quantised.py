"""Rounding to few numbers as programs of torch's exported quantisation have it (`quantized_decomposed`), in terms of others.

Each function computes what its operation does. It returns NotImplemented for what it does not serve, which torch runs then.
"""

import math
from collections.abc import Callable
from typing import Any

import torch

Tensor = torch.Tensor


def _quantize(x: Tensor, scale: Any, zero: Any, low: Any, high: Any, dtype: torch.dtype) -> Tensor:
    return ((x.float() * (1.0 / scale)).round() + zero).clamp(low, high).to(dtype)


def _dequantize(x: Tensor, scale: Any, zero: Any, low: Any, high: Any, dtype: torch.dtype, *, out_dtype: torch.dtype | None = None) -> Tensor:
    return ((x.float() - zero) * scale).to(out_dtype or torch.float32)


def _one(x: Any) -> Any:
    """In f32, as the product of a tensor and a number is."""
    return x.reshape(()).to(torch.float32) if isinstance(x, Tensor) else x


def _by_tensors(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """With scales of one element, of which torch reads the number."""
    return lambda x, scale, zero, low, high, dtype, **more: function(x, _one(scale), _one(zero), _one(low), _one(high), dtype, **more)


def _along(numbers: Tensor | None, x: Tensor, axis: int) -> Any:
    return 0 if numbers is None else numbers.view([-1 if i == axis % x.dim() else 1 for i in range(x.dim())])


def _by_channels(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def apply(x: Tensor, scales: Tensor, zeros: Tensor | None, axis: int, *others: Any, **more: Any) -> Tensor:
        return function(x, _along(scales, x, axis), _along(zeros, x, axis), *others, **more)

    return apply


def _choose(x: Tensor, low: int, high: int, eps: float, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Of one scale the range of the values and of zero."""
    least, most = x.amin().float().clamp(max=0.0), x.amax().float().clamp(min=0.0)
    scale = ((most - least) / float(high - low)).clamp(min=eps)
    zero = (low - (least / scale).round().to(torch.int32)).clamp(low, high)
    return scale.to(torch.float64).view(1), zero.to(torch.int64).view(1)


def _choose_symmetric(x: Tensor, low: int, high: int, eps: float, dtype: torch.dtype) -> Any:
    if dtype == torch.uint8:
        return NotImplemented
    scale = (x.float().abs().amax() / ((high - low) / 2)).clamp(min=eps)
    return scale.to(torch.float64).view(1), torch.zeros(1, dtype=torch.int64, device=x.device)


def _per_token(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def apply(x: Tensor, scales: Tensor, zeros: Tensor, low: int, high: int, dtype: torch.dtype, out: torch.dtype | None = None) -> Any:
        if out not in (None, torch.float32):
            return NotImplemented
        return function(x, scales, zeros, low, high, dtype)

    return apply


def _of_groups(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def apply(
        x: Tensor, scales: Tensor, zeros: Tensor | None, low: int, high: int, dtype: torch.dtype, size: int, out: torch.dtype | None = None
    ) -> Any:
        if out not in (None, torch.float32) or x.dim() != 2 or not all(isinstance(extent, int) for extent in x.shape):
            return NotImplemented
        parts = x.reshape(-1, size if size > 1 else math.prod(x.shape) // scales.numel())
        return function(parts, scales.reshape(-1, 1), 0 if zeros is None else zeros.reshape(-1, 1), low, high, dtype).view(x.shape)

    return apply


#: By names and overloads of torch.
_FUNCTIONS: dict[tuple[str, str], Callable[..., Any]] = {
    ("choose_qparams", "tensor"): _choose,
    ("choose_qparams_symmetric", "tensor"): _choose_symmetric,
    ("dequantize_per_channel", "default"): _by_channels(_dequantize),
    ("dequantize_per_channel_group", "default"): _of_groups(_dequantize),
    ("dequantize_per_tensor", "default"): _dequantize,
    ("dequantize_per_tensor", "tensor"): _by_tensors(_dequantize),
    ("dequantize_per_tensor", "tensor2"): _by_tensors(_dequantize),
    ("dequantize_per_token", "default"): _per_token(_dequantize),
    ("quantize_per_channel", "default"): _by_channels(_quantize),
    ("quantize_per_tensor", "default"): _quantize,
    ("quantize_per_tensor", "tensor"): _by_tensors(_quantize),
    ("quantize_per_tensor", "tensor2"): _by_tensors(_quantize),
    ("quantize_per_token", "default"): _per_token(_quantize),
}


def decompositions() -> dict[Any, Callable[..., Any]]:
    """Nothing where these operations are not in use."""
    space = torch.ops.quantized_decomposed
    found = {}
    for (name, overload), function in _FUNCTIONS.items():
        op = getattr(getattr(space, name, None), overload, None)
        if op is not None:
            found[op] = function
    return found
