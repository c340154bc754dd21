"""Operations on single elements that torch's core table leaves whole, in terms of others: bits, places, rounding, order.

Each function computes what its operation does. It returns NotImplemented for what it does not serve, which torch runs then.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

aten = torch.ops.aten
Tensor = torch.Tensor

# Bits

_INTEGERS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def _signed(value: Tensor, size: int) -> Tensor:
    """The number of so many bytes whose bits are the low ones of the value, as i64."""
    if size == 8:
        return value
    low = value & (1 << 8 * size) - 1
    return low - ((low & 1 << 8 * size - 1) << 1)


def _read_as(x: Tensor, dtype: torch.dtype) -> Any:
    """The memory of x as elements of another size, of which the lower bytes are first."""
    if x.is_complex() or dtype.is_complex or x.dtype == torch.bool or dtype == torch.bool:
        return NotImplemented
    size, wanted = x.element_size(), dtype.itemsize
    if size == wanted or x.dim() == 0:
        return NotImplemented
    few, many = sorted((size, wanted))
    shifts = torch.arange(0, 8 * many, 8 * few, device=x.device)
    bits = aten.view.dtype(x, _INTEGERS[size]).to(torch.int64)
    if wanted < size:
        parts = _signed(bits.unsqueeze(-1) >> shifts, wanted).flatten(-2)
    else:
        parts = ((bits & (1 << 8 * few) - 1).unflatten(-1, (-1, many // few)) << shifts).sum(-1)
    made = _signed(parts, wanted).to(_INTEGERS[wanted])
    return made if made.dtype == dtype else aten.view.dtype(made, dtype)


def _next_after(x: Tensor, y: Tensor) -> Any:
    dtype = torch.result_type(x, y)
    if dtype not in (torch.bfloat16, torch.float16, torch.float32, torch.float64):
        return NotImplemented
    x, y = aten.broadcast_tensors([x.to(dtype), y.to(dtype)])
    integer = _INTEGERS[x.element_size()]
    bits = aten.view.dtype(x, integer)
    grows = (y > x) == (x > 0)
    smallest = torch.where(y > 0, 1, torch.iinfo(integer).min + 1).to(integer)
    moved = torch.where(x == 0, smallest, torch.where(grows, bits + 1, bits - 1))
    is_number = ~(x.isnan() | y.isnan())
    return torch.where(is_number, torch.where(x == y, y, aten.view.dtype(moved, x.dtype)), x + y)


def _mantissa_and_exponent(x: Tensor) -> Any:
    """What is below one and at least a half, and the power of two that makes it x."""
    if x.dtype in (torch.bfloat16, torch.float16):
        mantissa, exponent = _mantissa_and_exponent(x.float())
        return mantissa.to(x.dtype), exponent
    if x.dtype != torch.float32:
        return NotImplemented
    is_small = x.abs() < 2.0**-126
    bits = aten.view.dtype(torch.where(is_small, x * 2.0**32, x), torch.int32)
    exponent = ((bits >> 23) & 255) - torch.where(is_small, 158, 126)
    mantissa = aten.view.dtype((bits & -0x7F800001) | 0x3F000000, torch.float32)
    is_plain = (x != 0) & x.isfinite()
    return torch.where(is_plain, mantissa, x), torch.where(is_plain, exponent, 0).to(torch.int32)


# Rounding


def _round_to_digits(x: Tensor, *, decimals: int) -> Tensor:
    if not x.is_floating_point() or decimals == 0:
        return x.round()
    scale = 10.0 ** abs(decimals)
    return (x * scale).round() / scale if decimals > 0 else (x / scale).round() * scale


def _angle(x: Tensor) -> Any:
    """Of real numbers."""
    if x.is_complex():
        return NotImplemented
    dtype = x.dtype if x.is_floating_point() else torch.get_default_dtype()
    angle = torch.where(x < 0, torch.scalar_tensor(math.pi, dtype=dtype, device=x.device), 0.0)
    return torch.where(x.isnan(), x, angle) if x.is_floating_point() else angle


def _of_truths(function: Callable[..., Tensor]) -> Callable[..., Any]:
    """Extremes of truths; of numbers they have rows."""
    return lambda x, y: function(x, y) if x.dtype == y.dtype == torch.bool else NotImplemented


def _scaled_erfc(x: Tensor) -> Any:
    """exp(x^2) erfc(x), in f64; far out a series, where one factor is infinite and the other zero."""
    if x.dtype not in (torch.float32, torch.float64):
        return NotImplemented
    wide = x.double()
    near, far = wide.clamp(max=25.0), wide.clamp(min=25.0)
    inverse = 0.5 / far.square()
    series = (1 - inverse * (1 - 3 * inverse * (1 - 5 * inverse))) / (far * math.sqrt(math.pi))
    return torch.where(wide > 25.0, series, near.square().exp() * near.erfc()).to(x.dtype)


# Numbers as operands


def _number(value: Any, beside: Tensor) -> Tensor:
    return torch.full((), value, dtype=torch.result_type(beside, value), device=beside.device)


def _of_number(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda number, x: function(_number(number, x), x)


def _by_number(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, number: function(x, _number(number, x))


# Bounds


def _clamp(x: Tensor, low: Any = None, high: Any = None) -> Any:
    """A bound that no number of the type is beyond is none: in that type it would be another number."""
    given = [bound for bound in (low, high) if bound is not None]
    if x.dtype not in (torch.uint8, *_INTEGERS.values()) or not all(isinstance(bound, int) for bound in given):
        return NotImplemented
    limits = torch.iinfo(x.dtype)
    bounds = (None if low is None or low < limits.min else low, None if high is None or high > limits.max else high)
    if bounds == (low, high):
        return NotImplemented
    return x.clone() if bounds == (None, None) else torch.clamp(x, *bounds)


def _clamp_truths(x: Tensor, low: Tensor | None = None, high: Tensor | None = None) -> Any:
    bound = high if low is None else low
    if x.dtype != torch.bool or bound is None or bound.dtype != torch.bool or (low is not None and high is not None):
        return NotImplemented
    return x & bound if low is None else x | bound


# Borders


def _replicated_axis(grad: Tensor, axis: int, before: int, after: int) -> Tensor:
    """What lies on the borders is the gradient of the first and the last; what a negative border cut off has none."""
    behind = grad.dim() - 1 - axis
    grad = aten.constant_pad_nd(grad, [0, 0] * behind + [max(-before, 0), max(-after, 0)])
    before, after = max(before, 0), max(after, 0)
    count = grad.shape[axis] - before - after
    if count == 1:
        return grad.sum(axis, keepdim=True)
    first = grad.narrow(axis, 0, before + 1).sum(axis, keepdim=True)
    last = grad.narrow(axis, before + count - 1, after + 1).sum(axis, keepdim=True)
    return torch.cat([first, grad.narrow(axis, before + 1, count - 2), last], axis)


def _replication_backward(grad: Tensor, x: Tensor, padding: Sequence[int]) -> Any:
    if any(not isinstance(each, int) for each in padding):
        return NotImplemented
    for i in range(0, len(padding), 2):
        grad = _replicated_axis(grad, grad.dim() - 1 - i // 2, padding[i], padding[i + 1])
    return grad


# Places


def _put(x: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    return x.reshape(-1).index_put((index.reshape(-1),), source.reshape(-1), accumulate).view(x.shape)


def _zeros_beside(x: Tensor, other: Tensor, *, self_num_batch_dims: int = 0) -> Tensor:
    """A direction in which nothing changes, as torch makes it for derivatives forwards."""
    return other.new_zeros([*x.shape[:self_num_batch_dims], *other.shape])


def _nonzero_places(x: Tensor, *, size: int, fill_value: int = -1) -> Any:
    """So many places of what is not zero, in order."""
    if not all(isinstance(each, int) for each in (*x.shape, size)):
        return NotImplemented
    is_set = (x != 0).reshape(-1)
    rank = is_set.cumsum(0) - 1
    slot = torch.where(is_set & (rank < size), rank, size)  # what is left out goes to a place behind all
    count = x.numel()
    found = torch.full((size + 1,), count, dtype=torch.int64, device=x.device)
    found = found.scatter(0, slot, torch.arange(count, device=x.device))[:size]
    steps = [math.prod(x.shape[axis + 1:]) for axis in range(x.dim())]
    places = [found // max(step, 1) % max(extent, 1) for step, extent in zip(steps, x.shape)]
    if not places:
        return found.new_zeros(size, 0)
    return torch.where((found == count)[:, None], fill_value, torch.stack(places, 1))


def _median_of_lines(x: Tensor, dim: int, keepdim: bool = False) -> Any:
    """Of what is a number, if anything is one."""
    if not x.is_floating_point():
        return aten.median.dim(x, dim, keepdim)
    if x.dim() == 0:
        return NotImplemented
    values, places = x.sort(dim)  # what is no number is last
    place = (x.isnan().logical_not().sum(dim, keepdim=True) - 1).clamp(min=0) // 2
    found = values.gather(dim, place), places.gather(dim, place)
    return found if keepdim else tuple(each.squeeze(dim) for each in found)


def _search_number(edges: Tensor, number: Any, *, out_int32: bool = False, right: bool = False, side: Any = None,
                   sorter: Any = None) -> Any:  # fmt: skip
    return aten.searchsorted.Tensor(edges, _number(number, edges), out_int32=out_int32, right=right, side=side, sorter=sorter)


def _search(edges: Tensor, values: Tensor, *, sorter: Any = None, **others: Any) -> Any:
    """Among what a permutation brings into order."""
    return NotImplemented if sorter is None else aten.searchsorted.Tensor(edges.gather(-1, sorter), values, **others)


_REDUCTIONS = {"add": "sum", "multiply": "prod"}


def _scatter_and_reduce(x: Tensor, dim: int, index: Tensor, source: Any, *, reduce: str) -> Tensor:
    values = source if isinstance(source, Tensor) else torch.full_like(index, source, dtype=x.dtype)
    return x.scatter_reduce(dim, index, values, _REDUCTIONS[reduce])


def _reduce_integers(x: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True) -> Any:
    """Extremes without those of self begin with one of what comes; means round down, as torch's do."""
    if x.is_floating_point() or x.is_complex() or x.dim() == 0:
        return NotImplemented
    if reduce in ("amin", "amax") and not include_self:
        return x.scatter(dim, index, source).scatter_reduce(dim, index, source, reduce)
    if reduce != "mean":
        return NotImplemented
    ones = torch.ones_like(source)
    if include_self:
        return torch.floor_divide(x.scatter_add(dim, index, source), torch.ones_like(x).scatter_add(dim, index, ones))
    counts = torch.zeros_like(x).scatter_add(dim, index, ones)
    return torch.floor_divide(torch.where(counts > 0, 0, x).scatter_add(dim, index, source), counts.clamp(min=1))


def _repeats(repeats: Tensor, *, output_size: int | None = None) -> Any:
    """Each place as often as told, where it is known how many there are."""
    if output_size is None:
        return NotImplemented
    rank = torch.arange(output_size, dtype=repeats.dtype, device=repeats.device)
    return torch.searchsorted(repeats.cumsum(0, dtype=repeats.dtype), rank, right=True).to(repeats.dtype)


# Made of nothing


def _frequencies(count: int, spacing: float = 1.0, *, dtype: Any = None, device: Any = None, **others: Any) -> Tensor:
    kind = dtype or torch.get_default_dtype()
    place = torch.arange(count, dtype=kind, device=device)
    return torch.where(place < (count + 1) // 2, place, place - count) * (1.0 / (count * spacing))


def _frequencies_of_halves(count: int, spacing: float = 1.0, *, dtype: Any = None, device: Any = None, **others: Any) -> Tensor:
    return torch.arange(count // 2 + 1, dtype=dtype or torch.get_default_dtype(), device=device) * (1.0 / (count * spacing))


def _window(shape: Callable[..., Tensor]) -> Callable[..., Any]:
    """`shape` is of places from 0 to 1, and of the window's numbers."""

    def make(count: Any, periodic: bool = True, *numbers: float, dtype: Any = None, device: Any = None, **_: Any) -> Any:
        dtype = dtype or torch.get_default_dtype()
        if dtype not in (torch.float32, torch.float64):
            return NotImplemented
        if count < 2:
            return torch.ones(count, dtype=dtype, device=device)
        return shape(torch.arange(count, dtype=dtype, device=device) / (count if periodic else count - 1), *numbers)

    return make


def _cosine(places: Tensor, waves: int) -> Tensor:
    return (places * (2 * math.pi * waves)).cos()


def _kaiser(places: Tensor, beta: float = 12.0) -> Tensor:
    return torch.i0(beta * (1 - (2 * places - 1).square()).clamp(min=0).sqrt()) / torch.i0(torch.full_like(places[:1], beta))


_WINDOWS = {
    aten.bartlett_window: _window(lambda places: 1 - (2 * places - 1).abs()),
    aten.blackman_window: _window(lambda places: 0.42 - 0.5 * _cosine(places, 1) + 0.08 * _cosine(places, 2)),
    aten.hamming_window: _window(lambda places, alpha=0.54, beta=0.46: alpha - beta * _cosine(places, 1)),
    aten.kaiser_window: _window(_kaiser),
}

#: Beside torch's tables.
DECOMPOSITIONS: dict[Any, Callable[..., Any]] = {
    aten.__lshift__.Tensor: torch.bitwise_left_shift,
    aten.__rshift__.Tensor: torch.bitwise_right_shift,
    aten._neg_view.default: torch.neg,
    aten.angle.default: _angle,
    aten.bitwise_and.Scalar_Tensor: _of_number(torch.bitwise_and),
    aten.bitwise_left_shift.Scalar_Tensor: _of_number(torch.bitwise_left_shift),
    aten.bitwise_left_shift.Tensor_Scalar: _by_number(torch.bitwise_left_shift),
    aten.bitwise_or.Scalar_Tensor: _of_number(torch.bitwise_or),
    aten.bitwise_right_shift.Scalar_Tensor: _of_number(torch.bitwise_right_shift),
    aten.bitwise_right_shift.Tensor_Scalar: _by_number(torch.bitwise_right_shift),
    aten.bitwise_xor.Scalar_Tensor: _of_number(torch.bitwise_xor),
    aten._new_zeros_with_same_feature_meta.default: _zeros_beside,
    aten.clamp.Tensor: _clamp_truths,
    aten.clamp.default: _clamp,
    aten.clamp_max.default: lambda x, high: _clamp(x, None, high),
    aten.clamp_min.default: _clamp,
    aten.fft_fftfreq.default: _frequencies,
    aten.fft_rfftfreq.default: _frequencies_of_halves,
    aten.frexp.Tensor: _mantissa_and_exponent,
    aten.maximum.default: _of_truths(torch.logical_or),
    aten.minimum.default: _of_truths(torch.logical_and),
    aten.nanmedian.dim: _median_of_lines,
    aten.narrow_copy.default: lambda x, dim, start, length: x.narrow(dim, start, length).clone(),
    aten.nextafter.default: _next_after,
    aten.nonzero_static.default: _nonzero_places,
    aten.put.default: _put,
    aten.remainder.Scalar_Tensor: _of_number(torch.remainder),
    aten.repeat_interleave.Tensor: _repeats,
    aten.replication_pad1d_backward.default: _replication_backward,
    aten.replication_pad2d_backward.default: _replication_backward,
    aten.replication_pad3d_backward.default: _replication_backward,
    aten.round.decimals: _round_to_digits,
    aten.scatter.reduce: _scatter_and_reduce,
    aten.scatter.value_reduce: _scatter_and_reduce,
    aten.scatter_reduce.two: _reduce_integers,
    aten.searchsorted.Scalar: _search_number,
    aten.searchsorted.Tensor: _search,
    aten.signbit.default: lambda x: torch.zeros_like(x) if x.dtype == torch.bool else NotImplemented,
    aten.special_erfcx.default: _scaled_erfc,
    aten.view.dtype: _read_as,
    **{getattr(packet, name): make for packet, make in _WINDOWS.items() for name in packet.overloads() if "out" not in name},
}
