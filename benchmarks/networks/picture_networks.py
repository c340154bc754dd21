"""Networks of papers whose answer is a picture or a class for each pixel: styles, translations, super resolution, segments;
norms over pixels of an image, few channels, upper and lower bounds of what convolutions of such widths do."""
import torch
from own_networks import conv_norm
from torch import nn
from torch.nn import functional


def image_norm(width):
    """A norm over the pixels of each channel, with a scale and a shift, or none of them."""
    return nn.InstanceNorm2d(width, affine=True)


class FastStyle(nn.Module):
    """Johnson's transfer of a style: reflected edges, a norm over pixels behind every convolution, nearest resizes."""

    class Layer(nn.Module):
        def __init__(self, given, made, size, stride=1, scale=1):
            super().__init__()
            self.scale = scale
            self.pad, self.conv = nn.ReflectionPad2d(size // 2), nn.Conv2d(given, made, size, stride)
            self.norm = image_norm(made)

        def forward(self, x):
            if self.scale > 1:
                x = functional.interpolate(x, scale_factor=float(self.scale), mode="nearest")
            return self.norm(self.conv(self.pad(x)))

    def __init__(self, width=32, blocks=5):
        super().__init__()
        layer = FastStyle.Layer
        self.down = nn.ModuleList([layer(3, width, 9), layer(width, 2 * width, 3, 2), layer(2 * width, 4 * width, 3, 2)])
        self.blocks = nn.ModuleList(nn.ModuleList(layer(4 * width, 4 * width, 3) for _ in range(2)) for _ in range(blocks))
        self.up = nn.ModuleList([layer(4 * width, 2 * width, 3, scale=2), layer(2 * width, width, 3, scale=2)])
        self.pad, self.last = nn.ReflectionPad2d(4), nn.Conv2d(width, 3, 9)

    def forward(self, x):
        for layer in self.down:
            x = functional.relu(layer(x))
        for first, second in self.blocks:
            x = x + second(functional.relu(first(x)))
        for layer in self.up:
            x = functional.relu(layer(x))
        return self.last(self.pad(x))


class Translation(nn.Module):
    """pix2pix: halves by 4x4 windows, leaky edges, norms over pixels without scales, transposed windows, concats, tanh."""

    def __init__(self, widths=(32, 64, 128, 256, 256)):
        super().__init__()
        self.down, self.up = nn.ModuleList(), nn.ModuleList()
        for i, (given, made) in enumerate(zip((3, *widths), widths)):
            self.down.append(nn.Sequential(nn.Conv2d(given, made, 4, 2, 1), nn.InstanceNorm2d(made) if i else nn.Identity()))
        for i in reversed(range(len(widths))):
            given = widths[i] if i + 1 == len(widths) else 2 * widths[i]
            made = widths[i - 1] if i else 3
            self.up.append(nn.Sequential(nn.ConvTranspose2d(given, made, 4, 2, 1), nn.InstanceNorm2d(made) if i else nn.Tanh()))

    def forward(self, x):
        kept = []
        for layer in self.down:
            x = layer(functional.leaky_relu(x, 0.2) if kept else x)
            kept.append(x)
        for layer, beside in zip(self.up, (None, *kept[-2::-1])):
            x = layer(functional.relu(x if beside is None else torch.cat([x, beside], 1)))
        return x


class QuickSegments(nn.Module):
    """ENet: bottlenecks of few channels, with slopes learned, dilated and parted windows, and the logarithm of each class."""

    class Bottleneck(nn.Module):
        def __init__(self, given, made, dilation=1, parted=False, halves=False):
            super().__init__()
            inner, size = made // 4, 2 if halves else 1

            def step(*conv):
                return [*conv, nn.BatchNorm2d(inner), nn.PReLU(inner)]

            windows = [nn.Conv2d(inner, inner, (5, 1), padding=(2, 0), bias=False), nn.Conv2d(inner, inner, (1, 5), padding=(0, 2))] \
                if parted else [nn.Conv2d(inner, inner, 3, padding=dilation, dilation=dilation)]
            self.layers = nn.Sequential(*step(nn.Conv2d(given, inner, size, size, bias=False)), *step(*windows),
                                        nn.Conv2d(inner, made, 1, bias=False), nn.BatchNorm2d(made))
            self.halves, self.more, self.slope = halves, made - given, nn.PReLU(made)

        def forward(self, x):
            beside = functional.max_pool2d(x, 2) if self.halves else x
            if self.more:
                beside = functional.pad(beside, (0, 0, 0, 0, 0, self.more))
            return self.slope(self.layers(x) + beside)

    def __init__(self, classes=19):
        super().__init__()
        block = QuickSegments.Bottleneck
        self.first = nn.Conv2d(3, 13, 3, 2, 1)
        middle = [kind for _ in range(2) for kind in ({}, {"dilation": 2}, {"parted": True}, {"dilation": 4})]
        self.body = nn.Sequential(block(16, 64, halves=True), block(64, 64), block(64, 64), block(64, 128, halves=True),
                                  *[block(128, 128, **kind) for kind in middle])
        self.up = nn.Sequential(nn.ConvTranspose2d(128, 64, 3, 2, 1, 1), nn.BatchNorm2d(64), nn.PReLU(64), block(64, 64),
                                nn.ConvTranspose2d(64, 16, 3, 2, 1, 1), nn.BatchNorm2d(16), nn.PReLU(16), block(16, 16))
        self.last = nn.ConvTranspose2d(16, classes, 2, 2)

    def forward(self, x):
        x = torch.cat([self.first(x), functional.max_pool2d(x, 2)], 1)
        return functional.log_softmax(self.last(self.up(self.body(x))), 1)


class FewChannels(nn.Module):
    """FSRCNN: windows of 8 channels between a wide shrink and a wide transposed 9x9 window."""

    def __init__(self, wide=56, few=8, depth=4):
        super().__init__()

        def step(given, made, size):
            return [nn.Conv2d(given, made, size, padding=size // 2), nn.PReLU(made)]

        layers = [*step(1, wide, 5), *step(wide, few, 1)]
        for _ in range(depth):
            layers += step(few, few, 3)
        self.layers = nn.Sequential(*layers, *step(few, wide, 1), nn.ConvTranspose2d(wide, 1, 9, 3, 4, 2))

    def forward(self, x):
        return self.layers(x)


class ChannelRestorer(nn.Module):
    """RCAN: residual blocks whose channels are weighed by their means, in groups, and pixels from channels."""

    class Block(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.layers = nn.Sequential(nn.Conv2d(width, width, 3, padding=1), nn.ReLU(), nn.Conv2d(width, width, 3, padding=1))
            self.weigh = nn.Sequential(nn.Conv2d(width, width // 16, 1), nn.ReLU(), nn.Conv2d(width // 16, width, 1), nn.Sigmoid())

        def forward(self, x):
            y = self.layers(x)
            return x + y * self.weigh(y.mean((2, 3), keepdim=True))

    def __init__(self, width=64, groups=2, depth=4):
        super().__init__()
        self.first = nn.Conv2d(3, width, 3, padding=1)
        self.groups = nn.ModuleList(nn.Sequential(*[ChannelRestorer.Block(width) for _ in range(depth)], nn.Conv2d(width, width, 3, padding=1))
                                    for _ in range(groups))
        self.up = nn.Sequential(nn.Conv2d(width, 4 * width, 3, padding=1), nn.PixelShuffle(2), nn.Conv2d(width, 3, 3, padding=1))

    def forward(self, x):
        x = y = self.first(x)
        for group in self.groups:
            y = y + group(y)
        return self.up(x + y)


class TwoPaths(nn.Module):
    """BiSeNet: a path of details and one of contexts, with global means as weights, and the classes at full size."""

    def __init__(self, classes=21):
        super().__init__()
        step = lambda given, made: conv_norm(given, made, stride=2)  # noqa: E731
        self.details = nn.Sequential(step(3, 32), step(32, 64), step(64, 128))
        self.context = nn.ModuleList([nn.Sequential(step(3, 16), step(16, 32), step(32, 64), step(64, 128)), step(128, 256)])
        self.weighs = nn.ModuleList(nn.Sequential(nn.Conv2d(width, width, 1), nn.BatchNorm2d(width), nn.Sigmoid()) for width in (128, 256))
        self.join = conv_norm(512, 128, 1)
        self.mix = nn.Sequential(nn.Conv2d(128, 32, 1), nn.ReLU(), nn.Conv2d(32, 128, 1), nn.Sigmoid())
        self.head = nn.Conv2d(128, classes, 1)

    def forward(self, x):
        details, found = self.details(x), []
        for layer, weigh in zip(self.context, self.weighs):
            y = layer(found[-1] if found else x)
            found.append(y)
        parts = [y * weigh(y.mean((2, 3), keepdim=True)) for y, weigh in zip(found, self.weighs)]
        parts = [functional.interpolate(part, details.shape[2:], mode="bilinear", align_corners=False) for part in parts]
        y = self.join(torch.cat([details, *parts], 1))
        y = self.head(y + y * self.mix(y.mean((2, 3), keepdim=True)))
        return functional.log_softmax(functional.interpolate(y, x.shape[2:], mode="bilinear", align_corners=False), 1)


class Nested(nn.Module):
    """U-Net++: every level reads all that its own level made, and what lies below, resized."""

    def __init__(self, widths=(16, 32, 64, 128)):
        super().__init__()
        self.depth = len(widths)
        self.nodes = nn.ModuleDict()
        for j in range(self.depth):
            for i in range(self.depth - j):
                given = (widths[i - 1] if i else 3) if j == 0 else j * widths[i] + widths[i + 1]
                self.nodes[f"{i}_{j}"] = nn.Sequential(conv_norm(given, widths[i]), conv_norm(widths[i], widths[i]))
        self.head = nn.Conv2d(widths[0], 1, 1)

    def forward(self, x):
        made = {}
        for j in range(self.depth):
            for i in range(self.depth - j):
                if j == 0:
                    given = functional.max_pool2d(made[i - 1, 0], 2) if i else x
                else:
                    below = functional.interpolate(made[i + 1, j - 1], scale_factor=2.0, mode="bilinear", align_corners=True)
                    given = torch.cat([made[i, k] for k in range(j)] + [below], 1)
                made[i, j] = self.nodes[f"{i}_{j}"](given)
        return self.head(made[0, self.depth - 1]).sigmoid()


class Poses(nn.Module):
    """OpenPose: stages of wide windows, each of which reads the maps of the last beside the features."""

    def __init__(self, width=64, maps=19, stages=3):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 32, 3, 2, 1), nn.ReLU(), nn.Conv2d(32, width, 3, 2, 1), nn.ReLU(),
                                      nn.Conv2d(width, width, 3, padding=1), nn.ReLU())
        self.stages = nn.ModuleList()
        for stage in range(stages):
            given, layers = width + (maps if stage else 0), []
            for _ in range(3):
                layers += [nn.Conv2d(given, width, 7, padding=3), nn.ReLU()]
                given = width
            self.stages.append(nn.Sequential(*layers, nn.Conv2d(width, maps, 1)))

    def forward(self, x):
        x, y = self.features(x), None
        for stage in self.stages:
            y = stage(x if y is None else torch.cat([x, y], 1))
        return y
