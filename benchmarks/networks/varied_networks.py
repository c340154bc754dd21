"""Networks of families that no other file here has: stacked hourglasses, octaves, complex numbers, rotated filters, spikes,
pillars, tables as tokens, shortened keys, aligned sequences, winners of channels."""
import torch
from own_networks import conv_norm
from torch import nn
from torch.nn import functional


class Hourglasses(nn.Module):
    """Two stacked hourglasses and the expected place of each joint under its map."""

    class Bottleneck(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.layers = nn.Sequential(conv_norm(width, width // 2, 1), conv_norm(width // 2, width // 2), conv_norm(width // 2, width, 1, act=nn.Identity))

        def forward(self, x):
            return functional.relu(x + self.layers(x))

    def __init__(self, width=96, depth=3, joints=17):
        super().__init__()
        self.first = nn.Sequential(conv_norm(3, width // 2, 7, stride=2), conv_norm(width // 2, width, stride=2))
        block = Hourglasses.Bottleneck
        self.down = nn.ModuleList(nn.ModuleList(block(width) for _ in range(depth)) for _ in range(2))
        self.up = nn.ModuleList(nn.ModuleList(block(width) for _ in range(depth)) for _ in range(2))
        self.maps = nn.ModuleList(nn.Conv2d(width, joints, 1) for _ in range(2))
        self.back = nn.Conv2d(joints, width, 1)

    def forward(self, x):
        x = self.first(x)
        for down, up, maps in zip(self.down, self.up, self.maps):
            kept, y = [], x
            for block in down:
                kept.append(block(y))
                y = functional.max_pool2d(kept[-1], 2)
            for block, side in zip(up, reversed(kept)):
                y = functional.interpolate(block(y), scale_factor=2.0, mode="nearest") + side
            heat = maps(y)
            x = x + y + self.back(heat)
        weights = heat.flatten(2).softmax(-1).unflatten(2, heat.shape[2:])
        places = torch.linspace(0, 1, heat.shape[3], dtype=heat.dtype, device=heat.device)
        return torch.stack([(weights.sum(2) * places).sum(-1), (weights.sum(3) * places).sum(-1)], -1)


class Octaves(nn.Module):
    """Convolutions of channels at two resolutions that tell each other."""

    class Layer(nn.Module):
        def __init__(self, given, made):
            super().__init__()
            conv = lambda a, b: nn.Conv2d(a, b, 3, padding=1, bias=False)  # noqa: E731
            self.high, self.low = conv(given[0], made[0]), conv(given[1], made[1])
            self.raised, self.lowered = conv(given[1], made[0]), conv(given[0], made[1])
            self.norms = nn.ModuleList(nn.BatchNorm2d(n) for n in made)

        def forward(self, pair):
            high, low = pair
            up = functional.interpolate(self.raised(low), scale_factor=2.0, mode="nearest")
            down = self.lowered(functional.avg_pool2d(high, 2))
            return functional.relu(self.norms[0](self.high(high) + up)), functional.relu(self.norms[1](self.low(low) + down))

    def __init__(self, widths=((24, 8), (48, 16), (96, 32))):
        super().__init__()
        self.first = conv_norm(3, sum(widths[0]), stride=2)
        self.layers = nn.ModuleList(Octaves.Layer(a, b) for a, b in zip((widths[0], *widths), widths))
        self.split, self.head = widths[0][0], nn.Linear(sum(widths[-1]), 100)

    def forward(self, x):
        x = self.first(x)
        pair = x[:, :self.split], functional.avg_pool2d(x[:, self.split:], 2)
        for i, layer in enumerate(self.layers):
            pair = layer(pair)
            if i + 1 < len(self.layers):
                pair = tuple(functional.max_pool2d(each, 2) for each in pair)
        return self.head(torch.cat([each.mean((2, 3)) for each in pair], 1))


class ComplexMasks(nn.Module):
    """Complex convolutions over spectra (two real ones a part), and a mask that turns and scales each bin."""

    class Layer(nn.Module):
        def __init__(self, given, made, stride):
            super().__init__()
            self.real, self.turned = (nn.Conv2d(given, made, (5, 3), stride, (2, 1)) for _ in range(2))
            self.norms, self.act = nn.ModuleList(nn.BatchNorm2d(made) for _ in range(2)), nn.PReLU()

        def forward(self, pair):
            a, b = pair
            return (self.act(self.norms[0](self.real(a) - self.turned(b))), self.act(self.norms[1](self.real(b) + self.turned(a))))

    def __init__(self, widths=(16, 32, 64)):
        super().__init__()
        self.down = nn.ModuleList(ComplexMasks.Layer(a, b, (2, 1)) for a, b in zip((1, *widths), widths))
        self.middle = nn.ModuleList(ComplexMasks.Layer(widths[-1], widths[-1], (1, 1)) for _ in range(2))
        self.last = ComplexMasks.Layer(widths[-1], 8, (1, 1))

    def forward(self, x):
        pair = x[:, :1], x[:, 1:]
        for layer in [*self.down, *self.middle, self.last]:
            pair = layer(pair)
        a, b = (functional.pixel_shuffle(each, 2) for each in pair)
        size = (a.square() + b.square() + 1e-6).sqrt()
        return torch.stack([a, b], 2) / size[:, :, None] * size.tanh()[:, :, None]


class RotatedFilters(nn.Module):
    """Filters turned four times by a right angle, with the largest of the turns at the end."""

    def __init__(self, widths=(12, 24, 48)):
        super().__init__()
        self.first = nn.Parameter(torch.randn(widths[0], 3, 3, 3) * 0.2)
        self.filters = nn.ParameterList(torch.randn(b, 4, a, 3, 3) * (2 / (36 * a)) ** 0.5 for a, b in zip(widths, widths[1:]))
        self.norms = nn.ModuleList(nn.BatchNorm2d(width) for width in widths)
        self.head = nn.Linear(widths[-1], 10)

    def turned(self, x, norm):
        n, _, h, w = x.shape
        return norm(x.view(n, -1, 4 * h, w)).view(n, -1, h, w).relu()

    def forward(self, x):
        weights = torch.stack([torch.rot90(self.first, k, (2, 3)) for k in range(4)], 1).flatten(0, 1)
        x = self.turned(functional.conv2d(x, weights, padding=1), self.norms[0])
        for filters, norm in zip(self.filters, self.norms[1:]):
            weights = torch.stack([torch.rot90(filters.roll(k, 1), k, (3, 4)) for k in range(4)], 1).flatten(0, 1).transpose(1, 2).flatten(1, 2)
            x = functional.max_pool2d(self.turned(functional.conv2d(x, weights, padding=1), norm), 2)
        return self.head(x.unflatten(1, (-1, 4)).amax(2).mean((2, 3)))


class Spikes(nn.Module):
    """Neurons that leak, fire over a threshold and are reset, for eight steps."""

    def __init__(self, width=64, steps=8):
        super().__init__()
        self.steps, self.first, self.second = steps, nn.Conv2d(2, width, 3, padding=1), nn.Conv2d(width, width, 3, padding=1)
        self.head = nn.Linear(width * 64, 11)

    def forward(self, x):
        one = two = total = 0.0
        for step in range(self.steps):
            one = one * 0.9 + self.first(x[:, step])
            fired = (one > 0.5).to(x.dtype)
            one = one - fired * 0.5
            two = two * 0.9 + self.second(functional.avg_pool2d(fired, 2))
            spiked = (two > 0.1).to(x.dtype)
            two = two - spiked * 0.1
            total = total + self.head(functional.avg_pool2d(spiked, 2).flatten(1))
        return total / self.steps


class Pillars(nn.Module):
    """Points in columns: a small layer for each, the largest of a column, and a grid with a neck of three scales."""

    def __init__(self, width=64):
        super().__init__()
        self.points = nn.Sequential(nn.Linear(9, width, bias=False), nn.LayerNorm(width), nn.ReLU())
        self.levels = nn.ModuleList(nn.Sequential(conv_norm(a, b, stride=s), conv_norm(b, b)) for a, b, s in ((width, 64, 1), (64, 128, 2), (128, 256, 2)))
        self.ups = nn.ModuleList(nn.ConvTranspose2d(a, 128, s, s) for a, s in ((64, 1), (128, 2), (256, 4)))
        self.head = nn.Conv2d(384, 18, 1)

    def forward(self, x):
        y = self.points(x).amax(2).transpose(1, 2).unflatten(2, (48, 48))
        found = []
        for level, up in zip(self.levels, self.ups):
            y = level(y)
            found.append(up(y).relu())
        return self.head(torch.cat(found, 1))


class TableTokens(nn.Module):
    """Each number of a table is a token of its own scale and shift, seen by an encoder with gated layers."""

    def __init__(self, fields=50, width=192, heads=8, depth=3):
        super().__init__()
        self.scale, self.shift = (nn.Parameter(torch.randn(fields, width) * 0.1) for _ in range(2))
        self.word, self.heads = nn.Parameter(torch.zeros(1, 1, width) + 0.1), heads
        self.layers = nn.ModuleList(nn.ModuleDict({"a": nn.LayerNorm(width), "qkv": nn.Linear(width, 3 * width), "out": nn.Linear(width, width),
                                                   "b": nn.LayerNorm(width), "up": nn.Linear(width, 512), "down": nn.Linear(256, width)})
                                    for _ in range(depth))
        self.head = nn.Linear(width, 1)

    def forward(self, x):
        x = torch.cat([self.word.expand(x.shape[0], -1, -1), x[:, :, :1] * self.scale + self.shift], 1)
        for layer in self.layers:
            q, k, v = (each.unflatten(-1, (self.heads, -1)).transpose(1, 2) for each in layer["qkv"](layer["a"](x)).chunk(3, -1))
            x = x + layer["out"](functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
            value, gate = layer["up"](layer["b"](x)).chunk(2, -1)
            x = x + layer["down"](value * gate.relu())
        return self.head(x[:, 0].relu())


class ShortKeys(nn.Module):
    """An encoder whose keys and values are summed to 64 rows by a matrix over the tokens (Linformer)."""

    def __init__(self, width=256, heads=4, tokens=512, short=64, depth=3):
        super().__init__()
        self.embed, self.heads = nn.Embedding(1000, width), heads
        self.shorten = nn.ParameterList(torch.randn(tokens, short) / tokens ** 0.5 for _ in range(depth))
        layer = lambda n, a, b: nn.ModuleList(nn.Linear(a, b) for _ in range(n))  # noqa: E731
        self.qkv, self.out, self.up, self.down = (layer(depth, width, 3 * width), layer(depth, width, width),
                                                  layer(depth, width, 4 * width), layer(depth, 4 * width, width))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2 * depth))

    def forward(self, ids):
        x = self.embed(ids)
        for i, shorten in enumerate(self.shorten):
            q, k, v = self.qkv[i](self.norms[2 * i](x)).chunk(3, -1)
            k, v = (torch.einsum("btc,ts->bsc", each, shorten) for each in (k, v))
            q, k, v = (each.unflatten(-1, (self.heads, -1)).transpose(1, 2) for each in (q, k, v))
            y = (q @ k.transpose(-1, -2) / 8).softmax(-1) @ v
            x = x + self.out[i](y.transpose(1, 2).flatten(2))
            x = x + self.down[i](functional.gelu(self.up[i](self.norms[2 * i + 1](x))))
        return x


class Alignments(nn.Module):
    """Aligned sequences: attention along rows and along columns, and the mean of outer products for each pair of places."""

    def __init__(self, width=64, heads=4, small=16, pairs=48):
        super().__init__()
        self.heads, self.first = heads, nn.Linear(23, width)
        self.qkv, self.out = (nn.ModuleList(nn.Linear(width, n * width) for _ in range(4)) for n in (3, 1))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(4))
        self.left, self.right, self.last = nn.Linear(width, small), nn.Linear(width, small), nn.Linear(small * small, pairs)

    def forward(self, x):
        x = self.first(x)
        for i, (qkv, out, norm) in enumerate(zip(self.qkv, self.out, self.norms)):
            y = norm(x.transpose(1, 2) if i % 2 else x)
            q, k, v = (each.unflatten(-1, (self.heads, -1)).transpose(2, 3) for each in qkv(y).chunk(3, -1))
            y = out(functional.scaled_dot_product_attention(q, k, v).transpose(2, 3).flatten(3))
            x = x + (y.transpose(1, 2) if i % 2 else y)
        outer = torch.einsum("bsic,bsjd->bijcd", self.left(x), self.right(x)) / x.shape[1]
        return self.last(outer.flatten(3))


class Winners(nn.Module):
    """The largest of each three filters, norms over neighbouring channels, and poolings that overlap."""

    def __init__(self, widths=(48, 96, 192)):
        super().__init__()
        self.layers = nn.ModuleList(nn.Conv2d(a, 3 * b, size, stride, size // 2) for a, b, size, stride in
                                    zip((3, *widths), widths, (7, 5, 3), (2, 1, 1)))
        self.head = nn.Linear(widths[-1], 100)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x).unflatten(1, (-1, 3)).amax(2)
            x = functional.max_pool2d(functional.local_response_norm(x, 5), 3, 2, 1)
        return self.head(x.mean((2, 3)))
