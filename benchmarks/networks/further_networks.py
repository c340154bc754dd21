"""Networks beside those of own_networks.py: graphs, tables, rays of light, latent arrays, codebooks, styles."""
import torch
from torch import nn
from torch.nn import functional
from own_networks import conv_norm


class MessageNet(nn.Module):
    """Messages along the edges of one graph of 512 nodes, added up at their ends (a sum, a mean and a maximum in turn)."""

    def __init__(self, features=32, width=128, depth=3, nodes=512, degree=8):
        super().__init__()
        generator = torch.Generator().manual_seed(1)
        self.register_buffer("source", torch.randint(nodes, (nodes * degree,), generator=generator))
        self.register_buffer("target", torch.randint(nodes, (nodes * degree,), generator=generator))
        self.register_buffer("share", 1 / torch.bincount(self.target, minlength=nodes).clamp(min=1)[:, None].float())
        self.first = nn.Linear(features, width)
        self.message = nn.ModuleList(nn.Sequential(nn.Linear(2 * width, width), nn.ReLU(), nn.Linear(width, width))
                                     for _ in range(depth))
        self.update = nn.ModuleList(nn.Linear(2 * width, width) for _ in range(depth))
        self.norm = nn.ModuleList(nn.LayerNorm(width) for _ in range(depth))

    def forward(self, x):
        x = self.first(x)
        for message, update, norm in zip(self.message, self.update, self.norm):
            sent = message(torch.cat([x[:, self.source], x[:, self.target]], -1))
            got = torch.zeros_like(x).index_add(1, self.target, sent) * self.share.to(x.dtype)
            x = norm(x + update(torch.cat([x, got], -1)).relu())
        return x.mean(1)


class Radiance(nn.Module):
    """Color and density along rays, of positions in sines of many frequencies, and their sum in front of each other."""

    def __init__(self, width=256, depth=8, frequencies=10):
        super().__init__()
        self.register_buffer("frequencies", 2.0 ** torch.arange(frequencies))
        coded = 3 + 6 * frequencies
        self.layers = nn.ModuleList(nn.Linear(coded if i == 0 else width + coded * (i == depth // 2), width)
                                    for i in range(depth))
        self.density, self.color = nn.Linear(width, 1), nn.Sequential(nn.Linear(width, 128), nn.ReLU(), nn.Linear(128, 3))

    def forward(self, x):
        phase = (x[..., None] * self.frequencies.to(x.dtype)).flatten(-2)
        coded = torch.cat([x, phase.sin(), phase.cos()], -1)
        y = coded
        for i, layer in enumerate(self.layers):
            y = layer(torch.cat([y, coded], -1) if i == len(self.layers) // 2 else y).relu()
        depth = functional.softplus(self.density(y)[..., 0]) / 64
        shown = torch.exp(depth - depth.cumsum(-1)) * (1 - torch.exp(-depth))
        return (shown[..., None] * self.color(y).sigmoid()).sum(-2)


class TableNet(nn.Module):
    """Columns of a table as tokens: an embedding each, layers of attention, a perceptron over all of them."""

    def __init__(self, columns=26, width=64, depth=4):
        super().__init__()
        self.register_buffer("offsets", 100 * torch.arange(columns))
        self.embedding = nn.Embedding(100 * columns, width)
        layer = nn.TransformerEncoderLayer(width, 8, 4 * width, activation="gelu", batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.head = nn.Sequential(nn.Flatten(), nn.Linear(columns * width, 256), nn.ReLU(), nn.Linear(256, 1))

    def forward(self, x):
        return self.head(self.layers(self.embedding(x + self.offsets)))


class LatentReader(nn.Module):
    """A few latent vectors read many pixels by attention, then one another, as Perceiver's."""

    class Layer(nn.Module):
        def __init__(self, width, read, heads=8):
            super().__init__()
            self.heads = heads
            self.norm, self.norm_read, self.norm_out = nn.LayerNorm(width), nn.LayerNorm(read), nn.LayerNorm(width)
            self.q, self.kv, self.out = nn.Linear(width, width), nn.Linear(read, 2 * width), nn.Linear(width, width)
            self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

        def forward(self, x, read):
            q = self.q(self.norm(x)).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            k, v = self.kv(self.norm_read(read)).unflatten(-1, (2, self.heads, -1)).permute(2, 0, 3, 1, 4)
            x = x + self.out(functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
            return x + self.mlp(self.norm_out(x))

    def __init__(self, width=256, pixels=64, latents=128, depth=4):
        super().__init__()
        self.pixels = nn.Conv2d(3, pixels, 4, 4)
        self.place = nn.Parameter(0.02 * torch.randn(1, 56 * 56, pixels))
        self.latents = nn.Parameter(torch.randn(1, latents, width))
        self.read = nn.ModuleList(LatentReader.Layer(width, pixels) for _ in range(2))
        self.think = nn.ModuleList(LatentReader.Layer(width, width) for _ in range(depth))
        self.head = nn.Linear(width, 100)

    def forward(self, x):
        read = self.pixels(x).flatten(2).transpose(1, 2) + self.place
        x = self.latents.expand(x.shape[0], -1, -1)
        for i, layer in enumerate(self.think):
            if i % 2 == 0:
                x = self.read[i // 2](x, read)
            x = layer(x, x)
        return self.head(x.mean(1))


class Codebook(nn.Module):
    """An image coder whose pixels become the nearest of 512 vectors, and the image that is made of them again."""

    class Residual(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.layers = nn.Sequential(nn.ReLU(), nn.Conv2d(width, width // 2, 3, padding=1), nn.ReLU(),
                                        nn.Conv2d(width // 2, width, 1))

        def forward(self, x):
            return x + self.layers(x)

    def __init__(self, width=128, codes=512, depth=64):
        super().__init__()
        residual = Codebook.Residual
        self.encoder = nn.Sequential(nn.Conv2d(3, width // 2, 4, 2, 1), nn.ReLU(), nn.Conv2d(width // 2, width, 4, 2, 1),
                                     residual(width), residual(width), nn.Conv2d(width, depth, 1))
        self.codes = nn.Parameter(torch.randn(codes, depth))
        self.decoder = nn.Sequential(nn.Conv2d(depth, width, 3, padding=1), residual(width), residual(width),
                                     nn.ConvTranspose2d(width, width // 2, 4, 2, 1), nn.ReLU(),
                                     nn.ConvTranspose2d(width // 2, 3, 4, 2, 1))

    def forward(self, x):
        y = self.encoder(x).permute(0, 2, 3, 1)
        scores = self.codes.square().sum(1) - 2 * y @ self.codes.t()
        picked = functional.embedding(scores.argmin(-1), self.codes)
        return self.decoder(picked.permute(0, 3, 1, 2))


class StyleGenerator(nn.Module):
    """Convolutions scaled by a style for each image, and normed again, on the way from 4x4 to 64x64."""

    class Styled(nn.Module):
        def __init__(self, given, made, style):
            super().__init__()
            self.conv, self.style = nn.Conv2d(given, made, 3, padding=1, bias=False), nn.Linear(style, given)
            self.bias = nn.Parameter(torch.zeros(1, made, 1, 1))

        def forward(self, x, style):
            scale = self.style(style) + 1
            norm = torch.rsqrt((self.conv.weight.square().sum((2, 3)) @ scale.square().t()).t() + 1e-8)
            y = self.conv(x * scale[..., None, None]) * norm[..., None, None]
            return functional.leaky_relu(y + self.bias, 0.2)

    def __init__(self, style=256, widths=(256, 256, 128, 64, 32)):
        super().__init__()
        self.map = nn.Sequential(*(layer for _ in range(4) for layer in (nn.Linear(style, style), nn.LeakyReLU(0.2))))
        self.start = nn.Parameter(torch.randn(1, widths[0], 4, 4))
        pairs = list(zip((widths[0], *widths), widths))
        self.first = nn.ModuleList(StyleGenerator.Styled(*pair, style) for pair in pairs)
        self.second = nn.ModuleList(StyleGenerator.Styled(made, made, style) for _, made in pairs)
        self.colors = nn.ModuleList(nn.Conv2d(made, 3, 1) for made in widths)

    def forward(self, x):
        style = self.map(x[:, 0])
        y, image = self.start.expand(x.shape[0], -1, -1, -1), 0
        for i, (first, second, colors) in enumerate(zip(self.first, self.second, self.colors)):
            if i:
                y = functional.interpolate(y, scale_factor=2.0, mode="bilinear")
                image = functional.interpolate(image, scale_factor=2.0, mode="bilinear")
            y = second(first(y, style), style)
            image = image + colors(y)
        return image


class StereoNet(nn.Module):
    """Two images beside each other: correlations of their features at many shifts, and convolutions over them."""

    def __init__(self, width=48, shifts=16):
        super().__init__()
        self.shifts = shifts
        self.features = nn.Sequential(conv_norm(3, 32, stride=2), conv_norm(32, width, stride=2), conv_norm(width, width))
        self.over = nn.Sequential(conv_norm(shifts, 64), conv_norm(64, 64), nn.Conv2d(64, shifts, 3, padding=1))

    def forward(self, x):
        left, right = self.features(x[:, :3]), self.features(x[:, 3:])
        padded = functional.pad(right, (self.shifts - 1, 0))
        costs = torch.stack([(left * padded[..., i:i + left.shape[-1]]).mean(1) for i in range(self.shifts)], 1)
        weights = self.over(costs).softmax(1)
        return (weights * torch.arange(self.shifts, device=x.device, dtype=x.dtype)[:, None, None]).sum(1)
