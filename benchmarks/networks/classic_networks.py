"""Networks of kinds that papers and products have had for years, of images, scenes and points: frames of residues, products of many bodies,
regions that look each other up, graphs of pixels, scans of coils, filters of spectra, volumes of stereo, matches in two steps, worlds that
are dreamt, shares of two axes."""
import torch
import torch.nn.functional as F
from torch import nn


def conv_norm(given, made, size=3, stride=1, groups=1):
    return nn.Sequential(nn.Conv2d(given, made, size, stride, size // 2, groups=groups, bias=False), nn.BatchNorm2d(made), nn.ReLU())


def volume_norm(given, made, stride=1):
    return nn.Sequential(nn.Conv3d(given, made, 3, stride, 1, bias=False), nn.BatchNorm3d(made), nn.ReLU())


def perceptron(width, times=4):
    return nn.Sequential(nn.LayerNorm(width), nn.Linear(width, times * width), nn.GELU(), nn.Linear(times * width, width))


def heads_of(x, heads):
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


class ResidueFrames(nn.Module):
    """Residues attend by scores, by pairs and by distances of points in their frames, which then turn and move (invariant point attention)."""

    def __init__(self, width=128, pair=32, heads=8, each=16, points=4, depth=3):
        super().__init__()
        self.given, self.left, self.right = nn.Linear(32, width), nn.Linear(32, pair), nn.Linear(32, pair)
        make = lambda a, b: nn.ModuleList(nn.Linear(a, b) for _ in range(depth))
        self.parts, self.places, self.bias = make(width, 3 * heads * each), make(width, heads * 3 * points * 3), make(pair, heads)
        self.out, self.after, self.norms, self.move = make(heads * (each + 4 * points + pair), width), nn.ModuleList(perceptron(width, 2) for _ in range(depth)), nn.ModuleList(nn.LayerNorm(width) for _ in range(depth)), make(width, 6)
        self.weights, self.heads, self.points = nn.Parameter(torch.ones(depth, heads)), heads, points

    @staticmethod
    def turns(x):
        """Quaternions 1, b, c, d as matrices."""
        q = F.normalize(F.pad(x, (1, 0), value=1.0), dim=-1)
        a, b, c, d = q.unbind(-1)
        rows = [a * a + b * b - c * c - d * d, 2 * (b * c - a * d), 2 * (b * d + a * c), 2 * (b * c + a * d), a * a - b * b + c * c - d * d,
                2 * (c * d - a * b), 2 * (b * d - a * c), 2 * (c * d + a * b), a * a - b * b - c * c + d * d]
        return torch.stack(rows, -1).unflatten(-1, (3, 3))

    def forward(self, x):
        pairs = F.relu(self.left(x)[:, :, None] + self.right(x)[:, None])
        x = self.given(x)
        turn, at = torch.eye(3, device=x.device, dtype=x.dtype).expand(*x.shape[:2], 3, 3), torch.zeros_like(x[..., :3])
        for i, norm in enumerate(self.norms):
            q, k, v = (heads_of(each, self.heads) for each in self.parts[i](x).chunk(3, -1))
            places = self.places[i](x).unflatten(-1, (-1, 3)) @ turn.transpose(-1, -2) + at[:, :, None]
            qp, kp, vp = places.unflatten(2, (self.heads, 3, self.points)).unbind(3)
            far = (qp[:, :, None] - kp[:, None]).pow(2).sum((-1, -2))
            scores = q @ k.transpose(-1, -2) * (3 * q.shape[-1]) ** -0.5 + self.bias[i](pairs).permute(0, 3, 1, 2) * 3 ** -0.5
            shares = (scores - 0.1 * F.softplus(self.weights[i])[:, None, None] * far.permute(0, 3, 1, 2)).softmax(-1)
            met = torch.einsum("bhij,bjhpc->bihpc", shares, vp) - at[:, :, None, None]
            met = torch.einsum("bixc,bihpx->bihpc", turn, met)
            size = (met.pow(2).sum(-1) + 1e-6).sqrt()
            told = torch.einsum("bhij,bijc->bihc", shares, pairs)
            all_of = [(shares @ v).transpose(1, 2).flatten(2), met.flatten(2), size.flatten(2), told.flatten(2)]
            x = norm(x + self.out[i](torch.cat(all_of, -1)))
            x = x + self.after[i](x)
            moved = self.move[i](x)
            at = at + (turn @ moved[..., 3:, None])[..., 0]
            turn = turn @ self.turns(moved[..., :3])
        return torch.cat([at, turn.flatten(2)], -1)


class ManyBodies(nn.Module):
    """Atoms whose sums over neighbours, in directions of orders 0 to 2, are multiplied with themselves twice (MACE)."""

    def __init__(self, width=64, depth=2, radial=8):
        super().__init__()
        self.kinds, self.radial = nn.Linear(5, width), radial
        self.up, self.weigh = nn.ModuleList(nn.Linear(width, width) for _ in range(depth)), nn.ModuleList(nn.Sequential(nn.Linear(radial, 64), nn.SiLU(), nn.Linear(64, 3 * width)) for _ in range(depth))
        self.two, self.three = nn.Parameter(torch.randn(depth, 9, 9, 4, width) * 0.1), nn.Parameter(torch.randn(depth, 9, 4, 4, width) * 0.1)
        self.one, self.mix, self.tell = nn.Parameter(torch.randn(depth, 9, 4, width) * 0.3), nn.ModuleList(nn.Linear(4 * width, width) for _ in range(depth)), nn.ModuleList(nn.Linear(width, 1) for _ in range(depth))

    def forward(self, x):
        places, kinds = x[..., :3], x[..., 3:]
        lines = places[:, :, None] - places[:, None] + 1e-3
        far = lines.pow(2).sum(-1, keepdim=True).sqrt()
        a, b, c = (lines / far).unbind(-1)
        harmonics = torch.stack([torch.ones_like(a), a, b, c, a * b, b * c, a * c, 3 * c * c - 1, a * a - b * b], -1)
        near = (far < 3) * (1 - far / 3).clamp(min=0).pow(2)
        bells = (torch.arange(1, self.radial + 1, device=x.device) * 3.14159265 * far / 3).sin() / far * near
        order = torch.tensor([0, 1, 1, 1, 2, 2, 2, 2, 2], device=x.device)
        atoms, energy = self.kinds(kinds), 0
        for i, weigh in enumerate(self.weigh):
            weights = weigh(bells).unflatten(-1, (3, -1))[..., order, :]
            met = torch.einsum("bijm,bijmc,bjc->bimc", harmonics, weights, self.up[i](atoms)) / 8
            second = torch.einsum("bimc,mnkc->binkc", met, self.two[i])
            second = (second * met[:, :, :, None]).sum(2)
            third = torch.einsum("bimc,mklc->biklc", met, self.three[i])
            third = (third * second[:, :, :, None]).sum(2)
            first = torch.einsum("bimc,mkc->bikc", met, self.one[i])
            atoms = atoms + self.mix[i]((first + second + third).flatten(2))
            energy = energy + self.tell[i](atoms).sum(1)
        return energy


class RegionRoutes(nn.Module):
    """Each of 49 regions looks up the four that are most like it; its pixels see the pixels of these (BiFormer)."""

    class Layer(nn.Module):
        def __init__(self, width, heads, regions=7, most=4):
            super().__init__()
            self.norm, self.parts, self.out, self.near = nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width), nn.Conv2d(width, width, 5, 1, 2, groups=width)
            self.places, self.after, self.heads, self.regions, self.most = nn.Conv2d(width, width, 3, 1, 1, groups=width), perceptron(width, 3), heads, regions, most

        def forward(self, x):
            x = x + self.places(x.permute(0, 3, 1, 2)).permute(0, 2, 3, 1)
            batch, height, columns, width = x.shape
            n, side = self.regions, height // self.regions
            q, k, v = self.parts(self.norm(x)).chunk(3, -1)
            near = self.near(v.permute(0, 3, 1, 2)).permute(0, 2, 3, 1)
            q, k, v = (each.view(batch, n, side, n, side, width).transpose(2, 3).reshape(batch, n * n, side * side, width) for each in (q, k, v))
            best = (q.mean(2) @ k.mean(2).transpose(-1, -2)).topk(self.most, -1).indices
            at = best[..., None, None].expand(-1, -1, -1, side * side, width)
            k, v = (torch.gather(each[:, None].expand(-1, n * n, -1, -1, -1), 2, at).flatten(2, 3) for each in (k, v))
            q, k, v = (heads_of(each.flatten(0, 1), self.heads) for each in (q, k, v))
            seen = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
            seen = seen.view(batch, n, n, side, side, width).transpose(2, 3).reshape(x.shape)
            x = x + self.out(seen + near)
            return x + self.after(x)

    def __init__(self, width=64):
        super().__init__()
        self.stem, self.down = nn.Sequential(conv_norm(3, width // 2, 3, 2), conv_norm(width // 2, width, 3, 2)), conv_norm(width, 2 * width, 3, 2)
        self.first, self.second, self.head = nn.Sequential(*(RegionRoutes.Layer(width, 2) for _ in range(2))), nn.Sequential(*(RegionRoutes.Layer(2 * width, 4) for _ in range(2))), nn.Linear(2 * width, 100)

    def forward(self, x):
        x = self.first(self.stem(x).permute(0, 2, 3, 1))
        x = self.second(self.down(x.permute(0, 3, 1, 2)).permute(0, 2, 3, 1))
        return self.head(x.mean((1, 2)))


class PixelGraph(nn.Module):
    """196 patches, each with the nine whose features are nearest, by the greatest difference to these (Vision GNN)."""

    class Layer(nn.Module):
        def __init__(self, width, nearest=9):
            super().__init__()
            self.before, self.mix, self.out, self.nearest = nn.Sequential(nn.Conv2d(width, width, 1), nn.BatchNorm2d(width)), nn.Sequential(nn.Conv2d(2 * width, 2 * width, 1, groups=4), nn.BatchNorm2d(2 * width), nn.GELU()), nn.Sequential(nn.Conv2d(2 * width, width, 1), nn.BatchNorm2d(width)), nearest
            self.after = nn.Sequential(nn.Conv2d(width, 4 * width, 1), nn.BatchNorm2d(4 * width), nn.GELU(), nn.Conv2d(4 * width, width, 1), nn.BatchNorm2d(width))

        def forward(self, x):
            y = self.before(x).flatten(2, 3)
            unit = F.normalize(y, dim=1).transpose(1, 2)
            far = (unit * unit).sum(-1, keepdim=True) - 2 * unit @ unit.transpose(1, 2) + (unit * unit).sum(-1)[:, None]
            at = far.topk(self.nearest, -1, largest=False).indices
            met = y[:, :, None].expand(-1, -1, y.shape[2], -1).gather(3, at[:, None].expand(-1, y.shape[1], -1, -1))
            most = (met - y[..., None]).amax(3)
            both = torch.stack([y, most], 2).flatten(1, 2)[..., None]
            x = x + self.out(self.mix(both))
            return x + self.after(x)

    def __init__(self, width=192, depth=4):
        super().__init__()
        self.stem = nn.Sequential(conv_norm(3, width // 4, 3, 2), conv_norm(width // 4, width // 2, 3, 2), conv_norm(width // 2, width, 3, 2), nn.Conv2d(width, width, 3, 2, 1), nn.BatchNorm2d(width))
        self.places, self.layers, self.head = nn.Parameter(torch.randn(1, width, 14, 14) * 0.02), nn.Sequential(*(PixelGraph.Layer(width) for _ in range(depth))), nn.Linear(width, 100)

    def forward(self, x):
        x = (self.stem(x) + self.places).flatten(2)[..., None]
        return self.head(self.layers(x).mean((2, 3)))


class CoilScans(nn.Module):
    """An image of what four coils heard of its frequencies: a small U-Net and the frequencies that are known, three times (a variational network)."""

    class Unet(nn.Module):
        def __init__(self, width=32):
            super().__init__()
            block = lambda a, b: nn.Sequential(nn.Conv2d(a, b, 3, 1, 1, bias=False), nn.InstanceNorm2d(b), nn.LeakyReLU(0.2), nn.Conv2d(b, b, 3, 1, 1, bias=False), nn.InstanceNorm2d(b), nn.LeakyReLU(0.2))
            self.a, self.b, self.c, self.d = block(2, width), block(width, 2 * width), block(2 * width, 2 * width), block(3 * width, width)
            self.up, self.last = nn.ConvTranspose2d(2 * width, 2 * width, 2, 2), nn.Conv2d(width, 2, 1)

        def forward(self, x):
            mean, size = x.mean((2, 3), keepdim=True), x.std((2, 3), keepdim=True) + 1e-3
            a = self.a((x - mean) / size)
            b = self.c(self.b(F.avg_pool2d(a, 2)))
            return self.last(self.d(torch.cat([a, self.up(b)], 1))) * size + mean

    def __init__(self, size=64, rounds=3):
        super().__init__()
        at = torch.arange(size) - size // 2
        angle = 6.283185307 * at[:, None] * at / size
        self.register_buffer("cos", angle.cos() / size ** 0.5)
        self.register_buffer("sin", angle.sin() / size ** 0.5)
        self.nets, self.weights = nn.ModuleList(CoilScans.Unet() for _ in range(rounds)), nn.Parameter(torch.ones(rounds))

    def turn(self, x, sign):
        """The Fourier transform of [..., 2, rows, columns] along both."""
        cos, sin = self.cos.to(x.dtype), self.sin.to(x.dtype) * sign
        for _ in range(2):
            a, b = x.unbind(-3)
            x = torch.stack([a @ cos + b @ sin, b @ cos - a @ sin], -3).transpose(-1, -2)
        return x

    @staticmethod
    def times(a, b, conjugate=1):
        (ar, ai), (br, bi) = a.unbind(-3), b.unbind(-3)
        return torch.stack([ar * br - conjugate * ai * bi, ai * br + conjugate * ar * bi], -3)

    def forward(self, x):
        heard, coils, mask = x[:, :8].unflatten(1, (4, 2)), x[:, 8:16].unflatten(1, (4, 2)), (x[:, 16:, :1] > 0).to(x.dtype)[:, None]
        coils = coils / (coils.pow(2).sum((1, 2), keepdim=True) + 1e-3).sqrt()
        heard = heard * mask
        now = heard
        for net, weight in zip(self.nets, self.weights):
            image = self.times(self.turn(now, -1), coils, -1).sum(1)
            told = self.turn(self.times(coils, net(image)[:, None]), 1)
            now = now - (now - heard) * mask * weight - told
        return self.turn(now, -1).pow(2).sum((1, 2)).sqrt()


class DeepFilters(nn.Module):
    """Noise is taken from spectra by gains of bands, and low frequencies by complex filters over five frames (DeepFilterNet)."""

    def __init__(self, bins=256, bands=32, low=96, width=256, order=5):
        super().__init__()
        self.register_buffer("to_bands", torch.rand(bins, bands) / bins)
        self.register_buffer("to_bins", torch.rand(bands, bins) / bands)
        pair = lambda a, b, stride: nn.Sequential(nn.Conv2d(a, b, (1, 3), (1, stride), (0, 1), groups=min(a, b) if a > 2 else 1, bias=False), nn.Conv2d(b, b, 1, bias=False), nn.BatchNorm2d(b), nn.ReLU())
        self.first, self.second, self.third = nn.Sequential(nn.Conv2d(1, 32, 3, 1, 1), nn.ReLU()), pair(32, 32, 2), pair(32, 32, 2)
        self.fine, self.fine_second = nn.Sequential(nn.Conv2d(2, 32, 3, 1, 1), nn.ReLU()), pair(32, 32, 2)
        self.join, self.encode = nn.Linear(low // 2 * 32, 32 * bands // 4), nn.GRU(32 * bands // 4, width, batch_first=True)
        self.spread, self.up, self.upper, self.gain = nn.Linear(width, 32 * bands // 4), nn.ConvTranspose2d(32, 32, (1, 4), (1, 2), (0, 1), groups=32), nn.ConvTranspose2d(32, 32, (1, 4), (1, 2), (0, 1), groups=32), nn.Conv2d(32, 1, 3, 1, 1)
        self.filters, self.tell, self.low, self.order = nn.GRU(width, width, batch_first=True), nn.Linear(width, low * order * 2), low, order

    def forward(self, x):
        power = x.pow(2).sum(1) @ self.to_bands.to(x.dtype)
        power = (power + 1e-6).log()[:, None]
        spectrum = x[..., :self.low] / (x[..., :self.low].pow(2).mean((1, 3), keepdim=True) + 1e-3).sqrt()
        a = self.first(power)
        b = self.second(a)
        c = self.third(b)
        fine = self.fine_second(self.fine(spectrum)).permute(0, 2, 3, 1).flatten(2)
        state = self.encode(c.permute(0, 2, 1, 3).flatten(2) + F.relu(self.join(fine)))[0]
        d = self.spread(state).unflatten(2, (32, -1)).transpose(1, 2)
        gains = torch.sigmoid(self.gain(a + F.relu(self.upper(b + F.relu(self.up(d + c))))))
        given = x * (gains @ self.to_bins.to(x.dtype))
        filters = self.tell(self.filters(state)[0]).tanh().unflatten(2, (self.order, self.low, 2))
        frames = F.pad(given[..., :self.low], (0, 0, self.order - 2, 1)).unfold(2, self.order, 1)
        real, other = filters.unbind(-1)
        real, other = real.transpose(2, 3), other.transpose(2, 3)
        made = torch.stack([(frames[:, 0] * real - frames[:, 1] * other).sum(-1), (frames[:, 0] * other + frames[:, 1] * real).sum(-1)], 1)
        return torch.cat([made, given[..., self.low:]], -1)


class StereoGroups(nn.Module):
    """Correlations of groups of channels at 24 shifts of two images, hourglasses of volumes, and the mean shift (GwcNet)."""

    def __init__(self, width=64, groups=8, shifts=24):
        super().__init__()
        self.trunk = nn.Sequential(conv_norm(3, 32, 3, 2), conv_norm(32, 32), conv_norm(32, width, 3, 2), conv_norm(width, width))
        self.few, self.groups, self.shifts = nn.Conv2d(width, 8, 1), groups, shifts
        self.first, self.down, self.mid, self.up = nn.Sequential(volume_norm(groups + 16, 32), volume_norm(32, 32)), volume_norm(32, 64, 2), volume_norm(64, 64), nn.ConvTranspose3d(64, 32, 3, 2, 1, 1)
        self.last = nn.Sequential(volume_norm(32, 32), nn.Conv3d(32, 1, 3, 1, 1, bias=False))

    def forward(self, x):
        left, right = self.trunk(torch.cat([x[:, :3], x[:, 3:]])).chunk(2)
        small, other, parts = self.few(left), self.few(right), []
        for i in range(self.shifts):
            cut = lambda each, far: F.pad(each[..., i:] if not far else each[..., :each.shape[-1] - i], (i, 0))
            alike = (cut(left, False) * cut(right, True)).unflatten(1, (self.groups, -1)).mean(2)
            parts.append(torch.cat([alike, cut(small, False), cut(other, True)], 1))
        volume = self.first(torch.stack(parts, 2))
        volume = F.relu(self.up(self.mid(self.down(volume))) + volume)
        scores = F.interpolate(self.last(volume), scale_factor=(4, 4, 4), mode="trilinear")[:, 0]
        return (scores.softmax(1) * torch.arange(scores.shape[1], device=x.device, dtype=x.dtype)[:, None, None]).sum(1)


class TwoStepMatches(nn.Module):
    """Matches of two images' pixels by linear attention and softmax both ways; windows of 5x5 around the best 64 say where exactly (LoFTR)."""

    class Layer(nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            self.q, self.k, self.v, self.out = (nn.Linear(width, width, bias=False) for _ in range(4))
            self.heads = heads
            self.norm, self.norm2, self.after = nn.LayerNorm(width), nn.LayerNorm(width), nn.Sequential(nn.Linear(2 * width, 2 * width, bias=False), nn.ReLU(), nn.Linear(2 * width, width, bias=False))

        def forward(self, x, y):
            q, k, v = (each.unflatten(-1, (self.heads, -1)) for each in (self.q(x), self.k(y), self.v(y)))
            q, k, rows = F.elu(q) + 1, F.elu(k) + 1, v.shape[1]
            state = torch.einsum("nshd,nshv->nhdv", k, v / rows)
            size = 1 / (torch.einsum("nlhd,nhd->nlh", q, k.sum(1)) + 1e-3)
            seen = torch.einsum("nlhd,nhdv,nlh->nlhv", q, state, size) * rows
            seen = self.norm(self.out(seen.flatten(2)))
            return x + self.norm2(self.after(torch.cat([x, seen], -1)))

    def __init__(self, width=128, fine=64, depth=2, most=64):
        super().__init__()
        self.first, self.second, self.third = conv_norm(1, 32, 7, 2), conv_norm(32, fine, 3, 1), nn.Sequential(conv_norm(fine, width, 3, 2), conv_norm(width, width, 3, 2))
        self.own, self.other = nn.ModuleList(TwoStepMatches.Layer(width, 8) for _ in range(depth)), nn.ModuleList(TwoStepMatches.Layer(width, 8) for _ in range(depth))
        self.near, self.join, self.most = TwoStepMatches.Layer(fine, 4), nn.Linear(width, fine), most

    def forward(self, x):
        fine = self.second(self.first(torch.cat([x[:, :1], x[:, 1:]])))
        coarse = self.third(fine)
        side = coarse.shape[-1]
        a, b = coarse.flatten(2).transpose(1, 2).chunk(2)
        for own, other in zip(self.own, self.other):
            a, b = own(a, a), own(b, b)
            a, b = other(a, b), other(b, a)
        scores = a @ b.transpose(1, 2) / a.shape[-1] / 0.1
        sure = scores.softmax(1) * scores.softmax(2)
        both = (sure == sure.amax(1, keepdim=True)) & (sure == sure.amax(2, keepdim=True))
        best, j = torch.where(both, sure, 0.0).max(2)
        best, i = best.topk(self.most, 1)
        j = j.gather(1, i)
        windows = F.unfold(fine, 5, stride=4, padding=2).unflatten(1, (-1, 25)).permute(0, 3, 2, 1)
        one, two = windows.chunk(2)
        pick = lambda each, at: each.gather(1, at[..., None, None].expand(-1, -1, *each.shape[2:])).flatten(0, 1)
        words = lambda each, at: each.gather(1, at[..., None].expand(-1, -1, each.shape[-1])).flatten(0, 1)
        one, two = pick(one, i) + self.join(words(a, i))[:, None], pick(two, j) + self.join(words(b, j))[:, None]
        one, two = self.near(one, one), self.near(two, two)
        one, two = self.near(one, two), self.near(two, one)
        heat = ((one[:, 12:13] * two).sum(-1) * one.shape[-1] ** -0.5).softmax(-1)
        at = torch.linspace(-1, 1, 5, device=x.device, dtype=x.dtype)
        grid = torch.stack([at.repeat(5), at.repeat_interleave(5)], -1)
        moved = heat @ grid
        wide = (heat[..., None] * grid * grid).sum(1) - moved * moved
        return torch.cat([(moved * 2).unflatten(0, (-1, self.most)) + torch.stack([j % side, j // side], -1), wide.clamp(min=1e-6).sqrt().unflatten(0, (-1, self.most)), best[..., None]], -1)


class DreamtWorlds(nn.Module):
    """A state of 32 choices of 32 and a recurrent part, step by step along frames, and what images it expects (DreamerV3)."""

    def __init__(self, deep=256, groups=32, each=32, actions=6):
        super().__init__()
        silu = lambda a, b: nn.Sequential(nn.Linear(a, b, bias=False), nn.LayerNorm(b), nn.SiLU())
        self.encoder = nn.Sequential(nn.Conv2d(3, 24, 4, 2, 1), nn.GroupNorm(1, 24), nn.SiLU(), nn.Conv2d(24, 48, 4, 2, 1), nn.GroupNorm(1, 48), nn.SiLU(), nn.Conv2d(48, 96, 4, 2, 1), nn.GroupNorm(1, 96), nn.SiLU(), nn.Conv2d(96, 192, 4, 2, 1), nn.SiLU())
        self.given, self.gates, self.norm = silu(groups * each + actions, deep), nn.Linear(2 * deep, 3 * deep, bias=False), nn.LayerNorm(3 * deep)
        self.seen, self.logits, self.groups, self.each = silu(deep + 192 * 16, deep), nn.Linear(deep, groups * each), groups, each
        self.spread = nn.Linear(deep + groups * each, 192 * 16)
        self.decoder = nn.Sequential(nn.ConvTranspose2d(192, 96, 4, 2, 1), nn.GroupNorm(1, 96), nn.SiLU(), nn.ConvTranspose2d(96, 48, 4, 2, 1), nn.GroupNorm(1, 48), nn.SiLU(), nn.ConvTranspose2d(48, 24, 4, 2, 1), nn.GroupNorm(1, 24), nn.SiLU(), nn.ConvTranspose2d(24, 3, 4, 2, 1))
        self.moves = nn.Parameter(torch.randn(1, 8, actions))

    def forward(self, x):
        batch, frames = x.shape[:2]
        seen = self.encoder(x.flatten(0, 1)).flatten(1).unflatten(0, (batch, frames))
        deep, choice, states = x.new_zeros(batch, 256), x.new_zeros(batch, self.groups * self.each), []
        for t in range(frames):
            given = self.given(torch.cat([choice, self.moves[:, t].expand(batch, -1)], 1))
            reset, new, update = self.norm(self.gates(torch.cat([given, deep], 1))).chunk(3, 1)
            new, update = (reset.sigmoid() * new).tanh(), (update - 1).sigmoid()
            deep = update * new + (1 - update) * deep
            logits = self.logits(self.seen(torch.cat([deep, seen[:, t]], 1))).unflatten(1, (self.groups, self.each))
            shares = 0.99 * logits.softmax(-1) + 0.01 / self.each
            choice = F.one_hot(shares.argmax(-1), self.each).to(x.dtype).flatten(1)
            states.append(torch.cat([deep, choice], 1))
        return self.decoder(self.spread(torch.stack(states, 1).flatten(0, 1)).unflatten(1, (192, 4, 4))).unflatten(0, (batch, frames))


class JointAxes(nn.Module):
    """Where 17 joints are as shares of two axes, by a gated attention unit over joints behind a CSP trunk (RTMPose)."""

    class Csp(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.one, self.two, self.last = conv_norm(width, width // 2, 1), conv_norm(width, width // 2, 1), conv_norm(width, width, 1)
            self.mid, self.deep, self.weigh = conv_norm(width // 2, width // 2), nn.Sequential(nn.Conv2d(width // 2, width // 2, 5, 1, 2, groups=width // 2), conv_norm(width // 2, width // 2, 1)), nn.Conv2d(width, width, 1)

        def forward(self, x):
            one = self.one(x)
            both = torch.cat([one + self.deep(self.mid(one)), self.two(x)], 1)
            return self.last(both * F.hardsigmoid(self.weigh(both.mean((2, 3), keepdim=True))))

    def __init__(self, joints=17, width=256, short=128, size=(8, 6)):
        super().__init__()
        self.trunk = nn.Sequential(conv_norm(3, 24, 3, 2), conv_norm(24, 48, 3, 2), JointAxes.Csp(48), conv_norm(48, 96, 3, 2), JointAxes.Csp(96), conv_norm(96, 192, 3, 2), JointAxes.Csp(192), conv_norm(192, 384, 3, 2), JointAxes.Csp(384))
        self.maps, self.flat, self.norm, self.given = nn.Conv2d(384, joints, 7, 1, 3), nn.Linear(size[0] * size[1], width, bias=False), nn.RMSNorm(width), nn.Linear(width, 2 * 512 + short, bias=False)
        self.scale, self.shift, self.out, self.short, self.keep = nn.Parameter(torch.randn(2, short) * 0.2), nn.Parameter(torch.zeros(2, short)), nn.Linear(512, width, bias=False), short, nn.Parameter(torch.ones(width))
        self.x, self.y = nn.Linear(width, 384, bias=False), nn.Linear(width, 512, bias=False)

    def forward(self, x):
        x = self.flat(self.maps(self.trunk(x)).flatten(2))
        gate, value, base = F.silu(self.given(self.norm(x))).split([512, 512, self.short], -1)
        q, k = (base[:, :, None] * self.scale + self.shift).unbind(2)
        shares = F.relu(q @ k.transpose(1, 2) / self.short ** 0.5).square()
        x = x * self.keep + self.out(gate * (shares @ value))
        return torch.cat([self.x(x), self.y(x)], -1)
