"""How images lie between a forward graph on a GPU and its backward graph.

What a forward graph saves for the backward one lies as eager's would: channel after channel, unless the model's memory format is
another. Convolutions on a GPU take and make images with their channels innermost, so saved images stay so, and neither graph
moves them.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.fx import GraphModule, Node

from .torch_graph import STRIDED, computes
from .torch_rewrites import outputs_of


def _is_image(value: Any) -> bool:
    """Of fixed sizes, and channels that fill vectors."""
    return (isinstance(value, torch.Tensor) and value.dim() == 4 and all(isinstance(size, int) and size > 0 for size in value.shape)
            and value.shape[1] % 8 == 0 and value.shape[1] > 1)  # fmt: skip


def _first(node: Node) -> Any:
    """Its value, or the first of several."""
    value = node.meta.get("val")
    return value[0] if isinstance(value, (tuple, list)) and value else value


def images_of(module: GraphModule) -> set[Node]:
    """Results of convolutions, and what is made of images without a view."""
    images: set[Node] = set()
    for node in module.graph.nodes:
        if not computes(node) or not _is_image(_first(node)):
            continue
        is_view = isinstance(node.target, torch._ops.OpOverload) and node.target.is_view
        follows = not is_view and any(used in images and _first(used).shape[0] == _first(node).shape[0] for used in node.all_input_nodes)
        if node.target is torch.ops.aten.convolution.default or follows:
            images.add(node)
    return images


def _innermost(value: torch.Tensor) -> tuple[int, ...]:
    _, channels, lines, columns = value.shape
    return (lines * columns * channels, 1, columns * channels, channels)


def _lie(node: Node, strides: Sequence[Any]) -> None:
    """The node's value has memory of its own, with these strides."""
    node.meta["val"] = node.meta["val"].new_empty_strided(node.meta["val"].shape, strides)


class SavedImages:
    """The images that a forward graph saves, laid with their channels innermost until `restore`."""

    def __init__(self, module: GraphModule) -> None:
        context = torch._guards.TracingContext.try_get()
        metadata = None if context is None else context.fw_metadata
        outputs = outputs_of(module)
        first = len(outputs) if metadata is None else metadata.num_forward
        images = images_of(module)
        seen = set(outputs[:first])
        self.before = {
            node: node.meta["val"] for node in outputs[first:]
            if node in images and node not in seen and isinstance(node.meta["val"], torch.Tensor)
            and not any(user.target in STRIDED for user in node.users)
        }  # fmt: skip
        for node, value in self.before.items():
            _lie(node, _innermost(value))

    def restore(self) -> None:
        for node, value in self.before.items():
            node.meta["val"] = value


def report_strides(outputs: Sequence[Any]) -> None:
    """Tells AOTAutograd how a forward graph's results lie, so that the backward graph is captured with that."""
    context = torch._guards.TracingContext.try_get()
    if context is None or context.output_strides is None:
        return
    for output in outputs:
        value = output.meta.get("val") if isinstance(output, Node) else None
        is_fixed = isinstance(value, torch.Tensor) and all(isinstance(stride, int) for stride in value.stride())
        context.output_strides.append(tuple(value.stride()) if is_fixed else None)


def take_strides(module: GraphModule, inputs: Sequence[Any]) -> dict[int, tuple[int, ...]]:
    """Lays a backward graph's inputs as they are given. The strides that torch's own operations expect, by number of the input."""
    expected: dict[int, tuple[int, ...]] = {}
    placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
    for i, (node, given) in enumerate(zip(placeholders, inputs)):
        value = node.meta.get("val")
        if not isinstance(value, torch.Tensor) or not isinstance(given, torch.Tensor) or value.stride() == given.stride():
            continue
        expected[i] = tuple(value.stride())
        # What reads its memory by strides means those that it had.
        is_strided = any(user.target in STRIDED for user in node.users)
        _lie(node, value.stride() if is_strided else given.stride())
    return expected


def lay_inputs(module: GraphModule, strides: dict[int, tuple[int, ...]]) -> None:
    placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
    for i, wanted in strides.items():
        _lie(placeholders[i], wanted)


def with_strides(function: Callable[[list[Any]], Any], expected: dict[int, tuple[int, ...]]) -> Callable[[list[Any]], Any]:
    """The function with those inputs copied to the strides that it expects."""
    if not expected:
        return function

    def run(values: list[Any]) -> Any:
        for i, strides in expected.items():
            value = values[i]
            values[i] = torch.empty_strided(value.shape, strides, dtype=value.dtype, device=value.device).copy_(value)
        return function(values)

    run._boxed_call = True  # type: ignore[attr-defined]
    return run
