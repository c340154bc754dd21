"""What graphs have beside operations, and what decompositions of the package make of operations, with their gradients."""

import functools
import unittest
import warnings

import torch
import torch._dynamo
from torch import nn
from torch.nn.attention.flex_attention import flex_attention
from with_torch import Whole

from sylvite import torch_backend, torch_training

F = nn.functional


def positive(*batch, n):
    x = torch.randn(*batch, n, n)
    return x @ x.mT + n * torch.eye(n)


class Resizing(unittest.TestCase):
    def test_two_products_resize(self):
        x = torch.randn(2, 3, 5, 7).bfloat16()
        for options in ({"scale_factor": 2}, {"scale_factor": (3, 1.7)}, {"size": (9, 4)}, {"size": (9, 4), "align_corners": True},
                        {"scale_factor": 2.5, "recompute_scale_factor": True}, {"size": 1}, {"scale_factor": 2, "align_corners": True}):  # fmt: skip
            with self.subTest(options=str(options)):
                wanted = F.interpolate(x.float(), mode="bilinear", **options)
                torch.testing.assert_close(torch_training._resize(x, mode="bilinear", **options).float(), wanted, atol=2e-2, rtol=1e-2)
        self.assertIsNot(torch_training._resize(x.float(), scale_factor=2).dtype, torch.bfloat16)  # by torch: nearest, of f32


class LinearAlgebra(Whole):
    def test_products_of_three(self):
        self.check_gradients(F.bilinear, torch.randn(3, 4), torch.randn(3, 5), torch.randn(6, 4, 5), torch.randn(6))
        self.check_gradients(torch.addmv, torch.randn(3), torch.randn(3, 4), torch.randn(4))
        self.check_gradients(lambda x, a, b: torch.addbmm(x, a, b, beta=0.5, alpha=2), torch.randn(3, 5), torch.randn(2, 3, 4), torch.randn(2, 4, 5))
        self.check(lambda x, a, b: torch.addmv(x, a, b, beta=0), torch.full((3,), torch.inf), torch.randn(3, 4), torch.randn(4))

    def test_systems(self):
        a, b = torch.randn(2, 4, 4) + 4 * torch.eye(4), torch.randn(2, 4, 3)
        self.check_gradients(torch.linalg.solve, a, b)
        self.check_gradients(torch.linalg.solve, a.mT, b)
        self.check_gradients(lambda a, b: torch.linalg.solve(a, b, left=False), a, b.mT.contiguous())
        self.check_gradients(torch.linalg.solve, a[0], b[0, :, 0])
        self.check_gradients(lambda a: (torch.linalg.inv(a), torch.linalg.det(a), torch.slogdet(a)[1]), a)
        self.check_gradients(lambda a: torch.linalg.det(a), a.mT)

    def test_factors(self):
        a, b = positive(2, n=5), torch.randn(2, 5, 2)
        self.check_gradients(torch.linalg.cholesky, a)
        self.check_gradients(lambda a, b: torch.cholesky_solve(b, torch.linalg.cholesky(a)), a, b)
        self.check_gradients(lambda a: torch.cholesky_inverse(a.tril()), a)
        self.check_gradients(lambda a, b: torch.linalg.solve_triangular(a, b, upper=True), a.triu(), b)
        self.check_gradients(lambda a: torch.linalg.qr(a), torch.randn(2, 5, 3))

    def test_complex_systems(self):
        linalg = torch.linalg
        a, b = torch.randn(2, 4, 4, dtype=torch.complex64) + 3 * torch.eye(4), torch.randn(2, 4, 3, dtype=torch.complex64)
        self.check_gradients(linalg.solve, a, b)
        self.check_gradients(lambda a, b: linalg.solve(a, b, left=False), a.mT, b.mT.contiguous())
        self.check_gradients(linalg.solve, a[0], b[0, :, 0])
        self.check_gradients(lambda a: (linalg.det(a), *linalg.slogdet(a), *linalg.lu(a)[1:]), a)
        for upper in (False, True):
            self.check_gradients(lambda a, b: linalg.solve_triangular(a, b, upper=upper, unitriangular=upper), a, b)  # noqa: B023
            self.check_gradients(lambda a: linalg.cholesky(a @ a.mH, upper=upper), a)  # noqa: B023
        self.check_gradients(lambda a, b: torch.cholesky_solve(b, a, upper=True), a.triu(), b, tolerance=1e-3)
        self.check(lambda a: linalg.cholesky_ex(a).info, torch.eye(5, dtype=torch.complex64) * torch.tensor([1, 2, 3, -1, 1]))
        graphs = self.check(lambda a: linalg.cholesky(a @ a.mH), torch.randn(66, 66, dtype=torch.complex64), strict=False, tolerance=1e-3)
        self.assertGreater(graphs[0].torch_parts, 0)

    def test_exponentials(self):
        self.check_gradients(torch.linalg.matrix_exp, torch.randn(3, 4, 4))
        self.check_gradients(torch.linalg.matrix_exp, torch.randn(2, 3, 3, dtype=torch.complex64))
        for scale in (0.0, 1e-3, 3.0):
            torch._dynamo.reset()
            self.check(torch.linalg.matrix_exp, scale * torch.randn(3, 3))
        torch._dynamo.reset()
        x = 5 * torch.randn(20, 5, 5)
        exact = torch.linalg.matrix_exp(x.double())
        error = (self.compiled(torch.linalg.matrix_exp)(x) - exact).abs().amax((1, 2)) / exact.abs().amax((1, 2))
        self.assertLess(float(error.max()), 5e-6)  # twice eager's
        torch._dynamo.reset()
        x = torch.randn(2, 4, 4).bfloat16()  # of which eager makes no numbers
        with torch.no_grad():
            self.assert_same(self.compiled(torch.linalg.matrix_exp)(x).float(), torch.linalg.matrix_exp(x.float()), 2e-2)

    def test_what_is_singular_raises(self):
        for function, bad in ((torch.linalg.cholesky, -torch.eye(3)), (torch.linalg.inv, torch.zeros(3, 3))):
            torch._dynamo.reset()
            compiled = self.compiled(function)
            self.assert_same(compiled(4 * torch.eye(3)), function(4 * torch.eye(3)))
            with self.assertRaises(torch.linalg.LinAlgError):
                compiled(bad)

    def test_large_ones_are_left_to_torch(self):
        torch._dynamo.reset()
        graphs = self.check(torch.linalg.cholesky, positive(n=130), strict=False)
        self.assertEqual(graphs[0].torch_parts, 1)


class Writes(Whole):
    def test_data_that_is_replaced(self):
        """`data = value` gives a parameter other memory, which torch does behind the program."""
        def run(compiled):
            torch.manual_seed(0)
            fast, slow = torch.nn.Linear(6, 5), torch.nn.Linear(6, 5).requires_grad_(False)

            def follow(x):
                with torch.no_grad():
                    for a, b in zip(fast.parameters(), slow.parameters()):
                        b.data = b.data * 0.9 + a.data * 0.1
                    key = slow(x)
                return fast(x) * key

            function = compiled(follow)
            return [*(function(torch.randn(3, 6)).detach() for _ in range(4)), *slow.parameters()]

        torch._dynamo.reset()
        self.assert_same(run(lambda function: torch.compile(function, backend="sylvite")), run(lambda function: function))


class Decompositions(Whole):
    def test_products_of_8_bit_integers(self):
        x, y = (torch.randint(-128, 128, shape, dtype=torch.int8) for shape in ((20, 16), (16, 24)))
        self.check(torch._int_mm, x, y)

    def test_orders_of_axes_that_torch_asks_for(self):
        x, y = torch.randn(3, 5, 4).permute(2, 0, 1), torch.randn(4, 3, 5)
        self.check(lambda x: x.index_fill(1, torch.tensor([0, 2]), 7), x)
        self.check_gradients(lambda x: x.select(0, 1).t().index_fill(0, torch.tensor([1]), 7) * x[0, 0, 0], x)
        self.check(lambda x, y: (x.lerp(y, 0.3), y.lerp(x, y.abs())), x, y)
        self.check_gradients(lambda x, y: x.lerp(y, 0.3), x, y)

    def test_lists_of_tensors(self):
        def step(x, y):
            given, states = [x, y], [x * 0.5, y * 2]
            states = torch._foreach_lerp(states, given, 0.1)
            squares = torch._foreach_addcmul(torch._foreach_abs(states), given, given, 0.1)
            roots = torch._foreach_add(torch._foreach_sqrt(squares), 1e-8)
            torch._foreach_mul_(states, [0.5, 2.0])
            moved = torch._foreach_addcdiv(states, given, roots, [0.1, 0.2])
            limited = torch._foreach_minimum(torch._foreach_maximum(torch._foreach_maximum(moved, 0.1), [0.2, 0.3]), given)
            return tuple(moved) + tuple(limited) + tuple(torch._foreach_norm(given)) + tuple(torch._foreach_add(given, states, alpha=3))

        self.check(step, torch.randn(5), torch.randn(2, 3))

    def test_lists_that_are_written(self):
        """Torch's namespace of operations names those alone that somebody has asked for."""
        def written(x, y):
            sums = [x * 2, y * 2]
            torch._foreach_zero_(sums)
            torch._foreach_add_(sums, [x, y])
            kept = [torch.empty_like(x), torch.empty_like(y)]
            torch._foreach_copy_(kept, sums)
            return kept

        self.check(written, torch.randn(5), torch.randn(2, 3))

    def test_steps_of_optimisers(self):
        for kind in (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW, torch.optim.RMSprop):
            torch._dynamo.reset()
            models = []
            for is_compiled in (False, True):
                torch.manual_seed(1)
                model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
                optimizer = kind(model.parameters(), lr=torch.tensor(0.01))
                step = torch.compile(optimizer.step, backend="sylvite") if is_compiled else optimizer.step
                for _ in range(3):
                    optimizer.zero_grad()
                    model(torch.ones(2, 4)).square().sum().backward()
                    step()
                models.append(model)
            self.assert_same(list(models[1].parameters()), list(models[0].parameters()))

    def test_distances(self):
        for p in (1.0, 2.0, 3.0, float("inf")):
            self.check_gradients(lambda x, y, p=p: torch.cdist(x, y, p), torch.randn(2, 4, 3), torch.randn(2, 5, 3))
        x = torch.randn(3, 2)
        self.check_gradients(lambda x: torch.cdist(x, x.detach()), x)  # distances of 0
        for p in (0.0, 1.0, 2.0, 3.0, float("inf")):
            self.check_gradients(lambda x, p=p: F.pdist(x, p) + x.sum(), torch.randn(5, 3))

    def test_what_comes_most_often(self):
        for x in (torch.randint(0, 4, (3, 9)), torch.tensor([[2.0, 1.0, 2.0, 1.0, 7.0]]), torch.rand(3, 6) > 0.5):
            for dim, keepdim in ((1, False), (0, True)):
                torch._dynamo.reset()
                self.check(lambda x, d=dim, k=keepdim: x.mode(d, k)[0], x)
                torch._dynamo.reset()
                _, place = self.compiled(lambda x, d=dim, k=keepdim: x.mode(d, k))(x)
                self.assertTrue(torch.equal(x.gather(dim, place if keepdim else place.unsqueeze(dim)), x.mode(dim, True)[0]))

    def test_what_rolls_by_open_sizes(self):
        def turned(x):
            return x.roll(1, 0) + x.roll(-9, 0), torch.fft.fftshift(x, 0)

        compiled = torch.compile(turned, backend="sylvite", dynamic=True, options={"fullgraph_strict": True})
        for x in torch.randn(5, 2), torch.randn(8, 2):
            self.assert_same(compiled(x), turned(x))

    def test_places_by_masks(self):
        mask = torch.rand(2, 3, 4) > 0.5
        self.check_gradients(lambda x, source: x.masked_scatter(mask, source), torch.randn(2, 3, 4), torch.randn(30))
        index = torch.tensor([0, 2, 0, 1])
        warnings.simplefilter("ignore")  # of torch's index_reduce
        for reduce in ("amax", "mean", "prod"):
            torch._dynamo.reset()
            self.check(lambda x, y, r=reduce: x.index_reduce(0, index, y, r), torch.randn(3, 2), torch.randn(4, 2))

    def test_writes_by_masks(self):
        x = torch.randn(3, 2, 4)
        whole, first = torch.rand(3, 2, 4) > 0.5, torch.tensor([True, False, True])
        put = torch.ops.aten.index_put.default
        for mask, values in ((whole, torch.randn(int(whole.sum()))), (first, torch.randn(2, 2, 4)), (first, torch.randn(1, 2, 4)),
                             (first, torch.randn(4)), (first, torch.tensor(3.0)), (torch.zeros(3, dtype=torch.bool), torch.randn(1, 4))):
            for adds in (False, True):
                torch._dynamo.reset()
                self.check(lambda x, m, v, adds=adds: put(x, (m,), v, adds), x, mask, values)
        inner, middle = torch.rand(2, 4) > 0.5, torch.tensor([True, False])
        for mask, values in ((inner, torch.randn(3, int(inner.sum()))), (inner, torch.tensor(3.0)), (middle, torch.randn(3, 1, 4)),
                             (middle, torch.randn(4)), (torch.tensor([True, True]), torch.randn(3, 2, 1))):
            for adds in (False, True):
                torch._dynamo.reset()
                self.check(lambda x, m, v, adds=adds: put(x, (None, m), v, adds), x, mask, values)

    def test_gradients_of_smoothed_images(self):
        for mode in ("bilinear", "bicubic"):
            for is_aligned in (False, True):
                for size in ((4, 9), (1, 3)):  # torch repeats the first line where a result has one column
                    torch._dynamo.reset()
                    resize = functools.partial(F.interpolate, size=size, mode=mode, antialias=True, align_corners=is_aligned)
                    self.check_gradients(resize, torch.randn(1, 2, 9, 6))
            for scales in (0.6, 1.7, (0.5, 0.35)):  # which are not the ratio of the extents
                torch._dynamo.reset()
                self.check_gradients(functools.partial(F.interpolate, scale_factor=scales, mode=mode, antialias=True), torch.randn(1, 2, 9, 7))

    def test_gradients_of_grids(self):
        x, grid = torch.randn(2, 3, 5, 6), torch.rand(2, 4, 4, 2) * 3 - 1.5
        for mode in ("bilinear", "nearest", "bicubic"):
            for padding in ("zeros", "border", "reflection"):
                for align in (False, True):
                    self.check_gradients(
                        lambda x, g, mode=mode, padding=padding, align=align: F.grid_sample(x, g, mode, padding, align), x, grid)

    def test_places_half_way_between_elements(self):
        x, grid = torch.randn(1, 2, 5, 5), torch.arange(-8, 9).div(5).view(1, 1, -1, 1).expand(1, 1, 17, 2)
        for padding in ("border", "reflection"):
            for align in (False, True):
                self.check(lambda x, g, padding=padding, align=align: F.grid_sample(x, g, "nearest", padding, align), x, grid)

    def test_gradients_of_grids_in_volumes(self):
        x, grid = torch.randn(2, 3, 4, 5, 6), torch.rand(2, 3, 4, 2, 3) * 3 - 1.5
        for mode, padding, align in (("bilinear", "zeros", False), ("bilinear", "reflection", True), ("nearest", "border", False)):
            with self.subTest(mode=mode, padding=padding):
                self.check_gradients(
                    lambda x, g, mode=mode, padding=padding, align=align: F.grid_sample(x, g, mode, padding, align), x, grid)  # fmt: skip

    def test_gradients_of_padded_transposed_convolutions(self):
        x, w = torch.randn(1, 2, 4, 5, 4), torch.randn(2, 3, 2, 3, 3)
        self.check_gradients(lambda x, w: F.conv_transpose3d(x, w, dilation=(1, 2, 2), output_padding=(0, 1, 1)), x, w)

    def test_windows_are_added(self):
        x, window = torch.randn(2, 900), torch.hann_window(96)

        def there_and_back(x, window, hop):
            waves = torch.stft(x, 96, hop, window=window, return_complex=True)
            return torch.istft(waves, 96, hop, window=window, length=x.shape[1])

        for hop in (24, 36, 48):
            graphs = self.check(functools.partial(there_and_back, hop=hop), x, window)
            self.assertLess(graphs[0].programs[0].report()["kernels"], 60)
        for size, step in ((3, 1), (4, 2), (5, 3), (2, 5), (40, 2)):
            self.check_gradients(lambda x, size=size, step=step: x.unfold(1, size, step).square() * x.unfold(1, size, step), torch.randn(2, 47, 3))
        self.check_gradients(lambda x: x.unfold(1, 3, 1).unfold(2, 2, 2).sin(), torch.randn(2, 8, 9))

    def test_windows_of_images_are_added(self):
        for kernel, more in ((3, {"padding": 1}), ((2, 3), {"stride": (2, 1)}), (4, {"stride": 4}), (3, {"dilation": 2, "padding": 2}),
                             (3, {"dilation": 2, "stride": 2}), ((1, 5), {"stride": (2, 3), "padding": (0, 2)})):  # fmt: skip
            def f(x, kernel=kernel, more=more):
                return F.fold(F.unfold(x, kernel, **more).sin(), x.shape[-2:], kernel, **more)

            self.check_gradients(f, torch.randn(2, 3, 12, 13))
        self.check_gradients(lambda x: F.fold(F.unfold(x, 3), (8, 9), 3), torch.randn(2, 8, 9))

    def test_few_bits(self):
        self.check_gradients(lambda x: torch.fake_quantize_per_tensor_affine(x, 0.1, 3, -8, 7), torch.randn(4, 5))
        scale, zero = torch.tensor([0.1, 0.2, 0.3]), torch.tensor([0, 1, -2], dtype=torch.int32)
        self.check_gradients(lambda x: torch.fake_quantize_per_channel_affine(x, scale, zero, 1, -8, 7), torch.randn(4, 3))

    def test_changed_scores(self):
        bias = torch.randn(2)

        def attend(q, k, v):
            return flex_attention(q, k, v, score_mod=lambda s, b, h, i, j: torch.where(i >= j, s + bias[h], -torch.inf))

        warnings.simplefilter("ignore")  # of torch, which is slow there
        with torch.no_grad():
            self.check(attend, *torch.randn(3, 1, 2, 6, 8).unbind(0))

    def test_attention_with_limited_scores(self):
        def attend(q, k, v):
            return flex_attention(q, k, v, score_mod=lambda s, b, h, i, j: 5 * torch.tanh(s / 5))

        warnings.simplefilter("ignore")  # of torch, which is slow there
        with torch.no_grad():
            self.check(attend, *torch.randn(3, 1, 2, 6, 8).unbind(0))


class AttentionInMemory(Whole):
    def test_results_lie_as_eagers(self):
        dense, heads_behind = torch.randn(2, 3, 5, 8), torch.randn(2, 5, 3, 8).transpose(1, 2)
        rows_first = torch.randn(5, 2, 3, 8).permute(1, 2, 0, 3)
        for q, mask, width in ((dense, None, 8), (rows_first, torch.randn(2, 1, 5, 5), 8), (heads_behind, torch.randn(3, 5, 5), 8),
                               (heads_behind, None, 6)):  # fmt: skip
            torch._dynamo.reset()

            def attend(q, k, v):
                return F.scaled_dot_product_attention(q, k, v[..., :width], mask)

            self.check(attend, q, q * 2, q + 1)
            self.check_gradients(attend, q, q * 2, q + 1)


class Branches(Whole):
    def test_both_ways(self):
        a, b = nn.Linear(4, 4), nn.Linear(4, 4)

        def f(x):
            return torch.cond(x.sum() > 0, lambda y: (a(y).relu(), y + 1), lambda y: (b(y).tanh(), y * 2), (x,))

        for x in (torch.ones(2, 4), -torch.ones(2, 4)):
            self.check(f, x)
        self.check_gradients(f, torch.ones(2, 4))
        self.check_gradients(f, -torch.ones(2, 4))

    def test_branches_within(self):
        def inner(y):
            return torch.cond(y[0, 0] > 0, lambda z: z.sin() * torch.tensor([1.0, 2.0]), lambda z: z.cos(), (y,))

        def f(x):
            return torch.cond(x.sum() > 0, inner, lambda y: y * 2, (x,))

        for x in (torch.ones(2, 2), torch.tensor([[-1.0, 2.0], [3.0, 0.5]]), -torch.ones(2, 2)):
            self.check(f, x)
            self.check_gradients(f, x)


class Checks(Whole):
    def test_they_raise_where_values_are_wrong(self):
        def f(x):
            torch._assert_async((x > 0).all(), "none may be negative")
            return x.sqrt() * 2

        compiled = self.compiled(f)
        self.assert_same(compiled(torch.ones(3)), f(torch.ones(3)))
        with self.assertRaisesRegex(RuntimeError, "none may be negative"):
            compiled(torch.tensor([1.0, -1.0, 2.0]))
        self.check_gradients(f, torch.rand(3) + 1)

    def test_places_that_are_not_there_raise(self):
        table = torch.randn(5, 3)
        for f, right, wrong in (
                (lambda i: F.embedding(i, table) * 2, [[0, 4]], [[1, 5]]), (lambda i: table[i[1:]] + 1, [9, -5, 4], [0, 3, -6]),
                (lambda i: table.gather(1, i.unsqueeze(1)), [0, 2], [0, -1]), (lambda i: table.index_select(1, i) * 2, [2, 0], [3, 0])):  # fmt: skip
            torch._dynamo.reset()
            compiled = self.compiled(f)
            self.assert_same(compiled(torch.tensor(right)), f(torch.tensor(right)))
            with self.assertRaisesRegex(IndexError, "there are [35] elements"):
                compiled(torch.tensor(wrong))


class ComplexBorders(Whole):
    def test_inputs_and_results(self):
        x, y = torch.randn(3, 4, dtype=torch.cfloat), torch.randn(3, 4)
        self.check(lambda x, y: (x * y, x.abs(), x.conj() + 1, x), x, y)
        torch._dynamo.reset()
        self.check(lambda x, y: (x @ x.mT, x.real * y), x.conj(), y)
        torch._dynamo.reset()
        self.check(lambda x, y: (x[1:] * 2, x.mT), x, y)
        torch._dynamo.reset()
        self.check(lambda x, y: x.mul(y).double() if False else torch.fft.fft(x), x[:, ::2], y)

    def test_angles_of_what_is_real(self):
        self.check(lambda x: torch.fft.rfft(x)[:, [0, 4]].angle(), torch.randn(20, 8))

    def test_gradients(self):
        w, x = torch.randn(3, 4, 5, dtype=torch.cfloat), torch.randn(2, 3, 8)
        self.check_gradients(lambda w, x: torch.fft.irfft(torch.einsum("bif,iof->bof", torch.fft.rfft(x), w), n=8), w, x)
        self.check_gradients(lambda w: w * w.abs(), w)

    def test_numbers(self):
        def f(a, b):
            y = ((-a.exp() + 1j * b) * (2 - 1j) + 3j) / (1 + 2j) - 1j
            return torch.view_as_real(y), (y * torch.full((4,), 1j)).abs()

        a, b = torch.randn(3, 4), torch.randn(3, 4)
        self.check(f, a, b)
        self.check_gradients(lambda b: (torch.exp(1j * b) * b).real.sum(), b)

    def test_functions(self):
        x = torch.randn(4, 5, dtype=torch.cfloat)
        for function in (torch.angle, torch.log, torch.sqrt, torch.rsqrt, torch.sin, torch.cos, torch.tanh, torch.sinh, torch.cosh,
                         torch.square, lambda x: x**1.5, lambda x: x ** (1 + 1j), lambda x: 1 - x, lambda x: x.mH.imag.clone(),
                         lambda x: torch.where(x == x[0], 0, x * 1j)):  # fmt: skip
            self.check_gradients(lambda x, f=function: f(x), x, tolerance=1e-3)

    def test_writes(self):
        state = [torch.zeros(3, dtype=torch.cfloat) for _ in range(2)]

        def f(state, x):
            state.mul_(0.5).add_(x)
            return state.abs()

        compiled = self.compiled(f)
        x = torch.randn(3, dtype=torch.cfloat)
        for _ in range(2):
            with torch.no_grad():
                self.assert_same(compiled(state[1], x), f(state[0], x))
        self.assert_same(state[1], state[0])

    def test_parts_of_torch_between(self):
        def f(x):
            y = torch.fft.fft(x * 2)
            z = torch.view_as_complex(torch.special.bessel_y0(torch.view_as_real(y).abs() + 1))
            return (y * z).abs(), y

        graphs = self.check(f, torch.randn(3, 8), strict=False)
        self.assertEqual(graphs[0].torch_parts, 1)


if __name__ == "__main__":
    unittest.main()
