"""Gradients and training by the backend of torch.compile on a GPU, beside eager. Skipped where torch sees no GPU."""

import copy
import unittest

import torch
import torch._dynamo
from torch import nn
from with_gpu import WithGpu

from sylvite import torch_backend

F = nn.functional


def heads_of(x):
    """Three of 32 channels. (Dynamo of torch 2.11 breaks graphs at unflatten where a default device is set.)"""
    return x.reshape(*x.shape[:2], 3, 32).transpose(1, 2)


class Gradients(WithGpu):
    def check_gradients(self, model, given):
        """Those of autocast, beside eager's: about as far from those without it, which bf16 need not meet where sums cancel."""

        def gradients(way, narrow=True):
            model.zero_grad(set_to_none=True)
            with torch.autocast("cuda", torch.bfloat16, enabled=narrow):
                (way(given).float() - 1).square().mean().backward()
            return [parameter.grad.clone() for parameter in model.parameters()]

        with torch_backend.listen() as graphs:
            found = gradients(self.compiled(model))
        self.assertEqual([(graph.torch_parts, graph.failure) for graph in graphs], [(0, "")] * 2)
        names = [name for name, _ in model.named_parameters()]
        for name, got, eager, exact in zip(names, found, gradients(model), gradients(model, narrow=False)):
            strides = [[s for n, s in zip(x.shape, x.stride()) if n > 1] for x in (got, eager)]
            self.assertEqual(*strides)
            allowed = 2 * (eager - exact).norm() + 0.02 * exact.norm()
            self.assertLess((got - exact).norm(), allowed, f"{name}, whose norm is {exact.norm():.2e}")
        return graphs

    def test_gradients_of_convolutions(self):
        def network(width):
            layers = [nn.Conv2d(3, width, 7, 2, 3), nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(3, 2, 1),
                      nn.Conv2d(width, width, 3, 2, 1, groups=width), nn.Conv2d(width, 2 * width, 3, 2, 1), nn.GELU(),
                      nn.Conv2d(2 * width, 20, 1), nn.ConvTranspose2d(20, 16, 2, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten()]  # fmt: skip
            return nn.Sequential(*layers)

        for given in (torch.randn(4, 3, 64, 64), torch.randn(4, 3, 61, 67).to(memory_format=torch.channels_last)):
            torch._dynamo.reset()
            self.check_gradients(network(32), given)

    def test_gradients_of_attention_and_tables(self):
        class Network(nn.Module):
            def __init__(self):
                super().__init__()
                self.table, self.places = nn.Embedding(100, 96), nn.Embedding(50, 96)
                self.mixed, self.last = nn.Linear(96, 288), nn.Linear(96, 100)

            def forward(self, ids):
                x = self.table(ids) + self.places(torch.arange(ids.shape[1], device=ids.device))
                q, k, v = [heads_of(part) for part in self.mixed(x).chunk(3, -1)]
                attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
                return self.last(attended.transpose(1, 2).flatten(2))

        graphs = self.check_gradients(Network(), torch.randint(100, (4, 50)))
        self.assertIn("sylvite.attention_gradient", graphs[1].texts[0])

    def test_gradients_of_attention_by_hand(self):
        class Network(nn.Module):
            def __init__(self):
                super().__init__()
                self.mixed = nn.Linear(96, 288)

            def forward(self, x):
                q, k, v = [heads_of(part) for part in self.mixed(x).chunk(3, -1)]
                scores = (q @ k.transpose(-2, -1) / 5.0).masked_fill(torch.ones(50, 50).tril() == 0, float("-inf"))
                return (F.softmax(scores, -1) @ v).transpose(1, 2).flatten(2)

        graphs = self.check_gradients(Network(), torch.randn(4, 50, 96))
        self.assertIn("sylvite.attention_gradient", graphs[1].texts[0])

    def test_gradients_of_attention_with_masks(self):
        class Network(nn.Module):
            def __init__(self, make_mask):
                super().__init__()
                self.mixed, self.make_mask = nn.Linear(96, 288), make_mask

            def forward(self, x):
                q, k, v = [heads_of(part) for part in self.mixed(x).chunk(3, -1)]
                return F.scaled_dot_product_attention(q, k, v, self.make_mask(x)).transpose(1, 2).flatten(2)

        place = lambda: torch.arange(50, device="cuda")  # noqa: E731
        masks = [
            lambda x: place()[None, :] <= place()[:, None],  # causal
            lambda x: (place() < 40)[None, None, None].expand(4, 1, 50, 50),
            lambda x: (x[:, :, :1] > -0.5).mT[:, None],  # of each text, as padding is
            lambda x: (x[:, None, :, :50] > 0) & (place() > 5)[:, None],  # rows that see no key
            lambda x: torch.where(x[:, None, :, :50] > 1, -1.0, 0.5),  # added
        ]
        for make_mask in masks:
            torch._dynamo.reset()
            graphs = self.check_gradients(Network(make_mask), torch.randn(4, 50, 96))
            self.assertIn("sylvite.attention_gradient", graphs[1].texts[0])

    def test_gradients_of_few_channels(self):
        network = nn.Sequential(nn.Conv2d(3, 32, 3, 1, 1, bias=False), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 1, 1))  # fmt: skip
        self.check_gradients(network, torch.randn(16, 3, 66, 62))

    def test_gradients_of_groups(self):
        network = nn.Sequential(nn.Conv2d(3, 72, 3, 2, 1, bias=False), nn.BatchNorm2d(72), nn.ReLU(),
                                nn.Conv2d(72, 72, 3, 2, 1, groups=3, bias=False), nn.BatchNorm2d(72), nn.ReLU(),
                                nn.Conv2d(72, 128, 1), nn.Conv2d(128, 256, 3, 1, 1, groups=32), nn.AdaptiveAvgPool2d(2))  # fmt: skip
        self.check_gradients(network, torch.randn(8, 3, 66, 62))

    def test_gradients_of_signals(self):
        network = nn.Sequential(nn.Conv1d(16, 64, 5, 2, 2), nn.GELU(), nn.Conv1d(64, 64, 9, padding=4, groups=64), nn.GELU(),
                                nn.Conv1d(64, 32, 3, dilation=2), nn.ConvTranspose1d(32, 16, 4, 2))  # fmt: skip
        self.check_gradients(network, torch.randn(4, 16, 201))

    def test_gradients_of_groups_and_resizing(self):
        for options in ({"scale_factor": 2}, {"size": (9, 21)}, {"size": (30, 16), "align_corners": True}):
            network = nn.Sequential(
                nn.Conv2d(8, 32, 3), nn.GroupNorm(4, 32), nn.SiLU(), nn.Upsample(mode="bilinear", **options), nn.Conv2d(32, 8, 3))
            self.check_gradients(network, torch.randn(4, 8, 14, 18))

    def test_gradients_of_rows_that_most_updates_are_of(self):
        class Network(nn.Module):
            def __init__(self):
                super().__init__()
                self.table = nn.Embedding(9, 24)

            def forward(self, x):
                places = torch.arange(x.shape[1], device=x.device)
                return x @ self.table((places[:, None] - places).clamp(-4, 4) + 4).sum(1).mT

        self.check_gradients(Network(), torch.randn(2, 80, 24))

    def test_gradients_of_encoder_layers(self):
        layer = nn.TransformerEncoderLayer(96, 3, 192, 0.0, batch_first=True, norm_first=True)
        graphs = self.check_gradients(layer, torch.randn(4, 50, 96))
        self.assertIn("sylvite.attention_gradient", graphs[1].texts[0])
        self.assertNotIn("[50,12,32]", graphs[0].texts[0] + graphs[1].texts[0])  # batches stay ahead of rows


class Training(WithGpu):
    def test_gradients(self):
        one = nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.LayerNorm(128), nn.Linear(128, 8))
        other = nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.LayerNorm(128), nn.Linear(128, 8))
        other.load_state_dict(one.state_dict())
        compiled = self.compiled(one)
        optimizers = [torch.optim.SGD(m.parameters(), 0.1) for m in (one, other)]
        for _ in range(4):
            x = torch.randn(32, 64)
            for model, optimizer in zip((compiled, other), optimizers):
                optimizer.zero_grad()
                model(x).square().mean().backward()
                optimizer.step()
        for ours, torchs in zip(one.parameters(), other.parameters()):
            torch.testing.assert_close(ours, torchs, rtol=1e-4, atol=1e-5)

    def test_convolutions_with_autocast(self):
        one = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1), nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 32, 3, 1, 1), nn.BatchNorm2d(32),
                            nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10))  # fmt: skip
        other = copy.deepcopy(one)
        exact = copy.deepcopy(one).double()
        x = torch.randn(8, 3, 32, 32).to(memory_format=torch.channels_last)
        for model in (self.compiled(one, strict=False), other, exact):
            with torch.autocast("cuda", torch.bfloat16, enabled=model is not exact):
                loss = model(x.double() if model is exact else x).square().mean()
            loss.backward()
        for ours, torchs, right in zip(one.parameters(), other.parameters(), exact.parameters()):
            error, allowed = ((p.grad - right.grad).norm() for p in (ours, torchs))
            self.assertLess(error, 2 * allowed + 0.01 * right.grad.norm())

    def test_memory_comes_and_goes_with_the_work(self):
        layers = [layer for _ in range(16) for layer in (nn.Linear(1024, 1024), nn.GELU())]
        one = nn.Sequential(*layers)
        other = copy.deepcopy(one)
        x = torch.randn(2048, 1024)
        compiled = self.compiled(one)
        for _ in range(2):
            one.zero_grad(set_to_none=True)
            with torch.autocast("cuda", torch.bfloat16):
                loss = compiled(x).float().square().mean()
            torch.cuda.reset_peak_memory_stats()
            before = torch.cuda.memory_allocated()
            loss.backward()
            more = torch.cuda.max_memory_allocated() - before
        gradients = sum(p.grad.nbytes for p in one.parameters())
        self.assertLess(more, gradients / 2)  # values that were saved have gone meanwhile
        with torch.autocast("cuda", torch.bfloat16):
            loss = other(x).float().square().mean()
        loss.backward()
        self.assert_same([p.grad for p in one.parameters()], [p.grad for p in other.parameters()], 5e-2)

    def test_graphs_that_are_kept_run_again(self):
        one = nn.Sequential(*[layer for _ in range(4) for layer in (nn.Linear(1024, 1024), nn.Tanh())])
        result = self.compiled(one)(torch.randn(1024, 1024))
        gradients = []
        for _ in range(2):
            one.zero_grad(set_to_none=True)
            result.square().mean().backward(retain_graph=True)
            gradients.append([p.grad for p in one.parameters()])
        self.assert_same(gradients[1], gradients[0], 0)

    def test_running_statistics(self):
        net, x = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8)), torch.randn(2, 3, 6, 6)
        compiled = self.compiled(net)
        for _ in range(3):
            net.train()(torch.randn(4, 3, 6, 6) + 1)
            net.eval()
            with torch.no_grad():
                self.assert_same(compiled(x), net(x), 1e-2)

    def test_draws(self):
        compiled = self.compiled(lambda x: F.dropout(x * 1.0, 0.25) * 3)
        results = []
        for seed in (1, 1, 2):
            x = torch.ones(200, 300, requires_grad=True)
            torch.manual_seed(seed)
            y = compiled(x)
            y.sum().backward()
            self.assertTrue(torch.equal(y.detach(), x.grad))
            results.append(y.detach())
        self.assertTrue(torch.equal(results[0], results[1]))
        self.assertFalse(torch.equal(results[0], results[2]))
        self.assertLess(abs((results[0] != 0).float().mean().item() - 0.75), 0.01)


if __name__ == "__main__":
    unittest.main()
