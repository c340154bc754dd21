"""Sizes of captured graphs as text: expressions over symbols, and symbols of their own for those that the text has no form for."""

import contextlib
import contextvars
import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import sympy
import torch
from torch.utils._sympy import functions as torch_sympy


class Unwritable(Exception):
    """A node, type or size that the text has no form for; says which."""


@dataclasses.dataclass
class ComputedSizes:
    """Sizes that the text has no form for, but are known from its symbols: symbols of their own, with numbers from the caller."""

    names: dict[sympy.Expr, str] = dataclasses.field(default_factory=dict)

    def name(self, e: sympy.Expr) -> str:
        return self.names.setdefault(e, f"of_sizes_{len(self.names)}")


#: Combinations of sizes whose numbers are kept.
_MOST_SIZES = 4096

#: Those of the graph that is being written; None where there may be none.
_computed: contextvars.ContextVar[ComputedSizes | None] = contextvars.ContextVar("computed sizes", default=None)


@contextlib.contextmanager
def computed_sizes() -> Iterator[ComputedSizes]:
    found = ComputedSizes()
    token = _computed.set(found)
    try:
        yield found
    finally:
        _computed.reset(token)


def number_of(e: sympy.Expr, values: Mapping[str, int]) -> int:
    """The expression where symbols have these values. Raises Unwritable where one has none."""
    unknown = [str(symbol) for symbol in e.free_symbols if str(symbol) not in values]
    if unknown:
        raise Unwritable(f"the size {e}, of {unknown[0]}, which no input tells")
    return int(e.xreplace({symbol: sympy.Integer(values[str(symbol)]) for symbol in e.free_symbols}))


def _divided(e: sympy.Expr, form: str) -> str:
    argument, divisor = e.args
    if not divisor.is_Integer or divisor <= 0:
        return _of_symbols(e)
    return form.format(f"({expression_text(argument)})", divisor)


def _of_symbols(e: sympy.Expr) -> str:
    computed = _computed.get()
    if computed is None or not all(str(symbol).startswith("s") for symbol in e.free_symbols):
        raise Unwritable(f"the size {e}")
    return computed.name(e)


def expression_text(e: sympy.Expr) -> str:
    """An expression over symbols as sylvite/extent.h reads it."""
    if e.is_Integer:
        return str(e)
    if e.is_Symbol:
        if not str(e).startswith("s"):
            raise Unwritable(f"the size {e}, which depends on data")
        return str(e)
    if e.is_Add:
        return "+".join(f"({expression_text(part)})" for part in e.args)
    if e.is_Mul and not any(part.is_Rational and not part.is_Integer for part in e.args):
        return "*".join(f"({expression_text(part)})" for part in e.args)
    if e.is_Pow and e.exp.is_Integer and e.exp > 0:
        return "*".join([f"({expression_text(e.base)})"] * int(e.exp))
    if isinstance(e, (torch_sympy.FloorDiv, torch_sympy.CleanDiv)):
        return _divided(e, "floor({}/{})")
    if isinstance(e, (sympy.Mod, torch_sympy.Mod, torch_sympy.PythonMod)):
        return _divided(e, "mod({},{})")
    if isinstance(e, (sympy.Max, torch_sympy.Max, sympy.Min, torch_sympy.Min)):
        name = "max" if isinstance(e, (sympy.Max, torch_sympy.Max)) else "min"
        text = expression_text(e.args[0])
        for part in e.args[1:]:
            text = f"{name}({text},{expression_text(part)})"
        return text
    return _of_symbols(e)


def expression_of(size: Any) -> sympy.Expr:
    return size.node.expr if isinstance(size, torch.SymInt) else sympy.Integer(size)


def size_text(size: Any) -> str:
    return str(size) if isinstance(size, int) else expression_text(size.node.expr)


def sizes_text(sizes: Iterable[Any]) -> str:
    return "[" + ",".join(map(size_text, sizes)) + "]"


def hint_of(size: Any) -> int:
    return size if isinstance(size, int) else size.node.hint or 0


# Calls

#: A function of one list.
Boxed = Callable[[list[Any]], Any]


def with_sizes(run: Boxed, symbols: Sequence[tuple[str, int, int]], computed: Sequence[sympy.Expr]) -> Boxed:
    """The function with numbers for the computed sizes, whose symbols are the last, behind its inputs."""
    if not computed:
        return run
    known = symbols[:-len(computed)]
    made: dict[tuple[int, ...], list[int]] = {}

    def run_with_sizes(values: list[Any]) -> Any:
        at = tuple(values[number] if axis < 0 else values[number].shape[axis] for _, number, axis in known)
        if at not in made:
            if len(made) >= _MOST_SIZES:
                made.clear()
            by_name = {name: value for (name, _, _), value in zip(known, at)}
            made[at] = [number_of(e, by_name) for e in computed]
        values.extend(made[at])
        return run(values)

    run_with_sizes._boxed_call = True  # type: ignore[attr-defined]
    return run_with_sizes


def without_sizes(run: Boxed, computed: Sequence[sympy.Expr]) -> Boxed:
    """The function that takes such numbers, too, and lets them go."""
    if not computed:
        return run

    def run_without_sizes(values: list[Any]) -> Any:
        del values[-len(computed):]
        return run(values)

    return run_without_sizes
