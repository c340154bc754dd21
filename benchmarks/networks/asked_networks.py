"""Networks of kinds that users bring: gates of pictures over channels and pixels, heads that levels share, products of channels with themselves,
responses of neighbouring channels, distances that attention shifts, decoders with caps, weights of each object's own, shares with zeros."""
import math

import torch
import torch.nn.functional as F
from torch import nn


def heads_of(x, heads):
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def convolution(before, after, size=3, stride=1):
    return nn.Sequential(nn.Conv2d(before, after, size, stride, size // 2, bias=False), nn.BatchNorm2d(after), nn.ReLU())


class GatesOfPictures(nn.Module):
    """Gates over channels and pixels of five kinds: CBAM, triplets of axes, energies (SimAM), neighbouring channels (ECA), and context (GCNet)."""

    def __init__(self, width=96):
        super().__init__()
        self.stem, self.down = nn.Sequential(convolution(3, 48, 3, 2), convolution(48, width, 3, 2)), nn.ModuleList(convolution(width, width, 3, 2 if i == 2 else 1) for i in range(5))
        self.few, self.pixels = nn.Sequential(nn.Linear(width, width // 16), nn.ReLU(), nn.Linear(width // 16, width)), nn.Conv2d(2, 1, 7, padding=3)
        self.axes, self.line = nn.ModuleList(nn.Conv2d(2, 1, 7, padding=3) for _ in range(3)), nn.Conv1d(1, 1, 5, padding=2)
        self.where, self.context = nn.Conv2d(width, 1, 1), nn.Sequential(nn.Conv2d(width, width // 4, 1), nn.LayerNorm([width // 4, 1, 1]), nn.ReLU(), nn.Conv2d(width // 4, width, 1))
        self.last = nn.Linear(width, 100)

    def pooled(self, x):
        return torch.cat([x.amax(1, True), x.mean(1, True)], 1)

    def forward(self, x):
        x = self.stem(x)
        y = self.down[0](x)
        y = y * (self.few(y.mean((2, 3))) + self.few(y.amax((2, 3)))).sigmoid()[..., None, None]
        x = x + y * self.pixels(self.pooled(y)).sigmoid()
        y = self.down[1](x)
        turned, other = y.permute(0, 2, 1, 3), y.permute(0, 3, 2, 1)
        y = y * self.axes[0](self.pooled(y)).sigmoid() + (turned * self.axes[1](self.pooled(turned)).sigmoid()).permute(0, 2, 1, 3) \
            + (other * self.axes[2](self.pooled(other)).sigmoid()).permute(0, 3, 2, 1)
        x = self.down[2](x + y / 3)
        y = self.down[3](x)
        apart = (y - y.mean((2, 3), True)).square()
        x = x + y * (apart / (4 * (apart.sum((2, 3), True) / (y.shape[2] * y.shape[3] - 1) + 1e-4)) + 0.5).sigmoid()
        y = self.down[4](x)
        y = y * self.line(y.mean((2, 3))[:, None]).sigmoid().transpose(1, 2)[..., None]
        seen = (y.flatten(2) @ self.where(y).flatten(2).softmax(-1).transpose(1, 2))[..., None]
        return self.last((x + y + self.context(seen)).mean((2, 3)))


class SharedLevels(nn.Module):
    """Levels of a pyramid that share towers with group norms, and boxes from distances (FCOS)."""

    def __init__(self, width=128, classes=20):
        super().__init__()
        self.stages = nn.ModuleList([nn.Sequential(convolution(3, 32, 3, 2), convolution(32, 64, 3, 2), convolution(64, 96, 3, 2)), convolution(96, 192, 3, 2), convolution(192, 256, 3, 2)])
        self.sides, self.smooth = nn.ModuleList(nn.Conv2d(c, width, 1) for c in (96, 192, 256)), nn.ModuleList(nn.Conv2d(width, width, 3, padding=1) for _ in range(3))
        self.further = nn.ModuleList(nn.Conv2d(width, width, 3, 2, 1) for _ in range(2))
        tower = lambda: nn.Sequential(*(each for _ in range(2) for each in (nn.Conv2d(width, width, 3, padding=1), nn.GroupNorm(32, width), nn.ReLU())))
        self.kinds, self.places = tower(), tower()
        self.kind, self.box, self.middle, self.scales = nn.Conv2d(width, classes, 3, padding=1), nn.Conv2d(width, 4, 3, padding=1), nn.Conv2d(width, 1, 3, padding=1), nn.Parameter(torch.ones(5))

    def forward(self, x):
        levels = []
        for stage in self.stages:
            x = stage(x)
            levels.append(x)
        sides = [side(level) for side, level in zip(self.sides, levels)]
        for i in (1, 0):
            sides[i] = sides[i] + F.interpolate(sides[i + 1], scale_factor=2.0, mode="nearest")
        levels = [smooth(side) for smooth, side in zip(self.smooth, sides)]
        for further in self.further:
            levels.append(further(levels[-1].relu()))
        made = []
        for i, level in enumerate(levels):
            kinds, places = self.kinds(level), self.places(level)
            box = (self.box(places) * self.scales[i]).clamp(max=4).exp() * 2 ** (3 + i)
            h, w = level.shape[2:]
            y, x = torch.meshgrid(torch.arange(h, device=x.device), torch.arange(w, device=x.device), indexing="ij")
            at = (torch.stack([x, y], -1).flatten(0, 1) + 0.5) * 2 ** (3 + i)
            left, right = box.flatten(2).transpose(1, 2).split(2, -1)
            score = (self.kind(kinds).sigmoid() * self.middle(places).sigmoid()).sqrt()
            made.append(torch.cat([at - left, at + right, score.flatten(2).transpose(1, 2)], -1))
        return torch.cat(made, 1)


class ChannelPairs(nn.Module):
    """Products of all pairs of channels, summed over pixels, with signed roots and unit length (bilinear CNN)."""

    def __init__(self, width=128):
        super().__init__()
        self.stem = nn.Sequential(convolution(3, 32, 3, 2), convolution(32, 64, 3, 2), convolution(64, 128, 3, 2), convolution(128, width, 3))
        self.last = nn.Linear(width * width, 200)

    def forward(self, x):
        x = self.stem(x).flatten(2)
        pairs = (x @ x.transpose(1, 2) / x.shape[2]).flatten(1)
        return self.last(F.normalize(pairs.sign() * (pairs.abs() + 1e-5).sqrt(), dim=1))


class NeighbouringResponses(nn.Module):
    """Local responses over channels, greatest of linear parts, and pools that overlap (AlexNet's kind, maxout)."""

    def __init__(self):
        super().__init__()
        self.first, self.second, self.third = nn.Conv2d(3, 64, 11, 4, 2), nn.Conv2d(64, 192, 5, padding=2), nn.Conv2d(192, 4 * 96, 3, padding=1)
        self.parts, self.last = nn.Linear(96 * 36, 512 * 4), nn.Linear(512, 100)

    def forward(self, x):
        x = F.max_pool2d(F.local_response_norm(self.first(x).relu(), 5), 3, 2)
        x = F.max_pool2d(F.local_response_norm(self.second(x).relu(), 5, 1e-4, 0.75, 2.0), 3, 2)
        x = F.max_pool2d(self.third(x).unflatten(1, (96, 4)).amax(2), 3, 2)
        return self.last(self.parts(x.flatten(1)).unflatten(1, (512, 4)).amax(2))


class ShiftedDistances(nn.Module):
    """Speech blocks: half steps, attention with distances that are shifted by a reshape, gated depthwise windows (Conformer)."""

    class Block(nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            step = lambda: nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.SiLU(), nn.Linear(4 * width, width))
            self.before, self.after, self.heads, self.norm = step(), step(), heads, nn.LayerNorm(width)
            self.parts, self.out, self.place = nn.Linear(width, 3 * width), nn.Linear(width, width), nn.Linear(width, width, bias=False)
            self.u, self.v = nn.Parameter(torch.randn(heads, 1, width // heads) * 0.1), nn.Parameter(torch.randn(heads, 1, width // heads) * 0.1)
            self.wide, self.window, self.batch, self.narrow, self.inner, self.last = nn.Conv1d(width, 2 * width, 1), nn.Conv1d(width, width, 15, padding=7, groups=width), nn.BatchNorm1d(width), nn.Conv1d(width, width, 1), nn.LayerNorm(width), nn.LayerNorm(width)

        def forward(self, x, places):
            x = x + self.before(x) / 2
            q, k, v = (heads_of(each, self.heads) for each in self.parts(self.norm(x)).chunk(3, -1))
            far = (q + self.v) @ heads_of(self.place(places), self.heads).transpose(2, 3)
            b, h, n, m = far.shape
            far = F.pad(far, (1, 0)).view(b, h, m + 1, n)[:, :, 1:].reshape(b, h, n, m)[..., :n]
            scores = ((q + self.u) @ k.transpose(2, 3) + far) / math.sqrt(q.shape[-1])
            x = x + self.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))
            y = F.glu(self.wide(self.inner(x).transpose(1, 2)), 1)
            x = x + self.narrow(F.silu(self.batch(self.window(y)))).transpose(1, 2)
            return self.last(x + self.after(x) / 2)

    def __init__(self, width=144, heads=4):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, 32, 3, 2), nn.ReLU(), nn.Conv2d(32, 32, 3, 2), nn.ReLU())
        self.into, self.blocks, self.last = nn.Linear(32 * 19, width), nn.ModuleList(ShiftedDistances.Block(width, heads) for _ in range(2)), nn.Linear(width, 64)
        at = torch.arange(98, -99, -1.0)[:, None] * torch.exp(torch.arange(0, width, 2) * (-math.log(1e4) / width))
        self.register_buffer("places", torch.cat([at.sin(), at.cos()], 1)[None], persistent=False)

    def forward(self, x):
        x = self.into(self.stem(x).transpose(1, 2).flatten(2))
        for block in self.blocks:
            x = block(x, self.places)
        return self.last(x).log_softmax(-1)


class CappedScores(nn.Module):
    """A decoder with norms of queries and keys, rotary pairs of a part, windows that slide, caps of scores and of logits, two norms a block (Gemma's kind)."""

    class Block(nn.Module):
        def __init__(self, width, heads, kept, window):
            super().__init__()
            self.heads, self.kept, self.window, self.each = heads, kept, window, width // heads
            self.norms, self.of_q, self.of_k = nn.ModuleList(nn.RMSNorm(width, 1e-6) for _ in range(4)), nn.RMSNorm(self.each, 1e-6), nn.RMSNorm(self.each, 1e-6)
            self.q, self.kv, self.out = nn.Linear(width, width, bias=False), nn.Linear(width, 2 * kept * self.each, bias=False), nn.Linear(width, width, bias=False)
            self.gate, self.up, self.down = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, 3 * width, bias=False), nn.Linear(3 * width, width, bias=False)

        def turn(self, x, cos, sin):
            a, rest = x[..., :32], x[..., 32:]
            one, other = a.chunk(2, -1)
            return torch.cat([a * cos + torch.cat([-other, one], -1) * sin, rest], -1)

        def forward(self, x, cos, sin):
            y = self.norms[0](x)
            q = self.turn(self.of_q(heads_of(self.q(y), self.heads)), cos, sin)
            k, v = (heads_of(each, self.kept) for each in self.kv(y).chunk(2, -1))
            k = self.turn(self.of_k(k), cos, sin).repeat_interleave(self.heads // self.kept, 1)
            scores = torch.tanh(q @ k.transpose(2, 3) / math.sqrt(self.each) / 50) * 50
            at = torch.arange(x.shape[1], device=x.device)
            gap = at[:, None] - at
            scores = scores.masked_fill((gap < 0) | (gap >= self.window), -1e9)
            y = scores.softmax(-1) @ v.repeat_interleave(self.heads // self.kept, 1)
            x = x + self.norms[1](self.out(y.transpose(1, 2).flatten(2)))
            y = self.norms[2](x)
            return x + self.norms[3](self.down(F.gelu(self.gate(y), approximate="tanh") * self.up(y)))

    def __init__(self, width=512, words=8000):
        super().__init__()
        self.words, self.blocks, self.norm = nn.Embedding(words, width), nn.ModuleList(CappedScores.Block(width, 8, 2, 64 if i % 2 else 1024) for i in range(2)), nn.RMSNorm(width, 1e-6)

    def forward(self, x):
        angle = torch.arange(x.shape[1], device=x.device)[:, None] * 1e4 ** (-torch.arange(0, 32, 2, device=x.device) / 32)
        x = self.words(x) * 22.6
        cos, sin = (torch.cat([each, each], -1).to(x.dtype) for each in (angle.cos(), angle.sin()))
        for block in self.blocks:
            x = block(x, cos, sin)
        return torch.tanh(F.linear(self.norm(x), self.words.weight) / 30) * 30


class WeightsOfObjects(nn.Module):
    """A field for each picture whose weights a net of the picture writes, asked at all places (hypernetwork, functa)."""

    def __init__(self, each=32):
        super().__init__()
        self.stem = nn.Sequential(convolution(3, 32, 3, 2), convolution(32, 64, 3, 2), convolution(64, 128, 3, 2))
        self.each, self.write = each, nn.Linear(128, each * 18 + each + 2 * (each * each + each) + 3 * each + 3)

    def forward(self, x):
        h, w = x.shape[2:]
        y, z = torch.meshgrid(torch.linspace(-1, 1, h, device=x.device), torch.linspace(-1, 1, w, device=x.device), indexing="ij")
        at = torch.stack([y, z], -1).flatten(0, 1)
        angle = (at[..., None] * 2.0 ** torch.arange(4, device=x.device)).flatten(1) * math.pi
        v = torch.cat([at, angle.sin(), angle.cos()], 1).to(x.dtype)
        told, e = self.write(self.stem(x).mean((2, 3))), self.each
        sizes = [(18, e), (e, e), (e, e), (e, 3)]
        begin = 0
        for i, (a, b) in enumerate(sizes):
            weight, bias = told[:, begin:begin + a * b].unflatten(1, (a, b)), told[:, begin + a * b:begin + a * b + b]
            begin += a * b + b
            v = v @ weight / math.sqrt(a) + bias[:, None]
            v = torch.sin(3 * v) if i < 3 else v
        return v.transpose(1, 2).unflatten(2, (h, w))


class SharesWithZeros(nn.Module):
    """Steps over columns of a table, each with a mask that is a share with zeros, ghost norms left out (TabNet)."""

    def __init__(self, columns=128, width=64, steps=4):
        super().__init__()
        self.norm, self.first = nn.BatchNorm1d(columns), nn.Linear(columns, 4 * width)
        self.own, self.masks = nn.ModuleList(nn.ModuleList([nn.Linear(2 * width, 4 * width), nn.Linear(2 * width, 4 * width)]) for _ in range(steps + 1)), nn.ModuleList(nn.Sequential(nn.Linear(width, columns), nn.BatchNorm1d(columns)) for _ in range(steps))
        self.width, self.last = width, nn.Linear(width, 10)

    def share(self, x):
        rising = x.sort(-1, descending=True).values
        at = torch.arange(1, x.shape[-1] + 1, device=x.device, dtype=x.dtype)
        sums = rising.cumsum(-1) - 1
        many = (at * rising > sums).sum(-1, keepdim=True)
        return (x - sums.gather(-1, many - 1) / many.to(x.dtype)).clamp(min=0)

    def parts(self, x, i):
        x = F.glu(self.first(x))
        for each in self.own[i]:
            x = (x + F.glu(each(x))) * math.sqrt(0.5)
        return x.split(self.width, -1)

    def forward(self, x):
        x = self.norm(x.flatten(0, 1))
        _, told = self.parts(x, 0)
        prior, made = torch.ones_like(x), 0
        for i, mask in enumerate(self.masks):
            share = self.share((mask(told) * prior).float()).to(x.dtype)
            prior = prior * (1.3 - share)
            said, told = self.parts(x * share, i + 1)
            made = made + said.relu()
        return self.last(made)


class LambdaPixels(nn.Module):
    """Pixels that become functions: content and place lambdas (lambda networks), and kernels of each pixel's own (involution)."""

    def __init__(self, width=128, heads=4, key=16, groups=8):
        super().__init__()
        self.stem, self.heads, self.key, self.groups = nn.Sequential(convolution(3, 64, 3, 2), convolution(64, width, 3, 2)), heads, key, groups
        self.q, self.k, self.v, self.place = nn.Conv2d(width, heads * key, 1, bias=False), nn.Conv2d(width, key, 1, bias=False), nn.Conv2d(width, width // heads, 1, bias=False), nn.Conv3d(1, key, (1, 7, 7), padding=(0, 3, 3))
        self.qn, self.vn = nn.BatchNorm2d(heads * key), nn.BatchNorm2d(width // heads)
        self.few, self.write, self.last = convolution(width, width // 4, 1), nn.Conv2d(width // 4, 49 * groups, 1), nn.Linear(width, 100)

    def forward(self, x):
        x = self.stem(x)
        b, c, h, w = x.shape
        q, k, v = self.qn(self.q(x)).view(b, self.heads, self.key, h * w), self.k(x).flatten(2).softmax(-1), self.vn(self.v(x))
        content = k @ v.flatten(2).transpose(1, 2)
        y = q.transpose(2, 3) @ content[:, None]
        places = self.place(v[:, None]).flatten(3)
        y = y + torch.einsum("bhkn,bkvn->bhnv", q, places)
        x = x + y.transpose(2, 3).reshape(b, c, h, w)
        kernel = self.write(self.few(x)).view(b, self.groups, 1, 49, h, w)
        windows = F.unfold(x, 7, padding=3).view(b, self.groups, c // self.groups, 49, h, w)
        return self.last((x + (kernel * windows).sum(3).flatten(1, 2)).mean((2, 3)))


class SampledDensities(nn.Module):
    """Rays in two passes: densities of a few places, more places drawn where they are dense, both in order (NeRF's fine pass)."""

    def __init__(self, width=128, few=32, more=64):
        super().__init__()
        net = lambda: nn.Sequential(nn.Linear(39, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 4))
        self.coarse, self.fine, self.few, self.more = net(), net(), few, more

    def asked(self, net, origin, way, at):
        places = origin[:, :, None] + way[:, :, None] * at[..., None]
        angle = (places[..., None, :] * 2.0 ** torch.arange(6, device=at.device, dtype=at.dtype)[:, None]).flatten(3)
        made = net(torch.cat([places, angle.sin(), angle.cos()], -1))
        gap = torch.cat([at[..., 1:] - at[..., :-1], torch.full_like(at[..., :1], 1.0)], -1)
        solid = 1 - (-made[..., 3].relu() * gap).exp()
        clear = torch.cat([torch.zeros_like(solid[..., :1]), (1 - solid + 1e-6).log()[..., :-1]], -1).cumsum(-1).exp()
        return (solid * clear), made[..., :3].sigmoid()

    def forward(self, x):
        origin, way = x[..., :3], F.normalize(x[..., 3:], dim=-1)
        at = torch.linspace(0.1, 2, self.few, device=x.device, dtype=x.dtype).expand(*x.shape[:2], self.few)
        share, _ = self.asked(self.coarse, origin, way, at)
        share = (share.float()[..., 1:-1] + 1e-4)
        sums = F.pad((share / share.sum(-1, keepdim=True)).cumsum(-1), (1, 0))
        draw = torch.linspace(0.01, 0.99, self.more, device=x.device).expand(*x.shape[:2], self.more)
        right = (sums[..., None, :] <= draw[..., None]).sum(-1).clamp(max=sums.shape[-1] - 1)
        left = (right - 1).clamp(min=0)
        middle = (at[..., 1:] + at[..., :-1]) / 2
        low, high, a, b = sums.gather(-1, left), sums.gather(-1, right), middle.gather(-1, left), middle.gather(-1, right)
        new = a + ((draw - low) / (high - low).clamp(min=1e-5)).to(x.dtype) * (b - a)
        share, colour = self.asked(self.fine, origin, way, torch.cat([at, new], -1).sort(-1).values)
        return (share[..., None] * colour).sum(2)


class StandardWeights(nn.Module):
    """Residual blocks whose weights are made standard as it runs, with group norms, blurred pools and learned slopes (BiT's kind)."""

    class Convolution(nn.Conv2d):
        def forward(self, x):
            mean = self.weight.mean((1, 2, 3), True)
            return F.conv2d(x, (self.weight - mean) / (self.weight.var((1, 2, 3), keepdim=True, unbiased=False) + 1e-5).sqrt(), self.bias, self.stride, self.padding)

    class Block(nn.Module):
        def __init__(self, before, after, stride):
            super().__init__()
            self.norm, self.slope = nn.GroupNorm(32, before), nn.PReLU(before)
            self.one, self.two, self.other, self.second = StandardWeights.Convolution(before, after, 3, padding=1), StandardWeights.Convolution(after, after, 3, padding=1), StandardWeights.Convolution(before, after, 1), nn.Sequential(nn.GroupNorm(32, after), nn.PReLU(after))
            self.stride, self.is_same = stride, before == after
            blur = torch.tensor([1.0, 3, 3, 1])
            self.register_buffer("blur", (blur[:, None] * blur / 64).expand(before, 1, 4, 4).clone())

        def forward(self, x):
            y = self.slope(self.norm(x))
            if self.stride > 1:
                x, y = (F.conv2d(F.pad(each, (1, 2, 1, 2), mode="reflect"), self.blur, stride=2, groups=each.shape[1]) for each in (x, y))
            return (x if self.is_same else self.other(y)) + self.two(self.second(self.one(y)))

    def __init__(self):
        super().__init__()
        self.stem = StandardWeights.Convolution(3, 64, 7, 2, 3)
        self.blocks = nn.Sequential(StandardWeights.Block(64, 64, 2), StandardWeights.Block(64, 128, 2), StandardWeights.Block(128, 256, 2))
        self.last = nn.Linear(256, 100)

    def forward(self, x):
        return self.last(self.blocks(self.stem(x)).relu().mean((2, 3)))
