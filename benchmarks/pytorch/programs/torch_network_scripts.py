"""Further SCRIPTS: routers, graphs of nodes, quantised and adapted training, attention with masks, recurrences, spectra and open batches, by hand."""

import math

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.attention.flex_attention import create_block_mask, flex_attention
from torch.utils.checkpoint import checkpoint
from torch_training_scripts import descend, perceptron, script, trained


@script("sorted-experts")
def sorted_experts(run):
    """Rows sorted by their expert into rooms of a given size, products of all experts at once, rows brought back; losses that balance."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.gate = nn.Linear(32, 8, bias=False)
            self.up, self.down = nn.Parameter(torch.randn(8, 32, 64) * 0.1), nn.Parameter(torch.randn(8, 64, 32) * 0.1)

        def forward(self, x):
            lines = self.gate(x)
            share, chosen = lines.softmax(-1).topk(2, dim=-1)
            share, flat = share / share.sum(-1, keepdim=True), chosen.flatten()
            order = flat.argsort(stable=True)
            count = torch.zeros(8, dtype=torch.long).scatter_add(0, flat, torch.ones_like(flat))
            place = torch.arange(len(flat)) - (count.cumsum(0) - count)[flat[order]]
            kept = place < 20
            slot = torch.where(kept, flat[order] * 20 + place, 160)
            rooms = x.new_zeros(161, 32).index_copy(0, slot, x[order // 2])[:160].view(8, 20, 32)
            made = F.pad((F.silu(rooms @ self.up) @ self.down).view(160, 32), (0, 0, 0, 1))[slot]
            y = torch.zeros_like(x).index_add(0, order // 2, made * share.flatten()[order, None])
            return y, 8 * (count / len(flat)).to(x.dtype).detach() @ lines.softmax(-1).mean(0) + 1e-2 * lines.logsumexp(-1).square().mean()

    net = run(Net())
    forward, optimizer = run.compile(net), torch.optim.SGD(net.parameters(), 0.1)

    def step(x, y):
        made, balance = forward(x)
        return descend(optimizer, F.mse_loss(made, y) + balance)

    return trained(net, step, [(run.normal(64, 32), run.normal(64, 32)) for _ in range(3)])


@script("edge-softmax")
def edge_softmax(run):
    """Attention along edges, whose softmax is by scatter_reduce, layers that add (GIN), and several folds side by side (PNA)."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.turn, self.score, self.edge = nn.Linear(12, 32), nn.Parameter(torch.randn(4, 16)), nn.Linear(5, 32)
            self.grow, self.out = perceptron(run, 32, 64, 32), nn.Linear(32 * 4, 3)

        def forward(self, x, source, goal, edges):
            n = len(x)
            h = self.turn(x).view(n, 4, 8)
            score = F.leaky_relu((torch.cat([h[source] + self.edge(edges).view(-1, 4, 8), h[goal]], -1) * self.score).sum(-1), 0.2)
            at = goal[:, None].expand(-1, 4)
            top = torch.full((n, 4), -1e9, dtype=x.dtype).scatter_reduce(0, at, score.detach(), "amax")
            e = (score - top[goal]).exp()
            e = e / (torch.zeros(n, 4, dtype=x.dtype).index_add(0, goal, e) + 1e-9)[goal]
            h = torch.zeros_like(h).index_add(0, goal, h[source] * e[..., None]).flatten(1)
            h = self.grow(h + torch.zeros_like(h).index_add(0, goal, F.relu(h[source])))
            wide = goal[:, None].expand(-1, 32)
            folds = [torch.zeros_like(h).scatter_reduce(0, wide, h[source], kind, include_self=False) for kind in ("mean", "amax", "amin", "sum")]
            return self.out(torch.cat(folds, -1))

    net = run(Net())
    forward, optimizer = run.compile(net), torch.optim.Adam(net.parameters(), 1e-2)

    def step(x, source, goal, edges, y):
        return descend(optimizer, F.cross_entropy(forward(x, source, goal, edges), y))

    return trained(net, step, [(run.normal(30, 12), torch.randint(30, (120,)), torch.randint(30, (120,)), run.normal(120, 5), torch.randint(3, (30,))) for _ in range(3)])


class Stepped(torch.autograd.Function):
    """Rounding to steps that are learned (LSQ)."""

    @staticmethod
    def forward(ctx, x, step, low, high):
        ctx.save_for_backward(x, step)
        ctx.limits = low, high
        return (x / step).round().clamp(low, high) * step

    @staticmethod
    def backward(ctx, g):
        x, step = ctx.saved_tensors
        low, high = ctx.limits
        q = x / step
        inside = (q >= low) & (q <= high)
        slope = torch.where(inside, q.round() - q, q.clamp(low, high))
        dims = [d for d in range(x.dim()) if step.dim() == 0 or step.shape[d] == 1]
        return g * inside, (g * slope).sum(dims, keepdim=step.dim() > 0) / math.sqrt(x.numel() * high), None, None


@script("learned-steps")
def learned_steps(run):
    """Training of a small network of images whose weights (by channel) and activations are rounded, with batch norms folded into weights."""
    class Layer(nn.Module):
        def __init__(self, a, b, stride=1):
            super().__init__()
            self.conv, self.norm = nn.Conv2d(a, b, 3, stride, 1, bias=False), nn.BatchNorm2d(b)
            self.w, self.a = nn.Parameter(torch.full((b, 1, 1, 1), 0.02)), nn.Parameter(torch.tensor(0.05))

        def forward(self, x):
            y = F.conv2d(Stepped.apply(x, self.a, -128, 127), Stepped.apply(self.conv.weight, self.w, -8, 7), None, self.conv.stride, 1)
            return F.relu6(self.norm(y))

    net = run(nn.Sequential(Layer(3, 16), Layer(16, 24, 2), Layer(24, 32, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 4)))
    forward, optimizer = run.compile(net), torch.optim.SGD(net.parameters(), 0.02, momentum=0.9)

    def step(x, y):
        return descend(optimizer, F.cross_entropy(forward(x), y))

    return trained(net, step, [(run.normal(4, 3, 16, 16), torch.randint(4, (4,))) for _ in range(2)])


class Attended(nn.Module):
    """A layer of MultiheadAttention with masks of both kinds, whose products may have adapters."""

    def __init__(self, width=64, heads=4, rank=0):
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.attention, self.up, self.down = nn.MultiheadAttention(width, heads, batch_first=True), nn.Linear(width, 2 * width), nn.Linear(2 * width, width)
        self.a, self.b = (nn.Parameter(torch.randn(width, rank) * 0.1), nn.Parameter(torch.zeros(rank, 2 * width))) if rank else (None, None)

    def forward(self, x, mask, padded, needs=False):
        h = self.norms[0](x)
        h, seen = self.attention(h, h, h, attn_mask=mask, key_padding_mask=padded, need_weights=needs, average_attn_weights=False)
        x = x + h
        h = self.norms[1](x)
        up = self.up(h) + (h @ self.a @ self.b if self.a is not None else 0)
        return x + self.down(F.gelu(up)), seen


@script("adapted-ema")
def adapted_ema(run):
    """Adapters trained in bf16 under checkpoints, all else frozen, with a moving average and a warm-up that is a tensor."""
    net = run(nn.ModuleList(Attended(rank=4) for _ in range(2)))
    for name, p in net.named_parameters():
        p.requires_grad_(name.endswith((".a", ".b")) or "norms" in name)
    kept = [p for p in net.parameters() if p.requires_grad]
    slow, optimizer = [p.detach().clone() for p in kept], torch.optim.AdamW(kept, lr=torch.tensor(1e-3))
    mask = torch.ones(12, 12, dtype=torch.bool).triu(1)

    @run.compile
    def loss_of(x, y, padded):
        with run.autocast():
            for layer in net:
                x = checkpoint(lambda x, layer=layer: layer(x, mask, padded)[0], x, use_reentrant=False)
            return ((x - y).square() * ~padded[..., None]).mean()

    @run.compile
    def follow():
        torch._foreach_lerp_(slow, kept, 0.1)

    def step(x, y, padded):
        loss = descend(optimizer, loss_of(x, y, padded))
        with torch.no_grad():
            follow()
        return loss

    results, again = trained(net, step, [(run.normal(4, 12, 64), run.normal(4, 12, 64), torch.arange(12) >= torch.tensor([[12], [9], [7], [10]])) for _ in range(3)])
    return [*results, *slow], again


@script("masked-heads")
def masked_heads(run):
    """MultiheadAttention that gives its weights for each head, with a mask of numbers and of ends; and in eval, where torch takes its fast path."""
    net = run(nn.ModuleList(Attended() for _ in range(2)))
    mask = run(torch.randn(10, 10))

    @run.compile
    def forward(x, padded):
        seen = []
        for layer in net:
            x, w = layer(x, mask, torch.zeros(padded.shape, dtype=x.dtype).masked_fill(padded, -1e4), needs=True)
            seen.append(w)
        return x, torch.stack(seen)

    optimizer = torch.optim.RMSprop(net.parameters(), 1e-3)

    def step(x, padded):
        y, seen = forward(x, padded)
        return descend(optimizer, y.square().mean() + (seen * (seen + 1e-6).log()).sum(-1).mean())

    given = [(run.normal(3, 10, 64), torch.arange(10) >= torch.tensor([[10], [6], [8]])) for _ in range(2)]
    results, again = trained(net, step, given)
    net.eval()
    with torch.no_grad():
        return [*results, *forward(*given[0])], again


@script("encoder-decoder-bf16")
def encoder_decoder_bf16(run):
    """nn.Transformer with autocast, masks of lengths, tied words, smoothed labels and clipped gradients."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.places = nn.Embedding(60, 48, padding_idx=0), nn.Parameter(torch.randn(16, 48) * 0.1)
            self.body = nn.Transformer(48, 4, 2, 2, 96, dropout=0.0, batch_first=True, norm_first=True)

        def forward(self, x, y):
            a, b = (self.words(t) * 48**0.5 + self.places[:t.shape[1]] for t in (x, y))
            causal = torch.ones(y.shape[1], y.shape[1], dtype=torch.bool).triu(1)
            return F.linear(self.body(a, b, tgt_mask=causal, src_key_padding_mask=x == 0, tgt_key_padding_mask=y == 0, memory_key_padding_mask=x == 0), self.words.weight)

    net = run(Net())
    forward, optimizer = run.compile(net), torch.optim.SGD(net.parameters(), 1e-3)

    def step(x, y):
        with run.autocast():
            lines = forward(x, y[:, :-1])
        loss = F.cross_entropy(lines.flatten(0, 1).to(torch.float64 if run.exact else torch.float32), y[:, 1:].flatten(), ignore_index=0, label_smoothing=0.1)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        return loss

    def words(rows, length):
        ends = torch.randint(length // 2, length, (rows, 1))
        return torch.randint(1, 60, (rows, length)) * (torch.arange(length) < ends)

    return trained(net, step, [(words(4, 14), words(4, 11)) for _ in range(2)])


@script("flex-kinds")
def flex_kinds(run):
    """flex_attention with slopes, capped scores, windows and documents, of grouped heads."""
    slopes = run(2.0 ** -torch.arange(1, 9).to(torch.float32))
    document = torch.tensor([0] * 20 + [1] * 30 + [2] * 14)

    @run.compile
    def forward(q, k, v, block):
        def score(s, b, h, i, j):
            return 20 * torch.tanh((s + slopes[h] * (j - i)) / 20)

        return flex_attention(q, k, v, score_mod=score, block_mask=block, enable_gqa=True)

    block = create_block_mask(lambda b, h, i, j: (i >= j) & (i - j < 16) & (document[i] == document[j]), None, None, 64, 64, device="cpu")
    given = run.normal(2, 8, 64, 16), run.normal(2, 2, 64, 16), run.normal(2, 2, 64, 16)

    def again():
        with torch.no_grad():
            return forward(*given, block)

    return [again()], again


@script("two-directions")
def two_directions(run):
    """A GRU's cells both ways over sequences of several lengths, with layer norms, reversed by gathers, and a pooling by attention."""
    class Cells(nn.Module):
        def __init__(self, a, b):
            super().__init__()
            self.x, self.h, self.norm = nn.Linear(a, 3 * b), nn.Linear(b, 3 * b), nn.LayerNorm(b)

        def forward(self, x, lengths):
            gates, h, found = self.x(x), x.new_zeros(len(x), self.h.out_features // 3), []
            for t in range(x.shape[1]):
                (r, z, n), (hr, hz, hn) = gates[:, t].chunk(3, 1), self.h(h).chunk(3, 1)
                z = (z + hz).sigmoid()
                new = self.norm((1 - z) * torch.tanh(n + (r + hr).sigmoid() * hn) + z * h)
                h = torch.where((t < lengths)[:, None], new, h)
                found.append(h)
            return torch.stack(found, 1)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.there, self.back, self.score, self.out = Cells(12, 24), Cells(12, 24), nn.Linear(48, 1), nn.Linear(48, 4)

        def forward(self, x, lengths):
            at = torch.arange(x.shape[1])
            turn = torch.where(at < lengths[:, None], lengths[:, None] - 1 - at, at)[..., None]
            back = self.back(x.gather(1, turn.expand_as(x)), lengths)
            h = torch.cat([self.there(x, lengths), back.gather(1, turn.expand_as(back))], -1)
            share = self.score(h)[..., 0].masked_fill(at >= lengths[:, None], -torch.inf).softmax(1)
            return self.out((share[:, None] @ h)[:, 0])

    net = run(Net())
    forward, optimizer = run.compile(net), torch.optim.Adam(net.parameters(), 1e-2)

    def step(x, lengths, y):
        return descend(optimizer, F.cross_entropy(forward(x, lengths), y))

    return trained(net, step, [(run.normal(6, 9, 12), torch.randint(3, 10, (6,)), torch.randint(4, (6,))) for _ in range(2)])


@script("spectral-operator")
def spectral_operator(run):
    """Fourier layers in two dims with complex weights, spectra of real fields, losses of norms and of slopes in frequencies."""
    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.low, self.high = (nn.Parameter(torch.randn(12, 12, 5, 5, dtype=torch.cfloat) / 12) for _ in range(2))
            self.side, self.norm = nn.Conv2d(12, 12, 1), nn.GroupNorm(3, 12)

        def forward(self, x):
            f = torch.fft.rfft2(x, norm="ortho")
            out = torch.zeros_like(f)
            out[:, :, :5, :5] = torch.einsum("bixy,ioxy->boxy", f[:, :, :5, :5], self.low)
            out[:, :, -5:, :5] = torch.einsum("bixy,ioxy->boxy", f[:, :, -5:, :5], self.high)
            return F.gelu(self.norm(torch.fft.irfft2(out, s=x.shape[-2:], norm="ortho") + self.side(x)))

    net = nn.Sequential(nn.Conv2d(3, 12, 1), Layer(), Layer(), nn.Conv2d(12, 1, 1))
    if run.exact:
        for p in net.parameters():
            p.data = run(p.data)
    optimizer = torch.optim.SGD(net.parameters(), 0.05, momentum=0.9)

    @run.compile
    def loss_of(x, y):
        z = net(x)
        slope = 2j * math.pi * torch.fft.fftfreq(16, dtype=x.dtype)[:, None]
        apart = torch.fft.ifft2(slope * torch.fft.fft2(z - y)).real
        return ((z - y).flatten(1).norm(dim=1) / y.flatten(1).norm(dim=1)).mean() + apart.square().mean() + torch.fft.rfft2(z - y).abs().mean()

    def step(*given):
        return descend(optimizer, loss_of(*given))

    return trained(net, step, [(run.normal(2, 3, 16, 16), run.normal(2, 1, 16, 16)) for _ in range(2)])


@script("open-training")
def open_training(run):
    """Convolutions, attention over what they give, and a step for batches of several sizes, with dynamic=True."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem, self.attend, self.out = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1), nn.GroupNorm(4, 16), nn.SiLU(), nn.Conv2d(16, 64, 3, 2, 1)), Attended(), nn.Linear(64, 5)

        def forward(self, x):
            h = self.stem(x).flatten(2).mT
            return self.out(self.attend(h, None, None)[0].mean(1))

    net = run(Net())
    forward, optimizer = run.compile(net, dynamic=True), torch.optim.Adam(net.parameters(), 1e-3)

    def step(x, y):
        return descend(optimizer, F.cross_entropy(forward(x), y))

    return trained(net, step, [(run.normal(b, 3, 16, 16), torch.randint(5, (b,))) for b in (3, 5, 8, 1, 6)])
