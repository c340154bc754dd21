"""Programs of torch.export as models, beside the modules."""

import copy
import pathlib
import pickle
import tempfile
import unittest

import torch
from torch import nn
from with_torch import WithTorch

import sylvite

F = nn.functional


class Scaled(nn.Module):
    """Takes inputs by position and name, one of them no tensor, and returns a tree."""

    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.head = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.Linear(8, 5)

    def forward(self, x, *, scale=None, twice=False):
        y = F.relu(self.norm(self.conv(x))).mean((2, 3)) * scale
        return {"logits": self.head(2 * y if twice else y), "x": x, "none": None, "rows": y.t()}


class Exported(WithTorch):
    open_batch = {"x": {0: torch.export.Dim.DYNAMIC}, "scale": {0: torch.export.Dim.DYNAMIC}, "twice": None}

    def export(self, module):
        arguments = {"scale": torch.randn(2, 1), "twice": True}
        return torch.export.export(module, (torch.randn(2, 3, 6, 6),), arguments, dynamic_shapes=self.open_batch)

    def test_programs_are_called_as_the_module_is(self):
        module = Scaled().eval()
        model = sylvite.from_torch(self.export(module))
        for batch in (2, 1, 5):
            x, scale = torch.randn(batch, 3, 6, 6).to(memory_format=torch.channels_last), torch.randn(batch, 1)
            with torch.no_grad():
                got, wanted = model(x, twice=True, scale=scale), module(x, scale=scale, twice=True)
            self.assertIs(got["x"], x)
            self.assertIsNone(got["none"])
            for name in ("logits", "rows"):
                torch.testing.assert_close(got[name], wanted[name], rtol=1e-4, atol=1e-4)
        with self.assertRaisesRegex(sylvite.InputError, "the program takes"):
            model(x)

    def test_copies_and_pickles(self):
        module = Scaled().eval()
        model = sylvite.from_torch(self.export(module))
        x, scale = torch.randn(3, 3, 6, 6), torch.randn(3, 1)
        wanted = module(x, scale=scale, twice=True)
        for again in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
            torch.testing.assert_close(again(x, scale=scale, twice=True)["logits"], wanted["logits"], rtol=1e-4, atol=1e-4)

    def test_two_sizes_without_limits(self):
        module = nn.Sequential(nn.Conv1d(4, 8, 3, padding=1), nn.GELU(), nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(8, 3)).eval()
        sizes = {0: torch.export.Dim.DYNAMIC, 2: torch.export.Dim.DYNAMIC}
        model = sylvite.from_torch(torch.export.export(module, (torch.randn(2, 4, 9),), dynamic_shapes=(sizes,)))
        for batch, length in ((2, 9), (3, 17), (1, 5)):
            x = torch.randn(batch, 4, length)
            torch.testing.assert_close(model(x), module(x).detach(), rtol=1e-4, atol=1e-4)

    def test_sizes_may_be_multiples_of_others(self):
        class Paired(nn.Module):
            def forward(self, pairs, x):
                return pairs.unflatten(0, (-1, 2)).mean(1) + x

        batch = torch.export.Dim("batch", min=2, max=64)
        example = torch.randn(6, 4), torch.randn(3, 4)
        model = sylvite.from_torch(torch.export.export(Paired(), example, dynamic_shapes=({0: 2 * batch}, {0: batch})))
        for count in (3, 5, 2):
            pairs, x = torch.randn(2 * count, 4), torch.randn(count, 4)
            torch.testing.assert_close(model(pairs, x), Paired()(pairs, x))
        with self.assertRaisesRegex(sylvite.InputError, "is 2"):
            model(torch.randn(4, 4), torch.randn(3, 4))

    def test_ranges_may_begin_at_none(self):
        class Cached(nn.Module):
            def forward(self, x, past):
                keys = torch.cat([past, x], 1)
                return torch.softmax(x @ keys.transpose(1, 2), -1) @ keys, keys, past.sum(1)

        rows = torch.export.Dim("rows", min=0, max=64)
        program = torch.export.export(Cached(), (torch.randn(2, 3, 8), torch.randn(2, 4, 8)),
                                      dynamic_shapes={"x": None, "past": {1: rows}})
        model = sylvite.from_torch(program)
        for count in (4, 0, 7, 1, 0, 64):
            given = (torch.randn(2, 3, 8), torch.randn(2, count, 8))
            for got, wanted in zip(model(*given), Cached()(*given)):
                torch.testing.assert_close(got, wanted, rtol=1e-4, atol=1e-4)

    def test_attention_stays_whole_and_files_can_be_kept(self):
        module = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True).eval()
        program = torch.export.export(module, (torch.randn(2, 7, 32),))
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "layer.torch"
            model = sylvite.from_torch(program, path=path)
            self.assertIn("attention", path.read_text())
            x = torch.randn(2, 7, 32)
            wanted = module(x).detach()
            torch.testing.assert_close(model(x), wanted, rtol=1e-4, atol=1e-4)
            (again,) = sylvite.compile(path)(x)
            torch.testing.assert_close(again, wanted, rtol=1e-4, atol=1e-4)
            sylvite.export(program, folder, name="layer")
            self.assertTrue((pathlib.Path(folder) / "layer.h").is_file())

    def test_weights_of_every_type(self):
        class Typed(nn.Module):
            def __init__(self):
                super().__init__()
                for name, dtype in (("small", torch.float16), ("flag", torch.bool), ("wide", torch.float64), ("whole", torch.int64)):
                    self.register_buffer(name, torch.tensor([[1, 0, 3]]).t().to(dtype), persistent=name != "small")

            def forward(self, x):
                return x * self.small + torch.where(self.flag, self.wide.float(), 7.0) + self.whole + torch.tensor([1.0, 2.0])

        x = torch.randn(3, 2)
        model = sylvite.from_torch(torch.export.export(Typed(), (x,)))
        torch.testing.assert_close(model(x), Typed()(x))

    def test_what_cannot_be_exported_is_named(self):
        def refused(module, pattern, x):
            with self.assertRaisesRegex(sylvite.UnsupportedError, pattern):
                sylvite.from_torch(torch.export.export(module, (x,)))

        refused(nn.BatchNorm1d(4), "writes to 'num_batches_tracked'|writes to 'running_mean'", torch.randn(3, 4))

        class Bessel(nn.Module):
            def forward(self, x):
                return torch.special.bessel_y0(x)

        refused(Bessel(), "bessel_y0", torch.randn(3))
        with self.assertRaisesRegex(sylvite.UsageError, "torch.export.export"):
            sylvite.from_torch(nn.Linear(2, 2))


if __name__ == "__main__":
    unittest.main()
