"""What is changed in Dynamo's graph before AOTAutograd takes it, inputs that are lists, and backward passes that run again."""

import unittest
import warnings

import torch
import torch._dynamo
from torch import nn
from torch._higher_order_ops import associative_scan
from with_torch import Whole, needs_torch

from sylvite import torch_backend


class Places(Whole):
    """Of elements by a number that is a tensor. One graph at least: Dynamo leaves a function to Python where AOTAutograd fails."""

    def test_elements(self):
        def f(x, t):
            return x[t] * 2, x[t - t + 1], x[:, t].exp(), x[None, ..., t].sin(), x[t, t] * 3, x[t, None, 1:3] + 1, x[1, t].cos()

        x = torch.randn(6, 5)
        for number in (2, -3):
            for dtype in (torch.int64, torch.int32):
                torch._dynamo.reset()
                self.assertTrue(self.check(f, x, torch.tensor(number, dtype=dtype)))
        self.assertTrue(self.check_gradients(lambda x, t: x[t] * 2 + x[t, 1] * x[t, None, 1:2].sin(), x, torch.tensor(2)))

    @needs_torch((2, 14), "captures a place as a number")
    def test_a_step_of_a_sampler(self):
        table = torch.linspace(1, 0.1, 20)

        def step(x, t):
            return x * table[t].sqrt() + (1 - table[t]).sqrt() * torch.tanh(x)

        compiled = self.compiled(step)
        x = torch.randn(3, 4)
        with torch_backend.listen() as graphs:
            for number in range(4):
                self.assert_same(compiled(x, torch.tensor(number)), step(x, torch.tensor(number)))
        self.assertEqual(len(graphs), 1)

    def test_writes(self):
        def f(x, t):
            y = x + 1
            y[t] = 3
            y[:, t] = x[:, 0]
            y[..., t - t] = y[0, 0] * 2
            y[1:3, t] = x[:2, :1].sum(1)
            y[t, 1] = 7.0
            y[t] = y[t] + 1
            x[t] = x[t] * 0.5
            return y * 2

        given = [torch.randn(6, 5)] * 2
        given = [x.clone() for x in given]
        with torch_backend.listen() as graphs:
            compiled = self.compiled(f)
            for number in (2, -1):
                self.assert_same(compiled(given[1], torch.tensor(number)), f(given[0], torch.tensor(number)))
                self.assert_same(given[1], given[0])
        self.assertTrue(graphs)

    def test_views_stay_views(self):
        def f(x, t):
            part = x[t]
            return part * 2, part

        for function in (f, lambda x, t: (x[t].add_(1), x + 1), lambda x, t: ((y := x + 1)[t], y.mul_(3))):
            torch._dynamo.reset()
            given = [torch.arange(12.0).reshape(3, 4) for _ in range(2)]
            results = [g(x, torch.tensor(1)) for g, x in zip((function, self.compiled(function)), given)]
            self.assert_same(results[1], results[0])
            for result in results:
                result[1].add_(5)
            self.assert_same(results[1], results[0])
            self.assert_same(given[1], given[0])


class Mapped(Whole):
    """Functions over batches and derivatives, whose tensors have others inside of them."""

    def test_derivatives_that_write(self):
        warnings.simplefilter("ignore")  # of torch, which scripts something there
        w, table = torch.randn(5, 5), torch.randn(6, 5)

        def g(x):
            return torch.tanh(w @ x).cumsum(0)

        def written(x):
            y = x * 2
            y.add_(table[1])
            y[1:3] = x[:2].sin()
            return y

        def f(x):
            by_row = [torch.vmap(d)(x) for d in (torch.func.jacrev(g), torch.func.jacfwd(g), torch.func.hessian(lambda y: g(y).sum()))]
            return *by_row, torch.vmap(written)(x), torch.vmap(torch.func.jacrev(written))(x)

        self.check(f, torch.randn(3, 5))


class Scans(Whole):
    @needs_torch((2, 14), "scans by pairs on GPUs alone")
    def test_associative_ones_work_on_all_pairs(self):
        def f(x, y):
            def combine(p, q):
                return p[0] * q[0], q[0] * p[1] + q[1]

            return associative_scan(torch.mul, x.sigmoid(), 0), *associative_scan(combine, (x, y), 1, reverse=True)

        x, y = torch.randn(7, 5), torch.randn(7, 5)
        graphs = self.check(f, x, y)
        self.assertEqual([graph.torch_parts for graph in graphs], [0])
        # Torch's gradient of a pointwise function of pairs is wrong: that of the generic form is the one to have.
        wanted = torch.func.grad(lambda x: associative_scan(torch.mul, x.sigmoid(), 0, combine_mode="generic").square().sum())(x)
        given = x.clone().requires_grad_()
        self.compiled(lambda x: associative_scan(torch.mul, x.sigmoid(), 0).square().sum())(given).backward()
        self.assert_same(given.grad, wanted)


class Lists(Whole):
    def test_compiled_autograd(self):
        warnings.simplefilter("default")  # torch looks at gradients of values that have none
        models = []
        for compiles in (False, True):
            torch.manual_seed(0)
            torch._dynamo.reset()
            model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 2))
            loss = (self.compiled(model) if compiles else model)(torch.randn(4, 8)).square().mean()
            if compiles:
                with torch._dynamo.compiled_autograd._enable(torch.compile(backend="sylvite", fullgraph=True)):
                    loss.backward()
            else:
                loss.backward()
            models.append([parameter.grad for parameter in model.parameters()])
        self.assert_same(models[1], models[0])


class Again(Whole):
    @needs_torch((2, 14), "saves what depends on no input")
    def test_what_depends_on_no_input_is_not_saved(self):
        def f(x):
            rows = torch.arange(x.shape[0])
            mask = (rows[:, None] >= rows) & ((rows % 3).cumsum(0) > 1)
            return torch.where(mask, x.exp(), 0.0) * mask.cumsum(0)

        graphs = self.check_gradients(f, torch.randn(7, 7))
        (backward,) = (graph for graph in graphs if graph.kind == "backward")
        self.assertEqual(backward.texts[0].splitlines()[0].count(": "), 2)  # exp(x), and the gradient of the result

    def test_a_backward_pass_that_keeps_its_graph(self):
        a, b = nn.Linear(4, 4), nn.Linear(4, 2)

        def f(x):
            y = torch.relu(a(x))
            return b(y.exp()), y * 2

        x, grads = torch.randn(3, 4), []
        for function in (f, self.compiled(f)):
            first, second = function(x)
            first.sum().backward(retain_graph=True)
            first.square().sum().backward(retain_graph=True)
            second.sum().backward()
            grads.append([p.grad for model in (a, b) for p in model.parameters()])
            a.zero_grad()
            b.zero_grad()
        self.assert_same(grads[1], grads[0])


if __name__ == "__main__":
    unittest.main()
