"""Handles: a module bound to its parameters, called without torch.compile and its guards."""

from collections.abc import Mapping
from typing import Any

import torch
from torch.export.graph_signature import InputKind, OutputKind
from torch.utils._pytree import tree_flatten, tree_unflatten

from . import _native
from .torch_backend import Options, device_tools, read_options, refusals, view_of
from .torch_export import decomposition_table, is_check
from .torch_graph import Text, Writer, computes, device_of, unwritable
from .torch_sizes import Unwritable, with_sizes

_WRITES = (OutputKind.BUFFER_MUTATION, OutputKind.USER_INPUT_MUTATION)


def _bind(program: torch.export.ExportedProgram) -> list[torch.Tensor]:
    """Makes attributes of the graph of parameters, and writes of what the program writes. Returns the buffers that it writes:
    they stay inputs, before those of calls."""
    module, signature = program.graph_module, program.graph_signature
    stored = {**program.constants, **program.state_dict}
    written = set(signature.buffers_to_mutate.values())
    placeholders = {node.name: node for node in module.graph.nodes if node.op == "placeholder"}
    targets = {spec.target: placeholders[spec.arg.name] for spec in signature.input_specs if spec.target is not None}
    _add_writes(program, {**placeholders, **targets})
    buffers = []
    for spec in signature.input_specs:
        if spec.kind == InputKind.USER_INPUT:
            continue
        node = placeholders[spec.arg.name]
        if spec.target in written:
            buffers.append(stored[spec.target])
            continue
        setattr(module, node.name, torch.nn.Buffer(stored[spec.target].detach(), persistent=False))
        with module.graph.inserting_before(node):
            held = module.graph.get_attr(node.name)
        held.meta = dict(node.meta)
        node.replace_all_uses_with(held)
        module.graph.erase_node(node)
    return buffers


def _add_writes(program: torch.export.ExportedProgram, inputs: Mapping[str, torch.fx.Node]) -> None:
    graph, specs = program.graph_module.graph, program.graph_signature.output_specs
    output = next(node for node in graph.nodes if node.op == "output")
    values = output.args[0]
    with graph.inserting_before(output):
        for spec, value in zip(specs, values):
            if spec.kind in _WRITES:
                node = graph.call_function(torch.ops.aten.copy_.default, (inputs[spec.target], value))
                node.meta["val"] = inputs[spec.target].meta["val"]
    output.args = (tuple(value for spec, value in zip(specs, values) if spec.kind not in _WRITES),)


def _text(program: torch.export.ExportedProgram) -> Text:
    module = program.graph_module
    nodes = [node for node in module.graph.nodes if not is_check(node)]
    device = device_of(nodes)
    inputs = [node for node in nodes if node.op == "placeholder"]
    outputs = next(node for node in nodes if node.op == "output").args[0]
    for node, reason in unwritable((node for node in nodes if computes(node)), device).items():
        raise _native.UnsupportedError(f"%{node.name} = {node.target}: {reason}")
    writes = [node for node in nodes if node.target is torch.ops.aten.copy_.default and node.args[0].op == "placeholder"]
    try:
        text = Writer(inputs, nodes, outputs, device, writes).write(set(), module)
    except Unwritable as reason:
        raise _native.UnsupportedError(str(reason)) from reason
    for name, op, reason in refusals(text):
        raise _native.UnsupportedError(f"%{name} = {op}: {reason}")
    return text


class Handle:
    """What a module computes without gradients, with its parameters as they were when it was bound, or at `refresh()`. Called as
    the module is, with tensors of the example's types, and of its sizes where these are not open. Inputs that lie in memory as the
    example did are read in place. Buffers that the module writes are written."""

    def __init__(self, program: torch.export.ExportedProgram, told: Options) -> None:
        core = program.run_decompositions(decomposition_table())
        self._spec, self._out_spec = core.call_spec.in_spec, core.call_spec.out_spec
        self._buffers = _bind(core)
        self._text = _text(core)
        self._device = device_of(core.graph_module.graph.nodes)
        self._told = told
        self._is_plain = self._spec == tree_flatten(((0,) * self._spec.num_leaves, {}))[1]
        self._is_single = self._out_spec.is_leaf()
        self.refresh()

    def refresh(self) -> None:
        """Takes the values of parameters again. Kernels come from the cache."""
        self._program = _native.make_program(
            self._told.setup(self._device), self._text.text, self._text.inputs, self._held(), self._text.symbols, self._text.results,
            self._text.writes, (self._cannot_run, self._failed, view_of), device_tools("inference") if self._device == "cuda" else None)  # fmt: skip
        self._run = with_sizes(self._program, self._text.symbols, self._text.computed)

    def _held(self) -> list[tuple[str, torch.Tensor]]:
        return [(name, tensor.detach().cpu()) for name, tensor in self._text.held]

    def _failed(self, reason: str) -> None:
        self.refresh()  # what cannot run one call's inputs may run those of others
        raise _native.InputError(reason)

    def _cannot_run(self, inputs: list[Any]) -> Any:
        raise _native.UnsupportedError("the handle was replaced while this call waited for another that failed")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._is_plain and not kwargs:
            results = self._run([*self._buffers, *args])
        else:
            flat, spec = tree_flatten((args, kwargs))
            if spec != self._spec:
                raise _native.InputError(f"the handle takes {self._spec}, got {spec}")
            results = self._run([*self._buffers, *flat])
        return results[0] if self._is_single else tree_unflatten(results, self._out_spec)

    def report(self) -> dict[str, Any]:
        """Counts and times of what was compiled since the parameters were taken."""
        return self._program.report()


def program(
    module: torch.nn.Module,
    *args: Any,
    mode: str | None = None,
    options: Mapping[str, Any] | None = None,
    dynamic_shapes: Any = None,
    **kwargs: Any,
) -> Handle:
    """Binds a module to its parameters for calls without gradients: `handle = sylvite.program(module, x); y = handle(x)`. The
    arguments are examples; sizes are theirs, unless `dynamic_shapes` leaves some open, as for torch.export.export. Compiles at once.
    What Sylvite lacks is an error that names it. Raises subclasses of sylvite.Error, and what torch.export raises.
    """
    told = read_options(mode, options)
    told.knobs["compile.first_answer"] = "best"  # there is no torch to run it meanwhile
    with torch.no_grad():
        exported = torch.export.export(module, args, kwargs, dynamic_shapes=dynamic_shapes)
    return Handle(exported, told)
