"""Further SCRIPTS, short ones: views written in place, sizes that are marked, generation with static caches, halves, exports, groups of norms, sampling,
retrieval, distances, codes, counts, histories, filters, polynomials."""

import contextlib
import functools
import math

import torch
import torch.nn.functional as F
from torch import nn
from torch_training_scripts import descend, perceptron, script, state, trained


@script("views-that-are-written")
def views_that_are_written(run):
    """Diagonals, transposes, slices with steps, windows, chunks of one tensor, each written in place, then read as a whole, with gradients."""
    @run.compile
    def f(x, row):
        y = x.clone()
        y.diagonal().mul_(2)
        y.t()[1:3, ::2] += row[:3]
        y[:, 1].copy_(row)
        first, second = y[:3], y[3:]
        first.sub_(second.detach())
        y.view(-1)[4:8].zero_()
        y.unfold(1, 2, 2)[..., 0].add_(1)
        y.select(0, 2).clamp_(-0.5, 0.5)
        y[y > 1.5] = 0.25
        y[[0, 3], [1, 2]] = row[:2]
        y.narrow(1, 0, 2).add_(3)
        return y, y.flip(0).roll(1, 1), torch.swapaxes(y, 0, 1).expand(2, -1, -1)

    x, row = run.normal(6, 6).requires_grad_(), run.normal(6).requires_grad_()
    results = f(x, row)
    sum(r.square().sum() for r in results).backward()
    return [*(r.detach() for r in results), x.grad, row.grad], lambda: f(x, row)[0].sum().backward()


@script("sizes-that-are-marked")
def sizes_that_are_marked(run):
    """Batches and lengths marked as open, shapes in arithmetic, positions made from sizes, a branch on a size, pads to a multiple, splits."""
    net = perceptron(run, 8, 16, 8)

    @run.compile
    def f(x):
        batch, length, width = x.shape
        padded = F.pad(x, (0, 0, 0, -length % 4))
        blocks = padded.view(batch, -1, 4, width)
        places = torch.arange(length, dtype=x.dtype) / max(length - 1, 1)
        y = net(x + places[:, None]) if length > 6 else x * length
        return y, blocks.amax(2), y[:, : length // 2].sum(1), y.reshape(batch * length, width)[:: batch + 1], torch.full((batch,), float(length)), y.new_zeros(length, batch + 2)

    results = []
    for batch, length in ((2, 5), (3, 9), (4, 7), (2, 16), (5, 11)):
        x = run.normal(batch, length, 8)
        for axis in (0, 1):
            torch._dynamo.maybe_mark_dynamic(x, axis)
        with torch.no_grad():
            results += f(x)
    return results, lambda: f(x)


@script("words-by-a-static-cache")
def words_by_a_static_cache(run):
    """A decoder with rotated keys and groups of heads; a prompt, then words one by one into a cache of fixed room, greedy and by top-k samples of given noise."""
    class Decoder(nn.Module):
        def __init__(self, words=50, width=32, heads=4, groups=2, room=32):
            super().__init__()
            self.heads, self.groups, self.depth = heads, groups, width // heads
            self.table, self.q = nn.Embedding(words, width), nn.Linear(width, width, bias=False)
            self.kv, self.out, self.head = nn.Linear(width, 2 * groups * self.depth, bias=False), nn.Linear(width, width, bias=False), nn.Linear(width, words)
            self.norm = nn.RMSNorm(width)
            self.register_buffer("keys", torch.zeros(1, groups, room, self.depth), persistent=False)
            self.register_buffer("values", torch.zeros(1, groups, room, self.depth), persistent=False)
            angles = torch.arange(room)[:, None] * 10000 ** (-torch.arange(0, self.depth, 2) / self.depth)
            self.register_buffer("turns", torch.stack((angles.cos(), angles.sin())), persistent=False)

        def turned(self, x, places):
            cos, sin = self.turns[:, places]
            even, odd = x[..., ::2], x[..., 1::2]
            return torch.stack((even * cos - odd * sin, even * sin + odd * cos), -1).flatten(-2)

        def forward(self, words, places):
            x = self.table(words)
            y = self.norm(x)
            q = self.q(y).unflatten(-1, (self.heads, self.depth)).transpose(1, 2)
            k, v = self.kv(y).unflatten(-1, (2 * self.groups, self.depth)).transpose(1, 2).chunk(2, 1)
            self.keys.index_copy_(2, places, self.turned(k, places))
            self.values.index_copy_(2, places, v)
            sees = torch.arange(self.keys.shape[2]) <= places[:, None]
            y = F.scaled_dot_product_attention(self.turned(q, places), self.keys, self.values, sees, enable_gqa=True)
            return self.head(x + self.out(y.transpose(1, 2).flatten(2)))

    net = run(Decoder()).eval()
    step = run.compile(net)
    noise = run(torch.rand(6, 50))
    with torch.no_grad():
        logits, words = step(torch.tensor([[3, 14, 15, 9, 2]]), torch.arange(5)), []
        for n in range(6):
            best, numbers = logits[:, -1].topk(5)
            word = numbers[:, :1] if n % 2 else numbers.gather(1, (best.softmax(-1) / -noise[n, :5].log()).argmax(-1, keepdim=True))
            words.append(word)
            logits = step(word, torch.tensor([5 + n]))
        return [torch.cat(words, 1), logits, net.keys.clone(), net.values.clone()], lambda: step(word, torch.tensor([10]))


@script("halves-under-autocast")
def halves_under_autocast(run):
    """Convolutions, norms, attention and a loss under autocast of bf16 with parts kept in f32, gradients in f32, accumulated twice."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem, self.norm, self.attention, self.head = nn.Conv2d(3, 16, 4, 4), nn.LayerNorm(16), nn.MultiheadAttention(16, 4, batch_first=True), nn.Linear(16, 6)

        def forward(self, x, autocast):
            x = self.stem(x).flatten(2).mT
            x = x + self.attention(self.norm(x), self.norm(x), self.norm(x), need_weights=False)[0]
            with autocast():
                weights = x.float().square().mean(-1).softmax(-1) if x.dtype == torch.bfloat16 else x.square().mean(-1).softmax(-1)
            return self.head((x * weights[..., None].to(x.dtype)).sum(1))

    net = run(Net())
    forward, optimizer = run.compile(net), torch.optim.SGD(net.parameters(), 0.05, momentum=0.9, nesterov=True)
    outside = contextlib.nullcontext if run.exact else functools.partial(torch.autocast, "cpu", enabled=False)

    def step(x, y):
        optimizer.zero_grad()
        for part, wanted in zip(x.chunk(2), y.chunk(2)):
            with run.autocast():
                loss = F.cross_entropy(forward(part, outside), wanted)
            (loss / 2).backward()
        optimizer.step()
        return loss

    return trained(net, step, [(run.normal(4, 3, 16, 16), torch.randint(6, (4,))) for _ in range(3)])


@script("distances-and-neighbours")
def distances_and_neighbours(run):
    """All pairs of distances of three kinds, nearest neighbours, kernels of them, steps of k-means by one-hot sums, silhouettes, Chamfer's distance, transport by Sinkhorn."""
    @run.compile
    def f(x, y):
        far = torch.cdist(x, y)
        near, number = far.topk(3, largest=False)
        kernel = (-far.square() / 2).exp()
        centres = y[:4]
        for _ in range(3):
            owner = F.one_hot(torch.cdist(x, centres, p=1.0).argmin(-1), 4).to(x.dtype)
            centres = owner.mT @ x / owner.sum(0).clamp(min=1)[:, None]
        chamfer = far.amin(1).mean() + far.amin(0).mean()
        u = torch.zeros_like(x[:, 0])
        for _ in range(5):
            v = -torch.logsumexp(-far + u[:, None], 0)
            u = -torch.logsumexp(-far + v[None], 1)
        plan = (-far + u[:, None] + v[None]).exp()
        angle = F.cosine_similarity(x[:, None], y[None], dim=-1)
        return near, number, kernel @ y, centres, chamfer, plan, angle.argsort(dim=-1, descending=True, stable=True)[:, :2], F.pairwise_distance(x, x.flip(0)), torch.pdist(x)

    x, y = run.normal(12, 5), run.normal(9, 5)
    return list(f(x, y)), lambda: f(x, y)


@script("counts-and-orders")
def counts_and_orders(run):
    """bincount, unique by sorting, ranks, runs, histograms by buckets, searchsorted with sorters, quantiles, modes, running extremes, Kendall's and Spearman's sums."""
    @run.compile
    def f(x, n):
        order = x.argsort(-1)
        rank = torch.empty_like(order).scatter_(-1, order, torch.arange(x.shape[-1]).expand_as(order))
        edges = torch.linspace(-2, 2, 9, dtype=x.dtype)
        counted = torch.zeros(10, dtype=torch.int64).scatter_add_(0, torch.bucketize(x.flatten(), edges), torch.ones(x.numel(), dtype=torch.int64))
        changes = F.pad((n[:, 1:] != n[:, :-1]).int(), (1, 0)).cumsum(-1)
        pairs = (x[:, :, None] - x[:, None]).sign() * (n[:, :, None] - n[:, None]).sign()
        return (rank, counted, changes, torch.bincount(n[0], minlength=8), torch.searchsorted(edges, x, right=True), x.quantile(torch.tensor([0.1, 0.5], dtype=x.dtype), dim=-1), x.median(-1)[0], n.mode(-1)[0],
                x.cummax(-1)[0], x.cummin(-1)[1], x.logcumsumexp(-1), pairs.triu(1).sum((1, 2)), x.kthvalue(3, -1)[0], n.sort(dim=-1, stable=True)[1], torch.isin(n, torch.tensor([1, 5])), x.diff(n=2), torch.trapezoid(x), x.aminmax(dim=-1),
                torch.count_nonzero(n, 1), torch.std_mean(x, -1, correction=0), torch.cov(x), torch.corrcoef(x), x.renorm(2, 0, 1.0), n.float().histc(4, 0, 8))  # fmt: skip

    x, n = run.normal(4, 10), torch.randint(8, (4, 10))
    return list(f(x, n)), lambda: f(x, n)


@script("histories-and-filters")
def histories_and_filters(run):
    """Filters of a signal by convolutions of one channel and of groups, recursions by cumulative sums of logs, resampling, spectrograms, envelopes, mel bands, delays in rings."""
    bands = run(torch.rand(6, 33))

    @run.compile
    def f(x, ring, at):
        window = torch.hann_window(64, dtype=x.dtype)
        spectrum = torch.stft(x, 64, 16, window=window, return_complex=True)
        mel = (bands @ spectrum.abs().square()).clamp(min=1e-6).log10()
        back = torch.istft(spectrum, 64, 16, window=window, length=x.shape[-1])
        taps = torch.sinc(torch.arange(-4, 5, dtype=x.dtype) / 2) * torch.hamming_window(9, periodic=False, dtype=x.dtype)
        low = F.conv1d(x[:, None], taps.flip(0)[None, None], padding=4, stride=2)
        up = F.interpolate(low, scale_factor=2, mode="linear")[:, 0]
        decay = x.abs().log().logcumsumexp(-1).exp()
        ring[:, at % ring.shape[1]] = low[:, 0, :1]
        level = F.max_pool1d(x.abs()[:, None], 5, 1, 2)[:, 0].clamp(min=1e-3).log2()
        return mel, back, up, decay, ring.roll(-1, 1), level, torch.fft.fftshift(torch.fft.fft(x[:, :32]).abs(), -1), F.avg_pool1d(x[:, None], 4).squeeze(1)

    x, ring = run.normal(2, 256), run(torch.zeros(2, 8))
    results = [r.clone() for n in range(3) for r in f(x * (n + 1), ring, torch.tensor([n * 3]))]
    return [*results, ring.clone()], lambda: f(x, ring, torch.tensor([1]))


@script("norms-of-all-kinds")
def norms_of_all_kinds(run):
    """Instance, group, local response, batch norms of volumes, layer norms of several dims, weights that are standardised, dropout of zero, alpha-dropout in evaluation."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b, self.c = nn.Conv2d(4, 8, 3, padding=1), nn.Conv2d(8, 8, 3, groups=2, padding=1), nn.Conv3d(2, 4, 1)
            self.norms = nn.ModuleList([nn.InstanceNorm2d(8, affine=True, track_running_stats=True), nn.GroupNorm(4, 8), nn.LocalResponseNorm(3), nn.LayerNorm([8, 6, 6]), nn.BatchNorm2d(8, momentum=0.3)])
            self.volume, self.prelu, self.drop = nn.BatchNorm3d(4, affine=False), nn.PReLU(8), nn.AlphaDropout(0.0)

        def forward(self, x):
            w = self.a.weight
            w = (w - w.mean((1, 2, 3), keepdim=True)) / (w.std((1, 2, 3), keepdim=True) + 1e-5)
            y = self.prelu(F.conv2d(x, w, self.a.bias, padding=1))
            for norm in self.norms:
                y = F.mish(norm(y)) + self.b(y) * 0.1
            z = self.volume(self.c(y.view(-1, 2, 4, 6, 6)))
            return self.drop(F.hardswish(F.adaptive_max_pool2d(z.flatten(1, 2), 2))).flatten(1)

    net = run(Net())
    forward, optimizer = run.compile(net), torch.optim.RMSprop(net.parameters(), 1e-3, momentum=0.5)

    def step(x):
        return descend(optimizer, forward(x).square().mean())

    results, again = trained(net, step, [(run.normal(3, 4, 6, 6),) for _ in range(3)])
    net.eval()
    return [*results, forward(run(torch.ones(2, 4, 6, 6))).detach()], again


@script("polynomials-and-roots")
def polynomials_and_roots(run):
    """Horner's rule, Chebyshev's series, Newton's steps with derivatives of autograd inside, splines, Bessel functions, gammas, erfs, angles, Mandelbrot's counts, Gray codes."""
    @run.compile
    def f(x, coefficients, n):
        y = torch.zeros_like(x)
        for c in coefficients:
            y = y * x + c
        series, before = torch.ones_like(x), x
        for _ in range(4):
            series, before = before, 2 * x * before - series
        z, c = torch.zeros_like(x, dtype=torch.complex64 if x.dtype == torch.float32 else torch.complex128), torch.complex(x, x.flip(0))
        count = torch.zeros_like(n)
        for _ in range(6):
            z = z * z + c
            count += (z.real.square() + z.imag.square() < 4).long()
            z = torch.where(count[:] > 0, z, 0)
        gray = n ^ (n >> 1)
        bits = (gray[:, None] >> torch.arange(6)) & 1
        return (y, before, torch.special.i0e(x), torch.lgamma(x.abs() + 1), torch.digamma(x.abs() + 1), torch.erfinv(x.clamp(-0.9, 0.9)), torch.special.xlog1py(x, x.abs()), torch.atan2(x, x.flip(0)),
                count, gray, bits.sum(-1) % 2, torch.special.entr(x.abs()), torch.special.log_ndtr(x), torch.hypot(x, x.roll(1)), torch.frac(x * 5), x.nextafter(x + 1), torch.copysign(x, x.roll(2)), torch.logit(x.sigmoid()),
                torch.polygamma(1, x.abs() + 1), torch.special.bessel_j0(x), torch.float_power(x.abs(), 1.5), torch.heaviside(x, x.new_tensor(0.5)), torch.sinc(x), torch.expm1(x), torch.special.multigammaln(x.abs() + 3, 2))  # fmt: skip

    x, c, n = run.normal(16), run.normal(5), torch.randint(64, (16,))
    return list(f(x, c, n)), lambda: f(x, c, n)


@script("policies-and-returns")
def policies_and_returns(run):
    """Advantages by a backward loop, clipped ratios, entropies of several distributions, values by two critics with soft targets, n-step returns, softmax with masks of actions."""
    policy, critic = perceptron(run, 6, 32, 5), perceptron(run, 6, 32, 1)
    target = perceptron(run, 6, 32, 1)
    target.load_state_dict(critic.state_dict())
    optimizer = torch.optim.NAdam([*policy.parameters(), *critic.parameters()], 0.01)

    @run.compile
    def loss_of(seen, taken, reward, ends, old, allowed):
        logits = policy(seen).masked_fill(~allowed, -1e9)
        now = torch.distributions.Categorical(logits=logits, validate_args=False)
        value = critic(seen).squeeze(-1)
        with torch.no_grad():
            later = target(seen).squeeze(-1)
            advantage, rows = torch.zeros_like(later[0]), []
            for t in reversed(range(len(seen) - 1)):
                gap = reward[t] + 0.99 * later[t + 1] * ~ends[t] - later[t]
                advantage = gap + 0.95 * 0.99 * advantage * ~ends[t]
                rows.insert(0, advantage)
            advantage = torch.stack(rows)
            normal = (advantage - advantage.mean()) / (advantage.std() + 1e-6)
        ratio = (now.log_prob(taken)[:-1] - old[:-1]).exp()
        gain = torch.minimum(ratio * normal, ratio.clamp(0.8, 1.2) * normal).mean()
        return -gain + F.smooth_l1_loss(value[:-1], advantage + later[:-1]) - 0.01 * now.entropy().mean()

    def step(*given):
        loss = descend(optimizer, loss_of(*given))
        with torch.no_grad():
            torch._foreach_lerp_(list(target.parameters()), list(critic.parameters()), 0.05)
        return loss

    def batch():
        return run.normal(8, 3, 6), torch.randint(5, (8, 3)), run.normal(8, 3), torch.rand(8, 3) < 0.1, -run.normal(8, 3).abs(), torch.rand(8, 3, 5) < 0.9

    results, again = trained(policy, step, [batch() for _ in range(3)])
    return [*results, *state(critic, target)], again


@script("pictures-moved-and-mixed")
def pictures_moved_and_mixed(run):
    """Grids of affine maps, bicubic and nearest sizes, shuffles of pixels, patches folded again, blurs in groups, morphology, colour turns, crops by boxes, mixes of batches."""
    kernel = torch.tensor([1.0, 4, 6, 4, 1]) / 16

    @run.compile
    def f(x, theta, share, places):
        grid = F.affine_grid(theta, list(x.shape), align_corners=False)
        moved = F.grid_sample(x, grid, mode="bilinear", padding_mode="reflection", align_corners=False)
        k = run(kernel).expand(3, 1, 1, 5)
        blurred = F.conv2d(F.conv2d(F.pad(x, (2, 2, 2, 2), mode="reflect"), k, groups=3), k.mT, groups=3)
        small = F.interpolate(blurred, size=(5, 7), mode="bicubic", antialias=False)
        large = F.interpolate(small, scale_factor=2, mode="nearest-exact")
        patches = F.unfold(x, 4, stride=2)
        again = F.fold(patches * patches.softmax(1), (8, 8), 4, stride=2)
        opened = -F.max_pool2d(-F.max_pool2d(x, 3, 1, 1), 3, 1, 1)
        turn = torch.stack([torch.stack([share.cos(), -share.sin()]), torch.stack([share.sin(), share.cos()])])
        colours = torch.einsum("ij,bjhw->bihw", turn, x[:, :2])
        crops = torch.stack([x[i, :, y:y + 4, z:z + 4] for i, (y, z) in enumerate(((0, 1), (2, 3)))])
        mixed = share.sigmoid() * x + (1 - share.sigmoid()) * x[places]
        return moved, small, large, again, opened, colours, crops, mixed, F.pixel_unshuffle(x, 2), F.pixel_shuffle(x.repeat(1, 4, 1, 1), 2), F.channel_shuffle(x.repeat(1, 2, 1, 1), 2), torch.rot90(x, 1, (2, 3)), (x > 0).float().cumsum(-1)

    x, theta, share = run.normal(2, 3, 8, 8).requires_grad_(), run(torch.tensor([[[0.9, 0.1, 0.05], [-0.1, 1.1, 0.0]]])).repeat(2, 1, 1), run(torch.tensor(0.3)).requires_grad_()
    places = torch.tensor([1, 0])
    results = f(x, theta, share, places)
    sum(r.square().mean() for r in results).backward()
    return [*(r.detach() for r in results), x.grad, share.grad], lambda: f(x, theta, share, places)[0].sum().backward()


@script("recurrences-by-hand")
def recurrences_by_hand(run):
    """Cells of LSTMs and GRUs in a loop, a layer with projections, Elman's and minimal ones, with zoneout by masks, truncated gradients, states that are kept in the module."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm, self.gru, self.rnn, self.head = nn.LSTMCell(5, 8), nn.GRUCell(8, 8), nn.RNNCell(8, 6, "relu"), nn.Linear(6, 3)
            self.register_buffer("kept", torch.zeros(4, 8))

        def forward(self, x, keeps):
            h, c, g, r, found = self.kept.clone(), torch.zeros_like(self.kept), torch.zeros_like(self.kept), torch.zeros(4, 6, dtype=x.dtype), []
            for t in range(x.shape[1]):
                h, c = self.lstm(x[:, t], (h, c))
                g = torch.where(keeps[:, t, None], g, self.gru(h, g))
                r = self.rnn(g, r.detach() if t == 3 else r)
                found.append(self.head(r))
            self.kept.copy_(h.detach())
            return torch.stack(found, 1)

    net = run(Net())
    forward, optimizer = run.compile(net), torch.optim.Adagrad(net.parameters(), 0.05)

    def step(x, keeps, y):
        return descend(optimizer, F.cross_entropy(forward(x, keeps).flatten(0, 1), y.flatten()))

    return trained(net, step, [(run.normal(4, 6, 5), torch.rand(4, 6) < 0.3, torch.randint(3, (4, 6))) for _ in range(3)])


@script("retrieval-and-ranking")
def retrieval_and_ranking(run):
    """Two towers with negatives of the batch, a queue that turns, margins, lists ranked by soft orders, discounted gains, hashes of words, bags with weights, hard samples."""
    class Tower(nn.Module):
        def __init__(self):
            super().__init__()
            self.bag, self.out, self.log_scale = nn.EmbeddingBag(100, 16, mode="sum"), nn.Linear(16, 12), nn.Parameter(torch.tensor(math.log(10.0)))

        def forward(self, words, weights):
            hashed = (words * 2654435761) % 97
            return F.normalize(self.out(self.bag(hashed, per_sample_weights=weights)), dim=-1)

    net, queue = run(Tower()), F.normalize(run.normal(8, 12), dim=-1)
    forward, optimizer = run.compile(net), torch.optim.Adamax(net.parameters(), 0.01)

    @run.compile
    def loss_of(a, b, queue, grades):
        scores = net.log_scale.exp().clamp(max=100) * torch.cat((a @ b.mT, a @ queue.mT), 1)
        targets = torch.arange(len(a))
        hard = scores.masked_fill(F.one_hot(targets, scores.shape[1]).bool(), -1e9).amax(1)
        soft = torch.sigmoid((scores[:, :, None] - scores[:, None]) * 0.5).sum(1)
        gains = ((2.0 ** grades - 1) / torch.log2(1 + soft[:, :grades.shape[1]] + 1)).sum(1)
        return F.cross_entropy(scores, targets) + F.relu(hard - scores.diagonal() + 0.2).mean() - 0.1 * gains.mean()

    def step(x, y, weights, grades):
        a, b = forward(x, weights), forward(y, weights.flip(1))
        loss = descend(optimizer, loss_of(a, b, queue, grades))
        with torch.no_grad():
            queue.copy_(torch.cat((b.detach(), queue))[:8])
        return loss

    def batch():
        return torch.randint(1000, (4, 7)), torch.randint(1000, (4, 7)), run(torch.rand(4, 7)), run(torch.randint(3, (4, 4)).float())

    results, again = trained(net, step, [batch() for _ in range(3)])
    return [*results, queue.clone()], again
