"""What tests of the backend of torch.compile on a GPU share."""

import unittest

import torch
from with_torch import WithTorch


@unittest.skipUnless(torch.cuda.is_available(), "torch sees no GPU")
class WithGpu(WithTorch):
    def setUp(self):
        super().setUp()
        torch.set_default_device("cuda")
        self.addCleanup(torch.set_default_device, None)

    def check(self, function, *inputs, **options):
        graphs = super().check(function, *inputs, **options)
        self.assertEqual({graph.device for graph in graphs}, {"cuda"})
        self.assertEqual([graph.failure for graph in graphs if graph.failure], [])
        return graphs

    def compiled(self, function, **options):
        mode = options.pop("mode", "default")
        strict = options.pop("strict", True)
        return torch.compile(function, backend="sylvite", options={"fullgraph_strict": strict, "compile.mode": mode, **options})
