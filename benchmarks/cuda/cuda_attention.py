#!/usr/bin/env python3
"""The attention template and torch's scaled_dot_product_attention on one GPU, turn by turn, outputs compared.

usage: cuda_attention.py PROGRAM
PROGRAM is the benchmark cuda_attention, run as `PROGRAM serve`. Times are medians of microseconds a run inside CUDA
graphs, over tensors that rotate past the L2 cache; contenders take turns in bursts with pauses, so at full clock.
"""

import argparse
import statistics
import tempfile

import torch
import torch.nn.functional as F
from cuda_timing import Server, error_of, graph_of, load, save, take_turns, time_once
from torch.nn.attention import SDPBackend, sdpa_kernel

# batch, heads, rows, depth, causal
CASES = [(8, 16, 2048, 64, True), (4, 32, 4096, 128, True), (32, 12, 128, 64, False), (32, 12, 197, 64, False)]
BACKENDS = {"cudnn": SDPBackend.CUDNN_ATTENTION, "flash": SDPBackend.FLASH_ATTENTION,
            "efficient": SDPBackend.EFFICIENT_ATTENTION}


def torch_way(backend, causal, sets):
    def run(q, k, v):
        F.scaled_dot_product_attention(q, k, v, is_causal=causal)
    b, h, s, d = sets[0][0].shape
    runs = max(3, min(200, int(2000 / (1e-8 * b * h * s * s * d + 5))))
    with sdpa_kernel(backend):
        graph = graph_of(run, sets, runs)
    return lambda: time_once(graph.replay, runs)


def race(server, case, folder):
    b, h, s, d, causal = case
    count = max(1, min(8, (256 << 20) // (6 * b * h * s * d)))
    sets = [tuple(torch.randn(b, h, s, d, device="cuda", dtype=torch.bfloat16) for _ in range(3)) for _ in range(count)]
    for i, tensor in enumerate(sets[0]):
        save(tensor, f"{folder}/in{i}.bin")
    print(" ", server.ask(f"problem {b} {h} {s} {d} {int(causal)} 0 {folder}"), flush=True)
    reference = F.scaled_dot_product_attention(*(t[:1].float() for t in sets[0]), is_causal=causal)
    errors = {"own": error_of(load(f"{folder}/own.bin", sets[0][0])[:1], reference)}
    ways = {"own": lambda: float(server.ask("time"))}
    for name, backend in BACKENDS.items():
        try:
            ways[name] = torch_way(backend, causal, sets)
        except RuntimeError as error:
            print(f"  torch {name}: {str(error).splitlines()[0]}")
            continue
        with sdpa_kernel(backend):
            errors[name] = error_of(F.scaled_dot_product_attention(*sets[0], is_causal=causal)[:1], reference)
    medians = take_turns(ways)
    operations = 4 * b * h * s * s * d / (2 if causal else 1)
    for name, median in medians.items():
        print(f"  {name:<10} {median:9.2f} us {operations / median * 1e-6:7.1f} TFLOP/s  error {errors[name]:.1e}")
    ratio = min(time for name, time in medians.items() if name != "own") / medians["own"]
    print(f"RESULT {case} own {ratio:.3f} of torch's best", flush=True)
    return ratio


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    server = Server(parser.parse_args().program)
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        ratios = [race(server, case, folder) for case in CASES]
    print(f"GEOMEAN own {statistics.geometric_mean(ratios):.3f}")
    server.end()


if __name__ == "__main__":
    main()
