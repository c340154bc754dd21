"""Random numbers of compiled graphs."""

import unittest

import torch
import torch._dynamo
import torch.utils.checkpoint
from torch import nn
from with_torch import WithTorch

from sylvite import torch_backend

F = nn.functional


class Draws(WithTorch):
    """Random numbers: equal seeds give equal draws, and these are spread as they should be."""

    def drawn(self, function, *inputs, seed=1):
        compiled = self.compiled(function)
        results = []
        with torch.no_grad():
            for given in (seed, seed, seed + 1):
                torch.manual_seed(given)
                results.append(compiled(*inputs))
        self.assertTrue(torch.equal(results[0], results[1]))
        self.assertFalse(torch.equal(results[0], results[2]))
        torch._dynamo.reset()
        return results[0]

    def assert_mean(self, values, mean, variance):
        """Within five standard errors."""
        self.assertLess(abs(values.double().mean().item() - mean), 5 * (variance / values.numel()) ** 0.5)

    def test_rows_that_are_drawn(self):
        x = torch.randn(7, 30, 16)
        with torch_backend.listen() as graphs:
            drawn = torch.compile(lambda x: x[:, torch.randint(30, (9,))], backend="sylvite", options={"fullgraph_strict": True})(x)
        self.assertFalse(any(graph.failure for graph in graphs))
        for row in range(9):
            self.assertTrue(any(torch.equal(drawn[:, row], x[:, place]) for place in range(30)))

    def test_short_integers(self):
        def draw():
            made = [torch.randint(-100, 100, (2000,), dtype=dtype) for dtype in (torch.int8, torch.int16)]
            return *made, torch.randint(0, 200, (2000,), dtype=torch.uint8), torch.randint(0, 2, (2000,), dtype=torch.bool)

        for x, low, high in zip(self.compiled(draw)(), (-100, -100, 0, 0), (99, 99, 199, 1)):
            self.assertEqual((x.min(), x.max()), (low, high), x.dtype)
            self.assertAlmostEqual(x.float().mean().item(), (low + high) / 2, delta=(high - low + 1) / 25)

    def test_uniform(self):
        for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.float16):
            draws = self.drawn(lambda x: torch.rand(100, 1000, dtype=x.dtype) + x, torch.zeros(1, dtype=dtype)).double()  # noqa: B023
            self.assertTrue(draws.min() >= 0 and draws.max() < 1)
            digits = {torch.bfloat16: 8, torch.float16: 11}.get(dtype, 24)
            self.assert_mean(draws, 0.5 - 2.0 ** -(digits + 1), 1 / 12)
            self.assert_mean((draws - draws.mean()).square(), 1 / 12, 1 / 180)
            # Each of 64 parts as often as the others: chi-squared of 63 degrees, and no neighbours in common.
            counts = torch.histc(draws, 64, 0, 1)
            self.assertLess(((counts - 1562.5).square() / 1562.5).sum().item(), 120)
            row = draws.flatten() - draws.mean()
            self.assertLess(abs((row[1:] * row[:-1]).mean().item() * 12), 5 / row.numel() ** 0.5)

    def test_normal(self):
        draws = self.drawn(lambda x: torch.randn_like(x), torch.zeros(100, 1000)).double()
        self.assert_mean(draws, 0, 1)
        self.assert_mean(draws.square(), 1, 2)
        self.assert_mean(draws**3, 0, 15)
        self.assert_mean(draws**4, 3, 96)
        self.assertGreater(draws.abs().max(), 4)

    def test_torchs_own_generator(self):
        self.assert_mean(self.drawn(lambda: torch.randn(300, 300, generator=None)), 0, 1)
        self.assert_mean(self.drawn(lambda: torch.rand(300, 300, generator=None)), 0.5, 1 / 12)
        self.assert_mean(self.drawn(lambda: torch.normal(2.0, 3.0, size=(300, 300))), 2, 9)
        self.assert_mean(self.drawn(lambda: torch.randint(2, 5, (300, 300), generator=None)), 3, 2 / 3)
        self.assertEqual(self.drawn(lambda: torch.randperm(50, generator=None)).sort().values.tolist(), list(range(50)))

    def test_complex(self):
        draws = self.drawn(lambda: torch.randn(300, 300, dtype=torch.complex64))
        self.assert_mean(draws.real.square(), 0.5, 0.5)
        self.assert_mean(draws.real * draws.imag, 0, 0.25)

    def test_draws_made_of_others(self):
        x = torch.zeros(50000)
        cauchy = self.drawn(lambda x: torch.empty_like(x).cauchy_(1.0, 2.0), x)
        self.assert_mean((cauchy < 3).double(), 0.75, 0.1875)
        self.assert_mean(self.drawn(lambda x: torch.empty_like(x).log_normal_(0.5, 0.25), x).log(), 0.5, 0.0625)
        geometric = self.drawn(lambda x: torch.empty_like(x).geometric_(0.3), x)
        self.assert_mean(geometric, 1 / 0.3, 0.7 / 0.09)
        self.assertTrue(torch.equal(geometric, geometric.round()) and geometric.min() == 1)

    def test_choices(self):
        weights = torch.tensor([1.0, 0.0, 3.0, 4.0]).expand(20000, 4)
        for count, replacement in ((1, False), (2, True)):
            drawn = self.drawn(lambda w: torch.multinomial(w, count, replacement), weights)  # noqa: B023
            self.assertEqual(drawn.dtype, torch.int64)
            self.assertEqual(list(drawn.shape), [20000, count])
            for place, share in enumerate((0.125, 0.0, 0.375, 0.5)):
                self.assert_mean((drawn == place).double(), share, share * (1 - share) + 1e-12)
        pairs = self.drawn(lambda w: torch.multinomial(w, 2), weights)
        self.assertFalse((pairs[:, 0] == pairs[:, 1]).any() or (pairs == 1).any())
        # The first is the last one with 1/2, and then the second is the third with 3/4.
        self.assert_mean(((pairs[:, 0] == 3) & (pairs[:, 1] == 2)).double(), 0.375, 0.234375)
        places = self.drawn(lambda x: torch.randperm(100) + x, torch.zeros(1, dtype=torch.int64))
        self.assertTrue(torch.equal(places.sort().values, torch.arange(100)))

    def test_other_draws(self):
        draws = self.drawn(lambda x: torch.randint(-3, 4, x.shape), torch.zeros(70000))
        self.assertEqual(draws.dtype, torch.int64)
        counts = torch.bincount(draws + 3, minlength=7).double()
        self.assertEqual(counts.numel(), 7)
        self.assertLess(((counts - 10000).square() / 10000).sum().item(), 30)
        draws = self.drawn(lambda x: torch.bernoulli(x), torch.full((70000,), 0.3))
        self.assert_mean(draws, 0.3, 0.21)
        draws = self.drawn(lambda x: x.clone().exponential_(2.0), torch.zeros(70000))
        self.assert_mean(draws, 0.5, 0.25)
        draws = self.drawn(lambda x: x.clone().uniform_(-1, 3), torch.zeros(70000))
        self.assert_mean(draws, 1, 16 / 12)

    def test_draws_of_one_graph_differ(self):
        one, other = self.compiled(lambda x: (torch.rand_like(x), torch.rand_like(x)))(torch.zeros(1000))
        self.assertLess((one == other).sum(), 10)

    def test_sizes_that_are_symbols(self):
        compiled = torch.compile(lambda x: x + torch.rand_like(x), backend="sylvite", dynamic=True, options={"fullgraph_strict": True})
        for size in (8, 12):
            draws = compiled(torch.zeros(size, 3))
            self.assertTrue(((draws >= 0) & (draws < 1)).all())

    def test_dropout_keeps_the_same_in_both_directions(self):
        x = torch.ones(200, 300, requires_grad=True)
        graphs = []
        with torch_backend.listen() as heard:
            y = self.compiled(lambda x: F.dropout(x * 1.0, 0.25) * 3)(x)
            y.sum().backward()
            graphs += heard
        self.assertEqual(sum(graph.torch_parts for graph in graphs), 0)
        self.assertTrue(torch.equal(y.detach(), x.grad))
        self.assert_mean((y.detach() != 0).float(), 0.75, 0.1875)
        torch.testing.assert_close(y.detach().unique(), torch.tensor([0.0, 4.0]))

    def test_dropout_of_a_checkpoint_is_made_again(self):
        x = torch.ones(200, 300, requires_grad=True)
        function = lambda x: torch.utils.checkpoint.checkpoint(  # noqa: E731
            lambda x: F.dropout(x.sin() * 0 + x, 0.5), x, use_reentrant=False)
        y = self.compiled(function)(x)
        y.sum().backward()
        self.assertTrue(torch.equal(y.detach(), x.grad))

    def test_parts_of_torch_draw_the_same(self):
        def function(x):
            return torch.special.bessel_y0(torch.rand_like(x)), torch.rand_like(x)

        results = []
        for _ in range(2):
            torch.manual_seed(3)
            results.append(self.compiled(function, strict=False)(torch.zeros(50)))
            torch._dynamo.reset()
        self.assert_same(results[0], results[1])


if __name__ == "__main__":
    unittest.main()
