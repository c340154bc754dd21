"""Operations of torchvision that read images at places that are computed, in terms of others: deformable convolutions, regions."""

import sys
from collections.abc import Callable, Iterator
from typing import Any

import torch

Tensor = torch.Tensor


def _corners(y: Tensor, x: Tensor) -> Iterator[tuple[Tensor, Tensor, Tensor, Tensor, int, int]]:
    """Of places between pixels the four around them: row, column, how much of the place is theirs down and across, and the
    directions in which that grows."""
    top, left = y.floor(), x.floor()
    for i, j in ((0, 0), (0, 1), (1, 0), (1, 1)):
        row, column = top + i, left + j
        yield row, column, 1 - (y - row).abs(), 1 - (x - column).abs(), 2 * i - 1, 2 * j - 1


# Deformable convolutions. Places are [batch, groups of offsets, taps, rows, columns], and flat behind the groups.


def _taps(offset: Tensor, kernel: tuple[int, int], stride: tuple[int, int], padding: tuple[int, int], dilation: tuple[int, int],
          groups: int) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The rows and columns that each result reads."""
    batch, _, height, width = offset.shape
    given = offset.view(batch, groups, kernel[0], kernel[1], 2, height, width)

    def line(count: int, step: int, start: int = 0) -> Tensor:
        return torch.arange(count, device=offset.device).to(offset.dtype) * step + start

    y = given[:, :, :, :, 0] + line(height, stride[0], -padding[0])[:, None] + line(kernel[0], dilation[0])[:, None, None, None]
    x = given[:, :, :, :, 1] + line(width, stride[1], -padding[1]) + line(kernel[1], dilation[1])[:, None, None]
    return y.flatten(2), x.flatten(2)


def _inside(row: Tensor, column: Tensor, image: Tensor) -> tuple[Tensor, Tensor]:
    """Which pixels there are, and their numbers [batch, groups, channels, places]. The image is [batch, groups, channels, rows,
    columns]."""
    height, width = image.shape[-2:]
    is_inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
    place = (row.clamp(0, height - 1) * width + column.clamp(0, width - 1)).long()
    return is_inside, place[:, :, None].expand(-1, -1, image.shape[2], -1)


def _read(image: Tensor, y: Tensor, x: Tensor) -> Tensor:
    flat = image.flatten(3)
    total = None
    for row, column, down, across, _, _ in _corners(y, x):
        is_inside, place = _inside(row, column, image)
        value = flat.gather(3, place) * torch.where(is_inside, down * across, 0.0)[:, :, None]
        total = value if total is None else total + value
    return total


def _deform_conv(
    image: Tensor, weight: Tensor, offset: Tensor, mask: Tensor, bias: Tensor, stride_h: int, stride_w: int, pad_h: int, pad_w: int,
    dil_h: int, dil_w: int, groups: int, offset_groups: int, use_mask: bool,
) -> Any:  # fmt: skip
    """As torchvision's: the pixels of each tap, times filters."""
    (batch, channels, height, width), outputs = image.shape, weight.shape[0]
    kernel = (weight.shape[2], weight.shape[3])
    y, x = _taps(offset, kernel, (stride_h, stride_w), (pad_h, pad_w), (dil_h, dil_w), offset_groups)
    read = _read(image.view(batch, offset_groups, channels // offset_groups, height, width), y, x)
    if use_mask:
        read = read * mask.view(batch, offset_groups, 1, -1)
    columns = read.reshape(batch, groups, weight[0].numel(), -1)
    result = weight.reshape(groups, outputs // groups, -1) @ columns
    return result.view(batch, outputs, *offset.shape[2:]) + bias.view(-1, 1, 1)


def _deform_conv_backward(
    grad: Tensor, image: Tensor, weight: Tensor, offset: Tensor, mask: Tensor, bias: Tensor, stride_h: int, stride_w: int, pad_h: int,
    pad_w: int, dil_h: int, dil_w: int, groups: int, offset_groups: int, use_mask: bool,
) -> Any:  # fmt: skip
    (batch, channels, height, width), outputs = image.shape, weight.shape[0]
    kernel = (weight.shape[2], weight.shape[3])
    y, x = _taps(offset, kernel, (stride_h, stride_w), (pad_h, pad_w), (dil_h, dil_w), offset_groups)
    images = image.view(batch, offset_groups, channels // offset_groups, height, width)
    flat = images.flatten(3)
    read = _read(images, y, x)
    given = grad.reshape(batch, groups, outputs // groups, -1)
    filters = weight.reshape(groups, outputs // groups, -1)
    share = mask.view(batch, offset_groups, 1, -1) if use_mask else torch.ones_like(y)[:, :, None]
    to_columns = (filters.mT @ given).view_as(read)
    to_weight = (given @ (read * share).reshape(batch, groups, weight[0].numel(), -1).mT).sum(0).view_as(weight)
    to_mask = (to_columns * read).sum(2).view_as(mask) if use_mask else torch.zeros_like(mask)
    to_read = to_columns * share
    to_image, to_y, to_x = torch.zeros_like(flat), torch.zeros_like(y), torch.zeros_like(x)
    for row, column, down, across, downward, rightward in _corners(y, x):
        is_inside, place = _inside(row, column, images)
        to_image = to_image.scatter_add(3, place, to_read * torch.where(is_inside, down * across, 0.0)[:, :, None])
        slope = torch.where(is_inside, (flat.gather(3, place) * to_read).sum(2), 0.0)
        to_y, to_x = to_y + slope * across * downward, to_x + slope * down * rightward
    taps = (batch, offset_groups, kernel[0] * kernel[1], *offset.shape[2:])
    to_offset = torch.stack([to_y.view(taps), to_x.view(taps)], 3).view_as(offset)
    return to_image.view_as(image), to_weight, to_offset, to_mask, grad.sum((0, 2, 3))


# Regions: the mean of `ratio` x `ratio` places in each of the parts of a region.


def _region_corners(
    regions: Tensor, scale: float, parts: tuple[int, int], ratio: int, aligned: bool, size: tuple[int, int]
) -> Iterator[tuple[Tensor, Tensor]]:
    """The numbers of pixels among those of all images, and their weights: [regions, places down, places across]."""
    ends = regions[:, 1:] * scale - (0.5 if aligned else 0.0)
    image = regions[:, 0].long()

    def places(start: Tensor, end: Tensor, count: int) -> Tensor:
        extent = end - start if aligned else (end - start).clamp(min=1.0)
        steps = torch.arange(count * ratio, device=regions.device).to(regions.dtype)
        return start[:, None] + (steps + 0.5) * (extent / count)[:, None] / ratio

    def neighbours(place: Tensor, extent: int) -> list[tuple[Tensor, Tensor]]:
        is_inside = (place >= -1) & (place <= extent)
        place = place.clamp(0, extent - 1)
        low = place.floor().clamp(max=extent - 1)
        rest = place - low
        return [(low.long(), torch.where(is_inside, 1 - rest, 0.0)),
                ((low + 1).clamp(max=extent - 1).long(), torch.where(is_inside, rest, 0.0))]  # fmt: skip

    down = neighbours(places(ends[:, 1], ends[:, 3], parts[0]), size[0])
    across = neighbours(places(ends[:, 0], ends[:, 2], parts[1]), size[1])
    for row, row_weight in down:
        for column, column_weight in across:
            number = (image[:, None, None] * size[0] + row[:, :, None]) * size[1] + column[:, None, :]
            yield number, row_weight[:, :, None] * column_weight[:, None, :] / ratio**2


def _roi_align(image: Tensor, regions: Tensor, scale: float, down: int, across: int, ratio: int, aligned: bool) -> Any:
    if ratio <= 0:
        return NotImplemented  # as many places as a region has pixels
    (batch, channels, height, width), count = image.shape, regions.shape[0]
    flat = image.permute(1, 0, 2, 3).reshape(channels, batch * height * width)
    total = None
    for number, weight in _region_corners(regions, scale, (down, across), ratio, aligned, (height, width)):
        value = flat.index_select(1, number.flatten()).view(channels, *number.shape) * weight
        total = value if total is None else total + value
    parts = total.view(channels, count, down, ratio, across, ratio).sum((3, 5))
    return parts.permute(1, 0, 2, 3).contiguous()


def _roi_align_backward(
    grad: Tensor, regions: Tensor, scale: float, down: int, across: int, batch: int, channels: int, height: int, width: int, ratio: int,
    aligned: bool,
) -> Any:  # fmt: skip
    if ratio <= 0:
        return NotImplemented
    given = grad.permute(1, 0, 2, 3).repeat_interleave(ratio, 2).repeat_interleave(ratio, 3)
    flat = grad.new_zeros(channels, batch * height * width)
    for number, weight in _region_corners(regions, scale, (down, across), ratio, aligned, (height, width)):
        flat = flat.index_add(1, number.flatten(), (given * weight).flatten(1))
    return flat.view(channels, batch, height, width).permute(1, 0, 2, 3).contiguous()


#: By torchvision's names.
_FUNCTIONS = {
    "deform_conv2d": _deform_conv, "_deform_conv2d_backward": _deform_conv_backward, "roi_align": _roi_align,
    "_roi_align_backward": _roi_align_backward,
}  # fmt: skip


def decompositions() -> dict[Any, Callable[..., Any]]:
    """Nothing where torchvision is not in use."""
    if "torchvision" not in sys.modules:
        return {}
    found = {getattr(torch.ops.torchvision, name, None): function for name, function in _FUNCTIONS.items()}
    return {packet.default: function for packet, function in found.items() if packet is not None}
