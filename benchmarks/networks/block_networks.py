"""Networks of images whose blocks no other file here has: gates along lines and columns, gates of turned maps, boxes as shares of
steps, points that are looked at again, heads that each object makes for itself, depths as shares of bins, norms that divide by sums of
squares, windows that leave holes out, classes as what pixels look at, channels that stay behind, volumes as tokens."""
import torch
from torch import nn
from torch.nn import functional as F


def conv(given, made, size=3, stride=1, groups=1, act=nn.ReLU):
    return nn.Sequential(nn.Conv2d(given, made, size, stride, size // 2, groups=groups, bias=False), nn.BatchNorm2d(made), act())


class Attention(nn.Module):
    """Of tokens on themselves or on others; `bias` is added to scores."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.q, self.kv, self.out = heads, nn.Linear(width, width), nn.Linear(width, 2 * width), nn.Linear(width, width)

    def forward(self, x, other=None, bias=None):
        q = self.q(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
        k, v = self.kv(x if other is None else other).unflatten(-1, (2, self.heads, -1)).permute(2, 0, 3, 1, 4)
        if bias is None:
            seen = F.scaled_dot_product_attention(q, k, v)
        else:
            seen = (q @ k.transpose(2, 3) * q.shape[-1] ** -0.5 + bias).softmax(-1) @ v
        return self.out(seen.transpose(1, 2).flatten(2))


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.first, self.second, self.attention = nn.LayerNorm(width), nn.LayerNorm(width), Attention(width, heads)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x, bias=None):
        x = x + self.attention(self.first(x), bias=bias)
        return x + self.mlp(self.second(x))


class LineGates(nn.Module):
    """Inverted residuals whose channels are gated along lines and along columns (coordinate attention)."""

    class Gate(nn.Module):
        def __init__(self, width):
            super().__init__()
            inner = max(8, width // 32)
            self.join = conv(width, inner, 1, act=nn.Hardswish)
            self.lines, self.columns = nn.Conv2d(inner, width, 1), nn.Conv2d(inner, width, 1)

        def forward(self, x):
            height, width = x.shape[2:]
            means = torch.cat([x.mean(3, keepdim=True), x.mean(2, keepdim=True).transpose(2, 3)], 2)
            lines, columns = self.join(means).split([height, width], 2)
            return x * self.lines(lines).sigmoid() * self.columns(columns.transpose(2, 3)).sigmoid()

    class Block(nn.Module):
        def __init__(self, given, made, stride, times=6):
            super().__init__()
            wide = given * times
            self.layers = nn.Sequential(conv(given, wide, 1, act=nn.ReLU6), conv(wide, wide, 3, stride, wide, nn.ReLU6), LineGates.Gate(wide),
                                        conv(wide, made, 1, act=nn.Identity))
            self.stays = stride == 1 and given == made

        def forward(self, x):
            return x + self.layers(x) if self.stays else self.layers(x)

    def __init__(self):
        super().__init__()
        rows = [(16, 1), (24, 2), (24, 1), (40, 2), (40, 1), (80, 2), (80, 1), (112, 1), (160, 2), (160, 1)]
        layers, given = [conv(3, 32, 3, 2, act=nn.ReLU6)], 32
        for made, stride in rows:
            layers.append(LineGates.Block(given, made, stride))
            given = made
        self.layers, self.head = nn.Sequential(*layers, conv(160, 960, 1)), nn.Linear(960, 1000)

    def forward(self, x):
        return self.head(self.layers(x).mean((2, 3)))


class TurnedGates(nn.Module):
    """A residual network whose maps are gated from three sides: greatest and mean of one axis, a 7x7 window over the others."""

    class Gate(nn.Module):
        def __init__(self):
            super().__init__()
            self.windows = nn.ModuleList(nn.Sequential(nn.Conv2d(2, 1, 7, padding=3, bias=False), nn.BatchNorm2d(1)) for _ in range(3))

        def gated(self, x, window):
            return x * window(torch.cat([x.amax(1, keepdim=True), x.mean(1, keepdim=True)], 1)).sigmoid()

        def forward(self, x):
            over_lines = self.gated(x.transpose(1, 2), self.windows[0]).transpose(1, 2)
            over_columns = self.gated(x.transpose(1, 3), self.windows[1]).transpose(1, 3)
            return (self.gated(x, self.windows[2]) + over_lines + over_columns) / 3

    class Block(nn.Module):
        def __init__(self, given, made, stride):
            super().__init__()
            self.layers = nn.Sequential(conv(given, made, 3, stride), conv(made, made, act=nn.Identity), TurnedGates.Gate())
            self.beside = conv(given, made, 1, stride, act=nn.Identity) if given != made else nn.Identity()

        def forward(self, x):
            return (self.layers(x) + self.beside(x)).relu()

    def __init__(self):
        super().__init__()
        widths = [64, 64, 64, 128, 128, 256, 256, 512, 512]
        self.first = nn.Sequential(conv(3, 64, 7, 2), nn.MaxPool2d(3, 2, 1))
        self.blocks = nn.Sequential(*(TurnedGates.Block(a, b, 2 if a != b else 1) for a, b in zip(widths, widths[1:])))
        self.head = nn.Linear(512, 1000)

    def forward(self, x):
        return self.head(self.blocks(self.first(x)).mean((2, 3)))


class StepBoxes(nn.Module):
    """A detector whose boxes' sides are shares of 16 steps, on three maps; the best 100 boxes (as YOLOv8)."""

    class Split(nn.Module):
        def __init__(self, given, made, depth, stays=True):
            super().__init__()
            self.half, self.stays = made // 2, stays
            self.first, self.last = conv(given, made, 1, act=nn.SiLU), conv(made // 2 * (depth + 2), made, 1, act=nn.SiLU)
            self.layers = nn.ModuleList(nn.Sequential(conv(self.half, self.half, act=nn.SiLU), conv(self.half, self.half, act=nn.SiLU))
                                        for _ in range(depth))

        def forward(self, x):
            parts = list(self.first(x).chunk(2, 1))
            for layer in self.layers:
                parts.append(parts[-1] + layer(parts[-1]) if self.stays else layer(parts[-1]))
            return self.last(torch.cat(parts, 1))

    class Pools(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.first, self.last = conv(width, width // 2, 1, act=nn.SiLU), conv(width * 2, width, 1, act=nn.SiLU)

        def forward(self, x):
            parts = [self.first(x)]
            for _ in range(3):
                parts.append(F.max_pool2d(parts[-1], 5, 1, 2))
            return self.last(torch.cat(parts, 1))

    def __init__(self, classes=80, steps=16):
        super().__init__()
        part, act = StepBoxes.Split, nn.SiLU
        self.first = nn.Sequential(conv(3, 16, 3, 2, act=act), conv(16, 32, 3, 2, act=act), part(32, 32, 1), conv(32, 64, 3, 2, act=act), part(64, 64, 2))
        self.second = nn.Sequential(conv(64, 128, 3, 2, act=act), part(128, 128, 2))
        self.third = nn.Sequential(conv(128, 256, 3, 2, act=act), part(256, 256, 1), StepBoxes.Pools(256))
        self.up, self.finer = part(384, 128, 1, False), part(192, 64, 1, False)
        self.down, self.coarser = conv(64, 64, 3, 2, act=act), conv(128, 128, 3, 2, act=act)
        self.middle, self.coarse = part(192, 128, 1, False), part(384, 256, 1, False)
        head = lambda width, made, last: nn.Sequential(conv(width, made, act=act), conv(made, made, act=act), nn.Conv2d(made, last, 1))
        self.boxes = nn.ModuleList(head(width, 64, 4 * steps) for width in (64, 128, 256))
        self.kinds = nn.ModuleList(head(width, 80, classes) for width in (64, 128, 256))
        self.register_buffer("steps", torch.arange(steps, dtype=torch.float32))

    def decoded(self, sides, stride):
        batch, _, height, width = sides.shape
        sides = (sides.view(batch, 4, -1, height * width).softmax(2) * self.steps[:, None].to(sides.dtype)).sum(2)
        y, x = torch.meshgrid(torch.arange(height, device=sides.device), torch.arange(width, device=sides.device), indexing="ij")
        middle = torch.stack([x, y]).flatten(1).to(sides.dtype) + 0.5
        low, high = middle - sides[:, :2], middle + sides[:, 2:]
        return torch.cat([(low + high) / 2, high - low], 1) * stride

    def forward(self, x):
        first = self.first(x)
        second = self.second(first)
        third = self.third(second)
        middle = self.up(torch.cat([F.interpolate(third, scale_factor=2.), second], 1))
        fine = self.finer(torch.cat([F.interpolate(middle, scale_factor=2.), first], 1))
        middle = self.middle(torch.cat([self.down(fine), middle], 1))
        maps = fine, middle, self.coarse(torch.cat([self.coarser(middle), third], 1))
        boxes = torch.cat([self.decoded(head(m), stride) for head, m, stride in zip(self.boxes, maps, (8, 16, 32))], 2)
        kinds = torch.cat([head(m).flatten(2) for head, m in zip(self.kinds, maps)], 2).sigmoid()
        scores, kept = kinds.amax(1).topk(100, 1)
        return torch.cat([boxes.gather(2, kept[:, None].expand(-1, 4, -1)), scores[:, None]], 1)


class LookedAgain(nn.Module):
    """Classes of pixels, of which the least certain are made again from finer features (PointRend)."""

    def __init__(self, classes=19, points=1024):
        super().__init__()
        self.points = points
        self.fine = nn.Sequential(conv(3, 64, 3, 2), conv(64, 64))
        self.coarse = nn.Sequential(conv(64, 128, 3, 2), conv(128, 128), conv(128, 256, 3, 2), conv(256, 256), nn.Conv2d(256, classes, 1))
        self.mlp = nn.Sequential(nn.Conv1d(64 + classes, 128, 1), nn.ReLU(), nn.Conv1d(128, 128, 1), nn.ReLU(), nn.Conv1d(128, classes, 1))

    def forward(self, x):
        fine = self.fine(x)
        scores = self.coarse(fine)
        for _ in range(2):
            scores = F.interpolate(scores, scale_factor=2, mode="bilinear", align_corners=False)
            height, width = scores.shape[2:]
            best = scores.topk(2, 1).values
            index = (best[:, 1] - best[:, 0]).flatten(1).topk(self.points, 1).indices
            x = (index % width + 0.5) * (2 / width) - 1
            y = (torch.div(index, width, rounding_mode="floor") + 0.5) * (2 / height) - 1
            places = torch.stack([x, y], -1)[:, :, None].to(scores.dtype)
            seen = [F.grid_sample(m, places, align_corners=False)[..., 0] for m in (fine, scores)]
            made = self.mlp(torch.cat(seen, 1))
            scores = scores.flatten(2).scatter(2, index[:, None].expand(-1, made.shape[1], -1), made).unflatten(2, (height, width))
        return scores


class OwnHeads(nn.Module):
    """Masks of objects by three 1x1 layers whose weights each object makes (CondInst)."""

    def __init__(self, objects=32, inner=8):
        super().__init__()
        self.objects, self.inner = objects, inner
        self.body = nn.Sequential(conv(3, 32, 3, 2), conv(32, 64, 3, 2), conv(64, 128))
        self.deep = nn.Sequential(conv(128, 256, 3, 2), conv(256, 256, 3, 2), conv(256, 256))
        self.sizes = [(inner + 2) * inner, inner, inner * inner, inner, inner, 1]
        self.scores, self.filters = nn.Conv2d(256, 1, 1), nn.Conv2d(256, sum(self.sizes), 3, padding=1)
        self.maps = nn.Sequential(conv(128, 128), nn.Conv2d(128, inner, 1))

    def forward(self, x):
        near = self.body(x)
        far, maps = self.deep(near), self.maps(near)
        batch, (rows, columns), (height, width) = x.shape[0], far.shape[2:], maps.shape[2:]
        index = self.scores(far).flatten(1).topk(self.objects, 1).indices
        made = self.filters(far).flatten(2).transpose(1, 2).gather(1, index[..., None].expand(-1, -1, sum(self.sizes)))
        w1, b1, w2, b2, w3, b3 = made.split(self.sizes, 2)
        at_x, at_y = (index % columns).to(x.dtype) * 4, torch.div(index, columns, rounding_mode="floor").to(x.dtype) * 4
        along = (torch.arange(width, device=x.device).to(x.dtype) - at_x[..., None]) / 64
        down = (torch.arange(height, device=x.device).to(x.dtype) - at_y[..., None]) / 64
        places = torch.stack([along[:, :, None].expand(-1, -1, height, -1), down[..., None].expand(-1, -1, -1, width)], 2)
        seen = torch.cat([places, maps[:, None].expand(-1, self.objects, -1, -1, -1)], 2).flatten(3)
        y = (w1.unflatten(2, (self.inner, -1)) @ seen + b1[..., None]).relu()
        y = (w2.unflatten(2, (self.inner, -1)) @ y + b2[..., None]).relu()
        return (w3[:, :, None] @ y + b3[..., None]).sigmoid().view(batch, self.objects, height, width)


class BinnedDepths(nn.Module):
    """Depths as a share of bins, whose widths a few tokens choose for each image (AdaBins)."""

    def __init__(self, bins=256, width=128):
        super().__init__()
        self.down = nn.ModuleList([conv(3, 32, 3, 2), conv(32, 64, 3, 2), conv(64, 128, 3, 2), conv(128, 256, 3, 2)])
        self.up = nn.ModuleList([conv(256 + 128, 128), conv(128 + 64, 64), conv(64 + 32, width)])
        self.cut, self.places = nn.Conv2d(width, width, 16, 16), nn.Parameter(torch.randn(1, 64, width) * 0.02)
        self.layers = nn.Sequential(*(Layer(width, 4) for _ in range(4)))
        self.widths = nn.Sequential(nn.Linear(width, 256), nn.LeakyReLU(), nn.Linear(256, bins))
        self.mix, self.last = nn.Conv2d(width, width, 3, padding=1), nn.Conv2d(128, bins, 1)

    def forward(self, x):
        kept = []
        for layer in self.down:
            x = layer(x)
            kept.append(x)
        for layer, beside in zip(self.up, kept[-2::-1]):
            x = layer(torch.cat([F.interpolate(x, size=beside.shape[2:], mode="bilinear", align_corners=True), beside], 1))
        tokens = self.cut(x).flatten(2).transpose(1, 2)
        tokens = self.layers(tokens + self.places[:, :tokens.shape[1]])
        widths = self.widths(tokens[:, 0]).relu() + 0.1
        edges = F.pad((widths / widths.sum(1, keepdim=True)).cumsum(1), (1, 0))
        middles = (edges[:, :-1] + edges[:, 1:]) / 2
        asked = torch.einsum("bchw,bkc->bkhw", self.mix(x), tokens[:, 1:])
        shares = self.last(F.pad(asked, (0, 0, 0, 0, 0, 128 - asked.shape[1]))).softmax(1)
        return (shares * middles[:, :, None, None]).sum(1, keepdim=True)


class Divided(nn.Module):
    """Images to rounded codes and back: norms that divide by the root of mixed squares, likelihoods of codes (a hyperprior)."""

    class Norm(nn.Module):
        def __init__(self, width, inverse=False):
            super().__init__()
            self.inverse = inverse
            self.beta, self.gamma = nn.Parameter(torch.ones(width)), nn.Parameter(torch.eye(width) * 0.1 + torch.rand(width, width) * 0.01)

        def forward(self, x):
            norm = F.conv2d(x * x, self.gamma[:, :, None, None], self.beta)
            return x * (norm.sqrt() if self.inverse else norm.rsqrt())

    def __init__(self, width=128, codes=192):
        super().__init__()
        down = lambda a, b: nn.Conv2d(a, b, 5, 2, 2)
        up = lambda a, b: nn.ConvTranspose2d(a, b, 5, 2, 2, 1)
        norm = Divided.Norm
        self.coder = nn.Sequential(down(3, width), norm(width), down(width, width), norm(width), down(width, width), norm(width), down(width, codes))
        self.picture = nn.Sequential(up(codes, width), norm(width, True), up(width, width), norm(width, True), up(width, width), norm(width, True),
                                     up(width, 3))
        self.above = nn.Sequential(nn.Conv2d(codes, width, 3, padding=1), nn.ReLU(), down(width, width), nn.ReLU(), down(width, width))
        self.scales = nn.Sequential(up(width, width), nn.ReLU(), up(width, codes), nn.ReLU(), nn.Conv2d(codes, 2 * codes, 3, padding=1))

    def forward(self, x):
        code = self.coder(x)
        mean, scale = self.scales(self.above(code.abs()).round()).chunk(2, 1)
        code, scale = (code - mean).round(), scale.exp().clamp(min=0.11)
        away = code.abs()
        likely = (torch.erf((0.5 - away) / scale * 0.70710678) - torch.erf((-0.5 - away) / scale * 0.70710678)) / 2
        bits = -likely.clamp(min=1e-9).log2().mean(1, keepdim=True)
        return self.picture(code + mean) + F.interpolate(bits, scale_factor=16.)


class Holes(nn.Module):
    """Fills what a mask hides: windows count what they see, and holes close layer by layer (partial convolutions)."""

    class Window(nn.Module):
        def __init__(self, given, made, size, stride):
            super().__init__()
            self.conv, self.norm, self.size, self.stride = nn.Conv2d(given, made, size, stride, size // 2), nn.BatchNorm2d(made), size, stride

        def forward(self, x, mask):
            ones = torch.ones(1, 1, self.size, self.size, device=x.device, dtype=x.dtype)
            seen = F.conv2d(mask, ones, stride=self.stride, padding=self.size // 2)
            bias = self.conv.bias[:, None, None]
            y = (self.conv(x * mask) - bias) * (self.size ** 2 / (seen + 1e-6)) + bias
            mask = seen.clamp(0, 1)
            return F.leaky_relu(self.norm(y * mask), 0.2), mask

    def __init__(self):
        super().__init__()
        rows = [(3, 32, 7), (32, 64, 5), (64, 128, 3), (128, 256, 3)]
        self.down = nn.ModuleList(Holes.Window(*row, 2) for row in rows)
        self.up = nn.ModuleList(Holes.Window(a, b, 3, 1) for a, b in ((256 + 128, 128), (128 + 64, 64), (64 + 32, 32), (32 + 3, 32)))
        self.last = nn.Conv2d(32, 3, 1)

    def forward(self, x):
        mask = (x[:, 3:] > -0.5).to(x.dtype)
        x = x[:, :3] * mask
        kept = []
        for layer in self.down:
            kept.append((x, mask))
            x, mask = layer(x, mask)
        for layer, (beside, its) in zip(self.up, kept[::-1]):
            mask = torch.maximum(F.interpolate(mask, scale_factor=2.), its)
            x, mask = layer(torch.cat([F.interpolate(x, scale_factor=2.), beside], 1), mask)
        return self.last(x).tanh()


class LookedAtClasses(nn.Module):
    """Pixels attend to what each class looks like in this image (object context), on features of four strides."""

    def __init__(self, classes=19, width=128):
        super().__init__()
        widths = (32, 64, 128, 256)
        self.down = nn.ModuleList(nn.Sequential(conv(a, b, 3, 2), conv(b, b)) for a, b in zip((3, *widths), widths))
        self.join, self.guess = conv(sum(widths[1:]), width), nn.Sequential(conv(sum(widths[1:]), width, 1), nn.Conv2d(width, classes, 1))
        self.q, self.k, self.v = (nn.Sequential(conv(width, 64, 1), conv(64, 64, 1)) for _ in range(3))
        self.out, self.last = conv(64, width, 1), nn.Sequential(conv(2 * width, width, 1), nn.Conv2d(width, classes, 1))

    def forward(self, x):
        maps = []
        for layer in self.down:
            x = layer(x)
            maps.append(x)
        size = maps[1].shape[2:]
        x = torch.cat([maps[1], *(F.interpolate(m, size=size, mode="bilinear", align_corners=False) for m in maps[2:])], 1)
        guess, x = self.guess(x), self.join(x)
        shares = guess.flatten(2).softmax(2)
        looks = (shares @ x.flatten(2).transpose(1, 2)).transpose(1, 2)[..., None]
        q, k, v = self.q(x).flatten(2), self.k(looks).flatten(2), self.v(looks).flatten(2)
        seen = ((q.transpose(1, 2) @ k) / 8).softmax(2) @ v.transpose(1, 2)
        return self.last(torch.cat([self.out(seen.transpose(1, 2).unflatten(2, size)), x], 1)) + guess


class KeptChannels(nn.Module):
    """Super resolution whose blocks keep a quarter of the channels behind after each window (information distillation)."""

    class Block(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.kept = width // 4
            self.layers = nn.ModuleList(nn.Conv2d(width if n == 0 else width - self.kept, width if n < 3 else self.kept, 3, padding=1) for n in range(4))
            self.share = nn.Sequential(nn.Conv2d(width, width // 16, 1), nn.ReLU(), nn.Conv2d(width // 16, width, 1), nn.Sigmoid())
            self.last = nn.Conv2d(width, width, 1)

        def forward(self, x):
            kept, rest = [], x
            for layer in self.layers[:3]:
                y = F.leaky_relu(layer(rest), 0.05)
                kept.append(y[:, :self.kept])
                rest = y[:, self.kept:]
            y = torch.cat([*kept, self.layers[3](rest)], 1)
            contrast = (y - y.mean((2, 3), keepdim=True)).square().mean((2, 3), keepdim=True).sqrt() + y.mean((2, 3), keepdim=True)
            return x + self.last(y * self.share(contrast))

    def __init__(self, width=64, blocks=6):
        super().__init__()
        self.first, self.blocks = nn.Conv2d(3, width, 3, padding=1), nn.ModuleList(KeptChannels.Block(width) for _ in range(blocks))
        self.join = nn.Sequential(nn.Conv2d(width * blocks, width, 1), nn.LeakyReLU(0.05), nn.Conv2d(width, width, 3, padding=1))
        self.last = nn.Sequential(nn.Conv2d(width, 48, 3, padding=1), nn.PixelShuffle(4))

    def forward(self, x):
        first, made = self.first(x), []
        y = first
        for block in self.blocks:
            y = block(y)
            made.append(y)
        return self.last(self.join(torch.cat(made, 1)) + first)


class HalfNorms(nn.Module):
    """A U-Net that norms half of its channels over each image, and whose picture between two stages gates what the second sees (HINet)."""

    class Block(nn.Module):
        def __init__(self, given, made):
            super().__init__()
            self.first, self.second = nn.Conv2d(given, made, 3, padding=1), nn.Conv2d(made, made, 3, padding=1)
            self.norm, self.beside = nn.InstanceNorm2d(made // 2, affine=True), nn.Conv2d(given, made, 1)

        def forward(self, x):
            normed, rest = self.first(x).chunk(2, 1)
            y = F.leaky_relu(torch.cat([self.norm(normed), rest], 1), 0.2)
            return F.leaky_relu(self.second(y), 0.2) + self.beside(x)

    class Stage(nn.Module):
        def __init__(self, given, width=32):
            super().__init__()
            block = HalfNorms.Block
            self.blocks = nn.ModuleList([block(given, width), block(width, 2 * width), block(2 * width, 4 * width)])
            self.smaller = nn.ModuleList(nn.Conv2d(width * n, width * n, 4, 2, 1, bias=False) for n in (1, 2))
            self.larger = nn.ModuleList(nn.ConvTranspose2d(width * n, width * n // 2, 2, 2) for n in (4, 2))
            self.joined = nn.ModuleList(block(width * n, width * n // 2) for n in (4, 2))

        def forward(self, x):
            kept = []
            for block, smaller in zip(self.blocks, self.smaller):
                x = block(x)
                kept.append(x)
                x = smaller(x)
            x = self.blocks[-1](x)
            for larger, join in zip(self.larger, self.joined):
                x = join(torch.cat([larger(x), kept.pop()], 1))
            return x

    def __init__(self, width=32):
        super().__init__()
        self.first, self.picture = HalfNorms.Stage(3), nn.Conv2d(width, 3, 3, padding=1)
        self.gate, self.kept = nn.Conv2d(3, width, 3, padding=1), nn.Conv2d(width, width, 3, padding=1)
        self.again, self.second, self.last = nn.Conv2d(3, width, 3, padding=1), HalfNorms.Stage(2 * width), nn.Conv2d(width, 3, 3, padding=1)

    def forward(self, x):
        y = self.first(x)
        picture = x + self.picture(y)
        y = self.kept(y) * self.gate(picture).sigmoid() + y
        return x + self.last(self.second(torch.cat([self.again(x), y], 1)))


class VolumeTokens(nn.Module):
    """Classes of a volume's places from tokens of its cubes, at four depths made large by transposed windows (UNETR)."""

    @staticmethod
    def up(given, made):
        return nn.ConvTranspose3d(given, made, 2, 2)

    @staticmethod
    def pair(given, made):
        layer = lambda a: nn.Sequential(nn.Conv3d(a, made, 3, padding=1, bias=False), nn.InstanceNorm3d(made), nn.LeakyReLU(0.01))
        return nn.Sequential(layer(given), nn.Conv3d(made, made, 3, padding=1, bias=False), nn.InstanceNorm3d(made), nn.LeakyReLU(0.01))

    def __init__(self, width=192, made=16, classes=4):
        super().__init__()
        up, pair = VolumeTokens.up, VolumeTokens.pair
        self.cut, self.places = nn.Conv3d(1, width, 8, 8), nn.Parameter(torch.randn(1, 512, width) * 0.02)
        self.layers = nn.ModuleList(Layer(width, 6) for _ in range(6))
        self.whole = pair(1, made)
        self.early, self.late = nn.Sequential(up(width, 4 * made), up(4 * made, 2 * made)), up(width, 4 * made)
        self.deep = up(width, 4 * made)
        self.first, self.second, self.third = pair(8 * made, 4 * made), pair(4 * made, 2 * made), pair(2 * made, made)
        self.to_second, self.to_third, self.last = up(4 * made, 2 * made), up(2 * made, made), nn.Conv3d(made, classes, 1)

    def forward(self, x):
        tokens, kept = self.cut(x).flatten(2).transpose(1, 2) + self.places, []
        for layer in self.layers:
            tokens = layer(tokens)
            kept.append(tokens.transpose(1, 2).unflatten(2, [n // 8 for n in x.shape[2:]]))
        y = self.first(torch.cat([self.deep(kept[5]), self.late(kept[3])], 1))
        y = self.second(torch.cat([self.to_second(y), self.early(kept[1])], 1))
        return self.last(self.third(torch.cat([self.to_third(y), self.whole(x)], 1)))
