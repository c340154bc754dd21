#!/usr/bin/env python3
"""One compile for ranges of sizes, at random sizes beside ONNX Runtime: largest difference of outputs, programs that compiled
kernels, and, with --time, times in turns on the same inputs (medians; above 1 where ONNX Runtime takes longer). Counts sizes that
differ by more than 1e-3 of an element and 1e-4 of the largest, and fails where there are any.

  random_sizes.py bert.onnx --dims batch=1..8,sequence=1..512 --count 40 --threads 2 --time
"""

import argparse
import math
import random
import statistics
import sys
import time

import numpy as np
import onnx
import sylvite

import peers

RELATIVE, OF_LARGEST = 1e-3, 1e-4


def parse_range(text):
    """'1..64%4@8' as every size that it has."""
    text = text.partition("@")[0]
    limits, _, multiple = text.partition("%")
    low, _, high = limits.partition("..")
    return [size for size in range(int(low), int(high or low) + 1) if size % int(multiple or 1) == 0]


def draw(inputs, sizes, seed):
    numbers = np.random.default_rng(seed)
    drawn = {}
    for value in inputs:
        tensor = value.type.tensor_type
        shape = [sizes[dim.dim_param] if dim.dim_param else dim.dim_value for dim in tensor.shape.dim]
        dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        drawn[value.name] = (numbers.standard_normal(shape) if dtype.kind == "f" else numbers.integers(0, 2, shape)).astype(dtype)
    return drawn


def difference(actual, expected):
    """Of the worst element, as a share of what is allowed; and of the largest element."""
    expected = expected.astype(np.float64)
    largest = max(np.abs(expected).max(initial=0), 1e-30)
    apart = np.abs(actual - expected)
    return float((apart / (RELATIVE * np.abs(expected) + OF_LARGEST * largest)).max(initial=0)), float(apart.max(initial=0) / largest)


def milliseconds(run):
    start = time.perf_counter()
    run()
    return (time.perf_counter() - start) * 1e3


def block(run):
    """The median of a few runs in a row, once the other side's threads have stopped to spin."""
    time.sleep(0.1)
    run()
    return statistics.median(milliseconds(run) for _ in range(3))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--dims", required=True, help="ranges, as the command takes them")
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--time", action="store_true")
    args = parser.parse_args()
    ranges = dict(each.split("=") for each in args.dims.split(","))
    sizes_of = {name: parse_range(text) for name, text in ranges.items()}
    inputs = onnx.load(args.model, load_external_data=False).graph.input
    options = {"compile.threads": args.threads, "db.enabled": False}
    model = sylvite.compile(args.model, dims=ranges, options=options)
    peer = peers.load_onnxruntime(args.model, args.threads, "f32")
    pick = random.Random(args.seed)
    wrong, compiling, ratios, worst, first = 0, 0, [], 0.0, []
    for number in range(args.count):
        sizes = {name: pick.choice(all_of) for name, all_of in sizes_of.items()}
        given = draw(inputs, sizes, number)
        before = model.report["compiled"]
        first.append(milliseconds(lambda: model(given)))
        compiled = model.report["compiled"] - before
        compiling += compiled > 0
        outputs = model(given)
        outputs = list(outputs.values()) if isinstance(outputs, dict) else list(outputs)
        pairs = [difference(*pair) for pair in zip(outputs, peer(given))]
        wrong += max(share for share, _ in pairs) > 1
        worst = max(worst, max(of_largest for _, of_largest in pairs))
        line = f"{sizes}: {compiled} kernels, first {first[-1]:.1f} ms, {max(of_largest for _, of_largest in pairs):.1e} of the largest"
        if args.time:
            runs = [(block(lambda: model(given)), block(lambda: peer(given))) for _ in range(args.rounds)]
            ratios.append(statistics.median(theirs for _, theirs in runs) / statistics.median(ours for ours, _ in runs))
            line += f", {ratios[-1]:.2f}"
        print(line, flush=True)
    print(f"{args.count} sizes: {wrong} wrong, at most {worst:.1e} of the largest; {compiling} compiled kernels; "
          f"first run median {statistics.median(first):.1f} ms")
    if ratios:
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        print(f"ONNX Runtime's time over Sylvite's: geometric mean {mean:.2f}, least {min(ratios):.2f}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
