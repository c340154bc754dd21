"""Gradients of images and volumes that are read at places of a grid, in terms of other operations."""

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import torch

aten = torch.ops.aten
Tensor = torch.Tensor


def _reflected(x: Tensor, low: float, high: float) -> tuple[Tensor, Tensor]:
    """What is outside comes back; and how it moves then."""
    if low == high:
        return torch.zeros_like(x), torch.zeros_like(x)
    start, span = low / 2, (high - low) / 2
    gap = (x - start).abs()
    rest = gap.remainder(span)
    is_turned = (gap / span).floor().remainder(2) != 0
    slope = torch.where((x < start) != is_turned, -1.0, 1.0).to(x.dtype)
    return torch.where(is_turned, span - rest, rest) + start, slope


def _grid_places(grid: Tensor, size: int, padding: int, align: bool) -> tuple[Tensor, Tensor]:
    """Of numbers from -1 to 1 the places among so many pixels, and how fast they move."""
    slope = torch.full_like(grid, (size - 1) / 2 if align else size / 2)
    x = (grid + 1) / 2 * (size - 1) if align else ((grid + 1) * size - 1) / 2
    if padding == 2:
        x, turn = _reflected(x, 0, 2 * (size - 1)) if align else _reflected(x, -1, 2 * size - 1)
        slope = slope * turn
    if padding != 0:
        slope = torch.where((x > 0) & (x < size - 1), slope, 0.0)
        x = x.clamp(0, size - 1)
    return x, slope


def _cubic_taps(t: Tensor) -> list[tuple[Tensor, Tensor]]:
    """Shares of the four elements around a place that is t behind the second, and how they change."""
    a = -0.75

    def outer(d: Tensor) -> tuple[Tensor, Tensor]:
        return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a, (3 * a * d - 10 * a) * d + 8 * a

    def inner(d: Tensor) -> tuple[Tensor, Tensor]:
        return ((a + 2) * d - (a + 3)) * d * d + 1, (3 * (a + 2) * d - 2 * (a + 3)) * d

    rising, falling = [outer(t + 1), inner(t)], [inner(1 - t), outer(2 - t)]
    return rising + [(share, -change) for share, change in falling]


def _taps(x: Tensor, mode: int) -> list[tuple[Tensor, Tensor, Tensor]]:
    """The elements that a place draws from: which, its share, and how that changes with the place."""
    ones = torch.ones_like(x)
    if mode == 1:
        return [(x.round(), ones, torch.zeros_like(x))]
    first = x.floor()
    t = x - first
    if mode == 0:
        return [(first, 1 - t, -ones), (first + 1, t, ones)]
    return [(first + (i - 1), share, change) for i, (share, change) in enumerate(_cubic_taps(t))]


def _inside(tap: Tensor, size: int, padding: int, align: bool) -> Tensor:
    """An element near the border, as the padding has it; 0: it may stay outside."""
    if padding == 2:
        tap = _reflected(tap, *((0, 2 * (size - 1)) if align else (-1, 2 * size - 1)))[0].round()
    return tap if padding == 0 else tap.clamp(0, size - 1)


def _grid_sample_backward(
    grad: Tensor, image: Tensor, grid: Tensor, mode: int, padding: int, align_corners: bool, output_mask: Sequence[bool]
) -> Any:
    """Of bilinear (0), nearest (1) and cubic (2) reading: each pixel near a place adds to the gradients, with its share of it."""
    channels, sizes, flat = image.shape[1], image.shape[2:], image.flatten(2)
    given = grad.flatten(2)
    of_places = 0 if mode == 2 else padding  # of cubic reading not places but elements are padded
    read = [_grid_places(grid[..., -1 - i], size, of_places, align_corners) for i, size in enumerate(sizes)]
    taps = [[(_inside(at, size, padding, align_corners), *rest) for at, *rest in _taps(x, mode)] for (x, _), size in zip(read, sizes)]
    to_image, to_grid = torch.zeros_like(flat), [torch.zeros_like(x) for x, _ in read]
    for chosen in itertools.product(*taps):
        is_inside, place = torch.ones_like(chosen[0][0], dtype=torch.bool), torch.zeros_like(chosen[0][0])
        for (each, *_), size in zip(chosen, sizes):
            is_inside = is_inside & (each >= 0) & (each < size)
            place = place * size + each.clamp(0, size - 1)
        shares = [share for _, share, _ in chosen]
        place = place.long().flatten(1)[:, None].expand(-1, channels, -1)
        whole = torch.where(is_inside, _product(shares), 0.0).flatten(1)[:, None]
        to_image = to_image.scatter_add(2, place, given * whole)
        if mode != 1:
            value = torch.where(is_inside, (flat.gather(2, place) * given).sum(1).view_as(shares[0]), 0.0)
            to_grid = [sum_ + value * _product(shares[:i] + shares[i + 1:] + [chosen[i][2]]) for i, sum_ in enumerate(to_grid)]
    slopes = [sum_ * slope for sum_, (_, slope) in zip(to_grid, read)]
    return to_image.view_as(image) if output_mask[0] else None, torch.stack(slopes[::-1], -1)


def _product(factors: Sequence[Tensor]) -> Tensor:
    whole = factors[0]
    for factor in factors[1:]:
        whole = whole * factor
    return whole


#: Beside torch's tables.
DECOMPOSITIONS: dict[Any, Callable[..., Any]] = {
    aten.grid_sampler_2d_backward.default: _grid_sample_backward,
    aten.grid_sampler_3d_backward.default: _grid_sample_backward,
}
