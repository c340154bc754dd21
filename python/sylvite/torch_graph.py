"""The text of a graph that AOTAutograd made: one operation a line, with types and sizes (docs/formats.md).

Nodes are of four kinds. Sizes are host arithmetic on SymInts: they are not written, their expressions stand where they are
used. Attributes are tensors that the graph holds. Writes are `copy_` into an input, at the graph's end. All others compute.
"""

import collections
import dataclasses
import math
import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import sympy
import torch
from torch.fx import Node

from .torch_loops import body_of, loop_of
from .torch_sizes import (
    ComputedSizes,
    Unwritable,
    computed_sizes,
    expression_of,
    expression_text,
    hint_of,
    is_of_data,
    number_of,
    size_text,
    sizes_text,
    told_by_guards,
)
from .torch_statistics import kind_of_parameter
from .torch_views import is_remade, root_of, view_chain

DTYPES = {
    torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16", torch.float64: "f64", torch.int64: "i64",
    torch.int32: "i32", torch.int16: "i16", torch.int8: "i8", torch.uint8: "u8", torch.bool: "bool", torch.uint16: "u16",
    torch.uint32: "u32", torch.uint64: "u64",
}  # fmt: skip

#: With those that values inside of a graph may have.
INNER_DTYPES = {**DTYPES, torch.complex64: "c64", torch.complex128: "c128"}


# Kinds of nodes


def data_symbols(node: Node) -> set[str]:
    """Sizes of data that its type speaks of."""
    value = node.meta.get("val")
    parts = value if isinstance(value, (list, tuple)) else [value]
    sizes = [size for part in parts for size in (part.shape if isinstance(part, torch.Tensor) else [part])]
    found = (symbol for size in sizes if isinstance(size, torch.SymInt) for symbol in size.node.expr.free_symbols)
    return {str(symbol) for symbol in found if is_of_data(symbol)}


def tells_size(node: Node) -> bool:
    """Does the operation find sizes out of data? Torch gives the same mask the same size again, without a word."""
    if node.op != "call_function":
        return False
    if node.meta.get("unbacked_bindings"):
        return True
    is_dynamic = isinstance(node.target, torch._ops.OpOverload) and torch.Tag.dynamic_output_shape in node.target.tags
    return is_dynamic and bool(data_symbols(node).difference(*map(data_symbols, node.all_input_nodes)))


def is_size(node: Node) -> bool:
    """A number that is known from sizes: an integer, or a truth about integers."""
    is_number = isinstance(node.meta.get("val"), (int, torch.SymInt, torch.SymBool)) and node.op == "call_function"
    return is_number and not tells_size(node)


def is_write(node: Node) -> bool:
    return node.target is torch.ops.aten.copy_.default and node.args[0].op == "placeholder"


def writes_otherwise(node: Node) -> bool:
    """Whether it changes an input by what is no copy, as `parameter.data = value` gives it other memory."""
    mutates = isinstance(node.target, torch._ops.OpOverload) and node.target._schema.is_mutable and not is_write(node)
    return mutates and any(isinstance(each, Node) and each.op == "placeholder" for each in node.args[:1])


def computes(node: Node) -> bool:
    return node.op == "call_function" and not is_size(node) and not is_write(node)


# Devices


def device_of(nodes: Iterable[Node]) -> str:
    """The type of device that a graph's program is for: a GPU's where any tensor is on one."""
    values = [node.meta.get("val") for node in nodes]
    return "cuda" if any(isinstance(value, torch.Tensor) and value.device.type == "cuda" for value in values) else "cpu"


def check_device(value: torch.Tensor, device: str) -> None:
    """What is in the CPU's memory can be read by a program on a GPU, and computed on that instead. Raises Unwritable."""
    found = value.device
    if found.type not in ("cpu", device):
        raise Unwritable(f"the device {found.type}")
    if found.index not in (None, 0):
        raise Unwritable(f"the device {found}: the first GPU alone is served")


def leaves_device(value: Any, device: str) -> bool:
    """A tensor of another device than the program's, which the program cannot return."""
    return isinstance(value, torch.Tensor) and value.device.type != device


# Types


def dense_order(tensor: torch.Tensor) -> list[int] | None:
    """Axes from the outermost to the innermost in memory, or None where there are gaps or overlaps. Adds no guard."""
    axes = [d for d in range(tensor.dim()) if expression_of(tensor.shape[d]) != 1]
    axes.sort(key=lambda d: -hint_of(tensor.stride(d)))
    wanted = sympy.Integer(1)
    for axis in reversed(axes):
        if sympy.expand(expression_of(tensor.stride(axis)) - wanted) != 0:
            return None
        wanted = wanted * expression_of(tensor.shape[axis])
    return axes


def strides_text(tensor: torch.Tensor) -> str:
    """" strides [..]" where the elements lie without gaps, but not row by row."""
    axes = dense_order(tensor)
    if axes is None or axes == sorted(axes):
        return ""
    return f" strides {sizes_text(tensor.stride())}"


def tensor_text(value: Any, device: str, dtypes: Mapping[torch.dtype, str] = DTYPES) -> str:
    if type(value) not in (torch.Tensor, torch._subclasses.FakeTensor, torch.nn.Parameter):
        raise Unwritable(f"a value of type {type(value).__name__}")
    if value.dtype not in dtypes:
        raise Unwritable(f"the type {value.dtype}".replace("torch.", ""))
    if value.layout is not torch.strided:
        raise Unwritable(f"the layout {value.layout}")
    if value.is_neg():
        raise Unwritable("memory with the negatives of the values, as torch keeps imaginary parts of conjugates")
    check_device(value, device)
    return dtypes[value.dtype] + sizes_text(value.shape)


def type_text(value: Any, device: str) -> str:
    if isinstance(value, (tuple, list)):
        return "(" + ", ".join("none" if each is None else tensor_text(each, device, INNER_DTYPES) for each in value) + ")"
    return tensor_text(value, device, INNER_DTYPES)


# Nodes

#: What reads the memory of its first argument, as strides say.
STRIDED = {torch.ops.aten.as_strided.default, torch.ops.aten.as_strided_scatter.default}


def argument_text(argument: Any) -> str:
    if isinstance(argument, Node):
        return size_text(argument.meta["val"]) if is_size(argument) or _is_size_input(argument) else f"%{argument.name}"
    if argument is None or isinstance(argument, bool):
        return str(argument).lower()
    if isinstance(argument, (int, float)):
        return repr(argument)
    if isinstance(argument, (list, tuple)):
        return "[" + ", ".join(map(argument_text, argument)) + "]"
    if isinstance(argument, torch.dtype):
        if argument not in INNER_DTYPES:
            raise Unwritable(f"the type {argument}".replace("torch.", ""))
        return INNER_DTYPES[argument]
    if isinstance(argument, (str, torch.device, torch.layout, torch.memory_format)):
        text = str(argument).replace("torch.", "")
        if "'" in text or "\\" in text or "\n" in text:
            raise Unwritable("a text with quotes")
        return f"'{text}'"
    raise Unwritable(f"an argument of type {type(argument).__name__}")


def _is_size_input(node: Node) -> bool:
    return node.op == "placeholder" and isinstance(node.meta.get("val"), (int, torch.SymInt))


def _without_copy(op: torch._ops.OpOverload) -> str:
    """The name; of what copies a view, as graphs inside of graphs have it, that of the view."""
    space, name = op._schema.name.split("::")
    is_copy = name.endswith("_copy") and name != "lift_fresh_copy"  # of no view, but of a number
    viewed = getattr(getattr(torch.ops, space), name.removesuffix("_copy"), None) if is_copy else None
    view = getattr(viewed, op._overloadname, None)
    return str(view) if getattr(view, "is_view", False) else str(op)


#: Numbers with a fraction that are computed from sizes: by functions of tensors of no axes.
_NUMBERS = {
    operator.truediv: "aten.div.Tensor", operator.mul: "aten.mul.Tensor", operator.add: "aten.add.Tensor",
    operator.sub: "aten.sub.Tensor", operator.pow: "aten.pow.Tensor_Tensor", operator.neg: "aten.neg.default",
    math.sqrt: "aten.sqrt.default", torch._sym_sqrt: "aten.sqrt.default", torch.sym_float: "aten.clone.default",
}  # fmt: skip


def _number_text(node: Node) -> str:
    if node.target not in _NUMBERS:
        raise Unwritable(f"the function {getattr(node.target, '__name__', node.target)} of sizes")
    lines, words = [], []
    for i, argument in enumerate(node.args):
        text = argument_text(argument)
        if not text.startswith("%"):
            lines.append(f"%{node.name}.{i}: f64[] = aten.scalar_tensor.default({text}, dtype=f64)")  # no node has a dot
            text = f"%{node.name}.{i}"
        words.append(text)
    return "\n  ".join([*lines, f"%{node.name}: f64[] = {_NUMBERS[node.target]}({', '.join(words)})"])


def node_text(node: Node, device: str, place: str = "") -> str:
    """The node's line in a program for the device. In a body, `place` is the body's name and a dot. Raises Unwritable."""
    loop = loop_of(node)
    arguments: Sequence[Any] = node.args
    if node.target is operator.getitem:
        name = "getitem"
    elif loop is not None:
        name, arguments = "scan", (place + loop.name, loop.states, loop.scanned, loop.rest)
    elif isinstance(node.meta.get("val"), torch.SymFloat):
        return _number_text(node)
    elif isinstance(node.target, torch._ops.OpOverload):
        name = _without_copy(node.target)
    else:
        raise Unwritable(f"the function {getattr(node.target, '__name__', node.target)}")
    words = [argument_text(argument) for argument in arguments]
    words += [f"{key}={argument_text(value)}" for key, value in node.kwargs.items()]
    if "val" not in node.meta:
        raise Unwritable("a value of unknown type")
    value = node.meta["val"]
    is_strided = isinstance(value, torch.Tensor) and any(user.target in STRIDED for user in node.users)
    strides = f" strides {sizes_text(value.stride())}" if is_strided else ""
    return f"%{node.name}: {type_text(value, device)}{strides} = {name}({', '.join(words)})"


def unwritable(nodes: Iterable[Node], device: str) -> dict[Node, str]:
    """The nodes that have no line, and why; with what a tuple gives, its getitem nodes."""
    reasons: dict[Node, str] = {}
    with computed_sizes():
        for node in nodes:
            try:
                if tells_size(node):
                    raise Unwritable("a size that depends on data")
                if node.target is torch.ops.aten._assert_scalar.default:
                    raise Unwritable("a check of sizes")
                if writes_otherwise(node):
                    raise Unwritable("a write to an input that is no copy")
                node_text(node, device)
                _ = bodies_text([node], device)
                for used in node.all_input_nodes:
                    if used.op in ("placeholder", "get_attr") and not _is_size_input(used) and body_of(used) is None:
                        tensor_text(used.meta.get("val"), device)
            except Unwritable as reason:
                reasons[node] = str(reason)
    return reasons


# Bodies of loops


def bodies_text(nodes: Iterable[Node], device: str, place: str = "") -> list[str]:
    """The lines of the graphs that the nodes run, each with those inside of it behind it. Raises Unwritable."""
    loops = {loop.name: loop for node in nodes if (loop := loop_of(node)) is not None}
    return [line for loop in loops.values() for line in _body_text(place + loop.name, loop.body, device)]


def _body_text(name: str, body: torch.fx.GraphModule, device: str) -> list[str]:
    nodes = list(body.graph.nodes)
    if any(node.op not in ("placeholder", "call_function", "output") and body_of(node) is None for node in nodes) or any(map(is_write, nodes)):
        raise Unwritable("a body of a loop that holds tensors, or writes its inputs")
    inputs = [node for node in nodes if node.op == "placeholder"]
    words = [f"%{n.name}: {'int' if _is_size_input(n) else tensor_text(n.meta.get('val'), device)}" for n in inputs]
    inner = [node for node in nodes if computes(node)]
    lines = [f"torch {name}({', '.join(words)}) {{", *(f"  {node_text(node, device, name + '.')}" for node in inner)]
    return [*lines, f"  return {', '.join(map(argument_text, nodes[-1].args[0]))}", "}", *bodies_text(inner, device, name + ".")]


# Graphs


@dataclasses.dataclass
class Text:
    """A graph as text, and what the native module needs to call it."""

    text: str
    #: For each input: ("size", ""), ("tensor", name), ("parameter", name), ("statistics", name) as of a norm, or ("unused", "").
    inputs: list[tuple[str, str]]
    #: Tensors that the graph holds, by name.
    held: list[tuple[str, torch.Tensor]]
    #: Symbols: name, number of the input that tells it, and its axis there or -1.
    symbols: list[tuple[str, int, int]]
    #: What the symbols were when the graph was captured.
    hints: dict[str, int]
    #: For each result: ("value", number among the text's results), ("none",), ("input", number), ("size", expression), or
    #: ("view", number of the input, sizes, strides, offset): an alias of the input's memory; or ("part", number among the text's
    #: results, ...), of that result's.
    results: list[tuple[Any, ...]]
    #: (number of the input, number among the text's results) for each input that is written at the end.
    writes: list[tuple[int, int]]
    #: Sizes that the caller computes, of symbols: inputs behind the others.
    computed: list[sympy.Expr] = dataclasses.field(default_factory=list)

    @property
    def makes_values(self) -> bool:
        """Not only sizes and views of inputs."""
        return any(kind in ("value", "part") for kind, *_ in self.results)


def symbols_of(inputs: Sequence[Node]) -> list[tuple[str, int, int]]:
    """Where each symbol's number stands among the inputs."""
    found: dict[str, tuple[str, int, int]] = {}
    for number, node in enumerate(inputs):
        value = node.meta.get("val")
        places = [(value, -1)] if isinstance(value, torch.SymInt) else []
        if isinstance(value, torch.Tensor):
            places = [(size, axis) for axis, size in enumerate(value.shape)]
        for size, axis in places:
            is_number = isinstance(size, torch.SymInt) and not isinstance(size.node.hint, torch.SymInt)  # else of a nested tensor
            if is_number and size.node.expr.is_Symbol:
                found.setdefault(str(size.node.expr), (str(size.node.expr), number, axis))
    return list(found.values())


def _shared_roots(outputs: Sequence[Any], shares: bool) -> set[Node]:
    """What lies without gaps, and is shown by a result that is made again, or by several results if they share memory."""
    tensors = {node for node in outputs if isinstance(node, Node) and isinstance(node.meta.get("val"), torch.Tensor)}
    counts = collections.Counter(map(root_of, tensors))
    wanted = {node for node, count in counts.items() if shares and count > 1} | {root_of(node) for node in tensors if is_remade(node)}
    return {
        node for node in wanted
        if node.op == "call_function" and isinstance(whole := node.meta.get("val"), torch.Tensor) and dense_order(whole) is not None
    }  # fmt: skip


def _view_result(node: Node, base: Node, number: int, kind: str = "view") -> tuple[Any, ...] | None:
    view, whole = node.meta["val"], base.meta["val"]
    if view.dtype != whole.dtype or view.untyped_storage()._cdata != whole.untyped_storage()._cdata:
        return None
    offset = expression_of(view.storage_offset()) - expression_of(whole.storage_offset())
    return (kind, number, [size_text(s) for s in view.shape], [size_text(s) for s in view.stride()], expression_text(offset))


class Writer:
    """Writes the nodes of a graph, or of a part of one, whose values `outputs` are its results, for a type of device."""

    watches_statistics = True  #: of norms, which may change between calls

    def __init__(
        self, inputs: Sequence[Node], nodes: Sequence[Node], outputs: Sequence[Any], device: str, writes: Sequence[Node] = (),
        shares: bool = False
    ):  # fmt: skip
        """`shares`: results that show parts of one value share its memory, as eager's do."""
        self.inputs = list(inputs)
        self.number = {node: i for i, node in enumerate(self.inputs)}
        self.nodes = [node for node in nodes if computes(node)]
        self.outputs = outputs
        self.device = device
        self.writes = writes
        self.roots = _shared_roots(outputs, shares)
        self.returned: dict[Node, int] = {}

    def write(self, parameters: set[Node], module: torch.nn.Module) -> Text:
        """`parameters` are the inputs at fixed addresses. Raises Unwritable."""
        with computed_sizes() as computed:
            return self._write(parameters, module, computed)

    def _told(self) -> dict[sympy.Symbol, sympy.Expr]:
        values = ((self.inputs[number].meta["val"], axis) for _, number, axis in symbols_of(self.inputs))
        sizes = [value if axis < 0 else value.shape[axis] for value, axis in values]
        return told_by_guards([size.node.expr for size in sizes], sizes[0].node.shape_env) if sizes else {}

    def _write(self, parameters: set[Node], module: torch.nn.Module, computed: ComputedSizes) -> Text:
        computed.told = self._told()
        results = [self._result(output) for output in self.outputs]
        written = {node.args[0] for node in self.writes}
        writes = [(self.number[node.args[0]], self._written(node)) for node in self.writes]
        needed = self._needed()
        kinds = [self._input_kind(node, parameters - written, needed) for node in self.inputs]
        held = [(n.name, _attribute(module, n)) for n in needed if n.op == "get_attr" and body_of(n) is None]
        told = set(map(str, computed.told))
        symbols = [each for each in symbols_of(self.inputs) if each[0] not in told]
        given = self._given(kinds, held)
        lines = [f"  {node_text(node, self.device)}" for node in self.nodes if node in needed]
        values = ", ".join(f"%{node.name}{self._strides(node)}" for node in self.returned)
        lines += [f"  return {values}" if values else "  return", "}"]
        lines += bodies_text((node for node in self.nodes if node in needed), self.device)
        hints = self._hints(symbols)
        hints.update({name: number_of(e, hints) for e, name in computed.names.items()})
        symbols += [(name, len(kinds) + i, -1) for i, name in enumerate(computed.names.values())]
        if untold := computed.used - {name for name, _, _ in symbols}:
            raise Unwritable(f"the size {min(untold)}, which no input tells")
        words = [*(f"%{name}: int" for name, _, _ in symbols), *given]
        lines.insert(0, f"torch forward({', '.join(words)}) {{")
        kinds += [("size", "")] * len(computed.names)
        return Text("\n".join(lines) + "\n", kinds, held, symbols, hints, results, writes, list(computed.names))

    def _strides(self, node: Node) -> str:
        return strides_text(node.meta["val"])

    def _hints(self, symbols: Sequence[tuple[str, int, int]]) -> dict[str, int]:
        values = ((name, self.inputs[number].meta["val"], axis) for name, number, axis in symbols)
        return {name: hint_of(value if axis < 0 else value.shape[axis]) for name, value, axis in values}

    def _result(self, output: Any) -> tuple[Any, ...]:
        if output is None:
            return ("none",)
        if not isinstance(output, Node):
            return ("size", size_text(output))
        if output in self.number:
            return ("input", self.number[output])
        if is_size(output):
            return ("size", size_text(output.meta["val"]))
        if is_write(output):  # what was written into it
            return ("input", self.number[output.args[0]])
        chain = view_chain(output, self.number)
        base = chain[-1].args[0] if chain else None
        view = None if base is None else _view_result(output, base, self.number[base])
        return view or self._part(output) or ("value", self._return(output))

    def _part(self, output: Node) -> tuple[Any, ...] | None:
        root = root_of(output)
        if root is output or root not in self.roots or _view_result(output, root, 0) is None:
            return None
        return _view_result(output, root, self._return(root), "part")

    def _written(self, node: Node) -> int:
        target, value = (argument.meta.get("val") for argument in node.args[:2])
        if not isinstance(value, torch.Tensor) or self._type(target) != self._type(value) or node.args[1] in self.number:
            raise Unwritable("a write into an input of another type")
        return self._return(node.args[1])

    def _type(self, value: Any) -> str:
        return tensor_text(value, self.device)

    def _return(self, node: Node) -> int:
        if not isinstance(node.meta.get("val"), torch.Tensor):
            raise Unwritable("a result that is no tensor")
        if leaves_device(node.meta.get("val"), self.device):
            raise Unwritable("a result in the CPU's memory")
        return self.returned.setdefault(node, len(self.returned))

    def _needed(self) -> dict[Node, None]:
        """What the results depend on, in order."""
        needed = set(self.returned)
        for node in reversed(self.nodes):
            if node in needed:
                needed.update(used for used in node.all_input_nodes if not is_size(used))
        return {node: None for node in [*sorted((n for n in needed if n.op == "get_attr"), key=lambda n: n.name), *needed]}

    def _input_kind(self, node: Node, parameters: set[Node], needed: dict[Node, None]) -> tuple[str, str]:
        if _is_size_input(node):
            return ("size", "")
        if node not in needed:
            return ("unused", "")
        if node not in parameters:
            return ("tensor", node.name)
        return (kind_of_parameter(node) if self.watches_statistics else "parameter", node.name)

    def _given(self, kinds: Sequence[tuple[str, str]], held: Any) -> list[str]:
        words = []
        for node, (kind, name) in zip(self.inputs, kinds):
            if name:
                flag = " parameter" if kind in ("parameter", "statistics") else ""
                words.append(f"%{name}: {self._type(node.meta['val'])}{self._strides(node)}{flag}")
        return words + [f"%{name}: {self._type(tensor)} parameter" for name, tensor in held]


class DenseWriter(Writer):
    """Writes a graph as a model: inputs and results lie row by row, and results are memory of their own."""

    watches_statistics = False

    def write(self, parameters: set[Node], module: torch.nn.Module) -> Text:
        text = super().write(parameters, module)
        if text.computed:
            raise Unwritable(f"the size {text.computed[0]}")
        return text

    def _told(self) -> dict[sympy.Symbol, sympy.Expr]:
        return {}  # a model's sizes are read off its inputs, each by its own name

    def _strides(self, node: Node) -> str:
        return ""

    def _result(self, output: Any) -> tuple[Any, ...]:
        computed = isinstance(output, Node) and isinstance(output.meta.get("val"), torch.Tensor)
        if not computed or output in self.number:
            return super()._result(output)
        return ("value", self._return(output))


def _attribute(module: torch.nn.Module, node: Node) -> torch.Tensor:
    value: Any = module
    for name in str(node.target).split("."):
        value = getattr(value, name)
    if not isinstance(value, torch.Tensor):
        raise Unwritable(f"the attribute {node.target}, which is no tensor")
    return value
