"""Networks of sounds, texts, tables and atoms whose mechanisms no other file here has: activations without aliases, sequences by
spectra, weights of three values, tokens that are chosen, rows that see rows, products of directions."""
import math

import torch
import torch.nn.functional as F
from torch import nn

from pattern_networks import attend
from stream_networks import RootNorm, Snake


class AliasFree(nn.Module):
    """A sound made at growing rates, whose activations work at twice the rate between two filters (BigVGAN)."""

    class Twice(nn.Module):
        def __init__(self, channels):
            super().__init__()
            t = torch.arange(12) - 5.5
            taps = torch.sinc(t / 2) * torch.special.i0(4.66 * (1 - (t / 6) ** 2).clamp(min=0).sqrt())
            self.register_buffer("taps", (taps / taps.sum()).view(1, 1, 12).repeat(channels, 1, 1))
            self.snake, self.channels = Snake(channels), channels

        def forward(self, x):
            x = 2 * F.conv_transpose1d(F.pad(x, (5, 5), "replicate"), self.taps, stride=2, groups=self.channels)[..., 15:-15]
            return F.conv1d(F.pad(self.snake(x), (5, 6), "replicate"), self.taps, stride=2, groups=self.channels)

    def __init__(self, width=128, rates=(4, 4, 2)):
        super().__init__()
        twice = AliasFree.Twice
        self.first, self.larger, self.blocks = nn.Conv1d(80, width, 7, 1, 3), nn.ModuleList(), nn.ModuleList()
        for rate in rates:
            self.larger.append(nn.ConvTranspose1d(width, width // 2, 2 * rate, rate, rate // 2))
            width //= 2
            self.blocks.append(nn.ModuleList(nn.Sequential(twice(width), nn.Conv1d(width, width, 3, 1, d, d), twice(width),
                                                           nn.Conv1d(width, width, 3, 1, 1)) for d in (1, 3)))
        self.last = nn.Sequential(twice(width), nn.Conv1d(width, 1, 7, 1, 3), nn.Tanh())

    def forward(self, x):
        x = self.first(x)
        for larger, blocks in zip(self.larger, self.blocks):
            x = larger(x)
            for block in blocks:
                x = x + block(x)
        return self.last(x)


class TwoBranches(nn.Module):
    """Attention beside a perceptron gated by wide windows of time, and a window that joins both (E-Branchformer)."""

    class Layer(nn.Module):
        def __init__(self, width, heads=4):
            super().__init__()
            self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(5))
            def feed():
                return nn.Sequential(nn.Linear(width, 4 * width), nn.SiLU(), nn.Linear(4 * width, width))
            self.feeds = nn.ModuleList([feed(), feed()])
            self.qkv, self.out, self.heads = nn.Linear(width, 3 * width), nn.Linear(width, width), heads
            self.wide, self.gate_norm = nn.Linear(width, 6 * width), nn.LayerNorm(3 * width)
            self.windows, self.narrow = nn.Conv1d(3 * width, 3 * width, 31, 1, 15, groups=3 * width), nn.Linear(3 * width, width)
            self.joined, self.join = nn.Conv1d(2 * width, 2 * width, 31, 1, 15, groups=2 * width), nn.Linear(2 * width, width)

        def forward(self, x):
            x = x + 0.5 * self.feeds[0](self.norms[0](x))
            seen = self.out(attend(*self.qkv(self.norms[1](x)).chunk(3, -1), self.heads))
            kept, gate = F.gelu(self.wide(self.norms[2](x))).chunk(2, -1)
            gated = self.narrow(kept * self.windows(self.gate_norm(gate).transpose(1, 2)).transpose(1, 2))
            both = torch.cat([seen, gated], -1)
            x = x + self.join(both + self.joined(both.transpose(1, 2)).transpose(1, 2))
            return self.norms[4](x + 0.5 * self.feeds[1](self.norms[3](x)))

    def __init__(self, width=256, layers=3):
        super().__init__()
        self.windows = nn.Sequential(nn.Conv2d(1, 64, 3, 2), nn.ReLU(), nn.Conv2d(64, 64, 3, 2), nn.ReLU())
        self.first = nn.Linear(64 * 19, width)
        self.layers, self.head = nn.Sequential(*[TwoBranches.Layer(width) for _ in range(layers)]), nn.Linear(width, 500)

    def forward(self, x):
        x = self.windows(x).transpose(1, 2).flatten(2)
        return self.head(self.layers(self.first(x)))


class ThreeValues(nn.Module):
    """A decoder whose weights are -1, 0 or 1 times a scale, and whose rows are rounded to 8 bits (BitNet b1.58)."""

    class Product(nn.Linear):
        def forward(self, x):
            x = F.rms_norm(x, (x.shape[-1],))
            scale = 127 / x.abs().amax(-1, keepdim=True).clamp(min=1e-5)
            rows = (x * scale).round().clamp(-128, 127) / scale
            size = self.weight.abs().mean().clamp(min=1e-5)
            return F.linear(rows, (self.weight / size).round().clamp(-1, 1) * size)

    def __init__(self, width=512, layers=4, heads=8):
        super().__init__()
        make = ThreeValues.Product
        self.words = nn.Embedding(1000, width)
        self.layers = nn.ModuleList(nn.ModuleDict({
            "norms": nn.ModuleList([RootNorm(width), RootNorm(width)]), "qkv": make(width, 3 * width, bias=False),
            "out": make(width, width, bias=False), "wide": make(width, 4 * width, bias=False),
            "narrow": make(2 * width, width, bias=False)}) for _ in range(layers))
        self.norm, self.head, self.heads = RootNorm(width), nn.Linear(width, 1000, bias=False), heads

    def forward(self, x):
        x = self.words(x)
        for layer in self.layers:
            q, k, v = (each.unflatten(2, (self.heads, -1)).transpose(1, 2) for each in layer["qkv"](layer["norms"][0](x)).chunk(3, -1))
            x = x + layer["out"](F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
            gate, value = layer["wide"](layer["norms"][1](x)).chunk(2, -1)
            x = x + layer["narrow"](F.relu(gate) ** 2 * value)
        return self.head(self.norm(x))


class FrequencyRows(nn.Module):
    """Windows over time and frequency, and products along all frequencies of each channel, in a U (TFC-TDF, MDX-Net)."""

    class Stage(nn.Module):
        def __init__(self, channels, bins):
            super().__init__()
            self.windows = nn.Sequential(*[nn.Sequential(nn.Conv2d(channels, channels, 3, 1, 1, bias=False),
                                                         nn.BatchNorm2d(channels), nn.ReLU()) for _ in range(3)])
            self.rows = nn.Sequential(nn.Linear(bins, bins // 8, bias=False), nn.BatchNorm2d(channels), nn.ReLU(),
                                      nn.Linear(bins // 8, bins, bias=False), nn.BatchNorm2d(channels), nn.ReLU())

        def forward(self, x):
            x = self.windows(x)
            return x + self.rows(x)

    def __init__(self, width=32, bins=256, depth=2):
        super().__init__()
        stage = FrequencyRows.Stage
        self.first, self.last = nn.Conv2d(4, width, 1), nn.Conv2d(width, 4, 1)
        self.down = nn.ModuleList(stage(width * (i + 1), bins >> i) for i in range(depth))
        self.smaller = nn.ModuleList(nn.Conv2d(width * (i + 1), width * (i + 2), 2, 2) for i in range(depth))
        self.middle = stage(width * (depth + 1), bins >> depth)
        self.larger = nn.ModuleList(nn.ConvTranspose2d(width * (i + 2), width * (i + 1), 2, 2) for i in reversed(range(depth)))
        self.up = nn.ModuleList(stage(width * (i + 1), bins >> i) for i in reversed(range(depth)))

    def forward(self, x):
        x, seen = self.first(x), []
        for stage, smaller in zip(self.down, self.smaller):
            seen.append(stage(x))
            x = smaller(seen[-1])
        x = self.middle(x)
        for larger, stage, other in zip(self.larger, self.up, reversed(seen)):
            x = stage(larger(x) * other)
        return self.last(x)


class DiagonalStates(nn.Module):
    """Sequences through states of 32 complex numbers a channel, all steps at once by spectra (S4D)."""

    def __init__(self, width=128, layers=4, states=32, length=1024):
        super().__init__()
        self.first, self.head, self.length = nn.Linear(1, width), nn.Linear(width, 10), length
        self.steps = nn.ParameterList(torch.rand(width, 1) * 4 - 6 for _ in range(layers))
        self.ways = nn.ParameterList(torch.randn(2, width, states) for _ in range(layers))
        self.through = nn.ParameterList(torch.randn(width) for _ in range(layers))
        self.mixes = nn.ModuleList(nn.Sequential(nn.Linear(width, 2 * width), nn.GLU()) for _ in range(layers))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(layers))
        self.register_buffer("turns", math.pi * torch.arange(states) + 0.1)
        self.register_buffer("times", torch.arange(length).float())

    def kernel(self, steps, ways):
        step = steps.float().exp()[..., None]
        decay, angle = (-0.5 * step * self.times).exp(), self.turns[:, None] * step * self.times
        made = ways.float()
        return (decay * (made[0][..., None] * angle.cos() - made[1][..., None] * angle.sin())).sum(1) * step[..., 0]

    def forward(self, x):
        x = self.first(x)
        for steps, ways, through, mix, norm in zip(self.steps, self.ways, self.through, self.mixes, self.norms):
            given = norm(x).transpose(1, 2)
            spectra = torch.fft.rfft(given.float(), n=2 * self.length) * torch.fft.rfft(self.kernel(steps, ways), n=2 * self.length)
            h = torch.fft.irfft(spectra, n=2 * self.length)[..., :self.length].to(x.dtype) + through[:, None] * given
            x = x + mix(F.gelu(h).transpose(1, 2))
        return self.head(x.mean(1))


class SoftExperts(nn.Module):
    """Every expert reads weighted means of all tokens, and every token a weighted mean of what the experts say (Soft MoE)."""

    def __init__(self, width=256, layers=4, experts=16, slots=8):
        super().__init__()
        self.places = nn.ParameterList(torch.randn(width, experts * slots) for _ in range(layers))
        self.wide = nn.ParameterList(torch.randn(experts, width, 4 * width) * width ** -0.5 for _ in range(layers))
        self.narrow = nn.ParameterList(torch.randn(experts, 4 * width, width) * (4 * width) ** -0.5 for _ in range(layers))
        self.qkv = nn.ModuleList(nn.Linear(width, 3 * width) for _ in range(layers))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2 * layers))
        self.words, self.head, self.experts = nn.Embedding(1000, width), nn.Linear(width, 100), experts

    def forward(self, x):
        x = self.words(x)
        for i, (places, wide, narrow, qkv) in enumerate(zip(self.places, self.wide, self.narrow, self.qkv)):
            x = x + attend(*qkv(self.norms[2 * i](x)).chunk(3, -1), 4)
            h = self.norms[2 * i + 1](x)
            scores = h @ places
            slots = (scores.softmax(1).transpose(1, 2) @ h).unflatten(1, (self.experts, -1))
            made = torch.einsum("nesf,efd->nesd", F.gelu(torch.einsum("nesd,edf->nesf", slots, wide)), narrow)
            x = x + scores.softmax(2) @ made.flatten(1, 2)
        return self.head(x.mean(1))


class ChosenTokens(nn.Module):
    """Every second layer works on the eighth of the tokens that score highest; the others pass (mixture of depths)."""

    def __init__(self, width=384, layers=6, heads=6, kept=64):
        super().__init__()
        self.words, self.head, self.kept, self.heads = nn.Embedding(1000, width), nn.Linear(width, 1000), kept, heads
        self.scores = nn.ModuleList(nn.Linear(width, 1) for _ in range(layers))
        self.norms = nn.ModuleList(RootNorm(width) for _ in range(2 * layers))
        self.qkv, self.out = (nn.ModuleList(nn.Linear(width, each * width) for _ in range(layers)) for each in (3, 1))
        self.mlps = nn.ModuleList(nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
                                  for _ in range(layers))

    def layer(self, i, x):
        h = x + self.out[i](attend(*self.qkv[i](self.norms[2 * i](x)).chunk(3, -1), self.heads))
        return h + self.mlps[i](self.norms[2 * i + 1](h))

    def forward(self, x):
        x = self.words(x)
        for i in range(0, len(self.mlps), 2):
            x = self.layer(i, x)
            scores = self.scores[i](x)[..., 0]
            best, where = scores.topk(self.kept, dim=1)
            where = where.sort(dim=1).values
            rows = where[..., None].expand(-1, -1, x.shape[-1])
            chosen = x.gather(1, rows)
            made = self.layer(i + 1, chosen) - chosen
            x = x.scatter_add(1, rows, made * scores.gather(1, where).sigmoid()[..., None])
        return self.head(x)


class JointTokens(nn.Module):
    """Texts and patches with weights of their own, but one attention over both, scaled and shifted by the time (MMDiT)."""

    def __init__(self, width=384, layers=4, heads=6, patches=256, words=77):
        super().__init__()
        def twice(given, made):
            return nn.ModuleList(nn.ModuleList(nn.Linear(given, made) for _ in range(2)) for _ in range(layers))
        self.patches, self.text = nn.Conv2d(4, width, 2, 2), nn.Parameter(torch.randn(1, words, width))
        self.places, self.moment = nn.Parameter(torch.randn(1, patches, width) * 0.02), nn.Linear(4, width)
        self.changes, self.qkv, self.out = twice(width, 6 * width), twice(width, 3 * width), twice(width, width)
        self.wide, self.narrow = twice(width, 4 * width), twice(4 * width, width)
        self.scales = nn.Parameter(torch.ones(layers, 2, 2, width // heads))
        self.last, self.words, self.heads = nn.ConvTranspose2d(width, 4, 2, 2), words, heads

    def normed(self, x, shift, scale):
        return F.layer_norm(x, x.shape[-1:]) * (1 + scale[:, None]) + shift[:, None]

    def forward(self, x):
        moment = F.silu(self.moment(x.mean((2, 3))))
        both = [self.text.expand(x.shape[0], -1, -1), self.patches(x).flatten(2).transpose(1, 2) + self.places]
        for i in range(len(self.qkv)):
            changes = [self.changes[i][s](moment).chunk(6, 1) for s in range(2)]
            parts = []
            for s in range(2):
                q, k, v = self.qkv[i][s](self.normed(both[s], *changes[s][:2])).unflatten(2, (3, self.heads, -1)).unbind(2)
                parts.append((F.rms_norm(q, q.shape[-1:], self.scales[i, s, 0]), F.rms_norm(k, k.shape[-1:], self.scales[i, s, 1]), v))
            q, k, v = (torch.cat(each, 1).transpose(1, 2) for each in zip(*parts))
            seen = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2).split((self.words, both[1].shape[1]), 1)
            for s in range(2):
                h = both[s] + changes[s][2][:, None] * self.out[i][s](seen[s])
                wide = F.gelu(self.wide[i][s](self.normed(h, *changes[s][3:5])), approximate="tanh")
                both[s] = h + changes[s][5][:, None] * self.narrow[i][s](wide)
        return self.last(both[1].transpose(1, 2).unflatten(2, (16, 16)))


class EvenAndOdd(nn.Module):
    """Series split into even and odd steps that scale and shift each other, again and again (SCINet)."""

    class Split(nn.Module):
        def __init__(self, channels, levels):
            super().__init__()
            def windows():
                return nn.Sequential(nn.ReplicationPad1d(3), nn.Conv1d(channels, 2 * channels, 5), nn.LeakyReLU(0.01),
                                     nn.Conv1d(2 * channels, channels, 3), nn.Tanh())
            self.ways = nn.ModuleList(windows() for _ in range(4))
            self.below = nn.ModuleList(EvenAndOdd.Split(channels, levels - 1) for _ in range(2)) if levels > 1 else None

        def forward(self, x):
            even, odd = x[..., ::2], x[..., 1::2]
            a, b = odd * self.ways[0](even).exp(), even * self.ways[1](odd).exp()
            even, odd = b + self.ways[2](a), a - self.ways[3](b)
            if self.below is not None:
                even, odd = self.below[0](even), self.below[1](odd)
            return torch.stack([even, odd], -1).flatten(-2)

    def __init__(self, channels=32, levels=3, length=384, ahead=96):
        super().__init__()
        self.tree, self.head = EvenAndOdd.Split(channels, levels), nn.Linear(length, ahead)

    def forward(self, x):
        return self.head(x + self.tree(x))


class Durations(nn.Module):
    """Letters with attention and windows, repeated as long as each one lasts, and frames made of them (FastSpeech 2)."""

    class Layer(nn.Module):
        def __init__(self, width=256, heads=2):
            super().__init__()
            self.qkv, self.out, self.heads = nn.Linear(width, 3 * width), nn.Linear(width, width), heads
            self.wide, self.narrow = nn.Conv1d(width, 1024, 9, 1, 4), nn.Conv1d(1024, width, 1)
            self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])

        def forward(self, x):
            x = self.norms[0](x + self.out(attend(*self.qkv(x).chunk(3, -1), self.heads)))
            return self.norms[1](x + self.narrow(F.relu(self.wide(x.transpose(1, 2)))).transpose(1, 2))

    class Predictor(nn.Module):
        def __init__(self, width=256):
            super().__init__()
            self.windows = nn.ModuleList(nn.Conv1d(width, width, 3, 1, 1) for _ in range(2))
            self.norms, self.last = nn.ModuleList(nn.LayerNorm(width) for _ in range(2)), nn.Linear(width, 1)

        def forward(self, x):
            for windows, norm in zip(self.windows, self.norms):
                x = norm(F.relu(windows(x.transpose(1, 2))).transpose(1, 2))
            return self.last(x)[..., 0]

    def __init__(self, width=256, frames=512):
        super().__init__()
        make = Durations.Layer
        self.letters, self.frames = nn.Embedding(100, width), frames
        self.encoder, self.decoder = nn.Sequential(make(), make()), nn.Sequential(make(), make())
        self.lasting, self.pitch = Durations.Predictor(), Durations.Predictor()
        self.pitches, self.last = nn.Embedding(256, width), nn.Linear(width, 80)

    def forward(self, x):
        x = self.encoder(self.letters(x))
        lasts = (self.lasting(x).float().exp() * 4).round().clamp(1, 12)
        x = x + self.pitches((self.pitch(x).tanh() * 127 + 128).long())
        ends = lasts.cumsum(1)
        at = (torch.arange(self.frames, device=x.device)[None, :, None] >= ends[:, None]).sum(-1).clamp(max=x.shape[1] - 1)
        return self.last(self.decoder(x.gather(1, at[..., None].expand(-1, -1, x.shape[-1]))))


class CrossedFields(nn.Module):
    """Bags of rows of tables summed for each field, products of all pairs of fields mixed again and again (xDeepFM)."""

    def __init__(self, fields=20, bag=8, width=16, rows=5000, layers=(64, 64)):
        super().__init__()
        self.rows = nn.Embedding(rows, width)
        self.register_buffer("starts", torch.arange(fields).repeat_interleave(bag) * 200)
        self.crosses = nn.ModuleList(nn.Conv1d(fields * given, made, 1) for given, made in zip((fields, *layers), layers))
        self.deep = nn.Sequential(nn.Linear(fields * width, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 1))
        self.last, self.fields, self.bag = nn.Linear(sum(layers), 1), fields, bag

    def forward(self, x):
        first = self.rows(x + self.starts).unflatten(1, (self.fields, self.bag)).sum(2)
        h, seen = first, []
        for cross in self.crosses:
            h = F.relu(cross((first[:, :, None] * h[:, None]).flatten(1, 2)))
            seen.append(h.sum(-1))
        return self.last(torch.cat(seen, 1)) + self.deep(first.flatten(1))


class RowsAndColumns(nn.Module):
    """Cells of tables: attention among the columns of a row, then among the rows of a column (TabPFN's second version)."""

    def __init__(self, width=96, layers=4, heads=4, known=192):
        super().__init__()
        self.given, self.head, self.heads, self.known = nn.Linear(1, width), nn.Linear(width, 10), heads, known
        self.qkv, self.out = (nn.ModuleList(nn.Linear(width, each * width) for _ in range(2 * layers)) for each in (3, 1))
        self.mlps = nn.ModuleList(nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
                                  for _ in range(layers))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(3 * layers))

    def forward(self, x):
        x = self.given(x[..., None])
        n, rows, columns, width = x.shape
        for i, mlp in enumerate(self.mlps):
            h = x.reshape(n * rows, columns, width)
            x = self.norms[3 * i](x + self.out[2 * i](attend(*self.qkv[2 * i](h).chunk(3, -1), self.heads)).view_as(x))
            h = x.transpose(1, 2).reshape(n * columns, rows, width)
            q, k, v = self.qkv[2 * i + 1](h).chunk(3, -1)
            h = self.out[2 * i + 1](attend(q, k[:, :self.known], v[:, :self.known], self.heads))
            x = self.norms[3 * i + 1](x + h.view(n, columns, rows, width).transpose(1, 2))
            x = self.norms[3 * i + 2](x + mlp(x))
        return self.head(x[:, self.known:].mean(2))


class MovedAtoms(nn.Module):
    """Atoms that see all others: both ends and their distance through a perceptron, sums, and places that move (EGNN)."""

    def __init__(self, width=64, layers=3):
        super().__init__()
        self.first = nn.Linear(5, width)
        def two(given, made):
            return nn.Sequential(nn.Linear(given, width), nn.SiLU(), nn.Linear(width, made), nn.SiLU())
        self.edges = nn.ModuleList(two(2 * width + 1, width) for _ in range(layers))
        self.moves = nn.ModuleList(nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 1, bias=False))
                                   for _ in range(layers))
        self.shares = nn.ModuleList(nn.Sequential(nn.Linear(width, 1), nn.Sigmoid()) for _ in range(layers))
        self.nodes = nn.ModuleList(two(2 * width, width) for _ in range(layers))
        self.head = nn.Linear(width, 1)

    def forward(self, x):
        places, h = x[..., :3], self.first(x[..., 3:])
        n, atoms = x.shape[:2]
        for edges, moves, shares, nodes in zip(self.edges, self.moves, self.shares, self.nodes):
            apart = places[:, :, None] - places[:, None]
            far = (apart ** 2).sum(-1, keepdim=True)
            both = torch.cat([h[:, :, None].expand(-1, -1, atoms, -1), h[:, None].expand(-1, atoms, -1, -1), far], -1)
            said = edges(both)
            places = places + (apart / (far + 1e-4).sqrt() * moves(said)).mean(2)
            h = h + nodes(torch.cat([h, (said * shares(said)).sum(2)], -1))
        return self.head(h.sum(1))


class Directions(nn.Module):
    """Atoms whose features turn with space: products of neighbours' vectors with directions, weighed by distance (NequIP, PaiNN)."""

    def __init__(self, width=64, layers=3, edges=1024, atoms=128):
        super().__init__()
        generator = torch.Generator().manual_seed(1)
        self.register_buffer("starts", torch.randint(0, atoms, (edges,), generator=generator))
        self.register_buffer("ends", torch.randint(0, atoms, (edges,), generator=generator).sort().values)
        self.register_buffer("waves", torch.arange(1, 17) * math.pi / 5)
        self.first, self.width = nn.Linear(5, width), width
        self.filters = nn.ModuleList(nn.Linear(16, 4 * width) for _ in range(layers))
        self.says = nn.ModuleList(nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 4 * width)) for _ in range(layers))
        self.mixes = nn.ModuleList(nn.Linear(width, 2 * width, bias=False) for _ in range(layers))
        self.gates = nn.ModuleList(nn.Sequential(nn.Linear(2 * width, width), nn.SiLU(), nn.Linear(width, 3 * width))
                                   for _ in range(layers))
        self.head = nn.Linear(width, 1)

    def forward(self, x):
        places, s = x[..., :3], self.first(x[..., 3:])
        v = s.new_zeros(*s.shape[:2], 3, self.width)
        apart = places[:, self.ends] - places[:, self.starts]
        far = (apart ** 2).sum(-1, keepdim=True).add(1e-3).sqrt()
        ahead, waves = (apart / far)[..., None], (far * self.waves).sin() / far
        for filters, says, mix, gates in zip(self.filters, self.says, self.mixes, self.gates):
            said = says(s)[:, self.starts] * filters(waves)
            a, b, c, d = said.split(self.width, -1)
            seen = v[:, self.starts]
            crossed = torch.linalg.cross(seen, ahead.expand_as(seen), dim=2)
            moved = seen * b[:, :, None] + ahead * c[:, :, None] + crossed * d[:, :, None]
            s, v = s.index_add(1, self.ends, a), v.index_add(1, self.ends, moved)
            one, two = mix(v).chunk(2, -1)
            change, scale, product = gates(torch.cat([s, (two ** 2).sum(2).add(1e-3).sqrt()], -1)).split(self.width, -1)
            s, v = s + change + product * (one * two).sum(2), v + scale[:, :, None] * one
        return self.head(s).sum(1)
