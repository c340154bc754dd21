"""Functions and small programs, by hand: operations that are seldom met in large networks."""

import torch
import torch.nn.functional as F
from torch import nn

from torch_census_kinds import BATCHES, function, program, program_of


@function("spectrogram", (400,))
def spectrogram(x):
    return torch.stft(x, 64, 16, window=torch.hann_window(64, device=x.device, dtype=x.dtype),
                      return_complex=True).abs().clamp(min=1e-5).log()


@function("fft-filter", (64,))
def fft_filter(x):
    f = torch.fft.fft(x)
    return torch.fft.ifft(f * torch.exp(-torch.arange(64, device=x.device) / 16)).real


@function("rotary-complex", (8, 4, 16))
def rotary_complex(x):
    angles = torch.outer(torch.arange(8, device=x.device, dtype=x.dtype),
                         1.0 / 10000**(torch.arange(0, 16, 2, device=x.device, dtype=x.dtype) / 16))
    turn = torch.polar(torch.ones_like(angles), angles)[:, None]
    return torch.view_as_real(torch.view_as_complex(x.reshape(*x.shape[:-1], 8, 2)) * turn).flatten(-2)


@function("complex-functions", (4, 5), (4, 5))
def complex_functions(x, y):
    z = torch.complex(x, y)
    return z.angle(), z.log().imag, z.sqrt().real, z.tanh().real, (z**1.5).imag, (1 - z).mH.imag.clone(), (1j * z.sin()).real


@function("cubic-grid", (3, 8, 9), (5, 6, 2))
def cubic_grid(x, grid):
    return F.grid_sample(x, grid, "bicubic", "border", False) + F.grid_sample(x, grid, "bicubic", "reflection", True)


@function("shared-results", (6, 8))
def shared_results(x):
    y = x.exp() + 1
    return y, y[:, -1], y.transpose(1, 2), *y.chunk(2, 1)


@function("short-softmax", (32, 32, 5))
def short_softmax(x):
    return (x.softmax(-1) * torch.arange(5.0, device=x.device, dtype=x.dtype)).sum(-1), x.log_softmax(-1)


@function("transposes", (24, 24, 32))
def transposes(x):
    return (x * 2).permute(3, 0, 1, 2).contiguous(), (x + 1).permute(0, 3, 1, 2).contiguous()


@function("sort", (5, 9))
def sort(x):
    values, places = x.sort(-1, descending=True)
    return values, places, x.topk(3, 1)[0], x.kthvalue(2)[0], x.median(-1)[0], torch.argsort(x, 1)


@function("cumulative", (5, 9))
def cumulative(x):
    return x.cumsum(1), x.sigmoid().cumprod(-1), x.cummax(1)[0], torch.logcumsumexp(x, -1), torch.diff(x, dim=-1), torch.trapezoid(x,
                                                                                                                                   dim=-1)


@function("einsum", (4, 5, 6), (4, 6, 7))
def einsum(x, y):
    return torch.einsum("bijk,bikl->bijl", x, y), torch.einsum("bijk->bkj", x), torch.einsum("bijk,bikl,bilm->bjm", x, y,
                                                                                             y.transpose(-1, -2))


@function("masked-rows", (6, 4))
def masked_rows(x):
    return (x[x[..., 0] > 0] * 2).sum(0), x.masked_fill(x < 0, 0), torch.where(x > 0, x, -x), x.masked_select(x > 0.5).sum()


@function("masked-write", (6, 4))
def masked_write(x):
    y = x * 1.0
    y[y < 0] = 0.5
    y[:, 1:3] += 2
    y[..., -1] = x[..., 0]
    y.mul_(1.5).clamp_(max=2)
    return y


@function("statistics", (6, 8))
def statistics(x):
    return (x.std(1), x.var(-1, unbiased=False), torch.var_mean(x, 1), x.norm(dim=-1), torch.linalg.vector_norm(x, 1, -1),
            x.quantile(0.3, dim=-1), x.logsumexp(1), x.prod(1), x.amin(1), F.normalize(x, dim=-1),
            F.cosine_similarity(x, x.roll(1, 1), dim=-1), torch.corrcoef(x[0]))


@function("shapes", (6, 8))
def shapes(x):
    return (x.unfold(2, 3, 2), x.roll(
        (1, 2), (1, 2)), torch.rot90(x, 1, (1, 2)), x.repeat_interleave(2, 1), F.pad(x[:, None], (1, 2, 1, 0), mode="circular"),
            torch.tril(x), x.diagonal(dim1=1, dim2=2), torch.kron(x[0], torch.eye(2, device=x.device, dtype=x.dtype)),
            torch.block_diag(x[0], x[1]), torch.cartesian_prod(x[0, 0], x[1, 0]), x.tile(1, 2, 1),
            torch.meshgrid(x[0, 0], x[0, 1], indexing="ij"), x.movedim(0, -1), F.one_hot(x.argmax(-1), 8), torch.tensor_split(x, 3, 2))


@function("windows", (3, 9, 9))
def windows(x):
    return (F.unfold(x, 3, padding=1), F.fold(F.unfold(x, 2), (9, 9), 2), F.pixel_unshuffle(x[..., :8, :8], 2), F.adaptive_max_pool2d(x, 3),
            F.lp_pool2d(x.abs(), 2, 3), F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False), F.local_response_norm(x, 3),
            F.interpolate(x, (13, 5),
                          mode="bicubic"), F.interpolate(x, (4, 4),
                                                         mode="area"), F.interpolate(x, size=(5, 12), mode="bilinear", antialias=True))


@function("sampling", (3, 9, 9), (2, 3))
def sampling(x, theta):
    grid = F.affine_grid(theta, x.shape, align_corners=False)
    return F.grid_sample(x, grid, align_corners=False), F.grid_sample(x, grid, mode="nearest", padding_mode="border", align_corners=True)


@function("linear-algebra", (5, 5))
def linear_algebra(x):
    a = x @ x.transpose(-1, -2) + 5 * torch.eye(5, device=x.device, dtype=x.dtype)
    return torch.linalg.cholesky(a), torch.linalg.solve(a, x), torch.linalg.inv(a), torch.linalg.det(a), torch.linalg.matrix_exp(
        x * 0.1), torch.linalg.matrix_power(x, 3)


@function("losses", (7,), (7,))
def losses(x, y):
    goal = y.argmax(-1)
    return (F.cross_entropy(x, goal, label_smoothing=0.1), F.nll_loss(x.log_softmax(-1), goal),
            F.kl_div(x.log_softmax(-1), y.softmax(-1), reduction="batchmean"), F.huber_loss(x, y),
            F.binary_cross_entropy(x.sigmoid(), y.sigmoid()), F.multi_margin_loss(x, goal), F.triplet_margin_loss(x, y, y.flip(0)),
            F.cosine_embedding_loss(x, y, torch.ones(x.shape[0], device=x.device)), F.poisson_nll_loss(x, y.abs()),
            F.gaussian_nll_loss(x, y,
                                y.abs() + 0.1), F.soft_margin_loss(x, y.sign()), F.hinge_embedding_loss(x, y.sign()))


@program_of("ctc", lambda v: (torch.randn(12, BATCHES[v], 8), torch.randint(1, 8, (BATCHES[v], 4))))
class Ctc(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(8, 8)

    def forward(self, x, goal):
        n = x.shape[1]
        return F.ctc_loss(self.net(x).log_softmax(-1), goal, torch.full((n,), 12), torch.full((n,), 4))


@function("activations", (6, 8))
def activations(x):
    return (F.mish(x), F.selu(x), F.celu(x), F.softsign(x), F.tanhshrink(x), F.hardshrink(x), F.softshrink(x), F.rrelu(x),
            F.threshold(x, 0.1, 0.2), F.glu(x), F.logsigmoid(x), F.hardtanh(x), F.relu6(x),
            F.prelu(x, torch.tensor([0.2], device=x.device, dtype=x.dtype)), F.softmin(x, -1),
            F.gumbel_softmax(x * 0 + 50 * F.one_hot(x.argmax(-1), 8), hard=True).detach() * 0)


@function("special", (6, 8))
def special(x):
    a = x.abs() + 0.5
    return (torch.special.gammaln(a), torch.digamma(a), torch.erfinv(x.tanh() * 0.9), torch.special.expit(x), torch.xlogy(a, a),
            torch.hypot(x, a), torch.atan2(x, a), torch.sinc(x), torch.i0(x), torch.special.ndtri(x.sigmoid()), torch.polygamma(1, a),
            torch.lerp(x, a, 0.3), torch.addcmul(x, a, a), torch.frac(x), torch.fmod(x, 0.7), torch.remainder(x, 0.7),
            torch.logaddexp(x, a), torch.nan_to_num(x / 0), torch.copysign(a, x), torch.heaviside(x.detach(), a.detach()),
            torch.special.bessel_j0(x), torch.erfc(x), torch.log1p(a), torch.expm1(x), torch.float_power(a, 0.3))


@program_of("integers", lambda v: (torch.randint(-50, 50, (BATCHES[v], 9)),))
class Integers(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(1.1))

    def forward(self, x):
        return (x // 7, x % 7, x << 2, x >> 1, x & 12, x | 3, x ^ 5, ~x, x.to(torch.int8) * 3, x.abs().gcd(x.roll(1, 1).abs()),
                torch.bucketize(x.float(), torch.tensor([-20.0, 0.0, 20.0])), torch.searchsorted(torch.arange(-50, 50, 5), x), x.cumsum(1),
                (x > 0).any(1), (x > -60).all(), x.sum(1, dtype=torch.int32), x.max(1)[1], x.count_nonzero(1),
                torch.isin(x, torch.tensor([1, 2, 3])), x * self.scale)


@program_of(
    "embedding-bag", lambda v:
    (torch.randn(4, 13), torch.randint(0, 100, (3, 4 * (3, 4, 5)[v])), torch.arange(0, 4 * (3, 4, 5)[v], (3, 4, 5)[v]).repeat(3, 1)))
class Dlrm(nn.Module):
    def __init__(self):
        super().__init__()
        self.bags = nn.ModuleList(nn.EmbeddingBag(100, 16, mode=mode) for mode in ("sum", "mean", "max"))
        self.bottom, self.top = nn.Linear(13, 16), nn.Linear(16 + 6, 1)

    def forward(self, dense, ids, starts):
        x = self.bottom(dense).relu()
        rows = torch.stack([x] + [bag(t, o) for bag, t, o in zip(self.bags, ids, starts)], 1)
        z = torch.bmm(rows, rows.transpose(1, 2))
        i, j = torch.tril_indices(4, 4, -1)
        return self.top(torch.cat([x, z[:, i, j]], 1)).sigmoid()


class Straight(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.round()

    @staticmethod
    def backward(ctx, grad):
        x, = ctx.saved_tensors
        return grad * (x.abs() < 1)


@program("custom-gradient", (16,))
class Quantised(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(16, 8)

    def forward(self, x):
        return self.net(Straight.apply(x * 4) / 4)


@program("cond", (8,))
class Cond(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda y: self.a(y).relu(), lambda y: self.b(y).tanh(), (x,))


@program("while-loop", (8,))
class While(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(8, 8)

    def forward(self, x):
        from torch._higher_order_ops.while_loop import while_loop
        return while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, self.net(y).tanh()), (torch.zeros((), dtype=torch.int64), x))[1]


@program("scan", (6, 8))
class Scan(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(8, 8)

    def forward(self, x):
        from torch._higher_order_ops.scan import scan
        return scan(lambda c, y: ((c * 0.9 + self.net(y)).tanh(), c * 1.0), x[:, 0] * 0, x, dim=1)[1]


@program("volumes", (3, 8, 24, 24))
class Volumes(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv3d(3, 16, 3, padding=1), nn.BatchNorm3d(16), nn.ReLU(), nn.MaxPool3d(2), nn.Conv3d(16, 32, 3, padding=1), nn.ReLU(),
            nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(32, 5))  # fmt: skip

    def forward(self, x):
        return self.net(x)
