"""Further SCRIPTS: states, sound, spectra, boxes and types that are mixed, around compiled functions that call each other."""

import itertools

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import parametrizations
from torch_library_scripts import with_gradients
from torch_training_scripts import descend, perceptron, script, state, trained


@script("nested-compile")
def nested_compile(run):
    """A compiled function that calls compiled modules and methods, parts that are not compiled, numbers and lists as state, keyword arguments."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.outer, self.calls, self.seen = perceptron(run, 8, 16, 8), nn.Linear(8, 8), 0, []
            if run.backend != "eager":
                self.inner.compile(backend=run.backend)
            self.mixed = run.compile(self.mix)

        def mix(self, x, *, scale=1.0, shift=None):
            return x * scale + (shift if shift is not None else 0)

        def forward(self, x, kind="plain", **more):
            self.calls += 1
            x = self.inner(x)
            if kind == "mixed":
                x = self.mixed(x, **more)
            self.seen.append(x.detach().mean())
            return {"rows": self.outer(x).softmax(-1), "kind": kind, "loss": (x.square().sum(), self.calls)}

    net = run(Net())
    forward = run.compile(net)
    optimizer = torch.optim.SGD(net.parameters(), 0.1)

    def step(x, kind, **more):
        optimizer.zero_grad()
        told = forward(x, kind=kind, **more)
        (told["rows"].max(1)[0].sum() + told["loss"][0] * 0.01).backward()
        optimizer.step()
        return told["rows"]

    found = [step(run.normal(5, 8), "plain"), step(run.normal(5, 8), "mixed", scale=2.0), step(run.normal(5, 8), "mixed", scale=3.0, shift=run.normal(8)), step(run.normal(7, 8), "plain")]
    return [*(y.detach() for y in found), *net.seen, *state(net)], None


@script("streaming-states")
def streaming_states(run):
    """Sound in pieces: states that are buffers and attributes which are assigned anew, an overlap of windows, a last piece that is shorter."""
    class Stream(nn.Module):
        def __init__(self):
            super().__init__()
            self.convs, self.cell, self.out = nn.ModuleList(nn.Conv1d(a, 8, 3, dilation=d) for a, d in ((1, 1), (8, 2), (8, 4))), nn.GRUCell(8, 12), nn.ConvTranspose1d(12, 1, 8, 4)
            for i, (a, d) in enumerate(((1, 1), (8, 2), (8, 4))):
                self.register_buffer(f"past_{i}", torch.zeros(2, a, 2 * d))
            self.register_buffer("tail", torch.zeros(2, 1, 4), persistent=False)
            self.h = None

        def forward(self, x):
            for i, conv in enumerate(self.convs):
                past = getattr(self, f"past_{i}")
                wide = torch.cat([past, x], -1)
                past.copy_(wide[..., -past.shape[-1] :])
                x = F.silu(conv(wide))
            h, found = self.h if self.h is not None else torch.zeros(2, 12, dtype=x.dtype), []
            for column in x[..., ::4].unbind(-1):
                h = self.cell(column, h)
                found.append(h)
            self.h = h
            y = self.out(torch.stack(found, -1))
            y = torch.cat([y[..., :4] + self.tail, y[..., 4:]], -1)
            self.tail = y[..., -4:].clone()
            return y[..., :-4]

    net = run(Stream()).eval()
    forward, x = run.compile(net), run.normal(2, 1, 104)
    with torch.no_grad():
        found = [forward(piece) for piece in x.split(32, -1)]

    def again():
        with torch.no_grad():
            forward(x[..., :32])
    return [*found, *state(net), net.h, net.tail], again


@script("vocoder")
def vocoder(run):
    """A generator of sound with norms of weights, critics of periods, losses of features and of spectra by mel filters, lengths that change."""
    norm = parametrizations.weight_norm
    maker = run(nn.Sequential(norm(nn.Conv1d(8, 16, 7, padding=3)), nn.LeakyReLU(0.1), norm(nn.ConvTranspose1d(16, 8, 8, 4, 2)), nn.LeakyReLU(0.1),
                              norm(nn.ConvTranspose1d(8, 8, 4, 2, 1)), nn.LeakyReLU(0.1), norm(nn.Conv1d(8, 1, 7, padding=3)), nn.Tanh()))  # fmt: skip

    class Periods(nn.Module):
        def __init__(self):
            super().__init__()
            self.nets = nn.ModuleList(nn.ModuleList([norm(nn.Conv2d(1, 8, (5, 1), (3, 1), (2, 0))), norm(nn.Conv2d(8, 8, (5, 1), (3, 1), (2, 0))), norm(nn.Conv2d(8, 1, (3, 1), 1, (1, 0)))]) for _ in range(2))

        def forward(self, x):
            found = []
            for period, net in zip((2, 3), self.nets):
                more = -x.shape[-1] % period
                y, kept = F.pad(x, (0, more), "reflect").view(len(x), 1, -1, period), []
                for i, layer in enumerate(net):
                    y = layer(y)
                    kept.append(y)
                    y = F.leaky_relu(y, 0.1) if i < 2 else y
                found.append(kept)
            return found

    critic = run(Periods())
    make, judge = run.compile(maker), run.compile(critic)
    first, second = torch.optim.AdamW(maker.parameters(), 1e-3, betas=(0.8, 0.99)), torch.optim.AdamW(critic.parameters(), 1e-3, betas=(0.8, 0.99))
    window, filters = run(torch.hann_window(32)), run(torch.rand(10, 17))

    @run.compile
    def mel(x):
        x = F.pad(x, (12, 12), "reflect").squeeze(1)
        spectrum = torch.view_as_real(torch.stft(x, 32, 8, window=window, center=False, return_complex=True)).square().sum(-1)
        return (filters @ (spectrum + 1e-9).sqrt()).clamp(min=1e-5).log()

    def step(x, y):
        fake = make(x)
        second.zero_grad()
        loss = sum((1 - a[-1]).square().mean() + b[-1].square().mean() for a, b in zip(judge(y), judge(fake.detach())))
        loss.backward()
        second.step()
        first.zero_grad()
        other = F.l1_loss(mel(y), mel(fake)) * 45
        for a, b in zip(judge(y), judge(fake)):
            other = other + (1 - b[-1]).square().mean() + 2 * sum((p.detach() - q).abs().mean() for p, q in zip(a, b))
        other.backward()
        first.step()
        return loss + other

    results, again = trained(maker, step, [(run.normal(2, 8, n), run.normal(2, 1, 8 * n).tanh()) for n in (12, 12, 17)])
    return [*results, *state(critic)], again


@script("complex-operators")
def complex_operators(run):
    """Filters in spectra whose weights are complex, trained by Adam, of images whose sizes change, and a complex recurrence that keeps lengths."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            kind = torch.complex128 if run.exact else torch.complex64
            self.enter, self.leave, self.skip = nn.Conv2d(2, 8, 1), nn.Conv2d(8, 1, 1), nn.Conv2d(8, 8, 1)
            self.low, self.high = (nn.Parameter((torch.randn(8, 8, 3, 3, dtype=torch.complex64) / 8).to(kind)) for _ in range(2))
            self.angle, self.into = nn.Parameter(torch.rand(6) * 3), nn.Parameter(torch.randn(4, 6, dtype=torch.complex64).to(kind) / 2)

        def forward(self, x, steps):
            h = self.enter(x)
            wide = torch.fft.rfft2(h, norm="ortho")
            out = torch.zeros_like(wide)
            out[:, :, :3, :3] = torch.einsum("bixy,ioxy->boxy", wide[:, :, :3, :3], self.low)
            out[:, :, -3:, :3] = torch.einsum("bixy,ioxy->boxy", wide[:, :, -3:, :3], self.high)
            h = F.gelu(torch.fft.irfft2(out, s=h.shape[-2:], norm="ortho") + self.skip(h))
            turn, state = torch.polar(torch.ones_like(self.angle), self.angle), torch.zeros(len(steps), 6, dtype=self.into.dtype)
            for row in steps.unbind(1):
                state = state * turn + row.to(self.into.dtype) @ self.into
                state = state / (state.abs() + 1).to(state.dtype)
            return self.leave(h), torch.view_as_real(state)

    net = Net()
    for module in (net.enter, net.leave, net.skip):
        run(module)
    net.angle.data = run(net.angle.data)
    forward, optimizer = run.compile(net), torch.optim.Adam(net.parameters(), 1e-3)

    def step(x, steps, y):
        image, last = forward(x, steps)
        return descend(optimizer, (image - y).flatten(1).norm(dim=1).mean() + last.square().mean())

    return trained(net, step, [(run.normal(b, 2, s, s), run.normal(b, 5, 4), run.normal(b, 1, s, s)) for b, s in ((3, 12), (3, 12), (2, 16))])


@script("matched-boxes")
def matched_boxes(run):
    """A detector's training: a match by NumPy between two compiled parts, overlaps, focal losses, an assigner by the best candidates."""
    net = run(nn.Sequential(nn.Conv2d(3, 16, 4, 4), nn.ReLU(), nn.Flatten(2)))
    decoder, query, kind, box = run(nn.TransformerDecoderLayer(16, 2, 32, 0.0, batch_first=True)), run(nn.Embedding(8, 16)), run(nn.Linear(16, 4)), run(nn.Linear(16, 4))
    nets = nn.ModuleList([net, decoder, query, kind, box])
    optimizer, choices = torch.optim.AdamW(nets.parameters(), 1e-3), list(itertools.permutations(range(8), 3))

    def corners(x):
        return torch.cat([x[..., :2] - x[..., 2:] / 2, x[..., :2] + x[..., 2:] / 2], -1)

    def overlap(a, b):
        a, b = corners(a), corners(b)
        area = lambda x: (x[..., 2] - x[..., 0]) * (x[..., 3] - x[..., 1])  # noqa: E731
        inner = (torch.min(a[..., 2:], b[..., 2:]) - torch.max(a[..., :2], b[..., :2])).clamp(min=0).prod(-1)
        outer = (torch.max(a[..., 2:], b[..., 2:]) - torch.min(a[..., :2], b[..., :2])).prod(-1)
        both = area(a) + area(b) - inner
        return inner / both - (outer - both) / outer

    @run.compile
    def forward(x):
        rows = net(x).transpose(1, 2)
        h = decoder(query.weight.expand(len(x), -1, -1), rows)
        return kind(h), box(h).sigmoid()

    @run.compile
    def costs(lines, boxes, kinds, goal):
        p = lines.sigmoid()[:, kinds]
        return 2 * ((1 - p) ** 2 * -(p + 1e-8).log() - p**2 * -(1 - p + 1e-8).log()) + 5 * torch.cdist(boxes, goal, p=1) - 2 * overlap(boxes[:, None], goal)

    @run.compile
    def loss_of(lines, boxes, goal, target, kinds, rows, places):
        hot = torch.zeros_like(lines).index_put((rows, places), F.one_hot(kinds, 4).to(lines.dtype))
        p = lines.sigmoid()
        focal = F.binary_cross_entropy_with_logits(lines, hot, reduction="none") * (1 - (p * hot + (1 - p) * (1 - hot))) ** 2
        near = overlap(boxes[:, :, None], goal[:, None]).detach()
        best = torch.zeros_like(near).scatter(1, near.topk(2, 1)[1], 1.0)
        picked = boxes[rows, places]
        return focal.sum() / len(rows) + (picked - target).abs().sum() + (1 - overlap(picked, target)).sum() + ((1 - overlap(boxes[:, :, None], goal[:, None])) * best).mean()

    def step(x, kinds, goal):
        lines, boxes = forward(x)
        rows, places, target, told = [], [], [], []
        with torch.no_grad():
            for i, (k, g) in enumerate(zip(kinds, goal)):
                a, b = np.array(choices), np.arange(3)
                a = a[costs(lines[i], boxes[i], k, g).numpy()[a, b].sum(1).argmin()]
                rows, places, target, told = rows + [i] * len(a), places + a.tolist(), target + [g[b]], told + [k[b]]
        loss = loss_of(lines, boxes, goal, torch.cat(target), torch.cat(told), torch.tensor(rows), torch.tensor(places))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(nets.parameters(), 0.1)
        optimizer.step()
        return loss

    return trained(nets, step, [(run.normal(b, 3, 16, 16), torch.randint(4, (b, 3)), run(torch.rand(b, 3, 4)) * 0.5 + 0.2) for b in (2, 2, 3)])


@script("orthogonal-weights")
def orthogonal_weights(run):
    """Parametrisations of three kinds in a network that is trained, whose buffers are written by its forward pass, then merged and used."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = parametrizations.spectral_norm(nn.Conv2d(3, 8, 3, padding=1), n_power_iterations=2)
            self.turn = parametrizations.orthogonal(nn.Linear(8, 8, bias=False), orthogonal_map="cayley", use_trivialization=False)
            self.house = parametrizations.orthogonal(nn.Linear(8, 4, bias=False), orthogonal_map="householder")
            self.last = parametrizations.spectral_norm(nn.Linear(4, 3))

        def forward(self, x):
            return self.last(self.house(torch.tanh(self.turn(F.relu(self.first(x)).mean((2, 3))))))

    net = run(Net())
    forward, optimizer = run.compile(net), torch.optim.SGD(net.parameters(), 0.05, momentum=0.9)

    def step(x, y):
        return descend(optimizer, F.cross_entropy(forward(x), y))

    results, again = trained(net, step, [(run.normal(b, 3, 8, 8), torch.randint(3, (b,))) for b in (6, 6, 4)])
    net.eval()
    with torch.no_grad():
        return [*results, forward(run.normal(2, 3, 8, 8))], again


@script("mixed-types")
def mixed_types(run):
    """Weights of bf16 beside f32 copies, losses in f16 ranges, sums in f64, counts in whole numbers, truths, and a step that joins them."""
    def function(x, weight, table, words, mask):
        near, h = x.detach().to(torch.bfloat16) @ weight.detach().to(torch.bfloat16), x @ weight
        rows = table.detach().half()[words.to(torch.int32).long()].to(x.dtype)
        sums = torch.zeros(5, dtype=torch.float64).index_add(0, words % 5, (h * rows).sum(-1).double())
        count = F.one_hot(words % 5, 5).sum(0).clamp(min=1)
        kept = torch.where(mask, h, torch.full((), -65504.0, dtype=torch.float16)).logsumexp(-1)
        return (sums / count).to(x.dtype), near, kept * mask.any(-1), (h > 0).sum(-1) // 2, (words << 2 ^ 3).to(torch.uint8), (mask & (h > 0)).float().mean(0, dtype=torch.float64)

    return with_gradients(run, function, run.normal(12, 16), run.normal(16, 8), run.normal(30, 8), torch.randint(30, (12,)), torch.rand(12, 8) > 0.4)
