"""Networks of kinds that came up of late: scores as broken sticks, places that are counted, features of second order, bytes in chunks that
are learned, tables of hashed words, weights of each caller, streams that are predicted, thoughts at two speeds, actions as flows."""
import torch
import torch.nn.functional as F
from torch import nn


def perceptron(width, times=4):
    return nn.Sequential(nn.LayerNorm(width), nn.Linear(width, times * width), nn.GELU(), nn.Linear(times * width, width))


def heads_of(x, heads):
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


class Words(nn.Module):
    """Layers of `make(width, heads)` and perceptrons over words, and scores of the next."""

    def __init__(self, make, width=256, heads=4, depth=3, words=512):
        super().__init__()
        self.words, self.head = nn.Embedding(words, width), nn.Linear(width, words, bias=False)
        self.layers, self.after = nn.ModuleList(make(width, heads) for _ in range(depth)), nn.ModuleList(perceptron(width) for _ in range(depth))
        self.norms = nn.ModuleList(nn.RMSNorm(width) for _ in range(depth))

    def forward(self, x):
        x = self.words(x)
        for norm, layer, after in zip(self.norms, self.layers, self.after):
            x = x + layer(norm(x))
            x = x + after(x)
        return self.head(x)


class BrokenSticks(Words):
    """Each word takes a share of what nearer ones left of a stick (stick-breaking attention)."""

    class Layer(nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            self.parts, self.out, self.heads = nn.Linear(width, 3 * width), nn.Linear(width, width), heads

        def forward(self, x):
            q, k, v = (heads_of(each, self.heads) for each in self.parts(x).chunk(3, -1))
            scores = (q @ k.transpose(-1, -2)).float() * q.shape[-1] ** -0.5
            past = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool, device=x.device).tril(-1)
            left = torch.where(past, -F.softplus(scores), 0.0)
            behind = left.flip(-1).cumsum(-1).flip(-1) - left
            shares = torch.where(past, (F.logsigmoid(scores) + behind).exp(), 0.0).to(v.dtype)
            return self.out((shares @ v).transpose(1, 2).flatten(2))

    def __init__(self):
        super().__init__(BrokenSticks.Layer)


class CountedPlaces(Words):
    """How far a word lies back is a sum of gates, and places between whole ones are mixed (contextual position encoding)."""

    class Layer(nn.Module):
        def __init__(self, width, heads, most=32):
            super().__init__()
            self.parts, self.out, self.heads, self.most = nn.Linear(width, 3 * width), nn.Linear(width, width), heads, most
            self.places = nn.Parameter(torch.randn(width // heads, most) * 0.1)

        def forward(self, x):
            q, k, v = (heads_of(each, self.heads) for each in self.parts(x).chunk(3, -1))
            scores = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5
            future = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool, device=x.device).triu(1)
            gates = torch.sigmoid(scores).masked_fill(future, 0)
            at = gates.flip(-1).cumsum(-1).flip(-1).clamp(max=self.most - 1)
            above, below = at.ceil().long(), at.floor().long()
            told, share = q @ self.places, at - below
            bias = told.gather(-1, above) * share + told.gather(-1, below) * (1 - share)
            return self.out(((scores + bias).masked_fill(future, -1e4).softmax(-1) @ v).transpose(1, 2).flatten(2))

    def __init__(self):
        super().__init__(CountedPlaces.Layer)


class SecondOrders(Words):
    """Linear attention of short keys and the products of their pairs, in chunks, beside a softmax over 64 words near by (Based)."""

    class Far(nn.Module):
        def __init__(self, width, heads, short=16, chunk=64):
            super().__init__()
            self.q, self.k, self.v, self.out = nn.Linear(width, heads * short), nn.Linear(width, heads * short), nn.Linear(width, width), nn.Linear(width, width)
            self.heads, self.chunk = heads, chunk

        def series(self, x):
            pairs = (x[..., :, None] * x[..., None, :]).flatten(-2) * 0.5 ** 0.5 / x.shape[-1] ** 0.5
            return torch.cat([torch.ones_like(x[..., :1]), x * x.shape[-1] ** -0.25, pairs], -1)

        def forward(self, x):
            q, k, v = (heads_of(each(x), self.heads).unflatten(2, (-1, self.chunk)) for each in (self.q, self.k, self.v))
            v = torch.cat([v, torch.ones_like(v[..., :1])], -1)
            q, k = self.series(q), self.series(k)
            state = (k.transpose(-1, -2) @ v).cumsum(2)
            state = torch.cat([torch.zeros_like(state[:, :, :1]), state[:, :, :-1]], 2)
            made = (q @ k.transpose(-1, -2)).tril() @ v + q @ state
            made = made[..., :-1] / (made[..., -1:] + 1e-3)
            return self.out(made.flatten(2, 3).transpose(1, 2).flatten(2))

    class Near(nn.Module):
        def __init__(self, width, heads, near=64):
            super().__init__()
            self.parts, self.out, self.heads, self.near = nn.Linear(width, 3 * width), nn.Linear(width, width), heads, near

        def forward(self, x):
            q, k, v = (heads_of(each, self.heads) for each in self.parts(x).chunk(3, -1))
            at = torch.arange(x.shape[1], device=x.device)
            far = at[:, None] - at
            return self.out(F.scaled_dot_product_attention(q, k, v, attn_mask=(far >= 0) & (far < self.near)).transpose(1, 2).flatten(2))

    def __init__(self):
        kinds = iter([SecondOrders.Far, SecondOrders.Near, SecondOrders.Far])
        super().__init__(lambda width, heads: next(kinds)(width, heads))


class LearnedChunks(nn.Module):
    """Bytes are joined where neighbours differ; 64 chunks go through attention and are smoothed back over the bytes (H-Net)."""

    def __init__(self, width=192, heads=4, chunks=64, depth=3):
        super().__init__()
        self.bytes, self.near = nn.Embedding(256, width), nn.ModuleList(nn.Conv1d(width, width, 4, padding=3, groups=width) for _ in range(2))
        self.mix, self.q, self.k = nn.ModuleList(perceptron(width, 2) for _ in range(2)), nn.Linear(width, width, bias=False), nn.Linear(width, width, bias=False)
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(width, heads, 4 * width, 0, "gelu", batch_first=True, norm_first=True) for _ in range(depth))
        self.passed, self.head, self.chunks = nn.Linear(width, width), nn.Linear(width, 256), chunks

    def local(self, x, i):
        x = x + F.silu(self.near[i](x.transpose(1, 2))[..., :-3].transpose(1, 2))
        return x + self.mix[i](x)

    def forward(self, x):
        x = self.local(self.bytes(x), 0)
        alike = F.cosine_similarity(self.q(x[:, 1:]), self.k(x[:, :-1]), dim=-1)
        share = F.pad((1 - alike) / 2, (1, 0), value=1.0)
        first = share.topk(self.chunks, 1).indices.sort(1).values
        begins = torch.zeros_like(share).scatter(1, first, 1.0)
        which = begins.cumsum(1).long().clamp(min=1) - 1
        few = x.gather(1, first[..., None].expand(-1, -1, x.shape[-1]))
        for layer in self.layers:
            few = layer(few)
        sure = share.gather(1, first).clamp(1e-2, 1 - 1e-2)[..., None]  # not 1 in 16 bits
        fade = torch.log1p(-sure).cumsum(1)  # what is left of each of the chunks before
        weights = torch.where(torch.ones(self.chunks, self.chunks, dtype=torch.bool, device=x.device).tril()[..., None], fade[:, :, None] - fade[:, None], -1e4).exp()[..., 0]
        few = weights.to(few.dtype) @ (few * sure)
        x = self.passed(x) + few.gather(1, which[..., None].expand(-1, -1, x.shape[-1])) * share[..., None]
        return self.head(self.local(x, 1))


class HashedWords(nn.Module):
    """Pairs and triples of words are hashed to rows of eight tables, which gates of the states let in (memories of n-grams, Engram)."""

    def __init__(self, width=256, heads=4, depth=3, rows=8191, each=64):
        super().__init__()
        self.words, self.tables, self.rows = nn.Embedding(512, width), nn.Embedding(8 * rows, each), rows
        self.key, self.value, self.near = nn.Linear(8 * each, width), nn.Linear(8 * each, width), nn.Conv1d(width, width, 4, padding=9, dilation=3, groups=width)
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(width, heads, 4 * width, 0, "gelu", batch_first=True, norm_first=True) for _ in range(depth))
        self.norms, self.head = nn.ModuleList(nn.RMSNorm(width) for _ in range(3)), nn.Linear(width, 512)
        self.register_buffer("factors", torch.tensor([[31, 1009, 2917, 40503], [17, 7919, 104729, 65537], [73, 15485863, 6700417, 99991]]))

    def places(self, x):
        one, two = F.pad(x, (1, 0))[:, :-1], F.pad(x, (2, 0))[:, :-2]
        a, b, c = (each[..., None] * factors for each, factors in zip((x, one, two), self.factors))
        pairs, triples = (a ^ b) % self.rows, (a ^ b ^ c) % self.rows
        return torch.cat([pairs, triples], -1) + torch.arange(8, device=x.device) * self.rows

    def forward(self, x):
        told = self.tables(self.places(x)).flatten(2)
        x, mask = self.words(x), nn.Transformer.generate_square_subsequent_mask(x.shape[1], device=x.device)
        for i, layer in enumerate(self.layers):
            if i == 1:
                gate = (self.norms[0](x) * self.norms[1](self.key(told))).sum(-1, keepdim=True) * x.shape[-1] ** -0.5
                value = (gate.abs().clamp(min=1e-6).sqrt() * gate.sign()).sigmoid() * self.value(told)
                near = self.near(self.norms[2](value).transpose(1, 2))[..., :-9].transpose(1, 2)
                x = x + value + F.silu(near)
            x = layer(x, src_mask=mask.to(x.dtype))
        return self.head(x)


class OwnAdapters(Words):
    """Each row of the batch has matrices of rank eight of its own beside what all share, of 64 that are kept (LoRA for many callers)."""

    class Linear(nn.Module):
        def __init__(self, given, made, kept=64, rank=8):
            super().__init__()
            self.all = nn.Linear(given, made)
            self.down, self.up = nn.Parameter(torch.randn(kept, given, rank) * given ** -0.5), nn.Parameter(torch.randn(kept, rank, made) * 0.1)

        def forward(self, x, who):
            return self.all(x) + x @ self.down[who] @ self.up[who] * 2

    def __init__(self, width=256, heads=4, depth=3):
        super().__init__(lambda width, heads: nn.Identity())
        make = OwnAdapters.Linear
        self.parts, self.outs = nn.ModuleList(make(width, 3 * width) for _ in range(depth)), nn.ModuleList(make(width, width) for _ in range(depth))
        self.wide, self.narrow, self.heads = nn.ModuleList(make(width, 4 * width) for _ in range(depth)), nn.ModuleList(make(4 * width, width) for _ in range(depth)), heads

    def forward(self, x):
        who, x = x[:, 0] % 64, self.words(x)
        for norm, parts, out, wide, narrow in zip(self.norms, self.parts, self.outs, self.wide, self.narrow):
            q, k, v = (heads_of(each, self.heads) for each in parts(norm(x), who).chunk(3, -1))
            x = x + out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2), who)
            x = x + narrow(F.gelu(wide(F.rms_norm(x, x.shape[-1:]), who)), who)
        return self.head(x)


class PredictedStreams(nn.Module):
    """Four streams of which a layer computes one and predicts the others, few units that are far above the mean, a row for each word and
    layer, and a narrow way beside attention (Gemma 3n)."""

    class Layer(nn.Module):
        def __init__(self, width, heads, streams=4, own=64):
            super().__init__()
            self.route, self.predict, self.correct = nn.Linear(width, streams), nn.Linear(streams, streams * streams), nn.Linear(streams, streams)
            self.parts, self.out, self.heads = nn.Linear(width, 2 * width, bias=False), nn.Linear(width, width, bias=False), heads
            self.down, self.up = nn.Linear(width, 32, bias=False), nn.Linear(32, width, bias=False)
            self.gate, self.wide, self.narrow = (nn.Linear(*dims, bias=False) for dims in ((width, 4 * width), (width, 4 * width), (4 * width, width)))
            self.own_gate, self.own_out, self.norms = nn.Linear(width, own, bias=False), nn.Linear(own, width, bias=False), nn.ModuleList(nn.RMSNorm(width) for _ in range(7))

        def attend(self, x):
            q, kv = self.parts(x).split([x.shape[-1], x.shape[-1]], -1)
            q = heads_of(q, self.heads)
            k, v = (heads_of(each, self.heads // 2).repeat_interleave(2, 1) for each in kv.chunk(2, -1))
            q, k = F.rms_norm(q, q.shape[-1:]), F.rms_norm(k, k.shape[-1:])
            return self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=1.0).transpose(1, 2).flatten(2))

        def forward(self, streams, own):
            route = self.route(self.norms[0](streams[0])).tanh()
            shares = self.predict(route).unflatten(-1, (len(streams), len(streams)))
            predicted = (streams.permute(1, 2, 3, 0) @ shares).permute(3, 0, 1, 2) + streams
            active = predicted[0]
            x = self.norms[1](active)
            beside = x + self.norms[2](self.up(self.down(x)))
            x = (active + self.norms[3](self.attend(x)) + beside) * 0.5 ** 0.5
            gate, given = self.gate(self.norms[4](x)), self.wide(self.norms[4](x))
            limit = gate.mean(-1, keepdim=True) + 1.64 * gate.std(-1, keepdim=True, unbiased=False)
            x = x + self.norms[5](self.narrow(F.gelu((gate - limit).relu(), approximate="tanh") * given))
            shares = self.correct(self.norms[0](x).mean(-1, keepdim=True).tanh() * route) + 1
            corrected = predicted + (x - active) * shares.permute(2, 0, 1)[..., None]
            first = self.norms[6](self.own_out(F.gelu(self.own_gate(corrected[0])) * own))
            return torch.cat([corrected[:1], corrected[1:] + first], 0)

    def __init__(self, width=256, heads=4, depth=3, words=512, streams=4, own=64):
        super().__init__()
        self.words, self.owns, self.first = nn.Embedding(words, width), nn.Embedding(words, depth * own), nn.ModuleList(nn.Linear(width, width, bias=False) for _ in range(streams - 1))
        self.layers, self.last, self.head = nn.ModuleList(PredictedStreams.Layer(width, heads) for _ in range(depth)), nn.ModuleList(nn.Linear(width, width, bias=False) for _ in range(streams - 1)), nn.Linear(width, words, bias=False)

    def level(self, x, target):
        size = target.pow(2).mean(-1, keepdim=True).sqrt()
        return x * size / x.pow(2).mean(-1, keepdim=True).clamp(min=1e-5).sqrt()

    def forward(self, ids):
        x, owns = self.words(ids), self.owns(ids).unflatten(-1, (len(self.layers), -1))
        streams = torch.stack([x, *(self.level(each(x), x) for each in self.first)])
        for i, layer in enumerate(self.layers):
            streams = layer(streams, owns[:, :, i])
        all_of = [streams[0], *(self.level(each(stream), streams[0]) for each, stream in zip(self.last, streams[1:]))]
        return self.head(F.rms_norm(torch.stack(all_of).mean(0), x.shape[-1:])).div(30).tanh() * 30


class TwoSpeeds(nn.Module):
    """A grid of signs is solved by two small encoders, a slow one once for each three steps of a fast one (a hierarchical reasoning model)."""

    class Block(nn.Module):
        def __init__(self, width, heads=4):
            super().__init__()
            self.parts, self.out, self.heads = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False), heads
            self.gate, self.down = nn.Linear(width, 4 * width, bias=False), nn.Linear(2 * width, width, bias=False)

        def forward(self, x, cos, sin):
            q, k, v = (heads_of(each, self.heads) for each in self.parts(x).chunk(3, -1))
            turn = lambda y: y * cos + torch.cat([-y[..., y.shape[-1] // 2:], y[..., :y.shape[-1] // 2]], -1) * sin
            x = F.rms_norm(x + self.out(F.scaled_dot_product_attention(turn(q), turn(k), v).transpose(1, 2).flatten(2)), x.shape[-1:])
            gate, given = self.gate(x).chunk(2, -1)
            return F.rms_norm(x + self.down(F.silu(gate) * given), x.shape[-1:])

    def __init__(self, width=128, rounds=2, steps=3, size=81):
        super().__init__()
        self.signs, self.fast, self.slow = nn.Embedding(100, width), nn.ModuleList(TwoSpeeds.Block(width) for _ in range(2)), nn.ModuleList(TwoSpeeds.Block(width) for _ in range(2))
        self.first, self.second = nn.Parameter(torch.randn(width)), nn.Parameter(torch.randn(width))
        self.head, self.stop, self.rounds, self.steps = nn.Linear(width, 11), nn.Linear(width, 2), rounds, steps
        turns = torch.arange(size)[:, None] * 10000 ** -(torch.arange(16) / 16).repeat(2)
        self.register_buffer("cos", turns.cos())
        self.register_buffer("sin", turns.sin())

    def forward(self, x):
        given, cos, sin = self.signs(x) * 11.3, self.cos, self.sin
        cos, sin = cos.to(given.dtype), sin.to(given.dtype)
        slow, fast = self.first.expand_as(given), self.second.expand_as(given)
        for _ in range(self.rounds):
            for _ in range(self.steps):
                fast = fast + slow + given
                for block in self.fast:
                    fast = block(fast, cos, sin)
            slow = slow + fast
            for block in self.slow:
                slow = block(slow, cos, sin)
        return torch.cat([self.head(slow).flatten(1), self.stop(slow[:, 0])], 1)


class FlowingActions(nn.Module):
    """Fifty actions of an arm in five steps of a flow, by an expert that sees the keys and values of an image's tokens (pi0)."""

    def __init__(self, width=256, narrow=128, heads=4, depth=2, actions=50, joints=14, steps=5):
        super().__init__()
        self.patches, self.places = nn.Conv2d(3, width, 16, 16), nn.Parameter(torch.randn(196, width) * 0.02)
        self.seen, self.seen_out, self.seen_after = nn.ModuleList(nn.Linear(width, 3 * width) for _ in range(depth)), nn.ModuleList(nn.Linear(width, width) for _ in range(depth)), nn.ModuleList(perceptron(width) for _ in range(depth))
        self.done, self.done_out, self.done_after = nn.ModuleList(nn.Linear(narrow, 3 * width) for _ in range(depth)), nn.ModuleList(nn.Linear(width, narrow) for _ in range(depth)), nn.ModuleList(perceptron(narrow) for _ in range(depth))
        self.given, self.time, self.last = nn.Linear(joints, narrow), nn.Sequential(nn.Linear(2 * narrow, narrow), nn.SiLU(), nn.Linear(narrow, narrow)), nn.Linear(narrow, joints)
        self.noise, self.heads, self.steps = nn.Parameter(torch.randn(actions, joints)), heads, steps
        angle = torch.linspace(0, 1, steps)[:, None] * (4e-3 * 1000 ** torch.linspace(0, 1, narrow // 2)) ** -1
        self.register_buffer("times", torch.cat([angle.sin(), angle.cos()], -1))

    def forward(self, x):
        x, kept = self.patches(x).flatten(2).transpose(1, 2) + self.places, []
        for parts, out, after in zip(self.seen, self.seen_out, self.seen_after):
            q, k, v = (heads_of(each, self.heads) for each in parts(F.rms_norm(x, x.shape[-1:])).chunk(3, -1))
            kept.append((k, v))
            x = x + out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
            x = x + after(x)
        actions = self.noise.expand(x.shape[0], -1, -1)
        for time in self.times.to(x.dtype):
            y = self.given(actions)
            y = self.time(torch.cat([y, time.expand_as(y)], -1))
            for (keys, values), parts, out, after in zip(kept, self.done, self.done_out, self.done_after):
                q, k, v = (heads_of(each, self.heads) for each in parts(F.rms_norm(y, y.shape[-1:])).chunk(3, -1))
                k, v = torch.cat([keys, k], 2), torch.cat([values, v], 2)
                y = y + out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
                y = y + after(y)
            actions = actions - self.last(F.rms_norm(y, y.shape[-1:])) / self.steps
        return actions


class DeepSmall(nn.Module):
    """Images to 32 times smaller latents and back; what is made smaller or larger is added to pixels in channels and means of these, between
    blocks of linear attention with ReLU at two scales (DC-AE, SANA)."""

    class Linear(nn.Module):
        def __init__(self, width, each=32):
            super().__init__()
            self.parts, self.scale, self.mix = nn.Conv2d(width, 3 * width, 1, bias=False), nn.Conv2d(3 * width, 3 * width, 5, 1, 2, groups=3 * width, bias=False), nn.Conv2d(3 * width, 3 * width, 1, groups=3 * width // each, bias=False)
            self.out, self.norm, self.each = nn.Conv2d(2 * width, width, 1), nn.BatchNorm2d(width), each
            self.wide, self.window, self.narrow = nn.Conv2d(width, 4 * width, 1), nn.Conv2d(4 * width, 4 * width, 3, 1, 1, groups=4 * width), nn.Conv2d(2 * width, width, 1)

        def forward(self, x):
            batch, width, height, columns = x.shape
            parts = self.parts(x)
            parts = torch.cat([parts, self.mix(self.scale(parts))], 1).view(batch, -1, 3 * self.each, height * columns)
            q, k, v = parts.chunk(3, 2)
            v = F.pad(v, (0, 0, 0, 1), value=1.0)
            made = (v @ F.relu(k).transpose(-1, -2)) @ F.relu(q)
            made = made[:, :, :-1] / (made[:, :, -1:] + 1e-3)
            x = x + self.norm(self.out(made.reshape(batch, -1, height, columns)))
            given, gate = self.window(F.silu(self.wide(x))).chunk(2, 1)
            return x + self.narrow(given * F.silu(gate))

    class Windows(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.first, self.second, self.norm = nn.Conv2d(width, width, 3, 1, 1), nn.Conv2d(width, width, 3, 1, 1, bias=False), nn.GroupNorm(1, width)

        def forward(self, x):
            return x + self.norm(self.second(F.silu(self.first(x))))

    class Down(nn.Module):
        def __init__(self, given, made):
            super().__init__()
            self.window, self.times = nn.Conv2d(given, made // 4, 3, 1, 1), 4 * given // made

        def forward(self, x):
            return F.pixel_unshuffle(self.window(x), 2) + F.pixel_unshuffle(x, 2).unflatten(1, (-1, self.times)).mean(2)

    class Up(nn.Module):
        def __init__(self, given, made):
            super().__init__()
            self.window, self.times = nn.Conv2d(given, 4 * made, 3, 1, 1), 4 * made // given

        def forward(self, x):
            return F.pixel_shuffle(self.window(x), 2) + F.pixel_shuffle(x.repeat_interleave(self.times, 1), 2)

    def __init__(self, widths=(32, 64, 128, 256)):
        super().__init__()
        block = lambda width: DeepSmall.Linear(width) if width >= 128 else DeepSmall.Windows(width)
        self.first, self.last = nn.Conv2d(3, widths[0], 3, 2, 1), nn.Sequential(nn.RMSNorm(widths[0]), nn.ReLU())
        self.down = nn.Sequential(*(nn.Sequential(DeepSmall.Down(a, b), block(b)) for a, b in zip(widths, widths[1:])), DeepSmall.Down(widths[-1], widths[-1]), nn.Conv2d(widths[-1], 32, 1))
        self.up = nn.Sequential(nn.Conv2d(32, widths[-1], 1), DeepSmall.Up(widths[-1], widths[-1]), *(nn.Sequential(block(b), DeepSmall.Up(b, a)) for a, b in reversed(list(zip(widths, widths[1:])))))
        self.made = nn.Conv2d(widths[0], 12, 3, 1, 1)

    def forward(self, x):
        x = self.up(self.down(self.first(x)))
        return F.pixel_shuffle(self.made(self.last(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)), 2)


class FramesAndAll(nn.Module):
    """Tokens of four views see those of their own view, then those of all, in turns; a token of each view tells the camera (VGGT)."""

    class Layer(nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            self.norm, self.parts, self.out, self.heads, self.after = nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width), heads, perceptron(width)
            self.q_norm, self.k_norm = nn.LayerNorm(width // heads), nn.LayerNorm(width // heads)
            self.small, self.small_after = nn.Parameter(torch.full((width,), 0.1)), nn.Parameter(torch.full((width,), 0.1))

        def turned(self, x, cos, sin):
            half = x.shape[-1] // 2
            y, z = x[..., :half], x[..., half:]
            flip = lambda each: torch.cat([-each[..., half // 2:], each[..., :half // 2]], -1)
            return torch.cat([y * cos[0] + flip(y) * sin[0], z * cos[1] + flip(z) * sin[1]], -1)

        def forward(self, x, cos, sin):
            q, k, v = (heads_of(each, self.heads) for each in self.parts(self.norm(x)).chunk(3, -1))
            q, k = self.turned(self.q_norm(q), cos, sin), self.turned(self.k_norm(k), cos, sin)
            x = x + self.small * self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
            return x + self.small_after * self.after(x)

    def __init__(self, width=192, heads=3, depth=2, views=4, size=9):
        super().__init__()
        self.patches, self.camera, self.other = nn.Conv2d(3, width, 14, 14), nn.Parameter(torch.randn(2, 5, width) * 0.02), views - 1
        self.frames, self.all = nn.ModuleList(FramesAndAll.Layer(width, heads) for _ in range(depth)), nn.ModuleList(FramesAndAll.Layer(width, heads) for _ in range(depth))
        self.poses, self.depths = nn.Linear(2 * width, 9), nn.Linear(2 * width, 14 * 14 * 2)
        at = torch.cat([torch.zeros(5), torch.arange(size * size) + 1]).long()
        y, x = torch.where(at > 0, (at - 1) // size + 1, 0), torch.where(at > 0, (at - 1) % size + 1, 0)
        speeds = (100 ** -(torch.arange(16) / 16)).repeat(2)
        turns = torch.stack([y[:, None] * speeds, x[:, None] * speeds])
        self.register_buffer("cos", turns.cos())
        self.register_buffer("sin", turns.sin())

    def forward(self, x):
        batch, views = x.shape[:2]
        tokens = self.patches(x.flatten(0, 1)).flatten(2).transpose(1, 2)
        camera = torch.cat([self.camera[:1], self.camera[1:].expand(views - 1, -1, -1)]).expand(batch, -1, -1, -1).flatten(0, 1)
        x = torch.cat([camera, tokens], 1)
        cos, sin = self.cos.to(x.dtype), self.sin.to(x.dtype)
        for frames, every in zip(self.frames, self.all):
            own = frames(x, cos, sin)
            x = every(own.unflatten(0, (batch, views)).flatten(1, 2), cos.repeat(1, views, 1), sin.repeat(1, views, 1)).unflatten(1, (views, -1)).flatten(0, 1)
            both = torch.cat([own, x], -1)
        depths = self.depths(both[:, 5:]).unflatten(1, (9, 9)).unflatten(-1, (14, 14, 2)).permute(0, 5, 1, 3, 2, 4).flatten(4, 5).flatten(2, 3)
        return torch.cat([depths[:, :1].exp(), depths[:, 1:].exp() + 1], 1).flatten(1).unflatten(0, (batch, views)).mean(1) + self.poses(both[:, 0]).unflatten(0, (batch, views)).mean((1, 2))[:, None]
