"""Networks of signals, words, series, tables and graphs whose blocks no other file here has: signals from angles and sizes, bands that
share what time says, chunks along two axes, keys from few numbers, averages that fade, streams of residuals, periods as images,
quantiles, kinds of edges, sets on a grid, filters of places, distances in graphs, words that look at words of the other text."""
import math

import torch
from torch import nn
from torch.nn import functional as F

from block_networks import Attention, Layer


class AnglesAndSizes(nn.Module):
    """Sound from bands: wide depthwise windows of frames, then the spectrum's sizes and angles, turned back and overlapped (Vocos)."""

    class Block(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.window, self.norm = nn.Conv1d(width, width, 7, padding=3, groups=width), nn.LayerNorm(width)
            self.wide, self.narrow, self.scale = nn.Linear(width, 3 * width), nn.Linear(3 * width, width), nn.Parameter(torch.full((width,), 0.1))

        def forward(self, x):
            y = self.norm(self.window(x).transpose(1, 2))
            return x + (self.scale * self.narrow(F.gelu(self.wide(y)))).transpose(1, 2)

    def __init__(self, bands=100, width=384, size=512, step=128):
        super().__init__()
        self.size, self.step = size, step
        self.first, self.norm, self.last = nn.Conv1d(bands, width, 7, padding=3), nn.LayerNorm(width), nn.LayerNorm(width)
        self.blocks, self.head = nn.Sequential(*(AnglesAndSizes.Block(width) for _ in range(6))), nn.Linear(width, size + 2)
        turns = torch.arange(size)[None] * torch.arange(size // 2 + 1)[:, None] * (2 * math.pi / size)
        share = torch.full((size // 2 + 1, 1), 2 / size)
        share[0] = share[-1] = 1 / size
        window = torch.hann_window(size)
        self.register_buffer("basis", torch.cat([turns.cos() * share, -turns.sin() * share]) * window)
        self.register_buffer("sums", F.fold((window ** 2)[None, :, None].expand(1, -1, 128), (1, 127 * step + size), (1, size), stride=(1, step))[0, 0])

    def forward(self, x):
        x = self.norm(self.first(x).transpose(1, 2)).transpose(1, 2)
        sizes, angles = self.head(self.last(self.blocks(x).transpose(1, 2))).chunk(2, 2)
        sizes = sizes.exp().clamp(max=100)
        frames = torch.cat([sizes * angles.cos(), sizes * angles.sin()], 2) @ self.basis
        whole = F.fold(frames.transpose(1, 2), (1, (x.shape[2] - 1) * self.step + self.size), (1, self.size), stride=(1, self.step))
        return whole[:, 0, 0, 256:-256] / self.sums[0, 256:-256]


class SharedBands(nn.Module):
    """Words in sounds: windows of bands, their mean, windows of time on it, given back to all bands; norms of parts of bands (BC-ResNet)."""

    class PartNorm(nn.Module):
        def __init__(self, width, parts=5):
            super().__init__()
            self.parts, self.norm = parts, nn.BatchNorm2d(width * parts)

        def forward(self, x):
            batch, width, bands, frames = x.shape
            return self.norm(x.reshape(batch, width * self.parts, bands // self.parts, frames)).view(batch, width, bands, frames)

    class Block(nn.Module):
        def __init__(self, given, made, stride=1, dilation=1):
            super().__init__()
            self.first = nn.Sequential(nn.Conv2d(given, made, 1, bias=False), nn.BatchNorm2d(made), nn.ReLU()) if given != made else nn.Identity()
            self.bands = nn.Sequential(nn.Conv2d(made, made, (3, 1), (stride, 1), (1, 0), groups=made, bias=False), SharedBands.PartNorm(made))
            self.time = nn.Sequential(nn.Conv2d(made, made, (1, 3), padding=(0, dilation), dilation=(1, dilation), groups=made, bias=False),
                                      nn.BatchNorm2d(made), nn.SiLU(), nn.Conv2d(made, made, 1, bias=False))
            self.stays = given == made

        def forward(self, x):
            y = self.bands(self.first(x))
            time = self.time(y.mean(2, keepdim=True))
            return (x + y + time if self.stays else y + time).relu()

    def __init__(self, width=32, words=12):
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(1, 2 * width, 5, (2, 1), 2, bias=False), nn.BatchNorm2d(2 * width), nn.ReLU())
        block = SharedBands.Block
        self.blocks = nn.Sequential(block(2 * width, width), block(width, width), block(width, 48, 2, 2), block(48, 48, 1, 2), block(48, 64, 2, 4),
                                    *(block(64, 64, 1, 4) for _ in range(3)), block(64, 80, 1, 8), *(block(80, 80, 1, 8) for _ in range(3)))
        self.last = nn.Sequential(nn.Conv2d(80, 80, 5, padding=(0, 2), groups=80, bias=False), nn.Conv2d(80, 128, 1), nn.BatchNorm2d(128), nn.ReLU())
        self.head = nn.Conv2d(128, words, 1)

    def forward(self, x):
        return self.head(self.last(self.blocks(self.first(x))).mean((2, 3), keepdim=True)).flatten(1)


class TwoPathSpeakers(nn.Module):
    """Two speakers of one signal: overlapping chunks, layers within them and layers across them, overlapped again (SepFormer)."""

    def __init__(self, width=128, chunk=100, pairs=2, speakers=2):
        super().__init__()
        self.chunk, self.speakers = chunk, speakers
        self.encoder, self.decoder = nn.Conv1d(1, width, 16, 8, bias=False), nn.ConvTranspose1d(width, 1, 16, 8, bias=False)
        self.norm, self.first = nn.GroupNorm(1, width), nn.Conv1d(width, width, 1, bias=False)
        self.within, self.across = (nn.ModuleList(Layer(width, 8) for _ in range(pairs)) for _ in range(2))
        self.norms = nn.ModuleList(nn.GroupNorm(1, width) for _ in range(2 * pairs))
        self.apart, self.slope = nn.Conv2d(width, speakers * width, 1), nn.PReLU()
        self.gate, self.value, self.mask = (nn.Conv1d(width, width, 1) for _ in range(3))

    def forward(self, x):
        code = self.encoder(x).relu()
        y = self.first(self.norm(code))
        batch, width, length = y.shape
        half = self.chunk // 2
        rest = -length % half + half
        y = F.pad(y, (half, rest)).unfold(2, self.chunk, half)  # batch, width, chunks, places
        count = y.shape[2]
        for n, (within, across) in enumerate(zip(self.within, self.across)):
            z = within(y.permute(0, 2, 3, 1).flatten(0, 1)).view(batch, count, self.chunk, width)
            y = y + self.norms[2 * n](z.permute(0, 3, 1, 2))
            z = across(y.permute(0, 3, 2, 1).flatten(0, 1)).view(batch, self.chunk, count, width)
            y = y + self.norms[2 * n + 1](z.permute(0, 3, 2, 1))
        y = self.apart(self.slope(y)).unflatten(1, (self.speakers, width)).flatten(0, 1)
        y = y[..., :half].flatten(2)[..., half:] + y[..., half:].flatten(2)[..., :-half]
        y = y[..., :length]
        mask = self.mask(self.value(y).tanh() * self.gate(y).sigmoid()).relu().unflatten(0, (batch, self.speakers))
        return self.decoder((mask * code[:, None]).flatten(0, 1)).unflatten(0, (batch, self.speakers))[:, :, 0]


class FewKeys(nn.Module):
    """A decoder whose keys and values come from 64 numbers a token, beside a few that turn, with one expert for all (latent attention)."""

    class Block(nn.Module):
        def __init__(self, width, heads, low=64, turned=16, size=32):
            super().__init__()
            self.heads, self.low, self.turned, self.size = heads, low, turned, size
            self.first, self.second, self.mid, self.q_norm = (nn.RMSNorm(n) for n in (width, width, low, 96))
            self.q_low, self.q, self.kv_low = nn.Linear(width, 96, False), nn.Linear(96, heads * (size + turned), False), nn.Linear(width, low + turned, False)
            self.kv, self.out = nn.Linear(low, heads * 2 * size, False), nn.Linear(heads * size, width, False)
            self.gate, self.up, self.down = nn.Linear(width, 3 * width, False), nn.Linear(width, 3 * width, False), nn.Linear(3 * width, width, False)

        @staticmethod
        def turn(x, cos, sin):
            even, odd = x.unflatten(-1, (-1, 2)).unbind(-1)
            return torch.stack([even * cos - odd * sin, even * sin + odd * cos], -1).flatten(-2)

        def forward(self, x, cos, sin):
            y = self.first(x)
            q = self.q(self.q_norm(self.q_low(y))).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            q, q_turned = q.split([self.size, self.turned], -1)
            low, k_turned = self.kv_low(y).split([self.low, self.turned], -1)
            k, v = self.kv(self.mid(low)).unflatten(-1, (self.heads, -1)).transpose(1, 2).chunk(2, -1)
            k_turned = self.turn(k_turned[:, None], cos, sin).expand(-1, self.heads, -1, -1)
            q, k = torch.cat([q, self.turn(q_turned, cos, sin)], -1), torch.cat([k, k_turned], -1)
            x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
            y = self.second(x)
            return x + self.down(F.silu(self.gate(y)) * self.up(y))

    def __init__(self, width=256, heads=8, layers=4, tokens=256):
        super().__init__()
        self.table, self.norm = nn.Embedding(1000, width), nn.RMSNorm(width)
        self.blocks = nn.ModuleList(FewKeys.Block(width, heads) for _ in range(layers))
        angles = torch.arange(tokens)[:, None] * 10000 ** -(torch.arange(8) / 8)
        self.register_buffer("cos", angles.cos())
        self.register_buffer("sin", angles.sin())

    def forward(self, x):
        x = self.table(x)
        for block in self.blocks:
            x = block(x, self.cos[:x.shape[1]], self.sin[:x.shape[1]])
        return self.norm(x) @ self.table.weight.T


class FadingAverages(nn.Module):
    """Averages of 16 speeds a channel that fade, as one long filter by transforms, ahead of single-headed gated attention (MEGA)."""

    class Block(nn.Module):
        def __init__(self, width, inner=64, speeds=16):
            super().__init__()
            self.alpha, self.damp, self.beta, self.eta = (nn.Parameter(torch.randn(width, speeds) * 0.5) for _ in range(4))
            self.beside, self.norm = nn.Parameter(torch.randn(width)), nn.LayerNorm(width)
            self.shared, self.value = nn.Linear(width, inner), nn.Linear(width, 2 * width)
            self.gates, self.out = nn.Linear(width, 4 * width), nn.Linear(2 * width, width)
            self.scale, self.shift = nn.Parameter(torch.randn(2, inner) * 0.1 + 1), nn.Parameter(torch.zeros(2, inner))

        def forward(self, x):
            length, y = x.shape[1], self.norm(x)
            alpha = self.alpha.sigmoid()
            kept = (1 - alpha * self.damp.sigmoid()).log()[..., None] * torch.arange(length, device=x.device)
            taps = ((alpha * self.beta * self.eta)[..., None] * kept.exp()).sum(1).float()
            wave = torch.fft.rfft(y.transpose(1, 2).float(), n=2 * length) * torch.fft.rfft(taps, n=2 * length)
            fading = torch.fft.irfft(wave, n=2 * length)[..., :length].to(x.dtype).transpose(1, 2)
            fading = F.silu(fading + y * self.beside)
            shared = F.silu(self.shared(fading))
            q, k = (shared * scale + shift for scale, shift in zip(self.scale, self.shift))
            update, reset, hidden = self.gates(fading).split([x.shape[2], 2 * x.shape[2], x.shape[2]], 2)
            seen = F.scaled_dot_product_attention(q[:, None], k[:, None], F.silu(self.value(y))[:, None])[:, 0] * F.silu(reset)
            update = update.sigmoid()
            return update * F.silu(hidden + self.out(seen)) + (1 - update) * x

    def __init__(self, width=128, layers=4):
        super().__init__()
        self.table, self.head = nn.Embedding(256, width), nn.Linear(width, 10)
        self.blocks = nn.Sequential(*(FadingAverages.Block(width) for _ in range(layers)))

    def forward(self, x):
        return self.head(self.blocks(self.table(x)).mean(1))


class Streams(nn.Module):
    """A transformer of four residual streams, which each layer mixes by weights that the tokens choose (hyper-connections)."""

    class Joint(nn.Module):
        def __init__(self, width, inner, streams):
            super().__init__()
            self.norm, self.inner = nn.RMSNorm(width), inner
            self.choose, self.mix = nn.Linear(width, streams + 1, False), nn.Parameter(torch.cat([torch.eye(streams)[:, :1], torch.eye(streams)], 1))
            self.spread, self.fixed = nn.Linear(width, 1, False), nn.Parameter(torch.ones(streams))

        def forward(self, streams):
            normed = self.norm(streams)
            mixed = (self.choose(normed).tanh() * 0.1 + self.mix).transpose(2, 3) @ streams
            spread = (self.spread(normed).tanh()[..., 0] * 0.1 + self.fixed)[..., None]
            return mixed[:, :, 1:] + spread * self.inner(mixed[:, :, 0])[:, :, None]

    def __init__(self, width=256, heads=4, layers=4, streams=4):
        super().__init__()
        self.streams, self.table, self.head = streams, nn.Embedding(1000, width), nn.Linear(width, 1000)
        mlp = lambda: nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        made = [nn.Sequential(nn.LayerNorm(width), Attention(width, heads)) if n % 2 == 0 else mlp() for n in range(2 * layers)]
        self.joints = nn.Sequential(*(Streams.Joint(width, inner, streams) for inner in made))

    def forward(self, x):
        x = self.table(x)[:, :, None].expand(-1, -1, self.streams, -1)
        return self.head(self.joints(x).sum(2))


class Periods(nn.Module):
    """Series folded to images of their strongest periods, weighed by how strong each is, windows of several sizes on them (TimesNet)."""

    class Block(nn.Module):
        periods = (48, 24, 12)

        def __init__(self, width, hidden, length):
            super().__init__()
            windows = lambda a, b: nn.ModuleList(nn.Conv2d(a, b, 2 * n + 1, padding=n) for n in range(4))
            self.first, self.second = windows(width, hidden), windows(hidden, width)
            self.length = length

        def forward(self, x):
            strong = torch.fft.rfft(x.float(), dim=1).abs().mean(2)[:, [self.length // p for p in self.periods]].softmax(1).to(x.dtype)
            whole = 0
            for n, period in enumerate(self.periods):
                y = x.transpose(1, 2).unflatten(2, (-1, period))
                y = F.gelu(torch.stack([window(y) for window in self.first], -1).mean(-1))
                y = torch.stack([window(y) for window in self.second], -1).mean(-1)
                whole = whole + y.flatten(2).transpose(1, 2) * strong[:, n, None, None]
            return x + whole

    def __init__(self, series=7, given=96, asked=96, width=64, hidden=64):
        super().__init__()
        length = given + asked
        self.embed, self.longer = nn.Conv1d(series, width, 3, padding=1, padding_mode="circular"), nn.Linear(given, length)
        self.blocks = nn.ModuleList(Periods.Block(width, hidden, length) for _ in range(2))
        self.norm, self.head, self.asked = nn.LayerNorm(width), nn.Linear(width, series), asked

    def forward(self, x):
        mean, deviation = x.mean(1, keepdim=True), (x.var(1, keepdim=True, unbiased=False) + 1e-5).sqrt()
        y = self.longer(self.embed(((x - mean) / deviation).transpose(1, 2))).transpose(1, 2)
        for block in self.blocks:
            y = self.norm(block(y))
        return self.head(y)[:, -self.asked:] * deviation + mean


class Quantiles(nn.Module):
    """What moves are worth at 32 shares of luck: an image's features times cosines of each share, two heads (IQN, duelling)."""

    def __init__(self, moves=18, shares=32, cosines=64, width=512):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(4, 32, 8, 4), nn.ReLU(), nn.Conv2d(32, 64, 4, 2), nn.ReLU(), nn.Conv2d(64, 64, 3), nn.ReLU(), nn.Flatten())
        self.embed = nn.Linear(cosines, 3136)
        self.worth, self.better = (nn.Sequential(nn.Linear(3136, width), nn.ReLU(), nn.Linear(width, n)) for n in (1, moves))
        self.register_buffer("shares", (torch.arange(shares) + 0.5) / shares)
        self.register_buffer("turns", torch.arange(1, cosines + 1) * math.pi)

    def forward(self, x):
        features = self.body(x)
        luck = self.embed((self.shares[:, None] * self.turns).cos().to(x.dtype)).relu()
        y = features[:, None] * luck
        better = self.better(y)
        return (self.worth(y) + better - better.mean(2, keepdim=True)).mean(1)


class EdgeKinds(nn.Module):
    """A graph of six kinds of edges, whose matrices are shares of three; sums where edges end, and a node that all see (R-GCN)."""

    def __init__(self, given=32, width=128, nodes=512, edges=4096, kinds=6, bases=3, layers=3):
        super().__init__()
        self.nodes, self.first, self.head = nodes, nn.Linear(given, width), nn.Linear(2 * width, 16)
        self.bases = nn.ParameterList(nn.Parameter(torch.randn(bases, width, width) / width ** 0.5) for _ in range(layers))
        self.shares = nn.ParameterList(nn.Parameter(torch.randn(kinds, bases)) for _ in range(layers))
        self.own = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(layers))
        self.whole = nn.ModuleList(nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width)) for _ in range(layers))
        kind, end = torch.randint(0, kinds, (edges,)), torch.randint(0, nodes, (edges,))
        self.register_buffer("kind", kind)
        self.register_buffer("start", torch.randint(0, nodes, (edges,)))
        self.register_buffer("end", end)
        count = torch.zeros(nodes * kinds).index_add(0, end * kinds + kind, torch.ones(edges))
        self.register_buffer("share", (1 / count)[end * kinds + kind])

    def forward(self, x):
        x = self.first(x)
        seen = torch.zeros_like(x[:, :1])
        for bases, shares, own, norm, whole in zip(self.bases, self.shares, self.own, self.norms, self.whole):
            weights = shares.softmax(1)[self.kind] * self.share[:, None]
            sent = torch.einsum("bnd,kde->bnke", x, bases)[:, self.start]
            sent = (sent * weights[..., None].to(x.dtype)).sum(2)
            x = norm(own(x + seen) + torch.zeros_like(x).index_add(1, self.end, sent)).relu()
            seen = seen + whole(x.sum(1, keepdim=True) / self.nodes)
        return self.head(torch.cat([x, seen.expand_as(x)], 2))


class SetsOnGrid(nn.Module):
    """What is known at any places is spread on a grid by widths that are learned, then windows, and read at others (a neural process)."""

    def __init__(self, grid=256, width=64):
        super().__init__()
        self.register_buffer("grid", torch.linspace(-2, 2, grid))
        self.spread, self.read = nn.Parameter(torch.tensor([-2.0])), nn.Parameter(torch.tensor([-2.0]))
        self.first = nn.Conv1d(2, width, 5, padding=2)
        self.down = nn.ModuleList(nn.Conv1d(width * 2 ** n, width * 2 ** (n + 1), 5, 2, 2) for n in range(3))
        self.up = nn.ModuleList(nn.ConvTranspose1d(width * 2 ** (n + (n < 3)), width * 2 ** (n - 1), 4, 2, 1) for n in (3, 2, 1))
        self.last = nn.Conv1d(2 * width, width, 5, padding=2)
        self.head = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 2))

    def forward(self, x):
        places, values, asked = x.unbind(2)
        near = ((self.grid[:, None] - places[:, None]).square() * (-0.5 / (2 * self.spread).exp())).exp()
        density = near.sum(2)
        y = self.first(torch.stack([density, (near @ values[..., None])[..., 0] / (density + 1e-4)], 1)).relu()
        kept = [y]
        for layer in self.down:
            y = layer(y).relu()
            kept.append(y)
        kept.pop()
        for layer in self.up:
            y = torch.cat([layer(y), kept.pop()], 1).relu()
        y = self.last(y).relu()
        near = ((asked[..., None] - self.grid).square() * (-0.5 / (2 * self.read).exp())).exp()
        mean, wide = self.head(near @ y.transpose(1, 2)).chunk(2, 2)
        return torch.cat([mean, 0.1 + 0.9 * F.softplus(wide)], 2)


class PlaceFilters(nn.Module):
    """Sound from noise by windows whose filters each frame makes (location-variable convolutions, UnivNet)."""

    class Block(nn.Module):
        def __init__(self, bands, width, stride, step, layers=3):
            super().__init__()
            self.width, self.step, self.layers = width, step, layers
            self.up = nn.ConvTranspose1d(width, width, 2 * stride, stride, stride // 2)
            self.windows = nn.ModuleList(nn.Conv1d(width, width, 3, padding=3 ** n, dilation=3 ** n) for n in range(layers))
            self.hidden = nn.Sequential(nn.Conv1d(bands, 64, 5, padding=2), nn.LeakyReLU(0.1), nn.Conv1d(64, 64, 3, padding=1), nn.LeakyReLU(0.1))
            self.filters = nn.Conv1d(64, layers * width * 2 * width * 3, 3, padding=1)
            self.biases = nn.Conv1d(64, layers * 2 * width, 3, padding=1)

        def forward(self, x, bands):
            hidden, x = self.hidden(bands), self.up(F.leaky_relu(x, 0.2))
            batch, frames = x.shape[0], bands.shape[2]
            filters = self.filters(hidden).view(batch, self.layers, self.width * 3, 2 * self.width, frames)
            biases = self.biases(hidden).view(batch, self.layers, 2 * self.width, frames)
            for n, window in enumerate(self.windows):
                y = F.leaky_relu(window(F.leaky_relu(x, 0.2)), 0.2)
                seen = F.pad(y, (1, 1)).unfold(2, self.step + 2, self.step).unfold(3, 3, 1)  # batch, width, frames, step, 3
                y = torch.einsum("bifsk,bikof->bofs", seen, filters[:, n].unflatten(1, (self.width, 3)))
                sine, gate = (y + biases[:, n, ..., None]).flatten(2).chunk(2, 1)
                x = x + gate.sigmoid() * sine.tanh()
            return x

    def __init__(self, bands=80, noise=16, width=16):
        super().__init__()
        self.first = nn.Conv1d(noise, width, 7, padding=3)
        self.blocks = nn.ModuleList([PlaceFilters.Block(bands, width, 8, 8), PlaceFilters.Block(bands, width, 8, 64), PlaceFilters.Block(bands, width, 4, 256)])
        self.last = nn.Conv1d(width, 1, 7, padding=3)

    def forward(self, x):
        bands, noise = x.split([80, 16], 1)
        y = self.first(noise)
        for block in self.blocks:
            y = block(y, bands)
        return self.last(F.leaky_relu(y, 0.2)).tanh()


class GraphDistances(nn.Module):
    """Attention of nodes whose scores know how far apart two are and what edges lie between (Graphormer)."""

    def __init__(self, nodes=64, width=192, heads=6, layers=4, far=16, kinds=8, steps=4):
        super().__init__()
        self.atoms, self.degrees, self.whole = nn.Embedding(100, width), nn.Embedding(16, width), nn.Parameter(torch.randn(1, 1, width) * 0.02)
        self.distances, self.edges = nn.Embedding(far, heads), nn.Embedding(kinds, heads)
        self.by_step, self.to_whole = nn.Parameter(torch.randn(steps, heads, heads) * 0.1), nn.Parameter(torch.randn(heads, 1, 1) * 0.1)
        self.layers, self.norm, self.head = nn.ModuleList(Layer(width, heads) for _ in range(layers)), nn.LayerNorm(width), nn.Linear(width, 1)
        self.nodes, self.steps = nodes, steps
        self.register_buffer("paths", torch.randint(0, kinds, (nodes, nodes, steps)))

    def forward(self, x):
        place = x.cumsum(1) % 37
        apart = (place[:, :, None] - place[:, None]).abs().clamp(max=15)
        degree = (apart < 4).sum(2).clamp(max=15)
        tokens = torch.cat([self.whole.expand(x.shape[0], -1, -1), self.atoms(x) + self.degrees(degree)], 1)
        edges = torch.einsum("ijsh,shg->ijg", self.edges(self.paths), self.by_step)
        bias = (self.distances(apart) + edges / apart.clamp(min=1)[..., None].to(edges.dtype)).permute(0, 3, 1, 2)
        bias = torch.cat([self.to_whole.expand(x.shape[0], -1, 1, self.nodes), bias], 2)
        bias = torch.cat([self.to_whole.expand(x.shape[0], -1, self.nodes + 1, 1), bias], 3)
        for layer in self.layers:
            tokens = layer(tokens, bias)
        return self.head(self.norm(tokens[:, 0]))
