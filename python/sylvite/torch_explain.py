"""What became of a model that torch.compile(model, backend="sylvite") would compile."""

import functools
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
import torch._dynamo

from . import _native
from ._model import run_command
from .torch_backend import Compiled, Options, backend, listen, read_options


def _graph_lines(number: int, graph: Compiled, details: bool, told: Options) -> Iterator[str]:
    yield f"graph {number} ({graph.kind}, {graph.device}): {len(graph.programs)} programs, {graph.torch_parts} parts run by torch"
    if graph.failure:
        yield f"  torch runs what is not compiled: {graph.failure}"
    for name, op, reason in graph.refused:
        yield f"  torch runs %{name} = {op}: {reason}"
    for part, (text, sizes, program) in enumerate(zip(graph.texts, graph.sizes, graph.programs)):
        report = program.report()
        yield (f"  program {part}: {len(text.splitlines())} lines, {report['kernels']} kernels ({report['unique_kernels']} "
               f"different), compiled {report['compiled']}, from the cache {report['loaded_from_cache']}, "
               f"ready in {report['ready_seconds']:.2f} s")
        yield from (f"    warning: {warning}" for warning in report["warnings"])
        if details:
            made = told.settings(graph.device)
            if graph.kind == "inference" and told.freeze:  # which values they have changes little
                made["set"] = {**made["set"], "import.random_weights": "1"}
            yield from _explain_text(text, sizes, made)


def _explain_text(text: str, sizes: Mapping[str, int], made: dict[str, Any]) -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "graph.torch")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        try:
            told = run_command("explain", path, {**made, "dims": sizes})
        except _native.Error as error:
            told = str(error)
    yield from ("    " + line for line in told.splitlines())


def explain(model: Callable[..., Any], *args: Any, mode: str | None = None, options: Mapping[str, Any] | None = None,
            details: bool = False, **kwargs: Any) -> str:  # fmt: skip
    """Calls the model once as torch.compile(model, backend="sylvite") would, and tells what became of it.

    Shows torch's graph breaks with their reasons, each graph with its programs, and what torch runs instead and why. With
    `details` also what `sylvite explain` says of each program.
    """
    torch._dynamo.reset()
    found = torch._dynamo.explain(model)(*args, **kwargs)
    torch._dynamo.reset()
    with listen() as graphs:
        # torch itself takes a mode or options, not both.
        torch.compile(model, backend=functools.partial(backend, mode=mode, options=options))(*args, **kwargs)
    lines = [f"{found.graph_count} graphs, {found.graph_break_count} breaks"]
    lines += [f"  break: {reason.reason}" for reason in found.break_reasons]
    told = read_options(mode, options)
    for number, graph in enumerate(graphs):
        lines += _graph_lines(number, graph, details, told)
    return "\n".join(lines) + "\n"
