"""Networks of kinds that papers and products have had for years, step by step: memories with links, filters of states, gates that attention
moves, speech that listens to itself, trees, questions and texts."""
import torch
import torch.nn.functional as F
from torch import nn


def perceptron(width, times=4):
    return nn.Sequential(nn.LayerNorm(width), nn.Linear(width, times * width), nn.GELU(), nn.Linear(times * width, width))


def heads_of(x, heads):
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


class LinkedMemory(nn.Module):
    """Steps that write rows of a memory where it is free, and read rows by likeness or in the order they were written (DNC)."""

    def __init__(self, given=16, width=128, rows=32, each=24, reads=2):
        super().__init__()
        self.rows, self.each, self.reads = rows, each, reads
        self.cell, self.told, self.last = nn.LSTMCell(given + reads * each, width), nn.Linear(width, reads * each + 3 * each + 5 * reads + 3), nn.Linear(width + reads * each, given)

    def like(self, memory, keys, sharp):
        return (F.normalize(keys, dim=-1) @ F.normalize(memory, dim=-1).transpose(1, 2) * sharp[..., None]).softmax(-1)

    def forward(self, x):
        batch, n, r, w = x.shape[0], self.rows, self.reads, self.each
        state = (x.new_zeros(batch, 128), x.new_zeros(batch, 128))
        memory, link, order, used = x.new_zeros(batch, n, w) + 0.01, x.new_zeros(batch, n, n), x.new_zeros(batch, n), x.new_zeros(batch, n)
        read_at, written, read, made = x.new_zeros(batch, r, n) + 1 / n, x.new_zeros(batch, n), x.new_zeros(batch, r, w), []
        for step in x.unbind(1):
            state = self.cell(torch.cat([step, read.flatten(1)], 1), state)
            keys, key, erase, value, sharp, free, modes, rest = self.told(state[0]).split([r * w, w, w, w, r, r, 3 * r, 3], 1)
            free, rest = free.sigmoid(), rest.float()
            one, other = (1 - free[..., None] * read_at).unbind(1)
            keep = one * other
            used = (used + written - used * written) * keep
            rising, at = used.sort(-1)
            room = (1 - rising) * torch.cat([torch.ones_like(rising[:, :1]), rising[:, :-1].clamp(min=1e-6).log().cumsum(-1).exp()], 1)
            room = torch.zeros_like(room).scatter(1, at, room)
            found = self.like(memory, key[:, None], F.softplus(rest[:, :1]) + 1)[:, 0]
            gate, share = rest[:, 1:2].sigmoid().to(x.dtype), rest[:, 2:].sigmoid().to(x.dtype)
            written = gate * (share * room + (1 - share) * found)
            memory = memory * (1 - written[..., None] * erase.sigmoid()[:, None]) + written[..., None] * value[:, None]
            link = (1 - written[..., None] - written[:, None]) * link + written[..., None] * order[:, None]
            link = link * (1 - torch.eye(n, device=x.device, dtype=x.dtype))
            order = (1 - written.sum(-1, keepdim=True)) * order + written
            ahead, back = read_at @ link.transpose(1, 2), read_at @ link
            modes = modes.unflatten(1, (r, 3)).softmax(-1)
            read_at = modes[..., :1] * back + modes[..., 1:2] * self.like(memory, keys.unflatten(1, (r, w)), F.softplus(sharp) + 1) + modes[..., 2:] * ahead
            read = read_at @ memory
            made.append(self.last(torch.cat([state[0], read.flatten(1)], 1)))
        return torch.stack(made, 1)


class FilteredStates(nn.Module):
    """Where things are, by what is seen step by step: states of four numbers, their covariances, and gains by inverses of 2x2 (a Kalman filter)."""

    def __init__(self):
        super().__init__()
        move = torch.eye(4) + torch.diag(torch.full((2,), 0.1), 2)
        self.register_buffer("move", move)
        self.register_buffer("see", torch.eye(2, 4))
        self.noise, self.seen_noise, self.trust = nn.Parameter(torch.full((4,), 0.1)), nn.Linear(32, 2), nn.Linear(4, 2)
        self.read, self.last = nn.Sequential(nn.Linear(4, 32), nn.SiLU(), nn.Linear(32, 32), nn.SiLU()), nn.Linear(4, 4)

    def forward(self, x):
        told = self.read(x)
        loud = F.softplus(self.seen_noise(told)) + 0.1
        state, cover, made = F.pad(x[:, 0, :, :2], (0, 2)), torch.eye(4, device=x.device, dtype=x.dtype).expand(x.shape[0], x.shape[2], 4, 4), []
        move, see = self.move.to(x.dtype), self.see.to(x.dtype)
        for t in range(1, x.shape[1]):
            state = state @ move.T
            cover = move @ cover @ move.T + torch.diag_embed(self.noise.abs())
            wrong = x[:, t, :, :2] - state @ see.T
            spread = see @ cover @ see.T + torch.diag_embed(loud[:, t])
            a, b, c, d = spread.flatten(-2).unbind(-1)
            inverse = torch.stack([d, -b, -c, a], -1).unflatten(-1, (2, 2)) / (a * d - b * c)[..., None, None]
            gain = cover @ see.T @ inverse
            state = state + (gain @ wrong[..., None])[..., 0]
            cover = cover - gain @ see @ cover
            made.append(self.last(state))
        return torch.stack(made, 1)


class MovedGates(nn.Module):
    """Fifty things that one looked at, by a recurrent layer and one whose gate is how near each is to what is offered (DIEN)."""

    def __init__(self, things=10000, kinds=500, each=32, width=64, steps=50):
        super().__init__()
        self.things, self.kinds, self.steps, self.width = nn.Embedding(things, each), nn.Embedding(kinds, each), steps, width
        self.first, self.near = nn.GRU(2 * each, width, batch_first=True), nn.Linear(width, 2 * each, bias=False)
        self.gates, self.again, self.new, self.new_again = nn.Linear(width, 2 * width), nn.Linear(width, 2 * width, bias=False), nn.Linear(width, width), nn.Linear(width, width, bias=False)
        self.last = nn.Sequential(nn.Linear(width + 6 * each, 200), nn.PReLU(200), nn.Linear(200, 80), nn.PReLU(80), nn.Linear(80, 2))

    def forward(self, x):
        things = torch.cat([self.things(x * 97 % 10000), self.kinds(x * 31 % 500)], -1)
        seen, offered = things[:, 1:], things[:, 0]
        states = self.first(seen)[0]
        shares = (self.near(states) @ offered[..., None])[..., 0].softmax(1)
        gates, new, state = self.gates(states), self.new(states), torch.zeros_like(states[:, 0])
        for t in range(self.steps):
            update, reset = (gates[:, t] + self.again(state)).sigmoid().chunk(2, 1)
            update = update * shares[:, t, None]
            state = (1 - update) * state + update * (new[:, t] + reset * self.new_again(state)).tanh()
        total = seen.sum(1)
        return self.last(torch.cat([state, offered, total, total * offered], 1)).log_softmax(-1)


class ListenedPlaces(nn.Module):
    """Frames of speech from letters, each by attention to letters near where it was before, by what it has looked at so far (Tacotron 2)."""

    def __init__(self, width=256, bands=80, steps=32):
        super().__init__()
        self.letters, self.steps = nn.Embedding(100, width), steps
        self.windows = nn.Sequential(*(nn.Sequential(nn.Conv1d(width, width, 5, padding=2, bias=False), nn.BatchNorm1d(width), nn.ReLU()) for _ in range(2)))
        self.read = nn.LSTM(width, width // 2, batch_first=True, bidirectional=True)
        self.before, self.first, self.second = nn.Sequential(nn.Linear(bands, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU()), nn.LSTMCell(128 + width, width), nn.LSTMCell(2 * width, width)
        self.key, self.query, self.place, self.place_out, self.score = nn.Linear(width, 128, bias=False), nn.Linear(width, 128, bias=False), nn.Conv1d(2, 32, 31, padding=15, bias=False), nn.Linear(32, 128, bias=False), nn.Linear(128, 1, bias=False)
        self.made, self.stop = nn.Linear(2 * width, bands), nn.Linear(2 * width, 1)
        self.after = nn.Sequential(*(nn.Sequential(nn.Conv1d(a, b, 5, padding=2, bias=False), nn.BatchNorm1d(b), nn.Tanh()) for a, b in ((bands, 256), (256, 256), (256, bands))))

    def forward(self, x):
        words = self.read(self.windows(self.letters(x).transpose(1, 2)).transpose(1, 2))[0]
        zero = torch.zeros_like(words[:, 0])
        one, two, seen, frame = (zero, zero), (zero, zero), zero, zero[:, :80]
        shares, total, keys, made = torch.zeros_like(words[..., 0]), torch.zeros_like(words[..., 0]), self.key(words), []
        for _ in range(self.steps):
            one = self.first(torch.cat([self.before(frame), seen], 1), one)
            places = self.place_out(self.place(torch.stack([shares, total], 1)).transpose(1, 2))
            shares = self.score((self.query(one[0])[:, None] + places + keys).tanh())[..., 0].softmax(1)
            total, seen = total + shares, (shares[:, None] @ words)[:, 0]
            two = self.second(torch.cat([one[0], seen], 1), two)
            both = torch.cat([two[0], seen], 1)
            frame = self.made(both)
            made.append(torch.cat([frame, self.stop(both)], 1))
        made = torch.stack(made, 2)
        return torch.cat([made[:, :80] + self.after(made[:, :80]), made[:, 80:].sigmoid()], 1)


class SentenceTrees(nn.Module):
    """States of trees from the leaves up, two children a node, five levels (a tree LSTM)."""

    def __init__(self, width=256, words=5000):
        super().__init__()
        self.words, self.leaf, self.node, self.head = nn.Embedding(words, width), nn.Linear(width, 3 * width), nn.Linear(2 * width, 5 * width), nn.Linear(width, 5)
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        i, o, u = self.leaf(self.words(x * 53 % 5000)).chunk(3, -1)
        cell = i.sigmoid() * u.tanh()
        state, said = o.sigmoid() * cell.tanh(), []
        while state.shape[1] > 1:
            i, o, u, f, g = self.node(state.unflatten(1, (-1, 2)).flatten(2)).chunk(5, -1)
            cell = i.sigmoid() * u.tanh() + f.sigmoid() * cell[:, 0::2] + g.sigmoid() * cell[:, 1::2]
            state = o.sigmoid() * cell.tanh()
            said.append(self.head(self.norm(state)).log_softmax(-1))
        return torch.cat(said, 1)


class QuestionsAndTexts(nn.Module):
    """Words of a text and of a question, each by products of three with the other, and where the answer begins and ends (QANet)."""

    class Block(nn.Module):
        def __init__(self, width, convolutions, size, heads=8):
            super().__init__()
            self.windows = nn.ModuleList(nn.Sequential(nn.Conv1d(width, width, size, padding=size // 2, groups=width, bias=False), nn.Conv1d(width, width, 1), nn.ReLU()) for _ in range(convolutions))
            self.norms, self.heads, self.parts, self.out, self.after = nn.ModuleList(nn.LayerNorm(width) for _ in range(convolutions + 1)), heads, nn.Linear(width, 3 * width), nn.Linear(width, width), perceptron(width, 1)

        def forward(self, x):
            for norm, window in zip(self.norms, self.windows):
                x = x + window(norm(x).transpose(1, 2)).transpose(1, 2)
            q, k, v = (heads_of(each, self.heads) for each in self.parts(self.norms[-1](x)).chunk(3, -1))
            x = x + self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
            return x + self.after(x)

    def __init__(self, width=128, words=5000, text=192):
        super().__init__()
        self.words, self.narrow, self.text = nn.Embedding(words, 300), nn.Conv1d(300, width, 1), text
        self.gates = nn.ModuleList(nn.ModuleList((nn.Linear(width, width), nn.Linear(width, width))) for _ in range(2))
        self.read, self.weight = QuestionsAndTexts.Block(width, 4, 7), nn.Parameter(torch.randn(3, width) * 0.1)
        self.join, self.think = nn.Conv1d(4 * width, width, 1), nn.Sequential(*(QuestionsAndTexts.Block(width, 2, 5) for _ in range(3)))
        self.ends = nn.ModuleList(nn.Linear(2 * width, 1) for _ in range(2))

    def forward(self, x):
        x = self.narrow(self.words(x * 37 % 5000).transpose(1, 2)).transpose(1, 2)
        for gate, made in self.gates:
            share = gate(x).sigmoid()
            x = share * made(x).relu() + (1 - share) * x
        text, question = self.read(x[:, :self.text]), self.read(x[:, self.text:])
        scores = (text @ self.weight[0])[..., None] + (question @ self.weight[1])[:, None] + (text * self.weight[2]) @ question.transpose(1, 2)
        rows, columns = scores.softmax(2), scores.softmax(1)
        told, back = rows @ question, rows @ columns.transpose(1, 2) @ text
        x = self.join(torch.cat([text, told, text * told, text * back], -1).transpose(1, 2)).transpose(1, 2)
        a = self.think(x)
        b = self.think(a)
        c = self.think(b)
        return torch.stack([self.ends[0](torch.cat([a, b], -1))[..., 0].log_softmax(1), self.ends[1](torch.cat([a, c], -1))[..., 0].log_softmax(1)], 1)
