"""Further SCRIPTS: sparse tables, derivatives by torch.func, filters of spectra, loops until something holds, functions, hooks and weights of one's own,
sparse and approximate attention, losses of regions, and words one by one, by hand."""

import math

import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call, grad, hessian, jacrev, jvp, vmap
from torch.nn.utils import parametrizations, parametrize
from torch_training_scripts import descend, perceptron, script, trained


@script("sparse-tables")
def sparse_tables(run):
    """Words beside words that are drawn: tables with sparse gradients, their rows limited, one optimiser for them and one for the rest."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.outer = nn.Embedding(300, 16, sparse=True, max_norm=2.0), nn.Embedding(300, 16, sparse=True)
            self.turn = nn.Linear(16, 16)

        def forward(self, middle, near, wrong):
            h = self.turn(self.inner(middle))
            good = (h * self.outer(near)).sum(1)
            return -(F.logsigmoid(good) + F.logsigmoid(-torch.einsum("nd,nkd->nk", h, self.outer(wrong))).sum(1)).mean()

    net = run(Net())
    forward = run.compile(net)
    sparse, dense = torch.optim.Adagrad([net.inner.weight, net.outer.weight], 0.1), torch.optim.ASGD(net.turn.parameters(), 0.05)

    def step(*words):
        sparse.zero_grad()
        dense.zero_grad()
        loss = forward(*words)
        loss.backward()
        sparse.step()
        dense.step()
        return loss

    return trained(net, step, [(torch.randint(300, (n,)), torch.randint(300, (n,)), torch.randint(300, (n, 5))) for n in (40, 40, 23)])


@script("particles-that-repel")
def particles_that_repel(run):
    """Stein's variational descent: a kernel between particles with its gradient, scores by vmap and grad, a median as width."""
    net = perceptron(run, 2, 16, 1)
    shape = {n: p.shape for n, p in net.named_parameters()}
    sizes = [s.numel() for s in shape.values()]
    points, x, y = run.normal(10, sum(sizes)) * 0.5, run.normal(20, 2), run.normal(20, 1)

    def log_density(flat, x, y):
        params = {n: p.view(s) for (n, s), p in zip(shape.items(), flat.split(sizes))}
        return -F.mse_loss(functional_call(net, params, (x,)), y, reduction="sum") / 0.1 - flat.square().sum() / 2

    @run.compile
    def move(points, x, y):
        scores = vmap(grad(log_density), (0, None, None))(points, x, y)
        far = (points[:, None] - points).square().sum(-1)
        wide = far.flatten().median() / math.log(len(points)) + 1e-6
        near = torch.exp(-far / wide)
        repel = 2 / wide * (points * near.sum(1, keepdim=True) - near @ points)
        return points + 1e-3 * (near @ scores + repel) / len(points), vmap(log_density, (0, None, None))(points, x, y)

    told = []
    for _ in range(4):
        points, log = move(points, x, y)
        told.append(log)
    return [points, *told], lambda: move(points, x, y)


@script("waves-by-derivatives")
def waves_by_derivatives(run):
    """A field of sines that must obey a wave's equation: second derivatives along directions by jvp of grad, a Laplacian by hessian, weights of losses that are learned."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b, self.c, self.weights = nn.Linear(3, 32), nn.Linear(32, 32), nn.Linear(32, 1), nn.Parameter(torch.zeros(3))

        def at(self, p):
            return self.c(torch.sin(self.b(torch.sin(3 * self.a(p))))).squeeze(-1)

        def second(self, p, v):
            return jvp(lambda q: (grad(lambda r: self.at(r).sum())(q) * v).sum(1), (p,), (v,))[1]

        def forward(self, inside, edge, value):
            along = torch.eye(3, dtype=inside.dtype)
            tt, xx, yy = (self.second(inside, v.expand_as(inside)) for v in along)
            trace = vmap(lambda p: hessian(self.at)(p).diagonal().sum())(edge)
            slopes = vmap(jacrev(self.at))(edge)
            parts = torch.stack([(tt - xx - yy).square().mean(), (self.at(edge) - value).square().mean(), (trace - slopes.sum(1)).square().mean()])
            return (parts * torch.exp(-self.weights) + self.weights).sum()

    net = run(Net())
    forward, optimizer = run.compile(net), torch.optim.Adam(net.parameters(), 1e-3, amsgrad=True)
    return trained(net, lambda *given: descend(optimizer, forward(*given)), [(run(torch.rand(n, 3)), run(torch.rand(6, 3)), run.normal(6)) for n in (24, 24, 11)])


@script("filters-of-spectra")
def filters_of_spectra(run):
    """Images whose tokens are mixed by learned complex filters, blurred by a known kernel and sharpened by Wiener's; phases found again by projections."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.cut, self.filters, self.out = nn.Conv2d(1, 12, 2, 2), nn.ParameterList(nn.Parameter(torch.randn(8, 5, 12, 2) * 0.1) for _ in range(2)), nn.Linear(12, 4)
            self.grow, self.norms, self.noise = nn.ModuleList(perceptron(run, 12, 24, 12) for _ in range(2)), nn.ModuleList(nn.LayerNorm(12) for _ in range(2)), nn.Parameter(torch.tensor(-2.0))

        def forward(self, x, kernel):
            seen = torch.fft.fft2(x) * torch.fft.fft2(kernel, s=x.shape[-2:])
            k = torch.fft.fft2(kernel, s=x.shape[-2:])
            x = torch.fft.ifft2(seen * k.conj() / (k.abs().square() + self.noise.exp())).real
            h = self.cut(x).permute(0, 2, 3, 1)
            for f, grow, norm in zip(self.filters, self.grow, self.norms):
                mixed = torch.fft.irfft2(torch.fft.rfft2(h, dim=(1, 2), norm="ortho") * torch.view_as_complex(f), s=(8, 8), dim=(1, 2), norm="ortho")
                h = h + grow(norm(mixed))
            return self.out(h.mean((1, 2)))

    net = run(Net())
    forward, optimizer = run.compile(net), torch.optim.Rprop(net.parameters(), 1e-3)
    results, again = trained(net, lambda x, k, y: descend(optimizer, F.cross_entropy(forward(x, k), y, weight=run(torch.tensor([1.0, 2.0, 0.5, 1.0])))), [(run.normal(n, 1, 16, 16), run(torch.rand(3, 3) / 9), torch.randint(4, (n,))) for n in (6, 6, 2)])

    @run.compile
    def find_phase(size, held, guess):
        for _ in range(5):
            spectrum = torch.fft.fft2(guess)
            made = torch.fft.ifft2(size * torch.exp(1j * spectrum.angle())).real
            guess = torch.where(held & (made > 0), made, guess - 0.9 * made)
        return guess

    with torch.no_grad():
        true = run(F.pad(torch.rand(2, 6, 6), (0, 6, 0, 6)) + 0.1)
        return [*results, find_phase(torch.fft.fft2(true).abs(), torch.arange(12)[:, None] + torch.arange(12) < 12, true.roll(1, 1))], again


@script("until-nothing-moves")
def until_nothing_moves(run):
    """Loops on data: means of groups until none moves, a transport until its rows fit, a root by bisection and Newton's steps with its gradient by hand."""
    @run.compile
    def nearest(x, middles):
        of = torch.cdist(x, middles).argmin(1)
        count = torch.zeros(len(middles), dtype=x.dtype).index_add(0, of, torch.ones_like(x[:, 0]))
        made = torch.zeros_like(middles).index_add(0, of, x) / count.clamp(min=1)[:, None]
        return torch.where(count[:, None] > 0, made, middles), of

    @run.compile
    def groups(x, middles):
        steps = 0
        while True:
            made, of = nearest(x, middles)
            moved = (made - middles).abs().max().item()
            middles, steps = made, steps + 1
            if moved < 1e-6 or steps >= 30:
                return middles, of, steps

    @run.compile
    def scaled(cost, a, b):
        f, g = torch.zeros_like(a), torch.zeros_like(b)
        for _ in range(50):
            f = 0.3 * (a.log() - ((g - cost) / 0.3).logsumexp(1))
            g = 0.3 * (b.log() - ((f[:, None] - cost) / 0.3).logsumexp(0))
        return torch.exp((f[:, None] + g - cost) / 0.3)

    class Root(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            low, high = torch.zeros_like(a), a + 2
            for _ in range(12):
                middle = (low + high) / 2
                above = middle.exp() * middle > a
                low, high = torch.where(above, low, middle), torch.where(above, middle, high)
            x = (low + high) / 2
            for _ in range(2):
                x = x - (x * x.exp() - a) / ((x + 1) * x.exp())
            ctx.save_for_backward(x)
            return x

        @staticmethod
        def backward(ctx, g):
            x, = ctx.saved_tensors
            return g / ((1 + x) * x.exp())

    root, told = run.compile(Root.apply), []
    for n in (60, 60, 35):
        x = run.normal(n, 3) + run(torch.randint(3, (n, 1)).float() * 4)
        middles, of, steps = groups(x, x[:4].clone())
        plan = scaled(torch.cdist(x, middles), run(torch.full((n,), 1 / n)), run(torch.full((4,), 0.25)))
        a = run(torch.rand(n) * 5).requires_grad_()
        made = root(a)
        made.square().sum().backward()
        told += [middles, of, torch.tensor(steps), plan, made, a.grad]
    return told, lambda: scaled(torch.cdist(x, middles), run(torch.full((n,), 1 / n)), run(torch.full((4,), 0.25)))


@script("critic-of-bounded-slope")
def critic_of_bounded_slope(run):
    """A critic with spectral norms and weights divided in length and direction, gradients that are turned round for a domain's classifier, hooks that clip them,
    gradients counted by module, and a scale of a parametrisation of one's own."""
    class Turn(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, rate):
            ctx.rate = rate
            return x.view_as(x)

        @staticmethod
        def backward(ctx, g):
            return -ctx.rate * g, None

    class Bounded(nn.Module):
        def forward(self, w):
            return w * (2 / w.square().sum().sqrt().clamp(min=2))

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = parametrizations.spectral_norm(nn.Linear(10, 32), n_power_iterations=2), parametrizations.weight_norm(nn.Linear(32, 24))
            self.kind, self.domain = parametrizations.orthogonal(nn.Linear(24, 4, bias=False), use_trivialization=False), nn.Linear(24, 2)
            parametrize.register_parametrization(self.domain, "weight", Bounded())

        def forward(self, x, rate: float):
            h = F.leaky_relu(self.b(F.leaky_relu(self.a(x), 0.2)), 0.2)
            if h.requires_grad:
                h.register_hook(lambda g: g.clamp(-0.05, 0.05))
            return self.kind(h), self.domain(Turn.apply(h, rate))

    net = run(Net())
    seen = []
    net.domain.register_full_backward_hook(lambda _, given, back: seen.append(back[0].detach().norm()))
    forward, optimizer = run.compile(net), torch.optim.SGD(net.parameters(), 0.1)

    def step(x, y, d, rate):
        kind, domain = forward(x, rate)
        return descend(optimizer, F.multi_margin_loss(kind, y) + F.cross_entropy(domain, d))

    results, again = trained(net, step, [(run.normal(n, 10), torch.randint(4, (n,)), torch.randint(2, (n,)), rate) for n, rate in ((16, 0.1), (16, 0.2), (7, 0.3))])
    return [*results, *seen[:3]], again


@script("sparse-shares")
def sparse_shares(run):
    """Rows of a table: sparsemax and entmax as masks of features, their sort and running sums, noisy batches of norms, choices by Gumbel's noise, straight through."""
    def sparsemax(z):
        top = z.sort(dim=-1, descending=True).values
        k = torch.arange(1, z.shape[-1] + 1, dtype=z.dtype)
        sums = top.cumsum(-1) - 1
        held = k * top > sums
        count = held.sum(-1, keepdim=True)
        return (z - sums.gather(-1, count - 1) / count.to(z.dtype)).clamp(min=0)

    def entmax(z):
        z = (z - z.amax(-1, keepdim=True)) / 2
        top = z.sort(dim=-1, descending=True).values
        k = torch.arange(1, z.shape[-1] + 1, dtype=z.dtype)
        mean, square = top.cumsum(-1) / k, (top * top).cumsum(-1) / k
        edge = mean - ((1 - k * (square - mean * mean)) / k).clamp(min=0).sqrt()
        return (z - edge.gather(-1, (edge <= top).sum(-1, keepdim=True) - 1)).clamp(min=0).square()

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.start, self.ask, self.steps = nn.BatchNorm1d(14), nn.ModuleList(nn.Linear(16, 14) for _ in range(3)), nn.ModuleList(nn.Linear(14, 48) for _ in range(3))
            self.norms, self.out = nn.ModuleList(nn.BatchNorm1d(48, momentum=0.02) for _ in range(3)), nn.Linear(8, 5)

        def forward(self, x, noise):
            x = self.start(x)
            a, prior, total, spread = x.new_zeros(len(x), 16), torch.ones_like(x), 0, 0
            for i, (ask, turn, norm) in enumerate(zip(self.ask, self.steps, self.norms)):
                mask = (entmax if i == 1 else sparsemax)(ask(a) * prior)
                prior = prior * (1.3 - mask)
                h = F.glu(torch.cat([norm(part) for part in turn(mask * x).chunk(2)]))
                a, d = h[:, 8:], h[:, :8]
                soft = ((d + noise) / 0.7).softmax(-1)
                hard = torch.zeros_like(soft).scatter(1, soft.argmax(1, keepdim=True), 1.0)
                total, spread = total + F.relu(d) * (hard - soft.detach() + soft), spread - (mask * (mask + 1e-10).log()).sum(1).mean()
            return self.out(total), spread

    net = run(Net())
    forward, optimizer = run.compile(net), torch.optim.Adam(net.parameters(), 5e-3)

    def step(x, noise, y):
        lines, spread = forward(x, noise)
        return descend(optimizer, F.cross_entropy(lines, y) + 1e-3 * spread)

    return trained(net, step, [(run.normal(n, 14), run(-torch.log(-torch.log(torch.rand(n, 8) * 0.98 + 0.01))), torch.randint(5, (n,))) for n in (32, 32, 18)])


@script("attention-by-buckets")
def attention_by_buckets(run):
    """Attention approximated thrice: rows sorted by hashes into chunks, random features with running sums, and landmarks whose inverse is found by steps."""
    def by_hash(q, v, turn):
        n, length, depth = q.shape
        bucket = torch.cat([q @ turn, -q @ turn], -1).argmax(-1)
        order = (bucket * length + torch.arange(length)).argsort(-1)
        there = order.unsqueeze(-1).expand(-1, -1, depth)
        s, w = q.gather(1, there).view(n, -1, 8, depth), v.gather(1, there).view(n, -1, 8, depth)
        keys, values = torch.cat([s, s.roll(1, 1)], 2), torch.cat([w, w.roll(1, 1)], 2)
        place = order.view(n, -1, 8)
        before = place[..., None] < torch.cat([place, place.roll(1, 1)], 2)[:, :, None]
        scores = (s @ F.normalize(keys, dim=-1).mT / depth**0.5).masked_fill(before, -1e9)
        return (scores.softmax(-1) @ values).view(n, length, depth).gather(1, order.argsort(-1).unsqueeze(-1).expand(-1, -1, depth))

    def by_features(q, k, v, turn):
        q, k = (torch.exp(z @ turn - z.square().sum(-1, keepdim=True) / 2 - 1) + 1e-4 for z in (q * 0.5, k * 0.5))
        sums = (k.unsqueeze(-1) * v.unsqueeze(-2)).cumsum(1)
        return torch.einsum("nlf,nlfd->nld", q, sums) / torch.einsum("nlf,nlf->nl", q, k.cumsum(1))[..., None]

    def by_landmarks(q, k, v):
        a, b = q.unflatten(1, (4, -1)).mean(2), k.unflatten(1, (4, -1)).mean(2)
        left, middle, right = ((x @ y.mT).softmax(-1) for x, y in ((q, b), (a, b), (a, k)))
        inverse, one = middle.mT / (middle.sum(-1).amax() * middle.sum(-2).amax()), torch.eye(4, dtype=q.dtype)
        for _ in range(6):
            m = middle @ inverse
            inverse = 0.25 * inverse @ (13 * one - m @ (15 * one - m @ (7 * one - m)))
        return left @ inverse @ (right @ v)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.qkv, self.out = nn.Linear(6, 24), nn.Linear(24, 72), nn.Linear(72, 3)
            self.register_buffer("turns", torch.randn(24, 4))
            self.register_buffer("features", torch.randn(24, 16))

        def forward(self, x):
            q, k, v = self.qkv(torch.tanh(self.words(x))).chunk(3, -1)
            return self.out(torch.cat([by_hash(q, v, self.turns), by_features(q, k, v, self.features), by_landmarks(q / 24**0.25, k / 24**0.25, v)], -1))

    net = run(Net())
    forward, optimizer = run.compile(net), torch.optim.SGD(net.parameters(), 0.1)
    return trained(net, lambda x, y: descend(optimizer, F.cross_entropy(forward(x).flatten(0, 1), y.flatten())), [(run.normal(n, length, 6), torch.randint(3, (n, length))) for n, length in ((4, 32), (4, 32), (2, 40), (4, 16))])


@script("losses-of-regions")
def losses_of_regions(run):
    """Regions of images: focal, Tversky's and edge losses, weights by distance from an edge, a field smoothed by steps, several scales, channels innermost, bf16."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b, self.c = nn.Conv2d(3, 16, 3, 1, 1), nn.Conv2d(16, 32, 3, 2, 1), nn.Conv2d(32, 32, 3, 1, 2, dilation=2)
            self.up, self.heads, self.norm = nn.Conv2d(48, 16, 3, 1, 1), nn.ModuleList([nn.Conv2d(16, 4, 1), nn.Conv2d(32, 4, 1)]), nn.InstanceNorm2d(16, affine=True)

        def forward(self, x):
            near = F.silu(self.norm(self.a(x)))
            far = F.gelu(self.c(F.gelu(self.b(near))))
            both = torch.cat([near, F.interpolate(far, scale_factor=2.0, mode="bilinear", align_corners=False)], 1)
            return self.heads[0](F.silu(self.up(both))), self.heads[1](far)

    net = run(Net()).to(memory_format=torch.channels_last)
    forward, optimizer = run.compile(net), torch.optim.AdamW(net.parameters(), 2e-3)

    @run.compile
    def loss_of(lines, coarse, y):
        log = lines.log_softmax(1)
        hot = F.one_hot(y, 4).movedim(-1, 1).to(log.dtype)
        wide = F.max_pool2d(hot, 3, 1, 1) + F.max_pool2d(-hot, 3, 1, 1)
        focal = (-(1 - log.exp()).square() * log * hot * (1 + 2 * wide)).sum(1).mean()
        p = log.exp()
        hit, over, miss = ((a * b).sum((0, 2, 3)) for a, b in ((p, hot), (p, 1 - hot), (1 - p, hot)))
        region = (1 - (hit + 1) / (hit + 0.3 * over + 0.7 * miss + 1)).pow(0.75).mean()
        smooth = p
        for _ in range(3):
            smooth = (p * torch.exp(0.5 * F.avg_pool2d(smooth, 3, 1, 1, count_include_pad=False))).softmax(1)
        slopes = F.conv2d(smooth.flatten(0, 1)[:, None], smooth.new_tensor([[[[-1.0, 0, 1], [-2, 0, 2], [-1, 0, 1]]]]), padding=1)
        return focal + region + F.cross_entropy(coarse, y[:, ::2, ::2]) + 1e-2 * slopes.abs().mean()

    def step(x, y):
        with run.autocast():
            lines, coarse = forward(x)
        return descend(optimizer, loss_of(lines.double() if run.exact else lines.float(), coarse.double() if run.exact else coarse.float(), y))

    return trained(net, step, [(run.normal(n, 3, 16, wide).to(memory_format=torch.channels_last), torch.randint(4, (n, 16, wide))) for n, wide in ((4, 16), (4, 16), (2, 24))])


@script("turned-keys-kept")
def turned_keys_kept(run):
    """A decoder with turned queries and shared keys, trained, then words one by one with a cache that is written in place, drawn from the likeliest."""
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.q, self.kv, self.o = nn.Linear(32, 32, bias=False), nn.Linear(32, 32, bias=False), nn.Linear(32, 32, bias=False)
            self.up, self.down, self.norms = nn.Linear(32, 128, bias=False), nn.Linear(64, 32, bias=False), nn.ModuleList([nn.RMSNorm(32), nn.RMSNorm(32)])

        def forward(self, x, at, cache=None):
            n, length = x.shape[:2]
            h = self.norms[0](x)
            q, (k, v) = self.q(h).view(n, length, 4, 8), self.kv(h).view(n, length, 2, 2, 8).unbind(2)
            angle = at[:, None] * 1e4 ** (-torch.arange(4, dtype=x.dtype) / 4)
            turn = torch.polar(torch.ones_like(angle), angle)[:, None]
            q, k = (torch.view_as_real(torch.view_as_complex(z.unflatten(-1, (4, 2)).contiguous()) * turn).flatten(3) for z in (q, k))
            mask = at[:, None] >= torch.arange(length if cache is None else cache.shape[3])
            if cache is not None:
                cache[0].index_copy_(2, at, k.transpose(1, 2))
                cache[1].index_copy_(2, at, v.transpose(1, 2))
                k, v = cache[0], cache[1]
            else:
                k, v = k.transpose(1, 2), v.transpose(1, 2)
            y = F.scaled_dot_product_attention(q.transpose(1, 2), k, v, attn_mask=mask, enable_gqa=True)
            x = x + self.o(y.transpose(1, 2).flatten(2))
            gate, up = self.up(self.norms[1](x)).chunk(2, -1)
            return x + self.down(F.silu(gate) * up)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.blocks, self.norm = nn.Embedding(50, 32), nn.ModuleList(Block() for _ in range(2)), nn.RMSNorm(32)

        def forward(self, words, at, caches=(None, None)):
            h = self.words(words)
            for block, cache in zip(self.blocks, caches):
                h = block(h, at, cache)
            return F.linear(self.norm(h), self.words.weight)

    net = run(Net())
    forward, optimizer = run.compile(net), torch.optim.AdamW(net.parameters(), 1e-3)

    def step(words):
        lines = forward(words[:, :-1], torch.arange(words.shape[1] - 1))
        return descend(optimizer, F.cross_entropy(lines.flatten(0, 1), words[:, 1:].flatten()) + 1e-4 * lines.logsumexp(-1).square().mean())

    results, again = trained(net, step, [(torch.randint(50, (n, length)),) for n, length in ((4, 17), (4, 17), (3, 21), (4, 9))])

    @run.compile
    def draw(lines, uniform):
        best, order = (lines[:, -1] / 0.8).softmax(-1).sort(descending=True)
        best = torch.where(best.cumsum(-1) - best > 0.8, 0.0, best)
        return order.gather(1, ((best.cumsum(-1) / best.sum(-1, keepdim=True)) < uniform[:, None]).sum(1, keepdim=True).clamp(max=49))

    words, caches, told = torch.randint(50, (2, 5)), run(torch.zeros(2, 2, 2, 2, 24, 8)), []
    with torch.no_grad():
        lines, at = forward(words, torch.arange(5), tuple(caches)), torch.tensor([4])
        for i in range(6):
            word, at = draw(lines, run(torch.tensor([0.13 * (i + 1), 0.9 - 0.11 * i]))), at + 1
            lines = forward(word, at, tuple(caches))
            told += [word, lines.clone()]
    return [*results, *told, caches], again
