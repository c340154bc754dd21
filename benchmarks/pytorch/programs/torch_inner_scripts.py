"""Further SCRIPTS: splats, weights that learn within a layer, optimisers as classes, steps within the backward pass, weights that are subclasses, states
that are swapped, curvature, norms of weights."""

import copy
import io

import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call, grad, hessian, jacfwd, jacrev, jvp, vjp, vmap
from torch.nn.utils import parametrizations, parametrize
from torch_training_scripts import descend, perceptron, script, state, trained


@script("splats")
def splats(run):
    """Gaussians in space seen by a camera, sorted by depth, blended front to back, fitted to a picture; their densities are then changed."""
    n = 24
    parameters = nn.ParameterDict({"place": nn.Parameter(run.normal(n, 3) * 0.5), "size": nn.Parameter(run.normal(n, 3) * 0.1 - 1), "turn": nn.Parameter(run.normal(n, 4)),
                                   "colour": nn.Parameter(run.normal(n, 3)), "opacity": nn.Parameter(run.normal(n))})  # fmt: skip
    optimizer = torch.optim.Adam([{"params": [parameters["place"]], "lr": 0.01}, {"params": [p for k, p in parameters.items() if k != "place"], "lr": 0.03}], eps=1e-15)

    @run.compile
    def render(place, size, turn, colour, opacity, camera):
        w, x, y, z = F.normalize(turn, dim=-1).unbind(-1)
        r = torch.stack([1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y), 2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x),
                         2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)], -1).view(-1, 3, 3)  # fmt: skip
        half = r * size.exp()[:, None]
        seen = place @ camera[:3, :3].mT + camera[:3, 3]
        depth = seen[:, 2].clamp(min=0.2)
        zero = torch.zeros_like(depth)
        slope = torch.stack([torch.stack([8 / depth, zero, -8 * seen[:, 0] / depth ** 2], -1), torch.stack([zero, 8 / depth, -8 * seen[:, 1] / depth ** 2], -1)], -2)
        flat = slope @ camera[:3, :3] @ half
        spread = flat @ flat.mT + 0.3 * torch.eye(2, dtype=place.dtype)
        mean = 8 * seen[:, :2] / depth[:, None] + 8
        order = depth.argsort()
        grid = torch.stack(torch.meshgrid(torch.arange(16), torch.arange(16), indexing="xy"), -1).view(-1, 1, 2).to(place.dtype) + 0.5
        away = grid - mean[order]
        power = -0.5 * torch.einsum("pni,nij,pnj->pn", away, torch.linalg.inv(spread[order]), away)
        alpha = (opacity[order].sigmoid() * power.exp()).clamp(max=0.99)
        alpha = torch.where(alpha < 1 / 255, 0, alpha)
        through = torch.cumprod(1 - alpha, 1)
        weight = alpha * torch.cat([torch.ones_like(through[:, :1]), through[:, :-1]], 1)
        return (weight @ colour[order].sigmoid() + through[:, -1:]).view(16, 16, 3)

    def step(camera, picture):
        return descend(optimizer, F.l1_loss(render(**parameters, camera=camera), picture))

    cameras = []
    for _ in range(3):
        camera = run(torch.eye(4))
        camera[:3, 3] = run(torch.tensor([0.1, -0.2, 3.0])) + run.normal(3) * 0.1
        cameras.append((camera, run(torch.rand(16, 16, 3))))
    results, again = trained(parameters, step, cameras)
    return results, again


@script("weights-that-learn-within")
def weights_that_learn_within(run):
    """Test-time training: a layer's own small weights take gradient steps along the row, by grad under vmap, in a loop with momentum and decay."""
    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.k, self.v, self.q = (nn.Linear(24, 12, bias=False) for _ in range(3))
            self.rate, self.start, self.out = nn.Linear(24, 2), nn.Parameter(torch.randn(12, 12) * 0.1), nn.Linear(12, 24)

        def forward(self, x):
            def miss(w, k, v):
                return (F.gelu(k @ w) - v).square().sum()

            slope = vmap(grad(miss))
            k, v, q = self.k(x), self.v(x), self.q(x)
            rate, decay = self.rate(x).sigmoid().unbind(-1)
            w, momentum, ys = self.start.expand(len(x), -1, -1), torch.zeros(len(x), 12, 12, dtype=x.dtype), []
            for t in range(x.shape[1]):
                momentum = 0.9 * momentum - 0.1 * rate[:, t, None, None] * slope(w, k[:, t], v[:, t])
                w = (1 - 0.1 * decay[:, t, None, None]) * w + momentum
                ys.append(F.gelu(q[:, t, None] @ w).squeeze(1))
            return x + self.out(torch.stack(ys, 1))

    net = run(nn.Sequential(Layer(), nn.LayerNorm(24), nn.Linear(24, 5)))
    forward, optimizer = run.compile(net), torch.optim.NAdam(net.parameters(), 0.01)

    def step(x, y):
        return descend(optimizer, F.cross_entropy(forward(x).mT, y))

    return trained(net, step, [(run.normal(4, 6, 24), torch.randint(5, (4, 6))) for _ in range(3)])


class Preconditioned(torch.optim.Optimizer):
    """Adam in the eigenspaces of Shampoo's factors, which are turned by a power step and QR."""

    def __init__(self, params, lr=0.01):
        super().__init__(params, {"lr": lr, "betas": (0.9, 0.95)})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            b1, b2 = group["betas"]
            for p in group["params"]:
                s = self.state[p]
                if not s:
                    s["step"] = torch.zeros((), dtype=p.dtype)
                    s["m"], s["v"] = torch.zeros_like(p), torch.zeros_like(p)
                    if p.dim() == 2:
                        s["l"], s["r"] = (torch.zeros(d, d, dtype=p.dtype) for d in p.shape)
                        s["ql"], s["qr"] = (torch.eye(d, dtype=p.dtype) for d in p.shape)
                g = p.grad
                s["step"] += 1
                if p.dim() == 2:
                    s["l"].lerp_(g @ g.mT, 1 - b2)
                    s["r"].lerp_(g.mT @ g, 1 - b2)
                    g = s["ql"].mT @ g @ s["qr"]
                s["m"].lerp_(p.grad, 1 - b1)
                s["v"].mul_(b2).addcmul_(g, g, value=1 - b2)
                m = s["ql"].mT @ s["m"] @ s["qr"] if p.dim() == 2 else s["m"]
                move = m / (1 - b1 ** s["step"]) / ((s["v"] / (1 - b2 ** s["step"])).sqrt() + 1e-8)
                p.sub_(group["lr"] * (s["ql"] @ move @ s["qr"].mT if p.dim() == 2 else move))


class Orthogonal(torch.optim.Optimizer):
    """Muon's steps for matrices by five Newton-Schulz products in a quintic, Lion's for the rest, decoupled decay."""

    def __init__(self, params, lr=0.02):
        super().__init__(params, {"lr": lr, "decay": 0.01})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                s = self.state[p]
                if "m" not in s:
                    s["m"] = torch.zeros_like(p)
                p.mul_(1 - group["lr"] * group["decay"])
                if p.dim() < 2:
                    p.add_(torch.sign(s["m"] * 0.9 + p.grad * 0.1), alpha=-group["lr"] * 0.1)
                    s["m"].lerp_(p.grad, 0.01)
                    continue
                s["m"].mul_(0.95).add_(p.grad)
                x = p.grad.add(s["m"], alpha=0.95).flatten(1)
                wide = x.shape[0] > x.shape[1]
                x = x.mT if wide else x
                x = x / (x.norm() + 1e-7)
                for _ in range(5):
                    a = x @ x.mT
                    x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
                p.add_((x.mT if wide else x).view_as(p), alpha=-group["lr"] * max(1, p.shape[0] / p[0].numel()) ** 0.5)


class Factored(torch.optim.Optimizer):
    """Adafactor by rows and columns with clipped updates; averages of weights as in schedule-free steps."""

    def __init__(self, params, lr=0.05):
        super().__init__(params, {"lr": lr})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                s = self.state[p]
                if not s:
                    s["step"], s["z"] = 0, p.clone()
                    s["row"], s["col"] = p.new_zeros(p.shape[0]), p.new_zeros(p[0].numel())
                s["step"] += 1
                keep = 1 - s["step"] ** -0.8
                square = (p.grad.square() + 1e-30).view(p.shape[0], -1)
                s["row"].mul_(keep).add_(square.mean(1), alpha=1 - keep)
                s["col"].mul_(keep).add_(square.mean(0), alpha=1 - keep)
                scale = torch.outer(s["row"] / s["row"].mean(), s["col"]).rsqrt().view_as(p)
                move = p.grad * scale
                move = move / (move.square().mean().sqrt().clamp(min=1))
                s["z"].sub_(move, alpha=group["lr"] / s["step"] ** 0.5)
                p.lerp_(s["z"], 1 / s["step"])


def stepped(kind):
    def build(run):
        net = run(nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.ReLU(), nn.Flatten(), nn.Linear(128, 40), nn.ReLU(), nn.Linear(40, 6, bias=kind is not Factored)))
        optimizer = kind(net.parameters())
        forward, move = run.compile(net), run.compile(optimizer.step)

        def step(x, y):
            optimizer.zero_grad()
            loss = F.cross_entropy(forward(x), y)
            loss.backward()
            move()
            return loss

        return trained(net, step, [(run.normal(8, 3, 8, 8), torch.randint(6, (8,))) for _ in range(4)])
    return build


for name, kind in (("turned-factors", Preconditioned), ("orthogonal-steps", Orthogonal), ("factored-averages", Factored)):
    script(name)(stepped(kind))


@script("steps-within-backward")
def steps_within_backward(run):
    """Each parameter has an optimiser of its own, which steps as soon as its gradient is there; tensors' hooks scale and watch gradients."""
    net = perceptron(run, 20, 40, 40, 4)
    forward = run.compile(net)
    optimizers = {p: torch.optim.AdamW([p], 0.01) for p in net.parameters()}

    def move(p):
        optimizers[p].step()
        p.grad = None

    for p in net.parameters():
        p.register_post_accumulate_grad_hook(move)
    seen = []

    def step(x, y):
        x = x.clone().requires_grad_()
        x.register_hook(lambda g: g * 2)
        out = forward(x)
        out.register_hook(lambda g: seen.append(g.norm().detach()) or g.clamp(-0.05, 0.05))
        loss = F.mse_loss(out, y)
        loss.backward()
        seen[-1] = torch.stack([seen[-1], x.grad.norm()])
        return loss

    results, again = trained(net, step, [(run.normal(8, 20), run.normal(8, 4)) for _ in range(4)])
    return [*results, *seen[:4]], again


class Eighths(torch.Tensor):
    """A weight of whole numbers of eight bits with a scale for each row, as a subclass that its linear layers turn back."""

    @staticmethod
    def __new__(cls, numbers, scale):
        return torch.Tensor._make_wrapper_subclass(cls, numbers.shape, dtype=scale.dtype, requires_grad=False)

    def __init__(self, numbers, scale):
        self.numbers, self.scale = numbers, scale

    @classmethod
    def of(cls, weight):
        scale = weight.abs().amax(1, keepdim=True) / 127
        return cls((weight / scale).round().to(torch.int8), scale)

    def __tensor_flatten__(self):
        return ["numbers", "scale"], None

    @classmethod
    def __tensor_unflatten__(cls, inner, meta, size, stride):
        return cls(inner["numbers"], inner["scale"])

    def back(self):
        return self.numbers.to(self.scale.dtype) * self.scale

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        aten = torch.ops.aten
        if func is aten.detach.default:
            return cls(args[0].numbers, args[0].scale)
        if func is aten.t.default:
            return args[0].back().t()
        plain = [x.back() if isinstance(x, Eighths) else x for x in args]
        return func(*plain, **(kwargs or {}))


@script("weights-of-a-subclass")
def weights_of_a_subclass(run):
    net = perceptron(run, 24, 48, 48, 6)
    for layer in net:
        if isinstance(layer, nn.Linear):
            layer.weight = nn.Parameter(Eighths.of(layer.weight.detach()), requires_grad=False)
    forward = run.compile(net)
    x = run.normal(9, 24)
    with torch.no_grad():
        results = [forward(x), forward(x[:3])]
    y = x.clone().requires_grad_()
    forward(y).square().mean().backward()

    def again():
        with torch.no_grad():
            return forward(x)
    return [*results, y.grad], again


@script("states-swapped")
def states_swapped(run):
    """Weights that are assigned, swapped, averaged, pickled, copied, and loaded strictly or not, between calls of one compiled module."""
    net = run(nn.Sequential(nn.Linear(12, 24), nn.BatchNorm1d(24), nn.ReLU(), nn.Linear(24, 3))).eval()
    forward, x, results = run.compile(net), run.normal(6, 12), []

    def look():
        with torch.no_grad():
            results.append(forward(x).clone())

    look()
    other = {k: v * 1.5 if v.is_floating_point() else v for k, v in net.state_dict().items()}
    net.load_state_dict(other)
    look()
    net.load_state_dict({k: v * 0.5 if v.is_floating_point() else v for k, v in other.items()}, assign=True)
    look()
    file = io.BytesIO()
    torch.save(net.state_dict(), file)
    file.seek(0)
    with torch.no_grad():
        for p in net.parameters():
            p.zero_()
    look()
    net.load_state_dict(torch.load(file))
    look()
    torch.utils.swap_tensors(net[0].weight, nn.Parameter(net[0].weight.detach() * 2))
    look()
    net[3] = run(nn.Linear(24, 3, bias=False))
    look()
    clone = copy.deepcopy(net)
    with torch.no_grad():
        results.append(run.compile(clone)(x))
        for a, b in zip(clone.parameters(), net.parameters()):
            a.lerp_(b + 1, 0.5)
        results.append(run.compile(clone)(x))
    look()
    net[1].reset_running_stats()
    look()
    net[1].momentum, net[1].eps = 0.5, 1e-2
    look()
    net.to(torch.float64)
    with torch.no_grad():
        results.append(forward(x.double()).to(x.dtype))
    net.to(x.dtype)
    look()
    vector = nn.utils.parameters_to_vector(net.parameters())
    nn.utils.vector_to_parameters(vector * 0.9, net.parameters())
    look()
    return results, None


@script("curvature")
def curvature(run):
    """Laplace's approximation: Jacobians of a functional call under vmap, a generalised Gauss-Newton matrix, its Cholesky factor, predictive variances;
    Hessians by two ways, products with them by jvp of vjp."""
    net = perceptron(run, 6, 10, 3)
    weights = {k: v.detach() for k, v in net.named_parameters()}
    sizes = [v.numel() for v in weights.values()]
    flat = torch.cat([v.reshape(-1) for v in weights.values()])

    def call(vector, x):
        parts = {k: p.view_as(v) for (k, v), p in zip(weights.items(), vector.split(sizes))}
        return functional_call(net, parts, (x[None],))[0]

    @run.compile
    def fit(vector, x):
        slopes = vmap(jacrev(call), (None, 0))(vector, x)
        shares = vmap(call, (None, 0))(vector, x).softmax(-1)
        inner = torch.diag_embed(shares) - shares[:, :, None] * shares[:, None]
        matrix = torch.einsum("nai,nab,nbj->ij", slopes, inner, slopes) + torch.eye(len(vector), dtype=x.dtype)
        return matrix, torch.linalg.cholesky(matrix)

    @run.compile
    def spread(vector, factor, x):
        slope = vmap(jacfwd(call), (None, 0))(vector, x)
        solved = torch.linalg.solve_triangular(factor, slope.mT, upper=False)
        return solved.mT @ solved

    @run.compile
    def products(vector, along, x):
        def loss(v):
            return vmap(call, (None, 0))(v, x).logsumexp(-1).mean()
        value, turned = jvp(lambda v: vjp(loss, v)[1](torch.ones((), dtype=x.dtype))[0], (vector,), (along,))
        return value, turned, hessian(loss)(vector)

    x, z, along = run.normal(8, 6), run.normal(4, 6), torch.ones_like(flat)
    matrix, factor = fit(flat, x)
    return [matrix, factor, spread(flat, factor, z), *products(flat, along, x)], lambda: fit(flat, x)


@script("normed-and-plain-again")
def normed_and_plain_again(run):
    """Weights with norms of their own and a spectral norm, cached while a block runs, removed in the middle of training."""
    net = run(nn.Sequential(parametrizations.weight_norm(nn.Linear(16, 32)), nn.ELU(), parametrizations.spectral_norm(nn.Linear(32, 32)), nn.ELU(), nn.Linear(32, 4)))

    class Even(nn.Module):
        def forward(self, x):
            return (x + x.flip(1)) / 2

    parametrize.register_parametrization(net[4], "weight", Even())
    forward, optimizer = run.compile(net), torch.optim.SGD(net.parameters(), 0.05)

    def step(x, y):
        return descend(optimizer, F.mse_loss(forward(x), y))

    given = [(run.normal(8, 16), run.normal(8, 4)) for _ in range(4)]
    results = [step(*each).detach() for each in given[:2]]
    with parametrize.cached():
        results.append(forward(given[0][0]).detach())
    parametrize.remove_parametrizations(net[0], "weight")
    parametrize.remove_parametrizations(net[4], "weight", leave_parametrized=False)
    optimizer = torch.optim.SGD(net.parameters(), 0.05)
    results += [descend(optimizer, F.mse_loss(forward(x), y)).detach() for x, y in given[2:]]
    net.eval()
    results.append(forward(given[0][0]).detach())
    return [*results, *state(net)], lambda: step(*given[0])
