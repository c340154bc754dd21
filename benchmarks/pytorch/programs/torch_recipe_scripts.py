"""Further SCRIPTS, whole loops of training: restarts of rates, skipped steps, norms of weights, games, agents, codes, contrasts, learned steps of bytes, adapters by row, experts of
bounded room, evolution, trainers with callbacks, rounds by dropout."""

import copy
import math

import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call, grad, hessian, jvp, linearize, vmap
from torch.nn.utils import parametrizations, parametrize
from torch.optim import lr_scheduler, swa_utils
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler
from torch_training_scripts import descend, perceptron, script, state, trained


@script("restarted-rates")
def restarted_rates(run):
    """Groups of parameters with rates of their own, a warm-up in front of a cosine that begins again, gradients clipped by value, decay without biases, a plateau at the end."""
    net = perceptron(run, 12, 32, 32, 4)
    biases = [p for p in net.parameters() if p.dim() == 1]
    weights = [p for p in net.parameters() if p.dim() > 1]
    optimizer = torch.optim.NAdam([{"params": weights, "weight_decay": 0.05, "lr": 0.02}, {"params": biases, "weight_decay": 0.0}], lr=0.01, decoupled_weight_decay=True)
    warm = lr_scheduler.LinearLR(optimizer, 0.1, total_iters=2)
    schedule = lr_scheduler.SequentialLR(optimizer, [warm, lr_scheduler.CosineAnnealingWarmRestarts(optimizer, 2, 2)], [2])
    plateau = lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=0)

    @run.compile
    def loss_of(x, y):
        return F.cross_entropy(net(x), y, label_smoothing=0.1, weight=torch.linspace(0.5, 1.5, 4, dtype=x.dtype))

    def step(x, y):
        optimizer.zero_grad()
        loss = loss_of(x, y)
        loss.backward()
        nn.utils.clip_grad_value_(net.parameters(), 0.02)
        optimizer.step()
        schedule.step()
        return loss

    results, again = trained(net, step, [(run.normal(16, 12), torch.randint(4, (16,))) for _ in range(7)])
    plateau.step(1.0)
    plateau.step(2.0)
    return [*results, torch.tensor([group["lr"] for group in optimizer.param_groups])], again


@script("skipped-steps")
def skipped_steps(run):
    """Losses that are scaled, one of which overflows, so that its step is left out; gradients unscaled, clipped by their norm together, accumulated over two parts."""
    net = perceptron(run, 8, 24, 3)
    forward = run.compile(net)
    optimizer = torch.optim.AdamW(net.parameters(), 0.01)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10, growth_interval=2)
    losses, norms = [], []

    def step(x, y, spoil=1.0):
        optimizer.zero_grad()
        for part, wanted in zip(x.chunk(2), y.chunk(2)):
            loss = F.smooth_l1_loss(forward(part), wanted, beta=0.5) * spoil / 2
            scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        norms.append(nn.utils.get_total_norm([p.grad for p in net.parameters()]))
        nn.utils.clip_grads_with_norm_(net.parameters(), 0.5, norms[-1])
        scaler.step(optimizer)
        scaler.update()
        return loss

    x, y = run.normal(8, 8), run.normal(8, 3)
    for spoil in (1.0, 1.0, float("inf"), 1.0):
        losses.append(step(x, y, spoil).detach().clone())
    return [*losses, *norms, torch.tensor(scaler.get_scale()), *state(net)], lambda: step(x, y)


@script("normed-weights")
def normed_weights(run):
    """Weights divided by their greatest singular value, by the norm of each row, orthogonal ones; power iteration in training, none in evaluation, then without them."""
    first = parametrizations.spectral_norm(nn.Conv2d(3, 8, 3, padding=1), n_power_iterations=2)
    second = parametrizations.weight_norm(nn.Conv2d(8, 8, 3, stride=2), dim=0)
    third = parametrizations.orthogonal(nn.Linear(8, 8), orthogonal_map="cayley")
    net = run(nn.Sequential(first, nn.LeakyReLU(0.2), second, nn.Tanh(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), third))
    forward, optimizer = run.compile(net), torch.optim.SGD(net.parameters(), 0.1)
    results, again = trained(net, lambda x: descend(optimizer, forward(x).square().mean() + forward(x.flip(-1)).abs().mean()), [(run.normal(2, 3, 12, 12),) for _ in range(3)])
    net.eval()
    x = run.normal(1, 3, 12, 12)
    with torch.no_grad():
        results.append(forward(x))
        for part in (first, second, third):
            parametrize.remove_parametrizations(part, "weight")
        results.append(forward(x))
    return results, again


@script("curves-of-a-loss")
def curves_of_a_loss(run):
    """Products with a Hessian two ways, tangents of many inputs by one linearisation, Hessians of each sample's loss by vmap, gradients of each sample, their signal to noise."""
    net = perceptron(run, 4, 8, 2)
    weights = dict(net.named_parameters())

    def loss(weights, x, y):
        return (functional_call(net, weights, (x,)) - y).square().sum()

    @run.compile
    def f(x, y, direction):
        along = dict(zip(weights, (p * direction for p in weights.values())))
        turned = jvp(lambda w: vmap(grad(loss), (None, 0, 0))(w, x, y), (weights,), (along,))[1]
        each = vmap(grad(loss), (None, 0, 0))(weights, x, y)
        noise = {name: g.mean(0).square() / g.var(0).clamp(min=1e-3) for name, g in each.items()}
        curved = vmap(hessian(lambda x, y: loss(weights, x, y)), (0, 0))(x, y)
        value, push = linearize(lambda x: functional_call(net, weights, (x,)).sin(), x[0])
        return list(turned.values()), list(noise.values()), curved, value, vmap(push)(x[1:])

    x, y = run.normal(6, 4), run.normal(6, 2)
    return f(x, y, 0.5), lambda: f(x, y, 0.5)


@script("rounds-by-dropout")
def rounds_by_dropout(run):
    """What must hold of dropout, whatever is drawn: one seed gives one mask, gradients are where values are, shares of zeros, channels and rows as a whole, alpha dropout's moments."""
    @run.compile
    def f(x):
        plain, channels = F.dropout(x, 0.4), F.dropout2d(x, 0.5)
        rows = F.dropout1d(x[0], 0.5)
        alpha = F.alpha_dropout(x.abs() * 0 + 1, 0.3)
        return plain, channels, rows, alpha

    x = (run.normal(8, 16, 12, 12).abs() + 0.5).requires_grad_()
    torch.manual_seed(7)
    first = f(x)
    torch.manual_seed(7)
    second = f(x)
    third = f(x)
    first[0].sum().backward()
    kept = first[0] != 0
    channels = (first[1] != 0).flatten(2)
    facts = [all(torch.equal(a, b) for a, b in zip(first, second)), not torch.equal(first[0], third[0]), torch.equal(x.grad != 0, kept), abs(kept.double().mean().item() - 0.6) < 0.02,
             torch.equal(channels.all(-1), channels.any(-1)), 0 < channels.double().mean().item() < 1, torch.allclose(first[0][kept], (x / 0.6)[kept]), first[3].unique().numel() == 2]  # fmt: skip
    return [torch.tensor(facts)], lambda: f(x)


@script("two-players")
def two_players(run):
    """A generator and a critic of bounded slope with hinges, the critic twice as often, a mean of generators, features matched, batch statistics in one of them alone."""
    maker = run(nn.Sequential(nn.Linear(6, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 48), nn.Unflatten(1, (3, 4, 4)), nn.Upsample(scale_factor=2), nn.Conv2d(3, 3, 3, padding=1), nn.Tanh()))
    critic = run(nn.Sequential(parametrizations.spectral_norm(nn.Conv2d(3, 8, 4, 2, 1)), nn.LeakyReLU(0.2), parametrizations.spectral_norm(nn.Conv2d(8, 1, 4))))
    mean = swa_utils.AveragedModel(maker, multi_avg_fn=swa_utils.get_ema_multi_avg_fn(0.9), use_buffers=True)
    make, judge = run.compile(maker), run.compile(critic)
    of_maker, of_critic = torch.optim.Adam(maker.parameters(), 2e-3, betas=(0.0, 0.9)), torch.optim.Adam(critic.parameters(), 2e-3, betas=(0.0, 0.9))

    def step(real, noise):
        for _ in range(2):
            with torch.no_grad():
                made = make(noise)
            descend(of_critic, F.relu(1 - judge(real)).mean() + F.relu(1 + judge(made)).mean())
        critic.requires_grad_(False)
        made = make(noise)
        loss = descend(of_maker, -judge(made).mean() + 0.1 * (made.mean(0) - real.mean(0)).square().sum())
        critic.requires_grad_(True)
        mean.update_parameters(maker)
        return loss

    results, again = trained(maker, step, [(run.normal(6, 3, 8, 8).tanh(), run.normal(6, 6)) for _ in range(3)])
    return [*results, *state(critic, mean)], again


@script("soft-actor")
def soft_actor(run):
    """Squashed normal actions of given noise, two critics by vmap of stacked weights, their targets by lerp of all at once, a temperature that is learned, transitions from a ring."""
    actor = perceptron(run, 5, 32, 4)
    critics = [perceptron(run, 7, 32, 1) for _ in range(2)]
    stacked = {name: torch.stack([p.detach() for p in ps]).requires_grad_() for name, ps in zip(dict(critics[0].named_parameters()), zip(*(c.parameters() for c in critics)))}
    targets = {name: p.detach().clone() for name, p in stacked.items()}
    warmth = run(torch.zeros(())).requires_grad_()
    of_actor, of_critics, of_warmth = (torch.optim.Adam(p, 3e-3) for p in (actor.parameters(), stacked.values(), [warmth]))

    def values(weights, x, action):
        return vmap(lambda w: functional_call(critics[0], w, (torch.cat((x, action), -1),)).squeeze(-1))(weights)

    @run.compile
    def act(x, noise):
        mean, spread = actor(x).chunk(2, -1)
        spread = torch.tanh(spread) * 2 - 1
        raw = mean + spread.exp() * noise
        density = -(noise.square() / 2 + spread + 0.5 * math.log(2 * math.pi)) - 2 * (math.log(2) - raw - F.softplus(-2 * raw))
        return raw.tanh(), density.sum(-1)

    @run.compile
    def critic_loss(x, action, reward, x2, done, action2, density2):
        with torch.no_grad():
            wanted = reward + 0.99 * (1 - done) * (values(targets, x2, action2).amin(0) - warmth.exp() * density2)
        return (values(stacked, x, action) - wanted).square().mean(1).sum()

    def step(x, action, reward, x2, done, noise):
        with torch.no_grad():
            action2, density2 = act(x2, noise)
        loss = descend(of_critics, critic_loss(x, action, reward, x2, done, action2, density2))
        made, density = act(x, noise.flip(0))
        descend(of_actor, (warmth.exp().detach() * density - values(stacked, x, made).amin(0)).mean())
        descend(of_warmth, -(warmth.exp() * (density.detach() - 2)).mean())
        torch._foreach_lerp_(list(targets.values()), [p.detach() for p in stacked.values()], 0.05)
        return loss

    given = [(run.normal(16, 5), run.normal(16, 2).tanh(), run.normal(16), run.normal(16, 5), run((torch.rand(16) < 0.2).float()), run.normal(16, 2)) for _ in range(3)]
    results, again = trained(actor, step, given)
    return [*results, warmth.detach(), *(t.clone() for t in targets.values())], again


@script("ladder-of-codes")
def ladder_of_codes(run):
    """A variational autoencoder of two levels, divergences of torch.distributions with free bits, weights of a cyclic schedule, a decoder of discretised logistic mixtures."""
    enc, enc2, prior, dec = perceptron(run, 20, 32, 16), perceptron(run, 8, 16, 8), perceptron(run, 4, 16, 16), perceptron(run, 12, 32, 20 * 6)
    net = nn.ModuleList([enc, enc2, prior, dec])
    optimizer = torch.optim.Adamax(net.parameters(), 5e-3)
    Normal, Independent = torch.distributions.Normal, torch.distributions.Independent

    def normal(parts):
        mean, spread = parts.chunk(2, -1)
        return Independent(Normal(mean, F.softplus(spread) + 1e-2), 1)

    @run.compile
    def loss_of(x, noise, noise2, weight):
        low = normal(enc(x))
        z = low.mean + low.stddev * noise
        high = normal(enc2(z))
        w = high.mean + high.stddev * noise2
        to_prior = torch.distributions.kl_divergence(high, Independent(Normal(torch.zeros_like(w), 1.0), 1))
        between = torch.distributions.kl_divergence(low, normal(prior(w)))
        share, mean, scale = dec(torch.cat((z, w), -1)).view(-1, 20, 3, 2).float().sum(-1).sigmoid(), *dec(torch.cat((z, w), -1)).view(-1, 20, 3, 2).unbind(-1)
        inner = ((x[..., None] - mean + 1 / 255) * torch.exp(-scale)).sigmoid() - ((x[..., None] - mean - 1 / 255) * torch.exp(-scale)).sigmoid()
        likely = (share.to(x.dtype).log_softmax(-1) + inner.clamp(min=1e-9).log()).logsumexp(-1).sum(-1)
        return (weight * (to_prior.clamp(min=0.5) + between.clamp(min=0.5)) - likely).mean()

    def step(x, noise, noise2, n):
        return descend(optimizer, loss_of(x, noise, noise2, min(1.0, (n % 3) / 2 + 0.1)))

    return trained(net, step, [(run.normal(8, 20).tanh(), run.normal(8, 8), run.normal(8, 4), n) for n in range(4)])


@script("kinds-of-contrast")
def kinds_of_contrast(run):
    """Two views of each sample: normalised temperature, redundancy of features, variance and covariance, pairs by sigmoids with a bias that is learned, a predictor with stopped gradients."""
    body, head = perceptron(run, 16, 32, 24), perceptron(run, 24, 16, 24)
    scale, bias = run(torch.tensor(1.0)).requires_grad_(), run(torch.tensor(-2.0)).requires_grad_()
    optimizer = torch.optim.RMSprop([*body.parameters(), *head.parameters(), scale, bias], 2e-3, momentum=0.5)

    def covariance(x):
        x = x - x.mean(0)
        return x.T @ x / (len(x) - 1)

    @run.compile
    def loss_of(a, b):
        u, v = body(a), body(b)
        pairs = F.normalize(torch.cat((u, v)), dim=-1)
        scores = (pairs @ pairs.T / 0.2).masked_fill(torch.eye(len(pairs), dtype=torch.bool), -torch.inf)
        partner = torch.arange(len(pairs)).roll(len(u))
        temperature = F.cross_entropy(scores, partner)
        cross = ((u - u.mean(0)) / (u.std(0) + 1e-3)).T @ ((v - v.mean(0)) / (v.std(0) + 1e-3)) / len(u)
        redundant = (cross.diagonal() - 1).square().sum() + 0.01 * cross.flatten()[:-1].view(23, 25)[:, 1:].square().sum()
        spread = sum(F.relu(1 - (w.var(0) + 1e-4).sqrt()).mean() + covariance(w).fill_diagonal_(0).square().sum() / 24 for w in (u, v))
        logits = scale.exp() * F.normalize(u, dim=-1) @ F.normalize(v, dim=-1).T + bias
        sigmoids = -F.logsigmoid(logits * (2 * torch.eye(len(u), dtype=u.dtype) - 1)).sum() / len(u)
        predicted = -(F.cosine_similarity(head(u), v.detach()) + F.cosine_similarity(head(v), u.detach())).mean() / 2
        return temperature + 0.1 * redundant + spread + sigmoids + predicted

    return trained(nn.ModuleList([body, head]), lambda a, b: descend(optimizer, loss_of(a, b)), [(run.normal(12, 16), run.normal(12, 16)) for _ in range(3)])


@script("learned-roundings")
def learned_roundings(run):
    """Quantisation that is trained: steps and zeros that learn, by tensor and by channel, straight-through roundings, ranges that average, weights of three levels, then frozen bytes."""
    class Quantised(nn.Linear):
        def __init__(self, inputs, outputs):
            super().__init__(inputs, outputs)
            self.step = nn.Parameter(torch.full((outputs,), 0.05))
            self.register_buffer("low", torch.tensor(0.0))
            self.register_buffer("high", torch.tensor(0.0))

        def forward(self, x):
            if self.training:
                with torch.no_grad():
                    self.low.lerp_(x.amin(), 0.3)
                    self.high.lerp_(x.amax(), 0.3)
            scale = (self.high - self.low).clamp(min=1e-3) / 255
            zero = (-self.low / scale).round().clamp(0, 255)
            x = torch.fake_quantize_per_tensor_affine(x, scale.float(), zero.to(torch.int32), 0, 255) if x.dtype == torch.float32 else ((x / scale).round() + zero).clamp(0, 255).sub(zero).mul(scale)
            step = self.step.abs().clamp(min=1e-4)[:, None]
            scaled = self.weight / step
            levels = scaled.clamp(-7, 7)
            rounded = (levels.round() - levels).detach() + levels
            three = self.weight.abs().mean()
            signs = ((self.weight / three).round().clamp(-1, 1) * three - self.weight).detach() + self.weight
            return F.linear(x, rounded * step + 0.1 * signs, self.bias)

    net = run(nn.Sequential(Quantised(12, 24), nn.ReLU(), Quantised(24, 4)))
    forward, optimizer = run.compile(net), torch.optim.SGD(net.parameters(), 0.05, momentum=0.9)
    results, again = trained(net, lambda x, y: descend(optimizer, F.mse_loss(forward(x), y)), [(run.normal(8, 12), run.normal(8, 4)) for _ in range(4)])
    net.eval()
    with torch.no_grad():
        return [*results, forward(run.normal(4, 12))], again


@script("adapters-by-row")
def adapters_by_row(run):
    """One batch whose rows use adapters of their own, gathered from a table; adapters that are merged into a weight and taken out again; scales that grow with the root of the rank."""
    base = run(nn.Linear(16, 24)).requires_grad_(False)
    down, up = run(torch.randn(5, 16, 4) / 4).requires_grad_(), run(torch.randn(5, 4, 24) / 4).requires_grad_()
    optimizer = torch.optim.AdamW([down, up], 0.01)

    @run.compile
    def forward(x, which):
        return base(x) + torch.einsum("bti,bir,bro->bto", x, down[which], up[which]) / math.sqrt(4)

    results = []
    for _ in range(3):
        x, which, y = run.normal(6, 3, 16), torch.randint(5, (6,)), run.normal(6, 3, 24)
        results.append(descend(optimizer, F.huber_loss(forward(x, which), y)).detach().clone())
    with torch.no_grad():
        apart = forward(x, torch.full((6,), 2))
        base.weight += (down[2] @ up[2]).T / 2
        merged = run.compile(lambda x: base(x))(x)
        base.weight -= (down[2] @ up[2]).T / 2
        again = run.compile(lambda x: base(x))(x)
    return [*results, apart, merged, again, down.detach(), up.detach()], lambda: descend(optimizer, forward(x, which).square().mean())


@script("experts-of-bounded-room")
def experts_of_bounded_room(run):
    """Tokens sent to two experts of bounded room by running counts, those beyond it passed on; losses of balance and of large logits; experts that choose tokens; shared ones."""
    router, shared = run(nn.Linear(12, 4, bias=False)), perceptron(run, 12, 16, 12)
    first, second = run(torch.randn(4, 12, 16) / 4).requires_grad_(), run(torch.randn(4, 16, 12) / 4).requires_grad_()
    optimizer = torch.optim.Adam([*router.parameters(), *shared.parameters(), first, second], 0.01)

    def experts(x):
        return torch.bmm(F.silu(torch.bmm(x, first)), second)

    @run.compile
    def forward(x, room: int):
        logits = router(x)
        shares, best = logits.softmax(-1).topk(2)
        sent = F.one_hot(best.T.reshape(-1), 4)
        place = (sent.cumsum(0) - 1).mul(sent).sum(-1)
        fits = place < room
        slots = F.one_hot(place.clamp(max=room - 1), room).to(x.dtype) * fits[:, None]
        dispatch = torch.einsum("ne,nr->ner", sent.to(x.dtype), slots).view(2, len(x), 4, room)
        y = experts(torch.einsum("kner,nd->erd", dispatch, x))
        y = torch.einsum("kner,erd,nk->nd", dispatch, y, shares / shares.sum(-1, keepdim=True))
        chosen, rows = logits.T.softmax(-1).topk(room)
        y = y + torch.zeros_like(x).index_add(0, rows.flatten(), (experts(x[rows]) * chosen[..., None]).flatten(0, 1))
        balance = 4 * (sent.view(2, -1, 4).to(x.dtype).sum(0).mean(0) * logits.softmax(-1).mean(0)).sum()
        return y + shared(x), balance + 0.01 * logits.logsumexp(-1).square().mean(), fits.sum()

    def step(x):
        y, extra, kept = forward(x, 4)
        return descend(optimizer, (y - x).square().mean() + 0.1 * extra) + kept

    return trained(shared, step, [(run.normal(14, 12),) for _ in range(3)])


@script("evolved-weights")
def evolved_weights(run):
    """A search without gradients: mirrored perturbations of all weights by vmap, ranks as rewards, a covariance that adapts by its diagonal, elites, crossings, temperatures."""
    net = perceptron(run, 4, 8, 2)
    flat = nn.utils.parameters_to_vector(net.parameters()).detach()
    sizes = [(name, p.shape, p.numel()) for name, p in net.named_parameters()]

    def reward(vector, x, y):
        parts = vector.split([n for _, _, n in sizes])
        return -(functional_call(net, {name: part.view(shape) for (name, shape, _), part in zip(sizes, parts)}, (x,)) - y).square().mean()

    @run.compile
    def generation(mean, spread, noise, x, y):
        both = torch.cat((noise, -noise))
        found = vmap(reward, (0, None, None))(mean + spread * both, x, y)
        ranks = found.argsort().argsort().to(mean.dtype) / (len(both) - 1) - 0.5
        better = mean + 0.5 * (ranks[:, None] * both * spread).mean(0)
        best = found.topk(3).indices
        elites = mean + spread * both[best]
        mask = (noise[0] > 0)
        child = torch.where(mask, elites[0], elites[1])
        spread = spread * (1 + 0.1 * ((ranks[:, None] * (both.square() - 1)).mean(0))).clamp(0.5, 2)
        return torch.where(reward(child, x, y) > reward(better, x, y), child, better), spread, found.max(), elites.var(0)

    mean, spread, results = flat, torch.full_like(flat, 0.1), []
    for _ in range(4):
        noise, x, y = run.normal(6, len(flat)), run.normal(10, 4), run.normal(10, 2)
        mean, spread, best, variance = generation(mean, spread, noise, x, y)
        results += [best, variance]
    return [*results, mean, spread], lambda: generation(mean, spread, noise, x, y)


@script("trainer-with-callbacks")
def trainer_with_callbacks(run):
    """A class that trains: a loader with weights for its samples, callbacks, a closure for the optimiser, two phases of what learns, the best state kept and loaded again, metrics that add up."""
    class Trainer:
        def __init__(self, net):
            self.net, self.forward, self.callbacks, self.log = net, run.compile(net), [], []
            self.optimizer = torch.optim.SGD(net.parameters(), 0.05, momentum=0.8, dampening=0.1)
            self.best = (math.inf, None)

        def batch(self, x, y):
            def closure():
                self.optimizer.zero_grad(set_to_none=False)
                loss = F.binary_cross_entropy_with_logits(self.forward(x)[:, 0], y, pos_weight=y.new_tensor(2.0))
                loss.backward()
                return loss

            return self.optimizer.step(closure)

        def epoch(self, data, n):
            self.net.train()
            self.net[0].requires_grad_(n > 0)
            losses = torch.stack([self.batch(x, y).detach() for x, y in data])
            self.net.eval()
            with torch.inference_mode():
                right = torch.stack([((self.forward(x)[:, 0] > 0) == y.bool()).sum() for x, y in data]).sum()
            if losses.mean() < self.best[0]:
                self.best = (losses.mean().item(), copy.deepcopy(self.net.state_dict()))
            for callback in self.callbacks:
                callback(n, losses, right)

    net = run(nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ELU(), nn.Linear(16, 1)))
    trainer = Trainer(net)
    trainer.callbacks.append(lambda n, losses, right: trainer.log.extend((losses, right)))
    x = run.normal(24, 6)
    data = TensorDataset(x, (x[:, 0] * x[:, 1] > 0).to(x.dtype))
    loader = list(DataLoader(data, 8, sampler=WeightedRandomSampler(torch.linspace(0.2, 1, 24), 24, generator=torch.Generator().manual_seed(3))))
    for n in range(3):
        trainer.epoch(loader, n)
    net.load_state_dict(trainer.best[1])
    net.eval()
    with torch.no_grad():
        return [*trainer.log, trainer.forward(x), *state(net)], lambda: trainer.batch(*loader[0])
