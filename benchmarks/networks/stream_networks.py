"""Networks of sounds, sequences, points and tables whose mechanisms no other file here has: bands of their own, codes upon codes,
gates along time as products, trees that are soft, splines that are turned around."""
import math

import torch
import torch.nn.functional as F
from torch import nn

from pattern_networks import attend


class RootNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return F.rms_norm(x, (x.shape[-1],), self.scale)


class Block(nn.Module):
    """Attention and a perceptron, each behind a norm by root mean squares."""

    def __init__(self, width, heads):
        super().__init__()
        self.norms = nn.ModuleList([RootNorm(width), RootNorm(width)])
        self.qkv, self.out = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.heads = heads

    def forward(self, x):
        x = x + self.out(attend(*self.qkv(self.norms[0](x)).chunk(3, -1), self.heads))
        return x + self.mlp(self.norms[1](x))


class Bands(nn.Module):
    """A spectrum in bands that widen, each with a projection of its own; attention along time, then across bands."""

    def __init__(self, width=96):
        super().__init__()
        self.sizes = (4,) * 16 + (8,) * 8 + (16,) * 4 + (65,)
        self.given = nn.ModuleList(nn.Sequential(RootNorm(2 * size), nn.Linear(2 * size, width)) for size in self.sizes)
        self.along, self.across = (nn.ModuleList(Block(width, 4) for _ in range(2)) for _ in range(2))
        self.masks = nn.ModuleList(nn.Sequential(nn.Linear(width, 2 * width), nn.Tanh(), nn.Linear(2 * width, 4 * size), nn.GLU())
                                   for size in self.sizes)

    def forward(self, x):
        parts = x.permute(0, 3, 2, 1).split(self.sizes, 2)
        h = torch.stack([given(part.flatten(2)) for given, part in zip(self.given, parts)], 1)
        n, bands, frames, width = h.shape
        for along, across in zip(self.along, self.across):
            h = along(h.reshape(n * bands, frames, width)).view(n, bands, frames, width).transpose(1, 2)
            h = across(h.reshape(n * frames, bands, width)).view(n, frames, bands, width).transpose(1, 2)
        masks = [mask(h[:, i]).unflatten(2, (-1, 2)) for i, mask in enumerate(self.masks)]
        return x * torch.cat(masks, 2).permute(0, 3, 2, 1)


class Snake(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.alpha = nn.Parameter(torch.ones(1, channels, 1))

    def forward(self, x):
        return x + (self.alpha * x).sin() ** 2 / (self.alpha + 1e-6)


class Codes(nn.Module):
    """A sound as codes: strided windows, four books of which each codes what the last left, windows back (as in DAC)."""

    def __init__(self, width=32, entries=256, books=4):
        super().__init__()
        def residual(c, dilation):
            return nn.Sequential(Snake(c), nn.Conv1d(c, c, 7, 1, 3 * dilation, dilation), Snake(c), nn.Conv1d(c, c, 1))
        self.first = nn.Conv1d(1, width, 7, 1, 3)
        self.down = nn.ModuleList(nn.ModuleList([residual(c, 1), residual(c, 3),
                                                 nn.Sequential(Snake(c), nn.Conv1d(c, 2 * c, 2 * s, s, s // 2))])
                                  for c, s in ((width, 2), (2 * width, 4), (4 * width, 8)))
        self.books = nn.Parameter(torch.randn(books, entries, 8))
        self.inside, self.outside = (nn.ModuleList(nn.Conv1d(a, b, 1) for _ in range(books))
                                     for a, b in ((8 * width, 8), (8, 8 * width)))
        self.up = nn.ModuleList(nn.ModuleList([nn.Sequential(Snake(c), nn.ConvTranspose1d(c, c // 2, 2 * s, s, s // 2)),
                                               residual(c // 2, 1), residual(c // 2, 3)])
                                for c, s in ((8 * width, 8), (4 * width, 4), (2 * width, 2)))
        self.last = nn.Sequential(Snake(width), nn.Conv1d(width, 1, 7, 1, 3), nn.Tanh())

    def forward(self, x):
        x = self.first(x)
        for one, other, step in self.down:
            x = x + one(x)
            x = step(x + other(x))
        left, coded = x, 0
        for book, inside, outside in zip(self.books, self.inside, self.outside):
            given, entries = F.normalize(inside(left).transpose(1, 2), dim=-1), F.normalize(book, dim=-1)
            taken = F.embedding((given @ entries.T).argmax(-1), book)
            part = outside(taken.transpose(1, 2))
            left, coded = left - part, coded + part
        x = coded
        for step, one, other in self.up:
            x = step(x)
            x = x + one(x)
            x = x + other(x)
        return self.last(x)


class MatrixMemory(nn.Module):
    """Gates of exponentials along time as one product of queries and keys (xLSTM's matrix memory, all steps at once)."""

    def __init__(self, width=256, heads=4, layers=2, length=256):
        super().__init__()
        self.embed = nn.Embedding(100, width)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(layers))
        self.given = nn.ModuleList(nn.Linear(width, 4 * width) for _ in range(layers))
        self.gates = nn.ModuleList(nn.Linear(width, 2 * heads) for _ in range(layers))
        self.out = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))
        self.group = nn.ModuleList(nn.GroupNorm(heads, width) for _ in range(layers))
        self.register_buffer("later", torch.ones(length, length).triu(1).bool())
        self.heads = heads

    def mix(self, x, given, gates):
        q, k, v, o = given(x).chunk(4, -1)
        q, k, v = (each.unflatten(2, (self.heads, -1)).transpose(1, 2) for each in (q, k, v))
        taken, kept = gates(x).float().transpose(1, 2).chunk(2, 1)
        kept = F.logsigmoid(kept).cumsum(-1)
        decay = (kept[..., :, None] - kept[..., None, :] + taken[..., None, :]).masked_fill(self.later, -math.inf)
        most = decay.amax(-1, keepdim=True)
        scores = (q @ k.transpose(-1, -2)) / math.sqrt(q.shape[-1]) * (decay - most).exp().to(q.dtype)
        norm = torch.maximum(scores.sum(-1, keepdim=True).abs(), (-most).exp().to(q.dtype))
        return (scores @ v / norm).transpose(1, 2).flatten(2), o

    def forward(self, tokens):
        x = self.embed(tokens)
        for norm, given, gates, group, out in zip(self.norms, self.given, self.gates, self.group, self.out):
            made, o = self.mix(norm(x), given, gates)
            x = x + out(group(made.flatten(0, 1)).view_as(made) * o.sigmoid())
        return x


class TimeMixes(nn.Module):
    """Decays that each step chooses for each channel, in chunks; the step before is mixed in everywhere (as in RWKV-6)."""

    def __init__(self, width=256, heads=4, layers=2, chunk=16):
        super().__init__()
        self.embed = nn.Embedding(100, width)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2 * layers))
        self.shares = nn.Parameter(torch.rand(layers, 7, width))
        self.parts = nn.ModuleList(nn.ModuleList(nn.Linear(width, width, bias=False) for _ in range(6)) for _ in range(layers))
        self.first = nn.ModuleList(nn.Linear(width, 4 * width, bias=False) for _ in range(layers))
        self.second = nn.ModuleList(nn.Linear(4 * width, width, bias=False) for _ in range(layers))
        self.bonus = nn.Parameter(torch.randn(layers, heads, width // heads))
        self.register_buffer("earlier", torch.ones(chunk, chunk).tril(-1))
        self.heads, self.chunk = heads, chunk

    def mix(self, x, i):
        before = F.pad(x, (0, 0, 1, -1))
        r, k, v, w, g = (part(x + (before - x) * share) for part, share in zip(self.parts[i][:5], self.shares[i]))
        def parted(t):
            return t.unflatten(1, (-1, self.chunk)).unflatten(3, (self.heads, -1)).permute(0, 3, 1, 2, 4)
        r, k, v, w = parted(r), parted(k), parted(v), parted(-F.softplus(-w) - 0.5)
        log = -w.exp().clamp(max=1.0)
        along = log.cumsum(3)
        whole = along[..., -1:, :]
        inner = (r * (along - log).exp()) @ (k * (-along).exp()).transpose(-1, -2) * self.earlier
        own = (r * self.bonus[i][None, :, None, None] * k).sum(-1, keepdim=True)
        made = inner @ v + own * v
        added, state, states = (k * (whole - along).exp()).transpose(-1, -2) @ v, torch.zeros_like(v[:, :, 0, :1]), []
        state = state.transpose(-1, -2) * state
        for chunk in range(added.shape[2]):
            states.append(state)
            state = state * whole[:, :, chunk].exp().transpose(-1, -2) + added[:, :, chunk]
        made = made + (r * (along - log).exp()) @ torch.stack(states, 2)
        return self.parts[i][5](made.permute(0, 2, 3, 1, 4).flatten(3).flatten(1, 2) * F.silu(g))

    def forward(self, tokens):
        x = self.embed(tokens)
        for i in range(len(self.first)):
            x = x + self.mix(self.norms[2 * i](x), i)
            h = self.norms[2 * i + 1](x)
            h = h + (F.pad(h, (0, 0, 1, -1)) - h) * self.shares[i, 6]
            x = x + self.second[i](F.relu(self.first[i](h)) ** 2)
        return x


class LongFilters(nn.Module):
    """Windows as long as the sequence, which a small network makes of positions, between gates (Hyena)."""

    def __init__(self, width=128, length=512, layers=2):
        super().__init__()
        self.embed = nn.Embedding(100, width)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(layers))
        self.given = nn.ModuleList(nn.Linear(width, 3 * width) for _ in range(layers))
        self.short = nn.ModuleList(nn.Conv1d(3 * width, 3 * width, 3, padding=2, groups=3 * width) for _ in range(layers))
        self.filters = nn.ModuleList(nn.Sequential(nn.Linear(5, 32), nn.SiLU(), nn.Linear(32, width)) for _ in range(layers))
        self.out = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))
        t = torch.linspace(0, 1, length)[:, None]
        self.register_buffer("positions", torch.cat([t, (t * 7).sin(), (t * 7).cos(), (t * 31).sin(), (t * 31).cos()], 1))
        self.register_buffer("decay", torch.exp(-4 * t).T)
        self.length = length

    def forward(self, tokens):
        x = self.embed(tokens)
        for norm, given, short, filters, out in zip(self.norms, self.given, self.short, self.filters, self.out):
            h = short(given(norm(x)).transpose(1, 2))[..., :self.length]
            gate, other, v = h.chunk(3, 1)
            taps = (filters(self.positions).T * self.decay).flip(1)[:, None]
            v = F.conv1d(F.pad(v * other, (self.length - 1, 0)), taps, groups=v.shape[1])
            x = x + out((v * gate).transpose(1, 2))
        return x


class SoftTrees(nn.Module):
    """Trees whose branches are taken in part: the leaves' shares are products of six thresholds (NODE)."""

    def __init__(self, features=64, trees=256, depth=6, out=3):
        super().__init__()
        self.select = nn.Parameter(torch.randn(features, trees * depth))
        self.threshold, self.scale = nn.Parameter(torch.randn(trees, depth)), nn.Parameter(torch.randn(trees, depth))
        self.leaves = nn.Parameter(torch.randn(trees, out, 2 ** depth))
        bits = torch.arange(2 ** depth)[None, :] >> torch.arange(depth)[:, None] & 1
        self.register_buffer("codes", torch.stack([bits, 1 - bits], 1).float())
        self.shape = (trees, depth)

    def forward(self, x):
        taken = (x @ self.select.softmax(0)).unflatten(-1, self.shape)
        right = ((taken - self.threshold) * torch.exp(-self.scale)).sigmoid()
        both = torch.stack([right, 1 - right], -1)
        share = torch.einsum("nrtds,dsc->nrtdc", both, self.codes).prod(-2)
        return torch.einsum("nrtc,toc->nro", share, self.leaves)


class SplineFlow(nn.Module):
    """Numbers that change by splines of eight pieces, whose knots a network makes of the other half (neural spline flows)."""

    def __init__(self, width=16, pieces=8, layers=3):
        super().__init__()
        self.nets = nn.ModuleList(nn.Sequential(nn.Linear(width // 2, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(),
                                                nn.Linear(128, width // 2 * (3 * pieces + 1))) for _ in range(layers))
        self.pieces = pieces

    def knots(self, raw):
        sizes = raw.softmax(-1) * 0.92 + 0.01
        return sizes, F.pad(sizes.cumsum(-1), (1, 0))

    def spline(self, x, raw):
        widths, left = self.knots(raw[..., :self.pieces])
        heights, low = self.knots(raw[..., self.pieces:2 * self.pieces])
        slopes = F.softplus(raw[..., 2 * self.pieces:]) + 0.01
        x = x.sigmoid()[..., None]
        piece = ((x >= left[..., :-1]).sum(-1, keepdim=True) - 1).clamp(0, self.pieces - 1)
        w, l, h, b, s = (each.gather(-1, piece) for each in (widths, left, heights, low, slopes))
        t, after, ratio = (x - l) / w, slopes.gather(-1, piece + 1), h / w
        return (b + h * (ratio * t * t + s * t * (1 - t)) / (ratio + (s + after - 2 * ratio) * t * (1 - t)))[..., 0]

    def forward(self, x):
        for net in self.nets:
            kept, changed = x.chunk(2, -1)
            x = torch.cat([self.spline(changed, net(kept).unflatten(-1, (changed.shape[-1], -1))), kept], -1)
        return x


class Vectors(nn.Module):
    """Attention whose weights are vectors, over the neighbours of points (Point Transformer)."""

    def __init__(self, width=64, neighbours=16, layers=2):
        super().__init__()
        self.embed = nn.Linear(6, width)
        self.qkv = nn.ModuleList(nn.Linear(width, 3 * width) for _ in range(layers))
        self.place = nn.ModuleList(nn.Sequential(nn.Linear(3, 32), nn.ReLU(), nn.Linear(32, width)) for _ in range(layers))
        self.weigh = nn.ModuleList(nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width)) for _ in range(layers))
        self.out = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))
        self.neighbours = neighbours

    def forward(self, points):
        p = points[..., :3]
        squares = (p * p).sum(-1)
        apart = squares[:, :, None] + squares[:, None] - 2 * p @ p.transpose(1, 2)
        near = apart.topk(self.neighbours, largest=False).indices.flatten(1)[..., None]
        def around(t):
            return t.gather(1, near.expand(-1, -1, t.shape[-1])).unflatten(1, (-1, self.neighbours))
        x, shift = self.embed(points), p[:, :, None] - around(p)
        for qkv, place, weigh, out in zip(self.qkv, self.place, self.weigh, self.out):
            q, k, v = qkv(x).chunk(3, -1)
            shifted = place(shift)
            weights = weigh(q[:, :, None] - around(k) + shifted).softmax(2)
            x = x + out((weights * (around(v) + shifted)).sum(2))
        return x


class Decomposed(nn.Module):
    """A series as trend and rest, again after each layer; delays that fit best are rolled together (Autoformer)."""

    def __init__(self, given=16, width=128, length=192, layers=2, delays=5):
        super().__init__()
        self.embed = nn.Conv1d(given, width, 3, padding=1, padding_mode="circular")
        self.qkv = nn.ModuleList(nn.Linear(width, 3 * width) for _ in range(layers))
        self.mlp = nn.ModuleList(nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
                                 for _ in range(layers))
        self.register_buffer("steps", torch.arange(length))
        self.head, self.delays, self.length = nn.Linear(width, given), delays, length

    @staticmethod
    def rest(x, size=25):
        ends = F.pad(x.transpose(1, 2), (size // 2, size // 2), mode="replicate")
        return x - F.avg_pool1d(ends, size, 1).transpose(1, 2)

    def roll(self, q, k, v):
        fit = (q @ k.transpose(1, 2)) / q.shape[-1]
        places = (self.steps[:, None] + self.steps[None]) % self.length
        along = fit.gather(2, places.T.expand_as(fit)).mean(1)
        best = along.topk(self.delays)
        weights = best.values.softmax(-1)
        shifted = (self.steps[None, None] + best.indices[:, :, None]) % self.length
        taken = v.gather(1, shifted.flatten(1)[..., None].expand(-1, -1, v.shape[-1])).unflatten(1, (self.delays, -1))
        return (taken * weights[:, :, None, None]).sum(1)

    def forward(self, x):
        x = self.embed(x.transpose(1, 2)).transpose(1, 2)
        for qkv, mlp in zip(self.qkv, self.mlp):
            x = self.rest(x + self.roll(*qkv(x).chunk(3, -1)))
            x = self.rest(x + mlp(x))
        return self.head(x)


class Policy(nn.Module):
    """Steps of an arm by a U-Net along time, whose channels are scaled by what is seen (diffusion policies)."""

    def __init__(self, given=14, width=64, seen=128):
        super().__init__()
        def step(a, b):
            return nn.ModuleList([nn.Sequential(nn.Conv1d(a, b, 5, padding=2), nn.GroupNorm(8, b), nn.Mish()),
                                  nn.Sequential(nn.Mish(), nn.Linear(seen, 2 * b)),
                                  nn.Sequential(nn.Conv1d(b, b, 5, padding=2), nn.GroupNorm(8, b), nn.Mish()),
                                  nn.Conv1d(a, b, 1) if a != b else nn.Identity()])
        self.see = nn.Sequential(nn.Linear(given, 256), nn.Mish(), nn.Linear(256, seen))
        self.down = nn.ModuleList([step(given, width), step(width, 2 * width), step(2 * width, 4 * width)])
        self.shrink = nn.ModuleList(nn.Conv1d(c, c, 3, 2, 1) for c in (width, 2 * width))
        self.up = nn.ModuleList([step(8 * width, 2 * width), step(4 * width, width)])
        self.grow = nn.ModuleList(nn.ConvTranspose1d(c, c, 4, 2, 1) for c in (2 * width, width))
        self.middle, self.last = step(4 * width, 4 * width), nn.Conv1d(width, given, 1)

    @staticmethod
    def walk(step, x, seen):
        scale, shift = step[1](seen)[..., None].chunk(2, 1)
        return step[2](step[0](x) * scale + shift) + step[3](x)

    def forward(self, x):
        seen, kept = self.see(x[..., 0]), []
        for step, shrink in zip(self.down, [*self.shrink, nn.Identity()]):
            x = self.walk(step, x, seen)
            kept.append(x)
            x = shrink(x)
        x = self.walk(self.middle, x, seen)
        for step, grow in zip(self.up, self.grow):
            x = grow(self.walk(step, torch.cat([x, kept.pop()], 1), seen))
        return self.last(x)
