"""Further SCRIPTS: training with averages of weights, negatives that are picked, attention by hand, messages of graphs, codebooks, densities, solvers, sharp
minima, two models, alignments and triplets, by hand."""

import copy
import math

import torch
import torch.nn.functional as F
from torch import nn
from torch.func import jvp
from torch.utils.checkpoint import checkpoint
from torch_training_scripts import descend, perceptron, script, state, trained


@script("noise-and-average")
def noise_and_average(run):
    """A small diffusion U-Net: velocity as target, weights by signal to noise, labels dropped at random places, an average of the weights."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.time, self.label = nn.Sequential(nn.Linear(32, 64), nn.SiLU(), nn.Linear(64, 64)), nn.Embedding(11, 64)
            self.begin, self.down, self.up, self.end = nn.Conv2d(3, 16, 3, 1, 1), nn.Conv2d(16, 32, 4, 2, 1), nn.ConvTranspose2d(32, 16, 4, 2, 1), nn.Conv2d(32, 3, 3, 1, 1)
            self.norms, self.scale = nn.ModuleList([nn.GroupNorm(4, 16), nn.GroupNorm(8, 32)]), nn.Linear(64, 64)

        def forward(self, x, t, label):
            rate = torch.exp(-math.log(1e4) * torch.arange(16, dtype=x.dtype) / 16)
            turn = t[:, None] * rate
            told = self.time(torch.cat([turn.sin(), turn.cos()], 1)) + self.label(label)
            scale, shift = self.scale(F.silu(told))[:, :, None, None].chunk(2, 1)
            h = self.begin(x)
            low = self.norms[1](self.down(F.silu(self.norms[0](h)))) * (1 + scale) + shift
            return self.end(torch.cat([h, self.up(F.silu(low))], 1))

    net = run(Net())
    slow, forward = copy.deepcopy(net).requires_grad_(False), run.compile(net)
    optimizer = torch.optim.AdamW(net.parameters(), 1e-3)

    @run.compile
    def loss_of(x, noise, step, label):
        alpha = torch.cos((step + 0.008) / 1.008 * math.pi / 2)[:, None, None, None] ** 2
        seen = alpha.sqrt() * x + (1 - alpha).sqrt() * noise
        target = alpha.sqrt() * noise - (1 - alpha).sqrt() * x
        error = (forward(seen, step * 1000, label) - target).square().mean((1, 2, 3))
        ratio = (alpha / (1 - alpha)).flatten()
        return (error * ratio.clamp(max=5) / (ratio + 1)).mean()

    @run.compile
    def follow(slow, fast):
        torch._foreach_lerp_(slow, fast, 0.05)

    def step(*given):
        loss = descend(optimizer, loss_of(*given))
        with torch.no_grad():
            follow(list(slow.parameters()), list(net.parameters()))
        return loss

    results, again = trained(net, step, [(run.normal(n, 3, 16, 16), run.normal(n, 3, 16, 16), run(torch.rand(n) * 0.9 + 0.05), torch.randint(11, (n,))) for n in (8, 8, 5, 3)])
    return [*results, *state(slow)], again


@script("hard-negatives")
def hard_negatives(run):
    """Two towers, a learned temperature, for each row the three nearest wrong ones of a bank that is written behind the step."""
    net = run(nn.ModuleDict({"left": nn.Sequential(nn.Linear(20, 48), nn.BatchNorm1d(48), nn.ReLU(), nn.Linear(48, 16)), "right": nn.Sequential(nn.Linear(14, 48), nn.Mish(), nn.Linear(48, 16))}))
    heat, bank = nn.Parameter(run(torch.tensor(2.0))), F.normalize(run.normal(64, 16), dim=1)
    optimizer = torch.optim.SGD([*net.parameters(), heat], 0.1, momentum=0.9, nesterov=True)

    @run.compile
    def loss_of(a, b, bank):
        p, q = F.normalize(net["left"](a), dim=1), F.normalize(net["right"](b), dim=1)
        both = heat.exp().clamp(max=100) * p @ q.mT
        picked = (p.detach() @ bank.mT).topk(3, dim=1).indices
        wrong = torch.einsum("nd,nkd->nk", p, bank[picked]) * heat.exp()
        same = torch.arange(len(a))
        hard = torch.cat([both.diagonal()[:, None], wrong], 1).log_softmax(1)[:, 0].neg().mean()
        return (F.cross_entropy(both, same) + F.cross_entropy(both.mT, same)) / 2 + 0.5 * hard, q.detach()

    @run.compile
    def remember(bank, rows, at):
        bank[(at + torch.arange(len(rows))) % len(bank)] = rows

    at = torch.tensor(0)

    def step(a, b):
        loss, rows = loss_of(a, b, bank)
        descend(optimizer, loss)
        remember(bank, rows, at)
        at.add_(len(rows)).remainder_(64)
        return loss

    results, again = trained(net, step, [(run.normal(n, 20), run.normal(n, 14)) for n in (24, 24, 24, 9)])
    return [*results, bank, heat.detach()], again


@script("forced-words")
def forced_words(run):
    """GRU cells that read and write, additive attention with a mask of lengths, the right word or the likeliest as the next input."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.read, self.write = nn.Embedding(40, 24, padding_idx=0), nn.GRUCell(24, 32), nn.GRUCell(24 + 32, 32)
            self.key, self.query, self.score, self.out = nn.Linear(32, 32, bias=False), nn.Linear(32, 32), nn.Linear(32, 1, bias=False), nn.Linear(64, 40)

        def forward(self, source, target, forced):
            h, states = source.new_zeros(len(source), 32, dtype=self.key.weight.dtype), []
            for t in range(source.shape[1]):
                alive = (source[:, t] != 0)[:, None]
                h = torch.where(alive, self.read(self.words(source[:, t]), h), h)
                states.append(h)
            seen = torch.stack(states, 1)
            keys, mask, word, lines = self.key(seen), source == 0, target[:, 0], []
            for t in range(1, target.shape[1]):
                share = self.score(torch.tanh(keys + self.query(h)[:, None])).squeeze(2).masked_fill(mask, float("-inf")).softmax(1)
                context = torch.bmm(share[:, None], seen).squeeze(1)
                h = self.write(torch.cat([self.words(word), context], 1), h)
                lines.append(self.out(torch.cat([h, context], 1)))
                word = torch.where(forced[:, t], target[:, t], lines[-1].argmax(1))
            return torch.stack(lines, 1)

    net = run(Net())
    forward, optimizer = run.compile(net), torch.optim.Adam(net.parameters(), 3e-3)

    def step(source, target, forced):
        lines = forward(source, target, forced)
        loss = descend(optimizer, F.cross_entropy(lines.flatten(0, 1), target[:, 1:].flatten(), ignore_index=0, label_smoothing=0.1))
        return loss

    def pair(n, length):
        source = torch.randint(1, 40, (n, length)) * (torch.arange(length) < torch.randint(2, length + 1, (n, 1)))
        return source, torch.randint(1, 40, (n, 7)), torch.rand(n, 7) < 0.7

    return trained(net, step, [pair(8, 9), pair(8, 9), pair(5, 9), pair(8, 6)])


@script("messages-by-edges")
def messages_by_edges(run):
    """Graphs of several sizes in one batch: a matrix of each edge, sums by index_add, GRU steps, normalised by graph, read out by attention over each graph."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.begin, self.edge, self.cell = nn.Linear(6, 16), nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 256)), nn.GRUCell(16, 16)
            self.gate, self.value, self.out = nn.Linear(16, 1), nn.Linear(16, 24), nn.Linear(24, 1)

        def forward(self, x, ends, edges, of, graphs: int):
            h, source, goal = torch.relu(self.begin(x)), ends[0], ends[1]
            turn = self.edge(edges).view(-1, 16, 16)
            degree = x.new_zeros(len(x)).index_add(0, goal, torch.ones_like(edges[:, 0])).clamp(min=1)
            for _ in range(3):
                m = torch.einsum("ei,eij->ej", h[source], turn)
                h = self.cell(x.new_zeros(len(x), 16).index_add(0, goal, m) / degree[:, None], h)
                count = x.new_zeros(graphs).index_add(0, of, torch.ones_like(x[:, 0]))[:, None]
                mean = x.new_zeros(graphs, 16).index_add(0, of, h) / count
                spread = x.new_zeros(graphs, 16).index_add(0, of, (h - mean[of]).square()) / count
                h = (h - mean[of]) * (spread[of] + 1e-5).rsqrt()
            score = self.gate(h).squeeze(1)
            most = torch.full((graphs,), float("-inf"), dtype=x.dtype).scatter_reduce(0, of, score, "amax")
            share = (score - most[of]).exp()
            share = share / x.new_zeros(graphs).index_add(0, of, share)[of]
            return self.out(x.new_zeros(graphs, 24).index_add(0, of, share[:, None] * torch.tanh(self.value(h)))).squeeze(1)

    net = run(Net())
    forward, optimizer = run.compile(net, dynamic=True), torch.optim.Adam(net.parameters(), 1e-2)

    def step(x, ends, edges, of, y):
        return descend(optimizer, F.smooth_l1_loss(forward(x, ends, edges, of, len(y)), y))

    def graphs(sizes):
        n, of = sum(sizes), torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))
        ends = torch.randint(n, (2, 4 * n))
        return run.normal(n, 6), ends, run.normal(4 * n, 4), of, run.normal(len(sizes))

    return trained(net, step, [graphs([5, 9, 4, 7]), graphs([6, 6, 8]), graphs([3, 12, 5, 5, 8]), graphs([10, 4])])


@script("averaged-codes")
def averaged_codes(run):
    """An autoencoder of images whose codes pass gradients straight through, follow averages of what chose them, and start anew where nothing did."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.read = nn.Sequential(nn.Conv2d(3, 16, 4, 2, 1), nn.ReLU(), nn.Conv2d(16, 8, 3, 2, 1))
            self.paint = nn.Sequential(nn.ConvTranspose2d(8, 16, 4, 2, 1), nn.ReLU(), nn.ConvTranspose2d(16, 3, 4, 2, 1))
            self.register_buffer("codes", torch.randn(32, 8))
            self.register_buffer("counts", torch.ones(32))
            self.register_buffer("sums", self.codes.clone())

        def forward(self, x, spare):
            z = self.read(x)
            flat = z.permute(0, 2, 3, 1).reshape(-1, 8)
            chosen = (flat.square().sum(1, keepdim=True) - 2 * flat @ self.codes.mT + self.codes.square().sum(1)).argmin(1)
            q = F.embedding(chosen, self.codes).view(len(x), z.shape[2], z.shape[3], 8).permute(0, 3, 1, 2)
            if self.training:
                with torch.no_grad():
                    hot = F.one_hot(chosen, 32).to(x.dtype)
                    self.counts.mul_(0.9).add_(hot.sum(0), alpha=0.1)
                    self.sums.mul_(0.9).add_(hot.mT @ flat, alpha=0.1)
                    dead = self.counts < 0.2
                    self.sums.copy_(torch.where(dead[:, None], flat[spare], self.sums))
                    self.counts.masked_fill_(dead, 1.0)
                    self.codes.copy_(self.sums / self.counts[:, None])
            share = F.one_hot(chosen, 32).to(x.dtype).mean(0)
            return self.paint(z + (q - z).detach()), 0.25 * F.mse_loss(z, q.detach()), torch.exp(-(share * (share + 1e-10).log()).sum())

    net = run(Net())
    forward, optimizer = run.compile(net), torch.optim.RAdam(net.parameters(), 1e-3)

    def step(x, spare):
        made, commit, spread = forward(x, spare)
        return torch.stack([descend(optimizer, F.mse_loss(made, x) + commit), spread])

    return trained(net, step, [(run.normal(n, 3, 16, 16), torch.randint(n * 16, (32,))) for n in (8, 8, 3, 8)])


@script("mixtures-in-time")
def mixtures_in_time(run):
    """Handwriting: an LSTM by hand, a window that moves along a text, mixtures of correlated normals and a pen, then samples from it."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.gates, self.window, self.out = nn.Linear(3 + 10 + 32, 128), nn.Linear(32, 9), nn.Linear(32, 6 * 5 + 1)

        def one(self, x, text, h, c, at, seen):
            i, f, g, o = self.gates(torch.cat([x, seen, h], 1)).chunk(4, 1)
            c = torch.sigmoid(f + 1) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
            height, width, step = self.window(h).clamp(-8, 8).exp()[:, :, None].chunk(3, 1)
            at = at + step * 0.1
            place = torch.arange(text.shape[1], dtype=x.dtype)
            seen = torch.einsum("nt,ntd->nd", (height * torch.exp(-width * (at - place).square())).sum(1), text)
            return self.out(h), h, c, at, seen

        def begin(self, text):
            n = len(text)
            return text.new_zeros(n, 32), text.new_zeros(n, 32), text.new_zeros(n, 3, 1), text.new_zeros(n, 10)

        def forward(self, strokes, text):
            held, lines = self.begin(text), []
            for t in range(strokes.shape[1] - 1):
                y, *held = self.one(strokes[:, t], text, *held)
                lines.append(y)
            y, target = torch.stack(lines, 1), strokes[:, 1:]
            pen, share, mean, wide, slant = y[..., 0], y[..., 1:6].log_softmax(-1), y[..., 6:16].unflatten(-1, (5, 2)), y[..., 16:26].unflatten(-1, (5, 2)), torch.tanh(y[..., 26:31]) * 0.95
            d = (target[..., None, :2] - mean) * torch.exp(-wide)
            inner = 1 - slant.square()
            z = d.square().sum(-1) - 2 * slant * d.prod(-1)
            log = share - z / (2 * inner) - wide.sum(-1) - 0.5 * inner.log() - math.log(2 * math.pi)
            return -log.logsumexp(-1).mean() + F.binary_cross_entropy_with_logits(pen, target[..., 2])

    net = run(Net())
    forward, optimizer = run.compile(net), torch.optim.RMSprop(net.parameters(), 1e-3, momentum=0.9, centered=True)

    def step(strokes, text):
        loss = descend(optimizer, forward(strokes, text))
        return loss

    def given(n, steps):
        strokes = torch.cat([torch.randn(n, steps, 2), (torch.rand(n, steps, 1) < 0.1).float()], 2)
        return run(strokes), run(F.one_hot(torch.randint(10, (n, 6)), 10).float())

    results, again = trained(net, step, [given(6, 11), given(6, 11), given(4, 11)])
    one = run.compile(net.one)
    with torch.no_grad():
        strokes, text = given(3, 2)
        x, held, path = strokes[:, 0], net.begin(text), []
        for _ in range(6):
            y, *held = one(x, text, *held)
            best = y[:, 1:6].argmax(1)
            x = torch.cat([y[:, 6:16].unflatten(1, (5, 2))[torch.arange(3), best], torch.sigmoid(y[:, :1]).round()], 1)
            path.append(x)
    return [*results, torch.stack(path)], again


@script("fixed-steps-of-rk4")
def fixed_steps_of_rk4(run):
    """Latent paths: a reversed GRU finds the start, RK4 with checkpointed steps follows an equation whose divergence is estimated, the lower bound is the loss."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.cell, self.start, self.rate, self.show = nn.GRUCell(2, 20), nn.Linear(20, 8), perceptron(run, 4, 32, 32, 4), perceptron(run, 4, 16, 2)

        def flow(self, z, e):
            value, along = jvp(self.rate, (z,), (e,))
            return value, (along * e).sum(1)

        def one(self, z, log, e, dt):
            a, la = self.flow(z, e)
            b, lb = self.flow(z + dt / 2 * a, e)
            c, lc = self.flow(z + dt / 2 * b, e)
            d, ld = self.flow(z + dt * c, e)
            return z + dt / 6 * (a + 2 * b + 2 * c + d), log - dt / 6 * (la + 2 * lb + 2 * lc + ld)

        def forward(self, x, times, e, noise):
            h = x.new_zeros(len(x), 20)
            for t in reversed(range(x.shape[1])):
                h = self.cell(x[:, t], h)
            mean, spread = self.start(h).chunk(2, 1)
            z, log, shown = mean + noise * torch.exp(0.5 * spread), x.new_zeros(len(x)), []
            for t in range(x.shape[1]):
                dt = times[t + 1] - times[t]
                z, log = checkpoint(self.one, z, log, e, dt, use_reentrant=False)
                shown.append(self.show(z))
            kl = -0.5 * (1 + spread - mean.square() - spread.exp()).sum(1)
            return F.mse_loss(torch.stack(shown, 1), x) + 1e-2 * kl.mean() + 1e-2 * log.square().mean()

    net = run(Net())
    forward, optimizer = run.compile(net), torch.optim.Adamax(net.parameters(), 1e-2)
    times = run(torch.linspace(0, 1, 8) ** 1.5)
    return trained(net, lambda *given: descend(optimizer, forward(given[0], times, *given[1:])), [(run.normal(n, 7, 2), run.normal(n, 4), run.normal(n, 4)) for n in (10, 10, 4)])


@script("flat-minima")
def flat_minima(run):
    """A step up the gradients, a step down those found there, and weights that go half way back every two steps; images mixed and cut into each other."""
    net = run(nn.Sequential(nn.Conv2d(3, 12, 3, 1, 1), nn.BatchNorm2d(12), nn.ReLU(), nn.Conv2d(12, 24, 3, 2, 1, groups=3), nn.BatchNorm2d(24), nn.Hardswish(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Dropout(0.0), nn.Linear(96, 5)))
    forward, optimizer = run.compile(net), torch.optim.SGD(net.parameters(), 0.05, momentum=0.9, weight_decay=5e-4)
    params, slow, count = list(net.parameters()), [p.detach().clone() for p in net.parameters()], [0]

    @run.compile
    def up(params, grads):
        size = torch.stack([g.norm() for g in grads]).norm()
        moves = [g * (0.05 / (size + 1e-12)) for g in grads]
        torch._foreach_add_(params, moves)
        return moves

    @run.compile
    def half_way(params, slow):
        for p, s in zip(params, slow):
            s.lerp_(p, 0.5)
            p.copy_(s)

    @run.compile
    def mixed(x, y, order, share, corner):
        soft = F.one_hot(y, 5).to(x.dtype) * 0.9 + 0.02
        row, column = torch.arange(x.shape[2])[:, None], torch.arange(x.shape[3])
        inside = (row >= corner[0]) & (row < corner[0] + 6) & (column >= corner[1]) & (column < corner[1] + 6)
        kept = 1 - inside.to(x.dtype).mean()
        return torch.where(inside, x[order], x * share + x[order] * (1 - share)), kept * soft + (1 - kept) * soft[order]

    def loss_of(x, y):
        return -(y * forward(x).log_softmax(1)).sum(1).mean()

    def step(x, y, order, share, corner):
        x, y = mixed(x, y, order, share, corner)
        optimizer.zero_grad()
        loss = loss_of(x, y)
        loss.backward()
        with torch.no_grad():
            moves = up(params, [p.grad for p in params])
        optimizer.zero_grad()
        loss_of(x, y).backward()
        with torch.no_grad():
            torch._foreach_sub_(params, moves)
        optimizer.step()
        count[0] += 1
        if count[0] % 2 == 0:
            with torch.no_grad():
                half_way(params, slow)
        return loss

    results, again = trained(net, step, [(run.normal(n, 3, 12, 12), torch.randint(5, (n,)), torch.randperm(n), run(torch.tensor(0.7)), torch.randint(6, (2,))) for n in (8, 8, 8, 5)])
    return [*results, *slow], again


@script("teacher-and-student")
def teacher_and_student(run):
    """Two networks, features seen by hooks, soft labels at a temperature, relations between rows, and gradients of attention maps."""
    def network(width):
        return run(nn.Sequential(nn.Conv2d(3, width, 3, 2, 1), nn.ReLU(), nn.Conv2d(width, 2 * width, 3, 2, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2 * width, 7)))

    teacher, student = network(24).eval().requires_grad_(False), network(8)
    turn = run(nn.Conv2d(16, 48, 1))

    def with_features(net):
        kept = {}
        net[3].register_forward_hook(lambda _, __, y: kept.__setitem__("y", y))

        def call(x):
            lines = net(x)
            return lines, kept.pop("y")
        return run.compile(call)

    told, asked = with_features(teacher), with_features(student)
    optimizer = torch.optim.NAdam([*student.parameters(), *turn.parameters()], 2e-3)

    @run.compile
    def loss_of(lines, seen, wanted, shown, y):
        soft = F.kl_div((lines / 4).log_softmax(1), (wanted / 4).log_softmax(1), reduction="batchmean", log_target=True) * 16
        maps = [F.normalize(z.square().mean(1).flatten(1), dim=1) for z in (seen, shown)]
        far = [torch.cdist(z, z) for z in (lines, wanted)]
        far = [z / z[z > 0].mean().detach() if False else z / z.detach().mean() for z in far]
        return F.cross_entropy(lines, y) + soft + F.mse_loss(turn(seen), shown) + 10 * (maps[0] - maps[1]).square().sum(1).mean() + F.huber_loss(far[0], far[1])

    def step(x, y):
        with torch.no_grad():
            wanted, shown = told(x)
        return descend(optimizer, loss_of(*asked(x), wanted, shown, y))

    results, again = trained(student, step, [(run.normal(n, 3, 16, 16), torch.randint(7, (n,))) for n in (12, 12, 5)])
    return [*results, *state(turn)], again


@script("lines-of-text")
def lines_of_text(run):
    """Convolutions, an LSTM both ways, CTC's loss, and the best path without repeats."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.see = nn.Sequential(nn.Conv2d(1, 8, 3, 1, 1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 16, 3, 1, 1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d((2, 1)))
            self.read, self.out = nn.LSTM(64, 24, bidirectional=True, batch_first=True), nn.Linear(48, 12)

        def forward(self, x):
            h = self.see(x)
            return self.out(self.read(h.permute(0, 3, 1, 2).flatten(2))[0]).log_softmax(2).transpose(0, 1)

    net = run(Net())
    forward, optimizer = run.compile(net), torch.optim.Adadelta(net.parameters(), 0.5)

    @run.compile
    def best_path(log):
        best = log.argmax(2).mT
        fresh = F.pad(best[:, 1:] != best[:, :-1], (1, 0), value=True) & (best != 0)
        place = torch.where(fresh, fresh.cumsum(1) - 1, best.shape[1])
        return torch.zeros(len(best), best.shape[1] + 1, dtype=torch.long).scatter(1, place, best)[:, :-1], fresh.sum(1)

    found = []

    def step(x, y, lengths):
        log = forward(x)
        loss = F.ctc_loss(log, y, torch.full((len(x),), len(log)), lengths, zero_infinity=True)
        descend(optimizer, loss)
        found[:] = best_path(log.detach())
        return loss

    results, again = trained(net, step, [(run.normal(n, 1, 16, wide), torch.randint(1, 12, (n, 6)), torch.randint(3, 7, (n,))) for n, wide in ((6, 32), (6, 32), (4, 40), (6, 24))])
    return [*results, *found], again


@script("farthest-of-alike")
def farthest_of_alike(run):
    """Triplets of a batch: the farthest row of the same kind and the nearest of another; angles with margins; centres that are drawn along."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.kinds = nn.Sequential(nn.Linear(18, 40), nn.PReLU(40), nn.LayerNorm(40), nn.Linear(40, 12)), nn.Parameter(torch.randn(6, 12))
            self.register_buffer("centres", torch.zeros(6, 12))

        def forward(self, x, y):
            z = self.body(x)
            e = F.normalize(z, dim=1)
            far = torch.cdist(e, e, compute_mode="donot_use_mm_for_euclid_dist")
            same = y[:, None] == y
            alike = far.masked_fill(~same | torch.eye(len(x), dtype=torch.bool), float("-inf")).amax(1)
            other = far.masked_fill(same, float("inf")).amin(1)
            fits = alike.isfinite() & other.isfinite()
            triple = torch.where(fits, F.softplus(torch.where(fits, alike - other, 0.0) * 4), 0.0).sum() / fits.sum().clamp(min=1)
            cosine = (e @ F.normalize(self.kinds, dim=1).mT).clamp(-1 + 1e-6, 1 - 1e-6)
            turned = torch.where(F.one_hot(y, 6).bool(), torch.cos(torch.acos(cosine) + 0.3), cosine)
            drawn = (z - self.centres[y]).square().sum(1).mean()
            with torch.no_grad():
                count = torch.zeros(6, dtype=x.dtype).index_add(0, y, torch.ones_like(z[:, 0]))[:, None]
                self.centres += 0.3 * (torch.zeros_like(self.centres).index_add(0, y, z - self.centres[y]) / (count + 1))
            return triple + F.cross_entropy(10 * turned, y) + 1e-2 * drawn

    net = run(Net())
    forward, optimizer = run.compile(net), torch.optim.Adagrad(net.parameters(), 5e-2)
    return trained(net, lambda x, y: descend(optimizer, forward(x, y)), [(run.normal(n, 18), torch.randint(6, (n,))) for n in (30, 30, 17, 30)])
