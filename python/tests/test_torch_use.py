"""The backend as programs use it: copies, processes, threads, mixed sizes; and forms of graphs that are seldom."""

import copy
import unittest

import torch
import torch._dynamo
from test_torch import WithTorch
from torch import nn

import sylvite  # noqa: F401  as the tests of the backend have it


class Averages(nn.Module):
    """Writes buffers, and reads them again."""

    def __init__(self):
        super().__init__()
        self.net = nn.Linear(8, 8)
        self.register_buffer("mean", torch.zeros(8))
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

    def forward(self, x):
        y = self.net(x)
        self.mean.mul_(0.9).add_(y.mean(0), alpha=0.1)
        self.calls += 1
        return y - self.mean, self.mean, self.calls


class SeldomForms(WithTorch):
    def test_what_was_written_is_returned(self):
        model = Averages().eval()
        beside = copy.deepcopy(model)
        compiled = self.compiled(model)
        with torch.no_grad():
            for _ in range(3):
                x = torch.randn(4, 8)
                got = compiled(x)
                self.assert_same(got, beside(x))
        self.assertEqual(got[1].data_ptr(), model.mean.data_ptr())
        self.assertEqual(int(model.calls), 3)

    def test_graphs_without_inputs(self):
        self.check(lambda: torch.arange(4.0) * 2)

    def test_inputs_whose_memory_does_not_hold_the_values(self):
        turned = torch.randn(3, dtype=torch.complex64).conj().imag
        self.assertTrue(turned.is_neg())
        for given in (turned, torch._efficientzerotensor((3,))):
            torch._dynamo.reset()
            self.check(lambda x: x * 2 + 1, given, strict=False)

    def test_encoder_layers_with_masks(self):
        layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True).eval()
        x = torch.randn(2, 6, 32)
        padding = torch.arange(6).expand(2, 6) >= torch.tensor([[4], [6]])
        later = torch.ones(6, 6, dtype=torch.bool).triu(1)
        self.check(lambda x: layer(x, src_mask=later), x, tolerance=1e-3)
        torch._dynamo.reset()
        self.check(lambda x: layer(x, src_key_padding_mask=padding), x, tolerance=1e-3)


if __name__ == "__main__":
    unittest.main()
