"""Networks whose mechanisms no other file here has: pooled places that are filled again, values that iterations spread, all pairs of
two sequences, differences of neighbours as weights, weights of three values, errors that a memory corrects, statistics that attention
weighs, grids mixed along two axes, variables that gates choose, words that are copied, windows that each box makes for itself, random
windows, depths that neighbours pass on, scores that shift by rows, states of one decay a head."""
import torch
import torch.nn.functional as F
from torch import nn

from scene_networks import conv


class FilledAgain(nn.Module):
    """Windows down to the largest of each two by two, and up again into the places where these were (SegNet)."""

    def __init__(self, widths=(32, 64, 128), classes=12):
        super().__init__()
        self.down, self.up, given = nn.ModuleList(), nn.ModuleList(), 3
        for width in widths:
            self.down.append(nn.Sequential(conv(given, width), conv(width, width)))
            self.up.insert(0, nn.Sequential(conv(width, width), conv(width, given if given > 3 else width)))
            given = width
        self.head = nn.Conv2d(widths[0], classes, 3, 1, 1)

    def forward(self, x):
        places = []
        for layer in self.down:
            x, place = F.max_pool2d(layer(x), 2, return_indices=True)
            places.append(place)
        for layer in self.up:
            x = layer(F.max_unpool2d(x, places.pop(), 2))
        return self.head(x)


class SpreadValues(nn.Module):
    """What places are worth: rewards, and again and again the best of ten moves to them (a value iteration network)."""

    def __init__(self, hidden=150, moves=10, rounds=24):
        super().__init__()
        self.reward = nn.Sequential(nn.Conv2d(2, hidden, 3, 1, 1), nn.Conv2d(hidden, 1, 1, bias=False))
        self.given, self.worth = nn.Conv2d(1, moves, 3, 1, 1, bias=False), nn.Parameter(torch.randn(moves, 1, 3, 3) * 0.1)
        self.head, self.rounds = nn.Linear(moves, 8, bias=False), rounds

    def forward(self, x):
        reward = self.reward(x)
        q = self.given(reward)
        for _ in range(self.rounds):
            q = self.given(reward) + F.conv2d(q.amax(1, keepdim=True), self.worth, padding=1)
        return self.head(q.permute(0, 2, 3, 1))


class AllPairs(nn.Module):
    """Every frame of a sound with every word so far: sums, tanh, and logarithms of shares of 500 parts of words (a transducer)."""

    def __init__(self, width=256, parts=500, words=24):
        super().__init__()
        self.frames = nn.Sequential(nn.Conv1d(80, width, 3, 2, 1), nn.SiLU(), nn.Conv1d(width, width, 3, 2, 1), nn.SiLU())
        self.norm, self.words = nn.LayerNorm(width), nn.Parameter(torch.randn(words, width))
        self.past = nn.Conv1d(width, width, 2, padding=1, groups=width)
        self.sides, self.head = nn.ModuleList([nn.Linear(width, 320), nn.Linear(width, 320)]), nn.Linear(320, parts)

    def forward(self, x):
        frames = self.norm(self.frames(x).transpose(1, 2))
        words = F.relu(self.past(self.words.t()[None].expand(x.shape[0], -1, -1))[..., :-1]).transpose(1, 2)
        return self.head((self.sides[0](frames)[:, :, None] + self.sides[1](words)[:, None]).tanh()).log_softmax(-1)


class NeighbourWeights(nn.Module):
    """Points whose sixteen nearest are weighed channel by channel, by differences of keys and places (a point transformer)."""

    def __init__(self, width=64, layers=2, near=16, classes=13):
        super().__init__()
        self.first = nn.Sequential(nn.Linear(6, width), nn.ReLU())
        self.layers = nn.ModuleList(nn.ModuleDict({
            "qkv": nn.Linear(width, 3 * width), "places": nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, width)),
            "weigh": nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width)),
            "out": nn.Linear(width, width), "norm": nn.LayerNorm(width)}) for _ in range(layers))
        self.head, self.near = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, classes)), near

    def forward(self, x):
        at = x[..., :3]
        near = (at[:, :, None] - at[:, None]).square().sum(-1).topk(self.near, largest=False).indices
        row = torch.arange(x.shape[0], device=x.device)[:, None, None]
        apart, x = at[:, :, None] - at[row, near], self.first(x)
        for layer in self.layers:
            q, k, v = layer["qkv"](layer["norm"](x)).chunk(3, -1)
            place = layer["places"](apart)
            weights = layer["weigh"](q[:, :, None] - k[row, near] + place).softmax(2)
            x = x + layer["out"]((weights * (v[row, near] + place)).sum(2))
        return self.head(x)


class ThreeWeights(nn.Module):
    """A decoder whose weights are -1, 0 or 1 times a mean, over tokens rounded to 8 bits each by its greatest number (BitNet)."""

    def __init__(self, width=512, heads=8, layers=4, inside=1536):
        super().__init__()
        self.words, self.head, self.heads = nn.Embedding(1000, width), nn.Linear(width, 1000, bias=False), heads
        def weight(given, made):
            return nn.Parameter(torch.randn(made, given) * 0.02)
        self.layers = nn.ModuleList(nn.ParameterDict({"qkv": weight(width, 3 * width), "out": weight(width, width),
                                                      "up": weight(width, 2 * inside), "down": weight(inside, width)})
                                    for _ in range(layers))

    @staticmethod
    def multiply(x, weight):
        x = F.rms_norm(x, x.shape[-1:])
        scale = 127 / x.abs().amax(-1, keepdim=True).clamp(min=1e-5)
        mean = weight.abs().mean().clamp(min=1e-5)
        return F.linear((x * scale).round().clamp(-128, 127) / scale, (weight / mean).round().clamp(-1, 1) * mean)

    def forward(self, x):
        x = self.words(x)
        for layer in self.layers:
            q, k, v = (each.unflatten(2, (self.heads, -1)).transpose(1, 2) for each in self.multiply(x, layer["qkv"]).chunk(3, -1))
            x = x + self.multiply(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2), layer["out"])
            a, b = self.multiply(x, layer["up"]).chunk(2, -1)
            x = x + self.multiply(F.relu(a).square() * b, layer["down"])
        return self.head(x)


class CorrectedMemory(nn.Module):
    """Linear attention whose memory is corrected by what it gets wrong, in chunks of 32 (DeltaNet)."""

    def __init__(self, width=256, heads=4, layers=2, chunk=32):
        super().__init__()
        self.words, self.head, self.heads, self.chunk = nn.Embedding(1000, width), nn.Linear(width, 1000), heads, chunk
        self.layers = nn.ModuleList(nn.ModuleDict({
            "norm": nn.RMSNorm(width), "qkv": nn.Linear(width, 3 * width, bias=False), "rate": nn.Linear(width, heads),
            "short": nn.Conv1d(3 * width, 3 * width, 4, padding=3, groups=3 * width), "made": nn.RMSNorm(width // heads),
            "out": nn.Linear(width, width, bias=False),
            "mlp": nn.Sequential(nn.RMSNorm(width), nn.Linear(width, 3 * width), nn.SiLU(), nn.Linear(3 * width, width))})
            for _ in range(layers))
        self.register_buffer("ahead", torch.ones(chunk, chunk).tril(-1))
        self.register_buffer("so_far", torch.ones(chunk, chunk).tril())

    def mix(self, x, layer):
        made = F.silu(layer["short"](layer["qkv"](x).transpose(1, 2))[..., :x.shape[1]]).transpose(1, 2)
        q, k, v = (each.unflatten(2, (self.heads, -1)).transpose(1, 2).unflatten(2, (-1, self.chunk)) for each in made.chunk(3, -1))
        q, k = F.normalize(q, dim=-1), F.normalize(k, dim=-1)
        rate = layer["rate"](x).sigmoid().transpose(1, 2).unflatten(2, (-1, self.chunk))[..., None]
        wrong = -((k * rate) @ k.transpose(-1, -2)) * self.ahead
        solved = torch.eye(self.chunk, device=x.device, dtype=x.dtype) + wrong
        for _ in range(4):  # (1 - a)^-1 = (1 + a)(1 + a^2)(1 + a^4)...
            wrong = wrong @ wrong
            solved = solved + wrong @ solved
        keys, values = solved @ (k * rate), solved @ (v * rate)
        state, rows = x.new_zeros(x.shape[0], self.heads, k.shape[-1], v.shape[-1]), []
        for i in range(q.shape[2]):
            new = values[:, :, i] - keys[:, :, i] @ state
            rows.append(q[:, :, i] @ state + (q[:, :, i] @ k[:, :, i].transpose(-1, -2) * self.so_far) @ new)
            state = state + k[:, :, i].transpose(-1, -2) @ new
        return layer["out"](layer["made"](torch.cat(rows, 2)).transpose(1, 2).flatten(2))

    def forward(self, x):
        x = self.words(x)
        for layer in self.layers:
            x = x + self.mix(layer["norm"](x), layer)
            x = x + layer["mlp"](x)
        return self.head(x)


class SpeakerRows(nn.Module):
    """Who speaks: dilated windows of eight parts in turn, weighted channels, and means and deviations by attention (ECAPA-TDNN)."""

    class Block(nn.Module):
        def __init__(self, width, dilation, parts=8):
            super().__init__()
            self.ends = nn.ModuleList(nn.Sequential(nn.Conv1d(width, width, 1), nn.ReLU(), nn.BatchNorm1d(width)) for _ in range(2))
            self.parts = nn.ModuleList(nn.Sequential(nn.Conv1d(width // parts, width // parts, 3, 1, dilation, dilation), nn.ReLU(),
                                                     nn.BatchNorm1d(width // parts)) for _ in range(parts - 1))
            self.weigh = nn.Sequential(nn.Conv1d(width, 128, 1), nn.ReLU(), nn.Conv1d(128, width, 1), nn.Sigmoid())

        def forward(self, x):
            first, *rest = self.ends[0](x).chunk(len(self.parts) + 1, 1)
            made = [first]
            for part, given in zip(self.parts, rest):
                made.append(part(given if len(made) == 1 else given + made[-1]))
            h = self.ends[1](torch.cat(made, 1))
            return x + h * self.weigh(h.mean(2, keepdim=True))

    def __init__(self, width=512):
        super().__init__()
        self.first = nn.Sequential(nn.Conv1d(80, width, 5, 1, 2), nn.ReLU(), nn.BatchNorm1d(width))
        self.blocks = nn.ModuleList(self.Block(width, dilation) for dilation in (2, 3, 4))
        self.join = nn.Sequential(nn.Conv1d(3 * width, 1536, 1), nn.ReLU())
        self.weigh = nn.Sequential(nn.Conv1d(3 * 1536, 128, 1), nn.ReLU(), nn.BatchNorm1d(128), nn.Tanh(), nn.Conv1d(128, 1536, 1))
        self.head = nn.Sequential(nn.BatchNorm1d(3072), nn.Linear(3072, 192))

    @staticmethod
    def statistics(x, weights):
        mean = (x * weights).sum(2, keepdim=True)
        return mean, ((x - mean).square() * weights).sum(2, keepdim=True).clamp(min=1e-6).sqrt()

    def forward(self, x):
        x, seen = self.first(x), []
        for block in self.blocks:
            seen.append(block(x if not seen else x + sum(seen)))
        x = self.join(torch.cat(seen, 1))
        mean, spread = self.statistics(x, 1 / x.shape[2])
        given = torch.cat([x, mean.expand_as(x), spread.expand_as(x)], 1)
        return self.head(torch.cat(self.statistics(x, self.weigh(given).softmax(2)), 1)[..., 0])


class TwoAxes(nn.Module):
    """Pixels mixed within blocks and along a grid of blocks, halves of channels each, as gates (MAXIM)."""

    def __init__(self, width=32, layers=3, side=8):
        super().__init__()
        self.first, self.last, self.side = nn.Conv2d(3, width, 3, 1, 1), nn.Conv2d(width, 3, 3, 1, 1), side
        self.layers = nn.ModuleList(nn.ModuleDict({
            "norm": nn.LayerNorm(width), "enter": nn.Linear(width, 4 * width), "leave": nn.Linear(2 * width, width),
            "grid": nn.Linear(side * side, side * side), "block": nn.Linear(side * side, side * side),
            "norms": nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)]), "local": conv(width, width),
            "weigh": nn.Sequential(nn.Linear(width, width // 4), nn.ReLU(), nn.Linear(width // 4, width), nn.Sigmoid())})
            for _ in range(layers))

    def parted(self, x, grid):
        """[n, h, w, c] as [n, parts, places, c], places in a block or one of each block."""
        n, h, w, c = x.shape
        x = x.reshape(n, self.side, h // self.side, self.side, w // self.side, c) if grid else \
            x.reshape(n, h // self.side, self.side, w // self.side, self.side, c)
        return (x.permute(0, 2, 4, 1, 3, 5) if grid else x.permute(0, 1, 3, 2, 4, 5)).flatten(3, 4).flatten(1, 2)

    def whole(self, x, h, w, grid):
        a, b = h // self.side, w // self.side
        x = x.unflatten(2, (self.side, self.side)).unflatten(1, (a, b))
        return (x.permute(0, 3, 1, 4, 2, 5) if grid else x.permute(0, 1, 3, 2, 4, 5)).reshape(x.shape[0], h, w, -1)

    def gated(self, x, layer, grid):
        h, w = x.shape[1:3]
        x, gate = self.parted(x, grid).chunk(2, -1)
        gate = layer["grid" if grid else "block"](layer["norms"][int(grid)](gate).transpose(2, 3)).transpose(2, 3)
        return self.whole(x * (gate + 1), h, w, grid)

    def forward(self, x):
        given, x = x, self.first(x)
        for layer in self.layers:
            h = x.permute(0, 2, 3, 1)
            a, b = F.gelu(layer["enter"](layer["norm"](h))).chunk(2, -1)
            h = h + layer["leave"](torch.cat([self.gated(a, layer, True), self.gated(b, layer, False)], -1))
            made = layer["local"](h.permute(0, 3, 1, 2))
            x = x + made * layer["weigh"](made.mean((2, 3)))[:, :, None, None]
        return given + self.last(x)


class ChosenVariables(nn.Module):
    """Series of several variables, which gates weigh at each step, an LSTM and attention over what it says (a temporal fusion transformer)."""

    class Gate(nn.Module):
        def __init__(self, given, width, made):
            super().__init__()
            self.body = nn.Sequential(nn.Linear(given, width), nn.ELU(), nn.Linear(width, 2 * made))
            self.way, self.norm = nn.Linear(given, made) if given != made else nn.Identity(), nn.LayerNorm(made)

        def forward(self, x):
            return self.norm(self.way(x) + F.glu(self.body(x)))

    def __init__(self, variables=12, width=64, heads=4):
        super().__init__()
        self.enter = nn.ModuleList(nn.Linear(1, width) for _ in range(variables))
        self.each = nn.ModuleList(self.Gate(width, width, width) for _ in range(variables))
        self.choose = self.Gate(variables * width, width, variables)
        self.cells, self.own = nn.LSTM(width, width, batch_first=True), nn.Linear(width, 2 * width)
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.q, self.k, self.v = nn.Linear(width, width), nn.Linear(width, width), nn.Linear(width, width // heads)
        self.out, self.last, self.head = nn.Linear(width // heads, width), self.Gate(width, width, width), nn.Linear(width, 3)
        self.heads = heads

    def forward(self, x):
        rows = [enter(x[..., i:i + 1]) for i, enter in enumerate(self.enter)]
        weights = self.choose(torch.cat(rows, -1)).softmax(-1)
        x = (torch.stack([each(row) for each, row in zip(self.each, rows)], -1) * weights[:, :, None]).sum(-1)
        x = self.norms[0](x + F.glu(self.own(self.cells(x)[0])))
        q, k = (each(x).unflatten(2, (self.heads, -1)).transpose(1, 2) for each in (self.q, self.k))
        v = self.v(x)[:, None].expand(-1, self.heads, -1, -1)
        made = F.scaled_dot_product_attention(q, k, v, is_causal=True).mean(1)
        return self.head(self.last(self.norms[1](x + self.out(made))))


class CopiedWords(nn.Module):
    """Shares of 8,000 words, of which a part is copied from the text that is read (a pointer-generator)."""

    def __init__(self, width=256, words=8000, steps=32):
        super().__init__()
        self.words, self.count, self.steps = nn.Embedding(words, width), words, steps
        self.read = nn.Sequential(*[each for _ in range(2) for each in (nn.Conv1d(width, width, 5, padding=2), nn.GELU())])
        self.write = nn.Sequential(nn.Conv1d(width, width, 3, padding=2), nn.GELU())
        self.sides, self.weigh = nn.ModuleList([nn.Linear(width, 128), nn.Linear(width, 128)]), nn.Linear(128, 1, bias=False)
        self.gate, self.head = nn.Linear(2 * width, 1), nn.Linear(2 * width, words)

    def forward(self, x):
        rows = self.words(x).transpose(1, 2)
        text, made = self.read(rows).transpose(1, 2), self.write(rows[..., :self.steps])[..., :self.steps].transpose(1, 2)
        shares = self.weigh((self.sides[0](text)[:, None] + self.sides[1](made)[:, :, None]).tanh())[..., 0].softmax(-1)
        both = torch.cat([shares @ text, made], -1)
        gate, own = self.gate(both).sigmoid(), self.head(both).softmax(-1)
        copied = torch.zeros_like(own).scatter_add(2, x[:, None].expand_as(shares), (1 - gate) * shares)
        return (gate * own + copied + 1e-6).log()


class OwnWindows(nn.Module):
    """A hundred boxes, whose 49 places each go through two matrices that the box makes for itself (Sparse R-CNN)."""

    def __init__(self, width=128, inside=32, boxes=100, rounds=3):
        super().__init__()
        self.trunk = nn.Sequential(conv(3, 32, 2), conv(32, 64, 2), conv(64, width, 2))
        self.boxes = nn.Parameter(torch.rand(1, boxes, 4) - 0.5)
        self.rows = nn.Parameter(torch.randn(1, boxes, width))
        self.rounds = nn.ModuleList(nn.ModuleDict({
            "see": nn.MultiheadAttention(width, 4, batch_first=True), "made": nn.Linear(width, 2 * width * inside),
            "norms": nn.ModuleList([nn.LayerNorm(each) for each in (width, inside, width, width, width)]),
            "out": nn.Linear(49 * width, width), "move": nn.Linear(width, 4), "inner": nn.Sequential(
                nn.Linear(width, 4 * width), nn.ReLU(), nn.Linear(4 * width, width))}) for _ in range(rounds))
        self.head, self.inside = nn.Linear(width, 84), inside
        side = (torch.arange(7) + 0.5) / 3.5 - 1
        self.register_buffer("places", torch.stack(torch.meshgrid(side, side, indexing="xy"), -1).reshape(1, 1, 49, 2))

    def forward(self, x):
        maps, n = self.trunk(x), x.shape[0]
        rows, boxes = self.rows.expand(n, -1, -1), self.boxes.expand(n, -1, -1)
        for each in self.rounds:
            norms = each["norms"]
            at = boxes[:, :, None, :2] + self.places * boxes[:, :, None, 2:].sigmoid() * 0.5
            seen = F.grid_sample(maps, at, align_corners=False).permute(0, 2, 3, 1)
            rows = norms[0](rows + each["see"](rows, rows, rows, need_weights=False)[0])
            a, b = each["made"](rows).chunk(2, -1)
            h = F.relu(norms[1](seen @ a.unflatten(2, (-1, self.inside))))
            h = F.relu(norms[2](h @ b.unflatten(2, (self.inside, -1))))
            rows = norms[3](rows + F.relu(each["out"](h.flatten(2))))
            rows = norms[4](rows + each["inner"](rows))
            boxes = boxes + 0.1 * each["move"](rows).tanh()
        return torch.cat([self.head(rows), boxes], -1)


class RandomWindows(nn.Module):
    """Series through random windows of many rates; of each the greatest number and how many are above zero (ROCKET)."""

    def __init__(self, rates=(1, 2, 4, 8, 16, 32), each=84, taps=9):
        super().__init__()
        self.windows = nn.ModuleList(nn.Conv1d(1, each, taps, padding=(taps // 2) * rate, dilation=rate) for rate in rates)
        self.head = nn.Linear(2 * each * len(rates), 10)

    def forward(self, x):
        made = []
        for window in self.windows:
            h = window(x)
            made += [h.amax(2), (h > 0).to(x.dtype).mean(2)]
        return self.head(torch.cat(made, 1))


class PassedDepths(nn.Module):
    """Depths that neighbours pass on, twelve times, as much as an image tells, and are set where they are known (CSPN)."""

    def __init__(self, width=32, rounds=12):
        super().__init__()
        self.down = nn.ModuleList([conv(4, width), conv(width, 2 * width, 2), conv(2 * width, 4 * width, 2)])
        self.up = nn.ModuleList([conv(6 * width, 2 * width), conv(3 * width, width)])
        self.head, self.rounds = nn.Conv2d(width, 9, 3, 1, 1), rounds

    def forward(self, x):
        known = x[:, 3:]
        a = self.down[0](x)
        b = self.down[1](a)
        c = self.down[2](b)
        for layer, other in zip(self.up, (b, a)):
            c = layer(torch.cat([F.interpolate(c, scale_factor=2.0, mode="nearest"), other], 1))
        told = self.head(c)
        depth, weights = told[:, :1], told[:, 1:]
        weights = weights / weights.abs().sum(1, keepdim=True).clamp(min=1e-4)
        own, sure, first = 1 - weights.sum(1, keepdim=True), (known > 0.5).to(x.dtype), depth
        for _ in range(self.rounds):
            around = F.unfold(depth, 3, padding=1).view(x.shape[0], 9, *x.shape[2:])
            around = torch.cat([around[:, :4], around[:, 5:]], 1)
            depth = (weights * around).sum(1, keepdim=True) + own * first
            depth = (1 - sure) * depth + sure * known
        return depth


class ShiftedScores(nn.Module):
    """Attention whose scores of distances are shifted row by row, over what was kept of the text before (Transformer-XL)."""

    def __init__(self, width=256, heads=4, layers=3, kept=128, length=128):
        super().__init__()
        self.words, self.head, self.heads, self.kept = nn.Embedding(1000, width), nn.Linear(width, 1000), heads, kept
        self.layers = nn.ModuleList(nn.ModuleDict({
            "q": nn.Linear(width, width, bias=False), "kv": nn.Linear(width, 2 * width, bias=False),
            "far": nn.Linear(width, width, bias=False), "out": nn.Linear(width, width, bias=False), "norm": nn.LayerNorm(width),
            "mlp": nn.Sequential(nn.Linear(width, 4 * width), nn.ReLU(), nn.Linear(4 * width, width)), "last": nn.LayerNorm(width)})
            for _ in range(layers))
        self.u, self.v = (nn.Parameter(torch.randn(heads, 1, width // heads) * 0.1) for _ in range(2))
        angles = torch.arange(kept + length - 1, -1, -1.0)[:, None] / 10000 ** (torch.arange(0, width, 2) / width)
        self.register_buffer("far", torch.cat([angles.sin(), angles.cos()], 1))
        self.register_buffer("hidden", torch.ones(length, kept + length).triu(kept + 1).bool())
        self.register_buffer("before", torch.randn(layers, 1, kept, width))

    def forward(self, x):
        x = self.words(x)
        n, length = x.shape[:2]
        for layer, before in zip(self.layers, self.before):
            q = layer["q"](x).unflatten(2, (self.heads, -1)).transpose(1, 2)
            k, v = (each.unflatten(2, (self.heads, -1)).transpose(1, 2)
                    for each in layer["kv"](torch.cat([before.expand(n, -1, -1), x], 1)).chunk(2, -1))
            far = (q + self.v) @ layer["far"](self.far).unflatten(1, (self.heads, -1)).permute(1, 2, 0)
            far = F.pad(far, (1, 0)).view(n, self.heads, -1, length)[:, :, 1:].view_as(far)
            scores = ((q + self.u) @ k.transpose(-1, -2) + far) / q.shape[-1] ** 0.5
            made = scores.masked_fill(self.hidden, float("-inf")).softmax(-1) @ v
            x = layer["norm"](x + layer["out"](made.transpose(1, 2).flatten(2)))
            x = layer["last"](x + layer["mlp"](x))
        return self.head(x)


class HeadDecays(nn.Module):
    """States with one decay a head and step, in chunks whose decays are sums of segments (Mamba-2)."""

    def __init__(self, width=256, heads=8, states=64, layers=2, chunk=64):
        super().__init__()
        inside = 2 * width
        self.words, self.last, self.head = nn.Embedding(1000, width), nn.RMSNorm(width), nn.Linear(width, 1000)
        self.layers = nn.ModuleList(nn.ModuleDict({
            "norm": nn.RMSNorm(width), "enter": nn.Linear(width, 2 * inside + 2 * states + heads, bias=False),
            "short": nn.Conv1d(inside + 2 * states, inside + 2 * states, 4, padding=3, groups=inside + 2 * states),
            "made": nn.RMSNorm(inside), "out": nn.Linear(inside, width, bias=False)}) for _ in range(layers))
        self.decays, self.through = nn.Parameter(torch.rand(layers, heads)), nn.Parameter(torch.ones(layers, heads, 1))
        self.heads, self.states, self.chunk, self.inside = heads, states, chunk, inside

    @staticmethod
    def segments(x):
        sums = x.cumsum(-1)
        seen = torch.ones(x.shape[-1], x.shape[-1], dtype=torch.bool, device=x.device).tril()
        return (sums[..., :, None] - sums[..., None, :]).masked_fill(~seen, float("-inf"))

    def mix(self, x, layer, decay, through):
        z, xbc, dt = layer["enter"](x).split([self.inside, self.inside + 2 * self.states, self.heads], -1)
        xbc = F.silu(layer["short"](xbc.transpose(1, 2))[..., :x.shape[1]].transpose(1, 2))
        given, b, c = xbc.split([self.inside, self.states, self.states], -1)
        dt = F.softplus(dt)
        h = given.unflatten(2, (self.heads, -1))
        steps = (-decay.exp() * dt).unflatten(1, (-1, self.chunk)).permute(0, 3, 1, 2)
        values = (h * dt[..., None]).unflatten(1, (-1, self.chunk))
        b, c = b.unflatten(1, (-1, self.chunk)), c.unflatten(1, (-1, self.chunk))
        sums = steps.cumsum(-1)
        own = torch.einsum("bcln,bcsn,bhcls,bcshp->bclhp", c, b, self.segments(steps).exp(), values)
        ends = torch.einsum("bcln,bhcl,bclhp->bchpn", b, (sums[..., -1:] - sums).exp(), values)
        between = self.segments(F.pad(sums[..., -1], (1, 0))).exp()
        ends = torch.cat([torch.zeros_like(ends[:, :1]), ends], 1)
        begins = torch.einsum("bhzc,bchpn->bzhpn", between, ends)[:, :-1]
        made = own + torch.einsum("bcln,bchpn,bhcl->bclhp", c, begins, sums.exp())
        made = made.flatten(1, 2) + through * h
        return layer["out"](layer["made"](made.flatten(2) * F.silu(z)))

    def forward(self, x):
        x = self.words(x)
        for i, layer in enumerate(self.layers):
            x = x + self.mix(layer["norm"](x), layer, self.decays[i], self.through[i])
        return self.head(self.last(x))
