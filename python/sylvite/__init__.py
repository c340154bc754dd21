"""Sylvite: compiles models for the machine at hand, and remembers the fastest schedules it measured."""

from typing import TYPE_CHECKING, Any

from ._model import Model, compile
from ._native import (
    CompileError,
    Error,
    InputError,
    InternalError,
    IoError,
    ModelError,
    Tensor,
    UnsupportedError,
    UsageError,
    VerifyError,
)
from ._native import version as __version__

if TYPE_CHECKING:
    from .torch_backend import explain

__all__ = [
    "CompileError",
    "Error",
    "InputError",
    "InternalError",
    "IoError",
    "Model",
    "ModelError",
    "Tensor",
    "UnsupportedError",
    "UsageError",
    "VerifyError",
    "__version__",
    "compile",
    "explain",
]


def __getattr__(name: str) -> Any:
    # torch is needed for this alone, and takes seconds to import.
    if name == "explain":
        from .torch_backend import explain

        return explain
    raise AttributeError(f"module 'sylvite' has no attribute '{name}'")
