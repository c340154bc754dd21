"""More programs of the form of torch_use_programs.py, which are added to its PROGRAMS: whole steps, adapters, parametrisations, attention by masks,
lattices, caches of transformers."""

import math

import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call, grad_and_value, jacfwd, jacrev, vmap
from torch.nn.attention.flex_attention import create_block_mask, flex_attention
from torch.nn.utils import parametrizations
from torch_use_programs import integers, program, truths

# Whole steps of training.


@program("sgd-step-average", (8, 3, 16, 16), (8, 3, 16, 16), trains=False)
class StepWithAverage(nn.Module):
    """Gradients, a step with momentum, and an average of parameters, in one graph."""

    def __init__(self):
        super().__init__()
        layers = [nn.Conv2d(3, 16, 3, 1, 1), nn.GroupNorm(4, 16), nn.SiLU(), nn.Conv2d(16, 32, 3, 2, 1), nn.SiLU(), nn.ConvTranspose2d(32, 3, 2, 2)]
        self.net = nn.Sequential(*layers).to("meta")
        for name, p in self.net.named_parameters():
            name = name.replace(".", "_")
            value = torch.randn(p.shape) / math.sqrt(p[0].numel())
            for kind in ("now", "speed", "mean"):
                self.register_buffer(f"{kind}_{name}", value.clone() if kind != "speed" else torch.zeros(p.shape))

    def forward(self, x, noise):
        names = [name for name, _ in self.net.named_parameters()]
        now = {name: getattr(self, "now_" + name.replace(".", "_")) for name in names}
        slope, loss = grad_and_value(lambda p: (functional_call(self.net, p, (x + 0.3 * noise,)) - noise).square().mean())(now)
        length = torch.stack([g.square().sum() for g in slope.values()]).sum().sqrt()
        for name in names:
            tail = name.replace(".", "_")
            speed = getattr(self, "speed_" + tail).mul_(0.9).add_(slope[name] / length.clamp(min=1))
            now[name].sub_(1e-2 * speed)
            getattr(self, "mean_" + tail).lerp_(now[name], 0.01)
        return loss, length


@program("scaled-clipped-step", (48, 24), (48,), (8, 48), (8,), (16, 3, 3, 3), (16,), trains=False)
class ScaledStep(nn.Module):
    """Gradients in parts that add up, unscaled, clipped by their length, and left out where one is not finite."""

    def __init__(self):
        super().__init__()
        self.net = nn.ModuleList([nn.Linear(24, 48), nn.Linear(48, 8), nn.Conv2d(3, 16, 3)])
        self.register_buffer("scale", torch.tensor(1024.0))
        self.register_buffer("good", torch.zeros((), dtype=torch.long))
        for i, p in enumerate(self.net.parameters()):
            self.register_buffer(f"sum_{i}", torch.zeros(p.shape))

    def forward(self, *gradients):
        sums = [getattr(self, f"sum_{i}") for i in range(len(gradients))]
        torch._foreach_add_(sums, [g * self.scale for g in gradients])
        unscaled = torch._foreach_div(sums, self.scale)
        length = torch.linalg.vector_norm(torch.stack(torch._foreach_norm(unscaled)))
        finite = length.isfinite()
        factor = torch.where(finite, (1.0 / (length + 1e-6)).clamp(max=1.0), 0.0)
        with torch.no_grad():
            for p, g in zip(self.net.parameters(), unscaled):
                p.sub_(1e-2 * torch.where(finite, g * factor, 0.0))
            self.good.copy_(torch.where(finite, self.good + 1, 0))
            self.scale.copy_(torch.where(finite, torch.where(self.good % 2 == 0, self.scale * 2, self.scale), self.scale / 2))
        torch._foreach_zero_(sums)
        return length, [p.detach() for p in self.net.parameters()]


@program("adapters", (4, 12, 48))
class Adapters(nn.Module):
    """Low ranks beside frozen projections, and magnitudes of columns."""

    def __init__(self):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(48, 4, 96, 0.0, batch_first=True).requires_grad_(False)
        self.down = nn.ParameterList(nn.Parameter(torch.randn(4, 48) / 7) for _ in range(2))
        self.up = nn.ParameterList(nn.Parameter(torch.randn(n, 4) / 9) for n in (96, 48))
        self.size = nn.Parameter(torch.ones(96))

    def forward(self, x):
        with_down = self.layer.linear1.weight + self.up[0] @ self.down[0]
        weight = self.size[:, None] * with_down / with_down.norm(dim=1, keepdim=True).detach()
        h = F.linear(self.layer.norm1(x + self.layer._sa_block(x, None, None)), weight, self.layer.linear1.bias)
        return self.layer(x) + F.linear(F.linear(h.relu()[..., :48], self.down[1]), self.up[1])


# Functions of functions, and of one's own.


@program("second-derivatives", (12, 3), weight=(16, 3), out=(2, 16))
def second_derivatives(x, weight, out):
    def net(p):
        return torch.sin(p @ weight.T) @ out.T

    bends = vmap(jacrev(jacrev(lambda p: net(p).square().sum())))(x)
    slopes = vmap(jacfwd(net))(x)
    return bends, torch.einsum("nij,nik->njk", slopes, slopes)


class StraightThrough(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, steps):
        ctx.save_for_backward(x)
        ctx.steps = steps
        y = (x.clamp(-1, 1) * steps).round() / steps
        return y, (x.abs() > 1).to(torch.int8)

    @staticmethod
    def backward(ctx, slope, _):
        (x,) = ctx.saved_tensors
        return torch.where(x.abs() <= 1, slope, 0.1 * slope / ctx.steps), None


@program("own-gradient", (10, 24), weight=(32, 24))
def own_gradient(x, weight):
    y, out = StraightThrough.apply(x @ weight.T, 7)
    z, _ = StraightThrough.apply(y * 1.7, 3)
    return z, out.sum(-1), y.mean()


@program("parametrised", (6, 20))
class Parametrised(nn.Module):
    """Weights by norms, by largest singular values, and on spheres."""

    def __init__(self):
        super().__init__()
        self.first = parametrizations.weight_norm(nn.Linear(20, 32))
        self.second = parametrizations.spectral_norm(nn.Linear(32, 24))
        self.third = parametrizations.weight_norm(nn.Conv1d(4, 8, 3), dim=None)

    def forward(self, x):
        return self.third(self.second(self.first(x).tanh()).view(6, 4, 6)).flatten(1)


@program("hooked", (8, 16))
class Hooked(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 16))
        self.net[0].register_forward_pre_hook(lambda module, given: (given[0] * 1.5,))
        self.net[1].register_forward_hook(lambda module, given, found: found + 0.1 * given[0])

    def forward(self, x):
        y = self.net(x)
        if y.requires_grad:
            y.register_hook(lambda slope: slope.clamp(-0.01, 0.01))
        return y.softmax(-1), y


# Complex numbers.


@program("phases", (3, 16, 16), (3, 16, 16), filter=(16, 16, 2))
def phases(real, imaginary, filter):
    x = torch.complex(real, imaginary)
    y = torch.fft.fft2(x, norm="ortho") * torch.view_as_complex(filter)
    z = torch.fft.ifft2(y).conj() * x
    return z.real, z.imag.cumsum(-1), y.abs().square().mean((1, 2)), torch.polar(z.abs(), real.sigmoid()).sum(0).real


@program("chirps", (2, 256), rates=(6,))
def chirps(x, rates):
    steps = torch.arange(256, dtype=x.dtype) / 256
    turns = torch.exp(1j * (rates[:, None] * 40 * steps + 60 * steps.square()))
    mixed = (x[:, None] * turns).unfold(-1, 64, 32)
    power = torch.fft.fft(mixed * torch.hann_window(64, dtype=x.dtype)).abs().square()
    return (power + 1e-6).log().mean(-2)


# Tables.


@program("bags", integers(60, 30), lambda: torch.tensor([0, 4, 4, 11, 20]), (30,), table=(60, 16), other=(60, 16))
def bags(words, starts, shares, table, other):
    mixed = F.embedding_bag(words, table, starts, mode="sum", per_sample_weights=shares)
    means = F.embedding_bag(words, other, starts, mode="mean")
    return mixed, means, F.embedding(words.view(5, 6), table, padding_idx=0).amax(1)


@program("codebook-average", (64, 8))
class Codebook(nn.Module):
    """Vectors by the nearest of a book that follows them, and is no parameter."""

    def __init__(self):
        super().__init__()
        self.into, self.out = nn.Linear(8, 8), nn.Linear(8, 8)
        self.register_buffer("book", torch.randn(16, 8))
        self.register_buffer("count", torch.ones(16))
        self.register_buffer("sums", self.book.clone())

    def forward(self, x):
        z = self.into(x)
        nearest = torch.cdist(z, self.book).argmin(-1)
        q = self.book[nearest]
        with torch.no_grad():
            chosen = F.one_hot(nearest, 16).to(z.dtype)
            self.count.mul_(0.95).add_(chosen.sum(0), alpha=0.05)
            self.sums.mul_(0.95).add_(chosen.T @ z, alpha=0.05)
            self.book.copy_(self.sums / self.count.clamp(min=1e-3)[:, None])
        return self.out(z + (q - z).detach()), (z - q).square().mean()


@program("queue-contrast", (8, 20), (8, 20))
class Queue(nn.Module):
    """A slow copy of a network, and a queue of what it gave."""

    def __init__(self):
        super().__init__()
        self.fast = nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, 12))
        self.slow = nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, 12)).requires_grad_(False)
        self.register_buffer("kept", F.normalize(torch.randn(32, 12), dim=1))
        self.register_buffer("place", torch.zeros((), dtype=torch.long))

    def forward(self, x, y):
        with torch.no_grad():
            for a, b in zip(self.slow.parameters(), self.fast.parameters()):
                a.lerp_(b, 0.01)
            key = F.normalize(self.slow(y), dim=-1)
        query = F.normalize(self.fast(x), dim=-1)
        scores = torch.cat([(query * key).sum(-1, keepdim=True), query @ self.kept.clone().T], 1) / 0.1
        with torch.no_grad():
            self.kept.index_copy_(0, (self.place + torch.arange(8)) % 32, key)
            self.place.add_(8)
        return F.cross_entropy(scores, torch.zeros(8, dtype=torch.long))


# Attention.


@program("masked-attention", (2, 8, 24, 16), (2, 2, 30, 16), (2, 2, 30, 16), truths(2, 1, 24, 30), bias=(8, 24, 30))
def masked_attention(q, k, v, keep, bias):
    first = F.scaled_dot_product_attention(q, k, v, attn_mask=keep, enable_gqa=True)
    second = F.scaled_dot_product_attention(q, k.repeat_interleave(4, 1), v.repeat_interleave(4, 1), attn_mask=bias)
    return first, second, F.scaled_dot_product_attention(q, q, first, is_causal=True, scale=0.3)


@program("document-attention", (1, 4, 128, 16), (1, 4, 128, 16), (1, 4, 128, 16), trains=False)
class DocumentAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.slopes = nn.Parameter(torch.rand(4))
        documents = torch.arange(128) // 50
        self.mask = create_block_mask(lambda b, h, i, j: (documents[i] == documents[j]) & (i >= j), 1, None, 128, 128, device="cpu")

    def forward(self, q, k, v):
        return flex_attention(q, k, v, score_mod=lambda score, b, h, i, j: 8 * torch.tanh(score / 8) + 0.1 * (j - i), block_mask=self.mask)


@program("self-attention", (3, 20, 32), lambda: torch.rand(3, 20) > 0.8)
class SelfAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.attend = nn.MultiheadAttention(32, 4, dropout=0.0, batch_first=True, add_bias_kv=True, add_zero_attn=True)
        self.other = nn.MultiheadAttention(32, 2, kdim=16, vdim=24)

    def forward(self, x, skip):
        mask = nn.Transformer.generate_square_subsequent_mask(20, dtype=x.dtype)
        y, shares = self.attend(x, x, x, attn_mask=mask, key_padding_mask=torch.zeros_like(mask[:3]).masked_fill(skip, -1e4), average_attn_weights=False)
        return self.other(y, x[..., :16], x[..., 8:], need_weights=False)[0], shares.amax(1)


# Lattices and recurrences.


@program("soft-alignment", (4, 8, 8))
def soft_alignment(cost):
    """Soft dynamic time warping by antidiagonals."""
    rows = {(-1, -1): cost.new_zeros(4)}
    for i in range(8):
        for j in range(8):
            near = [rows[p] for p in ((i - 1, j), (i, j - 1), (i - 1, j - 1)) if p in rows]
            rows[i, j] = cost[:, i, j].square() - torch.stack(near).neg().logsumexp(0)
    return rows[7, 7]


@program("mixed-times", (2, 16, 32))
class MixedTimes(nn.Module):
    """RWKV's mixing of time, step by step."""

    def __init__(self):
        super().__init__()
        self.mix = nn.Parameter(torch.rand(3, 32))
        self.decay, self.first = nn.Parameter(torch.randn(32)), nn.Parameter(torch.randn(32))
        self.key, self.value, self.gate, self.out = (nn.Linear(32, 32, bias=False) for _ in range(4))

    def forward(self, x):
        before = F.pad(x, (0, 0, 1, -1))
        k, v, r = (net(x * m + before * (1 - m)) for net, m in zip((self.key, self.value, self.gate), self.mix))
        top, under, most = x.new_zeros(2, 32), x.new_zeros(2, 32), x.new_full((2, 32), -1e9)
        found = []
        for t in range(16):
            now = torch.maximum(most, self.first + k[:, t])
            a, b = (most - now).exp(), (self.first + k[:, t] - now).exp()
            found.append((a * top + b * v[:, t]) / (a * under + b))
            now = torch.maximum(most - self.decay.exp(), k[:, t])
            a, b = (most - self.decay.exp() - now).exp(), (k[:, t] - now).exp()
            top, under, most = a * top + b * v[:, t], a * under + b, now
        return self.out(r.sigmoid() * torch.stack(found, 1))


@program("routed-experts", (48, 32))
class RoutedExperts(nn.Module):
    """Two of four experts for each row, all computed."""

    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(32, 4)
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(32, 64), nn.SiLU(), nn.Linear(64, 32)) for _ in range(4))

    def forward(self, x):
        shares, chosen = self.gate(x).softmax(-1).topk(2)
        y = torch.zeros_like(x)
        for i, expert in enumerate(self.experts):
            y = y + expert(x) * (shares * (chosen == i)).sum(-1, keepdim=True)
        return y


# Transformers' caches.


@program("static-cache", integers(50, 2, 1), lambda: torch.tensor([5]), trains=False)
class StaticCacheStep(nn.Module):
    def __init__(self):
        super().__init__()
        from transformers import LlamaConfig, LlamaForCausalLM
        sizes = {"vocab_size": 50, "hidden_size": 64, "intermediate_size": 96, "max_position_embeddings": 64}
        self.model = LlamaForCausalLM(LlamaConfig(**sizes, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2))
        for i in range(4):
            self.register_buffer(f"cache_{i}", torch.randn(2, 2, 32, 16))

    def forward(self, tokens, place):
        keys = [self.cache_0, self.cache_1, self.cache_2, self.cache_3]
        h = self.model.model.embed_tokens(tokens)
        positions = self.model.model.rotary_emb(h, place[None])
        mask = (torch.arange(32) <= place)[None, None, None]
        for i, layer in enumerate(self.model.model.layers):
            h = layer(h, attention_mask=mask, position_embeddings=positions, past_key_values=Rows(keys[2 * i], keys[2 * i + 1], place))
            h = h[0] if isinstance(h, tuple) else h
        return self.model.lm_head(self.model.model.norm(h))


class Rows:
    """What a layer of transformers asks of a cache."""

    def __init__(self, keys, values, place):
        self.keys, self.values, self.place = keys, values, place

    def update(self, keys, values, *_, **__):
        self.keys.index_copy_(2, self.place, keys)
        self.values.index_copy_(2, self.place, values)
        return self.keys, self.values
