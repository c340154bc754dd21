"""Folds of few long rows, and of all elements: sums, extremes, their places, norms; on a GPU many threads make each."""

import unittest

import torch
from with_torch import WithTorch

WAYS = {
    "sum": lambda x: x.sum(),
    "mean of squares": lambda x: (x * x).mean(),
    "greatest": lambda x: (x.max(), x.amin(), x.amax(-1)),
    "places": lambda x: (x.argmax(), x.argmin(), x.argmax(-1), x.max(-1), x.min(-1).indices),
    "norms": lambda x: (x.norm(), x / x.norm(dim=-1, keepdim=True), x.abs().amax()),
    "variance": lambda x: (x.var(), x.std(-1), x.mean(-1, keepdim=True)),
    "counts": lambda x: ((x > 0).sum(), (x > 3).any(), (x > -9).all(), (x > 1).sum(-1)),
    "products": lambda x: (x * 1e-3 + 1).prod(),
    "logarithms": lambda x: (x.logsumexp(-1), x.logsumexp((0, 1))),
    "columns": lambda x: (x.sum(0), x.argmax(0)),
    "clipped": lambda x: x * (1 / x.norm()).clamp(max=1),
}

#: Folds along a dim in the middle of three, and what uses them again.
MIDDLE = {
    "series": lambda x: (x - x.mean(1, keepdim=True)) / torch.sqrt(x.var(1, keepdim=True, unbiased=False) + 1e-3),
    "statistics": lambda x: torch.cat([x.mean(1), x.std(1)], -1),
    "logarithms": lambda x: x.logsumexp(1),
    "places": lambda x: (x.max(1), x.argmin(1)),
    "unit": lambda x: torch.nn.functional.normalize(x, dim=1),
    "range": lambda x: (x - x.amin(1, keepdim=True)) / (x.amax(1, keepdim=True) - x.amin(1, keepdim=True) + 1e-3),
    "counts": lambda x: ((x > 2).any(1), (x > 0).sum(1), (x > -9).all(1)),
}


class Folds(WithTorch):
    shapes = ((3, 1000), (1, 70000))
    middle = ((4, 60, 21), (2, 9, 1000))

    def test_each_way(self):
        self.check_ways(WAYS, self.shapes)

    def test_columns(self):
        self.check_ways(MIDDLE, self.middle)

    def check_ways(self, ways, shapes):
        for name, way in ways.items():
            for shape in shapes:
                for dtype in (torch.float32, torch.bfloat16):
                    torch._dynamo.reset()
                    x = torch.randn(shape, dtype=dtype)
                    x += torch.arange(x.numel()).view(shape).to(dtype) % 7 * 0.25
                    with self.subTest(way=name, shape=shape, dtype=dtype), torch.no_grad():
                        exact, got = way(x.float()), self.compiled(way)(x)
                        tolerance = 1e-3 if dtype == torch.float32 else 3e-2
                        for one, other in zip(leaves(got), leaves(exact)):
                            torch.testing.assert_close(one.to(other.dtype), other, rtol=tolerance, atol=tolerance)

    def test_what_is_no_number(self):
        for shape in ((2, 1000), (1, 70000)):
            x = torch.randn(shape)
            x[0, 600], x[0, 700] = float("nan"), float("nan")
            self.check(lambda x: (x.argmax(-1), x.argmin(-1), x.max().isnan(), x.sum().isnan()), x)
            self.check(lambda x: (x.argmax(-1), x.argmin(-1), x.sum()), torch.full(shape, -float("inf")))

    def test_dims_of_one(self):
        self.check(lambda x: (x.norm(1, -4), x.norm(dim=0, keepdim=True), x.amax(0), x.std(0, correction=0)), torch.randn(1, 6, 8, 11))


def leaves(value):
    return [value] if isinstance(value, torch.Tensor) else [each for one in value for each in leaves(one)]


@unittest.skipUnless(torch.cuda.is_available(), "torch sees no GPU")
class FoldsOnGpu(Folds):
    shapes = ((1, 70), (1, 5003), (3, 1000), (128, 1000), (1, 70000), (2, 65536), (1, 131072), (300, 500))
    middle = ((4, 60, 21), (2, 9, 1000), (32, 96, 64), (2, 5000, 40), (1, 70000, 8))

    def setUp(self):
        super().setUp()
        torch.set_default_device("cuda")
        self.addCleanup(torch.set_default_device, None)


if __name__ == "__main__":
    unittest.main()
