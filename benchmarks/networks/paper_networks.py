"""Images' networks of papers that no other file here has: large windows in parts, crossing stripes, routed windows, gates of
several orders, permuted axes, restoration without activations, detectors and segmenters with heads of their own."""
import torch
from own_networks import conv_norm
from torch import nn
from torch.nn import functional


class ChannelNorm(nn.Module):
    """A norm over the channels of each pixel, with a scale and a shift."""

    def __init__(self, width):
        super().__init__()
        self.scale, self.shift = nn.Parameter(1 + torch.randn(width) / 8), nn.Parameter(torch.randn(width) / 8)

    def forward(self, x):
        centred = x - x.mean(1, keepdim=True)
        spread = centred.square().mean(1, keepdim=True)
        return centred / (spread + 1e-6).sqrt() * self.scale[:, None, None] + self.shift[:, None, None]


class LargeKernels(nn.Module):
    """VAN: a gate for each pixel of a depthwise 5x5 and a dilated 7x7 window, and perceptrons with a depthwise 3x3."""

    class Block(nn.Module):
        def __init__(self, width, ratio):
            super().__init__()
            wide = width * ratio
            self.norms = nn.ModuleList(nn.BatchNorm2d(width) for _ in range(2))
            self.first, self.last = nn.Conv2d(width, width, 1), nn.Conv2d(width, width, 1)
            self.near = nn.Conv2d(width, width, 5, padding=2, groups=width)
            self.far = nn.Conv2d(width, width, 7, padding=9, dilation=3, groups=width)
            self.mix = nn.Conv2d(width, width, 1)
            self.up, self.down = nn.Conv2d(width, wide, 1), nn.Conv2d(wide, width, 1)
            self.beside = nn.Conv2d(wide, wide, 3, padding=1, groups=wide)
            self.scales = nn.ParameterList(torch.rand(width, 1, 1) / 4 for _ in range(2))

        def forward(self, x):
            y = self.norms[0](x)
            u = functional.gelu(self.first(y))
            x = x + self.scales[0] * (self.last(u * self.mix(self.far(self.near(u)))) + y)
            return x + self.scales[1] * self.down(functional.gelu(self.beside(self.up(self.norms[1](x)))))

    def __init__(self, widths=(32, 64, 160, 256), depths=(2, 2, 4, 2), ratios=(8, 8, 4, 4)):
        super().__init__()
        layers, given = [], 3
        for i, (width, depth, ratio) in enumerate(zip(widths, depths, ratios)):
            size, stride = (7, 4) if i == 0 else (3, 2)
            layers += [nn.Conv2d(given, width, size, stride, size // 2), nn.BatchNorm2d(width)]
            layers += [LargeKernels.Block(width, ratio) for _ in range(depth)] + [ChannelNorm(width)]
            given = width
        self.layers, self.head = nn.Sequential(*layers), nn.Linear(given, 100)

    def forward(self, x):
        return self.head(self.layers(x).mean((2, 3)))


class GatesOfOrders(nn.Module):
    """HorNet: channels in parts of growing width, each a gate of the next, behind one depthwise 7x7 window."""

    class Block(nn.Module):
        def __init__(self, width, order=4):
            super().__init__()
            self.dims = [width // 2 ** i for i in reversed(range(order))]
            self.norms = nn.ModuleList(ChannelNorm(width) for _ in range(2))
            self.enter, self.leave = nn.Conv2d(width, 2 * width, 1), nn.Conv2d(width, width, 1)
            self.windows = nn.Conv2d(sum(self.dims), sum(self.dims), 7, padding=3, groups=sum(self.dims))
            self.steps = nn.ModuleList(nn.Conv2d(a, b, 1) for a, b in zip(self.dims, self.dims[1:]))
            self.up, self.down = nn.Conv2d(width, 4 * width, 1), nn.Conv2d(4 * width, width, 1)

        def forward(self, x):
            both = self.enter(self.norms[0](x))
            first, rest = both.split((self.dims[0], sum(self.dims)), 1)
            gates = (self.windows(rest) / 3).split(self.dims, 1)
            y = first * gates[0]
            for step, gate in zip(self.steps, gates[1:]):
                y = step(y) * gate
            x = x + self.leave(y)
            return x + self.down(functional.gelu(self.up(self.norms[1](x))))

    def __init__(self, widths=(64, 128, 256), depths=(2, 2, 4)):
        super().__init__()
        layers, given = [], 3
        for i, (width, depth) in enumerate(zip(widths, depths)):
            size = 4 if i == 0 else 2
            layers += [nn.Conv2d(given, width, size, size)] + [GatesOfOrders.Block(width) for _ in range(depth)]
            given = width
        self.layers, self.head = nn.Sequential(*layers), nn.Linear(given, 100)

    def forward(self, x):
        return self.head(self.layers(x).mean((2, 3)))


class CrossedStripes(nn.Module):
    """CSWin: half of the heads attend within columns of stripes, half within rows, with depthwise windows over values."""

    class Block(nn.Module):
        def __init__(self, width, heads, size, stripe):
            super().__init__()
            self.heads, self.size, self.stripe = heads, size, stripe
            self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
            self.all, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.beside = nn.ModuleList(nn.Conv2d(width // 2, width // 2, 3, padding=1, groups=width // 2) for _ in range(2))
            self.perceptron = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

        def attend(self, x, h, w, beside):
            batch, _, width = x[0].shape
            down, along, heads = self.size // h, self.size // w, self.heads // 2

            def parts(t):
                t = t.view(batch, down, h, along, w, heads, width // heads)
                return t.permute(0, 1, 3, 5, 2, 4, 6).reshape(-1, heads, h * w, width // heads)

            q, k, v = (parts(t) for t in x)
            image = x[2].transpose(1, 2).view(batch, width, self.size, self.size)
            image = image.view(batch, width, down, h, along, w).permute(0, 2, 4, 1, 3, 5).reshape(-1, width, h, w)
            near = beside(image).view(-1, heads, width // heads, h * w).transpose(2, 3)
            y = functional.scaled_dot_product_attention(q, k, v) + near
            y = y.view(batch, down, along, heads, h, w, width // heads).permute(0, 1, 4, 2, 5, 3, 6)
            return y.reshape(batch, -1, width)

        def forward(self, x):
            qkv = self.all(self.norms[0](x)).chunk(3, 2)
            half = x.shape[2] // 2
            columns = self.attend([t[:, :, :half] for t in qkv], self.size, self.stripe, self.beside[0])
            rows = self.attend([t[:, :, half:] for t in qkv], self.stripe, self.size, self.beside[1])
            x = x + self.out(torch.cat([columns, rows], 2))
            return x + self.perceptron(self.norms[1](x))

    def __init__(self, widths=(64, 128, 256), depths=(1, 2, 4), heads=(2, 4, 8), stripes=(1, 2, 7)):
        super().__init__()
        self.first, size = nn.Conv2d(3, widths[0], 7, 4, 3), 56
        self.stages, self.merges = nn.ModuleList(), nn.ModuleList()
        for i, (width, depth) in enumerate(zip(widths, depths)):
            self.stages.append(nn.Sequential(*[CrossedStripes.Block(width, heads[i], size, stripes[i]) for _ in range(depth)]))
            if i + 1 < len(widths):
                self.merges.append(nn.Conv2d(width, widths[i + 1], 3, 2, 1))
            size //= 2
        self.head = nn.Sequential(nn.LayerNorm(widths[-1]), nn.Linear(widths[-1], 100))

    def forward(self, x):
        x = self.first(x)
        for i, stage in enumerate(self.stages):
            size = x.shape[2:]
            x = stage(x.flatten(2).transpose(1, 2)).transpose(1, 2).unflatten(2, size)
            if i < len(self.merges):
                x = self.merges[i](x)
        return self.head(x.flatten(2).mean(2))


class RoutedWindows(nn.Module):
    """BiFormer: each of 49 windows attends to the four whose means fit its own best."""

    def __init__(self, width=128, heads=4, windows=7, nearest=4, depth=3):
        super().__init__()
        self.heads, self.windows, self.nearest = heads, windows, nearest
        self.first = nn.Sequential(conv_norm(3, width // 2, stride=2), conv_norm(width // 2, width, stride=2))
        self.all = nn.ModuleList(nn.Linear(width, 3 * width) for _ in range(depth))
        self.out = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(depth))
        self.up = nn.ModuleList(nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.GELU(), nn.Linear(3 * width, width))
                                for _ in range(depth))
        self.head = nn.Linear(width, 100)

    def attend(self, x, every):
        batch, count, size, width = x.shape
        q, k, v = every(x).chunk(3, 3)
        fits = q.mean(2) @ k.mean(2).transpose(1, 2)
        chosen = fits.topk(self.nearest, 2).indices  # [batch, count, nearest]
        index = chosen.view(batch, count * self.nearest, 1, 1).expand(-1, -1, size, width)

        def heads(t, rows):
            return t.reshape(batch, count, rows, self.heads, width // self.heads).transpose(2, 3)

        k, v = (heads(t.gather(1, index).view(batch, count, self.nearest * size, width), self.nearest * size) for t in (k, v))
        scores = (heads(q, size) @ k.transpose(3, 4)) * (width // self.heads) ** -0.5
        return (scores.softmax(-1) @ v).transpose(2, 3).reshape(batch, count, size, width)

    def forward(self, x):
        x = self.first(x).permute(0, 2, 3, 1)
        batch, h, w, width = x.shape
        n = self.windows
        x = x.view(batch, n, h // n, n, w // n, width).transpose(2, 3).reshape(batch, n * n, -1, width)
        for every, out, norm, up in zip(self.all, self.out, self.norms, self.up):
            x = x + out(self.attend(norm(x), every))
            x = x + up(x)
        return self.head(x.mean((1, 2)))


class Permutator(nn.Module):
    """ViP: rows, columns and channels are mixed apart by turned products, and weighted by a softmax of what they sum to."""

    class Block(nn.Module):
        def __init__(self, width, segments):
            super().__init__()
            self.segments = segments
            self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
            self.rows, self.columns, self.channels, self.out = (nn.Linear(width, width) for _ in range(4))
            self.weights = nn.Sequential(nn.Linear(width, width // 4), nn.GELU(), nn.Linear(width // 4, 3 * width))
            self.perceptron = nn.Sequential(nn.Linear(width, 3 * width), nn.GELU(), nn.Linear(3 * width, width))

        def forward(self, x):
            batch, h, w, width = x.shape
            y, part = self.norms[0](x), width // self.segments
            split = y.view(batch, h, w, self.segments, part)
            down = self.rows(split.permute(0, 3, 2, 1, 4).reshape(batch, self.segments, w, h * part))
            down = down.view(batch, self.segments, w, h, part).permute(0, 3, 2, 1, 4).reshape(batch, h, w, width)
            along = self.columns(split.permute(0, 1, 3, 2, 4).reshape(batch, h, self.segments, w * part))
            along = along.view(batch, h, self.segments, w, part).permute(0, 1, 3, 2, 4).reshape(batch, h, w, width)
            three = torch.stack([down, along, self.channels(y)])
            weights = self.weights(three.sum(0).mean((1, 2))).view(batch, width, 3).permute(2, 0, 1).softmax(0)
            x = x + self.out((three * weights[:, :, None, None]).sum(0))
            return x + self.perceptron(self.norms[1](x))

    def __init__(self, width=256, segments=16, depth=6):
        super().__init__()
        self.first = nn.Conv2d(3, width, 14, 14)
        self.blocks = nn.Sequential(*[Permutator.Block(width, segments) for _ in range(depth)])
        self.head = nn.Linear(width, 100)

    def forward(self, x):
        return self.head(self.blocks(self.first(x).permute(0, 2, 3, 1)).mean((1, 2)))


class PlainRestorer(nn.Module):
    """NAFNet: halves of channels multiplied instead of activations, channels weighted by their means, a U of four sizes."""

    class Block(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.norms = nn.ModuleList(ChannelNorm(width) for _ in range(2))
            self.enter, self.leave = nn.Conv2d(width, 2 * width, 1), nn.Conv2d(width, width, 1)
            self.beside = nn.Conv2d(2 * width, 2 * width, 3, padding=1, groups=2 * width)
            self.weights = nn.Conv2d(width, width, 1)
            self.up, self.down = nn.Conv2d(width, 2 * width, 1), nn.Conv2d(width, width, 1)
            self.scales = nn.ParameterList(torch.rand(1, width, 1, 1) / 4 for _ in range(2))

        def forward(self, x):
            a, b = self.beside(self.enter(self.norms[0](x))).chunk(2, 1)
            y = a * b
            x = x + self.leave(y * self.weights(y.mean((2, 3), keepdim=True))) * self.scales[0]
            a, b = self.up(self.norms[1](x)).chunk(2, 1)
            return x + self.down(a * b) * self.scales[1]

    def __init__(self, width=32, depth=3):
        super().__init__()
        block, widths = PlainRestorer.Block, [width << i for i in range(depth + 1)]
        self.first, self.last = nn.Conv2d(3, width, 3, padding=1), nn.Conv2d(width, 3, 3, padding=1)
        self.down = nn.ModuleList(block(w) for w in widths[:-1])
        self.shrink = nn.ModuleList(nn.Conv2d(w, 2 * w, 2, 2) for w in widths[:-1])
        self.middle = nn.Sequential(block(widths[-1]), block(widths[-1]))
        self.grow = nn.ModuleList(nn.Sequential(nn.Conv2d(2 * w, 4 * w, 1, bias=False), nn.PixelShuffle(2)) for w in reversed(widths[:-1]))
        self.up = nn.ModuleList(block(w) for w in reversed(widths[:-1]))

    def forward(self, x):
        y, kept = self.first(x), []
        for block, shrink in zip(self.down, self.shrink):
            kept.append(block(y))
            y = shrink(kept[-1])
        y = self.middle(y)
        for block, grow, side in zip(self.up, self.grow, reversed(kept)):
            y = block(grow(y) + side)
        return x + self.last(y)


class Detector(nn.Module):
    """YOLOv8: split bottlenecks, repeated poolings, three sizes both ways, and sides of boxes as means of 16 bins."""

    class Split(nn.Module):
        def __init__(self, given, made, count=1, adds=True):
            super().__init__()
            act, half = nn.SiLU, made // 2
            self.first, self.last, self.adds = conv_norm(given, made, 1, act=act), conv_norm((2 + count) * half, made, 1, act=act), adds
            self.parts = nn.ModuleList(nn.Sequential(conv_norm(half, half, act=act), conv_norm(half, half, act=act)) for _ in range(count))

        def forward(self, x):
            y = list(self.first(x).chunk(2, 1))
            for part in self.parts:
                y.append(y[-1] + part(y[-1]) if self.adds else part(y[-1]))
            return self.last(torch.cat(y, 1))

    def __init__(self, width=32, classes=20, bins=16):
        super().__init__()
        act, split = nn.SiLU, Detector.Split
        widths = [width, 2 * width, 4 * width, 8 * width]
        self.bins, self.first = bins, nn.Sequential(conv_norm(3, width // 2, stride=2, act=act), conv_norm(width // 2, width, stride=2, act=act), split(width, width))
        self.stages = nn.ModuleList(nn.Sequential(conv_norm(a, b, stride=2, act=act), split(a * 2, b, 2)) for a, b in zip(widths, widths[1:]))
        w3, w4, w5 = widths[1:]
        self.before, self.after = conv_norm(w5, w5 // 2, 1, act=act), conv_norm(2 * w5, w5, 1, act=act)
        self.up = nn.ModuleList([split(w5 + w4, w4, adds=False), split(w4 + w3, w3, adds=False)])
        self.down = nn.ModuleList([conv_norm(w3, w3, stride=2, act=act), conv_norm(w4, w4, stride=2, act=act)])
        self.joined = nn.ModuleList([split(w3 + w4, w4, adds=False), split(w4 + w5, w5, adds=False)])
        head = lambda given, made: nn.Sequential(conv_norm(given, 64, act=act), conv_norm(64, 64, act=act), nn.Conv2d(64, made, 1))  # noqa: E731
        self.boxes, self.classes = (nn.ModuleList(head(w, n) for w in (w3, w4, w5)) for n in (4 * bins, classes))

    def forward(self, x):
        x = self.first(x)
        c3 = self.stages[0](x)
        c4 = self.stages[1](c3)
        y = self.before(self.stages[2](c4))
        pools = [y]
        for _ in range(3):
            pools.append(functional.max_pool2d(pools[-1], 5, 1, 2))
        c5 = self.after(torch.cat(pools, 1))
        p4 = self.up[0](torch.cat([functional.interpolate(c5, scale_factor=2.0), c4], 1))
        p3 = self.up[1](torch.cat([functional.interpolate(p4, scale_factor=2.0), c3], 1))
        p4 = self.joined[0](torch.cat([self.down[0](p3), p4], 1))
        p5 = self.joined[1](torch.cat([self.down[1](p4), c5], 1))
        made = [torch.cat([box(p), kind(p)], 1).flatten(2) for box, kind, p in zip(self.boxes, self.classes, (p3, p4, p5))]
        boxes, classes = torch.cat(made, 2).split((4 * self.bins, made[0].shape[1] - 4 * self.bins), 1)
        places = torch.arange(self.bins, dtype=x.dtype, device=x.device)
        sides = (boxes.unflatten(1, (4, self.bins)).softmax(2) * places[:, None]).sum(2)
        return torch.cat([sides, classes.sigmoid()], 1)


class PixelsAndChannels(nn.Module):
    """DANet: a map of features in which pixels attend to all pixels, and channels to all channels."""

    def __init__(self, width=128, classes=19):
        super().__init__()
        self.first = nn.Sequential(conv_norm(3, 32, stride=2), conv_norm(32, 64, stride=2), conv_norm(64, width, stride=2), conv_norm(width, width))
        self.queries, self.keys, self.values = nn.Conv2d(width, width // 8, 1), nn.Conv2d(width, width // 8, 1), nn.Conv2d(width, width, 1)
        self.gammas = nn.ParameterList(torch.full((1,), 0.5) for _ in range(2))
        self.mixes, self.last = nn.ModuleList(conv_norm(width, width) for _ in range(2)), nn.Conv2d(width, classes, 1)

    def forward(self, x):
        x = self.first(x)
        size, y = x.shape[2:], x.flatten(2)
        q, k, v = (each(x).flatten(2) for each in (self.queries, self.keys, self.values))
        pixels = v @ (q.transpose(1, 2) @ k).softmax(-1).transpose(1, 2)
        fits = y @ y.transpose(1, 2)
        channels = (fits.amax(-1, keepdim=True) - fits).softmax(-1) @ y
        both = [mix((gamma * each).unflatten(2, size) + x) for mix, gamma, each in zip(self.mixes, self.gammas, (pixels, channels))]
        return functional.interpolate(self.last(both[0] + both[1]), scale_factor=8.0, mode="bilinear", align_corners=False)


class FactoredSegments(nn.Module):
    """ERFNet: 3x1 and 1x3 convolutions in turn, dilated up to 16, strided ones beside poolings, transposed ones back."""

    class Block(nn.Module):
        def __init__(self, width, far):
            super().__init__()
            self.layers = nn.Sequential(
                nn.Conv2d(width, width, (3, 1), padding=(1, 0)), nn.ReLU(), nn.Conv2d(width, width, (1, 3), padding=(0, 1), bias=False),
                nn.BatchNorm2d(width), nn.ReLU(), nn.Conv2d(width, width, (3, 1), padding=(far, 0), dilation=(far, 1)), nn.ReLU(),
                nn.Conv2d(width, width, (1, 3), padding=(0, far), dilation=(1, far), bias=False), nn.BatchNorm2d(width))

        def forward(self, x):
            return functional.relu(x + self.layers(x))

    class Shrink(nn.Module):
        def __init__(self, given, made):
            super().__init__()
            self.conv, self.norm = nn.Conv2d(given, made - given, 3, 2, 1), nn.BatchNorm2d(made)

        def forward(self, x):
            return functional.relu(self.norm(torch.cat([self.conv(x), functional.max_pool2d(x, 2)], 1)))

    def __init__(self, classes=20):
        super().__init__()
        block, shrink = FactoredSegments.Block, FactoredSegments.Shrink
        self.layers = nn.Sequential(
            shrink(3, 16), shrink(16, 64), block(64, 1), block(64, 1), shrink(64, 128), *[block(128, far) for far in (2, 4, 8, 16)],
            nn.ConvTranspose2d(128, 64, 3, 2, 1, 1), nn.BatchNorm2d(64), nn.ReLU(), block(64, 1),
            nn.ConvTranspose2d(64, 16, 3, 2, 1, 1), nn.BatchNorm2d(16), nn.ReLU(), block(16, 1), nn.ConvTranspose2d(16, classes, 2, 2))

    def forward(self, x):
        return self.layers(x)


class PairedImages(nn.Module):
    """pix2pix: strided 4x4 convolutions down to one pixel, transposed ones back, each beside what came on the way down."""

    def __init__(self, width=32, depth=7):
        super().__init__()
        widths = [min(width << i, 8 * width) for i in range(depth)]
        norm = lambda made, i: nn.BatchNorm2d(made) if 0 < i < depth - 1 else nn.Identity()  # noqa: E731
        self.down = nn.ModuleList(nn.Sequential(nn.Conv2d(a, b, 4, 2, 1), norm(b, i)) for i, (a, b) in enumerate(zip([3, *widths], widths)))
        given = [widths[-1]] + [2 * w for w in reversed(widths[:-1])]
        made = [*reversed(widths[:-1]), 3]
        self.up = nn.ModuleList(nn.Sequential(nn.ConvTranspose2d(a, b, 4, 2, 1), norm(b, i)) for i, (a, b) in enumerate(zip(given, made)))

    def forward(self, x):
        kept = []
        for i, layer in enumerate(self.down):
            x = layer(functional.leaky_relu(x, 0.2) if i else x)
            kept.append(x)
        for i, layer in enumerate(self.up):
            x = layer(functional.relu(x if i == 0 else torch.cat([x, kept[-1 - i]], 1)))
        return x.tanh()


class SharedHeads(nn.Module):
    """FCOS: convolutions with norms of groups that five sizes share, scales of their own, centres beside classes."""

    def __init__(self, width=128, classes=20):
        super().__init__()
        self.stages = nn.ModuleList(nn.Sequential(conv_norm(a, b, stride=2), conv_norm(b, b)) for a, b in ((3, 32), (32, 64), (64, 128), (128, 256), (256, 512)))
        self.sides = nn.ModuleList(nn.Conv2d(w, width, 1) for w in (128, 256, 512))
        self.smooth = nn.ModuleList(nn.Conv2d(width, width, 3, padding=1) for _ in range(3))
        self.further = nn.ModuleList(nn.Conv2d(width, width, 3, 2, 1) for _ in range(2))
        tower = lambda: nn.Sequential(*[layer for _ in range(2) for layer in (nn.Conv2d(width, width, 3, padding=1), nn.GroupNorm(16, width), nn.ReLU())])  # noqa: E731
        self.kinds, self.boxes = tower(), tower()
        self.kind, self.box, self.centre = (nn.Conv2d(width, n, 3, padding=1) for n in (classes, 4, 1))
        self.scales = nn.Parameter(torch.linspace(0.5, 1.5, 5))

    def forward(self, x):
        kept = []
        for stage in self.stages:
            x = stage(x)
            kept.append(x)
        sides = [side(each) for side, each in zip(self.sides, kept[2:])]
        for i in (1, 0):
            sides[i] = sides[i] + functional.interpolate(sides[i + 1], scale_factor=2.0)
        levels = [smooth(side) for smooth, side in zip(self.smooth, sides)]
        for further in self.further:
            levels.append(further(levels[-1].relu()))
        rows = []
        for i, level in enumerate(levels):
            kinds, boxes = self.kinds(level), self.boxes(level)
            rows.append(torch.cat([self.kind(kinds).sigmoid() * self.centre(boxes).sigmoid(), (self.box(boxes) * self.scales[i]).exp()], 1).flatten(2))
        return torch.cat(rows, 2)
