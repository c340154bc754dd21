"""Further SCRIPTS: tangents of networks, functions of iterators and mappings, packed sequences, preferences, steps of optimisers by hand, chunks of states,
tokens that are merged or skipped, shifted windows, fluids on a lattice, codes with parity checks, tables."""

import collections
import itertools
import math

import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call, jacrev, jvp, vjp, vmap
from torch_training_scripts import descend, perceptron, script, trained


@script("tangent-kernel")
def tangent_kernel(run):
    """The kernel of a network's tangents by jacobians of each sample, products with it without the jacobians, a prediction by it, and the trace of a Fisher matrix."""
    net = perceptron(run, 5, 24, 3)
    weights = {n: p.detach() for n, p in net.named_parameters()}

    def of(weights, x):
        return functional_call(net, weights, (x[None],))[0]

    @run.compile
    def kernel(weights, x, y):
        a, b = (vmap(jacrev(of), (None, 0))(weights, given) for given in (x, y))
        return sum(torch.einsum("nif,mjf->nmij", a[k].flatten(2), b[k].flatten(2)) for k in a)

    @run.compile
    def product(weights, x, v):
        _, back = vjp(lambda w: vmap(of, (None, 0))(w, x), weights)
        return jvp(lambda w: vmap(of, (None, 0))(w, x), (weights,), back(v))[1]

    @run.compile
    def traces(weights, x):
        def one(x):
            share = of(weights, x).softmax(0)
            slopes = jacrev(lambda w: of(w, x).log_softmax(0))(weights)
            return sum((share * s.flatten(1).square().sum(1)).sum() for s in slopes.values())
        return vmap(one)(x)

    x, y, v = run.normal(7, 5), run.normal(4, 5), run.normal(7, 3)
    k = kernel(weights, x, x)
    flat = k.permute(0, 2, 1, 3).reshape(21, 21)
    return [k, kernel(weights, x, y), product(weights, x, v), traces(weights, x), flat @ v.flatten()], lambda: kernel(weights, x, x)


@script("iterators-and-mappings")
def iterators_and_mappings(run):
    """Functions of what Python passes around: a generator of layers, zip, chain, counters, defaults, sets of names, slices by name, a closure that counts."""
    weights = {f"layer{i}": {"w": run.normal(16, 16) * 0.2, "b": run.normal(16)} for i in range(4)}
    calls = collections.Counter()

    def layers(weights, skip):
        for name in sorted(weights):
            if name not in skip:
                yield name, weights[name]

    def function(x, weights, *rest, skip=frozenset(), kinds=("relu", "tanh"), **named):
        calls["all"] += 1
        found, sums = collections.OrderedDict(), collections.defaultdict(list)
        for (name, layer), kind in zip(layers(weights, skip), itertools.cycle(kinds)):
            x = getattr(torch, kind)(torch.addmm(layer["b"], x, layer["w"]))
            found[name] = x
            sums[kind].append(x.sum(0))
        window = slice(*named.get("window", (0, None, 2)))
        found["window"] = x[:, window]
        found["pairs"] = [a * b for a, b in itertools.combinations(rest, 2)]
        found["sums"] = {kind: torch.stack(list(each)).prod(0) for kind, each in sums.items()}
        found["least"] = min(rest, key=lambda r: r.shape[0]).cumsum(0) if rest else None
        return found

    forward, out = run.compile(function), []
    x, rest = run.normal(6, 16), [run.normal(5) for _ in range(3)]
    out.append(forward(x, weights))
    out.append(forward(x, weights, *rest, skip={"layer1"}, window=(1, 9)))
    out.append(forward(run.normal(3, 16), weights, rest[0], run.normal(1), kinds=("sigmoid", "exp", "sin")))
    return out, lambda: forward(x, weights, *rest)


@script("packed-sequences-by-hand")
def packed_sequences_by_hand(run):
    """Sequences side by side without padding: their places by lengths, attention within each by segments, means and softmaxes by scatters."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.place, self.mixed, self.out, self.gate = nn.Embedding(50, 24), nn.Embedding(32, 24), nn.Linear(24, 72), nn.Linear(24, 3), nn.Linear(24, 1)

        def forward(self, words, owner, first):
            at = torch.arange(len(words)) - first[owner]
            x = self.table(words) + self.place(at)
            q, k, v = (p.view(-1, 3, 8).transpose(0, 1) for p in self.mixed(x).split(24, 1))
            seen = (owner[:, None] == owner) & (at[:, None] >= at)
            x = x + F.scaled_dot_product_attention(q[None], k[None], v[None], attn_mask=seen)[0].transpose(0, 1).flatten(1)
            score, n = self.gate(x)[:, 0], len(first)
            most = torch.full((n,), -math.inf, dtype=x.dtype).scatter_reduce(0, owner, score, "amax")
            share = (score - most[owner]).exp()
            share = share / torch.zeros(n, dtype=x.dtype).index_add(0, owner, share)[owner]
            return self.out(torch.zeros(n, 24, dtype=x.dtype).index_add(0, owner, share[:, None] * x)), most

    net = run(Net())
    forward, optimizer = run.compile(net, dynamic=True), torch.optim.RAdam(net.parameters(), 1e-2)

    def given(*lengths):
        lengths = torch.tensor(lengths)
        owner = torch.repeat_interleave(torch.arange(len(lengths)), lengths)
        return torch.randint(50, (len(owner),)), owner, lengths.cumsum(0) - lengths, torch.randint(3, (len(lengths),))

    def step(words, owner, first, y):
        scores, most = forward(words, owner, first)
        return descend(optimizer, F.cross_entropy(scores, y) + 0.1 * most.mean())

    return trained(net, step, [given(*lengths) for lengths in ((5, 9, 2, 12), (7, 7, 7, 1), (3, 20), (1, 2, 3, 4, 5, 6))])


@script("preferences")
def preferences(run):
    """A policy beside a still one: chosen and rejected answers, and groups of answers by their rewards with a clipped ratio and a distance."""
    class Policy(nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.mix, self.out = nn.Embedding(48, 32), nn.Linear(32, 32), nn.Linear(32, 48, bias=False)

        def forward(self, words):
            x = self.table(words)
            so_far = x.cumsum(1) / torch.arange(1, words.shape[1] + 1, dtype=x.dtype)[:, None]
            return self.out(F.gelu(self.mix(so_far)) + x)

    policy, still = run(Policy()), run(Policy()).requires_grad_(False)

    def said(net, words, seen):
        scores = net(words[:, :-1])
        return (scores.gather(2, words[:, 1:, None])[..., 0] - scores.logsumexp(-1)) * seen[:, 1:]

    @run.compile
    def pairs(chosen, rejected, a, b):
        words, seen = torch.cat([chosen, rejected]), torch.cat([a, b])
        now = said(policy, words, seen).sum(1).chunk(2)
        with torch.no_grad():
            before = said(still, words, seen).sum(1).chunk(2)
        margin = 0.1 * (now[0] - now[1] - before[0] + before[1])
        return -F.logsigmoid(margin).mean() - 0.05 * now[0].mean() / a.sum(1).mean(), (margin > 0).float().mean()

    @run.compile
    def groups(words, seen, old, reward):
        now = said(policy, words, seen)
        with torch.no_grad():
            before = said(still, words, seen)
            reward = reward.view(-1, 4)
            gain = ((reward - reward.mean(1, keepdim=True)) / (reward.std(1, keepdim=True) + 1e-4)).view(-1, 1)
        ratio = (now - old).exp()
        far = (before - now).exp() - (before - now) - 1
        each = -torch.minimum(ratio * gain, ratio.clamp(0.8, 1.2) * gain) + 0.04 * far
        return (each * seen[:, 1:]).sum() / seen[:, 1:].sum()

    optimizer = torch.optim.AdamW(policy.parameters(), 3e-3, weight_decay=0.0)

    def masks(n, length):
        return run((torch.arange(length) < torch.randint(3, length + 1, (n, 1))).float())

    def step(n, length):
        loss, right = pairs(torch.randint(48, (n, length)), torch.randint(48, (n, length)), masks(n, length), masks(n, length))
        descend(optimizer, loss)
        words, seen = torch.randint(48, (n, length)), masks(n, length)
        with torch.no_grad():
            old = said(policy, words, seen)
        second = descend(optimizer, groups(words, seen, old + 0.1, run.normal(n)))
        return torch.stack([loss.detach(), run(right), second.detach()])

    return trained(policy, step, [(8, 12), (8, 12), (4, 7)])


@script("steps-by-matrices")
def steps_by_matrices(run):
    """Steps along the orthogonal factor of each matrix's momentum, by five products of a polynomial; of vectors by Adam without a schedule; limits by norms."""
    net = perceptron(run, 20, 40, 30, 5)
    matrices = [p for p in net.parameters() if p.dim() == 2]
    vectors = [p for p in net.parameters() if p.dim() < 2]
    speeds = [torch.zeros_like(p) for p in matrices]
    means, squares = [[torch.zeros_like(p) for p in vectors] for _ in range(2)]
    slow = [p.detach().clone() for p in vectors]

    def orthogonal(g):
        x = g / (g.norm() + 1e-7)
        turned = x.shape[0] > x.shape[1]
        x = x.mT if turned else x
        for a, b, c in ((3.4445, -4.7750, 2.0315),) * 5:
            y = x @ x.mT
            x = a * x + (b * y + c * y @ y) @ x
        return x.mT if turned else x

    @run.compile
    def update(t, grads, more):
        limit = torch.stack([g.norm() for g in (*grads, *more)]).norm()
        factor = (1.0 / (limit + 1e-6)).clamp(max=1.0)
        for p, g, v in zip(matrices, grads, speeds):
            g = g * factor
            v.mul_(0.95).add_(g)
            p.mul_(1 - 0.02 * 0.01).add_(orthogonal(g + 0.95 * v), alpha=-0.02 * max(1, p.shape[0] / p.shape[1]) ** 0.5)
        for p, g, m, s, z in zip(vectors, more, means, squares, slow):
            m.lerp_(g * factor, 0.1)
            s.mul_(0.999).addcmul_(g, g, value=0.001)
            z.sub_(1e-2 * (m / (1 - 0.9**t)) / ((s / (1 - 0.999**t)).sqrt() + 1e-8))
            p.lerp_(z, 1 / t)
        return limit

    forward = run.compile(lambda x, y: F.cross_entropy(net(x), y, label_smoothing=0.05))
    t = run(torch.zeros(()))

    def step(x, y):
        loss = forward(x, y)
        grads = torch.autograd.grad(loss, [*matrices, *vectors])
        t.add_(1)
        with torch.no_grad():
            limit = update(t, grads[: len(matrices)], grads[len(matrices) :])
        return torch.stack([loss.detach(), limit])

    return trained(net, step, [(run.normal(n, 20), torch.randint(5, (n,))) for n in (16, 16, 16, 7)])


@script("chunks-of-states")
def chunks_of_states(run):
    """A state space with one decay a head, within chunks by products and between them by a short recurrence, with a causal convolution and a gated norm."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.into, self.near, self.out = nn.Linear(24, 2 * 32 + 2 * 8 + 4), nn.Conv1d(48, 48, 4, groups=48, padding=3), nn.Linear(32, 24, bias=False)
            self.rate, self.shift, self.skip, self.norm = nn.Parameter(torch.rand(4)), nn.Parameter(torch.randn(4) * 0.1), nn.Parameter(torch.ones(4)), nn.Parameter(torch.ones(32))

        def sums(self, a):
            """What decays from each place to each later one."""
            total = a.cumsum(-1)
            return (total[..., :, None] - total[..., None, :]).masked_fill(~torch.ones(a.shape[-1], a.shape[-1], dtype=torch.bool).tril(), -torch.inf)

        def forward(self, u, chunk=8):
            n, length, _ = u.shape
            gate, mixed, step = self.into(u).split([32, 48, 4], -1)
            mixed = F.silu(self.near(mixed.mT)[..., :length].mT)
            x, b, c = mixed.split([32, 8, 8], -1)
            step = F.softplus(step + self.shift)
            x = x.unflatten(-1, (4, 8))
            parts = [v.unflatten(1, (-1, chunk)) for v in (x * step[..., None], -self.rate.exp() * step, b, c)]
            xs, a, bs, cs = parts
            a = a.permute(0, 3, 1, 2)
            total = a.cumsum(-1)
            inside = torch.einsum("bcln,bcsn,bhcls,bcshp->bclhp", cs, bs, self.sums(a).exp(), xs)
            states = torch.einsum("bcln,bhcl,bclhp->bchpn", bs, (total[..., -1:] - total).exp(), xs)
            states = torch.cat([torch.zeros_like(states[:, :1]), states], 1)
            between = self.sums(F.pad(total[..., -1], (1, 0))).exp()
            states = torch.einsum("bhzc,bchpn->bzhpn", between, states)[:, :-1]
            y = inside + torch.einsum("bcln,bchpn,bhcl->bclhp", cs, states, total.exp())
            y = (y.flatten(1, 2) + x * self.skip[:, None]).flatten(2) * F.silu(gate)
            return self.out(y * torch.rsqrt(y.square().mean(-1, keepdim=True) + 1e-5) * self.norm)

    net = run(Net())
    forward, optimizer = run.compile(net), torch.optim.AdamW(net.parameters(), 1e-3)
    return trained(net, lambda u: descend(optimizer, (forward(u[:, :-8]) - u[:, 8:]).square().mean()), [(run.normal(n, length, 24),) for n, length in ((3, 40), (3, 40), (2, 72))])


@script("tokens-merged-and-skipped")
def tokens_merged_and_skipped(run):
    """Tokens of images: like ones of two halves are merged, by their numbers; of the rest only those with the highest scores pass a layer."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.cut, self.score, self.layer = nn.Conv2d(3, 32, 4, 4), nn.Linear(32, 1), nn.Sequential(nn.LayerNorm(32), nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 32))
            self.out = nn.Linear(32, 5)

        def merged(self, x, size, count):
            a, b = x[:, ::2], x[:, 1::2]
            alike = F.normalize(a, dim=-1) @ F.normalize(b, dim=-1).mT
            most, to = alike.max(-1)
            order = most.argsort(-1, descending=True)[..., None]
            gone, left = order[:, :count], order[:, count:]
            to = to[..., None].gather(1, gone)
            width = x.shape[-1]
            sizes = [size[:, ::2], size[:, 1::2]]
            weighed = [a * sizes[0], b * sizes[1]]
            joined = weighed[1].scatter_add(1, to.expand(-1, -1, width), weighed[0].gather(1, gone.expand(-1, -1, width)))
            many = sizes[1].scatter_add(1, to, sizes[0].gather(1, gone))
            rest = weighed[0].gather(1, left.expand(-1, -1, width))
            size = torch.cat([sizes[0].gather(1, left), many], 1)
            return torch.cat([rest, joined], 1) / size, size

        def forward(self, images):
            x = self.cut(images).flatten(2).mT
            size = torch.ones_like(x[..., :1])
            for count in (4, 3):
                x, size = self.merged(x, size, count)
            share = self.score(x).squeeze(-1)
            best = share.topk(x.shape[1] // 2, dim=1)
            at = best.indices.sort(1).values[..., None].expand(-1, -1, 32)
            passed = self.layer(x.gather(1, at)) * share.gather(1, at[..., 0]).sigmoid()[..., None]
            x = x.scatter_add(1, at, passed)
            return self.out((x * size).sum(1) / size.sum(1)), size.squeeze(-1)

    net = run(Net())
    forward, optimizer = run.compile(net), torch.optim.Adamax(net.parameters(), 1e-3)
    return trained(net, lambda x, y: descend(optimizer, F.cross_entropy(forward(x)[0], y)), [(run.normal(n, 3, 32, 32), torch.randint(5, (n,))) for n in (6, 6, 3)])


@script("shifted-windows")
def shifted_windows(run):
    """Windows over images that are padded to whole ones and shifted, biases by relative places, masks made of the sizes; images of any size."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.cut, self.mixed, self.bias = nn.Conv2d(3, 24, 2, 2), nn.ModuleList(nn.Linear(24, 72) for _ in range(2)), nn.Parameter(torch.randn(2, 49, 3) * 0.1)
            self.out, self.norms, self.head = nn.ModuleList(nn.Linear(24, 24) for _ in range(2)), nn.ModuleList(nn.LayerNorm(24) for _ in range(3)), nn.Conv2d(24, 2, 1)
            place = torch.stack(torch.meshgrid(torch.arange(4), torch.arange(4), indexing="ij")).flatten(1)
            self.register_buffer("near", ((place[:, :, None] - place[:, None] + 3) * torch.tensor([7, 1])[:, None, None]).sum(0))

        def windows(self, x):
            return x.unflatten(1, (-1, 4)).unflatten(3, (-1, 4)).transpose(2, 3).flatten(3, 4).flatten(1, 2)

        def forward(self, x):
            x = self.cut(x).permute(0, 2, 3, 1)
            for i in range(2):
                n, h, w, _ = x.shape
                y = F.pad(self.norms[i](x), (0, 0, 0, -w % 4, 0, -h % 4))
                high, wide = y.shape[1:3]
                shift = 2 * i
                if shift:
                    y = y.roll((-shift, -shift), (1, 2))
                parts = self.windows(y)
                q, k, v = self.mixed[i](parts).unflatten(-1, (3, 3, 8)).unbind(-3)
                q, k, v = (z.transpose(-2, -3) for z in (q, k, v))
                bias = self.bias[i][self.near].permute(2, 0, 1)
                if shift:
                    down = (torch.arange(s) >= s - 4 for s in (high, wide))
                    down = [d.to(torch.int64) + (torch.arange(len(d)) >= len(d) - shift) for d in down]
                    kind = self.windows((down[0][:, None] * 3 + down[1])[None, ..., None].expand(n, -1, -1, -1))[..., 0]
                    bias = bias.masked_fill((kind[:, :, None, :, None] != kind[:, :, None, None, :]), -100.0)
                y = F.scaled_dot_product_attention(q, k, v, attn_mask=bias).transpose(-2, -3).flatten(-2)
                y = self.out[i](y).unflatten(1, (high // 4, wide // 4)).unflatten(3, (4, 4)).transpose(2, 3).flatten(3, 4).flatten(1, 2)
                if shift:
                    y = y.roll((shift, shift), (1, 2))
                x = x + y[:, :h, :w]
            return self.head(self.norms[2](x).permute(0, 3, 1, 2))

    net = run(Net())
    forward, optimizer = run.compile(net), torch.optim.AdamW(net.parameters(), 1e-3)
    return trained(net, lambda x: descend(optimizer, forward(x).square().mean()), [(run.normal(2, 3, h, w),) for h, w in ((32, 32), (24, 40), (26, 30), (36, 22))])


@script("fluid-on-a-lattice")
def fluid_on_a_lattice(run):
    """Nine streams of a fluid that collide, move and bounce off a wall; all steps in place, the drag by gradients through six of them."""
    ways = torch.tensor([[0, 0], [1, 0], [0, 1], [-1, 0], [0, -1], [1, 1], [-1, 1], [-1, -1], [1, -1]])
    back, share = [0, 3, 4, 1, 2, 7, 8, 5, 6], run(torch.tensor([4 / 9] + [1 / 9] * 4 + [1 / 36] * 4))

    def rest(density, u):
        along = torch.einsum("qd,dhw->qhw", ways.to(u.dtype), u)
        return share[:, None, None] * density * (1 + 3 * along + 4.5 * along**2 - 1.5 * (u * u).sum(0))

    def step(f, wall, rate):
        density = f.sum(0)
        u = torch.einsum("qhw,qd->dhw", f, ways.to(f.dtype)) / density
        hit = f[back]
        f = f - rate * (f - rest(density, u))
        f = torch.where(wall, hit, f)
        return torch.stack([f[q].roll((int(ways[q, 1]), int(ways[q, 0])), (0, 1)) for q in range(9)])

    @run.compile
    def moved(f, wall):
        for _ in range(4):
            f.copy_(step(f, wall, 1.2))
            f[:, :, 0] = rest(f.new_ones(()), f.new_tensor([0.05, 0.0])[:, None, None])[:, :, 0]
        return (f.sum(0) - 1).abs().amax()

    @run.compile
    def drag(f, wall, rate):
        for _ in range(6):
            f = step(f, wall, rate)
        return ((f[1] - f[3]) * wall).sum()

    wall = (torch.arange(24)[:, None] - 12) ** 2 + (torch.arange(32) - 10) ** 2 < 9
    f, rate = rest(run(torch.ones(24, 32)), run(torch.rand(2, 24, 32)) * 0.05), run(torch.tensor(1.1)).requires_grad_()
    found = [moved(f, wall) for _ in range(3)]
    force = drag(f, wall, rate)
    force.backward()
    return [*found, f.clone(), force, rate.grad], lambda: moved(f, wall)


@script("parity-checks")
def parity_checks(run):
    """Bits behind noise, found by messages between bits and checks: least sizes and products of signs, with weights that are learned, and checks that hold."""
    check = (torch.rand(12, 24) < 0.3).to(torch.int64)
    at = check.nonzero()

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.weights, self.damp = nn.Parameter(torch.ones(4, len(at))), nn.Parameter(torch.tensor(0.2))

        def forward(self, told):
            edges = torch.zeros(len(told), len(at), dtype=told.dtype)
            for weight in self.weights:
                total = told.index_add(1, at[:, 1], edges)
                message = total[:, at[:, 1]] - edges
                dense = message.new_full((len(told), 12, 24), 1e9)
                dense[:, at[:, 0], at[:, 1]] = message
                size = dense.abs()
                two = size.topk(2, -1, largest=False).values
                least = torch.where(size == two[..., :1], two[..., 1:], two[..., :1])
                sign = torch.where(dense < 0, -1.0, 1.0).to(told.dtype)
                new = (sign.prod(-1, keepdim=True) * sign * least)[:, at[:, 0], at[:, 1]]
                edges = (1 - self.damp) * weight * new.clamp(-20, 20) + self.damp * edges
            total = told.index_add(1, at[:, 1], edges)
            bits = (total < 0).to(torch.int64)
            return total, (torch.einsum("nb,cb->nc", bits, check) % 2).sum(1)

    net = run(Net())
    forward, optimizer, wrong = run.compile(net), torch.optim.Adam(net.parameters(), 1e-2), []

    def step(told):
        total, broken = forward(told)
        wrong.append(broken)
        return descend(optimizer, F.softplus(-total).mean())

    results, again = trained(net, step, [(run.normal(n, 24) + 0.8,) for n in (16, 16, 5)])
    return [*results, *wrong[:3]], again


@script("rows-of-tables")
def rows_of_tables(run):
    """Columns of numbers and of kinds: bins with linear parts, sparse masks by sorting, norms of small parts of a batch, steps that choose columns by turns."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("edges", torch.linspace(-2, 2, 9).expand(6, 9).contiguous())
            self.kinds, self.start = nn.EmbeddingBag(90, 8, mode="sum", include_last_offset=False), nn.Linear(56, 24)
            self.masks, self.works = nn.ModuleList(nn.Linear(12, 56) for _ in range(3)), nn.ModuleList(nn.Linear(56, 24) for _ in range(3))
            self.norm, self.out = nn.BatchNorm1d(56, momentum=0.02), nn.Linear(12, 1)

        def sparse(self, z):
            """Nearest point of the simplex (Martins and Astudillo, arXiv 1602.02068)."""
            order = z.sort(-1, descending=True).values
            total = order.cumsum(-1) - 1
            rank = torch.arange(1, z.shape[-1] + 1, dtype=z.dtype)
            count = (order * rank > total).sum(-1, keepdim=True)
            return (z - total.gather(-1, count - 1) / count).clamp(min=0)

        def forward(self, numbers, kinds):
            low, high = self.edges[:, :-1], self.edges[:, 1:]
            bins = ((numbers[..., None] - low) / (high - low)).clamp(0, 1)
            x = torch.cat([bins.flatten(1), self.kinds(kinds + torch.arange(3) * 30)], 1)
            x = torch.cat([self.norm(part) for part in x.chunk(2)])
            before, total, spread = torch.ones_like(x), 0, 0
            far = F.glu(F.linear(x, self.start.weight, self.start.bias))
            for mask, work in zip(self.masks, self.works):
                share = self.sparse(mask(far) * before)
                spread = spread - (share * (share + 1e-9).log()).sum(1).mean()
                before = before * (1.4 - share)
                far = F.glu(work(x * share)) + far * 0.5**0.5
                total = total + F.relu(far)
            return self.out(total)[:, 0], spread

    net = run(Net())
    forward, optimizer = run.compile(net), torch.optim.Adam(net.parameters(), 5e-3)

    def step(numbers, kinds, y):
        said, spread = forward(numbers, kinds)
        return descend(optimizer, F.huber_loss(said, y) + 1e-3 * spread)

    return trained(net, step, [(run.normal(n, 6), torch.randint(30, (n, 3)), run.normal(n)) for n in (32, 32, 10)])
