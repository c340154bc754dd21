"""Networks of images and points whose blocks no other file here has: attention by areas, pixels from weights of their contents, streams
of all scales, rows that are broadcast, places between pixels, samples where densities lie, kernels that points carry, gated edges,
windows that move by groups, coordinates as gates, frames that pass two memories, features of all cells around, products of orders."""
import torch
import torch.nn.functional as F
from torch import nn

from scene_networks import conv


class AreaAttention(nn.Module):
    """Attention within four areas of a map, with windows of values beside it, in stages that are joined (YOLOv12)."""

    def __init__(self, width=64, heads=2, areas=4, classes=80):
        super().__init__()
        self.stem = nn.Sequential(conv(3, 32, stride=2), conv(32, width, stride=2), conv(width, width, stride=2))
        self.first, self.last, self.heads, self.areas = nn.Conv2d(width, width, 1), nn.Conv2d(3 * width, width, 1), heads, areas
        self.blocks = nn.ModuleList(nn.ModuleList([
            nn.Conv2d(width, 3 * width, 1), nn.Conv2d(width, width, 7, 1, 3, groups=width), nn.Conv2d(width, width, 1),
            nn.Sequential(nn.Conv2d(width, 2 * width, 1), nn.SiLU(), nn.Conv2d(2 * width, width, 1))]) for _ in range(2))
        self.gamma, self.head = nn.Parameter(torch.rand(width, 1, 1)), nn.Conv2d(width, classes, 1)

    def attend(self, x, qkv, near, out):
        batch, width, high, wide = x.shape
        q, k, v = qkv(x).chunk(3, 1)
        parts = [t.flatten(2).transpose(1, 2).reshape(batch * self.areas, -1, self.heads, width // self.heads).transpose(1, 2)
                 for t in (q, k, v)]
        seen = F.scaled_dot_product_attention(*parts).transpose(1, 2).reshape(batch, high, wide, width).permute(0, 3, 1, 2)
        return out(seen + near(v))

    def forward(self, x):
        x = self.stem(x)
        found = [self.first(x)]
        for qkv, near, out, after in self.blocks:
            y = found[-1] + self.attend(found[-1], qkv, near, out)
            found.append(y + after(y))
        return self.head(x + self.gamma * self.last(torch.cat(found, 1)))


class OwnUpsampling(nn.Module):
    """A decoder whose larger maps are sums of windows with weights of the contents (CARAFE), or samples at moved places (DySample)."""

    def __init__(self, width=64, window=5, classes=19):
        super().__init__()
        self.stem = nn.Sequential(conv(3, 32, stride=2), conv(32, width, stride=2), conv(width, width, stride=2))
        self.squeeze, self.weigh = nn.Conv2d(width, 32, 1), nn.Conv2d(32, 4 * window ** 2, 3, 1, 1)
        self.move, self.between, self.head = nn.Conv2d(width, 8 * 4, 1), conv(width, width), nn.Conv2d(width, classes, 1)
        self.window, self.groups = window, 4

    def by_contents(self, x):
        batch, width, high, wide = x.shape
        weights = F.pixel_shuffle(self.weigh(self.squeeze(x)), 2).softmax(1)
        windows = F.unfold(x, self.window, padding=self.window // 2).unflatten(1, (width, -1)).unflatten(-1, (high, wide))
        windows = F.interpolate(windows.flatten(1, 2), scale_factor=2.0).unflatten(1, (width, -1))
        return (windows * weights[:, None]).sum(2)

    def by_places(self, x):
        batch, width, high, wide = x.shape
        moved = F.pixel_shuffle(self.move(x) * 0.25, 2).unflatten(1, (2, self.groups))
        down, over = ((torch.arange(2 * n, device=x.device, dtype=x.dtype) + 0.5) / (2 * n) * 2 - 1 for n in (high, wide))
        place = torch.stack(torch.meshgrid(over, down, indexing="xy"))[None, :, None]
        grid = (place + moved * 2 / torch.tensor([wide, high], dtype=x.dtype, device=x.device).view(1, 2, 1, 1, 1)).transpose(1, 2).flatten(0, 1)
        x = F.grid_sample(x.reshape(batch * self.groups, -1, high, wide), grid.permute(0, 2, 3, 1), align_corners=False, padding_mode="border")
        return x.reshape(batch, width, 2 * high, 2 * wide)

    def forward(self, x):
        return self.head(self.by_places(self.between(self.by_contents(self.stem(x)))))


class AllScales(nn.Module):
    """Streams of one to four light windows, weighed by a gate that they share, summed (OSNet)."""

    def __init__(self, widths=(64, 128, 192), classes=200):
        super().__init__()
        self.stem, self.blocks, given = nn.Sequential(conv(3, 32, stride=2), nn.MaxPool2d(3, 2, 1)), nn.ModuleList(), 32
        for width in widths:
            inner = width // 4
            self.blocks.append(nn.ModuleDict({
                "first": conv(given, inner, 1), "streams": nn.ModuleList(nn.Sequential(*[self.light(inner) for _ in range(n)]) for n in range(1, 5)),
                "gate": nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(inner, max(inner // 16, 2), 1), nn.ReLU(), nn.Conv2d(max(inner // 16, 2), inner, 1), nn.Sigmoid()),
                "last": nn.Sequential(nn.Conv2d(inner, width, 1, bias=False), nn.BatchNorm2d(width)), "way": nn.Conv2d(given, width, 1)}))
            given = width
        self.head = nn.Linear(given, classes)

    @staticmethod
    def light(width):
        return nn.Sequential(nn.Conv2d(width, width, 1, bias=False), nn.Conv2d(width, width, 3, 1, 1, groups=width, bias=False),
                             nn.BatchNorm2d(width), nn.ReLU())

    def forward(self, x):
        x = self.stem(x)
        for block in self.blocks:
            first = block["first"](x)
            joined = sum(block["gate"](stream) * stream for stream in (each(first) for each in block["streams"]))
            x = F.avg_pool2d(F.relu(block["last"](joined) + block["way"](x)), 2)
        return self.head(x.mean((2, 3)))


class BroadcastRows(nn.Module):
    """Windows along frequencies, then along time on their mean, which is added to all rows; norms of bands (BC-ResNet)."""

    def __init__(self, widths=(16, 24, 32, 40), bands=5, classes=12):
        super().__init__()
        self.stem, self.blocks, given = nn.Conv2d(1, 16, 5, (2, 1), 2), nn.ModuleList(), 16
        for i, width in enumerate(widths):
            self.blocks.append(nn.ModuleDict({
                "way": nn.Sequential(nn.Conv2d(given, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU()),
                "rows": nn.Conv2d(width, width, (3, 1), 1, (1, 0), groups=width, bias=False), "norms": nn.BatchNorm2d(width * bands),
                "time": nn.Sequential(nn.Conv2d(width, width, (1, 3), 1, (0, 2 ** i), (1, 2 ** i), groups=width, bias=False),
                                      nn.BatchNorm2d(width), nn.SiLU(), nn.Conv2d(width, width, 1))}))
            given = width
        self.head, self.bands = nn.Conv2d(given, classes, 1), bands

    def forward(self, x):
        x = self.stem(x)
        for block in self.blocks:
            way = block["way"](x)
            batch, width, high, wide = way.shape
            rows = block["norms"](block["rows"](way).reshape(batch, width * self.bands, high // self.bands, wide)).view(batch, width, high, wide)
            x = F.relu(way + rows + block["time"](rows.mean(2, keepdim=True)))
        return self.head(x.mean((2, 3), keepdim=True)).flatten(1)


class BetweenPixels(nn.Module):
    """Colours at any place from the features of the four cells around it, each by a small network, weighed by areas (LIIF)."""

    def __init__(self, width=32, hidden=128, out=64):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, width, 3, 1, 1), nn.ReLU(), nn.Conv2d(width, width, 3, 1, 1), nn.ReLU(), nn.Conv2d(width, width, 3, 1, 1))
        self.mlp = nn.Sequential(nn.Linear(9 * width + 4, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 3))
        at = torch.linspace(-0.97, 0.97, out)
        self.register_buffer("places", torch.stack(torch.meshgrid(at, at, indexing="ij"), -1).view(1, -1, 2))

    def forward(self, x):
        features, n = F.unfold(self.features(x), 3, padding=1).unflatten(-1, x.shape[-2:]), x.shape[-1]
        cells = (torch.arange(n, device=x.device, dtype=x.dtype) + 0.5) / n * 2 - 1
        own = torch.stack(torch.meshgrid(cells, cells, indexing="ij"))[None].expand(x.shape[0], -1, -1, -1)
        places, found, areas = self.places.expand(x.shape[0], -1, -1), [], []
        for down in (-1, 1):
            for over in (-1, 1):
                moved = (places + torch.tensor([down, over], dtype=x.dtype, device=x.device) / n).clamp(-1, 1)[:, None].flip(-1)
                seen = F.grid_sample(features, moved, mode="nearest", align_corners=False)[:, :, 0].transpose(1, 2)
                off = (places - F.grid_sample(own, moved, mode="nearest", align_corners=False)[:, :, 0].transpose(1, 2)) * n
                found.append(self.mlp(torch.cat([seen, off, torch.full_like(off, 2.0 / self.places.shape[1] ** 0.5)], -1)))
                areas.append(off.prod(-1, keepdim=True).abs() + 1e-4)
        return sum(value * area for value, area in zip(found, reversed(areas))) / sum(areas)


class WhereDense(nn.Module):
    """Rays that are sampled twice: at even steps, and where the densities of the first samples lie (a hierarchical NeRF)."""

    def __init__(self, width=64, coarse=32, fine=32, waves=6):
        super().__init__()
        self.register_buffer("waves", 2.0 ** torch.arange(waves) * 0.5)
        self.register_buffer("steps", torch.linspace(0.1, 1, coarse))
        self.register_buffer("even", torch.linspace(0.02, 0.98, fine))
        self.coarse, self.fine = (nn.Sequential(nn.Linear(6 * waves, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 4)) for _ in range(2))

    def render(self, network, rays, depth):
        at = (rays[..., :3, None] + rays[..., 3:, None] * depth[..., None, :]).transpose(-1, -2)
        waves = at[..., None] * self.waves
        seen = network(torch.cat([waves.sin(), waves.cos()], -1).flatten(-2))
        gap = torch.cat([depth[..., 1:] - depth[..., :-1], torch.full_like(depth[..., :1], 0.05)], -1)
        thick = F.softplus(seen[..., 3]) * gap
        weight = (1 - torch.exp(-thick)) * torch.exp(thick - thick.cumsum(-1))
        return (weight[..., None] * seen[..., :3].sigmoid()).sum(-2), weight

    def forward(self, rays):
        depth = self.steps.expand(*rays.shape[:2], -1)
        first, weight = self.render(self.coarse, rays, depth)
        share = (weight + 1e-3) / (weight + 1e-3).sum(-1, keepdim=True)
        below = share.cumsum(-1)
        place = (below[..., None, :] < self.even[:, None]).sum(-1).clamp(max=depth.shape[-1] - 2)
        low, high = below.gather(-1, place), below.gather(-1, place + 1)
        start, end = depth.gather(-1, place), depth.gather(-1, place + 1)
        finer = start + ((self.even - low) / (high - low).clamp(min=1e-4)).clamp(0, 1) * (end - start)
        second, _ = self.render(self.fine, rays, torch.cat([depth, finer], -1).sort(-1).values)
        return torch.cat([first, second], -1)


class CarriedKernels(nn.Module):
    """Points whose nearest meet the weights of kernel points by distance (KPConv)."""

    def __init__(self, width=64, near=16, kernels=15, layers=2, classes=20):
        super().__init__()
        self.first, self.near, self.head = nn.Linear(3, width), near, nn.Linear(width, classes)
        self.register_buffer("kernels", torch.randn(kernels, 3) * 0.1)
        self.weights = nn.ParameterList(nn.Parameter(torch.randn(kernels, width, width) * 0.02) for _ in range(layers))

    def forward(self, x):
        distance = (x[:, :, None] - x[:, None]).square().sum(-1)
        nearest = distance.topk(self.near, dim=-1, largest=False).indices.flatten(1)[..., None]
        around = x.gather(1, nearest.expand(-1, -1, 3)).unflatten(1, (-1, self.near)) - x[:, :, None]
        influence = (1 - (around[..., None, :] - self.kernels).norm(dim=-1) / 0.3).clamp(min=0)
        features = F.leaky_relu(self.first(x), 0.1)
        for weight in self.weights:
            seen = features.gather(1, nearest.expand(-1, -1, features.shape[-1])).unflatten(1, (-1, self.near))
            weighed = influence.transpose(-1, -2) @ seen
            features = features + F.leaky_relu(torch.einsum("bnkc,kcd->bnd", weighed, weight), 0.1)
        return self.head(features)


class GatedEdges(nn.Module):
    """Nodes and edges in turns: gates of edges weigh what neighbours send, and the largest message is kept too (GatedGCN)."""

    def __init__(self, nodes=256, edges=2048, width=64, layers=3):
        super().__init__()
        self.register_buffer("ends", torch.randint(0, nodes, (2, edges)))
        self.first, self.edge = nn.Linear(16, width), nn.Parameter(torch.randn(edges, width) * 0.2)
        self.layers = nn.ModuleList(nn.ModuleList([nn.Linear(width, 4 * width), nn.Linear(width, width), nn.LayerNorm(width), nn.LayerNorm(width)])
                                    for _ in range(layers))
        self.head = nn.Linear(width, 8)

    def forward(self, x):
        start, end = self.ends
        x, e = self.first(x), self.edge.expand(x.shape[0], -1, -1)
        for parts, own, norm, edge_norm in self.layers:
            a, b, value, d = parts(x).chunk(4, -1)
            change = edge_norm(a[:, start] + b[:, end] + own(e))
            gate, sent = change.sigmoid(), value[:, start]
            index = end[None, :, None].expand_as(sent)
            total = torch.zeros_like(x).scatter_add(1, index, gate * sent) / (torch.zeros_like(x).scatter_add(1, index, gate) + 1e-3)
            most = torch.zeros_like(x).scatter_reduce(1, index, sent, "amax", include_self=True)
            x, e = x + F.relu(norm(d + total + most)), e + F.relu(change)
        return self.head(x.mean(1))


class MovedGroups(nn.Module):
    """Windows of nine samples at moved places, a set of moves and weights for each group of channels (InternImage's DCN)."""

    def __init__(self, width=64, groups=4, layers=2, classes=100):
        super().__init__()
        self.stem, self.groups = nn.Sequential(conv(3, 32, stride=2), conv(32, width, stride=2)), groups
        self.layers = nn.ModuleList(nn.ModuleList([
            nn.LayerNorm(width), nn.Linear(width, width), nn.Conv2d(width, width, 3, 1, 1, groups=width), nn.Linear(width, groups * 27),
            nn.Linear(width, width), nn.LayerNorm(width), nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))])
            for _ in range(layers))
        near = torch.stack(torch.meshgrid(torch.arange(-1.0, 2), torch.arange(-1.0, 2), indexing="xy"), -1).view(9, 2)
        self.register_buffer("near", near)
        self.head = nn.Linear(width, classes)

    def sample(self, value, moves):
        batch, high, wide, width = value.shape
        own = torch.stack(torch.meshgrid(torch.arange(wide, device=value.device), torch.arange(high, device=value.device), indexing="xy"), -1)
        moves, weights = moves.unflatten(-1, (self.groups, 27)).split([18, 9], -1)
        places = own.to(value.dtype)[None, :, :, None, None] + self.near + moves.unflatten(-1, (9, 2))
        grid = (places + 0.5) * 2 / torch.tensor([wide, high], dtype=value.dtype, device=value.device) - 1
        grid = grid.permute(0, 3, 1, 2, 4, 5).reshape(batch * self.groups, high * wide, 9, 2)
        maps = value.permute(0, 3, 1, 2).reshape(batch * self.groups, -1, high, wide)
        seen = F.grid_sample(maps, grid, align_corners=False)
        weights = weights.softmax(-1).permute(0, 3, 1, 2, 4).reshape(batch * self.groups, 1, high * wide, 9)
        return (seen * weights).sum(-1).view(batch, width, high, wide).permute(0, 2, 3, 1)

    def forward(self, x):
        x = self.stem(x).permute(0, 2, 3, 1)
        for norm, value, near, moves, out, second, after in self.layers:
            y = norm(x)
            local = F.gelu(near(y.permute(0, 3, 1, 2)).permute(0, 2, 3, 1))
            x = x + out(self.sample(value(y), moves(local)))
            x = x + after(second(x))
        return self.head(x.mean((1, 2)))


class CoordinateGates(nn.Module):
    """Gates of columns and rows from their means, and gates of places from means and maxima over channels (CA, CBAM)."""

    def __init__(self, widths=(32, 64, 128), classes=100):
        super().__init__()
        self.stem, self.blocks, given = conv(3, widths[0], stride=2), nn.ModuleList(), widths[0]
        for width in widths:
            self.blocks.append(nn.ModuleList([
                conv(given, width, stride=2), nn.Sequential(nn.Conv2d(width, 8, 1), nn.BatchNorm2d(8), nn.Hardswish()), nn.Conv2d(8, width, 1),
                nn.Conv2d(8, width, 1), nn.Conv2d(2, 1, 7, 1, 3), conv(width, width)]))
            given = width
        self.head = nn.Linear(given, classes)

    def forward(self, x):
        x = self.stem(x)
        for down, squeeze, rows, columns, places, after in self.blocks:
            x = down(x)
            high = x.shape[2]
            both = squeeze(torch.cat([x.mean(3, keepdim=True), x.mean(2, keepdim=True).transpose(2, 3)], 2))
            x = x * rows(both[:, :, :high]).sigmoid() * columns(both[:, :, high:].transpose(2, 3)).sigmoid()
            x = x * places(torch.cat([x.mean(1, keepdim=True), x.amax(1, keepdim=True)], 1)).sigmoid()
            x = x + after(x)
        return self.head(x.mean((2, 3)))


class TwoMemories(nn.Module):
    """Frames through two recurrent layers; one memory goes along time, the other up the layers as well (PredRNN)."""

    def __init__(self, width=32, given=16):
        super().__init__()
        self.given, sizes = nn.Conv2d(3, given, 4, 4), (given, width)
        self.cells = nn.ModuleList(nn.ModuleList([
            nn.Conv2d(size, 7 * width, 3, 1, 1), nn.Conv2d(width, 4 * width, 3, 1, 1), nn.Conv2d(width, 3 * width, 3, 1, 1),
            nn.Conv2d(2 * width, width, 3, 1, 1), nn.Conv2d(2 * width, width, 1)]) for size in sizes)
        self.head, self.width = nn.ConvTranspose2d(width, 3, 4, 4), width

    def step(self, cell, x, h, c, m):
        of_x, of_h, of_m, out, last = cell
        xi, xf, xg, ti, tf, tg, xo = of_x(x).chunk(7, 1)
        hi, hf, hg, ho = of_h(h).chunk(4, 1)
        mi, mf, mg = of_m(m).chunk(3, 1)
        c = (xf + hf + 1).sigmoid() * c + (xi + hi).sigmoid() * (xg + hg).tanh()
        m = (tf + mf + 1).sigmoid() * m + (ti + mi).sigmoid() * (tg + mg).tanh()
        both = torch.cat([c, m], 1)
        return (xo + ho + out(both)).sigmoid() * last(both).tanh(), c, m

    def forward(self, x):
        batch, frames, _, high, wide = x.shape
        zero = x.new_zeros(batch, self.width, high // 4, wide // 4)
        states, m, made = [(zero, zero) for _ in self.cells], zero, []
        for t in range(frames):
            y = self.given(x[:, t])
            for i, cell in enumerate(self.cells):
                y, c, m = self.step(cell, y, *states[i], m)
                states[i] = (y, c)
            made.append(self.head(y))
        return torch.stack(made, 1)


class OrderProducts(nn.Module):
    """Atoms whose features of orders 0 and 1 meet directions of neighbours by products of orders, weighed by distance (NequIP)."""

    def __init__(self, kinds=8, width=32, waves=8, layers=2):
        super().__init__()
        self.embed = nn.Linear(kinds, width)
        self.radial = nn.ModuleList(nn.Sequential(nn.Linear(waves, 32), nn.SiLU(), nn.Linear(32, 5 * width)) for _ in range(layers))
        self.scalars = nn.ModuleList(nn.Linear(2 * width, 2 * width) for _ in range(layers))
        self.vectors = nn.ModuleList(nn.Linear(3 * width, width, bias=False) for _ in range(layers))
        self.register_buffer("orders", torch.arange(1, waves + 1) * torch.pi)
        self.head = nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 1))

    def forward(self, x):
        place, s = x[..., :3], self.embed(x[..., 3:])
        v = s.new_zeros(*s.shape[:2], 3, s.shape[-1])
        apart = place[:, None] - place[:, :, None]
        size = apart.square().sum(-1, keepdim=True).add(1e-3).sqrt()
        way = (apart / size)[..., None]
        near = (size * self.orders / 3).sin() / size * torch.where(size < 3, 0.5 * (size * torch.pi / 3).cos() + 0.5, torch.zeros_like(size))
        for radial, scalars, vectors in zip(self.radial, self.scalars, self.vectors):
            ss, sv, vs, vd, vx = radial(near).chunk(5, -1)
            others, turned = s[:, None], v[:, None]
            to_s = torch.cat([(ss * others).sum(2), (vd * (turned * way).sum(3)).sum(2)], -1)
            crossed = torch.linalg.cross(turned.expand(-1, v.shape[1], -1, -1, -1), way.expand(-1, -1, -1, -1, v.shape[-1]), dim=3)
            to_v = torch.cat([((sv * others)[..., None, :] * way).sum(2), (vs[..., None, :] * turned).sum(2), (vx[..., None, :] * crossed).sum(2)], -1)
            change, gate = scalars(to_s / 8).chunk(2, -1)
            s, v = s + F.silu(change), v + vectors(to_v / 8) * gate.sigmoid()[..., None, :]
        return self.head(s).sum(1)
