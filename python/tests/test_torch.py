"""The backend of torch.compile, beside eager."""

import gc
import math
import tempfile
import time
import unittest
import warnings
import weakref

import torch
import torch._dynamo
import torch.utils.checkpoint
from threads import in_threads
from torch import nn
from with_torch import TensorForms, WithTorch

import sylvite
from sylvite import torch_backend

F = nn.functional


class FirstAnswers(WithTorch):
    """With first_answer="fast" torch runs graphs until they are compiled."""

    def until_compiled(self, graphs, call):
        end = time.monotonic() + 120
        while not all(program.report()["kernels"] for graph in graphs for program in graph.programs):
            call()
            self.assertLess(time.monotonic(), end)
            time.sleep(0.01)

    def test_inference(self):
        with tempfile.TemporaryDirectory() as cache, torch_backend.listen() as graphs, torch.no_grad():
            model = nn.Sequential(nn.Linear(8, 31), nn.ReLU(), nn.Linear(31, 3)).eval()
            compiled = self.compiled(model, **{"first_answer": "fast", "cache.dir": cache})
            x = torch.randn(4, 8)
            wanted = model(x)
            self.assert_same(compiled(x), wanted)
            self.assertEqual(graphs[0].programs[0].report()["kernels"], 0)
            self.until_compiled(graphs, lambda: self.assert_same(compiled(x), wanted))
            self.assertGreater(graphs[0].programs[0].report()["compiled"], 0)
            self.assert_same(compiled(x), wanted)
            model[0].bias.fill_(1)  # what was taken in is read anew
            self.assert_same(compiled(x), model(x))

    def test_training_with_draws(self):
        with tempfile.TemporaryDirectory() as cache, torch_backend.listen() as graphs:
            model = nn.Sequential(nn.Linear(8, 29), nn.Dropout(0.5), nn.Linear(29, 3))
            compiled = self.compiled(model, **{"first_answer": "fast", "cache.dir": cache})
            x = torch.randn(4, 8)

            def step():
                torch.manual_seed(1)
                model.zero_grad()
                compiled(x).square().sum().backward()
                return [parameter.grad.clone() for parameter in model.parameters()]

            first = step()
            self.until_compiled(graphs, step)
            self.assertEqual(len(graphs), 2)
            self.assert_same(step(), first)

    def test_models_that_are_dropped_stop_compiling(self):
        with tempfile.TemporaryDirectory() as cache, torch.no_grad():
            for width in range(30, 34):
                torch._dynamo.reset()
                model = nn.Linear(8, width)
                self.compiled(model, **{"first_answer": "fast", "cache.dir": cache})(torch.randn(2, 8))


class Inference(TensorForms, WithTorch):
    def test_backend_is_found_by_name(self):
        self.assertIn("sylvite", torch._dynamo.list_backends())

    def test_layers(self):
        model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)).eval()
        graphs = self.check(model, torch.randn(3, 8))
        self.assertEqual([(len(g.programs), g.torch_parts) for g in graphs], [(1, 0)])

    def test_several_results_and_none(self):
        self.check(lambda x: (x + 1, None, x * 2, 3), torch.randn(2, 3))

    def test_strides_of_values_are_read(self):
        x = torch.randn(2, 8, 4, 4).to(memory_format=torch.channels_last)
        self.check(lambda x: F.adaptive_avg_pool2d(x * 2, 1).flatten(1) + 1, x)
        self.check(lambda x: (x.transpose(2, 3) * 2).as_strided((2, 4), (64, 3), 5) + 1, x)

    def test_views_of_inputs_share_memory(self):
        x = torch.randn(4, 6)
        compiled = self.compiled(lambda x: (x.t(), x[1:], x + 1))
        with torch.no_grad():
            transposed, rows, _ = compiled(x)
        self.assertEqual(transposed.data_ptr(), x.data_ptr())
        self.assertEqual(rows.storage_offset(), 6)
        rows.zero_()
        self.assertTrue((x[1:] == 0).all())

    def test_a_result_never_shares_memory_with_an_input(self):
        x = torch.randn(4)
        compiled = self.compiled(lambda x: (x + 0, x * 1))
        with torch.no_grad():
            first, second = compiled(x)
        first.zero_()
        self.assertFalse((x == 0).any())
        self.assertFalse((second == 0).any())

    def test_sizes(self):
        function = lambda x: (x @ x.transpose(0, 1) + x.shape[0], x.shape[0] * 2)  # noqa: E731
        compiled = self.compiled(function)
        with torch.no_grad(), torch_backend.listen() as graphs:
            for rows in (3, 5, 7, 5, 9):
                x = torch.randn(rows, 4)
                self.assert_same(compiled(x), function(x))
        self.assertEqual(len(graphs), 2)  # one for 3, one for all others

    def test_results_die_and_memory_returns(self):
        compiled = self.compiled(lambda x: x * 2)
        x = torch.randn(1000)
        with torch.no_grad():
            addresses = {compiled(x).data_ptr() for _ in range(50)}
        self.assertLessEqual(len(addresses), 3)
        seen = weakref.ref(x)
        del x
        gc.collect()
        self.assertIsNone(seen())

    def test_threads(self):
        model = nn.Linear(16, 16)
        compiled = self.compiled(model)
        x = torch.randn(4, 16)
        wrong = []
        with torch.no_grad():
            compiled(x)

        def work(number):
            given = torch.full((4, 16), float(number))
            with torch.no_grad():
                wanted = model(given)
                for _ in range(100):
                    if not torch.allclose(compiled(given), wanted, atol=1e-5):
                        wrong.append(number)

        in_threads(work)
        self.assertEqual(wrong, [])


class Parameters(WithTorch):
    def test_writes_to_parameters_are_seen(self):
        model = nn.Linear(4, 4)
        compiled = self.compiled(model)
        x = torch.randn(2, 4)
        with torch.no_grad():
            for step in range(6):
                self.assert_same(compiled(x), model(x))
                if step % 2:
                    model.weight.add_(1)
                else:
                    model.weight.data = torch.randn(4, 4)

    def test_kernels_serve_many_sizes(self):
        model = nn.Sequential(nn.Linear(6, 20), nn.GELU(), nn.LayerNorm(20), nn.Linear(20, 3))
        with tempfile.TemporaryDirectory() as cache, torch_backend.listen() as graphs:
            compiled = torch.compile(model, backend="sylvite", dynamic=True, options={"cache.dir": cache})
            counts = []
            for rows in (17, 40, 23):
                x = torch.randn(rows, 6)
                model.zero_grad()
                compiled(x).square().sum().backward()
                found = [parameter.grad.clone() for parameter in model.parameters()]
                model.zero_grad()
                model(x).square().sum().backward()
                self.assert_same(found, [parameter.grad for parameter in model.parameters()])
                counts.append([program.report()["compiled"] for graph in graphs for program in graph.programs])
            self.assertEqual(counts, [counts[0]] * 3)

    def test_writes_are_seen_at_every_size(self):
        model = nn.Linear(64, 64)
        compiled = self.compiled(model)
        with torch.no_grad():
            for step in range(4):
                for rows in (3, 5, 7):
                    x = torch.randn(rows, 64)
                    self.assert_same(compiled(x), model(x))
                model.weight.mul_(-2)

    def test_without_freezing(self):
        model = nn.Linear(4, 4)
        graphs = self.check(model, torch.randn(2, 4), freeze=False)
        self.assertNotIn("parameter", graphs[0].texts[0])

    def test_constants_of_the_graph(self):
        table = torch.tensor([1.0, 2.0, 3.0])
        self.check(lambda x: x + torch.tensor([1.0, 2.0, 3.0]) + table, torch.randn(3))


class Mutation(WithTorch):
    def test_an_input_is_written(self):
        def function(x, y):
            x.add_(y)
            return x * 2

        x, y = torch.randn(2, 3), torch.randn(2, 3)
        compiled = self.compiled(function)
        one, other = x.clone(), x.clone()
        with torch.no_grad():
            self.assert_same(compiled(one, y), function(other, y))
        self.assert_same(one, other)

    def test_a_strided_input_is_written(self):
        def function(x):
            x.mul_(2)

        one, other = torch.randn(4, 4), None
        other = one.clone()
        with torch.no_grad():
            self.compiled(function)(one.t()[::2])
            function(other.t()[::2])
        self.assert_same(one, other)

    def test_batch_norm_in_training(self):
        one, other = nn.BatchNorm1d(3).train(), nn.BatchNorm1d(3).train()
        compiled = self.compiled(one, strict=False)
        for _ in range(3):
            x = torch.randn(5, 3)
            with torch.no_grad():
                self.assert_same(compiled(x), other(x))
        self.assert_same(one.running_mean, other.running_mean)
        self.assertEqual(one.num_batches_tracked, other.num_batches_tracked)


class Attention(WithTorch):
    def test_it_stays_one_operation(self):
        q, k, v = torch.randn(1, 2, 8, 16), torch.randn(1, 2, 8, 16), torch.randn(1, 2, 8, 16)
        for function in (lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True).contiguous(),
                         lambda q, k, v: F.scaled_dot_product_attention(q, k, v, scale=0.5).transpose(1, 2).reshape(1, 8, 32)):
            torch._dynamo.reset()
            graphs = self.check(function, q, k, v, strict=False)
            named = "".join(graphs[0].texts) + str(graphs[0].refused)
            self.assertIn("sylvite.attention", named)

    def test_it_stays_one_operation_in_modules_of_torch(self):
        attention = nn.MultiheadAttention(32, 4, batch_first=True).eval()
        graphs = self.check(lambda x: attention(x, x, x, need_weights=False)[0], torch.randn(2, 8, 32))
        self.assertIn("sylvite.attention", graphs[0].texts[0])

    def test_encoder_layers_of_torch(self):
        for norm_first in (True, False):
            for activation in ("relu", "gelu"):
                torch._dynamo.reset()
                layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, norm_first=norm_first, activation=activation).eval()
                for parameter in layer.parameters():
                    nn.init.normal_(parameter, std=0.2)
                graphs = self.check(layer, torch.randn(2, 10, 32), tolerance=1e-3)
                self.assertIn("sylvite.attention", graphs[0].texts[0])


class Fallback(WithTorch):
    @staticmethod
    def function(x):
        y = x * 2 + 1
        return torch.special.bessel_y0(y) @ y, y

    def test_what_sylvite_lacks_is_run_by_torch(self):
        x = torch.eye(4) + torch.rand(4, 4) / 10
        graphs = self.check(self.function, x, strict=False, tolerance=1e-3)
        self.assertEqual(len(graphs[0].programs), 2)
        self.assertEqual(graphs[0].torch_parts, 1)
        self.assertIn("bessel_y0", graphs[0].refused[0][1])

    def test_strict_is_an_error_that_names_it(self):
        with self.assertRaisesRegex(Exception, "bessel_y0.*fullgraph_strict"), torch.no_grad():
            self.compiled(self.function)(torch.eye(4))

    def test_types_that_sylvite_lacks(self):
        self.check(lambda x: torch.linalg.inv(x * 2) + 1, torch.eye(3), strict=False)  # with an effect
        self.check(lambda x: torch.view_as_real(torch.view_as_complex(x * 2) * 1j) + 1, torch.randn(3, 2), strict=False)

    def test_views_and_writes_with_parts(self):
        def function(x):
            x.add_(1)
            return torch.linalg.inv(x), x.t(), x.shape[0]

        one = torch.eye(3)
        other = one.clone()
        compiled = self.compiled(function, strict=False)
        with torch.no_grad():
            got, wanted = compiled(one + 0), function(other + 0)
        self.assert_same(got, wanted)

    def test_sizes_with_parts(self):
        function = lambda x: (torch.linalg.inv(x + x.shape[0]) * 2).reshape(-1) + x.shape[0]  # noqa: E731
        compiled = self.compiled(function, strict=False)
        with torch.no_grad():
            for n in (2, 3, 4):
                x = torch.eye(n) * n
                self.assert_same(compiled(x), function(x))

    def test_a_failure_of_ours_is_one_warning(self):
        whole = torch_backend._whole
        torch_backend._whole = None
        self.addCleanup(setattr, torch_backend, "_whole", whole)
        warnings.simplefilter("always")
        with self.assertWarnsRegex(UserWarning, "torch runs a graph"), torch.no_grad():
            x = torch.ones(3)
            self.assert_same(self.compiled(lambda x: x + 1, strict=False)(x), x + 1)


class Training(WithTorch):
    def test_gradients(self):
        torch.manual_seed(0)
        one = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 1))
        other = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 1))
        other.load_state_dict(one.state_dict())
        compiled = self.compiled(one, strict=False)
        optimizers = [torch.optim.SGD(m.parameters(), 0.1) for m in (one, other)]
        for _ in range(3):
            x = torch.randn(4, 8)
            for model, optimizer in zip((compiled, other), optimizers):
                optimizer.zero_grad()
                model(x).square().mean().backward()
                optimizer.step()
        for ours, torchs in zip(one.parameters(), other.parameters()):
            torch.testing.assert_close(ours, torchs, rtol=1e-4, atol=1e-5)

    def check_gradients(self, model, x, tolerance=1e-4):
        """Of a module by its parameters and by x, beside eager; no part is left to torch."""
        compiled = self.compiled(model)

        def gradients(function):
            model.zero_grad()
            given = x.clone().requires_grad_()
            result = function(given).float()
            (result * torch.linspace(-1, 2, result.numel()).sin().reshape(result.shape)).sum().backward()
            return [given.grad, *(p.grad.clone() for p in model.parameters())]

        wanted = gradients(model)
        for _ in range(2):
            for ours, torchs in zip(gradients(compiled), wanted):
                torch.testing.assert_close(ours, torchs, rtol=tolerance, atol=tolerance * torchs.abs().max().item())

    def test_convolutions_have_gradients(self):
        for model, channels in (
                (nn.Conv2d(3, 20, 7, 2, 3), 3), (nn.Conv2d(32, 48, 3, 2, 1, bias=False), 32), (nn.Conv2d(32, 32, 1, 2), 32),
                (nn.Conv2d(20, 24, 3, dilation=2), 20), (nn.Conv2d(24, 24, 3, 2, 1, groups=24), 24), (nn.Conv2d(32, 64, 3, 1, 1, groups=2), 32),
                (nn.ConvTranspose2d(16, 8, 2, 2), 16), (nn.ConvTranspose2d(16, 8, 3, 2, 1, 1, groups=4), 16)):  # fmt: skip
            with self.subTest(model=str(model)):
                self.check_gradients(model, torch.randn(2, channels, 11, 13))

    def test_a_block_has_gradients(self):
        block = nn.Sequential(nn.Conv2d(3, 32, 3, 2, 1, bias=False), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(3, 2, 1), nn.Conv2d(32, 32, 3, 1, 1), nn.SiLU())
        self.check_gradients(block, torch.randn(4, 3, 22, 18))

    def test_weight_normalisation_has_gradients(self):
        self.check_gradients(nn.utils.parametrizations.weight_norm(nn.Linear(6, 4)), torch.randn(5, 6))

    def test_gradients_of_strided_memory(self):
        class Strided(nn.Module):
            def forward(self, x):
                return (x * 2).as_strided((2, 3), (4, 1), 1)

        self.check_gradients(Strided(), torch.randn(3, 4))

    def test_autocast(self):
        model = nn.Sequential(nn.Conv2d(4, 32, 3, 1, 1, bias=False), nn.BatchNorm2d(32), nn.ReLU(), nn.Flatten(), nn.Linear(32 * 36, 16), nn.LayerNorm(16))
        original = model.forward

        def forward(x):
            with torch.autocast("cpu", torch.bfloat16):
                return original(x)

        model.forward = forward
        self.check_gradients(model, torch.randn(3, 4, 6, 6), tolerance=3e-2)

    def test_gradients_of_parts_become_one_value(self):
        def function(x, w):
            parts = (x @ w).view(5, 3, 4)
            return sum((i + 1) * parts[:, i].sin() for i in range(3))

        x, w = torch.randn(5, 6), torch.randn(6, 12, requires_grad=True)
        with torch_backend.listen() as graphs:
            self.compiled(function)(x, w).square().sum().backward()
        found, w.grad = w.grad, None
        function(x, w).square().sum().backward()
        self.assert_same(found, w.grad)
        self.assertEqual(graphs[-1].texts[0].count("= aten.select_backward"), 3)

    def test_a_normalised_batch_is_not_saved(self):
        model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.SiLU(inplace=True), nn.Conv2d(8, 4, 3))
        x = torch.randn(2, 3, 9, 9)
        with torch_backend.listen() as graphs:
            self.compiled(model)(x).square().sum().backward()
        signature = graphs[-1].texts[0].splitlines()[0]
        self.assertEqual(signature.count("f32[2,8,7,7]"), 2)  # before the norm, and behind the activation

    def test_groups_of_channels_have_gradients(self):
        for model in (nn.Sequential(nn.Conv2d(3, 8, 3), nn.GroupNorm(4, 8), nn.SiLU(), nn.Conv2d(8, 4, 3)),
                      nn.GroupNorm(1, 3, affine=False), nn.Sequential(nn.Flatten(2), nn.GroupNorm(3, 3)),
                      nn.Sequential(nn.Flatten(), nn.Linear(216, 8), nn.GroupNorm(2, 8))):  # fmt: skip
            with self.subTest(model=str(model)):
                self.check_gradients(model, torch.randn(2, 3, 9, 8))
        x = torch.randn(0, 4, 5, requires_grad=True)
        with torch_backend.listen() as graphs:
            self.compiled(nn.GroupNorm(2, 4))(x).sum().backward()
        self.assertEqual((len(graphs), x.grad.shape), (2, x.shape))

    def test_normalised_groups_are_not_saved(self):
        model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.GroupNorm(4, 8), nn.SiLU(), nn.Conv2d(8, 4, 3))
        with torch_backend.listen() as graphs:
            self.compiled(model)(torch.randn(2, 3, 9, 9)).square().sum().backward()
        signature = graphs[-1].texts[0].splitlines()[0]
        self.assertEqual(signature.count("f32[2,8,7,7]"), 2)  # before the norm, and behind the activation

    def test_losses_of_classes_have_gradients(self):
        for options in ({}, {"reduction": "sum"}, {"reduction": "none"}, {"ignore_index": 2}, {"label_smoothing": 0.1},
                        {"weight": torch.rand(7)}):  # fmt: skip
            for shape in ((5,), (3, 2, 4)):
                torch._dynamo.reset()
                with self.subTest(options=str(options), shape=shape):
                    class Loss(nn.Module):
                        def forward(self, x, shape=shape, options=options):
                            target = torch.arange(math.prod(shape)).reshape(shape) % 7
                            return nn.functional.cross_entropy(x, target, **options)

                    self.check_gradients(Loss(), torch.randn(shape[0], 7, *shape[1:]))

    def test_results_that_gradients_read_are_made_again(self):
        model = nn.Sequential(nn.Linear(8, 12), nn.Tanh(), nn.Linear(12, 4))
        with torch_backend.listen() as graphs:
            self.compiled(lambda x: model[2](model[1](model[0](x) * 0.5) + 1))(torch.randn(5, 8)).sum().backward()
        signature = graphs[-1].texts[0].splitlines()[0]
        self.assertEqual(signature.count("f32[5,12]"), 2)  # before the work, and behind it for the other product

    def test_what_views_show_is_saved_once(self):
        model = nn.Linear(8, 12)

        def function(x):
            first, second, third = model(x).chunk(3, -1)
            return first @ second.mT @ third

        with torch_backend.listen() as graphs:
            self.compiled(function)(torch.randn(5, 8)).sum().backward()
        signature = graphs[-1].texts[0].splitlines()[0]
        self.assertIn("f32[5,12]", signature)
        self.assertEqual(signature.count("f32[5,4]"), 1)  # the gradient

    def test_layers_with_the_batch_first_turn_no_rows(self):
        x, mask = torch.randn(3, 7, 32), torch.ones(7, 7, dtype=torch.bool).triu(1)
        padding = torch.arange(7)[None] > torch.tensor([[6], [4], [3]])
        for masks in ({}, {"src_mask": mask}, {"src_key_padding_mask": padding}, {"src_mask": mask, "src_key_padding_mask": padding},
                      {"src_mask": mask, "is_causal": True}):  # fmt: skip
            torch._dynamo.reset()
            layer = nn.TransformerEncoderLayer(32, 4, 64, 0.0, batch_first=True, norm_first=True)
            with torch_backend.listen() as graphs:
                self.compiled(layer, strict=False)(x, **masks).square().sum().backward()
            found = [p.grad for p in layer.parameters()]
            layer.zero_grad()
            layer(x, **masks).square().sum().backward()
            self.assert_same(found, [p.grad for p in layer.parameters()], tolerance=1e-3)
            for graph in graphs:
                self.assertNotIn("[7,12,8]", graph.texts[0])

    def test_attention_has_gradients(self):
        q = torch.randn(1, 2, 8, 16, requires_grad=True)
        function = lambda q: F.scaled_dot_product_attention(q, q, q, is_causal=True).sum()  # noqa: E731
        function(q).backward()
        wanted, q.grad = q.grad, None
        self.compiled(function, strict=False)(q).backward()
        torch.testing.assert_close(q.grad, wanted, rtol=1e-4, atol=1e-5)


class Explain(WithTorch):
    def test_parts_and_reasons(self):
        with torch.no_grad():
            text = sylvite.explain(Fallback.function, torch.eye(4))
        self.assertIn("1 graphs, 0 breaks", text)
        self.assertIn("bessel_y0", text)
        self.assertIn("kernels", text)

    def test_a_mode_beside_options(self):
        with torch.no_grad():
            text = sylvite.explain(lambda x: x + 1, torch.eye(4), mode="reduce-overhead", options={"compile.threads": 1}, details=True)
        self.assertIn("1 kernels", text)
        self.assertIn("== kernels ==", text)

    def test_frozen_parameters_are_weights(self):
        with torch.no_grad():
            text = sylvite.explain(nn.Linear(64, 64), torch.randn(8, 64), details=True)
        self.assertNotIn("weights 0 B", text)


if __name__ == "__main__":
    unittest.main()
