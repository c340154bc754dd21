"""What a graph of AOTAutograd has beside operations, made operations: branches, checks of values, and complex borders.

Each function rewrites a module before it becomes a program, and one beside it does at each call what the graph no longer does.
"""

import dataclasses
import functools
import itertools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.fx import GraphModule, Node

from .torch_bytes import float8_of, make_bytes
from .torch_graph import device_of
from .torch_loops import body_of

aten = torch.ops.aten
higher_order = torch.ops.higher_order

Boxed = Callable[[list[Any]], Any]


def outputs_of(module: GraphModule) -> list[Any]:
    return list(next(node for node in module.graph.nodes if node.op == "output").args[0])


def _set_outputs(module: GraphModule, outputs: Sequence[Any]) -> None:
    next(node for node in module.graph.nodes if node.op == "output").args = (tuple(outputs),)


def _boxed(function: Callable[[list[Any]], Any]) -> Boxed:
    function._boxed_call = True  # type: ignore[attr-defined]
    return function


# Branches: both are computed, and one is taken.


def _hold(module: GraphModule, value: torch.Tensor) -> str:
    """The name of a new attribute with that value."""
    name = next(name for i in itertools.count() if not hasattr(module, name := f"_branch_value_{i}"))
    module.register_buffer(name, value, persistent=False)
    return name


def _inline(branch: GraphModule, operands: Sequence[Any], before: Node) -> list[Any]:
    """What the branch returns, computed in front of the node."""
    graph = before.graph
    copies: dict[Node, Any] = dict(zip((n for n in branch.graph.nodes if n.op == "placeholder"), operands))
    for node in branch.graph.nodes:
        if node.op == "placeholder":
            continue
        if node.op == "output":
            return torch.fx.map_arg(list(node.args[0]), lambda n: copies[n])
        with graph.inserting_before(before):
            copies[node] = graph.node_copy(node, lambda n: copies[n])
        if node.op == "get_attr":  # a tensor that the branch holds
            copies[node].target = _hold(graph.owning_module, operator.attrgetter(str(node.target))(branch))
    raise AssertionError("a graph without an output")


def _is_tensor(value: Any) -> bool:
    return isinstance(value, Node) and isinstance(value.meta.get("val"), torch.Tensor)


def _can_be_inlined(node: Node) -> bool:
    if node.op == "get_attr":
        return isinstance(operator.attrgetter(str(node.target))(node.graph.owning_module), torch.Tensor)
    return node.op in ("placeholder", "call_function", "output")


def _branches(module: GraphModule, node: Node) -> list[GraphModule] | None:
    """The two graphs of a branch that both can be computed: tensors alone leave them, and they hold no graphs."""
    if node.target is not higher_order.cond or not _is_tensor(node.args[0]):
        return None
    graphs = [getattr(module, str(each.target)) for each in node.args[1:3]]
    can_be = all(_can_be_inlined(inner) for graph in graphs for inner in graph.graph.nodes)
    has_values = all(_is_tensor(each) for graph in graphs for each in outputs_of(graph))
    return graphs if can_be and has_values else None


def _take_one(module: GraphModule, node: Node, graphs: Sequence[GraphModule]) -> None:
    graph = module.graph
    results = [_inline(each, node.args[3], node) for each in graphs]
    taken = []
    for one, other, value in zip(*results, node.meta["val"]):
        with graph.inserting_before(node):
            taken.append(graph.call_function(aten.where.self, (node.args[0], one, other)))
        taken[-1].meta["val"] = value
    for user in list(node.users):
        user.replace_all_uses_with(taken[user.args[1]])
        graph.erase_node(user)
    branches = dict.fromkeys(node.args[1:3])
    graph.erase_node(node)
    for each in branches:
        if not each.users:
            graph.erase_node(each)


def take_branches(module: GraphModule) -> None:
    """Makes torch.cond a choice between the results of both branches, in graphs that loops and branches hold first."""
    for node in module.graph.find_nodes(op="get_attr"):
        if (held := body_of(node)) is not None:
            take_branches(held)
    found = [(node, graphs) for node in module.graph.nodes if (graphs := _branches(module, node)) is not None]
    for node, graphs in found:
        if all(user.target is operator.getitem for user in node.users):
            _take_one(module, node, graphs)
    if found:
        module.graph.lint()
        module.recompile()


# Checks: what raises where values are not as they should be. Their values leave the graph, and are looked at behind it.

_CHECKS = {aten._assert_async.msg, aten._assert_async.default, aten._linalg_check_errors.default}


@dataclasses.dataclass
class Check:
    op: Any
    arguments: tuple[Any, ...]  #: behind the value
    keywords: dict[str, Any]

    def __call__(self, value: torch.Tensor) -> None:
        self.op(value, *self.arguments, **self.keywords)


def _check_of(node: Node) -> tuple[Check, Node] | None:
    op, arguments = node.target, node.args
    if op is higher_order.with_effects:
        op, arguments = node.args[1], node.args[2:]
    if op not in _CHECKS or not _is_tensor(arguments[0]) or any(isinstance(each, Node) for each in arguments[1:]):
        return None
    return Check(op, tuple(arguments[1:]), dict(node.kwargs)), arguments[0]


def drop_asserts(module: GraphModule) -> None:
    """Of a backward graph: its forward graph has looked at the sizes."""
    for node in module.graph.find_nodes(op="call_function", target=aten._assert_scalar.default):
        module.graph.erase_node(node)
    module.recompile()


def _erase(node: Node) -> None:
    """With what hands on that it was done."""
    for user in list(node.users):
        user.replace_all_uses_with(node.args[0])
        node.graph.erase_node(user)
    node.graph.erase_node(node)


#: Operations that read at places: numbers of the arguments that are read and that say where, and whether negative places count
#: from the end.
_READS = {
    aten.embedding.default: (0, 1, False), aten.index_select.default: (0, 2, False), aten.gather.default: (0, 2, False),
    aten.index.Tensor: (0, 1, True),
}  # fmt: skip

#: What leaves places as they are.
_SAME = {
    aten.view.default, aten.unsqueeze.default, aten.squeeze.dims, aten.expand.default, aten.permute.default, aten.clone.default,
    aten._to_copy.default, aten.slice.Tensor, aten.select.int,
}  # fmt: skip


def _is_given(node: Node) -> bool:
    """By the caller, and in the CPU's memory: a GPU would have to be waited for."""
    while node.target in _SAME:
        node = node.args[0]
    value = node.meta.get("val")
    return node.op == "placeholder" and isinstance(value, torch.Tensor) and value.device.type == "cpu" and not value.is_floating_point()


def _places(node: Node) -> list[tuple[Node, int, bool]]:
    """What the operation reads at: the places, how many there are, and whether negative ones count from the end."""
    if node.target not in _READS:
        return []
    read, at, from_end = _READS[node.target]
    shape = node.args[read].meta["val"].shape
    given = node.args[at]
    axis = node.args[1] if at == 2 else 0
    pairs = list(zip(given, shape)) if isinstance(given, (list, tuple)) else [(given, shape[axis] if shape else 1)]
    return [(place, size, from_end) for place, size in pairs
            if _is_tensor(place) and isinstance(size, int) and place.meta["val"].dtype != torch.bool and _is_given(place)]


def _refuse_places(size: int, value: torch.Tensor) -> None:
    if not value:
        raise IndexError(f"index out of range: there are {size} elements")


def take_places(module: GraphModule) -> list[Callable[[torch.Tensor], None]]:
    """Adds to the results whether places that the caller gives are there: programs read the nearest one else."""
    found = list(dict.fromkeys(each for node in module.graph.nodes for each in _places(node)))
    values = []
    for place, size, from_end in found:
        end = next(node for node in module.graph.nodes if node.op == "output")
        steps = ((aten.ge.Scalar, -size if from_end else 0), (aten.lt.Scalar, size))
        with module.graph.inserting_before(end), place.meta["val"].fake_mode:
            bounds = [module.graph.call_function(op, (place, bound)) for op, bound in steps]
            both = module.graph.call_function(aten.bitwise_and.Tensor, tuple(bounds))
            value = module.graph.call_function(aten.all.default, (both,))
            for node in (*bounds, both, value):
                node.meta["val"] = node.target(*(each.meta["val"] if isinstance(each, Node) else each for each in node.args))
        values.append(value)
    if values:
        _set_outputs(module, [*outputs_of(module), *values])
        module.recompile()
    return [functools.partial(_refuse_places, size) for _, size, _ in found]


def take_checks(module: GraphModule) -> list[Check]:
    """Makes the values of checks the last results of the graph."""
    checks, values = [], []
    for node in list(module.graph.nodes):
        found = _check_of(node)
        if found is not None:
            checks.append(found[0])
            values.append(found[1])
            _erase(node)
        elif node.target is aten._assert_tensor_metadata.default:  # what is declared was found when the graph was captured
            _erase(node)
    for node in reversed(module.graph.nodes):  # tokens of effects, of which none is left
        if node.target is torch.ops.prims._sink_tokens.default and all(
                each.target is torch.ops.prims._make_token.default for each in node.all_input_nodes):
            made = node.all_input_nodes
            module.graph.erase_node(node)
            for each in made:
                module.graph.erase_node(each)
    _set_outputs(module, [*outputs_of(module), *values])
    module.recompile()
    return checks


def with_checks(run: Boxed, checks: Sequence[Callable[[torch.Tensor], None]]) -> Boxed:
    if not checks:
        return run

    def run_and_check(values: list[Any]) -> Any:
        results = run(values)
        count = len(results) - len(checks)
        for check, value in zip(checks, results[count:]):
            check(value)
        return results[:count]

    return _boxed(run_and_check)


# Complex numbers that enter and leave a graph: as pairs of real ones, in the same memory.


@dataclasses.dataclass
class Borders:
    """Numbers of the inputs and results that are complex outside, and of those inputs that are whole numbers there, tensors inside; and of inputs
    and results that are floats of eight bits outside, with their types."""

    inputs: list[int] = dataclasses.field(default_factory=list)
    outputs: list[int] = dataclasses.field(default_factory=list)
    integers: list[int] = dataclasses.field(default_factory=list)
    bytes_in: list[int] = dataclasses.field(default_factory=list)
    bytes_out: dict[int, torch.dtype] = dataclasses.field(default_factory=dict)

    def is_plain(self) -> bool:
        return not (self.inputs or self.outputs or self.integers or self.bytes_in or self.bytes_out)


def _is_complex(node: Any) -> bool:
    return _is_tensor(node) and node.meta["val"].is_complex()


def _pairs(value: torch.Tensor) -> torch.Tensor:
    return torch.view_as_real(value.resolve_conj())


def _open_input(graph: torch.fx.Graph, node: Node, before: Node) -> None:
    value = node.meta["val"]
    with value.fake_mode:
        node.meta["val"] = _pairs(value)
    with graph.inserting_before(before):
        inside = graph.call_function(aten.view_as_complex.default, (node,))
    inside.meta["val"] = value
    node.replace_all_uses_with(inside, lambda user: user is not inside)


def _paired(graph: torch.fx.Graph, node: Node, before: Node) -> Node:
    value = node.meta["val"]
    with graph.inserting_before(before), value.fake_mode:
        if value.is_conj():
            node = graph.call_function(aten.conj_physical.default, (graph.call_function(aten._conj.default, (node,)),))
            node.args[0].meta["val"] = value.conj()
            node.meta["val"] = value.resolve_conj()
        pairs = graph.call_function(aten.view_as_real.default, (node,))
        pairs.meta["val"] = _pairs(value)
    return pairs


def _number(graph: torch.fx.Graph, node: Node, number: complex) -> Node:
    """The complex number as a tensor, for the node that takes it."""
    value = node.meta["val"]
    dtype = torch.float64 if value.dtype in (torch.complex128, torch.float64) else torch.float32
    with graph.inserting_before(node), value.fake_mode:
        parts = []
        for part in (number.real, number.imag):
            made = graph.call_function(aten.full.default, ([], part), {"dtype": dtype, "device": value.device, "pin_memory": False})
            made.meta["val"] = torch.full([], part, dtype=dtype, device=value.device)
            parts.append(made)
        whole = graph.call_function(aten.complex.default, tuple(parts))
        whole.meta["val"] = torch.complex(*(part.meta["val"] for part in parts))
    return whole


def _filled_like(node: Node, like: Node, number: Node) -> Node:
    """The number everywhere, in a tensor of the shape of another."""
    graph, value = node.graph, like.meta["val"]
    with graph.inserting_before(node), value.fake_mode:
        zeros = graph.call_function(aten.zeros_like.default, (like,), {"dtype": number.meta["val"].dtype})
        zeros.meta["val"] = torch.zeros_like(value, dtype=number.meta["val"].dtype)
        made = graph.call_function(aten.add.Tensor, (zeros, number))
        made.meta["val"] = zeros.meta["val"]
    return made


#: What takes tensors alone in the place of an operation that takes a number: (node, its arguments) -> operation, arguments.
WITH_TENSORS: dict[Any, Callable[..., tuple[Any, tuple[Any, ...]]]] = {
    aten.fill.Scalar: lambda node, x, number: (aten.clone.default, (_filled_like(node, x, number),)),
    aten.full.default: lambda node, sizes, number: (aten.expand.default, (number, sizes)),
    aten.full_like.default: lambda node, x, number: (aten.clone.default, (_filled_like(node, x, number),)),
    aten.new_full.default: lambda node, x, sizes, number: (aten.expand.default, (number, sizes)),
    aten.scalar_tensor.default: lambda node, number: (aten.clone.default, (number,)),
    aten.scatter.value: lambda node, x, dim, at, number: (aten.scatter.src, (x, dim, at, _filled_like(node, at, number))),
}
for _name in ("add", "div", "eq", "mul", "ne", "sub"):
    _op = getattr(aten, _name)
    WITH_TENSORS[_op.Scalar] = lambda node, *args, op=_op: (op.Tensor, args)


def _takes_tensors(node: Node) -> bool:
    """May each complex number among the arguments be a tensor?"""
    if not isinstance(node.target, torch._ops.OpOverload):
        return False
    named = zip(node.args, node.target._schema.arguments)
    return all(isinstance(argument.type, torch.TensorType) for each, argument in named if isinstance(each, complex))


def make_numbers_tensors(module: GraphModule) -> None:
    """Complex numbers among arguments become tensors of one element, which have parts."""
    found = False
    for node in list(module.graph.nodes):
        if node.op != "call_function" or not _is_tensor(node) or not any(isinstance(each, complex) for each in node.args):
            continue
        rewrite = WITH_TENSORS.get(node.target)
        if rewrite is None and not _takes_tensors(node):
            continue
        found = True
        args = [_number(module.graph, node, each) if isinstance(each, complex) else each for each in node.args]
        if rewrite is None:
            node.args = tuple(args)
            continue
        node.target, node.args = rewrite(node, *args)
        node.kwargs = {name: value for name, value in node.kwargs.items() if name == "alpha"}  # the rest is in its type
    if found:
        module.graph.lint()
        module.recompile()


#: Operations of two values, of which one may be a whole number; and each as it takes a tensor for that.
OF_NUMBERS: dict[Any, Any] = {getattr(aten, name).Tensor: getattr(aten, name).Tensor for name in ("add", "sub", "mul", "div")}
OF_NUMBERS |= {getattr(aten, name).Scalar: getattr(aten, name).Tensor for name in ("eq", "ne", "lt", "le", "gt", "ge")}


def _is_operand(number: Node, user: Node) -> bool:
    """Does the user take the number beside a tensor, whose type alone decides that of the result?"""
    others = [each for each in user.args if each is not number]
    if user.target not in OF_NUMBERS or len(user.args) != 2 or user.kwargs or len(others) != 1 or not _is_tensor(others[0]):
        return False
    value = others[0].meta["val"]
    return value.dtype in (torch.float32, torch.float64) or (value.dim() > 0 and value.dtype in (torch.int32, torch.int64))


def _symbols_of_shapes(module: GraphModule) -> set[Any]:
    values = [node.meta["val"] for node in module.graph.nodes if _is_tensor(node)]
    numbers = [number for value in values for number in (*value.shape, *value.stride(), value.storage_offset())]
    return {symbol for number in numbers if isinstance(number, torch.SymInt) for symbol in number.node.expr.free_symbols}


def _integers_to_tensors(module: GraphModule) -> list[int]:
    """Whole numbers that are operands and no sizes become tensors: a program of sizes would be one for each number. Returns which inputs."""
    inputs = [node for node in module.graph.nodes if node.op == "placeholder"]
    numbers = [node for node in inputs if isinstance(node.meta.get("val"), torch.SymInt) and node.users]
    numbers = [node for node in numbers if all(_is_operand(node, user) for user in node.users)]
    if not numbers or device_of(module.graph.nodes) != "cpu":
        return []
    sizes = _symbols_of_shapes(module)
    found = [node for node in numbers if not node.meta["val"].node.expr.free_symbols & sizes]
    for node in found:
        for user in node.users:
            user.target = OF_NUMBERS[user.target]
        mode = next(each.meta["val"].fake_mode for user in node.users for each in user.args if each is not node)
        with mode:
            node.meta["val"] = torch.empty((), dtype=torch.int64)
    return [inputs.index(node) for node in found]


def _open_bytes(module: GraphModule, borders: Borders) -> None:
    types = [float8_of(node) for node in module.graph.nodes if node.op == "placeholder"], [float8_of(node) for node in outputs_of(module)]
    if make_bytes(module):
        borders.bytes_in = [i for i, dtype in enumerate(types[0]) if dtype is not None]
        borders.bytes_out = {i: dtype for i, dtype in enumerate(types[1]) if dtype is not None}


def open_borders(module: GraphModule, strides: dict[int, tuple[int, ...]] | None = None) -> Borders:
    """Makes complex inputs and results of the graph pairs, those of eight bits bytes, and numbers that are operands tensors. `strides` of inputs
    become those of pairs."""
    graph, borders = module.graph, Borders(integers=_integers_to_tensors(module))
    _open_bytes(module, borders)
    inputs = [node for node in graph.nodes if node.op == "placeholder"]
    first = next(node for node in graph.nodes if node.op != "placeholder")
    for i, node in enumerate(inputs):
        if _is_complex(node):
            borders.inputs.append(i)
            _open_input(graph, node, first)
            if strides and i in strides:
                strides[i] = (*(2 * stride for stride in strides[i]), 1)
    last = next(node for node in graph.nodes if node.op == "output")
    for node in [n for n in graph.nodes if n.target is aten.copy_.default and _is_complex(n.args[0])]:
        if node.args[0].target is aten.view_as_complex.default and node.args[0].args[0] in inputs:  # a write into an input
            target = node.args[0].args[0]
            node.args = (target, _paired(graph, node.args[1], node))
            node.meta["val"] = target.meta["val"]
    outputs = outputs_of(module)
    for i, node in enumerate(outputs):
        if isinstance(node, Node) and node.target is aten.copy_.default and node.args[0] in inputs:
            if inputs.index(node.args[0]) in borders.inputs:
                borders.outputs.append(i)
        elif _is_complex(node):
            borders.outputs.append(i)
            outputs[i] = _paired(graph, node, last)
    if borders.inputs or borders.outputs or borders.integers:
        _set_outputs(module, outputs)
        graph.lint()
        module.recompile()
    return borders


def with_borders(run: Boxed, borders: Borders) -> Boxed:
    if borders.is_plain():
        return run

    def run_with_pairs(values: list[Any]) -> Any:
        for i in borders.integers:
            values[i] = torch.tensor(values[i])
        for i in borders.inputs:
            values[i] = _pairs(values[i])
        for i in borders.bytes_in:
            values[i] = values[i].view(torch.uint8)
        results = list(run(values))
        for i in borders.outputs:
            results[i] = torch.view_as_complex(results[i])
        for i, dtype in borders.bytes_out.items():
            results[i] = results[i].view(dtype)
        return results

    return _boxed(run_with_pairs)
