#!/usr/bin/env python3
"""Sums, extremes, places of these, norms and the like of few long rows, of all elements and of columns on a GPU; beside eager and Inductor.

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

ALONG_COLUMNS = {
    "series": (lambda x: (x - x.mean(1, keepdim=True)) / torch.sqrt(x.var(1, keepdim=True, unbiased=False) + 1e-5), (32, 96, 21), (32, 336, 321)),
    "means and deviations": (lambda x: torch.cat([x.mean(1), x.std(1)], -1), (32, 200, 1536)),
    "logarithms": (lambda x: x.logsumexp(1), (32, 48, 48), (32, 1024, 128)),
    "places": (lambda x: (x.max(1), x.argmin(1)), (32, 48, 64)),
    "classes": (lambda x: x.argmax(1), (8, 21, 65536)),
    "unit": (lambda x: torch.nn.functional.normalize(x, dim=1), (32, 64, 256)),
    "range": (lambda x: (x - x.amin(1, keepdim=True)) / (x.amax(1, keepdim=True) - x.amin(1, keepdim=True) + 1e-6), (32, 128, 32)),
    "instances": (lambda x: (x - x.mean(1, keepdim=True)) / x.std(1, keepdim=True), (32, 1024, 256)),
    "batch": (lambda x: (x - x.mean(0)) / (x.var(0) + 1e-5).sqrt(), (65536, 256)),
    "images": (lambda x: (x - x.mean((0, 2, 3), keepdim=True)) / (x.var((0, 2, 3), keepdim=True) + 1e-5).sqrt(), (32, 64, 56, 56)),
    "counts": (lambda x: ((x > 2).any(1), (x > 0).sum(1)), (32, 64, 128)),
    "sums and places": (lambda x: (x.sum(0), x.argmax(0)), (128, 1000), (64, 262144)),
    "a variance": (lambda x: x.var(), (1 << 24,)),
    "variances": (lambda x: (x.var(), x.std(-1)), (64, 262144)),
}
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
    cases = [(shape, name, function) for shape in SHAPES for name, function in WAYS.items()]
    cases += [(shape, name, function) for name, (function, *shapes) in ALONG_COLUMNS.items() for shape in shapes]
    for shape, name, function in cases:
        if not any(part in name for part in options.only.split(",")):
            continue
        x, told = torch.randn(shape, device="cuda"), []
        for backend in ("eager", "sylvite", "inductor"):
            torch._dynamo.reset()
            way = function if backend == "eager" else torch.compile(function, backend=backend)
            with torch.no_grad():
                microseconds, count = kernels_of(lambda: way(x))
            told.append(f"{backend} {microseconds:.1f} ({count:.0f})")
        print(f"{' x '.join(map(str, shape)):22} {name:22}" + "   ".join(told), flush=True)


if __name__ == "__main__":
    main()
