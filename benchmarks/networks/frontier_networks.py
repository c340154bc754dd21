"""Networks of kinds that came up of late, of images, films, points and fields: neighbours that pixels see, windows that overlap, scans in
four directions, scores that fade with distance, tokens that stand for others, sides of boxes as shares, memories of frames, codes of scales."""
import torch
import torch.nn.functional as F
from torch import nn


def conv_norm(given, made, size=3, stride=1, groups=1):
    return nn.Sequential(nn.Conv2d(given, made, size, stride, size // 2, groups=groups, bias=False), nn.BatchNorm2d(made), nn.GELU())


def perceptron(width, times=4):
    return nn.Sequential(nn.LayerNorm(width), nn.Linear(width, times * width), nn.GELU(), nn.Linear(times * width, width))


class PixelNeighbours(nn.Module):
    """Each pixel sees the 7x7 pixels around it, by scores with a bias for each place (neighbourhood attention, NAT)."""

    class Layer(nn.Module):
        def __init__(self, width, heads, size=7):
            super().__init__()
            self.norm, self.parts, self.out = nn.BatchNorm2d(width), nn.Conv2d(width, 3 * width, 1), nn.Conv2d(width, width, 1)
            self.bias, self.heads, self.size = nn.Parameter(torch.randn(heads, 1, size * size, 1) * 0.02), heads, size
            self.after = nn.Sequential(nn.BatchNorm2d(width), nn.Conv2d(width, 3 * width, 1), nn.GELU(), nn.Conv2d(3 * width, width, 1))

        def forward(self, x):
            batch, width, height, columns = x.shape
            q, k, v = self.parts(self.norm(x)).chunk(3, 1)
            k, v = (F.unfold(each, self.size, padding=self.size // 2).view(batch, self.heads, -1, self.size ** 2, height * columns) for each in (k, v))
            q = q.reshape(batch, self.heads, -1, 1, height * columns) * (width // self.heads) ** -0.5
            shares = ((q * k).sum(2, keepdim=True) + self.bias).softmax(3)
            x = x + self.out((shares * v).sum(3).view(x.shape))
            return x + self.after(x)

    def __init__(self, width=64):
        super().__init__()
        self.stem = nn.Sequential(conv_norm(3, width // 2, stride=2), conv_norm(width // 2, width, stride=2))
        self.first = nn.Sequential(PixelNeighbours.Layer(width, 2), PixelNeighbours.Layer(width, 2))
        self.down, self.second = conv_norm(width, 2 * width, stride=2), nn.Sequential(PixelNeighbours.Layer(2 * width, 4), PixelNeighbours.Layer(2 * width, 4))
        self.head = nn.Linear(2 * width, 100)

    def forward(self, x):
        return self.head(self.second(self.down(self.first(self.stem(x)))).mean((2, 3)))


class OverlappingWindows(nn.Module):
    """Larger images: windows see larger ones around themselves, channels are weighed beside (HAT)."""

    class Layer(nn.Module):
        def __init__(self, width, heads=6, window=8, around=12):
            super().__init__()
            self.norm, self.parts, self.out, self.after = nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width), perceptron(width, 2)
            self.bias, self.heads, self.window, self.around = nn.Parameter(torch.randn(heads, window ** 2, around ** 2) * 0.02), heads, window, around
            self.windows = nn.Sequential(nn.Conv2d(width, width // 3, 3, 1, 1), nn.GELU(), nn.Conv2d(width // 3, width, 3, 1, 1))
            self.weigh = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(width, width // 8, 1), nn.ReLU(), nn.Conv2d(width // 8, width, 1), nn.Sigmoid())

        def forward(self, x):
            batch, height, columns, width = x.shape
            w, heads = self.window, self.heads
            q, both = self.parts(self.norm(x)).split([width, 2 * width], -1)
            q = q.view(batch, height // w, w, columns // w, w, heads, -1).permute(0, 1, 3, 5, 2, 4, 6).flatten(4, 5).flatten(0, 2)
            met = F.unfold(both.permute(0, 3, 1, 2), self.around, stride=w, padding=(self.around - w) // 2)
            k, v = met.view(batch, 2, heads, width // heads, self.around ** 2, -1).permute(1, 0, 5, 2, 4, 3).flatten(1, 2)
            seen = F.scaled_dot_product_attention(q, k, v, attn_mask=self.bias)
            seen = seen.view(batch, height // w, columns // w, heads, w, w, -1).permute(0, 1, 4, 2, 5, 3, 6).reshape(x.shape)
            image = self.windows(self.norm(x).permute(0, 3, 1, 2))
            x = x + self.out(seen) + 0.01 * (image * self.weigh(image)).permute(0, 2, 3, 1)
            return x + self.after(x)

    def __init__(self, width=96, depth=3):
        super().__init__()
        self.given, self.layers = nn.Conv2d(3, width, 3, 1, 1), nn.ModuleList(OverlappingWindows.Layer(width) for _ in range(depth))
        self.last = nn.Sequential(nn.Conv2d(width, 48, 3, 1, 1), nn.PixelShuffle(4))

    def forward(self, x):
        first = self.given(x)
        x = first.permute(0, 2, 3, 1)
        for layer in self.layers:
            x = layer(x)
        return self.last(first + x.permute(0, 3, 1, 2))


class FourScans(nn.Module):
    """Pixels in four orders, each a state space in chunks of 49 whose decays pixels choose (VMamba, Mamba-2)."""

    class Layer(nn.Module):
        def __init__(self, width, heads=4, state=16, chunk=49):
            super().__init__()
            self.norm, self.given, self.window = nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.Conv2d(width, width, 3, 1, 1, groups=width)
            self.told, self.speeds = nn.Linear(width, 2 * state + heads), nn.Parameter(torch.rand(heads) + 0.5)
            self.norm2, self.out, self.heads, self.state, self.chunk = nn.LayerNorm(width), nn.Linear(width, width), heads, state, chunk

        def forward(self, x):
            batch, height, columns, width = x.shape
            value, gate = self.given(self.norm(x)).chunk(2, -1)
            value = F.silu(self.window(value.permute(0, 3, 1, 2)).permute(0, 2, 3, 1))
            lines, turned = value.flatten(1, 2), value.transpose(1, 2).flatten(1, 2)
            rows = torch.stack([lines, turned, lines.flip(1), turned.flip(1)], 1)
            key, query, step = self.told(rows).split([self.state, self.state, self.heads], -1)
            step = F.softplus(step)
            fade = (-step * self.speeds).transpose(2, 3).unflatten(3, (-1, self.chunk)).cumsum(-1)
            rows = (rows.unflatten(-1, (self.heads, -1)) * step[..., None]).transpose(2, 3).unflatten(3, (-1, self.chunk))
            key, query = (each.unflatten(2, (-1, self.chunk))[:, :, None] for each in (key, query))
            lower = torch.ones(self.chunk, self.chunk, dtype=torch.bool, device=x.device).tril()
            decay = torch.where(lower, fade[..., :, None] - fade[..., None, :], -30.0).exp()
            made = (query @ key.transpose(-1, -2) * decay) @ rows
            added = (key * (fade[..., -1:] - fade).exp()[..., None]).transpose(-1, -2) @ rows
            state, before = torch.zeros_like(added[:, :, :, 0]), []
            for i in range(added.shape[3]):
                before.append(state)
                state = state * fade[:, :, :, i, -1, None, None].exp() + added[:, :, :, i]
            made = made + query * fade.exp()[..., None] @ torch.stack(before, 3)
            made = made.flatten(3, 4).transpose(2, 3).flatten(3)
            lines, turned = made[:, 0] + made[:, 2].flip(1), made[:, 1] + made[:, 3].flip(1)
            made = lines.view(batch, height, columns, width) + turned.view(batch, columns, height, width).transpose(1, 2)
            return x + self.out(self.norm2(made) * F.silu(gate))

    def __init__(self, width=96, depth=2):
        super().__init__()
        self.stem, self.layers = nn.Conv2d(3, width, 8, 8), nn.ModuleList(FourScans.Layer(width) for _ in range(depth))
        self.after, self.head = nn.ModuleList(perceptron(width) for _ in range(depth)), nn.Linear(width, 100)

    def forward(self, x):
        x = self.stem(x).permute(0, 2, 3, 1)
        for layer, after in zip(self.layers, self.after):
            x = layer(x)
            x = x + after(x)
        return self.head(x.mean((1, 2)))


class FadingPixels(nn.Module):
    """Attention along lines, then along columns, whose scores fade with distance, behind turned keys (RMT)."""

    class Layer(nn.Module):
        def __init__(self, width, heads=4, size=28):
            super().__init__()
            self.norm, self.parts, self.out, self.heads = nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width), heads
            self.near, self.positions = nn.Conv2d(width, width, 5, 1, 2, groups=width), nn.Conv2d(width, width, 3, 1, 1, groups=width)
            speed, at = torch.log(1 - 2.0 ** (-1 - 3 * torch.arange(heads) / heads)), torch.arange(size)
            self.register_buffer("fade", speed[:, None, None] * (at[:, None] - at).abs())
            self.after = perceptron(width)

        def forward(self, x):
            x = x + self.positions(x.permute(0, 3, 1, 2)).permute(0, 2, 3, 1)
            q, k, v = self.parts(self.norm(x)).chunk(3, -1)
            near = self.near(v.permute(0, 3, 1, 2)).permute(0, 2, 3, 1)
            q, k, v = (each.unflatten(-1, (self.heads, -1)).transpose(2, 3) for each in (q, k, v))  # [images, lines, heads, columns, channels]
            scale = q.shape[-1] ** -0.5
            v = ((q @ k.transpose(-1, -2)) * scale + self.fade).softmax(-1) @ v
            q, k, v = (each.transpose(1, 3) for each in (q, k, v))
            v = ((q @ k.transpose(-1, -2)) * scale + self.fade).softmax(-1) @ v
            x = x + self.out(v.permute(0, 3, 1, 2, 4).flatten(3) + near)
            return x + self.after(x)

    def __init__(self, width=128, depth=3):
        super().__init__()
        self.stem, self.layers = nn.Sequential(conv_norm(3, width // 2, stride=2), conv_norm(width // 2, width, stride=2), conv_norm(width, width, stride=2)), nn.Sequential(*(FadingPixels.Layer(width) for _ in range(depth)))
        self.head = nn.Linear(width, 100)

    def forward(self, x):
        return self.head(self.layers(self.stem(x).permute(0, 2, 3, 1)).mean((1, 2)))


class AgentTokens(nn.Module):
    """49 means of the queries read all pixels, and all pixels read them; biases are made large from small ones (agent attention)."""

    class Layer(nn.Module):
        def __init__(self, width, heads=4, size=28, agents=7):
            super().__init__()
            self.norm, self.parts, self.out, self.near = nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width), nn.Conv2d(width, width, 3, 1, 1, groups=width)
            self.given, self.told = nn.Parameter(torch.randn(heads, agents ** 2, 7, 7) * 0.02), nn.Parameter(torch.randn(heads, agents ** 2, size, 1) * 0.02)
            self.heads, self.size, self.agents, self.after = heads, size, agents, perceptron(width)

        def forward(self, x):
            batch, pixels, width = x.shape
            q, k, v = self.parts(self.norm(x)).chunk(3, -1)
            image = lambda each: each.transpose(1, 2).unflatten(2, (self.size, self.size))
            few = F.adaptive_avg_pool2d(image(q), self.agents).flatten(2).transpose(1, 2)
            near = self.near(image(v)).flatten(2).transpose(1, 2)
            q, k, v, few = (each.unflatten(-1, (self.heads, -1)).transpose(1, 2) for each in (q, k, v, few))
            bias = F.interpolate(self.given, size=(self.size, self.size), mode="bilinear") + self.told
            seen = F.scaled_dot_product_attention(few, k, v, attn_mask=bias.flatten(2))
            x = x + self.out(F.scaled_dot_product_attention(q, few, seen, attn_mask=bias.flatten(2).transpose(1, 2)).transpose(1, 2).flatten(2) + near)
            return x + self.after(x)

    def __init__(self, width=128, depth=3):
        super().__init__()
        self.stem, self.layers, self.head = nn.Conv2d(3, width, 8, 8), nn.Sequential(*(AgentTokens.Layer(width) for _ in range(depth))), nn.Linear(width, 100)

    def forward(self, x):
        return self.head(self.layers(self.stem(x).flatten(2).transpose(1, 2)).mean(1))


class SharesOfSides(nn.Module):
    """Boxes whose four sides are shares of 33 steps, finer near the middle, which three layers of queries correct (D-FINE)."""

    def __init__(self, width=128, queries=100, steps=33, depth=3, points=4):
        super().__init__()
        self.trunk = nn.Sequential(conv_norm(3, 32, 3, 2), conv_norm(32, 64, 3, 2), conv_norm(64, width, 3, 2))
        self.down, self.score = conv_norm(width, width, 3, 2), nn.Linear(width, 20)
        self.among, self.norms = nn.ModuleList(nn.MultiheadAttention(width, 8, batch_first=True) for _ in range(depth)), nn.ModuleList(nn.LayerNorm(width) for _ in range(2 * depth))
        self.moves, self.weights = nn.ModuleList(nn.Linear(width, 2 * 8 * 2 * points) for _ in range(depth)), nn.ModuleList(nn.Linear(width, 8 * 2 * points) for _ in range(depth))
        self.after, self.sides = nn.ModuleList(perceptron(width) for _ in range(depth)), nn.ModuleList(nn.Linear(width, 4 * steps) for _ in range(depth))
        self.first, self.queries, self.points, self.gate = nn.Linear(width, 4), queries, points, nn.Linear(2 * width, 2 * width)
        at = torch.linspace(-1, 1, steps)
        self.register_buffer("steps", at.sign() * (0.5 * at.abs().exp() - 0.5))

    def forward(self, x):
        maps = [self.trunk(x)]
        maps.append(self.down(maps[0]))
        pixels = torch.cat([each.flatten(2).transpose(1, 2) for each in maps], 1)
        best = self.score(pixels).amax(-1).topk(self.queries, 1).indices
        rows = pixels.gather(1, best[..., None].expand(-1, -1, pixels.shape[-1]))
        box, shares = self.first(rows).sigmoid(), 0
        heads = [each.unflatten(1, (8, -1)).flatten(0, 1) for each in maps]
        for i, among in enumerate(self.among):
            rows = self.norms[2 * i](rows + among(rows, rows, rows, need_weights=False)[0])
            moves = self.moves[i](rows).unflatten(-1, (8, 2, self.points, 2)).tanh() * box[:, :, None, None, None, 2:] * 0.5
            places = (box[:, :, None, None, None, :2] + moves) * 2 - 1
            weights = self.weights[i](rows).unflatten(-1, (8, -1)).softmax(-1).permute(0, 2, 1, 3).flatten(0, 1)
            met = [F.grid_sample(each, places[:, :, :, j].transpose(1, 2).flatten(0, 1), align_corners=False) for j, each in enumerate(heads)]
            read = (torch.cat(met, -1) * weights[:, None]).sum(-1).unflatten(0, (-1, 8)).flatten(1, 2).transpose(1, 2)
            one, other = self.gate(torch.cat([rows, read], -1)).sigmoid().chunk(2, -1)
            rows = self.norms[2 * i + 1](one * rows + other * read)
            rows = rows + self.after[i](rows)
            shares = shares + self.sides[i](rows).unflatten(-1, (4, -1))
            far = (shares.softmax(-1) * self.steps).sum(-1) * box[..., 2:].repeat(1, 1, 2)
            box = torch.cat([box[..., :2] + (far[..., 2:] - far[..., :2]) / 2, (box[..., 2:] + far[..., :2] + far[..., 2:]).clamp(min=0.01)], -1)
        return torch.cat([box, self.score(rows)], -1)


class RememberedFrames(nn.Module):
    """Pixels of a frame see each other and what is kept of three frames before, keys turned by places of an image (SAM 2)."""

    def __init__(self, width=128, kept=32, size=16, frames=3, depth=2):
        super().__init__()
        self.trunk = nn.Sequential(conv_norm(3, 32, 3, 2), conv_norm(32, 64, 3, 2), conv_norm(64, width, 3, 2))
        self.keep, self.size, self.frames = nn.Conv2d(width, kept, 1), size, frames
        self.when = nn.Parameter(torch.randn(frames, 1, kept) * 0.02)
        self.own, self.key, self.value, self.query = (nn.ModuleList(nn.Linear(a, b) for _ in range(depth)) for a, b in ((width, 3 * width), (kept, width), (kept, width), (width, width)))
        self.out, self.norms, self.after = nn.ModuleList(nn.Linear(width, width) for _ in range(2 * depth)), nn.ModuleList(nn.LayerNorm(width) for _ in range(2 * depth)), nn.ModuleList(perceptron(width) for _ in range(depth))
        speeds, at = 10000 ** -(torch.arange(0, width // 4) / (width // 4)), torch.arange(size * size)
        turns = torch.cat([(at % size)[:, None] * speeds, (at // size)[:, None] * speeds], -1)
        self.register_buffer("cos", turns.cos())
        self.register_buffer("sin", turns.sin())
        self.last = nn.Sequential(nn.ConvTranspose2d(width, 32, 2, 2), nn.GELU(), nn.ConvTranspose2d(32, 1, 2, 2))

    def turned(self, x, times=1):
        cos, sin = self.cos.to(x.dtype).repeat(times, 1), self.sin.to(x.dtype).repeat(times, 1)
        a, b = x.unflatten(-1, (-1, 2)).unbind(-1)
        return torch.stack([a * cos - b * sin, a * sin + b * cos], -1).flatten(-2)

    def forward(self, x):
        batch = x.shape[0]
        maps = self.trunk(x.flatten(0, 1)).unflatten(0, (batch, -1))
        now = maps[:, -1].flatten(2).transpose(1, 2)
        kept = (self.keep(maps[:, :-1].flatten(0, 1)).flatten(2).transpose(1, 2).unflatten(0, (batch, -1)) + self.when).flatten(1, 2)
        for i, after in enumerate(self.after):
            q, k, v = self.own[i](self.norms[2 * i](now)).chunk(3, -1)
            seen = F.scaled_dot_product_attention(self.turned(q)[:, None], self.turned(k)[:, None], v[:, None])[:, 0]
            now = now + self.out[2 * i](seen)
            q, k = self.turned(self.query[i](self.norms[2 * i + 1](now))), self.turned(self.key[i](kept), self.frames)
            now = now + self.out[2 * i + 1](F.scaled_dot_product_attention(q[:, None], k[:, None], self.value[i](kept)[:, None])[:, 0])
            now = now + after(now)
        return self.last(now.transpose(1, 2).unflatten(2, (self.size, self.size)))


class CodesOfScales(nn.Module):
    """Codes of an image at sizes 1 to 8, each scale seeing those before; their sum is enlarged and read again (VAR)."""

    def __init__(self, width=256, codes=512, heads=4, depth=3, sizes=(1, 2, 4, 8)):
        super().__init__()
        total = sum(size * size for size in sizes)
        self.sizes, self.heads = sizes, heads
        self.words, self.given, self.first = nn.Embedding(codes, 32), nn.Linear(32, width), nn.Parameter(torch.randn(1, 1, width))
        self.places, self.kinds = nn.Parameter(torch.randn(1, total, width) * 0.02), nn.Embedding(100, width)
        scale = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor([size * size for size in sizes]))
        self.register_buffer("mask", torch.where(scale[:, None] >= scale, 0.0, -1e4))
        self.shifts, self.parts = nn.ModuleList(nn.Linear(width, 6 * width) for _ in range(depth)), nn.ModuleList(nn.Linear(width, 3 * width) for _ in range(depth))
        self.out, self.wide = nn.ModuleList(nn.Linear(width, width) for _ in range(depth)), nn.ModuleList(nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(approximate="tanh"), nn.Linear(4 * width, width)) for _ in range(depth))
        self.smooth, self.head = nn.Conv2d(32, 32, 3, 1, 1), nn.Linear(width, codes)

    def forward(self, x):
        kind = self.kinds(x[:, 0])
        parts, at, image = [self.first + kind[:, None]], 1, 0
        for size, larger in zip(self.sizes, self.sizes[1:]):
            made = self.words(x[:, at:at + size * size]).transpose(1, 2).unflatten(2, (size, size))
            made = F.interpolate(made, size=(8, 8), mode="bicubic")
            image = image + 0.5 * made + 0.5 * self.smooth(made)
            parts.append(self.given(F.adaptive_avg_pool2d(image, larger).flatten(2).transpose(1, 2)))
            at += size * size
        x = torch.cat(parts, 1) + self.places
        for shifts, parts, out, wide in zip(self.shifts, self.parts, self.out, self.wide):
            a, b, c, d, e, f = shifts(F.silu(kind))[:, None].chunk(6, -1)
            q, k, v = (each.unflatten(-1, (self.heads, -1)).transpose(1, 2) for each in parts(F.layer_norm(x, x.shape[-1:]) * (1 + a) + b).chunk(3, -1))
            q, k = F.normalize(q, dim=-1) * 8, F.normalize(k, dim=-1)
            x = x + c * out(F.scaled_dot_product_attention(q, k, v, attn_mask=self.mask.to(q.dtype), scale=1.0).transpose(1, 2).flatten(2))
            x = x + f * wide(F.layer_norm(x, x.shape[-1:]) * (1 + d) + e)
        return self.head(x)


class FrequencyBlocks(nn.Module):
    """Tokens of a field mixed as frequencies, by perceptrons of blocks of channels, with small ones set to zero (AFNO)."""

    class Layer(nn.Module):
        def __init__(self, width, size=(16, 32), blocks=4):
            super().__init__()
            each, rows = width // blocks, [torch.arange(n) for n in size]
            turns = [6.283185307 * row[:, None] * row / n for row, n in zip(rows, size)]
            for name, turn in zip("ab", turns):
                self.register_buffer(name + "_cos", turn.cos() / len(turn) ** 0.5)
                self.register_buffer(name + "_sin", turn.sin() / len(turn) ** 0.5)
            self.first, self.second = (nn.ParameterList(nn.Parameter(torch.randn(blocks, each, each) / each ** 0.5) for _ in range(2)) for _ in range(2))
            self.norms, self.after, self.blocks = nn.ModuleList(nn.LayerNorm(width) for _ in range(2)), nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)), blocks

        def turn(self, real, other, name, dims, sign):
            cos, sin = getattr(self, name + "_cos").to(real.dtype), getattr(self, name + "_sin").to(real.dtype) * sign
            apply = lambda x, m: torch.einsum(dims, x, m)
            return apply(real, cos) + apply(other, sin), apply(other, cos) - apply(real, sin)

        def forward(self, x):
            given = self.norms[0](x)
            real, other = self.turn(given, torch.zeros_like(given), "a", "bhwc,hk->bkwc", 1)
            real, other = self.turn(real, other, "b", "bhwc,wk->bhkc", 1)
            for weights, last in ((self.first, False), (self.second, True)):
                a, b = (each.unflatten(-1, (self.blocks, -1)) for each in (real, other))
                times = lambda y, w: torch.einsum("bhwgc,gcd->bhwgd", y, w).flatten(-2)
                real, other = times(a, weights[0]) - times(b, weights[1]), times(a, weights[1]) + times(b, weights[0])
                real, other = (F.softshrink(real, 0.01), F.softshrink(other, 0.01)) if last else (real.relu(), other.relu())
            real, other = self.turn(real, other, "a", "bhwc,hk->bkwc", -1)
            real, _ = self.turn(real, other, "b", "bhwc,wk->bhkc", -1)
            x = x + real + given
            return x + self.after(self.norms[1](x))

    def __init__(self, fields=20, width=128, depth=3):
        super().__init__()
        self.given, self.layers = nn.Conv2d(fields, width, 4, 4), nn.Sequential(*(FrequencyBlocks.Layer(width) for _ in range(depth)))
        self.last = nn.ConvTranspose2d(width, fields, 4, 4)

    def forward(self, x):
        return self.last(self.layers(self.given(x).permute(0, 2, 3, 1)).permute(0, 3, 1, 2))
