#!/usr/bin/env python3
"""What the first run at a new size costs, and a run after one at another size: medians over the sizes of one symbol. A change of
size is a run after another size beyond one after the same, by the least times of both.

  new_sizes.py bert.onnx --dims batch=1..8,sequence=1..512@64 --symbol sequence --sizes 65..96 --device cuda --precision bf16
"""

import argparse
import statistics

import numpy as np
import onnx
import sylvite

from random_sizes import milliseconds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--dims", required=True, help="ranges, as the command takes them")
    parser.add_argument("--symbol", required=True, help="the size that changes; other ranges are at 1")
    parser.add_argument("--sizes", default="65..96")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--precision", default="f32")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=20, help="for a change of size")
    args = parser.parse_args()
    graph = onnx.load(args.model, load_external_data=False).graph
    low, high = map(int, args.sizes.split(".."))
    ranges = dict(each.split("=") for each in args.dims.split(","))
    fixed = {name: int(size) for name, size in ranges.items() if size.isdigit()}
    options = {"compile.device": args.device, "compile.precision": args.precision, "compile.threads": args.threads, "import.random_weights": 0, "db.enabled": False}
    model = sylvite.compile(args.model, dims=ranges, options=options)
    model.wait()  # kernels for other sizes

    def run_at(size):
        inputs = {}
        for value in graph.input:
            tensor = value.type.tensor_type
            dims = [dim.dim_value or (size if dim.dim_param == args.symbol else fixed.get(dim.dim_param, 1)) for dim in tensor.shape.dim]
            inputs[value.name] = np.ones(dims, onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type))
        return lambda: model(inputs)

    runs = [run_at(size) for size in range(low, high + 1)]
    runs[0]()  # compiles
    first = [milliseconds(run) for run in runs[1:]]
    again = [min(milliseconds(run) for _ in range(3)) for run in runs[1:]]
    changed = [milliseconds(run) for run in runs[1:]]
    rows = (("first run at a size", first), ("run again at that size", again), ("run after one at another size", changed))
    for name, times in rows:
        print(f"{name:<30} median {statistics.median(times):9.3f} ms, most {max(times):9.3f} ms")
    same = [min(milliseconds(run) for _ in range(args.rounds)) for run in runs]
    passes = [[milliseconds(run) for run in runs] for _ in range(args.rounds)]
    changes = [(min(times) - least) * 1000 for times, least in zip(zip(*passes), same)]
    print(f"a change of size               median {statistics.median(changes):9.3f} us, most {max(changes):9.3f} us")


if __name__ == "__main__":
    main()
