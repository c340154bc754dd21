"""Networks of papers over signals, tokens, points, tables and places that no other file here has."""
import torch
from torch import nn
from torch.nn import functional


class WideSteps(nn.Module):
    """QuartzNet: depthwise windows of 33 to 75 frames and pointwise products, five in a block with a way around."""

    class Block(nn.Module):
        def __init__(self, given, made, size, count=3):
            super().__init__()
            layers = []
            for i in range(count):
                a = given if i == 0 else made
                layers += [nn.Conv1d(a, a, size, padding=size // 2, groups=a, bias=False), nn.Conv1d(a, made, 1, bias=False), nn.BatchNorm1d(made)]
                layers += [nn.ReLU()] if i + 1 < count else []
            self.layers, self.around = nn.Sequential(*layers), nn.Sequential(nn.Conv1d(given, made, 1, bias=False), nn.BatchNorm1d(made))

        def forward(self, x):
            return functional.relu(self.layers(x) + self.around(x))

    def __init__(self, letters=29):
        super().__init__()
        block = WideSteps.Block
        self.layers = nn.Sequential(nn.Conv1d(64, 64, 33, 2, 16, groups=64, bias=False), nn.Conv1d(64, 256, 1, bias=False), nn.BatchNorm1d(256), nn.ReLU(),
                                    block(256, 256, 33), block(256, 256, 39), block(256, 512, 51), block(512, 512, 63), block(512, 512, 75), nn.Conv1d(512, letters, 1))

    def forward(self, x):
        return self.layers(x).log_softmax(1)


class FramesToSound(nn.Module):
    """Vocos: blocks of ConvNeXt over frames, sizes and angles of a spectrum, and windows that are added where they meet."""

    def __init__(self, width=256, depth=6, size=256, hop=64):
        super().__init__()
        self.first, self.hop, self.size = nn.Conv1d(100, width, 7, padding=3), hop, size
        self.windows = nn.ModuleList(nn.Conv1d(width, width, 7, padding=3, groups=width) for _ in range(depth))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(depth))
        self.up, self.down = (nn.ModuleList(nn.Linear(a, b) for _ in range(depth)) for a, b in ((width, 3 * width), (3 * width, width)))
        self.scales = nn.ParameterList(torch.rand(width) / 4 for _ in range(depth))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, size + 2)
        places, bins = torch.arange(size), torch.arange(size // 2 + 1)
        angles = 2 * torch.pi * bins[:, None] * places / size
        window = torch.hann_window(size)
        self.register_buffer("waves", torch.cat([angles.cos(), -angles.sin()]) * window / size)

    def forward(self, x):
        x = self.first(x)
        for i, window in enumerate(self.windows):
            y = self.norms[i](window(x).transpose(1, 2))
            x = x + (self.scales[i] * self.down[i](functional.gelu(self.up[i](y)))).transpose(1, 2)
        size, angle = self.head(self.norm(x.transpose(1, 2))).chunk(2, 2)
        size = size.exp().clamp(max=100.0)
        frames = torch.cat([size * angle.cos(), size * angle.sin()], 2) @ self.waves
        batch, count, parts = frames.shape[0], frames.shape[1], self.size // self.hop
        pieces = frames.view(batch, count, parts, self.hop)
        sums = sum(functional.pad(pieces[:, :, i], (0, 0, i, parts - 1 - i)) for i in range(parts))
        return sums.flatten(1)


class RandomFeatures(nn.Module):
    """Performer: attention by positive features of random projections, keys and values summed once."""

    def __init__(self, width=256, heads=4, features=128, depth=3, words=1000):
        super().__init__()
        self.heads = heads
        self.words, self.places = nn.Embedding(words, width), nn.Parameter(torch.randn(1, 512, width) * 0.02)
        self.all, self.out = (nn.ModuleList(nn.Linear(width, n) for _ in range(depth)) for n in (3 * width, width))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2 * depth))
        self.perceptrons = nn.ModuleList(nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)) for _ in range(depth))
        self.projections = nn.Parameter(torch.randn(features, width // heads), requires_grad=False)

    def features(self, x):
        x = x * x.shape[-1] ** -0.25
        y = x @ self.projections.t() - x.square().sum(-1, keepdim=True) / 2
        return (y - y.amax(-1, keepdim=True)).exp() + 1e-4

    def forward(self, x):
        x = self.words(x) + self.places[:, :x.shape[1]]
        batch, count, width = x.shape
        for i, (every, out, perceptron) in enumerate(zip(self.all, self.out, self.perceptrons)):
            q, k, v = every(self.norms[2 * i](x)).view(batch, count, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
            q, k = self.features(q), self.features(k)
            y = (q @ (k.transpose(2, 3) @ v)) / (q @ k.sum(2)[..., None])
            x = x + out(y.transpose(1, 2).reshape(batch, count, width))
            x = x + perceptron(self.norms[2 * i + 1](x))
        return x


class Translator(nn.Module):
    """T5: both sides with norms by root mean squares and biases of distances in classes, gated perceptrons."""

    class Norm(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.scale = nn.Parameter(1 + torch.randn(width) / 8)

        def forward(self, x):
            return x * torch.rsqrt(x.float().square().mean(-1, keepdim=True) + 1e-6).to(x.dtype) * self.scale

    class Attention(nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            self.heads = heads
            self.q, self.k, self.v, self.out = (nn.Linear(width, width, bias=False) for _ in range(4))

        def forward(self, x, given, bias):
            q, k, v = (each(t).unflatten(2, (self.heads, -1)).transpose(1, 2) for each, t in ((self.q, x), (self.k, given), (self.v, given)))
            scores = q @ k.transpose(2, 3)
            scores = scores if bias is None else scores + bias
            weights = scores.float().softmax(-1).type_as(scores)
            return self.out((weights @ v).transpose(1, 2).flatten(2))

    class Layer(nn.Module):
        def __init__(self, width, heads, reads):
            super().__init__()
            self.norms = nn.ModuleList(Translator.Norm(width) for _ in range(3))
            self.itself, self.other = Translator.Attention(width, heads), Translator.Attention(width, heads) if reads else None
            self.gate, self.up, self.down = nn.Linear(width, 4 * width, bias=False), nn.Linear(width, 4 * width, bias=False), nn.Linear(4 * width, width, bias=False)

        def forward(self, x, bias, given=None):
            y = self.norms[0](x)
            x = x + self.itself(y, y, bias)
            if self.other is not None:
                x = x + self.other(self.norms[1](x), given, None)
            y = self.norms[2](x)
            return x + self.down(functional.gelu(self.gate(y), approximate="tanh") * self.up(y))

    def __init__(self, width=384, heads=6, depth=2, words=1000, classes=32):
        super().__init__()
        self.words, self.classes = nn.Embedding(words, width), classes
        self.biases = nn.ModuleList(nn.Embedding(classes, heads) for _ in range(2))
        self.encoder, self.decoder = (nn.ModuleList(Translator.Layer(width, heads, reads) for _ in range(depth)) for reads in (False, True))
        self.norms = nn.ModuleList(Translator.Norm(width) for _ in range(2))

    def distances(self, count, both, device):
        places = torch.arange(count, device=device)
        apart = places[None, :] - places[:, None]
        classes, base = self.classes, 0
        if both:
            classes //= 2
            base = (apart > 0).long() * classes
            apart = apart.abs()
        else:
            apart = (-apart).clamp(min=0)
        exact = classes // 2
        far = exact + ((apart.clamp(min=1).float() / exact).log() / torch.log(torch.tensor(128 / exact)) * (classes - exact)).long()
        return base + torch.where(apart < exact, apart, far.clamp(max=classes - 1))

    def forward(self, x):
        count = x.shape[1]
        bias = self.biases[0](self.distances(count, True, x.device)).permute(2, 0, 1)[None]
        given = self.words(x)
        for layer in self.encoder:
            given = layer(given, bias)
        given, y = self.norms[0](given), self.words(x.flip(1))
        bias = self.biases[1](self.distances(count, False, x.device)).permute(2, 0, 1)[None]
        bias = bias + torch.full((count, count), -1e4, device=x.device, dtype=bias.dtype).triu(1)
        for layer in self.decoder:
            y = layer(y, bias, given)
        return self.norms[1](y) @ self.words.weight.t()


class PointVectors(nn.Module):
    """Point Transformer: each point weighs each channel of its 16 nearest by differences and by where they lie."""

    class Layer(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.enter, self.q, self.k, self.v, self.leave = (nn.Linear(width, width) for _ in range(5))
            self.places = nn.Sequential(nn.Linear(3, width), nn.ReLU(), nn.Linear(width, width))
            self.weights = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width))

        def forward(self, x, points, index):
            y = self.enter(x)
            take = lambda t: t.gather(1, index.flatten(1)[..., None].expand(-1, -1, t.shape[2])).view(*index.shape, t.shape[2])  # noqa: E731
            apart = self.places(points[:, :, None] - take(points))
            weights = self.weights(self.q(y)[:, :, None] - take(self.k(y)) + apart).softmax(2)
            return x + self.leave((weights * (take(self.v(y)) + apart)).sum(2))

    def __init__(self, width=64, depth=3, nearest=16):
        super().__init__()
        self.nearest, self.first = nearest, nn.Sequential(nn.Linear(3, width), nn.ReLU(), nn.Linear(width, width))
        self.layers = nn.ModuleList(PointVectors.Layer(width) for _ in range(depth))
        self.head = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 13))

    def forward(self, points):
        squares = points.square().sum(2)
        far = squares[:, :, None] + squares[:, None] - 2 * points @ points.transpose(1, 2)
        index, x = far.topk(self.nearest, 2, largest=False).indices, self.first(points)
        for layer in self.layers:
            x = layer(x, points, index)
        return self.head(x)


class AttendedColumns(nn.Module):
    """TabNet: three steps, each of which reads columns by a sparse weight (sparsemax) that earlier steps have used up."""

    class Gated(nn.Module):
        def __init__(self, given, made):
            super().__init__()
            self.layer, self.norm = nn.Linear(given, 2 * made, bias=False), nn.BatchNorm1d(2 * made)

        def forward(self, x):
            return functional.glu(self.norm(self.layer(x)), 1)

    def __init__(self, columns=64, width=32, steps=3):
        super().__init__()
        gated = AttendedColumns.Gated
        self.norm, self.width, self.shared = nn.BatchNorm1d(columns), width, gated(columns, 2 * width)
        self.own = nn.ModuleList(gated(2 * width, 2 * width) for _ in range(steps + 1))
        self.weights = nn.ModuleList(nn.Sequential(nn.Linear(width, columns, bias=False), nn.BatchNorm1d(columns)) for _ in range(steps))
        self.head = nn.Linear(width, 4)

    def sparse(self, x):
        z = x.sort(1, descending=True).values
        sums, ranks = z.cumsum(1), torch.arange(1, x.shape[1] + 1, device=x.device, dtype=x.dtype)
        kept = (1 + ranks * z > sums).to(x.dtype)
        count = kept.sum(1, keepdim=True)
        return functional.relu(x - ((z * kept).sum(1, keepdim=True) - 1) / count)

    def step(self, x, own):
        y = self.shared(x)
        return (y + own(y)) * 0.5 ** 0.5

    def forward(self, x):
        x = self.norm(x[:, :, 0])
        free, made = torch.ones_like(x), 0
        attended = self.step(x, self.own[0])[:, self.width:]
        for weights, own in zip(self.weights, self.own[1:]):
            mask = self.sparse(weights(attended) * free)
            free = free * (1.3 - mask)
            y = self.step(mask * x, own)
            made, attended = made + functional.relu(y[:, :self.width]), y[:, self.width:]
        return self.head(made)


class Sines(nn.Module):
    """SIREN: values at places by layers whose activation is a sine, the first of high frequency."""

    def __init__(self, width=256, depth=4):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(a, width) for a in [2] + [width] * depth)
        with torch.no_grad():
            self.layers[0].weight *= 8  # the frequency
        self.last = nn.Linear(width, 3)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x).sin()
        return self.last(x)


class LongSkips(nn.Module):
    """U-ViT: a transformer over patches of latents and a time token, whose second half sees what the first half made."""

    class Block(nn.Module):
        def __init__(self, width, heads, skips):
            super().__init__()
            self.heads, self.norms = heads, nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
            self.all, self.out = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width)
            self.join = nn.Linear(2 * width, width) if skips else None
            self.perceptron = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

        def forward(self, x, side=None):
            x = x if side is None else self.join(torch.cat([x, side], 2))
            q, k, v = self.all(self.norms[0](x)).unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
            x = x + self.out(functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
            return x + self.perceptron(self.norms[1](x))

    def __init__(self, width=384, heads=6, depth=3):
        super().__init__()
        self.first, self.places = nn.Conv2d(4, width, 2, 2), nn.Parameter(torch.randn(1, 257, width) * 0.02)
        self.time = nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, width))
        block = LongSkips.Block
        self.before, self.middle = nn.ModuleList(block(width, heads, False) for _ in range(depth)), block(width, heads, False)
        self.after, self.norm = nn.ModuleList(block(width, heads, True) for _ in range(depth)), nn.LayerNorm(width)
        self.head, self.last = nn.Linear(width, 16), nn.Conv2d(4, 4, 3, padding=1)
        self.register_buffer("rates", torch.exp(torch.linspace(0, -9, width // 2)))

    def forward(self, x):
        batch = x.shape[0]
        angles = x[:, 0, 0, :1] * 100 * self.rates
        time = self.time(torch.cat([angles.cos(), angles.sin()], 1))[:, None]
        x = torch.cat([time, self.first(x).flatten(2).transpose(1, 2)], 1) + self.places
        kept = []
        for block in self.before:
            x = block(x)
            kept.append(x)
        x = self.middle(x)
        for block, side in zip(self.after, reversed(kept)):
            x = block(x, side)
        x = self.head(self.norm(x))[:, 1:].view(batch, 16, 16, 2, 2, 4).permute(0, 5, 1, 3, 2, 4)
        return self.last(x.reshape(batch, 4, 32, 32))


class MaskTokens(nn.Module):
    """SAM's decoder: a few tokens and an image attend to each other both ways; tokens make filters of masks."""

    class Attention(nn.Module):
        def __init__(self, width, inner, heads=8):
            super().__init__()
            self.heads = heads
            self.q, self.k, self.v = (nn.Linear(width, inner) for _ in range(3))
            self.out = nn.Linear(inner, width)

        def forward(self, q, k, v):
            q, k, v = (each(t).unflatten(2, (self.heads, -1)).transpose(1, 2) for each, t in ((self.q, q), (self.k, k), (self.v, v)))
            return self.out(functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))

    def __init__(self, width=256, tokens=9, depth=2):
        super().__init__()
        attention = MaskTokens.Attention
        self.first, self.tokens = nn.Conv2d(3, width, 16, 16), nn.Parameter(torch.randn(1, tokens, width))
        self.places = nn.Parameter(torch.randn(1, 1024, width) * 0.1)
        self.itself = nn.ModuleList(attention(width, width) for _ in range(depth))
        self.to_image, self.to_tokens = (nn.ModuleList(attention(width, width // 2) for _ in range(depth)) for _ in range(2))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(4 * depth))
        self.perceptrons = nn.ModuleList(nn.Sequential(nn.Linear(width, 1024), nn.ReLU(), nn.Linear(1024, width)) for _ in range(depth))
        self.grow, self.again = nn.ConvTranspose2d(width, 64, 2, 2), nn.ConvTranspose2d(64, 32, 2, 2)
        self.scale, self.shift = nn.Parameter(1 + torch.randn(64, 1, 1) / 8), nn.Parameter(torch.randn(64, 1, 1) / 8)
        self.filters = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 32))

    def forward(self, x):
        x = self.first(x)
        size, x = x.shape[2:], x.flatten(2).transpose(1, 2)
        first = self.tokens.expand(x.shape[0], -1, -1)
        tokens = first
        for i, perceptron in enumerate(self.perceptrons):
            norms, places = self.norms[4 * i:4 * i + 4], self.places
            tokens = norms[0](tokens + self.itself[i](tokens + first, tokens + first, tokens))
            tokens = norms[1](tokens + self.to_image[i](tokens + first, x + places, x))
            tokens = norms[2](tokens + perceptron(tokens))
            x = norms[3](x + self.to_tokens[i](x + places, tokens + first, tokens))
        y = self.grow(x.transpose(1, 2).unflatten(2, size))
        centred = y - y.mean(1, keepdim=True)
        y = centred * (centred.square().mean(1, keepdim=True) + 1e-6).rsqrt() * self.scale + self.shift
        y = functional.gelu(self.again(functional.gelu(y)))
        return (self.filters(tokens) @ y.flatten(2)).unflatten(2, y.shape[2:])


class Mixed(nn.Module):
    """RWKV: tokens mixed with the one before, decayed sums over the past by a matrix of each channel, squares of a ReLU."""

    def __init__(self, width=256, depth=3, words=1000, head=64):
        super().__init__()
        self.words, self.head = nn.Embedding(words, width), head
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2 * depth + 1))
        self.mixes = nn.ParameterList(torch.rand(6, width) for _ in range(depth))
        self.r, self.k, self.v, self.g, self.o = (nn.ModuleList(nn.Linear(width, width, bias=False) for _ in range(depth)) for _ in range(5))
        self.decays, self.first = nn.ParameterList(torch.rand(width // head) * 2 - 4 for _ in range(depth)), nn.ParameterList(torch.rand(width // head) for _ in range(depth))
        self.rates, self.up, self.down = (nn.ModuleList(nn.Linear(a, b, bias=False) for _ in range(depth)) for a, b in ((width, width), (width, 4 * width), (4 * width, width)))
        self.groups = nn.ModuleList(nn.GroupNorm(width // head, width) for _ in range(depth))

    def forward(self, x):
        x = self.words(x)
        batch, count, width = x.shape
        places = torch.arange(count, device=x.device)
        apart = (places[:, None] - places[None]).to(x.dtype)
        for i in range(len(self.mixes)):
            y = self.norms[2 * i](x)
            before, m = functional.pad(y, (0, 0, 1, -1)), self.mixes[i]
            r, k, v, g = (each[i](y * m[j] + before * (1 - m[j])) for j, each in enumerate((self.r, self.k, self.v, self.g)))
            r, k, v = (t.view(batch, count, -1, self.head).transpose(1, 2) for t in (r, k, v))
            rate = -self.decays[i].exp()[:, None, None]
            decay = torch.where(apart > 0, (rate * (apart - 1)).exp(), (apart == 0) * self.first[i][:, None, None])
            sums = ((r @ k.transpose(2, 3)) * decay) @ v
            sums = self.groups[i](sums.transpose(1, 2).reshape(batch * count, width)).view(batch, count, width)
            x = x + self.o[i](sums * functional.silu(g))
            y = self.norms[2 * i + 1](x)
            before = functional.pad(y, (0, 0, 1, -1))
            k = self.up[i](y * m[4] + before * (1 - m[4])).relu().square()
            x = x + self.rates[i](y * m[5] + before * (1 - m[5])).sigmoid() * self.down[i](k)
        return self.norms[-1](x)


class VariatesAsTokens(nn.Module):
    """iTransformer: each series is normed by itself and becomes a token; tokens attend, and say what comes next."""

    def __init__(self, given=96, made=96, width=256, depth=2):
        super().__init__()
        self.enter, self.leave = nn.Linear(given, width), nn.Linear(width, made)
        layer = lambda: nn.TransformerEncoderLayer(width, 8, 2 * width, 0.0, "gelu", batch_first=True)  # noqa: E731
        self.layers = nn.ModuleList(layer() for _ in range(depth))

    def forward(self, x):
        mean = x.mean(1, keepdim=True)
        spread = (x.var(1, keepdim=True, unbiased=False) + 1e-5).sqrt()
        y = self.enter(((x - mean) / spread).transpose(1, 2))
        for layer in self.layers:
            y = layer(y)
        return self.leave(y).transpose(1, 2) * spread + mean


class DenseVolumes(nn.Module):
    """C3D: plain 3x3x3 convolutions and poolings of frames, two wide perceptrons."""

    def __init__(self, classes=101):
        super().__init__()
        layers, given = [], 3
        for i, made in enumerate((64, 128, 256, 256, 512, 512)):
            layers += [nn.Conv3d(given, made, 3, padding=1), nn.ReLU()]
            if i in (0, 1, 3, 5):
                layers.append(nn.MaxPool3d((1, 2, 2) if i == 0 else 2))
            given = made
        self.layers = nn.Sequential(*layers)
        self.head = nn.Sequential(nn.Flatten(), nn.Linear(512 * 49, 2048), nn.ReLU(), nn.Linear(2048, classes))

    def forward(self, x):
        return self.head(self.layers(x))
