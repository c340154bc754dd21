#!/usr/bin/env python3
"""Many models, each with one compile for all sizes that open_sizes.py can open, at random sizes beside ONNX Runtime: the sum
of what random_sizes.py says of each. Sizes are small. Models that open in their batch alone get few sizes, the others the rest.

  random_models.py resnet18.onnx bert_base.onnx --count 1000
"""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
RANGES = {"batch": "1..8", "sequence": "1..48@16", "height": "32..160%32@64", "width": "32..160%32@64"}
OPEN = re.compile(r"^open: (\S+) \(exported with", re.M)
RESULT = re.compile(r"^(\d+) sizes: (\d+) wrong, at most (\S+) of the largest; (\d+) compiled kernels", re.M)
SIZES_OF_BATCH = 16  # where only that is open


def open_model(path, folder):
    """The opened file and the names that are open in it."""
    opened = folder / path.name
    done = subprocess.run([sys.executable, HERE / "open_sizes.py", path, "-o", opened], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{path}: {done.stderr[-500:]}")
    return opened, OPEN.findall(done.stderr)


def check(opened, names, count, threads):
    dims = ",".join(f"{name}={RANGES[name]}" for name in names)
    done = subprocess.run([sys.executable, HERE / "random_sizes.py", opened, "--dims", dims, "--count", str(count), "--threads",
                           str(threads)], capture_output=True, text=True, check=False)
    found = RESULT.search(done.stdout)
    if found is None:
        print(f"{opened.stem}: {done.stdout[-300:]}{done.stderr[-300:]}", flush=True)
        return 0, 1, 0.0, 0
    sizes, wrong, error, compiled = found.groups()
    print(f"{opened.stem}: {', '.join(names)} open; {sizes} sizes, {wrong} wrong, at most {error} of the largest; "
          f"{compiled} compiled kernels", flush=True)
    return int(sizes), int(wrong), float(error), int(compiled)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", type=pathlib.Path, help="with weights")
    parser.add_argument("--count", type=int, default=1000, help="sizes of all models together")
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        opened = [open_model(path, pathlib.Path(folder)) for path in args.models]
        of_batch = [each for each in opened if each[1] == ["batch"]]
        others = [each for each in opened if len(each[1]) > 1]
        rest = max(0, args.count - SIZES_OF_BATCH * len(of_batch))
        results = []
        for index, each in enumerate(others):
            results.append(check(*each, (rest + index) // len(others), args.threads))
        results += [check(*each, SIZES_OF_BATCH, args.threads) for each in of_batch]
    sizes, wrong, errors, compiled = zip(*results)
    print(f"{len(results)} models: {sum(sizes)} sizes, {sum(wrong)} wrong, at most {max(errors):.1e} of the largest; "
          f"{sum(compiled)} compiled kernels")
    sys.exit(1 if any(wrong) else 0)


if __name__ == "__main__":
    main()
