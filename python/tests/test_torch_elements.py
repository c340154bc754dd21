"""Operations on single elements: bits, places, rounding, numbers at the ends of the range, and draws about given means."""

import unittest
import warnings

import torch
from torch import nn
from with_torch import Whole, needs_torch

from sylvite import torch_backend

F = nn.functional
NAN, INF = float("nan"), float("inf")


def told(x):
    """Where x is no number, and its numbers."""
    return x.isnan(), x.nan_to_num(7.0)


class Elements(Whole):
    def test_memory_as_other_elements(self):
        x = torch.randn(3, 4)
        self.check(lambda x: tuple(x.view(d) for d in (torch.uint8, torch.int8, torch.int16, torch.bfloat16, torch.int32)), x)
        self.check(lambda x: (x.view(torch.int32), x.view(torch.float32), x.view(torch.uint8)), torch.randint(-(2**62), 2**62, (3, 4)))
        self.check(lambda x: (x.view(torch.float32), x.view(torch.int64), x.view(torch.int16)), x.view(torch.uint8).clone())

    @needs_torch((2, 14), "flips no uint16")
    def test_unsigned_integers(self):
        wide = torch.tensor([0, 1, 65535, 65536, 2**31, 2**32 - 1, 2**40 + 3, -1, -(2**33) - 5])
        for dtype in (torch.uint16, torch.uint32, torch.uint64):
            torch._dynamo.reset()
            self.check(lambda x, dtype=dtype: (x.to(dtype), x.to(torch.int32).to(dtype), x.float().abs().to(torch.int64).to(dtype)), wide)
            self.check(lambda x: (x.float(), x.double(), x.long(), x.bool(), x.to(torch.uint8), x.flip(0), x == x.flip(0)), wide.to(dtype))
        x = wide.to(torch.uint16)
        self.check(lambda x: (x.view(torch.int16), x[torch.tensor([3, 1])], torch.cat([x, x]), x.sort().values, x.float() * 2, x.sum()), x)
        given = [x.clone(), x.clone()]
        for function, each in zip((lambda x: x[2:5].fill_(9) + 0.0, self.compiled(lambda x: x[2:5].fill_(9) + 0.0)), given):
            self.assertTrue(torch.equal(function(each), torch.full((3,), 9.0)))
        self.assert_same(given[1], given[0])

    def test_neighbours_and_exponents(self):
        x = torch.tensor([0.0, -0.0, 1.0, -1.0, 1e-45, 3e38, INF, NAN, 2.0])
        self.check(lambda x: (told(torch.nextafter(x, x.flip(0))), torch.nextafter(x, 1 - x)[:5], told(torch.frexp(x)[0])), x)
        y = torch.tensor([0.0, 1.0, -2.5, INF, 3.0])
        for one, other in ((y.bfloat16(), -y.bfloat16()), (y.half(), 1 - y.half()), (y, y.double() + 1), (y.double(), torch.arange(5))):
            torch._dynamo.reset()
            self.check(torch.nextafter, one, other, tolerance=0)
        for dtype in (torch.float32, torch.bfloat16, torch.float16):
            torch._dynamo.reset()
            self.check(torch.frexp, torch.tensor([0.0, -0.0, 1.0, -0.3, 1e-40, -1e-45, 3e38, 1024.0]).to(dtype))

        self.check(lambda x: (told(torch.frexp(x)[0]), x == x, x != x, x - x == 0), torch.tensor([NAN, INF, 3.0]).half())

    def test_powers_of_two_of_few_bits(self):
        x = torch.linspace(-6, 6, 97)
        for dtype, unit in ((torch.bfloat16, 2.0**-8), (torch.float16, 2.0**-11)):
            torch._dynamo.reset()
            exact = x.to(dtype).double().exp2()
            got = self.compiled(lambda x: torch.exp2(x))(x.to(dtype))
            self.assertLess(float(((got.double() - exact) / exact).abs().max()), 1.01 * unit)

    def test_shifts_by_tensors(self):
        x, y = torch.randint(-99, 99, (9,)), torch.randint(0, 7, (9,))
        self.check(lambda x, y: (x << y, x >> y, 3 << y, torch.bitwise_left_shift(x, 2), 5 & x, 5 | x, 5 ^ x), x, y)

    def test_scaled_erfc(self):
        x = torch.tensor([-30.0, -9.0, -1.0, -0.0, 0.3, 5.0, 9.3, 24.9, 25.1, 1e4, 3e38, INF, -INF])
        self.check(lambda x: (torch.special.erfcx(x), torch.special.erfcx(x.double())), x)
        self.check(lambda x: told(torch.special.erfcx(x)), torch.tensor([NAN, 1.0]))
        self.check_gradients(torch.special.erfcx, torch.linspace(-3, 30, 23))

    def test_extremes_of_truths(self):
        x, y = torch.tensor([True, True, False, False]), torch.tensor([True, False, True, False])
        self.check(lambda x, y: (torch.maximum(x, y), torch.minimum(x, y), torch.maximum(x.int(), y), torch.minimum(x, y.float())), x, y)

    def test_angles_of_doubles(self):
        self.check(torch.angle, torch.tensor([-1.0, 2.0, -0.0, NAN, -INF], dtype=torch.float64).nan_to_num(3.0), tolerance=1e-15)

    def test_bounds_and_signs_of_truths(self):
        self.check(lambda x, low, high: (torch.clamp_max(x, high), torch.clamp_min(x, low), x.signbit()), *(torch.rand(4, 5) < 0.5 for _ in range(3)))

    def test_rounding(self):
        x = torch.arange(-30, 30) / 8
        self.check(lambda x: (x.round(decimals=2), x.round(decimals=-1), x.round(decimals=0)), x)
        self.check(lambda x: (5 % x, 2.5 % x, torch.remainder(7, x.abs().ceil().int() + 1)), x + 0.01)

    def test_halves_by_fractions_are_rounded_once(self):
        """Products alone are eager's; what is made of several in one kernel is nearer to float64, as Inductor's is."""
        for dtype in (torch.bfloat16, torch.float16):
            torch._dynamo.reset()
            x, y = torch.randn(2, 4000).to(dtype)
            self.check(lambda x: (x * 0.1, x / 0.3, F.leaky_relu(x, 0.1), F.elu(x)), x, tolerance=0)
            exact = x.double() * 0.1 + y.double() * 0.9
            with torch.no_grad():
                found = self.compiled(lambda x, y: x * 0.1 + y * 0.9)(x, y)
            wrong, eager = ((z.double() - exact).abs().mean() for z in (found, x * 0.1 + y * 0.9))
            self.assertLess(wrong, 0.9 * eager)

    def test_signs_of_no_numbers(self):
        self.check(lambda x: (x.sign(), torch.sgn(x)), torch.tensor([NAN, -2.0, 0.0, -0.0, INF, -INF]))

    def test_angles_of_any_size(self):
        self.check(lambda x: (x.sin(), x.cos()), torch.logspace(-6, 9, 61) * 1.37)

    def test_places(self):
        x, at = torch.randn(3, 4), torch.tensor([[1, -2], [7, 0]])
        self.check_gradients(lambda x: (x.put(at, torch.ones(2, 2)), x.put(at, torch.ones(2, 2), accumulate=True)), x)
        given = torch.randint(0, 2, (3, 4))
        self.check(lambda x: (x.nonzero_static(size=4), x.nonzero_static(size=20, fill_value=-7)), given)
        self.check_gradients(lambda x: x.repeat_interleave(torch.tensor([2, 0, 3]), 0, output_size=5), x)
        self.check(lambda x: torch.searchsorted(x, 0.3), x.flatten().sort().values)

    def test_scatters_by_name(self):
        x, at = torch.randn(3, 4), torch.tensor([[0, 1, 1], [2, 0, 2]])
        warnings.simplefilter("ignore")  # torch would have it said otherwise
        self.check(lambda x: (x.scatter(0, at, 2.0, reduce="multiply"), x.scatter(1, at, x[:2, :3], reduce="add")), x)
        self.check(lambda x: torch.searchsorted(x, torch.tensor([[0.1, 0.2]] * 3), sorter=x.argsort(1)), x)

    def test_reductions_of_integers_at_places(self):
        index = torch.tensor([[0, 2, 2, 1], [3, 3, 0, 0], [2, 1, 2, 2]])
        for dtype in (torch.int64, torch.int8, torch.bool):
            x, values = torch.randint(-90, 90, (5, 4)).to(dtype), torch.randint(-9, 90, (4, 5)).to(dtype)
            for reduce in ("amin", "amax", *(() if dtype == torch.bool else ("mean",))):
                for include_self in (False, True):
                    torch._dynamo.reset()
                    self.check(lambda x, values, reduce=reduce, own=include_self: x.scatter_reduce(0, index, values, reduce, include_self=own), x, values)

    def test_the_first_of_equal_ones_are_eagers(self):
        x = torch.randint(0, 5, (4, 300)).float()
        y = x.masked_fill(torch.rand(4, 300) < 0.05, NAN)
        self.check(lambda x: (x.topk(4), x.topk(9), x.topk(40, largest=False), x.topk(300), x.topk(2, dim=0)), x.long())
        self.check(lambda x: [told(x.topk(4, largest=False)[0]) + (x.topk(4, largest=False)[1], x.topk(20)[1], x.topk(30, sorted=False)[1])], y)
        self.check(lambda x: [x[:, :n].topk(k) for n, k in ((3, 1), (8, 8), (16, 5), (32, 2), (32, 29))], x[:, :32].contiguous())
        self.check(lambda x: (x.topk(3), x[:, :8].topk(2, sorted=False), x[:, :64].topk(8, sorted=False)), torch.zeros(5, 128))

    def test_the_kth_and_the_middle_of_equal_ones_are_eagers(self):
        x = torch.randint(0, 5, (4, 301)).float()
        y = x.masked_fill(torch.rand(4, 301) < 0.01, NAN)
        for way in (lambda x, k: x.kthvalue(k), lambda x, k: x[:, :k].median(1, keepdim=True), lambda x, k: x[:, :k].nanmedian(1)):
            self.check(lambda x, way=way: [way(x, k) for k in (1, 2, 7, 150, 301)], x)
            self.check(lambda x, way=way: [told(way(x, k)[0]) + (way(x, k)[1],) for k in (3, 9, 100, 300)], y)
        self.check(lambda x: (x.kthvalue(2, 0), x.kthvalue(99), x.median(0), x.median()), x.long())
        self.check_gradients(lambda x: x.kthvalue(20, 1)[0].exp().sum() + x.median(1)[0].exp().sum(), x)

    def test_angles_and_frequencies(self):
        self.check(lambda x: told(x.angle()), torch.tensor([1.0, -2.0, 0.0, NAN]))
        self.check(lambda x: (x.angle(), torch.narrow_copy(x, 0, 1, 2)), torch.tensor([1, -2, 0]))
        self.check(lambda x: (torch.fft.fftfreq(5, 0.5) * x, torch.fft.rfftfreq(8) * x[:5]), torch.randn(5))

    def test_windows(self):
        windows = (torch.bartlett_window, torch.blackman_window, torch.hamming_window, torch.kaiser_window)
        self.check(lambda x: [make(9, periodic) * x for make in windows for periodic in (True, False)], torch.randn(9))
        self.check(lambda x: [make(count) for make in windows for count in (0, 1, 2)] + [x * 2], torch.randn(3))
        self.check(lambda x: (torch.kaiser_window(9, False, 5.0) + x, torch.hamming_window(9, True, 0.6, 0.4, dtype=torch.float64) + x), torch.randn(9))

    def test_medians_of_numbers(self):
        x = torch.tensor([[3.0, NAN, 1.0, 2.0], [NAN, NAN, NAN, NAN], [4.0, 1.0, NAN, 9.0]])
        self.check(lambda x: (told(x.nanmedian(1)[0]), x.nanmedian(0, keepdim=True)[0]), x)
        self.check_gradients(lambda x: x.nanmedian(1)[0], torch.randn(3, 4))
        self.check(lambda x: x.nanmedian(1), torch.randint(0, 99, (3, 4)))
        for dtype in (torch.int32, torch.uint8):
            torch._dynamo.reset()
            self.check(lambda x: x.nanmedian(), torch.randint(0, 99, (3, 4)).to(dtype))

    def test_gradients_of_borders(self):
        for shape, pads in (((3, 4), (2, 3)), ((3, 1), (2, 1)), ((3, 4, 5), (1, 2, 0, 3)), ((2, 3, 4, 5), (1, 1, 2, 0, 0, 2)), ((3, 7), (-1, 2)), ((3, 6, 5), (2, -1, -2, -1))):
            self.check_gradients(lambda x, pads=pads: F.pad(x, pads, mode="replicate"), torch.randn(2, *shape))

    def test_numbers_without_axes(self):
        self.check_gradients(lambda x: (x.flip(0), x.roll(1)), torch.tensor(2.5))
        warnings.simplefilter("ignore")  # torch's operation is in beta
        self.check(lambda x: (x.mode(), x.index_reduce(0, torch.tensor(0), x + 1, "amax")), torch.tensor(2.5))

    def test_derivatives_forwards(self):
        def f(x, w):
            value, change = torch.func.jvp(lambda w: (x @ w).tanh(), (w,), (torch.ones(3),))
            return value, change, torch.func.jacfwd(lambda w: (x @ w).exp())(w)

        warnings.simplefilter("ignore")  # of torch, which scripts something there
        self.check(f, torch.randn(5, 3), torch.randn(3))

    def test_what_cannot_be_taken_apart_stays_whole(self):
        self.assertIs(torch_backend._or_whole(lambda x: [][x])(1), NotImplemented)
        self.assertEqual(torch_backend._or_whole(lambda x: x + 1)(1), 2)

    def test_draws_about_means(self):
        mean = torch.full((200, 200), 3.0)
        compiled = self.compiled(lambda m: (torch.normal(m, 2.0), torch.normal(1.0, m), torch.normal(m, m), F.rrelu(-m, training=True)))
        made = compiled(mean)
        for got, (middle, width) in zip(made, ((3, 2), (1, 3), (3, 3))):
            self.assertAlmostEqual(got.mean().item(), middle, delta=0.1)
            self.assertAlmostEqual(got.std().item(), width, delta=0.1)
        self.assertTrue(bool((made[3] <= -3 / 8).all()) and bool((made[3] >= -1).all()) and made[3].std().item() > 0.1)
        x = (-torch.rand(5, 5) - 1).requires_grad_()
        leaky = self.compiled(lambda x: F.rrelu(x, training=True))(x)
        leaky.sum().backward()
        self.assert_same(x.grad * x.detach(), leaky.detach())


class Folds(Whole):
    def test_reductions_of_segments(self):
        x = torch.randn(10, 4)
        x[3] = x[4]
        for how in ("sum", "mean", "max", "min"):
            by_lengths, by_offsets = {"lengths": torch.tensor([3, 2, 5])}, {"offsets": torch.tensor([0, 3, 3, 10]), "initial": 0.5}
            self.check_gradients(lambda x: torch.segment_reduce(x, how, **by_lengths), x)
            self.check_gradients(lambda x: torch.segment_reduce(x[:, 0], how, **by_offsets), x)
        self.check(lambda x: told(torch.segment_reduce(x, "mean", offsets=torch.tensor([0, 3, 3, 10]))), x)

    def test_segments_with_padding(self):
        offsets = torch.tensor([0, 3, 3, 4, 10])

        def padded(x, dtype=torch.float32):
            return torch.ops.aten._jagged_to_padded_dense_forward(x.to(dtype), [offsets], [7], -2.0)

        def there_and_back(x):
            return torch.ops.aten._padded_dense_to_jagged_forward(padded(x).cumsum(1), [offsets], 10) * x

        def nested(x):
            rows = torch.nested.nested_tensor_from_jagged(x, offsets, min_seqlen=0, max_seqlen=6)
            return (rows.sin() * 2).to_padded_tensor(0.0).square()

        for x in (torch.randn(10, 4), torch.randn(10, 1)):
            torch._dynamo.reset()
            self.check(lambda x: (padded(x), padded(x, torch.bfloat16), there_and_back(x)), x)
            self.check_gradients(nested, x)

    def test_powers_at_the_ends_of_the_range(self):
        x = torch.tensor([0.0, -0.0, INF, -INF, NAN, -2.0, 2.0, 1e-30])
        self.check(lambda x: [told(x**p) for p in (-3.5, -1.5, -0.75, 0.25, 1.5, 2.5, -3, 4)], x.repeat(3))
        for each in (0.0, INF):
            self.check(lambda x: (x**-1.5, x**-3.5, torch.linalg.norm(x, -3.5)), torch.tensor([each]))
            torch._dynamo.reset()

    def test_sums_of_products_of_integers(self):
        x, y = torch.randint(0, 9, (2, 3, 4)), torch.randint(0, 9, (2, 4, 5))
        self.check(lambda x: (torch.addbmm(y[0, :3], x, y, beta=0.6, alpha=1.2), torch.addmv(x[0, :, 0], x[0], y[0, :, 0], alpha=2)), x)

    def test_complex_numbers_as_arguments(self):
        x, at = torch.randn(4, 6, dtype=torch.complex64), torch.tensor([[1]])
        self.check(lambda x: (x.masked_fill(x.real > 0, 2j), x.index_fill(0, at[0], 3j), torch.full_like(x, 1 + 2j) * x), x)
        self.check(lambda x: (x.new_full((6,), 3j) * x, x.scatter(0, at, 2j), torch.where(x.real > 0, x, 1 + 2j), x != 1j), x)
        self.check(lambda x: ((2 + 1j) ** x, x.real**2j, 2j - x, torch.linspace(0, 1j, 6) + x), x)

    def test_complex_numbers_beside_others(self):
        x, whole = torch.randn(4, 6, dtype=torch.complex64), torch.arange(6)
        self.check(lambda x: (x + whole, whole - x, x * whole, whole.to(x.dtype) + x, torch.eye(6, dtype=x.dtype) + x[:1]), x)
        self.check(lambda x: (x.to(torch.bool), x.any(), x.all(), torch.logical_not(x), torch.where(x.real > 0, x, 1)), x)
        self.check(lambda x: (torch.logical_and(x, whole), torch.logical_or(whole, x - x[:1]), torch.logical_xor(x - x[:1], x)), x)
        self.check(lambda x: (torch.complex(x.real, x.imag[:1]), torch.complex(x.real[:, :1], x.imag)), x)

    def test_functions_of_complex_numbers(self):
        x, y = torch.randn(5, 6, dtype=torch.complex64) * 2, torch.randn(5, 6, dtype=torch.complex64)
        x[0] = torch.tensor([0.3, -0.2, 3j, 1e-4 + 1e-5j, 2, -2j])
        for function in (torch.acos, torch.acosh, torch.asin, torch.asinh, torch.atan, torch.atanh, torch.expm1, torch.log10, torch.log1p,
                         torch.log2, torch.sgn, torch.sigmoid, torch.tan, lambda x: torch.std_mean(x, 0), lambda x: x**y):  # fmt: skip
            torch._dynamo.reset()
            self.check(function, x)
        for function in (torch.exp2, torch.linalg.inv, lambda x: torch.ldexp(x, torch.arange(3)), lambda x: torch.ldexp(x.real, x)):
            torch._dynamo.reset()
            self.check(function, y[:3, :3])
        for function in (torch.asinh, torch.log1p, torch.tan, lambda x: x**y):
            self.check_gradients(function, x)

    def test_linear_layers_of_complex_numbers(self):
        x, w = (torch.randn(6, 6, dtype=torch.complex64) for _ in range(2))
        self.check_gradients(lambda x: F.linear(x, w, w[0]), x)
        self.check(lambda x: (torch.addmm(w, x, w, alpha=2, beta=0.5), torch.baddbmm(w[None], x[None], w[None])), x)

    def test_reductions_of_complex_numbers(self):
        x = torch.randn(5, 6, dtype=torch.complex64)
        parts = torch.view_as_real
        self.check_gradients(lambda x: (x.var(1), x.std(0), x.var(), x.var((0, 1), correction=2, keepdim=True)), x)
        self.check_gradients(lambda x: (parts(x.prod(1)), parts(x[:, :3].prod(0, keepdim=True)), parts(x[:2, :2].prod())), x, tolerance=1e-3)
        self.check_gradients(lambda x: parts(x[:, :5].cumprod(1)), x, tolerance=1e-3)

    @needs_torch((2, 15), "takes no such bounds")
    def test_bounds_that_the_type_lacks(self):
        """-3 as a number of u8 is 253."""
        def function(x):
            return (x.clamp(-3, 5), x.clamp(min=-300), x.clamp(max=300), x.clamp(-300, 1000), x.clamp_min(-200).clamp_max(90), x.clamp(7, 2**40))

        for dtype in (torch.uint8, torch.int8, torch.int16, torch.int32):
            torch._dynamo.reset()
            self.check(function, torch.arange(0, 120, 9).to(dtype))

    def test_factors_of_short_products(self):
        """Factors that bf16 has no number for are not rounded to it: as near to float64 as eager's results are."""
        def function(x, y, z):
            return torch.addmm(x, y, z, beta=3.4445, alpha=-4.775), torch.baddbmm(x[None], y[None], z[None], beta=0.337, alpha=1.733)

        given = [torch.randn(32, 32, dtype=torch.bfloat16) for _ in range(3)]
        exact = function(*(x.double() for x in given))
        got = torch.compile(function, backend="sylvite", options={"fullgraph_strict": True})(*given)
        for result, eager, wanted in zip(got, function(*given), exact):
            self.assertEqual(result.dtype, torch.bfloat16)
            self.assertLessEqual((result - wanted).norm().item(), 1.1 * (eager - wanted).norm().item())

    def test_gradients_of_extremes_reach_what_made_them(self):
        """Sums that are all about 1: made again they may round to others, of which none is the largest."""

        class Shares(nn.Module):
            def forward(self, x, y):
                shares = (x @ y.mT).softmax(-1)
                return shares / (shares.sum(-1).amax() * shares.sum(-2).amax()) + shares.sum(-1).amin()

        network = self.compiled(Shares())
        for _ in range(40):
            x, y = (torch.randn(4, 4, 24).mul(0.3).requires_grad_() for _ in range(2))
            weight = torch.randn(4, 4, 4)
            found, wanted = (torch.autograd.grad((call(x, y) * weight).sum(), (x, y)) for call in (network, Shares()))
            for a, b in zip(found, wanted):
                self.assertTrue(a.isfinite().all())
                self.assertLess((a - b).norm(), 0.5 * b.norm())


if __name__ == "__main__":
    unittest.main()
