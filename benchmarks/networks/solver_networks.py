"""Networks whose mechanisms no other file here has: filters as long as the sequence that functions of time make, a memory that is
written and read by likeness, labels that neighbours agree on, codes that steps of an iteration find, words as sums of their parts,
numbers rounded to steps, maps that gates open, likelihoods of mixtures, fields that change by their neighbours, tokens that are
sorted by what they are like."""
import torch
import torch.nn.functional as F
from torch import nn

from scene_networks import conv


class ImplicitFilters(nn.Module):
    """Sequences through filters of their whole length, made of sines of time, between gates (Hyena)."""

    def __init__(self, width=128, layers=3, length=1024, waves=16):
        super().__init__()
        self.words, self.head, self.length = nn.Embedding(1000, width), nn.Linear(width, 100), length
        self.enter = nn.ModuleList(nn.Linear(width, 3 * width) for _ in range(layers))
        self.short = nn.ModuleList(nn.Conv1d(3 * width, 3 * width, 3, padding=2, groups=3 * width) for _ in range(layers))
        self.made = nn.ModuleList(nn.Sequential(nn.Linear(2 * waves + 1, 64), nn.SiLU(), nn.Linear(64, width)) for _ in range(layers))
        self.leave = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(layers))
        self.through = nn.ParameterList(torch.randn(width, 1) for _ in range(layers))
        times = torch.linspace(0, 1, length)[:, None]
        angles = times * torch.arange(1, waves + 1) * 2 * torch.pi
        self.register_buffer("times", torch.cat([times, angles.cos(), angles.sin()], 1))
        self.register_buffer("decay", (-times * torch.linspace(1, 8, width)).exp())

    def forward(self, x):
        x, n = self.words(x), 2 * self.length
        for enter, short, made, leave, norm, through in zip(self.enter, self.short, self.made, self.leave, self.norms, self.through):
            a, b, v = short(enter(norm(x)).transpose(1, 2))[..., :self.length].chunk(3, 1)
            filters = (made(self.times) * self.decay).transpose(0, 1)
            v = v * a
            spectra = torch.fft.rfft(v.float(), n=n) * torch.fft.rfft(filters.float(), n=n)
            v = torch.fft.irfft(spectra, n=n)[..., :self.length].to(x.dtype) + through * v
            x = x + leave((v * b).transpose(1, 2))
        return self.head(x)


class AddressedMemory(nn.Module):
    """Steps that read and write rows of a memory by what these are like, shifted and sharpened (a neural Turing machine)."""

    def __init__(self, given=16, rows=128, width=32, state=128):
        super().__init__()
        self.cell, self.rows, self.width, self.state = nn.Linear(given + width + state, state), rows, width, state
        self.ways = nn.ModuleList(nn.Linear(state, width + 6) for _ in range(2))
        self.change, self.head = nn.Linear(state, 2 * width), nn.Linear(state + width, given)
        self.first = nn.Parameter(torch.randn(1, rows, width) * 0.1)

    def address(self, told, memory, before):
        key, rest = told.split([self.width, 6], -1)
        alike = F.cosine_similarity(memory, key[:, None], -1, 1e-6)
        found = (F.softplus(rest[:, :1]) * alike).softmax(-1)
        gate, shifts = rest[:, 1:2].sigmoid(), rest[:, 2:5].softmax(-1)
        kept = gate * found + (1 - gate) * before
        around = torch.stack([kept.roll(1, 1), kept, kept.roll(-1, 1)], -1)
        sharp = ((around * shifts[:, None]).sum(-1) + 1e-6) ** (1 + F.softplus(rest[:, 5:]))
        return sharp / sharp.sum(-1, keepdim=True)

    def forward(self, x):
        n = x.shape[0]
        memory, state = self.first.expand(n, -1, -1), x.new_zeros(n, self.state)
        read, ways, made = x.new_zeros(n, self.width), [x.new_full((n, self.rows), 1 / self.rows)] * 2, []
        for step in range(x.shape[1]):
            state = self.cell(torch.cat([x[:, step], read, state], -1)).tanh()
            ways = [self.address(way(state), memory, before) for way, before in zip(self.ways, ways)]
            fade, new = self.change(state).chunk(2, -1)
            memory = memory * (1 - ways[0][..., None] * fade.sigmoid()[:, None]) + ways[0][..., None] * new[:, None]
            read = (ways[1][:, None] @ memory)[:, 0]
            made.append(self.head(torch.cat([state, read], -1)))
        return torch.stack(made, 1)


class MeanFields(nn.Module):
    """Labels of pixels that agree with neighbours of a like colour, round by round (a convolutional CRF)."""

    def __init__(self, labels=21, reach=2, rounds=5):
        super().__init__()
        self.first = nn.Sequential(conv(3, 32), conv(32, 32), nn.Conv2d(32, labels, 1))
        self.agree, self.reach, self.rounds = nn.Conv2d(labels, labels, 1, bias=False), reach, rounds

    def around(self, x):
        side, (h, w) = 2 * self.reach + 1, x.shape[2:]
        padded = F.pad(x, [self.reach] * 4)
        return [padded[:, :, i:i + h, j:j + w] for i in range(side) for j in range(side) if (i, j) != (self.reach, self.reach)]

    def forward(self, x):
        scores = self.first(x)
        likes = [(-(x - other).square().sum(1, keepdim=True)).exp() for other in self.around(x)]
        shares = scores.softmax(1)
        for _ in range(self.rounds):
            told = sum(like * other for like, other in zip(likes, self.around(shares))) / 24
            shares = (scores + self.agree(told)).softmax(1)
        return shares


class Unrolled(nn.Module):
    """Codes of an image that steps of an iteration find, each of a convolution there and back (learned ISTA)."""

    def __init__(self, codes=64, steps=6):
        super().__init__()
        self.there = nn.ModuleList(nn.Conv2d(3, codes, 7, 2, 3, bias=False) for _ in range(steps))
        self.back = nn.ModuleList(nn.ConvTranspose2d(codes, 3, 7, 2, 3, 1, bias=False) for _ in range(steps))
        self.least = nn.ParameterList(torch.rand(codes, 1, 1) * 0.1 for _ in range(steps))

    def forward(self, x):
        code = 0
        for there, back, least in zip(self.there, self.back, self.least):
            code = code + there(x - back(code) if isinstance(code, torch.Tensor) else x)
            code = code.sign() * F.relu(code.abs() - least)
        return self.back[0](code)


class WordParts(nn.Module):
    """Words as sums of the rows of their parts, and texts as means of words (fastText), with how rare each is."""

    def __init__(self, width=256, rows=20000, parts=6, words=256):
        super().__init__()
        self.rows, self.weights = nn.Embedding(rows, width), nn.Embedding(rows, 1)
        self.head = nn.Sequential(nn.Linear(2 * width, 512), nn.GELU(), nn.Linear(512, 100))
        self.register_buffer("turns", torch.randint(1, 2 ** 20, (parts,)))
        self.count = rows

    def forward(self, x):
        parts = (x[..., None] * self.turns + self.turns // 7) % self.count
        words = self.rows(parts).mean(2)
        shares = self.weights(parts[..., 0]).softmax(1)
        return self.head(torch.cat([(words * shares).sum(1), words.amax(1)], 1))


class Stepped(nn.Module):
    """A residual network whose numbers and weights are rounded to steps that are learned (LSQ)."""

    def __init__(self, width=64, blocks=4, bits=4):
        super().__init__()
        self.first, self.bits = conv(3, width, 2), bits
        self.convs = nn.ModuleList(nn.Conv2d(width, width, 3, 1, 1, bias=False) for _ in range(2 * blocks))
        self.norms = nn.ModuleList(nn.BatchNorm2d(width) for _ in range(2 * blocks))
        self.steps = nn.Parameter(torch.rand(2 * blocks) * 0.1 + 0.1)
        self.weight_steps, self.head = nn.Parameter(torch.full((2 * blocks,), 0.01)), nn.Linear(width, 100)

    def forward(self, x):
        x = self.first(x)
        most = 2 ** self.bits - 1
        for i in range(0, len(self.convs), 2):
            h = x
            for j in (i, i + 1):
                given = (h / self.steps[j]).clamp(0, most).round() * self.steps[j]
                weight = (self.convs[j].weight / self.weight_steps[j]).clamp(-8, 7).round() * self.weight_steps[j]
                h = self.norms[j](F.conv2d(given, weight, padding=1))
                h = F.relu(h) if j == i else h
            x = F.relu(x + h)
        return self.head(x.mean((2, 3)))


class OpenedMaps(nn.Module):
    """Blocks whose channels and pixels gates open, by means and greatest values along both (CBAM)."""

    def __init__(self, widths=(64, 128, 256)):
        super().__init__()
        self.first = conv(3, widths[0], 2)
        self.blocks, given = nn.ModuleList(), widths[0]
        for width in widths:
            for i in range(2):
                self.blocks.append(nn.ModuleDict({
                    "body": nn.Sequential(conv(given, width, 2 if i == 0 else 1), nn.Conv2d(width, width, 3, 1, 1, bias=False),
                                          nn.BatchNorm2d(width)),
                    "ahead": nn.Conv2d(given, width, 1, 2 if i == 0 else 1, bias=False),
                    "channels": nn.Sequential(nn.Linear(width, width // 16), nn.ReLU(), nn.Linear(width // 16, width)),
                    "pixels": nn.Conv2d(2, 1, 7, 1, 3)}))
                given = width
        self.head = nn.Linear(given, 100)

    def forward(self, x):
        x = self.first(x)
        for block in self.blocks:
            h = block["body"](x)
            gate = block["channels"](h.mean((2, 3))) + block["channels"](h.amax((2, 3)))
            h = h * gate.sigmoid()[:, :, None, None]
            gate = block["pixels"](torch.cat([h.mean(1, keepdim=True), h.amax(1, keepdim=True)], 1))
            x = F.relu(block["ahead"](x) + h * gate.sigmoid())
        return self.head(x.mean((2, 3)))


class Mixtures(nn.Module):
    """How likely each pixel is, by ten logistic curves that a few layers tell for it (PixelCNN++)."""

    def __init__(self, width=64, curves=10):
        super().__init__()
        self.body = nn.Sequential(conv(3, width), conv(width, width), nn.Conv2d(width, 10 * curves, 1))
        self.curves = curves

    def forward(self, x):
        told = self.body(F.pad(x, (0, 0, 1, 0))[:, :, :-1])
        shares, rest = told.split([self.curves, 9 * self.curves], 1)
        means, scales, mixed = rest.unflatten(1, (3, 3, self.curves)).unbind(1)
        mixed, given = mixed.tanh(), x[:, :, None]
        means = torch.cat([means[:, :1], means[:, 1:2] + mixed[:, :1] * given[:, :1],
                           means[:, 2:] + mixed[:, 1:2] * given[:, :1] + mixed[:, 2:] * given[:, 1:2]], 1)
        scales = scales.clamp(min=-7).neg().exp()
        high, low = scales * (given - means + 1 / 255), scales * (given - means - 1 / 255)
        inside = (high.sigmoid() - low.sigmoid()).clamp(min=1e-12).log()
        edges = torch.where(given < -0.999, high - F.softplus(high), torch.where(given > 0.999, -F.softplus(low), inside))
        return (edges.sum(1) + shares.log_softmax(1)).logsumexp(1)


class ChangingFields(nn.Module):
    """Two substances that spread and react, step by step, as fast as an image tells (a differentiable simulation)."""

    def __init__(self, steps=16):
        super().__init__()
        self.speeds, self.steps = nn.Sequential(conv(3, 16), nn.Conv2d(16, 2, 3, 1, 1), nn.Sigmoid()), steps
        self.head = nn.Conv2d(2, 3, 3, 1, 1)

    @staticmethod
    def spread(x):
        return x.roll(1, -1) + x.roll(-1, -1) + x.roll(1, -2) + x.roll(-1, -2) - 4 * x

    def forward(self, x):
        feed, fade = (self.speeds(x) * 0.05 + 0.02).chunk(2, 1)
        a, b = torch.ones_like(feed) - 0.1 * x[:, :1], 0.25 + 0.1 * x[:, 1:2]
        for _ in range(self.steps):
            met = a * b * b
            a, b = a + 0.16 * self.spread(a) - met + feed * (1 - a), b + 0.08 * self.spread(b) + met - (feed + fade) * b
        return self.head(torch.cat([a, b], 1))


class SortedTokens(nn.Module):
    """Tokens are sorted by the side of random planes that they are on, and see those near them there (Reformer)."""

    def __init__(self, width=256, heads=4, layers=2, near=64, sides=16):
        super().__init__()
        self.words, self.head = nn.Embedding(1000, width), nn.Linear(width, 1000)
        self.layers = nn.ModuleList(nn.ModuleDict({
            "norm": nn.LayerNorm(width), "k": nn.Linear(width, width), "v": nn.Linear(width, width), "out": nn.Linear(width, width),
            "mlp": nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))})
            for _ in range(layers))
        self.register_buffer("planes", torch.randn(width // heads, sides // 2))
        self.heads, self.near = heads, near

    def forward(self, x):
        x, length = self.words(x), x.shape[1]
        for layer in self.layers:
            h = layer["norm"](x)
            k, v = (layer[each](h).unflatten(2, (self.heads, -1)).transpose(1, 2) for each in "kv")
            turned = k @ self.planes
            side = torch.cat([turned, -turned], -1).argmax(-1)
            order = (side * length + torch.arange(length, device=x.device)).argsort(-1)
            back, wide = order.argsort(-1), order[..., None].expand_as(k)
            k, v = (each.gather(2, wide).unflatten(2, (-1, self.near)) for each in (k, v))
            keys = torch.cat([F.normalize(k, dim=-1), F.normalize(k.roll(1, 2), dim=-1)], 3)
            weights = (k @ keys.transpose(-1, -2) / k.shape[-1] ** 0.5).softmax(-1)
            made = (weights @ torch.cat([v, v.roll(1, 2)], 3)).flatten(2, 3).gather(2, back[..., None].expand_as(wide))
            x = x + layer["out"](made.transpose(1, 2).flatten(2))
            x = x + layer["mlp"](x)
        return self.head(x)
