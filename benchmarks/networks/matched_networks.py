"""Networks whose mechanisms no other file here has: pairs of all with all, assignments by turns, filters made of few numbers,
keys from narrow rows, sorted weights, chains of labels, cells whose speed their input tells."""
import torch
import torch.nn.functional as F
from torch import nn

from pattern_networks import attend
from scene_networks import conv, grid_of


class NarrowKeys(nn.Module):
    """A decoder whose keys and values are made of rows of 128, with a part of each key that turns with its place (MLA)."""

    def __init__(self, width=512, heads=8, layers=4, narrow=128, own=64, turned=32):
        super().__init__()
        self.words = nn.Embedding(1000, width)
        self.layers = nn.ModuleList(nn.ModuleDict({
            "norm": nn.LayerNorm(width), "q": nn.Linear(width, heads * (own + turned), bias=False),
            "down": nn.Linear(width, narrow + turned, bias=False), "up": nn.Linear(narrow, heads * 2 * own, bias=False),
            "out": nn.Linear(heads * own, width, bias=False), "after": nn.LayerNorm(width),
            "mlp": nn.Sequential(nn.Linear(width, 4 * width), nn.SiLU(), nn.Linear(4 * width, width))}) for _ in range(layers))
        self.norms = nn.ModuleList(nn.LayerNorm(narrow) for _ in range(layers))
        angles = torch.arange(256)[:, None] / 10000 ** (torch.arange(turned // 2) / (turned // 2))
        self.register_buffer("cos", torch.cat([angles, angles], -1).cos())
        self.register_buffer("sin", torch.cat([angles, angles], -1).sin())
        self.heads, self.narrow, self.own, self.head = heads, narrow, own, nn.Linear(width, 1000)

    def turn(self, x):
        a, b = x.chunk(2, -1)
        return x * self.cos + torch.cat([-b, a], -1) * self.sin

    def forward(self, x):
        x = self.words(x)
        for layer, norm in zip(self.layers, self.norms):
            h = layer["norm"](x)
            q = layer["q"](h).unflatten(2, (self.heads, -1)).transpose(1, 2)
            low, turned = layer["down"](h).split([self.narrow, self.cos.shape[1]], -1)
            k, v = layer["up"](norm(low)).unflatten(2, (self.heads, -1)).transpose(1, 2).chunk(2, -1)
            q = torch.cat([q[..., :self.own], self.turn(q[..., self.own:])], -1)
            k = torch.cat([k, self.turn(turned)[:, None].expand(-1, self.heads, -1, -1)], -1)
            x = x + layer["out"](F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
            x = x + layer["mlp"](layer["after"](x))
        return self.head(x)


class Triangles(nn.Module):
    """Pairs of residues that change by all third ones: products over these, and attention with a weight for each pair (Evoformer)."""

    def __init__(self, width=64, hidden=64, heads=4, layers=2):
        super().__init__()
        self.first = nn.Linear(16, width)
        self.layers = nn.ModuleList(nn.ModuleDict({
            "norm": nn.LayerNorm(width), "sides": nn.Linear(width, 4 * hidden), "made": nn.LayerNorm(hidden),
            "out": nn.Linear(hidden, width), "gate": nn.Linear(width, width), "rows": nn.LayerNorm(width),
            "qkv": nn.Linear(width, 3 * width), "weight": nn.Linear(width, heads), "open": nn.Linear(width, width),
            "back": nn.Linear(width, width), "mlp": nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.ReLU(),
                                                                  nn.Linear(4 * width, width))}) for _ in range(layers))
        self.heads = heads

    def forward(self, x):
        x = self.first(x)
        for layer in self.layers:
            h = layer["norm"](x)
            a, b, c, d = layer["sides"](h).chunk(4, -1)
            a, b = a * c.sigmoid(), b * d.sigmoid()
            made = (a.permute(0, 3, 1, 2) @ b.permute(0, 3, 2, 1)).permute(0, 2, 3, 1)
            x = x + layer["out"](layer["made"](made)) * layer["gate"](h).sigmoid()
            h = layer["rows"](x)
            q, k, v = (each.unflatten(3, (self.heads, -1)).transpose(2, 3) for each in layer["qkv"](h).chunk(3, -1))
            weights = (q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5 + layer["weight"](h).permute(0, 3, 1, 2)[:, None]).softmax(-1)
            x = x + layer["back"]((weights @ v).transpose(2, 3).flatten(3) * layer["open"](h).sigmoid())
            x = x + layer["mlp"](x)
        return x.mean((1, 2))


class MatchedFields(nn.Module):
    """Where each pixel goes: products of all pixels of two frames, read around where it is thought to be, again and again (RAFT)."""

    def __init__(self, width=64, steps=4, side=24, reach=3):
        super().__init__()
        self.features = nn.Sequential(conv(3, 32, 2), conv(32, 64, 2), nn.Conv2d(64, width, 3, 1, 1))
        taps = (2 * reach + 1) ** 2
        self.seen = nn.Sequential(nn.Conv2d(taps + 2, 64, 1), nn.ReLU())
        self.gates, self.new = nn.Conv2d(2 * width + 64, 2 * width, 3, 1, 1), nn.Conv2d(2 * width + 64, width, 3, 1, 1)
        self.move = nn.Sequential(nn.Conv2d(width, 64, 3, 1, 1), nn.ReLU(), nn.Conv2d(64, 2, 3, 1, 1))
        self.register_buffer("places", grid_of(side, side)[None])
        self.register_buffer("around", (grid_of(2 * reach + 1, 2 * reach + 1) * reach * 2 / (side - 1)).reshape(1, 1, taps, 2))
        self.side, self.steps = side, steps

    def forward(self, x):
        n, side = x.shape[0], self.side
        first, second = self.features(x[:, :3]), self.features(x[:, 3:])
        pairs = (first.flatten(2).transpose(1, 2) @ second.flatten(2) / 8).reshape(n * side * side, 1, side, side)
        state, flow = first.tanh(), torch.zeros_like(first[:, :2]).permute(0, 2, 3, 1)
        for _ in range(self.steps):
            at = (self.places + flow).reshape(n * side * side, 1, 1, 2) + self.around
            read = F.grid_sample(pairs, at, align_corners=True).reshape(n, side, side, -1)
            h = torch.cat([self.seen(torch.cat([read, flow], -1).permute(0, 3, 1, 2)), first], 1)
            keep, reset = self.gates(torch.cat([state, h], 1)).sigmoid().chunk(2, 1)
            state = (1 - keep) * state + keep * self.new(torch.cat([reset * state, h], 1)).tanh()
            flow = flow + 0.05 * self.move(state).permute(0, 2, 3, 1)
        return flow


class BandFilters(nn.Module):
    """A sound through windows that two frequencies each make, then windows and norms of each channel (SincNet)."""

    def __init__(self, bands=80, taps=251):
        super().__init__()
        self.low, self.wide = nn.Parameter(torch.rand(bands, 1) * 0.4), nn.Parameter(torch.rand(bands, 1) * 0.1)
        self.register_buffer("times", torch.arange(taps) - (taps - 1) / 2)
        self.register_buffer("window", torch.hamming_window(taps, periodic=False))
        self.layers = nn.ModuleList(nn.Conv1d(a, b, 5) for a, b in ((bands, 60), (60, 60)))
        self.norms = nn.ModuleList(nn.BatchNorm1d(each) for each in (bands, 60, 60))
        self.head = nn.Sequential(nn.Linear(60 * 107, 512), nn.LeakyReLU(0.2), nn.Linear(512, 462))

    def filters(self):
        def low_pass(frequency):
            return 2 * frequency * torch.sinc(2 * frequency * self.times)
        low = self.low.abs()
        return ((low_pass(low + self.wide.abs()) - low_pass(low)) * self.window)[:, None]

    def forward(self, x):
        x = F.leaky_relu(self.norms[0](F.max_pool1d(F.conv1d(x, self.filters()).abs(), 3)), 0.2)
        for layer, norm in zip(self.layers, self.norms[1:]):
            x = F.leaky_relu(norm(F.max_pool1d(layer(x), 3)), 0.2)
        return self.head(x.flatten(1)).log_softmax(-1)


class SparseMasks(nn.Module):
    """A table's row read through masks of which most are zero: what is above a limit that sorted sums tell (TabNet)."""

    def __init__(self, given=64, width=64, steps=4):
        super().__init__()
        self.norm, self.head, self.width = nn.BatchNorm1d(given), nn.Linear(width, 8), width
        self.parts = nn.ModuleList(nn.ModuleList([nn.Linear(given, 4 * width), nn.Linear(2 * width, 4 * width)]) for _ in range(steps))
        self.masks = nn.ModuleList(nn.Sequential(nn.Linear(width, given), nn.BatchNorm1d(given)) for _ in range(steps))

    @staticmethod
    def sparse(x):
        ordered = x.sort(-1, descending=True).values
        sums, count = ordered.cumsum(-1) - 1, torch.arange(1, x.shape[-1] + 1, device=x.device, dtype=x.dtype)
        own = (ordered * count > sums).sum(-1, keepdim=True)
        return F.relu(x - sums.gather(-1, own - 1) / own.to(x.dtype))

    def forward(self, x):
        x = self.norm(x.flatten(0, 1))
        prior, ahead, made = torch.ones_like(x), x.new_zeros(x.shape[0], self.width), 0
        for parts, masks in zip(self.parts, self.masks):
            mask = self.sparse(masks(ahead) * prior)
            prior = prior * (1.3 - mask)
            h = F.glu(parts[0](mask * x))
            h = (h + F.glu(parts[1](h))) * 0.5 ** 0.5
            own, ahead = h.chunk(2, -1)
            made = made + F.relu(own)
        return self.head(made)


class Interests(nn.Module):
    """What was bought before, weighed by a perceptron of each with what is offered: both, their difference and product (DIN)."""

    def __init__(self, width=64, goods=1000):
        super().__init__()
        self.goods = nn.Embedding(goods, width)
        self.weigh = nn.Sequential(nn.Linear(4 * width, 80), nn.Sigmoid(), nn.Linear(80, 40), nn.Sigmoid(), nn.Linear(40, 1))
        self.head = nn.Sequential(nn.Linear(3 * width, 200), nn.PReLU(), nn.Linear(200, 80), nn.PReLU(), nn.Linear(80, 1))

    def forward(self, x):
        rows = self.goods(x)
        offered, past = rows[:, :32, None], rows[:, None, 32:]
        offered, past = offered.expand(-1, -1, past.shape[2], -1), past.expand(-1, 32, -1, -1)
        weights = self.weigh(torch.cat([offered, past, offered - past, offered * past], -1))
        read = (weights * past).sum(2)
        return self.head(torch.cat([read, offered[:, :, 0], read * offered[:, :, 0]], -1))


class Guided(nn.Module):
    """A small result made large by lines that boxes of the large image tell at each pixel (a guided filter)."""

    def __init__(self, width=32, reach=4):
        super().__init__()
        self.low = nn.Sequential(conv(3, width), conv(width, width), conv(width, width), nn.Conv2d(width, 3, 3, 1, 1))
        self.guide, self.reach = nn.Sequential(nn.Conv2d(3, 16, 1), nn.ReLU(), nn.Conv2d(16, 3, 1)), reach

    def box(self, x):
        return F.avg_pool2d(x, 2 * self.reach + 1, 1, self.reach, count_include_pad=False)

    def forward(self, x):
        guide = self.guide(x)
        made, small = self.low(F.avg_pool2d(x, 2)), F.avg_pool2d(guide, 2)
        mean, level = self.box(small), self.box(made)
        slope = (self.box(small * made) - mean * level) / (self.box(small * small) - mean * mean).abs().add(0.01)
        lines = F.interpolate(torch.cat([slope, level - slope * mean], 1), scale_factor=2, mode="bilinear")
        return lines[:, :3] * guide + lines[:, 3:]


class Assignments(nn.Module):
    """Points of two images that see their own and each other, and which belong together, rows and columns in turn (SuperGlue)."""

    def __init__(self, width=128, heads=4, layers=4, turns=20):
        super().__init__()
        self.first = nn.Sequential(nn.Linear(34, width), nn.ReLU(), nn.Linear(width, width))
        self.layers = nn.ModuleList(nn.ModuleDict({"q": nn.Linear(width, width), "kv": nn.Linear(width, 2 * width),
                                                   "mlp": nn.Sequential(nn.Linear(2 * width, 2 * width), nn.ReLU(),
                                                                        nn.Linear(2 * width, width))}) for _ in range(layers))
        self.last, self.heads, self.turns = nn.Linear(width, width), heads, turns

    def forward(self, x):
        x = self.first(x)
        a, b = x.chunk(2, 1)
        for i, layer in enumerate(self.layers):
            sources = (a, b) if i % 2 == 0 else (b, a)
            a, b = (each + layer["mlp"](torch.cat([each, attend(layer["q"](each), *layer["kv"](source).chunk(2, -1), self.heads)], -1))
                    for each, source in zip((a, b), sources))
        scores = (self.last(a) @ self.last(b).transpose(1, 2) / a.shape[-1] ** 0.5).float()
        u, v = torch.zeros_like(scores[:, :, :1]), torch.zeros_like(scores[:, :1])
        for _ in range(self.turns):
            u = -(scores + v).logsumexp(2, keepdim=True)
            v = -(scores + u).logsumexp(1, keepdim=True)
        return (scores + u + v).exp().to(x.dtype)


class LabelChains(nn.Module):
    """Windows over words, and what the best chains of labels sum to, step by step (a CRF)."""

    def __init__(self, width=256, labels=17):
        super().__init__()
        self.words = nn.Embedding(1000, width)
        self.windows = nn.Sequential(*[each for _ in range(3) for each in (nn.Conv1d(width, width, 3, padding=1), nn.ReLU())])
        self.head, self.moves = nn.Linear(width, labels), nn.Parameter(torch.randn(labels, labels))

    def forward(self, x):
        scores = self.head(self.windows(self.words(x).transpose(1, 2)).transpose(1, 2))
        sums = [scores[:, 0]]
        for step in range(1, scores.shape[1]):
            sums.append((sums[-1][:, :, None] + self.moves).logsumexp(1) + scores[:, step])
        return torch.stack(sums, 1)


class Latents(nn.Module):
    """256 rows that read an image's pixels, think, and are read by a few questions (Perceiver IO)."""

    def __init__(self, width=256, given=64, rows=256, layers=4, heads=8):
        super().__init__()
        self.first, self.places = nn.Linear(3, given), nn.Parameter(torch.randn(1, 4096, given) * 0.02)
        self.rows, self.questions = nn.Parameter(torch.randn(1, rows, width) * 0.02), nn.Parameter(torch.randn(1, 10, width))
        self.norms = nn.ModuleList(nn.LayerNorm(each) for each in (given, width, width))
        self.read = nn.ModuleList([nn.Linear(width, width), nn.Linear(given, 2 * width), nn.Linear(width, width)])
        self.tell = nn.ModuleList([nn.Linear(width, width), nn.Linear(width, 2 * width), nn.Linear(width, 100)])
        self.layers, self.heads = nn.ModuleList(nn.TransformerEncoderLayer(width, heads, 4 * width, 0.0, "gelu", batch_first=True,
                                                                           norm_first=True) for _ in range(layers)), heads

    def forward(self, x):
        given = self.norms[0](self.first(x.flatten(2).transpose(1, 2)) + self.places)
        rows = self.rows.expand(x.shape[0], -1, -1)
        rows = rows + self.read[2](attend(self.read[0](self.norms[1](rows)), *self.read[1](given).chunk(2, -1), self.heads))
        for layer in self.layers:
            rows = layer(rows)
        questions = self.tell[0](self.questions.expand(x.shape[0], -1, -1))
        return self.tell[2](attend(questions, *self.tell[1](self.norms[2](rows)).chunk(2, -1), self.heads))


class OwnSpeeds(nn.Module):
    """Steps of cells whose state moves between two targets as fast as the input says (closed-form continuous time)."""

    def __init__(self, given=16, width=128):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(given + width, 128), nn.Tanh(), nn.Linear(128, 128), nn.Tanh())
        self.parts, self.head, self.width = nn.ModuleList(nn.Linear(128, width) for _ in range(4)), nn.Linear(width, 4), width

    def forward(self, x):
        state, made = x.new_zeros(x.shape[0], self.width), []
        for step in range(x.shape[1]):
            h = self.trunk(torch.cat([x[:, step], state], -1))
            first, second, a, b = (part(h) for part in self.parts)
            share = (a * x[:, step, :1] + b).sigmoid()
            state = first.tanh() * (1 - share) + share * second.tanh()
            made.append(state)
        return self.head(torch.stack(made, 1))
