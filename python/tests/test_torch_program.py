"""Modules bound to their parameters, beside the modules."""

import unittest

import torch
from torch import nn
from with_torch import WithTorch

import sylvite


class Cache(nn.Module):
    """Writes a buffer, and takes and returns trees."""

    def __init__(self):
        super().__init__()
        self.net = nn.Linear(4, 4)
        self.register_buffer("sums", torch.zeros(4))

    def forward(self, x, *, scale):
        self.sums.add_(x.sum(0))
        return {"net": self.net(x) * scale["by"], "sums": self.sums * 1}


class Bound(WithTorch):
    def setUp(self):
        super().setUp()
        self.module = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)).eval()
        self.enterContext(torch.no_grad())

    def test_calls(self):
        handle = sylvite.program(self.module, torch.randn(3, 8))
        for _ in range(3):
            x = torch.randn(3, 8)
            self.assert_same(handle(x), self.module(x))
        turned = torch.randn(8, 3).t()
        self.assert_same(handle(turned), self.module(turned))

    def test_open_sizes(self):
        open_rows = ({0: torch.export.Dim.DYNAMIC},)
        handle = sylvite.program(self.module[0], torch.randn(3, 8), dynamic_shapes=open_rows)
        for rows in (3, 5, 2):
            x = torch.randn(rows, 8)
            self.assert_same(handle(x), self.module[0](x))

    def test_writes_names_and_trees(self):
        module = Cache()
        scale = {"by": torch.tensor(2.0)}
        handle = sylvite.program(module, torch.ones(3, 4), scale=scale)
        for _ in range(2):
            got = handle(torch.ones(3, 4), scale=scale)
        self.assert_same(module.sums, torch.full((4,), 6.0))
        self.assert_same(got["sums"], module.sums)
        self.assert_same(got["net"], module.net(torch.ones(3, 4)) * 2)

    def test_parameters_are_those_of_the_last_refresh(self):
        x = torch.randn(3, 8)
        handle = sylvite.program(self.module, x)
        before = handle(x)
        self.module[0].weight.mul_(2)
        self.assert_same(handle(x), before)
        handle.refresh()
        self.assert_same(handle(x), self.module(x))

    def test_a_wrong_call_spoils_no_other(self):
        x = torch.randn(3, 8)
        handle = sylvite.program(self.module, x)
        for wrong in (torch.randn(4, 8), x.double()):
            with self.assertRaises(sylvite.InputError):
                handle(wrong)
        with self.assertRaises(sylvite.InputError):
            handle(x, x)
        self.assert_same(handle(x), self.module(x))

    def test_what_is_lacking_is_named(self):
        class Lacking(nn.Module):
            def forward(self, x):
                return torch.special.bessel_y0(x)

        with self.assertRaisesRegex(sylvite.UnsupportedError, "bessel_y0"):
            sylvite.program(Lacking(), torch.randn(3))


if __name__ == "__main__":
    unittest.main()
