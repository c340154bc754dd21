"""Attention that programs spell out: as one operation of a program, and of Dynamo's graph where its gradients are kept whole."""

import math
import unittest

import torch
import torch._dynamo
from torch import nn
from with_torch import Whole

from sylvite.torch_attention import join_attention

F = nn.functional
HIDDEN = torch.ones(16, 16).tril() == 0


def by_buffer(q, k, v):
    scores = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
    weights = F.softmax(scores.masked_fill(HIDDEN[None, None], float("-inf")), dim=-1)
    return (F.dropout(weights, 0.1, False) @ v).transpose(1, 2).contiguous().view(len(q), 16, -1)


def in_f32(q, k, v):
    mask = torch.zeros(16, 16, dtype=q.dtype).masked_fill(HIDDEN, torch.finfo(q.dtype).min)
    scores = torch.matmul(q, k.transpose(2, 3)) * 0.3 + mask[None, None]
    weights = F.softmax(scores, dim=-1, dtype=torch.float32).to(q.dtype)
    return torch.matmul(F.dropout(weights, 0.0, True), v)


def of_two_masks(q, k, v):
    scores = torch.matmul(q / 3.0, k.permute(0, 1, 3, 2)).float()
    scores = torch.where(torch.arange(16) != 3, scores, -1e9).masked_fill(HIDDEN, -1e9)
    return scores.softmax(-1).type_as(v) @ v


def rows_that_see_no_key(q, k, v):
    sees = (torch.arange(16) < 5)[:, None]
    return (q @ k.mT).masked_fill(~sees, -1e9).softmax(-1) @ v


def weights_as_well(q, k, v):
    weights = (q @ k.mT).softmax(-1)
    return weights @ v, weights


def other_axis(q, k, v):
    return (q @ k.mT).softmax(-2) @ v


def bias_with_gradients(q, k, v):
    return (q @ k.mT + q[:, :, :1, :1]).softmax(-1) @ v


SPELLED = (by_buffer, in_f32, of_two_masks, rows_that_see_no_key)
LEFT = (weights_as_well, other_axis, bias_with_gradients)


def heads(dtype):
    return [torch.randn(2, 4, 16, 8).to(dtype) for _ in range(3)]


class Programs(Whole):
    """Beside eager, without gradients."""

    def test_spelled_out(self):
        for function in (*SPELLED, *LEFT):
            for dtype in (torch.float32, torch.bfloat16):
                with self.subTest(function=function.__name__, dtype=dtype):
                    torch._dynamo.reset()
                    self.check(function, *heads(dtype), tolerance=1e-4 if dtype == torch.float32 else 2e-2)

    def test_autocast(self):
        mixed = nn.Linear(32, 96)

        def f(x):
            with torch.autocast("cpu", torch.bfloat16):
                q, k, v = (part.unflatten(2, (4, 8)).transpose(1, 2) for part in mixed(x).chunk(3, -1))
                return by_buffer(q, k, v)

        self.check(f, torch.randn(2, 16, 32), tolerance=2e-2)


class Captured(Whole):
    """In Dynamo's graph, whatever the device."""

    def attended(self, function, dtype):
        """The number of operations that stand for it, and results and gradients beside eager's."""
        found = []

        def backend(module, inputs):
            join_attention(module, lambda *arguments: True)
            found.extend(node for node in module.graph.nodes if node.target is torch.ops.sylvite.attention.default)
            return module

        torch._dynamo.reset()
        given = [x.requires_grad_() for x in heads(dtype)]
        results = []
        for way in (function, torch.compile(function, backend=backend)):
            result = way(*given)
            result = result if isinstance(result, torch.Tensor) else result[0]
            results.append([result, *torch.autograd.grad(result.float().square().sum(), given)])
        tolerance = 1e-4 if dtype == torch.float32 else 0.1
        for one, other in zip(results[1], results[0]):
            torch.testing.assert_close(one, other, rtol=tolerance, atol=tolerance)
        self.assertEqual(results[1][0].stride(), results[0][0].stride())
        return len(found)

    def test_spelled_out(self):
        for dtype in (torch.float32, torch.bfloat16):
            for function in SPELLED:
                with self.subTest(function=function.__name__, dtype=dtype):
                    self.assertEqual(self.attended(function, dtype), 1)

    def test_left(self):
        for function in LEFT:
            with self.subTest(function=function.__name__):
                self.assertEqual(self.attended(function, torch.float32), 0)

    def test_torchs_kernel_by_its_name(self):
        flash = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
        for dtype, tolerance in ((torch.float32, 1e-4), (torch.bfloat16, 5e-2)):
            q, k, v, mask = (torch.randn(2, 4, rows, columns, dtype=dtype) for rows, columns in ((16, 8), (12, 8), (12, 8), (16, 12)))
            self.check(lambda q, k, v, mask: flash(q, k, v, attn_mask=mask, scale=0.3), q, k, v, mask, tolerance=tolerance)
            torch._dynamo.reset()
            self.check_gradients(lambda q, k, v: flash(q, k, v, 0.0, True)[0], q, k, v, tolerance=tolerance)
            self.check_gradients(lambda q, k, v: flash(q, k, v, attn_mask=HIDDEN[:, :12].to(dtype))[0], q, k, v, tolerance=tolerance)


if __name__ == "__main__":
    unittest.main()
