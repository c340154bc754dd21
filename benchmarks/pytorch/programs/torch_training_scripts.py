"""Scripts that train, as users of torch.compile write them, over several calls, modules and optimisers. SCRIPTS maps a name to a function of a Run; it
returns what must agree, and a step whose time is taken (None: none is)."""

import contextlib
import copy
import dataclasses

import torch
import torch.nn.functional as F
import torch.utils.checkpoint
from torch import nn
from torch.optim import swa_utils

SCRIPTS = {}


def script(name):
    def add(function):
        SCRIPTS[name] = function
        return function
    return add


@dataclasses.dataclass
class Run:
    """How a script runs: by which backend, and in float64 beside which others are judged."""

    backend: str
    exact: bool = False

    def compile(self, function, **more):
        return function if self.backend == "eager" else torch.compile(function, backend=self.backend, **more)

    def __call__(self, value):
        """A module or a tensor in the type of this run."""
        if isinstance(value, torch.Tensor) and not (value.is_floating_point() or value.is_complex()):
            return value
        return value.to(torch.complex128 if isinstance(value, torch.Tensor) and value.is_complex() else torch.float64) if self.exact else value

    def normal(self, *size):
        return self(torch.randn(size))

    def autocast(self):
        return contextlib.nullcontext() if self.exact else torch.autocast("cpu", torch.bfloat16)


def perceptron(run, *widths, last=None):
    layers = [each for a, b in zip(widths, widths[1:]) for each in (nn.Linear(a, b), nn.GELU())][:-1]
    return run(nn.Sequential(*layers, *([last] if last else [])))


def state(*modules):
    return [x.detach().clone() for module in modules for x in module.state_dict().values() if isinstance(x, torch.Tensor)]


def descend(optimizer, loss):
    """A step down the gradients of the loss, which is what it gives."""
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss


def trained(net, step, given):
    """Losses of the steps and what the network is then; and the step again."""
    losses = [step(*each).detach().clone() for each in given]
    return [*losses, *state(net)], lambda: step(*given[0])


@script("grad-scaler")
def grad_scaler(run):
    net = perceptron(run, 24, 64, 64, 5)
    forward, optimizer, scaler = run.compile(net), torch.optim.SGD(net.parameters(), 0.05, momentum=0.9), torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=2)

    def step(x, y):
        with run.autocast():
            loss = F.cross_entropy(forward(x).float() if not run.exact else forward(x), y)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        return loss

    results, again = trained(net, step, [(run.normal(16, 24), torch.randint(5, (16,))) for _ in range(4)])
    return [*results, torch.tensor(scaler.get_scale())], again


@script("sparse-embedding")
def sparse_embedding(run):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.bag = nn.Embedding(500, 16, sparse=True), nn.EmbeddingBag(500, 16, sparse=True, mode="sum")
            self.out = nn.Linear(32, 4)

        def forward(self, words):
            return self.out(torch.cat([self.table(words).mean(1), self.bag(words)], 1))

    net = run(Model())
    forward = run.compile(net)
    sparse = torch.optim.SparseAdam([net.table.weight, net.bag.weight], 0.01)
    dense = torch.optim.Adam(net.out.parameters(), 0.01)

    def step(words, y):
        sparse.zero_grad()
        dense.zero_grad()
        loss = F.cross_entropy(forward(words), y)
        loss.backward()
        sparse.step()
        dense.step()
        return loss

    return trained(net, step, [(torch.randint(500, (16, 8)), torch.randint(4, (16,))) for _ in range(3)])


def compiled_optimiser(run, make, steps=4, schedule=None):
    """The whole step of the optimiser compiled, of gradients that eager makes."""
    net = perceptron(run, 12, 32, 32, 3)
    optimizer = make(net.parameters())
    scheduler = schedule(optimizer) if schedule else None
    take = run.compile(optimizer.step)

    def step(x, y):
        optimizer.zero_grad()
        loss = F.mse_loss(net(x), y)
        loss.backward()
        take()
        if scheduler:
            scheduler.step()
        return loss

    return trained(net, step, [(run.normal(8, 12), run.normal(8, 3)) for _ in range(steps)])


OPTIMISERS = {
    "adam-lr-tensor": lambda p: torch.optim.Adam(p, lr=torch.tensor(1e-2), capturable=False),
    "adamw-amsgrad": lambda p: torch.optim.AdamW(p, 1e-2, amsgrad=True, weight_decay=0.1),
    "adamw-fused": lambda p: torch.optim.AdamW(p, 1e-2, fused=True),
    "nadam": lambda p: torch.optim.NAdam(p, 1e-2, decoupled_weight_decay=True),
    "radam": lambda p: torch.optim.RAdam(p, 1e-2),
    "adagrad": lambda p: torch.optim.Adagrad(p, 1e-2),
    "adadelta": lambda p: torch.optim.Adadelta(p, 1.0),
    "rmsprop": lambda p: torch.optim.RMSprop(p, 1e-2, momentum=0.5, centered=True),
    "rprop": lambda p: torch.optim.Rprop(p, 1e-2),
    "asgd": lambda p: torch.optim.ASGD(p, 1e-2),
    "adamax": lambda p: torch.optim.Adamax(p, 1e-2),
    "adafactor": lambda p: torch.optim.Adafactor(p, 1e-2),
    "muon": lambda p: torch.optim.Muon([x for x in p if x.dim() == 2], 1e-2),
    "sgd-nesterov": lambda p: torch.optim.SGD(p, 1e-2, momentum=0.9, nesterov=True, weight_decay=0.01),
}
for _name, _make in OPTIMISERS.items():
    SCRIPTS["optimiser-" + _name] = lambda run, make=_make: compiled_optimiser(run, make)


@script("scheduled-lr")
def scheduled_lr(run):
    """The rate is a tensor, so that a schedule compiles nothing."""
    return compiled_optimiser(run, lambda p: torch.optim.AdamW(p, lr=torch.tensor(0.05)), 8,
                              lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(o, 8))  # fmt: skip


@script("scheduled-rate-number")
def scheduled_rate_number(run):
    return compiled_optimiser(run, lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9), 8, lambda o: torch.optim.lr_scheduler.StepLR(o, 2))


@script("lbfgs")
def lbfgs(run):
    net = perceptron(run, 3, 16, 1, last=nn.Tanh())
    forward = run.compile(net)
    optimizer = torch.optim.LBFGS(net.parameters(), lr=0.5, max_iter=4, line_search_fn="strong_wolfe")
    x, y = run.normal(20, 3), run.normal(20, 1).tanh()

    def closure():
        optimizer.zero_grad()
        loss = (forward(x) - y).square().mean()
        loss.backward()
        return loss

    return [optimizer.step(closure).detach().clone() for _ in range(2)], closure


@script("whole-step")
def whole_step(run):
    """Forward, backward and the optimiser in one compiled function."""
    net = perceptron(run, 16, 48, 4)
    optimizer = torch.optim.AdamW(net.parameters(), 1e-2)

    @run.compile
    def step(x, y):
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return trained(net, step, [(run.normal(12, 16), torch.randint(4, (12,))) for _ in range(3)])


@script("accumulated")
def accumulated(run):
    """Gradients of four parts of a batch, the last of which is smaller."""
    net = perceptron(run, 16, 48, 4)
    forward, optimizer = run.compile(net), torch.optim.SGD(net.parameters(), 0.1)

    def step(x, y):
        total = 0
        for a, b in zip(x.split(8), y.split(8)):
            loss = F.cross_entropy(forward(a), b, reduction="sum") / len(x)
            loss.backward()
            total = total + loss.detach()
        nn.utils.clip_grad_value_(net.parameters(), 0.05)
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)
        return total

    return trained(net, step, [(run.normal(n, 16), torch.randint(4, (n,))) for n in (27, 30, 27)])


@script("moving-average")
def moving_average(run):
    net = run(nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 5)))
    forward, optimizer = run.compile(net), torch.optim.SGD(net.parameters(), 0.05)
    mean = swa_utils.AveragedModel(net, multi_avg_fn=swa_utils.get_ema_multi_avg_fn(0.9), use_buffers=True)
    slow = swa_utils.AveragedModel(net)
    rate = swa_utils.SWALR(optimizer, 0.01, anneal_epochs=2)
    update = run.compile(mean.update_parameters)

    def step(x, y):
        optimizer.zero_grad()
        loss = F.cross_entropy(forward(x), y)
        loss.backward()
        optimizer.step()
        update(net)
        slow.update_parameters(net)
        rate.step()
        return loss

    given = [(run.normal(6, 3, 8, 8), torch.randint(5, (6,))) for _ in range(3)]
    results, again = trained(net, step, given)
    swa_utils.update_bn([x for x, _ in given], slow)
    net.eval()
    return [*results, *state(mean, slow), run.compile(slow.eval())(given[0][0]), forward(given[0][0])], again


@script("images-bf16")
def images_bf16(run):
    """Autocast, channels last, batch norms, a label smoothed loss."""
    layers = [nn.Conv2d(3, 16, 3, 2, 1, bias=False), nn.BatchNorm2d(16), nn.SiLU(), nn.Conv2d(16, 32, 3, 2, 1, groups=4, bias=False), nn.BatchNorm2d(32)]
    net = run(nn.Sequential(*layers, nn.Hardswish(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10))).to(memory_format=torch.channels_last)
    forward, optimizer = run.compile(net), torch.optim.SGD(net.parameters(), 0.02, momentum=0.9)
    loss_of = nn.CrossEntropyLoss(label_smoothing=0.1)

    def step(x, y):
        optimizer.zero_grad(set_to_none=True)
        with run.autocast():
            loss = loss_of(forward(x), y)
        loss.backward()
        optimizer.step()
        return loss.float()

    given = [(run.normal(8, 3, 32, 32).to(memory_format=torch.channels_last), torch.randint(10, (8,))) for _ in range(3)]
    return trained(net, step, given)


@script("checkpointed-layers")
def checkpointed_layers(run):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList(nn.TransformerEncoderLayer(32, 4, 64, 0.0, batch_first=True, norm_first=True) for _ in range(3))

        def forward(self, x):
            for layer in self.layers:
                x = torch.utils.checkpoint.checkpoint(layer, x, use_reentrant=False)
            return torch.utils.checkpoint.checkpoint_sequential(self.layers, 2, x, use_reentrant=False)

    net = run(Model())
    forward, optimizer = run.compile(net), torch.optim.SGD(net.parameters(), 0.01)

    def step(x):
        return descend(optimizer, forward(x).square().mean())

    return trained(net, step, [(run.normal(4, 10, 32),) for _ in range(3)])


@script("frozen-then-thawed")
def frozen_then_thawed(run):
    """Parts get gradients in the middle, weights are tied, and a checkpoint is loaded."""
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.body = nn.Embedding(40, 24), nn.GRU(24, 24, batch_first=True)
            self.out = nn.Linear(24, 40, bias=False)
            self.out.weight = self.words.weight

        def forward(self, x):
            return self.out(self.body(self.words(x))[0])

    net = run(Model())
    forward, optimizer = run.compile(net), torch.optim.Adam(net.parameters(), 0.01)
    net.body.requires_grad_(False)
    losses, kept = [], None
    given = [torch.randint(40, (4, 9)) for _ in range(6)]

    def step(x):
        optimizer.zero_grad()
        loss = F.cross_entropy(forward(x[:, :-1]).flatten(0, 1), x[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        return loss.detach().clone()

    for i, x in enumerate(given):
        if i == 2:
            net.body.requires_grad_(True)
            kept = copy.deepcopy((net.state_dict(), optimizer.state_dict()))
        if i == 4:
            net.load_state_dict(kept[0])
            optimizer.load_state_dict(kept[1])
        losses.append(step(x))
    net.eval()
    with torch.no_grad():
        return [*losses, *state(net), forward(given[0])], lambda: step(given[0])


@script("hooks")
def hooks(run):
    """Of modules, backward and forward, with keywords; and of parameters, which step as soon as their gradient is there."""
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.line = nn.Linear(16, 16)

        def forward(self, x, *, scale):
            return self.line(x) * scale

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = Scaled(), nn.Linear(16, 4)

        def forward(self, x):
            return self.second(self.first(x, scale=2.0).relu())

    net = run(Model())
    seen = {}
    net.first.register_forward_pre_hook(lambda m, args, kwargs: (args, {"scale": kwargs["scale"] + 0.5}), with_kwargs=True)
    net.first.register_forward_hook(lambda m, args, result: result.clamp(-3, 3))
    net.second.register_full_backward_hook(lambda m, given, found: (given[0] * 0.5,))

    def take(p):
        seen.setdefault(p.shape, []).append(p.grad.norm())
        p.data.add_(p.grad, alpha=-0.1)
        p.grad = None

    for p in net.parameters():
        p.register_post_accumulate_grad_hook(take)
    forward = run.compile(net)

    def step(x):
        loss = forward(x).square().mean()
        loss.backward()
        return loss

    results, again = trained(net, step, [(run.normal(6, 16),) for _ in range(3)])
    return [*results, *(torch.stack(seen[p.shape]) for p in net.parameters())], again


@script("penalised")
def penalised(run):
    """A gradient penalty, by gradients of gradients, as of a critic of images."""
    critic = perceptron(run, 12, 32, 1)
    optimizer = torch.optim.RMSprop(critic.parameters(), 1e-3)

    @run.compile
    def loss_of(x, y, mix):
        z = x + mix * (y - x)
        slope = torch.func.grad(lambda z: critic(z).sum())(z)
        return critic(x).mean() - critic(y).mean() + 10 * (slope.norm(dim=1) - 1).square().mean()

    def step(x, y, mix):
        return descend(optimizer, loss_of(x, y, mix))

    return trained(critic, step, [(run.normal(8, 12), run.normal(8, 12), run.normal(8, 1).sigmoid()) for _ in range(3)])


@script("per-sample-private")
def per_sample_private(run):
    """Gradients of each sample, cut to a length, added."""
    net = perceptron(run, 10, 24, 3)
    parameters = dict(net.named_parameters())

    def loss_of(p, x, y):
        return F.cross_entropy(torch.func.functional_call(net, p, (x[None],)), y[None])

    @run.compile
    def gradients(p, x, y):
        each = torch.func.vmap(torch.func.grad(loss_of), (None, 0, 0))(p, x, y)
        lengths = torch.stack([g.flatten(1).norm(dim=1) for g in each.values()], 1).norm(dim=1)
        share = (1.0 / (lengths + 1e-6)).clamp(max=1)
        return {name: torch.einsum("i,i...->...", share, g) / len(x) for name, g in each.items()}

    def step(x, y):
        with torch.no_grad():
            found = gradients({k: p.detach() for k, p in parameters.items()}, x, y)
            for name, p in parameters.items():
                p -= 0.1 * found[name]
        return found["0.weight"].norm()

    return trained(net, step, [(run.normal(9, 10), torch.randint(3, (9,))) for _ in range(3)])


@script("inner-loop")
def inner_loop(run):
    """Learning to learn: two steps of gradient inside, and the gradient of what they reach."""
    net = perceptron(run, 1, 20, 20, 1)

    @run.compile
    def loss_of(parameters, x, y, more, wanted):
        def error(p, x, y):
            return (torch.func.functional_call(net, p, (x,)) - y).square().mean()

        for _ in range(2):
            slopes = torch.func.grad(error)(parameters, x, y)
            parameters = {k: p - 0.05 * slopes[k] for k, p in parameters.items()}
        return error(parameters, more, wanted)

    optimizer = torch.optim.Adam(net.parameters(), 1e-2)

    def step(*given):
        return descend(optimizer, loss_of(dict(net.named_parameters()), *given))

    return trained(net, step, [tuple(run.normal(10, 1) for _ in range(4)) for _ in range(3)])


@script("regional")
def regional(run):
    """Each of equal blocks is compiled by itself, in place, and the loss beside them."""
    class Block(nn.Module):
        def __init__(self, index):
            super().__init__()
            self.index, self.norm, self.up, self.down = index, nn.RMSNorm(24), nn.Linear(24, 64), nn.Linear(32, 24)

        def forward(self, x):
            a, b = self.up(self.norm(x)).chunk(2, -1)
            return x + self.down(F.silu(a) * b)

    net = run(nn.Sequential(*(Block(i) for i in range(4))))
    if run.backend != "eager":
        for block in net:
            block.compile(backend=run.backend, fullgraph=True)
    loss_of = run.compile(lambda y, z: F.smooth_l1_loss(y, z) + F.huber_loss(y, z, delta=0.5))
    optimizer = torch.optim.SGD(net.parameters(), 0.1)

    def step(x, z):
        return descend(optimizer, loss_of(net(x), z))

    return trained(net, step, [(run.normal(n, 24), run.normal(n, 24)) for n in (8, 8, 5)])
