"""Further SCRIPTS: filters, solvers, simulations and fits, as users write them."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call, grad, jacfwd, jacrev, jvp, vmap
from torch_library_scripts import with_gradients
from torch_training_scripts import descend, perceptron, script, trained


@script("extended-kalman")
def extended_kalman(run):
    """A filter whose slopes are taken by jacfwd, a smoother behind it, and noise that is trained."""
    def filtered(seen, noise, doubt):
        def move(s):
            return torch.stack([s[0] + 0.1 * s[3] * s[2].cos(), s[1] + 0.1 * s[3] * s[2].sin(), s[2] + 0.1 * s[4], s[3], s[4]])

        def look(s):
            return torch.stack([(s[0].square() + s[1].square() + 1e-3).sqrt(), torch.atan2(s[1], s[0])])

        eye, mean, spread = torch.eye(5, dtype=seen.dtype), torch.tensor([1.0, 0.5, 0.0, 1.0, 0.2], dtype=seen.dtype), torch.eye(5, dtype=seen.dtype)
        q, r = torch.diag(F.softplus(noise)), torch.diag(F.softplus(doubt))
        kept, loss = [], 0
        for y in seen:
            slope = jacfwd(move)(mean).to(mean.dtype)
            ahead, wide = move(mean), slope @ spread @ slope.T + q
            view = jacfwd(look)(ahead).to(mean.dtype)
            s, rest = view @ wide @ view.T + r, y - look(ahead)
            gain = torch.linalg.solve(s, view @ wide).T
            loss = loss + rest @ torch.linalg.solve(s, rest) + torch.logdet(s)
            mean, spread = ahead + gain @ rest, (eye - gain @ view) @ wide
            kept.append((mean, spread, ahead, wide, slope))
        smooth, found = kept[-1][0], [kept[-1][0]]
        for (mean, spread, *_), (_, _, ahead, wide, slope) in zip(kept[-2::-1], kept[:0:-1]):
            smooth = mean + spread @ slope.T @ torch.linalg.solve(wide, smooth - ahead)
            found.append(smooth)
        return torch.stack(found), loss

    return with_gradients(run, filtered, run.normal(4, 2), run.normal(5), run.normal(2))


@script("adjoint-solver")
def adjoint_solver(run):
    """A solver with steps by their errors in Python, and gradients by a solver backwards within a function of one's own."""
    net = perceptron(run, 3, 24, 3)
    slope = run.compile(lambda t, y, *weights: functional_call(net, dict(zip(names, weights)), (y,)) * (1 + 0.1 * t))
    names = [name for name, _ in net.named_parameters()]

    @run.compile
    def pair(t, y, h, *weights):
        a = slope(t, y, *weights)
        b = slope(t + h / 2, y + h / 2 * a, *weights)
        c = slope(t + 3 * h / 4, y + 3 * h / 4 * b, *weights)
        z = y + h * (2 * a + 3 * b + 4 * c) / 9
        d = slope(t + h, z, *weights)
        return z, (h * (-5 * a / 72 + b / 12 + c / 9 - d / 8)).abs().max()

    class Solve(torch.autograd.Function):
        @staticmethod
        def forward(ctx, y, *weights):
            t, h, places = torch.zeros((), dtype=y.dtype), torch.tensor(0.1, dtype=y.dtype), [(torch.zeros((), dtype=y.dtype), y)]
            while t < 1:
                h = torch.minimum(h, 1 - t)
                then, error = pair(t, y, h, *weights)
                if error < 1e-3:
                    t, y = t + h, then
                    places.append((t, y))
                h = h * (0.9 * (1e-3 / (error + 1e-12)) ** (1 / 3)).clamp(0.3, 3)
            ctx.places, ctx.weights = places, weights
            return y

        @staticmethod
        def backward(ctx, g):
            sums = [torch.zeros_like(w) for w in ctx.weights]
            for (t, y), (then, _) in zip(ctx.places[-2::-1], ctx.places[:0:-1]):
                with torch.enable_grad():
                    y = y.detach().requires_grad_()
                    weights = [w.detach().requires_grad_() for w in ctx.weights]
                    z = pair(t, y, then - t, *weights)[0]
                g, *more = torch.autograd.grad(z, (y, *weights), g)
                sums = [a + b for a, b in zip(sums, more)]
            return g, *sums

    optimizer = torch.optim.Adam(net.parameters(), 1e-2)

    def step(x, y):
        return descend(optimizer, (Solve.apply(x, *net.parameters()) - y).square().mean())

    return trained(net, step, [(run.normal(8, 3), run.normal(8, 3)) for _ in range(3)])


@script("hamiltonian-sampler")
def hamiltonian_sampler(run):
    """A sampler by leaps along gradients, chains by vmap, and a network of energies whose motion is trained through."""
    x, y = run.normal(30, 4), (run.normal(30) > 0).to(run.normal(1).dtype)
    energy = lambda w: F.binary_cross_entropy_with_logits(x @ w, y, reduction="sum") + w.square().sum() / 2  # noqa: E731

    def leap(w, p):
        for _ in range(5):
            p = p - 0.05 * grad(energy)(w)
            w = w + 0.1 * p
            p = p - 0.05 * grad(energy)(w)
        return w, p

    @run.compile
    def draw(w, p, chance):
        to, then = vmap(leap)(w, p)
        change = vmap(energy)(w) + p.square().sum(-1) / 2 - vmap(energy)(to) - then.square().sum(-1) / 2
        return torch.where((change > chance.log())[:, None], to, w), change

    net = perceptron(run, 4, 24, 1, last=nn.Tanh())
    total = lambda s: net(s).sum()  # noqa: E731

    def motion(s):
        for _ in range(3):
            slope = grad(total)(s)
            s = s + 0.1 * torch.cat([slope[:, 2:], -slope[:, :2]], 1)
        return s

    w, found = run.normal(6, 4), []
    for _ in range(3):
        w, change = draw(w, run.normal(6, 4), run(torch.rand(6)))
        found += [w, change]
    more, again = with_gradients(run, motion, run.normal(10, 4), module=net)
    return [*found, *more], again


@script("cloth")
def cloth(run):
    """Springs between points for twenty steps, collisions, and constants that are trained through them; a lattice of gas beside."""
    line = torch.arange(36).view(6, 6)
    edges = torch.cat([torch.stack([a.flatten(), b.flatten()]) for a, b in ((line[:, 1:], line[:, :-1]), (line[1:], line[:-1]), (line[1:, 1:], line[:-1, :-1]))], 1)

    def fall(x, stiff, damp):
        speed, (a, b) = torch.zeros_like(x), edges
        rest = (x[a] - x[b]).norm(dim=-1).detach()
        for _ in range(20):
            apart = x[a] - x[b]
            length = apart.norm(dim=-1)
            pull = ((stiff.exp() * (length - rest)) / (length + 1e-6))[:, None] * apart + damp.exp() * (speed[a] - speed[b])
            force = torch.zeros_like(x).index_add(0, a, -pull).index_add(0, b, pull)
            force[:, 2] -= 9.8
            speed = (speed + 0.01 * force) * 0.99
            speed[:2] = 0
            x = x + 0.01 * speed
            under = x[:, 2] < -0.3
            x = torch.where(under[:, None], torch.stack([x[:, 0], x[:, 1], torch.full_like(x[:, 2], -0.3)], -1), x)
            speed = torch.where(under[:, None], -0.5 * speed, speed)
        return x, speed

    @run.compile
    def gas(f):
        ways = [(0, 0), (0, 1), (0, -1), (1, 0), (-1, 0), (1, 1), (-1, -1), (1, -1), (-1, 1)]
        weight = torch.tensor([4 / 9] + [1 / 9] * 4 + [1 / 36] * 4, dtype=f.dtype)[:, None, None]
        turn = torch.tensor(ways, dtype=f.dtype)
        for _ in range(4):
            f = torch.stack([f[i].roll(way, (0, 1)) for i, way in enumerate(ways)])
            mass = f.sum(0)
            flow = torch.einsum("kc,kxy->cxy", turn, f) / mass
            along = torch.einsum("kc,cxy->kxy", turn, flow)
            f = f - (f - weight * mass * (1 + 3 * along + 4.5 * along**2 - 1.5 * flow.square().sum(0))) / 0.8
        return f, (f.roll(1, 2) - f.roll(-1, 2))[0]

    flat = torch.stack([*torch.meshgrid(torch.arange(6.0), torch.arange(6.0), indexing="ij"), torch.zeros(6, 6)], -1).view(36, 3) * 0.1
    found = list(gas(run(torch.rand(9, 12, 16)) + 1))
    more, again = with_gradients(run, fall, run(flat + 0.01 * torch.randn(36, 3)), run.normal(edges.shape[1]) + 4, run.normal(1) - 2)
    return [*found, *more], again


@script("posed-skin")
def posed_skin(run):
    """A body by joints: turns from axes, a chain of them, weights of points, fitted by an optimiser through it."""
    parents = [-1, 0, 1, 2, 0, 4, 5, 0]
    rest, points, blend = run.normal(8, 3), run.normal(60, 3), run.normal(60, 8).softmax(-1)
    shapes, poses = run.normal(60, 3, 4) * 0.1, run.normal(63, 180) * 0.01
    pose, shape, place = (run(torch.zeros(*size)).requires_grad_() for size in ((3, 8, 3), (3, 4), (3, 3)))

    @run.compile
    def skin(pose, shape, place):
        angle = (pose + 1e-8).norm(dim=-1, keepdim=True)
        x, y, z = (pose / angle).unbind(-1)
        zero = torch.zeros_like(x)
        k = torch.stack([zero, -z, y, z, zero, -x, -y, x, zero], -1).unflatten(-1, (3, 3))
        eye = torch.eye(3, dtype=pose.dtype)
        turn = eye + angle.sin()[..., None] * k + (1 - angle.cos())[..., None] * (k @ k)
        body = points + torch.einsum("pcs,bs->bpc", shapes, shape) + ((turn[:, 1:] - eye).flatten(1) @ poses).view(-1, 60, 3)
        joints = rest - torch.cat([torch.zeros(1, 3, dtype=pose.dtype), rest[[0, 1, 2, 0, 4, 5, 0]]])
        step = F.pad(torch.cat([turn, joints.expand(len(pose), -1, -1)[..., None]], -1), (0, 0, 0, 1))
        step[..., 3, 3] = 1
        chain = []
        for i, parent in enumerate(parents):
            chain.append(step[:, i] if parent < 0 else chain[parent] @ step[:, i])
        chain = torch.stack(chain, 1)
        moved = chain[..., :3, 3] - (chain[..., :3, :3] @ rest[..., None]).squeeze(-1)
        chain = torch.cat([chain[..., :3, :3], moved[..., None]], -1)
        of = torch.einsum("pj,bjrc->bprc", blend, chain)
        return (of[..., :3] @ body[..., None]).squeeze(-1) + of[..., 3] + place[:, None], chain

    optimizer, goal = torch.optim.Adam([pose, shape, place], 0.05, eps=1e-3), run.normal(3, 60, 3)

    def step():
        return descend(optimizer, (skin(pose, shape, place)[0] - goal).abs().mean() + 1e-3 * pose.square().sum())

    losses = [step().detach().clone() for _ in range(4)]
    return [*losses, *(x.detach().clone() for x in (pose, shape, place))], step


@script("newton-steps")
def newton_steps(run):
    """Products with a Hessian by jvp of grad, conjugate gradients, kernels of tangents by jacrev, and curvature of each layer."""
    net = perceptron(run, 5, 16, 2, last=nn.Tanh())
    weights = {k: v.detach() for k, v in net.named_parameters()}
    of = lambda w, x: functional_call(net, w, (x,))  # noqa: E731

    @run.compile
    def newton(weights, x, y):
        loss = lambda w: (of(w, x) - y).square().mean() + 1e-2 * sum(v.square().sum() for v in w.values())  # noqa: E731
        slope = grad(loss)(weights)
        times = lambda v: jvp(grad(loss), (weights,), (v,))[1]  # noqa: E731
        dot = lambda a, b: sum((a[k] * b[k]).sum() for k in a)  # noqa: E731
        found = {k: torch.zeros_like(v) for k, v in slope.items()}
        rest = way = {k: -v for k, v in slope.items()}
        now = dot(rest, rest)
        for _ in range(3):
            hit = times(way)
            far = now / (dot(way, hit).abs() + 1e-9)
            found = {k: found[k] + far * way[k] for k in found}
            rest = {k: rest[k] - far * hit[k] for k in rest}
            then = dot(rest, rest)
            way, now = {k: rest[k] + then / now * way[k] for k in rest}, then
        return {k: weights[k] + 0.3 * found[k] for k in weights}, loss(weights)

    @run.compile
    def tangents(weights, a, b):
        of_one = lambda w, x: of(w, x[None]).squeeze(0)  # noqa: E731
        left, right = (vmap(jacrev(of_one), (None, 0))(weights, x) for x in (a, b))
        return sum(torch.einsum("naf,mbf->nmab", left[k].flatten(2), right[k].flatten(2)) for k in left)

    found, x, y = [], run.normal(12, 5), run.normal(12, 2)
    for _ in range(3):
        weights, loss = newton(weights, x, y)
        found.append(loss)
    return [*found, *weights.values(), tangents(weights, x, run.normal(7, 5))], lambda: newton(weights, x, y)


@script("soft-trees")
def soft_trees(run):
    """Trees with sparse choices (entmax by bisection, sparsemax by sorting), and orders that have gradients."""
    def sparsemax(x):
        z = x.sort(-1, descending=True)[0]
        k = torch.arange(1, x.shape[-1] + 1, dtype=x.dtype)
        sums = z.cumsum(-1) - 1
        count = (k * z > sums).sum(-1, keepdim=True)
        return (x - sums.gather(-1, count - 1) / count).relu()

    def entmax(x, alpha=1.5):
        x = x * (alpha - 1)
        low = x.amax(-1, keepdim=True) - 1
        step = 1 - (1 / x.shape[-1]) ** (alpha - 1)
        for _ in range(12):
            step = step / 2
            middle = low + step
            low = torch.where(((x - middle).relu() ** (1 / (alpha - 1))).sum(-1, keepdim=True) >= 1, middle, low)
        p = (x - low).relu() ** (1 / (alpha - 1))
        return p / p.sum(-1, keepdim=True)

    class Trees(nn.Module):
        def __init__(self):
            super().__init__()
            self.choice, self.cut, self.size, self.leaf = nn.Parameter(torch.randn(6, 3, 8)), nn.Parameter(torch.randn(6, 3)), nn.Parameter(torch.zeros(6, 3)), nn.Parameter(torch.randn(6, 8, 2))
            self.register_buffer("codes", torch.stack([torch.arange(8) >> i & 1 for i in range(3)]).float())

        def forward(self, x):
            at = torch.einsum("bf,tdf->btd", x, entmax(self.choice))
            left = ((at - self.cut) * (-self.size).exp() * 0.5 + 0.5).clamp(0, 1)
            both = left[..., None] * self.codes + (1 - left)[..., None] * (1 - self.codes)
            found = torch.einsum("btl,tlo->bo", both.prod(2), self.leaf)
            apart = (x[:, :, None] - x[:, None]).abs().sum(2)
            scale = x.shape[1] + 1 - 2 * torch.arange(1, x.shape[1] + 1, dtype=x.dtype)
            order = (scale[:, None] * x[:, None] - apart[:, None]).softmax(-1)
            return found, (order @ x[..., None]).squeeze(-1), sparsemax(x)

    net = run(Trees())
    return with_gradients(run, net, run.normal(16, 8), module=net)
