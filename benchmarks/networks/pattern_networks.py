"""Networks beside those of further_networks.py, each for a pattern of work that few others have: pairs of positions, points
and their neighbours, images that sample other images, states that are carried, experts, routed parts, waves."""
import torch
from torch import nn
from torch.nn import functional
from own_networks import conv_norm


def heads_of(x, heads):
    return x.unflatten(-1, (heads, -1)).transpose(-2, -3)


def attend(q, k, v, heads, mask=None):
    q, k, v = (heads_of(each, heads) for each in (q, k, v))
    if q.dim() == 5:  # torch's exporter takes no other rank than 4
        y = ((q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5 + mask).softmax(-1) @ v)
    else:
        y = functional.scaled_dot_product_attention(q, k, v, mask)
    return y.transpose(-2, -3).flatten(-2)


class CrossDenoiser(nn.Module):
    """A latent diffusion's U-Net: pixels attend to one another and to a text, gated perceptrons, a time for all channels."""

    class Mix(nn.Module):
        def __init__(self, width, text, heads=4):
            super().__init__()
            self.heads = heads
            self.group, self.enter, self.leave = nn.GroupNorm(32, width), nn.Conv2d(width, width, 1), nn.Conv2d(width, width, 1)
            self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(3))
            self.q, self.out = (nn.ModuleList(nn.Linear(width, width, bias=i > 1) for _ in range(2)) for i in (0, 2))
            self.k, self.v = (nn.ModuleList(nn.Linear(given, width, bias=False) for given in (width, text)) for _ in range(2))
            self.gate, self.down = nn.Linear(width, 8 * width), nn.Linear(4 * width, width)

        def forward(self, x, text):
            y = self.enter(self.group(x)).flatten(2).transpose(1, 2)
            for i in range(2):
                z = self.norms[i](y)
                given = text if i else z
                y = y + self.out[i](attend(self.q[i](z), self.k[i](given), self.v[i](given), self.heads))
            value, gate = self.gate(self.norms[2](y)).chunk(2, -1)
            y = y + self.down(value * functional.gelu(gate))
            return x + self.leave(y.transpose(1, 2).unflatten(2, x.shape[2:]))

    class Block(nn.Module):
        def __init__(self, given, made, time):
            super().__init__()
            self.first = nn.Sequential(nn.GroupNorm(32, given), nn.SiLU(), nn.Conv2d(given, made, 3, padding=1))
            self.second = nn.Sequential(nn.GroupNorm(32, made), nn.SiLU(), nn.Conv2d(made, made, 3, padding=1))
            self.time = nn.Linear(time, made)
            self.skip = nn.Conv2d(given, made, 1) if given != made else nn.Identity()

        def forward(self, x, time):
            return self.skip(x) + self.second(self.first(x) + self.time(time)[..., None, None])

    def __init__(self, widths=(128, 256), text=256, tokens=77):
        super().__init__()
        block, mix, (w, v) = CrossDenoiser.Block, CrossDenoiser.Mix, widths
        self.text, self.time = nn.Parameter(torch.randn(1, tokens, text)), nn.Parameter(torch.randn(1, 4 * w))
        self.first, self.down, self.up = nn.Conv2d(4, w, 3, padding=1), nn.Conv2d(w, w, 3, 2, 1), nn.Conv2d(v, v, 3, padding=1)
        self.blocks = nn.ModuleList(block(*pair, 4 * w) for pair in ((w, w), (w, v), (2 * v, v), (v + w, w)))
        self.mixes = nn.ModuleList(mix(width, text) for width in (w, v, v, w))
        self.last = nn.Sequential(nn.GroupNorm(32, w), nn.SiLU(), nn.Conv2d(w, 4, 3, padding=1))

    def forward(self, x):
        text = self.text.expand(x.shape[0], -1, -1)
        x = kept = self.mixes[0](self.blocks[0](self.first(x), self.time), text)
        x = low = self.mixes[1](self.blocks[1](self.down(x), self.time), text)
        x = self.mixes[2](self.blocks[2](torch.cat([x, low], 1), self.time), text)
        x = self.up(functional.interpolate(x, scale_factor=2.0, mode="nearest"))
        return self.last(self.mixes[3](self.blocks[3](torch.cat([x, kept], 1), self.time), text))


class DiffusionTransformer(nn.Module):
    """Patches whose norms are shifted and scaled by the time, which also scales what each layer adds."""

    def __init__(self, width=384, depth=4, heads=6, patch=2, size=32):
        super().__init__()
        self.heads, self.patch, self.size = heads, patch, size
        self.patches = nn.Conv2d(4, width, patch, patch)
        self.place = nn.Parameter(0.02 * torch.randn(1, (size // patch) ** 2, width))
        self.time = nn.Sequential(nn.Linear(256, width), nn.SiLU(), nn.Linear(width, width))
        self.sines = nn.Parameter(torch.randn(1, 256))
        self.norm = nn.LayerNorm(width, elementwise_affine=False)
        self.layers = nn.ModuleList(nn.ModuleDict({
            "change": nn.Linear(width, 6 * width), "qkv": nn.Linear(width, 3 * width), "out": nn.Linear(width, width),
            "mlp": nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(approximate="tanh"), nn.Linear(4 * width, width))})
            for _ in range(depth))
        self.change, self.last = nn.Linear(width, 2 * width), nn.Linear(width, patch * patch * 4)

    def forward(self, x):
        time = functional.silu(self.time(self.sines.expand(x.shape[0], -1) + x.mean((1, 2, 3))[:, None]))
        x = self.patches(x).flatten(2).transpose(1, 2) + self.place
        for layer in self.layers:
            shift, scale, gate, shift2, scale2, gate2 = layer["change"](time)[:, None].chunk(6, -1)
            y = layer["qkv"](self.norm(x) * (1 + scale) + shift)
            x = x + gate * layer["out"](attend(*y.chunk(3, -1), self.heads))
            x = x + gate2 * layer["mlp"](self.norm(x) * (1 + scale2) + shift2)
        shift, scale = self.change(time)[:, None].chunk(2, -1)
        side = self.size // self.patch
        y = self.last(self.norm(x) * (1 + scale) + shift).unflatten(1, (side, side)).unflatten(3, (self.patch, self.patch, 4))
        return y.permute(0, 5, 1, 3, 2, 4).flatten(2, 3).flatten(3, 4)


class Waves(nn.Module):
    """WaveNet: dilated convolutions of the past with gates of tanh and sigmoid, what all layers add up to."""

    def __init__(self, width=64, skip=128, depth=8, rounds=2):
        super().__init__()
        self.first = nn.Conv1d(1, width, 1)
        self.dilations = [2 ** i for _ in range(rounds) for i in range(depth)]
        self.layers = nn.ModuleList(nn.Conv1d(width, 2 * width, 2, dilation=d) for d in self.dilations)
        self.out = nn.ModuleList(nn.Conv1d(width, width, 1) for _ in self.dilations)
        self.skip = nn.ModuleList(nn.Conv1d(width, skip, 1) for _ in self.dilations)
        self.last = nn.Sequential(nn.ReLU(), nn.Conv1d(skip, skip, 1), nn.ReLU(), nn.Conv1d(skip, 256, 1))

    def forward(self, x):
        x, total = self.first(x), 0
        for dilation, layer, out, skip in zip(self.dilations, self.layers, self.out, self.skip):
            value, gate = layer(functional.pad(x, (dilation, 0))).chunk(2, 1)
            y = torch.tanh(value) * torch.sigmoid(gate)
            x, total = x + out(y), total + skip(y)
        return self.last(total)


class PairNet(nn.Module):
    """Folding of proteins: rows of an alignment attend with a bias of pairs; pairs are multiplied and attend in triangles."""

    def __init__(self, width=64, pair=64, heads=4):
        super().__init__()
        self.heads = heads
        self.enter, self.pairs = nn.Linear(32, width), nn.Linear(2 * 32, pair)
        self.norms = nn.ModuleList(nn.LayerNorm(size) for size in (width, pair, width, width, pair, pair, pair, pair))
        self.qkv, self.gate, self.out = nn.Linear(width, 3 * width, False), nn.Linear(width, width), nn.Linear(width, width)
        self.bias, self.bias2 = nn.Linear(pair, heads, False), nn.Linear(pair, heads, False)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.ReLU(), nn.Linear(4 * width, width))
        self.left, self.right, self.outer = nn.Linear(width, 16), nn.Linear(width, 16), nn.Linear(256, pair)
        self.a, self.b, self.ga, self.gb, self.gate2, self.out2 = (nn.Linear(pair, pair) for _ in range(6))
        self.qkv2, self.gate3, self.out3 = nn.Linear(pair, 3 * pair, False), nn.Linear(pair, pair), nn.Linear(pair, pair)
        self.mlp2 = nn.Sequential(nn.Linear(pair, 4 * pair), nn.ReLU(), nn.Linear(4 * pair, pair))

    def forward(self, x):
        rows, length = x.shape[1:3]
        first = x[:, 0]
        z = self.pairs(torch.cat([first[:, :, None].expand(-1, -1, length, -1), first[:, None].expand(-1, length, -1, -1)], -1))
        m = self.enter(x)
        y = self.norms[0](m)
        bias = self.bias(self.norms[1](z)).permute(0, 3, 1, 2)[:, None]
        m = m + self.out(self.gate(y).sigmoid() * attend(*self.qkv(y).chunk(3, -1), self.heads, bias))
        m = m + self.mlp(self.norms[2](m))
        y = self.norms[3](m)
        outer = torch.einsum("bsic,bsjd->bijcd", self.left(y), self.right(y)).flatten(-2) / rows
        z = z + self.outer(outer)
        y = self.norms[4](z)
        a, b = self.a(y) * self.ga(y).sigmoid(), self.b(y) * self.gb(y).sigmoid()
        z = z + self.gate2(y).sigmoid() * self.out2(self.norms[5](torch.einsum("bikc,bjkc->bijc", a, b)))
        y = self.norms[6](z)
        bias = self.bias2(y).permute(0, 3, 1, 2)[:, None]
        z = z + self.out3(self.gate3(y).sigmoid() * attend(*self.qkv2(y).chunk(3, -1), self.heads, bias))
        return z + self.mlp2(self.norms[7](z))


class OpticalFlow(nn.Module):
    """RAFT: all pixels of one image against all of the other, read around where they move, and a convolutional GRU."""

    def __init__(self, width=64, rounds=4, radius=3):
        super().__init__()
        self.rounds, self.radius, taps = rounds, radius, (2 * radius + 1) ** 2
        self.features = nn.Sequential(conv_norm(3, 32, stride=2), conv_norm(32, 64, stride=2), conv_norm(64, width, stride=2))
        self.context = nn.Sequential(conv_norm(3, 32, stride=2), conv_norm(32, 64, stride=2), conv_norm(64, 2 * width, stride=2))
        self.seen, self.moved = conv_norm(taps, 64, 1), conv_norm(2, 32, 7)
        self.gates, self.change = nn.Conv2d(2 * width + 96, 2 * width, 3, padding=1), nn.Conv2d(2 * width + 96, width, 3, padding=1)
        self.flow = nn.Sequential(conv_norm(width, 64), nn.Conv2d(64, 2, 3, padding=1))
        steps = torch.arange(-radius, radius + 1.0)
        self.register_buffer("around", torch.stack(torch.meshgrid(steps, steps, indexing="ij"), -1).flip(-1).reshape(1, 1, -1, 2))
        rows, columns = torch.arange(16.0), torch.arange(16.0)
        self.register_buffer("place", torch.stack(torch.meshgrid(rows, columns, indexing="ij")).flip(0)[None])

    def forward(self, x):
        one, other = self.features(x[:, :3]), self.features(x[:, 3:])
        batch, width, lines, columns = one.shape
        pairs = (one.flatten(2).transpose(1, 2) @ other.flatten(2) / width ** 0.5).reshape(-1, 1, lines, columns)
        state, given = self.context(x[:, :3]).chunk(2, 1)
        state, given, flow = state.tanh(), given.relu(), torch.zeros_like(x[:, :2, :lines, :columns])
        for _ in range(self.rounds):
            at = (self.place + flow).permute(0, 2, 3, 1).reshape(-1, 1, 1, 2) + self.around
            at = (2 * at / (columns - 1) - 1).squeeze(1)[:, None]
            seen = functional.grid_sample(pairs, at, align_corners=True)
            seen = seen.reshape(batch, lines, columns, -1).permute(0, 3, 1, 2)
            y = torch.cat([given, self.seen(seen), self.moved(flow)], 1)
            update, reset = self.gates(torch.cat([state, y], 1)).sigmoid().chunk(2, 1)
            state = (1 - update) * state + update * self.change(torch.cat([reset * state, y], 1)).tanh()
            flow = flow + self.flow(state)
        return functional.interpolate(flow, scale_factor=8.0, mode="bilinear")


class Restorer(nn.Module):
    """Restormer and NAFNet: channels attend to channels, norms over channels, halves multiplied, channels become pixels."""

    class Norm(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.norm = nn.LayerNorm(width)

        def forward(self, x):
            return self.norm(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)

    class Layer(nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            self.heads, wide = heads, 2 * width
            self.norm, self.norm2 = Restorer.Norm(width), Restorer.Norm(width)
            self.qkv, self.near = nn.Conv2d(width, 3 * width, 1), nn.Conv2d(3 * width, 3 * width, 3, padding=1, groups=3 * width)
            self.heat, self.out = nn.Parameter(torch.ones(heads, 1, 1)), nn.Conv2d(width, width, 1)
            self.enter, self.mix = nn.Conv2d(width, 2 * wide, 1), nn.Conv2d(2 * wide, 2 * wide, 3, padding=1, groups=2 * wide)
            self.weigh, self.leave = nn.Conv2d(wide, wide, 1), nn.Conv2d(wide, width, 1)

        def forward(self, x):
            q, k, v = self.near(self.qkv(self.norm(x))).flatten(2).unflatten(1, (3, self.heads, -1)).unbind(1)
            scores = functional.normalize(q, dim=-1) @ functional.normalize(k, dim=-1).transpose(-1, -2) * self.heat
            x = x + self.out((scores.softmax(-1) @ v).flatten(1, 2).unflatten(2, x.shape[2:]))
            one, other = self.mix(self.enter(self.norm2(x))).chunk(2, 1)
            y = functional.gelu(one) * other
            return x + self.leave(y * self.weigh(y.mean((2, 3), keepdim=True)))

    def __init__(self, width=48):
        super().__init__()
        layer = Restorer.Layer
        self.first, self.last = nn.Conv2d(3, width, 3, padding=1), nn.Conv2d(width, 3, 3, padding=1)
        self.above, self.below, self.after = layer(width, 1), layer(2 * width, 2), layer(width, 1)
        self.down = nn.Sequential(nn.Conv2d(width, width // 2, 3, padding=1), nn.PixelUnshuffle(2))
        self.up = nn.Sequential(nn.Conv2d(2 * width, 4 * width, 3, padding=1), nn.PixelShuffle(2))
        self.join = nn.Conv2d(2 * width, width, 1)

    def forward(self, x):
        y = self.above(self.first(x))
        z = self.up(self.below(self.down(y)))
        return x + self.last(self.after(self.join(torch.cat([z, y], 1))))


class PointGraph(nn.Module):
    """DGCNN: each point's 16 nearest by distances of features, a maximum over edges, anew in each layer."""

    def __init__(self, near=16, widths=(64, 64, 128)):
        super().__init__()
        self.near = near
        self.layers = nn.ModuleList(nn.Sequential(nn.Linear(2 * given, made), nn.LeakyReLU(0.2))
                                    for given, made in zip((3, *widths), widths))
        self.join, self.head = nn.Linear(sum(widths), 256), nn.Linear(512, 40)

    def forward(self, x):
        kept = []
        for layer in self.layers:
            sizes = x.square().sum(-1)
            away = sizes[:, :, None] - 2 * x @ x.transpose(1, 2) + sizes[:, None]
            index = away.topk(self.near, -1, largest=False).indices
            flat = index.flatten(1)[..., None].expand(-1, -1, x.shape[-1])
            found = torch.gather(x, 1, flat).unflatten(1, index.shape[1:])
            own = x[:, :, None].expand_as(found)
            x = layer(torch.cat([found - own, own], -1)).amax(2)
            kept.append(x)
        y = functional.leaky_relu(self.join(torch.cat(kept, -1)), 0.2)
        return self.head(torch.cat([y.amax(1), y.mean(1)], -1))


class Separator(nn.Module):
    """Demucs: strided 1D convolutions with gated linear units, an LSTM in both directions, transposed convolutions back."""

    def __init__(self, width=48, depth=4, kernel=8, stride=4):
        super().__init__()
        self.encoder, self.decoder, given = nn.ModuleList(), nn.ModuleList(), 2
        for i in range(depth):
            made = width << i
            self.encoder.append(nn.Sequential(nn.Conv1d(given, made, kernel, stride, 2), nn.ReLU(),
                                              nn.Conv1d(made, 2 * made, 1), nn.GLU(1)))
            self.decoder.insert(0, nn.Sequential(nn.Conv1d(made, 2 * made, 3, padding=1), nn.GLU(1),
                                                 nn.ConvTranspose1d(made, given if i else 8, kernel, stride, 2)))
            given = made
        self.lstm, self.join = nn.LSTM(given, given, 1, batch_first=True, bidirectional=True), nn.Linear(2 * given, given)

    def forward(self, x):
        kept = []
        for layer in self.encoder:
            x = layer(x)
            kept.append(x)
        x = self.join(self.lstm(x.transpose(1, 2))[0]).transpose(1, 2)
        for i, layer in enumerate(self.decoder):
            x = layer(x + kept.pop())
            x = functional.relu(x) if i + 1 < len(self.decoder) else x
        return x


class MovingImages(nn.Module):
    """X3D: depthwise convolutions of 3x3x3 between pointwise ones, squeeze-and-excite over time and space."""

    class Block(nn.Module):
        def __init__(self, given, made, stride, squeeze):
            super().__init__()
            wide = 9 * given // 4
            self.enter = nn.Sequential(nn.Conv3d(given, wide, 1, bias=False), nn.BatchNorm3d(wide), nn.ReLU())
            self.near = nn.Sequential(nn.Conv3d(wide, wide, 3, (1, stride, stride), 1, groups=wide, bias=False),
                                      nn.BatchNorm3d(wide))
            self.squeeze = nn.Sequential(nn.Conv3d(wide, wide // 16 + 8, 1), nn.ReLU(), nn.Conv3d(wide // 16 + 8, wide, 1),
                                         nn.Sigmoid()) if squeeze else None
            self.leave = nn.Sequential(nn.Conv3d(wide, made, 1, bias=False), nn.BatchNorm3d(made))
            self.skip = nn.Identity() if given == made and stride == 1 else \
                nn.Sequential(nn.Conv3d(given, made, 1, (1, stride, stride), bias=False), nn.BatchNorm3d(made))

        def forward(self, x):
            y = self.near(self.enter(x))
            y = y * self.squeeze(y.mean((2, 3, 4), keepdim=True)) if self.squeeze else y
            return functional.relu(self.skip(x) + self.leave(functional.silu(y)))

    def __init__(self, widths=(24, 48, 96)):
        super().__init__()
        self.first = nn.Sequential(nn.Conv3d(3, widths[0], (1, 3, 3), (1, 2, 2), (0, 1, 1), bias=False),
                                   nn.Conv3d(widths[0], widths[0], (5, 1, 1), padding=(2, 0, 0), groups=widths[0], bias=False),
                                   nn.BatchNorm3d(widths[0]), nn.ReLU())
        pairs = zip((widths[0], *widths), widths)
        self.blocks = nn.Sequential(*(MovingImages.Block(given if i == 0 else made, made, 2 - (i > 0), i % 2 == 0)
                                      for given, made in pairs for i in range(2)))
        self.head = nn.Linear(widths[-1], 100)

    def forward(self, x):
        return self.head(self.blocks(self.first(x)).mean((2, 3, 4)))


class Ranker(nn.Module):
    """DLRM: rows of tables, products of all pairs of them, a perceptron over what lies below the diagonal."""

    def __init__(self, tables=26, rows=1000, width=64):
        super().__init__()
        self.register_buffer("offsets", rows * torch.arange(tables))
        self.register_buffer("pairs", torch.tril_indices(tables, tables, -1)[0] * tables + torch.tril_indices(tables, tables, -1)[1])
        self.rows, pairs = nn.Embedding(tables * rows, width), tables * (tables - 1) // 2
        self.deep = nn.Sequential(nn.Linear(pairs + tables * width, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU())
        self.cross = nn.ModuleList(nn.Linear(tables * width, tables * width) for _ in range(2))
        self.head = nn.Linear(256, 1)

    def forward(self, x):
        x = self.rows(x + self.offsets)
        pairs = (x @ x.transpose(1, 2)).flatten(1)[:, self.pairs]
        first = y = x.flatten(1)
        for cross in self.cross:
            y = first * cross(y) + y
        return self.head(self.deep(torch.cat([pairs, y], 1))).sigmoid()


class Matcher(nn.Module):
    """Points of two images attend to each other; what fits is found by rows and columns that are normed in turn."""

    def __init__(self, width=128, depth=2, heads=4, rounds=10):
        super().__init__()
        self.heads, self.rounds, self.enter = heads, rounds, nn.Linear(64, width)
        self.qkv = nn.ModuleList(nn.Linear(width, 3 * width) for _ in range(2 * depth))
        self.mlp = nn.ModuleList(nn.Sequential(nn.Linear(2 * width, 2 * width), nn.LayerNorm(2 * width), nn.GELU(),
                                               nn.Linear(2 * width, width)) for _ in range(2 * depth))
        self.last = nn.Linear(width, width)

    def forward(self, x):
        one, other = self.enter(x).chunk(2, 1)
        for i, (qkv, mlp) in enumerate(zip(self.qkv, self.mlp)):
            (q, k, v), (q2, k2, v2) = qkv(one).chunk(3, -1), qkv(other).chunk(3, -1)
            if i % 2:
                k, v, k2, v2 = k2, v2, k, v
            one = one + mlp(torch.cat([one, attend(q, k, v, self.heads)], -1))
            other = other + mlp(torch.cat([other, attend(q2, k2, v2, self.heads)], -1))
        scores = self.last(one) @ self.last(other).transpose(1, 2) / one.shape[-1] ** 0.5
        for _ in range(self.rounds):
            scores = scores - scores.logsumexp(2, keepdim=True)
            scores = scores - scores.logsumexp(1, keepdim=True)
        return scores.exp()


class Planes(nn.Module):
    """Colors of points of space from three planes of features, read between their pixels."""

    def __init__(self, width=32, size=128):
        super().__init__()
        self.planes = nn.Parameter(torch.randn(1, 3 * width, size, size))
        self.layers = nn.Sequential(nn.Linear(width, 64), nn.Softplus(), nn.Linear(64, 64), nn.Softplus(), nn.Linear(64, 4))

    def forward(self, x):
        x = x.tanh()
        sides = torch.stack([x[..., :2], x[..., 1:], x[..., ::2]], 1)[:, :, None].flatten(0, 1)
        planes = self.planes.expand(x.shape[0], -1, -1, -1).reshape(sides.shape[0], -1, *self.planes.shape[2:])
        read = functional.grid_sample(planes, sides, align_corners=False)[:, :, 0]
        y = read.unflatten(0, (x.shape[0], 3)).mean(1).transpose(1, 2)
        return self.layers(y)
