"""Further SCRIPTS, in the form of torch_training_scripts.py: what torch's libraries and transformers offer, around compiled calls."""

import copy
import dataclasses
import warnings
from typing import NamedTuple

import torch
import torch.distributions as D
import torch.nn.functional as F
from torch import nn
from torch._higher_order_ops.associative_scan import associative_scan
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop
from torch.func import functional_call, hessian, jacrev, jvp, stack_module_state, vjp, vmap
from torch.nn.attention.flex_attention import create_block_mask, flex_attention
from torch.nn.utils import parametrizations, parametrize, prune
from torch_training_scripts import perceptron, script


def with_gradients(run, function, *inputs, module=None):
    """The results and gradients of inputs (and of the module's parameters); and a step that makes them again."""
    compiled = run.compile(function)

    def step():
        given = [x.detach().requires_grad_() if x.is_floating_point() or x.is_complex() else x for x in inputs]
        if module is not None:
            module.zero_grad()
        results = [x for x in torch.utils._pytree.tree_leaves(compiled(*given)) if isinstance(x, torch.Tensor)]
        sum(x.abs().square().mean() for x in results if x.requires_grad).backward()
        parameters = list(module.parameters()) if module is not None else []
        return [x.detach() for x in results] + [x.grad.clone() for x in (*given, *parameters) if x.grad is not None]

    return [*step(), *step()], step


@script("densities")
def densities(run):
    def function(x, place, spread, logits):
        spread = F.softplus(spread)
        normal, gamma = D.Normal(place, spread), D.Gamma(spread, spread + 1)
        found = [normal.log_prob(x), normal.cdf(x), normal.icdf(x.sigmoid()), normal.entropy(), gamma.log_prob(x.exp()), D.Beta(spread, spread + 1).log_prob(x.sigmoid())]
        found += [D.StudentT(spread + 2, place).log_prob(x), D.Laplace(place, spread).cdf(x), D.Cauchy(place, spread).log_prob(x), D.Gumbel(place, spread).log_prob(x)]
        found += [D.Dirichlet(spread).log_prob(x.softmax(-1)), D.Categorical(logits=logits).entropy(), D.Bernoulli(logits=logits).log_prob((x > 0).to(x.dtype))]
        found += [D.kl_divergence(normal, D.Normal(torch.zeros_like(place), 1.0)), D.kl_divergence(D.Categorical(logits=logits), D.Categorical(logits=x))]
        found += [D.MixtureSameFamily(D.Categorical(logits=logits), D.Normal(place, spread)).log_prob(x[:, 0]), D.Poisson(spread).log_prob(x.abs().round())]
        found += [D.Independent(normal, 1).log_prob(x), D.NegativeBinomial(spread, logits=logits).log_prob(x.abs().round()), D.VonMises(place, spread).log_prob(x)]
        return found

    return with_gradients(run, function, *(run.normal(6, 5) for _ in range(4)))


@script("matrix-normal")
def matrix_normal(run):
    def function(x, mean, factor, wide):
        lower = factor.tril(-1) + torch.diag_embed(F.softplus(factor.diagonal(dim1=-2, dim2=-1)))
        one = D.MultivariateNormal(mean, scale_tril=lower)
        low = D.LowRankMultivariateNormal(mean, wide, torch.ones_like(mean))
        return one.log_prob(x), one.entropy(), D.kl_divergence(one, D.MultivariateNormal(torch.zeros_like(mean), torch.eye(4, dtype=x.dtype))), low.log_prob(x)

    return with_gradients(run, function, run.normal(7, 4), run.normal(4), run.normal(4, 4), run.normal(4, 2))


@script("flow")
def flow(run):
    """A density by transforms, and one through which draws are trained (their numbers are given)."""
    def function(x, noise, shift, scale):
        chain = [D.AffineTransform(shift, scale.exp()), D.TanhTransform(cache_size=1), D.AffineTransform(0.5, 2.0)]
        y = D.ComposeTransform(chain)(noise)
        found = D.TransformedDistribution(D.Normal(torch.zeros_like(shift), 1.0), chain).log_prob(y * 0.99 + 0.005)
        bounded = D.TransformedDistribution(D.Normal(shift, scale.exp()), [D.SigmoidTransform()])
        return y, found, bounded.log_prob(x.sigmoid()), D.LogNormal(shift, scale.exp()).log_prob(x.exp())

    return with_gradients(run, function, run.normal(9, 3), run.normal(9, 3), run.normal(3), run.normal(3))


@script("policy")
def policy(run):
    """An agent's loss by ratios of probabilities, entropies, advantages by a scan backwards."""
    net = perceptron(run, 6, 32, 5)

    def function(states, actions, old, rewards, done):
        logits, value = net(states).split([4, 1], -1)
        choice = D.Categorical(logits=logits)
        later = torch.zeros_like(rewards[:, 0])
        found = []
        for t in reversed(range(rewards.shape[1] - 1)):
            later = rewards[:, t] + 0.99 * value[:, t + 1, 0] * done[:, t] - value[:, t, 0] + 0.9 * done[:, t] * later
            found.append(later)
        gain = torch.stack(found[::-1], 1).detach()
        ratio = (choice.log_prob(actions) - old)[:, :-1].exp()
        lost = -torch.minimum(ratio * gain, ratio.clamp(0.8, 1.2) * gain).mean()
        return lost - 0.01 * choice.entropy().mean() + F.mse_loss(value[:, :-1, 0], gain + value[:, :-1, 0].detach())

    given = run.normal(4, 8, 6), torch.randint(4, (4, 8)), -run.normal(4, 8).abs(), run.normal(4, 8), run((torch.rand(4, 8) > 0.1).float())
    return with_gradients(run, function, *given, module=net)


@script("draws")
def draws(run):
    """Numbers that are drawn are not eager's: moments are, roughly, and a seed repeats them."""
    @run.compile
    def function(x):
        normal, beta = D.Normal(x, 2.0).rsample((4000,)), D.Beta(x.exp(), torch.ones_like(x)).mean
        chosen, once = D.Categorical(logits=x).sample((4000,)), D.Bernoulli(x.sigmoid()).sample((4000,))
        warm = D.RelaxedOneHotCategorical(torch.tensor(0.5), logits=x).rsample((1000,))
        return normal, beta, F.one_hot(chosen, 5).float(), once, F.gumbel_softmax(x.expand(4000, 5), hard=True), F.dropout(torch.ones(20000), 0.3), warm

    x = torch.linspace(-1, 1, 5)
    torch.manual_seed(3)
    first = function(x)
    torch.manual_seed(3)
    again = function(x)
    told = torch.tensor([torch.equal(a, b) for a, b in zip(first, again)])
    return [told, *((a.mean(0) * 4).round() / 4 if i in (1,) else (a.float().mean(0) - a.float().mean(0)) for i, a in enumerate(first))], lambda: function(x)


@script("derivative-kinds")
def derivative_kinds(run):
    net = perceptron(run, 3, 16, 2)
    parameters = dict(net.named_parameters())

    def function(x, t):
        one = lambda p: net(p).tanh()  # noqa: E731
        _, pull = vjp(one, x)
        bends = vmap(hessian(lambda p: one(p).sum()))(x)
        through = vmap(jacrev(lambda p, q: functional_call(net, p, (q,))), (None, 0))(parameters, x)
        return pull(t)[0], jvp(one, (x,), (x.sin(),)), bends, through

    results = run.compile(function)
    return list(torch.utils._pytree.tree_leaves(results(run.normal(5, 3), run.normal(5, 2)))), None


@script("many-models")
def many_models(run):
    nets = [perceptron(run, 6, 16, 3) for _ in range(4)]
    parameters, buffers = stack_module_state(nets)
    base = copy.deepcopy(nets[0]).to("meta")

    def function(x, *values):
        named = dict(zip(parameters, values))
        return vmap(lambda p, b, x: functional_call(base, (p, b), (x,)), (0, 0, None))(named, buffers, x).softmax(-1).var(0)

    return with_gradients(run, function, run.normal(7, 6), *parameters.values())


class Symmetric(nn.Module):
    def forward(self, x):
        return x.triu() + x.triu(1).T

    def right_inverse(self, x):
        return x.triu()


@script("parametrised-weights")
def parametrised_weights(run):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        layers = [nn.utils.weight_norm(nn.Linear(12, 12)), nn.utils.spectral_norm(nn.Linear(12, 12)), parametrizations.orthogonal(nn.Linear(12, 12))]
    layers += [nn.Linear(12, 12), nn.Linear(12, 12), nn.LazyLinear(6)]
    parametrize.register_parametrization(layers[3], "weight", Symmetric())
    prune.l1_unstructured(layers[4], "weight", 0.5)
    net = nn.Sequential(*layers)
    net(torch.zeros(1, 12))
    net = run(net)
    results, step = with_gradients(run, net, run.normal(5, 12), module=net)
    net.eval()
    with torch.no_grad(), parametrize.cached():
        return [*results, run.compile(net)(run.normal(5, 12)), nn.utils.parameters_to_vector(net.parameters())], step


class Swish(torch.autograd.Function):
    @staticmethod
    def forward(x, slope, power):
        return x * torch.sigmoid(slope * x) ** power

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, slope, ctx.power = inputs
        ctx.save_for_backward(x, slope)

    @staticmethod
    def backward(ctx, grad):
        x, slope = ctx.saved_tensors
        s = torch.sigmoid(slope * x)
        inner = ctx.power * s**ctx.power * (1 - s)
        return grad * (s**ctx.power + x * slope * inner), (grad * x * x * inner).sum_to_size(slope.shape), None


class Reversed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, rate):
        ctx.rate = rate
        return x.view_as(x)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad):
        return -ctx.rate * grad, None


@script("own-functions")
def own_functions(run):
    return with_gradients(run, lambda x, s: (Swish.apply(x, s, 2), Reversed.apply(x.cos(), 0.3), Swish.apply(Reversed.apply(x, 2.0), s[:1], 1)),
                          run.normal(6, 8), run.normal(8))  # fmt: skip


@torch.library.custom_op("scripts::soft_cap", mutates_args=())
def soft_cap(x: torch.Tensor, cap: float) -> torch.Tensor:
    return cap * torch.tanh(x / cap)


@soft_cap.register_fake
def _(x, cap):
    return torch.empty_like(x)


soft_cap.register_autograd(lambda ctx, grad: (grad * (1 - (ctx.saved_tensors[0] / ctx.cap).square()), None),
                           setup_context=lambda ctx, inputs, output: (ctx.save_for_backward(output), setattr(ctx, "cap", inputs[1])))  # fmt: skip


@torch.library.custom_op("scripts::add_count", mutates_args={"count"})
def add_count(x: torch.Tensor, count: torch.Tensor) -> None:
    count.add_((x > 0).sum(0))


@torch.library.custom_op("scripts::pick", mutates_args=())
def pick(x: torch.Tensor, limit: float) -> list[torch.Tensor]:
    return [x[x > limit].clone(), x.amax(0)]


@pick.register_fake
def _(x, limit):
    return [x.new_empty(torch.library.get_ctx().new_dynamic_size()), x.new_empty(x.shape[1])]


@script("own-operations")
def own_operations(run):
    count = torch.zeros(8, dtype=torch.long)

    def function(x):
        y = soft_cap(x @ x.T, 2.0).softmax(-1) @ x
        add_count(y.detach(), count)
        return y * count.to(y.dtype), y.exp()

    results, step = with_gradients(run, function, run.normal(6, 8))
    picked = run.compile(lambda x: [y * 2 + 1 for y in pick(x.sin(), 0.1)])
    return [*results, count.clone(), *picked(run.normal(4, 8)), *picked(run.normal(4, 8))], step


@script("higher-orders")
def higher_orders(run):
    def function(x, w):
        last, rows = scan(lambda c, y: ((c * 0.9 + y).tanh(), (c * y).sum(-1)), torch.zeros_like(x[0]), x)
        sums = associative_scan(lambda a, b: (a[0] * b[0], b[0] * a[1] + b[1]), (x.sigmoid(), x), 0, combine_mode="generic")[1]
        either = torch.cond(x.sum() > 0, lambda x: (x @ w).relu(), lambda x: x.sin() @ w.exp(), (x,))
        return last, rows, sums, either, torch._higher_order_ops.map(lambda row: row.softmax(-1) @ w, x)

    results, step = with_gradients(run, function, run.normal(10, 6), run.normal(6, 6) / 3)
    newton = run.compile(lambda x: while_loop(lambda i, y: (y * y - x).abs().max() > 1e-5, lambda i, y: (i + 1, (y + x / y) / 2), (torch.tensor(0), x + 1)))
    return [*results, *newton(run.normal(9).abs() + 0.5)], step


@script("flexible-attention")
def flexible_attention(run):
    """Windows, prefixes, biases that are trained, groups of queries; and one row of queries with a cache."""
    slopes = run.normal(4)
    q, k, v = run.normal(2, 4, 64, 16), run.normal(2, 2, 64, 16), run.normal(2, 2, 64, 16)
    prefix = torch.tensor([10, 30])
    window = create_block_mask(lambda b, h, i, j: (i - j).abs() <= 12, None, None, 64, 64, device="cpu", BLOCK_SIZE=16)
    begin = create_block_mask(lambda b, h, i, j: (j < prefix[b]) | (i >= j), 2, None, 64, 64, device="cpu", BLOCK_SIZE=32)

    @run.compile
    def function(q, k, v):
        a = flex_attention(q, k, v, block_mask=window, enable_gqa=True)
        b = flex_attention(q, k, v, score_mod=lambda s, b, h, i, j: s + slopes[h] * (j - i) * 0.1, block_mask=begin, enable_gqa=True)
        return a, b, flex_attention(q[:, :, -1:], k, v, score_mod=lambda s, b, h, i, j: torch.where(j <= 40, s, -float("inf")), enable_gqa=True)

    with torch.no_grad():
        return list(function(q, k, v)), lambda: function(q, k, v)


@script("ragged")
def ragged(run):
    """Nested tensors of rows of several lengths, by jagged layout."""
    net = perceptron(run, 16, 32, 16)

    @run.compile
    def function(x):
        y = F.layer_norm(net(x) + x, (16,))
        return y * 2, y.softmax(-1) - x.cos()

    found = []
    for lengths in ((3, 7, 5), (4, 2, 9, 6)):
        x = torch.nested.nested_tensor([run.normal(n, 16) for n in lengths], layout=torch.jagged)
        with torch.no_grad():
            found += [y.values() for y in function(x)]
    return found, None


class Answer(NamedTuple):
    scores: torch.Tensor
    best: torch.Tensor


@dataclasses.dataclass
class Whole:
    answer: Answer
    parts: dict
    note: str = "none"


@script("structured")
def structured(run):
    """Results in classes, tuples with names, dictionaries; arguments by name, of which some are absent."""
    net = perceptron(run, 8, 16, 4)

    @run.compile
    def function(x, *, mask=None, scale=1.0, names=("a", "b")):
        y = net(x) * scale
        y = y if mask is None else y.masked_fill(mask, -1e9)
        return Whole(Answer(y, y.argmax(-1)), {name: y.sum(i) for i, name in enumerate(names)}, note=f"{len(names)}")

    x = run.normal(6, 8)
    with torch.no_grad():
        made = [function(x), function(x, mask=torch.rand(6, 4) > 0.7), function(x, scale=0.5), function(x[:3], scale=0.25, names=("b",))]
    return [t for each in made for t in (*each.answer, *each.parts.values())], lambda: function(x)


@script("views-written")
def views_written(run):
    def function(x, state):
        y = x.clone()
        y[1:, ::2].mul_(2)
        y.t()[0].add_(x[:, 1])
        y.view(-1)[3:9] = 0
        y.unfold(1, 2, 2)[:, 0].clamp_(max=0.5)
        torch.as_strided(y, (3,), (9,), 1).exp_()
        state[:, :2].copy_(y[:3, :2])
        state.diagonal().fill_(1)
        a, b = y.chunk(2)
        b -= a.flip(0)
        return y, b.t(), state[1:]

    state_of, results = run.normal(3, 4), []
    compiled = run.compile(function)
    with torch.no_grad():
        for _ in range(3):
            results += [t.clone() for t in compiled(run.normal(6, 8), state_of)]
    return [*results, state_of], lambda: compiled(results[0], state_of)


@script("spectra")
def spectra(run):
    def function(x, filter, mix):
        f = torch.fft.rfft(x, n=48, dim=-1)
        y = torch.fft.irfft(f * filter, n=48)
        z = torch.einsum("bif,io->bof", f, mix)
        s = torch.stft(x.flatten(0, 1), 16, 4, window=torch.hann_window(16, dtype=x.dtype), return_complex=True)
        back = torch.istft(s * 0.5, 16, 4, window=torch.hann_window(16, dtype=x.dtype))
        shifted = torch.fft.fftshift(torch.fft.fftn(x, dim=(1, 2)), dim=(1, 2))
        return y, z.abs(), z.angle().cos(), s.real, back, shifted.imag, torch.fft.hfft(f[..., :9]), (f.conj() * f).real.log1p(), torch.view_as_real(z.exp().sqrt())

    return with_gradients(run, function, run.normal(2, 3, 40), torch.complex(run.normal(25), run.normal(25)), torch.complex(run.normal(3, 4), run.normal(3, 4)))


@script("complex-weights")
def complex_weights(run):
    weight = torch.complex(run.normal(8, 8), run.normal(8, 8)) / 4

    def function(x, w):
        y = x @ w + 1j * x.conj()
        z = torch.where(y.real[..., None].sum(-1) > 0, y, y * 0.1)
        return z, (z @ z.mH).diagonal().real, torch.linalg.norm(z), z.sum(0).prod(), z.cumsum(0), torch.polar(z.abs(), z.angle()).mean()

    return with_gradients(run, function, torch.complex(run.normal(5, 8), run.normal(5, 8)), weight)


@script("linear-algebra")
def linear_algebra(run):
    def function(a, b):
        s = a @ a.mT + 3 * torch.eye(6, dtype=a.dtype)
        lower = torch.linalg.cholesky(s)
        found = [torch.cholesky_solve(b, lower), torch.linalg.solve_triangular(lower, b, upper=False), torch.linalg.solve(s, b), torch.linalg.inv(s)]
        found += [torch.linalg.slogdet(s)[1], torch.linalg.det(s / 4), torch.linalg.matrix_exp(a / 4), torch.linalg.pinv(a), torch.linalg.matrix_power(s / 5, 3)]
        found += [torch.linalg.eigvalsh(s), torch.linalg.svdvals(a), torch.linalg.qr(a)[1].abs(), torch.linalg.cond(s), torch.linalg.vector_norm(a, 3, -1)]
        return [*found, torch.linalg.lstsq(s, b).solution, torch.linalg.multi_dot([a[0], s[0], b[0]]), torch.cov(a[0]), torch.corrcoef(a[1]), torch.kron(a[0], b[0])]

    return with_gradients(run, function, run.normal(2, 6, 6), run.normal(2, 6, 2))
