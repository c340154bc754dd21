"""Networks that people write, by hand: of sequences, of images, and parts of large models."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from torch_census_kinds import BATCHES, MODELS, images, program, program_of


class Unet(nn.Module):
    """Two levels down and up, with a skip connection each."""

    def __init__(self, width=16):
        super().__init__()
        w = width
        self.down = nn.ModuleList([self.block(3, w), self.block(w, 2 * w)])
        self.middle = self.block(2 * w, 2 * w)
        self.up = nn.ModuleList([nn.ConvTranspose2d(2 * w, 2 * w, 2, 2), nn.ConvTranspose2d(2 * w, w, 2, 2)])
        self.join = nn.ModuleList([self.block(4 * w, 2 * w), self.block(2 * w, w)])
        self.last = nn.Conv2d(w, 2, 1)

    @staticmethod
    def block(inputs, outputs):
        return nn.Sequential(nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU())

    def forward(self, x):
        kept = []
        for block in self.down:
            x = block(x)
            kept.append(x)
            x = nn.functional.max_pool2d(x, 2)
        x = self.middle(x)
        for up, join in zip(self.up, self.join):
            x = join(torch.cat([up(x), kept.pop()], 1))
        return self.last(x)


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.head = nn.LSTM(16, 32, batch_first=True), nn.Linear(32, 5)

    def forward(self, x):
        return self.head(self.cell(x)[0][:, -1])


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, dropout=0.0)
        self.inner = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def forward(self, x):
        return self.inner(x)


MODELS["nn/unet"] = lambda: (Unet(), images(32))
MODELS["nn/lstm"] = lambda: (Recurrent(), lambda variant: (torch.randn(BATCHES[variant], 7, 16),))
MODELS["nn/encoder"] = lambda: (Encoder(), lambda variant: (torch.randn(BATCHES[variant], 10, 32),))
MODELS["nn/mlp"] = lambda: (nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.LayerNorm(64), nn.Linear(64, 8)),
                            lambda variant: (torch.randn((4, 7, 9)[variant], 32),))  # fmt: skip


class Tagger(nn.Module):
    def __init__(self, kind, **options):
        super().__init__()
        self.embed = nn.Embedding(99, 32)
        self.cell = getattr(nn, kind)(32, 48, batch_first=True, **options)
        self.head = nn.Linear(48 * (2 if options.get("bidirectional") else 1), 9)

    def forward(self, x):
        return self.head(self.cell(self.embed(x))[0])


def tokens(length=8, count=99):
    return lambda v: (torch.randint(0, count, (BATCHES[v], length)),)


for kind, options in [("GRU", {}), ("RNN", {}), ("LSTM", {"num_layers": 2, "bidirectional": True})]:
    program_of(f"{kind.lower()}-tagger{'-2' if options else ''}", tokens())(lambda kind=kind, options=options: Tagger(kind, **options))


@program("lstm-cell", (7, 16))
class Cells(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.LSTMCell(16, 32)

    def forward(self, x):
        h = c = x.new_zeros(x.shape[0], 32)
        for t in range(x.shape[1]):
            h, c = self.cell(x[:, t], (h, c))
        return h


@program("gru-cell", (7, 16))
class GruCells(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(16, 32)

    def forward(self, x):
        h = x.new_zeros(x.shape[0], 32)
        out = []
        for t in range(x.shape[1]):
            h = self.cell(x[:, t], h)
            out.append(h)
        return torch.stack(out, 1)


@program("transformer", (8, 32), (6, 32))
class Translate(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Transformer(32, 4, 2, 2, 64, batch_first=True, dropout=0.0)

    def forward(self, a, b):
        return self.inner(a, b, tgt_mask=nn.Transformer.generate_square_subsequent_mask(b.shape[1], device=b.device, dtype=b.dtype))


@program("encoder-padded", (8, 32))
class Padded(nn.Module):
    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, dropout=0.0, norm_first=True)
        self.inner = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def forward(self, x):
        padding = torch.arange(x.shape[1], device=x.device) >= 6
        return self.inner(x, src_key_padding_mask=padding.expand(x.shape[0], -1))


class Residual(nn.Module):
    def __init__(self, i, o, t):
        super().__init__()
        self.a, self.b = nn.Conv2d(i, o, 3, padding=1), nn.Conv2d(o, o, 3, padding=1)
        self.n1, self.n2, self.t = nn.GroupNorm(4, i), nn.GroupNorm(4, o), nn.Linear(t, o)
        self.skip = nn.Conv2d(i, o, 1) if i != o else nn.Identity()

    def forward(self, x, t):
        h = self.a(F.silu(self.n1(x))) + self.t(F.silu(t))[:, :, None, None]
        return self.skip(x) + self.b(F.silu(self.n2(h)))


class Mixing(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.norm, self.qkv, self.out = nn.GroupNorm(4, c), nn.Conv2d(c, 3 * c, 1), nn.Conv2d(c, c, 1)

    def forward(self, x):
        b, c, h, w = x.shape
        q, k, v = self.qkv(self.norm(x)).view(b, 3, 4, c // 4, h * w).transpose(-1, -2).unbind(1)
        return x + self.out(F.scaled_dot_product_attention(q, k, v).transpose(-1, -2).reshape(b, c, h, w))


@program_of("diffusion-unet", lambda v: (torch.randn(BATCHES[v], 3, 16, 16), torch.randint(0, 1000, (BATCHES[v],))))
class Diffusion(nn.Module):
    def __init__(self, c=16):
        super().__init__()
        self.time = nn.Sequential(nn.Linear(32, 64), nn.SiLU(), nn.Linear(64, 64))
        self.first = nn.Conv2d(3, c, 3, padding=1)
        self.down, self.middle, self.mix = Residual(c, 2 * c, 64), Residual(2 * c, 2 * c, 64), Mixing(2 * c)
        self.up, self.last = Residual(3 * c, c, 64), nn.Conv2d(c, 3, 3, padding=1)

    def forward(self, x, t):
        rates = torch.exp(-math.log(10000) * torch.arange(16, device=x.device, dtype=x.dtype) / 16)
        angles = t[:, None] * rates
        e = self.time(torch.cat([angles.sin(), angles.cos()], 1))
        x = self.first(x)
        h = self.mix(self.middle(self.down(F.avg_pool2d(x, 2), e), e))
        return self.last(self.up(torch.cat([F.interpolate(h, scale_factor=2, mode="nearest"), x], 1), e))


@program_of("diffusion-step", lambda v:
            (torch.randn(BATCHES[v], 3, 16, 16), torch.randn(BATCHES[v], 3, 16, 16), torch.randint(0, 100, (BATCHES[v], ))))
class DiffusionLoss(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = Diffusion()
        self.register_buffer("alphas", torch.cumprod(1 - torch.linspace(1e-4, 0.02, 100), 0))

    def forward(self, x, noise, t):
        a = self.alphas[t][:, None, None, None]
        return F.mse_loss(self.net(a.sqrt() * x + (1 - a).sqrt() * noise, t), noise)


@program("vae", (3, 16, 16), (8,))
class Vae(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode = nn.Sequential(nn.Conv2d(3, 16, 4, 2, 1), nn.LeakyReLU(), nn.Conv2d(16, 32, 4, 2, 1), nn.LeakyReLU(), nn.Flatten(),
                                    nn.Linear(512, 16))
        self.decode = nn.Sequential(nn.Linear(8, 512), nn.Unflatten(1, (32, 4, 4)), nn.ConvTranspose2d(32, 16, 4, 2, 1), nn.ELU(),
                                    nn.ConvTranspose2d(16, 3, 4, 2, 1))

    def forward(self, x, noise):
        mean, log_variance = self.encode(x).chunk(2, 1)
        y = self.decode(mean + noise * (0.5 * log_variance).exp())
        return F.binary_cross_entropy_with_logits(y, x.sigmoid()) - 0.5 * (1 + log_variance - mean**2 - log_variance.exp()).sum(1).mean(), y


@program("vq-vae", (3, 16, 16))
class VqVae(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode, self.decode = nn.Conv2d(3, 8, 4, 4), nn.ConvTranspose2d(8, 3, 4, 4)
        self.codes = nn.Embedding(32, 8)

    def forward(self, x):
        z = self.encode(x).permute(0, 2, 3, 1)
        flat = z.reshape(-1, 8)
        distances = flat.pow(2).sum(1, keepdim=True) - 2 * flat @ self.codes.weight.t() + self.codes.weight.pow(2).sum(1)
        chosen = self.codes(distances.argmin(1)).view_as(z)
        loss = F.mse_loss(chosen.detach(), z) + F.mse_loss(chosen, z.detach())
        return self.decode((z + (chosen - z).detach()).permute(0, 3, 1, 2)), loss


@program("gan", (16,), (3, 16, 16))
class Gan(nn.Module):
    def __init__(self):
        super().__init__()
        self.make = nn.Sequential(nn.Unflatten(1, (16, 1, 1)), nn.ConvTranspose2d(16, 32, 4), nn.BatchNorm2d(32), nn.ReLU(True),
                                  nn.ConvTranspose2d(32, 16, 4, 2, 1), nn.BatchNorm2d(16), nn.ReLU(True),
                                  nn.ConvTranspose2d(16, 3, 4, 2, 1), nn.Tanh())
        self.judge = nn.Sequential(nn.utils.parametrizations.spectral_norm(nn.Conv2d(3, 16, 4, 2, 1)), nn.LeakyReLU(0.2),
                                   nn.Conv2d(16, 32, 4, 2, 1), nn.InstanceNorm2d(32, affine=True), nn.LeakyReLU(0.2), nn.Conv2d(32, 1, 4))

    def forward(self, noise, real):
        return F.softplus(-self.judge(real)).mean() + F.softplus(self.judge(self.make(noise))).mean()


@program("checkpoint", (16,))
class Checkpointed(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Sequential(nn.Linear(16, 64), nn.GELU(), nn.Linear(64, 16)), nn.Linear(16, 4)

    def forward(self, x):
        return self.b(torch.utils.checkpoint.checkpoint(self.a, x, use_reentrant=False))


@program("moving-average", (8,))
class Averages(nn.Module):
    """Writes buffers."""

    def __init__(self):
        super().__init__()
        self.net, self.norm = nn.Linear(8, 8), nn.BatchNorm1d(8)
        self.register_buffer("mean", torch.zeros(8))
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

    def forward(self, x):
        y = self.norm(self.net(x))
        self.mean.mul_(0.9).add_(y.detach().mean(0), alpha=0.1)
        self.calls += 1
        return y - self.mean


@program_of("kv-cache", lambda v: (torch.randn(2, 1, 32), torch.tensor(v + 3)))
class Cache(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(32, 96), nn.Linear(32, 32)
        self.register_buffer("k", torch.zeros(2, 4, 16, 8))
        self.register_buffer("v", torch.zeros(2, 4, 16, 8))

    def forward(self, x, place):
        q, k, v = self.qkv(x).view(2, 1, 3, 4, 8).permute(2, 0, 3, 1, 4).unbind(0)
        self.k.index_copy_(2, place.view(1), k.detach())
        self.v.index_copy_(2, place.view(1), v.detach())
        mask = torch.arange(16, device=x.device) <= place
        return self.out(F.scaled_dot_product_attention(q, self.k, self.v, mask[None, None, None]).transpose(1, 2).reshape(2, 1, 32))


@program("moe", (6, 16))
class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.route = nn.Linear(16, 4)
        self.up, self.down = nn.Parameter(torch.randn(4, 16, 32) * 0.1), nn.Parameter(torch.randn(4, 32, 16) * 0.1)

    def forward(self, x):
        weight, chosen = self.route(x).softmax(-1).topk(2)
        hidden = torch.einsum("btd,edf->btef", x, self.up).relu()
        out = torch.einsum("btef,efd->bted", hidden, self.down)
        return (torch.gather(out, 2, chosen[..., None].expand(-1, -1, -1, 16)) * (weight / weight.sum(-1, keepdim=True))[..., None]).sum(2)


@program("moe-loop", (6, 16))
class ExpertLoop(nn.Module):
    def __init__(self):
        super().__init__()
        self.route = nn.Linear(16, 4)
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(16, 32), nn.SiLU(), nn.Linear(32, 16)) for _ in range(4))

    def forward(self, x):
        flat = x.flatten(0, 1)
        weight, chosen = self.route(flat).softmax(-1).topk(2)
        total = torch.zeros_like(flat)
        for number, expert in enumerate(self.experts):
            rows, which = torch.where(chosen == number)
            total.index_add_(0, rows, expert(flat[rows]) * weight[rows, which, None])
        return total.view_as(x)


@program("two-towers", (3, 16, 16), (12,))
class Contrast(nn.Module):
    def __init__(self):
        super().__init__()
        self.image, self.text = nn.Sequential(nn.Conv2d(3, 8, 4, 4), nn.Flatten(), nn.Linear(128, 16)), nn.Linear(12, 16)
        self.scale = nn.Parameter(torch.tensor(2.0))

    def forward(self, image, text):
        a, b = F.normalize(self.image(image), dim=-1), F.normalize(self.text(text), dim=-1)
        logits = self.scale.exp() * a @ b.t()
        goal = torch.arange(a.shape[0], device=a.device)
        return (F.cross_entropy(logits, goal) + F.cross_entropy(logits.t(), goal)) / 2


@program("stacked-heads", (8,))
class Ensemble(nn.Module):
    """Several models at once, by vmap over their stacked weights."""

    def __init__(self):
        super().__init__()
        self.w1, self.b1, self.w2 = nn.Parameter(torch.randn(3, 16, 8)), nn.Parameter(torch.randn(3,
                                                                                                  16)), nn.Parameter(torch.randn(3, 2, 16))

    def forward(self, x):
        return torch.func.vmap(lambda a, b, c: F.linear(F.relu(F.linear(x, a, b)), c))(self.w1, self.b1, self.w2)


@program("flex-masks", (2, 16, 8))
class Alibi(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(8, 24)

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, -1)
        n = x.shape[-2]
        place = torch.arange(n, device=x.device)
        bias = -(place[:, None] - place[None]).abs() * torch.tensor([0.5, 0.25], device=x.device)[:, None, None]
        bias = bias.masked_fill(place[:, None] < place[None], float("-inf")).to(x.dtype)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=bias.expand(x.shape[0], -1, -1, -1))


@program("lora", (6, 16))
class Lora(nn.Module):
    def __init__(self):
        super().__init__()
        self.base = nn.Linear(16, 16).requires_grad_(False)
        self.a, self.b = nn.Parameter(torch.randn(4, 16)), nn.Parameter(torch.randn(16, 4))

    def forward(self, x):
        return self.base(x) + F.linear(F.linear(x, self.a), self.b) * 2


@program("int8-weights", (6, 16))
class Int8(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("weight", torch.randint(-127, 127, (32, 16), dtype=torch.int8))
        self.scale = nn.Parameter(torch.rand(32, 1) / 100)

    def forward(self, x):
        return F.linear(x, self.weight.to(x.dtype) * self.scale)


@program("packed-4bit", (6, 16))
class Packed(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("weight", torch.randint(0, 255, (32, 8), dtype=torch.uint8))
        self.scale = nn.Parameter(torch.rand(32, 1) / 10)

    def forward(self, x):
        low, high = (self.weight & 15).to(torch.int8) - 8, (self.weight >> 4).to(torch.int8) - 8
        return F.linear(x, torch.stack([low, high], -1).flatten(1).to(x.dtype) * self.scale)


@program("beam-step", (6, 20))
class Beam(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(20, 20)

    def forward(self, x):
        scores = self.head(x).log_softmax(-1) + x[..., :1]
        best, place = scores.flatten(1).topk(6)
        sorted_scores, order = scores.sort(-1, descending=True)
        keep = sorted_scores.softmax(-1).cumsum(-1) < 0.9
        nucleus = torch.zeros_like(scores).scatter(-1, order, keep.to(scores.dtype))
        return best, place // 20, place % 20, scores * nucleus


@program("crf", (7, 5))
class Crf(nn.Module):
    def __init__(self):
        super().__init__()
        self.net, self.moves = nn.Linear(5, 4), nn.Parameter(torch.randn(4, 4))

    def forward(self, x):
        e = self.net(x)
        total, best = e[:, 0], e[:, 0]
        back = []
        for t in range(1, x.shape[1]):
            total = torch.logsumexp(total[:, :, None] + self.moves, 1) + e[:, t]
            best, place = (best[:, :, None] + self.moves).max(1)
            best = best + e[:, t]
            back.append(place)
        return total.logsumexp(1), best.max(1)[0], torch.stack(back, 1)
