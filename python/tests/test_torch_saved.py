"""Graphs that AOTAutograd keeps on disk, met again by a second process."""

import os
import pathlib
import pickle
import subprocess
import sys
import tempfile
import unittest

import torch
from torch import nn
from with_torch import WithTorch

from sylvite import torch_backend, torch_saved

F = nn.functional

#: What a process does: results and gradients to a file, and how often torch's cache had the graph.
PROGRAM = """
import pickle, sys
import torch
from torch import nn
from torch._dynamo.utils import counters
from sylvite import torch_backend

torch.manual_seed(0)
torch._dynamo.config.allow_rnn = True
backend = torch_backend.graph_compiler
compiled = []
torch_backend.graph_compiler = lambda *args: (lambda run: lambda *given: compiled.append(args[1]) or run(*given))(backend(*args))


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(20, 16)
        self.layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
        self.norm = nn.BatchNorm1d(16)
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

    def forward(self, x):
        self.calls += 1
        return self.norm(self.layer(self.words(x)).transpose(1, 2)) * torch.tensor([0.5, 2.0])[x[:, :1, None] % 2]


model, x = Tagger(), torch.randint(0, 20, (3, 5))
fast = torch.compile(model, backend="sylvite", dynamic=False)
found = []
with torch_backend.listen() as heard:
    for _ in range(2):
        y = fast(x)
        y.square().sum().backward()
    found += [y.detach(), *(p.grad for p in model.parameters()), model.calls, model.norm.running_var]
    model.eval()
    with torch.no_grad():
        found.append(fast(x))
        turned = torch.compile(lambda x: torch.fft.fft(x) * 1j, backend="sylvite")
        found.append(torch.view_as_real(turned(torch.arange(6.0))))
        drawn = torch.compile(lambda x: torch.rand_like(x) + x, backend="sylvite", dynamic=True)
        torch.manual_seed(1)
        found += [drawn(torch.zeros(3, 4)), drawn(torch.zeros(2, 7))]
        placed = torch.compile(lambda x, place: x[place] * 2, backend="sylvite")
        found.append(placed(torch.arange(6.0), torch.tensor(2)))
try:
    with torch.no_grad():
        fast(x + 20)
    raise SystemExit("an index out of range is no error")
except IndexError:
    pass
with open(sys.argv[1], "wb") as file:
    told = {"heard": len(heard), "compiled": compiled, "hits": counters["aot_autograd"]["autograd_cache_hit"],
            "generators": "torch._inductor.codegen.mps" in sys.modules}
    pickle.dump((found, told), file)
"""


@unittest.skipUnless(torch_saved.IS_THERE, "this torch has no such cache")
class Saved(WithTorch):
    def run_twice(self, mode=0o755, **changes):
        """The program in two processes, with one folder for torch's caches, of that mode then; the second with these variables."""
        with tempfile.TemporaryDirectory() as folder:
            results = []
            for more in ({}, changes):
                file = pathlib.Path(folder, "results")
                environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": folder + "/caches", **more}
                done = subprocess.run([sys.executable, "-c", PROGRAM, str(file)], env=environment, capture_output=True, text=True)
                self.assertEqual(done.returncode, 0, done.stderr)
                results.append(pickle.loads(file.read_bytes()))
                os.chmod(folder + "/caches", mode)
        return results

    def test_a_second_process_compiles_no_graph(self):
        (wanted, first), (found, second) = self.run_twice()
        self.assert_same(found, wanted, 1e-6)
        self.assertEqual(first["hits"], 0)
        self.assertEqual(sorted(set(first["compiled"])), ["backward", "forward", "inference"])
        self.assertEqual(second["compiled"], [])
        self.assertEqual(second["heard"], first["heard"])
        self.assertFalse(second["generators"], "Inductor's generators of code were imported for a key")

    def test_without_the_cache(self):
        (wanted, first), (found, second) = self.run_twice(TORCHINDUCTOR_AUTOGRAD_CACHE="0")
        self.assert_same(found, wanted, 1e-6)
        self.assertEqual(second["compiled"], first["compiled"])

    def test_what_others_may_have_written(self):
        (wanted, first), (found, second) = self.run_twice(mode=0o777)
        self.assert_same(found, wanted, 1e-6)
        self.assertEqual(second["compiled"], first["compiled"])

    def test_what_is_more_than_a_program_is_not_kept(self):
        x = torch.randn(4, 4)
        for _ in range(2):
            torch._dynamo.reset()
            graphs = self.check(lambda x: torch.linalg.eigvalsh(x @ x.T) + 1, x, strict=False)
            self.assertEqual([graph.torch_parts for graph in graphs], [1])

    def test_settings_have_graphs_of_their_own(self):
        model, x = nn.Linear(4, 4), torch.randn(2, 4)
        for freeze in (True, False, True):
            torch._dynamo.reset()
            with torch.no_grad(), torch_backend.listen() as graphs:
                self.assert_same(self.compiled(model, freeze=freeze)(x), model(x))
            self.assertEqual("parameter" in graphs[0].texts[0], freeze)

    def test_source(self):
        """What torch runs where the program of a kept graph cannot."""
        made = []
        keep = torch_backend.keep
        self.addCleanup(setattr, torch_backend, "keep", keep)
        torch_backend.keep = lambda run, recipe: made.append(recipe) or keep(run, recipe)

        def function(x):
            y = x @ torch.tensor([[1.0, 2.0], [3.0, 4.0]])
            return y.sin(), F.softmax(y, -1)[:, 0], x.shape[0] + y.amax()

        x = torch.randn(3, 2)
        with torch.no_grad():
            wanted = function(x)
            torch.compile(function, backend="sylvite", dynamic=True)(torch.randn(5, 2))
        recipe, = made
        again = pickle.loads(recipe.packed())
        given = {"s": 3}
        values = [given["s"] if kind == "size" else x for kind, _ in again.text.inputs]
        self.assert_same(list(again.source(values)), list(wanted))
        self.assertEqual(values, [])


if __name__ == "__main__":
    unittest.main()
