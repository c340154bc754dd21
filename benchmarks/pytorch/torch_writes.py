#!/usr/bin/env python3
"""What a compiled function writes over its inputs: steps of optimisers, and a row of a cache; beside eager and Inductor.

usage: torch_writes.py [--device cpu] [--turns 20]

Printed for each way are microseconds of a call by the clock, the least of turns of five calls, on a GPU until the last is done, and there the most memory
since the way began, in MB. Steps are of AdamW, RMSprop and SGD with momentum, over large tensors and over small ones; caches have 4 x 8 x LENGTH x 64
numbers, of which a call writes one place.
"""

import argparse
import time

import torch

LARGE, SMALL = ((1024, 4096), (4096, 1024), (1024,), (4096,)), ((64, 64), (64,))


def clock(way, device, turns):
    def calls(count):
        for _ in range(count):
            way()
        if device == "cuda":
            torch.cuda.synchronize()

    calls(3)
    least = float("inf")
    for _ in range(turns):
        start = time.perf_counter()
        calls(5)
        least = min(least, (time.perf_counter() - start) / 5)
    return least * 1e6


def compiled(function, backend):
    torch._dynamo.reset()
    return function if backend == "eager" else torch.compile(function, backend=backend)


def step_of(name, shapes, device):
    torch.manual_seed(0)
    parameters = [torch.nn.Parameter(torch.randn(shape, device=device)) for shape in shapes]
    for each in parameters:
        each.grad = torch.randn_like(each)
    return getattr(torch.optim, name)(parameters, lr=0.001, **({"momentum": 0.9} if name == "SGD" else {})).step


def write_row(cache, row, place):
    cache.index_copy_(2, place, row)
    return cache[:, :, :4].sum()


def cache_way(function, length, device):
    cache, row = torch.zeros(4, 8, length, 64, device=device), torch.randn(4, 8, 1, 64, device=device)
    place = torch.tensor([5], device=device)

    def way():
        with torch.no_grad():
            function(cache, row, place)

    return way


def tell(name, make, device, turns):
    told = []
    for backend in ("eager", "sylvite", "inductor"):
        if device == "cuda":
            torch.cuda.reset_peak_memory_stats()
        told.append(f"{backend} {clock(make(backend), device, turns):.0f}")
        if device == "cuda":
            told[-1] += f" ({torch.cuda.max_memory_allocated() / 1e6:.0f} MB)"
    print(f"{name:28}" + "   ".join(told), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--turns", type=int, default=20)
    options = parser.parse_args()
    on_gpu = options.device == "cuda"
    for name in ("AdamW", "RMSprop", "SGD"):
        for kind, shapes in (("large", LARGE * (6 if on_gpu else 1)), ("small", SMALL * 12)):
            tell(f"{name}, {len(shapes)} {kind}", lambda backend: compiled(step_of(name, shapes, options.device), backend), options.device, options.turns)
    for length in (512, 8192, 65536 if on_gpu else 16384):
        tell(f"cache of {length}", lambda backend: cache_way(compiled(write_row, backend), length, options.device), options.device, options.turns)


if __name__ == "__main__":
    main()
