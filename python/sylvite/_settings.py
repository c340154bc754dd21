"""From Python's words for settings to those of the native module, and to the options of the command."""

from collections.abc import Mapping, Sequence
from typing import Any

from . import _command

#: What `torch.compile` calls modes, and what they are here.
MODES = {"max-autotune-no-cudagraphs": "max-autotune"}


def knob_text(value: Any) -> str:
    """A knob's value as INI files have it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def sizes_text(sizes: Any) -> str:
    """Sizes as `--dims` has them, from 4, (1, 64) or "1..64@8"."""
    if isinstance(sizes, (tuple, list)) and len(sizes) == 2:
        low, high = sizes
        return f"{low}..{'' if high is None else high}"
    return str(sizes)


def settings(
    mode: str | None,
    options: Mapping[str, Any] | None,
    dims: Mapping[str, Any] | None = None,
    config_files: Sequence[str] = (),
    states: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """What the native module takes."""
    mode = str(mode or "default")
    if isinstance(config_files, str):
        config_files = [config_files]
    return {
        "mode": MODES.get(mode, mode),
        "set": {name: knob_text(value) for name, value in (options or {}).items()},
        "dims": {name: sizes_text(sizes) for name, sizes in (dims or {}).items()},
        "states": dict(states or {}),
        "config_files": [str(file) for file in config_files],
        "worker_command": _command.path(),
    }


def command_options(made: Mapping[str, Any]) -> list[str]:
    """The same settings for the command."""
    words = ["--mode", made["mode"]]
    for file in made["config_files"]:
        words += ["--config", file]
    for name, value in made["set"].items():
        words += ["--set", f"{name}={value}"]
    if made["dims"]:
        words += ["--dims", ",".join(f"{name}={sizes}" for name, sizes in made["dims"].items())]
    if made["states"]:
        words += ["--state", ",".join(f"{past}={present}" for past, present in made["states"].items())]
    return words
