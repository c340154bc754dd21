"""Programs as users of torch.compile write them: PROGRAMS maps a name to a function that returns a module, make() of its inputs, and whether it is
trained. Modules may write their buffers, and results may be views; names that begin with `open` have sizes that are marked dynamic."""

import math

import torch
import torch.nn.functional as F
import torch.utils.checkpoint
from torch import nn
from torch._higher_order_ops.while_loop import while_loop
from torch.func import functional_call, grad, jacrev, jvp, stack_module_state, vmap

PROGRAMS = {}


def program(name, *inputs, trains=True, **attributes):
    """Of a function or a module class; inputs are sizes of normal numbers, or functions."""
    def make():
        return tuple(torch.randn(size) if isinstance(size, tuple) else size() for size in inputs)

    def add(built):
        def build():
            return (built() if isinstance(built, type) else Function(built, **attributes)), make, trains
        PROGRAMS[name] = build
        return built
    return add


class Function(nn.Module):
    """Parameters are given to the function by name, behind its inputs."""

    def __init__(self, function, **parameters):
        super().__init__()
        self.function = function
        for name, size in parameters.items():
            self.register_parameter(name, nn.Parameter(torch.randn(size) / math.sqrt(size[-1])))

    def forward(self, *inputs):
        return self.function(*inputs, **dict(self.named_parameters()))


def integers(high, *size):
    return lambda: torch.randint(0, high, size)


def truths(*size):
    return lambda: torch.rand(size) > 0.5


# Indexing and masks.


@program("mask-puts", (32, 48), truths(32, 48), truths(32), (48,))
def mask_puts(x, mask, rows, value):
    y = x * 2
    y[mask] = -1.0
    y[rows] = value
    y[:, value > 0] *= 3
    z = torch.zeros_like(y)
    z[rows] = y[rows].exp()
    return y, z


@program("mask-values", (64, 32), truths(64), (64, 32), trains=False)
def mask_values(x, rows, other):
    y = x.clone()
    y[rows] += other[rows]
    y[~rows, 3] = 0
    y.masked_scatter_(other > 1, other)
    return y.softmax(-1)


@program("fancy-indexing", (12, 10, 16), integers(12, 7, 1), integers(16, 5), integers(10, 12))
def fancy_indexing(x, rows, columns, places):
    y = x[rows, :, columns]
    z = x[torch.arange(12), places] + x[..., [0, 5, 3]].sum((1, 2))[:, None]
    total = torch.zeros(10, 16, dtype=x.dtype).index_put((places,), z, accumulate=True)
    return y.mean(-1), total, x.flip(0)[::3, -4:, None], torch.take_along_dim(x, x.argsort(1)[:, :2], 1)


@program("histogram", (8, 500), trains=False)
def histogram(x):
    edges = torch.linspace(-3, 3, 33, dtype=x.dtype)
    bins = torch.bucketize(x, edges).clamp(0, 32)
    counts = torch.zeros(8, 33, dtype=torch.long).scatter_add(1, bins, torch.ones_like(bins))
    return counts, counts.cumsum(1).gather(1, bins).to(x.dtype) / x.shape[1]


# Control flow.


@program("early-exit", (16, 64))
class EarlyExit(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(64, 64), nn.GELU()) for _ in range(4))
        self.heads = nn.ModuleDict({str(i): nn.Linear(64, 10) for i in (1, 3)})

    def forward(self, x):
        found = []
        for i, block in enumerate(self.blocks):
            x = x + block(x)
            if str(i) in self.heads:
                found.append(self.heads[str(i)](x).log_softmax(-1))
        sure = (found[0].amax(-1).mean() > -0.5)
        return torch.cond(sure, lambda a, b: a.clone(), lambda a, b: (a + b) / 2, (found[0], found[1])), found[1]


@program("power-iteration", (24, 24), trains=False)
def power_iteration(x):
    a = x @ x.T / 24

    def go_on(i, v, change):
        return (i < 40) & (change > 1e-3)

    def step(i, v, change):
        w = F.normalize(a @ v, dim=0)
        return i + 1, w, (w - v).norm()

    _, v, _ = while_loop(go_on, step, (torch.tensor(0), torch.ones(24, dtype=x.dtype) / 5, torch.tensor(1.0, dtype=x.dtype)))
    return v @ a @ v


# Views, strides, and buffers.


@program("views-out", (8, 16, 12), weight=(24, 12))
def views_out(x, weight):
    y = F.linear(x, weight)
    a, b = y.chunk(2, -1)
    return a, b.transpose(0, 1), y[:, 0], y.view(8, 4, 4, 24).unbind(1)[2], x[..., ::2], x.mT


@program("strides", lambda: torch.randn(32, 48).t(), lambda: torch.randn(64, 32)[::2], lambda: torch.randn(1, 32).expand(48, 32))
def strides(x, y, z):
    product = x @ y
    return product.t(), (x + z).t(), product[:, ::2] * 2, (z * y[:1]).sum(0, keepdim=True).expand(3, 32)


@program("running-state", (32, 16))
class Running(nn.Module):
    """Means that move, a counter, and a ring of what was seen."""

    def __init__(self):
        super().__init__()
        self.net = nn.Linear(16, 16)
        self.register_buffer("mean", torch.zeros(16))
        self.register_buffer("spread", torch.ones(16))
        self.register_buffer("seen", torch.zeros((), dtype=torch.long))
        self.register_buffer("ring", torch.zeros(8, 16))

    def forward(self, x):
        y = self.net((x - self.mean) / (self.spread + 1e-5).sqrt())
        with torch.no_grad():
            self.mean.lerp_(x.mean(0), 0.1)
            self.spread.mul_(0.9).add_(x.var(0), alpha=0.1)
            self.ring.index_copy_(0, (self.seen % 8)[None], y.mean(0)[None])
            self.seen += 1
        return y + self.ring.mean(0)


@program("cache-decode", (2, 1, 32), trains=False)
class CacheDecode(nn.Module):
    """A step of text generation, whose cache is written at a position that is a buffer."""

    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(32, 96), nn.Linear(32, 32)
        self.register_buffer("keys", torch.zeros(2, 4, 64, 8))
        self.register_buffer("values", torch.zeros(2, 4, 64, 8))
        self.register_buffer("place", torch.zeros(1, dtype=torch.long))

    def forward(self, x):
        q, k, v = self.qkv(x).view(2, 1, 3, 4, 8).permute(2, 0, 3, 1, 4)
        self.keys.index_copy_(2, self.place, k)
        self.values.index_copy_(2, self.place, v)
        mask = torch.arange(64) <= self.place
        y = F.scaled_dot_product_attention(q, self.keys, self.values, attn_mask=mask[None])
        self.place.add_(1).remainder_(64)
        return self.out(y.transpose(1, 2).flatten(2))


# Autocast, checkpoints, and functions of functions.


@program("autocast-encoder", (4, 32, 64))
class AutocastEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(64, 4, 128, 0.0, batch_first=True, norm_first=True)

    def forward(self, x):
        with torch.autocast("cpu", torch.bfloat16):
            y = self.layer(x)
        return y.float().mean(1)


@program("checkpointed", (16, 64))
class Checkpointed(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(nn.Sequential(nn.LayerNorm(64), nn.Linear(64, 128), nn.SiLU(), nn.Linear(128, 64)) for _ in range(3))

    def forward(self, x):
        for block in self.blocks:
            x = x + torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False)
        return x


@program("ensemble", (20, 8))
class Ensemble(nn.Module):
    """Five networks at once by vmap."""

    def __init__(self):
        super().__init__()
        made = [nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 3)) for _ in range(5)]
        self.stacked = nn.ParameterDict({k.replace(".", "_"): nn.Parameter(v.detach()) for k, v in stack_module_state(made)[0].items()})
        self.base = [made[0].to("meta")]

    def forward(self, x):
        parameters = {k.replace("_", "."): v for k, v in self.stacked.items()}
        y = vmap(lambda p: functional_call(self.base[0], p, (x,)))(parameters)
        return y.mean(0), y.var(0)


@program("energy-forces", (6, 3), weight=(16, 1), out=(1, 16))
def energy_forces(x, weight, out):
    def energy(p):
        distance = (p[:, None] - p[None] + 1e-3).pow(2).sum(-1).add(0.1).sqrt()
        return F.silu(distance[..., None] @ weight.T).matmul(out.T).sum()

    return grad(energy)(x), vmap(grad(lambda p: energy(x + p)))(x[:, None] * 0)


@program("derivatives", (10, 2), weight=(32, 2), out=(1, 32))
def derivatives(x, weight, out):
    def net(p):
        return (torch.tanh(p @ weight.T) @ out.T).squeeze(-1)

    slope = vmap(jacrev(net))(x)
    bend = vmap(lambda p: jvp(lambda q: jvp(net, (q,), (torch.ones_like(q),))[1], (p,), (torch.ones_like(p),))[1])(x)
    return slope, bend


# Scatters, state spaces, samplers, agents.


@program("edge-attention", (40, 16), integers(40, 2, 160), weight=(16, 16), score=(1, 32))
def edge_attention(x, edges, weight, score):
    h = x @ weight.T
    source, target = edges
    s = F.leaky_relu(torch.cat([h[source], h[target]], -1) @ score.T, 0.2).squeeze(-1)
    top = torch.full((40,), -1e9, dtype=x.dtype).scatter_reduce(0, target, s.detach(), "amax")
    e = (s - top[target]).exp()
    share = e / torch.zeros(40, dtype=x.dtype).scatter_add(0, target, e)[target]
    return F.elu(torch.zeros_like(h).index_add(0, target, share[:, None] * h[source]))


@program("selective-scan", (2, 24, 16))
class SelectiveScan(nn.Module):
    """A state space whose steps depend on the input, step by step."""

    def __init__(self):
        super().__init__()
        self.rates = nn.Parameter(torch.rand(16, 4))
        self.into, self.step = nn.Linear(16, 8), nn.Linear(16, 16)

    def forward(self, x):
        b, c = self.into(x).chunk(2, -1)
        dt = F.softplus(self.step(x))
        state, found = x.new_zeros(2, 16, 4), []
        for t in range(x.shape[1]):
            state = (-dt[:, t, :, None] * self.rates.exp()).exp() * state + (dt[:, t] * x[:, t])[..., None] * b[:, t, None]
            found.append((state * c[:, t, None]).sum(-1))
        return torch.stack(found, 1)


@program("diagonal-space", (3, 64, 8), real=(8, 4), imaginary=(8, 4), out=(8, 4))
def diagonal_space(x, real, imaginary, out):
    steps = torch.arange(64, dtype=x.dtype)
    kernel = (out[..., None] * (-F.softplus(real)[..., None] * steps).exp() * (imaginary[..., None] * steps).cos()).sum(1)
    y = torch.fft.irfft(torch.fft.rfft(x.transpose(1, 2), n=128) * torch.fft.rfft(kernel, n=128), n=128)[..., :64]
    return F.gelu(y.transpose(1, 2) + x)


class Denoiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.time, self.last = nn.Conv2d(3, 16, 3, 1, 1), nn.Linear(8, 16), nn.Conv2d(16, 3, 3, 1, 1)
        self.mid = nn.Sequential(nn.GroupNorm(4, 16), nn.SiLU(), nn.Conv2d(16, 16, 3, 1, 1))

    def forward(self, x, t):
        angle = t * torch.arange(1, 5, dtype=x.dtype)
        h = self.first(x) + self.time(torch.cat([angle.sin(), angle.cos()]))[:, None, None]
        return self.last(F.silu(h + self.mid(h)))


@program("guided-sampler", (2, 3, 16, 16), (3, 16, 16), trains=False)
class GuidedSampler(nn.Module):
    """Six steps of Heun's method, guided by a second evaluation."""

    def __init__(self):
        super().__init__()
        self.net = Denoiser()

    def forward(self, x, condition):
        levels = torch.linspace(8, 0.1, 7, dtype=x.dtype)

        def slope(y, level):
            both = self.net(torch.cat([y, y + condition]) / (1 + level**2).sqrt(), level.log())
            free, guided = both.chunk(2)
            return (y - (free + 2 * (guided - free)).clamp(-1, 1)) / level

        for now, then in zip(levels[:-1], levels[1:]):
            d = slope(x, now)
            ahead = x + (then - now) * d
            x = x + (then - now) * (d + slope(ahead, then)) / 2
        return x.clamp(-1, 1)


@program("cart-pole", (16, 4))
class CartPole(nn.Module):
    """Twelve steps of an agent in a world that has gradients."""

    def __init__(self):
        super().__init__()
        self.policy = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 1))

    def forward(self, state):
        rewards = []
        for _ in range(12):
            force = 10 * self.policy(state).squeeze(-1).tanh()
            x, v, angle, turn = state.unbind(-1)
            push = (force + 0.05 * turn.square() * angle.sin()) / 1.1
            spin = (9.8 * angle.sin() - angle.cos() * push) / (0.5 * (4 / 3 - 0.1 * angle.cos().square() / 1.1))
            state = torch.stack([x + 0.02 * v, v + 0.02 * (push - 0.05 * spin * angle.cos() / 1.1), angle + 0.02 * turn, turn + 0.02 * spin], -1)
            rewards.append(-(angle.square() + 0.1 * x.square()))
        returns = torch.stack(rewards, 1).flip(1).cumsum(1).flip(1)
        return returns.mean(), state


@program("particle-filter", (100, 4), (100,), lambda: torch.rand(1), trains=False)
def particle_filter(particles, seen, start):
    weights = (-(particles[:, 0] - seen).square()).softmax(0)
    places = (start.to(weights.dtype) + torch.arange(100, dtype=weights.dtype)) / 100
    chosen = torch.searchsorted(weights.cumsum(0), places).clamp(max=99)
    kept = particles[chosen]
    return kept, kept.mean(0), 1 / weights.square().sum()


@program("clusters", (200, 8), trains=False)
def clusters(x):
    centres = x[:6]
    for _ in range(5):
        owner = torch.cdist(x, centres).argmin(1)
        sums = torch.zeros_like(centres).index_add(0, owner, x)
        counts = torch.bincount(owner, minlength=6).clamp(min=1)
        centres = sums / counts[:, None]
    return centres, counts


@program("beams", (4, 60), (4, 5, 60), trains=False)
def beams(first, then):
    scores, tokens = first.log_softmax(-1).topk(5)
    text = tokens[..., None]
    total = (scores[..., None] + then.log_softmax(-1)).flatten(1)
    scores, flat = total.topk(5)
    origin = flat // 60
    return scores, torch.cat([text.gather(1, origin[..., None]), (flat % 60)[..., None]], -1)


@program("capacity-experts", (48, 32), gate=(4, 32), up=(4, 32, 64), down=(4, 64, 32))
def capacity_experts(x, gate, up, down):
    """Experts with room for 16 rows each; the others are dropped."""
    share, expert = (x @ gate.T).softmax(-1).max(-1)
    chosen = F.one_hot(expert, 4)
    place = (chosen.cumsum(0) * chosen).sum(-1) - 1
    fits = place < 16
    room = (F.one_hot(expert, 4)[..., None] * F.one_hot(place.clamp(max=15), 16)[:, None] * fits[:, None, None]).to(x.dtype)
    rows = torch.einsum("tec,td->ecd", room, x)
    made = torch.bmm(F.silu(torch.bmm(rows, up)), down)
    return torch.einsum("tec,ecd->td", room * share[:, None, None], made)


@program("life", integers(2, 4, 32, 32), trains=False)
def life(board):
    for _ in range(6):
        near = sum(board.roll((i, j), (1, 2)) for i in (-1, 0, 1) for j in (-1, 0, 1)) - board
        board = ((near == 3) | ((near == 2) & (board == 1))).to(board.dtype)
    return board, board.sum((1, 2))


@program("edit-distance", integers(5, 8, 12), integers(5, 8, 12), trains=False)
def edit_distance(a, b):
    row = torch.arange(13).expand(8, 13)
    for i in range(12):
        found = [row[:, 0] + 1]
        for j in range(12):
            change = (a[:, i] != b[:, j]).long()
            found.append(torch.minimum(torch.minimum(found[-1], row[:, j + 1]) + 1, row[:, j] + change))
        row = torch.stack(found, 1)
    return row[:, -1]


@program("sparse-attention", (2, 4, 32, 16), (2, 4, 32, 16), (2, 4, 32, 16))
def sparse_attention(q, k, v):
    scores = q @ k.mT / 4
    limit = scores.topk(8, -1).values[..., -1:]
    return scores.masked_fill(scores < limit, -math.inf).softmax(-1) @ v


@program("rotated-filters", (2, 4, 16, 16), weight=(8, 4, 3, 3))
def rotated_filters(x, weight):
    turned = torch.cat([weight.rot90(i, (2, 3)) for i in range(4)])
    return F.conv2d(x, turned, padding=1).view(2, 4, 8, 16, 16).amax(1)


@program("toeplitz", (6, 40), row=(79,))
def toeplitz(x, row):
    matrix = torch.as_strided(row.flip(0).contiguous(), (40, 40), (1, 1))
    windows = x.unfold(1, 8, 4)
    return x @ matrix, windows.mean(-1), (windows * torch.hann_window(8, dtype=x.dtype)).sum(1)


@program("cross-latents", (3, 20, 32), lambda: torch.rand(3, 20) > 0.3)
class CrossLatents(nn.Module):
    def __init__(self):
        super().__init__()
        self.latents = nn.Parameter(torch.randn(6, 32))
        self.attend = nn.MultiheadAttention(32, 4, batch_first=True)

    def forward(self, x, keep):
        return self.attend(self.latents.expand(3, 6, 32), x, x, key_padding_mask=~keep, need_weights=False)[0]


@program("open-batch", (9, 24, 16), trains=True)
class OpenBatch(nn.Module):
    def __init__(self):
        super().__init__()
        self.into, self.cell = nn.Linear(16, 32), nn.GRUCell(32, 32)

    def forward(self, x):
        state = x.new_zeros(x.shape[0], 32)
        for t in range(0, 24, 6):
            state = self.cell(F.relu(self.into(x[:, t:t + 6].mean(1))), state)
        return state[: x.shape[0] // 2 + 1], F.normalize(state, dim=-1) @ F.normalize(state, dim=-1).T


class Optimised(nn.Module):
    """A step of an optimiser over what a network has, whose gradients are the inputs."""

    def __init__(self, make):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(24, 48), nn.LayerNorm(48), nn.Linear(48, 8), nn.Embedding(40, 12), nn.Conv2d(3, 8, 3))
        self.optimiser = make(self.net.parameters())

    def forward(self, *gradients):
        for parameter, gradient in zip(self.net.parameters(), gradients):
            parameter.grad = gradient
        self.optimiser.step()
        return [parameter.detach() for parameter in self.net.parameters()]


OPTIMISERS = {
    "adamw": lambda p: torch.optim.AdamW(p, 1e-2), "nesterov": lambda p: torch.optim.SGD(p, 1e-2, 0.9, nesterov=True, weight_decay=1e-2),
    "rmsprop": lambda p: torch.optim.RMSprop(p, 1e-2, momentum=0.5, centered=True), "adamax": lambda p: torch.optim.Adamax(p, 1e-2),
    "nadam": lambda p: torch.optim.NAdam(p, 1e-2), "adagrad": lambda p: torch.optim.Adagrad(p, 1e-2),
}  # fmt: skip


def optimised(make):
    def build():
        made = Optimised(make)
        sizes = [p.shape for p in made.net.parameters()]
        return made, lambda: tuple(torch.randn(size) for size in sizes), False
    return build


PROGRAMS.update({f"step-{name}": optimised(make) for name, make in OPTIMISERS.items()})
