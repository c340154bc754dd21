"""Floats of eight bits: bytes of a program, converted by their bits as torch converts them."""

import unittest

import torch
from torch import nn
from with_torch import WithTorch

from sylvite import torch_backend

F = nn.functional
TYPES = (torch.float8_e4m3fn, torch.float8_e5m2)


def plain(value):
    return value.view(torch.uint8) if value.dtype in TYPES else value


class FloatsOfEightBits(WithTorch):
    def check_bytes(self, function, *inputs, tolerance=0.0):
        """Every byte is right, in inputs that are written, too, and torch runs no part."""
        torch._dynamo.reset()
        given = [[x.clone() for x in inputs] for _ in range(2)]
        with torch.no_grad(), torch_backend.listen() as graphs:
            results = [f(*each) for f, each in zip((self.compiled(function), function), given)]
        for got, wanted in zip((*results[0], *given[0]), (*results[1], *given[1])):
            self.assertEqual((got.dtype, got.shape, got.stride()), (wanted.dtype, wanted.shape, wanted.stride()))
            torch.testing.assert_close(plain(got), plain(wanted), rtol=tolerance, atol=tolerance, equal_nan=True)
        self.assertTrue(graphs and all(graph.torch_parts == 0 and not graph.failure for graph in graphs))

    def test_every_byte(self):
        bytes_ = torch.arange(256, dtype=torch.uint8).view(16, 16)
        for dtype in (torch.float32, torch.bfloat16, torch.float16):
            self.check_bytes(lambda x, y, dtype=dtype: (x.to(dtype), y.to(dtype)), *(bytes_.view(each) for each in TYPES))

    def test_rounding(self):
        special = [0.0, -0.0, float("nan"), float("inf"), -float("inf"), 448, 463.9, 464, 464.1, 480, 57344, 61439, 61440, 2**-9, 2**-10, 2**-10 * 1.001, 2**-16, 2**-17]
        x = torch.cat([*(torch.randn(500) * scale for scale in (1e-6, 1e-3, 1, 100, 3e4, 1e38)), torch.tensor(special)])
        for given in (x, x.bfloat16(), x.half(), x.double()):
            self.check_bytes(lambda x: (*(x.to(each) for each in TYPES), x.to(TYPES[0]).float() * 2, x.to(TYPES[0]).to(TYPES[1])), given)

    def test_moves_and_writes(self):
        def function(x, cache):
            cache[2:4] = (x * 3).to(TYPES[0])
            return cache.t(), torch.cat([cache, cache[1:]]), cache.view(torch.int8) + 1, cache.float().sum(0)

        self.check_bytes(function, torch.randn(2, 4), torch.randn(6, 4).to(TYPES[0]), tolerance=1e-6)

    def test_scaled_products(self):
        def function(x, weight, scale, rows, columns):
            a = x.to(TYPES[0])
            return (torch._scaled_mm(a, weight, scale, scale * 2, out_dtype=torch.bfloat16).float(),
                    torch._scaled_mm(a, weight, rows, columns, out_dtype=torch.float32))  # fmt: skip

        weight = torch.randn(48, 32).to(TYPES[0]).t()
        self.check_bytes(function, torch.randn(16, 32), weight, torch.tensor(0.3), torch.rand(16, 1), torch.rand(1, 48), tolerance=1e-2)

    def test_gradients_by_a_conversion(self):
        weight = torch.randn(8, 8)
        given = [torch.randn(4, 8).requires_grad_() for _ in range(2)]
        given[1].data.copy_(given[0].data)

        def function(x):
            return F.linear(x.to(TYPES[1]).to(torch.float32), weight)

        results = [f(x) for f, x in zip((self.compiled(function), function), given)]
        for result in results:
            result.square().sum().backward()
        self.assert_same(results[0], results[1])
        self.assert_same(given[0].grad, given[1].grad)


if __name__ == "__main__":
    unittest.main()
