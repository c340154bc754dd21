"""What is changed in Dynamo's graph before AOTAutograd takes it: what AOTAutograd refuses, or leaves to torch, in terms of other operations."""

import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._C import _functorch as functorch
from torch._higher_order_ops.associative_scan import generic_associative_scan

Tensor = torch.Tensor
Node = torch.fx.Node

# Places that a number gives which is a tensor: table[step]. Torch reads the number, which stops AOTAutograd, and Dynamo then
# leaves the whole function to Python.


def _is_place(value: Any) -> bool:
    if not isinstance(value, Tensor) or value.dim() or value.device.type != "cpu":
        return False
    return value.dtype in (torch.int8, torch.int16, torch.int32, torch.int64)


def _dimensions(index: Any) -> int:
    """How many of the result such an entry makes."""
    return 0 if isinstance(index, (int, torch.SymInt)) and not isinstance(index, bool) else 1


def _split(x: Tensor, given: Any) -> tuple[tuple[Any, ...], list[tuple[int, Tensor]]]:
    """The index with all elements in place of such numbers; and the dimensions of what it gives where they stand, with the numbers."""
    index = given if isinstance(given, tuple) else (given,)
    places = []
    dimension = 0
    for entry in index:
        if entry is Ellipsis:
            dimension += x.dim() - sum(each is not None and each is not Ellipsis for each in index)
        elif _is_place(entry):
            places.append((dimension, entry))
            dimension += 1
        else:
            dimension += _dimensions(entry)
    return tuple(slice(None) if _is_place(entry) else entry for entry in index), places


def _element(x: Tensor, given: Any) -> Tensor:
    """x[given], as a copy."""
    index, places = _split(x, given)
    for dimension, place in reversed(places):
        x = x if index is None else x[index]
        index = None  # type: ignore[assignment]
        at = torch.where(place < 0, place + x.shape[dimension], place).reshape(1)
        x = x.index_select(dimension, at.to(x.device, torch.int64)).squeeze(dimension)
    return x


def _write_element(x: Tensor, given: Any, value: Any) -> None:
    """x[given] = value, with one such number."""
    index, ((dimension, place),) = _split(x, given)
    part = x[index]
    at = torch.where(place < 0, place + part.shape[dimension], place).reshape(1).to(part.device, torch.int64)
    rest = part.shape[:dimension] + part.shape[dimension + 1:]
    value = torch.as_tensor(value, dtype=part.dtype, device=part.device)
    while value.dim() > len(rest):
        value = value.squeeze(0)
    part.index_copy_(dimension, at, value.expand(rest).unsqueeze(dimension))


def _basic(index: Any) -> bool:
    return index is None or index is Ellipsis or isinstance(index, (slice, int, torch.SymInt)) and not isinstance(index, bool)


def _values(argument: Any) -> Any:
    return torch.fx.map_arg(argument, lambda node: node.meta.get("example_value"))


def _places_of(node: Node) -> int:
    """How many such numbers are in this node's index; 0, too, where it has other tensors."""
    if not isinstance(_values(node.args[0]), Tensor):
        return 0
    given = _values(node.args[1])
    index = given if isinstance(given, tuple) else (given,)
    return sum(map(_is_place, index)) if all(_basic(each) or _is_place(each) for each in index) else 0


def _writes(node: Node) -> bool:
    name = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", "")
    return node.target is operator.setitem or name.endswith("_") and not name.endswith("__") or "out" in node.kwargs or node.kwargs.get("inplace") is True


def _memory(node: Node) -> Any:
    """What tells memory apart; None of what has none of its own. In vmap and grad that of the tensor inside."""
    value = node.meta.get("example_value")
    if not isinstance(value, Tensor):
        return None
    while functorch.is_functorch_wrapped_tensor(value):
        value = functorch.get_unwrapped(value)
    try:
        return value.untyped_storage()._cdata
    except NotImplementedError:  # sparse tensors
        return None


def _may_be_copied(node: Node, order: dict[Node, int]) -> bool:
    """Between this view of memory and the last that reads it nothing writes there, nor is it given to the caller."""
    memory, views, last = _memory(node), [node], order[node]
    for view in views:
        for user in view.users:
            if user.op == "output" or (_writes(user) and user.args[0] is view):
                return False
            last = max(last, order[user])
            if _memory(user) == memory and user not in views:
                views.append(user)
    return not any(
        order[node] < place < last and _writes(each) and any(_memory(given) == memory for given in each.all_input_nodes)
        for each, place in order.items())  # fmt: skip


#: A result that is a view of an input: where it stands among the results, the input, and the index, with inputs' numbers in it.
Shown = tuple[int, Node, Any]


def _take_shown(graph: torch.fx.Graph, reads: Sequence[Node], order: dict[Node, int]) -> list[Shown]:
    """Results that such reads make of inputs which nothing writes are not computed by the graph; what else reads them reads a copy."""
    output = graph.find_nodes(op="output")[0]
    results = output.args[0]
    if not isinstance(results, (tuple, list)):
        return []
    written = {_memory(given) for node in order if _writes(node) for given in node.all_input_nodes}
    made = []
    for i, node in enumerate(results):
        if node in reads and _memory(node) not in written and all(each.op == "placeholder" for each in node.all_input_nodes):
            made.append((i, *node.args))
    rest = tuple(node for i, node in enumerate(results) if i not in {place for place, *_ in made})
    output.args = (rest,)
    return made


def _with_shown(run: Callable[..., Any], places: Sequence[Node], shown: Sequence[Shown]) -> Callable[..., Any]:
    numbers = {place: i for i, place in enumerate(places)}

    def call(*inputs: Any) -> Any:
        results = list(run(*inputs))
        for i, base, index in shown:
            given = torch.fx.map_arg((base, index), lambda node: inputs[numbers[node]])
            results.insert(i, operator.getitem(*given))
        return results

    return call


def _take_places(graph: torch.fx.Graph) -> list[Shown]:
    order = {node: i for i, node in enumerate(graph.nodes)}
    reads = [node for node in graph.find_nodes(op="call_function", target=operator.getitem) if _places_of(node)]
    shown = _take_shown(graph, reads, order)
    for node in reads:
        if _may_be_copied(node, order):
            node.target = _element
    for node in graph.find_nodes(op="call_function", target=operator.setitem):
        if _places_of(node) == 1:
            node.target = _write_element
    return shown


# Scans by an associative function, which works on all pairs of neighbours at once.


def _associative_scan(combine: Callable[..., Any], xs: Sequence[Tensor], more: Sequence[Any] = ()) -> Any:
    return generic_associative_scan(combine, list(xs), additional_inputs=tuple(more))


def _take_scans(graph: torch.fx.Graph) -> None:
    for node in graph.find_nodes(op="call_function", target=torch.ops.higher_order.associative_scan):
        if all(isinstance(x.shape[0], int) for x in _values(node.args[1])):
            node.target = _associative_scan


#: What stands in graphs: functions that torch's cache of graphs is told of.
IN_GRAPHS = (_element, _write_element, _associative_scan)


def simplify_captured(module: torch.fx.GraphModule) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Returns what makes the function of Dynamo's graph of that of the simpler one."""
    shown = _take_places(module.graph)
    _take_scans(module.graph)
    module.recompile()
    places = module.graph.find_nodes(op="placeholder")
    return lambda run: _with_shown(run, places, shown) if shown else run
