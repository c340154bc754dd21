"""Programs of `torch.export` as models: their text and weights as files, which the command and `compile` take like ONNX models."""

import contextlib
import ctypes
import dataclasses
import json
import os
import pathlib
import tempfile
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch.export._tree_utils import reorder_kwargs
from torch.utils._pytree import tree_flatten, tree_unflatten

from . import _native
from ._model import Model, in_own_folder
from ._settings import settings
from .torch_backend import Decompositions, refusals
from .torch_graph import DTYPES, DenseWriter, Text, computes, unwritable
from .torch_operations import attention_arguments
from .torch_sizes import Unwritable

#: What the format of weights calls element types.
_TYPE_NAMES = {"f64": "F64", "f32": "F32", "f16": "F16", "bf16": "BF16", "i64": "I64", "i32": "I32", "i16": "I16", "i8": "I8",
               "u8": "U8", "bool": "BOOL"}  # fmt: skip


@dataclasses.dataclass
class Written:
    """A program's files, and what its calls look like."""

    path: str  #: of the text; the weights lie beside it
    dims: dict[str, str]  #: ranges of the sizes that are open, as --dims has them
    inputs: list[int]  #: which of the flat inputs the text takes, in order
    results: list[tuple[str, int]]  #: ("value", number of the text's result), ("input", number of the flat input), or ("none", 0)
    in_spec: Any
    out_spec: Any


# Writing


def _whole_attention(*args: Any, **kwargs: Any) -> Any:
    arguments = attention_arguments(*args, **kwargs)
    return NotImplemented if arguments is None else torch.ops.sylvite.attention(*arguments)


def decomposition_table() -> dict[Any, Callable[..., Any]]:
    return {**Decompositions(False), torch.ops.aten.scaled_dot_product_attention.default: _whole_attention}


def _values(program: torch.export.ExportedProgram) -> dict[str, torch.Tensor]:
    """Parameters, buffers and constants, by the input of the graph that stands for them."""
    signature = program.graph_signature
    named = {**signature.inputs_to_parameters, **signature.inputs_to_buffers, **signature.inputs_to_lifted_tensor_constants}
    stored = {**program.constants, **program.state_dict}
    return {name: stored[target] for name, target in named.items()}


def _check_writes(program: torch.export.ExportedProgram) -> None:
    signature = program.graph_signature
    written = [*signature.buffers_to_mutate.values(), *signature.user_inputs_to_mutate.values()]
    if written:
        raise _native.UnsupportedError(
            f"the program writes to '{written[0]}'; only programs that write to nothing are taken (a module in training? call eval())")


def is_check(node: torch.fx.Node) -> bool:
    """A promise about values or types, which gives nothing."""
    return not node.users and str(node.target).startswith(("aten._assert_", "aten.sym_constrain_range"))


def _text(program: torch.export.ExportedProgram, parameters: set[torch.fx.Node]) -> Text:
    module = program.graph_module
    nodes = [node for node in module.graph.nodes if not is_check(node)]
    outputs = next(node for node in nodes if node.op == "output").args[0]
    reasons = unwritable((node for node in nodes if computes(node)), "cpu")
    for node, reason in reasons.items():
        raise _native.UnsupportedError(f"%{node.name} = {node.target}: {reason}")
    try:
        inputs = [node for node in nodes if node.op == "placeholder"]
        text = DenseWriter(inputs, nodes, outputs, "cpu").write(parameters, module)
    except Unwritable as reason:
        raise _native.UnsupportedError(str(reason)) from reason
    for name, op, reason in refusals(text):
        raise _native.UnsupportedError(f"%{name} = {op}: {reason}")
    return text


def _results(text: Text, held: int) -> list[tuple[str, int]]:
    """`held`: inputs of the text before those of calls."""
    results = []
    for kind, *rest in text.results:
        if kind == "size" or (kind == "input" and rest[0] < held):
            raise _native.UnsupportedError(f"the program returns {'a size' if kind == 'size' else 'a parameter'}; return tensors that it computes")
        results.append((kind, rest[0] - held if kind == "input" else rest[0] if rest else 0))
    return results


def _range_text(limits: Any, hint: int) -> str:
    """Where nothing is said torch reasons as if sizes were at least 2, and takes 1 as well."""
    low = 1 if int(limits.lower) in (1, 2) else int(limits.lower)
    high = str(limits.upper) if str(limits.upper).isdigit() and int(limits.upper) < 2**62 else ""
    return f"{low}..{high}@{max(hint, low, 1)}"


def _dims(program: torch.export.ExportedProgram, hints: Mapping[str, int]) -> dict[str, str]:
    ranges = {str(symbol): limits for symbol, limits in program.range_constraints.items()}
    return {name: _range_text(ranges[name], hint) if name in ranges else f"1..@{max(hint, 1)}" for name, hint in hints.items()}


def write_weights(tensors: Mapping[str, torch.Tensor], path: str | os.PathLike[str]) -> None:
    """A file of the safetensors format. Larger element types come first, so that each tensor lies at a multiple of its own."""
    ordered = sorted(tensors.items(), key=lambda item: -item[1].element_size())
    header: dict[str, Any] = {}
    end = 0
    for name, tensor in ordered:
        begin, end = end, end + tensor.numel() * tensor.element_size()
        header[name] = {"dtype": _TYPE_NAMES[DTYPES[tensor.dtype]], "shape": list(tensor.shape), "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    text += b" " * (-(len(text) + 8) % 64)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for _, tensor in ordered:
            dense = tensor.detach().cpu().contiguous()
            if dense.numel():
                file.write((ctypes.c_char * (dense.numel() * dense.element_size())).from_address(dense.data_ptr()))


def write(program: torch.export.ExportedProgram, path: str | os.PathLike[str]) -> Written:
    """Writes `path`, which ends in .torch, and the weights beside it, with the suffix .safetensors."""
    if not isinstance(program, torch.export.ExportedProgram):
        raise _native.UsageError(f"expected what torch.export.export returns, got {type(program).__name__}")
    file = pathlib.Path(path)
    if file.suffix != ".torch":
        raise _native.UsageError(f"'{path}' does not end in .torch")
    core = program.run_decompositions(decomposition_table())
    _check_writes(core)
    values = _values(core)
    placeholders = [node for node in core.graph_module.graph.nodes if node.op == "placeholder"]
    text = _text(core, {node for node in placeholders if node.name in values})
    weights = {name: values[name] for kind, name in text.inputs if kind == "parameter"}
    write_weights({**weights, **dict(text.held)}, file.with_suffix(".safetensors"))
    file.write_text(text.text, encoding="utf-8")
    flat = [name for node, (_, name) in zip(placeholders, text.inputs) if node.name not in values]
    taken = [number for number, name in enumerate(flat) if name]
    spec = program.call_spec
    return Written(str(file), _dims(core, text.hints), taken, _results(text, len(values)), spec.in_spec, spec.out_spec)


@contextlib.contextmanager
def written(program: torch.export.ExportedProgram) -> Iterator[Written]:
    """In a folder that goes at the end."""
    with tempfile.TemporaryDirectory() as folder:
        yield write(program, os.path.join(folder, "model.torch"))


# Calling


class ExportedModel(Model):
    """A compiled program of torch: takes and returns what the exported module does. Memory of inputs is read where it is dense
    and at a multiple of 64 bytes; results are new tensors."""

    def __init__(self, program: Written, made: Mapping[str, Any]) -> None:
        self._program = program
        super().__init__(program.path, made)

    def _source(self) -> Written:
        return self._program

    @staticmethod
    def _moved(source: Written, folder: str) -> Written:
        return dataclasses.replace(source, path=os.path.join(folder, os.path.basename(source.path)))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        wanted = self._program.in_spec
        try:
            flat, spec = tree_flatten((args, reorder_kwargs(kwargs, wanted)))
        except ValueError as error:  # other names
            raise _native.InputError(f"the program takes {wanted}: {error}") from error
        if spec != wanted:
            raise _native.InputError(f"the program takes {wanted}, got {spec}")
        computed = self._native.run([flat[number] for number in self._program.inputs])
        takers = {"value": lambda number: torch.from_dlpack(computed[number]), "input": flat.__getitem__, "none": lambda _: None}
        return tree_unflatten([takers[kind](number) for kind, number in self._program.results], self._program.out_spec)


def from_torch(
    program: torch.export.ExportedProgram,
    *,
    mode: str = "default",
    options: Mapping[str, Any] | None = None,
    dims: Mapping[str, Any] | None = None,
    path: str | os.PathLike[str] | None = None,
) -> ExportedModel:
    """Compiles what `torch.export.export` returns. Sizes that it left open have the ranges that it has for them, and are fast at
    those of its example; `dims` says otherwise, by torch's names (s0). With `path`, NAME.torch, the program and its weights are kept as
    files, which `sylvite.compile` and the command take. Raises subclasses of sylvite.Error.
    """

    def make(folder: str) -> ExportedModel:
        kept = write(program, path or os.path.join(folder, "model.torch"))
        return ExportedModel(kept, settings(mode, options, {**kept.dims, **(dims or {})}))

    return in_own_folder(make) if path is None else make("")
