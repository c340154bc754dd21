"""Networks of signals, sets, graphs and tables: norms over all of a signal, splits of channels one after another, joints of
skeletons, electrodes, letters of genomes, tokens sent to experts of limited room, two sequences joined at each pair, distances of
atoms, messages of edges, recurrences by doubling, slices of meshes, greatest features of windows, histories of what was bought."""
import math

import torch
from torch import nn
from torch.nn import functional


class Speakers(nn.Module):
    """Two speakers of one signal by masks (Conv-TasNet): dilated depthwise layers, norms over all of a signal."""

    class Block(nn.Module):
        def __init__(self, width, hidden, dilation):
            super().__init__()
            self.layers = nn.Sequential(nn.Conv1d(width, hidden, 1), nn.PReLU(), nn.GroupNorm(1, hidden),
                                        nn.Conv1d(hidden, hidden, 3, padding=dilation, dilation=dilation, groups=hidden), nn.PReLU(),
                                        nn.GroupNorm(1, hidden))
            self.kept, self.out = nn.Conv1d(hidden, width, 1), nn.Conv1d(hidden, width, 1)

        def forward(self, x):
            y = self.layers(x)
            return x + self.kept(y), self.out(y)

    def __init__(self, filters=256, width=128, hidden=256, depth=6, speakers=2):
        super().__init__()
        self.speakers = speakers
        self.encoder, self.norm = nn.Conv1d(1, filters, 16, 8, bias=False), nn.GroupNorm(1, filters)
        self.first, self.last = nn.Conv1d(filters, width, 1), nn.Conv1d(width, speakers * filters, 1)
        self.blocks = nn.ModuleList(Speakers.Block(width, hidden, 2 ** i) for i in range(depth))
        self.decoder = nn.ConvTranspose1d(filters, 1, 16, 8, bias=False)

    def forward(self, x):
        code = self.encoder(x).relu()
        y, whole = self.first(self.norm(code)), 0
        for block in self.blocks:
            y, out = block(y)
            whole = whole + out
        masks = self.last(whole.relu()).sigmoid().unflatten(1, (self.speakers, -1))
        return self.decoder((masks * code[:, None]).flatten(0, 1)).unflatten(0, (-1, self.speakers))


class Voices(nn.Module):
    """Who speaks: channels in eighths one after another, and means and deviations over time by attention (ECAPA-TDNN)."""

    @staticmethod
    def layer(given, made, size=1, dilation=1):
        return nn.Sequential(nn.Conv1d(given, made, size, dilation=dilation, padding=dilation * (size // 2)), nn.ReLU(), nn.BatchNorm1d(made))

    class Block(nn.Module):
        def __init__(self, width, dilation):
            super().__init__()
            self.before, self.after = Voices.layer(width, width), Voices.layer(width, width)
            self.parts = nn.ModuleList(Voices.layer(width // 8, width // 8, 3, dilation) for _ in range(7))
            self.share = nn.Sequential(nn.Conv1d(width, 128, 1), nn.ReLU(), nn.Conv1d(128, width, 1), nn.Sigmoid())

        def forward(self, x):
            first, *rest = self.before(x).chunk(8, 1)
            made, last = [first], None
            for part, layer in zip(rest, self.parts):
                last = layer(part if last is None else part + last)
                made.append(last)
            y = self.after(torch.cat(made, 1))
            return x + y * self.share(y.mean(-1, keepdim=True))

    def __init__(self, bands=80, width=512):
        super().__init__()
        self.first = Voices.layer(bands, width, 5)
        self.blocks = nn.ModuleList(Voices.Block(width, d) for d in (2, 3, 4))
        self.join = nn.Sequential(nn.Conv1d(3 * width, 1536, 1), nn.ReLU())
        self.weigh = nn.Sequential(nn.Conv1d(3 * 1536, 128, 1), nn.Tanh(), nn.Conv1d(128, 1536, 1))
        self.last = nn.Linear(3072, 192)

    def forward(self, x):
        x, made = self.first(x), []
        for block in self.blocks:
            x = block(x)
            made.append(x)
        x = self.join(torch.cat(made, 1))
        mean = x.mean(-1, keepdim=True)
        deviation = ((x - mean).square().mean(-1, keepdim=True) + 1e-5).sqrt()
        shares = self.weigh(torch.cat([x, mean.expand_as(x), deviation.expand_as(x)], 1)).softmax(-1)
        mean = (x * shares).sum(-1)
        deviation = ((x.square() * shares).sum(-1) - mean.square()).clamp(min=1e-4).sqrt()
        return self.last(torch.cat([mean, deviation], 1))


class Skeletons(nn.Module):
    """What 25 joints do over time: along bones by matrices, along time by convolutions (ST-GCN)."""

    class Block(nn.Module):
        def __init__(self, given, made, joints, stride=1):
            super().__init__()
            self.bones = nn.Parameter(torch.rand(3, joints, joints) / joints)
            self.mix = nn.Conv2d(given, 3 * made, 1)
            self.time = nn.Sequential(nn.BatchNorm2d(made), nn.ReLU(), nn.Conv2d(made, made, (9, 1), (stride, 1), (4, 0)), nn.BatchNorm2d(made))
            self.beside = nn.Sequential(nn.Conv2d(given, made, 1, (stride, 1)), nn.BatchNorm2d(made)) if given != made else nn.Identity()

        def forward(self, x):
            y = torch.einsum("bkctv,kvw->bctw", self.mix(x).unflatten(1, (3, -1)), self.bones)
            return (self.time(y) + self.beside(x)).relu()

    def __init__(self, joints=25):
        super().__init__()
        widths = [3, 64, 64, 64, 128, 128, 256]
        self.blocks = nn.Sequential(*(Skeletons.Block(a, b, joints, 2 if b != a and a > 3 else 1) for a, b in zip(widths, widths[1:])))
        self.head = nn.Linear(256, 60)

    def forward(self, x):
        return self.head(self.blocks(x).mean((2, 3)))


class Electrodes(nn.Module):
    """Signals of 22 electrodes: long filters of time, filters over all electrodes for each (EEGNet, wider)."""

    def __init__(self, electrodes=22, filters=16, each=2):
        super().__init__()
        made = filters * each
        self.layers = nn.Sequential(
            nn.Conv2d(1, filters, (1, 64), padding=(0, 32), bias=False), nn.BatchNorm2d(filters),
            nn.Conv2d(filters, made, (electrodes, 1), groups=filters, bias=False), nn.BatchNorm2d(made), nn.ELU(), nn.AvgPool2d((1, 4)),
            nn.Conv2d(made, made, (1, 16), padding=(0, 8), groups=made, bias=False), nn.Conv2d(made, made, 1, bias=False), nn.BatchNorm2d(made),
            nn.ELU(), nn.AvgPool2d((1, 8)), nn.Flatten())
        self.head = nn.LazyLinear(4)
        self.forward(torch.zeros(1, 1, electrodes, 1024))

    def forward(self, x):
        return self.head(self.layers(x))


class Genome(nn.Module):
    """Tracks of four letters: wide windows, poolings that weigh pairs, dilated layers that grow, attention with distances (Enformer)."""

    class PairPool(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.weigh = nn.Conv2d(width, width, 1, bias=False)

        def forward(self, x):
            pairs = x.unflatten(-1, (-1, 2))
            return (pairs * self.weigh(pairs).softmax(-1)).sum(-1)

    @staticmethod
    def layer(given, made, size, dilation=1):
        return nn.Sequential(nn.BatchNorm1d(given), nn.GELU(), nn.Conv1d(given, made, size, padding=size // 2 * dilation, dilation=dilation))

    def __init__(self, width=192, heads=4, tracks=64):
        super().__init__()
        self.first = nn.Sequential(nn.Conv1d(4, width // 2, 15, padding=7), Genome.PairPool(width // 2))
        widths = [width // 2, width // 2, 128, 160, width]
        self.tower = nn.Sequential(*(nn.Sequential(Genome.layer(a, b, 5), Genome.PairPool(b)) for a, b in zip(widths, widths[1:])))
        self.dilated = nn.ModuleList(Genome.layer(width, width, 3, 2 ** i) for i in range(4))
        self.heads, self.all, self.out, self.norm = heads, nn.Linear(width, 3 * width), nn.Linear(width, width), nn.LayerNorm(width)
        apart = (torch.arange(512)[:, None] - torch.arange(512)).abs()
        self.register_buffer("near", torch.exp(-apart[..., None] / 2.0 ** torch.arange(16)))
        self.apart = nn.Linear(16, heads, bias=False)
        self.last = nn.Sequential(nn.Linear(width, tracks), nn.Softplus())

    def forward(self, x):
        x = self.tower(self.first(x))
        for layer in self.dilated:
            x = x + layer(x)
        x = x.transpose(1, 2)
        tokens = x.shape[1]
        q, k, v = self.all(self.norm(x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        near = self.near[:tokens, :tokens].to(x.dtype)
        scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]) + self.apart(near).permute(2, 0, 1)
        x = x + self.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))
        return self.last(x)


class Dispatch(nn.Module):
    """Tokens sent to one of eight experts, each with room for a part of them (Switch)."""

    class Layer(nn.Module):
        def __init__(self, width, experts, room):
            super().__init__()
            self.room, self.experts = room, experts
            self.norm, self.route = nn.LayerNorm(width), nn.Linear(width, experts, bias=False)
            self.up, self.down = (nn.Parameter(torch.randn(experts, *dims) / math.sqrt(dims[0])) for dims in ((width, 4 * width), (4 * width, width)))

        def forward(self, x):
            y = self.norm(x)
            shares = self.route(y).softmax(-1)
            share, expert = shares.max(-1)
            chosen = functional.one_hot(expert, self.experts)
            place = chosen.cumsum(1) * chosen - 1
            slots = (place[..., None] == torch.arange(self.room, device=x.device)).to(x.dtype)  # [batch, token, expert, place]
            sent = torch.einsum("btec,btw->ebcw", slots, y)
            made = (functional.gelu(sent.flatten(1, 2) @ self.up) @ self.down).view(sent.shape)
            return x + torch.einsum("btec,ebcw->btw", slots * share[..., None, None], made)

    def __init__(self, width=512, experts=8, tokens=128, depth=2):
        super().__init__()
        self.words = nn.Embedding(100, width)
        self.layers = nn.Sequential(*(Dispatch.Layer(width, experts, tokens // 4) for _ in range(depth)))

    def forward(self, ids):
        return self.layers(self.words(ids))


class Transducer(nn.Module):
    """Sound and letters joined at each pair of their steps (RNN-T): an encoder by convolutions, letters by an LSTM."""

    def __init__(self, bands=80, width=256, letters=32, spoken=24):
        super().__init__()
        self.spoken = spoken
        self.encoder = nn.Sequential(nn.Conv1d(bands, width, 3, 2, 1), nn.ReLU(), nn.Conv1d(width, width, 3, 2, 1), nn.ReLU())
        self.words, self.after = nn.Embedding(letters, width), nn.LSTM(width, width, batch_first=True)
        self.sound, self.text, self.joint = nn.Linear(width, width), nn.Linear(width, width), nn.Linear(width, letters)

    def forward(self, x):
        sound = self.sound(self.encoder(x[..., :-self.spoken]).transpose(1, 2))
        ids = (x[:, 0, -self.spoken:].sigmoid() * 31).long()
        text = self.text(self.after(self.words(ids))[0])
        return self.joint((sound[:, :, None] + text[:, None]).tanh()).log_softmax(-1)


class Atoms(nn.Module):
    """Energies of molecules of 32 atoms: filters of the distances of pairs (SchNet)."""

    class Block(nn.Module):
        def __init__(self, width, rays):
            super().__init__()
            self.filter = nn.Sequential(nn.Linear(rays, width), nn.Softplus(), nn.Linear(width, width), nn.Softplus())
            self.given, self.made = nn.Linear(width, width, bias=False), nn.Sequential(nn.Linear(width, width), nn.Softplus(), nn.Linear(width, width))

        def forward(self, x, rays, near):
            sent = self.given(x)[:, None] * self.filter(rays) * near[..., None]
            return x + self.made(sent.sum(2))

    def __init__(self, width=64, rays=48, depth=3):
        super().__init__()
        self.register_buffer("centres", torch.linspace(0, 6, rays))
        self.first = nn.Linear(5, width)
        self.blocks = nn.ModuleList(Atoms.Block(width, rays) for _ in range(depth))
        self.last = nn.Sequential(nn.Linear(width, width // 2), nn.Softplus(), nn.Linear(width // 2, 1))

    def forward(self, x):
        places = x[..., :3] * 2
        apart = ((places[:, :, None] - places[:, None]).square().sum(-1) + 1e-6).sqrt()
        rays = torch.exp(-8 * (apart[..., None] - self.centres.to(x.dtype)).square())
        near = 0.5 * ((apart * (math.pi / 6)).cos() + 1) * (apart < 6).to(x.dtype)
        y = self.first(x)
        for block in self.blocks:
            y = block(y, rays, near)
        return self.last(y).sum(1)


class Mesh(nn.Module):
    """Nodes and edges of a mesh that change each other (MeshGraphNet): both ends of an edge beside it, sums over the edges of a node."""

    @staticmethod
    def perceptron(given, made):
        return nn.Sequential(nn.Linear(given, made), nn.ReLU(), nn.Linear(made, made), nn.LayerNorm(made))

    def __init__(self, nodes=1024, degree=6, width=128, depth=3):
        super().__init__()
        generator = torch.Generator().manual_seed(2)
        self.register_buffer("source", torch.randint(nodes, (nodes * degree,), generator=generator))
        self.register_buffer("target", torch.randint(nodes, (nodes * degree,), generator=generator))
        self.node, self.edge, self.last = Mesh.perceptron(12, width), Mesh.perceptron(24, width), nn.Linear(width, 3)
        self.edges = nn.ModuleList(Mesh.perceptron(3 * width, width) for _ in range(depth))
        self.nodes = nn.ModuleList(Mesh.perceptron(2 * width, width) for _ in range(depth))

    def forward(self, x):
        edge = self.edge(torch.cat([x[:, self.source], x[:, self.target]], -1))
        node = self.node(x)
        for edges, nodes in zip(self.edges, self.nodes):
            edge = edge + edges(torch.cat([edge, node[:, self.source], node[:, self.target]], -1))
            met = torch.zeros_like(node).index_add(1, self.target, edge)
            node = node + nodes(torch.cat([node, met], -1))
        return self.last(node)


class Recurrence(nn.Module):
    """Linear recurrences with gates of their own at each step, all steps at once by doubling (as of RG-LRU, minGRU)."""

    class Layer(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.norm, self.all, self.out = nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width)

        def forward(self, x):
            value, keep, gate = self.all(self.norm(x)).chunk(3, -1)
            keep = keep.sigmoid()
            h, step = (1 - keep) * value, 1
            while step < x.shape[1]:
                h = h + keep * functional.pad(h, (0, 0, step, 0))[:, :-step]
                keep = keep * functional.pad(keep, (0, 0, step, 0), value=1.0)[:, :-step]
                step *= 2
            return x + self.out(h * functional.silu(gate))

    def __init__(self, width=256, depth=2):
        super().__init__()
        self.words, self.layers = nn.Embedding(100, width), nn.Sequential(*(Recurrence.Layer(width) for _ in range(depth)))

    def forward(self, ids):
        return self.layers(self.words(ids))


class MeshSlices(nn.Module):
    """Points of a mesh in 32 slices by softmax, attention between the slices, and back (Transolver)."""

    class Layer(nn.Module):
        def __init__(self, width, heads, slices):
            super().__init__()
            self.heads, deep = heads, width // heads
            self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
            self.share_of, self.value, self.out = nn.Linear(width, width), nn.Linear(width, width), nn.Linear(width, width)
            self.slice, self.all = nn.Linear(deep, slices), nn.Linear(deep, 3 * deep, bias=False)
            self.wide = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

        def forward(self, x):
            y = self.first(x)
            shares, value = (each(y).unflatten(-1, (self.heads, -1)).transpose(1, 2) for each in (self.share_of, self.value))
            shares = self.slice(shares).softmax(-1)
            parts = torch.einsum("bhpc,bhps->bhsc", value, shares) / (shares.sum(2) + 1e-5)[..., None]
            parts = functional.scaled_dot_product_attention(*self.all(parts).chunk(3, -1))
            x = x + self.out(torch.einsum("bhsc,bhps->bhpc", parts, shares).transpose(1, 2).flatten(2))
            return x + self.wide(self.second(x))

    def __init__(self, width=128, heads=8, slices=32, depth=3):
        super().__init__()
        self.first, self.last = nn.Sequential(nn.Linear(3, width), nn.GELU(), nn.Linear(width, width)), nn.Linear(width, 1)
        self.layers = nn.Sequential(*(MeshSlices.Layer(width, heads, slices) for _ in range(depth)))

    def forward(self, x):
        return self.last(self.layers(self.first(x)))


class Letters(nn.Module):
    """Words by their letters: the greatest features of windows of one to seven, then highways."""

    def __init__(self, width=16, windows=((1, 32), (2, 32), (3, 64), (4, 128), (5, 256), (6, 256), (7, 256)), depth=2):
        super().__init__()
        made = sum(filters for _, filters in windows)
        self.letters = nn.Embedding(262, width)
        self.convs = nn.ModuleList(nn.Conv1d(width, filters, size) for size, filters in windows)
        self.high = nn.ModuleList(nn.Linear(made, 2 * made) for _ in range(depth))
        self.last = nn.Linear(made, 512)

    def forward(self, ids):
        x = self.letters(ids.unflatten(1, (-1, 16)).flatten(0, 1)).transpose(1, 2)
        x = torch.cat([conv(x).amax(-1).relu() for conv in self.convs], 1)
        for high in self.high:
            y, kept = high(x).chunk(2, -1)
            kept = kept.sigmoid()
            x = kept * x + (1 - kept) * y.relu()
        return self.last(x)


class Bought(nn.Module):
    """Whether one buys a thing, by attention of the thing to a history (DIN), crossed features (DCN) and a perceptron."""

    def __init__(self, width=32, kept=100, fields=20, rank=64):
        super().__init__()
        self.kept, whole = kept, width * (fields + 1)
        self.things = nn.Embedding(1000, width)
        self.weigh = nn.Sequential(nn.Linear(4 * width, 64), nn.Sigmoid(), nn.Linear(64, 1))
        self.down, self.up = (nn.ModuleList(nn.Linear(a, b) for _ in range(3)) for a, b in ((whole, rank), (rank, whole)))
        self.deep = nn.Sequential(nn.Linear(whole, 256), nn.ReLU(), nn.Linear(256, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, ids):
        x = self.things(ids)
        history, thing, fields = x[:, :self.kept], x[:, self.kept], x[:, self.kept:]
        asked = thing[:, None].expand_as(history)
        weights = self.weigh(torch.cat([asked, history, asked - history, asked * history], -1))
        first = y = torch.cat([(weights * history).sum(1), fields.flatten(1)], 1)
        for down, up in zip(self.down, self.up):
            y = first * up(down(y)) + y
        return self.deep(y).sigmoid()


class LinearAttention(nn.Module):
    """Attention without a softmax, whose keys and values are summed once for all queries, and a first token of each image."""

    class Layer(nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            self.heads = heads
            self.first, self.second, self.all, self.out = nn.LayerNorm(width), nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.wide = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

        def forward(self, x):
            q, k, v = self.all(self.first(x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
            q, k = functional.elu(q) + 1, functional.elu(k) + 1
            mixed = q @ (k.transpose(-1, -2) @ v) / (q @ k.sum(-2)[..., None])
            x = x + self.out(mixed.transpose(1, 2).flatten(2))
            return x + self.wide(self.second(x))

    def __init__(self, width=384, heads=6, depth=3):
        super().__init__()
        self.patches, self.token = nn.Conv2d(3, width, 16, 16), nn.Parameter(torch.randn(1, 1, width))
        self.layers, self.head = nn.Sequential(*(LinearAttention.Layer(width, heads) for _ in range(depth))), nn.Linear(width, 100)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        return self.head(self.layers(torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1))[:, 0])


class Stacks(nn.Module):
    """Series by blocks of perceptrons that take away what they explain (N-BEATS), with a moving mean ahead."""

    class Block(nn.Module):
        def __init__(self, seen, told, width):
            super().__init__()
            self.parts = [seen, told]
            layers = [nn.Linear(seen, width), nn.ReLU()]
            for _ in range(3):
                layers += [nn.Linear(width, width), nn.ReLU()]
            self.layers = nn.Sequential(*layers, nn.Linear(width, 16), nn.Linear(16, seen + told, bias=False))

        def forward(self, x):
            return self.layers(x).split(self.parts, -1)

    def __init__(self, seen=336, told=96, width=256, depth=6):
        super().__init__()
        self.mean = nn.AvgPool1d(25, 1)
        self.blocks = nn.ModuleList(Stacks.Block(seen, told, width) for _ in range(depth))

    def forward(self, x):
        trend = self.mean(functional.pad(x, (12, 12), mode="replicate"))
        x, told = x - trend, trend[..., -1:]
        for block in self.blocks:
            seen, more = block(x)
            x, told = x - seen, told + more
        return told
