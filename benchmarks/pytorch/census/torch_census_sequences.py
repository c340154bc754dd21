"""Programs of sequences, attention, masks and experts, by hand."""

import torch
import torch.nn.functional as F
from torch import nn

from torch_census_kinds import BATCHES, program, program_of


@program("crf", (9, 5))
class Crf(nn.Module):
    """A chain's likelihood and its best path."""

    def __init__(self):
        super().__init__()
        self.net, self.moves = nn.Linear(5, 6), nn.Parameter(torch.randn(6, 6))

    def forward(self, x):
        h = self.net(x)
        score = best = h[:, 0]
        back = []
        for t in range(1, h.shape[1]):
            score = torch.logsumexp(score[:, :, None] + self.moves, 1) + h[:, t]
            best, place = (best[:, :, None] + self.moves).max(1)
            best = best + h[:, t]
            back.append(place)
        path = [best.argmax(-1)]
        for place in reversed(back):
            path.append(place.gather(1, path[-1][:, None]).squeeze(1))
        return score.logsumexp(-1), torch.stack(path[::-1], 1)


@program_of("transducer", lambda v: (torch.randn(BATCHES[v], 6, 8), torch.randint(1, 7, (BATCHES[v], 4))))
class Transducer(nn.Module):
    """A joint network and its loss over the lattice, by diagonals."""

    def __init__(self):
        super().__init__()
        self.encode, self.table, self.joint = nn.Linear(8, 16), nn.Embedding(7, 16), nn.Linear(16, 7)

    def forward(self, x, goal):
        text = self.table(F.pad(goal, (1, 0)))
        chance = self.joint(torch.tanh(self.encode(x)[:, :, None] + text[:, None])).log_softmax(-1)
        stay = chance[..., 0]
        emit = chance[:, :, :-1].gather(-1, goal[:, None, :, None].expand(-1, 6, -1, 1)).squeeze(-1)
        a = F.pad(emit[:, 0].cumsum(1), (1, 0))
        for t in range(1, 6):
            row = [a[:, 0] + stay[:, t - 1, 0]]
            for u in range(1, 5):
                row.append(torch.logaddexp(a[:, u] + stay[:, t - 1, u], row[-1] + emit[:, t, u - 1]))
            a = torch.stack(row, 1)
        return -(a[:, -1] + stay[:, -1, -1])


@program("sinkhorn", (6, 4), (6, 4))
class Sinkhorn(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(4, 4)

    def forward(self, x, y):
        cost = torch.cdist(self.net(x), y)
        u = v = cost.new_zeros(cost.shape[:2])
        for _ in range(5):
            u = -torch.logsumexp(-cost / 0.1 + v[:, None], 2)
            v = -torch.logsumexp(-cost / 0.1 + u[..., None], 1)
        plan = (u[..., None] + v[:, None] - cost / 0.1).exp()
        return (plan * cost).sum((1, 2)), plan.argmax(-1)


@program_of("multimodal", lambda v: (torch.randint(0, 9, (BATCHES[v], 12)), torch.randn(BATCHES[v] * 12, 8)))
class Multimodal(nn.Module):
    """Features of images go where the text has places for them."""

    def __init__(self):
        super().__init__()
        self.table, self.project, self.head = nn.Embedding(9, 16), nn.Linear(8, 16), nn.Linear(16, 9)

    def forward(self, ids, features):
        x = self.table(ids)
        mask = (ids == 3)[..., None].expand_as(x)
        x = x.masked_scatter(mask, self.project(features))
        return self.head(x), (ids == 3).cumsum(-1).clamp(max=4)


@program("experts", (7, 16))
class Experts(nn.Module):
    """Two of four experts a token, by masks, by capacity, and the losses that balance them."""

    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(16, 4)
        self.up, self.down = nn.Parameter(torch.randn(4, 16, 24) * 0.2), nn.Parameter(torch.randn(4, 24, 16) * 0.2)

    def forward(self, x):
        t = x.flatten(0, 1)
        logits = self.gate(t)
        chance = logits.softmax(-1)
        weight, chosen = chance.topk(2)
        weight = weight / weight.sum(-1, keepdim=True)
        mask = F.one_hot(chosen, 4).to(x.dtype)
        place = (mask.flatten(0, 1).cumsum(0) - 1).view_as(mask) * mask
        seat = F.one_hot(place.sum(-1).long().clamp(max=7), 8).to(x.dtype) * (place.sum(-1) < 8)[..., None]
        send = torch.einsum("tke,tkc->tec", mask, seat)
        inner = torch.einsum("ecd,edf->ecf", torch.einsum("tec,td->ecd", send, t), self.up)
        back = torch.einsum("tke,tkc,tk->tec", mask, seat, weight)
        y = torch.einsum("tec,ecd->td", back, torch.einsum("ecf,efd->ecd", F.silu(inner), self.down))
        return y.view_as(x), 4 * (mask.mean((0, 1)) * chance.mean(0)).sum(), logits.logsumexp(-1).square().mean()


@program("delta-rule", (8, 12))
class DeltaRule(nn.Module):
    """Linear attention that corrects what it remembers, by blocks: a triangular system each."""

    def __init__(self):
        super().__init__()
        self.qkv, self.beta = nn.Linear(12, 36), nn.Linear(12, 1)

    def forward(self, x):
        q, k, v = (F.normalize(part, dim=-1) for part in self.qkv(x).chunk(3, -1))
        b = self.beta(x).sigmoid()
        inner = torch.tril(b * (k @ k.mT), -1) + torch.eye(8, device=x.device, dtype=x.dtype)
        new = torch.linalg.solve_triangular(inner, b * v, upper=False)
        keys = torch.linalg.solve_triangular(inner, b * k, upper=False, unitriangular=True)
        return torch.tril(q @ k.mT) @ new, keys


@program("flex-attention", (4, 16, 8))
class Flex(nn.Module):
    def __init__(self):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(4) * 0.1)
        self.project = nn.Linear(8, 24)

    def forward(self, x):
        from torch.nn.attention.flex_attention import flex_attention
        q, k, v = self.project(x).chunk(3, -1)
        return flex_attention(q, k, v, score_mod=lambda score, b, h, i, j: torch.where(i >= j, score + self.bias[h] * (j - i), -torch.inf))


@program("linear-attention", (9, 16))
class LinearAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(16, 48)
        self.decay = nn.Parameter(torch.rand(16))

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, -1)
        q, k = F.elu(q) + 1, F.elu(k) + 1
        sums = torch.einsum("btd,bte->btde", k, v).cumsum(1)
        y = torch.einsum("btd,btde->bte", q, sums) / (torch.einsum("btd,btd->bt", q, k.cumsum(1))[..., None] + 1e-6)
        places = torch.arange(9, device=x.device)
        gap = (places[:, None] - places).clamp(min=0)
        mask = (self.decay.sigmoid()[:, None, None] ** gap) * (places[:, None] >= places)
        return y, torch.einsum("btd,bsd,dts,bse->bte", q, k, mask, v)


@program_of("generate", lambda v: (torch.randn(BATCHES[v], 40), ))
class Generate(nn.Module):
    """What is kept of a language model's logits before one is drawn."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(1.0))

    def forward(self, logits):
        x = logits * self.scale / 0.8
        x = x.masked_fill(x < x.topk(20)[0][:, -1:], -torch.inf)
        values, places = x.sort(-1, descending=True)
        drop = values.softmax(-1).cumsum(-1) - values.softmax(-1) > 0.9
        x = x.masked_fill(drop.scatter(1, places, drop), -torch.inf)
        chance = x.softmax(-1)
        return chance, x.masked_fill(chance < 0.02 * chance.amax(-1, keepdim=True), -torch.inf).argmax(-1), (-chance * (
            chance + 1e-12).log()).sum(-1)
