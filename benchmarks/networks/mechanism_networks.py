"""Networks of further mechanisms: point clouds, recurrent convolutions, flows, warps, capsules, experts, attention along edges,
hashed grids, splines, slots, a memory, offsets that are learned."""
import torch
from torch import nn
from torch.nn import functional
from own_networks import conv_norm


def perceptron(*widths):
    layers = [layer for pair in zip(widths, widths[1:]) for layer in (nn.Linear(*pair), nn.ReLU())]
    return nn.Sequential(*layers[:-1])


class PointNet(nn.Module):
    """Points of [n, 3], turned by matrices made of all of them, and the largest feature over points."""

    class Turn(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.width = width
            self.points = nn.Sequential(*(layer for pair in ((width, 64), (64, 128), (128, 1024))
                                          for layer in (nn.Conv1d(*pair, 1), nn.BatchNorm1d(pair[1]), nn.ReLU())))
            self.whole = perceptron(1024, 512, 256, width * width)

        def forward(self, x):
            turn = self.whole(self.points(x).amax(-1)).unflatten(-1, (self.width, self.width))
            return (turn + torch.eye(self.width, dtype=x.dtype, device=x.device)) @ x

    def __init__(self, classes=40):
        super().__init__()
        layer = lambda given, made: nn.Sequential(nn.Conv1d(given, made, 1), nn.BatchNorm1d(made), nn.ReLU())  # noqa: E731
        self.turn, self.first = PointNet.Turn(3), layer(3, 64)
        self.turn_features, self.rest = PointNet.Turn(64), nn.Sequential(layer(64, 128), layer(128, 1024))
        self.head = perceptron(1024, 512, 256, classes)

    def forward(self, x):
        x = self.turn_features(self.first(self.turn(x.transpose(1, 2))))
        return self.head(self.rest(x).amax(-1))


class MovingGates(nn.Module):
    """A convolutional LSTM over eight images, and the image that comes next."""

    def __init__(self, width=64):
        super().__init__()
        self.width = width
        self.first, self.gates = conv_norm(3, width, stride=2), nn.Conv2d(2 * width, 4 * width, 3, padding=1)
        self.last = nn.Sequential(nn.Conv2d(width, 12, 3, padding=1), nn.PixelShuffle(2))

    def forward(self, x):
        frames = self.first(x.flatten(0, 1)).unflatten(0, x.shape[:2])
        h = c = torch.zeros_like(frames[:, 0])
        for t in range(frames.shape[1]):
            i, f, o, g = self.gates(torch.cat([frames[:, t], h], 1)).chunk(4, 1)
            c = f.sigmoid() * c + i.sigmoid() * g.tanh()
            h = o.sigmoid() * c.tanh()
        return self.last(h)


class Coupling(nn.Module):
    """A flow: pixels become channels, which are turned by a matrix; half of them scale and shift the other half."""

    def __init__(self, levels=3, steps=4, width=128):
        super().__init__()
        self.steps, channels = steps, [12 * 2 ** level for level in range(levels)]
        each = [c for c in channels for _ in range(steps)]
        self.turns = nn.ModuleList(nn.Conv2d(c, c, 1) for c in each)
        self.nets = nn.ModuleList(nn.Sequential(nn.Conv2d(c // 2, width, 3, padding=1), nn.ReLU(), nn.Conv2d(width, width, 1),
                                                nn.ReLU(), nn.Conv2d(width, c, 3, padding=1)) for c in each)

    def forward(self, x):
        kept, volume = [], 0
        for i, (turn, net) in enumerate(zip(self.turns, self.nets)):
            if i % self.steps == 0:
                if i:
                    kept.append(x[:, x.shape[1] // 2:].flatten(1))
                    x = x[:, :x.shape[1] // 2]
                x = functional.pixel_unshuffle(x, 2)
            left, right = turn(x).chunk(2, 1)
            scale, shift = net(left).chunk(2, 1)
            scale = (scale + 2).sigmoid()
            volume = volume + scale.log().sum((1, 2, 3))
            x = torch.cat([left, right * scale + shift], 1)
        return torch.cat([*kept, x.flatten(1), volume[:, None]], 1)


class Warper(nn.Module):
    """A spatial transformer: an image is read at places that a network makes of it, then classified."""

    def __init__(self):
        super().__init__()
        self.places = nn.Sequential(conv_norm(3, 32, 7, stride=4), conv_norm(32, 64, stride=2), conv_norm(64, 64, stride=2))
        self.matrix = perceptron(64, 64, 6)
        self.rest = nn.Sequential(conv_norm(3, 32, stride=2), conv_norm(32, 64), nn.MaxPool2d(2), conv_norm(64, 128), nn.MaxPool2d(2))
        self.head = nn.Linear(128, 10)

    def forward(self, x):
        matrix = self.matrix(self.places(x).mean((2, 3))).unflatten(-1, (2, 3))
        grid = functional.affine_grid(matrix, x.shape, align_corners=False)
        return self.head(self.rest(functional.grid_sample(x, grid, align_corners=False)).mean((2, 3)))


class Capsules(nn.Module):
    """Capsules, whose votes are routed in three rounds by how well they agree."""

    def __init__(self, made=10, width=16):
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 256, 9), nn.Conv2d(256, 256, 9, 2)
        self.votes = nn.Parameter(0.05 * torch.randn(2048, made, width, 8))

    @staticmethod
    def squash(x):
        size = x.square().sum(-1, keepdim=True)
        return x * size / ((1 + size) * (size + 1e-6).sqrt())

    def forward(self, x):
        parts = self.squash(self.second(self.first(x).relu()).unflatten(1, (32, 8)).flatten(3).transpose(2, 3).flatten(1, 2))
        votes = torch.einsum("iowd,bid->biow", self.votes, parts)
        logits = torch.zeros_like(votes[..., 0])
        for _ in range(3):
            whole = self.squash((logits.softmax(2)[..., None] * votes).sum(1))
            logits = logits + (votes * whole[:, None]).sum(-1)
        return whole.norm(dim=-1)


class Experts(nn.Module):
    """Layers of attention whose perceptrons are two of eight experts, chosen for each token; all are computed."""

    def __init__(self, width=384, experts=8, depth=3):
        super().__init__()
        self.embedding = nn.Embedding(1000, width)
        self.attention = nn.ModuleList(nn.Linear(width, 3 * width) for _ in range(depth))
        self.router = nn.ModuleList(nn.Linear(width, experts) for _ in range(depth))
        self.up = nn.ParameterList(0.05 * torch.randn(experts, width, 2 * width) for _ in range(depth))
        self.down = nn.ParameterList(0.05 * torch.randn(experts, 2 * width, width) for _ in range(depth))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2 * depth))

    def forward(self, x):
        x = self.embedding(x)
        for i, (attention, router, up, down) in enumerate(zip(self.attention, self.router, self.up, self.down)):
            q, k, v = attention(self.norms[2 * i](x)).unflatten(-1, (3, 6, -1)).permute(2, 0, 3, 1, 4)
            x = x + functional.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)
            y = self.norms[2 * i + 1](x)
            weights, chosen = router(y).softmax(-1).topk(2)
            share = torch.zeros_like(router(y)).scatter(-1, chosen, weights / weights.sum(-1, keepdim=True))
            made = torch.einsum("betf,efw->betw", functional.silu(torch.einsum("btw,ewf->betf", y, up)), down)
            x = x + (made * share.transpose(1, 2)[..., None]).sum(1)
        return x


class EdgeAttention(nn.Module):
    """Attention along the edges of one graph of 1,024 nodes: a softmax over the edges that end at a node."""

    def __init__(self, features=32, width=128, heads=4, depth=3, nodes=1024, degree=8):
        super().__init__()
        generator = torch.Generator().manual_seed(1)
        self.register_buffer("source", torch.randint(nodes, (nodes * degree,), generator=generator))
        self.register_buffer("target", torch.randint(nodes, (nodes * degree,), generator=generator))
        self.heads, self.first = heads, nn.Linear(features, width)
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.scores = nn.ModuleList(nn.Linear(width, 2 * heads) for _ in range(depth))

    def forward(self, x):
        x = self.first(x)
        target = self.target[None, :, None].expand(x.shape[0], -1, self.heads)
        for layer, score in zip(self.layers, self.scores):
            y = layer(x)
            sent, got = score(y).chunk(2, -1)
            scores = functional.leaky_relu(sent[:, self.source] + got[:, self.target], 0.2)
            most = torch.full_like(sent, -1e4).scatter_reduce(1, target, scores, "amax")
            shares = (scores - most[:, self.target]).exp()
            whole = torch.zeros_like(sent).index_add(1, self.target, shares)
            messages = y[:, self.source].unflatten(-1, (self.heads, -1)) * (shares / (whole[:, self.target] + 1e-6))[..., None]
            x = x + functional.elu(torch.zeros_like(y).index_add(1, self.target, messages.flatten(2)))
        return x.mean(1)


class HashedGrid(nn.Module):
    """Features of points from grids of eight sizes, whose corners are rows of small tables by a hash."""

    def __init__(self, levels=8, rows=16384, features=4, width=64):
        super().__init__()
        self.rows, self.levels = rows, levels
        self.tables = nn.Parameter(torch.randn(levels * rows, features))
        self.register_buffer("primes", torch.tensor([1, 2654435761, 805459861]))
        self.register_buffer("corners", torch.tensor([[i >> d & 1 for d in range(3)] for i in range(8)]))
        self.net = perceptron(levels * features, width, width, 4)

    def forward(self, x):
        x, found = x.sigmoid(), []
        for level in range(self.levels):
            place = x * 8 * 1.5 ** level
            cell = place.floor()
            inside = (place - cell)[:, :, None]
            hashed = (cell[:, :, None].long() + self.corners) * self.primes
            row = (hashed[..., 0] ^ hashed[..., 1] ^ hashed[..., 2]) & (self.rows - 1)
            weight = torch.where(self.corners > 0, inside, 1 - inside).prod(-1, keepdim=True)
            found.append((self.tables[row + level * self.rows] * weight).sum(2))
        return self.net(torch.cat(found, -1))


class SplineNet(nn.Module):
    """Layers whose edges are cubic splines."""

    def __init__(self, widths=(64, 128, 128, 10), grid=8):
        super().__init__()
        self.register_buffer("knots", torch.arange(-3, grid + 4) * (2 / grid) - 1)
        self.base = nn.ModuleList(nn.Linear(*pair) for pair in zip(widths, widths[1:]))
        self.splines = nn.ModuleList(nn.Linear(given * (grid + 3), made) for given, made in zip(widths, widths[1:]))

    def forward(self, x):
        for base, spline in zip(self.base, self.splines):
            at, knots = x.tanh()[..., None], self.knots.to(x.dtype)
            bases = ((at >= knots[:-1]) & (at < knots[1:])).to(x.dtype)
            for k in range(1, 4):
                left = (at - knots[:-k - 1]) / (knots[k:-1] - knots[:-k - 1])
                right = (knots[k + 1:] - at) / (knots[k + 1:] - knots[1:-k])
                bases = left * bases[..., :-1] + right * bases[..., 1:]
            x = base(functional.silu(x)) + spline(bases.flatten(-2))
        return x


class Slots(nn.Module):
    """Seven slots that compete for the pixels of an image in three rounds."""

    def __init__(self, width=64, slots=7):
        super().__init__()
        self.features = nn.Sequential(*(conv_norm(c, width, 5) for c in (3, width, width, width)))
        self.norm, self.slots = nn.LayerNorm(width), nn.Parameter(torch.randn(1, slots, width))
        self.query, self.key, self.value = (nn.Linear(width, width, bias=False) for _ in range(3))
        self.given, self.kept = nn.Linear(width, 3 * width), nn.Linear(width, 3 * width)
        self.after = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 128), nn.ReLU(), nn.Linear(128, width))

    def forward(self, x):
        pixels = self.norm(self.features(x).flatten(2).transpose(1, 2))
        k, v, slots = self.key(pixels), self.value(pixels), self.slots.expand(x.shape[0], -1, -1)
        for _ in range(3):
            shares = (k @ self.query(self.norm(slots)).transpose(1, 2) / 8).softmax(-1) + 1e-8
            got = (shares / shares.sum(1, keepdim=True)).transpose(1, 2) @ v
            (ri, zi, ni), (rh, zh, nh) = self.given(got).chunk(3, -1), self.kept(slots).chunk(3, -1)
            z = (zi + zh).sigmoid()
            slots = (1 - z) * (ni + (ri + rh).sigmoid() * nh).tanh() + z * slots
            slots = slots + self.after(slots)
        return slots


class Recall(nn.Module):
    """Tokens that read the eight nearest of 4,096 rows of a memory."""

    def __init__(self, width=256, rows=4096, nearest=8, depth=2):
        super().__init__()
        self.nearest, self.embedding = nearest, nn.Embedding(1000, width)
        self.keys = nn.ParameterList(torch.randn(rows, width) for _ in range(depth))
        self.values = nn.ParameterList(torch.randn(rows, width) for _ in range(depth))
        self.query = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.norm = nn.ModuleList(nn.LayerNorm(width) for _ in range(depth))

    def forward(self, x):
        x = self.embedding(x)
        for keys, values, query, norm in zip(self.keys, self.values, self.query, self.norm):
            scores, found = (query(x) @ keys.t()).topk(self.nearest)
            x = norm(x + ((scores / 16).softmax(-1)[..., None] * values[found]).sum(-2))
        return x


class LearnedOffsets(nn.Module):
    """Queries that read maps of three sizes at a few places around each of them, as deformable attention does."""

    def __init__(self, width=128, heads=4, points=4, depth=2):
        super().__init__()
        self.heads, self.points = heads, points
        self.maps = nn.ModuleList([conv_norm(3, width, 7, stride=8), conv_norm(width, width, stride=2), conv_norm(width, width, stride=2)])
        self.queries = nn.Parameter(torch.randn(300, width))
        self.at, self.offsets, self.shares, self.value, self.out = (
            nn.ModuleList(nn.Linear(width, made) for _ in range(depth))
            for made in (2, heads * 3 * points * 2, heads * 3 * points, width, width))

    def forward(self, x):
        maps = [x := layer(x) for layer in self.maps]
        q = self.queries.expand(x.shape[0], -1, -1)
        for at, offsets, shares, value, out in zip(self.at, self.offsets, self.shares, self.value, self.out):
            places = at(q).tanh()[:, :, None, None, None] + 0.1 * offsets(q).unflatten(-1, (self.heads, 3, self.points, 2))
            weight = shares(q).unflatten(-1, (self.heads, -1)).softmax(-1).unflatten(-1, (3, self.points))
            got = 0
            for level, image in enumerate(maps):
                pixels = value(image.permute(0, 2, 3, 1)).permute(0, 3, 1, 2).unflatten(1, (self.heads, -1)).flatten(0, 1)
                read = functional.grid_sample(pixels, places[..., level, :, :].transpose(1, 2).flatten(0, 1), align_corners=False)
                got = got + (read.unflatten(0, (-1, self.heads)) * weight[..., level, :].transpose(1, 2)[:, :, None]).sum(-1)
            q = q + out(got.permute(0, 3, 1, 2).flatten(2))
        return q
