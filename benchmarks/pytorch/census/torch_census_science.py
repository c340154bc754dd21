"""Models of flows, graphs, policies, scenes and equations, by hand."""

import torch
import torch.nn.functional as F
from torch import nn

from torch_census_kinds import BATCHES, program, program_of


@program("real-nvp", (6,))
class Flow(nn.Module):
    def __init__(self):
        super().__init__()
        self.nets = nn.ModuleList(nn.Sequential(nn.Linear(3, 32), nn.Tanh(), nn.Linear(32, 6)) for _ in range(4))

    def forward(self, x):
        total = x.new_zeros(x.shape[0])
        for i, net in enumerate(self.nets):
            a, b = x.chunk(2, 1) if i % 2 == 0 else x.flip(1).chunk(2, 1)
            s, t = net(a).chunk(2, 1)
            s = s.tanh()
            x = torch.cat([a, b * s.exp() + t], 1)
            total = total + s.sum(1)
        return torch.distributions.Normal(0.0, 1.0).log_prob(x).sum(1) + total


@program("glow-1x1", (4, 8, 8))
class Invertible(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.linalg.qr(torch.randn(4, 4))[0])

    def forward(self, x):
        return F.conv2d(x, self.weight[:, :, None, None]), torch.linalg.slogdet(self.weight)[1] * 64


def graph(v):
    n, e = ((20, 60), (30, 80), (40, 100))[v]
    return torch.randn(n, 16), torch.randint(0, n, (2, e))


@program_of("gnn-mean", graph)
class Mean(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(16, 32), nn.Linear(32, 7)

    def gather(self, x, edges):
        source, target = edges
        total = torch.zeros_like(x).index_add(0, target, x[source])
        count = torch.zeros(x.shape[0], dtype=x.dtype, device=x.device).scatter_add_(0, target, torch.ones_like(target, dtype=x.dtype))
        return total / count.clamp(min=1)[:, None]

    def forward(self, x, edges):
        return self.b(self.gather(self.a(x).relu(), edges))


@program_of("gnn-attention", graph)
class GraphAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.a = nn.Linear(16, 32), nn.Linear(64, 1)

    def forward(self, x, edges):
        source, target = edges
        h = self.linear(x)
        score = F.leaky_relu(self.a(torch.cat([h[source], h[target]], 1)), 0.2).squeeze(1)
        most = torch.full((x.shape[0],), -1e9, dtype=x.dtype, device=x.device).scatter_reduce(0, target, score, "amax")
        weight = (score - most[target]).exp()
        total = torch.zeros(x.shape[0], dtype=x.dtype, device=x.device).index_add_(0, target, weight)
        return torch.zeros_like(h).index_add(0, target, h[source] * (weight / (total[target] + 1e-9))[:, None])


@program_of("gnn-max", graph)
class EdgeMax(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 16))

    def forward(self, x, edges):
        source, target = edges
        messages = self.net(torch.cat([x[target], x[source] - x[target]], 1))
        return torch.zeros_like(x).scatter_reduce(0, target[:, None].expand_as(messages), messages, "amax", include_self=False)


@program("point-net", (32, 3))
class Points(nn.Module):
    def __init__(self):
        super().__init__()
        self.net, self.head = nn.Sequential(nn.Conv1d(6, 32, 1), nn.BatchNorm1d(32), nn.ReLU()), nn.Linear(32, 5)

    def forward(self, x):
        near = torch.cdist(x, x).topk(4, largest=False)[1]
        b = torch.arange(x.shape[0], device=x.device)[:, None, None]
        edges = torch.cat([x[:, :, None].expand(-1, -1, 4, -1), x[b, near] - x[:, :, None]], -1)
        h = self.net(edges.flatten(1, 2).transpose(1, 2)).view(x.shape[0], 32, 32, 4)
        return self.head(h.amax((2, 3)))


@program("rl-policy", (4,), (2,))
class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.mean, self.value = nn.Sequential(nn.Linear(4, 64), nn.Tanh()), nn.Linear(64, 2), nn.Linear(64, 1)
        self.log_deviation = nn.Parameter(torch.zeros(2))

    def forward(self, state, action):
        h = self.body(state)
        spread = torch.distributions.Normal(self.mean(h), self.log_deviation.exp())
        ratio = (spread.log_prob(action).sum(-1) + 2).exp()
        advantage = self.value(h).squeeze(-1)
        return -torch.min(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage).mean() - 0.01 * spread.entropy().mean()


@program_of(
    "rl-dqn", lambda v: (torch.randn(BATCHES[v], 4), torch.randint(0, 3,
                                                                   (BATCHES[v], )), torch.randn(BATCHES[v]), torch.randn(BATCHES[v], 4)))
class Dqn(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 3))

    def forward(self, state, action, reward, after):
        with torch.no_grad():
            goal = reward + 0.99 * self.net(after).max(1)[0]
        return F.smooth_l1_loss(self.net(state).gather(1, action[:, None]).squeeze(1), goal)


@program("rl-categorical", (12, 4))
class Discrete(nn.Module):
    """With discounted sums of rewards and masked actions."""

    def __init__(self):
        super().__init__()
        self.net = nn.Linear(4, 5)

    def forward(self, states):
        logits = self.net(states).masked_fill(torch.arange(5, device=states.device) == 3, float("-inf"))
        spread = torch.distributions.Categorical(logits=logits)
        returns = torch.flip(torch.cumsum(torch.flip(states[..., 0], [1]), 1), [1])
        return -(spread.log_prob(logits.argmax(-1)) * returns).mean(), spread.probs


@program("nerf", (16, 3), (16, 3))
class Nerf(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.head = nn.Linear(39, 64), nn.Linear(64 + 39, 64), nn.Linear(64, 4)

    def forward(self, origin, direction):
        depth = torch.linspace(2.0, 6.0, 8, device=origin.device, dtype=origin.dtype)
        points = origin[..., None, :] + direction[..., None, :] * depth[:, None]
        bands = 2.0 ** torch.arange(6, device=origin.device, dtype=origin.dtype)
        angles = (points[..., None] * bands).flatten(-2)
        e = torch.cat([points, angles.sin(), angles.cos()], -1)
        out = self.head(F.relu(self.b(torch.cat([F.relu(self.a(e)), e], -1))))
        alpha = 1 - torch.exp(-F.relu(out[..., 3]) * 0.5)
        weight = alpha * torch.cumprod(torch.cat([torch.ones_like(alpha[..., :1]), 1 - alpha + 1e-10], -1), -1)[..., :-1]
        return (weight[..., None] * out[..., :3].sigmoid()).sum(-2)


@program("hash-grid", (16, 2))
class HashGrid(nn.Module):
    """Trilinear reads of a table by hashed places."""

    def __init__(self):
        super().__init__()
        self.table, self.head = nn.Embedding(256, 4), nn.Linear(4, 3)

    def forward(self, x):
        x = x.sigmoid() * 15
        low = x.floor()
        part = x - low
        total = 0
        for i in (0, 1):
            for j in (0, 1):
                place = (low + torch.tensor([i, j], device=x.device, dtype=x.dtype)).long()
                number = (place[..., 0] ^ (place[..., 1] * 265443)) % 256
                weight = (part[..., 0] if i else 1 - part[..., 0]) * (part[..., 1] if j else 1 - part[..., 1])
                total = total + self.table(number) * weight[..., None]
        return self.head(total)


@program("siren", (64, 2))
class Siren(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(2, 32), nn.Linear(32, 32), nn.Linear(32, 1)])

    def forward(self, x):
        for layer in self.layers[:-1]:
            x = torch.sin(30 * layer(x))
        return self.layers[-1](x)


@program("physics-loss", (32, 2))
class Physics(nn.Module):
    """The residual of a heat equation: derivatives by torch.func."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))

    def forward(self, x):
        u = lambda p: self.net(p).squeeze(-1)
        first = torch.func.vmap(torch.func.grad(u))(x.flatten(0, 1))
        second = torch.func.vmap(torch.func.hessian(u))(x.flatten(0, 1))
        return (first[:, 0] - 0.1 * second[:, 1, 1]).square().mean()


@program("score-matching", (4,))
class Score(nn.Module):
    """A gradient by the input inside of the model."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 32), nn.SiLU(), nn.Linear(32, 1))

    def forward(self, x):
        jacobian = torch.func.vmap(torch.func.jacrev(torch.func.grad(lambda p: self.net(p).squeeze(-1))))(x)
        return jacobian.diagonal(dim1=1, dim2=2).sum(1).mean()


@program("fourier-operator", (2, 16, 16))
class FourierOperator(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(2, 4, 6, 4, 2) * 0.1)
        self.skip = nn.Conv2d(2, 4, 1)

    def forward(self, x):
        f = torch.fft.rfft2(x)
        w = torch.view_as_complex(self.weight)
        out = torch.zeros(x.shape[0], 4, 16, 9, dtype=f.dtype, device=x.device)
        out[:, :, :6, :4] = torch.einsum("bixy,ioxy->boxy", f[:, :, :6, :4], w)
        return F.gelu(torch.fft.irfft2(out, s=x.shape[-2:]) + self.skip(x))


@program("state-space", (12, 8))
class StateSpace(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.bc, self.dt = nn.Parameter(torch.randn(8, 4)), nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x):
        b, c = self.bc(x).chunk(2, -1)
        dt = F.softplus(self.dt(x))
        h = x.new_zeros(x.shape[0], 8, 4)
        out = []
        for t in range(x.shape[1]):
            h = h * torch.exp(-dt[:, t, :, None] * self.a.exp()) + dt[:, t, :, None] * b[:, t, None] * x[:, t, :, None]
            out.append((h * c[:, t, None]).sum(-1))
        return torch.stack(out, 1)


@program("hyena", (16, 8))
class LongConvolution(nn.Module):
    def __init__(self):
        super().__init__()
        self.filter, self.mix = nn.Parameter(torch.randn(8, 16)), nn.Linear(8, 16)

    def forward(self, x):
        g, v = self.mix(x).chunk(2, -1)
        n = x.shape[1]
        y = torch.fft.irfft(torch.fft.rfft(v.transpose(1, 2), n=2 * n) * torch.fft.rfft(self.filter, n=2 * n), n=2 * n)[..., :n]
        return y.transpose(1, 2) * g


@program("kan", (6,))
class Kan(nn.Module):
    """Splines instead of activations."""

    def __init__(self):
        super().__init__()
        self.register_buffer("knots", torch.linspace(-2, 2, 12))
        self.weight, self.base = nn.Parameter(torch.randn(5, 6, 8) * 0.1), nn.Linear(6, 5)

    def forward(self, x):
        x3 = x[..., None]
        b = ((x3 >= self.knots[:-1]) & (x3 < self.knots[1:])).to(x.dtype)
        for k in range(1, 4):
            b = ((x3 - self.knots[:-(k + 1)]) / (self.knots[k:-1] - self.knots[:-(k + 1)]) * b[..., :-1]
                 + (self.knots[k + 1:] - x3) / (self.knots[k + 1:] - self.knots[1:-k]) * b[..., 1:])
        return torch.einsum("bik,oik->bo", b, self.weight) + self.base(F.silu(x))


@program("deep-equilibrium", (16,))
class Equilibrium(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.given = nn.Linear(16, 16), nn.Linear(16, 16)

    def forward(self, x):
        z = torch.zeros_like(x)
        for _ in range(6):
            z = torch.tanh(0.5 * self.inner(z) + self.given(x))
        return z


@program("neural-ode", (4,))
class Ode(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 4))

    def forward(self, x):
        for _ in range(4):
            a = self.f(x)
            b = self.f(x + 0.05 * a)
            c = self.f(x + 0.05 * b)
            d = self.f(x + 0.1 * c)
            x = x + 0.1 / 6 * (a + 2 * b + 2 * c + d)
        return x


@program("conv3d", (2, 6, 8, 8))
class Volume(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Conv3d(2, 8, 3, padding=1), nn.BatchNorm3d(8), nn.ReLU(), nn.MaxPool3d(2),
                                 nn.ConvTranspose3d(8, 4, 2, 2), nn.AdaptiveAvgPool3d(2))

    def forward(self, x):
        return self.net(x), F.interpolate(x, scale_factor=2, mode="trilinear")


@program("tcn", (4, 32))
class Temporal(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(
            nn.utils.parametrizations.weight_norm(nn.Conv1d(4 if i == 0 else 16, 16, 3, dilation=2**i)) for i in range(3))
        self.head = nn.Linear(16, 2)

    def forward(self, x):
        for i, layer in enumerate(self.layers):
            x = F.relu(layer(F.pad(x, (2**(i + 1), 0))))
        return self.head(x[..., -1])


@program("wavenet", (8, 40))
class Wavenet(nn.Module):
    def __init__(self):
        super().__init__()
        self.gates = nn.ModuleList(nn.Conv1d(8, 16, 2, dilation=2**i) for i in range(4))
        self.skips = nn.ModuleList(nn.Conv1d(8, 8, 1) for _ in range(4))

    def forward(self, x):
        total = 0
        for gate, skip in zip(self.gates, self.skips):
            a, b = gate(x).chunk(2, 1)
            h = skip(a.tanh() * b.sigmoid())
            x = x[..., -h.shape[-1]:] + h
            total = h.sum(-1) + total
        return total


@program("capsules", (8, 6))
class Capsules(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(8, 4, 6, 5) * 0.2)

    def forward(self, x):
        votes = torch.einsum("bni,nkio->bnko", x, self.weight)
        logits = votes.new_zeros(votes.shape[:3])
        for _ in range(3):
            s = (logits.softmax(2)[..., None] * votes).sum(1)
            n = s.square().sum(-1, keepdim=True)
            v = n / (1 + n) * s / (n + 1e-8).sqrt()
            logits = logits + (votes * v[:, None]).sum(-1)
        return v.norm(dim=-1)
