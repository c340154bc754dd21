"""Further SCRIPTS: steps that are functions of their states, optimisers, losses by lattices, routers, graphs of nodes, and networks with autocast, by hand."""

import math

import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call, grad, grad_and_value, jacfwd, jacrev, jvp, vjp, vmap
from torch_training_scripts import descend, perceptron, script, state, trained


def functional_step(run, net, update, given, make):
    """A whole step compiled: a function from parameters, states and a batch to the next ones and a loss."""
    params = {n: p.detach().clone() for n, p in net.named_parameters()}
    states = make(params)

    @run.compile
    def step(params, states, x, y):
        gradients, loss = grad_and_value(lambda p: F.cross_entropy(functional_call(net, p, (x,)), y))(params)
        made = {n: update(params[n], gradients[n], states[n]) for n in params}
        return {n: m[0] for n, m in made.items()}, {n: m[1] for n, m in made.items()}, loss

    losses = []
    for x, y in given:
        params, states, loss = step(params, states, x, y)
        losses.append(loss)
    return [*losses, *params.values()], lambda: step(params, states, *given[0])


def labelled(run, count=4, rows=32, width=24, kinds=5):
    return [(run.normal(rows, width), torch.randint(kinds, (rows,))) for _ in range(count)]


@script("lion-functional")
def lion_functional(run):
    def update(p, g, m):
        return p * (1 - 1e-3) - 1e-2 * (0.9 * m + 0.1 * g).sign() * ((0.9 * m + 0.1 * g).abs() > 1e-4), 0.99 * m + 0.01 * g

    return functional_step(run, perceptron(run, 24, 64, 64, 5), update, labelled(run), lambda p: {n: torch.zeros_like(x) for n, x in p.items()})


@script("adafactor-functional")
def adafactor_functional(run):
    """Second moments of matrices as products of those of rows and columns; updates are clipped by their root mean square."""
    def begin(p):
        return {n: (x.new_zeros(x.shape[0]), x.new_zeros(x.shape[-1])) if x.dim() == 2 else (torch.zeros_like(x),) for n, x in p.items()}

    def update(p, g, s):
        square = g.square() + 1e-30
        if p.dim() == 2:
            s = (s[0].lerp(square.mean(1), 0.2), s[1].lerp(square.mean(0), 0.2))
            u = g * (s[0] / s[0].mean()).rsqrt()[:, None] * s[1].rsqrt()
        else:
            s = (s[0].lerp(square, 0.2),)
            u = g * s[0].rsqrt()
        u = u / (u.square().mean().sqrt() / 1.0).clamp(min=1.0)
        return p - 1e-2 * u * p.square().mean().sqrt().clamp(min=1e-3), s

    return functional_step(run, perceptron(run, 24, 64, 64, 5), update, labelled(run), begin)


@script("lamb-functional")
def lamb_functional(run):
    def update(p, g, s):
        m, v, t = s
        m, v, t = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g * g, t + 1
        u = (m / (1 - 0.9**t)) / ((v / (1 - 0.99**t)).sqrt() + 1e-6) + 0.01 * p
        pn, un = p.norm(), u.norm()
        trust = torch.where((pn > 0) & (un > 0), pn / un, 1.0).clamp(max=10)
        return p - 1e-2 * trust * u, (m, v, t)

    return functional_step(run, perceptron(run, 24, 64, 64, 5), update, labelled(run), lambda p: {n: (torch.zeros_like(x), torch.zeros_like(x), x.new_zeros(())) for n, x in p.items()})


@script("population")
def population(run):
    """Six networks with rates of their own, trained side by side by vmap, of which the worst are replaced."""
    net = perceptron(run, 12, 32, 32, 3)
    params = {n: torch.stack([p.detach() * (1 + 0.1 * i) for i in range(6)]) for n, p in net.named_parameters()}
    speed = {n: torch.zeros_like(p) for n, p in params.items()}
    rates = run(torch.logspace(-3, -1, 6))

    def one(params, speed, rate, x, y):
        g, loss = grad_and_value(lambda p: F.mse_loss(functional_call(net, p, (x,)), y))(params)
        speed = {n: 0.9 * speed[n] + g[n] for n in g}
        return {n: params[n] - rate * speed[n] for n in g}, speed, loss

    @run.compile
    def step(params, speed, x, y):
        params, speed, loss = vmap(one, (0, 0, 0, None, None))(params, speed, rates, x, y)
        order = loss.argsort()
        source = torch.arange(6).scatter(0, order[-2:], order[:2])
        return {n: p[source] for n, p in params.items()}, {n: s[source] for n, s in speed.items()}, loss

    losses, given = [], [(run.normal(16, 12), run.normal(16, 3)) for _ in range(3)]
    for x, y in given:
        params, speed, loss = step(params, speed, x, y)
        losses.append(loss)
    return [*losses, *params.values()], lambda: step(params, speed, *given[0])


@script("gauss-newton")
def gauss_newton(run):
    """Steps of conjugate gradients whose products are jvp and vjp of a small network."""
    net = perceptron(run, 3, 16, 16, 2)
    params = {n: p.detach().clone() for n, p in net.named_parameters()}

    @run.compile
    def step(params, x, y):
        def f(p):
            return functional_call(net, p, (x,))

        out, back = vjp(f, params)
        g = back(out - y)[0]

        def product(v):
            found = back(jvp(f, (params,), (v,))[1])[0]
            return {n: found[n] + 1e-2 * v[n] for n in v}

        def dot(a, b):
            return sum((a[n] * b[n]).sum() for n in a)

        d = {n: torch.zeros_like(p) for n, p in params.items()}
        r = {n: -x for n, x in g.items()}
        p, rr = r, dot(r, r)
        for _ in range(4):
            hp = product(p)
            a = rr / dot(p, hp)
            d, r = {n: d[n] + a * p[n] for n in d}, {n: r[n] - a * hp[n] for n in d}
            new = dot(r, r)
            p, rr = {n: r[n] + new / rr * p[n] for n in d}, new
        return {n: params[n] + d[n] for n in d}, (out - y).square().sum()

    losses, given = [], [(run.normal(20, 3), run.normal(20, 2)) for _ in range(2)]
    for x, y in given:
        params, loss = step(params, x, y)
        losses.append(loss)
    return [*losses, *params.values()], lambda: step(params, *given[0])


@script("burgers")
def burgers(run):
    """An equation's residual by derivatives of derivatives of each point (vmap), and a step of Adam by hand."""
    net = perceptron(run, 2, 32, 32, 1)
    optimizer = torch.optim.Adam(net.parameters(), 1e-3)
    params = dict(net.named_parameters())

    @run.compile
    def loss_of(points, start, value):
        def u(p):
            return functional_call(net, params, (p,))[0]

        first = vmap(grad(u))(points)
        second = vmap(jacfwd(jacrev(u)))(points)[:, 0, 0]
        now = functional_call(net, params, (points,))[:, 0]
        return (first[:, 1] + now * first[:, 0] - 0.01 / math.pi * second).square().mean() + F.mse_loss(functional_call(net, params, (start,))[:, 0], value)

    def step(points, start, value):
        return descend(optimizer, loss_of(points, start, value))

    return trained(net, step, [(run.normal(40, 2), run.normal(10, 2), run.normal(10)) for _ in range(3)])


# Losses.


@script("ctc-lattice")
def ctc_lattice(run):
    """CTC by hand: sums over paths in logarithms, labels of several lengths, of a convolutional reader."""
    net = run(nn.Sequential(nn.Conv1d(8, 32, 3, padding=1), nn.ReLU(), nn.Conv1d(32, 7, 3, padding=1)))
    optimizer = torch.optim.Adam(net.parameters(), 1e-2)

    @run.compile
    def loss_of(x, labels, frames, lengths):
        lines = net(x).transpose(1, 2).log_softmax(-1)
        b, s = labels.shape
        wide = torch.zeros(b, 2 * s + 1, dtype=torch.long)
        wide[:, 1::2] = labels
        skips = F.pad((wide[:, 2:] != wide[:, :-2]) & (wide[:, 2:] != 0), (2, 0))
        least = torch.finfo(lines.dtype).min / 8
        alpha = torch.where(torch.arange(2 * s + 1) < 2, lines[:, 0].gather(1, wide), least)
        for t in range(1, x.shape[2]):
            one = F.pad(alpha[:, :-1], (1, 0), value=least)
            two = torch.where(skips, F.pad(alpha[:, :-2], (2, 0), value=least), least)
            new = torch.stack([alpha, one, two]).logsumexp(0) + lines[:, t].gather(1, wide)
            alpha = torch.where((t < frames)[:, None], new, alpha)
        ends = alpha.gather(1, torch.stack([2 * lengths, 2 * lengths - 1], 1))
        return -(ends.logsumexp(1) / lengths).mean()

    def step(*given):
        return descend(optimizer, loss_of(*given))

    return trained(net, step, [(run.normal(4, 8, 14), torch.randint(1, 7, (4, 4)), torch.tensor([14, 12, 10, 13]), torch.tensor([4, 3, 2, 4])) for _ in range(3)])


@script("transducer")
def transducer(run):
    """A joiner of frames and labels, whose lattice is summed along its rows by running logsumexp."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.frames, self.labels, self.out = nn.Embedding(9, 24), nn.Linear(10, 32), nn.Linear(24, 32), nn.Linear(32, 9)

        def forward(self, x, y):
            h = self.words(F.pad(y, (1, 0)))
            return self.out(torch.tanh(self.frames(x)[:, :, None] + self.labels(h)[:, None])).log_softmax(-1)

    net = run(Net())
    optimizer = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9)

    @run.compile
    def loss_of(x, y):
        lines = net(x, y)
        blank, label = lines[..., 0], lines[:, :, :-1].gather(-1, y[:, None, :, None].expand(-1, x.shape[1], -1, 1))[..., 0]
        across = F.pad(label.cumsum(-1), (1, 0))
        alpha = across[:, 0]
        for t in range(1, x.shape[1]):
            alpha = (alpha + blank[:, t - 1] - across[:, t]).logcumsumexp(-1) + across[:, t]
        return -(alpha[:, -1] + blank[:, -1, -1]).mean()

    def step(*given):
        return descend(optimizer, loss_of(*given))

    return trained(net, step, [(run.normal(3, 12, 10), torch.randint(1, 9, (3, 5))) for _ in range(3)])


@script("metric-losses")
def metric_losses(run):
    """InfoNCE of two views both ways, hardest triplets, a margin on angles (ArcFace), Barlow's and VICReg's sums, a focal loss with smoothed labels."""
    net = perceptron(run, 24, 64, 32)
    heads = run(nn.ParameterList([torch.randn(5, 32), torch.zeros(())]))
    optimizer = torch.optim.AdamW([*net.parameters(), *heads.parameters()], 1e-2)

    def correlation(a, b):
        a, b = ((x - x.mean(0)) / (x.var(0) + 1e-4).sqrt() for x in (a, b))
        c = a.T @ b / len(a)
        off = c - torch.diag(c.diagonal())
        return (c.diagonal() - 1).square().sum() + 0.01 * off.square().sum() + F.relu(1 - a.std(0)).mean()

    @run.compile
    def loss_of(x, y, kinds):
        a, b = net(x), net(y)
        u, v = F.normalize(a, dim=1), F.normalize(b, dim=1)
        lines = u @ v.T * heads[1].exp().clamp(max=100)
        nce = (F.cross_entropy(lines, torch.arange(len(x))) + F.cross_entropy(lines.T, torch.arange(len(x)))) / 2
        like = kinds[:, None] == kinds
        apart = torch.cdist(a, a)
        far = apart.masked_fill(~like, -1.0).amax(1)
        near = apart.masked_fill(like, 1e9).amin(1)
        cos = (u @ F.normalize(heads[0], dim=1).T).clamp(-1 + 1e-6, 1 - 1e-6)
        hot = F.one_hot(kinds, 5).bool()
        arc = F.cross_entropy(16 * torch.where(hot, (cos.acos() + 0.2).cos(), cos), kinds)
        ce = F.cross_entropy(a[:, :5], kinds, reduction="none", label_smoothing=0.1)
        return nce + F.relu(far - near + 0.3).mean() + arc + 0.1 * correlation(a, b) + ((1 - (-ce).exp()) ** 2 * ce).mean()

    def step(*given):
        return descend(optimizer, loss_of(*given))

    results, again = trained(net, step, [(run.normal(32, 24), run.normal(32, 24), torch.randint(5, (32,))) for _ in range(3)])
    return [*results, *state(heads)], again


@script("image-losses")
def image_losses(run):
    """A small EDSR by pixel shuffles, trained by SSIM, total variation, edges, a Laplacian pyramid and Charbonnier's distance."""
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Conv2d(24, 24, 3, padding=1), nn.Conv2d(24, 24, 3, padding=1)

        def forward(self, x):
            return x + 0.1 * self.second(F.relu(self.first(x)))

    net = run(nn.Sequential(nn.PixelUnshuffle(2), nn.Conv2d(12, 24, 3, padding=1), Block(), Block(), nn.Conv2d(24, 96, 3, padding=1), nn.PixelShuffle(2), nn.PReLU(24), nn.Conv2d(24, 12, 3, padding=1), nn.PixelShuffle(2)))
    line = run(torch.exp(-torch.linspace(-2, 2, 7) ** 2))
    window = (line[:, None] * line / line.sum() ** 2).expand(3, 1, 7, 7).contiguous()

    def similar(a, b):
        ma, mb, aa, bb, ab = (F.conv2d(x, window, groups=3) for x in (a, b, a * a, b * b, a * b))
        return ((2 * ma * mb + 1e-4) * (2 * (ab - ma * mb) + 9e-4) / ((ma**2 + mb**2 + 1e-4) * (aa - ma**2 + bb - mb**2 + 9e-4))).mean()

    def pyramid(x):
        for _ in range(2):
            small = F.avg_pool2d(x, 2)
            yield x - F.interpolate(small, scale_factor=2, mode="bilinear")
            x = small
        yield x

    @run.compile
    def loss_of(x, y):
        z = net(x)
        edges = sum((a.diff(dim=d) - b.diff(dim=d)).abs().mean() for a, b in [(z, y)] for d in (2, 3))
        return 1 - similar(z, y) + 0.1 * edges + ((z - y) ** 2 + 1e-6).sqrt().mean() + sum((a - b).abs().mean() for a, b in zip(pyramid(z), pyramid(y)))

    optimizer = torch.optim.Adam(net.parameters(), 1e-3)

    def step(*given):
        return descend(optimizer, loss_of(*given))

    return trained(net, step, [(run(torch.rand(2, 3, 24, 24)), run(torch.rand(2, 3, 48, 48))) for _ in range(2)])


# Words.


@script("beam-with-blocks")
def beam_with_blocks(run):
    """Steps of a beam: caches reordered by their parents, repeated pairs of words forbidden, lengths weighed, ended beams kept."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.qkv, self.out = nn.Embedding(40, 32), nn.Linear(32, 96), nn.Linear(32, 40)

        def forward(self, word, keys, values, place):
            q, k, v = self.qkv(self.words(word)).view(-1, 3, 4, 8).unbind(1)
            keys, values = keys.clone(), values.clone()
            keys[:, :, place], values[:, :, place] = k, v
            seen = torch.arange(keys.shape[2]) <= place
            h = F.scaled_dot_product_attention(q[:, :, None], keys, values, seen.expand(1, 1, 1, -1))
            return self.out(h.flatten(1)), keys, values

    net = run(Net()).eval()

    @run.compile
    def step(written, score, ended, keys, values, place):
        lines, keys, values = net(written[:, place - 1], keys, values, place - 1)
        now = lines.log_softmax(-1)
        pairs = (written[:, :-1] == written.gather(1, (place - 1).expand(len(written), 1))) & (torch.arange(written.shape[1] - 1) < place - 1)
        banned = torch.zeros_like(now).scatter_reduce(1, written[:, 1:], pairs.to(now.dtype), "amax") > 0
        now = now.masked_fill(banned, -30.0)
        now = torch.where(ended[:, None], torch.where(torch.arange(40) == 0, 0.0, -1e4), now)
        total = (score[:, None] + now).view(-1, 4 * 40)
        best, at = total.topk(4, dim=1)
        parent = (at // 40 + torch.arange(len(at))[:, None] * 4).flatten()
        word = (at % 40).flatten()
        written = written[parent].index_copy(1, place.view(1), word[:, None])
        return written, best.flatten(), ended[parent] | (word == 0), keys[parent], values[parent], place + 1

    now = (torch.full((8, 12), 1), run(torch.tensor([0.0, -9, -9, -9]).repeat(2)), torch.zeros(8, dtype=torch.bool), run(torch.zeros(8, 4, 12, 8)), run(torch.zeros(8, 4, 12, 8)), torch.tensor(1))
    first = now
    with torch.no_grad():
        for _ in range(6):
            now = step(*now)
    return list(now), lambda: step(*first)


@script("rolling-window")
def rolling_window(run):
    """A decoder's step whose caches are a ring of 16 places, queries in groups, rotary places, RMS norms and gated perceptrons."""
    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.q, self.kv, self.o = nn.Linear(64, 64, bias=False), nn.Linear(64, 32, bias=False), nn.Linear(64, 64, bias=False)
            self.gate, self.up, self.down = nn.Linear(64, 160, bias=False), nn.Linear(64, 160, bias=False), nn.Linear(160, 64, bias=False)
            self.norms = nn.ModuleList(nn.RMSNorm(64) for _ in range(2))
            self.register_buffer("keys", torch.zeros(2, 2, 16, 8))
            self.register_buffer("values", torch.zeros(2, 2, 16, 8))

        def turned(self, x, place):
            angle = place.to(x.dtype) * 100 ** (-torch.arange(4, dtype=x.dtype) / 4)
            a, b = x.chunk(2, -1)
            return torch.cat([a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()], -1)

        def forward(self, x, place):
            h = self.norms[0](x)
            q = self.turned(self.q(h).view(2, 1, 8, 8).transpose(1, 2), place)
            k, v = self.kv(h).view(2, 1, 2, 2, 8).permute(2, 0, 3, 1, 4)
            self.keys.index_copy_(2, place.view(1) % 16, self.turned(k, place))
            self.values.index_copy_(2, place.view(1) % 16, v)
            mask = torch.arange(16) <= place
            x = x + self.o(F.scaled_dot_product_attention(q, self.keys, self.values, mask[None, None, None], enable_gqa=True).transpose(1, 2).reshape(2, 1, 64))
            h = self.norms[1](x)
            return x + self.down(F.silu(self.gate(h)) * self.up(h))

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.layers = nn.Embedding(50, 64), nn.ModuleList(Layer() for _ in range(3))

        def forward(self, word, place):
            x = self.words(word)
            for layer in self.layers:
                x = layer(x, place)
            return F.linear(x[:, -1], self.words.weight)

    net = run(Net()).eval()
    step, word, found = run.compile(net), torch.tensor([[3], [7]]), []
    with torch.no_grad():
        for i in range(20):
            lines = step(word, torch.tensor(i))
            word = lines.argmax(-1, keepdim=True)
            found.append(lines)

    def again():
        with torch.no_grad():
            return step(word, torch.tensor(20))

    return [*found, *[x.clone() for x in net.buffers()]], again
