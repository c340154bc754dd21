#!/usr/bin/env python3
"""Serves models with a new batch and length at each call: what is compiled after the warm-up, are answers right, does memory grow?

usage: torch_serving.py [--only qwen3,bert] [--calls 10000] [--warm-up 300] [--batches 17] [--lengths 70] [--backend sylvite]

Batches and lengths are drawn from 1 to the numbers given; the warm-up draws, and adds the ends of both ranges and of classes of
sizes. A line for each model: captured graphs and compiled kernels (files that the backend wrote to its cache) of the warm-up and
after it, megabytes of the process at both ends, microseconds of processor time of a call, answers compared with eager's. Fails
where something is compiled after the warm-up, or wrong. Needs torch, transformers and the package sylvite.
"""

import argparse
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


def of_transformers(model, config, **further):
    def make():
        import transformers

        module = getattr(transformers, model)(getattr(transformers, config)(**SMALL, **further))
        return lambda ids: module.eval()(input_ids=ids, **({"use_cache": False} if "CausalLM" in model else {}))[0]

    return make


MODELS = {
    "encoder": lambda: Encoder().eval(),
    "tagger": lambda: Tagger().eval(),
    "qwen3": of_transformers("Qwen3ForCausalLM", "Qwen3Config", num_key_value_heads=2, head_dim=16),
    "llama": of_transformers("LlamaForCausalLM", "LlamaConfig", num_key_value_heads=2),
    "gpt-neox": of_transformers("GPTNeoXForCausalLM", "GPTNeoXConfig"),
    "bert": of_transformers("BertModel", "BertConfig"),
}


def megabytes():
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def files(folder):
    kinds = ("sylvite_*.obj", "*.so")
    return sum(1 for kind in kinds for _ in pathlib.Path(folder).rglob(kind))


def graphs():
    return torch._dynamo.utils.counters["stats"]["unique_graphs"]


def serve(name, options, folder):
    torch.manual_seed(0)
    random.seed(0)
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    model = MODELS[name]()
    fast = torch.compile(model, backend=options.backend, dynamic=True)

    def sizes():
        return random.randint(1, options.batches), random.randint(1, options.lengths)

    def is_right(results, ids):
        expected = model(ids)
        pairs = zip(results, expected) if isinstance(expected, tuple) else [(results, expected)]
        return all(torch.allclose(result, value, atol=1e-4, rtol=1e-3) for result, value in pairs)

    ends = [(b, n) for b in ENDS + (options.batches,) for n in ENDS + (options.lengths,)]
    before, start = files(folder), time.perf_counter()
    wrong = sum(not is_right(fast(ids), ids) for ids in
                (torch.randint(0, 100, at) for at in ends + [sizes() for _ in range(options.warm_up)]))
    warm = (graphs(), files(folder) - before, time.perf_counter() - start)
    gc.collect()
    memory, seconds, checked = megabytes(), 0.0, 0
    for call in range(options.calls):
        ids = torch.randint(0, 100, sizes())
        start = time.process_time()
        results = fast(ids)
        seconds += time.process_time() - start
        if call % 20 == 0:
            checked += 1
            wrong += not is_right(results, ids)
    gc.collect()
    after = (graphs() - warm[0], files(folder) - before - warm[1])
    print(f"{name:10} warm-up {warm[0]} graphs {warm[1]} kernels {warm[2]:.0f} s; after it {after[0]} graphs {after[1]} kernels, "
          f"{memory:.0f} to {megabytes():.0f} MB, {1e6 * seconds / options.calls:.0f} us a call, "
          f"{checked + len(ends) + options.warm_up} compared, {wrong} wrong", flush=True)
    return after == (0, 0) and wrong == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="")
    parser.add_argument("--calls", type=int, default=10000)
    parser.add_argument("--warm-up", type=int, default=300)
    parser.add_argument("--batches", type=int, default=17)
    parser.add_argument("--lengths", type=int, default=70)
    parser.add_argument("--backend", default="sylvite", choices=["sylvite", "inductor"])
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
