"""Small networks as users of PyTorch write them: for small images, sounds, words, tables, volumes, films and necks of detectors."""
import torch
from own_networks import conv_norm
from torch import nn
from torch.nn import functional


class SmallResidual(nn.Module):
    """The residual network of twenty layers for images of 32 by 32."""

    class Block(nn.Module):
        def __init__(self, given, made, stride):
            super().__init__()
            self.first, self.second = conv_norm(given, made, stride=stride), conv_norm(made, made, act=nn.Identity)
            self.stride, self.more = stride, made - given

        def forward(self, x):
            skipped = functional.pad(x[:, :, ::self.stride, ::self.stride], (0, 0, 0, 0, 0, self.more)) if self.more else x
            return functional.relu(self.second(self.first(x)) + skipped)

    def __init__(self, widths=(16, 32, 64), depth=3):
        super().__init__()
        blocks, given = [conv_norm(3, widths[0])], widths[0]
        for made in widths:
            for i in range(depth):
                blocks.append(SmallResidual.Block(given, made, 2 if made != given and i == 0 else 1))
                given = made
        self.blocks, self.head = nn.Sequential(*blocks), nn.Linear(given, 10)

    def forward(self, x):
        return self.head(self.blocks(x).mean((2, 3)))


class Keywords(nn.Module):
    """Depthwise separable convolutions over frames of ten coefficients."""

    def __init__(self, width=64):
        super().__init__()
        layers = [nn.Conv2d(1, width, (10, 4), (2, 2), (5, 1)), nn.BatchNorm2d(width), nn.ReLU()]
        for _ in range(4):
            layers += [conv_norm(width, width, groups=width), conv_norm(width, width, 1)]
        self.layers, self.head = nn.Sequential(*layers), nn.Linear(width, 12)

    def forward(self, x):
        return self.head(functional.adaptive_avg_pool2d(self.layers(x), 1).flatten(1))


class RawSound(nn.Module):
    """Wide filters over samples, then narrow ones, with poolings of four."""

    def __init__(self, width=48):
        super().__init__()
        layers, given = [], 1
        for made, size, stride in ((width, 80, 4), (width, 3, 1), (2 * width, 3, 1), (4 * width, 3, 1)):
            layers += [nn.Conv1d(given, made, size, stride), nn.BatchNorm1d(made), nn.ReLU(), nn.MaxPool1d(4)]
            given = made
        self.layers, self.head = nn.Sequential(*layers), nn.Linear(given, 35)

    def forward(self, x):
        return functional.log_softmax(self.head(self.layers(x).mean(2)), -1)


class Causal(nn.Module):
    """Dilated causal convolutions of a series, cut at the end (TCN)."""

    def __init__(self, given=9, width=50, depth=6):
        super().__init__()
        self.convs = nn.ModuleList()
        for i in range(depth):
            pad = 2 * 2 ** i
            self.convs.append(nn.ModuleList([nn.Conv1d(width if i else given, width, 3, padding=pad, dilation=2 ** i),
                                             nn.Conv1d(width, width, 3, padding=pad, dilation=2 ** i),
                                             nn.Identity() if i else nn.Conv1d(given, width, 1)]))
        self.head = nn.Linear(width, 5)

    def forward(self, x):
        for first, second, skip in self.convs:
            cut = first.padding[0]
            y = functional.relu(second(functional.relu(first(x)[..., :-cut]))[..., :-cut])
            x = functional.relu(y + skip(x))
        return self.head(x[..., -1])


class Painter(nn.Module):
    """A generator of transposed convolutions from one column (DCGAN)."""

    def __init__(self, seed=100, width=64):
        super().__init__()
        layers, given = [], seed
        for made, stride, pad in ((8 * width, 1, 0), (4 * width, 2, 1), (2 * width, 2, 1), (width, 2, 1)):
            layers += [nn.ConvTranspose2d(given, made, 4, stride, pad, bias=False), nn.BatchNorm2d(made), nn.ReLU()]
            given = made
        self.layers = nn.Sequential(*layers, nn.ConvTranspose2d(given, 3, 4, 2, 1), nn.Tanh())

    def forward(self, x):
        return self.layers(x)


class WeightedPyramid(nn.Module):
    """Features of four sizes that are added by weights, up and down (BiFPN), and a head that they share."""

    class Sum(nn.Module):
        def __init__(self, width, count):
            super().__init__()
            self.weights = nn.Parameter(torch.rand(count) + 0.5)
            self.conv = nn.Sequential(nn.SiLU(), nn.Conv2d(width, width, 3, padding=1, groups=width), nn.Conv2d(width, width, 1), nn.BatchNorm2d(width))

        def forward(self, *parts):
            weights = functional.relu(self.weights)
            weights = weights / (weights.sum() + 1e-4)
            return self.conv(sum(weight * part for weight, part in zip(weights, parts)))

    def __init__(self, width=64, turns=2, anchors=9):
        super().__init__()
        self.first = nn.ModuleList([conv_norm(3, 24, stride=4), conv_norm(24, 40, stride=2), conv_norm(40, 112, stride=2), conv_norm(112, 200, stride=2)])
        self.sides = nn.ModuleList(nn.Conv2d(given, width, 1) for given in (24, 40, 112, 200))
        self.up = nn.ModuleList(nn.ModuleList(WeightedPyramid.Sum(width, 2) for _ in range(3)) for _ in range(turns))
        self.down = nn.ModuleList(nn.ModuleList(WeightedPyramid.Sum(width, 3 if i < 2 else 2) for i in range(3)) for _ in range(turns))
        self.head = nn.Sequential(nn.Conv2d(width, width, 3, padding=1, groups=width), nn.Conv2d(width, width, 1), nn.SiLU(), nn.Conv2d(width, 4 * anchors, 1))

    def forward(self, x):
        levels = []
        for conv, side in zip(self.first, self.sides):
            x = conv(x)
            levels.append(side(x))
        for up, down in zip(self.up, self.down):
            upper = [levels[-1]]
            for i in range(3):
                upper.insert(0, up[i](levels[2 - i], functional.interpolate(upper[0], scale_factor=2.0, mode="nearest")))
            lower = [upper[0]]
            for i in range(3):
                smaller = functional.max_pool2d(lower[-1], 3, 2, 1)
                lower.append(down[i](levels[i + 1], upper[i + 1], smaller) if i < 2 else down[i](levels[3], smaller))
            levels = lower
        return torch.cat([self.head(level).flatten(2) for level in levels], 2)


class Organs(nn.Module):
    """A U-Net of volumes with norms of each image, PReLU and 12 to 48 channels."""

    @staticmethod
    def twice(given, made):
        return nn.Sequential(nn.Conv3d(given, made, 3, padding=1), nn.InstanceNorm3d(made, affine=True), nn.PReLU(made),
                             nn.Conv3d(made, made, 3, padding=1), nn.InstanceNorm3d(made, affine=True), nn.PReLU(made))

    def __init__(self, widths=(12, 24, 48)):
        super().__init__()
        self.down = nn.ModuleList(Organs.twice(given, made) for given, made in zip((1, *widths), widths))
        self.steps = nn.ModuleList(nn.Conv3d(made, made, 2, 2) for made in widths[:-1])
        self.rise = nn.ModuleList(nn.ConvTranspose3d(made, given, 2, 2) for given, made in zip(widths, widths[1:]))
        self.up = nn.ModuleList(Organs.twice(2 * made, made) for made in widths[:-1])
        self.head = nn.Conv3d(widths[0], 4, 1)

    def forward(self, x):
        kept = []
        for i, block in enumerate(self.down):
            x = block(x)
            if i < len(self.steps):
                kept.append(x)
                x = self.steps[i](x)
        for i in reversed(range(len(self.steps))):
            x = self.up[i](torch.cat([kept[i], self.rise[i](x)], 1))
        return self.head(x)


class Attended(nn.Module):
    """Residual blocks whose channels and pixels are weighted by means and maxima (CBAM)."""

    class Block(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.convs = nn.Sequential(conv_norm(width, width), conv_norm(width, width, act=nn.Identity))
            self.channels = nn.Sequential(nn.Conv2d(width, width // 8, 1), nn.ReLU(), nn.Conv2d(width // 8, width, 1))
            self.pixels = nn.Conv2d(2, 1, 7, padding=3)

        def forward(self, x):
            y = self.convs(x)
            y = y * torch.sigmoid(self.channels(functional.adaptive_avg_pool2d(y, 1)) + self.channels(y.amax((2, 3), keepdim=True)))
            y = y * torch.sigmoid(self.pixels(torch.cat([y.mean(1, keepdim=True), y.amax(1, keepdim=True)], 1)))
            return functional.relu(x + y)

    def __init__(self, widths=(48, 96, 192)):
        super().__init__()
        layers, given = [conv_norm(3, widths[0], 7, 2), nn.MaxPool2d(3, 2, 1)], widths[0]
        for made in widths:
            layers += [conv_norm(given, made, stride=1 if made == given else 2), Attended.Block(made), Attended.Block(made)]
            given = made
        self.layers, self.head = nn.Sequential(*layers), nn.Linear(given, 100)

    def forward(self, x):
        return self.head(self.layers(x).mean((2, 3)))


class WaveParts(nn.Module):
    """A U-Net of signals whose widths grow by 24, with linear interpolation between samples (Wave-U-Net)."""

    def __init__(self, step=24, depth=5):
        super().__init__()
        widths = [step * (i + 1) for i in range(depth)]
        self.down = nn.ModuleList(nn.Conv1d(given, made, 15, padding=7) for given, made in zip([1, *widths], widths))
        self.middle = nn.Conv1d(widths[-1], widths[-1] + step, 15, padding=7)
        self.up = nn.ModuleList(nn.Conv1d(2 * made + step, made, 5, padding=2) for made in widths)
        self.head = nn.Conv1d(step + 1, 2, 1)

    def forward(self, x):
        kept, given = [], x
        for conv in self.down:
            x = functional.leaky_relu(conv(x), 0.2)
            kept.append(x)
            x = x[..., ::2]
        x = functional.leaky_relu(self.middle(x), 0.2)
        for conv, side in zip(reversed(self.up), reversed(kept)):
            x = functional.interpolate(x, scale_factor=2.0, mode="linear", align_corners=False)
            x = functional.leaky_relu(conv(torch.cat([x, side], 1)), 0.2)
        return torch.tanh(self.head(torch.cat([x, given], 1)))


class ShiftedFrames(nn.Module):
    """Convolutions of frames whose channels are moved along time ahead of each block (TSM)."""

    class Block(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.convs = nn.Sequential(conv_norm(width, width), conv_norm(width, width, act=nn.Identity))

        def forward(self, x, frames):
            y = x.unflatten(0, (-1, frames))
            part = y.shape[2] // 8
            back = functional.pad(y[:, 1:, :part], (0, 0, 0, 0, 0, 0, 0, 1))
            forth = functional.pad(y[:, :-1, part:2 * part], (0, 0, 0, 0, 0, 0, 1, 0))
            y = torch.cat([back, forth, y[:, :, 2 * part:]], 2).flatten(0, 1)
            return functional.relu(x + self.convs(y))

    def __init__(self, widths=(64, 128), classes=60):
        super().__init__()
        self.first = nn.Sequential(conv_norm(3, widths[0], 7, 2), nn.MaxPool2d(3, 2, 1))
        self.near, self.far = ShiftedFrames.Block(widths[0]), ShiftedFrames.Block(widths[1])
        self.step, self.head = conv_norm(widths[0], widths[1], stride=2), nn.Linear(widths[1], classes)

    def forward(self, x):
        frames = x.shape[1]
        x = self.near(self.first(x.flatten(0, 1)), frames)
        x = self.far(self.step(x), frames)
        return self.head(x.mean((2, 3))).unflatten(0, (-1, frames)).mean(1)


class Sentences(nn.Module):
    """Windows of three to five words, the largest of each over time."""

    def __init__(self, width=300, filters=100):
        super().__init__()
        self.embed = nn.Embedding(1000, width)
        self.convs = nn.ModuleList(nn.Conv1d(width, filters, size) for size in (3, 4, 5))
        self.head = nn.Linear(3 * filters, 4)

    def forward(self, ids):
        x = self.embed(ids).transpose(1, 2)
        return self.head(torch.cat([functional.relu(conv(x)).amax(2) for conv in self.convs], 1))


class Features(nn.Module):
    """Numbers of a table as tokens of an encoder (FT-Transformer)."""

    def __init__(self, columns=30, width=192, depth=3, heads=8):
        super().__init__()
        self.scale, self.shift = nn.Parameter(torch.randn(columns, width)), nn.Parameter(torch.randn(columns, width))
        self.first = nn.Parameter(torch.randn(1, 1, width))
        layer = nn.TransformerEncoderLayer(width, heads, 256, batch_first=True, norm_first=True, activation="gelu")
        self.layers, self.head = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False), nn.Linear(width, 2)

    def forward(self, x):
        x = x[..., 0, None] * self.scale + self.shift
        x = self.layers(torch.cat([self.first.expand(x.shape[0], -1, -1), x], 1))
        return self.head(functional.relu(x[:, 0]))


class Molecules(nn.Module):
    """Graph convolutions by matrices of neighbours that are given beside the features, and the sum over nodes."""

    def __init__(self, nodes=40, features=20, width=100, depth=4):
        super().__init__()
        self.features = features
        self.layers = nn.ModuleList(nn.Linear(width if i else features, width) for i in range(depth))
        self.head = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1))

    def forward(self, x):
        near, x = (x[..., self.features:] > 0.5).to(x.dtype), x[..., :self.features]
        near = near / near.sum(2, keepdim=True).clamp(min=1)
        for layer in self.layers:
            x = functional.relu(layer(near @ x) + (x if x.shape[-1] == layer.out_features else 0))
        return self.head(x.sum(1))


class Forecast(nn.Module):
    """What pooled windows say of a series, at several rates, made denser by interpolation (N-HiTS)."""

    def __init__(self, seen=512, told=96, width=256):
        super().__init__()
        self.rates, self.told = (16, 8, 2, 1), told
        self.layers = nn.ModuleList(nn.Sequential(nn.Linear(seen // rate, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(),
                                                  nn.Linear(width, seen // rate + max(told // rate, 1))) for rate in self.rates)

    def forward(self, x):
        total = 0
        for rate, layer in zip(self.rates, self.layers):
            pooled = functional.max_pool1d(x, rate, rate)
            back, ahead = layer(pooled).split([x.shape[2] // rate, max(self.told // rate, 1)], 2)
            x = x - functional.interpolate(back, size=x.shape[2], mode="linear")
            total = total + functional.interpolate(ahead, size=self.told, mode="linear")
        return total


class Faces(nn.Module):
    """Inverted residuals with PReLU, a depthwise convolution of a whole image, and a vector of length one (MobileFaceNet)."""

    class Block(nn.Module):
        def __init__(self, given, made, stride, wider):
            super().__init__()
            def act():
                return nn.PReLU(wider)
            self.layers = nn.Sequential(conv_norm(given, wider, 1, act=act), conv_norm(wider, wider, 3, stride, wider, act=act),
                                        conv_norm(wider, made, 1, act=nn.Identity))
            self.is_same = given == made and stride == 1

        def forward(self, x):
            return x + self.layers(x) if self.is_same else self.layers(x)

    def __init__(self, width=64, size=128):
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(3, width, 3, 2, 1), nn.PReLU(width), nn.Conv2d(width, width, 3, 1, 1, groups=width), nn.PReLU(width))
        self.blocks = nn.Sequential(Faces.Block(64, 64, 2, 128), Faces.Block(64, 64, 1, 128), Faces.Block(64, 128, 2, 256),
                                    Faces.Block(128, 128, 1, 256), Faces.Block(128, 128, 2, 512), Faces.Block(128, 128, 1, 256))
        self.last = nn.Sequential(nn.Conv2d(128, 512, 1), nn.PReLU(512), nn.Conv2d(512, 512, 7, groups=512))
        self.head = nn.Linear(512, size)

    def forward(self, x):
        return functional.normalize(self.head(self.last(self.blocks(self.first(x))).flatten(1)), dim=1)


class Tasks(nn.Module):
    """Experts that gates of several tasks mix, and crosses of features (MMoE, DCN)."""

    def __init__(self, given=200, width=128, experts=6, tasks=3):
        super().__init__()
        self.crosses = nn.ModuleList(nn.Linear(given, given) for _ in range(3))
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(given, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU()) for _ in range(experts))
        self.gates = nn.ModuleList(nn.Linear(given, experts) for _ in range(tasks))
        self.towers = nn.ModuleList(nn.Sequential(nn.Linear(width, 32), nn.ReLU(), nn.Linear(32, 1)) for _ in range(tasks))

    def forward(self, x):
        first = x = x[..., 0]
        for cross in self.crosses:
            x = first * cross(x) + x
        made = torch.stack([expert(x) for expert in self.experts], 1)
        return torch.cat([tower((gate(x).softmax(-1)[..., None] * made).sum(1)) for gate, tower in zip(self.gates, self.towers)], 1)
