"""Sums of gradients of parts: where every step of a loop reads its part of a tensor, the gradient of that is its parts side by side."""

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch.fx import Graph, GraphModule, Node

aten = torch.ops.aten

#: Fewer are added as they are.
_LEAST = 4


def _shape(node: Any) -> tuple[int, ...] | None:
    """Of a tensor whose sizes are not open."""
    value = node.meta.get("val") if isinstance(node, Node) else None
    if not isinstance(value, torch.Tensor) or not all(isinstance(size, int) for size in value.shape):
        return None
    return tuple(value.shape)


def _is_sum(node: Any, like: Node) -> bool:
    if not isinstance(node, Node) or node.target is not aten.add.Tensor or node.kwargs:
        return False
    shape, dtype = _shape(like), like.meta["val"].dtype
    return shape is not None and all(_shape(each) == shape and each.meta["val"].dtype == dtype for each in (node, *node.args))


def _terms(node: Node) -> list[Node]:
    """What is added up, through sums that nothing else reads."""
    found: list[Node] = []
    todo = [node]
    while todo:
        each = todo.pop()
        if each is node or (len(each.users) == 1 and _is_sum(each, node)):
            todo.extend(reversed(each.args))
        else:
            found.append(each)
    return found


def _place(node: Node) -> tuple[int, int] | None:
    """The axis and the index of a gradient that is 0 elsewhere, and that one sum reads."""
    if node.target is not aten.select_backward.default or len(node.users) != 1 or not isinstance(node.args[3], int):
        return None
    shape = _shape(node)
    if not shape:
        return None
    axis = node.args[2] % len(shape)
    return axis, node.args[3] % shape[axis]


def _by_axis(terms: Iterable[Node]) -> dict[int, list[Node]]:
    found: dict[int, list[Node]] = {}
    for term in terms:
        place = _place(term)
        if place is not None:
            found.setdefault(place[0], []).append(term)
    return {axis: placed for axis, placed in found.items() if len(placed) >= _LEAST}


def _add(graph: Graph, op: Any, *args: Any, **kwargs: Any) -> Node:
    node = graph.call_function(op, args, kwargs)
    node.meta["val"] = op(*torch.fx.map_arg(args, lambda each: each.meta["val"]), **kwargs)
    return node


def _side_by_side(graph: Graph, terms: Sequence[Node], axis: int) -> Node:
    shape, value = _shape(terms[0]), terms[0].meta["val"]
    assert shape is not None
    parts: dict[int, list[Node]] = {}
    for term in terms:
        parts.setdefault(_place(term)[1], []).append(term.args[0])  # type: ignore[index]
    pieces: list[Node] = []
    end = 0
    for index, given in [*sorted(parts.items()), (shape[axis], [])]:
        if index > end:
            between = [*shape[:axis], index - end, *shape[axis + 1:]]
            pieces.append(_add(graph, aten.full.default, between, 0, dtype=value.dtype, device=value.device))
        if given:
            pieces.append(_add(graph, aten.unsqueeze.default, _sum(graph, given), axis))
        end = index + 1
    return _add(graph, aten.cat.default, pieces, axis)


def _sum(graph: Graph, terms: Sequence[Node]) -> Node:
    placed = _by_axis(terms)
    axis = max(placed, key=lambda each: len(placed[each]), default=None)
    if axis is not None:
        rest = [term for term in terms if term not in placed[axis]]
        return _sum(graph, [*rest, _side_by_side(graph, placed[axis], axis)])
    total = terms[0]
    for term in terms[1:]:
        total = _add(graph, aten.add.Tensor, total, term)
    return total


def join_parts(module: GraphModule) -> None:
    """Makes of a sum of gradients that are 0 but for one index each what they are together."""
    graph = module.graph
    if len(graph.find_nodes(op="call_function", target=aten.select_backward.default)) < _LEAST:
        return
    for node in reversed(graph.find_nodes(op="call_function", target=aten.add.Tensor)):
        if not node.users or not _is_sum(node, node) or not _by_axis(terms := _terms(node)):
            continue
        with graph.inserting_before(node), node.meta["val"].fake_mode:
            node.replace_all_uses_with(_sum(graph, terms))
        todo = [node]
        while todo:
            each = todo.pop()
            if not each.users and each.target in (aten.add.Tensor, aten.select_backward.default):
                todo.extend(each.all_input_nodes)
                graph.erase_node(each)
    graph.lint()
    module.recompile()
