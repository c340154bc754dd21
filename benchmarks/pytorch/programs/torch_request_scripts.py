"""Further SCRIPTS of many fields: pictures that are changed, networks of complex numbers, lists of requests, masked words."""

import dataclasses

import torch
import torch.nn.functional as F
from torch import nn
from torch_training_scripts import descend, script, trained


@script("pictures-changed-at-random")
def pictures_changed_at_random(run):
    """Colours turned in other spaces, contrasts, tables of levels made equal, blurs by separable filters, places erased, maps of turns and waves, mixed and cut pictures, by given draws."""
    @run.compile
    def f(x, draws, labels):
        high, low = x.amax(1), x.amin(1)
        chroma = (high - low).clamp(min=1e-6)
        r, g, b = x.unbind(1)
        hue = torch.where(high == r, (g - b) / chroma % 6, torch.where(high == g, (b - r) / chroma + 2, (r - g) / chroma + 4)) / 6
        hue = (hue + draws[:, 0, None, None]) % 1
        part = (hue[:, None] * 6 + torch.tensor([5.0, 3, 1], dtype=x.dtype)[:, None, None]) % 6
        turned = high[:, None] - chroma[:, None] * torch.minimum(part, 4 - part).clamp(0, 1)
        grey = (turned * torch.tensor([0.299, 0.587, 0.114], dtype=x.dtype)[:, None, None]).sum(1, keepdim=True)
        toned = (grey + (turned - grey) * (0.5 + draws[:, 1, None, None, None])).clamp(0, 1)
        levels = (toned * 15.999).long().flatten(2)
        counts = torch.zeros(*levels.shape[:2], 16, dtype=x.dtype).scatter_add(2, levels, torch.ones_like(toned).flatten(2))
        table = counts.cumsum(-1) / levels.shape[-1]
        equal = table.gather(2, levels).view_as(toned)
        sigma = 0.5 + draws[:, 2]
        taps = torch.exp(-torch.arange(-2, 3, dtype=x.dtype).square() / (2 * sigma[:, None].square()))
        taps = (taps / taps.sum(1, keepdim=True)).repeat_interleave(3, 0)
        flat = equal.reshape(1, -1, *x.shape[2:])
        blurred = F.conv2d(F.conv2d(F.pad(flat, (2, 2, 2, 2), mode="reflect"), taps[:, None, None], groups=len(taps)), taps[:, None, :, None], groups=len(taps)).view_as(x)
        angle = (draws[:, 3] - 0.5)
        theta = torch.stack((angle.cos(), -angle.sin(), draws[:, 4] / 4, angle.sin(), angle.cos(), draws[:, 5] / 4), 1).view(-1, 2, 3)
        grid = F.affine_grid(theta, x.shape, align_corners=False)
        warped = F.grid_sample(blurred, grid + 0.05 * (grid.flip(-1) * 6).sin(), padding_mode="reflection", align_corners=False)
        rows, columns = torch.arange(x.shape[2])[:, None], torch.arange(x.shape[3])
        top, left = (draws[:, 6] * 8).long()[:, None, None], (draws[:, 7] * 8).long()[:, None, None]
        hole = (rows >= top) & (rows < top + 5) & (columns >= left) & (columns < left + 6)
        cut = torch.where(hole[:, None], warped.roll(1, 0), warped)
        share = hole.to(x.dtype).mean((1, 2))
        target = F.one_hot(labels, 5) * (1 - share)[:, None] + F.one_hot(labels.roll(1), 5) * share[:, None]
        return turned, toned, equal, warped, cut, target, (cut.clamp(0, 1) * 255).round().to(torch.uint8).sum(dtype=torch.int64) // 100

    x, draws, labels = run(torch.rand(4, 3, 14, 14)), run(torch.rand(4, 8)), torch.randint(5, (4,))
    return f(x, draws, labels)[:-1], lambda: f(x, draws, labels)


@script("networks-of-phases")
def networks_of_phases(run):
    """Layers of complex weights, norms that whiten both parts, activations of moduli, gradients of losses of phases, products in spectra, unitary weights by exponentials of matrices."""
    class Phases(nn.Module):
        def __init__(self):
            super().__init__()
            self.real, self.imag, self.generator = nn.Parameter(torch.randn(6, 8) / 3), nn.Parameter(torch.randn(6, 8) / 3), nn.Parameter(torch.randn(8, 8, 2) / 4)
            self.bias, self.filter = nn.Parameter(torch.full((8,), -0.1)), nn.Parameter(torch.randn(8, 9, 2) / 3)

        def forward(self, z):
            z = z @ torch.complex(self.real, self.imag)
            parts = torch.view_as_real(z - z.mean((0, 1)))
            cover = torch.einsum("btci,btcj->cij", parts, parts) / (z.shape[0] * z.shape[1]) + 1e-3 * torch.eye(2, dtype=self.bias.dtype)
            root = torch.linalg.cholesky(cover)
            z = torch.view_as_complex(torch.linalg.solve_triangular(root, parts.permute(2, 3, 0, 1).flatten(2), upper=False).unflatten(-1, z.shape[:2]).permute(2, 3, 0, 1).contiguous())
            size = z.abs()
            z = F.relu(size + self.bias) * z / (size + 1e-6)
            skew = torch.view_as_complex(self.generator)
            z = z @ torch.linalg.matrix_exp(skew - skew.mH)
            return torch.fft.ifft(torch.fft.fft(z, n=16, dim=1) * F.pad(torch.view_as_complex(self.filter).mT, (0, 0, 0, 7)), dim=1)[:, :8]

    net = run(Phases())
    forward, optimizer = run.compile(net), torch.optim.Adam(net.parameters(), 0.01)

    def step(z, angles):
        found = forward(z)
        wanted = torch.polar(torch.ones_like(angles), angles)
        return descend(optimizer, (1 - (found * wanted.conj()).real / (found.abs() + 1e-3)).mean() + 0.1 * (found.real.square() + found.imag.square()).mean().log())

    return trained(net, step, [(torch.complex(run.normal(2, 8, 6), run.normal(2, 8, 6)), run.normal(2, 8, 8)) for _ in range(3)])


@dataclasses.dataclass
class Request:
    words: torch.Tensor
    extra: dict
    is_urgent: bool = False


@script("lists-of-requests")
def lists_of_requests(run):
    """Requests of classes with mappings and flags, padded to one batch, through one compiled function at growing numbers and lengths, answers cut to their lengths, a cache of what was asked."""
    table, net = run(nn.Embedding(40, 16)), run(nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True), 1, enable_nested_tensor=False)).eval()

    @run.compile
    def answer(words, lengths, requests: list, scale: float):
        mask = torch.arange(words.shape[1]) >= lengths[:, None]
        y = net(table(words), src_key_padding_mask=mask)
        pooled = y.masked_fill(mask[..., None], 0).sum(1) / lengths[:, None]
        bias = torch.stack([r.extra.get("bias", pooled.new_zeros(())) * (2 if r.is_urgent else 1) for r in requests])
        return {"pooled": (pooled + bias[:, None]) * scale, "each": [y[i, :2] for i in range(len(requests))]}, lengths.max()

    results, kept = [], {}
    with torch.inference_mode():
        for n, longest in ((2, 5), (3, 9), (2, 7), (4, 12), (3, 4)):
            lengths = torch.randint(2, longest + 1, (n,))
            requests = [Request(torch.randint(40, (int(length),)), {"bias": run.normal(1)[0]} if i % 2 else {}, i == 0) for i, length in enumerate(lengths)]
            words = nn.utils.rnn.pad_sequence([r.words for r in requests], batch_first=True)
            found, _ = answer(words, lengths, requests, 0.5 * n)
            kept[tuple(requests[0].words.tolist())] = found["pooled"][0]
            results += [found["pooled"], *found["each"]]
    return [*results, *kept.values()], None


@script("masked-words")
def masked_words(run):
    """Words hidden at given places, relative positions in buckets, spans that are predicted by their ends, tied tables, sampled shares, layers that are left out by given draws, rates by depth."""
    class Reader(nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.near = nn.Embedding(60, 24), nn.Embedding(8, 3)
            self.layers = nn.ModuleList(nn.ModuleDict({"q": nn.Linear(24, 72), "o": nn.Linear(24, 24), "up": nn.Linear(24, 96), "down": nn.Linear(48, 24), "n": nn.LayerNorm(24)}) for _ in range(3))
            self.ends, self.bias = nn.Linear(24, 2), nn.Parameter(torch.zeros(60))

        def forward(self, words, keeps):
            x = F.embedding(words, self.table.weight, scale_grad_by_freq=False) * 24**0.5
            far = torch.arange(words.shape[1])[None] - torch.arange(words.shape[1])[:, None]
            bucket = torch.where(far.abs() < 2, far.abs(), (2 + (far.abs().clamp(min=1) / 2).log2().long()).clamp(max=3)) + 4 * (far > 0)
            bias = self.near(bucket).permute(2, 0, 1)
            for layer, keep in zip(self.layers, keeps):
                y = layer["n"](x)
                q, k, v = layer["q"](y).unflatten(-1, (3, 3, 8)).permute(2, 0, 3, 1, 4)
                y = layer["o"](F.scaled_dot_product_attention(q, k, v, bias).transpose(1, 2).flatten(2))
                up, gate = layer["up"](x + y).chunk(2, -1)
                x = x + keep * (y + layer["down"](up * F.gelu(gate, approximate="tanh")))
            return F.linear(x, self.table.weight, self.bias), self.ends(x).unbind(-1)

    net = run(Reader())
    forward = run.compile(net)
    rates = [{"params": layer.parameters(), "lr": 0.01 * 0.7**n} for n, layer in enumerate(reversed(net.layers))]
    optimizer = torch.optim.RAdam([*rates, {"params": [*net.table.parameters(), *net.near.parameters(), *net.ends.parameters(), net.bias]}], 0.01)

    def step(words, hidden, keeps, first, last):
        logits, (start, end) = forward(words.masked_fill(hidden, 59), keeps)
        loss = F.cross_entropy(logits.flatten(0, 1), words.masked_fill(~hidden, -100).flatten(), ignore_index=-100)
        spans = (start[:, :, None] + end[:, None]).masked_fill(torch.ones(start.shape[1], start.shape[1], dtype=torch.bool).tril(-1), -torch.inf)
        return descend(optimizer, loss + F.cross_entropy(spans.flatten(1), first * start.shape[1] + last) + 1e-3 * logits.logsumexp(-1).square().mean())

    return trained(net, step, [(torch.randint(58, (3, 9)), torch.rand(3, 9) < 0.3, run((torch.rand(3) < 0.8).float()), torch.randint(4, (3,)), torch.randint(4, 9, (3,))) for _ in range(3)])
