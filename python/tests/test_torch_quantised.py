"""Operations of torch's exported quantisation, and factors of matrices apart."""

import unittest

import torch
import torch.ao.quantization.fx._decomposed  # makes the operations
from torch import nn
from with_torch import Whole

ops = torch.ops.quantized_decomposed
F = nn.functional


class Quantised(Whole):
    def check_numbers(self, function, *inputs):
        self.assertTrue(all(graph.torch_parts == 0 for graph in self.check(function, *inputs, tolerance=1e-6)))

    def test_one_scale(self):
        def function(x, scale, zero):
            q = ops.quantize_per_tensor(x, 0.03, 5, -128, 127, torch.int8)
            scale, zero = scale.clone(), zero.clone()
            u = ops.quantize_per_tensor.tensor(x, scale, zero, 0, 255, torch.uint8)
            return (q, ops.dequantize_per_tensor(q, 0.03, 5, -128, 127, torch.int8), u,
                    ops.dequantize_per_tensor.tensor(u, scale, zero, 0, 255, torch.uint8),
                    ops.dequantize_per_tensor(q, 0.03, 5, -128, 127, torch.int8, out_dtype=torch.bfloat16))  # fmt: skip

        x = torch.randn(5, 16)
        for given in (x, x.bfloat16(), 100 * x):
            torch._dynamo.reset()
            self.check_numbers(function, given, torch.tensor(0.021), torch.tensor(128))

    def test_scales_of_channels_tokens_and_groups(self):
        def function(x, scales, zeros, tokens):
            q = ops.quantize_per_channel(x, scales, zeros, 1, -128, 127, torch.int8)
            t = ops.quantize_per_token(x, tokens, tokens.round().long(), -128, 127, torch.int8)
            return (q, ops.dequantize_per_channel(q, scales, zeros, 1, -128, 127, torch.int8),
                    ops.dequantize_per_channel(q, scales, None, 1, -128, 127, torch.int8), t,
                    ops.dequantize_per_token(t, tokens, tokens.round().long(), -128, 127, torch.int8, torch.float32),
                    ops.dequantize_per_channel_group(q, x.abs()[:, :2] + 0.1, None, -128, 127, torch.int8, 4, torch.float32))  # fmt: skip

        self.check_numbers(function, torch.randn(5, 8), torch.rand(8) / 50 + 0.01, torch.arange(8) - 3, torch.rand(5, 1) + 0.01)

    def test_choice_of_scales(self):
        def function(x):
            return (*ops.choose_qparams.tensor(x, 0, 255, 1e-5, torch.uint8), *ops.choose_qparams.tensor(x.abs(), -128, 127, 1e-5, torch.int8),
                    *ops.choose_qparams_symmetric.tensor(x, -127, 127, 1e-5, torch.int8))  # fmt: skip

        for x in (torch.randn(5, 16), torch.zeros(3), -torch.rand(7)):
            torch._dynamo.reset()
            self.check_numbers(function, x)

    def test_dynamic_linear(self):
        """Scales found in a program round its own values."""

        def function(x, w):
            scale, zero = ops.choose_qparams.tensor(x, -128, 127, 1e-5, torch.int8)
            q = ops.quantize_per_tensor.tensor(x, scale, zero, -128, 127, torch.int8)
            scales = w.abs().amax(1) / 127
            weight = ops.quantize_per_channel(w, scales, torch.zeros(6, dtype=torch.int64), 0, -127, 127, torch.int8)
            return F.linear(ops.dequantize_per_tensor.tensor(q, scale, zero, -128, 127, torch.int8),
                            ops.dequantize_per_channel(weight, scales, None, 0, -127, 127, torch.int8))  # fmt: skip

        graphs = self.check(function, torch.randn(5, 16), torch.randn(6, 16))
        self.assertTrue(all(graph.torch_parts == 0 for graph in graphs))


class Factors(Whole):
    def test_factors_apart(self):
        def apart(a):
            packed, pivots = torch.linalg.lu_factor(a)
            return (*torch.lu_unpack(packed, pivots), *torch.linalg.lu(a))

        self.check(apart, torch.randn(5, 5))
        torch._dynamo.reset()
        self.check(apart, torch.randn(3, 2, 4, 4))
        self.check_gradients(lambda a: torch.linalg.lu(a)[1:], torch.randn(4, 4))

    def test_reflections(self):
        """What geqrf leaves, as products of reflections and applied from each side."""
        packed, scales = torch.geqrf(torch.randn(2, 6, 4))
        self.check_gradients(torch.linalg.householder_product, packed, scales)
        torch._dynamo.reset()
        self.check(lambda v, t: (torch.linalg.householder_product(v, t[..., :3]), torch.linalg.householder_product(v[:, :4], t)), packed, scales)
        torch._dynamo.reset()
        apply = lambda v, t, x, y: [torch.ormqr(v, t, *((x, True) if left else (y, False)), turned) for left in (True, False) for turned in (True, False)]  # noqa: E731
        self.check(apply, packed, scales, torch.randn(2, 6, 3), torch.randn(2, 3, 6))


if __name__ == "__main__":
    unittest.main()
