#!/usr/bin/env python3
"""Checks a model that open_sizes.py made, with the command.

usage: check_open_sizes.py SYLVITE ORIGINAL.onnx OPENED.onnx [--dims batch=3,sequence=77]... [--random-weights SEED]

At the exported sizes both must give the same outputs. At each of --dims the kernels must agree with the interpreter, and each
row of the batch must give what it gives alone. Inputs are random: floats of unit variance, integers 0 and 1.
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import helper

from open_sizes import dims_of

RELATIVE, OF_LARGEST = 1e-3, 1e-4


def ports(model):
    """Inputs and outputs: (name, element, dimensions)."""
    constants = {tensor.name for tensor in model.graph.initializer}
    rows = [[(value.name, value.type.tensor_type.elem_type, dims_of(value)) for value in values]
            for values in (model.graph.input, model.graph.output)]
    return [row for row in rows[0] if row[0] not in constants], rows[1]


def draw(inputs, sizes):
    random = np.random.default_rng(0)
    drawn = {}
    for name, element, dims in inputs:
        shape = [sizes[dim] if isinstance(dim, str) else dim for dim in dims]
        dtype = helper.tensor_dtype_to_np_dtype(element)
        numbers = random.standard_normal(shape) if dtype.kind == "f" else random.integers(0, 2, shape)
        drawn[name] = numbers.astype(dtype)
    return drawn


class Command:
    def __init__(self, program, folder, seed):
        self.program, self.folder = program, pathlib.Path(folder)
        self.words = ["--cache-dir", folder + "/objects", "--db", folder + "/trials.db"]
        self.words += ["--random-weights", str(seed)] if seed is not None else []

    def run(self, model, arrays, outputs, *words):
        words = [self.program, "run", model, "--output-dir", self.folder / "out", "--first-answer", "best", *words, *self.words]
        for name, array in arrays.items():
            np.save(self.folder / f"{name}.npy", array)
            words += ["--input", f"{name}={self.folder / name}.npy"]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(f"{model}: {done.stderr.strip()}")
        return [np.load(self.folder / "out" / f"{i}.npy") for i in range(outputs)]


def difference(actual, expected):
    """Of the worst element, as a share of what is allowed."""
    if actual.shape != expected.shape:
        return float("inf")
    expected = expected.astype(np.float64)
    allowed = RELATIVE * np.abs(expected) + OF_LARGEST * max(np.abs(expected).max(initial=0), 1e-30)
    return float((np.abs(actual - expected) / allowed).max(initial=0))


def check_rows(command, model, ports_of, sizes, arrays, whole):
    """Every row of the batch alone; rows that do not depend on their inputs would show nothing."""
    inputs, outputs = ports_of
    worst, distinct = 0.0, False
    for row in range(sizes["batch"]):
        alone = {name: np.take(arrays[name], [row], dims.index("batch")) if "batch" in dims else arrays[name]
                 for name, _, dims in inputs}
        results = command.run(model, alone, len(outputs))
        for (_, _, dims), result, batch in zip(outputs, results, whole):
            if "batch" in dims:
                axis = dims.index("batch")
                worst = max(worst, difference(result, np.take(batch, [row], axis)))
                distinct |= row > 0 and not np.array_equal(np.take(batch, [0], axis), np.take(batch, [row], axis))
    return worst, distinct


def parse_sizes(text):
    return {name: int(size) for name, _, size in (word.partition("=") for word in text.split(","))}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sylvite")
    parser.add_argument("original")
    parser.add_argument("opened")
    parser.add_argument("--dims", action="append", default=[], type=parse_sizes)
    parser.add_argument("--random-weights", type=int)
    options = parser.parse_args()
    exported, _ = ports(onnx.load(options.original, load_external_data=False))
    inputs, outputs = ports(onnx.load(options.opened, load_external_data=False))
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        command = Command(options.sylvite, folder, options.random_weights)
        arrays = draw(exported, {})
        rows = [command.run(model, arrays, len(outputs)) for model in (options.opened, options.original)]
        worst = max(difference(*pair) for pair in zip(*rows))
        same = all(np.array_equal(*pair) for pair in zip(*rows))
        print(f"exported sizes: {'equal' if same else f'{worst:.3f} of what is allowed'}")
        failed |= worst > 1
        for sizes in options.dims:
            text = ",".join(f"{name}={size}" for name, size in sizes.items())
            arrays = draw(inputs, sizes)
            whole = command.run(options.opened, arrays, len(outputs), "--check", "interpreter")
            line = f"{text}: " + " ".join(str(list(array.shape)) for array in whole)
            if "batch" in sizes:
                worst, distinct = check_rows(command, options.opened, (inputs, outputs), sizes, arrays, whole)
                line += f", rows alone {worst:.3f} of what is allowed" + ("" if distinct else ", ALL ROWS ARE EQUAL")
                failed |= worst > 1 or not distinct
            print(line, flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
