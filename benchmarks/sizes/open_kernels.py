#!/usr/bin/env python3
"""What kernels for many sizes cost beside kernels for one: `sylvite bench` with compile.open_kernels=auto and =off in
turns, over the same sizes, in one run. Prints the ratio of times for each size (the median of the rounds, below 1 where
open kernels are faster, and that of the least times of all rounds, which other programs on the machine change less), the
kernels compiled, and the geometric means.

  open_kernels.py bert.onnx --dims "batch=1..8@4+2,sequence=1..512@128+77+384" --threads 2
"""

import argparse
import math
import re
import statistics
import subprocess
import sys

ROW = re.compile(r"^(\S.*), default +\d+ +[\d.]+ +([\d.]+) +([\d.]+)", re.M)  # least and median
ON_DEVICE = re.compile(r"^at (.*):\n(?:(?!at ).*\n)*?on the device, without copies: median ([\d.]+) us", re.M)
COMPILED = re.compile(r"\((\d+) compiled, \d+ from the cache\)")


def bench(args, mode, cache):
    """Least and median times by sizes, and the kernels compiled; the first size has its kernels chosen for it. On a GPU, medians of
    the device as both."""
    command = [args.sylvite, "bench", args.model, "--dims", args.dims, "--threads", str(args.threads), "--random-weights",
               "0", "--warmup", "100ms", "--duration", args.duration, "--cache-dir", cache, "--device", args.device,
               "--precision", args.precision, "--no-profile", "--set", "db.enabled=false", "--set",
               f"compile.open_kernels={mode}"]
    result = subprocess.run(command, capture_output=True, text=True)
    rows = ROW if args.device == "cpu" else ON_DEVICE
    times = {sizes: (float(given[0]), float(given[-1])) for sizes, *given in rows.findall(result.stdout)}
    if result.returncode != 0 or not times:
        sys.exit(f"{' '.join(command)}\n{result.stdout[-500:]}{result.stderr[-500:]}")
    return times, sum(int(count) for count in COMPILED.findall(result.stdout))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--dims", required=True, help="ranges with several sizes to be fast at, as `sylvite bench` takes them")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--precision", default="f32")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--duration", default="300ms", help="for each size in each round")
    parser.add_argument("--sylvite", default="build/unity/bin/sylvite")
    parser.add_argument("--cache", default="/tmp/open_kernels_cache", help="folder of compiled kernels, with -auto and -off")
    args = parser.parse_args()
    ratios, least, compiled = {}, {"auto": {}, "off": {}}, {}
    for turn in range(args.rounds):
        times = {}
        for mode in ("auto", "off") if turn % 2 == 0 else ("off", "auto"):
            times[mode], count = bench(args, mode, f"{args.cache}-{mode}")
            compiled.setdefault(mode, count)
        for sizes, (_, ms) in times["auto"].items():
            ratios.setdefault(sizes, []).append(ms / times["off"][sizes][1])
            for mode, of_mode in least.items():
                of_mode[sizes] = min(times[mode][sizes][0], of_mode.get(sizes, math.inf))
    width = max(map(len, ratios))
    of_least = {sizes: least["auto"][sizes] / least["off"][sizes] for sizes in ratios}
    print(f"{'sizes':<{width}}  open / fixed  least  most  of least times")
    for sizes, all_of in ratios.items():
        print(f"{sizes:<{width}}  {statistics.median(all_of):12.3f}  {min(all_of):5.3f}  {max(all_of):4.3f}  {of_least[sizes]:14.3f}")
    for name, each in (("", [statistics.median(all_of) for all_of in ratios.values()]), ("of least times: ", list(of_least.values()))):
        print(f"{name}geometric mean {statistics.geometric_mean(each):.3f}, worst {max(each):.3f}")
    print(f"compiled: open {compiled['auto']}, fixed {compiled['off']}")


if __name__ == "__main__":
    main()
