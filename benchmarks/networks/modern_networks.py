"""Networks of sequences and tables whose blocks no other file here has: gates of exponentials, memories that are partly erased, keys
from a few numbers, blocks of keys that queries choose, scores that are convolved, scores without a softmax, gates that let scores fade,
polynomials as activations, rows of length one, parameters as tokens, least gates, slices of a field, tables of many small networks,
fields that are crossed by outer products, points of a ball."""
import torch
import torch.nn.functional as F
from torch import nn


class RootNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(width) + 0.5)

    def forward(self, x):
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * self.weight


class Gated(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.both, self.out = nn.Linear(width, 4 * width, bias=False), nn.Linear(2 * width, width, bias=False)

    def forward(self, x):
        gate, value = self.both(x).chunk(2, -1)
        return self.out(F.silu(gate) * value)


class Words(nn.Module):
    """Layers over words, and scores of the next: what `mix` makes sees the words before."""

    def __init__(self, mix, width=256, layers=2, words=100):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.layers = nn.ModuleList(nn.ModuleList([RootNorm(width), mix(width), RootNorm(width), Gated(width)]) for _ in range(layers))
        self.norm, self.head = RootNorm(width), nn.Linear(width, words, bias=False)

    def forward(self, x):
        x = self.embed(x)
        for first, mix, second, gated in self.layers:
            x = x + mix(first(x))
            x = x + gated(second(x))
        return self.head(self.norm(x))


def heads_of(x, heads):
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def before(length, x):
    return torch.ones(length, length, dtype=torch.bool, device=x.device).tril()


class SharpGates(nn.Module):
    """Cells whose gates are exponentials, with what keeps them in range carried along (sLSTM)."""

    def __init__(self, width=128, heads=4, steps=32):
        super().__init__()
        self.given, self.past = nn.Linear(32, 4 * width), nn.Parameter(torch.randn(heads, width // heads, 4 * width // heads) * 0.05)
        self.norm, self.head, self.heads = nn.GroupNorm(heads, width), nn.Linear(width, 10), heads

    def forward(self, x):
        given = self.given(x).unflatten(-1, (self.heads, -1))
        h = c = n = torch.zeros_like(given[:, 0].chunk(4, -1)[0])
        m, out = h, []
        for t in range(x.shape[1]):
            z, i, f, o = (given[:, t] + torch.einsum("bhd,hde->bhe", h, self.past)).chunk(4, -1)
            f = F.logsigmoid(f)
            most = torch.maximum(f + m, i)
            i, f, m = (i - most).exp(), (f + m - most).exp(), most
            c, n = f * c + i * z.tanh(), f * n + i
            h = o.sigmoid() * c / n.clamp(min=1e-6)
            out.append(h.flatten(1))
        out = torch.stack(out, 1)
        return self.head(self.norm(out.flatten(0, 1)).view_as(out) + out)


class ErasedMemory(nn.Module):
    """A memory of keys and values that fades channel by channel and is partly erased along a key at each step (RWKV-7)."""

    def __init__(self, width, heads=4):
        super().__init__()
        self.parts, self.decay, self.rate = nn.Linear(width, 3 * width), nn.Linear(width, width), nn.Linear(width, width)
        self.out, self.heads = nn.Linear(width, width), heads

    def forward(self, x):
        r, k, v = (heads_of(part, self.heads) for part in self.parts(x).chunk(3, -1))
        w = heads_of(torch.exp(-0.6 * self.decay(x).sigmoid()), self.heads)
        a = heads_of(self.rate(x).sigmoid(), self.heads)
        k = F.normalize(k, dim=-1)
        state, out = k.new_zeros(*k.shape[:2], k.shape[-1], k.shape[-1]), []
        for t in range(x.shape[1]):
            key, rate = k[:, :, t], a[:, :, t]
            erased = (state @ key[..., None]) * (rate * key)[..., None, :]
            state = state * w[:, :, t, None] - erased + v[:, :, t, :, None] * key[..., None, :]
            out.append((state @ r[:, :, t, :, None])[..., 0])
        return self.out(torch.stack(out, 2).transpose(1, 2).flatten(2))


class LatentKeys(nn.Module):
    """Keys and values of all heads from one short vector a word, and one turned key that heads share (DeepSeek's MLA)."""

    def __init__(self, width, heads=8, short=64, plain=32, turned=16):
        super().__init__()
        self.q, self.short = nn.Linear(width, heads * (plain + turned), bias=False), nn.Linear(width, short + turned, bias=False)
        self.norm, self.wide = RootNorm(short), nn.Linear(short, heads * 2 * plain, bias=False)
        self.out, self.heads, self.parts = nn.Linear(heads * plain, width, bias=False), heads, (plain, turned)

    def turn(self, x):
        half = x.shape[-1] // 2
        angle = torch.arange(x.shape[-2], device=x.device)[:, None] * 100.0 ** -(torch.arange(half, device=x.device) / half)
        cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
        even, odd = x[..., 0::2], x[..., 1::2]
        return torch.stack([even * cos - odd * sin, even * sin + odd * cos], -1).flatten(-2)

    def forward(self, x):
        plain, turned = self.parts
        q, q_turned = heads_of(self.q(x), self.heads).split([plain, turned], -1)
        short, k_turned = self.short(x).split([self.wide.in_features, turned], -1)
        k, v = heads_of(self.wide(self.norm(short)), self.heads).chunk(2, -1)
        k = torch.cat([k, self.turn(k_turned)[:, None].expand(-1, self.heads, -1, -1)], -1)
        q = torch.cat([q, self.turn(q_turned)], -1)
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(out.transpose(1, 2).flatten(2))


class BlockChoices(nn.Module):
    """Each query sees means of blocks, the blocks that these rate highest, and its neighbours, by gates of its own (NSA)."""

    def __init__(self, width, heads=4, block=16, chosen=4):
        super().__init__()
        self.qkv, self.gates, self.out = nn.Linear(width, 3 * width), nn.Linear(width, 3 * heads), nn.Linear(width, width)
        self.heads, self.block, self.chosen = heads, block, chosen

    def forward(self, x):
        length, block = x.shape[1], self.block
        q, k, v = (heads_of(part, self.heads) for part in self.qkv(x).chunk(3, -1))
        at = torch.arange(length, device=x.device)
        past = (at[:, None] >= (torch.arange(length // block, device=x.device) + 1) * block - 1)
        means, mean_values = (t.unflatten(2, (-1, block)).mean(3) for t in (k, v))
        scores = (q @ means.transpose(-1, -2) * q.shape[-1] ** -0.5).masked_fill(~past, -1e4)
        coarse = (scores.softmax(-1) * past) @ mean_values
        best = scores.topk(self.chosen, -1).indices
        rows = (best[..., None] * block + torch.arange(block, device=x.device)).flatten(-2)
        index = rows.flatten(2)[..., None].expand(-1, -1, -1, k.shape[-1])
        keys, values = (t.gather(2, index).unflatten(2, (length, -1)) for t in (k, v))
        fine = (keys @ q[..., None])[..., 0] * q.shape[-1] ** -0.5
        fine = fine.masked_fill(rows > at[:, None], -1e4).softmax(-1)
        fine = (fine[..., None, :] @ values)[..., 0, :]
        near = before(length, x) & (at[:, None] - at < 32)
        local = F.scaled_dot_product_attention(q, k, v, attn_mask=near)
        gates = heads_of(self.gates(x).sigmoid(), self.heads)
        out = gates[..., :1] * coarse + gates[..., 1:2] * fine + gates[..., 2:] * local
        return self.out(out.transpose(1, 2).flatten(2))


class MixedScores(nn.Module):
    """Scores of neighbouring words and of other heads are mixed ahead of and behind the softmax (multi-token attention)."""

    def __init__(self, width, heads=8):
        super().__init__()
        self.qkv, self.out, self.heads = nn.Linear(width, 3 * width), nn.Linear(width, width), heads
        self.near, self.mix = nn.Conv2d(heads, heads, (4, 7), padding=(3, 3), groups=heads), nn.Conv2d(heads, heads, 1)

    def forward(self, x):
        q, k, v = (heads_of(part, self.heads) for part in self.qkv(x).chunk(3, -1))
        seen = before(x.shape[1], x)
        scores = (q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5).masked_fill(~seen, 0)
        scores = self.near(scores)[:, :, :x.shape[1]].masked_fill(~seen, -1e4).softmax(-1)
        return self.out((self.mix(scores) @ v).transpose(1, 2).flatten(2))


class BentScores(nn.Module):
    """Scores through SiLU in place of a softmax, distances by buckets, and a gate of the words (HSTU)."""

    def __init__(self, width, heads=4, longest=256):
        super().__init__()
        self.parts, self.norm, self.out = nn.Linear(width, 4 * width), nn.LayerNorm(width), nn.Linear(width, width)
        self.far, self.heads = nn.Parameter(torch.randn(heads, 16) * 0.1), heads
        distance = (torch.arange(longest)[:, None] - torch.arange(longest)).clamp(min=1).float().log2() * 2
        self.register_buffer("bucket", distance.long().clamp(max=15))

    def forward(self, x):
        length = x.shape[1]
        u, *others = F.silu(self.parts(x)).chunk(4, -1)
        q, k, v = (heads_of(part, self.heads) for part in others)
        scores = F.silu(q @ k.transpose(-1, -2) + self.far[:, self.bucket]) / length
        out = (scores * before(length, x)) @ v
        return self.out(self.norm(out.transpose(1, 2).flatten(2)) * u)


class FadingScores(nn.Module):
    """Scores fall by what gates of the words between let fade; queries and keys have norms, and results too (FoX)."""

    def __init__(self, width, heads=4):
        super().__init__()
        self.qkv, self.fade, self.out = nn.Linear(width, 3 * width), nn.Linear(width, heads), nn.Linear(width, width)
        self.q_norm, self.k_norm, self.gate = RootNorm(width // heads), RootNorm(width // heads), nn.Linear(width, width)
        self.heads = heads

    def forward(self, x):
        q, k, v = (heads_of(part, self.heads) for part in self.qkv(x).chunk(3, -1))
        q, k = self.q_norm(q), self.k_norm(k)
        faded = F.logsigmoid(self.fade(x) + 2).cumsum(1).transpose(1, 2)
        bias = (faded[..., :, None] - faded[..., None, :]).masked_fill(~before(x.shape[1], x), float("-inf"))
        out = (q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5 + bias).softmax(-1) @ v
        return self.out(out.transpose(1, 2).flatten(2) * self.gate(x).sigmoid())


class Chebyshev(nn.Module):
    """Layers of Chebyshev polynomials, and one of bells at fixed places, of each number (KAN variants)."""

    def __init__(self, given=64, width=128, degree=5, places=8):
        super().__init__()
        self.first, self.second = (nn.Parameter(torch.randn(degree + 1, a, width) / (a * degree) ** 0.5) for a in (given, width))
        self.register_buffer("places", torch.linspace(-2, 2, places))
        self.norm, self.bells = nn.LayerNorm(width), nn.Linear(width * places, 32)

    def polynomials(self, x, weight):
        x = x.tanh()
        terms = [torch.ones_like(x), x]
        while len(terms) < weight.shape[0]:
            terms.append(2 * x * terms[-1] - terms[-2])
        return torch.einsum("bnid,dio->bno", torch.stack(terms, -1), weight)

    def forward(self, x):
        x = self.norm(self.polynomials(self.polynomials(x, self.first), self.second))
        bells = torch.exp(-((x[..., None] - self.places) / 0.57).square())
        return self.bells(bells.flatten(-2))


class OwnFractions(nn.Module):
    """A vision transformer whose activations are fractions of polynomials, one for each group of channels (KAT)."""

    def __init__(self, width=192, heads=3, layers=4, groups=8, classes=100):
        super().__init__()
        self.patches = nn.Conv2d(3, width, 16, 16)
        self.over, self.under = nn.Parameter(torch.randn(layers, 2, groups, 1, 6) * 0.3), nn.Parameter(torch.randn(layers, 2, groups, 1, 4) * 0.3)
        self.layers = nn.ModuleList(nn.ModuleList([
            nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width), nn.LayerNorm(width),
            nn.Linear(width, 4 * width), nn.Linear(4 * width, width)]) for _ in range(layers))
        self.head, self.heads, self.groups = nn.Linear(width, classes), heads, groups

    def fraction(self, x, layer, which):
        x = x.unflatten(-1, (self.groups, -1))
        over, under, top, bottom = self.over[layer, which], self.under[layer, which], 0, 0
        for i in reversed(range(6)):
            top = top * x + over[..., i]
        for i in reversed(range(4)):
            bottom = (bottom + under[..., i]) * x
        return (top / (1 + bottom.abs())).flatten(-2)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        for i, (first, qkv, out, second, wide, narrow) in enumerate(self.layers):
            q, k, v = (heads_of(part, self.heads) for part in qkv(first(x)).chunk(3, -1))
            x = x + out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
            x = x + narrow(self.fraction(wide(self.fraction(second(x), i, 0)), i, 1))
        return self.head(x.mean(1))


class RowsOfOne(nn.Module):
    """All rows have length one: words, weights, queries, keys, and the way between a layer's input and result (nGPT)."""

    def __init__(self, width=256, layers=3, heads=4, words=100):
        super().__init__()
        self.embed, self.heads = nn.Embedding(words, width), heads
        self.layers = nn.ModuleList(nn.ModuleList([
            nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False),
            nn.Linear(width, 4 * width, bias=False), nn.Linear(2 * width, width, bias=False)]) for _ in range(layers))
        self.rates, self.scale = nn.Parameter(torch.rand(layers, 2, width) * 0.2), nn.Parameter(torch.rand(layers, width // heads) + 1)
        self.wide, self.last = nn.Parameter(torch.rand(layers, 4 * width) + 1), nn.Parameter(torch.rand(words) + 4)

    def forward(self, x):
        x = F.normalize(self.embed(x), dim=-1)
        for i, (qkv, out, wide, narrow) in enumerate(self.layers):
            q, k, v = (heads_of(part, self.heads) for part in qkv(x).chunk(3, -1))
            q, k = (F.normalize(part, dim=-1) * self.scale[i] for part in (q, k))
            seen = F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=q.shape[-1] ** 0.5)
            there = F.normalize(out(seen.transpose(1, 2).flatten(2)), dim=-1)
            x = F.normalize(x + self.rates[i, 0] * (there - x), dim=-1)
            gate, value = (wide(x) * self.wide[i]).chunk(2, -1)
            there = F.normalize(narrow(F.silu(gate) * value), dim=-1)
            x = F.normalize(x + self.rates[i, 1] * (there - x), dim=-1)
        return F.linear(x, F.normalize(self.embed.weight, dim=-1)) * self.last


class ParameterTokens(nn.Module):
    """Every product is attention to learned keys and values, with norms and GELU in place of a softmax (TokenFormer)."""

    def __init__(self, width, heads=4, tokens=384):
        super().__init__()
        self.keys, self.values = (nn.Parameter(torch.randn(4, tokens, width) * 0.05) for _ in range(2))
        self.heads = heads

    def seek(self, x, i):
        scores = x @ self.keys[i].t()
        scores = scores * torch.rsqrt(scores.square().sum(-1, keepdim=True) + 1e-6) * self.keys.shape[1] ** 0.5
        return F.gelu(scores) @ self.values[i]

    def forward(self, x):
        q, k, v = (heads_of(self.seek(x, i), self.heads) for i in range(3))
        return self.seek(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2), 3)


class LeastGates(nn.Module):
    """Cells whose gates see the input alone, all steps at once by sums of logarithms (minGRU)."""

    def __init__(self, width, wider=1.5):
        super().__init__()
        inner = int(width * wider)
        self.near, self.both, self.out = nn.Conv1d(width, width, 4, padding=3, groups=width), nn.Linear(width, 2 * inner), nn.Linear(inner, width)

    def forward(self, x):
        near = F.silu(self.near(x.transpose(1, 2))[..., :x.shape[1]].transpose(1, 2))
        gate, value = self.both(near).chunk(2, -1)
        gate = gate - 2  # that what is left of the first step has a logarithm to the end
        kept, taken = (-F.softplus(gate)).cumsum(1), -F.softplus(-gate)
        value = torch.where(value >= 0, (value.relu() + 0.5).log(), -F.softplus(-value))
        return self.out((kept + torch.logcumsumexp(taken + value - kept, 1)).exp())


class FieldSlices(nn.Module):
    """Points of a field in soft slices, attention among the slices, and back to the points (Transolver)."""

    def __init__(self, given=4, width=128, heads=8, slices=32, layers=3):
        super().__init__()
        self.first = nn.Sequential(nn.Linear(given, 256), nn.GELU(), nn.Linear(256, width))
        self.layers = nn.ModuleList(nn.ModuleList([
            nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.Linear(width // heads, slices),
            nn.Linear(width // heads, 3 * width // heads, bias=False), nn.Linear(width, width),
            nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))]) for _ in range(layers))
        self.heat, self.head, self.heads = nn.Parameter(torch.full((layers, 1, heads, 1, 1), 0.5)), nn.Linear(width, 1), heads

    def forward(self, x):
        x = self.first(x)
        for i, (norm, both, slices, qkv, out, after) in enumerate(self.layers):
            value, way = (heads_of(part, self.heads) for part in both(norm(x)).chunk(2, -1))
            share = (slices(way) / self.heat[i].clamp(min=0.1)).softmax(-1)
            tokens = share.transpose(-1, -2) @ value / (share.sum(2)[..., None] + 1e-5)
            q, k, v = qkv(tokens).chunk(3, -1)
            tokens = F.scaled_dot_product_attention(q, k, v)
            x = x + out((share @ tokens).transpose(1, 2).flatten(2))
            x = x + after(x)
        return self.head(x)


class ManyTables(nn.Module):
    """Numbers in steps of their own bins, through 32 networks that share weights but for scales (TabM)."""

    def __init__(self, fields=24, bins=16, width=16, hidden=256, members=32):
        super().__init__()
        self.register_buffer("edges", torch.randn(fields, bins + 1).sort(-1).values + torch.linspace(0, 0.1, bins + 1))
        self.embed, self.bias = nn.Parameter(torch.randn(fields, bins, width) * 0.2), nn.Parameter(torch.zeros(fields, width))
        sizes = (fields * width, hidden, hidden)
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(sizes, sizes[1:]))
        self.before = nn.ParameterList(nn.Parameter(torch.randn(members, a)) for a in sizes[:-1])
        self.after = nn.ParameterList(nn.Parameter(torch.randn(2, members, b)) for b in sizes[1:])
        self.heads = nn.Parameter(torch.randn(members, hidden, 3) * 0.05)

    def forward(self, x):
        low, high = self.edges[:, :-1], self.edges[:, 1:]
        step = ((x[..., None] - low) / (high - low)).clamp(0, 1)
        x = F.relu(torch.einsum("bnfk,fkw->bnfw", step, self.embed) + self.bias).flatten(2)[:, :, None]
        for layer, before_it, (scale, shift) in zip(self.layers, self.before, self.after):
            x = F.relu(layer(x * before_it) * scale + shift)
        return torch.einsum("bnmh,mho->bnmo", x, self.heads).softmax(-1).mean(2)


class OuterFields(nn.Module):
    """Fields crossed by outer products that are summed with weights, squeezed fields, and products of pairs (xDeepFM, FiBiNET)."""

    def __init__(self, fields=26, width=16, maps=(64, 64), hidden=256):
        super().__init__()
        self.embed = nn.Embedding(100 * fields, width)
        self.register_buffer("first", torch.arange(fields) * 100)
        counts = (fields, *maps)
        self.crosses = nn.ModuleList(nn.Conv1d(fields * a, b, 1) for a, b in zip(counts, counts[1:]))
        self.squeeze = nn.Sequential(nn.Linear(fields, 8), nn.ReLU(), nn.Linear(8, fields), nn.Sigmoid())
        self.pair = nn.Linear(width, width, bias=False)
        self.register_buffer("pairs", torch.combinations(torch.arange(fields)))
        self.deep = nn.Sequential(nn.Linear(fields * width, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU())
        self.head = nn.Linear(sum(maps) + len(self.pairs) * width + hidden, 1)

    def forward(self, x):
        x = self.embed(x.unflatten(1, (-1, len(self.first))) + self.first).flatten(0, 1)
        found, field = [], x
        for cross in self.crosses:
            field = F.relu(cross((field[:, :, None] * x[:, None]).flatten(1, 2)))
            found.append(field.sum(-1))
        gated = x * self.squeeze(x.mean(-1))[..., None]
        both = self.pair(gated)[:, self.pairs[:, 0]] * gated[:, self.pairs[:, 1]]
        return self.head(torch.cat([*found, both.flatten(1), self.deep(x.flatten(1))], -1)).sigmoid()


class BallPoints(nn.Module):
    """Layers of points of a ball: products by matrices and sums as its geometry has them, and distances to classes (hyperbolic)."""

    def __init__(self, given=32, width=64, layers=3, classes=20):
        super().__init__()
        sizes = [given] + [width] * layers
        self.weights = nn.ParameterList(nn.Parameter(torch.randn(b, a) / a ** 0.5) for a, b in zip(sizes, sizes[1:]))
        self.shifts = nn.ParameterList(nn.Parameter(torch.randn(width) * 0.05) for _ in range(layers))
        self.places = nn.Parameter(torch.randn(classes, width) * 0.05)

    @staticmethod
    def add(x, y):
        both, xx, yy = (x * y).sum(-1, keepdim=True), x.square().sum(-1, keepdim=True), y.square().sum(-1, keepdim=True)
        return ((1 + 2 * both + yy) * x + (1 - xx) * y) / (1 + 2 * both + xx * yy).clamp(min=1e-5)

    @staticmethod
    def inside(x):
        size = x.norm(dim=-1, keepdim=True).clamp(min=1e-5)
        return torch.where(size > 0.95, x / size * 0.95, x)

    def forward(self, x):
        size = x.norm(dim=-1, keepdim=True).clamp(min=1e-5)
        x = size.tanh() * x / size * 0.95
        for weight, shift in zip(self.weights, self.shifts):
            moved = F.linear(x, weight)
            size, after = x.norm(dim=-1, keepdim=True).clamp(min=1e-5), moved.norm(dim=-1, keepdim=True).clamp(min=1e-5)
            x = self.inside((after / size * torch.atanh(size.clamp(max=0.95))).tanh() * moved / after)
            x = self.inside(self.add(x, shift))
        return -2 * torch.atanh(self.add(-x[..., None, :], self.places).norm(dim=-1).clamp(1e-5, 0.95))


def over_words(mix):
    return lambda: Words(mix)


ErasedWords, LatentWords, BlockWords = over_words(ErasedMemory), over_words(LatentKeys), over_words(BlockChoices)
MixedWords, BentWords, FadingWords = over_words(MixedScores), over_words(BentScores), over_words(FadingScores)
ParameterWords, LeastWords = over_words(ParameterTokens), over_words(LeastGates)
