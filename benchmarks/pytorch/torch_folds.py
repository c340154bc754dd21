#!/usr/bin/env python3
"""Sums, extremes, places of these, norms and the like of few long rows and of all elements on a GPU; beside eager and Inductor.

usage: torch_folds.py [--only TEXT,...]

Printed for each shape and function are the microseconds of a call in which a kernel runs, by torch's profiler, and how many there are.
Kernels may begin before those ahead of them end, which wait then: such times count once.
"""

import argparse
import pathlib
import sys

import torch
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

sys.path.insert(1, str(pathlib.Path(__file__).parents[2] / "python" / "tests"))
from test_torch_folds import WAYS  # noqa: E402

SHAPES = ((1, 50257), (128, 1000), (32, 50257), (1, 1 << 24), (64, 1 << 18))


def kernels_of(way):
    for _ in range(3):
        way()
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as found:
        for _ in range(5):
            way()
        torch.cuda.synchronize()
    kernels = sorted((row.time_range.start, row.time_range.end) for row in found.events() if row.device_type == DeviceType.CUDA)
    busy, end = 0, 0
    for start, stop in kernels:
        busy += max(0, stop - max(start, end))
        end = max(end, stop)
    return busy / 5, len(kernels) / 5


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="parts of names, with commas")
    options = parser.parse_args()
    for shape in SHAPES:
        for name, function in WAYS.items():
            if not any(part in name for part in options.only.split(",")):
                continue
            x, told = torch.randn(shape, device="cuda"), []
            for backend in ("eager", "sylvite", "inductor"):
                torch._dynamo.reset()
                way = function if backend == "eager" else torch.compile(function, backend=backend)
                with torch.no_grad():
                    microseconds, count = kernels_of(lambda: way(x))
                told.append(f"{backend} {microseconds:.1f} ({count:.0f})")
            print(f"{shape[0]} x {shape[1]:<10} {name:16}" + "   ".join(told), flush=True)


if __name__ == "__main__":
    main()
