"""Further SCRIPTS: sequences, decoders, chains and words, as repositories of papers write them."""

import math

import torch
import torch.nn.functional as F
from torch import nn
from torch_library_scripts import with_gradients
from torch_training_scripts import descend, script, trained


@script("teacher-forcing")
def teacher_forcing(run):
    """A translator with attention: training with given and own words by turns, changed lengths, then beams by a compiled step."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.reads, self.back = nn.Embedding(20, 16), nn.GRUCell(16, 16), nn.GRUCell(16, 16)
            self.cell, self.key, self.query, self.score, self.out = nn.GRUCell(48, 16), nn.Linear(32, 16), nn.Linear(16, 16), nn.Linear(16, 1), nn.Linear(48, 20)

        def encode(self, words):
            x, h, b, ahead, behind = self.words(words), 0, 0, [], []
            h = b = torch.zeros(len(x), 16, dtype=x.dtype)
            for t in range(x.shape[1]):
                h, b = self.reads(x[:, t], h), self.back(x[:, -1 - t], b)
                ahead.append(h)
                behind.insert(0, b)
            return torch.cat([torch.stack(ahead, 1), torch.stack(behind, 1)], -1), h

        def step(self, word, h, kept, mask):
            score = self.score((self.query(h)[:, None] + self.key(kept)).tanh()).squeeze(-1).masked_fill(mask, -torch.inf)
            seen = (score.softmax(-1)[:, None] @ kept).squeeze(1)
            h = self.cell(torch.cat([self.words(word), seen], -1), h)
            return self.out(torch.cat([h, seen], -1)).log_softmax(-1), h

        def forward(self, words, goal, given):
            (kept, h), word, found, mask = self.encode(words), goal[:, 0], [], words == 0
            for t in range(1, goal.shape[1]):
                line, h = self.step(word, h, kept, mask)
                found.append(line)
                word = goal[:, t] if given[t] else line.argmax(-1)
            return torch.stack(found, 1)

    net = run(Net())
    forward, next_word, optimizer = run.compile(net), run.compile(net.step), torch.optim.Adam(net.parameters(), 1e-2, eps=1e-3)

    def step(words, goal, given):
        optimizer.zero_grad()
        loss = F.nll_loss(forward(words, goal, given).flatten(0, 1), goal[:, 1:].flatten(), ignore_index=0)
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        return loss

    given = [(torch.randint(1, 20, (b, n)), torch.randint(1, 20, (b, 6)), (True, False, True, True, False, True)) for b, n in ((4, 7), (4, 7), (3, 7))]
    results, again = trained(net, step, given)
    with torch.no_grad():
        kept, h = net.encode(given[0][0][:1])
        kept, h, mask = kept.expand(3, -1, -1), h.expand(3, -1), torch.zeros(3, 7, dtype=torch.bool)
        words, score = torch.ones(3, 1, dtype=torch.long), torch.tensor([0.0, -1e9, -1e9], dtype=h.dtype)
        for _ in range(5):
            line, h = next_word(words[:, -1], h, kept, mask)
            score, pick = (score[:, None] + line).flatten().topk(3)
            words, h = torch.cat([words[pick // 20], (pick % 20)[:, None]], 1), h[pick // 20]
    return [*results, words, score], again


@script("speculative")
def speculative(run):
    """A small decoder guesses words and a larger one checks them at once, each with a cache that grows; how many are taken is read in Python."""
    class Decoder(nn.Module):
        def __init__(self, width, layers):
            super().__init__()
            self.words, self.out, self.width = nn.Embedding(30, width), nn.Linear(width, 30, bias=False), width
            self.layers = nn.ModuleList(nn.ModuleDict({"norm": nn.RMSNorm(width), "qkv": nn.Linear(width, 3 * width), "o": nn.Linear(width, width), "net": nn.Sequential(nn.RMSNorm(width), nn.Linear(width, 2 * width), nn.SiLU(), nn.Linear(2 * width, width))}) for _ in range(layers))  # fmt: skip

        def forward(self, words, place, caches):
            x, rates = self.words(words), 100 ** (-torch.arange(4, dtype=self.out.weight.dtype) / 4)
            angles = (place + torch.arange(words.shape[1]))[:, None] * rates
            turn = torch.polar(torch.ones_like(angles), angles)
            found = []
            for layer, (keys, values) in zip(self.layers, caches):
                q, k, v = layer["qkv"](layer["norm"](x)).unflatten(-1, (3, -1, 8)).permute(2, 0, 3, 1, 4)
                q, k = (torch.view_as_real(torch.view_as_complex(each.unflatten(-1, (4, 2)).contiguous()) * turn).flatten(-2) for each in (q, k))
                keys, values = torch.cat([keys, k], 2), torch.cat([values, v], 2)
                mask = torch.arange(keys.shape[2]) <= place + torch.arange(words.shape[1])[:, None]
                x = x + layer["o"](F.scaled_dot_product_attention(q, keys, values, attn_mask=mask).transpose(1, 2).flatten(2))
                x = x + layer["net"](x)
                found.append((keys, values))
            return self.out(x), found

    small, large = run(Decoder(16, 1)).eval(), run(Decoder(32, 2)).eval()
    guess, check = run.compile(small, dynamic=True), run.compile(large, dynamic=True)
    start = torch.randint(30, (1, 5))

    def empty(net):
        nothing = torch.zeros(1, net.width // 8, 0, 8, dtype=net.out.weight.dtype)
        return [(nothing, nothing) for _ in net.layers]

    @torch.no_grad()
    def make(count=8):
        words, drafts, caches, logits = start, empty(small), empty(large), []
        while words.shape[1] < 5 + count:
            told = words
            for _ in range(3):
                known = drafts[0][0].shape[2]
                line, drafts = guess(told[:, known:], known, drafts)
                told = torch.cat([told, line[:, -1:].argmax(-1)], 1)
            known = caches[0][0].shape[2]
            line, caches = check(told[:, known:], known, caches)
            own = line[:, -4:].argmax(-1)
            taken = int((own[0, :3] == told[0, -3:]).cumprod(0).sum())
            words = torch.cat([told[:, : told.shape[1] - 3 + taken], own[:, taken : taken + 1]], 1)
            drafts, caches = ([(k[:, :, : words.shape[1] - 1], v[:, :, : words.shape[1] - 1]) for k, v in each] for each in (drafts, caches))
            logits.append(line[:, -4:])
        return [words, *logits]

    return make(), lambda: make(3)


@script("hidden-chains")
def hidden_chains(run):
    """Chains by logarithms: expectation and maximisation, best paths with their way back, and a semi-Markov sum with gradients."""
    def forward_backward(start, move, line):
        ahead, behind = [start + line[:, 0]], [torch.zeros_like(line[:, 0])]
        for t in range(1, line.shape[1]):
            ahead.append((ahead[-1][:, :, None] + move).logsumexp(1) + line[:, t])
            behind.insert(0, (move + (line[:, -t] + behind[0])[:, None]).logsumexp(2))
        ahead, behind = torch.stack(ahead, 1), torch.stack(behind, 1)
        total = ahead[:, -1].logsumexp(-1)
        both = ahead[:, :-1, :, None] + move + (line + behind)[:, 1:, None]
        return (ahead + behind - total[:, None, None]).exp(), (both - total[:, None, None, None]).exp().sum((0, 1)), total

    def improve(start, move, mean, x):
        for _ in range(2):
            line = -((x[..., None] - mean).square()) / 2
            place, pairs, total = forward_backward(start, move, line)
            start, move = place[:, 0].mean(0).log(), (pairs / pairs.sum(1, keepdim=True)).log()
            mean = (place * x[..., None]).sum((0, 1)) / place.sum((0, 1))
        return start, move, mean, total

    def best(start, move, line):
        score, back = start + line[:, 0], []
        for t in range(1, line.shape[1]):
            score, way = (score[:, :, None] + move).max(1)
            score = score + line[:, t]
            back.append(way)
        path = [score.argmax(-1)]
        for way in reversed(back):
            path.insert(0, way.gather(1, path[0][:, None]).squeeze(1))
        return torch.stack(path, 1), score.amax(-1)

    def segments(move, line):
        sums, score = F.pad(line.cumsum(1), (0, 0, 1, 0)), [torch.zeros(len(line), line.shape[2], dtype=line.dtype)]
        for t in range(1, line.shape[1] + 1):
            ends = torch.stack([score[t - n] + sums[:, t] - sums[:, t - n] - 0.1 * n for n in range(1, min(4, t) + 1)]).logsumexp(0)
            score.append((ends[:, :, None] + move).logsumexp(1))
        return score[-1].logsumexp(-1)

    start, move, line = run.normal(4).log_softmax(-1), run.normal(4, 4).log_softmax(-1), run.normal(3, 9, 4)
    compiled = run.compile(improve), run.compile(best)
    found = [*compiled[0](start, move, run.normal(4), run.normal(3, 9)), *compiled[1](start, move, line), *compiled[1](start, move, line[:2])]
    more, again = with_gradients(run, segments, move, line)
    return [*found, *more], again


@script("low-bits-adapters")
def low_bits_adapters(run):
    """Weights by tables of four bits whose scales are of eight, kept in 16-bit parts of a frozen decoder, with trained low ranks."""
    class Packed(nn.Module):
        def __init__(self, a, b):
            super().__init__()
            weight = torch.randn(b, a) / math.sqrt(a)
            table = torch.tensor([-1.0, -0.696, -0.525, -0.395, -0.284, -0.185, -0.091, 0.0, 0.08, 0.161, 0.246, 0.338, 0.441, 0.563, 0.723, 1.0])
            blocks = weight.view(-1, 16)
            most = blocks.abs().amax(1, keepdim=True)
            codes = (blocks / most)[..., None].sub(table).abs().argmin(-1).to(torch.uint8).flatten()
            step = (most.amax() - most.mean()) / 127
            for name, value in (("packed", codes[::2] << 4 | codes[1::2]), ("scales", ((most - most.mean()) / step).round().to(torch.int8)), ("step", step), ("middle", most.mean()), ("table", table)):
                self.register_buffer(name, value)
            self.down, self.up, self.size = nn.Parameter(torch.randn(4, a) / 8), nn.Parameter(torch.randn(b, 4) / 8), (b, a)

        def forward(self, x):
            codes = torch.stack([self.packed >> 4, self.packed & 15], -1).flatten()
            most = self.scales.to(x.dtype) * self.step + self.middle
            weight = (self.table[codes.long()].view(-1, 16) * most).view(self.size)
            return F.linear(x, weight) + F.linear(F.linear(x, self.down), self.up) * 2

    class Layer(nn.Module):
        def __init__(self, width=32):
            super().__init__()
            self.qkv, self.o, self.up, self.down, self.norms = Packed(width, 3 * width), Packed(width, width), Packed(width, 4 * width), Packed(2 * width, width), nn.ModuleList(nn.RMSNorm(width) for _ in range(2))

        def forward(self, x):
            q, k, v = self.qkv(self.norms[0](x)).unflatten(-1, (3, 4, -1)).permute(2, 0, 3, 1, 4)
            x = x + self.o(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
            a, b = self.up(self.norms[1](x)).chunk(2, -1)
            return x + self.down(F.silu(a) * b)

    net = run(nn.Sequential(nn.Embedding(40, 32), Layer(), Layer(), nn.RMSNorm(32), nn.Linear(32, 40, bias=False)))
    for name, p in net.named_parameters():
        p.requires_grad_(name.endswith(("down", "up")))
    forward, optimizer = run.compile(net), torch.optim.AdamW([p for p in net.parameters() if p.requires_grad], 1e-3)

    def step(words):
        return descend(optimizer, F.cross_entropy(forward(words[:, :-1]).flatten(0, 1), words[:, 1:].flatten()))

    results, again = trained(net, step, [(torch.randint(40, (2, n)),) for n in (12, 12, 17)])
    with torch.no_grad():
        return [*results, forward(torch.randint(40, (1, 5)))], again


@script("rare-words")
def rare_words(run):
    """A vocabulary in clusters (torch's adaptive softmax), negative samples by bags, and a tree of decisions."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.bag, self.out = nn.Embedding(100, 16, max_norm=2.0), nn.EmbeddingBag(100, 16, mode="mean"), nn.AdaptiveLogSoftmaxWithLoss(16, 100, [10, 40], div_value=2.0)
            self.nodes = nn.Embedding(127, 16)

        def forward(self, words, around, far):
            x = self.bag(around)
            near, away = (self.words(words) * x).sum(-1), torch.einsum("bkc,bc->bk", self.words(far), x)
            loss = -F.logsigmoid(near).mean() - F.logsigmoid(-away).sum(-1).mean()
            place, tree = words + 127, 0
            for _ in range(7):
                right, place = place % 2, (place - 1) // 2
                tree = tree + F.logsigmoid((self.nodes(place.clamp(max=126)) * x).sum(-1) * (1 - 2 * right))
            return loss - tree.mean() + self.out(x, words).loss

    net = run(Net())
    forward, optimizer = run.compile(net), torch.optim.Adagrad(net.parameters(), 0.1)

    def step(*given):
        return descend(optimizer, forward(*given))

    return trained(net, step, [(torch.randint(100, (b,)), torch.randint(100, (b, 6)), torch.randint(100, (b, 5))) for b in (12, 12, 9)])


@script("auto-correlation")
def auto_correlation(run):
    """A forecaster: series in parts by averages, delays by spectra, queries of most weight, norms that are turned back."""
    class Net(nn.Module):
        def __init__(self, c=16):
            super().__init__()
            self.enter, self.q, self.k, self.v, self.out, self.head = nn.Conv1d(5, c, 3, padding=1, padding_mode="circular"), *(nn.Linear(c, c) for _ in range(4)), nn.Linear(c, 5)
            self.scale, self.shift = nn.Parameter(torch.ones(5)), nn.Parameter(torch.zeros(5))

        def forward(self, x):
            mean, spread = x.mean(1, keepdim=True).detach(), (x.var(1, keepdim=True, unbiased=False) + 1e-5).sqrt().detach()
            x = (x - mean) / spread * self.scale + self.shift
            trend = F.avg_pool1d(F.pad(x.transpose(1, 2), (4, 4), mode="replicate"), 9, 1).transpose(1, 2)
            h = self.enter((x - trend).transpose(1, 2)).transpose(1, 2)
            q, k, v = self.q(h), self.k(h), self.v(h)
            n = h.shape[1]
            near = torch.fft.irfft(torch.fft.rfft(q, dim=1) * torch.fft.rfft(k, dim=1).conj(), n=n, dim=1).mean(-1)
            weight, delay = near.topk(int(math.log(n)), dim=-1)
            at = (torch.arange(n)[None, :, None] + delay[:, None]) % n
            h = h + (v[torch.arange(len(x))[:, None, None], at] * weight.softmax(-1)[:, None, :, None]).sum(2)
            score = q @ k.transpose(1, 2) / 4
            pick = (score.amax(-1) - score.mean(-1)).topk(4)[1]
            some = score.gather(1, pick[..., None].expand(-1, -1, n)).softmax(-1) @ v
            h = h + v.mean(1, keepdim=True).expand_as(h).scatter(1, pick[..., None].expand_as(some), some)
            return (self.head(F.gelu(self.out(h))) + trend - self.shift) / (self.scale + 1e-10) * spread + mean

    net = run(Net())
    forward, optimizer = run.compile(net), torch.optim.Adam(net.parameters(), 1e-3, eps=1e-3)

    def step(x, y):
        return descend(optimizer, F.smooth_l1_loss(forward(x), y))

    return trained(net, step, [(run.normal(b, n, 5), run.normal(b, n, 5)) for b, n in ((4, 24), (4, 24), (3, 36))])
