"""Networks of images, volumes and views whose mechanisms no other file here has: cells that look at their neighbours, warps of
planes and of frames, features that are thrown onto a map, points that are drawn over each other."""
import torch
import torch.nn.functional as F
from torch import nn


class Automaton(nn.Module):
    """Cells of 16 channels, which change by what fixed filters see around them (neural cellular automata)."""

    def __init__(self, channels=16, width=128, steps=8):
        super().__init__()
        side = torch.tensor([[-1.0, 0, 1], [-2, 0, 2], [-1, 0, 1]]) / 8
        kept = torch.tensor([[0.0, 0, 0], [0, 1, 0], [0, 0, 0]])
        self.register_buffer("filters", torch.stack([kept, side, side.T]).repeat(channels, 1, 1)[:, None])
        self.first, self.second = nn.Conv2d(3 * channels, width, 1), nn.Conv2d(width, channels, 1)
        self.channels, self.steps = channels, steps

    def forward(self, x):
        for _ in range(self.steps):
            seen = F.conv2d(x, self.filters, padding=1, groups=self.channels)
            alive = F.max_pool2d(x[:, 3:4], 3, 1, 1) > 0.1
            x = (x + self.second(F.relu(self.first(seen)))) * alive
        return x


def conv(given, made, stride=1, dilation=1, act=nn.ReLU):
    return nn.Sequential(nn.Conv2d(given, made, 3, stride, dilation, dilation, bias=False), nn.BatchNorm2d(made), act())


def grid_of(height, width):
    """Places of pixels from -1 to 1: x and y."""
    y, x = torch.meshgrid(torch.linspace(-1, 1, height), torch.linspace(-1, 1, width), indexing="ij")
    return torch.stack([x, y], -1)


class PlaneSweep(nn.Module):
    """Two views of a scene: the second is warped onto planes of the first, and volumes of differences tell the depth."""

    def __init__(self, planes=16, height=24, width=32):
        super().__init__()
        self.features = nn.Sequential(conv(3, 16), conv(16, 32, 2), conv(32, 32), conv(32, 32, 2), nn.Conv2d(32, 32, 3, 1, 1))
        shifts = torch.linspace(0, 0.5, planes).view(planes, 1, 1, 1) * torch.tensor([1.0, 0.1])
        self.register_buffer("places", (grid_of(height, width) + shifts).reshape(1, planes * height, width, 2))
        self.register_buffer("depths", torch.linspace(1, 10, planes).view(1, planes, 1, 1))
        self.regular = nn.Sequential(*[nn.Sequential(nn.Conv3d(given, made, 3, 1, 1, bias=False), nn.BatchNorm3d(made), nn.ReLU())
                                       for given, made in ((32, 16), (16, 16), (16, 16))], nn.Conv3d(16, 1, 3, 1, 1))
        self.planes = planes

    def forward(self, x):
        first, second = self.features(x[:, :3]), self.features(x[:, 3:])
        n, c, h, w = first.shape
        warped = F.grid_sample(second, self.places.expand(n, -1, -1, -1), align_corners=True).view(n, c, self.planes, h, w)
        mean = (first[:, :, None] + warped) / 2
        volume = ((first[:, :, None] - mean) ** 2 + (warped - mean) ** 2) / 2
        weights = self.regular(volume)[:, 0].softmax(1)
        return (weights * self.depths).sum(1)


class BirdsEye(nn.Module):
    """Pixels' features times how deep they may lie, added where they are on a map from above (lift, splat)."""

    def __init__(self, depths=24, width=64, cells=48):
        super().__init__()
        self.trunk = nn.Sequential(conv(3, 32, 2), conv(32, 64, 2), conv(64, 128, 2), conv(128, 128, 2))
        self.lift = nn.Conv2d(128, depths + width, 1)
        generator = torch.Generator().manual_seed(1)
        self.register_buffer("cell", torch.randint(0, cells * cells, (depths * 8 * 14,), generator=generator))
        self.map = nn.Sequential(conv(width, 128, 2), conv(128, 128), nn.Upsample(scale_factor=2, mode="bilinear"), conv(128, 64))
        self.head = nn.Conv2d(64, 4, 1)
        self.depths, self.width, self.cells = depths, width, cells

    def forward(self, x):
        x = self.lift(self.trunk(x))
        n = x.shape[0]
        depth, features = x[:, :self.depths].softmax(1), x[:, self.depths:]
        points = (depth[:, None] * features[:, :, None]).reshape(n, self.width, -1)
        seen = points.new_zeros(n, self.width, self.cells * self.cells)
        seen = seen.scatter_add(2, self.cell.expand(n, self.width, -1), points)
        return self.head(self.map(seen.view(n, self.width, self.cells, self.cells)))


class InBetween(nn.Module):
    """The frame between two: flows at three scales, each from frames that the last ones warped (as in RIFE)."""

    def __init__(self, widths=(96, 64, 48), scales=(4, 2, 1), size=128):
        super().__init__()
        self.blocks = nn.ModuleList(self.block(6 if i == 0 else 11, width) for i, width in enumerate(widths))
        self.scales = scales
        self.register_buffer("places", grid_of(size, size)[None])

    @staticmethod
    def block(given, width):
        def step(given, made, stride):
            return nn.Sequential(nn.Conv2d(given, made, 3, stride, 1), nn.PReLU(made))
        return nn.Sequential(step(given, width // 2, 2), step(width // 2, width, 2), *[step(width, width, 1) for _ in range(4)],
                             nn.ConvTranspose2d(width, 5, 4, 2, 1))

    def warp(self, x, flow):
        return F.grid_sample(x, self.places + flow.permute(0, 2, 3, 1) / 64, padding_mode="border", align_corners=True)

    def forward(self, x):
        first, second = x[:, :3], x[:, 3:]
        warped, flow = x, None
        for block, scale in zip(self.blocks, self.scales):
            given = warped if flow is None else torch.cat([warped, flow], 1)
            if scale > 1:
                given = F.interpolate(given, scale_factor=1 / scale, mode="bilinear")
            change = F.interpolate(block(given), scale_factor=2.0 * scale, mode="bilinear")
            flow = change if flow is None else flow + change
            warped = torch.cat([self.warp(first, flow[:, :2]), self.warp(second, flow[:, 2:4])], 1)
        mask = flow[:, 4:].sigmoid()
        return warped[:, :3] * mask + warped[:, 3:] * (1 - mask)


class TwoStreams(nn.Module):
    """A video at two rates: few frames of many channels, many frames of few, joined after each stage (SlowFast)."""

    def __init__(self):
        super().__init__()
        def step(given, made, size, stride=(1, 1, 1)):
            return nn.Sequential(nn.Conv3d(given, made, size, stride, [each // 2 for each in size], bias=False),
                                 nn.BatchNorm3d(made), nn.ReLU())
        self.slow = nn.ModuleList([step(3, 64, (1, 7, 7), (1, 2, 2)), step(80, 64, (1, 3, 3), (1, 2, 2)),
                                   step(96, 128, (3, 3, 3), (1, 2, 2))])
        self.fast = nn.ModuleList([step(3, 8, (5, 7, 7), (1, 2, 2)), step(8, 16, (3, 3, 3), (1, 2, 2)),
                                   step(16, 32, (3, 3, 3), (1, 2, 2))])
        self.joins = nn.ModuleList(nn.Conv3d(width, 2 * width, (5, 1, 1), (4, 1, 1), (2, 0, 0), bias=False) for width in (8, 16))
        self.head = nn.Linear(160, 50)

    def forward(self, x):
        slow, fast = x[:, :, ::4], x
        for i, (of_slow, of_fast) in enumerate(zip(self.slow, self.fast)):
            slow, fast = of_slow(slow), of_fast(fast)
            if i < 2:
                slow = torch.cat([slow, self.joins[i](fast)], 1)
        return self.head(torch.cat([slow.mean((2, 3, 4)), fast.mean((2, 3, 4))], 1))


class Crowds(nn.Module):
    """How many there are at each place: a plain trunk, and dilated windows behind it (CSRNet)."""

    def __init__(self):
        super().__init__()
        widths, layers, given = (32, 32, "M", 64, 64, "M", 128, 128, 128, "M", 256, 256), [], 3
        for width in widths:
            layers.append(nn.MaxPool2d(2) if width == "M" else conv(given, width))
            given = given if width == "M" else width
        for width in (256, 256, 128, 64):
            layers.append(conv(given, width, dilation=2))
            given = width
        self.all = nn.Sequential(*layers, nn.Conv2d(given, 1, 1))

    def forward(self, x):
        return F.interpolate(self.all(x), scale_factor=8.0, mode="bilinear")


class Splats(nn.Module):
    """Gaussians of a plane, sorted by depth and drawn over each other: x, y, two widths, depth, opacity, colour."""

    def __init__(self, size=48):
        super().__init__()
        self.change = nn.Sequential(nn.Linear(9, 64), nn.SiLU(), nn.Linear(64, 9))
        self.register_buffer("pixels", grid_of(size, size).reshape(1, 1, -1, 2))
        self.size = size

    def forward(self, x):
        x = x + self.change(x)
        order = x[:, :, 4].argsort(dim=1)
        x = x.gather(1, order[:, :, None].expand(-1, -1, 9))
        apart = (self.pixels - x[:, :, None, :2].tanh()) / F.softplus(x[:, :, None, 2:4] - 2)
        alpha = 0.95 * x[:, :, 5:6].sigmoid() * torch.exp(-0.5 * (apart ** 2).sum(-1))
        passed = torch.log1p(-alpha).cumsum(1)
        weight = alpha * torch.exp(passed - torch.log1p(-alpha))
        return torch.einsum("nkp,nkc->ncp", weight, x[:, :, 6:].sigmoid()).unflatten(2, (self.size, self.size))


class Tracing(nn.Module):
    """Rays that walk to a surface: a network tells at each step how far it is (a signed distance, sphere tracing)."""

    def __init__(self, width=128, steps=6, octaves=6):
        super().__init__()
        self.register_buffer("scales", 2.0 ** torch.arange(octaves))
        given = 3 + 6 * octaves
        self.first = nn.ModuleList([nn.Linear(given, width), nn.Linear(width, width - given), nn.Linear(width, width)])
        self.last, self.steps = nn.Linear(width, 1), steps
        self.colour = nn.Sequential(nn.Linear(given + 3, width), nn.ReLU(), nn.Linear(width, 3))

    def encode(self, p):
        angles = (p[..., None] * self.scales).flatten(-2)
        return torch.cat([p, angles.sin(), angles.cos()], -1)

    def distance(self, p):
        given = self.encode(p)
        h = F.softplus(self.first[0](given), beta=10)
        h = torch.cat([F.softplus(self.first[1](h), beta=10), given], -1)
        return self.last(F.softplus(self.first[2](h), beta=10))

    def forward(self, rays):
        p, ahead = rays[..., :3], F.normalize(rays[..., 3:], dim=-1)
        for _ in range(self.steps):
            p = p + 0.5 * self.distance(p) * ahead
        return self.colour(torch.cat([self.encode(p), ahead], -1)).sigmoid()
