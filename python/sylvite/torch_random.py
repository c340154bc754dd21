"""Random numbers in compiled graphs: functions of a seed and of places.

A graph draws one seed a call and device from torch's generator, so torch.manual_seed repeats a run. Each node that draws
makes its numbers from that seed, the place of each number and a number of its own, its stream. What depends on the seed
alone can be computed again, as gradients may do, and gives the same numbers. The operations below say so to torch, and are
how torch runs them in parts of its own: with the numbers that Sylvite draws.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.fx import GraphModule, Node

aten = torch.ops.aten

# Philox 4x32-10 on tensors of i64, as frontend/ops/philox.h has it.

_WORD = 0xFFFFFFFF
_FACTORS = (0xD2511F53, 0xCD9E8D57)
_STEPS = (0x9E3779B9, 0xBB67AE85)


def _product(factor: int, word: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The high and the low word."""
    low = (word & 0xFFFF) * factor
    high = (word >> 16) * factor + (low >> 16)
    return high >> 16, ((high & 0xFFFF) << 16) | (low & 0xFFFF)


def _bits(seed: torch.Tensor, size: Sequence[int], stream: int, number: int = 0) -> torch.Tensor:
    """32 bits for each element, as i64: the draw of that number where an element takes several."""
    count = math.prod(size)
    index = torch.arange(count, device=seed.device) + number * count
    word = [index & _WORD, index >> 32, torch.full_like(index, stream), torch.zeros_like(index)]
    key = [seed & _WORD, (seed >> 32) & _WORD]
    for _ in range(10):
        (first_high, first), (second_high, second) = _product(_FACTORS[0], word[0]), _product(_FACTORS[1], word[2])
        word = [second_high ^ word[1] ^ key[0], second, first_high ^ word[3] ^ key[1], first]
        key = [(k + step) & _WORD for k, step in zip(key, _STEPS)]
    return word[0].reshape(list(size))


#: Digits of a float, of which uniform draws are multiples of the last one.
_DIGITS = {torch.float32: 24, torch.float16: 11, torch.bfloat16: 8}


@torch.library.custom_op("sylvite::random_uniform", mutates_args=())
def random_uniform(seed: torch.Tensor, size: Sequence[int], stream: int, dtype: torch.dtype) -> torch.Tensor:
    """From 0 to below 1."""
    if dtype == torch.float64:
        upper, lower = _bits(seed, size, stream) >> 5, _bits(seed, size, stream, 1) >> 6
        return (upper.double() * 2.0**26 + lower.double()) * 2.0**-53
    digits = _DIGITS[dtype]
    return ((_bits(seed, size, stream) >> (32 - digits)).float() * 2.0**-digits).to(dtype)


@torch.library.custom_op("sylvite::random_normal", mutates_args=())
def random_normal(seed: torch.Tensor, size: Sequence[int], stream: int, dtype: torch.dtype) -> torch.Tensor:
    """Normally distributed: Box and Muller's transform."""
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    length = (-2 * ((_bits(seed, size, stream).to(wide) + 1) * 2.0**-32).log()).sqrt()
    turn = (_bits(seed, size, stream, 1) >> 8).to(wide) * (2 * math.pi * 2.0**-24)
    return (length * turn.cos()).to(dtype)


@torch.library.custom_op("sylvite::random_integers", mutates_args=())
def random_integers(
    seed: torch.Tensor, size: Sequence[int], stream: int, low: int, high: int, dtype: torch.dtype
) -> torch.Tensor:
    """low, ..., high - 1; high - low is below 2^63."""
    bits, count = _bits(seed, size, stream), high - low
    if count <= 2**32:
        # (bits * count) >> 32 in words of 16 bits, which i64 holds
        value = ((bits >> 16) * count + (((bits & 0xFFFF) * count) >> 16)) >> 16
        return (value + low).to(dtype)
    # The rest of the upper and lower word's number, below 2^64, by count: its halves first, which i64 holds.
    lower = _bits(seed, size, stream, 1)
    half = (bits << 31) | (lower >> 1)
    rest = half % count
    rest = torch.where(rest >= count - rest, rest - (count - rest), rest + rest)
    last = lower & 1
    return (torch.where(rest >= count - last, rest - (count - last), rest + last) + low).to(dtype)


@random_uniform.register_fake
@random_normal.register_fake
def _(seed: torch.Tensor, size: Sequence[int], stream: int, dtype: torch.dtype) -> torch.Tensor:
    return seed.new_empty(size, dtype=dtype)


@random_integers.register_fake
def _(seed: torch.Tensor, size: Sequence[int], stream: int, low: int, high: int, dtype: torch.dtype) -> torch.Tensor:
    return seed.new_empty(size, dtype=dtype)


def _draw_seed(device: torch.device) -> torch.Tensor:
    """A number of torch's generator for the device."""
    return torch.randint(-(2**63), 2**63 - 1, (), dtype=torch.int64, device=device)


@torch.library.custom_op("sylvite::seed", mutates_args=(), tags=(torch.Tag.nondeterministic_seeded,))
def seed(device: torch.device) -> torch.Tensor:
    return _draw_seed(device)


@seed.register_fake
def _(device: torch.device) -> torch.Tensor:
    return torch.empty((), dtype=torch.int64, device=device)


# What draws becomes draws of uniform or normal numbers, and arithmetic.


def _uniform_like(x: torch.Tensor) -> torch.Tensor:
    """Draws to compare a probability with: in f32 where x has fewer digits."""
    return torch.rand_like(x, dtype=torch.float64 if x.dtype == torch.float64 else torch.float32)


def _dropout(x: torch.Tensor, p: float, train: bool | None) -> tuple[torch.Tensor, torch.Tensor]:
    if train is False or p == 0:
        return x.clone(), torch.ones_like(x, dtype=torch.bool)
    if p == 1:
        return torch.zeros_like(x), torch.zeros_like(x, dtype=torch.bool)
    kept = _uniform_like(x) >= p
    return kept * x * (1 / (1 - p)), kept


def _bernoulli(x: torch.Tensor, p: Any = None, *, generator: Any = None) -> Any:
    if generator is not None:
        return NotImplemented
    return (_uniform_like(x) < (x if p is None else p)).to(x.dtype)


def _uniform(x: torch.Tensor, low: float = 0.0, high: float = 1.0, *, generator: Any = None) -> Any:
    return NotImplemented if generator is not None else torch.rand_like(x) * (high - low) + low


def _normal(x: torch.Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Any = None) -> Any:
    return NotImplemented if generator is not None else torch.randn_like(x) * std + mean


def _normal_of(mean: Any, std: Any = 1.0, *, generator: Any = None) -> Any:
    """About a mean for each element, or with a width for each."""
    if generator is not None:
        return NotImplemented
    given = [each for each in (mean, std) if isinstance(each, torch.Tensor)]
    return torch.randn_like(sum(given)) * std + mean


def _normal_numbers(mean: float, std: float, size: Sequence[int], *, generator: Any = None, **kind: Any) -> Any:
    return NotImplemented if generator is not None else torch.randn(size, **kind) * std + mean


def _complex_normal(size: Sequence[int], *, dtype: Any = None, device: Any = None, **others: Any) -> Any:
    """Both parts have half of the variance."""
    if dtype not in (torch.complex64, torch.complex128):
        return NotImplemented
    part = torch.float32 if dtype == torch.complex64 else torch.float64
    return torch.complex(*(torch.randn(size, dtype=part, device=device) * math.sqrt(0.5) for _ in range(2)))


def _leaky(
    x: torch.Tensor, noise: torch.Tensor, low: float = 0.125, high: float = 1 / 3, training: bool = False, generator: Any = None
) -> Any:
    """With slopes that are drawn where x is negative, which the gradient reads again."""
    if generator is not None:
        return NotImplemented
    if not training:
        return torch.nn.functional.leaky_relu(x, (low + high) / 2), noise.clone()
    slope = torch.where(x <= 0, torch.rand_like(x) * (high - low) + low, 1.0)
    return x * slope, slope


def _leaky_backward(
    grad: torch.Tensor, x: torch.Tensor, noise: torch.Tensor, low: float, high: float, training: bool, is_result: bool
) -> torch.Tensor:
    return grad * (noise if training and high - low > 1e-6 else torch.where(x > 0, 1.0, (low + high) / 2))


def _exponential(x: torch.Tensor, rate: float = 1.0, *, generator: Any = None) -> Any:
    return NotImplemented if generator is not None else -torch.log(1 - torch.rand_like(x)) / rate


def _log_normal(x: torch.Tensor, mean: float = 1.0, std: float = 2.0, *, generator: Any = None) -> Any:
    return NotImplemented if generator is not None else torch.exp(torch.randn_like(x) * std + mean)


def _cauchy(x: torch.Tensor, median: float = 0.0, sigma: float = 1.0, *, generator: Any = None) -> Any:
    return NotImplemented if generator is not None else median + sigma * torch.tan(math.pi * (torch.rand_like(x) - 0.5))


def _geometric(x: torch.Tensor, p: float, *, generator: Any = None) -> Any:
    if generator is not None or not x.is_floating_point():
        return NotImplemented
    return (torch.log(1 - torch.rand_like(x)) / math.log1p(-p)).ceil().clamp(min=1) if p < 1 else torch.ones_like(x)


def _multinomial(weights: torch.Tensor, count: int, replacement: bool = False, *, generator: Any = None) -> Any:
    """A race: of exponential times with these rates, the shortest are as likely as the weights say."""
    if generator is not None:
        return NotImplemented
    if not replacement or count == 1:
        return (weights / _times(weights)).topk(count).indices
    rates = weights.unsqueeze(-2).expand(*weights.shape[:-1], count, weights.shape[-1])
    return (rates / _times(rates)).argmax(-1)


def _times(rates: torch.Tensor) -> torch.Tensor:
    return (-torch.log1p(-torch.rand(rates.shape, device=rates.device))).clamp(min=2.0**-26)


#: More numbers are brought into order by torch.
_MOST_PLACES = 4096


def _permutation(count: int, *, generator: Any = None, dtype: Any = None, device: Any = None, **others: Any) -> Any:
    if generator is not None or not isinstance(count, int) or count > _MOST_PLACES:
        return NotImplemented
    return torch.rand(count, dtype=torch.float64, device=device).argsort().to(dtype or torch.int64)


DECOMPOSITIONS: dict[Any, Callable[..., Any]] = {
    aten.native_dropout.default: _dropout,
    aten.bernoulli.default: _bernoulli,
    aten.bernoulli.p: _bernoulli,
    aten.uniform.default: _uniform,
    aten.normal_functional.default: _normal,
    aten.exponential.default: _exponential,
    aten.log_normal.default: _log_normal,
    aten.multinomial.default: _multinomial,
    aten.normal.Tensor_Tensor: _normal_of,
    aten.normal.Tensor_float: _normal_of,
    aten.normal.float_Tensor: _normal_of,
    aten.normal.float_float: _normal_numbers,
    aten.rrelu_with_noise_backward.default: _leaky_backward,
    aten.rrelu_with_noise_functional.default: _leaky,
    aten.randn.default: _complex_normal,
    aten.randperm.default: _permutation,
    aten.randperm.generator: _permutation,
    aten.cauchy.default: _cauchy,
    aten.geometric.default: _geometric,
}


# Nodes that draw, in a graph of AOTAutograd


#: An operation of this file, and from the arguments of a node: the size or the tensor that has it, and numbers.
_Draw = tuple[Any, Callable[..., tuple[Any, ...]]]

_UNIFORM: _Draw = (torch.ops.sylvite.random_uniform.default, lambda size: (size,))
_NORMAL: _Draw = (torch.ops.sylvite.random_normal.default, lambda size: (size,))
_INTEGERS = torch.ops.sylvite.random_integers.default

_DRAWS: dict[Any, _Draw] = {
    aten.rand.default: _UNIFORM,
    aten.rand.generator: _UNIFORM,
    aten.rand_like.default: _UNIFORM,
    aten.randn.default: _NORMAL,
    aten.randn.generator: _NORMAL,
    aten.randn_like.default: _NORMAL,
    aten.randint.default: (_INTEGERS, lambda high, size: (size, 0, high)),
    aten.randint.generator: (_INTEGERS, lambda high, size: (size, 0, high)),
    aten.randint.low: (_INTEGERS, lambda low, high, size: (size, low, high)),
    aten.randint.low_generator: (_INTEGERS, lambda low, high, size: (size, low, high)),
    aten.randint_like.default: (_INTEGERS, lambda like, high: (like, 0, high)),
    aten.randint_like.low_dtype: (_INTEGERS, lambda like, low, high: (like, low, high)),
}

_TYPES = {*_DIGITS, torch.float64, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool}


def _is_served(node: Node) -> bool:
    value = node.meta.get("val")
    if node.target not in _DRAWS or not isinstance(value, torch._subclasses.FakeTensor):
        return False
    if node.kwargs.get("generator") is not None:  # another than torch's own
        return False
    target, read = _DRAWS[node.target]
    bounds = read(*node.args)[1:]
    if not all(isinstance(bound, int) for bound in bounds) or value.dtype not in _TYPES:
        return False
    return 0 < bounds[1] - bounds[0] < 2**63 if target is _INTEGERS else value.dtype.is_floating_point


def _sizes_of(tensor: Node, before: Node) -> list[Any]:
    """Numbers, and nodes for those that are symbols."""
    sizes: list[Any] = []
    for axis, size in enumerate(tensor.meta["val"].shape):
        if isinstance(size, torch.SymInt):
            with before.graph.inserting_before(before):
                node = before.graph.call_function(aten.sym_size.int, (tensor, axis))
            node.meta["val"] = size
            size = node
        sizes.append(size)
    return sizes


def replace_draws(module: GraphModule) -> None:
    """Makes every draw of the graph a function of one seed a device."""
    graph = module.graph
    draws = [node for node in graph.nodes if node.op == "call_function" and _is_served(node)]
    first = next(node for node in graph.nodes if node.op != "placeholder")
    seeds: dict[torch.device, Node] = {}
    for stream, node in enumerate(draws):
        value = node.meta["val"]
        with value.fake_mode:
            if value.device not in seeds:
                with graph.inserting_before(first):
                    seeds[value.device] = graph.call_function(torch.ops.sylvite.seed.default, (value.device,))
                seeds[value.device].meta["val"] = torch.empty((), dtype=torch.int64, device=value.device)
        target, read = _DRAWS[node.target]
        size, *numbers = read(*node.args)
        size = _sizes_of(size, node) if isinstance(size, Node) else size
        node.target, node.kwargs = target, {}
        node.args = (seeds[value.device], size, stream, *numbers, value.dtype)
    if draws:
        graph.lint()
        module.recompile()


def take_seeds(module: GraphModule) -> list[torch.device]:
    """Makes the seeds of a graph its last inputs; returns their devices."""
    graph = module.graph
    seeds = [node for node in graph.nodes if node.target is torch.ops.sylvite.seed.default]
    first = next(node for node in graph.nodes if node.op != "placeholder")
    devices = []
    for node in seeds:
        with graph.inserting_before(first):
            given = graph.placeholder(node.name)
        given.meta = dict(node.meta)
        node.replace_all_uses_with(given)
        devices.append(node.args[0])
        graph.erase_node(node)
    if seeds:
        module.recompile()
    return devices


def with_seeds(run: Callable[[list[Any]], Any], devices: Sequence[torch.device]) -> Callable[[list[Any]], Any]:
    """The function with its last inputs drawn at each call."""
    if not devices:
        return run

    def draw_and_run(values: list[Any]) -> Any:
        values.extend(map(_draw_seed, devices))
        return run(values)

    draw_and_run._boxed_call = True  # type: ignore[attr-defined]
    return draw_and_run
