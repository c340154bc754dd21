"""Sizes that depend on data: torch finds them out, and programs take them as open sizes."""

import unittest

import torch
import torch._dynamo.config
from torch import nn
from with_torch import WithTorch

from sylvite import torch_backend

F = nn.functional


class SizesOfData(WithTorch):
    def setUp(self):
        super().setUp()
        found = torch._dynamo.config.patch(capture_scalar_outputs=True, capture_dynamic_output_shape_ops=True)
        found.__enter__()
        self.addCleanup(found.__exit__, None, None, None)

    def check_calls(self, function, calls, programs=None):
        """Right in each call, without and with gradients of those that have any; all but what finds sizes is programs."""
        for trains in (False, True):
            torch._dynamo.reset()
            compiled = torch.compile(function, backend="sylvite", fullgraph=True)
            with torch_backend.listen() as graphs:
                for inputs in calls:
                    given = [[x.clone().requires_grad_(trains and x.is_floating_point()) for x in inputs] for _ in range(2)]
                    results = [f(*each) for f, each in zip((compiled, function), given)]
                    self.assert_same(*results)
                    if trains:
                        for each in results:
                            sum(r.square().sum() for r in each if isinstance(r, torch.Tensor) and r.requires_grad).backward()
                        self.assert_same(*[[x.grad for x in each] for each in given])
            self.assertFalse([graph.failure for graph in graphs if graph.failure])
            if programs is not None and not trains:
                refused = {op for graph in graphs for _, op, _ in graph.refused}
                self.assertLessEqual(refused, {"aten._assert_scalar.default", *programs})

    def test_places_and_masks(self):
        def function(x, w):
            rows = x[torch.nonzero(x[:, 0] > 0).squeeze(1)]
            return (rows @ w).softmax(-1) * rows.shape[0], rows.exp().sum(0), rows.shape[0] * 2

        calls = [(torch.randn(rows, 8), torch.randn(8, 5)) for rows in (20,) * 12]
        calls.append((-torch.rand(20, 8), torch.randn(8, 5)))  # none
        calls.append((torch.cat([torch.rand(1, 8), -torch.rand(19, 8)]), torch.randn(8, 5)))  # one
        self.check_calls(function, calls, {"aten.nonzero.default"})

    def test_one_mask_picks_of_several(self):
        def function(scores, labels):
            mask = labels >= 0
            return (F.cross_entropy(scores[mask], labels[mask]), scores[mask].square().mean(1))

        calls = [(torch.randn(30, 7), torch.randint(-3, 7, (30,))) for _ in range(10)]
        self.check_calls(function, calls, {"aten.index.Tensor"})

    def test_numbers(self):
        def function(x, number):
            rows = number.item()
            torch._check(rows >= 0)
            torch._check(rows <= x.shape[0])
            part = x[:rows]
            return part @ part.T, F.layer_norm(part, (6,)), torch.arange(rows).float() + rows

        self.check_calls(function, [(torch.randn(20, 6), torch.tensor(rows)) for rows in (3, 20, 7, 1, 0, 12, 4)],
                         {"aten._local_scalar_dense.default"})

    def test_a_view_of_an_input_by_a_number_of_data(self):
        """AOTAutograd makes it again, of a number that a part finds and no other part reads."""
        def function(x, keys):
            _, place = torch.unique(keys, return_inverse=True)
            return (F.gelu(x) * place[:, None], x[: keys.max().item()])

        self.check_calls(function, [(torch.randn(n, 4), torch.randint(1, 5, (n,))) for n in (8, 8, 11)],
                         {"aten._local_scalar_dense.default", "aten._unique2.default", "aten.slice.Tensor"})

    def test_wrong_numbers_raise(self):
        def function(x, number):
            rows = number.item()
            torch._check(rows >= 0)
            torch._check(rows <= x.shape[0])
            return x[:rows] * 2

        compiled = torch.compile(function, backend="sylvite")
        compiled(torch.randn(5), torch.tensor(3))
        with self.assertRaises(RuntimeError):
            compiled(torch.randn(5), torch.tensor(-3))

    def test_repeats_and_unique(self):
        def repeated(x, counts):
            rows = torch.repeat_interleave(x, counts, 0)
            return (F.gelu(rows), rows.mean(1, keepdim=True) * rows)

        calls = [(torch.randn(9, 4), torch.randint(0, 4, (9,))) for _ in range(8)]
        self.check_calls(repeated, calls, {"aten.repeat_interleave.Tensor"})

        def segments(x, keys):
            _, place, count = torch.unique(keys, return_inverse=True, return_counts=True)
            sums = torch.zeros(count.shape[0], x.shape[1]).index_add(0, place, x)
            return (sums / count[:, None], sums.softmax(1))

        calls = [(torch.randn(30, 4), torch.randint(0, 9, (30,))) for _ in range(8)]
        self.check_calls(segments, calls, {"aten._unique2.default"})

    def test_experts(self):
        """Their sizes have a given sum, and nearly every call has others."""
        weights = torch.randn(3, 8, 8) / 3

        def function(x, router):
            chosen = (x @ router).argmax(-1)
            result = torch.zeros_like(x)
            for expert in range(3):
                places = torch.nonzero(chosen == expert).squeeze(1)
                result = result.index_add(0, places, F.silu(x[places] @ weights[expert]))
            return (result,)

        calls = [(torch.randn(40, 8), torch.randn(8, 3)) for _ in range(40)]
        self.check_calls(function, calls, {"aten.nonzero.default"})

    def test_two_sizes(self):
        def function(x, y):
            one, other = x[x[:, 0] > 0], y[y[:, 0] > 0]
            return (torch.cat([one, other]).tanh(), one @ other.T)

        self.check_calls(function, [(torch.randn(12, 3), torch.randn(15, 3)) for _ in range(10)], {"aten.index.Tensor"})


if __name__ == "__main__":
    unittest.main()
