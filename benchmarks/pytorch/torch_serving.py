#!/usr/bin/env python3
"""Serves models with a new batch and length at each call: what is compiled after the warm-up, are answers right, does memory grow?

usage: torch_serving.py [--only qwen3,images] [--calls 10000] [--warm-up 300] [--batches 17] [--lengths 70] [--backend sylvite] [--beside 0] [--check 20] [--watch 0]

Batches and lengths are drawn from 1 to the numbers given, the height and the width of images from --heights; the warm-up draws,
and adds the ends of both ranges and of classes of sizes. A line for each model: captured graphs and compiled kernels (files that
the backend wrote to its cache) of the warm-up and after it, megabytes of the process at both ends, microseconds of processor time
of a call, the share of calls that built a program and of the time that went there, answers compared with eager's. With --beside,
so many further calls at other sizes, by turns by Inductor and by this backend. Fails where something is compiled after the
warm-up, or wrong. Needs torch, transformers and the package sylvite.
"""

import argparse
import contextlib
import ctypes
import gc
import os
import pathlib
import random
import sys
import tempfile
import time

import torch
from torch import nn

SMALL = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128, "vocab_size": 100}

#: Sizes at which classes that share kernels begin and end.
ENDS = (1, 2, 15, 16)


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(100, 64)
        self.layer = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True)
        self.head = nn.Linear(64, 100)

    def forward(self, ids):
        x = self.layer(self.words(ids))
        return self.head(x[:, -1]).log_softmax(-1), x.mean(1)


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(100, 32)
        self.near = nn.Conv1d(32, 64, 3, padding=1)
        self.norm = nn.BatchNorm1d(64)
        self.head = nn.Linear(64, 9)

    def forward(self, ids):
        x = self.norm(self.near(self.words(ids).transpose(1, 2))).relu()
        return self.head(x.transpose(1, 2)).softmax(-1), x.amax(2)


class Images(nn.Module):
    """Residual blocks, a pool between them, and classes of the whole image."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 16, 3, stride=2, padding=1), nn.BatchNorm2d(16), nn.ReLU())
        self.first, self.second = self.block(16, 16), self.block(16, 32)
        self.widen, self.head = nn.Conv2d(16, 32, 1), nn.Linear(32, 10)

    @staticmethod
    def block(channels, more):
        return nn.Sequential(nn.Conv2d(channels, more, 3, padding=1), nn.BatchNorm2d(more), nn.ReLU(),
                             nn.Conv2d(more, more, 3, padding=1), nn.BatchNorm2d(more))

    def forward(self, images):
        x = self.stem(images)
        x = nn.functional.max_pool2d((x + self.first(x)).relu(), 3, stride=2, padding=1)
        x = (self.widen(x) + self.second(x)).relu()
        return self.head(x.mean((2, 3))).softmax(-1)


def of_transformers(model, config, **further):
    def make():
        import transformers

        module = getattr(transformers, model)(getattr(transformers, config)(**SMALL, **further))
        return lambda ids: module.eval()(input_ids=ids, **({"use_cache": False} if "CausalLM" in model else {}))[0]

    return make


MODELS = {
    "encoder": lambda: Encoder().eval(),
    "tagger": lambda: Tagger().eval(),
    "images": lambda: Images().eval(),
    "qwen3": of_transformers("Qwen3ForCausalLM", "Qwen3Config", num_key_value_heads=2, head_dim=16),
    "llama": of_transformers("LlamaForCausalLM", "LlamaConfig", num_key_value_heads=2),
    "gpt-neox": of_transformers("GPTNeoXForCausalLM", "GPTNeoXConfig"),
    "bert": of_transformers("BertModel", "BertConfig"),
}


def megabytes():
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


class Blocks(ctypes.Structure):
    """What glibc's mallinfo2 tells, in bytes."""

    _fields_ = [(name, ctypes.c_size_t) for name in ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")]


def megabytes_in_use():
    """What malloc has given out in all of its arenas but for small blocks that it keeps at hand: unlike the memory of a process it is free of gaps."""
    report = ctypes.CDLL(None).mallinfo2
    report.restype = Blocks
    blocks = report()
    return (blocks.uordblks + blocks.hblkhd) / 2**20


def files(folder):
    kinds = ("sylvite_*.obj", "*.so")
    return sum(1 for kind in kinds for _ in pathlib.Path(folder).rglob(kind))


def graphs():
    return torch._dynamo.utils.counters["stats"]["unique_graphs"]


def sizes(name, options):
    if name == "images":
        heights = range(*options.heights)
        return random.randint(1, options.batches), random.choice(heights), random.choice(heights)
    return random.randint(1, options.batches), random.randint(1, options.lengths)


def ends_of(name, options):
    batches = (*ENDS, options.batches)
    if name == "images":
        heights = range(*options.heights)
        return [(b, h, w) for b in batches for h in (heights[0], heights[-1]) for w in (heights[0], heights[-1])]
    return [(b, n) for b in batches for n in (*ENDS, options.lengths)]


def draw(at):
    return torch.randn(at[0], 3, *at[1:]) if len(at) == 3 else torch.randint(0, 100, at)


def is_right(results, expected):
    pairs = zip(results, expected) if isinstance(expected, tuple) else [(results, expected)]
    return all(torch.allclose(result, value, atol=1e-4, rtol=1e-3) for result, value in pairs)


def seconds_of(function, given):
    start = time.process_time()
    results = function(given)
    return time.process_time() - start, results


def beside_inductor(name, options, model, fast):
    """Mean microseconds of a call by Inductor and by the other, one after another at each size."""
    other = torch.compile(model, backend="inductor", dynamic=True)
    for at in ends_of(name, options):
        other(draw(at))
    seconds = [0.0, 0.0]
    for _ in range(options.beside):
        given = draw(sizes(name, options))
        for i, function in enumerate((other, fast)):
            seconds[i] += seconds_of(function, given)[0]
    print(f"{name:10} beside: inductor {1e6 * seconds[0] / options.beside:.0f} us a call, "
          f"{options.backend} {1e6 * seconds[1] / options.beside:.0f}", flush=True)


def made_seconds(heard):
    """What building programs took so far."""
    return sum(program.report()["ready_seconds"] for compiled in heard for program in compiled.programs)


def listening(options):
    if options.backend != "sylvite":
        return contextlib.nullcontext([])
    import sylvite.torch_backend

    return sylvite.torch_backend.listen()


def serve(name, options, folder):
    torch.manual_seed(0)
    random.seed(0)
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    model = MODELS[name]()
    fast = torch.compile(model, backend=options.backend, dynamic=True)
    ends = ends_of(name, options)
    before, start, wrong = files(folder), time.perf_counter(), 0
    with listening(options) as heard:
        for at in ends + [sizes(name, options) for _ in range(options.warm_up)]:
            given = draw(at)
            wrong += not is_right(fast(given), model(given))
        warm = (graphs(), files(folder) - before, time.perf_counter() - start)
        gc.collect()
        memory, seconds, builds, building, checked = megabytes(), 0.0, 0, 0.0, 0
        for call in range(options.calls):
            given = draw(sizes(name, options))
            made = made_seconds(heard)
            taken, results = seconds_of(fast, given)
            seconds += taken
            if made_seconds(heard) != made:
                builds, building = builds + 1, building + taken
            if call % options.check == 0:
                checked += 1
                wrong += not is_right(results, model(given))
            if options.watch and call % options.watch == 0:
                print(f"  {call} calls, {megabytes():.1f} MB, {megabytes_in_use():.1f} in use, {len(gc.get_objects())} objects", flush=True)
    gc.collect()
    after = (graphs() - warm[0], files(folder) - before - warm[1])
    print(f"{name:10} warm-up {warm[0]} graphs {warm[1]} kernels {warm[2]:.0f} s; after it {after[0]} graphs {after[1]} kernels, "
          f"{memory:.0f} to {megabytes():.0f} MB, {1e6 * seconds / options.calls:.0f} us a call, {100 * builds / options.calls:.0f} % "
          f"of calls built a program, {100 * building / seconds:.0f} % of the time, "
          f"{checked + len(ends) + options.warm_up} compared, {wrong} wrong", flush=True)
    if options.beside:
        beside_inductor(name, options, model, fast)
    return after == (0, 0) and wrong == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="")
    parser.add_argument("--calls", type=int, default=10000)
    parser.add_argument("--warm-up", type=int, default=300)
    parser.add_argument("--batches", type=int, default=17)
    parser.add_argument("--lengths", type=int, default=70)
    parser.add_argument("--heights", type=int, nargs=3, default=[32, 129, 8], metavar=("FROM", "TO", "STEP"))
    parser.add_argument("--beside", type=int, default=0)
    parser.add_argument("--check", type=int, default=20, help="compare one of so many calls: torch keeps something for each size that eager meets")
    parser.add_argument("--watch", type=int, default=0, help="tell the memory after so many calls")
    parser.add_argument("--backend", default="sylvite", choices=["sylvite", "inductor", "eager"])
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    names = options.only.split(",") if options.only else list(MODELS)
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        os.environ["XDG_CACHE_HOME"] = os.environ["TORCHINDUCTOR_CACHE_DIR"] = folder
        passed = [serve(name, options, folder) for name in names]
    sys.exit(not all(passed))


if __name__ == "__main__":
    main()
