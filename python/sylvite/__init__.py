"""Sylvite: compiles models for the machine at hand, and remembers the fastest schedules it measured."""

from typing import TYPE_CHECKING, Any

from ._model import Model, compile, export
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
    from .torch_explain import explain
    from .torch_export import from_torch
    from .torch_program import Handle, program

__all__ = [
    "CompileError",
    "Error",
    "Handle",
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
    "export",
    "from_torch",
    "program",
]


def __getattr__(name: str) -> Any:
    # torch is needed for these alone, and takes seconds to import.
    if name == "explain":
        from .torch_explain import explain

        return explain
    if name == "from_torch":
        from .torch_export import from_torch

        return from_torch
    if name in ("Handle", "program"):
        from . import torch_program

        return getattr(torch_program, name)
    raise AttributeError(f"module 'sylvite' has no attribute '{name}'")
