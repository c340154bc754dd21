"""What tests of the backend of torch.compile share."""

import atexit
import os
import shutil
import tempfile
import unittest
import warnings

# Graphs of other runs are not to be met.
_caches = tempfile.mkdtemp()
os.environ["TORCHINDUCTOR_CACHE_DIR"] = _caches
atexit.register(shutil.rmtree, _caches, ignore_errors=True)

import torch
import torch._dynamo
from torch import nn

from sylvite import torch_backend

F = nn.functional


def needs_torch(release, lacks):
    """Skips a test before a release whose eager mode is the first that does what it compares with."""
    own = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])
    return unittest.skipIf(own < release, f"this torch {lacks}")


class WithTorch(unittest.TestCase):
    def setUp(self):
        torch._dynamo.reset()
        torch.manual_seed(0)
        warnings.simplefilter("error")
        for told in (DeprecationWarning, FutureWarning):  # of what torch itself uses
            warnings.filterwarnings("ignore", ".*(torch.jit|LeafSpec).*deprecated", told)
        self.addCleanup(warnings.resetwarnings)

    def compiled(self, function, **options):
        strict = options.pop("strict", True)
        return torch.compile(function, backend="sylvite", options={"fullgraph_strict": strict, **options})

    def check(self, function, *inputs, strict=True, tolerance=1e-4, **options):
        """The function once as it is and twice compiled; returns what became of it."""
        compiled = self.compiled(function, strict=strict, **options)
        with torch.no_grad(), torch_backend.listen() as graphs:
            wanted = function(*inputs)
            for _ in range(2):
                self.assert_same(compiled(*inputs), wanted, tolerance)
        return graphs

    def assert_same(self, got, wanted, tolerance=1e-4):
        if isinstance(wanted, (tuple, list)):
            self.assertEqual(len(got), len(wanted))
            for one, other in zip(got, wanted):
                self.assert_same(one, other, tolerance)
        elif isinstance(wanted, torch.Tensor):
            torch.testing.assert_close(got, wanted, rtol=tolerance, atol=tolerance)
            self.assertEqual(got.stride(), wanted.stride())
        else:
            self.assertEqual(got, wanted)


class Whole(WithTorch):
    """No part is run by torch, in either direction."""

    def check_gradients(self, function, *inputs, tolerance=1e-4):
        torch._dynamo.reset()
        given = [[x.detach().clone().requires_grad_(x.is_floating_point() or x.is_complex()) for x in inputs] for _ in range(2)]
        with torch_backend.listen() as graphs:
            results = [f(*x) for f, x in zip((function, self.compiled(function)), given)]
            for result in results:
                parts = [r for r in (result if isinstance(result, tuple) else (result,)) if r.requires_grad]
                sum(r.abs().square().sum() for r in parts).backward()
        self.assert_same(results[1], results[0], tolerance)
        self.assert_same([x.grad for x in given[1]], [x.grad for x in given[0]], tolerance)
        self.assertTrue(all(graph.torch_parts == 0 and not graph.failure for graph in graphs))
        return graphs


class TensorForms:
    """How tensors come in and go out, on any device."""

    def test_inputs_with_strides(self):
        x = torch.randn(2, 3, 4, 5)
        for given in (x.to(memory_format=torch.channels_last), x.transpose(0, 3), x[:, ::2], x[:1].expand(4, 3, 4, 5),
                      x.permute(3, 1, 0, 2), torch.randn(121)[1:].view(2, 3, 4, 5)):  # fmt: skip
            torch._dynamo.reset()
            self.check(lambda x: (x * 2).sum(1), given)

    def test_results_with_strides(self):
        for function in (lambda x: (x * 2).transpose(0, 1), lambda x: (x + 1).permute(2, 0, 1)):
            torch._dynamo.reset()
            self.check(function, torch.randn(2, 3, 4))

    def test_dtypes(self):
        for dtype in (torch.float64, torch.int64, torch.int32, torch.bfloat16, torch.float16, torch.uint8):
            torch._dynamo.reset()
            self.check(lambda x: x + x, torch.arange(6).to(dtype))
        self.check(lambda x: ~x, torch.tensor([True, False]))

    def test_zero_dimensional_and_empty(self):
        self.check(lambda x: x * 2, torch.tensor(3.0))
        self.check(lambda x: x * 2, torch.zeros(0, 3))

    def test_inference_mode(self):
        model = nn.Linear(64, 64)
        compiled = self.compiled(model)
        x = torch.randn(2, 64)
        with torch.inference_mode():
            self.assert_same(compiled(x), model(x))
