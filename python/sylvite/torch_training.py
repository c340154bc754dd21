"""What graphs with gradients dissolve, norms and losses in terms of sums and work on each element; and how they become two.

The backward pass computes that work again of what is saved anyway, where an operation as a whole would be saved in f32. Each
function computes what its operation does; NotImplemented leaves it as it is.
"""

import functools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._functorch import config as functorch_config
from torch._functorch.partitioners import min_cut_rematerialization_partition
from torch.utils.checkpoint import CheckpointPolicy

from .torch_random import replace_draws
from .torch_rewrites import take_branches
from .torch_views import root_of, view_chain

aten = torch.ops.aten
Tensor = torch.Tensor


def _wide(x: Tensor) -> Tensor:
    return x.float() if x.dtype in (torch.bfloat16, torch.float16) else x


# Group normalisation. Images stay images, whose channels may lie innermost: sums are over pixels first.


def _pixels(x: Tensor) -> list[int]:
    return list(range(2, x.dim()))


def _of_groups(channels: Tensor, groups: int) -> Tensor:
    """[images, channels] -> [images, groups]."""
    return channels.reshape(channels.shape[0], groups, channels.shape[1] // groups).sum(2)


def _of_channels(group: Tensor, x: Tensor) -> Tensor:
    """[images, groups] -> as an operand of work on the image."""
    images, groups = group.shape
    channels = group.unsqueeze(-1).expand(images, groups, x.shape[1] // groups)
    return channels.reshape(images, x.shape[1], *[1] * (x.dim() - 2))


def _vector(weight: Tensor, x: Tensor) -> Tensor:
    return _wide(weight).reshape(1, -1, *[1] * (x.dim() - 2))


def _group_norm(
    x: Tensor, weight: Tensor | None, bias: Tensor | None, images: int, channels: int, pixels: int, groups: int, eps: float
) -> Any:
    if x.dim() < 3:
        value, mean, inverse = _group_norm(x.unsqueeze(-1), weight, bias, images, channels, pixels, groups, eps)
        return value.squeeze(-1), mean, inverse
    count = channels // groups * pixels
    wide = _wide(x)
    mean = _of_groups(wide.sum(_pixels(x)), groups) / count
    centered = wide - _of_channels(mean, x)
    inverse = (_of_groups((centered * centered).sum(_pixels(x)), groups) / count + eps).rsqrt()
    value = centered * _of_channels(inverse, x)
    value = value if weight is None else value * _vector(weight, x)
    value = value if bias is None else value + _vector(bias, x)
    return value.to(x.dtype), mean.to(x.dtype), inverse.to(x.dtype)


def _group_norm_backward(
    grad: Tensor, x: Tensor, mean: Tensor, inverse: Tensor, weight: Tensor | None, images: int, channels: int, pixels: int,
    groups: int, output_mask: Sequence[bool],
) -> Any:  # fmt: skip
    if x.dim() < 3:
        line, columns = grad.unsqueeze(-1), x.unsqueeze(-1)
        to_x, to_weight, to_bias = _group_norm_backward(line, columns, mean, inverse, weight, images, channels, pixels, groups, output_mask)
        return None if to_x is None else to_x.squeeze(-1), to_weight, to_bias
    count = channels // groups * pixels
    wide, centered = _wide(grad), _wide(x) - _of_channels(_wide(mean), x)
    sums, products = wide.sum(_pixels(x)), (wide * centered).sum(_pixels(x))  # [images, channels]
    scale = _wide(inverse)
    to_x = to_weight = to_bias = None
    if output_mask[0]:
        vector = None if weight is None else _wide(weight).unsqueeze(0)
        of_grad = _of_groups(sums if vector is None else sums * vector, groups) * scale / count
        of_slope = _of_groups(products if vector is None else products * vector, groups) * scale * scale * scale / count
        scaled = wide if weight is None else wide * _vector(weight, x)
        to_x = scaled * _of_channels(scale, x) - _of_channels(of_grad, x) - centered * _of_channels(of_slope, x)
        to_x = to_x.to(x.dtype)
    if output_mask[1]:
        to_weight = (products * _of_channels(scale, x).flatten(1)).sum(0)
    if output_mask[2]:
        to_bias = sums.sum(0)
    parameter = x.dtype if weight is None else weight.dtype
    return to_x, None if to_weight is None else to_weight.to(parameter), None if to_bias is None else to_bias.to(parameter)


# Losses of classes. Of each row the backward pass reads the scores as they were, and two numbers.


def _log_softmax(x: Tensor, dim: int, half_to_float: bool) -> Tensor:
    if x.dim() == 0 or x.shape[dim] == 0:
        return NotImplemented
    wide = _wide(x)
    shifted = wide - wide.amax(dim, True)
    value = shifted - shifted.exp().sum(dim, True).log()
    return value if half_to_float else value.to(x.dtype)


def _nll_loss_backward(
    grad: Tensor, x: Tensor, target: Tensor, weight: Tensor | None, reduction: int, ignore_index: int, total: Tensor
) -> Tensor:
    """A class is compared with the target, as no memory is filled and written to then."""
    dim = 0 if x.dim() < 2 else 1
    if reduction == 1:
        grad = grad / total
    target = (target[0] if x.dim() == 1 and target.dim() > 0 else target).unsqueeze(dim)
    classes = torch.arange(x.shape[dim], device=x.device, dtype=target.dtype)
    classes = classes.reshape([-1 if i == dim else 1 for i in range(x.dim())])
    slope = -grad.unsqueeze(dim) if reduction == 0 else -grad
    if weight is not None:
        slope = slope * weight.reshape(classes.shape)
    return torch.where((target == classes) & (target != ignore_index), slope, 0.0).to(x.dtype)


# Resizing by weights of two neighbours, line by line and column by column: two products, whose gradients are products.


def _weights(given: int, wanted: int, scale: float | None, align_corners: bool, x: Tensor) -> Tensor:
    """What each of `wanted` places takes of the `given` ones; a scale is of the caller's."""
    places = torch.arange(wanted, device=x.device, dtype=torch.float32)
    if align_corners:
        places = places * ((given - 1) / (wanted - 1) if wanted > 1 else 0.0)
    else:
        places = (places + 0.5) * (given / wanted if scale is None else 1 / scale) - 0.5
    apart = places.clamp(0, given - 1).unsqueeze(1) - torch.arange(given, device=x.device, dtype=torch.float32)
    return (1 - apart.abs()).clamp(min=0).to(x.dtype)


def _resize(
    input: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None, antialias: bool = False,
) -> Tensor:  # fmt: skip
    as_torch = functools.partial(torch.nn.functional.interpolate, input, size, scale_factor, mode, align_corners,
                                 recompute_scale_factor, antialias)  # fmt: skip
    if mode != "bilinear" or antialias or input.dim() != 4 or input.dtype not in (torch.bfloat16, torch.float16):
        return as_torch()
    images, channels, height, width = input.shape
    pair = size if size is not None else scale_factor
    pair = tuple(pair) if isinstance(pair, (tuple, list)) else (pair, pair)
    wanted = pair if size is not None else tuple(math.floor(extent * scale) for extent, scale in zip((height, width), pair))
    if not all(isinstance(extent, int) for extent in (images, channels, height, width, *wanted)):
        return as_torch()
    scales = (None, None) if size is not None or recompute_scale_factor else pair
    lines = _weights(height, wanted[0], scales[0], bool(align_corners), input)
    columns = _weights(width, wanted[1], scales[1], bool(align_corners), input)
    rows = lines @ input.permute(0, 2, 3, 1).reshape(images, height, width * channels)
    pixels = columns @ rows.reshape(images * wanted[0], width, channels)
    return pixels.reshape(images, wanted[0], wanted[1], channels).permute(0, 3, 1, 2)


def resize_by_products(module: torch.fx.GraphModule) -> None:
    """Replaces resizing in Dynamo's graph, on a GPU, by the function above."""
    for node in module.graph.find_nodes(op="call_function", target=torch.nn.functional.interpolate):
        given = node.args[0] if node.args else node.kwargs["input"]
        if given.meta["example_value"].device.type == "cuda":
            node.target = _resize
    module.recompile()


# Inputs that the forward pass writes. The backward pass runs later and would read the new values in their memory.


def keep_old_values(module: torch.fx.GraphModule) -> None:
    """In a joint graph: what reads the old value of such an input reads a copy, which is saved for gradients, not the input."""
    written = {node.args[0] for node in module.graph.find_nodes(op="call_function", target=aten.copy_.default)}
    places = module.graph.find_nodes(op="placeholder")
    for place in written.intersection(places):
        readers = [user for user in place.users if user.target is not aten.copy_.default and user.op != "output"]
        if not readers:
            continue
        with module.graph.inserting_after(places[-1]):
            old = module.graph.call_function(aten.clone.default, (place,))
        old.meta = {"val": place.meta["val"].clone(), "recompute": CheckpointPolicy.MUST_SAVE, "old_value": True}
        place.meta["aot_runtime_epilogue_input_mutation"] = True  # torch's name for what cannot be saved, where it has one
        for reader in readers:
            reader.replace_input_with(place, old)


def drop_old_values(module: torch.fx.GraphModule) -> None:
    """In a forward graph: the copies that gradients do not read, nor views of them."""
    outputs = module.graph.find_nodes(op="output")[0].all_input_nodes
    for node in list(module.graph.nodes):
        if node.meta.get("old_value") and not any(each is node or view_chain(each, {node}) for each in outputs):
            node.replace_all_uses_with(node.args[0])
            module.graph.erase_node(node)
    module.recompile()


#: Of graphs with gradients, beside the other tables.
DECOMPOSITIONS: dict[Any, Callable[..., Any]] = {
    aten._log_softmax.default: _log_softmax,
    aten.native_group_norm.default: _group_norm,
    aten.native_group_norm_backward.default: _group_norm_backward,
    aten.nll_loss2d_backward.default: _nll_loss_backward,
    aten.nll_loss_backward.default: _nll_loss_backward,
}


# Both graphs of a joint one.


def keep_saved() -> None:
    """For a backward graph that is compiled now: it writes nothing into what the forward pass saved, so that it can run again
    (retain_graph), which torch refuses else."""
    context = torch._guards.TracingContext.try_get()
    donated = getattr(getattr(context, "fw_metadata", None), "bw_donated_idxs", None)
    if donated:
        donated.clear()


def drop_detaches(module: torch.fx.GraphModule) -> None:
    """What gradients keep of a result is that result: else torch takes it for one that must be in memory, and saves it."""
    for node in module.graph.find_nodes(op="call_function", target=torch.ops.aten.detach.default):
        source = node.args[0]
        if source.op == "call_function" and all(user.op == "call_function" for user in node.users):
            node.replace_all_uses_with(source)
            module.graph.erase_node(node)


def keep_compared(module: torch.fx.GraphModule) -> None:
    """What is compared with its own extreme, as the gradients of amax do, is saved as that saw it: made again, sums may round otherwise,
    so that no element is the extreme, and the gradient is shared among none."""
    for node in module.graph.find_nodes(op="call_function", target=aten.eq.Tensor):
        for side in map(root_of, node.all_input_nodes):
            if side.op == "call_function" and side.meta["val"].is_floating_point():
                side.meta["recompute"] = CheckpointPolicy.MUST_SAVE


def _is_repeatable(node: torch.fx.Node) -> bool:
    """Does it give the same wherever it stands?"""
    if node.target is operator.getitem:
        return True
    op = node.target
    return (
        isinstance(op, torch._ops.OpOverload)
        and not op._schema.is_mutable
        and torch.Tag.nondeterministic_seeded not in op.tags
        and op.overloadpacket not in (aten.empty, aten.empty_strided)
    )


def repeat_constants(module: torch.fx.GraphModule) -> None:
    """In a joint graph: what depends on no input, and gradients read, is computed for these again. Saved it would be memory, and a mask
    one of which nothing is known."""
    constant: set[torch.fx.Node] = set()
    of_gradients: set[torch.fx.Node] = set()
    copies: dict[torch.fx.Node, torch.fx.Node] = {}

    def copy_of(node: torch.fx.Node) -> torch.fx.Node:
        if node not in copies:
            for source in node.all_input_nodes:
                copy_of(source)
            copies[node] = module.graph.node_copy(node, copies.__getitem__)
        return copies[node]

    for node in list(module.graph.nodes):
        if node.op == "placeholder" and node.name.startswith("tangents"):
            of_gradients.add(node)
        elif node.op == "call_function":
            if not of_gradients.isdisjoint(node.all_input_nodes):
                of_gradients.add(node)
                with module.graph.inserting_before(node):
                    for source in constant.intersection(node.all_input_nodes):
                        node.replace_input_with(source, copy_of(source))
            elif _is_repeatable(node) and constant.issuperset(node.all_input_nodes):
                constant.add(node)


def partition(module: torch.fx.GraphModule, *arguments: Any, **keywords: Any) -> Any:
    """Forward and backward of a joint graph, with the same draws in both. What views show is saved, not each view of it."""
    take_branches(module)
    replace_draws(module)
    drop_detaches(module)
    keep_old_values(module)
    keep_compared(module)
    repeat_constants(module)
    with functorch_config.patch(recompute_views=True):
        forward, backward = min_cut_rematerialization_partition(module, *arguments, **keywords)
    drop_old_values(forward)
    return forward, backward
