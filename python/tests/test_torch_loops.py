"""Loops in graphs, recurrent layers, and what decompositions make of bags, medians and operations of torchvision."""

import unittest
import warnings

import torch
import torch._dynamo
from test_torch_rewrites import Whole
from torch import nn
from torch._higher_order_ops.map import map as map_rows
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop

from sylvite import torch_backend

try:
    import torchvision
except ImportError:
    torchvision = None


def cell(hidden, x, weight):
    hidden = torch.tanh(hidden @ weight + x)
    return hidden, hidden * 2


def steps(hidden, x, weight):
    """What a scan of the cell gives."""
    made = []
    for each in x:
        hidden, result = cell(hidden, each, weight)
        made.append(result)
    return hidden, torch.stack(made)


class Scans(Whole):
    def of_torch(self, hidden, x, weight):
        return scan(lambda h, each: cell(h, each, weight), hidden, x, dim=0)

    def test_scans_are_loops(self):
        inputs = torch.randn(3, 8), torch.randn(7, 3, 8), torch.randn(8, 8) / 3
        with torch.no_grad(), torch_backend.listen() as graphs:
            self.assert_same(self.compiled(self.of_torch)(*inputs), steps(*inputs))
        self.assertIn("= scan('", graphs[0].texts[0])

    def test_gradients(self):
        given = [[x.clone().requires_grad_() for x in (torch.zeros(3, 8), torch.ones(7, 3, 8) / 9, torch.eye(8) / 2)] for _ in range(2)]
        with torch_backend.listen() as graphs:
            for function, inputs in ((steps, given[0]), (self.compiled(self.of_torch), given[1])):
                last, results = function(*inputs)
                (last.square().sum() + results.square().sum()).backward()
        self.assert_same([x.grad for x in given[1]], [x.grad for x in given[0]])
        self.assertTrue(all(graph.torch_parts == 0 for graph in graphs))

    def test_branches_in_scans(self):
        def step(h, row, weight):
            moved = torch.cond(row.sum() > 0, lambda h, r: torch.tanh(h @ weight + r), lambda h, r: h * 0.5 - r, (h, row))
            return moved, moved * 2

        def by_steps(hidden, x, weight):
            made = []
            for row in x:
                hidden = torch.tanh(hidden @ weight + row) if row.sum() > 0 else hidden * 0.5 - row
                made.append(hidden * 2)
            return hidden, torch.stack(made)

        def f(hidden, x, weight):
            return scan(lambda h, row: step(h, row, weight), hidden, x, dim=0)

        inputs = torch.ones(8) / 3, torch.randn(7, 8), torch.eye(8) / 2
        given = [[x.clone().requires_grad_() for x in inputs] for _ in range(2)]
        with torch_backend.listen() as graphs:
            for function, inputs in ((by_steps, given[0]), (self.compiled(f), given[1])):
                last, results = function(*inputs)
                (last.square().sum() + results.square().sum()).backward()
        self.assert_same([x.grad for x in given[1]], [x.grad for x in given[0]])
        self.assertTrue(all(graph.torch_parts == 0 for graph in graphs))

    def test_scans_in_scans(self):
        def inner(total, x):
            return scan(lambda h, each: (h + each, h * each), total, x, dim=0)

        def f(total, x):
            return scan(lambda h, each: inner(h, each), total, x, dim=0)

        def by_steps(total, x):
            rows = []
            for row in x:
                products = []
                for each in row:
                    products.append(total * each)
                    total = total + each
                rows.append(torch.stack(products))
            return total, torch.stack(rows)

        inputs = torch.randn(5), torch.randn(4, 3, 5)
        self.assert_same(self.compiled(f)(*inputs), by_steps(*inputs))

    def test_open_sizes(self):
        compiled = torch.compile(self.of_torch, backend="sylvite", dynamic=True, options={"fullgraph_strict": True})
        for length in (5, 9, 3):
            inputs = torch.randn(2, 4), torch.randn(length, 2, 4), torch.randn(4, 4) / 2
            self.assert_same(compiled(*inputs), steps(*inputs))

    def test_maps(self):
        x, weight = torch.randn(4, 3, 5), torch.randn(5, 2)
        result = self.compiled(lambda x, w: map_rows(lambda row, w: (row @ w).cumsum(0), x, w))(x, weight)
        self.assert_same(result, torch.stack([(row @ weight).cumsum(0) for row in x]))


class WhileLoops(Whole):
    """Torch runs the loop; condition and body are programs."""

    def test_body_is_a_program(self):
        def root(a):
            def condition(i, x):
                return (i < 20) & ((x * x - a).abs().max() > 1e-5)

            return while_loop(condition, lambda i, x: (i + 1, 0.5 * (x + a / x)), (torch.zeros((), dtype=torch.int64), torch.ones_like(a)))[1]

        a = torch.rand(16) + 1
        with torch_backend.listen() as graphs:
            for each in (a, a + 3):
                self.assert_same(self.compiled(root, strict=False)(each), each.sqrt())
        self.assertEqual([graph.kind for graph in graphs].count("body"), 2)
        self.assertTrue(all(graph.torch_parts == 0 for graph in graphs if graph.kind == "body"))


class RecurrentLayers(Whole):
    """Where Dynamo captures them."""

    def setUp(self):
        super().setUp()
        patch = torch._dynamo.config.patch(allow_rnn=True)
        patch.__enter__()
        self.addCleanup(patch.__exit__, None, None, None)

    def check_layer(self, layer, x):
        compiled = self.compiled(layer)
        with torch_backend.listen() as graphs:
            with torch.no_grad():
                self.assert_same(compiled(x), layer(x))
            results = []
            for function in (layer, compiled):
                layer.zero_grad()
                result, last = function(x)
                (result.square().sum() + (last if isinstance(last, torch.Tensor) else last[1]).sum()).backward()
                results.append([result, *(p.grad.clone() for p in layer.parameters())])
        self.assert_same(results[1], results[0])
        self.assertTrue(all(graph.torch_parts == 0 and not graph.failure for graph in graphs))
        self.assertTrue(all("= scan('" in text for graph in graphs for text in graph.texts))

    def test_lstm(self):
        self.check_layer(nn.LSTM(6, 8, 2, batch_first=True, bidirectional=True), torch.randn(3, 7, 6))

    def test_lstm_with_projections_and_without_biases(self):
        warnings.filterwarnings("ignore", "LSTM with projections is not supported with oneDNN")  # torch's own
        self.check_layer(nn.LSTM(6, 8, proj_size=4, bias=False), torch.randn(7, 3, 6))

    def test_gru(self):
        self.check_layer(nn.GRU(6, 8), torch.randn(7, 3, 6))

    def test_plain(self):
        self.check_layer(nn.RNN(6, 8, nonlinearity="relu"), torch.randn(7, 3, 6))


class Bags(Whole):
    def test_maxima(self):
        indices = torch.tensor([3, 1, 4, 1, 5, 9, 2, 6])
        for offsets, more in (([0, 3, 3, 6], {}), ([0, 2, 8], {"include_last_offset": True}), ([0, 3, 6], {"padding_idx": 1})):
            offsets = torch.tensor(offsets)
            self.check_gradients(lambda w: nn.functional.embedding_bag(indices, w, offsets, mode="max", **more), torch.randn(10, 6))


    def test_sums_and_means(self):
        indices = torch.tensor([3, 1, 4, 1, 5, 9, 2, 6])
        for mode in ("sum", "mean"):
            for offsets, more in (([0, 3, 3, 6], {}), ([0, 2, 8], {"include_last_offset": True}), ([0, 3, 6], {"padding_idx": 1})):
                offsets = torch.tensor(offsets)
                self.check_gradients(lambda w: nn.functional.embedding_bag(indices, w, offsets, mode=mode, **more), torch.randn(10, 6))
            for more in ({}, {"padding_idx": 1}):  # all as long
                self.check_gradients(lambda w: nn.functional.embedding_bag(indices.view(4, 2), w, mode=mode, **more), torch.randn(10, 6))
        self.check_gradients(lambda w, by: nn.functional.embedding_bag(indices, w, offsets, mode="sum", per_sample_weights=by),
                             torch.randn(10, 6), torch.randn(8))  # fmt: skip


class Values(Whole):
    def test_medians(self):
        for x in (torch.randn(7), torch.randn(3, 4), torch.tensor([1.0, float("nan"), 3.0, 2.0])):
            self.check_gradients(lambda x: x.nanmedian() * 2, x)
        self.check_gradients(lambda x: x.median() * 2, torch.randn(3, 4))

    def test_pairs(self):
        x, y = torch.tensor([1.0, float("nan"), -3.0, 2.0]), torch.tensor([0.5, 7.0, float("nan"), 9.0])
        self.check(lambda x, y: (torch.fmax(x, y), torch.fmin(x, y), torch.ldexp(x.nan_to_num(), torch.tensor([1, 2, 3, -4]))), x, y)
        self.check_gradients(lambda x, y: torch.dist(x, y, 3), torch.randn(5), torch.randn(5))

    def test_powers_of_two(self):
        x = torch.tensor([1.0, -3.0, 1e-40, 0.0, float("inf"), 1e38])
        places = torch.tensor([5, -4, 200, 1000, -1000, -140])
        self.check(torch.ldexp, x, places, tolerance=1e-6)
        self.check(torch.ldexp, x.double(), places * 5, tolerance=1e-12)
        for dtype in (torch.float16, torch.bfloat16, torch.int32, torch.int8):
            torch._dynamo.reset()
            self.check(torch.ldexp, torch.tensor([1, 2, -3]).to(dtype), torch.tensor([1, 2, -3], dtype=torch.int8))
        self.check(torch.ldexp, torch.tensor([1.0, 3.0]), torch.tensor([1.5, -0.5]))

    def test_numbers_made_of_sizes(self):
        norm = nn.BatchNorm1d(4)

        def f(x):
            rows, columns = x.shape
            return norm(x) * (rows / (columns + 1)) + (rows / columns) ** 0.5, torch.full((2,), rows / 3)

        compiled = torch.compile(f, backend="sylvite", dynamic=True, options={"fullgraph_strict": True})
        for rows in (3, 7, 5):
            x = torch.randn(rows, 4)
            self.assert_same(compiled(x), f(x))

    def test_tables_whose_rows_are_made_short(self):
        layers = [nn.Embedding(10, 4, max_norm=1.0) for _ in range(2)]
        layers[1].load_state_dict(layers[0].state_dict())
        indices = torch.tensor([[1, 3], [3, 9]])
        self.assert_same(self.compiled(layers[1])(indices), layers[0](indices))
        self.assert_same(layers[1].weight, layers[0].weight)


@unittest.skipIf(torchvision is None, "torchvision is not there")
class Vision(Whole):
    def test_deformable_convolutions(self):
        x, weight, bias = torch.randn(2, 4, 7, 8), torch.randn(6, 2, 3, 3), torch.randn(6)
        self.check_gradients(lambda x, w, b, o, m: torchvision.ops.deform_conv2d(x, o, w, b, padding=1, mask=m),
                             x, weight, bias, torch.randn(2, 36, 7, 8) * 2, torch.rand(2, 18, 7, 8))  # fmt: skip
        self.check_gradients(lambda x, w, o: torchvision.ops.deform_conv2d(x, o, w, stride=2, dilation=(1, 2)),
                             x, weight, torch.randn(2, 18, 3, 2) * 2)  # fmt: skip

    def test_regions(self):
        regions = torch.tensor([[0, 1, 1, 10, 9], [1, 3.5, 2.2, 15, 30], [1, -6, -7, 50, 19], [0, 5, 5, 5.5, 5.5]])
        for aligned in (False, True):
            self.check_gradients(lambda x: torchvision.ops.roi_align(x, regions, (4, 5), 0.5, 2, aligned), torch.randn(2, 3, 8, 9))


if __name__ == "__main__":
    unittest.main()
