"""Networks of mechanisms that those before do not have: retention, pixels one after another, correlations of crops, steps of a
differential equation, sets of neighbours, spectra."""
import math

import torch
from torch import nn
from torch.nn import functional
from own_networks import conv_norm


class Retention(nn.Module):
    """Decaying linear attention in its parallel form, gated, with norms of groups (RetNet)."""

    class Block(nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            self.heads = heads
            self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
            self.all = nn.Linear(width, 4 * width, bias=False)
            self.norm, self.out = nn.GroupNorm(heads, width), nn.Linear(width, width, bias=False)
            self.wide = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

        def forward(self, x, decay):
            batch, tokens, width = x.shape
            q, k, v, gate = self.all(self.first(x)).chunk(4, -1)
            q, k, v = (each.unflatten(-1, (self.heads, -1)).transpose(1, 2) for each in (q, k, v))
            kept = (q @ k.transpose(-1, -2)) * (decay / math.sqrt(q.shape[-1]))
            mixed = (kept @ v).transpose(1, 2).reshape(batch * tokens, width)
            x = x + self.out(functional.silu(gate) * self.norm(mixed).view(batch, tokens, width))
            return x + self.wide(self.second(x))

    def __init__(self, width=512, heads=8, depth=3, tokens=256):
        super().__init__()
        self.words = nn.Embedding(100, width)
        apart = (torch.arange(tokens)[:, None] - torch.arange(tokens)).float()
        rates = 1 - 2.0 ** (-5 - torch.arange(heads))[:, None, None]
        self.register_buffer("decay", torch.where(apart >= 0, rates ** apart.clamp(min=0), 0))
        self.blocks = nn.ModuleList(Retention.Block(width, heads) for _ in range(depth))

    def forward(self, ids):
        x = self.words(ids)
        for block in self.blocks:
            x = block(x, self.decay.to(x.dtype))
        return x


class GatedPixels(nn.Module):
    """Pixels from those above and to the left, by convolutions that are shifted (a gated PixelCNN)."""

    def __init__(self, width=64, depth=4):
        super().__init__()
        self.first = nn.Conv2d(3, width, 1)
        self.above = nn.ModuleList(nn.Conv2d(width, 2 * width, (2, 3)) for _ in range(depth))
        self.left = nn.ModuleList(nn.Conv2d(width, 2 * width, (1, 2)) for _ in range(depth))
        self.between = nn.ModuleList(nn.Conv2d(2 * width, 2 * width, 1) for _ in range(depth))
        self.out = nn.ModuleList(nn.Conv2d(width, width, 1) for _ in range(depth))
        self.last = nn.Conv2d(width, 256, 1)

    @staticmethod
    def gate(x):
        a, b = x.chunk(2, 1)
        return a.tanh() * b.sigmoid()

    def forward(self, x):
        across = down = self.first(x)
        for above, left, between, out in zip(self.above, self.left, self.between, self.out):
            seen = above(functional.pad(down, (1, 1, 2, 0))[:, :, :-1])
            down = GatedPixels.gate(seen)
            across = across + out(GatedPixels.gate(left(functional.pad(across, (2, 0))[..., :-1]) + between(seen)))
        return self.last(across.relu())


class Tracker(nn.Module):
    """Where a crop lies in an image: features of one are filters for those of the other (Siamese)."""

    def __init__(self, width=128):
        super().__init__()
        self.features = nn.Sequential(conv_norm(3, 64, stride=2), conv_norm(64, width, stride=2), conv_norm(width, width, stride=2),
                                      nn.Conv2d(width, width, 3, padding=1))
        self.head = nn.Sequential(conv_norm(width, width), nn.Conv2d(width, 6, 1))

    def forward(self, x):
        crop, image = self.features(x[:, :, :64, :64]), self.features(x)
        batch, width = image.shape[:2]
        found = functional.conv2d(image.reshape(1, batch * width, *image.shape[2:]),
                                  crop.reshape(batch * width, 1, *crop.shape[2:]), groups=batch * width)
        return self.head(found.view(batch, width, *found.shape[2:]))


class Steps(nn.Module):
    """Four steps of a differential equation, each by four slopes (Runge and Kutta)."""

    def __init__(self, width=64, steps=4):
        super().__init__()
        self.steps = steps
        self.first = nn.Conv2d(3, width, 3, 2, 1)
        self.norms = nn.ModuleList(nn.GroupNorm(8, width) for _ in range(2))
        self.convs = nn.ModuleList(nn.Conv2d(width + 1, width, 3, padding=1) for _ in range(2))
        self.last = nn.Linear(width, 10)

    def slope(self, t, x):
        for norm, conv in zip(self.norms, self.convs):
            x = norm(x).relu()
            x = conv(torch.cat([torch.full_like(x[:, :1], t), x], 1))
        return x

    def forward(self, x):
        x, h = self.first(x), 1 / self.steps
        for i in range(self.steps):
            t = i * h
            a = self.slope(t, x)
            b = self.slope(t + h / 2, x + h / 2 * a)
            c = self.slope(t + h / 2, x + h / 2 * b)
            d = self.slope(t + h, x + h * c)
            x = x + h / 6 * (a + 2 * b + 2 * c + d)
        return self.last(x.mean((2, 3)))


class PointSets(nn.Module):
    """Points in sets of neighbours around some of them, and the largest feature of each set (PointNet++)."""

    class Level(nn.Module):
        def __init__(self, given, made, every, near):
            super().__init__()
            self.every, self.near = every, near
            self.layers = nn.Sequential(nn.Linear(given + 3, made // 2), nn.ReLU(), nn.Linear(made // 2, made), nn.ReLU())

        def forward(self, places, features):
            centres = places[:, ::self.every]
            apart = (centres * centres).sum(-1, keepdim=True) - 2 * centres @ places.transpose(1, 2) + (places * places).sum(-1)[:, None]
            nearest = apart.topk(self.near, largest=False).indices
            batch = torch.arange(places.shape[0], device=places.device)[:, None, None]
            moved = places[batch, nearest] - centres[:, :, None]
            return centres, self.layers(torch.cat([moved, features[batch, nearest]], -1)).amax(2)

    def __init__(self):
        super().__init__()
        self.levels = nn.ModuleList([PointSets.Level(3, 128, 4, 32), PointSets.Level(128, 256, 4, 32)])
        self.whole = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 1024), nn.ReLU())
        self.head = nn.Sequential(nn.Linear(1024, 256), nn.ReLU(), nn.Linear(256, 40))

    def forward(self, x):
        places, features = x, x
        for level in self.levels:
            places, features = level(places, features)
        return self.head(self.whole(features).amax(1))


class Spectra(nn.Module):
    """Low frequencies of an image, by products with sines and cosines, mixed by weights of their own (a Fourier neural operator)."""

    class Layer(nn.Module):
        def __init__(self, width, side, kept):
            super().__init__()
            turns = 2 * math.pi / side * torch.arange(side)[:, None] * torch.arange(kept)
            self.register_buffer("waves", torch.cat([turns.cos(), -turns.sin()], 1) / math.sqrt(side))  # [side, 2 kept]
            self.weights = nn.Parameter(torch.randn(2 * kept, 2 * kept, width, width) / width)
            self.beside = nn.Conv2d(width, width, 1)

        def forward(self, x):
            spectrum = torch.einsum("bchw,hk,wl->klbc", x, self.waves, self.waves)
            mixed = spectrum @ self.weights
            return torch.einsum("klbc,hk,wl->bchw", mixed, self.waves, self.waves) + self.beside(x)

    def __init__(self, width=32, side=64, kept=12, depth=4):
        super().__init__()
        self.first, self.last = nn.Conv2d(1, width, 1), nn.Sequential(nn.Conv2d(width, 128, 1), nn.GELU(), nn.Conv2d(128, 1, 1))
        self.layers = nn.ModuleList(Spectra.Layer(width, side, kept) for _ in range(depth))

    def forward(self, x):
        x = self.first(x)
        for layer in self.layers:
            x = functional.gelu(layer(x))
        return self.last(x)
