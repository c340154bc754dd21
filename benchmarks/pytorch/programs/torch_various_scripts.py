"""Further SCRIPTS, short ones: factors, spectra, masks, elements put at places, outputs as objects, averages and gradients in parts, optimisers by hand."""

import collections
import dataclasses
import typing

import torch
import torch.nn.functional as F
from torch import nn
from torch_training_scripts import descend, perceptron, script, trained


@script("ridge-and-whitening")
def ridge_and_whitening(run):
    """Systems by factors of Cholesky, whitening by triangular solves, log determinants, with gradients."""
    @run.compile
    def fit(x, y, penalty):
        gram = x.mT @ x + penalty.exp() * torch.eye(x.shape[-1], dtype=x.dtype)
        factor = torch.linalg.cholesky(gram)
        weight = torch.cholesky_solve(x.mT @ y, factor)
        white = torch.linalg.solve_triangular(factor, x.mT, upper=False)
        return weight, white, 2 * factor.diagonal(dim1=-2, dim2=-1).log().sum(-1), torch.cholesky_inverse(factor)

    x, y, penalty = run.normal(3, 20, 6), run.normal(3, 20, 2), run(torch.tensor(0.5)).requires_grad_()
    weight, white, volume, inverse = fit(x, y, penalty)
    (weight.square().sum() + volume.sum() + white.square().mean() + inverse.sum()).backward()
    return [weight, white, volume, inverse, penalty.grad.clone()], lambda: fit(x, y, penalty)[0].sum().backward()


@script("factors-of-small-matrices")
def factors_of_small_matrices(run):
    """QR with signs, polar factors by iterations, expm, powers, least squares by QR, cross products, norms of many orders."""
    @run.compile
    def f(a, b):
        q, r = torch.linalg.qr(a)
        signs = r.diagonal(dim1=-2, dim2=-1).sign()
        solved = torch.linalg.solve_triangular(r, q.mT @ b, upper=True)
        y = a / torch.linalg.matrix_norm(a, keepdim=True)
        for _ in range(6):
            y = 1.5 * y - 0.5 * y @ y.mT @ y
        square = a[..., :4, :] * 0.1
        return (q * signs[..., None, :], solved, y, torch.linalg.matrix_exp(square), torch.linalg.matrix_power(square, 5), torch.linalg.vector_norm(a, 3, dim=-1),
                torch.linalg.matrix_norm(a, 1), torch.linalg.matrix_norm(a, float("inf")), torch.linalg.cross(a[..., :3], b[..., :3]), torch.linalg.multi_dot([a[0].mT, b[0], b[0].mT]),
                torch.linalg.vander(a[0, 0]), torch.linalg.slogdet(square), torch.linalg.inv_ex(square)[0], torch.linalg.ldl_factor(square @ square.mT)[0].tril().sum())  # fmt: skip

    a, b = run.normal(2, 6, 4), run.normal(2, 6, 4)
    return list(f(a, b)), lambda: f(a, b)


@script("spectra-that-are-learned")
def spectra_that_are_learned(run):
    """A layer between transforms of rows, complex weights, windows, phases, roots of unity, energies by Parseval."""
    class Mixer(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.randn(17, 4, dtype=torch.complex64) * 0.3)
            self.window = nn.Parameter(torch.hann_window(32))

        def forward(self, x):
            z = torch.fft.rfft(x * self.window[:, None], dim=1, norm="ortho") * self.weight
            phase = torch.polar(torch.ones_like(z.real), z.angle() * 0.5)
            y = torch.fft.irfft(z * phase, n=32, dim=1, norm="ortho")
            return y, z.abs().square().sum((1, 2)), torch.view_as_real(z.conj() * phase).mean((0, 1))

    net = Mixer()
    if run.exact:
        net.weight.data, net.window.data = net.weight.data.to(torch.complex128), net.window.data.double()
    forward, optimizer = run.compile(net), torch.optim.SGD(net.parameters(), 0.01)

    def step(x):
        y, energy, mean = forward(x)
        return descend(optimizer, y.square().mean() + energy.mean() * 0.1 + mean.sum())

    return trained(net, step, [(run.normal(3, 32, 4),) for _ in range(3)])


@script("masks-of-all-kinds")
def masks_of_all_kinds(run):
    """Masked softmax, means, extremes, variances, scatters of masks, nan-aware sums, where with numbers, any and all."""
    @run.compile
    def f(x, mask, places):
        low = torch.finfo(x.dtype).min
        filled = x.masked_fill(~mask, low)
        shares = filled.softmax(-1) * mask.any(-1, keepdim=True)
        count = mask.sum(-1).clamp(min=1)
        mean = (x * mask).sum(-1) / count
        spread = (((x - mean[..., None]) * mask).square().sum(-1) / count).sqrt()
        holes = torch.where(mask, x, float("nan"))
        put = x.masked_scatter(mask, torch.arange(x.numel(), dtype=x.dtype).view_as(x))
        picked = torch.zeros_like(x).scatter_(-1, places, 1.0).bool()
        return (shares, mean, spread, holes.nansum(-1), holes.nanmean(-1), holes.nanmedian(-1)[0], torch.nan_to_num(holes, -1.0), put, x[:, :2].masked_fill(picked[:, :2], 0),
                picked.all(-1), mask.logical_xor(picked).any(0), filled.amax(-1), filled.argmax(-1), torch.where(picked, 1, mask.int()), mask.cumsum(-1) * mask, mask.float().bernoulli())  # fmt: skip

    x, mask, places = run.normal(4, 6), torch.rand(4, 6) > 0.4, torch.randint(6, (4, 2))
    return list(f(x, mask, places)), lambda: f(x, mask, places)


@script("puts-of-all-kinds")
def puts_of_all_kinds(run):
    """index_put with and without sums, scatter_reduce of five kinds, index_reduce, put, take along dims, select_scatter, with gradients."""
    @run.compile
    def f(x, at, new, places):
        rows = torch.arange(3)[:, None]
        found = [x.index_put((rows, at), new), x.index_put((rows, at), new, accumulate=True)]
        found += [x.scatter_reduce(1, places, new, kind, include_self=own) for kind in ("sum", "prod", "mean", "amax", "amin") for own in (True, False)]
        found += [x.index_add(0, at[0, :2], new[:2].repeat(1, 4)[:, :x.shape[1]], alpha=0.5), x.index_copy(1, torch.tensor([4, 1]), new[:, :2]), x.index_fill(1, torch.tensor([2]), 3.0),
                  x.put(torch.tensor([0, 7]), new[0, :2], accumulate=True), torch.take_along_dim(x, places, 1), x.take(places), x.select_scatter(new[:, 0], 1, 2),
                  x.slice_scatter(new[:, :2], 1, 0, 4, 2), x.diagonal_scatter(new.flatten()[:3]), torch.gather(x, 1, places)]  # fmt: skip
        return found

    x, new = run.normal(3, 6).requires_grad_(), run.normal(3, 3).requires_grad_()
    at, places = torch.tensor([[0, 2, 4], [1, 3, 5], [5, 0, 2]]), torch.tensor([[0, 2, 2], [1, 1, 5], [5, 0, 3]])
    results = f(x, at, new, places)
    sum((y * y).sum() for y in results).backward()
    return [*(y.detach() for y in results), x.grad, new.grad], lambda: sum((y * y).sum() for y in f(x, at, new, places)).backward()


@dataclasses.dataclass
class Output(collections.OrderedDict):
    """As model outputs of transformers are: fields that are entries, too."""

    logits: typing.Optional[torch.Tensor] = None
    states: typing.Optional[tuple] = None
    loss: typing.Optional[torch.Tensor] = None

    def __post_init__(self):
        for field in dataclasses.fields(self):
            if (value := getattr(self, field.name)) is not None:
                self[field.name] = value


@script("outputs-as-objects")
def outputs_as_objects(run):
    """Modules that call each other with data classes and mappings, keep lists of states, and hand out what was asked for."""
    class Block(nn.Module):
        def __init__(self, width, number):
            super().__init__()
            self.norm, self.a, self.b, self.number = nn.RMSNorm(width), nn.Linear(width, 2 * width), nn.Linear(width, width), number

        def forward(self, x, memory=None, **flags):
            gate, value = self.a(self.norm(x)).chunk(2, -1)
            x = x + self.b(F.silu(gate) * value)
            if memory is not None and self.number in memory:
                x = x + memory[self.number]
            return {"x": x, "flat": x.flatten(1)} if flags.get("flat") else {"x": x}

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks, self.head = nn.ModuleDict({str(i): Block(16, i) for i in range(3)}), nn.Linear(16, 5)

        def forward(self, x, labels=None, memory=None, keeps=False):
            states = (x,)
            for name, block in self.blocks.items():
                x = block(x, memory, flat=name == "2")["x"]
                states += (x,) if keeps else ()
            logits = self.head(x)
            loss = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=-100, label_smoothing=0.1) if labels is not None else None
            return Output(logits=logits, states=states if keeps else None, loss=loss)

    net = run(Net())
    forward, x = run.compile(net), run.normal(2, 7, 16)
    labels = torch.randint(5, (2, 7)).masked_fill_(torch.rand(2, 7) < 0.3, -100)
    one, two = forward(x, labels=labels), forward(x, memory={1: x * 0.5}, keeps=True)
    one["loss"].backward()
    results = [one.logits, one.loss, two["logits"], *two.states, *(p.grad.clone() for p in net.parameters())]
    return [r.detach() for r in results], lambda: forward(x, labels=labels)


@script("averages-and-gradients-in-parts")
def averages_and_gradients_in_parts(run):
    """Gradients of four parts of a batch, clipped, AdamW in a compiled step with a rate that is a tensor, averages of weights by lerp and foreach."""
    net = perceptron(run, 12, 32, 4)
    shadow = [p.detach().clone() for p in net.parameters()]
    rate = run(torch.tensor(0.01))
    optimizer = torch.optim.AdamW(net.parameters(), lr=rate, weight_decay=0.1)
    forward = run.compile(net)

    @run.compile
    def update():
        optimizer.step()
        torch._foreach_lerp_(shadow, [p.detach() for p in net.parameters()], 0.1)

    def step(x, y):
        optimizer.zero_grad()
        total = 0
        for part, wanted in zip(x.chunk(4), y.chunk(4)):
            loss = F.mse_loss(forward(part), wanted) / 4
            loss.backward()
            total = total + loss.detach()
        nn.utils.clip_grad_norm_(net.parameters(), 0.5, foreach=True)
        with torch.no_grad():
            update()
        rate.mul_(0.9)
        return total

    results, again = trained(net, step, [(run.normal(16, 12), run.normal(16, 4)) for _ in range(4)])
    return [*results, *shadow], again


@script("steps-by-hand")
def steps_by_hand(run):
    """Lion, Muon and Shampoo as functions of lists, compiled whole with their loops; the parameters are written in place."""
    def orthogonal(g, steps=5):
        x = g / (g.norm() + 1e-7)
        for _ in range(steps):
            a = x @ x.mT
            x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
        return x

    @run.compile
    def lion(parameters, moments, gradients):
        for p, m, g in zip(parameters, moments, gradients):
            p.mul_(1 - 0.001).sub_(0.01 * torch.sign(0.9 * m + 0.1 * g))
            m.lerp_(g, 0.01)

    @run.compile
    def muon(parameters, moments, gradients):
        for p, m, g in zip(parameters, moments, gradients):
            m.mul_(0.95).add_(g)
            p.sub_(0.02 * orthogonal(g + 0.95 * m) * max(1, p.shape[0] / p.shape[1]) ** 0.5)

    @run.compile
    def shampoo(p, left, right, g):
        left.add_(g @ g.mT)
        right.add_(g.mT @ g)

        def root(m):  # the inverse fourth root by Newton's steps
            m = m + 1e-3 * torch.eye(m.shape[0], dtype=m.dtype)
            scale = m.norm()
            x, a = torch.eye(m.shape[0], dtype=m.dtype), m / scale
            for _ in range(8):
                t = (5 * torch.eye(m.shape[0], dtype=m.dtype) - torch.linalg.matrix_power(x, 4) @ a) / 4
                x = x @ t
            return x * scale**-0.25
        p.sub_(0.1 * root(left) @ g @ root(right))

    weights = [run.normal(6, 4), run.normal(4, 8)]
    moments, slopes = [torch.zeros_like(w) for w in weights], [run.normal(*w.shape) for w in weights]
    left, right = (torch.eye(n, dtype=weights[0].dtype) * 0.1 for n in (6, 4))
    for _ in range(3):
        lion(weights, moments, slopes)
        muon(weights, moments, slopes)
        shampoo(weights[0], left, right, slopes[0])
    return [w.clone() for w in (*weights, *moments, left, right)], lambda: lion(weights, moments, slopes)
