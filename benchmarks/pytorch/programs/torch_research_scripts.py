"""Further SCRIPTS: representations, agents, graphs and scenes that are learned, as repositories of papers write them."""

import copy
import functools

import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call, vmap
from torch.nn.utils import parametrizations
from torch.utils import checkpoint
from torch_training_scripts import descend, script, state, trained

# Representations.


@script("momentum-contrast")
def momentum_contrast(run):
    """A queue of keys that is written at a place which moves on, and an encoder that follows."""
    class Moco(nn.Module):
        def __init__(self):
            super().__init__()
            make = lambda: nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(32, 16))  # noqa: E731
            self.fast, self.slow = make(), make().requires_grad_(False)
            self.slow.load_state_dict(self.fast.state_dict())
            self.register_buffer("queue", F.normalize(torch.randn(16, 24), dim=0))
            self.register_buffer("place", torch.zeros(1, dtype=torch.long))

        def forward(self, x, y):
            query = F.normalize(self.fast(x), dim=1)
            with torch.no_grad():
                for a, b in zip(self.fast.parameters(), self.slow.parameters()):
                    b.data = b.data * 0.9 + a.data * 0.1
                key = F.normalize(self.slow(y), dim=1)
            near, far = torch.einsum("nc,nc->n", query, key)[:, None], torch.einsum("nc,ck->nk", query, self.queue.clone().detach())
            place = int(self.place)
            self.queue[:, place : place + len(key)] = key.T
            self.place[0] = (place + len(key)) % 24
            return torch.cat([near, far], 1) / 0.2

    net = run(Moco())
    forward, optimizer = run.compile(net), torch.optim.SGD(net.fast.parameters(), 0.05, momentum=0.9, weight_decay=1e-4)

    def step(x, y):
        logits = forward(x, y)
        return descend(optimizer, F.cross_entropy(logits, torch.zeros(len(logits), dtype=torch.long)))

    return trained(net, step, [(run.normal(8, 3, 12, 12), run.normal(8, 3, 12, 12)) for _ in range(4)])


@script("self-distillation")
def self_distillation(run):
    """Teacher and student over crops of two sizes, a centre that is an average, weights with norms."""
    class Vit(nn.Module):
        def __init__(self):
            super().__init__()
            self.patch, self.token, self.place = nn.Conv2d(3, 24, 4, 4), nn.Parameter(torch.randn(1, 1, 24)), nn.Parameter(torch.randn(1, 24, 4, 4))
            self.block = nn.TransformerEncoderLayer(24, 4, 48, 0.0, "gelu", batch_first=True, norm_first=True)
            self.head = nn.Sequential(nn.Linear(24, 24), nn.GELU(), nn.Linear(24, 16))
            self.last = parametrizations.weight_norm(nn.Linear(16, 40, bias=False))

        def forward(self, crops):
            found = []
            for x in crops:
                rows = self.patch(x)
                place = F.interpolate(self.place, size=rows.shape[2:], mode="bicubic", align_corners=False)
                rows = torch.cat([self.token.expand(len(x), -1, -1), (rows + place).flatten(2).transpose(1, 2)], 1)
                found.append(self.last(F.normalize(self.head(self.block(rows)[:, 0]), dim=-1)))
            return torch.cat(found)

    student = run(Vit())
    teacher = copy.deepcopy(student).requires_grad_(False)
    learn, teach, optimizer = run.compile(student), run.compile(teacher), torch.optim.AdamW(student.parameters(), 1e-3)
    centre = run(torch.zeros(1, 40))

    @run.compile
    def loss_of(a, b, centre):
        goal = ((b - centre) / 0.04).softmax(-1).detach().chunk(2)
        lines = (a / 0.1).log_softmax(-1).chunk(4)
        return sum(-(g * line).sum(-1).mean() for i, g in enumerate(goal) for j, line in enumerate(lines) if i != j) / 6

    def step(large, small):
        nonlocal centre
        with torch.no_grad():
            goal = teach(large)
        loss = loss_of(learn(large + small), goal, centre)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            centre = centre * 0.9 + goal.mean(0, keepdim=True) * 0.1
            for a, b in zip(student.parameters(), teacher.parameters()):
                b.mul_(0.9).add_(a, alpha=0.1)
        return loss

    given = [([run.normal(b, 3, 16, 16) for _ in range(2)], [run.normal(b, 3, 8, 8) for _ in range(2)]) for b in (3, 3, 2)]
    results, again = trained(student, step, given)
    return [*results, *state(teacher), centre], again


def keeps_products(context, operation, *_, **__):
    kept = operation in (torch.ops.aten.mm.default, torch.ops.aten.addmm.default)
    return checkpoint.CheckpointPolicy.MUST_SAVE if kept else checkpoint.CheckpointPolicy.PREFER_RECOMPUTE


@script("selective-checkpoints")
def selective_checkpoints(run):
    """Checkpoints by a policy: products are kept, the rest is computed again; layers by a loop and by segments."""
    layers = run(nn.ModuleList(nn.TransformerEncoderLayer(24, 4, 48, 0.0, "gelu", batch_first=True, norm_first=True) for _ in range(3)))
    head = run(nn.Linear(24, 9))
    optimizer = torch.optim.Adam([*layers.parameters(), *head.parameters()], 1e-3, eps=1e-3)
    contexts = functools.partial(checkpoint.create_selective_checkpoint_contexts, keeps_products)

    @run.compile
    def forward(x):
        for layer in layers[:2]:
            x = checkpoint.checkpoint(layer, x, use_reentrant=False, context_fn=contexts)
        return head(checkpoint.checkpoint_sequential(layers[2:], 1, x, use_reentrant=False))

    def step(x, y):
        return descend(optimizer, F.cross_entropy(forward(x).flatten(0, 1), y.flatten(), ignore_index=0, label_smoothing=0.1))

    results, again = trained(layers, step, [(run.normal(2, n, 24), torch.randint(9, (2, n))) for n in (10, 10, 14)])
    return [*results, *state(head)], again


@script("ensemble-members")
def ensemble_members(run):
    """Members by vmap over stacked weights and their buffers, each with its own loss, and what they disagree in."""
    nets = [run(nn.Sequential(nn.Conv1d(3, 8, 3), nn.GroupNorm(2, 8), nn.SiLU(), nn.Flatten(), nn.Linear(48, 4))) for _ in range(4)]
    weights, buffers = torch.func.stack_module_state(nets)
    base = copy.deepcopy(nets[0]).to("meta")
    optimizer = torch.optim.Adam(weights.values(), 1e-2)
    members = lambda x: vmap(lambda w, b: functional_call(base, (w, b), (x,)))(weights, buffers)  # noqa: E731
    forward = run.compile(lambda x: (lambda y: (y, y.softmax(-1).var(0).sum(-1)))(members(x)))

    def step(x, y):
        return descend(optimizer, vmap(F.cross_entropy, in_dims=(0, None))(forward(x)[0], y).sum())

    given = [(run.normal(b, 3, 8), torch.randint(4, (b,))) for b in (10, 10, 7)]
    losses = [step(*each).detach().clone() for each in given]
    with torch.no_grad():
        spread = forward(run.normal(5, 3, 8))[1]
    return [*losses, spread, *(w.detach().clone() for w in weights.values())], lambda: step(*given[0])


# Agents.


def advantages(rewards, values, ends):
    found, last = [], torch.zeros_like(values[0])
    for t in reversed(range(len(rewards))):
        delta = rewards[t] + 0.99 * values[t + 1] * (1 - ends[t]) - values[t]
        last = delta + 0.99 * 0.95 * (1 - ends[t]) * last
        found.insert(0, last)
    return torch.stack(found)


@script("ppo-loop")
def ppo_loop(run):
    """Advantages by a compiled loop, epochs of smaller batches, clipped values, an entropy, a stop by divergence."""
    body, actor, critic = run(nn.Sequential(nn.Linear(6, 32), nn.Tanh())), run(nn.Linear(32, 4)), run(nn.Linear(32, 1))
    nets = nn.ModuleList([body, actor, critic])
    optimizer, judge = torch.optim.Adam(nets.parameters(), 3e-3, eps=1e-5), run.compile(advantages)

    @run.compile
    def loss_of(x, action, old, gain, goal, value):
        h = body(x)
        pick = torch.distributions.Categorical(logits=actor(h))
        line, now = pick.log_prob(action), critic(h).squeeze(-1)
        ratio = (line - old).exp()
        gain = (gain - gain.mean()) / (gain.std() + 1e-8)
        loss = -torch.min(ratio * gain, ratio.clamp(0.8, 1.2) * gain).mean() - 0.01 * pick.entropy().mean()
        clipped = value + (now - value).clamp(-0.2, 0.2)
        return loss + 0.5 * torch.max((now - goal).square(), (clipped - goal).square()).mean(), ((ratio - 1) - (line - old)).mean().detach()

    def step(x, action, rewards, ends):
        with torch.no_grad():
            h = body(x)
            values = critic(h).squeeze(-1)
            old = actor(h[:-1]).log_softmax(-1).gather(-1, action[..., None]).squeeze(-1)
            gain = judge(rewards, values, ends)
        rows = [each.flatten(0, 1) for each in (x[:-1], action, old, gain, gain + values[:-1], values[:-1])]
        total = 0
        for epoch in range(2):
            for pick in torch.arange(len(rows[0])).roll(7 * epoch).split(20):
                loss, apart = loss_of(*(each[pick] for each in rows))
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(nets.parameters(), 0.5)
                optimizer.step()
                total = total + loss.detach()
            if apart > 0.5:
                break
        return total

    given = [(run.normal(13, 4, 6), torch.randint(4, (12, 4)), run.normal(12, 4), run((torch.rand(12, 4) < 0.1).float())) for _ in range(3)]
    return trained(nets, step, given)


@script("double-q")
def double_q(run):
    """A store that is written in a ring, duelling heads, targets of a slower network, priorities and weights of draws."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.value, self.gain = nn.Sequential(nn.Linear(5, 32), nn.ReLU()), nn.Linear(32, 1), nn.Linear(32, 3)

        def forward(self, x):
            h = self.body(x)
            gain = self.gain(h)
            return self.value(h) + gain - gain.mean(1, keepdim=True)

    net = run(Net())
    slow = copy.deepcopy(net).requires_grad_(False)
    optimizer = torch.optim.RMSprop(net.parameters(), 1e-3)
    store = {"x": run(torch.zeros(64, 5)), "then": run(torch.zeros(64, 5)), "action": torch.zeros(64, dtype=torch.long), "reward": run(torch.zeros(64)), "rank": run(torch.ones(64))}

    @run.compile
    def put(store, place, rows):
        for name, value in rows.items():
            store[name].index_copy_(0, place, value)

    @run.compile
    def loss_of(x, then, action, reward, weight):
        now = net(x).gather(1, action[:, None]).squeeze(1)
        with torch.no_grad():
            goal = reward + 0.99 * slow(then).gather(1, net(then).argmax(1, keepdim=True)).squeeze(1)
        apart = now - goal
        return (F.huber_loss(now, goal, reduction="none") * weight).mean(), apart.detach().abs()

    @run.compile
    def follow():
        for a, b in zip(net.parameters(), slow.parameters()):
            b.data.lerp_(a.data, 0.05)

    place = 0

    def step(x, then, action, reward):
        nonlocal place
        put(store, (place + torch.arange(len(x))) % 64, {"x": x, "then": then, "action": action, "reward": reward})
        place += len(x)
        chance = store["rank"] ** 0.6 / (store["rank"] ** 0.6).sum()
        pick = torch.searchsorted(chance.cumsum(0), (torch.arange(16, dtype=chance.dtype) + 0.5) / 16.5)
        weight = (64 * chance[pick]) ** -0.4
        loss, apart = loss_of(store["x"][pick], store["then"][pick], store["action"][pick], store["reward"][pick], weight / weight.max())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        store["rank"][pick] = apart + 1e-3
        follow()
        return loss

    results, again = trained(net, step, [(run.normal(24, 5), run.normal(24, 5), torch.randint(3, (24,)), run.normal(24)) for _ in range(4)])
    return [*results, *state(slow)], again

# Graphs and scenes.


@script("growing-graphs")
def growing_graphs(run):
    """Messages with attention over edges, whose numbers change at each step, and sums of each graph."""
    class Layer(nn.Module):
        def __init__(self, c):
            super().__init__()
            self.key, self.score, self.net, self.norm = nn.Linear(c, c), nn.Linear(2 * c + 3, 4), nn.Sequential(nn.Linear(c, 2 * c), nn.ReLU(), nn.Linear(2 * c, c)), nn.BatchNorm1d(c)

        def forward(self, x, edges, kinds):
            a, b = edges
            score = F.leaky_relu(self.score(torch.cat([x[a], x[b], kinds], -1)), 0.2)
            most = torch.full((len(x), 4), -1e9, dtype=x.dtype).scatter_reduce(0, b[:, None].expand(-1, 4), score, "amax")
            score = (score - most[b]).exp()
            score = score / (torch.zeros_like(most).index_add(0, b, score)[b] + 1e-9)
            sent = (self.key(x)[a].unflatten(1, (4, -1)) * score[..., None]).flatten(1)
            return self.norm(x + self.net(torch.zeros_like(x).index_add_(0, b, sent)))

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.enter, self.layers, self.head = nn.Embedding(9, 16), nn.ModuleList(Layer(16) for _ in range(2)), nn.Linear(32, 2)

        def forward(self, atoms, edges, kinds, graph, count):
            x = self.enter(atoms)
            for layer in self.layers:
                x = layer(x, edges, kinds)
            sums = x.new_zeros(count, 16).index_add_(0, graph, x)
            most = x.new_full((count, 16), -1e9).index_reduce_(0, graph, x, "amax")
            return self.head(torch.cat([sums, most], -1))

    net = run(Net())
    forward, optimizer = run.compile(net, dynamic=True), torch.optim.AdamW(net.parameters(), 1e-3, eps=1e-3)

    def step(atoms, edges, kinds, graph, y):
        return descend(optimizer, F.cross_entropy(forward(atoms, edges, kinds, graph, len(y)), y))

    given = [(torch.randint(9, (n,)), torch.randint(n, (2, e)), run.normal(e, 3), torch.arange(n) * g // n, torch.randint(2, (g,))) for n, e, g in ((40, 120, 4), (37, 99, 5), (52, 170, 4), (23, 61, 3))]
    return trained(net, step, given)


@script("radiance-fields")
def radiance_fields(run):
    """Coarse and fine samples along rays, the second by the inverse of a distribution, and sums of colours behind what is passed."""
    class Field(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second, self.density, self.colour = nn.Linear(27, 32), nn.Linear(59, 32), nn.Linear(32, 1), nn.Sequential(nn.Linear(32 + 15, 16), nn.ReLU(), nn.Linear(16, 3), nn.Sigmoid())

        @staticmethod
        def waves(x, n):
            angles = (x[..., None] * 2.0 ** torch.arange(n, dtype=x.dtype)).flatten(-2)
            return torch.cat([x, angles.sin(), angles.cos()], -1)

        def forward(self, points, way):
            x = self.waves(points, 4)
            h = F.relu(self.second(torch.cat([x, F.relu(self.first(x))], -1)))
            return F.softplus(self.density(h)).squeeze(-1), self.colour(torch.cat([h, self.waves(way, 2)], -1))

    coarse, fine = run(Field()), run(Field())
    nets = nn.ModuleList([coarse, fine])

    def painted(net, start, way, depth):
        density, colour = net(start[:, None] + depth[..., None] * way[:, None], way[:, None].expand(-1, depth.shape[1], -1))
        gaps = torch.cat([depth.diff(dim=-1), torch.full_like(depth[:, :1], 1e10)], -1)
        opaque = 1 - (-density * gaps).exp()
        passed = torch.cumprod(torch.cat([torch.ones_like(opaque[:, :1]), 1 - opaque + 1e-10], -1), -1)[:, :-1]
        weight = opaque * passed
        return (weight[..., None] * colour).sum(1) + 1 - weight.sum(1, keepdim=True), weight

    @run.compile
    def render(start, way, jitter):
        depth = torch.linspace(2, 6, 12, dtype=start.dtype) + jitter * (4 / 12)
        first, weight = painted(coarse, start, way, depth)
        with torch.no_grad():
            chance = weight[:, 1:-1] + 1e-5
            below = F.pad((chance / chance.sum(-1, keepdim=True)).cumsum(-1), (1, 0))
            at = torch.linspace(0.02, 0.98, 16, dtype=start.dtype).expand(len(start), -1).contiguous()
            right = torch.searchsorted(below, at, right=True)
            left, right = (right - 1).clamp(min=0), right.clamp(max=below.shape[-1] - 1)
            middles = (depth[:, 1:] + depth[:, :-1]) / 2
            (a, b), (c, d) = ((each.gather(1, left), each.gather(1, right)) for each in (below, middles))
            span = torch.where(b - a < 1e-5, 1.0, b - a)
            depth = torch.cat([depth, c + (at - a) / span * (d - c)], -1).sort(-1)[0]
        return first, painted(fine, start, way, depth)[0]

    optimizer = torch.optim.Adam(nets.parameters(), 5e-4)

    def step(start, way, jitter, colour):
        return descend(optimizer, sum(F.mse_loss(each, colour) for each in render(start, F.normalize(way, dim=-1), jitter)))

    return trained(nets, step, [(run.normal(n, 3), run.normal(n, 3), run(torch.rand(n, 1)), run(torch.rand(n, 3))) for n in (32, 32, 20)])


@script("signed-distance")
def signed_distance(run):
    """A surface: gradients by points within the loss, and rays that are followed to it by steps of the distance."""
    net = run(nn.Sequential(parametrizations.weight_norm(nn.Linear(3, 32)), nn.Softplus(100), parametrizations.weight_norm(nn.Linear(32, 32)), nn.Softplus(100), nn.Linear(32, 1)))
    optimizer = torch.optim.Adam(net.parameters(), 1e-3, eps=1e-3)
    at = lambda x: net(x).squeeze(-1)  # noqa: E731

    @run.compile
    def loss_of(x, normal, free):
        value, slope = at(x), vmap(torch.func.grad(at))(torch.cat([x, free]))
        flat = (slope.norm(dim=-1) - 1).square().mean()
        return value.abs().mean() + 0.1 * flat + (1 - F.cosine_similarity(slope[: len(x)], normal, dim=-1)).mean() + 0.1 * (-100 * at(free).abs()).exp().mean()

    @run.compile
    def trace(start, way):
        gone = torch.zeros_like(start[:, 0])
        for _ in range(6):
            near = at(start + gone[:, None] * way)
            gone = torch.where(near.abs() > 1e-3, gone + near.clamp(-0.5, 0.5), gone)
        return gone

    def step(x, normal, free):
        return descend(optimizer, loss_of(x, F.normalize(normal, dim=-1), free))

    results, again = trained(net, step, [(run.normal(24, 3), run.normal(24, 3), run.normal(12, 3)) for _ in range(3)])
    with torch.no_grad():
        return [*results, trace(run.normal(20, 3), F.normalize(run.normal(20, 3), dim=-1))], again


@script("sampled-points")
def sampled_points(run):
    """Points that are furthest from those chosen, balls around them, and networks of neighbours."""
    class Layer(nn.Module):
        def __init__(self, a, b, count, radius):
            super().__init__()
            self.net, self.count, self.radius = nn.Sequential(nn.Conv2d(a + 3, b, 1, bias=False), nn.BatchNorm2d(b), nn.ReLU(), nn.Conv2d(b, b, 1)), count, radius

        def forward(self, points, x):
            batch = torch.arange(len(points))
            with torch.no_grad():
                apart, last, chosen = points.new_full(points.shape[:2], 1e10), torch.zeros(len(points), dtype=torch.long), []
                for _ in range(self.count):
                    chosen.append(last)
                    apart = torch.minimum(apart, (points - points[batch, last][:, None]).square().sum(-1))
                    last = apart.argmax(-1)
                chosen = torch.stack(chosen, 1)
                centres = points[batch[:, None], chosen]
                apart = torch.cdist(centres, points)
                near = torch.arange(points.shape[1]).expand(apart.shape).masked_fill(apart > self.radius, points.shape[1]).sort(-1)[0][..., :6]
                near = torch.where(near == points.shape[1], near[..., :1], near)
            every = batch[:, None, None]
            rows = torch.cat([points[every, near] - centres[:, :, None], x[every, near]], -1).permute(0, 3, 1, 2)
            return centres, self.net(rows).amax(-1).transpose(1, 2)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second, self.head = Layer(3, 12, 10, 1.0), Layer(12, 16, 4, 2.0), nn.Linear(16, 5)

        def forward(self, points):
            return self.head(self.second(*self.first(points, points))[1].mean(1))

    net = run(Net())
    forward, optimizer = run.compile(net), torch.optim.Adam(net.parameters(), 1e-3, eps=1e-3)

    def step(points, y):
        return descend(optimizer, F.cross_entropy(forward(points), y))

    return trained(net, step, [(run.normal(b, n, 3), torch.randint(5, (b,))) for b, n in ((4, 40), (4, 40), (3, 56))])


@script("optical-flow")
def optical_flow(run):
    """Correlations of all pairs at scales, looked up around a flow that is refined by a recurrent step, and enlarged by weights."""
    class Raft(nn.Module):
        def __init__(self):
            super().__init__()
            self.enter = nn.Sequential(nn.Conv2d(3, 16, 4, 4), nn.InstanceNorm2d(16), nn.ReLU(), nn.Conv2d(16, 16, 3, padding=1))
            self.gates, self.fresh = nn.Conv2d(16 + 20, 32, 3, padding=1), nn.Conv2d(16 + 20, 16, 3, padding=1)
            self.flow, self.mask = nn.Conv2d(16, 2, 3, padding=1), nn.Conv2d(16, 16 * 9, 1)

        def forward(self, a, b):
            (p, q), n = self.enter(torch.cat([a, b])).chunk(2), len(a)
            h, w = p.shape[2:]
            scales = [torch.einsum("ncp,ncq->npq", p.flatten(2), q.flatten(2)).div(4).view(n * h * w, 1, h, w)]
            scales.append(F.avg_pool2d(scales[0], 2))
            line = torch.arange(3, dtype=a.dtype) - 1
            around = torch.stack(torch.meshgrid(line, line, indexing="ij"), -1).view(1, 3, 3, 2)
            grid = torch.stack(torch.meshgrid(torch.arange(w, dtype=a.dtype), torch.arange(h, dtype=a.dtype), indexing="xy"))[None]
            flow, state, found = torch.zeros(n, 2, h, w, dtype=a.dtype), p.tanh(), []
            for _ in range(3):
                flow, seen = flow.detach(), []
                place = (grid + flow).permute(0, 2, 3, 1).reshape(-1, 1, 1, 2)
                for i, scale in enumerate(scales):
                    size = torch.tensor([scale.shape[3] - 1, scale.shape[2] - 1], dtype=a.dtype)
                    seen.append(F.grid_sample(scale, 2 * (place / 2**i + around) / size - 1, align_corners=True).view(n, h, w, 9).permute(0, 3, 1, 2))
                x = torch.cat([*seen, flow], 1)
                update, reset = self.gates(torch.cat([state, x], 1)).sigmoid().chunk(2, 1)
                state = (1 - update) * state + update * self.fresh(torch.cat([reset * state, x], 1)).tanh()
                flow = flow + self.flow(state)
                mask = self.mask(state).view(n, 1, 9, 4, 4, h, w).softmax(2)
                windows = F.unfold(4 * flow, 3, padding=1).view(n, 2, 9, 1, 1, h, w)
                found.append((mask * windows).sum(2).permute(0, 1, 4, 2, 5, 3).reshape(n, 2, 4 * h, 4 * w))
            return found

    net = run(Raft())
    forward, optimizer = run.compile(net), torch.optim.AdamW(net.parameters(), 1e-3, eps=1e-3)

    def step(a, b, flow):
        return descend(optimizer, sum(0.8 ** (2 - i) * (each - flow).abs().mean() for i, each in enumerate(forward(a, b))))

    return trained(net, step, [(run.normal(n, 3, h, w), run.normal(n, 3, h, w), run.normal(n, 2, h, w)) for n, h, w in ((2, 24, 32), (2, 24, 32), (1, 32, 32))])
