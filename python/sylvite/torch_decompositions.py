"""What torch's core table leaves whole, in terms of operations that have rows: lists of tensors, distances, bags, ...

Each function computes what its operation does. It returns NotImplemented for what it does not serve, which torch runs then.
"""

import functools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._decomp import decompositions

aten = torch.ops.aten
Tensor = torch.Tensor

# Lists of tensors, as optimisers have them.

#: What torch calls the operation on one tensor, where that is not the list's name without "_foreach".
_FOREACH_NAMES = {
    "norm": torch.linalg.vector_norm, "max": torch.amax, "maximum": torch.clamp_min, "minimum": torch.clamp_max, "zero": torch.zeros_like,
    "copy": lambda x, y, _=False: y.to(x.dtype).expand_as(x).clone(),
}  # fmt: skip
#: Names of the arguments that are lists where an overload has a list of numbers.
_FOREACH_NUMBER = {"addcdiv": "value", "addcmul": "value"}


def _of_lists(name: str) -> Callable[..., Any] | None:
    function = _FOREACH_NAMES.get(name) or getattr(torch, name, None)
    if function is None:
        return None
    number = _FOREACH_NUMBER.get(name)

    def apply(first: Any, *others: Any, **keywords: Any) -> Any:
        tensors = first if isinstance(first, (list, tuple)) else others[0]
        count = len(tensors)

        def each(argument: Any, i: int) -> Any:
            return argument[i] if isinstance(argument, (list, tuple)) and len(argument) == count else argument

        results = []
        for i in range(count):
            given = [each(argument, i) for argument in (first, *others)]
            named = {key: each(value, i) for key, value in keywords.items() if value is not None}
            if number is not None and len(given) == 4:
                named[number] = given.pop()
            results.append(function(*given, **named))
        return results

    return apply


def _foreach_decompositions() -> dict[Any, Callable[..., Any]]:
    found: dict[Any, Callable[..., Any]] = {}
    for full_name in torch._C._dispatch_get_all_op_names():  # dir(aten) has only what was asked for before
        name, _, overload = full_name.removeprefix("aten::").partition(".")
        if not full_name.startswith("aten::_foreach_") or name.endswith("_") or overload.endswith("out"):
            continue
        function = _of_lists(name.removeprefix("_foreach_"))
        if function is not None:
            found[getattr(getattr(aten, name), overload or "default")] = function
    return found


# Products of more than two, and sums of products

_LETTERS = "abcdefghij"


def _of_three(
    x: Tensor, y: Tensor, z: Tensor, new_x: Sequence[int], new_y: Sequence[int], new_z: Sequence[int], summed: Sequence[int],
    unroll_dim: int = 1,
) -> Tensor:  # fmt: skip
    """The sum over some axes of a product of three, each of which has new axes for those that it lacks."""
    letters = _LETTERS[:x.dim() + len(new_x)]
    given = ["".join(letter for i, letter in enumerate(letters) if i not in new) for new in (new_x, new_y, new_z)]
    left = "".join(letter for i, letter in enumerate(letters) if i not in summed)
    return torch.einsum(f"{','.join(given)}->{left}", x, y, z)


def _add_products(x: Tensor, a: Tensor, b: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """Of matrices and a vector, or of batches whose products are added up. Times zero what is added does not count at all."""
    if not (x.is_floating_point() or x.is_complex()):
        beta, alpha = int(beta), int(alpha)
    made = a @ b if a.dim() == 2 else a.transpose(0, 1).flatten(1) @ b.flatten(0, 1)
    made = made if alpha == 1 else made * alpha
    return made if beta == 0 else x * beta + made


# Distances, places by masks, and numbers that are rounded to few


def _of_gaps(gaps: Tensor, p: float) -> Tensor:
    if p == 2:
        return gaps.square().sum(-1).sqrt()
    if p == 1:
        return gaps.sum(-1)
    if p == 0:
        return (gaps != 0).sum(-1).to(gaps.dtype)
    return gaps.amax(-1) if math.isinf(p) else gaps.pow(p).sum(-1).pow(1 / p)


def _distances(x: Tensor, y: Tensor, p: float, compute_mode: int | None = None) -> Any:
    return _of_gaps((x.unsqueeze(-2) - y.unsqueeze(-3)).abs(), p)


def _slopes(grad: Tensor, gaps: Tensor, p: float, distances: Tensor) -> Tensor:
    """Gradients of gaps of which the distances are norms over the last axis."""
    grad, distances = grad.unsqueeze(-1), distances.unsqueeze(-1)
    if p == 0:
        return torch.zeros_like(gaps)
    if p == 1:
        return gaps.sign() * grad
    if math.isinf(p):
        return gaps.sign() * (gaps.abs() == distances) * grad
    scale = grad / torch.where(distances == 0, 1.0, distances if p == 2 else distances.pow(p - 1))
    size = gaps if p == 2 else gaps.sign() * gaps.abs().pow(p - 1)
    return torch.where(distances == 0, 0.0, size * scale)


def _distances_backward(grad: Tensor, x: Tensor, y: Tensor, p: float, distances: Tensor) -> Any:
    return _slopes(grad, x.unsqueeze(-2) - y.unsqueeze(-3), p, distances).sum(-2)


def _pairs(x: Tensor) -> Tensor:
    """Of rows the numbers of each two, in order: the first's in one row, the second's in another."""
    return torch.triu_indices(x.shape[0], x.shape[0], 1, device=x.device)


def _distances_of_pairs(x: Tensor, p: float = 2) -> Any:
    if not isinstance(x.shape[0], int):
        return NotImplemented
    first, second = _pairs(x)
    return _of_gaps((x[first] - x[second]).abs(), p)


def _distances_of_pairs_backward(grad: Tensor, x: Tensor, p: float, distances: Tensor) -> Any:
    if not isinstance(x.shape[0], int):
        return NotImplemented
    first, second = _pairs(x)
    slopes = _slopes(grad, x[first] - x[second], p, distances)
    return torch.zeros_like(x).index_add(0, first, slopes).index_add(0, second, -slopes)


def _mode(x: Tensor, dim: int = -1, keepdim: bool = False) -> Any:
    """Of those that come most often the smallest, and where it comes last; the work is quadratic."""
    if x.dim() == 0:
        return x.clone(), torch.zeros_like(x, dtype=torch.int64)
    if not isinstance(x.shape[dim], int) or not 0 < x.shape[dim] <= 4096:
        return NotImplemented
    if x.dtype == torch.bool:
        value, place = _mode(x.to(torch.uint8), dim, keepdim)
        return value.to(torch.bool), place
    lines = x.movedim(dim, -1)
    count = (lines.unsqueeze(-1) == lines.unsqueeze(-2)).sum(-1)
    is_most = count == count.amax(-1, keepdim=True)
    largest = torch.inf if x.is_floating_point() else torch.iinfo(x.dtype).max
    value = torch.where(is_most, lines, largest).amin(-1, keepdim=True)
    place = torch.where(lines == value, torch.arange(x.shape[dim], device=x.device), -1).amax(-1, keepdim=True)
    if keepdim:
        return value.movedim(-1, dim), place.movedim(-1, dim)
    return value.squeeze(-1), place.squeeze(-1)


def _masked_scatter(x: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """Where the mask is set, the elements of the source in order."""
    x, mask = aten.broadcast_tensors([x, mask])
    place = mask.reshape(-1).cumsum(0) - 1
    taken = source.reshape(-1)[place.clamp(min=0)].view(x.shape)
    return torch.where(mask, taken, x)


def _masked_scatter_backward(grad: Tensor, mask: Tensor, sizes: Sequence[int]) -> Tensor:
    count = math.prod(sizes)
    mask = mask.expand_as(grad).reshape(-1)
    place = torch.where(mask, mask.cumsum(0) - 1, count)  # what is not taken goes to a place behind all
    return grad.new_zeros(count + 1).index_put((place,), grad.reshape(-1))[:count].view(sizes)


def _put_by_mask(x: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: bool = False) -> Any:
    """What a mask over some axes side by side selects gets one value each, in order, or all the same."""
    mask = indices[-1]
    is_empty = any(isinstance(size, int) and size == 0 for size in values.shape)
    is_alone = all(index is None for index in indices[:-1])
    if not is_alone or mask is None or mask.dtype != torch.bool or mask.dim() == 0 or is_empty:
        return NotImplemented
    behind = x.dim() - len(indices) + 1 - mask.dim()
    taken = values.to(x.dtype)
    if values.dim() > behind:
        dim = values.dim() - behind - 1
        place = (mask.reshape(-1).cumsum(0) - 1).clamp(0, values.shape[dim] - 1)
        taken = taken.index_select(dim, place).view(*values.shape[:dim], *mask.shape, *values.shape[dim + 1 :])
    return torch.where(mask[(..., *[None] * behind)], x + taken if accumulate else taken, x)


def _fake_quantize(x: Tensor, scale: Any, zero: Any, low: int, high: int) -> tuple[Tensor, Tensor]:
    steps = (x * (1.0 / scale)).round() + zero
    return (steps.clamp(low, high) - zero) * scale, (steps >= low) & (steps <= high)


def _fake_quantize_by_tensors(x: Tensor, scale: Tensor, zero: Tensor, enabled: Tensor, low: int, high: int) -> tuple[Tensor, Tensor]:
    is_on = enabled.reshape(-1)[0] != 0
    made, mask = _fake_quantize(x, scale.reshape(-1)[0], zero.reshape(-1)[0], low, high)
    return torch.where(is_on, made, x), mask | ~is_on


def _fake_quantize_channels(x: Tensor, scale: Tensor, zero: Tensor, axis: int, low: int, high: int) -> tuple[Tensor, Tensor]:
    line = [1] * x.dim()
    line[axis] = -1
    return _fake_quantize(x, scale.view(line), zero.view(line), low, high)


def _index_fill(x, dim, index, value):
    """Torch 2.11 copies what is no dense tensor into another, which AOTAutograd does not take."""
    value = torch.scalar_tensor(value, dtype=x.dtype, device=x.device) if not isinstance(value, torch.Tensor) else value.to(x.dtype)
    if x.dim() == 0:
        return value.expand_as(x) if index.numel() else x.clone()
    at = dim % x.dim()
    return aten.index_put(x, [*[None] * at, index.reshape(-1).long()], value)


def _vector_norm(x, ord=2, dim=None, keepdim=False, *, dtype=None):  # noqa: A002
    """Torch 2.11 keeps folded dims of one element."""
    kept = torch._refs.linalg.vector_norm(x, ord, dim, True, dtype=dtype)
    dims = [dim] if isinstance(dim, int) else dim
    return kept if keepdim else kept.squeeze(tuple(dims or range(x.dim())))


def _index_reduce(x: Tensor, axis: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True) -> Any:
    if x.dim() == 0 or source.dim() == 0:
        made = _index_reduce(x.reshape(-1), 0, index.reshape(-1), source.reshape(-1), reduce, include_self=include_self)
        return made.view(x.shape)
    line = [1] * source.dim()
    line[axis] = -1
    return x.scatter_reduce(axis, index.view(line).expand_as(source), source, reduce, include_self=include_self)


def _number_or(x: Tensor, y: Tensor, extreme: Tensor) -> Tensor:
    """The extreme of two, of which one may be no number."""
    return torch.where(x.isnan(), y, torch.where(y.isnan(), x, extreme))


def _median(x: Tensor) -> Tensor:
    return aten.median.dim(x.reshape(-1), 0)[0]


def _median_of_numbers(x: Tensor) -> Any:
    if x.numel() == 0:
        return NotImplemented
    line = x.reshape(-1).sort().values  # what is no number is last
    place = (line.isnan().logical_not().sum() - 1).clamp(min=0) // 2
    return line.gather(0, place.view(1)).view(())


def _renormed_rows(weight: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> Tensor:
    """Rows that are read are made no longer than that."""
    norm = torch.linalg.vector_norm(weight, norm_type, 1, keepdim=True)
    is_read = torch.zeros_like(norm[:, 0]).index_fill(0, indices.reshape(-1).long(), 1.0)[:, None] != 0
    return weight * torch.where(is_read & (norm > max_norm), max_norm / (norm + 1e-7), 1.0)


# Bags of rows of which the largest are taken; sums and means of bags have rows

_MAXIMA = 2


def _bags(indices: Tensor, offsets: Tensor, include_last_offset: bool, padding_idx: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Of each index its bag, of each bag how many count; the places of the indices, and which of these count."""
    starts = offsets[:-1] if include_last_offset else offsets
    place = torch.arange(indices.shape[0], device=indices.device)
    begins = starts.new_zeros(indices.shape[0] + 1).scatter_add(0, starts.long(), torch.ones_like(starts))
    bag = (begins.cumsum(0)[:-1] - 1).to(indices.dtype)
    is_counted = indices != padding_idx
    size = torch.zeros_like(starts).scatter_add(0, bag.long(), is_counted.to(starts.dtype))
    return bag, size, place, is_counted


def _embedding_bag_for_gradients(
    weight: Tensor, indices: Tensor, offsets: Tensor, scale_grad_by_freq: bool = False, mode: int = 0, sparse: bool = False,
    per_sample_weights: Tensor | None = None, include_last_offset: bool = False, padding_idx: int = -1,
) -> Any:  # fmt: skip
    """What the backward graph is handed beside the result is made on its own."""
    every = (weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset, padding_idx)
    if mode == _MAXIMA:
        return _embedding_bag(*every)
    bag, size, _, _ = _bags(indices, offsets, include_last_offset, padding_idx)
    return aten._embedding_bag_forward_only.default(*every)[0], bag, size, torch.zeros_like(size)


def _embedding_bag(
    weight: Tensor, indices: Tensor, offsets: Tensor, scale_grad_by_freq: bool = False, mode: int = 0, sparse: bool = False,
    per_sample_weights: Tensor | None = None, include_last_offset: bool = False, padding_idx: int = -1,
) -> Any:  # fmt: skip
    if mode != _MAXIMA:
        return NotImplemented
    bag, size, place, is_counted = _bags(indices, offsets, include_last_offset, padding_idx)
    shape = (size.shape[0], weight.shape[1])
    rows = torch.where(is_counted[:, None], weight[indices], -torch.inf)
    which = bag.long()[:, None].expand_as(rows)
    best = rows.new_full(shape, -torch.inf).scatter_reduce(0, which, rows, "amax")
    is_best = (rows == best.gather(0, which)) & is_counted[:, None]
    first = torch.where(is_best, place[:, None], place.shape[0])
    at = first.new_full(shape, place.shape[0]).scatter_reduce(0, which, first, "amin")
    found = indices[at.clamp(max=max(place.shape[0] - 1, 0))]
    is_empty = (size == 0)[:, None]
    return torch.where(is_empty, 0.0, best), bag, size, torch.where(is_empty, 0, found)


def _embedding_bag_backward(
    grad: Tensor, indices: Tensor, offsets: Tensor, bag: Tensor, size: Tensor, maximum: Tensor, rows: int, scale_grad_by_freq: bool,
    mode: int, sparse: bool, per_sample_weights: Tensor | None, padding_idx: int = -1,
) -> Any:  # fmt: skip
    if mode != _MAXIMA:
        return NotImplemented
    given = torch.where((size == 0)[:, None], 0.0, grad)
    return grad.new_zeros(rows, grad.shape[1]).scatter_add(0, maximum.long(), given)


def _bag_weights_backward(
    grad: Tensor, weight: Tensor, indices: Tensor, offsets: Tensor, bag: Tensor, mode: int, padding_idx: int = -1
) -> Tensor:
    products = (grad[bag.long()] * weight[indices]).sum(1)
    return torch.where(indices == padding_idx, 0.0, products)


# Images that are made smaller, and their gradients


def _smooth_aligned(smooth: Any) -> Callable[..., Any]:
    """With corners aligned torch takes the same places, of another scale: 0 for a single pixel."""
    def forward(
        x: Tensor, output_size: Sequence[int], align_corners: bool, scales_h: float | None = None, scales_w: float | None = None
    ) -> Any:
        extents = [*zip(x.shape[2:], output_size)]
        if not align_corners or not all(isinstance(extent, int) for pair in extents for extent in pair):
            return NotImplemented
        scales = [(wanted - 1) / (given - 1) if wanted > 1 and given > 1 else 1e30 for given, wanted in extents]
        return smooth(x, output_size, False, *scales)

    return forward


def _smooth_backward(smooth: Any) -> Callable[..., Any]:
    """Of an image that is made smaller line by line and column by column: two products with what becomes of single pixels."""
    def backward(
        grad: Tensor, output_size: Sequence[int], input_size: Sequence[int], align_corners: bool,
        scales_h: float | None = None, scales_w: float | None = None,
    ) -> Any:  # fmt: skip
        _, _, height, width = input_size
        if align_corners and not all(isinstance(extent, int) for extent in (height, width, *output_size)):
            return NotImplemented  # torch's own kernel has other places where there is one column
        pixel = torch.eye(height, device=grad.device, dtype=grad.dtype), torch.eye(width, device=grad.device, dtype=grad.dtype)
        lines = smooth(pixel[0][None, :, :, None], (output_size[0], 1), align_corners, scales_h, None)
        columns = smooth(pixel[1][None, :, None], (1, output_size[1]), align_corners, None, scales_w)
        return lines.reshape(height, output_size[0]) @ grad @ columns.reshape(width, output_size[1]).mT

    return backward


# Windows that are added where they were taken.

#: Windows of more steps are scattered.
_MOST_STEPS = 16


def _are_added(size: Any, step: Any, dilation: Any = 1) -> bool:
    return all(isinstance(each, int) for each in (size, step, dilation)) and size <= step * _MOST_STEPS and 1 in (step, dilation)


def _add_windows(windows: Tensor, extent: int, dim: int, step: int, dilation: int = 1) -> Tensor:
    """Of [.., count, .., size] in parts of one step, which lie side by side. The step or the dilation is 1."""
    count, size = windows.shape[dim], windows.shape[-1]
    steps, behind = -(-size // step), windows.dim() - 2 - dim
    parts = aten.constant_pad_nd(windows.movedim(-1, dim + 1), [0, 0] * behind + [0, steps * step - size]).unflatten(dim + 1, (steps, step))
    places, last = [i * dilation for i in range(steps)], (steps - 1) * dilation
    added = [aten.constant_pad_nd(parts.select(dim + 1, i), [0, 0] * (behind + 1) + [place, last - place]) for i, place in enumerate(places)]
    whole = functools.reduce(operator.add, added).flatten(dim, dim + 1)
    return aten.constant_pad_nd(whole, [0, 0] * behind + [0, extent - (count + last) * step])


def _unfold_backward(grad: Tensor, input_size: Sequence[int], dimension: int, size: int, step: int) -> Any:
    if not input_size or not _are_added(size, step):
        return decompositions.unfold_backward(grad, input_size, dimension, size, step)
    dim = dimension % len(input_size)
    return _add_windows(grad.expand(*input_size[:dim], grad.shape[dim], *input_size[dim + 1:], size), input_size[dim], dim, step)


def _fold(x: Tensor, output_size: Sequence[int], kernel: Sequence[int], dilation: Sequence[int], padding: Sequence[int],
          stride: Sequence[int]) -> Any:  # fmt: skip
    if not all(map(_are_added, kernel, stride, dilation)):
        return decompositions.col2im(x, output_size, kernel, dilation, padding, stride)
    extents = [extent + 2 * pad for extent, pad in zip(output_size, padding)]
    counts = [(e - d * (k - 1) - 1) // s + 1 for e, k, d, s in zip(extents, kernel, dilation, stride)]
    windows = x.reshape(*x.shape[:-2], x.shape[-2] // math.prod(kernel), *kernel, *counts).movedim(-3, -1)
    lines = _add_windows(windows, extents[1], windows.dim() - 2, stride[1], dilation[1])
    whole = _add_windows(lines.movedim(-3, -1), extents[0], lines.dim() - 3, stride[0], dilation[0])
    return aten.constant_pad_nd(whole, [-padding[1], -padding[1], -padding[0], -padding[0]])


def _split(x: Tensor, sizes: Sequence[int], dim: int = 0) -> list[Tensor]:
    """Slices are views, of which the whole is saved for a gradient instead of each part."""
    starts = [sum(sizes[:i]) for i in range(len(sizes))]
    return [x.narrow(dim, start, size) for start, size in zip(starts, sizes)]


def _split_even(x: Tensor, size: int, dim: int = 0) -> Any:
    extent = x.shape[dim]
    if not isinstance(extent, int) or not isinstance(size, int) or size < 1:
        return NotImplemented
    return _split(x, [min(size, extent - start) for start in range(0, extent, size)], dim)


#: Does torch keep floats of 16 bits there? Older releases have a product with floats of 32.
_KEEPS_HALVES = torch.ldexp(torch.zeros(1, dtype=torch.float16), torch.zeros(1, dtype=torch.int32)).dtype == torch.float16


def _ldexp(x: Tensor, places: Tensor) -> Tensor:
    """In three steps, as a power of all places may be too large, or zero, where the result is not."""
    dtype = torch.result_type(x, places)
    if places.is_complex():
        return x * torch.exp2(places)
    if x.is_complex():
        return torch.complex(_ldexp(x.real, places), _ldexp(x.imag, places))
    dtype = dtype if dtype.is_floating_point else torch.get_default_dtype()
    wide, most = (torch.float64, 2100) if dtype == torch.float64 else (torch.float32, 280)
    places = places.to(wide).clamp(-most, most)
    third = (places / 3).floor()
    step = torch.pow(2.0, third)
    result = x.to(wide) * step * step * torch.pow(2.0, places - 2 * third)
    return result.to(dtype) if _KEEPS_HALVES else result


def _with_strides(x: Tensor, strides: Sequence[int]) -> Tensor:
    """A copy that lies so, without gaps, as torch's decompositions ask where they gave another order of axes."""
    order = sorted(range(x.dim()), key=lambda axis: strides[axis], reverse=True)
    return x.permute(order).clone(memory_format=torch.contiguous_format).permute([order.index(axis) for axis in range(x.dim())])


#: Beside torch's tables.
DECOMPOSITIONS: dict[Any, Callable[..., Any]] = {
    **_foreach_decompositions(),
    aten._cdist_backward.default: _distances_backward,
    aten._cdist_forward.default: _distances,
    aten._embedding_bag.default: _embedding_bag_for_gradients,
    aten._embedding_bag_backward.default: _embedding_bag_backward,
    aten._embedding_bag_forward_only.default: _embedding_bag,
    aten._embedding_bag_per_sample_weights_backward.default: _bag_weights_backward,
    aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams.default: _fake_quantize_by_tensors,
    aten._int_mm.default: lambda x, y: x.to(torch.int32) @ y.to(torch.int32),
    aten._pdist_backward.default: _distances_of_pairs_backward,
    aten._pdist_forward.default: _distances_of_pairs,
    aten._upsample_bicubic2d_aa.default: _smooth_aligned(aten._upsample_bicubic2d_aa.default),
    aten._upsample_bicubic2d_aa_backward.default: _smooth_backward(aten._upsample_bicubic2d_aa.default),
    aten._upsample_bilinear2d_aa.default: _smooth_aligned(aten._upsample_bilinear2d_aa.default),
    aten._upsample_bilinear2d_aa_backward.default: _smooth_backward(aten._upsample_bilinear2d_aa.default),
    aten._trilinear.default: _of_three,
    aten.addbmm.default: _add_products,
    aten.addmv.default: _add_products,
    aten.col2im.default: _fold,
    aten.dist.default: lambda x, y, p=2: torch.linalg.vector_norm(x - y, p),
    aten.embedding_renorm.default: _renormed_rows,
    aten.fake_quantize_per_channel_affine_cachemask.default: _fake_quantize_channels,
    aten.fake_quantize_per_tensor_affine_cachemask.default: _fake_quantize,
    aten.fmax.default: lambda x, y: _number_or(x, y, torch.maximum(x, y)),
    aten.fmin.default: lambda x, y: _number_or(x, y, torch.minimum(x, y)),
    aten.index_fill.int_Scalar: _index_fill,
    aten.index_fill.int_Tensor: _index_fill,
    aten.index_put.default: _put_by_mask,
    aten.index_reduce.default: _index_reduce,
    aten.ldexp.Tensor: _ldexp,
    aten.linalg_vector_norm.default: _vector_norm,
    aten.masked_scatter.default: _masked_scatter,
    aten.masked_scatter_backward.default: _masked_scatter_backward,
    aten.median.default: _median,
    aten.mode.default: _mode,
    aten.nanmedian.default: _median_of_numbers,
    aten.split.Tensor: _split_even,
    aten.split_with_sizes.default: _split,
    aten.unbind.int: lambda x, dim=0: [x.select(dim, i) for i in range(x.shape[dim])],
    aten.unfold_backward.default: _unfold_backward,
    torch.ops.prims.copy_strided.default: _with_strides,
}
