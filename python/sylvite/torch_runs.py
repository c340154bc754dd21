"""Parts of a graph that torch runs, without the detours of torch's dispatcher: those take longer than the work itself where tensors are small. And functions
that Python runs."""

import contextlib
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch._dynamo.exc import SkipFrame, TorchDynamoException, exceptions_allowed_to_be_fallback
from torch.fx import GraphModule, Node

from .torch_graph import dense_order

aten = torch.ops.aten
higher_order = torch.ops.higher_order


def assert_scalar(holds: Any, message: str) -> None:
    if not holds:
        raise RuntimeError(message)


#: Torch's own Python functions read their arguments in a third of the time that operations by name take.
FACTORIES: dict[Any, Callable[..., Any]] = {
    aten._assert_scalar.default: assert_scalar,
    aten._local_scalar_dense.default: torch.Tensor.item,
    aten.arange.start_step: torch.arange,
    aten.empty.memory_format: torch.empty,
    aten.full.default: torch.full,
    aten.nonzero.default: torch.nonzero,
}


def _entry(module: Any) -> Callable[..., Any]:
    """A graph's function, without a module's hooks, which it has none of."""
    return getattr(module, "forward", module)


def run_while(condition: Any, body: Any, carried: Sequence[Any], rest: Sequence[Any]) -> tuple[Any, ...]:
    """What torch.ops.higher_order.while_loop gives; nothing that it returns is an input."""
    holds, step = _entry(condition), _entry(body)
    if not holds(*carried, *rest):
        return tuple(value.clone() if isinstance(value, torch.Tensor) else value for value in carried)
    if getattr(body, "tells", False):
        *carried, goes_on = body.run([*carried, *rest])
        while goes_on:
            *carried, goes_on = body.run([*carried, *rest])
        return tuple(carried)
    carried = step(*carried, *rest)
    while holds(*carried, *rest):
        carried = step(*carried, *rest)
    return tuple(carried)


def run_on_copies(op: Any, bases: Sequence[Any], written: Sequence[tuple[str, int]], given: dict[str, Any]) -> tuple[Any, ...]:
    """What an operation gives, and copies of what it writes, after that. `written`: arguments by the numbers of their bases."""
    copies = [torch.empty_strided(base.size(), base.stride(), dtype=base.dtype, device=base.device).copy_(base) for base in bases]
    result = op(**given, **{name: copies[number] for name, number in written})
    return (*(result if isinstance(result, tuple) else (result,)), *copies)


def _whole_bases(node: Node) -> tuple[list[tuple[str, int]], dict[str, Any]] | None:
    """The arguments that an operation writes, with the numbers of their bases, and the others; None where it writes to views of these."""
    op, given = node.args[0], dict(node.kwargs)
    if len(node.args) != 1 or not isinstance(op, torch._ops.OpOverload):
        return None
    given.pop("_all_bases", None)
    written = [a.name for a in op._schema.arguments if a.alias_info is not None and a.alias_info.is_write]
    numbers = [(name, given.pop(f"_{name}_base_index", None)) for name in written]
    if any(number is None for _, number in numbers) or any(name.startswith("_") for name in given):
        return None
    return numbers, given


def _is_dense(base: Any) -> bool:
    """Memory without gaps and overlaps: a tensor with its strides holds a copy."""
    value = base.meta.get("val") if isinstance(base, Node) else None
    return isinstance(value, torch.Tensor) and dense_order(value) is not None


def _runs_on_copies(node: Node) -> bool:
    found = _whole_bases(node)
    bases = node.kwargs.get("_all_bases")
    if found is None or not isinstance(bases, (list, tuple)) or not all(map(_is_dense, bases)):
        return False
    node.target, node.args, node.kwargs = run_on_copies, (node.args[0], bases, *found), {}
    return True


def _runs_while(node: Node) -> bool:
    if node.kwargs or len(node.args) != 4:
        return False
    node.target = run_while
    return True


def places_of(mask: torch.Tensor) -> torch.Tensor:
    return torch.nonzero(mask).view(-1)


def _mask_of(node: Node) -> Node | None:
    """Of an operation that takes the rows where a mask holds."""
    indices = node.args[1] if node.target is aten.index.Tensor and len(node.args) == 2 else ()
    mask = indices[0] if isinstance(indices, (list, tuple)) and len(indices) == 1 else None
    value = mask.meta.get("val") if isinstance(mask, Node) else None
    return mask if isinstance(value, torch.Tensor) and value.dtype == torch.bool and value.dim() == 1 else None


def _share_places(module: GraphModule) -> None:
    """A mask that picks rows of several tensors is looked at once."""
    places: dict[Node, Node] = {}
    for node in module.graph.find_nodes(op="call_function", target=aten.index.Tensor):
        mask = _mask_of(node)
        if mask is None:
            continue
        if mask not in places:
            with module.graph.inserting_before(node):
                places[mask] = module.graph.call_function(places_of, (mask,))
        node.target, node.args = torch.index_select, (node.args[0], 0, places[mask])


#: By operation: whether a node becomes a call of a function of this file.
CALLS: dict[Any, Callable[[Node], bool]] = {higher_order.while_loop: _runs_while}
if hasattr(higher_order, "auto_functionalized_v2"):
    CALLS[higher_order.auto_functionalized_v2] = _runs_on_copies


def run_by_torch(module: GraphModule) -> Callable[[list[Any]], Any]:
    """A function of one list, which it empties."""
    _share_places(module)
    for node in module.graph.nodes:
        if node.op != "call_function":
            continue
        if node.target in FACTORIES:
            node.target = FACTORIES[node.target]
        elif node.target in CALLS:
            CALLS[node.target](node)
    module.recompile()
    forward = module.forward

    def run(values: list[Any]) -> Any:
        taken = tuple(values)
        values.clear()
        return forward(*taken)

    run._boxed_call = True  # type: ignore[attr-defined]
    return run


@contextlib.contextmanager
def or_python(strict: bool) -> Iterator[None]:
    """Python runs a function whose graph AOTAutograd does not take, with one warning; where it is strict, that is an error."""
    try:
        yield
    except (*exceptions_allowed_to_be_fallback, TorchDynamoException, IndexError):
        raise  # Dynamo knows what to do
    except Exception as error:
        if strict:
            raise
        warnings.warn(f"sylvite: Python runs a function that AOTAutograd does not take: {type(error).__name__}: {error}", stacklevel=2)
        raise SkipFrame("AOTAutograd does not take the graph") from error
