"""Sizes that are computed from others: by divisions by sizes, roundings and scales."""

import math
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


if __name__ == "__main__":
    unittest.main()
