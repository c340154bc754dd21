"""Further SCRIPTS of many fields: sounds, molecules, processes with few points, hidden states, integer codes, samples of words, measures of ranking, poses, automata, control,
recommendations, series."""

import math

import torch
import torch.nn.functional as F
from torch import nn
from torch.func import grad, vmap
from torch_training_scripts import descend, perceptron, script, trained


@script("sounds-to-cepstra")
def sounds_to_cepstra(run):
    """Short spectra by mel filters and cosines, masks of times and bands, phases found again by iterations, another rate by windowed sines, a pre-emphasis, energies in decibels."""
    window = run(torch.hann_window(64))
    bands = run((1 - (torch.linspace(0, 9, 33)[None] - torch.arange(1, 9)[:, None]).abs()).clamp(min=0))
    cosines = run(torch.cos(math.pi / 8 * (torch.arange(8)[None] + 0.5) * torch.arange(5)[:, None]))

    @run.compile
    def f(x):
        x = torch.cat((x[:, :1], x[:, 1:] - 0.97 * x[:, :-1]), 1)
        spectrum = torch.stft(x, 64, 16, window=window, return_complex=True)
        power = spectrum.abs().square()
        mel = 10 * (bands @ power).clamp(min=1e-8).log10()
        mel = torch.maximum(mel, mel.amax((1, 2), keepdim=True) - 40)
        masked = mel.masked_fill((torch.arange(mel.shape[2]) // 3 == 2)[None, None], 0).masked_fill((torch.arange(8) == 4)[None, :, None], mel.mean())
        phase = torch.ones_like(spectrum)
        for _ in range(3):
            wave = torch.istft(spectrum.abs() * phase, 64, 16, window=window, length=x.shape[1])
            again = torch.stft(wave, 64, 16, window=window, return_complex=True)
            phase = again / again.abs().clamp(min=1e-6)
        places = (torch.arange(-6, 7, dtype=x.dtype)[None] - torch.arange(3)[:, None] / 3)
        kernel = torch.sinc(places) * torch.cos(places / 8 * math.pi / 2).square()
        resampled = F.conv1d(x[:, None], kernel[:, None], padding=6).mT.flatten(1)
        return cosines @ mel, masked, wave, resampled

    x = run.normal(2, 400)
    return f(x), lambda: f(x)


@script("molecules-in-a-box")
def molecules_in_a_box(run):
    """Forces as gradients of a potential with periodic bounds and a cutoff, steps of velocity Verlet in a loop, a thermostat, pressures, histograms of distances, frozen atoms."""
    def energy(x, size):
        far = x[:, None] - x[None]
        far = far - size * (far / size).round()
        square = far.square().sum(-1) + torch.eye(len(x), dtype=x.dtype)
        inverse = (1 / square) ** 3
        shares = torch.where(square < 6.25, 4 * (inverse**2 - inverse) + 0.0163, 0.0)
        return (shares * (1 - torch.eye(len(x), dtype=x.dtype))).sum() / 2

    @run.compile
    def steps(x, v, size):
        held = torch.arange(len(x)) % 5 == 0
        force = -grad(energy)(x, size)
        for n in range(4):
            v = torch.where(held[:, None], 0, v + 0.002 * force)
            x = torch.remainder(x + 0.004 * v, size)
            force = -grad(energy)(x, size)
            v = torch.where(held[:, None], 0, v + 0.002 * force)
            heat = v.square().mean()
            v = v * (1 + 0.1 * (0.5 / heat.clamp(min=1e-3) - 1)).clamp(0.5, 1.5).sqrt()
        far = torch.pdist(x)
        count = torch.stack([((far >= r) & (far < r + 1)).sum() for r in range(4)])
        return x, v, energy(x, size), heat, count, -grad(energy, argnums=1)(x, size)

    grid = torch.cartesian_prod(torch.arange(3), torch.arange(3), torch.arange(2)).float()
    x, v, size = run(grid * 1.3 + 0.05 * torch.rand(18, 3)), run.normal(18, 3), run(torch.tensor(4.2))
    results = []
    for _ in range(2):
        x, v, *more = steps(x, v, size)
        results += more
    return [x, v, *results], lambda: steps(x, v, size)


@script("processes-with-few-points")
def processes_with_few_points(run):
    """A Gaussian process by few points: products of kernels, factors of Cholesky with jitter, a bound that is trained, predictions, expected improvement, draws by random features."""
    class Process(nn.Module):
        def __init__(self):
            super().__init__()
            self.points, self.scales, self.noise = nn.Parameter(torch.randn(6, 2)), nn.Parameter(torch.zeros(2)), nn.Parameter(torch.tensor(-1.0))

        def kernel(self, x, y):
            far = torch.cdist(x / self.scales.exp(), y / self.scales.exp(), compute_mode="donot_use_mm_for_euclid_dist")
            return (1 + math.sqrt(3) * far) * torch.exp(-math.sqrt(3) * far) * (1 + 0.1 * torch.cos(x[:, :1] - y[:, 0]))

        def parts(self, x, y):
            noise = self.noise.exp()
            lower = torch.linalg.cholesky(self.kernel(self.points, self.points) + 1e-3 * torch.eye(6, dtype=x.dtype))
            a = torch.linalg.solve_triangular(lower, self.kernel(self.points, x), upper=False) / noise
            inner = torch.linalg.cholesky(a @ a.T + torch.eye(6, dtype=x.dtype))
            c = torch.linalg.solve_triangular(inner, a @ y[:, None], upper=False) / noise
            return lower, a, inner, c, noise

        def forward(self, x, y):
            _, a, inner, c, noise = self.parts(x, y)
            bound = -inner.diagonal().log().sum() - len(x) * noise.log() - (y.square().sum() / noise**2 - c.square().sum()) / 2
            return bound - (self.kernel(x, x).diagonal().sum() / noise**2 - a.square().sum()) / 2

    net = run(Process())
    bound, optimizer = run.compile(net), torch.optim.Adam(net.parameters(), 0.02)

    @run.compile
    def improvement(x, y, new):
        lower, _, inner, c, noise = net.parts(x, y)
        cross = net.kernel(net.points, new)
        u = torch.linalg.solve_triangular(lower, cross, upper=False)
        w = torch.linalg.solve_triangular(inner, u, upper=False)
        mean = (w.T @ c)[:, 0]
        spread = (1.1 - u.square().sum(0) + w.square().sum(0)).clamp(min=1e-6).sqrt()
        z = (mean - y.max()) / spread
        normal = torch.distributions.Normal(torch.zeros_like(z), 1.0)
        return mean, spread, spread * (z * normal.cdf(z) + normal.log_prob(z).exp()), torch.special.log_ndtr(z)

    x, new = run.normal(20, 2), run.normal(5, 2)
    y = x.sin().sum(-1)
    results, again = trained(net, lambda: descend(optimizer, -bound(x, y)), [() for _ in range(3)])
    with torch.no_grad():
        return [*results, *improvement(x, y, new)], again


@script("hidden-states")
def hidden_states(run):
    """Forward and backward sums of a hidden chain, the best path by back pointers, expectations of transitions, a step of expectation and maximisation, durations that are masked."""
    @run.compile
    def f(start, steps, seen, lengths):
        batch, time, states = seen.shape
        ahead, best, pointers = [start + seen[:, 0]], start + seen[:, 0], []
        for t in range(1, time):
            live = (t < lengths)[:, None]
            ahead.append(torch.where(live, (ahead[-1][:, :, None] + steps).logsumexp(1) + seen[:, t], ahead[-1]))
            found, place = (best[:, :, None] + steps).max(1)
            best = torch.where(live, found + seen[:, t], best)
            pointers.append(torch.where(live, place, torch.arange(states).expand(batch, -1)))
        behind = [torch.zeros_like(start).expand(batch, -1)]
        for t in reversed(range(1, time)):
            live = (t < lengths)[:, None]
            behind.append(torch.where(live, (behind[-1][:, None] + steps + seen[:, t, None]).logsumexp(2), behind[-1]))
        behind = behind[::-1]
        total = ahead[-1].logsumexp(-1)
        shares = (torch.stack(ahead, 1) + torch.stack(behind, 1) - total[:, None, None]).exp()
        moves = sum(((ahead[t][:, :, None] + steps + (seen[:, t + 1] + behind[t + 1])[:, None] - total[:, None, None]).exp() * (t + 1 < lengths)[:, None, None]).sum(0) for t in range(time - 1))
        path = [best.argmax(-1)]
        for place in reversed(pointers):
            path.append(place.gather(1, path[-1][:, None])[:, 0])
        return total, shares, (moves / moves.sum(1, keepdim=True)).log(), torch.stack(path[::-1], 1)

    start, steps, seen, lengths = run.normal(4).log_softmax(-1), run.normal(4, 4).log_softmax(-1), run.normal(3, 7, 4).log_softmax(-1), torch.tensor([7, 5, 3])
    steps.requires_grad_()
    results = f(start, steps, seen, lengths)
    results[0].sum().backward()
    return [*(r.detach() for r in results), steps.grad], lambda: f(start, steps, seen, lengths)


@script("codes-of-integers")
def codes_of_integers(run):
    """Counts of bits, Gray and Morton codes, checks by tables, runs and their lengths, bytes put together, digits of other bases, deltas of zigzags, sets as masks of bits."""
    table = torch.zeros(256, dtype=torch.int64)
    for n in range(256):
        value = n
        for _ in range(8):
            value = (value >> 1) ^ (0xEDB88320 if value & 1 else 0)
        table[n] = value

    @run.compile
    def f(x, y, data):
        bits = (x[:, None] >> torch.arange(32)) & 1
        spread = ((x[:, None] >> torch.arange(16) & 1) << 2 * torch.arange(16)).sum(1) | ((y[:, None] >> torch.arange(16) & 1) << 2 * torch.arange(16) + 1).sum(1)
        check = torch.full((len(data),), 0xFFFFFFFF)
        for column in data.unbind(1):
            check = table[(check ^ column.long()) & 255] ^ (check >> 8)
        changed = torch.cat((torch.ones_like(data[:, :1], dtype=torch.bool), data[:, 1:] != data[:, :-1]), 1)
        runs = changed.cumsum(1) - 1
        lengths = torch.zeros_like(runs).scatter_add(1, runs, torch.ones_like(runs))
        words = data.view(torch.int32) if data.shape[1] % 4 == 0 else data.int()
        digits = x[:, None] // 7 ** torch.arange(6) % 7
        delta = x.diff()
        zigzag = (delta << 1) ^ (delta >> 63)
        back = (zigzag >> 1) ^ -(zigzag & 1)
        sets = (1 << digits).sum(1)
        both = torch.bitwise_and(sets[:, None], sets[None])
        shared = ((both[..., None] >> torch.arange(10)) & 1).sum(-1)
        return bits.sum(1), x ^ (x >> 1), spread, check ^ 0xFFFFFFFF, runs, lengths, words, digits, zigzag, back == delta, shared, torch.gcd(x, y), torch.bitwise_left_shift(x.int(), 3), ~x.to(torch.uint8)

    x, y, data = torch.randint(60000, (24,)), torch.randint(60000, (24,)), torch.randint(3, (5, 16), dtype=torch.uint8)
    return f(x, y, data), lambda: f(x, y, data)


@script("words-drawn-in-all-ways")
def words_drawn_in_all_ways(run):
    """Logits made warm, repeated words made rarer, shares cut at the top, at a sum, at a share of the best, by typicality and by entropy, words without repeats of three, biases, given noise."""
    @run.compile
    def draw(logits, words, noise, warmth, room):
        counts = torch.zeros_like(logits).scatter_add(1, words, torch.ones_like(words, dtype=logits.dtype))
        seen = logits.gather(1, words)
        logits = logits.scatter(1, words, torch.where(seen > 0, seen / 1.2, seen * 1.2)) - 0.1 * counts - 0.05 * (counts > 0)
        logits = logits / warmth
        pairs = (words[:, :-2] == words[:, -2:-1]) & (words[:, 1:-1] == words[:, -1:])
        banned = torch.zeros_like(logits, dtype=torch.bool).scatter(1, words[:, 2:], pairs)
        logits = logits.masked_fill(banned, -torch.inf)
        shares = logits.softmax(-1)
        ranked, order = shares.sort(descending=True, stable=True)
        by_sum = torch.zeros_like(banned).scatter(1, order, ranked.cumsum(-1) - ranked < 0.8)
        by_best = shares >= 0.05 * shares.amax(-1, keepdim=True)
        surprise = torch.special.entr(shares).sum(-1, keepdim=True)
        typical = ((-shares.clamp(min=1e-9).log()) - surprise).abs()
        far, at = typical.sort(stable=True)
        by_typical = torch.zeros_like(banned).scatter(1, at, shares.gather(1, at).cumsum(-1) - shares.gather(1, at) < 0.9)
        by_top = logits >= logits.topk(room).values[:, -1:]
        by_entropy = shares > torch.minimum(torch.tensor(3e-2, dtype=shares.dtype), torch.exp(-surprise) * 0.2)
        every = [logits.masked_fill(~kept, -torch.inf) for kept in (by_sum, by_best, by_typical, by_top, by_entropy)]
        return [(e.softmax(-1) / noise).argmax(-1) for e in every], [e.logsumexp(-1) for e in every], banned

    logits, words, noise = run.normal(3, 40) * 2, torch.randint(6, (3, 12)), run(torch.rand(3, 40)).log().neg()
    return [draw(logits, words, noise, warmth, 5) for warmth in (0.7, 1.0, 1.3)], lambda: draw(logits, words, noise, 0.7, 5)


@script("measures-of-ranking")
def measures_of_ranking(run):
    """Areas under curves by sorting and running sums, gains, reciprocal ranks, calibration in bins, tables of confusion, orders that agree, F-scores, distances of edits by a table."""
    @run.compile
    def f(scores, wanted, classes, logits, one, other):
        order = scores.argsort(descending=True, stable=True)
        hits = wanted[order].to(scores.dtype)
        right, wrong = hits.cumsum(0) / hits.sum(), (1 - hits).cumsum(0) / (1 - hits).sum()
        area = torch.trapezoid(right, wrong)
        precision = hits.cumsum(0) / torch.arange(1, len(hits) + 1)
        average = (precision * hits).sum() / hits.sum()
        gain = (hits / torch.arange(2, len(hits) + 2).log2()).sum() / (hits.sort(descending=True).values / torch.arange(2, len(hits) + 2).log2()).sum()
        first = 1 / (hits.argmax() + 1)
        shares = logits.softmax(-1)
        sure, said = shares.max(-1)
        place = torch.bucketize(sure, torch.linspace(0, 1, 6, dtype=sure.dtype)[1:-1])
        counts = torch.zeros(5, dtype=sure.dtype).index_add(0, place, torch.ones_like(sure))
        gap = torch.zeros(5, dtype=sure.dtype).index_add(0, place, sure - (said == classes).to(sure.dtype))
        table = torch.zeros(4, 4, dtype=torch.int64).index_put((classes, said), torch.ones_like(said), accumulate=True)
        overlap = table.diagonal() / (table.sum(0) + table.sum(1) - table.diagonal()).clamp(min=1)
        agree = torch.sign(scores[:, None] - scores) * torch.sign(sure[:, None] - sure)
        line = torch.arange(len(other) + 1)
        for word in one:
            below = torch.minimum(line[1:] + 1, line[:-1] + (other != word))
            below = torch.cat((line[:1] + 1, below))
            line = (below - torch.arange(len(below))).cummin(0).values + torch.arange(len(below))
        return area, average, gain, first, gap.abs().sum() / counts.sum(), table, overlap, agree.triu(1).sum() / (len(sure) * (len(sure) - 1) / 2), line[-1]

    n = 40
    given = run.normal(n), torch.rand(n) < 0.3, torch.randint(4, (n,)), run.normal(n, 4), torch.randint(3, (7,)), torch.randint(3, (9,))
    return f(*given), lambda: f(*given)


@script("poses")
def poses(run):
    """Quaternions, turns by exponentials and logarithms, poses that follow each other along a chain, a camera with distortion, steps of Gauss and Newton for its pose, closest points."""
    def hat(w):
        zero = torch.zeros_like(w[..., 0])
        return torch.stack((zero, -w[..., 2], w[..., 1], w[..., 2], zero, -w[..., 0], -w[..., 1], w[..., 0], zero), -1).unflatten(-1, (3, 3))

    def turn(w):
        angle = (w.square().sum(-1) + 1e-8).sqrt()[..., None, None]
        return torch.eye(3, dtype=w.dtype) + angle.sin() / angle * hat(w) + (1 - angle.cos()) / angle**2 * hat(w) @ hat(w)

    def seen(pose, points):
        at = points @ turn(pose[:3]).T + pose[3:]
        flat = at[:, :2] / at[:, 2:].clamp(min=0.1)
        r = flat.square().sum(-1, keepdim=True)
        return flat * (1 + 0.1 * r - 0.02 * r * r)

    @run.compile
    def f(w, q, points, pose):
        q = q / q.norm(dim=-1, keepdim=True)
        real, i, j, k = q.unbind(-1)
        matrix = torch.stack((1 - 2 * (j * j + k * k), 2 * (i * j - k * real), 2 * (i * k + j * real), 2 * (i * j + k * real), 1 - 2 * (i * i + k * k), 2 * (j * k - i * real),
                              2 * (i * k - j * real), 2 * (j * k + i * real), 1 - 2 * (i * i + j * j)), -1).unflatten(-1, (3, 3))  # fmt: skip
        turned = turn(w) @ matrix
        angle = ((turned.diagonal(dim1=-2, dim2=-1).sum(-1) - 1) / 2).clamp(-0.999, 0.999).acos()
        chain = [turned[0]]
        for each in turned[1:]:
            chain.append(chain[-1] @ each)
        wanted = seen(pose + 0.05, points)
        found = pose
        for _ in range(3):
            rest = (seen(found, points) - wanted).flatten()
            slope = torch.func.jacrev(lambda p: seen(p, points).flatten())(found)
            found = found - torch.linalg.solve(slope.T @ slope + 1e-4 * torch.eye(6, dtype=w.dtype), slope.T @ rest)
        closest = torch.cdist(points, points + 0.1).argmin(1)
        return angle, torch.stack(chain), found, points[closest], torch.linalg.det(turned), torch.linalg.cross(w, q[..., 1:])

    given = run.normal(4, 3), run.normal(4, 4), run.normal(12, 3) + run(torch.tensor([0.0, 0, 4])), run.normal(6) * 0.1
    return f(*given), lambda: f(*given)


@script("automata")
def automata(run):
    """The game of life in bytes, rules by numbers, a picture that grows by a network of its neighbours, trained through eight steps with cells that live, sand that falls."""
    net = run(nn.Sequential(nn.Conv2d(24, 32, 1), nn.ReLU(), nn.Conv2d(32, 8, 1, bias=False)))
    edge = torch.tensor([[1.0, 2, 1], [0, 0, 0], [-1, -2, -1]]) / 8
    kernel = run(torch.stack((torch.zeros(3, 3).index_put((torch.tensor(1), torch.tensor(1)), torch.tensor(1.0)), edge, edge.T)).repeat(8, 1, 1)[:, None])

    @run.compile
    def life(board, rule):
        for _ in range(3):
            around = sum(board.roll((i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j)
            board = ((around == 3) | (board == 1) & (around == 2)).to(torch.uint8)
        line = board[0].long()
        for _ in range(4):
            line = rule >> (4 * line.roll(1) + 2 * line + line.roll(-1)) & 1
        sand = board.int() * 5
        for _ in range(3):
            falls = sand // 4
            padded = F.pad(falls, (1, 1, 1, 1))
            sand = sand % 4 + padded[:-2, 1:-1] + padded[2:, 1:-1] + padded[1:-1, :-2] + padded[1:-1, 2:]
        return board, line, sand

    @run.compile
    def grown(x, fires):
        for n in range(4):
            alive = F.max_pool2d(x[:, 3:4], 3, 1, 1) > 0.1
            x = x + net(F.conv2d(F.pad(x, (1, 1, 1, 1), mode="circular"), kernel, groups=8)) * fires[n]
            x = x * (alive & (F.max_pool2d(x[:, 3:4], 3, 1, 1) > 0.1)).to(x.dtype)
        return x

    optimizer = torch.optim.Adam(net.parameters(), 5e-3)
    seed, wanted, fires = run(torch.zeros(1, 8, 9, 9)), run(torch.rand(1, 4, 9, 9)), run((torch.rand(4, 1, 1, 9, 9) < 0.5).float())
    seed[:, 3:, 4, 4] = 1
    board = torch.randint(2, (11, 13), dtype=torch.uint8)
    results, again = trained(net, lambda: descend(optimizer, (grown(seed, fires)[:, :4] - wanted).square().mean()), [() for _ in range(3)])
    return [*results, *life(board, torch.tensor(110))], again


@script("control-by-factors")
def control_by_factors(run):
    """Gains by a backward recurrence of matrices, a path by sampled controls that are weighed by their costs, a pendulum whose slopes are found by derivatives, states that are clamped."""
    def moved(x, u):
        angle, speed = x
        return torch.stack((angle + 0.1 * speed, (speed + 0.1 * (9.8 * angle.sin() + u[0])).clamp(-4, 4)))

    @run.compile
    def gains(x, u, keep, effort):
        a, b = torch.func.jacrev(moved, (0, 1))(x, u)
        cost, found = keep, []
        for _ in range(6):
            gain = torch.linalg.solve(effort + b.T @ cost @ b, b.T @ cost @ a)
            cost = keep + a.T @ cost @ (a - b @ gain)
            found.append(gain)
        return torch.stack(found), cost, torch.linalg.matrix_norm(a - b @ gain, 1)

    @run.compile
    def sampled(x, plan, noise):
        def cost_of(us):
            at, cost = x, 0.0
            for u in us.unbind(0):
                at = moved(at, u)
                cost = cost + at[0].square() + 0.1 * at[1].square() + 0.01 * u.square().sum()
            return cost

        costs = vmap(cost_of)(plan + noise)
        weights = (-(costs - costs.amin()) / 0.5).softmax(0)
        return plan + (weights[:, None, None] * noise).sum(0), costs.quantile(0.25), weights.square().sum().reciprocal()

    x, plan, results = run.normal(2) * 0.3, run(torch.zeros(5, 1)), []
    for _ in range(3):
        plan, *more = sampled(x, plan, run.normal(16, 5, 1))
        x = moved(x, plan[0])
        plan = plan.roll(-1, 0)
        results += [*more, x]
    return [*results, *gains(x, plan[0], run(torch.eye(2)), run(torch.eye(1) / 10))], lambda: sampled(x, plan, noise=plan.expand(16, -1, -1))


@script("towers-of-clicks")
def towers_of_clicks(run):
    """Recommendations: hashed tables, bags with weights, an interest that attends to a history, two towers with shares in the batch that are corrected for how common they are, pairs of losses."""
    class Towers(nn.Module):
        def __init__(self):
            super().__init__()
            self.items, self.words = nn.Embedding(31, 12, padding_idx=0), nn.EmbeddingBag(53, 12, mode="sum")
            self.attend, self.user = nn.Sequential(nn.Linear(48, 16), nn.PReLU(), nn.Linear(16, 1)), nn.Linear(24, 12)

        def forward(self, history, text, weights, target):
            hashed = (history * 2654435761 % 4294967296 >> 7) % 31 * (history > 0)
            past, now = self.items(hashed), self.items(target)
            pair = now[:, None].expand_as(past)
            scores = self.attend(torch.cat((past, pair, past - pair, past * pair), -1)).masked_fill((history == 0)[..., None], 0.0)
            user = self.user(torch.cat(((scores * past).sum(1), self.words(text, per_sample_weights=weights)), -1))
            return F.normalize(user, dim=-1), F.normalize(now, dim=-1)

    net = run(Towers())
    forward, optimizer = run.compile(net), torch.optim.Adagrad(net.parameters(), 0.05)
    common = run(torch.rand(31)) + 0.1

    def step(history, text, weights, target):
        user, item = forward(history, text, weights, target)
        logits = user @ item.T / 0.1 - common[target].log()
        same = (target[:, None] == target) & ~torch.eye(len(target), dtype=torch.bool)
        positive = logits.diagonal()
        ranked = -F.logsigmoid(positive - logits.roll(1, 0).diagonal()).mean()
        return descend(optimizer, F.cross_entropy(logits.masked_fill(same, -1e4), torch.arange(len(target))) + 0.3 * ranked)

    return trained(net, step, [(torch.randint(40, (6, 5)), torch.randint(53, (6, 4)), run(torch.rand(6, 4)), torch.randint(1, 31, (6,))) for _ in range(3)])


@script("series-to-come")
def series_to_come(run):
    """Series normed by their own statistics and put back, trends by means that move, seasons by spectra, patches, losses of quantiles, smoothing by a recurrence, distances under warping."""
    class Forecast(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale, self.shift = nn.Parameter(torch.ones(3)), nn.Parameter(torch.zeros(3))
            self.trend, self.rest, self.smooth = nn.Linear(24, 6), nn.Linear(8, 12), nn.Parameter(torch.tensor(0.0))
            self.mix = nn.TransformerEncoderLayer(12, 2, 24, dropout=0.0, batch_first=True, norm_first=True)
            self.head = nn.Linear(60, 18)

        def forward(self, x):
            mean, spread = x.mean(1, keepdim=True).detach(), (x.var(1, keepdim=True, correction=0) + 1e-5).sqrt().detach()
            x = ((x - mean) / spread * self.scale + self.shift).mT
            slow = F.avg_pool1d(F.pad(x, (2, 2), mode="replicate"), 5, 1)
            spectrum = torch.fft.rfft(x - slow)
            kept = spectrum.abs() >= spectrum.abs().topk(3).values[..., -1:]
            season = torch.fft.irfft(spectrum * kept, n=24)
            patches = self.mix(self.rest((x - slow - season).unfold(-1, 8, 4)).flatten(0, 1)).unflatten(0, (-1, 3)).flatten(2)
            future = self.trend(slow)[..., None] + self.head(patches).unflatten(-1, (6, 3)) + season[..., :6, None]
            weight, level, levels = self.smooth.sigmoid(), x[..., 0], []
            for t in range(1, 24):
                level = weight * x[..., t] + (1 - weight) * level
                levels.append(level)
            future = future + 0.1 * torch.stack(levels[-6:], -1)[..., None]
            return ((future.permute(0, 2, 1, 3) - self.shift[:, None]) / self.scale[:, None]) * spread[..., None] + mean[..., None]

    net = run(Forecast())
    forward, optimizer = run.compile(net), torch.optim.AdamW(net.parameters(), 5e-3)
    levels = run(torch.tensor([0.1, 0.5, 0.9]))

    def step(x, y):
        rest = y[..., None] - forward(x)
        return descend(optimizer, torch.maximum(levels * rest, (levels - 1) * rest).mean())

    return trained(net, step, [(run.normal(2, 24, 3).cumsum(1), run.normal(2, 6, 3)) for _ in range(3)])
