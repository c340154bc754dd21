"""Networks of kinds that came up of late, of words, series, sounds, tables and graphs: memories that are corrected and fade, layers that
learn while they read, series at several scales, speech at several rates, codes by rounding, texts matched word by word."""
import torch
import torch.nn.functional as F
from torch import nn


class RootNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return (x.float() * torch.rsqrt(x.float().square().mean(-1, keepdim=True) + 1e-6)).to(x.dtype) * self.scale


def heads_of(x, heads):
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def attend(layer, x, heads, bias=None):
    q, k, v = (heads_of(part, heads) for part in layer(x).chunk(3, -1))
    return F.scaled_dot_product_attention(q, k, v, attn_mask=bias).transpose(1, 2).flatten(2)


class FadingCorrections(nn.Module):
    """A memory that fades and is corrected by what it gets wrong, in chunks of 32, behind short windows (Gated DeltaNet)."""

    class Layer(nn.Module):
        def __init__(self, width, heads, chunk=32):
            super().__init__()
            self.parts, self.rates = nn.Linear(width, 4 * width, bias=False), nn.Linear(width, 2 * heads)
            self.short = nn.Conv1d(3 * width, 3 * width, 4, padding=3, groups=3 * width)
            self.norm, self.out, self.heads, self.chunk = RootNorm(width // heads), nn.Linear(width, width), heads, chunk

        def forward(self, x):
            length, c = x.shape[1], self.chunk
            qkv, gate = self.parts(x).split([3 * x.shape[2], x.shape[2]], -1)
            qkv = F.silu(self.short(qkv.transpose(1, 2))[..., :length]).transpose(1, 2)
            q, k, v = (heads_of(part, self.heads).unflatten(2, (-1, c)) for part in qkv.chunk(3, -1))
            q, k = F.normalize(q, dim=-1), F.normalize(k, dim=-1)
            rate, fade = self.rates(x).transpose(1, 2).unflatten(2, (-1, c)).chunk(2, 1)
            rate, fade = rate.sigmoid()[..., None], -F.softplus(fade).cumsum(-1)
            lower = torch.ones(c, c, dtype=torch.bool, device=x.device).tril()
            decay = torch.where(lower, (fade[..., :, None] - fade[..., None, :]), -30.0).exp()
            wrong = (k * rate) @ k.transpose(-1, -2) * decay * lower.tril(-1)
            inverse, power = torch.eye(c, device=x.device, dtype=x.dtype) - wrong, wrong
            for _ in range(4):
                power = power @ power
                inverse = inverse + inverse @ power
            new, seen = inverse @ (v * rate), inverse @ (k * rate * fade[..., None].exp())
            state, out = k.new_zeros(*k.shape[:2], k.shape[-1], k.shape[-1]), []
            for i in range(k.shape[2]):
                value = new[:, :, i] - seen[:, :, i] @ state
                kept, last = fade[:, :, i, :, None], fade[:, :, i, -1:, None]
                out.append(q[:, :, i] * kept.exp() @ state + (q[:, :, i] @ k[:, :, i].transpose(-1, -2) * decay[:, :, i]) @ value)
                state = state * last.exp() + (k[:, :, i] * (last - kept).exp()).transpose(-1, -2) @ value
            out = self.norm(torch.stack(out, 2).flatten(2, 3)).transpose(1, 2).flatten(2)
            return self.out(out * F.silu(gate))

    def __init__(self, width=256, heads=4, depth=2, words=1000):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.mixes = nn.ModuleList(FadingCorrections.Layer(width, heads) for _ in range(depth))
        self.after = nn.ModuleList(nn.Sequential(RootNorm(width), nn.Linear(width, 3 * width), nn.SiLU(), nn.Linear(3 * width, width)) for _ in range(depth))
        self.norms = nn.ModuleList(RootNorm(width) for _ in range(depth))

    def forward(self, x):
        x = self.words(x)
        for norm, mix, after in zip(self.norms, self.mixes, self.after):
            x = x + mix(norm(x))
            x = x + after(x)
        return x


class LearnedWhileRead(nn.Module):
    """A matrix for each head learns to tell values from keys while words are read, by a step for each chunk of 16 (TTT)."""

    def __init__(self, width=256, heads=4, chunk=16, words=1000):
        super().__init__()
        self.words, self.parts, self.rate = nn.Embedding(words, width), nn.Linear(width, 3 * width, bias=False), nn.Linear(width, heads)
        self.first, self.scale = nn.Parameter(torch.randn(heads, width // heads, width // heads) * 0.02), nn.Parameter(torch.ones(heads, 1, width // heads))
        self.norm, self.out, self.heads, self.chunk = nn.LayerNorm(width), nn.Linear(width, width), heads, chunk

    def forward(self, x):
        x = self.words(x)
        q, k, v = (heads_of(part, self.heads).unflatten(2, (-1, self.chunk)) for part in self.parts(self.norm(x)).chunk(3, -1))
        rate = (self.rate(x).sigmoid() / self.chunk).transpose(1, 2).unflatten(2, (-1, self.chunk))[..., None]
        lower, matrix, out = torch.ones(self.chunk, self.chunk, device=x.device, dtype=x.dtype).tril(), self.first, []
        for i in range(q.shape[2]):
            key, value, query = k[:, :, i], v[:, :, i], q[:, :, i]
            told = key @ matrix
            wrong = F.layer_norm(told, told.shape[-1:]) * self.scale + key - value
            step = rate[:, :, i] * wrong
            out.append(query @ matrix - (query @ key.transpose(-1, -2) * lower) @ step)
            matrix = matrix - key.transpose(-1, -2) @ step
        out = torch.cat(out, 2)
        out = F.layer_norm(out, out.shape[-1:]) * self.scale
        return x + self.out(out.transpose(1, 2).flatten(2))


class LateMatches(nn.Module):
    """How well texts answer questions: for each word of a question the best of a text's words (ColBERT)."""

    def __init__(self, width=256, depth=2, words=1000, asked=32):
        super().__init__()
        self.words, self.asked = nn.Embedding(words, width), asked
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(width, 4, 4 * width, 0.0, F.gelu, batch_first=True) for _ in range(depth))
        self.short = nn.Linear(width, 128, bias=False)

    def forward(self, x):
        x = self.words(x)
        for layer in self.layers:
            x = layer(x)
        question, text = F.normalize(self.short(x), dim=-1).split([self.asked, x.shape[1] - self.asked], 1)
        scores = torch.einsum("qid,tjd->qtij", question, text)
        return scores.amax(-1).sum(-1)


class ScalesOfSeries(nn.Module):
    """Series at four rates, each parted into trend and season: seasons tell upwards, trends downwards (TimeMixer)."""

    def __init__(self, length=192, width=16, rates=4, future=48):
        super().__init__()
        sizes = [length >> i for i in range(rates)]
        self.given, self.rates = nn.Linear(1, width), rates
        self.coarser = nn.ModuleList(nn.Sequential(nn.Linear(a, b), nn.GELU(), nn.Linear(b, b)) for a, b in zip(sizes, sizes[1:]))
        self.finer = nn.ModuleList(nn.Sequential(nn.Linear(b, a), nn.GELU(), nn.Linear(a, a)) for a, b in zip(sizes, sizes[1:]))
        self.after = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.heads, self.last = nn.ModuleList(nn.Linear(a, future) for a in sizes), nn.Linear(width, 1)

    def forward(self, x):
        middle, spread = x.mean(1, keepdim=True), (x.var(1, keepdim=True, unbiased=False) + 1e-5).sqrt()
        x = ((x - middle) / spread).transpose(1, 2)
        scales = [x]
        for _ in range(self.rates - 1):
            scales.append(F.avg_pool1d(scales[-1], 2))
        parts = [self.given(scale[..., None]) for scale in scales]
        for _ in range(2):
            trends, seasons = [], []
            for part in parts:
                flat = part.transpose(2, 3).flatten(0, 1)
                trend = F.avg_pool1d(F.pad(flat, (12, 12), mode="replicate"), 25, 1).view(*part.shape[:2], -1, part.shape[2])
                trends.append(trend)
                seasons.append(part.transpose(2, 3) - trend)
            for i, layer in enumerate(self.coarser):
                seasons[i + 1] = seasons[i + 1] + layer(seasons[i])
            for i in reversed(range(len(self.finer))):
                trends[i] = trends[i] + self.finer[i](trends[i + 1])
            parts = [part + self.after((season + trend).transpose(2, 3)) for part, season, trend in zip(parts, seasons, trends)]
        told = sum(self.last(head(part.transpose(2, 3)).transpose(2, 3))[..., 0] for head, part in zip(self.heads, parts))
        return told.transpose(1, 2) * spread + middle


class RatesOfSpeech(nn.Module):
    """Frames of speech at full, half and quarter rate, blocks that their inputs may pass, norms by a bias, swooshes (Zipformer)."""

    class Block(nn.Module):
        def __init__(self, width, heads=4):
            super().__init__()
            self.parts, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.wide, self.narrow = nn.Linear(width, 3 * width), nn.Linear(3 * width, width)
            self.gate, self.window, self.last = nn.Linear(width, 2 * width), nn.Conv1d(width, width, 15, padding=7, groups=width), nn.Linear(width, width)
            self.bias, self.size, self.share, self.heads = nn.Parameter(torch.randn(width) * 0.1), nn.Parameter(torch.zeros(())), nn.Parameter(torch.full((width,), 0.5)), heads

        def forward(self, x):
            given = x
            x = x + self.narrow(self.swoosh(self.wide(x), 4.0, 0.08))
            x = x + self.out(attend(self.parts, x, self.heads))
            a, b = self.gate(x).chunk(2, -1)
            x = x + self.last(self.swoosh(self.window((a * b.sigmoid()).transpose(1, 2)).transpose(1, 2), 1.0, 0.313261687))
            x = x / ((x - self.bias).square().mean(-1, keepdim=True) + 1e-5).sqrt() * self.size.exp()
            return given + (x - given) * self.share

        @staticmethod
        def swoosh(x, shift, offset):
            return F.softplus(x - shift) - 0.08 * x - offset

    def __init__(self, bands=80, width=192, classes=500):
        super().__init__()
        self.given, self.head = nn.Conv1d(bands, width, 3, 2, 1), nn.Linear(width, classes)
        self.rates, self.blocks = (1, 2, 4, 2), nn.ModuleList(RatesOfSpeech.Block(width) for _ in range(4))
        self.weights = nn.ParameterList(nn.Parameter(torch.randn(rate)) for rate in self.rates)

    def forward(self, x):
        x = self.given(x).transpose(1, 2)
        for rate, block, weights in zip(self.rates, self.blocks, self.weights):
            if rate == 1:
                x = block(x)
                continue
            fewer = (x.unflatten(1, (-1, rate)) * weights.softmax(0)[:, None]).sum(2)
            x = x + block(fewer).repeat_interleave(rate, 1)
        return self.head(x)


class RoundedCodes(nn.Module):
    """A sound as codes of eight digits, each rounded to one of five numbers, between layers that see the past alone (FSQ)."""

    def __init__(self, width=64, digits=8):
        super().__init__()
        self.given = nn.Conv1d(1, width, 7)
        self.down = nn.ModuleList(nn.Conv1d(width << i, width << (i + 1), 2 * s, s) for i, s in enumerate((4, 4, 5)))
        self.parts, self.mixed, self.norm = nn.Linear(8 * width, 24 * width), nn.Linear(8 * width, 8 * width), nn.LayerNorm(8 * width)
        self.coded, self.back = nn.Linear(8 * width, digits), nn.Linear(digits, 8 * width)
        self.up = nn.ModuleList(nn.ConvTranspose1d(width << (i + 1), width << i, 2 * s, s) for i, s in reversed(list(enumerate((4, 4, 5)))))
        self.last = nn.Conv1d(width, 1, 7)

    def forward(self, x):
        x = self.given(F.pad(x, (6, 0)))
        for layer in self.down:
            stride = layer.stride[0]
            x = layer(F.pad(F.elu(x), (stride, 0)))
        x = x.transpose(1, 2)
        q, k, v = (heads_of(part, 8) for part in self.parts(self.norm(x)).chunk(3, -1))
        x = x + self.mixed(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        code = (self.coded(x).tanh() * 2).round() / 2
        x = self.back(code).transpose(1, 2)
        for layer in self.up:
            x = layer(F.elu(x))
            x = x[..., :x.shape[-1] - layer.stride[0]]
        return self.last(F.pad(F.elu(x), (6, 0))).tanh()


class LowRankCrosses(nn.Module):
    """Fields of a table crossed with themselves by four matrices of low rank that a gate mixes, beside a perceptron (DCN v2)."""

    def __init__(self, rows=1000, fields=40, each=16, rank=64, experts=4, depth=3):
        super().__init__()
        width = fields * each
        self.rows = nn.Embedding(rows, each)
        self.down = nn.ParameterList(nn.Parameter(torch.randn(experts, width, rank) * width ** -0.5) for _ in range(depth))
        self.inner = nn.ParameterList(nn.Parameter(torch.randn(experts, rank, rank) * rank ** -0.5) for _ in range(depth))
        self.up = nn.ParameterList(nn.Parameter(torch.randn(experts, rank, width) * rank ** -0.5) for _ in range(depth))
        self.bias, self.gate = nn.ParameterList(nn.Parameter(torch.zeros(width)) for _ in range(depth)), nn.ModuleList(nn.Linear(width, experts) for _ in range(depth))
        self.deep, self.head = nn.Sequential(nn.Linear(width, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU()), nn.Linear(width + 256, 1)

    def forward(self, x):
        first = x = self.rows(x).flatten(1)
        for down, inner, up, bias, gate in zip(self.down, self.inner, self.up, self.bias, self.gate):
            small = torch.tanh(torch.tanh(x @ down) @ inner)
            crossed = first * (small @ up + bias)
            x = x + (crossed * gate(x).softmax(-1).t()[..., None]).sum(0)
        return self.head(torch.cat([x, self.deep(first)], 1))


class NearestRows(nn.Module):
    """A row of a table by the answers to 4,096 rows that are kept, each as much as it is near (ModernNCA), in blocks with bends."""

    def __init__(self, columns=32, width=128, kept=4096, classes=10, waves=16):
        super().__init__()
        self.waves, self.given = nn.Parameter(torch.randn(columns, waves)), nn.Linear(2 * columns * waves, width)
        self.block = nn.Sequential(nn.BatchNorm1d(width), nn.Linear(width, 2 * width), nn.ReLU(), nn.Linear(2 * width, width))
        self.kept, self.answers = nn.Parameter(torch.randn(kept, width)), nn.Parameter(torch.rand(kept, classes))

    def forward(self, x):
        turned = 6.2832 * x[..., None] * self.waves
        x = self.given(torch.cat([turned.cos(), turned.sin()], -1).flatten(-2)).flatten(0, 1)
        x = x + self.block(x)
        far = (x.square().sum(-1, keepdim=True) - 2 * x @ self.kept.t() + self.kept.square().sum(-1)).clamp(min=1e-6).sqrt()
        return ((-far).softmax(-1) @ self.answers).clamp(min=1e-6).log()


class SensorWaves(nn.Module):
    """Sensors whose neighbours are learned: gated dilated windows of time, and products along up to two such edges (Graph WaveNet)."""

    def __init__(self, sensors=207, width=32, layers=4):
        super().__init__()
        self.left, self.right = nn.Parameter(torch.randn(sensors, 10)), nn.Parameter(torch.randn(10, sensors))
        self.given, self.steps = nn.Conv2d(2, width, 1), [1 << (i % 2) for i in range(2 * layers)]
        self.both = nn.ModuleList(nn.Conv2d(width, 2 * width, (1, 2), dilation=(1, step)) for step in self.steps)
        self.mixed, self.skips = nn.ModuleList(nn.Conv2d(3 * width, width, 1) for _ in self.steps), nn.ModuleList(nn.Conv2d(width, 4 * width, 1) for _ in self.steps)
        self.norms, self.head = nn.ModuleList(nn.BatchNorm2d(width) for _ in self.steps), nn.Sequential(nn.ReLU(), nn.Conv2d(4 * width, 256, 1), nn.ReLU(), nn.Conv2d(256, 12, 1))

    def forward(self, x):
        edges = (self.left @ self.right).relu().softmax(1)
        x, all_skips = self.given(x), None
        for both, mixed, skip, norm in zip(self.both, self.mixed, self.skips, self.norms):
            before = x
            a, b = both(x).chunk(2, 1)
            x = a.tanh() * b.sigmoid()
            said = skip(x)
            all_skips = said if all_skips is None else said + all_skips[..., -said.shape[-1]:]
            once = torch.einsum("bcnt,nm->bcmt", x, edges)
            twice = torch.einsum("bcnt,nm->bcmt", once, edges)
            x = norm(mixed(torch.cat([x, once, twice], 1)) + before[..., -x.shape[-1]:])
        return self.head(all_skips)


class ManySums(nn.Module):
    """Messages of 12 neighbours by their mean, greatest, least and spread, each as is and times what many neighbours make of it (PNA)."""

    def __init__(self, nodes=1024, given=16, width=64, layers=3, near=12):
        super().__init__()
        self.register_buffer("ends", torch.randint(0, nodes, (nodes, near)))
        self.register_buffer("many", torch.rand(nodes, 1) + 0.5)
        self.given = nn.Linear(given, width)
        self.told = nn.ModuleList(nn.Linear(2 * width, width) for _ in range(layers))
        self.after = nn.ModuleList(nn.Linear(13 * width, width) for _ in range(layers))

    def forward(self, x):
        x = self.given(x)
        for told, after in zip(self.told, self.after):
            theirs = x[:, self.ends]
            messages = told(torch.cat([theirs, x[:, :, None].expand_as(theirs)], -1)).relu()
            mean = messages.mean(2)
            spread = (messages.square().mean(2) - mean.square()).relu().add(1e-5).sqrt()
            sums = torch.cat([mean, messages.amax(2), messages.amin(2), spread], -1)
            x = x + after(torch.cat([x, sums, sums * self.many, sums / self.many], -1)).relu()
        return x.mean(1)


class AnglesOfTriplets(nn.Module):
    """Messages along edges of molecules, changed by those that end where they begin and by the angles between (DimeNet)."""

    def __init__(self, atoms=24, near=6, width=64, layers=2, waves=8):
        super().__init__()
        begins, ends = torch.randint(0, atoms, (atoms, near)), torch.arange(atoms)[:, None].expand(-1, near)
        self.register_buffer("begins", begins.flatten())
        self.register_buffer("ends", ends.flatten())
        self.register_buffer("before", (begins.flatten()[:, None] * near + torch.arange(near)))
        self.register_buffer("waves", torch.arange(1, waves + 1).float())
        self.kinds, self.given = nn.Linear(5, width), nn.Linear(2 * width + waves, width)
        self.far, self.bent = nn.ModuleList(nn.Linear(waves, width) for _ in range(layers)), nn.ModuleList(nn.Linear(waves, 8) for _ in range(layers))
        self.down, self.mix = nn.ModuleList(nn.Linear(width, width) for _ in range(layers)), nn.ParameterList(nn.Parameter(torch.randn(8, width, width) / width) for _ in range(layers))
        self.after, self.near, self.last = nn.ModuleList(nn.Linear(width, width) for _ in range(layers)), near, nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 1))

    def forward(self, x):
        places, kinds = x[..., :3], self.kinds(x[..., 3:])
        way = places[:, self.begins] - places[:, self.ends]
        far = way.square().sum(-1, keepdim=True).add(1e-3).sqrt()
        waves = (self.waves.to(x.dtype) * far).sin() / far
        edges = F.silu(self.given(torch.cat([kinds[:, self.begins], kinds[:, self.ends], waves], -1)))
        straight = way / far
        angle = (straight[:, :, None] * -straight[:, self.before]).sum(-1, keepdim=True)
        bends = (self.waves.to(x.dtype) * angle).cos()
        for far_layer, bent, down, mix, after in zip(self.far, self.bent, self.down, self.mix, self.after):
            others = (F.silu(down(edges)) * far_layer(waves))[:, self.before]
            changed = torch.einsum("bekw,bekc,cwv->bev", others, bent(bends), mix)
            edges = edges + F.silu(after(edges + changed))
        return self.last(edges.unflatten(1, (-1, self.near)).sum(2)).sum(1)
