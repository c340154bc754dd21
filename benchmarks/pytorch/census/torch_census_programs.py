"""Programs by hand in the manner of TorchBench: recommendation, images, sound, series, graphs of nodes, detection, diffusion."""

import torch
import torch.nn.functional as F
from torch import nn

from torch_census_kinds import program, program_of

# Recommendation.


@program_of("dlrm", lambda v: (torch.randn(64, 13), torch.randint(0, 500, (8, 64, 4))))
class Dlrm(nn.Module):
    """Bags of numbers and a perceptron, whose pairs of products a second perceptron reads."""

    def __init__(self, width=32, tables=8):
        super().__init__()
        self.tables = nn.ModuleList(nn.EmbeddingBag(500, width, mode="sum") for _ in range(tables))
        self.bottom = nn.Sequential(nn.Linear(13, 128), nn.ReLU(), nn.Linear(128, width), nn.ReLU())
        self.top = nn.Sequential(nn.Linear(width + (tables + 1) * tables // 2, 128), nn.ReLU(), nn.Linear(128, 1), nn.Sigmoid())

    def forward(self, dense, sparse):
        x = self.bottom(dense)
        rows = torch.stack([x, *(table(sparse[i]) for i, table in enumerate(self.tables))], 1)
        pairs = torch.bmm(rows, rows.transpose(1, 2))
        i, j = torch.tril_indices(rows.shape[1], rows.shape[1], -1)
        return self.top(torch.cat([x, pairs[:, i, j]], 1))


@program_of("cross-network", lambda v: (torch.randint(0, 300, (64, 16)),))
class CrossNetwork(nn.Module):
    """DCN v2: crosses of low rank beside a perceptron."""

    def __init__(self, fields=16, width=16, rank=32):
        super().__init__()
        self.table = nn.Embedding(300 * fields, width)
        self.register_buffer("first", torch.arange(fields) * 300)
        d = fields * width
        self.down = nn.ModuleList(nn.Linear(d, rank, bias=False) for _ in range(3))
        self.up = nn.ModuleList(nn.Linear(rank, d) for _ in range(3))
        self.deep = nn.Sequential(nn.Linear(d, 128), nn.BatchNorm1d(128), nn.ReLU(), nn.Dropout(0.0), nn.Linear(128, 64), nn.ReLU())
        self.head = nn.Linear(d + 64, 1)

    def forward(self, ids):
        x = first = self.table(ids + self.first).flatten(1)
        for down, up in zip(self.down, self.up):
            x = first * up(down(x)) + x
        return torch.sigmoid(self.head(torch.cat([x, self.deep(first)], 1)))


@program_of("next-item", lambda v: (torch.randint(1, 800, (8, 50)),))
class NextItem(nn.Module):
    """SASRec: causal attention over what a user has seen, and the scores of all items."""

    def __init__(self, width=64):
        super().__init__()
        self.items, self.places = nn.Embedding(800, width, padding_idx=0), nn.Embedding(50, width)
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(width, 2, width, 0.0, "gelu", batch_first=True, norm_first=True) for _ in range(2))
        self.norm = nn.LayerNorm(width)

    def forward(self, ids):
        x = self.items(ids) * 8 + self.places.weight
        mask = torch.triu(torch.full((ids.shape[1], ids.shape[1]), float("-inf")), 1)
        for layer in self.layers:
            x = layer(x, mask)
        return self.norm(x) @ self.items.weight.t()


# Generators of images.


@program("dcgan-generator", (100, 1, 1))
class DcganGenerator(nn.Sequential):
    def __init__(self, width=32):
        layers, channels = [], 100
        for i, filters in enumerate((8 * width, 4 * width, 2 * width, width)):
            layers += [nn.ConvTranspose2d(channels, filters, 4, 1 if i == 0 else 2, 0 if i == 0 else 1, bias=False), nn.BatchNorm2d(filters), nn.ReLU(True)]
            channels = filters
        super().__init__(*layers, nn.ConvTranspose2d(width, 3, 4, 2, 1, bias=False), nn.Tanh())

    def forward(self, x):  # Dynamo leaves calls alone whose code is torch's
        return super().forward(x)


@program("style-transfer", (3, 96, 96))
class StyleTransfer(nn.Module):
    """Borders that mirror, instance norms, residual blocks, and resizing to nearest."""

    def __init__(self, width=32):
        super().__init__()

        def conv(channels, filters, size, stride=1):
            return nn.Sequential(nn.ReflectionPad2d(size // 2), nn.Conv2d(channels, filters, size, stride), nn.InstanceNorm2d(filters, affine=True))

        self.down = nn.Sequential(conv(3, width, 9), nn.ReLU(), conv(width, 2 * width, 3, 2), nn.ReLU(), conv(2 * width, 4 * width, 3, 2), nn.ReLU())
        self.blocks = nn.ModuleList(nn.Sequential(conv(4 * width, 4 * width, 3), nn.ReLU(), conv(4 * width, 4 * width, 3)) for _ in range(3))
        self.up = nn.ModuleList([conv(4 * width, 2 * width, 3), conv(2 * width, width, 3)])
        self.last = nn.Sequential(nn.ReflectionPad2d(4), nn.Conv2d(width, 3, 9))

    def forward(self, x):
        x = self.down(x)
        for block in self.blocks:
            x = x + block(x)
        for layer in self.up:
            x = torch.relu(layer(F.interpolate(x, scale_factor=2, mode="nearest")))
        return self.last(x)


@program("super-resolution", (1, 48, 48))
class SuperResolution(nn.Module):
    """EDSR with sub-pixel rows: many convolutions of one size."""

    def __init__(self, width=64):
        super().__init__()
        self.first = nn.Conv2d(1, width, 3, padding=1)
        self.blocks = nn.ModuleList(nn.Sequential(nn.Conv2d(width, width, 3, padding=1), nn.PReLU(), nn.Conv2d(width, width, 3, padding=1)) for _ in range(4))
        self.last = nn.Sequential(nn.Conv2d(width, 9, 3, padding=1), nn.PixelShuffle(3))

    def forward(self, x):
        x = self.first(x)
        for block in self.blocks:
            x = x + 0.1 * block(x)
        return self.last(x)


@program("patch-critic", (3, 96, 96))
class PatchCritic(nn.Sequential):
    """pix2pix's critic."""

    def __init__(self, width=32):
        super().__init__(nn.Conv2d(3, width, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(width, 2 * width, 4, 2, 1), nn.InstanceNorm2d(2 * width),
                         nn.LeakyReLU(0.2), nn.Conv2d(2 * width, 4 * width, 4, 1, 1), nn.InstanceNorm2d(4 * width), nn.LeakyReLU(0.2),
                         nn.Conv2d(4 * width, 1, 4, 1, 1))  # fmt: skip

    def forward(self, x):
        return super().forward(x)


# Sound.


class Separable(nn.Module):
    def __init__(self, width, dilation):
        super().__init__()
        self.layers = nn.Sequential(nn.Conv1d(width, 2 * width, 1), nn.PReLU(), nn.GroupNorm(1, 2 * width), nn.Conv1d(
            2 * width, 2 * width, 3, padding=dilation, dilation=dilation, groups=2 * width), nn.PReLU(), nn.GroupNorm(1, 2 * width),
            nn.Conv1d(2 * width, width, 1))  # fmt: skip

    def forward(self, x):
        return x + self.layers(x)


@program("conv-tasnet", (1, 4000))
class ConvTasnet(nn.Module):
    """Separates two voices by masks over learned frames."""

    def __init__(self, width=64):
        super().__init__()
        self.encode, self.decode = nn.Conv1d(1, 128, 16, 8, bias=False), nn.ConvTranspose1d(128, 1, 16, 8, bias=False)
        self.inside = nn.Sequential(nn.GroupNorm(1, 128), nn.Conv1d(128, width, 1), *(Separable(width, 2**i) for i in range(6)), nn.PReLU(), nn.Conv1d(width, 256, 1))

    def forward(self, x):
        frames = torch.relu(self.encode(x))
        masks = torch.sigmoid(self.inside(frames)).unflatten(1, (2, 128))
        return self.decode((masks * frames[:, None]).flatten(0, 1)).unflatten(0, (x.shape[0], 2))


@program("demucs", (2, 4096))
class Demucs(nn.Module):
    """A U-Net over waves with gated convolutions."""

    def __init__(self):
        super().__init__()
        self.down, self.up, channels = nn.ModuleList(), nn.ModuleList(), 2
        for width in (32, 64, 128):
            self.down.append(nn.Sequential(nn.Conv1d(channels, width, 8, 4, 2), nn.ReLU(), nn.Conv1d(width, 2 * width, 1), nn.GLU(1)))
            last = [] if channels == 2 else [nn.ReLU()]
            self.up.insert(0, nn.Sequential(nn.Conv1d(width, 2 * width, 3, padding=1), nn.GLU(1), nn.ConvTranspose1d(width, channels, 8, 4, 2), *last))
            channels = width

    def forward(self, x):
        kept = []
        for layer in self.down:
            x = layer(x)
            kept.append(x)
        for layer in self.up:
            x = layer(x + kept.pop())
        return x


# Series.


@program("n-beats", (96,))
class NBeats(nn.Module):
    """Perceptrons whose backcasts are taken off what the next one reads."""

    def __init__(self, blocks=4, width=128):
        super().__init__()
        self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(96, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(),
                                                  nn.Linear(width, 96 + 24)) for _ in range(blocks))  # fmt: skip

    def forward(self, x):
        forecast = 0
        for block in self.blocks:
            back, ahead = block(x).split((96, 24), -1)
            x, forecast = x - back, forecast + ahead
        return forecast


@program("d-linear", (96, 7))
class DLinear(nn.Module):
    """Trend by a moving mean, and two linear layers over time."""

    def __init__(self):
        super().__init__()
        self.season, self.trend = nn.Linear(96, 24), nn.Linear(96, 24)

    def forward(self, x):
        padded = torch.cat([x[:, :1].expand(-1, 12, -1), x, x[:, -1:].expand(-1, 12, -1)], 1)
        trend = F.avg_pool1d(padded.transpose(1, 2), 25, 1)
        return (self.season(x.transpose(1, 2) - trend) + self.trend(trend)).transpose(1, 2)


@program("periods", (96, 8))
class Periods(nn.Module):
    """TimesNet's block: the strongest periods of a spectrum weigh convolutions over folded series."""

    def __init__(self):
        super().__init__()
        self.convs = nn.ModuleList(nn.Conv2d(8, 8, 3, padding=1) for _ in range(3))

    def forward(self, x):
        weights = torch.fft.rfft(x, dim=1).abs().mean((0, 2))[1:4]
        weights = torch.softmax(weights, 0)
        out = 0
        for i, (period, conv) in enumerate(zip((24, 12, 8), self.convs)):
            folded = x.transpose(1, 2).reshape(x.shape[0], 8, -1, period)
            out = out + weights[i] * F.gelu(conv(folded)).flatten(2).transpose(1, 2)
        return x + out


# Recurrent loops that are written out.


@program("cell-loop", (12, 32))
class CellLoop(nn.Module):
    """Attention over encoder states at each step of a decoder's cell."""

    def __init__(self, width=64):
        super().__init__()
        self.encode = nn.Linear(32, width)
        self.cell, self.score, self.out = nn.GRUCell(2 * width, width), nn.Linear(width, width), nn.Linear(width, 40)

    def forward(self, x):
        memory = torch.tanh(self.encode(x))
        state = memory.mean(1)
        outputs = []
        for _ in range(6):
            weights = torch.softmax((self.score(state)[:, None] * memory).sum(-1), -1)
            read = (weights[..., None] * memory).sum(1)
            state = self.cell(torch.cat([read, state], 1), state)
            outputs.append(self.out(state))
        return torch.stack(outputs, 1)


@program("minimal-gru", (64, 64))
class MinimalGru(nn.Module):
    """minGRU: gates of the input alone, states by a sum of logarithms."""

    def __init__(self, width=64):
        super().__init__()
        self.gate, self.hidden = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x):
        k = self.gate(x)
        past, now = -F.softplus(k), -F.softplus(-k)
        h = self.hidden(x)
        h = torch.where(h >= 0, (F.relu(h) + 0.5).log(), -F.softplus(-h))
        total = past.cumsum(1)
        return (total + torch.logcumsumexp(now + h - total, 1)).exp()


# Graphs of nodes.


def edges(nodes, count):
    return torch.randint(0, nodes, (2, count))


@program_of("gcn", lambda v: (torch.randn(200, 32), edges(200, 1000)))
class Gcn(nn.Module):
    """Means over neighbours, by degrees, twice."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(32, 64), nn.Linear(64, 8)])

    def forward(self, x, edge):
        source, target = edge
        degree = torch.ones(x.shape[0]).scatter_add(0, target, torch.ones(edge.shape[1]))
        norm = degree.rsqrt()
        weight = norm[source] * norm[target]
        for i, layer in enumerate(self.layers):
            h = layer(x)
            h = torch.zeros_like(h).index_add(0, target, weight[:, None] * h[source]) + h / degree[:, None]
            x = torch.relu(h) if i == 0 else h
        return torch.log_softmax(x, -1)


@program_of("schnet", lambda v: (torch.randint(1, 9, (24,)), torch.randn(24, 3)))
class Schnet(nn.Module):
    """Continuous filters of distances between atoms."""

    def __init__(self, width=64):
        super().__init__()
        self.kinds = nn.Embedding(10, width)
        self.register_buffer("centres", torch.linspace(0, 5, 25))
        self.filters = nn.ModuleList(nn.Sequential(nn.Linear(25, width), nn.Softplus(), nn.Linear(width, width)) for _ in range(2))
        self.inner = nn.ModuleList(nn.Linear(width, width, bias=False) for _ in range(2))
        self.outer = nn.ModuleList(nn.Sequential(nn.Linear(width, width), nn.Softplus(), nn.Linear(width, width)) for _ in range(2))
        self.head = nn.Linear(width, 1)

    def forward(self, kinds, places):
        x = self.kinds(kinds)
        distance = (places[:, None] - places[None]).square().sum(-1).add(1e-6).sqrt()
        basis = torch.exp(-10 * (distance[..., None] - self.centres).square())
        near = 0.5 * (torch.cos(distance * 0.6) + 1) * (distance < 5)
        for filters, inner, outer in zip(self.filters, self.inner, self.outer):
            x = x + outer((filters(basis) * near[..., None] * inner(x)[None]).sum(1))
        return self.head(x).sum()


# Heads of detectors.


@program("yolo-head", (64, 20, 20), (128, 10, 10))
class YoloHead(nn.Module):
    """Boxes by distributions over bins, as YOLOv8 has them, and scores."""

    def __init__(self, classes=20, bins=16):
        super().__init__()
        self.bins = bins
        self.boxes = nn.ModuleList(nn.Sequential(nn.Conv2d(c, 64, 3, padding=1), nn.BatchNorm2d(64), nn.SiLU(), nn.Conv2d(64, 4 * bins, 1)) for c in (64, 128))
        self.scores = nn.ModuleList(nn.Sequential(nn.Conv2d(c, 64, 3, padding=1), nn.BatchNorm2d(64), nn.SiLU(), nn.Conv2d(64, classes, 1)) for c in (64, 128))

    def forward(self, near, far):
        outputs = []
        for x, boxes, scores, stride in zip((near, far), self.boxes, self.scores, (8, 16)):
            n, _, h, w = x.shape
            bins = boxes(x).view(n, 4, self.bins, h * w).softmax(2)
            distance = (bins * torch.arange(self.bins, dtype=x.dtype)[:, None]).sum(2)
            y, x0 = torch.meshgrid(torch.arange(h) + 0.5, torch.arange(w) + 0.5, indexing="ij")
            centre = torch.stack([x0.flatten(), y.flatten()])
            low, high = centre - distance[:, :2], centre + distance[:, 2:]
            box = torch.cat([(low + high) / 2, high - low], 1) * stride
            outputs.append(torch.cat([box, scores(x).flatten(2).sigmoid()], 1))
        return torch.cat(outputs, 2)


@program("centre-net", (3, 96, 96))
class CentreNet(nn.Module):
    """Peaks of a heat map: maxima that a pooling finds, the best of them, and what lies there."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 32, 3, 2, 1), nn.BatchNorm2d(32), nn.ReLU(), nn.Conv2d(32, 64, 3, 2, 1), nn.BatchNorm2d(64), nn.ReLU())
        self.heat, self.size = nn.Conv2d(64, 8, 1), nn.Conv2d(64, 2, 1)

    def forward(self, x):
        x = self.body(x)
        heat = self.heat(x).sigmoid()
        heat = heat * (F.max_pool2d(heat, 3, 1, 1) == heat)
        scores, places = heat.flatten(1).topk(20)
        places = places % (heat.shape[2] * heat.shape[3])
        return scores, self.size(x).flatten(2).gather(2, places[:, None].expand(-1, 2, -1))


# Attention of other kinds, and diffusion.


@program_of("dit", lambda v: (torch.randn(2, 4, 16, 16), torch.tensor([10.0, 700.0]), torch.tensor([1, 7])))
class Dit(nn.Module):
    """A diffusion transformer with adaptive norms."""

    def __init__(self, width=128, heads=4):
        super().__init__()
        self.heads = heads
        self.patches, self.kinds = nn.Conv2d(4, width, 2, 2), nn.Embedding(10, width)
        self.time = nn.Sequential(nn.Linear(64, width), nn.SiLU(), nn.Linear(width, width))
        self.layers = nn.ModuleList(nn.ModuleDict({
            "qkv": nn.Linear(width, 3 * width), "out": nn.Linear(width, width), "up": nn.Linear(width, 4 * width),
            "down": nn.Linear(4 * width, width), "shifts": nn.Linear(width, 6 * width)}) for _ in range(2))  # fmt: skip
        self.last = nn.Linear(width, 16)

    def forward(self, x, t, kind):
        angles = t[:, None] * torch.exp(-torch.arange(32) * 0.28)
        c = F.silu(self.time(torch.cat([angles.sin(), angles.cos()], -1)) + self.kinds(kind))
        x = self.patches(x).flatten(2).transpose(1, 2)
        b, n, d = x.shape
        for layer in self.layers:
            s1, g1, a1, s2, g2, a2 = layer["shifts"](c)[:, None].chunk(6, -1)
            h = F.layer_norm(x, (d,)) * (1 + g1) + s1
            q, k, v = layer["qkv"](h).view(b, n, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
            x = x + a1 * layer["out"](F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, n, d))
            h = F.layer_norm(x, (d,)) * (1 + g2) + s2
            x = x + a2 * layer["down"](F.gelu(layer["up"](h), approximate="tanh"))
        return F.pixel_shuffle(self.last(x).transpose(1, 2).unflatten(2, (8, 8)), 2)


@program("axial", (16, 24, 24))
class Axial(nn.Module):
    """Attention along lines, then along columns, of an image."""

    def __init__(self, width=64):
        super().__init__()
        self.first, self.last = nn.Conv2d(16, width, 1), nn.Conv2d(width, 16, 1)
        self.lines, self.columns = (nn.MultiheadAttention(width, 4, batch_first=True) for _ in range(2))

    def forward(self, x):
        x = self.first(x)
        b, c, h, w = x.shape
        rows = x.permute(0, 2, 3, 1).reshape(b * h, w, c)
        x = x + self.lines(rows, rows, rows, need_weights=False)[0].view(b, h, w, c).permute(0, 3, 1, 2)
        rows = x.permute(0, 3, 2, 1).reshape(b * w, h, c)
        x = x + self.columns(rows, rows, rows, need_weights=False)[0].view(b, w, h, c).permute(0, 3, 2, 1)
        return self.last(x)


@program_of("sac-critics", lambda v: (torch.randn(32, 24), torch.randn(32, 6)))
class Critics(nn.Module):
    """Two perceptrons of one reader: calls cost more than work."""

    def __init__(self):
        super().__init__()
        self.critics = nn.ModuleList(nn.Sequential(nn.Linear(30, 64), nn.LayerNorm(64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1)) for _ in range(2))

    def forward(self, state, action):
        x = torch.cat([state, action], -1)
        return torch.min(*(critic(x) for critic in self.critics))
