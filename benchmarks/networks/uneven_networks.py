"""Networks whose widths, groups and lengths are no powers of two, and patterns that no other file here has: balanced matrices,
scans of gates, second moments, wavelets, strips, sets, windows of tokens, distances."""
import torch
from own_networks import conv_norm
from torch import nn
from torch.nn import functional


class OddWidths(nn.Module):
    """Plain and depthwise convolutions of 17 to 110 channels."""

    def __init__(self, widths=(17, 50, 75, 110)):
        super().__init__()
        layers = [conv_norm(3, widths[0], stride=2)]
        for given, made in zip(widths, widths[1:]):
            layers += [conv_norm(given, made, stride=2), nn.Conv2d(made, made, 3, padding=1, groups=made), nn.BatchNorm2d(made), nn.SiLU(),
                       conv_norm(made, 2 * made + 1, 1), conv_norm(2 * made + 1, made, 1)]
        self.layers, self.head = nn.Sequential(*layers), nn.Linear(widths[-1], 101)

    def forward(self, x):
        return self.head(self.layers(x).mean((2, 3)))


class NarrowGroups(nn.Module):
    """Grouped convolutions of 4, 6, 12 and 20 channels a group, and norms of groups."""

    class Block(nn.Module):
        def __init__(self, width, group):
            super().__init__()
            self.conv = nn.Conv2d(width, width, 3, padding=1, groups=width // group)
            self.norm, self.mix = nn.GroupNorm(6, width), nn.Conv2d(width, width, 1)

        def forward(self, x):
            return x + self.mix(functional.gelu(self.norm(self.conv(x))))

    def __init__(self, width=60):
        super().__init__()
        self.first = conv_norm(3, width, stride=2)
        self.blocks = nn.Sequential(*(NarrowGroups.Block(width, group) for group in (4, 6, 12, 20)))
        self.last, self.head = conv_norm(width, 2 * width, stride=2), nn.Linear(2 * width, 100)

    def forward(self, x):
        return self.head(self.last(self.blocks(self.first(x))).mean((2, 3)))


class Balanced(nn.Module):
    """Scores of two sets, balanced over rows and columns in turn (Sinkhorn)."""

    def __init__(self, width=96, turns=10):
        super().__init__()
        self.turns, self.left, self.right = turns, nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x):
        scores = self.left(x) @ self.right(x.flip(1)).transpose(1, 2) / 8
        for _ in range(self.turns):
            scores = scores - scores.logsumexp(2, keepdim=True)
            scores = scores - scores.logsumexp(1, keepdim=True)
        return scores.exp() @ x


class GatedScan(nn.Module):
    """Gates whose products are sums of logarithms along the tokens (minimal recurrent units, in parallel)."""

    def __init__(self, width=256, depth=3):
        super().__init__()
        self.embed = nn.Embedding(1000, width)
        self.made = nn.ModuleList(nn.Linear(width, 3 * width) for _ in range(depth))

    def forward(self, ids):
        x = self.embed(ids)
        for made in self.made:
            gate, value, out = made(x).chunk(3, -1)
            decay = functional.logsigmoid(gate).cumsum(1)
            state = ((gate.sigmoid() * value) * (-decay.clamp(min=-20)).exp()).cumsum(1) * decay.exp()
            x = functional.normalize(x + out.sigmoid() * state, dim=-1)
        return x


class SecondMoments(nn.Module):
    """The covariance of features over pixels, and its root by iterated products."""

    def __init__(self, width=100):
        super().__init__()
        self.layers = nn.Sequential(conv_norm(3, 32, stride=2), conv_norm(32, 64, stride=2), conv_norm(64, width, stride=2))
        self.head = nn.Linear(width * width, 100)

    def forward(self, x):
        x = self.layers(x).flatten(2)
        x = x - x.mean(2, keepdim=True)
        moments = x @ x.transpose(1, 2) / x.shape[2]
        trace = moments.diagonal(dim1=1, dim2=2).sum(1)[:, None, None]
        one = torch.eye(moments.shape[1], dtype=x.dtype, device=x.device)
        y, z = moments / trace, one.expand_as(moments)
        for _ in range(4):
            t = 1.5 * one - 0.5 * (z @ y)
            y, z = y @ t, t @ z
        return self.head((y * trace.sqrt()).flatten(1))


class OddHeads(nn.Module):
    """An encoder of 100 channels in five heads of 20."""

    def __init__(self, width=100, heads=5, depth=4):
        super().__init__()
        self.embed = nn.Embedding(1000, width)
        self.layers = nn.ModuleList(nn.ModuleDict({"a": nn.LayerNorm(width), "qkv": nn.Linear(width, 3 * width), "out": nn.Linear(width, width),
                                                   "b": nn.LayerNorm(width), "up": nn.Linear(width, 270), "down": nn.Linear(270, width)})
                                    for _ in range(depth))
        self.heads = heads

    def forward(self, ids):
        x = self.embed(ids)
        for layer in self.layers:
            q, k, v = (each.unflatten(-1, (self.heads, -1)).transpose(1, 2) for each in layer["qkv"](layer["a"](x)).chunk(3, -1))
            x = x + layer["out"](functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
            x = x + layer["down"](functional.gelu(layer["up"](layer["b"](x))))
        return x


class Wavelets(nn.Module):
    """Images split into four bands by sums and differences of neighbours, convolved and joined again."""

    def __init__(self, width=48):
        super().__init__()
        self.first, self.last = nn.Conv2d(3, width // 4, 3, padding=1), nn.Conv2d(width // 4, 3, 3, padding=1)
        self.convs = nn.ModuleList(conv_norm(width, width) for _ in range(3))

    def forward(self, x):
        x = self.first(x)
        for conv in self.convs:
            a, b, c, d = x[..., ::2, ::2], x[..., ::2, 1::2], x[..., 1::2, ::2], x[..., 1::2, 1::2]
            bands = conv(torch.cat([a + b + c + d, a + b - c - d, a - b + c - d, a - b - c + d], 1) / 2)
            a, b, c, d = bands.chunk(4, 1)
            x = x + functional.pixel_shuffle(torch.stack([a + b + c + d, a + b - c - d, a - b + c - d, a - b - c + d], 2).flatten(1, 2) / 2, 2)
        return self.last(x)


class Strips(nn.Module):
    """Means over rows and over columns that gate each pixel (coordinate attention), with an instance norm and a PReLU."""

    class Block(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.conv, self.norm, self.act = nn.Conv2d(width, width, 3, padding=1), nn.InstanceNorm2d(width, affine=True), nn.PReLU(width)
            self.small, self.rows, self.columns = conv_norm(width, 8, 1), nn.Conv2d(8, width, 1), nn.Conv2d(8, width, 1)

        def forward(self, x):
            y = self.act(self.norm(self.conv(x)))
            both = torch.cat([y.mean(3, keepdim=True), y.mean(2, keepdim=True).transpose(2, 3)], 2)
            rows, columns = self.small(both).split(y.shape[2], 2)
            return x + y * self.rows(rows).sigmoid() * self.columns(columns.transpose(2, 3)).sigmoid()

    def __init__(self, width=72, depth=4):
        super().__init__()
        self.first, self.head = conv_norm(3, width, stride=4), nn.Linear(width, 100)
        self.blocks = nn.Sequential(*(Strips.Block(width) for _ in range(depth)))

    def forward(self, x):
        return self.head(self.blocks(self.first(x)).mean((2, 3)))


class Sets(nn.Module):
    """Sets whose members see the largest and the mean of all."""

    def __init__(self, width=200, depth=4):
        super().__init__()
        self.first, self.head = nn.Linear(9, width), nn.Linear(width, 40)
        self.layers = nn.ModuleList(nn.Linear(3 * width, width) for _ in range(depth))

    def forward(self, x):
        x = self.first(x).relu()
        for layer in self.layers:
            most, mean = x.amax(1, keepdim=True), x.mean(1, keepdim=True)
            x = x + layer(torch.cat([x, most.expand_as(x), mean.expand_as(x)], -1)).relu()
        return self.head(x.amax(1))


class Neighbours(nn.Module):
    """Tokens that see a window of 16 on either side, by blocks of keys beside each other."""

    def __init__(self, width=192, heads=3, block=16, depth=3):
        super().__init__()
        self.embed, self.heads, self.block = nn.Embedding(1000, width), heads, block
        self.qkv = nn.ModuleList(nn.Linear(width, 3 * width) for _ in range(depth))
        self.out = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))

    def around(self, x):
        padded = functional.pad(x, (0, 0, 0, 0, 1, 1))
        return torch.cat([padded[:, :, :-2], padded[:, :, 1:-1], padded[:, :, 2:]], 3)

    def forward(self, ids):
        x = self.embed(ids)
        for qkv, out in zip(self.qkv, self.out):
            q, k, v = (each.unflatten(-1, (self.heads, -1)).transpose(1, 2).unflatten(2, (-1, self.block)) for each in qkv(x).chunk(3, -1))
            scores = (q @ self.around(k).transpose(-1, -2) / 8).softmax(-1)
            x = x + out((scores @ self.around(v)).flatten(2, 3).transpose(1, 2).flatten(2))
        return x


class Distances(nn.Module):
    """Weights by distances of points to centres, and of points to each other, that sum features."""

    def __init__(self, width=48, centres=120):
        super().__init__()
        self.centres, self.first = nn.Parameter(torch.randn(centres, 3)), nn.Linear(centres, width)
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(3))

    def forward(self, x):
        near = (-(x[:, :, None] - self.centres).square().sum(-1)).exp()
        weights = (-(x[:, :, None] - x[:, None]).square().sum(-1)).exp()
        y = self.first(near)
        for layer in self.layers:
            y = y + layer(weights @ y / x.shape[1]).tanh()
        return y.amax(1)


class OddVolumes(nn.Module):
    """Volumes of 20 and 36 channels with instance norms, made larger by interpolation."""

    def __init__(self, width=20):
        super().__init__()
        layer = lambda given, made, stride=1: nn.Sequential(nn.Conv3d(given, made, 3, stride, 1), nn.InstanceNorm3d(made), nn.LeakyReLU(0.1))  # noqa: E731
        self.first, self.down, self.up = layer(1, width), layer(width, 36, 2), layer(36 + width, width)
        self.last = nn.Conv3d(width, 3, 1)

    def forward(self, x):
        x = self.first(x)
        y = functional.interpolate(self.down(x), scale_factor=2.0, mode="nearest")
        return self.last(self.up(torch.cat([x, y], 1)))
