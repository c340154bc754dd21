"""What torch runs of a graph: operations that write their arguments, and loops whose trips depend on data."""

import contextlib
import unittest
from unittest import mock

import torch
from test_torch_rewrites import Whole
from torch._higher_order_ops.while_loop import while_loop

from sylvite import torch_backend


@torch.library.custom_op("sylvite_tests::scale_and_count", mutates_args={"out", "count"})
def scale_and_count(out: torch.Tensor, x: torch.Tensor, count: torch.Tensor, by: float = 2.0) -> torch.Tensor:
    out.mul_(by).add_(x)
    count.add_(1)
    return out.sum()


@scale_and_count.register_fake
def _(out: torch.Tensor, x: torch.Tensor, count: torch.Tensor, by: float = 2.0) -> torch.Tensor:
    return x.new_empty(())


@torch.library.custom_op("sylvite_tests::add_to_each", mutates_args={"outs"})
def add_to_each(outs: list[torch.Tensor], x: torch.Tensor) -> None:
    for out in outs:
        out.add_(x)


@torch.library.custom_op("sylvite_tests::add_to_some", mutates_args={"out"})
def add_to_some(x: torch.Tensor, out: torch.Tensor | None) -> torch.Tensor:
    if out is not None:
        out.add_(x)
    return x * 2


@add_to_some.register_fake
def _(x: torch.Tensor, out: torch.Tensor | None) -> torch.Tensor:
    return torch.empty_like(x)


class OperationsThatWrite(Whole):
    def check_writes(self, function, *inputs):
        """Results, and what became of the inputs."""
        given = [[x.clone() for x in inputs] for _ in range(2)]
        compiled = self.compiled(function, strict=False)
        with torch.no_grad(), torch_backend.listen() as graphs:
            for _ in range(2):
                self.assert_same(compiled(*given[0]), function(*given[1]))
                self.assert_same(given[0], given[1])
        self.assertFalse([graph.failure for graph in graphs if graph.failure])
        return graphs

    def test_two_arguments(self):
        def two(out, x, count):
            return scale_and_count(out, x, count, by=3.0) * 2, out + 1

        self.check_writes(two, torch.randn(4, 5), torch.randn(4, 5), torch.zeros(()))
        self.check_writes(two, torch.randn(5, 4).t(), torch.randn(4, 5), torch.zeros(()))

    def test_views(self):
        def views(out, x, count):
            y = x * 2
            return scale_and_count(out[1:3], y[:2], count), scale_and_count(y[2], x[0], count), scale_and_count(y[3], x[1], count), y

        self.check_writes(views, torch.randn(4, 5), torch.randn(4, 5), torch.zeros(()))

    def test_lists_and_what_is_not_there(self):
        def several(a, b, x):
            add_to_each([a, b], x)
            return a * b + add_to_some(x, None) + add_to_some(x, a)

        self.check_writes(several, *torch.randn(3, 3))


class InputsShown(Whole):
    """A graph that makes no values: results show inputs."""

    def test_detached(self):
        def shown(x, y):
            return x.detach(), y[1:].detach(), x.detach().t()

        for function in (shown, self.compiled(shown)):
            x, y = torch.randn(4, 5, requires_grad=True), torch.randn(3)
            for _ in range(2):
                results = function(x, y)
            self.assert_same(list(results), list(shown(x, y)))
            self.assertEqual([each.requires_grad for each in results], [False] * 3)
            self.assertIsNot(results[0], x)
            before = x._version
            results[0].add_(1)
            results[1].mul_(2)
            self.assertEqual(x._version, before + 1)
            self.assert_same(list(results), list(shown(x, y)))
            self.assertTrue(x.requires_grad)

    def test_graphs_that_are_not_kept(self):
        """As none is on a GPU."""
        with mock.patch.object(torch_backend, "kept_graphs", lambda *_: contextlib.nullcontext()):
            compiled = self.compiled(lambda x, y: (x.t(), y.view(-1)))
            for x in (torch.randn(2, 3), torch.randn(2, 3, requires_grad=True)):
                y = torch.randn(4, 2)
                self.assert_same(list(compiled(x, y)), [x.t(), y.view(-1)])

    def test_no_module_is_called(self):
        """Torch's lazy modules would be called by way of themselves."""
        compiled = self.compiled(lambda x: (x.detach(), x.t()))
        compiled(torch.randn(2, 3))
        with mock.patch.object(torch.fx.GraphModule, "__call__", side_effect=AssertionError("a module is called")):
            compiled(torch.randn(2, 3))


class LoopsByData(Whole):
    def test_no_trip_copies(self):
        def none(x):
            return while_loop(lambda i, y: i < 0, lambda i, y: (i + 1, y * 2), (torch.zeros((), dtype=torch.int64), x))

        x = torch.randn(3)
        with torch.no_grad():
            result = self.compiled(none, strict=False)(x)[1]
        self.assert_same(result, x)
        self.assertNotEqual(result.data_ptr(), x.data_ptr())

    def test_loops_in_loops(self):
        def inner(i, x):
            y = while_loop(lambda j, z: j < 3, lambda j, z: (j + 1, z + z.cos()), (torch.zeros((), dtype=torch.int64), x))
            return i + y[0], y[1] * 0.5

        def outer(x):
            return while_loop(lambda i, y: i < 10, inner, (torch.zeros((), dtype=torch.int64), x))

        self.check(outer, torch.randn(4), strict=False)

    def test_numbers_in_loops(self):
        def powers(x, w):
            return while_loop(lambda i, y: i < 5, lambda i, y: (i + 1, (y @ w).tanh()), (0, x))

        self.check(powers, torch.randn(3, 3), torch.randn(3, 3), strict=False)

    def test_a_step_tells_whether_another_follows(self):
        """Beside graphs of their own for condition and step."""
        def root(a, limit):
            def differs(i, x):
                return (i < 30) & ((x * x - a).abs().amax() > limit)

            return while_loop(differs, lambda i, x: (i + 1, 0.5 * (x + a / x)), (torch.zeros((), dtype=torch.int64), torch.ones_like(a)))

        a = torch.rand(12) + 0.5
        for limit in (10.0, 0.3, 1e-5):  # no step, some, and more
            for telling in (torch_backend.with_condition, lambda node: None):
                torch._dynamo.reset()
                with mock.patch.object(torch_backend, "with_condition", telling):
                    graphs = self.check(root, a, torch.tensor(limit), strict=False)
                self.assertFalse([graph.failure for graph in graphs if graph.failure])

    def test_sizes_of_data(self):
        def ones(x, n):
            count = n.item()
            torch._check(count >= 2)
            torch._check(count <= x.shape[0])
            return x[:count].sum(0), torch.arange(count) * 2, torch.zeros(count, 3) + x[0, :3], torch.full((count,), 7, dtype=torch.int32)

        with torch._dynamo.config.patch(capture_scalar_outputs=True):
            self.check(ones, torch.randn(10, 8), torch.tensor(6), strict=False)

    def test_functions_that_torch_makes_no_graph_of(self):
        def function(x):
            return (x * 2).sin()

        x = torch.randn(3)
        with mock.patch.object(torch_backend, "aot_module_simplified", side_effect=ValueError("none")):
            with self.assertRaisesRegex(torch._dynamo.exc.BackendCompilerFailed, "none"):
                self.compiled(function)(x)
            torch._dynamo.reset()
            compiled = self.compiled(function, strict=False)
            with self.assertWarnsRegex(UserWarning, "Python runs a function"):
                self.assert_same(compiled(x), function(x))
            self.assert_same(compiled(x + 1), function(x + 1))


if __name__ == "__main__":
    unittest.main()
