"""Graphs that torch's AOTAutograd keeps on disk, so that a second process that meets one captures nothing behind Dynamo.

Torch's cache of these is private and moves between releases. Where a name of it is absent, or anything fails, a graph is
compiled as ever.
"""

import ast
import contextlib
import dataclasses
import functools
import hashlib
import importlib.util
import os
import pathlib
import pickle
import stat
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
import torch.compiler.config as compiler_config
from torch._functorch import config as functorch_config
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.fx import GraphModule

from . import torch_captured, torch_operations
from .torch_graph import Text
from .torch_rewrites import Borders

try:
    from torch._functorch._aot_autograd.autograd_cache import BypassAOTAutogradCache
    from torch._functorch._aot_autograd.schemas import SerializableAOTDispatchCompiler
    from torch._inductor import codecache
    from torch._inductor import config as inductor_config
    from torch._inductor.output_code import OutputCode
    from torch._inductor.runtime.cache_dir_utils import cache_dir
    from torch.fx.graph import _custom_builtins

    IS_THERE = (
        hasattr(functorch_config, "bundled_autograd_cache") and hasattr(compiler_config, "cache_key_tag")
        and hasattr(codecache.torch_key, "set") and hasattr(codecache.triton_key, "set")
    )  # fmt: skip
except (ImportError, AttributeError):  # of a torch whose caches are made otherwise
    OutputCode = object
    IS_THERE = False

Boxed = Callable[[list[Any]], Any]

#: Bytes of the tensors that a graph holds, above which it is not kept.
_MOST_HELD = 1 << 20


@dataclasses.dataclass
class Source:
    """A graph as a text of Python, and the tensors that it holds: what torch runs where the program cannot."""

    text: str
    held: dict[str, torch.Tensor]

    @functools.cached_property
    def forward(self) -> Callable[..., Any]:
        names = {name: each.obj for name, each in _custom_builtins.items()}
        exec(self.text, names)  # noqa: S102 it was written by torch
        holder = torch.nn.Module()
        for name, tensor in self.held.items():
            holder.register_buffer(name, tensor)
        return functools.partial(names["forward"], holder)

    def __call__(self, values: list[Any]) -> Any:
        given = list(values)
        values.clear()
        return self.forward(*given)


def source_of(module: GraphModule) -> Source | None:
    """None where the graph holds what is no small tensor, or calls what has no name in torch."""
    held = {}
    for node in module.graph.find_nodes(op="get_attr"):
        tensor = getattr(module, str(node.target), None)
        if not isinstance(tensor, torch.Tensor):
            return None
        held[str(node.target)] = tensor
    if sum(tensor.numel() * tensor.element_size() for tensor in held.values()) > _MOST_HELD:
        return None
    code = module.graph.python_code("self")
    if not set(code.globals) <= set(_custom_builtins):
        return None
    with unset_fake_temporarily():
        return Source(code.src, {name: tensor.detach().cpu() for name, tensor in held.items()})


@dataclasses.dataclass
class Recipe:
    """What makes the function of a graph that is one program."""

    kind: str
    device: str
    text: Text
    source: Source
    strides: dict[int, tuple[int, ...]]  #: of inputs, as torch's own operations expect them
    borders: Borders
    checks: Sequence[Callable[[torch.Tensor], None]]
    seeds: Sequence[torch.device]

    def packed(self) -> bytes | None:
        try:
            return pickle.dumps(self)
        except Exception:  # what cannot be pickled says so in many ways: a check by an operation, a size that is computed
            return None


#: What makes functions of recipes for the graph that is compiled now.
_makers: list[Callable[[Recipe], Boxed]] = []


@dataclasses.dataclass
class Kept(OutputCode):  # type: ignore[misc]
    """The function of a graph, and its packed recipe if it can be kept."""

    recipe: bytes | None
    run: Boxed | None
    _boxed_call: bool = True  #: of the object, whose dictionary torch copies to what it wraps this in

    def __post_init__(self) -> None:
        self._time_taken_ns = 0

    def __call__(self, values: list[Any]) -> Any:
        return self.run(values)

    def prepare_for_serialization(self) -> None:
        """Called for a copy."""
        if self.recipe is None:
            raise BypassAOTAutogradCache("a graph that is more than one program of Sylvite")
        self.run = None

    def post_compile(self, example_inputs: Any, constants: Any, graph_kwargs: Any) -> None:
        """Called for what was read."""
        self.run = _makers[-1](pickle.loads(self.recipe))  # noqa: S301 torch's cache has read as much from there

    def set_triton_bundle(self, bundle: Any) -> None:
        pass


def keep(run: Boxed, recipe: Recipe | None) -> Boxed:
    """The function, as AOTAutograd's cache takes it while graphs are kept."""
    return Kept(recipe.packed() if recipe is not None else None, run) if _makers else run


def keeping(compiler: Callable[..., Any]) -> Any:
    """The compiler, as AOTAutograd's cache takes it while graphs are kept."""
    return SerializableAOTDispatchCompiler(Kept, compiler) if _makers else compiler


@functools.cache
def _stamp() -> str:
    """Of this package's files: another version reads nothing of this one's."""
    folder = pathlib.Path(__file__).parent
    files = sorted(each for each in folder.iterdir() if each.suffix in (".py", ".so"))
    states = [(each.name, each.stat().st_mtime_ns, each.stat().st_size) for each in files]
    return hashlib.sha256(repr(states).encode()).hexdigest()[:16]


# What torch's cache says of torch itself: hashes of all of its files, and of triton's, which take half a second.

_HASHES = ("torch_key", "triton_key")


def _installed() -> str:
    """Of what those are hashes."""
    files = [pathlib.Path(torch.__file__), pathlib.Path(torch.__file__).with_name("version.py")]
    triton = importlib.util.find_spec("triton")
    if triton is not None and triton.origin is not None:
        files.append(pathlib.Path(triton.origin))
    return repr([torch.__version__, *((str(each), each.stat().st_mtime_ns, each.stat().st_size) for each in files)])


@functools.cache
def read_hashes() -> None:
    """Takes these hashes from a file, in which the first process wrote them; of installed packages they do not change."""
    file = pathlib.Path(cache_dir(), "sylvite_hashes")
    installed = _installed()
    with contextlib.suppress(OSError, ValueError):
        kept = ast.literal_eval(file.read_text())
        if kept["installed"] == installed:
            for name in _HASHES:
                with contextlib.suppress(RuntimeError):  # torch has it
                    getattr(codecache, name).set(kept[name])
            return
    kept = {"installed": installed, **{name: getattr(codecache, name)() for name in _HASHES}}
    with contextlib.suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        made = file.with_suffix(f".{os.getpid()}")
        made.write_text(repr(kept))
        made.replace(file)


def _is_ours() -> bool:
    """What lies there is executed: nobody else may have put it there."""
    try:
        state = os.stat(cache_dir())
    except FileNotFoundError:
        return True
    return state.st_uid == os.geteuid() and not state.st_mode & stat.S_IWOTH


#: What torch's key asks of Inductor's generators of code, which it imports for that, and what it takes instead: no graph goes to them.
_GENERATORS = {"init_backend_registration": lambda: None, "custom_backend_passes": {}, "custom_backend_codegen_configs": {}}


@contextlib.contextmanager
def _without_generators() -> Iterator[None]:
    """Meanwhile keys are the same whether or not Inductor was used before. Torch compiles in one thread at a time."""
    before = {name: getattr(codecache, name) for name in _GENERATORS if hasattr(codecache, name)}
    try:
        for name in before:
            setattr(codecache, name, _GENERATORS[name])
        yield
    finally:
        for name, value in before.items():
            setattr(codecache, name, value)


@contextlib.contextmanager
def kept_graphs(make: Callable[[Recipe], Boxed], *settings: Any) -> Iterator[None]:
    """Meanwhile graphs are kept, and found again by those who have the same settings; `make` makes functions of those found."""
    if not IS_THERE or not _is_ours():
        yield
        return
    read_hashes()
    tag = f"{compiler_config.cache_key_tag} sylvite {_stamp()} {settings}"
    known = {f"{each.__module__}.{each.__name__}": _stamp() for each in (*torch_captured.IN_GRAPHS, *torch_operations.IN_GRAPHS)}
    allowed = {**inductor_config.unsafe_marked_cacheable_functions, **known}
    with (
        compiler_config.patch(cache_key_tag=tag), functorch_config.patch(bundled_autograd_cache=True, force_non_lazy_backward_lowering=True),
        inductor_config.patch(unsafe_marked_cacheable_functions=allowed), _without_generators(),
    ):  # fmt: skip
        _makers.append(make)
        try:
            yield
        finally:
            _makers.pop()
