"""Loops of a graph: operations that run another graph for each slice of their inputs."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import torch
from torch.fx import GraphModule, Node

higher_order = torch.ops.higher_order


@dataclasses.dataclass
class Loop:
    """`body` takes the states, a slice of each scanned tensor along its first axis, and the rest; it gives the next states and
    what is stacked."""

    name: str  #: of the body
    body: GraphModule
    states: Sequence[Any]
    scanned: Sequence[Any]
    rest: Sequence[Any]


def body_of(node: Node) -> GraphModule | None:
    """The graph that a node names, if it names one."""
    held: Any = node.graph.owning_module if node.op == "get_attr" else None
    for name in str(node.target).split("."):
        held = getattr(held, name, None)
    return held if isinstance(held, GraphModule) else None


def loop_of(node: Node) -> Loop | None:
    """None where the node is no loop, or one that also writes what it reads."""
    if node.target not in (higher_order.scan, higher_order.map_impl) or node.kwargs:
        return None
    body = body_of(node.args[0])
    if body is None:
        return None
    states = node.args[1] if node.target is higher_order.scan else ()
    return Loop(str(node.args[0].target), body, states, *node.args[-2:])
