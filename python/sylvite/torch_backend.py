"""The backend of torch.compile: torch.compile(model, backend="sylvite", mode=...), or options={...}.

Everything of torch that is not public API is used in this file and in the other torch_*.py. AOTAutograd makes
graphs of ATen operations from what Dynamo captured; each becomes a program of Sylvite, or programs for its parts, between
which torch runs what Sylvite lacks.
"""

import atexit
import contextlib
import dataclasses
import functools
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch._decomp import core_aten_decompositions, get_decompositions
from torch._dynamo.utils import flatten_graph_inputs
from torch._functorch import config as functorch_config
from torch._functorch.aot_autograd import aot_module_simplified, make_boxed_func
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils import _pytree as pytree

from . import _native
from ._settings import settings
from .torch_attention import join_attention
from .torch_bytes import DECOMPOSITIONS as BYTES
from .torch_captured import simplify_captured
from .torch_complex import DECOMPOSITIONS as COMPLEX
from .torch_decompositions import DECOMPOSITIONS as WHOLE
from .torch_elements import DECOMPOSITIONS as ELEMENTS
from .torch_factors import DECOMPOSITIONS as FACTORS
from .torch_graph import DTYPES, Text, Writer, computes, device_of, is_write, unwritable
from .torch_grids import DECOMPOSITIONS as GRIDS
from .torch_images import SavedImages, lay_inputs, report_strides, take_strides, with_strides
from .torch_loops import Body, body_of, with_condition
from .torch_operations import DECOMPOSITIONS as OWN
from .torch_operations import keep_attention
from .torch_parts import split
from .torch_quantised import decompositions as of_quantisation
from .torch_random import DECOMPOSITIONS as DRAWS
from .torch_random import replace_draws, take_seeds, with_seeds
from .torch_recurrent import keep_loops
from .torch_rewrites import (
    drop_asserts,
    make_numbers_tensors,
    open_borders,
    outputs_of,
    take_branches,
    take_checks,
    take_places,
    with_borders,
    with_checks,
)
from .torch_runs import or_python, run_by_torch
from .torch_saved import Recipe, keep, keeping, kept_graphs, source_of
from .torch_segments import DECOMPOSITIONS as SEGMENTS
from .torch_sizes import Unwritable, with_nothing, with_sizes, without_sizes
from .torch_statistics import write_counters
from .torch_sums import join_parts
from .torch_training import DECOMPOSITIONS as TRAINING
from .torch_training import keep_saved, partition, resize_by_products
from .torch_views import mark_remade
from .torch_vision import decompositions as of_torchvision

atexit.register(_native.stop_making)  # torch keeps compiled functions to the very end

#: The releases of torch that this was tested with, from the first (on a GPU alone) to the last.
TESTED = ((2, 11), (2, 15))

#: Operations of the core table's decompositions that stay whole, because Sylvite has them; detach also because torch's scan takes
#: what it becomes for a view of an input, and roll because that divides by sizes, which may be open.
KEPT = {
    "_safe_softmax", "_softmax", "addmm", "detach", "gelu", "hardsigmoid", "hardswish", "native_group_norm", "native_layer_norm",
    "roll", "select_backward", "silu", "slice_backward",
}  # fmt: skip

#: Options that are not knobs: an error instead of a part run by torch; parameters as constants.
OWN_OPTIONS = {"fullgraph_strict": False, "freeze": True}


@dataclasses.dataclass
class Options:
    """What one torch.compile was told."""

    mode: str | None
    knobs: dict[str, Any]
    fullgraph_strict: bool
    freeze: bool
    setups: dict[str, _native.Setup] = dataclasses.field(default_factory=dict)  #: by type of device, as they are needed

    def settings(self, device: str) -> dict[str, Any]:
        """For programs on that type of device."""
        knobs = {**self.knobs, "compile.device": device}
        if device == "cuda" and torch.get_float32_matmul_precision() != "highest":
            knobs.setdefault("compile.precision", "tf32")
        return settings(self.mode, knobs)

    def setup(self, device: str) -> _native.Setup:
        if device not in self.setups:
            self.setups[device] = _native.make_setup(self.settings(device))
        return self.setups[device]


def read_options(mode: str | None, options: Mapping[str, Any] | None) -> Options:
    given = dict(options or {})
    given.pop("guard_filter_fn", None)  # torch's own
    own = {name: bool(given.pop(name, default)) for name, default in OWN_OPTIONS.items()}
    if "compile.device" in given:
        raise _native.UsageError("options['compile.device']: a graph runs where its tensors are; move these")
    if "first_answer" in given:
        given["compile.first_answer"] = given.pop("first_answer")
    given.setdefault("compile.threads", torch.get_num_threads())
    if mode == "max-autotune-no-cudagraphs":
        given.setdefault("runtime.cuda_graph", False)
    return Options(mode, given, **own)


# Graphs


def _or_whole(function: Callable[..., Any]) -> Callable[..., Any]:
    """What cannot be taken apart stays one operation, which torch runs."""

    @functools.wraps(function)
    def apply(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except (LookupError, RuntimeError, TypeError, ValueError):
            return NotImplemented

    return apply


@functools.cache
def own_decompositions() -> dict[Any, Callable[..., Any]]:
    """Torch's core table and the package's own."""
    aten = torch.ops.aten
    # What is normalised by a batch is computed again in the backward pass, of what was saved anyway; torch 2.13 lacks the other.
    further = [aten._native_batch_norm_legit_functional, aten.linalg_vector_norm]
    table = {**get_decompositions(further), **core_aten_decompositions()}
    kept = {op: f for op, f in table.items() if str(op).split(".")[1] not in KEPT}
    own = {**WHOLE, **FACTORS, **ELEMENTS, **GRIDS, **COMPLEX, **SEGMENTS, **BYTES, **DRAWS, **OWN}
    return {**kept, **{op: _or_whole(function) for op, function in own.items()}}


class Decompositions(Mapping[Any, Callable[..., Any]]):
    """By operation. They are gathered when the first is asked for: a graph that torch has kept needs none."""

    def __init__(self, has_gradients: bool) -> None:
        self.has_gradients = has_gradients

    @functools.cached_property
    def table(self) -> dict[Any, Callable[..., Any]]:
        return {**own_decompositions(), **of_quantisation(), **of_torchvision(), **(TRAINING if self.has_gradients else {})}

    def __getitem__(self, op: Any) -> Callable[..., Any]:
        return self.table[op]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.table)

    def __len__(self) -> int:
        return len(self.table)


@dataclasses.dataclass
class Compiled:
    """A graph, for explain."""

    kind: str
    device: str = "cpu"
    texts: list[str] = dataclasses.field(default_factory=list)
    sizes: list[dict[str, int]] = dataclasses.field(default_factory=list)  #: of each text, when it was captured
    programs: list[_native.Program] = dataclasses.field(default_factory=list)
    torch_parts: int = 0
    refused: list[tuple[str, str, str]] = dataclasses.field(default_factory=list)
    failure: str = ""

    def add(self, text: Text, program: _native.Program) -> None:
        self.texts.append(text.text)
        self.sizes.append(text.hints)
        self.programs.append(program)


#: Where explain collects what is compiled meanwhile.
_listeners: list[list[Compiled]] = []


def _tell(compiled: Compiled) -> None:
    for listener in _listeners:
        listener.append(compiled)


def view_of(tensor: torch.Tensor, sizes: Sequence[int], strides: Sequence[int], offset: int) -> torch.Tensor:
    return torch.as_strided(tensor, sizes, strides, tensor.storage_offset() + offset)


def view_maker(kind: str) -> Callable[..., torch.Tensor]:
    """Results of a graph without gradients are saved for nobody, so that views need not share their memory's count of writes."""
    quick = getattr(torch._C._dynamo.guards, "_reinterpret_tensor", None)
    return quick if kind == "inference" and quick is not None else view_of


# Memory on a GPU


def _place(tensor: torch.Tensor, strides: Sequence[int]) -> torch.Tensor:
    """The values on the GPU, lying so."""
    if tensor.device.type == "cpu" and tensor.dim() == 0:  # a number, which needs no copy that waits
        return torch.full((), tensor.item(), dtype=tensor.dtype, device="cuda:0")
    with torch.no_grad():
        return torch.empty_strided(tensor.shape, strides, dtype=tensor.dtype, device="cuda:0").copy_(tensor)


def _write(target: torch.Tensor, value: torch.Tensor) -> None:
    with torch.no_grad():
        target.copy_(value)


def _allocator() -> Callable[..., torch.Tensor]:
    """(sizes, strides, dtype) -> a tensor of torch's own on the first GPU."""
    quick = getattr(torch._C._dynamo.guards, "_empty_strided_cuda", None)
    if quick is not None and torch.cuda.device_count() == 1:  # it takes the current one
        return quick
    return lambda sizes, strides, dtype: torch.empty_strided(sizes, strides, dtype=dtype, device="cuda:0")


def device_tools(kind: str) -> tuple[Any, ...]:
    """What the native module makes memory on the GPU with. Nothing else has what was saved for gradients when these are computed."""
    return (kind == "backward", _allocator(), _place, lambda tensor: tensor.detach().cpu(), _write, {name: dtype for dtype, name in DTYPES.items()}, write_counters)


def run_boxed(module: torch.fx.GraphModule) -> Callable[[list[Any]], Any]:
    return make_boxed_func(module.forward)


def show_inputs(module: torch.fx.GraphModule, kind: str) -> Callable[[list[Any]], Any]:
    """The function of a graph of views of inputs and of sizes alone. AOTAutograd makes results that show inputs again where nothing has gradients."""
    if kind == "inference":
        for node in module.graph.find_nodes(op="call_function", target=torch.ops.aten.detach.default):
            node.replace_all_uses_with(node.args[0])
            module.graph.erase_node(node)
    return run_by_torch(torch.fx.GraphModule(module, module.graph))  # not torch's own class, whose function takes a detour at each call


class Failure:
    """What happens where a graph cannot be compiled: torch runs it, with one warning, or an error with fullgraph_strict."""

    def __init__(self, options: Options, record: Compiled) -> None:
        self.strict = options.fullgraph_strict
        self.record = record

    def __call__(self, reason: str) -> None:
        if self.strict:
            raise _native.UnsupportedError(f"{reason} (options['fullgraph_strict'] makes this an error)")
        if not self.record.failure:
            self.record.failure = reason
            warnings.warn(f"sylvite: torch runs a graph that is not compiled: {reason}", stacklevel=2)


def make_program(
    text: Text, device: str, options: Options, fallback: Callable[..., Any], failed: Failure, kind: str
) -> _native.Program:
    with unset_fake_temporarily():
        held = [(name, tensor.detach().cpu()) for name, tensor in text.held]
    alone = [(*write, True) for write in text.writes]  # AOTAutograd makes one input of those that share memory
    return _native.make_program(
        options.setup(device), text.text, text.inputs, held, text.symbols, text.results, alone,
        (without_sizes(fallback, text.computed), failed, view_maker(kind)), device_tools(kind) if device == "cuda" else None)  # fmt: skip


def static_inputs(module: torch.fx.GraphModule) -> set[torch.fx.Node]:
    """Parameters and buffers."""
    context = torch._guards.TracingContext.try_get()
    metadata = None if context is None else context.fw_metadata
    numbers = set(getattr(metadata, "static_input_indices", None) or ())
    placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
    return {node for i, node in enumerate(placeholders) if i in numbers and isinstance(node.meta["val"], torch.Tensor)}


def refusals(text: Text) -> list[tuple[str, str, str]]:
    """The nodes that Sylvite lacks, as (name, operation, reason)."""
    try:
        return _native.refusals(text.text, text.hints)
    except _native.Error as error:
        found = re.search(r"%([\w.]+) = ([\w.]+): (.*)", str(error))
        if found is None:
            raise
        return [(found[1], found[2], found[3])]  # a node that cannot even be looked at


def _whole(
    module: torch.fx.GraphModule, parameters: set[torch.fx.Node], shares: bool = False
) -> tuple[Text | None, dict[torch.fx.Node, str]]:
    """The graph's text, or the nodes that torch has to run."""
    nodes = list(module.graph.nodes)
    inputs = [node for node in nodes if node.op == "placeholder"]
    device = device_of(nodes)
    reasons = unwritable((node for node in nodes if computes(node)), device)
    if reasons:
        return None, reasons
    outputs = next(node for node in nodes if node.op == "output").args[0]
    try:
        text = Writer(inputs, nodes, outputs, device, [node for node in nodes if is_write(node)], shares).write(parameters, module)
    except Unwritable:
        return None, {}  # parts may do
    by_name = {node.name: node for node in nodes}
    refused = {by_name[name]: reason for name, _, reason in refusals(text) if name in by_name}
    return (None if refused else text), refused


def _is_trivial(module: torch.fx.GraphModule) -> bool:
    return not any(computes(node) for node in module.graph.nodes)


def _whole_forward(module: torch.fx.GraphModule) -> tuple[Text | None, dict[torch.fx.Node, str]]:
    """The same of a forward graph on a GPU, which saves images as it has them."""
    saved = SavedImages(module)
    text, refused = _whole(module, set())
    if text is None:
        saved.restore()
    return text, refused


def _one_program(text: Text, device: str, kind: str, options: Options, fallback: Callable[[list[Any]], Any]) -> Callable[[list[Any]], Any]:
    record = Compiled(kind, device)
    program = make_program(text, device, options, fallback, Failure(options, record), kind)
    record.add(text, program)
    _tell(record)
    return with_nothing(with_sizes(program, text.symbols, text.computed), text.symbols, fallback)


def _compile(
    module: torch.fx.GraphModule, options: Options, kind: str, strides: dict[int, tuple[int, ...]]
) -> tuple[Callable[[list[Any]], Any], Text | None]:
    """The graph's function, and its text if that is one program. `strides`: of inputs, as operations that torch runs expect them."""
    device = device_of(module.graph.nodes)
    record = Compiled(kind, device)
    failed = Failure(options, record)
    parameters = static_inputs(module) if kind == "inference" and options.freeze else set()
    text, refused = _whole_forward(module) if (kind, device) == ("forward", "cuda") else _whole(module, parameters, kind == "inference")
    record.refused = [(node.name, str(node.target), reason) for node, reason in refused.items()]
    if refused and options.fullgraph_strict:
        name, op, reason = record.refused[0]
        failed(f"%{name} = {op}: {reason}")
    if text is not None and not text.writes and not text.makes_values:
        return show_inputs(module, kind), None
    if text is not None:
        return _one_program(text, device, kind, options, with_strides(run_boxed(module), strides)), text

    def part_program(part: torch.fx.GraphModule, part_text: Text) -> _native.Program:
        fallback = run_boxed(part)
        program = make_program(part_text, device, options, fallback, failed, kind)
        record.add(part_text, program)
        return with_nothing(with_sizes(program, part_text.symbols, part_text.computed), part_text.symbols, fallback)

    for node in refused:
        _compile_bodies(module, node, options)
    lay_inputs(module, strides)  # parts of torch may view them
    made = split(module, set(refused), parameters, refusals, part_program)
    record.torch_parts = made.torch_parts
    record.refused += made.refused
    _tell(record)
    return with_strides(made, strides), None


def _compile_bodies(module: torch.fx.GraphModule, node: torch.fx.Node, options: Options) -> None:
    """Torch decides how often it runs the graphs of this operation, and which. A step of a while_loop also tells whether another follows."""
    telling = with_condition(node)
    for used in node.all_input_nodes:
        body = body_of(used)
        if body is None or _is_trivial(body):
            continue
        tells = telling is not None and used is node.args[1]
        body = telling if tells else body
        last = next(each for each in body.graph.nodes if each.op == "output")
        has_one = isinstance(last.args[0], torch.fx.Node)
        if has_one:
            last.args = ((last.args[0],),)
            body.recompile()
        module.set_submodule(str(used.target), Body(_compile(body, options, "body", {})[0], has_one, tells))


def make_kept(recipe: Recipe, options: Options) -> Callable[[list[Any]], Any]:
    """The function of a graph that another process compiled."""
    fallback = with_strides(recipe.source, recipe.strides)
    run = _one_program(recipe.text, recipe.device, recipe.kind, options, fallback)
    return with_seeds(with_checks(with_borders(run, recipe.borders), recipe.checks), recipe.seeds)


def graph_compiler(options: Options, kind: str) -> Callable[..., Any]:
    """For AOTAutograd: from a graph to a function of one list, which it empties."""

    def compile_graph(module: torch.fx.GraphModule, inputs: Sequence[Any]) -> Callable[[list[Any]], Any]:
        if kind == "backward":
            keep_saved()
            drop_asserts(module)
        if _is_trivial(module):
            return keep(show_inputs(module, kind), None)
        strides = take_strides(module, inputs) if kind == "backward" else {}
        if kind != "backward":
            mark_remade(module)
        take_branches(module)
        replace_draws(module)
        seeds = take_seeds(module)
        outputs = outputs_of(module)
        checks = [*take_checks(module), *(take_places(module) if kind != "backward" else ())]
        make_numbers_tensors(module)
        join_parts(module)
        borders = open_borders(module, strides)
        made, text = compile_or_leave(module, strides)
        if kind == "forward":
            report_strides([None if i in borders.outputs else output for i, output in enumerate(outputs)])
        source = None if text is None else source_of(module)
        recipe = None if source is None else Recipe(kind, device_of(module.graph.nodes), text, source, strides, borders, checks, seeds)
        return keep(with_seeds(with_checks(with_borders(made, borders), checks), seeds), recipe)

    def compile_or_leave(
        module: torch.fx.GraphModule, strides: dict[int, tuple[int, ...]]
    ) -> tuple[Callable[[list[Any]], Any], Text | None]:
        try:
            return _compile(module, options, kind, strides)
        except Exception as error:
            if options.fullgraph_strict:
                raise
            record = Compiled(kind, torch_parts=1)
            Failure(options, record)(f"{type(error).__name__}: {error}")
            _tell(record)
            return with_strides(run_boxed(module), strides), None

    return compile_graph


@functools.cache
def warn_of_untested(version: str) -> None:
    """Once, where the release of torch is none of those."""
    found = re.match(r"(\d+)\.(\d+)", version)
    if found is None or not TESTED[0] <= (int(found[1]), int(found[2])) <= TESTED[1]:
        first, last = (".".join(map(str, each)) for each in TESTED)
        warnings.warn(f"sylvite: tested with torch {first} to {last}, this is {version}", stacklevel=2)


def needs_gradients(inputs: Sequence[Any]) -> bool:
    return torch.is_grad_enabled() and any(isinstance(i, torch.Tensor) and i.requires_grad for i in inputs)


def backend(
    module: torch.fx.GraphModule,
    inputs: Sequence[Any],
    *,
    mode: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> Callable[..., Any]:
    """What the entry point of the group torch_dynamo_backends names."""
    warn_of_untested(torch.__version__)
    told = read_options(mode, options)
    flat = pytree.tree_leaves(list(inputs))
    on_gpu = any(isinstance(i, torch.Tensor) and i.device.type == "cuda" for i in flat)
    told.setup("cuda" if on_gpu else "cpu")  # settings that are wrong are an error at once
    has_gradients = needs_gradients(flat)
    with_results = simplify_captured(module)
    if has_gradients:
        join_attention(module)
    keep_attention(module, has_gradients)
    if has_gradients:
        resize_by_products(module)
    keep_loops(module)
    # Attention that is not kept is products and a softmax, whose gradients are products and sums.
    # Effects are no inputs and outputs: what they order is done behind the graph, or by torch.
    keeps = contextlib.nullcontext() if on_gpu else kept_graphs(functools.partial(make_kept, options=told), told.freeze)
    with or_python(told.fullgraph_strict), sdpa_kernel(SDPBackend.MATH), functorch_config.patch(unlift_effect_tokens=True), keeps:
        make = functools.partial(
            aot_module_simplified,
            fw_compiler=keeping(graph_compiler(told, "forward")),
            bw_compiler=keeping(graph_compiler(told, "backward")),
            inference_compiler=keeping(graph_compiler(told, "inference")),
            decompositions=Decompositions(has_gradients),
            partition_fn=partition,
            keep_inference_input_mutations=True,
        )
        if any(isinstance(i, (list, tuple, dict)) for i in inputs):  # as compiled autograd gives them
            return flatten_graph_inputs(module, inputs, make)
        return with_results(make(module, inputs))


# Listeners


@contextlib.contextmanager
def listen() -> Iterator[list[Compiled]]:
    """Collects what is compiled meanwhile."""
    heard: list[Compiled] = []
    _listeners.append(heard)
    try:
        yield heard
    finally:
        _listeners.remove(heard)
