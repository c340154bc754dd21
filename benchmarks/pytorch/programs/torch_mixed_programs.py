"""More programs of the form of torch_use_programs.py, which are added to its PROGRAMS: attention spelled out, lattices, mixtures of experts, recurrences,
losses of regions, caches, weights of few bits, filters and derivatives."""

import math

import torch
import torch.nn.functional as F
from torch import nn
from torch.func import grad, hessian, jacfwd, jvp, vjp, vmap
from torch.nn.utils import parametrizations
from torch_use_programs import integers, program

# Attention.


@program("spelled-attention", (2, 64, 96), mixed=(96, 288), out=(96, 96))
def spelled_attention(x, mixed, out):
    q, k, v = (part.unflatten(2, (6, 16)).transpose(1, 2) for part in (x @ mixed).chunk(3, -1))
    scores = q @ k.transpose(-2, -1) / math.sqrt(16)
    hidden = torch.ones(64, 64, dtype=torch.bool).triu(1)
    return (scores.masked_fill(hidden, float("-inf")).softmax(-1) @ v).transpose(1, 2).flatten(2) @ out


@program("slopes-of-heads", (2, 4, 48, 16), (2, 4, 48, 16), (2, 4, 48, 16))
def slopes_of_heads(q, k, v):
    """Attention by linear biases, with a softmax in f32 (Press et al., arXiv 2108.12409)."""
    place = torch.arange(48, device=q.device)
    bias = -(place[:, None] - place).abs() * (2.0 ** (-2.0 * torch.arange(1, 5, device=q.device, dtype=q.dtype)))[:, None, None]
    scores = (q @ k.mT / 4 + bias).masked_fill(place > place[:, None], float("-inf"))
    return F.softmax(scores, -1, dtype=torch.float32).to(v.dtype) @ v


@program("complex-rotations", (2, 32, 4, 16), (2, 32, 4, 16))
def complex_rotations(q, k):
    angle = torch.outer(torch.arange(32.0), 1e4 ** (-torch.arange(0, 16, 2) / 16))
    turn = torch.polar(torch.ones_like(angle), angle)[None, :, None]

    def turned(x):
        return torch.view_as_real(torch.view_as_complex(x.float().unflatten(-1, (8, 2))) * turn).flatten(3).type_as(x)

    return torch.einsum("bnhd,bmhd->bhnm", turned(q), turned(k))


@program("linear-attention", (2, 40, 4, 8), (2, 40, 4, 8), (2, 40, 4, 8))
def linear_attention(q, k, v):
    """All keys, and those before alone (Katharopoulos et al., arXiv 2006.16236)."""
    q, k = F.elu(q) + 1, F.elu(k) + 1
    both, norm = torch.einsum("bnhd,bnhe->bhde", k, v), 1 / torch.einsum("bnhd,bhd->bnh", q, k.sum(1))
    so_far = torch.einsum("bnhd,bnhe->bnhde", k, v).cumsum(1)
    return torch.einsum("bnhd,bhde,bnh->bnhe", q, both, norm), torch.einsum("bnhd,bnhde->bnhe", q, so_far)


@program("decode-step", (1, 4, 64), trains=False)
class DecodeStep(nn.Module):
    """Four words more in a cache that is a buffer."""

    def __init__(self):
        super().__init__()
        self.mixed = nn.Linear(64, 192)
        self.register_buffer("keys", torch.zeros(1, 4, 100, 16))
        self.register_buffer("values", torch.zeros(1, 4, 100, 16))
        self.register_buffer("length", torch.tensor(0))

    def forward(self, x):
        q, k, v = self.mixed(x).view(1, 4, 3, 4, 16).permute(2, 0, 3, 1, 4)
        place = self.length + torch.arange(4)
        self.keys.index_copy_(2, place, k)
        self.values.index_copy_(2, place, v)
        seen = torch.arange(100) <= place[:, None]
        attended = F.scaled_dot_product_attention(q, self.keys, self.values, attn_mask=seen)
        self.length.add_(4).remainder_(96)
        return attended.transpose(1, 2).flatten(2)


# Experts, recurrences, lattices.


@program("dense-experts", (128, 32), gate=(32, 4), up=(4, 32, 64), down=(4, 64, 32))
def dense_experts(x, gate, up, down):
    """Two of four experts for each row, each computed for all rows, with a loss that shares them evenly."""
    share = (x @ gate).softmax(-1)
    weight, chosen = share.topk(2)
    weight, out = weight / weight.sum(-1, keepdim=True), torch.zeros_like(x)
    for expert in range(4):
        out = out + (weight * (chosen == expert)).sum(-1, keepdim=True) * (F.silu(x @ up[expert]) @ down[expert])
    load = F.one_hot(chosen, 4).sum((0, 1)).to(x.dtype) / chosen.numel()
    return out, (load * share.mean(0)).sum() * 4


@program("time-mixing", (4, 24, 32), (4, 24, 32), (4, 24, 32), decay=(32,), first=(32,))
def time_mixing(receive, k, v, decay, first):
    """RWKV's, step by step, by its largest exponent (Peng et al., arXiv 2305.13048)."""
    decay, out = -decay.exp(), []
    top = bottom = torch.zeros_like(k[:, 0])
    most = torch.full_like(top, -1e38)
    for t in range(k.shape[1]):
        here = torch.maximum(most, first + k[:, t])
        old, new = (most - here).exp(), (first + k[:, t] - here).exp()
        out.append(receive[:, t].sigmoid() * (old * top + new * v[:, t]) / (old * bottom + new))
        here = torch.maximum(most + decay, k[:, t])
        old, new = (most + decay - here).exp(), (k[:, t] - here).exp()
        top, bottom, most = old * top + new * v[:, t], old * bottom + new, here
    return torch.stack(out, 1)


@program("soft-alignment", (6, 3), (7, 3))
def soft_alignment(x, y):
    """Soft dynamic time warping (Cuturi and Blondel, arXiv 1703.01541)."""
    cost = torch.cdist(x, y).square()
    far = x.new_full((), 1e9)
    table = [[far] * 8 for _ in range(7)]
    table[0][0] = x.new_zeros(())
    for i in range(1, 7):
        for j in range(1, 8):
            near = torch.stack([table[i - 1][j], table[i][j - 1], table[i - 1][j - 1]])
            table[i][j] = cost[i - 1, j - 1] - 0.5 * torch.logsumexp(near / -0.5, 0)
    return table[6][7]


@program("label-chain", (8, 20, 9), integers(9, 8, 20), change=(9, 9))
def label_chain(scores, labels, change):
    """The loss of a linear chain of labels."""
    told, alpha = scores[:, 0].gather(1, labels[:, :1])[:, 0], scores[:, 0]
    for t in range(1, 20):
        told = told + scores[:, t].gather(1, labels[:, t : t + 1])[:, 0] + change[labels[:, t - 1], labels[:, t]]
        alpha = torch.logsumexp(alpha[:, :, None] + change, 1) + scores[:, t]
    return torch.logsumexp(alpha, 1) - told


@program("lstm-cells", (8, 12, 24), (8, 32), (8, 32))
class LstmCells(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.out = nn.LSTMCell(24, 32), nn.Linear(32, 5)

    def forward(self, x, h, c):
        out = []
        for t in range(x.shape[1]):
            h, c = self.cell(x[:, t], (h, c))
            out.append(self.out(h))
        return torch.stack(out, 1), c


@program("power-steps", (48, 48))
def power_steps(a):
    a = a @ a.mT / 48
    v = torch.ones_like(a[0])
    for _ in range(12):
        v = a @ v
        v = v / v.norm()
    return v @ a @ v


@program("decayed-sums", (8, 30, 32))
def decayed_sums(x):
    keep, h, out = x.sigmoid(), torch.zeros_like(x[:, 0]), []
    for t in range(x.shape[1]):
        h = h * keep[:, t] + x[:, t]
        out.append(h)
    return torch.stack(out, 1), (x.cumsum(1) - x).flip(1)


# Losses, routes of data.


@program("regions-and-hard-pixels", (4, 3, 32, 32), integers(3, 4, 32, 32))
def regions_and_hard_pixels(x, labels):
    """Dice and focal losses."""
    p, true = x.softmax(1), F.one_hot(labels, 3).permute(0, 3, 1, 2).to(x.dtype)
    dice = 1 - (2 * (p * true).sum((2, 3)) + 1) / ((p + true).sum((2, 3)) + 1)
    said = F.log_softmax(x, 1).gather(1, labels[:, None])[:, 0]
    return dice.mean(), (-((1 - said.exp()) ** 2) * said).mean()


@program("losses-of-pairs", (16, 24), (16, 24), (16, 24), integers(2, 16), integers(24, 16))
def losses_of_pairs(a, b, c, bits, label):
    sign = bits * 2 - 1
    return (
        F.triplet_margin_loss(a, b, c), F.cosine_embedding_loss(a, b, sign), F.huber_loss(a, b, delta=0.5), F.smooth_l1_loss(a, b, beta=0.3),
        F.kl_div(a.log_softmax(1), b.softmax(1), reduction="batchmean"), F.poisson_nll_loss(a, b.abs()), F.gaussian_nll_loss(a, b, c.abs() + 0.1),
        F.margin_ranking_loss(a[:, 0], b[:, 0], sign), F.hinge_embedding_loss(a[:, 0], sign), F.multilabel_soft_margin_loss(a, (b > 0).to(a.dtype)),
        F.binary_cross_entropy_with_logits(a, b.sigmoid()), F.cross_entropy(a, label, weight=c[0].detach().abs(), label_smoothing=0.1), F.multi_margin_loss(a, label),
    )  # fmt: skip


@program("kinds-of-scatters", (60, 16), (60,), integers(12, 60))
def kinds_of_scatters(x, weight, to):
    zero, at = torch.ones(12, 16, dtype=x.dtype), to[:, None].expand(-1, 16)
    return (
        zero.scatter_reduce(0, at, x, "sum"), zero.scatter_reduce(0, at, x, "mean", include_self=False), zero.scatter_reduce(0, at, x, "amax"),
        zero.scatter_reduce(0, at, x, "amin", include_self=False), zero.scatter_reduce(0, at, x, "prod"), zero.index_add(0, to, x * weight[:, None], alpha=2),
        zero.index_reduce(0, to, x, "mean"),
    )  # fmt: skip


@program("rows-put", (24, 16), (8, 16), integers(24, 8))
def rows_put(x, value, at):
    y = x.clone()
    y.index_put_((at,), value, accumulate=True)
    y[:, [0, 2]] += 1
    y[..., -1] = value.sum()
    return y, x.index_fill(0, at[:2], 3.0), x.masked_scatter(x > 0, value.repeat(3, 1))


@program("orders", (12, 50))
def orders(x):
    sorted_, place = x.sort(1, descending=True)
    few, kth = x.topk(5, 0, largest=False), x.kthvalue(9, 1)
    share = torch.quantile(x, torch.tensor([0.1, 0.5], dtype=x.dtype), 1)
    return sorted_, place, few.values, few.indices, kth.values, x.median(1).values, share, x.cummax(1).values, x.logcumsumexp(1)


@program("bins", (400,), (31,), trains=False)
def bins(x, edges):
    edges = edges.sort().values
    at = torch.bucketize(x, edges)
    return at, torch.searchsorted(edges, x, right=True), torch.histc(x, bins=20, min=-2, max=2), torch.zeros(32, dtype=torch.int64).scatter_add(0, at, torch.ones_like(at))


@program("whole-numbers", integers(99, 300), integers(9, 300), trains=False)
def whole_numbers(a, b):
    a, b = a - 50, b + 1
    return (
        a & b, a | b, a ^ b, ~a, a << b, a >> b, a // b, a % b, torch.div(a, b, rounding_mode="trunc"), torch.fmod(a, b), a.gcd(b), a.lcm(b), a.cumsum(0), a * 10**9 * b,
        a.to(torch.int8) * b.to(torch.int8), a.to(torch.uint8), a.argmin(), a.float() / b,
    )  # fmt: skip


@program("limits-of-numbers", (64,), trains=False)
def limits_of_numbers(x):
    x = torch.cat([x, x.new_tensor([float("nan"), float("inf"), float("-inf"), 0.0, -0.0])])
    return (
        x.nan_to_num(), x.nansum(), x.nanmean(), x.isfinite(), torch.maximum(x, x.flip(0)), torch.fmax(x, x.flip(0)), x.max(), x.sort().values, x.clamp(-1, 1), x.sign(),
        x.signbit(), 1 / x, x.softmax(0), x.logsumexp(0), x.argmax(), torch.copysign(x, x.flip(0)), F.gelu(x), F.softplus(x), torch.special.xlogy(x, x), torch.logaddexp(x, x),
        x.topk(3).values, torch.hypot(x, x),
    )  # fmt: skip


# Few bits, filters, derivatives, norms of weights.


@program("nibbles", (16, 64), integers(256, 32, 48), (48,), trains=False)
def nibbles(x, packed, scale):
    whole = torch.stack([(packed & 15) - 8, (packed >> 4) - 8], 1).flatten(0, 1)
    return x @ (whole.to(x.dtype) * scale)


@program("windows-and-back", (2, 4, 24, 24))
def windows_and_back(x):
    seen = F.unfold(x, 3, padding=1, stride=2)
    return F.fold(seen * seen, (24, 24), 3, padding=1, stride=2), x.unfold(2, 4, 2).unfold(3, 4, 4).square().mean((-1, -2))


@program("kinds-of-spectra", (4, 120))
def kinds_of_spectra(x):
    half, plane = torch.fft.rfft(x, norm="ortho"), torch.fft.fft2(x.view(4, 10, 12))
    short = torch.stft(x, 16, 4, window=torch.hann_window(16, dtype=x.dtype), return_complex=True)
    return torch.fft.irfft(half * half.conj(), n=120), plane.abs(), torch.fft.ifft(torch.fft.fft(x, n=147)).real, short.abs()


@program("odd-einsums", (3, 14, 15), (15, 14), (13, 13), (14,))
def odd_einsums(a, b, m, v):
    return (
        torch.einsum("ijk,kj->i", a, b), torch.einsum("ii->i", m), torch.einsum("...jk,kl->...jl", a, b), torch.einsum("ijk,j,kj->ik", a, v, b),
        torch.einsum("ij,jk,kl->il", m, m, m), torch.einsum("a,b->ab", v, v), torch.einsum("ijj->i", a[:, :, :14]), torch.einsum("ii", m),
    )  # fmt: skip


@program("derivatives-of-functions", (6, 8), (8, 5))
def derivatives_of_functions(x, w):
    def f(x, w):
        return (x @ w).tanh().square().sum()

    slopes, each = grad(f, argnums=(0, 1))(x, w), vmap(grad(f, argnums=1), (0, None))(x, w)
    _, along = jvp(f, (x, w), (x * 2, w))
    value, back = vjp(lambda x: x @ w, x)
    return slopes, each, along, hessian(lambda v: v.sin().prod())(x[0]), jacfwd(lambda v: v @ w)(x[0]), back(value)


class Rounded(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, steps):
        ctx.save_for_backward(x)
        ctx.steps = steps
        return (x * steps).round() / steps

    @staticmethod
    def backward(ctx, slope):
        (x,) = ctx.saved_tensors
        return slope * (x.abs() < ctx.steps), None


@program("rounded-straight-through", (32, 48), weight=(48, 48))
def rounded_straight_through(x, weight):
    return Rounded.apply(x, 4.0) @ Rounded.apply(weight, 8.0)


@program("norms-of-weights", (4, 12, 16), integers(50, 4, 12))
class NormsOfWeights(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.bag, self.norm = nn.Embedding(50, 16, padding_idx=0), nn.EmbeddingBag(50, 16, mode="mean"), nn.RMSNorm(16)
        self.out = parametrizations.weight_norm(nn.Linear(16, 50, bias=False))

    def forward(self, x, words):
        h = self.norm(self.table(words) + x)
        return F.cross_entropy(self.out(h).flatten(0, 1), words.flatten()), self.bag(words), h @ self.table.weight.mT


@program("three-norms-of-batches", (12, 20))
class ThreeNormsOfBatches(nn.Module):
    def __init__(self):
        super().__init__()
        self.plain, self.without, self.still = nn.BatchNorm1d(20), nn.BatchNorm1d(20, affine=False, track_running_stats=False), nn.BatchNorm1d(20)
        self.still.eval()

    def forward(self, x):
        return self.plain(x), self.without(x), self.still(x)


@program("resampled", (2, 4, 12, 12), (2, 9, 9, 2))
def resampled(x, grid):
    return (
        F.grid_sample(x, grid, align_corners=False), F.interpolate(x, scale_factor=1.7, mode="bicubic"), F.interpolate(x, size=4, mode="area"),
        F.adaptive_avg_pool2d(x, (4, 5)), F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False), F.pixel_shuffle(x, 2),
    )  # fmt: skip
