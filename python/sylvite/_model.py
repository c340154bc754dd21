"""ONNX models: `compile` and what it returns."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any

from . import _command, _native
from ._settings import command_options, settings


def _as_numpy(tensor: _native.Tensor) -> Any:
    """An array over the tensor's memory; the tensor itself where NumPy has no such type."""
    import numpy

    try:
        return numpy.asarray(memoryview(tensor))
    except BufferError:
        return tensor


def _reader(inputs: Sequence[Any]) -> Any:
    """How the caller wants results: as tensors of torch where an input is one, else as arrays of NumPy."""
    for given in inputs:
        if type(given).__module__.partition(".")[0] == "torch":
            import torch

            return torch.from_dlpack
    return _as_numpy


class Model:
    """A compiled model. Calls in several threads take turns; compile one for each thread to run them side by side."""

    def __init__(self, path: str, made: Mapping[str, Any]) -> None:
        self._path = path
        self._settings = dict(made)
        self._native = _native.compile_model(path, self._settings)
        self.input_names: list[str] = self._native.input_names()
        self.output_names: list[str] = self._native.output_names()

    def __call__(self, *inputs: Any, **named: Any) -> tuple[Any, ...]:
        """Runs the model on tensors in the order of `input_names`, by these names, or on one mapping of names.

        Tensors are NumPy arrays or of any library that speaks DLPack. Those that are dense and lie at a multiple of 64
        bytes are read in place. Results are arrays of NumPy, or tensors of torch where an input is one.
        """
        if len(inputs) == 1 and isinstance(inputs[0], Mapping):
            inputs, named = (), {**inputs[0], **named}
        ordered = self._order(inputs, named)
        read = _reader(ordered)
        return tuple(read(result) for result in self._native.run(ordered))

    def _order(self, inputs: Sequence[Any], named: Mapping[str, Any]) -> list[Any]:
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
        words = [_command.path(), "explain", self._path, *command_options(self._settings), *options]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise _native.Error(done.stderr.strip())
        return done.stdout

    def __repr__(self) -> str:
        return f"<sylvite.Model '{self._path}': {', '.join(self.input_names)} -> {', '.join(self.output_names)}>"


def compile(  # noqa: A001: the name that the C++ interface has
    model: str | os.PathLike[str],
    *,
    mode: str = "default",
    options: Mapping[str, Any] | None = None,
    dims: Mapping[str, Any] | None = None,
    config_files: Sequence[str] = (),
) -> Model:
    """Compiles the ONNX model in a file.

    `mode` is default, reduce-overhead or max-autotune. `options` are knobs by name, as in {"compile.threads": 2}.
    `dims` are sizes of symbolic dimensions: a number, (low, high), or text as --dims takes it, "1..64@8".
    Raises subclasses of sylvite.Error.
    """
    return Model(os.fspath(model), settings(mode, options, dims, config_files))
