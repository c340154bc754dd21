#!/usr/bin/env python3
"""The matmul template, cuBLASLt and torch on one GPU, turn by turn, outputs compared.

usage: cuda_matmul.py PROGRAM [--plain-only] [--folder DIR]
PROGRAM is the benchmark cuda_matmul, run as `PROGRAM serve`. Times are medians of microseconds a run inside CUDA graphs,
each over tensors that rotate past the L2 cache; contenders take turns in bursts with pauses, so at full clock.
"""

import argparse
import os
import statistics
import tempfile
import time

import torch
import torch.nn.functional as F
from cuda_timing import Server, error_of, graph_of, load, save, take_turns, time_once

SHAPES = [(8192, 8192, 8192), (4096, 4096, 4096), (1024, 1024, 1024), (4096, 768, 768), (4096, 3072, 768),
          (4096, 768, 3072), (16384, 1024, 4096), (32, 4096, 4096)]


def plain(x, w, bias):
    return F.linear(x, w)


def bias_gelu(x, w, bias):
    return F.gelu(F.linear(x, w, bias))


def torch_way(function, sets):
    m, k = sets[0][0].shape
    n = sets[0][1].shape[0]
    runs = max(3, min(200, int(2000 / (2 * m * n * k / 6e8 + 3))))
    graph = graph_of(function, sets, runs)
    return lambda: time_once(graph.replay, runs)


def race(server, shape, function, folder):
    m, n, k = shape
    count = max(1, min(8, (256 << 20) // (2 * (m * k + n * k + m * n))))
    sets = [(torch.randn(m, k, device="cuda", dtype=torch.bfloat16),
             torch.randn(n, k, device="cuda", dtype=torch.bfloat16) / k**0.5,
             torch.randn(n, device="cuda", dtype=torch.bfloat16)) for _ in range(count)]
    for i, tensor in enumerate(sets[0]):
        save(tensor, f"{folder}/in{i}.bin")
    reference = function(*(tensor.float() for tensor in sets[0]))
    epilogue = function.__name__
    answer = server.ask(f"problem {m} {n} {k} {epilogue} bf16 {folder}")
    torch_ways = {"torch eager": function}
    if function is not plain:
        torch._dynamo.reset()
        start = time.time()
        torch_ways["torch max-autotune"] = torch.compile(function, mode="max-autotune-no-cudagraphs")
        torch_ways["torch max-autotune"](*sets[0])
        print(f"  torch max-autotune compiled in {time.time() - start:.1f} s", flush=True)
    errors = {name: error_of(way(*sets[0]), reference) for name, way in torch_ways.items()}
    ways = {name: torch_way(way, sets) for name, way in torch_ways.items()}
    for name in ("own", "cublaslt"):
        if f" {name} " in answer:
            ways[name] = lambda name=name: float(server.ask(f"time {name}"))
            errors[name] = error_of(load(f"{folder}/{name}.bin", sets[0][0].new_empty(m, n)), reference)
    medians = take_turns(ways)
    best = min(time for name, time in medians.items() if name.startswith("torch"))
    print(f"  {answer}")
    for name, median in medians.items():
        print(f"  {name:<20} {median:9.2f} us {2 * m * n * k / median * 1e-6:7.1f} TFLOP/s  error {errors[name]:.1e}")
    ours = min(medians.get("own", 1e9), medians.get("cublaslt", 1e9))
    print(f"RESULT {m}x{n}x{k} {epilogue} own {best / medians['own']:.3f} tuned {best / ours:.3f} of torch's best", flush=True)
    return best / medians["own"], best / ours


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--plain-only", action="store_true")
    parser.add_argument("--folder", default="/dev/shm")
    options = parser.parse_args()
    server = Server(options.program)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        for function in (plain,) if options.plain_only else (plain, bias_gelu):
            ratios = []
            for shape in SHAPES:
                print(f"{shape} {function.__name__}", flush=True)
                ratios.append(race(server, shape, function, folder))
            for i, what in enumerate(("own", "tuned")):
                print(f"GEOMEAN {function.__name__} {what} {statistics.geometric_mean(r[i] for r in ratios):.3f}", flush=True)
    server.end()


if __name__ == "__main__":
    os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", tempfile.mkdtemp())
    main()
