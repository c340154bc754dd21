"""Reductions of segments of rows, and segments with padding behind each, in terms of operations that have rows.

Each function computes what its operation does. It returns NotImplemented for what it does not serve, which torch runs then.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch

aten = torch.ops.aten
Tensor = torch.Tensor

#: What a segment without elements is, and how rows are added to a table.
_REDUCTIONS = {"sum": (0.0, "sum"), "mean": (0.0, "sum"), "max": (-torch.inf, "amax"), "min": (torch.inf, "amin")}


def _lengths(lengths: Tensor | None, offsets: Tensor | None) -> Tensor:
    return lengths if lengths is not None else offsets.diff()


def _segments(data: Tensor, lengths: Tensor) -> Tensor:
    """The number of each row's segment; that of no segment behind the last one."""
    return torch.searchsorted(lengths.cumsum(0), torch.arange(data.shape[0], dtype=lengths.dtype, device=data.device), right=True)


def _by_row(numbers: Tensor, data: Tensor) -> Tensor:
    return numbers.view(-1, *[1] * (data.dim() - 1))


def _is_served(data: Tensor, reduce: str, lengths: Tensor | None, offsets: Tensor | None, axis: int) -> bool:
    return axis == 0 and reduce in _REDUCTIONS and (lengths is not None or offsets is not None) and _lengths(lengths, offsets).dim() == 1


def _reduce(data: Tensor, reduce: str, *, lengths: Tensor | None = None, indices: Tensor | None = None, offsets: Tensor | None = None,
            axis: int = 0, unsafe: bool = False, initial: float | None = None) -> Any:  # fmt: skip
    if not _is_served(data, reduce, lengths, offsets, axis) or indices is not None:
        return NotImplemented
    counts = _lengths(lengths, offsets)
    neutral, how = _REDUCTIONS[reduce]
    table = data.new_full((counts.shape[0] + 1, *data.shape[1:]), neutral if initial is None else initial)
    place = _by_row(_segments(data, counts), data).expand_as(data)
    folded = table.scatter_reduce(0, place, data, how)[:-1]
    if reduce != "mean":
        return folded
    means = folded / _by_row(counts, data)  # nan where there is nothing
    return means if initial is None else torch.where(_by_row(counts, data) == 0, folded, means)


def _reduce_backward(grad: Tensor, output: Tensor, data: Tensor, reduce: str, *, lengths: Tensor | None = None,
                     offsets: Tensor | None = None, axis: int = 0, initial: float | None = None) -> Any:  # fmt: skip
    if not _is_served(data, reduce, lengths, offsets, axis):
        return NotImplemented
    counts = _lengths(lengths, offsets)
    place = _segments(data, counts).clamp(max=counts.shape[0] - 1)
    if reduce == "sum":
        return grad[place]
    if reduce == "mean":
        return grad[place] / _by_row(counts[place], data)
    hits = ((data == output[place]) | data.isnan()).to(data.dtype)
    reached = grad[place] * hits
    shared = reached / torch.zeros_like(output).index_add(0, place, hits)[place]
    return torch.where(reached > 0, shared, reached)  # equal rows share what is positive, as torch has it


def _pad(values: Tensor, offsets: Sequence[Tensor], max_lengths: Sequence[int], padding_value: float = 0.0) -> Any:
    """[rows, ..] -> [segments, places, ..]."""
    if len(offsets) != 1 or values.shape[0] == 0:
        return NotImplemented
    starts = offsets[0].unsqueeze(1)
    row = starts[:-1] + torch.arange(max_lengths[0], dtype=starts.dtype, device=starts.device)
    is_set = row < starts[1:]
    found = values[torch.where(is_set, row, 0)]
    return torch.where(is_set.view(*row.shape, *[1] * (values.dim() - 1)), found, padding_value)


def _without_padding(dense: Tensor, offsets: Sequence[Tensor], total_L: int | None = None) -> Any:  # noqa: N803 torch's name
    if len(offsets) != 1 or total_L is None or dense.shape[0] == 0 or dense.shape[1] == 0:
        return NotImplemented
    starts = offsets[0]
    row = torch.arange(total_L, dtype=starts.dtype, device=starts.device)
    segment = torch.searchsorted(starts[1:], row, right=True)
    return dense[segment, row - starts[segment]]


#: Beside torch's tables.
DECOMPOSITIONS: dict[Any, Callable[..., Any]] = {
    aten._jagged_to_padded_dense_forward.default: _pad,
    aten._padded_dense_to_jagged_forward.default: _without_padding,
    aten._segment_reduce_backward.default: _reduce_backward,
    aten.segment_reduce.default: _reduce,
}
