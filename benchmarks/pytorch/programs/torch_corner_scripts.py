"""Further SCRIPTS: gradients and weights of a group of processes, gradients that are compiled as they come, saved tensors elsewhere, functions with two
derivatives, operations with rules for vmap, controls within loops, learned scores, exports, jagged rows."""

import contextlib
import copy
import io

import torch
import torch.nn.functional as F
from torch import nn
from torch.func import grad, vmap
from torch.nn.attention.flex_attention import create_block_mask, flex_attention
from torch.utils.checkpoint import checkpoint
from torch_training_scripts import descend, perceptron, script, trained


def one_of_a_group(run, wrap):
    """A group of one process, so that hooks and collectives are torch's own."""
    import torch.distributed as dist
    if not dist.is_initialized():
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.begin, self.middle, self.end = nn.Linear(16, 32), nn.Linear(32, 32), nn.Linear(32, 4)

        def forward(self, x):
            return self.end(F.gelu(self.middle(F.gelu(self.begin(x)))))

    net = wrap(run(Net()))
    forward, optimizer = run.compile(net), torch.optim.AdamW(net.parameters(), 0.01)

    def step(x, y):
        return descend(optimizer, F.cross_entropy(forward(x), y))

    losses = [step(*each).detach().clone() for each in [(run.normal(8, 16), torch.randint(4, (8,))) for _ in range(3)]]
    given = run.normal(8, 16), torch.randint(4, (8,))
    found = [getattr(p, "full_tensor", lambda p=p: p)().detach().clone() for p in net.parameters()]
    return [*losses, *found], lambda: step(*given)


@script("gradients-of-a-group")
def gradients_of_a_group(run):
    return one_of_a_group(run, nn.parallel.DistributedDataParallel)


@script("weights-of-a-group")
def weights_of_a_group(run):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    def wrap(net):
        mesh = init_device_mesh("cpu", (1,))
        for layer in net.children():
            fully_shard(layer, mesh=mesh)
        return fully_shard(net, mesh=mesh)
    return one_of_a_group(run, wrap)


@script("split-over-a-mesh")
def split_over_a_mesh(run):
    """Tensor parallel layers as DTensors on a mesh of one."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    def wrap(net):
        return parallelize_module(net, init_device_mesh("cpu", (1,)), {"begin": ColwiseParallel(), "middle": RowwiseParallel()})
    return one_of_a_group(run, wrap)


@script("compiled-gradients")
def compiled_gradients(run):
    """The whole backward pass as a graph that is captured when it runs, with hooks in it."""
    net = perceptron(run, 20, 40, 40, 4)
    net[0].register_full_backward_hook(lambda module, given, found: None)
    net[2].weight.register_hook(lambda g: g.clamp(-0.01, 0.01))
    forward, optimizer = run.compile(net), torch.optim.SGD(net.parameters(), 0.1)
    enabled = contextlib.nullcontext if run.backend == "eager" else lambda: torch._dynamo.compiled_autograd._enable(lambda graph: torch.compile(graph, backend=run.backend))

    def step(x, y):
        optimizer.zero_grad()
        loss = F.mse_loss(forward(x), y)
        with enabled():
            loss.backward()
        optimizer.step()
        return loss

    return trained(net, step, [(run.normal(n, 20), run.normal(n, 4)) for n in (8, 8, 5)])


@script("saved-elsewhere")
def saved_elsewhere(run):
    """What is saved for gradients is packed by hooks, in the CPU's memory or in 16 bits; a block of layers is checkpointed beside."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([nn.Sequential(nn.LayerNorm(24), nn.Linear(24, 48), nn.SiLU(), nn.Linear(48, 24)) for _ in range(3)])

        def forward(self, x):
            x = x + self.layers[0](x)
            x = x + checkpoint(self.layers[1], x, use_reentrant=False)
            return x + self.layers[2](x)

    net = run(Net())
    forward, optimizer, sizes = run.compile(net), torch.optim.SGD(net.parameters(), 0.1), []

    def pack(x):
        sizes.append(x.numel())
        return x.detach().clone()

    def step(x, y, how):
        with (torch.autograd.graph.saved_tensors_hooks(pack, lambda x: x), torch.autograd.graph.save_on_cpu(), contextlib.nullcontext())[how]:
            loss = F.mse_loss(forward(x), y)
        return descend(optimizer, loss)

    return trained(net, step, [(run.normal(6, 24), run.normal(6, 24), how) for how in (0, 1, 2)])


@script("two-derivatives-of-ones-own")
def two_derivatives_of_ones_own(run):
    """A function with a context of its own, of which a result has no gradient, whose gradient is a function with a gradient; rules for vmap."""
    class Cube(torch.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x, power):
            return x ** power, x.sign()

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(inputs[0])
            ctx.power = inputs[1]
            ctx.mark_non_differentiable(output[1])
            ctx.set_materialize_grads(False)

        @staticmethod
        def backward(ctx, g, _):
            x, = ctx.saved_tensors
            return None if g is None else Slope.apply(x, g, ctx.power), None

    class Slope(torch.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x, g, power):
            return power * x ** (power - 1) * g

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs[:2])
            ctx.power = inputs[2]

        @staticmethod
        def backward(ctx, gg):
            x, g = ctx.saved_tensors
            p = ctx.power
            return p * (p - 1) * x ** (p - 2) * g * gg, p * x ** (p - 1) * gg, None

    @run.compile
    def f(x):
        y, s = Cube.apply(x, 3)
        return (y * s).sum() + y.square().mean()

    @run.compile
    def each(x):
        return vmap(grad(lambda v: Cube.apply(v, 3)[0].sum()))(x)

    x = run.normal(6, 5).requires_grad_()
    value = f(x)
    first, = torch.autograd.grad(value, x)
    eager = Cube.apply(x, 3)[0].square().sum()
    slope, = torch.autograd.grad(eager, x, create_graph=True)
    second, = torch.autograd.grad(slope.sum(), x)
    return [value.detach(), first, second, each(x.detach())], lambda: f(x).backward()


@torch.library.custom_op("corner::clipped_outer", mutates_args=())
def clipped_outer(a: torch.Tensor, b: torch.Tensor, limit: float = 1.0) -> tuple[torch.Tensor, torch.Tensor]:
    product = torch.outer(a, b)
    return product.clamp(-limit, limit), (product.abs() <= limit)


@clipped_outer.register_fake
def _(a, b, limit=1.0):
    return a.new_empty(a.shape[0], b.shape[0]), a.new_empty(a.shape[0], b.shape[0], dtype=torch.bool)


def _clipped_context(ctx, inputs, output):
    ctx.save_for_backward(inputs[0], inputs[1], output[1])


def _clipped_backward(ctx, g, _):
    a, b, kept = ctx.saved_tensors
    g = g * kept
    return g @ b, g.mT @ a, None


clipped_outer.register_autograd(_clipped_backward, setup_context=_clipped_context)


@clipped_outer.register_vmap
def _(info, in_dims, a, b, limit=1.0):
    a = a.movedim(in_dims[0], 0) if in_dims[0] is not None else a.expand(info.batch_size, *a.shape)
    b = b.movedim(in_dims[1], 0) if in_dims[1] is not None else b.expand(info.batch_size, *b.shape)
    product = a[:, :, None] * b[:, None]
    return (product.clamp(-limit, limit), product.abs() <= limit), (0, 0)


@torch.library.custom_op("corner::add_row_", mutates_args={"table"})
def add_row_(table: torch.Tensor, row: torch.Tensor, at: int) -> None:
    table[at] += row


@script("operations-with-rules")
def operations_with_rules(run):
    """Operations of one's own with gradients, rules for vmap and written arguments, between layers, in training."""
    net = run(nn.ModuleDict({"a": nn.Linear(10, 8), "b": nn.Linear(10, 6), "c": nn.Linear(48, 3)}))
    table = run(torch.zeros(5, 10))
    optimizer = torch.optim.SGD(net.parameters(), 0.05)

    @run.compile
    def loss_of(x, y):
        p, kept = vmap(lambda a, b: torch.ops.corner.clipped_outer(a, b, 0.5))(net["a"](x), net["b"](x))
        q, _ = torch.ops.corner.clipped_outer(net["a"](x[0]).tanh(), net["b"](x[1]))
        torch.ops.corner.add_row_(table, x[2] * 2, 3)
        return F.cross_entropy(net["c"](p.flatten(1) + q.flatten()), y) + table.mean(), kept.sum()

    counts = []

    def step(x, y):
        loss, kept = loss_of(x, y)
        counts.append(kept)
        return descend(optimizer, loss)

    results, again = trained(net, step, [(run.normal(6, 10), torch.randint(3, (6,))) for _ in range(3)])
    return [*results, *counts[:3], table.clone()], again


@script("controls-within-loops")
def controls_within_loops(run):
    """A scan whose step branches by data and maps over rows, a while loop within a branch, an associative scan of decays behind it."""
    from torch._higher_order_ops import associative_scan, map, scan, while_loop
    mix = run.normal(8, 8) * 0.3

    @run.compile
    def f(x, start):
        def step(h, row):
            moved = torch.cond(row.sum() > 0, lambda h, r: torch.tanh(h @ mix + r), lambda h, r: h * 0.5 - r, (h, row))
            return moved, moved * 2

        last, rows = scan(step, start, x)
        turned = map(lambda r, w: (r @ w).softmax(-1), rows, mix)

        def combine(a, b):
            return a[0] * b[0], a[1] * b[0] + b[1]

        sums = associative_scan(combine, (turned.sigmoid(), rows), 0, combine_mode="generic")[1]
        count, root = while_loop(lambda i, v: (i < 6) & (v.norm() > 1e-3), lambda i, v: (i + 1, v * 0.7 - 0.1 * v.sin()), (torch.zeros((), dtype=torch.long), last))
        return sums, count, root

    x, start = run.normal(7, 8), run.normal(8)
    with torch.no_grad():
        results = [*f(x, start), *f(-x, start * 3)]

    def again():
        with torch.no_grad():
            return f(x, start)
    return results, again


@script("scores-that-are-learned")
def scores_that_are_learned(run):
    """flex_attention with biases and slopes of heads that a score function reads, a block mask of documents and windows, queries in groups,
    the sums of rows as second result."""
    bias, slopes = run.normal(4, 65) * 0.1, run(torch.tensor([0.5, 0.25, 0.125, 0.06]))
    net = run(nn.ModuleDict({"q": nn.Linear(32, 64), "kv": nn.Linear(32, 64), "out": nn.Linear(64, 32)})).requires_grad_(False)
    documents = torch.tensor([0] * 20 + [1] * 30 + [2] * 14)

    def allowed(b, h, q, k):
        return (documents[q] == documents[k]) & (q >= k) & (q - k < 16)

    mask = create_block_mask(allowed, None, None, 64, 64, device="cpu")

    def score(s, b, h, q, k):
        return 15 * torch.tanh(s / 15) + bias[h, (q - k).clamp(0, 64)] - slopes[h] * (q - k)

    @run.compile
    def f(x):
        q = net["q"](x).unflatten(-1, (4, 16)).transpose(1, 2)
        k, v = net["kv"](x).unflatten(-1, (2, 2, 16)).permute(2, 0, 3, 1, 4)
        y, sums = flex_attention(q, k, v, score_mod=score, block_mask=mask, enable_gqa=True, return_lse=True)
        return net["out"](y.transpose(1, 2).flatten(2)), sums

    with torch.no_grad():
        x = run.normal(2, 64, 32)
        return list(f(x)), lambda: f(x)


@script("exports-of-all-kinds")
def exports_of_all_kinds(run):
    """A module exported with sizes that are named, derived, and found; saved and loaded; unflattened; what the export writes to buffers."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.conv, self.out = nn.Embedding(50, 16), nn.Conv1d(16, 24, 3, padding=1), nn.Linear(24, 5)
            self.register_buffer("seen", torch.zeros(()))

        def forward(self, ids, *, weights=None, scale=1.0):
            self.seen += ids.shape[0]
            x = self.conv(self.words(ids).mT).relu()
            x = torch.cat([x, x[..., -1:]], -1)
            if weights is not None:
                x = x * weights["by_row"][:, None, None]
            return {"scores": self.out(x.mT) * scale, "pooled": x.amax(-1)}

    net = run(Net()).eval()
    ids, weights = torch.randint(50, (3, 12)), {"by_row": run(torch.rand(3))}
    batch, length = torch.export.Dim("batch", min=1, max=64), torch.export.Dim("length", min=4, max=512)
    program = torch.export.export(net, (ids,), {"weights": weights}, dynamic_shapes={"ids": {0: batch, 1: length}, "weights": {"by_row": {0: batch}}})
    file = io.BytesIO()
    torch.export.save(program, file)
    file.seek(0)
    loaded = torch.export.load(file)
    forward, flat = run.compile(loaded.module()), run.compile(torch.export.unflatten(program))
    results = []
    with torch.no_grad():
        for rows, columns in ((3, 12), (5, 7), (1, 40), (8, 4)):
            ids, weights = torch.randint(50, (rows, columns)), {"by_row": run(torch.rand(rows))}
            results += [*forward(ids, weights=weights).values(), *flat(ids, weights=weights).values()]
        draft = torch.export.draft_export(copy.deepcopy(net), (ids,), {"weights": weights})
        results += run.compile(draft.module())(ids, weights=weights).values()
        lower = run.compile(program.run_decompositions({}).module())
        results += lower(ids, weights=weights).values()

        def again():
            return forward(ids, weights=weights)
        return results, again


@script("jagged-rows")
def jagged_rows(run):
    """Rows of several lengths as one nested tensor: norms, layers, gates, means of each, in training."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm, self.mix, self.out = nn.LayerNorm(32), nn.Linear(32, 96), nn.Linear(32, 32)

        def forward(self, values, offsets):
            x = torch.nested.nested_tensor_from_jagged(values, offsets, min_seqlen=1, max_seqlen=16)
            q, k, v = self.mix(self.norm(x)).chunk(3, -1)
            x = x + self.out(F.silu(q) * k.softmax(-1) + v)
            return x.values(), x.to_padded_tensor(0.0).mean(1)

    net = run(Net())
    forward, optimizer = run.compile(net), torch.optim.SGD(net.parameters(), 0.05)

    def step(values, offsets):
        rows, means = forward(values, offsets)
        return descend(optimizer, rows.square().mean() + means.sin().sum())

    return trained(net, step, [(run.normal(20, 32), torch.tensor([0, 5, 12, 20])), (run.normal(20, 32), torch.tensor([0, 1, 16, 20])), (run.normal(26, 32), torch.tensor([0, 9, 10, 26]))])
