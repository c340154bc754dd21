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
    used: set[str] = dataclasses.field(default_factory=set)  #: symbols that the text has
    told: dict[sympy.Symbol, sympy.Expr] = dataclasses.field(default_factory=dict)  #: those that it has not: see told_by_guards

    def name(self, e: sympy.Expr) -> str:
        return self.names.setdefault(e.xreplace(self.told), f"of_sizes_{len(self.names)}")


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


def is_of_data(symbol: Any) -> bool:
    """Does the size depend on data? Torch has found out when a part takes it."""
    return str(symbol).startswith("u")


def _is_integer(symbol: sympy.Symbol) -> bool:
    return str(symbol).startswith("s") or is_of_data(symbol)


def _of_symbols(e: sympy.Expr) -> str:
    computed = _computed.get()
    if computed is None or not all(map(_is_integer, e.free_symbols)):
        raise Unwritable(f"the size {e}")
    return computed.name(e)


def _symbol_text(symbol: sympy.Symbol) -> str:
    if not _is_integer(symbol):
        raise Unwritable(f"the size {symbol}")
    computed = _computed.get()
    if computed is not None and symbol in computed.told:
        return expression_text(computed.told[symbol])
    if computed is not None:
        computed.used.add(str(symbol))
    return str(symbol)


def expression_text(e: sympy.Expr) -> str:
    """An expression over symbols as sylvite/extent.h reads it."""
    if e.is_Integer:
        return str(e)
    if e.is_Symbol:
        return _symbol_text(e)
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


def _told_by(guard: sympy.Expr, symbols: Sequence[sympy.Symbol], env: Any) -> tuple[sympy.Symbol, sympy.Expr] | None:
    """A symbol that this guard makes a polynomial of the others and of what is made of them."""
    zero = sympy.expand(guard.lhs - guard.rhs)
    if not zero.free_symbols <= set(symbols):
        return None
    for symbol in reversed(symbols):
        times = zero.coeff(symbol, 1)
        rest = sympy.expand(zero - times * symbol)
        may_be_zero = env.bound_sympy(times).lower <= 0 <= env.bound_sympy(times).upper
        if may_be_zero or symbol in times.free_symbols | rest.free_symbols:
            continue
        told = sympy.cancel(-rest / times)
        if told.as_numer_denom()[1] == 1:
            return symbol, told
    return None


def told_by_guards(symbols: Sequence[sympy.Symbol], env: Any) -> dict[sympy.Symbol, sympy.Expr]:
    """Those of the symbols that the others tell wherever torch's guards hold, as the length of labels beside that of what they label."""
    told: dict[sympy.Symbol, sympy.Expr] = {}
    left = [symbol for symbol in symbols if str(symbol).startswith("s")]
    for each in env.guards:
        guard = each.expr.xreplace(told)
        found = _told_by(guard, left, env) if isinstance(guard, sympy.Eq) else None
        if found is not None:
            told = {symbol: e.xreplace({found[0]: found[1]}) for symbol, e in told.items()}
            told[found[0]] = found[1]
            left.remove(found[0])
    return told


def expression_of(size: Any) -> sympy.Expr:
    return size.node.expr if isinstance(size, torch.SymInt) else sympy.Integer(size)


def size_text(size: Any) -> str:
    return str(size) if isinstance(size, int) else expression_text(size.node.expr)


def sizes_text(sizes: Iterable[Any]) -> str:
    return "[" + ",".join(map(size_text, sizes)) + "]"


#: What a size that depends on data is taken to be where its range allows it.
_OF_DATA = 4


def hint_of(size: Any) -> int:
    """What the size was when the graph was captured, or a number that it may be."""
    if isinstance(size, int) or isinstance(size.node.hint, (int, torch.SymInt)):
        return size if isinstance(size, int) else size.node.hint
    return number_of(size.node.expr, {str(symbol): _hint_of_symbol(symbol, size.node.shape_env) for symbol in size.node.expr.free_symbols})


def _hint_of_symbol(symbol: sympy.Symbol, env: Any) -> int:
    known = env.backed_var_to_val if hasattr(env, "backed_var_to_val") else env.var_to_val
    if symbol in known:
        return int(known[symbol])
    limits = env.var_to_range[symbol]
    return int(max(limits.lower, min(limits.upper, _OF_DATA)))


# Calls

#: A function of one list.
Boxed = Callable[[list[Any]], Any]


def _number_at(values: Sequence[Any], number: int, axis: int) -> int:
    return int(values[number] if axis < 0 else values[number].shape[axis])


def with_nothing(run: Boxed, symbols: Sequence[tuple[str, int, int]], by_torch: Boxed) -> Boxed:
    """Torch computes where a size of data is 0 or less: the sizes of others do not follow from those of empty tensors."""
    places = [(number, axis) for name, number, axis in symbols if is_of_data(name)]
    if not places:
        return run

    def run_or_leave(values: list[Any]) -> Any:
        return (run if all(_number_at(values, *place) > 0 for place in places) else by_torch)(values)

    run_or_leave._boxed_call = True  # type: ignore[attr-defined]
    return run_or_leave


def with_sizes(run: Boxed, symbols: Sequence[tuple[str, int, int]], computed: Sequence[sympy.Expr]) -> Boxed:
    """The function with numbers for the computed sizes, whose symbols are the last, behind its inputs."""
    if not computed:
        return run
    known = symbols[:-len(computed)]
    made: dict[tuple[int, ...], list[int]] = {}

    def run_with_sizes(values: list[Any]) -> Any:
        at = tuple(_number_at(values, number, axis) for _, number, axis in known)
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
