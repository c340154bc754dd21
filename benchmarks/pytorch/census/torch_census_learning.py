"""Programs that learn: generative models, policies, recommendations, losses and optimisers, by hand."""

import math

import torch
import torch.nn.functional as F
from torch import distributions, nn

from torch_census_kinds import BATCHES, function, program, program_of


@program("vae-losses", (32,))
class Vae(nn.Module):
    """The latent at its mean, so that nothing is drawn; divergences of several families."""

    def __init__(self):
        super().__init__()
        self.encode, self.decode = nn.Linear(32, 12), nn.Linear(6, 32)

    def forward(self, x):
        mean, spread = self.encode(x).chunk(2, -1)
        normal = distributions.Normal(mean, F.softplus(spread) + 1e-3)
        gamma = distributions.Gamma(F.softplus(mean) + 0.5, F.softplus(spread) + 0.5)
        beta = distributions.Beta(F.softplus(mean) + 0.5, F.softplus(spread) + 0.5)
        prior = distributions.Beta(torch.ones_like(mean), torch.ones_like(mean))
        return (distributions.kl_divergence(normal, distributions.Normal(0.0, 1.0)).sum(-1), self.decode(mean),
                gamma.entropy().sum(-1), distributions.kl_divergence(beta, prior).sum(-1))


@program("vae-dirichlet", (16,))
class DirichletVae(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode, self.decode = nn.Linear(16, 5), nn.Linear(5, 16)

    def forward(self, x):
        a = distributions.Dirichlet(F.softplus(self.encode(x)) + 0.3)
        b = distributions.Dirichlet(torch.full((5,), 0.7, dtype=x.dtype, device=x.device))
        return self.decode(a.mean).log_softmax(-1), distributions.kl_divergence(a, b.expand(x.shape[:1])), a.entropy()


@program("vq-vae", (6, 8))
class Quantised(nn.Module):
    def __init__(self):
        super().__init__()
        self.codes, self.net = nn.Embedding(16, 8), nn.Linear(8, 8)

    def forward(self, x):
        z = self.net(x)
        index = torch.cdist(z.flatten(0, 1), self.codes.weight).argmin(-1).view(z.shape[:-1])
        q = self.codes(index)
        loss = F.mse_loss(q.detach(), z) + F.mse_loss(q, z.detach())
        share = F.one_hot(index, 16).to(x.dtype).mean((0, 1))
        return z + (q - z).detach(), loss, torch.exp(-(share * (share + 1e-10).log()).sum())


@program("finite-scalar", (6, 4))
class FiniteScalar(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(4, 4)

    def forward(self, x):
        levels = torch.tensor([8, 5, 5, 3], device=x.device)
        half = (levels - 1).to(x.dtype) * 0.999 / 2
        z = self.net(x).tanh() * half
        q = z + (z.round() - z).detach()
        return q / (levels // 2), ((q.detach().round() + levels // 2).long() * torch.tensor([1, 8, 40, 200], device=x.device)).sum(-1)


class Block(nn.Module):
    def __init__(self, a, b, time):
        super().__init__()
        self.norm1, self.conv1 = nn.GroupNorm(4, a), nn.Conv2d(a, b, 3, padding=1)
        self.norm2, self.conv2 = nn.GroupNorm(4, b), nn.Conv2d(b, b, 3, padding=1)
        self.time, self.skip = nn.Linear(time, 2 * b), nn.Conv2d(a, b, 1)

    def forward(self, x, t):
        h = self.conv1(F.silu(self.norm1(x)))
        scale, shift = self.time(F.silu(t))[..., None, None].chunk(2, 1)
        return self.skip(x) + self.conv2(F.silu(self.norm2(h) * (1 + scale) + shift))


@program_of("diffusion-step", lambda v: (torch.randn(BATCHES[v], 3, 16, 16), torch.randint(0, 100, (BATCHES[v], ))))
class Diffusion(nn.Module):
    """A small U-Net with embedded times, and one step of sampling without noise."""

    def __init__(self):
        super().__init__()
        self.register_buffer("kept", torch.cumprod(1 - torch.linspace(1e-4, 0.02, 100), 0))
        self.first, self.last = nn.Conv2d(3, 16, 3, padding=1), nn.Conv2d(16, 3, 3, padding=1)
        self.down, self.middle, self.up = Block(16, 32, 32), Block(32, 32, 32), Block(48, 16, 32)
        self.attend, self.norm = nn.MultiheadAttention(32, 4, batch_first=True), nn.LayerNorm(32)

    def forward(self, x, t):
        freqs = torch.exp(-math.log(1e4) * torch.arange(16, device=x.device, dtype=x.dtype) / 16)
        e = torch.cat([(t[:, None] * freqs).sin(), (t[:, None] * freqs).cos()], -1)
        a = self.first(x)
        h = self.middle(self.down(F.avg_pool2d(a, 2), e), e)
        rows = self.norm(h.flatten(2).transpose(1, 2))
        h = h + self.attend(rows, rows, rows, need_weights=False)[0].transpose(1, 2).view_as(h)
        noise = self.last(self.up(torch.cat([F.interpolate(h, scale_factor=2.0), a], 1), e))
        k = self.kept[t][:, None, None, None]
        before = self.kept[(t - 10).clamp(min=0)][:, None, None, None]
        start = ((x - (1 - k).sqrt() * noise) / k.sqrt()).clamp(-1, 1)
        return before.sqrt() * start + (1 - before).sqrt() * noise


@program("style-layer", (8, 6, 6), (10,))
class Style(nn.Module):
    """Filters of its own for each image, as groups."""

    def __init__(self):
        super().__init__()
        self.weight, self.map = nn.Parameter(torch.randn(12, 8, 3, 3)), nn.Linear(10, 8)
        self.register_buffer("blur", torch.tensor([1.0, 3.0, 3.0, 1.0]).outer(torch.tensor([1.0, 3.0, 3.0, 1.0])) / 64)

    def forward(self, x, style):
        n = x.shape[0]
        w = self.weight * (self.map(style) + 1)[:, None, :, None, None]
        w = w * w.square().sum((2, 3, 4), keepdim=True).add(1e-8).rsqrt()
        y = F.conv2d(x.reshape(1, n * 8, 6, 6), w.reshape(n * 12, 8, 3, 3), padding=1, groups=n).view(n, 12, 6, 6)
        y = F.conv2d(F.pad(y, (2, 1, 2, 1)), self.blur.to(x.dtype).expand(12, 1, 4, 4), groups=12)
        return F.leaky_relu(y, 0.2) * 2**0.5


@program("gan-critic", (3, 16, 16))
class Critic(nn.Module):
    """With spectral norms, and a penalty of the gradient by its input."""

    def __init__(self):
        super().__init__()
        norm = nn.utils.parametrizations.spectral_norm
        self.net = nn.Sequential(norm(nn.Conv2d(3, 8, 4, 2, 1)), nn.LeakyReLU(0.2), norm(nn.Conv2d(8, 16, 4, 2, 1)), nn.LeakyReLU(0.2),
                                 nn.Flatten(), norm(nn.Linear(256, 1)))  # fmt: skip

    def forward(self, x):
        return F.relu(1 - self.net(x)).mean() + F.softplus(self.net(x.flip(3))).mean()


@program("gradient-penalty", (12,))
class Penalty(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(12, 16), nn.SiLU(), nn.Linear(16, 1))

    def forward(self, x):
        slope = torch.func.grad(lambda y: self.net(y).sum())(x)
        return self.net(x).mean() + 10 * (slope.norm(dim=-1) - 1).square().mean()


@program_of("ppo", lambda v: (torch.randn(8, BATCHES[v], 4), torch.randint(0, 5, (8, BATCHES[v])), torch.randn(8, BATCHES[v])))
class Ppo(nn.Module):
    """Generalised advantages by a loop backward in time."""

    def __init__(self):
        super().__init__()
        self.body, self.policy, self.value = nn.Sequential(nn.Linear(4, 32), nn.Tanh()), nn.Linear(32, 5), nn.Linear(32, 1)

    def forward(self, states, actions, rewards):
        h = self.body(states)
        spread, values = distributions.Categorical(logits=self.policy(h)), self.value(h).squeeze(-1)
        advantage, kept = [], torch.zeros_like(rewards[0])
        for t in range(7, -1, -1):
            after = values[t + 1] if t < 7 else torch.zeros_like(kept)
            kept = rewards[t] + 0.99 * after.detach() - values[t].detach() + 0.99 * 0.95 * kept
            advantage.append(kept)
        advantage = torch.stack(advantage[::-1])
        advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
        ratio = (spread.log_prob(actions) - spread.log_prob(actions).detach()).exp()
        return (-torch.min(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage).mean() - 0.01 * spread.entropy().mean(), values)


@program("sac-policy", (6,), (3,))
class Sac(nn.Module):
    """A squashed normal whose noise is given, and two critics."""

    def __init__(self):
        super().__init__()
        self.actor, self.critics = nn.Linear(6, 6), nn.ModuleList(nn.Linear(9, 1) for _ in range(2))

    def forward(self, state, noise):
        mean, spread = self.actor(state).chunk(2, -1)
        base = distributions.Normal(mean, spread.clamp(-5, 2).exp())
        raw = mean + base.scale * noise
        action = raw.tanh()
        chance = (base.log_prob(raw) - 2 * (math.log(2) - raw - F.softplus(-2 * raw))).sum(-1)
        values = torch.stack([critic(torch.cat([state, action], -1)) for critic in self.critics])
        return (0.2 * chance - values.amin(0).squeeze(-1)).mean(), action


@program("policies", (6,), (2,))
class Policies(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(6, 8)

    def forward(self, x, action):
        a, b = (F.softplus(self.net(x)) + 1).view(-1, 2, 4)[..., :2].unbind(1)
        unit = action.sigmoid() * 0.98 + 0.01
        beta = distributions.Beta(a, b)
        cauchy, student = distributions.Cauchy(a, b), distributions.StudentT(a + 1, b, a)
        counts = (action.abs() * 3).floor()
        return (beta.log_prob(unit).sum(-1), beta.entropy(), cauchy.log_prob(action), student.log_prob(action),
                distributions.Poisson(a).log_prob(counts), distributions.NegativeBinomial(a, logits=b).log_prob(counts),
                distributions.Laplace(a, b).log_prob(action), distributions.LogNormal(a, b).log_prob(unit),
                distributions.Gumbel(a, b).log_prob(action), distributions.Weibull(a, b).log_prob(unit),
                distributions.VonMises(action, a).log_prob(action * 0.9), distributions.Binomial(9, logits=a).log_prob(counts))


@program("mixture-density", (4,), (3,))
class MixtureDensity(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(4, 5 + 2 * 15)

    def forward(self, x, y):
        h = self.net(x)
        each = distributions.Independent(
            distributions.Normal(h[:, 5:20].view(-1, 5, 3), F.softplus(h[:, 20:]).view(-1, 5, 3) + 1e-2), 1)
        return -distributions.MixtureSameFamily(distributions.Categorical(logits=h[:, :5]), each).log_prob(y)


def click(v):
    return torch.randint(0, 50, (BATCHES[v], 6)), torch.randn(BATCHES[v], 4), torch.randint(0, 50, (BATCHES[v], 9))


@program_of("deep-fm", click)
class DeepFm(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.linear = nn.Embedding(300, 8), nn.Embedding(300, 1)
        self.deep = nn.Sequential(nn.Linear(52, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, ids, dense, history):
        ids = ids + torch.arange(6, device=ids.device) * 50
        e = self.table(ids)
        pairs = 0.5 * (e.sum(1).square() - e.square().sum(1)).sum(1, keepdim=True)
        return torch.sigmoid(self.linear(ids).sum(1) + pairs + self.deep(torch.cat([e.flatten(1), dense], 1)))


@program_of("interest", click)
class Interest(nn.Module):
    """Attention of a target over a history with padding, and crosses of features."""

    def __init__(self):
        super().__init__()
        self.table, self.score = nn.Embedding(50, 8, padding_idx=0), nn.Sequential(nn.Linear(32, 16), nn.PReLU(), nn.Linear(16, 1))
        self.cross, self.out = nn.ModuleList(nn.Linear(12, 12) for _ in range(2)), nn.Linear(12, 1)

    def forward(self, ids, dense, history):
        target, past = self.table(ids[:, 0])[:, None], self.table(history)
        both = torch.cat([target.expand_as(past), past, target - past, target * past], -1)
        weight = self.score(both).masked_fill((history == 0)[..., None], -1e9).softmax(1)
        first = x = torch.cat([(weight * past).sum(1), dense], -1)
        for layer in self.cross:
            x = first * layer(x) + x
        return self.out(x).sigmoid()


@program_of("bags-weighted", lambda v: (torch.randint(0, 40, (12,)), torch.tensor([0, 3, 3, 9]), torch.randn(12)))
class WeightedBags(nn.Module):
    def __init__(self):
        super().__init__()
        self.sums, self.most = nn.EmbeddingBag(40, 8, mode="sum"), nn.EmbeddingBag(40, 8, mode="max")

    def forward(self, ids, starts, weights):
        return self.sums(ids, starts, weights), self.most(ids, starts), self.most(ids.view(4, 3))


@program("two-towers", (10,), (12,))
class Towers(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.scale = nn.Linear(10, 8), nn.Linear(12, 8), nn.Parameter(torch.tensor(2.0))

    def forward(self, x, y):
        logits = F.normalize(self.a(x), dim=-1) @ F.normalize(self.b(y), dim=-1).T * self.scale.exp()
        goal = torch.arange(x.shape[0], device=x.device)
        return F.cross_entropy(logits, goal) + F.cross_entropy(logits.T, goal), -F.logsigmoid(
            logits * (2 * torch.eye(len(goal), device=x.device) - 1)).mean()


@program("self-supervised", (10,), (10,))
class SelfSupervised(nn.Module):
    """NT-Xent, Barlow twins, VICReg, and a moving average as teacher."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(10, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 8))
        self.register_buffer("center", torch.zeros(8))

    def forward(self, x, y):
        a, b = self.net(x), self.net(y)
        both = F.normalize(torch.cat([a, b]), dim=-1)
        near = (both @ both.T / 0.1).masked_fill(torch.eye(len(both), device=x.device, dtype=torch.bool), -1e9)
        goal = torch.arange(len(both), device=x.device).roll(len(a))
        c = ((a - a.mean(0)) / (a.std(0) + 1e-5)).T @ ((b - b.mean(0)) / (b.std(0) + 1e-5)) / len(a)
        off = c.flatten()[:-1].view(7, 9)[:, 1:].square().sum()
        spread = F.relu(1 - a.var(0).add(1e-4).sqrt()).mean()
        teacher = ((b - self.center) / 0.04).softmax(-1).detach()
        self.center.lerp_(b.detach().mean(0), 0.1)
        return (F.cross_entropy(near, goal), (c.diagonal() - 1).square().sum() + 0.005 * off, spread,
                -(teacher * a.log_softmax(-1)).sum(-1).mean())


@program_of("margin-losses", lambda v: (torch.randn(BATCHES[v], 12), torch.randint(0, 7, (BATCHES[v], ))))
class Margins(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight, self.centers = nn.Parameter(torch.randn(7, 12)), nn.Parameter(torch.randn(7, 12))

    def forward(self, x, goal):
        cosine = F.linear(F.normalize(x), F.normalize(self.weight)).clamp(-1 + 1e-6, 1 - 1e-6)
        arc = torch.where(F.one_hot(goal, 7).bool(), torch.cos(cosine.acos() + 0.5), cosine) * 16
        distance = torch.cdist(x, self.centers).square()
        chance = cosine.log_softmax(-1).gather(1, goal[:, None])
        focal = -((1 - chance.exp()) ** 2 * chance).mean()
        return (F.cross_entropy(arc, goal), distance.gather(1, goal[:, None]).mean(), focal, F.multilabel_soft_margin_loss(
            cosine, F.one_hot(goal, 7).to(x.dtype)), F.multi_margin_loss(cosine, goal, p=2), F.margin_ranking_loss(
                cosine[:, 0], cosine[:, 1], torch.ones_like(x[:, 0]), 0.2), F.multilabel_margin_loss(cosine, torch.full_like(
                    cosine, -1).long().index_fill(1, torch.tensor([0], device=x.device), 3)))


@program_of("preferences", lambda v: (torch.randint(0, 40, (2, BATCHES[v], 9)), torch.randn(BATCHES[v], 4)))
class Preferences(nn.Module):
    """Losses over sequences of tokens that were preferred or rewarded."""

    def __init__(self):
        super().__init__()
        self.table, self.head = nn.Embedding(40, 16), nn.Linear(16, 40)

    def forward(self, ids, rewards):
        chance = self.head(self.table(ids[..., :-1])).log_softmax(-1).gather(-1, ids[..., 1:, None]).squeeze(-1)
        mask = (ids[..., 1:] != 0).to(chance.dtype)
        good, bad = (chance * mask).sum(-1) / mask.sum(-1)
        group = (rewards - rewards.mean(1, keepdim=True)) / (rewards.std(1, keepdim=True) + 1e-4)
        kl = (good.detach() - good).exp() - (good.detach() - good) - 1
        return -F.logsigmoid(0.1 * (good - bad)).mean(), (-(good.exp()[:, None] * group).mean() + 0.04 * kl.mean()), torch.logsumexp(
            chance, -1)


@program("distil", (12,), (12,))
class Distil(nn.Module):
    def __init__(self):
        super().__init__()
        self.student, self.teacher = nn.Linear(12, 9), nn.Linear(12, 9)

    def forward(self, x, y):
        with torch.no_grad():
            wanted = (self.teacher(x) / 2).softmax(-1)
        got = (self.student(x) / 2).log_softmax(-1)
        mixed = 0.5 * (wanted + got.exp())
        jensen = 0.5 * (F.kl_div(mixed.log(), wanted, reduction="batchmean") + F.kl_div(mixed.log(), got, reduction="batchmean",
                                                                                        log_target=True))
        near = F.cosine_embedding_loss(x, y, torch.ones(x.shape[0], device=x.device))
        return F.kl_div(got, wanted, reduction="batchmean") * 4, jensen, near, torch.special.entr(wanted).sum(-1)


class Stepped(nn.Module):
    """A network whose step of training is inside of the graph: gradients by torch.func, and a rule that writes its buffers."""

    def __init__(self, rule):
        super().__init__()
        self.rule, self.net = rule, nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.Linear(12, 1))
        self.anchor = nn.Parameter(torch.zeros(()))
        for i, p in enumerate(self.net.parameters()):
            self.register_buffer(f"m{i}", torch.zeros_like(p))
            self.register_buffer(f"v{i}", torch.full_like(p, 0.1))

    def forward(self, x):
        parameters = {name: p.detach() for name, p in self.net.named_parameters()}
        loss = lambda given: torch.func.functional_call(self.net, given, (x,)).square().mean()
        gradients, value = torch.func.grad_and_value(loss)(parameters)
        state = [(getattr(self, f"m{i}"), getattr(self, f"v{i}")) for i in range(len(parameters))]
        return [self.rule(p, g, m, v) + self.anchor for (p, g, (m, v)) in zip(parameters.values(), gradients.values(), state)], value


def adam(p, g, m, v):
    m.lerp_(g, 0.1)
    v.mul_(0.999).addcmul_(g, g, value=0.001)
    return p * (1 - 1e-3) - 1e-2 * (m / 0.1) / ((v / 0.001).sqrt() + 1e-8)


def lion(p, g, m, v):
    update = (m * 0.9 + g * 0.1).sign()
    m.lerp_(g, 0.01)
    return p - 1e-3 * update


def muon(p, g, m, v):
    m.mul_(0.95).add_(g)
    if p.dim() != 2:
        return p - 0.01 * m
    x = m / (m.norm() + 1e-7)
    for _ in range(3):
        a = x @ x.T
        x = 3.4445 * x + (-4.775 * a + 2.0315 * a @ a) @ x
    return p - 0.02 * max(1, p.shape[0] / p.shape[1])**0.5 * x


def adafactor(p, g, m, v):
    if p.dim() != 2:
        return p - 1e-2 * g / (g.square().mean().sqrt() + 1e-3)
    square = g.square() + 1e-30
    rows, columns = square.mean(-1, keepdim=True), square.mean(-2, keepdim=True)
    update = g * (rows / rows.mean(-2, keepdim=True)).rsqrt() * columns.rsqrt()
    return p - 1e-2 * update / update.square().mean().sqrt().clamp(min=1.0)


for rule in (adam, lion, muon, adafactor):
    program(f"step-{rule.__name__}", (6,))(lambda rule=rule: Stepped(rule))


@program("foreach", (6,))
class Foreach(nn.Module):
    """What torch's optimisers are made of."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Parameter(torch.randn(6)), nn.Parameter(torch.randn(6, 6))
        self.register_buffer("m", torch.zeros(6))
        self.register_buffer("n", torch.zeros(6, 6))

    def forward(self, x):
        states, given = [self.m, self.n], [x.detach().mean(0), x.detach().T @ x.detach()]
        torch._foreach_lerp_(states, given, 0.1)
        torch._foreach_mul_(states, 0.9)
        torch._foreach_addcmul_(states, given, given, 0.1)
        size = torch.stack(torch._foreach_norm(given)).norm()
        root = torch._foreach_add(torch._foreach_sqrt(torch._foreach_abs(states)), 1e-8)
        return [p - 0.1 * u / (size + 1) for p, u in zip((self.a, self.b), torch._foreach_div(states, root))]


@function("fake-quantise", (6, 8))
def fake_quantise(x):
    scale = (x.detach().abs().amax((0, 1)) / 127).float()
    zero = torch.zeros_like(scale, dtype=torch.int32)
    return (torch.fake_quantize_per_tensor_affine(x, 0.05, 3, 0, 255),
            torch.fake_quantize_per_channel_affine(x, scale, zero, 2, -128, 127))


@program("quantised-linear", (16,))
class Int8(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("packed", torch.randint(0, 256, (12, 8), dtype=torch.uint8))
        self.scale, self.weight = nn.Parameter(torch.rand(12, 1) * 0.1), nn.Parameter(torch.randn(12, 16))

    def forward(self, x):
        nibbles = torch.stack([self.packed & 15, self.packed >> 4], -1).flatten(1)
        low = self.weight.abs().mean()
        ternary = self.weight + ((self.weight / low).round().clamp(-1, 1) * low - self.weight).detach()
        return F.linear(x, (nibbles.to(x.dtype) - 8) * self.scale), F.linear(x, ternary)


@program("lora", (16,))
class Lora(nn.Module):
    """Low ranks, weights by direction and length, and networks that make weights."""

    def __init__(self):
        super().__init__()
        self.base, self.a, self.b = nn.Linear(16, 12), nn.Parameter(torch.randn(4, 16) * 0.1), nn.Parameter(torch.randn(12, 4) * 0.1)
        self.length, self.hyper = nn.Parameter(torch.rand(12)), nn.Linear(16, 16 * 3)

    def forward(self, x):
        w = self.base.weight.detach() + self.b @ self.a
        w = self.length[:, None] * w / w.norm(dim=1, keepdim=True)
        own = self.hyper(x).view(-1, 3, 16)
        return F.linear(x, w, self.base.bias), torch.bmm(own, x[:, :, None]).squeeze(-1)
