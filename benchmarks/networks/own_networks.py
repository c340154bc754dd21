"""Networks of kinds that no package has in a small form, for networks.py: detection, segmentation, text recognition,
speech, super resolution, images over time."""
import torch
from torch import nn
from torch.nn import functional


class UNet(torch.nn.Module):
    """Two convolutions a level, halves on the way down, transposed convolutions and concats on the way up."""

    def __init__(self, channels=(32, 64, 128, 256)):
        super().__init__()
        nn = torch.nn

        def twice(given, made):
            layers = [nn.Conv2d(given, made, 3, padding=1), nn.BatchNorm2d(made), nn.ReLU(),
                      nn.Conv2d(made, made, 3, padding=1), nn.BatchNorm2d(made), nn.ReLU()]
            return nn.Sequential(*layers)

        self.down = nn.ModuleList(twice(*pair) for pair in zip((3, *channels), channels))
        pairs = list(zip(channels[:0:-1], channels[-2::-1]))
        self.widen = nn.ModuleList(nn.ConvTranspose2d(wide, narrow, 2, stride=2) for wide, narrow in pairs)
        self.up = nn.ModuleList(twice(wide, narrow) for wide, narrow in pairs)
        self.head = nn.Conv2d(channels[0], 2, 1)

    def forward(self, x):
        kept = []
        for level, block in enumerate(self.down):
            x = block(torch.nn.functional.max_pool2d(x, 2) if level else x)
            kept.append(x)
        for widen, block, beside in zip(self.widen, self.up, kept[-2::-1]):
            x = block(torch.cat([widen(x), beside], 1))
        return self.head(x)


class TemporalNet(torch.nn.Module):
    """Dilated 1D convolutions with gates and residuals, as in speech and in series."""

    def __init__(self, channels=128, depth=8):
        super().__init__()
        nn = torch.nn
        self.first = nn.Conv1d(40, channels, 1)
        self.gated = nn.ModuleList(nn.Conv1d(channels, 2 * channels, 3, padding=2 ** (i % 4), dilation=2 ** (i % 4))
                                   for i in range(depth))
        self.depthwise = nn.ModuleList(nn.Conv1d(channels, channels, 5, padding=2, groups=channels) for _ in range(depth))
        self.mixed = nn.ModuleList(nn.Conv1d(channels, channels, 1) for _ in range(depth))
        self.head = nn.Conv1d(channels, 32, 1)

    def forward(self, x):
        x = self.first(x)
        for gated, depthwise, mixed in zip(self.gated, self.depthwise, self.mixed):
            signal, gate = gated(x).chunk(2, 1)
            x = x + mixed(depthwise(torch.tanh(signal) * torch.sigmoid(gate)))
        return self.head(x)


class PyramidNet(torch.nn.Module):
    """A detector without its choice of boxes: levels of a ResNet-18, each added to the enlarged one below, and a head."""

    def __init__(self, channels=64, anchors=9):
        super().__init__()
        nn = torch.nn
        from torchvision.models import resnet18

        whole = resnet18(weights=None)
        self.stem = nn.Sequential(whole.conv1, whole.bn1, whole.relu, whole.maxpool, whole.layer1)
        self.levels = nn.ModuleList([whole.layer2, whole.layer3, whole.layer4])
        self.lateral = nn.ModuleList(nn.Conv2d(given, channels, 1) for given in (128, 256, 512))
        self.smooth = nn.ModuleList(nn.Conv2d(channels, channels, 3, padding=1) for _ in range(3))
        self.head = nn.Sequential(nn.Conv2d(channels, channels, 3, padding=1), nn.ReLU(),
                                  nn.Conv2d(channels, 4 * anchors, 3, padding=1))

    def forward(self, x):
        x, below, boxes = self.stem(x), None, []
        kept = []
        for level in self.levels:
            x = level(x)
            kept.append(x)
        for x, lateral, smooth in zip(kept[::-1], self.lateral[::-1], self.smooth[::-1]):
            x = lateral(x)
            below = x if below is None else x + torch.nn.functional.interpolate(below, scale_factor=2, mode="nearest")
            boxes.append(self.head(smooth(below)).permute(0, 2, 3, 1).flatten(1, 2).unflatten(2, (-1, 4)).flatten(1, 2))
        return torch.cat(boxes, 1)


def conv_norm(given, made, size=3, stride=1, groups=1, act=nn.ReLU):
    """A convolution that keeps its extents but for the stride, a norm, an activation."""
    return nn.Sequential(nn.Conv2d(given, made, size, stride, (size - 1) // 2, groups=groups, bias=False), nn.BatchNorm2d(made),
                         act())


class TextRecogniser(nn.Module):
    """CRNN: convolutions that keep lines wide, pooled to one row of features, and two LSTM layers in both directions."""

    def __init__(self, classes=97, hidden=256):
        super().__init__()
        self.features = nn.Sequential(
            conv_norm(1, 64), nn.MaxPool2d(2), conv_norm(64, 128), nn.MaxPool2d(2), conv_norm(128, 256), conv_norm(256, 256),
            nn.MaxPool2d((2, 1)), conv_norm(256, 512), conv_norm(512, 512), nn.MaxPool2d((2, 1)),
            nn.Conv2d(512, 512, (2, 1)), nn.ReLU())
        self.lstm = nn.LSTM(512, hidden, 2, bidirectional=True)
        self.head = nn.Linear(2 * hidden, classes)

    def forward(self, x):
        y, _ = self.lstm(self.features(x).squeeze(2).permute(2, 0, 1))
        return self.head(y)


class Mixer(nn.Module):
    """Attention of all or of a window's pixels, then a pointwise network: SVTR's block over tokens of an image."""

    def __init__(self, dim, heads, shape, window=None):
        super().__init__()
        self.heads, self.norm, self.after = heads, nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.wide = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))
        mask = None
        if window:
            rows, columns = torch.arange(shape[0]), torch.arange(shape[1])
            near = ((rows[:, None] - rows).abs() <= window[0] // 2)[:, None, :, None] \
                & ((columns[:, None] - columns).abs() <= window[1] // 2)[None, :, None, :]
            mask = torch.zeros(near.shape).masked_fill(~near, -1e9).reshape(shape[0] * shape[1], -1)
        self.register_buffer("mask", mask)

    def forward(self, x):
        q, k, v = self.qkv(self.norm(x)).unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4).unbind(0)
        y = functional.scaled_dot_product_attention(q, k, v, self.mask)
        x = x + self.out(y.transpose(1, 2).flatten(2))
        return x + self.wide(self.after(x))


class SceneTextNet(nn.Module):
    """SVTR: tokens of a line of text, mixed within windows and then all with all, while lines merge."""

    def __init__(self, dims=(64, 128, 256), shape=(8, 40), classes=97):
        super().__init__()
        self.stem = nn.Sequential(conv_norm(3, dims[0] // 2, stride=2, act=nn.GELU),
                                  conv_norm(dims[0] // 2, dims[0], stride=2, act=nn.GELU))
        self.shape, self.levels, self.merge = shape, nn.ModuleList(), nn.ModuleList()
        for level, dim in enumerate(dims):
            here = (shape[0] >> level, shape[1])
            self.levels.append(nn.Sequential(*(Mixer(dim, dim // 32, here, (7, 11) if level + i < 3 else None)
                                               for i in range(3))))
            if level + 1 < len(dims):
                self.merge.append(nn.Conv2d(dim, dims[level + 1], 3, (2, 1), 1))
        self.head = nn.Linear(dims[-1], classes)

    def forward(self, x):
        x = self.stem(x)
        for level, blocks in enumerate(self.levels):
            lines = x.shape[2]
            x = blocks(x.flatten(2).transpose(1, 2)).transpose(1, 2).unflatten(2, (lines, -1))
            if level < len(self.merge):
                x = self.merge[level](x)
        return self.head(x.mean(2).transpose(1, 2))


class Bottlenecks(nn.Module):
    """CSP: a half of the channels through residual blocks, joined with the other half."""

    def __init__(self, given, made, depth):
        super().__init__()
        half = made // 2
        self.one, self.other = conv_norm(given, half, 1, act=nn.SiLU), conv_norm(given, half, 1, act=nn.SiLU)
        self.blocks = nn.ModuleList(nn.Sequential(conv_norm(half, half, 1, act=nn.SiLU), conv_norm(half, half, act=nn.SiLU))
                                    for _ in range(depth))
        self.join = conv_norm(2 * half, made, 1, act=nn.SiLU)

    def forward(self, x):
        y = self.one(x)
        for block in self.blocks:
            y = y + block(y)
        return self.join(torch.cat([y, self.other(x)], 1))


class OneStageDetector(nn.Module):
    """As YOLOv5: CSP blocks down, poolings of three sizes, up and down again with concats, a head a level, boxes decoded."""

    def __init__(self, width=32, anchors=3, classes=80):
        super().__init__()
        w, self.anchors = width, anchors

        def conv(*arguments):
            return conv_norm(*arguments, act=nn.SiLU)

        self.stem = nn.Sequential(conv(3, w, 6, 2), conv(w, 2 * w, 3, 2), Bottlenecks(2 * w, 2 * w, 1))
        self.down = nn.ModuleList(nn.Sequential(conv(w << i, w << (i + 1), 3, 2), Bottlenecks(w << (i + 1), w << (i + 1), depth))
                                  for i, depth in ((1, 2), (2, 3), (3, 1)))
        self.ahead, self.behind = conv(16 * w, 8 * w, 1), conv(32 * w, 16 * w, 1)
        self.narrow = nn.ModuleList([conv(16 * w, 8 * w, 1), conv(8 * w, 4 * w, 1)])
        self.up = nn.ModuleList([Bottlenecks(16 * w, 8 * w, 1), Bottlenecks(8 * w, 4 * w, 1)])
        self.again = nn.ModuleList([conv(4 * w, 4 * w, 3, 2), conv(8 * w, 8 * w, 3, 2)])
        self.last = nn.ModuleList([Bottlenecks(8 * w, 8 * w, 1), Bottlenecks(16 * w, 16 * w, 1)])
        self.heads = nn.ModuleList(nn.Conv2d(given * w, anchors * (classes + 5), 1) for given in (4, 8, 16))

    def forward(self, x):
        x = self.stem(x)
        kept = []
        for level in self.down:
            x = level(x)
            kept.append(x)
        x = self.ahead(x)
        pools = [x]
        for _ in range(3):
            pools.append(functional.max_pool2d(pools[-1], 5, 1, 2))
        x = self.behind(torch.cat(pools, 1))
        sides = []
        for narrow, up, beside in zip(self.narrow, self.up, kept[1::-1]):
            x = narrow(x)
            sides.append(x)
            x = up(torch.cat([functional.interpolate(x, scale_factor=2.0, mode="nearest"), beside], 1))
        levels = [x]
        for again, last, side in zip(self.again, self.last, sides[::-1]):
            x = last(torch.cat([again(x), side], 1))
            levels.append(x)
        return torch.cat([self.decoded(head(level)) for head, level in zip(self.heads, levels)], 1)

    def decoded(self, raw):
        lines, columns = raw.shape[2:]
        y = raw.unflatten(1, (self.anchors, -1)).permute(0, 1, 3, 4, 2).sigmoid()
        grid = torch.stack(torch.meshgrid(torch.arange(columns), torch.arange(lines), indexing="xy"), -1).float()
        place, size, rest = y.split((2, 2, y.shape[-1] - 4), -1)
        return torch.cat([place * 2 - 0.5 + grid, (size * 2) ** 2, rest], -1).flatten(1, 3)


class SuperResolution(nn.Module):
    """EDSR: residual blocks at the small size, then channels become pixels."""

    def __init__(self, channels=64, depth=8, scale=2):
        super().__init__()
        self.first = nn.Conv2d(3, channels, 3, padding=1)
        self.blocks = nn.ModuleList(nn.Sequential(nn.Conv2d(channels, channels, 3, padding=1), nn.ReLU(),
                                                  nn.Conv2d(channels, channels, 3, padding=1)) for _ in range(depth))
        self.last = nn.Sequential(nn.Conv2d(channels, channels * scale ** 2, 3, padding=1), nn.PixelShuffle(scale),
                                  nn.Conv2d(channels, 3, 3, padding=1))

    def forward(self, x):
        x = self.first(x)
        y = x
        for block in self.blocks:
            y = y + block(y)
        return self.last(x + y)


class VolumeNet(nn.Module):
    """A U-Net of volumes: 3x3x3 convolutions with instance norms, halves down, transposed convolutions up."""

    def __init__(self, channels=(16, 32, 64, 128)):
        super().__init__()

        def twice(given, made):
            layers = [nn.Conv3d(given, made, 3, padding=1), nn.InstanceNorm3d(made, affine=True), nn.LeakyReLU(),
                      nn.Conv3d(made, made, 3, padding=1), nn.InstanceNorm3d(made, affine=True), nn.LeakyReLU()]
            return nn.Sequential(*layers)

        self.down = nn.ModuleList(twice(*pair) for pair in zip((1, *channels), channels))
        pairs = list(zip(channels[:0:-1], channels[-2::-1]))
        self.widen = nn.ModuleList(nn.ConvTranspose3d(wide, narrow, 2, stride=2) for wide, narrow in pairs)
        self.up = nn.ModuleList(twice(wide, narrow) for wide, narrow in pairs)
        self.head = nn.Conv3d(channels[0], 3, 1)

    def forward(self, x):
        kept = []
        for level, block in enumerate(self.down):
            x = block(functional.max_pool3d(x, 2) if level else x)
            kept.append(x)
        for widen, block, beside in zip(self.widen, self.up, kept[-2::-1]):
            x = block(torch.cat([widen(x), beside], 1))
        return self.head(x)


class Vocoder(nn.Module):
    """HiFi-GAN: transposed 1D convolutions, each with three stacks of dilated ones whose results are averaged."""

    def __init__(self, channels=128, rates=(8, 8, 2), sizes=(3, 7, 11)):
        super().__init__()
        self.first, self.up, self.stacks = nn.Conv1d(80, channels, 7, padding=3), nn.ModuleList(), nn.ModuleList()
        for i, rate in enumerate(rates):
            made = channels >> (i + 1)
            self.up.append(nn.ConvTranspose1d(2 * made, made, 2 * rate, rate, rate // 2))
            self.stacks.append(nn.ModuleList(nn.ModuleList(
                nn.Conv1d(made, made, size, dilation=dilation, padding=(size - 1) * dilation // 2) for dilation in (1, 3, 5))
                for size in sizes))
        self.last = nn.Conv1d(channels >> len(rates), 1, 7, padding=3)

    def forward(self, x):
        x = self.first(x)
        for up, stacks in zip(self.up, self.stacks):
            x = up(functional.leaky_relu(x, 0.1))
            total = 0
            for stack in stacks:
                y = x
                for layer in stack:
                    y = y + layer(functional.leaky_relu(y, 0.1))
                total = total + y
            x = total / len(stacks)
        return torch.tanh(self.last(functional.leaky_relu(x)))


class SoundTagger(nn.Module):
    """Convolutions over time and pitch, a GRU in both directions over the frames, attention over its results."""

    def __init__(self, hidden=128, classes=10):
        super().__init__()
        self.features = nn.Sequential(conv_norm(1, 64), nn.MaxPool2d((1, 4)), conv_norm(64, 64), nn.MaxPool2d((1, 4)),
                                      conv_norm(64, 128), nn.MaxPool2d((1, 4)))
        self.gru = nn.GRU(128, hidden, 2, batch_first=True, bidirectional=True)
        self.strong, self.weight = nn.Linear(2 * hidden, classes), nn.Linear(2 * hidden, classes)

    def forward(self, x):
        y, _ = self.gru(self.features(x).squeeze(3).transpose(1, 2))
        return (self.strong(y).sigmoid() * self.weight(y).softmax(1)).sum(1)


class Denoiser(nn.Module):
    """A diffusion model's U-Net: group norms, SiLU, attention of pixels at the lowest level."""

    class Block(nn.Module):
        def __init__(self, given, made):
            super().__init__()
            self.first = nn.Sequential(nn.GroupNorm(8, given), nn.SiLU(), nn.Conv2d(given, made, 3, padding=1))
            self.second = nn.Sequential(nn.GroupNorm(8, made), nn.SiLU(), nn.Conv2d(made, made, 3, padding=1))
            self.skip = nn.Conv2d(given, made, 1) if given != made else nn.Identity()

        def forward(self, x):
            return self.skip(x) + self.second(self.first(x))

    def __init__(self, channels=(64, 128, 192)):
        super().__init__()
        block = Denoiser.Block
        self.first = nn.Conv2d(3, channels[0], 3, padding=1)
        self.down = nn.ModuleList(block(*pair) for pair in zip((channels[0], *channels), channels))
        self.halve = nn.ModuleList(nn.Conv2d(c, c, 3, 2, 1) for c in channels[:-1])
        self.norm, self.qkv = nn.GroupNorm(8, channels[-1]), nn.Conv2d(channels[-1], 3 * channels[-1], 1)
        self.out = nn.Conv2d(channels[-1], channels[-1], 1)
        self.up = nn.ModuleList(block(wide + narrow, narrow) for wide, narrow in zip(channels[:0:-1], channels[-2::-1]))
        self.last = nn.Sequential(nn.GroupNorm(8, channels[0]), nn.SiLU(), nn.Conv2d(channels[0], 3, 3, padding=1))

    def forward(self, x):
        x, kept = self.first(x), []
        for level, block in enumerate(self.down):
            x = block(x)
            kept.append(x)
            if level < len(self.halve):
                x = self.halve[level](x)
        q, k, v = self.qkv(self.norm(x)).flatten(2).unflatten(1, (3, 4, -1)).transpose(-1, -2).unbind(1)
        y = functional.scaled_dot_product_attention(q, k, v).transpose(-1, -2).flatten(1, 2).unflatten(2, x.shape[2:])
        x = x + self.out(y)
        for block, beside in zip(self.up, kept[-2::-1]):
            x = block(torch.cat([functional.interpolate(x, scale_factor=2.0, mode="nearest"), beside], 1))
        return self.last(x)


class WideWindows(nn.Module):
    """Depthwise convolutions of 7x7 to 31x31 and pointwise ones, as RepLKNet."""

    def __init__(self, channels=(64, 128, 256), sizes=(31, 13, 7)):
        super().__init__()
        layers = [conv_norm(3, channels[0], stride=2), nn.MaxPool2d(2)]
        for i, (width, size) in enumerate(zip(channels, sizes)):
            for _ in range(2):
                layers += [conv_norm(width, width, 1), conv_norm(width, width, size, groups=width),
                           conv_norm(width, width, 1, act=nn.Identity), conv_norm(width, 4 * width, 1, act=nn.GELU),
                           conv_norm(4 * width, width, 1)]
            if i + 1 < len(channels):
                layers += [conv_norm(width, channels[i + 1], 1), conv_norm(channels[i + 1], channels[i + 1], 3, 2,
                                                                            channels[i + 1])]
        self.layers = nn.Sequential(*layers)

    def forward(self, x):
        return self.layers(x).mean((2, 3))
