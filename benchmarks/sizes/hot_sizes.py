#!/usr/bin/env python3
"""Kernels for sizes that runs have often (compile.specialize=lazy): times of a run before and after, of the run that takes them, and
the memory of the process. Fails where outputs change by more than 1e-4 of the largest element.

  hot_sizes.py resnet18.onnx --dims batch=1..4,height=64..288%32@224,width=64..288%32@224 --at batch=1,height=160,width=224
"""

import argparse
import statistics
import sys
import time

import onnx
import sylvite

from check_open_sizes import draw, ports
from random_sizes import milliseconds, of_largest


def resident_mib():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096 >> 20


def listed(outputs):
    return list(outputs.values()) if isinstance(outputs, dict) else list(outputs)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--dims", required=True, help="ranges, as the command takes them")
    parser.add_argument("--at", required=True, help="the sizes to run at")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=300, help="to run at most")
    args = parser.parse_args()
    ranges = dict(each.split("=") for each in args.dims.split(","))
    sizes = {name: int(size) for name, size in (each.split("=") for each in args.at.split(","))}
    inputs, _ = ports(onnx.load(args.model, load_external_data=False))
    options = {"compile.threads": args.threads, "db.enabled": False, "compile.specialize": "lazy"}
    model = sylvite.compile(args.model, dims=ranges, options=options)
    model.wait()
    given = draw(inputs, sizes)
    expected, memory, compiled = listed(model(given)), resident_mib(), model.report["compiled"]
    start, times = time.perf_counter(), []
    while not model.report["specialized"]:
        times.append(milliseconds(lambda: model(given)))
        if time.perf_counter() - start > args.seconds:
            sys.exit(f"no kernels for {args.at} alone after {len(times)} runs in {args.seconds:.0f} s")
    seconds = time.perf_counter() - start
    before = statistics.median(times[:50])
    after = statistics.median(milliseconds(lambda: model(given)) for _ in range(50))
    apart = max(of_largest(*pair) for pair in zip(listed(model(given)), expected))
    print(f"{args.at}: {before:.2f} ms, with kernels of its own {after:.2f} ms, {before / after:.2f}; the run that took them {times[-1]:.1f} ms, "
          f"after {len(times)} runs in {seconds:.0f} s; {model.report['compiled'] - compiled} kernels compiled; "
          f"memory {memory} MiB, then {resident_mib()}; {apart:.1e} of the largest")
    sys.exit(1 if apart > 1e-4 else 0)


if __name__ == "__main__":
    main()
