"""Further SCRIPTS, of habits: named results and settings in classes, modes that change between calls, copies, threads, open batches with lengths, states in
buffers, exports, casts within casts, eight bits, views, hooks."""

import collections
import copy
import dataclasses
import io
import threading
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import nn
from torch_training_scripts import descend, perceptron, script, state, trained


class Found(NamedTuple):
    logits: torch.Tensor
    hidden: torch.Tensor
    loss: torch.Tensor | None = None


@dataclasses.dataclass(frozen=True)
class Settings:
    scale: float = 0.5
    heads: int = 4
    kinds: tuple = ("mean", "max")


@dataclasses.dataclass
class Batch:
    words: torch.Tensor
    marks: torch.Tensor
    labels: torch.Tensor | None = None

    def split(self, n):
        return [Batch(w, m, y) for w, m, y in zip(self.words.chunk(n), self.marks.chunk(n), self.labels.chunk(n))]


@script("named-results")
def named_results(run):
    """A classifier that takes a dataclass or a mapping, with settings that are a dataclass, and gives a NamedTuple; labels may be absent."""
    class Net(nn.Module):
        def __init__(self, settings):
            super().__init__()
            self.settings, self.table = settings, nn.Embedding(60, 32)
            self.heads = nn.ModuleDict({kind: nn.Linear(32, 7) for kind in settings.kinds})
            self.turn = nn.ParameterDict({"a": torch.randn(32, 32) * 0.1, "b": torch.zeros(32)})

        def forward(self, batch, *, extra=None):
            words, marks = (batch["words"], batch["marks"]) if isinstance(batch, dict) else (batch.words, batch.marks)
            h = (self.table(words) @ self.turn["a"] + self.turn["b"]).tanh()
            pooled = {"mean": (h * marks[..., None]).sum(1) / marks.sum(1, keepdim=True), "max": h.masked_fill(marks[..., None] == 0, -1e4).amax(1)}
            if extra is not None:
                pooled["mean"] = pooled["mean"] + self.settings.scale * extra
            logits = sum(self.heads[kind](pooled[kind]) for kind in self.settings.kinds)
            labels = None if isinstance(batch, dict) else batch.labels
            return Found(logits, h, None if labels is None else F.cross_entropy(logits, labels))

    net = run(Net(Settings()))
    forward, optimizer, told = run.compile(net), torch.optim.Adam(net.parameters(), 1e-2), []

    def step(batch):
        found = forward(batch)
        told.append(found.logits.detach().clone())
        return descend(optimizer, found.loss)

    def batch(n, length):
        marks = run((torch.arange(length) < torch.randint(1, length + 1, (n, 1))).float())
        return Batch(torch.randint(60, (n, length)), marks, torch.randint(7, (n,)))

    results, again = trained(net, step, [(b,) for b in [batch(8, 12), *batch(12, 9).split(2), batch(3, 5)]])
    with torch.no_grad():
        asked = batch(5, 6)
        last = forward({"words": asked.words, "marks": asked.marks}, extra=run.normal(5, 32))
    return [*results, *told[:4], *last[:2]], again


@script("changing-modes")
def changing_modes(run):
    """Training, evaluation and a part that is frozen by turns; a norm with a running mean of all batches; gradients on, off, and on again."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.n1, self.b = nn.Conv2d(3, 12, 3, padding=1), nn.BatchNorm2d(12, momentum=None), nn.Conv2d(12, 12, 3, padding=1, groups=3)
            self.n2, self.out = nn.BatchNorm2d(12, momentum=0.3), nn.Linear(12, 4)

        def forward(self, x):
            x = F.relu6(self.n1(self.a(x)))
            y = self.n2(self.b(x))
            y = x + y * (0.8 if self.training else 1.0)
            return self.out(F.adaptive_avg_pool2d(y, 1).flatten(1))

    net = run(Net())
    forward, optimizer, told = run.compile(net), torch.optim.SGD(net.parameters(), 0.05, nesterov=True, momentum=0.9), []
    for turn in range(4):
        net.train()
        if turn == 2:
            net.n1.eval()
            net.a.requires_grad_(False)
        for n in (6, 4):
            told.append(descend(optimizer, F.cross_entropy(forward(run.normal(n, 3, 12, 12)), torch.randint(4, (n,)))).detach())
        net.eval()
        with torch.inference_mode() if turn % 2 else torch.no_grad():
            told.append(forward(run.normal(5, 3, 12, 12)).clone())
        x = run.normal(2, 3, 12, 12).requires_grad_()
        told.append(torch.autograd.grad(forward(x).logsumexp(1).sum(), x)[0])
        net.a.requires_grad_(True)
    x = run.normal(6, 3, 12, 12)
    return [*told, *state(net)], lambda: descend(optimizer, F.cross_entropy(forward(x), torch.zeros(6, dtype=torch.int64)))


@script("copies-and-shares")
def copies_and_shares(run):
    """Weights that two layers share, deep copies of a compiled module, states through a file, a copy that goes on alone."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.mix, self.out = nn.Embedding(40, 24), nn.GRUCell(24, 24), nn.Linear(24, 40, bias=False)
            self.out.weight = self.table.weight

        def forward(self, words):
            h, found = self.table.weight.new_zeros(len(words), 24), []
            for t in range(words.shape[1]):
                h = self.mix(self.table(words[:, t]), h)
                found.append(self.out(h))
            return torch.stack(found, 1)

    net = run(Net())
    forward = run.compile(net)
    words = torch.randint(40, (4, 7))

    def loss_of(f):
        return F.cross_entropy(f(words[:, :-1]).flatten(0, 1), words[:, 1:].flatten())

    optimizer = torch.optim.AdamW(net.parameters(), 1e-2)
    told = [descend(optimizer, loss_of(forward)).detach() for _ in range(2)]
    twin = copy.deepcopy(forward)
    apart = torch.optim.AdamW(twin.parameters(), 3e-2)
    told += [descend(apart, loss_of(twin)).detach() for _ in range(2)]
    told.append(descend(optimizer, loss_of(forward)).detach())
    file = io.BytesIO()
    torch.save({"net": net.state_dict(), "optimizer": optimizer.state_dict()}, file)
    file.seek(0)
    kept = torch.load(file)
    other = run(Net())
    other.load_state_dict(kept["net"])
    further, again = run.compile(other), torch.optim.AdamW(other.parameters(), 1e-2)
    again.load_state_dict(kept["optimizer"])
    told += [descend(again, loss_of(further)).detach(), descend(optimizer, loss_of(forward)).detach()]
    with torch.no_grad():
        return [*told, forward(words), twin(words), further(words)], lambda: descend(optimizer, loss_of(forward))


@script("several-threads")
def several_threads(run):
    """One compiled module that threads call at sizes of their own, with gradients in some."""
    net = perceptron(run, 20, 48, 48, 6)
    forward = run.compile(net, dynamic=True)
    given, found = [run.normal(n, 20) for n in (3, 8, 17, 30)], {}

    def work(i):
        for turn in range(3):
            x = (given[i] * (turn + 1)).requires_grad_(i % 2 == 0)
            if i % 2 == 0:
                y = forward(x)
                found[i, turn] = [y.detach(), torch.autograd.grad(y.square().sum(), x)[0]]
            else:
                with torch.no_grad():
                    found[i, turn] = [forward(x).clone()]

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [found[key] for key in sorted(found)], None


@script("open-batches-and-lengths")
def open_batches_and_lengths(run):
    """An encoder whose batch and length both change, padded by lengths, with rotary places, windows of a convolution, and a mean over what is there."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.mixed, self.out = nn.Embedding(80, 32), nn.Linear(32, 96), nn.Linear(32, 32)
            self.near, self.norms, self.head = nn.Conv1d(32, 32, 5, padding=2, groups=8), nn.ModuleList(nn.LayerNorm(32) for _ in range(2)), nn.Linear(32, 3)

        def forward(self, words, lengths):
            n, length = words.shape
            place = torch.arange(length, device=words.device)
            seen = place < lengths[:, None]
            x = self.table(words) * seen[..., None]
            rate = 1e4 ** (-torch.arange(0, 8, 2, dtype=x.dtype) / 8)
            turn = place[:, None].to(x.dtype) * rate
            q, k, v = self.mixed(self.norms[0](x)).view(n, length, 3, 4, 8).permute(2, 0, 3, 1, 4)
            cos, sin = torch.cat([turn.cos()] * 2, -1), torch.cat([turn.sin()] * 2, -1)
            q, k = (a * cos + torch.cat([-a[..., 4:], a[..., :4]], -1) * sin for a in (q, k))
            y = F.scaled_dot_product_attention(q, k, v, attn_mask=seen[:, None, None])
            x = x + self.out(y.transpose(1, 2).flatten(2))
            x = x + F.silu(self.near(self.norms[1](x).mT)).mT
            pooled = (x * seen[..., None]).sum(1) / lengths[:, None]
            return self.head(pooled), F.avg_pool1d(x.mT, 3, 2, 1).mT

    net = run(Net())
    forward, optimizer = run.compile(net, dynamic=True), torch.optim.NAdam(net.parameters(), 1e-3)

    def step(words, lengths, y):
        logits, coarse = forward(words, lengths)
        return descend(optimizer, F.cross_entropy(logits, y) + coarse.square().mean())

    def given(n, length):
        return torch.randint(80, (n, length)), torch.randint(1, length + 1, (n,)), torch.randint(3, (n,))

    results, again = trained(net, step, [given(n, length) for n, length in ((4, 10), (6, 17), (3, 33), (9, 8), (2, 64))])
    with torch.no_grad():
        for n, length in ((1, 7), (5, 1), (12, 40), (7, 21)):
            results += [x.clone() for x in forward(*given(n, length)[:2])]
    return results, again


@script("kept-frames")
def kept_frames(run):
    """Causal convolutions that keep the last frames in buffers, a counter, running statistics and a ring of features; reset between two streams."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList(nn.Conv1d(8, 8, 3, dilation=d) for d in (1, 2, 4))
            for i, d in enumerate((1, 2, 4)):
                self.register_buffer(f"past{i}", torch.zeros(1, 8, 2 * d))
            self.register_buffer("ring", torch.zeros(16, 8))
            self.register_buffer("count", torch.zeros((), dtype=torch.int64))
            self.register_buffer("mean", torch.zeros(8))

        def reset(self):
            for name, buffer in self.named_buffers():
                setattr(self, name, torch.zeros_like(buffer))

        def forward(self, x):
            for i, layer in enumerate(self.layers):
                whole = torch.cat([getattr(self, f"past{i}"), x], 2)
                setattr(self, f"past{i}", whole[..., -2 * 2**i :].clone())
                x = x + F.elu(layer(whole))
            frames = x[0].mT
            place = (self.count + torch.arange(len(frames))) % 16
            self.ring[place] = frames
            self.count += len(frames)
            self.mean.lerp_(frames.mean(0), 0.1)
            return x - self.mean[:, None], (self.ring @ frames.mT).softmax(0)

    net = run(Net()).eval()
    forward, told = run.compile(net), []
    with torch.no_grad():
        for stream in range(2):
            for n in (4, 4, 7, 4):
                told += [y.clone() for y in forward(run.normal(1, 8, n))]
            told += state(net)
            if stream == 0:
                net.reset()
        x = run.normal(1, 8, 4)
        return told, lambda: forward(x)


@script("exported-open")
def exported_open(run):
    """Exported with an open batch, an open length and one of twice the batch, called with mappings; then in torch.compile."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b, self.norm = nn.Linear(6, 16), nn.Linear(16, 5), nn.GroupNorm(4, 16)

        def forward(self, x, more):
            h = F.gelu(self.a(x), approximate="tanh")
            h = self.norm(h.mT).mT
            pair = more["pair"].unflatten(0, (-1, 2)).mean(1)
            h = h * torch.sigmoid(pair)[:, None] + h.flip(1).cumsum(1) / h.shape[1]
            return {"scores": self.b(h), "best": self.b(h).argmax(-1), "sum": more["rest"][0] + h.sum((1, 2))}

    net = run(Net()).eval()

    def given(n, length):
        return run.normal(n, length, 6), {"pair": run.normal(2 * n, 16), "rest": [run.normal(n)]}

    batch, length = torch.export.Dim("batch", min=2, max=64), torch.export.Dim("length", min=2, max=128)
    shapes = ({0: batch, 1: length}, {"pair": {0: 2 * batch}, "rest": [{0: batch}]})
    program = torch.export.export(net, given(3, 9), dynamic_shapes=shapes, strict=False)
    module = program.module()
    if run.backend == "sylvite":
        import sylvite
        module = sylvite.from_torch(program)
    forward, found = run.compile(net, dynamic=True), []
    with torch.no_grad():
        for sizes in ((3, 9), (5, 20), (2, 2), (17, 33)):
            x, more = given(*sizes)
            exported = module(x, more)
            found += [exported[key] for key in ("scores", "best", "sum")] + [forward(x, more)[key].clone() for key in ("scores", "best", "sum")]
        x, more = given(4, 16)
        return found, lambda: forward(x, more)


class Scaled(torch.autograd.Function):
    @staticmethod
    @torch.amp.custom_fwd(device_type="cpu")
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return (x.to(w.dtype) @ w) * 0.5

    @staticmethod
    @torch.amp.custom_bwd(device_type="cpu")
    def backward(ctx, slope):
        x, w = ctx.saved_tensors
        slope = slope.to(w.dtype) * 0.5
        return (slope @ w.mT).to(x.dtype), x.to(w.dtype).mT @ slope


@script("casts-within-casts")
def casts_within_casts(run):
    """Autocast with parts in f32 again, a function that has its own gradient, norms by hand in f32, and a loss outside."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b, self.c, self.norm = nn.Linear(24, 48), nn.Linear(48, 48), nn.Parameter(torch.randn(48, 10) * 0.1), nn.LayerNorm(48)

        def forward(self, x):
            with run.autocast():
                h = F.silu(self.a(x))
                with torch.autocast("cpu", enabled=False):
                    h = self.norm(h.to(self.norm.weight.dtype))
                    spread = (h * h.mean(-1, keepdim=True)).logsumexp(-1)
                h = self.b(h) + h
                h = h * torch.rsqrt(h.to(x.dtype).square().mean(-1, keepdim=True) + 1e-6).type_as(h)
                y = Scaled.apply(h, self.c)
            return y.to(x.dtype), spread

    net = run(Net())
    forward, optimizer = run.compile(net), torch.optim.SGD(net.parameters(), 0.1)

    def step(x, y):
        logits, spread = forward(x)
        return descend(optimizer, F.cross_entropy(logits, y) + 0.01 * spread.mean())

    return trained(net, step, [(run.normal(n, 24), torch.randint(10, (n,))) for n in (16, 16, 9)])


@script("eight-bit-images")
def eight_bit_images(run):
    """Images of bytes: tables, planes of bits, grey levels made even, quantised colours, dithered rows, sums that wrap, blocks that are compared."""
    table = torch.arange(256).flip(0).to(torch.uint8)

    @run.compile
    def change(x, y):
        seen = table[x.long()]
        planes = (x[..., None] >> torch.arange(8, dtype=torch.uint8)) & 1
        grey = (x.to(torch.int32) * torch.tensor([77, 150, 29], dtype=torch.int32)[:, None, None]).sum(1, dtype=torch.int32) >> 8
        levels = torch.zeros(len(x), 256, dtype=torch.int32).scatter_add(1, grey.flatten(1).long(), torch.ones_like(grey.flatten(1)))
        even = levels.cumsum(1) * 255 // grey[0].numel()
        flat = even.gather(1, grey.flatten(1).long()).view_as(grey).clamp(0, 255).to(torch.uint8)
        moved = (x.to(torch.int16) - y.to(torch.int16)).abs().to(torch.uint8)
        blocks = F.avg_pool2d(x.float(), 4).round().to(torch.uint8)
        worst = moved.unfold(2, 4, 4).unfold(3, 4, 4).amax((-1, -2))
        return seen, planes.sum(-1, dtype=torch.uint8), flat, moved, x + y, x * 3, x // 32 * 32 + 16, ~x, blocks, worst, (x > y).to(torch.int8) - (x < y).to(torch.int8), x.float().mean((2, 3)), torch.bitwise_xor(x, y).sum((1, 2, 3))

    x, y = (torch.randint(256, (2, 3, 16, 16), dtype=torch.uint8) for _ in range(2))
    return [*change(x, y), *change(y, x)], lambda: change(x, y)


@script("views-in-place")
def views_in_place(run):
    """Parts of tensors written in place, with gradients, through strides, diagonals, transposes, chunks and masks; results and inputs that are written."""
    def function(x, w, kept):
        y = x * w
        y[:, ::2] += x[:, 1::2]
        y.diagonal(dim1=0, dim2=1).mul_(2)
        y.mT[3].sub_(1.0)
        a, b = y[:, :6], y[:, 6:]
        a.add_(b.detach())
        b[a > 0] = 0.25
        y.view(-1)[5:20].clamp_(-1, 1)
        z = y.new_zeros(12, 4)
        z[:, 1].copy_(y[:, 2])
        z[2:4, 2:] = w[:2, :2]
        z.index_add_(0, torch.tensor([0, 3, 3]), y[:3, :4])
        kept.mul_(0.5).add_(y.detach().sum(0))
        kept[:3] = z[0, :3].detach()
        torch.add(kept, 1, out=kept)
        return y.transpose(0, 1)[2:9], z.unsqueeze_(0), y.unfold(1, 3, 2), kept[1:5]

    net = nn.ParameterList([run.normal(12, 12)])
    forward, found = run.compile(function), []

    def step(x, kept):
        return sum((r * r).sum() for r in forward(x, net[0], kept)[:3])

    for _ in range(3):
        x, kept = run.normal(12, 12).requires_grad_(), run.normal(12)
        loss = step(x, kept)
        found += [loss.detach(), *torch.autograd.grad(loss, [x, net[0]]), kept.clone()]
    x, kept = run.normal(12, 12).requires_grad_(), run.normal(12)
    return found, lambda: step(x, kept).backward()


@script("kinds-of-hooks")
def kinds_of_hooks(run):
    """Hooks ahead of and behind modules with named arguments, on gradients of modules and tensors, and a step of the optimiser as soon as a gradient is there."""
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(16, 32), nn.Linear(32, 16)

        def forward(self, x, *, scale=1.0):
            return x + self.b(self.a(x).relu()) * scale

    net, seen = run(nn.ModuleList(Block() for _ in range(3))), collections.defaultdict(list)
    net[0].register_forward_pre_hook(lambda module, args, kwargs: (args, {"scale": kwargs.get("scale", 1.0) * 0.5}), with_kwargs=True)
    net[1].register_forward_hook(lambda module, args, found: found.clamp(-3, 3))
    net[2].register_full_backward_hook(lambda module, into, out: (into[0] * 0.9,))
    optimizers = {p: torch.optim.SGD([p], 0.02) for p in net.parameters()}

    def take(p):
        seen["norm"].append(p.grad.norm().clone())
        optimizers[p].step()
        optimizers[p].zero_grad()

    for p in net.parameters():
        p.register_post_accumulate_grad_hook(take)

    def whole(x):
        for i, block in enumerate(net):
            x = block(x, scale=1.0 + i)
            if i == 1 and x.requires_grad:
                x.register_hook(lambda slope: slope * 2)
        return x.square().mean()

    forward = run.compile(whole)

    def step(x):
        loss = forward(x)
        loss.backward()
        return loss

    results, again = trained(net, step, [(run.normal(n, 16),) for n in (8, 8, 5)])
    return [*results, torch.stack(sorted(seen["norm"], key=float))], again
