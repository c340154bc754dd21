#!/usr/bin/env python3
"""Random programs of torch through torch.compile(backend="sylvite"), beside eager.

usage: torch_fuzz.py [--seeds FIRST:END] [--nodes N] [--device cuda] [--reduce] [--verbose]

A seed grows one program, call by call, with the values of one run at hand; half of them with gradients. Eager in float64 says
what is right, and eager in float32 how far an element may be off. Where the two tell different numbers apart (a rounding, an
order), an element is not compared. What the backend leaves to Python agrees. Needs the Python package and torch. Exit status 1 when a program differs or throws.
"""
import argparse
import random
import sys

import torch
import torch.nn.functional as F

LARGEST, MOST = 1e4, 20000


def is_real(x):
    return x.dtype.is_floating_point


class Grower:
    """Programs as lists of calls: each takes the numbers of the values it reads, and appends one."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.generator = torch.Generator().manual_seed(seed)
        self.inputs, self.calls, self.values = [], [], []

    def between(self, low, high):
        return self.random.randint(low, high)

    def chance(self, probability):
        return self.random.random() < probability

    def tensor(self, *dims):
        return torch.randn(dims, generator=self.generator)

    def input(self, value):
        self.inputs.append(value)
        self.values.append(value)
        self.calls.append(None)
        return len(self.values) - 1

    def some(self, fits=is_real):
        found = [i for i, value in enumerate(self.values) if fits(value)]
        computed = [i for i in found if self.calls[i] is not None]
        found = computed if computed and self.chance(0.8) else found
        return self.random.choice(found[-6:] if self.chance(0.7) else found) if found else None

    def axis(self, i):
        rank = self.values[i].dim()
        return self.between(-rank, rank - 1)

    def add(self, name, function, *read):
        """Appends what the function makes of the values, if it is valid, not too large, and finite."""
        if None in read:
            return None
        try:
            with torch.no_grad():
                made = function(*[self.values[i].clone() for i in read])
        except (RuntimeError, ValueError, IndexError, NotImplementedError):
            return None
        if made.numel() > MOST or (is_real(made) and not bool((made.abs() <= LARGEST).all())):
            return None
        self.values.append(made)
        self.calls.append((name, function, read))
        return len(self.values) - 1

    def grow(self, nodes):
        for _ in range(self.between(1, 3)):
            shapes = [(self.between(1, 3), self.between(1, 9), self.between(3, 12), self.between(3, 12)),
                      (self.between(1, 3), self.between(2, 17), self.random.choice((8, 12, 16, 33))),
                      (self.between(2, 40), self.random.choice((7, 16, 64)))]
            self.input(self.tensor(*self.random.choice(shapes)))
        for _ in range(nodes * 4):
            if len(self.calls) - len(self.inputs) >= nodes:
                break
            self.random.choices(GROWTHS, [weight for weight, _ in GROWTHS])[0][1](self)
        ends = [i for i, call in enumerate(self.calls) if call is not None]
        wanted = set(ends[-1:]) | {i for i in ends if self.chance(0.35)}
        return Program(self.inputs, self.calls, sorted(wanted))


class Program:
    def __init__(self, inputs, calls, outputs, places=None):
        self.inputs, self.outputs = inputs, outputs
        self.places = places or [i for i, call in enumerate(calls) if call is None]  # of inputs
        needed = set(outputs)
        for i in reversed(range(len(calls))):
            if i in needed and calls[i] is not None:
                needed |= set(calls[i][2])
        self.calls = [call if i in needed else None for i, call in enumerate(calls)]

    def function(self):
        calls, outputs, places = self.calls, self.outputs, self.places

        def program(*inputs):
            values, given = [], iter(inputs)
            for i, call in enumerate(calls):
                if call is None:
                    values.append(next(given) if i in places else None)
                else:
                    values.append(call[1](*[values[k] for k in call[2]]))
            return [values[i] for i in outputs]

        return program

    def text(self):
        lines = [f"  v{i} = {'input ' + str(list(self.inputs[self.places.index(i)].shape)) if i in self.places else call[0] + str(call[2])}"
                 for i, call in enumerate(self.calls) if call is not None or i in self.places]
        return "\n".join(lines + [f"  return {self.outputs}"])


# Growths

UNARY = {
    "relu": F.relu, "gelu": F.gelu, "gelu tanh": lambda x: F.gelu(x, approximate="tanh"), "silu": F.silu, "sigmoid": torch.sigmoid,
    "tanh": torch.tanh, "exp": lambda x: x.clamp(max=5).exp(), "log1p": lambda x: x.abs().log1p(), "sqrt": lambda x: (x.abs() + 0.1).sqrt(),
    "rsqrt": lambda x: (x.abs() + 1).rsqrt(), "sin": torch.sin, "cos": torch.cos, "erf": torch.erf, "floor": torch.floor,
    "round": torch.round, "trunc": torch.trunc, "frac": torch.frac, "sign": torch.sign, "neg": torch.neg, "abs": torch.abs,
    "reciprocal": lambda x: (x.abs() + 0.5).reciprocal(), "softplus": F.softplus, "mish": F.mish, "hardswish": F.hardswish, "elu": F.elu,
    "celu": F.celu, "selu": F.selu, "leaky_relu": lambda x: F.leaky_relu(x, 0.1), "hardsigmoid": F.hardsigmoid, "relu6": F.relu6,
    "softsign": F.softsign, "tanhshrink": F.tanhshrink, "hardshrink": F.hardshrink, "softshrink": F.softshrink, "square": torch.square,
    "expm1": lambda x: x.clamp(max=3).expm1(), "atan": torch.atan, "asinh": torch.asinh, "logsigmoid": F.logsigmoid,
    "threshold": lambda x: F.threshold(x, 0.2, -1.0), "nan_to_num": torch.nan_to_num, "clamp": lambda x: x.clamp(-0.7, 1.1),
    "glu": lambda x: F.glu(torch.cat([x, x * 2], -1)), "sinc": torch.sinc, "exp2": lambda x: x.clamp(max=5).exp2(), "positive": torch.positive,
    "half": lambda x: x.half().to(x.dtype), "bf16": lambda x: x.bfloat16().to(x.dtype), "long": lambda x: x.clamp(-50, 50).long(), "bool": lambda x: x > 0,
    "signbit": torch.signbit, "deg2rad": torch.deg2rad, "logit": lambda x: torch.logit(x.sigmoid(), 1e-3), "i0": lambda x: torch.i0(x.clamp(-3, 3)),
}  # fmt: skip

BINARY = {
    "add": torch.add, "sub": torch.sub, "mul": torch.mul, "div": lambda x, y: x / (y.abs() + 0.5), "minimum": torch.minimum,
    "maximum": torch.maximum, "pow": lambda x, y: (x.abs() + 0.1).clamp(max=4) ** y.clamp(-2, 2), "atan2": torch.atan2,
    "hypot": lambda x, y: torch.hypot(x, y + 0.1), "logaddexp": torch.logaddexp, "xlogy": lambda x, y: torch.xlogy(x, y.abs() + 0.1),
    "copysign": torch.copysign, "fmod": lambda x, y: torch.fmod(x, y.abs() + 0.5), "remainder": lambda x, y: torch.remainder(x, y.abs() + 0.5),
    "where": lambda x, y: torch.where(x > y, x, y * 0.5), "lerp": lambda x, y: torch.lerp(x, y, 0.3), "mse": lambda x, y: F.mse_loss(x, y.expand_as(x)),
    "same": lambda x, y: (x - y) / (x - y) == 1,
    "addcmul": lambda x, y: torch.addcmul(x, x, y, value=0.5), "lt": torch.lt, "eq": torch.eq, "floor_divide": lambda x, y: torch.floor_divide(x.detach(), y.detach().abs() + 0.5),
    "smooth_l1": lambda x, y: F.smooth_l1_loss(x, y.expand_as(x), reduction="none"), "cosine": lambda x, y: F.cosine_similarity(x, y, dim=-1),
    "huber": lambda x, y: F.huber_loss(x, y.expand_as(x)), "bce": lambda x, y: F.binary_cross_entropy_with_logits(x, y.sigmoid().expand_as(x)),
    "kl": lambda x, y: F.kl_div(x.log_softmax(-1), y.expand_as(x).softmax(-1), reduction="sum"), "heaviside": lambda x, y: torch.heaviside(x.detach(), (y + 0 * x).detach()),
}  # fmt: skip

INTEGER = {
    "abs": torch.abs, "neg": torch.neg, "times": lambda x: x * 3 - 1, "modulo": lambda x: x % 5, "floor": lambda x: x // 3, "and": lambda x: x & 6,
    "or": lambda x: x | 1, "xor": lambda x: x ^ 3, "shift": lambda x: x << 1, "right": lambda x: x >> 1, "float": lambda x: x.to(torch.get_default_dtype()) * 0.1,
    "sum": lambda x: x.sum(-1), "cumsum": lambda x: x.cumsum(-1), "max": lambda x: x.amax(-1), "sort": lambda x: x.sort(-1).values,
    "one_hot": lambda x: F.one_hot(x % 5, 5), "clamp": lambda x: x.clamp(-2, 3), "int": lambda x: x.int(), "not": lambda x: ~x, "div": lambda x: x / 4,
    "hash": lambda x: ((x & 0xFFFF) * 1103515245 + 12345) >> 16, "mix": lambda x: (x ^ (x << 13)) ^ ((x ^ (x << 13)) >> 17), "wrap": lambda x: (x << 30) // 3,
    "bincount": lambda x: (x.unsqueeze(-1) == torch.arange(4)).sum(0), "flip": lambda x: x.flip(0),
}  # fmt: skip


def unary(g):
    name = g.random.choice(list(UNARY))
    g.add(name, UNARY[name], g.some())


def integer(g):
    name = g.random.choice(list(INTEGER))
    g.add("integer " + name, INTEGER[name], g.some(lambda x: x.dtype in (torch.int64, torch.int32) and x.dim() > 0))


def logic(g):
    i = g.some(lambda x: x.dtype == torch.bool)
    name, function = g.random.choice([("not", torch.logical_not), ("float", lambda x: x.to(torch.get_default_dtype())), ("any", lambda x: x.any(-1)), ("all", lambda x: x.all(0)),
                                      ("sum", lambda x: x.sum(-1)), ("long", lambda x: x.long()), ("cumsum", lambda x: x.cumsum(-1))])
    g.add("bool " + name, function, i)


def binary(g):
    i = g.some()
    name = g.random.choice(list(BINARY))
    function = BINARY[name]
    if i is None:
        return
    dims = [extent if g.chance(0.7) else 1 for extent in g.values[i].shape][g.between(0, 1):]
    j = g.some(lambda x: is_real(x) and x.shape == g.values[i].shape) if g.chance(0.6) else None
    if j is None:
        j = g.input(g.tensor(*dims))
    g.add(name, function, i, j)


def fold(g):
    i = g.some(lambda x: is_real(x) and x.dim() > 0 and x.numel() > 0)
    if i is None:
        return
    axis, keep = g.axis(i), g.chance(0.5)
    axes = sorted({axis % g.values[i].dim(), g.axis(i) % g.values[i].dim()})
    k = g.between(1, g.values[i].shape[axis])
    rows = {
        "sum": lambda x: x.sum(axes, keepdim=keep), "mean": lambda x: x.mean(axes, keepdim=keep), "amax": lambda x: x.amax(axes, keepdim=keep),
        "amin": lambda x: x.amin(axes, keepdim=keep), "var": lambda x: x.var(axes, keepdim=keep, unbiased=False), "std": lambda x: (x * 1.5).std(axes, keepdim=keep, correction=0),
        "argmax": lambda x: x.argmax(axis, keepdim=keep), "prod": lambda x: x.prod(axis, keepdim=keep), "norm": lambda x: torch.linalg.vector_norm(x, dim=axes, keepdim=keep),
        "norm1": lambda x: x.norm(1, axis, keepdim=keep), "logsumexp": lambda x: x.logsumexp(axes, keepdim=keep), "softmax": lambda x: x.softmax(axis), "log_softmax": lambda x: x.log_softmax(axis),
        "cumsum": lambda x: x.cumsum(axis), "cumprod": lambda x: x.tanh().cumprod(axis), "cummax": lambda x: x.cummax(axis).values, "logcumsumexp": lambda x: x.logcumsumexp(axis),
        "sort": lambda x: x.sort(axis).values, "argsort": lambda x: torch.argsort(x, dim=axis, stable=True), "topk": lambda x: x.topk(k, axis).values, "kthvalue": lambda x: x.kthvalue(k, axis).values,
        "median": lambda x: x.median(axis).values, "max of": lambda x: x.max(axis, keepdim=keep).values, "min at": lambda x: x.min(axis).indices, "count": lambda x: (x > 0).sum(axis), "diff": lambda x: x.diff(dim=axis),
        "normalize": lambda x: F.normalize(x, dim=axis), "nanmean": lambda x: x.nanmean(axis), "all": lambda x: (x > -9).all(axis), "aminmax": lambda x: x.aminmax(dim=axis).max, "softmin": lambda x: F.softmin(x, axis),
    }  # fmt: skip
    name = g.random.choice(list(rows))
    g.add(f"{name} {axes if 'axes' in name else axis}", rows[name], i)


def norm(g):
    i = g.some(lambda x: is_real(x) and x.dim() >= 3 and x.numel() > 0)
    if i is None:
        return
    shape = g.values[i].shape
    weight, bias, row = g.input(g.tensor(shape[1])), g.input(g.tensor(shape[1])), g.input(g.tensor(shape[-1]))
    groups = g.random.choice([n for n in range(1, shape[1] + 1) if shape[1] % n == 0])
    rows = {
        "layer_norm": (lambda x, w: F.layer_norm(x, w.shape, w), i, row), "rms_norm": (lambda x, w: F.rms_norm(x, w.shape, w), i, row),
        "group_norm": (lambda x, w, b: F.group_norm(x, groups, w, b, 1e-2), i, weight, bias), "instance_norm": (lambda x: F.instance_norm(x, eps=1e-2), i),
        "batch_norm": (lambda x, w, b: F.batch_norm(x, None, None, w, b, True, eps=1e-2), i, weight, bias),
        "evaluated batch_norm": (lambda x, w, b: F.batch_norm(x, b.detach(), w.detach().abs() + 0.5, w, b), i, weight, bias), "local_response_norm": (lambda x: F.local_response_norm(x, 3), i),
        "prelu": (lambda x, w: F.prelu(x, w), i, weight),
    }  # fmt: skip
    name = g.random.choice(list(rows))
    g.add(name, *rows[name])


def product(g):
    i = g.some(lambda x: is_real(x) and x.dim() >= 2 and x.numel() > 0)
    if i is None:
        return
    x = g.values[i]
    depth, width = x.shape[-1], g.random.choice((1, 3, 8, 17))
    weight, bias, square = g.input(g.tensor(width, depth) / depth**0.5), g.input(g.tensor(width)), g.input(g.tensor(*x.shape[:-2], depth, width) / depth**0.5)
    rows = {
        "linear": (lambda x, w, b: F.linear(x, w, b), i, weight, bias), "matmul": (torch.matmul, i, square), "linear gelu": (lambda x, w: F.gelu(F.linear(x, w)), i, weight),
        "own": (lambda x: x @ x.transpose(-1, -2) * 0.1, i), "turned": (lambda x, w: (w @ x.transpose(-1, -2)).transpose(-1, -2), i, weight), "einsum": (lambda x, w: torch.einsum("...k,nk->n...", x, w), i, weight),
        "cdist": (lambda x, w: torch.cdist(x + 1e-3, w.expand(*x.shape[:-2], *w.shape)), i, weight), "attention": (lambda x: F.scaled_dot_product_attention(x, x * 0.5, x + 1), i),
        "causal attention": (lambda x: F.scaled_dot_product_attention(x, x, x, is_causal=True), i), "bilinear": (lambda x, w: torch.einsum("...i,...j->...ij", x, x).sum(-1) + w.sum(), i, weight),
        "written attention": (lambda x: ((x @ x.mT) * 0.2).masked_fill(torch.ones(x.shape[-2], x.shape[-2], dtype=torch.bool, device=x.device).triu(1), -1e4).softmax(-1) @ x, i),
    }  # fmt: skip
    name = g.random.choice(list(rows))
    g.add(name, *rows[name])


def image(g):
    i = g.some(lambda x: is_real(x) and x.dim() == 4 and x.numel() > 0)
    if i is None:
        return
    n, c, h, w = g.values[i].shape
    k, stride, pad, dilation = g.between(1, 3), g.between(1, 2), g.between(0, 1), g.between(1, 2)
    groups = g.random.choice((1, 1, c))
    width = groups * g.between(1, 4)
    weight, up = g.input(g.tensor(width, c // groups, k, k) / (c // groups * k * k) ** 0.5), g.input(g.tensor(c, 3, 2, 2) / c**0.5)
    # torch smooths images of one column wrongly: the rows of their results are all the first.
    mode, align, size = g.random.choice(("bilinear", "bicubic")), g.chance(0.5), (g.between(1, 2 * h), g.between(1, 2 * w))
    grid = g.input(g.tensor(n, 3, 4, 2) * 0.6)
    rows = {
        "conv": (lambda x, w: F.conv2d(x, w, None, stride, pad, dilation, groups), i, weight), "conv relu": (lambda x, w: F.relu(F.conv2d(x, w, None, stride, pad, 1, groups)), i, weight),
        "conv_transpose": (lambda x, w: F.conv_transpose2d(x, w, None, stride, pad), i, up), "max_pool": (lambda x: F.max_pool2d(x, k, stride, pad if k > 1 else 0, 1, align), i),
        "avg_pool": (lambda x: F.avg_pool2d(x, k, stride, pad if k > 1 else 0, align, not align), i), "adaptive_avg": (lambda x: F.adaptive_avg_pool2d(x, (k, stride)), i), "adaptive_max": (lambda x: F.adaptive_max_pool2d(x, k), i),
        "lp_pool": (lambda x: F.lp_pool2d(x.abs() + 0.1, 2, k, stride), i), "nearest": (lambda x: F.interpolate(x, size=size), i), "interpolate": (lambda x: F.interpolate(x, size=size, mode=mode, align_corners=align), i),
        "antialias": (lambda x: F.interpolate(x.repeat(1, 1, 1, 2), size=(size[0], size[1] + 1), mode=mode, antialias=True), i), "scale": (lambda x: F.interpolate(x, scale_factor=1.5, mode="bilinear"), i), "unfold": (lambda x: F.unfold(x, k, dilation, pad, stride), i),
        "fold": (lambda x: F.fold(F.unfold(x, 2), (h, w), 2), i), "pixel_unshuffle": (lambda x: F.pixel_unshuffle(x, 2), i), "pixel_shuffle": (lambda x: F.pixel_shuffle(torch.cat([x] * 4, 1), 2), i),
        "grid_sample": (lambda x, grid: F.grid_sample(x, grid, g_mode, g_pad, align), i, grid), "channel_shuffle": (lambda x: F.channel_shuffle(x, groups), i), "excite": (lambda x: x * x.mean((2, 3), keepdim=True).sigmoid(), i),
        "channels_last": (lambda x: x.contiguous(memory_format=torch.channels_last) * 2, i), "unpool": (lambda x: F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2, output_size=x.shape[-2:]), i),
    }  # fmt: skip
    g_mode, g_pad = g.random.choice(("bilinear", "nearest")), g.random.choice(("zeros", "border", "reflection"))
    name = g.random.choice(list(rows))
    g.add(f"{name} k={k} s={stride} p={pad} d={dilation} g={groups} {mode} {align} {size} {g_mode} {g_pad}", *rows[name])


def line(g):
    i = g.some(lambda x: is_real(x) and x.dim() == 3 and x.numel() > 0)
    if i is None:
        return
    c = g.values[i].shape[1]
    k, stride = g.between(1, 3), g.between(1, 2)
    weight = g.input(g.tensor(4, c, k) / (c * k) ** 0.5)
    rows = {
        "conv1d": (lambda x, w: F.conv1d(x, w, None, stride, k // 2), i, weight), "max_pool1d": (lambda x: F.max_pool1d(x, k, stride), i), "avg_pool1d": (lambda x: F.avg_pool1d(x, k, stride), i),
        "linear": (lambda x: F.interpolate(x, scale_factor=2.0, mode="linear"), i), "adaptive1d": (lambda x: F.adaptive_avg_pool1d(x, k), i), "windows": (lambda x: x.unfold(-1, k, stride).mean(-1), i),
        "causal conv": (lambda x, w: F.conv1d(F.pad(x, (k - 1, 0)), w), i, weight),
    }  # fmt: skip
    name = g.random.choice(list(rows))
    g.add(f"{name} k={k} s={stride}", *rows[name])


def move(g):
    i = g.some(lambda x: x.dim() > 0)
    if i is None:
        return
    x = g.values[i]
    a, b, axis = g.axis(i), g.axis(i), g.axis(i)
    extent = x.shape[axis]
    begin = g.between(0, max(extent - 1, 0))
    end, step, by, perm = g.between(begin, extent), g.between(1, 3), g.between(-3, 3), list(range(x.dim()))
    g.random.shuffle(perm)
    mode, pads = g.random.choice(("constant", "reflect", "replicate", "circular")), [g.between(0, 2) for _ in range(2)]
    j = g.some(lambda y: y.dtype == x.dtype and y.shape == x.shape)
    rows = {
        "transpose": (lambda x: x.transpose(a, b), i), "permute": (lambda x: x.permute(perm), i), "flatten": (lambda x: x.flatten(*sorted((a % x.dim(), b % x.dim()))), i), "unsqueeze": (lambda x: x.unsqueeze(axis), i),
        "squeeze": (lambda x: x.squeeze(axis), i), "narrow": (lambda x: x.narrow(axis, begin, end - begin), i), "step": (lambda x: x.movedim(axis, 0)[begin::step], i), "flip": (lambda x: x.flip(axis), i), "roll": (lambda x: x.roll(by, axis), i),
        "rolls": (lambda x: x.roll((by, 1), (a, b)), i), "cat": (lambda x, y: torch.cat([x, y, x], axis), i, j), "stack": (lambda x, y: torch.stack([x, y], axis), i, j), "chunk": (lambda x: x.chunk(2, axis)[0], i), "unbind": (lambda x: x.unbind(axis)[begin], i),
        "expand": (lambda x: x.unsqueeze(axis).expand(*[-1] * (axis % (x.dim() + 1)), 3, *[-1] * (x.dim() - axis % (x.dim() + 1))), i), "repeat": (lambda x: x.repeat(*[2] + [1] * (x.dim() - 1)), i),
        "interleave": (lambda x: x.repeat_interleave(2, axis), i), "reshape": (lambda x: x.reshape(-1, x.shape[axis]), i), "rot90": (lambda x: x.rot90(1, (a, b)), i), "tril": (lambda x: x.tril(by), i), "triu": (lambda x: x.triu(by), i),
        "diagonal": (lambda x: x.diagonal(by, a, b), i), "diag_embed": (lambda x: x.diag_embed(), i), "pad": (lambda x: F.pad(x, pads, mode), i), "select": (lambda x: x.select(axis, begin), i), "movedim": (lambda x: x.movedim(a, b), i),
        "tensor_split": (lambda x: x.tensor_split(2, axis)[-1], i), "contiguous": (lambda x: x.transpose(a, b).contiguous(), i),
    }  # fmt: skip
    name = g.random.choice(list(rows))
    g.add(f"{name} {a},{b},{axis} {begin}:{end}:{step} {by} {perm} {mode}{pads}", *rows[name])


def index(g):
    i = g.some(lambda x: x.dim() > 0 and x.numel() > 0 and x.dtype != torch.bool)
    if i is None:
        return
    x, axis = g.values[i], g.axis(i)
    extent, count = x.shape[axis], g.between(1, 6)
    at = g.input(torch.randint(0, extent, (count,), generator=g.generator))
    shape = list(x.shape)
    shape[axis] = count
    full = g.input(torch.randint(0, extent, shape, generator=g.generator))
    source = g.input(g.tensor(*shape).to(x.dtype) if is_real(x) else torch.randint(-5, 5, shape, generator=g.generator).to(x.dtype))
    how = g.random.choice(("sum", "amax", "amin", "mean", "prod"))
    rows = {
        "index_select": (lambda x, at: x.index_select(axis, at), i, at), "advanced": (lambda x, at: x.movedim(axis, 0)[at], i, at), "gather": (lambda x, f: x.gather(axis, f), i, full), "take_along": (lambda x, f: x.take_along_dim(f, axis), i, full),
        "scatter_add": (lambda x, f, s: x.scatter_add(axis, f, s), i, full, source), "scatter_reduce": (lambda x, f, s: x.scatter_reduce(axis, f, s, how), i, full, source), "index_add": (lambda x, at, s: x.index_add(axis, at, s), i, at, source),
        "index_put": (lambda x, at, s: x.movedim(axis, 0).index_put((at,), s.movedim(axis, 0), accumulate=True), i, at, source), "take": (lambda x, at: x.take(at), i, at), "index_fill": (lambda x, at: x.index_fill(axis, at, 2), i, at),
        "embedding": (lambda x, at: F.embedding(at, x.reshape(x.shape[0], -1)) if x.shape[0] >= extent else x[:0], i, at), "negative": (lambda x, at: x.movedim(axis, 0)[at - extent], i, at), "masked_fill": (lambda x: x.masked_fill(x > 0, 0), i),
        "searchsorted": (lambda x, at: torch.searchsorted(at.sort().values, x.long().clamp(-9, 9)), i, at), "isin": (lambda x, at: torch.isin(x.long(), at), i, at),
    }  # fmt: skip
    name = g.random.choice(list(rows))
    g.add(f"{name} {axis} {how}", *rows[name])


def write(g):
    """Values that are changed in place, through views as well."""
    i = g.some(lambda x: is_real(x) and x.dim() > 0 and x.numel() > 0)
    if i is None:
        return
    axis, begin = g.axis(i), g.between(0, max(g.values[i].shape[0] - 1, 0))

    def through_view(x):
        y = x.clone()
        y.transpose(0, axis)[begin:].mul_(0.5).add_(1)
        return y

    def slices(x):
        y = torch.zeros_like(x)
        y[begin:] = x[begin:] * 2
        y[..., ::2] += 1
        return y

    def filled(x):
        y = x * 2
        y.select(axis, 0).fill_(0.25)
        y[y > 1] = -1.0
        return y

    def copied(x):
        y = torch.empty_like(x)
        y.copy_(x.flip(0))
        y.view(-1)[:1].zero_()
        return y + x

    function = g.random.choice((through_view, slices, filled, copied))
    g.add(f"{function.__name__} {axis} {begin}", function, i)


GROWTHS = [(6, unary), (6, binary), (5, fold), (2, norm), (3, product), (4, image), (2, line), (6, move), (3, index), (2, integer), (2, logic), (2, write)]


# Checking


def run(function, inputs, with_gradients, dtype=None):
    torch.manual_seed(0)
    given = [x.to(dtype) if dtype and is_real(x) else x.clone() for x in inputs]
    if not with_gradients:
        with torch.no_grad():
            return function(*given)
    given = [x.requires_grad_() if is_real(x) else x for x in given]
    outputs = function(*given)
    loss = sum((y * torch.linspace(0.5, 1.5, y.numel(), dtype=y.dtype, device=y.device).view(y.shape)).sum() for y in outputs if is_real(y) and y.requires_grad)
    if isinstance(loss, torch.Tensor):
        loss.backward()
    return [y.detach() for y in outputs] + [x.grad for x in given if is_real(x) and x.grad is not None]


def difference(got, eager, exact):
    if len(got) != len(eager):
        return f"{len(got)} results, eager has {len(eager)}"
    for k, (a, b, c) in enumerate(zip(got, eager, exact)):
        if a.shape != b.shape or a.dtype != b.dtype:
            return f"result {k} is {a.dtype}{list(a.shape)}, eager's {b.dtype}{list(b.shape)}"
        if b.numel() == 0 or c.shape != b.shape:
            continue
        a, b, c = (t.detach().cpu().double() for t in (a, b, c))
        scale = c[c.isfinite()].abs().max() if c.isfinite().any() else 0
        off = (b - c).abs()
        allowed = 1e-6 + 2e-5 * scale + 1e-4 * c.abs() + 20 * off
        decided = (off <= 1e-3 * scale + 1e-3) & c.isfinite()  # else the numbers were told apart by their roundings
        wrong = decided & ~((a - c).abs() <= allowed)
        if wrong.any() and wrong.sum() > 0.02 * wrong.numel() * (not is_real(eager[k])):
            at = int(wrong.flatten().nonzero()[0])
            return f"result {k} {list(eager[k].shape)} element {at} is {a.flatten()[at]:.8g}, eager {b.flatten()[at]:.8g}, exact {c.flatten()[at]:.8g}; {int(wrong.sum())} of {wrong.numel()}"
    return ""


def check(program, with_gradients, device):
    function = program.function()
    inputs = [x.to(device) for x in program.inputs]
    torch._dynamo.reset()
    try:
        eager = run(function, inputs, with_gradients)
        torch.set_default_dtype(torch.float64)
        exact = run(function, inputs, with_gradients, torch.float64)
    except (RuntimeError, NotImplementedError):
        return "eager"
    finally:
        torch.set_default_dtype(torch.float32)
    try:
        got = run(torch.compile(function, backend="sylvite"), inputs, with_gradients)
    except Exception as error:  # noqa: BLE001: whatever is thrown is a finding
        return f"throws {type(error).__name__}: {str(error)[:600]}"
    return difference(got, eager, exact)


def reduced(program, with_gradients, device):
    """The shortest of the programs that end at one of its values and fail."""
    for i, call in enumerate(program.calls):
        if call is None:
            continue
        part = Program(program.inputs, program.calls, [i], program.places)
        found = check(part, with_gradients, device)
        if found and found != "eager":
            return part, found
    return program, ""


def grown(seed, nodes):
    grower = Grower(seed)
    return grower.grow(nodes), grower.chance(0.5)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="0:20")
    parser.add_argument("--nodes", type=int, default=10)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--reduce", action="store_true", help="look for the first value that differs by itself")
    parser.add_argument("--verbose", action="store_true", help="print every seed")
    options = parser.parse_args()
    first, end = map(int, options.seeds.split(":"))
    counts = {"agrees": 0, "differs": 0, "not run": 0}
    for seed in range(first, end):
        program, with_gradients = grown(seed, options.nodes)
        found = check(program, with_gradients, options.device) if program.outputs else "eager"
        counts["not run" if found == "eager" else "differs" if found else "agrees"] += 1
        if not found or found == "eager":
            if options.verbose:
                print("agrees" if not found else "not run", seed, flush=True)
            continue
        print(f"differs {seed}{' with gradients' if with_gradients else ''}: {found}")
        if options.reduce:
            program, again = reduced(program, with_gradients, options.device)
            print(f"  {again}")
        print(program.text(), flush=True)
    print("  ".join(f"{kind} {count}" for kind, count in counts.items()))
    sys.exit(1 if counts["differs"] else 0)


if __name__ == "__main__":
    main()
