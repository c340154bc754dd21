#!/usr/bin/env python3
"""One compile for ranges of sizes, at random sizes beside ONNX Runtime: largest difference of outputs, programs that compiled
kernels, and, with --time, times in turns on the same inputs (medians; above 1 where the fastest of the peers takes longer). Counts
sizes that differ by more than 1e-3 of an element and 1e-4 of the largest, and fails where there are any.

  random_sizes.py bert.onnx --dims batch=1..8,sequence=1..512 --count 40 --threads 2 --time
"""

import argparse
import pathlib
import random
import statistics
import sys
import time

import numpy as np
import onnx
import sylvite

from check_open_sizes import difference, draw, ports

sys.path.insert(1, str(pathlib.Path(__file__).parents[1] / "shared"))
import peers


def parse_range(text):
    """'1..64%4@8' as every size that it has."""
    text = text.partition("@")[0]
    limits, _, multiple = text.partition("%")
    low, _, high = limits.partition("..")
    return [size for size in range(int(low), int(high or low) + 1) if size % int(multiple or 1) == 0]


def of_largest(actual, expected):
    return float(np.abs(actual - expected).max(initial=0) / max(np.abs(expected).max(initial=0), 1e-30))


def milliseconds(run, clock=time.perf_counter):
    start = clock()
    run()
    return (clock() - start) * 1e3


def block(run, clock=time.perf_counter):
    """The median of a few runs in a row, once the other side's threads have stopped to spin."""
    time.sleep(0.1)
    run()
    return statistics.median(milliseconds(run, clock) for _ in range(3))


def in_turns(runs, rounds, clock):
    """The median of each over the rounds."""
    times = [[block(run, clock) for run in runs] for _ in range(rounds)]
    return [statistics.median(of_one) for of_one in zip(*times)]


def summary(ratios):
    return f"geometric mean {statistics.geometric_mean(ratios):.2f}, least {min(ratios):.2f}, most {max(ratios):.2f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--dims", required=True, help="ranges, as the command takes them")
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--time", action="store_true")
    parser.add_argument("--peers", default="onnxruntime", help="with --time: onnxruntime,openvino; the first gives the outputs")
    parser.add_argument("--processor-time", action="store_true", help="with --time, of one thread on a busy machine")
    parser.add_argument("--fixed", action="store_true", help="with --time: also beside a compile for each of the sizes alone")
    args = parser.parse_args()
    ranges = dict(each.split("=") for each in args.dims.split(","))
    sizes_of = {name: parse_range(text) for name, text in ranges.items()}
    inputs, _ = ports(onnx.load(args.model, load_external_data=False))
    options = {"compile.threads": args.threads, "db.enabled": False}
    start = time.perf_counter()
    model = sylvite.compile(args.model, dims=ranges, options=options)
    ready, kernels = time.perf_counter() - start, model.report["compiled"]
    model.wait()  # kernels for other sizes
    print(f"ready in {ready:.1f} s, {kernels} kernels compiled; all after {time.perf_counter() - start:.1f} s, {model.report['compiled']}")
    names = args.peers.split(",")
    beside = [peers.LOADERS[name](args.model, args.threads, "f32") for name in names]
    clock = time.process_time if args.processor_time else time.perf_counter
    pick = random.Random(args.seed)
    wrong, compiling, ratios, to_fixed, worst, first = 0, 0, [], [], 0.0, []
    of_peers = {name: [] for name in names}
    for _ in range(args.count):
        sizes = {name: pick.choice(all_of) for name, all_of in sizes_of.items()}
        given = draw(inputs, sizes)
        before = model.report["compiled"]
        first.append(milliseconds(lambda: model(given)))
        compiled = model.report["compiled"] - before
        compiling += compiled > 0
        outputs = model(given)
        outputs = list(outputs.values()) if isinstance(outputs, dict) else list(outputs)
        pairs = list(zip(outputs, beside[0](given)))
        wrong += max(difference(*pair) for pair in pairs) > 1
        apart = max(of_largest(*pair) for pair in pairs)
        worst = max(worst, apart)
        line = f"{sizes}: {compiled} kernels, first {first[-1]:.1f} ms, {apart:.1e} of the largest"
        if args.time:
            ours, *theirs = in_turns([lambda: model(given), *(lambda peer=peer: peer(given) for peer in beside)], args.rounds, clock)
            for name, time_of in zip(names, theirs):
                of_peers[name].append(time_of / ours)
            ratios.append(min(theirs) / ours)
            line += "".join(f", {name} {of_peers[name][-1]:.2f}" for name in names)
        if args.time and args.fixed:
            fixed = sylvite.compile(args.model, dims=sizes, options=options)
            open_time, fixed_time = in_turns([lambda: model(given), lambda: fixed(given)], args.rounds, clock)
            to_fixed.append(open_time / fixed_time)
            line += f", {to_fixed[-1]:.2f} of fixed sizes"
        print(line, flush=True)
    print(f"{args.count} sizes: {wrong} wrong, at most {worst:.1e} of the largest; {compiling} compiled kernels; "
          f"first run median {statistics.median(first):.1f} ms")
    for name in names if ratios else ():
        print(f"{name}'s time over Sylvite's: {summary(of_peers[name])}")
    if len(names) > 1 and ratios:
        print(f"The fastest peer's time over Sylvite's: {summary(ratios)}")
    if to_fixed:
        print(f"Time over that of fixed sizes: {summary(to_fixed)}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
