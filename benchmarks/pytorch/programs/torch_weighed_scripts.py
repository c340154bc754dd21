"""Further SCRIPTS: slots, spikes, a model of a world, a sampler and a solver of steps that are weighed, and images that are changed, by hand."""

import math

import torch
import torch.nn.functional as F
from torch import nn
from torch.func import vmap
from torch_training_scripts import descend, perceptron, script, trained


@script("slots")
def slots(run):
    """Slots that compete for places of an image (attention over slots, a GRU cell, three trips), painted by a decoder and mixed by masks."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.eye, self.start = nn.Conv2d(3, 32, 5, 2, 2), nn.Parameter(torch.randn(4, 32))
            self.norms = nn.ModuleList(nn.LayerNorm(32) for _ in range(3))
            self.q, self.k, self.v, self.cell = nn.Linear(32, 32), nn.Linear(32, 32), nn.Linear(32, 32), nn.GRUCell(32, 32)
            self.grow, self.places = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 32)), nn.Parameter(torch.randn(32, 8, 8) * 0.1)
            self.paint = nn.Sequential(nn.ConvTranspose2d(32, 16, 4, 2, 1), nn.ReLU(), nn.Conv2d(16, 4, 3, padding=1))

        def forward(self, x):
            h = self.norms[0]((self.eye(x) + self.places).flatten(2).mT)
            k, v, s = self.k(h), self.v(h), self.start.expand(len(x), -1, -1)
            for _ in range(3):
                share = (k @ self.q(self.norms[1](s)).mT / 32**0.5).softmax(-1) + 1e-8
                s = self.cell(((share / share.sum(1, keepdim=True)).mT @ v).reshape(-1, 32), s.reshape(-1, 32)).view(len(x), 4, 32)
                s = s + self.grow(self.norms[2](s))
            made = self.paint(s.reshape(-1, 32, 1, 1) + self.places).unflatten(0, (len(x), 4))
            return (made[:, :, :3] * made[:, :, 3:].softmax(1)).sum(1)

    net = run(Net())
    forward, optimizer = run.compile(net), torch.optim.Adam(net.parameters(), 1e-3)

    def step(x):
        return descend(optimizer, F.mse_loss(forward(x), x))

    return trained(net, step, [(run(torch.rand(3, 3, 16, 16)),) for _ in range(2)])


class Spike(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return (x > 0).to(x.dtype)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g / (1 + 10 * x.abs()) ** 2


@script("spikes")
def spikes(run):
    """Neurons that fire, whose potentials stay in buffers between calls; slopes of a substitute; rates are kept low."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second, self.decay = nn.Linear(20, 48), nn.Linear(48, 5), nn.Parameter(torch.full((48,), 2.0))
            self.register_buffer("held", torch.zeros(8, 48))

        def forward(self, x):
            held, trace, out, fired = self.held.clone(), x.new_zeros(8, 48), x.new_zeros(8, 5), []
            for t in range(x.shape[0]):
                held = held * self.decay.sigmoid() + self.first(x[t])
                now = Spike.apply(held - 1)
                held, trace = held - now.detach(), 0.8 * trace + now
                out = 0.9 * out + self.second(trace)
                fired.append(now)
            self.held.copy_(held.detach())
            return out, torch.stack(fired).mean((0, 1))

    net = run(Net())
    forward, optimizer = run.compile(net), torch.optim.Adamax(net.parameters(), 1e-2)

    def step(x, y):
        out, rate = forward(x)
        return descend(optimizer, F.cross_entropy(out, y) + (rate - 0.1).square().sum())

    return trained(net, step, [(run((torch.rand(7, 8, 20) < 0.3).float()), torch.randint(5, (8,))) for _ in range(3)])


@script("world-model")
def world_model(run):
    """A recurrent state of classes that are chosen straight through, of noise that is given; symmetric logarithms, two-hot goals, balanced divergences."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.see, self.join, self.cell = nn.Linear(10, 32), nn.Linear(16 + 3, 32), nn.GRUCell(32, 32)
            self.prior, self.after, self.out, self.reward = nn.Linear(32, 16), nn.Linear(64, 16), nn.Linear(48, 10), nn.Linear(48, 21)

        def forward(self, x, action, noise):
            h, z, found = x.new_zeros(x.shape[1], 32), x.new_zeros(x.shape[1], 16), []
            for t in range(len(x)):
                h = self.cell(F.silu(self.join(torch.cat([z, action[t]], 1))), h)
                prior, after = self.prior(h).view(-1, 4, 4), self.after(torch.cat([h, self.see(x[t])], 1)).view(-1, 4, 4)
                p = 0.99 * after.softmax(-1) + 0.01 / 4
                hot = F.one_hot((p.log() + noise[t]).argmax(-1), 4).to(p.dtype)
                z = (hot + p - p.detach()).flatten(1)
                found.append((torch.cat([h, z], 1), prior, after))
            return [torch.stack(each) for each in zip(*found)]

    net = run(Net())
    optimizer = torch.optim.AdamW(net.parameters(), 1e-3)

    def divergence(a, b):
        return (a.softmax(-1) * (a.log_softmax(-1) - b.log_softmax(-1))).sum((-1, -2)).clamp(min=0.1).mean()

    @run.compile
    def loss_of(x, action, noise, reward):
        h, prior, after = net(x, action, noise)
        goal = reward.sign() * reward.abs().log1p()
        bins = torch.linspace(-5, 5, 21, dtype=x.dtype)
        low = (bins <= goal[..., None]).sum(-1).sub(1).clamp(0, 19)
        part = ((goal - bins[low]) / (bins[low + 1] - bins[low])).clamp(0, 1)[..., None]
        two = F.one_hot(low, 21) * (1 - part) + F.one_hot(low + 1, 21) * part
        return (net.out(h) - x.sign() * x.abs().log1p()).square().mean() - (two * net.reward(h).log_softmax(-1)).sum(-1).mean() + divergence(after.detach(), prior) + 0.1 * divergence(after, prior.detach())

    def step(*given):
        return descend(optimizer, loss_of(*given))

    gumbel = lambda: run(-torch.log(-torch.log(torch.rand(6, 5, 4, 4))))
    return trained(net, step, [(run.normal(6, 5, 10), run.normal(6, 5, 3), gumbel(), run.normal(6, 5)) for _ in range(2)])


@script("multistep-sampler")
def multistep_sampler(run):
    """Twelve steps of a solver of second order with two last guesses kept, thresholds by quantiles, inpainting, of a small U-Net in bf16."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.time = nn.Sequential(nn.Linear(16, 64), nn.SiLU(), nn.Linear(64, 64))
            self.enter, self.down, self.mid, self.up, self.leave = nn.Conv2d(3, 32, 3, padding=1), nn.Conv2d(32, 64, 3, 2, 1), nn.Conv2d(64, 64, 3, padding=1), nn.Conv2d(96, 32, 3, padding=1), nn.Conv2d(32, 3, 3, padding=1)
            self.norm, self.attend = nn.GroupNorm(8, 64), nn.MultiheadAttention(64, 4, batch_first=True)

        def forward(self, x, t):
            angle = t[:, None] * torch.exp(-torch.arange(8, dtype=t.dtype))
            e = self.time(torch.cat([angle.sin(), angle.cos()], 1))[:, :, None, None]
            a = F.silu(self.enter(x))
            h = F.silu(self.norm(self.down(a) + e))
            rows = h.flatten(2).mT
            h = self.mid(h + self.attend(rows, rows, rows, need_weights=False)[0].mT.unflatten(2, h.shape[2:]))
            return self.leave(F.silu(self.up(torch.cat([F.interpolate(h, scale_factor=2), a], 1))))

    net = run(Net()).eval()
    level = run(torch.linspace(1, 0.02, 13))

    @run.compile
    def step(x, i, before, known, mask):
        a, b = (level[i] * math.pi / 2).cos(), (level[i] * math.pi / 2).sin()
        c, d = (level[i + 1] * math.pi / 2).cos(), (level[i + 1] * math.pi / 2).sin()
        with run.autocast():
            noise = net(x, level[i].expand(len(x)) * 100)
        guess = (x - b * noise.to(x.dtype)) / a.clamp(min=0.05)
        limit = guess.flatten(1).abs().quantile(0.95, dim=1).clamp(min=1)[:, None, None, None]
        guess = torch.where(mask, known, guess.clamp(-limit, limit) / limit)
        h = (c.clamp(min=0.05) / d).log() - (a.clamp(min=0.05) / b).log()
        mixed = torch.where(i > 0, 1.5 * guess - 0.5 * before, guess)
        return d / b * x - c * (-h).expm1() * mixed, guess

    x, known, mask = run.normal(2, 3, 16, 16), run.normal(2, 3, 16, 16).clamp(-1, 1), torch.rand(2, 1, 16, 16) < 0.3
    now, before, found = x, torch.zeros_like(x), []
    with torch.no_grad():
        for i in range(12):
            now, before = step(now, torch.tensor(i), before, known, mask)
            found.append(now)

    def again():
        with torch.no_grad():
            return step(x, torch.tensor(3), before, known, mask)

    return found[:4], again


@script("adaptive-solver")
def adaptive_solver(run):
    """Steps of Dormand and Prince whose length follows the error, refused steps kept out by where, of a field of a network; gradients of the whole."""
    net = perceptron(run, 4, 32, 32, 4)
    table = [[1 / 5], [3 / 40, 9 / 40], [44 / 45, -56 / 15, 32 / 9], [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729], [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656]]
    fifth, fourth = [35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84, 0], [5179 / 57600, 0, 7571 / 16695, 393 / 640, -92097 / 339200, 187 / 2100, 1 / 40]

    @run.compile
    def loss_of(y, goal):
        t, h = torch.zeros(len(y), 1, dtype=y.dtype), torch.full((len(y), 1), 0.3, dtype=y.dtype)
        for _ in range(4):
            h = torch.minimum(h, 1 - t)
            k = [net(y)]
            for row in table:
                k.append(net(y + h * sum(a * b for a, b in zip(row, k))))
            new = y + h * sum(a * b for a, b in zip(fifth, k) if a)
            k.append(net(new))
            error = (h * sum((a - b) * c for a, b, c in zip(fifth, fourth, k))).norm(dim=1, keepdim=True) / 1e-3
            good = error < 1
            y, t = torch.where(good, new, y), torch.where(good, t + h, t)
            h = h * (0.9 * (error + 1e-6) ** -0.2).clamp(0.3, 3).detach()
        return F.mse_loss(y, goal) + 0 * t.sum()

    optimizer = torch.optim.Adam(net.parameters(), 1e-2)

    def step(*given):
        return descend(optimizer, loss_of(*given))

    return trained(net, step, [(run.normal(12, 4), run.normal(12, 4)) for _ in range(2)])


@script("augmented")
def augmented(run):
    """Views of images by vmap: turned and cropped by grids, colours mixed by matrices, blurred by kernels of each image, cut out, mixed up; then a network in channels last."""
    net = run(nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1), nn.BatchNorm2d(16), nn.Hardswish(), nn.Conv2d(16, 16, 3, 1, 1, groups=16), nn.Conv2d(16, 32, 1), nn.BatchNorm2d(32), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 4))).to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(net.parameters(), 0.05, momentum=0.9, nesterov=True)

    def seen(x, angle, scale, shift, colour, width, box):
        turn = torch.stack([torch.stack([angle.cos() * scale, -angle.sin(), shift[0]]), torch.stack([angle.sin(), angle.cos() * scale, shift[1]])])
        x = F.grid_sample(x[None], F.affine_grid(turn[None], [1, 3, 20, 20], align_corners=False), padding_mode="reflection", align_corners=False)
        x = torch.einsum("ij,bjhw->bihw", torch.eye(3, dtype=x.dtype) + 0.1 * colour, x)
        line = (-(torch.arange(5, dtype=x.dtype) - 2) ** 2 / width).softmax(0)
        x = F.conv2d(F.pad(x, (2, 2, 2, 2), mode="reflect"), (line[:, None] * line).expand(3, 1, 5, 5), groups=3)[0]
        at = torch.arange(20)
        return x * ~(((at - box[0]).abs() < 3)[:, None] & ((at - box[1]).abs() < 3))

    @run.compile
    def loss_of(x, y, share, *draws):
        with torch.no_grad():
            x = vmap(seen)(x, *draws)
            x = share * x + (1 - share) * x.flip(0)
        lines = net(x.contiguous(memory_format=torch.channels_last))
        return share * F.cross_entropy(lines, y) + (1 - share) * F.cross_entropy(lines, y.flip(0))

    def step(*given):
        return descend(optimizer, loss_of(*given))

    def made():
        return run(torch.rand(6, 3, 20, 20)), torch.randint(4, (6,)), run(torch.tensor(0.7)), run.normal(6), run(torch.rand(6)) + 0.5, 0.1 * run.normal(6, 2), run.normal(6, 3, 3), run(torch.rand(6)) + 0.5, torch.randint(20, (6, 2))

    return trained(net, step, [made() for _ in range(2)])
