"""Programs of filters, processes, flows, geometry, graphs and spectra, by hand."""

import torch
import torch.nn.functional as F
from torch import distributions, nn

from torch_census_kinds import function, program, program_of


@program("kalman", (10, 2))
class Kalman(nn.Module):
    def __init__(self):
        super().__init__()
        self.move, self.see = nn.Parameter(torch.eye(4) + 0.1 * torch.randn(4, 4)), nn.Parameter(torch.randn(2, 4))
        self.noise = nn.Parameter(torch.zeros(2))

    def forward(self, seen):
        n = seen.shape[0]
        x = seen.new_zeros(n, 4, 1)
        p = torch.eye(4, device=seen.device, dtype=seen.dtype).expand(n, 4, 4)
        r = torch.diag(self.noise.exp())
        total = 0
        for t in range(seen.shape[1]):
            x, p = self.move @ x, self.move @ p @ self.move.T + 0.1 * torch.eye(4, device=seen.device, dtype=seen.dtype)
            s = self.see @ p @ self.see.T + r
            error = seen[:, t, :, None] - self.see @ x
            gain = p @ self.see.T @ torch.linalg.inv(s)
            total = total + (error.mT @ torch.linalg.solve(s, error)).squeeze() + torch.logdet(s)
            x, p = x + gain @ error, p - gain @ self.see @ p
        return x.squeeze(-1), total


@program("gaussian-process", (12, 3), (12,))
class Process(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale, self.noise = nn.Parameter(torch.zeros(3)), nn.Parameter(torch.tensor(-1.0))

    def forward(self, x, y):
        z = x / self.scale.exp()
        k = torch.exp(-0.5 * torch.cdist(z, z).square()) + (self.noise.exp() + 1e-3) * torch.eye(12, device=x.device, dtype=x.dtype)
        root = torch.linalg.cholesky(k)
        a = torch.cholesky_solve(y[..., None], root)
        new = torch.exp(-0.5 * torch.cdist(z[:, :4] + 0.1, z).square())
        v = torch.linalg.solve_triangular(root, new.mT, upper=False)
        likelihood = -0.5 * (y * a.squeeze(-1)).sum(-1) - root.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        return likelihood, (new @ a).squeeze(-1), 1 - v.square().sum(-2)


@program("full-normal", (5,))
class FullNormal(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(5, 5 + 25)

    def forward(self, x):
        h = self.net(x)
        root = torch.tril(h[:, 5:].view(-1, 5, 5), -1) + torch.diag_embed(F.softplus(h[:, :5]) + 0.5)
        normal = distributions.MultivariateNormal(h[:, :5], scale_tril=root)
        other = distributions.MultivariateNormal(torch.zeros_like(x), torch.eye(5, device=x.device, dtype=x.dtype) * 2)
        low = distributions.LowRankMultivariateNormal(h[:, :5], root[..., :2], F.softplus(h[:, 5:10]) + 0.1)
        return normal.log_prob(x), normal.entropy(), distributions.kl_divergence(normal, other), low.log_prob(x)


@program("least-squares", (8, 3), (8, 2))
class Regression(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(8))

    def forward(self, x, y):
        w = self.weight.exp()[:, None]
        gram = x.mT @ (w * x) + 0.1 * torch.eye(3, device=x.device, dtype=x.dtype)
        q, r = torch.linalg.qr(x)
        return torch.linalg.solve(gram, x.mT @ (w * y)), torch.linalg.solve_triangular(r, q.mT @ y, upper=True), torch.linalg.det(gram)


@program("lqr", (4,))
class Regulator(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Parameter(torch.eye(4) * 0.9), nn.Parameter(torch.randn(4, 2) * 0.3)

    def forward(self, x):
        p = torch.eye(4, device=x.device, dtype=x.dtype)
        for _ in range(6):
            gain = torch.linalg.solve(torch.eye(2, device=x.device, dtype=x.dtype) + self.b.T @ p @ self.b, self.b.T @ p @ self.a)
            p = torch.eye(4, device=x.device, dtype=x.dtype) + self.a.T @ p @ (self.a - self.b @ gain)
        return -x @ gain.T, (x @ p * x).sum(-1)


@program("homography", (4, 2), (4, 2))
class Homography(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(2))

    def forward(self, x, y):
        x = x * self.scale
        one, zero = torch.ones_like(x[..., :1]), torch.zeros_like(x)
        rows = torch.cat([torch.cat([x, one, zero, zero[..., :1], -x * y[..., :1]], -1),
                          torch.cat([zero, zero[..., :1], x, one, -x * y[..., 1:]], -1)], 1)  # fmt: skip
        h = torch.linalg.solve(rows + 1e-2 * torch.eye(8, device=x.device, dtype=x.dtype), y.transpose(1, 2).flatten(1))
        return torch.cat([h, torch.ones_like(h[:, :1])], 1).view(-1, 3, 3)


@program("rotations", (6,), (5, 3))
class Rotations(nn.Module):
    """Two vectors and quaternions as rotations, and a tree of joints."""

    def __init__(self):
        super().__init__()
        self.net = nn.Linear(6, 10)

    def forward(self, x, points):
        h = self.net(x)
        a = F.normalize(h[:, :3], dim=-1)
        b = F.normalize(h[:, 3:6] - (a * h[:, 3:6]).sum(-1, keepdim=True) * a, dim=-1)
        turn = torch.stack([a, b, torch.linalg.cross(a, b)], -1)
        w, i, j, k = F.normalize(h[:, 6:], dim=-1).unbind(-1)
        other = torch.stack([1 - 2 * (j * j + k * k), 2 * (i * j - k * w), 2 * (i * k + j * w), 2 * (i * j + k * w), 1 - 2 * (
            i * i + k * k), 2 * (j * k - i * w), 2 * (i * k - j * w), 2 * (j * k + i * w), 1 - 2 * (i * i + j * j)], -1).view(-1, 3, 3)
        trace = torch.diagonal(turn @ other.mT, dim1=-2, dim2=-1).sum(-1)
        return points @ turn.mT @ other.mT, torch.acos(((trace - 1) / 2).clamp(-0.999, 0.999)), torch.linalg.det(turn)


@program("lie-exponential", (3,), (3,))
class Lie(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(0.7))

    def forward(self, x, y):
        a, b, c = (x * self.scale).unbind(-1)
        zero = torch.zeros_like(a)
        skew = torch.stack([zero, -c, b, c, zero, -a, -b, a, zero], -1).view(-1, 3, 3)
        return torch.linalg.matrix_exp(skew) @ y[..., None]


@program("spline-flow", (4,))
class SplineFlow(nn.Module):
    """Rational quadratic splines, found by their bins."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 2 * 25))

    def forward(self, x):
        a, b = x.chunk(2, -1)
        w, h, d = self.net(a).view(-1, 2, 25).split([8, 8, 9], -1)
        w, h, d = (F.softmax(w, -1) * 0.9 + 0.0125) * 6, (F.softmax(h, -1) * 0.9 + 0.0125) * 6, F.softplus(d) + 1e-3
        left, low = F.pad(w.cumsum(-1), (1, 0)) - 3, F.pad(h.cumsum(-1), (1, 0)) - 3
        inside = b.clamp(-2.999, 2.999)
        i = torch.searchsorted(left[..., 1:].contiguous(), inside[..., None]).clamp(max=7)
        pick = lambda t: t.gather(-1, i).squeeze(-1)
        width, height, x0, y0, d0, d1 = pick(w), pick(h), pick(left), pick(low), pick(d), d.gather(-1, i + 1).squeeze(-1)
        t, s = (inside - x0) / width, height / width
        below = s + (d1 + d0 - 2 * s) * t * (1 - t)
        y = y0 + height * (s * t * t + d0 * t * (1 - t)) / below
        slope = s.square() * (d1 * t * t + 2 * s * t * (1 - t) + d0 * (1 - t).square()) / below.square()
        out = b.abs() > 2.999
        return torch.cat([a, torch.where(out, b, y)], -1), torch.where(out, 0.0, slope.log()).sum(-1)


@program("masked-autoregressive", (5,))
class Autoregressive(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(5, 16), nn.Linear(16, 10)
        degree, hidden = torch.arange(5), torch.arange(16) % 4
        self.register_buffer("mask_a", (hidden[:, None] >= degree).float())
        self.register_buffer("mask_b", (degree[:, None] > hidden).float().repeat(2, 1))

    def forward(self, x):
        h = F.relu(F.linear(x, self.a.weight * self.mask_a, self.a.bias))
        mean, spread = F.linear(h, self.b.weight * self.mask_b, self.b.bias).chunk(2, -1)
        return (x - mean) * (-spread.tanh()).exp(), -spread.tanh().sum(-1)


@program("coupling-inverse", (4, 4, 4))
class Glow(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.linalg.qr(torch.randn(4, 4))[0])
        self.low, self.sign = nn.Parameter(torch.randn(4, 4)), nn.Parameter(torch.zeros(4))

    def forward(self, x):
        root = torch.tril(self.low, -1) + torch.eye(4, device=x.device, dtype=x.dtype)
        upper = torch.triu(self.low.T, 1) + torch.diag(self.sign.exp())
        y = torch.einsum("ij,bjhw->bihw", torch.inverse(self.weight), x)
        return torch.einsum("ij,bjhw->bihw", root @ upper, y), torch.slogdet(self.weight)[1] + self.sign.sum()


@program("routed-warp", (3, 8, 8), (2, 8, 8))
class Warp(nn.Module):
    """Images read where a flow points, correlations of neighbours, and a learned upsampling."""

    def __init__(self):
        super().__init__()
        self.flow, self.mask = nn.Conv2d(5, 2, 3, padding=1), nn.Conv2d(3, 9 * 4, 1)

    def forward(self, x, y):
        move = self.flow(torch.cat([x, y], 1))
        grid = torch.stack(torch.meshgrid(torch.linspace(-1, 1, 8, device=x.device, dtype=x.dtype),
                                          torch.linspace(-1, 1, 8, device=x.device, dtype=x.dtype), indexing="xy"), -1)
        warped = F.grid_sample(x, grid + move.permute(0, 2, 3, 1) * 0.1, align_corners=True)
        near = F.unfold(F.pad(x, (1, 1, 1, 1)), 3).view(-1, 3, 9, 8, 8)
        weights = self.mask(warped).view(-1, 1, 9, 2, 2, 8, 8).softmax(2)
        up = (weights * F.unfold(move * 2, 3, padding=1).view(-1, 2, 9, 1, 1, 8, 8)).sum(2)
        edges = F.grid_sample(x, grid.expand(len(x), -1, -1, -1) * 1.2, mode="bilinear", padding_mode="border", align_corners=False)
        return up.permute(0, 1, 4, 2, 5, 3).reshape(-1, 2, 16, 16), (near * x[:, :, None]).sum(1), edges


@program("transformer-st", (1, 12, 12))
class Spatial(nn.Module):
    def __init__(self):
        super().__init__()
        self.find = nn.Sequential(nn.Conv2d(1, 4, 5), nn.MaxPool2d(2), nn.ReLU(), nn.Flatten(), nn.Linear(64, 6))

    def forward(self, x):
        theta = self.find(x).view(-1, 2, 3) * 0.1 + torch.eye(2, 3, device=x.device, dtype=x.dtype)
        return F.grid_sample(x, F.affine_grid(theta, x.shape, align_corners=False), padding_mode="reflection", align_corners=False)


@program("deformable", (4, 8, 8))
class Deformable(nn.Module):
    def __init__(self):
        super().__init__()
        self.offset, self.weight = nn.Conv2d(4, 18, 3, padding=1), nn.Parameter(torch.randn(6, 4, 3, 3) * 0.2)

    def forward(self, x):
        import torchvision
        return torchvision.ops.deform_conv2d(x, self.offset(x) * 0.3, self.weight, padding=1)


@program("splats", (10, 3))
class Splats(nn.Module):
    """Ellipses, sorted by depth, laid over each other."""

    def __init__(self):
        super().__init__()
        self.net = nn.Linear(3, 7)

    def forward(self, x):
        h = self.net(x)
        order = x[..., 2].argsort(-1)
        take = lambda t: t.gather(1, order[..., None].expand_as(t))
        place, color, size = take(x[..., :2]), take(h[..., :3]).sigmoid(), take(h[..., 3:5]).exp()
        pixels = torch.cartesian_prod(torch.linspace(-1, 1, 6, device=x.device), torch.linspace(-1, 1, 6, device=x.device)).to(x.dtype)
        near = torch.exp(-0.5 * ((pixels[:, None] - place[:, None]) / size[:, None]).square().sum(-1))
        alpha = (near * take(h[..., 5:6]).sigmoid().squeeze(-1)[:, None]).clamp(max=0.99)
        left = torch.cumprod(F.pad(1 - alpha, (1, 0), value=1.0), -1)[..., :-1]
        return torch.einsum("bpn,bnc->bpc", alpha * left, color)


@program_of("graph-network", lambda v: (torch.randn(20, 8), torch.randint(0, 20, (2, 50)), torch.randn(50, 3), torch.arange(20) // 7))
class GraphNetwork(nn.Module):
    """Means, variances and softmaxes by segments; pooling by graph; equal under rotations."""

    def __init__(self):
        super().__init__()
        self.edge, self.node, self.score = nn.Linear(17, 8), nn.Linear(16, 8), nn.Linear(8, 1)

    def forward(self, x, edges, places, graphs):
        source, target = edges
        m = F.silu(self.edge(torch.cat([x[source], x[target], places.norm(dim=-1, keepdim=True)], -1)))
        score = self.score(m).squeeze(-1)
        most = torch.full((20,), -torch.inf, dtype=x.dtype, device=x.device).index_reduce(0, target, score.detach(), "amax")
        e = (score - most[target]).exp()
        m = m * (e / e.new_zeros(20).index_add(0, target, e)[target])[:, None]
        sums = torch.zeros_like(x).scatter_add(0, target[:, None].expand_as(m), m)
        means = torch.zeros_like(x).scatter_reduce(0, target[:, None].expand_as(m), m, "mean", include_self=False)
        degree = torch.bincount(target, minlength=20).to(x.dtype).clamp(min=1).rsqrt()
        x = x + self.node(torch.cat([sums * degree[:, None], means], -1))
        return x.new_zeros(3, 8).index_add(0, graphs, x), x.new_zeros(3, 8).scatter_reduce(0, graphs[:, None].expand_as(x), x, "amax")


@program("forecast", (24, 3))
class Forecast(nn.Module):
    """Trends and seasons, correlations by Fourier transforms, and patches."""

    def __init__(self):
        super().__init__()
        self.trend, self.season, self.patch = nn.Linear(24, 6), nn.Linear(24, 6), nn.Linear(8, 6)

    def forward(self, x):
        mean, spread = x.mean(1, keepdim=True), x.var(1, keepdim=True, unbiased=False).add(1e-5).sqrt()
        z = ((x - mean) / spread).transpose(1, 2)
        trend = F.avg_pool1d(F.pad(z, (2, 2), mode="replicate"), 5, 1)
        f = torch.fft.rfft(z, dim=-1)
        correlation = torch.fft.irfft(f * f.conj(), n=24, dim=-1)
        weight, delay = correlation.mean(1).topk(2, -1)
        place = (torch.arange(24, device=x.device) + delay[..., None]) % 24
        moved = z[:, :, None].expand(-1, -1, 2, -1).gather(-1, place[:, None].expand(-1, 3, -1, -1))
        mixed = (moved * weight.softmax(-1)[:, None, :, None]).sum(2)
        y = self.trend(trend) + self.season(z - trend + mixed) + self.patch(z.unfold(-1, 8, 4)).mean(2)
        quantiles = torch.tensor([0.1, 0.5, 0.9], device=x.device, dtype=x.dtype)
        error = y[..., None] - quantiles
        return y.transpose(1, 2) * spread + mean, torch.max(quantiles * error, (quantiles - 1) * error).mean()


@program("complex-weights", (3, 16))
class ComplexWeights(nn.Module):
    """Parameters, results and buffers that are complex."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(3, 4, 9, dtype=torch.cfloat) * 0.2)
        self.register_buffer("turn", torch.polar(torch.ones(9), torch.arange(9) * 0.3))

    def forward(self, x):
        f = torch.fft.rfft(x)
        y = torch.einsum("bim,iom->bom", f, self.weight.to(f.dtype)) * self.turn.to(f.dtype)
        return y, torch.fft.irfft(y, n=16), y.abs().square().sum(-1), torch.view_as_real(y[..., 0])


@program("griffin-lim", (256,))
class Phases(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(1.0))
        self.register_buffer("window", torch.hann_window(64))

    def forward(self, x):
        size = torch.stft(x * self.scale, 64, 16, window=self.window, return_complex=True).abs()
        y = x
        for _ in range(2):
            f = torch.stft(y, 64, 16, window=self.window, return_complex=True)
            y = torch.istft(size * f / (f.abs() + 1e-8), 64, 16, window=self.window, length=256)
        return y, (size + 1e-5).log()


@program("checked", (6,))
class Checked(nn.Module):
    """What raises where values are not as they should be."""

    def __init__(self):
        super().__init__()
        self.net = nn.Linear(6, 6)

    def forward(self, x):
        y = self.net(x)
        torch._assert_async(torch.isfinite(y).all(), "there are infinities")
        spread = distributions.Normal(y, F.softplus(y) + 0.1, validate_args=True)
        return spread.log_prob(x)


@function("ssim", (3, 12, 12), (3, 12, 12))
def ssim(x, y):
    g = torch.exp(-(torch.arange(5, device=x.device, dtype=x.dtype) - 2).square() / 4)
    w = (g[:, None] * g / g.sum().square()).expand(3, 1, 5, 5)
    blur = lambda t: F.conv2d(t, w, groups=3)
    a, b = blur(x), blur(y)
    s, t, c = blur(x * x) - a * a, blur(y * y) - b * b, blur(x * y) - a * b
    dice = 1 - 2 * (x.sigmoid() * y.sigmoid()).sum((1, 2, 3)) / (x.sigmoid().sum((1, 2, 3)) + y.sigmoid().sum((1, 2, 3)))
    variation = (x[..., 1:] - x[..., :-1]).abs().mean() + (x[..., 1:, :] - x[..., :-1, :]).abs().mean()
    return ((2 * a * b + 0.01) * (2 * c + 0.03) / ((a * a + b * b + 0.01) * (s + t + 0.03))).mean((1, 2, 3)), dice, variation, \
        torch.quantile(x.flatten(1), torch.tensor([0.1, 0.9], device=x.device, dtype=x.dtype), dim=1), torch.histc(x.detach(), 8, -2, 2)
