"""The backend as programs use it: copies, processes, threads, mixed sizes; and forms of graphs that are seldom."""

import copy
import itertools
import os
import pickle
import shutil
import signal
import tempfile
import time
import unittest
import warnings

import torch
import torch._dynamo
from torch import nn
from with_torch import WithTorch

from sylvite import torch_backend
from sylvite.torch_statistics import write_counters


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
    def test_graphs_that_give_nothing_new(self):
        def function(x):
            torch.arange(x.shape[0]) * 2  # of no use
            return x.t(), x.shape[0]

        self.check(function, torch.randn(2, 3))

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

    def test_inputs_that_move_from_call_to_call(self):
        def f(x, state, cache):
            state.mul_(0.5).add_(x.sum(0))
            cache += x.t()
            return x @ state

        compiled = self.compiled(f)
        with torch.no_grad():
            for step in range(6):
                x = torch.randn(4, 3)
                if step % 3 == 1:  # at no multiple of 4
                    x = torch.frombuffer(bytearray(2) + bytearray(x.numpy().tobytes()), dtype=torch.float32, offset=2).view(4, 3)
                given = [x, torch.randn(3), torch.randn(3, 4)]
                beside = [given[0].clone(), *(each.clone() for each in given[1:])]
                self.assert_same(compiled(*given), f(*beside))
                self.assert_same(given, beside)

    def test_results_that_show_parts_of_one_value_share_memory(self):
        def f(x):
            y, z = x * 2, (x + 1).chunk(2, 1)
            return y, y[1:], y.t(), y.view(-1)[::2], *z, x.exp().t()[1:]

        def g(x):
            y = x * 2
            return y.t(), y[0], y.sum(1)[1:]

        for function, dynamic in itertools.product((f, g), (False, True)):
            torch._dynamo.reset()
            compiled = torch.compile(function, backend="sylvite", dynamic=dynamic, options={"fullgraph_strict": True})
            for rows in (4, 6):
                x = torch.randn(rows, 8)
                with torch.no_grad():
                    got, wanted = compiled(x), function(x)
                self.assert_same(got[:-1], wanted[:-1])
                got[0].zero_()
                wanted[0].zero_()
                self.assert_same(got[:-1], wanted[:-1])
                torch.testing.assert_close(got[-1], wanted[-1])

    def test_quick_views_show_the_same(self):
        whole = torch.randn(6, 8)[1:]
        for sizes, strides, offset in (((5, 4), (8, 2), 1), ((8, 5), (1, 8), 0), ((), (), 39), ((0, 3), (3, 1), 2), ((3, 4), (0, 1), 8)):
            made = [torch_backend.view_maker(kind)(whole, sizes, strides, offset) for kind in ("inference", "forward")]
            self.assert_same(made[0], made[1])
            self.assertEqual(made[0].data_ptr(), made[1].data_ptr())
            self.assertIs(made[1]._base, whole._base)  # what is saved for gradients shares its memory's count of writes

    def test_parts_of_inputs_are_views_of_them(self):
        """At sizes of a run: where one lies follows from a division."""
        def halves(x):
            first, second = x.chunk(2)
            return first, second, second.t(), x.unbind(1)[1][1:], x + 1

        compiled = torch.compile(halves, backend="sylvite", dynamic=True)
        with torch.no_grad():
            for rows in (4, 7):
                x = torch.randn(rows, 5)
                for got, expected in zip(compiled(x)[:4], halves(x)[:4]):
                    self.assertTrue(torch.equal(got, expected))
                    self.assertEqual((got.data_ptr(), got.stride()), (expected.data_ptr(), expected.stride()))

    def test_parts_of_what_was_written_or_computed(self):
        """AOTAutograd makes these results again of where they lie; at sizes of a run, by strides and offsets alone."""
        def written(x):
            x.add_(1)
            return x[x.shape[0] // 2 :], x.t()[2:]

        def computed(x):
            y = x * 2
            return y[:, x.shape[1] // 2 :], y

        def beside_a_part_of_torch(x):
            y = x * 2
            return y[:, x.shape[1] // 2 :], y, torch.linalg.svdvals(x)

        for function, trains in ((written, False), (computed, True), (beside_a_part_of_torch, True)):
            torch._dynamo.reset()
            compiled = torch.compile(function, backend="sylvite", dynamic=True)
            for rows in (4, 7):
                x = torch.randn(rows, 6)
                ours, theirs = (x.clone().requires_grad_(trains) for _ in range(2))
                with torch.set_grad_enabled(trains):
                    got, expected = compiled(ours), function(theirs)
                for one, other in zip(got, expected):
                    self.assert_same(one, other)
                    self.assertEqual(one.stride(), other.stride())
                if trains:
                    sum(one.square().sum() for one in got).backward()
                    sum(one.square().sum() for one in expected).backward()
                    self.assert_same(ours.grad, theirs.grad)

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


    def test_numbers_of_tensors_that_several_parts_read(self):
        def stepped(compiles: bool) -> list[torch.Tensor]:
            torch.manual_seed(0)
            parameters = [nn.Parameter(torch.randn(4, 5)), nn.Parameter(torch.randn(7))]
            optimizer = torch.optim.Adafactor(parameters)
            step = torch.compile(optimizer.step, backend="sylvite") if compiles else optimizer.step
            for _ in range(2):
                for parameter in parameters:
                    parameter.grad = torch.randn_like(parameter)
                step()
            return parameters

        with torch._dynamo.config.patch(capture_scalar_outputs=True), warnings.catch_warnings():
            warnings.filterwarnings("error", message="sylvite: torch runs a graph")
            torch.testing.assert_close(stepped(True), stepped(False))


class ComplexNumbers(WithTorch):
    def test_inside_of_a_graph_they_are_served(self):
        def filtered(x):
            spectrum = torch.fft.rfft2(x) * torch.polar(torch.ones(6, 4), torch.linspace(0, 1, 24).view(6, 4))
            return torch.fft.irfft2(spectrum.conj(), s=(6, 6)), spectrum.abs()

        self.check(filtered, torch.randn(2, 6, 6))

    def test_they_enter_and_leave(self):
        x = torch.randn(3, 4, dtype=torch.complex64)
        self.check(lambda x: (x * 2, x.abs().sum(1) + 1), x)
        self.check(lambda x: (torch.fft.fft(x) + 1, (x @ x.t()).relu()), torch.randn(4, 4))

    def test_a_part_of_torch_between_them(self):
        self.check(lambda x: torch.fft.ifft(torch.special.bessel_y0(torch.fft.fft(x).abs()) * torch.fft.fft(x)).real + 1,
                   torch.randn(3, 8), strict=False)  # fmt: skip


class Loops(WithTorch):
    def test_scans_have_gradients(self):
        from torch._higher_order_ops.scan import scan

        net = nn.Linear(4, 4)

        def function(x):
            return scan(lambda c, y: ((c * 0.9 + net(y)).tanh(), c * 1.0), x[:, 0] * 0, x, dim=1)[1]

        warnings.simplefilter("ignore")  # of torch's scan
        gradients = []
        for run in (function, self.compiled(function, strict=False)):
            x = torch.linspace(-1, 1, 40).reshape(2, 5, 4).requires_grad_()
            run(x).square().sum().backward()
            gradients.append(x.grad)
        self.assert_same(*gradients)


class Copies(WithTorch):
    """Of compiled modules."""

    def setUp(self):
        super().setUp()
        self.module = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2)).eval()
        self.x = torch.randn(3, 4)
        self.enterContext(torch.no_grad())

    def test_a_deep_copy_has_parameters_of_its_own(self):
        compiled = self.compiled(self.module)
        before = compiled(self.x)
        other = copy.deepcopy(compiled)
        for parameter in other.parameters():
            parameter.mul_(2)
        self.assert_same(other(self.x), copy.deepcopy(self.module).apply(self.double)(self.x))
        self.assert_same(compiled(self.x), before)

    @staticmethod
    def double(module):
        for parameter in module.parameters(recurse=False):
            parameter.mul_(2)

    def test_states_and_modules_go_through_pickles(self):
        self.module.compile(backend="sylvite")
        before = self.module(self.x)
        again = pickle.loads(pickle.dumps(self.module))
        self.assert_same(again(self.x), before)
        again.load_state_dict(self.module.apply(self.double).state_dict())
        self.assert_same(again(self.x), self.module(self.x))


class Processes(WithTorch):
    def test_a_fork_after_compiling_runs_on(self):
        compiled = self.compiled(lambda x: (x @ x.t()).relu() + 1)
        x = torch.randn(512, 512)
        with torch.no_grad():
            wanted = compiled(x)
            child = os.fork()
            if child == 0:  # where torch's own operations may hang
                try:
                    os._exit(0 if compiled(x).numpy().tobytes() == wanted.numpy().tobytes() else 1)
                finally:
                    os._exit(2)
            self.assertEqual(self.wait_for(child), 0)
            self.assert_same(compiled(x), wanted)

    def wait_for(self, child):
        """Its exit status; a child that hangs is killed."""
        for _ in range(600):
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                return os.waitstatus_to_exitcode(status)
            time.sleep(0.1)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        return "hangs"

    def test_workers_of_a_loader(self):
        compiled = self.compiled(lambda x: x * 2 + 1)
        loader = torch.utils.data.DataLoader(torch.arange(24.0).reshape(12, 2), batch_size=4, num_workers=2)
        with torch.no_grad():
            for batch in loader:
                self.assert_same(compiled(batch), batch * 2 + 1)


class Serving(WithTorch):
    def test_mixed_sizes_compile_nothing_after_each_was_met(self):
        embed, norm, head = nn.Embedding(50, 16), nn.LayerNorm(16), nn.Linear(16, 5)
        function = lambda ids: head(norm(embed(ids)).tanh().mean(1))  # noqa: E731
        empty = tempfile.mkdtemp()  # what compiles then counts as compiled
        self.addCleanup(shutil.rmtree, empty, ignore_errors=True)
        compiled = self.compiled(function, **{"compile.sizes_kept": 64, "cache.dir": empty})
        sizes = [(batch, length) for batch in (1, 2, 3, 5, 8) for length in (1, 4, 7, 16)]
        inputs = [torch.randint(0, 50, size) for size in sizes]
        with torch.no_grad(), torch_backend.listen() as graphs:
            wanted = [function(x) for x in inputs]
            for _ in range(2):
                for x in inputs:
                    compiled(x)
            told = len(graphs), self.compiled_kernels(graphs)
            self.assertGreater(told[1], 0)
            size = resident_pages()
            chosen = torch.randint(0, len(inputs), (10000,)).tolist()
            for call, i in enumerate(chosen):
                got = compiled(inputs[i])
                if call % 100 < 20:
                    self.assert_same(got, wanted[i])
            self.assertEqual((len(graphs), self.compiled_kernels(graphs)), told)
            self.assertLess(resident_pages() - size, 2000)

    def test_extents_of_buffers_are_no_open_sizes(self):
        class Typed(nn.Module):
            def __init__(self):
                super().__init__()
                self.words, self.kinds = nn.Embedding(50, 16), nn.Embedding(2, 16)
                self.places, self.norm = nn.Embedding(80, 16), nn.LayerNorm(16)
                self.register_buffer("place", torch.arange(64)[None], persistent=False)
                self.register_buffer("kind", torch.zeros(1, 64, dtype=torch.long), persistent=False)

            def forward(self, ids):
                place = self.place[:, : ids.shape[1]]
                kind = self.kind.gather(1, place).expand(ids.shape)
                return self.norm(self.words(ids) + self.kinds(kind) + self.places(place)).mean(1)

        model = Typed()
        torch._dynamo.reset()
        serve = lambda ids: model.eval()(ids)  # noqa: E731  # within it torch opens the extents of buffers
        compiled = torch.compile(serve, backend="sylvite", dynamic=True, options={"fullgraph_strict": True})

        def check(*sizes):
            for size in sizes:
                ids = torch.randint(0, 50, size)
                self.assert_same(compiled(ids), model(ids))

        with torch.no_grad(), torch_backend.listen() as graphs:
            check((2, 3), (3, 5), (2, 15), (15, 2), (2, 16), (16, 2), (16, 17), (20, 40))
            told = self.compiled_kernels(graphs)
            check((4, 7), (9, 11), (3, 21), (18, 30), (5, 60))
            self.assertEqual(self.compiled_kernels(graphs), told)
            model.kind, model.place = torch.ones(1, 80, dtype=torch.long), torch.arange(80)[None]
            check((4, 7), (9, 11), (5, 70), (6, 71), (7, 80))

    @staticmethod
    def compiled_kernels(graphs):
        return sum(program.report()["compiled"] for graph in graphs for program in graph.programs)


def resident_pages():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1])


class InPlace(WithTorch):
    """Inputs that a program writes; from its second call on its kernels do so where they may."""

    def check_calls(self, function, *inputs):
        torch._dynamo.reset()
        compiled = self.compiled(function)
        ours, theirs = ([x.clone() for x in inputs] for _ in range(2))
        with torch.no_grad():
            for _ in range(4):
                got, expected = compiled(*ours), function(*theirs)
                self.assert_same((*got, *ours), (*expected, *theirs))
                for result in got:  # it is the caller's own
                    result.zero_()

    def test_old_and_new_values(self):
        def momentum(place, speed, slope):
            speed.mul_(0.9).add_(slope)
            place.add_(speed, alpha=-0.1)
            return (place.sum(), speed * 2)

        def old_value(x, y, z):
            old = x.clone()
            x.add_(y)
            return old, z * x

        def new_value(x, y, z):
            new = x * 2 + y
            x.copy_(new)
            return new, x.sum() + z

        def turned(x, y, z):
            x.copy_(x.t() + y)
            z.copy_(x)
            return (y + 1,)

        for function in (momentum, old_value, new_value, turned):
            for size in (64, 13):
                self.check_calls(function, *torch.randn(3, size, size).unbind(0))
                self.check_calls(function, *(each.clone() for each in torch.randn(3, size, size).unbind(0)))

    def test_gradients_are_of_old_values(self):
        rows = torch.tensor([2, 0, 1, 2])

        def chosen(x, state):
            found = state[rows]
            state.mul_(0.9)
            return (x - found).square()

        def scaled(x, state):
            y = x * state.detach().clone()[rows]
            state.copy_(y.detach()[:3])
            return y.exp() * state[0]

        for function in (chosen, scaled):
            torch._dynamo.reset()
            compiled = self.compiled(function)
            x, state = torch.randn(4, 5), torch.randn(3, 5)
            ours, theirs = ((x.clone().requires_grad_(), state.clone()) for _ in range(2))
            for _ in range(3):
                compiled(*ours).sum().backward()
                function(*theirs).sum().backward()
                self.assert_same((ours[0].grad, ours[1]), (theirs[0].grad, theirs[1]))


class RunningStatistics(WithTorch):
    """Torch's own norms write them in training, and do not count that as a write."""

    def check_evaluations(self, net, train):
        compiled = self.compiled(net)
        for _ in range(4):
            net.train()
            train()
            net.eval()
            for mode in (torch.no_grad, torch.inference_mode):
                with mode():
                    x = torch.randn(2, 3, 6, 6)
                    self.assert_same(compiled(x), net(x))

    def test_training_by_torch(self):
        norms = {"counted": nn.BatchNorm2d(8), "of all batches": nn.BatchNorm2d(8, momentum=None), "of images": nn.InstanceNorm2d(8, track_running_stats=True)}
        for name, norm in norms.items():
            with self.subTest(name):
                net = nn.Sequential(nn.Conv2d(3, 8, 3), norm, nn.ReLU(), nn.Conv2d(8, 4, 1))
                self.check_evaluations(net, lambda net=net: net(torch.randn(4, 3, 6, 6) * 3 + 1))

    def test_writes_that_are_not_counted(self):
        net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8))
        self.check_evaluations(net, lambda: net[1].running_mean.data.add_(1))

    def test_what_counts_batches(self):
        norm, other = nn.BatchNorm1d(3), torch.zeros(3)
        found = write_counters([norm.running_mean, other, norm.running_var])
        self.assertIs(found[0], norm.num_batches_tracked)
        self.assertIsNone(found[1])
        self.assertIs(found[2], norm.num_batches_tracked)


class ParametersWrittenBesides(WithTorch):
    """By what torch does not count: `.data`, memory that NumPy shares."""

    def check_writes(self, *writes):
        net = nn.Sequential(nn.Linear(40, 24), nn.LayerNorm(24), nn.Linear(24, 5))
        net[2].weight.data = torch.randn(24, 5).t()  # its rows do not follow each other
        x = torch.randn(3, 40)
        for number, write in enumerate(writes):
            with self.subTest(number), torch.no_grad():
                torch._dynamo.reset()
                compiled = self.compiled(net)
                for _ in range(4):
                    self.assert_same(compiled(x), net(x))
                    write(net)

    def test_averages_and_steps(self):
        ahead = nn.Sequential(nn.Linear(40, 24), nn.LayerNorm(24), nn.Linear(24, 5))

        def average(net):
            for old, new in zip(net.parameters(), ahead.parameters()):
                old.data.mul_(0.5).add_(new.data, alpha=0.5)

        self.check_writes(average, lambda net: net[0].weight.data.add_(1), lambda net: net[1].bias.data.add_(1), lambda net: net[2].weight.data.mul_(-1))

    def test_shared_memory(self):
        def halve(net):
            net[0].weight.detach().numpy()[:] *= 0.5

        self.check_writes(halve)


class Releases(unittest.TestCase):
    def test_others_than_tested_are_told_of(self):
        torch_backend.warn_of_untested.cache_clear()
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            for version in ("2.11.0", "2.15.1+cu132", "2.9.1", "2.9.1", "2.16.0a0"):
                torch_backend.warn_of_untested(version)
        self.assertEqual([str(each.message).split()[-1] for each in told], ["2.9.1", "2.16.0a0"])
        torch_backend.warn_of_untested.cache_clear()


if __name__ == "__main__":
    unittest.main()
