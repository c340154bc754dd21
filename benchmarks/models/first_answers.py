#!/usr/bin/env python3
"""How soon models answer in a fresh process, beside ONNX Runtime and OpenVINO: seconds from the call that loads a file until the
first outputs, imports of packages excluded. A row for each model: Sylvite without a cache, answering by evaluation and by compiled
kernels; how long these take meanwhile until they are ready; a second process, with the cache; both peers. The least of --repeat runs.
What is evaluated must agree with ONNX Runtime: |a - b| at most --tolerance of the largest magnitude.

Files must have weights and fixed sizes; inputs are random. Needs sylvite on PYTHONPATH, onnx, numpy and the peers.
"""
import argparse
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

COLUMNS = ["fast", "ready", "best", "second", "onnxruntime", "openvino"]


def random_inputs(path):
    import numpy as np
    import onnx

    generator = np.random.default_rng(0)
    inputs = {}
    for value in onnx.load(path, load_external_data=False).graph.input:
        tensor = value.type.tensor_type
        shape = [dim.dim_value or 1 for dim in tensor.shape.dim]
        dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        is_float = np.issubdtype(dtype, np.floating)
        inputs[value.name] = (generator.standard_normal(shape) if is_float else np.ones(shape)).astype(dtype)
    return inputs


def first_answer(way, path, threads, cache, outputs):
    """Seconds, by name; the outputs go into a folder. Runs in a process of its own."""
    import time

    import numpy as np

    def save(arrays):
        for i, array in enumerate(arrays):
            np.save(os.path.join(outputs, f"{way}{i}.npy"), array)

    inputs = random_inputs(path)
    if way in ("onnxruntime", "openvino"):
        sys.path.insert(1, str(pathlib.Path(__file__).parents[1] / "shared"))
        import peers

        __import__(way)
        load = getattr(peers, f"load_{way}")
        start = time.perf_counter()
        arrays = load(path, threads, "f32")(inputs)
        seconds = time.perf_counter() - start
        save(arrays)
        return {way: seconds}
    import sylvite

    options = {"compile.threads": threads, "cache.dir": cache, "db.enabled": False}
    start = time.perf_counter()
    model = sylvite.compile(path, options=options, first_answer="best" if way == "best" else "fast")
    arrays = model(inputs)
    seconds = {way: time.perf_counter() - start}
    save(arrays)
    if way == "fast":
        model.wait()
        seconds["ready"] = time.perf_counter() - start
    return seconds


def in_process(*arguments):
    """-> what first_answer gives."""
    words = [sys.executable, __file__, "--child", *map(str, arguments)]
    return json.loads(subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()[-1])


def check(path, outputs, tolerance):
    import numpy as np

    for name in sorted(os.listdir(outputs)):
        if name.startswith("fast"):
            ours, theirs = (np.load(os.path.join(outputs, file)) for file in (name, name.replace("fast", "onnxruntime")))
            far = np.abs(ours - theirs).max() / max(np.abs(theirs).max(), 1e-30)
            if not far <= tolerance:
                raise SystemExit(f"{path}: {name} differs from ONNX Runtime's by {far:.2g} of the largest magnitude")


def measure(path, options):
    runs = []
    for _ in range(options.repeat):
        with tempfile.TemporaryDirectory() as folder:
            cache, other, outputs = (os.path.join(folder, name) for name in ("cache", "other", "outputs"))
            os.mkdir(outputs)
            run = in_process("fast", path, options.threads, cache, outputs)
            for way, used in (("second", cache), ("best", other), ("onnxruntime", other), ("openvino", other)):
                run |= in_process(way, path, options.threads, used, outputs)
            check(path, outputs, options.tolerance)
            runs.append(run)
    return {column: min(run[column] for run in runs) for column in COLUMNS}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", help="ONNX files")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--tolerance", type=float, default=1e-3)
    options = parser.parse_args()
    print("| model | MB | " + " | ".join(COLUMNS) + " |\n|---|---|" + "---|" * len(COLUMNS))
    rows = []
    for path in options.models:
        rows.append(measure(path, options))
        size = os.path.getsize(path) + sum(os.path.getsize(path + end) for end in (".data",) if os.path.exists(path + end))
        print(f"| {os.path.splitext(os.path.basename(path))[0]} | {size / 1e6:.0f} | "
              + " | ".join(f"{rows[-1][column]:.2f}" for column in COLUMNS) + " |", flush=True)
    means = {column: math.exp(statistics.fmean(math.log(row[column]) for row in rows)) for column in COLUMNS}
    print("| geometric mean | | " + " | ".join(f"{means[column]:.2f}" for column in COLUMNS) + " |")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        way, path, threads, cache, outputs = sys.argv[2:]
        print(json.dumps(first_answer(way, path, int(threads), cache, outputs)))
    else:
        main()
