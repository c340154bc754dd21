"""Further SCRIPTS, of other fields: physics, prices, codes, pictures, lattices, and what serves words."""

import math

import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call, grad, grad_and_value, vmap
from torch_library_scripts import with_gradients
from torch_training_scripts import descend, perceptron, script, trained


def without_gradients(run, function, *inputs):
    """The results of two calls; and a call."""
    compiled = run.compile(function)

    def call():
        with torch.no_grad():
            return compiled(*inputs)

    return [call(), call()], call


@script("spline-flow")
def spline_flow(run):
    """A coupling flow whose maps are quotients between knots, which are found in running sums."""
    knots = 8
    net = perceptron(run, 3, 24, 3 * (3 * knots - 1))

    def spline(x, widths, heights, slopes):
        wide, high = (F.pad((each.softmax(-1) * 6).cumsum(-1), (1, 0)) - 3 for each in (widths, heights))
        slopes = F.pad(F.softplus(slopes) + 1e-3, (1, 1), value=1.0)
        is_inside, z = (x > -3) & (x < 3), x.clamp(-2.999, 2.999)
        left = (torch.searchsorted(wide.contiguous(), z[..., None], right=True) - 1).clamp(0, knots - 1)
        (x0, x1), (y0, y1), (d0, d1) = ([each.gather(-1, left + i).squeeze(-1) for i in (0, 1)] for each in (wide, high, slopes))
        slope, t = (y1 - y0) / (x1 - x0), (z - x0) / (x1 - x0)
        below = slope + (d1 + d0 - 2 * slope) * t * (1 - t)
        y = y0 + (y1 - y0) * (slope * t * t + d0 * t * (1 - t)) / below
        log_slope = 2 * slope.log() + (d1 * t * t + 2 * slope * t * (1 - t) + d0 * (1 - t) ** 2).log() - 2 * below.log()
        return torch.where(is_inside, y, x), torch.where(is_inside, log_slope, 0.0).sum(-1)

    def flow(x):
        told = net(x[:, :3]).view(-1, 3, 3 * knots - 1)
        y, log_slope = spline(x[:, 3:], *told.split([knots, knots, knots - 1], -1))
        return torch.cat([x[:, :3], y], 1), log_slope

    return with_gradients(run, flow, run.normal(16, 6) * 2, module=net)


@script("painted-discs")
def painted_discs(run):
    """Discs painted from front to back, with gradients of places, shapes, colours and opacities."""
    line = torch.linspace(-1, 1, 16)
    pixels = run(torch.stack(torch.meshgrid(line, line, indexing="ij"), -1).view(-1, 2))

    def render(places, sizes, turns, colours, opacities, depths):
        order = depths.argsort()
        places, sizes, turns, colours, opacities = (each[order] for each in (places, sizes, turns, colours, opacities))
        c, s = turns.cos(), turns.sin()
        axes = torch.stack([torch.stack([c, -s], -1), torch.stack([s, c], -1)], -2) @ torch.diag_embed(sizes.exp())
        away = pixels[:, None] - places
        near = torch.exp(-0.5 * torch.einsum("pni,nij,pnj->pn", away, torch.linalg.inv(axes @ axes.mT), away))
        covered = (opacities.sigmoid() * near).clamp(max=0.99)
        seen = torch.cat([torch.ones_like(covered[:, :1]), 1 - covered], 1).cumprod(1)[:, :-1]
        return ((covered * seen)[..., None] * colours).sum(1)

    return with_gradients(run, render, run.normal(12, 2) * 0.5, run.normal(12, 2) * 0.2 - 1, run.normal(12), run(torch.rand(12, 3)), run.normal(12), run.normal(12))


@script("fields-in-place")
def fields_in_place(run):
    """Electric and magnetic fields on grids that are half a cell apart, written by differences of slices."""
    @run.compile
    def move(e, hx, hy):
        for _ in range(3):
            hx[:, :-1] -= 0.5 * (e[:, 1:] - e[:, :-1])
            hy[:-1] += 0.5 * (e[1:] - e[:-1])
            e[1:-1, 1:-1] += 0.5 * (hy[1:-1, 1:-1] - hy[:-2, 1:-1] - hx[1:-1, 1:-1] + hx[1:-1, :-2])
            e[8, 8] += 1.0
        return e.abs().max()

    fields, found = [run(torch.zeros(20, 24)) for _ in range(3)], []
    for _ in range(4):
        found += [move(*fields).clone(), *(field.clone() for field in fields)]
    return found, lambda: move(*fields)


@script("flipping-spins")
def flipping_spins(run):
    """Spins of eight bits on a chequered board that flip by given chances."""
    white = (torch.arange(16)[:, None] + torch.arange(16)) % 2 == 0

    def sweep(spins, chances):
        for cells, chance in zip((white, ~white), chances):
            around = spins.roll(1, 0) + spins.roll(-1, 0) + spins.roll(1, 1) + spins.roll(-1, 1)
            spins = torch.where((chance < torch.exp(-0.8 * (spins * around).float())) & cells, -spins, spins)
        return spins, spins.float().mean(), (spins * spins.roll(1, 0)).sum()

    return without_gradients(run, sweep, torch.where(torch.rand(16, 16) > 0.5, 1, -1).to(torch.int8), torch.rand(2, 16, 16))


@script("prices-and-slopes")
def prices_and_slopes(run):
    """Prices of options, with derivatives by all that they depend on, and a second one."""
    def share(x):
        return 0.5 * (1 + torch.erf(x / math.sqrt(2)))

    def price(now, strike, time, rate, spread):
        far = (torch.log(now / strike) + (rate + spread * spread / 2) * time) / (spread * time.sqrt())
        return now * share(far) - strike * torch.exp(-rate * time) * share(far - spread * time.sqrt())

    def all_of(*given):
        return vmap(grad_and_value(price, argnums=(0, 2, 3, 4)))(*given), vmap(grad(grad(price)))(*given)

    given = [run(torch.rand(64) * (high - low) + low) for low, high in ((80, 120), (80, 120), (0.1, 2), (0, 0.05), (0.1, 0.5))]
    return without_gradients(run, all_of, *given)


@script("mixed-words")
def mixed_words(run):
    """Numbers mixed by shifts and products, counted bits, woven places, greatest divisors and least multiples."""
    def mixed(x):
        for _ in range(2):
            x = ((x ^ (x >> 16)) * 0x45D9F3B) & 0xFFFFFFFF
        return x ^ (x >> 16)

    def counted(x):
        x = x - ((x >> 1) & 0x55555555)
        x = (x & 0x33333333) + ((x >> 2) & 0x33333333)
        return ((((x + (x >> 4)) & 0x0F0F0F0F) * 0x01010101) & 0xFFFFFFFF) >> 24

    def function(a, b, words):
        both = mixed(a) ^ (mixed(b) * 31 & 0xFFFFFFFF)
        woven = torch.zeros_like(a)
        for i in range(10):
            woven |= ((a >> i) & 1) << (2 * i) | ((b >> i) & 1) << (2 * i + 1)
        total = torch.full(words.shape[:1], 5381)
        for i in range(words.shape[1]):
            total = (total * 33 + words[:, i]) & 0xFFFFFFFF
        return both, counted(both), woven, total, total % 97, 1 << (both % 31), a.gcd(b), (a % 1000).lcm(b % 100 + 1)

    return without_gradients(run, function, torch.randint(1 << 30, (100,)), torch.randint(1 << 30, (100,)), torch.randint(255, (20, 12)))


@script("texts-beside-each-other")
def texts_beside_each_other(run):
    """The best way to lay two texts beside each other, with costs of gaps: a row is a running maximum."""
    def align(a, b):
        places = torch.arange(b.shape[0] + 1)
        matches, row = torch.where(a[:, None] == b, 2, -1), -places
        rows = [row]
        for i, match in enumerate(matches):
            first = row.new_full((1,), -(i + 1))
            best = torch.maximum(row[:-1] + match, row[1:] - 1)
            row = torch.cat([first, best + places[1:]]).cummax(0).values - places
            rows.append(row)
        return torch.stack(rows)

    return without_gradients(run, align, torch.randint(4, (10,)), torch.randint(4, (13,)))


@script("coded-pictures")
def coded_pictures(run):
    """Colours and blocks as cosines, rounded by a table with gradients that pass."""
    k = torch.arange(8)
    waves = run(torch.cos((2 * k + 1) * k[:, None] * math.pi / 16) * 0.5)
    waves[0] *= math.sqrt(0.5)
    table = run(torch.randint(1, 40, (8, 8)).float())

    def code(x):
        n, c, h, w = x.shape
        red, green, blue = x.unbind(1)
        y = torch.stack([0.299 * red + 0.587 * green + 0.114 * blue, red - green, blue - green], 1) * 255 - 128
        blocks = y.view(n, c, h // 8, 8, w // 8, 8).transpose(3, 4)
        exact = waves @ blocks @ waves.mT / table
        rounded = exact + (exact.round() - exact).detach()
        back = waves.mT @ (rounded * table) @ waves
        return back.transpose(3, 4).reshape(n, c, h, w), rounded.abs().sum()

    return with_gradients(run, code, run(torch.rand(2, 3, 16, 24)))


@script("triangles-summed")
def triangles_summed(run):
    """Stiffness of triangles, added up in a matrix of all corners, and solved."""
    corners = torch.stack([torch.randperm(16)[:3] for _ in range(24)])

    def solve(places, stiff):
        at = places[corners]
        one, other = at[:, 1] - at[:, 0], at[:, 2] - at[:, 0]
        area = (one[:, 0] * other[:, 1] - one[:, 1] * other[:, 0]).abs() / 2 + 0.1
        edges = at.roll(-1, 1) - at.roll(-2, 1)
        each = stiff[:, None, None] * (edges @ edges.mT) / (4 * area[:, None, None])
        index = (corners[:, :, None] * 16 + corners[:, None]).flatten()
        whole = torch.zeros(256, dtype=places.dtype).index_add(0, index, each.flatten()).view(16, 16) + torch.eye(16, dtype=places.dtype)
        return torch.linalg.solve(whole, torch.ones(16, dtype=places.dtype)), whole

    return with_gradients(run, solve, run.normal(16, 2), run(torch.rand(24) + 0.5))


@script("pages-of-caches")
def pages_of_caches(run):
    """A step of several texts whose keys and values lie in pages, which a table names."""
    @run.compile
    def attend(q, k, v, keys, values, table, lengths):
        size, width = keys.shape[1], k.shape[1:]
        slot = table.gather(1, (lengths // size)[:, None]).squeeze(1) * size + lengths % size
        keys.view(-1, *width).index_copy_(0, slot, k)
        values.view(-1, *width)[slot] = v
        mine = [cache[table].flatten(1, 2).transpose(1, 2) for cache in (keys, values)]
        is_past = torch.arange(mine[0].shape[2]) <= lengths[:, None]
        return F.scaled_dot_product_attention(q[:, :, None], *mine, attn_mask=is_past[:, None, None]).squeeze(2)

    caches, table, lengths = [run.normal(12, 4, 2, 8) for _ in range(2)], torch.randperm(12).view(3, 4), torch.tensor([2, 7, 11])
    given, found = [run.normal(3, 2, 8) for _ in range(3)], []

    def step(more=0):
        with torch.no_grad():
            return attend(*given, *caches, table, lengths + more)

    for i in range(3):
        found += [step(i), *(cache.clone() for cache in caches)]
    return found, step


@script("scores-before-a-draw")
def scores_before_a_draw(run):
    """Repeats are punished, bits say what is allowed, the unlikely and the untypical go, three words in a row are banned."""
    def process(scores, words, bits):
        said = scores.gather(1, words)
        scores = scores.scatter(1, words, torch.where(said < 0, said * 1.2, said / 1.2))
        count = torch.zeros_like(scores).scatter_add(1, words, torch.ones_like(words, dtype=scores.dtype))
        scores = scores - 0.3 * count - 0.2 * (count > 0)
        place = torch.arange(scores.shape[1])
        scores = scores.masked_fill((bits[:, place // 32] >> (place % 32).int()) & 1 == 0, -1e30)
        shares = scores.softmax(-1)
        logs = shares.clamp(min=1e-30).log()
        strange = (logs + (shares * logs).sum(-1, keepdim=True).neg()).abs()
        far, order = strange.sort(dim=-1, stable=True)
        last = (shares.gather(1, order).cumsum(-1) < 0.9).sum(-1, keepdim=True).clamp(max=scores.shape[1] - 1)
        follows = (words[:, :-2] == words[:, -2:-1]) & (words[:, 1:-1] == words[:, -1:])
        banned = torch.zeros_like(scores, dtype=torch.bool).scatter(1, words[:, 2:], follows)
        return scores.masked_fill(shares < 0.05 * shares.amax(-1, keepdim=True), -1e30), strange > far.gather(1, last), scores.masked_fill(banned, -1e30).argmax(-1)

    return without_gradients(run, process, run.normal(3, 64), torch.randint(64, (3, 12)), torch.randint(-(2**31), 2**31 - 1, (3, 2), dtype=torch.int32))


@script("answers-in-groups")
def answers_in_groups(run):
    """Answers to one question are rewarded beside each other; a network that stands still holds the learner back."""
    net = run(nn.Sequential(nn.Embedding(30, 24), nn.Linear(24, 48), nn.GELU(), nn.Linear(48, 30)))
    first = {name: value.detach().clone() for name, value in net.named_parameters()}

    @run.compile
    def loss_of(words, rewards, mask, old):
        def logs(scores):
            return scores.log_softmax(-1).gather(-1, words[:, 1:, None]).squeeze(-1)

        now, still = logs(net(words[:, :-1])), logs(functional_call(net, first, (words[:, :-1],))).detach()
        groups = rewards.view(-1, 4)
        gain = ((groups - groups.mean(1, keepdim=True)) / (groups.std(1, keepdim=True) + 1e-4)).view(-1, 1)
        ratio = (now - old).exp()
        lost = -torch.min(ratio * gain, ratio.clamp(0.8, 1.2) * gain) + 0.04 * ((still - now).exp() - (still - now) - 1)
        return (lost * mask).sum() / mask.sum()

    optimizer = torch.optim.AdamW(net.parameters(), 1e-3)
    given = [
        (torch.randint(30, (8, 10)), run.normal(8), run((torch.arange(9) < torch.randint(3, 10, (8, 1))).float()), run.normal(8, 9) * 0.1 - 3.4)
        for _ in range(3)
    ]
    return trained(net, lambda *each: descend(optimizer, loss_of(*each)), given)


@script("averages-by-data")
def averages_by_data(run):
    """A network trained by hand, and its average, which evaluates: both are written by `.data`."""
    net, average = perceptron(run, 6, 24, 3), perceptron(run, 6, 24, 3)
    forward, evaluate, found = run.compile(net), run.compile(average), []
    for _ in range(4):
        x = run.normal(8, 6)
        forward(x).square().mean().backward()
        for mine, other in zip(net.parameters(), average.parameters()):
            mine.data.add_(mine.grad, alpha=-0.1)
            mine.grad = None
            other.data.mul_(0.5).add_(mine.data, alpha=0.5)
        with torch.no_grad():
            found += [evaluate(x).clone(), forward(x).clone()]
    return found, None
