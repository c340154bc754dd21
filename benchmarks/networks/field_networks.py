"""Networks that make images of images, or read them in ways that those before do not: reflected and circular borders, filters
that each image or pixel has for itself, wide heads over pixels, maps that scale norms, pyramids of poolings, peaks, two rates of
frames, boards, clusters of features."""
import torch
from torch import nn
from torch.nn import functional
from own_networks import conv_norm


class Styler(nn.Module):
    """Images in another style: reflected borders, a norm of each image, transposed convolutions (CycleGAN)."""

    class Block(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.layers = nn.Sequential(nn.ReflectionPad2d(1), nn.Conv2d(width, width, 3), nn.InstanceNorm2d(width), nn.ReLU(),
                                        nn.ReflectionPad2d(1), nn.Conv2d(width, width, 3), nn.InstanceNorm2d(width))

        def forward(self, x):
            return x + self.layers(x)

    def __init__(self, width=32, depth=4):
        super().__init__()
        layers = [nn.ReflectionPad2d(3), nn.Conv2d(3, width, 7), nn.InstanceNorm2d(width), nn.ReLU()]
        for c in (width, 2 * width):
            layers += [nn.Conv2d(c, 2 * c, 3, 2, 1), nn.InstanceNorm2d(2 * c), nn.ReLU()]
        layers += [Styler.Block(4 * width) for _ in range(depth)]
        for c in (4 * width, 2 * width):
            layers += [nn.ConvTranspose2d(c, c // 2, 3, 2, 1, 1), nn.InstanceNorm2d(c // 2), nn.ReLU()]
        self.layers = nn.Sequential(*layers, nn.ReflectionPad2d(3), nn.Conv2d(width, 3, 7), nn.Tanh())

    def forward(self, x):
        return self.layers(x)


class LatentDecoder(nn.Module):
    """Images of latents, with attention of one wide head over pixels between norms of groups (a decoder of latent diffusion)."""

    class Block(nn.Module):
        def __init__(self, given, made):
            super().__init__()
            self.norms = nn.ModuleList([nn.GroupNorm(32, given), nn.GroupNorm(32, made)])
            self.convs = nn.ModuleList([nn.Conv2d(given, made, 3, padding=1), nn.Conv2d(made, made, 3, padding=1)])
            self.beside = nn.Conv2d(given, made, 1) if given != made else nn.Identity()

        def forward(self, x):
            y = x
            for norm, conv in zip(self.norms, self.convs):
                y = conv(functional.silu(norm(y)))
            return self.beside(x) + y

    def __init__(self, width=256):
        super().__init__()
        self.first, self.norm = nn.Conv2d(4, width, 3, padding=1), nn.GroupNorm(32, width)
        self.all, self.out = nn.Conv2d(width, 3 * width, 1), nn.Conv2d(width, width, 1)
        self.before, self.after = LatentDecoder.Block(width, width), LatentDecoder.Block(width, width)
        self.up = nn.ModuleList([LatentDecoder.Block(width, width // 2), LatentDecoder.Block(width // 2, width // 4)])
        self.wide = nn.ModuleList([nn.Conv2d(width, width, 3, padding=1), nn.Conv2d(width // 2, width // 2, 3, padding=1)])
        self.last = nn.Sequential(nn.GroupNorm(32, width // 4), nn.SiLU(), nn.Conv2d(width // 4, 3, 3, padding=1))

    def forward(self, x):
        x = self.before(self.first(x))
        q, k, v = self.all(self.norm(x)).flatten(2).transpose(1, 2).chunk(3, -1)
        mixed = functional.scaled_dot_product_attention(q[:, None], k[:, None], v[:, None])[:, 0]
        x = self.after(x + self.out(mixed.transpose(1, 2).unflatten(2, x.shape[2:])))
        for block, wide in zip(self.up, self.wide):
            x = block(wide(functional.interpolate(x, scale_factor=2, mode="nearest")))
        return self.last(x)


class MixedFilters(nn.Module):
    """Convolutions whose filters each image mixes for itself of four (CondConv)."""

    class Layer(nn.Module):
        def __init__(self, given, made, experts=4):
            super().__init__()
            self.share, self.made = nn.Linear(given, experts), made
            self.filters = nn.Parameter(torch.randn(experts, made * given * 9) * (given * 9) ** -0.5)

        def forward(self, x):
            batch, given, height, width = x.shape
            filters = (self.share(x.mean((2, 3))).sigmoid() @ self.filters).view(batch * self.made, given, 3, 3)
            y = functional.conv2d(x.reshape(1, batch * given, height, width), filters, padding=1, groups=batch)
            return y.view(batch, self.made, height, width).relu()

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(conv_norm(3, 32, stride=2), conv_norm(32, 64, stride=2), MixedFilters.Layer(64, 64), MixedFilters.Layer(64, 64),
                                    conv_norm(64, 128, stride=2), MixedFilters.Layer(128, 128), MixedFilters.Layer(128, 128))
        self.head = nn.Linear(128, 100)

    def forward(self, x):
        return self.head(self.layers(x).mean((2, 3)))


class PixelFilters(nn.Module):
    """Filters that each pixel makes for itself, shared by the channels of a group (involution)."""

    class Layer(nn.Module):
        def __init__(self, width, size=7, group=16):
            super().__init__()
            self.size, self.groups = size, width // group
            self.make = nn.Sequential(conv_norm(width, width // 4, 1), nn.Conv2d(width // 4, size * size * self.groups, 1))

        def forward(self, x):
            batch, width, height, columns = x.shape
            filters = self.make(x).view(batch, self.groups, 1, self.size ** 2, height, columns)
            met = functional.unfold(x, self.size, padding=self.size // 2)
            met = met.view(batch, self.groups, width // self.groups, self.size ** 2, height, columns)
            return x + (met * filters).sum(3).view(x.shape).relu()

    def __init__(self, width=64, depth=3):
        super().__init__()
        self.layers = nn.Sequential(conv_norm(3, width // 2, stride=2), conv_norm(width // 2, width, stride=2),
                                    *(PixelFilters.Layer(width) for _ in range(depth)))
        self.head = nn.Linear(width, 100)

    def forward(self, x):
        return self.head(self.layers(x).mean((2, 3)))


class DenseRestorer(nn.Module):
    """Larger images by dense blocks inside of residual ones (ESRGAN)."""

    class Dense(nn.Module):
        def __init__(self, width, growth):
            super().__init__()
            self.convs = nn.ModuleList(nn.Conv2d(width + i * growth, growth if i < 4 else width, 3, padding=1) for i in range(5))

        def forward(self, x):
            met = [x]
            for conv in self.convs[:-1]:
                met.append(functional.leaky_relu(conv(torch.cat(met, 1)), 0.2))
            return x + 0.2 * self.convs[-1](torch.cat(met, 1))

    def __init__(self, width=64, growth=32, depth=3):
        super().__init__()
        self.first = nn.Conv2d(3, width, 3, padding=1)
        self.body = nn.Sequential(*(DenseRestorer.Dense(width, growth) for _ in range(depth)))
        self.up = nn.ModuleList(nn.Conv2d(width, width, 3, padding=1) for _ in range(3))
        self.last = nn.Conv2d(width, 3, 3, padding=1)

    def forward(self, x):
        x = self.first(x)
        x = x + self.up[0](x + 0.2 * self.body(x))
        for up in self.up[1:]:
            x = functional.leaky_relu(up(functional.interpolate(x, scale_factor=2, mode="nearest")), 0.2)
        return self.last(x)


class MappedNorms(nn.Module):
    """Images of a map of labels, which makes scales and shifts of norms (SPADE)."""

    class Norm(nn.Module):
        def __init__(self, width, labels, hidden=64):
            super().__init__()
            self.norm = nn.InstanceNorm2d(width)
            self.seen = nn.Sequential(nn.Conv2d(labels, hidden, 3, padding=1), nn.ReLU())
            self.scale, self.shift = (nn.Conv2d(hidden, width, 3, padding=1) for _ in range(2))

        def forward(self, x, labels):
            seen = self.seen(functional.interpolate(labels, size=x.shape[2:], mode="nearest"))
            return self.norm(x) * (1 + self.scale(seen)) + self.shift(seen)

    def __init__(self, labels=20, width=256):
        super().__init__()
        self.first = nn.Conv2d(labels, width, 3, padding=1)
        widths = [width >> i for i in range(4)]
        self.norms = nn.ModuleList(MappedNorms.Norm(w, labels) for w in widths)
        self.convs = nn.ModuleList(nn.Conv2d(w, w // 2, 3, padding=1) for w in widths)
        self.last = nn.Conv2d(width // 16, 3, 3, padding=1)

    def forward(self, labels):
        x = self.first(functional.interpolate(labels, size=(16, 16), mode="nearest"))
        for norm, conv in zip(self.norms, self.convs):
            x = conv(functional.leaky_relu(norm(x, labels), 0.2))
            x = functional.interpolate(x, scale_factor=2, mode="nearest") if x.shape[-1] < labels.shape[-1] else x
        return self.last(functional.leaky_relu(x, 0.2)).tanh()


class PooledPyramid(nn.Module):
    """Classes of pixels that see means over 1, 4, 9 and 36 parts of the image (PSPNet)."""

    def __init__(self, width=256, classes=19):
        super().__init__()
        self.body = nn.Sequential(conv_norm(3, 64, stride=2), conv_norm(64, 64), nn.MaxPool2d(3, 2, 1), conv_norm(64, 128),
                                  conv_norm(128, width, stride=2), conv_norm(width, width))
        self.sides = (1, 2, 3, 6)
        self.parts = nn.ModuleList(conv_norm(width, width // 4, 1) for _ in self.sides)
        self.head = nn.Sequential(conv_norm(2 * width, width), nn.Conv2d(width, classes, 1))

    def forward(self, x):
        y = self.body(x)
        parts = [functional.interpolate(part(functional.adaptive_avg_pool2d(y, side)), size=y.shape[2:], mode="bilinear")
                 for side, part in zip(self.sides, self.parts)]
        return functional.interpolate(self.head(torch.cat([y, *parts], 1)), scale_factor=8, mode="bilinear")


class Peaks(nn.Module):
    """Objects as the peaks of a map, by an hourglass (CenterNet): places, classes, and what other maps have there."""

    class Hourglass(nn.Module):
        def __init__(self, width, depth):
            super().__init__()
            self.beside, self.down, self.after = conv_norm(width, width), conv_norm(width, width, stride=2), conv_norm(width, width)
            self.inner = Peaks.Hourglass(width, depth - 1) if depth > 1 else conv_norm(width, width)

        def forward(self, x):
            return self.beside(x) + functional.interpolate(self.after(self.inner(self.down(x))), scale_factor=2, mode="nearest")

    def __init__(self, width=96, classes=20, kept=40):
        super().__init__()
        self.kept, self.classes = kept, classes
        self.first = nn.Sequential(conv_norm(3, 48, 7, stride=2), conv_norm(48, width, stride=2))
        self.body = Peaks.Hourglass(width, 4)
        self.heat, self.size = (nn.Sequential(conv_norm(width, 64), nn.Conv2d(64, made, 1)) for made in (classes, 4))

    def forward(self, x):
        y = self.body(self.first(x))
        heat, size = self.heat(y).sigmoid(), self.size(y).flatten(2)
        peaks = heat * (functional.max_pool2d(heat, 3, 1, 1) == heat).to(heat.dtype)
        scores, found = peaks.flatten(1).topk(self.kept)
        place = found % size.shape[-1]
        boxes = size.gather(2, place[:, None].expand(-1, 4, -1))
        return torch.cat([boxes, scores[:, None]], 1)


class TwoRates(nn.Module):
    """Videos read at two rates; few channels of many frames join many channels of few (SlowFast)."""

    @staticmethod
    def layer(given, made, size, stride=(1, 1, 1)):
        return nn.Sequential(nn.Conv3d(given, made, size, stride, tuple(s // 2 for s in size), bias=False), nn.BatchNorm3d(made), nn.ReLU())

    def __init__(self, slow=(64, 128, 256), fast=(8, 16, 32)):
        super().__init__()
        layer = TwoRates.layer
        self.slow_first, self.fast_first = layer(3, 32, (1, 7, 7), (1, 2, 2)), layer(3, 8, (5, 7, 7), (1, 2, 2))
        given, few = 32, 8
        self.slow, self.fast, self.join = nn.ModuleList(), nn.ModuleList(), nn.ModuleList()
        for made, made_few in zip(slow, fast):
            self.join.append(layer(few, 2 * few, (5, 1, 1), (4, 1, 1)))
            self.slow.append(nn.Sequential(layer(given + 2 * few, made, (1, 1, 1)), layer(made, made, (1, 3, 3), (1, 2, 2))))
            self.fast.append(nn.Sequential(layer(few, made_few, (3, 1, 1)), layer(made_few, made_few, (1, 3, 3), (1, 2, 2))))
            given, few = made, made_few
        self.head = nn.Linear(given + few, 100)

    def forward(self, x):
        slow, fast = self.slow_first(x[:, :, ::4]), self.fast_first(x)
        for a, b, join in zip(self.slow, self.fast, self.join):
            slow, fast = a(torch.cat([slow, join(fast)], 1)), b(fast)
        return self.head(torch.cat([slow.mean((2, 3, 4)), fast.mean((2, 3, 4))], 1))


class Board(nn.Module):
    """A tower over boards of 19 by 19, and heads for moves and for who wins."""

    class Block(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.a, self.b = conv_norm(width, width), conv_norm(width, width, act=nn.Identity)
            self.share = nn.Sequential(nn.Linear(width, width // 4), nn.ReLU(), nn.Linear(width // 4, 2 * width))

        def forward(self, x):
            y = self.b(self.a(x))
            scale, shift = self.share(y.mean((2, 3)))[:, :, None, None].chunk(2, 1)
            return (x + scale.sigmoid() * y + shift).relu()

    def __init__(self, width=128, depth=6):
        super().__init__()
        self.body = nn.Sequential(conv_norm(17, width), *(Board.Block(width) for _ in range(depth)))
        self.policy, self.moves = conv_norm(width, 2, 1), nn.Linear(2 * 361, 362)
        self.value, self.wins = conv_norm(width, 1, 1), nn.Sequential(nn.Linear(361, 256), nn.ReLU(), nn.Linear(256, 1), nn.Tanh())

    def forward(self, x):
        x = self.body(x)
        return torch.cat([self.moves(self.policy(x).flatten(1)), self.wins(self.value(x).flatten(1))], 1)


class Globe(nn.Module):
    """Fields over a sphere: columns go on around it, lines are repeated at the poles; a U-Net of such convolutions."""

    @staticmethod
    def around(x, pad=1):
        return functional.pad(functional.pad(x, (pad, pad, 0, 0), mode="circular"), (0, 0, pad, pad), mode="replicate")

    def __init__(self, fields=20, width=64):
        super().__init__()
        widths = [(fields, width), (width, 2 * width), (2 * width, 4 * width), (4 * width, 2 * width), (4 * width, width), (2 * width, width)]
        self.convs = nn.ModuleList(nn.Conv2d(*pair, 3) for pair in widths)
        self.last = nn.Conv2d(width, fields, 1)

    def forward(self, given):
        def layer(i, x):
            return functional.gelu(self.convs[i](Globe.around(x)))

        a = layer(0, given)
        b = layer(1, functional.avg_pool2d(a, 2))
        c = layer(3, layer(2, functional.avg_pool2d(b, 2)))
        b = layer(4, torch.cat([functional.interpolate(c, scale_factor=2, mode="nearest"), b], 1))
        a = layer(5, torch.cat([functional.interpolate(b, scale_factor=2, mode="nearest"), a], 1))
        return given + self.last(a)


class Clusters(nn.Module):
    """How features lie around clusters that they share, as one row of length one (NetVLAD)."""

    def __init__(self, width=256, clusters=64):
        super().__init__()
        self.body = nn.Sequential(conv_norm(3, 64, stride=2), conv_norm(64, 128, stride=2), conv_norm(128, width, stride=2), nn.Conv2d(width, width, 3, padding=1))
        self.share, self.centres = nn.Conv2d(width, clusters, 1), nn.Parameter(torch.randn(clusters, width) / 16)

    def forward(self, x):
        x = functional.normalize(self.body(x), dim=1)
        shares, features = self.share(x).flatten(2).softmax(1), x.flatten(2)
        around = torch.einsum("bkp,bcp->bkc", shares, features) - shares.sum(-1)[..., None] * self.centres
        return functional.normalize(functional.normalize(around, dim=2).flatten(1), dim=1)
