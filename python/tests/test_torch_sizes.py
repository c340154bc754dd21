"""Sizes that are computed from others: by divisions by sizes, roundings and scales."""

import math
import subprocess
import sys
import unittest

import torch
from torch import nn
from with_torch import WithTorch

import sylvite
from sylvite import torch_backend

F = nn.functional


def blocks(x):
    """The last axis padded to a multiple of 4, and the greatest of each 4."""
    return F.pad(x, (0, -x.shape[1] % 4)).view(x.shape[0], -1, 4).amax(-1)


def windows(x):
    b, h, w, c = x.shape
    return x.view(b, h // 2, 2, w // 2, 2, c).permute(0, 1, 3, 2, 4, 5).reshape(-1, 4, c).softmax(1)


class ComputedSizes(WithTorch):
    def check_sizes(self, function, *shapes, captures=1):
        """Right at each of the sizes, with and without gradients; torch runs no part, and captures the function so often."""
        for trains in (False, True):
            torch._dynamo.reset()
            compiled = torch.compile(function, backend="sylvite", options={"fullgraph_strict": True}, dynamic=True)
            with torch_backend.listen() as graphs:
                for shape in shapes:
                    given = [torch.randn(*shape).requires_grad_(trains)]
                    given.append(given[0].detach().clone().requires_grad_(trains))
                    results = [f(x) for f, x in zip((compiled, function), given)]
                    self.assert_same(results[0], results[1])
                    if trains:
                        for result in results:
                            result.square().sum().backward()
                        self.assert_same(given[0].grad, given[1].grad)
            self.assertEqual(len(graphs), captures * (2 if trains else 1))
            self.assertTrue(all(graph.torch_parts == 0 and not graph.failure for graph in graphs))

    def test_divided_by_sizes(self):
        self.check_sizes(lambda x: x.reshape(x.shape[0], x.shape[1] // 2, 2, x.shape[2]).mean(2), (2, 8, 3), (3, 12, 5), (4, 6, 7))
        self.check_sizes(lambda x: x.reshape(x.shape[0], -1, 2).transpose(1, 2).flatten(1), (2, 8), (3, 12), (5, 6))
        self.check_sizes(lambda x: x.view(x.shape[0], x.shape[1] // x.shape[0], x.shape[0]).sum(2), (2, 8), (3, 12), (4, 16))
        self.check_sizes(windows, (2, 4, 6, 3), (3, 8, 4, 3), (4, 6, 8, 3))

    def test_rounded(self):
        self.check_sizes(blocks, (2, 9), (3, 11), (5, 6))
        self.check_sizes(lambda x: x.sum(1, keepdim=True) * x.new_ones(math.ceil(x.shape[1] / 4)), (2, 8), (3, 11), (5, 6))

    def test_scaled(self):
        self.check_sizes(lambda x: F.interpolate(x, scale_factor=0.5, mode="nearest"), (2, 2, 8, 10), (3, 2, 10, 12), (4, 2, 6, 8),
                         captures=2)  # of torch itself
        self.check_sizes(lambda x: F.pixel_shuffle(x, 2), (2, 8, 4, 5), (3, 8, 6, 7), (4, 8, 5, 3))

    def test_many_in_turn(self):
        """Plans of later sizes follow from those of the first ones; a slice ends where it or the input does."""

        def function(x):
            scores = (x @ x.transpose(1, 2)).masked_fill(torch.ones(x.shape[1], x.shape[1]).tril() == 0, -math.inf)
            mixed = scores.softmax(-1) @ x
            return mixed[:, :20] * x[:, -1:], torch.cat([mixed, x[:, 1:]], 1).mean(1), x.unfold(1, 2, 2).amax(-1)

        compiled = torch.compile(function, backend="sylvite", options={"fullgraph_strict": True}, dynamic=True)
        with torch_backend.listen() as graphs:
            for call in range(60):
                x = torch.randn(2 + call * 7 % 23, 3 + call * 11 % 41, 6)
                self.assert_same(compiled(x), function(x))
        self.assertTrue(all(graph.torch_parts == 0 and not graph.failure for graph in graphs))

    def test_parameters_change_between_sizes(self):
        """What imports at several sizes have in common, and how results lie, is of the parameters that there are."""
        model = nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU()).eval()

        def function(x):
            maps = model(x)
            return maps.permute(0, 2, 3, 1), maps.mean((2, 3)), maps.shape[2] * 2

        compiled = torch.compile(function, backend="sylvite", options={"fullgraph_strict": True}, dynamic=True)
        with torch.no_grad():
            for call in range(48):
                if call in (16, 32):
                    model[0].weight.mul_(1.5)
                    model[1].running_mean.add_(0.25)
                x = torch.randn(2 + call % 5, 3, 8 + call * 7 % 19, 9 + call * 5 % 23)
                results, expected = compiled(x), function(x)
                self.assert_same(results[:2], expected[:2])
                self.assertEqual(results[2], expected[2])
                self.assertEqual(results[0].stride(), expected[0].stride())

    def test_in_parts(self):
        """Where torch runs an operation between, too."""
        def function(x):
            return blocks(torch.poisson(blocks(x).exp() * 0))

        compiled = torch.compile(function, backend="sylvite", dynamic=True)
        with torch.no_grad():
            for shape in ((2, 9), (3, 30), (5, 6)):
                x = torch.randn(shape)
                self.assert_same(compiled(x), function(x))

    def test_many_sizes_in_turns(self):
        compiled = self.compiled(blocks)
        with torch.no_grad():
            for i in range(60):
                x = torch.randn(2 + i % 3, 5 + i * 7 % 11)
                torch._dynamo.maybe_mark_dynamic(x, 1)
                self.assert_same(compiled(x), blocks(x))

    def test_handles(self):
        sizes = {"x": {0: torch.export.Dim.DYNAMIC, 1: torch.export.Dim.DYNAMIC}}

        class Blocks(nn.Module):
            def forward(self, x):
                return blocks(x)

        handle = sylvite.program(Blocks(), torch.randn(3, 9), dynamic_shapes=sizes)
        for shape in ((2, 9), (3, 30), (5, 6)):
            x = torch.randn(shape)
            self.assert_same(handle(x), blocks(x))


class WholeNumbers(WithTorch):
    """Those that are operands are tensors for a program, which would else be one for each number."""

    def check_numbers(self, function, *inputs, gradients=False, large=2**31 + 3):
        """Whether the last graph's text has a whole number, beside eager at several."""
        compiled = torch.compile(function, backend="sylvite", options={"fullgraph_strict": True})
        with torch_backend.listen() as graphs:
            for n in (5, 7, large, -4):
                found = []
                for run in (function, compiled):
                    given = [x.clone().requires_grad_(gradients and x.is_floating_point()) for x in inputs]
                    result = run(*given, n)
                    if gradients:
                        result.square().sum().backward()
                    found.append([result.detach(), *(x.grad for x in given if x.grad is not None)])
                self.assert_same(found[1], found[0])
        return any(": int" in text for text in graphs[-1].texts)

    def test_beside_tensors(self):
        functions = (lambda x, n: x * n + n, lambda x, n: n - x, lambda x, n: x / n, lambda x, n: (x > n) | (x == n) | (n <= x + n))
        for dtype in (torch.float32, torch.float64, torch.int32, torch.int64):
            x = (torch.randn(3, 5) * 9).to(dtype)
            for f in functions:
                torch._dynamo.reset()
                self.assertFalse(self.check_numbers(f, x, large=1000 if dtype == torch.int32 else 2**31 + 3))

    def test_with_gradients(self):
        self.check_numbers(lambda x, y, n: (x * n).tanh() * y / n, torch.randn(4), torch.randn(4), gradients=True)

    def test_where_the_number_decides_the_type(self):
        self.assertTrue(self.check_numbers(lambda x, n: x.sum(dtype=torch.int32) * n, torch.ones(3, dtype=torch.int32), large=9))
        torch._dynamo.reset()
        self.assertTrue(self.check_numbers(lambda x, n: x.bfloat16() * n, torch.randn(3)))

    def test_sizes_that_are_operands(self):
        compiled = torch.compile(lambda x, n: x[:n] * n + n, backend="sylvite", options={"fullgraph_strict": True})
        for n in (3, 4, 6, 2):
            x = torch.randn(8)
            self.assert_same(compiled(x, n), x[:n] * n + n)


class ToldSizes(WithTorch):
    def test_labels(self):
        """Their length is a size of its own for torch, whose guards say that it is that of what they label: no program has it."""
        def function(x, wanted):
            return F.cross_entropy(x[:, ::4].tanh().flatten(0, 1), wanted.flatten())

        compiled = torch.compile(function, backend="sylvite", options={"fullgraph_strict": True}, dynamic=True)
        with torch_backend.listen() as graphs:
            for call in range(40):
                batch, frames = 2 + call % 5, 9 + call * 7 % 45
                given = [torch.randn(batch, frames, 6).requires_grad_() for _ in range(2)]
                given[1].data.copy_(given[0].data)
                wanted = torch.randint(0, 6, (batch, (frames + 3) // 4))
                results = [run(x, wanted) for run, x in zip((compiled, function), given)]
                for result in results:
                    result.backward()
                self.assert_same(results[0], results[1])
                self.assert_same(given[0].grad, given[1].grad)
        self.assertEqual(len(graphs), 2)
        self.assertTrue(all(text.count(": int") == 3 for graph in graphs for text in graph.texts))
        with self.assertRaises(torch._dynamo.exc.TorchRuntimeError):
            compiled(torch.randn(2, 12, 6), torch.zeros(2, 4, dtype=torch.int64))

    def test_where_a_condition_tells(self):
        def function(x, y):
            return x.sum(0) * y.sum(0) if x.shape[0] * x.shape[1] == x.shape[1] * (y.shape[0] // 2 + 1) else x.sum(0) - y.sum(0)

        compiled = torch.compile(function, backend="sylvite", options={"fullgraph_strict": True}, dynamic=True)
        for a, b in ((3, 4), (5, 8), (5, 9), (5, 7), (4, 6), (4, 4), (7, 12)):
            x, y = torch.randn(a, 3), torch.randn(b, 3)
            self.assert_same(compiled(x, y), function(x, y))

    def test_nothing(self):
        """An empty cache, no batch and no rows."""
        def attended(x, past):
            keys = torch.cat([past, x], 1)
            return torch.softmax(x @ keys.transpose(1, 2), -1) @ keys, keys, past.sum(1), past.mean(1)

        compiled = torch.compile(attended, backend="sylvite", dynamic=True)
        for batch, rows, count in ((2, 3, 4), (3, 5, 7), (2, 3, 0), (0, 3, 2), (2, 0, 3), (4, 6, 0), (2, 3, 4)):
            given = (torch.randn(batch, rows, 8), torch.randn(batch, count, 8))
            for got, wanted in zip(compiled(*given), attended(*given)):
                torch.testing.assert_close(got, wanted, rtol=1e-4, atol=1e-4, equal_nan=True)


class KnownSizes(unittest.TestCase):
    def test_halves_of_images(self):
        """Results lie by sizes that are no polynomials of those that are given: later sizes need no import."""
        code = """
import sys, torch, sylvite
net = torch.nn.Sequential(torch.nn.Conv2d(3, 16, 3, 2, 1), torch.nn.ReLU(), torch.nn.Conv2d(16, 8, 3, 2, 1))
net = net.to(memory_format=torch.channels_last)
compiled = torch.compile(net, backend="sylvite", dynamic=True, options={"log.level": "info"})
for batch, side in [(2, 64), (9, 128), (4, 80), (7, 112), (3, 120), (5, 72), (8, 104), (6, 96), (0, 0), (5, 88), (7, 96)]:
    if batch == 0:
        print("known from here", file=sys.stderr, flush=True)
        continue
    x = torch.randn(batch, 3, side, side).to(memory_format=torch.channels_last)
    with torch.no_grad():
        assert torch.allclose(compiled(x), net(x), atol=1e-4)
"""
        ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        self.assertEqual(ran.returncode, 0, ran.stderr[-2000:])
        before, after = ran.stderr.split("known from here")
        self.assertIn("import:", before)
        self.assertNotIn("import:", after)


if __name__ == "__main__":
    unittest.main()
