"""ONNX models: `compile` and what it returns."""

import functools
import os
import shutil
import subprocess
import tempfile
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from . import _command, _native
from ._settings import command_options, settings


_ERRORS = {error.code: error for error in _native.Error.__subclasses__()}


def _given(value: Any) -> Any:
    """Texts, which no buffer holds, as the native module takes them."""
    if not (isinstance(value, (str, list)) or getattr(getattr(value, "dtype", None), "kind", "") in ("U", "O", "S", "T")):
        return value
    if isinstance(value, list) and any(hasattr(item, "dtype") for item in value):  # a sequence
        return [_given(item) for item in value]
    import numpy

    array = numpy.asarray(value)
    if array.dtype.kind not in "UOST":
        return value
    texts = array.ravel().tolist()
    kinds = set(map(type, texts))
    if others := [kind.__name__ for kind in kinds if not issubclass(kind, (str, bytes))]:
        raise _native.InputError(f"an array of objects with {', '.join(others)}: expected texts, or numbers of one type")
    if any(issubclass(kind, bytes) for kind in kinds):
        texts = [text.decode() if isinstance(text, bytes) else text for text in texts]
    return list(array.shape), texts


def _as_numpy(tensor: Any) -> Any:
    """An array over the tensor's memory; the tensor itself where NumPy has no such type. Texts are an array of objects."""
    import numpy

    if isinstance(tensor, tuple):
        dims, texts = tensor
        return numpy.array(texts, dtype=object).reshape(dims)
    if isinstance(tensor, list):
        return [_as_numpy(item) for item in tensor]
    if tensor is None:
        return None
    try:
        return numpy.asarray(memoryview(tensor))
    except BufferError:
        return tensor


@functools.lru_cache(maxsize=64)
def _is_of_torch(kind: type) -> bool:
    return kind.__module__.partition(".")[0] == "torch"


def _reader(inputs: Sequence[Any]) -> Any:
    """How the caller wants results: as tensors of torch where an input is one, else as arrays of NumPy."""
    for given in inputs:
        if _is_of_torch(type(given)):
            import torch

            return lambda result: torch.from_dlpack(result) if isinstance(result, _native.Tensor) else _as_numpy(result)
    return _as_numpy


def run_command(verb: str, model: str, made: Mapping[str, Any], *options: str) -> str:
    """What the command prints; raises the error that its exit code stands for."""
    words = [_command.path(), verb, model, *command_options(made), *options]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise _ERRORS.get(done.returncode, _native.Error)(done.stderr.strip())
    return done.stdout


def run_export(
    model: str, folder: str | os.PathLike[str], made: Mapping[str, Any], *, name: str = "", embed_weights: bool = False,
    architectures: Sequence[str] = (),
) -> str:  # fmt: skip
    """`sylvite export`."""
    words = ["--output", os.fspath(folder), *(["--name", name] if name else []), *["--embed-weights"] * embed_weights]
    words += ["--architectures", ",".join(architectures)] if architectures else []
    return run_command("export", model, made, *words)


class Model:
    """A compiled model. Calls in several threads take turns; compile one for each thread to run them side by side. Copies and
    pickles are compiled again, with kernels of the cache; their states are zero."""

    _folder: str | None = None  #: with its files, where it has one of its own

    def __init__(self, path: str, made: Mapping[str, Any]) -> None:
        self._path = path
        self._settings = dict(made)
        self._native = _native.compile_model(path, self._settings)
        weakref.finalize(self, self._native.stop_compiling)  # also when the interpreter ends
        self.input_names: list[str] = self._native.input_names()
        self.output_names: list[str] = self._native.output_names()
        self._names = frozenset(self.input_names)

    def __call__(self, *inputs: Any, **named: Any) -> tuple[Any, ...]:
        """Runs the model on tensors in the order of `input_names`, by these names, or on one mapping of names.

        Tensors are NumPy arrays or of any library that speaks DLPack. Those that are dense and lie at a multiple of 64
        bytes are read in place. Results are arrays of NumPy, or tensors of torch where an input is one.
        """
        if len(inputs) == 1 and isinstance(inputs[0], Mapping):
            inputs, named = (), {**inputs[0], **named} if named else inputs[0]
        ordered = [_given(value) for value in self._order(inputs, named)]
        read = _reader(ordered)
        return tuple(read(result) for result in self._native.run(ordered))

    @property
    def is_ready(self) -> bool:
        """Do compiled programs answer? With `first_answer="fast"` calls are evaluated until then. True also where compiling
        failed: the next call raises why."""
        return self._native.is_ready()

    def wait(self, timeout: float | None = None) -> bool:
        """Waits until `is_ready`, and for kernels that are compiled behind calls, ahead of new sizes or at these, at most
        `timeout` seconds; returns whether nothing is left to wait for."""
        end = None if timeout is None else time.monotonic() + timeout
        while (is_compiling := self._native.is_compiling()) and (end is None or time.monotonic() < end):
            time.sleep(0.005)
        return not is_compiling

    def _order(self, inputs: Sequence[Any], named: Mapping[str, Any]) -> list[Any]:
        if not inputs and named.keys() == self._names:
            return [named[name] for name in self.input_names]
        given = dict(zip(self.input_names, inputs))
        if len(inputs) > len(self.input_names):
            raise _native.InputError(f"{len(inputs)} inputs given, the model takes {len(self.input_names)}")
        for name, value in named.items():
            if name not in self.input_names:
                raise _native.InputError(f"no input is called '{name}'; the model has {', '.join(self.input_names)}")
            if name in given:
                raise _native.InputError(f"input '{name}' is given twice")
            given[name] = value
        missing = [name for name in self.input_names if name not in given]
        if missing:
            raise _native.InputError(f"input '{missing[0]}' is missing; the model takes {', '.join(self.input_names)}")
        return [given[name] for name in self.input_names]

    def _source(self) -> Any:
        """What `__init__` takes first."""
        return self._path

    @staticmethod
    def _moved(source: Any, folder: str) -> Any:
        """The same with its file in that folder."""
        return os.path.join(folder, os.path.basename(source))

    def __reduce__(self) -> Any:
        return _made_again, (type(self), self._source(), self._settings, _read_all(self._folder) if self._folder else {})

    def reset_states(self) -> None:
        """Makes all states zero, as they are at first."""
        self._native.reset_states()

    @property
    def report(self) -> dict[str, Any]:
        """Counts, times and warnings of the compilation."""
        return self._native.report()

    @property
    def host_steps(self) -> list[str]:
        """What is not compiled but run by the importer at every run, and why."""
        return self._native.host_steps()

    def explain(self, *options: str) -> str:
        """What the compiler made of the model: the text of `sylvite explain`, which takes these options."""
        return run_command("explain", self._path, self._settings, *options)

    def tune(self, budget: str | float = "60s") -> str:
        """Measures candidates for the kernels within the budget, in seconds or as knobs have it ("10m"), stores the winners, and
        compiles the model again with them. Returns what `sylvite tune` prints. A call goes on where an earlier one ended."""
        printed = run_command("tune", self._path, self._settings, "--budget", str(budget))
        self._native = _native.compile_model(self._path, self._settings)
        return printed

    def save(self, folder: str | os.PathLike[str], **options: Any) -> str:
        """Writes the compiled model as a library to embed: see `export`, which takes these options."""
        return run_export(self._path, folder, self._settings, **options)

    def __repr__(self) -> str:
        return f"<sylvite.Model '{self._path}': {', '.join(self.input_names)} -> {', '.join(self.output_names)}>"


_Made = TypeVar("_Made", bound=Model)


def in_own_folder(make: Callable[[str], _Made]) -> _Made:
    """A model whose files `make` writes into the folder that it is given, which goes with the model."""
    folder = tempfile.mkdtemp()
    try:
        model = make(folder)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    weakref.finalize(model, shutil.rmtree, folder, ignore_errors=True)
    model._folder = folder
    return model


def _read_all(folder: str) -> dict[str, bytes]:
    contents = {}
    for name in os.listdir(folder):
        with open(os.path.join(folder, name), "rb") as file:
            contents[name] = file.read()
    return contents


def _made_again(kind: type[_Made], source: Any, made: Mapping[str, Any], contents: Mapping[str, bytes]) -> _Made:
    """The model of a pickle; `contents` are files of its own folder, by name."""

    def make(folder: str) -> _Made:
        for name, content in contents.items():
            with open(os.path.join(folder, name), "wb") as file:
                file.write(content)
        return kind(kind._moved(source, folder), made)

    return in_own_folder(make) if contents else kind(source, made)


def _is_content(model: Any) -> bool:
    return isinstance(model, (bytes, bytearray, memoryview)) or hasattr(model, "SerializeToString")


def _write(model: Any, folder: str) -> str:
    """The file of what is no file yet."""
    path = os.path.join(folder, "model.onnx")
    with open(path, "wb") as file:
        file.write(model.SerializeToString() if hasattr(model, "SerializeToString") else model)
    return path


def compile(  # noqa: A001: the name that the C++ interface has
    model: Any,
    *,
    mode: str = "default",
    options: Mapping[str, Any] | None = None,
    dims: Mapping[str, Any] | None = None,
    states: Mapping[str, str] | None = None,
    config_files: Sequence[str] = (),
    first_answer: str | None = None,
) -> Model:
    """Compiles an ONNX model: its path, its bytes, or an `onnx.ModelProto`.

    `mode` is default, reduce-overhead or max-autotune. `options` are knobs by name, as in {"compile.threads": 2}.
    `dims` are sizes of symbolic dimensions: a number, (low, high), or text as --dims takes it, "1..64@8".
    `states` are inputs and the outputs that are their next values, which stay between calls: {"past": "present"}; with one *
    for the same text in both, {"past_key_values.*": "present.*"}. Where they grow, as caches do, the end of the range of that
    size in `dims` is how many entries they have room for.
    `first_answer` is the knob compile.first_answer: with "fast" calls are evaluated while kernels are compiled in the background.
    Raises subclasses of sylvite.Error.
    """
    if first_answer is not None:
        options = {**(options or {}), "compile.first_answer": first_answer}
    made = settings(mode, options, dims, config_files, states)
    if _is_content(model):
        return in_own_folder(lambda folder: Model(_write(model, folder), made))
    return Model(os.fspath(model), made)


def export(
    model: Any,
    folder: str | os.PathLike[str],
    *,
    mode: str = "default",
    options: Mapping[str, Any] | None = None,
    dims: Mapping[str, Any] | None = None,
    config_files: Sequence[str] = (),
    states: Mapping[str, str] | None = None,
    **export_options: Any,
) -> str:
    """Writes a model as a static library with C header, weights and CMake package (docs/embedding.md).

    `model` is an ONNX model as for `compile`, or what `torch.export.export` returns; `states` are as for `compile`. Further options: `name`, a C
    identifier; `embed_weights`, into the library instead of a file beside it; `architectures`, with compile.device=cuda the GPUs to
    make machine code for. Returns what `sylvite export` prints.
    """
    made = settings(mode, options, dims, config_files, states)
    if isinstance(model, (str, os.PathLike)):
        return run_export(os.fspath(model), folder, made, **export_options)
    if _is_content(model):
        with tempfile.TemporaryDirectory() as own:
            return run_export(_write(model, own), folder, made, **export_options)
    from .torch_export import written

    with written(model) as program:
        return run_export(program.path, folder, made, **{"name": "model", **export_options})
