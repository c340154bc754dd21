"""Loops of a graph: operations that run another graph for each slice of their inputs."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.fx import Graph, GraphModule, Node

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


class Body(torch.nn.Module):
    """A graph that an operation of torch runs, as a program."""

    def __init__(self, run: Callable[[list[Any]], Any], has_one: bool, tells: bool) -> None:
        super().__init__()
        self.run = run
        self.has_one = has_one
        self.tells = tells  #: its last result is the condition at the others

    def forward(self, *args: Any) -> Any:
        results = self.run(list(args))
        return results[0] if self.has_one else tuple(results[:-1] if self.tells else results)


def _inputs(module: GraphModule) -> list[Node]:
    return [node for node in module.graph.nodes if node.op == "placeholder"]


def with_condition(node: Node) -> GraphModule | None:
    """The body of a while_loop, whose last result is the condition at the others; None where they cannot be one graph."""
    if node.target is not higher_order.while_loop or node.kwargs or len(node.args) != 4:
        return None
    condition, body = (body_of(each) for each in node.args[:2])
    if condition is None or body is None or any(each.op == "get_attr" for part in (condition, body) for each in part.graph.nodes):
        return None
    graph = Graph()
    copies: dict[Node, Node] = {}
    states = graph.graph_copy(body.graph, copies)
    if not isinstance(states, (list, tuple)) or len(_inputs(condition)) != len(_inputs(body)):
        return None
    rest = [copies[each] for each in _inputs(body)[len(states) :]]
    holds = graph.graph_copy(condition.graph, dict(zip(_inputs(condition), [*states, *rest])))
    holds = holds[0] if isinstance(holds, (list, tuple)) else holds
    if not all(isinstance(each, Node) and isinstance(each.meta.get("val"), torch.Tensor) for each in (*states, holds)):
        return None
    graph.output((*states, holds))
    return GraphModule(body, graph)
