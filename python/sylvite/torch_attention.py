"""Attention that a program spells out, in Dynamo's graph, where its gradients are kept whole as well: products, a softmax and masks become
one operation before autograd makes their gradients of them."""

import dataclasses
import functools
import math
import operator
from collections.abc import Callable
from typing import Any

import torch

from .torch_operations import has_gradient

F = torch.nn.functional
Node = torch.fx.Node

_PRODUCTS = {operator.matmul, torch.matmul, "matmul"}
_SOFTMAXES = {F.softmax, torch.softmax, "softmax"}
_CASTS = {"float", "to", "type_as", "bfloat16", "half"}
_FACTORS = {operator.mul, operator.imul, torch.mul, "mul", "mul_"}
_QUOTIENTS = {operator.truediv, operator.itruediv, torch.div, "div", "div_"}
_SUMS = {operator.add, operator.iadd, torch.add, "add", "add_"}
_FILLS = {torch.masked_fill, "masked_fill", "masked_fill_"}

#: Scores that are replaced by a number like this, or a lower one, have no weight, or the same as all others of their row.
_HIDES = -1e9


@dataclasses.dataclass
class Mask:
    """What makes the mask that is added to scores, and where a step replaced them by a finite number (true: replaced), or by one below all numbers."""

    make: Callable[[torch.fx.Graph], Any]
    make_hidden: Callable[[torch.fx.Graph], Any] | None = None
    is_finite: bool = False


def _value(node: Any) -> Any:
    return node.meta.get("example_value") if isinstance(node, Node) else node


def _is(node: Any, targets: set[Any]) -> bool:
    return isinstance(node, Node) and node.op in ("call_function", "call_method") and node.target in targets


def _given(node: Node, number: int, name: str, default: Any = None) -> Any:
    return node.args[number] if len(node.args) > number else node.kwargs.get(name, default)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_cast(node: Any) -> bool:
    """From floats to floats of the same device, and nothing else."""
    if not _is(node, _CASTS):
        return False
    before, after = _value(node.args[0]), _value(node)
    same = before.device == after.device and before.stride() == after.stride()
    return same and all(x.is_floating_point() and x.itemsize > 1 for x in (before, after))


def _without_casts(node: Any) -> Any:
    while _is_cast(node):
        node = node.args[0]
    return node


def _unchanged_weights(node: Any) -> Any:
    """Below dropout that is off, and casts."""
    node = _without_casts(node)
    while _is(node, {F.dropout}) and (_given(node, 1, "p", 0.5) == 0 or not _given(node, 2, "training", True)):
        node = _without_casts(node.args[0])
    return node


def _added(node: Node, shape: Any, dtype: torch.dtype) -> tuple[Any, Mask] | None:
    scores, mask = node.args[0], _given(node, 1, "other")
    if not isinstance(_value(scores), torch.Tensor) or _value(scores).shape != shape:
        scores, mask = mask, scores
    given, added = _value(scores), _value(mask)
    if not isinstance(given, torch.Tensor) or not isinstance(added, torch.Tensor) or given.shape != shape or "alpha" in node.kwargs:
        return None
    return None if added.dtype != dtype or added.dim() > 4 or added.requires_grad else (scores, Mask(lambda graph: mask))


def _hidden(node: Node, shape: Any, dtype: torch.dtype) -> tuple[Any, Mask] | None:
    if _is(node, _FILLS):
        condition, if_true, if_false = _given(node, 1, "mask"), _given(node, 2, "value"), node.args[0]
    elif len(node.args) == 3:
        condition, if_true, if_false = node.args
    else:
        return None
    scores, low = (if_false, if_true) if _is_number(if_true) else (if_true, if_false)
    if not (isinstance(condition, Node) and _is_number(low) and low <= _HIDES and isinstance(scores, Node) and _value(scores).shape == shape):
        return None
    low = max(low, torch.finfo(dtype).min) if math.isfinite(low) else low
    hides_where_true = scores is if_false
    choice = (low, 0.0) if hides_where_true else (0.0, low)

    def make(graph: torch.fx.Graph) -> Any:
        numbers = [graph.call_function(torch.full, ((), x), {"dtype": dtype, "device": _value(scores).device}) for x in choice]
        return graph.call_function(torch.where, (condition, *numbers))

    def make_hidden(graph: torch.fx.Graph) -> Any:
        return condition if hides_where_true else graph.call_function(torch.logical_not, (condition,))

    return scores, Mask(make, make_hidden, math.isfinite(low))


def _scaled(node: Any) -> tuple[Any, float]:
    factor = 1.0
    while True:
        node = _without_casts(node)
        if _is(node, _FACTORS) and len(node.args) == 2 and any(map(_is_number, node.args)):
            node, number = node.args if _is_number(node.args[1]) else node.args[::-1]
            factor *= number
        elif _is(node, _QUOTIENTS) and len(node.args) == 2 and _is_number(node.args[1]) and not node.kwargs:
            factor /= node.args[1]
            node = node.args[0]
        else:
            return node, factor


def _read_alone(last: Node, node: Node) -> bool:
    """Is each value on the way from a product to what reads it last read by the next alone?"""
    while node is not last:
        if len(node.users) != 1:
            return False
        node = next(iter(node.users))
    return True


def _joint(graph: torch.fx.Graph, function: Callable[..., Any], values: list[Any]) -> Any:
    return functools.reduce(lambda a, b: graph.call_function(function, (a, b)), values) if values else None


def _without_hidden_rows(graph: torch.fx.Graph, query: Node, masks: list[Mask]) -> Node:
    """Rows whose scores were all replaced see all keys alike, and have no gradients: they are zero."""
    if not any(mask.is_finite for mask in masks):
        return query
    hidden = _joint(graph, torch.logical_or, [mask.make_hidden(graph) for mask in masks if mask.make_hidden is not None])
    rows = graph.call_function(torch.all, (hidden, -1, True))
    return graph.call_function(torch.masked_fill, (query, rows, 0.0))


def _join(node: Node, may_join: Callable[..., bool]) -> bool:
    weights, value = _unchanged_weights(node.args[0]), node.args[1]
    if not _is(weights, _SOFTMAXES) or _given(weights, 1, "dim") not in (-1, _value(weights).dim() - 1):
        return False
    scores, masks, shape, dtype = _without_casts(weights.args[0]), [], _value(weights).shape, _value(value).dtype
    while _is(scores, _FILLS | _SUMS | {torch.where}):
        found = (_added if _is(scores, _SUMS) else _hidden)(scores, shape, dtype)
        if found is None:
            return False
        scores = _without_casts(found[0])
        masks.append(found[1])
    product, scale = _scaled(scores)
    if not _is(product, _PRODUCTS) or len(product.args) != 2 or not _read_alone(node, product):
        return False
    query, turned = product.args
    if _value(query).dtype != dtype or _value(node).dtype != dtype or _value(turned).dim() != 4:
        return False
    if not may_join(_value(query), _value(turned).mT, _value(value), None, False, scale, False):
        return False
    graph = node.graph
    with graph.inserting_before(node):
        mask = _joint(graph, torch.add, [mask.make(graph) for mask in masks])
        query = _without_hidden_rows(graph, query, masks)
        key = graph.call_method("transpose", (turned, -1, -2))
        attended = graph.call_function(torch.ops.sylvite.attention.default, (query, key, value, mask, False, scale, False))
        dense = graph.call_method("contiguous", (attended,))  # as the product's, which views may follow
    attended.meta = dense.meta = dict(node.meta)
    node.replace_all_uses_with(dense)
    return True


def join_attention(module: torch.fx.GraphModule, may_join: Callable[..., bool] = has_gradient) -> None:
    """softmax(scale * query @ key.mT + mask) @ value, of which nothing between is read elsewhere, becomes attention where `may_join` takes its
    arguments. Casts between floats are not made: scores and weights stay as exact as they can be."""
    joined = [_join(node, may_join) for node in list(module.graph.nodes) if _is(node, _PRODUCTS) and len(node.args) == 2]
    if any(joined):
        module.graph.eliminate_dead_code()
        module.recompile()
