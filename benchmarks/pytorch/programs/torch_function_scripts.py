"""Further SCRIPTS, short ones: functions of functions, gradients of one's own, weights made anew, eight bits, scores, controls, ragged rows, buffers and modes, copies."""

import copy
import io
import pickle
import threading

import torch
import torch.nn.functional as F
import torch.utils.checkpoint
from torch import nn
from torch.func import functional_call, grad, jacfwd, jacrev, jvp, stack_module_state, vjp, vmap
from torch.nn.attention.flex_attention import create_block_mask, flex_attention
from torch_training_scripts import descend, perceptron, script, state


@script("functions-of-functions")
def functions_of_functions(run):
    """Ensembles by vmap of functional_call, Hessians, Jacobians both ways, products with both, gradients of gradients, draws that are the same for all."""
    nets = [perceptron(run, 4, 8, 2) for _ in range(3)]
    parameters, buffers = stack_module_state(nets)
    base = copy.deepcopy(nets[0])

    @run.compile
    def ensemble(parameters, x):
        return vmap(lambda p: functional_call(base, (p, {}), (x,)))(parameters)

    @run.compile
    def slopes(x):
        def f(v):
            return (v.sin() * v.roll(1)).sum() + v[0] * v[1] ** 3
        return vmap(jacrev(grad(f)))(x), vmap(jacrev(lambda v: v.outer(v)))(x), vmap(jacfwd(lambda v: v.cumsum(0).tanh()))(x), jvp(lambda v: v.softmax(-1), (x,), (x * 0.5,))[1], vjp(torch.tanh, x)[1](x)[0]

    @run.compile
    def per_sample(parameters, x, y):
        def loss(p, one, wanted):
            return F.mse_loss(functional_call(base, p, (one[None],))[0], wanted)
        return vmap(grad(loss), in_dims=(None, 0, 0))(parameters, x, y)

    x = run.normal(5, 4)
    first = {k: v[0].detach() for k, v in parameters.items()}
    return [ensemble(parameters, x).detach(), *slopes(x), *per_sample(first, x, run.normal(5, 2)).values(), *buffers.values()], lambda: slopes(x)


class Clipped(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, low, high, scale):
        y = x.clamp(low, high) * scale
        ctx.save_for_backward(x, scale)
        ctx.low, ctx.high = low, high
        return y, (x != x.clamp(low, high)).sum()

    @staticmethod
    def backward(ctx, g, _):
        x, scale = ctx.saved_tensors
        inside = (x > ctx.low) & (x < ctx.high)
        return g * scale * torch.where(inside, 1.0, 0.1), None, None, (g * x.clamp(ctx.low, ctx.high)).sum()


@script("gradients-of-ones-own")
def gradients_of_ones_own(run):
    """A function with its own backward of numbers and tensors, that counts; within a checkpoint; hooks that scale gradients and look at modules."""
    net = perceptron(run, 6, 12, 3)
    scale, seen = nn.Parameter(run(torch.tensor(0.7))), []
    net[0].register_forward_hook(lambda module, given, found: found * 1.5)
    net[2].register_forward_pre_hook(lambda module, given: (given[0] + 0.1,))
    net[0].weight.register_hook(lambda g: g * 0.5)

    @run.compile
    def forward(x):
        y, count = Clipped.apply(x, -1.0, 1.0, scale)
        y = torch.utils.checkpoint.checkpoint(net, y, use_reentrant=False)
        return y, count

    x = run.normal(5, 6).requires_grad_()
    y, count = forward(x)
    y.register_hook(lambda g: seen.append(g.norm()))
    y.square().sum().backward()
    return [y.detach(), count, x.grad, scale.grad, *seen, *(p.grad.clone() for p in net.parameters())], lambda: forward(x)[0].sum().backward()


@script("weights-made-anew")
def weights_made_anew(run):
    """Spectral norms with their power steps, weight norms of two dims, orthogonal and symmetric weights, low-rank additions; removed in the middle."""
    from torch.nn.utils import parametrizations, parametrize

    class Symmetric(nn.Module):
        def forward(self, w):
            return w.triu() + w.triu(1).mT

    net = run(nn.Sequential(parametrizations.spectral_norm(nn.Linear(6, 8)), nn.Tanh(), parametrizations.weight_norm(nn.Conv1d(4, 4, 1)), nn.Flatten(1), nn.Linear(8, 8)))
    parametrize.register_parametrization(net[4], "weight", Symmetric())
    forward, optimizer = run.compile(net), torch.optim.SGD(net.parameters(), 0.1)

    def step(x):
        return descend(optimizer, forward(x).square().mean())

    class Reshape(nn.Module):
        def forward(self, x):
            return x.view(-1, 4, 2)

    net.insert(2, Reshape())
    losses = [step(run.normal(5, 6)).detach() for _ in range(3)]
    with parametrize.cached():
        losses.append(forward(run.normal(5, 6)).sum().detach())
    parametrize.remove_parametrizations(net[5], "weight")
    net.eval()
    x = run.normal(5, 6)
    return [*losses, forward(x).detach(), *state(net)], lambda: forward(x)


@script("eight-bits-by-hand")
def eight_bits_by_hand(run):
    """Weights of eight bits with a scale a row, of four bits two to a byte, activations of eight bits, products of whole numbers, tied to a table."""
    class Int8(nn.Module):
        def __init__(self, linear):
            super().__init__()
            scale = linear.weight.abs().amax(1, keepdim=True) / 127
            self.register_buffer("weight", (linear.weight / scale).round().to(torch.int8))
            self.register_buffer("scale", scale.squeeze(1))

        def forward(self, x):
            return F.linear(x, self.weight.to(x.dtype)) * self.scale

    class Int4(nn.Module):
        def __init__(self, linear):
            super().__init__()
            w = linear.weight.detach().view(linear.out_features, -1, 8)
            self.register_buffer("low", w.amin(-1, keepdim=True))
            self.register_buffer("scale", (w.amax(-1, keepdim=True) - self.low) / 15)
            q = ((w - self.low) / self.scale).round().clamp(0, 15).to(torch.uint8).flatten(1)
            self.register_buffer("packed", q[:, ::2] | (q[:, 1::2] << 4))

        def forward(self, x):
            q = torch.stack((self.packed & 0xF, self.packed >> 4), -1).view(self.packed.shape[0], -1, 8)
            return F.linear(x, (q.to(x.dtype) * self.scale + self.low).flatten(1))

    class Rows(nn.Module):
        def __init__(self, linear):
            super().__init__()
            self.inner = Int8(linear)

        def forward(self, x):
            scale = x.abs().amax(-1, keepdim=True) / 127
            q = (x / scale).round().clamp(-128, 127).to(torch.int8)
            product = torch._int_mm(q, self.inner.weight.t().contiguous()) if q.shape[0] > 16 else q.int() @ self.inner.weight.t().int()
            return product.to(x.dtype) * scale * self.inner.scale

    lines = [run(nn.Linear(16, 16, bias=False)) for _ in range(3)]
    with torch.no_grad():
        net = nn.Sequential(Int8(lines[0]), nn.GELU(), Int4(lines[1]), nn.GELU(), Rows(lines[2]))
        forward, x, wide = run.compile(net), run.normal(3, 16), run.normal(24, 16)
        return [forward(x), forward(wide)], lambda: forward(x)


@script("flexible-scores")
def flexible_scores(run):
    """flex_attention with slopes, windows by a mask in blocks, soft limits, groups of heads, documents; its log sums."""
    documents = torch.tensor([0] * 40 + [1] * 50 + [2] * 38)
    slopes = run(torch.tensor([0.5, 0.25, 0.125, 0.0625]))
    mask = create_block_mask(lambda b, h, i, j: (i >= j) & (i - j < 48) & (documents[i] == documents[j]), None, None, 128, 128, device="cpu")

    @run.compile
    def f(q, k, v):
        one = flex_attention(q, k, v, score_mod=lambda s, b, h, i, j: s - slopes[h] * (i - j).abs(), enable_gqa=True)
        two = flex_attention(q, k, v, block_mask=mask, enable_gqa=True)
        three = flex_attention(q, k.repeat_interleave(2, 1), v.repeat_interleave(2, 1), score_mod=lambda s, b, h, i, j: 20 * torch.tanh(s / 20))
        return one, two, three

    q, k, v = run.normal(2, 4, 128, 16), run.normal(2, 2, 128, 16), run.normal(2, 2, 128, 16)
    with torch.no_grad():
        return list(f(q, k, v)), lambda: f(q, k, v)


@script("controls-of-torch")
def controls_of_torch(run):
    """cond with captured weights, while_loop until a bound, scan with a pair of states, associative_scan, map, within one function."""
    from torch._higher_order_ops import associative_scan, scan, while_loop
    gain = run.normal(6)

    @run.compile
    def f(x):
        y = torch.cond(x.sum() > 0, lambda x: x * gain, lambda x: x - gain, (x,))
        n, z = while_loop(lambda n, z: (n < 10) & (z.abs().max() > 0.1), lambda n, z: (n + 1, z * 0.7), (torch.tensor(0), y))
        last, all_of = scan(lambda s, row: ((s[0] + row, s[1] * 0.9 + row), s[0] * row), (torch.zeros_like(x[0]), torch.ones_like(x[0])), x)
        sums = associative_scan(lambda a, b: a + b, x, 0, combine_mode="generic")
        return y, n, z, *last, all_of, sums

    x = run.normal(7, 6)
    with torch.no_grad():
        return [*f(x), *f(-x)], lambda: f(x)


@script("ragged-by-offsets")
def ragged_by_offsets(run):
    """Rows of several lengths as values and offsets: means of segments, a softmax in each, pads to rectangles and back, nested tensors."""
    lengths = torch.tensor([3, 1, 5, 2])
    offsets = F.pad(lengths.cumsum(0), (1, 0))

    @run.compile
    def f(values):
        owner = torch.repeat_interleave(torch.arange(4), lengths, output_size=11)
        total = torch.zeros(4, values.shape[1], dtype=values.dtype).index_add_(0, owner, values)
        largest = torch.full((4, values.shape[1]), -1e9, dtype=values.dtype).scatter_reduce_(0, owner[:, None].expand_as(values), values, "amax")
        shares = (values - largest[owner]).exp()
        shares = shares / torch.zeros_like(total).index_add(0, owner, shares)[owner]
        places = torch.arange(11) - offsets[owner]
        padded = values.new_zeros(4, 5, values.shape[1]).index_put((owner, places), values)
        keys = torch.arange(5) < lengths[:, None]
        attended = F.scaled_dot_product_attention(padded[:, None], padded[:, None], padded[:, None], attn_mask=keys[:, None, None])[:, 0]
        return total / lengths[:, None], largest, shares, attended[owner, places]

    values = run.normal(11, 6).requires_grad_()
    results = f(values)
    sum(r.square().sum() for r in results).backward()
    return [*(r.detach() for r in results), values.grad], lambda: f(values)[0].sum().backward()


@script("buffers-and-modes")
def buffers_and_modes(run):
    """Batch norms, running codes and counters written in training; then evaluation, inference mode, without gradients, a state loaded in the middle."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.norm, self.drop, self.head = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.Dropout(0.0), nn.Linear(8, 4)
            self.register_buffer("seen", torch.zeros(8))
            self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

        def forward(self, x):
            y = F.relu(self.norm(self.conv(x)))
            if self.training:
                self.seen.mul_(0.9).add_(y.detach().mean((0, 2, 3)) * 0.1)
            return self.head(self.drop(y - self.seen[:, None, None]).mean((2, 3)))

    net = run(Net()).to(memory_format=torch.channels_last)
    forward, optimizer = run.compile(net), torch.optim.Adam(net.parameters(), 0.01)
    pictures = [run.normal(4, 3, 8, 8).to(memory_format=torch.channels_last) for _ in range(3)]

    def step(x):
        return descend(optimizer, forward(x).square().mean())

    results = [step(x).detach() for x in pictures]
    kept = copy.deepcopy(net.state_dict())
    net.eval()
    with torch.inference_mode():
        results.append(forward(pictures[0]).clone())
    results.append(forward(pictures[0]).detach())
    net.train()
    results += [step(x).detach() for x in pictures]
    net.load_state_dict(kept)
    net.eval()
    with torch.no_grad():
        results.append(forward(pictures[0]))
    return [torch.as_tensor(r) for r in (*results, *state(net))], lambda: forward(pictures[0])


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.body = nn.Embedding(20, 8), nn.Linear(8, 8)
        self.head = nn.Linear(8, 20, bias=False)
        self.head.weight = self.table.weight

    def forward(self, words):
        return self.head(self.body(self.table(words)).tanh())


@script("copies-that-are-compiled")
def copies_that_are_compiled(run):
    """A module compiled in place, copied deeply, saved as bytes by torch.save, its state pickled, tied weights, two of them in threads."""
    net = run(Tied())
    if run.backend != "eager":
        net.compile(backend=run.backend)
    words = torch.randint(20, (3, 5))
    net(words).square().mean().backward()
    twin = copy.deepcopy(net)
    with torch.no_grad():
        twin.table.weight.mul_(2)
    loaded = pickle.loads(pickle.dumps(net.state_dict()))
    folder = io.BytesIO()
    torch.save(net, folder)
    folder.seek(0)
    again = torch.load(folder, weights_only=False)
    found = {}

    def serve(name, module):
        with torch.no_grad():
            found[name] = module(words)

    threads = [threading.Thread(target=serve, args=each) for each in (("net", net), ("twin", twin), ("again", again))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [net(words).detach(), *(found[name] for name in sorted(found)), net.table.weight.grad, loaded["head.weight"]], lambda: net(words)
