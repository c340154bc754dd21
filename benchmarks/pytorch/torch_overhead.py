#!/usr/bin/env python3
"""What a call costs beside its work: modules of 1, 4 and 200 parameters as eager torch, compilers and a handle call them, and functions of 47
results, of 30 to 16,000 numbers each.

usage: torch_overhead.py [--rounds 60]

Microseconds of a call, the best of rounds, with 1 thread. Needs torch and the package sylvite.
"""

import argparse
import time

import torch
from torch import nn

import sylvite


class Sum(nn.Module):
    def __init__(self):
        super().__init__()
        self.addend = nn.Parameter(torch.ones(64))

    def forward(self, x):
        return x + self.addend


MODULES = {
    1: (Sum, (64,)),
    4: (lambda: nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 16)), (2, 16)),
    200: (lambda: nn.Sequential(*(nn.Linear(16, 16) for _ in range(100))), (2, 16)),
}


class Results(nn.Module):
    def forward(self, x):
        return tuple(x * (i + 1.0) for i in range(47))


def microseconds(function, rounds):
    function()
    start = time.perf_counter()
    for _ in range(20):
        function()
    calls = max(1, int(2e-3 / ((time.perf_counter() - start) / 20)))
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(calls):
            function()
        best = min(best, (time.perf_counter() - start) / calls)
    return 1e6 * best


def inference(make, x):
    """Name -> a call."""
    module = make()
    ways = {"eager": module, "handle": sylvite.program(module, x)}
    for backend in ("sylvite", "inductor"):
        torch._dynamo.reset()
        ways[backend] = torch.compile(module, backend=backend, dynamic=False)
        ways[backend](x)
    return {name: lambda way=way: way(x) for name, way in ways.items()}


def training(make, x):
    """Name -> forward and backward of a step."""
    ways = {"eager": make()}
    for backend in ("sylvite", "inductor"):
        torch._dynamo.reset()
        ways[backend] = torch.compile(make(), backend=backend, dynamic=False)
    return {name: lambda way=way: way(x).sum().backward() for name, way in ways.items()}


def tell(what, times):
    print(what + ":", ", ".join(f"{name} {value:.1f}" for name, value in times.items()), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=60)
    rounds = parser.parse_args().rounds
    torch.set_num_threads(1)
    for parameters, (make, size) in MODULES.items():
        x = torch.randn(size)
        with torch.no_grad():
            called = {name: microseconds(call, rounds) for name, call in inference(make, x).items()}
        trained = {name: microseconds(call, rounds) for name, call in training(make, x).items()}
        for kind, times in (("inference", called), ("training", trained)):
            tell(f"{parameters} parameters, {kind}", times)
    for numbers in (30, 1000, 4000, 16000):
        with torch.no_grad():
            tell(f"47 results of {numbers}", {name: microseconds(call, rounds) for name, call in inference(Results, torch.randn(numbers)).items()})


if __name__ == "__main__":
    main()
